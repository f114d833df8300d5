"""Systems of linear equations, inverses, determinants and Cholesky's factors.

Of matrices of up to 64 x 64 a card computes them by kernels, each item of a batch as if it were
alone. These report a matrix that is singular, or not positive definite, without a wait: what waits
for the device next (numpy(), item(), printing, synchronize) raises LinAlgError with the function's
name, and that matrix's result has no meaning. On the CPU it comes at once.
"""

import math
from collections import namedtuple

import numpy as np

from ..dispatch import apply
from ..functions.arguments import parse_axes, parse_int
from ..functions.layout import as_array, broadcast_to, permute_dims, reshape
from ..functions.linalg import matmul
from ..functions.matrices import eye
from ..functions.matrices import tril as lower_half
from ..functions.matrices import triu as upper_half
from ..functions.short_calls import short
from . import gradients, short_linalg
from .operands import Matrices, broadcast_batches

__all__ = [
    "cholesky",
    "det",
    "inv",
    "matrix_power",
    "slogdet",
    "solve",
    "solve_triangular",
    "tensorinv",
    "tensorsolve",
]

SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
GENERAL, LOWER, UPPER = range(3)  # the kinds of pvg_solve
VALUE, SIGN, LOGARITHM = range(3)  # of pvg_determinant


@short(short_linalg.cholesky, c_order=False)
def cholesky(x, /, *, upper=False):
    """Return the lower L of x == L @ L.T, or the upper U of x == U.T @ U, of positive matrices.

    x: (..., n, n), of which only that half is read. LinAlgError: not square; not positive definite.

    >>> print(vg.linalg.cholesky(vg.asarray([[4.0, 2.0], [2.0, 2.0]])))
    [[2. 0.]
     [1. 1.]]
    """
    call = Matrices("cholesky", x, square=True)
    (a,) = call.arrays
    if call.has_kernel():
        return call.give(apply(call.backend, "cholesky", a, bool(upper)))
    return call.give(gradients.of(call.backend, a).cholesky(a, bool(upper)))


@short(short_linalg.solve, c_order=False)
def solve(x1, x2, /):
    """Return the x of x1 @ x == x2, by elimination with the largest pivots.

    x1: (..., n, n). x2: (n,), one right-hand side for all, or (..., n, k); batches broadcast.
    LinAlgError: x1 is not square, or singular. ValueError: shapes that do not fit.

    >>> x = vg.linalg.solve(vg.asarray([[2.0, 1.0], [1.0, 3.0]]), vg.asarray([3.0, 5.0]))
    >>> print(x)
    [0.8 1.4]
    """
    return _solve("solve", x1, x2, GENERAL)


def solve_triangular(x1, x2, /, *, lower=False):
    """Return the x of x1 @ x == x2, where of x1 only the upper, or lower, half is read; see solve.

    LinAlgError: there is a 0 on the diagonal.

    >>> upper = vg.asarray([[2.0, 1.0], [0.0, 4.0]])
    >>> print(vg.linalg.solve_triangular(upper, vg.asarray([[4.0], [8.0]])))
    [[1.]
     [2.]]
    """
    return _solve("solve_triangular", x1, x2, LOWER if lower else UPPER)


def _solve(name, x1, x2, kind):
    call = Matrices(name, x1, x2, square=True)
    a, b = call.arrays
    if b.ndim == 0 or b.shape[0 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ValueError(f"{name}: shapes {a.shape} and {b.shape} do not fit")
    vector = b.ndim == 1
    a, b = broadcast_batches(a, reshape(b, (*b.shape, 1)) if vector else b)
    if call.has_kernel():
        result = apply(call.backend, "solve", a, b, kind)
    else:
        result = gradients.of(call.backend, a, b).solve(_half_of(a, kind), b)
    return call.give(reshape(result, result.shape[:-1]) if vector else result)


def _half_of(a, kind):
    return a if kind == GENERAL else lower_half(a) if kind == LOWER else upper_half(a)


@short(short_linalg.inv, c_order=False)
def inv(x, /):
    """Return the inverses of matrices (..., n, n). LinAlgError: not square, or singular.

    >>> print(vg.linalg.inv(vg.asarray([[1.0, 2.0], [0.0, 4.0]])))
    [[ 1.   -0.5 ]
     [ 0.    0.25]]
    """
    call = Matrices("inv", x, square=True)
    (a,) = call.arrays
    if call.has_kernel():
        return call.give(apply(call.backend, "inverse", a))
    return call.give(gradients.of(call.backend, a).inverse(a))


@short(short_linalg.tensorinv, c_order=False)
def tensorinv(x, /, ind=2):
    """Return the inverse of tensordot(x, ., ind): shape x.shape[ind:] + x.shape[:ind].

    The first ind axes have as many elements as the others. ValueError: ind is below 1.
    LinAlgError: not as many; singular.

    >>> vg.linalg.tensorinv(vg.eye(6).reshape(2, 3, 6), ind=2).shape
    (6, 2, 3)
    """
    array, _ = as_array("tensorinv", x)
    ind = parse_int(ind, "ind")
    if ind < 1:
        raise ValueError(f"tensorinv: ind is 1 or more, not {ind}")
    first, rest = array.shape[:ind], array.shape[ind:]
    inverse = inv(reshape(x, (math.prod(first), math.prod(rest))))
    return reshape(inverse, rest + first)


@short(short_linalg.tensorsolve, c_order=False)
def tensorsolve(a, b, /, axes=None):
    """Return x with tensordot(a, x, x.ndim) == b; its shape is that of a behind b's axes.

    axes: of a, which are put at the end before. LinAlgError: shapes that do not fit; singular.

    >>> a = vg.eye(6).reshape(2, 3, 6)
    >>> vg.linalg.tensorsolve(a, vg.ones((2, 3))).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    array, _ = as_array("tensorsolve", a)
    values, _ = as_array("tensorsolve", b)
    if axes is not None:
        last = parse_axes(tuple(axes), array.ndim)
        order = [axis for axis in range(array.ndim) if axis not in last] + list(last)
        a = permute_dims(a, order)
    shape = a.shape[values.ndim :]
    if math.prod(a.shape[: values.ndim]) != values.size or math.prod(shape) != values.size:
        raise np.linalg.LinAlgError(f"tensorsolve: shapes {a.shape} and {values.shape}")
    result = solve(reshape(a, (values.size, values.size)), reshape(b, (values.size,)))
    return reshape(result, shape)


@short(short_linalg.det, c_order=False)
def det(x, /):
    """Return the determinants of matrices (..., n, n), 0 of a singular one.

    LinAlgError: not square.

    >>> print(vg.linalg.det(vg.asarray([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    call = Matrices("det", x, square=True)
    return call.give(_determinant(call, VALUE))


@short(short_linalg.slogdet, c_order=False, of=SlogdetResult)
def slogdet(x, /):
    """Return (sign, logabsdet): determinants as sign * exp(logabsdet), which do not overflow.

    x: (..., n, n). A singular matrix has sign 0 and logabsdet -inf. LinAlgError: not square.

    >>> sign, logarithm = vg.linalg.slogdet(vg.eye(100) * 10)
    >>> print(sign, logarithm)
    1.0 230.25851
    """
    call = Matrices("slogdet", x, square=True)
    sign, logarithm = (_determinant(call, kind) for kind in (SIGN, LOGARITHM))
    return SlogdetResult(call.give(sign), call.give_real(logarithm))


def _determinant(call, kind):
    (a,) = call.arrays
    if call.has_kernel():
        return apply(call.backend, "determinant", a, kind)
    return gradients.of(call.backend, a).determinant(a, kind)


@short(short_linalg.matrix_power, c_order=False)
def matrix_power(x, n, /):
    """Return the n-th powers of matrices (..., m, m): products, of the inverses if n is negative.

    n: an integer; 0 gives identity matrices. LinAlgError: not square; to be inverted, and singular.

    >>> vg.linalg.matrix_power(vg.asarray([[1, 1], [1, 0]]), 10).tolist()
    [[89, 55], [55, 34]]
    """
    call = Matrices("matrix_power", x, square=True, exact=True)
    (a,) = call.arrays
    n = parse_int(n, "a power")
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        one = eye(a.shape[-1], dtype=a.dtype, device=a.device)
        return call.give(broadcast_to(one, a.shape).copy())
    result = None
    while True:  # the squares that n has a bit for, multiplied
        if n % 2:
            result = a if result is None else matmul(result, a)
        n //= 2
        if not n:
            return call.give(result if result is not a else a.copy())
        a = matmul(a, a)
