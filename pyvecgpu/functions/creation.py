"""Functions that make arrays.

device: a Device, its name, or None for the current one; *_like and asarray of an Array keep the
Array's. dtype: None is the default float (float32) for zeros, ones, empty and Python floats, the
complex dtype of such parts for Python's complex numbers, int64 for Python ints (uint64 where one
needs it), bool for Python bools, and the dtype of NumPy input.
"""

import numpy as np

from ..array import Array, Tracked, wrap
from ..backends import cpu_making
from ..backends.cpu_casts import cast
from ..device import Device, resolve
from ..dispatch import WAYS, apply, observed
from ..dtypes import (
    bfloat16,
    get_default_dtype,
    parse_dtype,
    promote_scalar,
)
from ..dtypes import bool as bool_dtype
from ..native.abi import MAX_NDIM
from . import cuda_interface, short_cpu
from .arguments import (
    from_host,
    host_array,
    is_host,
    is_scalar,
    listed,
    parse_int,
    parse_scalar,
    parse_shape,
)
from .layout import astype, broadcast_to, reshape, transfer
from .lists import LISTS, begins_with_array, is_list, python_values, stacked
from .values import copied, to_host

__all__ = [
    "array",
    "asarray",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

# From values --------------------------------------------------------------------------------------


def asarray(obj, /, dtype=None, *, device=None, copy=None):
    """Return an Array of a Python scalar, nested lists, a NumPy array, or an Array.

    Lists may have Arrays in them, whose device is then the default: they are stacked.

    Host values are copied at once: changing them later does not change the Array. An Array comes
    back as it is if dtype and device fit. An array of another library on a GPU, with
    __cuda_array_interface__, becomes an Array there of the same memory. copy: True always copies,
    False never does.
    TypeError: an unsupported dtype. OverflowError: an integer that the dtype cannot hold.
    ValueError: ragged lists, Arrays of several devices, or copy=False and a copy is needed.

    >>> vg.asarray([[1, 2], [3, 4]]).dtype
    dtype('int64')
    >>> vg.asarray([0.5, 1.5]).dtype
    dtype('float32')
    >>> vg.asarray(np.array([0.5, 1.5])).dtype
    dtype('float64')
    >>> vg.asarray([1, 2], dtype="float16").tolist()
    [1.0, 2.0]
    """
    dtype = None if dtype is None else parse_dtype(dtype)
    if type(obj) is np.ndarray and dtype is None and copy is not False:
        return WAYS["from_host"](resolve(device).backend, host_array(obj))
    if (type(obj) is list or type(obj) is tuple) and copy is not False:
        result = short_cpu.of_list(obj, dtype, device)
        if result is not None:
            return result
    if isinstance(obj, Array):
        return _from_array(obj, dtype, device, copy)
    if _is_of_gpu(obj):
        return _from_array(cuda_interface.taken(obj), dtype, device, copy)
    if copy is False:
        raise ValueError("values on the host are always copied, and copy is False")
    if isinstance(obj, (list, tuple)) and begins_with_array(obj):
        result = stacked(obj, dtype)
        return result if device is None else transfer(result, resolve(device))
    backend = resolve(device).backend
    if isinstance(obj, (list, tuple)) or is_scalar(obj):
        values, dtype = python_values(obj, dtype)
        values = host_array(values)
    else:
        values = host_array(obj)
    if dtype is None or dtype == values.dtype:
        return apply(backend, "from_host", values)
    if dtype is bfloat16:  # the device can make it, NumPy perhaps not
        return astype(from_host(values, backend), dtype)
    if not backend.on_card and not observed():
        return wrap(backend, cast(values, dtype))
    values = astype(from_host(values, Device("cpu").backend), dtype)
    return apply(backend, "from_host", to_host(values))


def array(obj, /, dtype=None, *, device=None, copy=True, ndmin=0):
    """Return a new Array, see asarray; with axes of length 1 before its own up to ndmin of them.

    ValueError: more axes than there can be.

    >>> x = vg.asarray([1, 2])
    >>> y = vg.array(x, ndmin=2)
    >>> y[0, 0] = 9
    >>> x.tolist(), y.tolist()
    ([1, 2], [[9, 2]])
    """
    if type(obj) is Array and copy is True and dtype is device is None and ndmin == 0:
        return copied(obj)
    if type(obj) is list and copy is True and dtype is None and type(ndmin) is int and not ndmin:
        result = short_cpu.of_list(obj, None, device)
        if result is not None:
            return result
    ndmin = parse_int(ndmin, "ndmin")
    result = asarray(obj, dtype=dtype, device=device, copy=copy)
    if ndmin <= result.ndim:
        return result
    if ndmin > MAX_NDIM:
        raise ValueError(f"an array has at most {MAX_NDIM} dimensions, not {ndmin}")
    return reshape(result, (1,) * (ndmin - result.ndim) + result.shape)


def _is_of_gpu(obj):
    """Whether another library shows the memory of a GPU's array."""
    if isinstance(obj, (list, tuple)) or is_scalar(obj) or is_host(obj):
        return False
    return hasattr(obj, "__cuda_array_interface__")


def _from_array(array, dtype, device, copy):
    target = array.device if device is None else resolve(device)
    same_dtype = dtype is None or dtype == array.dtype
    if copy is False and not (same_dtype and target is array.device):
        raise ValueError("the dtype or the device does not fit, and copy is False")
    result = array if same_dtype else astype(array, dtype)
    result = transfer(result, target)
    return copied(array) if copy and result is array else result


def to(array, target):
    """Return an Array on another device or in another dtype; see Array.to."""
    device, dtype = device_or_dtype(target)
    return astype(array, dtype, copy=False) if device is None else transfer(array, device)


def device_or_dtype(target):
    """Return (Device, None) or (None, dtype) for one of them or its name; see Array.to."""
    is_name = isinstance(target, str) and target.partition(":")[0] in ("cpu", "cuda", "sim")
    if is_name or isinstance(target, Device):
        return resolve(target), None
    try:
        return None, parse_dtype(target)
    except TypeError:
        if isinstance(target, str):
            raise ValueError(f"{target!r} is neither a device nor a dtype of arrays") from None
        raise


# Of one value -------------------------------------------------------------------------------------


def empty(shape, dtype=None, *, device=None):
    """Return an Array with undefined elements. ValueError: a shape that makes no sense.

    >>> vg.empty((2, 3)).shape
    (2, 3)
    """
    return WAYS["empty"](*place_of(shape, dtype, device))


def place_of(shape, dtype, device):
    """Return the backend, the shape and the dtype of a new Array."""
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    return resolve(device).backend, parse_shape(shape, dtype.itemsize), dtype


def zeros(shape, dtype=None, *, device=None):
    """Return an Array of zeros. ValueError: a shape that makes no sense.

    >>> print(vg.zeros((2, 3)))
    [[0. 0. 0.]
     [0. 0. 0.]]
    """
    return of_value(*place_of(shape, dtype, device), 0)


def ones(shape, dtype=None, *, device=None):
    """Return an Array of ones. ValueError: a shape that makes no sense.

    >>> print(vg.ones((2, 3)))
    [[1. 1. 1.]
     [1. 1. 1.]]
    >>> vg.ones(3).dtype
    dtype('float32')
    """
    return of_value(*place_of(shape, dtype, device), 1)


def full(shape, fill_value, dtype=None, *, device=None):
    """Return an Array of one value, by default in the value's dtype.

    fill_value: a scalar, or an array or lists to be broadcast to the shape; an Array says the
    device, too. OverflowError: the dtype cannot hold it. ValueError: another shape, an
    Array of another device.

    >>> vg.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    >>> vg.full(2, 0.5).dtype
    dtype('float32')
    >>> vg.full((2, 2), [1, 2]).tolist()
    [[1, 2], [1, 2]]
    """
    if dtype is None and type(fill_value) is float:
        return of_value(*place_of(shape, None, device), fill_value)
    if isinstance(fill_value, LISTS) or getattr(fill_value, "ndim", 0):
        if begins_with_array(fill_value):
            fill_value = asarray(fill_value)
        if device is None and isinstance(fill_value, Array):
            device = fill_value.device
        return _of_values("full", resolve(device).backend, shape, dtype, fill_value)
    if type(fill_value) is Tracked:
        return _of_values("full", resolve(device).backend, shape, dtype, fill_value)
    value = parse_scalar(fill_value, "fill_value", complexes=True)
    if dtype is None:
        strong = getattr(fill_value, "dtype", None)
        dtype = promote_scalar(bool_dtype, value) if strong is None else strong
    return of_value(*place_of(shape, dtype, device), value)


def empty_like(x, /, dtype=None, *, device=None):
    """Return an Array like x with undefined elements; x is an Array or a NumPy array.

    >>> vg.empty_like(vg.ones((2, 3)), dtype="int8").dtype
    dtype('int8')
    """
    return WAYS["empty"](*_place_like(x, dtype, device))


def zeros_like(x, /, dtype=None, *, device=None):
    """Return an Array of zeros like x, which is an Array or a NumPy array.

    >>> vg.zeros_like(vg.asarray([5, 6])).tolist()
    [0, 0]
    """
    return of_value(*_place_like(x, dtype, device), 0)


def ones_like(x, /, dtype=None, *, device=None):
    """Return an Array of ones like x, which is an Array or a NumPy array.

    >>> vg.ones_like(vg.asarray([5, 6])).tolist()
    [1, 1]
    """
    return of_value(*_place_like(x, dtype, device), 1)


def full_like(x, /, fill_value, dtype=None, *, device=None):
    """Return an Array of one value like x, which is an Array or a NumPy array; see full.

    >>> vg.full_like(vg.asarray([1, 2, 3]), 9).tolist()
    [9, 9, 9]
    """
    place = _place_like(x, dtype, device)
    is_tracked = type(fill_value) is Tracked
    if is_tracked or isinstance(fill_value, LISTS) or getattr(fill_value, "ndim", 0):
        return _of_values("full_like", *place, fill_value)
    value = parse_scalar(fill_value, "fill_value", complexes=True)
    return of_value(*place, value)


def _of_values(name, backend, shape, dtype, values):
    """Return a new Array of a shape that values are broadcast to; dtype: None for theirs."""
    if not isinstance(values, Array):
        values = listed(values, backend) if is_list(values) else host_array(values)
        values = values if isinstance(values, Array) else from_host(values, backend)
    if not values.ndim:  # a number that is tracked
        values = transfer(values, backend.device)
    if values.backend is not backend:
        raise ValueError(f"{name}: fill_value is on {values.device}, not on {backend.device}")
    dtype = values.dtype if dtype is None else parse_dtype(dtype)
    shape = parse_shape(shape, dtype.itemsize)
    return copied(broadcast_to(astype(values, dtype, copy=False), shape))


def _place_like(x, dtype, device):
    """Return the backend, the shape and the dtype of a new Array like x."""
    if isinstance(x, Array):
        if dtype is None and device is None:
            return x.backend, x.shape, x.dtype
        device = x.device if device is None else device
    elif is_host(x):
        x = host_array(x)
    elif is_list(x) or is_scalar(x):
        x = listed(x, resolve(device).backend)
    else:
        kind = type(x).__name__
        raise TypeError(f"an array is needed, not {kind}; make one with asarray(...)")
    return place_of(x.shape, x.dtype if dtype is None else dtype, device)


def of_value(backend, shape, dtype, value):
    """Return a new Array of one value; on the CPU in one step, while nobody observes it."""
    if not backend.on_card and not observed():
        data = cpu_making.full(shape, dtype, value)
        if data is not None:
            return wrap(backend, data)
    return filled(WAYS["empty"](backend, shape, dtype), value)


def filled(array, value):
    WAYS["fill"](array.backend, array, value)
    return array
