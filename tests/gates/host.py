"""R12: which lines of the library's host code the tests run, by gcov, on the simulated card.

`make coverage` builds the library for it and runs the tests; this part reads what they left in
build/coverage. Kernels and what only they call are not counted, and the simulator is not.
"""

import collections
import functools
import json
import re
import subprocess

from .parts import ROOT, Part

BUILT = ROOT / "build" / "coverage"
ENOUGH = 0.95


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


PARTS = [Part("lines of the host code", count, run_lines, ("sim",))]
