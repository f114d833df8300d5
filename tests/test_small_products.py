"""Products of small and thin matrices of any size, layout and alignment, alone and in batches.

Their kernels have ways of their own for each: operands of 16 bits are read by one, two or eight
elements, tiles are those of c transposed, k is split by a cluster's blocks, items are rows of one
product, float32 is read where it begins anywhere.
"""

import forced
import numpy as np
import products
import pytest
from helpers import BFLOAT16, bits, put
from products import check_columns, check_same, integers, multiply, place, plan_of

import pyvecgpu as vg
from pyvecgpu.native.abi import MatmulKernel, Plan

HALVES = ["float16"] + (["bfloat16"] if BFLOAT16 is not None else [])
LENGTHS = (1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 80, 96, 127, 129)
LONG = (256, 511, 600, 700, 800, 930, 1025, 2100)  # of k: split from 512 on
pytestmark = [pytest.mark.devices("sim", "cuda"), pytest.mark.usefixtures("simulated_cards")]


class Drawn:
    """Two operands that broadcast, laid out in any way."""

    def __init__(self, rng, card, dtype, lengths, batches):
        self.rng, self.card, self.dtype = rng, card, dtype
        self.m, self.n, self.k = (int(rng.choice(x)) for x in lengths)
        self.items = int(rng.choice(batches))
        alone = [int(x) for x in rng.choice(2, 2, p=(0.7, 0.3))] if self.items > 1 else [0, 0]
        if all(alone):
            alone[0] = 0
        shapes = ((self.m, self.k), (self.k, self.n))
        batch = (self.items,) if self.items > 1 else ()
        self.values = [
            integers(rng, shape if one else (*batch, *shape), dtype)
            for shape, one in zip(shapes, alone, strict=True)
        ]
        self.arrays = [self.placed(x) for x in self.values]
        self.expected = products.halves(np.matmul(*self.values), dtype)

    def placed(self, values):
        gap, offset = (int(self.rng.choice((0, 0, 1, 2, 8))) for _ in range(2))
        turned = bool(self.rng.integers(2))
        return place(self.card, values, self.dtype, turned, offset, gap)

    def check(self, rng):
        what = (self.m, self.n, self.k, self.items, self.dtype)
        result = multiply(*self.arrays)
        check_same(result, self.expected)
        check_columns(*self.arrays, None, self.expected, 1, self.n + 3)
        if self.items == 1:
            return
        item = int(rng.integers(self.items))
        a, b = (x[item] if x.ndim == 3 else x for x in self.arrays)
        assert bits(vg.matmul(a, b)) == bits(result[item]), what


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("part", range(4))
def test_small_tiles_of_16_bits(device, dtype, part):
    rng = np.random.default_rng([23, part, len(dtype)])
    card = forced.card_for(device, "tensor_small")
    cards = [card, "sim:2"] if device == "sim" else [card]
    for i in range(16):
        k = LONG if i % 4 == 0 else LENGTHS
        with products.forced(cards[i % len(cards)], "tensor_small"):
            Drawn(rng, cards[i % len(cards)], dtype, (LENGTHS, LENGTHS, k), (1, 1, 3)).check(rng)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("splits", range(2, 9))
def test_k_is_split_by_any_number_of_blocks(device, rng, dtype, splits):
    """Of a long k eight, of a shorter one less, and of many tiles as many as the card has room for.

    With bits that do not depend on where operands begin.
    """
    card = forced.card_for(device, "tensor_small")
    wanted = (MatmulKernel.MATMUL_TENSOR_SMALL, splits)

    def planned(m, n, k):
        plan = plan_of(card, dtype, "ieee", m, n, k)
        return plan[Plan.PLAN_KERNEL], plan[Plan.PLAN_SPLITS]

    for shorter in (9, 25, 50) if splits > 3 or device == "cuda" else (9,):
        k = max(520, 128 * splits + 37)
        lengths = range(70, 70 + 300 * 64, 64)
        longer = next(n for n in lengths if planned(shorter, n, k) == wanted)
        for m, n in ((shorter, longer), (longer, shorter)):
            assert planned(m, n, k) == wanted
            a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
            found = multiply(place(card, a, dtype), place(card, b, dtype))
            check_same(found, products.halves(a @ b, dtype))
            a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
            found = multiply(place(card, a, dtype), place(card, b, dtype))
            elsewhere = place(card, a, dtype, offset=1, gap=3), place(card, b, dtype, gap=2)
            assert bits(multiply(*elsewhere)) == bits(found)


@pytest.mark.parametrize("dtype", HALVES)
def test_batches_in_two_dimensions(device, rng, dtype):
    """By one launch, of any strides of either, with the bits of an item alone."""
    card = forced.card_for(device, "tensor_small")
    for m, n, k in ((40, 33, 35), (40, 48, 64), (9, 70, 20), (70, 8, 600)):
        a, b = integers(rng, (3, 1, m, k), dtype), integers(rng, (5, k, n), dtype)
        wide = integers(rng, (5, 4, m, k), dtype)
        x, y, z = (place(card, one, dtype, offset=m % 2) for one in (a, b, wide))
        turned = vg.permute_dims(z, (1, 0, 2, 3))[1:]
        with products.forced(card, "tensor_small"):
            for left, values in ((x, a), (turned, wide.swapaxes(0, 1)[1:])):
                result = multiply(left, y)
                check_same(result, products.halves(values @ b, dtype))
                check_columns(left, y, None, products.halves(values @ b, dtype), 1, n + 3)
                alone = vg.matmul(left[2, min(4, left.shape[1] - 1)], y[4])
                assert bits(alone) == bits(result[2, 4])


@pytest.mark.parametrize("dtype", HALVES)
def test_items_are_no_rows_of_one_product_where_k_is_split(device, rng, dtype):
    """Of so many rows it would be split by less blocks than that of an item is.

    All are compared, as few of the sums that differ are rounded to another number.
    """
    card = forced.card_for(device, "tensor_small")
    x = place(card, rng.standard_normal((300, 20, 512)), dtype)
    y = place(card, rng.standard_normal((512, 17)), dtype)
    with products.forced(card, "tensor_small"):
        found = multiply(x, y)
        alone = [vg.matmul(item, y) for item in x]
    assert bits(found) == bits(vg.stack(alone))


@pytest.mark.parametrize("dtype", HALVES)
def test_layers_of_small_tiles(device, rng, dtype):
    """Bias, activation and preactivation, of tiles of c and of c transposed, with k split."""
    card = forced.card_for(device, "tensor_small")
    for m, n, k in ((70, 40, 65), (90, 9, 600), (9, 90, 600), (33, 70, 16), (130, 24, 40)):
        x, w, bias = (integers(rng, shape, dtype) for shape in ((m, k), (n, k), (n,)))
        given = [place(card, x, dtype), place(card, w, dtype, gap=1)]
        given.append(place(card, bias[None], dtype)[0])
        with products.forced(card, "tensor_small"):
            found = vg.nn.functional.dense(*given, "relu")
        check_same(found, products.halves(np.maximum(x @ w.T + bias, 0), dtype))


@pytest.mark.parametrize("dtype", [*HALVES, "float32", "float64"])
@pytest.mark.parametrize("most", [16, 32])
def test_tiny_products(device, dtype, most):
    """Of which items may be rows of one, taller product; up to 16 four share a warp."""
    rng = np.random.default_rng([most, len(dtype)])
    lengths = [range(1, most + 1)] * 3
    with products.forced(device, "tiny"):
        for _ in range(24):
            Drawn(rng, device, dtype, lengths, (1, 2, 5, 16, 17, 70)).check(rng)


def test_rows_of_one_product(device, rng):
    """Items that share b, and lie one behind another in memory or do not."""
    for m, n, k, items in ((3, 5, 7, 40), (16, 16, 16, 3), (1, 4, 9, 33), (20, 11, 30, 9)):
        a, b = integers(rng, (items + 1, m, k), "float32"), integers(rng, (k, n), "float32")
        x, y = put(device, a.astype("float32")), put(device, b.astype("float32"))
        wide = vg.full((items + 1, m + 1, n), float("nan"), device=device)
        with products.forced(device, "tiny"):
            for left in (x[:-1], x[::2], x[:, ::-1][:-1], x[1:, :1]):
                count, rows = left.shape[:2]
                expected = left.numpy().astype(float) @ b
                check_same(vg.matmul(left, y), expected)
                vg.matmul(left, y, out=wide[:count, :rows])
                check_same(wide[:count, :rows], expected)
        assert np.isnan(wide[:, m].numpy()).all() and np.isnan(wide[-1].numpy()).all()


@pytest.mark.parametrize("part", range(3))
def test_batches_of_float32_that_begin_anywhere(device, part):
    """Tiles without slices, k in halves, and slices in sequence, whose last groups are missing."""
    rng = np.random.default_rng([5, part])
    card = forced.card_for(device, "ffma_64x32") if device == "sim" else device
    sides, deep = (33, 40, 64, 65, 88, 100, 130), (33, 64, 65, 71, 72, 100, 129, 264)
    for i in range(10):
        many = 24 if i % 3 == 0 and device == "sim" else 150
        batch = (many,) if i % 3 == 0 else (3, 5)
        wide = (129, 167, 200) if i % 3 == 0 else sides
        Drawn(rng, card, "float32", (wide, wide, deep), batch).check(rng)


def test_thin_batches_whose_sums_wait_in_turns(device, rng):
    """More sums of splits than may wait at once: several launches, the last one of fewer items."""
    items, m, n, k = 2060, 16, 512, 128
    a, b = integers(rng, (m, k), "float64"), integers(rng, (k, n), "float64")
    x = vg.broadcast_to(place(device, a, "float64"), (items, m, k))
    with products.forced(device, "thin"):
        result = multiply(x, place(device, b, "float64"))
    check_same(result[0], a @ b)
    assert vg.all(result == result[:1])
