"""tril and triu: which elements stay, in every dtype, layout and shape, beside NumPy's."""

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, LAYOUTS, assert_same, put

import pyvecgpu as vg

PAIRS = [(vg.tril, np.tril), (vg.triu, np.triu)]
SHAPES = [
    (1, 1),
    (7, 7),
    (33, 5),
    (5, 33),
    (64, 128),
    (3, 17, 19),
    (2, 0, 4),
    (4, 3, 0),
    (2, 3, 4, 31),
]


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(device, rng, layout, dtype):
    a = helpers.numbers(rng, (3, 21, 37), dtype)
    for function, reference in PAIRS:
        for k in (-20, -1, 0, 3, 36):
            assert_same(function(LAYOUTS[layout](device, a), k), reference(a, k))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_and_diagonal(device, rng, shape):
    a = helpers.numbers(rng, shape, np.dtype(np.float32)) + 1
    for function, reference in PAIRS:
        x = put(device, a)
        assert_same(function(x), reference(a))
        for k in range(-shape[-2] - 2, shape[-1] + 3):
            assert_same(function(x, k), reference(a, k))
        for k in (2**31, -(2**31), 10**30, -(10**30)):  # beyond what NumPy's own reckons with
            everything = (k > 0) == (function is vg.tril)
            assert_same(function(x, k=k), a if everything else np.zeros_like(a))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out(device, rng, layout):
    """Also where the result goes on top of the operand, or is wider than it."""
    a = helpers.numbers(rng, (9, 22), np.dtype(np.float32))
    for function, reference in PAIRS:
        out = LAYOUTS[layout](device, np.full_like(a, np.nan))
        assert function(put(device, a), 1, out=out) is out
        assert_same(out, reference(a, 1))
        x = LAYOUTS[layout](device, a)
        assert_same(function(x, -1, out=x), reference(a, -1))
        wide = put(device, np.full(a.shape, np.nan, np.float64))
        assert_same(function(put(device, a), out=wide), reference(a).astype(np.float64))
        square = put(device, a[:, :9])
        assert_same(function(square, out=square.T), reference(a[:, :9]))


def test_numpy_gives_numpy(device, rng):
    a = helpers.numbers(rng, (4, 5), np.dtype(np.float64))
    result = vg.tril(a, device=device)
    assert type(result) is np.ndarray
    assert_same(result, np.tril(a))


def test_what_is_refused(device):
    x = put(device, np.zeros(3, np.float32))
    with helpers.refused(device, ValueError, x, match=r"tril.*\(3,\)"):
        vg.tril(x)
    m = put(device, np.zeros((2, 2), np.float32))
    with helpers.refused(device, TypeError, m, match="diagonal"):
        vg.triu(m, 1.5)
    with helpers.refused(device, ValueError, m, match="shape"):
        vg.triu(m, out=put(device, np.zeros((2, 3), np.float32)))
