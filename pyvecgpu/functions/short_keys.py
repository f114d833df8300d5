"""The short way of array[key] and array[key] = value on the CPU device: NumPy's own indexing.

It is taken while nobody observes the seam (dispatch.py), for keys that mean the same here as in
NumPy, and values of the array's dtype. Whatever else there is, errors included, goes the long way,
indexing.py's. None and False: the short way is not for this.
"""

import numpy as np

from ..array import Array, new
from ..backends.cpu_results import wrote
from ..backends.cpu_ways import holds, may_share
from ..dispatch import _listeners
from ..native.abi import MAX_NDIM

_BASIC = {int, slice}
_INTEGERS = {int}


def get(array, key):
    """Return array[key], or None."""
    backend = array.backend
    if type(array) is not Array or backend.on_card or _listeners:
        return None
    data, kind = array.raw, type(key)
    try:
        if kind is int or kind is slice:
            result = data[key, ...]
        elif kind is Array:
            item = key.raw
            if key.backend is not backend or not _names_elements(item):
                return None
            result = data[item]
            if result.ndim > 1 and not result.flags.c_contiguous:
                result = np.ascontiguousarray(result)
        else:
            items, is_basic = _items(backend, key)
            if items is None:
                return None
            result = data[items]
            if result.ndim > MAX_NDIM:
                return None
            if not (is_basic or result.flags.c_contiguous):
                result = np.ascontiguousarray(result)
    except (IndexError, TypeError, OverflowError):
        return None
    found = new()
    found.backend = backend
    found.raw = result
    return found


def set(array, key, value):
    """Do array[key] = value and return True, or False."""
    backend = array.backend
    if type(array) is not Array or backend.on_card or _listeners:
        return False
    data = array.raw
    if not data.flags.writeable:
        return False
    is_array = type(value) is Array
    if is_array:
        if value.backend is not backend or value.raw.dtype != data.dtype:
            return False
        value = value.raw
        if may_share(value, data):
            return False
    elif not holds(data.dtype, value):
        return False
    kind = type(key)
    try:
        if (kind is int or kind is slice) and not is_array:
            data[key] = value
            wrote(data)
            return True
        if kind is Array:
            item = key.raw
            if key.backend is not backend or not _names_elements(item) or may_share(item, data):
                return False
            if is_array and value.ndim > 1:
                return False
            data[item] = value
            wrote(data)
            return True
        items, is_basic = _items(backend, key)
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
            for one in items:
                if type(one) is np.ndarray and may_share(one, data):
                    return False
            data[items] = value
    except (IndexError, TypeError, ValueError, OverflowError):
        return False
    wrote(data)
    return True


def _names_elements(item):
    """Whether an ndarray means the same as a key here; NumPy wraps uint64."""
    return item.ndim and (item.dtype.kind in "bi" or item.dtype.char in "BHI")


def _items(backend, key):
    """Return a key as NumPy takes it, with an Ellipsis, and whether it makes a view; or None."""
    items, is_basic, has_ellipsis = [], True, False
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is Array:
            if item.backend is not backend or not _names_elements(item.raw):
                return None, False
            item, is_basic = item.raw, False
        elif kind is list:
            if {*map(type, item)} != _INTEGERS:
                return None, False
            item, is_basic = np.array(item), False
            if item.dtype.kind == "u":
                return None, False
        elif kind is np.ndarray:
            if not _names_elements(item):
                return None, False
            is_basic = False
        elif item is Ellipsis:
            has_ellipsis = True
        elif item is not None and kind not in _BASIC:
            return None, False
        items.append(item)
    if not has_ellipsis:
        items.append(Ellipsis)
    return tuple(items), is_basic
