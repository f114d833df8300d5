"""Short ways of functions that join, repeat, roll, delete and insert, each by a call of NumPy.

They are for short_calls.short: see short_numpy.py.
"""

import numpy as np

from ..backends.cpu_ways import holds
from ..native.abi import MAX_NDIM
from .short_numpy import _fits, _is_axis, _is_real

# Joining ------------------------------------------------------------------------------------------


def _are_parts(arrays):
    """Whether it is a list or tuple of ndarrays: those that come here are of real numbers."""
    return (type(arrays) is list or type(arrays) is tuple) and _is_real(*arrays)


def _dtype_of(arrays):
    """The dtype that ndarrays are promoted to together."""
    dtype = arrays[0].dtype
    for one in arrays:
        if one.dtype is not dtype:
            return np.result_type(*arrays)
    return dtype


def concat(arrays, axis=0):
    if not _are_parts(arrays) or not _is_axis(axis, arrays[0]):
        return None
    if arrays[0].flags.c_contiguous or axis is None:
        return np.concatenate(arrays, axis)
    # NumPy's result is in the order of the parts.
    first = arrays[0].shape
    if not -len(first) <= axis < len(first):
        return None
    axis %= len(first)
    length = sum([one.shape[axis] for one in arrays])
    result = np.empty((*first[:axis], length, *first[axis + 1 :]), _dtype_of(arrays))
    return np.concatenate(arrays, axis, out=result)


def stack(arrays, axis=0):
    if not _are_parts(arrays) or type(axis) is not int:
        return None
    first = arrays[0].shape
    ndim = len(first) + 1
    if not -ndim <= axis < ndim or ndim > MAX_NDIM:
        return None
    axis %= ndim
    result = np.empty((*first[:axis], len(arrays), *first[axis:]), _dtype_of(arrays))
    places = (slice(None),) * axis
    for i, one in enumerate(arrays):
        if one.shape != first:
            return None
        result[(*places, i)] = one
    return result


def vstack(arrays):
    return np.vstack(arrays) if _are_parts(arrays) else None


def hstack(arrays):
    return np.hstack(arrays) if _are_parts(arrays) else None


def dstack(arrays):
    return np.dstack(arrays) if _are_parts(arrays) else None


def column_stack(arrays):
    return np.column_stack(arrays) if _are_parts(arrays) else None


def append(x, values, axis=None):
    if not _is_real(x, values) or x.dtype != values.dtype or not _is_axis(axis, x):
        return None
    if axis is None:
        x, values, axis = x.ravel(), values.ravel(), 0
    return np.concatenate((x, values), axis)


# Deleting, inserting, padding ---------------------------------------------------------------------


def delete(x, obj, axis=None):
    if not _is_real(x) or type(obj) is not int or not _is_axis(axis, x):
        return None
    if x.ndim != 1:
        return np.delete(x, obj, axis)
    n = x.size
    if (axis is not None and not -1 <= axis <= 0) or not -n <= obj < n:
        return None
    return np.concatenate((x[: obj % n], x[obj % n + 1 :]))


def insert(x, obj, values, axis=None):
    if not _is_real(x) or type(obj) is not int or not _is_axis(axis, x) or not _fits(x, values):
        return None
    if type(values) is np.ndarray and values.ndim > x.ndim:
        return None
    if x.ndim != 1 or (type(values) is np.ndarray and values.ndim != 1):
        return np.insert(x, obj, values, axis)
    n = x.size
    if (axis is not None and not -1 <= axis <= 0) or not -n <= obj <= n:
        return None
    place = obj if obj >= 0 else obj + n
    end = place + (values.size if type(values) is np.ndarray else 1)
    result = np.empty(n + end - place, x.dtype)
    result[:place], result[place:end], result[end:] = x[:place], values, x[place:]
    return result


def pad(x, pad_width, mode="constant", **options):
    constant_values = options.pop("constant_values", 0)
    if options or not _is_real(x) or type(pad_width) is not int or pad_width < 0 or not x.ndim:
        return None
    if mode != "constant" or not holds(x.dtype, constant_values):
        return None
    shape = tuple([n + 2 * pad_width for n in x.shape])
    is_zero = type(constant_values) is int and not constant_values
    result = np.zeros(shape, x.dtype) if is_zero else np.full(shape, constant_values, x.dtype)
    result[tuple([slice(pad_width, pad_width + n) for n in x.shape])] = x
    return result


# Repeating and rolling ----------------------------------------------------------------------------


def tile(x, repetitions):
    """Return what np.tile does, of a row at once."""
    if not _is_real(x) or not x.size or type(repetitions) is not int or repetitions < 0:
        return None
    if x.ndim != 1 or not repetitions:
        return np.tile(x, repetitions)
    result = np.empty((repetitions, x.size), x.dtype)
    result[...] = x
    return result.reshape(-1)


def repeat(x, repeats, axis=None):
    if not _is_real(x) or type(repeats) is not int or repeats < 0 or not _is_axis(axis, x):
        return None
    return x.repeat(repeats, axis)


def roll(x, shift, axis=None):
    """Return what np.roll does, of all elements in a row at once."""
    if not _is_real(x) or type(shift) is not int or not _is_axis(axis, x):
        return None
    if axis is not None or not x.size:
        return np.roll(x, shift, axis)
    row, shift = x.reshape(-1), shift % x.size
    result = np.empty(x.size, x.dtype)
    result[:shift], result[shift:] = row[x.size - shift :], row[: x.size - shift]
    return result.reshape(x.shape)
