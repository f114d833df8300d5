"""Where elements are not 0. How many there are decides the shape: these wait for the device."""

from ..dispatch import apply
from . import short_numpy
from .arguments import Operands
from .indexing import get
from .layout import ravel
from .short_calls import short

__all__ = ["argwhere", "flatnonzero", "nonzero"]


@short(short_numpy.nonzero)
def nonzero(x, /, *, device=None):
    """Return where elements are not 0 (NaN is not): int64 indices, a 1-D array for each axis.

    In C order. ValueError: an array without axes.

    >>> rows, columns = vg.nonzero(vg.asarray([[0, 5], [6, 0]]))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [1, 0])
    """
    call = Operands("nonzero", (x,), None, device)
    array = call.arrays[0]
    if array.ndim == 0:
        raise ValueError("nonzero: an array without axes has no indices; use ravel(x)")
    found = apply(call.backend, "nonzero", array)
    return tuple([call.give(get(found, i)) for i in range(array.ndim)])


@short(short_numpy.argwhere)
def argwhere(x, /, *, device=None):
    """Return where elements are not 0, as the rows of an int64 matrix with a column for each axis.

    In C order. Without axes there are no columns, and one row or none.

    >>> vg.argwhere(vg.asarray([[0, 5], [6, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    call = Operands("argwhere", (x,), None, device)
    array = call.arrays[0]
    found = apply(call.backend, "nonzero", array if array.ndim else ravel(array))
    rows = apply(call.backend, "permute", found, (1, 0))
    return call.give(rows if array.ndim else get(rows, (slice(None), slice(0, 0))))


@short(short_numpy.flatnonzero)
def flatnonzero(x, /, *, device=None):
    """Return where elements are not 0, as int64 indices into ravel(x).

    >>> vg.flatnonzero(vg.asarray([[0, 5], [6, 0]])).tolist()
    [1, 2]
    """
    call = Operands("flatnonzero", (x,), None, device)
    return call.give(get(apply(call.backend, "nonzero", ravel(call.arrays[0])), 0))
