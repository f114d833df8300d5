"""Rounding errors of products, and special values: every kernel, each forced in turn.

"ieee" errs by at most (sqrt(k) + 8) 2^-24 of its terms' magnitudes, "float32" by no more than
"ieee", and "fast32" by a little of a row's and a column's largest element. Infinities, NaN and
numbers near the ends of the range are as in "ieee".
"""

import itertools

import numpy as np
import pytest
from helpers import put
from products import (
    EVERY_CASE,
    PARAMETERS,
    check_bits,
    check_within,
    forced,
    halves,
    integers,
    multiply,
    place,
    round_bits,
    size_for,
    values_of,
)

import pyvecgpu as vg

ROUNDED = {  # precisions that round float32 operands: bits of fraction, the smallest exponent
    "tf32": (10, -126),
    "bf16": (7, -126),
    "fp16": (10, -14),
}
LAYOUTS = tuple(itertools.product((False, True), repeat=2))  # whether a, and b, lies by columns


def place_both(device, operands, dtype, layout):
    """Both operands, each by rows or by columns."""
    return [place(device, one, dtype, trans) for one, trans in zip(operands, layout, strict=True)]


def ieee_tolerance(a, b, u=2.0**-24):
    """(sqrt(k) + 8) u of (|A| |B|)."""
    return (np.sqrt(a.shape[-1]) + 8) * u * (np.abs(a) @ np.abs(b))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_random_data(device, rng, kernel, dtype, precision):
    """Within (sqrt(k) + 8) u of (|A| |B|), u of the dtype that sums are made in; in every layout.

    The digits of random numbers are in all pieces of an operand, those of integers in the first.
    """
    sizes = {"gemv": (1, 300, 3000), "tiny": (32, 31, 32), "others": (200, 300, 1100)}
    sizes["thin"], sizes["outer"] = (14, 300, 3000), (200, 300, 16)
    m, n, k = size_for(device, kernel, sizes, (40, 40, 200))
    left, right = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a, b = (values_of(place(device, one, dtype)) for one in (left, right))
    if precision in ROUNDED:
        a, b = (round_bits(one, *ROUNDED[precision]) for one in (a, b))
    expected, size = a @ b, np.abs(a) @ np.abs(b)
    u = 2.0**-53 if dtype == "float64" else 2.0**-24
    tolerance = ieee_tolerance(a, b, u)
    if kernel.startswith("tensor"):  # sums that the tensor cores cut off
        tolerance = (k / 4 + 8) * u * size
    if kernel == "fp16x3":  # against a row's and a column's largest
        largest = np.abs(a).max(1, keepdims=True) * np.abs(b).max(0, keepdims=True)
        tolerance = 2.0**-21 * np.sqrt(k) * largest
    if dtype in ("float16", "bfloat16"):
        digits = 10 if dtype == "float16" else 7
        tolerance += np.abs(expected) * 2.0 ** -(digits + 1) + 2.0**-24
    with forced(device, kernel):
        for layout in LAYOUTS:
            x, y = place_both(device, (left, right), dtype, layout)
            check_within(values_of(multiply(x, y, precision)), expected, tolerance, f"{layout}")


def data_sets(rng, m, n, k):
    """The five kinds of data of the accuracy contract: (name, a, b)."""
    normal = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    yield "normal", *normal
    yield "uniform", rng.random((m, k)), rng.random((k, n))
    wide = [x * np.exp2(rng.integers(-20, 20, x.shape)) for x in normal]
    yield "wide", *wide
    grades = np.exp2(np.linspace(-30, 30, m))[:, None]
    yield "graded rows", normal[0] * grades, normal[1]
    half = k // 2
    a = np.concatenate([normal[0][:, :half], -normal[0][:, :half]], axis=1)
    b = np.concatenate([normal[1][:half], normal[1][:half] * (1 + 1e-5)], axis=0)
    yield "cancelling", a, b


# ---- "ieee" --------------------------------------------------------------------------------------

LONG_SUMS = ("tiled", "ffma_128x128", "ffma_64x128", "ffma_64x64", "ffma_64x32", "ffma_tma")


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("kernel", LONG_SUMS)
@pytest.mark.parametrize("k", [255, 512, 2048, 8192])
def test_constant_rows(device, kernel, k):
    """All rounding errors point one way: beyond the bound of random data, never beyond k 2^-24."""
    a, b = np.full((34, k), 0.1, np.float32), np.ones((k, 34), np.float32)
    with forced(device, kernel):
        product = values_of(multiply(put(device, a), put(device, b), "ieee"))
    exact = a.astype(np.float64) @ b
    check_within(product, exact, k * 2.0**-24 * exact)


# k: seeds of rows of numbers in 0..1, and of a column for each. One chain of k multiply-adds in
# float32 errs by more than (sqrt(k) + 8) 2^-24 of their product; so does one pair of such vectors
# in 10^6 (k = 5000) to 10^8 (k = 340). These were found by trying.
WORST_PAIRS = {
    340: ((46290, 192382, 220836, 294144), (47389, 190123, 218297, 291175)),
    784: ((792, 2974, 6464, 6560), (737, 281, 7867, 7525)),
    1200: ((994, 1662, 2934, 5056), (3449, 3063, 915, 4569)),
    5000: ((18, 166, 196, 254), (2885, 1155, 3507, 613)),
}


def uniform(seed, k):
    """k numbers in 0..1, of 24 bits; of a bit generator, whose numbers never change."""
    return (np.random.PCG64([seed, k]).random_raw(k) >> np.uint64(40)) * 2.0**-24


def one_chain(a, b):
    """a @ b, each element by one chain of multiply-adds in float32."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for column, row in zip(a.T, b, strict=True):
        total = (total.astype(np.float64) + column[:, None] * row).astype(np.float32)
    return total.astype(np.float64)


def worst_pairs(k):
    """a, b with the pairs on the diagonal of a @ b."""
    a, b = (np.stack([uniform(one, k) for one in seeds]) for seeds in WORST_PAIRS[k])
    b = b.T
    wrong = np.abs(one_chain(a, b) - a @ b) > ieee_tolerance(a, b)
    assert np.all(np.diag(wrong)), "these are not such pairs"
    return a, b


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("k", WORST_PAIRS)
@pytest.mark.parametrize("kernel", LONG_SUMS)
def test_ieee_where_one_chain_errs_too_much(device, kernel, k):
    a, b = worst_pairs(k)
    expected, tolerance = a @ b, ieee_tolerance(a, b)
    with forced(device, kernel):
        for layout in LAYOUTS:
            x, y = place_both(device, (a, b), "float32", layout)
            check_within(values_of(multiply(x, y, "ieee")), expected, tolerance, f"{layout}")


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("k", WORST_PAIRS)
@pytest.mark.parametrize(("kernel", "precision"), [("bf16x6", "float32"), ("fp16x3", "fast32")])
def test_what_is_computed_again_is_as_accurate(device, kernel, precision, k):
    """A product with an infinity in another row, which tensor cores leave to float32 arithmetic."""
    a, b = worst_pairs(k)
    beside = np.concatenate([a, np.full((1, k), np.inf)])
    with forced(device, kernel):
        x, y = place_both(device, (beside, b), "float32", (False, False))
        result = values_of(multiply(x, y, precision))
    assert np.all(result[-1] == np.inf)
    check_within(result[:-1], a @ b, ieee_tolerance(a, b))


def check_sums_that_grow(device, rng, m, n, k, kernels):
    """Numbers in 0..1: sums that only grow err most. The errors are found on the device."""
    a, b = (rng.random(shape, np.float32) for shape in ((m, k), (k, n)))
    x, y = put(device, a), put(device, b)
    expected = put(device, a.astype(np.float64) @ b.astype(np.float64))  # (|A| |B|) too
    for kernel in kernels:
        with forced(device, kernel):
            result = multiply(x, y, "ieee")
        error = vg.abs(vg.astype(result, vg.float64) - expected) / expected
        worst = vg.max(error).item() / ((np.sqrt(k) + 8) * 2.0**-24)
        assert worst <= 1, f"{kernel}: {worst} of the tolerance"


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("k", [240, 300, 380, 511, 784])
def test_ieee_over_millions_of_results(device, rng, k):
    check_sums_that_grow(device, rng, 4096, 4096, k, ("tiled", "ffma_128x128", "ffma_tma"))


@pytest.mark.devices("sim")
@pytest.mark.parametrize("seed", range(3))
def test_ieee_over_millions_of_results_of_the_simulated_card(device, seed):
    """The seeds are fixed: a kernel of one chain fails with the third, by 6 %."""
    check_sums_that_grow(device, np.random.default_rng(seed), 2048, 1024, 784, ("tiled",))


# ---- "float32" -----------------------------------------------------------------------------------

# (m, n, k): the contract's range of k, and shapes in which "float32" is computed in other ways.
ACCURATE = [(1024, 1088, k) for k in (64, 784, 1024, 4096, 16384)]
ACCURATE += [(1000, 1000, 1000), (128, 4096, 4096), (4096, 128, 8192), (8192, 512, 784)]
ACCURATE += [(700, 1500, 900), (2048, 2048, 2048), (3000, 3100, 1024)]
ACCURATE += [(2000, 2047, k) for k in (256, 327, 512, 559, 704)]  # with tiles that fill a card
ACCURATE += [(700, 700, 400), (1000, 1000, 256), (640, 640, 1024), (576, 620, 520)]  # with few
ACCURATE += [(1536, 1536, 600), (512, 512, 2048), (300, 300, 5000)]
ACCURATE += [(128, 960, 16384), (256, 641, 16384)]  # few results, which "ieee" adds up in slices
ACCURATE = [(*sizes, (False, False)) for sizes in ACCURATE]
ACCURATE += [(*sizes, (True, True)) for sizes in ((1024, 1088, 784), (701, 1501, 901))]


def errors_of(result, expected, size):
    """The largest error beside (|A| |B|), and the relative error in the Frobenius norm."""
    difference = np.abs(values_of(result) - expected)
    return np.max(difference / size), np.linalg.norm(difference) / np.linalg.norm(expected)


def check_as_accurate_as_ieee(device, name, operands, layout, times=1):
    x, y = place_both(device, operands, "float32", layout)
    a, b = values_of(x), values_of(y)
    expected, size = a @ b, np.abs(a) @ np.abs(b)
    most, norm = errors_of(multiply(x, y, "ieee"), expected, size)
    largest, frobenius = errors_of(multiply(x, y, "float32"), expected, size)
    assert most <= (np.sqrt(a.shape[1]) + 8) * 2.0**-24, f"ieee, {name}: {most}"
    text = f"{name}: {largest:.2e}, {frobenius:.2e}; ieee: {most:.2e}, {norm:.2e}"
    print(text)
    assert largest <= times * most and frobenius <= max(times, 2) * norm, text


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k", "layout"), ACCURATE, ids=str)
def test_float32_is_as_accurate_as_ieee(device, rng, m, n, k, layout):
    """max |error| / (|A| |B|) at most that of "ieee", Frobenius at most twice it.

    Where few terms make up a sum both are at most three times as large.
    """
    for name, *operands in data_sets(rng, m, n, k):
        check_as_accurate_as_ieee(device, name, operands, layout, 3 if name == "wide" else 1)
    rectified = [np.maximum(rng.standard_normal(shape), 0) for shape in ((m, k), (k, n))]
    check_as_accurate_as_ieee(device, "three terms of four are zero", rectified, layout, 3)


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), [(1000, 1000, 1000), (640, 640, 2048), (2048, 2048, 784)])
def test_float32_is_as_accurate_as_ieee_on_a_range_that_pieces_cannot_hold(device, rng, m, n, k):
    operands = [
        rng.standard_normal(shape) * np.exp2(rng.integers(-40, 40, shape))
        for shape in ((m, k), (k, n))
    ]
    check_as_accurate_as_ieee(device, "very wide", operands, (False, False))


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), [(700, 700, 1024), (1024, 1088, 2048)])
def test_rows_beside_an_infinite_one_are_as_accurate_as_in_ieee(device, rng, m, n, k):
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a[17, 5] = np.inf
    x, y = place_both(device, (a, b), "float32", (False, False))
    near = np.delete(np.arange(128), 17)  # in its tiles
    left, right = values_of(x)[near], values_of(y)
    expected, size = left @ right, np.abs(left) @ np.abs(right)
    most, largest = (
        np.max(np.abs(values_of(multiply(x, y, precision))[near] - expected) / size)
        for precision in ("ieee", "float32")
    )
    assert largest <= most, f"{largest}, ieee: {most}"


# ---- "fast32" ------------------------------------------------------------------------------------


def fast32_tolerance(a, b):
    """Of operands rounded to 22 bits of a row's, or a column's, largest element, and their sums.

    Such roundings are at most 2^-22 of the largest, and no more one way than the other: so those of
    a row add up with a column of b as its norm does. 2: of millions of results the worst.
    """
    of_a = np.abs(a).max(1, keepdims=True) * np.linalg.norm(b, axis=0)
    of_b = np.linalg.norm(a, axis=1)[:, None] * np.abs(b).max(0)
    return 2 * 2.0**-22 * (of_a + of_b) + ieee_tolerance(a, b)


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), [(1024, 1088, 784), (701, 1501, 4099)])
def test_fast32_errs_little_beside_the_largest_elements(device, rng, m, n, k):
    """And so does the transposed product, where the columns of b are graded."""
    for name, a, b in data_sets(rng, m, n, k):
        x, y = put(device, a.astype(np.float32)), put(device, b.astype(np.float32))
        a, b = values_of(x), values_of(y)
        expected, tolerance = a @ b, fast32_tolerance(a, b)
        with forced(device, "fp16x3"):
            straight = values_of(multiply(x, y, "fast32"))
            turned = values_of(multiply(y.T, x.T, "fast32"))
        check_within(straight, expected, tolerance, name)
        check_within(turned, expected.T, tolerance.T, f"{name}, transposed")


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("layout", [(False, False), (True, True)])
@pytest.mark.parametrize("small", [1e-30, 1e-37])
@pytest.mark.parametrize("precision", ["ieee", "float32", "fast32"])
def test_large_numbers_beside_small_ones(device, rng, precision, small, layout):
    """In one row of a, and a column of b that meets only its small numbers, which count there."""
    m, n, k = 1310, 1320, 1300  # large enough for each precision to have its kernel
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a[5, ::2] *= 1e30
    a[5, 1::2] *= small
    b[::2, 7] = 0
    x, y = place_both(device, (a, b), "float32", layout)
    a, b = values_of(x), values_of(y)
    tolerance = fast32_tolerance(a, b) if precision == "fast32" else ieee_tolerance(a, b)
    result = values_of(multiply(x, y, precision))
    assert np.isfinite(result).all()
    check_within(result, a @ b, tolerance)


# ---- Special values ------------------------------------------------------------------------------

SPECIAL = [np.inf, -np.inf, np.nan, 3e38, -3.4e38, 1e-40, -1e-45, 2.0**-120]


def put_special(rng, matrix, line, value):
    """The value into a row (or column) of the matrix; of a small one a line whose digits count."""
    whole = matrix[line]
    if abs(value) < 1e-30:
        matrix[line] = value * rng.random(whole.shape).astype(np.float32)
    else:
        whole[whole.size // 2] = value


def check_special(result, ieee, a, b, line, value, precision):
    """The line of the result is as that of "ieee", all others are as accurate as ever."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    u = 2.0**-24 if precision == "float32" else 2.0**-19
    exact, tolerance = a @ b, ieee_tolerance(a, b, u)
    others = np.ones(result.shape, bool)
    others[line] = False
    check_within(result[others], exact[others], tolerance[others])
    got, expected = result[line], ieee[line]
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    ends = np.isinf(got)
    assert np.array_equal(ends, np.isinf(expected))
    assert np.array_equal(got[ends], expected[ends])
    if np.isfinite(value):
        allowed = np.abs(expected - exact[line]) + tolerance[line]
        fine = np.isfinite(got)
        allowed = np.maximum(allowed, 2.0**-149)
        check_within(got[fine], exact[line][fine], allowed[fine])


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("precision", ["float32", "fast32"])
@pytest.mark.parametrize("value", SPECIAL)
def test_special_values_are_as_in_ieee(device, rng, precision, value):
    """Per item of a batch; finite rows untouched by non-finite ones; in two layouts."""
    a = rng.standard_normal((3, 1030, 1024)).astype(np.float32)
    b = rng.standard_normal((1024, 1040)).astype(np.float32)
    put_special(rng, a[1], np.s_[17], value)
    for layout in ((False, False), (True, True)):
        x, y = place_both(device, (a, b), "float32", layout)
        ieee = values_of(multiply(x[1], y, "ieee"))
        result = multiply(x, y, precision)
        check_bits(result[0], multiply(x[0], y, precision))
        check_special(values_of(result[1]), ieee, a[1], b, np.s_[17], value, precision)


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("kernel", "precision"), [("bf16x6", "float32"), ("fp16x3", "fast32")])
@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("where", ["a", "b", "one a for all items", "one b for all items"])
def test_special_values_of_either_operand(device, rng, kernel, precision, value, where):
    """In one item's row or column, or in those of an operand that is one for the whole batch."""
    m, n, k = 130, 200, 300
    a, b = rng.standard_normal((3, m, k)), rng.standard_normal((3, k, n))
    a, b = a.astype(np.float32), b.astype(np.float32)
    line, items = (np.s_[17] if "a" in where.split() else np.s_[:, 17]), [1]
    if "all" in where:
        items = [0, 1, 2]
        a, b = (a[1], b) if where.startswith("one a") else (a, b[1])
    operand = a if "a" in where.split() else b
    put_special(rng, operand if "all" in where else operand[1], line, value)
    for layout in ((False, False), (True, True)):
        x, y = place_both(device, (a, b), "float32", layout)
        ieee = values_of(multiply(x, y, "ieee"))
        with forced(device, kernel):
            result = multiply(x, y, precision)
            values = values_of(result)
            for i in range(3):
                of_a, of_b = (one if one.ndim == 2 else one[i] for one in (a, b))
                if i in items:
                    check_special(values[i], ieee[i], of_a, of_b, line, value, precision)
                else:
                    one = (each if each.ndim == 2 else each[i] for each in (x, y))
                    check_bits(result[i], multiply(*one, precision), f"item {i}")


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_infinities_and_nan_stay_in_their_rows(device, rng, kernel, dtype, precision):
    sizes = {"gemv": (1, 40, 90), "tiny": (20, 21, 22), "others": (70, 90, 130)}
    sizes["thin"], sizes["outer"] = (12, 40, 90), (70, 90, 13)
    m, n, k = size_for(device, kernel, sizes, (20, 20, 40))
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    a[:, -1], b[-1] = 1, 1
    a[m - 1, k - 1] = np.inf
    b[k - 1, n - 1] = np.nan
    finite_a, finite_b = np.nan_to_num(a, posinf=0), np.nan_to_num(b)
    expected = halves(finite_a @ finite_b, dtype)
    with forced(device, kernel):
        for layout in ((False, False), (True, True)):
            x = place(device, a, dtype, layout[0], gap=3)
            y = place(device, b, dtype, layout[1], gap=5)
            result = values_of(multiply(x, y, precision))
            assert np.isnan(result[:, n - 1]).all()
            assert np.isinf(result[m - 1, : n - 1]).all() and (result[m - 1, : n - 1] > 0).all()
            assert np.array_equal(result[: m - 1, : n - 1], expected[: m - 1, : n - 1])
