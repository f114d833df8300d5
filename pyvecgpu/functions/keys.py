"""Keys of indexing: basic ones are parsed here, once for all devices; others are told apart.

A basic key becomes a start, a step and a length for every axis, and then the shape without the axes
that an integer removed and with those that None added.
"""

import operator

from ..array import Array
from ..native.abi import MAX_NDIM
from .arguments import is_host


class NotBasicError(Exception):
    """A key has an array, a list or a bool among its items: advanced.py is for it."""


def parse_key(key, shape):
    """Return (starts, steps, lengths), one per axis of `shape`, and the shape of the result."""
    items = expand_ellipsis(key if isinstance(key, tuple) else (key,), len(shape))
    starts, steps, lengths, result = [], [], [], []
    for item in items:
        if item is None:
            result.append(1)
            continue
        axis, size = len(starts), shape[len(starts)]
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            length = len(range(start, stop, step))
            result.append(length)
            # Of an empty slice the start may lie outside; of a short one the step may.
            start, step = (start if length else 0), (step if length > 1 else 1)
        else:
            start, step, length = _parse_index(item, axis, size, items), 1, 1
        starts.append(start)
        steps.append(step)
        lengths.append(length)
    if len(result) > MAX_NDIM:
        raise ValueError(f"an array has at most {MAX_NDIM} dimensions, not {len(result)}")
    return tuple(starts), tuple(steps), tuple(lengths), tuple(result)


def expand_ellipsis(items, ndim):
    """Return the items of a basic key, ... replaced by as many whole slices as are missing."""
    given, ellipsis = 0, None
    for i, item in enumerate(items):
        if item is Ellipsis:
            if ellipsis is not None:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = i
        elif item is not None:
            given += 1
    if given > ndim:
        if any(map(is_advanced, items)):
            raise NotBasicError
        raise IndexError(f"too many indices: {given} for an array of {ndim} dimensions")
    missing = (slice(None),) * (ndim - given)
    if ellipsis is None:
        return (*items, *missing)
    return (*items[:ellipsis], *missing, *items[ellipsis + 1 :])


def _parse_index(item, axis, size, items):
    """Return an integer index counted from 0. NotBasicError: an item is not of a basic key."""
    if is_advanced(item):
        raise NotBasicError
    try:
        index = operator.index(item)
    except TypeError:
        kind = type(item).__name__
        raise IndexError(
            f"an index is an integer, a slice, ..., None or an array of integers or bools, "
            f"not a {kind}"
        ) from None
    if not -size <= index < size:
        if any(map(is_advanced, items)):  # by which Ellipsis may stand for fewer axes
            raise NotBasicError
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index % size


def is_advanced(item):
    """Whether an item of a key is none of basic indexing; a 0-d array of integers is of both."""
    if type(item) is int or item is None:
        return False
    if isinstance(item, Array) or is_host(item):
        return item.ndim != 0 or item.dtype.kind not in "iu"
    return isinstance(item, (bool, list, tuple, range))
