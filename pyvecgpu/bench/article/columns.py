"""The columns of the article's tables: who does the work, and in which precision.

A C loop on one core and on all (loops.c); NumPy; the GPU's kernel alone, on operands that are there
already, by the device's own clock; and the GPU with the way there and back, from NumPy arrays to a
NumPy array. All of them write to memory that exists before the clock starts.
"""

import functools
import time

import numpy as np

import pyvecgpu as vg

from ..timing import MOST_CALLS
from .budget import Task

PRECISIONS = ("float32", "float64")  # that NumPy and the library compute in
# Those that products of float32 have besides the default one, on a card (functions/linalg.py).
MATMUL_PRECISIONS = ("ieee", "fast32", "tf32", "bf16", "fp16")


class OnHost(Task):
    """A function (a, b, out, calls) on the host's arrays."""

    def __init__(self, case, dtype, function):
        self.case, self.function = case, function
        self.a, self.b, self.out = case.arrays(dtype)
        self.cores = 0.0  # that the last run kept busy
        case.problem.poison(self.out)

    def run(self, calls):
        began, processor_began = time.perf_counter(), time.process_time()
        self.function(self.a, self.b, self.out, calls)
        seconds = time.perf_counter() - began
        self.cores = (time.process_time() - processor_began) / seconds
        return seconds

    def error(self):
        return self.case.problem.error(self.a, self.b, self.out.__getitem__)


class OnDevice(Task):
    """A function of pyvecgpu on device arrays, by device events."""

    most_calls = MOST_CALLS

    def __init__(self, case, dtype, library, options):
        self.case, self.library = case, library
        self.function = functools.partial(getattr(vg, case.problem.function), **options)
        self.hosts = case.arrays(dtype)[:2]
        self.a, self.b = (library.put(host) for host in self.hosts)
        self.out = vg.full(case.shape, np.nan, dtype=dtype, device=library.device)
        self.host_seconds = self.enqueue(1)  # that a call keeps the host busy

    def enqueue(self, calls):
        began = time.perf_counter()
        for _ in range(calls):
            self.function(self.a, self.b, out=self.out)
        return time.perf_counter() - began

    def run(self, calls):
        enqueued = []
        seconds = self.library.device_seconds(
            lambda: enqueued.append(self.enqueue(calls)), self.host_seconds * calls
        )
        self.host_seconds = enqueued[0] / calls
        return seconds

    def error(self):
        get = lambda rows: self.out[rows].numpy()  # noqa: E731
        return self.case.problem.error(*self.hosts, get)


def repeated(function):
    """Return a function (a, b, out, calls) that calls function(a, b, out=out) so often."""

    def run(a, b, out, calls):
        for _ in range(calls):
            function(a, b, out=out)

    return run


class Column:
    """One column: its name, the dtype of its arrays, `begin(case)` for its Task, what it needs.

    kind: "loop", "numpy", "kernel" or "transfers". precision: of a product that is not computed as
    the dtype has it, its name; else the dtype. host_arrays, device_arrays: how many arrays of
    the problem's size a cell needs, operands and result counted.
    """

    def __init__(self, name, kind, dtype, begin, precision=None, host_arrays=3, device_arrays=0):
        self.precision = precision or dtype
        self.name, self.kind, self.dtype, self.begin = name, kind, dtype, begin
        self.host_arrays, self.device_arrays = host_arrays, device_arrays


def columns(problem, precisions, loops, library):
    """Return the columns of a problem in the order of the table.

    loops: a Loops, or None without a C compiler (then `begin` is None). library: the
    libraries.Pyvecgpu of a device, or None for no such columns.
    """
    several = len(precisions) > 1
    labels = {dtype: f" {dtype}" if several else "" for dtype in precisions}
    first = precisions[0]
    table = [loop_column(problem, first, loops, all_cores) for all_cores in (False, True)]
    for dtype in precisions:
        table.append(numpy_column(problem, dtype, f"NumPy{labels[dtype]}"))
    if library is not None:
        where = "GPU" if library.device.type == "cuda" else "sim"
        for dtype in precisions:
            table.append(kernel_column(dtype, library, f"{where} kernel{labels[dtype]}"))
        for precision in MATMUL_PRECISIONS if problem.function == "matmul" else ():
            table.append(kernel_column(first, library, f"{where} kernel {precision}", precision))
        name = f"{where} with transfers{labels[first]}"
        table.append(transfers_column(problem, first, library, name))
    return table


def loop_column(problem, dtype, loops, all_cores):
    name = "C loop, all cores" if all_cores else "C loop, one core"
    if loops is None:
        return Column(name, "loop", dtype, None)
    function = loops.call(problem.loop, all_cores)
    return Column(name, "loop", dtype, lambda case: OnHost(case, dtype, function))


def numpy_column(problem, dtype, name):
    function = repeated(getattr(np, problem.function))
    return Column(name, "numpy", dtype, lambda case: OnHost(case, dtype, function))


def kernel_column(dtype, library, name, precision=None):
    options = {} if precision is None else {"precision": precision}
    begin = lambda case: OnDevice(case, dtype, library, options)  # noqa: E731
    return Column(name, "kernel", dtype, begin, precision, device_arrays=3)


def transfers_column(problem, dtype, library, name):
    function = getattr(vg, problem.function)
    call = repeated(lambda a, b, out: function(a, b, out=out, device=library.device))
    begin = lambda case: OnHost(case, dtype, call)  # noqa: E731
    return Column(name, "transfers", dtype, begin, device_arrays=3)
