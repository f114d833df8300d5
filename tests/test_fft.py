"""Fourier transforms beside NumPy's in double precision: lengths, axes, norms, dtypes, layouts."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

fft = vg.fft

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2"]
OF_REALS = {"rfft", "ihfft", "rfftn", "rfft2"}
TO_REALS = {"irfft", "hfft", "irfftn", "irfft2"}
NORMS = [None, "backward", "ortho", "forward"]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def numbers(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def double(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def check(name, array, x, *arguments, **options):
    """Norms of the differences by that of the result, at the result's precision."""
    expected = getattr(np.fft, name)(double(x), *arguments, **options)
    result = getattr(fft, name)(array, *arguments, **options)
    values = helpers.host(result)
    narrow = x.dtype.char in "fF"
    real, cplx = (np.float32, np.complex64) if narrow else (np.float64, np.complex128)
    assert values.dtype == (real if name in TO_REALS else cplx), name
    assert values.shape == expected.shape, f"{name} {x.shape} {arguments} {options}"
    error, size = np.linalg.norm(values - expected), np.linalg.norm(expected)
    most = (3e-6 if narrow else 1e-14) * max(size, 1e-3 if narrow else 1e-9)
    assert error <= most, f"{name} {x.dtype} {x.shape} {arguments} {options}: {error} of {size}"


def takes(name, dtype):
    return np.dtype(dtype).kind == "f" or name not in OF_REALS


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE)
def test_lengths(device, rng, name, dtype):
    if not takes(name, dtype):
        with pytest.raises(TypeError, match="takes real numbers"):
            getattr(fft, name)(vg.ones(3, dtype=dtype, device=device))
        return
    for length in (1, 2, 3, 4, 7, 8, 15, 16, 17, 64, 97, 1000):
        x = numbers(rng, (3, length), dtype)
        array = put(device, x)
        if name in TO_REALS and length == 1:
            with pytest.raises(ValueError, match="1 element or more"):
                getattr(fft, name)(array)
        else:
            check(name, array, x)
        for n in (1, 2, length // 2 + 1, length + 3, 2 * length):
            check(name, array, x, n)


@pytest.mark.parametrize("name", ONE)
def test_axes_and_norms(device, rng, name):
    x = numbers(rng, (4, 5, 6), np.float32)
    array = put(device, x)
    for axis, norm, n in itertools.product((0, 1, -1), NORMS, (None, 3, 9)):
        check(name, array, x, n, axis, norm)


@pytest.mark.parametrize("layout", helpers.LAYOUTS)
def test_layouts(device, rng, layout):
    x = numbers(rng, (4, 5, 6), np.float64)
    array = helpers.LAYOUTS[layout](device, x)
    for name in (*ONE, *SEVERAL):
        check(name, array, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(device, rng, name, dtype):
    if not takes(name, dtype):
        return
    x = numbers(rng, (4, 5, 6), dtype)
    array = put(device, x)
    for axes in (None, (0,), (1, 2), (2, 0), (-1, -2), (0, 1, 2)):
        check(name, array, x, axes=axes)
        if axes is not None:
            for s in ((3,) * len(axes), (8,) * len(axes), (-1,) * len(axes)):
                check(name, array, x, s=s, axes=axes)
    for norm in NORMS:
        check(name, array, x, norm=norm)
    if name in ("fftn", "ifftn"):
        assert helpers.bits(getattr(fft, name)(array, axes=())) is not None


@pytest.mark.parametrize("name", TWO)
def test_two_axes(device, rng, name):
    x = numbers(rng, (3, 4, 5), np.float32)
    array = put(device, x)
    check(name, array, x)
    check(name, array, x, (2, 8))
    check(name, array, x, axes=(0, 1), norm="ortho")


def test_round_trips(device, rng):
    x = numbers(rng, (5, 12), np.complex64)
    array = put(device, x)
    for norm in NORMS[1:]:
        back = fft.ifft(fft.fft(array, norm=norm), norm=norm)
        assert np.abs(helpers.host(back) - x).max() <= 1e-5
        real = put(device, x.real.copy())
        back = fft.irfftn(fft.rfftn(real, norm=norm), norm=norm)
        assert np.abs(helpers.host(back) - x.real).max() <= 1e-5


def test_dtypes(device, rng):
    """Integers are transformed in float64 and rounded; halves as float32."""
    x = rng.integers(-9, 9, 12)
    for dtype in (np.int8, np.int64, np.uint16, np.bool_):
        values = np.abs(x).astype(dtype)
        result = fft.fft(put(device, values))
        assert result.dtype == vg.complex64
        expected = np.fft.fft(values.astype(np.float64)).astype(np.complex64)
        if device != "cuda":
            assert (helpers.host(result) == expected).all()
        assert np.abs(helpers.host(result) - expected).max() <= 1e-4
        assert fft.irfft(put(device, values)).dtype == vg.float32
    half = fft.rfft(put(device, x.astype(np.float16)))
    assert half.dtype == vg.complex64


def test_numpy_in_numpy_out(rng):
    x = rng.standard_normal(8).astype(np.float32)
    result = fft.fft(x)
    assert isinstance(result, np.ndarray) and result.dtype == np.complex64


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(device, name):
    for n, d in itertools.product((1, 2, 5, 8), (1.0, 0.25, 3)):
        expected = getattr(np.fft, name)(n, d)
        result = getattr(fft, name)(n, d=d, dtype=vg.float64, device=device)
        assert (helpers.host(result) == expected).all() and str(result.device.type) == device
        default = getattr(fft, name)(n, d, device=device)
        assert default.dtype == vg.float32
        assert (helpers.host(default) == expected.astype(np.float32)).all()
    with pytest.raises(ValueError, match="1 or more"):
        getattr(fft, name)(0, device=device)
    with pytest.raises(TypeError, match="float dtype"):
        getattr(fft, name)(3, dtype="int32", device=device)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(device, rng, name):
    x = rng.standard_normal((4, 5, 3)).astype(np.float32)
    for axes in (None, 0, -1, (0, 1), [1, 2], ()):
        expected = getattr(np.fft, name)(x, axes)
        assert (helpers.host(getattr(fft, name)(put(device, x), axes)) == expected).all()


@pytest.mark.devices("sim")
def test_transfers_are_counted(device, rng):
    array = put(device, numbers(rng, (8,), np.float32))
    before = vg.counters(device)
    fft.fft(array)
    after = vg.counters(device)
    for name in ("copies_to_host", "copies_to_device"):
        assert after[name] - before[name] == 1


def test_refusals(device):
    x = vg.ones((2, 3), device=device)
    axis_error = np.exceptions.AxisError
    for call, error in (
        (lambda: fft.fft(x, axis=2), axis_error),
        (lambda: fft.fftn(x, axes=(0, 2)), axis_error),
        (lambda: fft.fftshift(x, 2), axis_error),
        (lambda: fft.fft(x, 0), ValueError),
        (lambda: fft.fft(x, -2), ValueError),
        (lambda: fft.fft(x, norm="whole"), ValueError),
        (lambda: fft.fft(vg.ones((), device=device)), ValueError),
        (lambda: fft.fftn(x, s=(2, 3, 4)), ValueError),
        (lambda: fft.fftn(x, s=(2,), axes=(0, 1)), ValueError),
        (lambda: fft.rfftn(x, axes=()), ValueError),
        (lambda: fft.fft(x[:, :0]), ValueError),
        (lambda: fft.fft(x, 2.5), TypeError),
        (lambda: fft.fft(2.0), TypeError),
        (lambda: fft.fft("1"), TypeError),
    ):
        with pytest.raises(error):
            call()
