"""What data cost on their way: from NumPy to the device, back, and both around an addition.

All of it by the host's clock, from the call to the moment when the result can be read, on ordinary
host memory, which no library is told of beforehand. Rates count the bytes of the host's arrays. A
library's result is a new array each time, and is gone before the next call. NumPy adds on one core;
a C loop on all of them stands beside it, where there is a C compiler.
"""

import os
import time
from dataclasses import dataclass

import numpy as np

from . import timing
from .goals import Within
from .loops import Loops
from .overhead import Numpy

F32 = np.float32
# float32 elements
SIZES = {
    "full": (2**20, 2**24, 2**28),
    "cpu": (2**16, 2**19),
    "quick": (2**10, 2**19),
}
CALLS_SECONDS, MOST_CALLS = 5e-3, 10  # of the slowest library, one after another
ROW_SECONDS = 20.0
LEAST_ROUNDS = 5
GOALS = [
    Within("add two NumPy arrays, 2^20", 0.35e-3),
    Within("add two NumPy arrays, 2^24", 4e-3),
    Within("add two NumPy arrays, 2^28", 45e-3),
]


@dataclass
class HostRow(timing.Row):
    """A Row whose calls are functions (library, *operands), and whose clock is the host's.

    Operands are NumPy arrays, or on_device; a result is one, or a NumPy array if it is on_host.
    """

    on_device: bool = False
    on_host: bool = True


def rows(size):
    """Return the rows for a key of SIZES."""
    named = [(length, f"2^{length.bit_length() - 1}") for length in SIZES[size]]
    return [make(*one) for make in (add, upload, download) for one in named]


def add(length, name):
    peer = lambda library, a, b: library.get(library.put(a) + library.put(b))  # noqa: E731
    return HostRow(
        name=f"add two NumPy arrays, {name}",
        work=12 * length,
        unit="B/s",
        operands=[((length,), F32)] * 2,
        out=None,
        calls={
            "pyvecgpu": lambda library, a, b: library.module.add(a, b, device=library.device),
            "torch": peer,
            "cupy": peer,
            "numpy": lambda library, a, b: np.add(a, b),
            "loops": lambda library, a, b: library.add(a, b),
        },
        expected=lambda a, b: np.add(a, b, dtype=np.float64),
        error_allowed=1e-7,
    )


def upload(length, name):
    def call(library, host):
        array = library.put(host)
        library.synchronize()
        return array

    return HostRow(
        name=f"upload, {name}",
        work=4 * length,
        unit="B/s",
        operands=[((length,), F32)],
        out=None,
        calls=dict.fromkeys(("pyvecgpu", "torch", "cupy"), call),
        expected=lambda a: a,
        error_allowed=0.0,
        on_host=False,
    )


def download(length, name):
    return HostRow(
        name=f"download, {name}",
        work=4 * length,
        unit="B/s",
        operands=[((length,), F32)],
        out=None,
        calls=dict.fromkeys(("pyvecgpu", "torch", "cupy"), lambda library, a: library.get(a)),
        expected=lambda a: a,
        error_allowed=0.0,
        on_device=True,
    )


# Measuring ----------------------------------------------------------------------------------------


class AllCores(Numpy):
    """The C loop on all cores of the host. OSError: there is no C compiler."""

    name, writes_as = "C loop, all cores", "loops"

    def __init__(self):
        self.loop = Loops(len(os.sched_getaffinity(0))).call("add", all_cores=True)

    def add(self, a, b):
        out = np.empty_like(a)
        self.loop(a, b, out, 1)
        return out


def hosts():
    """Return what computes on the host beside the libraries."""
    try:
        return [Numpy(), AllCores()]
    except OSError:
        return [Numpy()]


class Contender:
    """A library at work on a HostRow, and what it took so far."""

    def __init__(self, library, row, operands):
        self.library, self.row = library, row
        self.operands = [library.put(a) for a in operands] if row.on_device else operands
        self.function = row.calls[library.writes_as]
        self.seconds, self.errors = [], []
        library.synchronize()

    def call(self):
        return self.function(self.library, *self.operands)

    def check(self, expected):
        """Note the error of a result."""
        result = self.call()
        values = result if self.row.on_host else self.library.get(result)
        self.errors.append(timing.relative_error(values, expected))

    def time(self, calls):
        """Return the seconds that a call takes, of so many."""
        began = time.perf_counter()
        for _ in range(calls):
            self.call()
        return (time.perf_counter() - began) / calls

    def result(self, calls):
        return timing.summary(self.seconds, calls, self.errors, self.row.error_allowed)


def measure(row, libraries, pool, effort, watch=lambda: None):
    """Return the Result of each library that the row has a call for, by name; see timing.measure.

    There is one set of operands: what the host's caches hold of it, they hold for all libraries.
    """
    operands = [pool.take(shape, dtype) for shape, dtype in row.operands]
    expected = row.expected(*operands)
    takers = [library for library in (*libraries, *hosts()) if library.writes_as in row.calls]
    contenders = [Contender(library, row, operands) for library in takers]
    trials = []
    for contender in contenders:
        contender.check(expected)
        trials.append(min(contender.time(1) for _ in range(2)))
    calls = max(1, min(MOST_CALLS, round(CALLS_SECONDS / max(trials))))
    affordable = round(ROW_SECONDS / (calls * sum(trials)))
    watch()
    for _ in range(min(effort.rounds, max(LEAST_ROUNDS, affordable))):
        for contender in contenders:
            contender.seconds.append(contender.time(calls))
    watch()
    for contender in contenders:
        contender.check(expected)
    return {contender.library.name: contender.result(calls) for contender in contenders}
