"""DLPack: arrays handed to other libraries and taken from them, without a copy where both can reach
the memory.

A simulated card's memory is the host's, and called so; what the card has yet to do is waited for
then. On a GPU the other library's stream is made to wait, and the host waits for nothing. What the
other library writes is none of this one's: `_version` does not see it.
"""

import numpy as np

from ..array import Tracked, wrap
from ..device import Device, is_available
from ..dtypes import bfloat16, host_dtype
from ..errors import DeviceUnavailableError
from ..native import capsules
from .arguments import host_array, parse_int
from .values import copied, to_host

HOST, GPU, MANAGED = 1, 2, 13  # kDLCPU, kDLCUDA and kDLCUDAManaged
VERSION = (1, 1)  # of DLPack: the newest one that is known here
_gpus = {}  # those found to be usable, by number
LEGACY = 1  # CUDA's default stream, in the numbers of DLPack and the CUDA array interface


def place_of(array):
    """Return DLPack's number for the kind of memory, and which of its kind."""
    device = array.device
    return (GPU, device.index) if device.type == "cuda" else (HOST, 0)


def hand_over(array, stream, max_version, dl_device, copy):
    """Return the values as a capsule of DLPack; see Array.__dlpack__."""
    if type(array) is Tracked:
        raise BufferError("DLPack knows no gradients: hand over x.detach()")
    place = place_of(array)
    wanted = place if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    versioned = max_version is not None and max_version[0] >= 1
    if wanted == place and place[0] == GPU:
        return _of_gpu(array, stream, versioned, copy)
    if wanted != (HOST, 0):
        raise BufferError(
            f"DLPack: an array on {array.device} is handed over there or on the host, "
            f"dl_device=(1, 0), not on {wanted}; bring it to another device with .to(...)"
        )
    if stream is not None:
        raise BufferError(f"DLPack: the host has no streams; stream is None, not {stream!r}")
    if array.device.type == "sim":
        return _of_card(copied(array) if copy else array, versioned, copy, True)
    return _of_host(array, versioned, copy)


def _of_gpu(array, stream, versioned, copy):
    """Return a capsule of a GPU's array, in which `stream` finds the values."""
    stream = LEGACY if stream is None else parse_int(stream, "a stream of DLPack")
    if stream == 0 or stream < -1:
        raise ValueError(
            f"DLPack: a CUDA stream is None, -1 for no order, 1, 2 or an address, not {stream}"
        )
    array = copied(array) if copy else array
    if stream != -1:
        lend(array, stream)
    return _of_card(array, versioned, copy, False)


def _of_card(array, versioned, copy, on_host):
    backend = array.backend
    functions = backend.functions
    if on_host:
        backend.synchronize()
    if not versioned and functions.pvg_array_is_readonly(array.raw):
        raise BufferError(
            "DLPack before version 1 has no read-only arrays: pass max_version=(1, 0), or x.copy()"
        )
    flags = capsules.IS_COPIED if copy else 0
    tensor = functions.pvg_dlpack_export(array.raw, versioned, on_host, flags)
    if not tensor:
        backend.fail()
    return capsules.new(tensor, versioned, backend.library)


def _of_host(array, versioned, copy):
    """Return NumPy's capsule of the values."""
    is_elsewhere = array.device.type != "cpu"
    if copy is False and is_elsewhere:
        raise BufferError(f"DLPack: values on {array.device} have to be copied, and copy is False")
    values = to_host(array)
    if copy and not is_elsewhere:
        values = values.copy()
    is_bfloat16 = array.dtype is bfloat16
    if is_bfloat16:  # which NumPy does not know
        values = values.view(np.uint16)
    capsule = values.__dlpack__(max_version=VERSION) if versioned else values.__dlpack__()
    if is_bfloat16:
        capsules.set_dtype(capsule, capsules.BFLOAT16)
    if copy or is_elsewhere:
        capsules.add_flag(capsule, capsules.IS_COPIED)
    return capsule


def lend(array, stream):
    """Let a stream of another library wait for the values of a GPU's array."""
    array.backend.check(array.backend.functions.pvg_array_lend(array.raw, stream))


# Arrays of others ---------------------------------------------------------------------------------


def _ask(x, **options):
    """Return the capsule that another library gives; one from before version 1 is asked as then."""
    try:
        return x.__dlpack__(max_version=VERSION, **options)
    except TypeError:
        if "dl_device" in options:
            raise BufferError(
                "from_dlpack: the values are not on the host; copy them there first"
            ) from None
        return x.__dlpack__(**options)


def on_gpu(x, device):
    """Return another library's array as an Array of the same memory, which is the GPU `device`'s.

    ValueError: it is not there, or was taken before. TypeError: a dtype of no array.
    """
    backend = device.backend
    functions, index = backend.functions, device.index
    current = functions.pvg_stream_handle(functions.pvg_stream_current(index))
    capsule = _ask(x, stream=current or LEGACY)
    tensor, versioned = capsules.content(capsule)
    capsules.mark(capsule, versioned, True)  # before there is a second owner
    data = functions.pvg_dlpack_import(tensor, versioned, index)
    if not data:
        capsules.mark(capsule, versioned, False)
    return wrap(backend, data)


class _Taken:
    """A capsule that numpy.from_dlpack takes."""

    def __init__(self, capsule, place):
        self.capsule, self.place = capsule, place

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return self.place


def on_host(x, bring=False):
    """Return another library's array as an ndarray of the same memory; bring: of a copy there.

    BufferError: it is not there, and its library does not bring it.
    """
    capsule = _ask(x, dl_device=(HOST, 0)) if bring else _ask(x)
    place = (HOST, 0) if bring else x.__dlpack_device__()
    if capsules.dtype_of(capsule) != capsules.BFLOAT16:
        return host_array(np.from_dlpack(_Taken(capsule, place)))
    dtype = host_dtype(bfloat16)
    capsules.set_dtype(capsule, capsules.UINT16)
    return np.from_dlpack(_Taken(capsule, place)).view(dtype)


def gpu_of(x):
    """Return the GPU that another library's array is on; None: on the host, or none to be used."""
    kind, number = x.__dlpack_device__()
    if kind not in (GPU, MANAGED):
        return None
    if number not in _gpus:
        name = f"cuda:{number}"
        try:
            if not is_available(name):
                return None
        except DeviceUnavailableError:
            return None
        _gpus[number] = Device(name)
    return _gpus[number]
