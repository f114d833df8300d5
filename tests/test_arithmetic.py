"""Composed arithmetic against NumPy: remainders, divisors, roots, bits, decimals."""

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, assert_same, put, refused

import pyvecgpu as vg

INTEGERS = [d for d in DTYPES if d.kind in "iu"]
FLOATS = [np.dtype(d) for d in (np.float16, np.float32, np.float64)]
HARD = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -7.25, np.inf, -np.inf, np.nan, 1e4]


def whole(rng, dtype, shape=(6, 7)):
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x.flat[:4] = limits.min, limits.max, 0, 1
    return rng.permutation(np.where(rng.integers(0, 2, shape) == 0, x % 7, x).astype(dtype))


def numbers(rng, dtype, shape=(6, 7)):
    x = (rng.standard_normal(shape) * 10).astype(dtype)
    x.flat[: len(HARD)] = HARD
    return rng.permutation(x)


def close(result, expected, ulps):
    result, expected = helpers.host(result), np.asarray(expected)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    with np.errstate(all="ignore"):
        near = np.abs(result - expected) <= ulps * np.spacing(np.abs(expected))
    same = (result == expected) | (np.isnan(result) & np.isnan(expected))
    assert (near | same).all(), (result[~(near | same)], expected[~(near | same)])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(device, rng, dtype):
    a, b = whole(rng, dtype), whole(rng, dtype)
    with np.errstate(all="ignore"):
        for name in ("gcd", "lcm", "fmod"):
            ufunc, function = getattr(np, name), getattr(vg, name)
            expected = ufunc(a, b)
            assert_same(function(put(device, a), put(device, b)), expected, name)
            assert_same(function(put(device, a), put(device, b[0])), ufunc(a, b[0]), name)
            assert_same(ufunc(put(device, a), put(device, b)), expected, name)
        assert_same(vg.gcd(put(device, a), 6), np.gcd(a, dtype.type(6)))
    assert_same(vg.bitwise_count(put(device, a)), np.bitwise_count(a))
    for decimals in (-1, -2, 1):
        if dtype.itemsize < 8:  # beyond float64's digits NumPy's are not the nearest
            nearest = np.round(a.astype(np.float64), decimals)
            limits = np.iinfo(dtype)
            nearest = np.clip(nearest, limits.min, limits.max).astype(dtype)
            assert_same(vg.round(put(device, a), decimals), nearest)


@pytest.mark.parametrize("dtype, digits", [(np.float32, 22), (np.float64, 51)])
def test_remainders_of_every_quotient(device, rng, dtype, digits):
    """Quotients next to integers, to 0 and to 1, large and small ones, and of any bits."""
    n, info = 3000, np.finfo(dtype)
    words = np.dtype(f"u{info.bits // 8}")
    anything = lambda: rng.integers(0, np.iinfo(words).max, n, words, True).view(dtype)  # noqa: E731
    x = anything()
    with np.errstate(all="ignore"):
        whole_times = x / rng.integers(1, 2**digits, n).astype(dtype)
        near = x / (2.0 ** rng.uniform(0, digits, n)).round().astype(dtype)
        divisors = [anything(), whole_times, -whole_times, x, x * dtype(2), near, -near]
        divisors += [np.nextafter(one, dtype(to)) for one in divisors[1:] for to in (0, info.max)]
        divisors += [np.resize(dtype(HARD), n), np.full(n, info.max / dtype(1.7), dtype)]
        if dtype is np.float32:
            x[:9] = -3.3917132e38
            divisors[1][:9] = -9.517905e36
        for y in divisors:
            for name in ("remainder", "floor_divide"):
                result = getattr(vg, name)(put(device, x), put(device, y))
                assert_same(result, getattr(np, name)(x, y), name)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(device, rng, dtype):
    a, b = numbers(rng, dtype), numbers(rng, dtype)
    for name in helpers.layouts(a):
        x = LAYOUTS[name](device, a)
        with np.errstate(all="ignore"):
            for one, other in zip(vg.modf(x), np.modf(a), strict=True):
                assert_same(one, other)
            assert_same(vg.fmod(x, put(device, b)), np.fmod(a, b))
            assert_same(vg.isposinf(x), np.isposinf(a))
            assert_same(vg.isneginf(x), np.isneginf(a))
            wide, second = a.astype(np.float64), b.astype(np.float64)
            close(vg.cbrt(x), np.cbrt(wide).astype(dtype), 2)
            close(vg.float_power(x, put(device, b)), np.float_power(wide, second), 4)
            expected = np.logaddexp2(wide, second).astype(dtype)
            result = helpers.host(vg.logaddexp2(x, put(device, b)))
            tolerance = 4 * np.finfo(dtype).eps * np.maximum(np.abs(a), np.abs(b)).astype(float)
            near = np.abs(result - expected.astype(np.float64)) <= tolerance
            assert (near | (result == expected) | (np.isnan(result) & np.isnan(expected))).all()
            sinc = helpers.host(vg.sinc(x))
            finite = np.isfinite(a)
            error = np.abs(sinc - np.sinc(np.where(finite, wide, 0)))[finite]
            assert sinc.dtype == dtype and not np.any(~(error <= 64 * np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("decimals", [1, 2, -1, 5, 400, -400])
def test_decimals(device, rng, dtype, decimals):
    x = numbers(rng, dtype)
    with np.errstate(all="ignore"):
        result = helpers.host(vg.round(put(device, x), decimals))
        if decimals == -400:
            expected = np.where(np.isfinite(x), x * 0, x)
        elif decimals == 400:
            expected = x
        else:
            work = np.float32 if dtype == np.float16 else dtype
            expected = np.round(x.astype(work), decimals).astype(dtype)
    assert_same(np.abs(result), np.abs(expected.astype(dtype)))
    assert_same(vg.around(put(device, x), decimals), result)
    assert_same(put(device, x).round(decimals), result)


def test_decimals_of_complex_numbers(device):
    for dtype in (np.complex64, np.complex128):
        x = np.array([1.234 - 5.678j, 0.5 + 12.25j], dtype)
        result = vg.round(put(device, x), 1)
        assert result.dtype == dtype
        assert not np.any(~(np.abs(result.numpy() - np.round(x, 1)) <= 16 * np.finfo(dtype).eps))


def test_arguments(device):
    x, i = put(device, np.float32([1, 2])), put(device, np.array([12, 18]))
    for name in ("gcd", "lcm"):
        with refused(device, TypeError, x, match="integers"):
            getattr(vg, name)(x, x)
    with refused(device, TypeError, x, match="integers"):
        vg.bitwise_count(x)
    with refused(device, TypeError, x):
        vg.round(x > 1, 1)
    z = put(device, np.array([1j]))
    for name in ("modf", "cbrt", "spacing"):
        with refused(device, TypeError, z, match="real numbers"):
            getattr(vg, name)(z)
    for name in ("nextafter", "logaddexp2", "float_power"):
        with refused(device, TypeError, z, match="real numbers"):
            getattr(vg, name)(z, 1.0)
    out = put(device, np.zeros(2, np.int64))
    assert vg.gcd(i, 8, out=out) is out and out.tolist() == [4, 2]
    assert_same(vg.lcm(np.array([4]), np.array([6])), np.array([12]))
    assert vg.cbrt(i).dtype == vg.get_default_dtype()
    assert vg.modf(2.5 * x)[0].tolist() == [0.5, 0]


def test_divisors_of_zeros_are_broadcast(device):
    a, nothing = put(device, np.array([4, 6], np.uint8)), put(device, np.zeros((2, 0), np.uint8))
    assert vg.gcd(a[0], nothing).shape == (2, 0)
    zeros = put(device, np.zeros((3, 2), np.uint8))
    result = vg.gcd(a, zeros)
    assert result.tolist() == [[4, 6]] * 3
    result[0, 0] = 9
    assert a.tolist() == [4, 6], "memory of its own"
