"""Functions of two arrays, or of one and a number: arithmetic, bits, comparisons, choices."""

import operator

import numpy as np

from ..case import DTYPES, FLOATS, NUMBERS, Case, Operand, expected_rounded, moved, wide
from .elementwise import LAYOUTS
from .layouts import of_one

INTEGERS = tuple(dtype for dtype in DTYPES if "int" in dtype)
# By kind: the dtypes, how many roundings results may be off, and what both libraries are given:
# operators, or the names of functions.
ARITHMETIC = {
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}
REMAINDERS = {"remainder": operator.mod, "floor_divide": operator.floordiv}
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
BITS = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
SHIFTS = {"left shift": operator.lshift, "right shift": operator.rshift}
KINDS = {
    "arithmetic": (NUMBERS, 2, ARITHMETIC),
    "remainders": (NUMBERS, 4, REMAINDERS),
    "power": (NUMBERS, 16, {"pow": operator.pow}),
    "bits": ((*INTEGERS, "bool"), 0, BITS),
    "shifts": (INTEGERS, 0, SHIFTS),
    "compare": (DTYPES, 0, COMPARISONS),
}


def with_operator(draw):
    """Two arrays, or an array and a number on either side of it, with any operator but +."""
    kind = draw.choice(list(KINDS))
    dtypes, times, operators = KINDS[kind]
    name, dtype = draw.choice(list(operators)), draw.choice(dtypes)
    function = operators[name]
    side = draw.choice(("arrays", "arrays", "number right", "number left"))
    number = 3 if dtype not in FLOATS else draw.choice((3, 2.5))
    if dtype == "bool":
        number = True
    layout, operands = operands_of(draw, dtype, side == "arrays")
    shape = np.broadcast_shapes(*(operand.view_shape() for operand in operands))
    calls = {
        "arrays": lambda m, x, y: function(x, y),
        "number right": lambda m, x: function(x, number),
        "number left": lambda m, x: function(number, x),
    }
    call = calls[side]
    result = "bool" if kind == "compare" else dtype
    if name == "divide" and dtype not in FLOATS:
        result = "float32"

    def expected(*arrays):
        values = call(np, *map(wide, arrays))
        return expected_rounded(values, result, times) if result in FLOATS else (values, 0.0)

    return Case(
        group=f"binary {kind}" if side == "arrays" else f"binary {kind} number",
        text=f"{name} {dtype} {shape} {layout} {side}",
        operands=operands,
        call=call,
        peer=call,
        expected=expected,
        bytes=moved(operands, shape, result),
    )


def operands_of(draw, dtype, are_two):
    """Return the name of a layout, and one operand in it, or two that broadcast."""
    size = draw.size(100, 3 * 10**7)
    if not are_two:
        layout, operand = of_one(draw, dtype, size)
        return layout, [operand]
    layout = draw.choice(["same", "same", *(name for name in LAYOUTS if name != "scalar")])
    return layout, LAYOUTS[layout](draw, dtype, *draw.split(size, 10, max(11, size // 10)))


# By name: the dtypes, how many roundings a result may be off, and beside what: itself ("result"),
# or the operands, where large ones cancel.
NAMED = {
    "maximum": (DTYPES[:-1], 0),
    "minimum": (DTYPES[:-1], 0),
    "atan2": (FLOATS, 16),
    "hypot": (FLOATS, 16),
    "copysign": (FLOATS, 0),
    "logaddexp": (FLOATS, 16),
}


def with_name(draw):
    """A function of two arrays that has no operator."""
    name = draw.choice(list(NAMED))
    dtypes, times = NAMED[name]
    dtype = draw.choice(("float32", *dtypes))
    layout, operands = operands_of(draw, dtype, True)
    shape = np.broadcast_shapes(*(operand.view_shape() for operand in operands))

    def expected(x, y):
        x, y = wide(x), wide(y)
        values, allowed = expected_rounded(getattr(np, name)(x, y), dtype, times)
        if name == "logaddexp":  # its two terms cancel near 0
            allowed = expected_rounded(np.abs(x) + np.abs(y) + 1, dtype, times)[1]
        return values, allowed

    return Case(
        group="binary extremes" if "imum" in name else "binary functions",
        text=f"{name} {dtype} {shape} {layout}",
        operands=operands,
        call=lambda vg, x, y: getattr(vg, name)(x, y),
        peer=lambda torch, x, y: getattr(torch, name)(x, y),
        expected=expected,
        bytes=moved(operands, shape, dtype),
    )


def logical(draw):
    """Logic of bools and of numbers, which are true unless 0."""
    name = draw.choice(("logical_and", "logical_or", "logical_xor", "logical_not"))
    dtype = draw.choice(("bool",) * 8 + NUMBERS)
    layout, operands = operands_of(draw, dtype, name != "logical_not")
    shape = np.broadcast_shapes(*(operand.view_shape() for operand in operands))
    return Case(
        group="logical bool" if dtype == "bool" else "logical numbers",
        text=f"{name} {dtype} {shape} {layout}",
        operands=operands,
        call=lambda vg, *arrays: getattr(vg, name)(*arrays),
        peer=lambda torch, *arrays: getattr(torch, name)(*arrays),
        expected=lambda *arrays: (getattr(np, name)(*arrays), 0.0),
        bytes=moved(operands, shape, "bool"),
    )


def into(draw):
    """A sum or a product that is written to an array, to an operand too."""
    dtype, name = draw.choice(("float32", *NUMBERS)), draw.choice(("add", "multiply"))
    layout, operands = operands_of(draw, dtype, True)
    shape = np.broadcast_shapes(*(operand.view_shape() for operand in operands))
    written = Operand(dtype, shape, own=True)
    return Case(
        group="binary into",
        text=f"{name} {dtype} {shape} {layout}",
        operands=[*operands, written],
        call=lambda vg, x, y, out: getattr(vg, name)(x, y, out=out),
        peer=lambda torch, x, y, out: getattr(torch, name)(x, y, out=out),
        expected=lambda x, y, out: expected_rounded(getattr(np, name)(wide(x), wide(y)), dtype),
        bytes=moved(operands, shape, dtype),
    )


# Which of the condition and the two choices are as large as the result, rows or columns of it.
CHOICES = {
    "condition is a row": lambda a, b: ((b,), (a, b), (a, b)),
    "condition is a column": lambda a, b: ((a, 1), (a, b), (a, b)),
    "rows to choose from": lambda a, b: ((a, b), (b,), (a, b)),
    "columns to choose from": lambda a, b: ((a, b), (a, 1), (1, b)),
    "a number": lambda a, b: ((a, b), (a, b)),
}


def choice(draw):
    """Elements of one array or another, or of a number, one of the three broadcast."""
    dtype, kind = draw.choice(("float32", *DTYPES)), draw.choice(list(CHOICES))
    a, b = draw.split(draw.size(1000, 3 * 10**7), 2, 10**4)
    condition, *shapes = CHOICES[kind](a, b)
    operands = [Operand("bool", condition)]
    operands += [Operand(dtype, shape, at) for at, shape in enumerate(shapes)]
    numbers = [] if len(shapes) == 2 else [True if dtype == "bool" else 3]
    call = lambda m, condition, *arrays: m.where(condition, *arrays, *numbers)  # noqa: E731
    return Case(
        group="where number" if numbers else "where broadcast",
        text=f"{kind} {dtype} {(a, b)}",
        operands=operands,
        call=call,
        peer=call,
        expected=lambda condition, *arrays: (np.where(condition, *arrays, *numbers), 0.0),
        bytes=moved(operands, (a, b), dtype),
    )


CLASSES = {with_operator: 3.5, with_name: 0.8, logical: 0.7, into: 0.4, choice: 0.9}
