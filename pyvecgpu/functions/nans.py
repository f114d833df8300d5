"""Functions that pass over NaN: sums, means and extremes of the other elements.

Where all elements are NaN the sum is 0, the product 1 and the others NaN; NumPy warns of it, here
only the CPU device does, where NumPy computes: an answer of a card is not waited for. bools and
integers are never NaN. The rest is as in reductions.py and statistics.py.
"""

import math

from ..array import Array, Tracked
from ..dispatch import apply, is_tracked
from ..dtype_queries import float_range
from ..dtypes import int64, is_complex, real_dtype
from . import partial, reductions, scans, short_cards, short_counts, short_cpu
from .arguments import Operands, is_scalar, listed, parse_axes, parse_scalar, strong
from .choosing import where
from .complexes import of_parts, part, squared_length
from .elementwise import equal, less_equal
from .layout import astype, broadcast_to
from .mathematics import isinf
from .short_calls import short
from .statistics import float_dtype, parse_ddof
from .values import copied
from .working import can_be_nan, is_nan, working

__all__ = [
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


@short(short_counts.nan_to_num)
def nan_to_num(x, /, copy=True, nan=0.0, posinf=None, neginf=None, *, device=None):
    """Return x with numbers for NaN and infinity.

    nan: for NaN. posinf, neginf: for infinity, by default the dtype's largest and smallest number.
    They may be arrays of x's shape or to be broadcast to it. Each part of a complex number is seen
    to by itself. copy=False: write them to x itself, which is an Array. TypeError: it is none.
    ValueError: another shape.

    >>> vg.nan_to_num(vg.asarray([1.0, vg.nan, vg.inf]), posinf=99.0).tolist()
    [1.0, 0.0, 99.0]
    """
    if copy is True and device is None:
        result = short_cards.numbers_for_nan(x, nan, posinf, neginf)
        if result is not None:
            return result
    values = [nan, posinf, neginf]
    if any(_is_array(one) for one in values):
        return _arrays_for_nan(x, copy, values, device)
    values = [None if one is None else parse_scalar(one, "a number for NaN") for one in values]
    if not copy and not isinstance(x, Array):
        raise TypeError("nan_to_num: copy=False writes to an Array")
    call = Operands("nan_to_num", (x,), None if copy else x, device)
    (array,) = call.arrays
    if not can_be_nan(array):
        return call.deliver_array(copied(array)) if copy else x
    if is_complex(array.dtype):
        if copy and is_tracked(array):
            parts = (part(array, 0), part(array, 1))
            return call.deliver_array(of_parts(*[nan_to_num(one, True, *values) for one in parts]))
        result = copied(array) if copy else array
        for one in (part(result, 0), part(result, 1)):
            nan_to_num(one, False, *values)
        return call.deliver_array(result) if copy else x
    nan, posinf, neginf = values
    if posinf is None or neginf is None:
        least, most = float_range(array.dtype)
        posinf, neginf = most if posinf is None else posinf, least if neginf is None else neginf
    nan = parse_scalar(nan, "a number for NaN")  # None is none
    result = call.apply("nan_to_num", array, float(nan), float(posinf), float(neginf))
    return result if copy else x


def _is_array(value):
    """Whether numbers for NaN are an array or a list of some dimension, or tracked."""
    if is_scalar(value) or value is None:
        return False
    return getattr(value, "ndim", 1) > 0 or type(value) is Tracked


def _arrays_for_nan(x, copy, values, device):
    if not copy and not isinstance(x, Array):
        raise TypeError("nan_to_num: copy=False writes to an Array")
    given = [i for i in range(3) if _is_array(values[i])]
    call = Operands("nan_to_num", (x, *[values[i] for i in given]), None if copy else x, device)
    array, *arrays = call.arrays
    array = listed(array, call.backend, call.host) if is_scalar(array) else array
    values = dict(enumerate(values)) | dict(zip(given, arrays, strict=True))
    if not can_be_nan(array):
        return call.deliver_array(copied(array)) if copy else x
    limits = dict(zip((2, 1), float_range(real_dtype(array.dtype)), strict=True))
    numbers = []
    for i, value in values.items():
        value = limits.get(i) if value is None else value
        if i in given:
            value = astype(broadcast_to(value, array.shape), real_dtype(array.dtype), copy=False)
        else:
            value = float(parse_scalar(value, "a number for NaN"))
            value = strong(value, call.backend, real_dtype(array.dtype))
        numbers.append(value)
    if is_complex(array.dtype):
        if copy and is_tracked(array, *numbers):
            parts = (part(array, 0), part(array, 1))
            return call.deliver_array(of_parts(*[_in_place_of_nan(one, *numbers) for one in parts]))
        result = copied(array) if copy else array
        for one in (part(result, 0), part(result, 1)):
            apply(call.backend, "copy", _in_place_of_nan(one, *numbers), one)
        return call.deliver_array(result) if copy else x
    result = call.deliver_array(_in_place_of_nan(array, *numbers))
    return result if copy else x


def _in_place_of_nan(array, nan, posinf, neginf):
    """Return an Array with the elements of others, or numbers, for NaN and the infinities."""
    rest = where(isinf(array), where(array > 0, posinf, neginf), array)
    return where(is_nan(array), nan, rest)


def nansum(x, /, axis=None, dtype=None, out=None, keepdims=False, *, device=None):
    """Return the sum of the elements that are not NaN; see sum.

    >>> vg.nansum(vg.asarray([1.0, vg.nan, 3.0])).item()
    4.0
    """
    if dtype is None and out is None and device is None:
        result = short_cards.sum_without_nan(x, axis, False, keepdims)
        if result is None:
            result = short_cpu.sum_without_nan(x, axis, keepdims)
        if result is not None:
            return result
    call, array = _filled("nansum", x, 0.0, out, device)
    return call.deliver_array(reductions.sum(array, axis=axis, dtype=dtype, keepdims=keepdims))


def nanprod(x, /, axis=None, dtype=None, out=None, keepdims=False, *, device=None):
    """Return the product of the elements that are not NaN; see prod.

    >>> vg.nanprod(vg.asarray([2.0, vg.nan, 3.0])).item()
    6.0
    """
    if dtype is None and out is None and device is None:
        result = short_cpu.product_without_nan(x, axis, keepdims)
        if result is not None:
            return result
    call, array = _filled("nanprod", x, 1.0, out, device)
    return call.deliver_array(reductions.prod(array, axis=axis, dtype=dtype, keepdims=keepdims))


@short(short_counts.nancumsum)
def nancumsum(x, /, axis=None, dtype=None, out=None, *, device=None):
    """Return the sums of the elements up to each along an axis, NaN counted as 0; see cumsum.

    >>> vg.nancumsum(vg.asarray([2.0, vg.nan, 3.0])).tolist()
    [2.0, 2.0, 5.0]
    """
    call, array = _filled("nancumsum", x, 0.0, out, device)
    return call.deliver_array(scans.cumsum(array, axis, dtype))


@short(short_counts.nancumprod)
def nancumprod(x, /, axis=None, dtype=None, out=None, *, device=None):
    """Return the products of the elements up to each along an axis, NaN counted as 1.

    >>> vg.nancumprod(vg.asarray([2.0, vg.nan, 3.0])).tolist()
    [2.0, 2.0, 6.0]
    """
    call, array = _filled("nancumprod", x, 1.0, out, device)
    return call.deliver_array(scans.cumprod(array, axis, dtype))


def nanmax(x, /, axis=None, out=None, keepdims=False, *, device=None):
    """Return the largest element that is not NaN. ValueError: there is no element.

    >>> vg.nanmax(vg.asarray([1.0, vg.nan, 3.0])).item()
    3.0
    """
    return _extreme("nanmax", reductions.max, -math.inf, x, axis, out, keepdims, device)


def nanmin(x, /, axis=None, out=None, keepdims=False, *, device=None):
    """Return the smallest element that is not NaN. ValueError: there is no element.

    >>> vg.nanmin(vg.asarray([1.0, vg.nan, 3.0])).item()
    1.0
    """
    return _extreme("nanmin", reductions.min, math.inf, x, axis, out, keepdims, device)


@short(short_counts.nanargmax)
def nanargmax(x, /, axis=None, out=None, *, keepdims=False, device=None):
    """Return the int64 index of the first largest element that is not NaN; 0 where all are.

    axis=None: into ravel(x). ValueError: there is no element. AxisError: no such axis.

    >>> vg.nanargmax(vg.asarray([1.0, vg.nan, 3.0])).item()
    2
    """
    return _place("nanargmax", reductions.max, -math.inf, x, axis, out, keepdims, device)


@short(short_counts.nanargmin)
def nanargmin(x, /, axis=None, out=None, *, keepdims=False, device=None):
    """Return the int64 index of the first smallest element that is not NaN; see nanargmax.

    >>> vg.nanargmin(vg.asarray([vg.nan, 2.0, 1.0])).item()
    2
    """
    return _place("nanargmin", reductions.min, math.inf, x, axis, out, keepdims, device)


def nanmean(x, /, axis=None, dtype=None, out=None, keepdims=False, *, device=None):
    """Return the mean of the elements that are not NaN, as float. dtype: compute in this one.

    >>> vg.nanmean(vg.asarray([[1.0, vg.nan], [3.0, 4.0]]), axis=0).tolist()
    [2.0, 4.0]
    """
    if dtype is None and out is None and device is None:
        result = short_cards.sum_without_nan(x, axis, True, keepdims)
        if result is None:
            result = short_cpu.mean_without_nan(x, axis, keepdims)
        if result is not None:
            return result
    call = Operands("nanmean", (x,), out, device)
    array, dtype = _in_dtype("nanmean", call.arrays[0], dtype)
    result = _mean(array, parse_axes(axis, array.ndim), keepdims)
    return call.deliver_array(astype(result, dtype, copy=False))


def nanvar(
    x,
    /,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    mean=None,
    correction=None,
    device=None,
):
    """Return the variance of the elements that are not NaN, NaN of ddof or fewer; see var.

    >>> vg.nanvar(vg.asarray([1.0, vg.nan, 5.0])).item()
    4.0
    """
    return _spread("nanvar", x, axis, dtype, out, ddof, keepdims, mean, correction, device)


def nanstd(
    x,
    /,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    mean=None,
    correction=None,
    device=None,
):
    """Return the standard deviation of the elements that are not NaN; see nanvar.

    >>> vg.nanstd(vg.asarray([1.0, vg.nan, 3.0])).item()
    1.0
    """
    return _spread("nanstd", x, axis, dtype, out, ddof, keepdims, mean, correction, device)


def _spread(name, x, axis, dtype, out, ddof, keepdims, mean, correction, device):
    root = name == "nanstd"
    ddof = parse_ddof(name, ddof, correction)
    if dtype is out is device is mean is None:
        result = short_cpu.variance_without_nan(x, axis, keepdims, ddof, root)
        if result is not None:
            return result
    call = Operands(name, (x,) if mean is None else (x, mean), out, device)
    array = call.arrays[0]
    array = listed(array, call.backend, call.host) if is_scalar(array) else array
    array, dtype = _in_dtype(name, array, dtype)
    axes = parse_axes(axis, array.ndim)
    if mean is None:
        mean = _mean(array, axes, True)
    else:
        mean, dtype = partial.about(call.arrays[1], array, dtype)
    distance = where(is_nan(array), 0.0, array - mean)
    squares = reductions.sum(squared_length(distance), axis=axes, keepdims=keepdims)
    count = _count(array, axes, keepdims) - float(ddof)
    result = where(less_equal(count, 0.0), math.nan, squares / count)
    result = partial.root(result) if root else result
    return call.deliver_array(astype(result, real_dtype(dtype), copy=False))


def _filled(name, x, value, out, device):
    """Return the Operands of one array, and that array with a number for NaN."""
    call = Operands(name, (x,), out, device)
    (array,) = call.arrays
    if not can_be_nan(array):
        return call, array
    if is_complex(array.dtype):
        return call, where(is_nan(array), value, array)
    numbers = value, math.inf, -math.inf
    return call, apply(call.backend, "nan_to_num", array, *numbers, None)


def _extreme(name, reduction, identity, x, axis, out, keepdims, device):
    if out is None and device is None:
        result = short_cpu.extreme_without_nan(x, axis, keepdims, reduction is reductions.max)
        if result is not None:
            return result
    call, array = _filled(name, x, identity, out, device)
    result = reduction(array, axis=axis, keepdims=keepdims)
    if can_be_nan(array):
        all_are = reductions.min(is_nan(call.arrays[0]), axis=axis, keepdims=keepdims)
        result = where(all_are, math.nan, result)
    return call.deliver_array(result)


def _place(name, reduction, identity, x, axis, out, keepdims, device):
    call, array = _filled(name, x, identity, out, device)
    extreme = reduction(array, axis=axis, keepdims=True)
    places = equal(call.arrays[0], extreme)  # no NaN is
    return call.deliver_array(reductions.argmax(places, axis=axis, keepdims=keepdims))


def _in_dtype(name, array, dtype):
    """Return an array in the dtype to compute in, and the dtype of the result."""
    if dtype is not None:
        array = astype(array, float_dtype(name, dtype), copy=False)
    return working(array)


def _mean(array, axes, keepdims):
    """Return the mean of the elements that are not NaN."""
    filled = where(is_nan(array), 0.0, array)
    total = reductions.sum(filled, axis=axes, keepdims=keepdims)
    return total / _count(array, axes, keepdims)


def _count(array, axes, keepdims):
    """Return how many elements are not NaN, in the array's dtype, or that of its parts."""
    numbers = reductions.sum(equal(array, array), axis=axes, dtype=int64, keepdims=keepdims)
    return astype(numbers, real_dtype(array.dtype))
