"""Copies that permute axes too short for tiles of two, and reductions of axes that do not touch."""

import itertools
import math

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, assert_within, put
from test_reductions import NAMES, REDUCTIONS, check, numbers

import pyvecgpu as vg

SHAPES = [
    (2, 2500, 13),
    (3, 5, 4, 15, 41),
    (20, 41, 14, 7),
    (4, 5, 16, 4, 9, 3),
    (33, 40, 30),
    (7, 5003),
    (2, 3, 2, 3, 2, 3, 5, 61),
    (12001, 3),
]


def some_orders(rng, ndim):
    orders = list(itertools.permutations(range(ndim)))
    return [orders[i] for i in rng.permutation(len(orders))[:8]]


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_permuted_copies(device, rng, shape, dtype):
    x = helpers.numbers(rng, shape, dtype)
    array = put(device, x)
    for axes in some_orders(rng, len(shape)):
        assert_same(vg.permute_dims(array, axes).copy(), np.transpose(x, axes), axes)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if len(shape) < 7], ids=str)
def test_permuted_parts(device, rng, shape):
    """Parts of both sides: rows that lie apart, and begin where no vector does."""
    for dtype in (np.uint8, np.float16, np.float32, np.float64):
        whole = helpers.integers(rng, [n + 3 for n in shape], np.dtype(dtype))
        keys = tuple(slice(1, 1 + n) for n in shape)
        x, array = whole[keys], put(device, whole)[keys]
        for axes in some_orders(rng, len(shape))[:3]:
            turned = np.transpose(x, axes)
            frame = vg.zeros([n + 5 for n in turned.shape], dtype=whole.dtype, device=device)
            inside = tuple(slice(2, 2 + n) for n in turned.shape)
            frame[inside] = vg.permute_dims(array, axes)
            expected = np.zeros(frame.shape, whole.dtype)
            expected[inside] = turned
            assert_same(frame, expected, axes)
            assert_same(vg.permute_dims(array, axes).copy(), turned, axes)
            backwards = vg.permute_dims(vg.flip(array, axis=0), axes).copy()
            assert_same(backwards, np.transpose(x[::-1], axes), axes)


# Every tenth of rows first and of columns first, in chunks and not, beside an axis outside.
APART = [
    ((70, 3, 60), (0, 2)),
    ((5, 3, 1000), (0, 2)),
    ((2, 1500, 101), (0, 2)),
    ((900, 7, 70), (0, 2)),
    ((2, 90, 3, 60), (1, 3)),
    ((3, 6, 4, 1000), (1, 3)),
    ((3, 4, 5, 6), (0, 2)),
    ((3, 4, 5, 6), (0, 3)),
    ((2, 3, 4, 5, 6), (0, 2, 4)),
    ((13, 11, 12), (0, 2)),
    ((2, 2, 2049), (0, 2)),
]


@pytest.mark.parametrize("name", [n for n in NAMES if REDUCTIONS[n].result != "index"])
@pytest.mark.parametrize("shape, axes", APART, ids=str)
def test_reductions_of_axes_apart(device, rng, name, shape, axes):
    few = (np.int64, np.float32)
    many = (np.int8, *few, np.uint64, np.float64, np.float16)
    for dtype in few if math.prod(shape) > 10**5 else many:
        x = numbers(rng, name, shape, np.dtype(dtype))
        array = put(device, x)
        check(device, name, x, array, axes)
        check(device, name, x[..., 1:], array[..., 1:], axes, keepdims=True)
        order = rng.permutation(len(shape))
        turned = vg.permute_dims(array, tuple(int(i) for i in order))
        moved = tuple(int(np.flatnonzero(order == axis)[0]) for axis in axes)
        check(device, name, np.transpose(x, order), turned, moved)


@pytest.mark.parametrize("shape, axes", APART, ids=str)
def test_variances_of_axes_apart(device, rng, shape, axes):
    x = rng.standard_normal(shape)
    expected = np.var(x, axis=axes)
    assert_within(vg.var(put(device, x), axis=axes), expected, expected * 1e-12)
    total = np.log(np.sum(np.exp(x), axis=axes))
    found = vg.logsumexp(put(device, x), axis=axes)
    assert_within(found, total, np.abs(total) * 1e-12 + 1e-12)


@pytest.mark.parametrize("length", [2, 7, 9, 17, 33, 40, 130])
def test_reductions_of_a_short_first_axis(device, rng, length):
    """Columns whose number no vector divides, and so many that blocks get wide."""
    for name in ("sum", "max", "argmax", "argmin", "mean"):
        for dtype in (np.uint8, np.float16, np.float32, np.int64):
            for width in (301, 2050):
                x = numbers(rng, name, (length, width), np.dtype(dtype))
                check(device, name, x, put(device, x), 0)
                check(device, name, x[:, 3:], put(device, x)[:, 3:], 0)


def test_wide_blocks(device, rng):
    x = numbers(rng, "sum", (5, 140_003), np.dtype(np.int64))
    check(device, "sum", x, put(device, x), 0)


@pytest.mark.parametrize("width", [3, 7, 15, 30, 54, 131, 511])
def test_narrow_columns_of_many_rows(device, rng, width):
    """A block takes rows side by side, as many as a power of two says, and some are left over."""
    for length in (8 * 1024 // width + 5, 20_000 // width + 1):
        for dtype in (np.uint8, np.float32, np.float64):
            x = numbers(rng, "sum", (3, length, width), np.dtype(dtype))
            array = put(device, x)
            for name in ("sum", "max", "argmin"):
                check(device, name, x, array, 1)
                check(device, name, x[:, 1:], array[:, 1:], 1)
            spread = x.astype(np.float64).var(axis=1)
            assert_within(vg.var(array, axis=1), spread, 1e-5 * spread)
        for place in (0, 1, length // 2, length - 2, length - 1):  # what is found, and where
            x = np.zeros((2, length, width), np.int32)
            x[:, place:] = 1
            check(device, "argmax", x, put(device, x), 1)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equals(device, rng, name):
    """The lowest and the highest numbers there are, alone and together, in rows and in columns."""
    for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64):
        ends = np.iinfo(dtype)
        for values in ([ends.min], [ends.max], [ends.min, ends.max]):
            x = rng.choice(np.array(values, dtype), (61, 70))
            for axis in (None, 0, 1):
                check(device, name, x, put(device, x), axis)
    for dtype in (np.float16, np.float32, np.float64):
        for values in ([-np.inf], [np.inf], [-np.inf, -0.0], [0.0, -0.0], [np.nan, np.inf]):
            x = rng.choice(np.array(values, dtype), (61, 70))
            for axis in (None, 0, 1):
                check(device, name, x, put(device, x), axis)


def test_long_rows_are_cut_evenly(device, rng):
    """Between 8 MiB and 64 MiB and beyond, of elements of one byte so that it takes no time."""
    for size in (8 * 2**20 + 1, 20_000_003):
        x = helpers.integers(rng, size, np.dtype(np.uint8))
        assert vg.sum(put(device, x)).item() == int(x.sum(dtype=np.uint64))
        assert vg.argmax(put(device, x)).item() == int(np.argmax(x))
        assert math.isclose(vg.mean(put(device, x)).item(), float(x.mean()), rel_tol=1e-6)
