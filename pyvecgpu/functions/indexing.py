"""array[key] and array[key] = value.

With integers, slices, Ellipsis and None the result is a view; with arrays of integers or bools
among them (advanced.py) it is a copy.
"""

import numpy as np

from ..array import Array
from ..dispatch import WAYS, apply, whole
from ..dtypes import is_integer
from ..short_views import assigned, indexed
from . import advanced, short_keys
from .arguments import from_host, host_array, is_host, is_scalar
from .creation import asarray, of_value
from .keys import NotBasicError, parse_key


def get(array, key):
    """Return array[key]: a view, or a copy if the key has an array, a list or a bool in it.

    IndexError: out of range (of indices on a card at the next wait for it, until when the nearest
    ones stand for them), too many indices, arrays that do not fit, or no kind of index.
    ValueError: None makes more than MAX_NDIM axes.
    """
    result = indexed(array, key) if array.backend.on_card else short_keys.get(array, key)
    if result is not None:
        return result
    try:
        return _view(array, key)
    except NotBasicError:
        return advanced.get(array, advanced.parse(array, key))


def _view(array, key):
    """Return array[key] of a basic key. NotBasicError: it is none."""
    starts, steps, lengths, shape = parse_key(key, array.shape)
    view = apply(array.backend, "slice", array, starts, steps, lengths)
    return view if lengths == shape else apply(array.backend, "reshape", view, shape)


def set(array, key, value):
    """array[key] = value, broadcast and cast to the array's dtype.

    value: a Python scalar, an Array on the same device, a NumPy array, or nested lists of numbers.
    What is named twice gets the last of its values. OverflowError: an integer that the dtype cannot
    hold. ValueError: the shapes do not fit, ragged lists, another device, read-only.
    """
    if not array.backend.on_card:
        if short_keys.set(array, key, value):
            return
    elif type(array) is Array and _is_all(array, key):
        kind = type(value)
        if kind is Array and value.backend is array.backend:
            WAYS["copy"](array.backend, value, array)
            return
        if kind is int or kind is float:
            WAYS["fill"](array.backend, array, value)
            return
    kind = type(key)
    has_arrays = kind is Array or (kind is tuple and Array in map(type, key))
    if has_arrays and assigned(array, key, value):
        return
    if isinstance(value, Array) and value.backend is not array.backend:
        raise ValueError(
            f"cannot assign an array on {value.device} to one on {array.device}; use .to(...)"
        )
    backend = array.backend
    view = None if has_arrays else indexed(array, key)
    if view is not None and type(value) is Array:
        WAYS["copy"](backend, value, view)
        return
    try:
        if view is None:
            view = _view(array, key)
    except NotBasicError:
        key = advanced.parse(array, key)
    if isinstance(value, np.generic) and is_integer(array.dtype):
        value = value.item()  # checked like a Python scalar: a cast would wrap or clamp it
    if not is_scalar(value):
        if is_host(value):
            value = from_host(host_array(value), backend)
        elif isinstance(value, (list, tuple, range)):
            value = asarray(list(value), array.dtype, device=array.device)
        elif not isinstance(value, Array):
            kind = type(value).__name__
            raise TypeError(f"cannot assign a {kind}; make an array of it with asarray(...)")
    if view is None:
        advanced.set(array, key, value)
    elif is_scalar(value):
        apply(backend, "fill", view, value)
    else:
        apply(backend, "copy", value, view)


def _is_all(array, key):
    """Whether a key is "..." or whole axes, so that it names the array itself."""
    if key is Ellipsis:
        return True
    items = key if type(key) is tuple else (key,)
    for item in items:
        if type(item) is not slice or not item.start is item.stop is item.step is None:
            return False
    return 0 < len(items) <= len(array.shape)


def embedded(x, shape, start, step, length):
    """Return zeros of a shape, with the elements of an Array where slice reads."""
    backend = x.backend

    def compute():
        result = of_value(backend, shape, x.dtype, 0)
        apply(backend, "copy", x, apply(backend, "slice", result, start, step, length))
        return result

    parameters = {"start": start, "step": step, "length": length}
    return whole("embed", {"x": x, "shape": shape} | parameters, compute)
