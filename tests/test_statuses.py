"""What the C library says of a call is passed on: no status is lost between it and the caller.

Each use of uses.py, and what streams, graphs and other libraries take, is run once for each C
function that it calls. In that run the function fails, most without being called, and the caller
has to get its error. Together the uses call every function of the table that can fail.
"""

import ctypes
from ctypes import POINTER
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import uses
from helpers import put
from uses import USES

import pyvecgpu as vg
from pyvecgpu import streams
from pyvecgpu.bench import libraries, model
from pyvecgpu.device import siblings
from pyvecgpu.functions import cuda_interface, dlpack
from pyvecgpu.native import library
from pyvecgpu.native.abi import FUNCTIONS, DeviceAttribute, Handle, Option, array

pytestmark = pytest.mark.devices("sim")

# Functions that answer a question with an int, which is no status.
ANSWERS = {
    *("pvg_abi_version", "pvg_last_status", "pvg_supports", "pvg_promote", "pvg_is_healthy"),
    *("pvg_array_device", "pvg_array_dtype", "pvg_array_ndim"),
    *("pvg_array_is_contiguous", "pvg_array_is_readonly"),
}


def can_fail(name):
    restype = FUNCTIONS[name][0]
    is_handle = restype is not None and issubclass(restype, Handle)
    return is_handle or (restype is ctypes.c_int and name not in ANSWERS)


CAN_FAIL = {name for name in FUNCTIONS if can_fail(name)} | {"pvg_dlpack_export"}


# What fails after it was done: the end of a graph, or all that follows would be recorded; what
# writes handles of results, where these are no sign that it went well.
DONE_FIRST = {name for name, (_, argtypes) in FUNCTIONS.items() if POINTER(array) in argtypes}
DONE_FIRST |= {"pvg_graph_end"}


class Between:
    """Stands between the package and the functions that can fail: notes calls, lets one fail."""

    def __init__(self, monkeypatch, simulator):
        self.simulator, self.create = simulator, simulator.pvg_stream_create
        self.called, self.failing, self.left = [], None, 0
        backend = vg.Device("sim").backend
        tables = simulator, simulator.owning, simulator.into
        names = {id(vars(table)[name]): name for table in tables for name in CAN_FAIL}
        for holder in (*tables, backend, backend.into):
            for key, value in list(vars(holder).items()):
                if id(value) in names:
                    monkeypatch.setattr(holder, key, self.call_of(names[id(value)], value))

    def call_of(self, name, function):
        def call(*arguments):
            self.called.append(name)
            if name == self.failing:
                self.left -= 1
                if self.left == 0:
                    if name in DONE_FIRST:
                        function(*arguments)
                    return self.fail(function.restype)
            return function(*arguments)

        call.restype = function.restype
        return call

    def fail(self, restype):
        """Return what a function does that has failed, with an error that nobody expects."""
        self.simulator.pvg_sim_fail(b"stream", 1)
        assert not self.create(0)
        return self.simulator.pvg_last_status() if restype is ctypes.c_int else restype()

    def run(self, call, failing=None, nth=1):
        """Return the names of the functions that were called; the nth call of one of them fails."""
        self.called, self.failing, self.left = [], failing, nth
        try:
            call()
        finally:
            called, self.called, self.failing = self.called, [], None
        return called


@pytest.fixture
def between(monkeypatch, simulator):
    return Between(monkeypatch, simulator)


def look(value):
    """Wait for what a call gave."""
    for one in uses.results(value):
        if isinstance(one, vg.Array):
            one.numpy()


def ask(use):
    """Return a call that does what a use does, with new arrays, and looks at what it gives."""
    arrays = {name: put("sim", x) for name, x in uses.values(use).items()}
    return lambda: look(use.run(arrays))


# Beside the uses: calls of an Array of (3, 4) floats.


class Shown:
    """An array as another library hands it over that has it on a GPU."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return dlpack._of_card(self.x, True, False, False)


def shown(x):
    """The same array by __cuda_array_interface__, read-only."""
    facts = {"typestr": "<f4", "shape": (3, 4), "data": (x.backend.pointer(x.raw), True)}
    theirs = SimpleNamespace(__cuda_array_interface__=facts, owner=x)
    with mock.patch.object(cuda_interface, "_device_of", lambda pointer, is_empty: x.device):
        return cuda_interface.taken(theirs)


def on_own_stream(x):
    with x.backend.own_stream():
        return x + x


def on_a_stream(x):
    with vg.stream(device=x.device) as one:
        one.synchronize()


class TheirStream:
    """A stream of another library."""

    def __init__(self, functions):
        self.functions, self.owner = functions, functions.pvg_stream_create(0)
        if not self.owner:
            library.raise_last_error(vg.Device("sim").backend.library)

    def __cuda_stream__(self):
        return 0, self.functions.pvg_stream_handle(self.owner)


def on_their_stream(x):
    with vg.stream(TheirStream(x.backend.functions), device=x.device):
        return x + x


def replayed(x):
    out = vg.zeros(x.shape, device=x.device)
    x.backend.record(lambda: vg.add(x, x, out=out))()
    return out


def renewed(x):
    """Recorded with numbers that are new at each launch."""
    backend = x.backend
    number = np.dtype("f8"), 1, lambda: (1.0,)
    backend.record(lambda: backend.recording().renewed(*number))()


def timed(x):
    of_bench = libraries.Pyvecgpu(x.device)
    of_bench.mark(0)
    of_bench.mark(1)
    return of_bench.elapsed()


OTHERS = {
    "pad": lambda x: vg.pad(x, 1),
    "repeat": lambda x: vg.repeat(x, 2),
    "tile": lambda x: vg.tile(x, 2),
    "diag": lambda x: vg.diag(x[0]),
    "nansum": lambda x: vg.nansum(x),
    "unique": lambda x: vg.unique_values(x),
    "item": lambda x: float(x[0, 0]),
    "random integers": lambda x: vg.random.default_rng(1).integers(9, size=5, device=x.device),
    "handed over": lambda x: x.__dlpack__(),
    "taken from another library": lambda x: dlpack.on_gpu(Shown(x), x.device),
    "lent": lambda x: dlpack.lend(x, 1),
    "shown": shown,
    "after their stream": lambda x: cuda_interface._follow(1, x.backend),
    "own stream": on_own_stream,
    "a stream": on_a_stream,
    "their stream": on_their_stream,
    "recorded": replayed,
    "recorded with numbers": renewed,
    "timed": timed,
    "a number before": lambda x: 1.0 - x,
    "negative": lambda x: -x,
    "equal": lambda x: vg.array_equal(x, x),
    "synchronize": lambda x: vg.synchronize(x.device),
    "memory_info": lambda x: vg.memory_info(x.device),
    "set_memory_limit": lambda x: vg.set_memory_limit(None, device=x.device),
    "empty_cache": lambda x: vg.empty_cache(x.device),
    "attribute": lambda x: x.backend.attribute(DeviceAttribute.WARP_SIZE),
    "devices": lambda x: siblings(x.device),
    "option": lambda x: x.backend.library.set_option(Option.OPTION_SYNC, 0),
    "plan": lambda x: model.card_of(x.device),
}


def ask_other(call):
    x = put("sim", np.arange(12, dtype=np.float32).reshape(3, 4))
    streams.release(x.device)  # so that one is made
    return lambda: look(call(x))


CASES = {name: (ask, use) for name, use in USES.items()}
CASES |= {f"{name}, beside them": (ask_other, call) for name, call in OTHERS.items()}
# How it ends is told nobody, or by what follows.
ENDS = {
    *(f"pvg_{kind}_{end}" for kind in ("array", "stream", "event", "graph")
      for end in ("drop", "release")),
}  # fmt: skip
UNHEARD = {
    "pvg_driver_version": "`python -m pyvecgpu` goes on without the number",
    "pvg_runtime_version": "the same",
    "pvg_memory_device": "asked of a GPU's library",
    "pvg_get_option": "for C programs",
    "pvg_event_query": "for C programs",
    "pvg_stream_wait_event": "for C programs",
    "pvg_plan_product": "that there is no plan is an answer",
}


@pytest.mark.parametrize("name", CASES)
def test_each_status_is_passed_on(device, between, name):
    make, case = CASES[name]
    called = between.run(make(case))
    for function in dict.fromkeys(called):
        for nth in range(1, called.count(function) + 1):
            call = make(case)
            if function == "pvg_stream_set_current" and nth == 2:  # back, at the end of a block
                between.run(call, function, nth)
                continue
            with pytest.raises(vg.CUDAError, match="cudaStreamCreate"):
                between.run(call, function, nth)


def test_every_function_that_can_fail_is_called(device, between):
    called = {name for make, case in CASES.values() for name in between.run(make(case))}
    assert CAN_FAIL - ENDS - called == set(UNHEARD)
