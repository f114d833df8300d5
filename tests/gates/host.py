"""R12: the library's host code under valgrind and gcc's analyzer, and which of its lines run.

`make coverage` builds the library for the last of these, runs the tests, and has the analyzer's
reports written; these parts read what is left in build/coverage and build/analyzed. Kernels and
what only they call are not counted, and the simulator is not.
"""

import collections
import functools
import json
import re
import shutil
import subprocess
import time

import helpers

from .parts import ROOT, Part

BUILT = ROOT / "build" / "coverage"
ENOUGH = 0.95
TESTS = ROOT / "build" / "tests" / "sim"
ANALYZED = ROOT / "build" / "analyzed"
# What gcc's analyzer, which is made for C, says of code that is right: {(file, warning): why}.
_SET = "what a function sets where it returns PVG_OK is not followed through a reference"
RIGHT = {
    ("cuda/arrays/operation.cuh", "malloc-leak"): "a text that stays for the whole process",
    ("cuda/runtime/graph.cu", "null-dereference"): _SET,
    ("cuda/runtime/stream.cu", "null-dereference"): _SET,
    ("cuda/arrays/array.cu", "null-dereference"): _SET,
    ("cuda/kernels/matmul/plan/export.cu", "use-of-uninitialized-value"): _SET,
}
# Tests whose references are long doubles, which valgrind computes as doubles: their values may
# differ then. valgrind's own findings give another status.
OF_LONG_DOUBLES = {"test_elementwise"}
# What they do on purpose: kernels that read where there is nothing, to lose the device; a malloc of
# their own, in place of which valgrind has its.
NOT_FOR_VALGRIND = {"test_fault", "test_host_memory"}
WARNING = re.compile(r"^(cuda/[\w./]+):(\d+):\d+: warning: (.*) \[-Wanalyzer-([\w-]+)\]$", re.M)


def reports():
    """What gcov says of each file in each object."""
    for notes in sorted(BUILT.rglob("*.gcno")):
        done = subprocess.run(
            ["gcov", "--json-format", "--stdout", "-o", notes.parent, notes],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for line in done.stdout.splitlines():
            yield from json.loads(line)["files"]


@functools.cache
def lines():
    """{file: {line of the host code: whether it was run}}, of all instances of a template."""
    found, functions = collections.defaultdict(collections.Counter), collections.defaultdict(set)
    for file in reports():
        name = file["file"]
        if name.startswith("cuda/") and not name.startswith("cuda/simulator"):
            for line in file["lines"]:
                found[name][line["line_number"]] += line["count"]
            functions[name] |= {(f["start_line"], f["end_line"]) for f in file["functions"]}
    for name, counts in found.items():
        text = (ROOT / name).read_text(encoding="utf-8").splitlines()
        for start, end in functions[name]:
            if is_of_device(text, start):
                for number in range(start, end + 1):
                    counts.pop(number, None)
    return {name: {n: c > 0 for n, c in counts.items()} for name, counts in found.items()}


def is_of_device(text, start):
    """Whether the declaration that ends in this line, the first being 1, is of a kernel's code."""
    first = start - 1
    while first > 0 and not re.search(r"[;{}]\s*$|^\s*$|^\s*#|\*/\s*$", text[first - 1]):
        first -= 1
    return bool(re.search(r"__device__|__global__", " ".join(text[first:start])))


def count(_):
    return sum(len(of_file) for of_file in lines().values())


def run_lines(device, start, wanted, end):
    run = sum(sum(of_file.values()) for of_file in lines().values())
    missed = {name: [n for n, was_run in sorted(x.items()) if not was_run]
              for name, x in lines().items()}  # fmt: skip
    worst = sorted(missed.items(), key=lambda item: -len(item[1]))[:20]
    told = "; ".join(f"{name} {len(numbers)}" for name, numbers in worst if numbers)
    print(f"lines that no test runs: {told}")
    assert run >= ENOUGH * count(device), f"{run:,} of {count(device):,} lines run; lacking: {told}"
    return run - start


def c_tests():
    found = [path for path in sorted(TESTS.glob("test_*")) if not path.suffix]
    return [path for path in found if path.name not in NOT_FOR_VALGRIND]


def under_valgrind(device, start, wanted, end):
    """C tests, whose kernels are host code here, without a wrong read, jump or write."""
    assert shutil.which("valgrind"), "there is no valgrind"
    assert c_tests(), "there is nothing in build/tests/sim; `make coverage` comes before"
    done = 0
    for program in c_tests()[start : start + wanted]:
        if done and time.monotonic() > end:
            break
        ran = subprocess.run(
            ["valgrind", "-q", "--error-exitcode=9", program],
            env=helpers.child_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        right = (0, 1) if program.name in OF_LONG_DOUBLES else (0,)
        assert ran.returncode in right, f"{program.name}: {ran.returncode} {ran.stderr[-4000:]}"
        done += 1
    return done


def analyzed():
    return sorted(ANALYZED.rglob("*.txt"))


def under_the_analyzer(device, start, wanted, end):
    """Files of host code, of which the analyzer says nothing but what is known to be right."""
    assert analyzed(), "there is nothing in build/analyzed; `make coverage` comes before"
    for report in analyzed()[start : start + wanted]:
        for file, line, what, kind in WARNING.findall(report.read_text(encoding="utf-8")):
            assert (file, kind) in RIGHT, f"{file}:{line}: {what}"
    return wanted


PARTS = [
    Part(
        "files under gcc's analyzer", lambda _: len(analyzed()) or 1, under_the_analyzer, ("sim",)
    ),
    Part("C tests under valgrind", lambda _: len(c_tests()) or 1, under_valgrind, ("sim",)),
    Part("lines of the host code", count, run_lines, ("sim",)),
]
