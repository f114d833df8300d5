"""docs/reliability.md tells the truth: named tests exist, missing features are missing.

Its rows are read as text. That a named test shows its case is for readers to judge; that it is
there, is collected, and needs a GPU where the page says so, is found in the sources.
"""

import ast
import functools
import re

import helpers
import pytest
from gates.__main__ import measured_records
from gates.parts import figure as gate_figure
from helpers import ROOT
from plants.test_plants import PLANTS
from programs import LINES
from test_mistakes import CALLS

import pyvecgpu as vg
from pyvecgpu.native.abi import FUNCTIONS, SIMULATOR_FUNCTIONS

PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
CASES = re.findall(r"^\| (\d+) \| (.+?) \| (.+) \| (.*?) ?\|$", PAGE, re.MULTILINE)
GATES = re.findall(r"^\| (R\d+) \| (.+?) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)

TEST = r"`(test_\w+\.(?:py|c))::(\w+)`( \(GPU\))?"
NAMES = r"`[\w.]+`(?:, `[\w.]+`)*"
MISSING = rf"[Nn]o such feature yet: ({NAMES})"
UNTESTED = r"[Nn]ot yet tested"


# What the page names ------------------------------------------------------------------------------


@functools.cache
def python_tests(file):
    """{test: whether it needs a GPU} of a file in tests/ or tests/plants/."""
    found = [folder / file for folder in (ROOT / "tests", ROOT / "tests" / "plants")]
    found = [path for path in found if path.exists()]
    statements = ast.parse(found[0].read_text(encoding="utf-8")).body if found else []
    assigned = [node for node in statements if isinstance(node, ast.Assign)]
    named = {ast.unparse(node.targets[0]): node.value for node in assigned}
    of_all = [named["pytestmark"]] if "pytestmark" in named else []
    defined = [node for node in statements if isinstance(node, ast.FunctionDef)]
    return {
        node.name: devices_of(
            [*(named.get(ast.unparse(mark), mark) for mark in node.decorator_list), *of_all]
        )
        == ["cuda"]
        for node in defined
        if node.name.startswith("test_")
    }


def devices_of(marks):
    """The names in the first `pytest.mark.devices(...)` of some expressions; None: all."""
    for call in (node for mark in marks for node in ast.walk(mark)):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.devices":
            return [ast.literal_eval(argument) for argument in call.args]
    return None


def c_section(file, name):
    """LookupError: a C test has no such function, or never runs it."""
    path = ROOT / "cuda" / "tests" / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    defined = re.search(rf"^static \w+ {name}\(void\) \{{", text, re.MULTILINE)
    run = re.search(rf"(RUN|in_child)\({name}\)|^    {name}\(\);", text, re.MULTILINE)
    if not (defined and run):
        raise LookupError(f"{file} runs no {name}")


def check_test(file, name, mark):
    """LookupError: the test is not there, or needs a GPU and is not marked so, or the reverse."""
    if file.endswith(".c"):
        c_section(file, name)
    elif name not in python_tests(file):
        raise LookupError(f"there is no {file}::{name}")
    needs_gpu = file.endswith(".py") and python_tests(file)[name]
    if needs_gpu != bool(mark):
        raise LookupError(f"{file}::{name} {'needs a' if needs_gpu else 'runs without'} GPU")


def is_there(name):
    """Whether the package has a public function, or Array an attribute, of this name."""
    if name.startswith("Array."):
        return hasattr(vg.Array, name.removeprefix("Array."))
    places = (vg, vg.nn, vg.nn.functional)
    return any(hasattr(place, name) for place in places) or f"pvg_{name}" in FUNCTIONS


def missing_features(text):
    return re.findall(r"[\w.]+", " ".join(re.findall(MISSING, text)))


def status(text, shown_by):
    """What a row says about its case."""
    lacks = re.search(f"{MISSING}|{UNTESTED}", text)
    if shown_by:
        return "in part" if lacks else "shown"
    assert lacks, f"no test, and no reason: {text}"
    return "untested" if re.match(UNTESTED, text) else "no feature"


def counts():
    found = [status(happens, shown_by) for _, _, happens, shown_by in CASES]
    return {kind: found.count(kind) for kind in ("shown", "in part", "no feature", "untested")}


# The page -----------------------------------------------------------------------------------------


def test_every_case_has_one_row():
    assert [int(number) for number, *_ in CASES] == list(range(1, 121))
    assert [number for number, *_ in GATES] == [f"R{i}" for i in range(1, 15)]
    rows = [line for line in PAGE.splitlines() if re.match(r"\| R?\d+ \|", line)]
    assert len(rows) == len(CASES) + len(GATES), "a row that is not read"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_rows_of_cases(case):
    number, _, happens, shown_by = case
    for entry in filter(None, shown_by.split(", ")):
        named = re.fullmatch(TEST, entry)
        assert named, f"{entry} is no test"
        check_test(*named.groups())
    assert shown_by.count("::") == len(set(shown_by.split(", "))) - (not shown_by)
    there = [name for name in missing_features(happens) if is_there(name)]
    assert not there, f"case {number}: there is {there} by now"
    says = len(re.findall("o such feature yet", happens))
    assert says == len(re.findall(MISSING, happens)), "a missing feature has a name"


def test_how_many_cases_are_shown():
    total = counts()
    sentence = (
        f"Of 120 cases {total['shown']} are shown, {total['in part']} in part, "
        f"{total['no feature']} are about features that are not there yet, and "
        f"{total['untested']} are not yet tested."
    )
    between = re.search(r"<!-- counts: begin -->\n(.*?)\n<!-- counts: end -->", PAGE, re.DOTALL)
    assert between[1].replace("\n", " ") == sentence
    assert sum(total.values()) == 120


def test_rows_of_gates():
    for _, _, text, figure in GATES:
        for named in re.findall(TEST, text):
            check_test(*named)
        assert text.count("::") == len(re.findall(TEST, text))
        assert not [name for name in missing_features(text) if is_there(name)]
        assert figure == "not measured" or re.search(r"\d|both libraries", figure)
    rows = {number: f"{text} | {figure}" for number, _, text, figure in GATES}
    options = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    count = int(re.search(r'"PVG_TEST_PROGRAMS", "([\d_]+)"', options)[1])
    functions = len(FUNCTIONS) + len(SIMULATOR_FUNCTIONS)
    assert rows["R2"].endswith(f"| {len(PLANTS)} plants, all found") and len(PLANTS) >= 12
    assert f": {count:,} programs of {LINES[0]} lines or more" in rows["R3"]
    assert rows["R4"].endswith(f"| {counts()['shown']} shown, {counts()['in part']} in part")
    assert f": {CALLS:,} calls with arguments at random" in rows["R4"]
    assert rows["R11"].endswith(f"| {functions} of {functions} functions")


def test_figures_of_gates_are_those_that_were_measured():
    records = measured_records()
    assert records
    figures = {number: figure for number, _, _, figure in GATES}
    for record in records:
        assert gate_figure(records, record["gate"]) == figures[record["gate"]], "make gates --page"


def test_other_tests_that_are_named():
    named = [match.groups() for match in re.finditer(TEST, PAGE)]
    assert len(named) > 200
    for test in named:
        check_test(*test)


def test_the_tables_of_errors_are_those_of_the_tests():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) ulp \| (\d+) ulp \|$", PAGE, re.MULTILINE)
    assert {name: (int(cards), int(cpu)) for name, cards, cpu in rows} == {
        name: (ulps["cuda"], ulps["cpu"]) for name, ulps in helpers.ULPS.items()
    }
    assert all(ulps["sim"] == ulps["cuda"] for ulps in helpers.ULPS.values())
    rows = re.findall(r"^\| `(\w+)` \| 2\^-(\d+) \| 2\^-(\d+) \|$", PAGE, re.MULTILINE)
    sums = {name: (2.0 ** -int(cards), 2.0 ** -int(cpu)) for name, cards, cpu in rows}
    assert list(sums) == ["float16", "bfloat16", "float32", "float64"]
    for dtype in helpers.FLOATS:
        assert sums[str(dtype)] == (helpers.SUM_REST[dtype], helpers.SUM_REST_CPU[dtype]), dtype


def test_no_kernel_adds_floats_atomically():
    """In CUDA C nothing is added atomically, in PTX no floats; maxima, set bits have no order."""
    in_ptx = r"\b(?:atom|red|cp\.reduce)\.[\w.:]*\badd\b[\w.:]*f(?:16|32|64)"
    # But for places of a table, each of which is one key's as soon as it has one, whichever comes
    # first; and what is counted, one by one or a warp at a time.
    fine = r"(?:Max|Or)\b|Exch\b|CAS\(&table\[|Add\([^;]*, (?:1|32)u\)"
    atomic = re.compile(rf"\batomic(?!{fine})[A-Z]\w*\s*\(|{in_ptx}")
    read = 0
    for folder in ("kernels", "arrays", "runtime"):
        for path in (ROOT / "cuda" / folder).rglob("*.cu*"):
            read += 1
            found = atomic.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path.name}: {found[0]}"
    assert read > 50
    for text in ("atomicAdd(total, x);", "red.global.add.f32 [p], x;", "atom.add.noftz.bf16x2 a"):
        assert atomic.search(text)
    assert not atomic.search("atomicAdd(&counts[digit], 1u);")
    assert not atomic.search("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;")


# The checks themselves ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "named",
    [
        ("test_shapes.py", "test_impossible", ""),
        ("test_shapes.py", "TOO_LARGE", ""),
        ("test_no_file.py", "test_anything", ""),
        ("test_big.py", "test_elementwise", ""),
        ("test_shapes.py", "test_impossible_shapes", " (GPU)"),
        ("test_linalg.py", "nonzero", ""),
        ("test_memory.c", "bytes", ""),
        ("test_memory.c", "use_allocator", ""),
        ("test_none.c", "size_zero", ""),
    ],
)
def test_a_wrong_name_is_noticed(named):
    with pytest.raises(LookupError):
        check_test(*named)


def test_features_that_are_there_are_noticed():
    assert all(is_there(n) for n in ("sum", "gelu", "Array.item", "graph_begin", "Array.__add__"))
    text = "`ValueError`. No such feature yet: `clip`, `Array.__pow__`. In C, `pvg_add`"
    assert missing_features(text) == ["clip", "Array.__pow__"]
    assert status(text, "`test_x.py::test_y`") == "in part"
    assert status("no such feature yet: `clip`", "") == "no feature"
    assert status("not yet tested: it works", "") == "untested"
    with pytest.raises(AssertionError):
        status("`ValueError`", "")
