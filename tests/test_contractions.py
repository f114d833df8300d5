"""vecdot and tensordot: NumPy's results for every form of `axes`, layout and dtype; errors."""

import functools

import helpers
import numpy as np
import products
import pytest
from helpers import DTYPES, assert_same, put

import pyvecgpu as vg


def summed(products, axis, dtype):
    """The exact sum of products, as the dtype."""
    total = np.sum(products, axis=axis)
    return total > 0 if dtype.kind == "b" else helpers.rounded(total, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "shapes",
    [
        ((5,), (5,)),
        ((3, 40), (3, 40)),
        ((2, 1, 7), (3, 7)),
        ((7,), (2, 3, 7)),
        ((4, 0), (0,)),
        ((0, 3), (3,)),
    ],
    ids=str,
)
def test_vecdot(device, rng, shapes, dtype):
    a, b = (helpers.integers(rng, shape, dtype) for shape in shapes)
    expected = summed(a.astype(np.float64) * b.astype(np.float64), -1, dtype)
    assert_same(vg.vecdot(put(device, a), put(device, b)), expected)
    assert_same(vg.vecdot(put(device, b), put(device, a), axis=-1), expected)
    if dtype not in helpers.HALVES:
        assert_same(np.vecdot(a, b), expected)
    out = put(device, np.ones((*expected.shape, 2), dtype))[..., 1]
    assert vg.vecdot(put(device, a), put(device, b), out=out) is out
    assert_same(out, expected)


def test_vecdot_of_as_many_dimensions_as_there_can_be(device, rng):
    a = helpers.integers(rng, (2, 3, *(1,) * 28, 4, 5), np.dtype(np.float32))
    b = helpers.integers(rng, (2, 1, *(1,) * 27, 6, 1, 5), np.dtype(np.float32))
    row = b[(0,) * 31]
    for x, y in ((a, b), (b, a), (a, row), (row, b)):
        assert_same(vg.vecdot(put(device, x), put(device, y)), np.sum(x * y, axis=-1))
    with helpers.refused(device, ValueError):
        vg.vecdot(put(device, a), put(device, np.concatenate([b, b], axis=1)))


@pytest.mark.devices("sim", "cuda")
def test_rows_in_memory_are_multiplied_where_they_lie(device, rng):
    """In one launch; those along another axis are copied first, each operand by another."""
    a, b = (helpers.integers(rng, (6, 40), np.dtype(np.float32)) for _ in range(2))
    one = helpers.integers(rng, (6, 1), np.dtype(np.float32))

    def launches(make, x, y):
        x, y = make(x), make(y)
        before = products.launches(device)
        vg.vecdot(x, y)
        return products.launches(device) - before

    def apart(x):
        return put(device, np.concatenate([x, x], axis=-1))[..., : x.shape[-1]]

    lying, across = functools.partial(put, device), functools.partial(helpers.transposed, device)
    for make, expected in ((lying, 1), (apart, 1), (across, 3)):
        assert launches(make, a, b) == expected
        assert launches(make, a[0], b) == (2 if make is across else 1)
    for make in (lying, across, apart, functools.partial(helpers.stepped, device)):
        assert launches(make, one, one) == 1, "an axis of one has any stride"


def test_vecdot_along_any_axis(device, rng):
    a, b = (helpers.integers(rng, (3, 4, 5), np.dtype(np.float32)) for _ in range(2))
    for axis in (-3, -2, -1, 0, 1, 2):
        expected = np.sum(a * b, axis=axis)
        for make in (put, helpers.transposed, helpers.stepped):
            assert_same(vg.vecdot(make(device, a), make(device, b), axis=axis), expected, f"{axis}")
    row = helpers.integers(rng, (4, 1), np.dtype(np.float32))
    assert_same(vg.vecdot(put(device, a), put(device, row), axis=-2), np.sum(a * row, axis=-2))
    mixed = vg.vecdot(put(device, a), put(device, row.astype(np.int32)), axis=-2)
    assert_same(mixed, np.sum(a * row, axis=-2).astype(np.float64))


def test_vecdot_of_numpy(device, rng):
    a, b = (helpers.integers(rng, (3, 5), np.dtype(np.float32)) for _ in range(2))
    result = vg.vecdot(a, b, device=device)
    assert type(result) is np.ndarray
    assert_same(result, np.sum(a * b, axis=-1))
    assert isinstance(vg.vecdot(a[0], b[0], device=device), np.float32)
    out = np.zeros(3, np.float32)
    assert vg.vecdot(a, b, out=out, device=device) is out
    assert_same(out, np.sum(a * b, axis=-1))
    assert isinstance(vg.vecdot(put(device, a), b), vg.Array)


def test_vecdot_refuses(device):
    x, y = put(device, np.ones((2, 3), np.float32)), put(device, np.ones(3, np.float32))
    scalar = put(device, np.ones((), np.float32))
    for arrays, options, error in (
        ((x, x[:, :2]), {}, ValueError),
        ((x, vg.ones((4, 3), device=device)), {}, ValueError),
        ((x, y), {"axis": 0}, ValueError),
        ((x, y), {"axis": -2}, np.exceptions.AxisError),
        ((x, x), {"axis": 2}, np.exceptions.AxisError),
        ((scalar, scalar), {}, np.exceptions.AxisError),
        ((x, x), {"axis": 1.0}, TypeError),
        ((x, x), {"axis": None}, TypeError),
        ((x, 2.0), {}, TypeError),
        ((x, x), {"precision": "half"}, ValueError),
        ((x, x), {"out": vg.ones(3, device=device)}, ValueError),
        ((x, x), {"out": vg.ones(2, dtype="int32", device=device)}, TypeError),
    ):
        with helpers.refused(device, error, *arrays):
            vg.vecdot(*arrays, **options)


AXES = [
    ((3, 4, 5), (4, 5, 2), 2),
    ((3, 4, 5), (5, 2), 1),
    ((3, 2), (4,), 0),
    ((4, 5), (4, 5), 2),
    ((3, 4, 5), (4, 3, 2), ([1, 0], [0, 1])),
    ((3, 4, 5), (4, 3, 2), ((0, -2), (1, 0))),
    ((3, 4, 5), (2, 5, 4), ([-1], [1])),
    ((3, 4, 5), (2, 4), (1, 1)),
    ((3, 4, 5), (4, 2), [1, 0]),
    ((2, 3), (4, 5), ([], [])),
    ((0, 3), (3, 2), 1),
    ((2, 0), (0, 3), 1),
    ((2, 3), (3, 0), 1),
    ((), (2, 3), 0),
    ((), (), 0),
]


@pytest.mark.parametrize("shapes", AXES, ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int32", "float16", "bfloat16", "float32", "float64"])
def test_tensordot(device, rng, shapes, dtype):
    dtype = helpers.BFLOAT16 if dtype == "bfloat16" else np.dtype(dtype)
    if dtype is None:
        pytest.skip("no ml_dtypes")
    *shapes, axes = shapes
    a, b = (helpers.integers(rng, shape, dtype) for shape in shapes)
    if a.ndim == b.ndim == 0:  # the zero of one product has a sign, and that of a sum has none
        a, b = (np.where(x == 0, np.ones_like(x), x).astype(dtype) for x in (a, b))
    exact = np.tensordot(a.astype(np.float64), b.astype(np.float64), axes)
    expected = exact > 0 if dtype.kind == "b" else helpers.rounded(exact, dtype)
    assert_same(vg.tensordot(put(device, a), put(device, b), axes=axes), expected)
    for make in (helpers.transposed, helpers.stepped):
        x, y = (make(device, one) if one.ndim else put(device, one) for one in (a, b))
        assert_same(vg.tensordot(x, y, axes=axes), expected)
    out = put(device, np.ones((*expected.shape, 2), dtype))[..., 1]
    assert vg.tensordot(put(device, a), put(device, b), axes=axes, out=out) is out
    assert_same(out, expected)


def test_tensordot_of_numpy(device, rng):
    a, b = (helpers.integers(rng, s, np.dtype(np.float32)) for s in ((3, 4, 5), (4, 5, 2)))
    result = vg.tensordot(a, b, device=device)
    assert type(result) is np.ndarray
    assert_same(result, np.tensordot(a, b))
    out = np.zeros((3, 2))
    assert vg.tensordot(a, b, out=out, device=device) is out
    assert_same(out, np.tensordot(a, b).astype(np.float64))
    assert_same(vg.tensordot(put(device, a), b, axes=np.int64(2)), np.tensordot(a, b))


def test_tensordot_refuses(device):
    x = put(device, np.ones((2, 3), np.float32))
    for other, options, error in (
        (x, {}, None),
        (x, {"axes": 1}, ValueError),
        (x, {"axes": 3}, ValueError),
        (x, {"axes": -1}, ValueError),
        (x, {"axes": ([0, 1], [0])}, ValueError),
        (x, {"axes": ([0, 0], [0, 0])}, ValueError),
        (x, {"axes": ([0],)}, ValueError),
        (x, {"axes": ([0], [1])}, ValueError),
        (x, {"axes": ([2], [0])}, np.exceptions.AxisError),
        (x, {"axes": 1.0}, TypeError),
        (x, {"axes": None}, TypeError),
        (x, {"axes": "01"}, TypeError),
        (3, {"axes": 0}, TypeError),
        (x, {"precision": "float64"}, ValueError),
        (x, {"out": vg.ones(1, device=device)}, ValueError),
    ):
        if error is None:
            assert vg.tensordot(x, other, **options).item() == 6
            continue
        with helpers.refused(device, error, x):
            vg.tensordot(x, other, **options)
