"""Reductions of columns whose packs cannot be loaded at once: a thread loads one column, in more
rows, where few threads lie side by side. Which elements are added to which does not change by it.
"""

import helpers
import numpy as np
import pytest
from helpers import assert_same, put
from products import launched

import pyvecgpu as vg

SHAPES = [(1, 700, 24), (3, 700, 24), (2, 1030, 60), (5, 320, 12), (2, 513, 132), (30, 64, 8)]


def shifted(device, x):
    """The same one element into its memory, so that no pack of it is on an address for one."""
    whole = vg.empty(x.size + 1, dtype=x.dtype, device=device)
    whole[1:] = put(device, x.reshape(-1))
    return whole[1:].reshape(x.shape)


@pytest.mark.devices("sim", "cuda")  # NumPy's do
@pytest.mark.parametrize("dtype", ("uint8", "int16", "float16", "float32", "float64", "complex64"))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_do_not_depend_on_alignment(device, rng, shape, dtype):
    x = helpers.numbers(rng, shape, np.dtype(dtype))
    aligned, unaligned = put(device, x), shifted(device, x)
    for function in (vg.sum, vg.mean, vg.max, vg.argmin, vg.prod, vg.any):
        if x.dtype.kind == "c" and function in (vg.max, vg.argmin):
            continue
        expected = helpers.host(function(aligned, axis=1))
        assert_same(function(unaligned, axis=1), expected, function.__name__)
        backwards = function(unaligned[..., ::-1], axis=1)
        assert_same(backwards, expected[..., ::-1], f"{function.__name__}, backwards")


@pytest.mark.parametrize("dtype", ("uint8", "float16", "float32", "int64", "float64"))
@pytest.mark.parametrize("columns", (17, 21, 33, 45, 61, 99, 137))
def test_columns_that_no_pack_divides(device, rng, columns, dtype):
    for rows in (255, 257, 1348):
        x = helpers.integers(rng, (3, rows, columns), np.dtype(dtype), 0, 3)
        array = put(device, x)
        assert_same(vg.max(array, axis=1), x.max(axis=1))
        assert_same(vg.argmax(array, axis=1), x.argmax(axis=1))
        found = vg.sum(array, axis=1)
        assert_same(found, x.astype(np.float64).sum(axis=1).astype(helpers.host(found).dtype))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("dtype", ("bool", "int8", "bfloat16", "float32", "int64", "complex64"))
def test_packs_that_begin_anywhere(device, rng, dtype):
    """Totals of columns at each distance from an address for packs, with and without gaps.

    Each has the bits of the columns the other way round, which no pack has.
    """
    for _ in range(60):
        outer, length = rng.choice([1, 1, 2, 5]), rng.choice([8, 9, 31, 257, 1000, 2100])
        most = 70 if np.dtype(dtype).itemsize < 8 else 30  # wide ones of 8 bytes go another way
        inner, gap, start = rng.integers(2, most), rng.choice([0, 0, 1, 3, 4]), rng.integers(0, 4)
        stored = vg.empty(start + outer * length * (inner + gap), dtype=dtype, device=device)
        stored[...] = put(device, helpers.numbers(rng, stored.shape, np.dtype(dtype)))
        rows = stored[start:].reshape((outer, length, inner + gap))
        for x in (rows[..., :inner], rows[..., gap:], rows[::-1, 1:, :inner]):
            for function in (vg.sum, vg.prod) if dtype == "complex64" else (vg.sum, vg.argmax):
                expected = function(x[..., ::-1], axis=1)[..., ::-1]
                text = f"{function.__name__} of {x.shape}, from {start}, gaps of {gap}"
                assert_same(function(x, axis=1), helpers.host(expected), text)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    ("shape", "anywhere"),
    [
        ((193, 1700, 8), False),
        ((64, 1000, 36), False),
        ((8, 80, 3400), True),
        ((4, 700, 1030), True),
    ],
)
def test_axes_that_alternate(device, rng, shape, anywhere):
    """Of more elements than two million only those whose results take few threads in all.

    (And of these those of which no block has room for a result's neighbours: test_two_axes.py.)
    """
    x = helpers.integers(rng, shape, np.dtype(np.uint8), 0, 9)
    before = launched(device, "anywhere_kernel")
    assert_same(vg.sum(put(device, x), axis=(0, 2)), x.sum(axis=(0, 2), dtype=np.uint64))
    assert (launched(device, "anywhere_kernel") > before) == anywhere
