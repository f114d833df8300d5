"""Softmax and its kin by the kernels' ways: rows in registers, in shared memory, and read twice.

The reference is NumPy in long doubles, as its sums of columns are one chain each. What a way may
round is the same for all of them, so a row has to be near the reference whatever its length, its
neighbours and its place in memory are.
"""

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOATS = [dtype for dtype in helpers.DTYPES if helpers.is_float(dtype)]
LENGTHS = (1, 2, 3, 4, 5, 31, 63, 127, 129, 500, 513, 1023, 1025, 2050, 5000)


def exact(x, axis):
    """(softmax, its logarithm, logsumexp with the axes kept), in more digits than any result."""
    x = helpers.widened(x).astype(np.longdouble)
    most = x.max(axis, keepdims=True)
    total = most + np.log(np.exp(x - most).sum(axis, keepdims=True))
    return np.exp(x - total), x - total, total


def check(array, x, axis, message=""):
    dtype = x.dtype
    unit = helpers.UNIT_ROUNDOFF[dtype]
    soft, logs, total = exact(x, axis)
    least = 2.0**-24 if dtype.itemsize == 2 else 2.0**-126
    size = 1 + np.abs(logs)
    results = vg.softmax(array, axis), vg.log_softmax(array, axis)
    assert results[0].dtype == dtype == results[1].dtype, message
    helpers.assert_within(results[0], soft, 16 * unit * soft * size + least, message)
    helpers.assert_within(results[1], logs, 16 * unit * size, message)
    sums = vg.logsumexp(array, axis, keepdims=True)
    helpers.assert_within(sums, total, 16 * unit * (1 + np.abs(total)), message)
    assert vg.logsumexp(array, axis).shape == np.squeeze(total, axis).shape


def drawn(rng, dtype, shape):
    return (rng.standard_normal(shape) * 4).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_of_every_length(device, rng, dtype):
    for length in LENGTHS:
        x = drawn(rng, dtype, (3, length))
        check(put(device, x), x, -1, f"{length}")
        wide = np.zeros((3, length + 5), dtype)
        wide[:, 3:-2] = x
        check(put(device, wide)[:, 3:-2], x, 1, f"{length}, rows of a larger array")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_that_are_too_long_for_registers(device, rng, dtype):
    """And, of 200,000 elements of any dtype, for the shared memory of any card besides."""
    for length in (17_000, 33_001, 70_000, 200_000):
        x = drawn(rng, dtype, (1, length))
        check(put(device, x), x, 1, f"{length}")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_row_alone_is_as_among_others(device, rng, dtype):
    """To the bit, wherever rows begin: who adds what depends on their length alone."""
    for length in (6, 33, 190, 862, 1031, 1032, 4097, 12_290, 16_384, 17_001):
        x = drawn(rng, dtype, (3, length))
        among, second = put(device, x), put(device, x[1:2])
        aside = put(device, np.concatenate([x[0, :3], x[1]]))[3:].reshape((1, length))
        for function in (vg.softmax, vg.log_softmax):
            expected = function(second, -1).numpy()
            for place in (function(among, -1)[1:2], function(aside, -1)):
                np.testing.assert_array_equal(place.numpy(), expected, err_msg=f"{length}")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_any_axes_and_layouts(device, rng, dtype):
    x = drawn(rng, dtype, (5, 6, 7))
    for axis in (0, 1, 2, (0, 1), (0, 2), (1, 2), None):
        if axis is not None:
            check(put(device, x), x, axis, f"{axis}")
            turned = put(device, np.ascontiguousarray(x.T))
            check(vg.permute_dims(turned, (2, 1, 0)), x, axis, f"{axis}, transposed")
            check(put(device, np.flip(x))[::-1, ::-1, ::-1], x, axis, f"{axis}, turned round")
        every = axis if axis is not None else (0, 1, 2)
        result = vg.softmax(put(device, x), axis)
        unit = helpers.UNIT_ROUNDOFF[dtype]
        helpers.assert_within(result, exact(x, every)[0], 64 * unit)
    row = drawn(rng, dtype, (9,))
    check(vg.broadcast_to(put(device, row), (4, 9)), np.broadcast_to(row, (4, 9)), 1, "repeated")
    tall = drawn(rng, dtype, (3000, 2))
    check(put(device, tall), tall, 0, "tall columns")


def test_a_row_alone_and_in_a_batch(device, rng):
    """The same bits, wherever it lies: which element is added when depends on the length alone."""
    for length in (7, 100, 900, 3000, 20_000):
        x = drawn(rng, "float32", (5, length))
        array = put(device, x)
        shifted = put(device, np.concatenate([np.zeros(1, "float32"), x[3]]))[1:]
        for function in (vg.softmax, vg.log_softmax, vg.logsumexp):
            batch = function(array, 1)[3]
            assert helpers.bits(function(put(device, x[3]), 0)) == helpers.bits(batch), length
            assert helpers.bits(function(shifted, 0)) == helpers.bits(batch), f"{length}, shifted"


def test_out_and_in_place(device, rng):
    x = drawn(rng, "float32", (6, 40))
    expected = vg.softmax(put(device, x)).numpy()
    array = put(device, x)
    assert vg.softmax(array, out=array) is array
    assert np.array_equal(array.numpy(), expected)
    array = put(device, x)
    vg.softmax(array[::-1], out=array)
    assert np.array_equal(array.numpy(), expected[::-1])
    target = put(device, np.zeros((40, 6)))
    vg.softmax(put(device, x), out=target.T)
    assert np.array_equal(target.numpy(), expected.T.astype(np.float64))


@pytest.mark.parametrize("length", [5, 40, 600, 3000, 40_000])
def test_infinities_and_nan(device, length):
    x = np.zeros((5, length), np.float32)
    x[0, 2], x[1, 3], x[2], x[3, :4] = np.inf, np.nan, -np.inf, -np.inf
    array = put(device, x)
    for function in (vg.softmax, vg.log_softmax):
        rows = function(array, 1).numpy()
        assert np.isnan(rows[:3]).all()
        assert not np.isnan(rows[3:]).any()
    assert (vg.softmax(array, 1).numpy()[3, :4] == 0).all()
    assert (vg.log_softmax(array, 1).numpy()[3, :4] == -np.inf).all()
    sums = vg.logsumexp(array, 1).numpy()
    assert sums[0] == np.inf and np.isnan(sums[1]) and sums[2] == -np.inf
    for function in (vg.softmax, vg.log_softmax):  # columns go another way
        columns = function(vg.matrix_transpose(array).copy(), 0).numpy()
        assert np.array_equal(columns.T, function(array, 1).numpy(), equal_nan=True) or (
            np.isnan(columns.T[:3]).all() and not np.isnan(columns.T[3:]).any()
        )


def test_far_from_zero(device):
    """What is added to all elements makes no difference, but for their own rounding."""
    x = np.arange(12.0).reshape(3, 4)
    for offset in (0.0, 1e4, -1e4, 1e15):
        for axis in (0, 1):
            expected = exact(x, axis)[0]
            result = vg.softmax(put(device, x + offset), axis)
            helpers.assert_within(result, expected, 1e-14)


def test_integers(device, rng):
    for dtype in ("bool", "int8", "uint64"):
        x = rng.integers(0, 2, (4, 30)).astype(dtype)
        result = vg.softmax(put(device, x))
        assert result.dtype == vg.get_default_dtype()
        helpers.assert_within(result, exact(x.astype(np.float64), 1)[0], 1e-6)


def test_nothing(device):
    empty = put(device, np.zeros((0, 3), np.float32))
    assert vg.softmax(empty, 1).shape == (0, 3) and vg.logsumexp(empty, 1).shape == (0,)
    with pytest.raises(ValueError, match="zero-size"):
        vg.logsumexp(empty, 0)
    for function in (vg.softmax, vg.log_softmax):
        for shape, axis in (((0, 3), 0), ((3, 0), 1), ((3, 0), 0), ((2, 0, 4), (0, 1))):
            x = put(device, np.zeros(shape, np.float16)).requires_grad_()
            result = function(x, axis)
            assert result.shape == shape and result.dtype == "float16"
            result.sum().backward()
            assert x.grad.shape == shape
        assert function(put(device, np.zeros((0, 2), np.int8)), 0).dtype == "float32"
        with pytest.raises(TypeError):
            function(put(device, np.ones((0, 3), np.complex64)), 0)
    for function in (vg.softmax, vg.log_softmax, vg.logsumexp):
        with pytest.raises(np.exceptions.AxisError):
            function(empty, 2)
        with pytest.raises(TypeError):
            function(put(device, np.ones(3, np.complex64)), 0)
        with pytest.raises(ValueError, match="duplicate"):
            function(put(device, np.ones((3, 3))), (0, 0))
    number = put(device, np.float64(3.0) * np.ones(()))
    assert vg.softmax(number, None).item() == 1 and vg.logsumexp(number).item() == 3


@pytest.mark.devices("sim", "cuda")
def test_launches(device):
    """One for rows and for short columns; a reduction and a map for others."""

    def launches(call, array):
        before = vg.counters(device)["launches"]
        call(array)
        return vg.counters(device)["launches"] - before

    rows, columns = (lambda x: vg.softmax(x, 1)), (lambda x: vg.log_softmax(x, 0))
    for length in (10, 1000, 20_000):
        x = vg.zeros((3, length), device=device)
        assert launches(rows, x) == 1
        assert launches(lambda x: vg.logsumexp(x, 1), x[:, :4000]) == 1
        assert launches(columns, x) == 1
    assert launches(columns, vg.zeros((2000, 9), device=device)) == 1
    assert launches(columns, vg.zeros((20_000, 9), device=device)) == 2 + 1  # it is in chunks


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    "dtype, length", [("float32", 28_672), ("float16", 40_960), ("float64", 14_336)]
)
def test_the_first_row_of_a_process_may_need_nearly_all_shared_memory(device, dtype, length):
    """48 KiB less what the kernel has besides: as much as is there without asking for more."""
    code = f"""
import json
import pyvecgpu as vg
row = vg.zeros((2, {length}), dtype={dtype!r}, device={device!r})
print(json.dumps(vg.softmax(row, 1)[1, -1].item() * {length}))
"""
    assert abs(helpers.child_result(code) - 1) <= 1e-3


# The order of elements decides which of them a sum of exponentials is beside.
ORDERS = {
    "rising": lambda rng, n: np.sort(rng.standard_normal(n)) * 30,
    "rising slowly": lambda rng, n: np.arange(n) * 1e-4,
    "falling": lambda rng, n: -np.sort(rng.standard_normal(n)) * 30,
    "by steps of a margin": lambda rng, n: np.arange(n) % 7 * 4.0,
    "a large one last": lambda rng, n: np.append(rng.standard_normal(n - 1), 90.0),
    "all equal": lambda rng, n: np.full(n, -3.25),
    "far below 0": lambda rng, n: rng.standard_normal(n) - 2000,
    "near 0": lambda rng, n: rng.standard_normal(n) * 3 - np.log(n),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
def test_logarithms_of_sums_in_any_order(device, rng, dtype, order):
    for rows, length in ((3, 7), (5, 64), (200, 1024), (2, 5000), (1, 70_000)):
        x = np.array([ORDERS[order](rng, length) for _ in range(rows)]).astype(dtype)
        exact = x.astype(np.float64)
        most = exact.max(axis=1, keepdims=True)
        wanted = (most + np.log(np.exp(exact - most).sum(axis=1, keepdims=True)))[:, 0]
        eps = np.finfo(dtype).eps
        allowed = eps * np.abs(wanted) + 6 * max(eps if dtype == "float64" else 0, 2.0**-23)
        for array in (put(device, x), put(device, x.T.copy()).T):
            found = vg.logsumexp(array, axis=1).numpy()
            assert (np.abs(found - wanted) <= allowed).all(), (rows, length)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
def test_logarithms_of_sums_of_what_is_not_finite(device, dtype):
    most = float(np.finfo(dtype).max)
    cases = {
        (np.inf, 1): np.inf, (1, np.inf, np.inf): np.inf, (np.inf, -np.inf): np.inf,
        (np.nan, 1): np.nan, (1, np.nan, np.inf): np.nan, (np.inf, np.nan): np.nan,
        (-np.inf,) * 3: -np.inf, (-np.inf, 2.0): 2.0, (2.0, -np.inf): 2.0,
        (most, 1.0): most, (1.0, most): most, (most, np.inf): np.inf, (-most, -np.inf): -most,
        (-most, most): most, (-np.inf, np.nan): np.nan,
    }  # fmt: skip
    for row, wanted in cases.items():
        for length in (len(row), 40, 1500):
            values = np.full(length, -np.inf)
            values[np.linspace(0, length - 1, len(row)).astype(int)] = row
            found = vg.logsumexp(put(device, values.astype(dtype))).item()
            assert found == wanted or (np.isnan(found) and np.isnan(wanted)), (row, length, found)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("length", (6, 90, 1024))
def test_logarithms_of_sums_into_a_view(device, rng, dtype, length):
    """Whose elements are apart: what lies between them stays."""
    x = drawn(rng, dtype, (7, length))
    out = vg.full((7, 3), 5.0, dtype=dtype, device=device)
    vg.logsumexp(put(device, x), axis=1, out=out[:, 1])
    found = helpers.widened(out.numpy())
    assert (found[:, [0, 2]] == 5).all()
    wanted = exact(x, 1)[2][:, 0]
    unit = helpers.UNIT_ROUNDOFF[x.dtype]
    assert not (np.abs(found[:, 1] - wanted) > 16 * unit * (1 + np.abs(wanted))).any()
