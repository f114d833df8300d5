"""Matrix products: exact on small integers, within k * u * (|A| |B|) on random data, any shapes."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import DTYPES, FLOATS, assert_same, assert_within, put
from references import product_reference

import pyvecgpu as vg

SHAPES = [
    ((1, 1), (1, 1)),
    ((3, 4), (4, 5)),
    ((31, 33), (33, 35)),
    ((1, 129), (129, 1)),
    ((65, 1), (1, 67)),
    ((130, 17), (17, 70)),
    ((5, 600), (600, 3)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((1025,), (1025,)),
    ((70, 300), (300,)),
    ((300,), (300, 70)),
]
BATCHES = [
    ((4, 3, 5), (4, 5, 2)),
    ((4, 3, 5), (5, 2)),
    ((3, 5), (4, 5, 2)),
    ((2, 1, 3, 5), (7, 5, 2)),
    ((2, 4, 3, 5), (2, 1, 5, 2)),
    ((1, 3, 5), (6, 5, 2)),
    ((6, 3, 5), (5,)),
    ((5,), (6, 5, 2)),
    ((3, 65, 33), (3, 33, 40)),
]


def nonzero(x):
    """A test on zeros proves nothing: the reference must have a norm."""
    assert np.any(x), "the reference is zero"
    return x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shapes", SHAPES + BATCHES, ids=str)
def test_integer_values_are_product_reference(device, rng, shapes, dtype):
    a, b = (helpers.integers(rng, shape, dtype) for shape in shapes)
    a.flat[0] = b.flat[0] = 1
    expected = product_reference(a, b)
    assert_same(vg.matmul(put(device, a), put(device, b)), expected)
    assert_same(put(device, a) @ put(device, b), expected)
    if expected.size > 1:
        nonzero(expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operands_of_every_layout(device, rng, dtype):
    """Transposed operands are read in place; everything else must still be right."""
    a, b = helpers.integers(rng, (19, 37), dtype), helpers.integers(rng, (37, 23), dtype)
    expected = nonzero(product_reference(a, b))
    for one, other in itertools.product(helpers.LAYOUTS, helpers.LAYOUTS):
        x, y = helpers.LAYOUTS[one](device, a), helpers.LAYOUTS[other](device, b)
        assert_same(x @ y, expected, f"{one} and {other}")
    a, b = helpers.integers(rng, (3, 5, 7), dtype), helpers.integers(rng, (3, 7, 4), dtype)
    expected = nonzero(product_reference(a, b))
    for one, other in zip(helpers.LAYOUTS, reversed(helpers.LAYOUTS), strict=True):
        x, y = helpers.LAYOUTS[one](device, a), helpers.LAYOUTS[other](device, b)
        assert_same(x @ y, expected, f"{one} and {other}")


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.int32)], ids=str)
def test_broadcast_operands(device, rng, dtype):
    row = helpers.integers(rng, (1, 9), dtype)
    b = helpers.integers(rng, (9, 8), dtype)
    repeated = vg.broadcast_to(put(device, row), (6, 9))
    assert_same(repeated @ put(device, b), product_reference(np.broadcast_to(row, (6, 9)), b))
    column = vg.broadcast_to(put(device, row).T, (9, 5))
    assert_same(put(device, b).T @ column, product_reference(b.T, np.broadcast_to(row.T, (9, 5))))
    one = helpers.integers(rng, (1, 1), dtype) + dtype.type(9)
    outer = vg.broadcast_to(put(device, one), (6, 1)) @ put(device, row)
    assert_same(outer, product_reference(np.broadcast_to(one, (6, 1)), row))
    outer = put(device, row).T @ vg.broadcast_to(put(device, one), (1, 6))
    assert_same(outer, product_reference(row.T, np.broadcast_to(one, (1, 6))))
    batch = vg.broadcast_to(put(device, b), (3, 9, 8))
    assert_same(put(device, row) @ batch, product_reference(row, np.broadcast_to(b, (3, 9, 8))))


@pytest.mark.parametrize(
    "shapes", [((70, 90), (90, 50)), ((4, 9, 500), (4, 500, 8)), ((1, 4099), (4099,))], ids=str
)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_random_data_within_the_bound(device, rng, dtype, shapes):
    a, b = (helpers.numbers(rng, shape, dtype) for shape in shapes)
    reference, tolerance = helpers.product_tolerance(a, b, dtype)
    assert_within(put(device, a) @ put(device, b), reference, tolerance)
    if a.ndim == 2 and b.ndim == 2:
        x = put(device, np.ascontiguousarray(a.T)).T
        y = put(device, np.ascontiguousarray(b.T)).T
        assert_within(x @ y, reference, tolerance)


def test_pairs_of_dtypes(device, rng):
    for one, other in itertools.product(DTYPES, DTYPES):
        a, b = helpers.integers(rng, (4, 6), one), helpers.integers(rng, (6, 5), other)
        assert_same(put(device, a) @ put(device, b), product_reference(a, b), f"{one} and {other}")


@pytest.mark.parametrize("dtype", helpers.INTEGERS, ids=str)
def test_integers_wrap(device, rng, dtype):
    a, b = helpers.numbers(rng, (7, 40), dtype), helpers.numbers(rng, (40, 6), dtype)
    wide = np.array(
        [
            [sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) for column in b.T]
            for row in a
        ]
    )
    modulus = 2 ** (8 * dtype.itemsize)
    result = helpers.host(put(device, a) @ put(device, b))
    assert result.dtype == dtype
    assert [int(v) % modulus for v in result.flat] == [int(v) % modulus for v in wide.flat]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sizes_of_zero(device, dtype):
    """K = 0 gives zeros; M, N or the batch 0 gives nothing; neither leaves an error behind."""
    for a_shape, b_shape in (((3, 0), (0, 4)), ((0, 5), (5, 4)), ((3, 5), (5, 0)), ((0,), (0,)),
                             ((0, 3, 4), (4, 5)), ((2, 3, 0), (0, 5)), ((0, 2), (2,))):  # fmt: skip
        a, b = np.ones(a_shape, dtype), np.ones(b_shape, dtype)
        assert_same(put(device, a) @ put(device, b), np.zeros(np.matmul(a, b).shape, dtype))
        helpers.assert_works(device)
    out = put(device, np.full((3, 4), 1, dtype))
    vg.matmul(put(device, np.ones((3, 0), dtype)), put(device, np.ones((0, 4), dtype)), out=out)
    assert_same(out, np.zeros((3, 4), dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_and_infinity_stay_in_their_rows_and_columns(device, dtype):
    a, b = np.ones((70, 40), dtype), np.ones((40, 50), dtype)
    a[3, 7], b[11, 48], a[69, 39] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    assert_same(put(device, a) @ put(device, b), expected.astype(dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_items_of_a_batch_do_not_depend_on_it(device, rng, dtype):
    a, b = helpers.numbers(rng, (5, 33, 70), dtype), helpers.numbers(rng, (5, 70, 20), dtype)
    whole = helpers.host(put(device, a) @ put(device, b))
    assert whole.tobytes() == helpers.bits(put(device, a) @ put(device, b))
    if device == "cpu":
        return  # NumPy promises no such thing
    for i in range(5):
        assert helpers.bits(put(device, a[i]) @ put(device, b[i])) == whole[i].tobytes()


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (4, 2)),
        ((2, 3), (4,)),
        ((3,), (4,)),
        ((2, 2, 3), (3, 3, 4)),
        ((), (2,)),
        ((2,), ()),
        ((2, 2), ()),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit(device, shapes):
    a, b = (put(device, np.ones(shape, np.float32)) for shape in shapes)
    with helpers.refused(device, ValueError, a, b, match="matmul"):
        vg.matmul(a, b)
    with helpers.refused(device, ValueError, a, b) as caught:
        a @ b
    if device != "cpu":
        assert all(str(shape) in str(caught.value) for shape in shapes)


def test_scalars_and_foreign_types(device):
    x = put(device, np.ones((2, 2), np.float32))
    for foreign in (2, 2.0, [1, 2], None):
        with helpers.refused(device, TypeError, x):
            vg.matmul(x, foreign)
        with helpers.refused(device, TypeError, x):
            x @ foreign


def test_matrix_transpose(device, rng):
    x = helpers.integers(rng, (2, 3, 4), np.dtype(np.float32))
    assert_same(put(device, x).mT, x.mT)
    assert_same(vg.matrix_transpose(put(device, x)), x.mT)
    with helpers.refused(device, ValueError):
        put(device, x[0, 0]).mT  # noqa: B018
