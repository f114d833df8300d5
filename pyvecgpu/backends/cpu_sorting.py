"""Sorting on the CPU device: NumPy's, in the order of the C library (cuda/kernels/keys.cuh).

NaN is the largest. Halves are sorted by float32 or, of float16, as they are.
"""

import numpy as np

from ..dtypes import is_bfloat16, is_float
from .cpu_casts import rounded, widened


def sort(a, axis, descending):
    """Return the elements in order along an axis, -0.0 in front of 0.0."""
    _check_order("sort", a)
    wide = widened(a) if is_bfloat16(a.dtype) else a
    result = np.sort(wide, axis=axis, kind="stable")
    if is_float(wide.dtype):
        _order_zeros(result, axis)
    if descending:
        result = np.flip(result, axis)
    return np.ascontiguousarray(rounded(result, a.dtype)).reshape(a.shape)


def argsort(a, axis, descending):
    """Return where the elements in order stood along an axis; of equal ones the first is first."""
    _check_order("argsort", a)
    wide = widened(a) if is_bfloat16(a.dtype) else a
    if not descending:
        return np.argsort(wide, axis=axis, kind="stable").astype(np.int64, copy=False)
    backwards = np.argsort(np.flip(wide, axis), axis=axis, kind="stable")
    return np.ascontiguousarray(a.shape[axis] - 1 - np.flip(backwards, axis)).astype(
        np.int64, copy=False
    )


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


def _order_zeros(result, axis):
    """Put -0.0 in front of 0.0, in place, in what is sorted along an axis."""
    zero = result == 0
    if not zero.any():
        return
    negative = zero & np.signbit(result)
    if not negative.any() or np.array_equal(negative, zero):
        return
    before = np.count_nonzero(result < 0, axis=axis, keepdims=True)
    count = np.count_nonzero(negative, axis=axis, keepdims=True)
    shape = [1] * result.ndim
    shape[axis] = -1
    place = np.arange(result.shape[axis]).reshape(shape) - before
    signs = np.where(place < count, result.dtype.type(-0.0), result.dtype.type(0.0))
    np.copyto(result, signs, where=zero)
