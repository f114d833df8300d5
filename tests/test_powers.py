"""Powers, division with a remainder, shifts, logaddexp: operators, and what the edges give."""

import operator

import helpers
import numpy as np
import pytest
from helpers import FLOATS, INTEGERS, assert_same, put
from references import assert_binary, binary_reference

import pyvecgpu as vg

SIGNED = [dtype for dtype in INTEGERS if dtype.kind == "i"]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_divided_by_zero_and_at_their_ends(device, dtype):
    values = helpers.specials(dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        quotient, rest = np.floor_divide(a, b), np.remainder(a, b)
    assert (b == 0).any() and not quotient[b == 0].any() and not rest[b == 0].any()
    x, y = put(device, a), put(device, b)
    assert_same(x // y, quotient)
    assert_same(x % y, rest)
    for result, expected in zip(divmod(x, y), (quotient, rest), strict=True):
        assert_same(result, expected)
    for result, expected in zip(vg.divmod(x, 3), (a // 3, a % 3), strict=True):
        assert_same(result, expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_divided_as_python_divides(device, dtype):
    values = np.array([-7.5, -1, -0.25, -0.0, 0.0, 0.5, 1, 3, 1000], dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values[values != 0]))
    quotient = [float(p) // float(q) for p, q in zip(a, b, strict=True)]
    rest = [float(p) % float(q) for p, q in zip(a, b, strict=True)]
    x, y = put(device, a), put(device, b)
    assert_same(x // y, np.array(quotient, np.float64).astype(dtype))
    assert_same(x % y, np.array(rest, np.float64).astype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_quotients_of_small_integers(device, rng, dtype):
    """All pairs of 8 bits; of 16 bits those around multiples, and drawn ones."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        a, b = np.meshgrid(*[np.arange(info.min, info.max + 1)] * 2)
    else:
        b = rng.integers(info.min, info.max + 1, (7, 9000))
        b[1] = rng.integers(1, 300, 9000)
        a = rng.integers(info.min, info.max + 1, b.shape) // b.clip(1) * b
        a += np.array([-1, 0, 1, 0, 1, -1, 0])[:, None]
        a[-1], a[0, :3], b[0, :3] = rng.integers(info.min, info.max + 1, 9000), info.min, -1
    a, b = a.astype(dtype), b.astype(dtype)  # wraps
    with np.errstate(all="ignore"):
        whole, rest = a // b, a % b
    assert_same(put(device, a) // put(device, b), whole)
    assert_same(put(device, a) % put(device, b), rest)
    for by in (1, 3, 100):
        assert_same(put(device, a) // by, a // np.array(by, dtype))
    x, y = put(device, a)[:, 1::2], put(device, b)[:, 1::2]
    assert_same(x // y, whole[:, 1::2])
    assert_same(x % y, rest[:, 1::2])


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_quotients_of_large_integers(device, rng, dtype):
    """Of 32 bits and more, on either side, and around multiples."""
    info = np.iinfo(dtype)
    magnitudes = (2 ** rng.uniform(0, 63, (4, 3000))).astype(np.int64)
    b = magnitudes[0]
    a = np.stack([magnitudes[1], magnitudes[2] // b * b, magnitudes[3] // b * b + b // 2])
    a = np.concatenate([a, a[1:2] - 1, [np.full(3000, 2**32), np.full(3000, 2**32 - 1)]])
    signs = (1,) if info.min == 0 else (1, -1)
    for sign, other in [(p, q) for p in signs for q in signs]:
        x, y = (sign * a).astype(dtype), np.broadcast_to((other * b).astype(dtype), a.shape)
        assert_same(put(device, x) // put(device, y), x // y)
        assert_same(put(device, x) % put(device, y), x % y)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_powers_by_one_number(device, rng, dtype):
    x = helpers.integers(rng, (3, 700), dtype)
    if dtype.kind in "iu":
        x.reshape(-1)[:5] = helpers.specials(dtype)[:5]
    exponents = (0, 1, 2, 3, 4, 7, 64, 100) if dtype.kind in "iu" else (2, 3, 2.0, 3.0)
    for exponent in exponents:
        for array, values in ((put(device, x), x), (put(device, x)[:, 1::2], x[:, 1::2])):
            expected = np.ones_like(values)
            with np.errstate(all="ignore"):
                for _ in range(int(exponent)):
                    expected = (expected * values).astype(dtype)
            assert_same(array**exponent, expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_powers_of_negative_numbers(device, dtype):
    """Whole exponents, even and odd, and others, from small to those that are all even."""
    exponents = [0, 1, 2, 3, 5, 8, 0.5, 1.5, 2.25, 127, 2**11 + 1, 2**21 + 1, 2**22 - 1, 2**22]
    exponents += [2**22 + 1, 2**23 + 1, 2**24, 2**22 - 0.5, 2**22 + 0.5, 1e30, np.inf, np.nan]
    bases = [-1, -1.0009765625, -0.9990234375, -2, -0.5, -3, -0.0, 0.0, 1, -np.inf, np.nan, -7.25]
    y = np.array([*exponents, *(-one for one in exponents)], np.float64)
    a, b = (one.ravel().astype(dtype) for one in np.meshgrid(np.array(bases), y))
    with np.errstate(all="ignore"):
        expected = np.power(a.astype(np.float64), b.astype(np.float64))
        result = (put(device, a) ** put(device, b)).numpy().astype(np.float64)
        rounded = expected.astype(dtype).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(rounded))
    kept = ~np.isnan(rounded)
    np.testing.assert_array_equal(np.signbit(result[kept]), np.signbit(rounded[kept]))
    eps = {"float16": 2**-10, "float32": 2**-23, "float64": 2**-52}.get(dtype.name, 2**-7)
    np.testing.assert_allclose(result, rounded, rtol=4 * eps)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_by_any_number(device, dtype):
    bits = 8 * dtype.itemsize
    counts = [0, 1, bits - 1, bits, bits + 1, np.iinfo(dtype).max]
    counts += [-1, -bits, np.iinfo(dtype).min] if dtype.kind == "i" else []
    a, b = (x.ravel() for x in np.meshgrid(helpers.specials(dtype), np.array(counts, dtype)))
    inside = (b >= 0) & (b < bits)
    count = np.where(inside, b, 0).astype(dtype)
    left = np.where(inside, a << count, 0).astype(dtype)
    right = np.where(inside, a >> count, np.where(a < 0, -1, 0).astype(dtype)).astype(dtype)
    assert_same(put(device, a) << put(device, b), left)
    assert_same(put(device, a) >> put(device, b), right)


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_negative_powers_of_integers(device, dtype):
    x = put(device, np.array([-3, -1, 0, 1, 5], dtype))
    for power in (-1, -2, -7):
        with helpers.refused(device, ValueError, x, match=str(power)):
            x**power
        powers = put(device, np.full(5, power, dtype))
        assert_same(x**powers, np.array([0, (-1) ** power, 0, 1, 0], dtype))
        assert_same(vg.pow(2, powers), np.zeros(5, dtype))


@pytest.mark.parametrize("dtype", helpers.NUMBERS, ids=str)
def test_zero_to_the_power_of_zero(device, dtype):
    zero = put(device, np.zeros(3, dtype))
    assert_same(zero**zero, np.ones(3, dtype))
    assert_same(zero**0, np.ones(3, dtype))


@pytest.mark.parametrize("dtype", helpers.NUMBERS, ids=str)
def test_powers_by_python_scalars(device, rng, dtype):
    """The quick ways are those of the function, in dtype too."""
    a = helpers.integers(rng, 50, dtype, 1, 5)
    x = put(device, a)
    for power in (0, 1, 2, 3, 2.0, 0.5, -1.0, 1.5, True):
        exact = type(power) is not bool and power in (1, 2, -1)
        target = dtype
        if isinstance(power, float) and not helpers.is_float(dtype):
            target = np.dtype(np.float32)
        base, exponent = a.astype(target), np.full(50, power).astype(target)
        result = x**power
        assert result.dtype == target, power
        if exact:
            assert_same(result, helpers.rounded(np.power(a.astype(float), power), target))
        else:
            assert_binary(device, "pow", result, base, exponent, f"** {power}")
        if helpers.is_float(target):
            y = put(device, base)
            same = y
            y **= power
            assert y is same
            assert_same(y, helpers.host(result))
    assert_same(2**x, binary_reference("pow", np.full(50, 2, dtype), a).astype(dtype))


@pytest.mark.parametrize("symbol", ["floordiv", "mod", "lshift", "rshift"])
def test_operators_on_both_sides_and_in_place(device, rng, symbol):
    a, b = (helpers.integers(rng, 40, np.dtype(np.int32), 1, 9) for _ in "ab")
    x, y, call = put(device, a), put(device, b), getattr(operator, symbol)
    assert_same(call(x, y), call(a, b))
    assert_same(call(x, 3), call(a, 3))
    assert_same(call(100, x), call(100, a))
    same = x
    x = getattr(operator, f"i{symbol}")(x, y)
    assert x is same
    assert_same(x, call(a, b))
    with pytest.raises(TypeError):
        call(x, "a")
    with pytest.raises(TypeError):
        x ** "a"


@pytest.mark.parametrize("dtype", helpers.NUMBERS, ids=str)
def test_logaddexp(device, rng, dtype):
    values = np.concatenate([helpers.specials(dtype), helpers.numbers(rng, 20, dtype)])
    target = dtype if helpers.is_float(dtype) else np.dtype(np.float32)
    left, right = (x.ravel() for x in np.meshgrid(values, values))
    a, b = (helpers.rounded(x, target) for x in (left, right))
    with np.errstate(all="ignore"):
        expected = np.logaddexp(a.astype(np.float64), b.astype(np.float64))
    result = vg.logaddexp(put(device, left), put(device, right))
    assert result.dtype == target
    unit = helpers.UNIT_ROUNDOFF[target]
    expected = helpers.rounded(expected, target).astype(np.float64)
    helpers.assert_within(result, expected, 8 * unit * (np.abs(expected) + 1))
    if helpers.is_float(dtype):
        some = put(device, a)
        assert_same(vg.logaddexp(some, 0.5), helpers.host(vg.logaddexp(0.5, some)))
