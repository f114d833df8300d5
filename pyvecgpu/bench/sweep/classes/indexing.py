"""Indexing with integers, masks and slices: reading and writing."""

import math

import numpy as np

from ...timing import itemsize
from ..case import FLOATS, NUMBERS, Case, Made, Operand
from .layouts import shape_of

DENSITIES = (0.01, 0.1, 0.5, 0.9)


def index(draw, shape, bound, distinct=False):
    """Return an operand of integers below `bound`; distinct: there are at most as many."""
    made = Made("distinct" if distinct else "index", bound)
    return Operand("int64", tuple(shape), made=made)


def gathered(count, dtype, indices):
    """Return the bytes of reading so many elements by so many indices, and writing them."""
    return 2 * count * itemsize(dtype) + 8 * indices


def setitem(m, x, key, value):
    """Write to x, and return it, as a call of either library."""
    x[key] = value
    return x


# Reading ------------------------------------------------------------------------------------------


def rows(draw):
    """Rows or other parts of an array by their numbers: take, and x[i]."""
    dtype, ndim = draw.choice(("float32", *NUMBERS)), draw.choice((1, 2, 2, 3))
    shape = shape_of(draw, draw.size(1000, 2 * 10**7), ndim)
    axis = draw.choice((0, 0, *range(ndim)))
    part = math.prod(shape) // shape[axis]
    count = max(1, draw.size(100, 10**7) // part)
    operands = [Operand(dtype, shape), index(draw, (count,), shape[axis])]
    by_key = axis == 0 and draw.random() < 0.5
    call = lambda vg, x, i: vg.take(x, i, axis=axis)  # noqa: E731
    peer = lambda torch, x, i: torch.index_select(x, axis, i)  # noqa: E731
    if by_key:
        call = peer = lambda m, x, i: x[i]
    kind = "elements" if ndim == 1 else "inner axis" if axis else "rows"
    return Case(
        group=f"index read {kind}",
        text=f"{dtype} {shape} axis {axis}, {count}{' by key' if by_key else ''}",
        operands=operands,
        call=call,
        peer=peer,
        expected=lambda x, i: (np.take(x, i, axis=axis), 0),
        bytes=gathered(count * part, dtype, count),
    )


def points(draw):
    """Elements by two integers each, x[i, j], rows of them x[i, j] of three axes too."""
    dtype, ndim = draw.choice(("float32", *NUMBERS)), draw.choice((2, 2, 3))
    shape = shape_of(draw, draw.size(1000, 2 * 10**7), ndim)
    part = math.prod(shape[2:])
    count = max(1, draw.size(100, 10**7) // part)
    operands = [Operand(dtype, shape)]
    operands += [index(draw, (count,), shape[axis]) for axis in range(2)]
    operands[2].start = 1  # other numbers than the first ones
    call = lambda m, x, i, j: x[i, j]  # noqa: E731
    return Case(
        group="index read points",
        text=f"{dtype} {shape}, {count}",
        operands=operands,
        call=call,
        peer=call,
        expected=lambda x, i, j: (x[i, j], 0),
        bytes=gathered(count * part, dtype, 2 * count),
    )


def masked(draw):
    """Elements or rows where a mask is true, x[mask]; the call waits for their number."""
    dtype, by_row = draw.choice(("float32", *NUMBERS)), draw.random() < 0.3
    shape = shape_of(draw, draw.size(1000, 3 * 10**7), 2 if by_row else draw.choice((1, 1, 2)))
    density = draw.choice(DENSITIES)
    mask = Operand("bool", shape[:1] if by_row else shape, made=Made("mask", density))
    call = lambda m, x, mask: x[mask]  # noqa: E731
    return Case(
        group="index mask rows" if by_row else "index mask",
        text=f"{dtype} {shape} density {density}",
        operands=[Operand(dtype, shape), mask],
        call=call,
        peer=call,
        expected=lambda x, mask: (x[mask], 0),
        bytes=math.ceil(2 * density * math.prod(shape)) * itemsize(dtype) + mask.nbytes(),
    )


def nonzero(draw):
    """Where elements are true: the indices along each axis."""
    shape = shape_of(draw, draw.size(1000, 2 * 10**7), draw.choice((1, 1, 2)))
    density = draw.choice(DENSITIES)
    mask = Operand("bool", shape, made=Made("mask", density))

    def expected(x):
        indices = np.nonzero(x)
        return indices, (0,) * len(indices)

    return Case(
        group="index nonzero",
        text=f"{shape} density {density}",
        operands=[mask],
        call=lambda vg, x: vg.nonzero(x),
        peer=lambda torch, x: torch.nonzero(x, as_tuple=True),
        expected=expected,
        bytes=mask.nbytes() + math.ceil(8 * len(shape) * density * math.prod(shape)),
    )


def along(draw):
    """For each row, or column, elements of it by their numbers: take_along_axis."""
    dtype, axis = draw.choice(("float32", *NUMBERS)), draw.choice((0, 1))
    shape = shape_of(draw, draw.size(1000, 10**7), 2)
    picked = list(shape)
    picked[axis] = draw.choice((1, shape[axis], max(1, shape[axis] // 3)))
    operands = [Operand(dtype, shape), index(draw, picked, shape[axis])]
    return Case(
        group="index along",
        text=f"{dtype} {shape} axis {axis}, {picked[axis]}",
        operands=operands,
        call=lambda vg, x, i: vg.take_along_axis(x, i, axis=axis),
        peer=lambda torch, x, i: torch.take_along_dim(x, i, dim=axis),
        expected=lambda x, i: (np.take_along_axis(x, i, axis=axis), 0),
        bytes=gathered(math.prod(picked), dtype, math.prod(picked)),
    )


def every(draw):
    """A copy of every so many elements of rows, or of columns."""
    dtype = draw.choice(("float32", *NUMBERS))
    shape = shape_of(draw, draw.size(1000, 3 * 10**7), 2)
    steps = [draw.choice((1, 2, 3, 5)), draw.choice((2, 3, 4, 7))]
    draw.shuffle(steps)
    key = tuple(
        slice(draw.randint(0, 1) if length > 1 else 0, None, step)
        for length, step in zip(shape, steps, strict=True)
    )
    operand = Operand(dtype, shape, key=key)
    return Case(
        group="index every",
        text=f"{dtype} {shape} steps {steps}",
        operands=[operand],
        call=lambda vg, x: x.copy(),
        peer=lambda torch, x: x.clone(memory_format=torch.contiguous_format),
        expected=lambda x: (x, 0),
        bytes=2 * operand.nbytes(),
    )


# Writing ------------------------------------------------------------------------------------------


def write_rows(draw):
    """Values to rows or elements by their numbers: x[i] = v, of a number too, and put."""
    dtype, ndim = draw.choice(("float32", *NUMBERS)), draw.choice((1, 1, 2))
    shape = shape_of(draw, draw.size(1000, 10**7), ndim)
    count = max(1, int(shape[0] * draw.choice((0.01, 0.3, 1.0))))
    part = math.prod(shape[1:])
    operands = [Operand(dtype, shape, own=True), index(draw, (count,), shape[0], distinct=True)]
    kind = draw.choice(("array", "number", "put") if ndim == 1 else ("array", "number"))
    if kind == "number":
        call = peer = lambda m, x, i: setitem(m, x, i, 3)
    else:
        operands.append(Operand(dtype, (count, *shape[1:]), 5))
        call = peer = setitem
    if kind == "put":
        call, peer = put, lambda torch, x, i, v: x.put_(i, v)

    def expected(x, i, v=3):
        x = x.copy()
        x[i] = v
        return x, 0

    return Case(
        group=f"index write {'rows' if ndim > 1 else 'elements'}",
        text=f"{kind} {dtype} {shape}, {count}",
        operands=operands,
        call=call,
        peer=peer,
        expected=expected,
        bytes=(1 if kind == "number" else 2) * count * part * itemsize(dtype) + 8 * count,
    )


def put(vg, x, i, v):
    vg.put(x, i, v)
    return x


def write_masked(draw):
    """A number to where a mask is true."""
    dtype = draw.choice(("float32", *NUMBERS))
    shape = shape_of(draw, draw.size(1000, 3 * 10**7), draw.choice((1, 2)))
    density = draw.choice(DENSITIES)
    mask = Operand("bool", shape, made=Made("mask", density))
    number = 0.5 if dtype in FLOATS else 3
    call = lambda m, x, mask: setitem(m, x, mask, number)  # noqa: E731
    return Case(
        group="index write mask",
        text=f"{dtype} {shape} density {density}",
        operands=[Operand(dtype, shape, own=True), mask],
        call=call,
        peer=call,
        expected=lambda x, mask: (np.where(mask, np.asarray(number, x.dtype), x), 0),
        bytes=mask.nbytes() + math.ceil(density * math.prod(shape)) * itemsize(dtype),
    )


PARTS = {
    "all": (slice(None), slice(None)),
    "inner": (slice(1, -1), slice(1, -1)),
    "every other": (slice(None, None, 2), slice(None)),
    "every other column": (slice(None), slice(None, None, 2)),
    "one column": (slice(None), 0),
    "one row": (0,),
}


def write_slices(draw):
    """A number, an array or a row to a part of an array."""
    dtype, kind = draw.choice(("float32", *NUMBERS)), draw.choice(list(PARTS))
    key, value = PARTS[kind], draw.choice(("number", "array", "last axis"))
    a, b = draw.split(draw.size(1000, 3 * 10**7), 3, 10**5)
    shape = (max(3, a), max(3, b))
    lengths = [
        len(range(n)[one]) if isinstance(one, slice) else None
        for n, one in zip(shape, (*key, slice(None)), strict=False)
    ]
    part = tuple(n for n in lengths if n is not None)
    operands = [Operand(dtype, shape, own=True)]
    if value == "number":
        call = lambda m, x: setitem(m, x, key, 3)  # noqa: E731
    else:
        operands.append(Operand(dtype, part if value == "array" else part[-1:], 7))
        call = lambda m, x, v: setitem(m, x, key, v)  # noqa: E731

    def expected(x, v=3):
        x = x.copy()
        x[key] = v
        return x, 0

    written = math.prod(part) * itemsize(dtype)
    return Case(
        group=f"index write {'number' if value == 'number' else 'slice'}",
        text=f"{kind} {value} {dtype} {shape}",
        operands=operands,
        call=call,
        peer=call,
        expected=expected,
        bytes=written + sum(one.nbytes() for one in operands[1:]),
    )


CLASSES = {
    rows: 1,
    points: 0.3,
    masked: 0.7,
    nonzero: 0.3,
    along: 0.4,
    every: 0.4,
    write_rows: 0.6,
    write_masked: 0.4,
    write_slices: 0.7,
}
