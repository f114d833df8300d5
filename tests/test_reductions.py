"""Reductions against exact references, over axes, layouts, dtypes and sizes."""

import itertools
import math

import helpers
import numpy as np
import pytest
from helpers import DTYPES, FLOATS, INTEGERS, assert_same, assert_within, put
from products import launches

import pyvecgpu as vg
from pyvecgpu.operations import ROWS

REDUCTIONS = {row.name: row for row in ROWS if row.family == "reduce"}
NAMES = list(REDUCTIONS)


def result_dtype(name, dtype):
    if name == "mean":
        return dtype if helpers.is_float(dtype) else np.dtype(np.float32)
    return getattr(np, name)(np.ones(1, dtype)).dtype


class Inexact:
    """Reductions that round: function (x, axis, dtype of the result, device) -> reference, error.

    The others give what NumPy gives, and so do these of integers where the result is one.
    """

    @staticmethod
    def sum(x, axis, dtype, device):
        return helpers.sum_tolerance(x, axis, dtype, device)

    @staticmethod
    def prod(x, axis, dtype, device):
        """A rounding of float64 a factor, and the result's."""
        exact = np.asarray(np.prod(x.astype(np.longdouble), axis=axis))
        relative = helpers.UNIT_ROUNDOFF[dtype] + counted(x, axis) * 1.01 * 2.0**-53
        return exact, np.abs(exact) * relative + helpers.finfo(dtype).smallest_subnormal

    @staticmethod
    def mean(x, axis, dtype, device):
        total, tolerance = helpers.sum_tolerance(x, axis, dtype, device)
        total, tolerance = total * (1.0 / counted(x, axis)), tolerance / counted(x, axis)
        if dtype == np.float64:
            tolerance = tolerance + 2.0**-53 * np.abs(total)  # the division rounds once more
        smallest = helpers.finfo(dtype).smallest_subnormal.astype(np.float64)
        return total, tolerance + smallest / 2


def numbers(rng, name, shape, dtype):
    """Operands of a reduction: over the dtype's range, but factors of a product near 1."""
    x = helpers.numbers(rng, shape, dtype)
    if not helpers.is_float(dtype) or REDUCTIONS[name].identity != 1:
        return x
    reach = 4 / math.sqrt(max(x.size, 1))
    return (np.exp2(rng.uniform(-reach, reach, shape)) * rng.choice([-1, 1], shape)).astype(dtype)


def check(device, name, x, array, axis=None, keepdims=False):
    """One reduction of `array`, whose values are x, against its reference."""
    result = getattr(vg, name)(array, axis=axis, keepdims=keepdims)
    message = f"{name} of {x.dtype} {x.shape} over {axis}"
    assert result.dtype == result_dtype(name, x.dtype), message
    values = helpers.host(result)
    if not hasattr(Inexact, name) or not helpers.is_float(result.dtype):
        expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        # Of equal elements max and min give any: zeros of both signs are equal.
        np.testing.assert_array_equal(values, expected, err_msg=message, strict=True)
        return
    dtype = values.dtype
    total, tolerance = getattr(Inexact, name)(x, axis, dtype, device)
    shape = np.sum(x[..., None][..., 0], axis=axis, keepdims=keepdims).shape
    assert_within(
        values, helpers.held(total, dtype).reshape(shape), tolerance.reshape(shape), message
    )


def counted(x, axis):
    axes = range(x.ndim) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    return np.longdouble(math.prod(x.shape[a] for a in axes))


def axes_of(ndim):
    return [None, *(c for r in range(1, ndim + 1) for c in itertools.combinations(range(ndim), r))]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_over_sizes(device, rng, name, dtype):
    for n in (1, 2, 31, 33, 1023, 1024, 1025, 4099, 20_011):
        x = numbers(rng, name, n, dtype)
        check(device, name, x, put(device, x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_over_axes_of_every_layout(device, rng, name, dtype):
    x = numbers(rng, name, (5, 4, 6), dtype)
    for layout, make in helpers.LAYOUTS.items():
        array = make(device, x)
        assert helpers.bits(array) == x.tobytes(), layout
        for axis in axes_of(3) if REDUCTIONS[name].result != "index" else [None, 0, 1, 2, -1]:
            check(device, name, x, array, axis, keepdims=axis is not None and len(layout) % 2 == 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_shapes_that_choose_kernels(device, rng, name, dtype):
    """Short and long rows, columns, and both of a width that no vector divides; chunks to merge."""
    for shape, axis in (
        ((300, 7), 1), ((300, 7), 0), ((7, 300), 0), ((3, 5000), 1), ((5000, 3), 0),
        ((2, 3000, 5), 1),
        ((1, 70_001), 1), ((4, 1, 9), 1), ((70_001, 1), 0), ((2500, 33), 0), ((40, 21), 1),
        ((40, 90), 1), ((9, 20_000), 0), ((20_000, 3), 0),
    ):  # fmt: skip
        x = numbers(rng, name, shape, dtype)
        check(device, name, x, put(device, x), axis)
        check(device, name, x[..., 1:] if shape[-1] > 1 else x, shifted_columns(device, x), axis)


def shifted_columns(device, x):
    """x without its first column: rows start at addresses that are not aligned."""
    return put(device, x)[..., 1:] if x.shape[-1] > 1 else put(device, x)


@pytest.mark.parametrize("name", NAMES)
def test_negative_axes_and_keepdims(device, rng, name):
    x = helpers.integers(rng, (3, 4, 5), np.dtype(np.float32))
    array = put(device, x)
    for axis in (-1, -3, 1):
        for keepdims in (False, True):
            check(device, name, x, array, axis, keepdims)
    assert getattr(vg, name)(array, keepdims=True).shape == (1, 1, 1)
    if REDUCTIONS[name].result != "index":
        check(device, name, x, array, (-1, 0), True)
        check(device, name, x, array, (2, 0))
        assert_same(
            getattr(vg, name)(array, axis=()), helpers.host(getattr(vg, name)(array[None], axis=0))
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_methods(device, rng, dtype):
    x = put(device, helpers.integers(rng, (3, 4), dtype))
    for name in NAMES:
        assert_same(
            getattr(x, name)(axis=1, keepdims=True),
            helpers.host(getattr(vg, name)(x, axis=1, keepdims=True)),
        )


# ---- Accuracy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_accuracy_under_cancellation(device, rng, name, dtype):
    n = 30_000 if device != "cuda" else 3_000_000
    x = helpers.numbers(rng, n, dtype)
    cases = [x, np.sort(x), np.concatenate([x, -x[::-1]]), np.full(n, 0.1, dtype)]
    big = np.array([1e30, 1.0, -1e30], dtype)
    cases.append(np.tile(big[[0, 2]], 500))
    for case in cases:
        check(device, name, case, put(device, case))
    square = x[: 150 * 200].reshape(150, 200)
    for axis in (0, 1):
        check(device, name, square, put(device, square), axis)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sums_with_infinities_and_nan(device, dtype):
    inf, nan = np.inf, np.nan
    rows = np.array([[1, inf, 2], [inf, -inf, 0], [1, nan, 2], [-inf, 5, 1], [inf, inf, 1]], dtype)
    expected = np.array([inf, nan, nan, -inf, inf], dtype)
    assert_same(vg.sum(put(device, rows), axis=1), expected)
    assert_same(vg.mean(put(device, rows), axis=1), expected)
    large = np.full(2000, helpers.finfo(dtype).max, dtype)
    assert_same(vg.sum(put(device, large)), np.array(inf, dtype))


def test_sum_of_negative_zeros(device):
    x = np.full(5, -0.0, np.float32)
    assert helpers.host(vg.sum(put(device, x))) == 0


@pytest.mark.parametrize("dtype", [*INTEGERS, np.dtype(bool)], ids=str)
def test_integer_sums_are_exact_and_wrap(device, rng, dtype):
    """Small integers are summed in 64 bits, 64-bit ones modulo 2**64."""
    n = 3000
    top = True if dtype.kind == "b" else np.iinfo(dtype).max
    for x in (np.full(n, top, dtype), helpers.numbers(rng, n, dtype)):
        wide = sum(int(v) for v in x)
        result = helpers.host(vg.sum(put(device, x)))
        assert result.dtype == np.sum(x).dtype
        assert int(result) % 2**64 == wide % 2**64
        mean = helpers.host(vg.mean(put(device, x)))
        assert not abs(float(mean) - wide / n) > abs(wide / n) * 2.0**-23


def test_mean_of_integers_beyond_float32(device):
    """The sum is exact before the one rounding, also where it does not fit into 64 bits."""
    x = np.array([2**62, 2**62, 2**62, 2**62, 3], np.int64)
    assert_same(vg.mean(put(device, x)), np.float32(4 * 2**62 / 5))
    x = np.full(7, 2**64 - 1, np.uint64)
    assert_same(vg.mean(put(device, x)), np.float32(2**64 - 1))


@pytest.mark.parametrize("name", [n for n, row in REDUCTIONS.items() if row.result == "wide"])
def test_results_in_another_dtype(device, rng, name):
    """Narrow integers wrap; a function and its method take the dtype."""
    x = helpers.integers(rng, (4, 5), np.dtype(np.float32), low=1) * np.float32(30)
    for dtype in (np.float64, np.int64, np.float32, np.uint8, np.int32):
        expected = getattr(np, name)(x.astype(dtype), axis=0, dtype=dtype)
        assert_same(getattr(vg, name)(put(device, x), axis=0, dtype=dtype), expected)
        assert_same(getattr(put(device, x), name)(0, dtype), expected)


# ---- Extremes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(1,), (3, 40), (40, 3), (9000,), (2, 2100), (3000, 2)])
def test_nan_wins(device, rng, dtype, shape):
    x = rng.standard_normal(shape).astype(dtype)
    for position in {0, x.size // 2, x.size - 1}:
        spoiled = x.copy()
        spoiled.flat[position] = np.nan
        array = put(device, spoiled)
        for axis in (None, *range(x.ndim)):
            for name in ("max", "min", "argmax", "argmin"):
                expected = getattr(np, name)(spoiled, axis=axis)
                result = helpers.host(getattr(vg, name)(array, axis=axis))
                assert_same(result, np.asarray(expected, result.dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_argmax_gives_the_first(device, rng, dtype):
    for shape in ((5000,), (3, 1500), (1500, 3), (4, 5, 6)):
        x = helpers.integers(rng, shape, dtype, high=2)
        array = put(device, x)
        for axis in (None, *range(x.ndim)):
            assert_same(vg.argmax(array, axis=axis), np.asarray(np.argmax(x, axis=axis)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_argmin_gives_the_first(device, rng, dtype):
    for shape in ((5000,), (3, 1500), (1500, 3), (4, 5, 6)):
        x = helpers.integers(rng, shape, dtype, high=2)
        array = put(device, x)
        for axis in (None, *range(x.ndim)):
            assert_same(vg.argmin(array, axis=axis), np.asarray(np.argmin(x, axis=axis)))


# ---- Truth ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1,), (300, 7), (7, 300), (3, 5000), (5000, 3), (2, 70, 5)])
def test_any_and_all(device, rng, dtype, shape):
    """Few elements that are not 0, and few that are; over all sets of axes."""
    for ones in (0.0, 0.01, 0.9, 0.999, 1.0):
        x = (rng.random(shape) < ones).astype(dtype) * np.asarray(1).astype(dtype)
        array = put(device, x)
        for axis in axes_of(x.ndim):
            for name in ("any", "all"):
                expected = np.asarray(getattr(np, name)(x != 0, axis=axis, keepdims=True))
                assert_same(getattr(vg, name)(array, axis=axis, keepdims=True), expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_truth_of_floats(device, dtype):
    """NaN, infinities and subnormal numbers are true, zeros of both signs are not."""
    smallest = helpers.finfo(dtype).smallest_subnormal
    rows = np.array([[np.nan, 0], [-0.0, 0.0], [-np.inf, np.nan], [smallest, -smallest]], dtype)
    x = put(device, rows)
    assert vg.any(x, axis=1).tolist() == [True, False, True, True]
    assert vg.all(x, axis=1).tolist() == [False, False, True, True]
    assert vg.count_nonzero(x, axis=1).tolist() == [1, 0, 2, 2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_count_nonzero(device, rng, dtype):
    x = helpers.integers(rng, (4, 50, 6), dtype, low=0, high=3)
    for layout, make in helpers.LAYOUTS.items():
        array = make(device, x)
        for axis in axes_of(3):
            expected = np.asarray(np.count_nonzero(x, axis=axis, keepdims=True))
            result = vg.count_nonzero(array, axis, keepdims=True)
            assert_same(result, expected, layout)
    assert_same(vg.count_nonzero(put(device, x[:0])), np.asarray(0))
    assert vg.count_nonzero(put(device, x), (0, -1)).shape == (50,)
    assert_same(vg.count_nonzero(put(device, x[0, 0, 0])), np.asarray(np.count_nonzero(x[0, 0, 0])))
    with helpers.refused(device, np.exceptions.AxisError, put(device, x), match="axis"):
        vg.count_nonzero(put(device, x), 3)
    host = vg.count_nonzero(x, 1, device=device)
    assert isinstance(host, np.ndarray) and (host == np.count_nonzero(x, 1)).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_zeros_of_both_signs_are_equal(device, dtype):
    x = np.array([[-0.0, 0.0], [0.0, -0.0]], dtype)
    assert_same(vg.argmax(put(device, x), axis=1), np.array([0, 0]))
    assert_same(vg.max(put(device, x), axis=1) == 0, np.array([True, True]))
    assert_same(vg.min(put(device, x), axis=1) == 0, np.array([True, True]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_extremes_of_infinities(device, dtype):
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [helpers.finfo(dtype).min, -np.inf]], dtype)
    for name in ("max", "min"):
        assert_same(getattr(vg, name)(put(device, x), axis=1), getattr(np, name)(x, axis=1))


# ---- Nothing, and errors -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_of_nothing(device, dtype):
    empty = put(device, np.zeros((0, 3), dtype))
    assert_same(vg.sum(empty), np.sum(np.zeros(0, dtype)))
    assert_same(vg.sum(empty, axis=0), np.sum(np.zeros((0, 3), dtype), axis=0))
    assert_same(vg.sum(empty, axis=1), np.sum(np.zeros((0, 3), dtype), axis=1))
    for name in ("max", "min", "argmax", "argmin"):
        for axis in (None, 0):
            with helpers.refused(device, ValueError, empty, match="empty|zero-size"):
                getattr(vg, name)(empty, axis=axis)
        assert getattr(vg, name)(empty, axis=1).shape == (0,)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_mean_of_nothing(device, dtype):
    nan = np.array(np.nan, result_dtype("mean", dtype))
    assert_same(vg.mean(put(device, np.zeros(0, dtype))), nan)
    assert_same(vg.mean(put(device, np.zeros((0, 2), dtype)), axis=0), np.full(2, nan))
    assert vg.mean(put(device, np.zeros((0, 2), dtype)), axis=1).shape == (0,)


@pytest.mark.devices("cpu")
def test_mean_of_nothing_warns_on_the_cpu(device):
    with pytest.warns(RuntimeWarning):
        vg.mean(put(device, np.zeros(0, np.float32)))


@pytest.mark.parametrize("name", NAMES)
def test_axes_that_make_no_sense(device, name):
    x = put(device, np.ones((2, 3), np.float32))
    reduce = getattr(vg, name)
    for axis in (2, -3, 2**40):
        with helpers.refused(device, np.exceptions.AxisError, x, match="axis"):
            reduce(x, axis=axis)
    for axis in (1.0, "0", True):
        with helpers.refused(device, TypeError, x):
            reduce(x, axis=axis)
    if REDUCTIONS[name].result == "index":
        with helpers.refused(device, TypeError, x):
            reduce(x, axis=(0, 1))
    else:
        with helpers.refused(device, ValueError, x, match="duplicate"):
            reduce(x, axis=(0, -2))


def test_axis_error_is_both_kinds_of_error():
    assert issubclass(np.exceptions.AxisError, ValueError)
    assert issubclass(np.exceptions.AxisError, IndexError)


# ---- Bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_do_not_depend_on_the_batch(device, rng, dtype):
    """The sum of row i is bit for bit the sum of row i alone, and the same every time."""
    x = helpers.numbers(rng, (70, 1500), dtype)
    whole = helpers.host(vg.sum(put(device, x), axis=1))
    again = helpers.host(vg.sum(put(device, x), axis=1))
    assert whole.tobytes() == again.tobytes()
    for i in (0, 1, 33, 69):
        alone = helpers.host(vg.sum(put(device, x[i : i + 1]), axis=1))
        assert alone.tobytes() == whole[i : i + 1].tobytes()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_items_do_not_depend_on_the_batch(device, rng, dtype):
    """Short rows of every way, long ones, columns whole and in chunks; alone and shifted."""
    for shape, axis in (
        *(((9, n), 1) for n in (3, 17, 40, 130, 2100, 5001)),
        ((5, 30, 40), 1), ((5, 700, 6), 1), ((3, 9000, 3), 1), ((3, 7, 5000), 1),
        ((5, 525, 69), 1), ((3, 9441, 4), 1), ((5, 700, 72), 1),
    ):  # fmt: skip
        x = helpers.numbers(rng, shape, dtype)
        shifted = put(device, np.concatenate([x.reshape(-1)[:1], x.reshape(-1)]))[1:]
        for name in ("sum", "mean", "var"):
            function = getattr(vg, name)
            whole = helpers.host(function(put(device, x), axis=axis))
            again = helpers.host(function(vg.reshape(shifted, shape), axis=axis))
            assert whole.tobytes() == again.tobytes(), (shape, name)
            for i in (0, shape[0] - 1):
                alone = helpers.host(function(put(device, x[i : i + 1]), axis=axis))
                assert alone.tobytes() == whole[i : i + 1].tobytes(), (shape, name)


@pytest.mark.parametrize("dtype", [*FLOATS, np.dtype("int8"), np.dtype("int64")], ids=str)
def test_small_items_share_a_block(device, rng, dtype):
    """Of several items a block or one, side by side or apart, aligned or not: the same totals."""
    for _ in range(8):
        inner, length = int(rng.integers(2, 40)), int(rng.integers(2, 100))
        outer = int(rng.integers(600, 1500)) // (1 + inner * length // 400) + 560
        shape = (outer, length, inner)
        x = helpers.numbers(rng, shape, dtype)
        flat = np.concatenate([x.reshape(-1)[:1], x.reshape(-1)])
        shifted = vg.reshape(put(device, flat)[1:], shape)
        apart = put(device, np.concatenate([x, x[:, :1]], axis=1))[:, :-1]
        for name in ("sum", "max", "argmax"):
            whole = helpers.host(getattr(vg, name)(put(device, x), axis=1))
            for same in (shifted, apart):
                again = helpers.host(getattr(vg, name)(same, axis=1))
                assert whole.tobytes() == again.tobytes(), (shape, name)
            for i in (0, outer - 1):
                alone = helpers.host(getattr(vg, name)(put(device, x[i : i + 1]), axis=1))
                assert alone.tobytes() == whole[i : i + 1].tobytes(), (shape, name)
            if name == "sum" and helpers.is_float(dtype):
                assert_within(whole, *helpers.sum_tolerance(x, 1, whole.dtype, device))
            else:
                np.testing.assert_array_equal(whole, getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "any", "var"])
def test_axes_that_alternate(device, rng, name):
    """The longest reduced axis first, as rows or columns, in chunks or not; then the others."""
    for shape, axes in (
        ((3, 2, 1400, 2, 3), (0, 2, 4)),
        ((3, 2, 4100), (0, 2)),
        ((2, 3, 16_001), (0, 2)),
        ((4100, 3, 3), (0, 2)),
        ((2, 3, 30_000), (0, 2)),
        ((30_000, 3, 2), (0, 2)),
        ((2, 3, 5000, 4), (0, 2)),
        ((2, 2, 2, 2, 2, 700, 2), (0, 2, 4, 6)),
    ):
        x = rng.choice([-1.0, 1.0, 1.0], shape).astype(np.float32)
        for turned in (tuple(range(len(shape))), tuple(reversed(range(len(shape))))):
            array = vg.permute_dims(put(device, x), turned)
            axis = tuple(sorted(turned.index(a) for a in axes))
            expected = getattr(np, name)(x.astype(float).transpose(turned), axis=axis)
            result = helpers.host(getattr(vg, name)(array, axis=axis))
            np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=f"{shape} {turned}")


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize < 8], ids=str)
def test_parts_of_a_product_may_be_larger_than_any_float32(device, dtype):
    """Whichever factors meet first: the product is 1, or 0 with a 0 among them."""
    exponent = math.frexp(float(helpers.finfo(dtype).max))[1] // 2
    factors = np.repeat([2.0**exponent, 2.0**-exponent], 8).astype(dtype)
    for x in (factors[None], np.tile(factors, 2)[None]):
        assert vg.prod(put(device, x), axis=1).astype(vg.float32).tolist() == [1.0]
    column = put(device, np.ascontiguousarray(np.broadcast_to(factors[:, None], (16, 5))))
    assert vg.prod(column, axis=0).astype(vg.float32).tolist() == [1.0] * 5
    x = np.append(factors[:8], np.zeros(1, dtype))
    assert vg.prod(put(device, x)).astype(vg.float32).item() == 0.0


@pytest.mark.parametrize("length", [7, 33, 511, 1024, 1029, 2047, 2048, 2051, 8192, 8197])
def test_lengths_of_axes_that_alternate(device, rng, length):
    """Of lengths that lanes of a warp, and blocks of several sizes, share."""
    inner = 7 if length % 7 == 0 else 1 if length % 2 else 8
    x = helpers.integers(rng, (length // inner, 5, inner, 2), np.dtype("int32"), -50, 50)
    a = put(device, x)
    assert_same(vg.sum(a, axis=(0, 2)), x.sum((0, 2)))
    assert_same(vg.max(a, axis=(0, 2)), x.max((0, 2)))
    assert_same(vg.sum(vg.astype(a, "float64"), axis=(0, 2)), x.sum((0, 2)).astype("float64"))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "int64"])
def test_rows_that_no_pack_divides_go_by_more_blocks(device, rng, dtype):
    """In chunks, which a second launch merges: each element is loaded by itself. Of 8 bytes not."""
    for inner in (9000, 9001):
        x = helpers.numbers(rng, (1200, inner), np.dtype(dtype))
        array = put(device, x)
        before = launches(device)
        found = vg.argmin(array, axis=0)
        chunked = inner % 4 and x.itemsize < 8
        assert launches(device) - before == 1 + bool(chunked), inner
        assert_same(found, np.argmin(x, axis=0))
