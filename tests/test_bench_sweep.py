"""`bench sweep`: its cases are valid and checked, its figures follow from times, and it replays."""

import json
import math
import types

import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu import __main__ as command
from pyvecgpu.bench import libraries, report, sweep
from pyvecgpu.bench.sweep import arrays, checking, timed
from pyvecgpu.bench.sweep.case import BFLOAT16, DTYPES, Case, Draw, Operand, moved
from pyvecgpu.bench.sweep.classes import CLASSES
from pyvecgpu.bench.sweep.classes.copies import expected_cast

ROOM = dict.fromkeys(DTYPES, 2**27) | {"float32": 2**28, "uint8": 2**28}
QUICK = arrays.Size(dict.fromkeys(DTYPES, 2**17), 0.5, 1, 0.0, 1, checked=1.0)


def run(capsys, *arguments):
    code = command.main(["bench", "sweep", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def sweep_on(device, size=QUICK, seed=1):
    return timed.Sweep(libraries.open_libraries(vg.Device(device), [], True), size, seed)


def double(group="double", call=lambda vg, x: x + x, **options):
    """Return a Case: an array of 1000 float32 numbers, doubled."""
    operands = [Operand("float32", (1000,))]
    peer = lambda torch, x: torch.add(x, x)  # noqa: E731
    facts = {
        "group": group,
        "text": "1000",
        "operands": operands,
        "call": call,
        "peer": peer,
        "expected": lambda x: (2 * x, 0),
        "bytes": moved(operands, (1000,), "float32"),
    }
    return Case(**facts | options)


# The cases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw_case", CLASSES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("shrink", [1.0, 0.5], ids=["full", "quick"])
def test_cases_are_valid(draw_case, shrink):
    """What a case says of itself is so, for values without memory: views of zeros of no stride."""
    room = ROOM if shrink == 1.0 else QUICK.room
    texts = set()
    for number in range(300):
        case = Draw.of(7, number, room, shrink).case({draw_case: 1})
        texts.add((case.group, case.text))
        assert case.group and case.text and (case.expected is None) is (case.verify is not None)
        assert isinstance(case.bytes, int) and case.bytes > 0 and case.operations >= 0
        assert (case.operations > 0) is (case.rate != "")
        for operand in case.operands:
            assert all(length > 0 for length in operand.shape)
            assert 0 <= operand.start < operand.end() <= room[operand.dtype]
            zeros = np.broadcast_to(np.float32(0), operand.shape)
            view = arrays.view(lambda x, shape: x, np.transpose, zeros, operand)
            assert view.shape == tuple(operand.view_shape()) and view.size > 0
    assert len(texts) > 8


def test_small_cases_follow_from_the_same_numbers():
    """A quick sweep goes through the same classes, and takes no operand larger."""
    for number in range(200):
        large = Draw.of(1, number, ROOM).choices(list(CLASSES), CLASSES.values())
        assert large == Draw.of(1, number, QUICK.room, 0.5).choices(list(CLASSES), CLASSES.values())
    assert (
        Draw.of(1, 5, ROOM).size(100, 100) == 100 and Draw.of(1, 5, ROOM, 0.5).size(100, 100) == 10
    )


def test_sizes_are_as_likely_to_double_as_to_halve():
    draw = Draw.of(1, 0, ROOM)
    sizes = [draw.size(10, 1000) for _ in range(4000)]
    assert min(sizes) >= 10 and max(sizes) <= 1000 and abs(np.median(sizes) / 100 - 1) <= 0.15


def test_a_case_that_does_not_fit_is_drawn_anew():
    drawn = []

    def grow(draw):
        drawn.append(draw)
        return double(operands=[Operand("float32", (100,), start=30 - 10 * len(drawn))])

    case = Draw.of(1, 0, {"float32": 100}).case({grow: 1})
    assert len(drawn) == 3 and case.operands[0].end() == 100
    room = {dtype: 2**17 for dtype in DTYPES if dtype != "bool"}
    for number in range(500):
        case = Draw.of(1, number, room, 0.5).case(CLASSES)
        assert "bool" not in [operand.dtype for operand in case.operands]


def test_bytes_and_operations():
    a, b = Operand("float32", (10, 20)), Operand(BFLOAT16, (20,))
    assert moved([a, b], (10, 20), "float32") == 800 + 40 + 800
    assert moved([a, a], (10, 20), "uint8") == 800 + 200
    strided = Operand("float64", (10, 20), key=(slice(None, None, 2),) * 2)
    assert strided.view_shape() == (5, 10) and strided.nbytes() == 400
    turned = Operand("float64", (10, 20, 30), axes=(2, 0, 1), key=(slice(1, -1),))
    assert turned.view_shape() == (28, 10, 20) and turned.ahead() == turned.key
    for number in range(100):
        case = Draw.of(3, number, ROOM).case(CLASSES)
        if case.group.startswith("product"):
            (m, k), (_, n) = (operand.view_shape() for operand in case.operands)
            size = {"float64": 8, "float32": 4, "tf32": 4}.get(case.rate, 2)
            assert case.operations == 2 * m * n * k
            assert case.bytes == size * (m * k + k * n + m * n)


# What is written into an operand, returned as a view or as no Array, kept beside an optimiser's
# parameters, or has a size that depends on values.
OTHER_BYTES = {
    "call", "comparison", "copy_into", "download", "into", "item", "loss_of_labels",
    "loss_of_pairs", "masked", "nonzero", "optimiser", "recurrent", "unique", "update", "view",
    "write_masked", "write_rows", "write_slices",
}  # fmt: skip
PLAIN_BYTES = [one for one in CLASSES if one.__name__ not in OTHER_BYTES]


def bytes_of(results):
    """Those of all Arrays among them."""
    if isinstance(results, (tuple, list)):
        return sum(map(bytes_of, results))
    return results.nbytes if isinstance(results, vg.Array) else 0


@pytest.mark.parametrize("draw_case", PLAIN_BYTES, ids=lambda one: one.__name__)
def test_bytes_are_those_of_operands_and_results(draw_case):
    """Each operand read once, and the result written, as the CPU device returns it."""
    seen = 0
    for number in range(60):
        case = Draw.of(5, number, QUICK.room, 0.02).case({draw_case: 1})
        operands = [
            vg.zeros(one.view_shape(), dtype=one.dtype, device="cpu") for one in case.operands
        ]
        if sum(one.size for one in operands) > 10**6:
            continue
        read = {repr(one): one.nbytes() for one in case.operands}
        with vg.device("cpu"):
            results = case.call(vg, *operands)
        assert case.bytes == sum(read.values()) + bytes_of(results), case.text
        seen += 1
    assert seen > 20


def test_operands_are_equal_everywhere(device):
    """The array of a dtype is what `Values.of` says, around the end of a period too."""
    room = dict.fromkeys(DTYPES, 100)
    values = arrays.Values(3, room)
    assert np.array_equal(
        values.of("int32", 90, 30), np.resize(values.of("int32", 0, 100), 120)[90:]
    )
    library = libraries.open_libraries(vg.Device(device), [], True)[0]
    ours = arrays.Arrays(library, values, room)
    backwards = (slice(None, None, -1), slice(1, None, 2))
    for dtype in DTYPES:
        operand = Operand(dtype, (4, 3, 5), 7, axes=(1, 2, 0), key=backwards)
        host = arrays.on_host(values, operand)
        assert host.shape == operand.view_shape() == (3, 2, 4)
        array = ours.take(operand)
        assert str(array.dtype) == dtype and np.array_equal(library.get(array), host)
    assert len(np.unique(values.of("float64", 0, 100))) == 100


# Results ------------------------------------------------------------------------------------------


def test_every_class_is_checked_right(device, capsys, tmp_path):
    path = tmp_path / "figures.json"
    arguments = ["--quick", "--device", device, "--seed", "20", "--cases", "250"]
    code, out, err = run(capsys, *arguments, "--json", str(path))
    assert code == 0 and err == "" and "250 cases" in out and "0 wrong or failed" in out
    figures = json.loads(path.read_text())
    assert figures["benchmark"] == "sweep" and figures["quick"] is True and figures["seed"] == 20
    assert figures["device"] == str(vg.Device(device)) and figures["beside"] == "the limit"
    assert {case["group"].split()[0] for case in figures["cases"]} >= {
        *("product", "batch", "reduce", "elementwise", "unary", "cast", "permute", "where")
    }
    for case in figures["cases"]:
        assert case["checked"] and case["problem"] == "" and case["seconds"] > 0
        least = case["bytes"] / figures["rates"]["copy"]
        assert case["beside"] >= least * (1 - 1e-12) and case["ratio"] > 0
        assert math.isclose(case["ratio"], case["beside"] / case["seconds"])
    assert figures["classes"][0]["name"] == "all"
    assert sum(row["count"] for row in figures["classes"][1:]) == 250
    lines = [line.strip() for line in out.splitlines()]
    for row in figures["classes"][1:]:
        assert any(line.startswith(f"{row['name']} ") for line in lines)
    assert report.render_sweep({path: figures}).count("\n| ") == len(figures["sections"]) + 1
    told = report.render_sweep({path: figures})
    below = sum(case["beside"] < 0.5 * case["seconds"] for case in figures["cases"])
    assert f" of 250 cases are below 0.9, {below} below 0.5; of 250 whose" in told
    assert "checked none is wrong or failed." in told
    figures["cases"][0]["problem"] = "one element off"
    assert "checked 1 is wrong or failed." in report.render_sweep({path: figures})
    assert len(figures["sections"]) < len(figures["classes"])
    assert sum(row["count"] for row in figures["sections"][1:]) == 250


MISTAKES = {
    "one element off": lambda vg, x: x + x + (vg.arange(1000) == 999) * 1e-3,
    "another operation": lambda vg, x: x * x,
    "another shape": lambda vg, x: (x + x)[:999],
    "NaN": lambda vg, x: x / (x * 0.0),
}


@pytest.mark.devices("cpu", "sim")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_result_is_told(mistake, device, capsys, monkeypatch, tmp_path):
    wrong = {lambda draw: double(): 1, lambda draw: double("wrong", MISTAKES[mistake]): 1}
    monkeypatch.setattr(timed, "CLASSES", wrong)
    path = tmp_path / "figures.json"
    with vg.device(device):
        arguments = ["--device", device, "--quick", "--cases", "30", "--seed", "1"]
        code, out, err = run(capsys, *arguments, "--json", str(path))
    assert code == 1 and ", wrong 1000: " in err and ", double" not in err
    classes = {row["name"]: row for row in json.loads(path.read_text())["classes"]}
    assert classes["wrong"]["mean"] == classes["wrong"]["worst"] == classes["all"]["mean"] == 0
    assert classes["double"]["worst"] > 0
    assert "30 cases" in out and f"{classes['wrong']['count']} wrong or failed" in out


@pytest.mark.devices("cpu", "sim")
def test_a_public_function_that_is_wrong_is_found(device, capsys, monkeypatch):
    """Of each class, by a change that only some elements show."""
    right = {name: getattr(vg, name) for name in ("matmul", "max", "where")}

    def spoil(name):
        def call(*operands, **options):
            result = right[name](*operands, **options)
            if result.ndim:
                result[(-1,) * result.ndim] += 1
            return result

        return call

    for name, group in (("matmul", "product float32"), ("max", "reduce max last"), ("where",) * 2):
        arguments = ["--device", device, "--quick", "--only", group, "--cases", "3", "--seed", "2"]
        assert run(capsys, *arguments)[0] == 0
        with monkeypatch.context() as patch:
            patch.setattr(vg, name, spoil(name))
            code, _, err = run(capsys, *arguments)
        assert code == 1 and err.count(f", {group}") == 3


def test_an_exception_counts_as_0_and_is_named(capsys, monkeypatch, tmp_path):
    calls = []

    def fails(vg, x):
        calls.append(1)
        raise vg.OutOfMemoryError("no memory left")

    def fails_later(vg, x):
        calls.append(1)
        if len(calls) > 3:
            raise ValueError("late")
        return x + x

    for call, text in ((fails, "OutOfMemoryError: no memory left"), (fails_later, "late")):
        calls.clear()
        cases = {lambda draw, call=call: double(call=call): 1}
        monkeypatch.setattr(timed, "CLASSES", cases)
        path = tmp_path / "figures.json"
        code, out, err = run(capsys, "--device", "cpu", "--cases", "1", "--json", str(path))
        assert code == 1 and text in err and text in out and err.startswith("bench: case 0, double")
        case = json.loads(path.read_text())["cases"][0]
        assert case["ratio"] == 0 and case["seconds"] is None and text in case["problem"]


def test_faults():
    values = np.array([[1.0, 2.0], [3.0, np.nan]], np.float32)
    assert checking.fault(values, values, 0) == ""
    assert checking.fault(values, values + np.float64([[0, 0], [0.1, 0]]), 0.2) == ""
    allowed = np.float64([[1, 1], [0.05, 1]])
    told = checking.fault(values, values + np.float64([[0, 0], [0.1, 0]]), allowed)
    assert told == "1 of 4 elements, at (1, 0) 3.0 for 3.1"
    assert "at (1, 1) nan for 3.0" in checking.fault(values, [[1, 2], [3, 3.0]], math.inf)
    assert checking.fault([np.inf, -np.inf], [np.inf, -np.inf], math.inf) == ""
    assert "2 of 2 elements" in checking.fault([1.0, np.inf], [np.inf, -np.inf], math.inf)
    assert "shape is (2, 2), not (4,)" in checking.fault(values, values.reshape(4), 1)
    assert checking.fault(np.uint8(3), np.uint64(3), 0) == ""
    assert checking.fault(np.uint8(3), np.int64(4), 0) == "1 of 1 elements, at () 3 for 4"


def test_casts_clamp():
    values, allowed = expected_cast(np.float32([-1.5, -0.5, 2.9, 300]), "uint8")
    assert values.tolist() == [0, 0, 2, 255] and values.dtype == np.uint8 and allowed == 0
    assert expected_cast(np.float32([-0.5, 0]), "bool")[0].tolist() == [True, False]
    values, allowed = expected_cast(np.float64([1 / 3, -1e-9]), "float16")
    assert values.tolist() == [1 / 3, -1e-9] and np.all(
        np.abs(np.float16(values) - values) <= allowed
    )
    assert np.all(allowed <= 2.0**-11 / 3 + 2.0**-24)


# Times and figures --------------------------------------------------------------------------------


def test_a_case_that_seems_slow_is_timed_twice_more():
    for times, expected in (
        ([(1.0, 0.9)], (1.0, 0.9)),
        ([(1.0, 0.5), (1.0, 2.0), (1.0, 1.0)], (1.0, 1.0)),
        ([(1.0, 0.89), (4.0, 2.0), (3.0, 2.0)], (3.0, 2.0)),
    ):
        left = iter(times)
        assert timed.beside_peer(lambda left=left: next(left)) == expected
        assert next(left, None) is None


class Clock:
    """A clock that calls move on."""

    now = 0.0

    def contender(self, *times):
        """Return a contender whose calls take these seconds, and the last of them from then on."""
        left = list(times)

        def call(module):
            self.now += left.pop(0) if len(left) > 1 else left[0]

        library = types.SimpleNamespace(module=None, synchronize=lambda: None)
        return timed.Contender(library, call, []), left


def test_turns(monkeypatch):
    """A call to warm up, two to see how many are a turn, and the least of so many turns."""
    clock = Clock()
    monkeypatch.setattr(timed.time, "perf_counter", lambda: clock.now)
    size = arrays.Size({}, rounds=3, batch_seconds=6.5, most_calls=4)
    ours, left = clock.contender(9, *(2, 2), *(1, 1, 1), *(0.5, 1, 0.5), *(3, 3, 3), 100, 100)
    other, _ = clock.contender(7, 0.2)
    assert timed.take_turns([ours, other], size) == pytest.approx([2 / 3, 0.2])
    assert left == [100, 100]
    most, left = clock.contender(9, *[0.1] * 14, 100, 100)
    assert timed.take_turns([most], size) == pytest.approx([0.1]) and left == [100, 100]
    least, left = clock.contender(9, *[50] * 8, 100, 100)
    assert timed.take_turns([least], size) == [50] and left == [100, 100]
    once, left = clock.contender(*[1] * 3, 100, 100)
    assert timed.take_turns([once], QUICK) == [1] and left == [100, 100]


def test_figures_of_a_class():
    ratios = [0.5, 1.0, 2.0, 4.0]
    told = sweep.summary(ratios)
    assert told["count"] == 4 and told["worst"] == 0.5
    assert math.isclose(told["mean"], math.sqrt(2)) and math.isclose(told["tenth"], 0.65)
    assert sweep.summary([0.0, 4.0])["mean"] == 0 and sweep.summary([3.0])["tenth"] == 3.0
    outcomes = [
        timed.Outcome(number, group, "", 1, 0, ratio=ratio)
        for number, (group, ratio) in enumerate([("a", 2.0), ("b", 1.0), ("a", 3.0), ("c", 0.0)])
    ]
    classes = sweep.classes_of(outcomes)
    assert list(classes) == ["c", "b", "a"] and classes["a"]["count"] == 2
    told = sweep.counted(outcomes, ["case 9: torch: no"])
    assert told.startswith("4 cases, 1 below 0.9, 1 below 0.5, 0 checked, 0 wrong")
    assert told.endswith("1 left out, the first case 9: torch: no, geometric mean 0.000")


def test_limits():
    """By bytes or by operations, whichever takes longer."""
    limits = timed.Limits(None, None)
    limits.rates = {"copy": 100.0, "float64": 1000.0}
    assert limits.seconds(double(bytes=500)) == 5
    assert limits.seconds(double(bytes=500, operations=4000, rate="float64")) == 5
    assert limits.seconds(double(bytes=500, operations=6000, rate="float64")) == 6


def test_rates_are_those_of_a_copy_and_a_product(device):
    one = sweep_on(device)
    seen = []
    one.limits.best = lambda function, *operands: seen.append(function(vg, *operands)) or 2.0
    assert one.limits.rate("copy") == 2 * 4 * 2**17 / 2 and seen[0].shape == (2**17,)
    for name in ("float32", "tf32", "float64", BFLOAT16):
        assert one.limits.rate(name) == 2 * 256**3 / 2 and seen[-1].shape == (256, 256)


# A peer -------------------------------------------------------------------------------------------


class Torch(libraries.PyvecgpuOnCpu):
    """NumPy with the names that torch has."""

    name = writes_as = "torch"
    allow_tf32, empty_cache = libraries.Torch.allow_tf32, libraries.Torch.empty_cache

    def __init__(self):
        super().__init__(vg.Device("cpu"))
        backends = types.SimpleNamespace(
            cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=None)),
            cudnn=types.SimpleNamespace(allow_tf32=None),
        )
        self.emptied = []
        self.precisions = []
        self.module = types.SimpleNamespace(
            backends=backends,
            cuda=types.SimpleNamespace(empty_cache=lambda: self.emptied.append(1)),
            reshape=np.reshape,
            permute=np.transpose,
            mm=self.multiply,
            matmul=self.multiply,
            bmm=self.multiply,
            where=np.where,
            add=np.add,
        )

    def put(self, host, dtype=None):
        return host.copy()

    def multiply(self, a, b):
        self.precisions.append(self.module.backends.cuda.matmul.allow_tf32)
        return a @ b


def beside_torch():
    torch = Torch()
    return torch, timed.Sweep([libraries.PyvecgpuOnCpu(vg.Device("cpu")), torch], QUICK, 4)


def test_a_peer_computes_the_same_cases():
    torch, one = beside_torch()
    count, groups, precisions = 0, set(), set()
    for number in range(600):
        case, _ = one.draw(number)
        groups.add(case.group)
        if case.group.split()[0] in ("product", "batch", "elementwise", "where"):
            torch.precisions.clear()
            outcome = one.measure(number)
            assert outcome.problem == "" and outcome.checked and outcome.ratio > 0
            assert set(torch.precisions) <= {case.rate == "tf32"}
            precisions |= set(torch.precisions)
            operands = [one.arrays[1].take(operand) for operand in case.operands]
            assert all(stride >= 0 for operand in operands for stride in operand.strides)
            if case.group != "elementwise reversed":
                values, error = case.expected(*operands)
                assert checking.fault(case.peer(torch.module, *operands), values, error) == ""
            count += 1
    assert count > 20 and one.limits.rates == {} and precisions == {False, True}
    assert "elementwise reversed" in groups


def test_what_a_peer_cannot_do_is_left_out(monkeypatch, capsys):
    def refuse(torch, x):
        raise NotImplementedError("not for this dtype")

    torch, one = beside_torch()
    cases = {lambda draw: double(peer=refuse): 1, lambda draw: double("possible"): 1}
    monkeypatch.setattr(timed, "CLASSES", cases)
    options = types.SimpleNamespace(case=None, only=None, cases=20, seconds=None)
    outcomes, left_out = sweep.collect(one, options)
    assert {outcome.group for outcome in outcomes} == {"possible"}
    assert len(outcomes) + len(left_out) == 20 and len(torch.emptied) == len(left_out) > 0
    assert left_out[0].endswith("torch: NotImplementedError: not for this dtype")
    monkeypatch.setattr(timed, "CLASSES", {lambda draw: double(peer=refuse): 1})
    options = types.SimpleNamespace(case=None, only=None, cases=None, seconds=0.05)
    outcomes, left_out = sweep.collect(one, options)
    assert outcomes == [] and left_out and capsys.readouterr().err == ""


# Numbers and options ------------------------------------------------------------------------------


def drawn(capsys, tmp_path, *arguments):
    path = tmp_path / "figures.json"
    assert run(capsys, "--device", "cpu", "--quick", "--json", str(path), *arguments)[0] == 0
    fields = ("number", "group", "text", "bytes", "operations")
    cases = json.loads(path.read_text())["cases"]
    return [tuple(case[field] for field in fields) for case in cases]


def test_a_seed_gives_the_same_cases_again(capsys, tmp_path):
    first = drawn(capsys, tmp_path, "--seed", "5", "--cases", "40")
    assert first == drawn(capsys, tmp_path, "--seed", "5", "--cases", "40")
    assert [case[0] for case in first] == list(range(40))
    assert first != drawn(capsys, tmp_path, "--seed", "6", "--cases", "40")
    for number in (0, 17, 39):
        assert drawn(capsys, tmp_path, "--seed", "5", "--case", str(number)) == [first[number]]
    few = drawn(capsys, tmp_path, "--seed", "5", "--only", "reduce", "--cases", "3")
    assert few == [case for case in first if "reduce" in case[1]][:3]


def test_the_sample_that_is_checked_follows_from_the_seed():
    size = arrays.Size(QUICK.room, 0.5, 1, 0.0, 1, checked=0.25)
    chosen = [[sweep_on("cpu", size).draw(number)[1] for number in range(400)] for _ in range(2)]
    assert chosen[0] == chosen[1] and 60 <= sum(chosen[0]) <= 140
    one = sweep_on("cpu", size)
    for number in range(20):
        assert one.measure(number).checked is chosen[0][number]
    assert one.measure(chosen[0].index(False), is_checked=True).checked


def test_without_a_seed_it_is_the_date(capsys):
    _, out, _ = run(capsys, "--device", "cpu", "--quick", "--cases", "1")
    head, told = out.splitlines()[0], next(line for line in out.splitlines() if "seed" in line)
    date = head.rpartition(", ")[2][:10].replace("-", "")
    assert told.startswith(f"seed {date}, beside the limit: 1 cases")


def test_seconds_end_it(capsys):
    code, out, _ = run(capsys, "--device", "cpu", "--quick", "--seconds", "0")
    assert code == 0 and ": 1 cases" in out


def test_options(capsys):
    for arguments in (
        ["matmul", "--seed", "1"],
        ["model", "--seconds", "1"],
        ["article", "--cases", "1"],
        ["streaming", "--only", "product"],
        ["sweep", "--peers", "cupy"],
        ["sweep", "--cases", "-1"],
        ["sweep", "--seed", "-1"],
        ["sweep", "--seconds", "soon"],
        ["sweep", "--plot", "folder"],
    ):
        with pytest.raises(SystemExit) as end:
            command.main(["bench", *arguments])
        assert end.value.code == 2, arguments
    capsys.readouterr()
    code, _, err = run(capsys, "--device", "cpu", "--quick", "--only", "fourier")
    assert code == 1 and err == "bench: no class has 'fourier' in its name\n"


def test_arrays_take_a_quarter_of_the_memory_at_most(monkeypatch):
    gpu, made = types.SimpleNamespace(type="cuda"), vg.zeros(1, device="cpu")
    monkeypatch.setattr(arrays.vg, "zeros", lambda *shape, **options: made)
    for gigabytes in (6, 8, 24, 80, 140):
        memory = types.SimpleNamespace(total=gigabytes * 2**30)
        monkeypatch.setattr(arrays.vg, "memory_info", lambda device, memory=memory: memory)
        size = arrays.size_of(gpu, False)
        taken = 2 * sum(n * arrays.itemsize(dtype) for dtype, n in size.room.items())
        assert taken <= memory.total / 4 and (taken > memory.total / 8 or gigabytes > 40)
        assert size.shrink == 1.0 and set(size.room) == set(DTYPES)
    assert arrays.size_of(gpu, True) == QUICK
