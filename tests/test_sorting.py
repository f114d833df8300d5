"""sort, argsort, searchsorted and what is made of them, beside NumPy: values, order, layouts."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import DTYPES, FLOATS, LAYOUTS, assert_same, put

import pyvecgpu as vg

# Around what a thread, a group of threads and a block sort, and what is left to the radix sort.
LENGTHS = [
    1,
    2,
    3,
    7,
    8,
    9,
    16,
    17,
    31,
    32,
    33,
    63,
    65,
    127,
    128,
    129,
    1023,
    1025,
    2049,
    4095,
    4096,
]
LONG = [4097, 5000, 8191, 8192, 8193, 20_001]
SHAPES = [(1, 1), (5, 7), (3, 40, 2), (130, 9), (3, 4097), (4097, 2), (2, 1, 4500), (1, 4097, 1)]
FEW = [np.dtype(name) for name in ("?", "i1", "u2", "i4", "f4", "i8", "f8")]


def drawn(rng, shape, dtype):
    """Numbers with equal ones among them, and of floats NaN, infinities and zeros of both signs."""
    dtype = np.dtype(dtype)
    x = helpers.integers(rng, shape, dtype, 0 if dtype.kind in "bu" else -60, 60)
    if helpers.is_float(dtype) and x.size:
        flat = x.reshape(-1)
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5], dtype)
        places = rng.random(flat.size) < 0.3
        flat[places] = rng.choice(special, int(places.sum()))
    return x


def in_order(x, axis, descending=False):
    """The sorted elements: NumPy's, with -0.0 in front of 0.0."""
    wide = helpers.widened(x)
    if helpers.is_float(x.dtype):  # by value, then by sign
        order = np.lexsort((~np.signbit(wide), wide), axis=axis)
        result = np.take_along_axis(x, order, axis)
    else:
        result = np.sort(x, axis=axis)
    return np.flip(result, axis) if descending else result


def order(x, axis, descending=False):
    """The stable order, of descending ones as the array API has it."""
    wide = helpers.widened(x)
    if not descending:
        return np.argsort(wide, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(wide, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def assert_sorted(result, expected, message):
    """The same numbers and signs of zeros; NaN is NaN, whatever its bits are."""
    result, expected = helpers.widened(helpers.host(result)), helpers.widened(expected)
    assert result.dtype == expected.dtype and result.shape == expected.shape, message
    np.testing.assert_array_equal(result, expected, err_msg=message)
    if result.dtype.kind == "f":
        there = ~np.isnan(result)
        assert (np.signbit(result) == np.signbit(expected))[there].all(), message


def check(x, array, axis=-1, message=""):
    for descending in (False, True):
        text = f"{x.dtype} {x.shape} axis {axis} {message} {'down' if descending else 'up'}"
        assert_sorted(
            vg.sort(array, axis, descending=descending), in_order(x, axis, descending), text
        )
        assert_same(
            vg.argsort(array, axis, descending=descending), order(x, axis, descending), text
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lengths(device, rng, dtype):
    for n in LENGTHS + LONG:
        x = drawn(rng, n, dtype)
        check(x, put(device, x))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u8"])
def test_few_equal_elements(device, rng, dtype):
    """Among many that differ, where the CPU device sorts by another way than a stable one."""
    for n in (511, 512, 700, 4095, 4096, 9001):
        x = (rng.permutation(n) * 1_000_003).astype(dtype)
        places = rng.permutation(n)[: n // 25 * 2].reshape(2, -1)
        x[places[0]] = x[places[1]]
        check(x, put(device, x))
        if np.dtype(dtype).kind == "f":
            x[places[0][:6]] = [np.nan, np.nan, 0.0, -0.0, -0.0, 0.0]
            check(x, put(device, x))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FEW, ids=str)
def test_axes(device, rng, shape, dtype):
    x = drawn(rng, shape, dtype)
    for axis in range(-1, len(shape) - 1):
        check(x, put(device, x), axis)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layouts(device, rng, dtype):
    x = drawn(rng, (5, 4, 6), dtype)
    for layout, make in LAYOUTS.items():
        for axis in range(3):
            check(x, make(device, x), axis, layout)


def test_rows_of_every_short_length(device, rng):
    for n in range(1, 40):
        x = drawn(rng, (131, n), np.float32)
        check(x, put(device, x))


@pytest.mark.parametrize("dtype", FEW, ids=str)
def test_many_long_rows(device, rng, dtype):
    x = drawn(rng, (37, 4099), dtype)
    check(x, put(device, x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [100, 6000])
def test_the_whole_range(device, rng, dtype, n):
    """Every bit counts: the extremes of integers, and floats of all exponents."""
    if dtype.kind == "b":
        x = rng.random(n) < 0.5
    elif helpers.is_float(dtype):
        x = rng.integers(0, 256, n * dtype.itemsize, dtype=np.uint8).view(dtype)
    else:
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, n, dtype, endpoint=True)
        x[:2] = limits.min, limits.max
    check(x, put(device, x))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)], ids=str)
def test_of_nothing(device, shape):
    x = np.zeros(shape, np.float32)
    for axis in range(x.ndim):
        check(x, put(device, x), axis)


def test_axis_none_numpy_and_methods(device, rng):
    x = drawn(rng, (6, 7), np.int32)
    array = put(device, x)
    assert_same(vg.sort(array, axis=None), np.sort(x, axis=None))
    assert_same(vg.argsort(array, None), np.argsort(x, None, "stable"))
    assert_same(vg.sort(array, 0, "stable"), np.sort(x, 0))
    assert type(vg.sort(x, device=device)) is np.ndarray
    assert_same(vg.sort(x, device=device), np.sort(x))
    assert_same(array.argsort(0), np.argsort(x, 0, "stable"))
    assert array.sort(0) is None
    assert_same(array, np.sort(x, 0))
    view = array[:, ::-2]
    view.sort(descending=True)
    expected = np.sort(x, 0)
    expected[:, ::-2] = -np.sort(-expected[:, ::-2])
    assert_same(array, expected)


@pytest.mark.parametrize("dtype", ["f4", "i8", "f8", "i1"])
@pytest.mark.parametrize("shape", [(40,), (5000,), (3, 4100), (7, 9)], ids=str)
def test_in_place(device, rng, dtype, shape):
    x = drawn(rng, shape, dtype)
    array = put(device, x)
    array.sort()
    assert_sorted(array, in_order(x, -1), f"{dtype} {shape}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_searchsorted(device, rng, dtype):
    for n in (0, 1, 2, 33, 1000):
        x, values = in_order(drawn(rng, n, dtype), 0), drawn(rng, (6, 37), dtype)
        for side in ("left", "right"):
            expected = np.searchsorted(
                *[helpers.widened(a).astype("f8") for a in (x, values)], side
            )
            if dtype.itemsize == 8:
                expected = np.searchsorted(x, values, side)
            assert_same(vg.searchsorted(put(device, x), put(device, values), side), expected)
            strided = vg.searchsorted(put(device, x), put(device, values).T[::-2], side)
            assert_same(strided, expected.T[::-2])


@pytest.mark.parametrize("length", [4097, 30_001])
def test_many_values_begin_among_samples(device, rng, length):
    """A block has every so many-th of the sorted elements in shared memory; some are equal."""
    for dtype in (np.float64,):
        x = np.sort(rng.integers(-length // 3, length // 3, length)).astype(dtype)
        values = rng.integers(-length // 2, length // 2, 2**22 + 3).astype(dtype)
        for side in ("left", "right"):
            found = vg.searchsorted(put(device, x), put(device, values), side)
            assert_same(found, np.searchsorted(x, values, side))


def test_searchsorted_of_numbers_and_dtypes(device, rng):
    x = np.array([1, 2, 2, 5, 9])
    array = put(device, x)
    for value in (2, 2.0, 2.5, -1, 2**40, True, 100.0):
        for side in ("left", "right"):
            result = vg.searchsorted(array, value, side=side)
            assert_same(result, np.asarray(np.searchsorted(x, value, side)))
    small = np.array([1, 5, 200], np.uint8)
    assert vg.searchsorted(put(device, small), 300).item() == 3
    assert vg.searchsorted(put(device, small), -1).item() == 0
    values = np.array([0.5, 2.0, 8.9, np.nan], np.float32)
    assert_same(vg.searchsorted(array, put(device, values)), np.searchsorted(x, values))
    order = rng.permutation(5)
    shuffled = put(device, x[np.argsort(order)])
    given = vg.searchsorted(shuffled, put(device, values), "right", put(device, order))
    assert_same(given, np.searchsorted(x, values, "right"))
    assert_same(array.searchsorted(put(device, x), "right"), x.searchsorted(x, "right"))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lexsort(device, rng, axis):
    keys = [rng.integers(0, 4, (30, 40)).astype(name) for name in ("i4", "f4", "u1")]
    expected = np.lexsort(keys, axis)
    assert_same(vg.lexsort([put(device, key) for key in keys], axis), expected)
    stacked = rng.integers(0, 3, (3, 50))
    assert_same(vg.lexsort(put(device, stacked)), np.lexsort(stacked))


@pytest.mark.parametrize("kth", [0, 3, -1, [2, 5]], ids=str)
def test_partition(device, rng, kth):
    x = drawn(rng, (9, 12), np.float32)
    array = put(device, x)
    for axis in (0, 1, -1, None):
        expected = np.sort(x, axis=axis)
        part, places = vg.partition(array, kth, axis), vg.argpartition(array, kth, axis)
        flat = x if axis is not None else x.ravel()
        picked = np.take_along_axis(flat, helpers.host(places), -1 if axis is None else axis)
        for found in (helpers.host(part), picked):
            there = np.take(found, kth, -1 if axis is None else axis)
            np.testing.assert_array_equal(
                there, np.take(expected, kth, -1 if axis is None else axis)
            )
    array.partition(kth, 0)
    np.testing.assert_array_equal(helpers.host(array), np.sort(x, 0))


@pytest.mark.parametrize("dtype", [np.dtype("i4"), *FLOATS], ids=str)
def test_top_k(device, rng, dtype):
    x = drawn(rng, (8, 30), dtype)
    for axis in (0, 1):
        for mode in ("largest", "smallest"):
            values, indices = vg.top_k(put(device, x), 5, axis=axis, mode=mode)
            first = vg.top_k(put(device, x), 1, axis=axis, mode=mode)
            for one, found in zip(first, (values, indices), strict=True):
                assert_same(one, helpers.host(found).take([0], axis))
            expected = np.take(order(x, axis, mode == "largest"), range(5), axis)
            assert_same(indices, expected)
            assert_sorted(values, np.take_along_axis(x, expected, axis), mode)


# Rows of every kernel, whose blocks have 128 to 1,024 threads; those that are sorted; many rows.
TOP_SHAPES = [(3, 128), (2, 129, 2), (3, 511), (2, 512), (513,), (2, 2048), (2049, 2), (8192,)]
TOP_SHAPES += [(8193,), (16384,), (16385,), (1025, 9), (1030, 130)]


@pytest.mark.parametrize("shape", TOP_SHAPES, ids=str)
def test_top_k_of_rows(device, rng, shape):
    """Equal elements in the order of their places, NaN and zeros among them."""
    names = ("u1", "i2", "f4", "f8") if len(shape) > 1 else ("u1", "f8")
    for dtype in map(np.dtype, names):
        x = helpers.integers(rng, shape, dtype, -3, 3)
        if dtype.kind == "f":
            x[rng.random(shape) < 0.1] *= -1  # zeros with a sign
            x.reshape(-1)[:: x.size // 3] = np.nan
        for axis, mode in itertools.product(range(x.ndim), ("largest", "smallest")):
            rows = np.moveaxis(x, axis, -1)  # whose last elements are the first ones, but for NaN
            rows[..., -1] = 9 if mode == "largest" else 0 if dtype.kind == "u" else -9
            for k in (1, 2, 33, 64, 65):
                if k > min(shape[axis], 64 if x.size < 20_000 else 2):
                    continue
                expected = np.take(order(x, axis, mode == "largest"), range(k), axis)
                for array in (put(device, x), put(device, x.T.copy()).T):
                    values, indices = vg.top_k(array, k, axis=axis, mode=mode)
                    assert_same(indices, expected)
                    assert_same(values, np.take_along_axis(x, expected, axis))


def drawn_rows(rng, dtype, shape):
    """Elements that differ much, hardly, or not at all, or stand in order already."""
    kind = rng.integers(4)
    if kind == 0:
        return np.zeros(shape, dtype)
    if dtype.kind == "f":
        x = rng.standard_normal(shape).astype(dtype)
        return x if kind == 1 else np.round(x) if kind == 2 else np.sort(x, 0)
    info = np.iinfo(dtype)
    low, high = (info.min, info.max) if kind != 2 else (0, 3)
    x = rng.integers(low, high, shape, dtype, endpoint=True)
    return np.sort(x, 0) if kind == 3 else x


@pytest.mark.parametrize("part", range(6))
def test_top_k_of_random_rows(device, rng, part):
    """Of one block and of several stages, of few and of many, along any axis."""
    for i in range(5):
        dtype = np.dtype(str(rng.choice(["u1", "i1", "u2", "f2", "i4", "f4", "u8", "f8"])))
        length = int(2 ** rng.uniform(0, 12 if i else 17))
        shape = [max(1, int(2 ** rng.uniform(-3, 5)) // (1 if i else 16)) for _ in range(2)]
        axis = int(rng.integers(3))
        shape.insert(axis, length)
        x = drawn_rows(rng, dtype, tuple(shape))
        k = int(rng.integers(1, min(length, 2 ** rng.integers(1, 12)) + 1))
        mode = str(rng.choice(["largest", "smallest"]))
        expected = np.take(order(x, axis, mode == "largest"), range(k), axis)
        values, indices = vg.top_k(put(device, x), k, axis=axis, mode=mode)
        assert_same(indices, expected)
        assert_same(values, np.take_along_axis(x, expected, axis))


def test_top_k_along_a_far_axis(device, rng):
    """Of so many elements that they are brought into order first."""
    x = rng.integers(-100, 100, (40, 54_000)).astype("i2")
    values, indices = vg.top_k(put(device, x), 3, axis=0)
    expected = np.take(order(x, 0, True), range(3), 0)
    assert_same(indices, expected)
    assert_same(values, np.take_along_axis(x, expected, 0))


def test_what_is_refused(device):
    x = put(device, np.arange(12.0).reshape(3, 4))
    row = x[0]
    for function in (vg.sort, vg.argsort):
        with helpers.refused(device, np.exceptions.AxisError, x, match="axis 2"):
            function(x, 2)
        with helpers.refused(device, ValueError, x, match="kind"):
            function(x, kind="bubble")
        with pytest.raises(TypeError, match=function.__name__):
            function("12", device=device)
    with helpers.refused(device, ValueError, x, match="searchsorted.*one dimension"):
        vg.searchsorted(x, row)
    with helpers.refused(device, ValueError, x, match="searchsorted.*side"):
        vg.searchsorted(row, x, side="middle")
    with helpers.refused(device, TypeError, x, match="sorter"):
        vg.searchsorted(row, x, sorter=row)
    with helpers.refused(device, IndexError, x, match="out of bounds"):
        vg.searchsorted(row, x, sorter=put(device, np.array([0, 1, 2, 4]))).numpy()
    with helpers.refused(device, ValueError, x, match="lexsort"):
        vg.lexsort((x, row))
    with helpers.refused(device, ValueError, x, match="kth=4"):
        vg.partition(x, 4)
    with helpers.refused(device, ValueError, x, match="top_k: 5 of 4"):
        vg.top_k(x, 5)
    with helpers.refused(device, ValueError, x, match="mode"):
        vg.top_k(x, 1, mode="best")


def test_complex_numbers_have_no_order(device):
    x = put(device, np.ones(3, np.complex64))
    for function in (vg.sort, vg.argsort, vg.median, lambda x: vg.searchsorted(x, x)):
        with helpers.refused(device, TypeError, x, match="complex64"):
            function(x)


def test_a_read_only_array_is_not_sorted(device):
    array = vg.broadcast_to(put(device, np.arange(3.0)), (2, 3))
    with pytest.raises(ValueError, match="read-only"):
        array.sort()


@pytest.mark.devices("cpu")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint64"])
@pytest.mark.parametrize("differing", [3, 5000, 10**9])
def test_many_elements_are_sorted_stably(device, dtype, differing):
    """Long rows go another way, which puts equal elements in their order afterwards."""
    rng = np.random.default_rng(differing)
    with np.errstate(over="ignore"):
        values = (rng.integers(-differing, differing, 20_000) * 0.125).astype(dtype)
    for few in (0, 40):
        if values.dtype.kind == "f":
            values[rng.integers(0, values.size, few)] = np.nan
        values[rng.integers(0, values.size, few)] = -0.0
        values[rng.integers(0, values.size, few)] = values[7]
        array = put(device, values)
        assert_same(vg.argsort(array), order(values, -1), f"{few} of each")
        assert_sorted(vg.sort(array), in_order(values, -1), f"{few} of each")
