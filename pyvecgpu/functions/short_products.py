"""Short ways of products of arrays, and of sums by einsum, each by a call of NumPy.

They are for short_calls.short: see short_numpy.py.
"""

import functools

import numpy as np

from .short_numpy import _is_real, _multiply, _sum
from .short_ufuncs import rounded
from .subscripts import plan_of


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
    if not _is_real(x) or x.dtype.char == "e":
        return None
    if not type(offset) is type(axis1) is type(axis2) is int:
        return None
    if x.dtype.kind != "f":
        return x.trace(offset, axis1, axis2, np.uint64 if x.dtype.kind == "u" else np.int64)
    return rounded(x.trace(offset, axis1, axis2, np.float64) + 0.0, x.dtype)


def einsum(subscripts, *operands):
    """Return the sum of one operand over some axes, or the product of two by a plan."""
    if type(subscripts) is not str or not 1 <= len(operands) <= 2:
        return None
    x = operands[0]
    if type(x) is not np.ndarray or x.dtype.char == "e":
        return None
    if len(operands) == 2:
        return _product(subscripts, *operands)
    axes = _lost(subscripts, x.ndim) if x.dtype.char in "fd" else None
    return None if axes is None else np.asarray(_sum(x, axes), order="C")


def _product(subscripts, a, b):
    plan = plan_of(subscripts, a.shape, b.shape) if type(b) is np.ndarray else None
    if plan is None or a.dtype is not b.dtype:
        return None
    (axes_a, shape_a), (axes_b, shape_b), (shape, axes), _ = plan
    a = a if axes_a is None else a.transpose(axes_a)
    b = b if axes_b is None else b.transpose(axes_b)
    a = a if shape_a is None else a.reshape(shape_a)
    b = b if shape_b is None else b.reshape(shape_b)
    result = np.asarray(a.dot(b) if a.ndim == b.ndim == 2 else np.matmul(a, b))
    result = result if shape is None else result.reshape(shape)
    return result if axes is None else result.transpose(axes)


@functools.lru_cache(maxsize=256)
def _lost(subscripts, ndim):
    """Return the axes that einsum sums one operand over, or None if it does anything else."""
    labels, arrow, wanted = subscripts.partition("->")
    if not (arrow and labels.isalpha() and labels.isascii()) or len(labels) != ndim:
        return None
    if len({*labels}) != ndim or wanted != "".join([one for one in labels if one in wanted]):
        return None
    return tuple([i for i, label in enumerate(labels) if label not in wanted]) or None
