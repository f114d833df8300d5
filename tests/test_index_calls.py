"""Keys with Arrays of indices or bools on a card: one call, few launches, NumPy's results.

Keys that mix everything, with arrays of the host among them: test_gather.py.
"""

import functools

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put

import pyvecgpu as vg
from pyvecgpu.short_views import assigned, indexed, put_in_a_row, taken

FEW, MANY = 3072, 65536  # writes; see cuda/kernels/last_writes.cuh
I8 = np.dtype(np.int8)


def lay(rng, device, x):
    names = helpers.layouts(x)
    return helpers.LAYOUTS[names[rng.integers(len(names))]](device, x)


def spent(device, call, *names):
    """What counters a call adds to."""
    before = vg.counters(device)
    call()
    after = vg.counters(device)
    return tuple(after[name] - before[name] for name in names)


def draw_items(rng, shape):
    """Items of a key for NumPy, with at least one array of integers."""
    lengths = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 4)))
    items, axis, arrays, rest = [], 0, 0, False
    while axis < len(shape):
        way, n = rng.integers(9), shape[axis]
        if way < 4 or (arrays == 0 and axis == len(shape) - 1):
            some = lengths[rng.integers(len(lengths)) :]
            some = tuple(1 if rng.integers(4) == 0 else m for m in some)
            dtype = np.dtype(rng.choice(["i1", "i4", "i4", "i8", "i8", "u2"]))
            low = 0 if dtype.kind == "u" else -n
            items.append(rng.integers(low, n, some).astype(dtype))
            arrays += 1
            axis += 1
        elif way == 4:
            items.append(int(rng.integers(-n, n)))
            axis += 1
        elif way == 5:
            items.append(None)
        elif way == 6 and not rest and axis + 1 < len(shape):
            items.append(Ellipsis)
            rest = True
            axis += int(rng.integers(len(shape) - axis))
        else:
            ends = [None if rng.integers(2) else int(rng.integers(-n - 1, n + 2)) for _ in "ab"]
            items.append(slice(*ends, [None, 1, -1, 2, -2][rng.integers(5)]))
            axis += 1
    return tuple(items)


def on_card(rng, device, items):
    key = tuple(lay(rng, device, i) if isinstance(i, np.ndarray) else i for i in items)
    return key[0] if len(key) == 1 and rng.integers(2) else key


@pytest.mark.devices("sim", "cuda")
def test_keys_of_arrays(device, rng):
    for _ in range(200):
        shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 5)))
        x = helpers.integers(rng, shape, ALL_DTYPES[rng.integers(len(ALL_DTYPES))], -100, 100)
        items = draw_items(rng, shape)
        key, array, text = on_card(rng, device, items), lay(rng, device, x), f"{shape}[{items}]"
        expected = np.asarray(x[items])
        result = indexed(array, key)
        assert result is not None, f"{text} has not taken the short way"
        assert_same(result, expected, text)
        values = helpers.integers(rng, expected.shape[rng.integers(2) :], I8, 0, 100)
        x[items] = values.astype(x.dtype)
        array[key] = lay(rng, device, values)
        assert_same(array, x, f"{text} = {values.shape}")
        x[items] = 7
        array[key] = 7
        assert_same(array, x, f"{text} = 7")


@pytest.mark.devices("sim", "cuda")
def test_take_and_put(device, rng):
    for _ in range(40):
        shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 4)))
        x = helpers.integers(rng, shape, np.dtype(np.int32))
        axis = int(rng.integers(-len(shape), len(shape)))
        indices = rng.integers(-shape[axis], shape[axis], rng.integers(1, 5, rng.integers(1, 3)))
        array, given = lay(rng, device, x), lay(rng, device, indices)
        assert_same(taken(array, given, axis), np.take(x, indices, axis))
        assert_same(vg.take(array, given), np.take(x, indices % x.size)) if axis == 0 else None
    for axis in (31, -32, 0, -1, 30):  # a key has no room for the first two
        x = rng.standard_normal((1,) * axis + (3,) + (1,) * (31 - axis) if axis >= 0 else
                                (1,) * (32 + axis) + (3,) + (1,) * (-1 - axis))  # fmt: skip
        assert_same(vg.take(put(device, x), put(device, np.array([2, 0])), axis=axis),
                    x.take([2, 0], axis))  # fmt: skip
    x, indices = rng.standard_normal(50), rng.integers(-50, 50, 80)
    values = rng.standard_normal(80)
    for value in (values, values[:1], values[:7], 3, 2.5):
        array = put(device, x)
        given = put(device, value) if isinstance(value, np.ndarray) else value
        vg.put(array, put(device, indices), given)
        expected = x.copy()
        np.put(expected, indices, value)
        assert_same(array, expected)
    assert put_in_a_row(array, put(device, indices), put(device, values))
    flags = put(device, x > 0)
    assert taken(array, flags, 0) is None and not put_in_a_row(array, flags, 1.0)
    for call in (lambda: vg.take(array, flags, axis=0), lambda: vg.put(array, flags, 1.0)):
        with helpers.refused(device, IndexError, array):
            call()


@pytest.mark.parametrize("count", [FEW - 1, FEW, FEW + 1, 8000, 20_000])
@pytest.mark.parametrize("places", [7, 3000, 30_000, 90_000])
def test_the_last_write_stays(device, rng, count, places):
    for dtype in (np.int8, np.int32, np.float64, np.complex128):
        for step, indices in ((1, np.int64), (-1, np.int32), (2, np.int64)):
            x = helpers.integers(rng, (places * abs(step),), np.dtype(dtype))
            named = rng.integers(-places, places, count).astype(indices)
            values = helpers.integers(rng, (count,), x.dtype)
            expected = x.copy()
            expected[::step][named] = values
            for given in (put(device, named), put(device, np.repeat(named, 2))[::2]):
                array = put(device, x)[::step]
                array[given] = put(device, values[::-1].copy())[::-1]
                assert_same(array, expected[::step])
    in_columns = named[: count // 2 * 2].reshape(-1, 2)
    values = rng.integers(0, 1000, in_columns.shape)
    array, expected = vg.zeros(places, "int64", device=device), np.zeros(places, np.int64)
    array[put(device, in_columns)] = put(device, values.T.copy()).T  # not one behind the other
    expected[in_columns] = values
    assert_same(array, expected)
    array, expected = vg.zeros((3, places), "int16", device=device), np.zeros((3, places), np.int16)
    values = rng.integers(0, 1000, (3, count), np.int16)
    array[:, put(device, named)] = put(device, values)
    expected[:, named] = values
    assert_same(array, expected)
    rows = helpers.integers(rng, (places, 3), np.dtype(np.float32))
    named = rng.integers(0, places, count)
    values = helpers.integers(rng, (count, 3), rows.dtype)
    for given in (put(device, named), put(device, np.repeat(named, 2))[::2]):
        array = put(device, rows)
        array[given] = put(device, values)
        expected = rows.copy()
        expected[named] = values
        assert_same(array, expected)


BATCH = 12 * 1024  # indices that a block looks at together, two a load


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("count", [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 7, MANY, MANY + 1])
def test_writes_by_pairs_of_indices(device, rng, count):
    """Few are negative, or out of range, so that most threads have none of these."""
    for places in (5, 3000, 2 * BATCH + 3):
        named = rng.integers(0, places, count)
        odd = rng.integers(0, count, 9)
        named[odd[:5]] -= places
        values = rng.integers(0, 2**31, count).astype(np.int32)
        x = np.zeros(places, np.int32)
        for first in (0, 1):  # on an address for pairs, and beside it
            array = put(device, x)
            array[put(device, named)[first:]] = put(device, values)[first:]
            expected = x.copy()
            expected[named[first:]] = values[first:]
            assert_same(array, expected)
            given = put(device, named)[first:], put(device, values)[first:]
            call = functools.partial(vg.put, array, *given)
            assert spent(device, call, "launches") == (1,) or count > MANY or first
        for beyond in (places, -places - 1, 2**31, 2**32, 2**40 + 1, -(2**63)):
            wrong = named.copy()
            wrong[odd[5]] = beyond
            array, what = put(device, x), f"index {beyond} is out of bounds"
            with helpers.refused_later(device, IndexError, match=what):
                array[put(device, wrong)] = put(device, values)
            expected = x.copy()
            kept = np.arange(count) != odd[5]
            expected[named[kept]] = values[kept]
            assert_same(array, expected)


@pytest.mark.devices("sim", "cuda")
def test_many_writes_that_are_none_out_of_range(device, rng):
    for count in (10, FEW + 5, MANY + 5):
        for columns in ((), (2,)):
            x = np.zeros((100, *columns), np.float32)
            named = rng.integers(-100, 100, count)
            named[rng.integers(0, count, 3)] = 100
            values = helpers.integers(rng, (count, *columns), x.dtype)
            array = put(device, x)
            with helpers.refused_later(device, IndexError, match="index 100 is out of bounds"):
                array[put(device, named)] = put(device, values)
            x[named[named < 100]] = values[named < 100]
            assert_same(array, x)


@pytest.mark.devices("sim", "cuda")
def test_launches(device, rng):
    x, rows = put(device, np.zeros((50, 6), np.float32)), put(device, np.array([1, 3, 4]))
    columns, mask = put(device, np.array([0, 5, 2])), put(device, rng.random((50, 6)) < 0.5)
    row, few = put(device, np.zeros(50_000, np.float32)), put(device, np.arange(FEW))
    some, many = put(device, np.arange(FEW + 1)), put(device, np.arange(5000) % 3)
    values = put(device, np.ones(5000, np.float32))
    crowd, places = vg.broadcast_to(values[:, None], (5000, 6)), put(device, np.arange(20_000) % 7)
    crowded = put(device, np.arange(20_000, dtype=np.int32) % 7)
    table, large = put(device, np.zeros((40_000, 6), np.float32)), vg.ones(20_000, device=device)
    mended = 1 + (2 if device == "sim" else 1)  # marked and written, and mended: last_writes.cuh
    has_clusters = vg.Device(device).limits.compute_capability >= (9, 0)  # element_writes.cuh
    for call, launches, waits in (
        (lambda: x[rows], 1, 0),
        (lambda: x[rows, columns], 1, 0),
        (lambda: x[:, columns], 1, 0),
        (lambda: vg.take(x, columns, axis=1), 1, 0),
        (lambda: x.__setitem__(rows, 2.0), 1, 0),
        (lambda: x.__setitem__(mask, 2.0), 1, 0),
        (lambda: x[mask], 2, 1),
        (lambda: x[mask[:, 0]], 3 + 1, 1),  # and a copy of the column
        (lambda: row.__setitem__(few, values[:FEW]), 1, 0),
        (lambda: vg.put(row, some, values[: FEW + 1]), 1, 0),
        (lambda: table.__setitem__(many, crowd), mended, 0),
        (lambda: x.__setitem__(many, crowd), 3, 0),  # two find out first which writes are last
        (lambda: row.__setitem__(places, large), 1, 0),
        (lambda: row.__setitem__(crowded, large), 1 if has_clusters else 2, 0),
    ):
        assert spent(device, call, "launches", "waits") == (launches, waits)


@pytest.mark.parametrize("count", [1, 31, 4095, 4096, 4097, 12_345])
def test_masks_of_every_length(device, rng, count):
    for dtype in ALL_DTYPES:
        x = helpers.integers(rng, (count,), dtype)
        for share in (0.0, 0.1, 0.9, 1.0):
            mask = rng.random(count) < share
            array, given = lay(rng, device, x), lay(rng, device, mask)
            assert_same(array[given], x[mask])
            array[given] = 1
            expected = x.copy()
            expected[mask] = 1
            assert_same(array, expected)


def test_masks_of_rows(device, rng):
    x = helpers.integers(rng, (6, 7, 5), np.dtype(np.float32))
    for share in (0.0, 0.5, 1.0):
        for ndim in (1, 2):
            mask = rng.random(x.shape[:ndim]) < share
            for array in (put(device, x), lay(rng, device, x)):
                assert_same(array[lay(rng, device, mask)], x[mask])
    flags = np.array([True, False, True])
    own, other = put(device, flags), flags.copy()
    own[own] = False
    other[other] = False
    assert_same(own, other)
    turned = put(device, np.tri(4) > 0)
    turned[turned.T] = False
    expected = np.tri(4) > 0
    expected[expected.T.copy()] = False
    assert_same(turned, expected)


@pytest.mark.devices("sim", "cuda")
def test_an_error_from_before_is_told_once(device):
    x = put(device, np.arange(6.0))
    mask = x > 2
    x[put(device, np.array([6]))]
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
        x[mask]
    assert x[mask].tolist() == [3, 4, 5]


@pytest.mark.devices("sim", "cuda")
def test_what_is_left_to_the_long_way(device):
    x, rows = put(device, np.zeros((3, 4), np.int8)), put(device, np.array([0, 2]))
    wrong = put(device, np.zeros((2, 4), bool))
    for key in (wrong, (rows, put(device, np.array([0, 1, 2]))), (rows, rows, rows), (rows, 4)):
        assert indexed(x, key) is None and not assigned(x, key, 1)
        with helpers.refused(device, IndexError, x):
            x[key]
    for value, error in ((300, OverflowError), (put(device, np.zeros(3)), ValueError)):
        assert not assigned(x, rows, value)
        with helpers.refused(device, error, x):
            x[rows] = value
    fixed = vg.broadcast_to(x, (2, 3, 4))
    with pytest.raises(ValueError, match="read-only"):
        fixed[rows % 2] = 1


@pytest.mark.parametrize("shape", [(), (5,), (4, 6), (0, 3), (2, 3, 4)])
def test_values_to_all_of_an_array(device, rng, shape):
    """By "...", and by whole axes, as many as there are or fewer: without a view."""
    keys = [..., (), (...,), slice(None), (slice(None),) * len(shape), (slice(None), slice(None))]
    keys += [(slice(None),) * (len(shape) + 1), (slice(None), ...), slice(0, None), (None, ...)]
    values = rng.integers(0, 9, shape)
    given = (3, 2.5, True, 300, *([values, values.astype("float32"), values[-1:]] if shape else []))
    for dtype in ("float32", "int8"):
        for key in keys:
            for value in given:
                x = np.ones(shape, dtype)
                array = put(device, x)
                ours = put(device, value) if isinstance(value, np.ndarray) else value
                try:
                    x[key] = value
                except (IndexError, ValueError, OverflowError) as error:
                    with pytest.raises(type(error)):
                        array[key] = ours
                    continue
                array[key] = ours
                assert_same(array, x)
