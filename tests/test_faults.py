"""Injected faults: on the simulated card, each thing that a call asks CUDA for fails once.

The calls are those of uses.py, under each allocator. Afterwards operands and `out` are as before,
nothing is left over, and the same call succeeds.
"""

import contextlib

import helpers
import numpy as np
import pytest
import uses
from helpers import assert_same, put
from uses import USES

import pyvecgpu as vg
from pyvecgpu.native.abi import Allocator

pytestmark = pytest.mark.devices("sim")

# What fails, how the simulated card counts it, and what it becomes; None: there is another way.
FAULTS = {
    "malloc": (["malloc"], vg.OutOfMemoryError),
    "pinned": (["pinned_malloc"], None),
    "copy": (["copy_h2d", "copy_d2h", "copy_d2d"], vg.CUDAError),
    "memset": (["memset"], vg.OutOfMemoryError),  # of new memory, by the debug allocator
    "launch": (["launch"], vg.LaunchError),
    "event": (["event_record"], vg.CUDAError),
}
EVENTS_MADE = 2  # by a call, which are not counted
CASES = [(name, which) for name in USES for which in Allocator]


class Attempt:
    """A use on a stream of its own, of arrays that another stream has written."""

    def __init__(self, simulator, use):
        self.simulator, self.use, self.values = simulator, use, uses.values(use)
        self.streams = [simulator.pvg_stream_create(0) for _ in range(2)]
        self.on(0)
        self.arrays = {name: put("sim", x) for name, x in self.values.items()}
        self.on(None)
        vg.empty_cache("sim")

    def on(self, number):
        stream = None if number is None else self.streams[number]
        assert self.simulator.pvg_stream_set_current(stream, 0) == 0

    def run(self):
        """What the use gives."""
        self.on(1)
        try:
            return uses.results(self.use.run(self.arrays))
        finally:
            self.on(None)

    def bits(self, given):
        """Of what the use has given, and of what it has written."""
        return [helpers.bits(x) for x in [*given, *(self.arrays[n] for n in self.use.written)]]

    def is_unchanged(self, names):
        return all(helpers.bits(self.arrays[n]) == self.values[n].tobytes() for n in names)

    def restore(self, names):
        for name in names:
            self.arrays[name][...] = self.values[name]

    def close(self):
        self.arrays.clear()
        for stream in self.streams:
            assert self.simulator.pvg_stream_release(stream) == 0


def asked_for(simulator, what):
    """How often the simulated card was asked for this so far."""
    return sum(simulator.pvg_sim_count(name.encode()) for name in FAULTS[what][0])


@pytest.mark.parametrize(("name", "which"), CASES, ids=lambda part: getattr(part, "name", part))
def test_each_call_fails_once(device, simulator, name, which):
    use = USES[name]
    with helpers.allocator(device, which):
        with contextlib.closing(Attempt(simulator, use)) as attempt:
            before = {what: asked_for(simulator, what) for what in FAULTS}
            given = attempt.run()
            calls = {what: asked_for(simulator, what) - n for what, n in before.items()}
            expected = attempt.bits(given)
            del given
        for what, count in calls.items():
            extra = EVENTS_MADE if what == "event" else 0
            for nth in range(1, count + extra + 1):
                failed = fails_once(simulator, name, what, nth, expected)
                assert failed or nth > count or can_do_without(what, which), f"{what} {nth}"
    assert vg.counters(device)["canary_errors"] == 0


def can_do_without(what, which):
    """Copies go without buffers, releases wait on the host; the pool asks again for less."""
    tried = ("malloc", Allocator.ALLOCATOR_POOL), ("copy", Allocator.ALLOCATOR_DEBUG)  # of canaries
    return what in ("pinned", "event") or (what, which) in tried


def fails_once(simulator, name, what, nth, expected):
    """Let the nth call of a kind fail; whether the use failed with it."""
    use, error = USES[name], None
    with contextlib.closing(Attempt(simulator, use)) as attempt:
        before = helpers.live("sim")
        simulator.pvg_sim_fail(what.encode(), nth)
        try:
            given = attempt.run()
        except Exception as caught:
            error = caught
            error.__traceback__ = None
        finally:
            simulator.pvg_sim_fail(what.encode(), 0)
        if error is None:
            assert attempt.bits(given) == expected, f"{what} {nth} was not noticed"
            del given
            return False
        assert type(error) is FAULTS[what][1], f"{what} {nth}: {error!r}"
        # Only copies from the host, and the launches of sums for places that are named several
        # times, and of steps that need several, leave their destination half written when they
        # fail half way; and statistics of channels, or of losses, may be there when the launch that
        # uses them fails.
        several = ("accumulate", "optimize views", "optimize what overlaps", "normalize channels",
                   "cross_entropy of a mean")  # fmt: skip
        half = name.startswith("upload") or (name.startswith(several) and what == "launch")
        kept = set(use.arrays) - set(use.written if half else ())
        assert attempt.is_unchanged(kept), f"{what} {nth}: an operand or out has changed"
        attempt.restore(use.written if half else ())
        assert helpers.live("sim") == before, f"{what} {nth}"
        helpers.assert_works("sim")
        assert attempt.bits(attempt.run()) == expected, f"{what} {nth}: the same call again"
        return True


@pytest.mark.parametrize("nth", [1, 2])
def test_the_pool_survives_a_refusal_of_the_driver(device, simulator, nth):
    """It asks for less, then empties its caches and asks again, before it gives up."""
    vg.empty_cache(device)
    x = np.ones(3_000_000, np.float32)
    simulator.pvg_sim_fail(b"malloc", nth)
    a = put(device, x)
    b = a + a
    assert_same(b, x + x)
    simulator.pvg_sim_fail(b"malloc", 0)


def test_a_refused_launch_says_which(device, simulator):
    x = put(device, np.ones(5, np.float32))
    simulator.pvg_sim_fail(b"launch", 1)
    with helpers.refused(
        device, vg.LaunchError, x, match=r"multiply.*_kernel.*cuda.*\.cuh?:\d+|multiply"
    ) as caught:
        x * x
    assert caught.value.operation == "multiply"
    assert caught.value.name == "cudaErrorLaunchOutOfResources"
    assert caught.value.code == 701
    assert vg.is_healthy()


@pytest.fixture
def direct_allocator(device):
    """Every array is one cudaMalloc, which is not tried again."""
    with helpers.allocator(device, Allocator.ALLOCATOR_DIRECT):
        yield


def test_training_steps_are_all_or_nothing(device, simulator, direct_allocator):
    """A step that updates weights at its end leaves them as they are, whatever fails before."""
    rng = np.random.default_rng(3)
    data = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((20, 9), (5, 9), (5,), (20, 5))
    ]

    def step(x, weight, bias, target):
        output = vg.dense(x, weight, bias, "sigmoid")
        error = (output - target) * output * (1.0 - output)
        gradient = error.T @ x
        new_bias = bias - 0.1 * vg.sum(error, axis=0)
        vg.subtract(weight, 0.1 * gradient, out=weight)
        return new_bias

    arrays = [put(device, x) for x in data]
    expected = [helpers.bits(step(*arrays)), helpers.bits(arrays[1])]
    for what in ("malloc", "launch"):
        nth, failed = 1, 0
        while True:
            arrays = [put(device, x) for x in data]
            simulator.pvg_sim_fail(what.encode(), nth)
            try:
                bias = step(*arrays)
                break
            except (vg.OutOfMemoryError, vg.LaunchError) as error:
                error.__traceback__ = None
                failed += 1
            simulator.pvg_sim_fail(what.encode(), 0)
            assert [helpers.bits(a) for a in arrays] == [x.tobytes() for x in data]
            assert [helpers.bits(step(*arrays)), helpers.bits(arrays[1])] == expected
            nth += 1
        simulator.pvg_sim_fail(what.encode(), 0)
        assert failed >= 8
        assert [helpers.bits(bias), helpers.bits(arrays[1])] == expected


def test_a_refused_stream_or_event(device):
    """In a process of its own: the device's stream is made once."""
    code = """
import ctypes, json, pyvecgpu as vg
from pyvecgpu.native import library
loaded = library.load("sim")
results = []
loaded.pvg_sim_fail(b"stream", 1)
try:
    vg.zeros(3, device="sim")
    results.append("")
except vg.CUDAError as error:
    results.append(error.name)
loaded.pvg_sim_fail(b"stream", 0)
results.append(vg.ones(3, device="sim").tolist())
loaded.pvg_sim_fail(b"event", 1)
results.append(loaded.pvg_event_create(0))
results.append(loaded.pvg_last_error_cuda_name().decode())
results.append(vg.is_healthy())
print(json.dumps(results))
"""
    assert helpers.child_result(code) == [
        "cudaErrorOperatingSystem",
        [1, 1, 1],
        None,
        "cudaErrorOperatingSystem",
        True,
    ]
