"""Elementwise arithmetic that is made of other functions: remainders, divisors, roots, bits.

Operands and dtypes are as in elementwise.py.
"""

import math

from ..array import Array
from ..dispatch import whole
from ..dtypes import float64, inexact, is_float, parse_dtype, uint8
from . import short_ufuncs
from .arguments import Operands, promote_all
from .choosing import in_part, strong_pair
from .choosing import where as chosen
from .elementwise import (
    abs,
    bitwise_and,
    divide,
    equal,
    less,
    logical_and,
    maximum,
    negative,
    not_equal,
    trunc,
)
from .layout import astype
from .mathematics import copysign, exp2, floor_divide, isinf, log1p, pow, remainder, sin
from .neighbours import _real
from .reductions import any
from .short_calls import short
from .values import item
from .working import work_dtype

__all__ = [
    "bitwise_count",
    "cbrt",
    "float_power",
    "fmod",
    "gcd",
    "isneginf",
    "isposinf",
    "lcm",
    "logaddexp2",
    "modf",
    "sinc",
]

# As many steps as Euclid's algorithm takes at most, by the bytes of an integer.
_STEPS = {1: 13, 2: 24, 4: 47, 8: 93}


def _pair(name, x1, x2, out, device):
    """Return the Operands of two arrays, and these in the dtype that they are promoted to."""
    call = Operands(name, (x1, x2), out, device)
    pair = strong_pair(*call.arrays, call.backend)
    dtype = promote_all(pair)
    return call, *(astype(one, dtype, copy=False) for one in pair)


# Division -----------------------------------------------------------------------------------------


@short(short_ufuncs.fmod, c_order=False)
def fmod(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return what dividing x1 by x2 leaves, with the sign of x1, as in C. TypeError: bool.

    Of an integer by 0 it is 0, of a float NaN.

    >>> vg.fmod(vg.asarray([-7, 7]), 3).tolist(), vg.remainder(vg.asarray([-7, 7]), 3).tolist()
    ([-1, 1], [2, 1])
    """
    if where is not True or dtype is not None:
        return in_part(fmod, (x1, x2), out, where, dtype, device)
    call, a, b = _pair("fmod", x1, x2, out, device)
    if is_float(a.dtype):
        compute = lambda: copysign(remainder(abs(a), abs(b)), a)  # noqa: E731
        return call.deliver_array(whole("fmod", {"a": a, "b": b}, compute))
    rest = remainder(a, b)
    if a.dtype.kind == "i":
        turned = logical_and(not_equal(rest, 0), not_equal(less(a, 0), less(b, 0)))
        rest = chosen(turned, rest - b, rest)
    return call.deliver_array(rest)


@short(short_ufuncs.modf, c_order=False)
def modf(x, /, *, device=None):
    """Return the fraction of x and what is before the point, both as float and with x's sign.

    >>> fraction, whole = vg.modf(vg.asarray([2.25, -2.25]))
    >>> fraction.tolist(), whole.tolist()
    ([0.25, -0.25], [2.0, -2.0])
    """
    call = Operands("modf", (x,), None, device)
    array = astype(call.arrays[0], _real("modf", call.arrays[0].dtype), copy=False)
    number = trunc(array)

    def fraction():
        return copysign(chosen(isinf(array), 0.0, array - number), array)

    return call.give(whole("modf", {"x": array}, fraction)), call.give(number)


@short(short_ufuncs.gcd, c_order=False)
def gcd(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the greatest common divisor of integers; 0 of 0 and 0. TypeError: no integers.

    >>> vg.gcd(vg.asarray([12, 18, 0]), 8).tolist()
    [4, 2, 8]
    """
    if where is not True or dtype is not None:
        return in_part(gcd, (x1, x2), out, where, dtype, device)
    call, a, b = _pair("gcd", x1, x2, out, device)
    return call.deliver_array(astype(_gcd("gcd", a, b), a.dtype, copy=False))


@short(short_ufuncs.lcm, c_order=False)
def lcm(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the least common multiple of integers; 0 if either is 0. TypeError: no integers.

    >>> vg.lcm(vg.asarray([4, 6]), 10).tolist()
    [20, 30]
    """
    if where is not True or dtype is not None:
        return in_part(lcm, (x1, x2), out, where, dtype, device)
    call, a, b = _pair("lcm", x1, x2, out, device)
    divisor = _gcd("lcm", a, b)
    result = floor_divide(_size(a), divisor) * _size(b)
    return call.deliver_array(astype(result, a.dtype, copy=False))


def _size(x):
    """Return |x| in the unsigned dtype of as many bytes, which the lowest integer fits, too."""
    if x.dtype.kind == "u":
        return x
    return astype(abs(x), parse_dtype(f"uint{8 * x.itemsize}"))


def _gcd(name, a, b):
    """Return the greatest common divisor by Euclid's algorithm, all elements at the same time."""
    if a.dtype.kind not in "iu":
        raise TypeError(f"{name} takes integers, not {a.dtype}")
    steps = _STEPS[a.itemsize]
    a, b = _size(a), _size(b)
    for _ in range(steps):
        divisor = b if a.backend.on_card else maximum(b, 1)  # NumPy would warn of zeros
        a, b = chosen(equal(b, 0), a, b), remainder(a, divisor)
        if not a.backend.on_card and not item(any(b)):  # a card is not waited for
            break
    return a


# Roots, powers and sines --------------------------------------------------------------------------


@short(short_ufuncs.cbrt, c_order=False)
def cbrt(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the cube root, which negative numbers have, too; as float.

    >>> print(vg.cbrt(vg.asarray([-27.0, 8.0])))
    [-3.  2.]
    """
    if where is not True or dtype is not None:
        return in_part(cbrt, (x,), out, where, dtype, device)
    call = Operands("cbrt", (x,), out, device)
    if not isinstance(x, Array) and out is None:  # what an Array of it gives
        return call.give(cbrt(call.arrays[0]))
    real = _real("cbrt", call.arrays[0].dtype)
    array = astype(call.arrays[0], float64, copy=False)

    def root():
        size = abs(array)
        found = pow(size, 1 / 3)
        if real == float64:  # one step of Newton's, as 1 / 3 has been rounded
            plain = logical_and(not_equal(size, 0.0), less(size, math.inf))
            found = chosen(plain, found - (found - divide(size, found * found)) / 3.0, found)
        return copysign(found, array)

    return call.deliver_array(astype(whole("cbrt", {"x": array}, root), real, copy=False))


@short(short_ufuncs.float_power, c_order=False)
def float_power(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 to the power x2, computed in float64 and as float64.

    >>> vg.float_power(vg.asarray([2, 4]), -1).tolist()
    [0.5, 0.25]
    """
    if where is not True or dtype is not None:
        return in_part(float_power, (x1, x2), out, where, dtype, device)
    call, a, b = _pair("float_power", x1, x2, out, device)
    _real("float_power", a.dtype)
    return call.deliver_array(pow(astype(a, float64, copy=False), astype(b, float64, copy=False)))


@short(short_ufuncs.logaddexp2, c_order=False)
def logaddexp2(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return log2(2 ** x1 + 2 ** x2) without overflow in between, as float.

    >>> print(vg.logaddexp2(vg.asarray([3.0, 1000.0]), vg.asarray([3.0, 1000.0])))
    [   4. 1001.]
    """
    if where is not True or dtype is not None:
        return in_part(logaddexp2, (x1, x2), out, where, dtype, device)
    call, a, b = _pair("logaddexp2", x1, x2, out, device)
    dtype = _real("logaddexp2", a.dtype)
    a, b = (astype(one, work_dtype(dtype), copy=False) for one in (a, b))
    rest = log1p(exp2(negative(abs(a - b)))) * (1 / math.log(2))
    # Of two infinities the distance is NaN, and the sum what it should be.
    result = chosen(equal(a, b), a + 1.0, chosen(isinf(a - b), maximum(a, b), maximum(a, b) + rest))
    return call.deliver_array(astype(result, dtype, copy=False))


@short(short_ufuncs.sinc, c_order=False)
def sinc(x, /, *, device=None):
    """Return sin(pi x) / (pi x), and 1 at 0; as float.

    >>> print(vg.sinc(vg.asarray([0.0, 0.5])))
    [1.         0.63661975]
    """
    call = Operands("sinc", (x,), None, device)
    (array,) = call.arrays
    angle = astype(array, work_dtype(array.dtype), copy=False) * math.pi
    angle = chosen(equal(angle, 0.0), 1e-20, angle)  # whose sine is itself
    result = sin(angle) / angle
    return call.give(astype(result, inexact(array.dtype), copy=False))


# Infinities and bits ------------------------------------------------------------------------------


@short(short_ufuncs.isposinf, c_order=False)
def isposinf(x, /, out=None, *, device=None):
    """Return whether x is infinity, as bool.

    >>> vg.isposinf(vg.asarray([-vg.inf, vg.inf, 0.0])).tolist()
    [False, True, False]
    """
    return equal(x, math.inf, out, device=device)


@short(short_ufuncs.isneginf, c_order=False)
def isneginf(x, /, out=None, *, device=None):
    """Return whether x is -infinity, as bool.

    >>> vg.isneginf(vg.asarray([-vg.inf, vg.inf, 0.0])).tolist()
    [True, False, False]
    """
    return equal(x, -math.inf, out, device=device)


@short(short_ufuncs.bitwise_count, c_order=False)
def bitwise_count(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return how many bits of |x| are 1, as uint8. TypeError: no integers.

    >>> vg.bitwise_count(vg.asarray([0, 7, 255, -1])).tolist()
    [0, 3, 8, 1]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_count, (x,), out, where, dtype, device)
    call = Operands("bitwise_count", (x,), out, device)
    (array,) = call.arrays
    if array.dtype.kind not in "iu":
        raise TypeError(f"bitwise_count takes integers, not {array.dtype}")
    x = _size(array)
    ones = (1 << 8 * x.itemsize) // 255  # a 1 in each byte: the bits of pairs, fours and bytes
    x = x - bitwise_and(x >> 1, 0x55 * ones)
    x = bitwise_and(x, 0x33 * ones) + bitwise_and(x >> 2, 0x33 * ones)
    x = bitwise_and(x + (x >> 4), 0x0F * ones)
    return call.deliver_array(astype((x * ones) >> (8 * (x.itemsize - 1)), uint8, copy=False))
