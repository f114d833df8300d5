"""nextafter and spacing, bit by bit against NumPy: all halves, and drawn and hard larger floats."""

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

FLOATS = [np.float16, np.float32, np.float64]
GOALS = (np.inf, -np.inf, 0.0, -0.0, np.nan, 1.0)


def bits(x):
    return x.view(f"u{x.itemsize}")


def samples(rng, dtype):
    """All numbers of 2 bytes; of others drawn ones, powers of two and what lies at the edges."""
    code = np.dtype(f"u{np.dtype(dtype).itemsize}")
    if code.itemsize == 2:
        return np.arange(1 << 16, dtype=code).view(dtype)
    drawn = rng.integers(0, np.iinfo(code).max, 4096, dtype=code, endpoint=True).view(dtype)
    limits = np.finfo(dtype)
    edges = [0, limits.tiny, 2 * limits.tiny, 4 * limits.tiny, limits.max, np.inf, np.nan, 1.5]
    powers = np.exp2(np.arange(limits.minexp - limits.nmant, limits.maxexp, dtype=np.float64))
    found = np.array([*edges, *powers, *(powers[60:] * (1 - limits.eps))], dtype)
    return np.concatenate([found, -found, drawn])


def same_bits(result, expected):
    """Equal but for the payload of NaN."""
    result = result.numpy()
    both_nan = np.isnan(result) & np.isnan(expected)
    return bool(np.all((bits(result) == bits(expected)) | both_nan))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nextafter(device, rng, dtype):
    x = samples(rng, dtype)
    for goal in GOALS:
        b = np.full_like(x, goal)
        with np.errstate(all="ignore"):
            expected = np.nextafter(x, b)
            expected = np.where(x == b, b, expected)  # NumPy keeps the sign of a float16 zero
            result = vg.nextafter(put(device, x), put(device, b))
        assert result.dtype == dtype and same_bits(result, expected), goal


@pytest.mark.parametrize("dtype", FLOATS)
def test_spacing(device, rng, dtype):
    x = samples(rng, dtype)
    with np.errstate(all="ignore"):
        size = np.abs(x)
        expected = np.nextafter(size, np.asarray(np.inf, dtype)) - size
        expected = np.where(x == 0, expected, np.copysign(expected, x))
        expected = np.where(np.isfinite(x), expected, np.nan).astype(dtype)
        result = vg.spacing(put(device, x))
    assert result.dtype == dtype and same_bits(result, expected)


@pytest.mark.needs("ml_dtypes")
def test_nextafter_of_bfloat16(device):
    import ml_dtypes

    x = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    for goal in (np.inf, -np.inf):
        b = np.full_like(x, goal)
        with np.errstate(all="ignore"):
            expected = np.nextafter(x, b)
            result = vg.nextafter(put(device, x), put(device, b))
        assert result.dtype == vg.bfloat16 and same_bits(result, expected)


def test_operands(device):
    x = put(device, np.array([1.0, 2.0], np.float32))
    expected = np.nextafter(np.float32([1, 2]), np.float32(np.inf))
    helpers.assert_same(vg.nextafter(x, np.inf), expected)
    helpers.assert_same(vg.nextafter(1.0, x), np.nextafter(np.float32(1), np.float32([1, 2])))
    whole = vg.nextafter(put(device, np.array([[3], [4]])), x)
    assert whole.dtype == vg.float64 and whole.shape == (2, 2), "int64 beside float32, as in NumPy"
    assert vg.nextafter(put(device, np.array([3])), 4).dtype == vg.get_default_dtype()
    host = vg.nextafter(np.float32(1), np.float32([2, 0]))
    helpers.assert_same(host, np.nextafter(np.float32(1), np.float32([2, 0])))
    out = put(device, np.zeros(2, np.float64))
    assert vg.spacing(x, out=out) is out and out.tolist() == [2**-23, 2**-22]
