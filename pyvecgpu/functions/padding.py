"""Padding: an array with more elements before and behind it along its axes."""

import numpy as np

from ..array import Array
from ..dtypes import is_integer
from . import short_cards, short_joining
from .arguments import parse_axis, parse_shape, strong
from .elementwise import floor
from .elementwise import round as rint
from .indexing import get
from .joining import concat, tile
from .layout import as_array, astype, broadcast_to, flip, moveaxis, reshape
from .quantiles import median
from .ranges import arange
from .reductions import max as largest
from .reductions import mean
from .reductions import min as smallest
from .short_calls import short
from .values import copied
from .working import along, work_dtype

__all__ = ["pad"]

# The names of arguments that belong to a mode, with what they are where they are not given.
_OPTIONS = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    **{mode: {"stat_length": None} for mode in ("maximum", "mean", "median", "minimum")},
    **{mode: {"reflect_type": "even"} for mode in ("reflect", "symmetric")},
    "wrap": {},
}


@short(short_joining.pad)
def pad(x, pad_width, /, mode="constant", **options):
    """Return x with so many elements more before and behind it along each axis, as numpy.pad.

    pad_width: an integer, (before, behind), such a pair for each axis, or {axis: one of these}.
    mode: "constant", of `constant_values`; "edge", the outermost elements; "linear_ramp", from them
    to `end_values`; "maximum", "mean", "median" and "minimum", of all along the axis or of the
    outermost `stat_length`; "reflect" and "symmetric", mirrored without and with the outermost
    element, with `reflect_type` "odd" subtracted from twice that; "wrap", as if x were repeated;
    "empty", undefined. Options are given as pad_width is, and belong to their mode alone. Or a
    function that gets each vector along each axis in turn, an Array to write to with zeros at its
    ends, its (before, behind), the axis, and a dict of options.

    ValueError: another mode, an option of another one, a negative number, an axis without elements.
    OverflowError: a value that the dtype cannot hold. AxisError: no such axis.

    >>> vg.pad(vg.asarray([1, 2, 3]), 2).tolist()
    [0, 0, 1, 2, 3, 0, 0]
    >>> vg.pad(vg.asarray([1, 2, 3]), (1, 2), "reflect").tolist()
    [2, 1, 2, 3, 2, 1]
    >>> vg.pad(vg.asarray([1, 2, 6]), {0: (0, 2)}, "mean").tolist()
    [1, 2, 6, 3, 3]
    """
    if mode == "constant" and options.keys() <= _OPTIONS["constant"].keys():
        result = short_cards.padded(x, pad_width, options.get("constant_values", 0))
        if result is not None:
            return result
    array, give = as_array("pad", x)
    widths = _pairs("pad_width", _of_axes(pad_width, array.ndim), array.ndim, "iu")
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"pad: the widths are 0 or more, not {pad_width}")
    shape = [n + sum(pair) for n, pair in zip(array.shape, widths, strict=True)]
    parse_shape(tuple(shape), array.dtype.itemsize)
    if callable(mode):
        return give(_by_function(array, widths, mode, options))
    values = _options(mode, options, array.ndim)
    result = array
    for axis, width in enumerate(widths):
        if any(width):
            if mode not in ("constant", "empty") and not array.shape[axis]:
                raise ValueError(f"pad: axis {axis} has no elements; only 'constant' extends it")
            result = _longer(result, axis, width, mode, values[axis])
    return give(copied(array) if result is array else result)


def _longer(array, axis, width, mode, value):
    """Return an array that is padded along one axis; value: the mode's option there."""
    if mode in ("reflect", "symmetric", "wrap"):
        if value == "odd":
            return _turned(array, axis, width, mode == "symmetric")
        return _repeated(array, axis, width, mode)
    of = {"constant": _constant, "empty": _constant, "edge": _edge, "linear_ramp": _ramp}
    of = of.get(mode, _statistic(mode))
    before, behind = (value, value) if value is None else value
    before = of(array, axis, width[0], before, slice(0, 1))
    behind = of(array, axis, width[1], behind, slice(-1, None))
    behind = flip(behind, axis=axis) if mode == "linear_ramp" else behind
    return concat([before, array, behind], axis=axis)


def _of_axes(pad_width, ndim):
    """Return widths of axes by their numbers as a list of pairs, and others as they are."""
    if not isinstance(pad_width, dict):
        return pad_width
    pairs = [(0, 0)] * ndim
    for axis, width in pad_width.items():
        pair = (width, width) if np.ndim(width) == 0 else tuple(width)
        if len(pair) != 2:
            raise TypeError(f"pad: a width is a number or (before, behind), not {width!r}")
        pairs[parse_axis(axis, ndim)] = pair
    return pairs if pairs else 0


def _options(mode, given, ndim):
    """Return the option of a mode, for each axis. ValueError: another mode, or another's option."""
    known = _OPTIONS.get(mode) if isinstance(mode, str) else None
    if known is None:
        names = ", ".join(map(repr, _OPTIONS))
        raise ValueError(f"pad: mode can be {names} or a function, not {mode!r}")
    if not given.keys() <= known.keys():
        names = sorted(given.keys() - known.keys())
        raise ValueError(f"pad: mode {mode!r} takes no {', '.join(names)}")
    for name, default in known.items():
        value = given.get(name, default)
        if name == "reflect_type":
            if value not in ("even", "odd"):
                raise ValueError(f"pad: reflect_type is 'even' or 'odd', not {value!r}")
            return [value] * ndim
        if name == "stat_length":
            return _lengths(value, mode, ndim)
        return _pairs(name, value, ndim, "biufc")
    return [(0, 0)] * ndim


def _lengths(value, mode, ndim):
    """Return how many of the outermost elements a mode looks at; None: all of them."""
    if value is None:
        return [None] * ndim
    pairs = _pairs("stat_length", value, ndim, "iu")
    least = min((n for pair in pairs for n in pair), default=1)
    if least < 0 or (least == 0 and mode in ("maximum", "minimum")):
        raise ValueError(f"pad: {mode!r} of stat_length {value}")
    return pairs


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


def _by_function(array, widths, function, options):
    """Return an array with zeros around it that a function has seen every vector of."""
    result = array
    for axis, width in enumerate(widths):
        if any(width):
            result = _longer(result, axis, width, "constant", (0, 0))
    result = copied(result) if result is array else result
    for axis, width in enumerate(widths):
        rows = moveaxis(result, axis, -1)
        for place in np.ndindex(rows.shape[:-1]):
            function(get(rows, (*place, ...)), tuple(width), axis, options)
    return result


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


def _statistic(mode):
    """Return the function that makes elements of what the outermost ones have in common."""
    of = {"maximum": largest, "mean": mean, "median": median, "minimum": smallest}.get(mode)

    def computed(array, axis, width, count, end):
        n = array.shape[axis]
        count = n if count is None else min(count, n)
        chunk = along(array, axis, slice(0, count) if end.start == 0 else slice(n - count, n))
        if mode in ("mean", "median"):
            chunk = astype(chunk, work_dtype(array.dtype), copy=False)
        result = of(chunk, axis=axis, keepdims=True)
        if mode in ("mean", "median") and is_integer(array.dtype):
            result = rint(result)
        return broadcast_to(astype(result, array.dtype, copy=False), _wide(array, axis, width))

    return computed


def _turned(array, axis, width, with_edge):
    """Return an array that goes on, turned by half a circle about each end, again and again."""
    n, (before, behind) = array.shape[axis], width
    if n == 1:
        edge = [_edge(array, axis, m, None, slice(0, 1)) for m in width]
        return concat([edge[0], array, edge[1]], axis=axis)
    skipped = 0 if with_edge else 1
    period = n - skipped
    while before or behind:
        length = array.shape[axis]
        reach = (length - skipped) // period * period
        count, more = min(reach, before), min(reach, behind)
        first = along(array, axis, slice(skipped, skipped + count))
        last = along(array, axis, slice(length - skipped - more, length - skipped))
        ends = along(array, axis, slice(0, 1)), along(array, axis, slice(length - 1, length))
        parts = [
            astype(end * 2 - flip(part, axis=axis), array.dtype, copy=False)
            for part, end in zip((first, last), ends, strict=True)
        ]
        array = concat([parts[0], array, parts[1]], axis=axis)
        before, behind = before - count, behind - more
    return array


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
