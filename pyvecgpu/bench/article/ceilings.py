"""The ceilings: how fast memory and arithmetic go on this machine when nothing else is asked of it.

Bandwidth is the triad a = b + 3 c of the STREAM benchmark on arrays of float64 that no cache holds,
24 bytes an element. The peak is multiply-adds of float32 in registers. The CPU's are in loops.c and
the GPU's in ceilings.cu. Without nvcc, and in quick runs, the GPU's bandwidth is that of the
library's own addition, which moves the same bytes, and its peak is left out.
"""

import time
from ctypes import c_double, c_int, c_int64, c_void_p
from functools import partial
from pathlib import Path

import numpy as np

import pyvecgpu as vg

from .. import compiled
from ..timing import MOST_CALLS, relative_error
from .budget import Task

BANDWIDTH, PEAK = "bandwidth", "peak"
ONE_CORE, ALL_CORES, GPU = "CPU, one core", "CPU, all cores", "GPU"
ERROR_ALLOWED = 1e-6
# float64 elements of an array: the full size is beyond any cache
LENGTHS = {"full": 2**26, "quick": 2**23, "tiny": 2**12}
# multiply-adds of each chain: of a CPU's thread, of a GPU's
STEPS = {"full": (20_000_000, 200_000), "quick": (1_000_000, 20_000), "tiny": (1000, 1000)}
THREADS = 256  # of the GPU's peak: in a block; and its blocks on a multiprocessor:
BLOCKS = 16
CHECKED = 2**20  # elements at either end


def repeat(function, calls):
    """Return the seconds that so many calls take."""
    began = time.perf_counter()
    for _ in range(calls):
        function()
    return time.perf_counter() - began


def both_ends(values):
    return np.concatenate([values[:CHECKED], values[-CHECKED:]])


def triad_error(a):
    """Return the error of a = 2 + 3 * 0.5, at both ends."""
    return relative_error(both_ends(a), np.full(2 * min(CHECKED, len(a)), 3.5))


class CpuTriad(Task):
    """The triad on so many cores."""

    table, unit, note = BANDWIDTH, "B/s", "STREAM triad"

    def __init__(self, loops, length, cores):
        self.loops, self.cores = loops, cores
        self.work = 24 * length
        self.arrays = [np.empty(length) for _ in range(3)]
        for array, value in zip(self.arrays, (np.nan, 2.0, 0.5), strict=True):
            loops.fill(array, value)

    def run(self, calls):
        return repeat(lambda: self.loops.triad(*self.arrays, 3.0, self.cores), calls)

    def error(self):
        return triad_error(self.arrays[0])


class CpuPeak(Task):
    """Multiply-adds on so many cores."""

    table, unit, note = PEAK, "FLOP/s", "multiply-adds in registers"

    def __init__(self, loops, steps, cores):
        self.loops, self.steps, self.cores = loops, steps, cores
        self.work = loops.multiply_add_work(steps, cores)
        self.result = np.nan

    def run(self, calls):
        def call():
            self.result = self.loops.multiply_add(self.steps, self.cores)

        return repeat(call, calls)

    def error(self):
        return abs(self.result - 2.0)


class GpuCeilings:
    """The functions of ceilings.cu for the GPU of a libraries.Pyvecgpu. OSError: no nvcc."""

    def __init__(self, library):
        self.library, self.device = library, library.device
        self.compiled = compiled.load_cuda(Path(__file__).with_name("ceilings.cu"))
        pointers = [c_void_p, c_void_p, c_void_p]
        self.compiled.ceilings_triad.argtypes = [c_void_p, c_int64, *pointers, c_double]
        self.compiled.ceilings_multiply_add.argtypes = [c_void_p, c_int, c_int, c_int, c_void_p]
        self._check(self.compiled.ceilings_open(self.device.index))
        native = self.device.backend.library
        self.stream = native.pvg_stream_handle(native.pvg_stream_current(self.device.index))

    def _check(self, code):
        if code:
            raise OSError(f"ceilings.cu failed with CUDA error {code}")

    def triad(self, a, b, c, scalar):
        """Enqueue a = b + scalar * c on Arrays of float64, an even number of elements."""
        pointers = [self.device.backend.pointer(array.raw) for array in (a, b, c)]
        self._check(self.compiled.ceilings_triad(self.stream, a.size, *pointers, scalar))

    def multiply_add(self, steps, result):
        """Enqueue multiply-adds in result.size threads; each element of `result` becomes 2."""
        pointer, blocks = self.device.backend.pointer(result.raw), result.size // THREADS
        code = self.compiled.ceilings_multiply_add(self.stream, blocks, THREADS, steps, pointer)
        self._check(code)

    def multiply_add_work(self, steps, threads):
        return self.compiled.ceilings_multiply_add_work() * steps * threads


def device_seconds(library, function, calls):
    """Return the seconds that so many calls of a function that enqueues work take the device."""
    return library.device_seconds(lambda: repeat(function, calls), 20e-6 * calls)


class GpuTriad(Task):
    """The triad, or without GpuCeilings an addition, on a GPU or on the simulated card."""

    table, unit, note = BANDWIDTH, "B/s", "STREAM triad"
    most_calls = MOST_CALLS

    def __init__(self, library, ceilings, length):
        self.library, self.ceilings = library, ceilings
        self.work = 24 * length
        c = 0.5 if ceilings is not None else 1.5
        if ceilings is None:
            self.note = "an addition, which moves the same bytes"
        self.arrays = [
            vg.full(length, value, dtype="float64", device=library.device)
            for value in (np.nan, 2.0, c)
        ]

    def run(self, calls):
        a, b, c = self.arrays
        if self.ceilings is None:
            return device_seconds(self.library, lambda: vg.add(b, c, out=a), calls)
        return device_seconds(self.library, lambda: self.ceilings.triad(a, b, c, 3.0), calls)

    def error(self):
        return triad_error(self.arrays[0].numpy())


class GpuPeak(Task):
    """Multiply-adds in as many threads as a GPU holds, and twice that."""

    table, unit, note = PEAK, "FLOP/s", "multiply-adds in registers"
    most_calls = MOST_CALLS

    def __init__(self, library, ceilings, steps):
        self.library, self.ceilings, self.steps = library, ceilings, steps
        threads = THREADS * BLOCKS * library.device.limits.multiprocessor_count
        self.work = ceilings.multiply_add_work(steps, threads)
        self.result = vg.full(threads, np.nan, dtype="float32", device=library.device)

    def run(self, calls):
        call = lambda: self.ceilings.multiply_add(self.steps, self.result)  # noqa: E731
        return device_seconds(self.library, call, calls)

    def error(self):
        return relative_error(self.result.numpy(), np.full(self.result.size, 2.0))


def cpu_tasks(loops, size):
    """Yield (where, function that returns the Task) for the CPU's ceilings."""
    for where, cores in ((ONE_CORE, 1), (ALL_CORES, loops.cores)):
        yield where, partial(CpuTriad, loops, LENGTHS[size], cores)
        yield where, partial(CpuPeak, loops, STEPS[size][0], cores)


def gpu_tasks(library, ceilings, size):
    """Yield the same for a GPU's; ceilings: GpuCeilings, or None without them."""
    yield GPU, partial(GpuTriad, library, ceilings, LENGTHS[size])
    if ceilings is not None:
        yield GPU, partial(GpuPeak, library, ceilings, STEPS[size][1])
