"""Normalisation by channels that blocks share: values, statistics, the same bits on every card.

Of the simulated cards "sim:1" has clusters, "sim" and "sim:2" have not; see
kernels/normalize_channel_parts.cuh.
"""

import numpy as np
import pytest
from helpers import FLOATS, host, put
from test_normalisation_kernels import Reference, compare_result, numbers
from test_row_parts import CARDS, EPSILON, at_offset, drawn_offset

import pyvecgpu as vg
from pyvecgpu.dispatch import apply

SMALL = 1 << 15  # elements of a channel that one block has
pytestmark = [pytest.mark.devices("sim", "cuda"), pytest.mark.usefixtures("simulated_cards")]


def drawn_shape(rng, dtype):
    """(items, channels, inner): a channel is longer than a block has, of any number of parts."""
    inner = int(rng.choice([32, 33, 49, 196, 784, 1000, 4096, 5000]))
    length = int(rng.integers(SMALL + 1, 4 * SMALL))
    if rng.random() < 0.3:
        length = SMALL + int(rng.integers(1, 40))
    return -(-length // inner), int(rng.choice([1, 2, 3, 5, 40])), inner


def normalised(device, x, w, b, offset=0):
    """Host values of the result and of the statistics."""
    arrays = [at_offset(device, x, offset)]
    arrays += [None if one is None else put(device, one) for one in (w, b)]
    wide = np.float64 if x.dtype == np.float64 else np.float32
    statistics = put(device, np.full((2, x.shape[1]), -7.0, wide))
    y = apply(arrays[0].backend, "normalize", *arrays, 1, 1, 0, 1, EPSILON, statistics)
    return [host(y), host(statistics)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_drawn_channels_on_every_card(device, dtype, rng):
    for number in range(4):
        shape = drawn_shape(rng, dtype)
        x, wide = numbers(rng, dtype, shape, drawn_offset(rng, dtype))
        if number == 1:  # means of parts that are far from each other
            x, wide = (np.sort(one, axis=0) for one in (x, wide))
        (w, wide_w), (b, wide_b) = numbers(rng, dtype, shape[1]), numbers(rng, dtype, shape[1])
        w, wide_w = (w, wide_w) if number != 3 else (None, None)
        b, wide_b = (b, wide_b) if number != 2 else (None, None)
        parts = (shape[0], 1, *shape[1:])
        wanted = Reference(wide, np.zeros(shape), wide_w, wide_b, parts, (0, 3), EPSILON)
        mean, variance = wide.mean((0, 2)), wide.var((0, 2))
        found = [normalised(card, x, w, b) for card in CARDS[device]]
        for y, statistics in found:
            compare_result(wanted, dtype, y)
            unit = 2.0**-46 if dtype == np.float64 else 2.0**-24
            sizes = np.abs(mean) + np.sqrt(variance)
            assert (np.abs(statistics[0] - mean) <= 2 * unit * sizes).all()
            assert (np.abs(statistics[1] - variance) <= 2 * unit * variance).all()
        assert len({b"".join(one.tobytes() for one in each) for each in found}) == 1, shape
        again = normalised(CARDS[device][-1], x, w, b, int(rng.integers(1, 8)))
        # Another number of elements a load: other sums of the same, in float64.
        assert np.allclose(found[0][1], again[1], rtol=2.0**-22, atol=1e-9)
        compare_result(wanted, dtype, again[0])


def test_channels_that_are_none_stay_alone(device, rng):
    shape = (12, 5, 4096)
    for card in CARDS[device]:
        x, _ = numbers(rng, "float32", shape)
        for channel, value in ((1, np.nan), (3, np.inf)):
            x[rng.integers(12), channel, rng.integers(4096)] = value
        y, statistics = normalised(card, x, None, None)
        assert not np.isfinite(y[:, [1, 3]]).any() and np.isfinite(y[:, [0, 2, 4]]).all()
        assert np.isfinite(statistics[:, [0, 2, 4]]).all()


def test_what_no_cluster_can_hold(device, rng):
    """A channel of more bytes than eight blocks have room for, and one of just as many."""
    most = 8 * (220 << 10) // 8
    for length in (most, most + 32, most + 8192):
        x, _ = numbers(rng, "float64", (length // 32, 1, 32), 1.0)
        wanted = Reference(x, np.zeros(x.shape), None, None, (len(x), 1, 1, 32), (0, 3), EPSILON)
        for card in CARDS[device][:2]:
            compare_result(wanted, "float64", normalised(card, x, None, None)[0])


def test_statistics_of_channels_far_from_0(device, rng):
    x = rng.normal(size=(40, 2, 1000)) + 1e4
    variance = x.var((0, 2))
    for card in CARDS[device]:
        statistics = normalised(card, x, None, None)[1]
        assert (np.abs(statistics[1] - variance) <= 2 * 2.0**-46 * variance).all()


def test_many_large_channels(device, rng):
    """More than keep a card busy, each of more than one part all the same: what a block holds."""
    x = np.broadcast_to(rng.normal(size=(1, 1, 60_000)), (1, 140, 60_000)).copy()
    statistics = normalised(CARDS[device][:2][-1], x, None, None)[1]
    assert np.allclose(statistics[1], x[0, 0].var(), rtol=1e-12)


def test_batch_norm_in_training_and_not(device, rng):
    """The layer: running statistics follow those of the channels, and serve when it is no more."""
    x, _ = numbers(rng, "float32", (9, 3, 64, 64), 2.0)
    for card in CARDS[device]:
        layer = vg.nn.BatchNorm2d(3).to(card)
        y = layer(put(card, x))
        mean, variance = x.mean((0, 2, 3)), x.astype(np.float64).var((0, 2, 3))
        expected = (x - mean[:, None, None]) / np.sqrt(variance + layer.eps)[:, None, None]
        assert np.allclose(y.detach().numpy(), expected, atol=1e-5)
        count = x.size / 3
        assert np.allclose(layer.running_mean.numpy(), 0.1 * mean, rtol=1e-5)
        unbiased = 0.9 + 0.1 * variance * count / (count - 1)
        assert np.allclose(layer.running_var.numpy(), unbiased, rtol=1e-5)
        layer.eval()
        assert not np.allclose(layer(put(card, x)).detach().numpy(), expected, atol=1e-2)
