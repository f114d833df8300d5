"""What NumPy lacks or does otherwise: zeros in maximum and minimum, negative powers of
integers, and the reductions.

Operands are arrays that NumPy computes in. A reduction gives its result in a dtype that holds it;
the backend rounds it once to the one that operations.py says.
"""

import math
import warnings

import numpy as np

from ..dtypes import is_complex, is_float

_WIDE = {"f": np.float64, "c": np.complex128}  # in which products and scans are made


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


def power(a, b):
    """Return a ** b; of integers, negative powers rounded toward zero, where NumPy refuses them."""
    if np.result_type(a, b).kind not in "iu" or not (b < 0).any():
        return np.power(a, b)
    result = np.power(a, np.maximum(b, 0))
    sign = np.where(b % 2 == 0, 1, -1)
    fraction = np.where(a == 1, 1, np.where(a == -1, sign, 0)).astype(result.dtype)
    return np.where(b < 0, fraction, result)


def logaddexp(a, b):
    """Return log(exp(a) + exp(b)); of float32 in float64, for where the result is next to 0."""
    if np.result_type(a, b) != np.float32:
        return np.logaddexp(a, b)
    result = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), np.float32)
    return np.logaddexp(a, b, out=result, dtype=np.float64, casting="same_kind")


def sign(a):
    """Return a / |a|; of complex numbers also where |a| is too large, which NumPy takes for i."""
    result = np.sign(a)
    if is_complex(a.dtype):
        with np.errstate(all="ignore"):
            result = np.where(np.isfinite(a) & np.isinf(np.abs(a)), np.sign(a / 4), result)
    return result


def log1p(a):
    """Return log(1 + a); of complex numbers with all digits near 0, which NumPy's lacks."""
    if not is_complex(a.dtype):
        return np.log1p(a)
    z = a.astype(np.complex128)
    x, y = z.real, z.imag
    near = (np.abs(x) < 0.5) & (np.abs(y) < 0.5)
    with np.errstate(all="ignore"):
        length = np.log1p(np.where(near, x * (2 + x) + y * y, 0)) / 2
        result = np.asarray(np.log(np.stack([x + 1, y], axis=-1).view(np.complex128)[..., 0]))
    result.real[near] = length[near]
    return result.astype(a.dtype)


def exp2(a):
    """Return 2 to the power a; of complex numbers with a length that is rounded but once."""
    if not is_complex(a.dtype):
        return np.exp2(a)
    z = a.astype(np.complex128)
    angle = z.imag * math.log(2)
    with np.errstate(all="ignore"):
        length = np.exp2(z.real)
        turned = np.stack([length * np.cos(angle), length * np.sin(angle)], axis=-1)
        turned[..., 1] = np.where(angle == 0, angle, turned[..., 1])
        other = np.exp(z.real * math.log(2) + 1j * angle)
    finite = np.isfinite(z.real) & np.isfinite(angle)
    result = np.where(finite, turned.view(np.complex128)[..., 0], other)
    return result.astype(a.dtype)


# Reductions along axes, a tuple or None for all of them -------------------------------------------


def sum(a, axes, keepdims):
    if not (is_float(a.dtype) or is_complex(a.dtype)):
        return np.sum(a, axis=axes, keepdims=keepdims)
    return total(a, axes, keepdims)


def prod(a, axes, keepdims):
    wide = _WIDE.get(a.dtype.kind)
    return np.prod(a, axis=axes, keepdims=keepdims, dtype=wide)


def mean(a, axes, keepdims):
    count = math.prod(a.shape if axes is None else [a.shape[i] for i in axes])
    if count == 0:
        warnings.warn("mean of no elements", RuntimeWarning, stacklevel=2)
    with np.errstate(invalid="ignore"):  # 0 / 0
        return total(a, axes, keepdims) / np.float64(count)


def total(a, axes, keepdims):
    """Return the sum as float64, added up in twice the precision of the elements, and -0.0 as 0.0.

    Integers are added up exactly: of 8 bytes each, as two halves. Of complex numbers it is that of
    the parts, as complex128.
    """
    if is_complex(a.dtype):
        parts = [total(part, axes, keepdims) for part in (a.real, a.imag)]
        return np.stack(parts, axis=-1).view(np.complex128)[..., 0]
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


def largest(a, axes, keepdims):
    result = np.max(a, axis=axes, keepdims=keepdims)
    if is_float(a.dtype) and not result.all():  # 0.0 if there is one, and not only -0.0
        positive = np.any((a == 0) & ~np.signbit(a), axis=axes, keepdims=keepdims)
        result = np.where((result == 0) & positive, a.dtype.type(0), result)
    return result


def smallest(a, axes, keepdims):
    result = np.min(a, axis=axes, keepdims=keepdims)
    if is_float(a.dtype) and not result.all():
        negative_zero = np.any((a == 0) & np.signbit(a), axis=axes, keepdims=keepdims)
        result = np.where((result == 0) & negative_zero, -a.dtype.type(0), result)
    return result


def argmax(a, axes, keepdims):
    return np.argmax(a, axis=None if axes is None else axes[0], keepdims=keepdims)


def argmin(a, axes, keepdims):
    return np.argmin(a, axis=None if axes is None else axes[0], keepdims=keepdims)


def any(a, axes, keepdims):
    return np.any(a, axis=axes, keepdims=keepdims)


def all(a, axes, keepdims):
    return np.all(a, axis=axes, keepdims=keepdims)


def scan(operation, a, axis, initial):
    """Return the sums or products of all elements up to each, floats in float64."""
    accumulate = {0: np.cumsum, 1: np.cumprod}[operation.identity]
    wide = _WIDE.get(a.dtype.kind)
    result = accumulate(a, axis=axis, dtype=wide)
    if operation.identity == 0 and wide:
        result += 0.0  # not -0.0
    if initial:
        shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        first = np.full(shape, operation.identity, result.dtype)
        result = np.concatenate([first, result], axis=axis)
    return result
