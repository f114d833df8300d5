"""Short ways of sets and orders, each by a call of NumPy: see short_calls.py.

Of floats with -0.0 they are for results without zeros, as NumPy leaves open which of the two these
are, and, where places are told, for arrays without NaN.
"""

import numpy as np

from ..dtypes import complex_dtype
from . import short_numpy
from .short_counts import _but_zeros
from .short_numpy import _is_real, distinct


def _alike(*values):
    """Whether all are real ndarrays of one dtype, no halves, with elements."""
    for one in values:
        if not _is_real(one) or one.dtype is not values[0].dtype or not one.size:
            return False
    return values[0].dtype.char != "e"


def _told(values, x):
    """Return elements of x that differ, or None where NaN or an unknown zero is among them."""
    if values.dtype.kind != "f":
        return values
    return None if values[-1] != values[-1] else _but_zeros(values, x)


def unique_counts(x):
    if not _alike(x):
        return None
    values, counts = np.unique(x, return_counts=True, equal_nan=False)
    return None if _told(values, x) is None else (values, counts)


def unique_inverse(x):
    if not _alike(x):
        return None
    values, inverse = np.unique(x, return_inverse=True, equal_nan=False)
    return None if _told(values, x) is None else (values, inverse.reshape(x.shape))


def unique_all(x):
    if not _alike(x):
        return None
    values, first, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
    return None if _told(values, x) is None else (values, first, inverse.reshape(x.shape), counts)


def _of_two(function):
    """Return the short way of a function of two arrays as sets."""

    def compute(x1, x2):
        if not _alike(x1, x2):
            return None
        result = function(x1, x2)
        return result if result.dtype.kind != "f" else _but_zeros(result, x1, x2)

    return compute


_FEW = 500  # floats of two sets that are sooner looked for


def _union(x1, x2):
    result = distinct(np.concatenate((x1.reshape(-1), x2.reshape(-1))))
    return np.union1d(x1, x2) if result is None else result


def _by_places(function, combined):
    """Return what NumPy's function does, by where the elements of each set are in the other."""

    def compute(x1, x2):
        if x1.dtype.kind == "f" and x1.size + x2.size > _FEW:  # NumPy orders floats soon
            return function(x1, x2)
        a, b = distinct(x1), distinct(x2)
        return function(x1, x2) if a is None or b is None else combined(a, b)

    return compute


def _difference(a, b):
    return a[b.take(b.searchsorted(a), mode="clip") != a]


def _intersection(a, b):
    return a[b.take(b.searchsorted(a), mode="clip") == a]


def _alone(a, b):
    result = np.concatenate((_difference(a, b), _difference(b, a)))
    result.sort()
    return result


_union1d, _intersect1d = _of_two(_union), _of_two(_by_places(np.intersect1d, _intersection))
_setdiff1d = _of_two(_by_places(np.setdiff1d, _difference))
_setxor1d = _of_two(_by_places(np.setxor1d, _alone))


def intersect1d(x1, x2):
    return _intersect1d(x1, x2)


def union1d(x1, x2):
    return _union1d(x1, x2)


def setdiff1d(x1, x2):
    return _setdiff1d(x1, x2)


def setxor1d(x1, x2):
    return _setxor1d(x1, x2)


# Orders -------------------------------------------------------------------------------------------


def partition(x, kth, axis=-1):
    """Return what NumPy gives, if there are no zeros of both signs: see argpartition."""
    if not _alike(x) or type(kth) is not int or type(axis) is not int or not x.ndim:
        return None
    result = x.copy()
    result.partition(kth, axis)
    return result if x.dtype.kind != "f" else _but_zeros(result, x)


def argpartition(x, kth, axis=-1):
    """Return what NumPy gives: the order beside the kth place is another one than elsewhere."""
    if not _alike(x) or type(kth) is not int or type(axis) is not int or not x.ndim:
        return None
    return x.argpartition(kth, axis)


def lexsort(keys, axis=-1):
    if type(keys) not in (list, tuple) or not _is_real(*keys) or type(axis) is not int:
        return None
    first = keys[0]
    if not first.ndim or any(one.shape != first.shape or one.dtype.char == "e" for one in keys):
        return None
    return np.lexsort(keys, axis)


def sort_complex(x):
    result = short_numpy.sort(x) if type(x) is np.ndarray and x.dtype.char != "e" else None
    return None if result is None else result.astype(complex_dtype(x.dtype))
