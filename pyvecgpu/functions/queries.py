"""Questions about arrays and what stands for them: how many axes, how long, of which kind."""

import math

import numpy as np

from ..array import Array
from ..dtypes import parse_dtype, promote
from .arguments import parse_axes

__all__ = ["isscalar", "iterable", "ndim", "promote_types", "shape", "size"]


def shape(x, /):
    """Return the lengths of the axes of an array, a list or a scalar, a tuple.

    >>> vg.shape(vg.ones((2, 3))), vg.shape([[1, 2]])
    ((2, 3), (1, 2))
    """
    return x.shape if isinstance(x, Array) else np.shape(x)


def ndim(x, /):
    """Return the number of axes of an array, a list or a scalar.

    >>> vg.ndim(vg.ones((2, 3))), vg.ndim([1, 2]), vg.ndim(5)
    (2, 1, 0)
    """
    return len(shape(x))


def size(x, /, axis=None):
    """Return the number of elements, or those along an axis or some. AxisError: no such axis.

    >>> vg.size(vg.ones((2, 3))), vg.size(vg.ones((2, 3)), axis=1)
    (6, 3)
    """
    lengths = shape(x)
    axes = parse_axes(axis, len(lengths))
    return math.prod(lengths if axes is None else [lengths[i] for i in axes])


def isscalar(element, /):
    """Return whether a value is a scalar of Python or NumPy; no array is, of whatever shape.

    >>> vg.isscalar(3.5), vg.isscalar(vg.asarray(3.5))
    (True, False)
    """
    return np.isscalar(element)


def iterable(y, /):
    """Return whether a value can be iterated over, as arrays with axes can.

    >>> vg.iterable(vg.ones(2)), vg.iterable(vg.asarray(1.0))
    (True, False)
    """
    return y.ndim > 0 if isinstance(y, Array) else np.iterable(y)


def promote_types(type1, type2, /):
    """Return the dtype that arrays of two dtypes are promoted to. TypeError: no dtype of arrays.

    >>> vg.promote_types("int8", "uint8")
    dtype('int16')
    >>> vg.promote_types("int64", "float32")
    dtype('float64')
    """
    return promote(parse_dtype(type1), parse_dtype(type2))
