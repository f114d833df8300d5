"""Short ways of polynomials, each step of the long way by NumPy: see short_calls.py."""

import math

import numpy as np

from ..dtypes import complex_dtype
from .short_numpy import vander
from .short_ufuncs import FLOATS, INTEGERS, float_of

_EPS = {"f": float(np.finfo("f").eps), "d": float(np.finfo("d").eps)}


def _are_coefficients(*values):
    for one in values:
        if type(one) is not np.ndarray or one.ndim != 1 or one.dtype is not values[0].dtype:
            return False
    return values[0].size > 0 and values[0].dtype.char in FLOATS + INTEGERS


def polyval(p, x):
    if (
        not _are_coefficients(p)
        or type(x) is not np.ndarray
        or x.dtype is not p.dtype
        or not x.ndim
    ):
        return None
    result = np.zeros(x.shape, x.dtype)
    for one in p:
        result *= x
        result += one
    return result


def polyadd(a1, a2):
    return _sum_of(np.add, a1, a2)


def polysub(a1, a2):
    return _sum_of(np.subtract, a1, a2)


def _sum_of(function, a1, a2):
    if not _are_coefficients(a1, a2) or a1.size != a2.size:
        return None
    return function(a1, a2)


def polyder(p, m=1):
    if not _are_coefficients(p) or type(m) is not int or m != 1:
        return None
    return p[:-1] * np.arange(p.size - 1, 0, -1).astype(p.dtype)


def polyint(p, m=1, k=0.0):
    dtype = float_of(p)
    if dtype is None or p.ndim != 1 or type(m) is not int or m != 1 or type(k) is not float:
        return None
    result = np.empty(p.size + 1, dtype)
    powers = np.arange(p.size, 0, -1, dtype)
    np.divide(p.astype(dtype, copy=False), powers, out=result[:-1])
    result[-1] = k
    return result


# By linear algebra --------------------------------------------------------------------------------


def roots(p):
    dtype = float_of(p)
    if dtype is None or p.ndim != 1:
        return None
    (places,) = p.nonzero()
    if not places.size:
        return None
    first, last = places[0], places[-1]
    inner = p[first : last + 1].astype(dtype, copy=False)
    n, kind = inner.size - 1, complex_dtype(dtype)
    result = np.zeros(p.size - 1 - first, kind)
    if n:
        matrix = np.zeros((n, n), dtype)
        np.multiply(inner[1:] / inner[:1], -1, out=matrix[0])
        matrix.reshape(-1)[n :: n + 1] = 1
        result[:n] = np.linalg.eigvals(matrix)
    return result


def poly(seq_of_zeros):
    zeros = seq_of_zeros
    dtype = float_of(zeros)
    if dtype is None or zeros.ndim != 1:
        return None
    zeros = zeros.astype(dtype, copy=False)
    if not np.isfinite(zeros).all():
        return None
    result = np.zeros(zeros.size + 1, dtype)
    result[0] = 1
    for i, zero in enumerate(zeros, 1):
        result[1 : i + 1] -= result[:i] * zero
    return result


def polyfit(x, y, deg):
    dtype = float_of(x)
    if dtype is None or type(y) is not np.ndarray or y.dtype is not x.dtype or type(deg) is not int:
        return None
    if not x.ndim == y.ndim == 1 or x.size != y.size or not x.size or deg < 0:
        return None
    x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
    left = vander(x, deg + 1)
    scale = np.sqrt(np.add.reduce(left * left, 0))
    lengths = scale.tolist()
    if not math.isfinite(sum(lengths)) or not min(lengths):
        return None
    limit = x.size * _EPS[dtype.char]
    solution, _, rank, _ = np.linalg.lstsq(left / scale, y, limit)
    return solution / scale if rank == deg + 1 else None
