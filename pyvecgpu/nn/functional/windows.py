"""Convolution and pooling over the last axes, by windows: strided views of the input, stacked.

Every place of the kernel gives one view of all that it meets; convolution is a product of them.
"""

import itertools
import math

from ...functions.arguments import parse_int
from ...functions.creation import ones
from ...functions.elementwise import equal, where
from ...functions.indexing import get
from ...functions.joining import stack
from ...functions.layers import dense
from ...functions.layout import expand_dims, permute_dims, reshape
from ...functions.linalg import matmul
from ...functions.padding import pad
from ...functions.ranges import arange
from ...functions.reductions import argmax, mean
from ...functions.reductions import sum as total
from .operands import gathered, narrow, wide

__all__ = ["avg_pool1d", "avg_pool2d", "conv1d", "conv2d", "max_pool1d", "max_pool2d"]


def per_axis(value, count, what, least):
    """Return one int for each of the last axes. ValueError: not so many, or one is too small."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    values = tuple([parse_int(n, what) for n in values])
    values = values * count if len(values) == 1 else values
    if len(values) != count or min(values) < least:
        raise ValueError(f"{what} is {least} or more, once or {count} times, not {value}")
    return values


def paddings(padding, kernel, stride, dilation):
    """Return (before, behind) for each axis; padding: numbers, "same" or "valid"."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        if max(stride) > 1:
            raise ValueError('padding="same" needs a stride of 1')
        sums = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(n // 2, n - n // 2) for n in sums]
    if isinstance(padding, str):
        raise ValueError(f"padding is a number, 'same' or 'valid', not {padding!r}")
    return [(n, n) for n in per_axis(padding, len(kernel), "padding", 0)]


def padded(x, pairs, value):
    """Return an Array (N, channels, ...) with a value around its last axes."""
    if not any(map(any, pairs)):
        return x
    return pad(x, [(0, 0), (0, 0), *pairs], constant_values=value)


def windows(name, x, kernel, stride, dilation):
    """Return views (N, channels, ...) of x, one for each place of the kernel, and their lengths."""
    lengths = []
    for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True):
        if n < d * (k - 1) + 1:
            raise ValueError(f"{name}: a kernel of {kernel} for {x.shape[2:]}, padding included")
        lengths.append((n - d * (k - 1) - 1) // s + 1)
    views = []
    for place in itertools.product(*map(range, kernel)):
        starts = [i * d for i, d in zip(place, dilation, strict=True)]
        ends = [a + (n - 1) * s + 1 for a, n, s in zip(starts, lengths, stride, strict=True)]
        slices = [slice(*one) for one in zip(starts, ends, stride, strict=True)]
        views.append(get(x, (slice(None), slice(None), *slices)))
    return views, tuple(lengths)


def batched(name, x, axes):
    """Return (N, channels, ...) and whether N was missing. ValueError: another number of axes."""
    if x.ndim not in (axes + 1, axes + 2):
        raise ValueError(f"{name}: input has {axes + 2} axes, or {axes + 1}, not {x.shape}")
    alone = x.ndim == axes + 1
    return (reshape(x, (1, *x.shape)) if alone else x), alone


# Convolution --------------------------------------------------------------------------------------


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Return the convolution of (N, channels, length) or (channels, length); see conv2d.

    >>> x, weight = vg.asarray([[[1.0, 2.0, 3.0, 4.0]]]), vg.asarray([[[1.0, -1.0]]])
    >>> vg.nn.functional.conv1d(x, weight).tolist()
    [[[-1.0, -1.0, -1.0]]]
    """
    return _conv("conv1d", 1, input, weight, bias, (stride, padding, dilation, groups))


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Return the convolution (N, out, height', width') of (N, channels, height, width).

    weight: (out, channels / groups, rows, columns), bias: (out,); N may be missing. stride,
    padding, dilation: an int, or one for each axis; padding may be "same" or "valid". ValueError:
    shapes that do not fit. TypeError: dtypes.

    >>> vg.nn.functional.conv2d(vg.ones((1, 3, 8, 8)), vg.ones((16, 3, 3, 3)), stride=2).shape
    (1, 16, 3, 3)
    """
    return _conv("conv2d", 2, input, weight, bias, (stride, padding, dilation, groups))


def _conv(name, axes, input, weight, bias, how):
    stride, padding, dilation, groups = how
    call, (x, weight, bias) = gathered(name, input, weight, bias)
    x, alone = batched(name, x, axes)
    groups = parse_int(groups, "groups")
    if weight.ndim != axes + 2 or groups < 1 or weight.shape[1] * groups != x.shape[1]:
        raise ValueError(
            f"{name}: an input of shape {x.shape}, a weight of {weight.shape}, {groups} groups"
        )
    out, of_group, *kernel = weight.shape
    if out % groups or 0 in weight.shape:
        raise ValueError(f"{name}: a weight of shape {weight.shape} for {groups} groups")
    if bias is not None and bias.shape != (out,):
        raise ValueError(f"{name}: a bias of shape {bias.shape} for {out} results")
    stride = per_axis(stride, axes, "stride", 1)
    dilation = per_axis(dilation, axes, "dilation", 1)
    x = padded(x, paddings(padding, kernel, stride, dilation), 0.0)
    views, lengths = windows(name, x, kernel, stride, dilation)
    last = (0, *range(2, x.ndim), 1)  # channels behind the places
    columns = stack([permute_dims(view, last) for view in views], axis=-1)
    if groups == 1:
        rows = reshape(columns, (x.shape[0] * math.prod(lengths), of_group * len(views)))
        result = dense(rows, reshape(weight, (out, of_group * len(views))), bias)
    else:
        result = _of_groups(columns, weight, bias, groups)
    result = permute_dims(
        reshape(result, (x.shape[0], *lengths, out)), (0, axes + 1, *range(1, axes + 1))
    )
    return call.give(reshape(result, result.shape[1:]) if alone else result)


def _of_groups(columns, weight, bias, groups):
    """Return the products (places, out) of every group with its own part of the weight."""
    places, inputs = math.prod(columns.shape[:-2]), math.prod(columns.shape[-2:]) // groups
    rows = permute_dims(reshape(columns, (places, groups, inputs)), (1, 0, 2))
    parts = reshape(weight, (groups, weight.shape[0] // groups, inputs))
    result = permute_dims(matmul(rows, permute_dims(parts, (0, 2, 1))), (1, 0, 2))
    result = reshape(result, (places, weight.shape[0]))
    return result if bias is None else result + bias


# Pooling ------------------------------------------------------------------------------------------


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1):
    """Return the largest elements of windows of (N, channels, length); see max_pool2d.

    >>> vg.nn.functional.max_pool1d(vg.asarray([[[1.0, 3.0, 5.0, 7.0]]]), 2).tolist()
    [[[3.0, 7.0]]]
    """
    return _max_pool("max_pool1d", 1, input, (kernel_size, stride, padding, dilation))


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1):
    """Return the largest elements of windows of (N, channels, height, width); NaN wins.

    N may be missing. stride: None for kernel_size. The gradient goes to the first of several
    largest. ValueError: shapes that do not fit, a padding of more than half of the kernel.

    >>> vg.nn.functional.max_pool2d(vg.asarray([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).tolist()
    [[[[4.0]]]]
    """
    return _max_pool("max_pool2d", 2, input, (kernel_size, stride, padding, dilation))


def _parse_pool(name, axes, x, kernel, stride, padding):
    kernel = per_axis(kernel, axes, "kernel_size", 1)
    stride = kernel if stride is None else per_axis(stride, axes, "stride", 1)
    pairs = per_axis(padding, axes, "padding", 0)
    if any(2 * p > k for p, k in zip(pairs, kernel, strict=True)):
        raise ValueError(f"{name}: padding={padding} is more than half of kernel_size={kernel}")
    x, alone = batched(name, x, axes)
    return x, alone, kernel, stride, [(p, p) for p in pairs]


def _max_pool(name, axes, input, how):
    kernel, stride, padding, dilation = how
    call, (given,) = gathered(name, input)
    x, alone, kernel, stride, pairs = _parse_pool(name, axes, given, kernel, stride, padding)
    dilation = per_axis(dilation, axes, "dilation", 1)
    x = padded(wide(x), pairs, -math.inf)
    values = stack(windows(name, x, kernel, stride, dilation)[0], axis=-1)
    first = expand_dims(argmax(values, axis=-1), axis=-1)
    chosen = equal(first, arange(values.shape[-1], device=values.device))
    result = narrow(total(where(chosen, values, 0.0), axis=-1), given)
    return call.give(reshape(result, result.shape[1:]) if alone else result)


def avg_pool1d(input, kernel_size, stride=None, padding=0, count_include_pad=True):
    """Return the means of windows of (N, channels, length); see avg_pool2d.

    >>> vg.nn.functional.avg_pool1d(vg.asarray([[[1.0, 3.0, 5.0, 7.0]]]), 2).tolist()
    [[[2.0, 6.0]]]
    """
    how = (kernel_size, stride, padding, count_include_pad)
    return _avg_pool("avg_pool1d", 1, input, how)


def avg_pool2d(input, kernel_size, stride=None, padding=0, count_include_pad=True):
    """Return the means of windows of (N, channels, height, width), as float.

    N may be missing. stride: None for kernel_size. count_include_pad: zeros around count.
    ValueError: shapes that do not fit, a padding of more than half of the kernel.

    >>> vg.nn.functional.avg_pool2d(vg.asarray([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).tolist()
    [[[[2.5]]]]
    """
    how = (kernel_size, stride, padding, count_include_pad)
    return _avg_pool("avg_pool2d", 2, input, how)


def _avg_pool(name, axes, input, how):
    kernel, stride, padding, with_padding = how
    call, (given,) = gathered(name, input)
    x, alone, kernel, stride, pairs = _parse_pool(name, axes, given, kernel, stride, padding)
    x = wide(x)
    result = _means(name, padded(x, pairs, 0.0), kernel, stride)
    if not with_padding and any(map(any, pairs)):
        inside = padded(ones((1, 1, *x.shape[2:]), x.dtype, device=x.device), pairs, 0.0)
        result = result / _means(name, inside, kernel, stride)
    result = narrow(result, given)
    return call.give(reshape(result, result.shape[1:]) if alone else result)


def _means(name, x, kernel, stride):
    return mean(stack(windows(name, x, kernel, stride, (1,) * len(kernel))[0], axis=-1), axis=-1)
