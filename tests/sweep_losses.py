"""The sweep's groups of activations' gradients and of losses of two arrays.

The references are this library's own functions on the CPU device in float64, which have tests
against NumPy.
"""

import helpers
import numpy as np
from helpers import fixed_integers as data
from sweep_rows import check

import pyvecgpu as vg

F = vg.nn.functional
SMALL = np.dtype(np.float64)
ACTIVATIONS = {
    "softplus": lambda x: F.softplus(x, 0.5, 1.0),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.5),
    "elu": lambda x: F.elu(x, 0.5),
    "relu": vg.relu,
    "sigmoid": vg.sigmoid,
    "tanh": vg.tanh,
    "gelu": F.gelu,
    "silu": F.silu,
}
PAIRS = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "huber": lambda x, t, reduction: F.huber_loss(x, t, reduction, 2.5),
    "smooth": lambda x, t, reduction: F.smooth_l1_loss(x, t, reduction, 2.5),
    "logits": lambda x, t, reduction: F.binary_cross_entropy_with_logits(x, t, reduction=reduction),
}
# Of one thread, of vectors and what is left of them; of two rounds of a block, and of more blocks:
# rounds are of 2048, 4096 and 8192 elements.
SIZES = (1, 77, 3001, 16_385, 33_000)


def activations(dtype):
    if not helpers.is_float(dtype):
        return
    for name, function in ACTIVATIONS.items():
        for shape in ((40, 8), (37, 21)):
            x = data(SMALL, shape)
            yield (
                f"{name}, {shape}",
                lambda device, f=function, x=x: check(f, device, dtype, [x]),
            )
        x = data(SMALL, (37, 21))
        yield (
            f"{name}, turned",
            lambda device, f=function, x=x: check(lambda a: f(a[1:].T), device, dtype, [x]),
        )


def pairs(dtype):
    if not helpers.is_float(dtype):
        return
    for name, function in PAIRS.items():
        for size in SIZES:
            operands = [data(SMALL, (size,), seed=i) for i in (1, 2)]
            for reduction in ("mean", "sum", "none")[: 3 if size < 4000 else 1]:
                yield (
                    f"{name}, {reduction} of {size}",
                    lambda device, f=function, how=reduction, operands=operands: check(
                        lambda x, t: f(x, t, reduction=how), device, dtype, operands
                    ),
                )
        operands = [data(SMALL, (33, 9), seed=1), data(SMALL, (9, 33), seed=2)]
        yield (
            f"{name}, in other orders",
            lambda device, f=function, operands=operands: check(
                lambda x, t: f(x[1:].T, t[:, 1:], reduction="none"), device, dtype, operands
            ),
        )
