"""Convolution and pooling over the last axes, by the windows of pvg_windows.

What has one axis is taken for pictures of one row. A bias is added to the result.
"""

import functools
import math
import struct

from ...array import Tracked
from ...dispatch import WAYS, apply, tape
from ...dtypes import int32, int64, is_float
from ...functions.arguments import parse_int
from ...functions.casting import active
from ...functions.layout import reshape
from ...functions.padding import pad
from ...functions.ranges import arange
from ...functions.short_cards import functions_of
from ...native.abi import Status
from ...operations import Operation
from ...short_views import made
from .operands import gathered, narrow

__all__ = ["avg_pool1d", "avg_pool2d", "conv1d", "conv2d", "max_pool1d", "max_pool2d"]

LIMIT = 2**31  # of the numbers that windows are described by
_MAX, _MEAN = int(Operation.MAX), int(Operation.MEAN)
_REFUSED = (Status.ERROR_VALUE, Status.ERROR_TYPE)  # the long way says what is wrong


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


def described(name, sizes, kernel, stride, pairs, dilation):
    """Return the numbers of pvg_windows, and the windows' rows and columns.

    sizes: the last axes, kernel to dilation: something for each of them. ValueError: the kernel is
    larger, padding included.
    """
    before, behind = zip(*pairs, strict=True)
    sizes = tuple([n + sum(pair) for n, pair in zip(sizes, pairs, strict=True)])
    lengths = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True)
    ]
    if min(lengths) < 1:
        raise ValueError(f"{name}: a kernel of {kernel} for {sizes}, padding included")
    one, none = (1,) * (2 - len(kernel)), (0,) * (2 - len(kernel))
    parts = (*one, *kernel), (*one, *stride), (*none, *before), (*none, *behind), (*one, *dilation)
    return sum(parts, ()), (*one, *lengths)


def of_pictures(name, shape, axes):
    """Return the shape (N, channels, rows, columns) of an input. ValueError: it has other axes."""
    if len(shape) not in (axes + 1, axes + 2):
        raise ValueError(f"{name}: input has {axes + 2} axes, or {axes + 1}, not {shape}")
    batch = (1, *shape[:1]) if len(shape) == axes + 1 else shape[:2]
    return (*batch, *[1] * (2 - axes), *shape[-axes:])


def without_new(shape, given, axes):
    """Return (N, channels, rows, columns) without the axes that the given shape has not had."""
    return (*shape[axes + 2 - len(given) : 2], *shape[4 - axes :])


_PLAIN = {int, str, type(None)}


def once(function):
    """Return a function of (name, axes, shape, ...) that works out the same numbers once."""
    known = functools.lru_cache(1024)(function)

    def call(name, axes, shape, *others):
        for one in others:
            if type(one) not in _PLAIN and not (type(one) is tuple and {*map(type, one)} == {int}):
                return function(name, axes, shape, *others)  # 2.0 and True are equal to integers
        return known(name, axes, shape, *others)

    return call


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


@once
def _conv_windows(name, axes, shape, kernel, stride, padding, dilation, out):
    """Return pvg_windows's numbers, and the shapes of the picture and of the result."""
    stride = per_axis(stride, axes, "stride", 1)
    dilation = per_axis(dilation, axes, "dilation", 1)
    pairs = paddings(padding, kernel, stride, dilation)
    numbers, lengths = described(name, shape[-axes:], kernel, stride, pairs, dilation)
    picture = of_pictures(name, shape, axes)
    result = without_new((picture[0], out, *lengths), shape, axes)
    return numbers, picture, result


def _conv(name, axes, input, weight, bias, how):
    stride, padding, dilation, groups = how
    call, (x, weight, bias) = gathered(name, input, weight, bias, needed=2)
    shape, of_weight = x.shape, weight.shape
    channels = of_pictures(name, shape, axes)[1]
    groups = parse_int(groups, "groups")
    if len(of_weight) != axes + 2 or groups < 1 or of_weight[1] * groups != channels:
        whole = shape if len(shape) == axes + 2 else (1, *shape)
        raise ValueError(
            f"{name}: an input of shape {whole}, a weight of {of_weight}, {groups} groups"
        )
    out, kernel = of_weight[0], of_weight[2:]
    if out % groups or 0 in of_weight:
        raise ValueError(f"{name}: a weight of shape {of_weight} for {groups} groups")
    if bias is not None and bias.shape != (out,):
        raise ValueError(f"{name}: a bias of shape {bias.shape} for {out} results")
    for one in (x, weight) if bias is None else (x, weight, bias):
        if not is_float(one.dtype):
            raise TypeError(f"{name} takes float arrays, not {one.dtype}")
    known = _conv_windows(name, axes, shape, kernel, stride, padding, dilation, out)
    numbers, picture, given = known
    x = x if len(shape) == 4 else reshape(x, picture)
    if axes == 1:
        weight = reshape(weight, (*of_weight[:2], 1, of_weight[2]))
    result = WAYS["convolution"](x.backend, x, weight, numbers, groups)
    if bias is not None:
        result = result + reshape(bias, (out, 1, 1))
    return call.give(result if len(given) == 4 else reshape(result, given))


# Pooling ------------------------------------------------------------------------------------------


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Return the largest elements of windows of (N, channels, length); see max_pool2d.

    >>> vg.nn.functional.max_pool1d(vg.asarray([[[1.0, 3.0, 5.0, 7.0]]]), 2).tolist()
    [[[3.0, 7.0]]]
    """
    how = (kernel_size, stride, padding, dilation, int(bool(ceil_mode)))
    return _max_pool("max_pool1d", 1, input, how, return_indices)


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """Return the largest elements of windows of (N, channels, height, width); NaN wins.

    N may be missing. stride: None for kernel_size. ceil_mode: a last window may go on behind the
    padding. The gradient goes to the first of several largest. return_indices: besides, where each
    was, row * width + column, int64. ValueError: shapes that do not fit, a padding of more than
    half of the kernel.

    >>> vg.nn.functional.max_pool2d(vg.asarray([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).tolist()
    [[[[4.0]]]]
    """
    how = (kernel_size, stride, padding, dilation, int(bool(ceil_mode)))
    return _max_pool("max_pool2d", 2, input, how, return_indices)


@once
def _pool_windows(name, axes, shape, kernel, stride, padding, dilation, ceil):
    """Return pvg_windows's numbers, and the shapes of the picture, of what it gives, as asked."""
    kernel = per_axis(kernel, axes, "kernel_size", 1)
    stride = kernel if stride is None else per_axis(stride, axes, "stride", 1)
    pairs = per_axis(padding, axes, "padding", 0)
    if any(2 * p > k for p, k in zip(pairs, kernel, strict=True)):
        raise ValueError(f"{name}: padding={padding} is more than half of kernel_size={kernel}")
    picture = of_pictures(name, shape, axes)
    dilation = per_axis(dilation, axes, "dilation", 1)
    pairs = [(p, p) for p in pairs]
    if ceil:  # or what is padded behind
        behind = ceil
        if type(ceil) is not tuple:
            behind = _behind(shape[-axes:], kernel, stride, pairs, dilation)
        pairs = [(pair[0], n) for pair, n in zip(pairs, behind, strict=True)]
    numbers, lengths = described(name, shape[-axes:], kernel, stride, pairs, dilation)
    result = (*picture[:2], *lengths)
    return numbers, picture, result, without_new(result, shape, axes)


def _behind(lengths, kernel, stride, pairs, dilation):
    """Return the padding behind each axis with which a last window goes on behind the other one.

    But not a window that begins there, as torch has it.
    """
    found = []
    for n, k, s, pair, d in zip(lengths, kernel, stride, pairs, dilation, strict=True):
        whole, extent = n + sum(pair), d * (k - 1) + 1
        last = -((extent - whole) // s) * s  # where the last window begins
        last -= s if last >= n + pair[0] else 0
        found.append(pair[1] + max(0, last + extent - whole))
    return tuple(found)


def _pool(name, axes, code, input, how, with_padding, with_indices=False):
    """Return the pooled input; maxima keep their places for the tape.

    with_indices: return (it, where its elements were).
    """
    result = None if with_indices else _pool_on_card(name, axes, code, input, how, with_padding)
    if result is not None:
        return result
    call, (x,) = gathered(name, input)
    shape = x.shape
    numbers, picture, result, given = _pool_windows(name, axes, shape, *how)
    x, places = narrow(x if len(shape) == 4 else reshape(x, picture), x), None
    backend = x.backend
    if with_indices or (code == _MAX and type(x) is Tracked and tape.enabled()):
        places = apply(backend, "empty", result, int32)
    found = WAYS["pool"](backend, code, x, places, numbers, with_padding)
    found = call.give(found if len(given) == 4 else reshape(found, given))
    if not with_indices:
        return found
    return found, call.give(reshape(_indices(places, numbers, picture[3]), given))


def _indices(places, numbers, width):
    """Return row * width + column, int64, of places in windows (N, channels, rows, columns)."""
    kernel, stride, before, _, dilation = (numbers[i : i + 2] for i in range(0, 10, 2))
    places = places.astype(int64)
    inside = places // kernel[1], places % kernel[1]
    first = [
        arange(n, dtype=int64, device=places.device) * stride[i] - before[i]
        for i, n in enumerate(places.shape[2:])
    ]
    row = reshape(first[0], (-1, 1)) + inside[0] * dilation[0]
    return row * width + (first[1] + inside[1] * dilation[1])


def _pool_on_card(name, axes, code, x, how, with_padding):
    """Return the pooled input in one call of the C library, or None; see short_cards.py.

    Channels of one axis are the rows of a picture, of which a window has one.
    """
    functions = None if active else functions_of(x)
    if functions is None:
        return None
    for one in how:
        if type(one) is not int and one is not None:
            return None
    windows = _packed_windows(name, axes, x.shape, *how)
    return made(x.backend, functions.pvg_pool(code, x.raw, None, windows, with_padding), _REFUSED)


@functools.lru_cache(1024)
def _packed_windows(name, axes, shape, *how):
    """Return pvg_windows's numbers as C numbers."""
    numbers = _pool_windows(name, axes, shape, *how)[0]
    return struct.pack(f"{len(numbers)}q", *numbers)


def _max_pool(name, axes, input, how, with_indices):
    return _pool(name, axes, _MAX, input, how, True, with_indices)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Return the means of windows of (N, channels, length); see avg_pool2d.

    >>> vg.nn.functional.avg_pool1d(vg.asarray([[[1.0, 3.0, 5.0, 7.0]]]), 2).tolist()
    [[[2.0, 6.0]]]
    """
    how = (kernel_size, stride, padding, 1, int(bool(ceil_mode)))
    return _avg_pool("avg_pool1d", 1, input, how, count_include_pad, None)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Return the means of windows of (N, channels, height, width), as float.

    N may be missing. stride: None for kernel_size. ceil_mode: a last window may go on behind the
    padding. count_include_pad: zeros around count, but not those behind the padding.
    divisor_override: sums divided by this instead. ValueError: shapes that do not fit, a padding of
    more than half of the kernel, a divisor of 0.

    >>> vg.nn.functional.avg_pool2d(vg.asarray([[[[1.0, 2.0], [3.0, 4.0]]]]), 2).tolist()
    [[[[2.5]]]]
    """
    how = (kernel_size, stride, padding, 1, int(bool(ceil_mode)))
    return _avg_pool("avg_pool2d", 2, input, how, count_include_pad, divisor_override)


def _avg_pool(name, axes, input, how, with_padding, divisor):
    kernel, stride, padding, dilation, ceil = how
    if divisor is not None:
        divisor = parse_int(divisor, "divisor_override")
        if divisor == 0:
            raise ValueError(f"{name}: divisor_override is not 0")
        sums = math.prod(per_axis(kernel, axes, "kernel_size", 1))
        return _pool(name, axes, _MEAN, input, how, True) * (sums / divisor)
    if not ceil or not with_padding:
        return _pool(name, axes, _MEAN, input, how, bool(with_padding))
    call, (x,) = gathered(name, input)
    widths = [(n, n) for n in per_axis(padding, axes, "padding", 0)]
    if max(widths) > (0, 0):  # zeros that count are elements, those behind them are not
        numbers = _pool_windows(name, axes, x.shape, *how)[0]
        behind = [n - pair[1] for n, pair in zip(numbers[8 - axes : 8], widths, strict=True)]
        x = pad(x, [(0, 0)] * (x.ndim - axes) + widths)
        how = (kernel, kernel if stride is None else stride, 0, dilation, tuple(behind))
    return call.give(_pool(name, axes, _MEAN, x, how, False))
