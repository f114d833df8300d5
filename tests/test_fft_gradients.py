"""Gradients of Fourier transforms beside central differences: norms, lengths and axes of all."""

import itertools

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put

import pyvecgpu as vg

OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
NORMS = ("backward", "ortho", "forward", None)


def kinds(name):
    """The kinds of numbers that a transform takes."""
    return ["real"] if name in OF_REAL else ["real", "complex"]


def values(rng, kind, shape):
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if kind == "complex" else x


def cases(names):
    return [(name, kind) for name in names for kind in kinds(name)]


def test_all_transforms_are_here():
    others = {"fftfreq", "rfftfreq", "fftshift", "ifftshift"}
    assert {*vg.fft.__all__} == {*ONE, *SEVERAL} | others


@pytest.mark.parametrize(("name", "kind"), cases(ONE))
@pytest.mark.parametrize("norm", NORMS)
def test_along_an_axis(device, rng, name, kind, norm):
    """Of odd and even lengths, cut, filled with zeros, and neither."""
    function = getattr(vg.fft, name)
    for present, n in itertools.product((1, 2, 4, 5), (None, 1, 2, 3, 6, 7, 9)):
        if n is None and present == 1 and name in ("irfft", "hfft"):
            continue  # a transform of no element
        x = values(rng, kind, (present,))
        check(lambda x, n=n: function(x, n, norm=norm), x, device=device)
    for axis, shape in ((0, (5, 2)), (1, (2, 4, 1)), (-1, (2, 3))):
        x = values(rng, kind, shape)
        check(lambda x, axis=axis: function(x, axis=axis, norm=norm), x, device=device)


@pytest.mark.parametrize(("name", "kind"), cases(SEVERAL))
@pytest.mark.parametrize("norm", NORMS)
def test_along_several_axes(device, rng, name, kind, norm):
    function = getattr(vg.fft, name)
    x = values(rng, kind, (3, 2, 4))
    ways = [{}, {"s": (2, 5)}, {"s": (4, 3), "axes": (2, 0)}, {"s": (4, -1), "axes": (0, 1)}]
    ways += [{"axes": (-1, 0)}, {"s": (3, 7), "axes": (-2, -1)}, {"s": (5, 1), "axes": (1, 2)}]
    if "2" not in name:
        ways += [{"axes": (0, 1, 2)}, {"axes": (1,)}, {"s": (3,)}]
    for way in ways:
        check(lambda x, way=way: function(x, **way, norm=norm), x, device=device)


@pytest.mark.parametrize(("name", "kind"), cases(("fftn", "ifftn", "rfftn", "irfftn")))
def test_an_axis_twice(device, rng, name, kind):
    function = getattr(vg.fft, name)
    x = values(rng, kind, (3, 4))
    for way in ({"axes": (1, 0, 1)}, {"axes": (0, 0), "s": (4, 2)}, {"axes": (1, 1, 0)}):
        check(lambda x, way=way: function(x, **way, norm="ortho"), x, device=device)
        found = function(put(device, x).requires_grad_(), **way).detach()
        assert np.allclose(found.numpy(), function(put(device, x), **way).numpy())


@pytest.mark.parametrize(("name", "kind"), cases(ONE + SEVERAL))
def test_gradients_of_gradients(device, rng, name, kind):
    """Of squares, whose gradients depend on the transform."""
    function = getattr(vg.fft, name)
    x = values(rng, kind, (2, 5))
    for n in (None, 3, 8):
        way = {"n": n} if name in ONE else {"s": n and (2, n)}
        check_twice(lambda x, way=way: vg.abs(function(x, **way)) ** 4, x, device=device)


@pytest.mark.parametrize("name", ONE + SEVERAL)
def test_dtypes_and_empty_ones(device, name):
    function = getattr(vg.fft, name)
    for dtype in ("float16", "float32", "complex64"):
        if dtype == "complex64" and name in OF_REAL:
            continue
        x = vg.ones((4, 4), dtype=dtype, device=device).requires_grad_()
        vg.abs(function(x)).sum().backward()
        assert x.grad.dtype == x.dtype and x.grad.shape == x.shape
    x = vg.ones((3, 4), device=device).requires_grad_()
    vg.abs(function(x, 9) if name in ONE else function(x, (9, 9))).sum().backward()
    assert x.grad.backend.plain(x.grad.raw), "a part of larger memory"
    x = vg.ones((0, 4), device=device).requires_grad_()
    if name in ONE:
        vg.abs(function(x)).sum().backward()
        assert x.grad.shape == (0, 4)
        x.grad = None
    filled = function(x, axis=0, n=4) if name in ONE else function(x, s=(4, 4))
    vg.abs(filled).sum().backward()
    assert x.grad.shape == (0, 4)


def test_no_axes(device, rng):
    x = rng.standard_normal((2, 2))
    check(lambda x: vg.fft.fftn(x, axes=()) * 1j, x, device=device)


def test_shifts(device, rng):
    x = rng.standard_normal((4, 5)) * 1j
    check(lambda x: vg.fft.fftshift(x) * x, x, device=device)
    check(lambda x: vg.fft.ifftshift(x, axes=1) * x, x, device=device)


def test_what_comes_back_is_what_went(device, rng):
    """A transform there and back, and a filter between."""
    x = rng.standard_normal((3, 16))
    check(lambda x: vg.fft.irfft(vg.fft.rfft(x), 16) ** 2, x, device=device)
    window = put(device, rng.standard_normal(9) * (1 + 1j))
    check(lambda x: vg.fft.irfft(vg.fft.rfft(x) * window, 16) ** 2, x, device=device)
    check(lambda w: vg.abs(vg.fft.ifft(w * 2j)) ** 2, window.numpy(), device=device)
