"""The short ways of composed functions on a card: one call of the C library for the whole of each.

They are taken while nobody observes the seam (dispatch.py), for Arrays of a card that no gradients
are recorded for, and plain numbers beside them. Each gives None for whatever else there is and for
what the library refuses: that goes the long way, which says what is wrong.
"""

import functools
import struct
from ctypes import byref, c_double, c_int64, c_uint8

from ..array import Array
from ..dispatch import WAYS, observed
from ..dtype_queries import float_range
from ..native.abi import MAX_NDIM, Key, ScalarKind, Status
from ..operations import Operation
from ..short_views import made, part_along
from .casting import active

_INT64S = [struct.Struct(f"{n}q").pack for n in range(2 * MAX_NDIM + 1)]
_INTS = [struct.Struct(f"{n}i").pack for n in range(MAX_NDIM + 1)]
_INT, _FLOAT = int(ScalarKind.SCALAR_INT), int(ScalarKind.SCALAR_FLOAT)
_EQUAL, _MIN = int(Operation.EQUAL), int(Operation.MIN)
_LEAST, _MOST = -(2**63), 2**63 - 1
_STEP = int(Key.KEY_STEP)
_MOST_TAKEN = 1024  # of which pvg_top_k is for
_REFUSED = {
    *(Status.ERROR_VALUE, Status.ERROR_TYPE, Status.ERROR_INDEX),
    *(Status.ERROR_AXIS, Status.ERROR_OVERFLOW),
}


def functions_of(x):
    """Return the C library's functions if the short ways are open to an argument, or None."""
    if type(x) is not Array or observed():
        return None
    backend = x.backend
    return backend.functions if backend.on_card else None


def _packed(numbers):
    """Return plain ints of 64 bits as C numbers, or None."""
    for n in numbers:
        if type(n) is not int:
            return None
    try:
        return _INT64S[len(numbers)](*numbers)
    except (struct.error, IndexError):
        return None


# Moving -------------------------------------------------------------------------------------------


def repeated(x, counts, whole):
    """Return x with each axis repeated so many times, as a whole or element by element."""
    functions = functions_of(x)
    if functions is None:
        return None
    packed = _packed(counts)
    if packed is None:
        return None
    return made(x.backend, functions.pvg_repeat(x.raw, len(counts), packed, int(whole)), _REFUSED)


def tiled(x, repetitions):
    """Return x repeated as a whole."""
    if type(x) is not Array:
        return None
    counts = repetitions if type(repetitions) in (tuple, list) else (repetitions,)
    return repeated(x, (*(1,) * (len(x.shape) - len(counts)), *counts), True)


def padded(x, widths, value):
    """Return x with elements of one value around it."""
    functions = functions_of(x)
    kind, ndim = type(widths), len(x.shape) if functions else 0
    if not ndim or type(value) not in (int, float):
        return None
    if kind is int:
        numbers = (widths, widths) * ndim
    elif kind is not tuple and kind is not list:
        return None
    elif len(widths) == 2 and type(widths[0]) is int:
        numbers = (*widths,) * ndim
    else:
        numbers = []
        for pair in widths if len(widths) == ndim else (*widths,) * ndim:
            if type(pair) not in (tuple, list) or len(pair) != 2:
                return None
            numbers += pair
    packed = _packed(numbers) if len(numbers) == 2 * ndim else None
    if packed is None:
        return None
    if type(value) is float:
        code, number = _FLOAT, c_double(value)
    elif _LEAST <= value <= _MOST:
        code, number = _INT, c_int64(value)
    else:
        return None
    return made(x.backend, functions.pvg_pad(x.raw, code, byref(number), packed), _REFUSED)


def rolled(x, shift, axis):
    """Return x with its elements moved along an axis, or all in a row."""
    functions = functions_of(x)
    if functions is None or type(shift) is not int or not _LEAST < shift <= _MOST:
        return None
    flat = axis is None
    if not flat and (type(axis) is not int or not -MAX_NDIM <= axis < MAX_NDIM):
        return None
    return made(x.backend, functions.pvg_roll(x.raw, 0 if flat else axis, flat, shift), _REFUSED)


def turned(x, axis):
    """Return a view with the order of the elements reversed along an axis, several or all."""
    functions = functions_of(x)
    if functions is None:
        return None
    if type(axis) is tuple:
        for one in axis:
            if type(one) is not int:
                return None
    elif type(axis) is not int and axis is not None:
        return None
    ndim = len(x.shape)
    key = _key_of_turn(axis, ndim)
    if key is None:
        return None
    return made(x.backend, functions.pvg_index(x.raw, ndim, key), _REFUSED)


@functools.lru_cache(256)
def _key_of_turn(axis, ndim):
    """Return the C numbers of a key that reverses axes, or None if these are not some of ndim."""
    axes = range(ndim) if axis is None else axis if type(axis) is tuple else (axis,)
    numbers = [int(Key.KEY_SLICE), 0, 0, 0] * ndim
    for one in axes:
        if not -ndim <= one < ndim or numbers[4 * one] & _STEP:
            return None
        numbers[4 * one], numbers[4 * one + 3] = numbers[4 * one] | _STEP, -1
    return struct.pack(f"{4 * ndim}q", *numbers)


def diagonal(x, offset, axis1, axis2):
    """Return a view of the diagonals of matrices."""
    functions = functions_of(x)
    if functions is None or not type(offset) is type(axis1) is type(axis2) is int:
        return None
    for one, most in ((offset, _MOST), (axis1, MAX_NDIM), (axis2, MAX_NDIM)):
        if not -most <= one <= most:
            return None
    return made(x.backend, functions.pvg_diagonal(x.raw, offset, axis1, axis2), _REFUSED)


def diagonal_matrix(x, k):
    """Return a matrix of zeros with a diagonal."""
    functions = functions_of(x)
    if functions is None or type(k) is not int or not _LEAST < k <= _MOST or len(x.shape) != 1:
        return None
    return made(x.backend, functions.pvg_diag(x.raw, k), _REFUSED)


def side_of_diagonal(x, upper, k):
    """Return matrices with zeros below a diagonal, or above it."""
    functions = functions_of(x)
    if functions is None or type(k) is not int or not _LEAST <= k <= _MOST:
        return None
    return made(x.backend, functions.pvg_triangle(x.raw, upper, k, None), _REFUSED)


def numbers(backend, length, dtype, start, step):
    """Return start + i * step for i < length, ints that the dtype holds."""
    if dtype.kind == "f":
        start, step = float(start), float(step)
    result = WAYS["empty"](backend, (length,), dtype)
    WAYS["sequence"](backend, result, start, step, None)
    return result


def joined(arrays, axis, stacked):
    """Return arrays one behind the other along an axis, or along a new one."""
    if type(arrays) not in (tuple, list) or not arrays or type(axis) is not int or active:
        return None
    functions = functions_of(arrays[0])
    if functions is None or not -MAX_NDIM <= axis < MAX_NDIM:
        return None
    backend = arrays[0].backend
    for x in arrays:
        if type(x) is not Array or x.backend is not backend:
            return None
    try:
        return WAYS["concat"](backend, arrays, axis, stacked, None)
    except (ValueError, TypeError):
        return None


# Computing ----------------------------------------------------------------------------------------


def differences(x, axis):
    """Return each element minus the one before along an axis."""
    if functions_of(x) is None or active or type(axis) is not int or x.dtype.kind == "b":
        return None
    ndim = len(x.shape)
    if not -ndim <= axis < ndim:
        return None
    axis %= ndim
    return part_along(x, axis, 1, None) - part_along(x, axis, None, -1)


def numbers_for_nan(x, nan, posinf, neginf):
    """Return x with numbers for NaN and for infinities; None for these: the dtype's limits."""
    if functions_of(x) is None or active or x.dtype.kind != "f":
        return None
    least, most = float_range(x.dtype)
    posinf = most if posinf is None else posinf
    neginf = least if neginf is None else neginf
    if not type(nan) is type(posinf) is type(neginf) is float:
        return None
    return WAYS["nan_to_num"](x.backend, x, nan, posinf, neginf, None)


def dots(x1, x2, precision):
    """Return the sums of products along the last axes; precision: a code."""
    functions = functions_of(x1)
    if functions is None or type(x2) is not Array or x2.backend is not x1.backend or active:
        return None
    if x1.dtype.kind == "c":  # is conjugated
        return None
    return made(x1.backend, functions.pvg_vecdot(x1.raw, x2.raw, precision), _REFUSED)


def sum_without_nan(x, axis, mean, keepdims):
    """Return the sum, or the mean, of what is not NaN."""
    functions = functions_of(x)
    if functions is None or active:
        return None
    if axis is None:
        count, packed = -1, None
    else:
        axes = axis if type(axis) is tuple else (axis,)
        for one in axes:
            if type(one) is not int or not -MAX_NDIM <= one < MAX_NDIM:
                return None
        if len(axes) > MAX_NDIM:
            return None
        count, packed = len(axes), _INTS[len(axes)](*axes)
    return made(
        x.backend, functions.pvg_nansum(x.raw, count, packed, mean, bool(keepdims)), _REFUSED
    )


def all_equal(x1, x2, equal_nan):
    """Return whether arrays are equal, a bool; the same array of no floats is at once."""
    functions = functions_of(x1)
    if functions is None or type(x2) is not Array or x2.backend is not x1.backend or active:
        return None
    if x1 is x2 and (equal_nan or x1.dtype.kind in "biu"):
        return True
    if equal_nan:
        return None
    if x1.shape != x2.shape:
        return False
    if 0 in x1.shape:
        return True
    backend, found = x1.backend, c_uint8()
    equal = WAYS["binary"](backend, _EQUAL, x1, x2, None)
    least = WAYS["reduce"](backend, _MIN, equal, None, False, None)
    backend.check(functions.pvg_copy_to_host(least.raw, byref(found), None))
    return found.value != 0


def first_in_order(x, k, axis, smallest):
    """Return the first k elements of an order along an axis, and where they stood."""
    functions = functions_of(x)
    if functions is None or active or type(k) is not int or type(axis) is not int:
        return None
    if not 0 < k <= _MOST_TAKEN or not -MAX_NDIM <= axis < MAX_NDIM:
        return None
    backend, places = x.backend, functions.array()
    values = functions.pvg_top_k(x.raw, k, axis, smallest, byref(places))
    found = made(backend, values, _REFUSED)
    return None if found is None else (found, made(backend, places, ()))


def unique(x, equal_nan):
    """Return the elements that differ, in order."""
    functions = functions_of(x)
    if functions is None:
        return None
    return made(x.backend, functions.pvg_unique(x.raw, equal_nan), _REFUSED)
