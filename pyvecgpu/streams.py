"""Streams: queues of a device's work that run beside each other, one's own and other libraries'.

Arrays remember which streams read and wrote them, so work on several streams is in the right order
without any waiting by hand.
"""

import collections
import contextlib
import ctypes
import itertools
import threading

from .array import Array
from .device import Device, forgetting, resolve

__all__ = ["Stream", "stream"]

POOL = 8  # streams of a device, given out in turn
KEPT = 32  # streams of other libraries that stay known

_lock = threading.Lock()
_pools = {}  # Device: (owners, a counter)
_known = collections.OrderedDict()  # (Device, address): (owner, the other library's object)


class Stream:
    """A queue of a device's work: vg.Stream(), vg.Stream(device="cuda:1"), or another library's.

    stream: None for one of pyvecgpu's own, of which a device has eight, given out in turn; or a
    stream of torch, CuPy, Numba or cuda.core, or the address of a cudaStream_t, which its owner
    keeps alive as long as arrays that were computed on it are used. device: None is the other
    library's, or the current one. The CPU has no streams: work on it is done at once.
    TypeError: no stream. DeviceUnavailableError: as Device.

    >>> s = vg.Stream()
    >>> s.synchronize()
    """

    __slots__ = ("_owner", "_theirs", "device")

    def __init__(self, stream=None, /, *, device=None):
        if isinstance(stream, Stream):
            self._owner, self._theirs, self.device = stream._owner, stream._theirs, stream.device
            return
        self._theirs = stream  # which lives as long
        self.device = _device_of(stream, device)
        if stream is not None:
            _address_of(stream)
        if self.device.type == "cpu":
            self._owner = None
        elif stream is None:
            self._owner = _own(self.device)
        else:
            self._owner = _wrapped(stream, self.device)

    @property
    def handle(self):
        """The address of the cudaStream_t, an int; None on the CPU."""
        if self._owner is None:
            return None
        return self.device.backend.functions.pvg_stream_handle(self._owner)

    def synchronize(self):
        """Wait until all work on the stream is done. CUDAError, DeviceLostError: it failed."""
        if self._owner is not None:
            backend = self.device.backend
            backend.check(backend.functions.pvg_stream_synchronize(self._owner))

    def __cuda_stream__(self):
        """Return (version of the protocol, address): how other libraries take a stream."""
        if self._owner is None:
            raise TypeError("the CPU has no CUDA streams")
        return 0, self.handle

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return self.device is other.device and self.handle == other.handle

    def __hash__(self):
        return hash((str(self.device), self.handle))

    def __repr__(self):
        where = "" if self._owner is None else f" at {self.handle:#x}"
        return f"<Stream of {self.device}{where}>"


@contextlib.contextmanager
def stream(stream=None, /, *, device=None):
    """Make a stream this thread's current one for work on its device: with vg.stream() as s: ...

    stream, device: as for Stream, or a Stream. Nothing waits at the end of the block. On the CPU
    the block runs as without it. ValueError: inside of a graph that is being recorded.

    >>> with vg.stream() as s:
    ...     x = vg.ones(3) * 2
    >>> x.tolist()
    [2.0, 2.0, 2.0]
    """
    chosen = Stream(stream, device=device)
    if chosen._owner is None:
        yield chosen
        return
    backend, index = chosen.device.backend, chosen.device.index
    functions = backend.functions
    before = functions.pvg_stream_current(index)
    backend.check(functions.pvg_stream_set_current(chosen._owner, index))
    try:
        yield chosen
    finally:
        if functions.pvg_stream_set_current(before, index):  # it is gone by now
            functions.pvg_stream_set_current(None, index)


def release(device):
    """Wait for the streams of a device that nobody has in a Stream, and forget them."""
    with _lock:
        for key in [key for key in _known if key[0] is device]:
            _forget(key)
        _pools.pop(device, None)  # last: ours may be among those that came as another library's


forgetting.append(release)


def _forget(key):
    """Let another library's stream go, after what stands for it, whose end waits for the stream."""
    owner, theirs = _known.pop(key)
    del owner
    del theirs


def _own(device):
    """Return the owner of the next of a device's own streams."""
    with _lock:
        owners, counter = _pools.setdefault(device, ([], itertools.count()))
        place = next(counter) % POOL
        if place == len(owners):
            owner = device.backend.functions.pvg_stream_create(device.index)
            if not owner:
                device.backend.fail()
            owners.append(owner)
        return owners[place % len(owners)]


def _wrapped(stream, device):
    """Return the owner of what stands for another library's stream, which is kept alive."""
    address = _address_of(stream) or 1  # of CUDA's default stream
    with _lock:
        known = _known.pop((device, address), None)
        owner = known[0] if known else None
        if owner is None:
            owner = device.backend.functions.pvg_stream_wrap(address, device.index)
            if not owner:
                device.backend.fail()
        _known[device, address] = owner, stream
        if len(_known) > KEPT:
            _forget(next(iter(_known)))
        return owner


def _address_of(stream):
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):  # of torch; of CuPy; of Numba and PyCUDA
        address = getattr(stream, name, None)
        if isinstance(address, ctypes.c_void_p):
            address = address.value or 0
        if isinstance(address, int):
            return address
    raise TypeError(
        "a stream is a Stream, one of torch, CuPy or Numba, or the address of a cudaStream_t, not "
        f"{type(stream).__name__}"
    )


def _device_of(stream, device):
    """Return the device that is meant: the one that is named, the stream's, or the current one."""
    if isinstance(stream, (Array, Device, str)):
        raise TypeError(f"a stream is needed, not {type(stream).__name__}: device= names a device")
    if device is not None or stream is None:
        return resolve(device)
    theirs = getattr(stream, "device", None)  # torch's has an index, CuPy's stream a device_id
    number = getattr(theirs, "index", getattr(stream, "device_id", None))
    if isinstance(number, int) and number >= 0:
        return Device(f"cuda:{number}")
    return resolve(None)
