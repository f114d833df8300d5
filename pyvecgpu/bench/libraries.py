"""What is timed: pyvecgpu, another build of it, torch and CuPy, behind the same few methods.

Each library works on its own default stream and is timed with its own device events. Before the
first event it gets some work to chew on (`fill`), so that the host runs ahead and the events see
the device's time and not the interpreter's. On the CPU the clock is the host's.
"""

import importlib
import importlib.util
import math
import sys
import time
from ctypes import byref, c_double
from pathlib import Path

import numpy as np

import pyvecgpu as vg

from .timing import BFLOAT16

FILL = 2**28  # float32 elements, multiplied in place: about half a millisecond on an H200


class Library:
    """A library on a device: its functions in `module`, and methods to move data and tell time.

    writes_as: the library whose calls it takes, which is itself but for another build.
    """

    name = writes_as = ""
    runs_ahead = True  # calls return before the device is done, whose own clock tells its time

    def __init__(self, module):
        self.module = module
        self.filler = None
        self.fill_seconds = 0.0

    def put(self, host, dtype=None):
        """Return a new device array with the values of a NumPy array, by default in its dtype."""
        raise NotImplementedError

    def get(self, array):
        """Return the values of a device array as a NumPy array."""
        raise NotImplementedError

    def synchronize(self):
        """Wait for all work of the library."""
        raise NotImplementedError

    def mark(self, which):
        """Record event 0 (start) or 1 (stop)."""
        raise NotImplementedError

    def elapsed(self):
        """Wait for event 1 and return the seconds since event 0."""
        raise NotImplementedError

    def fill(self):
        """Enqueue work that keeps the device busy for `fill_seconds`."""
        raise NotImplementedError

    def recorded(self, work):
        """Return a function that does the same work again, and whether it costs the host nothing.

        Where a library can, the work is recorded as a CUDA graph.
        """
        return work, False

    def allow_tf32(self, allowed):
        """Let products of float32 be rounded to TF32 where calls cannot say so themselves."""

    def empty_cache(self):
        """Give back memory that is kept for later, as after a call that failed."""

    def prepare(self, filler=None):
        """Make the filler, unless there is a large array of float32 to fill with, and time it."""
        self.filler = self.put(np.ones(FILL, np.float32)) if filler is None else filler
        for _ in range(3):
            self.mark(0)
            self.fill()
            self.mark(1)
            self.fill_seconds = max(1e-6, self.elapsed())

    def device_seconds(self, work, host_seconds):
        """Return the seconds that the device takes for what work() enqueues in `host_seconds`."""
        if self.filler is not None:
            for _ in range(math.ceil(1.5 * host_seconds / self.fill_seconds)):
                self.fill()
        self.mark(0)
        work()
        self.mark(1)
        return self.elapsed()


class Pyvecgpu(Library):
    """pyvecgpu on a GPU or on the simulated card; of another build, its module and its device."""

    name = writes_as = "pyvecgpu"

    def __init__(self, device, module=vg):
        super().__init__(module)
        self.device = device
        self.backend = device.backend
        try:
            self.functions = self.backend.functions
        except AttributeError:  # an older build's backend has them in its library alone
            self.functions = self.backend.library
        create = self.functions.pvg_event_create
        self.events = [self._made(create(device.index)) for _ in range(2)]

    def recorded(self, work):
        if not hasattr(self.backend, "record"):  # an older build's
            return work, False
        return self.backend.record(work), True

    def empty_cache(self):
        self.module.empty_cache(self.device)

    def _made(self, handle):
        if not handle:
            self.backend.fail()
        return handle

    def put(self, host, dtype=None):
        array = self.module.asarray(host, device=self.device)
        return array if dtype is None else self.module.astype(array, dtype, copy=False)

    def get(self, array):
        if array.dtype == self.module.bfloat16:  # NumPy has none
            array = self.module.astype(array, self.module.float32)
        return array.numpy()

    def synchronize(self):
        self.module.synchronize(self.device)

    def mark(self, which):
        stream = self._made(self.functions.pvg_stream_current(self.device.index))
        self.backend.check(self.functions.pvg_event_record(self.events[which], stream))

    def elapsed(self):
        library, (start, stop) = self.backend.library, self.events
        milliseconds = c_double()
        self.backend.check(library.pvg_event_synchronize(stop))
        self.backend.check(library.pvg_event_elapsed(start, stop, byref(milliseconds)))
        return milliseconds.value * 1e-3

    def fill(self):
        self.module.multiply(self.filler, 1.0, out=self.filler)


class PyvecgpuOnCpu(Library):
    """pyvecgpu on the CPU, where every call is done when it returns."""

    name = writes_as = "pyvecgpu"
    runs_ahead = False

    def __init__(self, device, module=vg):
        super().__init__(module)
        self.device = device
        self.marks = [0.0, 0.0]

    def put(self, host, dtype=None):
        array = self.module.asarray(host, device=self.device)
        return array if dtype is None else self.module.astype(array, dtype, copy=False)

    def get(self, array):
        if array.dtype == self.module.bfloat16:
            array = self.module.astype(array, self.module.float32)
        return array.numpy()

    def synchronize(self):
        pass

    def mark(self, which):
        self.marks[which] = time.perf_counter()

    def elapsed(self):
        return self.marks[1] - self.marks[0]


class Torch(Library):
    """PyTorch, eager, with products in float32 proper (TF32 off)."""

    name = writes_as = "torch"

    def __init__(self, index):
        torch = importlib.import_module("torch")
        super().__init__(torch)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False  # of convolutions, where it is torch's default
        torch.cuda.set_device(index)
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def put(self, host, dtype=None):
        tensor = self.module.from_numpy(np.ascontiguousarray(host)).cuda()
        return tensor.bfloat16() if dtype == BFLOAT16 else tensor

    def get(self, array):
        return (array.float() if array.dtype == self.module.bfloat16 else array).cpu().numpy()

    def recorded(self, work):
        graph = self.module.cuda.CUDAGraph()
        with self.module.cuda.graph(graph, stream=self.module.cuda.Stream()):
            work()
        return graph.replay, True

    def synchronize(self):
        self.module.cuda.synchronize()

    def mark(self, which):
        self.events[which].record()

    def elapsed(self):
        self.events[1].synchronize()
        return self.events[0].elapsed_time(self.events[1]) * 1e-3

    def fill(self):
        self.filler.mul_(1.0)

    def allow_tf32(self, allowed):
        self.module.backends.cuda.matmul.allow_tf32 = allowed
        self.module.backends.cudnn.allow_tf32 = allowed

    def empty_cache(self):
        self.module.cuda.empty_cache()


class Cupy(Library):
    """CuPy as it comes: products in float32 proper."""

    name = writes_as = "cupy"

    def __init__(self, index):
        cupy = importlib.import_module("cupy")
        super().__init__(cupy)
        cupy.cuda.Device(index).use()
        self.events = [cupy.cuda.Event() for _ in range(2)]

    def put(self, host, dtype=None):
        return self.module.asarray(host)

    def get(self, array):
        return self.module.asnumpy(array)

    def synchronize(self):
        self.module.cuda.Device().synchronize()

    def mark(self, which):
        self.events[which].record()

    def elapsed(self):
        self.events[1].synchronize()
        return self.module.cuda.get_elapsed_time(*self.events) * 1e-3

    def fill(self):
        self.module.multiply(self.filler, self.module.float32(1), out=self.filler)


PEERS = {"torch": Torch, "cupy": Cupy}

# Another build ------------------------------------------------------------------------------------

AGAINST = "against"  # its name among the libraries


def package_in(folder):
    """Return where the package of a checkout is, or the folder itself. ImportError: nowhere."""
    for place in (Path(folder) / "pyvecgpu", Path(folder)):
        if (place / "dtypes.py").is_file():
            return place.resolve()
    raise ImportError(f"there is no package pyvecgpu in {folder}")


def open_against(folder, device):
    """Return the pyvecgpu of another folder as one more library, on the same device.

    Its package and its C library are loaded beside ours, under another name. ImportError: there is
    none, or it has no such device.
    """
    package = package_in(folder)
    name = f"pyvecgpu_{AGAINST}"
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        its_device = module.zeros(0, device=str(device)).device
    except RuntimeError as error:
        raise ImportError(f"the pyvecgpu in {folder} has no device {device}: {error}") from error
    kind = PyvecgpuOnCpu if device.type == "cpu" else Pyvecgpu
    library = kind(its_device, module)
    library.name = AGAINST
    return library


def open_libraries(device, peers, quick, against=None):
    """Return pyvecgpu on the device, on a GPU the peers named, and another build of pyvecgpu.

    against: its folder, or None. ImportError: a peer is missing, or there is no package. quick:
    without the work that keeps a GPU busy until the first event.
    """
    others = [] if against is None else [open_against(against, device)]
    if device.type == "cpu":
        return [PyvecgpuOnCpu(device), *others]
    libraries = [Pyvecgpu(device), *(PEERS[name](device.index) for name in peers), *others]
    if device.type == "cuda" and not quick:
        for library in libraries:
            library.prepare()
    return libraries
