"""What short_calls.py calls instead of functions: of ndarrays, the same by a call of NumPy.

Each gives None for what is not for it, and may raise NumPy's errors for that: the long way says
what is wrong. An argument may be anything, so each looks at what it gets.
"""

import math

import numpy as np

from ..backends import cpu_functions, cpu_sorting
from ..backends.cpu_ways import holds, may_share
from .short_ufuncs import float_of, numbers_of, rounded

_INTEGERS = {int}


def _is_real(*values):
    """Whether all are ndarrays: those that come here are of bools, integers or real floats."""
    for one in values:  # not by a generator, which costs as much as a small call
        if type(one) is np.ndarray:
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
    if x.ndim == 2 and (axis == 1 or axis == -1):
        return x[np.arange(x.shape[0])[:, None], indices]
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


# Triangles ----------------------------------------------------------------------------------------


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
    return distinct(x)


def distinct(x):
    """Return the elements in order, each once; None where NaN is among them."""
    in_order = x.flatten()
    in_order.sort()
    if in_order[-1] != in_order[-1]:
        return None
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


# Sums, differences and averages -------------------------------------------------------------------


def _sum(x, axis):
    """Return the sums along an axis, some, or None for all, as vg.sum makes them."""
    char = x.dtype.char if (axis is None or x.ndim == 1) and x.flags.c_contiguous else ""
    if char == "d" or (char == "f" and x.size > cpu_functions.FEW):  # what is below, and sooner
        return np.add.reduce(x, None) + 0.0
    axes = (axis % x.ndim,) if type(axis) is int else axis
    result = cpu_functions.sum(x, axes, False)
    if x.dtype.kind != "f":
        return result.astype(np.uint64 if x.dtype.kind == "u" else np.int64, copy=False)
    return result.astype(x.dtype, copy=False)


def _mean(x, axes, keepdims):
    return cpu_functions.mean(x, axes, keepdims).astype(x.dtype, copy=False)


def _as_floats(x):
    """Return an ndarray with axes and elements as floats to compute in, and the results' dtype.

    Both None: it is something else. Bools and integers are float64.
    """
    dtype = float_of(x)
    if dtype is None or not x.size or not x.ndim:
        return None, None
    return numbers_of(x), dtype


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
    return x[(*before, _BEHIND)] - x[(*before, _BEFORE)]


_BEHIND, _BEFORE = slice(1, None), slice(None, -1)


def ediff1d(x):
    if not _is_real(x) or x.dtype.kind == "b":
        return None
    x = x.ravel()
    return x[1:] - x[:-1]


def gradient(f):
    f, dtype = _as_floats(f)
    if dtype is None or f.ndim != 1 or f.size < 2:
        return None
    result = np.empty_like(f)
    inner = np.subtract(f[2:], f[:-2], out=result[1:-1])
    inner /= 2
    result[0], result[-1] = f[1] - f[0], f[-1] - f[-2]
    return rounded(result, dtype)


def trapezoid(y):
    y, dtype = _as_floats(y)
    if dtype is None:
        return None
    both = y[..., 1:] + y[..., :-1]
    both /= 2
    return rounded(_sum(both, -1), dtype)


def unwrap(p):
    """Return angles without steps of more than half a turn along the last axis."""
    dtype = float_of(p)
    if dtype is None or not p.ndim or p.shape[-1] < 2:
        return None
    p = p.astype(dtype, order="C")
    steps = p[..., 1:] - p[..., :-1]
    within = steps + math.pi
    np.remainder(within, 2 * math.pi, out=within)
    within -= math.pi
    np.copyto(within, math.pi, where=(within == -math.pi) & (steps > 0))
    within -= steps
    np.copyto(within, 0.0, where=np.abs(steps) < math.pi)
    p[..., 1:] += _scan(np.add, within, -1)
    return p


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
    dtype = float_of(x)
    if dtype is None or not x.size or not x.ndim or not _is_axis(axis, x):
        return None
    axes = axis if axis is None else (axis % x.ndim,)
    if axis is not None and not -x.ndim <= axis < x.ndim:
        return None
    if weights is None:
        return rounded(np.asarray(cpu_functions.mean(x, axes, False)), dtype)
    if type(weights) is not np.ndarray or weights.dtype != x.dtype or weights.shape != x.shape:
        return None
    x, weights = numbers_of(x), numbers_of(weights)
    return rounded(_sum(x * weights, axes) / _sum(weights, axes), dtype)


def cov(x):
    x, dtype = _as_floats(x)
    if dtype is None or x.ndim > 2 or x.shape[-1] < 2:
        return None
    rows = x[None] if x.ndim == 1 else x
    centred = rows - _mean(rows, (1,), True)
    result = np.matmul(centred, centred.T)
    result /= float(rows.shape[1] - 1)
    return rounded(result if len(result) > 1 else result.reshape(()), dtype)


def corrcoef(x):
    matrix = cov(x)
    if matrix is None or not matrix.ndim:
        return None
    spread = np.sqrt(matrix.diagonal())
    matrix = matrix / spread[:, None]
    matrix /= spread
    return np.minimum(np.maximum(matrix, -1, out=matrix), 1, out=matrix)
