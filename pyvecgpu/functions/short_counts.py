"""Short ways of functions that count, and of orders and masks, each by a call of NumPy.

They are for short_calls.short: see short_numpy.py.
"""

import math

import numpy as np

from ..backends import cpu_functions
from ..backends.cpu_functions import LEAST, SIGNED
from ..backends.cpu_sorting import SOME
from ..backends.cpu_ways import all_true, may_share
from .short_numpy import _fits, _is_axis, _is_real, _multiply, _scan, distinct
from .short_ufuncs import FLOATS, INTEGERS, float_of, numbers_of, rounded

_COUNTED = "bhilBHI"  # integers that NumPy counts
_NUMBERS = FLOATS + INTEGERS
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
    if type(bins) is int and 0 < bins <= _FEW_BINS and type(x) is np.ndarray and x.size <= _SOUGHT:
        edges = histogram_bin_edges(x, bins)
        if edges is None:
            return None
        places = edges[:-1].searchsorted(x.reshape(-1), "right")  # none is 0
        return np.bincount(places, minlength=bins + 1)[1:], edges
    if not _of(_EXACT + "f", x) or type(bins) is not int or not x.size:
        return None
    if x.dtype.char != "f":
        return np.histogram(x, bins)
    return np.histogram(x, bins, (x.min().item(), x.max().item()))  # edges as of float64


# Up to so many bins of so many elements, and of floats among others, each is sooner looked for than
# by NumPy's ways.
_FEW_BINS, _SOUGHT, _FEW_FLOATS = 100, 2000, 200


def histogram_bin_edges(x, bins=10):
    if not _of(_EXACT + "f", x) or type(bins) is not int or bins < 1 or not x.size:
        return None
    low, high = x.min().item(), x.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if low == high:
        low, high = low - 0.5, high + 0.5
    start, stop = float(low), float(high)
    step = (stop - start) / bins
    if not step or not math.isfinite(step):
        return np.linspace(low, high, bins + 1, dtype=x.dtype if x.dtype.kind == "f" else None)
    edges = np.arange(bins + 1, dtype=np.float64)  # and what np.linspace does with it
    edges *= step
    edges += start
    edges[-1] = stop
    return edges.astype(x.dtype, copy=False) if x.dtype.kind == "f" else edges


def histogram2d(x, y, bins=10):
    if not _of(_EXACT + "f", x, y) or x.ndim != 1 or x.shape != y.shape:
        return None
    edges = histogram_bin_edges(x, bins), histogram_bin_edges(y, bins)
    if edges[0] is None or edges[1] is None:
        return None
    row, column = [
        found[:-1].searchsorted(one, "right") for found, one in zip(edges, (x, y), strict=True)
    ]
    row -= 1  # none is below the first edge, nor above the last one
    row *= bins
    row += column
    counts = np.bincount(row - 1, minlength=bins * bins).astype(np.float64)
    return counts.reshape(bins, bins), *edges


def isin(x1, x2):
    if not _is_real(x1, x2) or x1.dtype is not x2.dtype or not x1.size or not x2.size:
        return None
    if x1.size <= (_SOUGHT if x1.dtype.kind != "f" else _FEW_FLOATS):
        there = distinct(x2)
        if there is not None:
            return there.take(there.searchsorted(x1), mode="clip") == x1
    return np.isin(x1, x2)


def interp(x, xp, fp):
    if not _of(_NUMBERS, x, xp, fp) or xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        return None
    xp = numbers_of(xp)
    return rounded(np.interp(x, xp, fp), float_of(x)) if _are_points(xp, fp) else None


_FEW = 50  # numbers that Python looks at sooner than NumPy


def _are_points(xp, fp):
    """Whether all is finite and xp is in order, its last number but once."""
    if xp.size > 1 and not xp.item(-1) > xp.item(-2):
        return False
    if xp.size <= _FEW:
        places = xp.tolist()
        return math.isfinite(sum(places) + sum(fp.tolist())) and places == sorted(places)
    if not (all_true(np.isfinite(xp)) and all_true(np.isfinite(fp))):
        return False
    return all_true(xp[1:] >= xp[:-1])


def isreal(x):
    return np.ones(x.shape, bool) if _is_real(x) else None


def iscomplex(x):
    return np.zeros(x.shape, bool) if _is_real(x) else None


def unique(x, *, equal_nan=True):
    if not _is_real(x) or x.dtype.char == "e" or not x.size or type(equal_nan) is not bool:
        return None
    in_order = distinct(x)
    if in_order is None:
        in_order = np.unique(x, equal_nan=equal_nan)
    return in_order if x.dtype.kind != "f" else _but_zeros(in_order, x)


def packbits(a, axis=None, bitorder="big"):
    if not _is_real(a) or a.dtype.char not in "?B" or not _is_axis(axis, a) or not a.size:
        return None
    return np.packbits(a, axis, bitorder)


def unpackbits(a, axis=None):
    if not _is_real(a) or a.dtype.char != "B" or not _is_axis(axis, a) or not a.size:
        return None
    return np.unpackbits(a, axis)


# Order statistics ---------------------------------------------------------------------------------


def _but_zeros(result, *operands):
    """Return a result of operands, or None where NumPy leaves open which of the zeros it is."""
    size = result.size
    if size <= SOME and np.count_nonzero(result) == size:
        return result
    for one in operands:  # -0.0 has the least bits there are
        if cpu_functions.least_of(one.view(SIGNED[one.itemsize])) == LEAST[one.itemsize]:
            return result if size > SOME and np.count_nonzero(result) == size else None
    return result


def _plain(result, x):
    """The same, and None where a number is infinite or NaN, between which NumPy has NaN."""
    return _but_zeros(result, x) if all_true(np.isfinite(result)) else None


def median(x, axis=None):
    if axis is not None:
        if not _of("fd", x) or not _is_axis(axis, x) or not x.size:
            return None
        return _plain(np.median(x, axis), x)
    return _middle(x, False)


def nanmedian(x, axis=None):
    return _middle(x, True) if axis is None else None


def quantile(x, q, axis=None):
    if axis is not None:
        return _along(np.quantile, x, q, axis)
    return _at_share(x, q, False) if type(q) in (int, float) else None


def percentile(x, q, axis=None):
    if axis is not None:
        return _along(np.percentile, x, q, axis)
    return _at_share(x, q / 100, False) if type(q) in (int, float) else None


def nanquantile(x, q, axis=None):
    return _at_share(x, q, True) if axis is None and type(q) in (int, float) else None


def nanpercentile(x, q, axis=None):
    return _at_share(x, q / 100, True) if axis is None and type(q) in (int, float) else None


def _along(function, x, q, axis):
    if not _of("d", x) or not x.size or type(q) not in (int, float) or not _is_axis(axis, x):
        return None
    return _plain(function(x, q, axis), x)


def _middle(x, ignoring):
    found = _beside(x, 0.5, ignoring)
    if found is None:
        return None
    low, high, part, dtype = found
    return rounded(low if low == high or not part else (low + high) * low.dtype.type(0.5), dtype)


def _at_share(x, share, ignoring):
    """Return what a share of all elements is below: see quantiles._between."""
    found = _beside(x, share, ignoring) if 0 <= share <= 1 else None
    if found is None:
        return None
    low, high, part, dtype = found
    part, one = low.dtype.type(part), low.dtype.type(1)
    if low == high:
        return rounded(low, dtype)
    distance = high - low
    result = low + distance * part if part < 0.5 else high - distance * (one - part)
    return rounded(result, dtype)


def _beside(x, share, ignoring):
    """Return the two elements between which a share lies, how far, and the dtype of results.

    None: this is not the way, or one is a zero, of which NumPy leaves open whether it is -0.0.
    """
    dtype = float_of(x)
    if dtype is None or not x.size:
        return None
    values, is_float = numbers_of(x).reshape(-1), x.dtype.kind == "f"
    while True:
        last = values.size - 1
        place = min(max(last * share, 0.0), float(last))
        low = math.floor(place)
        high = min(low + 1, last)
        parted = np.partition(values, [low, high, last] if is_float else [low, high])
        if not is_float or parted[last] == parted[last]:
            break
        values = parted[parted == parted] if ignoring else parted[:0]
        if not values.size:
            return None
    low, high, part = parted[low], parted[high], place - low
    if is_float and not (low and high) and _but_zeros(low * high, values) is None:
        return None
    return low, high, part, dtype


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


def nan_to_num(x):
    return np.nan_to_num(x) if _is_real(x) else None


def cumulative_sum(x, *, axis=None):
    return _scan(np.add, x, axis) if axis is not None or x.ndim == 1 else None


def cumulative_prod(x, *, axis=None):
    return _scan(np.multiply, x, axis) if axis is not None or x.ndim == 1 else None


def correlate(x1, x2, mode="valid"):
    if not _multiply(x1, x2) or not x1.ndim == x2.ndim == 1 or x1.size < x2.size:
        return None
    return np.correlate(x1, x2, mode) if type(mode) is str and x2.size else None


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
    if not _takes(x, values) or not _is_mask(mask, x) or may_share(x, mask):
        return None
    if type(values) is np.ndarray:
        if values.shape != x.shape:
            return None
        np.putmask(x, mask, values)
    else:
        np.copyto(x, values, where=mask)
    return True
