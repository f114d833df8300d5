"""bincount, digitize, histograms and interpolation beside NumPy."""

import helpers
import numpy as np
import pytest
from helpers import INTEGERS, NUMBERS, assert_same, put

import pyvecgpu as vg
from pyvecgpu.dispatch import apply


@pytest.mark.parametrize("dtype", [np.dtype(bool), *INTEGERS], ids=str)
def test_bincount(device, rng, dtype):
    for n in (0, 1, 2, 31, 33, 257, 5000):
        x = rng.integers(0, 2 if dtype.kind == "b" else 100, n).astype(dtype)
        weights, as_int = rng.standard_normal(n), x.astype(np.int64)
        array = put(device, x)
        for least in (0, 3, 200, 5000):
            assert_same(vg.bincount(array, minlength=least), np.bincount(as_int, minlength=least))
        sums = np.bincount(as_int, weights).astype(np.float64)
        assert_same(vg.bincount(array, put(device, weights)), sums)
        strided = vg.bincount(array[::-2], put(device, weights)[::-2])
        sums = np.bincount(as_int[::-2], weights[::-2]).astype(np.float64)
        assert_same(strided, sums)


def test_weights_are_added_as_they_stand(device, rng):
    """The same bits as NumPy's, of many weights for one number, too."""
    for most in (1, 3, 1000):
        x = rng.integers(0, most, 20_000)
        weights = rng.standard_normal(20_000) * 10.0 ** rng.integers(-8, 8, 20_000)
        assert_same(vg.bincount(put(device, x), put(device, weights)), np.bincount(x, weights))


def test_bincount_of_other_weights(device, rng):
    x = rng.integers(0, 9, 100)
    for dtype in NUMBERS:
        weights = helpers.integers(rng, 100, dtype, 0, 9)
        expected = np.bincount(x, weights.astype(np.float64))
        assert_same(vg.bincount(put(device, x), put(device, weights)), expected)
    assert isinstance(vg.bincount(x, device=device), np.ndarray)


def test_numbers_out_of_range_are_not_counted(device):
    """What the backends do where nobody has looked."""
    x = put(device, np.array([-1, 0, 2, 2, 3, 2**40]))
    weights = put(device, np.ones(6))
    counts = apply(x.backend, "bincount", x, None, 3)
    assert counts.tolist() == [1, 0, 2]
    assert apply(x.backend, "bincount", x, weights, 3).tolist() == [1, 0, 2]


@pytest.mark.parametrize("dtype", [np.dtype(n) for n in ("u1", "i4", "f4", "f8", "i8")], ids=str)
def test_digitize(device, rng, dtype):
    x = (rng.random((7, 60)) * 60).astype(dtype)
    for edges in ([0, 5, 5, 40], [40, 7, 0], [3], np.linspace(1, 50, 9)):
        for right in (False, True):
            expected = np.digitize(x, edges, right)
            assert_same(vg.digitize(put(device, x), edges, right), expected)
            assert_same(
                vg.digitize(put(device, x), put(device, np.asarray(edges)), right), expected
            )


@pytest.mark.parametrize("dtype", [np.dtype(n) for n in ("u1", "i4", "f2", "f4", "f8")], ids=str)
@pytest.mark.parametrize("bins", [1, 10, 1000, [0, 1, 2, 2, 50], [-5.5, 3.25]], ids=str)
def test_histogram(device, rng, dtype, bins):
    x = (rng.standard_normal((20, 50)) * 30).astype(dtype)
    weights = rng.integers(0, 9, x.shape).astype(np.float64)
    array = put(device, x)
    for span in (None, (-20, 20.5)):
        edges = helpers.host(vg.histogram_bin_edges(array, bins, span))
        if dtype.kind == "f" and not isinstance(bins, list):
            reference = np.histogram_bin_edges(x.astype("f8"), bins, span)
            np.testing.assert_allclose(edges, reference, 1e-6, 1e-5)
        else:
            np.testing.assert_allclose(edges, np.histogram_bin_edges(x, bins, span), 1e-12)
        wide = helpers.widened(x)
        counts, given = vg.histogram(array, bins, span)
        assert_same(given, edges)
        assert_same(counts, np.histogram(wide, edges)[0])
        sums, _ = vg.histogram(array, bins, span, weights=put(device, weights))
        assert_same(sums, np.histogram(wide, edges, weights=weights)[0])
        shares, _ = vg.histogram(array, bins, span, True)
        expected = np.histogram(wide, edges, density=True)[0]
        np.testing.assert_allclose(helpers.host(shares), expected, 1e-5)


@pytest.mark.parametrize("rule", ["sqrt", "sturges", "rice"])
def test_rules_for_bins(device, rng, rule):
    for dtype in ("f8", "i4"):
        x = (rng.standard_normal(700) * 30).astype(dtype)
        for span in (None, (-5, 20)):
            expected = np.histogram(x, rule, span)
            for one, other in zip(vg.histogram(put(device, x), rule, span), expected, strict=True):
                np.testing.assert_allclose(helpers.host(one), other, 1e-12)


def test_histogram_of_nothing_and_nan(device):
    counts, edges = vg.histogram(put(device, np.zeros(0)))
    assert counts.tolist() == [0] * 10 and edges.tolist() == np.linspace(0, 1, 11).tolist()
    x = np.array([1.0, np.nan, 2.0, 2.5, np.inf])
    assert vg.histogram(put(device, x), [1, 2, 3])[0].tolist() == [1, 2]
    assert vg.histogram(put(device, np.ones(4)), 2)[1].tolist() == [0.5, 1.0, 1.5]


def test_interp(device, rng):
    for n in (1, 2, 3, 30):
        xp, fp = np.sort(rng.standard_normal(n)), rng.standard_normal(n)
        x = np.concatenate([rng.standard_normal(200) * 2, xp, [np.nan] * (n > 1)])
        arrays = [put(device, one) for one in (x, xp, fp)]
        np.testing.assert_allclose(vg.interp(*arrays).numpy(), np.interp(x, xp, fp), 1e-12)
        expected = np.interp(x, xp, fp, -1, 3)
        np.testing.assert_allclose(vg.interp(*arrays, -1, 3).numpy(), expected, 1e-12)
    order = rng.permutation(30)
    around = [put(device, x[:-1]), put(device, xp[order]), put(device, fp[order])]
    expected = np.interp(x[:-1], xp[order], fp[order], period=1.5)
    np.testing.assert_allclose(vg.interp(*around, period=1.5).numpy(), expected, 1e-10, 1e-10)
    assert (
        vg.interp(0.5, put(device, np.array([0.0, 1.0])), put(device, np.array([1.0, 3.0]))).item()
        == 2
    )
    small = put(device, np.array([[0.25, 2]], np.float32))
    line = put(device, np.array([0, 1], np.float32))
    result = vg.interp(small, line, line)
    assert result.dtype == vg.float32 and result.tolist() == [[0.25, 1.0]]


def test_what_is_refused(device):
    x, whole = put(device, np.arange(6.0)), put(device, np.arange(6))
    with helpers.refused(device, TypeError, x, match="bincount counts integers"):
        vg.bincount(x)
    with helpers.refused(device, ValueError, whole, match="negative"):
        vg.bincount(whole - 3)
    with helpers.refused(device, ValueError, whole, match="one dimension"):
        vg.bincount(whole.reshape(2, 3))
    with helpers.refused(device, ValueError, whole, match="weights"):
        vg.bincount(whole, x[:3])
    with helpers.refused(device, ValueError, whole, match="minlength"):
        vg.bincount(whole, minlength=-1)
    with helpers.refused(device, ValueError, x, match="order"):
        vg.digitize(x, [1, 3, 2])
    for bins, message in [(0, "1 or more"), ([1], "edges"), ([3, 2], "edges"), ("best", "'best'")]:
        with helpers.refused(device, ValueError, x, match=message):
            vg.histogram(x, bins)
    with helpers.refused(device, ValueError, x, match="range"):
        vg.histogram(x, 3, (2, 1))
    with helpers.refused(device, ValueError, x, match="not finite"):
        vg.histogram(x / 0.0 * 0.0)
    with helpers.refused(device, TypeError, x, match="weights"):
        vg.histogram(x, "sqrt", weights=x)
    with helpers.refused(device, ValueError, x, match="points"):
        vg.interp(x, x, x[:3])
    with helpers.refused(device, ValueError, x, match="period"):
        vg.interp(x, x, x, period=0)
