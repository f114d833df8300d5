"""Functions of indices and masks against NumPy: take, put, compress, choose, delete, insert, ..."""

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put

import pyvecgpu as vg

DRAWS = 40
F32 = np.dtype(np.float32)


def draw_array(rng, dtype=None, least=1):
    shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(least, 4)))
    dtype = ALL_DTYPES[rng.integers(len(ALL_DTYPES))] if dtype is None else dtype
    return helpers.integers(rng, shape, dtype)


def draw_layout(rng, device, x):
    names = helpers.layouts(x)
    return helpers.LAYOUTS[names[rng.integers(len(names))]](device, x)


def given(rng, device, value):
    """Something for an argument: on the device, NumPy's, or a list."""
    way = rng.integers(3)
    if way == 2 and value.size:
        return value.tolist()
    return put(device, value) if way else value


def draw_axis(rng, x):
    return int(rng.integers(-x.ndim, x.ndim)) if rng.integers(3) else None


def length(x, axis):
    return x.size if axis is None else x.shape[axis]


def test_take(device, rng):
    for _ in range(DRAWS):
        x = draw_array(rng)
        axis = draw_axis(rng, x)
        n = length(x, axis)
        indices = rng.integers(-n, n, rng.integers(0, 4, rng.integers(0, 3)))
        indices = indices.astype(rng.choice(["i1", "i4", "i8"]))
        expected = np.take(x, indices, axis)
        array = draw_layout(rng, device, x)
        assert_same(vg.take(array, given(rng, device, indices), axis), expected)
        assert_same(array.take(given(rng, device, indices), axis=axis), expected)
        assert_same(vg.take(x, indices, axis=axis), expected)
    array = put(device, np.arange(5))
    assert_same(vg.take(array, -1), np.asarray(4))
    assert not np.shares_memory(vg.take(np.arange(3), 1), np.arange(3))


def test_axes_that_no_array_has(device):
    """Of any size: what names the others is not made for them first."""
    x, i = put(device, np.ones((2, 3))), put(device, np.zeros(1, np.int64))
    for axis in (2, -3, 64, -65, 10**12, -(10**12), 2**63, -(2**63) - 1, 2**70):
        with pytest.raises(np.exceptions.AxisError, match="out of bounds"):
            vg.take(x, i, axis=axis)


def test_along_an_axis(device, rng):
    for _ in range(DRAWS):
        x = draw_array(rng)
        axis = draw_axis(rng, x)
        n, flat = length(x, axis), axis is None
        shape = [x.size] if flat else [*x.shape]
        shape[0 if flat else axis] = int(rng.integers(0, 5))
        wide = tuple(shape)
        narrow = tuple(
            1 if not flat and i != axis % x.ndim and rng.integers(4) == 0 else m
            for i, m in enumerate(shape)
        )
        for which in (narrow, wide):
            indices = rng.integers(-n, n, which)
            expected = np.take_along_axis(x, indices, axis)
            array = draw_layout(rng, device, x)
            assert_same(
                vg.take_along_axis(array, given_array(rng, device, indices), axis), expected
            )
        values = helpers.integers(rng, wide, x.dtype)
        copy = x.copy()
        np.put_along_axis(copy, indices, values, axis)
        vg.put_along_axis(array, given_array(rng, device, indices), put(device, values), axis)
        assert_same(array, copy, f"{x.shape} {indices.tolist()} {axis}")
        vg.put_along_axis(array, indices, 1, axis)
        np.put_along_axis(copy, indices, 1, axis)
        assert_same(array, copy)
    x = helpers.integers(rng, (4, 5), F32)
    order = np.argsort(x, axis=-1)
    assert_same(vg.take_along_axis(put(device, x), put(device, order)), np.sort(x, axis=-1))


def given_array(rng, device, value):
    return put(device, value) if rng.integers(2) else value


def test_put_and_place(device, rng):
    for _ in range(DRAWS):
        x = draw_array(rng)
        array = draw_layout(rng, device, x)
        indices = rng.integers(-x.size, x.size, rng.integers(0, 9))
        values = helpers.integers(rng, (int(rng.integers(1, 5)),), x.dtype)
        np.put(x, indices, values)
        vg.put(array, given(rng, device, indices), given_array(rng, device, values))
        assert_same(array, x)
        mask = rng.integers(0, 2, x.shape).astype(bool)
        np.place(x, mask, values[::-1])
        vg.place(array, given(rng, device, mask), given_array(rng, device, values[::-1]))
        assert_same(array, x)
        array.put([0], 1)
        x.reshape(-1)[0] = 1
        assert_same(array, x)


def test_compress_and_extract(device, rng):
    for _ in range(DRAWS):
        x = draw_array(rng)
        axis = draw_axis(rng, x)
        n = length(x, axis)
        condition = rng.integers(0, 2, rng.integers(0, n + 1)).astype(bool)
        array = draw_layout(rng, device, x)
        expected = np.compress(condition, x, axis)
        if condition.size:
            assert_same(vg.compress(given(rng, device, condition), array, axis), expected)
        assert_same(array.compress(condition, axis=axis), expected)
        mask = rng.integers(0, 3, x.shape)
        assert_same(vg.extract(given_array(rng, device, mask), array), np.extract(mask, x))
        assert_same(vg.extract(mask, x), np.extract(mask, x))


def test_choose_and_select(device, rng):
    for _ in range(DRAWS):
        index = rng.integers(0, 3, (int(rng.integers(1, 4)), 4))
        dtypes = [ALL_DTYPES[i] for i in rng.integers(len(ALL_DTYPES), size=3)]
        if any(d in helpers.HALVES for d in dtypes):
            continue
        choices = [
            helpers.integers(rng, shape, d)
            for shape, d in zip([(4,), index.shape, (1, 4)], dtypes, strict=True)
        ]
        expected = np.choose(index, choices)
        result = vg.choose(put(device, index), [put(device, one) for one in choices])
        assert np.array_equal(result.numpy(), expected)
        assert np.array_equal(vg.choose(index, choices), expected)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = put(device, x)
    expected = np.select([x < 3, x < 6, x > 10], [x, -x, x * 2], 7)
    assert_same(vg.select([a < 3, a < 6, a > 10], [a, -a, a * 2], 7), expected)


def draw_parts(rng, n):
    way = rng.integers(4)
    if way == 0:
        return int(rng.integers(-n, n))
    if way == 1:
        return slice(int(rng.integers(0, n)), int(rng.integers(0, n + 1)), int(rng.integers(1, 3)))
    if way == 2:
        return rng.integers(0, 2, n).astype(bool)
    return rng.integers(-n, n, rng.integers(0, 4))


def test_delete_and_insert(device, rng):
    for _ in range(2 * DRAWS):
        x = draw_array(rng)
        axis = draw_axis(rng, x)
        array = draw_layout(rng, device, x)
        parts = draw_parts(rng, length(x, axis))
        on_device = put(device, parts) if isinstance(parts, np.ndarray) else parts
        assert_same(vg.delete(array, on_device, axis), np.delete(x, parts, axis))
        parts = draw_parts(rng, length(x, axis))
        value = helpers.integers(rng, (), x.dtype)
        if isinstance(parts, np.ndarray) and parts.dtype == bool:
            parts = np.flatnonzero(parts)
        expected = np.insert(x, parts, value, axis)
        assert_same(vg.insert(array, parts, put(device, value), axis), expected, f"{parts} {axis}")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = put(device, x)
    for where, values, axis in (
        (1, np.float32([7, 8]), 1),
        ([1], np.float32([[7], [8]]), 1),
        ([0, 2], np.float32([7, 8]), 1),
        (1, np.float32([7, 8, 9]), 0),
        ([3, 3, 3], np.float32([1, 2, 3]), None),
        (2, np.float32([1, 2, 3]), None),
    ):
        assert_same(
            vg.insert(a, where, put(device, values), axis), np.insert(x, where, values, axis)
        )


def test_refusals(device):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = put(device, x)
    index = put(device, np.array([[0, 9, 0]]))
    for exception, call in (
        (IndexError, lambda: vg.take(a, [6])),
        (IndexError, lambda: vg.take(a, put(device, [6]))),
        (IndexError, lambda: vg.take(a, [1.5])),
        (IndexError, lambda: vg.take(a, [True])),
        (np.exceptions.AxisError, lambda: vg.take(a, 0, 2)),
        (ValueError, lambda: vg.take(a, 0, mode="other")),
        (IndexError, lambda: vg.take(a[:0], [0], 0, mode="wrap")),
        (ValueError, lambda: vg.take(a, [0], out=put(device, np.zeros(2, np.float32)))),
        (TypeError, lambda: vg.take(a, [0], out=np.zeros(1, np.float32))),
        (ValueError, lambda: vg.put(a, [6], 1, mode="other")),
        (ValueError, lambda: vg.choose(put(device, [0]), [a, a], mode="other")),
        (TypeError, lambda: vg.take("12", 0)),
        (IndexError, lambda: vg.take_along_axis(a, index, 0)),
        (IndexError, lambda: vg.take_along_axis(a, index.numpy(), 0)),
        (ValueError, lambda: vg.take_along_axis(a, [0], 0)),
        (IndexError, lambda: vg.take_along_axis(a, np.zeros((5, 1), int), 1)),
        (IndexError, lambda: vg.put_along_axis(a, np.zeros((5, 1), int), 1, 1)),
        (ValueError, lambda: vg.put_along_axis(a, np.zeros((2, 1), int), np.zeros(2), 1)),
        (IndexError, lambda: vg.put(a, [6], 1)),
        (TypeError, lambda: vg.put([1, 2], [0], 1)),
        (OverflowError, lambda: vg.put(a.astype("int8"), [0], 300)),
        (ValueError, lambda: vg.put(vg.broadcast_to(a[0], (2, 3)), [0], 1)),
        (ValueError, lambda: vg.place(a, a > 1, put(device, np.zeros(0, np.float32)))),
        (ValueError, lambda: vg.place(a, [True], 1)),
        (IndexError, lambda: vg.compress([False] * 3 + [True], a, 1)),
        (ValueError, lambda: vg.compress([[True]], a)),
        (ValueError, lambda: vg.choose(put(device, [0]), [])),
        (IndexError, lambda: vg.choose(put(device, [2]), [a, a])),
        (ValueError, lambda: vg.select([a > 0], [])),
        (IndexError, lambda: vg.delete(a, 9)),
        (IndexError, lambda: vg.insert(a, 9, 1)),
    ):
        with helpers.refused(device, exception, a):
            call()
            if device != "cpu":  # what indices on a card lead to
                vg.synchronize(device)


def test_a_bad_out_is_refused_before_the_indices_are_read(device):
    """So that an index out of range, which a card tells of later, is not told of as well."""
    x = put(device, np.arange(6, dtype=np.float32).reshape(2, 3))
    index = put(device, np.full((2, 3), 9))
    wrong = {
        "a number": (1.5, TypeError),
        "a slice": (slice(0, 2), TypeError),
        "NumPy's": (np.zeros((2, 3), np.float32), TypeError),
        "another shape": (put(device, np.zeros((3, 2), np.float32)), ValueError),
        "a lower kind": (put(device, np.zeros((2, 3), np.int64)), TypeError),
    }
    for what, (out, error) in wrong.items():
        for call in (
            lambda out=out: vg.take(x, index, out=out),
            lambda out=out: vg.choose(index, [x, x], out=out),
        ):
            with pytest.raises(error):
                call()
            vg.synchronize(device)
            assert not (isinstance(out, vg.Array) and np.any(out.numpy())), what


@pytest.mark.devices("sim", "cuda")
def test_operands_on_another_device(device):
    a, other = put(device, np.zeros(3, np.float32)), put("cpu", np.zeros(1, np.int64))
    for call in (
        lambda: vg.take(a, other),
        lambda: a[other],
        lambda: a.__setitem__(other, 1),
        lambda: vg.put(a, other, 1),
        lambda: vg.put(a, [0], other),
    ):
        with helpers.refused(device, ValueError, a, match=f"cpu.*{device}|{device}.*cpu"):
            call()
