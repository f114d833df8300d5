"""Elementwise functions: arithmetic, comparisons, exp and its kin, where.

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

import numpy as np

from ..array import Array
from ..dispatch import WAYS, apply
from ..dtype_queries import can_cast
from ..dtypes import bool as bool_dtype
from ..dtypes import float32, float64, is_half, is_integer, parse_dtype, promote_scalar, real_dtype
from ..operations import OPERATIONS, codes
from . import pipeline, short_cpu
from .arguments import Operands, are_operands, is_host, is_scalar, parse_int, strong
from .casting import active, exchanged
from .lists import begins_with_array, is_list, stacked

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
    "where",
]


# Frequent powers of floats and complex numbers, as NumPy computes them too.
_POWERS = {
    -1: codes.RECIPROCAL,
    0.5: codes.SQRT,
    1: codes.POSITIVE,
    2: codes.SQUARE,
}


_PLAIN = {Array, float, int, bool}  # operands that need no look at what they are


def operator(code, left, right, out):
    """Return the result of a Python operator; NotImplemented if an operand is of a foreign type."""
    plain = type(left) in _PLAIN and type(right) in _PLAIN
    if plain or are_operands(left, right):
        return binary(code, left, right, out)
    return NotImplemented


def raised(left, right, out):
    """Return the result of left ** right as operator() does: frequent powers by what is quicker.

    ValueError: integers to a negative power, if that is a Python int, as NumPy has it.
    """
    kind = left.dtype.kind
    if type(right) is int and kind in "iu":
        if right < 0:
            raise ValueError(f"integers have no integer power {right}: make them floats first")
        if right == 2:
            return unary(codes.SQUARE, left, out)
    if active and out is None:
        left, right = exchanged("pow", (left, right))
    if kind in "fc" and type(right) in (int, float) and right in _POWERS:
        return unary(_POWERS[right], left, out)
    return operator(codes.POW, left, right, out)


def division(left, right):
    """Return left // right and left % right as operator() does."""
    result = short_cpu.division(left, right)
    if result is not None:
        return result
    quotient = operator(codes.FLOOR_DIVIDE, left, right, None)
    if quotient is NotImplemented:
        return NotImplemented
    return quotient, operator(codes.REMAINDER, left, right, None)


_UNARY, _BINARY, _SCALAR, _WHERE = map(WAYS.__getitem__, ("unary", "binary", "scalar", "where"))
_SCALARS = {float, int, bool}


def _beside(out, x):
    return type(out) is Array and out.backend is x.backend


def unary(code, x, out=None, device=None):
    """Return operation `code` of pvg_unary."""
    if type(x) is Array and not active and device is None and (out is None or _beside(out, x)):
        return _UNARY(x.backend, code, x, out)
    if type(x) is not Array:
        result = pipeline.compute(lambda x: unary(code, x), (x,), out, device)
        if result is not None:
            return result
    call = Operands(OPERATIONS[code].name, (x,), out, device)
    return call.apply("unary", code, call.arrays[0])


def binary(code, x1, x2, out=None, device=None):
    """Return operation `code` of pvg_binary or, with a Python scalar, of pvg_binary_scalar."""
    if device is None and not active:
        first, second = type(x1), type(x2)
        if first is Array and (out is None or _beside(out, x1)):
            if second is Array:
                if x1.backend is x2.backend:
                    return _BINARY(x1.backend, code, x1, x2, out)
            elif second in _SCALARS:
                return _SCALAR(x1.backend, code, x1, x2, 1, out)
        elif second is Array and first in _SCALARS and (out is None or _beside(out, x2)):
            return _SCALAR(x2.backend, code, x2, x1, 0, out)
    if type(x1) is not Array and type(x2) is not Array:
        result = pipeline.compute(lambda a, b: binary(code, a, b), (x1, x2), out, device)
        if result is not None:
            return result
    call = Operands(OPERATIONS[code].name, (x1, x2), out, device)
    a, b = call.arrays
    if is_scalar(b):
        return call.apply("scalar", code, a, b, 1)
    if is_scalar(a):
        return call.apply("scalar", code, b, a, 0)
    return call.apply("binary", code, a, b)


def in_part(function, operands, out, mask, dtype, device):
    """Return function(*operands) computed in a dtype, or where a mask is true; else 0, or `out`.

    dtype: operands are cast to it, and the result, unless it is bool. TypeError: that is no
    "same_kind" cast, or the result's to `out`. ValueError: the mask or `out` does not fit.
    """
    name = function.__name__
    if isinstance(mask, (builtins.bool, np.bool_)):
        mask = True if mask else np.asarray(False)  # of no axes: it fits everything
    if dtype is not None:
        dtype = parse_dtype(dtype)
        if dtype != bool_dtype or not _gives_bools(function, operands):
            operands = [_in_dtype(name, x, dtype) for x in operands]
    if mask is not True:  # what is not computed has no part in gradients, whatever its slope is
        operands = [
            where(mask, x, 1) if isinstance(x, Array) and x.requires_grad else x for x in operands
        ]
    with np.errstate(all="ignore"):  # of elements that are not asked for
        result = function(*operands, device=device)
    if dtype is not None and result.dtype != dtype and result.dtype.kind != "b":
        if not can_cast(result.dtype, dtype, "same_kind"):
            raise TypeError(f"{name}: its results of {result.dtype} are not computed in {dtype}")
        result = result.astype(dtype)
    if out is None:
        return result if mask is True else where(mask, result, result.dtype.type(0))
    if not isinstance(out, Array):
        if not isinstance(out, np.ndarray) or isinstance(result, Array) or isinstance(mask, Array):
            raise TypeError(f"{name}: out is an Array or None, not {type(out).__name__}")
        np.copyto(out, result, where=mask)
        return out
    if not can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(f"{name}: {result.dtype} is no same_kind cast to {out.dtype}, that of out")
    result = result.astype(out.dtype)
    result = result if mask is True else where(mask, result, out)
    if result.shape != out.shape:
        raise ValueError(f"out has shape {out.shape}, the result has {result.shape}")
    apply(out.backend, "copy", result, out)
    return out


def _gives_bools(function, operands):
    """Whether a function's results are bools, of whatever operands."""
    return function(*(np.zeros(0, np.int64) for _ in operands), device="cpu").dtype == bool_dtype


_KINDS = {builtins.bool: "biufc", int: "iufc", float: "fc", complex: "c"}


def _in_dtype(name, x, dtype):
    """Return an operand in a dtype; Python's scalars are weak."""
    if is_scalar(x):
        kind = next(kind for kind in _KINDS if isinstance(x, kind))
        if ("f" if is_half(dtype) else dtype.kind) not in _KINDS[kind]:
            raise TypeError(f"{name}: {x!r} is not computed with in {dtype}")
        return x
    if is_list(x):
        x = stacked(x) if begins_with_array(x) else np.asarray(x)
    if not isinstance(x, Array) and not is_host(x):
        kind = type(x).__name__
        raise TypeError(f"{name} takes arrays, not {kind}; make one with asarray(...)")
    if not can_cast(x.dtype, dtype, "same_kind"):
        raise TypeError(f"{name}: operands of {x.dtype} are not computed with in {dtype}")
    return x.astype(dtype)


# One operand --------------------------------------------------------------------------------------


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


def exp(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return e to the power x, as float.

    >>> print(vg.exp(vg.asarray([0, 1, 2])))
    [1.        2.718282  7.3890557]
    """
    if where is not True or dtype is not None:
        return in_part(exp, (x,), out, where, dtype, device)
    return unary(codes.EXP, x, out, device)


def expm1(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return e to the power x, minus 1, with all digits where x is near 0; as float.

    >>> print(vg.expm1(vg.asarray([1e-7, 1.0])))
    [1.0000001e-07 1.7182819e+00]
    """
    if where is not True or dtype is not None:
        return in_part(expm1, (x,), out, where, dtype, device)
    return unary(codes.EXPM1, x, out, device)


def log(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the natural logarithm, as float.

    >>> print(vg.log(vg.asarray([1.0, vg.e, 0.0])))
    [  0.   1. -inf]
    """
    if where is not True or dtype is not None:
        return in_part(log, (x,), out, where, dtype, device)
    return unary(codes.LOG, x, out, device)


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


def reciprocal(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return 1 / x, as float.

    >>> vg.reciprocal(vg.asarray([2, 4])).tolist()
    [0.5, 0.25]
    """
    if where is not True or dtype is not None:
        return in_part(reciprocal, (x,), out, where, dtype, device)
    return unary(codes.RECIPROCAL, x, out, device)


def positive(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return a copy of x. TypeError: bool.

    >>> vg.positive(vg.asarray([1, -2])).tolist()
    [1, -2]
    """
    if where is not True or dtype is not None:
        return in_part(positive, (x,), out, where, dtype, device)
    return unary(codes.POSITIVE, x, out, device)


def sign(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return -1, 0 or 1 as x is; NaN stays. Of complex numbers x / |x|. TypeError: bool.

    >>> vg.sign(vg.asarray([-3.0, 0.0, 0.5])).tolist()
    [-1.0, 0.0, 1.0]
    """
    if where is not True or dtype is not None:
        return in_part(sign, (x,), out, where, dtype, device)
    return unary(codes.SIGN, x, out, device)


def square(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return x * x; integers wrap. TypeError: bool.

    >>> vg.square(vg.asarray([-3, 4])).tolist()
    [9, 16]
    """
    if where is not True or dtype is not None:
        return in_part(square, (x,), out, where, dtype, device)
    return unary(codes.SQUARE, x, out, device)


def floor(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the largest integer that is not above x, in x's dtype. TypeError: bool.

    >>> vg.floor(vg.asarray([-1.5, 0.2])).tolist()
    [-2.0, 0.0]
    """
    if where is not True or dtype is not None:
        return in_part(floor, (x,), out, where, dtype, device)
    return unary(codes.FLOOR, x, out, device)


def ceil(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the smallest integer that is not below x, in x's dtype. TypeError: bool.

    >>> vg.ceil(vg.asarray([-1.5, 0.2])).tolist()
    [-1.0, 1.0]
    """
    if where is not True or dtype is not None:
        return in_part(ceil, (x,), out, where, dtype, device)
    return unary(codes.CEIL, x, out, device)


def trunc(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return x without what is behind the point, in its dtype. TypeError: bool.

    >>> vg.trunc(vg.asarray([-1.5, 1.5])).tolist()
    [-1.0, 1.0]
    """
    if where is not True or dtype is not None:
        return in_part(trunc, (x,), out, where, dtype, device)
    return unary(codes.TRUNC, x, out, device)


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
        result = where(less(unary(codes.ABS, there(x, power)), math.inf), result, x)
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


def add(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 + x2; of bools, x1 or x2.

    >>> vg.add(vg.asarray([[1, 2], [3, 4]]), vg.asarray([10, 20])).tolist()
    [[11, 22], [13, 24]]
    """
    if where is not True or dtype is not None:
        return in_part(add, (x1, x2), out, where, dtype, device)
    return binary(codes.ADD, x1, x2, out, device)


def subtract(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 - x2. TypeError: two bools.

    >>> vg.subtract(vg.asarray([5, 7]), 2).tolist()
    [3, 5]
    """
    if where is not True or dtype is not None:
        return in_part(subtract, (x1, x2), out, where, dtype, device)
    return binary(codes.SUBTRACT, x1, x2, out, device)


def multiply(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 * x2; of bools, x1 and x2.

    >>> vg.multiply(vg.asarray([[1], [2]]), vg.asarray([10, 20])).tolist()
    [[10, 20], [20, 40]]
    """
    if where is not True or dtype is not None:
        return in_part(multiply, (x1, x2), out, where, dtype, device)
    return binary(codes.MULTIPLY, x1, x2, out, device)


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


def bitwise_left_shift(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 << x2; by negative numbers or the width and more, 0. TypeError: no integers.

    >>> vg.bitwise_left_shift(vg.asarray([1, 3]), 2).tolist()
    [4, 12]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_left_shift, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_LEFT_SHIFT, x1, x2, out, device)


def bitwise_right_shift(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 >> x2; by negative numbers or the width and more, 0 or -1. TypeError: floats.

    >>> vg.bitwise_right_shift(vg.asarray([16, -16]), 2).tolist()
    [4, -4]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_right_shift, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_RIGHT_SHIFT, x1, x2, out, device)


def maximum(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the larger of x1 and x2; NaN if either is NaN, and 0.0 of 0.0 and -0.0.

    >>> vg.maximum(vg.asarray([1.0, vg.nan]), vg.asarray([2.0, 0.5])).tolist()
    [2.0, nan]
    """
    if where is not True or dtype is not None:
        return in_part(maximum, (x1, x2), out, where, dtype, device)
    return binary(codes.MAXIMUM, x1, x2, out, device)


def minimum(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return the smaller of x1 and x2; NaN if either is NaN, and -0.0 of 0.0 and -0.0.

    >>> vg.minimum(vg.asarray([1, 7]), 5).tolist()
    [1, 5]
    """
    if where is not True or dtype is not None:
        return in_part(minimum, (x1, x2), out, where, dtype, device)
    return binary(codes.MINIMUM, x1, x2, out, device)


def equal(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 == x2 as bool.

    >>> vg.equal(vg.asarray([1, 2, 3]), vg.asarray([1, 0, 3])).tolist()
    [True, False, True]
    """
    if where is not True or dtype is not None:
        return in_part(equal, (x1, x2), out, where, dtype, device)
    return binary(codes.EQUAL, x1, x2, out, device)


def not_equal(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 != x2 as bool.

    >>> vg.not_equal(vg.asarray([1, 2, 3]), vg.asarray([1, 0, 3])).tolist()
    [False, True, False]
    """
    if where is not True or dtype is not None:
        return in_part(not_equal, (x1, x2), out, where, dtype, device)
    return binary(codes.NOT_EQUAL, x1, x2, out, device)


def less(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 < x2 as bool.

    >>> vg.less(vg.asarray([1, 2, 3]), 2).tolist()
    [True, False, False]
    """
    if where is not True or dtype is not None:
        return in_part(less, (x1, x2), out, where, dtype, device)
    return binary(codes.LESS, x1, x2, out, device)


def less_equal(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 <= x2 as bool.

    >>> vg.less_equal(vg.asarray([1, 2, 3]), 2).tolist()
    [True, True, False]
    """
    if where is not True or dtype is not None:
        return in_part(less_equal, (x1, x2), out, where, dtype, device)
    return binary(codes.LESS_EQUAL, x1, x2, out, device)


def greater(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 > x2 as bool.

    >>> vg.greater(vg.asarray([1, 2, 3]), 2).tolist()
    [False, False, True]
    """
    if where is not True or dtype is not None:
        return in_part(greater, (x1, x2), out, where, dtype, device)
    return binary(codes.GREATER, x1, x2, out, device)


def greater_equal(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 >= x2 as bool.

    >>> vg.greater_equal(vg.asarray([1, 2, 3]), 2).tolist()
    [False, True, True]
    """
    if where is not True or dtype is not None:
        return in_part(greater_equal, (x1, x2), out, where, dtype, device)
    return binary(codes.GREATER_EQUAL, x1, x2, out, device)


def bitwise_and(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 & x2, bit by bit. TypeError: floats.

    >>> vg.bitwise_and(vg.asarray([12, 10]), 6).tolist()
    [4, 2]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_and, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_AND, x1, x2, out, device)


def bitwise_or(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 | x2, bit by bit. TypeError: floats.

    >>> vg.bitwise_or(vg.asarray([12, 10]), 1).tolist()
    [13, 11]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_or, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_OR, x1, x2, out, device)


def bitwise_xor(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return x1 ^ x2, bit by bit. TypeError: floats.

    >>> vg.bitwise_xor(vg.asarray([12, 10]), 6).tolist()
    [10, 12]
    """
    if where is not True or dtype is not None:
        return in_part(bitwise_xor, (x1, x2), out, where, dtype, device)
    return binary(codes.BITWISE_XOR, x1, x2, out, device)


def logical_and(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether both are other than 0, as NaN is.

    >>> vg.logical_and(vg.asarray([2, 0]), vg.asarray([1, 1])).tolist()
    [True, False]
    """
    if where is not True or dtype is not None:
        return in_part(logical_and, (x1, x2), out, where, dtype, device)
    return binary(codes.LOGICAL_AND, _truth(x1), _truth(x2), out, device)


def logical_or(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
    """Return whether at least one is other than 0, as NaN is.

    >>> vg.logical_or(vg.asarray([2, 0]), vg.asarray([0, 0])).tolist()
    [True, False]
    """
    if where is not True or dtype is not None:
        return in_part(logical_or, (x1, x2), out, where, dtype, device)
    return binary(codes.LOGICAL_OR, _truth(x1), _truth(x2), out, device)


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


# Three operands -----------------------------------------------------------------------------------


def where(condition, x1, x2, /, out=None, *, device=None):
    """Return x1 where the condition is true, else x2, broadcast together.

    TypeError: the condition is not bool.

    >>> x = vg.asarray([-1.0, 2.0, -3.0])
    >>> vg.where(x > 0, x, 0).tolist()
    [0.0, 2.0, 0.0]
    """
    if type(x1) is type(x2) is type(condition) is Array and not active and device is None:
        backend = condition.backend
        is_plain = x1.backend is backend and x2.backend is backend
        if is_plain and (out is None or _beside(out, condition)):
            return _WHERE(backend, condition, x1, x2, out)
    if out is None and device is None:
        result = short_cpu.where(condition, x1, x2)
        if result is not None:
            return result
    result = pipeline.compute(where, (condition, x1, x2), out, device)
    if result is not None:
        return result
    call = Operands("where", (condition, x1, x2), out, device)
    mask, a, b = call.arrays
    if is_scalar(mask):
        raise TypeError("where: the condition is an array of bools, not a scalar")
    a, b = _strong_pair(a, b, call.backend)
    return call.apply("where", mask, a, b)


def _strong_pair(a, b, backend):
    """Return two operands as Arrays, Python scalars in the dtype that they are promoted to."""
    if is_scalar(a) and is_scalar(b):
        dtype = promote_scalar(promote_scalar(bool_dtype, a), b)
        return strong(a, backend, dtype), strong(b, backend, dtype)
    if is_scalar(a):
        b, a = _strong_pair(b, a, backend)
    elif is_scalar(b):
        dtype = promote_scalar(a.dtype, b)
        if dtype != a.dtype:  # or NumPy's promotion of int64 and float32 would give float64
            a = apply(backend, "cast", a, dtype, None)
        b = strong(b, backend, dtype)
    return a, b
