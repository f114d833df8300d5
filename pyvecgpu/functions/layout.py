"""Functions that change the shape, the order of axes or the dtype.

Array in, Array out; NumPy in, NumPy out. All but `astype` and `contiguous` give views of the same
memory; `reshape` copies where no view can show the elements in the new shape.
"""

import numpy as np

from ..array import Array
from ..device import Device
from ..dispatch import apply
from ..dtypes import parse_dtype
from .arguments import (
    check_shape,
    from_host,
    host_array,
    is_host,
    parse_axes,
    parse_axis,
    parse_int,
    parse_shape,
)
from .values import copied, to_host

__all__ = [
    "astype",
    "broadcast_to",
    "contiguous",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "permute_dims",
    "reshape",
    "squeeze",
    "transpose",
]


def _as_array(name, x):
    """Return an Array and the function that makes of an Array what the caller gets."""
    if isinstance(x, Array):
        return x, _itself
    if is_host(x):
        return from_host(host_array(x), Device("cpu").backend), to_host
    raise TypeError(f"{name} takes arrays, not {type(x).__name__}; make one with asarray(...)")


def _itself(array):
    return array


def permute_dims(x, /, axes):
    """Return a view whose axis i is axis axes[i] of x.

    ValueError: not every axis once. AxisError: an axis out of range.
    """
    array, give = _as_array("permute_dims", x)
    axes = parse_axes(tuple(axes), array.ndim)
    if len(axes) != array.ndim:
        raise ValueError(f"axes {axes} do not name each of {array.ndim} dimensions once")
    return give(apply(array.backend, "permute", array, axes))


def transpose(x, /, axes=None):
    """Return a view with the axes permuted, by default in reverse order; see permute_dims."""
    if axes is not None:
        return permute_dims(x, axes)
    array, give = _as_array("transpose", x)
    return give(apply(array.backend, "permute", array, tuple(range(array.ndim))[::-1]))


def matrix_transpose(x, /):
    """Return a view with the last two axes exchanged. ValueError: fewer than two axes."""
    array, give = _as_array("matrix_transpose", x)
    if array.ndim < 2:
        raise ValueError(f"a matrix has two axes or more, not {array.ndim}")
    *others, last = range(array.ndim)
    axes = (*others[:-1], last, others[-1])
    return give(apply(array.backend, "permute", array, axes))


def reshape(x, /, shape, *, copy=None):
    """Return the elements, in C order, in another shape, in which one -1 is worked out.

    copy: None copies where no view will do, True always, False never.
    ValueError: another number of elements, or copy=False and no view will do.
    """
    array, give = _as_array("reshape", x)
    shape = _resolve_shape(shape, array.size)
    backend = array.backend
    result = apply(backend, "reshape", copied(array) if copy else array, shape)
    if copy is False and backend.pointer(result.data) != backend.pointer(array.data):
        raise ValueError(f"no view shows shape {array.shape} as {shape}, and copy is False")
    return give(result)


def _resolve_shape(shape, size):
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    items = [parse_int(n, "a dimension") for n in items]
    check_shape(tuple(1 if n == -1 else n for n in items))
    unknown = [i for i, n in enumerate(items) if n == -1]
    known = 1
    for n in items:
        known *= 1 if n == -1 else n
    if len(unknown) > 1:
        raise ValueError(f"only one dimension of {tuple(items)} can be -1")
    if size % known if unknown and known else unknown or size != known:
        raise ValueError(f"cannot reshape {size} elements into {tuple(items)}")
    if unknown:
        items[unknown[0]] = size // known
    return tuple(items)


def broadcast_to(x, /, shape):
    """Return a read-only view repeated along new axes and along axes of length 1.

    ValueError: the shape does not fit, or has 2**63 bytes or more.
    """
    array, give = _as_array("broadcast_to", x)
    shape = parse_shape(shape, array.dtype.itemsize)
    return give(apply(array.backend, "broadcast_to", array, shape))


def expand_dims(x, /, *, axis=0):
    """Return a view with a new axis of length 1, at place `axis` of the result.

    AxisError: out of range. ValueError: too many dimensions.
    """
    array, give = _as_array("expand_dims", x)
    axis = parse_axis(axis, array.ndim + 1)
    shape = (*array.shape[:axis], 1, *array.shape[axis:])
    check_shape(shape)
    return give(apply(array.backend, "reshape", array, shape))


def flip(x, /, axis=None):
    """Return a view with the order of the elements reversed along the given axes, or along all.

    AxisError: an axis out of range. ValueError: an axis twice.
    """
    array, give = _as_array("flip", x)
    axes = parse_axes(axis, array.ndim)
    turned = [array.shape[i] > 0 and (axes is None or i in axes) for i in range(array.ndim)]
    starts = tuple([n - 1 if turn else 0 for n, turn in zip(array.shape, turned, strict=True)])
    steps = tuple([-1 if turn else 1 for turn in turned])
    return give(apply(array.backend, "slice", array, starts, steps, array.shape))


def squeeze(x, /, axis=None):
    """Return a view without the given axes, or without all axes, of length 1.

    ValueError: an axis of another length. AxisError: out of range.
    """
    array, give = _as_array("squeeze", x)
    axes = parse_axes(axis, array.ndim)
    if axes is None:
        axes = [i for i, n in enumerate(array.shape) if n == 1]
    for i in axes:
        if array.shape[i] != 1:
            raise ValueError(f"cannot squeeze axis {i} of length {array.shape[i]}")
    shape = tuple([n for i, n in enumerate(array.shape) if i not in axes])
    return give(apply(array.backend, "reshape", array, shape))


def astype(x, dtype, /, *, copy=True):
    """Return the elements in another dtype; with copy=False x itself if it has it already.

    Floats outside an integer dtype's range are clamped to it, NaN gives 0; other casts are as in C.
    """
    dtype = parse_dtype(dtype)
    array, give = _as_array("astype", x)
    if not copy and array.dtype == dtype:
        return x
    result = give(apply(array.backend, "cast", array, dtype, None))
    return result if isinstance(x, (Array, np.ndarray)) else result[()]


def contiguous(x, /):
    """Return the elements in C order without gaps: a view if they are, else a copy."""
    array, give = _as_array("contiguous", x)
    return give(apply(array.backend, "contiguous", array))
