"""R8: threads for a minute, forks, spawns, exits and interrupts: no hang, no output, no leak.

The programs are those of tests/test_process.py and tests/test_interrupts.py, many times.
"""

import gc
import itertools
import random
import tempfile
import threading
import time
from pathlib import Path

import helpers
import numpy as np
import test_interrupts
import test_process
import test_seam
from uses import USES

import pyvecgpu as vg

from .bits import Repeated
from .parts import CARDS, Part, check_left

THREADS = 8
PATIENCE = 60  # seconds after which a process hangs: a busy machine takes long to start one
INTERRUPTS = 20  # of a function at a time


def counted(run):
    """A part of a function run(device, number), which is called until the time is up."""

    def part(device, start, wanted, end):
        done = 0
        while done < wanted and (time.monotonic() < end or not done):
            run(device, start + done)
            done += 1
        return done

    return part


def threads(device, start, wanted, end):
    """Seconds in which threads run operations in random order, whose bits one thread has found."""
    repeated = Repeated(device)
    names = list(USES)
    before, stop, errors = helpers.in_use(device), threading.Event(), []
    for name in names:
        repeated.check(name)
    began, counts = time.monotonic(), [0] * THREADS

    def work(number):
        rng = random.Random(start + number)
        try:
            while not stop.is_set():
                repeated.check(rng.choice(names))
                counts[number] += 1
        except BaseException as error:
            errors.append(f"{error!r}")
            stop.set()

    workers = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for worker in workers:
        worker.start()
    stop.wait(min(wanted, max(end - began, 0.1)))
    stop.set()
    for worker in workers:
        worker.join(PATIENCE)
        assert not worker.is_alive(), "a thread hangs"
    assert not errors, errors[0]
    assert all(counts), f"operations in each thread: {counts}"
    seconds = int(time.monotonic() - began)
    check_left(device, before)
    return min(seconds, wanted)


def result(code, *flags):
    return helpers.child_result(code, *flags, timeout=PATIENCE)


def fork(device, number):
    """Before the first use, after it, and in the middle of calls."""
    if number % 3 == 2 and device != "cpu":
        found = result(test_interrupts.FORKS.format(device=device), *test_process.FORK_FLAGS)
        assert found == [[0] * 8, True, True], found
        return
    before = ("x = None", "x = vg.ones(3, device=device)")[number % 3 % 2]
    code = test_process.FORK.format(device=device, before=before)
    report, status, after, kept = result(code, *test_process.FORK_FLAGS)
    works = report[0] == [1, 1, 1]
    assert works == (number % 3 == 0 or device == "cpu"), report
    assert (report[-1], status, after) == (4.0, 0, [2, 2, 2]), (report, status, after)
    assert kept in (False, [1, 1, 1]), kept


def spawn(device, number):
    with tempfile.TemporaryDirectory() as folder:
        method = ("spawn", "forkserver")[number % 2]
        test_process.test_spawned_processes_exchange_arrays(device, Path(folder), method)


def leave(device, number):
    cases = list(test_process.EXITS.values())
    code = f"import pyvecgpu as vg\ndevice = {device!r}\n{cases[number % len(cases)]}"
    done = helpers.run_child(code, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, ""), f"{code}\n{done.returncode} {done.stderr}"


def interrupts(device, start, wanted, end):
    """Of every public function in turn."""
    rng, done = np.random.default_rng([8, start]), 0
    calls = test_interrupts.calls_of(device)
    a, b = (helpers.put(device, x) for x in (test_seam.A, test_seam.B))
    # NumPy's linalg, and a `with` whose end is hit, are told about in test_interrupts.py.
    names = [n for n in calls if not hasattr(vg.linalg, n) and n != "a chosen device"]
    for name in names:
        calls[name](a, b)
    gc.collect()
    before = test_interrupts.state_of(device)
    for name in itertools.islice(itertools.cycle(names), start // INTERRUPTS, None):
        if done >= wanted or (done and time.monotonic() > end):
            break
        count = min(INTERRUPTS, wanted - done)
        lost = test_interrupts.interrupt(lambda name=name: calls[name](a, b), count, rng)
        assert not lost, f"{name}: {lost} did not arrive"
        now = test_interrupts.state_of(device)
        assert now == before, f"{name}: {before} before, {now} after"
        done += count
    helpers.assert_works(device)
    return done


PARTS = [
    Part("seconds of 8 threads", 60, threads, CARDS),
    Part("forks", 100, counted(fork)),
    Part("spawns", 20, counted(spawn)),
    Part("exits", 200, counted(leave)),
    Part("interrupts", 1000, interrupts),
]
