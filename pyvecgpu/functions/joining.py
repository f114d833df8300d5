"""Functions that join arrays, and that split, repeat and roll one.

What is joined is of one device, or all NumPy, and NumPy stays on the host: nothing is computed. The
parts of a split are views. Dtypes are promoted.
"""

import itertools

import numpy as np

from ..array import Array, Tracked
from ..device import Device
from ..dispatch import apply, whole
from ..dtypes import int64, parse_dtype
from . import advanced, short_cards, short_joining, short_names
from .arguments import (
    Operands,
    check_shape,
    is_host,
    is_scalar,
    parse_axis,
    parse_int,
    parse_shape,
    promote_all,
)
from .indexing import get
from .indexing import set as assign
from .layout import as_array, astype, broadcast_to, expand_dims, reshape
from .lists import depth
from .reductions import min as smallest
from .scans import cumulative_sum
from .short_calls import short
from .values import copied, to_host

__all__ = [
    "append",
    "array_split",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "repeat",
    "roll",
    "split",
    "stack",
    "tile",
    "unstack",
    "vsplit",
    "vstack",
]

MOST_PARTS = 1_000_000  # of a split, where the elements are fewer

# Joining ------------------------------------------------------------------------------------------


@short(short_joining.concat)
def concat(arrays, /, axis=0, out=None, *, dtype=None):
    """Return arrays one behind the other along an axis; axis=None: the elements of all in a row.

    dtype: of the result, by default what the dtypes are promoted to. ValueError: no array, one
    without axes, shapes that differ along another axis, several devices. AxisError: no such axis.

    >>> vg.concat([vg.ones((1, 2)), vg.zeros((2, 2))]).tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    """
    if out is None and dtype is None:
        result = short_cards.joined(arrays, axis, False)
        if result is not None:
            return result
    return _concat("concat", arrays, axis, dtype, out)


@short(short_joining.concat)
def concatenate(arrays, /, axis=0, out=None, *, dtype=None):
    """Return concat(arrays, axis), under the name that NumPy has for it.

    >>> vg.concatenate([vg.asarray([[1], [2]]), vg.asarray([[3], [4]])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    if out is None and dtype is None:
        result = short_cards.joined(arrays, axis, False)
        if result is not None:
            return result
    return _concat("concatenate", arrays, axis, dtype, out)


@short(short_joining.stack)
def stack(arrays, /, axis=0, out=None):
    """Return arrays of one shape along a new axis, at place `axis` of the result.

    ValueError: no array, shapes that differ, several devices. AxisError: no such axis.

    >>> vg.stack([vg.asarray([1, 2]), vg.asarray([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    if out is None:
        result = short_cards.joined(arrays, axis, True)
        if result is not None:
            return result
    call = _joint("stack", arrays, out)
    return call.deliver_array(_joined("stack", call, call.arrays, axis, None, stacked=True))


@short(short_joining.vstack)
def vstack(arrays, /, *, dtype=None):
    """Return arrays one below the other: along the first axis, 1-D ones as rows.

    >>> vg.vstack([vg.asarray([1, 2]), vg.asarray([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return _stacked("vstack", arrays, 0, _as_row, dtype)


@short(short_joining.hstack)
def hstack(arrays, /, *, dtype=None):
    """Return arrays side by side: along the second axis, or the first and only one.

    >>> vg.hstack([vg.asarray([[1], [2]]), vg.asarray([[3], [4]])]).tolist()
    [[1, 3], [2, 4]]
    """
    return _stacked("hstack", arrays, 1, lambda x: x if x.ndim else reshape(x, (1,)), dtype)


@short(short_joining.dstack)
def dstack(arrays, /):
    """Return arrays one behind the other along the third axis, which they get if they lack it.

    >>> vg.dstack([vg.asarray([1, 2]), vg.asarray([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """

    def with_depth(x):
        row = _as_row(x)
        return row if row.ndim > 2 else expand_dims(row, axis=2)

    return _stacked("dstack", arrays, 2, with_depth, None)


@short(short_joining.column_stack)
def column_stack(arrays, /):
    """Return arrays side by side along the second axis, 1-D ones as columns.

    >>> vg.column_stack([vg.asarray([1, 2]), vg.asarray([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    return _stacked(
        "column_stack", arrays, 1, lambda x: x if x.ndim > 1 else reshape(x, (x.size, 1)), None
    )


@short(short_joining.append)
def append(x, values, /, axis=None):
    """Return x with values behind it along an axis; axis=None: the elements of both in a row.

    >>> vg.append(vg.asarray([1, 2]), vg.asarray([[3], [4]])).tolist()
    [1, 2, 3, 4]
    """
    return _concat("append", (x, values), axis, None, None)


def _as_row(x):
    return x if x.ndim > 1 else reshape(x, (1, x.size))


def _joint(name, arrays, out=None):
    """Return the Operands of what shall be joined."""
    if isinstance(arrays, Array):
        arrays = unstack(arrays)
    arrays = tuple(arrays)
    if not arrays:
        raise ValueError(f"{name}: need at least one array")
    for x in arrays:
        if is_scalar(x):
            kind = type(x).__name__
            raise TypeError(f"{name} takes arrays, not {kind}; make one with asarray(...)")
    on_host = any(map(is_host, arrays)) and not any(isinstance(x, Array) for x in (*arrays, out))
    return Operands(name, arrays, out, Device("cpu") if on_host else None)


def _concat(name, arrays, axis, dtype, out):
    call = _joint(name, arrays, out)
    parts = call.arrays
    if axis is None:
        parts, axis = [reshape(x, (x.size,)) for x in parts], 0
    return call.deliver_array(_joined(name, call, parts, axis, dtype))


def _check_parts(name, parts, axis, stacked):
    """ValueError, in NumPy's words, if arrays do not fit together."""
    first = parts[0]
    if stacked:
        shapes = dict.fromkeys(x.shape for x in parts)
        if len(shapes) > 1:
            found = ", ".join(map(str, shapes))
            raise ValueError(f"{name}: arrays of one shape are needed, not of {found}")
        return
    for number, x in enumerate(parts):
        if x.ndim != first.ndim:
            raise ValueError(
                f"{name}: all arrays must have as many dimensions, but the one at index 0 has "
                f"{first.ndim} and the one at index {number} has {x.ndim}"
            )
        for i, (n, other) in enumerate(zip(first.shape, x.shape, strict=True)):
            if n != other and i != axis:
                raise ValueError(
                    f"{name}: all dimensions but that of axis {axis} must match, but along axis "
                    f"{i} the array at index 0 has size {n} and that at index {number} has {other}"
                )


def _joined(name, call, parts, axis, dtype, stacked=False):
    """Return parts as one new Array. ValueError: they do not fit together. AxisError: no axis.

    A card finds out by itself whether they fit; Python looks only if they do not.
    """
    first, backend = parts[0], call.backend
    if not (stacked or first.ndim):
        raise ValueError(f"{name}: zero-dimensional arrays cannot be concatenated")
    axis = parse_axis(axis, first.ndim + stacked)
    dtype = None if dtype is None else parse_dtype(dtype)
    if not backend.on_card:
        _check_parts(name, parts, axis, stacked)
        lengths = [1 if stacked else x.shape[axis] for x in parts]
        shape = (*first.shape[:axis], sum(lengths), *first.shape[axis + 1 - stacked :])
        check_shape(shape, (promote_all(parts) if dtype is None else dtype).itemsize)

    def compute():
        try:
            return apply(backend, "concat", parts, axis, stacked, dtype)
        except ValueError as error:
            failed = error
        _check_parts(name, parts, axis, stacked)
        raise failed

    if not any(type(x) is Tracked for x in parts):
        return compute()
    lengths = [1 if stacked else x.shape[axis] for x in parts]
    static = {"lengths": lengths, "axis": axis, "stacked": stacked}
    return whole("concat", dict(enumerate(parts)) | static, compute)


def _stacked(name, arrays, axis, prepare, dtype):
    call = _joint(name, arrays)
    parts = [prepare(x) for x in call.arrays]
    axis = min(axis, parts[0].ndim - 1)
    return call.deliver_array(_joined(name, call, parts, axis, dtype))


def _between(array, axis, begin, end):
    """Return the view of an Array from begin to end along an axis."""
    return get(array, (*[slice(None)] * axis, slice(begin, end)))


# Splitting ----------------------------------------------------------------------------------------


def split(x, indices_or_sections, /, axis=0):
    """Return a list of views that make up x along an axis.

    indices_or_sections: a number of equal parts, or a sequence of the indices at which a new part
    begins. ValueError: no equal parts are possible, or more than MOST_PARTS that are empty.
    AxisError: no such axis.

    >>> a, b, c = vg.split(vg.arange(6), 3)
    >>> b.tolist()
    [2, 3]
    >>> [part.tolist() for part in vg.split(vg.arange(6), [1, 4])]
    [[0], [1, 2, 3], [4, 5]]
    """
    return _split("split", x, indices_or_sections, axis, True)


def array_split(x, indices_or_sections, /, axis=0):
    """Return a list of views that make up x; of unequal parts the first ones are one longer.

    >>> [part.tolist() for part in vg.array_split(vg.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return _split("array_split", x, indices_or_sections, axis, False)


def vsplit(x, indices_or_sections, /):
    """Return split(x, ..., axis=0). ValueError: less than two dimensions.

    >>> [part.shape for part in vg.vsplit(vg.ones((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    return _split("vsplit", x, indices_or_sections, 0, True, least=2)


def hsplit(x, indices_or_sections, /):
    """Return split(x, ..., axis=1), or along the only axis. ValueError: no dimensions.

    >>> [part.shape for part in vg.hsplit(vg.ones((2, 6)), 3)]
    [(2, 2), (2, 2), (2, 2)]
    """
    axis = 1 if getattr(x, "ndim", depth(x)) > 1 else 0
    return _split("hsplit", x, indices_or_sections, axis, True, least=1)


@short(short_names.dsplit, c_order=False)
def dsplit(x, indices_or_sections, /):
    """Return split(x, ..., axis=2). ValueError: less than three dimensions.

    >>> [part.shape for part in vg.dsplit(vg.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _split("dsplit", x, indices_or_sections, 2, True, least=3)


@short(short_names.unstack, c_order=False)
def unstack(x, /, *, axis=0):
    """Return a tuple of views, one for each index along an axis, which they lack.

    ValueError: an array without axes. AxisError: no such axis.

    >>> first, second = vg.unstack(vg.asarray([[1, 2], [3, 4]]))
    >>> second.tolist()
    [3, 4]
    """
    array, give = as_array("unstack", x)
    if not array.ndim:
        raise ValueError("unstack: an array without axes has nothing to take apart")
    axis = parse_axis(axis, array.ndim)
    before = (slice(None),) * axis
    return tuple([give(get(array, (*before, i))) for i in range(array.shape[axis])])


def _split(name, x, where, axis, equal, least=0):
    array, give = as_array(name, x)
    if array.ndim < least:
        raise ValueError(f"{name} takes arrays of {least} or more dimensions, not {array.ndim}")
    axis = parse_axis(axis, array.ndim)
    length = array.shape[axis]
    if isinstance(where, (list, tuple)) or getattr(where, "ndim", 0) == 1:
        starts = [parse_int(i, "an index") for i in where]
        bounds = [range(length)[slice(i)].stop for i in starts]  # as slices count and clip
        pairs = zip([0, *bounds], [*bounds, length], strict=True)
    else:
        sections = parse_int(where, "a number of sections")
        if sections < 1:
            raise ValueError(f"{name}: the number of sections must be larger than 0")
        if sections > max(length, MOST_PARTS):
            raise ValueError(f"{name}: {sections} parts of {length} elements are too many")
        if equal and length % sections:
            raise ValueError(f"{name}: {length} along axis {axis} are no {sections} equal parts")
        each, longer = divmod(length, sections)
        bounds = [i * each + min(i, longer) for i in range(sections + 1)]
        pairs = itertools.pairwise(bounds)
    return [give(_between(array, axis, begin, max(begin, end))) for begin, end in pairs]


# Repeating and rolling ----------------------------------------------------------------------------


@short(short_joining.tile)
def tile(x, repetitions, /):
    """Return x repeated so many times along each axis, as numpy.tile.

    repetitions: an integer or a tuple, of which missing ones, and missing axes of x, count as 1 on
    the left. ValueError: a negative number.

    >>> vg.tile(vg.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    result = short_cards.tiled(x, repetitions)
    if result is not None:
        return result
    array, give = as_array("tile", x)
    counts = repetitions if isinstance(repetitions, (tuple, list)) else (repetitions,)
    counts = tuple([n for count in counts for n in parse_shape((count,))])
    ndim = max(array.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - array.ndim) + array.shape
    return give(_repeated(array, shape, counts, before=True))


@short(short_joining.repeat)
def repeat(x, repeats, /, axis=None):
    """Return every element repeated so many times along an axis; axis=None: of all in a row.

    repeats: an integer, or one for each place along the axis, in an array or a list; for an Array
    the call waits. ValueError: a negative one, or not as many. TypeError: no integers. AxisError:
    no such axis.

    >>> vg.repeat(vg.asarray([1, 2]), 3).tolist()
    [1, 1, 1, 2, 2, 2]
    >>> vg.repeat(vg.asarray([[1, 2]]), 2, axis=0).tolist()
    [[1, 2], [1, 2]]
    """
    result = _repeated_short(x, repeats, axis)
    if result is not None:
        return result
    array, give = as_array("repeat", x)
    if axis is None or not array.ndim:
        array, axis = reshape(array, (array.size,)), 0 if axis is None else axis
    axis = parse_axis(axis, array.ndim)
    if isinstance(repeats, (Array, np.ndarray, list, tuple)):
        repeats = _counts(repeats, array, axis)
        if not isinstance(repeats, int):
            return give(get(array, (*[slice(None)] * axis, _places(repeats))))
    (repeats,) = parse_shape((parse_int(repeats, "repeats"),))
    counts = tuple([repeats if i == axis else 1 for i in range(array.ndim)])
    return give(_repeated(array, array.shape, counts, before=False))


def _repeated_short(x, repeats, axis):
    """Return what one call of the C library makes, or None; see short_cards.py."""
    if type(repeats) is not int or type(x) is not Array:
        return None
    if axis is None:
        return short_cards.repeated(reshape(x, -1), (repeats,), False)
    ndim = len(x.shape)
    if type(axis) is not int or not -ndim <= axis < ndim:
        return None
    counts = [1] * ndim
    counts[axis] = repeats
    return short_cards.repeated(x, counts, False)


def _counts(repeats, array, axis):
    """Return how often each place along an axis is repeated: one int, an ndarray or an Array."""
    if not isinstance(repeats, Array):
        repeats = np.asarray(repeats)
        repeats = repeats.astype(np.int64) if not repeats.size else repeats
    if repeats.dtype.kind not in "iu":
        raise TypeError(f"repeat: repeats are integers, not {repeats.dtype}")
    if isinstance(repeats, Array) and repeats.backend is not array.backend:
        raise ValueError(
            f"repeat: an array on {array.device} and repeats on {repeats.device}; "
            "bring them to one device with .to(...)"
        )
    length = array.shape[axis]
    if repeats.ndim > 1 or (repeats.size != length and repeats.size != 1):
        raise ValueError(f"repeat: repeats of shape {repeats.shape} for {length} places")
    return int(repeats.item()) if repeats.size == 1 else repeats


def _places(repeats):
    """Return the index of every place as often as it is repeated; of an Array as an Array."""
    if not isinstance(repeats, Array):
        if repeats.size and repeats.min() < 0:
            raise ValueError("repeats may not be negative")
        check_shape((int(repeats.sum(dtype=object)),), 8)
        return np.repeat(np.arange(repeats.size), repeats)
    if not repeats.size:
        return repeats
    (found,) = advanced.nonzero(repeats)  # places without repeats would share where they begin
    if not found.size:
        return found
    counts = astype(get(repeats, found), int64)
    ends = cumulative_sum(counts)
    length, least = to_host(stack([get(ends, -1), smallest(counts)])).tolist()
    if least < 0:
        raise ValueError("repeats may not be negative")
    check_shape((length,), 8)
    steps = apply(found.backend, "empty", (length,), int64)
    apply(found.backend, "fill", steps, 0)
    assign(steps, get(ends, slice(-1)), 1)
    return get(found, cumulative_sum(steps))


def _repeated(array, shape, counts, before):
    """Return a new Array of each axis repeated, as a whole (`before` it) or element by element."""
    result = tuple([n * count for n, count in zip(shape, counts, strict=True)])
    parse_shape(result, array.dtype.itemsize)
    if not array.size:  # whatever the counts are, which no axes on the way may have
        return reshape(copied(array), result)
    short, long, merged = [], [], []  # axes that are not repeated stay one
    for n, count in zip(shape, counts, strict=True):
        if count == 1:
            pair, wide = (n,), (n,)
        else:
            pair, wide = ((1, n), (count, n)) if before else ((n, 1), (n, count))
        short += pair
        long += wide
        merged.append(n * count)
    view = broadcast_to(reshape(array, tuple(short)), tuple(long))
    return reshape(copied(view), tuple(merged))


@short(short_joining.roll)
def roll(x, /, shift, axis=None):
    """Return x with its elements moved along axes; those beyond the end come in at the beginning.

    shift: an integer, or one for each axis of a tuple. axis=None: the elements in a row are moved,
    and the shape stays. ValueError: more shifts than axes. AxisError: no such axis.

    >>> vg.roll(vg.arange(5), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    result = short_cards.rolled(x, shift, axis)
    if result is not None:
        return result
    array, give = as_array("roll", x)
    if axis is None:
        flat = reshape(array, (array.size,))
        return give(reshape(rolled(flat, {0: _total(shift)}), array.shape))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [parse_axis(one, array.ndim) for one in axes]
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) == 1:
        shifts = tuple(shifts) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    by_axis = {}
    for one, number in zip(axes, shifts, strict=True):
        by_axis[one] = by_axis.get(one, 0) + parse_int(number, "a shift")
    return give(rolled(array, by_axis))


def _total(shift):
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    return sum(parse_int(number, "a shift") for number in shifts)


def rolled(array, by_axis):
    """Return a new Array, moved by so many elements along each axis: part by part."""
    shape = array.shape
    moves = {axis: n % shape[axis] for axis, n in by_axis.items() if shape[axis]}
    moves = {axis: at for axis, at in moves.items() if at}
    ways = [[(slice(None), slice(None))]] * array.ndim
    for axis, at in moves.items():
        ways[axis] = [(slice(at, None), slice(-at)), (slice(at), slice(-at, None))]

    def compute():
        if len(moves) == 1:
            ((axis, at),) = moves.items()
            middle, end = shape[axis] - at, shape[axis]
            parts = [_between(array, axis, middle, end), _between(array, axis, 0, middle)]
            return apply(array.backend, "concat", parts, axis, False, None)
        result = apply(array.backend, "empty", array.shape, array.dtype)
        for parts in itertools.product(*ways):
            to, from_ = tuple(part[0] for part in parts), tuple(part[1] for part in parts)
            apply(array.backend, "copy", get(array, from_), get(result, to))
        return result

    return whole("roll", {"x": array, "shifts": by_axis}, compute)
