"""What NumPy lacks or does otherwise: zeros in maximum and minimum, negative powers of
integers, and the reductions.

Operands are arrays that NumPy computes in. A reduction gives its result in a dtype that holds it;
the backend rounds it once to the one that operations.py says.
"""

import builtins
import math
import warnings

import numpy as np

from ..dtypes import is_complex

_WIDE = {"f": np.float64, "c": np.complex128}  # in which products and scans are made

SIGNED = {n: np.dtype(f"i{n}") for n in (2, 4, 8)}  # integers of as many bytes as floats
LEAST = {n: -1 << (8 * n - 1) for n in (2, 4, 8)}  # the least of them, which has -0.0's bits
_ZEROS = {4: np.zeros((), np.float32), 8: np.zeros((), np.float64)}


FEW_TO_COUNT = 100  # elements of which NumPy counts those that are 0 at once
MANY = 5000  # integers that are sooner gone over once than for the least and the largest of them


def _ordering(function, edges, zeros):
    """Return function(a, b, out=None), NumPy's, which leaves the order of zeros open.

    zeros(result, bits, a, b) puts it right. edges: by a float's char, integers of as many bytes, of
    which a zero that may be the wrong one is the least, and that.
    """

    def extreme(a, b, out=None):
        if out is None:
            result = function(a, b)
            if type(result) is not _ndarray:
                result = np.asarray(result)
        elif _meets(out, a, b):
            np.copyto(out, extreme(a, b))
            return out
        else:
            result = function(a, b, out=out)
        char = result.dtype.char
        if char in edges:
            if (type(b) is not _ndarray or not b.ndim) and b != 0:
                return result  # which cannot be of two zeros
            size = result.size
            if size > FEW_TO_COUNT or np.count_nonzero(result) < size:
                integers, edge = edges[char]
                bits = result.view(integers)
                if least_of(bits) == edge:
                    zeros(bits, *_bits_like(bits, result.dtype, a, b))
        return result

    return extreme


def _larger_zeros(bits, a, b):
    """Make 0.0 of -0.0 where an operand is 0.0, all as signed integers."""
    np.copyto(bits, 0, where=(bits == LEAST[bits.itemsize]) & ((a == 0) | (b == 0)))


def _smaller_zeros(bits, a, b):
    """Make -0.0 of 0.0 where an operand is -0.0, all as unsigned integers."""
    sign = bits.dtype.type(1 << (8 * bits.itemsize - 1))
    np.copyto(bits, sign, where=(bits == 0) & ((a == sign) | (b == sign)))


_ndarray, _float64 = np.ndarray, np.dtype(np.float64)
_NEGATIVE = {char: (SIGNED[n], LEAST[n]) for char, n in (("e", 2), ("f", 4), ("d", 8))}
_POSITIVE = {char: (np.dtype(f"u{n}"), 0) for char, n in (("e", 2), ("f", 4), ("d", 8))}
maximum = _ordering(np.maximum, _NEGATIVE, _larger_zeros)
minimum = _ordering(np.minimum, _POSITIVE, _smaller_zeros)
fmax = _ordering(np.fmax, _NEGATIVE, _larger_zeros)
fmin = _ordering(np.fmin, _POSITIVE, _smaller_zeros)


def least_of(bits):
    """Return the smallest of some integers: by where it is, which takes half the time."""
    flags = bits.flags
    if flags.c_contiguous or bits.ndim == 1:
        return bits.item(bits.argmin())
    if flags.f_contiguous:
        return bits.T.item(bits.T.argmin())
    return np.minimum.reduce(bits, axis=None)


def _meets(out, *operands):
    """Whether `out` may share memory with an operand, which is needed after it is written."""
    for one in operands:
        if one is out:
            return True
        if type(one) is np.ndarray and one.base is None and out.base is None:
            continue  # each has memory of its own
        if np.may_share_memory(one, out):
            return True
    return False


def _bits_like(bits, dtype, *operands):
    """Return operands as a dtype, as integers such as some bits."""
    return [np.asarray(one, dtype).view(bits.dtype) for one in operands]


def power(a, b, out=None):
    """Return a ** b; of integers, negative powers rounded toward zero, where NumPy refuses them."""
    if a.dtype.kind == "f" or b.dtype.kind in "fub" or b.size == 0:
        return np.power(a, b, out=out)
    if np.result_type(a, b).kind not in "iu" or np.minimum.reduce(b, axis=None) >= 0:
        return np.power(a, b, out=out)
    result = np.power(a, np.maximum(b, 0))
    sign = np.where(b % 2 == 0, 1, -1)
    fraction = np.where(a == 1, 1, np.where(a == -1, sign, 0)).astype(result.dtype)
    result = np.where(b < 0, fraction, result)
    if out is None:
        return result
    np.copyto(out, result)
    return out


def logaddexp(a, b, out=None):
    """Return log(exp(a) + exp(b)); of float32 in float64, for where the result is next to 0."""
    if not (a.dtype.char == b.dtype.char == "f" or np.result_type(a, b) == np.float32):
        return np.logaddexp(a, b, out=out)
    if out is None:
        shape = a.shape if a.shape == b.shape else np.broadcast_shapes(a.shape, b.shape)
        out = np.empty(shape, np.float32)
    return np.logaddexp(a, b, out=out, dtype=np.float64, casting="same_kind")


def isclose(a, b, rtol, atol, equal_nan):
    """Return where floats are close, an ndarray; infinities are close to themselves."""
    with np.errstate(invalid="ignore", over="ignore"):
        real = np.result_type(a, b).type
        size, distance = np.asarray(np.abs(b)), np.asarray(a - b)
        is_finite = size < np.inf
        size *= real(rtol)
        size += real(atol)
        result = np.asarray(np.abs(distance, out=distance) <= size)
    result &= is_finite
    result |= a == b
    if equal_nan:
        result |= (a != a) & (b != b)
    return result


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
    if a.dtype.kind == "b" and axes is None and not keepdims:
        return np.count_nonzero(a)
    if a.dtype.kind == "f":
        return _sum_of_floats(a, axes, keepdims)
    if a.dtype.kind != "c":
        return np.add.reduce(a, axes, None, None, keepdims)
    return total(a, axes, keepdims)


def variance(a, axes, ddof, keepdims):
    """Return the sum of squared distances of floats from the mean over max(count - ddof, 0)."""
    count = a.size if axes is None else math.prod([a.shape[i] for i in axes])
    center = _sum_of_floats(a, axes, True) / count if count else mean(a, axes, True)
    distances = np.asarray(a - center.astype(a.dtype, copy=False))
    np.multiply(distances, distances, out=distances)
    return _sum_of_floats(distances, axes, keepdims) / a.dtype.type(builtins.max(count - ddof, 0))


def softmax(a, axes, keepdims):
    powers = np.asarray(a - largest(a, axes, True))
    np.exp(powers, out=powers)
    powers /= total(powers, axes, True).astype(a.dtype, copy=False)
    return powers


def log_softmax(a, axes, keepdims):
    a = a - largest(a, axes, True)
    return a - np.log(sum(np.exp(a), axes, True)).astype(a.dtype, copy=False)


def logsumexp(a, axes, keepdims):
    most = np.asarray(largest(a, axes, True))
    most = np.where(np.isinf(most), most.dtype.type(0), most)  # or inf - inf would be NaN
    result = np.log(sum(np.exp(a - most), axes, keepdims))
    return result + most.reshape(np.shape(result))


def prod(a, axes, keepdims):
    wide = _WIDE.get(a.dtype.kind)
    return np.multiply.reduce(a, axis=axes, keepdims=keepdims, dtype=wide)


def mean(a, axes, keepdims):
    count = math.prod(a.shape if axes is None else [a.shape[i] for i in axes])
    if count == 0:
        warnings.warn("mean of no elements", RuntimeWarning, stacklevel=2)
        with np.errstate(invalid="ignore"):  # 0 / 0
            return total(a, axes, keepdims) / np.float64(0)
    return total(a, axes, keepdims) / count


FEW = 128  # float32 elements of a sum that are added up in float64; more of them as NumPy does
BLOCK = {4: 64, 8: 1024}  # rows that are added up one after another, by the bytes of an element


def total(a, axes, keepdims):
    """Return the sum, of integers and few float32 elements as float64, and -0.0 as 0.0.

    Integers are added up exactly: of 8 bytes each, as two halves. float64 and more float32 elements
    are added up as NumPy does it, pairwise, and by blocks of rows where NumPy adds row after row.
    Of complex numbers it is that of the parts, as complex128.
    """
    if a.dtype.kind == "f":
        return _sum_of_floats(a, axes, keepdims)
    if is_complex(a.dtype):
        parts = [total(part, axes, keepdims) for part in (a.real, a.imag)]
        return np.stack(parts, axis=-1).view(np.complex128)[..., 0]
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8:
        if _sum_fits(a):
            result = np.add.reduce(a, axis=axes, keepdims=keepdims)
            return result.astype(np.float64)
        high = np.add.reduce(a >> 32, axis=axes, keepdims=keepdims).astype(np.float64)
        low = np.add.reduce(a & 0xFFFFFFFF, axis=axes, keepdims=keepdims).astype(np.float64)
        return high * 2.0**32 + low + 0.0
    return np.add.reduce(a, axis=axes, keepdims=keepdims, dtype=np.float64) + 0.0


def _sum_fits(a):
    """Whether no sum of 64-bit integers of an array can be too large for its dtype."""
    if a.size == 0:
        return True
    if a.size > MANY:  # all in one look, unless some are negative
        bits = int(np.bitwise_or.reduce(a, None))
        if bits >= 0 and bits.bit_length() + a.size.bit_length() < 63:
            return True
    least = int(least_of(a))
    most = a.item(a.argmax()) if a.flags.c_contiguous else int(np.maximum.reduce(a, axis=None))
    return builtins.max(-least, most) * a.size < 2 ** (63 if a.dtype.kind == "i" else 64)


def _sum_of_floats(a, axes, keepdims):
    """Return the sums of floats, which begin with 0.0: none is -0.0."""
    itemsize, shape, flags = a.itemsize, a.shape, a.flags
    wide = itemsize == 8
    if axes is None:
        count = a.size
    else:
        count = shape[axes[0]] if len(axes) == 1 else math.prod([shape[i] for i in axes])
    if wide and a.size <= BLOCK[8]:
        return np.add.reduce(a, axes, None, None, keepdims, 0.0)
    if not wide and count <= FEW:
        return np.add.reduce(a, axes, _float64, None, keepdims, 0.0)
    if a.ndim > 1 and flags.f_contiguous and not flags.c_contiguous:
        turned = axes if axes is None else tuple([a.ndim - 1 - i for i in axes][::-1])
        return _sum_of_floats(a.T, turned, keepdims).T
    last = len(shape) - 1
    if flags.c_contiguous and (axes is None or axes == (last,) or len(axes) > last):
        return np.add.reduce(a, axes, None, None, keepdims, 0.0)
    if not wide and shape[last] >= 16 and (axes is None or last in axes):
        # NumPy's sums of rows are pairwise, but not those of several rows that lie apart.
        rows = np.add.reduce(a, last, None, None, True, 0.0)
        return np.add.reduce(rows, axes, _float64, None, keepdims, 0.0)
    if axes is not None and len(axes) == 1 and (flags.c_contiguous or not wide):
        if wide and count <= BLOCK[8]:
            return np.add.reduce(a, axes, None, None, keepdims, 0.0)
        result = _sum_of_rows(a, axes[0]) + _ZEROS[itemsize]
        return np.expand_dims(result, axes[0]) if keepdims else result
    return np.add.reduce(a, axes, _float64, None, keepdims, 0.0)


def _sum_of_rows(a, axis):
    """Return the sums along an axis that is not contiguous: of blocks, whose sums are float64."""
    rows, block = a.shape[axis], BLOCK[a.itemsize]
    if rows <= block:
        return np.add.reduce(a, axis=axis)
    before, after, whole = a.shape[:axis], a.shape[axis + 1 :], rows - rows % block
    places = (slice(None),) * axis
    blocks = a[(*places, slice(whole))].reshape((*before, whole // block, block, *after))
    sums = np.add.reduce(blocks, axis=axis + 1)
    if whole // block <= BLOCK[8]:
        result = np.add.reduce(sums, axis=axis, dtype=np.float64)
    else:
        result = _sum_of_rows(sums.astype(np.float64, copy=False), axis)
    if whole == rows:
        return result
    return result + np.add.reduce(a[(*places, slice(whole, None))], axis=axis)


def largest(a, axes, keepdims):
    return picked(np.maximum, a, axes, keepdims)


def smallest(a, axes, keepdims):
    return picked(np.minimum, a, axes, keepdims)


def picked(function, a, axes, keepdims):
    """Return the extremes by a ufunc: 0.0 is larger than -0.0, which NumPy leaves open."""
    result = function.reduce(a, axis=axes, keepdims=keepdims)
    if a.dtype.kind != "f":
        return result
    if np.count_nonzero(result) == result.size if type(result) is np.ndarray else result:
        return result
    is_larger = function is np.maximum or function is np.fmax
    signs = np.signbit(a)
    wanted = np.any((a == 0) & (~signs if is_larger else signs), axis=axes, keepdims=keepdims)
    zero = a.dtype.type(0.0 if is_larger else -0.0)
    return np.where((result == 0) & wanted, zero, result)


def argmax(a, axes, keepdims):
    return a.argmax(axis=None if axes is None else axes[0], keepdims=keepdims)


def argmin(a, axes, keepdims):
    return a.argmin(axis=None if axes is None else axes[0], keepdims=keepdims)


def any(a, axes, keepdims):
    return np.logical_or.reduce(a, axis=axes, keepdims=keepdims)


def all(a, axes, keepdims):
    return np.logical_and.reduce(a, axis=axes, keepdims=keepdims)


def scan(operation, a, axis, initial):
    """Return the sums or products of all elements up to each, floats in float64."""
    ufunc = {0: np.add, 1: np.multiply}[operation.identity]
    if a.dtype.kind in "fc":
        result = _accumulated(ufunc, a, axis)
    else:
        result = ufunc.accumulate(a, axis, np.uint64 if a.dtype.kind == "u" else np.int64)
    if initial:
        shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        first = np.full(shape, operation.identity, result.dtype)
        result = np.concatenate([first, result], axis=axis)
    return result


def scan_of_floats(ufunc, a, axis):
    """Return the sums or products of all elements up to each, in the dtype of the floats."""
    if a.ndim == 1 and a.dtype.char == "f" and a.size >= SHORT:
        return _accumulated_in_pieces(ufunc, a)
    result = _accumulated(ufunc, a, axis)
    return as_half(result) if a.dtype.char == "e" else result.astype(a.dtype, copy=False)


def _accumulated_in_pieces(ufunc, a):
    """Return the same of float32 in a row, piece after piece, which stays in the cache as float64.

    Each begins with what the one before it came to.
    """
    result = np.empty(a.shape, a.dtype)
    row = np.empty(PIECE + 1)
    row[0] = ufunc.identity
    for begin in range(0, a.size, PIECE):
        piece = a[begin : begin + PIECE]
        part = row[: piece.size + 1]
        part[1:] = piece
        ufunc.accumulate(part, out=part)
        result[begin : begin + PIECE] = part[1:]
        row[0] = part[-1]
    return result


def _accumulated(ufunc, a, axis):
    """Return the sums or products of all floats up to each, in float64."""
    dtype = _WIDE[a.dtype.kind]
    if a.ndim == 1 and a.size < SHORT and (ufunc is np.multiply or (a.size and a.item(0))):
        return ufunc.accumulate(a, 0, dtype)
    result = a.astype(dtype, order="C")
    if a.size < SHORT:
        result = ufunc.accumulate(result, axis)
        if ufunc is np.add:  # a sum is not -0.0
            result += 0.0
        return result
    if ufunc is np.add:
        result[(slice(None),) * axis + (slice(1),)] += 0.0
    return ufunc.accumulate(result, axis, out=result)


PIECE = 1 << 15  # elements of a long scan that are float64 at a time
SHORT = 4096  # elements of a scan that NumPy makes float64 as it goes
LARGEST_HALF, LEAST_HALF = 65520.0, 2.0**-25  # what is not below is infinite; what is not above, 0


def as_half(a):
    """Return float64 as float16. What leaves its range is reported once: each time takes long.

    The ndarray is used up.
    """
    if a.size <= FEW:
        return a.astype(np.float16)
    size = np.abs(a)
    beyond, below = size >= LARGEST_HALF, size <= LEAST_HALF
    below &= size > 0
    if beyond.any():
        a[beyond & (size < np.inf)][:1].astype(np.float16)
        np.copyto(a, np.copysign(np.inf, a), where=beyond)
    if below.any():
        a[below][:1].astype(np.float16)
        np.copyto(a, np.copysign(0.0, a), where=below)
    return a.astype(np.float16)
