"""Functions that are made of several operations, where both libraries have one of the name."""

import math

import numpy as np

from ..case import FLOATS, Case, Operand, expected_rounded, moved, rounding, wide
from .layouts import of_one, shape_of
from .products import expected_product

# By name: how many operands, and how many roundings a result may be off.
ELEMENTWISE = {
    "fmax": (2, 0),
    "fmin": (2, 0),
    "heaviside": (2, 0),
    "deg2rad": (1, 4),
    "rad2deg": (1, 4),
    "nan_to_num": (1, 0),
    "isclose": (2, 0),
}


def elementwise(draw):
    """A function of each element, or of two."""
    name, dtype = draw.choice(list(ELEMENTWISE)), draw.choice(("float32", "float32", "float64"))
    count, times = ELEMENTWISE[name]
    layout, first = of_one(draw, dtype, draw.size(1000, 2 * 10**7))
    shape = first.view_shape()
    operands = [first, Operand(dtype, shape, 5)][:count]
    result = "bool" if name == "isclose" else dtype

    def expected(*arrays):
        values = getattr(np, name)(*map(wide, arrays))
        return (values, 0) if result == "bool" else expected_rounded(values, dtype, times)

    return Case(
        group="composed elementwise",
        text=f"{name} {dtype} {shape} {layout}",
        operands=operands,
        call=lambda vg, *arrays: getattr(vg, name)(*arrays),
        peer=lambda torch, *arrays: getattr(torch, name)(*arrays),
        expected=expected,
        bytes=moved(operands, shape, result),
    )


def comparison(draw):
    """Whether two arrays are equal, or close, to a bool of the host.

    Arrays of the same values are two: of one given twice torch.equal reads nothing.
    """
    name, dtype = draw.choice(("array_equal", "allclose")), draw.choice(("float32", "float64"))
    size = draw.size(100, 2 * 10**7)
    start = draw.choice((0, 7))
    operands = [Operand(dtype, (size,)), Operand(dtype, (size,), start, own=start == 0)]
    peers = {"array_equal": "equal", "allclose": "allclose"}
    return Case(
        group="composed comparison",
        text=f"{name} {dtype} {size} {'other' if start else 'same'}",
        operands=operands,
        call=lambda vg, x, y: getattr(vg, name)(x, y),
        peer=lambda torch, x, y: getattr(torch, peers[name])(x, y),
        expected=lambda x, y: (np.asarray(getattr(np, name)(x, y)), 0),
        bytes=moved(operands, (), "bool"),
    )


def difference(draw):
    """Each element minus the one before, along an axis."""
    dtype, ndim = draw.choice(FLOATS), draw.choice((1, 2, 3))
    shape = shape_of(draw, draw.size(1000, 2 * 10**7), ndim)
    axis = draw.randrange(ndim)
    shape = tuple(max(2, n) if at == axis else n for at, n in enumerate(shape))
    result = [n - 1 if at == axis else n for at, n in enumerate(shape)]
    operands = [Operand(dtype, shape)]
    return Case(
        group="composed diff",
        text=f"{dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: vg.diff(x, axis=axis),
        peer=lambda torch, x: torch.diff(x, dim=axis),
        expected=lambda x: expected_rounded(np.diff(wide(x), axis=axis), dtype),
        bytes=moved(operands, result, dtype),
    )


def without_nan(draw):
    """A sum or a mean of what is not NaN, along an axis or of all."""
    name, dtype = draw.choice(("nansum", "nanmean")), draw.choice(("float32", "float64"))
    shape = shape_of(draw, draw.size(1000, 2 * 10**7), 2)
    axis = draw.choice((0, 1))
    operands = [Operand(dtype, shape)]

    def expected(x):
        values = getattr(np, name)(wide(x), axis=axis)
        rest = 2.0**-46 if dtype == "float64" else 2.0**-20
        return values, rounding(values, dtype) + rest * getattr(np, name)(np.abs(x), axis=axis)

    return Case(
        group="composed nan",
        text=f"{name} {dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: getattr(torch, name)(x, dim=axis),
        expected=expected,
        bytes=moved(operands, [shape[1 - axis]], dtype),
    )


# Products -----------------------------------------------------------------------------------------


def outer(draw):
    """Every product of two vectors' elements."""
    dtype = draw.choice(FLOATS)
    a, b = draw.split(draw.size(1000, 2 * 10**7), 2, 10**5)
    operands = [Operand(dtype, (a,)), Operand(dtype, (b,), a)]
    return Case(
        group="composed outer",
        text=f"{dtype} {a}x{b}",
        operands=operands,
        call=lambda vg, x, y: vg.outer(x, y),
        peer=lambda torch, x, y: torch.outer(x, y),
        expected=lambda x, y: expected_rounded(np.outer(wide(x), wide(y)), dtype),
        bytes=moved(operands, (a, b), dtype),
    )


def dots(draw):
    """Scalar products of vectors, one pair or many."""
    dtype, is_one = draw.choice(("float32", "float32", "float64")), draw.random() < 0.4
    count, length = draw.split(draw.size(1000, 2 * 10**7), 2, 10**5)
    shape = (count * length,) if is_one else (count, length)
    operands = [Operand(dtype, shape), Operand(dtype, shape, 9)]

    def expected(x, y):
        values, allowed = expected_product(x[..., None, :], y[..., :, None], dtype)
        return values[..., 0, 0], allowed[..., 0, 0]

    return Case(
        group="composed dot" if is_one else "composed dots",
        text=f"{dtype} {shape}",
        operands=operands,
        call=lambda vg, x, y: vg.vecdot(x, y),
        peer=lambda torch, x, y: torch.linalg.vecdot(x, y),
        expected=expected,
        bytes=moved(operands, shape[:-1], dtype),
    )


# Subscripts of products of tensors, with the letters' sizes as large as is usual.
SUBSCRIPTS = ("bij,bjk->bik", "ij,kj->ik", "bihd,bjhd->bhij", "ijk,kl->ijl", "bi,bi->b")


def einsum(draw):
    """A product of two arrays by subscripts."""
    subscripts, dtype = draw.choice(SUBSCRIPTS), draw.choice(("float32", "float32", "float64"))
    terms, result = subscripts.split("->")
    terms = terms.split(",")
    size = {letter: draw.size(4, 120) for letter in sorted(set("".join(terms)))}
    operands = [Operand(dtype, tuple(size[one] for one in term), 11) for term in terms]
    shape = tuple(size[one] for one in result)
    summed = math.prod(n for letter, n in size.items() if letter not in result)

    def expected(x, y):
        x, y = wide(x), wide(y)
        values = np.einsum(subscripts, x, y, optimize=True)
        squares = np.einsum(subscripts, x * x, y * y, optimize=True)
        error = 64 * math.sqrt(summed) * (2.0**-53 if dtype == "float64" else 2.0**-24)
        return values, error * np.sqrt(squares) + rounding(values, dtype)

    return Case(
        group="composed einsum",
        text=f"{subscripts} {dtype} {size}",
        operands=operands,
        call=lambda vg, x, y: vg.einsum(subscripts, x, y),
        peer=lambda torch, x, y: torch.einsum(subscripts, x, y),
        expected=expected,
        bytes=moved(operands, shape, dtype),
        operations=2 * math.prod(size.values()),
        rate=dtype,
    )


CLASSES = {
    elementwise: 0.5,
    comparison: 0.3,
    difference: 0.3,
    without_nan: 0.3,
    outer: 0.3,
    dots: 0.5,
    einsum: 0.3,
}
