"""The short way of array[key] and array[key] = value on the CPU device: NumPy's own indexing.

It is taken while nobody observes the seam (dispatch.py), for keys that mean the same here as in
NumPy, and values of the array's dtype. Whatever else there is, errors included, goes the long way,
indexing.py's. None and False: the short way is not for this.
"""

import numpy as np

from ..array import Array, wrap
from ..backends.cpu import wrote
from ..backends.cpu_ways import holds
from ..dispatch import observed

_BASIC = {int, slice, type(Ellipsis)}


def get(array, key):
    """Return array[key], or None."""
    if type(array) is not Array or array.backend.on_card or observed():
        return None
    data, kind = array.data, type(key)
    try:
        if kind is int or kind is slice:
            return wrap(array.backend, data[key, ...])
        items, is_basic = _items(array, key)
        if items is None:
            return None
        result = data[items]
    except (IndexError, TypeError, OverflowError):
        return None
    if not (is_basic or result.flags.c_contiguous):
        result = np.ascontiguousarray(result)
    return wrap(array.backend, result)


def set(array, key, value):
    """Do array[key] = value and return True, or False."""
    if type(array) is not Array or array.backend.on_card or observed():
        return False
    data = array.data
    if not data.flags.writeable:
        return False
    is_array = type(value) is Array
    if is_array:
        if value.backend is not array.backend or value.data.dtype != data.dtype:
            return False
        value = value.data
        if np.may_share_memory(value, data):
            return False
    elif not holds(data.dtype, value):
        return False
    try:
        items, is_basic = _items(array, key)
        if items is None:
            return False
        if is_basic:
            place = data[items]
            if is_array and value.ndim and value.shape != place.shape:
                return False
            place[...] = value
        elif is_array and value.ndim > 1:
            return False
        else:
            if any(type(one) is np.ndarray and np.may_share_memory(one, data) for one in items):
                return False
            data[items] = value
    except (IndexError, TypeError, ValueError, OverflowError):
        return False
    wrote(data)
    return True


def _items(array, key):
    """Return a key as NumPy takes it, with an Ellipsis, and whether it makes a view; or None."""
    items, is_basic, has_ellipsis = [], True, False
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is Array:
            if item.backend is not array.backend:
                return None, False
            item = item.data
            kind = np.ndarray
        elif kind is list and item and all(type(one) is int for one in item):
            item = np.array(item)
            kind = np.ndarray
        if kind is np.ndarray:
            if not item.ndim or item.dtype.kind not in "biu" or item.dtype == np.uint64:
                return None, False  # NumPy wraps uint64
            is_basic = False
        elif kind not in _BASIC:
            return None, False
        elif item is Ellipsis:
            has_ellipsis = True
        items.append(item)
    if not has_ellipsis:
        items.append(Ellipsis)
    return tuple(items), is_basic
