"""Lists where arrays stand: assigned to parts of arrays, with Arrays in them, as repeats."""

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put, refused

import pyvecgpu as vg

KEYS = (
    (np.s_[:, 1], (4,)),
    (np.s_[0], (5,)),
    (np.s_[::-2, 1:3], (2, 2)),
    (np.s_[[0, 2]], (2, 5)),
    (np.s_[..., None], (1,)),
    (np.array([True, False, True, True]), (3, 5)),
    (np.s_[1, 2], ()),
)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_lists_are_assigned(device, rng, dtype):
    for key, shape in KEYS:
        x = helpers.integers(rng, (4, 5), dtype)
        values = helpers.integers(rng, shape, np.dtype(np.int8)) % 2
        array, expected = put(device, x), x.copy()
        array[key] = values.tolist() if shape else int(values)
        expected[key] = values
        assert_same(array, expected)
        if shape:
            array[key] = tuple(values.tolist())
            assert_same(array, expected)


def test_other_sequences(device):
    array = put(device, np.zeros((2, 3), np.float32))
    array[0] = range(3)
    array[1] = [array[0, 1], 2.5, array[0, 2]]
    assert array.tolist() == [[0, 1, 2], [1, 2.5, 2]]
    array[:] = [[7], [8]]
    assert array.tolist() == [[7] * 3, [8] * 3]
    mask = array > 7
    array[mask] = [1, 2, 3]
    assert array.tolist() == [[7] * 3, [1, 2, 3]]
    empty = put(device, np.zeros((0, 2)))
    empty[:] = [[1, 2]]
    assert empty.shape == (0, 2)


def test_lists_that_do_not_fit(device):
    array = put(device, np.zeros((2, 3), np.int8))
    with refused(device, ValueError, array):
        array[0] = [1, 2]
    with refused(device, ValueError, array):
        array[0] = [1, [2, 3]]
    with refused(device, OverflowError, array):
        array[0] = [1, 2, 300]
    with refused(device, TypeError, array):
        array[0] = ["a", "b", "c"]
    assert array.tolist() == [[0] * 3] * 2


def test_arrays_within_lists(device):
    a, b = put(device, np.arange(3, dtype=np.float32)), put(device, np.arange(3, 6))
    assert_same(vg.asarray([a, b]), np.asarray([[0, 1, 2], [3, 4, 5]], np.float64))
    assert_same(vg.asarray([[a[0], 1], [2, b[1]]]), np.asarray([[0, 1], [2, 4]], np.float64))
    assert_same(vg.asarray([b[0], 2.5]), np.asarray([3, 2.5], vg.get_default_dtype()))
    assert_same(vg.asarray((a,), "int8"), np.asarray([[0, 1, 2]], np.int8))
    assert vg.asarray([a, a]).device == a.device
    assert vg.asarray([a], device="cpu").device.type == "cpu"
    assert vg.asarray([[a[:0]], [a[:0]]]).shape == (2, 1, 0)
    for bad in ([a, a[0]], [[a[0], 1], [2]], [[a[0]], 3], [a[0], [3]]):
        with refused(device, ValueError, a):
            vg.asarray(bad)
    with refused(device, TypeError, a):
        vg.asarray([a[0], "x"])


def test_repeat_by_counts(device, rng):
    for _ in range(30):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))
        x = helpers.integers(rng, shape, ALL_DTYPES[rng.integers(len(ALL_DTYPES))])
        axis = int(rng.integers(-x.ndim, x.ndim)) if rng.integers(4) else None
        length = x.size if axis is None else shape[axis]
        counts = rng.integers(0, 4, length).astype(rng.choice(["i1", "u2", "i8"]))
        expected = np.repeat(x, counts.astype(np.int64), axis)
        for given in (put(device, counts), counts, counts.tolist()):
            assert_same(vg.repeat(put(device, x), given, axis), expected)
        assert_same(vg.repeat(x, counts, axis=axis), expected)
    x = put(device, np.arange(4))
    assert_same(vg.repeat(x, put(device, np.array([2]))), np.repeat(np.arange(4), 2))
    assert_same(x.repeat([1, 0, 0, 2]), np.array([0, 3, 3]))
    assert vg.repeat(x, put(device, np.zeros(4, np.int64))).shape == (0,)
    assert vg.repeat(x[:0], put(device, np.zeros(0, np.int64))).shape == (0,)


def test_counts_that_do_not_fit(device):
    x = put(device, np.arange(4))
    for counts in ([1, 2], [[1, 2, 3, 4]], [1, -1, 2, 2]):
        for given in (counts, put(device, np.array(counts))):
            with refused(device, ValueError, x):
                vg.repeat(x, given)
    with refused(device, TypeError, x):
        vg.repeat(x, [1.0, 2.0, 1.0, 1.0])


def test_new_axes_at_several_places(device):
    x = put(device, np.zeros((2, 3)))
    for axis in ((0,), (0, -1), (-2, 1), [3, 0, 1], ()):
        expected = np.expand_dims(np.zeros((2, 3)), tuple(axis))
        assert vg.expand_dims(x, axis).shape == expected.shape
    for axis in ((0, 0), (1, -3)):
        with refused(device, ValueError, x):
            vg.expand_dims(x, axis)
    with refused(device, np.exceptions.AxisError, x):
        vg.expand_dims(x, (0, 4))


def test_astype_to_a_device(device):
    x = put(device, np.arange(3))
    there = vg.astype(x, "float32", device="cpu")
    assert there.device.type == "cpu" and there.dtype == vg.float32
    assert vg.astype(x, x.dtype, copy=False, device=device) is x
    assert vg.astype(x, x.dtype, device=device) is not x
    assert_same(vg.astype(np.arange(3), "int8", device=device), np.arange(3, dtype=np.int8))


def test_masks_with_an_axis_without_elements(device):
    for shape, mask in (((2, 3), (2, 0)), ((0, 3), (0, 0)), ((2, 3), (0,)), ((2, 3, 4), (0, 3))):
        x, key = np.ones(shape), np.zeros(mask, bool)
        array = put(device, x)
        assert_same(array[put(device, key)], x[key])
        array[put(device, key)] = 7
        assert_same(array, x)
    with refused(device, IndexError, array, match="boolean index"):
        array[put(device, np.zeros((1, 0), bool))]


def test_in(device):
    x = put(device, np.array([[1, 2], [3, 4]]))
    assert 3 in x and 5 not in x
