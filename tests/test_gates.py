"""The gates of a release at a tiny scale, and that each of them can fail: tests/gates.

A failure is planted in what a part runs; the gate then says what failed, and its status is 1.
"""

import contextlib
import json
import time
import types

import helpers
import numpy as np
import pytest
import test_process
import test_training_steps
from gates import __main__ as command
from gates import bits, calls, faults, files, host, memory, parts, processes, runs, sanitizers
from gates.parts import Part, figure, fresh, run_gate
from helpers import put
from uses import USES, Use

import pyvecgpu as vg

QUICK = ("add", "sum, axis 1", "download")


def few(monkeypatch):
    """Uses and trainings that take no time."""
    for module in (bits, processes):
        monkeypatch.setattr(module, "USES", {name: USES[name] for name in QUICK})
    monkeypatch.setattr(bits, "REPEATS", 2)
    monkeypatch.setattr(bits, "IN_THREADS", 2)


def run(part, device, wanted, start=0, seconds=60):
    return part(device, start, wanted, time.monotonic() + seconds)


# What is counted ----------------------------------------------------------------------------------


def test_counts_add_up_and_time_is_shared():
    def count(device, start, wanted, end):
        calls.append((start, wanted, end > time.monotonic()))
        return min(wanted, 3)

    calls, told = [], []
    table = [
        Part("x", 10, count),
        Part("y", lambda device: 4, count),
        Part("z", 1, count, ("sim",)),
    ]
    record = fresh("R5", "cpu")
    for _ in range(2):
        assert run_gate(record, table, 5, report=told.append)
    assert calls == [(0, 10, True), (0, 4, True), (3, 7, True), (3, 1, True)]
    assert told[-2:] == ["R5 on cpu: 6 of 10 x", "R5 on cpu: 4 y"]
    assert figure([record], "R5") == f"on cpu: 6 of 10 x; 4 y ({record['date']})"
    assert figure([record], "R9") == "not measured"
    assert run_gate(fresh("R5", "cpu"), table, 5, scale=0.1, report=told.append)
    assert calls[-2:] == [(0, 1, True), (0, 1, True)]


def test_a_failure_is_told(capsys, tmp_path, monkeypatch):
    """It stays in the file, and the page says nothing of that gate."""

    def fails(device, start, wanted, end):
        try:
            raise AssertionError("5 are left")
        finally:
            {}["an error of cleaning up"]

    monkeypatch.setattr(memory, "PARTS", [Part("x", 10, fails), Part("y", 10, fails)])
    path = tmp_path / "gates.json"
    assert command.main(["R5", "--device", "cpu", "--json", str(path)]) == 1
    assert "R5 on cpu FAILED: x: 5 are left" in capsys.readouterr().err
    (record,) = json.loads(path.read_text())["records"]
    assert record["problem"] == "x: 5 are left" and "y" not in record["parts"]
    assert figure([record], "R5") == "not measured"


def test_results_are_gone_on_with_if_the_sources_are_the_same(tmp_path, monkeypatch):
    path, page = tmp_path / "gates.json", tmp_path / "page.md"
    page.write_text("| R5 | a | b `x` | not measured |\n| R6 | a | b | not measured |\n")
    monkeypatch.setattr(command, "PAGE", page)
    monkeypatch.setattr(command, "measured_records", lambda: command.read(path)["records"])
    monkeypatch.setattr(memory, "PARTS", [Part("x", 10, lambda *_: 4)])
    arguments = ["R5", "--device", "cpu", "--json", str(path)]
    for count in (4, 8):
        assert command.main([*arguments, "--page"]) == 0
        (record,) = json.loads(path.read_text())["records"]
        assert record["parts"] == {"x": {"count": count, "goal": 10}}
    first, second = page.read_text().splitlines()
    assert first == f"| R5 | a | b `x` | on cpu: 8 of 10 x ({record['date']}) |"
    assert second.endswith("| not measured |")
    monkeypatch.setattr(command, "sources", lambda: "others")
    assert command.main(arguments) == 0
    assert json.loads(path.read_text())["records"][0]["parts"]["x"]["count"] == 4


def test_gates_are_those_of_the_page():
    for gate in command.GATES:
        assert command.parts_of(gate), gate
    assert command.main([]) == 0


# R3 -----------------------------------------------------------------------------------------------


def said(tmp_path, monkeypatch, name, text, status=0):
    """Let a program of the gate say this instead."""
    monkeypatch.setattr(calls, "ROOT", tmp_path)
    program = tmp_path / "build" / "tests" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{text}\nexit {status}\n")
    program.chmod(0o755)


def test_calls_from_c_are_counted(tmp_path, monkeypatch):
    wanted = 'echo "fuzz: seed $2: 123 calls, nothing wrong"'
    said(tmp_path, monkeypatch, "sim/fuzz", wanted)
    assert run(calls.from_c("sim"), "sim", 1000, start=77) == 123
    said(tmp_path, monkeypatch, "sim/fuzz", wanted.replace(", nothing wrong", ""), status=1)
    with pytest.raises(AssertionError, match="1 fuzz: seed 1000077: 123 calls"):
        run(calls.from_c("sim"), "sim", 1000, start=77)
    with pytest.raises(AssertionError, match="there is no build/tests/asan/fuzz"):
        run(calls.from_c("asan"), "sim", 1000)
    told = "echo fuzz_guided: 3 inputs, 45 calls{} >&2; test -d build/corpus || exit 3"
    said(tmp_path, monkeypatch, "guided/fuzz_guided", told.format(", nothing wrong"))
    assert run(calls.chosen, "sim", 1000) == 45
    said(tmp_path, monkeypatch, "guided/fuzz_guided", told.format(""))
    with pytest.raises(AssertionError, match=r"no count in .*45 calls"):
        run(calls.chosen, "sim", 1000)


def test_programs(device, monkeypatch):
    assert run(calls.in_python, device, 3, start=5) == 3
    monkeypatch.setattr(
        calls.programs, "draw", lambda seed, index: types.SimpleNamespace(problem=lambda on: on)
    )
    with pytest.raises(AssertionError, match=rf"draw\(1000000, 5\): {device}"):
        run(calls.in_python, device, 3, start=5)


# R5 -----------------------------------------------------------------------------------------------


@pytest.mark.alone("cuda")
@pytest.mark.devices("sim", "cuda")
def test_allocations_and_launches(device):
    assert run(memory.soak("allocations"), device, 20_000) == 20_000
    assert run(memory.soak("launches"), device, 500) == 500


def test_arrays(device):
    assert run(memory.arrays, device, 5_000) >= 5_000


def test_arrays_that_are_left_are_seen(device, monkeypatch):
    if device == "cpu":  # which counts no arrays: memory that grows is seen
        monkeypatch.setattr(memory, "SLACK", {"cpu": 0})
        with pytest.raises(AssertionError, match="has grown by 8,192 bytes"):
            memory.check_growth("cpu", [0, 4096, 4096, 12288], 1000)
        return
    kept, dropped = [], memory.drop_arrays

    def keep_one(*about):
        dropped(*about)
        kept.append(vg.ones(3, device=device))

    monkeypatch.setattr(memory, "drop_arrays", keep_one)
    there = helpers.in_use(device).get("arrays", 0)
    with pytest.raises(AssertionError, match=rf"left: .*'arrays': {there + 8}"):
        run(memory.arrays, device, 100)


def test_a_thread_that_fails_is_seen(device, monkeypatch):
    monkeypatch.setattr(memory, "drop_arrays", lambda *_: 1 / 0)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run(memory.arrays, device, 100)


# R6 -----------------------------------------------------------------------------------------------


@pytest.mark.devices("sim")
def test_calls_that_fail(device, simulator, monkeypatch):
    calls, before, after = faults.calls_of("perceptron")
    assert {kind for kind, _ in calls} >= {"malloc", "launch", "copy", "event", "stream"}
    some = [next(x for x in calls if x[0] == kind) for kind in ("malloc", "launch", "stream")]
    monkeypatch.setattr(faults, "calls_of", lambda _: (some, before, after))
    assert run(faults.fail_one_after_another("perceptron"), device, 3) == 3
    half = types.SimpleNamespace(state=lambda: (before[0][:-1], after))
    used = helpers.live(device)
    with pytest.raises(AssertionError, match="malloc 1: neither as before nor"):
        faults.check(half, before, after, used, "malloc 1")
    half.state = lambda: before
    faults.check(half, before, after, used, "malloc 1")
    x = vg.ones(3, device=device)
    with pytest.raises(AssertionError, match=r"malloc 1: \(1, \d+\) in use, not \(0, 0\)"):
        faults.check(half, before, after, used, "malloc 1")
    del x


@pytest.mark.devices("sim")
def test_a_launch_whose_failure_is_not_noticed_is_seen(device, simulator):
    class Deaf:
        loaded = simulator

        def step(self):
            with contextlib.suppress(vg.LaunchError):
                vg.exp(x)
            vg.exp(x)  # one that has failed is not counted

    x = put(device, np.ones(3))
    with pytest.raises(AssertionError, match="launch 1 has failed unnoticed"):
        faults.fail(Deaf(), "launch", 1)


# R8 and R9 ----------------------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
def test_operations_and_threads(device, monkeypatch):
    few(monkeypatch)
    assert run(bits.operations, device, 2, start=1) == 2
    assert run(processes.threads, device, 1) == 1
    wobbly = iter(range(10**6))
    other = Use({"a": ((3,), np.dtype("f4"))}, lambda v: v["a"] + float(next(wobbly)))
    monkeypatch.setitem(bits.USES, "add", other)
    with pytest.raises(AssertionError, match="add: other bits"):
        run(bits.operations, device, 3)
    monkeypatch.setitem(processes.USES, "add", other)
    with pytest.raises(AssertionError, match="add: other bits"):
        run(processes.threads, device, 1)


def test_trainings(device, monkeypatch):
    assert run(bits.trainings(1), device, 1) == 1
    other = iter(range(10))
    monkeypatch.setattr(test_training_steps, "trained", lambda *_: next(other))
    with pytest.raises(AssertionError, match="perceptron: other bits"):
        run(bits.trainings(1), device, 1)


def test_processes(device, monkeypatch):
    assert run(processes.counted(processes.fork), device, 1) == 1
    assert run(processes.counted(processes.leave), device, 1, start=3) == 1
    assert run(processes.interrupts, device, 20) == 20
    monkeypatch.setattr(test_process, "EXITS", {"": "import sys; sys.stderr.write('x')"})
    with pytest.raises(AssertionError, match="0 x"):
        run(processes.counted(processes.leave), device, 1)
    code = test_process.FORK.replace("sys.exit(0)", "sys.exit(3)")
    monkeypatch.setattr(test_process, "FORK", code)
    with pytest.raises(AssertionError, match=r"4.0\], 3, \[2.0"):
        run(processes.counted(processes.fork), device, 1)


# R10 ----------------------------------------------------------------------------------------------


@pytest.mark.needs("safetensors")
def test_damaged_files():
    for part in files.PARTS:
        assert run(part.run, "cpu", 10) == 10
    for kind in (".npz", ".safetensors"):
        found = files.load_damaged(kind, 0, 200, 60)
        assert found["done"] == 200 and 50 < found["refused"] < 200 and not found["problem"]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (lambda path: {}[0], "KeyError"),
        (lambda path: object(), "loaded as object"),
        (lambda path: time.process_time() and files.spend(2), "s: b"),
    ],
    ids=range(3),
)
def test_harm_that_a_damaged_file_does_is_seen(monkeypatch, wrong, problem):
    monkeypatch.setattr(files, "SECONDS", 0.0 if problem == "s: b" else 1.0)
    monkeypatch.setattr(files, "spend", lambda _: {}, raising=False)
    good = []  # which are loaded first

    def load(path):
        good.append(path)
        return {} if len(good) <= 4 else wrong(path)

    found = files.load_damaged(".npz", 0, 10, 60, load)
    assert found["done"] == 0 and problem in found["problem"]


def test_every_damage_is_done():
    rng, whole = files.random.Random(1), b"0123 abc " * 20
    for damage in files.DAMAGES:
        changed = 0
        for _ in range(20):
            content = bytearray(whole)
            damage(rng, content)
            changed += content != whole
            damage(rng, bytearray())  # of nothing
        assert changed > 5, damage
    assert parts.text_of("x", {"count": 1000, "goal": 1000}) == "1,000 x"


# R1, R7 and R14 -----------------------------------------------------------------------------------


def test_reports_of_compute_sanitizer(tmp_path, monkeypatch):
    monkeypatch.setattr(sanitizers, "REPORTS", tmp_path)
    part = sanitizers.clean("memcheck")
    with pytest.raises(AssertionError, match="nothing in build/memcheck"):
        run(part, "cuda", 1)
    ends = "shard {}/2 on cuda: {} of 24 cases, 9 of 9 kernels launched\n== ERROR SUMMARY: {}"
    (tmp_path / "memcheck.1").write_text(ends.format(1, 12, "0 errors\n"))
    (tmp_path / "memcheck.2").write_text(ends.format(2, 11, "0 errors\n"))
    (tmp_path / "racecheck.1").write_text("========= RACECHECK SUMMARY: 0 hazards displayed (0 er")
    assert run(part, "cuda", 23) == 23 and sanitizers.cases("memcheck") == 23
    assert run(sanitizers.clean("racecheck"), "cuda", 1) == 0
    (tmp_path / "memcheck.2").write_text(ends.format(2, 11, "10 errors\n"))
    with pytest.raises(AssertionError, match=r"(?s)memcheck\.2: .*10 errors"):
        run(part, "cuda", 23)
    (tmp_path / "racecheck.1").write_text("========= RACECHECK SUMMARY: 1 hazard displayed (1 er")
    with pytest.raises(AssertionError, match=r"racecheck\.1"):
        run(sanitizers.clean("racecheck"), "cuda", 1)


def test_runs_of_tests(tmp_path, monkeypatch):
    asked = []

    def answer(*status_and_text):
        def done(command, **_):
            asked.append(command[1:])
            return types.SimpleNamespace(
                returncode=status_and_text[0], stdout=status_and_text[1], stderr=""
            )

        monkeypatch.setattr(runs.subprocess, "run", done)

    answer(0, "== 0 failed, 12 passed in 3s ==")
    assert run(runs.large, "cuda", 1) == 1 and "--require-gpu" in asked[-1]
    assert run(runs.whole, "sim", 3, start=5) == 3
    assert [command[command.index("--seed") + 1] for command in asked[-3:]] == [
        *("1005", "1006", "1007")
    ]
    assert not any("--require-gpu" in command for command in asked[-3:])
    assert run(runs.whole, "sim", 3, seconds=-1) == 1
    for status, text in ((1, "1 failed, 12 passed"), (0, "0 passed"), (0, "739 deselected")):
        answer(status, text)
        with pytest.raises(AssertionError, match=text):
            run(runs.whole, "sim", 3)


# R12 ----------------------------------------------------------------------------------------------


def test_warnings_of_the_analyzer(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "ANALYZED", tmp_path)
    assert host.PARTS[0].goal_on("sim") == 1
    with pytest.raises(AssertionError, match="nothing in build/analyzed"):
        run(host.under_the_analyzer, "sim", 1)
    (tmp_path / "runtime").mkdir()
    report = tmp_path / "runtime" / "graph.txt"
    report.write_text(
        "cuda/runtime/graph.cu:94:53: warning: dereference of NULL 'graph' [CWE-476] "
        "[-Wanalyzer-null-dereference]\n  a remark\n"
    )
    (tmp_path / "view.txt").write_text("")
    assert len(host.analyzed()) == 2
    assert run(host.under_the_analyzer, "sim", 2) == 2
    report.write_text(report.read_text().replace("null-dereference", "double-free"))
    with pytest.raises(AssertionError, match=r"cuda/runtime/graph.cu:94: dereference of NULL"):
        run(host.under_the_analyzer, "sim", 2)
    assert run(host.under_the_analyzer, "sim", 1, start=1) == 1


def test_what_the_analyzer_may_say_is_of_files_that_are_there():
    for file, kind in host.RIGHT:
        assert (host.ROOT / file).exists(), (file, kind)


def test_c_tests_under_valgrind(tmp_path, monkeypatch):
    """valgrind's place is taken by a program that fails as it does."""
    monkeypatch.setattr(host, "TESTS", tmp_path)
    (tmp_path / "valgrind").write_text("#!/bin/sh\nexec $3\n")
    for name, status in (("test_a", 0), ("test_b", 9), ("test_c", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho Invalid read >&2\nexit {status}\n")
    (tmp_path / "test_a.d").write_text("")
    monkeypatch.setattr(host, "TESTS", tmp_path / "none")
    assert host.PARTS[1].goal_on("sim") == 1
    monkeypatch.setattr(host.shutil, "which", lambda name: name)
    with pytest.raises(AssertionError, match="nothing in build/tests/sim"):
        run(host.under_valgrind, "sim", 1)
    monkeypatch.setattr(host, "TESTS", tmp_path)
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert [path.name for path in host.c_tests()] == ["test_a", "test_b", "test_c"]
    assert run(host.under_valgrind, "sim", 1) == 1
    assert run(host.under_valgrind, "sim", 9, start=2) == 1
    with pytest.raises(AssertionError, match="test_b: 9 Invalid read"):
        run(host.under_valgrind, "sim", 9)
    assert run(host.under_valgrind, "sim", 9, seconds=-1) == 1
