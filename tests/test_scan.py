"""cumulative_sum, cumulative_prod, cumsum, cumprod beside NumPy, over axes, layouts and lengths."""

import helpers
import numpy as np
import pytest
from helpers import DTYPES, FLOATS, INTEGERS, LAYOUTS, assert_same, assert_within, put

import pyvecgpu as vg

# Around the bounds of lane groups, segments of warps, tiles of blocks and chunks of rows.
LENGTHS = [1, 2, 3, 31, 32, 33, 127, 129, 255, 256, 257, 511, 512, 513, 1025, 2047, 2049, 4095]
LENGTHS += [4096, 4097, 8193, 16_384, 16_385, 20_481, 40_963]
SCANS = {"sum": (vg.cumulative_sum, np.cumsum), "prod": (vg.cumulative_prod, np.cumprod)}
SMALL = [d for d in DTYPES if d.itemsize < 8 or d.kind == "f"]


def values(rng, name, shape, dtype):
    """Numbers over the dtype's range; factors of a product near 1."""
    if name == "sum" or not helpers.is_float(dtype):
        return helpers.numbers(rng, shape, dtype)
    reach = 4 / np.sqrt(max(np.prod(shape), 1))
    return (np.exp2(rng.uniform(-reach, reach, shape)) * rng.choice([-1, 1], shape)).astype(dtype)


def check(name, x, array, axis, message=""):
    """One scan of `array`, whose values are x: exact, or within the error of so many additions."""
    function, reference = SCANS[name]
    result = helpers.host(function(array, axis=axis))
    message = f"{name} of {x.dtype} {x.shape} along {axis} {message}"
    if not helpers.is_float(x.dtype):
        return assert_same(result, reference(x, axis=axis), message)
    assert result.dtype == x.dtype and result.shape == x.shape, message
    wide = helpers.widened(x).astype(np.longdouble)
    total = reference(wide, axis=axis)
    single = x.dtype in helpers.HALVES and name == "sum"
    rounding = x.shape[axis] * 1.01 * (2.0**-24 if single else 2.0**-53)
    magnitude = np.abs(total) if name == "prod" else np.cumsum(np.abs(wide), axis=axis)
    tolerance = np.abs(total) * helpers.UNIT_ROUNDOFF[x.dtype] + magnitude * rounding
    smallest = np.longdouble(helpers.finfo(x.dtype).smallest_subnormal)
    with np.errstate(over="ignore"):
        assert_within(result, helpers.held(total, x.dtype), tolerance + smallest, message)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_lengths_of_rows(device, rng, name, dtype):
    for n in LENGTHS:
        x = values(rng, name, n, dtype)
        check(name, x, put(device, x), 0)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64], ids=str)
def test_a_long_row(device, rng, dtype):
    """Hundreds of chunks; and beyond most_chunks of columns."""
    x = helpers.numbers(rng, 300_001, np.dtype(dtype))
    check("sum", x, put(device, x), 0)
    check("sum", x[1:], put(device, x)[1:], 0)
    tall = x[:300_000].reshape(150_000, 2)
    check("sum", tall, put(device, tall), 0)


def test_chunks_of_several_tiles(device, rng):
    x = helpers.integers(rng, 4_300_001, np.dtype(np.int8), -9, 9)
    check("sum", x, put(device, x), 0)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_every_number_of_rows(device, rng, dtype):
    """Columns are walked in steps of many rows, then of fewer; whatever is left."""
    for length in range(1, 42):
        x = helpers.numbers(rng, (2, length, 3), np.dtype(dtype))
        check("sum", x, put(device, x), 1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_layouts_and_axes(device, rng, name, dtype):
    x = values(rng, name, (5, 4, 6), dtype)
    for layout, make in LAYOUTS.items():
        for axis in (0, 1, 2, -1):
            check(name, x, make(device, x), axis, layout)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_shapes_that_choose_kernels(device, rng, name, dtype):
    """Rows of every width and number, few columns and many, in one chunk and in several."""
    for shape, axis in (
        ((300, 7), 1), ((300, 7), 0), ((7, 300), 0), ((3, 5000), 1), ((2, 30_000), 1),
        ((2, 300, 5), 1), ((1, 9001), 1), ((4, 1, 9), 1), ((700, 33), 0), ((129, 1), 0),
        ((130, 2, 2), 0), ((1, 1, 1), 2), ((3, 65, 300), 1),
    ):  # fmt: skip
        x = values(rng, name, shape, dtype)
        check(name, x, put(device, x), axis)
        if shape[-1] > 1:  # rows that begin where no vector may
            check(name, x[..., 1:], put(device, x)[..., 1:], axis)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((7,), 0), ((3, 40), 1), ((3, 40), 0), ((2, 5, 4), 1), ((30_000,), 0), ((300, 2), 0),
     ((0,), 0), ((3, 0), 1), ((3, 0), 0), ((0, 3), 1)],
    ids=str,
)  # fmt: skip
def test_include_initial(device, rng, name, dtype, shape, axis):
    x = values(rng, name, shape, dtype)
    function, _ = SCANS[name]
    array = put(device, x)
    result = helpers.host(function(array, axis=axis, include_initial=True))
    first, rest = np.split(result, [1], axis=axis)
    assert_same(rest, helpers.host(function(array, axis=axis)))
    assert first.shape[axis] == 1 and (helpers.widened(first) == (name == "prod")).all()


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_of_nothing(device, name, dtype):
    function, reference = SCANS[name]
    for shape, axis in (((0,), 0), ((0, 3), 0), ((0, 3), 1), ((3, 0), 1), ((2, 0, 3), 2)):
        x = np.zeros(shape, dtype)
        expected = reference(helpers.widened(x), axis=axis)
        if helpers.is_float(dtype):
            expected = expected.astype(dtype)
        assert_same(function(put(device, x), axis=axis), expected)


@pytest.mark.parametrize("ours", [vg.cumsum, vg.cumprod])
def test_numpys_functions_flatten(device, rng, ours):
    reference = getattr(np, ours.__name__)
    x = helpers.integers(rng, (3, 4, 5), np.dtype(np.int32))
    for layout, make in LAYOUTS.items():
        array = make(device, x)
        assert_same(ours(array), reference(x), layout)
        assert_same(getattr(array, ours.__name__)(), reference(x), layout)
        assert_same(getattr(array, ours.__name__)(1, "float64"), reference(x, 1, np.float64))
    scalar = np.array(3, np.int32)
    assert_same(ours(put(device, scalar)), reference(scalar))
    assert_same(ours(put(device, scalar), 0), reference(scalar, 0))
    for numpys in (x, np.int32(3)):
        result = ours(numpys, device=device)
        assert type(result) is np.ndarray
        assert_same(result, reference(numpys))


def test_of_an_array_without_axes(device):
    x = put(device, np.array(7, np.int16))
    assert_same(vg.cumulative_sum(x), np.array([7]))
    assert_same(vg.cumulative_prod(x, axis=-1, include_initial=True), np.array([1, 7]))


@pytest.mark.parametrize("name", SCANS)
def test_results_in_another_dtype(device, rng, name):
    function, reference = SCANS[name]
    for source in (np.int8, np.uint8, np.float32, np.bool_):
        x = helpers.integers(rng, (4, 25), np.dtype(source), 0, 3)
        for dtype in (np.int8, np.int32, np.int64, np.uint64, np.float64):
            expected = reference(x.astype(dtype), axis=1, dtype=dtype)
            assert_same(function(put(device, x), axis=1, dtype=dtype), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_wrap(device, dtype):
    """In 64 bits, whatever the dtype of the elements."""
    info = np.iinfo(dtype)
    for value in (info.max, info.min or info.max - 1):
        x = np.full(5000, value, dtype)
        for name in SCANS:
            check(name, x, put(device, x), 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out(device, rng, layout):
    x = helpers.integers(rng, (9, 22), np.dtype(np.float32))
    for axis in (0, 1):
        expected = np.cumsum(x, axis)
        out = LAYOUTS[layout](device, np.full_like(x, np.nan))
        assert vg.cumsum(put(device, x), axis, out=out) is out
        assert_same(out, expected)
        array = LAYOUTS[layout](device, x)
        assert vg.cumulative_sum(array, axis=axis, out=array) is array
        assert_same(array, expected)
        wide = put(device, np.full(x.shape, np.nan, np.float64))
        assert_same(vg.cumsum(put(device, x), axis, out=wide), expected.astype(np.float64))
    longer = put(device, np.zeros((9, 23), np.float32))
    vg.cumulative_sum(put(device, x), axis=1, include_initial=True, out=longer)
    assert_same(longer, np.cumulative_sum(x, axis=1, include_initial=True))
    numpys = np.zeros((9, 22))
    assert vg.cumsum(x, 1, out=numpys, device=device) is numpys
    assert_same(numpys, np.cumsum(x, 1).astype(np.float64))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_infinities_and_nan(device, dtype):
    """What stands before an element that is none, stays; what comes behind it, does not."""
    inf, nan = np.inf, np.nan
    rows = np.array([[1, inf, 2, 1], [1, inf, -inf, 0], [1, 2, nan, 2], [0, -inf, 5, 1]], dtype)
    expected = np.array(
        [[1, inf, inf, inf], [1, inf, nan, nan], [1, 3, nan, nan], [0, -inf, -inf, -inf]], dtype
    )
    assert_same(vg.cumulative_sum(put(device, rows), axis=1), expected)
    assert_same(vg.cumulative_sum(put(device, rows.T), axis=0), expected.T)
    for n in (300, 30_000):
        x = np.ones(n, dtype)
        x[n // 2] = nan
        spoiled = np.isnan(helpers.widened(helpers.host(vg.cumsum(put(device, x)))))
        assert not spoiled[: n // 2].any() and spoiled[n // 2 :].all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_do_not_depend_on_the_batch_or_the_run(device, rng, dtype):
    """Row i has the same bits alone, again, and where it begins elsewhere."""
    for length in (100, 1500, 17_500):
        x = helpers.numbers(rng, (5, length), dtype)
        whole = helpers.host(vg.cumulative_sum(put(device, x), axis=1))
        assert helpers.bits(vg.cumulative_sum(put(device, x), axis=1)) == whole.tobytes()
        for i in (0, 3):
            alone = vg.cumulative_sum(put(device, x[i]))
            assert helpers.bits(alone) == whole[i].tobytes()
            shifted = put(device, np.concatenate([x[i][:1], x[i]]))[1:]
            assert helpers.bits(vg.cumulative_sum(shifted)) == whole[i].tobytes()


def test_what_is_refused(device):
    x = put(device, np.zeros((2, 3), np.float32))
    for function in (vg.cumulative_sum, vg.cumulative_prod):
        with helpers.refused(device, ValueError, x, match=rf"{function.__name__}.*axis"):
            function(x)
    for function in (vg.cumulative_sum, vg.cumsum):
        for axis in (2, -3, 2**40):
            with helpers.refused(device, np.exceptions.AxisError, x, match="axis"):
                function(x, axis=axis)
        with helpers.refused(device, TypeError, x):
            function(x, axis=1.0)
        with helpers.refused(device, ValueError, x, match="shape"):
            function(x, axis=0, out=put(device, np.zeros((2, 2), np.float32)))
        with helpers.refused(device, TypeError, x, match="same_kind"):
            function(x, axis=0, out=put(device, np.zeros((2, 3), np.int32)))
