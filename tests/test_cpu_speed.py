"""The CPU device is NumPy's speed: what would make it slow again is counted, not timed.

Memory that a large call takes beside its result, calls of Python functions in a small one, and
calls that elements would have to be walked over for.
"""

import sys
import tracemalloc

import helpers
import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu.backends import cpu_functions
from pyvecgpu.bench import cpu
from pyvecgpu.bench.cpu.cases import Case

pytestmark = pytest.mark.devices("cpu")

N = 1_000_000
MEGA = 1 << 20


def peak(function):
    """Return the bytes that a call takes at most, beyond what there was before."""
    function()
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "name", ["exp", "negative", "sqrt", "tanh", "sigmoid", "gelu", "silu", "relu"]
)
def test_out_takes_no_memory(device, name, dtype):
    function = getattr(vg, name, None) or getattr(vg.nn.functional, name)
    x = vg.full(N, 0.5, dtype=dtype, device=device)
    out = vg.empty_like(x)
    assert peak(lambda: function(x, out=out)) < MEGA


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_two_operands_take_no_memory(device, name, dtype):
    function = getattr(vg, name)
    x, y = (vg.full(N, value, dtype=dtype, device=device) for value in (3, 5))
    out = vg.empty_like(x)
    assert peak(lambda: function(x, y, out=out)) < MEGA
    assert peak(lambda: function(x, 2, out=out)) < MEGA

    def in_place():
        nonlocal x
        x += y
        x *= 1

    assert peak(in_place) < MEGA


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("name", ["sum", "max", "min", "any", "all", "prod"])
def test_reductions_take_no_memory(device, name, dtype):
    x = vg.ones((1000, 1000), dtype=dtype, device=device)
    for axis in (None, 0, 1):
        assert peak(lambda axis=axis: getattr(vg, name)(x, axis=axis)) < MEGA, axis


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_casts_take_the_result_alone(device, dtype):
    x = vg.full(N, 3.7, device=device)
    assert peak(lambda: vg.astype(x, dtype)) < N * np.dtype(dtype).itemsize + MEGA


# Calls of Python functions, NumPy's Python ones among them. A path that is twice as long fails.
CALLS = {
    "a + a": (lambda a, A, out: a + a, 3),
    "a + 2": (lambda a, A, out: a + 2, 3),
    "a < 0.5": (lambda a, A, out: a < 0.5, 3),
    "exp(a)": (lambda a, A, out: vg.exp(a), 4),
    "add(a, a)": (lambda a, A, out: vg.add(a, a), 4),
    "add(a, a, out=)": (lambda a, A, out: vg.add(a, a, out=out), 7),
    "zeros(16)": (lambda a, A, out: vg.zeros((16,), dtype=a.dtype, device=a.device), 14),
    "full_like(a, 3)": (lambda a, A, out: vg.full_like(a, 3), 9),
    "a[3]": (lambda a, A, out: a[3], 5),
    "a[2:5]": (lambda a, A, out: a[2:5], 5),
    "A[1, 2]": (lambda a, A, out: A[1, 2], 8),
    "sum(a)": (lambda a, A, out: vg.sum(a), 15),
    "max(a)": (lambda a, A, out: vg.max(a), 14),
    "clip(a, 0, 1)": (lambda a, A, out: vg.clip(a, 0, 1), 9),
    "round(a, 2)": (lambda a, A, out: vg.round(a, 2), 6),
    "a ** 0.5": (lambda a, A, out: a**0.5, 5),
    "allclose(a, a)": (lambda a, A, out: vg.allclose(a, a), 11),
    "unwrap(a)": (lambda a, A, out: vg.unwrap(a), 8),
    "sort(a)": (lambda a, A, out: vg.sort(a), 5),
    "interp(a, a, a)": (lambda a, A, out: vg.interp(a, a, a), 10),
    "roll(a, 3)": (lambda a, A, out: vg.roll(a, 3), 3),
    "insert(a, 3, 1)": (lambda a, A, out: vg.insert(a, 3, 1), 5),
    "partition(a, 3)": (lambda a, A, out: vg.partition(a, 3), 8),
    "average(a, weights=a)": (lambda a, A, out: vg.average(a, weights=a), 17),
    "norm(a)": (lambda a, A, out: vg.linalg.norm(a), 6),
    "vecmat(A[0], A)": (lambda a, A, out: vg.vecmat(A[0], A), 11),
    "einsum": (lambda a, A, out: vg.einsum("ij,kj->ik", A, A), 2),
    "meshgrid(a, a)": (lambda a, A, out: vg.meshgrid(a, a), 7),
    "array([1.0, 2.0])": (lambda a, A, out: vg.array([1.0, 2.0], device=a.device), 8),
    "full(9, 3.0)": (lambda a, A, out: vg.full(9, 3.0, device=a.device), 12),
    "logspace(0, 1, 9)": (lambda a, A, out: vg.logspace(0, 1, 9, device=a.device), 13),
    "unravel_index(7, (3, 4))": (lambda a, A, out: vg.unravel_index(7, (3, 4)), 5),
    "ravel_multi_index": (lambda a, A, out: vg.ravel_multi_index((1, 2), (3, 4)), 4),
}
INTEGERS = {
    "i ** 0.5": (lambda a, A, out: a**0.5, 8),
    "clip(i, 0, 1)": (lambda a, A, out: vg.clip(a, 0, 1), 8),
    "cov(I)": (lambda a, A, out: vg.cov(A), 13),
    "gradient(i)": (lambda a, A, out: vg.gradient(a), 7),
    "trapezoid(i)": (lambda a, A, out: vg.trapezoid(a), 7),
    "average(i, weights=i)": (lambda a, A, out: vg.average(a, weights=a), 10),
}
CALLS |= INTEGERS


@pytest.mark.parametrize("name", CALLS)
def test_small_calls_are_short(device, name):
    function, most = CALLS[name]
    dtype = np.int64 if name in INTEGERS else np.float32
    a = vg.asarray(np.arange(1, 17, dtype=dtype), device=device)
    operands = a, a.reshape(4, 4), vg.empty_like(a)
    function(*operands)
    calls = []

    def count(frame, event, argument):
        if event == "call":
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(count)
    try:
        function(*operands)
    finally:
        sys.setprofile(None)
    assert 1 < len(calls) <= most + 2, calls  # the function itself, and setprofile


# What the short ways must not change --------------------------------------------------------------


KEYS = [
    *(3, -1, slice(2, 5), slice(None, None, -2), ..., (1, 2), (slice(None), 1), (..., 0), (1, ...)),
    *([0, 2], (slice(None), [0, 2]), ([0, 1], [2, 3]), ([0, 1], slice(None), 1)),
    *((..., [1, 0], 1), (1, slice(None), [0, 0]), slice(5, 2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_are_the_same_observed_or_not(device, key):
    """Values, strides of copies, and what is written; beside NumPy where it takes the key."""
    x = np.arange(5 * 4 * 6, dtype=np.float32).reshape(5, 4, 6)
    array, other = helpers.put(device, x), helpers.put(device, x)
    plain = array[key]
    with vg.dispatch.observe(lambda call: None):
        observed = other[key]
    helpers.assert_same(plain, helpers.host(observed))
    helpers.assert_same(plain, np.asarray(x[key]))
    before = array._version
    array[key] = 7
    with vg.dispatch.observe(lambda call: None):
        other[key] = 7
    assert array._version != before
    helpers.assert_same(array, helpers.host(other))


# Bounds of clip, of which some take a short way, and divisors: a number or an operand of its own.
NUMBERS = [0, 1, -1, 3, 2.5, -0.0, float("nan"), True, 300, 1e300]
BOUNDS = [(low, high) for low in (None, 1, -2, 2.5, 0) for high in (None, 3, float("inf"), 300)]
SHORT = {
    **{f"clip {low} {high}": lambda x, y, b=(low, high): vg.clip(x, *b) for low, high in BOUNDS},
    **{f"divmod {other}": lambda x, y, other=other: vg.divmod(x, other) for other in NUMBERS},
    "divmod y": lambda x, y: divmod(x, y),
    **{f"flip {axis}": lambda x, y, a=axis: vg.flip(x, a) for axis in (None, 0, 1, -1, 2, (0, 1))},
    **{f"rot90 {k}": lambda x, y, k=k: vg.rot90(x, k) for k in (-1, 0, 2, 5)},
    "rot90 of other axes": lambda x, y: vg.rot90(x, 1, (1, 0)),
    **{name: lambda x, y, f=f: f(x) for name, f in (("rint", vg.rint), ("fabs", vg.fabs))},
}


def given(function, *operands):
    """Return the ndarrays a function gives, or the text and type of what it raises."""
    try:
        result = function(*operands)
    except Exception as error:
        return type(error), str(error)
    return [helpers.host(one) for one in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", SHORT)
def test_short_ways_are_the_same_observed_or_not(device, name, dtype):
    """Values, signs of zero, dtypes, and errors, at the ends of the dtypes' ranges too."""
    ends = [0, 1, 5, 7] + ([255] if dtype == "uint8" else [-1, -3, 100])
    ends += [-0.0, np.nan, np.inf, -np.inf, 2.5] if dtype[0] == "f" else [np.iinfo(dtype).min]
    x = np.array((ends * 8)[:24], dtype).reshape(4, 6)
    for one, other in ((x, x[::-1, ::-1].copy()), (x[:, 0], x[0, 0]), (x[1, 1], x[2, 1])):
        operands = [helpers.put(device, np.asarray(data)) for data in (one, other)]
        plain = given(SHORT[name], *operands)
        with vg.dispatch.observe(lambda call: None):
            observed = given(SHORT[name], *operands)
        assert type(plain) is type(observed)
        if isinstance(plain, tuple):
            assert plain == observed
            continue
        for first, second in zip(plain, observed, strict=True):
            assert first.dtype == second.dtype and first.shape == second.shape
            np.testing.assert_array_equal(first, second)
            assert np.array_equal(np.signbit(first[first == 0]), np.signbit(second[second == 0]))


def test_casts_of_floats_are_clamped_at_any_size(device):
    """The ways of few elements, of one piece and of several; all inside, or some out."""
    for n in (0, 5, 999, 5000, 200_000):
        for dtype in ("int8", "uint8", "int32", "uint64"):
            least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
            x = np.resize(np.array([0.0, 3.7, 100.2, -0.0]), n)
            helpers.assert_same(vg.astype(helpers.put(device, x), dtype), x.astype(dtype))
            if n:
                x[:4] = np.nan, np.inf, -np.inf, float(most) + 1
                found = helpers.host(vg.astype(helpers.put(device, x), dtype))
                assert found[:4].tolist() == [0, most, least, most]
                np.testing.assert_array_equal(found[4:], x[4:].astype(dtype))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_one_float_among_others_is_clamped(device, source, dtype):
    """Wherever it is: in NumPy's vectors of elements, behind them, between gaps."""
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    beyond = 2.0 ** most.bit_length()
    cases = [(np.nan, 0), (np.inf, most), (-np.inf, least), (-5.75, -5)]
    if source != "float16":
        cases += [(beyond, most), (1.5 * float(least), least), (float(least), least)]
    for n in (1, 3, 8, 17, 33, 100):
        for value, wanted in cases:
            for place in {0, n // 2, n - 1}:
                x = np.full(2 * n, 3.25, source)
                x[2 * place] = value
                expected = np.full(n, 3, dtype)
                expected[place] = wanted
                for array in (helpers.put(device, x)[::2], helpers.put(device, x[::2].copy())):
                    found = helpers.host(vg.astype(array, dtype))
                    np.testing.assert_array_equal(found, expected, f"{n} {value} {place}")


def test_masks_and_arrays_of_the_device_as_keys(device, rng):
    x = rng.standard_normal((7, 9)).astype(np.float32)
    array, rows = helpers.put(device, x), np.array([5, 0, -1, 5])
    mask = x > 0
    helpers.assert_same(array[helpers.put(device, mask)], x[mask])
    helpers.assert_same(array[helpers.put(device, rows)], x[rows])
    helpers.assert_same(array[:, helpers.put(device, rows)], x[:, rows])
    array[helpers.put(device, mask)] = -1.5
    x[mask] = -1.5
    array[helpers.put(device, rows), 2] = array[:4, 3]
    x[rows, 2] = x[:4, 3].copy()
    helpers.assert_same(array, x)
    array[1:, :] = array[:-1, :]  # overlapping
    helpers.assert_same(array[1:], x[:-1])
    with pytest.raises(OverflowError):
        vg.zeros(3, dtype="int8", device=device)[0] = 300
    with pytest.raises(ValueError, match="read-only"):
        vg.broadcast_to(array[0], (3, 9))[0] = 1


def test_rows_of_a_long_column_are_added_by_blocks(device):
    """One after another float32 would lose what 2^24 + 1 has; NumPy's sum of a column does."""
    x = np.full((1 << 16, 3), 0.1, np.float32)
    total = helpers.host(vg.sum(helpers.put(device, x), axis=0)).astype(np.float64)
    exact = x.astype(np.float64).sum(axis=0)
    assert np.all(np.abs(total - exact) <= 1e-6 * exact)
    assert len(x) > cpu_functions.BLOCK[4]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_norms_are_added_up_in_pieces(device, rng, dtype):
    for n in (2000, 2001, 8192, 8193, 20_001, 300_000):
        x = (rng.standard_normal(n) * 9).astype(dtype)
        array = helpers.put(device, x)
        exact = np.sqrt(np.sum(x.astype(np.float64) ** 2))
        for found in (array, array.reshape(-1, 1), helpers.put(device, x[::-1])[::-1]):
            length = vg.linalg.norm(found).item()
            assert abs(length - exact) <= (1e-14 if dtype == "float64" else 3e-7) * exact


# The bench ----------------------------------------------------------------------------------------


def test_every_case_can_be_run():
    names = [(case.name, dtype) for case in cpu.cases() for dtype in case.dtypes]
    assert len(set(names)) == len(names) > 1000


def test_the_calls_of_a_text_are_counted():
    texts = {"a + b": 1, "m.sort(a)": 1, "a": 1, "m.interp(x, m.sort(y[:5]), y[:5])": 4}
    texts |= {"m.where(x > 0, x, -1)": 2, "A @ A.T": 2, "m.zeros(a.shape, dtype=a.dtype)": 1}
    for text, calls in texts.items():
        assert Case("", text, text, text).calls == calls, text


def test_the_bench_tells_what_misses():
    fast = cpu.Measured("a", "x", "float32", 1_000_000, 1.2, 1.0, 1.3, False)
    slow = cpu.Measured("a", "y", "float32", 20_000, 1.4, 1.0, 1.3, False)
    near = cpu.Measured("b", "z", "int64", 16, 2.9e-6, 1e-6, 1.3, False)
    far = cpu.Measured("b", "view", "float32", 20_000, 3.1e-6, 1e-6, 1.3, True)
    told = cpu.Measured("b", "x", "bfloat16", 20_000, 9.0, 1.0, 1.3, False)
    assert [row.met for row in (fast, slow, near, far, told)] == [True, False, True, False, True]
    verdicts = cpu.judge([fast, slow, near, far, told])
    assert [verdict.met for verdict in verdicts] == [False, False]
    assert [verdict.measured for verdict in verdicts] == [50.0, 50.0]
    classes = {one["name"]: one for one in cpu.classes_of([fast, slow, near, far, told])}
    assert classes["a"]["large"]["missed"] == 1 and classes["b"]["small"]["count"] == 2
    assert classes["bfloat16"]["large"]["worst"] == 9.0
