"""Convolution and pooling by their kernels, drawn cases against sums over windows in float64.

The reference knows where every window takes its elements from as a table of places, and nothing of
strides. Values are small integers, so that every dtype has to give exactly the right numbers.
"""

import math
from typing import NamedTuple

import helpers
import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put

import pyvecgpu as vg
from pyvecgpu.backends import cpu_windows
from pyvecgpu.dispatch import apply, observe
from pyvecgpu.native.abi import Counter
from pyvecgpu.operations import Operation

F = vg.nn.functional
# Windows of 2 x 2, side by side, as numbers of the library.
PLAIN = (2, 2, 2, 2, 0, 0, 0, 0, 1, 1)
MAX, MEAN = int(Operation.MAX), int(Operation.MEAN)
X, W = np.ones((1, 2, 4, 4), np.float32), np.ones((2, 2, 2, 2), np.float32)
DRAWN = 150  # cases of each function and dtype


class Case(NamedTuple):
    """Sizes of images and of what goes over them, each along two axes; rows are 1 for one axis."""

    axes: int
    shape: tuple  # (n, channels, rows, columns)
    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple
    groups: int
    results: int  # of a group

    @property
    def lengths(self):
        of_axes = zip(
            self.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True
        )
        return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in of_axes])

    @property
    def weight(self):
        groups = self.groups
        return (groups * self.results, self.shape[1] // groups, *self.kernel)

    def given(self, values):
        """Numbers for the axes there are, as a public function takes them."""
        return values[2 - self.axes :]

    def flat(self, array):
        """An array without the axis of rows that one axis has not."""
        return array if self.axes == 2 else array.reshape(*array.shape[:2], array.shape[3])


def draw(rng, pooling=False):
    """A random Case that fits; of pooling the padding is at most half of the kernel."""
    while True:
        axes = int(rng.integers(1, 3))
        few = rng.random() < 0.8  # else as many windows as products take image by image
        size = [int(n) for n in rng.integers(0 if few else 11, 9 if few else 16, 2)]
        kernel, stride, dilation = rng.integers(1, [[5], [4], [4]], (3, 2)).tolist()
        padding = [int(rng.integers(0, (k // 2 if pooling else k) + 1)) for k in kernel]
        if rng.random() < 0.2:
            kernel, stride, padding, dilation = [1, 1], [1, 1], [0, 0], [1, 1]
        if axes == 1:
            kernel[0], stride[0], dilation[0], padding[0], size[0] = 1, 1, 1, 0, 1
        groups = int(rng.choice([1, 1, 2, 3]))
        inputs, results = (int(n) for n in rng.integers(1, 6, 2))
        shape = (int(rng.integers(0 if few else 1, 4)), groups * inputs, *size)
        case = Case(axes, shape, *map(tuple, (kernel, stride, padding, dilation)), groups, results)
        if min(case.lengths) > 0:
            return case


def table(case):
    """(kernel rows, columns, windows' rows, columns): places in a picture, -1 around it."""
    axes = []
    for axis in (0, 1):
        at = np.arange(case.kernel[axis])[:, None] * case.dilation[axis]
        at = at + np.arange(case.lengths[axis]) * case.stride[axis] - case.padding[axis]
        axes.append(np.where((at >= 0) & (at < case.shape[2 + axis]), at, -1))
    rows, columns = axes[0][:, None, :, None], axes[1][None, :, None, :]
    return np.where((rows >= 0) & (columns >= 0), rows * case.shape[3] + columns, -1)


def unfolded(x, at, fill):
    """The elements of pictures (n, channels, rows, columns) at the places of a table."""
    flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    flat = np.concatenate([flat, np.full((*x.shape[:2], 1), fill, x.dtype)], -1)
    return flat[:, :, at]  # -1: the last one


def folded(values, at, shape):
    """What unfolded is the transpose of: every element's sum over the places that it is at."""
    result = np.zeros((*shape[:2], math.prod(shape[2:]) + 1))
    np.add.at(result, (slice(None), slice(None), at), values)
    return result[..., :-1].reshape(shape)


def grouped(case, x, weight):
    n, channels = case.shape[:2]
    return (
        x.reshape(n, case.groups, channels // case.groups, *x.shape[2:]),
        weight.reshape(case.groups, case.results, *weight.shape[1:]),
    )


def convolution(case, x, weight, gradient):
    """The convolution, and both gradients, in float64."""
    at = table(case)
    parts, w = grouped(case, unfolded(x, at, 0.0), weight)
    g = gradient.reshape(case.shape[0], case.groups, case.results, *case.lengths)
    y = np.einsum("ngcrspq,gkcrs->ngkpq", parts, w).reshape(gradient.shape)
    columns = np.einsum("ngkpq,gkcrs->ngcrspq", g, w)
    columns = columns.reshape(*case.shape[:2], *at.shape)
    dweight = np.einsum("ngkpq,ngcrspq->gkcrs", g, parts).reshape(weight.shape)
    return y, folded(columns, at, case.shape), dweight


def drawn(name, count=DRAWN, pooling=False):
    rng = np.random.default_rng([len(name), *name.encode()])
    for number in range(count):
        yield np.random.default_rng([number, len(name)]), draw(rng, pooling)


def function(case, kind):
    return getattr(F, f"{kind}{case.axes}d")


def views(rng, device, array):
    """An Array of the same values: as it is, turned round, transposed in memory, or broadcast."""
    kind = rng.integers(0, 4)
    if kind == 1:
        return put(device, np.ascontiguousarray(array[..., ::-1]))[..., ::-1]
    if kind == 2:
        return vg.permute_dims(put(device, np.ascontiguousarray(array.T)), range(array.ndim)[::-1])
    if kind == 3 and array.size:
        gaps = np.repeat(array, 2, axis=-1)
        return put(device, gaps)[..., ::2]
    return put(device, array)


def host(x):
    """The values of an Array, tracked or not, in float64."""
    return np.asarray(x.detach().numpy(), np.float64)


def exactly(found, wanted, dtype, message):
    assert found.dtype == dtype and found.shape == wanted.shape, message
    found = host(found)
    assert np.array_equal(found, wanted), f"{message}\n{found}\n{wanted}"


def counters(device):
    backend = vg.Device(device).backend
    names = ("LAUNCHES", "COPIES_TO_HOST", "COPIES_TO_DEVICE", "WAITS")
    return np.array([backend.counter(Counter[f"COUNT_{name}"]) for name in names])


# Convolution --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_convolutions_and_their_gradients(device, dtype):
    """Integers are exact in every dtype as long as sums are: bfloat16 has 8 bits for them."""
    for rng, case in drawn(f"convolution {dtype}"):
        low = 1 if helpers.finfo(dtype).eps > 1e-3 else 4
        x, weight = (
            rng.integers(-low, low + 1, shape).astype(dtype) for shape in (case.shape, case.weight)
        )
        gradient = rng.integers(-1, 2, (case.shape[0], case.weight[0], *case.lengths)).astype(dtype)
        wide = [np.asarray(one, np.float64) for one in (x, weight, gradient)]
        y, dx, dweight = convolution(case, *wide)
        a, w = (views(rng, device, case.flat(one)).detach().requires_grad_() for one in (x, weight))
        how = map(case.given, (case.stride, case.padding, case.dilation))
        result = function(case, "conv")(a, w, None, *how, case.groups)
        wanted = [rounded(one, dtype) for one in map(case.flat, (y, dx, dweight))]
        exactly(result, wanted[0], dtype, case)
        found = vg.autograd.grad(result, (a, w), views(rng, device, case.flat(gradient)))
        exactly(found[0], wanted[1], dtype, case)
        exactly(found[1], wanted[2], dtype, case)


def rounded(array, dtype):
    """Exact sums as the dtype has them: rounded once."""
    return np.asarray(helpers.rounded(array, dtype), np.float64)


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_accuracy(device, groups):
    """Normal numbers: within a few units of the magnitudes that are added."""
    rng = np.random.default_rng(groups)
    case = Case(2, (3, 8, 13, 12), (3, 3), (1, 1), (1, 1), (1, 1), groups, 8 // groups)
    gradient_shape = (3, 8, *case.lengths)
    for dtype, unit in (("float16", 2.0**-11), ("float32", 2.0**-21), ("float64", 2.0**-50)):
        values = [
            rng.normal(size=shape).astype(dtype)
            for shape in (case.shape, case.weight, gradient_shape)
        ]
        wide = [np.asarray(one, np.float64) for one in values]
        wanted = convolution(case, *wide)
        terms = convolution(case, *map(np.abs, wide))
        x, weight, gradient = (put(device, one) for one in values)
        x.requires_grad_(), weight.requires_grad_()
        y = F.conv2d(x, weight, None, 1, 1, 1, groups)
        found = (y, *vg.autograd.grad(y, (x, weight), gradient))
        for one, exact, magnitude in zip(found, wanted, terms, strict=True):
            error = np.abs(host(one) - exact)
            # Halves are rounded once: beside that, the sums of float32 are all but exact.
            allowed = unit * np.abs(exact) + 2.0**-18 * magnitude
            allowed = allowed if dtype == "float16" else unit * magnitude
            assert not (error > allowed).any(), (dtype, groups)


def test_dtypes_are_promoted_and_results_cast_back(device):
    x = put(device, np.ones((1, 2, 5, 5), np.float32)).requires_grad_()
    weight = put(device, np.ones((3, 2, 2, 2), np.float64)).requires_grad_()
    y = F.conv2d(x, weight, put(device, np.ones(3, np.float16)))
    assert y.dtype == "float64" and (host(y) == 9).all()
    y.sum().backward()
    assert (x.grad.dtype, weight.grad.dtype) == ("float32", "float64")
    assert x.grad.numpy().max() == 12 and (weight.grad.numpy() == 16).all()


@pytest.mark.parametrize("groups", [1, 4])
def test_infinities_in_the_padding(device, groups):
    """Zeros around images are numbers: times infinity they are NaN, whichever kernel adds."""
    x = put(device, np.ones((1, 4, 3, 3)))
    weight = np.zeros((4, 4 // groups, 3, 3))
    weight[:, :, 0, 0] = np.inf
    y = F.conv2d(x, put(device, weight), padding=1, groups=groups).numpy()
    assert np.isnan(y[:, :, 0]).all() and np.isinf(y[:, :, 1:, 1:]).all()


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_pieces_of_a_batch(device, dtype, monkeypatch):
    """More columns than there is memory for at a time: images go by in pieces, added in order."""
    limit = (128 if device == "cuda" else 1) << 20  # convolution.cu has them
    monkeypatch.setattr(cpu_windows, "MOST_COLUMNS", limit)
    rng = np.random.default_rng(5)
    large = ((600, 11, 7), (16, 13000, 8))  # by image, and few windows side by side
    small = ((64, 7, 7), (16, 110, 8))
    for side, images, across in large if device == "cuda" else small:
        shape, kernel = (images, 1, side, side), (1, 1, across, across)
        rows = columns = side - across + 1
        assert (rows * columns < 128) == (side == 16)
        assert images * across**2 * rows * columns * np.dtype(dtype).itemsize > limit
        values, w = (rng.integers(-2, 3, one).astype(dtype) for one in (shape, kernel))
        x, weight = (put(device, one).requires_grad_() for one in (values, w))
        y = F.conv2d(x, weight)
        gradient = rng.integers(-1, 2, y.shape).astype(dtype)
        total, dx, dweight = (np.zeros(one) for one in (y.shape, shape, kernel))
        for i, j in np.ndindex(*kernel[2:]):
            window = (..., slice(i, i + rows), slice(j, j + columns))
            part, factor = values[window].astype(np.float64), float(w[0, 0, i, j])
            total += part * factor
            dx[window] += gradient.astype(np.float64) * factor
            dweight[0, 0, i, j] = (part * gradient).sum()
        found = (y, *vg.autograd.grad(y, (x, weight), put(device, gradient)))
        for one, exact in zip(found, (total, dx, dweight), strict=True):
            wanted = rounded(exact, np.dtype(dtype))
            # The CPU adds pieces of halves in float32, too; every sum here is exact there.
            assert np.array_equal(host(one), wanted), (dtype, side)


# Pooling ------------------------------------------------------------------------------------------


def largest(case, x):
    """Maxima, NaN above all, and their places: the first, -1 without any."""
    at = table(case)
    values = unfolded(x, at, -np.inf)
    values = values.reshape(*x.shape[:2], math.prod(case.kernel), *case.lengths)
    inside = (at >= 0).reshape(-1, *case.lengths)
    # What is outside is below everything, -infinity too.
    order = np.where(np.isnan(values), np.inf, values)
    rank = np.where(np.isnan(values), 2, np.where(np.isinf(values) & (values > 0), 1, 0))
    score = np.where(inside, 1.0, 0.0)
    key = np.stack(np.broadcast_arrays(score, rank, order), -1)
    place = np.full((*x.shape[:2], *case.lengths), -1)
    best = np.full((*x.shape[:2], *case.lengths), -np.inf)
    for where in np.ndindex(*place.shape):
        keys = [tuple(key[(*where[:2], k, *where[2:])]) for k in range(values.shape[2])]
        first = max(range(len(keys)), key=lambda k: (keys[k], -k))
        if keys[first][0] > 0:
            place[where] = first
            best[where] = values[(*where[:2], first, *where[2:])]
    return best, place


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_maxima_and_their_gradients(device, dtype):
    """Few different numbers, so that there are ties, and NaN and infinities among them."""
    for rng, case in drawn(f"maxima {dtype}", DRAWN // 2, pooling=True):
        values = np.array([-2.0, -1.0, 0.0, 1.0, 1.0, np.nan, np.inf, -np.inf])
        x = rng.choice(values[: 5 if rng.random() < 0.5 else 8], case.shape).astype(dtype)
        best, place = largest(case, np.asarray(x, np.float64))
        a = views(rng, device, case.flat(x)).detach().requires_grad_()
        how = [case.given(one) for one in (case.kernel, case.stride, case.padding, case.dilation)]
        y = function(case, "max_pool")(a, *how)
        assert y.dtype == dtype
        assert np.array_equal(host(y), case.flat(best), equal_nan=True)
        plain = function(case, "max_pool")(a.detach(), *how)
        assert np.array_equal(helpers.bits(plain.numpy()), helpers.bits(y.detach().numpy()))
        gradient = rng.integers(-2, 3, place.shape).astype(dtype)
        wide = np.asarray(gradient, np.float64)
        at = table(case).reshape(-1, *case.lengths)
        chosen = np.where(
            place[:, :, None] == np.arange(len(at))[:, None, None], wide[:, :, None], 0
        )
        (found,) = vg.autograd.grad(y, (a,), views(rng, device, case.flat(gradient)))
        exactly(found, case.flat(folded(chosen, at, case.shape)), dtype, case)


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
@pytest.mark.parametrize("with_padding", [True, False])
def test_means_and_their_gradients(device, dtype, with_padding):
    unit = float(helpers.finfo(dtype).eps)
    for rng, case in drawn(f"means {dtype} {with_padding}", DRAWN // 2, pooling=True):
        case = case._replace(dilation=(1, 1))
        x = rng.integers(-4, 5, case.shape).astype(dtype)
        at = table(case)
        inside = (at >= 0).sum((0, 1))
        count = math.prod(case.kernel) if with_padding else inside
        wanted = unfolded(np.asarray(x, np.float64), at, 0.0).sum((2, 3)) / count
        a = views(rng, device, case.flat(x)).detach().requires_grad_()
        how = [case.given(one) for one in (case.kernel, case.stride, case.padding)]
        y = function(case, "avg_pool")(a, *how, count_include_pad=with_padding)
        assert y.dtype == dtype and y.shape == case.flat(wanted).shape
        near(y, case.flat(wanted), unit * np.abs(case.flat(wanted)))
        gradient = rng.integers(-2, 3, wanted.shape).astype(dtype)
        each = np.broadcast_to(
            (np.asarray(gradient, np.float64) / count)[:, :, None, None],
            (*case.shape[:2], *at.shape),
        )
        dx = folded(each, at, case.shape)
        terms = folded(np.abs(each), at, case.shape)
        (found,) = vg.autograd.grad(y, (a,), views(rng, device, case.flat(gradient)))
        small = 2.0**-20 if unit > 1e-6 else 16 * unit  # of sums in float32, or in the dtype
        near(found, case.flat(dx), case.flat(unit * np.abs(dx) + small * terms))


def near(found, wanted, allowed):
    error = np.abs(host(found) - wanted)
    assert not (error > allowed).any(), f"{found}\n{wanted}"


def test_means_of_many_elements(device):
    """Equal terms err the most: they are not added in one chain."""
    x = put(device, np.full((1, 1, 56, 57), 0.1, np.float32))
    exact = float(np.float32(0.1))
    for kernel in ((56, 57), (1, 57), (56, 1)):
        means = F.avg_pool2d(x, kernel).numpy()
        assert np.abs(means / exact - 1).max() <= 2e-6, kernel
    for shape in ((1, 1, 1, 4000), (1, 1, 4000, 1)):
        means = F.avg_pool2d(put(device, np.full(shape, 0.1, np.float32)), shape[2:]).numpy()
        assert np.abs(means / exact - 1).max() <= 2e-6, shape
    x = np.ones((1, 1, 1, 100), np.float32)
    for bad, wanted in ((np.inf, np.inf), (-np.inf, -np.inf), (np.nan, np.nan)):
        x[..., 70] = bad
        found = F.avg_pool2d(put(device, x), (1, 99), 1).numpy()
        assert np.array_equal(found[0, 0, 0], [wanted] * 2, equal_nan=True)


def test_windows_beside_the_array_are_empty(device):
    """A dilated kernel may miss an array of which there is little."""
    x = put(device, np.array([[[3.0, 4.0, 5.0, 6.0]]])).requires_grad_()
    y = F.max_pool1d(x, 2, 1, padding=1, dilation=5)
    assert host(y).tolist() == [[[-math.inf]]]
    y.sum().backward()
    assert x.grad.tolist() == [[[0.0] * 4]]


def test_integers_become_the_default_float(device):
    x = put(device, np.arange(8).reshape(1, 1, 8))
    assert F.max_pool1d(x, 2).dtype == F.avg_pool1d(x, 2).dtype == "float32"
    assert F.avg_pool1d(x, 2).tolist() == [[[0.5, 2.5, 4.5, 6.5]]]
    assert F.max_pool1d(vg.astype(x, "bool"), 4).tolist() == [[[1.0, 1.0]]]


# Gradients of gradients, and the rest -------------------------------------------------------------

SMOOTH = {
    "conv1d": (lambda x, w: F.conv1d(x, w, None, 2, 1, 2, 2), (2, 4, 7), (6, 2, 3)),
    "conv2d": (lambda x, w: F.conv2d(x, w, None, (1, 2), (0, 1)), (2, 2, 4, 5), (3, 2, 2, 3)),
    "depthwise": (lambda x, w: F.conv2d(x, w, padding=1, groups=3), (1, 3, 4, 3), (6, 1, 3, 3)),
    "pointwise": (lambda x, w: F.conv2d(x, w), (1, 3, 4, 3), (2, 3, 1, 1)),
    "max_pool2d": (lambda x: F.max_pool2d(x, (2, 3), 1, 1), (1, 2, 4, 5)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2, 2, 1, 3), (2, 1, 7)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), (1, 2, 5, 4)),
    "avg_pool without padding": (
        lambda x: F.avg_pool1d(x, 3, 1, 1, count_include_pad=False),
        (1, 2, 5),
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_gradients(device, name):
    call, *shapes = SMOOTH[name]
    rng = np.random.default_rng(1)
    operands = [rng.normal(size=shape) for shape in shapes]
    check(call, *operands, device=device)
    check_twice(lambda *a: call(*[x * x * x for x in a]), *operands, device=device)


def test_third_gradients_of_a_convolution(device):
    """Of y = x * x convolved, once more, with what was found: all by the same three kernels."""
    x = put(device, np.array([[[1.0, 2.0, 3.0]]])).requires_grad_()
    w = put(device, np.array([[[2.0, -1.0]]])).requires_grad_()
    (first,) = vg.autograd.grad((F.conv1d(x, w) ** 3).sum(), (x,), create_graph=True)
    (second,) = vg.autograd.grad((first**2).sum(), (w,), create_graph=True)
    (third,) = vg.autograd.grad(second.sum(), (x,))

    def total(values):
        a, b = (vg.asarray(one, device="cpu").requires_grad_() for one in (values, weights))
        (g,) = vg.autograd.grad((F.conv1d(a, b) ** 3).sum(), (a,), create_graph=True)
        return vg.autograd.grad((g**2).sum(), (b,))[0].sum().item()

    start, weights, step = x.detach().numpy(), w.detach().numpy(), 1e-5
    for i in range(3):
        moved = [start.copy(), start.copy()]
        moved[0][0, 0, i] += step
        moved[1][0, 0, i] -= step
        wanted = (total(moved[0]) - total(moved[1])) / (2 * step)
        assert not abs(third.numpy()[0, 0, i] - wanted) > 1e-4 * max(1, abs(wanted))


def test_calls_of_the_backend(device):
    """One call forward, and one backward; places are kept only where a gradient may come."""
    x, w = (put(device, np.ones(shape)) for shape in ((1, 2, 4, 4), (2, 2, 2, 2)))
    calls = []
    with observe(lambda call: calls.append(call.method)):
        F.conv2d(x, w)
        F.max_pool2d(x, 2)
        F.avg_pool2d(x, 2)
    assert calls == ["convolution", "pool", "pool"]
    x.requires_grad_()
    for function, backward in ((F.max_pool2d, "pool_backward"), (F.avg_pool2d, "pool_backward")):
        y = function(x, 2)
        calls.clear()
        with observe(lambda call: calls.append(call.method)):
            vg.autograd.grad(y, (x,), vg.ones_like(y))
        assert calls[-1] == backward and calls.count(backward) == 1
    with vg.no_grad(), observe(lambda call: calls.append(call.method)):
        F.max_pool2d(x, 2)
    assert calls[-2:] == ["pool_backward", "pool"]


@pytest.mark.devices("sim", "cuda")
def test_nothing_comes_back_to_the_host(device):
    """No copy and no wait, forward or backward; a pool is one launch each way."""
    shapes = ((2, 4, 16, 16), (8, 4, 3, 3), (4, 1, 3, 3), (8, 4, 1, 1))
    x, *weights = (put(device, np.ones(shape, np.float32)).requires_grad_() for shape in shapes)
    pools = [lambda: F.max_pool2d(x, 3, 2, 1), lambda: F.avg_pool2d(x, 2)]
    convolutions = [lambda w=w: F.conv2d(x, w, groups=4 // w.shape[1]) for w in weights]
    for number, call in enumerate([*pools, *convolutions]):
        before = counters(device)
        y = call()
        middle = counters(device)
        gradient = vg.ones_like(y)
        launched = counters(device)
        vg.autograd.grad(y.sum() if number < 0 else y, (x,), gradient)
        after = counters(device)
        moved = (middle - before) + (after - launched)
        assert not moved[1:].any(), f"{moved} copies and waits"
        assert middle[0] > before[0] and after[0] > launched[0]
        if number < len(pools):
            assert middle[0] - before[0] == 1 and after[0] - launched[0] == 1


def test_places_are_written(device):
    """They have another version then, and what they were saved for sees it."""
    x, places = put(device, X), put(device, np.full((1, 2, 2, 2), 7, np.int32))
    before = places._version, x._version
    apply(x.backend, "pool", MAX, x, places, PLAIN, True)
    assert places._version > before[0] and x._version == before[1]
    assert places.tolist() == np.zeros((1, 2, 2, 2), int).tolist()


@pytest.mark.devices("sim", "cuda")
def test_in_a_recorded_graph(device):
    """Forward and backward do the same when they are done again from a recording."""
    rng = np.random.default_rng(4)
    x, few, w = (
        put(device, rng.normal(size=shape).astype(np.float32))
        for shape in ((2, 4, 9, 9), (4, 1, 3, 3), (8, 4, 3, 3))
    )
    places = [vg.zeros(shape, device=device) for shape in ((2, 8, 3, 3), x.shape, w.shape)]

    def work():
        leaves = [one.detach().requires_grad_() for one in (x, w)]
        y = F.conv2d(leaves[0], few, padding=1, groups=4)
        y = F.max_pool2d(F.conv2d(y, leaves[1]), 2)
        found = y.detach(), *vg.autograd.grad(y, leaves, vg.ones_like(y))
        for place, one in zip(places, found, strict=True):
            place[...] = one

    work()
    wanted = [place.numpy().copy() for place in places]
    for place in places:
        place[...] = 0
    again = x.backend.record(work)
    again()
    again()
    for place, one in zip(places, wanted, strict=True):
        assert np.array_equal(place.numpy(), one) and one.any()


def test_the_same_bits_each_time(device):
    rng = np.random.default_rng(3)
    x = put(device, rng.normal(size=(4, 6, 20, 20)).astype(np.float32)).requires_grad_()
    for groups in (1, 6):
        weight = rng.normal(size=(6, 6 // groups, 3, 3)).astype(np.float32)
        weight = put(device, weight).requires_grad_()
        found = []
        for _ in range(2):
            y = F.conv2d(x, weight, groups=groups)
            grads = vg.autograd.grad((y * y).sum(), (x, weight))
            found.append([helpers.bits(one.detach().numpy()) for one in (y, *grads)])
        assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))


# What is refused ----------------------------------------------------------------------------------

MISTAKES = [
    (ValueError, "a kernel of", lambda x, w: F.conv2d(x, w, dilation=4)),
    (ValueError, "a kernel of", lambda x, w: F.conv1d(x[0, :, :2], w[0], dilation=5)),
    (ValueError, "a kernel of", lambda x, w: F.max_pool2d(x, 5)),
    (ValueError, "a kernel of", lambda x, w: F.avg_pool2d(x, (2, 9), padding=(0, 1))),
    (ValueError, "below 2", lambda x, w: F.max_pool2d(x, 2, 2**31)),
    (ValueError, "stride", lambda x, w: F.avg_pool2d(x, 2, 0)),
    (ValueError, "dilation", lambda x, w: F.max_pool2d(x, 2, dilation=-1)),
    (ValueError, "padding", lambda x, w: F.conv2d(x, w, padding=-1)),
    (ValueError, "groups", lambda x, w: F.conv2d(x, w, groups=0)),
    (TypeError, "float", lambda x, w: F.conv2d(vg.astype(x, "int32"), w)),
    (TypeError, "float", lambda x, w: F.conv2d(x, vg.astype(w, "int64"))),
    (TypeError, "float", lambda x, w: F.conv2d(x, w, vg.astype(w[0, 0, 0], "int8"))),
    (TypeError, "", lambda x, w: F.max_pool2d(vg.astype(x, "complex64"), 2)),
    (TypeError, "", lambda x, w: F.avg_pool2d(vg.astype(x, "complex64"), 2)),
]


@pytest.mark.parametrize("dimensions", [1, 2])
def test_windows_that_are_known_take_no_other_arguments(device, dimensions):
    """What is equal to an integer is refused after a call with the integer, too."""
    functional = vg.nn.functional
    x = put(device, np.arange(36.0).reshape(1, 1, 36) if dimensions == 1 else np.eye(6)[None, None])
    for kind in ("max", "avg"):
        pool = getattr(functional, f"{kind}_pool{dimensions}d")
        found = [pool(x, 2, 1, 1), pool(x, (2,) * dimensions, [1], 1), pool(x, [2], 1, 1)]
        assert len({one.shape for one in found}) == 1
        assert found[0].shape != pool(x, 2, None, 1).shape != pool(x, 2, None, 0).shape
        assert found[0][0].shape == pool(x[0], 2, 1, 1).shape
        for wrong in ((2.0, 1, 1), (2, True, 1), (2, 1, True), ((2.0,) * dimensions, 1, 1)):
            with pytest.raises(TypeError, match="integer"):
                pool(x, *wrong)
    conv = getattr(functional, f"conv{dimensions}d")
    weight = put(device, np.ones((3, 1, *[2] * dimensions)))
    assert conv(x, weight, None, 1, "same").shape == (1, 3, *x.shape[2:])
    assert conv(x[0], weight, None, 1, "same").shape == (3, *x.shape[2:])
    assert conv(x, weight, None, 1, 1).shape == (1, 3, *[n + 1 for n in x.shape[2:]])
    for wrong in ((1.0, 1), (1, True), (True, 1), (1, 1, 1.0)):
        with pytest.raises(TypeError, match="integer"):
            conv(x, weight, None, *wrong)


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case[1])
def test_mistakes_are_the_same_on_every_device(device, case):
    error, text, call = case
    x, w = put(device, X), put(device, W)
    with helpers.refused(device, error, x, w, match=text):
        call(x, w)


def wrong(number, value):
    return (*PLAIN[:number], value, *PLAIN[number + 1 :])


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("pool", (int(Operation.MIN), "x", None, PLAIN, True)),
        ("pool", (MAX, "x", None, PLAIN, 2)),
        ("pool", (MAX, "row", None, PLAIN, True)),
        ("pool", (MAX, "x", None, wrong(0, 5), True)),
        ("pool", (MAX, "x", None, wrong(0, 0), True)),
        ("pool", (MAX, "x", None, wrong(3, 2**31), True)),
        ("pool", (MAX, "x", None, wrong(4, -1), True)),
        ("pool", (MAX, "x", "x", PLAIN, True)),
        ("pool", (MAX, "x", "places of x", PLAIN, True)),
        ("pool", (MEAN, "x", "places", PLAIN, True)),
        ("pool_backward", (MAX, "y", None, PLAIN, True, 4, 4)),
        ("pool_backward", (MEAN, "y", "places", PLAIN, True, 4, 4)),
        ("pool_backward", (MEAN, "y", None, PLAIN, True, 4, 6)),
        ("pool_backward", (MEAN, "y", None, PLAIN, True, -4, 4)),
        ("convolution", ("x", "row", PLAIN, 1)),
        ("convolution", ("x", "w", PLAIN, 0)),
        ("convolution", ("x", "w", PLAIN, 2)),
        ("convolution", ("x", "w", wrong(0, 3), 1)),
        ("convolution", ("x", "w", wrong(1, 1), 1)),
        ("convolution", ("x", "w", wrong(8, 9), 1)),
        ("convolution_input", ("y", "w", PLAIN, 3, 4, 4)),
        ("convolution_input", ("y", "w", PLAIN, 1, 4, 6)),
        ("convolution_input", ("x", "w", PLAIN, 1, 4, 4)),
        ("convolution_weight", ("y", "x", PLAIN, 3)),
        ("convolution_weight", ("x", "x", PLAIN, 1)),
        ("convolution_weight", ("y", "row", PLAIN, 1)),
    ],
)
def test_the_library_refuses(device, method, arguments):
    arrays = {"x": X, "w": W, "y": np.ones((1, 2, 2, 2), np.float32), "row": np.ones(4, np.float32)}
    arrays |= {"places": np.zeros((1, 2, 2, 2), np.int32), "places of x": X.astype(np.int32)}
    arrays = {name: put(device, one) for name, one in arrays.items()}
    given = [arrays.get(one, one) if isinstance(one, str) else one for one in arguments]
    with helpers.refused(device, ValueError, *arrays.values()):
        apply(vg.Device(device).backend, method, *given)


@pytest.mark.parametrize("kernel", [2, 3, 4, 5])
def test_zeros_of_both_signs_are_the_same_with_and_without_places(device, rng, kernel):
    x = put(device, rng.choice(np.array([0.0, -0.0, -1.0], "f4"), (2, 3, 20, 20)))
    y = F.max_pool2d(x.detach().requires_grad_(), kernel, 1, 1)
    alone = F.max_pool2d(x, kernel, 1, 1)
    assert helpers.bits(alone.numpy()) == helpers.bits(y.detach().numpy())
