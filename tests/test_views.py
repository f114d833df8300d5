"""Basic keys, reshapes and axes in reverse order, by the short way of a card and the long one.

Keys are drawn at random and compared with NumPy's views of numbers that tell where each stood; the
long way is taken while somebody observes.
"""

import re

import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.dispatch import observe
from pyvecgpu.native.abi import MAX_NDIM, Key
from pyvecgpu.short_views import indexed

BOUNDS = [None, *range(-9, 10), 2**40, -(2**40), 2**63 - 1, -(2**63)]


def drawn_slice(rng, size):
    near = [None, *range(-size - 2, size + 3)]
    pool = near if rng.random() < 0.8 else BOUNDS
    start, stop, step = (pool[rng.integers(len(pool))] for _ in range(3))
    return slice(start, stop, step or None)


def drawn_key(rng, shape):
    """A key with items for some of the axes, mostly within bounds."""
    items, count = [], rng.integers(len(shape) + 1)
    for size in shape[:count]:
        kind = rng.integers(3)
        items.append(drawn_slice(rng, size) if kind else int(rng.integers(-size - 1, size + 2)))
    for extra in (None, Ellipsis):
        while rng.random() < 0.3:
            items.insert(rng.integers(len(items) + 1), extra)
            if extra is Ellipsis and rng.random() < 0.9:
                break
    if len(items) == 1 and rng.random() < 0.7:
        return items[0]
    return tuple(items)


def drawn_array(device, rng):
    """An Array and NumPy's of the same numbers: of some axes, some of length 0 or 1, some views."""
    shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 5, 8], rng.integers(5), p=P))
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    array = put(device, values)
    if rng.random() < 0.5:
        array, values = vg.permute_dims(array, tuple(range(array.ndim))[::-1]), values.T
    if values.ndim and rng.random() < 0.5:
        array, values = array[..., ::-1], values[..., ::-1]
    return array, values


P = (0.05, 0.15, 0.2, 0.2, 0.2, 0.2)


def outcome(compute):
    try:
        return compute()
    except (IndexError, ValueError) as error:
        return type(error)


def ways(compute):
    """What compute() gives when nobody observes, and when somebody does."""
    short = outcome(compute)
    with observe(lambda call: None):
        return short, outcome(compute)


def test_keys(device, rng):
    views = 0
    for _ in range(1500):
        array, values = drawn_array(device, rng)
        key = drawn_key(rng, values.shape)
        expected = outcome(lambda values=values, key=key: values[key])
        for found in ways(lambda array=array, key=key: array[key]):
            if isinstance(expected, type):
                assert found is expected, (key, values.shape)
                continue
            views += 1
            if device != "cpu":
                assert indexed(array, key) is not None, "it has taken the short way"
            assert_same(found, np.asarray(expected), f"{key} of {values.shape}")
            moved = [n for n in found.shape if n > 1]
            if expected.ndim and expected.size and len(moved) == found.ndim:
                assert found.strides == expected.strides, f"{key} of {values.shape}"
    assert views > 1500


def test_writing_by_keys(device, rng):
    for number in range(400):
        array, values = drawn_array(device, rng)
        values = values.copy()
        array = vg.copy(array)
        key = drawn_key(rng, values.shape)

        def assign(array=array, key=key, number=number):
            array[key] = -number - 1

        expected = outcome(lambda v=values, k=key, n=number: v.__setitem__(k, -n - 1))
        for found in ways(assign):
            assert found is expected, (key, values.shape)
            assert_same(array, values, f"{key} of {values.shape}")


def test_messages(device):
    array = put(device, np.zeros((3, 4)))
    for key, message in {
        3: "index 3 is out of bounds for axis 0 with size 3",
        (0, -5): "index -5 is out of bounds for axis 1 with size 4",
        (0, 0, 0): "too many indices: 3 for an array of 2 dimensions",
        (..., ...): "single ellipsis",
    }.items():
        with pytest.raises(IndexError, match=re.escape(message)):
            array[key]
    with pytest.raises(ValueError, match="zero"):
        array[::0]
    with pytest.raises(ValueError, match=f"at most {MAX_NDIM}"):
        array[(None,) * (MAX_NDIM - 1)]
    assert array[(None,) * (MAX_NDIM - 2)].ndim == MAX_NDIM
    with pytest.raises((TypeError, IndexError)):
        array[1.5:]


def test_reshapes(device, rng):
    fits = 0
    for _ in range(600):
        array, values = drawn_array(device, rng)
        size, shape = values.size, []
        while rng.random() < 0.7:
            found = [n for n in (1, 2, 3, 5, 8) if size % n == 0]
            n = int(rng.choice(found if found and rng.random() < 0.9 else [0, 4, 7]))
            shape.append(n)
            size //= n or 1
        shape = [*shape, size] if rng.random() < 0.7 else shape
        if shape and rng.random() < 0.4:
            shape[rng.integers(len(shape))] = int(rng.choice([-1, -1, -1, -2]))
        given = tuple(shape) if rng.random() < 0.7 else shape
        expected = outcome(lambda values=values, given=given: values.reshape(given))
        expected = ValueError if -2 in given else expected  # which NumPy takes for -1
        for found in ways(lambda array=array, given=given: array.reshape(given)):
            if isinstance(expected, type):
                assert found is expected, (given, values.shape)
            else:
                fits += 1
                assert_same(found, expected, f"{values.shape} as {given}")
    assert fits > 300
    array = vg.arange(6, device=device)
    assert array.reshape(-1).shape == (6,) and array.reshape(3, -1).shape == (3, 2)
    assert array.reshape(2, 3).reshape((6,)).tolist() == list(range(6))
    for wrong, error in (((2.0, 3), TypeError), ((True, 6), TypeError), ("6", TypeError)):
        with pytest.raises(error):
            array.reshape(wrong)
    with pytest.raises(ValueError, match="cannot reshape"):
        array.reshape(4, 2)
    copy = vg.reshape(array, (2, 3), copy=True)
    copy[0, 0] = 9
    assert array.tolist() == list(range(6)) and copy.tolist() == [[9, 1, 2], [3, 4, 5]]


def test_axes_in_reverse_order(device, rng):
    for _ in range(100):
        array, values = drawn_array(device, rng)
        for found in ways(lambda array=array: array.T):
            assert_same(found, values.T, values.shape)


def test_views_share_memory_and_keep_it(device):
    array = put(device, np.arange(24.0).reshape(4, 6))
    for make in (lambda x: x[1:3], lambda x: x[2], lambda x: x.reshape(6, 4), lambda x: x.T):
        view = make(array)
        before = view._version
        array[2, 0] += 1.0
        assert view._version != before
        assert 12.0 not in view.numpy()
        array[2, 0] = 12.0
    view = put(device, np.arange(3.0))[1:]
    assert view.tolist() == [1.0, 2.0], "the array is gone, and its memory is not"
    assert vg.broadcast_to(view, (2, 2))[1:].shape == (1, 2)
    with pytest.raises(ValueError, match="read-only"):
        vg.broadcast_to(view, (2, 2))[1:][0] = 3.0


def test_tracked_arrays_are_recorded(device):
    array = put(device, np.arange(6.0).reshape(2, 3)).requires_grad_()
    (array[1, ::-2] * array.T[0, 0] + array.reshape(3, 2)[2, 1]).sum().backward()
    assert array.grad.numpy().tolist() == [[8.0, 0.0, 0.0], [0.0, 0.0, 2.0]]


def items(*rows):
    return (vg.native.abi.c_int64 * (4 * len(rows)))(*[n for row in rows for n in row])


@pytest.mark.devices("sim", "cuda")
def test_refused_by_the_c_function(device):
    """What the package never sends: kinds that there are not."""
    array = put(device, np.arange(6).reshape(2, 3))
    backend = array.backend
    index = backend.functions.pvg_index
    for kind in (-1, 6, 7, 32, 4, 8, 33, 2**40):
        assert not index(array.raw, 1, items((kind, 0, 0, 0)))
        with pytest.raises(ValueError, match="no kind"):
            backend.fail()
    every = Key.KEY_SLICE | Key.KEY_START | Key.KEY_STOP | Key.KEY_STEP
    for step in (-(2**63), 2**63 - 1):
        data = index(
            array.raw, 1, items((every, 1 if step < 0 else 0, -9 if step < 0 else 9, step))
        )
        assert backend.describe(data)[1] == (1, 3)
    assert not index(array.raw, -1, None)
    with pytest.raises(ValueError, match="-1 items"):
        backend.fail()
    assert not index(array.raw, 1, None)
    with pytest.raises(ValueError, match="1 items"):
        backend.fail()
    assert backend.describe(index(array.raw, 0, None))[1] == (2, 3)
