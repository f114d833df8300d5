"""Questions about arrays and what stands for them: how many axes, how long, of which kind."""

import math

import numpy as np

from ..array import Array
from ..dtypes import parse_dtype, promote
from .arguments import parse_axes

__all__ = ["isscalar", "iterable", "ndim", "promote_types", "shape", "size"]


def shape(x, /):
    """Return the lengths of the axes of an array, a list or a scalar, a tuple."""
    return x.shape if isinstance(x, Array) else np.shape(x)


def ndim(x, /):
    """Return the number of axes of an array, a list or a scalar."""
    return len(shape(x))


def size(x, /, axis=None):
    """Return the number of elements, or those along an axis or some. AxisError: no such axis."""
    lengths = shape(x)
    axes = parse_axes(axis, len(lengths))
    return math.prod(lengths if axes is None else [lengths[i] for i in axes])


def isscalar(element, /):
    """Return whether a value is a scalar of Python or NumPy; no array is, of whatever shape."""
    return np.isscalar(element)


def iterable(y, /):
    """Return whether a value can be iterated over, as arrays with axes can."""
    return y.ndim > 0 if isinstance(y, Array) else np.iterable(y)


def promote_types(type1, type2, /):
    """Return the dtype that arrays of two dtypes are promoted to. TypeError: no dtype of arrays."""
    return promote(parse_dtype(type1), parse_dtype(type2))
