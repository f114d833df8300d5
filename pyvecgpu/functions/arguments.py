"""Checks that every function shares, made once in Python for all devices.

Shapes, axes and sizes are checked as Python ints, because ctypes would silently cut off what does
not fit into 64 bits; operands are brought to one device; results go back to where they came from.
"""

import functools
import operator
import sys

import numpy as np

from ..array import Array, Tracked
from ..device import Device, resolve
from ..dispatch import WAYS, apply, no_gradient
from ..dtypes import CODES, host_dtype, promote, supported
from ..native.abi import MAX_NDIM
from .casting import active, exchanged
from .lists import LISTS, begins_with_array, is_list, python_values, stacked
from .values import item, to_host

_REAL = {float, int, bool}
_WEAK = {*_REAL, complex}
LARGEST = 2**63 - 1  # elements, and bytes, of one array


# Shapes and axes ----------------------------------------------------------------------------------


def parse_int(value, what):
    """Return an integer argument as an int; TypeError for bools, floats, strings, None."""
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{what} is an integer, not a bool")
    try:
        return operator.index(value)
    except TypeError:
        if hasattr(type(value), "__index__"):
            raise  # its own error
        raise TypeError(f"{what} is an integer, not {value!r}") from None


def parse_shape(shape, itemsize=1):
    """Return a shape as a tuple of ints.

    ValueError: a negative dimension, more than MAX_NDIM of them, or 2**63 bytes or more in all,
    dimensions of 0 left out. TypeError: not an integer or a sequence of them.
    """
    if type(shape) is int:
        shape = (shape,)
    elif type(shape) is not tuple:
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    nbytes = itemsize
    for n in shape:
        if type(n) is not int or n < 0:
            shape = tuple([parse_int(n, "a dimension") for n in shape])
            break
        nbytes *= n or 1
    else:
        if nbytes <= LARGEST and len(shape) <= MAX_NDIM:
            return shape
    check_shape(shape, itemsize)
    return shape


def check_shape(shape, itemsize=1):
    """ValueError if a tuple of ints is no shape of an array; see parse_shape."""
    if len(shape) > MAX_NDIM:
        raise ValueError(f"an array has at most {MAX_NDIM} dimensions, not {len(shape)}")
    nbytes = itemsize
    for n in shape:
        if n < 0:
            raise ValueError(f"negative dimensions are not allowed: {shape}")
        nbytes *= n or 1
    if nbytes > LARGEST:
        raise ValueError(f"an array of shape {shape} is too big: {nbytes} bytes")


def parse_axis(axis, ndim):
    """Return an axis counted from 0. AxisError: out of range. TypeError: not an integer."""
    if type(axis) is int and -ndim <= axis < ndim:
        return axis % ndim
    number = parse_int(axis, "an axis")
    if not -ndim <= number < ndim:
        raise np.exceptions.AxisError(number, ndim)
    return number % ndim


def parse_axes(axis, ndim):
    """Return None, or a tuple of axes counted from 0; also ValueError: an axis twice."""
    if axis is None:
        return None
    if not isinstance(axis, (tuple, list)):
        return (parse_axis(axis, ndim),)
    axes = tuple([parse_axis(one, ndim) for one in axis])
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in axis={tuple(axis)}")
    return axes


# Host data ----------------------------------------------------------------------------------------


def host_array(value):
    """Return a NumPy array or scalar as an ndarray of a supported dtype in native byte order.

    It may share memory with `value`, and its bools may hold bytes other than 0 and 1.
    TypeError: an unsupported dtype, or a masked array. ValueError: too many dimensions.
    """
    masked = sys.modules.get("numpy.ma")  # without it there are no masked arrays
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise TypeError("a masked array would lose its mask; pass x.filled(value) or x.data")
    array = np.asarray(value)
    if array.ndim > MAX_NDIM:
        raise ValueError(f"an array has at most {MAX_NDIM} dimensions, not {array.ndim}")
    if array.dtype in CODES:
        return array
    dtype = supported(array.dtype.newbyteorder("="))
    return array.astype(host_dtype(dtype), copy=False)


def is_host(value):
    """True for what NumPy made: its arrays and its scalars."""
    return isinstance(value, (np.ndarray, np.generic))


def is_scalar(value):
    """True for Python's bool, int, float and complex, which are weak; NumPy's float64 is not."""
    return isinstance(value, (int, float, complex)) and not isinstance(value, np.generic)


def are_operands(*values):
    """True if a Python operator of Array takes all the values."""
    return all(isinstance(x, (Array, *LISTS)) or is_scalar(x) or is_host(x) for x in values)


# Operands -----------------------------------------------------------------------------------------


class Operands:
    """The operands of one call on one device, and where its result goes.

    `backend` computes, `arrays` are the operands as Arrays or Python scalars, and `place` is the
    Array to write to, or None. Of numbers alone the first is what asarray makes of it. The caller
    gets an Array, or beside NumPy's arrays NumPy, for which `host` is true.
    """

    __slots__ = ("arrays", "backend", "host", "out", "place")

    def __init__(self, name, operands, out=None, device=None):
        self.out = out
        self.place = out if out is not None and isinstance(out, Array) else None
        backend = None
        if device is None:
            for operand in operands:
                kind = type(operand)
                if kind is Array or kind is Tracked:
                    if backend is None:
                        backend = operand.backend
                    elif operand.backend is not backend:
                        backend = None
                        break
                elif kind not in _WEAK:
                    backend = None
                    break
        if backend and (out is None or (isinstance(out, Array) and out.backend is backend)):
            self.backend, self.host, self.arrays = backend, False, operands
        else:
            self._bring_together(name, operands, device)
        if active and out is None and not self.host:
            self.arrays = exchanged(name, self.arrays)

    def _bring_together(self, name, operands, device):
        """Bring operands of any kind to one device; the errors of what does not fit."""
        out = self.out
        operands = [stacked(x) if is_list(x) and begins_with_array(x) else x for x in operands]
        self.backend = _common_backend(name, (*operands, out), device)
        self.host = self.backend is None
        if self.host:
            self.backend = resolve(device).backend
            self.host = any(map(is_host, (*operands, out)))
        self.arrays = [
            operand if type(operand) is Array else _operand(name, operand, self.backend, self.host)
            for operand in operands
        ]
        if all(is_scalar(operand) for operand in operands):
            first = listed(operands[0], self.backend, self.host)
            self.arrays = [first, *operands[1:]]
        if not (out is None or isinstance(out, Array) or (self.host and is_ndarray(out))):
            place = "a NumPy array" if self.host else f"an Array on {self.backend.device}"
            raise TypeError(f"{name}: out is {place} or None, not {type(out).__name__}")

    def apply(self, method, *arguments):
        """Call a method of the backend that takes an `out`; return what the caller gets."""
        result = WAYS[method](self.backend, *arguments, self.place)
        return self.give(result) if self.host and self.place is None else result

    def deliver_array(self, array):
        """Return an Array that was computed without `out` to the caller, in `out` if there is one.

        ValueError: another shape. TypeError: the cast is not "same_kind".
        """
        if self.place is None:
            return self.give(array)
        _check_shape(self.place, array)
        return self.apply("cast", array, array.dtype)

    def give(self, result):
        """Return an Array as what the caller gets: itself, or NumPy for NumPy."""
        if not self.host:
            return result
        if self.out is None:
            values = to_host(result)
            return values[()]  # a scalar instead of a 0-d array, as NumPy's functions do
        _check_shape(self.out, result)
        values = to_host(result, self.out)
        if values is not self.out:
            np.copyto(self.out, values, casting="same_kind")
        return self.out


def _check_shape(out, result):
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, the result has {result.shape}")


def promote_all(arrays):
    """Return the dtype that arrays are promoted to together."""
    return functools.reduce(promote, [x.dtype for x in arrays])


def is_ndarray(value):
    return isinstance(value, np.ndarray)


def _common_backend(name, values, device):
    """Return the backend of the Arrays among the values, None without any.

    ValueError: they live on several devices, or not on `device`.
    """
    backend = None
    for value in values:
        if isinstance(value, Array) and value.backend is not backend:
            if backend is not None:
                raise ValueError(
                    f"{name}: operands on {backend.device} and {value.device}; "
                    "bring them to one device with .to(...)"
                )
            backend = value.backend
    if backend is not None and device is not None and Device(device).backend is not backend:
        raise ValueError(f"{name}: operands on {backend.device}, but device={str(device)!r}")
    return backend


def _operand(name, value, backend, host):
    if isinstance(value, Array) or is_scalar(value):
        return value
    if is_host(value):
        return from_host(host_array(value), backend)
    if is_list(value):
        return listed(value, backend, host)
    kind = type(value).__name__
    raise TypeError(f"{name} takes arrays, not {kind}; make one with asarray(...)")


def listed(value, backend, host=False):
    """Return a list or a number as the Array that asarray makes of it; host: of NumPy's dtype.

    ValueError: the list is ragged. TypeError: no numbers are in it.
    """
    if begins_with_array(value):
        return stacked(value)
    values, dtype = (np.asarray(value), None) if host else python_values(value, None)
    array = from_host(host_array(values), backend)
    return array if dtype in (None, array.dtype) else apply(backend, "cast", array, dtype, None)


def from_host(values, backend):
    """Return an Array with the values of an ndarray for use within a call, uncopied on the CPU."""
    return apply(backend, "lend", values)


def strong(value, backend, dtype):
    """Return a Python scalar as a 0-d Array of a dtype; OverflowError if it cannot hold it."""
    result = apply(backend, "empty", (), dtype)
    apply(backend, "fill", result, value)
    return result


def parse_scalar(value, what, complexes=False):
    """Return a Python scalar, or the one in a 0-d array, as bool, int or float; else TypeError.

    complexes: complex ones, too. NotImplementedError: an Array whose gradient would be lost.
    """
    if type(value) in _REAL:
        return value
    found = value
    if isinstance(value, Array) and value.ndim == 0:
        no_gradient(what, value)
        found = item(value)
    elif is_host(value) and np.ndim(value) == 0:
        found = host_array(value).item()
    if is_scalar(found) and (complexes or not isinstance(found, complex)):
        return found
    kinds = "a bool, an int, a float or complex" if complexes else "a bool, an int or a float"
    raise TypeError(f"{what} is {kinds}, not {type(found).__name__}")
