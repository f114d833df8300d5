"""Variance, averages, covariances; the same without NaN; sums of exponentials: against NumPy.

The reference is NumPy's function in float64. Results are allowed some roundings of their dtype for
what is subtracted and summed: `eps * scale`, scale being the largest number in between.
"""

import math

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, host, put, refused

import pyvecgpu as vg

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SHAPES = [(5,), (3, 4), (2, 3, 4), (1, 6), (33,), (4, 1, 5)]
ROUNDS = 20


def float_of(dtype):
    return dtype if helpers.is_float(dtype) else np.dtype(vg.get_default_dtype().name)


def wide(values):
    return helpers.host(values).astype(np.float64)


def draw(rng, dtype, shape, nans=0.0):
    values = helpers.integers(rng, shape, dtype)
    if helpers.is_float(dtype):
        values = (values.astype(np.float64) / 4 + 0.25).astype(dtype)
        values[rng.random(shape) < nans] = np.nan
    return values


def draw_axis(rng, ndim):
    way = rng.integers(4)
    if way == 0:
        return None
    if way == 1:
        return tuple(int(i) for i in rng.permutation(ndim)[: rng.integers(0, ndim + 1)])
    return int(rng.integers(-ndim, ndim))


def near(result, expected, dtype, scale=64.0, message=""):
    """The result within a few units of its dtype at that scale, with its shape and dtype."""
    assert isinstance(result, vg.Array) and result.dtype == dtype, f"{result.dtype} {message}"
    expected = np.asarray(expected, np.float64)
    assert result.shape == expected.shape, message
    size = np.maximum(np.abs(expected), scale)
    tolerance = 8 * helpers.UNIT_ROUNDOFF[dtype] * np.where(np.isfinite(size), size, 0)
    helpers.assert_within(wide(result), expected, tolerance, message)


def cases(rng, device, dtype, nans=0.0):
    for number in range(ROUNDS):
        shape = SHAPES[rng.integers(len(SHAPES))]
        x = draw(rng, dtype, shape, nans)
        layout = list(LAYOUTS)[rng.integers(len(LAYOUTS))]
        options = {"axis": draw_axis(rng, x.ndim), "keepdims": bool(number % 2)}
        yield x, LAYOUTS[layout](device, x), options


# ---- Spread --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_var_and_std(device, rng, dtype, name):
    for x, a, options in cases(rng, device, dtype):
        for ddof in (0, 1, 1.5):
            expected = getattr(np, name)(x.astype(np.float64), ddof=ddof, **options)
            result = getattr(vg, name)(a, ddof=ddof, **options)
            near(result, expected, float_of(dtype), 1.0, f"{x.shape} {options} {ddof}")
            again = getattr(a, name)(correction=ddof, **options)
            assert helpers.bits(again) == helpers.bits(result)


def test_var_of_float64_as_numpys(device, rng):
    for offset in (0.0, 1e6, -1e9):
        x = rng.standard_normal((50, 400)) + offset
        for axis in (None, 0, 1):
            expected = np.var(x.astype(np.longdouble), axis=axis)
            helpers.assert_within(vg.var(put(device, x), axis), expected, 1e-12 * expected)


def test_var_where_the_mean_is_large(device, rng):
    """Distances from the mean, and not a difference of squares: their digits are kept."""
    x = (1000.0 + rng.standard_normal(3000)).astype(np.float32)
    expected = np.var(x.astype(np.float64))
    helpers.assert_within(vg.var(put(device, x)), expected, 1e-5 * expected)
    whole = 2**40 + rng.integers(-5, 6, 1000)
    expected = np.var(whole - 2**40)
    helpers.assert_within(vg.var(put(device, whole)), expected, 1e-6 * expected)
    many = np.full(5000, 300, np.float16)
    many[::2] = 302
    assert vg.var(put(device, many)).item() == 1.0, "sums beyond what float16 holds"


def test_var_of_too_few(device):
    for shape, ddof in (((0,), 0), ((0, 3), 0), ((1,), 1), ((1, 2), 1), ((1,), 2)):
        x = np.ones(shape)
        result = vg.var(put(device, x), 0, ddof=ddof)
        assert result.shape == shape[1:] and np.isnan(result.numpy()).all()
    assert vg.var(put(device, np.array([1.0, 3.0])), ddof=5).item() == math.inf
    assert vg.var(put(device, np.ones((3, 0))), 0).shape == (0,)


def test_dtypes_and_out_of_var(device):
    x = put(device, np.array([[1, 2], [3, 5]], np.int32))
    assert (
        vg.var(x, dtype="float64").dtype == vg.float64 and x.std(0, "float16").dtype == vg.float16
    )
    out = vg.zeros(2, "float64", device=device)
    assert vg.var(x, 0, None, out, 1) is out and out.tolist() == [2, 4.5]
    assert isinstance(vg.std(x.numpy(), device=device), np.floating)
    with refused(device, TypeError, x):
        vg.var(x, dtype="int32")
    with refused(device, ValueError, x):
        vg.var(x, ddof=1, correction=1)
    with refused(device, np.exceptions.AxisError, x):
        vg.std(x, 2)
    assert np.var(x) == vg.var(x), "NumPy's function calls the method"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ptp(device, rng, dtype):
    for x, a, options in cases(rng, device, dtype):
        if dtype.kind == "b":
            with refused(device, TypeError, a):
                vg.ptp(a, **options)
        elif options["axis"] != ():
            result = vg.ptp(a, **options)
            expected = np.max(x, **options) - np.min(x, **options)
            helpers.assert_same(wide(result), np.asarray(expected).astype(np.float64))
            assert result.dtype == dtype


# ---- Averages and covariances --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_average(device, rng, dtype):
    for x, a, options in cases(rng, device, dtype):
        near(vg.average(a, **options), np.average(wide(x), **options), float_of(dtype), 8)
        axis = options["axis"]
        whole = rng.integers(1, 5, x.shape).astype(dtype)
        lengths = x.shape if axis is None else np.array(x.shape)[list(np.atleast_1d(axis))]
        own = rng.integers(1, 5, tuple(lengths)).astype(np.float32)
        for weights in (whole, own):
            result, scale = vg.average(a, weights=put(device, weights), returned=True, **options)
            expected = np.average(wide(x), weights=wide(weights), returned=True, **options)
            kind = helpers.result_type(dtype, weights.dtype)
            for one, other in zip((result, scale), expected, strict=True):
                near(one, np.broadcast_to(other, result.shape), float_of(kind), 8)


def test_average_returned_without_weights(device):
    x = put(device, np.ones((3, 4), np.float32))
    result, scale = vg.average(x, 0, returned=True)
    assert result.tolist() == [1] * 4 and scale.tolist() == [3] * 4
    with refused(device, TypeError, x):
        vg.average(x, weights=put(device, np.ones(4)))
    with refused(device, ValueError, x):
        vg.average(x, 0, put(device, np.ones(4)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cov_and_corrcoef(device, rng, dtype):
    for number in range(ROUNDS):
        x = draw(rng, dtype, (4, 9) if number % 4 else (9,))
        y = draw(rng, dtype, (2, 9)) if number % 3 == 0 else None
        a, b = put(device, x), None if y is None else put(device, y)
        other = None if y is None else wide(y)
        options = {"bias": bool(number % 2)} if number % 5 else {"ddof": 2}
        result = vg.cov(a, b, **options)
        near(result, np.cov(wide(x), other, **options), float_of(dtype), 8, f"{options}")
        near(vg.corrcoef(a, b), np.corrcoef(wide(x), other), float_of(dtype), 4)
        if x.ndim == 2:
            result = vg.cov(vg.transpose(a), rowvar=False)
            near(result, np.cov(wide(x)), float_of(dtype), 8)


def test_cov_by_weights(device, rng):
    x = rng.standard_normal((3, 8))
    often, much = rng.integers(1, 4, 8), rng.random(8) + 0.1
    a, f, w = put(device, x), put(device, often), put(device, much)
    for ddof in (None, 0, 1, 2):
        for given, same in (
            ({"fweights": f}, {"fweights": often}),
            ({"aweights": w}, {"aweights": much}),
            ({"fweights": f, "aweights": w}, {"fweights": often, "aweights": much}),
        ):
            near(vg.cov(a, ddof=ddof, **given), np.cov(x, ddof=ddof, **same), vg.float64, 8)
    assert vg.cov(a, dtype="float32").dtype == vg.float32
    half = vg.cov(put(device, x.astype(np.float32)), dtype="float64")
    near(half, np.cov(x.astype(np.float32)), vg.float64, 8)
    for wrong, error in (
        ({"fweights": w}, TypeError),
        ({"aweights": w[:3]}, ValueError),
        ({"dtype": "int32"}, TypeError),
    ):
        with refused(device, error, a):
            vg.cov(a, **wrong)
    with refused(device, ValueError, a):
        vg.cov(a[None])
    with refused(device, ValueError, a):
        vg.cov(a, a[:, :3])


# ---- Without NaN ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar",
                                  "nanstd"])  # fmt: skip
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_without_nan(device, rng, dtype, name):
    for number, (x, a, options) in enumerate(
        cases(rng, device, dtype, (0.2, 0.6)[rng.integers(2)])
    ):
        if options["axis"] == () and name in ("nanmax", "nanmin"):
            continue
        if name in ("nanvar", "nanstd"):
            options["ddof"] = number % 3
        exact = dtype.kind in "biu" and name in ("nansum", "nanprod", "nanmax", "nanmin")
        expected = getattr(np, name)(x if exact else wide(x), **options)
        result = getattr(vg, name)(a, **options)
        if name in ("nanmean", "nanvar", "nanstd"):
            near(result, expected, float_of(dtype), 4, f"{x} {options}")
        elif helpers.is_float(dtype):
            magnitude = np.asarray(np.nansum(np.abs(wide(x)), axis=options["axis"]))
            near(result, helpers.held(expected, dtype), dtype, float(magnitude.max(initial=1)))
        else:
            helpers.assert_same(result, expected)


def test_where_all_are_nan(device):
    x = put(device, np.array([[np.nan, np.nan], [np.nan, 2.0]]))
    for name in ("nanmax", "nanmin", "nanmean", "nanvar"):
        result = getattr(vg, name)(x, 1).numpy()
        assert math.isnan(result[0]) and result[1] == (0 if name == "nanvar" else 2)
    assert vg.nansum(x, 1).tolist() == [0, 2] and vg.nanprod(x, 1).tolist() == [1, 2]
    infinite = put(device, np.array([np.nan, -np.inf]))
    assert vg.nanmax(infinite).item() == -math.inf
    for function in (vg.nanmax, vg.nanmin):
        with refused(device, ValueError, x):
            function(x[:0])
    assert vg.nansum(x, dtype="float32").dtype == vg.float32
    out = vg.zeros(2, device=device)
    assert vg.nanmean(x, 1, None, out) is out
    with refused(device, TypeError, x):
        vg.nanvar(x, dtype="int8")
    with refused(device, ValueError, x):
        vg.nanstd(x, ddof=1, correction=1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_to_num(device, rng, dtype):
    x = draw(rng, dtype, (4, 6), 0.3)
    if helpers.is_float(dtype):
        x[0, :2] = [np.inf, -np.inf]
    for options in ({}, {"nan": 2}, {"nan": 1.5, "posinf": 3, "neginf": -4.0}):
        a = put(device, x)
        expected = x.copy()
        if helpers.is_float(dtype):
            limits = helpers.finfo(dtype)
            expected[np.isnan(x)] = options.get("nan", 0)
            expected[x == np.inf] = options.get("posinf", limits.max)
            expected[x == -np.inf] = options.get("neginf", limits.min)
        if dtype != helpers.BFLOAT16:
            helpers.assert_same(np.nan_to_num(x, **options), expected, "as NumPy")
        result = vg.nan_to_num(a, **options)
        helpers.assert_same(result, expected)
        assert result is not a and helpers.bits(a) == x.tobytes()
        assert vg.nan_to_num(a, copy=False, **options) is a
        helpers.assert_same(a, expected)
    with pytest.raises(TypeError, match="copy=False"):
        vg.nan_to_num(x, False)


# ---- Sums of exponentials ------------------------------------------------------------------------


def soft(x, axis):
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_softmax_and_its_logarithm(device, rng, dtype):
    for x, a, options in cases(rng, device, dtype):
        axis = options["axis"]
        if axis == ():
            continue
        expected = soft(wide(x), axis)
        near(vg.softmax(a, axis=axis), expected, float_of(dtype), 1)
        near(vg.log_softmax(a, axis=axis), np.log(expected), float_of(dtype), 16)
        most = np.max(wide(x), axis=axis, keepdims=True)
        sums = np.log(np.sum(np.exp(wide(x) - most), **options))
        sums = sums + most.reshape(np.shape(sums))
        near(vg.logsumexp(a, **options), sums, float_of(dtype), 16)
        for name in ("softmax", "log_softmax"):  # under torch's words
            found = host(getattr(vg, name)(a, axis=axis)).tobytes()
            named = getattr(vg.nn.functional, name)
            assert host(named(a, axis)).tobytes() == found == host(named(a, axis=axis)).tobytes()
            if axis is not None:
                assert host(named(a, dim=axis)).tobytes() == found


def test_softmax_far_out(device):
    for dtype, far in (("float32", 1e30), ("float64", 1e300), ("float16", 6e4)):
        x = put(device, np.array([[far, 0, -far], [-far, -far, -far]], dtype))
        assert vg.softmax(x).tolist()[0] == [1, 0, 0]
        assert np.allclose(vg.softmax(x).numpy()[1], 1 / 3, atol=1e-3)
        logs = vg.log_softmax(x).numpy()
        assert logs[0, 0] == 0 and (logs <= 0).all() and np.isfinite(logs[1]).all()
        assert vg.logsumexp(x, axis=1).numpy()[0] == x.numpy()[0, 0]
    infinite = put(device, np.array([[-np.inf, -np.inf], [-np.inf, 1.0], [np.inf, 1.0]]))
    assert vg.logsumexp(infinite, axis=1).tolist() == [-np.inf, 1, np.inf]
    rows = vg.softmax(infinite).numpy()
    assert np.isnan(rows[0]).all() and rows[1].tolist() == [0, 1] and np.isnan(rows[2, 0])
    with refused(device, ValueError, infinite):
        vg.logsumexp(infinite[:0], axis=0)
    with refused(device, np.exceptions.AxisError, infinite):
        vg.log_softmax(infinite, axis=2)


@pytest.mark.parametrize("count", [65_535, 65_536, 100_000])
def test_batches_of_softmax(device, rng, count):
    x = rng.standard_normal((count, 3)).astype(np.float32)
    near(vg.softmax(put(device, x)), soft(wide(x), -1), np.dtype(np.float32), 1)
    near(vg.softmax(put(device, x.T.copy()), 0), soft(wide(x.T), 0), np.dtype(np.float32), 1)
