"""The rules of systems of equations, inverses, determinants and Cholesky's factors.

Of batches of matrices. Those of `solve` and `inverse` are of real matrices, and of complex ones
with the conjugates of what they have kept; see complexes.py.
"""

from .. import functions as vg
from ..dispatch import apply
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


def determinant(g, a, y, kind):
    return determinant_slope(g, y, kind, apply(a.backend, "inverse", a))


def determinant_slope(g, y, kind, inverse):
    """Of the determinant, its sign, and the logarithm of its magnitude.

    The sign is a step of real numbers; of complex ones it turns with the logarithm's imaginary
    part.
    """
    if kind == 0:
        g = g * conjugate(y)
    elif kind == 1:
        g = vg.imag(g * vg.conj(y)) * 1j if y.dtype.kind == "c" else vg.zeros_like(g)
    return g[..., None, None] * adjoint(inverse)
