"""R5: allocations in C, arrays in Python, launches, by the million: none is left."""

import json
import math
import os
import subprocess
import threading
import time

import helpers

import pyvecgpu as vg

from .parts import CARDS, ROOT, Part, check_left

THREADS = 8
# Bytes that a process may grow by. The simulated card's library has 5 MB of variables for each
# thread, which malloc keeps when the thread is gone, in some arena of its.
SLACK = {"cpu": 8 << 20, "sim": 96 << 20, "cuda": 8 << 20}
A_MILLION = 1024  # bytes that it may grow by for each million
CHUNK = 20_000  # arrays between two looks at the clock


def soak(what):
    """A part that runs cuda/tests/soak.c."""

    def run(device, start, wanted, end):
        program = ROOT / "build" / "tests" / ("sim" if device == "sim" else "") / "soak"
        assert program.exists(), f"there is no {program.relative_to(ROOT)}; `make gates` builds it"
        seconds = str(max(end - time.monotonic(), 0.0))
        done = subprocess.run(
            [program, what, str(wanted), seconds, str(THREADS)],
            env=helpers.child_environment(PVG_TEST_ALLOCATOR="pool"),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0 and not done.stderr, f"{done.returncode} {done.stderr.strip()}"
        found = json.loads(done.stdout.splitlines()[0])
        check_growth(device, found["resident"], found["done"])
        for name in ("files", "tasks"):
            assert len(set(found[name])) == 1, f"{name} after each round: {found[name]}"
        return found["done"]

    return run


def check_growth(device, resident, count):
    """Bytes that a process had after each of several equal rounds; the first makes what is kept."""
    grown, allowed = resident[-1] - resident[1], SLACK[device] + A_MILLION * count / 1e6
    assert grown <= allowed, f"the process has grown by {grown:,} bytes: {resident}"


def reserved(device):
    """Bytes that the allocator has of a device when nothing is kept for later."""
    if device == "cpu":
        return 0
    vg.synchronize(device)
    vg.empty_cache(device)
    return vg.memory_info(device).reserved


def arrays(device, start, wanted, end):
    """Arrays made and dropped in every way, in one thread or several, as the number says."""
    held = reserved(device)
    before, done, resident = helpers.in_use(device), 0, []
    while done < wanted and (time.monotonic() < end or not done):
        count = min(wanted - done, CHUNK * THREADS)
        threads = 1 if (done // CHUNK // THREADS) % 8 else THREADS
        errors = []
        workers = [
            threading.Thread(target=guarded, args=(errors, device, math.ceil(count / threads)))
            for _ in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not errors, errors[0]
        done += threads * math.ceil(count / threads)
        resident.append(memory_of_process())
    check_left(device, before)
    assert reserved(device) <= held, vg.memory_info(device)
    if len(resident) > 16:
        check_growth(device, resident[15:], done)
    return done


def guarded(errors, device, count):
    try:
        drop_arrays(device, count)
    except BaseException as error:
        errors.append(repr(error))


def drop_arrays(device, count):
    """At least so many arrays: new ones, views of every kind, and results; of each a part."""
    x = vg.ones((3, 4), device=device)
    kept = [None] * 32
    for i in range(count // 10):
        kept[i % 32] = vg.empty(i % 100, device=device)
        for _ in range(3):
            kept[(i + 7) % 32], _ = x[1:], x.T
            x.reshape(4, 3)
    for _ in range(count % 10):
        vg.empty(4, device=device)


def memory_of_process():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


PARTS = [
    Part("allocations in C", 500_000_000, soak("allocations"), CARDS),
    Part("arrays in Python", 100_000_000, arrays),
    Part("launches", 20_000_000, soak("launches"), CARDS),
]
