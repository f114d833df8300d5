"""nonzero, argwhere and flatnonzero beside NumPy, over dtypes, layouts, shapes and lengths."""

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, FLOATS, LAYOUTS, assert_same, put

import pyvecgpu as vg

SHAPES = [
    (1,),
    (7,),
    (40, 3),
    (3, 40),
    (2, 3, 4, 5),
    (1, 1, 1),
    (2, 1, 600),
    (50, 61, 7),
    (9, 2000),
]
# Around the bounds of packs, segments of warps, tiles and chunks of blocks.
LENGTHS = [1, 2, 3, 4, 5, 127, 128, 129, 255, 257, 511, 513, 2047, 2049, 4095, 4096, 4097, 20_001]


def sparse(rng, shape, dtype, share):
    """An array of which about this share is not 0."""
    return np.where(rng.random(shape) < share, helpers.integers(rng, shape, dtype, 1, 9), 0).astype(
        dtype
    )


def check(x, array, message=""):
    message = f"{x.dtype} {x.shape} {message}"
    expected = np.nonzero(helpers.widened(x))
    result = vg.nonzero(array)
    assert type(result) is tuple and len(result) == x.ndim, message
    for one, reference in zip(result, expected, strict=True):
        assert_same(one, reference, message)
    assert_same(vg.argwhere(array), np.argwhere(helpers.widened(x)), message)
    assert_same(vg.flatnonzero(array), np.flatnonzero(helpers.widened(x)), message)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_layouts(device, rng, dtype):
    x = sparse(rng, (5, 4, 6), dtype, 0.5)
    for layout, make in LAYOUTS.items():
        check(x, make(device, x), layout)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.float32, np.float64], ids=str)
def test_shapes(device, rng, shape, dtype):
    for share in (0, 0.01, 0.5, 1):
        x = sparse(rng, shape, np.dtype(dtype), share)
        check(x, put(device, x))


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_lengths(device, rng, dtype):
    for n in LENGTHS:
        x = sparse(rng, n, dtype, 0.3)
        check(x, put(device, x))
        check(x[1:], put(device, x)[1:], "shifted")


@pytest.mark.parametrize(("dtype", "n"), [(np.int8, 4_300_001), (np.float64, 300_001)], ids=str)
def test_many_chunks(device, rng, dtype, n):
    """Of one tile, and of several; and one element alone, first, last and between."""
    x = sparse(rng, n, np.dtype(dtype), 0.02)
    check(x, put(device, x))
    for place in (0, n // 2, n - 1):
        alone = np.zeros(n, dtype)
        alone[place] = 1
        assert vg.flatnonzero(put(device, alone)).tolist() == [place]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_which_floats_are_zero(device, dtype):
    smallest = helpers.finfo(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, np.nan, -np.nan, smallest, -smallest, np.inf, -np.inf, 1], dtype)
    assert vg.flatnonzero(put(device, x)).tolist() == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("value", [-128, 1, 127])
def test_every_byte_that_is_not_zero(device, value):
    x = np.array([0, value, 0, value], np.int8)
    assert vg.nonzero(put(device, x))[0].tolist() == [1, 3]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)], ids=str)
def test_of_nothing(device, shape):
    x = np.zeros(shape, np.float32)
    check(x, put(device, x))


def test_of_an_array_without_axes(device):
    for value in (0.0, 2.0):
        x = np.array(value, np.float32)
        array = put(device, x)
        with helpers.refused(device, ValueError, array, match="nonzero.*axes"):
            vg.nonzero(array)
        assert_same(vg.argwhere(array), np.argwhere(x))
        assert_same(vg.flatnonzero(array), np.flatnonzero(x))


def test_methods_and_numpy(device, rng):
    x = sparse(rng, (6, 7), np.dtype(np.int64), 0.4)
    for one, expected in zip(put(device, x).nonzero(), x.nonzero(), strict=True):
        assert_same(one, expected)
    found = vg.nonzero(x, device=device)
    assert all(type(one) is np.ndarray for one in found)
    assert (x[found] != 0).all() and len(found[0]) == np.count_nonzero(x)
    assert type(vg.argwhere(x, device=device)) is np.ndarray
    assert_same(vg.flatnonzero(x, device=device), np.flatnonzero(x))


def test_broadcast_arrays(device, rng):
    x = sparse(rng, (1, 30), np.dtype(np.uint8), 0.5)
    check(np.broadcast_to(x, (40, 30)), vg.broadcast_to(put(device, x), (40, 30)))


def test_what_is_refused(device):
    for function in (vg.nonzero, vg.argwhere, vg.flatnonzero):
        with pytest.raises(TypeError, match=function.__name__):
            function("12", device=device)
        with pytest.raises(TypeError, match=function.__name__):
            function(None, device=device)
