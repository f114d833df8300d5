"""Several pytest processes for one run: each takes tests that no other has taken yet.

    python tests/parts.py 2 tests --device sim -k sort      as `python -m pytest ...`, but by two

Every process collects all tests and begins at another place (conftest.py asks a Part for each). It
takes one function of tests after the other, with all its parameters, so that all have work to the
end. A module that says TOGETHER = True, as its tests count on each other or share what takes long
to make, it takes as a whole; of one that says APART = True, whose functions are long, the tests of
one choice of parameters on all devices.
Tests that have to be `alone`, as they measure what other processes use, too, run in one more
process when these have ended.
What the first prints is seen as it comes, then what each of the others prints when it has ended;
then every test that failed, whichever process ran it, with the last lines of its report, and one
line for all of them; before these, which modules took longest. Without a number there are as many
processes as cores.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

OUTCOMES = ("failed", "error", "passed", "skipped", "deselected", "xfailed")
FAILURES = ("failed", "error")
SLOWEST = 30  # modules, told at the end
LINES = 12  # of the report of a test that failed, said again at the end
NOTHING_RAN = 5  # pytest's status


def unit_of(item):
    """What a process takes at once: a name for all tests of a module, a function or a choice."""
    name = str(item.path).replace(os.sep, "_")
    if getattr(item.module, "TOGETHER", False) or hasattr(item.module, "WORK"):
        return name
    name += f".{item.name.partition('[')[0]}"
    if not (getattr(item.module, "APART", False) and hasattr(item, "callspec")):
        return name
    choice = [str(x) for key, x in item.callspec.params.items() if key != "device"]
    return "-".join([name, *choice])


class Part:
    """One of the processes: `text` is number/count:folder, where what is taken leaves a file."""

    def __init__(self, text):
        place, self.folder = text.split(":", 1)
        self.number, self.count = map(int, place.split("/"))
        self.taken = {}  # unit: whether it is ours
        self.alone = []  # the names of tests that no part runs

    def order(self, items):
        """Return tests in the order of this process, those of a module together."""
        modules = [*dict.fromkeys(item.path for item in items)]
        begin = len(modules) * self.number // self.count
        ranks = {path: n for n, path in enumerate(modules[begin:] + modules[:begin])}
        return sorted(items, key=lambda item: ranks[item.path])

    def takes(self, item):
        """Whether this process runs a test."""
        unit = unit_of(item)
        if unit not in self.taken:
            try:
                os.close(os.open(Path(self.folder, unit), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                self.taken[unit] = False
            else:
                self.taken[unit] = True
        return self.taken[unit]

    def leave(self, stats):
        """Write down what became of the tests, of pytest's {outcome: reports}."""
        counts = {name: len(stats.get(name, ())) for name in OUTCOMES}
        told = [
            f"{name.upper()} {report.nodeid}\n{last_lines(report.longreprtext)}"
            for name in FAILURES
            for report in stats.get(name, ())
        ]
        seconds = Counter()
        for report in itertools.chain.from_iterable(stats.values()):
            if hasattr(report, "duration"):
                seconds[report.nodeid.partition("::")[0]] += report.duration
        left = {"counts": counts, "told": told, "alone": self.alone, "seconds": seconds}
        Path(self.folder, f"{self.number}.json").write_text(json.dumps(left))


def last_lines(text):
    """The end of a report, indented."""
    return "\n".join("    " + line for line in text.splitlines()[-LINES:])


def total_of(folder, count):
    """Of all processes: how many tests had which outcome, what is told of those that failed.

    And the names of those that have to be alone, and how many seconds each module took.
    """
    total, told, alone, seconds = Counter(), [], [], Counter()
    for n in range(count):
        file = Path(folder, f"{n}.json")
        ended = f"ERROR process {n} ended before its tests did"
        left = {"counts": {"error": 1}, "told": [ended], "alone": [], "seconds": {}}
        if file.exists():
            left = json.loads(file.read_text())
        if n:
            left["counts"].pop("deselected", None)  # all of them know of the same
        total.update(left["counts"])
        told += left["told"]
        alone = alone or left["alone"]
        seconds.update(left["seconds"])
    return total, told, alone, seconds


def environment(count):
    """That of each process: its share of the cores for NumPy's products.

    Threads that more processes than cores have wait for each other in loops, which takes three
    times as long.
    """
    share = str(max(1, (os.cpu_count() or 1) // count))
    return {"OPENBLAS_NUM_THREADS": share, **os.environ}


def run(count, tests, options):
    """Run tests by so many processes; return their statuses and what total_of gives."""
    with tempfile.TemporaryDirectory(prefix="parts-") as folder, ExitStack() as stack:
        processes, outputs = [], []
        for n in range(count):
            output = stack.enter_context(open(Path(folder, f"{n}.out"), "w+")) if n else None
            part = ["--part", f"{n}/{count}:{folder}"]
            command = [sys.executable, "-m", "pytest", *tests, *options, *part]
            there = environment(count)
            processes.append(subprocess.Popen(command, stdout=output, stderr=output, env=there))
            outputs.append(output)
        processes[0].wait()
        left = dict(enumerate(outputs[1:], start=1))
        while left:  # told as they end, so that a run that is cut off has told what it knows
            for n in [n for n in left if processes[n].poll() is not None]:
                output = left.pop(n)
                output.seek(0)
                print(output.read(), end="", flush=True)
            time.sleep(0.1)
        return [process.returncode for process in processes], *total_of(folder, count)


def main(arguments):
    """Run the tests; return pytest's status."""
    count, began = os.cpu_count(), time.monotonic()
    if arguments and arguments[0].isdigit():
        count, arguments = int(arguments[0]), arguments[1:]
    is_named = arguments and not arguments[0].startswith("-")
    tests, options = (arguments[:1], arguments[1:]) if is_named else (["tests"], arguments)
    statuses, total, failures, alone, seconds = run(count, tests, options)
    if alone:
        more, found, told, _, after = run(1, alone, options)
        seconds += after
        del found["deselected"]
        statuses, total, failures = statuses + more, total + found, failures + told
    slowest = [f"{Path(name).stem} {spent:.0f}" for name, spent in seconds.most_common(SLOWEST)]
    print(f"slowest modules, in seconds: {', '.join(slowest)}")
    print("\n".join(failures), end="\n" if failures else "")
    told = ", ".join([f"{total[name]} {name}" for name in OUTCOMES if total[name]])
    print(f"== {told} in {time.monotonic() - began:.0f}s, by {count} processes ==")
    failed = [status for status in statuses if status not in (0, NOTHING_RAN)]
    return failed[0] if failed else min(statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
