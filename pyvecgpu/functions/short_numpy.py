"""What short_calls.py calls instead of functions: of ndarrays, the same by a call of NumPy.

Each gives None for what is not for it, and may raise NumPy's errors for that: the long way says
what is wrong. An argument may be anything, so each looks at what it gets.
"""

import numpy as np

from ..backends.cpu_ways import holds, may_share

_INTEGERS = {int}


def _is_real(*values):
    """Whether all are ndarrays of bools, integers or real floats."""
    for one in values:  # not by a generator, which costs as much as a small call
        if type(one) is np.ndarray and one.dtype.kind in "buif":
            continue
        return False
    return True


def _is_axis(axis, x):
    """Whether an axis is an integer, of an array that has axes, or None."""
    return axis is None or (type(axis) is int and x.ndim > 0)


def _indices(value):
    """Return indices as an ndarray, or None; NumPy wraps uint64."""
    if type(value) is list and {*map(type, value)} == _INTEGERS:
        value = np.array(value)
    if type(value) is not np.ndarray:
        return None
    return value if value.dtype.kind == "i" or value.dtype.char in "BHI" else None


# Taking -------------------------------------------------------------------------------------------


def take(x, indices, axis=None):
    indices = _indices(indices)
    if indices is None or not _is_real(x) or not _is_axis(axis, x):
        return None
    return x.take(indices, axis)


def take_along_axis(x, indices, axis=-1):
    indices = _indices(indices)
    if indices is None or not _is_real(x) or not _is_axis(axis, x) or indices.ndim != x.ndim:
        return None
    if x.ndim == 1:
        return x[indices] if axis is None or -1 <= axis <= 0 else None
    return np.take_along_axis(x, indices, axis)


def compress(condition, x, axis=None):
    if not _is_real(x, condition) or condition.dtype.kind != "b" or not _is_axis(axis, x):
        return None
    return x.compress(condition, axis) if condition.ndim == 1 else None


def extract(condition, x):
    if not _is_real(x, condition) or condition.dtype.kind != "b":
        return None
    return x.ravel().compress(condition.ravel())


# Putting ------------------------------------------------------------------------------------------


def _fits(x, values):
    """Whether values may be written to an ndarray as they are: of its dtype, and no part of it."""
    if type(values) is np.ndarray:
        return values.dtype == x.dtype and not may_share(x, values)
    return holds(x.dtype, values)


def put(x, ind, v):
    indices = _indices(ind)
    if indices is None or not _is_real(x) or not (x.flags.c_contiguous and x.flags.writeable):
        return None
    if not _fits(x, v) or may_share(x, indices):
        return None
    if type(v) is np.ndarray:
        v = v.reshape(-1)
        if v.size != 1 and v.size < indices.size:
            return None
        v = v[: indices.size]
    x.reshape(-1)[indices.reshape(-1)] = v
    return True


def put_along_axis(x, indices, values, axis):
    indices = _indices(indices)
    if indices is None or not _is_real(x) or type(axis) is not int or not x.flags.writeable:
        return None
    if indices.ndim != x.ndim or not _fits(x, values) or may_share(x, indices):
        return None
    if type(values) is np.ndarray and values.shape != indices.shape:
        return None
    if x.ndim == 1 and -1 <= axis <= 0:
        x[indices] = values
        return True
    if not -x.ndim <= axis < x.ndim:
        return None
    axis %= x.ndim
    if x.shape[:axis] + x.shape[axis + 1 :] != indices.shape[:axis] + indices.shape[axis + 1 :]:
        return None
    np.put_along_axis(x, indices, values, axis)
    return True


# Deleting, inserting, joining ---------------------------------------------------------------------


def delete(x, obj, axis=None):
    if not _is_real(x) or type(obj) is not int or not _is_axis(axis, x):
        return None
    return np.delete(x, obj, axis)


def insert(x, obj, values, axis=None):
    if not _is_real(x) or type(obj) is not int or not _is_axis(axis, x) or not _fits(x, values):
        return None
    return np.insert(x, obj, values, axis)


def append(x, values, axis=None):
    if not _is_real(x, values) or x.dtype != values.dtype or not _is_axis(axis, x):
        return None
    if axis is None:
        x, values, axis = x.ravel(), values.ravel(), 0
    return np.concatenate((x, values), axis)


def pad(x, pad_width, mode="constant", *, constant_values=0):
    if not _is_real(x) or type(pad_width) is not int or pad_width < 0 or not x.ndim:
        return None
    if mode != "constant" or not holds(x.dtype, constant_values):
        return None
    shape = tuple([n + 2 * pad_width for n in x.shape])
    is_zero = type(constant_values) is int and not constant_values
    result = np.zeros(shape, x.dtype) if is_zero else np.full(shape, constant_values, x.dtype)
    result[tuple([slice(pad_width, pad_width + n) for n in x.shape])] = x
    return result


def tril(x, k=0):
    return _triangle(np.tril, x, k)


def triu(x, k=0):
    return _triangle(np.triu, x, k)


def _triangle(function, x, k):
    if not _is_real(x) or x.ndim < 2 or type(k) is not int or not -(2**31) < k < 2**31:
        return None
    return function(x, k)


# Searching ----------------------------------------------------------------------------------------


def nonzero(x):
    return x.nonzero() if _is_real(x) and x.ndim else None


def flatnonzero(x):
    return x.ravel().nonzero()[0] if _is_real(x) else None


def argwhere(x):
    return x.nonzero()[0][:, None] if _is_real(x) and x.ndim == 1 else None


def unique_values(x):
    return np.unique(x) if _is_real(x) and x.dtype.kind != "f" else None
