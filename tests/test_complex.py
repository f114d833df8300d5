"""complex64 and complex128 as dtypes: promotion, scalars, creation, parts, casts, refusals."""

import itertools
import pickle

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, COMPLEX, LAYOUTS, assert_same, put

import pyvecgpu as vg

ARITHMETIC = ("add", "subtract", "multiply", "divide", "equal", "not_equal")
REFUSED = ("less", "greater_equal", "maximum", "minimum", "floor_divide", "remainder", "atan2",
           "hypot", "copysign", "bitwise_and", "bitwise_left_shift")  # fmt: skip
REFUSED_ALONE = ("floor", "ceil", "trunc", "signbit", "bitwise_invert", "max", "min", "argmax",
                 "argmin", "ptp", "fabs", "deg2rad", "relu", "sigmoid")  # fmt: skip


def pairs():
    """Pairs of dtypes of which at least one is complex."""
    for a, b in itertools.product(ALL_DTYPES, ALL_DTYPES):
        if "c" in (a.kind, b.kind):
            yield a, b


@pytest.mark.parametrize("name", ARITHMETIC)
def test_promotion(device, rng, name):
    """The table of dtypes, with values: those that are exact in all of them."""
    for a, b in pairs():
        x, y = helpers.integers(rng, (3, 4), a, 1, 4), helpers.integers(rng, (4,), b, 1, 4)
        dtype = helpers.result_type(a, b)
        expected = getattr(np, name)(x.astype(dtype), y.astype(dtype))
        result = getattr(vg, name)(put(device, x), put(device, y))
        assert result.dtype == expected.dtype, (a, b)
        if name == "divide":
            helpers.assert_within(result, expected, 4 * helpers.UNIT_ROUNDOFF[np.dtype("f4")])
        else:
            assert_same(result, expected, f"{a} {b}")


@pytest.mark.parametrize("name", REFUSED)
def test_pairs_that_are_refused(device, name):
    for dtype in COMPLEX:
        x, y = put(device, np.ones(3, dtype)), put(device, np.ones(3, np.float32))
        for operands in ((x, x), (x, y), (y, x), (x, 2), (y, 2j)):
            with helpers.refused(device, TypeError, x, y, match=name):
                getattr(vg, name)(*operands)


@pytest.mark.parametrize("name", REFUSED_ALONE)
def test_functions_that_need_an_order(device, name):
    function = getattr(vg, name)
    for dtype in COMPLEX:
        x = put(device, np.ones(3, dtype))
        with helpers.refused(device, TypeError, x, match="complex"):
            function(x)


def test_indices_are_not_complex(device):
    x = put(device, np.arange(4.0))
    for key in (np.ones(2, complex), put(device, np.zeros(2, np.complex64))):
        with pytest.raises((TypeError, IndexError)):
            x[key]


# ---- Scalars -------------------------------------------------------------------------------------


@pytest.mark.parametrize("default", [vg.float32, vg.float64], ids=str)
def test_a_python_complex_is_weak(device, default):
    vg.set_default_dtype(default)
    try:
        for dtype in ALL_DTYPES:
            x = put(device, np.ones(3, dtype))
            expected = np.dtype(np.complex128 if dtype.itemsize == 8 else np.complex64)
            if dtype.kind in "biu":
                expected = np.dtype(np.complex64 if default == vg.float32 else np.complex128)
            elif dtype.kind == "c":
                expected = dtype
            for result in (x * 2j, 2j * x, x + 2j, vg.subtract(2j, x), x / 2j):
                assert result.dtype == expected, dtype
            assert_same(x * 2j, np.full(3, 2j, expected))
            assert_same(2j - x, np.full(3, -1 + 2j, expected))
            assert_same(vg.equal(x, 1 + 0j), np.ones(3, bool))
            assert (x == 1j).dtype == vg.bool and not vg.any(x == 1j)
            assert vg.result_type(x, 2j) == expected == vg.where(x == 1, x, 2j).dtype
        assert vg.asarray(1j, device=device).dtype == vg.full(2, 1j, device=device).dtype
        assert vg.asarray(1j).dtype == (vg.complex64 if default == vg.float32 else vg.complex128)
    finally:
        vg.set_default_dtype(vg.float32)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_scalars_beside_complex_arrays(device, dtype):
    x = np.array([1 + 2j, -3j, 0.5], dtype)
    array = put(device, x)
    for scalar in (True, 3, -2.5, 1 - 1j, 2**64, -(2**70), np.float32(2), np.complex64(1j)):
        assert_same(array * scalar, x * scalar, scalar)
        assert_same(scalar + array, scalar + x, scalar)
        assert_same(array == scalar, x == scalar, scalar)
    array += 2j
    array *= 1j
    assert_same(array, (x + 2j) * 1j)


def test_complex_scalars_that_reals_cannot_hold(device):
    for dtype in ("float32", "int64", "bfloat16"):
        x = vg.zeros(3, dtype=dtype, device=device)
        for write in (lambda x: x.fill(1j), lambda x: x.__setitem__(0, 1j),
                      lambda x: vg.full_like(x, 1j), lambda x: vg.add(x, 1j, out=x),
                      lambda x: vg.asarray([1j], dtype=x.dtype, device=device)):  # fmt: skip
            with helpers.refused(device, TypeError, x):
                write(x)
    with helpers.refused(device, TypeError):
        vg.arange(1j, device=device)


# ---- Creation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_creation(device, dtype):
    options = {"dtype": dtype, "device": device}
    assert_same(vg.zeros((2, 3), **options), np.zeros((2, 3), dtype))
    assert_same(vg.ones(3, **options), np.ones(3, dtype))
    assert_same(vg.full((2,), 1 - 2j, **options), np.full(2, 1 - 2j, dtype))
    assert_same(vg.full((2,), np.complex64(3j), device=device), np.full(2, 3j, np.complex64))
    assert_same(vg.eye(3, **options), np.eye(3, dtype=dtype))
    assert_same(vg.arange(5, **options), np.arange(5).astype(dtype))
    assert_same(vg.asarray([1, 2.5, 3j], **options), np.array([1, 2.5, 3j], dtype))
    assert_same(vg.asarray([[1, True]], **options), np.array([[1, 1]], dtype))
    x = vg.asarray(np.array([1j, 2], dtype), device=device)
    assert_same(vg.zeros_like(x), np.zeros(2, dtype))
    assert_same(vg.full_like(x, 2j), np.full(2, 2j, dtype))
    assert_same(vg.full_like(x, 3), np.full(2, 3, dtype))
    assert_same(vg.linspace(0, 1 + 2j, 5, **options), np.linspace(0, 1 + 2j, 5).astype(dtype))
    assert vg.linspace(0, 1j, 3, device=device).dtype == vg.complex64
    values, step = vg.linspace(1j, 2, 3, retstep=True, device=device)
    assert step == 1 - 0.5j and values.shape == (3,)
    x[...] = 5
    assert_same(x, np.full(2, 5, dtype))
    x.fill(1j)
    assert x.tolist() == [1j, 1j] and x[0].item() == 1j and complex(x[0]) == 1j
    for convert in (int, float):
        with pytest.raises(TypeError):
            convert(x[0])
    assert bool(x[0]) and not vg.zeros((), **options)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_values_go_round(device, dtype, rng, tmp_path):
    x = helpers.numbers(rng, (3, 5), dtype)
    array = put(device, x)
    assert_same(pickle.loads(pickle.dumps(array)), x)
    assert array.tolist() == x.tolist() and array.tobytes() == x.tobytes()
    assert str(array) == str(x) and f"dtype={dtype}" in repr(array)
    vg.save(tmp_path / "x.npy", array)
    assert_same(vg.load(tmp_path / "x.npy", device=device), x)
    assert array.itemsize == dtype.itemsize and array.strides == x.strides
    assert_same(np.asarray(array.cpu()), x)


# ---- Parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_parts_are_views(device, rng, dtype, layout):
    x = helpers.numbers(rng, (4, 5), dtype)
    array = LAYOUTS[layout](device, x)
    assert_same(array.real, x.real)
    assert_same(vg.imag(array), x.imag)
    assert_same(array.imag + array.real.T[:4, :4][:, :1], x.imag + x.real.T[:4, :4][:, :1])
    version = array._version
    array.real[1:3] = 7
    array.imag *= 2
    assert array._version > version
    expected = x.real.copy()
    expected[1:3] = 7
    assert_same(array.real, expected)
    assert_same(array.imag, x.imag * 2)
    array.real = np.arange(5, dtype=np.float32)
    array.imag = 1
    assert_same(array, np.broadcast_to(np.arange(5) + 1j, (4, 5)).astype(dtype))


def test_parts_of_other_arrays(device):
    x = put(device, np.array([1.5, -0.0, np.nan], np.float32))
    assert_same(x.real, x.numpy())
    assert_same(x.imag, np.zeros(3, np.float32))
    x.real[0] = 9
    assert x[0].item() == 9
    with helpers.refused(device, TypeError, x):
        x.imag = 1
    with helpers.refused(device, ValueError, x):
        x.imag[0] = 1
    for shape in ((), (0, 3), (2, 0)):
        z = vg.zeros(shape, dtype="complex64", device=device)
        assert vg.real(z).shape == shape == z.imag.shape
    assert vg.broadcast_to(z[:1], (2, 0)).imag.shape == (2, 0)
    with helpers.refused(device, ValueError):
        vg.broadcast_to(vg.ones(1, "complex64", device=device), (3,)).real[...] = 0


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_questions(device, dtype):
    x = np.ones(3, dtype)
    if dtype.kind == "c":
        x[:] = [1, 1j, np.nan]
    array = put(device, x)
    wide = helpers.widened(x)
    assert_same(vg.isreal(array), np.isreal(wide))
    assert_same(vg.iscomplex(array), np.iscomplex(wide))
    assert vg.iscomplexobj(array) is (dtype.kind == "c") is not vg.isrealobj(array)
    assert vg.iscomplexobj(1j) and not vg.iscomplexobj(2.0) and vg.isrealobj([1, 2])
    assert vg.real_if_close(array) is array
    if dtype.kind == "c":
        assert_same(vg.real_if_close(put(device, x[:1])), x[:1].real)
        near = put(device, np.array([1 + 1e-20j, 2], dtype))
        assert_same(vg.real_if_close(near), np.array([1, 2], x.real.dtype))
        assert vg.real_if_close(near, 1e-30) is near
        assert vg.real_if_close(near, tol=1e-3).dtype == x.real.dtype


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_angles(device, dtype, rng):
    x = np.concatenate([helpers.specials(dtype), helpers.numbers(rng, 40, dtype)])
    array = put(device, x)
    with np.errstate(all="ignore"):
        expected = np.arctan2(x.imag.astype(np.longdouble), x.real.astype(np.longdouble))
    helpers.assert_close(vg.angle(array), expected, "atan2", device)
    degrees = vg.angle(array, deg=True)
    helpers.assert_within(degrees, expected * 180 / np.pi, 180 * 8 * np.finfo(dtype).eps)
    helpers.assert_close(
        vg.angle(array.real), np.angle(x.real.astype(np.longdouble)), "atan2", device
    )
    assert_same(vg.conj(array), np.conj(x))
    assert_same(array.conjugate(), np.conj(x))
    assert_same(vg.conj(array.real), x.real)


# ---- Casts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_casts_to_reals_are_refused(device, dtype):
    x = put(device, np.array([1 + 2j, 3], dtype))
    for other in (d for d in ALL_DTYPES if d.kind not in "bc"):
        place = vg.zeros(2, dtype=other, device=device)
        for write in (
            lambda other=other: x.astype(other),
            lambda other=other: vg.asarray(x, dtype=other),
            lambda place=place: place.__setitem__(..., x),
            lambda place=place: place.__setitem__([0, 1], x),
            lambda place=place: vg.add(x, x, out=place),
            lambda other=other: vg.sum(x, dtype=other),
        ):
            with helpers.refused(device, TypeError, x, place):
                write()
    assert_same(x.astype(bool), np.array([True, True]))
    assert_same(vg.astype(x, "complex64"), x.numpy().astype(np.complex64))


def test_out_of_another_complex_dtype(device):
    x = put(device, np.array([1 + 2j, 3], np.complex128))
    place = vg.zeros(2, dtype="complex64", device=device)
    assert vg.exp(x, out=place) is place
    helpers.assert_within(place, np.exp(x.numpy()), 1e-5)
    assert vg.multiply(x.real, x.real, out=place) is place
    assert_same(place, np.array([1, 9], np.complex64))
    with helpers.refused(device, TypeError, x):
        vg.abs(x, out=vg.zeros(2, dtype="int32", device=device))
    real = vg.zeros(2, dtype="float32", device=device)
    assert vg.abs(x, out=real) is real
