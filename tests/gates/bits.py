"""R9: the same bits again and again: on two streams, in 8 threads, with a warm and a cold pool.

The operations are those of tests/uses.py, in every way that they have; the trainings are those of
tests/test_training_steps.py.
"""

import contextlib
import itertools
import threading
import time

import helpers
import test_training_steps
import uses
from helpers import put
from uses import USES

import pyvecgpu as vg
from pyvecgpu.native import library

from .parts import CARDS, Part

REPEATS = 25  # for each of two streams, with a warm and with a cold pool
THREADS = 8
IN_THREADS = 13  # for each thread
STEPS = 200


class Repeated:
    """Uses on a card: what they gave the first time, they give every time."""

    def __init__(self, device):
        self.device, self.expected = device, {}

    def bits(self, name):
        use = USES[name]
        arrays = {n: put(self.device, x) for n, x in uses.values(use).items()}
        given = uses.results(use.run(arrays))
        return [helpers.bits(x) for x in [*given, *(arrays[n] for n in use.written)]]

    def check(self, name):
        found = self.bits(name)
        assert found == self.expected.setdefault(name, found), f"{name}: other bits"


@contextlib.contextmanager
def two_streams(device):
    """A function that makes one of two streams this thread's."""
    loaded = library.load(device)
    streams = [loaded.pvg_stream_create(0) for _ in range(2)]

    def use(number):
        assert loaded.pvg_stream_set_current(streams[number], 0) == 0

    try:
        yield use
    finally:
        loaded.pvg_stream_set_current(None, 0)
        for stream in streams:
            assert loaded.pvg_stream_release(stream) == 0


def operations(device, start, wanted, end):
    """Uses, each 100 times in this thread and as often in eight others."""
    done, repeated = 0, Repeated(device)
    with two_streams(device) as use_stream:
        for name in itertools.islice(USES, start, start + wanted):
            if done and time.monotonic() > end:
                break
            for stream, cold in itertools.product((0, 1), (False, True)):
                use_stream(stream)
                for number in range(REPEATS):
                    if cold:
                        vg.empty_cache(device)
                    kept = [vg.ones(1 + 997 * number, device=device)] if number % 3 else []
                    repeated.check(name)
                    del kept
            in_threads(repeated, name)
            done += 1
    return done


def in_threads(repeated, name):
    errors = []

    def work():
        try:
            for _ in range(IN_THREADS):
                repeated.check(name)
        except BaseException as error:
            errors.append(f"in threads, {error!r}")

    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors, errors[0]


def trainings(steps):
    """A part of trainings, each of them twice; the second finds other memory."""

    def run(device, start, wanted, end):
        done = 0
        for model in test_training_steps.MODELS[start : start + wanted]:
            if done and time.monotonic() > end:
                break
            first = test_training_steps.trained(model, device, steps)
            kept = [vg.ones(n, device=device) for n in (1000, 70_000, 3)]
            assert test_training_steps.trained(model, device, steps) == first, (
                f"{model}: other bits"
            )
            del kept
            done += 1
        return done

    return run


PARTS = [
    Part("operations", len(USES), operations, CARDS),
    Part(f"trainings of {STEPS} steps", len(test_training_steps.MODELS), trainings(STEPS)),
]
