"""Short ways of linalg on the CPU device, by a call of NumPy: see functions/short_calls.py.

They are for matrices of float32 and float64, which NumPy computes in as they are, and of bools and
integers, which it computes with in float64; results of these are rounded once to the default float.
What NumPy refuses, singular matrices among it, goes the long way, which says so.
"""

import math

import numpy as np

from ..backends.cpu_optimizing import total_norm
from ..dtypes import complex_dtype
from ..functions import short_names, short_products
from ..functions.short_numpy import _multiply
from ..functions.short_ufuncs import float_of, numbers_of, rounded

# What systems.py and decompositions.py take -------------------------------------------------------


def _dtype_of(x):
    """The dtype of the results of matrices, or None."""
    return float_of(x) if type(x) is np.ndarray and x.ndim >= 2 else None


def _dtype_beside(x1, x2):
    """The same of matrices beside an array of their dtype."""
    if type(x2) is not np.ndarray or not x2.ndim or type(x1) is not np.ndarray:
        return None
    return _dtype_of(x1) if x1.dtype is x2.dtype else None


def _of_matrices(function, is_complex=False):
    """Return the short way of a function of matrices and of no other arguments."""

    def compute(x):
        dtype = _dtype_of(x)
        if dtype is None:
            return None
        return rounded(function(x), complex_dtype(dtype) if is_complex else dtype)

    return compute


def _all_rounded(results, dtype):
    """Return a tuple of what is of one dtype, in another one."""
    if results[0].dtype is dtype:
        return tuple(results)
    return tuple([rounded(one, dtype) for one in results])


inv, det, svdvals = map(_of_matrices, (np.linalg.inv, np.linalg.det, np.linalg.svdvals))
cond, eigvals = _of_matrices(np.linalg.cond), _of_matrices(np.linalg.eigvals, True)


def slogdet(x):
    dtype = _dtype_of(x)
    return None if dtype is None else _all_rounded(np.linalg.slogdet(x), dtype)


def eig(x):
    dtype = _dtype_of(x)
    return None if dtype is None else _all_rounded(np.linalg.eig(x), complex_dtype(dtype))


def solve(x1, x2):
    dtype = _dtype_beside(x1, x2)
    return None if dtype is None else rounded(np.linalg.solve(x1, x2), dtype)


def tensorsolve(a, b):
    dtype = _dtype_beside(a, b)
    if dtype is None or not a.size:
        return None
    return rounded(np.linalg.tensorsolve(a, b), dtype)


def tensorinv(x, ind=2):
    dtype = _dtype_of(x)
    if dtype is None or type(ind) is not int or ind < 1:
        return None
    return rounded(np.linalg.tensorinv(x, ind), dtype)


def cholesky(x, upper=False):
    dtype = _dtype_of(x)
    return None if dtype is None else rounded(np.linalg.cholesky(x, upper=bool(upper)), dtype)


def qr(x, mode="reduced"):
    dtype = _dtype_of(x)
    if dtype is None or (mode != "reduced" and mode != "complete"):
        return None
    return _all_rounded(np.linalg.qr(x, mode), dtype)


def _is_finite(x):
    """Whether elements are for LAPACK's singular vectors; host.py sees it exactly."""
    return x.dtype.kind != "f" or math.isfinite(np.add.reduce(x, None))


def svd(x, full_matrices=True):
    dtype = _dtype_of(x)
    if dtype is None or not _is_finite(x):
        return None
    return _all_rounded(np.linalg.svd(x, bool(full_matrices)), dtype)


def eigh(x, UPLO="L"):
    dtype = _dtype_of(x)
    if dtype is None or UPLO not in _HALVES:
        return None
    return _all_rounded(np.linalg.eigh(x, UPLO), dtype)


def eigvalsh(x, UPLO="L"):
    dtype = _dtype_of(x)
    if dtype is None or UPLO not in _HALVES:
        return None
    return rounded(np.linalg.eigvalsh(x, UPLO), dtype)


_HALVES = ("L", "U")


def _tolerance(x, s):
    """Return what singular values of matrices are compared with."""
    dtype = np.float64 if x.dtype.kind != "f" else x.dtype
    return s.max(-1, keepdims=True) * float(max(x.shape[-2:]) * np.finfo(dtype).eps)


def pinv(x):
    dtype = _dtype_of(x)
    if dtype is None or not x.size or not _is_finite(x):
        return None
    u, s, vh = np.linalg.svd(x, False)
    kept = s > _tolerance(x, s)
    inverse = (1.0 / np.where(kept, s, s.dtype.type(1.0))) * kept
    result = np.matmul(vh.mT, inverse[..., None] * u.mT)
    return rounded(result, dtype)


def matrix_rank(x):
    if _dtype_of(x) is None or not x.size:
        return None
    s = np.linalg.svd(x, compute_uv=False)
    return np.add.reduce(s > _tolerance(x, s), -1, np.int64)


def lstsq(a, b, rcond=None):
    dtype = _dtype_beside(a, b)
    if dtype is None or (rcond is not None and type(rcond) is not float):
        return None
    if not (_is_finite(a) and _is_finite(b)):
        return None
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond)
    return rounded(x, dtype), rounded(residuals, dtype), int(rank), rounded(s, dtype)


def matrix_power(x, n):
    if not _multiply(x) or x.ndim < 2 or x.shape[-1] != x.shape[-2] or type(n) is not int or n < 1:
        return None
    if n == 1:
        return x.copy()
    result, multiply = None, np.dot if x.ndim == 2 else np.matmul
    while True:
        if n % 2:
            result = x if result is None else multiply(result, x)
        n //= 2
        if not n:
            return result
        x = multiply(x, x)


# Norms and products -------------------------------------------------------------------------------


def norm(x, ord=None, axis=None, keepdims=False):
    return _length(x) if ord is axis is None and keepdims is False else None


def vector_norm(x, axis=None, keepdims=False, ord=2):
    is_plain = axis is None and keepdims is False and type(ord) is int and ord == 2
    return _length(x) if is_plain else None


def matrix_norm(x, keepdims=False, ord="fro"):
    is_plain = ord == "fro" and keepdims is False and type(x) is np.ndarray and x.ndim == 2
    return _length(x) if is_plain else None


def _length(x):
    """Return the root of the sum of all squares."""
    dtype = float_of(x)
    if dtype is None:
        return None
    x = (x if x.dtype.kind == "f" else numbers_of(x)).reshape(-1)
    if x.size <= _PIECE or x.itemsize == 8:
        squares = _sum_of_squares(x)
    else:
        pieces = [x[i : i + _PIECE] for i in range(0, x.size, _PIECE)]
        squares = sum([_sum_of_squares(one).item() for one in pieces])
    if not _WITHOUT_LOSS[x.itemsize] < squares < math.inf:
        return total_norm([x.astype(dtype, copy=False)], 2.0)
    return np.sqrt(squares) if type(squares) is dtype.type else np.array(math.sqrt(squares), dtype)


def _sum_of_squares(x):
    """Return the sum of the squares of floats in a row, without a word of what is too large."""
    if x.flags.c_contiguous:
        return np.vdot(x, x)
    with np.errstate(over="ignore"):
        return x.dot(x)


_PIECE = 1 << 16  # float32 elements of which BLAS adds up the products
# By the bytes of an element: sums of squares above have lost nothing that counts to subnormals.
_WITHOUT_LOSS = {4: 1e-30, 8: 1e-280}


def diagonal(x, offset=0):
    return short_names.diagonal(x, offset, -2, -1)


def trace(x, offset=0):
    return short_products.trace(x, offset, -2, -1)


def outer(x1, x2):
    if not _multiply(x1, x2) or not x1.ndim == x2.ndim == 1:
        return None
    return np.multiply(x1[:, None], x2)


def multi_dot(arrays):
    if len(arrays) != 3 or not _multiply(*arrays) or any(one.ndim != 2 for one in arrays):
        return None
    a, b, c = arrays
    if a.shape[1] != b.shape[0] or b.shape[1] != c.shape[0]:
        return None
    first = a.shape[0] * b.shape[1] * (a.shape[1] + c.shape[1])
    if first < c.shape[1] * a.shape[1] * (b.shape[1] + a.shape[0]):
        return np.matmul(np.matmul(a, b), c)
    return np.matmul(a, np.matmul(b, c))
