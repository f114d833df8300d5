"""Elementwise functions that are made of others, and second names: against NumPy, everywhere.

Arrays of every dtype, with NaN, infinity and the ends of integers among them, in several layouts.
NumPy computes in float64 what is float here in the default float or a half.
"""

import itertools
import math

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, assert_same, put, refused

import pyvecgpu as vg

ALIASES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "bitwise_not": "bitwise_invert",
    "degrees": "rad2deg",
    "fix": "trunc",
    "invert": "bitwise_invert",
    "radians": "deg2rad",
    "true_divide": "divide",
}
ROUNDS = 12


def draw(rng, dtype, shape=(4, 7)):
    """Values of a dtype, floats with NaN and infinities among them."""
    values = helpers.integers(rng, shape, dtype)
    if helpers.is_float(dtype):
        values = (values.astype(np.float64) / 3).astype(dtype)
        for special in (np.nan, np.inf, -np.inf, 0.0):
            values[rng.random(shape) < 0.1] = special
    return values


def float_of(dtype):
    return dtype if helpers.is_float(dtype) else np.dtype(vg.get_default_dtype().name)


def wide(values):
    return values.astype(np.float64)


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_are_the_same_function(alias):
    assert getattr(vg, alias) is getattr(vg, ALIASES[alias])
    assert callable(getattr(np, alias)), "a name of NumPy's"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_clip(device, rng, dtype, layout):
    x, low, high = (draw(rng, dtype) for _ in range(3))
    low[rng.random(low.shape) < 0.3] = high[rng.random(low.shape) < 0.3][0]
    a = LAYOUTS[layout](device, x)
    wider = helpers.widened
    for lower, upper in itertools.product((None, low, low[:1], low[0, 0]), (None, high, high[0])):
        bounds = [None if one is None else put(device, one) for one in (lower, upper)]
        given = [None if one is None else wider(one) for one in (lower, upper)]
        expected = wider(x)
        if lower is not None:
            expected = np.maximum(expected, given[0])
        if upper is not None:
            expected = np.minimum(expected, given[1])
        result = vg.clip(a, *bounds)
        assert result is not a and result.dtype == dtype
        assert np.array_equal(
            wider(helpers.host(result)), expected, equal_nan=expected.dtype.kind == "f"
        )
        assert helpers.bits(a.clip(*bounds)) == helpers.bits(result)


def test_clip_by_scalars(device, rng):
    for dtype in DTYPES:
        if dtype.kind == "b":
            continue
        x = draw(rng, dtype)
        for low, high in ((1, 3), (2, 1), (None, 2), (2, None)):
            expected = np.clip(helpers.widened(x), low, high).astype(dtype)
            assert_same(vg.clip(put(device, x), low, high), expected)
    x = put(device, np.array([1, 200], np.uint8))
    with refused(device, OverflowError, x):
        vg.clip(x, -1, 5)
    assert vg.clip(x, 0.5, 2).dtype == vg.get_default_dtype()
    out = vg.zeros(2, "int64", device=device)
    assert vg.clip(x, 2, 100, out) is out and out.tolist() == [2, 100]
    assert vg.clip(1, 2, 3, device=device).item() == 2
    with refused(device, ValueError, x):
        vg.clip(x, put(device, np.zeros(3, np.uint8)))


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_of_two_without_nan(device, rng, name):
    ours, numpys = getattr(vg, name), getattr(np, name)
    for a, b in itertools.product(DTYPES, DTYPES):
        x, y = draw(rng, a), draw(rng, b, (7,))
        result = ours(put(device, x), put(device, y))
        expected = numpys(helpers.widened(x), helpers.widened(y))
        assert result.dtype == helpers.result_type(a, b)
        found = helpers.host(result)
        same = wide(found) == wide(expected)
        assert (same | (np.isnan(wide(found)) & np.isnan(wide(expected)))).all()
    for scalar in (2, math.nan, 1.5, math.inf):
        x = draw(rng, np.dtype(np.float32))
        assert np.array_equal(
            ours(put(device, x), scalar).numpy(), numpys(x, scalar), equal_nan=True
        )
        assert np.array_equal(
            ours(scalar, put(device, x)).numpy(), numpys(x, scalar), equal_nan=True
        )
    ints = put(device, np.array([1, 2, 3], np.int64))
    assert ours(ints, math.nan).tolist() == [1, 2, 3]
    assert ours(ints, 2).dtype == vg.int64


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_heaviside(device, rng, dtype):
    x, y = draw(rng, dtype), draw(rng, dtype, (7,))
    result = vg.heaviside(put(device, x), put(device, y))
    expected = np.heaviside(wide(x), wide(y))
    assert result.dtype == float_of(dtype)
    assert np.array_equal(wide(helpers.host(result)), expected, equal_nan=True)
    half = vg.heaviside(put(device, x), 0.5)
    assert np.array_equal(wide(helpers.host(half)), np.heaviside(wide(x), 0.5), equal_nan=True)


@pytest.mark.parametrize("name", ["deg2rad", "rad2deg", "rint", "fabs"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_as_floats(device, rng, dtype, name):
    x = draw(rng, dtype)
    for layout in LAYOUTS:
        result = getattr(vg, name)(LAYOUTS[layout](device, x))
        assert result.dtype == float_of(dtype)
        found, expected = helpers.host(result), getattr(np, name)(wide(x))
        ulps = helpers.ulp_distance(found, helpers.rounded(expected, found.dtype))
        both_nan = np.isnan(wide(found)) & np.isnan(expected)
        assert ((ulps <= (2 if name.endswith(("rad", "deg")) else 0)) | both_nan).all()


def test_rounding_as_a_method(device):
    x = put(device, np.array([-1.5, 0.5, 1.5, 2.4]))
    assert x.round().tolist() == [-2, 0, 2, 2] and vg.fix(x).tolist() == [-1, 0, 1, 2]
    with refused(device, TypeError, x):
        x.round("1")


def test_numpys_ufuncs_come_here(device):
    x = put(device, np.array([-180.0, 0.0, 90.0]))
    for name in ("deg2rad", "degrees", "rint", "fabs"):
        assert isinstance(getattr(np, name)(x), vg.Array)
    assert np.fmax(x, x).tolist() == [-180, 0, 90]
    assert np.heaviside(x, 0.5).tolist() == [0, 0.5, 1]
    assert np.clip(x, -1, 1).tolist() == [-1, 0, 1]


def test_numpy_operands_give_numpy(device):
    x = np.array([1.0, math.nan, -2.0])
    for result in (
        vg.clip(x, 0, 1, device=device),
        vg.fmax(x, x, device=device),
        vg.deg2rad(x, device=device),
        vg.heaviside(x, x, device=device),
    ):
        assert isinstance(result, np.ndarray) and result.dtype == np.float64
    out = np.zeros(3)
    assert vg.fmin(x, 0.0, out, device=device) is out and out.tolist() == [0, 0, -2]


def test_fill_and_tobytes(device):
    for dtype in DTYPES:
        x = put(device, np.zeros((2, 3), dtype))
        x[:, ::-2].fill(1)
        assert_same(x, np.array([[1, 0, 1]] * 2, dtype))
        assert x.T.tobytes() == helpers.host(x).T.tobytes()
    x = put(device, np.zeros(3, np.uint8))
    with refused(device, OverflowError, x):
        x.fill(300)
    for value in ([1], None, "x", put(device, np.zeros(1))):
        with refused(device, TypeError, x):
            x.fill(value)
    x.fill(put(device, np.array(7)))
    assert x.tolist() == [7, 7, 7]
    with refused(device, ValueError, x):
        vg.broadcast_to(x, (2, 3)).fill(1)
