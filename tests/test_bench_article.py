"""bench article, the command: its bounds, its checked results, and that its files are whole."""

import contextlib
import json
import os
import re

import numpy as np
import pytest
from helpers import shortened

import pyvecgpu as vg
from pyvecgpu import __main__ as command
from pyvecgpu.bench import article, compiled, loops
from pyvecgpu.bench.article import budget, ceilings, page, plots, problems, summary
from pyvecgpu.bench.article.columns import MATMUL_PRECISIONS, PRECISIONS
from pyvecgpu.functions import linalg

TINY = budget.Limits(run=60.0, row=20.0, cell=0.002, patience=0.002)
needs_matplotlib = pytest.mark.needs("matplotlib")


@pytest.fixture
def tiny(monkeypatch):
    """The quick run in sizes that take no time."""
    for table, value in (
        (article.SIZES, ([10, 1000], [16, 32])),
        (ceilings.LENGTHS, 1000),
        (ceilings.STEPS, (100, 100)),
        (budget.LIMITS, TINY),
    ):
        for size in ("quick", "tiny"):
            monkeypatch.setitem(table, size, value)
    return monkeypatch


@pytest.fixture(scope="module", autouse=True)
def threads_of_openmp():
    """The threads of the C loops, which OpenMP keeps, are there before a test begins."""
    with contextlib.suppress(OSError):  # no compiler
        loops.Loops(os.cpu_count()).multiply_add(1, os.cpu_count())


def run(capsys, *arguments):
    code = command.main(["bench", "article", *map(str, arguments)])
    output = capsys.readouterr()
    return code, output.out, output.err


def measured(capsys, tmp_path, *arguments, code=0):
    """Run the command and return its report and what it printed."""
    path = tmp_path / "figures.json"
    ended, out, err = run(capsys, "--quick", "--json", path, *arguments)
    assert ended == code and (err == "") == (code == 0)
    return read_strictly(path), out + err


def read_strictly(path):
    def refuse(name):
        raise ValueError(f"{name} is no JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


def cells(figures, table):
    """Yield (row, column's name) for every cell of a table."""
    for row in summary.rows_of(figures, table):
        for column in figures["columns"][table]:
            yield row, column


TABLES = (summary.ELEMENT, summary.ADDITION, summary.PRODUCT)


# The command --------------------------------------------------------------------------------------


def test_command(device, capsys, tiny, tmp_path):
    figures, out = measured(capsys, tmp_path, "--device", device)
    assert figures["benchmark"] == "article" and figures["quick"] is True
    assert figures["cpu"]["cores"] >= 1 and figures["versions"]["numpy"] == np.__version__
    assert [row["n"] for row in summary.rows_of(figures, summary.ADDITION)] == [10, 1000]
    assert [row["n"] for row in summary.rows_of(figures, summary.PRODUCT)] == [16, 32]
    for table in TABLES:
        for row, column in cells(figures, table):
            result = row["results"][column]
            assert 0 < result["low"] <= result["seconds"] <= result["high"]
            assert result["wrong"] is False and row["omitted"] == {}
            assert summary.time_text(result["seconds"]) in out
    kinds = {column["kind"] for column in figures["columns"][summary.PRODUCT].values()}
    assert kinds == {"loop", "numpy"} | (set() if device == "cpu" else {"kernel", "transfers"})
    for where in ("CPU, one core", "CPU, all cores", *(() if device == "cpu" else ("GPU",))):
        assert summary.ceiling(figures, ceilings.BANDWIDTH, where) > 0
    found = figures["crossovers"]
    assert all(one["sentence"] in out for one in found) and bool(found) == (device != "cpu")


def test_products_have_a_column_for_each_precision(capsys, tiny, tmp_path):
    figures, _ = measured(capsys, tmp_path, "--device", "sim")
    columns = figures["columns"][summary.PRODUCT]
    for kind, extra in (("numpy", []), ("kernel", MATMUL_PRECISIONS)):
        found = [c["dtype"] for c in columns.values() if c["kind"] == kind]
        assert found == [*PRECISIONS, *extra]
    assert {*MATMUL_PRECISIONS, "float32"} == set(linalg.PRECISIONS)
    for dtype in PRECISIONS:
        a = vg.ones((2, 2), dtype=dtype, device="sim")
        assert (a @ a).dtype == dtype
    pairs = {(one["gpu"], one["cpu"]) for one in figures["crossovers"]}
    assert ("sim kernel float64", "NumPy float64") in pairs
    assert ("sim kernel float64", "NumPy float32") not in pairs


def test_one_sentence_where_there_is_no_gpu(capsys, tiny, tmp_path):
    _, out = measured(capsys, tmp_path, "--device", "cpu")
    assert len(re.findall("only the columns of the CPU", out, re.IGNORECASE)) == 1
    _, out = measured(capsys, tmp_path, "--device", "sim")
    assert out.count("times say nothing about a GPU") == 1


def test_without_a_c_compiler(capsys, tiny, tmp_path):
    tiny.setattr(compiled.shutil, "which", lambda place: None)
    tiny.setattr(loops, "load", loops.load.__wrapped__)  # not what it found before
    figures, out = measured(capsys, tmp_path, "--device", "cpu")
    assert out.count("there is no C compiler: no gcc, cc or clang on PATH") == 1
    for row, column in cells(figures, summary.PRODUCT):
        if column.startswith("C loop"):
            assert row["omitted"][column] == "there is no C compiler"
        else:
            assert column in row["results"]
    assert re.search(r"^ +16 +- +- +\d", out, re.MULTILINE)


def test_a_source_that_does_not_compile(tmp_path):
    source = tmp_path / "wrong.c"
    source.write_text("no C\nat all\n")
    with pytest.raises(OSError, match=r"did not compile wrong.c: .*wrong.c") as error:
        compiled.load_c(source)
    assert "\n" not in str(error.value)


def test_options_that_do_not_fit(capsys, tiny, tmp_path):
    for arguments in (
        ["streaming", "--plot", "x"],
        ["matmul", "--report", "x"],
        ["overhead", "--from", "x"],
        ["article", "--peers", "torch"],
        ["article", "--from", "x", "--json", "y"],
    ):
        with pytest.raises(SystemExit) as end:
            command.main(["bench", *arguments])
        assert end.value.code == 2
    capsys.readouterr()
    code, out, err = run(capsys, "--json", tmp_path / "no" / "folder.json", "--device", "cpu")
    assert code == 1 and "Vector" not in out and err.startswith("bench: ")
    (tmp_path / "other.json").write_text('{"benchmark": "matmul"}')
    for name in ("missing.json", "other.json"):
        code, out, err = run(capsys, "--from", tmp_path / name)
        assert code == 1 and out == "" and name in err


# Bounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["time", "memory"])
def test_what_exceeds_a_bound_is_left_out(bound, capsys, tiny, tmp_path):
    limits = {"time": {"row": 0.0}, "memory": {"memory": 1e-12}}[bound]
    reason = {"time": "it would exceed the 0 s of a row", "memory": "GiB on the host"}[bound]
    tiny.setitem(budget.LIMITS, "tiny", budget.Limits(**vars(TINY) | limits))
    figures, out = measured(capsys, tmp_path, "--device", "sim")
    for table in TABLES:
        for row, column in cells(figures, table):
            assert column not in row["results"] and reason in row["omitted"][column]
    assert re.search(r"^ +1,000( +-){5}$", out, re.MULTILINE) and reason in out
    assert figures["crossovers"] == [] and figures["ratios"] == []


def test_the_bound_on_the_cards_memory(capsys, tiny, tmp_path):
    tiny.setattr(article, "free_on", lambda device: 3000 * 4 - 1)
    figures, _ = measured(capsys, tmp_path, "--device", "sim")
    small, large = summary.rows_of(figures, summary.ADDITION)
    assert small["omitted"] == {}
    assert set(large["omitted"]) == {"sim kernel", "sim with transfers"}
    assert all("on the card" in reason for reason in large["omitted"].values())


def test_memory_that_runs_out_is_left_out(capsys, tiny, tmp_path):
    def fail(*arguments):
        raise vg.OutOfMemoryError("none left")

    tiny.setattr(article.columns.__globals__["OnDevice"], "__init__", fail)
    figures, _ = measured(capsys, tmp_path, "--device", "sim")
    for row in summary.rows_of(figures, summary.ADDITION):
        assert row["omitted"] == {"sim kernel": "memory ran out"}


class Clock:
    """Stands in for the module time."""

    def __init__(self):
        self.now, self.busy_until = 100.0, 0.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return min(self.now, self.busy_until)

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(budget, "time", clock)
    return clock


def test_a_cell_is_foretold_from_the_row_before(clock):
    limits = budget.Limits(run=100.0, row=10.0, cell=0.1, patience=1.0)
    bound = budget.Budget(limits, 1000, 1000)
    bound.begin_row()
    bound.require_time("loop", 1e6, 1e9)  # nothing is known yet
    bound.learn("loop", 1e6, 2.0)
    bound.require_time("loop", 4.9e6, 0)
    with pytest.raises(budget.BudgetError, match="the 10 s of a row"):
        bound.require_time("loop", 5e6, 0)
    bound.require_time("NumPy", 5e6, 0)
    bound.learn_data(1e6, 1.0)
    bound.require_time("loop", 1e6, 7.9e6)
    with pytest.raises(budget.BudgetError):
        bound.require_time("loop", 1e6, 8e6)
    clock.now += 95
    bound.begin_row()
    assert bound.left() == 5
    with pytest.raises(budget.BudgetError, match="the 100 s of the run"):
        bound.require_left(5.0)


class Sleeper(budget.Task):
    """Takes so many seconds a call by the clock, the first one more."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds, self.made = clock, seconds, []

    def run(self, calls):
        taken = self.seconds * calls * (1 if self.made else 3)
        self.made.append(calls)
        self.clock.now += taken
        return taken

    def error(self):
        self.clock.now += 0.25
        return 1e-3


def test_measure(clock):
    limits = budget.Limits(run=100.0, row=10.0, cell=0.7, patience=1.0)
    fast = Sleeper(clock, 1e-3)
    result, least = budget.measure(fast, 1e-2, limits)
    assert fast.made == [1, 1, 1, 1] + [100] * budget.ROUNDS and result.calls == 100
    assert abs(result.seconds - 1e-3) <= 1e-9 and abs(least - 0.252) <= 1e-9 and not result.wrong
    slow = Sleeper(clock, 4.0)
    result, least = budget.measure(slow, 1e-4, limits)
    assert slow.made == [1, 1] and result.seconds == 4.0 and result.wrong
    assert abs(least - 16.25) <= 1e-9
    medium = Sleeper(clock, 0.4)
    budget.measure(medium, 1e-2, limits)
    assert medium.made == [1, 1, 1]
    bound = budget.Budget(limits, 0, 0)
    bound.begin_row()
    with pytest.raises(budget.BudgetError):
        budget.measure(Sleeper(clock, 4.0), 1e-4, limits, bound.require_left)


def test_measure_waits_until_threads_are_at_rest(clock):
    def waited(busy):
        """Return the seconds until the first call, if threads are busy for so long."""
        began, clock.busy_until, calls = clock.now, clock.now + busy, []
        task = Sleeper(clock, 1.0)
        right = task.run
        task.run = lambda count: calls.append(clock.now - began) or right(count)
        budget.measure(task, 1e-2, budget.Limits(run=100.0, row=10.0, cell=0.7, patience=1.0))
        return calls[0]

    assert waited(0.0) <= 0.02
    assert 0.105 <= waited(0.105) <= 0.13
    assert budget.REST <= waited(1e3) <= budget.REST + 0.02


# Checked results ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["call", "triad", "multiply_add"])
def test_a_wrong_loop_is_told(name, capsys, tiny, tmp_path):
    wrong = {
        "call": lambda self, name, all_cores: lambda a, b, out, calls: None,
        "triad": lambda self, a, b, c, scalar, cores: None,
        "multiply_add": lambda self, steps, cores: 1.99,
    }
    tiny.setattr(loops.Loops, name, wrong[name])
    figures, text = measured(capsys, tmp_path, "--device", "cpu", code=1)
    assert "is wrong" in text
    wrong_rows = {r["table"] for r in figures["rows"] for c in r["results"].values() if c["wrong"]}
    assert (
        wrong_rows == {"call": set(TABLES), "triad": {"bandwidth"}, "multiply_add": {"peak"}}[name]
    )


def test_a_wrong_kernel_is_told(capsys, tiny, tmp_path):
    tiny.setattr(vg, "matmul", lambda a, b, out, device=None, precision=None: out)
    _, text = measured(capsys, tmp_path, "--device", "sim", code=1)
    for column in ("kernel float32", "kernel float64", "with transfers float32"):
        assert f"matrix product, N = 32: the result of sim {column} is wrong" in text
    assert "result of NumPy" not in text and "vector addition" not in text.partition("wrong")[2]


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_the_check_of_a_product_sees_every_element(dtype):
    problem = problems.Product()
    case = problems.Case(problem, 40, problems.random_block())
    a, b, out = case.arrays(dtype)
    np.matmul(a, b, out=out)
    allowed = problem.error_allowed(dtype, 40)
    assert problem.error(a, b, out.__getitem__) <= allowed
    for place in ((0, 0), (17, 23), (39, 39)):
        for value in (0.0, np.nan):
            wrong = out.copy()
            wrong[place] = value
            assert not problem.error(a, b, wrong.__getitem__) <= allowed


def test_the_check_of_an_addition(monkeypatch):
    monkeypatch.setattr(problems, "WHOLE", 100)
    monkeypatch.setattr(problems, "PIECE", 10)
    monkeypatch.setattr(problems, "PIECES", 7)
    problem = problems.Addition()
    for n in (1, 100, 101, 1000):
        a, b, out = problems.Case(problem, n, problems.random_block()).arrays("float32")
        pieces = problem.pieces(n)
        assert pieces[0].start == 0 and pieces[-1].stop == n
        np.add(a, b, out=out)
        allowed = problem.error_allowed("float32", n)
        assert problem.error(a, b, out.__getitem__) <= allowed
        for place in (0, n - 1):
            wrong = out.copy()
            wrong[place] += 1e-3
            assert not problem.error(a, b, wrong.__getitem__) <= allowed
        problem.poison(out)
        assert not problem.error(a, b, out.__getitem__) <= allowed


# How many bits the operands and the result have, how they come about, whether that is wrong
LIMITS = {
    "float32": ("float32", 24, 24, np.rint, False),
    "float32, bits missing": ("float32", 20, 24, np.rint, True),
    "ieee, bits missing": ("ieee", 20, 24, np.rint, True),
    "fast32, bits missing": ("fast32", 20, 24, np.rint, True),
    "tf32": ("tf32", 11, 24, np.rint, False),
    "tf32, cut off": ("tf32", 11, 24, np.trunc, True),
    "fp16": ("fp16", 11, 24, np.rint, False),
    "fp16, cut off": ("fp16", 11, 24, np.trunc, True),
    "bf16": ("bf16", 8, 24, np.rint, False),
    "bf16, cut off": ("bf16", 8, 24, np.trunc, True),
    "float64": ("float64", 53, 53, np.rint, False),
    "float64, bits missing": ("float64", 53, 46, np.rint, True),
}


@pytest.mark.parametrize("n", [64, 256])
@pytest.mark.parametrize("case", LIMITS)
def test_limits_of_errors_of_products(case, n):
    precision, bits, result_bits, by, wrong = LIMITS[case]
    problem = problems.Product()
    dtype = "float64" if precision == "float64" else "float32"
    a, b, out = problems.Case(problem, n, problems.random_block()).arrays(dtype)
    product = shortened(a, bits, by) @ shortened(b, bits, by)
    out[...] = shortened(product, result_bits)
    error, allowed = problem.error(a, b, out.__getitem__), problem.error_allowed(precision, n)
    assert (not error <= allowed) is wrong, (error, allowed)


@pytest.mark.parametrize("n", [problems.MANY, 10**5])
def test_limits_of_errors_of_additions(n):
    problem = problems.Addition()
    a, b, _ = problems.Case(problem, n, problems.random_block()).arrays("float32")
    for bits, wrong in ((24, False), (23, True)):
        c = shortened(np.add(a, b, dtype=np.float64), bits)
        error = problem.error(a, b, c.__getitem__)
        assert (not error <= problem.error_allowed("float32", n)) is wrong, error


def test_operands_are_random_and_differ():
    block = problems.random_block()
    a, b, _ = problems.Case(problems.Product(), 64, block).arrays("float32")
    assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) <= 0.1 and 0.9 <= a.std() <= 1.1
    long = np.empty(2 * problems.BLOCK + 5, np.float32)
    problems.repeat_into(long, block)
    assert (long[: problems.BLOCK] == block).all() and (long[-5:] == block[:5]).all()


@pytest.mark.parametrize("n", [1, 3, 17, 64])
def test_loops(n):
    both = loops.Loops(2)
    random = np.random.default_rng(n)
    A, B = random.standard_normal((2, n, n), np.float32)
    for all_cores in (False, True):
        C = np.full((n, n), np.nan, np.float32)
        both.call("multiply", all_cores)(A, B, C, 2)
        assert np.abs(C - A.astype(float) @ B).max() <= 1e-4
        both.call("add", all_cores)(A, B, C, 2)
        assert (C == A + B).all()
    a, b, c = random.standard_normal((3, n))
    both.triad(a, b, c, 3.0, 2)
    assert np.abs(a - (b + 3 * c)).max() <= 1e-14
    assert both.multiply_add(1000, 2) == 2.0
    assert both.multiply_add_work(10, 2) == 20 * both.multiply_add_work(1, 1)


# Pictures and pages -------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n"


@needs_matplotlib
def test_pictures_and_page(capsys, tiny, tmp_path):
    folder, path = tmp_path / "new" / "pictures", tmp_path / "page.html"
    figures, out = measured(capsys, tmp_path, "--device", "cpu", "--plot", folder, "--report", path)
    assert sorted(p.stem for p in folder.iterdir()) == sorted(page.PICTURES)
    for picture in folder.iterdir():
        assert picture.read_bytes().startswith(PNG) and str(picture) in out
    text = path.read_text()
    for row in figures["rows"]:
        for result in row["results"].values():
            assert "n" not in row or summary.time_text(result["seconds"]) in text
    again, pictures = tmp_path / "again.html", tmp_path / "again"
    source = ["--from", tmp_path / "figures.json", "--plot", pictures, "--report", again]
    assert run(capsys, *source)[0] == 0
    assert again.read_text() == text and len(list(pictures.iterdir())) == 3


@needs_matplotlib
def test_empty_tables_can_be_drawn(capsys, tiny, tmp_path):
    none = budget.Limits(**vars(TINY) | {"row": 0.0, "memory": 1e-12})
    tiny.setitem(budget.LIMITS, "quick", none)
    measured(capsys, tmp_path, "--device", "cpu", "--report", tmp_path / "page.html")
    assert "it needs 0.00 GiB on the host" in (tmp_path / "page.html").read_text()


def test_without_matplotlib_nothing_is_measured(capsys, tiny, tmp_path):
    tiny.setattr(plots.importlib.util, "find_spec", lambda name: None)
    code, out, err = run(capsys, "--quick", "--device", "cpu", "--plot", tmp_path / "x")
    assert code == 1 and out == "" and "pictures need matplotlib" in err


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, OSError])
def test_the_bar_is_gone_at_the_end(tiny, error):
    """Whether the run is through or was ended: what is printed next begins a line of its own."""
    one = article.Article(vg.Device("cpu"), "quick", TINY)
    closed = []
    tiny.setattr(one.progress, "close", lambda: closed.append(one.progress.done))
    if error is not None:

        def ended(*arguments):
            raise error

        tiny.setattr(one, "measure_row", ended)
        with pytest.raises(error):
            one.run()
    else:
        one.run()
        assert one.rows
    assert len(closed) == 1
