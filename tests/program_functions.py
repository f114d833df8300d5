"""Lines of random programs by a table: functions that NumPy has by the same name, and whose results
are exact integers where their operands are.

A text has {a} for a value, {b} for another one, {axis} and {other} for two axes of the first, {k}
for an integer from -2 to 2 and {n} for one from 1 to 3.
"""

import re
from typing import NamedTuple

NUMBERS, ALL, INTEGERS, FLOATS = "iufV", "biufV", "iu", "fV"


def broadcasts(a, b):
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


def signed(a, b):
    """False for pairs in which NumPy turns negative numbers into huge ones, or leaves 64 bits."""
    return (
        "u" not in (a.dtype.kind, b.dtype.kind)
        or a.dtype.kind == b.dtype.kind
        or "b" in (a.dtype.kind, b.dtype.kind)
    )


def beside(kinds):
    """A second operand: it broadcasts with the first one."""
    return lambda a, b: b.dtype.kind in kinds and broadcasts(a.shape, b.shape) and signed(a, b)


def alike(a, b):
    return a.shape == b.shape and signed(a, b)


def same_kind(a, b):
    """For bits: integers of one kind, or bools."""
    return a.dtype.kind == b.dtype.kind and broadcasts(a.shape, b.shape)


def is_mask(a, b):
    return 0 < b.ndim <= a.ndim and b.shape == a.shape[: b.ndim]


def multiplies(a, b):
    return b.ndim > 0 and a.shape[-1] == b.shape[0] and signed(a, b)


def one_row(a, b):
    return b.ndim == 1 and signed(a, b)


def is_wide(a):
    """Whether products and their sums are exact at every step, which halves are not."""
    return a.dtype.kind == "i" or a.dtype.itemsize > 2


def is_wide_row(a):
    return a.ndim == 1 and a.size > 0 and is_wide(a)


def has_three(a):
    return a.ndim > 0 and a.shape[-1] == 3 and is_wide(a)


class Line(NamedTuple):
    """kinds, of: which values fit; other: which one beside it does, if there is a {b}."""

    text: str
    kinds: str = ALL
    of: object = lambda a: True
    other: object = None


def has_axes(a):
    return a.ndim > 0


def has_elements(a):
    return a.ndim > 0 and a.size > 0


def is_row(a):
    return a.ndim == 1 and a.size > 0


def is_matrix(a):
    return a.ndim == 2


def has_rows(a):
    return a.ndim > 1


def is_small(a):
    return 0 < a.size < 60


LINES = (
    *(Line(f"{name}({{a}})", NUMBERS) for name in ("sign", "square", "positive")),
    *(Line(f"{name}({{a}})", FLOATS) for name in ("floor", "ceil", "trunc", "round", "fix")),
    *(Line(f"{name}({{a}})", FLOATS) for name in ("isnan", "isinf", "isfinite")),
    Line("logical_not({a})"),
    Line("bitwise_invert({a})", INTEGERS),
    Line("power({a}, 2)", INTEGERS),
    Line("heaviside({a}, 1)", FLOATS),
    *(Line(f"bitwise_{way}_shift({{a}}, {{n}})", INTEGERS) for way in ("left", "right")),
    *(
        Line(f"bitwise_{name}({{a}}, {{b}})", "biu", other=same_kind)
        for name in ("and", "or", "xor")
    ),
    *(Line(f"logical_{name}({{a}}, {{b}})", other=beside(ALL)) for name in ("and", "or", "xor")),
    *(
        Line(f"{name}({{a}}, maximum({{b}}, 1))", NUMBERS, other=beside(NUMBERS))
        for name in ("floor_divide", "remainder")
    ),
    *(
        Line(f"{name}({{a}}, axis={{axis}})", of=has_elements)
        for name in ("any", "all", "count_nonzero", "argmin")
    ),
    *(Line(f"{name}({{a}})", of=has_elements) for name in ("any", "all", "count_nonzero")),
    *(
        Line(f"{name}({{a}}, axis={{axis}})", FLOATS, of=has_elements)
        for name in ("nansum", "nanmax", "nanmin", "nanargmax")
    ),
    Line("ptp({a}, axis={axis})", NUMBERS, of=has_elements),
    Line("prod(sign({a}), axis={axis})", NUMBERS, of=has_elements),
    Line("cumulative_prod(sign({a}), axis={axis})", NUMBERS, of=has_elements),
    Line("diff({a}, axis={axis})", "ifV", of=has_elements),
    Line("ediff1d({a})", "ifV", of=is_row),
    Line("expand_dims({a}, axis={axis})", of=has_axes),
    Line("squeeze(expand_dims({a}, axis=0), axis=0)"),
    Line("moveaxis({a}, {axis}, {other})", of=has_axes),
    Line("swapaxes({a}, {axis}, {other})", of=has_axes),
    Line("ravel({a})"),
    Line("atleast_2d({a})"),
    Line("tile({a}, ({n}, 2))", of=is_small),
    Line("repeat({a}, {n}, axis={axis})", of=has_elements),
    Line("pad({a}, {n})", of=is_small),
    Line("delete({a}, 0, axis={axis})", of=has_elements),
    Line("insert({a}, 0, 3, axis={axis})", NUMBERS, of=has_elements),
    Line("append({a}, {b}, axis={axis})", of=has_axes, other=alike),
    *(Line(f"{name}(({{a}}, {{b}}))", of=has_axes, other=alike) for name in ("vstack", "hstack")),
    *(Line(f"{name}({{a}})", of=has_rows) for name in ("flipud", "fliplr", "rot90")),
    Line("triu({a}, k={k})", of=has_rows),
    Line("diagonal({a}, {k})", of=is_matrix),
    Line("trace({a}, {k})", NUMBERS, of=is_matrix),
    Line("take_along_axis({a}, argsort({a}, axis={axis}), axis={axis})", of=has_elements),
    Line("outer({a}, {b})", NUMBERS, of=is_row, other=one_row),
    Line("kron({a}, {b})", NUMBERS, of=is_small, other=lambda a, b: is_small(b) and alike(a, b)),
    Line("vecdot({a}, {b})", NUMBERS, of=has_elements, other=alike),
    Line("tensordot({a}, {b}, axes=1)", NUMBERS, of=has_elements, other=multiplies),
    Line("dot({a}, {b})", NUMBERS, of=is_row, other=alike),
    Line("cross({a}, {b})", "if", of=has_three, other=lambda a, b: alike(a, b) and is_wide(b)),
    Line(
        "convolve({a}, {b})",
        "if",
        of=is_wide_row,
        other=lambda a, b: one_row(a, b) and b.size > 0 and is_wide(b),
    ),
    Line("isin({a}, {b})", NUMBERS, other=signed),
    Line("searchsorted(sort({a}), {b})", NUMBERS, of=is_row, other=one_row),
    Line("digitize({a}, sort({b}))", NUMBERS, of=is_row, other=one_row),
    Line("unique({a})"),
    Line("flatnonzero({a})"),
    Line("argwhere({a})", of=has_axes),
    Line("bincount({a})", "u", of=is_row),
    Line("{a}[astype({b}, bool)]", of=has_axes, other=is_mask),
    Line("{a}[argsort({a})]", of=is_row),
    Line("{a}[[0, -1]]", of=has_elements),
    Line("{a}[..., [0]]", of=has_elements),
    Line("{a}[[-1], None, ...]", of=has_elements),
    Line("{a}[[[0], [-1]], [0, 0]]", of=lambda a: a.ndim > 1 and a.size > 0),
)
NAMES = tuple(sorted({name for one in LINES for name in re.findall(r"\b([a-z_]\w*)\(", one.text)}))


def line(rng, pick, operand, values):
    """The text of a line for values that there are, or None."""
    one = pick(LINES)
    a = operand(lambda x: x.dtype.kind in one.kinds and one.of(x))
    if a is None:
        return None
    value = values[a]
    b = operand(lambda x: x.dtype.kind in one.kinds and one.other(value, x)) if one.other else ""
    if b is None:
        return None
    axes = [int(i) for i in rng.integers(-value.ndim, value.ndim, 2)] if value.ndim else (0, 0)
    k, n = int(rng.integers(-2, 3)), int(rng.integers(1, 4))
    return one.text.format(a=a, b=b, axis=axes[0], other=axes[1], k=k, n=n)
