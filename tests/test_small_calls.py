"""Short ways of single calls: they give what the long ones do, views, errors and observers too."""

import itertools
import threading

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, DTYPES, NUMBERS, assert_same, host, put, refused

import pyvecgpu as vg
from pyvecgpu.dispatch import observe
from pyvecgpu.dtypes import is_half

LOGICAL = ("logical_and", "logical_or", "logical_xor")


def long_way(call):
    """What a call gives, and the methods it called, while somebody looks: short ways are closed."""
    seen = []
    with observe(lambda one: seen.append(one.method)):
        return call(), seen


# One number ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_item(device, dtype):
    values = helpers.specials(dtype).ravel()
    array = put(device, values)
    for i in range(values.size):
        for view in (array[i], array[i : i + 1], array[::-1][values.size - 1 - i, None, None]):
            found, (expected, seen) = view.item(), long_way(view.item)
            assert seen[-1] == "to_host"
            assert type(found) is type(expected)
            assert repr(found) == repr(expected)  # signs of zeros, NaN
            assert found == expected or found != found


def test_numbers_of_one_element(device):
    for value in (0.0, -0.0, 2.5, float("nan")):
        array = put(device, np.float64(value))
        assert bool(array) is bool(value)
        assert repr(float(array)) == repr(value)
    assert int(put(device, np.uint64(2**64 - 1))) == 2**64 - 1
    assert complex(put(device, np.complex64(1 - 2j))) == 1 - 2j
    assert vg.asarray(-3, device=device).__index__() == -3


@pytest.mark.parametrize("shape", [(2,), (0,), (3, 1), (1, 0)])
def test_several_elements_are_no_number(device, shape):
    array = vg.zeros(shape, device=device)
    with refused(device, ValueError, array, match=r"array of size 1 has an item\(\)"):
        array.item()
    with refused(device, ValueError, array, match="ambiguous"):
        bool(array)
    for number in (int, float, complex):
        with refused(device, TypeError, array, match="size 1"):
            number(array)


def test_item_waits_for_what_is_before_it(device):
    array = vg.zeros(5000, device=device)
    for step in range(1, 9):
        array += 1
        assert array[step * 500].item() == step
        assert vg.sum(array).item() == 5000 * step


def test_items_of_several_threads(device):
    """More of them than there are places that numbers land in."""
    array, wrong = vg.arange(64, device=device), []

    def look(first):
        for i in range(40):
            at = (first + i) % 64
            if array[at].item() != at or array[: at + 1].numpy().tolist() != [*range(at + 1)]:
                wrong.append(at)

    threads = [threading.Thread(target=look, args=(first,)) for first in range(0, 64, 4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


@pytest.mark.parametrize("length", [1, 1023, 4096, 4097, 16384, 16385])
def test_small_downloads(device, length):
    """Of as many bytes as land in pinned memory, and one more."""
    values = (np.arange(length) % 251).astype(np.uint8)
    array = put(device, values)
    assert_same(array, values)
    assert_same(array[::-1], values[::-1])
    vg.empty_cache(device)
    assert_same(array, values)


# Logic --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOGICAL)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_logic(device, name, dtype):
    function, expected = getattr(vg, name), getattr(np, name)
    values = np.concatenate([helpers.specials(dtype).ravel(), np.zeros(3, dtype)])
    wide = values.astype(np.float32) if is_half(dtype) else values
    other = np.arange(values.size) % 3
    a = put(device, values)
    for second in (other, other.astype(bool), other.astype(np.float32), other.astype(np.uint64)):
        b = put(device, second)
        assert_same(function(a, b), expected(wide, second), f"{dtype} {second.dtype}")
        assert_same(function(b[:, None], a[::-1]), expected(second[:, None], wide[::-1]))
    out = vg.empty(values.size, dtype=bool, device=device)
    assert function(a, a, out=out) is out
    assert_same(out, expected(wide, wide))
    for scalar in (0, 1, -7, 2**70, 0.0, 0.5, float("nan"), True, False, 1j):
        assert_same(function(a, scalar), expected(wide, scalar != 0), f"{dtype} {scalar}")
        assert_same(function(scalar, a), expected(scalar != 0, wide), f"{dtype} {scalar}")


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_logical_not(device, dtype):
    values = helpers.specials(dtype)
    assert_same(vg.logical_not(put(device, values)), host(put(device, values)) == 0)


# Bounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_clip_within_arrays(device, rng, dtype):
    x, low, high = (helpers.integers(rng, (13, 37), dtype).astype(dtype) for _ in range(3))
    arrays = [put(device, one) for one in (x, low, high)]
    for keys in itertools.product([np.s_[:], np.s_[:1], np.s_[:, ::-1], np.s_[:, :1]], repeat=2):
        bounds = [one[key] for one, key in zip(arrays[1:], keys, strict=True)]
        wide = [one[key].astype(np.float64) for one, key in zip((low, high), keys, strict=True)]
        expected = np.minimum(np.maximum(x.astype(np.float64), wide[0]), wide[1]).astype(dtype)
        found = vg.clip(arrays[0], *bounds)
        assert_same(found, expected)
        assert_same(long_way(lambda b=bounds: vg.clip(arrays[0], *b))[0], expected)
        out = vg.empty((37, 13), dtype=dtype, device=device).T
        assert vg.clip(arrays[0], *bounds, out=out) is out
        assert_same(out, expected)
    place = arrays[0].copy()
    vg.clip(place[1:], place[:-1], arrays[2][1:], place[1:])
    expected = np.minimum(
        np.maximum(*(x[key].astype(np.float64) for key in (np.s_[1:], np.s_[:-1]))),
        high[1:].astype(np.float64),
    ).astype(dtype)
    assert_same(place[1:], expected)


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_clip_within_arrays_of_specials(device, dtype):
    """NaN wins, and of two zeros the positive one as a lower bound, the negative as an upper."""
    values = helpers.specials(dtype)
    a, b, c = (put(device, values[at]) for at in (np.s_[:, None, None], np.s_[:, None], np.s_[:]))
    expected = vg.minimum(vg.maximum(a, b), c)
    found = vg.clip(a, b, c)
    assert_same(found, host(expected))


def test_clip_of_what_does_not_fit(device):
    x = vg.zeros((3, 4), device=device)
    with refused(device, ValueError, x):
        vg.clip(x, vg.zeros(3, device=device), vg.zeros(4, device=device))
    fixed = vg.broadcast_to(vg.zeros(4, device=device), (3, 4))
    with refused(device, ValueError, x, match="read-only"):
        vg.clip(x, x, x, fixed)


# Bounds that are numbers, axes, shapes ------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_short_ways_are_as_the_long_ones(device, dtype):
    values = (np.arange(60) % 7).astype(dtype).reshape(3, 4, 5)
    x, row = put(device, values), put(device, values[0, 0])
    calls = {
        "clip": lambda: vg.clip(x, 1, 5),
        "clip low": lambda: vg.clip(x, 2, None),
        "sum": lambda: vg.sum(x, axis=-2),
        "sum of two axes": lambda: vg.sum(x, axis=(0, -1), keepdims=True),
        "max": lambda: vg.max(x, axis=1),
        "argmax": lambda: vg.argmax(x, axis=-1, keepdims=True),
        "where": lambda: vg.where(x == 3, x, row),
        "nan_to_num": lambda: vg.nan_to_num(x),
        "rad2deg": lambda: vg.rad2deg(x),
        "diff": lambda: vg.diff(x, axis=1),
        "diff of the last axis": lambda: vg.diff(x),
        "outer": lambda: vg.outer(row, row),
        "squeeze": lambda: vg.squeeze(x[:, :1]),
        "broadcast_to": lambda: vg.broadcast_to(row, (2, 3, 5)).copy(),
        "ravel": lambda: x.T.ravel(),
        "concat": lambda: vg.concat([x, x[:1]]),
        "concat along the last axis": lambda: vg.concat((x, x, x), axis=-1),
        "stack": lambda: vg.stack([row, row], axis=1),
        "assignment": lambda: assigned(x, row),
        "numpy": lambda: put(device, x.numpy()),
        "minus": lambda: 3 - x,
        "arange": lambda: vg.arange(1, 40, 3, dtype=dtype, device=device),
        "full": lambda: vg.full((2, 3), 3, dtype=dtype, device=device),
    }
    for name, call in calls.items():
        expected, _ = long_way(call)
        found = call()
        assert found.strides == expected.strides, name
        assert_same(found, host(expected), name)


def assigned(x, row):
    result = vg.empty(x.shape, dtype=vg.float32, device=x.device)
    result[...] = x
    result[:, 1:] = row
    return result


def test_what_short_ways_refuse(device):
    """In the words of the long ones."""
    x = vg.ones((2, 3), device=device)
    calls = {
        "axis 2 is out of bounds": (np.exceptions.AxisError, lambda: vg.sum(x, axis=2)),
        "duplicate value": (ValueError, lambda: vg.max(x, axis=(0, -2))),
        "an axis is an integer": (TypeError, lambda: vg.argmax(x, axis=(0,))),
        "cannot reshape 6": (ValueError, lambda: x.reshape(4)),
        "negative dimensions": (ValueError, lambda: vg.broadcast_to(x, (-1, 3))),
        "as many dimensions": (ValueError, lambda: vg.concat([x, x[0]])),
        "of one shape": (ValueError, lambda: vg.stack([x, x[0]])),
        "zero-dimensional": (ValueError, lambda: vg.concat([x[0, 0], x[0, 0]])),
        "one or more dimensions": (ValueError, lambda: vg.diff(x[0, 0])),
    }
    for words, (error, call) in calls.items():
        with refused(device, error, x):
            call()
        with pytest.raises(error, match=words):
            call()


def test_random_numbers_of_a_size(device):
    """As many blocks of the stream as before: what comes next is the same."""
    for dtype, size in itertools.product(("float32", "float64", "float16"), (1, 5, (3, 7), ())):
        first, second = (vg.random.default_rng(3, device=device) for _ in range(2))
        with observe(lambda one: None):
            expected = [host(first.random(size, dtype)), host(first.standard_normal(4))]
        found = [host(second.random(size, dtype)), host(second.standard_normal(4))]
        assert first.state == second.state
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
