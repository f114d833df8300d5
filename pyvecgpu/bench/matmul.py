"""Products of matrices and the dense layer: floating-point operations a second, 2 M N K a product.

Each precision is measured beside what a user of torch has for the same operands: "ieee", "float32"
and "fast32" beside torch in float32 (TF32 off), the others beside torch in the same format. All are
recorded as CUDA graphs, so that the figures are the device's, pre-passes included; after a pause
and a batch to settle the libraries take turns. The error beside each rate is the relative one in
the Frobenius norm, against float64; `error_allowed` says from which one on a result is wrong.
"""

import math

import numpy as np

from .goals import Ratio
from .streaming import same
from .timing import BFLOAT16, Row

F16, F32, F64 = np.float16, np.float32, np.float64
SQUARES = [(n, n, n) for n in (256, 512, 1000, 1024, 2048, 4095, 4096, 8192)]
OTHERS = [(128, 4096, 4096), (8192, 128, 8192), (65536, 512, 784)]
VECTOR = (1, 4096, 4096)
# The dtype of the operands by the precision's name; of float32 operands it is one of vg.matmul.
DTYPES = {
    **dict.fromkeys(("ieee", "float32", "fast32", "tf32"), F32),
    "float16": F16,
    "bfloat16": BFLOAT16,
    "float64": F64,
}
# Of what is rounded: its bits, and how much of a product it is. tf32, and "bf16" and "fp16" of
# float32, round both operands; of arrays of 16 bits the result is rounded.
ROUNDED = {"tf32": (11, 2), "fp16": (11, 2), "bf16": (8, 2), "float16": (11, 1), "bfloat16": (8, 1)}
# What rounding to the nearest number of so many bits changes it by, in units of 2^-bits of the
# number: the root mean square.
ROUNDING = 0.425
SIZES = {
    "full": {
        "products": {
            **{name: [*SQUARES, *OTHERS, VECTOR] for name in ("ieee", "float32")},
            "fast32": SQUARES[3:],
            **{name: [*SQUARES, *OTHERS, VECTOR] for name in ("tf32", "float16", "bfloat16")},
            "float64": [(n, n, n) for n in (1024, 2048, 4096, 8192)],
        },
        # (items, side): batches of square products
        "batches": [(64, 640), (64, 512), (512, 128), (2048, 64), (4096, 32), (65536, 32)],
        "layers": [(128, 512, 784), (1024, 1024, 1024), (8192, 4096, 4096), (65536, 1024, 1024)],
    },
    "cpu": {
        "products": {"ieee": [(256,) * 3, (1024,) * 3, (1, 1024, 1024)], "float64": [(512,) * 3]},
        "batches": [(64, 32)],
        "layers": [(512,) * 3],
    },
    "quick": {
        "products": {name: [(32, 32, 32), (31, 33, 35)] for name in DTYPES},
        "batches": [(3, 16)],
        "layers": [(32, 32, 32)],
    },
}


def chain_error(k, bits):
    """Return the relative error of sums of k products of normal numbers, added one by one.

    Each addition rounds a sum that has grown like a root so far.
    """
    return ROUNDING * 2.0**-bits * math.sqrt((k + 1) / 2)


def rounding_allowed(bits, roundings):
    """Return 1.7 times the error of so many roundings to the nearest number of so many bits."""
    return 1.7 * ROUNDING * 2.0**-bits * math.sqrt(roundings)


def error_allowed(precision, k):
    """Return from which relative error on a product of normal numbers is wrong.

    "ieee", "float32" and "fast32": twice the error of "ieee", which adds in two chains from k = 256
    on. A library that adds in one stays below; what tensor cores cut off, if "float32" left it to
    them to add all of k up, does not. tf32 and 16 bit: 1.7 times what rounding gives; if bits are
    cut off instead it is twice as much.
    """
    if precision in ("ieee", "float32", "fast32"):
        return 2 * chain_error(k if k < 256 else k / 2, 24)
    if precision == "float64":
        return 2 * chain_error(k, 53)
    return rounding_allowed(*ROUNDED[precision])


def product_name(precision, shape):
    return f"{precision} {'x'.join(str(n) for n in shape)}"


def batch_name(items, n):
    """Name the row of a batch: in the default precision, which "ieee" computes for small items."""
    kind = "float32 (here ieee)" if n <= 512 else "float32"
    return f"{kind}, {items} products of {n}x{n}x{n}"


def dense_name(shape):
    return f"dense layer with sigmoid, {'x'.join(str(n) for n in shape)}"


def _goals():
    least = {"ieee": dict.fromkeys(OTHERS, 0.95), "float32": {}}
    least["ieee"] |= dict.fromkeys(SQUARES, 1.0) | {SQUARES[0]: 0.95, SQUARES[2]: 0.95}
    squares = zip(SQUARES[1:], (1.1, 1.0, 2.2, 2.1, 1.0, 2.3, 2.4), strict=True)
    least["float32"] |= dict(squares) | dict.fromkeys(OTHERS, 1.0) | {OTHERS[2]: 1.7}
    least["fast32"] = {(4096,) * 3: 3.5, (8192,) * 3: 4.2}
    for name in ("bfloat16", "float16", "tf32"):
        least[name] = {(n,) * 3: 0.95 for n in (1024, 2048, 4096, 8192)} | {(4095,) * 3: 2.5}
    least["float64"] = {(n,) * 3: 0.95 for n in (2048, 4096, 8192)}
    for name in ("ieee", "float32", "bfloat16", "float16", "tf32"):
        least[name][VECTOR] = 1.0
    goals = [
        Ratio(product_name(precision, shape), "torch", ratio)
        for precision, shapes in least.items()
        for shape, ratio in shapes.items()
    ]
    goals += [
        Ratio(product_name(precision, shape), "torch", 0.95, aim=True)
        for precision in ("bfloat16", "float16", "tf32")
        for shape in OTHERS[1:]
    ]
    goals += [
        Ratio(batch_name(items, n), "torch", 1.15)
        for items, n in ((512, 128), (4096, 32), (65536, 32))
    ]
    goals += [Ratio(batch_name(64, 512), "torch", 0.95), Ratio(batch_name(64, 640), "torch", 1.0)]
    return [*goals, Ratio(dense_name((8192, 4096, 4096)), "torch", 2.2)]


GOALS = _goals()
# The rows that README.md has; docs/benchmarks.md has all of them.
FRONT = [
    product_name("ieee", (4096,) * 3),
    *(product_name("float32", (n,) * 3) for n in (1024, 4096, 8192)),
    *(product_name(name, (4096,) * 3) for name in [*DTYPES][2:]),
    product_name("float32", VECTOR),
    *(batch_name(items, n) for items, n in ((64, 512), (512, 128), (65536, 32))),
    dense_name((8192, 4096, 4096)),
]


def rows(size):
    """Return the rows for a key of SIZES."""
    chosen = SIZES[size]
    table = [
        product(precision, shape)
        for precision, shapes in chosen["products"].items()
        for shape in shapes
    ]
    table += [batch(items, n) for items, n in chosen["batches"]]
    return table + [dense(shape) for shape in chosen["layers"]]


def product(precision, shape):
    M, N, K = shape
    dtype = DTYPES[precision]
    name = precision if dtype is F32 else None

    def ours(vg, a, b, out):
        return vg.matmul(a, b, precision=name, out=out)

    def torchs(torch, a, b, out):
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        return torch.matmul(a, b, out=out)

    return Row(
        name=product_name(precision, shape),
        work=2 * M * N * K,
        unit="FLOP/s",
        operands=[((M, K), dtype), ((K, N), dtype)],
        out=((M, N), dtype),
        calls={"pyvecgpu": ours, "torch": torchs}
        | ({"cupy": lambda m, a, b, out: m.matmul(a, b, out=out)} if name == "ieee" else {}),
        expected=lambda a, b: a.astype(F64) @ b.astype(F64),
        error_allowed=error_allowed(precision, K),
    )


def batch(items, n):
    def torchs(torch, a, b, out):
        torch.backends.cuda.matmul.allow_tf32 = False
        return torch.matmul(a, b, out=out)

    shape = (items, n, n)
    return Row(
        name=batch_name(items, n),
        work=2 * items * n**3,
        unit="FLOP/s",
        operands=[(shape, F32), (shape, F32)],
        out=(shape, F32),
        calls=same(lambda m, a, b, out: m.matmul(a, b, out=out)) | {"torch": torchs},
        expected=lambda a, b: a.astype(F64) @ b.astype(F64),
        error_allowed=error_allowed("float32", n),
    )


def dense(shape):
    M, N, K = shape

    def torch_layer(torch, x, weight, bias):
        torch.backends.cuda.matmul.allow_tf32 = False
        return torch.sigmoid(torch.nn.functional.linear(x, weight, bias))

    def expected(x, weight, bias):
        return 1 / (1 + np.exp(-(x.astype(F64) @ weight.astype(F64).T + bias)))

    return Row(
        name=dense_name(shape),
        work=2 * M * N * K,
        unit="FLOP/s",
        operands=[((M, K), F32), ((N, K), F32), ((N,), F32)],
        out=None,
        calls={
            "pyvecgpu": lambda vg, x, w, b: vg.dense(x, w, b, activation="sigmoid"),
            "torch": torch_layer,
        },
        expected=expected,
        # Of sums that vary like the root of K, the sigmoid leaves 0 and 1 but for those near zero,
        # whose errors it passes on.
        error_allowed=2.0**-23 + 0.22 * K**0.25 * error_allowed("float32", K),
    )
