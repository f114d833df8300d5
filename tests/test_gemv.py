"""Products with a vector whose terms are so many that several blocks share them, or so few that a
warp adds up several sums."""

import helpers
import numpy as np
import pytest
from helpers import assert_same, assert_within, put
from products import multiply

import pyvecgpu as vg

F = vg.nn.functional
# (length of the result, terms): one block, or several that share the terms.
SHAPES = [(1, 70_001), (3, 40_000), (130, 2_100), (600, 300), (1, 4096)]


def stored(device, matrix, along_k):
    """The matrix (length, terms) by rows, or by columns."""
    return put(device, matrix) if along_k else put(device, np.ascontiguousarray(matrix.T)).T


@pytest.mark.parametrize("along_k", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_long_sums(device, rng, dtype, shape, along_k):
    a = helpers.integers(rng, shape, dtype, low=-1, high=1)
    x = helpers.integers(rng, (shape[1],), dtype, low=-2, high=2)
    a[:, -1], x[-1] = 1, 7
    expected = helpers.rounded(a.astype(np.float64) @ x.astype(np.float64), dtype)
    assert np.any(expected)
    matrix, vector = stored(device, a, along_k), put(device, x)
    assert_same(multiply(matrix, vector), expected)
    assert_same(multiply(vector, matrix.T), expected)


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_short_sums(device, rng, dtype):
    """Every number of terms up to two packs of all lanes but one, rows whole and in part."""
    packs = 2 * 16 // np.dtype(dtype).itemsize if dtype != vg.bfloat16 else 16
    for terms in [*range(1, 5 * packs), 31 * packs // 2, 16 * packs, 16 * packs + 1]:
        length, items = int(rng.integers(1, 600)), int(rng.integers(1, 4))
        padding = int(rng.choice([0, 0, 1, 3, 8]))
        wide = helpers.integers(rng, (items, length, terms + padding), dtype, low=-3, high=3)
        x = helpers.integers(rng, (items, terms, 1), dtype, low=-3, high=3)
        a = wide[:, :, :terms]
        expected = helpers.rounded(a.astype(np.float64) @ x.astype(np.float64), dtype)
        matrix, vector = put(device, wide)[:, :, :terms], put(device, x)
        if length > 3:
            assert np.any(expected)
        assert_same(multiply(matrix, vector), expected)
        assert_same(multiply(vector.mT, matrix.mT), expected.mT)


@pytest.mark.devices("sim", "cuda")  # NumPy's own sums are not ours to judge
@pytest.mark.parametrize("along_k", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", helpers.WIDE_FLOATS, ids=str)
def test_error_of_long_sums(device, rng, dtype, shape, along_k):
    """Within (sqrt(k) + 8) u of (|A| |x|)."""
    a, x = rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape[1]).astype(dtype)
    reference, tolerance = helpers.product_tolerance(a, x, dtype)
    result = multiply(stored(device, a, along_k), put(device, x))
    assert_within(result, reference, tolerance * (np.sqrt(shape[1]) + 8) / shape[1])


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("along_k", [True, False])
@pytest.mark.parametrize("shape", [(3, 20_000), (130, 1_000)], ids=str)
def test_alignment_and_items_change_no_bit(device, rng, shape, along_k):
    """Loads of one element and of four, alone and in a batch, give the same sums."""
    length, terms = shape
    a = rng.standard_normal((4, length, terms)).astype(np.float32)
    x = rng.standard_normal((4, terms, 1)).astype(np.float32)
    matrices = put(device, a) if along_k else vg.matrix_transpose(put(device, a.mT.copy()))
    whole = helpers.host(multiply(matrices, put(device, x)))
    assert np.isfinite(whole).all()
    for i in range(4):
        alone = multiply(matrices[i], put(device, x[i]))
        assert helpers.bits(alone) == whole[i].tobytes(), f"item {i}"
        values = a[i] if along_k else a[i].T
        wide = np.full((values.shape[0], values.shape[1] + 3), np.nan, np.float32)
        wide[:, 1:-2] = values
        askew = put(device, wide)[:, 1:-2] if along_k else put(device, wide)[:, 1:-2].T
        alone = multiply(askew, put(device, x[i]))
        assert helpers.bits(alone) == whole[i].tobytes(), f"askew {i}"


@pytest.mark.parametrize("along_k", [True, False])
def test_a_layer_of_one_sample(device, rng, along_k):
    """Bias, activation and preactivation after the sums of several blocks have been added up."""
    length, terms = 40, 20_000
    w = rng.standard_normal((length, terms)).astype(np.float32)
    x = rng.standard_normal((1, terms)).astype(np.float32) / 64
    bias = rng.standard_normal(length).astype(np.float32)
    weight = stored(device, w, along_k)
    y, z = F.dense(put(device, x), weight, put(device, bias), "tanh", with_preactivation=True)
    before = x.astype(np.float64) @ w.T.astype(np.float64) + bias
    assert_within(z, before, 1e-4 * (np.abs(before) + 1))
    assert_within(y, np.tanh(helpers.host(z).astype(np.float64)), 1e-6)
    assert np.any(helpers.host(y))
