"""In which order elements are counted: "C", "F", "A" and "K", and the place of an element."""

import math

import numpy as np

from .arguments import parse_int


def axes_in(array, order, allowed):
    """Return an array's axes, the one that changes fastest last; ValueError: no such order."""
    if not isinstance(order, str) or order.upper() not in allowed or len(order) != 1:
        raise ValueError(f"order is one of {', '.join(allowed)}, not {order!r}")
    order, axes = order.upper(), tuple(range(array.ndim))
    if order == "K":
        strides = array.strides
        return tuple(sorted(axes, key=lambda axis: -abs(strides[axis])))
    if order == "F" or (order == "A" and array.flags.fnc):
        return axes[::-1]
    return axes


def position(shape, index):
    """Return what Array.item(*index) means as a key; ValueError, IndexError: see there."""
    if len(index) == 1 and isinstance(index[0], tuple):
        index = index[0]
    if len(index) == 1 and len(shape) != 1:
        size, number = math.prod(shape), parse_int(index[0], "an index")
        if not -size <= number < size:
            raise IndexError(f"index {number} is out of bounds for {size} elements")
        return tuple([int(i) for i in np.unravel_index(number % size, shape)])
    if len(index) != len(shape):
        raise ValueError(f"item: {len(index)} indices for an array of {len(shape)} dimensions")
    return tuple([parse_int(i, "an index") for i in index])
