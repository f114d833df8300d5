"""Questions about arrays and what stands for them: how many axes, how long, of which kind."""

import math

import numpy as np

from ..array import Array
from ..dtypes import parse_dtype, promote
from .arguments import parse_axes

__all__ = [
    "isscalar",
    "iterable",
    "may_share_memory",
    "ndim",
    "promote_types",
    "shape",
    "shares_memory",
    "size",
]


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


def may_share_memory(a, b, /, max_work=0):
    """Return whether the memory of two arrays, from its first byte to its last one, overlaps.

    max_work: as shares_memory has it; 0 looks at the two ranges alone.

    >>> x = vg.arange(10)
    >>> vg.may_share_memory(x[::2], x[1::2]), vg.may_share_memory(x, x.copy())
    (True, False)
    """
    return np.may_share_memory(_memory("a", a), _memory("b", b), max_work)


def shares_memory(a, b, /, max_work=-1):
    """Return whether two arrays have an element's memory in common, on whatever devices.

    Exactly so, by their addresses and strides; max_work: how much to try, -1 for all that it takes.
    numpy.exceptions.TooHardError: that was not enough.

    >>> x = vg.arange(10)
    >>> vg.shares_memory(x[::2], x[1::2]), vg.shares_memory(x, x[3:])
    (False, True)
    """
    return np.shares_memory(_memory("a", a), _memory("b", b), max_work)


class _Range:
    """What NumPy takes for memory at an address, which nobody reads."""

    def __init__(self, address, array):
        self.__array_interface__ = {
            "data": (address, True),
            "shape": array.shape,
            "strides": array.strides,
            "typestr": f"|V{array.itemsize}",
            "version": 3,
        }


def _memory(name, x):
    """Return an ndarray at the addresses of an array's elements, on whatever device they are."""
    if isinstance(x, np.ndarray):
        return x
    if not isinstance(x, Array):
        raise TypeError(f"{name} is an array, not {type(x).__name__}")
    if not x.backend.on_card:
        return x.raw
    if not x.size:
        return np.empty(0)
    return np.asarray(_Range(x.backend.pointer(x.raw), x))


def promote_types(type1, type2, /):
    """Return the dtype that arrays of two dtypes are promoted to. TypeError: no dtype of arrays.

    >>> vg.promote_types("int8", "uint8")
    dtype('int16')
    >>> vg.promote_types("int64", "float32")
    dtype('float64')
    """
    return promote(parse_dtype(type1), parse_dtype(type2))
