"""The kernel that joins: one launch, at any offset into memory, of any number of parts."""

import numpy as np
import pytest
from helpers import put, refused

import pyvecgpu as vg

DTYPES = ["bool", "int8", "float16", "int32", "float64", "complex128"]


def numbered(rng, shape, dtype):
    return rng.integers(0, 100, shape).astype(dtype)


def views(device, values):
    """Arrays with these values that begin and step through memory in several ways."""
    yield put(device, values)
    for before in (1, 3):
        wide = np.zeros((*values.shape[:-1], values.shape[-1] + 2 * before), values.dtype)
        wide[..., before:-before] = values
        yield put(device, wide)[..., before:-before]
    yield vg.flip(put(device, np.flip(values, 0)), axis=0)
    yield vg.permute_dims(put(device, np.ascontiguousarray(values.T)), range(values.ndim)[::-1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_along_every_axis(device, rng, dtype):
    for shape in ((7,), (5, 9), (3, 4, 6)):
        one = numbered(rng, shape, dtype)
        for axis in range(len(shape)):
            other = numbered(rng, [n + 2 * (i == axis) for i, n in enumerate(shape)], dtype)
            for a in views(device, one):
                for b in views(device, other):
                    expected = np.concatenate([one, other, one], axis)
                    assert np.array_equal(vg.concat([a, b, a], axis=axis).numpy(), expected)
        for axis in range(len(shape) + 1):
            for a in views(device, one):
                expected = np.stack([one, one[::-1]], axis)
                assert np.array_equal(vg.stack([a, a[::-1]], axis=axis).numpy(), expected)


def test_broadcast_parts(device, rng):
    row = numbered(rng, (5,), "float32")
    wide = vg.broadcast_to(put(device, row), (4, 5))
    expected = np.broadcast_to(row, (4, 5))
    for axis in (0, 1):
        result = vg.concat([wide, wide], axis=axis).numpy()
        assert np.array_equal(result, np.concatenate([expected, expected], axis))
    assert np.array_equal(vg.stack([wide, wide], axis=2).numpy(), np.stack([expected] * 2, 2))


@pytest.mark.parametrize("count", [63, 64, 65, 200])
def test_many_parts(device, rng, count):
    parts = [numbered(rng, (3, int(n)), "int16") for n in rng.integers(0, 4, count)]
    arrays = [put(device, part) for part in parts]
    assert np.array_equal(vg.concat(arrays, axis=1).numpy(), np.concatenate(parts, 1))
    assert np.array_equal(vg.concat(arrays[:count], axis=None).numpy(), np.concatenate(parts, None))
    same = [numbered(rng, (5,), "uint8") for _ in range(count)]
    assert np.array_equal(vg.stack([put(device, x) for x in same], 1).numpy(), np.stack(same, 1))


@pytest.mark.devices("sim", "cuda")
def test_one_launch(device, rng):
    """Contiguous parts, rows of larger arrays, and a roll."""
    a, b = put(device, numbered(rng, (6, 10), "float32")), put(device, numbered(rng, (6, 4), "f4"))

    def launches(call):
        before = vg.counters(device)["launches"]
        call()
        return vg.counters(device)["launches"] - before

    assert launches(lambda: vg.concat([a, b, a[:, 2:5]], axis=1)) == 1
    assert launches(lambda: vg.concat([a, a[:2], a], axis=0)) == 1
    assert launches(lambda: vg.stack([a, a, a], axis=2)) == 1
    assert launches(lambda: vg.vstack([a[0], a[1]])) == 1
    assert launches(lambda: vg.roll(a, 3, axis=1)) == 1
    assert launches(lambda: vg.concat([a, vg.astype(b, "int8")], axis=1)) == 1 + 2


def test_dtypes_are_promoted(device):
    parts = [np.array([1, 2], "int8"), np.array([300], "int16"), np.array([0.5], "float32")]
    result = vg.concat([put(device, x) for x in parts])
    assert result.dtype == np.float32 and result.tolist() == [1, 2, 300, 0.5]
    assert vg.concat([put(device, x) for x in parts], dtype="int16").tolist() == [1, 2, 300, 0]


def test_what_is_refused(device):
    a, b = put(device, np.ones((2, 3))), put(device, np.ones((2, 4)))
    number = put(device, np.array(1.0, np.float32))
    with pytest.raises(ValueError, match="axis 1 the array at index 0 has size 3"):
        vg.concat([a, b])
    with pytest.raises(ValueError, match="one shape"):
        vg.stack([a, b])
    with pytest.raises(ValueError, match="as many dimensions"):
        vg.concat([a, number])
    with pytest.raises(ValueError, match="zero-dimensional"):
        vg.concat([number, number])
    with refused(device, np.exceptions.AxisError, a):
        vg.concat([a, a], axis=2)
    with refused(device, np.exceptions.AxisError, a):
        vg.stack([a, a], axis=-4)
    with refused(device, TypeError, a):
        vg.concat([a, a], axis=True)
