"""What a call costs the host: small arrays, where the work itself is nothing; and the import.

Calls are timed by the host's clock, so many of them at a time; the wait for the device that follows
each batch is not counted, unless the call itself waits. A bare launch is an empty kernel started
from C (launch.cu), in the same process and in turn with the others.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import compiled
from .goals import Beyond
from .timing import Result, relative_error

ERROR_ALLOWED = 1e-6
CALLS = 500  # between two waits
ROUNDS = 60
QUICK_ROUNDS = 3
IMPORTS = 9
QUICK_IMPORTS = 1
BARE = "bare launch"
IMPORT_ROW = "import after NumPy"
GOALS = [Beyond("a + b, 16 elements", BARE, 2.5)]


@dataclass
class Call:
    """A row: operands, and what is timed for each library, a function (module, *operands)."""

    name: str
    operands: list
    calls: dict[str, Callable]
    expected: Callable
    get: bool = True  # the result is a device array


def numpy_way(function):
    """Return the calls of a row that all libraries write as NumPy does."""
    return dict.fromkeys(("pyvecgpu", "torch", "cupy", "numpy"), function)


def rows():
    """Return the rows: small arrays on the device."""
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 16), np.float32)
    A, B = random.standard_normal((2, 16, 16), np.float32)
    to_host = {
        "pyvecgpu": lambda vg, a, b: (a + b).numpy(),
        "torch": lambda torch, a, b: (a + b).cpu(),
        "cupy": lambda cupy, a, b: (a + b).get(),
    }
    return [
        Call("a + b, 16 elements", [a, b], numpy_way(lambda m, a, b: a + b), np.add),
        Call("a @ b, 16x16", [A, B], numpy_way(lambda m, a, b: a @ b), np.matmul),
        Call("a + b, 16 elements, to the host", [a, b], to_host, np.add, get=False),
        Call("item of a 0-d array", [a[0]], numpy_way(lambda m, x: x.item()), float, get=False),
    ]


class Numpy:
    """NumPy on the host, for the scale."""

    name = writes_as = "numpy"
    module = np

    def put(self, host):
        return host

    def get(self, array):
        return array

    def synchronize(self):
        pass


def measure(row, libraries, rounds, bare=None):
    """Return the Result of each library that the row has a call for, by name.

    bare: a BareLaunch that takes turns with the libraries.
    """
    contenders, errors = {}, {}
    expected = row.expected(*[operand.astype(np.float64) for operand in row.operands])
    for library in (*libraries, Numpy()):
        if library.writes_as in row.calls:
            call = bound(row.calls[library.writes_as], library, row.operands)
            values = library.get(call()) if row.get else call()
            errors[library.name] = relative_error(values, expected)
            contenders[library.name] = (repeat(call), library.synchronize, [])
    if bare is not None:
        contenders[BARE] = (bare.launch, bare.wait, [])
    take_turns(contenders.values(), rounds)
    return {name: result(times, errors.get(name, 0)) for name, (*_, times) in contenders.items()}


def bound(function, library, operands):
    """Return the function with the library's module and its own operands put in."""
    module, arrays = library.module, [library.put(operand) for operand in operands]
    return lambda: function(module, *arrays)


def repeat(call):
    def batch(count):
        for _ in range(count):
            call()

    return batch


def take_turns(contenders, rounds):
    """Time CALLS calls of each contender (batch, wait, list of seconds) in turn."""
    for number in range(rounds + 2):
        for batch, wait, seconds in contenders:
            began = time.perf_counter()
            batch(CALLS)
            taken = (time.perf_counter() - began) / CALLS
            wait()
            if number >= 2:
                seconds.append(taken)


def result(seconds, error=0.0):
    low, median, high = np.quantile(seconds, (0.25, 0.5, 0.75))
    return Result(median, low, high, CALLS, error, not error <= ERROR_ALLOWED)


# The bare launch ----------------------------------------------------------------------------------


class BareLaunch:
    """Launches of an empty kernel on a device. OSError: it cannot be built or run, and why."""

    def __init__(self, device):
        self.library = compiled.load_cuda(Path(__file__).with_name("launch.cu"))
        self._check(self.library.bare_open(device.index))

    def launch(self, count):
        self._check(self.library.bare_launch(count))

    def wait(self):
        self._check(self.library.bare_wait())

    def _check(self, code):
        if code:
            raise OSError(f"the bare launch failed with CUDA error {code}")


# The import ---------------------------------------------------------------------------------------

IMPORT = """
import time
began = time.perf_counter()
import numpy
middle = time.perf_counter()
import {module}
print(middle - began, time.perf_counter() - middle)
"""


def measure_imports(libraries, rounds):
    """Return the Result of importing each library after NumPy, and of NumPy, in fresh processes."""
    seconds = {"numpy": []} | {library.name: [] for library in libraries}
    for _ in range(rounds):
        for library in libraries:
            module, place = library.writes_as, Path(library.module.__file__).parents[1]
            environment = os.environ | {"PYTHONPATH": str(place)}
            command = [sys.executable, "-c", IMPORT.format(module=module)]
            run = subprocess.run(command, capture_output=True, text=True, env=environment)
            if run.returncode:
                raise OSError(f"import {module} failed: {run.stderr.strip()}")
            numpy_seconds, module_seconds = map(float, run.stdout.split())
            seconds["numpy"].append(numpy_seconds)
            seconds[library.name].append(module_seconds)
    return {name: result(taken) for name, taken in seconds.items()}
