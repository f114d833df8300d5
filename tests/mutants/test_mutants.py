"""What mutants are drawn, and how verdicts are counted. `make mutants` itself runs for hours."""

import collections
import dataclasses
import itertools
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from mutants import __main__ as command
from mutants import areas, c_rules, calls, crew, draw, python_rules, sites, supply, trial
from mutants.areas import AREAS, ROOT

C_CASES = {
    "if (a < b) f(a, b);": {
        ("comparison", "a <= b"), ("comparison", "a >= b"), ("comparison", "a > b"),
        ("condition", "(!(a < b))"), ("condition", "(true)"), ("condition", "(false)"),
        ("operand", "f(b, a)"), ("statement", ") {}"),
    },
    "x = y - 16u;": {
        ("constant", "17u"), ("constant", "15u"), ("constant", "32u"), ("constant", "0u"),
        ("operand", "16u - y"), ("statement", "{ {} }"),
    },
    "__syncthreads();": {("wait", "{ {} }")},
    "std::lock_guard<std::mutex> hold(lock);": {("wait", "{ {} }")},
    "if (!a && b) free_block(p);": {
        ("condition", "||"), ("condition", "!(!a && b)"), ("condition", "(true)"),
        ("condition", "(false)"), ("release", ") {}"),
    },
    "return PVG_ERROR_VALUE;": {
        ("error", "PVG_ERROR_TYPE"), ("error", "PVG_ERROR_INDEX"), ("statement", "{ {} }"),
    },
    "f(a[1 - i].b,\n  c);": {
        ("constant", "[2 -"), ("constant", "[0 -"), ("operand", "[i - 1]"),
        ("operand", "f(c,\n  a[1 - i].b)"), ("statement", "{ {}\n }"),
    },
    "int n;": set(),
    'asm volatile("bar.sync 0;" ::: "memory");': set(),
    "static_assert(a < 16, \"16 < 3\");": set(),
    "// a < 16\n/* f(); */": set(),
}  # fmt: skip
PYTHON_CASES = {
    "if a < b <= c: f()": {
        ("comparison", "a <= b <= c"), ("comparison", "a > b <="), ("comparison", "a >= b <="),
        ("comparison", "b < c"), ("comparison", "b > c"), ("comparison", "b >= c"),
        ("condition", "not (a < b <= c)"), ("condition", "if True"), ("condition", "if False"),
        ("statement", ": pass"),
    },
    "raise ValueError(f'{a + 1}')": {
        ("error", "pass"), ("error", "TypeError"), ("error", "IndexError"),
        ("error", "OverflowError"), ("error", "RuntimeError"),
    },
    "with self.lock: x.y = g(b, 'a < 1')": {
        ("wait", "if True:"), ("operand", "g('a < 1', b)"), ("statement", ": pass"),
    },
    "é = a - b if c is not None else True": {
        ("operand", "b - a if"), ("operand", "= True if"), ("comparison", "c is None"),
        ("condition", "not (c is not None)"), ("condition", "if True"), ("condition", "if False"),
        ("condition", "else False"),
    },
    "library.pvg_array_release(a)": {("release", "pass")},
    "'1 < 2'": set(),
}  # fmt: skip


@pytest.mark.parametrize("text", C_CASES)
def test_places_in_c(text):
    whole = f"#define A(x) (1 < x)\ntemplate <int N, bool B = 1 < 2> void f() {{ {text} }}\n"
    check_places(c_rules.sites(whole), whole, C_CASES[text])


@pytest.mark.parametrize("text", PYTHON_CASES)
def test_places_in_python(text):
    check_places(python_rules.sites(text), text, PYTHON_CASES[text])


def check_places(found, text, expected):
    """Each expected mutant is there once, and there is no other."""
    mutants = [(site.rule, draw.mutant("a.c", text, site, other).apply(text))
               for site in found for other in site.others]  # fmt: skip
    assert len(set(mutants)) == len(mutants) == len(expected), mutants
    for rule, part in expected:
        assert (
            sum(rule == one and part in mutant and mutant != text for one, mutant in mutants) == 1
        )
    assert all(mutant.count("\n") == text.count("\n") for _, mutant in mutants)


def test_every_file_is_in_one_area():
    seen = collections.Counter(path for area in AREAS for path in area.paths())
    assert set(seen.values()) == {1}, [path for path in seen if seen[path] > 1]
    every = {path.relative_to(ROOT).as_posix() for kind in ("cu", "cuh", "cpp", "h")
             for path in ROOT.glob(f"cuda/**/*.{kind}")}  # fmt: skip
    every |= {path.relative_to(ROOT).as_posix() for path in ROOT.glob("pyvecgpu/**/*.py")}
    left = {path for path in every - set(seen) if not path.endswith("__init__.py")}
    left -= {"cuda/pyvecgpu.h", "cuda/simulator/pyvecgpu_sim.h"}  # the tests' own
    left -= {"cuda/kernels/wgmma.cuh"}  # a script writes it
    assert not {path for path in left if not re.match("cuda/(lessons|(simulator/)?tests)/", path)}


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_an_area_has_mutants_and_tests(area):
    first, second, other = (
        list(itertools.islice(draw.sequence(area, seed), 60)) for seed in (1, 1, 2)
    )
    assert first == second != other and len(first) == 60
    assert len({(mutant.path, mutant.start, mutant.rule) for mutant in first}) == 60
    assert {mutant.rule for mutant in first} <= set(sites.RULES)
    for mutant in first:
        assert mutant.was != mutant.now
        (c_near, c_far), (py_near, py_far) = areas.tests_of(area, mutant.path)
        assert set(area.c_tests.split()) - {"self"} <= {*c_near, *c_far}, "a C test is not there"
        assert {*c_near, *c_far} <= set(areas.names(ROOT / "cuda/tests", "test_*.c"))
        assert set(area.py_tests.split()) <= {*py_near, *py_far}, "a test is not there"
        assert not set(areas.LEFT_OUT) & {*py_near, *py_far}
    if area.files.startswith("pyvecgpu"):
        for mutant in first:
            compile(mutant.apply((ROOT / mutant.path).read_text()), mutant.path, "exec")


def test_what_is_left_out_is_there():
    assert set(areas.LEFT_OUT) <= set(areas.names(ROOT / "tests", "test_*.py"))


def test_the_equivalent_are_of_these_sources():
    for (path, was, now, following), reason in command.reasons().items():
        text, whole = " ".join((ROOT / path).read_text().split()), f"{was} {following or ''}"
        assert whole.strip() in text, f"{path} has no longer: {whole}"
        assert now != was and len(reason.split()) > 3
    assert json.loads(command.EQUIVALENT.read_text()) == sorted(
        json.loads(command.EQUIVALENT.read_text()), key=lambda row: (row["path"], row["was"])
    )


def test_rates(tmp_path, monkeypatch):
    equivalent = tmp_path / "equivalent.json"
    row = {"path": "a.c", "line": 3, "rule": "wait", "start": 1, "end": 2, "new": "", "now": "{}"}
    rows = [{**row, "was": f"f{i}();", "verdict": "lived" if i % 3 else "killed", "by": "",
             "seconds": 1} for i in range(6)]  # fmt: skip
    equivalent.write_text(json.dumps([{"path": "a.c", "was": "f1();", "now": "{}", "reason": "r"}]))
    monkeypatch.setattr(command, "EQUIVALENT", equivalent)
    rows[3]["first"] = "lived"
    state = command.State(tmp_path / "state.json", "5")
    state.area("runtime")["mutants"] = rows
    state.save()
    found = command.summary(command.State(tmp_path / "state.json", "6"))
    (tmp_path / "result.json").write_text(command.written(found))
    assert json.loads((tmp_path / "result.json").read_text()) == found
    assert command.known_rows(tmp_path / "result.json", "5") == found["mutants"]
    assert command.known_rows(tmp_path / "result.json", "6") == []
    assert found["seed"] == "5" and found["all"] == found["areas"]["runtime"] == {
        "drawn": 6, "killed": 2, "equivalent": 1, "lived": 3, "rate": 2 / 5,
        "first_rate": 1 / 5}  # fmt: skip
    lines = list(command.table(found))
    assert lines[0].split() == ["area", "drawn", "killed", "equivalent", "lived", "rate", "at",
                                "first"]  # fmt: skip
    assert lines[1].split() == ["runtime", "6", "2", "1", "3", "40%", "20%"]
    assert lines[3:] == [f"a.c:3: wait: f{i}();  ->  {{}}" for i in (2, 4, 5)]


def test_verdicts_stay_when_sources_change(tmp_path, monkeypatch):
    """Those about places that are still there, at the lines where these are now."""
    path = tmp_path / "pyvecgpu/sums.py"
    path.parent.mkdir()
    lines = ["def f(x):", "    if x < 5:", "        g(x)", "    if x < 6:", "        h(x)"]
    path.write_text("\n".join(lines))
    area = areas.Area("sums", "pyvecgpu/sums.py")
    every = list(draw.sequence(area, "1", tmp_path))
    rows = [{"area": "sums", **one.as_dict(), "verdict": "killed"} for one in every]
    path.write_text("\n".join(["import a", *lines[:4], "        i(x)"]))
    monkeypatch.setattr(command, "moved", lambda row: draw.moved(row, tmp_path))
    state = command.State(tmp_path / "state.json", "1", "new", rows)
    found = state.area("sums")
    assert found["nothing"] == [] and {row["verdict"] for row in found["mutants"]} == {"killed"}
    kept = [draw.Mutant.of(row) for row in found["mutants"]]
    assert {one.what for one in kept} == {one.what for one in every if "h(x)" not in one.was}
    now = {one.as_dict()["start"]: one for one in draw.sequence(area, "1", tmp_path)}
    assert all(one.path == "pyvecgpu/sums.py" and one.start in now for one in kept)
    assert {one.line for one in kept if "if" in one.was} == {3, 5}
    state.save()
    again = command.State(tmp_path / "state.json", "1", "new", rows)
    assert again.found == state.found


def test_order_of_the_tests(tmp_path):
    """First those that concern the file, then all others; sanitizers where they are built."""
    (area,) = (area for area in AREAS if area.name == "kernels")
    (mutant, *_) = (one for one in draw.sequence(area, "1") if one.path.endswith("triangle.cu"))
    for folder in ("cuda", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "build/tsan").mkdir(parents=True)
    (tmp_path / "build/tsan/libpyvecgpu_sim.so").touch()
    near, far = (list(trial.steps_of(area, mutant, tmp_path, {}, quick))
                 for quick in (True, False))  # fmt: skip
    names = [name for step in far for name in step.tests]
    assert names[: len(near) - 1] == [name for step in near for name in step.tests][: len(near) - 1]
    assert near[-1].command == ("build/tests/sim/test_header",)
    assert [step.tests[0] for step in near if step.is_pytest] == ["sim triangle"]
    assert "C test_reduce, tsan" in names and "C test_reduce, asan" not in names
    assert {f"sim {one}" for one in areas.names(ROOT / "tests", "test_*.py")} - set(names) == {
        f"sim {one}" for one in areas.LEFT_OUT}  # fmt: skip
    assert {f"C test_{one}" for one in areas.names(ROOT / "cuda/tests", "test_*.c")} <= set(names)
    assert len(set(names)) == len(names)


def test_a_lock_that_is_gone_is_looked_for_early(tmp_path):
    """By ThreadSanitizer, before the tests in Python, and once."""
    (area,) = (area for area in AREAS if area.name == "runtime")
    for folder in ("cuda", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "build/tsan").mkdir(parents=True)
    (tmp_path / "build/tsan/libpyvecgpu_sim.so").touch()
    for was, is_lock in (
        ("std::lock_guard<std::mutex> hold(log_lock);", True),
        ("setting.lock();", True),
        ("std::unique_lock hold(table_mutex);", True),
        ("wait_for_block(clock);", False),
    ):
        mutant = types.SimpleNamespace(path="cuda/runtime/launch.cu", rule="wait", was=was)
        steps = list(trial.steps_of(area, mutant, tmp_path, {}, False))
        names = [step.tests[0] for step in steps]
        python = next(i for i, step in enumerate(steps) if step.is_pytest)
        assert (names.index("C test_threads, tsan") < python) == is_lock, was
        assert len(set(names)) == len(names)


def test_one_run_at_a_time(tmp_path):
    with (
        command.alone(tmp_path),
        pytest.raises(SystemExit, match="already"),
        command.alone(tmp_path),
    ):
        pass
    with command.alone(tmp_path):
        pass


@pytest.mark.parametrize(
    ("limit", "silence", "code", "expected"),
    [
        (9, 9, "", None),
        (0.5, 9, "import time; time.sleep(9)", "out of time"),
        (9, 0.5, "import time; time.sleep(9)", "hangs"),
    ],
)
def test_how_a_step_ends(tmp_path, limit, silence, code, expected):
    log = tmp_path / "log"
    with open(log, "w") as output:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=output)
    try:
        assert trial.Tree.wait(process, log, limit, silence) == expected
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("is_pytest", "status", "text", "expected"),
    [
        (True, 1, "x\nFAILED tests/a.py::b[sim] - assert 1\n", "tests/a.py::b[sim]"),
        (True, "hangs", "tests/a.py::t PASSED\ntests/a.py::u[1]", "tests/a.py::u[1] (hangs)"),
        (True, 4, "ImportError", "first (4)"),
        (False, 1, "cuda/tests/test_a.c:3: sums: x is 1\n", "first (sums)"),
        (False, -11, "", "first (-11)"),
    ],
)  # fmt: skip
def test_who_noticed(is_pytest, status, text, expected):
    step = trial.Step(("first", "second"), ("true",), is_pytest=is_pytest)
    assert trial.Tree.culprit(step, status, text) == expected


PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "pyvecgpu/__init__.py": "",
    "pyvecgpu/sums.py": "def double(x):\n    return x + x if x > 5 else 2 * x\n",
    "tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--device')\n",
    "tests/test_sums.py": "from pyvecgpu.sums import double\n\n\n"
    "def test_double():\n    assert double(2) == 4 and double(7) == 14\n",
    "tests/test_names.py": "def test_names():\n    from pyvecgpu import sums\n\n"
    "    assert sums.double(5.5) == 11\n",
}


def test_verdicts(tmp_path, monkeypatch):
    """Of a small project: which mutants live, and that the project is as before."""
    root = tmp_path / "project"
    for name, text in PROJECT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(trial, "ROOT", root)
    area = areas.Area("sums", "pyvecgpu/sums.py", py_tests="sums")
    tree = trial.Tree(tmp_path / "tree", "sim")
    seconds, found = {}, {}
    judge = trial.Judge(tree, seconds, near=False)
    rules = {mutant.rule: mutant for mutant in draw.sequence(area, "1", root)}
    for rule in ("statement", "comparison"):
        outcome = judge.judge(area, rules[rule])
        found[rule] = outcome.by if outcome.failed else "lived"
        assert not list(tree.touched())
    assert found == {"statement": "tests/test_sums.py::test_double", "comparison": "lived"}
    assert seconds.keys() == {"cpu sums"}  # a verdict rests on it
    (root / "tests/test_sums.py").write_text("def test_a():\n    assert False\n")
    judge = trial.Judge(trial.Tree(tmp_path / "tree", "sim"), {}, near=False)
    with pytest.raises(SystemExit, match="Without a mutant cpu sums fails"):
        judge.judge(area, rules["statement"])


def test_what_a_mutant_was_at_first_stays_known(tmp_path, monkeypatch):
    """However often it is tried again; those that the record calls equivalent are tried, too."""
    (area,) = (one for one in AREAS if one.name == "protocols")
    drawn = list(itertools.islice(draw.sequence(area, "1"), 4))
    at_first = ["lived", "killed", "equivalent", "lived"]
    rows = [{"area": "protocols", **one.as_dict(), "verdict": word, "by": "", "seconds": 1}
            for one, word in zip(drawn, at_first, strict=True)]  # fmt: skip
    monkeypatch.setattr(command, "reasons", dict)
    options = types.SimpleNamespace(again=True, seed="1", n=4)
    for word in ("lived", "killed"):
        state = command.State(tmp_path / "state.json", "1", "now", rows)
        again = supply.Supply([area], state, options, lambda mutant: False)
        while job := again.next():
            assert job[1] in drawn and job[1] != drawn[1]
            again.note(*job, {"verdict": word, "by": "test", "seconds": 2})
        (tmp_path / "result.json").write_text(command.written(command.summary(state)))
        rows = command.known_rows(tmp_path / "result.json", "1")
        found = command.summary(command.State(tmp_path / "other.json", "1", "now", rows))
        assert [row.get("first", "-") for row in found["mutants"]] == [
            "lived", "-", "equivalent", "lived"]  # fmt: skip
        assert found["all"]["first_rate"] == 1 / 4
        assert found["all"]["rate"] == (1 if word == "killed" else 1 / 4)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_side_by_side(tmp_path, monkeypatch, workers):
    """They judge what one would, and one by one each; another run does what is left."""
    root = tmp_path / "project"
    for name, text in PROJECT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for module in (trial, command, crew):
        monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(command, "KEPT", tmp_path)
    monkeypatch.setattr(supply, "sequence", lambda area, seed: draw.sequence(area, seed, root))
    area = areas.Area("sums", "pyvecgpu/sums.py", py_tests="sums")
    monkeypatch.setattr(areas.Area, "paths", lambda self, root=root: [self.files])
    every = {one.what for one in draw.sequence(area, "1", root)}
    options = types.SimpleNamespace(
        workers=workers, n=3, seed="1", again=False, near=True, seconds=60, build=9, without="",
        calls=False, minutes=5)  # fmt: skip
    monkeypatch.setattr(command, "reasons", dict)
    state = command.State(tmp_path / "state.json", "1")
    command.try_all([area], state, options)
    assert len(state.area("sums")["mutants"]) == 3
    options.n = len(every) + 1
    command.try_all([area], command.State(tmp_path / "state.json", "1"), options)
    found = command.State(tmp_path / "state.json", "1").area("sums")
    rows = {draw.Mutant.of(row).what: row for row in found["mutants"]}
    assert len(rows) == len(found["mutants"]) and rows.keys() == every
    assert {row["verdict"] for row in rows.values()} == {"killed", "lived"}
    for row in rows.values():
        names = {}
        exec(draw.Mutant.of(row).apply(PROJECT["pyvecgpu/sums.py"]), names)
        is_right = names["double"](2) == 4 and names["double"](7) == 14
        assert row["verdict"] == ("lived" if is_right else "killed"), row
    (root / "pyvecgpu/sums.py").write_text(PROJECT["pyvecgpu/sums.py"].replace("2 * x", "3 * x"))
    options.n, late = 1, command.State(tmp_path / "other.json", "1")
    with pytest.raises(SystemExit, match="Without a mutant cpu sums fails"):
        command.try_all([area], late, options)
    assert not late.area("sums")["mutants"]


FIRST_TIME = """import os

from pyvecgpu.sums import double


def first():
    try:
        return not os.close(os.open(os.environ["ONCE"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False


def test_chance():
    assert double(1) == 2 or not first()
"""
AFTER_ANOTHER = """from pyvecgpu.sums import double

found = []


def test_one():
    found.append(double(1))


def test_two():
    assert found in ([], [2])
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FIRST_TIME, "lived"),
        (FIRST_TIME + "\n\ndef test_later():\n    assert double(1) == 2\n", "test_later"),
        (AFTER_ANOTHER, "test_two"),
        ("import pyvecgpu.sums\n\nassert pyvecgpu.sums.double(1)\n", "tests/test_sums.py (2)"),
    ],
)
def test_a_test_that_fails_by_chance_kills_nothing(tmp_path, monkeypatch, text, expected):
    """It has to fail twice, alone or in its file; what comes behind it is still asked."""
    root = tmp_path / "project"
    for name, other in {**PROJECT, "tests/test_sums.py": text}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(other)
    (root / "tests/test_names.py").unlink()
    monkeypatch.setattr(trial, "ROOT", root)
    monkeypatch.setenv("ONCE", str(tmp_path / "once"))
    area = areas.Area("sums", "pyvecgpu/sums.py", py_tests="sums")
    judge = trial.Judge(trial.Tree(tmp_path / "tree", "sim"), {}, near=True)
    mutant = next(one for one in draw.sequence(area, "1", root) if one.rule == "statement")
    outcome = judge.judge(area, mutant)
    assert (outcome.by.rpartition("::")[2] if outcome.failed else "lived") == expected
    assert (tmp_path / "once").exists() == ("ONCE" in text)


WITHOUT_A_MUTANT = """import pathlib

from pyvecgpu.sums import double


def test_chance():
    runs = pathlib.Path(ONCE)
    if double(1) == 2 and not runs.exists():
        runs.touch()
        raise OSError("busy")
    assert double(1) == 2 or runs.exists()
"""


def test_a_test_that_fails_once_without_a_mutant_kills_nothing(tmp_path, monkeypatch):
    """Nor does it end the run: the mutant is judged once more."""
    root, runs = tmp_path / "project", tmp_path / "once"
    text = WITHOUT_A_MUTANT.replace("ONCE", repr(str(runs)))
    for name, other in {**PROJECT, "tests/test_sums.py": text}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(other)
    (root / "tests/test_names.py").unlink()
    monkeypatch.setattr(trial, "ROOT", root)
    area = areas.Area("sums", "pyvecgpu/sums.py", py_tests="sums")
    judge = trial.Judge(trial.Tree(tmp_path / "tree", "sim"), {}, near=True)
    mutant = next(one for one in draw.sequence(area, "1", root) if one.rule == "statement")
    assert not judge.judge(area, mutant).failed
    assert runs.exists() and judge.seconds.keys() == {"cpu sums"}


def test_those_that_call_the_function_come_first(tmp_path, monkeypatch):
    root = tmp_path / "project"
    more = {
        "tests/mutants/__init__.py": "",
        "tests/mutants/calls.py": Path(calls.__file__).read_text(),
        "tests/test_other.py": "def test_other():\n    assert True\n",
    }
    for name, text in {**PROJECT, **more}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(trial, "ROOT", root)
    area = areas.Area("sums", "pyvecgpu/sums.py", py_tests="other sums")
    judge = trial.Judge(trial.Tree(tmp_path / "tree", "sim"), {}, near=True)
    judge.record(tmp_path, ["cpu"])
    of = judge.known["cpu"].of
    both = ["tests/test_sums.py::test_double", "tests/test_names.py::test_names"]
    assert of("pyvecgpu/sums.py", "double", ("sums",)) == both
    assert of("pyvecgpu/sums.py", "", ("names",)) == both[::-1]
    assert judge.known["cpu"].enters("pyvecgpu/sums.py")
    assert not judge.known["cpu"].enters("pyvecgpu/sum.py")
    assert of("pyvecgpu/sums.py", "half") == of("pyvecgpu/sums.py", "double", whole=0) == []
    mutant = next(one for one in draw.sequence(area, "1", root) if one.rule == "statement")
    other = dataclasses.replace(mutant, path="pyvecgpu/__init__.py")
    assert judge.devices(area, mutant) == ["cpu", "sim"]
    assert judge.devices(area, other) == ["sim", "cpu"]
    (step,) = judge.callers(area, mutant)
    assert step.tests == ("cpu sums", "cpu names")
    assert judge.judge(area, mutant).by == both[0]


def test_the_function_around_a_line():
    text = "x = 1\n\n\nclass A:\n    @b\n    def f(self):\n        def g():\n            return 1\n"
    assert [calls.name_at(text, line) for line in (1, 4, 5, 6, 8)] == [
        "",
        "",
        *["A.f"] * 2,
        "A.f.g",
    ]


def test_tests_of_another_device_stand_for_those_that_are_not_recorded():
    cpu, sim = (object.__new__(calls.Calls) for _ in range(2))
    cpu.tests = {"t::a[cpu]": (1, {"f"}), "t::b[cpu-2]": (2, {"g"}), "t::c": (1, {"f"})}
    sim.tests = {"t::a[sim]": (5, {"h"})}
    sim.adopt(cpu, "cpu", "sim", slower=3)
    assert sim.tests == {"t::a[sim]": (5, {"h"}), "t::b[sim-2]": (6, {"g"})}


def test_mutants_of_some_files_only():
    (area,) = (one for one in AREAS if one.name == "functions")
    few = command.only(area, ["*/sorting.py", "*/short_*.py", "cuda/*"])
    short = {path.relative_to(ROOT).as_posix() for folder in ("fft", "functions", "linalg")
             for path in (ROOT / "pyvecgpu" / folder).glob("short_*.py")}  # fmt: skip
    assert len(short) > 3 and set(few.paths()) == short | {"pyvecgpu/functions/sorting.py"}
    assert few.py_tests == area.py_tests
