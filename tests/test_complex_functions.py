"""Elementwise functions of complex numbers: layouts, accuracy, and what the edges give.

The reference is NumPy's longdouble; errors are counted in units of the last place of the length,
|f(z)|, which is what a complex function can be held to: a part that is far smaller than the other
one has fewer digits.
"""

import helpers
import numpy as np
import pytest
from helpers import COMPLEX, LAYOUTS, assert_same, put

import pyvecgpu as vg
from pyvecgpu.operations import ROWS

UNARY = [row.name for row in ROWS if row.family == "unary" and "c" in row.domain]
BINARY = [row.name for row in ROWS if row.family == "binary" and "c" in row.domain]
LONG = [row.name for row in ROWS if row.family == "unary" and row.result == "float"
        and "c" in row.domain and row.name != "reciprocal"]  # fmt: skip
EXACT = ("negative", "positive", "conj", "round", "isnan", "isinf", "isfinite")
# Units in the last place of the length. Cards compute complex64 in float64 and round once.
LIMITS = {"cpu": {8: 8, 16: 8}, "sim": {8: 1, 16: 6}, "cuda": {8: 1, 16: 6}}


def reference(name, z):
    """f(z) as clongdouble; what NumPy's own loses digits in, by another formula."""
    z = np.asarray(z).astype(np.clongdouble)
    x, y = z.real, z.imag
    with np.errstate(all="ignore"):
        if name == "log1p":
            near = np.abs(z) < 0.5
            length = np.log1p(np.where(near, x * (2 + x) + y * y, 0)) / 2
            return np.where(near, length, np.log(np.abs(1 + z))) + 1j * np.arctan2(y, 1 + x)
        if name == "expm1":
            real = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
            return real + 1j * (np.exp(x) * np.sin(y))
        if name == "exp2":
            angle = y * np.log(np.longdouble(2))
            return np.exp2(x) * np.cos(angle) + 1j * (np.exp2(x) * np.sin(angle))
        return getattr(np, name)(z)


def assert_near(result, expected, ulps, message=""):
    """Within so many units in the last place of the length; infinities are not looked at."""
    result, expected = helpers.host(result), np.asarray(expected)
    real = np.dtype(result.real.dtype)
    limits = np.finfo(real)
    finite = np.isfinite(expected) & (np.abs(expected) < limits.max / 2)
    with np.errstate(all="ignore"):
        error = np.abs(np.where(finite, result.astype(np.clongdouble) - expected, 0))
        unit = np.maximum(np.abs(expected), limits.tiny) * np.longdouble(limits.eps)
    wrong = finite & ~(error <= ulps * np.where(finite, unit, 1))
    helpers.report_worst(wrong, result, expected, f"{message}: more than {ulps} ulp")


def ordinary(rng, count, dtype):
    """Points of many lengths, those near both axes and near 1 and i among them."""
    length = np.exp2(rng.uniform(-12, 5, count))
    z = length * np.exp(2j * np.pi * rng.random(count))
    z[: count // 8].imag *= 1e-6
    z[count // 8 : count // 4].real *= 1e-6
    near = np.exp(1j * np.pi / 2 * rng.integers(0, 4, count // 4))
    z[-(count // 4) :] = near * (1 + 1e-3 * z[-(count // 4) :])
    return z.astype(dtype)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", LONG)
def test_accuracy(device, rng, name, dtype):
    z = ordinary(rng, 800, dtype)
    if name in ("exp", "expm1", "exp2", "sinh", "cosh"):
        z = z[np.abs(z.real) < 60]
    if name in ("sin", "cos"):
        z = z[np.abs(z.imag) < 60]
    limit = LIMITS[device][dtype.itemsize] * (2 if name == "exp2" else 1)  # its angle is rounded
    assert_near(getattr(vg, name)(put(device, z)), reference(name, z), limit, f"{name} {dtype}")


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_layouts_of_one_operand(device, rng, name, dtype):
    function = getattr(vg, name)
    for shape in helpers.AWKWARD_SHAPES:
        x = helpers.numbers(rng, shape, dtype) / dtype.type(2**18)
        check(name, device, function(put(device, x)), x)
    x = helpers.integers(rng, (5, 6, 7), dtype)
    for layout, make in LAYOUTS.items():
        check(name, device, function(make(device, x)), x, layout)


def check(name, device, result, x, message=""):
    x, message = np.asarray(x), f"{name} {x.dtype} {x.shape} {message}"
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
        assert result.dtype == expected.dtype and result.shape == x.shape, message
        if name in EXACT:
            assert_same(result, expected, message)
        else:
            assert_near(result, reference(name, x), 8, message)


# Where C99's Annex G leaves a sign open, or NumPy has none of its cases, only this is asked for.
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_special_values(device, name, dtype):
    z = edges(dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(getattr(np, name)(z))
        result = helpers.host(getattr(vg, name)(put(device, z)))
    if expected.dtype.kind == "b" or name in EXACT:
        assert_same(result, expected)
        return
    if name in ("expm1", "log1p", "exp2", "sign", "reciprocal", "square", "log2", "log10"):
        known = np.isfinite(z)  # of others NumPy's parts are those of an infinity times 0
        z, result, expected = z[known], result[known], expected[known]
    for part in ("real", "imag") if expected.dtype.kind == "c" else ("real",):
        found, wanted = getattr(result, part), getattr(expected, part)
        same = (np.isnan(found) == np.isnan(wanted)) | np.isinf(found) | np.isinf(wanted)
        helpers.report_worst(~same, result, expected, f"NaN of {name}")
        same = np.isinf(found) == np.isinf(wanted)
        helpers.report_worst(~same, result, expected, f"infinity of {name}")
        same = (found == wanted) | (np.abs(found - wanted) <= 1e-5 * np.abs(wanted))
        helpers.report_worst(
            np.isfinite(wanted) & np.isfinite(found) & ~same, result, expected, f"{part} of {name}"
        )


def edges(dtype):
    """All pairs of these as parts."""
    values = [0.0, -0.0, 1, -1, 0.5, -2, np.inf, -np.inf, np.nan]
    values = np.array(values, helpers.parts(np.ones(1, dtype)).dtype)
    z = np.empty((values.size, values.size), dtype)
    z.real, z.imag = values[:, None], values
    return z.ravel()


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_layouts_of_two_operands(device, rng, name, dtype):
    function, numpys = getattr(vg, name), getattr(np, name)
    for a_shape, b_shape in (((6, 37), (6, 37)), ((6, 1), (37,)), ((), (3, 4)), ((0, 3), (1, 3))):
        a, b = (helpers.integers(rng, shape, dtype, 1, 5) for shape in (a_shape, b_shape))
        for layout in helpers.layouts(a):
            found = function(LAYOUTS[layout](device, a), put(device, b))
            compare(name, found, numpys(a.astype(np.clongdouble), b.astype(np.clongdouble)), layout)
    place = put(device, a)
    assert function(place, 2, out=put(device, numpys(a, 2))) is not None


def compare(name, found, expected, message):
    if expected.dtype == bool or name in ("add", "subtract", "multiply"):
        assert_same(found, expected.astype(found.dtype), message)
    else:
        assert_near(found, expected, 60 if name == "pow" else 4, f"{name} {message}")


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_powers(device, rng, dtype):
    z = ordinary(rng, 200, dtype)
    wide = z.astype(np.clongdouble)
    for power in (2, -1, 0.5, 1, 0, 3, -2, 7):
        with np.errstate(all="ignore"):
            expected = wide**power
        assert_near(put(device, z) ** power, expected, 16, f"power {power}")
    for power in (1.5, 1 + 1j, -0.25j):
        expected = np.exp(np.clongdouble(power) * np.log(wide))
        assert_near(put(device, z) ** power, expected, 16, f"power {power}")
        assert_near(power ** put(device, z[:50]), np.clongdouble(power) ** wide[:50], 64)
    zero = put(device, np.zeros(2, dtype))
    assert_same(zero**0, np.ones(2, dtype))
    assert_same(zero ** (2 + 0j), np.zeros(2, dtype))


def test_divisions_that_could_overflow_in_between(device):
    for dtype, most in ((np.complex64, 1e38), (np.complex128, 1e308)):
        z = np.array([most / 8 + most / 8 * 1j, most / 4, 1 / most + 1j / most], dtype)
        assert_near(put(device, z) / put(device, z), np.ones(3), 4)
        assert_near(vg.reciprocal(put(device, z[:1])), 1 / z[:1].astype(np.clongdouble), 4)
        large = put(device, 8 * z[:1])  # whose length is too large
        assert_near(vg.sign(large), np.full(1, (1 + 1j) / np.sqrt(np.longdouble(2))), 4)
        assert_near(vg.abs(put(device, z[1:])), np.abs(z[1:].astype(np.clongdouble)), 4)
    with np.errstate(all="ignore"):
        zero = put(device, np.zeros(1, np.complex64))
        assert np.isnan((zero / zero).item()) and np.isinf((1 / zero.real).item())
        assert np.isinf(((1 + 1j) / zero).item())
        assert np.isnan((0 * zero / zero).item())


def test_many_elements(device, rng):
    """More than one block, with vectors and without."""
    for dtype in COMPLEX:
        z = helpers.integers(rng, 70_001, dtype)
        array = put(device, z)
        assert_same(array * array - array, z * z - z)
        assert_same(array[1:] == array[:-1], z[1:] == z[:-1])
        assert_same(vg.conj(array[1:]), np.conj(z[1:]))


def test_host_operands(device, rng):
    z = helpers.integers(rng, (5, 4), np.dtype(np.complex64))
    assert_same(vg.multiply(z, z, device=device), z * z)
    assert_near(vg.abs(z, device=device), np.abs(z.astype(np.clongdouble)), 2)
    assert_same(np.add(put(device, z), z), z + z)
    assert_same(np.conjugate(put(device, z)), np.conj(z))
    assert_same(z * put(device, z), z * z)
