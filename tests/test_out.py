"""`out=`: where results go, which dtypes they may be cast to, and operands that overlap them.

The rule is one for all functions: the result is as if the operands had been copied first, and after
a refusal nothing has changed.
"""

import helpers
import numpy as np
import pytest
from helpers import DTYPES, FLOATS, NUMBERS, assert_same, put, rounded, widened

import pyvecgpu as vg

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)

# name: (function of operands and out, operands' shapes, the result's shape)
FUNCTIONS = {
    "exp": (vg.exp, [(6, 5)], (6, 5)),
    "negative": (vg.negative, [(6, 5)], (6, 5)),
    "add": (vg.add, [(6, 5), (6, 5)], (6, 5)),
    "divide": (vg.divide, [(6, 5), (5,)], (6, 5)),
    "scalar": (lambda x, out=None: vg.multiply(2, x, out=out), [(6, 5)], (6, 5)),
    "where": (lambda a, b, out=None: vg.where(a == a, a, b, out=out), [(6, 5), (6, 1)], (6, 5)),
    "tril": (vg.tril, [(6, 5)], (6, 5)),
    "sum": (lambda x, out=None: vg.sum(x, axis=1, out=out), [(6, 5)], (6,)),
    "mean": (lambda x, out=None: vg.mean(x, axis=0, keepdims=True, out=out), [(6, 5)], (1, 5)),
    "max": (lambda x, out=None: vg.max(x, out=out), [(6, 5)], ()),
    "matmul": (vg.matmul, [(6, 5), (5, 4)], (6, 4)),
    "dense": (
        lambda x, w, b, out=None: vg.dense(x, w, b, "relu", out=out),
        [(6, 5), (4, 5), (4,)],
        (6, 4),
    ),
}


def operands(rng, name, dtype=F32):
    return [helpers.integers(rng, shape, dtype) for shape in FUNCTIONS[name][1]]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_out_is_written_and_returned(device, rng, name):
    function, _, shape = FUNCTIONS[name]
    arrays = [put(device, x) for x in operands(rng, name)]
    expected = helpers.host(function(*arrays))
    out = put(device, np.full(shape, np.nan, np.float32))
    assert function(*arrays, out=out) is out
    assert_same(out, expected)


@pytest.mark.parametrize("layout", ["transposed", "reversed", "stepped", "padded_rows", "shifted"])
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("max",)])
def test_out_with_any_strides(device, rng, name, layout):
    function, _, shape = FUNCTIONS[name]
    arrays = [put(device, x) for x in operands(rng, name)]
    expected = helpers.host(function(*arrays))
    out = helpers.LAYOUTS[layout](device, np.full(shape, np.nan, np.float32))
    function(*arrays, out=out)
    assert_same(out, expected)


@pytest.mark.parametrize("layout", ["stepped", "padded_rows", "reversed"])
def test_elements_between_those_of_out_keep_their_values(device, layout):
    whole = np.full((9, 9), -7, np.int32)
    keys = {
        "stepped": (slice(1, None, 2), slice(None, None, 2)),
        "padded_rows": (slice(2, 7), slice(3, 8)),
        "reversed": (slice(7, 1, -1), slice(None, 0, -1)),
    }[layout]
    array = put(device, whole)
    view = array[keys]
    vg.add(view, 100, out=view)
    whole[keys] += 100
    assert_same(array, whole)


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_out_of_another_dtype(device, rng, dtype, to):
    """Casting rule "same_kind", as NumPy's, and float results rounded to what out holds."""
    a, b = helpers.integers(rng, 37, dtype), helpers.integers(rng, 37, dtype)
    x, y = put(device, a), put(device, b)
    out = put(device, np.ones(37, to))
    kinds = [np.dtype(np.float32) if d == helpers.BFLOAT16 else d for d in (dtype, to)]
    if np.can_cast(*kinds, "same_kind"):
        vg.add(x, y, out=out)
        assert_same(out, (a + b).astype(to))
    else:
        with helpers.refused(device, TypeError, x, y, out, match=rf"{dtype}.*{to}"):
            vg.add(x, y, out=out)


@pytest.mark.parametrize("name", ["sum", "matmul", "dense", "exp", "where"])
def test_results_in_a_narrower_float(device, rng, name):
    function, _, shape = FUNCTIONS[name]
    arrays = [put(device, x) for x in operands(rng, name, F64)]
    out = put(device, np.full(shape, np.nan, np.float32))
    expected = helpers.host(function(*arrays))
    assert expected.dtype == F64
    function(*arrays, out=out)
    assert_same(out, expected.astype(np.float32))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_out_of_the_wrong_shape_or_kind(device, rng, name):
    function, _, shape = FUNCTIONS[name]
    arrays = [put(device, x) for x in operands(rng, name)]
    wrong = put(device, np.ones((*shape, 2), np.float32))
    with helpers.refused(device, ValueError, wrong, *arrays, match=r"out"):
        function(*arrays, out=wrong)
    integer = put(device, np.ones(shape, np.int32))
    with helpers.refused(device, TypeError, integer, *arrays, match="float32.*int32"):
        function(*arrays, out=integer)
    for foreign in (np.ones(shape, np.float32), [1.0], "out"):
        with helpers.refused(device, TypeError, *arrays, match="out"):
            function(*arrays, out=foreign)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_read_only_out(device, rng, name):
    function, _, shape = FUNCTIONS[name]
    arrays = [put(device, x) for x in operands(rng, name)]
    for dtype in (np.float32, np.int32):  # whether or not the result could be cast
        one = put(device, np.ones((1,) * len(shape), dtype))
        out = vg.broadcast_to(one, shape)
        with helpers.refused(device, ValueError, one, *arrays, match="out is read-only"):
            function(*arrays, out=out)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_out_on_another_device(device, rng, name):
    function, _, shape = FUNCTIONS[name]
    arrays = [put(device, x) for x in operands(rng, name)]
    out = vg.ones(shape, device="cpu")
    with helpers.refused(device, ValueError, out, *arrays, match=f"cpu.*{device}|{device}.*cpu"):
        function(*arrays, out=out)
    if len(arrays) > 1:
        arrays[1] = arrays[1].cpu()
        with helpers.refused(device, ValueError, *arrays, match=f"cpu.*{device}|{device}.*cpu"):
            function(*arrays)


def test_numpy_out(device):
    a = np.arange(4, dtype=np.float32)
    out = np.full(4, np.nan, np.float32)
    assert vg.exp(a, out=out, device=device) is out
    assert not np.isnan(out).any()
    locked = np.zeros(4, np.float32)
    locked.flags.writeable = False
    with helpers.refused(device, ValueError, locked):
        vg.add(a, a, out=locked, device=device)
    with helpers.refused(device, ValueError):
        vg.add(a, a, out=np.zeros(3, np.float32), device=device)
    with helpers.refused(device, TypeError):
        vg.add(a, a, out=np.zeros(4, np.int32), device=device)


# ---- Overlap -------------------------------------------------------------------------------------

# Views of 64 elements of one array of 80: (what is read, what is written).
OVERLAPS = {
    "itself": (slice(0, 64), slice(0, 64)),
    "later": (slice(0, 64), slice(1, 65)),
    "earlier": (slice(9, 73), slice(0, 64)),
    "backwards": (slice(0, 64), slice(63, None, -1)),
    "interleaved": (slice(0, 32), slice(0, 64, 2)),
    "apart": (slice(0, 32), slice(40, 72)),
}


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("overlap", OVERLAPS)
def test_overlapping_elementwise(device, rng, overlap, dtype):
    read, written = OVERLAPS[overlap]
    values = helpers.integers(rng, 80, dtype)
    for function in (
        lambda x, out: vg.add(x, x, out=out),
        lambda x, out: vg.negative(x, out=out),
        lambda x, out: vg.multiply(x, 3, out=out),
        lambda x, out: vg.where(x == x, x, x, out=out),
    ):
        array, expected = put(device, values), values.copy()
        result = helpers.host(function(put(device, values)[read], None)).copy()
        expected[written] = result.astype(dtype)
        function(array[read], array[written])
        assert_same(array, expected, overlap)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("overlap", OVERLAPS)
def test_overlapping_assignment(device, rng, overlap, dtype):
    read, written = OVERLAPS[overlap]
    values = helpers.numbers(rng, 80, dtype)
    array, expected = put(device, values), values.copy()
    expected[written] = values[read]
    array[written] = array[read]
    assert_same(array, expected)


@pytest.mark.parametrize("shift", [1, 7, 1000])
def test_overlap_of_many_blocks(device, rng, shift):
    """Elements are moved by more than one thread, block and wave at a time."""
    values = helpers.integers(rng, 20_000, F32)
    array, expected = put(device, values), values.copy()
    expected[shift:] = values[:-shift]
    array[shift:] = array[:-shift]
    assert_same(array, expected)
    expected[:-shift] = expected[shift:] + 1
    vg.add(array[shift:], 1, out=array[:-shift])
    assert_same(array, expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_out_that_is_the_transposed_operand(device, rng, dtype):
    for n in (5, 33, 130):
        values = helpers.integers(rng, (n, n), dtype)
        array = put(device, values)
        vg.add(array, array.T, out=array)
        assert_same(array, values + values.T)
        array[...] = array.T
        assert_same(array, (values + values.T).T)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_out_that_is_an_operand_of_a_product(device, rng, dtype):
    a, b = (helpers.integers(rng, (17, 17), dtype, high=2, low=-2) for _ in range(2))
    x, y = put(device, a), put(device, b)
    vg.matmul(x, y, out=x)
    product = widened(a) @ widened(b)  # at most 68: exact in every dtype
    assert_same(x, product.astype(dtype))
    vg.matmul(x, y, out=y[::-1])
    assert_same(y, rounded(product @ widened(b), dtype)[::-1])
    c = helpers.integers(rng, (9, 9), dtype)
    z = put(device, c)
    vg.dense(z, z, z[0], out=z)
    c = widened(c)
    assert_same(z, rounded(c @ c.T + c[0], dtype))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_out_inside_the_reduced_array(device, rng, dtype):
    values = helpers.integers(rng, (6, 7), dtype, high=6)
    for axis, place in ((0, (2, slice(None))), (1, (slice(None), 3))):
        array, expected = put(device, values), values.copy()
        expected[place] = values.max(axis=axis)
        vg.max(array, axis=axis, out=array[place])
        assert_same(array, expected)


def test_operand_and_out_share_memory_but_not_dtype(device):
    """The result is cast to out's dtype; the operand, which is out, keeps its values until then."""
    x = put(device, np.arange(6, dtype=np.float32))
    vg.add(x, np.arange(6, dtype=np.float64), out=x)
    assert_same(x, np.arange(6, dtype=np.float32) * 2)
