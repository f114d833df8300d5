"""Functions of one array: those of operations.py, of floats, integers and bools, and casts."""

import numpy as np

from ....operations import ROWS
from ..case import DTYPES, FLOATS, NUMBERS, Case, Operand, expected_rounded, moved, wide
from .copies import expected_cast
from .layouts import of_one

# The kinds that differ in speed, and how many roundings their results may be off, NumPy's among
# them. `positive` is none of them: torch's gives back its operand.
KINDS = {
    "arithmetic": (0, ("negative", "abs", "sign")),
    "roots": (4, ("sqrt", "square", "reciprocal")),
    "rounding": (0, ("floor", "ceil", "trunc", "round")),
    "exponentials": (12, ("exp", "expm1", "exp2", "log", "log1p", "log2", "log10")),
    "trigonometric": (16, ("sin", "cos", "tan", "asin", "acos", "atan")),
    "hyperbolic": (16, ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")),
    "activations": (32, ("sigmoid", "relu", "gelu", "silu")),
    "predicates": (0, ("isnan", "isinf", "isfinite", "signbit")),
}
IN_NN = ("gelu", "silu")  # the functions that both libraries have in nn.functional
CPU = {row.name: row.cpu for row in ROWS if row.family == "unary"}
PEER_NAMES = {"bitwise_invert": "bitwise_not"}
OF_INTEGERS = ("negative", "abs", "sign", "square", "bitwise_invert")


def function(draw):
    """Any function of one array of floats, in any layout."""
    dtype, kind = draw.choice(("float32", *FLOATS)), draw.choice(list(KINDS))
    times, names = KINDS[kind]
    return of_a_function(draw, f"unary {kind}", draw.choice(names), dtype, times)


def integers(draw):
    """A function of one array of integers, or of bools."""
    name = draw.choice(OF_INTEGERS)
    dtypes = [dtype for dtype in DTYPES if "int" in dtype]
    if name == "bitwise_invert":
        dtypes.append("bool")
    return of_a_function(draw, "unary integers", name, draw.choice(dtypes), 0)


def of_a_function(draw, group, name, dtype, times):
    layout, operand = of_one(draw, dtype, draw.size(100, 4 * 10**7))
    shape, peer_name = operand.view_shape(), PEER_NAMES.get(name, name)
    result = "bool" if name in KINDS["predicates"][1] else dtype

    def expected(x):
        values = CPU[name](wide(x))
        return (values, 0.0) if result == "bool" else expected_rounded(values, result, times)

    return Case(
        group=group,
        text=f"{name} {dtype} {shape} {layout}",
        operands=[operand],
        call=lambda vg, x: getattr(vg.nn.functional if name in IN_NN else vg, name)(x),
        peer=lambda torch, x: getattr(torch.nn.functional if name in IN_NN else torch, peer_name)(
            x
        ),
        expected=expected,
        bytes=moved([operand], shape, result),
    )


def cast_layouts(draw):
    """A copy in another dtype of an array in any layout."""
    old, new = draw.sample(DTYPES, 2)
    layout, operand = of_one(draw, old, draw.size(1000, 3 * 10**7))
    return Case(
        group="cast layouts",
        text=f"{old} to {new} {operand.view_shape()} {layout}",
        operands=[operand],
        call=lambda vg, x: vg.astype(x, new),
        peer=lambda torch, x: x.to(getattr(torch, new)),
        expected=lambda x: expected_cast(x, new),
        bytes=moved([operand], operand.view_shape(), new),
    )


def clip(draw):
    """The elements of an array between bounds: scalars, or arrays as wide as a row."""
    dtype = draw.choice(("float32", *NUMBERS))
    layout, operand = of_one(draw, dtype, draw.size(100, 3 * 10**7))
    shape = operand.view_shape()
    low, high = (-0.5, 0.75) if dtype in FLOATS else (3, 70)
    operands, kind = [operand], draw.choice(("scalars", "one bound", "arrays"))
    if kind == "arrays":
        operands += [Operand(dtype, shape[-1:], start) for start in (0, 1)]
    bounds = {"scalars": (low, high), "one bound": (low, None), "arrays": ()}[kind]

    def expected(x, *arrays):
        values = [x] + [np.asarray(one, x.dtype) for one in bounds if one is not None]
        low, *rest = (*values[1:], *arrays)
        result = np.maximum(x, low)
        return (np.minimum(result, rest[0]) if rest else result), 0.0

    return Case(
        group="clip arrays" if kind == "arrays" else "clip numbers",
        text=f"{dtype} {shape} {layout}",
        operands=operands,
        call=lambda vg, x, *arrays: vg.clip(x, *bounds, *arrays),
        peer=lambda torch, x, *arrays: torch.clamp(x, *bounds, *arrays),
        expected=expected,
        bytes=moved(operands, shape, dtype),
    )


CLASSES = {function: 2.2, integers: 0.5, cast_layouts: 0.6, clip: 0.5}
