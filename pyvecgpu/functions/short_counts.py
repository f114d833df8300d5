"""Short ways of functions that count, and of orders and masks, each by a call of NumPy.

They are for short_calls.short: see short_numpy.py.
"""

import numpy as np

from .short_numpy import _fits, _is_axis, _is_real, _scan

_COUNTED = "bhilBHI"  # integers that NumPy counts
_EXACT = "dbhilqBHILQ"  # dtypes of which edges and quantiles are computed in float64


def _of(chars, *values):
    """Whether all are ndarrays of one dtype, which is one of some chars."""
    for one in values:
        if type(one) is not np.ndarray or one.dtype is not values[0].dtype:
            return False
    return values[0].dtype.char in chars


# Counting -----------------------------------------------------------------------------------------


def bincount(x, weights=None, minlength=0):
    if not _of(_COUNTED, x) or x.ndim != 1 or not x.size or type(minlength) is not int:
        return None
    if weights is not None and (not _is_real(weights) or weights.shape != x.shape):
        return None
    return np.bincount(x, weights, minlength)


def digitize(x, bins, right=False):
    if not _is_real(x, bins) or x.dtype is not bins.dtype or x.dtype.char == "e" or bins.ndim != 1:
        return None
    return np.digitize(x, bins, bool(right))


def histogram(x, bins=10):
    if not _of(_EXACT, x) or type(bins) is not int or not x.size:
        return None
    return np.histogram(x, bins)


def isin(x1, x2):
    if not _is_real(x1, x2) or x1.dtype is not x2.dtype or not x1.size or not x2.size:
        return None
    return np.isin(x1, x2)


def interp(x, xp, fp):
    if not _of("fd", x, xp, fp) or xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        return None
    if not (np.all(xp[1:] > xp[:-1]) and np.all(np.isfinite(xp)) and np.all(np.isfinite(fp))):
        return None
    result = np.interp(x, xp, fp)
    return result if x.dtype.char == "d" else result.astype(np.float32)


def isreal(x):
    return np.ones(x.shape, bool) if _is_real(x) else None


def iscomplex(x):
    return np.zeros(x.shape, bool) if _is_real(x) else None


def unique(x, equal_nan=True):
    if not _is_real(x) or x.dtype.char == "e" or not x.size or type(equal_nan) is not bool:
        return None
    return _but_zeros(np.unique(x, equal_nan=equal_nan)) if x.dtype.kind == "f" else np.unique(x)


def packbits(a, axis=None, bitorder="big"):
    if not _is_real(a) or a.dtype.char not in "?B" or not _is_axis(axis, a) or not a.size:
        return None
    return np.packbits(a, axis, bitorder)


def unpackbits(a, axis=None):
    if not _is_real(a) or a.dtype.char != "B" or not _is_axis(axis, a) or not a.size:
        return None
    return np.unpackbits(a, axis)


# Order statistics ---------------------------------------------------------------------------------


def _but_zeros(result):
    """Return a result, or None where NumPy leaves open which of the zeros it is."""
    return result if np.count_nonzero(result) == np.size(result) else None


def _plain(result):
    """The same, and None where a number is infinite or NaN, between which NumPy has NaN."""
    return _but_zeros(result) if np.all(np.isfinite(result)) else None


def median(x, axis=None):
    if not _of("fd", x) or not x.size or not _is_axis(axis, x):
        return None
    return _plain(np.median(x, axis))


def quantile(x, q, axis=None):
    return _quantile(np.quantile, x, q, axis)


def percentile(x, q, axis=None):
    return _quantile(np.percentile, x, q, axis)


def _quantile(function, x, q, axis):
    if not _of("d", x) or not x.size or type(q) not in (int, float) or not _is_axis(axis, x):
        return None
    return _plain(function(x, q, axis))


def nanargmax(x, axis=None):
    return _extreme_place(np.nanargmax, x, axis)


def nanargmin(x, axis=None):
    return _extreme_place(np.nanargmin, x, axis)


def _extreme_place(function, x, axis):
    if not _is_real(x) or not x.size or not _is_axis(axis, x):
        return None
    if x.dtype.kind != "f":
        return function(x, axis)
    place = function(x) if axis is None else None
    return None if place is None or np.isnan(x.item(place)) else place


def nancumsum(x, axis=None):
    return _scan(np.add, _with(x, 0), axis)


def nancumprod(x, axis=None):
    return _scan(np.multiply, _with(x, 1), axis)


def _with(x, value):
    """Return floats with a number instead of NaN, anything else as it is."""
    if type(x) is not np.ndarray or x.dtype.kind != "f":
        return x
    result = x.copy()
    np.copyto(result, value, where=np.isnan(x))
    return result


# Writing ------------------------------------------------------------------------------------------


def _is_mask(mask, x):
    return type(mask) is np.ndarray and mask.dtype.kind == "b" and mask.shape == x.shape


def _takes(x, values):
    """Whether values may be written to an ndarray as they are; no number to bools."""
    if not _is_real(x) or not x.flags.writeable or not _fits(x, values):
        return False
    return type(values) is np.ndarray or x.dtype.kind != "b"


def copyto(dst, src):
    if not _takes(dst, src):
        return None
    np.copyto(dst, src)
    return True


def putmask(x, mask, values):
    if not _takes(x, values) or not _is_mask(mask, x):
        return None
    if type(values) is np.ndarray and values.shape != x.shape:
        return None
    np.copyto(x, values, where=mask)
    return True
