"""Medians, percentiles and quantiles beside NumPy: methods, axes, dtypes, NaN and infinity."""

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, put
from test_sorting import drawn

import pyvecgpu as vg
from pyvecgpu.functions.quantiles import METHODS

SHAPES = [(1,), (2,), (7,), (100,), (6, 5), (3, 4, 5), (2, 4200)]
FEW_SHAPES = [(1,), (8,), (5, 6)]
QS = [0.3, 0, 1, [0, 0.25, 0.5, 1], [[0.1, 0.9]], []]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def close(result, expected, dtype=None, message=""):
    """Equal but for rounding; computed by the reference in float64."""
    result, expected = helpers.host(result), np.asarray(expected)
    assert result.shape == expected.shape, message
    if dtype is not None:
        assert result.dtype == dtype, message
    unit = 4 * helpers.UNIT_ROUNDOFF.get(result.dtype, 0) or 1e-12
    wide = helpers.widened(result).astype(np.float64)
    np.testing.assert_allclose(wide, expected.astype(np.float64), unit, unit * 100, err_msg=message)


def axes_of(x):
    return [None, 0, -1] + [(0, 1), (1, 0)] * (x.ndim > 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_methods(device, rng, method, dtype):
    for shape in FEW_SHAPES:
        x = (rng.standard_normal(shape) * 40).astype(dtype)
        array, wide = put(device, x), x.astype("f8") if x.dtype.kind == "f" else x
        for axis in axes_of(x):
            for q in QS:
                expected = np.quantile(wide, q, axis, method=method)
                close(vg.quantile(array, q, axis, method=method), expected, None, f"{q} {axis}")
        kept = np.quantile(wide, 0.4, -1, method=method, keepdims=True)
        close(vg.quantile(array, 0.4, -1, method=method, keepdims=True), kept)


@pytest.mark.parametrize("method", METHODS)
def test_without_nan(device, rng, method):
    for shape in FEW_SHAPES:
        x = rng.standard_normal(shape)
        x[rng.random(shape) < 0.3] = np.nan
        array = put(device, x)
        for axis in axes_of(x):
            for q in (0.3, 0, 1, [0, 0.25, 0.5, 1]):
                expected = np.nanquantile(x, q, axis, method=method)
                close(vg.nanquantile(array, q, axis, method=method), expected, "f8", f"{q} {axis}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_and_layouts(device, rng, dtype):
    x = drawn(rng, (5, 4, 6), dtype)
    x = np.where(np.isfinite(helpers.widened(x)), helpers.widened(x), 1).astype(dtype)
    wide = x.astype("f8")
    result = x.dtype if helpers.is_float(dtype) else vg.get_default_dtype()
    for layout, make in LAYOUTS.items():
        array = make(device, x)
        for axis in (0, 1, -1, None):
            close(vg.median(array, axis), np.median(wide, axis), result, layout)
            close(vg.percentile(array, 30, axis), np.percentile(wide, 30, axis), result, layout)
            picked = np.percentile(wide, 30, axis, method="lower")
            close(vg.percentile(array, 30, axis, method="lower"), picked, dtype, layout)


def test_medians(device, rng):
    for shape in SHAPES:
        x = rng.standard_normal(shape)
        y = np.where(rng.random(shape) < 0.2, np.nan, x)
        for axis in axes_of(x):
            for keep in (False, True):
                close(
                    vg.median(put(device, x), axis, None, False, keep),
                    np.median(x, axis, keepdims=keep),
                )
                close(vg.median(put(device, y), axis), np.median(y, axis))
                close(
                    vg.nanmedian(put(device, y), axis, keepdims=keep),
                    np.nanmedian(y, axis, keepdims=keep),
                )


def test_nan_and_infinity(device):
    inf = np.inf
    x = np.array([[1, np.nan, 2], [inf, inf, inf], [-inf, -inf, 3], [np.nan] * 3])
    array = put(device, x)
    np.testing.assert_array_equal(vg.median(array, 1).numpy(), [np.nan, inf, -inf, np.nan])
    np.testing.assert_array_equal(vg.nanmedian(array, 1).numpy(), [1.5, inf, -inf, np.nan])
    np.testing.assert_array_equal(vg.quantile(array, 0.25, 1).numpy(), [np.nan, inf, -inf, np.nan])
    np.testing.assert_array_equal(vg.nanpercentile(array, 100, 1).numpy(), [2, inf, 3, np.nan])


def test_of_nothing(device):
    for shape, axis in [((0,), None), ((3, 0), 1), ((0, 3), 0)]:
        x = put(device, np.zeros(shape, np.float32))
        assert np.isnan(vg.median(x, axis).numpy()).all()
        assert np.isnan(vg.quantile(x, [0.1, 0.2], axis).numpy()).all()
    assert vg.median(put(device, np.zeros((3, 0))), 0).shape == (0,)


def test_out_and_numpy(device, rng):
    x = rng.standard_normal((6, 7))
    array, out = put(device, x), vg.zeros((7,), "float64", device=device)
    assert vg.median(array, 0, out) is out
    close(out, np.median(x, 0))
    assert vg.quantile(array, 0.3, 0, out) is out
    close(out, np.quantile(x, 0.3, 0))
    assert isinstance(vg.median(x, 1, device=device), np.ndarray)
    share = vg.asarray([0.1, 0.2], "float64", device=device)
    close(vg.quantile(array, share), np.quantile(x, [0.1, 0.2]))


def first_extreme(row, name):
    """The index of the first extreme element that is not NaN; NumPy takes NaN beside inf for it."""
    sign = 1 if name == "nanargmin" else -1
    return min((at for at in range(len(row)) if row[at] == row[at]), key=lambda at: sign * row[at])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_where_the_extremes_without_nan_are(device, rng, dtype):
    for shape in [(1,), (40,), (5, 6), (2, 3, 4)]:
        x = drawn(rng, shape, dtype)
        if x.dtype.kind == "f":
            x[..., 0] = 1  # NumPy raises where all are NaN
        for axis in (None, 0, -1):
            y = np.moveaxis(x, 0, -1) if axis == 0 else x
            y = np.ascontiguousarray(y)
            axis = axis if axis is None else -1
            for name in ("nanargmax", "nanargmin"):
                some = y.copy()
                some[np.isnan(some).all(-1)] = 0
                expected = np.apply_along_axis(first_extreme, -1, some, name)
                expected = first_extreme(some.ravel(), name) if axis is None else expected
                assert np.array_equal(
                    helpers.host(getattr(vg, name)(put(device, some), axis)), expected
                )


def test_extremes_beside_nan(device):
    x = put(device, np.array([np.nan, -np.inf, -np.inf]))
    assert vg.nanargmax(x).item() == 1 and vg.nanargmin(x).item() == 1
    assert vg.nanargmax(put(device, np.array([np.nan, np.nan]))).item() == 0


def test_what_is_refused(device):
    x = put(device, np.arange(6.0).reshape(2, 3))
    with helpers.refused(device, ValueError, x, match="quantile: q is from 0 to 1"):
        vg.quantile(x, 1.5)
    with helpers.refused(device, ValueError, x, match="percentile: q is from 0 to 100"):
        vg.percentile(x, [50, np.nan])
    with helpers.refused(device, ValueError, x, match="method"):
        vg.quantile(x, 0.5, method="best")
    with helpers.refused(device, TypeError, x, match="q is a number"):
        vg.quantile(x, "half")
    with helpers.refused(device, np.exceptions.AxisError, x, match="axis 2"):
        vg.median(x, 2)
    with pytest.raises(TypeError, match="median takes arrays"):
        vg.median("12", device=device)
