"""Normalisation: rows, groups or channels to mean 0 and variance 1. Halves in float32."""

import math

from ...array import Array, Tracked
from ...dispatch import WAYS, apply, tape
from ...dtypes import inexact
from ...functions.arguments import parse_int
from ...functions.joining import stack
from ...functions.layout import astype, reshape
from ...functions.mathematics import pow
from ...functions.working import work_dtype
from .operands import gathered, narrow, number, wide

__all__ = ["batch_norm", "group_norm", "layer_norm", "rms_norm"]


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Return (input - mean) / sqrt(variance + eps) * weight + bias over the last axes.

    normalized_shape: their lengths, an int or several; weight, bias: of that shape. ValueError:
    shapes that do not fit.

    >>> print(vg.nn.functional.layer_norm(vg.asarray([[1.0, 3.0], [10.0, 30.0]]), (2,)))
    [[-0.999995    0.999995  ]
     [-0.99999994  0.99999994]]
    """
    eps = number(eps, "eps", 0.0)
    call, (x, weight, bias) = gathered("layer_norm", input, weight, bias)
    axes = _last_axes("layer_norm", x, normalized_shape, weight, bias)
    return call.give(_normalized(x, weight, bias, axes, 1, eps))


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Return input / sqrt(mean of squares + eps) * weight over the last axes; see layer_norm.

    eps: None for the smallest number that changes 1 in the dtype that is computed in.

    >>> print(vg.nn.functional.rms_norm(vg.asarray([[3.0, 4.0]]), (2,)))
    [[0.84852815 1.1313709 ]]
    """
    call, (x, weight) = gathered("rms_norm", input, weight)
    axes = _last_axes("rms_norm", x, normalized_shape, weight)
    if eps is None:
        eps = 2.0 ** (-52 if work_dtype(inexact(x.dtype)).itemsize == 8 else -23)
    return call.give(_normalized(x, weight, None, axes, 1, number(eps, "eps"), False))


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Return (input - mean) / sqrt(variance + eps) * weight + bias for groups of channels.

    input: (N, channels, ...); weight, bias: (channels,). ValueError: shapes that do not fit, or
    channels that are not so many groups.

    >>> print(vg.nn.functional.group_norm(vg.asarray([[1.0, 3.0, 10.0, 30.0]]), 2))
    [[-0.999995    0.999995   -0.99999994  0.99999994]]
    """
    groups, eps = parse_int(num_groups, "num_groups"), number(eps, "eps", 0.0)
    call, (x, weight, bias) = gathered("group_norm", input, weight, bias)
    _check_channels("group_norm", x, weight, bias)
    channels = x.shape[1]
    if groups < 1 or channels % groups:
        raise ValueError(f"group_norm: {channels} channels are not {groups} groups")
    return call.give(_normalized(x, weight, bias, (1,), groups, eps))


def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    """Return (input - mean) / sqrt(variance + eps) * weight + bias for every channel.

    input: (N, channels, ...); all else (channels,) or None. training: mean and variance are those
    of the input, and running ones, Arrays, go towards them by `momentum` in place (the variance of
    a sample; a batch of nothing leaves them); else they are the running ones. ValueError: shapes
    that do not fit, no running ones, or training with one value of a channel.

    >>> x, mean, variance = vg.asarray([[1.0], [3.0]]), vg.asarray([1.0]), vg.asarray([4.0])
    >>> print(vg.nn.functional.batch_norm(x, mean, variance))
    [[0.        ]
     [0.99999875]]
    """
    eps, momentum = number(eps, "eps", 0.0), number(momentum, "momentum")
    running = (running_mean, running_var)
    call, (x, weight, bias, *statistics) = gathered("batch_norm", input, weight, bias, *running)
    _check_channels("batch_norm", x, weight, bias, *statistics)
    moved, count = (), x.shape[0] * math.prod(x.shape[2:])
    if training and not count:  # statistics of nothing
        result = narrow(_affine(wide(x), *_of_channels(x, weight, bias)), x)
    elif training:
        if count == 1:
            raise ValueError(f"batch_norm: one value of a channel in training, {x.shape}")
        found = _statistics(x, x.shape[1])
        result = _normalized(x, weight, bias, (1,), 0, eps, statistics=found)
        moved = _moved(running, found, count, momentum)
    elif running_mean is None or running_var is None:
        raise ValueError("batch_norm: running_mean and running_var are needed")
    elif any(type(one) is Tracked for one in statistics):  # which the kernel takes for constants
        average, variance = map(wide, _of_channels(x, *statistics))
        result = (wide(x) - average) * pow(variance + eps, -0.5)
        result = narrow(_affine(result, *_of_channels(x, weight, bias)), x)
    else:
        dtype = work_dtype(inexact(x.dtype))
        given = stack([astype(one, dtype, copy=False) for one in statistics])
        result = _normalized(x, weight, bias, (1,), -1, eps, statistics=given)
    for array, new in moved:  # when all else is there
        array[...] = new
    return call.give(result)


# What they share ----------------------------------------------------------------------------------


def _statistics(x, count):
    """Return an Array (2, count) for means and variances of x to be written to."""
    return apply(x.backend, "empty", (2, count), work_dtype(inexact(x.dtype)))


def _normalized(x, weight, bias, axes, groups, eps, centered=True, statistics=None):
    """Return x normalised, in its float dtype, by the kernel. See backends/__init__.py."""
    x = narrow(x, x)
    weight = None if weight is None else narrow(weight, weight)
    bias = None if bias is None else narrow(bias, bias)
    if statistics is None and Tracked in (type(x), type(weight), type(bias)) and tape.enabled():
        statistics = _statistics(x, math.prod(x.shape[: axes[0]]) * groups)
    operands = (x, weight, bias, axes[0], len(axes), groups, centered, eps, statistics)
    return WAYS["normalize"](x.backend, *operands)


def _affine(values, weight, bias):
    values = values if weight is None else values * wide(weight)
    return values if bias is None else values + wide(bias)


def _last_axes(name, x, normalized_shape, *parameters):
    """Return the last axes. ValueError: they have other lengths, or a parameter has."""
    several = isinstance(normalized_shape, (tuple, list))
    shape = tuple(normalized_shape) if several else (normalized_shape,)
    shape = tuple([parse_int(n, "normalized_shape") for n in shape])
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(f"{name}: normalized_shape={shape} of an input of shape {x.shape}")
    for one in parameters:
        if one is not None and one.shape != shape:
            raise ValueError(f"{name}: a parameter of shape {one.shape}, not {shape}")
    return tuple(range(x.ndim - len(shape), x.ndim))


def _check_channels(name, x, *parameters):
    if x.ndim < 2:
        raise ValueError(f"{name}: input is (N, channels, ...), not of shape {x.shape}")
    for one in parameters:
        if one is not None and one.shape != x.shape[1:2]:
            raise ValueError(f"{name}: a parameter of shape {one.shape}, not {x.shape[1:2]}")


def _of_channels(x, *arrays):
    """Return arrays (channels,) in a shape that broadcasts with x; None stays."""
    shape = (x.shape[1], *[1] * (x.ndim - 2))
    return [None if one is None else reshape(one, shape) for one in arrays]


def _moved(running, found, count, momentum):
    """Return pairs of running statistics and what they become."""
    moved = []
    for i, array in enumerate(running):
        if array is None:
            continue
        if not isinstance(array, Array):
            kind = type(array).__name__
            raise TypeError(f"batch_norm: running statistics are Arrays, not {kind}")
        new = found[i].detach()
        new = new * (count / (count - 1)) if i else new
        moved.append((array, narrow((1.0 - momentum) * wide(array) + momentum * new, array)))
    return moved
