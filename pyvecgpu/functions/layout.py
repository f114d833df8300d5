"""Functions that change the shape, the order of axes or the dtype.

Array in, Array out; NumPy in, NumPy out. All but `astype` and `contiguous` give views of the same
memory; `reshape` and `ravel` copy where no view can show the elements in that shape.
"""

import numpy as np

from ..array import Array
from ..device import Device, resolve
from ..dispatch import WAYS, apply, whole
from ..dtypes import bfloat16, float32, parse_dtype
from ..short_views import flattened, repeated, reshaped, squeezed
from . import short_cards, short_cpu, short_names
from .arguments import (
    check_shape,
    from_host,
    host_array,
    is_host,
    is_scalar,
    listed,
    parse_axes,
    parse_axis,
    parse_int,
    parse_shape,
)
from .lists import is_list
from .orders import axes_in
from .short_calls import short
from .values import copied, to_host

__all__ = [
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "contiguous",
    "copy",
    "diagonal",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "rot90",
    "squeeze",
    "swapaxes",
    "transpose",
]


def as_array(name, x):
    """Return an Array and the function that makes of an Array what the caller gets."""
    if isinstance(x, Array):
        return x, _itself
    if is_host(x):
        return from_host(host_array(x), Device("cpu").backend), to_host
    if is_list(x) or is_scalar(x):
        return listed(x, resolve(None).backend), _itself
    raise TypeError(f"{name} takes arrays, not {type(x).__name__}; make one with asarray(...)")


def _itself(array):
    return array


def permute_dims(x, /, axes):
    """Return a view whose axis i is axis axes[i] of x.

    ValueError: not every axis once. AxisError: an axis out of range.

    >>> vg.permute_dims(vg.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    array, give = as_array("permute_dims", x)
    axes = parse_axes(tuple(axes), array.ndim)
    if len(axes) != array.ndim:
        raise ValueError(f"axes {axes} do not name each of {array.ndim} dimensions once")
    return give(apply(array.backend, "permute", array, axes))


def transpose(x, /, axes=None):
    """Return a view with the axes permuted, by default in reverse order; see permute_dims.

    >>> vg.transpose(vg.ones((2, 3, 4))).shape
    (4, 3, 2)
    """
    if axes is not None:
        return permute_dims(x, axes)
    if isinstance(x, Array):
        return x.T
    array, give = as_array("transpose", x)
    return give(apply(array.backend, "permute", array, tuple(range(array.ndim))[::-1]))


def matrix_transpose(x, /):
    """Return a view with the last two axes exchanged. ValueError: fewer than two axes.

    >>> vg.matrix_transpose(vg.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    array, give = as_array("matrix_transpose", x)
    if array.ndim < 2:
        raise ValueError(f"a matrix has two axes or more, not {array.ndim}")
    *others, last = range(array.ndim)
    axes = (*others[:-1], last, others[-1])
    return give(apply(array.backend, "permute", array, axes))


@short(short_names.swapaxes, c_order=False)
def swapaxes(x, axis1, axis2, /):
    """Return a view with two axes exchanged. AxisError: no such axis.

    >>> vg.swapaxes(vg.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    array, give = as_array("swapaxes", x)
    axes = list(range(array.ndim))
    i, j = parse_axis(axis1, array.ndim), parse_axis(axis2, array.ndim)
    axes[i], axes[j] = j, i
    return give(apply(array.backend, "permute", array, tuple(axes)))


def moveaxis(x, source, destination, /):
    """Return a view with axes moved to other places; the others stay in their order.

    source, destination: an axis, or as many each. ValueError: not as many, or one twice. AxisError:
    no such axis.

    >>> vg.moveaxis(vg.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    array, give = as_array("moveaxis", x)
    come, go = parse_axes(source, array.ndim), parse_axes(destination, array.ndim)
    if come is None or go is None or len(come) != len(go):
        raise ValueError(f"moveaxis: source {source} and destination {destination} do not fit")
    axes = [axis for axis in range(array.ndim) if axis not in come]
    for place, axis in sorted(zip(go, come, strict=True)):
        axes.insert(place, axis)
    return give(apply(array.backend, "permute", array, tuple(axes)))


def ravel(x, /, order="C"):
    """Return the elements along one axis: a view where one will do.

    order: "C", the last axis changes fastest; "F", the first does; "A", F of what lies in Fortran
    order, else C; "K", as they lie in memory, though none backwards. ValueError: another one.

    >>> x = vg.asarray([[1, 2], [3, 4]])
    >>> vg.ravel(x).tolist(), vg.ravel(x, "F").tolist()
    ([1, 2, 3, 4], [1, 3, 2, 4])
    """
    if order != "C":
        array, give = as_array("ravel", x)
        return give(reshape(permute_dims(array, axes_in(array, order, "CFAK")), -1))
    result = flattened(x) if isinstance(x, Array) else None
    return reshape(x, -1) if result is None else result


def reshape(x, /, shape, order="C", *, copy=None):
    """Return the elements in another shape, in which one -1 is worked out.

    order: in which they are read and placed, "C", "F" or "A", see ravel. copy: None copies where no
    view will do, True always, False never. ValueError: another number of elements, no such order,
    or copy=False and no view will do.

    >>> x = vg.arange(6)
    >>> y = vg.reshape(x, (2, -1))
    >>> y[0, 0] = 9
    >>> x.tolist()
    [9, 1, 2, 3, 4, 5]
    """
    if order != "C":
        return _reshaped_in(order, x, shape, copy)
    if copy is None and isinstance(x, Array):
        result = reshaped(x, shape)
        if result is not None:
            return result
    array, give = as_array("reshape", x)
    shape = _resolve_shape(shape, array.size)
    backend = array.backend
    result = apply(backend, "reshape", copied(array) if copy else array, shape)
    if copy is False and backend.pointer(result.raw) != backend.pointer(array.raw):
        raise ValueError(f"no view shows shape {array.shape} as {shape}, and copy is False")
    return give(result)


def _reshaped_in(order, x, shape, copy):
    """Reshape by an order that is not known to be C: axes backwards, there and back, for F."""
    array, give = as_array("reshape", x)
    axes = axes_in(array, order, "CFA")
    shape = _resolve_shape(shape, array.size)
    if axes == tuple(range(array.ndim)) and array.ndim > 1:
        return give(reshape(array, shape, copy=copy))
    return give(permute_dims(reshape(permute_dims(array, axes), shape[::-1], copy=copy),
                             range(len(shape))[::-1]))  # fmt: skip


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

    >>> vg.broadcast_to(vg.asarray([1, 2]), (3, 2)).strides
    (0, 8)
    """
    if isinstance(x, Array):
        result = repeated(x, shape)
        if result is not None:
            return result
    array, give = as_array("broadcast_to", x)
    shape = parse_shape(shape, array.dtype.itemsize)
    return give(apply(array.backend, "broadcast_to", array, shape))


def broadcast_shapes(*shapes):
    """Return the shape that arrays of these shapes have together. ValueError: none.

    >>> vg.broadcast_shapes((2, 1), (3,), (5, 1, 1))
    (5, 2, 3)
    """
    return np.broadcast_shapes(*shapes)


@short(short_names.broadcast_arrays, c_order=False)
def broadcast_arrays(*arrays):
    """Return read-only views of arrays in the shape that they have together, as a tuple.

    ValueError: they have none.

    >>> x, y = vg.broadcast_arrays(vg.asarray([1, 2]), vg.asarray([[3], [4]]))
    >>> x.tolist(), y.tolist()
    ([[1, 2], [1, 2]], [[3, 3], [4, 4]])
    """
    shapes = [x.shape if isinstance(x, Array) else np.shape(x) for x in arrays]
    shape = np.broadcast_shapes(*shapes)
    return tuple([broadcast_to(x, shape) for x in arrays])


def expand_dims(x, /, axis=0):
    """Return a view with new axes of length 1, at the places `axis` of the result.

    axis: an integer or a tuple of them. AxisError: out of range. ValueError: an axis twice, or too
    many dimensions.

    >>> vg.expand_dims(vg.ones((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    array, give = as_array("expand_dims", x)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shape = [*array.shape]
    for place in sorted(parse_axes(axes, array.ndim + len(axes))):
        shape.insert(place, 1)
    shape = tuple(shape)
    check_shape(shape)
    return give(apply(array.backend, "reshape", array, shape))


def flip(x, /, axis=None):
    """Return a view with the order of the elements reversed along the given axes, or along all.

    AxisError: an axis out of range. ValueError: an axis twice.

    >>> vg.flip(vg.asarray([[1, 2], [3, 4]])).tolist()
    [[4, 3], [2, 1]]
    >>> vg.flip(vg.asarray([[1, 2], [3, 4]]), axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    if isinstance(x, Array):
        result = (short_cards if x.backend.on_card else short_cpu).turned(x, axis)
        if result is not None:
            return result
    array, give = as_array("flip", x)
    axes = parse_axes(axis, array.ndim)
    turned = [array.shape[i] > 0 and (axes is None or i in axes) for i in range(array.ndim)]
    starts = tuple([n - 1 if turn else 0 for n, turn in zip(array.shape, turned, strict=True)])
    steps = tuple([-1 if turn else 1 for turn in turned])
    return give(apply(array.backend, "slice", array, starts, steps, array.shape))


def fliplr(x, /):
    """Return a view with the columns in reverse order. ValueError: less than two dimensions.

    >>> vg.fliplr(vg.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    array, give = as_array("fliplr", x)
    return give(flip(_of_dimensions("fliplr", array, 2), axis=1))


def flipud(x, /):
    """Return a view with the rows in reverse order. ValueError: no dimensions.

    >>> vg.flipud(vg.asarray([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    array, give = as_array("flipud", x)
    return give(flip(_of_dimensions("flipud", array, 1), axis=0))


def rot90(x, /, k=1, axes=(0, 1)):
    """Return a view turned k times by 90 degrees, from the first of two axes to the second.

    ValueError: not two different axes. AxisError: no such axis.

    >>> vg.rot90(vg.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    result = short_cpu.turned_by_90(x, k, axes)
    if result is not None:
        return result
    array, give = as_array("rot90", x)
    pair = parse_axes(tuple(axes), array.ndim)
    if len(pair) != 2:
        raise ValueError(f"rot90: two axes are needed, not {axes}")
    turns = parse_int(k, "a number of turns") % 4
    if turns == 2:
        return give(flip(array, axis=pair))
    if turns:
        array = flip(array, axis=pair[1 if turns == 1 else 0])
        array = swapaxes(array, *pair)
    return give(permute_dims(array, range(array.ndim)))


@short(short_names.diagonal, c_order=False)
def diagonal(x, /, offset=0, axis1=0, axis2=1):
    """Return the diagonals of the matrices that two axes span, along a new last axis.

    offset: column - row, 0 for the main one. It is a view, which unlike NumPy's can be written to.
    ValueError: less than two dimensions, an axis twice. AxisError: no such axis.

    >>> x = vg.asarray([[1, 2, 3], [4, 5, 6]])
    >>> vg.diagonal(x).tolist(), vg.diagonal(x, 1).tolist()
    ([1, 5], [2, 6])
    """
    if isinstance(x, Array):
        result = short_cards.diagonal(x, offset, axis1, axis2)
        if result is not None:
            return result
    array, give = as_array("diagonal", x)
    offset = parse_int(offset, "offset")
    pair = parse_axes((axis1, axis2), _of_dimensions("diagonal", array, 2).ndim)
    offset = max(-array.shape[pair[0]], min(offset, array.shape[pair[1]]))
    return give(apply(array.backend, "diagonal", array, offset, *pair))


def _of_dimensions(name, x, least):
    if x.ndim < least:
        raise ValueError(f"{name} takes arrays of {least} or more dimensions, not {x.ndim}")
    return x


@short(short_names.atleast_1d, c_order=False)
def atleast_1d(*arrays):
    """Return a view with one axis at least; of several arrays a tuple.

    >>> vg.atleast_1d(vg.asarray(5.0)).shape
    (1,)
    """
    return _at_least("atleast_1d", arrays, lambda shape: shape or (1,))


@short(short_names.atleast_2d, c_order=False)
def atleast_2d(*arrays):
    """Return a view with two axes at least: a row, if there is only one; see atleast_1d.

    >>> vg.atleast_2d(vg.asarray([1, 2])).shape
    (1, 2)
    """
    return _at_least("atleast_2d", arrays, lambda shape: (1,) * (2 - len(shape)) + shape)


@short(short_names.atleast_3d, c_order=False)
def atleast_3d(*arrays):
    """Return a view with three axes at least, 1 x n x 1 of one, m x n x 1 of two; see atleast_1d.

    >>> vg.atleast_3d(vg.asarray([1, 2])).shape
    (1, 2, 1)
    """

    def shape_of(shape):
        return (1, *shape, 1)[-3:] if len(shape) == 1 else (*shape, *(1,) * (3 - len(shape)))

    return _at_least("atleast_3d", arrays, shape_of)


def _at_least(name, arrays, shape_of):
    found = []
    for x in arrays:
        array, give = as_array(name, x)
        found.append(give(apply(array.backend, "reshape", array, shape_of(array.shape))))
    return found[0] if len(found) == 1 else tuple(found)


def squeeze(x, /, axis=None):
    """Return a view without the given axes, or without all axes, of length 1.

    ValueError: an axis of another length. AxisError: out of range.

    >>> vg.squeeze(vg.ones((1, 3, 1))).shape
    (3,)
    >>> vg.squeeze(vg.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    if axis is None and isinstance(x, Array):
        result = squeezed(x)
        if result is not None:
            return result
    array, give = as_array("squeeze", x)
    axes = parse_axes(axis, array.ndim)
    if axes is None:
        axes = [i for i, n in enumerate(array.shape) if n == 1]
    for i in axes:
        if array.shape[i] != 1:
            raise ValueError(f"cannot squeeze axis {i} of length {array.shape[i]}")
    shape = tuple([n for i, n in enumerate(array.shape) if i not in axes])
    return give(apply(array.backend, "reshape", array, shape))


def astype(x, dtype, /, *, copy=True, device=None):
    """Return the elements in another dtype; with copy=False x itself if it has it already.

    device: return an Array there. Floats outside an integer dtype's range are clamped to it, NaN
    gives 0; other casts are as in C. TypeError: complex numbers to reals, of which only real and
    abs say what is meant.

    >>> vg.astype(vg.asarray([1.9, -1.9]), "int32").tolist()
    [1, -1]
    """
    dtype = parse_dtype(dtype)
    if device is None and isinstance(x, Array):
        if not copy and x.dtype == dtype:
            return x
        return WAYS["cast"](x.backend, x, dtype, None)
    array, give = as_array("astype", x)
    if device is not None:
        return _moved(array, dtype, resolve(device), copy or is_host(x))
    if not copy and array.dtype == dtype:
        return x
    result = give(apply(array.backend, "cast", array, dtype, None))
    return result if isinstance(x, (Array, np.ndarray)) else result[()]


def _moved(array, dtype, device, copy):
    """Return an Array in another dtype and on another device; `copy` even if it fits."""
    if array.dtype != dtype or (copy and array.backend is device.backend):
        array = apply(array.backend, "cast", array, dtype, None)
    return transfer(array, device)


def transfer(array, device):
    """Return an Array on a device: itself, or a copy."""
    if array.backend is device.backend:
        return array
    if array.dtype is bfloat16 and "cpu" not in (array.device.type, device.type):
        return astype(transfer(astype(array, float32), device), bfloat16)  # without ml_dtypes
    copy = lambda: apply(device.backend, "from_host", to_host(array))  # noqa: E731
    return whole("transfer", {"x": array}, copy)


def contiguous(x, /):
    """Return the elements in C order without gaps: a view if they are, else a copy.

    >>> x = vg.ones((2, 3)).T
    >>> vg.contiguous(x).strides, x.strides
    ((8, 4), (4, 12))
    """
    array, give = as_array("contiguous", x)
    return give(apply(array.backend, "contiguous", array))


def copy(x, /):
    """Return a new array with the elements in C order, on the same device.

    >>> x = vg.asarray([1, 2])
    >>> y = vg.copy(x)
    >>> y[0] = 9
    >>> x.tolist()
    [1, 2]
    """
    array, give = as_array("copy", x)
    result = give(copied(array))
    return result if isinstance(x, (Array, np.ndarray)) else result[()]
