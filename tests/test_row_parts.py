"""Normalisations of rows that blocks share, and their backward passes: values, the same bits on
every card.

Of the simulated cards "sim:1" has clusters, "sim" and "sim:2" have not; see kernels/row_parts.cuh.
"""

import helpers
import numpy as np
import pytest
from helpers import FLOATS, host, put
from test_normalisation_kernels import Reference, compare, compare_result, numbers

import pyvecgpu as vg
from pyvecgpu.dispatch import apply

CARDS = {"sim": ("sim", "sim:1", "sim:2"), "cuda": ("cuda",)}
MOST_PARTS = 8
EPSILON = 0.01
pytestmark = [pytest.mark.devices("sim", "cuda"), pytest.mark.usefixtures("simulated_cards")]


def part_of(dtype):
    """The elements that a block takes at most: what its threads have registers for."""
    return 4096 if np.dtype(dtype).itemsize == 8 else 8192


def drawn_shape(rng, dtype):
    """A few rows of any length that is cut, often near where the number of parts changes."""
    part = part_of(dtype)
    length = int(rng.integers(part + 1, MOST_PARTS * part + 1))
    if rng.random() < 0.5:
        length = int(rng.integers(1, MOST_PARTS + 1)) * part + int(rng.integers(-5, 6))
        length = min(max(length, part + 1), MOST_PARTS * part)
    return int(rng.integers(1, 4)), length


def drawn_offset(rng, dtype):
    """A mean; in float64 a small one, as the reference has no more digits."""
    return float(rng.choice([0.0, 2.0, 2.0 if dtype == np.float64 else 50.0]))


def at_offset(device, x, offset):
    """x's values, from the element `offset` of an allocation on."""
    room = np.zeros(x.size + offset, x.dtype)
    room[offset:] = x.reshape(-1)
    return put(device, room)[offset:].reshape(x.shape)


def statistics_of(x, dtype, centered):
    """Means and variances of rows, in the dtype that kernels compute in."""
    mean = x.mean(1) if centered else np.zeros(len(x))
    variance = np.square(x - mean[:, None]).mean(1)
    return np.stack([mean, variance]).astype(np.float64 if dtype == np.float64 else np.float32)


def gradients(device, g, x, w, statistics, centered=True, offsets=(0, 0, 0)):
    """Host values of dx, dweight and dbias."""
    arrays = [at_offset(device, *pair) for pair in zip((g, x, w), offsets, strict=True)]
    call = (*arrays, put(device, statistics), 1, 1, 1, int(centered), EPSILON, True)
    return [host(one) for one in apply(arrays[0].backend, "normalize_backward", *call)]


def normalised(device, x, w, b, centered=True, offsets=(0, 0, 0)):
    """Host values of the result and of the statistics; w and b may be None."""
    arrays = [
        None if one is None else at_offset(device, one, offset)
        for one, offset in zip((x, w, b), offsets, strict=True)
    ]
    wide = np.float64 if x.dtype == np.float64 else np.float32
    statistics = put(device, np.full((2, len(x)), -7.0, wide))
    call = (*arrays, 1, 1, 1, int(centered), EPSILON, statistics)
    return [host(apply(arrays[0].backend, "normalize", *call)), host(statistics)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_drawn_rows_forward_on_every_card(device, dtype, rng):
    """With weights, biases, both and none; means far from 0, and far from those of other parts."""
    for number in range(4):
        shape, centered = drawn_shape(rng, dtype), bool(rng.integers(3))
        x, wide = numbers(rng, dtype, shape, drawn_offset(rng, dtype))
        if number % 2:
            x, wide = (np.sort(one, axis=1) for one in (x, wide))
        (w, wide_w), (b, wide_b) = numbers(rng, dtype, shape[1:]), numbers(rng, dtype, shape[1:])
        w, wide_w = (w, wide_w) if number != 3 else (None, None)
        b, wide_b = (b, wide_b) if number != 2 else (None, None)
        parts = (shape[0], 1, shape[1], 1)
        wanted = Reference(wide, np.zeros(shape), wide_w, wide_b, parts, (2, 3), EPSILON, centered)
        expected = statistics_of(wide, np.dtype(np.float64), centered)
        found = [normalised(card, x, w, b, centered) for card in CARDS[device]]
        for y, statistics in found:
            compare_result(wanted, dtype, y)
            unit = 2.0**-50 if dtype == np.float64 else 2.0**-24  # as good as the reference
            sizes = np.abs(expected) + np.stack([np.sqrt(expected[1]), 0 * expected[1]])
            assert (np.abs(statistics - expected) <= 16 * unit * sizes).all()
        assert len({b"".join(one.tobytes() for one in each) for each in found}) == 1, shape
        offsets = tuple(int(n) for n in rng.integers(0, 8, 3))
        again = normalised(CARDS[device][-1], x, w, b, centered, offsets)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found[0], again, strict=True))


def test_rows_that_are_none_stay_alone_forward(device, rng):
    """NaN and infinity in any part are all of their row's result, and nothing of another's."""
    shape = (5, 40_000)
    for card in CARDS[device]:
        (x, _), (w, _) = numbers(rng, "float32", shape), numbers(rng, "float32", shape[1:])
        for row, value in ((1, np.nan), (3, np.inf)):
            x[row, rng.integers(shape[1])] = value
        y, statistics = normalised(card, x, w, w)
        assert not np.isfinite(y[[1, 3]]).any() and np.isfinite(y[[0, 2, 4]]).all()
        assert not np.isfinite(statistics[1, [1, 3]]).any()
        assert np.isfinite(statistics[:, [0, 2, 4]]).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_drawn_rows_on_every_card(device, dtype, rng):
    for _ in range(3):
        shape, centered = drawn_shape(rng, dtype), bool(rng.integers(2))
        (x, wide), (g, wide_g) = numbers(rng, dtype, shape, 2.0), numbers(rng, dtype, shape)
        w, wide_w = numbers(rng, dtype, shape[1:])
        parts = (shape[0], 1, shape[1], 1)
        wanted = Reference(wide, wide_g, wide_w, None, parts, (2, 3), EPSILON, centered)
        statistics = statistics_of(wide, np.dtype(dtype), centered)
        found = [gradients(card, g, x, w, statistics, centered) for card in CARDS[device]]
        for each in found:
            compare(wanted, dtype, wanted.y, each)
        assert len({b"".join(one.tobytes() for one in each) for each in found}) == 1, shape


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_operands_anywhere(device, dtype, rng):
    """From any element of an allocation on: the bits of those at its start."""
    for _ in range(2):
        shape = drawn_shape(rng, dtype)
        (x, wide), (g, _), (w, _) = (numbers(rng, dtype, s) for s in (shape, shape, shape[1:]))
        statistics = statistics_of(wide, np.dtype(dtype), True)
        for card in CARDS[device]:
            first = gradients(card, g, x, w, statistics)
            offsets = rng.integers(0, 8, 3)
            for one, other in zip(
                first, gradients(card, g, x, w, statistics, offsets=offsets), strict=True
            ):
                assert one.tobytes() == other.tobytes(), (shape, offsets)


def test_rows_that_are_none_stay_alone(device, rng):
    """NaN and infinity in any part spread over their row's gradient, and over no other's."""
    shape = (5, 40_000)
    for card in CARDS[device]:
        (x, wide), (g, _), (w, _) = (numbers(rng, "float32", s) for s in (shape, shape, shape[1:]))
        statistics = statistics_of(wide, np.dtype(np.float32), True)
        for row, value in ((1, np.nan), (3, np.inf)):
            g[row, rng.integers(shape[1])] = value
        dx, *sums = gradients(card, g, x, w, statistics)
        assert not np.isfinite(dx[[1, 3]]).any() and np.isfinite(dx[[0, 2, 4]]).all()
        assert all((~np.isfinite(one)).sum() in (1, 2) for one in sums)


@pytest.mark.parametrize("rows", (70, 200))
def test_many_rows(device, rng, rows):
    """More than groups of blocks have one by one, so that the ring goes round; parts not full."""
    shape = (rows, 4100)
    x, g, w = (numbers(rng, "float64", size)[0] for size in (shape, shape, shape[1:]))
    wanted = Reference(x, g, w, None, (rows, 1, 4100, 1), (2, 3), EPSILON)
    statistics = statistics_of(x, np.dtype(np.float64), True)
    for card in CARDS[device][:2]:
        compare(wanted, "float64", wanted.y, gradients(card, g, x, w, statistics))
    wanted = Reference(x, g, w, w, (rows, 1, 4100, 1), (2, 3), EPSILON)
    for card in CARDS[device]:
        compare_result(wanted, "float64", normalised(card, x, w, w)[0])


def test_through_the_tape(device, rng):
    """layer_norm and rms_norm of such rows, forward and backward."""
    shape = (3, 9001)
    (x, wide), (g, wide_g) = numbers(rng, "float32", shape), numbers(rng, "float32", shape)
    w, wide_w = numbers(rng, "float32", shape[1:])
    for card in CARDS[device]:
        for name, centered in (("layer_norm", True), ("rms_norm", False)):
            wanted = Reference(wide, wide_g, wide_w, None, (3, 1, 9001, 1), (2, 3), 1e-5, centered)
            a, b = put(card, x).requires_grad_(), put(card, w).requires_grad_()
            y = getattr(vg.nn.functional, name)(a, 9001, b, eps=1e-5)
            y.backward(put(card, g))
            compare(wanted, "float32", y.detach(), [a.grad, b.grad])


@pytest.mark.parametrize("which", ["w", "b", "wb", ""])
@pytest.mark.parametrize(
    ("shape", "groups"), [((2, 20_000), 2), ((2, 4, 5000), 2), ((2, 3, 4000), 1)], ids=str
)
def test_groups_of_long_rows(device, rng, shape, groups, which):
    """Weights that are not one an element: such rows go another way, unless there are none."""
    (x, wide), *given = (numbers(rng, "float32", s) for s in (shape, shape[1], shape[1]))
    (w, wide_w), (b, wide_b) = (
        pair if name in which else (None, None) for name, pair in zip("wb", given, strict=True)
    )
    parts = (shape[0], groups, shape[1] // groups, int(np.prod(shape[2:])))
    wanted = Reference(wide, np.zeros(shape), wide_w, wide_b, parts, (2, 3), EPSILON)
    for card in CARDS[device]:
        arrays = [None if a is None else put(card, a) for a in (w, b)]
        y = vg.nn.functional.group_norm(put(card, x), groups, *arrays, EPSILON)
        compare_result(wanted, "float32", y)


@pytest.mark.parametrize("mean", [1e4, 1e6])
def test_statistics_of_rows_far_from_0(device, rng, mean):
    """Means are rounded once, and variances lose nothing by them."""
    x = (rng.normal(size=(20, 20_001)) + rng.uniform(0.1, 1, (20, 1)) * mean).astype("float32")
    expected = statistics_of(x.astype(np.float64), np.dtype(np.float64), True)
    for card in CARDS[device]:
        found = normalised(card, x, None, None)[1]
        assert (np.abs(found[0] - expected[0]) <= 0.6 * np.spacing(expected[0].astype("f4"))).all()
        assert (np.abs(found[1] - expected[1]) <= 16 * 2.0**-24 * expected[1]).all()


@pytest.mark.parametrize("rows", [63, 64, 65])
@pytest.mark.parametrize("length", [40, 2000, 8193])
def test_about_as_many_parts_as_a_thread_adds_up(device, rng, rows, length):
    shape = (rows, length)
    x, g, w = (numbers(rng, "float64", size)[0] for size in (shape, shape, shape[1:]))
    wanted = Reference(x, g, w, None, (rows, 1, length, 1), (2, 3), EPSILON)
    found = gradients(CARDS[device][0], g, x, w, statistics_of(x, np.dtype(np.float64), True))
    compare(wanted, "float64", wanted.y, found)


def test_sums_of_few_parts_are_made_in_float64(device):
    g = np.ones((60, 8193), np.float32)
    g[0] = 2.0**24
    for card in CARDS[device]:
        given = g, np.zeros_like(g), np.ones(8193, np.float32), np.ones((2, 60), np.float32)
        assert (np.abs(gradients(card, *given)[2] - (2.0**24 + 59)) <= 2).all()


@pytest.mark.devices("sim")
def test_nothing_is_written_behind_the_sums(device):
    """Arrays with nothing behind them: a lane too many would be an access of no array."""
    code = """
import numpy as np, test_row_parts
g = np.ones((2, 8193), np.float32)
found = test_row_parts.gradients("sim", g, g, g[0], np.ones((2, 2), np.float32))
print(found[2].sum())
"""
    done = helpers.run_child(code, PYVECGPU_ALLOCATOR="direct")
    assert done.returncode == 0 and float(done.stdout) == 2 * 8193, done.stderr
