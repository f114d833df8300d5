"""A function for each line of an array, or over one axis after another.

apply_along_axis loops in Python: it calls the function once for every line, which on a device is
slow where lines are many. A function that takes an axis itself does all at once.
"""

import numpy as np

from ..array import Array
from .arguments import is_host, is_scalar, parse_axis, parse_int
from .creation import asarray
from .indexing import get
from .joining import stack
from .layout import as_array, expand_dims, moveaxis, permute_dims, reshape

__all__ = ["apply_along_axis", "apply_over_axes"]


def apply_along_axis(func1d, axis, arr, /, *args, **kwargs):
    """Return what a function gives of each line along an axis, in the places of these lines.

    func1d: gets a 1-D Array and args, kwargs, and gives a scalar or an array, each time of one
    shape, whose axes stand where the line was. It is called in a loop of Python. ValueError: there
    are no lines, or what it gives has several shapes. AxisError: no such axis.

    >>> x = vg.asarray([[1, 2, 3], [4, 5, 9]])
    >>> vg.apply_along_axis(lambda line: line.max() - line.min(), 1, x).tolist()
    [2, 5]
    """
    array, give = as_array("apply_along_axis", arr)
    axis = parse_axis(axis, array.ndim)
    lines = moveaxis(array, axis, -1)
    others = lines.shape[:-1]
    if 0 in others:
        raise ValueError("apply_along_axis: there are no lines to apply a function to")
    found = []
    for place in np.ndindex(others):
        value = func1d(give(get(lines, place)), *args, **kwargs)
        found.append(_as_array(value, array))
    if any(one.shape != found[0].shape for one in found):
        raise ValueError("apply_along_axis: the function gives arrays of several shapes")
    joined = reshape(stack(found), others + found[0].shape)
    count, more = len(others), found[0].ndim
    order = [*range(axis), *range(count, count + more), *range(axis, count)]
    return give(permute_dims(joined, order))


def _as_array(value, beside):
    if isinstance(value, Array):
        return value
    if is_host(value) or is_scalar(value) or isinstance(value, (list, tuple)):
        return asarray(value, device=beside.device)
    raise TypeError(f"apply_along_axis: the function gives {type(value).__name__}, no array")


def apply_over_axes(func, a, axes, /):
    """Return what a function gives of an array over an axis, then over the next one, and so on.

    func: gets an array and an axis, and gives an array of as many dimensions, or of one less, whose
    axis then has length 1. axes: one, or several. ValueError: the function gives another shape.

    >>> vg.apply_over_axes(vg.sum, vg.ones((2, 3, 4)), (0, 2)).tolist()
    [[[8.0], [8.0], [8.0]]]
    """
    array, give = as_array("apply_over_axes", a)
    ndim = array.ndim
    axes = axes if isinstance(axes, (list, tuple)) else (axes,)
    for axis in axes:
        axis = parse_int(axis, "an axis")
        axis = axis + ndim if axis < 0 else axis
        result = func(array, axis)
        if isinstance(result, Array) and result.ndim == ndim - 1:
            result = expand_dims(result, axis)
        if not isinstance(result, Array) or result.ndim != ndim:
            raise ValueError("apply_over_axes: the function does not give an array of that shape")
        array = result
    return give(array)
