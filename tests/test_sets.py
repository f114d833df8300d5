"""Unique elements and sets beside NumPy."""

import helpers
import numpy as np
import pytest
from helpers import DTYPES, assert_same, put
from test_sorting import assert_sorted, drawn

import pyvecgpu as vg

SHAPES = [(0,), (1,), (2,), (33,), (6, 7), (5000,), (3, 0), (), (2, 3, 700)]


def same(result, expected, message):
    assert_sorted(result, np.asarray(expected), message)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_unique(device, rng, shape, dtype):
    x = drawn(rng, shape, dtype)
    array, wide = put(device, x), helpers.widened(x)
    for equal_nan in (False, True):
        values, first, inverse, counts = np.unique(wide, True, True, True, equal_nan=equal_nan)
        found = vg.unique(array, True, True, True, equal_nan=equal_nan)
        same(found[0], values.astype(dtype), f"{dtype} {shape}")
        for one, expected in zip(found[1:], (first, inverse.reshape(shape), counts), strict=True):
            assert_same(one, expected.astype(np.int64))
        alone = helpers.widened(helpers.host(vg.unique(array, equal_nan=equal_nan)))
        np.testing.assert_array_equal(alone, values)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if np.dtype(d).kind != "c"], ids=str)
def test_unique_alone(device, rng, dtype):
    """By one block and by several, from any offset; NaN and zeros of both signs are among them."""
    item = np.dtype(dtype).itemsize
    whole = rng.integers(0, 256, 40_003 * item, np.uint8).view(dtype)
    if np.dtype(dtype).kind == "b":
        whole = whole.view(np.uint8) > 100
    whole[::7], whole[3::11] = whole[1], -whole[1:2] if np.dtype(dtype).kind == "f" else whole[2]
    if np.dtype(dtype).kind != "b":
        whole[5::501], whole[7::307] = 0, -np.zeros((), dtype)
    for start, stop in ((0, 40_003), (1, 30_000), (3, 4099), (0, 4097), (2, 300), (5, 6), (8, 40)):
        x = whole[start:stop]
        array = put(device, whole)[start:stop]
        for equal_nan in (False, True):
            found = helpers.widened(helpers.host(vg.unique(array, equal_nan=equal_nan)))
            expected = np.unique(helpers.widened(x), equal_nan=equal_nan)
            np.testing.assert_array_equal(found, expected)
            assert (array.numpy().view(np.uint8) == x.view(np.uint8)).all()


def test_what_the_standard_calls(device, rng):
    x = drawn(rng, (4, 30), np.float32)
    array = put(device, x)
    values, first, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
    found = vg.unique_all(array)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    for one, expected in zip(found, (values, first, inverse.reshape(4, 30), counts), strict=True):
        same(one, expected, "unique_all")
    one, other = vg.unique_counts(array), vg.unique_inverse(array)
    assert one._fields == ("values", "counts") and other._fields == ("values", "inverse_indices")
    np.testing.assert_array_equal(one.values.numpy(), values)
    assert_same(one.counts, counts)
    assert_same(other.inverse_indices, inverse.reshape(4, 30))
    np.testing.assert_array_equal(vg.unique_values(array).numpy(), values)
    assert type(vg.unique_all(x, device=device).values) is np.ndarray


@pytest.mark.parametrize(
    "pair", [("i4", "i4"), ("f4", "f4"), ("u1", "i8"), ("i8", "f4"), ("?", "?")]
)
def test_sets(device, rng, pair):
    for shapes in [((40,), (7, 5)), ((0,), (5,)), ((5,), (0,)), ((3000,), (90,))]:
        x, y = (drawn(rng, s, d) for s, d in zip(shapes, pair, strict=True))
        a, b = put(device, x), put(device, y)
        assert_same(vg.isin(a, b), np.isin(x, y))
        assert_same(vg.isin(a, b, invert=True), np.isin(x, y, invert=True))
        for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d"):
            expected = getattr(np, name)(x, y)
            result = helpers.host(getattr(vg, name)(a, b))
            np.testing.assert_array_equal(result, expected, err_msg=f"{name} {pair} {shapes}")
            assert result.dtype == expected.dtype, name
        found = vg.intersect1d(a, b, return_indices=True)
        for one, expected in zip(found, np.intersect1d(x, y, return_indices=True), strict=True):
            np.testing.assert_array_equal(helpers.host(one), expected)


def test_sets_of_what_is_unique(device, rng):
    x, y = rng.permutation(50)[:30], rng.permutation(50)[:20]
    a, b = put(device, x), put(device, y)
    for name in ("intersect1d", "setdiff1d", "setxor1d"):
        expected = getattr(np, name)(x, y, assume_unique=True)
        assert_same(getattr(vg, name)(a, b, assume_unique=True), expected)


def test_isin_of_numbers(device):
    x = put(device, np.array([[1, 2], [3, 200]], np.uint8))
    assert vg.isin(x, 3).tolist() == [[False, False], [True, False]]
    assert vg.isin(x, 300).tolist() == [[False, False], [False, False]]
    assert vg.isin(x, -1, invert=True).tolist() == [[True, True], [True, True]]
    assert vg.isin(200, x).item() is True


def test_nan_is_in_nothing(device):
    x = put(device, np.array([np.nan, 1.0, -0.0]))
    assert vg.isin(x, x).tolist() == [False, True, True]
    assert vg.isin(x, put(device, np.array([0.0]))).tolist() == [False, False, True]


def test_what_is_refused(device):
    x = put(device, np.arange(3.0))
    with helpers.refused(device, np.exceptions.AxisError, x, match="axis"):
        vg.unique(x, axis=1)
    for function in (vg.unique_all, vg.unique_values, vg.unique):
        with pytest.raises(TypeError, match=function.__name__):
            function("12", device=device)
    with pytest.raises(TypeError, match="isin"):
        vg.isin("1", 2)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(device, rng, dtype):
    """In NumPy's order: by real parts, then imaginary ones, NaN behind all others."""
    parts = np.array([0.0, -0.0, 1.0, 2.0, np.nan, -1.0])

    def some(most):
        x = rng.choice(parts, rng.integers(0, most)).astype(dtype)
        x.imag = rng.choice(parts, x.size)
        return x

    for _ in range(40):
        x, y = some(14), some(6)
        a, b = put(device, x), put(device, y)
        for equal_nan in (False, True):
            expected = np.unique(x, True, True, True, equal_nan=equal_nan)
            found = vg.unique(a, True, True, True, equal_nan=equal_nan)
            for one, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one.numpy(), wanted)
        assert_same(vg.isin(a, b), np.isin(x, y))
        np.testing.assert_array_equal(vg.union1d(a, b).numpy(), np.union1d(x, y))
    assert [one.tolist() for one in vg.unique_all(put(device, np.array([2j, 1, 2j], dtype)))] == [
        [2j, 1],
        [0, 1],
        [0, 1, 0],
        [2, 1],
    ]
