"""Shapes and sizes that make no sense, or that no memory holds: refused before anything happens."""

import ctypes
import time

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.native import library
from pyvecgpu.native.abi import DType, Status

TOO_LARGE = [
    (2**32, 2**32),
    2**63,
    2**64 + 5,  # ctypes would make 5 of it
    (2**64,),
    (2**32, 2**32, 16),  # the product wraps to 0
    (2, 2, 5, 5581, 8681, 49477, 384773),  # 2**64 + 4 elements: the product wraps to 4
    (0, 2**62, 2**62),  # NumPy refuses this too
    (2**40, 2**40, 0),
]
NEGATIVE = [-1, (3, -2), (-(2**70),), (0, -1)]


@pytest.mark.parametrize("shape", TOO_LARGE + NEGATIVE, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float64"])
def test_impossible_shapes(device, shape, dtype):
    launches = vg.counters(device)["launches"]
    for make in (vg.empty, vg.zeros, lambda s, **k: vg.full(s, 1, **k)):
        with helpers.refused(device, ValueError):
            make(shape, dtype=dtype, device=device)
    allowed = 0 if device == "cpu" else 3  # refused computes a sum after each
    assert vg.counters(device)["launches"] == launches + allowed


@pytest.mark.parametrize(
    "shape",
    [2.5, True, None, "3", object(), (2, 2.5), (True, 1), (None,), ("3",), [1, 1.0]],
    ids=lambda shape: type(shape).__name__ if type(shape) is object else str(shape),
)
def test_dimensions_that_are_no_integers(device, shape):
    with helpers.refused(device, TypeError):
        vg.empty(shape, device=device)
    array = put(device, np.zeros(6, np.float32))
    with helpers.refused(device, TypeError, array):
        vg.reshape(array, shape)
    with helpers.refused(device, TypeError, array):
        vg.broadcast_to(array, shape)


def test_errors_of_index_methods_pass_through(device):
    class Odd:
        def __index__(self):
            raise KeyError("its own")

    for call in (
        lambda: vg.empty(Odd(), device=device),
        lambda: vg.zeros((1, Odd()), device=device),
        lambda: vg.sum(put(device, [1.0]), axis=Odd()),
        lambda: vg.reshape(put(device, [1.0]), Odd()),
    ):
        with helpers.refused(device, KeyError, match="its own"):
            call()


def test_objects_that_are_integers(device):
    assert vg.empty((np.int64(2), np.uint8(3)), device=device).shape == (2, 3)
    assert vg.sum(put(device, np.ones((2, 3))), axis=np.int32(1)).shape == (2,)
    assert put(device, np.ones(6, np.float32)).reshape(np.int64(2), 3).shape == (2, 3)


def test_size_zero(device):
    """No element, no byte, no launch; and it goes through everything."""
    before = vg.counters(device)["launches"]
    x = vg.empty((0, 5), device=device)
    assert (x.size, x.nbytes, x.shape) == (0, 0, (0, 5))
    assert_same(x.T @ x, np.zeros((5, 5), np.float32)) if device == "cpu" else None
    assert (x + 1).shape == (0, 5)
    assert vg.exp(x).shape == (0, 5)
    assert x.reshape(5, 0).T[:, 1:3].shape == (0, 2)
    assert x.numpy().shape == (0, 5)
    x[...] = 1.0
    assert vg.counters(device)["launches"] == before
    assert_same(vg.sum(x, axis=0), np.zeros(5, np.float32))


def test_number_of_dimensions(device):
    shape = (1,) * 31 + (3,)
    x = vg.ones(shape, device=device)
    assert_same(x + x, np.full(shape, 2, np.float32))
    assert_same(vg.sum(x), np.array(3, np.float32))
    assert_same(x.T.copy(), np.ones(shape[::-1], np.float32))
    for call in (
        lambda: vg.empty((1,) * 33, device=device),
        lambda: x.reshape((1,) * 33),
        lambda: vg.broadcast_to(x, (1, *shape)),
        lambda: vg.expand_dims(x),
        lambda: x[None],
    ):
        with helpers.refused(device, ValueError, x, match="32"):
            call()


def test_strided_array_of_32_dimensions(device, rng):
    """Two elements along 14 axes, none of which merges with its neighbour."""
    x = helpers.numbers(rng, (2,) * 14, np.dtype(np.int32))
    axes = [*range(0, 14, 2), *range(1, 14, 2)]
    shape = (*(1,) * 9, *(2,) * 14, *(1,) * 9)
    array = vg.permute_dims(put(device, x), axes).reshape(shape)
    assert_same(array, x.transpose(axes).reshape(shape))
    assert_same(array + array, (x + x).transpose(axes).reshape(shape))


def test_requests_beyond_all_memory(device):
    """1 EiB: quickly, with the numbers, and nothing is held."""
    start = time.perf_counter()
    with helpers.refused(device, vg.OutOfMemoryError) as caught:
        vg.empty(2**60, dtype=np.uint8, device=device)
    assert time.perf_counter() - start < 1.0  # the pool empties its cache first
    assert device in caught.value.device
    if device != "cpu":
        assert caught.value.requested >= 2**60
        assert caught.value.free <= vg.memory_info(device).total
        assert str(2**60) in str(caught.value)
    start = time.perf_counter()
    with pytest.raises(vg.OutOfMemoryError):
        vg.empty(2**60, dtype=np.uint8, device=device)
    assert time.perf_counter() - start < 0.1


def test_huge_views_are_fine_and_huge_results_are_not(device):
    one = put(device, np.ones(1, np.float32))
    view = vg.broadcast_to(one, (2**50,))
    assert view.shape == (2**50,)
    assert view[2**49].item() == 1.0
    assert view[2**40 : 2**40 + 3].tolist() == [1, 1, 1]
    for call in (view.copy, lambda: view + view, lambda: vg.exp(view), lambda: view == view):
        with helpers.refused(device, vg.OutOfMemoryError, one):
            call()
    with helpers.refused(device, ValueError, one):
        vg.broadcast_to(one, (2**40, 2**40))


def test_huge_results_of_small_operands(device):
    column, row = (
        put(device, np.ones((2**20, 1), np.uint8)),
        put(device, np.ones((1, 2**20), np.uint8)),
    )
    wide = vg.broadcast_to(column[:1, :1], (2**31, 2**31))
    for call in (lambda: wide + 1, lambda: wide == 1, lambda: wide < 300):
        with helpers.refused(device, vg.OutOfMemoryError, column):
            call()
    with helpers.refused(device, ValueError, column):
        vg.broadcast_to(wide[:, None], (2**31, 4, 2**31))
    tall = vg.broadcast_to(column[:1], (2**40, 1))
    with helpers.refused(device, vg.OutOfMemoryError, column, row):
        tall @ vg.broadcast_to(row[:, :1], (1, 2**20))
    with helpers.refused(device, ValueError, column, row):
        vg.broadcast_to(column[:1], (2**40, 1)) + vg.broadcast_to(row[:, :1], (1, 2**40))


@pytest.mark.devices("sim", "cuda")
def test_sizes_at_the_c_interface(device):
    """Sizes whose rounding up would wrap: a status, a null handle, no memory touched."""
    loaded = library.load(device)
    before = helpers.live(device)
    for size in (2**63 - 1, 2**63 - 511, 2**62, 2**61 + 1, -1, -(2**63)):
        for dtype in (DType.UINT8, DType.INT32, DType.FLOAT64):
            handle = loaded.pvg_array_empty(0, dtype, 1, (ctypes.c_int64 * 1)(size))
            assert handle is None
            status = loaded.pvg_last_status()
            allowed = (
                {Status.ERROR_VALUE} if size < 0 else {Status.ERROR_VALUE, Status.ERROR_MEMORY}
            )
            assert status in allowed, loaded.pvg_last_error()
    for ndim, dtype, status in ((-1, 11, 1), (33, 11, 1), (1, 99, 2), (1, -1, 2)):
        shape = (ctypes.c_int64 * 33)(*[1] * 33)
        assert loaded.pvg_array_empty(0, dtype, ndim, shape) is None
        assert loaded.pvg_last_status() == status
    assert loaded.pvg_array_empty(0, 11, 2, None) is None
    assert loaded.pvg_last_status() == Status.ERROR_VALUE
    assert loaded.pvg_array_empty(99, 11, 0, None) is None
    assert loaded.pvg_last_status() == Status.ERROR_UNAVAILABLE
    assert helpers.live(device) == before
    helpers.assert_works(device)
