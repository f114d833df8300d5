"""Basic indexing and assignment: integers, slices, ... and None; each result is a view.

Arrays of indices and masks among them: test_gather.py.
"""

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put

import pyvecgpu as vg

KEYS = [
    0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(None, None, 2), slice(3, 0, -2),
    slice(10, 20), slice(2, 2), slice(-2, None), slice(None, -3), slice(100, None, -1),
    slice(None, None, 50), Ellipsis, None, (), (0,), (0, 1), (0, 1, 2), (Ellipsis, 1),
    (1, Ellipsis), (None, 1, None), (slice(1, 3), 0),
    (slice(None), slice(None, None, -2), slice(1, 4)), (0, Ellipsis, None), (slice(None), None, -1),
    (Ellipsis, slice(None, None, 3)), np.int64(2), (np.uint8(1), slice(0, 2)),
    slice(np.int32(1), np.int64(3)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.dtype(np.uint8), np.dtype(np.float64)], ids=str)
def test_reading(device, rng, dtype):
    x = helpers.numbers(rng, (4, 5, 6), dtype)
    for name, make in helpers.LAYOUTS.items():
        array = make(device, x)
        for key in KEYS:
            assert_same(array[key], x[key], f"{name} [{key}]")


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_assignment(device, rng, dtype):
    x = helpers.numbers(rng, (4, 5, 6), dtype)
    for key in KEYS:
        values = helpers.numbers(rng, x[key].shape, dtype)
        for value in (
            put(device, values),
            values,
            True,
            put(device, values[..., :1] if values.ndim else values),
        ):
            array, expected = put(device, x), x.copy()
            array[key] = value
            expected[key] = helpers.host(value)
            assert_same(array, expected, f"[{key}]")


def test_assignment_casts_and_broadcasts(device):
    array = vg.zeros((2, 3), dtype=np.int32, device=device)
    array[...] = np.array([1.9, -1.9, np.inf], np.float32)
    assert_same(array, np.array([[1, -1, 2**31 - 1]] * 2, np.int32))
    array[0] = put(device, np.array([[[7]]], np.uint8))
    assert array.tolist() == [[7, 7, 7], [1, -1, 2**31 - 1]]
    array[:, 1:] = 0
    assert array.tolist() == [[7, 0, 0], [1, 0, 0]]
    for value in (np.zeros(2, np.int32), np.zeros((2, 2, 3), np.int32), np.zeros((3, 2), np.int32)):
        with helpers.refused(device, ValueError, array, match="broadcast"):
            array[...] = put(device, value)


def test_views_share_memory(device):
    array = vg.zeros((3, 4), device=device)
    view = array[1:, ::2]
    view[...] = 5.0
    array[2, 2] = 7.0
    assert view.tolist() == [[5, 5], [5, 7]]
    part = view[0]
    del array, view
    assert part.tolist() == [5, 5]


def test_elements_are_arrays(device):
    array = put(device, [[1, 2], [3, 4]])
    element = array[1, 0]
    assert isinstance(element, vg.Array)
    assert (element.shape, element.item(), int(element)) == ((), 3, 3)


def test_indices_out_of_range(device):
    array = put(device, np.zeros((2, 3), np.float32))
    for key in (2, -3, (0, 3), (0, -4), (slice(None), 3), 2**64, -(2**70), np.int64(5)):
        with helpers.refused(device, IndexError, array, match="out of bounds"):
            array[key]
        with helpers.refused(device, IndexError, array):
            array[key] = 1
    for key in ((0, 0, 0), (0, 0, Ellipsis, 0), (Ellipsis, Ellipsis), (slice(None),) * 3):
        with helpers.refused(device, IndexError, array):
            array[key]
    empty = put(device, np.zeros((0, 3), np.float32))
    with helpers.refused(device, IndexError, empty):
        empty[0]


def test_kinds_of_indices_that_are_not_there(device):
    array = put(device, np.zeros((2, 3), np.float32))
    for key in (1.0, "0", [0.0], np.array([0.0, 1.0]), array, np.float32(1), {}):
        with helpers.refused(device, IndexError, array):
            array[key]
        with helpers.refused(device, IndexError, array):
            array[key] = 0
    with helpers.refused(device, ValueError, array):
        array[::0]
    with helpers.refused(device, TypeError, array):
        array[1.5:]


def test_values_of_foreign_types(device):
    array = put(device, np.zeros(3, np.float32))
    for value in ("1", None, ["1"] * 3, {}, 1j):
        with helpers.refused(device, TypeError, array):
            array[...] = value


@pytest.mark.devices("sim", "cuda")
def test_values_on_another_device(device):
    array = put(device, np.zeros(3, np.float32))
    with helpers.refused(device, ValueError, array, match=f"cpu.*{device}"):
        array[...] = vg.ones(3, device="cpu")


def test_iteration_and_length(device, rng):
    x = helpers.numbers(rng, (3, 2), np.dtype(np.float32))
    array = put(device, x)
    assert len(array) == 3
    for row, expected in zip(array, x, strict=True):
        assert_same(row, expected)
