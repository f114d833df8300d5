"""Products of matrices and the dense layer: floating-point operations a second, 2 M N K a product.

Each precision is measured beside what a user of torch has for the same operands: "ieee", "float32"
and "fast32" beside torch in float32 (TF32 off), the others beside torch in the same format. All are
recorded as CUDA graphs, so that the figures are the device's, pre-passes included; after a pause
and a batch to settle the libraries take turns. The error beside each rate is the relative one in
the Frobenius norm, against float64.
"""

import numpy as np

from .goals import Ratio
from .streaming import same
from .timing import BFLOAT16, Row

F16, F32, F64 = np.float16, np.float32, np.float64
SQUARES = [(n, n, n) for n in (256, 512, 1000, 1024, 2048, 4095, 4096, 8192)]
OTHERS = [(128, 4096, 4096), (8192, 128, 8192), (65536, 512, 784)]
VECTOR = (1, 4096, 4096)
# The dtype of the operands, and the largest relative error, by the precision's name.
FORMATS = {
    "ieee": (F32, 1e-5),
    "float32": (F32, 1e-5),
    "fast32": (F32, 1e-5),
    "tf32": (F32, 1e-3),
    "float16": (F16, 1e-3),
    "bfloat16": (BFLOAT16, 5e-3),
    "float64": (F64, 1e-13),
}
SIZES = {
    "full": {
        "products": {
            **{name: [*SQUARES, *OTHERS, VECTOR] for name in ("ieee", "float32")},
            "fast32": SQUARES[3:],
            **{name: [*SQUARES, *OTHERS] for name in ("tf32", "float16", "bfloat16")},
            "float64": [(n, n, n) for n in (1024, 2048, 4096)],
        },
        # (items, side): batches of square products
        "batches": [(64, 512), (512, 128), (2048, 64), (4096, 32), (65536, 32)],
        "layers": [(128, 512, 784), (1024, 1024, 1024), (8192, 4096, 4096), (65536, 1024, 1024)],
    },
    "cpu": {
        "products": {"ieee": [(256,) * 3, (1024,) * 3, (1, 1024, 1024)], "float64": [(512,) * 3]},
        "batches": [(64, 32)],
        "layers": [(512,) * 3],
    },
    "quick": {
        "products": {name: [(32, 32, 32), (31, 33, 35)] for name in FORMATS},
        "batches": [(3, 16)],
        "layers": [(32, 32, 32)],
    },
}


def product_name(precision, shape):
    return f"{precision} {'x'.join(str(n) for n in shape)}"


def _goals():
    least = {"ieee": dict.fromkeys(OTHERS, 0.95), "float32": {}}
    least["ieee"] |= dict.fromkeys(SQUARES, 1.0) | {SQUARES[0]: 0.95, SQUARES[2]: 0.95}
    least["ieee"][VECTOR] = 1.0
    squares = zip(SQUARES[1:], (1.1, 1.0, 2.2, 2.1, 1.0, 2.3, 2.4), strict=True)
    least["float32"] |= dict(squares) | dict.fromkeys(OTHERS, 1.0) | {OTHERS[2]: 1.7}
    least["fast32"] = {(4096,) * 3: 3.5, (8192,) * 3: 4.2}
    for name in ("bfloat16", "float16", "tf32"):
        least[name] = {(n,) * 3: 0.95 for n in (1024, 2048, 4096, 8192)} | {(4095,) * 3: 2.5}
    least["float64"] = {(2048,) * 3: 0.95, (4096,) * 3: 0.95}
    goals = [
        Ratio(product_name(precision, shape), "torch", ratio)
        for precision, shapes in least.items()
        for shape, ratio in shapes.items()
    ]
    goals += [
        Ratio(f"{items} products of {n}x{n}x{n}", "torch", 1.15)
        for items, n in ((512, 128), (4096, 32), (65536, 32))
    ]
    goals.append(Ratio("64 products of 512x512x512", "torch", 0.95))
    return [*goals, Ratio("dense layer with sigmoid, 8192x4096x4096", "torch", 2.2)]


GOALS = _goals()


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
    dtype, error_allowed = FORMATS[precision]
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
        error_allowed=error_allowed,
    )


def batch(items, n):
    def torchs(torch, a, b, out):
        torch.backends.cuda.matmul.allow_tf32 = False
        return torch.matmul(a, b, out=out)

    shape = (items, n, n)
    return Row(
        name=f"{items} products of {n}x{n}x{n}",
        work=2 * items * n**3,
        unit="FLOP/s",
        operands=[(shape, F32), (shape, F32)],
        out=(shape, F32),
        calls=same(lambda m, a, b, out: m.matmul(a, b, out=out)) | {"torch": torchs},
        expected=lambda a, b: a.astype(F64) @ b.astype(F64),
        error_allowed=1e-5,
    )


def dense(shape):
    M, N, K = shape

    def torch_layer(torch, x, weight, bias):
        torch.backends.cuda.matmul.allow_tf32 = False
        return torch.sigmoid(torch.nn.functional.linear(x, weight, bias))

    def expected(x, weight, bias):
        return 1 / (1 + np.exp(-(x.astype(F64) @ weight.astype(F64).T + bias)))

    return Row(
        name=f"dense layer with sigmoid, {M}x{N}x{K}",
        work=2 * M * N * K,
        unit="FLOP/s",
        operands=[((M, K), F32), ((N, K), F32), ((N,), F32)],
        out=None,
        calls={
            "pyvecgpu": lambda vg, x, w, b: vg.dense(x, w, b, activation="sigmoid"),
            "torch": torch_layer,
        },
        expected=expected,
        error_allowed=1e-5,
    )
