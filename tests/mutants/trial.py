"""Whether a mutant is noticed: it is built in a copy of the tree, and tests run until one fails.

The copy has what `make` has built, so that a mutant compiles what includes its file, and a twin
that it is put back from. C tests of the untouched copy run once, before a mutant's: they have to
pass, and what takes ten times as long later hangs. A Python test that a mutant fails has to fail
with it once more, alone or with the others of its file, and to pass without it, before the verdict
rests on it. Those that call the mutated function, if that is known (calls.py), come before the
others.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import ahead

from . import calls
from .areas import LEFT_OUT, ROOT, tests_of

SECONDS = 180  # of tests, for each mutant
PROGRAMS = 600  # random ones on a device; more take more than a mutant's seconds
SILENCE = 90  # seconds in which pytest says nothing: a test hangs
KEPT = ("Makefile", "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
        "cuda", "pyvecgpu", "tests", "docs")  # fmt: skip
BUILT = {
    "sim": ("build/sim", "build/asan", "build/tsan", "build/tests"),
    "gpu": ("build/gpu", "build/tests"),
}
LIBRARY = {"sim": "pyvecgpu/libpyvecgpu_sim.so", "gpu": "pyvecgpu/libpyvecgpu.so"}
FOLDER = {"sim": "build/tests/sim", "gpu": "build/tests"}
# C tests with threads, which ThreadSanitizer watches early, some 9 s, where a lock is gone.
THREADED = ("threads", "contexts", "error", "graph")
LOCK = re.compile(r"(?<![a-z])lock|mutex")
BOTH_ORDERS = {"PVG_TEST_ALLOCATOR": "direct", "PVG_TEST_SIM_CHECK_ORDER": "1"}
# The C tests that concern a file run under these too, where `make` has built them.
SANITIZERS = {
    "tsan": {},
    "asan": {"PVG_TEST_ALLOCATOR": "direct", "ASAN_OPTIONS": "detect_leaks=0"},
}


@dataclass(frozen=True)
class Step:
    """Tests that run together."""

    tests: tuple  # names of what runs
    command: tuple
    settings: dict = field(default_factory=dict)
    target: str = ""  # what make has to make first
    is_pytest: bool = False


@dataclass
class Outcome:
    failed: bool
    by: str = ""  # the test, and how
    seconds: float = 0


class Tree:
    def __init__(self, folder, where, patience=900):
        self.folder, self.where, self.patience = folder, where, patience
        self.work, self.untouched = folder / "work", folder / "untouched"
        shutil.rmtree(folder, ignore_errors=True)
        for name in (*KEPT, *BUILT[where]):
            source, target = ROOT / name, self.work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy2(source, target)
        shutil.copytree(self.work, self.untouched)
        self.scratch = folder / "scratch"

    def build(self, mutant):
        """Put the mutant in and build it. Whether it builds, and makes other code."""
        path = self.work / mutant.path
        text = mutant.apply(path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
        if mutant.path.endswith(".py"):
            with contextlib.suppress(SyntaxError):
                compile(text, mutant.path, "exec")
                return True
            return False
        return self.make(LIBRARY[self.where]) and bool(self.changed("build/*/**/*.o"))

    def make(self, target):
        with contextlib.suppress(subprocess.TimeoutExpired):
            jobs = f"-j{len(os.sched_getaffinity(0))}"
            return ahead.make(self.work, jobs, target, timeout=self.patience).returncode == 0
        return False

    def touched(self, pattern="**/*"):
        """(file, twin) of those whose time is not the twin's."""
        for twin in self.untouched.glob(pattern):
            path = self.work / twin.relative_to(self.untouched)
            if twin.is_file():
                time_now = path.stat().st_mtime_ns if path.exists() else None
                if time_now != twin.stat().st_mtime_ns:
                    yield path, twin

    def changed(self, pattern):
        return [path for path, twin in self.touched(pattern)
                if not path.exists() or path.read_bytes() != twin.read_bytes()]  # fmt: skip

    def restore(self):
        for path, twin in self.touched():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(twin, path)

    def run(self, step, limit, silence):
        """Run a step; it may take `limit` seconds, and be silent for `silence`."""
        if step.target and not self.make(step.target):
            return Outcome(True, f"{step.tests[0]} (make {step.target} fails)")
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        settings = {"PYTHONPATH": "", **step.settings, "TMPDIR": str(self.scratch)}
        log, begun = self.folder / "log", time.monotonic()
        with open(log, "w") as output:
            process = subprocess.Popen(
                step.command,
                cwd=self.work,
                env={**os.environ, "PVG_TEST_PROGRAMS": str(PROGRAMS), **settings},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            ended = self.wait(process, log, limit, silence)
        finally:  # after Ctrl-C too
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        status, text = process.wait(), log.read_text(errors="replace")
        seconds = time.monotonic() - begun
        if ended == "out of time":
            return Outcome(False, ended, seconds)
        failed = status != 0 and not (step.is_pytest and status == 5)  # 5: all are deselected
        by = self.culprit(step, status if ended is None else ended, text) if failed else ""
        return Outcome(failed, by, seconds)

    @staticmethod
    def wait(process, log, limit, silence):
        """None when a process ends by itself, else why it must."""
        size, begun = 0, time.monotonic()
        spoke = begun
        while process.poll() is None:
            time.sleep(0.02)
            now, written = time.monotonic(), log.stat().st_size
            size, spoke = (written, now) if written != size else (size, spoke)
            if now - spoke > silence:
                return "hangs"
            if now - begun > limit:
                return "out of time"
        return None

    @staticmethod
    def culprit(step, status, text):
        """Which test failed, in a few words."""
        if step.is_pytest:
            found = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", text, re.MULTILINE)
            begun = re.findall(r"^(tests/\S+::.*?)(?: PASSED.*| SKIPPED.*)?$", text, re.MULTILINE)
            test = found.group(1) if found else begun[-1] if begun else step.tests[0]
            return f"{test} ({status})" if status != 1 else test
        section = re.search(r"^\S+\.(?:c|cu|h):\d+: (\w+): .*$", text, re.MULTILINE)
        return f"{step.tests[0]} ({section.group(1) if section else status})"


def devices_of(area):
    return ["cuda"] if area.where == "gpu" else ["sim"] if area.c_tests else ["cpu", "sim"]


def steps_of(area, mutant, root, seconds, near, devices=None):
    """The tests that a mutant meets, in their order; `near`: only those that concern its file.

    `seconds`: what tests took before.
    """
    (c_near, c_far), (py_near, py_far) = tests_of(area, mutant.path, root)
    devices = devices or devices_of(area)
    if "self" in area.c_tests.split():
        yield from (self_test(path.stem) for path in
                    sorted((root / "cuda/simulator/tests").glob("test_*.cu")))  # fmt: skip
    for name in c_near:
        yield c_test(area, name)
    is_unlocked = mutant.rule == "wait" and LOCK.search(mutant.was)
    early = [name for name in THREADED if is_unlocked and name in c_near]
    yield from sanitized(area, "tsan", early, root)
    yield from sanitized(area, "asan", c_near, root)
    yield from (py_tests(device, py_near) for device in devices)
    has_kernels = re.search("__(global|device)__", (root / mutant.path).read_text())
    if area.where == "sim" and has_kernels:
        yield from (c_test(area, name, BOTH_ORDERS, "order") for name in c_near
                    if name != "host_memory")  # whose launches save much memory  # fmt: skip
    if near:
        return
    for name in c_far:
        yield c_test(area, name)
    yield from sanitized(area, "tsan", [name for name in c_near if name not in early], root)
    for device in devices:
        fastest = sorted(py_far, key=lambda name: seconds.get(f"{device} {name}", 0))
        yield py_tests(device, fastest)


def sanitized(area, way, names, root):
    if area.where == "sim" and (root / f"build/{way}/libpyvecgpu_sim.so").exists():
        yield from (c_test(area, name, SANITIZERS[way], way) for name in names)


def self_test(name):
    binary = f"build/sim/simulator/tests/{name}"
    return Step((f"self {name}",), (binary,), target=binary)


def c_test(area, name, settings=None, way=""):
    folder = f"build/tests/{way}" if way in SANITIZERS else FOLDER[area.where]
    label = f"C test_{name}" + (f", {way}" if way else "")
    target = f"{folder}/test_{name}" if way in SANITIZERS else ""
    return Step((label,), (f"{folder}/test_{name}",), settings or {}, target)


def py_tests(device, names, settings=None):
    command = (sys.executable, "-m", "pytest", "-x", "-v", "--tb=line", "-p", "no:cacheprovider",
               "--device", device, *(f"tests/test_{name}.py" for name in names))  # fmt: skip
    if device == "cuda":
        command += ("--require-gpu",)
    plugin = ("-p", "mutants.calls") if settings else ()
    tests = tuple(f"{device} {name}" for name in names)
    return Step(tests, command + plugin, settings or {}, is_pytest=True)


class Judge:
    """Verdicts about the mutants of a tree. `seconds` are those of tests without a mutant."""

    def __init__(self, tree, seconds, near, limit=SECONDS, without=()):
        self.tree, self.seconds, self.near, self.limit = tree, seconds, near, limit
        self.without = without  # names of C tests, which fail on this machine as it is
        self.known = {}  # {device: calls.Calls}

    def record(self, folder, devices):
        """Run the tests of some devices to learn which calls what, unless that is known."""
        for device in devices:
            path = folder / f"calls-{device}.json"
            if not path.exists():
                names = [one.stem.removeprefix("test_") for one in
                         sorted((self.tree.work / "tests").glob("test_*.py"))]  # fmt: skip
                names = [name for name in names if name not in LEFT_OUT]
                settings = {"PYTHONPATH": "tests", "MUTANTS_CALLS": str(path)}
                self.tree.run(py_tests(device, names, settings), 7200, 1200)
            self.known[device] = calls.Calls(path)
        if self.known.keys() >= {"cpu", "sim"}:
            self.known["sim"].adopt(self.known["cpu"], "cpu", "sim")

    def callers(self, area, mutant):
        """Steps of the tests that call the function of a mutant, of each device."""
        if not mutant.path.endswith(".py"):
            return
        text = (self.tree.untouched / mutant.path).read_text(encoding="utf-8")
        near, _ = tests_of(area, mutant.path, self.tree.work)[1]
        for device, known in self.known.items():
            name = calls.name_at(text, mutant.line)
            chosen = known.of(mutant.path, name, near) or known.of(mutant.path, "", near)
            if chosen:
                path = self.tree.folder / f"first-{device}"
                path.write_text("\n".join(chosen))
                files = dict.fromkeys(name.split("::")[0] for name in chosen)
                names = [Path(name).stem.removeprefix("test_") for name in files]
                yield py_tests(device, names, {"PYTHONPATH": "tests", "MUTANTS_FIRST": str(path)})

    def devices(self, area, mutant):
        """An area's devices, those last of which no test calls anything of the file."""
        idle = [device for device, known in self.known.items() if not known.enters(mutant.path)]
        return sorted(devices_of(area), key=lambda device: device in idle)

    def control(self, step):
        """Run what has not yet run without a mutant: it must pass. Whether it has at once.

        Python tests may fail by chance, or be silent for long on a busy machine, but not twice.
        """
        at_once = True
        for name in step.tests:
            if name in self.seconds:
                continue
            device, _, test = name.partition(" ")
            one = py_tests(device, [test]) if step.is_pytest else step
            outcome = self.tree.run(one, 1200, 300)
            if (outcome.failed or outcome.by) and step.is_pytest:
                at_once, outcome = False, self.tree.run(one, 1200, 600)
            if outcome.failed or outcome.by:
                log = (self.tree.folder / "log").read_text(errors="replace")[-3000:]
                raise SystemExit(f"{log}\nWithout a mutant {name} fails: {outcome.by}")
            self.seconds[name] = round(outcome.seconds, 2)
        return at_once

    def judge(self, area, mutant):
        """(Outcome, number of tests) of a mutant; None for one that makes no other code."""
        devices = self.devices(area, mutant)
        steps = list(steps_of(area, mutant, self.tree.work, self.seconds, self.near, devices))
        callers = list(self.callers(area, mutant))
        steps = callers if self.near and callers else [*callers, *steps]
        steps = [step for step in steps if not is_of(step, self.without)]
        for step in steps:
            if not step.is_pytest:
                self.control(step)
        try:
            if not self.tree.build(mutant):
                return None
            step, outcome = self.first_failure(steps)
        finally:
            self.tree.restore()
        if outcome.failed and step.is_pytest and not self.control(culprits(step, outcome.by)):
            return self.judge(area, mutant)  # it may have been as little the mutant's doing
        return outcome

    def first_failure(self, steps):
        """(step, outcome) of the first step that fails, or of the last one."""
        left, spent, steps = self.limit, 0.0, list(steps)
        while steps and left > 0 and steps[0].tests:
            step = steps.pop(0)
            limit, silence = left, SILENCE
            if not step.is_pytest:
                hang = 10 * self.seconds[step.tests[0]] + 20
                limit, silence = max(limit, hang), hang
            outcome = self.tree.run(step, limit, silence)
            left, spent = left - outcome.seconds, spent + outcome.seconds
            if outcome.failed and step.is_pytest and not self.repeats(step, outcome.by):
                steps[:0] = without(step, outcome.by)
            elif outcome.failed:
                return step, Outcome(True, outcome.by, round(spent, 1))
        return None, Outcome(False, "", round(spent, 1))

    def repeats(self, step, by):
        """Whether a Python test that has failed fails once more: alone, or else in its file.

        What fails by chance does not; what other tests bring about does in its file. The time for
        it is no part of the mutant's.
        """
        file, test = culprits(step, by), re.match(r"(tests/.*?::.*?)(?: \(\w+\))?$", by)
        limit = self.limit + SILENCE
        if test:
            alone = self.tree.run(only(file, test.group(1)), limit, SILENCE)
            if alone.failed and not alone.by.endswith(" (4)"):  # 4: pytest finds no such test
                return True
        again = self.tree.run(file, limit, SILENCE)
        return again.failed and (not test or again.by == by)


def is_of(step, names):
    """Whether a step is one of these C tests, in whichever way it runs."""
    return step.tests[0].split(",")[0].removeprefix("C test_") in names


def only(step, *tests):
    """A step of Python tests with these alone: files, or tests in them."""
    options = [one for one in step.command if not one.startswith("tests/test_")]
    return replace(step, command=(*options, *tests))


def without(step, by):
    """What is left of a step when the test that failed by chance is left out."""
    if "::" not in by:
        return []
    test = re.sub(r" \(\w+\)$", "", by)
    return [replace(step, command=(*step.command, f"--deselect={test}"))]


def culprits(step, by):
    """The tests of a step that may have failed: those of the file that is named, or else all."""
    found = re.match(r"tests/test_(\w+)\.py", by)
    names = [one for one in step.tests if found and one.split(" ")[1] == found.group(1)]
    if not names:
        return step
    return replace(only(step, found.group()), tests=tuple(names))
