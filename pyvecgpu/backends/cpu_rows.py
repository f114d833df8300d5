"""Normalisations, cross-entropy and softmax's backward pass on the CPU device.

Operands are float arrays that NumPy computes in, of one dtype; backends/__init__.py names the
parameters. Statistics are written by the caller.
"""

import math

import numpy as np

from . import cpu_functions


class Picture:
    """x as (items, groups, channels of a group, inner), and the axes that a statistic is of."""

    def __init__(self, shape, axis, naxes, groups):
        items, channels = math.prod(shape[:axis]), math.prod(shape[axis : axis + naxes])
        inner = math.prod(shape[axis + naxes :])
        self.parameters = shape[axis : axis + naxes]
        count = max(groups, 1)
        self.shape = (items, count, channels // count, inner)
        self.axes = (2, 3) if groups > 0 else (0, 1, 3)
        self.of_statistics = (items, count, 1, 1) if groups > 0 else (1, 1, channels, 1)
        self.of_channels = (1, count, channels // count, 1)


def normalize(x, weight, bias, picture, centered, epsilon, given):
    """Return the result in the shape of x, and means and variances, (2, count).

    given: statistics, or None for those of x.
    """
    if not x.size:
        return x.copy(), np.full((2, math.prod(picture.of_statistics)), np.nan, x.dtype)
    values = x.reshape(picture.shape)
    if given is None:
        average = variance = x.dtype.type(0)
        if centered:
            average = cpu_functions.mean(values, picture.axes, True).astype(x.dtype, copy=False)
        result = np.subtract(values, average)
        variance = cpu_functions.mean(np.square(result), picture.axes, True)
        variance = variance.astype(x.dtype, copy=False)
        average = np.broadcast_to(average, picture.of_statistics)
        given = np.stack([average.reshape(-1), variance.reshape(-1)])
    else:
        average, variance = (one.reshape(picture.of_statistics) for one in given.reshape(2, -1))
        result = np.subtract(values, average)
    result *= _scale(variance, epsilon)
    if weight is not None:
        result *= weight.reshape(picture.of_channels)
    if bias is not None:
        result += bias.reshape(picture.of_channels)
    return result.reshape(x.shape), given


def _scale(variance, epsilon):
    return variance.dtype.type(1) / np.sqrt(variance + variance.dtype.type(epsilon))


def normalize_backward(g, x, weight, statistics, picture, centered, epsilon, constant):
    """Return dx, dweight and dbias. constant: the statistics do not depend on x."""
    shape = x.shape
    if not x.size:
        return x.copy(), *[np.zeros(picture.parameters, x.dtype) for _ in range(2)]
    g, x = g.reshape(picture.shape), x.reshape(picture.shape)
    average, variance = (one.reshape(picture.of_statistics) for one in statistics.reshape(2, -1))
    scale = _scale(variance, epsilon)
    y = np.subtract(x, average)
    y *= scale
    product = g * y
    dweight = cpu_functions.sum(product, (0, 3), False).reshape(picture.parameters)
    dbias = cpu_functions.sum(g, (0, 3), False).reshape(picture.parameters)
    if weight is not None:
        weight = weight.reshape(picture.of_channels)
        product *= weight
    dx = g * (scale if weight is None else scale * weight)
    if not constant:
        y *= cpu_functions.mean(product, picture.axes, True).astype(y.dtype, copy=False) * scale
        dx -= y
        if centered:
            product = g if weight is None else np.multiply(g, weight, out=product)
            means = cpu_functions.mean(product, picture.axes, True).astype(y.dtype, copy=False)
            dx -= means * scale
    return dx.reshape(shape), dweight, dbias


def _classes_of(labels, classes, ignored):
    """Return labels as int64, and which of them count. IndexError: one is no class."""
    labels = labels.astype(np.int64, copy=False)
    counts = labels != ignored
    wrong = counts & ((labels < 0) | (labels >= classes))
    if wrong.any():
        label = labels[wrong].flat[0]
        raise IndexError(f"cross_entropy: label {label} is out of bounds for {classes} classes")
    return labels, counts


def cross_entropy(x, labels, weight, ignored, smoothing):
    """Return losses, and logarithms, weights of labels and sums of weights as one array."""
    classes, last = x.shape[-1], (x.ndim - 1,)
    labels, counts = _classes_of(labels, classes, ignored)
    most = cpu_functions.largest(x, last, True)
    most = np.where(most == -np.inf, x.dtype.type(0), most)
    below = np.subtract(most, x)
    chosen = np.take_along_axis(below, np.where(counts, labels, 0)[..., None], -1)[..., 0]
    weighted = None
    if smoothing:
        weighted = np.mean(below if weight is None else below * weight, axis=-1)
    powers = np.exp(np.negative(below, out=below), out=below)
    logarithm = np.log(cpu_functions.sum(powers, last, False)).astype(x.dtype, copy=False)
    of_label = counts.astype(x.dtype)
    if weight is not None:
        of_label *= weight[np.where(counts, labels, 0)]
    part = of_label * x.dtype.type(1 - smoothing)
    losses = np.where(part == 0, x.dtype.type(0), part * (logarithm + chosen))
    if smoothing:
        each = smoothing * (1.0 if weight is None else np.mean(weight))
        more = x.dtype.type(each) * logarithm + x.dtype.type(smoothing) * weighted
        losses = losses + np.where(counts, more, x.dtype.type(0))
        part = part + x.dtype.type(each) * counts
    whole = most[..., 0] + logarithm
    part = part * np.exp((whole - most[..., 0]) - logarithm)  # with what that was rounded by
    return losses, np.stack([whole, of_label, part])


def mean_of_losses(losses, weights):
    """Return the sum of losses over that of weights, and the latter."""
    total = np.asarray(cpu_functions.sum(weights, None, False)).astype(losses.dtype, copy=False)
    loss = np.asarray(cpu_functions.sum(losses, None, False)).astype(losses.dtype, copy=False)
    with np.errstate(invalid="ignore"):
        return np.asarray(loss / total), total


def cross_entropy_backward(g, x, labels, weight, statistics, ignored, smoothing):
    """Return the gradient of x."""
    labels, counts = _classes_of(labels, x.shape[-1], ignored)
    logarithm, of_label, part = statistics[..., None]
    dx = np.subtract(x, logarithm)
    np.exp(dx, out=dx)
    dx *= part
    if smoothing:
        each = x.dtype.type(smoothing / x.shape[-1])
        dx -= each if weight is None else each * weight
    places = np.where(counts, labels, 0)[..., None]
    chosen = np.take_along_axis(dx, places, -1) - of_label * x.dtype.type(1 - smoothing)
    np.put_along_axis(dx, places, chosen, -1)
    dx *= g[..., None]
    np.copyto(dx, 0, where=~counts[..., None])
    return dx


def softmax_backward(g, y, axes, logarithm):
    """Return the gradient of x, of which y is softmax or its logarithm."""
    if logarithm:
        dx = np.exp(y, out=np.empty_like(y))
        dx *= -np.asarray(cpu_functions.sum(g, axes, True)).astype(y.dtype, copy=False)
        dx += g
        return dx
    dx = np.multiply(g, y, out=np.empty_like(y))
    total = np.asarray(cpu_functions.sum(dx, axes, True)).astype(y.dtype, copy=False)
    np.subtract(g, total, out=dx)
    dx *= y
    return dx
