"""Drawn batches of small matrices: whole items and slices in sequence have the bits of tiles."""

import random

import numpy as np
import products
import pytest
from forced import forced

import pyvecgpu as vg

DRAWS = 6  # of a test


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("seed", range(12))
def test_drawn_batches_have_the_bits_of_tiles(device, simulated_cards, seed):
    """Operands begin anywhere, in NaN, and are as if they were the upper rows of larger ones."""
    card = "sim:1" if device == "sim" else device
    draw = random.Random(f"small batches {seed}")
    with forced(card, "ffma_128x128"):
        before = products.launched(card, "ffma_items")
        for _ in range(DRAWS):
            check(card, draw)
        assert products.launched(card, "ffma_items") - before >= DRAWS / 2 or device != "sim"


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kernel", ["ffma_64x32", "ffma_64x64"])
@pytest.mark.parametrize("seed", range(3))
def test_drawn_batches_have_the_bits_of_slices(device, simulated_cards, kernel, seed):
    """So many that slices follow one another; an item alone has them side by side."""
    card = "sim:1" if device == "sim" else device
    draw = random.Random(f"slices {kernel} {seed}")
    for _ in range(2):
        m, n = draw.randint(65, 200), draw.randint(65, 200)
        k, items = draw.randint(64, 200), 1200 // (-(-m // 64) * -(-n // 32)) // 2
        values = np.random.default_rng(draw.getrandbits(32))
        x, y = (
            lying(card, values.standard_normal((items, *shape), np.float32), draw)
            for shape in ((m, k), (k, n))
        )
        with forced(card, kernel):
            found = vg.matmul(x, y, precision="ieee")
            for item in (0, items - 1):
                alone = vg.matmul(x[item], y[item], precision="ieee")
                assert found[item].numpy().tobytes() == alone.numpy().tobytes(), (items, m, n, k)


def check(card, draw):
    items = draw.choice((2, 3) if card != "cuda" else (2, 133, 300, 700))
    m, n = draw.choice((33, 40, 64, draw.randint(33, 72))), draw.randint(33, 72)
    k = draw.choice((draw.randint(1, 40), draw.randint(1, 255), 32, 36, 128))
    if draw.random() < 0.2:
        m, n, k = (draw.randint(65, 128) for _ in range(3))
    if draw.random() < 0.4:
        m, n, k = (-(-x // 4) * 4 for x in (m, n, k))
        k = min(k, 252)
    values = np.random.default_rng(draw.getrandbits(32))
    shared = draw.choice((None, None, None, 0, 1))  # an operand that all items share
    a, b = (
        values.standard_normal((1 if shared == number else items, *shape), np.float32)
        for number, shape in enumerate(((m, k), (k, n)))
    )
    x, y = (lying(card, one, draw) for one in (a, b))
    width, first = (n, 0) if draw.random() < 0.5 else (n + draw.randint(1, 4), draw.randint(0, 1))
    frame = vg.full((items, m, width), 7, dtype="float32", device=card)
    vg.matmul(x, y, frame[:, :, first : first + n], precision="ieee")
    found = frame.numpy()
    for item in {0, items // 2, items - 1}:
        taller = np.zeros((200, k), np.float32)
        taller[:m] = a[0 if shared == 0 else item]
        other = vg.asarray(b[0 if shared == 1 else item], device=card)
        expected = vg.matmul(vg.asarray(taller, device=card), other, precision="ieee")
        same = found[item, :, first : first + n].tobytes() == expected[:m].numpy().tobytes()
        assert same, (items, m, n, k, x.shape, y.shape, shared, width, first)
    around = np.delete(found, slice(first, first + n), axis=2)
    assert np.all(around == 7)


def lying(card, values, draw):
    """The same on the card, by rows or columns, behind 0 to 3 elements, with gaps between rows."""
    turned = draw.random() < 0.5
    values = values.swapaxes(1, 2) if turned else values
    items, rows, columns = values.shape
    before, gap = draw.choice((0, 0, 1, 2, 3)), draw.choice((0, 0, 1, 2, 4))
    whole = np.full(before + items * rows * (columns + gap), np.nan, np.float32)
    whole[before:].reshape(items, rows, -1)[:, :, :columns] = values
    array = vg.asarray(whole, device=card)[before:]
    array = vg.reshape(array, (items, rows, columns + gap))[:, :, :columns]
    array = array.mT if turned else array
    return array[0] if items == 1 else array
