"""Elementwise functions: additions in all layouts that views give arrays, and functions of one."""

import math

import numpy as np

from ..case import FLOATS, NUMBERS, Case, Operand, expected_rounded, moved, rounding, wide


def offset(draw, dtype, a, b):
    """Two arrays, each of which may begin anywhere: loads of several elements are not aligned."""
    first, second = draw.randint(1, 15), draw.randint(1, 15)
    return [Operand(dtype, (a, b), first + a * b), Operand(dtype, (a, b), second)]


def transposed(draw, dtype, a, b):
    side = max(2, math.isqrt(a * b))
    return [
        Operand(dtype, (side, side)),
        Operand(dtype, (side, side), side * side, axes=(1, 0)),
    ]


def middle(draw, dtype, a, b):
    """One array is repeated along a middle axis of the other."""
    axis = draw.randint(2, 50)
    last = max(1, b // axis)
    return [Operand(dtype, (a, axis, last)), Operand(dtype, (a, 1, last))]


def reversed_rows(draw, dtype, a, b):
    backwards = (slice(None, None, -1),)
    return [Operand(dtype, (a, b), key=backwards), Operand(dtype, (a, b), a * b)]


EVERY_OTHER, INNER = (slice(None, None, 2),) * 2, (slice(1, -1),) * 2
# The operands of an addition, of about a x b elements.
LAYOUTS = {
    "same": lambda draw, t, a, b: [Operand(t, (a, b)), Operand(t, (a, b), a * b)],
    "row": lambda draw, t, a, b: [Operand(t, (a, b)), Operand(t, (b,))],
    "column": lambda draw, t, a, b: [Operand(t, (a, b)), Operand(t, (a, 1))],
    "scalar": lambda draw, t, a, b: [Operand(t, (a, b))],
    "transposed": transposed,
    "step 2": lambda draw, t, a, b: [Operand(t, (2 * a, 2 * b), key=EVERY_OTHER)] * 2,
    "middle": middle,
    "offset": offset,
    "reversed": reversed_rows,
    "inner slice": lambda draw, t, a, b: [Operand(t, (a + 2, b + 2), key=INNER)] * 2,
    "outer sum": lambda draw, t, a, b: [Operand(t, (a, 1)), Operand(t, (b,))],
}


def elementwise(draw):
    """An addition of arrays in all the layouts that views give them."""
    dtype, kind = draw.choice(("float32", "float32", *NUMBERS)), draw.choice(list(LAYOUTS))
    size = draw.size(100, 4 * 10**7)
    operands = LAYOUTS[kind](draw, dtype, *draw.split(size, 10, max(11, size // 10)))
    shape = np.broadcast_shapes(*(operand.view_shape() for operand in operands))
    add = (lambda m, x: x + 3) if kind == "scalar" else (lambda m, x, y: x + y)
    return Case(
        group=f"elementwise {kind}",
        text=f"{dtype} {shape}",
        operands=operands,
        call=add,
        peer=add,
        expected=lambda *hosts: expected_rounded(add(np, *map(wide, hosts)), dtype),
        bytes=moved(operands, shape, dtype),
    )


# Of a float64 array, and how many roundings a result may be off, those of NumPy among them.
UNARY = {
    "exp": (np.exp, 12),
    "log": (np.log, 12),
    "sqrt": (np.sqrt, 1),
    "tanh": (np.tanh, 12),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 20),
    "abs": (np.abs, 0),
    "negative": (np.negative, 0),
    "relu": (lambda x: np.maximum(x, 0), 0),
}


def unary(draw):
    """A function of one array, now and then not aligned."""
    dtype, name = draw.choice(("float32", *FLOATS)), draw.choice(list(UNARY))
    operands = [Operand(dtype, (draw.size(100, 6 * 10**7),), draw.choice((0, 0, 1)))]
    function, times = UNARY[name]

    def expected(x):
        values = function(wide(x))
        return values, times * rounding(values, dtype)

    return Case(
        group=f"unary {name} {dtype}",
        text=f"{operands[0].shape[0]}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x),
        peer=lambda torch, x: getattr(torch, name)(x),
        expected=expected,
        bytes=moved(operands, operands[0].shape, dtype),
    )


CLASSES = {elementwise: 4, unary: 1}
