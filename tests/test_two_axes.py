"""Reductions of two axes with a kept one between: neighbours' totals, merged by their block.

What is drawn is such that every way of loading, and of sharing columns, is taken: long and short
groups, several groups a block and one, threads below each other, a whole last block and a part of
one; whole packs, shifted ones and single elements.
"""

import math

import helpers
import numpy as np
import pytest
from helpers import assert_within, put
from products import launched, launches

import pyvecgpu as vg

BLOCKS = 132  # from which on it is done so
DTYPES = [*helpers.FLOATS, *map(np.dtype, ("bool", "int8", "uint16", "int32", "int64"))]
OTHERS = ("anywhere_kernel", "merge_kernel", "thin_columns_kernel", "wide_columns_kernel")
HEAVY = ("var", "std", "logsumexp")  # which add up more before that pays


def drawn(rng, dtype, name):
    """(outer, length, inner, group): a shape whose axes 1 and 3 are reduced within blocks."""
    size, most = (2 if dtype.itemsize >= 8 else 4), (512 if dtype.itemsize >= 8 else 1024)
    group = int(
        math.exp(rng.uniform(math.log(2), math.log(min(most, 32 if name in HEAVY else most))))
    )
    if rng.integers(3) == 0:
        group = max(2, group // size * size)
    least = 5 if group <= 64 else 12
    length = int(rng.integers(least, 65 if rng.integers(2) else least + 9))
    down = 1
    while length >= 16 * down and 128 // down >= 32 and 128 // down * size >= group:
        down *= 2
    columns = 256 // down * size // group * group
    outer = int(rng.choice([1, 1, 2, 5]))
    blocks = BLOCKS // outer + 1
    inner = (blocks * columns + int(rng.integers(0, columns))) // group
    return outer, length, inner, group


def layouts(device, rng, x):
    """Arrays of the same values, one after the other, that begin or go on elsewhere."""
    outer, length, inner, group = x.shape
    yield "whole", put(device, x)
    before = int(rng.integers(1, 8))
    flat = np.concatenate([np.ones(before, x.dtype), x.reshape(-1)])
    yield f"from {before}", vg.reshape(put(device, flat)[before:], x.shape)
    more = int(rng.integers(1, 3))
    wide = np.concatenate([x, np.ones((outer, length, more, group), x.dtype)], axis=2)
    yield f"{more} more", put(device, wide)[:, :, :inner]
    yield "backwards", put(device, np.ascontiguousarray(x[::-1, ::-1]))[::-1, ::-1]


def names_for(dtype):
    """The reductions of a dtype."""
    if dtype.kind == "b":
        return ["sum", "any", "all"]
    floats = ["mean", "var", "std", "logsumexp", "nansum"] if helpers.is_float(dtype) else []
    return ["sum", "max", "min", "any", "all", *floats]


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_totals_of_neighbours(device, rng, dtype):
    """By one launch, and the same bits however the elements lie."""
    for name in names_for(dtype):
        shape = drawn(rng, dtype, name)
        x = values(rng, shape, dtype, name)
        found = {}
        for layout, array in layouts(device, rng, x):
            before, others = launches(device), launched(device, *OTHERS)
            found[layout] = helpers.host(getattr(vg, name)(array, axis=(1, 3)))
            message = f"{name} {shape} {layout}"
            assert launches(device) - before == 1, message
            assert launched(device, *OTHERS) == others, message
        whole = found["whole"]
        if name in ("sum", "nansum") and helpers.is_float(dtype):
            assert_within(whole, *helpers.sum_tolerance(x, (1, 3), whole.dtype, device), message)
        elif helpers.is_float(whole.dtype):
            expected = reference(name, x)
            units = 64 if whole.dtype == np.float64 else 4  # the reference rounds, too
            limit = units * helpers.UNIT_ROUNDOFF[whole.dtype] * (np.abs(expected) + 1)
            assert_within(whole, expected, limit, message)
        else:
            np.testing.assert_array_equal(whole, getattr(np, name)(x, axis=(1, 3)), message)
        for layout, others in found.items():
            assert others.tobytes() == whole.tobytes(), f"{name} {shape} {layout}"


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    ("shape", "dtype", "nested"),
    [
        ((132, 5, 37, 7), "float64", True),
        ((131, 5, 37, 7), "float64", False),
        ((132, 2, 37, 7), "float64", False),
        ((200, 5, 9, 14), "float64", False),  # 63 threads
        ((200, 5, 10, 13), "float64", True),
        ((300, 3, 8, 16), "float64", True),
        ((300, 2, 8, 16), "float64", False),
        ((300, 2, 32, 4), "float64", True),
        ((140, 7, 2, 65), "float64", False),
        ((140, 8, 2, 65), "float64", True),
        ((140, 5, 2, 513), "float64", False),
        ((140, 5, 2, 513), "float32", True),
        ((140, 65, 2, 128), "float16", False),
        ((140, 65, 2, 129), "float16", True),
    ],
)
def test_which_are_merged_so(device, rng, shape, dtype, nested):
    """Where blocks are full, and enough is added up before; into `out`, and NaN stays NaN."""
    x = rng.integers(-9, 9, shape).astype(dtype)
    x[-1, -1, -1, -1] = np.nan
    array = put(device, x)
    out = vg.zeros((shape[0], 1, 2 * shape[2], 1), dtype=dtype, device=device)[:, :, ::-2]
    before, columns = launches(device), launched(device, "columns_kernel")
    assert vg.max(array, axis=(1, 3), keepdims=True, out=out) is out
    now = launches(device) - before, launched(device, "columns_kernel") - columns
    assert (now == (1, 1)) == nested
    np.testing.assert_array_equal(helpers.host(out)[:, 0, :, 0], x.max((1, 3)))


@pytest.mark.devices("sim", "cuda")
def test_neighbours_with_gaps_between_groups(device, rng):
    """Columns of rows that are longer than what is reduced of them are no neighbours."""
    for dtype in map(np.dtype, ("int32", "float64")):
        outer, length, inner, group = drawn(rng, dtype, "sum")
        x = rng.integers(-9, 9, (outer, length, inner, group + 1)).astype(dtype)
        array = put(device, x)
        for part in (slice(None, group), slice(1, None), slice(None, None, 2)):
            found = helpers.host(vg.sum(array[..., part], axis=(1, 3)))
            np.testing.assert_array_equal(found, x[..., part].sum((1, 3)), str(part))


@pytest.mark.devices("sim", "cuda")
def test_totals_of_neighbours_that_are_complex(device, rng):
    """Products, of numbers whose parts are whole."""
    for dtype in helpers.COMPLEX:
        shape = drawn(rng, np.dtype("f8"), "prod")
        x = rng.choice([1, -1, 1j, -1j], shape).astype(dtype)
        for layout, array in layouts(device, rng, x):
            found = helpers.host(vg.prod(array, axis=(1, 3)))
            np.testing.assert_array_equal(found, x.prod((1, 3)), f"{shape} {layout}")


def values(rng, shape, dtype, name):
    """Numbers whose totals tell: of truth a few that are unlike the others."""
    if name in ("any", "all"):
        few = rng.integers(0, 5 * math.prod(shape[1::2]), shape) == 0
        return (few if name == "any" else ~few).astype(dtype)
    if helpers.is_float(dtype) and name not in ("sum", "nansum"):
        return rng.standard_normal(shape).astype(dtype)
    return helpers.numbers(rng, shape, dtype)


def reference(name, x):
    """What NumPy says of float64."""
    wide = x.astype(np.float64)
    if name == "logsumexp":
        most = wide.max((1, 3), keepdims=True)
        return np.log(np.exp(wide - most).sum((1, 3))) + most[:, 0, :, 0]
    return getattr(np, name)(wide, axis=(1, 3))
