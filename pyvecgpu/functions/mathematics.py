"""Elementwise functions of mathematics: trigonometry, powers and logarithms, division with a
remainder, predicates. Operands, `out` and `device` are those of elementwise.py.
"""

from ..operations import codes
from . import short_cpu
from .choosing import in_part
from .elementwise import bitwise_left_shift, bitwise_right_shift
from .operators import binary, unary
from .short_operations import of_one, of_two

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "copysign",
    "cos",
    "cosh",
    "divmod",
    "exp2",
    "floor_divide",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "left_shift",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "mod",
    "pow",
    "power",
    "remainder",
    "right_shift",
    "signbit",
    "sin",
    "sinh",
    "tan",
]

# One operand --------------------------------------------------------------------------------------


@of_one(codes.SIN)
def sin(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the sine of x in radians, as float.

    >>> print(vg.sin(vg.asarray([0.0, vg.pi / 2])))
    [0. 1.]
    """
    if where is not True or dtype is not None:
        return in_part(sin, (x,), out, where, dtype, device)
    return unary(codes.SIN, x, out, device)


@of_one(codes.COS)
def cos(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the cosine of x in radians, as float.

    >>> print(vg.cos(vg.asarray([0.0, vg.pi])))
    [ 1. -1.]
    """
    if where is not True or dtype is not None:
        return in_part(cos, (x,), out, where, dtype, device)
    return unary(codes.COS, x, out, device)


@of_one(codes.TAN)
def tan(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the tangent of x in radians, as float.

    >>> print(vg.tan(vg.asarray([0.0, vg.pi / 4])))
    [0. 1.]
    """
    if where is not True or dtype is not None:
        return in_part(tan, (x,), out, where, dtype, device)
    return unary(codes.TAN, x, out, device)


@of_one(codes.ASIN)
def asin(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the angle in radians whose sine is x, as float; NaN outside of [-1, 1].

    >>> print(vg.asin(vg.asarray([0.0, 1.0])))
    [0.        1.5707964]
    """
    if where is not True or dtype is not None:
        return in_part(asin, (x,), out, where, dtype, device)
    return unary(codes.ASIN, x, out, device)


@of_one(codes.ACOS)
def acos(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the angle in radians whose cosine is x, 0 to pi, as float; NaN outside of [-1, 1].

    >>> print(vg.acos(vg.asarray([1.0, 0.0, 2.0])))
    [0.        1.5707964       nan]
    """
    if where is not True or dtype is not None:
        return in_part(acos, (x,), out, where, dtype, device)
    return unary(codes.ACOS, x, out, device)


@of_one(codes.ATAN)
def atan(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the angle in radians whose tangent is x, from -pi/2 to pi/2, as float.

    >>> print(vg.atan(vg.asarray([0.0, 1.0, vg.inf])))
    [0.        0.7853982 1.5707964]
    """
    if where is not True or dtype is not None:
        return in_part(atan, (x,), out, where, dtype, device)
    return unary(codes.ATAN, x, out, device)


@of_one(codes.SINH)
def sinh(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the hyperbolic sine, as float.

    >>> print(vg.sinh(vg.asarray([0.0, 1.0])))
    [0.        1.1752012]
    """
    if where is not True or dtype is not None:
        return in_part(sinh, (x,), out, where, dtype, device)
    return unary(codes.SINH, x, out, device)


@of_one(codes.COSH)
def cosh(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the hyperbolic cosine, as float.

    >>> print(vg.cosh(vg.asarray([0.0, 1.0])))
    [1.        1.5430807]
    """
    if where is not True or dtype is not None:
        return in_part(cosh, (x,), out, where, dtype, device)
    return unary(codes.COSH, x, out, device)


@of_one(codes.ASINH)
def asinh(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the number whose hyperbolic sine is x, as float.

    >>> print(vg.asinh(vg.asarray([0.0, 1.0])))
    [0.        0.8813736]
    """
    if where is not True or dtype is not None:
        return in_part(asinh, (x,), out, where, dtype, device)
    return unary(codes.ASINH, x, out, device)


@of_one(codes.ACOSH)
def acosh(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the number from 0 on whose hyperbolic cosine is x; NaN below 1. As float.

    >>> print(vg.acosh(vg.asarray([1.0, 2.0])))
    [0.       1.316958]
    """
    if where is not True or dtype is not None:
        return in_part(acosh, (x,), out, where, dtype, device)
    return unary(codes.ACOSH, x, out, device)


@of_one(codes.ATANH)
def atanh(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the number whose hyperbolic tangent is x; NaN outside of [-1, 1]. As float.

    >>> print(vg.atanh(vg.asarray([0.0, 0.5, 1.0])))
    [0.         0.54930615        inf]
    """
    if where is not True or dtype is not None:
        return in_part(atanh, (x,), out, where, dtype, device)
    return unary(codes.ATANH, x, out, device)


@of_one(codes.EXP2)
def exp2(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return 2 to the power x, as float.

    >>> vg.exp2(vg.asarray([0, 3, -1])).tolist()
    [1.0, 8.0, 0.5]
    """
    if where is not True or dtype is not None:
        return in_part(exp2, (x,), out, where, dtype, device)
    return unary(codes.EXP2, x, out, device)


@of_one(codes.LOG1P)
def log1p(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return log(1 + x), with all digits where x is near 0; as float.

    >>> print(vg.log1p(vg.asarray([1e-7, 1.0])))
    [9.9999994e-08 6.9314718e-01]
    """
    if where is not True or dtype is not None:
        return in_part(log1p, (x,), out, where, dtype, device)
    return unary(codes.LOG1P, x, out, device)


@of_one(codes.LOG2)
def log2(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the logarithm to the base 2, as float.

    >>> print(vg.log2(vg.asarray([8.0, 0.5])))
    [ 3. -1.]
    """
    if where is not True or dtype is not None:
        return in_part(log2, (x,), out, where, dtype, device)
    return unary(codes.LOG2, x, out, device)


@of_one(codes.LOG10)
def log10(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the logarithm to the base 10, as float.

    >>> print(vg.log10(vg.asarray([100.0, 1.0])))
    [2.0000002 0.       ]
    """
    if where is not True or dtype is not None:
        return in_part(log10, (x,), out, where, dtype, device)
    return unary(codes.LOG10, x, out, device)


@of_one(codes.ISNAN)
def isnan(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether x is NaN, as bool.

    >>> vg.isnan(vg.asarray([1.0, vg.inf, vg.nan])).tolist()
    [False, False, True]
    """
    if where is not True or dtype is not None:
        return in_part(isnan, (x,), out, where, dtype, device)
    return unary(codes.ISNAN, x, out, device)


@of_one(codes.ISINF)
def isinf(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether x is infinite, as bool.

    >>> vg.isinf(vg.asarray([1.0, -vg.inf, vg.nan])).tolist()
    [False, True, False]
    """
    if where is not True or dtype is not None:
        return in_part(isinf, (x,), out, where, dtype, device)
    return unary(codes.ISINF, x, out, device)


@of_one(codes.ISFINITE)
def isfinite(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether x is neither NaN nor infinite, as bool.

    >>> vg.isfinite(vg.asarray([1.0, vg.inf, vg.nan])).tolist()
    [True, False, False]
    """
    if where is not True or dtype is not None:
        return in_part(isfinite, (x,), out, where, dtype, device)
    return unary(codes.ISFINITE, x, out, device)


@of_one(codes.SIGNBIT)
def signbit(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether x is negative, -0.0 or a NaN with that sign; as bool.

    >>> vg.signbit(vg.asarray([-2.0, -0.0, 0.0])).tolist()
    [True, True, False]
    """
    if where is not True or dtype is not None:
        return in_part(signbit, (x,), out, where, dtype, device)
    return unary(codes.SIGNBIT, x, out, device)


# Two operands -------------------------------------------------------------------------------------


@of_two(codes.REMAINDER)
def remainder(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return what dividing x1 by x2 leaves, with the sign of x2: x1 % x2. TypeError: bool.

    Of an integer by 0 it is 0, of a float NaN.

    >>> vg.remainder(vg.asarray([7, -7]), 3).tolist()
    [1, 2]
    """
    if where is not True or dtype is not None:
        return in_part(remainder, (x1, x2), out, where, dtype, device)
    return binary(codes.REMAINDER, x1, x2, out, device)


@of_two(codes.FLOOR_DIVIDE)
def floor_divide(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 / x2 rounded down: x1 // x2. TypeError: bool.

    Of an integer by 0 it is 0. Floats have the same quotient as Python's.

    >>> vg.floor_divide(vg.asarray([7, -7]), 2).tolist()
    [3, -4]
    """
    if where is not True or dtype is not None:
        return in_part(floor_divide, (x1, x2), out, where, dtype, device)
    return binary(codes.FLOOR_DIVIDE, x1, x2, out, device)


def divmod(x1, x2, /):
    """Return x1 // x2 and x1 % x2, a tuple. TypeError: bool.

    >>> quotient, rest = vg.divmod(vg.asarray([7, -7]), 3)
    >>> quotient.tolist(), rest.tolist()
    ([2, -3], [1, 2])
    """
    result = short_cpu.division(x1, x2)
    return (floor_divide(x1, x2), remainder(x1, x2)) if result is None else result


@of_two(codes.POW)
def pow(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 to the power x2: x1 ** x2; integers wrap. TypeError: bool.

    Negative powers of integers are rounded toward zero, where NumPy raises ValueError.

    >>> vg.pow(vg.asarray([2, 3]), vg.asarray([3, 2])).tolist()
    [8, 9]
    """
    if where is not True or dtype is not None:
        return in_part(pow, (x1, x2), out, where, dtype, device)
    return binary(codes.POW, x1, x2, out, device)


@of_two(codes.ATAN2)
def atan2(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the angle in radians of the point (x2, x1), from -pi to pi, as float.

    >>> print(vg.atan2(vg.asarray([1.0, -1.0]), vg.asarray([-1.0, -1.0])))
    [ 2.3561945 -2.3561945]
    """
    if where is not True or dtype is not None:
        return in_part(atan2, (x1, x2), out, where, dtype, device)
    return binary(codes.ATAN2, x1, x2, out, device)


@of_two(codes.HYPOT)
def hypot(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return sqrt(x1 * x1 + x2 * x2) without overflow in between, as float.

    >>> print(vg.hypot(vg.asarray([3.0, 3e30]), vg.asarray([4.0, 4e30])))
    [5.e+00 5.e+30]
    """
    if where is not True or dtype is not None:
        return in_part(hypot, (x1, x2), out, where, dtype, device)
    return binary(codes.HYPOT, x1, x2, out, device)


@of_two(codes.COPYSIGN)
def copysign(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return |x1| with the sign of x2, as float.

    >>> vg.copysign(vg.asarray([1.0, 2.0]), vg.asarray([-0.0, 3.0])).tolist()
    [-1.0, 2.0]
    """
    if where is not True or dtype is not None:
        return in_part(copysign, (x1, x2), out, where, dtype, device)
    return binary(codes.COPYSIGN, x1, x2, out, device)


@of_two(codes.LOGADDEXP)
def logaddexp(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return log(exp(x1) + exp(x2)) without overflow in between, as float.

    >>> print(vg.logaddexp(vg.asarray([0.0, 1000.0]), vg.asarray([0.0, 1000.0])))
    [6.9314718e-01 1.0006932e+03]
    """
    if where is not True or dtype is not None:
        return in_part(logaddexp, (x1, x2), out, where, dtype, device)
    return binary(codes.LOGADDEXP, x1, x2, out, device)


# NumPy's other names ------------------------------------------------------------------------------

arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
power = pow
mod = remainder
left_shift = bitwise_left_shift
right_shift = bitwise_right_shift
