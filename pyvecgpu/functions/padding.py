"""Padding: an array with more elements before and behind it along its axes."""

import numpy as np

from ..array import Array
from . import short_cards, short_numpy
from .arguments import parse_shape, strong
from .elementwise import floor
from .joining import concat, tile
from .layout import as_array, astype, broadcast_to, flip, reshape
from .ranges import arange
from .short_calls import short
from .values import copied
from .working import along, work_dtype

__all__ = ["pad"]

_MODES = ("constant", "edge", "linear_ramp", "reflect", "symmetric", "wrap")


@short(short_numpy.pad)
def pad(x, pad_width, /, mode="constant", *, constant_values=0, end_values=0):
    """Return x with so many elements more before and behind it along each axis, as numpy.pad.

    pad_width: an integer, (before, behind), or such a pair for each axis. mode: "constant", of
    constant_values; "edge", the outermost elements; "linear_ramp", from them to end_values;
    "reflect" and "symmetric", mirrored without and with the outermost element; "wrap", as if x
    were repeated. Values are given as pad_width is. ValueError: another mode, a negative number,
    an axis without elements. OverflowError: a value that the dtype cannot hold.

    >>> vg.pad(vg.asarray([1, 2, 3]), 2).tolist()
    [0, 0, 1, 2, 3, 0, 0]
    >>> vg.pad(vg.asarray([1, 2, 3]), (1, 2), "reflect").tolist()
    [2, 1, 2, 3, 2, 1]
    """
    if mode == "constant":
        result = short_cards.padded(x, pad_width, constant_values)
        if result is not None:
            return result
    array, give = as_array("pad", x)
    if mode not in _MODES:
        names = ", ".join(repr(one) for one in _MODES)
        raise ValueError(f"pad: mode can be {names}, not {mode!r}")
    widths = _pairs("pad_width", pad_width, array.ndim, "iu")
    values = _pairs("constant_values", constant_values, array.ndim, "biufc")
    ends = _pairs("end_values", end_values, array.ndim, "biufc")
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"pad: the widths are 0 or more, not {pad_width}")
    shape = [n + sum(pair) for n, pair in zip(array.shape, widths, strict=True)]
    parse_shape(tuple(shape), array.dtype.itemsize)
    result = array
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        if mode != "constant" and not array.shape[axis]:
            raise ValueError(f"pad: axis {axis} has no elements; only 'constant' extends it")
        if mode in ("reflect", "symmetric", "wrap"):
            result = _repeated(result, axis, width, mode)
        else:
            of = {"constant": _constant, "edge": _edge, "linear_ramp": _ramp}[mode]
            pair = (ends if mode == "linear_ramp" else values)[axis]
            before = of(result, axis, width[0], pair[0], slice(0, 1))
            behind = of(result, axis, width[1], pair[1], slice(-1, None))
            behind = flip(behind, axis=axis) if mode == "linear_ramp" else behind
            result = concat([before, result, behind], axis=axis)
    return give(copied(array) if result is array else result)


def _pairs(what, value, ndim, kinds):
    """Return a pair for each axis. TypeError: values of another kind. ValueError: other shapes."""
    if isinstance(value, Array):
        raise TypeError(f"pad: {what} is a number or pairs of them, not an Array")
    array = np.asarray(value)
    if array.dtype.kind not in kinds:
        raise TypeError(f"pad: {what} is a number or pairs of them, not {value!r}")
    try:
        return np.broadcast_to(array, (ndim, 2)).tolist()
    except ValueError:
        raise ValueError(f"pad: {what} of shape {array.shape} for {ndim} axes") from None


def _wide(array, axis, width):
    """Return the shape of an array that is so long along an axis."""
    return tuple(width if i == axis else n for i, n in enumerate(array.shape))


def _constant(array, axis, width, value, _):
    return broadcast_to(strong(value, array.backend, array.dtype), _wide(array, axis, width))


def _edge(array, axis, width, _, end):
    return broadcast_to(along(array, axis, end), _wide(array, axis, width))


def _ramp(array, axis, width, value, end):
    """Return what leads from a value to the outermost elements; integers are rounded down."""
    work = work_dtype(array.dtype)
    edge = astype(along(array, axis, end), work, copy=False)
    steps = arange(width, dtype=work, device=array.device)
    steps = reshape(steps, tuple(width if i == axis else 1 for i in range(array.ndim)))
    value = value * 1.0
    ramp = steps * ((edge - value) / float(width or 1)) + value
    ramp = floor(ramp) if array.dtype.kind in "biu" else ramp
    return astype(ramp, array.dtype, copy=False)


def _repeated(array, axis, width, mode):
    """Return a part of the array and its mirror image, or the array alone, one behind the other."""
    n = array.shape[axis]
    if mode == "symmetric":
        cycle = concat([array, flip(array, axis=axis)], axis=axis)
    elif mode == "reflect" and n > 1:
        inner = along(array, axis, slice(1, -1))
        cycle = concat([array, flip(inner, axis=axis)], axis=axis)
    else:
        cycle = array
    period = cycle.shape[axis]
    begin, length = -width[0] % period, n + sum(width)
    count = -(-(begin + length) // period)
    times = tuple(count if i == axis else 1 for i in range(array.ndim))
    return copied(along(tile(cycle, times), axis, slice(begin, begin + length)))
