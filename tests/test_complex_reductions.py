"""Sums, products, means, scans and spreads of complex numbers, and products of complex matrices."""

import helpers
import numpy as np
import pytest
from helpers import COMPLEX, LAYOUTS, assert_same, put

import pyvecgpu as vg

AXES = (None, 0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2), ())
SHAPES = ((4, 5, 6), (1, 7, 1), (0, 3, 2), (3, 0, 2), (2, 3, 0))
EPS = {np.dtype(d): float(np.finfo(d).eps) for d in COMPLEX}


def exact(x):
    return np.asarray(x).astype(np.clongdouble)


def within(result, expected, magnitude, ulps, message=""):
    """The error is at most so many units in the last place of a magnitude."""
    result = helpers.host(result)
    expected = np.asarray(expected)
    assert result.shape == expected.shape, message
    limit = ulps * np.finfo(result.dtype).eps * np.maximum(magnitude, np.finfo(result.dtype).tiny)
    wrong = ~(np.abs(exact(result) - expected) <= limit)
    helpers.report_worst(wrong, result, expected, message)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_and_means(device, rng, shape, dtype):
    x = helpers.numbers(rng, shape, dtype)
    for layout, make in LAYOUTS.items():
        array = make(device, x)
        for axis in AXES:
            for keepdims in (False, True):
                message = f"{layout} {axis} {keepdims}"
                options = {"axis": axis, "keepdims": keepdims}
                total, most = np.sum(exact(x), **options), np.sum(np.abs(exact(x)), **options)
                result = vg.sum(array, **options)
                assert result.dtype == dtype, message
                within(result, total, most, 1, message)
                count = x.size // max(total.size, 1)
                if count:
                    within(vg.mean(array, **options), total / count, most / count, 2, message)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_any_and_all(device, rng, shape, dtype):
    x = helpers.integers(rng, shape, dtype, -1, 1)
    for layout, make in LAYOUTS.items():
        array = make(device, x)
        for axis in AXES:
            for keepdims in (False, True):
                options = {"axis": axis, "keepdims": keepdims}
                for name in ("any", "all"):
                    found = getattr(vg, name)(array, **options)
                    assert_same(found, getattr(np, name)(x, **options), f"{name} {layout} {axis}")
                result = vg.prod(array + 1j, **options)
                expected = np.prod(exact(x + dtype.type(1j)), **options)
                within(result, expected, np.abs(expected), 60, f"{layout} {axis}")
        assert_same(vg.count_nonzero(array), np.count_nonzero(x))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_long_axes(device, rng, dtype):
    """More than a thread, a block and a chunk have; with gaps, and from right to left."""
    x = helpers.integers(rng, 40_000, dtype, -3, 3)
    array = put(device, x)
    for view in (slice(None), slice(1, None), slice(None, None, -3)):
        assert_same(vg.sum(array[view]), np.sum(x[view]))
        assert_same(vg.cumulative_sum(array[view]), np.cumsum(x[view]))
        assert_same(vg.nonzero(array[view])[0], np.nonzero(x[view])[0])
    for shape in ((200, 200), (4, 10_000), (10_000, 4)):
        for axis in (0, 1):
            part = x.reshape(shape)
            assert_same(vg.sum(array.reshape(shape), axis=axis), np.sum(part, axis=axis))
            assert_same(vg.cumsum(array.reshape(shape), axis), np.cumsum(part, axis))
    turns = np.exp(2j * np.pi * rng.random(30_000)).astype(dtype)
    for axis, shape in ((0, (30_000,)), (1, (2, 15_000)), (0, (15_000, 2))):
        part = turns.reshape(shape)
        for name, numpys in (("prod", np.prod), ("cumprod", np.cumprod)):
            expected = numpys(exact(part), axis=axis)
            result = getattr(vg, name)(put(device, part), axis=axis)
            assert result.dtype == dtype
            assert float(np.max(np.abs(exact(helpers.host(result)) - expected))) < 4e3 * EPS[dtype]


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_a_row_has_the_same_bits_alone(device, rng, dtype):
    x = helpers.numbers(rng, (5, 9000), dtype)
    for function in (vg.sum, vg.mean, vg.prod, vg.cumsum, vg.cumprod):
        whole = function(put(device, x), axis=1)
        for i in (0, 4):
            assert helpers.bits(whole[i]) == helpers.bits(function(put(device, x[i]), axis=0))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_scans(device, rng, dtype):
    x = helpers.integers(rng, (3, 4, 5), dtype, -2, 2)
    for layout, make in LAYOUTS.items():
        for axis in range(3):
            array = make(device, x)
            sums, products = np.cumsum(x, axis), np.cumprod(x, axis)
            assert_same(vg.cumulative_sum(array, axis=axis) + 0, sums + 0, layout)
            assert_same(vg.cumulative_prod(array, axis=axis) + 0, products + 0, layout)
            longer = vg.cumulative_sum(array, axis=axis, include_initial=True)
            assert longer.shape[axis] == x.shape[axis] + 1
            assert_same(np.take(longer.numpy(), range(1, x.shape[axis] + 1), axis) + 0, sums + 0)
            first = vg.cumulative_prod(array, axis=axis, include_initial=True)
            assert np.all(np.take(first.numpy(), 0, axis) == 1)
    reals = put(device, x.real.astype(np.int64))
    assert_same(vg.cumsum(reals, 1, dtype=dtype) + 0, np.cumsum(reals.numpy(), 1, dtype=dtype) + 0)


def test_sums_of_infinities_and_nothing(device):
    x = np.array([[np.inf + 1j, 2], [np.nan, -1j]], np.complex64)
    assert_same(vg.sum(put(device, x), axis=1), np.array([np.inf + 1j, np.nan - 1j], np.complex64))
    empty = vg.zeros((0, 2), dtype="complex64", device=device)
    assert_same(vg.sum(empty, axis=0), np.zeros(2, np.complex64))
    assert_same(vg.prod(empty, axis=0), np.ones(2, np.complex64))
    assert_same(vg.any(empty, axis=0), np.zeros(2, bool))
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if device == "cpu" else nothing():
        assert np.isnan(vg.mean(empty).item())
    deep = np.arange(16, dtype=np.complex64).reshape((1,) * 28 + (2,) * 4) * (1 + 1j)
    assert_same(vg.sum(put(device, deep), axis=(28, 30)), np.sum(deep, axis=(28, 30)))
    assert_same(vg.sum(put(device, deep)), np.sum(deep))


class nothing:  # noqa: N801
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_out_and_dtype(device, rng, dtype):
    x = helpers.integers(rng, (4, 6), dtype)
    array, place = put(device, x), vg.zeros((4, 12), dtype=dtype, device=device)
    assert_same(vg.sum(array, axis=1, out=place[:, 3]), np.sum(x, axis=1))
    assert_same(place[:, 3], np.sum(x, axis=1))
    vg.sum(array, axis=0, keepdims=True, out=array[1:2])
    expected = x.copy()
    expected[1] = x.sum(axis=0)
    assert_same(array, expected)
    vg.cumsum(array, 1, out=place[:, ::2])
    assert_same(place[:, ::2], np.cumsum(expected, 1))
    reals = put(device, np.arange(6, dtype=np.float32))
    assert_same(vg.sum(reals, dtype=dtype), dtype.type(15))
    assert_same(vg.mean(reals, dtype=dtype), dtype.type(2.5))


# ---- Spread, closeness, NaN ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_spread(device, rng, dtype):
    x = helpers.numbers(rng, (5, 40), dtype)
    array, weights = put(device, x), rng.random((5, 40)).astype(x.real.dtype)
    for axis in (None, 0, 1):
        for name in ("var", "std"):
            expected = getattr(np, name)(x.astype(np.complex128), axis=axis)
            result = getattr(vg, name)(array, axis=axis)
            assert result.dtype == x.real.dtype
            helpers.assert_within(result, expected, 20 * EPS[dtype] * np.abs(expected))
            result = getattr(vg, f"nan{name}")(array, axis=axis)
            helpers.assert_within(result, expected, 40 * EPS[dtype] * np.abs(expected))
        expected = np.average(exact(x), axis=axis, weights=weights)
        most = np.average(np.abs(exact(x)), axis=axis, weights=weights)
        within(vg.average(array, axis=axis, weights=put(device, weights)), expected, most, 100)
    for name in ("cov", "corrcoef"):
        expected = getattr(np, name)(x.astype(np.complex128))
        most = np.max(np.abs(expected))
        helpers.assert_within(getattr(vg, name)(array), expected, 200 * EPS[dtype] * most)
    with_nan = x.copy()
    with_nan[:, 3] = np.nan
    filled = np.where(np.isnan(with_nan), 0, with_nan)
    within(vg.nansum(put(device, with_nan), axis=1), exact(filled).sum(1), np.abs(filled).sum(1), 1)
    within(
        vg.nanmean(put(device, with_nan), axis=1), exact(filled).sum(1) / 39,
        np.abs(filled).sum(1), 1,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_nan_to_num(device, dtype):
    x = helpers.specials(dtype)
    for options in ({}, {"nan": 2.0, "posinf": 3.0, "neginf": -4.0}):
        expected = np.nan_to_num(x, **options)
        assert_same(vg.nan_to_num(put(device, x), **options), expected)
        place = put(device, x)
        assert vg.nan_to_num(place, copy=False, **options) is place
        assert_same(place, expected)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_closeness(device, dtype):
    x = np.array([1 + 1j, 2, np.inf, np.inf * 1j, np.nan, 1e-9], dtype)
    y = np.array([1 + 1.00001j, 2 + 1e-3j, np.inf, np.inf, np.nan, 0], dtype)
    a, b = put(device, x), put(device, y)
    for equal_nan in (False, True):
        assert_same(vg.isclose(a, b, equal_nan=equal_nan), np.isclose(x, y, equal_nan=equal_nan))
    assert vg.allclose(a[:1], b[:1]) and not vg.allclose(a, b)
    assert vg.allclose(a[:1], 1 + 1j) and vg.allclose(a.real[:1], 1 + 1e-9j)
    assert vg.array_equal(a, a, equal_nan=True) and not vg.array_equal(a, b)
    assert_same(vg.logical_not(a), np.logical_not(x))
    assert_same(vg.logical_and(a, b), np.logical_and(x, y))


# ---- Products of matrices ------------------------------------------------------------------------

PRODUCTS = [
    ((3,), (3,)), ((1,), (1,)), ((4, 3), (3,)), ((3,), (3, 5)), ((4, 3), (3, 5)), ((1, 1), (1, 1)),
    ((2, 4, 3), (3, 5)), ((4, 3), (2, 3, 5)), ((2, 1, 4, 3), (5, 3, 2)), ((0, 3), (3, 2)),
    ((2, 0), (0, 3)), ((33, 65), (65, 17)), ((130, 70), (70, 129)), ((2, 3, 4, 3), (2, 3, 3, 1)),
    ((1, 700), (700, 1)), ((5, 1, 7), (7,)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize(("left", "right"), PRODUCTS, ids=str)
def test_matmul(device, rng, left, right, dtype):
    """Of small integers all sums are exact."""
    a, b = (helpers.integers(rng, shape, dtype, -4, 4) for shape in (left, right))
    expected = np.matmul(a, b)
    for layout in helpers.layouts(a):
        result = vg.matmul(LAYOUTS[layout](device, a), LAYOUTS[layout](device, b))
        assert_same(result + 0, expected + 0, layout)
    place = vg.zeros((*expected.shape, 2), dtype=dtype, device=device)[..., 1]
    assert_same(vg.matmul(put(device, a), put(device, b), out=place) + 0, expected + 0)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_accuracy_of_products(device, rng, dtype):
    a, b = helpers.numbers(rng, (20, 90), dtype), helpers.numbers(rng, (90, 30), dtype)
    expected, most = exact(a) @ exact(b), np.abs(exact(a)) @ np.abs(exact(b))
    within(put(device, a) @ put(device, b), expected, most, 90)
    again = put(device, a) @ put(device, b)
    assert helpers.bits(again) == helpers.bits(put(device, a) @ put(device, b))
    infinite = a[:2].copy()
    infinite[0, 0] = np.nan
    result = (put(device, infinite) @ put(device, b)).numpy()
    assert np.all(np.isnan(result[0])) and np.all(np.isfinite(result[1]))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_other_products(device, rng, dtype):
    a, b = (helpers.integers(rng, (3, 4), dtype, -3, 3) for _ in range(2))
    x, y = put(device, a), put(device, b)
    wide = [z.astype(np.complex128) for z in (a, b)]
    assert_same(vg.vecdot(x, y) + 0, np.vecdot(a, b) + 0)
    assert_same(vg.vecdot(x, y, axis=0) + 0, np.vecdot(a, b, axis=0) + 0)
    assert_same(vg.vecdot(x.real, y) + 0, np.vecdot(a.real, b) + 0)
    assert_same(vg.outer(x, y) + 0, np.outer(a, b) + 0)
    assert_same(
        vg.tensordot(x, y, axes=([0, 1], [0, 1])) + 0, np.tensordot(*wide).astype(dtype) + 0
    )
    assert_same(vg.einsum("ij,kj->ik", x, y) + 0, np.einsum("ij,kj->ik", a, b) + 0)
    assert_same(vg.dot(x, y.T) + 0, np.dot(a, b.T) + 0)
    assert_same(vg.inner(x, y) + 0, np.inner(a, b) + 0)
    assert_same(vg.kron(x, y) + 0, np.kron(a, b) + 0)
    assert_same(vg.trace(x) + 0, np.trace(a) + 0)
    assert_same(vg.cross(x[:, :3], y[:, :3]) + 0, np.cross(a[:, :3], b[:, :3]) + 0)
    assert_same(vg.convolve(x[0], y[0, :2]) + 0, np.convolve(a[0], b[0, :2]) + 0)
    beside = x @ put(device, np.arange(4))  # int64
    assert_same(beside + 0, wide[0] @ np.arange(4) + 0)
    assert_same(vg.diff(x), np.diff(a))
    assert_same(vg.gradient(x[0]), np.gradient(a[0]).astype(dtype))
    assert_same(vg.trapezoid(x, axis=1), np.trapezoid(wide[0], axis=1).astype(dtype))
    assert_same(vg.vander(x[0], 3) + 0, np.vander(wide[0][0], 3).astype(dtype) + 0)
    assert_same(vg.pad(x, 1, constant_values=2j), np.pad(a, 1, constant_values=2j))
    with helpers.refused(device, TypeError, x):
        vg.dense(x, y)
