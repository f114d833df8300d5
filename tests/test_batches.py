"""Launch geometry: batches around 65,536, very tall and very wide shapes, sizes of 0."""

import helpers
import numpy as np
import products
import pytest
from helpers import DTYPES, assert_same, put

import pyvecgpu as vg


@pytest.mark.parametrize("batch", [65_535, 65_536, 100_000])
def test_batches_of_products(device, rng, batch):
    """A grid's y and z end at 65,535 blocks; a launch beyond is an error, or silently nothing."""
    a = helpers.integers(rng, (batch, 1, 2), np.dtype(np.float32))
    b = helpers.integers(rng, (batch, 2, 1), np.dtype(np.float32))
    a[0] = b[0] = a[-1] = b[-1] = 3
    expected = np.matmul(a, b)
    assert expected[0, 0, 0] == expected[-1, 0, 0] == 18
    x, y = put(device, a), put(device, b)
    assert_same(x @ y, expected)
    helpers.assert_works(device)


@pytest.mark.devices("cpu", "cuda")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32"])
def test_a_million_products_of_broadcast_batches(device, rng, dtype):
    a = helpers.integers(rng, (2**10, 1, 2, 3), np.dtype(dtype))
    b = helpers.integers(rng, (2**10, 3, 2), np.dtype(dtype))
    result = put(device, a) @ put(device, b)
    assert result.shape == (2**10, 2**10, 2, 2)
    assert_same(result, np.matmul(a, b))


@pytest.mark.parametrize("batch", [65_535, 65_536, 100_000])
def test_batches_of_other_operations(device, rng, batch):
    x = helpers.integers(rng, (batch, 3), np.dtype(np.int32))
    array = put(device, x)
    assert_same(vg.sum(array, axis=1), x.sum(axis=1))
    assert_same(vg.max(array, axis=0), x.max(axis=0))
    assert_same(array.T.copy(), x.T)
    assert_same(array + array[:, :1], x + x[:, :1])
    assert_same(array[:, 1:] * 2, x[:, 1:] * np.int32(2))
    vector = helpers.integers(rng, 3, np.dtype(np.float32))
    assert_same(array.astype(np.float32) @ put(device, vector), x.astype(np.float32) @ vector)
    cubes = x.reshape(-1)[: batch * 2].reshape(batch, 2, 1)
    assert_same(vg.permute_dims(put(device, cubes), (0, 2, 1)).copy(), cubes.transpose(0, 2, 1))


@pytest.mark.parametrize("batch", [65_535, 65_536])
def test_batches_of_dense_layers(device, rng, batch):
    x, weight = (helpers.integers(rng, s, np.dtype(np.float32)) for s in ((batch, 3), (2, 3)))
    assert_same(
        vg.dense(put(device, x), put(device, weight), None, "relu"), np.maximum(x @ weight.T, 0)
    )


@pytest.mark.parametrize("shape", [(3_000_000, 1), (1, 3_000_000)], ids=str)
def test_three_million_rows_or_columns(device, rng, shape):
    x = rng.integers(0, 256, shape, np.uint8)
    array = put(device, x)
    long = 0 if shape[0] > 1 else 1
    assert_same(vg.sum(array, axis=long), x.sum(axis=long))
    assert_same(vg.sum(array, axis=1 - long), x.sum(axis=1 - long))
    assert_same(vg.argmax(array), np.asarray(x.argmax()))
    assert_same(vg.max(array, axis=1 - long), x.max(axis=1 - long))
    assert_same(array.T.copy(), x.T)
    assert_same(array + array.reshape(-1)[:1], x + x.reshape(-1)[:1])
    assert_same(
        (array == array.T.reshape(shape)).astype(np.uint8).sum(), np.asarray(np.uint64(x.size))
    )


def test_products_of_long_and_thin_matrices(device, rng):
    n = 70_000
    a, b = (
        helpers.integers(rng, (n, 1), np.dtype(np.float32)),
        helpers.integers(rng, (1, 3), np.dtype(np.float32)),
    )
    assert_same(put(device, a) @ put(device, b), a @ b)
    assert_same(put(device, b).T @ put(device, a).T, b.T @ a.T)
    ones = np.ones((1, n), np.float32)
    assert_same(
        put(device, ones) @ put(device, a), (ones.astype(np.float64) @ a).astype(np.float32)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sizes_of_zero_leave_no_error_behind(device, dtype):
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 3)):
        x = put(device, np.zeros(shape, dtype))
        for result in (x + x, x == x, x.copy(), x.astype(np.float64), vg.where(x == x, x, x)):
            assert result.shape == shape
        assert x.T.copy().shape == shape[::-1]
        if len(shape) > 1:
            assert_same(x @ x.mT, np.zeros((*shape[:-1], shape[-2]), dtype))
        assert vg.sum(x, axis=0).shape == shape[1:]
        helpers.assert_works(device)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lengths_around_vectors_warps_and_blocks(device, rng, dtype):
    for n in (
        1,
        2,
        3,
        5,
        7,
        8,
        9,
        15,
        16,
        17,
        31,
        32,
        33,
        63,
        64,
        65,
        127,
        255,
        256,
        257,
        1023,
        1024,
        1025,
        2047,
        2053,
        4096,
        4099,
        16_381,
    ):
        x = helpers.numbers(rng, n, dtype)
        array = put(device, x)
        assert_same(array * array, x * x, str(n))
        assert_same(array.copy(), x)
        assert_same(vg.max(array), np.max(x))
        assert_same(array.astype(bool), x.astype(bool))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("turned", [False, True], ids=["b by rows", "b by columns"])
@pytest.mark.parametrize(
    "sides",
    [
        *((48, 40, 40), (35, 33, 44), (20, 40, 70), (40, 20, 511), (33, 34, 255), (33, 34, 256)),
        *((40, 40, 112), (40, 40, 113), (40, 40, 512), (24, 24, 64), (24, 32, 64)),
    ],
    ids=str,
)
def test_items_over_one_right_operand_are_as_if_alone(
    device, simulated_cards, dtype, turned, sides
):
    """Such a batch may be computed as one taller product, which has the bits of each item's."""
    device = "sim:1" if device == "sim" else device  # which has most of the kernels
    m, n, k = sides
    random = np.random.default_rng(m * n * k)
    a = random.standard_normal((5, m, k), np.float32)
    b = random.standard_normal((n, k) if turned else (k, n), np.float32)
    a = vg.astype(vg.asarray(a, device=device), dtype)
    b = vg.astype(vg.asarray(b, device=device), dtype)
    b = vg.transpose(b, (1, 0)) if turned else b
    found = vg.matmul(a, b)
    for item in range(5):
        alone = vg.matmul(a[item], b)
        assert bool(vg.all(found[item] == alone))
    gaps = vg.matmul(a[::2], b)  # items that do not lie evenly
    assert bool(vg.all(gaps == found[::2]))


@pytest.mark.parametrize("k", [511, 512, 520])
def test_many_items_split_k_as_if_alone(device, simulated_cards, k):
    """From k = 512 on an item of 16 bits is split, and one product of so many rows would not be."""
    device = "sim:1" if device == "sim" else device
    random = np.random.default_rng(k)
    a = random.standard_normal((400, 33, k), np.float32)
    b = random.standard_normal((k, 4), np.float32)
    a, b = (vg.astype(vg.asarray(x, device=device), "float16") for x in (a, b))
    found = vg.matmul(a, b)
    for item in (0, 1, 200, 399):
        assert bool(vg.all(found[item] == vg.matmul(a[item], b)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_heads_between_rows_are_one_launch(device, rng, simulated_cards, dtype):
    """Of batches in two dimensions either may keep rows from beginning where vectors do."""
    device = "sim:1" if device == "sim" else device
    for _ in range(8):
        items, heads, queries, keys = (int(n) for n in rng.integers(2, 9, 4) * (1, 1, 4, 4))
        features = int(rng.integers(33, 70))
        q = rng.integers(-3, 4, (items, queries, heads, features)).astype(dtype)
        k = rng.integers(-3, 4, (items, keys, heads, features)).astype(dtype)
        a = vg.permute_dims(put(device, q), (0, 2, 1, 3))
        b = vg.permute_dims(put(device, k), (0, 2, 3, 1))
        vg.matmul(a, b)
        before = products.launches(device)
        found = vg.matmul(a, b)
        made = products.launches(device) - before
        assert np.array_equal(found.numpy(), np.einsum("bihd,bjhd->bhij", q, k))
        if device != "cpu" and dtype == "float32":
            assert made == 1, (items, heads, queries, keys, features)


# m, n, k and items, so many that each is a block: one stage of k and several, whole and partial
# instructions, warps and microtiles, and sides that two rows of threads share or do not.
WHOLE = [("float32", sizes) for sizes in ((33, 40, 39, 140), (107, 33, 65, 140), (72, 87, 5, 270))]
WHOLE += [("float32", (80, 34, 157, 6))]
WHOLE += [("float16", (66, 71, 17, 144)), ("bfloat16", (67, 104, 16, 144))]
WHOLE += [("bfloat16", (100, 40, 24, 144)), ("float16", (40, 90, 24, 142))]
# By whole packs, of which an odd number are along k, and of sides that warps share unevenly; even
# and odd ones; by one stage, two and more than there are at a time.
WHOLE += [
    ("float16", (48, 40, 40, 42)),
    ("bfloat16", (40, 64, 72, 42)),
    ("float16", (64, 64, 64, 42)),
]
WHOLE += [
    ("float16", (34, 46, 70, 42)),
    ("bfloat16", (37, 45, 131, 42)),
    ("float16", (56, 40, 264, 14)),
    ("float16", (60, 44, 36, 14)),
]
MORE = [("float32", (m, n, k, 300)) for m, n, k in ((107, 97, 116), (97, 96, 120), (113, 102, 113))]
MORE += [("float32", (101, 99, k, 300)) for k in (254, 255, 256)]
MORE += [
    (dtype, sizes)
    for dtype in ("float16", "bfloat16")
    for sizes in ((107, 97, 33, 144), (128, 128, 128, 144), (113, 72, 131, 144))
]
LAYOUTS = pytest.mark.parametrize("trans", range(4), ids=["NN", "TN", "NT", "TT"])


@pytest.mark.devices("sim", "cuda")
@LAYOUTS
@pytest.mark.parametrize(("dtype", "sizes"), WHOLE, ids=str)
def test_small_matrices_as_whole_items(device, simulated_cards, dtype, sizes, trans):
    """They lie anywhere, with gaps between rows and items or without, and are as if alone."""
    check_whole_items(device, dtype, sizes, trans)


# m, n, k and items, of microtiles of 8 x 8 in one stage and in two, by the layout.
LARGE = [(0, (121, 81, 17, 3)), (1, (108, 90, 17, 3)), (2, (83, 117, 4, 270))]
LARGE += [(3, (105, 93, 17, 3)), (0, (98, 97, 90, 200)), (1, (83, 122, 85, 200))]
LARGE += [(3, (123, 83, 85, 200))]


@pytest.mark.devices("sim")
@pytest.mark.parametrize(("trans", "sizes"), LARGE, ids=str)
def test_whole_items_of_large_microtiles(device, simulated_cards, rng, trans, sizes):
    m, n, k, items = sizes
    a, b = (rng.integers(-4, 5, (items, *s)) for s in ((m, k), (k, n)))
    x = lying("sim:1", a, "float32", trans % 2, 1)
    y = lying("sim:1", b, "float32", trans // 2, 1)
    before = products.launched("sim:1", "ffma_items")
    found = vg.matmul(x, y, precision="ieee").numpy()
    assert products.launched("sim:1", "ffma_items") - before == 1
    assert np.array_equal(found, np.matmul(a.astype(np.float64), b))


@pytest.mark.devices("cuda")
@LAYOUTS
@pytest.mark.parametrize(("dtype", "sizes"), MORE, ids=str)
def test_more_small_matrices_as_whole_items(device, dtype, sizes, trans):
    check_whole_items(device, dtype, sizes, trans)


def are_whole(dtype, sizes, trans, gap):
    """Whether blocks have whole items: of 16 bits some go by tiles, with the same bits."""
    m, n, k, items = sizes
    if dtype == "float32":
        return True
    lengths = (m if trans % 2 else k, k if trans // 2 else n)
    are_packs = gap == 0 and all(length % 8 == 0 for length in lengths)
    return items >= 143 if max(m, n) > 64 else are_packs


def check_whole_items(device, dtype, sizes, trans):
    card = "sim:1" if device == "sim" else device
    m, n, k, items = sizes
    random = np.random.default_rng(m * n * k + trans)
    a, b = (random.integers(-4, 5, (items, *s)) for s in ((m, k), (k, n)))

    def product(x, y, out=None):
        return vg.matmul(x, y, out, precision="ieee" if dtype == "float32" else None)

    def check(found, exact):
        exact = vg.asarray(exact.astype(np.float32), device=card)
        assert bool(vg.all(found == vg.astype(exact, dtype)))

    for gap, multiple in ((0, 1), (0, 4), (0, 8), (1, 1)):
        x, y = (
            lying(card, one, dtype, turned, gap, multiple)
            for one, turned in ((a, trans % 2), (b, trans // 2))
        )
        kernel = "ffma_items" if dtype == "float32" else "small_items"
        before = products.launched(card, kernel)
        found = product(x, y)
        whole = are_whole(dtype, sizes, trans, gap)
        assert products.launched(card, kernel) - before == whole or device != "sim"
        check(found, np.matmul(a.astype(np.float64), b))
    for gaps in ((0, 1), (1, 0)):  # of one operand alone
        x, y = (
            lying(card, one, dtype, turned, gap)
            for one, turned, gap in zip((a, b), (trans % 2, trans // 2), gaps, strict=True)
        )
        check(product(x, y), np.matmul(a.astype(np.float64), b))
    frame = vg.full((items, m, n + 2), 7, dtype=dtype, device=card)
    check(product(x, y, frame[:, :, 1:-1]), np.matmul(a.astype(np.float64), b))
    assert bool(vg.all(frame[:, :, 0] == 7)) and bool(vg.all(frame[:, :, -1] == 7))
    check(product(x[::3], y[5]), np.matmul(a[::3].astype(np.float64), b[5]))
    check(product(x, y[5]), np.matmul(a.astype(np.float64), b[5]))
    check(product(x[5], y), np.matmul(a[5].astype(np.float64), b))
    halves = (vg.reshape(one, (2, items // 2, *one.shape[1:]))[:, 1:] for one in (x, y))
    a, b = (one.reshape(2, items // 2, *one.shape[1:])[:, 1:] for one in (a, b))
    check(product(*halves), np.matmul(a.astype(np.float64), b))
    x, y = (
        lying(card, random.standard_normal((items, *s)), dtype, turned, 1)
        for s, turned in (((m, k), trans % 2), ((k, n), trans // 2))
    )
    found = product(x, y)
    tiled = device == "sim" and k <= 16  # alone, by a kernel that rounds twice on that card
    for item in () if tiled else (0, 1, items - 1):
        assert bool(vg.all(found[item] == product(x[item], y[item])))


def lying(device, values, dtype, turned, gap, multiple=1):
    """The same on a device, by columns if turned, behind `gap` elements in the array and a row.

    Rows are a multiple of so many elements apart, with what is not theirs at their ends.
    """
    values = values.swapaxes(1, 2) if turned else values
    items, rows, columns = values.shape
    around = np.full((items, rows, -(-(columns + 2 * gap) // multiple) * multiple), np.nan)
    around[:, :, gap : gap + columns] = values
    array = vg.astype(vg.asarray(around, device=device), dtype)[:, :, gap : gap + columns]
    return array.mT if turned else array
