"""The rules of normalisations, cross-entropy and softmax.

By kernels of their own; where gradients are recorded themselves, composed of functions of arrays.
"""

import math

from .. import functions as vg
from ..array import Tracked
from ..dispatch import apply
from ..dtypes import is_half
from ..operations import Operation


def widened(*arrays):
    """Halves as float32: sums of products of them would lose too much. The tape casts back."""
    return [vg.astype(x, "float32") if is_half(x.dtype) else x for x in arrays]


def average(x, axes):
    return vg.mean(x, axis=axes, keepdims=True)


# Softmax ------------------------------------------------------------------------------------------


def by_kernel(name, g, y, axes):
    """Return the gradient by one launch; None: these are not the last axes."""
    count = y.ndim if axes is None else len(axes)
    if axes is not None and sorted(axes) != [*range(y.ndim - count, y.ndim)]:
        return None
    return apply(y.backend, "softmax_backward", int(Operation[name]), g, y, count)


def softmax(g, y, axes, differentiable):
    found = None if differentiable else by_kernel("SOFTMAX", g, y, axes)
    if found is not None:
        return found
    g, y = widened(g, y)
    return y * (g - vg.sum(g * y, axis=axes, keepdims=True))


def log_softmax(g, y, axes, differentiable):
    found = None if differentiable else by_kernel("LOG_SOFTMAX", g, y, axes)
    if found is not None:
        return found
    g, y = widened(g, y)
    return g - vg.exp(y) * vg.sum(g, axis=axes, keepdims=True)


# Normalisations -----------------------------------------------------------------------------------


def normalize(
    g, x, weight, bias, axis, naxes, groups, centered, epsilon, statistics, differentiable
):
    """x is items, naxes axes of channels from `axis` on, and the rest; see backends/__init__.py."""
    if not differentiable:
        wanted = type(weight) is Tracked or type(bias) is Tracked
        operands = (g, x, weight, statistics, axis, naxes, groups, centered, epsilon, wanted)
        found = apply(x.backend, "normalize_backward", *operands)
        return dict(zip(("x", "weight", "bias"), found, strict=False))
    shape, channels = x.shape, x.shape[axis : axis + naxes]
    items, inner = math.prod(shape[:axis]), math.prod(shape[axis + naxes :])
    count, each = max(groups, 1), math.prod(channels) // max(groups, 1)
    g, x = [vg.reshape(a, (items, count, each, inner)) for a in widened(g, x)]
    weighted = g
    if weight is not None:
        (wide,) = widened(weight)
        weighted = g * vg.reshape(wide, (1, count, each, 1))
    axes = (2, 3) if groups > 0 else (0, 1, 3)
    if groups < 0:
        middle, variance = [vg.reshape(statistics[i], (1, 1, each, 1)) for i in (0, 1)]
    else:
        middle = average(x, axes) if centered else vg.zeros_like(average(x.detach(), axes))
        variance = average(vg.square(x - middle), axes)
    scale = vg.pow(variance + epsilon, -0.5)
    y = (x - middle) * scale
    dx = weighted
    if groups >= 0:
        dx = dx - y * average(weighted * y, axes)
        dx = dx - average(weighted, axes) if centered else dx
    return {
        "x": vg.reshape(dx * scale, shape),
        "weight": vg.reshape(vg.sum(g * y, axis=(0, 3)), channels),
        "bias": vg.reshape(vg.sum(g, axis=(0, 3)), channels),
    }


# Cross-entropy ------------------------------------------------------------------------------------


def cross_entropy(g, x, labels, weights, ignored, smoothing, statistics, differentiable):
    """Softmax, as often as a row counts, less what the row's loss is made of."""
    if not differentiable:
        operands = (g, x, labels, weights, statistics, ignored, smoothing)
        return apply(x.backend, "cross_entropy_backward", *operands)
    if statistics.shape[0] == 4 and labels.size:  # the mean, of whatever counts
        counts = labels != ignored
        weight = vg.where(vg.any(counts), vg.reshape(statistics, (4, -1))[3, 0], 1.0)
        g = vg.where(counts, vg.broadcast_to(g / weight, labels.shape), 0.0)
    classes = x.shape[-1]
    (x,) = widened(x)
    labels = vg.expand_dims(labels, axis=-1)
    of_label = vg.expand_dims(statistics[1], axis=-1)
    chosen = vg.equal(labels, vg.arange(classes, device=x.device))
    target = vg.where(chosen, (1.0 - smoothing) * of_label, 0.0)
    if smoothing:
        each = smoothing / classes
        counts = vg.astype(labels != ignored, x.dtype)
        target = target + (each if weights is None else each * weights) * counts
    part = vg.sum(target, axis=-1, keepdims=True) if smoothing else of_label
    return vg.expand_dims(g, axis=-1) * (vg.softmax(x) * part - target)
