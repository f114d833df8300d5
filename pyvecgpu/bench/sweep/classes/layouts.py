"""Layouts that views give arrays, for classes that are not about layouts alone."""

import math

from ..case import Operand

EVERY_THIRD = (slice(None), slice(None, None, 3))


def plain(draw, dtype, size):
    return Operand(dtype, (size,))


def offset(draw, dtype, size):
    return Operand(dtype, (size,), draw.randint(1, 15))


def transposed(draw, dtype, size):
    return Operand(dtype, draw.split(size, 2, max(3, size // 2)), axes=(1, 0))


def rows(draw, dtype, size):
    a, b = draw.split(size, 2, max(3, size // 2))
    return Operand(dtype, (a, b + 7), key=(slice(None), slice(3, -4)))


def steps(draw, dtype, size):
    return Operand(dtype, (draw.randint(2, 9), 3 * max(1, size // 9)), key=EVERY_THIRD)


def permuted(draw, dtype, size):
    a, b = draw.size(2, 200), draw.size(2, 50)
    axes = list(range(3))
    draw.shuffle(axes)
    return Operand(dtype, (a, b, max(1, size // (a * b))), axes=tuple(axes))


LAYOUTS = {
    "plain": plain,
    "offset": offset,
    "transposed": transposed,
    "rows": rows,
    "steps": steps,
    "permuted": permuted,
}


def of_one(draw, dtype, size):
    """Return the name of a layout, half of them plain, and an operand of about `size` elements."""
    name = draw.choice((*LAYOUTS, *["plain"] * 4))
    return name, LAYOUTS[name](draw, dtype, size)


def shape_of(draw, size, ndim):
    """Return a shape of so many axes and about `size` elements."""
    shape = [draw.size(2, max(3, size ** (1.5 / ndim))) for _ in range(ndim - 1)]
    shape.insert(draw.randrange(ndim), max(1, size // math.prod(shape)))
    return tuple(shape)
