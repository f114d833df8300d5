"""R6: in three training programs each allocation, event, stream, copy and launch fails once.

A program is a step of `fit` of one of the demo's networks, with a stream of its own. After each
failure the exception is of the right type, the network and its optimiser are as they were or have
made the step, nothing is left over, and the next step gives the bits that it always gives.
"""

import functools
import gc
import time

import helpers
import test_faults
import test_training_steps
from helpers import live

import pyvecgpu as vg
from pyvecgpu.demo import networks
from pyvecgpu.native import library
from pyvecgpu.native.abi import Allocator

from .parts import Part

FAULTS = test_faults.FAULTS | {"stream": ([], vg.CUDAError)}
NOT_COUNTED = {"stream": 1, "event": 2}  # by the simulated card; see test_faults.py


class Program(test_training_steps.Attempt):
    """A training of one of the demo's networks, in its middle."""

    def __init__(self, model):
        vg.random.seed(4)
        self.loaded = library.load("sim")
        self.net = networks.NETWORKS[model](8, 8, 10, width=8).to("sim")
        self.optimiser = vg.optim.AdamW(self.net.parameters(), lr=2e-3)
        self.batches = [test_training_steps.digits_on("sim", 4)]
        self.step()  # so that there are states

    def step(self):
        """A step on another stream, which is made for it; results are waited for."""
        stream = self.loaded.pvg_stream_create(0)
        if not stream:
            library.raise_last_error(self.loaded)
        try:
            assert self.loaded.pvg_stream_set_current(stream, 0) == 0
            super().step()
        finally:
            self.loaded.pvg_stream_set_current(None, 0)
            assert self.loaded.pvg_stream_release(stream) == 0


@functools.cache
def calls_of(model):
    """(kind, number) of each call that a step makes, and what it gives: state before and after."""
    with helpers.allocator("sim", Allocator.ALLOCATOR_DIRECT):
        program = Program(model)
        loaded, before = program.loaded, program.state()
        kinds = [kind for kind in FAULTS if FAULTS[kind][0]]
        asked = {kind: test_faults.asked_for(loaded, kind) for kind in kinds}
        program.step()
        counts = {kind: test_faults.asked_for(loaded, kind) - asked[kind] for kind in kinds}
        for kind, more in NOT_COUNTED.items():
            counts[kind] = counts.get(kind, 0) + more
        after = program.state()
        del program
        gc.collect()
    return [(kind, n + 1) for kind in counts for n in range(counts[kind])], before, after


def fail_one_after_another(model):
    def run(device, start, wanted, end):
        calls, before, after = calls_of(model)
        done = 0
        with helpers.allocator("sim", Allocator.ALLOCATOR_DIRECT):
            program = Program(model)
            used = live("sim")
            for kind, number in calls[start : start + wanted]:
                if done and time.monotonic() > end:
                    break
                fail(program, kind, number)
                check(program, before, after, used, f"{model}, {kind} {number}")
                if program.state() != before:
                    del program
                    program = Program(model)
                done += 1
            program.step()
            assert program.state() == after, f"{model}: another step"
            del program
            gc.collect()
        return done

    return run


def fail(program, kind, number):
    """A step in which a call fails, which it may get over, but for a launch."""
    failed, before = False, test_faults.asked_for(program.loaded, "launch")
    program.loaded.pvg_sim_fail(kind.encode(), number)
    try:
        program.step()
    except (vg.PyVecGPUError, MemoryError) as error:
        expected = FAULTS[kind][1]
        assert expected and type(error) is expected, f"{kind} {number}: {error!r}"
        failed = True
        while error is not None:
            error.__traceback__, error = None, error.__context__
    finally:
        program.loaded.pvg_sim_fail(kind.encode(), 0)
    if kind == "launch" and test_faults.asked_for(program.loaded, "launch") - before >= number:
        assert failed, f"launch {number} has failed unnoticed"


def check(program, before, after, used, text):
    state = program.state()
    assert state in (before, after), f"{text}: neither as before nor as after the step"
    now = live("sim")  # fewer if the step ended before it had gradients
    assert now[0] <= used[0] and now[1] <= used[1], f"{text}: {now} in use, not {used}"
    assert vg.is_healthy(), text


PARTS = [
    Part(f"calls of a step of the {model}", lambda _, m=model: len(calls_of(m)[0]),
         fail_one_after_another(model), ("sim",))
    for model in test_training_steps.MODELS
]  # fmt: skip
