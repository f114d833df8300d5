"""A thread remembers the plans of its last products (plan/recall.cu).

What plans look at differs here between products of one shape, in turn and back again: where
operands, c and the bias begin, and how far the items of a batch's other dimension are apart. All
have the bits of those that begin at a multiple of 128 bytes.
"""

import itertools

import numpy as np
import pytest
from products import check_bits

import pyvecgpu as vg

pytestmark = [pytest.mark.devices("sim", "cuda"), pytest.mark.usefixtures("simulated_cards")]

# dtype, items, m, n, k: of kernels that read 16 bytes at a time where they can.
PRODUCTS = [
    ("float16", 6, 40, 48, 40),
    ("bfloat16", 4, 72, 88, 24),
    ("float16", 1, 8, 80, 328),
    ("float32", 6, 40, 48, 40),
    ("float32", 1, 96, 72, 256),
    ("float32", 1, 8, 80, 328),
    ("float64", 4, 40, 48, 40),
    ("float32", 1, 1, 512, 256),
]
OFFSETS = [(0, 0, 0), (1, 0, 0), (0, 0, 0), (0, 1, 0), (0, 0, 1), (2, 4, 2), (0, 0, 0), (3, 3, 3)]


def at(array, offset):
    """The same values, so many elements behind the beginning of memory."""
    around = vg.zeros(array.size + 64, dtype=array.dtype, device=array.device)
    there = vg.reshape(around[offset : offset + array.size], array.shape)
    there[...] = array
    return there


@pytest.mark.parametrize(("dtype", "items", "m", "n", "k"), PRODUCTS)
@pytest.mark.parametrize("layout", range(4), ids=["NN", "TN", "NT", "TT"])
def test_products_of_one_shape_that_begin_anywhere(device, rng, dtype, items, m, n, k, layout):
    card = "sim:1" if device == "sim" else device
    lead = (items,) if items > 1 else ()
    a, b = (
        vg.astype(vg.asarray(rng.standard_normal(shape), device=card), dtype)
        for shape in (
            (*lead, *((k, m) if layout % 2 else (m, k))),
            (*lead, *((n, k) if layout // 2 else (k, n))),
        )
    )

    def product(of_a, of_b, of_c):
        x, y = at(a, of_a), at(b, of_b)
        out = at(vg.zeros((*lead, m, n), dtype=dtype, device=card), of_c)
        return vg.matmul(x.mT if layout % 2 else x, y.mT if layout // 2 else y, out)

    expected = product(0, 0, 0).copy()
    exact = np.matmul(
        *(
            x.numpy().astype(np.float64)
            for x in (a.mT if layout % 2 else a, b.mT if layout // 2 else b)
        )
    )
    tolerance = 0.1 if dtype in ("float16", "bfloat16") else 1e-3
    assert np.all(np.abs(expected.numpy().astype(np.float64) - exact) <= tolerance * np.sqrt(k))
    for offsets in OFFSETS:
        check_bits(product(*offsets), expected, str(offsets))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_batches_whose_other_dimension_is_anywhere(device, rng, dtype):
    card = "sim:1" if device == "sim" else device
    values = [rng.integers(-4, 5, (2, 3, 40, 40)) for _ in range(2)]
    exact = np.matmul(*values)

    def apart(one, gap):
        """So many elements more from one of the first axis to the next."""
        around = vg.zeros((2, 4800 + gap), dtype=dtype, device=card)
        around[:, :4800] = vg.astype(vg.asarray(one.reshape(2, 4800), device=card), dtype)
        return vg.reshape(around[:, :4800], (2, 3, 40, 40))

    for of_a, of_b in [(0, 0), (1, 0), (0, 0), (0, 1), (8, 8), (3, 2), (0, 0)]:
        found = vg.matmul(apart(values[0], of_a), apart(values[1], of_b))
        assert np.array_equal(found.numpy().astype(np.float64), exact), (of_a, of_b)


def test_dtypes_and_layouts_in_turn(device, rng):
    card = "sim:1" if device == "sim" else device
    values = [rng.integers(-4, 5, (48, 48)) for _ in range(2)]
    cases = list(itertools.product(("float16", "float32", "float64", "bfloat16"), range(4)))
    for dtype, layout in cases + cases[::-1]:
        a, b = (vg.astype(vg.asarray(one, device=card), dtype) for one in values)
        found = vg.matmul(a.mT if layout % 2 else a, b.mT if layout // 2 else b)
        exact = (values[0].T if layout % 2 else values[0]) @ (
            values[1].T if layout // 2 else values[1]
        )
        assert np.array_equal(found.numpy().astype(np.float64), exact), (dtype, layout)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_bias_that_begins_anywhere(device, rng, dtype):
    card = "sim:1" if device == "sim" else device
    x, w, bias = (
        vg.astype(vg.asarray(rng.integers(-4, 5, shape), device=card), dtype)
        for shape in ((72, 40), (48, 40), (48,))
    )
    exact = x.numpy().astype(np.float64) @ w.numpy().astype(np.float64).T
    for offset in (None, 0, 1, None, 2, 0, 3):
        some = None if offset is None else at(bias, offset)
        found = vg.dense(x, w, some).numpy().astype(np.float64)
        added = 0 if offset is None else bias.numpy().astype(np.float64)
        assert np.array_equal(found, exact + added), offset
