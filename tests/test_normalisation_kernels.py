"""Normalisations by kernels: values and gradients against float64, over shapes, dtypes and layouts.

Lengths of rows are those on either side of where another kernel takes over; see kernels/rows.cuh.
"""

import numpy as np
import pytest
from helpers import FLOATS, UNIT_ROUNDOFF, host, put, widened

import pyvecgpu as vg
from pyvecgpu.dispatch import apply

F = vg.nn.functional
ROWS = [
    *((3, 1), (7, 2), (300, 3), (33, 4), (9, 17), (5, 127), (4, 128), (3, 129), (2, 255), (2, 500)),
    *((3, 513), (2, 1024), (3, 1030), (2, 2049), (1, 4100), (2, 8192), (1, 8200), (2, 16_390)),
    *((70, 64), (1, 45_003), (1, 70_000)),
]
GROUPS = [
    *(((3, 6, 4), 2), ((2, 6, 5), 3), ((2, 6), 6), ((2, 8, 3, 5), 1), ((1, 4, 33, 7), 2)),
    *(((2, 12, 40), 4), ((2, 4, 6), 2), ((1, 6, 3000), 2), ((1, 2, 70_001), 2), ((5, 3, 1), 1)),
]
CHANNELS = [
    *((2, 1), (40, 3), (33, 130), (700, 5), (4, 3, 2), (3, 5, 7), (2, 3, 31), (2, 4, 32)),
    *((3, 2, 33), (2, 3, 4, 9), (3, 2, 40, 50), (2, 1, 70_000), (1, 300, 2), (1500, 2, 3)),
    *((60, 1500, 3), (33, 2000, 4), (4, 2, 63, 65), (2, 1, 16_384), (2, 1, 16_388), (1, 9, 32, 32)),
]


def numbers(rng, dtype, shape, offset=0.0):
    """Host values in a dtype, and the same in float64."""
    x = (rng.normal(size=shape) + offset).astype(dtype)
    return x, widened(x).astype(np.float64)


def work_unit(dtype):
    return 2.0**-53 if dtype == np.float64 else 2.0**-24


class Reference:
    """y, dx, dweight and dbias in float64; shape: items, groups, channels of one, inner."""

    def __init__(self, x, g, weight, bias, shape, axes, eps, centered=True):
        self.out = x.shape
        x, g = x.reshape(shape), g.reshape(shape)
        weight = 1.0 if weight is None else weight.reshape(1, shape[1], shape[2], 1)
        bias = 0.0 if bias is None else bias.reshape(1, shape[1], shape[2], 1)
        mean = x.mean(axes, keepdims=True) if centered else 0.0
        self.scale = 1 / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + eps)
        y = (x - mean) * self.scale
        self.y = (y * weight + bias).reshape(self.out)
        gw = g * weight
        dx = gw - y * (gw * y).mean(axes, keepdims=True)
        dx -= gw.mean(axes, keepdims=True) if centered else 0.0
        self.dx = (dx * self.scale).reshape(self.out)
        self.dweight, self.dbias = (g * y).sum((0, 3)).reshape(-1), g.sum((0, 3)).reshape(-1)
        self.sums = np.abs(g * y).sum((0, 3)).reshape(-1), np.abs(g).sum((0, 3)).reshape(-1)


def compare(wanted, dtype, y, gradients):
    """dx, dweight, dbias: sums are as exact as float32, or float64, allows."""
    unit, work = UNIT_ROUNDOFF[np.dtype(dtype)], work_unit(dtype)
    largest = np.max(wanted.scale) if np.size(wanted.scale) else 0.0
    compare_result(wanted, dtype, y)
    near(gradients[0], wanted.dx, 2 * unit, 100 * work * largest * (1 + np.abs(wanted.dx)))
    for found, expected, size in zip(
        gradients[1:], (wanted.dweight, wanted.dbias), wanted.sums, strict=False
    ):
        near(
            found,
            expected.reshape(found.shape),
            2 * unit,
            40 * work * (1 + size.reshape(found.shape)),
        )


def compare_result(wanted, dtype, y):
    # float64's squares are of distances from a first element, some deviations from the mean.
    times = 200 if np.dtype(dtype) == np.float64 else 40
    least = times * work_unit(dtype) * (1 + np.abs(wanted.y))
    near(y, wanted.y, 2 * UNIT_ROUNDOFF[np.dtype(dtype)], least)


def near(found, expected, relative, absolute):
    found = widened(host(found)).astype(np.float64)
    error = np.abs(found - expected)
    least = 2.0**-24  # a subnormal float16
    good = error <= relative * np.abs(expected) + absolute + least * (relative > 2.0**-20)
    assert found.shape == expected.shape and good.all(), error[~good].max()


def run(device, function, arrays, g):
    """The result and the gradients of all arrays."""
    arrays = [put(device, a).requires_grad_() for a in arrays]
    y = function(*arrays)
    y.backward(put(device, g))
    return y.detach(), [a.grad for a in arrays]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_rows(device, dtype, shape):
    rng = np.random.default_rng(shape)
    (x, wide), (g, wide_g) = numbers(rng, dtype, shape, 2.0), numbers(rng, dtype, shape)
    (w, wide_w), (b, wide_b) = numbers(rng, dtype, shape[1:]), numbers(rng, dtype, shape[1:])
    parts = (shape[0], 1, shape[1], 1)
    for centered in (True, False):
        wanted = Reference(wide, wide_g, wide_w, wide_b if centered else None, parts, (2, 3),
                           0.01, centered)  # fmt: skip
        if centered:
            found = run(device, lambda *a: F.layer_norm(a[0], shape[1], *a[1:], 0.01), (x, w, b), g)
        else:
            found = run(device, lambda *a: F.rms_norm(a[0], shape[1], a[1], 0.01), (x, w), g)
        assert found[0].dtype == dtype and all(one.dtype == dtype for one in found[1])
        compare(wanted, dtype, *found)
    plain = Reference(wide, wide_g, None, None, parts, (2, 3), 0.01)
    compare(plain, dtype, *run(device, lambda a: F.layer_norm(a, shape[1], eps=0.01), (x,), g))
    biased = Reference(wide, wide_g, None, wide_b, parts, (2, 3), 0.01)
    y, (dx, db) = run(device, lambda *a: F.layer_norm(a[0], shape[1], None, a[1], 0.01), (x, b), g)
    compare(biased, dtype, y, [dx])
    near(
        db, biased.dbias, 2 * UNIT_ROUNDOFF[np.dtype(dtype)], 40 * work_unit(dtype) * biased.sums[1]
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("shape", "groups"), GROUPS, ids=str)
def test_groups(device, dtype, shape, groups):
    rng = np.random.default_rng(shape)
    (x, wide), (g, wide_g) = numbers(rng, dtype, shape, -1.0), numbers(rng, dtype, shape)
    (w, wide_w), (b, wide_b) = numbers(rng, dtype, shape[1]), numbers(rng, dtype, shape[1])
    parts = (shape[0], groups, shape[1] // groups, int(np.prod(shape[2:])))
    wanted = Reference(wide, wide_g, wide_w, wide_b, parts, (2, 3), 0.01)
    found = run(device, lambda *a: F.group_norm(a[0], groups, *a[1:], 0.01), (x, w, b), g)
    compare(wanted, dtype, *found)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", CHANNELS, ids=str)
def test_channels(device, dtype, shape):
    rng = np.random.default_rng(shape)
    (x, wide), (g, wide_g) = numbers(rng, dtype, shape, 3.0), numbers(rng, dtype, shape)
    (w, wide_w), (b, wide_b) = numbers(rng, dtype, shape[1]), numbers(rng, dtype, shape[1])
    parts = (shape[0], 1, shape[1], int(np.prod(shape[2:])))
    wanted = Reference(wide, wide_g, wide_w, wide_b, parts, (0, 3), 0.01)
    mean, variance = (put(device, np.ones(shape[1], np.float32)) for _ in range(2))

    def train(x, *parameters):
        return F.batch_norm(x, mean, variance, *parameters, training=True, momentum=0.5, eps=0.01)

    compare(wanted, dtype, *run(device, train, (x, w, b), g))
    other = tuple(i for i in range(len(shape)) if i != 1)
    count = wide.size // shape[1]
    close = 2.0**-19 * (1 + np.abs(wide).max() ** 2)
    near(mean, 0.5 + 0.5 * wide.mean(other), 0.0, close)
    near(variance, 0.5 + 0.5 * wide.var(other) * count / (count - 1), 0.0, close)

    means, variances = host(mean).astype(np.float64), host(variance).astype(np.float64)
    along = (-1, *[1] * (len(shape) - 2))
    scale = (1 / np.sqrt(variances + 0.01)).reshape(along)
    standard = (wide - means.reshape(along)) * scale
    y, gradients = run(
        device, lambda *a: F.batch_norm(a[0], mean, variance, *a[1:], eps=0.01), (x, w, b), g
    )
    unit, work = UNIT_ROUNDOFF[np.dtype(dtype)], 2.0**-24 if dtype != np.float64 else 2.0**-53
    sizes = [np.abs(wide_g * standard).sum(other), np.abs(wide_g).sum(other)]
    near(y, standard * wide_w.reshape(along) + wide_b.reshape(along), 2 * unit,
         40 * work * (1 + np.abs(wide_w.reshape(along) * standard)))  # fmt: skip
    near(gradients[0], wide_g * wide_w.reshape(along) * scale, 2 * unit, 40 * work)
    near(gradients[1], (wide_g * standard).sum(other), 2 * unit, 40 * work * sizes[0])
    near(gradients[2], wide_g.sum(other), 2 * unit, 40 * work * sizes[1])


VIEWS = {
    "negative step": lambda x: x[:, ::-1],
    "transposed": lambda x: x.T.copy().T,
    "every other row": lambda x: x[::2],
    "odd offset": lambda x: x.reshape(-1)[3 : 3 + 4 * 41].reshape(4, 41),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_views(device, dtype, view):
    """What a copy of the view gives; columns of 44 are whole packs, 41 are not."""
    rng = np.random.default_rng(3)
    for columns in (44, 41):
        x, g = (rng.normal(size=(8, columns)).astype(dtype) for _ in range(2))
        views = [VIEWS[view](put(device, a)) for a in (x, g)]
        n = views[0].shape[1]
        w = put(device, rng.normal(size=2 * n).astype(dtype))[::2]
        copies = [put(device, host(a).copy()) for a in (*views, w)]
        for operands in ((*views, w), copies):
            a, weight = operands[0].requires_grad_(), operands[2].requires_grad_()
            results = []
            for function in (
                lambda a, w: F.layer_norm(a, n, w, w),  # noqa: B023
                lambda a, w: F.group_norm(a, 1, w, w),
                lambda a, w: F.batch_norm(a, None, None, w, w, True),
            ):
                a.grad = weight.grad = None
                y = function(a, weight)
                y.backward(operands[1])
                results += [host(one).copy() for one in (y.detach(), a.grad, weight.grad)]
            if operands is not copies:
                expected = results
        unit = UNIT_ROUNDOFF[np.dtype(dtype)]
        for one, other in zip(results, expected, strict=True):
            near(one, widened(other).astype(np.float64), 4 * unit, 40 * unit)


def test_a_repeated_gradient_and_other_dtypes(device):
    """A sum's gradient is one number; weights may be wider or narrower than x."""
    rng = np.random.default_rng(8)
    x, w = rng.normal(size=(6, 40)), rng.normal(size=40)
    for of_x, of_w in (("float16", "float32"), ("float32", "float64"), ("float32", "float16")):
        a, b = (put(device, one.astype(t)).requires_grad_() for one, t in ((x, of_x), (w, of_w)))
        y = F.layer_norm(a, 40, b, b)
        (y * 2).sum().backward()
        wide, weight = (host(one.detach()).astype(float) for one in (a, b))
        wanted = Reference(
            wide, np.full(x.shape, 2.0), weight, None,
            (6, 1, 40, 1), (2, 3), 1e-5,
        )  # fmt: skip
        assert y.dtype == of_x and a.grad.dtype == of_x and b.grad.dtype == of_w
        near(b.grad, wanted.dweight + wanted.dbias, 4e-3, 1e-3)
        near(a.grad, wanted.dx, 4e-3, 1e-3)


def test_large_offsets_leave_digits(device):
    """The distances of numbers near 1e4 are exact; their mean is not rounded to float32 first."""
    rng = np.random.default_rng(4)
    for shape in ((3, 100), (2, 3000), (2, 70_000)):
        x = (1e4 + rng.normal(size=shape)).astype(np.float32)
        wide = x.astype(np.float64)
        expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
        held = device != "cpu" and shape[1] < 65_536
        limit = 2e-5 if held else 2e-3  # others take away the rounded mean
        near(F.layer_norm(put(device, x), shape[1], eps=0.0), expected, 0.0, limit)
        turned = F.batch_norm(put(device, x.T.copy()), None, None, training=True, eps=0.0)
        near(turned, expected.T, 0.0, 2e-3)


def test_numbers_that_are_none(device):
    """A row with NaN or infinity is NaN, and no other row."""
    for length in (5, 1500, 70_000):
        x = np.ones((4, length), np.float32)
        x[:, 0] = 3
        x[1, length // 2], x[2, -1] = np.nan, -np.inf
        y = host(F.layer_norm(put(device, x), length))
        assert np.isnan(y[1:3]).all() and np.isfinite(y[[0, 3]]).all()


def test_the_same_bits_again(device):
    rng = np.random.default_rng(6)
    for shape in ((300, 70), (40, 2000), (4, 9000)):
        x, g, w = (
            put(device, rng.normal(size=s).astype(np.float32)) for s in (shape, shape, shape[1])
        )
        found = []
        for _ in range(2):
            a, b = x.copy().requires_grad_(), w.copy().requires_grad_()
            F.layer_norm(a, shape[1], b).backward(g)
            F.batch_norm(a, None, None, b, b, True).backward(g)
            found.append([host(a.grad), host(b.grad)])
        for one, other in zip(*found, strict=True):
            assert np.array_equal(one, other)


def test_nothing(device):
    for shape in ((0, 3), (3, 0), (0, 4, 5), (2, 0, 3)):
        x = put(device, np.zeros(shape, np.float32)).requires_grad_()
        w = put(device, np.zeros(shape[-1], np.float32)).requires_grad_()
        y = F.layer_norm(x, shape[-1], w, w)
        y.sum().backward()
        assert y.shape == shape and x.grad.shape == shape and not host(w.grad).any()


def test_refusals(device):
    """Of the method itself: what the functions of vg.nn check before never comes to it."""
    if device == "cpu":
        return
    x = put(device, np.ones((4, 6), np.float32))
    shared = vg.reshape(vg.reshape(x, -1)[:8], (2, 4))
    backend, empty = x.backend, put(device, np.zeros((2, 4), np.float32))

    def call(x, *options, weight=None, statistics=None):
        return apply(backend, "normalize", x, weight, None, *options, 1e-5, statistics)

    for error, text, refused in (
        (ValueError, "not 4 groups", lambda: call(x, 1, 1, 4, True)),
        (ValueError, "2 axes of channels", lambda: call(x, 1, 2, 1, True)),
        (IndexError, "axis", lambda: call(x, 2, 1, 1, True)),
        (ValueError, "centered", lambda: call(x, 1, 1, 0, False, statistics=empty)),
        (ValueError, "not optional", lambda: call(x, 1, 1, 0, True)),
        (ValueError, "2 times 6", lambda: call(x, 1, 1, 0, True, statistics=empty)),
        (TypeError, "float32", lambda: call(x, 1, 1, 1, True, statistics=empty.astype("float64"))),
        (TypeError, "int32", lambda: call(x.astype("int32"), 1, 1, 1, True)),
        (ValueError, "does not fit", lambda: call(x, 1, 1, 1, True, weight=empty)),
        (ValueError, "share memory", lambda: call(x, 1, 1, 1, True, statistics=shared)),
        (
            ValueError,
            "contiguous",
            lambda: call(x, 1, 1, 1, True, statistics=vg.reshape(x, (2, 12))[:, :4]),
        ),
    ):
        with pytest.raises(error, match=text):
            refused()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("length", [1, 3, 4, 37, 64, 128])
def test_many_short_rows(device, rng, length, dtype):
    """A thread has several of them; each has the bits that it has among few."""
    x = put(device, rng.normal(size=(32_779, length)).astype(dtype))
    w, b = [put(device, rng.normal(size=length).astype(dtype)) for _ in range(2)]

    def forward(x, centered):
        statistics = vg.empty((2, x.shape[0]), dtype="f8" if dtype == "float64" else "f4",
                              device=device)  # fmt: skip
        y = apply(x.backend, "normalize", x, w, b, 1, 1, 1, centered, 1e-5, statistics)
        return y.numpy(), statistics.numpy()

    for centered in (True, False):
        y, statistics = forward(x, centered)
        for rows in (slice(0, 300), slice(16_000, 16_101), slice(-200, None)):
            few, of_few = forward(x[rows], centered)
            np.testing.assert_array_equal(few, y[rows])
            np.testing.assert_array_equal(of_few, statistics[:, rows])
