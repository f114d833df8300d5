"""The "cpu" device: NumPy, made to give what the C library gives.

NumPy differs in some places, which are spelled out here: float functions of integers, weak floats
beside integers, sums in more precision, zeros of either sign in maximum and minimum, casts of
floats that an integer dtype cannot hold. float16 and bfloat16 operands become float32, and the
result is rounded once. NumPy's warnings (division by zero, overflow) stay as they are and follow
numpy.errstate. backends/__init__.py lists the methods.
"""

import functools
import math
import os
import warnings

import numpy as np

from ..dtypes import (
    float32,
    host_dtype,
    inexact,
    is_bfloat16,
    is_float,
    is_half,
    is_integer,
    promote,
    promote_scalar,
    supported,
)
from ..errors import OutOfMemoryError
from ..native.abi import Memory, Operation
from . import cpu_layers


def _reports_memory(method):
    """Make NumPy's MemoryError the same exception as a device's."""

    @functools.wraps(method)
    def call(*args):
        try:
            return method(*args)
        except MemoryError as error:
            requested = getattr(error, "_total_size", None)
            message = f"out of memory on the CPU: {error}"
        raise OutOfMemoryError(message, requested=requested, device="cpu")

    return call


class CpuBackend:
    """Operations on NumPy arrays; raw data are ndarrays of the supported dtypes."""

    def __init__(self, device):
        self.device = device

    @staticmethod
    def release(data):
        """Nothing to do: the ndarray goes with the Array."""

    def fail(self):
        raise RuntimeError("an operation of the CPU device gave no result")

    # Arrays

    @_reports_memory
    def empty(self, shape, dtype):
        return np.empty(shape, host_dtype(dtype))

    def describe(self, data):
        itemsize = data.dtype.itemsize
        strides = tuple([stride // itemsize for stride in data.strides])
        return supported(data.dtype), data.shape, strides

    @_reports_memory
    def from_host(self, source):
        if source.dtype.kind == "b":  # any byte other than 0 is true
            return np.asarray(np.not_equal(source.view(np.uint8), 0), order="C")
        return np.array(source, order="C")

    def to_host(self, data, into=None):
        return data

    def pointer(self, data):
        return data.__array_interface__["data"][0]

    @_reports_memory
    def copy(self, source, destination):
        if np.may_share_memory(source, destination):
            source = source.copy()
        np.copyto(destination, cast(source, destination.dtype))

    @_reports_memory
    def cast(self, a, dtype, out):
        result = cast(a, dtype)
        if out is None:
            return result if result is not a else np.array(a, order="C")
        return store(result, out)

    def fill(self, a, value):
        if isinstance(value, float) and is_integer(a.dtype):
            limits = np.iinfo(a.dtype)
            if not limits.min - 1 < value < limits.max + 1:  # NaN too
                raise OverflowError(f"{value} is out of bounds for {a.dtype}")
            value = int(value)
        np.copyto(a, scalar(value, a.dtype))

    # Operations

    @_reports_memory
    def unary(self, code, a, out):
        dtype, (a,) = computable(a)
        return store(finished(_UNARY[code](a), dtype), out)

    @_reports_memory
    def binary(self, code, a, b, out):
        dtype, (a, b) = computable(a, b)
        return store(finished(_BINARY[code](a, b), dtype), out)

    def scalar(self, code, a, value, side, out):
        dtype = promote_scalar(a.dtype, value)
        dtype = inexact(dtype) if code == Operation.DIVIDE else dtype
        a = cast(a, dtype)
        exact = code in _COMPARISONS and is_integer(dtype)  # NumPy compares with any integer
        if exact:
            left, right = (a, value) if side else (value, a)
            return store(_BINARY[code](left, right), out)
        other = scalar(value, dtype)
        return self.binary(code, a, other, out) if side else self.binary(code, other, a, out)

    @_reports_memory
    def where(self, condition, a, b, out):
        if condition.dtype.kind != "b":
            raise TypeError(f"where: the condition must be bool, not {condition.dtype}")
        dtype = promote(a.dtype, b.dtype)
        return store(np.where(condition, cast(a, dtype), cast(b, dtype)), out)

    @_reports_memory
    def reduce(self, code, a, axes, keepdims, out):
        if code == Operation.ARGMAX:
            axis = None if axes is None else axes[0]
            return store(np.argmax(widened(a), axis=axis, keepdims=keepdims), out)
        return store(_REDUCE[code](widened(a), axes, keepdims, supported(a.dtype)), out)

    @_reports_memory
    def matmul(self, a, b, precision, out):
        dtype, (a, b) = computable(a, b)
        return store(finished(np.matmul(a, b), dtype), out)

    @_reports_memory
    def dense(self, x, weight, bias, activation, precision, preactivation, out):
        operands = [operand for operand in (x, weight, bias) if operand is not None]
        check_floats("dense", operands)
        dtype, operands = computable(*operands)
        z = cpu_layers.preactivation(*operands)
        if preactivation is not None:
            store(finished(z, dtype), preactivation)
        return store(finished(cpu_layers.ACTIVATIONS[activation](z), dtype), out)

    @_reports_memory
    def dense_backward(self, gradient, x, weight, preactivation, activation, precision):
        operands = [a for a in (gradient, x, weight, preactivation) if a is not None]
        check_floats("dense_backward", operands)
        dtype, _ = computable(gradient, x, weight)
        operands = [widened(cast(operand, dtype)) for operand in operands]
        before = operands[3] if preactivation is not None else None
        dx, dweight, dbias = cpu_layers.backward(*operands[:3], before, activation)
        return [finished(dx, dtype), finished(dweight, dtype), rounded(dbias, dtype)]

    # Views

    def slice(self, a, start, step, length):
        key = []
        for first, by, n in zip(start, step, length, strict=True):
            stop = first + by * n
            key.append(slice(first, stop if stop >= 0 else None, by))
        return a[(*key, ...)]  # "..." makes it an array even of no dimensions

    def permute(self, a, axes):
        return np.transpose(a, axes)

    @_reports_memory
    def reshape(self, a, shape):
        return np.reshape(a, shape)

    def broadcast_to(self, a, shape):
        return np.broadcast_to(a, shape)

    @_reports_memory
    def contiguous(self, a):
        return np.asarray(a, order="C")

    # The device

    def synchronize(self):
        """Nothing to wait for."""

    def memory_info(self):
        page = os.sysconf("SC_PAGE_SIZE")
        return {
            Memory.MEMORY_FREE: os.sysconf("SC_AVPHYS_PAGES") * page,
            Memory.MEMORY_TOTAL: os.sysconf("SC_PHYS_PAGES") * page,
        }

    def set_memory_limit(self, limit):
        if limit:
            raise ValueError("the memory of the CPU device cannot be limited")

    def empty_cache(self):
        """Nothing is cached."""

    def counter(self, code):
        return 0

    def launch_log(self):
        return ""


# What the methods are made of ---------------------------------------------------------------------


def store(result, out):
    """Return the result as an ndarray, written to `out` if there is one.

    ValueError: out has another shape or is read-only. TypeError: its dtype is of a lower kind.
    """
    result = np.asarray(result)
    if out is None:
        return result
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, the result has {result.shape}")
    kinds = [float32 if is_bfloat16(x.dtype) else x.dtype for x in (result, out)]
    if not np.can_cast(*kinds, "same_kind"):
        raise TypeError(
            f"cannot cast the result from {result.dtype} to out's {out.dtype} "
            'with casting rule "same_kind"'
        )
    if is_bfloat16(out.dtype):
        result = rounded(result, out.dtype)
    elif is_bfloat16(result.dtype):
        result = widened(result)  # ml_dtypes knows no cast to float16
    np.copyto(out, result, casting="same_kind")
    return out


def scalar(value, dtype):
    """Return a Python scalar as a 0-d ndarray; OverflowError: an integer the dtype cannot hold."""
    if not is_float(dtype):
        return np.asarray(value, dtype)
    number = np.asarray(value)
    if number.dtype == object:  # an integer beyond 64 bits
        number = np.asarray(float(value))
    with np.errstate(over="ignore"):
        return rounded(number, dtype)


def cast(a, dtype):
    """Return `a` in another dtype (itself if it has it), with floats clamped and NaN as 0."""
    if a.dtype == dtype:
        return a
    a = widened(a)
    if not (is_float(a.dtype) and is_integer(dtype)):
        with np.errstate(over="ignore"):
            return rounded(a, dtype)
    limits = np.iinfo(dtype)
    below, above = a < limits.min, a >= float(limits.max + 1)  # powers of two: exact in any float
    result = np.where(below | above | np.isnan(a), 0, a).astype(dtype, order="C")
    result[below] = limits.min
    result[above] = limits.max
    return result


def rounded(a, dtype):
    """Return `a` in another dtype, with floats rounded once, to the nearest."""
    if is_bfloat16(dtype) and a.dtype != float32:  # ml_dtypes rounds to float32 first
        a = rounded_to_odd(a) if a.dtype.itemsize > 2 else a.astype(float32)
    return a.astype(host_dtype(dtype), order="C", copy=False)


def rounded_to_odd(a):
    """Return numbers as float32: exact, or of the two around it the one whose last bit is 1.

    Rounding that to fewer bits gives what rounding the number itself gives (cuda/dtypes/half.cuh).
    """
    wide = a
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8:  # more digits than a double has
        dropped = a.dtype.type(2**11 - 1)
        odd = (a | ((a & dropped) + dropped)) & ~dropped
        wide = np.where((a < 2**53) & (a > -(2**53)) if a.dtype.kind == "i" else a < 2**53, a, odd)
    wide = wide.astype(np.float64)
    nearest = wide.astype(float32)
    away = np.abs(nearest.astype(np.float64)) > np.abs(wide)  # from zero
    inexact = (nearest != wide) & ~np.isnan(wide)
    return ((nearest.view(np.uint32) - away) | inexact).astype(np.uint32).view(float32)


def widened(a):
    """Return float16 and bfloat16 as float32, anything else as it is."""
    return a.astype(float32) if is_half(a.dtype) else a


def computable(*operands):
    """Return the dtype of a result, and the operands as NumPy is to compute with them."""
    dtypes = [operand.dtype for operand in operands]
    if not any(is_half(dtype) for dtype in dtypes):
        return functools.reduce(np.promote_types, dtypes), operands
    dtype = functools.reduce(promote, dtypes)
    if is_half(dtype):
        operands = [cast(operand, dtype) for operand in operands]
    return dtype, [widened(operand) for operand in operands]


def finished(result, dtype):
    """Return the float32 result of operands that are promoted to a half dtype in that dtype."""
    result = np.asarray(result)
    return rounded(result, dtype) if is_half(dtype) and result.dtype == float32 else result


def check_floats(name, operands):
    for operand in operands:
        if not is_float(operand.dtype):
            raise TypeError(f"{name} takes float arrays, not {operand.dtype}")


def floats(a):
    """Return `a`, or the bools or integers in the default float dtype."""
    return a.astype(inexact(a.dtype), copy=False)


def negative(a):
    if a.dtype.kind == "b":
        raise TypeError("negative does not take bool")
    return np.negative(a)


def relu(a):
    if a.dtype.kind == "b":
        raise TypeError("relu does not take bool")
    return cpu_layers.relu(a)


def subtract(a, b):
    if a.dtype.kind == b.dtype.kind == "b":
        raise TypeError("subtract does not take two bool arrays")
    return np.subtract(a, b)


def divide(a, b):
    dtype = inexact(np.promote_types(a.dtype, b.dtype))
    return np.divide(a.astype(dtype, copy=False), b.astype(dtype, copy=False))


def maximum(a, b):
    result = np.maximum(a, b)
    if is_float(result.dtype) and not result.all():  # of two zeros NumPy gives either
        a, b = a.astype(result.dtype), b.astype(result.dtype)
        result = np.where((a == 0) & (b == 0), a + b, result)  # 0.0 unless both are -0.0
    return result


def minimum(a, b):
    result = np.minimum(a, b)
    if is_float(result.dtype) and not result.all():
        a, b = a.astype(result.dtype), b.astype(result.dtype)
        result = np.where((a == 0) & (b == 0), -(-a - b), result)  # -0.0 if either is
    return result


# Reductions of `a`; dtype: that of the operand, which if a half is in `a` as float32.


def sum(a, axes, keepdims, dtype):
    if not is_float(dtype):
        return np.sum(a, axis=axes, keepdims=keepdims)
    return rounded(total(a, axes, keepdims), dtype)


def mean(a, axes, keepdims, dtype):
    count = math.prod(a.shape if axes is None else [a.shape[i] for i in axes])
    if count == 0:
        warnings.warn("mean of no elements", RuntimeWarning, stacklevel=2)
    with np.errstate(invalid="ignore"):  # 0 / 0
        return rounded(total(a, axes, keepdims) / np.float64(count), inexact(dtype))


def total(a, axes, keepdims):
    """Return the sum as float64, added up in twice the precision of the elements, and -0.0 as 0.0.

    Integers are added up exactly: of 8 bytes each, as two halves.
    """
    if a.dtype == np.float64:
        result = compensated_sum(a, axes, keepdims)
    elif a.dtype.kind in "iu" and a.dtype.itemsize == 8:
        high = np.sum(a >> 32, axis=axes, keepdims=keepdims).astype(np.float64)
        low = np.sum(a & 0xFFFFFFFF, axis=axes, keepdims=keepdims).astype(np.float64)
        result = high * 2.0**32 + low
    else:
        result = np.sum(a, axis=axes, keepdims=keepdims, dtype=np.float64)
    return np.asarray(result + 0.0)


def compensated_sum(a, axes, keepdims):
    """Return the sum of float64 elements and of the rounding errors of its additions (TwoSum)."""
    axes = tuple(range(a.ndim)) if axes is None else axes
    kept = [i for i in range(a.ndim) if i not in axes]
    lengths = [a.shape[i] for i in kept]
    rows = math.prod([a.shape[i] for i in axes])
    sums = np.transpose(a, (*axes, *kept)).reshape((rows, *lengths))
    errors = np.zeros_like(sums)
    with np.errstate(invalid="ignore"):  # the error of an infinite sum is NaN
        while len(sums) > 1:
            half = len(sums) // 2  # one may be left over
            x, y = sums[:half], sums[half : 2 * half]
            both = x + y
            part = both - x
            lost = (x - (both - part)) + (y - part) + errors[:half] + errors[half : 2 * half]
            sums = np.concatenate([both, sums[2 * half :]])
            errors = np.concatenate([lost, errors[2 * half :]])
        nearest = sums.sum(axis=0)  # of one row, or none
        result = nearest + errors.sum(axis=0)
    result = np.where(np.isnan(result), nearest, result)
    return np.expand_dims(result, axes) if keepdims else result


def largest(a, axes, keepdims, dtype):
    result = np.max(a, axis=axes, keepdims=keepdims)
    if is_float(a.dtype) and not result.all():  # 0.0 if there is one, and not only -0.0
        positive = np.any((a == 0) & ~np.signbit(a), axis=axes, keepdims=keepdims)
        result = np.where((result == 0) & positive, a.dtype.type(0), result)
    return rounded(np.asarray(result), dtype)


def smallest(a, axes, keepdims, dtype):
    result = np.min(a, axis=axes, keepdims=keepdims)
    if is_float(a.dtype) and not result.all():
        negative_zero = np.any((a == 0) & np.signbit(a), axis=axes, keepdims=keepdims)
        result = np.where((result == 0) & negative_zero, -a.dtype.type(0), result)
    return rounded(np.asarray(result), dtype)


_UNARY = {
    Operation.NEGATIVE: negative,
    Operation.ABS: np.abs,
    Operation.EXP: lambda a: np.exp(floats(a)),
    Operation.LOG: lambda a: np.log(floats(a)),
    Operation.SQRT: lambda a: np.sqrt(floats(a)),
    Operation.TANH: lambda a: np.tanh(floats(a)),
    Operation.SIGMOID: lambda a: cpu_layers.sigmoid(floats(a)),
    Operation.RELU: relu,
    Operation.GELU: lambda a: cpu_layers.gelu(floats(a)),
    Operation.SILU: lambda a: cpu_layers.silu(floats(a)),
}
_BINARY = {
    Operation.ADD: np.add,
    Operation.SUBTRACT: subtract,
    Operation.MULTIPLY: np.multiply,
    Operation.DIVIDE: divide,
    Operation.MAXIMUM: maximum,
    Operation.MINIMUM: minimum,
    Operation.EQUAL: np.equal,
    Operation.NOT_EQUAL: np.not_equal,
    Operation.LESS: np.less,
    Operation.LESS_EQUAL: np.less_equal,
    Operation.GREATER: np.greater,
    Operation.GREATER_EQUAL: np.greater_equal,
}
_COMPARISONS = range(Operation.EQUAL, Operation.GREATER_EQUAL + 1)
_REDUCE = {
    Operation.SUM: sum,
    Operation.MEAN: mean,
    Operation.MAX: largest,
    Operation.MIN: smallest,
}
