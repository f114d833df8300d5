"""Work that tests wait for, done beside the other tests from the beginning of the session on.

A test module that builds programs has a `WORK` here: a script that is given a folder and names, and
prints a line of JSON, [name, result], when it is done with one. conftest.py begins it with the
names that the session's tests ask for (`names_of`), and runs those tests late.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 1800  # work that takes longer hangs
ROOT = Path(__file__).resolve().parents[1]
MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")


class Work:
    """A script beside the tests. `names_of(item)` are the names that a test will ask for."""

    def __init__(self, script, names_of):
        self.script, self.names_of = script, names_of
        self.process, self.folder, self.found = None, None, {}

    def begin(self, items):
        names = dict.fromkeys(name for item in items for name in self.names_of(item))
        self.folder = tempfile.TemporaryDirectory(prefix=f"{Path(self.script).stem}-")
        with open(self.path("results"), "w") as results, open(self.path("errors"), "w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, self.script, self.path("tree"), *names],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
                stdin=subprocess.DEVNULL,
                stdout=results,
                stderr=errors,
                start_new_session=True,
            )

    def path(self, name):
        return Path(self.folder.name) / name

    def result(self, name):
        """What the script has found; waits for it."""
        end = time.monotonic() + SECONDS
        while name not in self.found:
            over = self.process.poll() is not None
            lines = self.path("results").read_text().split("\n")[:-1]  # whole ones
            self.found = dict(map(json.loads, lines))
            if over and name not in self.found:
                errors = self.path("errors").read_text()
                raise AssertionError(f"{self.script} ended without {name}:\n{errors}")
            assert time.monotonic() < end, f"{self.script} is not done with {name}"
            if name not in self.found:
                time.sleep(0.05)
        return self.found[name]

    def end(self):
        if self.process:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.folder.cleanup()
            self.process = None


def report(name, result):
    """A script's way to say what it found."""
    print(json.dumps([name, result]), flush=True)


def make(folder, *targets, timeout=900):
    """Build as `make` does, with this interpreter and independent of a make that called us.

    TimeoutExpired: it takes too long. Nothing that it has begun goes on.
    """
    environment = {k: v for k, v in os.environ.items() if k not in MAKE}
    environment["PYTHON"] = sys.executable
    process = subprocess.Popen(
        ["make", *targets],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=timeout)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
