"""Advanced indexing and assignment against NumPy: random keys that mix everything there is."""

import contextlib

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put

import pyvecgpu as vg

DRAWS = 250
F32 = np.dtype(np.float32)


def lay(rng, device, x):
    """The values on the device, in memory of any layout."""
    names = helpers.layouts(x)
    return helpers.LAYOUTS[names[rng.integers(len(names))]](device, x)


def draw_indices(rng, n, shape):
    """Integers for an axis of length n."""
    shape = tuple(1 if rng.integers(4) == 0 else m for m in shape[rng.integers(len(shape) + 1) :])
    if n == 0:
        shape = (0,)
    dtype = np.dtype(rng.choice(["i1", "i2", "i4", "i8", "u1", "u8"]))
    return rng.integers(0 if dtype.kind == "u" else -n, max(n, 1), shape).astype(dtype)


def draw_key(rng, shape):
    """(items of a key, for NumPy); arrays among them become lists or arrays of a device."""
    broadcast = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
    items, axis, ellipsis = [], 0, False
    while axis < len(shape):
        way, n = rng.integers(12), shape[axis]
        if way < 5:
            items.append(draw_indices(rng, n, broadcast))
            axis += 1
        elif way < 8:
            ends = [None if rng.integers(2) else int(rng.integers(-n - 1, n + 2)) for _ in "ab"]
            items.append(slice(*ends, rng.choice([None, 1, -1, 2, -2])))
            axis += 1
        elif way == 8 and n:
            items.append(int(rng.integers(-n, n)))
            axis += 1
        elif way == 9:
            items.append(None)
        elif way == 10 and not ellipsis:
            ellipsis = True
            items.append(Ellipsis)
            axis += int(rng.integers(len(shape) - axis + 1))
        elif way == 11:
            ndim = int(rng.integers(len(shape) - axis + 1))
            items.append(rng.integers(0, 2, shape[axis : axis + ndim]).astype(bool))
            axis += ndim
    return tuple(items)


def brought(rng, device, key):
    """The key with each array as it is, as a list or a scalar, or on the device in any layout."""

    def one(item):
        if not isinstance(item, np.ndarray) or item.dtype == np.uint64:
            return item
        way = rng.integers(4)
        if way == 0:
            return item
        if way == 1 and item.size:
            return item.tolist()
        return lay(rng, device, item)

    return tuple(one(item) for item in key)


def draw_array(rng):
    shape = tuple(
        int(n) for n in rng.integers(0 if rng.integers(9) == 0 else 1, 6, rng.integers(1, 6))
    )
    return helpers.integers(rng, shape, ALL_DTYPES[rng.integers(len(ALL_DTYPES))], -100, 100)


def draw_pair(rng, device):
    """(an ndarray, the same on the device, a key for NumPy, the same for the device)."""
    while True:
        x = draw_array(rng)
        key = draw_key(rng, x.shape)
        try:
            x[key]
        except IndexError:  # arrays that do not fit together
            with helpers.refused(device, IndexError):
                put(device, x)[brought(rng, device, key)]
            continue
        return x, lay(rng, device, x), key, brought(rng, device, key)


def test_random_keys(device, rng):
    for _ in range(DRAWS):
        x, array, key, given = draw_pair(rng, device)
        expected = np.asarray(x[key])
        assert_same(array[given], expected, f"{x.shape}[{key}]")
        assert_same(array, x)


def test_random_assignments(device, rng):
    for _ in range(DRAWS):
        x, array, key, given = draw_pair(rng, device)
        shape = np.asarray(x[key]).shape
        shape = tuple(1 if rng.integers(5) == 0 else n for n in shape)[rng.integers(2) :]
        dtype = x.dtype if rng.integers(3) else np.dtype(np.int32)
        if dtype != x.dtype and x.dtype.kind == "u":
            dtype = x.dtype
        values = helpers.integers(rng, shape, dtype, -100, 100)
        x[key] = values.astype(x.dtype)
        array[given] = lay(rng, device, values) if rng.integers(2) else values
        assert_same(array, x, f"{x.shape}[{key}] = {values.shape}")
        x[key] = 1
        array[given] = 1
        assert_same(array, x, f"{x.shape}[{key}] = 1")


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_rows_of_every_alignment(device, rng, dtype):
    """Rows move in words of as many bytes as their lengths, places and distances allow."""
    for columns in (1, 2, 3, 4, 6, 8, 16, 33):
        for first in (0, 1, 2, 4, 8):
            whole = helpers.integers(rng, (7, columns + first), dtype)
            array, x = put(device, whole)[:, first:], whole[:, first:]
            rows = rng.integers(-7, 7, 11)
            assert_same(array[put(device, rows)], x[rows], f"{columns} from {first}")
            values = helpers.integers(rng, (11, columns), dtype)
            array[put(device, rows)] = put(device, values)
            x[rows] = values
            assert_same(array, x, f"{columns} from {first}")


@pytest.mark.parametrize("count", [2, 100, 2048, 2049, 20_000])
def test_the_last_of_several_values_stays(device, rng, count):
    for shape, axes in (((50,), 1), ((50, 3), 1), ((9, 7), 2), ((9, 5, 7), 2)):
        x = np.zeros(shape, np.int32)
        key = tuple(rng.integers(-n, n, count) for n in shape[:axes])
        values = rng.integers(0, 2**30, (count, *shape[axes:])).astype(np.int32)
        array = put(device, x)
        array[tuple(put(device, one) for one in key)] = put(device, values)
        x[key] = values
        assert_same(array, x)
    x = np.zeros((6, 40), np.float32)
    indices = rng.integers(-40, 40, (6, max(count // 6, 1)))
    values = rng.standard_normal(indices.shape).astype(np.float32)
    array = put(device, x)
    vg.put_along_axis(array, put(device, indices), put(device, values), 1)
    np.put_along_axis(x, indices, values, 1)
    assert_same(array, x)


def test_sources_that_overlap(device, rng):
    for _ in range(30):
        x = helpers.integers(rng, (6, 5), F32)
        array, rows = put(device, x), rng.integers(0, 6, 6)
        given = put(device, rows)
        array[given] = array[::-1]
        x[rows] = x[::-1].copy()
        assert_same(array, x)
        array[:, [0, 1]] = array[:, [1, 0]]
        x[:, [0, 1]] = x[:, [1, 0]]
        array[given, 0] = array[0, 0]
        x[rows, 0] = x[0, 0].copy()
        assert_same(array, x)
        y = rng.permutation(8)
        own = put(device, y)
        own[own] = own
        z = y.copy()
        z[y] = y
        assert_same(own, z)


def test_masks(device, rng):
    for dtype in ALL_DTYPES:
        x = helpers.integers(rng, (4, 5), dtype)
        for mask in (x == x, x != x, rng.integers(0, 2, x.shape).astype(bool)):
            array, given = lay(rng, device, x), lay(rng, device, mask)
            assert_same(array[given], x[mask])
            array[given] = 1
            y = x.copy()
            y[mask] = 1
            assert_same(array, y)
            values = helpers.integers(rng, (int(mask.sum()),), dtype)
            array[given] = put(device, values)
            y[mask] = values
            assert_same(array, y)
    array = put(device, x)
    assert array[True].shape == (1, 4, 5) and array[False].shape == (0, 4, 5)


@pytest.mark.devices("sim", "cuda")
def test_what_waits(device, rng):
    """Indices of the host and scalars where a mask is true need no answer of the card."""
    array, rows = put(device, np.zeros((6, 5), np.float32)), put(device, [0, 2])

    def waits(call):
        before = vg.counters(device)["waits"]
        call()
        return vg.counters(device)["waits"] - before

    mask = array == 0
    assert waits(lambda: array[[0, -1]]) == 0
    assert waits(lambda: array[np.array([0, 2]), 1:]) == 0
    assert waits(lambda: array.__setitem__(mask, 3.0)) == 0
    assert waits(lambda: array.__setitem__(([0, 1], [1, 1]), 3.0)) == 0
    assert waits(lambda: array[rows]) == 0  # one out of range is found at the next wait
    assert waits(lambda: array.__setitem__(rows, 1.0)) == 0


def write_in_range(x, key):
    """Set elements of an ndarray to 1, but for those that an index out of range would name."""
    items = key if isinstance(key, tuple) else (key,)
    arrays = [np.asarray(item) for item in items if isinstance(item, list)]
    for at in np.ndindex(np.broadcast_shapes(*[one.shape for one in arrays])):
        one = tuple(
            int(np.broadcast_to(item, np.broadcast_shapes(*[a.shape for a in arrays]))[at])
            if isinstance(item, list)
            else item
            for item in items
        )
        with contextlib.suppress(IndexError):
            x[one] = 1


def test_what_is_out_of_range(device):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    array = put(device, x)
    for key, text in (
        ([2], "index 2 is out of bounds for axis 0 with size 2"),
        ([0, -3], "index -3 is out of bounds for axis 0 with size 2"),
        ((slice(None), [[0], [3], [9]]), "index 3 is out of bounds for axis 1 with size 3"),
        (([0, 1], slice(None), [0, 4]), "index 4 is out of bounds for axis 2 with size 4"),
        (([0, 5], [7, 0]), "index 5 is out of bounds for axis 0 with size 2"),
        ((0, [0, 1, -4]), "index -4 is out of bounds for axis 1 with size 3"),
        ((5, [0]), "index 5 is out of bounds for axis 0 with size 2"),
    ):
        items = key if isinstance(key, tuple) else (key,)
        for dtype in ("int32", "int64", "int8", None):
            given = tuple(
                put(device, np.array(one, dtype)) if dtype and isinstance(one, list) else one
                for one in items
            )
            with pytest.raises(IndexError, match=text):
                x[key]
            for write in (False, True):
                if dtype is None or device == "cpu":
                    with helpers.refused(device, IndexError, array) as refusal:
                        array.__setitem__(given, 1) if write else array[given]
                    assert text in str(refusal.value)
                    continue
                target = vg.asarray(array, copy=True)
                with helpers.refused_later(device, IndexError) as refusal:
                    target.__setitem__(given, 1) if write else target[given]
                found, by = str(refusal.value), "scatter" if write else "gather"
                assert text in found or found.startswith(f"{by}: index ")
                assert "is out of bounds for axis" in found
                expected = x.copy()
                if write:  # by those in range
                    write_in_range(expected, key)
                assert_same(target, expected)
    empty = put(device, np.zeros((0, 3), np.float32))
    for key in ([0], put(device, [0]), put(device, [[-1]])):
        with helpers.refused(device, IndexError, empty):
            empty[key]
    nothing = put(device, np.zeros((3, 0), np.float32))  # of which no element is moved
    for write in (False, True):
        with helpers.refused_later(device, IndexError, match="index 7 is out of bounds for axis 0"):
            nothing.__setitem__(put(device, [7]), 1) if write else nothing[put(device, [7])]
    assert empty[[]].shape == (0, 3) and array[:, put(device, np.zeros((2, 0), int))].size == 0


def test_what_is_no_index(device):
    array = put(device, np.zeros((2, 3), np.float32))
    for key in (
        [1.0],
        ["0"],
        np.float32([1]),
        array,
        {},
        "0",
        1.5,
        [[True, False]],
        [True],
        np.ones((2, 2), bool),
        put(device, np.ones((3, 2), bool)),
        ([0], [0], [0]),
        (np.ones((2, 3), bool), 0),
        ([0, 1], [0, 1, 2]),
        (put(device, [0, 1]), put(device, [0, 1, 2])),
        (Ellipsis, [0], Ellipsis),
        [array[0]],
    ):
        for call in (lambda k=key: array[k], lambda k=key: array.__setitem__(k, 0)):
            with helpers.refused(device, IndexError, array):
                call()
    for value in (np.zeros(2, np.float32), np.zeros((3, 3), np.float32)):
        with helpers.refused(device, ValueError, array):
            array[[0, 1]] = value
        with helpers.refused(device, ValueError, array):
            array[0, [0, 1, 2]] = np.zeros((2, 3), np.float32)
    for exception, value in ((TypeError, ["1", "2"]), (TypeError, "1"), (TypeError, None)):
        with helpers.refused(device, exception, array):
            array[[0]] = value
    whole = array.astype("int8")
    for key in ([0], whole == 0):
        with helpers.refused(device, OverflowError, whole):
            whole[key] = 300
    view = vg.broadcast_to(array[0], (2, 3))
    for key in ([0], put(device, [0]), view == 0):
        with helpers.refused(device, ValueError, array):
            view[key] = 1


def test_results_are_copies_and_writes_are_counted(device):
    array = put(device, np.arange(6.0))
    part = array[[0, 1]]
    part[...] = 9
    assert array.tolist() == [0, 1, 2, 3, 4, 5]
    for write in (
        lambda: array.__setitem__([0], 1.0),
        lambda: array.__setitem__(array > 2, 1.0),
        lambda: array.__setitem__(put(device, [1, 1]), put(device, [3.0, 4.0])),
        lambda: vg.put(array, [0], 1.0),
    ):
        before = array._version
        write()
        assert array._version > before
    before = array._version
    array[[0, 1]]
    with helpers.refused(device, IndexError, array):
        array[[99]] = 1
    assert array._version == before
    array[[0, 1]] += 1.0
    assert array.tolist()[:2] == [2.0, 5.0]
