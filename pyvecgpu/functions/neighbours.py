"""The numbers next to floats, and how far apart they are there.

Computed without looking at bits: where a wider float holds both x and its neighbour, x plus a bit
more than half of the distance is rounded to the neighbour. What float64 holds of its own numbers is
enough for that, too, where these are large; small ones are multiplied by a power of two before.
"""

import math

from ..dtype_queries import finfo
from ..dtypes import float64, inexact, is_complex
from . import short_ufuncs
from .arguments import Operands, promote_all
from .choosing import in_part, strong_pair
from .choosing import where as chosen
from .elementwise import abs, equal, less
from .layout import astype
from .mathematics import copysign
from .short_calls import short
from .working import is_nan

__all__ = ["nextafter", "spacing"]

_SCALE = 2.0**200  # makes of float64's small numbers larger ones, none of which is near the largest


@short(short_ufuncs.nextafter, c_order=False)
def nextafter(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the number of the float dtype that comes after x1 on the way to x2; x2 if it is x1.

    bools and integers count as the default float. NaN if either is NaN.

    >>> vg.nextafter(vg.asarray(1.0), 2.0).item() - 1 == vg.finfo("float32").eps
    True
    """
    if where is not True or dtype is not None:
        return in_part(nextafter, (x1, x2), out, where, dtype, device)
    call = Operands("nextafter", (x1, x2), out, device)
    a, b = strong_pair(*call.arrays, call.backend)
    dtype = _real("nextafter", promote_all((a, b)))
    a, b = (astype(operand, dtype, copy=False) for operand in (a, b))
    return call.deliver_array(_next(a, b))


@short(short_ufuncs.spacing, c_order=False)
def spacing(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the distance from x to the next number away from 0, with x's sign; NaN of infinity.

    >>> vg.spacing(vg.asarray(1.0)).item() == vg.finfo("float32").eps
    True
    """
    if where is not True or dtype is not None:
        return in_part(spacing, (x,), out, where, dtype, device)
    call = Operands("spacing", (x,), out, device)
    (array,) = call.arrays
    array = astype(array, _real("spacing", array.dtype), copy=False)
    size = abs(array)
    distance = _next(size, chosen(is_nan(size), size, math.inf)) - size
    return call.deliver_array(chosen(equal(array, 0.0), distance, copysign(distance, array)))


def _real(name, dtype):
    """Return the float dtype of a result. TypeError: complex numbers, which have no order."""
    if is_complex(dtype):
        raise TypeError(f"{name} takes real numbers, not {dtype}")
    return inexact(dtype)


def _next(a, b):
    """Return the neighbours of floats a towards b, both of one dtype."""
    dtype = a.dtype
    limits = finfo(dtype)
    wide, to = astype(a, float64, copy=False), astype(b, float64, copy=False)
    size, tiny = abs(wide), limits.smallest_subnormal
    # Up to twice the smallest normal number all numbers are equally far apart.
    smallest = 2.0 * limits.smallest_normal
    # Between a half and one and a half of the distance, in either direction, of all larger ones.
    step = size * (limits.eps * 0.5078125)
    up = less(wide, to)
    if dtype == float64:
        result = _rounded(wide, step, up)
        scaled = size * _SCALE
        small = _rounded(wide * _SCALE, scaled * (limits.eps * 0.5078125), up) / _SCALE
        result = chosen(less(size, 1.0 / _SCALE), small, result)
    else:
        result = _rounded(wide, step, up)
    result = chosen(less(size, smallest), _rounded(wide, tiny, up), result)
    result = astype(result, dtype, copy=False)
    result = chosen(equal(result, 0.0), copysign(result, a), result)
    largest = copysign(chosen(is_nan(a), a, limits.max), a)
    result = chosen(equal(abs(a), math.inf), largest, result)
    result = chosen(equal(a, b), b, result)
    return chosen(is_nan(b), b, chosen(is_nan(a), a, result))


def _rounded(x, step, up):
    """Return x + step where `up`, else x - step."""
    return chosen(up, x + step, x - step)
