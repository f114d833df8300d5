"""Functions that take, put, choose, delete and insert elements at given indices or by a mask.

Array in, Array out; NumPy in, NumPy out. Indices and masks may be Arrays of the same device,
NumPy's arrays, or lists. Indices on a card are looked at there: one out of range is an IndexError
at the next wait for the card. For a mask on a card a call waits; see advanced.py.
"""

import numpy as np

from ..array import Array
from ..dispatch import apply
from ..dtype_queries import can_cast
from ..dtypes import int64
from ..native.abi import ALONG
from ..short_views import put_in_a_row, taken
from . import advanced, short_joining, short_names, short_numpy
from .arguments import (
    Operands,
    from_host,
    host_array,
    is_host,
    is_scalar,
    parse_axis,
    promote_all,
    strong,
)
from .choosing import where
from .combined import clip
from .indexing import get
from .indexing import set as assign
from .joining import concat, stack, tile
from .layout import as_array, astype, broadcast_arrays, broadcast_to, moveaxis, reshape
from .lists import begins_with_array, stacked
from .mathematics import remainder
from .short_calls import short
from .values import to_host

__all__ = [
    "choose",
    "compress",
    "delete",
    "extract",
    "insert",
    "place",
    "put",
    "put_along_axis",
    "select",
    "take",
    "take_along_axis",
]

# Taking -------------------------------------------------------------------------------------------


@short(short_numpy.take)
def take(x, indices, /, axis=None, out=None, mode="raise"):
    """Return the elements at indices along an axis; axis=None: of all elements in a row.

    indices: integers of any shape, which stands in the result where the axis was; negative ones
    count from the end. mode: "wrap", go on from the other end, or "clip", take the first or the
    last, where an index is out of range. IndexError: out of range, or no integers. AxisError: no
    such axis. ValueError: another mode, out of another shape.

    >>> x = vg.asarray([[1, 2, 3], [4, 5, 6]])
    >>> vg.take(x, vg.asarray([2, 0]), axis=1).tolist()
    [[3, 1], [6, 4]]
    >>> vg.take(x, vg.asarray([0, 5])).tolist()
    [1, 6]
    """
    if isinstance(x, Array) and out is None and mode == "raise":
        result = taken(x, indices, axis)
        if result is not None:
            return result
    array, give = as_array("take", _beside(indices, x))
    indices = _indices("take", indices, array)
    array, axis = _axis(array, axis)
    shape = array.shape[:axis] + indices.shape + array.shape[axis + 1 :]
    _check_out("take", out, x, array, shape, array.dtype)
    indices = within("take", indices, array.shape[axis], mode)
    result = get(array, (*[slice(None)] * axis, indices.reshape(indices.shape or (1,))))
    if not indices.ndim:
        result = reshape(result, array.shape[:axis] + array.shape[axis + 1 :])
    return _delivered("take", result, give, out)


@short(short_numpy.take_along_axis)
def take_along_axis(x, indices, /, axis=-1):
    """Return, for each index, the element at it along an axis, and elsewhere at the index's place.

    indices: integers, with as many axes as x and, but for `axis`, of lengths that broadcast with
    those of x; axis=None: 1-D, into all elements in a row. IndexError: out of range, or shapes that
    do not fit. ValueError: another number of axes. AxisError: no such axis.

    >>> x = vg.asarray([[3, 1, 2], [9, 7, 8]])
    >>> vg.take_along_axis(x, vg.argsort(x, axis=1), axis=1).tolist()
    [[1, 2, 3], [7, 8, 9]]
    """
    array, give = as_array("take_along_axis", _beside(indices, x))
    indices = _indices("take_along_axis", indices, array)
    array, axis = _axis(array, axis)
    indices, trusted = _along("take_along_axis", array, indices, axis)
    array, indices = _side_by_side("take_along_axis", array, indices, axis)
    return give(apply(array.backend, "gather", array, indices, (axis,), ALONG, trusted))


@short(short_numpy.compress)
def compress(condition, x, /, axis=None):
    """Return the parts of x along an axis where a condition is true; axis=None: of all in a row.

    condition: 1-D; one shorter than the axis stands for one that goes on with False. IndexError: it
    is true beyond the end. ValueError: it is not 1-D. AxisError: no such axis.

    >>> x = vg.asarray([[1, 2], [3, 4], [5, 6]])
    >>> vg.compress([True, False, True], x, axis=0).tolist()
    [[1, 2], [5, 6]]
    """
    array, give = as_array("compress", _beside(condition, x))
    condition = _mask("compress", condition, array)
    if condition.ndim != 1:
        raise ValueError(f"compress: the condition has one dimension, not {condition.ndim}")
    array, axis = _axis(array, axis)
    (indices,) = advanced.nonzero(condition)
    return give(get(array, (*[slice(None)] * axis, indices)))


def _beside(other, x):
    """Return x, as an Array on the device of a condition or of indices if these alone are one."""
    if isinstance(other, Array) and is_host(x):
        return from_host(host_array(x), other.backend)
    return x


@short(short_numpy.extract)
def extract(condition, x, /):
    """Return the elements of x, in a row, where a condition is true; see compress.

    >>> x = vg.asarray([[1, 2], [3, 4]])
    >>> vg.extract(x % 2 == 0, x).tolist()
    [2, 4]
    """
    array, give = as_array("extract", _beside(condition, x))
    condition = _mask("extract", condition, array)
    return give(compress(reshape(condition, (condition.size,)), array))


# Putting ------------------------------------------------------------------------------------------


@short(short_numpy.put)
def put(x, ind, v, /, mode="raise"):
    """Write values to x at indices into its elements in a row; the values are repeated as needed.

    ind: integers; of one that is there twice the last value counts. v: cast to the dtype of x.
    mode: as of take. x: an Array or NumPy's array. IndexError: out of range. ValueError: x is
    read-only, another mode. TypeError: x is no array.

    >>> x = vg.asarray([[1, 2], [3, 4]])
    >>> vg.put(x, [0, 3], [10, 40])
    >>> x.tolist()
    [[10, 2], [3, 40]]
    """
    if isinstance(x, np.ndarray):
        np.put(x, _on_host(ind), _on_host(v), mode)
        return
    _check_target("put", x)
    if mode == "raise" and put_in_a_row(x, ind, v):
        return
    indices = within("put", _indices("put", ind, x), x.size, mode)
    _write_in_a_row(x, indices.reshape(-1), _values("put", v, x))


@short(short_names.place)
def place(x, mask, vals, /):
    """Write values to x where a mask is true, one behind the other, repeated as needed.

    x: an Array or NumPy's array. ValueError: a mask of another number of elements, no values, x is
    read-only. TypeError: x is no array.

    >>> x = vg.asarray([1, 2, 3, 4])
    >>> vg.place(x, x > 2, [10, 20])
    >>> x.tolist()
    [1, 2, 10, 20]
    """
    if isinstance(x, np.ndarray):
        np.place(x, _on_host(mask), _on_host(vals))
        return
    _check_target("place", x)
    mask = _mask("place", mask, x)
    if mask.size != x.size:
        raise ValueError(f"place: a mask of {mask.size} elements for {x.size}")
    values = _values("place", vals, x)
    (indices,) = advanced.nonzero(reshape(mask, (mask.size,)))
    if indices.size and not values.size:
        raise ValueError("place: cannot insert from an empty array")
    _write_in_a_row(x, indices, values)


@short(short_numpy.put_along_axis)
def put_along_axis(x, indices, values, /, axis):
    """Write values to x where take_along_axis(x, indices, axis) reads.

    values: broadcast to the shape of what is read, and cast. x: an Array or NumPy's array.
    IndexError: an index out of range, or indices that do not fit into x. ValueError: values that do
    not fit, x is read-only. TypeError: x is no array. AxisError: no such axis.

    >>> x = vg.asarray([[1, 5], [8, 2]])
    >>> vg.put_along_axis(x, vg.argmax(x, axis=1, keepdims=True), 0, axis=1)
    >>> x.tolist()
    [[1, 0], [0, 2]]
    """
    if isinstance(x, np.ndarray):
        np.put_along_axis(x, np.asarray(_on_host(indices)), _on_host(values), axis)
        return
    _check_target("put_along_axis", x)
    indices = _indices("put_along_axis", indices, x)
    values = _values("put_along_axis", values, x)
    array, axis = (_in_a_row(x), 0) if axis is None else _axis(x, axis)
    indices, trusted = _along("put_along_axis", array, indices, axis)
    other, indices = _side_by_side("put_along_axis", array, indices, axis)
    if other.shape != array.shape:
        raise IndexError(
            f"put_along_axis: indices of shape {indices.shape} for an array of {array.shape}"
        )
    apply(x.backend, "scatter", array, indices, (axis,), ALONG, trusted, values)
    _write_back(array, x)


# Choosing -----------------------------------------------------------------------------------------


@short(short_names.choose)
def choose(x, choices, /, out=None, mode="raise"):
    """Return, for each index in x, the element of that one of the choices at the index's place.

    choices: a sequence of arrays, broadcast with x and promoted. Negative indices count from the
    end, as everywhere. mode: as of take. IndexError: out of range, no integers. ValueError: no
    choice, another mode, out of another shape.

    >>> vg.choose(vg.asarray([0, 1, 0]), [vg.asarray([1, 2, 3]), vg.asarray([10, 20, 30])]).tolist()
    [1, 20, 3]
    """
    choices = tuple(choices)
    if not choices:
        raise ValueError("choose: need at least one choice")
    given = next((c for c in choices if isinstance(c, Array)), x)
    array, give = as_array("choose", given)
    choices = [_given("choose", one, array) for one in choices]
    indices = _given("choose", x, array)
    dtype = promote_all(choices)
    indices = within("choose", indices, len(choices), mode)
    indices, *choices = broadcast_arrays(indices, *choices)
    _check_out("choose", out, given, array, indices.shape, dtype)
    together = stack([astype(one, dtype, copy=False) for one in choices])
    result = take_along_axis(together, reshape(indices, (1, *indices.shape)), 0)
    return _delivered("choose", reshape(result, indices.shape), give, out)


def select(condlist, choicelist, /, default=0):
    """Return, at each place, the element of the first choice whose condition is true there.

    condlist, choicelist: sequences of arrays of bools and of arrays, as many; default: where no
    condition is true. ValueError: not as many, or none. TypeError: conditions that are not bool.

    >>> x = vg.asarray([1, 5, 9])
    >>> vg.select([x < 3, x > 7], [x, x * 10], default=-1).tolist()
    [1, -1, 90]
    """
    condlist, choicelist = tuple(condlist), tuple(choicelist)
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, choice, result)
    return result


# Deleting and inserting ---------------------------------------------------------------------------


@short(short_joining.delete)
def delete(x, obj, /, axis=None):
    """Return x without some of its parts along an axis; axis=None: without some of all in a row.

    obj: an integer, integers, a slice, or bools, one for each part; for an Array the call waits.
    IndexError: out of range, or nothing of this. AxisError: no such axis.

    >>> vg.delete(vg.asarray([1, 2, 3, 4]), [0, 2]).tolist()
    [2, 4]
    """
    array, give = as_array("delete", x)
    obj = _parts("delete", obj)
    array, axis = _axis(array, axis)
    kept = np.delete(np.arange(array.shape[axis]), obj)
    return give(get(array, (*[slice(None)] * axis, kept)))


@short(short_joining.insert)
def insert(x, obj, values, /, axis=None):
    """Return x with values inserted before some of its parts along an axis; axis=None: in a row.

    obj: an integer, integers, a slice, or bools, one for each part; for an Array the call waits.
    values: as numpy.insert broadcasts them, cast to the dtype of x. IndexError: out of range.
    ValueError: values that do not fit. AxisError: no such axis.

    >>> vg.insert(vg.asarray([1, 2, 3]), 1, 9).tolist()
    [1, 9, 2, 3]
    """
    array, give = as_array("insert", _beside(values, x))
    values, obj = _values("insert", values, array), _parts("insert", obj)
    array, axis = _axis(array, axis)
    length = array.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(length)[obj]
    elif obj.dtype.kind == "b":
        obj = np.flatnonzero(obj)
    if values.ndim < array.ndim:
        values = reshape(values, (1,) * (array.ndim - values.ndim) + values.shape)
    if obj.ndim == 0:
        values = moveaxis(values, 0, axis)
    count = values.shape[axis] if obj.size == 1 else obj.size
    obj = int(obj.item()) if obj.size == 1 else obj
    order = np.insert(np.arange(length), obj, length + np.arange(count))
    shape = (*array.shape[:axis], count, *array.shape[axis + 1 :])
    joined = concat([array, broadcast_to(values, shape)], axis)
    return give(get(joined, (*[slice(None)] * axis, order)))


# Arguments ----------------------------------------------------------------------------------------


def _axis(array, axis):
    """Return an Array and one of its axes counted from 0; of None, the elements in a row and 0."""
    if axis is None:
        return reshape(array, (array.size,)), 0
    return array, parse_axis(axis, array.ndim)


def _given(name, value, array, upload=True):
    """Return what stands beside an Array, or a list, as an Array of the same device."""
    if isinstance(value, Array):
        if value.backend is not array.backend:
            raise ValueError(
                f"{name}: operands on {array.device} and {value.device}; "
                "bring them to one device with .to(...)"
            )
        return value
    if isinstance(value, (list, tuple, range, bool, int, float)):
        if begins_with_array(value):
            return _given(name, stacked(value), array)
        value = np.asarray(value)
    if not is_host(value):
        kind = type(value).__name__
        raise TypeError(f"{name} takes arrays, not {kind}; make one with asarray(...)")
    value = host_array(value)
    return from_host(value, array.backend) if upload else value


def _indices(name, value, array):
    """Return indices as an Array, or, where they are on the host, as an ndarray.

    IndexError: no integers.
    """
    if isinstance(value, (list, tuple)) and len(value) == 0:
        value = np.zeros(0, np.int64)
    value = _given(name, value, array, upload=False)
    if value.dtype.kind not in "iu":
        raise IndexError(f"{name}: indices are integers, not an array of {value.dtype}")
    return value


def within(name, indices, length, mode):
    """Return indices, an Array or an ndarray, as a mode has them that says what is out of range.

    ValueError: another mode. IndexError: there is no element.
    """
    if mode == "raise":
        return indices
    if mode not in ("wrap", "clip"):
        raise ValueError(f"{name}: mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    if not length and indices.size:
        raise IndexError(f"{name}: there is no element to take")
    if not isinstance(indices, Array):
        return indices % length if mode == "wrap" else np.clip(indices, 0, length - 1)
    if mode == "wrap":
        indices = indices if indices.dtype.kind == "u" else astype(indices, int64, copy=False)
        return astype(remainder(indices, length), int64, copy=False)
    return clip(indices, 0, length - 1)


def _mask(name, value, array):
    """Return a condition as an Array of bools."""
    value = _given(name, value, array)
    return value if value.dtype.kind == "b" else value != 0


def _values(name, value, array):
    """Return values that will be written to an Array in its dtype."""
    if is_scalar(value):
        return strong(value, array.backend, array.dtype)
    return astype(_given(name, value, array), array.dtype, copy=False)


def _delivered(name, result, give, out):
    """Return an Array to the caller, in `out` if there is one. ValueError: another shape."""
    if out is None:
        return give(result)
    values = give(result)
    if not (isinstance(values, np.ndarray) and isinstance(out, np.ndarray)):
        return Operands(name, (result,), out).deliver_array(result)
    _check_shape(name, out, values.shape)
    np.copyto(out, values, casting="same_kind")
    return out


def _check_out(name, out, x, array, shape, dtype):
    """Refuse an `out` that a result cannot go to, before a card sees the indices.

    x: what the caller gave, and array: what became of it.
    """
    if out is None:
        return
    if not (isinstance(out, np.ndarray) and is_host(x)):
        Operands(name, (array,), out)
    _check_shape(name, out, shape)
    if not can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"{name}: {dtype} is no same_kind cast to {out.dtype}, that of out")


def _check_shape(name, out, shape):
    if out.shape != shape:
        raise ValueError(f"{name}: out has shape {out.shape}, the result has {shape}")


def _parts(name, obj):
    """Return integers or bools as an ndarray, and a slice as it is."""
    if isinstance(obj, slice):
        return obj
    if isinstance(obj, Array):
        obj = to_host(obj)
    obj = np.asarray(obj)
    obj = obj.astype(np.int64) if obj.size == 0 and obj.dtype.kind == "f" else obj
    if obj.dtype.kind not in "biu" or (obj.dtype.kind == "b" and obj.ndim == 0):
        raise IndexError(f"{name}: parts are named by integers, a slice or bools, not {obj.dtype}")
    return obj


def _on_host(value):
    """Return an Array's values as an ndarray, for what is written to one; others as they are."""
    return to_host(value) if isinstance(value, Array) else value


def _check_target(name, x):
    if not isinstance(x, Array):
        kind = type(x).__name__
        hint = f"; use numpy.{name} for NumPy's" if isinstance(x, np.ndarray) else ""
        raise TypeError(f"{name} writes to an Array, not to {kind}{hint}")


# Moving -------------------------------------------------------------------------------------------


def _side_by_side(name, array, indices, axis):
    """Return an array and indices broadcast to the same lengths but along the axis."""
    shapes = [[*array.shape], [*indices.shape]]
    for shape in shapes:
        shape[axis] = 1
    try:
        shape = [*np.broadcast_shapes(*map(tuple, shapes))]
    except ValueError:
        raise IndexError(
            f"{name}: shape mismatch: indices of shape {indices.shape} for an array of "
            f"{array.shape} along axis {axis}"
        ) from None
    both = []
    for one in (array, indices):
        shape[axis] = one.shape[axis]
        both.append(one if one.shape == tuple(shape) else broadcast_to(one, tuple(shape)))
    return both


def _along(name, array, indices, axis):
    """Return indices as an Array, and whether they are known to be in range."""
    if indices.ndim != array.ndim:
        raise ValueError(f"{name}: indices of {indices.ndim} axes for an array of {array.ndim}")
    if isinstance(indices, Array):
        return indices, False
    indices = advanced.counted_from_0(indices, array.shape[axis], axis)
    return from_host(indices, array.backend), True


def _in_a_row(x):
    """Return the elements of an Array in a row: a view if there is one, else a copy."""
    return reshape(x, (x.size,))


def _write_back(row, x):
    """Write what _in_a_row gave back to x, if it was a copy."""
    if row is not x and row.ndim != x.ndim and not _is_contiguous(x):
        apply(x.backend, "copy", reshape(row, x.shape), x)


def _is_contiguous(x):
    step = x.itemsize
    for n, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return True


def _write_in_a_row(x, indices, values):
    """Write values, repeated as needed, at indices into all elements of x in a row."""
    count = indices.size
    if not (count and values.size):
        return
    values = reshape(values, (values.size,))
    if 1 < values.size < count:
        values = tile(values, -(-count // values.size))
    if values.size > count:
        values = get(values, slice(count))
    row = _in_a_row(x)
    assign(row, indices, values)
    _write_back(row, x)
