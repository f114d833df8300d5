"""More elements than 32 bits count, and byte offsets beyond 2^32: every class of operation.

The values have closed forms: element i is made on the device from i // 65536 and i % 65536, so
nothing is copied from the host. Checked are samples from both ends, around every power of two from
2^31 on and at random places, and sums over all elements.
"""

import numpy as np
import pytest
from helpers import assert_same, put
from references import binary_reference

import pyvecgpu as vg

pytestmark = [pytest.mark.big, pytest.mark.devices("cuda")]

WIDTH = 65536
SIZES = [2**31 - 1, 2**31, 2**31 + 1, 2**32 + 1]
U8, F32 = np.dtype(np.uint8), np.dtype(np.float32)


def value(i, dtype):
    """Element i: rows and columns move at different speeds, so a wrong index shows."""
    i = np.asarray(i, np.uint64)
    return (
        (i // np.uint64(WIDTH)) % np.uint64(251) + (i % np.uint64(WIDTH)) % np.uint64(4)
    ).astype(dtype)


def make(n, dtype, offset=0):
    """n elements on the device, `offset` elements into their memory."""
    rows = (n + offset + WIDTH - 1) // WIDTH
    column = (np.arange(rows) % 251).astype(dtype)[:, None]
    row = (np.arange(WIDTH) % 4).astype(dtype)
    whole = put("cuda", column) + put("cuda", row)
    return whole.reshape(-1)[offset : offset + n]


def total(n):
    """The sum of value(i) for i < n, in Python ints."""
    rows, rest = divmod(n, WIDTH)
    of_rows = sum(r % 251 for r in range(rows)) * WIDTH + rows * sum(c % 4 for c in range(WIDTH))
    return of_rows + (rows % 251) * rest + sum(c % 4 for c in range(rest))


def places(n, rng):
    """Where runs of 9 elements are looked at."""
    near = [0, n - 9, *(p + d for p in (2**30, 2**31, 3 * 2**30, 2**32) for d in (-9, -4, 0))]
    return sorted({int(p) for p in [*near, *rng.integers(0, n - 9, 20)] if 0 <= p <= n - 9})


def check_samples(array, reference, rng):
    """array[i] == reference(i) at the sampled places."""
    for place in places(array.size, rng):
        assert_same(
            array[place : place + 9], reference(np.arange(place, place + 9)), f"from {place}"
        )


@pytest.mark.parametrize("dtype", [U8, F32], ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_elementwise(device, rng, n, dtype):
    x = make(n, dtype)
    check_samples(x, lambda i: value(i, dtype), rng)
    y = x + x
    check_samples(y, lambda i: value(i, dtype) + value(i, dtype), rng)
    vg.multiply(x, 3, out=y)
    check_samples(y, lambda i: value(i, dtype) * dtype.type(3), rng)
    vg.negative(x, out=y)
    check_samples(y, lambda i: -value(i, dtype), rng)
    vg.maximum(x, y, out=y)
    check_samples(y, lambda i: binary_reference("maximum", value(i, dtype), -value(i, dtype)), rng)
    y[...] = 7
    check_samples(y, lambda i: np.full(i.shape, 7, dtype), rng)
    mask = x > 100
    check_samples(mask, lambda i: value(i, dtype) > 100, rng)
    vg.where(mask, x, y, out=y)
    check_samples(y, lambda i: np.where(value(i, dtype) > 100, value(i, dtype), dtype.type(7)), rng)


@pytest.mark.parametrize("n", SIZES)
def test_casts(device, rng, n):
    x = make(n, U8)
    wide = x.astype("float32")
    check_samples(wide, lambda i: value(i, F32), rng)
    wide *= 0.5
    check_samples(wide.astype("uint8"), lambda i: (value(i, F32) / 2).astype(U8), rng)


@pytest.mark.parametrize("dtype", [U8, F32], ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_reductions(device, n, dtype):
    x = make(n, dtype)
    expected = total(n)
    result = vg.sum(x)
    if dtype == U8:
        assert result.item() == expected
        assert vg.sum(x != 0).item() <= n
    else:
        assert_same(result, np.array(expected, F32))
    assert_same(vg.mean(x), np.array(expected / n, np.float32))
    assert vg.max(x).item() == 253
    assert vg.min(x).item() == 0
    assert vg.argmax(x).item() == 250 * WIDTH + 3
    x[n - 1 : n] = 255
    assert vg.argmax(x).item() == n - 1, "an index beyond 32 bits"
    assert vg.max(x).item() == 255


@pytest.mark.parametrize("dtype", [U8, F32], ids=str)
def test_offsets_beyond_4_gib(device, rng, dtype):
    """Views whose first byte, or whose step, lies beyond 2^32 bytes."""
    n = 2**32 + 2**20
    x = make(n, dtype)
    far = x[2**32 + 5 :]
    assert_same(far[:9], value(np.arange(2**32 + 5, 2**32 + 14), dtype))
    assert_same(vg.sum(far[:1000]), np.sum(value(np.arange(2**32 + 5, 2**32 + 1005), dtype)))
    assert_same(x[:: 2**31][:3], value(np.array([0, 2**31, 2**32]), dtype))
    assert_same((x[:: 2**31] + x[:: 2**31])[:3], 2 * value(np.array([0, 2**31, 2**32]), dtype))
    assert_same(x[::-1][:9], value(np.arange(n - 1, n - 10, -1), dtype))
    far[...] = x[: far.size]
    assert_same(x[2**32 + 5 : 2**32 + 14], value(np.arange(9), dtype))
    assert_same(x[2**32 - 4 : 2**32 + 5], value(np.arange(2**32 - 4, 2**32 + 5), dtype))


def test_strided_and_broadcast(device, rng):
    """Walks over three axes whose product is beyond 2^32, as operands and as results."""
    x = make(2**32 + WIDTH, U8).reshape(-1, 256, 256)
    every = x[:, ::2]
    y = every + put(device, np.arange(256, dtype=U8))
    rows, columns = x.shape[0], 256
    for r, m, c in ((0, 0, 0), (rows - 1, 127, 255), (rows // 2, 64, 3), (32768, 1, 17)):
        i = (r * 256 + 2 * m) * 256 + c
        assert y[r, m, c].item() == (int(value(i, U8)) + c) % 256
    assert y.shape == (rows, 128, columns)


@pytest.mark.parametrize("shape", [(2**16, 2**15 + 3), (2**31 + 7, 2), (3, 2**30 + 1)], ids=str)
def test_transposed_copies(device, rng, shape):
    n = shape[0] * shape[1]
    x = make(n, U8).reshape(shape)
    y = x.T.copy()
    for r, c in corners_and_others(shape, rng):
        assert y[c, r].item() == int(value(r * shape[1] + c, U8))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(2**16, 2**16 + 1), (2**31 + 1, 2), (2, 2**31 + 1)], ids=str)
def test_reductions_over_one_axis(device, rng, shape, axis):
    x = make(shape[0] * shape[1], U8).reshape(shape)
    sums, largest = vg.sum(x, axis=axis), vg.max(x, axis=axis)
    length, kept = shape[axis], shape[1 - axis]
    assert sums.shape == (kept,)
    assert vg.sum(sums).item() == total(shape[0] * shape[1])
    if length > 2**20:
        return
    for k in [0, kept - 1, *(int(k) for k in rng.integers(0, kept, 10))]:
        i = np.arange(length, dtype=np.uint64)
        index = i * np.uint64(shape[1]) + np.uint64(k) if axis == 0 else np.uint64(k * shape[1]) + i
        assert sums[k].item() == int(value(index, np.uint64).sum())
        assert largest[k].item() == int(value(index, U8).max())


@pytest.mark.parametrize("sizes", [(2**16 + 1, 3, 2**15 + 1), (2**30 + 3, 3, 2)], ids=str)
def test_products(device, rng, sizes):
    """Results, or an operand, of more than 2^31 elements."""
    m, k, n = sizes
    c = make(m * k, F32).reshape(m, k) @ make(k * n, F32).reshape(k, n)
    assert c.shape == (m, n)
    for r, s in corners_and_others(c.shape, rng):
        row = value(r * k + np.arange(k), np.float64)
        column = value(np.arange(k) * n + s, np.float64)
        assert c[r, s].item() == np.dot(row, column)


def corners_and_others(shape, rng):
    """Two corners of a matrix and 30 random places, as Python ints."""
    others = [[int(rng.integers(0, length)) for length in shape] for _ in range(30)]
    return [(0, 0), (shape[0] - 1, shape[1] - 1), *others]


def test_products_with_operands_beyond_2_to_the_31(device):
    """m * k, and k * n, beyond 2^31: a few ones among zeros pick elements of all of the operand."""
    long, wide = 2**16 + 1, 2**15 + 1
    places = [0, 1, 2**14, wide - 2, wide - 1]
    matrix = make(long * wide, F32).reshape(long, wide)
    picks = vg.zeros((wide, 2), dtype="float32", device=device)
    for i, place in enumerate(places):
        picks[place, i % 2] = 1.0
    right, left = matrix @ picks, picks.T @ matrix.reshape(wide, long)
    for side in range(2):
        chosen = np.array(places[side::2])
        for i in (0, 1, 2**15, wide - 1, long - 1):
            assert right[i, side].item() == value(i * wide + chosen, np.float64).sum()
            assert left[side, i].item() == value(chosen * long + i, np.float64).sum()


@pytest.mark.parametrize("dtype", [U8, F32, np.dtype(np.float16)], ids=str)
def test_products_with_a_dimension_beyond_2_to_the_31(device, rng, dtype):
    n = 2**31 + 5
    x, three = make(n, dtype), vg.full((1, 1), 3, dtype=str(dtype), device=device)
    for result in (x.reshape(n, 1) @ three, three @ x.reshape(1, n)):
        check_samples(result.reshape(-1), lambda i: value(i, dtype) * dtype.type(3), rng)
    if dtype == F32:  # a few ones among zeros
        picks, chosen = vg.zeros(n, dtype="float32", device=device), [0, 7, 2**31 - 1, n - 2, n - 1]
        for place in chosen:
            picks[place] = 1.0
        total_of_picks = value(chosen, np.float64).sum()
        for result in (x @ picks, vg.vecdot(picks, x), picks.reshape(1, n) @ x.reshape(n, 1)):
            assert result.item() == total_of_picks


def test_dense_layer(device, rng):
    rows, inner, outer = 2**16 + 1, 3, 2**15 + 1
    x, weight = (
        make(rows * inner, F32).reshape(rows, inner),
        make(outer * inner, F32).reshape(outer, inner),
    )
    bias = make(outer, F32)
    y = vg.dense(x, weight, bias, "relu")
    for r, s in corners_and_others(y.shape, rng):
        of_x = value(r * inner + np.arange(inner), np.float64)
        product = np.dot(of_x, value(s * inner + np.arange(inner), np.float64))
        assert y[r, s].item() == product + float(value(s, F32))


def test_more_blocks_than_a_grid_has_in_y(device):
    """2^32 + 1 rows of one element each: any batch dimension must be folded into the grid's x."""
    x = make(2**32 + 1, U8).reshape(-1, 1)
    assert vg.sum(vg.max(x, axis=1)).item() == total(2**32 + 1)
