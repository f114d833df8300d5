"""The rules of systems of equations, inverses, determinants and Cholesky's factors.

Of batches of matrices. Those of `solve` and `inverse` are of real matrices, and of complex ones
with the conjugates of what they have kept; see complexes.py.
"""

import numpy as np

from .. import functions as vg
from ..dispatch import apply
from ..dtypes import real_dtype
from .complexes import adjoint, conjugate, hermitian


def cholesky(g, y, upper):
    return cholesky_slope(g, y, upper, solved)


def cholesky_slope(g, y, upper, solve):
    """Murray, Differentiation of the Cholesky decomposition (2016), as a Hermitian matrix.

    solve(a, b, kind): as the backend's method.
    """
    g, y = (adjoint(g), adjoint(y)) if upper else (g, y)
    turned = adjoint(y)
    middle = vg.tril(vg.matmul(turned, g))
    middle = middle - 0.5 * (middle * vg.eye(y.shape[-1], dtype=y.dtype, device=y.device))
    half = solve(turned, middle, 2)
    return hermitian(adjoint(solve(turned, adjoint(half), 2)))


def solved(a, b, kind):
    return apply(a.backend, "solve", a, b, kind)


def solve_right(g, a, kind):
    return solved(vg.matrix_transpose(a), g, {0: 0, 1: 2, 2: 1}[kind])


def solve_left(g, a, y, kind):
    result = -vg.matmul(solve_right(g, a, kind), vg.matrix_transpose(y))
    return vg.tril(result) if kind == 1 else vg.triu(result) if kind == 2 else result


def inverse(g, y):
    turned = vg.matrix_transpose(y)
    return -vg.matmul(vg.matmul(turned, g), turned)


class Kernels:
    """A backend's own methods, with the names and parameters of linalg/host.py."""

    def __init__(self, backend):
        self.backend = backend

    def solve(self, a, b):
        return solved(a, b, 0)

    def inverse(self, a):
        return apply(self.backend, "inverse", a)

    def determinant(self, a, kind):
        return apply(self.backend, "determinant", a, kind)


def determinant(g, a, y, kind, differentiable):
    return determinant_slope(g, a, y, kind, differentiable, Kernels(a.backend))


def determinant_slope(g, a, y, kind, differentiable, library):
    """Of the determinant, its sign, and the logarithm of its magnitude.

    The sign is a step of real numbers; of complex ones it turns with the logarithm's imaginary
    part. library: see Kernels. LinAlgError: a singular matrix, of the determinant only if the
    gradient is to be differentiable.
    """
    if kind == 0 and not differentiable:
        return g[..., None, None] * cofactors(a, y, library)
    try:
        inverse = library.inverse(a)
    except np.linalg.LinAlgError as error:
        if kind:
            raise
        raise np.linalg.LinAlgError(
            "det: a matrix is singular, and the gradient of such has no gradient"
        ) from error
    if kind == 0:
        g = g * conjugate(y)
    elif kind == 1:
        g = vg.imag(g * vg.conj(y)) * 1j if y.dtype.kind == "c" else vg.zeros_like(g)
    return g[..., None, None] * adjoint(inverse)


def cofactors(a, y, library):
    """The slopes of determinants y by all elements, of singular matrices too.

    They are the adjugate's adjoint. With b = a + u v^H and the matrix determinant lemma (Harville,
    Matrix Algebra From a Statistician's Perspective, 18.1) the adjugate of a is

        det(b) ((1 - v^H b^-1 u) b^-1 + b^-1 u v^H b^-1)

    which is as near for a singular a, if u and v are about the vectors that it and its adjoint take
    to 0, as b is regular then. Where rank is below n - 1, b is singular, too, and the slopes are 0,
    or what rounding makes of it. Nothing of it waits for a card. The CPU's inverse and determinant
    are of the same factors, and err alike.
    """
    if not a.size or not (a.backend.on_card or vg.any(y == 0.0)):
        return adjoint(y[..., None, None] * library.inverse(a))
    one = vg.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    size = vg.max(vg.abs(a), axis=(-2, -1), keepdims=True)
    size = vg.where(size == 0.0, float(np.finfo(a.dtype).tiny), size)
    u, v = taken_to_zero(a / size, one, library)
    b = a / size + vg.matmul(u, adjoint(v))
    lost = (library.determinant(b, 1) == 0.0)[..., None, None]
    inverse = library.inverse(vg.where(lost, one, b))
    left, right = vg.matmul(inverse, u), vg.matmul(adjoint(v), inverse)
    rest = 1.0 - vg.matmul(adjoint(v), left)
    slope = library.determinant(size * b, 0)[..., None, None] / size
    most = float(np.finfo(a.dtype).eps) ** -0.75
    lost = lost | (vg.max(vg.abs(inverse), axis=(-2, -1), keepdims=True) > most)
    known = adjoint(slope * (rest * inverse + vg.matmul(left, right)))
    return vg.where(lost, conjugate(slope) * vg.matmul(u, adjoint(v)), known)


def taken_to_zero(a, one, library):
    """u and v of length 1: a matrix of rank n - 1 takes v to 0, and its adjoint u.

    Where b = a + u v^H is regular, b x = u says that x is what a takes to 0, whatever u and v are.
    They are better known when these are nearly what is looked for: so it is done twice. Of a
    regular matrix they are any, of which u has the sign that leaves b the larger determinant.
    """
    both = vg.stack([a, adjoint(a)])
    numbers = vg.arange(1, a.shape[-1] + 1, dtype=real_dtype(a.dtype), device=a.device)
    vectors = vg.stack([vg.cos(numbers), vg.sin(numbers)])  # at right angles to hardly any
    vectors = vg.reshape(vectors, (2, *[1] * (a.ndim - 2), a.shape[-1], 1))
    vectors = vg.astype(vg.broadcast_to(vectors, (*both.shape[:-1], 1)), a.dtype, copy=False)
    for _ in range(2):
        moved = both + vg.matmul(vectors, adjoint(vectors[::-1]))
        sign = library.determinant(moved, 1)  # which, unlike the determinant, never underflows
        lost = vg.any(sign == 0.0, axis=0)[..., None, None]
        vectors = library.solve(vg.where(lost, one, moved), vectors)[::-1]
        vectors = vectors / vg.max(vg.abs(vectors), axis=-2, keepdims=True)
        vectors = vectors / vg.sqrt(vg.sum(vg.abs(vectors) ** 2, axis=-2, keepdims=True))
    u, v = vectors[0], vectors[1]
    w = vg.matmul(u, adjoint(v))
    turned = library.determinant(a - w, 2) > library.determinant(a + w, 2)
    return vg.where(turned[..., None, None], -u, u), v
