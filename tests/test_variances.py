"""Variances in one reading: digits that are kept, whatever the order and the offset of elements."""

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOATS = [dtype for dtype in helpers.DTYPES if helpers.is_float(dtype)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_shapes_and_axes(device, rng, dtype):
    unit = helpers.UNIT_ROUNDOFF[dtype]
    least = 2.0**-24 if dtype.itemsize == 2 else 0.0  # of a subnormal float16
    shapes = ((7,), (1, 4090), (3, 70_000), (6000, 2), (31, 33), (5, 20, 7), (6, 7, 8))
    for shape in (*shapes, (1, 66_000), (2, 4, 65_537), (15, 65_536), (16, 65_536)):
        x = (rng.standard_normal(shape) + 3).astype(dtype)
        wide = helpers.widened(x).astype(np.float64)
        for axis in (None, *range(len(shape)), (0, -1) if len(shape) == 3 else 0):
            for array, values in ((put(device, x), wide), (put(device, x)[::-1], wide[::-1])):
                expected = np.var(values, axis=axis, ddof=1)
                message, spread = f"{shape} {axis}", np.sqrt(expected)
                # A card sums in float64; NumPy rounds distances from a mean that is rounded.
                lost = 128 * unit * spread + least
                if device == "cpu":
                    lost = 99 * unit * np.abs(values).max()
                result = vg.var(array, axis, ddof=1)
                helpers.assert_within(result, expected, (spread + lost) * lost, message)
                expected = np.std(values, axis=axis)
                lost = lost if device == "cpu" else 128 * unit * expected + least
                helpers.assert_within(vg.std(array, axis), expected, lost, message)


@pytest.mark.devices("sim", "cuda")
def test_equal_elements_have_none(device):
    for value in (0.1, 1e30, -3.0):
        x = np.full((3, 5000), value, np.float32)
        for axis in (0, 1, None):
            assert not vg.std(put(device, x), axis).numpy().any()


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
def test_halves_far_from_0(device, rng, dtype):
    """What the mean takes away is exact, along rows and columns, and merged from chunks."""
    unit = helpers.UNIT_ROUNDOFF[dtype]
    for middle, step in ((1000, 1000 * unit), (3e-5, 0.0), (-200, 0.0)):
        for shape in ((3, 70_000), (70_000, 3), (900, 70)):
            x = (middle + step * 3 * (rng.random(shape) < 1e-3)).astype(dtype)
            wide = helpers.widened(x).astype(np.longdouble)
            for axis in (0, 1, None):
                expected = np.var(wide, axis)
                near = 1.01 * unit * expected + (2.0**-25 if dtype == np.float16 else 0)
                helpers.assert_within(vg.var(put(device, x), axis), expected, near, f"{shape}")


@pytest.mark.devices("sim", "cuda")
def test_one_half_beside_millions(device):
    """The sums' products need more digits than float64 has."""
    for n in (8_000_003, 9_999_999):
        x = np.full(n, 1000, np.float16)
        x[n // 3] = 1000.5
        expected = 0.5 * np.sqrt(n - 1.0) / n
        helpers.assert_within(vg.std(put(device, x)), expected, 2.0**-11 * expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_many_columns_that_are_short(device, rng, dtype):
    """Of several items, every other one backwards, into every other element."""
    x = rng.standard_normal((2, 5, 2 * 65_600)).astype(dtype)
    wide = helpers.widened(x).astype(np.float64)[:, :, ::-2]
    out = put(device, np.full((2, 2 * 65_600), 7.0))
    vg.var(put(device, x)[:, :, ::-2], 1, out=out[:, ::2])
    expected = np.var(wide, 1)
    unit = 128 * helpers.UNIT_ROUNDOFF[np.dtype(dtype)]
    helpers.assert_within(out[:, ::2], expected, unit * (1 + expected))
    assert np.all(out[:, 1::2].numpy() == 7)


def test_one_that_is_far_out(device, rng):
    """Wherever it stands: also as the first, from which distances are taken."""
    x = rng.standard_normal(3000)
    for place in (0, 1, 1500, -1):
        for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-12)):
            y = x.astype(dtype)
            y[place] = 1e6
            expected = np.var(y.astype(np.longdouble))
            helpers.assert_within(vg.var(put(device, y)), expected, tolerance * expected)


def test_beyond_the_range(device):
    x = np.array([[1e300, -1e300, 1e300, 0.0], [np.inf, 1.0, 2.0, 3.0], [1.0, 2.0, np.nan, 3.0]])
    for array, axis in ((put(device, x), 1), (put(device, np.ascontiguousarray(x.T)), 0)):
        result = vg.var(array, axis).numpy()
        assert result[0] == np.inf and np.isnan(result[1:]).all()
    small = np.array([1e25, -1e25], np.float32)
    assert vg.var(put(device, small)).item() == np.inf


def test_out_and_keepdims(device, rng):
    x = rng.standard_normal((4, 30)).astype(np.float32)
    out = put(device, np.zeros((30, 1, 4)))
    vg.var(put(device, x), 1, keepdims=True, out=out[3].T)
    helpers.assert_within(out[3, 0], np.var(x.astype(np.float64), 1), 1e-6)
    array = put(device, x)
    vg.std(array, 1, out=array[:, 2])
    helpers.assert_within(array[:, 2], np.std(x.astype(np.float64), 1), 1e-6)
    complexes = (x + 1j * x[::-1]).astype(np.complex64)
    helpers.assert_within(vg.var(put(device, complexes), 0), np.var(complexes, 0), 1e-5)


@pytest.mark.devices("sim", "cuda")
def test_one_launch(device):
    x = vg.ones((40, 1000), device=device)
    for axis in (0, 1):
        before = vg.counters(device)["launches"]
        vg.std(x, axis)
        assert vg.counters(device)["launches"] - before == 1
