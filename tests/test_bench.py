"""The measurements: the commands run, a wrong result is told, and the figures are well-formed."""

import contextlib
import json
import math
import os
import re
import shutil
import sys
import types
from pathlib import Path

import helpers
import numpy as np
import pytest
from helpers import put, shortened

import pyvecgpu as vg
from pyvecgpu import __main__ as command
from pyvecgpu import bench
from pyvecgpu.bench import (
    compiled,
    goals,
    libraries,
    loops,
    matmul,
    model,
    overhead,
    report,
    rows,
    steps,
    streaming,
    timing,
    transfers,
    windows,
)

NAMES = ("streaming", "rows", "matmul", "windows", "shapes", "steps", "transfers", "overhead")


@pytest.fixture(scope="module", autouse=True)
def threads_of_openmp():
    """The threads of the C loops, which OpenMP keeps, are there before a test begins."""
    with contextlib.suppress(OSError):  # no compiler
        loops.Loops(os.cpu_count()).multiply_add(1, os.cpu_count())


def run(capsys, *arguments):
    code = command.main(["bench", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def read_strictly(path):
    def refuse(name):
        raise ValueError(f"{name} is no JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


# The commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_commands(name, device, capsys, tmp_path):
    path = tmp_path / "figures.json"
    code, out, err = run(capsys, name, "--quick", "--device", device, "--json", str(path))
    assert code == 0 and err == ""
    figures = read_strictly(path)
    assert figures["benchmark"] == name and figures["quick"] is True
    assert figures["device"] == str(vg.Device(device)) and figures["date"].endswith("+00:00")
    assert figures["versions"]["numpy"] == np.__version__
    assert len(figures["goals"]) == len(bench.BENCHMARKS[name].GOALS)
    for row in figures["rows"]:
        assert row["name"] in out
        result = row["results"]["pyvecgpu"]
        assert 0 < result["low"] <= result["seconds"] <= result["high"]
        assert result["wrong"] is False and result["error"] <= row.get("error_allowed", 1e-6)


@pytest.mark.devices("cuda", "sim")
def test_model(device, capsys, tmp_path):
    path = tmp_path / "figures.json"
    code, out, err = run(capsys, "model", "--quick", "--device", device, "--json", str(path))
    assert code == 0 and err == "" and "goal: the chosen kernel within 1.25x" in out
    figures = read_strictly(path)
    assert len(figures["rows"]) == model.CASES["quick"]
    assert figures["goals"][0]["met"] in (True, False)
    for row in figures["rows"]:
        seconds = row["seconds"]
        assert row["chosen"] in seconds and all(0 < seconds[name] < 60 for name in seconds)
        assert set(seconds) - {"auto"} <= set(model.FORMATS[row["format"]][2])
        assert set(row["reckoned"]) == set(seconds)
    assert {"tiny", "tiled"} <= {name for row in figures["rows"] for name in row["seconds"]}
    assert all(f"\n{name} " in out for name in figures["scales"])


def test_the_model_is_judged_by_the_fastest():
    def row(auto, **others):
        return {"seconds": {"auto": auto, **others}, "reckoned": {"auto": 1, "tiled": 4}}

    rows = [row(1.0, tiled=2.0), row(1.0, tiled=0.5), row(1.2, tiled=1.0, gemv=3.0)]
    assert [model.loss(one) for one in rows] == [1.0, 2.0, 1.2]
    verdict = model.judge(rows)
    assert verdict.measured == pytest.approx(2 / 3) and verdict.met is False
    assert model.judge(rows[:1] * 19 + rows[1:2]).met is True
    assert model.judge([]).met is None
    assert model.scales(rows)["tiled"][:2] == (3, pytest.approx(0.25))


def test_the_model_is_measured_with_the_products_of_a_seed():
    drawn = model.cases("full", 1)
    assert drawn == model.cases("full", 1) and len(drawn) == 500
    assert drawn != model.cases("full", 2)
    assert {case.format for case in drawn} == set(model.FORMATS)
    assert all(case.terms <= model.MOST_TERMS for case in drawn)
    for kernels in (model.FORMATS["ieee"][2], model.FORMATS["float32"][2]):
        assert not {"tensor", "tensor_sm80", "fp16x3"} & set(kernels)
    assert "bf16x6" not in model.FORMATS["ieee"][2]


@pytest.mark.devices("sim")
def test_the_simulated_card_is_no_gpu(device, capsys):
    code, out, _ = run(capsys, "matmul", "--device", device, "--peers", "torch,cupy")
    assert code == 0
    assert "times say nothing about a GPU" in out and "torch and cupy left out" in out
    assert out.count("not measured") == len(matmul.GOALS)


def test_the_cpu_is_no_gpu(capsys):
    code, out, _ = run(capsys, "overhead", "--quick", "--device", "cpu")
    assert code == 0 and "There is no GPU in this" in out and "numpy" in out


def test_bad_arguments(capsys, tmp_path):
    for arguments in ([], ["speed"], ["matmul", "--peers", "jax"]):
        with pytest.raises(SystemExit) as end:
            command.main(["bench", *arguments])
        assert end.value.code == 2
    capsys.readouterr()
    code, _, err = run(capsys, "matmul", "--device", "gpu")
    assert code == 2 and "no device is called 'gpu'" in err
    missing = str(tmp_path / "missing" / "figures.json")
    code, _, err = run(capsys, "matmul", "--device", "cpu", "--json", missing)
    assert code == 1 and err.startswith("bench: ")


def test_a_peer_that_is_not_installed():
    gpu = types.SimpleNamespace(type="cuda")
    with pytest.raises(ModuleNotFoundError, match="no_such_peer is not installed here"):
        bench.available_peers(gpu, ["no_such_peer"])


# Another build ------------------------------------------------------------------------------------


@pytest.fixture
def another(tmp_path):
    """A checkout whose additions are products, with our libraries."""
    package = tmp_path / "another" / "pyvecgpu"
    shutil.copytree(Path(vg.__file__).parent, package, symlinks=True, ignore=skipped)
    for library in Path(vg.__file__).parent.glob("*.so"):
        (package / library.name).symlink_to(library)
    with (package / "__init__.py").open("a") as file:
        file.write("\n\ndef add(a, b, **options):\n    return multiply(a, b, **options)\n")
    yield package.parent
    for name in [name for name in sys.modules if name.startswith("pyvecgpu_against")]:
        del sys.modules[name]


skipped = shutil.ignore_patterns("*.so", "__pycache__")


@pytest.mark.devices("cpu", "sim")
@pytest.mark.parametrize("name", ["streaming", "transfers", "overhead"])
def test_another_build_takes_part(device, another, name, capsys, tmp_path):
    file = tmp_path / "figures.json"
    arguments = [name, "--quick", "--device", device, "--against", str(another)]
    code, out, err = run(capsys, *arguments, "--json", str(file))
    rows = {row["name"]: row["results"] for row in read_strictly(file)["rows"]}
    wrong = {row for row, results in rows.items() if results.get("against", {}).get("wrong")}
    added = {row for row in rows if row.startswith("add")}  # a + b is no function of the module
    assert wrong == added and code == bool(added)
    assert all(f"{row}: the result of against is wrong" in err for row in added)
    assert not any(
        results["pyvecgpu"]["wrong"] for results in rows.values() if "against" in results
    )
    told = re.search(r"against the other build: geometric mean (\S+)x, least (\S+)x, (.*)\n", out)
    worst = rows[told[3]]
    ratio = worst["against"]["seconds"] / worst["pyvecgpu"]["seconds"]
    assert told[2] == f"{ratio:.3f}" and float(told[1]) >= float(told[2])


@pytest.mark.devices("cpu", "sim")
def test_the_sweep_beside_another_build(device, another, capsys):
    arguments = ["sweep", "--quick", "--device", device, "--cases", "9", "--seed", "1"]
    code, out, _ = run(capsys, *arguments, "--against", str(another))
    assert code == 0 and "seed 1, beside against: 9 cases" in out, out


def test_no_other_build(capsys, tmp_path):
    code, _, err = run(capsys, "streaming", "--device", "cpu", "--against", str(tmp_path))
    assert code == 1 and err == f"bench: there is no package pyvecgpu in {tmp_path}\n"
    for arguments in (["article"], ["model"], ["sweep", "--peers", "torch"]):
        with pytest.raises(SystemExit) as end:
            command.main(["bench", *arguments, "--against", str(tmp_path)])
        assert end.value.code == 2
    capsys.readouterr()


# Wrong results ------------------------------------------------------------------------------------


def row_with(calls):
    row = streaming.add(100, "100")
    row.calls = calls
    return row


def write_half(vg, a, b, out):
    vg.add(a[:50], b[:50], out=out[:50])
    return out


WRONG = {
    "another operation": lambda vg, a, b, out: vg.subtract(a, b, out=out),
    "nothing written": lambda vg, a, b, out: out,
    "half written": write_half,
    "one element off": lambda vg, a, b, out: vg.add(a, b, out=out) + (vg.arange(100) == 99) * 1e-3,
    "another shape": lambda vg, a, b, out: vg.add(a, b, out=out)[:99],
}


@pytest.mark.devices("cpu", "sim")
@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_result_is_told(mistake, device, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(streaming, "rows", lambda size: [row_with({"pyvecgpu": WRONG[mistake]})])
    path = tmp_path / "figures.json"
    with vg.device(device):
        code, _, err = run(capsys, "streaming", "--device", device, "--json", str(path))
    assert code == 1 and "bench: add, 100: the result of pyvecgpu is wrong" in err
    result = read_strictly(path)["rows"][0]["results"]["pyvecgpu"]
    assert result["wrong"] is True and (result["error"] is None or result["error"] > 1e-7)


class Peer(libraries.PyvecgpuOnCpu):
    name = writes_as = "torch"


def test_a_wrong_peer_is_told(capsys):
    cpu = vg.Device("cpu")
    right, wrong = streaming.same(lambda m, a, b, out: m.add(a, b, out=out), "pyvecgpu"), WRONG
    row = row_with(right | {"torch": wrong["another operation"]})
    both = [libraries.PyvecgpuOnCpu(cpu), Peer(cpu)]
    effort = timing.Effort(rounds=3)
    results = timing.measure(row, both, timing.pool_for([row]), effort)
    assert not results["pyvecgpu"].wrong and results["torch"].wrong
    assert bench.tell_wrong([{"name": row.name, "results": results}]) == 1
    assert capsys.readouterr().err.startswith("bench: add, 100: the result of torch is wrong")
    assert "| torch " in bench.rate_line(row, results)


def test_what_a_graph_leaves_is_checked():
    """Of a replay that does nothing: the result of an earlier call does not stand in for it."""

    class Replayed(libraries.PyvecgpuOnCpu):
        def __init__(self, work_again):
            super().__init__(vg.Device("cpu"))
            self.work_again = work_again

        def recorded(self, work):
            return (work if self.work_again else lambda: None), True

    row = matmul.product("ieee", (8, 9, 10))  # more sets than calls in a turn
    for work_again in (True, False):
        library = [Replayed(work_again)]
        effort = timing.Effort(rounds=2, graphs=True, cache_bytes=4500, batch_seconds=0.0)
        result = timing.measure(row, library, timing.pool_for([row]), effort)["pyvecgpu"]
        assert result.wrong is not work_again and math.isnan(result.error) is not work_again


@pytest.mark.devices("sim", "cuda")
def test_pyvecgpu_is_recorded(device):
    """Turns are launches of a graph, with temporaries, whose results are those of the calls."""
    row = matmul.product("float32", (30, 40, 50))
    row.calls["pyvecgpu"] = lambda vg, a, b, out: vg.add(a @ b, 0.0, out=out)
    library = libraries.Pyvecgpu(vg.Device(device))
    effort = timing.Effort(rounds=2, graphs=True, cache_bytes=20_000, batch_seconds=0.0)
    result = timing.measure(row, [library], timing.pool_for([row]), effort)["pyvecgpu"]
    assert not result.wrong
    ones = vg.ones(3, device=device)
    turn, is_recorded = library.recorded(lambda: vg.add(ones, ones, out=ones))
    assert is_recorded and ones.tolist() == [1, 1, 1]
    turn()
    assert ones.tolist() == [2, 2, 2]


def cut_off(k, bits):
    """Return a call that adds k products, 16 at a time, and cuts each sum off at so many bits."""

    def call(vg, a, b, out):
        a, b = (x.numpy().astype(np.float64) for x in (a, b))
        total = np.zeros((a.shape[0], b.shape[1]))
        for at in range(0, k, 16):
            total = shortened(total + a[:, at : at + 16] @ b[at : at + 16], bits, np.trunc)
        out[...] = vg.asarray(total.astype(np.float32), device="cpu")
        return out

    return call


def rounded_to(bits, by=np.rint):
    """Return a call whose operands are rounded to so many bits, or by np.trunc cut off."""

    def call(vg, a, b, out):
        product = shortened(a.numpy(), bits, by) @ shortened(b.numpy(), bits, by)
        out[...] = vg.asarray(product.astype(np.float32), device="cpu")
        return out

    return call


# (precision, k, a call, whether it is wrong)
LIMITS = {
    "float32 by promoted sums": ("float32", 4096, cut_off(4096, 40), False),
    "float32 as tensor cores add": ("float32", 4096, cut_off(4096, 24), True),
    "a shorter one": ("float32", 1024, cut_off(1024, 24), True),
    "fast32 as tensor cores add": ("fast32", 4096, cut_off(4096, 24), True),
    "ieee as tensor cores add": ("ieee", 4096, cut_off(4096, 24), True),
    "tf32": ("tf32", 512, rounded_to(11), False),
    "tf32, cut off": ("tf32", 512, rounded_to(11, np.trunc), True),
    "tf32 for float32": ("float32", 512, rounded_to(11), True),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits_of_errors(case):
    precision, k, call, wrong = LIMITS[case]
    row = matmul.product(precision, (48, 48, k))
    row.calls = {"pyvecgpu": call}
    library, effort = [libraries.PyvecgpuOnCpu(vg.Device("cpu"))], timing.Effort(rounds=1)
    result = timing.measure(row, library, timing.pool_for([row]), effort)["pyvecgpu"]
    assert result.wrong is wrong, (result.error, row.error_allowed)


def test_limits_follow_from_rounding():
    """One addition after another errs as reckoned; "ieee" may by twice that of its chains.

    One product is rounded once, so it errs by the root of the mean square of one rounding.
    """
    random = np.random.default_rng(1)
    for k in (1, 2, 16, 255, 1024):
        a, b = random.standard_normal((2, 400 if k < 16 else 40, k), np.float32)
        total = np.zeros((len(a), len(a)), np.float32)
        for i in range(k):
            product = np.multiply.outer(a[:, i].astype(np.float64), b[:, i])
            total = (total + product).astype(np.float32)
        error = timing.relative_error(total, a.astype(np.float64) @ b.T)
        assert abs(error / matmul.chain_error(k, 24) - 1) <= 0.1
        chains = 1 if k < 256 else 2
        assert matmul.error_allowed("ieee", k) <= 2.2 * error / math.sqrt(chains)


def test_a_wrong_call_is_told(capsys, monkeypatch):
    one = np.ones(1, np.float32)
    row = overhead.Call("a + b", [one, one], overhead.numpy_way(lambda m, a, b: a - b), np.add)
    monkeypatch.setattr(overhead, "rows", lambda: [row])
    code, _, err = run(capsys, "overhead", "--quick", "--device", "cpu")
    assert code == 1 and "a + b: the result of pyvecgpu is wrong" in err


def test_relative_error(monkeypatch):
    monkeypatch.setattr(timing, "CHUNK", 3)
    expected = np.arange(10.0)
    norm = math.sqrt(285)
    assert timing.relative_error(expected, expected) == 0
    for index in (0, 5, 9):
        values = expected.copy()
        values[index] += 2
        assert abs(timing.relative_error(values, expected) - 2 / norm) <= 1e-15
        values[index] = np.nan
        assert math.isnan(timing.relative_error(values, expected))
    assert timing.relative_error(expected[:9], expected) == math.inf
    assert timing.relative_error(np.float32(1.5), np.float64(1.0), np.float64(100)) == 0.005
    # Beside zeros alone it is the error itself.
    assert timing.relative_error(np.array([3.0, 4.0]), np.zeros(2)) == 5


def test_names_of_windows():
    """They tell the rows of a table apart, and begin with a shape."""
    for size in windows.POOLS:
        names = [row.name for row in windows.rows(size)]
        assert len(set(names)) == len(names)
        assert all(re.match(r"[a-z ]+, \d+(x\d+){3}\b", name) for name in names), names


def test_all_cores_stand_beside_numpy(monkeypatch):
    row = transfers.add(1000, "1000")
    pool, effort = timing.pool_for([row]), timing.Effort(rounds=2)
    device = [libraries.PyvecgpuOnCpu(vg.Device("cpu"))]
    results = transfers.measure(row, device, pool, effort)
    assert list(results) == ["pyvecgpu", "numpy", "C loop, all cores"]
    assert not any(result.wrong for result in results.values())
    monkeypatch.setattr(loops, "load", lambda: (None, "no C compiler"))
    assert list(transfers.measure(row, device, pool, effort)) == ["pyvecgpu", "numpy"]


def test_a_wrong_transfer_is_told():
    cpu = vg.Device("cpu")
    for make in (transfers.add, transfers.upload, transfers.download):
        right = make(1000, "1000")
        pool, effort = timing.pool_for([right]), timing.Effort(rounds=2)
        device = [libraries.PyvecgpuOnCpu(cpu)]
        assert not transfers.measure(right, device, pool, effort)["pyvecgpu"].wrong
        call = right.calls["pyvecgpu"]
        right.calls["pyvecgpu"] = lambda library, *hosts, call=call: call(library, *hosts)[::-1]
        assert transfers.measure(right, device, pool, effort)["pyvecgpu"].wrong


# How it is measured -------------------------------------------------------------------------------


def test_operands_are_random_and_rotate_over_three_caches():
    row = streaming.add(2**20, "2^20")
    assert timing.number_of_sets(row, 50 * 2**20) == math.ceil(150 / 12)
    assert timing.number_of_sets(row, 0) == 1
    pool = timing.RandomPool(1000)
    a, b = pool.take((10, 100), np.float32), pool.take((10, 100), np.float64)
    assert a.shape == b.shape == (10, 100) and (a.dtype, b.dtype) == (np.float32, np.float64)
    assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) <= 0.2 and 0.9 <= a.std() <= 1.1


def test_full_sizes_are_those_of_the_goals():
    for module in (streaming, matmul, steps, rows):
        names = {row.name: row for row in module.rows("full")}
        for goal in module.GOALS:
            peer = getattr(goal, "peer", "pyvecgpu")  # a goal of time has none
            assert {"pyvecgpu", peer} <= set(names[goal.row].calls)
    assert overhead.GOALS[0].row in [row.name for row in overhead.rows()]
    assert {goal.row for goal in transfers.GOALS} <= {row.name for row in transfers.rows("full")}


@pytest.mark.devices("cuda")  # the simulated card computes everything so
def test_batches_run_as_ieee_if_their_names_say_so(device, rng):
    for items, n in matmul.SIZES["full"]["batches"]:
        a, b = (put(device, rng.standard_normal((2, n, n)).astype(np.float32)) for _ in range(2))
        is_ieee = helpers.bits(vg.matmul(a, b)) == helpers.bits(vg.matmul(a, b, precision="ieee"))
        assert is_ieee == ("here ieee" in matmul.batch_name(items, n))


def result(seconds):
    return timing.Result(seconds, seconds, seconds, 1, 0.0)


def test_goals():
    goal = goals.Ratio("add", "torch", 0.97)
    for ours, met in ((1.0, True), (1.03, True), (1.04, False)):
        verdict = goal.judge({"add": {"pyvecgpu": result(ours), "torch": result(1.0)}})
        assert verdict.met is met and abs(verdict.measured - 1 / ours) <= 1e-12
        assert verdict.sentence().endswith("met" if met else "NOT met")
    aim = goals.Ratio("add", "torch", 0.97, aim=True)
    verdict = aim.judge({"add": {"pyvecgpu": result(1.04), "torch": result(1.0)}})
    assert verdict.aim and not verdict.met and "add: aim, at least 0.97x" in verdict.sentence()
    assert aim.judge({}).aim and not goal.judge({}).aim
    beyond = goals.Beyond("a + b", overhead.BARE, 2.5)
    for ours, met in ((5e-6, True), (5.7e-6, False)):
        table = {"a + b": {"pyvecgpu": result(ours), overhead.BARE: result(3e-6)}}
        assert beyond.judge(table).met is met
    within = goals.Within("add", 0.35e-3)
    for ours, met in ((0.35e-3, True), (0.36e-3, False)):
        verdict = within.judge({"add": {"pyvecgpu": result(ours)}})
        assert verdict.met is met and abs(verdict.measured - ours * 1e3) <= 1e-12
        assert "add: at most 0.35 ms: 0.3" in verdict.sentence()
    assert within.judge({"add": {"torch": result(1.0)}}).met is None
    mean = goals.MeanRatio("a", "torch", 2.0)
    for second, met in ((8.1, True), (7.9, False)):
        times = {"add": 0.5, "a + b": second, "other": 1e-9}
        verdict = mean.judge(
            {row: {"pyvecgpu": result(1.0), "torch": result(t)} for row, t in times.items()}
        )
        assert verdict.met is met and abs(verdict.measured - math.sqrt(second / 2)) <= 1e-12
        assert "a, geometric mean of 2 shapes: at least 2x torch: " in verdict.sentence()
    every = goals.EveryRatio("a", "torch", 2.0)
    for second, met in ((2.1, True), (1.9, False)):
        times = {"add": 9.0, "a + b": second, "other": 1e-9}
        verdict = every.judge(
            {row: {"pyvecgpu": result(1.0), "torch": result(t)} for row, t in times.items()}
        )
        assert verdict.met is met and verdict.measured == second
        assert verdict.sentence().startswith("a, each of 2 shapes: at least 2x torch: ")
    for unmeasured in (goal, beyond, mean, every):
        for table in ({}, {"add": {"pyvecgpu": result(1.0)}, "a + b": {"pyvecgpu": result(1.0)}}):
            verdict = unmeasured.judge(table)
            assert verdict.met is None and verdict.sentence().endswith(": not measured")


def test_rates():
    assert timing.rate_text(12 * 2**28, 0.74e-3, "B/s") == "4.35 TB/s"
    assert timing.rate_text(4e6, 1e-3, "FLOP/s") == "4 GFLOP/s"


@pytest.mark.devices("cuda")
def test_bare_launch(device):
    if compiled.find_nvcc() is None:
        with pytest.raises(OSError, match="no nvcc"):
            overhead.BareLaunch(vg.Device(device))
    else:
        bare = overhead.BareLaunch(vg.Device(device))
        bare.launch(10)
        bare.wait()


def test_without_nvcc_there_is_no_bare_launch(monkeypatch):
    monkeypatch.setattr(compiled.shutil, "which", lambda place: None)
    with pytest.raises(OSError, match="no nvcc"):
        overhead.BareLaunch(None)


# The report ---------------------------------------------------------------------------------------


def test_report(capsys, tmp_path, monkeypatch):
    folder = tmp_path / "docs" / "measured"
    folder.mkdir(parents=True)
    readme = tmp_path / "README.md"
    blocks = (report.ARTICLE_BEGIN, "old", report.ARTICLE_END, report.BEGIN, "old", report.END)
    blocks += (report.DEMO_BEGIN, "old", report.DEMO_END)
    blocks += (report.MUTANTS_BEGIN, "old", report.MUTANTS_END)
    readme.write_text("\n".join(["before", *blocks, "after", ""]))
    ladder = tmp_path / report.LADDER
    ladder.parent.mkdir(parents=True)
    marks = (report.LADDER_BEGIN, report.LADDER_END, report.CHOICE_BEGIN, report.CHOICE_END)
    ladder.write_text("\n".join(marks))
    products = tmp_path / report.PRODUCTS
    blocks = (report.PRODUCTS_BEGIN, report.PRODUCTS_END, report.SWEEP_BEGIN, report.SWEEP_END)
    products.write_text("\n".join(blocks))
    quick = [row.name for row in matmul.rows("quick")]
    monkeypatch.setattr(report, "FRONT", quick[:3])
    monkeypatch.chdir(tmp_path)
    assert report.main(["--check"]) == 1 and "out of date" in capsys.readouterr().err
    assert report.main([]) == 0 and report.NONE in readme.read_text()
    for name in NAMES:
        arguments = ["--quick", "--device", "cpu", "--json", str(folder / f"{name}.json")]
        assert run(capsys, name, *arguments)[0] == 0
    assert report.main([]) == 0 and report.main(["--check"]) == 0
    assert report.NONE in ladder.read_text()
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "**Products of shapes drawn at random**" in text and "float16, geometric mean" in text
    tables = [module.rows("quick") for module in (streaming, transfers)]
    for row in sum(tables, overhead.rows()):
        assert f"\n| {row.name} | " in text
    notes = [f"\n- {row.name}: {row.note}\n" for row in streaming.rows("quick") if row.note]
    assert notes and all(note in text for note in notes)
    check_products(text, products.read_text(), quick)
    readme.write_text("no markers")
    with pytest.raises(ValueError, match="lacks the markers"):
        report.main([])


def check_products(front, page, names):
    """The front page has the first three rows and what is not met, the page all rows and goals."""
    for name in names:
        line = rf"^\| {re.escape(name)} \| [0-9.e+-]+ [GT]FLOP/s \| [0-9]\.[0-9]e[+-][0-9]+ \|$"
        assert re.search(line, page, re.MULTILINE), name
        assert bool(re.search(line, front, re.MULTILINE)) is (name in names[:3]), name
    required = [goal for goal in matmul.GOALS if not goal.aim]
    assert len(required) < len(matmul.GOALS)
    assert f"All {len(names)} rows are in" in front
    assert f"0 of {len(required)} goals are met; the others:" in front
    for goal in matmul.GOALS:
        line = f"\n- {goal.judge({}).sentence()}\n"
        assert line in page and (line in front) is not goal.aim


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "figures.json"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), bench.replacement(path) as file:
        file.write("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with bench.replacement(path) as file:
        file.write("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]
    with bench.replacement(None) as file:
        assert file is None
