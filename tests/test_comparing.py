"""isclose and its kin, pad, copy and array, options of printing, against NumPy."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, assert_same, put, refused

import pyvecgpu as vg

ROUNDS = 25


def draw(rng, dtype, shape):
    values = helpers.integers(rng, shape, dtype, 0, 3)
    if helpers.is_float(dtype) and values.size:
        for special in (np.nan, np.inf, -np.inf):
            values[rng.random(shape) < 0.1] = special
    return values


def wide(values):
    return values.astype(np.float64)


# ---- Equal and close -----------------------------------------------------------------------------


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_isclose_and_allclose(device, rng, dtype, equal_nan):
    for number in range(ROUNDS):
        shape = [(4, 5), (3,), (), (0, 2)][number % 4]
        other = DTYPES[rng.integers(len(DTYPES))] if number % 2 else dtype
        x = draw(rng, dtype, shape) if shape else draw(rng, dtype, (1,))[0:1].reshape(())
        y = x.astype(other) if number % 3 else draw(rng, other, (5,) if len(shape) == 2 else (1,))
        if shape == (0, 2):
            y = y[..., :2] if y.ndim == 2 else y[:1]
        options = {"rtol": [1e-5, 0.5, 0][rng.integers(3)], "equal_nan": equal_nan}
        layout = list(LAYOUTS)[rng.integers(len(LAYOUTS))] if len(shape) == 2 else "contiguous"
        a, b = LAYOUTS[layout](device, x), put(device, y)
        with np.errstate(all="ignore"):
            expected = np.isclose(wide(x), wide(y), **options)
        assert_same(vg.isclose(a, b, **options), expected)
        assert vg.allclose(a, b, **options) is bool(expected.all())


def test_what_is_close(device):
    x = put(device, np.array([1.0, 100.0, np.inf, np.nan]))
    near = put(device, np.array([1.000009, 100.002, np.inf, np.nan]))
    assert vg.isclose(x, near).tolist() == [True, False, True, False]
    assert vg.isclose(x, near, 0.0, 0.01, True).tolist() == [True, True, True, True]
    assert vg.isclose(x, 1).tolist() == [True, False, False, False]
    assert vg.isclose(np.inf, x).tolist() == [False, False, True, False]
    large = put(device, np.array([2**53, 2**53 + 2]))
    assert vg.isclose(large, 2**53, 0, 0).tolist() == [True, False]
    assert not vg.allclose(x[:1], put(device, np.array([np.inf])))
    assert type(vg.isclose(x.numpy(), 1.0, device=device)) is np.ndarray
    for call, error in (
        (lambda: vg.isclose(x, x[:3]), ValueError),
        (lambda: vg.allclose(x, "1"), TypeError),
        (lambda: vg.allclose(x, x, rtol="x"), TypeError),
    ):
        with refused(device, error, x):
            call()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_array_equal_and_array_equiv(device, rng, dtype):
    shapes = [(2, 3), (3,), (1, 3), (2, 1), (), (0,), (0, 3)]
    for first, second in itertools.product(shapes, shapes):
        for changed in (False, True):
            x, y = np.full(first, 1, dtype), np.full(second, 1, dtype)
            if changed and x.size:
                x.flat[rng.integers(x.size)] = 0
            a, b = put(device, x), put(device, y)
            assert vg.array_equal(a, b) is bool(np.array_equal(x, y))
            assert vg.array_equiv(a, b) is bool(np.array_equiv(x, y))
    if helpers.is_float(dtype):
        x = put(device, np.array([1, np.nan], dtype))
        assert not vg.array_equal(x, x) and vg.array_equal(x, x, equal_nan=True)
        assert not vg.array_equal(x, vg.flip(x), equal_nan=True)
        assert vg.array_equal(x[1], float("nan"), equal_nan=True)
    assert vg.array_equal(put(device, np.ones(1, dtype)), [1])
    with refused(device, TypeError):
        vg.array_equal(put(device, np.ones(1, dtype)), "1")


# ---- Padding -------------------------------------------------------------------------------------

MODES = ["constant", "edge", "linear_ramp", "reflect", "symmetric", "wrap"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pad(device, rng, dtype, mode):
    for number in range(ROUNDS):
        shape = tuple(int(n) for n in rng.integers(1, 5, number % 3 + 1))
        x = helpers.integers(rng, shape, dtype)
        layout = list(LAYOUTS)[rng.integers(len(LAYOUTS))]
        widths = rng.integers(0, 12 if number % 2 else 3, (x.ndim, 2)).tolist()
        width = [widths, widths[0], widths[0][0]][number % 3]
        options = {}
        if mode == "constant" and number % 4:
            options["constant_values"] = [1, (0, 1), [(1, 0)] * x.ndim][number % 3]
        if mode == "linear_ramp" and number % 4:
            options["end_values"] = [1, (0, 1), [(1, 4)] * x.ndim][number % 3]
        result = vg.pad(LAYOUTS[layout](device, x), width, mode, **options)
        if mode != "linear_ramp":
            assert_same(result, np.pad(x, width, mode, **options))
            continue
        ramp = np.pad(wide(x), width, mode, **options)
        assert result.dtype == dtype and result.shape == ramp.shape
        off = np.abs(wide(helpers.host(result)) - ramp)
        most = 1 if not helpers.is_float(dtype) else 16 * 8 * helpers.UNIT_ROUNDOFF[dtype]
        assert not (~(off <= most * x.ndim)).any()


def test_ramps_of_integers_are_numpys(device, rng):
    for _ in range(ROUNDS):
        x = rng.integers(-9, 10, (int(rng.integers(1, 6)),))
        width, ends = rng.integers(0, 9, 2).tolist(), rng.integers(-9, 10, 2).tolist()
        result = vg.pad(put(device, x), width, "linear_ramp", end_values=ends)
        assert_same(result, np.pad(x, width, "linear_ramp", end_values=ends))


def test_pads_at_the_edge(device):
    x = put(device, np.zeros((2, 0), np.float32))
    assert vg.pad(x, ((0, 0), (1, 2))).shape == (2, 3)
    assert vg.pad(x, ((1, 0), (0, 0)), "edge").shape == (3, 0)
    same = vg.pad(x, 0)
    assert same is not x and same.shape == x.shape
    assert vg.pad(put(device, np.array(3.0)), 2).shape == ()
    assert isinstance(vg.pad(np.ones(2), 1), np.ndarray)
    for call, error in (
        (lambda: vg.pad(x, 1, "edge"), ValueError),
        (lambda: vg.pad(x, -1), ValueError),
        (lambda: vg.pad(x, 1, "mirror"), ValueError),
        (lambda: vg.pad(x, ((1, 2), (3, 4), (5, 6))), ValueError),
        (lambda: vg.pad(x, 2**62), ValueError),
        (lambda: vg.pad(x, 1.5), TypeError),
        (lambda: vg.pad(x, x), TypeError),
        (lambda: vg.pad(x, "1"), TypeError),
        (lambda: vg.pad(vg.astype(x, "int8"), 1, constant_values=300), OverflowError),
    ):
        with refused(device, error, x):
            call()


# ---- Copies and printing -------------------------------------------------------------------------


def test_copy(device, rng):
    for dtype, layout in itertools.product(DTYPES, LAYOUTS):
        x = helpers.integers(rng, (3, 4), dtype)
        a = LAYOUTS[layout](device, x)
        b = vg.copy(a)
        assert_same(b, x)
        a.fill(1)
        assert_same(b, x)
        assert b.strides == x.strides
    host = vg.copy(x)
    assert isinstance(host, np.ndarray) and host is not x and not np.shares_memory(host, x)
    with pytest.raises(TypeError, match="copy takes arrays"):
        vg.copy("1")


def test_array(device):
    values = [[1, 2], [3, 4]]
    assert vg.array(values, "float64", device=device, ndmin=4).shape == (1, 1, 2, 2)
    x = vg.array(values, device=device, ndmin=1)
    assert vg.array(x) is not x and vg.array(x, copy=False) is x
    assert vg.array(3, device=device, ndmin=2).tolist() == [[3]]
    with refused(device, ValueError, x):
        vg.array(x, ndmin=65)
    with refused(device, TypeError, x):
        vg.array(x, ndmin=1.5)


def test_options_of_printing(device):
    x = put(device, np.arange(100) / 7)
    before = vg.get_printoptions()
    with vg.printoptions(precision=2, threshold=5):
        assert str(x) == str(x.numpy()) == "[ 0.    0.14  0.29 ... 13.86 14.   14.14]"
    assert vg.get_printoptions() == before == np.get_printoptions()
    try:
        vg.set_printoptions(3, edgeitems=1, threshold=5)
        assert str(x) == str(x.numpy()) == "[ 0.    ... 14.143]"
    finally:
        np.set_printoptions(**before)
