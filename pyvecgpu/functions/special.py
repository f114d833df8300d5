"""Functions of floats that are made of others: powers of two apart from a number, Bessel's I0."""

import functools
import math

import numpy as np

from ..dtypes import float64, get_default_dtype, inexact, int32, int64, is_integer
from . import short_ufuncs
from .arguments import Operands, from_host, is_scalar, parse_int, strong
from .choosing import in_part
from .choosing import where as chosen
from .elementwise import (
    abs,
    bitwise_and,
    equal,
    exp,
    floor,
    greater,
    less,
    less_equal,
    maximum,
    minimum,
    negative,
    not_equal,
    sqrt,
)
from .gathering import take
from .layout import astype
from .mathematics import log2
from .neighbours import _real
from .short_calls import short

__all__ = ["frexp", "i0", "ldexp"]

_LEAST, _MOST = -1074, 1023  # powers of two that are float64


@short(short_ufuncs.ldexp, c_order=False)
def ldexp(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 * 2 ** x2, rounded once, as float.

    x2: integers, whose powers may be beyond all floats. TypeError: x2 is not of integers, x1 is
    complex.

    >>> vg.ldexp(vg.asarray([0.5, 3.0]), vg.asarray([1, -1])).tolist()
    [1.0, 1.5]
    """
    if where is not True or dtype is not None:
        return in_part(ldexp, (x1, x2), out, where, dtype, device)
    call = Operands("ldexp", (x1, x2), out, device)
    x, n = call.arrays
    if is_scalar(x):
        x = strong(x, call.backend, get_default_dtype())
    dtype = _real("ldexp", x.dtype)
    if is_scalar(n):
        n = from_host(np.asarray(min(max(parse_int(n, "x2"), -5000), 5000)), call.backend)
    if not is_integer(n.dtype):
        raise TypeError(f"ldexp: x2 is of integers, not {n.dtype}")
    x = astype(x, float64, copy=False)
    if n.dtype.itemsize > 1:
        n = minimum(n, 5000)  # before uint64 becomes int64
    n = maximum(astype(n, int64, copy=False), -5000)
    if dtype == float64:  # of smaller floats every power that is of use is one of float64
        for _ in range(2):
            up, down = greater(n, 1023), less(n, -1022)
            # 53 bits are left below, so that only the last product is rounded.
            x = x * chosen(up, 2.0**1023, chosen(down, 2.0**-969, _ones(x)))
            n = n - chosen(up, 1023, chosen(down, -969, n * 0))
    result = x * _power(call.backend, minimum(maximum(n, -1022), 1023))
    return call.deliver_array(astype(result, dtype, copy=False))


@short(short_ufuncs.frexp, c_order=False)
def frexp(x, /, *, device=None):
    """Return (mantissa, exponent): x is mantissa * 2 ** exponent, and |mantissa| in [0.5, 1).

    exponent: int32. 0, infinity and NaN are their own mantissas, with an exponent of 0. TypeError:
    complex numbers.

    >>> mantissa, exponent = vg.frexp(vg.asarray([1.0, 10.0]))
    >>> mantissa.tolist(), exponent.tolist()
    ([0.5, 0.625], [1, 4])
    """
    call = Operands("frexp", (x,), None, device)
    (array,) = call.arrays
    dtype = _real("frexp", array.dtype)
    x = astype(array, float64, copy=False)
    plain = bitwise_and(not_equal(x, 0.0), less(abs(x), math.inf))
    size = chosen(plain, x, 1.0)
    tiny = less(abs(size), 2.0**-1022)
    size = size * chosen(tiny, 2.0**54, _ones(x))
    n = astype(floor(log2(abs(size))), int64) + 1  # right, or one off
    part = size * _power(call.backend, negative(n))
    small, large = less(abs(part), 0.5), greater(abs(part), 1.0) | equal(abs(part), 1.0)
    part = chosen(small, part * 2.0, chosen(large, part * 0.5, part))
    n = n - astype(small, int64) + astype(large, int64) - astype(tiny, int64) * 54
    exponent = astype(chosen(plain, n, 0), int32)
    return call.give(astype(chosen(plain, part, x), dtype, copy=False)), call.give(exponent)


def _ones(x):
    return from_host(np.ones((), np.float64), x.backend)


@functools.cache
def _powers():
    return np.ldexp(1.0, np.arange(_LEAST, _MOST + 1))


def _power(backend, n):
    """Return 2 ** n of integers that are within float64's powers, without rounding."""
    return take(from_host(_powers(), backend), n - _LEAST)


# Bessel's I0 --------------------------------------------------------------------------------------


@short(short_ufuncs.i0)
def i0(x, /, *, device=None):
    """Return the modified Bessel function of the first kind and order 0, as float.

    Computed in float64. TypeError: complex numbers.

    >>> print(vg.round(vg.i0(vg.asarray([0.0, 1.0, 4.0])), 4))
    [ 1.      1.2661 11.3019]
    """
    call = Operands("i0", (x,), None, device)
    (array,) = call.arrays
    dtype = inexact(_real("i0", array.dtype))
    size = abs(astype(array, float64, copy=False))
    near = minimum(size, short_ufuncs.BORDER)
    quarter = near * near * 0.25
    small = quarter * 0.0 + 1.0
    for k in range(short_ufuncs.TERMS, 0, -1):
        small = small * quarter * (1.0 / (k * k)) + 1.0
    far = maximum(size, short_ufuncs.BORDER)
    inverse = 0.125 / far
    large = inverse * 0.0 + 1.0
    for k in range(short_ufuncs.LATER_TERMS, 0, -1):
        large = large * inverse * ((2 * k - 1) ** 2 / k) + 1.0
    large = exp(far) / sqrt(far * (2 * math.pi)) * large
    result = chosen(less_equal(size, short_ufuncs.BORDER), small, large)
    return call.give(astype(chosen(equal(size, math.inf), size, result), dtype, copy=False))
