"""Devices: what there is, which one is current, and what each can do.

"cpu" is NumPy; "cuda" (or "cuda:0"), "cuda:1", ... are the GPUs; "sim" is the simulated card, for
learning and testing. There is one Device object for each, and behind it the backend that computes.
The default device is PYVECGPU_DEVICE, else "cuda" where one works, else "cpu".
"""

import atexit
import ctypes
import operator
import re
import threading
from typing import NamedTuple

import numpy as np

from .backends.cpu import CpuBackend
from .backends.cuda import CudaBackend
from .errors import DeviceUnavailableError
from .native import library, settings
from .native.abi import Counter, DeviceAttribute, Memory
from .native.library import raise_last_error

__all__ = [
    "Device",
    "DeviceLimits",
    "LaunchRecord",
    "MemoryInfo",
    "counters",
    "device",
    "devices",
    "empty_cache",
    "is_available",
    "is_healthy",
    "launch_log",
    "memory_info",
    "set_memory_limit",
    "synchronize",
]

_lock = threading.RLock()
_devices = {}  # name: Device
forgetting = []  # what else lets go of things of a device that can be had again
_default = None  # the process's; a thread's `with device()` goes before it


class Device:
    """A place where arrays live and operations run: Device("cpu"), Device("cuda:1"), Device("sim").

    There is one object for each device, so devices are compared with == or `is`. `with` makes it
    the default for what this thread creates inside.
    ValueError: no such name. DeviceUnavailableError: the device is not there, and why.

    >>> vg.Device("cpu")
    Device('cpu')
    >>> vg.ones(3, device="cpu").device is vg.Device("cpu")
    True
    """

    __slots__ = ("_limits", "backend", "index", "name", "type")

    def __new__(cls, device, /):
        if isinstance(device, Device):
            return device
        if not isinstance(device, str):
            raise TypeError(f"a device is a Device or a name such as 'cuda:0', not {device!r}")
        match = re.fullmatch(r"(cpu|cuda|sim)(?::(0|[1-9][0-9]{0,5}))?", device)
        if match is None or (match[1] == "cpu" and match[2]):
            raise ValueError(f"no device is called {device!r}; there are 'cpu', 'cuda:0', 'sim:0'")
        kind, index = match[1], int(match[2] or 0)
        with _lock:
            if (kind, index) not in _devices:
                _devices[kind, index] = _open(object.__new__(cls), kind, index)
            return _devices[kind, index]

    def __str__(self):
        return "cpu" if self.type == "cpu" else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"Device({str(self)!r})"

    def __reduce__(self):
        return Device, (str(self),)

    def __enter__(self):
        _current.stack = (*_current.stack, self)
        return self

    def __exit__(self, *error):
        _current.stack = _current.stack[:-1]

    @property
    def limits(self):
        """The DeviceLimits; None for "cpu", which has none of them.

        >>> vg.Device("sim").limits.max_threads_per_block
        1024
        >>> print(vg.Device("cpu").limits)
        None
        """
        if self.type != "cpu" and self._limits is None:
            self._limits = DeviceLimits(
                *(
                    self.backend.attribute(DeviceAttribute[name.upper()])
                    for name in DeviceLimits._fields
                )
            )
        return self._limits


def _open(device, kind, index):
    """Fill in a new Device; DeviceUnavailableError if it is not there."""
    device.type, device.index, device._limits = kind, index, None
    if kind == "cpu":
        device.backend, device.name = CpuBackend(device), f"CPU (NumPy {np.__version__})"
        return device
    loaded = library.load(kind)
    count = _count(loaded)
    if index >= count:
        raise DeviceUnavailableError(f"there is no device {device}: {kind!r} has {count} of them")
    name = loaded.pvg_device_name(index)
    if name is None:
        raise_last_error(loaded)
    device.name = name.decode()
    device.backend = CudaBackend(device, loaded)
    _check_kernels(device, loaded)
    limit = settings.current().memory_limit
    if limit is not None and kind == "sim":  # the limit is meant for a GPU, which has more memory
        limit = min(limit, device.backend.memory_info()[Memory.MEMORY_TOTAL])
    if limit is not None and loaded.pvg_set_memory_limit(index, limit):
        try:
            raise_last_error(loaded)
        except ValueError as error:
            raise ValueError(f"PYVECGPU_MEMORY_LIMIT is {limit} bytes; {error}") from None
    return device


def _check_kernels(device, loaded):
    """DeviceUnavailableError if the library has no kernels that a card of this kind can run.

    CUDA itself says so no sooner than a kernel is launched, which is too late for a default device.
    """
    built_for = loaded.build_info()["architectures"]
    capability = tuple(
        device.backend.attribute(DeviceAttribute[f"COMPUTE_CAPABILITY_{part}"])
        for part in ("MAJOR", "MINOR")
    )
    if not any(runs(architecture, capability) for architecture in built_for.split()):
        major, minor = capability
        raise DeviceUnavailableError(
            f"{device}, {device.name}, has compute capability {major}.{minor}, and {loaded.path} "
            f"is built for {built_for}; build it with `make ARCHS={major}{minor}`"
        )


def runs(architecture, capability):
    """Whether a card runs kernels built for "80", "90a", "100f", "ptx75" or the simulated card."""
    form = re.fullmatch(r"(ptx)?(\d+)(\d)([af]?)", architecture)
    if form is None:
        return True
    ptx, major, minor, suffix = form.groups()
    built_for = int(major), int(minor)
    if suffix == "a":  # what one architecture alone has
        return capability == built_for
    if ptx and not suffix:  # compiled when it is loaded
        return capability >= built_for
    return capability[0] == built_for[0] and capability >= built_for


def _count(loaded):
    count = ctypes.c_int()
    if loaded.pvg_device_count(count):
        raise_last_error(loaded)
    return count.value


@atexit.register
def _stop_releasing():
    # What is still alive when Python exits goes with the process: by then CUDA may be gone already.
    for loaded in library.loaded():
        loaded.stop_releasing()


# The current device -------------------------------------------------------------------------------


class _Current(threading.local):
    stack = ()


_current = _Current()


def device(device, /):
    """Return the Device; `with vg.device("sim"):` makes it this thread's default inside.

    What it gives is what `device=` takes. ValueError, DeviceUnavailableError: as Device.

    >>> with vg.device("cpu"):
    ...     x = vg.zeros(3)
    >>> x.device
    Device('cpu')
    >>> vg.ones(3, device=vg.device("cpu")).device is x.device
    True
    """
    return Device(device)


def resolve(device):
    """Return the Device for a `device=` argument; None is the current one."""
    if device is not None:
        settings.current()
        return Device(device)
    if _current.stack:
        return _current.stack[-1]
    return _default or _find_default()


def _find_default():
    global _default
    name = settings.current().device
    if name is None:
        name = "cuda" if is_available("cuda") else "cpu"
    _default = Device(name)
    return _default


def is_available(device="cuda", /):
    """True if the device can be used here; never raises because it cannot.

    ValueError: no such name, or a PYVECGPU_* variable that makes no sense.
    DeviceUnavailableError: PYVECGPU_LIBRARY names a library that cannot be loaded.

    >>> vg.is_available("cpu")
    True
    >>> vg.is_available("cuda:99")
    False
    """
    try:
        Device(device)
    except DeviceUnavailableError:
        kind = str(device).partition(":")[0]
        is_loaded = any(loaded.device_type == kind for loaded in library.loaded())
        if not is_loaded and library.path_of(kind)[1]:
            raise  # someone asked for that library: to go on without it would hide the mistake
        return False
    return True


def devices():
    """Return all usable devices as a tuple of Device: the CPU, GPUs, then simulated cards.

    >>> vg.devices()[0]
    Device('cpu')
    """
    found = []
    for kind in ("cpu", "cuda", "sim"):
        if is_available(kind):
            found += siblings(Device(kind))
    return tuple(found)


def siblings(device):
    """Return all usable devices of a device's type."""
    count = 1 if device.type == "cpu" else _count(library.load(device.type))
    names = [f"{device.type}:{i}" for i in range(count)]
    return [device] if count == 1 else [Device(name) for name in names if is_available(name)]


def synchronize(device=None, /):
    """Wait for all work on a device (None: the current one); raises what kernels did wrong.

    CUDAError, DeviceLostError: a kernel failed.

    >>> x = vg.ones(4) + 1
    >>> vg.synchronize()
    >>> x.tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    resolve(device).backend.synchronize()


def is_healthy():
    """True until a kernel failed so that this process cannot use its device any more.

    >>> vg.is_healthy()
    True
    """
    return all(loaded.pvg_is_healthy() for loaded in library.loaded())


# Memory -------------------------------------------------------------------------------------------


class MemoryInfo(NamedTuple):
    """Memory of a device in bytes, and counts; None for what is not known, as mostly on "cpu".

    >>> info = vg.memory_info("sim")
    >>> info.used <= info.reserved <= info.total
    True
    """

    used: int | None  # in arrays
    reserved: int | None  # taken from the driver: used and cached
    peak: int | None  # largest `used` so far
    limit: int | None  # as set; None without one
    free: int | None  # free on the device
    total: int | None  # of the device
    blocks: int | None  # live allocations (a count)
    allocations: int | None  # allocations so far (a count)
    driver_calls: int | None  # cudaMalloc and cudaFree so far (a count)


def memory_info(device=None, /):
    """Return the MemoryInfo of a device (None: the current one).

    >>> before = vg.memory_info("sim").used
    >>> x = vg.zeros(1024, device="sim")
    >>> vg.memory_info("sim").used - before
    4096
    """
    backend = resolve(device).backend
    values = backend.memory_info()
    info = {f: values.get(Memory[f"MEMORY_{f.upper()}"]) for f in MemoryInfo._fields}
    return MemoryInfo(**info | {"limit": info["limit"] or None})


def empty_cache(device=None, /):
    """Give cached memory back to the driver, and streams that nobody holds; nothing on "cpu".

    >>> vg.empty_cache()
    """
    chosen = resolve(device)
    for forget in forgetting:
        forget(chosen)
    chosen.backend.empty_cache()


def set_memory_limit(limit, /, device=None):
    """Hold at most `limit` bytes on a device: an integer, or "512M", "4G"; None: no limit.

    ValueError: not positive, more than the device has, or a limit for "cpu". TypeError: no number.

    >>> vg.set_memory_limit("1G", device="sim")
    >>> vg.memory_info("sim").limit
    1073741824
    >>> vg.set_memory_limit(None, device="sim")
    """
    backend = resolve(device).backend
    if isinstance(limit, str):
        try:
            limit = settings.parse_bytes(limit)
        except ValueError as error:
            raise ValueError(f"the memory limit is {limit!r}; {error}") from None
    elif limit is not None:
        if isinstance(limit, bool):
            raise TypeError("a memory limit is a number of bytes, not a bool")
        limit = operator.index(limit)
        if not 0 < limit < 2**63:
            raise ValueError(f"a memory limit is a positive number of bytes, not {limit}")
    backend.set_memory_limit(limit or 0)


# Counters -----------------------------------------------------------------------------------------


class LaunchRecord(NamedTuple):
    """A kernel that was launched: its host symbol's offset in the library, how often, its name.

    >>> record = vg.LaunchRecord(0x40, 3, "add")
    >>> record.kernel, record.launches
    ('add', 3)
    """

    offset: int
    launches: int
    kernel: str


def counters(device=None, /):
    """Return counts since the library was loaded, over all its devices and threads, as a dict.

    launches, copies_to_device, bytes_to_device, copies_to_host, bytes_to_host, waits, live_arrays,
    canary_errors. All are 0 for "cpu", which has no library and where nothing is copied.

    >>> vg.counters("cpu")["copies_to_device"]
    0
    """
    counter = resolve(device).backend.counter
    return {code.name.removeprefix("COUNT_").lower(): counter(code) for code in Counter}


def launch_log(device=None, /):
    """Return the LaunchRecords of a device's library, kept while PYVECGPU_LAUNCH_LOG is set.

    >>> vg.launch_log("cpu")
    []
    """
    records = (line.split(" ", 2) for line in resolve(device).backend.launch_log().splitlines())
    return [LaunchRecord(int(offset, 16), int(count), name) for offset, count, name in records]


# Limits -------------------------------------------------------------------------------------------


class DeviceLimits(NamedTuple):
    """What a device can do, as the CUDA runtime gives it; memory in bytes, clocks in kHz.

    >>> limits = vg.Device("sim").limits
    >>> limits.warp_size, limits.max_threads_per_block
    (32, 1024)
    """

    max_threads_per_block: int
    max_block_dim_x: int
    max_block_dim_y: int
    max_block_dim_z: int
    max_grid_dim_x: int
    max_grid_dim_y: int
    max_grid_dim_z: int
    max_shared_memory_per_block: int
    max_shared_memory_per_block_optin: int
    max_shared_memory_per_multiprocessor: int
    reserved_shared_memory_per_block: int
    total_constant_memory: int
    warp_size: int
    multiprocessor_count: int
    max_threads_per_multiprocessor: int
    max_blocks_per_multiprocessor: int
    max_registers_per_block: int
    max_registers_per_multiprocessor: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int  # bits
    l2_cache_size: int
    compute_capability_major: int
    compute_capability_minor: int
    async_engine_count: int  # copy engines
    concurrent_kernels: int
    ecc_enabled: int
    integrated: int
    can_map_host_memory: int
    unified_addressing: int
    managed_memory: int
    cooperative_launch: int
    memory_pools_supported: int
    max_pitch: int
    texture_alignment: int
    pci_bus_id: int
    pci_device_id: int
    pci_domain_id: int
    compute_mode: int  # 0 default, 2 prohibited, 3 exclusive process
    kernel_exec_timeout: int
    single_to_double_precision_perf_ratio: int
    global_l1_cache_supported: int

    @property
    def compute_capability(self):
        """(major, minor), such as (9, 0).

        >>> vg.Device("sim").limits.compute_capability
        (7, 5)
        """
        return self.compute_capability_major, self.compute_capability_minor
