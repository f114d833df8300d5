"""vg.Array: attributes, conversions, printing, pickling, NumPy's protocols."""

import copy
import pickle

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put

import pyvecgpu as vg


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_attributes_are_those_of_numpy(device, rng, dtype):
    for shape in ((), (0,), (5,), (2, 3), (2, 0, 3)):
        x = helpers.numbers(rng, shape, dtype)
        array = put(device, x)
        for name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes"):
            assert getattr(array, name) == getattr(x, name), name
        if x.size:
            assert array.strides == x.strides
            assert array.T.strides == x.T.strides
        assert str(array.device).startswith(device)


def test_items(device):
    assert put(device, 2.5).item() == 2.5
    assert type(put(device, 2).item()) is int
    assert type(put(device, [True]).item()) is bool
    assert put(device, [[2.5, 1.0]]).tolist() == [[2.5, 1.0]]
    assert put(device, np.zeros((2, 0), np.float32)).tolist() == [[], []]
    for values in ([1, 2], []):
        with helpers.refused(device, ValueError):
            put(device, values).item()


def test_conversions_to_python(device):
    two = put(device, [1.0, 2.0])
    zero_d = put(device, 3)
    assert (int(zero_d), float(zero_d), bool(zero_d)) == (3, 3.0, True)
    assert [10, 20, 30, 40][zero_d] == 40
    for convert in (int, float):
        with helpers.refused(device, TypeError, two):
            convert(two)
    with helpers.refused(device, ValueError, two, match="ambiguous"):
        bool(two)
    with helpers.refused(device, ValueError):
        bool(put(device, []))
    for convert in (len, iter):
        with helpers.refused(device, TypeError, zero_d):
            convert(zero_d)
    with helpers.refused(device, TypeError, two):
        [1, 2][put(device, 1.0)]
    with helpers.refused(device, TypeError, two):
        hash(two)


def test_zero_dimensional_arrays_go_through_everything(device):
    x = np.float32(2.5)
    array = put(device, x)
    assert array.shape == ()
    assert_same(array + array, np.asarray(x + x))
    assert_same(-array, np.asarray(-x))
    assert_same(vg.where(array > 1, array, 0.0), np.asarray(x))
    for name in ("sum", "mean", "max", "min"):
        assert_same(getattr(array, name)(), np.asarray(x))
        assert_same(getattr(array, name)(axis=()), np.asarray(x))
        with helpers.refused(device, np.exceptions.AxisError, array):
            getattr(array, name)(axis=0)
    assert_same(array.argmax(), np.asarray(0))
    assert_same(array[()], np.asarray(x))
    assert_same(array[...], np.asarray(x))
    assert_same(array[None], np.asarray(x)[None])
    with helpers.refused(device, IndexError, array):
        array[0]
    array[()] = 4.0
    assert_same(array.copy().reshape(1, 1), np.array([[4]], np.float32))
    assert_same(array.T, np.asarray(np.float32(4)))
    assert_same(array.astype(np.int64), np.asarray(4))
    assert_same(vg.broadcast_to(array, (2, 2)), np.full((2, 2), 4, np.float32))


def test_arrays_are_made_by_functions():
    with pytest.raises(TypeError, match="asarray"):
        vg.Array([1, 2])


def test_repr_and_str(device):
    array = put(device, [[1.0, 2.5], [3.0, -4.0]])
    assert (
        repr(array)
        == f"Array([[ 1. ,  2.5],\n       [ 3. , -4. ]], dtype=float32, device='{array.device}')"
    )
    assert str(array) == "[[ 1.   2.5]\n [ 3.  -4. ]]"
    assert f"{put(device, 1.25):.1f}" == "1.2"
    for dtype in (np.float16, np.float32, np.float64, np.int64, bool):
        third = np.asarray(1 / 3).astype(dtype)
        assert str(put(device, third)) == f"{put(device, third)}" == str(third), "all digits"
    assert "dtype=int64" in repr(put(device, 3))
    empty = repr(put(device, np.zeros((0, 3), np.float32)))
    assert "Array([]" in empty


def test_printing_large_arrays_reads_the_edges_only(device):
    x = np.arange(5000 * 10, dtype=np.int64).reshape(5000, 10)
    array = put(device, x)
    before = vg.counters(device)["bytes_to_host"]
    assert str(array) == str(x)
    assert vg.counters(device)["bytes_to_host"] - before < 10_000


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(device, rng, protocol):
    x = helpers.numbers(rng, (3, 4), np.dtype(np.float32))
    for array, expected in ((put(device, x), x), (put(device, x).T[::2], x.T[::2])):
        loaded = pickle.loads(pickle.dumps(array, protocol))
        assert_same(loaded, expected)
        assert loaded.device is array.device


def test_copies(device, rng):
    x = helpers.numbers(rng, (3, 4), np.dtype(np.float32))
    array = put(device, x)
    for other in (array.copy(), copy.copy(array), copy.deepcopy(array)):
        other[...] = 0.0
        assert_same(array, x)


@pytest.mark.devices("sim", "cuda")
def test_numpy_does_not_get_values_silently(device):
    array = put(device, [1.0, 2.0])
    for function in (np.asarray, np.array, np.emath.sqrt, np.emath.log):
        with helpers.refused(device, vg.ImplicitTransferError, array, match=device):
            function(array)
    assert issubclass(vg.ImplicitTransferError, TypeError)


@pytest.mark.devices("cpu")
def test_numpy_gets_the_values_of_a_cpu_array(device):
    array = put(device, [1.0, 2.0])
    assert_same(np.asarray(array), np.array([1, 2], np.float32))
    assert_same(np.asarray(array, dtype=np.float64), np.array([1.0, 2.0]))


def test_numpy_functions_of_arrays(device):
    x = np.array([1.0, 4.0], np.float32)
    array = put(device, x)
    assert_same(np.sqrt(array), np.sqrt(x))
    assert_same(np.add(x, array), x + x)
    assert isinstance(np.add(x, array), vg.Array)
    unknown = np.frompyfunc(lambda value: 2 * value, 1, 1)
    for call in (lambda: unknown(array), lambda: np.add(array, x, casting="unsafe")):
        with helpers.refused(device, TypeError, array):
            call()
    if device == "cpu":  # NumPy 2 keeps a reference to an operand whose reduce is refused
        with helpers.refused(device, TypeError, array):
            np.subtract.reduceat(array, [0, 1])


def test_numpy_arrays_are_not_changed_in_place_by_arrays(device):
    x = np.array([1.0, 4.0], np.float32)
    array = put(device, x)
    y = x
    with helpers.refused(device, TypeError, array):
        y += array
    assert_same(x, np.array([1.0, 4.0], np.float32))


def test_unknown_names_say_what_there_is():
    with pytest.raises(AttributeError, match="no_such_function"):
        vg.no_such_function()
    assert "asarray" in dir(vg)


def test_numpy_functions_do_not_guess(device):
    """numpy.array_equal swallows every error and says False; it must not here."""
    x = put(device, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2
    assert np.sum(x, axis=1).tolist() == [3.0, 12.0]
    for function in (np.array_equal, np.array_equiv, np.allclose):
        assert function(x, x) and function(x.numpy(), x) and not function(x, x + 1)
    for function in (np.emath.power, np.emath.logn):
        with helpers.refused(device, vg.ImplicitTransferError, x, match="host with .numpy"):
            function(x, x)
