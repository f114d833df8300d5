"""Products of matrices and the dense layer: floating-point operations a second, 2 M N K a product.

The error beside the rate is the relative one in the Frobenius norm, against float64. The peers
compute in the same precision: no TF32.
"""

import numpy as np

from .goals import Ratio
from .streaming import same
from .timing import Row

F32, F64 = np.float32, np.float64
# (M, N, K) of products in float32, of products in float64, and of dense layers (M, out, in)
SIZES = {
    "full": (
        [
            *[(n, n, n) for n in (256, 512, 1024, 2048, 4096, 8192, 4095)],
            (128, 4096, 4096),
            (8192, 128, 8192),
            (1, 4096, 4096),
        ],
        [(2048, 2048, 2048)],
        [(8192, 4096, 4096), (1024, 1024, 1024)],
    ),
    "cpu": ([(256,) * 3, (1024,) * 3, (1, 1024, 1024)], [(512,) * 3], [(512,) * 3]),
    "quick": ([(32, 32, 32), (31, 33, 35), (1, 64, 64)], [(32, 32, 32)], [(32, 32, 32)]),
}
GOALS = [Ratio("float32 product, 4096x4096x4096", "torch", 0.4)]


def rows(size):
    """Return the rows for a key of SIZES."""
    singles, doubles, layers = SIZES[size]
    table = [product(shape, F32, 1e-5) for shape in singles]
    table += [product(shape, F64, 1e-13) for shape in doubles]
    return table + [dense(shape) for shape in layers]


def product(shape, dtype, error_allowed):
    M, N, K = shape
    return Row(
        name=f"{np.dtype(dtype).name} product, {M}x{N}x{K}",
        work=2 * M * N * K,
        unit="FLOP/s",
        operands=[((M, K), dtype), ((K, N), dtype)],
        out=((M, N), dtype),
        calls=same(lambda m, a, b, out: m.matmul(a, b, out=out)),
        expected=lambda a, b: a.astype(F64) @ b.astype(F64),
        error_allowed=error_allowed,
    )


def dense(shape):
    M, N, K = shape

    def torch_layer(torch, x, weight, bias):
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
