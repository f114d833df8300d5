"""Basic indexing: integers, slices, Ellipsis and None, parsed here once for all devices.

A key becomes a start, a step and a length for every axis, and then the shape without the axes that
an integer removed and with those that None added. The result is a view.
"""

import operator

import numpy as np

from ..array import Array
from ..dispatch import apply
from ..dtypes import is_integer
from ..native.abi import MAX_NDIM
from .arguments import from_host, host_array, is_host, is_scalar


def get(array, key):
    """Return the view array[key].

    IndexError: out of range, too many indices, or a kind of index that is not there yet.
    ValueError: None makes more than MAX_NDIM axes.
    """
    starts, steps, lengths, shape = parse_key(key, array.shape)
    view = apply(array.backend, "slice", array, starts, steps, lengths)
    return view if lengths == shape else apply(array.backend, "reshape", view, shape)


def set(array, key, value):
    """array[key] = value, broadcast and cast to the array's dtype.

    value: a Python scalar, an Array on the same device, or a NumPy array. OverflowError: an integer
    that the dtype cannot hold. ValueError: the shapes do not fit, another device, read-only.
    """
    if isinstance(value, Array) and value.backend is not array.backend:
        raise ValueError(
            f"cannot assign an array on {value.device} to one on {array.device}; use .to(...)"
        )
    view = get(array, key)
    backend = array.backend
    if isinstance(value, np.generic) and is_integer(array.dtype):
        value = value.item()  # checked like a Python scalar: a cast would wrap or clamp it
    if is_scalar(value):
        apply(backend, "fill", view, value)
        return
    if is_host(value):
        value = from_host(host_array(value), backend)
    elif not isinstance(value, Array):
        kind = type(value).__name__
        raise TypeError(f"cannot assign a {kind}; make an array of it with asarray(...)")
    apply(backend, "copy", value, view)


def parse_key(key, shape):
    """Return (starts, steps, lengths), one per axis of `shape`, and the shape of the result."""
    items = _expand_ellipsis(key if isinstance(key, tuple) else (key,), len(shape))
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
            start, step, length = _parse_index(item, axis, size), 1, 1
        starts.append(start)
        steps.append(step)
        lengths.append(length)
    if len(result) > MAX_NDIM:
        raise ValueError(f"an array has at most {MAX_NDIM} dimensions, not {len(result)}")
    return tuple(starts), tuple(steps), tuple(lengths), tuple(result)


def _expand_ellipsis(items, ndim):
    """Return the items of a key with ... replaced by as many whole slices as are missing."""
    given, ellipsis = 0, None
    for i, item in enumerate(items):
        if item is Ellipsis:
            if ellipsis is not None:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = i
        elif item is not None:
            given += 1
    if given > ndim:
        raise IndexError(f"too many indices: {given} for an array of {ndim} dimensions")
    missing = (slice(None),) * (ndim - given)
    if ellipsis is None:
        return (*items, *missing)
    return (*items[:ellipsis], *missing, *items[ellipsis + 1 :])


def _parse_index(item, axis, size):
    """Return an integer index counted from 0."""
    is_array = isinstance(item, Array) or is_host(item)
    if isinstance(item, (bool, list, tuple)) or (is_array and not _is_integer(item)):
        raise IndexError(
            f"an index of type {type(item).__name__} is not there yet; "
            "integers, slices, ... and None are"
        )
    try:
        index = operator.index(item)
    except TypeError:
        kind = type(item).__name__
        raise IndexError(f"an index is an integer, a slice, ... or None, not a {kind}") from None
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index % size


def _is_integer(item):
    return item.ndim == 0 and item.dtype.kind in "iu"
