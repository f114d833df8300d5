"""Advanced indexing: arrays of integers and bools among the other items of a key.

A key becomes slices, which make a view without dropping an axis; axes of this view with an array of
indices each, which are broadcast together into one array; and the shape of the result. What lies on
the host (lists, NumPy's arrays) is checked there. Indices on a card are checked there: one that is
out of range is an IndexError at the next wait for the card. Bools on a card become indices, for
which a call waits.
"""

import math
import operator

import numpy as np

from ..array import Array
from ..dispatch import apply
from ..dtypes import int64
from .arguments import check_shape, from_host, host_array, is_host, is_scalar, strong
from .values import to_host


class Key:
    """What a key of advanced indexing asks of an array.

    mask: the array of bools that the whole key is, one for each element; or None.
    base: the array's shape, with axes of length 1 for bools without axes. view: starts, steps and
    lengths of slices of it. axes, indices, place, trusted: of that view, for gather and scatter.
    shape: of the result.
    """

    __slots__ = ("axes", "base", "indices", "items", "mask", "place", "shape", "trusted", "view")


def parse(array, key):
    """Return the Key; see indexing.get for the errors."""
    result = Key()
    items = [_item(array, one) for one in (key if isinstance(key, tuple) else (key,))]
    first = items[0] if len(items) == 1 else None
    result.items, result.mask = items, None
    if _is_mask(first) and first.shape == array.shape:
        result.mask = first
    else:
        _resolve(array, result)
    return result


def get(array, key):
    """Return a copy of the elements that a Key names."""
    if key.mask is not None:
        _resolve(array, key)
    view = _view(array, key)
    result = apply(view.backend, "gather", view, key.indices, key.axes, key.place, key.trusted)
    if result.shape == key.shape:
        return result
    return apply(view.backend, "reshape", result, key.shape)


def set(array, key, value):
    """Write a Python scalar or an Array of the same device to the elements that a Key names."""
    backend = array.backend
    if is_scalar(value):
        value = strong(value, backend, array.dtype)
    elif value.dtype != array.dtype:
        value = apply(backend, "cast", value, array.dtype, None)
    if key.mask is not None:
        if value.size == 1 and value.ndim <= 1:  # without asking how many are true
            mask = key.mask
            mask = mask if isinstance(mask, Array) else from_host(mask, backend)
            apply(backend, "where", mask, apply(backend, "reshape", value, ()), array, array)
            return
        _resolve(array, key)
    view, value = _view(array, key), _as_gathered(value, key)
    apply(backend, "scatter", view, key.indices, key.axes, key.place, key.trusted, value)


def accumulate(array, key, value, operation):
    """Combine the elements that a Key names with an Array of the same device and dtype."""
    if key.mask is not None:
        _resolve(array, key)
    view, value = _view(array, key), _as_gathered(value, key)
    where = key.indices, key.axes, key.place, key.trusted
    apply(array.backend, "accumulate", operation, view, *where, value)


def _view(array, key):
    """Return the view that the indices of a Key are for."""
    if key.base != array.shape:
        array = apply(array.backend, "reshape", array, key.base)
    starts, steps, lengths = key.view
    if lengths == key.base and all(step == 1 for step in steps):
        return array
    return apply(array.backend, "slice", array, starts, steps, lengths)


def _as_gathered(value, key):
    """Return values for the shape of a Key's result as such for what gather gives.

    That has the axes of length 1 that integers leave, and not those that None adds.
    """
    lengths = key.view[2]
    others = [n for i, n in enumerate(lengths) if i not in key.axes]
    shape = (*others[: key.place], *key.indices.shape[1:], *others[key.place :])
    if shape == key.shape:
        return value
    backend, extra = value.backend, value.ndim - len(key.shape)
    if extra > 0 and math.prod(value.shape[:extra]) == 1:
        value = apply(backend, "reshape", value, value.shape[extra:])
    pairs = zip(reversed(value.shape), reversed(key.shape), strict=False)
    if value.ndim > len(key.shape) or not all(n in (1, m) for n, m in pairs):
        raise ValueError(
            f"shape mismatch: an array of shape {value.shape} cannot be broadcast to the shape "
            f"{key.shape} of what the indices name"
        )
    return apply(backend, "reshape", apply(backend, "broadcast_to", value, key.shape), shape)


# Parsing ------------------------------------------------------------------------------------------


def _item(array, item):
    """Return an item of a key as None, a slice, Ellipsis, a bool, an int, or an array."""
    if item is None or item is Ellipsis or isinstance(item, (slice, bool)):
        return item
    if isinstance(item, Array) and item.backend is not array.backend:
        raise ValueError(f"an index on {item.device} of an array on {array.device}; use .to(...)")
    if isinstance(item, (list, tuple, range)):
        if any(isinstance(one, Array) for one in item):
            raise IndexError("a list of Arrays is no index; use stack(...) or concat(...)")
        item = np.asarray(item) if len(item) else np.zeros(0, np.int64)
    if isinstance(item, Array) or is_host(item):
        if item.dtype.kind not in "biu":
            raise IndexError(f"indices are integers or bools, not an array of {item.dtype}")
        item = item if isinstance(item, Array) else host_array(item)
        if item.ndim == 0 and item.dtype.kind == "b":
            return bool(to_host(item) if isinstance(item, Array) else item)
        return int(item) if item.ndim == 0 and is_host(item) else item
    try:
        return operator.index(item)
    except TypeError:
        kind = type(item).__name__
        raise IndexError(
            f"an index is an integer, a slice, ..., None or an array of integers or bools, "
            f"not a {kind}"
        ) from None


def _is_mask(item):
    return (isinstance(item, Array) or is_host(item)) and item.dtype.kind == "b"


def _takes(item):
    """How many axes an item is about."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    return item.ndim if _is_mask(item) else 1


def _whole(items, ndim):
    """Return the items with Ellipsis, which is added if it is missing, as (how many axes,)."""
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    taken = sum(map(_takes, items))
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if taken > ndim:
        raise IndexError(f"too many indices: {taken} for an array of {ndim} dimensions")
    rest = (ndim - taken,)
    if not places:
        return [*items, rest]
    return [rest if item is Ellipsis else item for item in items]


class _Parser:
    """Walks over the items of a key and the axes of an array."""

    def __init__(self, shape):
        self.shape = shape
        self.axis = 0  # of the array; that of the base is len(self.base)
        self.base, self.starts, self.steps, self.lengths = [], [], [], []
        self.result = []  # lengths of the axes that do not come from indices
        self.place = None  # of the first array or integer among them
        self.apart = self.between = False  # whether another item stands between two of those
        self.found = []  # (axis of the base, indices, whether they are known to be in range)

    def add_axis(self, start=0, step=1, length=None):
        size = self.shape[self.axis]
        self.axis += 1
        self.base.append(size)
        self.starts.append(start)
        self.steps.append(step)
        self.lengths.append(size if length is None else length)

    def add_slice(self, item):
        size = self.shape[self.axis]
        start, stop, step = item.indices(size)
        length = len(range(start, stop, step))
        self.add_axis(start if length else 0, step if length > 1 else 1, length)
        self.result.append(length)

    def begin_block(self):
        if self.place is None:
            self.place = len(self.result)
        elif self.place != len(self.result) or self.between:
            self.apart = True
        self.between = False

    def add(self, item):
        if isinstance(item, slice):
            self.add_slice(item)
        elif item is None:
            self.result.append(1)
        elif isinstance(item, tuple):  # Ellipsis
            self.between = True
            for _ in range(item[0]):
                self.add_slice(slice(None))
        else:
            self.begin_block()
            self.add_index(item)

    def add_index(self, item):
        if isinstance(item, bool):
            self.found.append((len(self.base), np.zeros(int(item), np.int64), True))
            self.base.append(1)
            self.starts.append(0)
            self.steps.append(1)
            self.lengths.append(1)
        elif isinstance(item, int):
            size = self.shape[self.axis]
            if not -size <= item < size:
                raise IndexError(
                    f"index {item} is out of bounds for axis {self.axis} with size {size}"
                )
            self.add_axis(item % size, 1, 1)
        elif _is_mask(item):
            self.add_mask(item)
        else:
            if is_host(item):
                item = counted_from_0(item, self.shape[self.axis], self.axis)
            self.found.append((len(self.base), item, is_host(item)))
            self.add_axis()

    def add_mask(self, mask):
        for i, n in enumerate(mask.shape):
            size = self.shape[self.axis + i]
            if n not in (0, size):  # NumPy takes an axis without elements for any
                raise IndexError(
                    f"boolean index did not match indexed array along axis {self.axis + i}; size "
                    f"of axis is {size} but size of corresponding boolean axis is {n}"
                )
        for indices in nonzero(mask):
            self.found.append((len(self.base), indices, True))
            self.add_axis()


def nonzero(mask):
    """Return arrays of the indices, along each axis, at which an array of bools is true."""
    if not isinstance(mask, Array):
        return np.nonzero(mask)
    found = apply(mask.backend, "nonzero", mask)
    count = found.shape[1:]
    planes = [
        apply(mask.backend, "slice", found, (i, 0), (1, 1), (1, *count)) for i in range(mask.ndim)
    ]
    return [apply(mask.backend, "reshape", plane, count) for plane in planes]


def counted_from_0(indices, size, axis):
    """Return an ndarray of indices as int64 from 0 on. IndexError: out of range."""
    bad = (indices < -size) | (indices >= size)
    if np.any(bad):
        index = int(indices[bad].flat[0])
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    indices = indices.astype(np.int64, copy=False)
    return np.where(indices < 0, indices + size, indices)


def _resolve(array, key):
    """Fill in all of a Key but its mask."""
    parser = _Parser(array.shape)
    for item in _whole(key.items, array.ndim):
        parser.add(item)
    key.base = tuple(parser.base)
    key.view = tuple(parser.starts), tuple(parser.steps), tuple(parser.lengths)
    key.axes = tuple([axis for axis, _, _ in parser.found])
    key.indices = _together(array.backend, [indices for _, indices, _ in parser.found])
    key.trusted = all(trusted for _, _, trusted in parser.found)
    place = 0 if parser.apart else parser.place
    before, after = parser.result[:place], parser.result[place:]
    key.shape = (*before, *key.indices.shape[1:], *after)
    check_shape(key.shape, array.dtype.itemsize)
    key.place = 0
    if not parser.apart:
        key.place = sum(i not in key.axes for i in range(key.axes[0]))


def _together(backend, arrays):
    """Return arrays of indices, broadcast together, as planes of one Array on the device."""
    try:
        shape = np.broadcast_shapes(*[one.shape for one in arrays])
    except ValueError:
        shapes = " ".join([str(one.shape) for one in arrays])
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    check_shape((len(arrays), *shape), 8)
    if all(map(is_host, arrays)):
        planes = np.empty((len(arrays), *shape), np.int64)
        for plane, one in zip(planes, arrays, strict=True):
            plane[...] = one
        return from_host(planes, backend)
    if len(arrays) == 1:
        return apply(backend, "reshape", arrays[0], (1, *shape))
    result = apply(backend, "empty", (len(arrays), *shape), int64)
    for i, one in enumerate(arrays):
        ones = (1,) * len(shape)
        plane = apply(backend, "slice", result, (i, *(0,) * len(shape)), (1, *ones), (1, *shape))
        apply(backend, "copy", from_host(one, backend) if is_host(one) else one, plane)
    return result
