"""torch's options of pooling and convolution: ceil_mode, return_indices, divisor_override and
padding_mode, for drawn shapes beside loops over windows."""

import itertools
import math

import numpy as np
import pytest
from gradients import check
from helpers import host, put

import pyvecgpu as vg

nn, F = vg.nn, vg.nn.functional
DRAWN = 60


def windows_of(length, kernel, stride, padding, dilation, ceil):
    """How many windows an axis has, by torch's documentation."""
    room = (length + 2 * padding - dilation * (kernel - 1) - 1) / stride
    count = (math.ceil(room) if ceil else math.floor(room)) + 1
    if ceil and (count - 1) * stride >= length + padding:
        count -= 1
    return count


def how_of(axes):
    """Kernels, strides, paddings and dilations of (length, kernel, ...) of each axis."""
    return list(zip(*axes, strict=True))[1:]


def drawn(rng, axes):
    """Yield (shape, kernel, stride, padding, dilation, ceil) whose axes have windows."""
    found = 0
    while found < DRAWN:
        sizes = [int(n) for n in rng.integers(1, 12, axes)]
        kernel, stride, dilation = (
            [int(n) for n in rng.integers(1, high, axes)] for high in (5, 5, 3)
        )
        padding = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        ceil = bool(rng.integers(2))
        how = list(zip(sizes, kernel, stride, padding, dilation, strict=True))
        if min(windows_of(*one, ceil) for one in how) < 1:
            continue
        shape = (int(rng.integers(1, 3)), int(rng.integers(1, 4)), *sizes)
        windows = walk(shape, *how_of(how), ceil)
        if not all(any(is_in(elements, sizes)) for _, elements in windows):
            continue  # by a dilation, a window has only padding
        found += 1
        yield shape, tuple(kernel), tuple(stride), tuple(padding), tuple(dilation), ceil


def walk(shape, kernel, stride, padding, dilation, ceil):
    """Yield (the window's place, the places of its elements, those of them that are in x)."""
    axes = list(zip(shape[2:], kernel, stride, padding, dilation, strict=True))
    counts = [windows_of(*one, ceil) for one in axes]
    for place in itertools.product(*map(range, counts)):
        all_of_them = itertools.product(
            *(
                [i * s - p + j * d for j in range(k)]
                for i, (_, k, s, p, d) in zip(place, axes, strict=True)
            )
        )
        yield place, list(all_of_them)


def is_in(places, sizes, padding=None):
    around = padding or (0,) * len(sizes)
    return [
        all(-p <= i < n + p for i, n, p in zip(place, sizes, around, strict=True))
        for place in places
    ]


@pytest.mark.parametrize("axes", [1, 2])
def test_maxima_and_where_they_are(device, rng, axes):
    pool = (F.max_pool1d, F.max_pool2d)[axes - 1]
    layer = (nn.MaxPool1d, nn.MaxPool2d)[axes - 1]
    for shape, *how in drawn(rng, axes):
        x = rng.integers(-3, 4, shape).astype(np.float32)
        counts = [windows_of(*one, how[-1]) for one in zip(shape[2:], *how[:-1], strict=True)]
        best = np.empty((*shape[:2], *counts), np.float32)
        indices = np.empty(best.shape, np.int64)
        for place, elements in walk(shape, *how):
            inside = np.array(elements)[is_in(elements, shape[2:])]
            flat = np.ravel_multi_index(tuple(inside.T), shape[2:])
            values = x.reshape(*shape[:2], -1)[:, :, flat]
            best[(..., *place)] = values.max(-1)
            indices[(..., *place)] = flat[values.argmax(-1)]
        array = put(device, x)
        y, found = pool(array, *how[:-1], ceil_mode=how[-1], return_indices=True)
        assert y.shape == best.shape and np.array_equal(y.numpy(), best), how
        assert found.dtype == "int64" and np.array_equal(found.numpy(), indices), how
        made = layer(*how[:-1], ceil_mode=how[-1])
        assert np.array_equal(made(array).numpy(), best)
        assert np.array_equal(made(array[0]).numpy(), best[0]), "without N"
        _, alone = pool(array[0], *how[:-1], how[-1], True)
        assert np.array_equal(alone.numpy(), indices[0])


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("counted", [True, False])
def test_means(device, rng, axes, counted):
    pool = (F.avg_pool1d, F.avg_pool2d)[axes - 1]
    layer = (nn.AvgPool1d, nn.AvgPool2d)[axes - 1]
    for number, (shape, kernel, stride, padding, _, ceil) in enumerate(drawn(rng, axes)):
        how = (kernel, stride, padding, (1,) * axes, ceil)
        if min(windows_of(*one, ceil) for one in zip(shape[2:], *how[:-1], strict=True)) < 1:
            continue
        x = rng.integers(-8, 9, shape).astype(np.float64)
        wanted, sums = {}, {}
        for place, elements in walk(shape, *how):
            inside = np.array(elements)[is_in(elements, shape[2:])]
            flat = np.ravel_multi_index(tuple(inside.T), shape[2:])
            sums[place] = x.reshape(*shape[:2], -1)[:, :, flat].sum(-1)
            divisor = sum(is_in(elements, shape[2:], padding)) if counted else len(inside)
            wanted[place] = sums[place] / divisor
        array = put(device, x)
        y = pool(array, kernel, stride, padding, ceil, counted).numpy()
        assert y.shape[2:] == tuple(n + 1 for n in max(wanted))
        for place in wanted:
            found = y[(..., *place)]
            assert (np.abs(found - wanted[place]) <= 1e-12 * (np.abs(wanted[place]) + 1)).all(), how
        same = layer(kernel, stride, padding, ceil, counted)
        assert np.array_equal(same(array).numpy(), y)
        if axes == 2:
            y = nn.AvgPool2d(kernel, stride, padding, ceil, counted, 3)(array).numpy()
            for place in sums:
                assert (np.abs(y[(..., *place)] - sums[place] / 3) <= 1e-12 * 300).all()
        if number % 10 == 0 and min(padding) < max(padding) + ceil:
            check(same, x, device=device)


def test_gradients_of_maxima(device, rng):
    x = rng.permutation(2 * 7 * 6).astype(np.float64).reshape(1, 2, 7, 6)
    check(nn.MaxPool2d(3, 2, 1, ceil_mode=True), x, device=device)
    check(lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True, return_indices=True)[0], x, device=device)


MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [1, (2, 1), "same"])
def test_what_is_around_an_input(device, rng, mode, padding):
    vg.random.seed(3)
    layer = nn.Conv2d(2, 4, (3, 2), 1, padding, 1, 2, True, mode, device=device, dtype="float64")
    plain = nn.Conv2d(2, 4, (3, 2), groups=2, device=device, dtype="float64")
    plain.load_state_dict(layer.state_dict())
    x = rng.standard_normal((2, 2, 5, 6))
    around = {1: ((1, 1), (1, 1)), (2, 1): ((2, 2), (1, 1)), "same": ((1, 1), (0, 1))}[padding]
    wide = np.pad(x, ((0, 0), (0, 0), *around), MODES[mode])
    found, wanted = layer(put(device, x)), plain(put(device, wide))
    assert np.array_equal(found.detach().numpy(), wanted.detach().numpy())
    assert layer(put(device, x[0])).shape == layer(put(device, x)).shape[1:]
    check(layer, x, device=device)
    assert f"padding_mode='{mode}'" in repr(layer) and "padding_mode" not in repr(plain)


def test_around_one_axis(device):
    layer = nn.Conv1d(1, 1, 3, padding=2, padding_mode="circular", bias=False, device=device)
    layer.load_state_dict({"weight": np.array([[[0.0, 1.0, 0.0]]], np.float32)})
    assert layer(put(device, np.arange(3.0, dtype="f")[None])).tolist() == [[2, 0, 1, 2, 0]]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda: nn.Conv1d(1, 1, 3, padding_mode="mirror")),
        (ValueError, lambda: F.avg_pool2d(vg.ones((1, 4, 4)), 2, divisor_override=0)),
        (TypeError, lambda: F.avg_pool2d(vg.ones((1, 4, 4)), 2, divisor_override=1.5)),
        (ValueError, lambda: F.max_pool1d(vg.ones((1, 1)), 3, 2, ceil_mode=True)),
        (ValueError, lambda: F.avg_pool1d(vg.ones((1, 4)), 2, 2, 2, True)),
        (NotImplementedError, lambda: nn.Embedding(3, 2, max_norm=1.0)),
        (NotImplementedError, lambda: nn.Embedding(3, 2, None, None, 2.0, True)),
        (NotImplementedError, lambda: nn.Embedding(3, 2, sparse=True)),
        (NotImplementedError, lambda: nn.MultiheadAttention(4, 2, 0.0, True, True)),
        (NotImplementedError, lambda: nn.MultiheadAttention(4, 2, add_zero_attn=True)),
        (NotImplementedError, lambda: nn.LSTM(3, 4, proj_size=2)),
    ],
)
def test_what_is_refused(error, call):
    with pytest.raises(error):
        call()


def test_torchs_defaults_are_taken_by_name_and_by_position():
    nn.Embedding(3, 2, None, None, 2.0, False, False)
    nn.MultiheadAttention(4, 2, 0.0, True, False, False, 3, 5, True)
    nn.LSTM(3, 4, 1, True, True, 0.0, False, 0)
    nn.MaxPool2d(2, 2, 0, 1, False, False)
    nn.AvgPool2d(2, 2, 0, False, True, None)
    assert repr(nn.MaxPool2d(2)) == "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1)"
    assert repr(nn.MaxPool1d(2, ceil_mode=True)).endswith("ceil_mode=True)")


@pytest.mark.parametrize("name", ["avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"])
def test_numpy_arrays_and_lists_are_taken_with_every_option(device, name):
    axes = int(name[-2])
    x = np.random.default_rng(axes).standard_normal((2, 3, *[7] * axes)).astype(np.float32)
    options = [{"ceil_mode": ceil, "padding": p} for ceil in (False, True) for p in (0, 1, [1])]
    more = [{"return_indices": True}] if name[0] == "m" else [{"count_include_pad": False}]
    more += [{"divisor_override": 2}] if name == "avg_pool2d" else []
    function = getattr(F, name)
    for one, other in itertools.product(options, [{}, *more]):
        expected = function(put(device, x), 3, 2, **one, **other)
        with vg.device(device):
            results = function(x, 3, 2, **one, **other), function(x.tolist(), 3, 2, **one, **other)
        for found in results:
            pairs = zip(found, expected, strict=True) if type(expected) is tuple else None
            for a, b in pairs or [(found, expected)]:
                assert np.array_equal(host(a), host(b)), (one, other)
