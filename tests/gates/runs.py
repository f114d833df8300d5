"""R7 and R14: tests in Python as a whole, again and again: of large arrays, and all of them."""

import re
import subprocess
import sys
import time

import helpers

from .parts import ROOT, Part

PASSED = re.compile(r"\b(\d+) passed\b")


def passed(device, *arguments):
    """Run a command of pytest or of parts.py: some tests have to pass, and none may fail."""
    required = ("--require-gpu",) if device == "cuda" else ()
    done = subprocess.run(
        [sys.executable, *arguments, "-q", "--device", device, *required],
        cwd=ROOT, env=helpers.child_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode} {done.stdout[-4000:]} {done.stderr[-1000:]}"
    found = PASSED.findall(done.stdout)
    assert found and int(found[-1]) > 0, done.stdout[-1000:]


def large(device, start, wanted, end):
    """Tests of arrays at and beyond 2^31 elements."""
    passed(device, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_big.py")
    return 1


def whole(device, start, wanted, end):
    """All tests, each time with other random data and other random programs."""
    done = 0
    while done < wanted and (time.monotonic() < end or not done):
        seed = str(1000 + start + done)
        left_out = () if device == "sim" else ("--ignore=tests/plants", "--ignore=tests/mutants")
        passed(device, "tests/parts.py", "tests", *left_out, "--seed", seed)
        done += 1
    return done


R7 = [Part("runs of the tests of large arrays", 1, large, ("cuda",))]
R14 = [Part("runs of all tests", lambda device: 10 if device == "cuda" else 50, whole)]
