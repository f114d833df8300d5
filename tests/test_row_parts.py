"""Normalisation of rows that several blocks share: what they give, and the same bits on every card.

Of the simulated cards "sim:1" has clusters, "sim" and "sim:2" have not; see kernels/row_parts.cuh.
"""

import numpy as np
import pytest
from helpers import FLOATS, host, put, widened
from test_normalisation_kernels import Reference, compare, numbers, run

import pyvecgpu as vg

F = vg.nn.functional
CARDS = {"sim": ("sim", "sim:1", "sim:2"), "cuda": ("cuda",)}
MOST_PARTS = 8
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


def at_offset(device, x, offset):
    """x's values, from the element `offset` of an allocation on."""
    room = np.zeros(x.size + offset, x.dtype)
    room[offset:] = x.reshape(-1)
    return put(device, room)[offset:].reshape(x.shape)


def normalised(device, operands, centered):
    x, g, w, b = operands
    if centered:
        return run(device, lambda *a: F.layer_norm(a[0], x.shape[1], *a[1:], 0.01), (x, w, b), g)
    return run(device, lambda *a: F.rms_norm(a[0], x.shape[1], a[1], 0.01), (x, w), g)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_drawn_rows_on_every_card(device, dtype, rng):
    for _ in range(3):
        shape = drawn_shape(rng, dtype)
        (x, wide), (g, wide_g) = numbers(rng, dtype, shape, 2.0), numbers(rng, dtype, shape)
        (w, wide_w), (b, wide_b) = numbers(rng, dtype, shape[1:]), numbers(rng, dtype, shape[1:])
        centered = bool(rng.integers(2))
        wanted = Reference(wide, wide_g, wide_w, wide_b if centered else None,
                           (shape[0], 1, shape[1], 1), (2, 3), 0.01, centered)  # fmt: skip
        bits = set()
        for card in CARDS[device]:
            y, gradients = normalised(card, (x, g, w, b), centered)
            compare(wanted, dtype, y, gradients)
            bits.add(b"".join(host(one).tobytes() for one in (y, *gradients)))
        assert len(bits) == 1, shape


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_operands_anywhere(device, dtype, rng):
    """x and the gradient from any element of an allocation on: the bits of those at its start."""
    for _ in range(2):
        shape = drawn_shape(rng, dtype)
        arrays = [numbers(rng, dtype, size)[0] for size in (shape, shape, shape[1:])]
        for card in CARDS[device]:
            results = []
            for offsets in ((0, 0, 0), rng.integers(0, 8, 3)):
                x, g, w = (at_offset(card, *pair) for pair in zip(arrays, offsets, strict=True))
                x, w = x.requires_grad_(), w.requires_grad_()
                y = F.layer_norm(x, shape[1], w)
                y.backward(g)
                results.append([host(one).tobytes() for one in (y.detach(), x.grad, w.grad)])
            assert results[0] == results[1], (shape, offsets)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_row_is_as_alone(device, dtype, rng):
    rows, length = 3, drawn_shape(rng, dtype)[1]
    x = numbers(rng, dtype, (rows, length))[0]
    for card in CARDS[device]:
        together = host(F.layer_norm(put(card, x), length))
        for row in range(rows):
            alone = host(F.layer_norm(put(card, x[row : row + 1]), length))
            assert together[row].tobytes() == alone.tobytes()


def test_rows_that_are_none_stay_alone(device, rng):
    """NaN in any part makes its row NaN, and no other; so does infinity."""
    for card in CARDS[device]:
        x = np.ones((5, 40_000), np.float32)
        x[:, 0] = 3
        for row, value in ((1, np.nan), (3, np.inf)):
            x[row, rng.integers(40_000)] = value
        y = widened(host(F.layer_norm(put(card, x), 40_000)))
        assert np.isnan(y[[1, 3]]).all() and np.isfinite(y[[0, 2, 4]]).all()


def test_the_gradient_of_many_rows(device, rng):
    """More rows than groups of blocks have one by one, in parts that are not full."""
    shape = (70, 8200)
    (x, wide), (g, wide_g) = numbers(rng, "float32", shape), numbers(rng, "float32", shape)
    (w, wide_w), (b, wide_b) = (numbers(rng, "float32", shape[1:]) for _ in range(2))
    wanted = Reference(wide, wide_g, wide_w, wide_b, (70, 1, 8200, 1), (2, 3), 0.01)
    for card in CARDS[device]:
        compare(wanted, "float32", *normalised(card, (x, g, w, b), True))
