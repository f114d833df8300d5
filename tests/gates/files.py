"""R10: damaged model files by the million: each is refused, or loaded, and does no harm.

Files are damaged as by disks and networks (bits, pieces that are lost, doubled, moved), and as by
an enemy: numbers of a header become others. Whoever loads one may get ValueError or OSError, or a
state; nothing is unpickled, and a process takes no more memory or time than for a good file.
"""

import collections
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import helpers
import numpy as np

import pyvecgpu as vg

from .parts import Part

BATCH = 500  # files of one seed
MEMORY = 16 << 20  # bytes beyond what good files take
SECONDS = 1.0  # of the processor, for one file
FAST = "/dev/shm"
TEXTS = (
    b"0 -1 7 4294967296 18446744073709551615 1e9 NaN true [] null |O <f8 F64 I8 ' { \xff".split()
)
TEXTS += [b"9" * 40, b'"x"']


def samples(kind, folder):
    """The bytes of some good files."""
    rng = np.random.default_rng(10)
    layer = {"weight": rng.standard_normal((3, 4)).astype("f4"), "bias": np.arange(3.0)}
    path = folder / f"good{kind}"
    states = [layer, layer | {"on": np.array([True, False]), "n": np.arange(3, dtype="u1")}]
    if kind == ".npz":
        states.append({"model": layer, "epoch": 3, "rates": [0.1, 1e-9], "text": "a"})
    found = []
    for state in states:
        vg.save_state(path, state)
        found.append(path.read_bytes())
    if kind == ".npz":
        np.savez_compressed(path, **layer)
        found.append(path.read_bytes())
    return found


def damaged(rng, whole):
    """Bytes that differ from a file's in one way or several."""
    content = bytearray(whole)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        rng.choice(DAMAGES)(rng, content)
    return bytes(content)


def flip(rng, content):
    for _ in range(rng.choice((1, 1, 2, 8))):
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def overwrite(rng, content):
    at, count = rng.randrange(len(content) + 1), rng.randrange(1, 9)
    content[at : at + count] = rng.choice((bytes(count), b"\xff" * count, rng.randbytes(count)))


def cut(rng, content):
    del content[rng.randrange(len(content) + 1) :]


def lose(rng, content):
    at = rng.randrange(len(content) + 1)
    del content[at : at + rng.randrange(1, 64)]


def double(rng, content):
    at, to = (rng.randrange(len(content) + 1) for _ in range(2))
    content[to:to] = content[at : at + rng.randrange(1, 64)]


def lie(rng, content):
    """A number or a word of a header becomes another."""
    found = list(re.finditer(rb"\d+|[A-Za-z_]\w+", content))
    if found:
        start, end = rng.choice(found).span()
        content[start:end] = rng.choice(TEXTS)


DAMAGES = (flip, flip, flip, overwrite, cut, lose, double, lie, lie)


def load_damaged(kind, start, wanted, seconds, load=vg.load_state):
    """Load so many files; return how many, and how many of them were refused, or what was wrong."""
    unpickled, end, refused, done = [], time.monotonic() + seconds, 0, 0
    sys.addaudithook(lambda event, _: unpickled.append(event) if "pickle" in event else None)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=FAST if os.path.isdir(FAST) else None) as folder:
        good = samples(kind, Path(folder))
        path = Path(folder) / f"x{kind}"
        for whole in good:
            path.write_bytes(whole)
            load(path)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        while done < wanted and (time.monotonic() < end or not done):
            rng = random.Random(start + done)
            for _ in range(min(BATCH, wanted - done)):
                path.write_bytes(damaged(rng, rng.choice(good)))
                problem, was_refused = attempt(load, path)
                if not problem and unpickled:
                    problem = str(unpickled)
                if problem:
                    return {"done": done, "problem": f"{problem}: {path.read_bytes()!r}"}
                refused += was_refused
                done += 1
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
    problem = f"the process has grown by {grown:,} bytes" if grown > MEMORY else ""
    return {"done": done, "refused": refused, "problem": problem}


def attempt(load, path):
    """What was wrong with the way a file was loaded, and whether it was refused."""
    began, was_refused = time.process_time(), False
    try:
        state = load(path)
        if not isinstance(state, (dict, list, tuple, str, int, float, type(None), vg.Array)):
            return f"loaded as {type(state).__name__}", False
    except (ValueError, OSError):
        was_refused = True
    except BaseException as error:
        return repr(error), False
    seconds = time.process_time() - began
    return (f"{seconds:.1f} s" if seconds > SECONDS else ""), was_refused


CHILD = """
import json, sys
from gates import files
kind, start, wanted, seconds = json.loads(sys.argv[1])
print(json.dumps(files.load_damaged(kind, start, wanted, seconds)))
"""


def files_of(kind):
    def run(device, start, wanted, end):
        """In two processes, which begin at different seeds."""
        counts = [wanted - wanted // 2, wanted // 2]
        begun = []
        for number, count in enumerate(counts):
            arguments = [kind, 2 * start + number * 10**9, count, end - time.monotonic()]
            begun.append(subprocess.Popen(
                [sys.executable, "-c", CHILD, json.dumps(arguments)],
                env=helpers.child_environment(), stdout=subprocess.PIPE, text=True,
            ))  # fmt: skip
        texts = [child.communicate()[0] for child in begun]
        assert not any(child.returncode for child in begun), "a process ended by itself"
        found = collections.Counter()
        for text in texts:
            result = json.loads(text.splitlines()[-1])
            assert not result.pop("problem"), json.loads(text.splitlines()[-1])["problem"]
            found.update(result)
        assert wanted < 1000 or 0 < found["refused"] < found["done"], found
        return found["done"]

    return run


PARTS = [
    Part("damaged .npz files", 1_000_000, files_of(".npz"), ("cpu",)),
    Part("damaged .safetensors files", 9_000_000, files_of(".safetensors"), ("cpu",)),
]
