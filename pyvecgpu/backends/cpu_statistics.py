"""Whole statistics of the CPU device: what a card makes of several operations, by NumPy at once.

Operands are ndarrays with elements, of bools, integers and floats but bfloat16; axes a tuple or
None. float16 is computed in float32, bools and integers in float64, and the result is rounded once.
Elements are looked at for NaN first: most arrays have none, and then nothing is copied.
"""

import math

import numpy as np

from ..dtypes import inexact
from . import cpu_functions
from .cpu_casts import widened


def count_nonzero(a, axes, keepdims):
    if axes is None and not keepdims:
        return np.asarray(np.count_nonzero(a), np.int64)
    truth = a if a.dtype.kind == "b" else a != 0
    return np.add.reduce(truth, axis=axes, keepdims=keepdims, dtype=np.int64)


def ptp(a, axes, keepdims):
    wide = widened(a)
    most = np.maximum.reduce(wide, axis=axes, keepdims=keepdims)
    least = np.minimum.reduce(wide, axis=axes, keepdims=keepdims)
    result = np.subtract(most, least)
    if wide.dtype.kind == "f":  # it does not matter which zero is the largest element
        result = result + 0.0
    return _as_dtype(result, a.dtype)


def wide(a):
    """Return an array in the float dtype to compute in."""
    return widened(a) if a.dtype.kind in "fV" else a.astype(np.float64)


def variance(a, axes, keepdims, ddof, root, dtype=None):
    """Return the variance, or its square root, in a dtype: by default that of the operand."""
    dtype = inexact(a.dtype) if dtype is None else dtype
    result = cpu_functions.variance(wide(a), axes, ddof, keepdims)
    return _as_dtype(np.sqrt(result) if root else result, dtype)


def sum_without_nan(a, axes, keepdims):
    filled, _ = _filled(widened(a), 0)
    return _as_dtype(cpu_functions.total(filled, axes, keepdims), a.dtype)


def product_without_nan(a, axes, keepdims):
    filled, _ = _filled(widened(a), 1)
    return _as_dtype(cpu_functions.prod(filled, axes, keepdims), a.dtype)


def mean_without_nan(a, axes, keepdims):
    filled, missing = _filled(widened(a), 0)
    return _as_dtype(_mean(filled, missing, axes, keepdims), inexact(a.dtype))


def variance_without_nan(a, axes, keepdims, ddof, root):
    """Return the sums of squared distances over count - ddof; NaN where that is not above 0."""
    filled, missing = _filled(wide(a), 0)
    if missing is None and _counts(a, None, axes, keepdims) > ddof:
        return variance(filled, axes, keepdims, ddof, root, inexact(a.dtype))
    mean = _mean(filled, missing, axes, True)
    distance = np.asarray(filled - mean.astype(filled.dtype, copy=False))
    if missing is not None:
        np.copyto(distance, 0, where=missing)
    np.multiply(distance, distance, out=distance)
    squares = cpu_functions.total(distance, axes, keepdims)
    count = np.asarray(_counts(a, missing, axes, keepdims) - ddof)
    result = np.where(count > 0, squares / count, np.nan)
    return _as_dtype(np.sqrt(result) if root else result, inexact(a.dtype))


def extreme_without_nan(a, axes, keepdims, is_largest):
    function = np.fmax if is_largest else np.fmin
    return _as_dtype(cpu_functions.picked(function, widened(a), axes, keepdims), a.dtype)


def _filled(a, value):
    """Return an array with a number for NaN, and where that is; itself and None without any."""
    if a.dtype.kind != "f":
        return a, None
    missing = np.isnan(a)
    if not np.logical_or.reduce(missing, axis=None):
        return a, None
    a = a.copy()
    np.copyto(a, value, where=missing)
    return a, missing


def _counts(a, missing, axes, keepdims):
    """Return how many elements are not NaN: a number for all of the result, or an array."""
    if missing is None:
        return a.size if axes is None else math.prod([a.shape[i] for i in axes])
    return np.add.reduce(~missing, axis=axes, keepdims=keepdims, dtype=np.int64)


def _mean(filled, missing, axes, keepdims):
    """Return the means of the elements that are not NaN, which has been filled with 0."""
    total = cpu_functions.total(filled, axes, keepdims)
    return np.asarray(total / _counts(filled, missing, axes, keepdims))


def _as_dtype(result, dtype):
    return result if result.dtype is dtype else result.astype(dtype)
