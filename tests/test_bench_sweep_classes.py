"""`bench sweep`: arrays made for a case, results of every kind, the classes, and torch's names."""

import re
import types

import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu import __main__ as command
from pyvecgpu.bench import libraries, sweep
from pyvecgpu.bench.sweep import arrays, checking, timed
from pyvecgpu.bench.sweep.case import (
    DTYPES,
    LARGEST,
    ROUNDOFF,
    SMALLEST,
    Case,
    Draw,
    Made,
    Operand,
    expected_rounded,
)
from pyvecgpu.bench.sweep.classes import CLASSES, FILES, creation, functions
from pyvecgpu.dtypes import CODES
from pyvecgpu.operations import ROWS

ROOM = dict.fromkeys(DTYPES, 2**17)
QUICK = arrays.Size(ROOM, 0.5, 1, 0.0, 1, checked=1.0)
FULL = dict.fromkeys(DTYPES, 2**27) | {"float32": 2**28, "uint8": 2**28}


def run(capsys, *arguments):
    code = command.main(["bench", "sweep", "--quick", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def library_on(device):
    return libraries.open_libraries(vg.Device(device), [], True)[0]


# Arrays that are made for a case ------------------------------------------------------------------


def test_dtypes_are_those_of_the_package():
    assert {str(dtype) for dtype in CODES if dtype.kind in "biuf"} == set(DTYPES)
    assert set(ROUNDOFF) == set(SMALLEST) == set(LARGEST) == set(functions.FLOATS)


def test_values_that_are_made():
    values = arrays.Values(3, ROOM)

    def made(dtype, kind, bound, start=0, length=1000):
        return values.of_operand(Operand(dtype, (length,), start, made=Made(kind, bound)))

    indices = made("int64", "index", 7)
    assert indices.dtype == np.int64 and set(indices) == set(range(7))
    assert made("int64", "index", 7) is indices  # while the case is
    assert not np.array_equal(made("int64", "index", 7, start=1), indices)
    assert np.array_equal(arrays.Values(3, ROOM).of_operand(operand_of_indices(7)), indices)
    assert sorted(made("int64", "distinct", 1000)) == list(range(1000))
    few = made("int64", "distinct", 1000, length=10)
    assert len(set(few)) == 10 and max(few) > 10
    for density in (0.0, 0.1, 1.0):
        mask = made("bool", "mask", density)
        assert mask.dtype == bool and abs(np.mean(mask) - density) <= 0.05
    ascending = made("float32", "sorted", 0)
    assert np.all(np.diff(ascending) >= 0)
    assert np.array_equal(ascending, np.sort(values.of("float32", 0, 1000)))
    for _ in range(3):
        for bound in range(1, 2 * arrays.MADE):
            made("int64", "index", bound)
        assert len(values.latest) <= arrays.MADE


def operand_of_indices(bound):
    return Operand("int64", (1000,), made=Made("index", bound))


def test_operands_made_owned_and_on_the_host(device):
    library = library_on(device)
    ours = arrays.Arrays(library, arrays.Values(3, ROOM), ROOM)
    indices = ours.take(operand_of_indices(9))
    assert indices.device == vg.Device(device)
    assert np.array_equal(library.get(indices), ours.values.of_operand(operand_of_indices(9)))
    shared = Operand("float32", (4, 5), 3)
    own = Operand("float32", (4, 5), 3, axes=(1, 0), own=True)
    before = library.get(ours.take(shared)).copy()
    mine = ours.take(own)
    assert np.array_equal(library.get(mine), before.T)
    mine[...] = 77
    assert np.array_equal(library.get(ours.take(shared)), before)
    host = ours.take(Operand("int16", (4, 6), 3, key=(slice(None), slice(1, -1)), on_host=True))
    assert isinstance(host, np.ndarray) and host.shape == (4, 4) and not host.flags.c_contiguous


def test_what_torch_is_given_of_the_host_and_of_its_own():
    """Of an operand on the host a tensor there; a copy by clone."""
    tensors, clones = [], []

    class Flat(np.ndarray):
        def clone(self):
            clones.append(self)
            return self.copy()

    module = types.SimpleNamespace(
        from_numpy=lambda host: tensors.append(host) or host,
        reshape=np.reshape,
        permute=np.transpose,
    )
    torch = types.SimpleNamespace(
        writes_as="torch", module=module, put=lambda host, dtype: host.copy().view(Flat)
    )
    theirs = arrays.Arrays(torch, arrays.Values(3, ROOM), ROOM)
    backwards = (slice(None, None, -1),)
    host = theirs.take(Operand("int16", (10,), key=backwards, on_host=True))
    assert tensors[0] is host and host.strides == (2,)
    theirs.take(Operand("float32", (10,)))
    assert not clones
    theirs.take(Operand("float32", (10,), own=True))
    assert len(clones) == 1


# Results ------------------------------------------------------------------------------------------


def checked(result, **facts):
    case = Case("group", "text", [], None, None, bytes=1, **{"expected": None} | facts)
    return checking.check(case, library_on("cpu"), result, arrays.Values(3, ROOM))


def test_results_of_every_kind():
    ones = vg.ones(3, device="cpu")
    assert checked(ones, expected=lambda: (np.ones(3), 0)) == ""
    assert checked(np.ones(3), expected=lambda: (np.ones(3), 0)) == ""
    assert checked(1.5, expected=lambda: (np.float64(1.5), 0)) == ""
    assert "1.5 for 2.5" in checked(1.5, expected=lambda: (np.float64(2.5), 0.5))
    two = lambda: ((np.ones(3), np.zeros(2)), (0, 0.1))  # noqa: E731
    assert checked((ones, np.full(2, 0.05)), expected=two) == ""
    assert "at (0,) 0.2 for 0.0" in checked([ones, np.full(2, 0.2)], expected=two)
    assert "at (0,) 0.0 for 1.0" in checked([vg.zeros(3, device="cpu"), np.zeros(2)], expected=two)
    assert checked((ones,), expected=two) == "there are 1 results, not 2"
    assert checked(ones, verify=lambda values: f"{values.sum()}") == "3.0"


def test_values_beyond_a_dtype_are_infinite():
    values, allowed = expected_rounded(np.array([7e4, -7e4, 65504.0, 1e-9]), "float16", 3)
    assert values.tolist() == [np.inf, -np.inf, 65504.0, 1e-9]
    assert np.allclose(allowed[2:], 3 * np.array([2.0**-11 * 65504, 2.0**-25]), rtol=1e-3)
    assert expected_rounded(np.array([300]), "uint8") == (np.array([300]), 0.0)


def test_random_values_are_judged():
    random, normal = creation.MOMENTS["random"], creation.MOMENTS["randn"]
    uniform = np.random.default_rng(1).random(10000)
    assert creation.odd(uniform, 10000, *random, 0.0) == ""
    assert "shape" in creation.odd(uniform, 9999, *random, 0.0)
    assert "numbers from" in creation.odd(uniform + 0.1, 10000, *random, 0.0)
    assert "numbers from" in creation.odd(np.append(uniform[1:], np.nan), 10000, *random, 0.0)
    assert "mean" in creation.odd(uniform**1.2, 10000, *random, 0.0)
    assert "variance" in creation.odd((uniform + 0.5) / 2, 10000, *random, 0.0)
    drawn = np.random.default_rng(2).standard_normal(10000)
    assert creation.odd(drawn, 10000, *normal, 0.0) == ""
    assert "variance" in creation.odd(1.1 * drawn, 10000, *normal, 0.0)
    assert "mean" in creation.odd(drawn + 0.1, 10000, *normal, 0.0)


SPOILT = {
    "take": "index read inner",
    "take_along_axis": "index along",
    "concat": "join last",
    "stack": "join stack",
    "roll": "move roll",
    "pad": "move pad",
    "clip": "clip",
    "tile": "move tile",
    "eye": "create eye",
    "linspace": "create linspace",
    "logaddexp": "binary functions logaddexp",
    "zeros": "create filled zeros",
}


@pytest.mark.devices("cpu", "sim")
@pytest.mark.parametrize("name", SPOILT)
def test_a_function_that_is_wrong_in_one_element_is_found(name, device, monkeypatch):
    right = getattr(vg, name)

    def wrong(*operands, **options):
        result = right(*operands, **options)
        result[(-1,) * result.ndim] = result[(-1,) * result.ndim] * 0 + 3
        return result

    library, found, count = library_on(device), 0, 0
    with vg.device(device):
        one = timed.Sweep([library], QUICK, 2)
        for number in range(10000):
            case, _ = one.draw(number)
            if f"{case.group} {case.text}".startswith(SPOILT[name]):
                count += 1
                contender = one.contender(0, case)
                assert checking.check(case, library, contender.call(), one.values) == ""
                with monkeypatch.context() as patch:
                    patch.setattr(vg, name, wrong)
                    found += bool(checking.check(case, library, contender.call(), one.values))
            if count == 6:
                break
    assert count == 6 and found >= 4


@pytest.mark.parametrize(
    "only", ["index write", "transfer", "dense", "view", "random", "binary in"]
)
def test_classes_that_write_move_and_create(only, device, capsys):
    code, out, err = run(capsys, "--device", device, "--only", only, "--cases", "12", "--seed", "3")
    assert code == 0 and err == "" and "12 cases" in out and " 12 checked, 0 wrong" in out


# The classes --------------------------------------------------------------------------------------


def test_every_operation_of_one_array_is_drawn():
    drawn = {name for _, names in functions.KINDS.values() for name in names}
    drawn |= set(functions.OF_INTEGERS)
    unary = {row.name for row in ROWS if row.family == "unary"}
    assert unary - drawn == {"positive", "conj"} and drawn <= unary


def test_classes_are_often_enough():
    """Each file's classes have weights; in 15,000 cases even the rarest function draws some 50."""
    total = sum(CLASSES.values())
    assert min(CLASSES.values()) / total * 15_000 >= 50
    assert sum(len(file.CLASSES) for file in FILES) == len(CLASSES)
    draws = [Draw.of(4, number, FULL).case(CLASSES).group for number in range(3000)]
    assert len({group.split()[0] for group in draws}) >= 20


def test_lines_are_sorted_by_section():
    outcomes = [
        timed.Outcome(number, group, "", 1, 0, ratio=ratio)
        for number, (group, ratio) in enumerate(
            [("a x", 2.0), ("cast", 0.9), ("b", 1.5), ("a y", 0.5), ("b", 3.0), ("a x", 1.0)]
        )
    ]
    lines = [re.split(r" {2,}n +", line)[0] for line in sweep.class_lines(outcomes)]
    assert lines == ["a", "  a y", "  a x", "cast", "b"]
    assert " 3  mean  1.000" in sweep.class_lines(outcomes)[0]


def test_reasons_of_what_is_left_out():
    left_out = [f"case {n}: a b: torch: RuntimeError: no\nmore" for n in range(3)]
    left_out.append("case 7: c: torch: TypeError: none")
    assert sweep.left_out_lines(left_out) == [
        "left out 3: a b: torch: RuntimeError: no",
        "left out 1: c: torch: TypeError: none",
    ]


# Where a case lost --------------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
def test_a_case_that_lost_is_timed_on_the_device(device, monkeypatch):
    """Both times, if it did lose; the large array that keeps the device busy stays as it is."""
    other = library_on(device)
    one = timed.Sweep([library_on(device), other], QUICK, 4)
    ours = one.arrays[0].array("float32")
    before = ours.numpy()
    for again, is_told in ((np.inf, True), (0.0, False)):
        monkeypatch.setattr(timed, "AGAIN", again)
        outcome = one.measure(0)
        assert outcome.problem == "" and bool(outcome.kernels) is is_told
        if is_told:
            assert len(outcome.kernels) == 2 and min(outcome.kernels) > 0
            assert "on the device" in sweep.case_line(outcome, "other")
            assert "1 of the 1" in sweep.counted([outcome], []) or "0 of the 1" in sweep.counted(
                [outcome], []
            )
        else:
            assert "on the device" not in sweep.case_line(outcome, "other")
    assert np.array_equal(ours.numpy(), before)


@pytest.mark.devices("cpu")
def test_the_cpu_has_no_device_clock(device, monkeypatch):
    monkeypatch.setattr(timed, "AGAIN", np.inf)
    outcome = timed.Sweep([library_on(device), library_on(device)], QUICK, 4).measure(0)
    assert outcome.problem == "" and outcome.kernels is None


# Torch's names ------------------------------------------------------------------------------------

# What the peers' expressions may name: functions of torch and of torch.nn.functional, and methods
# of tensors, as their documentation has them.
TORCH = """
    abs acos acosh Adam AdamW add all allclose amax amin any arange argmax argmin argsort
    asarray asin asinh atan atan2 atanh aten autograd batch_norm bfloat16
    binary_cross_entropy_with_logits bitwise_not bmm broadcast_to cat ceil clamp clip_grad_norm_
    clone contiguous_format conv1d conv2d copy_ copysign cos cosh count_nonzero cpu
    cross_entropy cuda cumprod cumsum deg2rad detach device diag diagonal diff dropout dtype
    einsum elu embedding equal exp exp2 expand expm1 eye flip floor fmax fmin from_numpy full
    functional gelu grad group_norm GRU heaviside huber_loss hypot index_select isclose isfinite
    isinf isnan item l1_loss leaky_relu linalg linear linspace load_state_dict log log10 log1p
    log2 log_softmax logaddexp logical_and logical_not logical_or logical_xor logsumexp LSTM
    matmul max maximum mean minimum mm mse_loss multiply named_parameters nan_to_num nanmean
    nansum negative nn no_grad nonzero ones ops optim outer pad parameters prod put_ rad2deg
    rand randint randn ravel reciprocal relu repeat_interleave requires_grad_ reshape RMSprop
    RNN roll round scaled_dot_product_attention searchsorted SGD shape sigmoid sign signbit silu
    sin sinh smooth_l1_loss softmax softplus sort sqrt square squeeze stack std step sum T
    take_along_dim tan tanh threshold_backward tile to topk torch tril triu trunc unique utils
    var vecdot where zeros
"""
# Python's own and the package's that the expressions read beside them.
OURS = {
    "getattr",
    "reversed",
    "function",
    "options_of",
    "setitem",
    "__name__",
    "id",
    "zip",
    "tuple",
}
OURS |= {"np", "random", "default_rng", "uniform", "astype", "float32"}  # weights of layers


def names_of(function, seen):
    """Return the names that a function, and those that it closes over, read or are given."""
    if id(function) in seen or not hasattr(function, "__code__"):
        return set()
    seen[id(function)] = function
    codes, names = [function.__code__], set()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [const for const in code.co_consts if hasattr(const, "co_names")]
    closed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    closed = {name: cell.cell_contents for name, cell in closed.items()}
    for name, value in closed.items():
        names |= names_of(value, seen)
        if name == "peers":  # by our names
            names |= {one for one in value.values() if isinstance(one, str)}
        elif name == "peer_name" or (name == "name" and not {"peers", "peer_name"} & set(closed)):
            names.add(value)
    return names


def test_peers_name_what_torch_has():
    torch, seen, names = set(TORCH.split()), {}, set()
    for number in range(6000):
        names |= names_of(Draw.of(9, number, FULL).case(CLASSES).peer, seen)
    tables = {"FUSED", "IN_NN", "PEERS_FILLED", "PEERS_RANDOM", "STEPS"}
    assert names - torch - OURS - tables == set()
    assert {
        "take_along_dim",
        "count_nonzero",
        "logical_xor",
        "cumsum",
        "isnan",
        "bitwise_not",
    } <= names
