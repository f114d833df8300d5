"""Pooling and convolution of float32, forward and backward: bytes, or operations, a second.

The shapes are those of a residual network. Backward of a pool is its gradient by the tape, with the
pass forward that keeps the places; what must move is counted once, places too. torch multiplies as
cuDNN does without TF32.
"""

import math

import numpy as np

from ..autograd import grad
from ..backends import cpu_windows
from ..dispatch import apply
from .goals import Ratio
from .timing import Row

F32 = np.float32
# (images, channels, rows and columns), kernel, stride, padding
POOLS = {
    "full": [((64, 64, 112, 112), 2, 2, 0), ((64, 64, 112, 112), 3, 2, 1)],
    "cpu": [((8, 16, 56, 56), 2, 2, 0), ((8, 16, 56, 56), 3, 2, 1)],
    "quick": [((2, 3, 8, 8), 2, 2, 0), ((2, 3, 8, 8), 3, 2, 1)],
}
# images, channels, rows and columns, results, kernel, stride, groups
CONVOLUTIONS = {
    "full": [
        *((64, 64, 56, 64, 3, 1, 1), (64, 256, 14, 256, 3, 1, 1), (64, 512, 7, 512, 3, 1, 1)),
        *((64, 128, 56, 128, 3, 2, 1), (64, 256, 56, 64, 1, 1, 1), (64, 3, 224, 64, 7, 2, 1)),
        *((128, 1, 28, 32, 3, 1, 1), (64, 128, 56, 128, 3, 1, 128)),
    ],
    "cpu": [(8, 16, 28, 16, 3, 1, 1), (8, 16, 28, 16, 3, 1, 16)],
    "quick": [(2, 3, 8, 4, 3, 1, 1), (1, 4, 8, 4, 3, 2, 4)],
}
LARGE = "convolution, 64x64x56x56 to 64, 3x3"
GOALS = [Ratio(LARGE, "torch", 0.3), Ratio(f"{LARGE}, input", "torch", 0.3)]
GOALS += [Ratio(f"{LARGE}, weight", "torch", 0.3)]


def rows(size):
    """Return the rows for a key of POOLS."""
    table = [row for case in POOLS[size] for row in pools(*case)]
    return table + [row for case in CONVOLUTIONS[size] for row in convolutions(*case)]


def numbers(kernel, stride, padding):
    """Return the numbers of square windows, as pvg_windows has them."""
    return (kernel, kernel, stride, stride, *[padding] * 4, 1, 1)


def text(shape):
    return "x".join(map(str, shape))


# Pools --------------------------------------------------------------------------------------------


def pools(shape, kernel, stride, padding):
    """Return the rows of a pool: maxima and means, and both with their gradients."""
    windows = numbers(kernel, stride, padding)
    pooled = (*shape[:2], *cpu_windows.lengths(windows, shape))
    read, made = 4 * math.prod(shape), 4 * math.prod(pooled)
    name = f"{text(shape)}, {kernel}x{kernel}, stride {stride}"
    how = (kernel, stride, padding)
    for kind, function in (("maxima", "max_pool2d"), ("means", "avg_pool2d")):
        largest = kind == "maxima"

        def forward(m, x, function=function):
            return getattr(m.nn.functional, function)(x, *how)

        def backward(vg, x, g, forward=forward):
            leaf = x.detach().requires_grad_()
            return grad(forward(vg, leaf), (leaf,), g)[0]

        def theirs(torch, x, g, forward=forward):
            leaf = x.detach().requires_grad_()
            return torch.autograd.grad(forward(torch, leaf), (leaf,), g)[0]

        yield Row(
            name=f"{kind}, {name}",
            work=read + made,
            unit="B/s",
            operands=[(shape, F32)],
            out=None,
            calls=dict.fromkeys(("pyvecgpu", "torch"), forward),
            expected=lambda x, largest=largest: pooled_on_host(x, windows, largest),
            error_allowed=0.0 if largest else 1e-6,
        )
        yield Row(
            name=f"{kind} and gradient, {name}",
            work=2 * read + 2 * made + 2 * made * largest,
            unit="B/s",
            operands=[(shape, F32), (pooled, F32)],
            out=None,
            calls={"pyvecgpu": backward, "torch": theirs},
            expected=lambda x, g, largest=largest: gradient_on_host(x, g, windows, largest),
            error_allowed=1e-6,
        )


def pooled_on_host(x, windows, largest):
    x = x.astype(np.float64)
    return cpu_windows.largest(x, windows, None) if largest else cpu_windows.means(x, windows, True)


def gradient_on_host(x, g, windows, largest):
    places = np.empty(g.shape, np.int32) if largest else None
    if largest:
        cpu_windows.largest(x, windows, places)
    return cpu_windows.pool_backward(g.astype(np.float64), places, windows, True, x.shape)


# Convolutions -------------------------------------------------------------------------------------


def convolutions(images, channels, side, out, kernel, stride, groups):
    """Return the rows of a convolution and of both gradients."""
    padding = kernel // 2
    windows = numbers(kernel, stride, padding)
    x, weight = (images, channels, side, side), (out, channels // groups, kernel, kernel)
    y = (images, out, *cpu_windows.lengths(windows, x))
    how = {"stride": stride, "padding": padding, "groups": groups}
    name = f"convolution, {text(x)} to {out}, {kernel}x{kernel}"
    name += f", stride {stride}" * (stride > 1) + f", {groups} groups" * (groups > 1)
    calls = {
        "": ((x, weight), "convolution", ()),
        ", input": ((y, weight), "convolution_input", (side, side)),
        ", weight": ((y, x), "convolution_weight", ()),
    }
    peers = {
        "": lambda torch, x, w: torch.nn.functional.conv2d(x, w, **how),
        ", input": lambda torch, g, w: torch.nn.grad.conv2d_input(x, w, g, **how),
        ", weight": lambda torch, g, a: torch.nn.grad.conv2d_weight(a, weight, g, **how),
    }
    for what, (shapes, method, more) in calls.items():
        function = getattr(cpu_windows, method)

        def call(_, a, b, method=method, more=more):
            return apply(a.backend, method, a, b, windows, groups, *more)

        def expected(a, b, function=function, more=more):
            return function(a.astype(np.float64), b.astype(np.float64), windows, groups, *more)

        def magnitude(a, b, expected=expected):
            return expected(np.abs(a), np.abs(b))

        yield Row(
            name=name + what,
            work=2 * math.prod(y) * weight[1] * kernel**2,
            unit="FLOP/s",
            operands=[(shape, F32) for shape in shapes],
            out=None,
            calls={"pyvecgpu": call, "torch": peers[what]},
            expected=expected,
            magnitude=magnitude,
            error_allowed=2e-6,
        )
