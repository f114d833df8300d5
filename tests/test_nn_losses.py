"""Losses and activations against NumPy's formulas, and their gradients against differences."""

import itertools

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put

import pyvecgpu as vg
from pyvecgpu import nn

F = nn.functional
RNG = np.random.default_rng(11)
X = RNG.normal(size=(4, 3))
T = RNG.normal(size=(4, 3))


def near(result, wanted, tolerance=1e-12):
    values = result.detach().numpy()
    assert values.shape == np.shape(wanted)
    assert not np.any(~(np.abs(values - wanted) <= tolerance * (1 + np.abs(wanted))))


def reduced(values, reduction):
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](values)


def huber(d, delta):
    return np.where(np.abs(d) < delta, d * d / 2, delta * (np.abs(d) - delta / 2))


NUMBERS = {
    "mse_loss": (nn.MSELoss, {}, lambda d: d * d),
    "l1_loss": (nn.L1Loss, {}, np.abs),
    "huber_loss": (nn.HuberLoss, {"delta": 0.7}, lambda d: huber(d, 0.7)),
    "smooth_l1_loss": (nn.SmoothL1Loss, {"beta": 0.7}, lambda d: huber(d, 0.7) / 0.7),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", NUMBERS)
def test_losses_of_numbers(device, name, reduction):
    kind, options, formula = NUMBERS[name]
    function = getattr(F, name)
    wanted = reduced(formula(X - T), reduction)
    near(function(put(device, X), put(device, T), reduction=reduction, **options), wanted)
    near(kind(reduction=reduction, **options)(put(device, X), put(device, T)), wanted)
    check(lambda x, t: function(x, t, reduction=reduction, **options), X, T, device=device)
    half = function(put(device, X.astype(np.float16)), put(device, T.astype(np.float16)))
    assert half.dtype == np.float32 and half.shape == ()
    assert np.allclose(function(X, T, reduction, **options), wanted)  # NumPy's arrays
    near(F.smooth_l1_loss(put(device, X), put(device, T), beta=0.0), np.abs(X - T).mean())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy(device, weighted, reduction):
    t = RNG.random((4, 3))
    weight, pos = (RNG.random((4, 1)) + 0.5, RNG.random(3) + 0.5) if weighted else (1.0, 1.0)
    s = 1 / (1 + np.exp(-X))
    wanted = reduced(-weight * (pos * t * np.log(s) + (1 - t) * np.log(1 - s)), reduction)
    options = {}
    if weighted:
        options = {"weight": put(device, weight), "pos_weight": put(device, pos)}
    module = nn.BCEWithLogitsLoss(reduction=reduction, **options)
    near(module(put(device, X), put(device, t)), wanted)
    check(module, X, t, device=device)
    assert set(module.state_dict()) == set(options)
    far = F.binary_cross_entropy_with_logits(
        put(device, np.array([-1e4, 1e4, 0.0])), put(device, np.array([1.0, 0.0, 1.0])),
        reduction="none",
    )  # fmt: skip
    near(far, np.array([1e4, 1e4, np.log(2)]))
    x = put(device, np.zeros(1)).requires_grad_()
    F.binary_cross_entropy_with_logits(x, put(device, np.ones(1))).backward()
    assert x.grad.tolist() == [-0.5]


# Of classes ---------------------------------------------------------------------------------------


def logs_of(x):
    """The logarithm of softmax along axis 1, or the only one."""
    axis = 0 if x.ndim == 1 else 1
    e = np.exp(x)
    return np.log(e / e.sum(axis=axis, keepdims=True))


def reference(logs, labels, weight, ignore, smoothing, reduction):
    """Cross-entropy label by label."""
    classes = logs.shape[0 if logs.ndim == 1 else 1]
    weight = np.ones(classes) if weight is None else weight
    losses, weights = np.zeros(labels.shape), 0.0
    for place in np.ndindex(labels.shape):
        label = labels[place]
        if label == ignore:
            continue
        row = logs if logs.ndim == 1 else logs[(place[0], slice(None), *place[1:])]
        picked = -weight[label] * row[label]
        losses[place] = (1 - smoothing) * picked - smoothing * np.sum(weight * row) / classes
        weights += weight[label]
    return losses.sum() / weights if reduction == "mean" else reduced(losses, reduction)


SHAPES = [((5,), ()), ((4, 5), (4,)), ((2, 5, 3), (2, 3)), ((2, 5, 2, 3), (2, 2, 3))]
OPTIONS = list(itertools.product(["mean", "sum", "none"], [False, True], [-100, 2], [0.0, 0.3]))


@pytest.mark.parametrize(("shape", "places"), SHAPES, ids=str)
def test_cross_entropy(device, shape, places):
    x, labels = RNG.normal(size=shape), np.asarray(RNG.integers(0, 5, places))
    labels.reshape(-1)[0] = 3  # one that is not ignored
    for reduction, weighted, ignore, smoothing in OPTIONS:
        weight = RNG.random(5) + 0.5 if weighted else None
        on_device = put(device, weight) if weighted else None
        options = {"weight": on_device, "ignore_index": ignore, "reduction": reduction}
        loss = nn.CrossEntropyLoss(label_smoothing=smoothing, **options)
        wanted = reference(logs_of(x), labels, weight, ignore, smoothing, reduction)
        near(loss(put(device, x), put(device, labels)), wanted)
        near(loss(put(device, x), labels), wanted)  # labels on the host
        check(lambda x: loss(x, labels), x, device=device)  # noqa: B023
        if not smoothing:
            near(nn.NLLLoss(**options)(put(device, logs_of(x)), put(device, labels)), wanted)
    check(lambda x: F.nll_loss(x, labels), x, device=device)
    check_twice(lambda x: F.cross_entropy(x, labels), x, device=device)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 5, 3)], ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_of_probabilities(device, shape, smoothing):
    x, target = RNG.normal(size=shape), np.exp(logs_of(RNG.normal(size=shape)))
    axis = 0 if x.ndim == 1 else 1
    smooth = (1 - smoothing) * target + smoothing / 5
    for reduction in ("mean", "sum", "none"):
        wanted = reduced(-(smooth * logs_of(x)).sum(axis=axis), reduction)
        options = {"reduction": reduction, "label_smoothing": smoothing}
        near(F.cross_entropy(put(device, x), put(device, target), **options), wanted)
    check(lambda x, t: F.cross_entropy(x, t, label_smoothing=smoothing), x, target, device=device)
    weight = RNG.random(5)
    along = weight.reshape(-1, 1) if x.ndim == 3 else weight
    wanted = -(along * target * logs_of(x)).sum(axis=axis).mean()
    near(F.cross_entropy(put(device, x), put(device, target), put(device, weight)), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_labels_of_every_integer_dtype(device, dtype):
    labels = put(device, np.array([0, 2, 1, 1]).astype(dtype))
    x = put(device, X.astype(np.float32))
    wanted = reference(logs_of(X), labels.numpy(), None, -100, 0.0, "mean")
    near(F.cross_entropy(x, labels), wanted, 1e-6)


@pytest.mark.parametrize("label", [3, -1, -3, -5, 1000])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_a_label_out_of_range(device, name, label):
    """The label is named as it was given, of every way of a loss."""
    texts = f"label {label} is out of bounds for 3 classes"
    for dtype in ("int16", "int32", "int64"):
        labels = np.array([0, -100, label, 2], dtype)
        for given in (put(device, labels), labels):
            for options in ({}, {"ignore_index": 2**70}, {"weight": put(device, np.ones(3))}):
                expected = "label -100 " if "ignore_index" in options else texts
                with pytest.raises(IndexError, match=expected):
                    getattr(F, name)(put(device, X), given, **options).item()
        with pytest.raises(IndexError, match=texts):
            getattr(F, name)(put(device, np.zeros((1, 3, 2))), [[2, label]]).item()
        weight = vg.ones(3, device=device).requires_grad_()
        with pytest.raises(IndexError, match=texts):
            getattr(F, name)(put(device, X), put(device, labels), weight).item()
    vg.synchronize(device)
    x = put(device, X)
    kept = reference(logs_of(X), np.array([0, 1, label, 2]), None, label, 0.0, "mean")
    near(F.cross_entropy(x, np.array([0, 1, label, 2]), ignore_index=label), kept)
    for create in (False, True):  # where nothing counts there is nothing to learn
        for options in ({}, {"label_smoothing": 0.2}, {"weight": np.ones(x.shape[1])}):
            tracked = put(device, X).requires_grad_()
            loss = F.cross_entropy(tracked, np.full(4, label), ignore_index=label, **options)
            (g,) = vg.autograd.grad(loss, [tracked], create_graph=create)
            assert not g.detach().numpy().any()
    everything = F.cross_entropy(x, np.full(4, label), ignore_index=label)
    assert np.isnan(everything.item()), "the mean of none"
    assert F.cross_entropy(x, np.full(4, label), ignore_index=label, reduction="sum").item() == 0.0


def test_cross_entropy_far_out(device):
    x = put(device, np.array([[1000.0, -1000.0], [0.0, 0.0]])).requires_grad_()
    loss = F.cross_entropy(x, np.array([1, 0]), reduction="none")
    near(loss, np.array([2000.0, np.log(2)]))
    loss.sum().backward()
    assert x.grad.tolist() == [[1.0, -1.0], [-0.5, 0.5]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: F.mse_loss(x, x[:1]), ValueError),
        (lambda x: F.mse_loss(x, x, "median"), ValueError),
        (lambda x: F.mse_loss(x, 1.0), TypeError),
        (lambda x: F.huber_loss(x, x, delta=0.0), ValueError),
        (lambda x: F.cross_entropy(x, np.zeros(3, int)), ValueError),
        (lambda x: F.cross_entropy(x, np.zeros(4, bool)), TypeError),
        (lambda x: F.cross_entropy(x, np.zeros(4)), ValueError),
        (lambda x: F.cross_entropy(x, np.zeros(4, int), x), ValueError),
        (lambda x: F.cross_entropy(x, np.zeros(4, int), label_smoothing=2), ValueError),
        (lambda x: F.cross_entropy(x, np.zeros(4, int), reduction=[]), ValueError),
        (lambda x: F.nll_loss(x[0, 0], np.zeros((), int)), ValueError),
        (lambda x: F.binary_cross_entropy_with_logits(x, x[0]), ValueError),
        (lambda x: F.softplus(x, beta=0), ValueError),
        (lambda x: F.gelu(x, approximate="erf"), ValueError),
        (lambda x: F.dropout(x, -0.1), ValueError),
    ],
)
def test_mistakes(device, call, error):
    with pytest.raises(error):
        call(put(device, X))


# Activations --------------------------------------------------------------------------------------


def erf(x):
    from math import erf

    return np.vectorize(erf)(x)


ACTIVATIONS = {
    "ReLU": (nn.ReLU(), lambda x: np.maximum(x, 0)),
    "Sigmoid": (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    "Tanh": (nn.Tanh(), np.tanh),
    "SiLU": (nn.SiLU(), lambda x: x / (1 + np.exp(-x))),
    "GELU": (nn.GELU(), lambda x: x * (1 + erf(x / 2**0.5)) / 2),
    "GELU tanh": (
        nn.GELU("tanh"),
        lambda x: 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
    ),
    "Softplus": (nn.Softplus(), lambda x: np.log1p(np.exp(x))),
    "Softplus 2": (nn.Softplus(2.0, 3.0), lambda x: np.where(
        2 * x > 3, x, np.log1p(np.exp(2 * x)) / 2)),
    "LeakyReLU": (nn.LeakyReLU(0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
    "ELU": (nn.ELU(0.7), lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1))),
    "Softmax": (nn.Softmax(0), lambda x: np.exp(x) / np.exp(x).sum(axis=0)),
    "LogSoftmax": (nn.LogSoftmax(1), logs_of),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(device, name):
    module, formula = ACTIVATIONS[name]
    x = RNG.normal(size=(4, 5)) * 2
    near(module(put(device, x)), formula(x), 1e-10)
    assert np.allclose(module(x), formula(x)) and not module.state_dict()
    check(module, x, device=device)
    check_twice(module, x, device=device)
    for dtype in ("float16", "float32"):
        result = module(put(device, x.astype(dtype)))
        assert result.dtype == dtype
        near(result.astype("float64"), formula(x.astype(dtype).astype(float)), 3e-3)


def test_activations_far_out(device):
    x = put(device, np.array([-np.inf, -1e30, 0.0, 1e30, np.inf, np.nan]))
    top = [1e30, np.inf]
    for module, low in ((nn.GELU("tanh"), 0.0), (nn.Softplus(), 0.0), (nn.ELU(), -1.0)):
        values = module(x).tolist()
        assert values[:2] == [low] * 2 and values[3:5] == top and np.isnan(values[5])
    zero = put(device, np.zeros(1)).requires_grad_()
    nn.ELU(0.7)(zero).sum().backward()
    assert zero.grad.tolist() == [0.7]


# Dropout and embedding ----------------------------------------------------------------------------


def test_dropout(device):
    vg.random.seed(4)
    x = put(device, np.ones((100, 100)))
    layer = nn.Dropout(0.25)
    y = layer(x).numpy()
    assert {*np.unique(y)} == {0.0, 1 / 0.75} and abs((y == 0).mean() - 0.25) < 0.02
    vg.random.seed(4)
    assert np.array_equal(layer(x).numpy(), y)
    assert layer.eval()(x) is x and not nn.Dropout(1.0)(x).numpy().any()
    leaf = put(device, np.ones((100, 100))).requires_grad_()
    vg.random.seed(4)
    layer.train()(leaf).sum().backward()
    assert np.array_equal(leaf.grad.numpy(), y)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 4)], ids=str)
def test_embedding(device, shape):
    weight = RNG.normal(size=(6, 3))
    numbers = RNG.integers(0, 6, shape)
    near(F.embedding(put(device, numbers), put(device, weight)), weight[numbers])
    check(lambda w: F.embedding(numbers, w), weight, device=device)
    layer = nn.Embedding(6, 3, padding_idx=2, device=device, dtype="float64")
    layer.load_state_dict({"weight": weight})
    y = layer(put(device, numbers))
    near(y, weight[numbers])
    y.sum().backward()
    wanted = np.bincount(numbers.reshape(-1), minlength=6) * (np.arange(6) != 2)
    assert np.array_equal(layer.weight.grad.numpy(), np.repeat(wanted, 3).reshape(6, 3))


@pytest.mark.parametrize("padding", range(-6, 6))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_rows_of_padding_are_those_of_the_layer(device, padding, dtype):
    weight, numbers = RNG.normal(size=(6, 3)), put(device, np.array([0, 5, 2, 5, 1, 3, 4], dtype))
    layer = nn.Embedding(6, 3, padding_idx=padding, device=device, dtype="float64")
    layer.load_state_dict({"weight": weight})
    layer(numbers).sum().backward()
    leaf = put(device, weight).requires_grad_()
    F.embedding(numbers, leaf, padding).sum().backward()
    assert not leaf.grad.numpy()[padding].any() and leaf.grad.numpy()[(padding + 1) % 6].all()
    assert np.array_equal(leaf.grad.numpy(), layer.weight.grad.numpy())


@pytest.mark.parametrize("padding", [6, -7, 100])
@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_row_of_padding_that_is_not_there(device, padding, is_recorded):
    weight = put(device, RNG.normal(size=(6, 3)))
    weight = weight.requires_grad_() if is_recorded else weight
    for numbers in (np.array([0, 5]), put(device, np.array([0, 5]))):
        with pytest.raises(ValueError, match=f"padding_idx={padding} of 6 embeddings"):
            F.embedding(numbers, weight, padding)
        with pytest.raises(TypeError, match="padding_idx"):
            F.embedding(numbers, weight, 1.5)
    with pytest.raises(ValueError, match=f"padding_idx={padding} of 6 embeddings"):
        nn.Embedding(6, 3, padding_idx=padding)


INTEGERS = ["uint8", "int16", "int32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("width", [1, 3, 4, 33])
def test_embedding_by_numbers_of_any_dtype_and_layout(device, dtype, width):
    rows = int(RNG.integers(1, 90))
    weight = RNG.normal(size=(2 * rows, width + 1)).astype(np.float32)[::2, 1:]
    table = put(device, np.repeat(weight, 2, axis=0))[::2]
    for shape in ((7, 40), (1,), (1100,), (2, 3, 4)):
        numbers = RNG.integers(0, rows, shape).astype(dtype)
        given = put(device, numbers)
        assert np.array_equal(F.embedding(given, table).numpy(), weight[numbers])
        assert np.array_equal(F.embedding(given, table, 0).numpy(), weight[numbers])
        assert np.array_equal(F.embedding(given.T, table).numpy(), weight[numbers.T])
        leaf = table.detach().requires_grad_()
        assert np.array_equal(F.embedding(given, leaf).detach().numpy(), weight[numbers])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("is_recorded", [False, True])
def test_embedding_names_the_number_that_is_out_of_range(device, dtype, is_recorded):
    weight = put(device, RNG.normal(size=(6, 3)))
    weight = weight.requires_grad_() if is_recorded else weight
    for number in (6, 100) if dtype.startswith("u") else (-1, -6, 6, 100):
        numbers = put(device, np.array([0, 5, number], dtype))
        with pytest.raises(IndexError, match=f"index {number} is out of bounds for axis 0"):
            F.embedding(numbers, weight).detach().numpy()


@pytest.mark.devices("sim", "cuda")
def test_embedding_is_one_launch(device):
    weight, numbers = put(device, RNG.normal(size=(6, 3))), put(device, np.array([5, 0, 5]))

    def launches():
        return sum(record.launches for record in vg.launch_log(device))

    for padding in (None, 5):
        before = launches()
        F.embedding(numbers, weight, padding)
        assert launches() == before + 1


@pytest.mark.parametrize("number", [-1, 6])
def test_embedding_of_what_is_not_there(device, number):
    layer = nn.Embedding(6, 3, device=device)
    for numbers in (np.array([0, number]), put(device, np.array([0, number]))):
        with pytest.raises(IndexError, match="out of bounds"):
            layer(numbers).detach().numpy()
    with pytest.raises(TypeError, match="integers"):
        layer(vg.ones(3, device=device))


LABELS = {
    "labels": ([0, 2, 1, 2], {}),
    "ignored": ([0, -100, 1, 2], {}),
    "another ignored": ([0, 2, 1, 2], {"ignore_index": 2}),
    "smoothed": ([0, 2, 1, 2], {"label_smoothing": 0.25}),
    "none": ([], {}),
}


@pytest.mark.parametrize("kind", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", LABELS)
def test_short_way_of_cross_entropy_is_the_long_one(device, name, dtype, kind):
    labels, options = LABELS[name]
    if kind == "uint8" and -100 in labels:
        return
    labels = vg.asarray(labels, dtype=kind, device=device)
    found = []
    for integer in (int, np.int64):  # of NumPy's integers the long way is taken
        x = vg.astype(put(device, X[: labels.size]), dtype).requires_grad_()
        options["ignore_index"] = integer(options.get("ignore_index", -100))
        loss = F.cross_entropy(x, labels, **options)
        loss.backward()
        found.append([loss.shape, loss.dtype, loss.detach().numpy().tobytes()])
        found[-1] += [x.grad.dtype, vg.astype(x.grad, "float64").numpy().tobytes()]
    assert found[0] == found[1]


@pytest.mark.parametrize("recorded", [False, True])
def test_short_way_of_cross_entropy_refuses_what_does_not_fit(device, recorded):
    x = put(device, X).requires_grad_(recorded)
    for labels in (np.zeros(3, int), np.zeros((4, 1), int), np.zeros((2, 2), int), np.int64(0)):
        with pytest.raises(ValueError, match="labels of shape"):
            F.cross_entropy(x, put(device, labels))
    with pytest.raises(ValueError, match="probabilities of shape"):
        F.cross_entropy(x, put(device, np.zeros(4)))
    with pytest.raises(TypeError, match="labels are integers"):
        F.cross_entropy(x, put(device, np.zeros(4, bool)))
