"""The short ways from an Array to a view of it, to its values and to the elements that Arrays name.

Each is one call of the C library, which knows the shape, or of NumPy. It gives None, or False, for
what it does not take and what does not fit the shape: that goes the long way, through
dispatch.apply, which says what is wrong. None is taken while anybody observes the seam.
"""

import struct

from .array import Array, new, wrap
from .dispatch import _listeners
from .native.abi import FROM_START, MAX_NDIM, Key, Status

# Views --------------------------------------------------------------------------------------------

_PACK = tuple([struct.Struct(f"{n}q").pack for n in range(4 * (MAX_NDIM + 1))])
_INTEGER, _SLICE, _NEW, _REST, _START, _STOP, _STEP, _ARRAY = map(int, Key)
_WHOLE, _OTHERS = (_SLICE, 0, 0, 0), (_REST, 0, 0, 0)
_FLAT, _ONE_MORE = _PACK[1](-1), _PACK[4](_NEW, 0, 0, 0)
_DOES_NOT_FIT = (Status.ERROR_VALUE, Status.ERROR_INDEX)


def indexed(array, key):
    """Return array[key] for a key of ints, slices, None, "..." and Arrays, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners or not backend.on_card:
        return None
    if key is None:
        return made(backend, backend.functions.pvg_index(array.raw, 1, _ONE_MORE), _DOES_NOT_FIT)
    items, arrays = [], False
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is int:
            items += (_INTEGER, item, 0, 0)
        elif kind is slice:
            what, start, stop, step = _SLICE, item.start, item.stop, item.step
            if start is None:
                start = 0
            else:
                what |= _START
            if stop is None:
                stop = 0
            else:
                what |= _STOP
            if step is None:
                step = 0
            else:
                what |= _STEP
            items += (what, start, stop, step)
        elif item is None:
            items += (_NEW, 0, 0, 0)
        elif item is Ellipsis:
            items += _OTHERS
        elif kind is Array and item.backend is backend:
            items += (_ARRAY, item.raw.value, 0, 0)
            arrays = True
        else:
            return None
    count = len(items)
    try:
        packed = _PACK[count](*items)
    except (struct.error, IndexError):  # no integers, or of more than 64 bits; too many items
        return None
    if arrays:
        return made(
            backend, backend.functions.pvg_index_get(array.raw, count // 4, packed), _NOT_TAKEN
        )
    return made(backend, backend.functions.pvg_index(array.raw, count // 4, packed), _DOES_NOT_FIT)


def part_along(array, axis, start, stop):
    """Return array[:, ..., start:stop], the bounds ints or None, along an axis from 0, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners or not backend.on_card:
        return None
    what = _SLICE | (0 if start is None else _START) | (0 if stop is None else _STOP)
    items = (*_WHOLE * axis, what, start or 0, stop or 0, 0)
    packed = _PACK[len(items)](*items)
    return made(backend, backend.functions.pvg_index(array.raw, axis + 1, packed), _DOES_NOT_FIT)


def reshaped(array, shape):
    """Return an Array in a shape of ints, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners:
        return None
    if not backend.on_card:
        return _reshaped_by_numpy(array, shape)
    count, packed = _lengths(shape)
    if packed is None:
        return None
    return made(backend, backend.functions.pvg_reshape(array.raw, count, packed), _DOES_NOT_FIT)


def flattened(array):
    """Return an Array with one axis, or None; reshaped and made, in one step of Python."""
    backend = array.backend
    if type(array) is not Array or _listeners:
        return None
    if not backend.on_card:
        return _reshaped_by_numpy(array, -1)
    data = backend.functions.pvg_reshape(array.raw, 1, _FLAT)
    if not data:
        return made(backend, data, _DOES_NOT_FIT)
    result = new()
    result.backend = backend
    result.raw = data
    return result


def squeezed(array):
    """Return an Array without its axes of length 1, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners:
        return None
    if not backend.on_card:
        return wrap(backend, array.raw.squeeze())
    return made(backend, backend.functions.pvg_reshape(array.raw, -1, None), _DOES_NOT_FIT)


def duplicated(array):
    """Return a contiguous copy of an Array, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners:
        return None
    if not backend.on_card:
        try:
            return wrap(backend, array.raw.copy())
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
    return made(backend, backend.functions.pvg_cast(array.raw, -1, None), _DOES_NOT_FIT)


def _reshaped_by_numpy(array, shape):
    """Return an Array of the CPU device in a shape of ints, or None."""
    items = shape if type(shape) is tuple or type(shape) is list else (shape,)
    for n in items:
        if type(n) is not int or n < -1:  # which NumPy takes for -1
            return None
    try:
        data = array.raw.reshape(items)
    except (ValueError, OverflowError, MemoryError):
        return None
    return wrap(array.backend, data) if data.ndim <= MAX_NDIM else None


def repeated(array, shape):
    """Return an Array broadcast to a shape of ints, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners or not backend.on_card:
        return None
    count, packed = _lengths(shape)
    if packed is None:
        return None
    return made(
        backend, backend.functions.pvg_broadcast_to(array.raw, count, packed), _DOES_NOT_FIT
    )


def _lengths(shape):
    """Return (count, C numbers) of a shape of ints; None for the numbers if it is none."""
    if type(shape) is int and shape == -1:
        return 1, _FLAT
    items = shape if type(shape) is tuple or type(shape) is list else (shape,)
    for n in items:
        if type(n) is not int:
            return 0, None
    count = len(items)
    try:
        return count, _PACK[count](*items)
    except (struct.error, IndexError):  # more than 64 bits; too many axes
        return 0, None


def made(backend, data, refused):
    """Return an Array of what the library made, or None where it refused; other errors raise.

    refused: the statuses that leave a call to the long way.
    """
    if not data:
        if backend.library.pvg_last_status() in refused:
            return None
        backend.fail()
    array = new()
    array.backend = backend
    array.raw = data
    return array


# Values -------------------------------------------------------------------------------------------


def number(array):
    """Return the one element of an Array, or None: there is another number, or it is observed."""
    backend = array.backend
    if _listeners:
        return None
    if backend.on_card:
        return backend.number(array.raw)
    data = array.raw
    return data.item() if data.size == 1 and data.dtype.kind in "buif" else None


def downloaded(array, laid_out=False):
    """Return the values of an Array on a card as a new ndarray, or None: nobody may observe it.

    laid_out: with its axes in the order of the Array's, so that nothing has to be moved around.
    """
    backend = array.backend
    if _listeners or not backend.on_card:
        return None
    dtype, shape, strides = array._layout
    return backend.download(array.raw, dtype, shape, strides if laid_out else None)


# Elements that Arrays name ------------------------------------------------------------------------
#
# What the library does not take is the error VALUE, or a scalar's that the dtype cannot hold;
# others may be reports of what was computed before, of which nobody hears twice.

_NOT_TAKEN = (Status.ERROR_VALUE, Status.ERROR_TYPE, Status.ERROR_OVERFLOW)


def taken(array, indices, axis):
    """Return the elements of an Array at an Array of indices along an axis, or None."""
    backend = array.backend
    if type(array) is not Array or type(indices) is not Array or _listeners:
        return None
    if not backend.on_card or indices.backend is not backend:
        return None
    if axis is None and len(array.shape) == 1:
        axis = 0
    elif type(axis) is not int or not -len(_PACK) < axis < len(_PACK):
        return None
    one = (_ARRAY, indices.raw.value, 0, 0)
    # An item more says that bools are none of these.
    items = _WHOLE * axis + one + _OTHERS if axis >= 0 else _OTHERS + one + _WHOLE * (-1 - axis)
    count = len(items)
    if count >= len(_PACK):
        return None
    call = backend.functions.pvg_index_get
    return made(backend, call(array.raw, count // 4, _PACK[count](*items)), _NOT_TAKEN)


def looked_up(table, numbers):
    """Return the rows of an Array of two axes by an Array of numbers from 0 on, or None."""
    if type(table) is not Array or type(numbers) is not Array or _listeners:
        return None
    backend = table.backend
    if not backend.on_card or numbers.backend is not backend or len(table.shape) != 2:
        return None
    # An item more says that bools are none of these.
    items = _PACK[8](_ARRAY, numbers.raw.value, FROM_START, 0, *_OTHERS)
    return made(backend, backend.functions.pvg_index_get(table.raw, 2, items), _NOT_TAKEN)


def assigned(array, key, value):
    """Do array[key] = a number or an Array, for a key with Arrays, and return True; or False."""
    backend = array.backend
    if type(array) is not Array or _listeners or not backend.on_card:
        return False
    items = []
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is Array and item.backend is backend:
            items += (_ARRAY, item.raw.value, 0, 0)
        elif kind is int:
            items += (_INTEGER, item, 0, 0)
        elif kind is slice and item == _EVERYTHING:
            items += _WHOLE
        elif item is Ellipsis:
            items += _OTHERS
        else:
            return False
    count = len(items)
    try:
        packed = _PACK[count](*items)
    except (struct.error, IndexError):
        return False
    return _given(backend, array, count // 4, packed, value)


def put_in_a_row(array, indices, value):
    """Write to elements of an Array of one axis as `put` does, and return True; or False."""
    backend = array.backend
    if type(array) is not Array or type(indices) is not Array or _listeners:
        return False
    if not backend.on_card or indices.backend is not backend:
        return False
    if len(array.shape) != 1 or len(indices.shape) != 1:
        return False
    if isinstance(value, Array) and value.shape != indices.shape:
        return False
    # An item more says that bools are none of these.
    packed = _PACK[8](_ARRAY, indices.raw.value, 0, 0, *_OTHERS)
    return _given(backend, array, 2, packed, value)


_EVERYTHING = slice(None)
_NUMBERS = {bool, int, float, complex}


def _given(backend, array, count, packed, value):
    """Write a number or an Array to what a packed key names, and return True; or False."""
    kind, data, call = type(value), array.raw, backend.functions.pvg_index_set
    if kind is Array:
        if value.backend is not backend:
            return False
        status = call(data, count, packed, value.raw, 0, None)
    elif kind in _NUMBERS:
        code, number = backend.as_scalar(data, value)
        status = call(data, count, packed, None, code, number)
    else:
        return False
    if not status:
        return True
    if status not in _NOT_TAKEN:
        backend.fail()
    return False
