"""Values at the edges: NaN, zeros of both signs, overflow, subnormals, the ends of integer dtypes.

Every device gives the same; the CPU alone warns, as NumPy does.
"""

import helpers
import numpy as np
import pytest
from helpers import FLOATS, INTEGERS, assert_same, put

import pyvecgpu as vg


@pytest.mark.parametrize("n", [3, 40, 1000, 5000])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_propagates(device, rng, dtype, n):
    x = rng.standard_normal(n).astype(dtype)
    x[n // 2] = np.nan
    y = np.zeros(n, dtype)
    a, b = put(device, x), put(device, y)
    results = [vg.maximum(a, b), vg.maximum(b, a), vg.minimum(a, b), vg.minimum(b, a), vg.relu(a)]
    results += [vg.maximum(a, 0.0), vg.minimum(0.0, a), a + b, a * b, vg.tanh(a), vg.sigmoid(a)]
    for result in results:
        assert_same(result != result, np.isnan(x))
    assert np.isnan(vg.max(a).item()) and np.isnan(vg.min(a).item())
    assert vg.argmax(a).item() == n // 2
    x[n // 2 + 1 :] = np.nan
    assert vg.argmax(put(device, x)).item() == n // 2, "the first NaN"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_comparisons_with_nan_are_false(device, dtype):
    x = put(device, np.array([np.nan, 1.0, np.nan], dtype))
    y = put(device, np.array([1.0, np.nan, np.nan], dtype))
    for name in ("equal", "less", "less_equal", "greater", "greater_equal"):
        assert getattr(vg, name)(x, y).tolist() == [False] * 3
        assert getattr(vg, name)(x, 1.0).tolist()[::2] == [False] * 2
        assert getattr(vg, name)(float("nan"), y).tolist() == [False] * 3
    assert (x != y).tolist() == [True] * 3


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_zeros_of_both_signs(device, dtype):
    plus, minus = np.array([0.0], dtype), np.array([-0.0], dtype)
    p, m = put(device, plus), put(device, minus)
    assert_same(vg.maximum(m, p), plus)
    assert_same(vg.maximum(p, m), plus)
    assert_same(vg.maximum(m, m), minus)
    assert_same(vg.minimum(m, p), minus)
    assert_same(vg.minimum(p, m), minus)
    assert_same(vg.minimum(p, p), plus)
    assert_same(vg.maximum(m, 0.0), plus)
    assert_same(vg.maximum(m, -0.0), minus)
    assert_same(vg.minimum(-0.0, p), minus)
    assert_same(-p, minus)
    assert_same(vg.abs(m), plus)
    assert_same(vg.relu(m), plus)
    assert_same(vg.sqrt(m), minus)
    assert_same(vg.tanh(m), minus)
    assert_same(m + m, minus)
    assert_same(m * 1.0, minus)
    assert_same(p / -1.0, minus)
    assert (p == m).item() and not (m < p).item()
    assert_same(
        vg.astype(m, np.float32 if dtype == np.float64 else np.float64).astype(dtype), minus
    )


def test_exp_at_the_edges_of_float32(device):
    x = np.array([89, 88.7, -87.5, -103, -103.9, -104.1, -1000, 1000, 0, -0.0], np.float32)
    result = vg.exp(put(device, x)).numpy()
    assert result[0] == np.inf and result[7] == np.inf
    assert np.isfinite(result[1])
    assert result[3] == np.float32(1e-45), "the smallest subnormal must not become 0"
    assert result[6] == 0 and result[8] == result[9] == 1


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_subnormals_are_kept(device, dtype):
    smallest = helpers.finfo(dtype).smallest_subnormal
    x = np.array([smallest, -smallest, helpers.finfo(dtype).tiny], dtype)
    a = put(device, x)
    assert_same(a + a, x + x)
    assert_same(a * 0.5, x * dtype.type(0.5))
    assert_same(a / 2.0, x / dtype.type(2))
    assert_same(vg.sqrt(vg.abs(a)), np.sqrt(np.abs(x)))
    assert_same(vg.maximum(a, 0.0), np.maximum(x, 0))
    assert_same(a > 0, x > 0)
    assert vg.sum(put(device, np.full(1000, smallest, dtype))).item() == 1000 * float(smallest)
    assert_same(a.reshape(1, 3) @ put(device, np.eye(3).astype(dtype)), x.reshape(1, 3))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sigmoid_and_tanh_far_out(device, dtype):
    x = np.array([-np.inf, -1e4, -800, -90, 90, 1e4, np.inf], dtype)
    s = vg.sigmoid(put(device, x)).numpy()
    assert s[0] == s[1] == 0 and (s[4:] == 1).all()
    assert (s[3] > 0 or dtype == np.float16) and not np.isnan(s).any()
    assert vg.tanh(put(device, x)).tolist() == [-1, -1, -1, -1, 1, 1, 1]


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d.kind == "i"], ids=str)
def test_smallest_integers_wrap(device, dtype):
    info = np.iinfo(dtype)
    a = put(device, np.array([info.min, info.min + 1, info.max, 0], dtype))
    assert (-a).tolist() == [info.min, info.max, -info.max, 0]
    assert vg.abs(a).tolist() == [info.min, info.max, info.max, 0]
    assert (a + 1).tolist() == [info.min + 1, info.min + 2, info.min, 1]
    assert (a - 1).tolist() == [info.max, info.min, info.max - 1, -1]
    assert (a * 2).tolist() == [0, 2, -2, 0]
    assert (a * a).tolist() == [0, 1, 1, 0]
    assert vg.relu(a).tolist() == [0, 0, info.max, 0]


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d.kind == "u"], ids=str)
def test_unsigned_integers_wrap(device, dtype):
    top = np.iinfo(dtype).max
    a = put(device, np.array([0, 1, top], dtype))
    assert (-a).tolist() == [0, top, 1]
    assert (a - 1).tolist() == [top, 0, top - 1]
    assert (1 - a).tolist() == [1, 0, 2]
    assert (a + top).tolist() == [top, 0, top - 1]
    assert (a * a).tolist() == [0, 1, 1]
    assert vg.abs(a).tolist() == [0, 1, top]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_of_integers_is_a_float(device, dtype):
    a = put(device, np.array([0, 1, 7], dtype))
    result = a / put(device, np.array([0, 0, 2], dtype))
    assert_same(result, np.array([np.nan, np.inf, 3.5], np.float32))
    assert_same(a / 2, np.array([0, 0.5, 3.5], np.float32))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_floats_to_integers_are_clamped(device, dtype):
    """One rule on every device: toward zero, clamped to the range, NaN gives 0."""
    info = np.iinfo(dtype)
    for source in FLOATS:
        values = [np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -0.9, 0.5, -0.0]
        expected = [0, info.max, info.min, info.max, info.min, 2, 0, 0, 0]
        assert put(device, np.array(values, source)).astype(dtype).tolist() == expected
        target = vg.zeros(len(values), dtype=dtype, device=device)
        target[...] = put(device, np.array(values, source))
        assert target.tolist() == expected


def test_any_number_but_zero_is_true(device):
    values = np.array([0.0, -0.0, 0.3, np.nan, np.inf, 5e-324])
    assert put(device, values).astype(bool).tolist() == [False, False, True, True, True, True]
    assert put(device, np.array([0, 256, -1], np.int32)).astype(bool).tolist() == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_narrow_integers_are_summed_in_64_bits(device, dtype):
    top = np.iinfo(dtype).max
    x = np.full(5, top, dtype)
    expected = 5 * top
    total = vg.sum(put(device, x))
    assert total.dtype == (np.uint64 if dtype.kind == "u" else np.int64)
    assert total.item() % 2**64 == expected % 2**64


@pytest.mark.devices("cpu")
def test_the_cpu_warns(device):
    x = put(device, np.array([1.0, -1.0, 1e30], np.float32))
    with np.errstate(all="warn"):
        for call in (lambda: x / 0.0, lambda: vg.log(x * 0.0), lambda: vg.sqrt(x), lambda: x * x):
            with pytest.warns(RuntimeWarning):
                call()


def test_repeated_runs_give_the_same_bits(device, rng):
    x, y = (rng.standard_normal((130, 120)).astype(np.float32) for _ in range(2))
    a, b = put(device, x), put(device, y)
    functions = [
        vg.exp,
        vg.tanh,
        vg.sigmoid,
        vg.sum,
        vg.mean,
        lambda v: vg.sum(v, axis=0),
        lambda v: v @ b.T,
    ]
    first = [helpers.bits(f(a)) for f in functions]
    for _ in range(5):
        assert [helpers.bits(f(a)) for f in functions] == first
