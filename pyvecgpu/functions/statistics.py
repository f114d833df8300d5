"""Variance, averages and what else describes a sample.

Halves are computed in float32, bools and integers in float64, and the result is rounded once; that
of bools and integers is of the default float. axis and keepdims are as in reductions.py.
"""

import math

from ..dtypes import float64, inexact, is_complex, is_float, is_integer, parse_dtype, real_dtype
from . import partial, short_cpu, short_numpy
from .arguments import Operands, parse_axes, parse_scalar, promote_all
from .combined import clip
from .complexes import conj, of_parts, part, squared_length
from .elementwise import maximum, sqrt
from .elementwise import subtract as minus
from .joining import concat
from .layers import parse_operands
from .layout import astype, atleast_2d, broadcast_to, diagonal, permute_dims, reshape, squeeze
from .layout import matrix_transpose as transposed
from .linalg import matmul
from .reductions import max as largest
from .reductions import mean
from .reductions import min as smallest
from .reductions import sum as total
from .short_calls import short
from .working import work_dtype, working

__all__ = ["average", "corrcoef", "cov", "ptp", "std", "var"]


_NUMBERS = (int, float)

# Spread -------------------------------------------------------------------------------------------


def var(
    x,
    /,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    where=True,
    mean=None,
    correction=None,
    device=None,
):
    """Return the variance, as float: the mean of squared distances (|x|) from the mean.

    ddof or, as the array API calls it, correction: sums are divided by n - ddof; NaN or infinity
    where that is 0 or less. dtype: compute in this float dtype instead. mean: of x along the axis,
    with keepdims, if that is known. ValueError: both ddof and correction. TypeError: another dtype.

    >>> vg.var(vg.asarray([1.0, 3.0])).item(), vg.var(vg.asarray([1.0, 3.0]), ddof=1).item()
    (1.0, 2.0)
    """
    plain = dtype is out is device is correction is mean is None and where is True
    if plain and type(ddof) in _NUMBERS:
        result = short_cpu.variance(x, axis, keepdims, ddof, False)
        if result is not None:
            return result
    ddof = parse_ddof("var", ddof, correction)
    if where is not True or mean is not None:
        return partial.variance("var", x, axis, dtype, ddof, keepdims, out, where, device, mean)
    call = Operands("var", (x,), out, device)
    return _variance("var", call, axis, dtype, ddof, keepdims, False)


def std(
    x,
    /,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    where=True,
    mean=None,
    correction=None,
    device=None,
):
    """Return the standard deviation, as float: the square root of the variance, see var.

    >>> vg.std(vg.asarray([1.0, 3.0])).item()
    1.0
    >>> print(vg.std(vg.asarray([1.0, 3.0]), correction=1))
    1.4142135
    """
    plain = dtype is out is device is correction is mean is None and where is True
    if plain and type(ddof) in _NUMBERS:
        result = short_cpu.variance(x, axis, keepdims, ddof, True)
        if result is not None:
            return result
    ddof = parse_ddof("std", ddof, correction)
    if where is not True or mean is not None:
        return partial.variance("std", x, axis, dtype, ddof, keepdims, out, where, device, mean)
    call = Operands("std", (x,), out, device)
    return _variance("std", call, axis, dtype, ddof, keepdims, True)


def parse_ddof(name, ddof, correction):
    """Return what is subtracted from the number of elements."""
    ddof = parse_scalar(ddof, "ddof")
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError(f"{name}: ddof and correction are the same; give one of them")
    return parse_scalar(correction, "correction")


def float_dtype(name, dtype):
    """Return a float or complex dtype. TypeError: it is none."""
    dtype = parse_dtype(dtype)
    if not (is_float(dtype) or is_complex(dtype)):
        raise TypeError(f"{name} computes in float dtypes, not in {dtype}")
    return dtype


def _variance(name, call, axis, dtype, ddof, keepdims, root):
    (array,) = call.arrays
    axes = parse_axes(axis, array.ndim)
    if dtype is not None:
        array = astype(array, float_dtype(name, dtype), copy=False)
    if not is_complex(array.dtype):
        return call.apply("var", array, axes, float(ddof), root, bool(keepdims))
    lengths = array.shape if axes is None else [array.shape[i] for i in axes]
    distance = array - mean(array, axis=axes, keepdims=True)
    squares = total(squared_length(distance), axis=axes, keepdims=keepdims)
    result = squares / float(max(math.prod(lengths) - ddof, 0))
    return call.deliver_array(partial.root(result) if root else result)


def ptp(x, /, axis=None, out=None, keepdims=False, *, device=None):
    """Return the largest element minus the smallest; NaN if any is NaN.

    ValueError: there is no element. TypeError: bool.

    >>> vg.ptp(vg.asarray([[1, 9], [4, 5]]), axis=1).tolist()
    [8, 1]
    """
    if out is None and device is None:
        result = short_cpu.ptp(x, axis, keepdims)
        if result is not None:
            return result
    call = Operands("ptp", (x,), out, device)
    (array,) = call.arrays
    ends = (f(array, axis=axis, keepdims=keepdims) for f in (largest, smallest))
    return call.deliver_array(minus(*ends))


# With weights -------------------------------------------------------------------------------------


@short(short_numpy.average)
def average(x, /, axis=None, weights=None, returned=False, *, keepdims=False, device=None):
    """Return the mean, or sum(x * weights) / sum(weights), as float.

    weights: of x's shape, or of the lengths of the given axes. returned: return the sum of the
    weights, too. Where that is 0 the result is NaN or infinite. ValueError, TypeError: weights of
    another shape.

    >>> vg.average(vg.asarray([1.0, 4.0]), weights=vg.asarray([3.0, 1.0])).item()
    1.75
    """
    operands = (x,) if weights is None else (x, weights)
    call = parse_operands("average", operands, None, device)
    array = call.arrays[0]
    axes = parse_axes(axis, array.ndim)
    if weights is None:
        result = mean(array, axis=axes, keepdims=keepdims)
        count = array.size if axes is None else math.prod(array.shape[i] for i in axes)
        scale = result * 0.0 + float(count)
    else:
        weights = _weights("average", call.arrays[1], array.shape, axes)
        result, scale = _weighted(array, weights, axes, keepdims)
    if not returned:
        return call.give(result)
    return call.give(result), call.give(scale)


def _weights(name, weights, shape, axes):
    """Return weights in a shape that is broadcast with the array's."""
    if weights.shape == shape:
        return weights
    if axes is None:
        raise TypeError(f"{name}: weights of shape {weights.shape} for {shape} need an axis")
    if weights.shape != tuple(shape[i] for i in axes):
        raise ValueError(f"{name}: weights of shape {weights.shape} do not fit {shape} along axis")
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    weights = permute_dims(weights, order)
    return reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(shape)))


def _weighted(array, weights, axes, keepdims):
    """Return the average by weights, and their sum in its shape."""
    dtype = promote_all((array, weights))
    work = work_dtype(dtype)
    array, weights = astype(array, work, copy=False), astype(weights, work, copy=False)
    weights = broadcast_to(weights, array.shape)
    scale = total(weights, axis=axes, keepdims=keepdims)
    result = total(array * weights, axis=axes, keepdims=keepdims) / scale
    return tuple(astype(one, inexact(dtype), copy=False) for one in (result, scale))


# Between variables --------------------------------------------------------------------------------


@short(short_numpy.cov)
def cov(
    x,
    /,
    y=None,
    rowvar=True,
    bias=False,
    ddof=None,
    fweights=None,
    aweights=None,
    *,
    dtype=None,
    device=None,
):
    """Return the matrix of covariances of variables: rows of x, or columns without rowvar.

    y: more variables. ddof: sums are divided by n - ddof, by default 1, or 0 with bias. fweights:
    how often each observation counts, integers; aweights: how much. dtype: a float one, by default
    x's or the default float. ValueError: more than two dimensions, weights of another length.
    TypeError: fweights that are no integers.

    >>> print(vg.cov(vg.asarray([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])))
    [[ 1. -2.]
     [-2.  4.]]
    """
    given = {"x": x, "y": y, "fweights": fweights, "aweights": aweights}
    given = {name: value for name, value in given.items() if value is not None}
    call = parse_operands("cov", tuple(given.values()), None, device)
    operands = dict(zip(given, call.arrays, strict=True))
    ddof = (0 if bias else 1) if ddof is None else parse_scalar(ddof, "ddof")
    return call.give(_covariance("cov", operands, rowvar, ddof, dtype))


@short(short_numpy.corrcoef)
def corrcoef(x, /, y=None, rowvar=True, *, dtype=None, device=None):
    """Return the matrix of correlations of variables, between -1 and 1; see cov.

    >>> print(vg.corrcoef(vg.asarray([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    call = parse_operands("corrcoef", (x,) if y is None else (x, y), None, device)
    operands = dict(zip(("x", "y"), call.arrays, strict=False))
    (array,) = call.arrays[:1]
    result = float_dtype("corrcoef", inexact(array.dtype) if dtype is None else dtype)
    matrix = _covariance("corrcoef", operands, rowvar, 1, work_dtype(result))
    if not matrix.ndim:
        return call.give(astype(matrix / matrix, result, copy=False))
    spread = sqrt(part(diagonal(matrix), 0))
    matrix = matrix / reshape(spread, (spread.size, 1)) / spread
    if is_complex(matrix.dtype):
        matrix = of_parts(*[clip(part(matrix, i), -1.0, 1.0) for i in (0, 1)])
    else:
        matrix = clip(matrix, -1.0, 1.0)
    return call.give(astype(matrix, result, copy=False))


def _covariance(name, operands, rowvar, ddof, dtype):
    """Return the covariances of operands x, y and the weights, where they are."""
    variables = [_variables(name, operands[one], rowvar) for one in "xy" if one in operands]
    joined = concat(variables) if len(variables) > 1 else variables[0]
    array, result = working(joined, None if dtype is None else float_dtype(name, dtype))
    if result == float64:
        array = astype(array, float64, copy=False)
    count = array.shape[1]
    weights = _observation_weights(name, operands, count, real_dtype(array.dtype))
    if weights is None:
        factor = float(max(count - ddof, 0))
        centred = array - mean(array, axis=1, keepdims=True)
        other = centred
    else:
        weights, factor = weights[0], _degrees_of_freedom(*weights, ddof)
        sums = total(array * weights, axis=1, keepdims=True)
        centred = array - sums / total(weights)
        other = centred * weights
    other = transposed(conj(other) if is_complex(other.dtype) else other)
    matrix = matmul(centred, other, precision="ieee") / factor
    return astype(squeeze(matrix), result, copy=False)


def _variables(name, array, rowvar):
    if array.ndim > 2:
        raise ValueError(f"{name} takes one or two dimensions, not {array.ndim}")
    rows = atleast_2d(array)
    return rows if rowvar or array.ndim < 2 else transposed(rows)


def _observation_weights(name, operands, count, dtype):
    """Return (all weights, aweights) of observations, either may be None; None without any."""
    found = {}
    for kind in ("fweights", "aweights"):
        weights = operands.get(kind)
        if weights is not None:
            if kind == "fweights" and not is_integer(weights.dtype):
                raise TypeError(f"{name}: fweights are integers, not {weights.dtype}")
            if weights.shape != (count,):
                raise ValueError(f"{name}: {kind} of shape {weights.shape}, not ({count},)")
            found[kind] = astype(weights, dtype, copy=False)
    if not found:
        return None
    first, *second = found.values()
    return (first * second[0] if second else first), found.get("aweights")


def _degrees_of_freedom(weights, aweights, ddof):
    """Return what sums of weighted products are divided by, a 0-d Array."""
    scale = total(weights)
    if aweights is None or not ddof:
        return maximum(scale - float(ddof), 0.0)
    return maximum(scale - total(weights * aweights) * float(ddof) / scale, 0.0)
