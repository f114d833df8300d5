"""Losses: torch's names, arguments and meaning; reduction is "mean", "sum" or "none".

Of halves they are computed and returned in float32. Losses of two arrays, and their gradients, are
one call of a kernel each; but for weights, and where gradients of gradients are recorded.
"""

from ...array import Array, Tracked
from ...dispatch import WAYS, apply, tape
from ...dtypes import bfloat16, float16, float32, float64, inexact, is_float, promote
from ...functions.arguments import parse_int
from ...functions.casting import active
from ...functions.choosing import where
from ...functions.elementwise import abs, equal, exp, maximum
from ...functions.exponentials import log_softmax
from ...functions.layout import astype, broadcast_to, expand_dims, moveaxis
from ...functions.mathematics import log1p
from ...functions.ranges import arange
from ...functions.reductions import mean
from ...functions.reductions import sum as total
from ...functions.working import work_dtype
from ...native.abi import Loss, Losses
from .operands import gathered, number, wide

__all__ = [
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]

_ARRAYS = (Array, Tracked)
_REDUCTIONS = {"mean": mean, "sum": total, "none": lambda values: values}

# The dtype in which the kernel keeps what it has found of scores of each dtype.
_STATISTICS = {float16: float32, bfloat16: float32, float32: float32, float64: float64}


def _reducer(name, reduction):
    try:
        return _REDUCTIONS[reduction]
    except (KeyError, TypeError):  # TypeError: not hashable
        raise ValueError(f"{name}: reduction is mean, sum or none, not {reduction!r}") from None


# Of numbers ---------------------------------------------------------------------------------------

_CODES = {"mean": int(Losses.LOSSES_MEAN), "sum": int(Losses.LOSSES_SUM)}
_CODES["none"] = int(Losses.LOSSES_EACH)
_SQUARE, _ABSOLUTE, _HUBER, _SMOOTH, _LOGITS = map(int, Loss)


def _of_pair(name, loss, input, target, reduction, number=0.0):
    """Return a loss by the kernel. ValueError: the shapes are not the same, another reduction."""
    _reducer(name, reduction)
    if type(input) in _ARRAYS and type(target) in _ARRAYS and not active:
        dtype, shape, _ = input._layout
        alike = input.backend is target.backend and target._layout[:2] == (dtype, shape)
        if alike and is_float(dtype):
            operands = (loss, input, target, number, _CODES[reduction])
            return WAYS["pair_loss"](input.backend, *operands)
    call, (input, target) = gathered(name, input, target, needed=2)
    if input.shape != target.shape:
        raise ValueError(f"{name}: input of shape {input.shape}, target of {target.shape}")
    if input.dtype != target.dtype or not is_float(input.dtype):
        input, target = wide(input), wide(target)
        dtype = promote(input.dtype, target.dtype)
        input, target = astype(input, dtype, copy=False), astype(target, dtype, copy=False)
    operands = (loss, input, target, number, _CODES[reduction])
    return call.give(apply(input.backend, "pair_loss", *operands))


def mse_loss(input, target, reduction="mean"):
    """Return the mean of the squared differences. ValueError: shapes that are not the same.

    >>> vg.nn.functional.mse_loss(vg.zeros(2), vg.asarray([1.0, -3.0])).item()
    5.0
    """
    return _of_pair("mse_loss", _SQUARE, input, target, reduction)


def l1_loss(input, target, reduction="mean"):
    """Return the mean of the absolute differences. ValueError: shapes that are not the same.

    >>> vg.nn.functional.l1_loss(vg.zeros(2), vg.asarray([1.0, -3.0]), reduction="sum").item()
    4.0
    """
    return _of_pair("l1_loss", _ABSOLUTE, input, target, reduction)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """Return the mean of d^2 / 2 for differences d of up to delta, of delta * (|d| - delta / 2).

    ValueError: delta is not positive, shapes that are not the same.

    >>> vg.nn.functional.huber_loss(vg.zeros(2), vg.asarray([1.0, 3.0])).item()
    1.5
    """
    delta = number(delta, "delta", 0.0)
    if not delta:
        raise ValueError("huber_loss: delta is more than 0")
    return _of_pair("huber_loss", _HUBER, input, target, reduction, delta)


def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    """Return huber_loss with delta=beta, divided by beta; l1_loss for beta=0.

    >>> vg.nn.functional.smooth_l1_loss(vg.zeros(2), vg.asarray([1.0, -3.0])).item()
    1.5
    """
    beta = number(beta, "beta", 0.0)
    return _of_pair("smooth_l1_loss", _SMOOTH, input, target, reduction, beta)


def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """Return the mean of -(t * log(s(x)) + (1 - t) * log(1 - s(x))), s the sigmoid; never infinite.

    weight: of each element, pos_weight: of t = 1; both are broadcast. ValueError: input and target
    of other shapes.

    >>> loss = vg.nn.functional.binary_cross_entropy_with_logits
    >>> print(loss(vg.asarray([0.0, 1000.0]), vg.asarray([1.0, 1.0])))
    0.3465736
    """
    name = "binary_cross_entropy_with_logits"
    if weight is None and pos_weight is None:
        return _of_pair(name, _LOGITS, input, target, reduction)
    reduce = _reducer(name, reduction)
    call, (input, target, weight, pos) = gathered(name, input, target, weight, pos_weight, needed=2)
    if input.shape != target.shape:
        raise ValueError(f"{name}: input of shape {input.shape}, target of {target.shape}")
    input, target = wide(input), wide(target)
    negative = log1p(exp(-abs(input))) + maximum(-input, 0.0)  # -log(sigmoid(x))
    if pos is not None:
        negative = negative * (1.0 + (wide(pos) - 1.0) * target)
    values = (1.0 - target) * input + negative
    return call.give(reduce(values if weight is None else values * wide(weight)))


# Of classes ---------------------------------------------------------------------------------------


def cross_entropy(
    input, target, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    """Return the mean of -log(softmax(input)) at the labels.

    input: (classes,), (N, classes) or (N, classes, ...). target: integers, without the axis of the
    classes, or probabilities in the shape of input. weight: (classes,); a mean of labels is divided
    by the sum of their weights. ignore_index: a label that does not count. label_smoothing: the
    part of the target that goes to all classes alike. IndexError: a label that is no class; on a
    GPU it comes with a later operation or when results are read. ValueError: shapes, a smoothing
    that is not from 0 to 1, another reduction. TypeError: dtypes.

    >>> scores, labels = vg.asarray([[0.0, 0.0], [0.0, 1000.0]]), vg.asarray([0, 1])
    >>> print(vg.nn.functional.cross_entropy(scores, labels))
    0.3465736
    """
    smoothing = number(label_smoothing, "label_smoothing", 0.0, 1.0)
    if weight is None and reduction == "mean" and type(ignore_index) is int and not active:
        found = _of_plain_rows(input, target, ignore_index, smoothing)
        if found is not None:
            return found
    call, (input, target, weight) = _parse_classes("cross_entropy", input, target, weight)
    rows = _rows_of_classes(input)
    if is_float(target.dtype):
        if target.shape != input.shape:
            raise ValueError(
                f"cross_entropy: probabilities of shape {target.shape} for {input.shape}"
            )
        target = wide(_rows_of_classes(target))
        logs = log_softmax(wide(rows), axis=-1)
        return call.give(_of_probabilities(logs, target, weight, reduction, smoothing))
    _check_labels("cross_entropy", rows, target, reduction)
    ignore = parse_int(ignore_index, "ignore_index")
    if type(weight) is Tracked or not rows.shape[-1] or not -(2**63) <= ignore < 2**63:
        options = (target, weight, ignore, reduction, smoothing)
        return call.give(_of_labels("cross_entropy", log_softmax(wide(rows), axis=-1), *options))
    return call.give(_of_rows(rows, target, weight, ignore, reduction, smoothing))


def nll_loss(input, target, weight=None, *, ignore_index=-100, reduction="mean"):
    """Return the mean of -input at the labels; input: logarithms of probabilities.

    See cross_entropy, which is this of log_softmax(input), for the other arguments, shapes and
    errors: a label that is no class is named by cross_entropy here, too.

    >>> scores = vg.log_softmax(vg.zeros((3, 4)))
    >>> print(vg.nn.functional.nll_loss(scores, vg.asarray([0, 1, 3])))
    1.3862944
    """
    call, (input, target, weight) = _parse_classes("nll_loss", input, target, weight)
    logs = _rows_of_classes(wide(input))
    return call.give(_of_labels("nll_loss", logs, target, weight, ignore_index, reduction, 0.0))


def _axis_of_classes(input):
    return 0 if input.ndim == 1 else 1


def _rows_of_classes(input):
    """Return the input with the classes along the last axis."""
    return moveaxis(input, 1, -1) if input.ndim > 2 else input


def _parse_classes(name, input, target, weight):
    """Return the call and its arrays; ValueError: shapes that cannot be."""
    call, (input, target, weight) = gathered(name, input, target, weight, needed=2)
    if not input.ndim:
        raise ValueError(f"{name}: input has an axis of classes, but its shape is ()")
    classes = input.shape[_axis_of_classes(input)]
    if weight is not None and weight.shape != (classes,):
        raise ValueError(f"{name}: a weight of shape {weight.shape} for {classes} classes")
    return call, (input, target, wide(weight))


def _check_labels(name, rows, labels, reduction):
    _reducer(name, reduction)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"{name}: labels are integers, not of {labels.dtype}")
    if labels.shape != rows.shape[:-1]:
        raise ValueError(
            f"{name}: labels of shape {labels.shape} for an input that needs {rows.shape[:-1]}"
        )


def _of_plain_rows(input, target, ignore_index, smoothing):
    """The mean of labels (N,), of scores (N, classes), Arrays of one device, or None: other ones.

    The short way of most losses: what nothing has to be made ready for.
    """
    kind = type(input)
    if (kind is not Tracked and kind is not Array) or type(target) is not Array:
        return None
    backend, (given, shape, _) = input.backend, input._layout
    integers, lengths, _ = target._layout
    dtype = _STATISTICS.get(given)
    if (
        target.backend is not backend
        or dtype is None
        or integers.kind not in "iu"
        or len(shape) != 2
        or lengths != shape[:1]
        or not shape[1]
        or not -(2**63) <= ignore_index < 2**63
    ):
        return None
    statistics = WAYS["empty"](backend, (4, *lengths), dtype)
    operands = (input, target, None, ignore_index, smoothing, statistics)
    return WAYS["cross_entropy"](backend, *operands)


def _of_rows(rows, labels, weight, ignore_index, reduction, smoothing):
    """The loss of labels (...), with scores (..., classes), by the kernel."""
    dtype = rows.dtype
    if dtype not in (float32, float64):
        rows = astype(rows, inexact(dtype), copy=False)
        dtype = work_dtype(rows.dtype)
    if weight is not None:
        dtype = promote(dtype, weight.dtype)
        weight = astype(weight, dtype, copy=False)
    if dtype.itemsize > rows.dtype.itemsize and dtype.itemsize == 8:
        rows = astype(rows, dtype)
    of_mean = reduction == "mean"
    statistics = apply(rows.backend, "empty", (3 + of_mean, *labels.shape), dtype)
    operands = (rows, labels, weight, ignore_index, smoothing, statistics)
    found = apply(rows.backend, "cross_entropy", *operands)
    return found if of_mean else _REDUCTIONS[reduction](found)


def _of_labels(name, logs, labels, weight, ignore_index, reduction, smoothing):
    """The loss of labels (...), with logarithms of probabilities (..., classes)."""
    _check_labels(name, logs, labels, reduction)
    labels = astype(labels, "int64", copy=False)
    counts = astype(labels != ignore_index, logs.dtype)
    _check_classes(logs, labels, ignore_index)
    chosen = equal(expand_dims(labels, axis=-1), arange(logs.shape[-1], device=labels.device))
    chosen = where(expand_dims(equal(labels, ignore_index), axis=-1), False, chosen)
    of_classes = logs if weight is None else logs * weight
    if weight is not None:
        counts = counts * total(where(chosen, weight, 0.0), axis=-1)
    # Sums of zeros and one element: no gather, whose gradient would need the labels on the host.
    values = -total(where(chosen, of_classes, 0.0), axis=-1)
    if smoothing:
        values = (1.0 - smoothing) * values - smoothing * mean(of_classes, axis=-1)
    values = where(equal(labels, ignore_index), 0.0, values)
    if reduction == "mean":
        return total(values) / total(counts)
    return _REDUCTIONS[reduction](values)


def _check_classes(rows, labels, ignore_index):
    """IndexError: a label that is no class, which the kernel of cross-entropy finds by itself.

    rows: (..., classes) of any values, which are not used. What the kernel writes is let go.
    """
    if not rows.shape[-1]:
        return
    # A number that no label can be ignores none, and neither does that of a class.
    ignored = ignore_index if -(2**63) <= ignore_index < 2**63 else 0
    statistics = apply(rows.backend, "empty", (3, *labels.shape), rows.dtype)
    operands = (rows, labels, None, ignored, 0.0, statistics)
    tape.paused(lambda: apply(rows.backend, "cross_entropy", *operands))


def _of_probabilities(logs, target, weight, reduction, smoothing):
    reduce = _reducer("cross_entropy", reduction)
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / logs.shape[-1]
    products = logs * target if weight is None else logs * target * broadcast_to(weight, logs.shape)
    return reduce(-total(products, axis=-1))
