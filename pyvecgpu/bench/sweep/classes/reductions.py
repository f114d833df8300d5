"""Reductions over all elements, rows, columns and what lies between."""

import numpy as np

from ...timing import BFLOAT16
from ..case import NUMBERS, ROUNDOFF, Case, Operand, moved, rounding, wide

# What a sum may err by beyond its rounding, times the sum of the magnitudes.
SUM_REST = {"float16": 2.0**-20, BFLOAT16: 2.0**-20, "float32": 2.0**-36, "float64": 2.0**-46}
SUM_REST_CPU = SUM_REST | {"float32": 2.0**-19}  # NumPy's, in float32


def shape_all(draw, size):
    return (size,), None


def shape_last(draw, size):
    return draw.split(size, 30, max(31, size // 30)), 1


def shape_first(draw, size):
    return draw.split(size, 30, max(31, size // 30)), 0


def shape_last_short(draw, size):
    short = draw.randint(2, 40)
    return (max(1, size // short), short), 1


def shape_first_short(draw, size):
    short = draw.randint(2, 40)
    return (short, max(1, size // short)), 0


def shape_middle(draw, size):
    first, last = draw.size(2, 300), draw.size(2, 300)
    return (first, max(1, size // (first * last)), last), 1


def shape_two(draw, size):
    return shape_middle(draw, size)[0], (0, 2)


REDUCED = {
    "all": shape_all,
    "last": shape_last,
    "first": shape_first,
    "middle": shape_middle,
    "last short": shape_last_short,
    "first short": shape_first_short,
    "two": shape_two,
}
PEER_REDUCTIONS = {
    "sum": lambda torch, x, axis: x.sum() if axis is None else x.sum(dim=axis),
    "mean": lambda torch, x, axis: x.mean() if axis is None else x.mean(dim=axis),
    "max": lambda torch, x, axis: x.max() if axis is None else x.amax(dim=axis),
    "argmax": lambda torch, x, axis: x.argmax() if axis is None else x.argmax(dim=axis),
}


def reduction(draw):
    """A sum, mean or maximum over some axes, now and then of elements that are not aligned."""
    dtype = draw.choice(("float32", "float32", *NUMBERS))
    name = draw.choice(("sum", "sum", "max", "argmax", "mean"))
    if name == "mean" and "int" in dtype:
        name = "sum"
    kind = draw.choice(list(REDUCED))
    shape, axis = REDUCED[kind](draw, draw.size(1000, 6 * 10**7))
    if name == "argmax" and kind == "two":
        axis = 2
    operands = [Operand(dtype, shape, draw.choice((0, 0, 1, 3)))]
    peer = PEER_REDUCTIONS[name]
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    left = [length for at, length in enumerate(shape) if at not in axes]
    is_wide = name == "argmax" or (name == "sum" and "int" in dtype)
    return Case(
        group=f"reduce {name} {kind}",
        text=f"{dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: peer(torch, x, axis),
        expected=lambda x: expected_reduction(name, x, axis, dtype),
        bytes=moved(operands, left, "int64" if is_wide else dtype),
    )


def expected_reduction(name, x, axis, dtype):
    """Return what NumPy reduces to in float64 or exactly, and what it may err by."""
    values = getattr(np, name)(wide(x), axis=axis)
    if name in ("max", "argmax") or dtype not in ROUNDOFF:
        return values, 0.0
    magnitude = getattr(np, name)(np.abs(wide(x)), axis=axis)
    rests = {"card": SUM_REST[dtype], "cpu": SUM_REST_CPU[dtype]}
    once = rounding(values, dtype)
    return values, {device: once + rest * magnitude for device, rest in rests.items()}


CLASSES = {reduction: 6}
