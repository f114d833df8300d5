"""Elementwise functions that are made of others: bounds, angles, steps, rounding to floats.

Operands and dtypes are as in elementwise.py.
"""

import builtins
import math

from ..array import Array
from ..dispatch import WAYS
from ..dtypes import float32, float64, inexact, integer_range, is_complex
from ..operations import codes
from . import short_cpu, short_ufuncs
from .arguments import Operands
from .casting import active
from .choosing import in_part
from .elementwise import abs, maximum, minimum, round
from .layout import astype
from .operators import binary, unary
from .short_calls import short
from .short_operations import of_two
from .values import copied
from .working import work_dtype

__all__ = [
    "clip",
    "deg2rad",
    "degrees",
    "fabs",
    "fmax",
    "fmin",
    "heaviside",
    "rad2deg",
    "radians",
    "rint",
]


def clip(x, /, min=None, max=None, out=None, *, device=None):
    """Return x with elements below min replaced by it, and above max by that; NaN stays NaN.

    min, max: arrays or scalars, broadcast with x; None is no bound. Where min is above max the
    result is max. OverflowError: a bound that an integer dtype cannot hold.

    >>> vg.clip(vg.asarray([-3, 0, 7]), -1, 5).tolist()
    [-1, 0, 5]
    """
    if out is None and device is None:
        result = short_cpu.clip(x, min, max)
        if result is not None:
            return result
    is_plain = out is None or (type(out) is Array and type(x) is Array and out.backend is x.backend)
    if type(x) is Array and is_plain and not active and device is None:
        bounds = _weak_bounds(x, min, max)
        if bounds:
            return WAYS["clip"](x.backend, x, *bounds, out)
        if _are_alike(x, min, max):
            return WAYS["within"](x.backend, x, min, max, out)
    bounds = [bound for bound in (min, max) if bound is not None]
    call = Operands("clip", (x, *bounds), out, device)
    scalars = _weak_bounds(call.arrays[0], min, max)
    if scalars:
        return call.apply("clip", call.arrays[0], *scalars)
    result, *bounds = call.arrays
    if min is not None:
        result = maximum(result, bounds.pop(0))
    if max is not None:
        result = minimum(result, bounds.pop(0))
    return call.deliver_array(copied(result) if min is max is None else result)


def _are_alike(x, low, high):
    """Whether bounds are arrays like x: of its device and its dtype, which is no bool."""
    if not (type(low) is type(high) is Array and low.backend is high.backend is x.backend):
        return False
    dtype = x.dtype
    return dtype.kind in "uif" and low.dtype is dtype and high.dtype is dtype


def _weak_bounds(x, low, high):
    """Return the bounds as floats, or as ints, if they are scalars that x's dtype holds as such."""
    if low is high is None or not isinstance(x, Array):
        return None
    dtype = x.dtype
    if dtype.kind == "f":
        least, most, kinds = -(2**53), 2**53, (float, int)
    elif dtype.kind in "iu":
        (least, most), kinds = integer_range(dtype), (int,)
        most = builtins.min(most, 2**63 - 1)
    else:
        return None
    for one in (low, high):
        kind = type(one)
        if one is not None and not (kind in kinds and (kind is float or least <= one <= most)):
            return None
    if dtype.kind != "f":
        return low, high
    return None if low is None else float(low), None if high is None else float(high)


@of_two(codes.FMAX)
def fmax(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the larger of x1 and x2, the other one if one is NaN.

    >>> vg.fmax(vg.asarray([1.0, vg.nan]), vg.asarray([2.0, 0.5])).tolist()
    [2.0, 0.5]
    """
    if where is not True or dtype is not None:
        return in_part(fmax, (x1, x2), out, where, dtype, device)
    return binary(codes.FMAX, x1, x2, out, device)


@of_two(codes.FMIN)
def fmin(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the smaller of x1 and x2, the other one if one is NaN.

    >>> vg.fmin(vg.asarray([1.0, vg.nan]), vg.asarray([2.0, 0.5])).tolist()
    [1.0, 0.5]
    """
    if where is not True or dtype is not None:
        return in_part(fmin, (x1, x2), out, where, dtype, device)
    return binary(codes.FMIN, x1, x2, out, device)


@of_two(codes.HEAVISIDE)
def heaviside(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return 0 where x1 is negative, x2 where it is 0, 1 where it is positive; as float.

    >>> vg.heaviside(vg.asarray([-1.5, 0.0, 2.0]), 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    if where is not True or dtype is not None:
        return in_part(heaviside, (x1, x2), out, where, dtype, device)
    return binary(codes.HEAVISIDE, x1, x2, out, device)


@short(short_ufuncs.deg2rad, c_order=False)
def deg2rad(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return degrees as radians, as float.

    >>> print(vg.deg2rad(vg.asarray([0.0, 180.0])))
    [0.        3.1415927]
    """
    if where is not True or dtype is not None:
        return in_part(deg2rad, (x,), out, where, dtype, device)
    return _times("deg2rad", x, math.pi / 180, out, device)


@short(short_ufuncs.rad2deg, c_order=False)
def rad2deg(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return radians as degrees, as float.

    >>> print(vg.degrees(vg.asarray([0.0, vg.pi])))
    [  0. 180.]
    """
    if where is not True or dtype is not None:
        return in_part(rad2deg, (x,), out, where, dtype, device)
    return _times("rad2deg", x, 180 / math.pi, out, device)


radians = deg2rad
degrees = rad2deg


def _times(name, x, factor, out, device):
    if type(x) is Array and not active and out is None and device is None:
        dtype = x.dtype
        if dtype is float32 or dtype is float64:
            return WAYS["scalar"](x.backend, codes.MULTIPLY, x, factor, 1, None)
    call = Operands(name, (x,), out, device)
    (array,) = call.arrays
    _check_real(name, array)
    product = astype(array, work_dtype(array.dtype), copy=False) * factor
    return call.deliver_array(astype(product, inexact(array.dtype), copy=False))


def rint(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the nearest integer, half way the even one, as float.

    >>> vg.rint(vg.asarray([0.5, 1.5, -1.2])).tolist()
    [0.0, 2.0, -1.0]
    """
    if where is not True or dtype is not None:
        return in_part(rint, (x,), out, where, dtype, device)
    if type(x) is Array and out is None and x.dtype.kind == "f":
        return unary(codes.ROUND, x, None, device)
    return _as_float("rint", round, x, out, device)


def fabs(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return |x|, as float. TypeError: complex numbers.

    >>> vg.fabs(vg.asarray([-2, 3])).tolist()
    [2.0, 3.0]
    >>> vg.abs(vg.asarray([-2, 3])).tolist()
    [2, 3]
    """
    if where is not True or dtype is not None:
        return in_part(fabs, (x,), out, where, dtype, device)
    if type(x) is Array and out is None and x.dtype.kind == "f":
        return unary(codes.ABS, x, None, device)
    return _as_float("fabs", _abs_of_reals, x, out, device)


def _abs_of_reals(array):
    _check_real("fabs", array)
    return abs(array)


def _check_real(name, array):
    if is_complex(array.dtype):
        raise TypeError(f"{name} does not take {array.dtype}")


def _as_float(name, function, x, out, device):
    call = Operands(name, (x,), out, device)
    (array,) = call.arrays
    return call.deliver_array(function(astype(array, inexact(array.dtype), copy=False)))
