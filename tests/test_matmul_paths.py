"""What single kernels of products do in cases of their own, on cards that have them.

test_matmul_kernels.py asks the same of all kernels; here are the ways inside of one: operands read
where they are or from a copy, blocks in pairs, k in halves, slices in sequence.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from forced import is_simulated
from helpers import put
from products import (
    check_bits,
    check_columns,
    check_same,
    forced,
    halves,
    integers,
    launched,
    launches,
    layer,
    multiply,
    place,
    poisoned,
    round_bits,
    values_of,
)

import pyvecgpu as vg

# Tiles of 32, 64, 128 and 256 rows of c, and so many that an unaligned b is copied after all.
CLASSES = [(300, 257, 68), (2000, 1023, 65), (2049, 2049, 65), (3000, 130, 40)]
# By pairs of blocks, of an even and an odd number of tiles, small ones in a batch; with k cut; by
# wider tiles.
CLASSES += [(124, 35, 250), (141, 37, 230), (70, 57, 1430), (132, 37, 1810), (1836, 51, 297)]
CLASSES += [(3001, 130, 297), (3050, 130, 297)]
CLASSES += [(956, 259, 2791), (4240, 386, 131), (1858, 570, 135), (143, 87, 292)]
# With copies of a so large that a product alone is made in two parts, or in three, one of one row.
PARTS = [(3455, 1281, 3101), (5121, 1537, 3201)]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), CLASSES + PARTS)
def test_tf32_of_a_b_whose_rows_begin_anywhere(device, rng, m, n, k):
    """By the kernel that reads b along n as four classes of rows; with its epilogue, and items."""
    a, b, bias = (integers(rng, shape, "float32") for shape in ((m, k), (2, k, n), (1, n)))
    expected = a @ b
    with forced(device, "tensor"):
        x = place(device, a, "float32", gap=1)
        z = place(device, bias, "float32")[0]
        for offset, gap in ((0, 1), (1, 0), (2, 3), (3, 2), (1, 1)):
            both = place(device, b, "float32", offset=offset, gap=gap)
            check_same(multiply(x, both, "tf32"), expected)
            y = place(device, b[0], "float32", offset=offset, gap=gap)
            check_columns(x, y, "tf32", expected[0], offset, n + 4)
            result = layer(x, y.T, z, "relu", precision="tf32")
            check_same(result, np.maximum(expected[0] + bias, 0))


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), PARTS)
def test_products_in_parts_have_the_bits_of_whole_ones(device, rng, m, n, k):
    """Items of a batch are never made in parts, a product alone here is: copy, product, copy ..."""
    a, b = rng.standard_normal((m, k)), rng.standard_normal((2, k, n))
    with forced(device, "tensor"):
        x, y = place(device, a, "float32", gap=1), place(device, b, "float32")
        before = launches(device)
        alone = vg.matmul(x, y[0], precision="tf32")
        assert launches(device) - before >= 4
        check_bits(alone, multiply(x, y, "tf32")[0])


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("gap", [1, 2, 3])
def test_alignment_does_not_change_the_bits(device, rng, gap):
    """Random data: the sums have one order, whether rows are read where they are or from a copy."""
    m, n, k = 300, 260, 1_000
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    for dtype, precision in (("float32", "tf32"), ("bfloat16", None), ("float16", None)):
        with forced(device, "tensor"):
            first, *others = [
                multiply(
                    place(device, a, dtype, gap=of_a), place(device, b, dtype, gap=of_b), precision
                )
                for of_a, of_b in ((0, 0), (gap, 0), (0, gap), (gap, gap))
            ]
        for result in others:
            check_bits(result, first, dtype)


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), [(33, 2312, 1276), (175, 2124, 4164), (130, 3799, 937)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_pairs_of_blocks_with_wide_tiles(device, rng, dtype, m, n, k):
    """A pair's second block has no tile at the end of a row; the second shape's k is cut."""
    a, b = integers(rng, (5, m, k), dtype), integers(rng, (k, n), dtype)
    expected = halves(a @ b, dtype)
    with forced(device, "tensor"):
        for gap in (0, 1):
            x, y = place(device, a, dtype), place(device, b, dtype, gap=gap)
            check_same(multiply(x, y), expected)
            check_same(multiply(x[0], y), expected[0])
            check_same(multiply(x[:3], y), expected[:3])


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), [(900, 2536, 1000), (129, 1288, 330), (1320, 648, 72)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_pairs_of_blocks_one_below_the_other(device, rng, dtype, m, n, k):
    """Which share b, whose rows cost more where they begin 16 bytes behind a line of memory."""
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    whole, others = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    with forced(device, "tensor"):
        for of_a, of_b in itertools.product((False, True), (False, True)):
            first = multiply(
                place(device, a, dtype, of_a, gap=-(k, m)[of_a] % 64),
                place(device, b, dtype, of_b, gap=-(n, k)[of_b] % 64),
            )
            for gap in (0, 8, 24):
                x, y = place(device, a, dtype, of_a), place(device, b, dtype, of_b, gap=gap)
                check_bits(multiply(x, y), first, f"{dtype} {of_a} {of_b} {gap}")
                x, y = (
                    place(device, whole, dtype, of_a),
                    place(device, others, dtype, of_b, gap=gap),
                )
                check_same(multiply(x, y), halves(whole @ others, dtype))


# Products whose tile is 192 x 192 (test_plans.py), by layout and by how blocks share loads: alone,
# in pairs across, which share a, and down, which share b; of a round of tiles, and of more.
TILES_OF_192 = {
    "NN": {0: [(4560, 824, 72), (2562, 3119, 88)], 1: [(792, 4648, 248), (2384, 3336, 200)]},
    "NT": {0: [(1856, 2080, 87), (3736, 2144, 64)], 1: [(919, 4938, 232), (4288, 1920, 216)]},
    "TN": {0: [(2352, 1608, 112), (4920, 1632, 96)], 1: [(2856, 1416, 288), (1832, 4752, 248)]},
    "TT": {0: [(1034, 3622, 101), (2184, 3648, 88)], 1: [(856, 4752, 216), (3256, 2568, 200)]},
}
TILES_OF_192["NN"][2] = [(4440, 880, 280), (2368, 3432, 368)]
TILES_OF_192["NT"][2] = [(4487, 869, 296), (4376, 2000, 200)]
TILES_OF_192["TN"][2] = [(4848, 840, 264), (2864, 2968, 272)]
TILES_OF_192["TT"][2] = [(2864, 1376, 328), (1744, 4976, 328)]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("pair", (0, 1, 2))
@pytest.mark.parametrize("layout", TILES_OF_192)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_tiles_of_192_rows(device, rng, dtype, layout, pair):
    """Of three warpgroups: exact, also in a batch, and as layers."""
    for m, n, k in TILES_OF_192[layout][pair]:
        a, b = integers(rng, (2, m, k), dtype), integers(rng, (k, n), dtype)
        bias = integers(rng, (1, n), dtype)
        x = place(device, a, dtype, layout[0] == "T")
        y = place(device, b, dtype, layout[1] == "T")
        with forced(device, "tensor"):
            check_same(multiply(x, y), halves(a @ b, dtype))
            check_same(multiply(x[1], y), halves(a[1] @ b, dtype))
            result = layer(x[0], y.T, place(device, bias, dtype)[0], "relu")
            check_same(result, halves(np.maximum(a[0] @ b + bias, 0), dtype))


# Of sides of one tile and of more, and of k less than a stage, one, some, and more than the ring.
ANYWHERE = [(3, 70, 5), (31, 64, 64), (40, 65, 63), (63, 59, 55), (66, 129, 67), (130, 20, 330)]


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kernel", ["tensor_small"])
@pytest.mark.parametrize(("m", "n", "k"), ANYWHERE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_that_begin_anywhere(device, rng, kernel, dtype, m, n, k):
    """Have the bits of those at multiples of 16 bytes: in all layouts, in rows with and without
    gaps, which are not numbers, and in columns of a wider array."""
    a, b = rng.standard_normal((3, m, k)), rng.standard_normal((3, k, n))
    with forced(device, kernel):
        expected = multiply(
            place(device, a, dtype, gap=-k % 8), place(device, b, dtype, gap=-n % 8)
        )
        for offset, (of_a, of_b) in enumerate(itertools.product((False, True), (False, True))):
            for gap in (0, 1, 3):
                x = place(device, a, dtype, of_a, offset=offset, gap=gap)
                y = place(device, b, dtype, of_b, offset=3 - offset, gap=gap)
                check_bits(multiply(x, y), expected, f"{dtype} {of_a} {of_b} {offset} {gap}")
            check_columns(x, y, None, values_of(expected), offset % 3, n + 3)


# Of one tile with an end in each warp's part, and of several.
TF32_ANYWHERE = [(3, 70, 5), (49, 65, 63), (97, 100, 31), (200, 9, 130), (130, 20, 330)]


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kernel", ["tensor_tf32"])
@pytest.mark.parametrize(("m", "n", "k"), TF32_ANYWHERE)
def test_tf32_that_begins_anywhere(device, rng, kernel, m, n, k):
    """Has the bits of what begins at multiples of 16 bytes, which are those of rounded operands:
    in all layouts, beside gaps that are not numbers, and in columns of a wider array."""
    a, b = (rng.standard_normal(shape) for shape in ((3, m, k), (3, k, n)))
    nearest = [round_bits(one.astype("float32"), 10, -126) for one in (a, b)]
    with forced(device, kernel):
        expected = multiply(*(place(device, one, "float32") for one in nearest), "tf32")
        size = np.abs(nearest[0]) @ np.abs(nearest[1])
        error = np.abs(values_of(expected) - nearest[0] @ nearest[1])
        assert not np.any(error > (k / 4 + 8) * 2.0**-24 * size)
        for offset, (of_a, of_b) in enumerate(itertools.product((False, True), (False, True))):
            for gap in (0, 1, 2):
                x = place(device, a, "float32", of_a, offset=offset, gap=gap)
                y = place(device, b, "float32", of_b, offset=3 - offset, gap=gap)
                check_bits(multiply(x, y, "tf32"), expected)
            check_columns(x, y, "tf32", values_of(expected), offset % 3, n + 3)
            w = place(device, b[0].T, "float32", of_b)
            found = layer(x[0], w, None, "relu", precision="tf32")
            check_same(found, np.maximum(values_of(expected)[0], 0))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kernel", ["tensor_tf32"])
@pytest.mark.parametrize("n", [61, 93])
def test_tf32_in_wider_tiles(device, rng, kernel, n):
    """Items enough that narrow tiles would be more than a card takes at a time: the same bits, in
    all layouts."""
    a, b = (rng.standard_normal(shape).astype("float32") for shape in ((67, 59, 35), (67, 35, n)))
    with forced(device, kernel):
        few = [
            multiply(place(device, x, "float32"), place(device, y, "float32"), "tf32")
            for x, y in ((a[:3], b[:3]), (a[64:], b[64:]))
        ]
        for of_a, of_b in itertools.product((False, True), (False, True)):
            for gap in (1, 2, 4):
                x = place(device, a, "float32", of_a, gap=-a.shape[1 + (not of_a)] % gap)
                y = place(device, b, "float32", of_b, gap=-b.shape[1 + (not of_b)] % gap)
                found = multiply(x, y, "tf32")
                check_bits(found[:3], few[0])
                check_bits(found[64:], few[1])


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kernel", ["tensor_tf32"])
def test_tf32_items_that_begin_anywhere(device, rng, kernel):
    """Of rows that lie multiples of 16 bytes apart: items are side by side."""
    a, b = rng.standard_normal((30, 4, 9)), rng.standard_normal((9, 4, 35))
    x, y = (vg.permute_dims(place(device, one, "float32"), (1, 0, 2)) for one in (a, b))
    with forced(device, kernel):
        found = multiply(x, y, "tf32")
        for item in range(4):
            left, right = (place(device, one[:, item], "float32") for one in (a, b))
            check_bits(found[item], multiply(left, right, "tf32"))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kernel", ["tensor_tf32"])
def test_tf32_of_infinity_and_what_is_no_number(device, kernel):
    """Rounding leaves them what they are, and they stay in their row and column."""
    a, b = np.ones((40, 70), "float32"), np.ones((70, 50), "float32")
    a[3, 69], a[5, 0] = np.inf, np.nan
    a.view(np.uint32)[7, 1] = 0x7F800001
    b[1, 9] = -np.inf
    with forced(device, kernel):
        found = values_of(multiply(put(device, a), put(device, b), "tf32"))
    np.testing.assert_array_equal(found, a.astype("float64") @ b.astype("float64"))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kernel", ["tensor_tf32"])
def test_tf32_rounds_to_the_nearest(device, kernel):
    """Of two nearest numbers of eleven bits to the even one, from compute capability 9.0 on."""
    x = (1 + np.arange(64) * 2.0**-12).astype("float32")
    with forced(device, kernel):
        found = multiply(put(device, x[:, None]), put(device, np.ones((1, 40), "float32")), "tf32")
    check_same(found, np.repeat(round_bits(x, 10, -126)[:, None], 40, 1))


TYPES = [("float16", None), ("bfloat16", None), ("float32", "tf32"), ("float32", "bf16")]


def by_tensor_cores(device):
    """What was launched of the kernel for each tile, type and layout, and how often."""
    log = vg.launch_log(device)
    return {(one.offset, one.launches) for one in log if "tensor_product_kernel" in one.kernel}


# Tiles of 64 x 32 and of 64 x 64; more of them below each other than beside; k of half a step, of
# one step, of less than the ring of stages and of more.
SMALL = [(64, 64, 64), (65, 33, 40), (256, 256, 256), (257, 130, 600), (511, 97, 990)]
SMALL += [(384, 768, 768), (450, 700, 333), (130, 700, 9)]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), SMALL)
@pytest.mark.parametrize(("dtype", "precision"), TYPES)
def test_tiles_of_64_rows(device, rng, dtype, precision, m, n, k):
    """In all layouts, from copies and in classes; with an epilogue; in columns of a wider array."""
    a, b, bias = (integers(rng, shape, dtype) for shape in ((m, k), (k, n), (1, n)))
    expected = a @ b
    with forced(device, "tensor"):
        for of_a, of_b, gap in itertools.product((False, True), (False, True), (0, 1)):
            x = place(device, a, dtype, trans=of_a, gap=gap)
            y = place(device, b, dtype, trans=of_b, gap=gap)
            check_same(multiply(x, y, precision), halves(expected, dtype))
            check_columns(x, y, precision, halves(expected, dtype), gap, n + 3)
            z = place(device, bias, dtype)[0]
            result = layer(x, y.T, z, "relu", precision=precision)
            check_same(result, halves(np.maximum(expected + bias, 0), dtype))


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), SMALL)
@pytest.mark.parametrize(("dtype", "precision"), TYPES)
def test_tiles_of_64_rows_have_the_bits_of_larger_ones(device, rng, dtype, precision, m, n, k):
    """Many items have larger tiles than one, and so another kernel."""
    items = min(300, 2**24 // (m * k))
    a, b = rng.standard_normal((items, m, k)), rng.standard_normal((k, n))
    with forced(device, "tensor"):
        for trans in (False, True):
            x, y = place(device, a, dtype), place(device, b, dtype, trans=trans)
            before = by_tensor_cores(device)
            many = multiply(x, y, precision)
            between = by_tensor_cores(device)
            for i in (0, items // 2, items - 1):
                check_bits(multiply(x[i], y, precision), many[i], f"{dtype}, item {i}")
            (of_many,) = between - before
            (of_one,) = by_tensor_cores(device) - between
            assert of_one[0] != of_many[0]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("side", [672, 752, 753, 808, 1000])
def test_tiles_of_float64_have_the_same_bits(device, rng, side):
    """So many items that each of the tiles is taken, beside one alone, whose tile is smaller."""
    k = 130
    items = rng.standard_normal((5, side, k)), rng.standard_normal((5, k, side))
    for trans in (False, True):
        x, y = (place(device, one, "float64", trans=trans) for one in items)
        alone = [multiply(x[i], y[i], None) for i in range(5)]
        for count in (2, 3, 5):
            many = multiply(x[:count], y[:count], None)
            for i in range(count):
                check_bits(alone[i], many[i], f"{count} items of {side}, item {i}")


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("n", [259, 260])
@pytest.mark.parametrize("k", [255, 256, 257, 319, 320, 600])
@pytest.mark.parametrize("kernel", ["tiled", "ffma_128x128", "ffma_tma"])
def test_halves_of_k(device, rng, kernel, k, n):
    """The first half's sums wait: for any place of c, with an epilogue, and in a batch.

    In c where n, the distance of rows and the place are multiples of 4, else in a workspace.
    """
    m = 131
    if is_simulated(device) and k != 257:  # then one tile
        m, n = 67, n - 192
    a, b, bias = (integers(rng, shape, "float32") for shape in ((2, m, k), (n, k), (1, n)))
    expected = a @ b.T
    with forced(device, kernel):
        x, weight = place(device, a, "float32"), place(device, b, "float32")
        z = place(device, bias, "float32")[0]
        for first, width in ((0, n + 2), (1, n + 2), (0, n + 4), (4, n + 8)):
            check_columns(x, weight.T, "ieee", expected, first, width)
        for backwards in (np.s_[::-1], np.s_[:, ::-1]):  # items, or rows
            out = poisoned(device, (2, m, n), "float32")
            vg.matmul(x, weight.T, precision="ieee", out=out[backwards])
            check_same(out[backwards], expected)
        y, before = layer(x[0], weight, z, "relu", precision="ieee", with_preactivation=True)
        check_same(before, expected[0] + bias)
        check_same(y, np.maximum(expected[0] + bias, 0))


HALVING = ("ffma_kernel", "tma_kernel")  # whose sums wait where k is halved
# Of 33.6 MB an item and 4 MB an item: more than one launch, of which the last one has fewer items.
IN_PARTS = [(9, 2048, 4099, 256), (67, 1000, 1001, 260)]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("items", "m", "n", "k"), IN_PARTS)
@pytest.mark.parametrize("kernel", ["ffma_128x128", "ffma_tma"])
def test_halves_of_k_of_many_items_whose_rows_begin_anywhere(device, rng, kernel, items, m, n, k):
    """Their sums wait in a workspace of at most 256 MiB, which several launches use in turn."""
    a, b = rng.standard_normal((items, m, k)), rng.standard_normal((k, n))
    with forced(device, kernel):
        x, y = place(device, a, "float32"), place(device, b, "float32")
        before = launched(device, *HALVING)
        batch = multiply(x, y, "ieee")
        assert launched(device, *HALVING) - before == 2
        for i in (0, items - 2, items - 1):
            check_bits(batch[i], multiply(x[i], y, "ieee"))


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("kernel", ["ffma_128x128", "ffma_tma"])
def test_halves_of_k_of_one_item_that_waits_in_parts(device, rng, kernel):
    """So many rows at a time that their sums have room in 256 MiB."""
    m, n, k = 9000, 8003, 256
    a, b, bias = (integers(rng, shape, "float32") for shape in ((m, k), (n, k), (1, n)))
    with forced(device, kernel):
        x, weight = place(device, a, "float32"), place(device, b, "float32")
        z = place(device, bias, "float32")[0]
        before = launched(device, *HALVING)
        result, sums = layer(x, weight, z, "relu", precision="ieee", with_preactivation=True)
        assert launched(device, *HALVING) - before == 2
        expected = multiply(x, weight[:8000].T, "ieee")  # waits in c
        check_bits(multiply(x, weight.T, "ieee")[:, :8000], expected)
    check_same(sums[:, 7990:], a @ b[7990:].T + bias[:, 7990:])
    check_same(result[:, 7990:], np.maximum(a @ b[7990:].T + bias[:, 7990:], 0))


@pytest.mark.devices("cuda")
def test_threads_that_need_more_and_less_shared_memory(device, rng):
    """One kernel: what few blocks ask for, to have a multiprocessor each, and what many do."""
    shapes = [(600, 600, 64), (1408, 768, 64)]  # 100 tiles and 264, both of 64 x 64
    pairs = [
        [place(device, rng.standard_normal(sizes), "float32") for sizes in ((m, k), (k, n))]
        for m, n, k in shapes
    ]

    def repeat(pair):
        first = multiply(*pair, "ieee")
        for _ in range(300):
            last = multiply(*pair, "ieee")
        check_bits(last, first)

    with forced(device, "ffma_64x64"), ThreadPoolExecutor(4) as pool:
        list(pool.map(repeat, pairs * 2))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", [129, 132])
@pytest.mark.parametrize("kernel", ["tiled", "ffma_64x128", "ffma_64x64", "ffma_64x32"])
def test_blocks_that_share_k(device, rng, kernel, n, turned):
    """A cluster's sums are added to c, or to c transposed, at any place, with an epilogue."""
    m, k = 66, 700  # four blocks a tile
    a, b, bias = (integers(rng, shape, "float32") for shape in ((m, k), (n, k), (1, n)))
    expected = a @ b.T
    with forced(device, kernel):
        x, weight = place(device, a, "float32", turned), place(device, b, "float32")
        z = place(device, bias, "float32")[0]
        for first, width in ((0, n + 1), (1, n + 3), (4, n + 8)):
            check_columns(x, weight.T, "ieee", expected, first, width)
        y, before = layer(x, weight, z, "relu", precision="ieee", with_preactivation=True)
        check_same(before, expected + bias)
        check_same(y, np.maximum(expected + bias, 0))


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("k", [200, 255, 256, 300, 1000])
def test_kernels_without_slices_have_the_same_bits(device, rng, k):
    """So the layout of the operands may choose between them."""
    a, b = rng.standard_normal((300, k)), rng.standard_normal((k, 260))
    results = []
    for kernel in ("tiled", "ffma_128x128", "ffma_tma"):
        for trans_a, trans_b in itertools.product((False, True), repeat=2):
            x, y = place(device, a, "float32", trans_a), place(device, b, "float32", trans_b)
            with forced(device, kernel):
                results.append(multiply(x, y, "ieee"))
    for result in results[1:]:
        check_bits(result, results[0])


# (items, m, n, k): k of whole and partial groups, of splits, and shorter than the slices.
SEQUENCES = [(64, 512, 512, 448), (64, 257, 129, 1000), (300, 130, 140, 64), (300, 129, 127, 70)]
SEQUENCES += [(300, 128, 128, 8), (300, 128, 128, 3), (400, 65, 66, 333), (600, 33, 100, 130)]
SEQUENCES += [(400, 64, 32, 1100), (400, 65, 60, 1101)]
# One split and several, chains of whole and partial stages, tiles that c does not fill.
SEQUENCES += [(70, 384, 260, 512), (132, 128, 128, 1032), (33, 500, 516, 200), (132, 252, 124, 64)]
WAYS = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(("m", "n", "k"), [(66, 129, 700), (33, 200, 90), (130, 24, 300)])
@pytest.mark.parametrize("kernel", ["ffma_64x128", "ffma_64x64", "ffma_64x32"])
def test_turned_tiles_have_the_bits_of_others(device, rng, kernel, m, n, k):
    """An a along m and a b along k, beside copies that lie otherwise; and they begin anywhere."""
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    with forced(device, kernel):
        expected = multiply(place(device, a, "float32"), place(device, b, "float32"), "ieee")
        for by in (0, 3):
            x = place(device, a, "float32", True, offset=by, gap=by)
            y = place(device, b, "float32", True, offset=by, gap=2 * by)
            check_bits(multiply(x, y, "ieee"), expected)


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("trans", WAYS)
@pytest.mark.parametrize(("items", "m", "n", "k"), SEQUENCES)
@pytest.mark.parametrize("kernel", ["ffma_64x32", "ffma_64x64"])
def test_slices_in_sequence_have_the_bits_of_slices_side_by_side(
    device, rng, kernel, items, m, n, k, trans
):
    """Many items go to a kernel that has one slice after another, and one item to all at once."""
    check_sequence(device, rng, kernel, (items, m, n, k), trans)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("trans", WAYS)
@pytest.mark.parametrize("kernel", ["ffma_64x32", "ffma_64x64"])
def test_slices_in_sequence_of_a_small_batch(device, rng, kernel, trans):
    check_sequence(device, rng, kernel, (264, 33, 100, 70), trans)


def check_sequence(device, rng, kernel, sizes, trans):
    items, m, n, k = sizes
    a, b = rng.standard_normal((items, m, k)), rng.standard_normal((items, k, n))
    with forced(device, kernel):
        x, y = place(device, a, "float32", trans[0]), place(device, b, "float32", trans[1])
        batch = multiply(x, y, "ieee")
        for i in (0, items // 2, items - 1):
            check_bits(batch[i], multiply(x[i], y[i], "ieee"))
