"""Convolution and pooling over the last axes, by the windows of pvg_windows.

What has one axis is taken for pictures of one row. A bias is added to the result.
"""

from ...array import Tracked
from ...dispatch import apply, tape
from ...dtypes import inexact, int32, is_float
from ...functions.arguments import parse_int
from ...functions.layout import astype, reshape
from ...operations import Operation
from .operands import gathered

__all__ = ["avg_pool1d", "avg_pool2d", "conv1d", "conv2d", "max_pool1d", "max_pool2d"]

LIMIT = 2**31  # of the numbers that windows are described by


def per_axis(value, count, what, least):
    """Return one int for each of the last axes. ValueError: not so many, or out of bounds."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    values = tuple([parse_int(n, what) for n in values])
    values = values * count if len(values) == 1 else values
    if len(values) != count or min(values) < least:
        raise ValueError(f"{what} is {least} or more, once or {count} times, not {value}")
    if max(values) >= LIMIT:
        raise ValueError(f"{what} is below 2**31, not {value}")
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


def described(name, x, kernel, stride, pairs, dilation):
    """Return the numbers of pvg_windows, and the windows' rows and columns.

    x: (N, channels, ...), kernel to dilation: something for each of the axes behind. ValueError:
    the kernel is larger than x, padding included.
    """
    before, behind = zip(*pairs, strict=True)
    sizes = tuple([n + sum(pair) for n, pair in zip(x.shape[2:], pairs, strict=True)])
    lengths = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    if min(lengths) < 1:
        raise ValueError(f"{name}: a kernel of {kernel} for {sizes}, padding included")
    one, none = (1,) * (2 - len(kernel)), (0,) * (2 - len(kernel))
    parts = (*one, *kernel), (*one, *stride), (*none, *before), (*none, *behind), (*one, *dilation)
    return sum(parts, ()), (*one, *lengths)


def as_pictures(x):
    """Return (N, channels, length) as (N, channels, 1, length), and what has four axes as it is."""
    return x if x.ndim == 4 else reshape(x, (*x.shape[:2], 1, x.shape[2]))


def as_given(result, axes, alone):
    """Return (N, channels, rows, columns) without the axes that the input has not had."""
    shape = (*result.shape[alone:2], *result.shape[4 - axes :])
    return result if shape == result.shape else reshape(result, shape)


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
    call, (x, weight, bias) = gathered(name, input, weight, bias, needed=2)
    x, alone = batched(name, x, axes)
    groups = parse_int(groups, "groups")
    if weight.ndim != axes + 2 or groups < 1 or weight.shape[1] * groups != x.shape[1]:
        raise ValueError(
            f"{name}: an input of shape {x.shape}, a weight of {weight.shape}, {groups} groups"
        )
    out, _, *kernel = weight.shape
    if out % groups or 0 in weight.shape:
        raise ValueError(f"{name}: a weight of shape {weight.shape} for {groups} groups")
    if bias is not None and bias.shape != (out,):
        raise ValueError(f"{name}: a bias of shape {bias.shape} for {out} results")
    for one in (x, weight) if bias is None else (x, weight, bias):
        if not is_float(one.dtype):
            raise TypeError(f"{name} takes float arrays, not {one.dtype}")
    stride = per_axis(stride, axes, "stride", 1)
    dilation = per_axis(dilation, axes, "dilation", 1)
    pairs = paddings(padding, kernel, stride, dilation)
    numbers, _ = described(name, x, tuple(kernel), stride, pairs, dilation)
    x, weight = as_pictures(x), as_pictures(weight)
    result = apply(x.backend, "convolution", x, weight, numbers, groups)
    if bias is not None:
        result = result + reshape(bias, (out, 1, 1))
    return call.give(as_given(result, axes, alone))


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
    how = described(name, x, kernel, stride, pairs, dilation)
    return call.give(as_given(_pool(Operation.MAX, x, *how, True), axes, alone))


def _pool(code, x, numbers, lengths, with_padding):
    """Return the pooled (N, channels, rows, columns); maxima keep their places for the tape."""
    x, places = astype(as_pictures(x), inexact(x.dtype), copy=False), None
    if code == Operation.MAX and type(x) is Tracked and tape.enabled():
        places = apply(x.backend, "empty", (*x.shape[:2], *lengths), int32)
    return apply(x.backend, "pool", int(code), x, places, numbers, with_padding)


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
    how = described(name, x, kernel, stride, pairs, (1,) * axes)
    return call.give(as_given(_pool(Operation.MEAN, x, *how, bool(with_padding)), axes, alone))
