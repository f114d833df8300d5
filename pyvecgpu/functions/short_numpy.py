"""What short_calls.py calls instead of functions: of ndarrays, the same by a call of NumPy.

Each gives None for what is not for it, and may raise NumPy's errors for that: the long way says
what is wrong. An argument may be anything, so each looks at what it gets.
"""

import functools

import numpy as np

from ..backends import cpu_functions, cpu_sorting
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
    if indices is None or not _is_real(x) or not _is_axis(axis, x) or not x.size:
        return None  # of an array without elements NumPy takes indices that are out of range
    return x.take(indices, axis)


def take_along_axis(x, indices, axis=-1):
    indices = _indices(indices)
    if indices is None or not _is_real(x) or not _is_axis(axis, x) or indices.ndim != x.ndim:
        return None
    if not x.size:
        return None
    if x.ndim == 1:
        return x[indices] if axis is None or -1 <= axis <= 0 else None
    return np.take_along_axis(x, indices, axis)


def compress(condition, x, axis=None):
    if not _is_real(x, condition) or condition.dtype.kind != "b" or not _is_axis(axis, x):
        return None
    return x.compress(condition, axis) if condition.ndim == 1 and x.size else None


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
    if type(values) is np.ndarray and values.ndim > x.ndim:
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
    if not _is_real(x) or x.dtype.kind == "f" or not x.size:
        return None
    in_order = np.sort(x, axis=None)
    differs = np.empty(in_order.size, bool)
    differs[0] = True
    np.not_equal(in_order[1:], in_order[:-1], out=differs[1:])
    return in_order[differs]


# Orders -------------------------------------------------------------------------------------------


def sort(x, axis=-1):
    if not _is_real(x) or type(axis) is not int or not -x.ndim <= axis < x.ndim:
        return None
    if x.dtype.char == "e":
        return cpu_sorting.sort(x, axis, False)
    result = x.copy()
    result.sort(axis)
    if x.dtype.kind == "f":
        cpu_sorting.order_zeros(x, result, axis)
    return result


def argsort(x, axis=-1):
    if not _is_real(x) or type(axis) is not int or not -x.ndim <= axis < x.ndim:
        return None
    return cpu_sorting.argsort(x, axis, False)


def searchsorted(x1, x2, side="left"):
    if not _is_real(x1, x2) or x1.dtype != x2.dtype or x1.ndim != 1 or side not in _SIDES:
        return None
    return x1.searchsorted(x2, side)


_SIDES = ("left", "right")


# Products -----------------------------------------------------------------------------------------


def _multiply(*values):
    """Whether all are ndarrays of one dtype, which NumPy multiplies and adds up as we do."""
    dtype = values[0].dtype if type(values[0]) is np.ndarray else None
    for one in values:
        if type(one) is not np.ndarray or one.dtype is not dtype or not one.ndim:
            return False
    return dtype.char in "fd" or dtype.kind in "iu"


def tensordot(x1, x2, axes=2):
    if not _multiply(x1, x2):
        return None
    if type(axes) is int:
        fits = 0 <= axes <= min(x1.ndim, x2.ndim)
    else:
        fits = [[*map(type, one)] for one in axes] == [[int], [int]]
        if fits and x1.ndim == x2.ndim == 2:
            ((i,), (j,)) = axes
            return np.matmul(_with_last(x1, i), _with_last(x2, j).T)
    return np.tensordot(x1, x2, axes) if fits else None


def _with_last(x, axis):
    """Return a matrix with one of its axes as the last."""
    return x if range(2)[axis] == 1 else x.T


def outer(x1, x2):
    if not _multiply(x1, x2):
        return None
    return np.multiply(x1.ravel()[:, None], x2.ravel())


def kron(x1, x2):
    if not _multiply(x1, x2) or x1.ndim != x2.ndim or x1.ndim > 2:
        return None
    if x1.ndim == 1:
        return np.multiply(x1[:, None], x2).reshape(-1)
    shape = (x1.shape[0] * x2.shape[0], x1.shape[1] * x2.shape[1])
    return np.multiply(x1[:, None, :, None], x2[None, :, None, :]).reshape(shape)


_NEXT, _AFTER = np.array([1, 2, 0]), np.array([2, 0, 1])


def cross(x1, x2):
    if not _multiply(x1, x2) or not x1.shape[-1] == x2.shape[-1] == 3:
        return None
    result = x1.take(_NEXT, -1) * x2.take(_AFTER, -1)
    result -= x1.take(_AFTER, -1) * x2.take(_NEXT, -1)
    return result


def trace(x, offset=0, axis1=0, axis2=1):
    if not _is_real(x) or x.dtype.char == "e" or type(offset) is not int:
        return None
    diagonal = x.diagonal(offset, axis1, axis2)
    if x.dtype.kind != "f":
        return np.add.reduce(diagonal, -1, np.uint64 if x.dtype.kind == "u" else np.int64)
    return (np.add.reduce(diagonal, -1, np.float64) + 0.0).astype(x.dtype)


def einsum(subscripts, x):
    """Return the sum of one operand over some axes."""
    if type(subscripts) is not str or type(x) is not np.ndarray or x.dtype.char not in "fd":
        return None
    axes = _lost(subscripts, x.ndim)
    return None if axes is None else _sum(x, axes)


@functools.lru_cache(maxsize=256)
def _lost(subscripts, ndim):
    """Return the axes that einsum sums one operand over, or None if it does anything else."""
    labels, arrow, wanted = subscripts.partition("->")
    if not (arrow and labels.isalpha() and labels.isascii()) or len(labels) != ndim:
        return None
    if len({*labels}) != ndim or wanted != "".join([one for one in labels if one in wanted]):
        return None
    return tuple([i for i, label in enumerate(labels) if label not in wanted]) or None


# Sums, differences and averages -------------------------------------------------------------------


def _sum(x, axis):
    """Return the sums along an axis, some, or None for all, as vg.sum makes them."""
    axes = (axis % x.ndim,) if type(axis) is int else axis
    result = cpu_functions.sum(x, axes, False)
    if x.dtype.kind != "f":
        return result.astype(np.uint64 if x.dtype.kind == "u" else np.int64, copy=False)
    return result.astype(x.dtype, copy=False)


def _mean(x, axes, keepdims):
    return cpu_functions.mean(x, axes, keepdims).astype(x.dtype, copy=False)


def _is_float(x):
    """Whether something is an ndarray of float32 or float64, with elements."""
    return type(x) is np.ndarray and x.dtype.char in "fd" and x.size > 0


def cumsum(x, axis=None):
    return _scan(np.add, x, axis)


def cumprod(x, axis=None):
    return _scan(np.multiply, x, axis)


def _scan(ufunc, x, axis):
    if not _is_real(x) or not x.ndim or (axis is not None and type(axis) is not int):
        return None
    if axis is None:
        x, axis = x if x.ndim == 1 else x.ravel(), 0
    kind = x.dtype.kind
    if kind != "f":
        return ufunc.accumulate(x, axis, np.uint64 if kind == "u" else np.int64)
    if not -x.ndim <= axis < x.ndim:
        return None
    return cpu_functions.scan_of_floats(ufunc, x, axis)


def diff(x, n=1, axis=-1):
    if not _is_real(x) or x.dtype.kind == "b" or not x.ndim or type(axis) is not int:
        return None
    if type(n) is not int or n != 1:
        return None
    if x.ndim == 1:
        return x[1:] - x[:-1] if -1 <= axis <= 0 else None
    if not -x.ndim <= axis < x.ndim:
        return None
    before = (slice(None),) * (axis % x.ndim)
    behind, x = x[(*before, _BEHIND)], x[(*before, _BEFORE)]
    return np.subtract(behind, x, out=np.empty(x.shape, x.dtype))


_BEHIND, _BEFORE = slice(1, None), slice(None, -1)


def ediff1d(x):
    if not _is_real(x) or x.dtype.kind == "b":
        return None
    x = x.ravel()
    return x[1:] - x[:-1]


def gradient(f):
    if not _is_float(f) or f.ndim != 1 or f.size < 2:
        return None
    result = np.empty_like(f)
    inner = np.subtract(f[2:], f[:-2], out=result[1:-1])
    inner /= 2
    result[0], result[-1] = f[1] - f[0], f[-1] - f[-2]
    return result


def trapezoid(y):
    if not _is_float(y) or not y.ndim:
        return None
    both = y[..., 1:] + y[..., :-1]
    both /= 2
    return _sum(both, -1)


def convolve(x1, x2, mode="full"):
    if not _multiply(x1, x2) or type(mode) is not str:
        return None
    return np.convolve(x1, x2, mode)


def vander(x, N=None, increasing=False):
    if type(x) is not np.ndarray or x.ndim != 1 or x.dtype.char not in "fdl":
        return None
    count = x.size if N is None else N
    if type(count) is not int or count < 1:
        return None
    result = np.empty((x.size, count), x.dtype)
    powers = result if increasing else result[:, ::-1]
    powers[:, 0] = 1
    powers[:, 1:] = x[:, None]
    if count > 2:
        np.multiply.accumulate(powers[:, 1:], axis=1, out=powers[:, 1:])
    return result


def average(x, axis=None, weights=None):
    if not _is_float(x) or not _is_axis(axis, x) or not x.ndim:
        return None
    axes = axis if axis is None else (axis % x.ndim,)
    if axis is not None and not -x.ndim <= axis < x.ndim:
        return None
    if weights is None:
        return _mean(x, axes, False)
    if not _is_float(weights) or weights.dtype != x.dtype or weights.shape != x.shape:
        return None
    return _sum(x * weights, axes) / _sum(weights, axes)


def cov(x):
    if not _is_float(x) or not 0 < x.ndim <= 2 or x.shape[-1] < 2:
        return None
    rows = x[None] if x.ndim == 1 else x
    centred = rows - _mean(rows, (1,), True)
    result = np.matmul(centred, centred.T)
    result /= float(rows.shape[1] - 1)
    return result if len(result) > 1 else result.reshape(())


def corrcoef(x):
    matrix = cov(x)
    if matrix is None or not matrix.ndim:
        return None
    spread = np.sqrt(matrix.diagonal())
    matrix = matrix / spread[:, None]
    matrix /= spread
    return np.minimum(np.maximum(matrix, -1, out=matrix), 1, out=matrix)
