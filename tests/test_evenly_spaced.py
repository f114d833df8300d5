"""arange, linspace, eye and clip by kernels of their own: NumPy's bits, and nothing beside them."""

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import apply

REALS = [dtype for dtype in helpers.DTYPES if dtype.kind != "b"]


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_arange(device, dtype):
    for bounds in ((0,), (1,), (100,), (3, 60), (100, 3, -7), (5, 5), (2, 1), (0, 33, 2)):
        if dtype.kind == "u" and bounds == (100, 3, -7):
            bounds = (100, 3, -9)
        expected = np.arange(*bounds).astype(dtype)
        result = vg.arange(*bounds, dtype=dtype, device=device)
        assert result.dtype == dtype
        helpers.assert_same(result, expected)
    if helpers.is_float(dtype):
        values = 0.1 + np.arange(57, dtype=np.float64) * 0.7
        helpers.assert_same(
            vg.arange(0.1, 40.0, 0.7, dtype=dtype, device=device), values.astype(dtype)
        )


def test_arange_at_the_ends_of_its_dtype(device):
    for dtype in ("int64", "uint64", "int8"):
        limits = np.iinfo(dtype)
        result = vg.arange(limits.max - 5, limits.max + 1, 2, dtype=dtype, device=device)
        assert result.tolist() == [limits.max - 5, limits.max - 3, limits.max - 1]
        result = vg.arange(limits.min + 3, limits.min - 1, -1, dtype=dtype, device=device)
        assert result.tolist() == [limits.min + n for n in (3, 2, 1, 0)]
        with pytest.raises(OverflowError):
            vg.arange(limits.max - 5, limits.max + 2, dtype=dtype, device=device)
    assert vg.arange(1.9, 4.5, dtype="int32", device=device).tolist() == [1, 2, 3]
    assert vg.arange(3, dtype="complex64", device=device).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [None, "float64", "float16"])
def test_linspace(device, dtype):
    bounds = ((0, 1, 50), (-1.5, 7, 33), (3, 3, 4), (2, 1, 1), (2, 1, 0), (1e-3, 1e9, 7))
    for start, stop, num in bounds:
        for endpoint in (True, False):
            values, step = np.linspace(start, stop, num, endpoint=endpoint, retstep=True)
            result, our_step = vg.linspace(
                start, stop, num, endpoint, True, dtype=dtype, device=device
            )
            with np.errstate(over="ignore"):
                helpers.assert_same(result, values.astype(dtype or "float32"))
            assert our_step == step or (np.isnan(step) and np.isnan(our_step))
    assert vg.linspace(0, 5, 3, dtype="int32", device=device).tolist() == [0, 2, 5]
    assert vg.linspace(0, 1j, 3, device=device).tolist() == [0, 0.5j, 1j]


@pytest.mark.parametrize("dtype", helpers.DTYPES + helpers.COMPLEX, ids=str)
def test_eye(device, dtype):
    for rows, columns, k in ((3, 3, 0), (1, 1, 0), (5, 20, 3), (20, 5, -17), (7, 9, 50), (0, 4, 0)):
        expected = np.eye(rows, columns, k).astype(dtype)
        helpers.assert_same(vg.eye(rows, columns, k, dtype=dtype, device=device), expected)
    assert not vg.eye(3, k=2**70, device=device).numpy().any()
    batch = vg.zeros((2, 5, 12), dtype=dtype, device=device)
    part = batch[:, 1:, ::2]
    apply(batch.backend, "eye", part, 1)
    helpers.assert_same(part, np.broadcast_to(np.eye(4, 6, 1).astype(dtype), (2, 4, 6)))
    assert helpers.widened(batch.numpy()[:, 0]).sum() == 0


def test_steps_through_memory(device):
    whole = vg.zeros((50,), dtype="int16", device=device)
    apply(whole.backend, "sequence", whole[3:40:3], 7, -2, None)
    expected = np.zeros(50, np.int16)
    expected[3:40:3] = 7 - 2 * np.arange(13)
    helpers.assert_same(whole, expected)
    apply(whole.backend, "sequence", whole[::-1], 0, 1, None)
    helpers.assert_same(whole, np.arange(50, dtype=np.int16)[::-1])


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_clip(device, rng, dtype):
    x = helpers.integers(rng, (5, 37), dtype)
    views = {"whole": lambda a: a, "rows": lambda a: a[:, 3:], "any": lambda a: a[::-1, ::2].T}
    for low, high in ((1, 4), (None, 3), (2, None), (5, 2)):
        for name, view in views.items():
            expected = helpers.widened(view(x))
            expected = expected if low is None else np.maximum(expected, low)
            expected = expected if high is None else np.minimum(expected, high)
            result = vg.clip(view(put(device, x)), low, high)
            helpers.assert_same(result, expected.astype(dtype)), name
            out = view(put(device, np.zeros_like(x)))
            assert vg.clip(view(put(device, x)), low, high, out=out) is out
            helpers.assert_same(out, expected.astype(dtype))


def test_clip_of_special_values(device):
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 0.3], np.float32)
    helpers.assert_same(
        vg.clip(put(device, x), -1, 1.0), np.array([np.nan, 1, -1, -0.0, 0.0, 0.3], np.float32)
    )
    assert np.isnan(vg.clip(put(device, x), np.nan, None).numpy()).all()
    for zero in (0.0, -0.0):
        composed = vg.minimum(vg.maximum(put(device, x), zero), 2.0)
        assert helpers.bits(vg.clip(put(device, x), zero, 2.0)) == helpers.bits(composed)
    integers = put(device, np.array([1, 200], np.uint8))
    assert vg.clip(integers, 0.5, 3).tolist() == [1.0, 3.0]
    with pytest.raises(OverflowError):
        vg.clip(integers, 0, 300)
    half = vg.clip(put(device, np.array([0.2, 5.0], np.float16)), 0.1, 1e9)
    assert half.dtype == np.float16 and half.tolist() == [float(np.float16(0.2)), 5.0]


@pytest.mark.devices("sim", "cuda")
def test_one_launch(device):
    x = vg.ones((10, 10), device=device)

    def launches(call):
        before = vg.counters(device)
        call()
        now = vg.counters(device)
        assert now["copies_to_device"] == before["copies_to_device"], "a copy from the host"
        return now["launches"] - before["launches"]

    assert launches(lambda: vg.arange(1000, device=device)) == 1
    assert launches(lambda: vg.arange(0.5, 9, 0.1, device=device)) == 1
    assert launches(lambda: vg.linspace(0, 1, 1000, device=device)) == 1
    assert launches(lambda: vg.eye(30, dtype="int8", device=device)) == 1
    assert launches(lambda: vg.clip(x, 0.5, 2)) == 1
