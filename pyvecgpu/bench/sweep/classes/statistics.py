"""Reductions beyond sums and maxima, running sums and products, softmax; along any axes."""

import math

import numpy as np

from ..case import (
    FLOATS,
    NUMBERS,
    ROUNDOFF,
    Case,
    Made,
    Operand,
    expected_rounded,
    moved,
    rounding,
    wide,
)
from .layouts import shape_of
from .reductions import REDUCED, SUM_REST

# What is computed with: halves in float32, integers in float64, which the result is rounded from.
WORK = dict.fromkeys(FLOATS, "float32") | {"float64": "float64"}
UNDERFLOW = {"float64": 1e-290}  # of products on their way; in float32:
UNDERFLOW_32 = 1e-36


def axes_of(draw, kind, size):
    """Return a shape and axes to reduce, of those that sums are drawn with."""
    return REDUCED[kind](draw, size)


def left_of(shape, axis):
    """Return the lengths of the axes that are not reduced."""
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return [length for at, length in enumerate(shape) if at not in axes]


def options_of(axis, name="dim"):
    """Return what torch is told of an axis: nothing for all."""
    return {} if axis is None else {name: axis}


# Extremes, products, truth ------------------------------------------------------------------------

EXTREMES = {
    "min": lambda torch, x, axis: torch.amin(x, **options_of(axis)),
    "argmin": lambda torch, x, axis: torch.argmin(x, **options_of(axis)),
    "prod": lambda torch, x, axis: torch.prod(x, **options_of(axis)),
}


def extreme(draw):
    """A minimum, its index, or a product."""
    name, kind = draw.choice(list(EXTREMES)), draw.choice([one for one in REDUCED if one != "two"])
    dtype = draw.choice(("float32", *NUMBERS))
    shape, axis = axes_of(draw, kind, draw.size(1000, 4 * 10**7))
    operands, peer = [Operand(dtype, shape, draw.choice((0, 0, 1, 3)))], EXTREMES[name]
    is_wide = name == "argmin" or (name == "prod" and "int" in dtype)

    def expected(x):
        values = getattr(np, name)(wide(x), axis=axis)
        if name != "prod" or dtype not in ROUNDOFF:
            return values, 0.0
        values, allowed = expected_rounded(values, dtype)
        terms = math.prod(shape) / max(1, math.prod(left_of(shape, axis)))
        lost = UNDERFLOW.get(dtype, UNDERFLOW_32)
        return values, allowed + terms * ROUNDOFF[WORK[dtype]] * np.abs(values) + lost

    return Case(
        group=f"reduce {name}",
        text=f"{dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: peer(torch, x, axis),
        expected=expected,
        bytes=moved(operands, left_of(shape, axis), "int64" if is_wide else dtype),
    )


TRUTHS = {
    "any": lambda torch, x, axis: torch.any(x, **options_of(axis)),
    "all": lambda torch, x, axis: torch.all(x, **options_of(axis)),
    "count_nonzero": lambda torch, x, axis: torch.count_nonzero(x, **options_of(axis)),
}


def truth(draw):
    """Whether any or all elements are true, nearly none or nearly all being so, or how many."""
    name, kind = draw.choice(list(TRUTHS)), draw.choice([one for one in REDUCED if one != "two"])
    dtype = draw.choice(("bool", "bool", *NUMBERS))
    shape, axis = axes_of(draw, kind, draw.size(1000, 4 * 10**7))
    peer = TRUTHS[name]
    if dtype == "bool":
        made = Made("mask", draw.choice((0.0, 1e-5, 0.5, 1.0)))
        operands = [Operand("bool", shape, made=made)]
    else:
        operands = [Operand(dtype, shape)]
    return Case(
        group=f"reduce {name}",
        text=f"{dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: peer(torch, x, axis),
        expected=lambda x: (getattr(np, name)(x, axis=axis), 0.0),
        bytes=moved(operands, left_of(shape, axis), "int64" if name == "count_nonzero" else "bool"),
    )


# Spread, and reductions of any axes ---------------------------------------------------------------


def spread(draw):
    """A variance or a standard deviation."""
    name, kind = draw.choice(("var", "std")), draw.choice(list(REDUCED))
    dtype = draw.choice(("float32", *FLOATS))
    shape, axis = axes_of(draw, kind, draw.size(1000, 4 * 10**7))
    operands = [Operand(dtype, shape, draw.choice((0, 0, 1)))]

    def expected(x):
        x = wide(x)
        values = getattr(np, name)(x, axis=axis)
        size = np.sqrt(np.mean(x * x, axis=axis))  # a difference from the mean may err by as much
        error = 16 * ROUNDOFF[WORK[dtype]]
        allowed = error * (size if name == "std" else size * np.sqrt(values) + error * size**2)
        return values, allowed + rounding(values, dtype) + SUM_REST[dtype] * values

    return Case(
        group=f"spread {kind.split()[0]}",
        text=f"{name} {dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: getattr(torch, name)(x, dim=axis, correction=0),
        expected=expected,
        bytes=moved(operands, left_of(shape, axis), dtype),
    )


def several_axes(draw):
    """A sum, mean or maximum over any axes of 3 to 5, in any order of the axes in memory."""
    name, dtype = draw.choice(("sum", "mean", "max")), draw.choice(("float32", *FLOATS, "int32"))
    if dtype == "int32" and name == "mean":
        dtype = "float32"
    ndim = draw.randint(3, 5)
    shape = shape_of(draw, draw.size(1000, 3 * 10**7), ndim)
    axis = tuple(sorted(draw.sample(range(ndim), draw.randint(2, ndim - 1))))
    order = list(range(ndim))
    if draw.random() < 0.5:
        draw.shuffle(order)
    operands = [Operand(dtype, shape, axes=tuple(order))]
    view = operands[0].view_shape()
    is_wide = name == "sum" and dtype == "int32"

    def expected(x):
        x = wide(x)
        values = getattr(np, name)(x, axis=axis)
        if name == "max" or dtype not in FLOATS:
            return values, 0.0
        magnitude = getattr(np, name)(np.abs(x), axis=axis)
        return values, rounding(values, dtype) + SUM_REST[dtype] * magnitude

    peers = {"sum": "sum", "mean": "mean", "max": "amax"}
    return Case(
        group="reduce axes" if order == sorted(order) else "reduce axes permuted",
        text=f"{name} {dtype} {view} {tuple(order)} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: getattr(torch, peers[name])(x, dim=axis),
        expected=expected,
        bytes=moved(operands, left_of(view, axis), "int64" if is_wide else dtype),
    )


# Exponentials and running sums --------------------------------------------------------------------

AXES = {
    "last": lambda draw, size: (draw.split(size, 2, max(3, size // 2)), 1),
    "first": lambda draw, size: (draw.split(size, 2, max(3, size // 2)), 0),
    "middle": lambda draw, size: (shape_of(draw, size, 3), 1),
    "one": lambda draw, size: ((size,), 0),
}


def exponential(draw):
    """softmax, its logarithm, or the logarithm of the sum, along an axis."""
    name = draw.choice(("softmax", "log_softmax", "logsumexp"))
    kind, dtype = draw.choice(list(AXES)), draw.choice(("float32", *FLOATS))
    shape, axis = AXES[kind](draw, draw.size(1000, 2 * 10**7))
    operands = [Operand(dtype, shape)]

    def expected(x):
        x = wide(x)
        most = np.max(x, axis=axis, keepdims=True)
        sums = most + np.log(np.sum(np.exp(x - most), axis=axis, keepdims=True))
        error = 32 * ROUNDOFF[WORK[dtype]]
        if name == "softmax":
            values = np.exp(x - sums)
            allowed = error * (1 + np.abs(x - sums)) * values
        elif name == "log_softmax":
            values, allowed = x - sums, error * (1 + np.abs(x) + np.abs(sums))
        else:
            values = np.squeeze(sums, axis)
            allowed = error * (1 + np.abs(values) + np.abs(np.squeeze(most, axis)))
        return values, allowed + rounding(values, dtype)

    result = left_of(shape, axis) if name == "logsumexp" else shape
    return Case(
        group=f"softmax {kind}" if name != "logsumexp" else "softmax logsumexp",
        text=f"{name} {dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: getattr(torch, name)(x, dim=axis),
        expected=expected,
        bytes=moved(operands, result, dtype),
    )


def running(draw):
    """Running sums or products along an axis, of products those of numbers near 1."""
    name = draw.choice(("cumulative_sum", "cumulative_sum", "cumulative_prod"))
    kind = draw.choice(list(AXES))
    dtype = draw.choice(("float32", "float32", *NUMBERS))
    shape, axis = AXES[kind](draw, draw.size(1000, 3 * 10**7))
    operands = [Operand(dtype, shape, draw.choice((0, 0, 1)))]
    result = dtype if dtype in FLOATS else "int64"
    if dtype == "uint8":
        result = "uint64"

    def expected(x):
        x = wide(x)
        dtypes = {} if dtype in FLOATS else {"dtype": result}
        values = getattr(np, name)(x, axis=axis, **dtypes)
        if dtype not in FLOATS:
            return values, 0.0
        error = ROUNDOFF[WORK[dtype]]
        if name == "cumulative_sum":
            depth = 8 * math.sqrt(shape[axis])
            return values, depth * error * np.cumsum(np.abs(x), axis) + rounding(values, dtype)
        values, allowed = expected_rounded(values, dtype)
        terms = np.arange(1, shape[axis] + 1).reshape(-1, *[1] * (len(shape) - axis - 1))
        lost = UNDERFLOW.get(dtype, UNDERFLOW_32)
        return values, allowed + 2 * terms * error * np.abs(values) + lost

    peers = {"cumulative_sum": "cumsum", "cumulative_prod": "cumprod"}
    return Case(
        group=f"scan {kind}",
        text=f"{name} {dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: getattr(torch, peers[name])(x, dim=axis),
        expected=expected,
        bytes=moved(operands, shape, result),
    )


CLASSES = {extreme: 0.8, truth: 0.8, spread: 1.5, several_axes: 0.5, exponential: 1.5, running: 1}
