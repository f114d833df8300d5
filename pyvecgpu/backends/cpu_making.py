"""New arrays of the CPU device in one step, where `empty` and then `fill` go over memory twice.

NumPy's zeros come from the system untouched. Each function gives None where memory is short or a
dtype is none of NumPy's: that goes the general way, which says what is wrong.
"""

import numpy as np

from .cpu_ways import holds

_KINDS = "buifc"
_EXACT = {"e": 2**11, "f": 2**24, "d": 2**53}  # up to which a float dtype has every integer
_MOST = 2**62


def full(shape, dtype, value):
    """Return an ndarray of one value, or None; OverflowError: the dtype cannot hold it."""
    if dtype.char == "E":
        return None
    try:
        if type(value) is int and value == 0:
            return np.zeros(shape, dtype)
        if dtype.kind == "b":
            value = bool(value)
        elif not holds(dtype, value):
            return None
        result = np.empty(shape, dtype)
    except MemoryError:
        return None
    result.fill(value)
    return result


def eye(rows, columns, diagonal, dtype):
    """Return a matrix of zeros with ones on a diagonal, or None."""
    if dtype.char == "E":
        return None
    try:
        return np.eye(rows, columns, diagonal, dtype)
    except MemoryError:
        return None


def sequence(length, dtype, start, step, last):
    """Return start + i * step: of ints, which do not leave the dtype, or of floats; or None.

    last: what the last of floats is instead, or None.
    """
    end = start + length * step
    try:
        if dtype.kind in "iu":
            is_plain = -_MOST < start < _MOST and -_MOST < end < _MOST
            return np.arange(start, end, step, dtype) if is_plain else None
        if dtype.char == "E":
            return None
        if step == 1 and last is None and start % 1 == 0:
            most = _EXACT[dtype.char]
            if -most <= start and end <= most:  # every number is exact
                return np.arange(start + 0.0, end, dtype=dtype)  # not from -0.0
        return evenly(length, start, step, last).astype(dtype, copy=False)
    except MemoryError:
        return None


def evenly(length, start, step, last):
    """Return start + i * step as float64, and `last` for the last one if it is not None."""
    values = np.arange(length, dtype=np.float64)
    if step != 1:
        values *= step
    if start != 0 or step < 0:  # 0 * step is -0.0 where step is negative
        values += start
    if last is not None and length:
        values[-1] = last
    return values
