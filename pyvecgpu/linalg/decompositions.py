"""Decompositions of matrices, and what is made of them.

On the CPU by NumPy. On a GPU cuSOLVER computes qr, svd, svdvals, eigh and eigvalsh, and so what is
made of them; eig, eigvals, lstsq and cond are NumPy's everywhere: the matrices come to the host,
and results go back, which the counters of transfers show. On the simulated card all are NumPy's.
"""

import functools
from collections import namedtuple

import numpy as np

from ..autograd.complexes import adjoint
from ..dispatch import is_tracked
from ..dtypes import complex_dtype, int64
from ..functions.arguments import Operands, parse_scalar
from ..functions.choosing import where
from ..functions.complexes import squared_length
from ..functions.elementwise import divide, greater, multiply, subtract
from ..functions.layout import as_array, astype, expand_dims, matrix_transpose, reshape
from ..functions.linalg import matmul
from ..functions.reductions import any as any_of
from ..functions.reductions import max as largest
from ..functions.reductions import sum as total
from ..functions.short_calls import short
from ..functions.values import to_host
from . import gradients, host, libraries, short_linalg
from .norms import of_matrices
from .operands import Matrices, check_matrices, on_host

__all__ = [
    "cond",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "lstsq",
    "matrix_rank",
    "pinv",
    "qr",
    "svd",
    "svdvals",
]

QRResult = namedtuple("QRResult", ["Q", "R"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])
EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
EigResult = namedtuple("EigResult", ["eigenvalues", "eigenvectors"])


@short(short_linalg.qr, c_order=False, of=QRResult)
def qr(x, /, mode="reduced"):
    """Return (Q, R), x == Q @ R: columns of length 1 at right angles, and an upper triangle.

    x: (..., m, n). mode: "reduced", with min(m, n) columns of Q; "complete", with m; "r" gives R
    alone. ValueError: another mode. LinAlgError: less than two dimensions.

    >>> a = vg.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> q, r = vg.linalg.qr(a)
    >>> q.shape, vg.allclose(q @ r, a, atol=1e-5)
    ((3, 2), True)
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'qr: mode can be "reduced", "complete" or "r", not {mode!r}')
    call = Matrices("qr", x)
    results = gradients.of(call.backend, *call.arrays).qr(call.arrays[0], mode)
    return call.give(results) if mode == "r" else QRResult(*map(call.give, results))


@short(short_linalg.svd, c_order=False, of=SVDResult)
def svd(x, /, full_matrices=True, compute_uv=True):
    """Return (U, S, Vh), x == U @ diag(S) @ Vh: singular values, descending, and their vectors.

    x: (..., m, n). full_matrices: U is m x m and Vh n x n, else as many as there are values.
    compute_uv False: S alone. LinAlgError: less than two dimensions; no convergence.

    >>> a = vg.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> u, s, vh = vg.linalg.svd(a, full_matrices=False)
    >>> u.shape, vg.allclose((u * s) @ vh, a, atol=1e-5)
    ((3, 2), True)
    """
    if not compute_uv:
        return svdvals(x)
    call = Matrices("svd", x)
    u, s, vh = gradients.of(call.backend, *call.arrays).svd(call.arrays[0], bool(full_matrices))
    return SVDResult(call.give(u), call.give_real(s), call.give(vh))


@short(short_linalg.svdvals, c_order=False)
def svdvals(x, /):
    """Return the singular values of matrices, descending; see svd.

    >>> print(vg.linalg.svdvals(vg.asarray([[3.0, 0.0], [0.0, -4.0]])))
    [4. 3.]
    """
    call = Matrices("svdvals", x)
    return call.give_real(gradients.of(call.backend, *call.arrays).svdvals(call.arrays[0]))


@short(short_linalg.eigh, c_order=False, of=EighResult)
def eigh(x, /, UPLO="L"):
    """Return (eigenvalues, eigenvectors) of symmetric matrices: values ascending, vectors columns.

    UPLO: which half is read, "L"ower or "U"pper. ValueError: another UPLO. LinAlgError: not
    square; no convergence.

    >>> values, vectors = vg.linalg.eigh(vg.asarray([[2.0, 1.0], [1.0, 2.0]]))
    >>> print(values)
    [1. 3.]
    """
    lower = _is_lower("eigh", UPLO)
    call = Matrices("eigh", x, square=True)
    values, vectors = gradients.of(call.backend, *call.arrays).eigh(call.arrays[0], lower)
    return EighResult(call.give_real(values), call.give(vectors))


@short(short_linalg.eigvalsh, c_order=False)
def eigvalsh(x, /, UPLO="L"):
    """Return the eigenvalues of symmetric matrices, ascending; see eigh.

    >>> print(vg.linalg.eigvalsh(vg.asarray([[2.0, 1.0], [1.0, 2.0]])))
    [1. 3.]
    """
    lower = _is_lower("eigvalsh", UPLO)
    call = Matrices("eigvalsh", x, square=True)
    return call.give_real(gradients.of(call.backend, *call.arrays).eigvalsh(call.arrays[0], lower))


def _is_lower(name, uplo):
    if uplo not in ("L", "l", "U", "u"):
        raise ValueError(f'{name}: UPLO can be "L" or "U", not {uplo!r}')
    return uplo in "Ll"


@short(short_linalg.eig, c_order=False, of=EigResult)
def eig(x, /):
    """Return (eigenvalues, eigenvectors) of matrices, both complex, vectors in columns.

    LinAlgError: not square; elements that are not finite; no convergence.

    >>> values, vectors = vg.linalg.eig(vg.asarray([[0.0, -1.0], [1.0, 0.0]]))
    >>> sorted(values.imag.tolist())
    [-1.0, 1.0]
    """
    call = Matrices("eig", x, square=True)
    (a,) = call.arrays
    results = gradients.Eig.apply(a, _eig) if is_tracked(a) else _eig(a)
    return EigResult(*[_give_complex(call, one) for one in results])


@short(short_linalg.eigvals, c_order=False)
def eigvals(x, /):
    """Return the eigenvalues of matrices, complex; see eig.

    >>> print(vg.linalg.eigvals(vg.asarray([[2.0, 0.0], [0.0, 3.0]])))
    [2.+0.j 3.+0.j]
    """
    call = Matrices("eigvals", x, square=True)
    (a,) = call.arrays
    if is_tracked(a):
        return _give_complex(call, gradients.Eigenvalues.apply(a, _eig))
    return _give_complex(call, on_host(call.backend, lambda x: _complex(np.linalg.eigvals(x)), a))


def _eig(a):
    """Return the eigenvalues and eigenvectors of an Array, complex."""
    return on_host(a.backend, lambda values: tuple(map(_complex, np.linalg.eig(values))), a)


def _complex(values):
    return values.astype(complex_dtype(values.dtype), copy=False)


def _give_complex(call, array):
    return call.give(array, complex_dtype(call.dtype))


@short(short_linalg.pinv, c_order=False)
def pinv(x, /, rcond=None, hermitian=False, *, rtol=None):
    """Return Moore and Penrose's pseudo-inverses of matrices (..., m, n): (..., n, m).

    rtol, or rcond, which are the same: singular values that are not above so much of the largest
    count as 0; a scalar, or one for each matrix, by default max(m, n) of the dtype's epsilon.
    hermitian: x is symmetric, from which nothing follows here. ValueError: rcond and rtol. The
    gradient is that of Golub and Pereyra (1973), of matrices whose rank stays as it is: singular
    values that count as 0 and are not leave their part out.

    >>> print(vg.linalg.pinv(vg.asarray([[2.0, 0.0], [0.0, 0.0]])))
    [[0.5 0. ]
     [0.  0. ]]
    """
    call = Matrices("pinv", x)
    (a,) = call.arrays
    if 0 in a.shape[-2:]:
        return call.give(matrix_transpose(a))

    def compute(a):
        u, s, vh = libraries.of(call.backend).svd(a, False)
        kept = greater(s, _tolerance("pinv", rcond, rtol, a, s))
        inverse = multiply(divide(1.0, where(kept, s, 1.0)), astype(kept, s.dtype))
        v, u = adjoint(vh), adjoint(u)
        return matmul(v, multiply(expand_dims(inverse, -1), u))

    if is_tracked(a):
        return call.give(gradients.PseudoInverse.apply(a, compute))
    return call.give(compute(a))


def _tolerance(name, absolute, rtol, a, s):
    """Return what singular values are compared with."""
    if absolute is not None and rtol is not None:
        raise ValueError(f"{name}: one tolerance can be given, not two")
    given = rtol if absolute is None else absolute
    if given is None:
        given = max(a.shape[-2:]) * np.finfo(a.dtype).eps
    first = largest(s, axis=-1, keepdims=True)
    if getattr(given, "ndim", 0):  # one for each matrix
        given = Operands(name, (s, given)).arrays[1]
        return multiply(first, astype(expand_dims(given, -1), s.dtype, copy=False))
    return multiply(first, float(parse_scalar(given, "a tolerance")))


@short(short_linalg.matrix_rank, c_order=False)
def matrix_rank(x, /, tol=None, hermitian=False, *, rtol=None):
    """Return how many singular values of matrices are above a tolerance, as int64.

    tol: that tolerance, a scalar; rtol: as a part of the largest singular value, a scalar or one
    for each matrix, by default max(m, n) of the dtype's epsilon. hermitian: see pinv. A vector's
    rank is 1, or 0 of zeros alone. ValueError: tol and rtol.

    >>> vg.linalg.matrix_rank(vg.asarray([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    array, give = as_array("matrix_rank", x)
    if array.ndim < 2:
        return give(astype(any_of(array), int64))
    call = Matrices("matrix_rank", x)
    (a,) = call.arrays
    if 0 in a.shape[-2:]:
        return call.give(total(astype(a, int64), axis=(-2, -1)), int64)
    s = libraries.of(call.backend).svdvals(a)
    if tol is None or rtol is not None:
        limit = _tolerance("matrix_rank", tol, rtol, a, s)
    else:
        limit = float(parse_scalar(tol, "a tolerance"))
    return call.give(total(astype(greater(s, limit), int64), axis=-1), int64)


@short(short_linalg.cond, c_order=False)
def cond(x, /, p=None):
    """Return the condition numbers of matrices: a norm's of x times that of its inverse.

    p: the norm, see norm; by default 2, of singular values. LinAlgError: not square, for p other
    than 2 and -2; there also a singular matrix that has gradients, of which others give infinity.

    >>> print(vg.linalg.cond(vg.asarray([[1.0, 0.0], [0.0, 100.0]])))
    100.0
    """
    call = Matrices("cond", x)
    (a,) = call.arrays
    if is_tracked(a):
        check_matrices("cond", a, square=p not in (None, 2, -2))
        norm = functools.partial(of_matrices, call, keepdims=False, ord=p)
        return call.give_real(gradients.condition(a, p, norm))
    return call.give_real(on_host(call.backend, lambda values: np.linalg.cond(values, p), a))


@short(short_linalg.lstsq, c_order=False)
def lstsq(a, b, /, rcond=None):
    """Return (x, residuals, rank, s): the x with the least |b - a @ x|, as numpy.linalg.lstsq.

    a: (m, n). b: (m,) or (m, k). rcond: singular values below so much of the largest count as 0.
    residuals: the squares of |b - a @ x|, empty where the rank is below n or m <= n. rank: an int.
    s: the singular values of a. LinAlgError: shapes; no convergence.

    >>> a = vg.asarray([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> x, residuals, rank, s = vg.linalg.lstsq(a, vg.asarray([1.0, 3.0, 5.0]))
    >>> print(x)
    [2. 1.]
    """
    call = Matrices("lstsq", a, b)
    if is_tracked(*call.arrays):
        return _differentiable_lstsq(call, rcond)
    values = [to_host(array) for array in call.arrays]
    x, residuals, rank, s = host.lstsq(*values, rcond=rcond)
    results = [on_host(call.backend, lambda one=one: one) for one in (x, residuals, s)]
    return call.give(results[0]), call.give_real(results[1]), int(rank), call.give_real(results[2])


def _differentiable_lstsq(call, rcond):
    """The same by the pseudo-inverse, through which gradients go."""
    a, b = call.arrays
    values = [to_host(array.detach()) for array in (a, b)]
    _, residuals, rank, _ = host.lstsq(*values, rcond=rcond)  # refuses what lstsq does
    x = matmul(pinv(a, np.finfo(a.dtype).eps if rcond == -1 else rcond), b)
    if residuals.size:
        distance = subtract(b, matmul(a, x))
        distance = reshape(distance, (a.shape[0], -1))
        residuals = total(squared_length(distance), axis=0)
    else:
        residuals = on_host(call.backend, lambda: residuals)
    s = gradients.of(call.backend, a).svdvals(a)
    return call.give(x), call.give_real(residuals), int(rank), call.give_real(s)
