"""Norms of vectors and matrices: sums and largest elements, or those of singular values.

Sums of float16 and bfloat16 are made in float32, those of integers, and of squares of all elements
of floats, in float64, and rounded once.
"""

import math

import numpy as np

from ..dispatch import apply, whole
from ..dtypes import is_float, real_dtype
from ..functions.arguments import is_scalar, parse_axes
from ..functions.elementwise import abs, multiply, not_equal, sqrt
from ..functions.layout import astype, moveaxis, reshape
from ..functions.mathematics import pow
from ..functions.reductions import max as largest
from ..functions.reductions import min as smallest
from ..functions.reductions import sum as total
from ..functions.short_calls import short
from . import gradients, short_linalg
from .operands import Matrices

__all__ = ["matrix_norm", "norm", "vector_norm"]


@short(short_linalg.vector_norm)
def vector_norm(x, /, axis=None, keepdims=False, ord=2):
    """Return sum(|x|**ord) ** (1/ord) of vectors along axes, or of all elements.

    axis: one, several, or None for all. ord: a number; inf and -inf are the largest and the
    smallest magnitude, 0 counts elements that are not 0. Of all elements of floats the norm 2 is
    summed in float64, and finite if its dtype can hold it. AxisError: no such axis. TypeError: ord
    is no number. ValueError: inf or -inf of nothing.

    >>> print(vg.linalg.vector_norm(vg.asarray([3.0, -4.0])))
    5.0
    >>> print(vg.linalg.vector_norm(vg.asarray([3.0, -4.0]), ord=vg.inf))
    4.0
    """
    call = Matrices("vector_norm", x, least=0)
    if not is_scalar(ord):
        raise TypeError(f"vector_norm: ord is a number, not {ord!r}")
    (a,) = call.arrays
    axes = parse_axes(tuple(axis) if isinstance(axis, list) else axis, a.ndim)
    return call.give_real(_of_vectors(a, axes, keepdims, ord))


def _of_vectors(a, axes, keepdims, ord):
    options = {"axis": axes, "keepdims": keepdims}
    if ord == 0:
        return total(astype(not_equal(a, 0), real_dtype(a.dtype)), **options)
    size = abs(a)
    if ord == math.inf:
        return largest(size, **options)
    if ord == -math.inf:
        return smallest(size, **options)
    if ord == 1:
        return total(size, **options)
    if ord == 2 and (axes is None or len(axes) == a.ndim) and is_float(a.dtype):
        norm = whole("norm", {"x": a}, lambda: apply(a.backend, "total_norm", [a.detach()], 2.0))
        return reshape(norm, (1,) * a.ndim) if keepdims else norm
    if ord == 2:
        squares = total(multiply(size, size), **options)
        return whole("length", {"x": squares, "degree": 2.0}, lambda: sqrt(squares))
    with np.errstate(divide="ignore"):  # a 0 to a negative power, on the CPU
        powers = total(pow(size, float(ord)), **options)
        named = {"x": powers, "degree": float(ord)}
        return whole("length", named, lambda: pow(powers, 1.0 / ord))


@short(short_linalg.matrix_norm)
def matrix_norm(x, /, keepdims=False, ord="fro"):
    """Return norms of matrices (..., m, n).

    ord: "fro", of all elements as a vector; "nuc", the sum of the singular values; 2 and -2, the
    largest and smallest of them; 1 and -1, the largest and smallest sum of magnitudes in a column,
    inf and -inf in a row. ValueError: another ord; the largest or smallest of nothing.
    LinAlgError: less than two dimensions; no convergence.

    >>> print(vg.linalg.matrix_norm(vg.asarray([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    >>> print(vg.linalg.matrix_norm(vg.asarray([[3.0, 0.0], [0.0, 4.0]]), ord=2))
    4.0
    """
    call = Matrices("matrix_norm", x)
    return call.give_real(of_matrices(call, call.arrays[0], keepdims, ord))


def of_matrices(call, a, keepdims, ord):
    if isinstance(ord, str):
        if ord == "fro":
            return _of_vectors(a, (a.ndim - 2, a.ndim - 1), keepdims, 2)
        known = ord == "nuc"
    else:
        known = is_scalar(ord) and ord in (1, -1, 2, -2, math.inf, -math.inf)
    if not known:
        raise ValueError(
            f'matrix_norm: ord is 1, -1, 2, -2, inf, -inf, "fro" or "nuc", not {ord!r}'
        )
    pick = largest if ord != "nuc" and ord > 0 else smallest
    if ord == "nuc" or ord in (2, -2):
        s = gradients.of(call.backend, a).svdvals(a)
        result = (total if ord == "nuc" else pick)(s, axis=-1)
    else:
        summed = total(abs(a), axis=-2 if ord in (1, -1) else -1)
        result = pick(summed, axis=-1)
    return reshape(result, (*result.shape, 1, 1)) if keepdims else result


@short(short_linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Return the norm of vectors or matrices, as numpy.linalg.norm.

    axis: one, of vectors; two, of matrices; None for one of both, by the dimensions of x. ord: see
    vector_norm and matrix_norm; None is that of all elements as a vector, "fro" only of matrices.
    ValueError: more axes, another ord. AxisError: no such axis.

    >>> print(vg.linalg.norm(vg.asarray([3.0, 4.0])))
    5.0
    >>> print(vg.linalg.norm(vg.asarray([[3.0, 4.0], [6.0, 8.0]]), axis=1))
    [ 5. 10.]
    """
    call = Matrices("norm", x, least=0)
    (a,) = call.arrays
    if ord is None and axis is None:
        return call.give_real(_of_vectors(a, None, keepdims, 2))
    axes = tuple(range(a.ndim)) if axis is None else parse_axes(_sequence(axis), a.ndim)
    if len(axes) == 1:
        ord = 2 if ord is None else ord
        if not is_scalar(ord):
            raise ValueError(f"norm: {ord!r} is no norm of vectors")
        return call.give_real(_of_vectors(a, axes, keepdims, ord))
    if len(axes) != 2:
        raise ValueError(f"norm: of one axis or two, not of {len(axes)}")
    if ord is None:
        return call.give_real(_of_vectors(a, axes, keepdims, 2))
    result = of_matrices(call, moveaxis(a, axes, (-2, -1)), False, ord)
    if keepdims:
        result = reshape(result, tuple(1 if i in axes else n for i, n in enumerate(a.shape)))
    return call.give_real(result)


def _sequence(axis):
    return tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
