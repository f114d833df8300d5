"""Dtypes on the CPU device: casts as the C library makes them, and halves beside NumPy.

Floats that an integer dtype cannot hold are clamped. float16 and bfloat16 are computed in float32,
and the result is rounded once.
"""

import contextvars
import functools

import numpy as np

from ..dtypes import (
    float32,
    host_dtype,
    inexact,
    integer_range,
    is_bfloat16,
    is_complex,
    is_float,
    is_half,
    is_integer,
    promote,
)

CHUNK = 1 << 16  # elements of which what is looked at twice stays in a core's cache
FEW = 1000  # elements that are sooner compared, all of them, than reduced to the extremes
# Casts, by the dtypes' chars, that are NumPy's own and cannot overflow.
_INTEGER = "?bBhHiIlLqQ"
_PLAIN = dict.fromkeys(_INTEGER, _INTEGER + "fd") | {"e": "?fd", "f": "?d", "d": "?"}
_PLAIN |= dict.fromkeys("?bB", _INTEGER + "fde")
_BITS = {4: np.dtype("u4"), 8: np.dtype("u8")}  # integers of as many bytes as floats


def scalar(value, dtype):
    """Return a Python scalar as a 0-d ndarray.

    OverflowError: an integer the dtype cannot hold. TypeError: a complex number, and reals.
    """
    if isinstance(value, complex) and dtype.kind not in "bc":
        raise TypeError(f"{dtype} cannot hold a complex number")
    if not (is_float(dtype) or is_complex(dtype)):
        return np.asarray(value, dtype)
    number = np.asarray(value)
    if number.dtype == object:  # an integer beyond 64 bits
        number = np.asarray(float(value))
    with np.errstate(over="ignore"):
        return rounded(number, dtype)


def cast(a, dtype):
    """Return `a` in another dtype (itself if it has it), with floats clamped and NaN as 0."""
    return CASTS[a.dtype, dtype](a)


class _Casts(dict):
    """{(dtype, another): a function of an ndarray of the one that gives one of the other}."""

    def __missing__(self, key):
        return self.setdefault(key, _way(*key))


CASTS = _Casts()


def _way(source, dtype):
    if source == dtype:
        return lambda a: a
    if source.char in _PLAIN and dtype.char in _PLAIN[source.char]:
        return lambda a: a.astype(dtype, "C")
    if source.char in _INTEGER + "fde" and dtype.char in "fe":
        return _to_narrow_floats(dtype)
    if is_float(source) and is_integer(dtype):
        return _to_integers(dtype)
    return _to_others(source, dtype)


def _to_narrow_floats(dtype):
    def convert(a):
        with np.errstate(over="ignore"):
            return a.astype(dtype, "C")

    return convert


# Where NumPy raises what IEEE 754 calls invalid: of casts to integers what is NaN or does not fit.
# It is a context of its own, copied for each call: an interrupt leaves nothing behind.
_REPORTING = contextvars.Context()
_REPORTING.run(functools.partial(np.seterr, invalid="raise"))


def _to_integers(dtype):
    least, most = integer_range(dtype)
    above = float(most + 1)
    reports = dtype.kind == "i" and dtype.itemsize >= 4  # as narrower ones are cast by way of these

    def convert(a):
        if reports and a.dtype.kind == "f":
            try:
                return _REPORTING.copy().run(a.astype, dtype, "C")
            except FloatingPointError:
                pass
        elif a.size <= FEW and a.dtype.char in "fd":
            inside = np.abs(a) < above if least else (a > -1) & (a < above)
            if b"\0" not in inside.tobytes():  # see cpu_ways.all_true
                return a.astype(dtype, "C")
        return _by_chunks(widened(a), dtype)

    return convert


def _to_others(source, dtype):
    def convert(a):
        if is_complex(source) and dtype.kind not in "bc":
            raise TypeError(
                f"complex numbers have no cast from {source} to {dtype}: "
                "take their real parts, or abs"
            )
        with np.errstate(over="ignore"):
            return rounded(widened(a), dtype)

    return convert


def _by_chunks(a, dtype):
    """Return floats as integers: clamped, NaN as 0."""
    result = np.empty(a.shape, dtype)
    if a.size <= CHUNK or not a.flags.c_contiguous:
        _cut_off(a, result)
        return result
    flat, into = a.reshape(-1), result.reshape(-1)
    for begin in range(0, flat.size, CHUNK):
        _cut_off(flat[begin : begin + CHUNK], into[begin : begin + CHUNK])
    return result


def _cut_off(a, result):
    """Write floats to integers: clamped, NaN as 0."""
    least, most = integer_range(result.dtype)
    above = float(most + 1)  # a power of two, as the least one: exact in any float
    if _all_inside(a, least, above):
        np.copyto(result, a, casting="unsafe")
        return
    low, high = a < least, a >= above
    np.copyto(result, np.where(low | high | np.isnan(a), 0, a), casting="unsafe")
    result[low] = least
    result[high] = most


def _all_inside(a, least, above):
    """Whether all floats are from the least one to one below another; NaN is not."""
    if a.size <= FEW:
        inside = np.abs(a) < above if least else (a > -1) & (a < above)
        return np.count_nonzero(inside) == a.size
    if not a.flags.c_contiguous:
        return least <= np.minimum.reduce(a, axis=None) and np.maximum.reduce(a, axis=None) < above
    if not least:  # what is not negative is in the order of its bits
        bits = a.view(_BITS[a.itemsize])
        if bits.item(bits.argmax()) < np.asarray(above, a.dtype).view(bits.dtype):
            return True
    return least <= a.item(a.argmin()) and a.item(a.argmax()) < above


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


def floats(*operands):
    """Return operands as floats of one dtype, or complex; for integers it is the default float."""
    dtype = inexact(functools.reduce(np.promote_types, [operand.dtype for operand in operands]))
    return [operand.astype(dtype, copy=False) for operand in operands]
