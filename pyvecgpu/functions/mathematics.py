"""Elementwise functions of mathematics: trigonometry, powers and logarithms, division with a
remainder, predicates. Operands, `out` and `device` are those of elementwise.py.
"""

from ..operations import Operation
from .elementwise import binary, bitwise_left_shift, bitwise_right_shift, unary

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


def sin(x, /, out=None, *, device=None):
    """Return the sine of x in radians, as float."""
    return unary(Operation.SIN, x, out, device)


def cos(x, /, out=None, *, device=None):
    """Return the cosine of x in radians, as float."""
    return unary(Operation.COS, x, out, device)


def tan(x, /, out=None, *, device=None):
    """Return the tangent of x in radians, as float."""
    return unary(Operation.TAN, x, out, device)


def asin(x, /, out=None, *, device=None):
    """Return the angle in radians whose sine is x, as float; NaN outside of [-1, 1]."""
    return unary(Operation.ASIN, x, out, device)


def acos(x, /, out=None, *, device=None):
    """Return the angle in radians whose cosine is x, 0 to pi, as float; NaN outside of [-1, 1]."""
    return unary(Operation.ACOS, x, out, device)


def atan(x, /, out=None, *, device=None):
    """Return the angle in radians whose tangent is x, from -pi/2 to pi/2, as float."""
    return unary(Operation.ATAN, x, out, device)


def sinh(x, /, out=None, *, device=None):
    """Return the hyperbolic sine, as float."""
    return unary(Operation.SINH, x, out, device)


def cosh(x, /, out=None, *, device=None):
    """Return the hyperbolic cosine, as float."""
    return unary(Operation.COSH, x, out, device)


def asinh(x, /, out=None, *, device=None):
    """Return the number whose hyperbolic sine is x, as float."""
    return unary(Operation.ASINH, x, out, device)


def acosh(x, /, out=None, *, device=None):
    """Return the number from 0 on whose hyperbolic cosine is x; NaN below 1. As float."""
    return unary(Operation.ACOSH, x, out, device)


def atanh(x, /, out=None, *, device=None):
    """Return the number whose hyperbolic tangent is x; NaN outside of [-1, 1]. As float."""
    return unary(Operation.ATANH, x, out, device)


def exp2(x, /, out=None, *, device=None):
    """Return 2 to the power x, as float."""
    return unary(Operation.EXP2, x, out, device)


def log1p(x, /, out=None, *, device=None):
    """Return log(1 + x), with all digits where x is near 0; as float."""
    return unary(Operation.LOG1P, x, out, device)


def log2(x, /, out=None, *, device=None):
    """Return the logarithm to the base 2, as float."""
    return unary(Operation.LOG2, x, out, device)


def log10(x, /, out=None, *, device=None):
    """Return the logarithm to the base 10, as float."""
    return unary(Operation.LOG10, x, out, device)


def isnan(x, /, out=None, *, device=None):
    """Return whether x is NaN, as bool."""
    return unary(Operation.ISNAN, x, out, device)


def isinf(x, /, out=None, *, device=None):
    """Return whether x is infinite, as bool."""
    return unary(Operation.ISINF, x, out, device)


def isfinite(x, /, out=None, *, device=None):
    """Return whether x is neither NaN nor infinite, as bool."""
    return unary(Operation.ISFINITE, x, out, device)


def signbit(x, /, out=None, *, device=None):
    """Return whether x is negative, -0.0 or a NaN with that sign; as bool."""
    return unary(Operation.SIGNBIT, x, out, device)


# Two operands -------------------------------------------------------------------------------------


def remainder(x1, x2, /, out=None, *, device=None):
    """Return what dividing x1 by x2 leaves, with the sign of x2: x1 % x2. TypeError: bool.

    Of an integer by 0 it is 0, of a float NaN.
    """
    return binary(Operation.REMAINDER, x1, x2, out, device)


def floor_divide(x1, x2, /, out=None, *, device=None):
    """Return x1 / x2 rounded down: x1 // x2. TypeError: bool.

    Of an integer by 0 it is 0. Floats have the same quotient as Python's.
    """
    return binary(Operation.FLOOR_DIVIDE, x1, x2, out, device)


def divmod(x1, x2, /):
    """Return x1 // x2 and x1 % x2, a tuple. TypeError: bool."""
    return floor_divide(x1, x2), remainder(x1, x2)


def pow(x1, x2, /, out=None, *, device=None):
    """Return x1 to the power x2: x1 ** x2; integers wrap. TypeError: bool.

    Negative powers of integers are rounded toward zero, where NumPy raises ValueError.
    """
    return binary(Operation.POW, x1, x2, out, device)


def atan2(x1, x2, /, out=None, *, device=None):
    """Return the angle in radians of the point (x2, x1), from -pi to pi, as float."""
    return binary(Operation.ATAN2, x1, x2, out, device)


def hypot(x1, x2, /, out=None, *, device=None):
    """Return sqrt(x1 * x1 + x2 * x2) without overflow in between, as float."""
    return binary(Operation.HYPOT, x1, x2, out, device)


def copysign(x1, x2, /, out=None, *, device=None):
    """Return |x1| with the sign of x2, as float."""
    return binary(Operation.COPYSIGN, x1, x2, out, device)


def logaddexp(x1, x2, /, out=None, *, device=None):
    """Return log(exp(x1) + exp(x2)) without overflow in between, as float."""
    return binary(Operation.LOGADDEXP, x1, x2, out, device)


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
