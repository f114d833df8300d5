"""Products, and what the array API takes of the last two axes where vg's namesake takes the first.

A matrix is in the last two axes here: vg.linalg.trace and diagonal are NumPy's of that module.
"""

import functools

from .. import functions
from ..functions.arguments import Operands
from ..functions.layout import as_array
from ..functions.linalg import matmul
from ..functions.short_calls import short
from . import short_linalg

__all__ = ["cross", "diagonal", "multi_dot", "outer", "trace"]


def cross(x1, x2, /, axis=-1):
    """Return the cross products of vectors of three elements along an axis; the others broadcast.

    ValueError: vectors of another length. AxisError: no such axis. TypeError: bools.

    >>> vg.linalg.cross(vg.asarray([1, 0, 0]), vg.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    return functions.cross(x1, x2, axis=axis)


@short(short_linalg.outer)
def outer(x1, x2, /):
    """Return the products of every element of one vector, a row each, with every one of another.

    ValueError: an operand has another number of dimensions than 1.

    >>> vg.linalg.outer(vg.asarray([1, 2]), vg.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    call = Operands("outer", (x1, x2))
    if any(getattr(array, "ndim", 0) != 1 for array in call.arrays):
        raise ValueError("outer takes two arrays of one dimension; vg.outer takes any")
    return functions.outer(x1, x2)


@short(short_linalg.diagonal, c_order=False)
def diagonal(x, /, offset=0):
    """Return the diagonals of matrices (..., m, n), along a new last axis, as a view if it can be.

    offset: column - row, 0 for the main one. ValueError: less than two dimensions.

    >>> vg.linalg.diagonal(vg.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    return functions.diagonal(x, offset, -2, -1)


@short(short_linalg.trace)
def trace(x, /, offset=0, dtype=None):
    """Return the sums of the diagonals of matrices (..., m, n); see diagonal and sum.

    >>> vg.linalg.trace(vg.asarray([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])).tolist()
    [5, 13]
    """
    return functions.trace(x, offset, -2, -1, dtype)


@short(short_linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    """Return the product of two matrices or more, in the order that takes the fewest operations.

    The first and the last may be vectors, a row and a column. ValueError: fewer than two; shapes
    that do not fit.

    >>> vg.linalg.multi_dot([vg.ones((2, 100)), vg.ones((100, 3)), vg.ones((3, 1))]).tolist()
    [[300.0], [300.0]]
    """
    arrays = list(arrays)
    if len(arrays) < 2:
        raise ValueError(f"multi_dot takes two arrays or more, not {len(arrays)}")
    shapes = [as_array("multi_dot", one)[0].shape for one in arrays]
    for i, shape in enumerate(shapes):
        if len(shape) != 2 and not (len(shape) == 1 and i in (0, len(arrays) - 1)):
            raise ValueError(f"multi_dot: operand {i} of shape {shape} is no matrix")
    rows = [1 if i == 0 and len(s) == 1 else s[0] for i, s in enumerate(shapes)]
    sizes = (*rows, 1 if len(shapes[-1]) == 1 else shapes[-1][1])

    @functools.cache
    def cheapest(first, last):
        """(multiplications, where to split) of the operands from first to last."""
        if first == last:
            return 0, first
        return min(
            (
                cheapest(first, k)[0]
                + cheapest(k + 1, last)[0]
                + sizes[first] * sizes[k + 1] * sizes[last + 1],
                k,
            )
            for k in range(first, last)
        )

    def product(first, last, out=None):
        if first == last:
            return arrays[first]
        k = cheapest(first, last)[1]
        return matmul(product(first, k), product(k + 1, last), out=out)

    return product(0, len(arrays) - 1, out)
