"""DLPack: arrays handed to other libraries and taken from them, where they lie on the host; and
other ways to make an array of what others have.

What is handed over shares its memory. The other library reads it at once, so what a simulated card
has yet to do is waited for; writes by the other library are none of this one's: `_version` does not
see them, and later operations of a simulated card do not wait for them.
"""

import numpy as np

from ..array import Array
from ..device import Device, resolve
from ..dtypes import bfloat16, float64, host_dtype, parse_dtype
from .arguments import from_host, host_array
from .creation import asarray
from .layout import contiguous, reshape, transfer
from .values import copied, to_host

__all__ = ["asanyarray", "ascontiguousarray", "from_dlpack", "frombuffer", "fromiter"]

HOST, GPU = 1, 2  # kDLCPU and kDLCUDA


def place_of(array):
    """Return DLPack's number for the kind of memory, and which of its kind."""
    device = array.device
    return (GPU, device.index) if device.type == "cuda" else (HOST, 0)


def hand_over(array, stream, max_version, dl_device, copy):
    """Return the values as a capsule of DLPack; see Array.__dlpack__."""
    kind, number = place_of(array) if dl_device is None else dl_device
    if (int(kind), number) != (HOST, 0):
        raise BufferError(
            f"DLPack: arrays are handed over on the host, dl_device=(1, 0), not on {array.device}; "
            "copy them there with .cpu()"
        )
    if stream is not None:
        raise BufferError(f"DLPack: the host has no streams; stream is None, not {stream!r}")
    if array.dtype is bfloat16:
        raise BufferError("DLPack: NumPy hands over no bfloat16; make it .astype('float32')")
    options = {} if max_version is None else {"max_version": max_version}
    return _host_view(array, copy).__dlpack__(**options)


def _host_view(array, copy):
    """Return the values as an ndarray: of the same memory if the host can reach that."""
    shared = array.device.type != "cuda"
    if copy is False and not shared:
        raise BufferError(f"DLPack: values on {array.device} have to be copied, and copy is False")
    if copy or not shared:
        return np.array(to_host(array), order="C")
    if array.device.type == "cpu":
        return array.data
    if not array.size:  # nor has it an address
        return np.empty(array.shape, array.dtype)
    return np.asarray(_Memory(array))


class _Memory:
    """The memory of a simulated card's array, which lives as long as what NumPy makes of this."""

    def __init__(self, array):
        array.backend.synchronize()
        self.array = array
        self.__array_interface__ = {
            "version": 3,
            "typestr": array.dtype.str,
            "shape": array.shape,
            "strides": array.strides,
            "data": (array.backend.pointer(array.data), False),
        }


def from_dlpack(x, /, *, device=None, copy=None):
    """Return an Array with the values of another library's array, by DLPack.

    Values on the host share their memory with an Array on the CPU device, which copy=True prevents;
    other devices get a copy. device: None is the CPU, an Array's own device for an Array.
    BufferError: a copy is needed and copy is False, or the values are not on the host and their
    library does not bring them there. TypeError: x has no __dlpack__, or a dtype of no array.

    >>> values = np.arange(3.0)
    >>> x = vg.from_dlpack(values, device="cpu")
    >>> values[0] = 9
    >>> x.tolist()
    [9.0, 1.0, 2.0]
    """
    if isinstance(x, Array):
        return _of_array(x, device, copy)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack takes arrays with __dlpack__, not {type(x).__name__}")
    target = Device("cpu") if device is None else resolve(device)
    place = x.__dlpack_device__()
    on_host = int(place[0]) == HOST
    if copy is False and not (on_host and target.type == "cpu"):
        raise BufferError(f"from_dlpack: values have to be copied to {target}, and copy is False")
    values = host_array(np.from_dlpack(x) if on_host else _brought_to_host(x))
    if target.type == "cpu" and not copy:
        return from_host(values, target.backend)
    return asarray(values, device=target)


def _of_array(x, device, copy):
    target = x.device if device is None else resolve(device)
    if copy is False and target is not x.device:
        raise BufferError(f"from_dlpack: {x.device} to {target} needs a copy, and copy is False")
    result = transfer(x, target)
    return copied(result) if copy and result is x else result


def _brought_to_host(x):
    """Return the values of an array of another device as an ndarray."""
    try:
        return np.from_dlpack(x, device="cpu")
    except TypeError:  # a NumPy or a library that does not know how to ask
        raise BufferError(
            "from_dlpack: the values are not on the host; copy them there first"
        ) from None


# NumPy's other ways to make an array of something -------------------------------------------------


def asanyarray(obj, /, dtype=None, *, device=None, copy=None):
    """Return asarray(obj): there are no subclasses of Array.

    >>> vg.asanyarray([1, 2]).tolist()
    [1, 2]
    """
    return asarray(obj, dtype, device=device, copy=copy)


def ascontiguousarray(obj, /, dtype=None, *, device=None):
    """Return asarray(obj) with its elements in C order without gaps, and at least one axis.

    >>> vg.ascontiguousarray(vg.ones((2, 3)).T).strides
    (8, 4)
    """
    array = contiguous(asarray(obj, dtype, device=device))
    return array if array.ndim else reshape(array, (1,))


def frombuffer(buffer, dtype=None, count=-1, offset=0, *, device=None):
    r"""Return a new 1-D Array of the bytes of an object, as numpy.frombuffer reads them.

    dtype: by default float64, as NumPy's. ValueError: not that many bytes. TypeError: no buffer, or
    a dtype of no array.

    >>> vg.frombuffer(b"\x01\x02\x03", dtype="uint8").tolist()
    [1, 2, 3]
    """
    dtype = host_dtype(float64 if dtype is None else parse_dtype(dtype))
    return asarray(np.frombuffer(buffer, dtype, count, offset), device=device)


def fromiter(iterable, dtype, count=-1, *, device=None):
    """Return a new 1-D Array of the numbers that an iterable gives, `count` of them or all.

    ValueError: it gives fewer.

    >>> vg.fromiter((n * n for n in range(4)), "int32").tolist()
    [0, 1, 4, 9]
    """
    dtype = host_dtype(parse_dtype(dtype))
    return asarray(np.fromiter(iterable, dtype, count), device=device)
