"""Medians, percentiles and quantiles: elements at places in the order, or between two of them.

Halves are computed in float32, bools and integers in float64, and the result is rounded once; that
of bools and integers is of the default float, but for the methods that pick an element. A NaN among
the elements makes the result NaN; the functions whose names begin with "nan" leave it out.
"""

import math

import numpy as np

from ..array import Array
from ..dispatch import apply, no_gradient
from ..dtypes import float64, int64
from . import reductions, short_counts
from .arguments import Operands, from_host, parse_axes
from .choosing import where
from .creation import filled
from .elementwise import ceil, equal, floor, maximum, minimum
from .elementwise import round as rint
from .indexing import get
from .layout import astype, broadcast_to, moveaxis, permute_dims, reshape
from .mathematics import remainder
from .short_calls import short
from .sorting import picked_along, sorted_along
from .values import to_host
from .working import can_be_nan, is_nan, working

__all__ = [
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]

# alpha and beta of methods that are straight lines between places (Hyndman and Fan, 1996).
_LINES = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "linear": (1, 1),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_PICKS = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
METHODS = (*_LINES, *_PICKS, "midpoint", "averaged_inverted_cdf")


@short(short_counts.median)
def median(x, /, axis=None, out=None, overwrite_input=False, keepdims=False, *, device=None):
    """Return the middle element, or the mean of the middle two, along axes; None: of all.

    NaN of nothing. overwrite_input: makes no difference here. AxisError: no such axis.

    >>> vg.median(vg.asarray([3.0, 1.0, 2.0, 10.0])).item()
    2.5
    """
    return _middle("median", x, axis, out, keepdims, device, False)


@short(short_counts.nanmedian)
def nanmedian(x, /, axis=None, out=None, overwrite_input=False, keepdims=False, *, device=None):
    """Return the median of the elements that are not NaN; see median.

    >>> vg.nanmedian(vg.asarray([3.0, vg.nan, 2.0])).item()
    2.5
    """
    return _middle("nanmedian", x, axis, out, keepdims, device, True)


@short(short_counts.quantile)
def quantile(
    x,
    q,
    /,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    device=None,
):
    """Return what a share q of the elements along axes is below; None: of all elements.

    q: a number from 0 to 1, or several, whose axes come first in the result. method: by its name
    as in NumPy what to take where q lies between two elements. overwrite_input: makes no difference
    here. ValueError: q out of range, an unknown method. AxisError: no such axis.

    >>> x = vg.asarray([1.0, 2.0, 4.0])
    >>> vg.quantile(x, 0.25).item(), vg.quantile(x, 0.25, method="lower").item()
    (1.5, 1.0)
    """
    return _quantile("quantile", x, q, 1, axis, out, method, keepdims, device, False)


@short(short_counts.percentile)
def percentile(
    x,
    q,
    /,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    device=None,
):
    """Return quantiles, with q from 0 to 100; see quantile.

    >>> vg.percentile(vg.asarray([1.0, 2.0, 3.0, 4.0, 5.0]), [25, 50]).tolist()
    [2.0, 3.0]
    """
    return _quantile("percentile", x, q, 100, axis, out, method, keepdims, device, False)


@short(short_counts.nanquantile)
def nanquantile(
    x,
    q,
    /,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    device=None,
):
    """Return quantiles of the elements that are not NaN; see quantile.

    >>> vg.nanquantile(vg.asarray([1.0, vg.nan, 3.0]), 0.5).item()
    2.0
    """
    return _quantile("nanquantile", x, q, 1, axis, out, method, keepdims, device, True)


@short(short_counts.nanpercentile)
def nanpercentile(
    x,
    q,
    /,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    device=None,
):
    """Return quantiles of the elements that are not NaN, with q from 0 to 100; see quantile.

    >>> vg.nanpercentile(vg.asarray([1.0, vg.nan, 3.0]), 50).item()
    2.0
    """
    return _quantile("nanpercentile", x, q, 100, axis, out, method, keepdims, device, True)


def _middle(name, x, axis, out, keepdims, device, ignoring):
    call = Operands(name, (x,), out, device)
    array, dtype = working(call.arrays[0])
    rows, shape = _in_rows(array, parse_axes(axis, array.ndim), keepdims)
    if not rows.shape[-1]:
        return call.deliver_array(astype(_nothing(rows, shape), dtype, copy=False))
    ordered = sorted_along(rows, rows.ndim - 1)
    low, high = (
        _picked(ordered, _places(ordered, method, np.array([0.5]), ignoring)[0])
        for method in ("lower", "higher")
    )
    result = where(equal(low, high), low, (low + high) * 0.5)
    result = _with_nan(ordered, result, ignoring)
    return call.deliver_array(astype(reshape(result, shape), dtype, copy=False))


def _quantile(name, x, q, whole, axis, out, method, keepdims, device, ignoring):
    if method not in METHODS:
        raise ValueError(f"{name}: method is one of {sorted(METHODS)}, not {method!r}")
    call = Operands(name, (x,), out, device)
    q = _shares(name, q, whole)
    array, dtype = call.arrays[0], call.arrays[0].dtype
    if method not in _PICKS:
        array, dtype = working(array)
    rows, shape = _in_rows(array, parse_axes(axis, array.ndim), keepdims)
    if not rows.shape[-1]:
        rows, dtype = working(rows)
        result = _nothing(rows, (*q.shape, *shape))
        return call.deliver_array(astype(result, dtype, copy=False))
    ordered = sorted_along(rows, rows.ndim - 1)
    low, high, part = _places(ordered, method, q.reshape(-1), ignoring)
    result = _picked(ordered, low)
    if method not in _PICKS:
        result = _between(result, _picked(ordered, high), _beside(part, ordered))
    result = _with_nan(ordered, result, ignoring)
    result = reshape(moveaxis(result, -1, 0), (*q.shape, *shape))
    return call.deliver_array(astype(result, dtype, copy=False))


def _shares(name, q, whole):
    """Return q as a float64 ndarray of numbers from 0 to 1."""
    if isinstance(q, Array):
        no_gradient(f"{name}'s q", q)
        q = to_host(q)
    try:
        q = np.asarray(q, dtype=np.float64) / whole
    except (TypeError, ValueError):
        raise TypeError(f"{name}: q is a number or several, not {type(q).__name__}") from None
    if not ((q >= 0) & (q <= 1)).all():
        raise ValueError(f"{name}: q is from 0 to {whole}")
    return q


def _in_rows(array, axes, keepdims):
    """Return an Array with the axes that are looked along as the last one, and a result's shape."""
    axes = tuple(range(array.ndim)) if axes is None else axes
    others = [i for i in range(array.ndim) if i not in axes]
    lengths = tuple(array.shape[i] for i in others)
    shape = lengths
    if keepdims:
        shape = tuple(1 if i in axes else n for i, n in enumerate(array.shape))
    moved = permute_dims(array, (*others, *axes)) if array.ndim else array
    return reshape(moved, (*lengths, math.prod(array.shape[i] for i in axes))), shape


def _nothing(rows, shape):
    return filled(apply(rows.backend, "empty", shape, rows.dtype), math.nan)


def _places(ordered, method, q, ignoring):
    """Return two places in the order and how far between them the result lies, for each of q.

    They are ndarrays, or with `ignoring` Arrays: each row has its own number of elements.
    """
    n = ordered.shape[-1]
    if not (ignoring and can_be_nan(ordered)):
        low, high, part = _locate(method, n, q, np)
        return low.astype(np.int64), high.astype(np.int64), part
    count = reductions.sum(equal(ordered, ordered), axis=-1, dtype=int64, keepdims=True)
    count = maximum(astype(count, float64), 1.0)
    shares = broadcast_to(_beside(q, count), (*count.shape[:-1], q.size))
    low, high, part = _locate(method, count, shares, _Functions)
    return astype(low, int64), astype(high, int64), part


class _Functions:
    """What _locate takes of NumPy, for Arrays."""

    floor, ceil, rint, where, minimum, maximum = floor, ceil, rint, where, minimum, maximum
    remainder = remainder


def _locate(method, n, q, xp):
    """Return the places, as float64, for n elements; `xp` computes."""
    if method in _LINES:
        alpha, beta = _LINES[method]
        line = n * q + (alpha + q * (1 - alpha - beta)) - 1
        place = (n - 1) * q if method == "linear" else line
        place = xp.minimum(xp.maximum(place, 0.0), n - 1.0)
        low = xp.floor(place)
        part = place - low
    elif method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        low, part = _of_steps(method, n * q - 1, xp)
    else:
        place = (n - 1) * q
        low = xp.floor(place)
        part = xp.where(place == low, 0.0, 0.5)
        if method in ("higher", "nearest"):
            low = (xp.ceil if method == "higher" else xp.rint)(place)
    high = xp.minimum(xp.maximum(low + 1, 0.0), n - 1.0)
    return xp.minimum(xp.maximum(low, 0.0), n - 1.0), high, part


def _of_steps(method, place, xp):
    """Return the lower place and the part of the upper one, of functions that are steps."""
    if method == "closest_observation":
        place = place - 0.5
    before = xp.floor(place)
    if method == "inverted_cdf":
        return xp.ceil(place), place * 0.0
    if method == "averaged_inverted_cdf":
        return before, xp.where(place == before, 0.5, 1.0)
    is_even = (place == before) & (xp.remainder(before, 2.0) == 1.0)  # counted from 1
    return xp.where(is_even, before, before + 1), place * 0.0


def _picked(ordered, places):
    """Return the elements at places along the last axis, which are in range."""
    if isinstance(places, np.ndarray):
        return get(ordered, (..., places))
    return picked_along(ordered, places, ordered.ndim - 1)


def _beside(values, array):
    """Return an ndarray, or an Array, as an Array of the dtype of another and on its device."""
    if not isinstance(values, Array):
        values = from_host(np.ascontiguousarray(values), array.backend)
    return astype(values, array.dtype, copy=False)


def _between(low, high, part):
    """Return numbers between two, from the nearer one."""
    distance = high - low
    result = where(part < 0.5, low + distance * part, high - distance * (1.0 - part))
    return where(equal(low, high), low, result)


def _with_nan(ordered, result, ignoring):
    """Return a result, but NaN where the last of the elements in order is NaN."""
    if ignoring or not can_be_nan(ordered):
        return result
    last = get(ordered, (..., slice(-1, None)))
    return where(is_nan(last), last, result)
