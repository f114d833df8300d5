"""Gradients of what a library computes: each of its methods as a Function with a rule of its own.

Rules are made of functions of Arrays, so that they can be differentiated again; those of systems
are in autograd/systems.py, which has them for matrices of kernels. Where singular values or
eigenvalues are equal, their vectors have no derivative: what would be divided by the difference of
two such is left out. That is right of results which stay as they are when these vectors are mixed,
whatever their values are, such as u @ vh, or the projection onto what they span; of others, such as
(u * s) @ vh, a part is missing, of which nothing but 0 / 0 is known here. So it is with complex
vectors, which are determined but for a factor of length 1 each. Sources: M. Giles,
Collected matrix derivative results (2008); S. Walter and L. Lehmann, Algorithmic differentiation of
linear algebra functions (2013), for qr; G. Golub and V. Pereyra, The differentiation of
pseudo-inverses (1973); C. Boeddeker et al., On the computation of complex-valued gradients with
application to statistically optimum beamforming (2017), for eig.
"""

import functools

import numpy as np

from ..autograd.complexes import adjoint, conjugate, hermitian
from ..autograd.function import Function
from ..autograd.systems import cholesky_slope, determinant_slope
from ..autograd.systems import inverse as inverse_slope
from ..autograd.transforms import is_grad_enabled
from ..dispatch import is_tracked, no_gradient
from ..dtypes import real_dtype
from ..functions.choosing import where
from ..functions.complexes import conj, real
from ..functions.differences import vander
from ..functions.elementwise import divide, equal, logical_and, subtract
from ..functions.joining import concat
from ..functions.layout import diagonal, expand_dims
from ..functions.linalg import matmul
from ..functions.matrices import eye, tril, triu
from ..functions.ranges import arange
from . import libraries

UNDETERMINED = ", as the matrix does not determine all of these vectors"


def of(backend, *arrays):
    """Return what computes with Arrays of a backend: recorded, where gradients of these are."""
    library = libraries.of(backend)
    return Differentiable(library) if is_tracked(*arrays) else library


class Differentiable:
    """A library whose methods are recorded; cusolver.py and host.py have the same ones."""

    def __init__(self, library):
        self.library = library

    def cholesky(self, a, upper):
        return Cholesky.apply(a, self.library, upper)

    def solve(self, a, b):
        return Solution.apply(a, b, self.library)

    def inverse(self, a):
        return Inverse.apply(a, self.library)

    def determinant(self, a, kind):
        return Determinant.apply(a, self.library, kind)

    def qr(self, a, mode):
        if mode == "complete" and a.shape[-2] > a.shape[-1]:
            no_gradient("qr of more rows than columns, complete", a, reason=UNDETERMINED)
        q, r = QR.apply(a, self.library)
        return r if mode == "r" else (q, r)

    def svd(self, a, full_matrices):
        if full_matrices and a.shape[-2] != a.shape[-1]:
            name = "svd with full_matrices of matrices that are not square"
            no_gradient(name, a, reason=UNDETERMINED)
        return SVD.apply(a, self.library)

    def svdvals(self, a):
        return SingularValues.apply(a, self.library)

    def eigh(self, a, lower):
        return Eigh.apply(a, self.library, lower)

    def eigvalsh(self, a, lower):
        return RealEigenvalues.apply(a, self.library, lower)


def product(*matrices):
    return functools.reduce(matmul, matrices)


def one(x):
    """The unit matrix of x's columns."""
    return eye(x.shape[-1], dtype=x.dtype, device=x.device)


def reciprocal(x):
    """1 / x, and 0 where x is 0."""
    none = equal(x, 0.0)
    return where(none, 0.0, divide(1.0, where(none, 1.0, x)))


def gaps(values):
    """1 / (values[j] - values[i]) at [i, j], and 0 where these are equal."""
    return reciprocal(subtract(expand_dims(values, -2), expand_dims(values, -1)))


def solved(a, b, kind=None):
    """x of a @ x == b, of whatever kind: a half's other half is 0."""
    return of(a.backend, a, b).solve(a, b)


class Cholesky(Function):
    @staticmethod
    def forward(ctx, a, library, upper):
        ctx.upper, y = upper, library.cholesky(a, upper)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return cholesky_slope(g, y, ctx.upper, solved), None, None


class Solution(Function):
    """x of a @ x == b."""

    @staticmethod
    def forward(ctx, a, b, library):
        y = library.solve(a, b)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        right = solved(adjoint(a), g)
        return -product(right, adjoint(y)), right, None


class Inverse(Function):
    @staticmethod
    def forward(ctx, a, library):
        y = library.inverse(a)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return inverse_slope(g, conjugate(y)), None


class Determinant(Function):
    @staticmethod
    def forward(ctx, a, library, kind):
        ctx.kind, y = kind, library.determinant(a, kind)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        library = of(a.backend, a)
        return determinant_slope(g, a, y, ctx.kind, is_grad_enabled(), library), None, None


class QR(Function):
    """Of wide matrices the first columns decide on Q; R's others are Q's adjoint times theirs."""

    @staticmethod
    def forward(ctx, a, library):
        q, r = library.qr(a, "reduced")
        ctx.save_for_backward(a, q, r)
        return q, r

    @staticmethod
    def backward(ctx, dq, dr):
        a, q, r = ctx.saved_tensors
        n = q.shape[-1]
        rest = dr[..., n:]
        dq = dq + product(a[..., n:], adjoint(rest)) if rest.shape[-1] else dq
        first = QR.of_first(q, r[..., :n], dq, dr[..., :n])
        if not rest.shape[-1]:
            return first, None
        return concat([first, product(q, rest)], axis=-1), None

    @staticmethod
    def of_first(q, r, dq, dr):
        m = product(r, adjoint(dr)) - product(adjoint(dq), q)
        m = hermitian(tril(m) + adjoint(tril(m, k=-1)))  # R has a real diagonal
        return adjoint(solved(r, adjoint(dq + product(q, m))))


class SVD(Function):
    """Of as many vectors as values.

    What turns u and v alike is divided by differences of values, and what turns them against each
    other by sums. Of complex numbers the diagonal says that factors of u and v, of which only the
    product says a thing, turn against each other.
    """

    @staticmethod
    def forward(ctx, a, library):
        u, s, vh = library.svd(a, False)
        ctx.save_for_backward(u, s, vh)
        return u, s, vh

    @staticmethod
    def backward(ctx, du, ds, dvh):
        u, s, vh = ctx.saved_tensors
        v, dv = adjoint(vh), adjoint(dvh)
        row, column = expand_dims(s, -2), expand_dims(s, -1)
        ofu, ofv = product(adjoint(u), du), product(adjoint(v), dv)
        turnu, turnv = ofu - adjoint(ofu), ofv - adjoint(ofv)
        middle = (turnu + turnv) * gaps(s) + (turnu - turnv) * reciprocal(row + column)
        middle = 0.5 * middle + expand_dims(ds, -1) * one(u)
        inverse = reciprocal(row)
        result = product(u, middle, vh)
        if u.shape[-2] > u.shape[-1]:
            result = result + product((du - product(u, ofu)) * inverse, vh)
        if v.shape[-2] > v.shape[-1]:
            result = result + product(u * inverse, adjoint(dv - product(v, ofv)))
        return result, None


class SingularValues(Function):
    @staticmethod
    def forward(ctx, a, library):
        ctx.u, s, ctx.vh = library.svd(a, False)
        ctx.save_for_backward(a)
        return s

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        u, vh = ctx.u, ctx.vh
        if is_grad_enabled():
            u, _, vh = of(a.backend, a).svd(a, False)
        return product(u * expand_dims(g, -2), vh), None


class Eigh(Function):
    @staticmethod
    def forward(ctx, a, library, lower):
        values, vectors = library.eigh(a, lower)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx, dvalues, dvectors):
        values, v = ctx.saved_tensors
        middle = gaps(values) * product(adjoint(v), dvectors)
        middle = middle + expand_dims(dvalues, -1) * one(v)
        return hermitian(product(v, middle, adjoint(v))), None, None


class RealEigenvalues(Function):
    @staticmethod
    def forward(ctx, a, library, lower):
        ctx.lower = lower
        values, ctx.vectors = library.eigh(a, lower)
        ctx.save_for_backward(a)
        return values

    @staticmethod
    def backward(ctx, g):
        (a,), v = ctx.saved_tensors, ctx.vectors
        if is_grad_enabled():
            v = of(a.backend, a).eigh(hermitian_of(a, ctx.lower), True)[1]
        return product(v * expand_dims(g, -2), adjoint(v)), None, None


def hermitian_of(a, lower):
    """The Hermitian matrix of which one half is read."""
    return tril(a) + adjoint(tril(a, k=-1)) if lower else triu(a) + adjoint(triu(a, k=1))


class Eig(Function):
    """compute(a): both, of any matrices; vectors of length 1."""

    @staticmethod
    def forward(ctx, a, compute):
        values, vectors = compute(a)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx, dvalues, dvectors):
        values, v = ctx.saved_tensors
        vh = adjoint(v)
        middle = product(vh, dvectors)
        lengths = expand_dims(real(diagonal(middle, axis1=-2, axis2=-1)), -2)  # which stay 1
        middle = (middle - product(vh, v * lengths)) * conj(gaps(values))
        middle = middle + expand_dims(dvalues, -1) * one(v)
        return solved(vh, product(middle, vh)), None


class Eigenvalues(Function):
    """Those alone."""

    @staticmethod
    def forward(ctx, a, compute):
        ctx.compute, (values, ctx.vectors) = compute, compute(a)
        ctx.save_for_backward(a)
        return values

    @staticmethod
    def backward(ctx, g):
        (a,), v = ctx.saved_tensors, ctx.vectors
        if is_grad_enabled():
            v = Eig.apply(a, ctx.compute)[1]
        vh = adjoint(v)
        return solved(vh, expand_dims(g, -1) * vh), None


class Roots(Function):
    """compute(p): the roots r of a polynomial, each of which moves by -dp(r) / p'(r)."""

    @staticmethod
    def forward(ctx, p, compute):
        r = compute(p)
        ctx.save_for_backward(p, r)
        return r

    @staticmethod
    def backward(ctx, g):
        p, r = ctx.saved_tensors
        n = p.size - 1
        powers = vander(r, n + 1)
        degrees = arange(n, 0, -1, dtype=real_dtype(p.dtype), device=p.device)
        slope = matmul(powers[:, 1:], p[:-1] * degrees)
        unused = logical_and(equal(slope, 0.0), equal(g, 0.0))  # several at one place
        return matmul(-g / conj(where(unused, 1.0, slope)), conj(powers)), None


class PseudoInverse(Function):
    """compute(a): the pseudo-inverse, by whatever tolerance: the rank stays."""

    @staticmethod
    def forward(ctx, a, compute):
        y = compute(a)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        t = adjoint(y)
        result = -product(t, g, t)
        beside = adjoint(g) - product(a, y, adjoint(g))
        result = result + product(beside, y, t)
        beside = adjoint(g) - product(adjoint(g), y, a)
        return result + product(t, y, beside), None


def condition(a, p, norm):
    """The condition number: of singular values by themselves, of other norms by the inverse's.

    norm(x): that of the name p. A norm times that of the inverse is a product of functions that
    have rules. LinAlgError: a matrix without elements; a singular one, of other norms.
    """
    if 0 in a.shape[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = of(a.backend, a).svdvals(a)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(a) * norm(of(a.backend, a).inverse(a))
