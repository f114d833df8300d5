"""Cross-entropy of labels by kernels, and softmax's backward pass, against float64.

Lengths of rows are those on either side of where another kernel takes over; see kernels/rows.cuh.
"""

import itertools

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import FLOATS, UNIT_ROUNDOFF, host, put, refused_later, widened

import pyvecgpu as vg
from pyvecgpu.dispatch import apply, observe

F = vg.nn.functional
ROWS = [
    *((5, 1), (7, 2), (300, 3), (33, 4), (9, 17), (5, 127), (4, 128), (3, 129), (2, 255), (2, 500)),
    *((3, 513), (2, 1024), (3, 1030), (2, 2049), (1, 4100), (2, 8192), (1, 16_391), (1, 70_000)),
]
OPTIONS = [
    {},
    {"label_smoothing": 0.25},
    {"weighted": True},
    {"weighted": True, "label_smoothing": 0.25, "ignored": True},
    {"ignored": True},
    {"label_smoothing": 1.0},
]


def near(found, expected, relative, absolute):
    found = widened(host(found)).astype(np.float64)
    error = np.abs(found - expected)
    good = error <= relative * np.abs(expected) + absolute
    assert found.shape == expected.shape and good.all(), error[~good].max()


def reference(x, labels, weight, ignored, smoothing):
    """Losses, weights of the labels and d(sum of losses)/dx, row by row, in float64."""
    most = x.max(1, keepdims=True)
    logs = x - most - np.log(np.exp(x - most).sum(1, keepdims=True))
    weight = np.ones(x.shape[1]) if weight is None else weight
    target = np.full(x.shape, smoothing / x.shape[1]) * weight
    rows = np.arange(len(x))
    safe = np.where(labels == ignored, 0, labels)
    target[rows, safe] += (1 - smoothing) * weight[safe]
    target[labels == ignored] = 0
    counts = np.where(labels == ignored, 0, weight[safe])
    losses = -np.where(target == 0, 0, target * logs).sum(1)
    return losses, counts, np.exp(logs) * target.sum(1, keepdims=True) - target


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_rows(device, dtype, shape):
    rng = np.random.default_rng(shape)
    x = (3 * rng.normal(size=shape)).astype(dtype)
    wide = widened(x).astype(np.float64)
    labels = rng.integers(0, shape[1], shape[0])
    g = rng.normal(size=shape[0])
    work = 2.0**-53 if dtype == np.float64 else 2.0**-24
    for i, options in enumerate(OPTIONS):
        smoothing = options.get("label_smoothing", 0.0)
        ignored = int(labels[0]) if "ignored" in options else -100
        weight = rng.random(shape[1]) + 0.5 if "weighted" in options else None
        kept = None if weight is None else weight.astype(np.float32).astype(np.float64)
        losses, counts, slopes = reference(wide, labels, kept, ignored, smoothing)
        array = put(device, x).requires_grad_()
        given = None if weight is None else put(device, weight.astype(np.float32))
        kind = ("int64", "int32", "uint16")[i % 3] if shape[1] < 60_000 else "int64"
        on_device = put(device, labels.astype(kind))
        found = F.cross_entropy(
            array,
            on_device,
            given,
            ignore_index=ignored,
            reduction="none",
            label_smoothing=smoothing,
        )
        assert found.dtype == ("float64" if dtype == np.float64 else "float32")
        size = np.abs(wide).max() + 10
        near(found.detach(), losses, 0.0, 40 * work * size)
        found.backward(put(device, g.astype(host(found.detach()).dtype)))
        assert array.grad.dtype == dtype
        least = 2.0**-24 if dtype.itemsize == 2 else 0.0
        near(array.grad, slopes * g[:, None], 2 * UNIT_ROUNDOFF[dtype], 40 * work * size + least)
        if ignored == -100:
            array.grad = None
            mean = F.cross_entropy(array, on_device, given, label_smoothing=smoothing)
            near(mean.detach(), losses.sum() / counts.sum(), 0.0, 40 * work * size)
            mean.backward()
            limit = 40 * work * size + least
            near(array.grad, slopes / counts.sum(), 2 * UNIT_ROUNDOFF[dtype], limit)


VIEWS = {
    "negative step": lambda x: x[:, ::-1],
    "transposed": lambda x: x.T.copy().T,
    "every other row": lambda x: x[::2],
    "odd offset": lambda x: x.reshape(-1)[3 : 3 + 4 * 41].reshape(4, 41),
    "repeated": lambda x: vg.broadcast_to(x[:1], (8, x.shape[1])),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_views(device, dtype, view):
    rng = np.random.default_rng(3)
    for columns in (44, 41):
        array = VIEWS[view](put(device, rng.normal(size=(8, columns)).astype(dtype)))
        rows, classes = array.shape
        labels = put(device, rng.integers(0, classes, 2 * rows))[::-2]
        weight = put(device, rng.random(2 * classes))[::2]
        losses, _, slopes = reference(
            host(array).astype(float), host(labels), host(weight), 1, 0.25
        )
        array = array.requires_grad_()
        found = F.cross_entropy(
            array, labels, weight, ignore_index=1, reduction="sum", label_smoothing=0.25
        )
        near(found.detach(), losses.sum(), 1e-5, 1e-5)
        found.backward()
        near(array.grad, slopes, 1e-3 if dtype == "float16" else 1e-6, 1e-5)


def test_axes_of_places(device):
    """(N, classes, ...) is (N, ..., classes) with the axis moved."""
    rng = np.random.default_rng(5)
    x, labels = rng.normal(size=(3, 5, 4, 2)), rng.integers(0, 5, (3, 4, 2))
    flat = np.moveaxis(x, 1, -1).reshape(-1, 5)
    losses, _, slopes = reference(flat, labels.reshape(-1), None, 2, 0.0)
    array = put(device, x).requires_grad_()
    found = F.cross_entropy(array, labels, ignore_index=2, reduction="none")
    near(found.detach(), losses.reshape(labels.shape), 1e-14, 1e-14)
    found.sum().backward()
    near(array.grad, np.moveaxis(slopes.reshape(3, 4, 2, 5), -1, 1), 1e-14, 1e-14)


def test_gradients_of_gradients(device):
    rng = np.random.default_rng(7)
    x, labels, weight = rng.normal(size=(4, 5)), rng.integers(0, 5, 4), rng.random(5) + 0.5
    for options in ({}, {"label_smoothing": 0.3}, {"ignore_index": int(labels[1])}):
        given = put(device, weight)
        for w in (None, given):
            check(lambda x: F.cross_entropy(x, labels, w, **options), x, device=device)  # noqa: B023
            check_twice(lambda x: F.cross_entropy(x, labels, w, **options), x, device=device)  # noqa: B023
    check(lambda x, w: F.cross_entropy(x, labels, w), x, weight, device=device)  # of weights, too
    parts = rng.normal(size=(2, 3, 4))
    for function in (vg.softmax, vg.log_softmax):
        for axis in (0, 1, -1, (1, 2), (0, 2), None):
            check(lambda x: function(x, axis), parts, device=device)  # noqa: B023
            check_twice(lambda x: function(x, axis), parts, device=device)  # noqa: B023


def test_of_infinities_and_large_numbers(device):
    rows = np.array(
        [[1e30, 0, 0], [-1e30, -1e30, -1e30], [-np.inf, 0, 0], [np.inf, 0, 0], [np.nan, 0, 0]]
    )
    x = put(device, rows.astype(np.float32)).requires_grad_()
    losses = F.cross_entropy(x, np.array([0, 1, 1, 1, 1]), reduction="none")
    found = host(losses.detach())
    assert found[0] == 0 and abs(found[1] - np.log(3)) < 1e-6 and abs(found[2] - np.log(2)) < 1e-6
    assert np.isnan(found[3:]).all()
    assert np.isinf(F.cross_entropy(x, np.zeros(5, int), reduction="none").tolist()[2])
    F.cross_entropy(x, np.array([0, 1, 1, -100, -100])).backward()
    grad = host(x.grad)
    assert np.isfinite(grad[:3]).all() and not grad[3:].any()  # rows that are ignored
    for length in (5, 3000):
        away = put(device, np.full((2, length), -np.inf, np.float32))
        assert np.isnan(F.cross_entropy(away, np.array([0, 1]), reduction="none").numpy()).all()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_rows_far_from_0(device, options):
    """Gradients have all digits where the logarithm of a row's sum, as one number, has not."""
    rng = np.random.default_rng(5)
    for shape, offset in itertools.product(((4, 6), (3, 200), (2, 3000)), (1e4, -1e6, 1e8, 1e30)):
        x = (rng.normal(size=shape) + offset).astype(np.float32)
        labels = rng.integers(0, shape[1], shape[0])
        weight = rng.uniform(0.5, 2, shape[1]).astype("f4") if "weighted" in options else None
        ignored = int(labels[0]) if "ignored" in options else -100
        smoothing = options.get("label_smoothing", 0.0)
        _, _, wanted = reference(x.astype(np.float64), labels, weight, ignored, smoothing)
        for create_graph in (False, True):
            a = put(device, x).requires_grad_()
            options = {"ignore_index": ignored, "label_smoothing": smoothing, "reduction": "sum"}
            given = None if weight is None else put(device, weight)
            loss = F.cross_entropy(a, put(device, labels), given, **options)
            loss.backward(create_graph=create_graph)
            near(a.grad.detach(), wanted, 2e-5, 2e-6)


def test_labels_out_of_range(device):
    """The error comes where results are read; memory beside the rows stays as it is."""
    for length in (4, 130, 3000):
        x = put(device, np.zeros((3, length), np.float32))
        for label in (length, -1, 2**40, -(2**62)):
            labels = put(device, np.array([0, label, 1]))
            with refused_later(device, IndexError, f"label {label} is out of bounds for {length}"):
                F.cross_entropy(x, labels, reduction="none").numpy()
        assert F.cross_entropy(x, np.array([0, 1, 2])).item() == pytest.approx(np.log(length))


def test_launches(device):
    """One method forward and one backward; statistics are no more than three numbers a row."""
    x = put(device, np.zeros((6, 9), np.float32)).requires_grad_()
    labels, calls = put(device, np.arange(6)), []
    ones = put(device, np.ones(6, np.float32))
    with observe(lambda call: calls.append(call.method)):
        F.cross_entropy(x, labels, reduction="none").backward(ones)
    assert calls == ["empty", "cross_entropy", "cross_entropy_backward"], calls
    calls.clear()
    x.grad, g = None, x.detach()
    with observe(lambda call: calls.append(call.method)):
        vg.softmax(x).backward(g)
    assert calls == ["softmax", "softmax_backward"], calls


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 31, 255, 257, 2049, 65536, 65537, 150_001])
def test_mean(device, rng, rows, dtype):
    """Of any number of rows, with weights and labels that do not count, and the same bits again."""
    x = rng.normal(size=(rows, 3)).astype(dtype)
    labels, weight = rng.integers(-1, 3, rows), np.array([0.5, 2.0, 1.25])
    losses, counts, slopes = reference(x.astype(np.float64), labels, weight, -1, 0.25)
    array = put(device, x).requires_grad_()
    given = (put(device, labels), put(device, weight.astype(dtype)))
    options = {"ignore_index": -1, "label_smoothing": 0.25}
    first, again = [F.cross_entropy(array, *given, **options) for _ in range(2)]
    assert first.shape == () and first.dtype == dtype
    if not counts.sum():
        assert np.isnan(first.item())
        first.backward()
        assert array.grad.shape == x.shape
        return
    assert first.item() == again.item()
    tolerance = 64 * (2.0**-53 if dtype == np.float64 else 2.0**-24)
    near(first.detach(), losses.sum() / counts.sum(), tolerance, 0.0)
    (3.0 * first).backward()
    near(array.grad, 3 * slopes / counts.sum(), tolerance, tolerance / counts.sum())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_none_for_the_gradient_is_one(device, rng, dtype, reduction):
    """The same bits as of ones; 200 classes are rows of a warp, 5,000 of a block."""
    for classes in (3, 200, 5000):
        x = put(device, rng.normal(size=(7, classes))).astype(dtype)
        labels = put(device, rng.integers(0, 3, 7))
        wide = "float64" if dtype == "float64" else "float32"
        s = vg.empty((4 if reduction == "mean" else 3, 7), dtype=wide, device=device)
        loss = apply(x.backend, "cross_entropy", x, labels, None, 1, 0.25, s)
        given = (x, labels, None, s, 1, 0.25)
        of_none = apply(x.backend, "cross_entropy_backward", None, *given)
        of_ones = apply(x.backend, "cross_entropy_backward", vg.ones_like(loss), *given)
        assert of_none.tolist() == of_ones.tolist() and np.any(of_none.numpy())


def test_a_step_back_from_a_mean(device, rng):
    """It starts without an array of one number, but where somebody sees it."""
    x, labels = put(device, rng.normal(size=(6, 9)).astype("f4")), put(device, np.arange(6))
    gradients, calls, seen = [], [], []
    for how in ("at once", "hooked", "given", "differentiable"):
        leaf = x.detach().requires_grad_()
        loss = F.cross_entropy(leaf, labels)
        if how == "hooked":
            loss.register_hook(lambda g: seen.append(g.item()))
        with observe(lambda call: calls.append(call.method)):
            loss.backward(
                put(device, np.float32(1)) if how == "given" else None,
                create_graph=how == "differentiable",
            )
        assert ("fill" in calls) == (how in ("hooked", "differentiable")), (how, calls)
        gradients.append(leaf.grad.detach())
        calls.clear()
    assert seen == [1.0]
    for g in gradients[1:3]:
        assert g.tolist() == gradients[0].tolist()
    near(gradients[3], gradients[0].numpy(), 1e-6, 1e-7)
    with pytest.raises(RuntimeError, match="second time"):
        loss = F.cross_entropy(x.detach().requires_grad_(), labels)
        loss.backward()
        loss.backward()
    each = F.cross_entropy(x.detach().requires_grad_(), labels, reduction="none")
    with pytest.raises(RuntimeError, match="needs its gradient"):
        each.backward()


def test_a_mean_is_two_launches(device):
    if device == "cpu":
        return
    x = put(device, np.zeros((50, 10), np.float32)).requires_grad_()
    labels, calls = put(device, np.arange(50) % 10), []
    before = vg.counters(device)["launches"]
    with observe(lambda call: calls.append(call.method)):
        F.cross_entropy(x, labels)
    assert vg.counters(device)["launches"] - before == 2
    assert calls == ["empty", "cross_entropy"], calls


def test_refusals_of_the_method(device):
    if device == "cpu":
        return
    x, labels = put(device, np.ones((4, 6), np.float32)), put(device, np.zeros(4, np.int32))
    statistics = put(device, np.zeros((3, 4), np.float32))

    def call(x=x, labels=labels, weight=None, smoothing=0.0, statistics=statistics):
        return apply(x.backend, "cross_entropy", x, labels, weight, -1, smoothing, statistics)

    def back(g, statistics=statistics):
        operands = (g, x, labels, None, statistics, -1, 0.0)
        return apply(x.backend, "cross_entropy_backward", *operands)

    shared = vg.reshape(vg.reshape(x, -1)[:12], (3, 4))
    for error, text, refused in (
        (TypeError, "labels are integers", lambda: call(labels=labels.astype("float32"))),
        (TypeError, "int32", lambda: call(x.astype("int32"))),
        (TypeError, "statistics are float32", lambda: call(statistics=statistics.astype("f8"))),
        (ValueError, "no axis of classes", lambda: call(x[0, 0], labels[0])),
        (ValueError, "from 1 to", lambda: call(x[:, :0])),
        (ValueError, "labels of shape", lambda: call(labels=labels[:3])),
        (ValueError, "a weight of shape", lambda: call(weight=x[0, :5])),
        (ValueError, "smoothing is from 0 to 1", lambda: call(smoothing=1.5)),
        (ValueError, "contiguous", lambda: call(statistics=statistics[:2])),
        (ValueError, "contiguous", lambda: call(statistics=put(device, np.zeros((5, 4), "f4")))),
        (ValueError, "for losses", lambda: back(x[0, 0])),
        (ValueError, "for the mean", lambda: back(x[:, 0], put(device, np.zeros((4, 4), "f4")))),
        (ValueError, "share memory", lambda: call(statistics=shared)),
    ):
        with pytest.raises(error, match=text):
            refused()
    assert host(x).all()


# Softmax ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_backward_pass_of_softmax(device, dtype, shape):
    rng = np.random.default_rng(shape)
    x, g = ((2 * rng.normal(size=shape)).astype(dtype) for _ in range(2))
    work = 2.0**-53 if dtype == np.float64 else 2.0**-24
    for function in (vg.softmax, vg.log_softmax):
        a = put(device, x).requires_grad_()
        y = function(a)
        wide_y, wide_g = (widened(host(one)).astype(np.float64) for one in (y.detach(), g))
        if function is vg.softmax:
            total = (wide_y * wide_g).sum(1, keepdims=True)
            wanted, size = wide_y * (wide_g - total), 1 + np.abs(wide_g).max()
        else:
            total = wide_g.sum(1, keepdims=True)
            wanted = wide_g - np.exp(wide_y) * total
            size = 1 + np.abs(total) + np.abs(wide_g).sum(1, keepdims=True)
        y.backward(put(device, g))
        least = 2.0**-24 if dtype.itemsize == 2 else 0.0
        near(a.grad, wanted, 2 * UNIT_ROUNDOFF[dtype], 40 * work * size + least)


def test_backward_pass_of_softmax_by_views(device):
    rng = np.random.default_rng(9)
    x, g = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 4, 5))
    for axis in (2, (1, 2), (2, 1), None, 0, (0, 1)):
        every = (0, 1, 2) if axis is None else axis
        e = np.exp(x) / np.exp(x).sum(every, keepdims=True)
        wanted = e * (g - (e * g).sum(every, keepdims=True))
        for turn in (lambda a: a, lambda a: a.T.copy().T, lambda a: a[::-1].copy()[::-1]):
            a = turn(put(device, x)).requires_grad_()
            vg.softmax(a, axis).backward(turn(put(device, g)))
            near(a.grad, wanted, 1e-13, 1e-15)
    one = put(device, np.float32(3)).requires_grad_()
    vg.softmax(one, None).backward()
    assert one.grad.item() == 0
    for shape in ((0, 3), (0,)):
        empty = put(device, np.zeros((2, *shape), np.float32)[:0]).requires_grad_()
        if empty.shape[-1]:
            vg.softmax(empty).sum().backward()
            assert empty.grad.shape == empty.shape
