"""Sorting on the CPU device: NumPy's, in the order of the C library (cuda/kernels/keys.cuh).

NaN is the largest. Halves are sorted by float32 or, of float16, as they are. NumPy's quickest way
to sort is not a stable one: of values nobody sees that, and indices of equal ones, where there are
few, are put in order afterwards.
"""

import numpy as np

from ..dtypes import is_bfloat16, is_float
from .cpu_casts import rounded, widened
from .cpu_functions import LEAST, SIGNED, least_of


def sort(a, axis, descending):
    """Return the elements in order along an axis, -0.0 in front of 0.0."""
    _check_order("sort", a)
    wide = widened(a) if is_bfloat16(a.dtype) else a
    # float16 by its bits: of large arrays NumPy 2.4's other way loses elements.
    result = np.sort(wide, axis=axis, kind="stable" if wide.dtype.char == "e" else None)
    if is_float(wide.dtype):
        order_zeros(wide, result, axis)
    if descending:
        result = np.flip(result, axis)
    return np.ascontiguousarray(rounded(result, a.dtype)).reshape(a.shape)


def argsort(a, axis, descending):
    """Return where the elements in order stood along an axis; of equal ones the first is first."""
    _check_order("argsort", a)
    wide = widened(a) if is_bfloat16(a.dtype) else a
    if not descending:
        if wide.ndim == 1 and wide.size >= LONG:
            if wide.dtype.kind in "iu" and wide.itemsize > 2:
                return _order_of_integers(wide)
            if wide.dtype.char in "fd":
                return _order(wide)
        return np.argsort(wide, axis=axis, kind="stable").astype(np.int64, copy=False)
    backwards = np.argsort(np.flip(wide, axis), axis=axis, kind="stable")
    return np.ascontiguousarray(a.shape[axis] - 1 - np.flip(backwards, axis)).astype(
        np.int64, copy=False
    )


SOME = 1000  # floats of which those that are 0 are counted at once
LONG = 512  # elements from where on another way than the stable one is quicker
LOOK = 256  # of them that are looked at to see whether many are equal


def _order(a):
    """Return the indices that put a row of numbers in order, the first of equal ones first."""
    if a.size >= 16 * LOOK:
        sample = np.sort(a[:: a.size // LOOK])
        if (sample[1:] == sample[:-1]).any():
            return a.argsort(kind="stable")
    order = a.argsort()
    values = a[order]
    same = values[1:] == values[:-1]
    if values[-1] != values[-1]:
        same |= (values[1:] != values[1:]) & (values[:-1] != values[:-1])
    count = np.count_nonzero(same)
    if count > a.size // 8:
        return a.argsort(kind="stable")
    if count:
        _order_equal(order, same)
    return order


def _order_of_integers(a):
    """Return the same of a row of integers: by 16 bits at a time if they need no more."""
    least = a.min()
    if int(a.max()) - int(least) >= 2**16:
        return _order(a)
    return np.argsort(np.subtract(a, least).astype(np.uint16), kind="stable")


def _order_equal(order, same):
    """Put indices in ascending order, in place, where they are of equal elements side by side.

    same: whether an element, from the second on, equals the one before.
    """
    first = np.ones(order.size, bool)  # of a run of equal ones
    np.logical_not(same, out=first[1:])
    alone = first.copy()
    alone[:-1] &= first[1:]
    places = np.flatnonzero(~alone)
    keys = np.cumsum(first[places]) * order.size + order[places]
    keys.sort()
    order[places] = keys % order.size


def searchsorted(a, values, right):
    """Return how many elements of a sorted array stand before each value."""
    _check_order("searchsorted", a)
    side = "right" if right else "left"
    result = np.searchsorted(widened(a), widened(values), side)
    return np.asarray(result, dtype=np.int64)


def bincount(a, weights, length):
    """Return how often each number below `length` is there, or the sums of the weights beside it.

    Other numbers are not counted. TypeError: they are no integers. ValueError: another shape.
    """
    if a.dtype.kind not in "iu":
        raise TypeError(f"bincount counts integers, not {a.dtype}")
    if weights is not None:
        _check_order("bincount", weights)
    if weights is not None and weights.shape != a.shape:
        raise ValueError(f"bincount: weights of shape {weights.shape} for {a.shape}")
    a = a.reshape(-1)
    weights = None if weights is None else widened(weights).astype(np.float64).reshape(-1)
    fits = (a >= 0) & (a < length)
    if not fits.all():
        a, weights = a[fits], None if weights is None else weights[fits]
    counts = np.bincount(a.astype(np.intp), weights, length)[:length]
    return counts if weights is None else counts.astype(np.float64, copy=False)  # of nothing, too


def _check_order(name, a):
    if a.dtype.kind == "c":
        raise TypeError(f"{name} takes another dtype, got {a.dtype}")


def order_zeros(a, result, axis):
    """Put -0.0 in front of 0.0, in place, in what is sorted along an axis.

    a: what it was before. NumPy takes one zero for the other, so that there may be more or less.
    """
    if result.size <= SOME and np.count_nonzero(result) == result.size:
        return
    if least_of(a.view(SIGNED[a.itemsize])) != LEAST[a.itemsize]:  # there is no -0.0
        return
    negative = (a == 0) & np.signbit(a)
    before = np.count_nonzero(result < 0, axis=axis, keepdims=True)
    count = np.count_nonzero(negative, axis=axis, keepdims=True)
    shape = [1] * result.ndim
    shape[axis] = -1
    place = np.arange(result.shape[axis]).reshape(shape) - before
    signs = np.where(place < count, result.dtype.type(-0.0), result.dtype.type(0.0))
    np.copyto(result, signs, where=result == 0)
