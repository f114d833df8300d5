"""Products: exact on small integers, within k * u * (|A| |B|) on random data, any shapes.

matmul, its `out=` and `precision=`; test_matmul_kernels.py has each kernel by itself, and
test_contractions.py vecdot and tensordot.
"""

import ctypes
import itertools
import threading

import helpers
import numpy as np
import pytest
from helpers import DTYPES, FLOATS, assert_same, assert_within, put
from references import product_reference

import pyvecgpu as vg
from pyvecgpu.dispatch import observe
from pyvecgpu.native import library
from pyvecgpu.native.abi import Option

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
    for foreign in (2, 2.0, "12", None):
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


# ---- Where results go ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("layout", helpers.LAYOUTS)
def test_out_of_every_layout(device, rng, layout, dtype):
    """Rows with gaps, columns, backwards: single products, vectors and batches."""
    dtype = np.dtype(dtype)
    for shapes in (((9, 37), (37, 23)), ((37,), (37, 5)), ((3, 5, 7), (7, 4)),
                   ((2, 1, 5, 3), (4, 3, 6))):  # fmt: skip
        a, b = (helpers.integers(rng, shape, dtype) for shape in shapes)
        expected = nonzero(product_reference(a, b))
        out = helpers.LAYOUTS[layout](device, np.full(expected.shape, 99, dtype))
        assert vg.matmul(put(device, a), put(device, b), out=out) is out
        assert_same(out, expected, f"{shapes}")


def test_what_lies_between_the_rows_of_out_stays(device, rng):
    a, b = (helpers.integers(rng, s, np.dtype(np.float32)) for s in ((3, 9, 7), (7, 8)))
    for keys in (
        (slice(1, 4), slice(0, 9), slice(2, 10)),
        (slice(3, 0, -1), slice(10, 1, -1), slice(11, None, -1)),
        (slice(0, 5, 2), slice(1, None, 2), slice(3, None, 2)),
    ):
        whole = np.full((5, 19, 20), -99, np.float32)
        array = put(device, whole)
        shape = whole[keys].shape
        left, right = a[:, : shape[1]], b[:, : shape[2]]
        if shape[2] > 8:
            right = np.concatenate([b, b], axis=1)[:, : shape[2]]
        vg.matmul(put(device, left), put(device, right), out=array[keys])
        whole[keys] = product_reference(left, right)
        assert_same(array, whole, f"{keys}")


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32"])
def test_out_that_overlaps_the_operands(device, rng, dtype):
    """The result is as if the operands had been copied first."""
    dtype = np.dtype(dtype)
    values = helpers.integers(rng, (4, 12, 12), dtype, high=3)
    for read, other, written in (
        ((0,), (1,), (0,)),
        ((0,), (0,), (0,)),
        ((0, slice(0, 6)), (1,), (0, slice(3, 9))),
        ((0,), (1,), (1, slice(None, None, -1))),
        ((slice(0, 3),), (0,), (slice(1, 4),)),
        ((slice(0, 2),), (slice(2, 4),), (slice(1, 3), slice(None), slice(None, None, -1))),
    ):
        array, expected = put(device, values), values.copy()
        expected[written] = product_reference(values[read], values[other])
        vg.matmul(array[read], array[other], out=array[written])
        assert_same(array, expected, f"{read} {other} {written}")
        array = put(device, values)
        vg.matmul(array[0], array[0].T, out=array[0].T)
        assert_same(array[0], product_reference(values[0], values[0].T).T)


@pytest.mark.parametrize("dtype", ["int64", "float16", "float32"])
def test_broadcast_batches_that_are_copied(device, rng, dtype):
    """An operand that cannot be read in place, and that the batch repeats."""
    dtype = np.dtype(dtype)
    a, b = helpers.integers(rng, (2, 1, 5, 7), dtype), helpers.integers(rng, (1, 3, 7, 4), dtype)
    for one, other in itertools.product(("stepped", "reversed"), ("contiguous", "stepped")):
        x, y = helpers.LAYOUTS[one](device, a), helpers.LAYOUTS[other](device, b)
        expected = nonzero(product_reference(a, b))
        assert_same(x @ y, expected)
        assert_same(vg.broadcast_to(x, (2, 3, 5, 7)) @ vg.broadcast_to(y, (2, 3, 7, 4)), expected)
        assert_same(vg.broadcast_to(x[0, 0], (6, 5, 7)) @ y[0, 0],
                    np.broadcast_to(product_reference(a[0, 0], b[0, 0]), (6, 5, 4)))  # fmt: skip


# ---- Precision -----------------------------------------------------------------------------------

PRECISIONS = {name: rank for rank, name in enumerate(
    ("ieee", "float32", "fast32", "tf32", "bf16", "fp16"), 1)}  # fmt: skip
UNIT = {"ieee": 2.0**-24, "float32": 2.0**-24, "fast32": 2.0**-22, "tf32": 2.0**-11,
        "bf16": 2.0**-8, "fp16": 2.0**-11}  # fmt: skip


@pytest.fixture
def recorded(device, monkeypatch):
    """The codes of the precisions that reach the device's backend."""
    backend, codes = vg.Device(device).backend, []

    def record(name, position):
        method = getattr(backend, name)

        def call(*arguments):
            codes.append(arguments[position])
            return method(*arguments)

        monkeypatch.setattr(backend, name, call)

    for name, position in (("matmul", 2), ("dense", 4), ("dense_backward", 5)):
        record(name, position)
    if backend.on_card:
        backend = backend.functions
        record("pvg_vecdot", 2)
    yield codes
    vg.set_matmul_precision("float32")


@pytest.mark.parametrize("name", PRECISIONS)
def test_precisions_go_down_to_the_device(device, recorded, name):
    x = vg.ones((4, 4), device=device)
    layer, backward = vg.nn.functional.dense, vg.nn.functional.dense_backward
    calls = [
        lambda **p: vg.matmul(x, x, **p),
        lambda **p: vg.vecdot(x, x, **p),
        lambda **p: vg.tensordot(x, x, **p),
        lambda **p: layer(x, x, **p),
        lambda **p: backward(x, x, x, **p),
    ]
    for call in calls:
        call(precision=name)
    assert recorded == [PRECISIONS[name]] * len(calls)
    vg.set_matmul_precision(name)
    assert vg.get_matmul_precision() == name
    threads = [threading.Thread(target=call) for call in [*calls, lambda: x @ x]]
    with observe(lambda call: None):  # the CPU device's short way asks no backend
        for thread in threads:
            thread.start()
            thread.join()
    assert recorded[len(calls) :] == [0] * (len(calls) + 1), "0 is what the library was told"
    for loaded in library.loaded():
        code = ctypes.c_int64()
        assert loaded.pvg_get_option(Option.OPTION_MATMUL_PRECISION, code) == 0
        assert code.value == PRECISIONS[name], "the whole process has it"
    vg.matmul(x, x, precision="ieee")
    assert recorded[-1] == PRECISIONS["ieee"]


def test_precisions_that_do_not_exist(device, recorded):
    x = put(device, np.ones((2, 2), np.float32))
    for wrong in ("", "FLOAT32", "fp32", "float64", 2, 1.0, ["ieee"], b"ieee"):
        for function in (vg.matmul, vg.vecdot, vg.tensordot, vg.nn.functional.dense):
            with helpers.refused(device, ValueError, x) as caught:
                function(x, x, precision=wrong)
            assert all(repr(name) in str(caught.value) for name in PRECISIONS)
        with pytest.raises(ValueError, match="precision can be"):
            vg.set_matmul_precision(wrong)
        assert vg.get_matmul_precision() == "float32"
    with pytest.raises(ValueError, match="None"):
        vg.set_matmul_precision(None)
    assert recorded == []


@pytest.mark.parametrize("name", PRECISIONS)
def test_precisions_are_as_accurate_as_they_say(device, rng, name):
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((70, 300), (300, 90)))
    result = helpers.host(vg.matmul(put(device, a), put(device, b), precision=name))
    a, b = a.astype(np.float64), b.astype(np.float64)
    size = np.abs(a) @ np.abs(b)
    if name == "fast32":
        size = 300 * np.max(np.abs(a), axis=1, keepdims=True) * np.max(np.abs(b), axis=0)
    rounding = 0 if UNIT[name] == 2.0**-24 else 2 * UNIT[name]
    assert_within(result, a @ b, (rounding + (np.sqrt(300) + 8) * 2.0**-24) * size)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != np.float32], ids=str)
def test_other_dtypes_have_one_precision(device, rng, dtype):
    a, b = helpers.numbers(rng, (20, 30), dtype), helpers.numbers(rng, (30, 20), dtype)
    x, y = put(device, a), put(device, b)
    expected = helpers.bits(x @ y)
    for name in PRECISIONS:
        assert helpers.bits(vg.matmul(x, y, precision=name)) == expected
