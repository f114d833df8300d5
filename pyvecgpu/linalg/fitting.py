"""Polynomials by the ways of linear algebra: fitted to points, their roots, and from roots.

Coefficients are arrays of one dimension, the highest power first. Eigenvalues and least squares are
NumPy's on every device, see decompositions.py. vg.polyfit, vg.roots and vg.poly are these.
"""

import warnings

import numpy as np

from ..array import Array
from ..dispatch import is_tracked
from ..dtypes import complex_dtype, inexact, is_complex
from ..functions import short_polynomials
from ..functions.arguments import is_host, parse_int, promote_all
from ..functions.complexes import real
from ..functions.creation import ones, zeros
from ..functions.differences import vander
from ..functions.elementwise import divide, multiply, sqrt, subtract
from ..functions.indexing import get
from ..functions.joining import concat
from ..functions.layout import astype, expand_dims, matrix_transpose, reshape
from ..functions.linalg import matmul
from ..functions.matrices import eye
from ..functions.polynomials import _coefficients, _together
from ..functions.reductions import sum as total
from ..functions.short_calls import short
from ..functions.values import to_host
from ..functions.working import work_dtype
from . import gradients
from .decompositions import eigvals, lstsq
from .systems import inv

__all__ = ["poly", "polyfit", "roots"]


@short(short_polynomials.roots)
def roots(p, /):
    """Return the roots of a polynomial: the eigenvalues of its companion matrix, as complex.

    Zeros at the ends are looked for on the host. Several roots at one place have no gradient: it is
    infinity or NaN, or without a meaning where rounding has parted them. ValueError: more than one
    dimension.

    >>> vg.sort(vg.roots(vg.asarray([1.0, -3.0, 2.0])).real).tolist()
    [1.0, 2.0]
    """
    (array,), give = _coefficients("roots", p)
    return give(gradients.Roots.apply(array, _roots) if is_tracked(array) else _roots(array))


def _roots(array):
    places = np.flatnonzero(to_host(array))
    dtype = inexact(array.dtype)
    if not places.size:
        return zeros(0, complex_dtype(dtype), device=array.device)
    behind = array.size - 1 - int(places[-1])
    inner = astype(get(array, slice(int(places[0]), int(places[-1]) + 1)), dtype, copy=False)
    found = zeros(0, complex_dtype(dtype), device=array.device)
    if inner.size > 1:
        n = inner.size - 1
        row = expand_dims(divide(get(inner, slice(1, None)), get(inner, slice(0, 1))) * -1, 0)
        below = get(eye(n, dtype=dtype, device=array.device), slice(0, n - 1))
        found = eigvals(concat([row, below], axis=0))
    return concat([found, zeros(behind, found.dtype, device=array.device)])


@short(short_polynomials.poly)
def poly(seq_of_zeros, /):
    """Return the polynomial with these roots, or the characteristic one of a square matrix.

    Of complex roots that come in pairs the coefficients are real, which is looked at on the host.
    ValueError: neither one dimension nor a square matrix.

    >>> vg.poly(vg.asarray([1.0, 2.0])).tolist()
    [1.0, -3.0, 2.0]
    """
    given = seq_of_zeros
    if isinstance(given, (list, tuple)):
        given = np.asarray(given)
    if (isinstance(given, Array) or is_host(given)) and np.ndim(given) == 2:
        if given.shape[0] != given.shape[1] or not given.shape[0]:
            raise ValueError(f"poly: roots, or a square matrix, not of shape {given.shape}")
        given = eigvals(given)
    (zs,), give = _coefficients("poly", given)
    zs = astype(zs, inexact(zs.dtype), copy=False)
    result = ones(1, zs.dtype, device=zs.device)
    nothing = zeros(1, zs.dtype, device=zs.device)
    for i in range(zs.size):
        longer, moved = concat([result, nothing]), concat([nothing, result])
        result = subtract(longer, multiply(moved, get(zs, i)))
    if is_complex(zs.dtype):
        values = to_host(zs)
        if np.array_equal(np.sort(values), np.sort(values.conj())):
            result = real(result)
    return give(result)


@short(short_polynomials.polyfit)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """Return the coefficients of the polynomial that is nearest to points: least squares.

    x: (m,). y: (m,), or (m, k) for k polynomials at once. deg: the degree. w: weights of y - p(x),
    not of its square. rcond: see linalg.lstsq, by default m times the dtype's eps. full: a tuple
    with lstsq's residuals, rank and singular values, and rcond. cov: a tuple with the covariance of
    the coefficients, (deg + 1, deg + 1) or with k behind, scaled by the residuals, or not if it is
    "unscaled". The columns of the Vandermonde matrix are scaled to length 1 before. ValueError: a
    negative degree, points that do not fit, too few for cov. RankWarning: the points do not
    determine the polynomial.

    >>> x = vg.asarray([0.0, 1.0, 2.0, 3.0])
    >>> print(vg.polyfit(x, 2.0 * x + 1.0, 1))
    [2. 1.]
    """
    order = parse_int(deg, "a degree") + 1
    if order < 1:
        raise ValueError(f"polyfit: a degree of 0 or more, not {deg}")
    given, give = _points(x, y, w)
    x, y = given[:2]
    left, right = vander(x, order), y
    if w is not None:
        w = reshape(given[2], (-1, 1))
        left = multiply(left, w)
        right = multiply(right, w if y.ndim == 2 else given[2])
    if rcond is None:
        rcond = x.size * float(np.finfo(x.dtype).eps)
    scale = sqrt(total(multiply(left, left), axis=0))
    solution, residuals, rank, s = lstsq(divide(left, scale), right, rcond)
    column = reshape(scale, (-1, 1)) if solution.ndim == 2 else scale
    solution = divide(solution, column)
    if rank != order and not full:
        text = "Polyfit may be poorly conditioned"
        warnings.warn(text, np.exceptions.RankWarning, stacklevel=2)
    if full:
        return give(solution), give(residuals), rank, give(s), rcond
    if not cov:
        return give(solution)
    base = inv(matmul(matrix_transpose(left), left))
    factor = 1.0
    if cov != "unscaled":
        if x.size <= order:
            raise ValueError(f"polyfit: {x.size} points are too few for a covariance")
        factor = divide(residuals, float(x.size - order))
    if y.ndim == 1:
        return give(solution), give(multiply(base, factor))
    return give(solution), give(multiply(expand_dims(base, -1), factor))


def _points(x, y, w):
    """Return points and weights as Arrays of one float dtype, and what the caller gets of one."""
    values = (x, y) if w is None else (x, y, w)
    found, give = _together("polyfit", *values)
    dtype = inexact(promote_all(found))
    if is_complex(dtype):
        raise TypeError("polyfit takes real points")
    dtype = work_dtype(dtype)
    found = [astype(one, dtype, copy=False) for one in found]
    x, y = found[:2]
    if x.ndim != 1 or not x.size:
        raise ValueError(f"polyfit: x has one dimension and points, not shape {x.shape}")
    if y.ndim not in (1, 2) or y.shape[0] != x.size:
        raise ValueError(f"polyfit: y of shape {y.shape} beside {x.size} points")
    if w is not None and found[2].shape != x.shape:
        raise ValueError(f"polyfit: weights of shape {found[2].shape} beside {x.size} points")
    return found, give
