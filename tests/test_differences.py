"""Differences, gradients, integrals, convolutions, cross products and powers, against NumPy.

Small whole numbers, of which differences and products are exact in every dtype; NumPy computes in
float64 what is float here in the default float or a half.
"""

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, put, refused

import pyvecgpu as vg

ROUNDS = 20
SHAPES = [(4,), (3, 5), (2, 3, 4), (1,), (0,), (2, 0), (6,), (4, 3)]


def wide(x):
    return helpers.host(x).astype(np.float64)


def float_of(dtype):
    return dtype if helpers.is_float(dtype) else np.dtype(vg.get_default_dtype().name)


def draw(rng, device, dtype, shape):
    x = helpers.integers(rng, shape, dtype)
    layout = list(LAYOUTS)[rng.integers(len(LAYOUTS))] if x.size else "contiguous"
    return x, LAYOUTS[layout](device, x)


def near(result, expected, dtype, message=""):
    assert isinstance(result, vg.Array) and result.dtype == dtype, f"{result.dtype} {message}"
    expected = np.asarray(expected, np.float64)
    tolerance = 8 * helpers.UNIT_ROUNDOFF[dtype] * np.maximum(np.abs(expected), 16.0)
    helpers.assert_within(wide(result), expected, tolerance, message)


def same(result, expected):
    """The same values and shape; NumPy knows no differences of bfloat16 and the like."""
    assert isinstance(result, vg.Array) and result.shape == np.shape(expected)
    assert np.array_equal(wide(result), np.asarray(expected).astype(np.float64))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_diff(device, rng, dtype):
    for _ in range(ROUNDS):
        x, a = draw(rng, device, dtype, SHAPES[rng.integers(len(SHAPES))])
        axis, n = int(rng.integers(-x.ndim, x.ndim)), int(rng.integers(0, 4))
        options, given = {}, {}
        for name in ("prepend", "append"):
            if rng.random() < 0.4:
                shape = list(x.shape)
                shape[axis] = int(rng.integers(3))
                options[name], given[name] = draw(rng, device, dtype, tuple(shape))
            elif rng.random() < 0.2:
                options[name] = given[name] = True if dtype.kind == "b" else 3
                options[name] = np.array(options[name], dtype)
        result = vg.diff(a, n, axis, **given)
        same(result, np.diff(x, n, axis, **options))
        assert result.dtype == dtype


def test_diff_of_other_kinds(device):
    x = put(device, np.array([1, 4, 9], np.uint8))
    assert vg.diff(x, append=x[:1], prepend=0).tolist() == [1, 3, 5, 248]
    assert vg.diff(x, append=1.5).dtype == vg.get_default_dtype()
    assert vg.diff(x, 100).shape == (0,) == vg.diff(x, 2**70).shape
    assert isinstance(vg.diff(x.numpy()), np.ndarray)
    for call, error in (
        (lambda: vg.diff(x, -1), ValueError),
        (lambda: vg.diff(x[0]), ValueError),
        (lambda: vg.diff(x, axis=1), np.exceptions.AxisError),
        (lambda: vg.diff(1, prepend=x), TypeError),
        (lambda: vg.diff(x, append="1"), TypeError),
        (lambda: vg.diff(x, 1.5), TypeError),
        (lambda: vg.diff(x[None], append=x), ValueError),
        (lambda: vg.ediff1d(x == x), TypeError),
    ):
        with refused(device, error, x):
            call()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "b"], ids=str)
def test_ediff1d(device, rng, dtype):
    for _ in range(ROUNDS):
        x, a = draw(rng, device, dtype, SHAPES[rng.integers(len(SHAPES))])
        y, b = draw(rng, device, dtype, (int(rng.integers(1, 3)),))
        for ours, numpys in (
            ({}, {}),
            ({"to_end": 2}, {"to_end": dtype.type(2)}),
            ({"to_begin": b}, {"to_begin": y}),
            ({"to_begin": 1, "to_end": b}, {"to_begin": dtype.type(1), "to_end": y}),
        ):
            result = vg.ediff1d(a, **ours)
            same(result, np.ediff1d(x, **numpys))
            assert result.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradient(device, rng, dtype):
    for number in range(ROUNDS):
        shape = [(7,), (4, 5), (3, 4, 5)][number % 3]
        x, a = draw(rng, device, dtype, shape)
        axis = None if number % 2 else int(rng.integers(-x.ndim, x.ndim))
        axes = range(x.ndim) if axis is None else [axis]
        steps = [float(rng.integers(1, 4)) if rng.random() < 0.5 else
                 np.cumsum(rng.integers(1, 4, x.shape[one])).astype(np.float64)
                 for one in axes]  # fmt: skip
        steps = [[], [2.0], steps][rng.integers(3)]
        given = [put(device, one) if isinstance(one, np.ndarray) else one for one in steps]
        options = {"axis": axis, "edge_order": 1 + number % 2}
        expected = np.gradient(wide(x), *steps, **options)
        result = vg.gradient(a, *given, **options)
        assert isinstance(result, tuple) == isinstance(expected, tuple)
        for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (result, expected)),
                              strict=True):  # fmt: skip
            near(one, other, float_of(dtype), f"{x.shape} {steps} {options}")


def test_gradients_that_are_refused(device):
    x = put(device, np.ones((3, 4)))
    assert isinstance(vg.gradient(x, put(device, np.array(2.0)), 1, axis=(1, 0)), tuple)
    for call, error in (
        (lambda: vg.gradient(x, 1, 2, 3), TypeError),
        (lambda: vg.gradient(x, x, 1), ValueError),
        (lambda: vg.gradient(x, x[0], 1), ValueError),
        (lambda: vg.gradient(x, edge_order=3), ValueError),
        (lambda: vg.gradient(x[:1]), ValueError),
        (lambda: vg.gradient(x[:2], edge_order=2), ValueError),
        (lambda: vg.gradient(x, axis=2), np.exceptions.AxisError),
        (lambda: vg.gradient(1, x), TypeError),
    ):
        with refused(device, error, x):
            call()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_trapezoid(device, rng, dtype):
    for number in range(ROUNDS):
        shape = [(7,), (4, 5), (3, 4, 5), (1,)][number % 4]
        y, a = draw(rng, device, dtype, shape)
        axis = int(rng.integers(-y.ndim, y.ndim))
        near(vg.trapezoid(a, axis=axis), np.trapezoid(wide(y), axis=axis), float_of(dtype))
        result = vg.trapezoid(a, dx=0.5, axis=axis)
        near(result, np.trapezoid(wide(y), dx=0.5, axis=axis), float_of(dtype))
        kind = helpers.result_type(dtype, np.dtype(np.float32))
        for lengths in (y.shape, (y.shape[axis],)):
            x = rng.integers(-5, 5, lengths).astype(np.float32)
            result = vg.trapezoid(a, put(device, x), axis=axis)
            near(result, np.trapezoid(wide(y), wide(x), axis=axis), kind)


def test_trapezoids_that_are_refused(device):
    x = put(device, np.ones((3, 4)))
    for call, error in (
        (lambda: vg.trapezoid(x[0, 0]), ValueError),
        (lambda: vg.trapezoid(x, 2.0), ValueError),
        (lambda: vg.trapezoid(x, x[0, :3]), ValueError),
        (lambda: vg.trapezoid(1, x), TypeError),
    ):
        with refused(device, error, x):
            call()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_convolve(device, rng, dtype):
    for _ in range(ROUNDS):
        n, m = (int(i) for i in rng.integers(1, 12, 2))
        (x, a), (y, b) = draw(rng, device, dtype, (n,)), draw(rng, device, dtype, (m,))
        for mode in ("full", "same", "valid"):
            result = vg.convolve(a, b, mode)
            expected = np.convolve(x if dtype.kind in "biu" else wide(x), y if dtype.kind in "biu"
                                   else wide(y), mode)  # fmt: skip
            assert result.dtype == dtype
            if dtype == helpers.BFLOAT16:
                expected = expected.astype(dtype)
            same(result, expected)


def test_convolve_in_blocks(device, rng, monkeypatch):
    monkeypatch.setattr(vg.functions.differences, "_BLOCK", 300)
    for dtype in ("int8", "int32", "float32", "bool"):
        x = helpers.integers(rng, 50, np.dtype(dtype))
        y = helpers.integers(rng, 11, np.dtype(dtype))
        result = vg.convolve(put(device, y), put(device, x))
        helpers.assert_same(result, np.convolve(x, y))
    mixed = vg.convolve(put(device, np.arange(3, dtype=np.int8)), np.ones(2))
    assert mixed.tolist() == [0, 1, 3, 2] and mixed.dtype == vg.float64


def test_convolutions_that_are_refused(device):
    x = put(device, np.ones(3))
    for call in (
        lambda: vg.convolve(x, x, "middle"),
        lambda: vg.convolve(x, x[:0]),
        lambda: vg.convolve(x, x[None]),
        lambda: vg.convolve(x, 1),
    ):
        with refused(device, ValueError, x):
            call()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "b"], ids=str)
def test_cross(device, rng, dtype):
    for _ in range(ROUNDS):
        shapes = [((3,), (3,)), ((4, 3), (3,)), ((2, 4, 3), (4, 3)), ((1, 3), (5, 3))]
        first, second = shapes[rng.integers(4)]
        axisa, axisb = (int(rng.integers(-len(one), len(one))) for one in (first, second))
        (x, _), (y, _) = draw(rng, device, dtype, first), draw(rng, device, dtype, second)
        x, y = np.moveaxis(x, -1, axisa), np.moveaxis(y, -1, axisb)
        options = {"axisa": axisa, "axisb": axisb, "axisc": int(rng.integers(-1, 1))}
        result = vg.cross(put(device, x), put(device, y), **options)
        expected = np.cross(x, y, **options) if dtype.kind in "iu" else np.cross(
            helpers.widened(x), helpers.widened(y), **options)  # fmt: skip
        assert result.dtype == dtype
        same(result, expected)
        square = helpers.integers(rng, (3, 3), dtype)
        for axis in (0, 1):
            same(vg.cross(*[put(device, square)] * 2, axis=axis), np.zeros((3, 3)))


def test_crosses_that_are_refused(device):
    x = put(device, np.ones((2, 3)))
    for call, error in (
        (lambda: vg.cross(x, x[:, :2]), ValueError),
        (lambda: vg.cross(x, 1), TypeError),
        (lambda: vg.cross(x > 0, x > 0), TypeError),
        (lambda: vg.cross(x, x[0, 0]), ValueError),
        (lambda: vg.cross(x, x, axis=2), np.exceptions.AxisError),
    ):
        with refused(device, error, x):
            call()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_vander(device, rng, dtype):
    for n in (0, 1, 4):
        x = helpers.integers(rng, (n,), dtype, -2, 2)
        for count in (None, 0, 1, 3, 5):
            for increasing in (False, True):
                result = vg.vander(put(device, x), count, increasing)
                same(result, np.vander(wide(x), count, increasing))
                narrow = dtype.kind in "bi" or dtype == np.uint8
                assert result.dtype == (np.int64 if narrow else dtype)
    for count, error in ((-1, ValueError), (2**62, ValueError), (1.5, TypeError)):
        with refused(device, error):
            vg.vander(put(device, np.ones(2)), count)
    with refused(device, ValueError):
        vg.vander(put(device, np.ones((2, 2))))
