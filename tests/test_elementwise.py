"""Elementwise functions against NumPy: dtypes, layouts, sizes, scalars, broadcasting, where.

The references are in references.py. What `out=` does is in test_out.py.
"""

import itertools
import operator

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, DTYPES, FLOATS, NUMBERS, assert_close, assert_same, put, widened
from products import launches
from references import (
    ARITHMETIC,
    BINARY,
    COMPARISONS,
    DOES_FLOATS,
    FLOAT_FUNCTIONS,
    UNARY,
    assert_binary,
    binary_reference,
    lookup,
    takes,
    unary_reference,
)

import pyvecgpu as vg
from pyvecgpu.operations import ROWS


def check_unary(device, name, x, array):
    result = lookup(name)(array)
    reference = unary_reference(name, x)
    if name in FLOAT_FUNCTIONS:
        assert result.dtype == (x.dtype if helpers.is_float(x.dtype) else np.float32)
        assert_close(result, reference, name, device, f"of {x.dtype} {x.shape}")
    else:
        assert_same(result, reference, f"{name} of {x.dtype} {x.shape}")


# ---- One operand ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary_over_sizes_and_layouts(device, rng, name, dtype):
    if not takes(name, dtype):
        with helpers.refused(device, TypeError, match=name):
            lookup(name)(put(device, np.ones(2, dtype)))
        return
    for shape in helpers.AWKWARD_SHAPES:
        x = helpers.numbers(rng, shape, dtype)
        check_unary(device, name, x, put(device, x))
    x = helpers.numbers(rng, (5, 6, 7), dtype)
    for layout in helpers.LAYOUTS:
        check_unary(device, name, x, helpers.LAYOUTS[layout](device, x))
    check_unary(device, name, helpers.specials(dtype), put(device, helpers.specials(dtype)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", [name for name in helpers.ULPS if name in UNARY])
def test_accuracy_over_the_whole_range(device, rng, name, dtype):
    """Every exponent and both signs, and densely where the functions bend or saturate."""
    n = 20_000 if device != "cuda" else 2_000_000
    info = helpers.finfo(dtype)
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    patterns = rng.integers(0, np.iinfo(unsigned).max, n, dtype=unsigned).view(dtype)
    reach = 1.01 * np.log(float(info.max))
    near_zero = rng.uniform(-1, 1, n).astype(dtype)
    dense = rng.uniform(-reach, reach, n).astype(dtype)
    near_one = (1 + rng.uniform(-0.1, 0.1, n)).astype(dtype)
    x = np.concatenate([patterns, near_zero, dense, near_one])
    check_unary(device, name, x, put(device, x))


# Where plain float32 arithmetic drops most, and CUDA's own functions are off by more than 2 ulp.
HARD = {
    "log10": [(0.33, 0.35), (1.3, 1.4)],
    "acosh": [(1, 1.1)],
    "gelu": [(-13, -5)],
    "pow": [(0.8, 0.83), (1.39, 1.42)],
    "logaddexp": [(-0.9, -0.5)],
}


@pytest.mark.parametrize("name", HARD)
def test_accuracy_where_it_is_hard(device, rng, name):
    """Within 1.8 ulp of the exact result."""
    if device == "cpu":
        pytest.skip("NumPy's functions")
    x = np.concatenate([rng.uniform(*of, 200_000) for of in HARD[name]]).astype(np.float32)
    if name in UNARY:
        result, exact = lookup(name)(put(device, x)), unary_reference(name, x)
    else:
        if name == "pow":  # results of about 2^120 and 2^-120
            y = 83 / np.log(x) * rng.choice([-1, 1], x.shape)
        else:  # the logarithm of about 1, not so close that it is found in float64
            y = np.log(
                1 + rng.choice([-1, 1], x.shape) * rng.uniform(0.009, 0.04, x.shape) - np.exp(x)
            )
        y = y.astype(np.float32)
        wide = [one.astype(np.longdouble) for one in (x, y)]
        exact = wide[0] ** wide[1] if name == "pow" else np.log(sum(map(np.exp, wide)))
        result = getattr(vg, name)(put(device, x), put(device, y))
    ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    errors = np.abs(helpers.host(result) - exact).astype(np.float64) / ulp
    assert not (errors > 1.8).any(), (errors.max(), x[errors.argmax()])


def test_all_bytes_of_uint8(device):
    x = np.arange(256, dtype=np.uint8)
    for name in UNARY:
        check_unary(device, name, x, put(device, x))


def test_operators_and_abs(device):
    x = np.array([-2, 0, 3], np.int32)
    assert_same(-put(device, x), -x)
    assert_same(abs(put(device, x)), abs(x))
    assert_same(+put(device, x), x)


# ---- Two operands --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BINARY)
def test_binary_over_pairs_of_dtypes(device, rng, name):
    for a_dtype, b_dtype in itertools.product(DTYPES, DTYPES):
        a, b = helpers.numbers(rng, 37, a_dtype), helpers.numbers(rng, 37, b_dtype)
        b[::5] = a[::5].astype(b_dtype)
        if not takes(name, a_dtype, b_dtype):
            continue
        result = getattr(vg, name)(put(device, a), put(device, b))
        assert_binary(device, name, result, a, b, f"{name} of {a_dtype} and {b_dtype}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_of_special_values(device, name, dtype):
    if not takes(name, dtype):
        with helpers.refused(device, TypeError, match=name):
            getattr(vg, name)(*[put(device, np.ones(1, dtype)) for _ in "ab"])
        return
    values = helpers.specials(dtype)
    a, b = np.meshgrid(values, values)
    result = getattr(vg, name)(put(device, a), put(device, b))
    assert_binary(device, name, result, a, b, f"{name} of {dtype}")


@pytest.mark.parametrize("name", ["add", "divide", "maximum", "less"])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_binary_over_sizes(device, rng, name, dtype):
    for n in helpers.AWKWARD_SIZES:
        a, b = helpers.numbers(rng, n, dtype), helpers.numbers(rng, n, dtype)
        result = getattr(vg, name)(put(device, a), put(device, b))
        assert_same(result, binary_reference(name, a, b), f"{name} of {n} {dtype}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["multiply", "greater_equal"])
def test_binary_over_pairs_of_layouts(device, rng, name, dtype):
    a, b = helpers.numbers(rng, (6, 9), dtype), helpers.numbers(rng, (6, 9), dtype)
    expected = binary_reference(name, a, b)
    for one, other in itertools.product(helpers.LAYOUTS, helpers.LAYOUTS):
        left, right = helpers.LAYOUTS[one](device, a), helpers.LAYOUTS[other](device, b)
        assert_same(getattr(vg, name)(left, right), expected, f"{name}, {one} and {other}")


BROADCASTS = [
    ((7, 65), (65,)),
    ((7, 65), (7, 1)),
    ((7, 1), (65,)),
    ((7, 65), ()),
    ((2, 3, 1, 5), (3, 4, 1)),
    ((0, 4), (1, 4)),
    ((1, 1), (3, 0)),
    ((2, 1, 2, 1, 2, 1, 2, 3), (2, 2, 1, 2, 1, 1, 2, 1)),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_binary_broadcasts(device, rng, shapes, dtype):
    a, b = (helpers.numbers(rng, shape, dtype) for shape in shapes)
    for x, y in ((a, b), (b, a)):
        for name in ("add", "less"):
            result = getattr(vg, name)(put(device, x), put(device, y))
            assert_same(result, binary_reference(name, x, y), name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_eight_strided_dimensions(device, rng, dtype):
    whole = helpers.numbers(rng, (3, 2, 4, 2, 3, 2, 4, 3), dtype)
    keys = (slice(None, None, 2), ..., slice(None, None, -1), slice(1, 4, 2), slice(None, None, 2))
    view = whole[keys].transpose(7, 0, 6, 1, 5, 2, 4, 3)
    array = vg.permute_dims(put(device, whole)[keys], (7, 0, 6, 1, 5, 2, 4, 3))
    assert_same(array, view)
    assert_same(array + array, view + view)
    assert_same(array == put(device, np.ascontiguousarray(view)), view == view)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    ("dtype", "stored", "straightened"),
    [
        ("float32", (768, 1024), False),
        ("complex128", (768, 1024), False),
        ("float16", (768, 1024), True),  # lines 2 KiB apart
        ("float16", (1600, 512), True),
        ("float16", (767, 1024), False),  # too little
        ("int16", (786, 1001), False),
        ("uint8", (1000, 1000), True),
        ("bool", (1000, 1001), False),
        ("float32", (1 << 17, 16), False),
        ("float32", ((1 << 17) + 1, 16), True),  # a sector is long gone when its rest is read
        ("float32", ((1 << 17) + 1, 15), False),
        ("float32", (4, 1 << 16, 16), False),
    ],
)
def test_what_is_straightened(device, rng, dtype, stored, straightened):
    """A transposed operand, where the caches would not keep what is read of it; by its launches."""
    a, b = (helpers.numbers(rng, stored, np.dtype(dtype)) for _ in range(2))
    left, right = put(device, a).mT, put(device, np.ascontiguousarray(b.swapaxes(-1, -2)))
    before = launches(device)
    found = left == right
    assert launches(device) - before == 1 + straightened
    assert_same(found, a.swapaxes(-1, -2) == b.swapaxes(-1, -2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_transposed_operands(device, rng, dtype):
    a, b = helpers.numbers(rng, (300, 250), dtype), helpers.numbers(rng, (250, 300), dtype)
    left, right = put(device, a).T, put(device, b)
    assert_same(left * right, a.T * b)
    assert_same(left < right, b > a.T)
    assert_same(vg.abs(left), np.abs(a.T))
    assert_same(vg.where(right == right, left, right), np.where(b == b, a.T, b))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_of_every_width(device, rng, dtype):
    """Rows whose vectors are not aligned, and those of small steps, narrow ones and others."""
    for width in (*range(1, 20), 31, 38, 63, 64, 65, 127, 130, 255, 257, 515):
        a = helpers.numbers(rng, (23, width + 2), dtype)
        b, column = a[::-1, 2:], helpers.numbers(rng, (23, 1), dtype)
        first, second, one = put(device, a), put(device, b), put(device, column)
        for left, right, x, y in (
            (first[::-1, 2:], second, b, b),
            (first[1:, 1:-1], first[:-1, 2:], a[1:, 1:-1], a[:-1, 2:]),
            (first[::2, ::2], one[::2], a[::2, ::2], column[::2]),
            (first[:, ::-1], one, a[:, ::-1], column),
        ):
            assert_same(left * right, x * y, f"{width}")
            assert_same(left < right, x < y, f"{width}")
            out = put(device, np.ascontiguousarray(a))[: len(x), ::-1][:, : x.shape[1]]
            vg.multiply(left, right, out=out)
            assert_same(out, x * y, f"{width}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operands_that_are_one_array(device, rng, dtype):
    x = helpers.numbers(rng, 1025, dtype)
    array = put(device, x)
    assert_same(array * array, x * x)
    assert_same(array[1:] * array[:-1], x[1:] * x[:-1])


def test_python_operators(device):
    a, b = np.array([5.0, -2.0, 0.5], np.float32), np.array([2.0, 3.0, 0.5], np.float32)
    x, y = put(device, a), put(device, b)
    pairs = [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b),
        (x == y, a == b), (x != y, a != b), (x < y, a < b), (x <= y, a <= b),
        (x > y, a > b), (x >= y, a >= b), (2 - x, 2 - a), (1 / x, 1 / a), (x - 2, a - 2),
        (x > 2.5, a > 2.5), (x @ y, (a * b).sum(dtype=np.float32)), (3 * x, 3 * a),
    ]  # fmt: skip
    for result, expected in pairs:
        assert_same(result, expected)


def test_in_place_operators_keep_the_array(device):
    a = np.arange(5, dtype=np.float64)
    x = put(device, a)
    same = x
    x += 1
    x *= put(device, a)
    x -= 2.0
    x /= 4
    assert same is x
    assert_same(x, ((a + 1) * a - 2) / 4)


# ---- Weak scalars --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_weak_scalars_on_both_sides(device, rng, name, dtype):
    x = helpers.numbers(rng, 67, dtype)
    array = put(device, x)
    for scalar in (True, 3, 0, 2.5):
        weak = dtype if helpers.is_float(dtype) else np.result_type(dtype, scalar)
        if isinstance(scalar, float) and not helpers.is_float(dtype):
            weak = np.dtype(np.float32)  # the default float, not NumPy's float64
        if not takes(name, weak):
            with helpers.refused(device, TypeError, array, match=name):
                getattr(vg, name)(array, scalar)
            continue
        floats = DOES_FLOATS[name] and not helpers.is_float(weak)
        target = np.dtype(np.float32) if floats else weak
        converted, value = x.astype(target), np.full(x.shape, scalar).astype(target)
        right = getattr(vg, name)(array, scalar)
        assert_binary(device, name, right, converted, value, f"{name} {dtype}, {scalar}")
        left = getattr(vg, name)(scalar, array)
        assert_binary(device, name, left, value, converted, f"{name} {scalar}, {dtype}")


@pytest.mark.parametrize("dtype", helpers.INTEGERS, ids=str)
def test_integer_scalars_out_of_range(device, dtype):
    info = np.iinfo(dtype)
    array = put(device, np.array([info.min, 1, info.max], dtype))
    for scalar in (info.max + 1, info.min - 1, 10**30, -(10**30)):
        for name in ARITHMETIC:
            if DOES_FLOATS[name]:
                continue
            with helpers.refused(device, OverflowError, array, match=str(scalar)):
                getattr(vg, name)(array, scalar)
        for name in COMPARISONS:
            if name.startswith("logical"):  # any number is true but 0
                expected = getattr(np, name)(array.numpy(), True)
                assert_same(getattr(vg, name)(array, scalar), expected, f"{name} {scalar}")
                continue
            right = name == "not_equal" or name.startswith("less" if scalar > 0 else "greater")
            left = name == "not_equal" or name.startswith("less" if scalar < 0 else "greater")
            assert_same(getattr(vg, name)(array, scalar), np.full(3, right), f"{name} {scalar}")
            assert_same(getattr(vg, name)(scalar, array), np.full(3, left), f"{scalar} {name}")


@pytest.mark.parametrize("dtype", [np.dtype(bool), *helpers.INTEGERS], ids=str)
def test_comparisons_with_any_integer(device, dtype):
    """On both sides, also with integers that C cannot be given: as Python compares them."""
    x = np.array([0, 1], bool) if dtype.kind == "b" else helpers.specials(dtype)
    array, items = put(device, x), x.tolist()
    ends = [2**bits + step for bits in (7, 8, 15, 16, 31, 32, 63, 64, 100) for step in (-1, 0, 1)]
    for scalar in [*ends, *[-end for end in ends], 0, 1, 10**300, -(10**300)]:
        for symbol in ("eq", "ne", "lt", "le", "gt", "ge"):
            compare = getattr(operator, symbol)
            expected = np.array([compare(item, scalar) for item in items])
            assert_same(compare(array, scalar), expected, f"array {symbol} {scalar}")
            expected = np.array([compare(scalar, item) for item in items])
            assert_same(compare(scalar, array), expected, f"{scalar} {symbol} array")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_scalars_beside_floats_round_once(device, dtype):
    x = np.array([1.0, -0.0, np.inf], dtype)
    array = put(device, x)
    for scalar in (0.1, 1e300, -1e-310, float("nan"), float("inf"), 2**63 + 2**11, 2**24 + 1, -0.0):
        with np.errstate(all="ignore"):
            factor = helpers.rounded(scalar, dtype)
            assert_same(array * scalar, binary_reference("multiply", x, factor), repr(scalar))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scalars_beside_strided_arrays(device, rng, dtype):
    x = helpers.numbers(rng, (5, 9), dtype)
    for name, make in helpers.LAYOUTS.items():
        assert_same(make(device, x) * True, x * True, name)
        assert_same(1 * make(device, x), 1 * x, name)


# ---- where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where_over_layouts(device, rng, dtype):
    for shape in ((0,), (), (33,), (1025,), (6, 9)):
        mask = rng.integers(0, 2, shape).astype(bool)
        a, b = helpers.numbers(rng, shape, dtype), helpers.numbers(rng, shape, dtype)
        for name in helpers.layouts(mask):
            make = helpers.LAYOUTS[name]
            assert_same(
                vg.where(make(device, mask), put(device, a), put(device, b)), np.where(mask, a, b)
            )
            assert_same(
                vg.where(put(device, mask), make(device, a), make(device, b)), np.where(mask, a, b)
            )


def test_where_promotes_and_broadcasts(device, rng):
    mask = rng.integers(0, 2, (4, 1, 5)).astype(bool)
    for a_dtype, b_dtype in itertools.product(DTYPES, DTYPES):
        a, b = helpers.numbers(rng, (3, 1), a_dtype), helpers.numbers(rng, 5, b_dtype)
        result = vg.where(put(device, mask), put(device, a), put(device, b))
        dtype = helpers.result_type(a_dtype, b_dtype)
        a, b = (x if x.dtype == dtype else helpers.rounded(widened(x), dtype) for x in (a, b))
        assert_same(result, np.where(mask, a, b), f"{a_dtype}, {b_dtype}")


def test_where_with_scalars(device):
    mask = np.array([True, False, True])
    m = put(device, mask)
    x = np.array([1, 2, 3], np.int32)
    assert_same(vg.where(m, put(device, x), 7), np.where(mask, x, np.int32(7)))
    assert_same(vg.where(m, 7, put(device, x)), np.where(mask, np.int32(7), x))
    assert_same(
        vg.where(m, put(device, x), 0.5), np.where(mask, x.astype(np.float32), np.float32(0.5))
    )
    assert_same(vg.where(m, 1.5, 0), np.where(mask, np.float32(1.5), np.float32(0)))
    assert_same(vg.where(m, 1, 0), np.where(mask, 1, 0))


def test_where_needs_a_bool_condition(device):
    x = put(device, np.array([1, 2], np.int32))
    with helpers.refused(device, TypeError, x, match=r"where.*bool"):
        vg.where(x, x, x)


# ---- Who computes --------------------------------------------------------------------------------


def test_numpy_in_numpy_out(device):
    a, b = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)
    result = vg.add(a, b, device=device)
    assert type(result) is np.ndarray
    assert_same(result, a + b)
    assert isinstance(vg.add(put(device, a), b), vg.Array)
    assert isinstance(a + put(device, b), vg.Array)
    assert_same(a - put(device, b), a - b)
    assert_same(np.float32(2) * put(device, b), np.float32(2) * b)


def test_shapes_that_do_not_broadcast(device):
    a, b = put(device, np.zeros((2, 3), np.int32)), put(device, np.zeros(4, np.int32))
    for name in BINARY:
        with helpers.refused(device, ValueError, a, b, match=rf"{name}.*\(2, 3\).*\(4,\)"):
            getattr(vg, name)(a, b)
    with helpers.refused(device, ValueError, a, b, match=r"where"):
        vg.where(put(device, np.array([True, False])), a, b)


def test_operands_of_foreign_types(device):
    x = put(device, np.zeros(2, np.float32))
    for foreign in ("12", None, {}, ["1", "2"]):
        with helpers.refused(device, TypeError, x):
            vg.add(x, foreign)
        with helpers.refused(device, TypeError, x):
            x + foreign


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in ROWS if r.family != "other"])
def test_scalars_alone(device, row):
    """The first is what asarray makes of it, on the default device or on that of `out`."""
    operands = {"binary": (2.0, 3)}.get(row.family, (True,))
    function, out = lookup(row.name), put(device, np.full((), 7, np.float64))
    on_device = (put(device, vg.asarray(operands[0], device="cpu").numpy()), *operands[1:])
    for others in ({}, {"device": device}):
        try:
            expected = function(*on_device)
        except TypeError:
            with pytest.raises(TypeError):
                function(*operands, **others)
            return
        found = function(*operands, **others)
        assert isinstance(found, vg.Array) and found.shape == ()
        assert found.device == (expected.device if others else vg.asarray(0).device)
        assert found.dtype == expected.dtype
        if others:
            assert_same(found, expected.numpy())
    if not np.can_cast(expected.dtype, np.float64, "same_kind"):
        return
    assert function(*operands, out=out) is out
    assert_same(out, expected.numpy().astype(np.float64))


# ---- Whether elements are other than 0, and bits -------------------------------------------------


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical_functions(device, rng, name):
    ours, numpys = getattr(vg, name), getattr(np, name)
    for dtype in DTYPES:
        a, b = (helpers.integers(rng, 50, dtype, 0, 2) for _ in range(2))
        if helpers.is_float(a.dtype):
            a[:3] = np.array([np.nan, -0.0, np.inf]).astype(a.dtype)
        x, y = put(device, a), put(device, b)
        wide_a, wide_b = helpers.widened(a), helpers.widened(b)
        assert_same(ours(x, y), numpys(wide_a, wide_b))
        for scalar in (0, 2, 2.5, True, 10**30, float("nan")):
            assert_same(ours(x, scalar), numpys(wide_a, bool(scalar)))
            assert_same(ours(scalar, y), numpys(bool(scalar), wide_b))
        assert_same(vg.logical_not(x), np.logical_not(wide_a))


def test_operators_of_bits(device, rng):
    for dtype in ("bool", "uint8", "int8", "int64", "uint64"):
        a, b = (helpers.integers(rng, 50, np.dtype(dtype), 0, 2) for _ in range(2))
        x, y = put(device, a), put(device, b)
        for result, expected in (
            (x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x & 1, a & 1),
            (1 | y, 1 | b), (True ^ x, True ^ a),
        ):  # fmt: skip
            assert_same(result, expected)
        x &= y
        assert_same(x, a & b)
        x |= 1 if dtype != "bool" else True
        assert_same(x, (a & b) | np.array(1, dtype))
        x ^= x
        assert_same(x, np.zeros_like(a))
    with helpers.refused(device, TypeError, match="bitwise_and"):
        put(device, np.ones(2, np.float32)) & 1


def test_round(device):
    x = put(device, np.array([0.5, 1.5, -2.5, 2.4, -0.4], np.float32))
    assert_same(round(x), np.array([0, 2, -2, 2, -0.0], np.float32))
    assert_same(vg.round(x, 0), round(x).numpy())
    with helpers.refused(device, TypeError, x, match="decimals"):
        vg.round(x, 2.5)


# ---- Blocks of vectors ---------------------------------------------------------------------------

BLOCK = 128 * 16  # bytes of the widest operand


def lengths(dtype):
    """Lengths at whose end a block has vectors for all threads, or one element more or less."""
    block = BLOCK // np.dtype(dtype).itemsize
    return (block - 1, block, block + 1, 3 * block, 3 * block + 5)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_whole_blocks(device, rng, dtype):
    """Every operand an array, a number or one element, on addresses for vectors or beside them."""
    for n in lengths(dtype):
        x, y = (helpers.integers(rng, (n + 1,), dtype, 0, 2) for _ in range(2))
        a, b = put(device, x), put(device, y)
        for first, second in ((0, 0), (0, 1), (1, 0), (1, 1)):
            p, q = x[first : n + first], y[second : n + second]
            c, d = a[first : n + first], b[second : n + second]
            assert_same(c * d, (p * q).astype(dtype))
            assert_same(c == d, p == q)
            assert_same(vg.logical_xor(c, d), np.logical_xor(p, q))
            assert_same(c * d[:1], (p * q[:1]).astype(dtype))
            assert_same(d[0] != c, q[0] != p)
            assert_same(vg.where(c == d, c, d[3]), np.where(p == q, p, q[3]))
            assert_same(c == True, p == 1)  # noqa: E712
            other = "complex128" if p.dtype.kind == "c" else "float32"
            assert_same(vg.astype(c, other), p.astype(other))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool"])
def test_comparisons_of_all_bytes(device, dtype):
    """Four bytes are compared at a time, beside each of all others."""
    values = np.arange(2 if dtype == "bool" else 256).astype(dtype)
    x, y = (one.reshape(-1) for one in np.meshgrid(values, values))
    x, y = np.tile(x, 1 + 4096 // x.size), np.tile(y, 1 + 4096 // y.size)
    a, b = put(device, x), put(device, y)
    names = ("equal", "not_equal", "logical_and", "logical_or", "logical_xor")
    names += () if dtype == "bool" else ("less", "less_equal", "greater", "greater_equal")
    for name in names:
        ours, numpys = getattr(vg, name), getattr(np, name)
        assert_same(ours(a, b), numpys(x, y), name)
        assert_same(ours(a[1:], b[:-1]), numpys(x[1:], y[:-1]), name)
        assert_same(ours(a[::3], b[::3]), numpys(x[::3], y[::3]), name)
        for one in values[:: 1 if dtype == "bool" else 51].tolist():
            assert_same(ours(a, one), numpys(x, one), f"{name} {one}")
            assert_same(ours(one, b), numpys(one, y), f"{name} {one}")
    assert_same(vg.logical_not(a), np.logical_not(x))
