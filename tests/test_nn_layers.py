"""Normalisation, convolution and pooling against NumPy's loops; gradients against differences."""

import itertools

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put
from test_nn_losses import near

import pyvecgpu as vg
from pyvecgpu import nn

F = nn.functional
RNG = np.random.default_rng(12)

# Normalisation ------------------------------------------------------------------------------------


def standard(x, axes, eps=1e-5):
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)


@pytest.mark.parametrize(
    ("shape", "last"), [((4, 5), (5,)), ((2, 3, 4), (3, 4)), ((6,), (6,)), ((0, 3), (3,))], ids=str
)
def test_layer_and_rms_norm(device, shape, last):
    x, weight, bias = RNG.normal(size=shape), RNG.normal(size=last), RNG.normal(size=last)
    axes = tuple(range(-len(last), 0))
    arrays = [put(device, a) for a in (x, weight, bias)]
    near(F.layer_norm(arrays[0], last), standard(x, axes))
    near(
        F.layer_norm(arrays[0], last, *arrays[1:], eps=0.1), standard(x, axes, 0.1) * weight + bias
    )
    rms = x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + 2.0**-52) * weight
    near(F.rms_norm(arrays[0], last, arrays[1]), rms)
    check(lambda x, w, b: F.layer_norm(x, last, w, b), x, weight, bias, device=device)
    check(lambda x, w: F.rms_norm(x, last, w, 1e-3), x, weight, device=device)
    check_twice(lambda x: F.layer_norm(x, last), x, device=device)
    for dtype in ("float16", "float32"):
        result = F.layer_norm(put(device, x.astype(dtype)), last)
        assert result.dtype == dtype
        near(result.astype("float64"), standard(x.astype(dtype).astype(float), axes), 2e-3)


@pytest.mark.parametrize("shape", [(2, 6), (3, 6, 4), (2, 6, 2, 3)], ids=str)
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_norm(device, shape, groups):
    x, weight, bias = RNG.normal(size=shape), RNG.normal(size=6), RNG.normal(size=6)
    parts = x.reshape(shape[0], groups, -1)
    along = (6, *[1] * (len(shape) - 2))
    wanted = standard(parts, 2).reshape(shape) * weight.reshape(along) + bias.reshape(along)
    near(
        F.group_norm(
            *[put(device, a) for a in (x,)], groups, *(put(device, a) for a in (weight, bias))
        ),
        wanted,
    )
    check(lambda x, w, b: F.group_norm(x, groups, w, b), x, weight, bias, device=device)


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2), (2, 3, 2, 2)], ids=str)
@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm(device, shape, momentum):
    kind = nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d
    layer = kind(3, momentum=momentum, device=device, dtype="float64")
    weight, bias = RNG.normal(size=3), RNG.normal(size=3)
    layer.load_state_dict({"weight": weight, "bias": bias}, strict=False)
    axes, along = (0, *range(2, len(shape))), (3, *[1] * (len(shape) - 2))
    average, variance = np.zeros(3), np.ones(3)
    for step in range(3):
        x = RNG.normal(size=shape) * 2 + 1
        y = layer(put(device, x))
        near(y, standard(x, axes) * weight.reshape(along) + bias.reshape(along), 1e-10)
        part = 1 / (step + 1) if momentum is None else momentum
        average = (1 - part) * average + part * x.mean(axis=axes)
        variance = (1 - part) * variance + part * x.var(axis=axes, ddof=1)
    near(layer.running_mean, average)
    near(layer.running_var, variance)
    assert layer.num_batches_tracked.item() == 3 and not layer.running_mean.requires_grad
    check(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, weight, bias, device=device)
    layer.eval()
    scale = weight / np.sqrt(variance + 1e-5)
    wanted = (x - average.reshape(along)) * scale.reshape(along) + bias.reshape(along)
    near(layer(put(device, x)), wanted)
    check(layer, x, device=device)
    near(layer.running_mean, average)
    assert layer.num_batches_tracked.item() == 3


def test_batch_norm_without_statistics(device):
    layer = nn.BatchNorm1d(3, affine=False, track_running_stats=False, device=device).eval()
    assert not layer.state_dict()
    x = RNG.normal(size=(5, 3))
    near(layer(put(device, x)), standard(x, 0))


def test_batch_norm_of_nothing(device):
    layer = nn.BatchNorm1d(3, device=device)
    before = layer.running_mean.numpy(), layer.running_var.numpy()
    for shape in ((0, 3), (2, 3, 0)):
        x = put(device, np.ones(shape, np.float32)).requires_grad_()
        result = layer(x)
        assert result.shape == shape and result.dtype == "float32"
        result.sum().backward()
        assert x.grad.shape == shape and layer.weight.grad.tolist() == [0, 0, 0]
    assert np.array_equal([layer.running_mean.numpy(), layer.running_var.numpy()], before)


def test_batch_norm_that_fails_leaves_its_statistics(device):
    layer = nn.BatchNorm1d(3, device=device)
    before = layer.running_mean.numpy()
    for shape in ((1, 3), (2, 4), (3,), (2, 3, 1, 1)):
        with pytest.raises(ValueError, match=r"batch_norm|BatchNorm1d"):
            layer(put(device, np.ones(shape, np.float32)))
    assert np.array_equal(layer.running_mean.numpy(), before)
    assert layer.num_batches_tracked.item() == 0


def test_rows_that_are_constant(device):
    x = put(device, np.full((3, 4), 7.0))
    assert not F.layer_norm(x, 4).numpy().any()
    assert np.isnan(F.layer_norm(x, 4, eps=0.0).numpy()).all()
    assert not F.batch_norm(x, None, None, training=True).numpy().any()


# Convolution --------------------------------------------------------------------------------------


def convolution(x, weight, bias, stride, pads, dilation, groups):
    """Every result by its own sum. x: (N, channels, ...) of any number of axes behind."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    kernel, out = weight.shape[2:], weight.shape[0]
    lengths = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    result = np.zeros((x.shape[0], out, *lengths))
    size = weight.shape[1]
    for o, *place in np.ndindex(out, *lengths):
        first = o // (out // groups) * size
        for c, *inner in np.ndindex(weight.shape[1:]):
            at = [p * s + i * d for p, s, i, d in zip(place, stride, inner, dilation, strict=True)]
            term = weight[(o, c, *inner)] * x[(slice(None), first + c, *at)]
            result[(slice(None), o, *place)] += term
    return result if bias is None else result + bias.reshape(out, *[1] * len(lengths))


CONVOLUTIONS = [
    # x, weight, stride, padding, before and behind, dilation, groups
    ((2, 3, 7), (4, 3, 3), (1,), 0, [(0, 0)], (1,), 1),
    ((1, 4, 9), (6, 2, 2), (2,), 1, [(1, 1)], (3,), 2),
    ((2, 2, 6), (2, 2, 4), (1,), "same", [(1, 2)], (1,), 1),
    ((2, 2, 5, 4), (3, 2, 3, 2), (1, 1), "valid", [(0, 0)] * 2, (1, 1), 1),
    ((1, 3, 6, 5), (3, 1, 3, 3), (2, 1), (1, 2), [(1, 1), (2, 2)], (1, 2), 3),
    ((1, 2, 4, 4), (4, 1, 2, 3), (1, 1), "same", [(1, 1), (1, 1)], (2, 1), 2),
    ((2, 1, 3, 3), (1, 1, 1, 1), (2, 2), 0, [(0, 0)] * 2, (1, 1), 1),
    ((0, 2, 4, 4), (3, 2, 2, 2), (1, 1), 0, [(0, 0)] * 2, (1, 1), 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("with_bias", [False, True])
def test_convolution(device, case, with_bias):
    shape, kernel, stride, padding, pads, dilation, groups = case
    x, weight = RNG.normal(size=shape), RNG.normal(size=kernel)
    bias = RNG.normal(size=kernel[0]) if with_bias else None
    wanted = convolution(x, weight, bias, stride, pads, dilation, groups)
    axes = len(shape) - 2
    kind, function = (nn.Conv1d, F.conv1d) if axes == 1 else (nn.Conv2d, F.conv2d)
    layer = kind(
        shape[1], kernel[0], kernel[2:], stride, padding, dilation, groups, with_bias,
        device=device, dtype="float64",
    )  # fmt: skip
    state = {"weight": weight} | ({"bias": bias} if with_bias else {})
    layer.load_state_dict(state)
    near(layer(put(device, x)), wanted, 1e-11)
    if shape[0]:
        near(layer(put(device, x[0])), wanted[0], 1e-11)
    how = (stride, padding, dilation, groups)
    given = (x, weight) if bias is None else (x, weight, bias)
    if bias is None:
        check(lambda x, w: function(x, w, None, *how), *given, device=device)
        check_twice(lambda x, w: function(x, w, None, *how), *given, device=device)
    else:
        check(lambda x, w, b: function(x, w, b, *how), *given, device=device)


def test_convolution_of_float32_and_halves(device):
    x, weight = RNG.normal(size=(2, 8, 6, 6)), RNG.normal(size=(4, 8, 3, 3))
    wanted = convolution(x, weight, None, (1, 1), [(0, 0)] * 2, (1, 1), 1)
    for dtype, tolerance in (("float32", 1e-5), ("float16", 5e-2)):
        result = F.conv2d(put(device, x.astype(dtype)), put(device, weight.astype(dtype)))
        assert result.dtype == dtype
        near(result.astype("float64"), wanted, tolerance)


# Pooling ------------------------------------------------------------------------------------------


def pooling(x, kernel, stride, padding, dilation, reduce, fill):
    """Every result by its own window; reduce: of the window, and of which of it is inside."""
    inside = np.pad(np.ones(x.shape, bool), [(0, 0), (0, 0), *[(p, p) for p in padding]])
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]], constant_values=fill)
    lengths = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    result = np.zeros((*x.shape[:2], *lengths))
    for place in np.ndindex(*result.shape):
        at = [
            slice(p * s, p * s + d * (k - 1) + 1, d)
            for p, s, k, d in zip(place[2:], stride, kernel, dilation, strict=True)
        ]
        window = (*place[:2], *at)
        result[place] = reduce(x[window], inside[window])
    return result


POOLS = [
    ((2, 3, 8), (2,), None, (0,), (1,)),
    ((1, 2, 9), (3,), (2,), (1,), (2,)),
    ((2, 2, 6, 5), (2, 3), None, (0, 0), (1, 1)),
    ((1, 2, 5, 6), (3, 2), (2, 1), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("case", POOLS, ids=str)
def test_pooling(device, case):
    shape, kernel, stride, padding, dilation = case
    x, steps, axes = RNG.normal(size=shape), stride or kernel, len(shape) - 2
    largest = pooling(x, kernel, steps, padding, dilation, lambda w, i: w.max(), -np.inf)
    kind = nn.MaxPool1d if axes == 1 else nn.MaxPool2d
    layer = kind(kernel, stride, padding, dilation)
    near(layer(put(device, x)), largest)
    near(layer(put(device, x[0])), largest[0])
    check(layer, x, device=device)
    kind, ones = (nn.AvgPool1d if axes == 1 else nn.AvgPool2d), (1,) * axes
    for whole in (True, False):
        means = pooling(
            x, kernel, steps, padding, ones,
            lambda w, i: w.mean() if whole else w.sum() / i.sum(), 0.0,  # noqa: B023
        )  # fmt: skip
        layer = kind(kernel, stride, padding, count_include_pad=whole)
        near(layer(put(device, x)), means)
        check(layer, x, device=device)


def test_the_first_of_equals_gets_the_gradient(device):
    x = put(device, np.array([[[1.0, 1.0, 0.0, 2.0]]])).requires_grad_()
    F.max_pool1d(x, 4, 1).sum().backward()
    F.max_pool1d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[1.0, 0.0, 0.0, 2.0]]]
    y = F.max_pool1d(put(device, np.array([[[1.0, np.nan, 0.0, -np.inf]]])), 2)
    assert np.isnan(y.numpy()[0, 0, 0]) and y.numpy()[0, 0, 1] == 0.0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: F.conv2d(x, vg.ones((2, 3, 2, 2))), "conv2d"),
        (lambda x: F.conv2d(x, vg.ones((2, 2, 9, 2))), "a kernel of"),
        (lambda x: F.conv2d(x, vg.ones((2, 2, 2, 2)), vg.ones(3)), "a bias of"),
        (lambda x: F.conv2d(x, vg.ones((2, 2, 2, 2)), stride=0), "stride is 1 or more"),
        (lambda x: F.conv2d(x, vg.ones((2, 2, 2, 2)), stride=2, padding="same"), "stride of 1"),
        (lambda x: F.conv2d(x, vg.ones((2, 2, 2, 2)), padding="full"), "'same' or 'valid'"),
        (lambda x: F.conv2d(x, vg.ones((3, 1, 2, 2)), groups=2), "2 groups"),
        (lambda x: F.conv1d(x, vg.ones((2, 2, 2))), "input has 3 axes"),
        (lambda x: F.max_pool2d(x, 2, padding=2), "more than half"),
        (lambda x: F.avg_pool2d(x, (2, 2, 2)), "kernel_size"),
        (lambda x: F.layer_norm(x, 4), "normalized_shape"),
        (lambda x: F.layer_norm(x, 3, vg.ones(4)), "a parameter of shape"),
        (lambda x: F.group_norm(x, 3), "are not 3 groups"),
        (lambda x: F.batch_norm(x, None, None), "are needed"),
        (lambda x: nn.GroupNorm(2, 3), "are not 2 groups"),
        (lambda x: nn.Conv2d(3, 4, 2, groups=2), "are not 2 groups"),
    ],
)
def test_mistakes(call, text):
    with pytest.raises(ValueError, match=text):
        call(vg.ones((2, 2, 4, 3)))


KEYS = {
    "LayerNorm": (nn.LayerNorm((2, 3)), {"weight": (2, 3), "bias": (2, 3)}),
    "LayerNorm without bias": (nn.LayerNorm(3, bias=False), {"weight": (3,)}),
    "RMSNorm": (nn.RMSNorm(3), {"weight": (3,)}),
    "GroupNorm": (nn.GroupNorm(2, 4), {"weight": (4,), "bias": (4,)}),
    "BatchNorm2d": (
        nn.BatchNorm2d(4),
        {"weight": (4,), "bias": (4,), "running_mean": (4,), "running_var": (4,)}
        | {"num_batches_tracked": ()},
    ),
    "Conv1d": (nn.Conv1d(4, 6, 3, groups=2), {"weight": (6, 2, 3), "bias": (6,)}),
    "Conv2d": (nn.Conv2d(1, 6, (3, 5), bias=False), {"weight": (6, 1, 3, 5)}),
    "Linear": (nn.Linear(4, 6), {"weight": (6, 4), "bias": (6,)}),
    "Embedding": (nn.Embedding(4, 6), {"weight": (4, 6)}),
    "MaxPool2d": (nn.MaxPool2d(2), {}),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_torchs(name):
    layer, wanted = KEYS[name]
    found = layer.state_dict()
    assert {key: x.shape for key, x in found.items()} == wanted and list(found) == list(wanted)


def test_repr_and_first_values():
    vg.random.seed(1)
    layer = nn.Conv2d(4, 64, 3)
    values = layer.weight.detach().numpy()
    assert 0.95 / 6 < np.abs(values).max() <= 1 / 6 and values.std() > 0.09
    assert repr(layer).startswith("Conv2d(4, 64, kernel_size=(3, 3), stride=(1, 1)")
    assert repr(nn.MaxPool2d(2)) == "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1)"
    assert repr(nn.LayerNorm(3)) == "LayerNorm((3,), eps=1e-05, elementwise_affine=True)"
    norm = nn.BatchNorm1d(2)
    assert norm.weight.tolist() == [1, 1] and norm.bias.tolist() == [0, 0]
    assert repr(norm).startswith("BatchNorm1d(2, eps=1e-05, momentum=0.1, affine=True")
    for kinds in itertools.product([nn.BatchNorm1d, nn.BatchNorm2d], [True, False]):
        assert kinds[0](2, affine=kinds[1]).train().training


@pytest.mark.parametrize("batch", [65_535, 65_536, 100_000])
def test_large_batches(device, batch):
    x = RNG.integers(-3, 4, (batch, 1, 2, 2)).astype(np.float32)
    weight = np.array([[[[1.0, -2.0], [0.5, 3.0]]]], np.float32)
    wanted = np.sum(x * weight, axis=(1, 2, 3))
    found = F.conv2d(put(device, x), put(device, weight)).numpy()
    assert found.shape == (batch, 1, 1, 1) and np.array_equal(found[:, 0, 0, 0], wanted)
    rows = x.reshape(batch, 4)
    near(F.layer_norm(put(device, rows), 4), standard(rows.astype(np.float64), -1), 1e-5)
    near(F.max_pool2d(put(device, x), 2), x.max(axis=(2, 3), keepdims=True))


def test_a_weight_that_is_no_parameter(device, rng):
    """It is found as any attribute is, by the layer and by a Sequential that joins it with ReLU."""
    x, weight = [put(device, rng.normal(size=shape).astype("f4")) for shape in ((4, 3), (2, 3))]
    layer = vg.nn.Linear(3, 2, device=device)
    del layer.weight
    layer.weight = weight
    assert [name for name, _ in layer.named_parameters()] == ["bias"]
    expected = vg.dense(x, weight, layer.bias.detach())
    assert layer(x).tolist() == expected.tolist()
    net = vg.nn.Sequential(layer, vg.nn.ReLU())
    assert net(x).tolist() == vg.relu(expected).tolist()


@pytest.mark.parametrize("shape", [(5, 3), (1, 3), (0, 3), (2, 5, 3), (3,), (5, 0)], ids=str)
@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("activation", [None, "relu", "tanh"])
@pytest.mark.parametrize("mixed", [False, True])
def test_what_is_noted_of_a_recorded_layer_is_so(device, shape, outputs, activation, mixed):
    weight = put(device, RNG.normal(size=(outputs, shape[-1]))).requires_grad_()
    bias = put(device, RNG.normal(size=outputs))
    x = put(device, RNG.normal(size=shape).astype("float32" if mixed else "float64"))
    y = vg.dense(x, weight, bias, activation)
    dtype, lengths, strides = y.backend.describe(y.raw)
    assert (y.dtype, y.shape) == (dtype, lengths) == (np.float64, (*shape[:-1], outputs))
    assert y._layout[2] == strides


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.0, -2.0, 1e300, np.inf, -np.inf, np.nan])
def test_elu_of_positive_numbers_is_without_alpha(device, dtype, alpha):
    x = put(device, np.array([1.0, 3.0, np.inf, 1e30], dtype))
    assert np.array_equal(vg.nn.functional.elu(x, alpha).numpy(), x.numpy())
    if alpha != 0:
        below = vg.nn.functional.elu(put(device, np.array([-1.0], dtype)), alpha).item()
        with np.errstate(over="ignore"):
            wanted = np.array(alpha).astype(dtype) * np.expm1(-1.0)
        assert np.allclose(below, wanted, equal_nan=True)


def test_the_mean_of_all_steps_is_counted_on_the_host(device):
    """momentum=None: whoever writes the number of batches, the next step knows; no copy else."""
    layer = vg.nn.BatchNorm1d(2, momentum=None, device=device)
    rows = put(device, np.arange(12.0, dtype=np.float32).reshape(6, 2) ** 2)
    wanted, counter = [], 0
    for step in range(9):
        if step == 4:
            layer.load_state_dict(vg.nn.BatchNorm1d(2, device=device).state_dict())
            wanted = []
        if step == 7:
            layer.num_batches_tracked[...] = counter = 100
            mean = layer.running_mean.numpy()
        before = vg.counters(device)["copies_to_host"] if device != "cpu" else 0
        x = rows[step % 3 : step % 3 + 3]
        layer(x)
        copies = vg.counters(device)["copies_to_host"] - before if device != "cpu" else 0
        assert copies == (step in (0, 4, 7) and device != "cpu"), step
        wanted.append(x.numpy().mean(0))
        if step < 7:
            expected = np.mean(wanted, 0)
        else:
            counter += 1
            mean = expected = mean + (wanted[-1] - mean) / counter
        assert np.allclose(layer.running_mean.numpy(), expected, atol=1e-4), step
