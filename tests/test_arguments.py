"""Unusual arguments against NumPy: scalars at the ends of each dtype, bools and NumPy's integers
where integers are asked for, byte-swapped operands, and arrays without axes or with one element."""

import helpers
import numpy as np
import pytest
from helpers import DTYPES, assert_same, put
from references import (
    ARITHMETIC,
    BINARY,
    COMPARISONS,
    DOES_FLOATS,
    UNARY,
    assert_binary,
    lookup,
    takes,
)

import pyvecgpu as vg
from pyvecgpu.operations import ROWS

REDUCTIONS = [row.name for row in ROWS if row.family == "reduce"]
F32 = np.dtype(np.float32)


def ends(dtype):
    """Python scalars at the ends of a dtype, at those of 64 bits, and just beyond them."""
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = {info.min, info.max, info.min + 1, info.max - 1}
        beyond = {
            info.min - 1,
            info.max + 1,
            -(2**63) - 1,
            2**63,
            2**64 - 1,
            2**64,
            2**80,
            -(2**80),
        }
        return sorted(near | beyond)
    info = helpers.finfo(dtype)
    finite = [float(x) for x in (info.max, info.tiny, info.smallest_subnormal)]
    return [*finite, *(-x for x in finite), 0.0, -0.0, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_scalars_at_the_ends_of_a_dtype(device, name, dtype):
    """On both sides. An integer that does not fit is refused, but compared and divided by."""
    if not takes(name, dtype):
        return
    function, values = lookup(name), helpers.specials(dtype)
    x = put(device, values)
    for scalar in ends(dtype):
        fits = dtype.kind not in "iu" or np.iinfo(dtype).min <= scalar <= np.iinfo(dtype).max
        for swap in (False, True):
            call = (scalar, x) if swap else (x, scalar)
            if fits:
                sides = values, np.full((), scalar, dtype)
                sides = sides[:: -1 if swap else 1]
                assert_binary(device, name, function(*call), *sides)
            elif name in COMPARISONS:
                sides = values.astype(object), scalar
                if name.startswith("logical"):  # NumPy's of objects are Python's
                    sides = values, True
                expected = getattr(np, name)(*sides[:: -1 if swap else 1]).astype(bool)
                assert_same(function(*call), expected, f"{scalar}")
            elif DOES_FLOATS[name]:
                sides = (values.astype(np.float32), np.float32(scalar))[:: -1 if swap else 1]
                assert_binary(device, name, function(*call), *sides, f"{scalar}")
            else:
                with helpers.refused(device, OverflowError, x):
                    function(*call)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ends_of_a_dtype_that_are_assigned(device, dtype):
    for scalar in ends(dtype):
        array = vg.zeros(3, dtype=dtype, device=device)
        fits = dtype.kind not in "iu" or np.iinfo(dtype).min <= scalar <= np.iinfo(dtype).max
        calls = {
            "assignment": lambda scalar=scalar, array=array: array.__setitem__(1, scalar),
            "full": lambda scalar=scalar: vg.full(3, scalar, dtype=dtype, device=device),
            "asarray": lambda scalar=scalar: vg.asarray([scalar], dtype=dtype, device=device),
            "where": lambda scalar=scalar, array=array: vg.where(array == array, array, scalar),
        }
        for name, call in calls.items():
            if fits:
                call()
            else:
                with helpers.refused(device, OverflowError, array):
                    call()
            if fits and name in ("full", "asarray"):
                assert_same(call()[0], np.full((), scalar, dtype), name)
        if fits:
            assert_same(array, np.array([0, scalar, 0], dtype))


# Integers as arguments ----------------------------------------------------------------------------


def integers_like(value):
    """The same integer in all that holds one: NumPy's types in either byte order."""
    for code in "bhilqBHILQ":
        yield np.dtype(code).type(value)
        yield np.array(value, code)
        yield np.array(value, np.dtype(code).newbyteorder())


@pytest.mark.parametrize("value", [0, 1])
def test_integers_of_any_type(device, value):
    """As index, in slices, axes, shapes and diagonals; also an Array of no axes."""
    x = helpers.integers(np.random.default_rng(1), (3, 4, 5), F32)
    array = put(device, x)
    for one in [*integers_like(value), put(device, value)]:
        assert_same(array[one], x[value])
        assert_same(array[one, ..., one], x[value, ..., value])
        assert_same(array[one:], x[value:])
        assert_same(array[..., one :: one + 1], x[..., value :: value + 1])
        assert_same(vg.sum(array, axis=one), x.sum(axis=value))
        assert_same(vg.max(array, axis=(one, 2)), x.max(axis=(value, 2)))
        assert_same(vg.permute_dims(array, (one, 1 - value, 2)), x.transpose(value, 1 - value, 2))
        assert_same(vg.expand_dims(array, axis=one), np.expand_dims(x, value))
        assert_same(vg.tril(array, one), np.tril(x, value))
        assert vg.zeros((one, 3), device=device).shape == (value, 3)
        assert vg.zeros(one, device=device).shape == (value,)
        assert vg.broadcast_to(array[:1], (one + 1, 4, 5)[-3:]).shape == (value + 1, 4, 5)
        array[one] = x[value]
    assert_same(array, x)


@pytest.mark.parametrize(
    "one",
    [True, np.True_, np.array(True), np.array([1]), np.array([[1]]), 1.0, np.float32(1), "1", None],
    ids=repr,
)
def test_what_is_no_integer(device, one):
    """Bools, floats and arrays with axes are refused where an integer is asked for."""
    array = put(device, np.zeros((2, 3, 4), np.float32))
    calls = {
        "axis": lambda: vg.argmax(array, axis=one),
        "axes": lambda: vg.sum(array, axis=(0, one)),
        "expand_dims": lambda: vg.expand_dims(array, axis=one),
        "permute_dims": lambda: vg.permute_dims(array, (0, one, 2)),
        "shape": lambda: vg.zeros((2, one), device=device),
        "reshape": lambda: array.reshape(24, one),
        "diagonal": lambda: vg.tril(array, one),
    }
    for name, call in calls.items():
        if name == "axis" and one is None:
            continue  # all axes
        with helpers.refused(device, TypeError, array):
            call()
    if isinstance(one, (float, np.floating, str)):  # bools and arrays of integers are indices
        with helpers.refused(device, IndexError, array):
            array[one]
        with helpers.refused(device, IndexError, array):
            array[one] = 0


# Operands -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d.itemsize > 1 and d.kind in "iuf"], ids=str
)
def test_byte_swapped_operands(device, rng, dtype):
    """NumPy's arrays of the other byte order, as operands, as `out` and as values."""
    x, y = (helpers.integers(rng, (5, 7), dtype) for _ in range(2))
    swapped = [a.astype(dtype.newbyteorder()) for a in (x, y)]
    for name in [name for name in ARITHMETIC if takes(name, dtype)]:
        function = lookup(name)
        expected = helpers.host(function(put(device, x), put(device, y)))
        assert_same(function(*swapped, device=device), expected)
        assert_same(function(put(device, x), swapped[1]), expected)
        out = np.zeros((5, 7), expected.dtype.newbyteorder())
        assert function(*swapped, out=out, device=device) is out
        assert_same(out.astype(expected.dtype), expected)
    array = put(device, swapped[0])
    assert array.dtype == dtype
    array[1:3] = swapped[1][1:3]
    array[4] = swapped[1][0, 0]
    x[1:3], x[4] = y[1:3], y[0, 0]
    assert_same(array, x)
    product = helpers.host(put(device, x) @ put(device, y.T))
    assert_same(vg.matmul(put(device, x), swapped[1].T), product)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
def test_arrays_of_one_element(device, rng, shape, dtype):
    """NumPy's shapes and dtypes of every operation, beside arrays of all these shapes."""
    x = helpers.integers(rng, shape, dtype, 1, 3)
    array = put(device, x)
    for name in UNARY:
        if takes(name, dtype):
            assert helpers.host(lookup(name)(array)).shape == shape
    for name in BINARY:
        if not takes(name, dtype):
            continue
        for other_shape in ((), (1,), (3,), (2, 1)):
            y = helpers.integers(rng, other_shape, dtype, 1, 3)
            for sides in ((x, y), (y, x)):
                result = lookup(name)(*(put(device, side) for side in sides))
                assert_binary(device, name, result, *sides)
    for name in REDUCTIONS:
        for axis in (None, *range(-len(shape), len(shape))):
            for keepdims in (False, True):
                result = lookup(name)(array, axis=axis, keepdims=keepdims)
                expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
                assert helpers.host(result).shape == np.shape(expected), name
                assert float(result.reshape(()).item()) == float(np.reshape(expected, ()))
    with helpers.refused(device, np.exceptions.AxisError, array):
        vg.sum(array, axis=len(shape))
