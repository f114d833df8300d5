"""index_add and add.at: every value of a place that is named several times counts, always in the
same order.
"""

import math

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, LAYOUTS, assert_same, put, refused, refused_later

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.native.abi import ALONG
from pyvecgpu.operations import Operation


def small(rng, shape, dtype):
    """Numbers whose sums are exact in each dtype."""
    return rng.integers(0, 3, shape).astype(dtype)


def target(rng, device, x):
    names = [name for name in helpers.layouts(x) if "broadcast" not in name]
    array = LAYOUTS[names[rng.integers(len(names))]](device, x)
    return array if array.strides and 0 not in array.strides else put(device, x)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_index_add(device, rng, dtype):
    for _ in range(12):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))
        axis = int(rng.integers(-len(shape), len(shape)))
        n = shape[axis]
        indices = rng.integers(-n, n, int(rng.integers(0, 9)))
        x, parts = small(rng, shape, dtype), [*shape]
        parts[axis] = indices.size
        values = small(rng, tuple(parts), dtype)
        expected = np.moveaxis(x.copy(), axis, 0)
        np.add.at(expected, indices, np.moveaxis(values, axis, 0))
        array = target(rng, device, x)
        given = put(device, indices) if rng.integers(2) else indices.tolist()
        vg.index_add(array, given, put(device, values), axis=axis)
        assert_same(array, np.moveaxis(expected, 0, axis))


KEYS = (
    lambda rng: rng.integers(-4, 4, 9),
    lambda rng: (rng.integers(0, 4, 7), rng.integers(-5, 5, 7)),
    lambda rng: (rng.integers(0, 4, (3, 1)), rng.integers(-5, 5, 2)),
    lambda rng: (slice(None), rng.integers(0, 5, 6)),
    lambda rng: rng.integers(0, 2, (4, 5)).astype(bool),
    lambda rng: (slice(1, 3), 2),
    lambda rng: ...,
)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_at(device, rng, name):
    ufunc, function = getattr(np, name), getattr(vg, name)
    for make in KEYS:
        for dtype in (np.float32, np.float64, np.int8, np.uint32, np.float16):
            x, key = small(rng, (4, 5), dtype), make(rng)
            values = small(rng, x[key].shape, dtype)
            for b in (values, values.reshape(-1)[:1], 2):
                expected, array = x.copy(), target(rng, device, x)
                ufunc.at(expected, key, b)
                parts = key if isinstance(key, tuple) else (key,)
                parts = [put(device, k) if isinstance(k, np.ndarray) else k for k in parts]
                given = tuple(parts) if isinstance(key, tuple) else parts[0]
                function.at(array, given, put(device, b) if isinstance(b, np.ndarray) else b)
                assert_same(array, expected)
    array, expected = put(device, np.zeros(3)), np.zeros(3)
    ufunc.at(array, [0, 2, 2], 1.5)  # NumPy's own, on an Array
    ufunc.at(expected, [0, 2, 2], 1.5)
    assert_same(array, expected)


def test_many_of_one_place(device, rng):
    """Sums of floats: near the exact one, and the same bits every time."""
    n = 20_000
    indices = np.where(rng.integers(0, 2, n) == 0, 1, rng.integers(0, 5, n))
    values = rng.standard_normal(n).astype(np.float32)
    results = []
    for _ in range(2):
        array = vg.zeros(5, "float32", device=device)
        vg.add.at(array, put(device, indices), put(device, values))
        results.append(array.numpy())
    exact = np.zeros(5)
    np.add.at(exact, indices, values.astype(np.float64))
    assert not np.any(~(np.abs(results[0] - exact) <= 1e-4))
    assert_same(results[1], results[0])


def test_halves_are_added_in_float32(device):
    array = vg.zeros(2, "float16", device=device)
    vg.index_add(array, np.zeros(4096, int), np.float16(0.25))
    assert array.tolist() == [1024, 0]


def test_zeros_keep_their_sign_and_nan_stays_where_it_is(device):
    array = put(device, np.array([-0.0, 0.0, 1.0]))
    vg.add.at(array, [0, 2, 2, 1], [-0.0, np.nan, 1.0, -0.0])
    assert_same(array, np.array([-0.0, 0.0, np.nan]))


def test_what_does_not_fit(device):
    x = put(device, np.zeros((3, 2), np.int32))
    for indices in ([3], [-4], [0, 5]):
        with refused(device, IndexError, x, match="out of bounds"):
            vg.index_add(x, indices, 1)
        other = vg.asarray(x, copy=True)
        with refused_later(device, IndexError, match="accumulate: index -?[345] is out of bounds"):
            vg.add.at(other, put(device, np.array(indices)), 1)
        good = [i for i in indices if i == 0 and device != "cpu"]
        assert other.tolist() == [[int(row in good)] * 2 for row in range(3)]
    with refused(device, ValueError, x):
        vg.index_add(x, [0, 1], [[1, 2, 3]])
    with refused(device, ValueError, x):
        vg.index_add(x, [[0, 1]], 1)
    for value in (1.5, put(device, np.ones(2))):
        with refused(device, TypeError, x, match="float"):
            vg.add.at(x, [0, 0], value)
    with refused(device, IndexError, x, match="integers"):
        vg.index_add(x, [0.5], 1)
    with refused(device, TypeError, x, match=None):
        vg.index_add(np.zeros(3), [0], 1)
    with refused(device, ValueError, x):
        vg.index_add(vg.broadcast_to(x, (2, 3, 2)), [0], 1)
    with refused(device, np.exceptions.AxisError, x):
        vg.index_add(x, [0], 1, axis=2)


def test_no_wait_and_no_copy(device):
    """Indices on a card are sorted there: nothing comes to the host."""
    x, indices = vg.zeros((50, 3), device=device), put(device, np.arange(300) % 50)
    values = put(device, np.ones((300, 3), np.float32))
    before = vg.counters(device)
    vg.index_add(x, indices, values)
    vg.maximum.at(x, (indices, 1), values[:, 0])
    after = vg.counters(device)
    assert {name: after[name] for name in ("waits", "copies_to_host")} == {
        name: before[name] for name in ("waits", "copies_to_host")
    }
    assert x.tolist() == [[6.0, 6.0, 6.0]] * 50


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_against_one_after_the_other(device, rng, name):
    """Shapes, strides, keys and dtypes at random, on lists that take several rounds."""
    ufunc, function = getattr(np, name), getattr(vg, name)
    for _ in range(25):
        dtype = ("int64", "int32", "uint8", "float64")[rng.integers(4)]
        rows, columns = int(rng.integers(1, 40)), int(rng.integers(1, 40))
        count = int(rng.integers(0, 700))
        x = small(rng, (rows, columns), dtype)
        transposed, backwards = bool(rng.integers(2)), bool(rng.integers(2))
        chosen = rng.integers(-rows, rows, count)
        if rng.integers(2):
            chosen[rng.integers(0, 2, count) == 0] = rows - 1
        values = small(rng, (count, columns), dtype)[:, ::-1]
        if name == "multiply" and dtype == "float64":
            values = np.where(values == 0, 1.0, 0.5)  # exact
        array = put(device, x.T.copy()).T if transposed else put(device, x)
        array, expected = (array[::-1], x[::-1].copy()) if backwards else (array, x.copy())
        ufunc.at(expected, chosen, values)
        function.at(array, put(device, chosen), put(device, values[:, ::-1].copy())[:, ::-1])
        assert_same(array, expected)


def summed(like, indices, axes, place, values, operation):
    """What accumulate makes of an array, through the seam."""
    result = vg.asarray(like, copy=True)
    apply(result.backend, "accumulate", operation, result, indices, axes, place, False, values)
    return result.numpy()


# Rows of a table, narrow and wide, of parts and of several a warp, on even addresses or not;
# indices along two axes; along one that is not the first; and beside the array.
TABLES = (
    (lambda rng: (int(rng.integers(1, 90)), int(rng.integers(1, 70))), (0,), 0),
    (lambda rng: (int(rng.integers(1, 300)), int(rng.integers(60, 600))), (0,), 0),
    (lambda rng: (int(rng.integers(1, 6)), int(rng.integers(2000, 9000))), (0,), 0),
    (lambda rng: (3, int(rng.integers(1, 9)), int(rng.integers(1, 300))), (0, 1), 0),
    (lambda rng: (3, int(rng.integers(1, 9)), int(rng.integers(1, 300))), (1, 0), 0),
    (lambda rng: (int(rng.integers(1, 9)), int(rng.integers(60, 300))), (1,), 1),
    (lambda rng: (int(rng.integers(1, 9)), int(rng.integers(60, 300))), (1,), ALONG),
    (lambda rng: (int(rng.integers(1, 9)), int(rng.integers(60, 300))), (0,), ALONG),
)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_sums_that_do_not_count_what_was_there(device, rng, dtype):
    """The bits of sums into zeros, of what was there nothing, zeros where no index leads."""
    for make, axes, place in TABLES * 3:
        shape = make(rng)
        count = int(rng.choice([0, 1, 2, rng.integers(3, 40), rng.integers(40, 1200)]))
        chosen, others = (count,), [n for i, n in enumerate(shape) if i not in axes]
        if place == ALONG:
            chosen = (shape[0], min(count, 40)) if axes == (1,) else (min(count, 40), shape[1])
            others = []
        count = math.prod(chosen) * math.prod(others)
        while count > 10**5:  # of which the simulator would have to do each
            chosen, count = (chosen[0] // 2,), count // 2
        planes = [rng.integers(-shape[axis], shape[axis], chosen) for axis in axes]
        for plane in planes:  # some rows are named often, some never
            plane[rng.integers(0, 3, chosen) == 0] = rng.integers(0, 2) - 1
        indices = planes[0] if place == ALONG else np.stack(planes)
        values = (*others[:place], *chosen, *others[place:]) if place != ALONG else chosen
        values = (rng.standard_normal(values) * 3).astype(dtype)
        given = put(device, indices), axes, place, put(device, values)
        before = put(device, np.ones(shape, dtype))
        zeros = put(device, np.zeros(shape, dtype))
        assert_same(
            summed(before, *given, Operation.SUM).view(np.uint8),
            summed(zeros, *given, Operation.ADD).view(np.uint8),
        )


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
def test_zeros_of_rows_that_many_writes_leave_out(device, rng, dtype):
    """More writes than are sorted by one launch, which would make the zeros meanwhile."""
    rows, columns = 300, 256 // np.dtype(dtype).itemsize + int(rng.integers(0, 5))
    indices = rng.choice(rng.permutation(rows)[:60], (1, 8193 + int(rng.integers(0, 40))))
    values = rng.integers(-3, 4, (indices.size, columns)).astype(dtype)
    given = put(device, indices), (0,), 0, put(device, values)
    before, zeros = (put(device, np.full((rows, columns), n, dtype)) for n in (1, 0))
    found = summed(before, *given, Operation.SUM)
    assert_same(found, summed(zeros, *given, Operation.ADD))
    assert not found[np.setdiff1d(np.arange(rows), indices)].any() and found.any()


@pytest.mark.parametrize("operation", [Operation.ADD, Operation.SUM, Operation.MULTIPLY])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_same_bits_from_any_element_on(device, rng, dtype, operation):
    """Rows whose packs lie well, and the same rows elsewhere, of which a thread has one element."""
    for columns in (4, 12, 64, 200, 516):
        indices = rng.integers(-9, 9, (1, int(rng.integers(1, 300))))
        x = rng.standard_normal((9, columns)).astype(dtype)
        values = rng.standard_normal((indices.size, columns)).astype(dtype)
        found = set()
        for offsets in ((0, 0), (1, 0), (0, 1), (2, 3), (8, 4)):
            sides = []
            for one, offset in zip((x, values), offsets, strict=True):
                room = np.zeros(one.size + offset, dtype)
                room[offset:] = one.reshape(-1)
                sides.append(put(device, room)[offset:].reshape(one.shape))
            call = operation, sides[0], put(device, indices), (0,), 0, False, sides[1]
            apply(sides[0].backend, "accumulate", *call)
            found.add(sides[0].numpy().tobytes())
        fresh = operation == Operation.SUM
        array = put(device, np.zeros_like(x) if fresh else x)
        apart = put(device, np.repeat(values, 2, 1))[:, ::2]
        call = Operation.ADD if fresh else operation, array, put(device, indices), (0,), 0, False
        apply(array.backend, "accumulate", *call, apart)
        assert found == {array.numpy().tobytes()}


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_zeros_of_small_views(device, rng, dtype):
    """Of any number of bytes, from any on, and of none beside them."""
    for size in range(1, 40):
        offset = int(rng.integers(0, 17))
        expected = np.full(offset + size + 17, 7, dtype)
        flat = put(device, expected)
        part, indices = flat[offset : offset + size], rng.integers(0, size, (1, 2))
        values = put(device, np.ones(2, dtype))
        call = Operation.SUM, part, put(device, indices), (0,), 0, False, values
        apply(part.backend, "accumulate", *call)
        expected[offset : offset + size] = 0
        np.add.at(expected, offset + indices[0], 1)
        assert_same(flat, expected)


@pytest.mark.parametrize("operation", [Operation.ADD, Operation.SUM])
@pytest.mark.parametrize(
    ("across", "of_values", "step"), [(101, 100, 1), (100, 102, 1), (103, 105, 1), (200, 100, 2)]
)
def test_gaps_behind_rows_and_between_elements(device, rng, operation, across, of_values, step):
    indices = put(device, rng.integers(0, 6, (1, 20)))
    x, values = (rng.standard_normal((n, 100)).astype("f4") for n in (6, 20))
    whole, wide = np.zeros((6, across), "f4"), np.zeros((20, of_values), "f4")
    whole[:, : 100 * step : step], wide[:, :100] = x, values
    whole, wide = put(device, whole), put(device, wide)
    view = whole[:, : 100 * step : step]
    apply(view.backend, "accumulate", operation, view, indices, (0,), 0, False, wide[:, :100])
    given = put(device, x), indices, (0,), 0, put(device, values), operation
    assert_same(view.numpy(), summed(*given))


OTHER_AXES = [((300, 4, 64), (1, 0)), ((4, 300, 64), (1,)), ((90, 5, 64), (0, 1))]


@pytest.mark.parametrize(("shape", "axes"), OTHER_AXES, ids=str)
def test_zeros_of_other_axes_and_many_writes(device, rng, shape, axes):
    others = [n for axis, n in enumerate(shape) if axis not in axes]
    planes = np.stack([rng.choice(rng.permutation(shape[axis])[:60], 8200) for axis in axes])
    values = rng.integers(-3, 4, (8200, *others)).astype("f4")
    given = put(device, planes), axes, 0, put(device, values)
    before, zeros = (put(device, np.full(shape, n, "f4")) for n in (1, 0))
    found = summed(before, *given, Operation.SUM)
    assert_same(found, summed(zeros, *given, Operation.ADD))


def test_sums_into_views(device, rng):
    """An array with gaps between its rows, rows that begin in the midst of 16 bytes."""
    indices, values = np.array([[3, 1, 3]]), rng.standard_normal((3, 100)).astype("float32")
    given = put(device, indices), (0,), 0, put(device, values)
    zeros = summed(put(device, np.zeros((6, 100), "float32")), *given, Operation.ADD)
    whole = put(device, np.full((6, 200), 7.0, "float32"))
    apply(whole.backend, "accumulate", Operation.SUM, whole[:, :100], *given[:3], False, given[3])
    assert_same(whole, np.concatenate([zeros, np.full((6, 100), 7.0, "float32")], axis=1))
    flat = put(device, np.full(602, 7.0, "float32"))
    rows = vg.reshape(flat[1:601], (6, 100))
    apply(rows.backend, "accumulate", Operation.SUM, rows, *given[:3], False, given[3])
    assert_same(flat, np.concatenate([[7.0], zeros.reshape(-1), [7.0]]).astype("float32"))


def test_sums_of_indices_out_of_range(device):
    x = put(device, np.ones((4, 128), np.float32))
    indices, values = put(device, np.array([[1, 9, 1]])), put(device, np.ones((3, 128), np.float32))
    with refused_later(device, IndexError, match="accumulate: index 9 is out of bounds"):
        apply(x.backend, "accumulate", Operation.SUM, x, indices, (0,), 0, False, values)
    if device != "cpu":
        assert x[:, 5].tolist() == [0, 2, 0, 0]


def runs(rng, count, kind):
    """Indices below 50, of which some are named often."""
    if kind == "one":
        return np.full(count, 7)
    if kind == "few":
        return rng.integers(0, 3, count)
    if kind == "mixed":  # some runs are many chunks long, and short ones lie between
        return np.minimum(rng.geometric(0.2, count), 40)
    return rng.integers(0, 50, count)


@pytest.mark.parametrize("kind", ["one", "few", "mixed", "any"])
@pytest.mark.parametrize("count", [33, 511, 512, 544, 4096, 8192, 8193, 20_000])
@pytest.mark.parametrize("columns", [1, 5, 33])
def test_runs_over_many_chunks(device, rng, count, columns, kind):
    """In the last round a team goes through the runs that begin in its chunk, and no others."""
    indices, values = runs(rng, count, kind), rng.integers(-3, 4, (count, columns))
    x = rng.integers(0, 9, (50, columns)).astype(np.float32)
    expected = x.copy()
    np.add.at(expected, indices, values)
    array, given = put(device, x), put(device, values.astype(np.float32))
    vg.index_add(array, put(device, indices), given, axis=0)
    assert_same(array, expected)
    halves = rng.standard_normal((count, columns)).astype(np.float32)  # whose order is to be seen
    found = []
    for _ in range(2):
        array = put(device, x)
        vg.index_add(array, put(device, indices), put(device, halves), axis=0)
        found.append(array.numpy())
    assert np.array_equal(*found)
    exact = x.astype(np.float64)
    np.add.at(exact, indices, halves.astype(np.float64))
    sizes = np.abs(x).astype(np.float64)
    np.add.at(sizes, indices, np.abs(halves).astype(np.float64))
    assert (np.abs(found[0] - exact) <= 60 * 2.0**-24 * sizes).all()
