"""Elementwise functions: arithmetic, comparisons, exp and its kin.

Operands are Arrays, NumPy arrays, and Python scalars beside at least one array; they are broadcast
and promoted as in NumPy, with Python scalars weak. `out` is written and returned; it has the
result's shape and may overlap the operands. `where`, bools that are broadcast with the operands,
says which elements are computed: the others are those of `out`, or 0 without it. `dtype`: what is
computed in and the result has; TypeError where operands have no "same_kind" cast to it. `device`
says where NumPy operands are computed.
Float functions of bools and integers give the default float dtype; those of complex numbers, their
values on the principal branch. What needs an order refuses complex numbers: TypeError. Large NumPy
operands go through in parts (pipeline.py).
"""

import builtins
import math

from ..array import Array
from ..dispatch import apply
from ..dtypes import float32, float64, is_half, is_integer, real_dtype
from ..operations import codes
from . import short_cpu
from .arguments import Operands, is_scalar, parse_int
from .choosing import in_part
from .choosing import where as chosen
from .operators import binary, unary
from .short_operations import of_one, of_two

__all__ = [
    "abs",
    "add",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "positive",
    "reciprocal",
    "round",
    "sign",
    "sqrt",
    "square",
    "subtract",
    "trunc",
]


# One operand --------------------------------------------------------------------------------------


@of_one(codes.ABS)
def abs(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return |x|; integers wrap. Of complex numbers it is their length, a float.

    >>> vg.abs(vg.asarray([-2, 3])).tolist()
    [2, 3]
    >>> vg.abs(vg.asarray([3 + 4j])).tolist()
    [5.0]
    """
    if where is not True or dtype is not None:
        return in_part(abs, (x,), out, where, dtype, device)
    return unary(codes.ABS, x, out, device)


@of_one(codes.EXP)
def exp(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return e to the power x, as float.

    >>> print(vg.exp(vg.asarray([0, 1, 2])))
    [1.        2.718282  7.3890557]
    """
    if where is not True or dtype is not None:
        return in_part(exp, (x,), out, where, dtype, device)
    return unary(codes.EXP, x, out, device)


@of_one(codes.EXPM1)
def expm1(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return e to the power x, minus 1, with all digits where x is near 0; as float.

    >>> print(vg.expm1(vg.asarray([1e-7, 1.0])))
    [1.0000001e-07 1.7182819e+00]
    """
    if where is not True or dtype is not None:
        return in_part(expm1, (x,), out, where, dtype, device)
    return unary(codes.EXPM1, x, out, device)


@of_one(codes.LOG)
def log(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the natural logarithm, as float.

    >>> print(vg.log(vg.asarray([1.0, vg.e, 0.0])))
    [  0.   1. -inf]
    """
    if where is not True or dtype is not None:
        return in_part(log, (x,), out, where, dtype, device)
    return unary(codes.LOG, x, out, device)


@of_one(codes.NEGATIVE)
def negative(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return -x; integers wrap. TypeError: bool.

    >>> vg.negative(vg.asarray([1, -2])).tolist()
    [-1, 2]
    >>> vg.negative(vg.asarray([1], dtype="uint8")).tolist()
    [255]
    """
    if where is not True or dtype is not None:
        return in_part(negative, (x,), out, where, dtype, device)
    return unary(codes.NEGATIVE, x, out, device)


@of_one(codes.SQRT)
def sqrt(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the square root, as float.

    >>> vg.sqrt(vg.asarray([4, 9])).tolist()
    [2.0, 3.0]
    >>> print(vg.sqrt(vg.asarray([-4 + 0j])))
    [0.+2.j]
    """
    if where is not True or dtype is not None:
        return in_part(sqrt, (x,), out, where, dtype, device)
    return unary(codes.SQRT, x, out, device)


@of_one(codes.RECIPROCAL)
def reciprocal(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return 1 / x, as float.

    >>> vg.reciprocal(vg.asarray([2, 4])).tolist()
    [0.5, 0.25]
    """
    if where is not True or dtype is not None:
        return in_part(reciprocal, (x,), out, where, dtype, device)
    return unary(codes.RECIPROCAL, x, out, device)


@of_one(codes.POSITIVE)
def positive(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return a copy of x. TypeError: bool.

    >>> vg.positive(vg.asarray([1, -2])).tolist()
    [1, -2]
    """
    if where is not True or dtype is not None:
        return in_part(positive, (x,), out, where, dtype, device)
    return unary(codes.POSITIVE, x, out, device)


@of_one(codes.SIGN)
def sign(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return -1, 0 or 1 as x is; NaN stays. Of complex numbers x / |x|. TypeError: bool.

    >>> vg.sign(vg.asarray([-3.0, 0.0, 0.5])).tolist()
    [-1.0, 0.0, 1.0]
    """
    if where is not True or dtype is not None:
        return in_part(sign, (x,), out, where, dtype, device)
    return unary(codes.SIGN, x, out, device)


@of_one(codes.SQUARE)
def square(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return x * x; integers wrap. TypeError: bool.

    >>> vg.square(vg.asarray([-3, 4])).tolist()
    [9, 16]
    """
    if where is not True or dtype is not None:
        return in_part(square, (x,), out, where, dtype, device)
    return unary(codes.SQUARE, x, out, device)


@of_one(codes.FLOOR)
def floor(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the largest integer that is not above x, in x's dtype. TypeError: bool.

    >>> vg.floor(vg.asarray([-1.5, 0.2])).tolist()
    [-2.0, 0.0]
    """
    if where is not True or dtype is not None:
        return in_part(floor, (x,), out, where, dtype, device)
    return unary(codes.FLOOR, x, out, device)


@of_one(codes.CEIL)
def ceil(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the smallest integer that is not below x, in x's dtype. TypeError: bool.

    >>> vg.ceil(vg.asarray([-1.5, 0.2])).tolist()
    [-1.0, 1.0]
    """
    if where is not True or dtype is not None:
        return in_part(ceil, (x,), out, where, dtype, device)
    return unary(codes.CEIL, x, out, device)


@of_one(codes.TRUNC)
def trunc(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return x without what is behind the point, in its dtype. TypeError: bool.

    >>> vg.trunc(vg.asarray([-1.5, 1.5])).tolist()
    [-1.0, 1.0]
    """
    if where is not True or dtype is not None:
        return in_part(trunc, (x,), out, where, dtype, device)
    return unary(codes.TRUNC, x, out, device)


@of_one(codes.BITWISE_INVERT)
def bitwise_invert(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return ~x: all bits inverted; of bools, not x. TypeError: floats.

    >>> vg.bitwise_invert(vg.asarray([0, 5])).tolist()
    [-1, -6]
    >>> vg.bitwise_invert(vg.asarray([True, False])).tolist()
    [False, True]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_invert, (x,), out, where, dtype, device)
    return unary(codes.BITWISE_INVERT, x, out, device)


def round(x, /, decimals=0, out=None, *, device=None):
    """Return the nearest number with so many decimals, half way the even one; of both parts.

    decimals: an integer; negative ones round before the point. It is the nearest integer to x times
    a power of ten, divided by that again. TypeError: bool, or decimals that are no integer.

    >>> vg.round(vg.asarray([0.5, 1.5, 2.25])).tolist()
    [0.0, 2.0, 2.0]
    >>> vg.round(vg.asarray([1234, 1250]), -2).tolist()
    [1200, 1200]
    """
    decimals = parse_int(decimals, "decimals")
    if decimals == 0:
        return unary(codes.ROUND, x, out, device)
    if decimals > 0 and out is None and device is None:
        result = short_cpu.rounded(x, decimals)
        if result is not None:
            return result
    call = Operands("round", (x,), out, device)
    array = call.arrays[0]
    if array.dtype.kind == "b":
        raise TypeError("round does not take bool")
    return call.deliver_array(_rounded(array, decimals))


def _rounded(x, decimals):
    dtype, integers = x.dtype, is_integer(x.dtype)
    if integers and decimals > 0:
        return positive(x)
    if integers or is_half(dtype):
        x = apply(x.backend, "cast", x, float64 if integers else float32, None)
    most = 38 if real_dtype(x.dtype) == float32 else 308
    power = math.inf if decimals > most else 10.0 ** min(builtins.abs(decimals), most)
    there, back = (multiply, divide) if decimals > 0 else (divide, multiply)
    result = back(unary(codes.ROUND, there(x, power)), power)
    if not integers:  # what has no decimals to lose may be beyond all bounds when multiplied
        result = chosen(less(unary(codes.ABS, there(x, power)), math.inf), result, x)
    return apply(x.backend, "cast", result, dtype, None) if result.dtype != dtype else result


def logical_not(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether x is 0.

    >>> vg.logical_not(vg.asarray([2, 0])).tolist()
    [False, True]
    """
    if where is not True or dtype is not None:
        return in_part(logical_not, (x,), out, where, dtype, device)
    return equal(x, False, out, device=device)


# Two operands -------------------------------------------------------------------------------------


@of_two(codes.ADD)
def add(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 + x2; of bools, x1 or x2.

    >>> vg.add(vg.asarray([[1, 2], [3, 4]]), vg.asarray([10, 20])).tolist()
    [[11, 22], [13, 24]]
    """
    if where is not True or dtype is not None:
        return in_part(add, (x1, x2), out, where, dtype, device)
    return binary(codes.ADD, x1, x2, out, device)


@of_two(codes.SUBTRACT)
def subtract(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 - x2. TypeError: two bools.

    >>> vg.subtract(vg.asarray([5, 7]), 2).tolist()
    [3, 5]
    """
    if where is not True or dtype is not None:
        return in_part(subtract, (x1, x2), out, where, dtype, device)
    return binary(codes.SUBTRACT, x1, x2, out, device)


@of_two(codes.MULTIPLY)
def multiply(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 * x2; of bools, x1 and x2.

    >>> vg.multiply(vg.asarray([[1], [2]]), vg.asarray([10, 20])).tolist()
    [[10, 20], [20, 40]]
    """
    if where is not True or dtype is not None:
        return in_part(multiply, (x1, x2), out, where, dtype, device)
    return binary(codes.MULTIPLY, x1, x2, out, device)


@of_two(codes.DIVIDE)
def divide(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 / x2, as float.

    >>> vg.divide(vg.asarray([1, 3]), 2).tolist()
    [0.5, 1.5]
    >>> print(vg.divide(vg.asarray([1.0, 0.0]), 0))
    [inf nan]
    """
    if where is not True or dtype is not None:
        return in_part(divide, (x1, x2), out, where, dtype, device)
    return binary(codes.DIVIDE, x1, x2, out, device)


@of_two(codes.BITWISE_LEFT_SHIFT)
def bitwise_left_shift(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 << x2; by negative numbers or the width and more, 0. TypeError: no integers.

    >>> vg.bitwise_left_shift(vg.asarray([1, 3]), 2).tolist()
    [4, 12]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_left_shift, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_LEFT_SHIFT, x1, x2, out, device)


@of_two(codes.BITWISE_RIGHT_SHIFT)
def bitwise_right_shift(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 >> x2; by negative numbers or the width and more, 0 or -1. TypeError: floats.

    >>> vg.bitwise_right_shift(vg.asarray([16, -16]), 2).tolist()
    [4, -4]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_right_shift, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_RIGHT_SHIFT, x1, x2, out, device)


@of_two(codes.MAXIMUM)
def maximum(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the larger of x1 and x2; NaN if either is NaN, and 0.0 of 0.0 and -0.0.

    >>> vg.maximum(vg.asarray([1.0, vg.nan]), vg.asarray([2.0, 0.5])).tolist()
    [2.0, nan]
    """
    if where is not True or dtype is not None:
        return in_part(maximum, (x1, x2), out, where, dtype, device)
    return binary(codes.MAXIMUM, x1, x2, out, device)


@of_two(codes.MINIMUM)
def minimum(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the smaller of x1 and x2; NaN if either is NaN, and -0.0 of 0.0 and -0.0.

    >>> vg.minimum(vg.asarray([1, 7]), 5).tolist()
    [1, 5]
    """
    if where is not True or dtype is not None:
        return in_part(minimum, (x1, x2), out, where, dtype, device)
    return binary(codes.MINIMUM, x1, x2, out, device)


@of_two(codes.EQUAL)
def equal(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 == x2 as bool.

    >>> vg.equal(vg.asarray([1, 2, 3]), vg.asarray([1, 0, 3])).tolist()
    [True, False, True]
    """
    if where is not True or dtype is not None:
        return in_part(equal, (x1, x2), out, where, dtype, device)
    return binary(codes.EQUAL, x1, x2, out, device)


@of_two(codes.NOT_EQUAL)
def not_equal(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 != x2 as bool.

    >>> vg.not_equal(vg.asarray([1, 2, 3]), vg.asarray([1, 0, 3])).tolist()
    [False, True, False]
    """
    if where is not True or dtype is not None:
        return in_part(not_equal, (x1, x2), out, where, dtype, device)
    return binary(codes.NOT_EQUAL, x1, x2, out, device)


@of_two(codes.LESS)
def less(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 < x2 as bool.

    >>> vg.less(vg.asarray([1, 2, 3]), 2).tolist()
    [True, False, False]
    """
    if where is not True or dtype is not None:
        return in_part(less, (x1, x2), out, where, dtype, device)
    return binary(codes.LESS, x1, x2, out, device)


@of_two(codes.LESS_EQUAL)
def less_equal(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 <= x2 as bool.

    >>> vg.less_equal(vg.asarray([1, 2, 3]), 2).tolist()
    [True, True, False]
    """
    if where is not True or dtype is not None:
        return in_part(less_equal, (x1, x2), out, where, dtype, device)
    return binary(codes.LESS_EQUAL, x1, x2, out, device)


@of_two(codes.GREATER)
def greater(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 > x2 as bool.

    >>> vg.greater(vg.asarray([1, 2, 3]), 2).tolist()
    [False, False, True]
    """
    if where is not True or dtype is not None:
        return in_part(greater, (x1, x2), out, where, dtype, device)
    return binary(codes.GREATER, x1, x2, out, device)


@of_two(codes.GREATER_EQUAL)
def greater_equal(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 >= x2 as bool.

    >>> vg.greater_equal(vg.asarray([1, 2, 3]), 2).tolist()
    [False, True, True]
    """
    if where is not True or dtype is not None:
        return in_part(greater_equal, (x1, x2), out, where, dtype, device)
    return binary(codes.GREATER_EQUAL, x1, x2, out, device)


@of_two(codes.BITWISE_AND)
def bitwise_and(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 & x2, bit by bit. TypeError: floats.

    >>> vg.bitwise_and(vg.asarray([12, 10]), 6).tolist()
    [4, 2]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_and, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_AND, x1, x2, out, device)


@of_two(codes.BITWISE_OR)
def bitwise_or(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 | x2, bit by bit. TypeError: floats.

    >>> vg.bitwise_or(vg.asarray([12, 10]), 1).tolist()
    [13, 11]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_or, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_OR, x1, x2, out, device)


@of_two(codes.BITWISE_XOR)
def bitwise_xor(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 ^ x2, bit by bit. TypeError: floats.

    >>> vg.bitwise_xor(vg.asarray([12, 10]), 6).tolist()
    [10, 12]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_xor, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_XOR, x1, x2, out, device)


@of_two(codes.LOGICAL_AND)
def logical_and(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether both are other than 0, as NaN is.

    >>> vg.logical_and(vg.asarray([2, 0]), vg.asarray([1, 1])).tolist()
    [True, False]
    """
    if where is not True or dtype is not None:
        return in_part(logical_and, (x1, x2), out, where, dtype, device)
    return binary(codes.LOGICAL_AND, _truth(x1), _truth(x2), out, device)


@of_two(codes.LOGICAL_OR)
def logical_or(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether at least one is other than 0, as NaN is.

    >>> vg.logical_or(vg.asarray([2, 0]), vg.asarray([0, 0])).tolist()
    [True, False]
    """
    if where is not True or dtype is not None:
        return in_part(logical_or, (x1, x2), out, where, dtype, device)
    return binary(codes.LOGICAL_OR, _truth(x1), _truth(x2), out, device)


@of_two(codes.LOGICAL_XOR)
def logical_xor(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether exactly one is other than 0, as NaN is.

    >>> vg.logical_xor(vg.asarray([2, 2]), vg.asarray([1, 0])).tolist()
    [False, True]
    """
    if where is not True or dtype is not None:
        return in_part(logical_xor, (x1, x2), out, where, dtype, device)
    return binary(codes.LOGICAL_XOR, _truth(x1), _truth(x2), out, device)


def _truth(x):
    """Return an operand of logic: of a Python scalar a bool, which every dtype holds."""
    return x if type(x) is Array or not is_scalar(x) else x != 0
