"""Pooling and convolution on the CPU device: windows over the last two axes, as of pvg_windows.

Each element of the kernel is one view of the array, of all that it meets, and one of the windows
that it meets it in; what lies around the array is in neither. Operands are float arrays of one
dtype that NumPy computes in.
"""

import itertools
import math

import numpy as np

# Bytes of columns at a time: a batch goes by in pieces.
MOST_COLUMNS = 1 << 24
# Means add up sums of so many elements: one chain of all would err with their number.
TERMS = 64


def lengths(windows, shape):
    """Return how many windows there are along the rows and the columns; 0 or less: none fits."""
    kernel, stride, before, behind, dilation = zip(windows[::2], windows[1::2], strict=True)
    return tuple(
        [
            (n + b + e - d * (k - 1) - 1) // s + 1
            for n, k, s, b, e, d in zip(
                shape[-2:], kernel, stride, before, behind, dilation, strict=True
            )
        ]
    )


def _pairs(length, count, kernel, stride, before, _, dilation):
    """Return for each place along an axis of the kernel slices: of the windows, of the elements."""
    found = []
    for place in range(kernel):
        start = place * dilation - before  # the element that window 0 has there
        first = max(0, -(start // stride))
        end = min(count, (length - start - 1) // stride + 1)
        begin = start + first * stride
        size = max(0, end - first)
        found.append(
            (slice(first, first + size), slice(begin, begin + size * stride, stride))
            if size
            else (slice(0, 0), slice(0, 0))
        )
    return found


def _places(windows, shape):
    """Yield for each element of the kernel its number, and keys of the windows and the elements."""
    counts = lengths(windows, shape)
    axes = [_pairs(shape[axis - 2], counts[axis], *windows[axis::2]) for axis in (0, 1)]
    for number, ((row, y), (column, x)) in enumerate(itertools.product(*axes)):
        yield number, (..., row, column), (..., y, x)


def largest(a, windows, places):
    """Return the largest elements of windows; write the numbers of their places, unless None."""
    shape = (*a.shape[:-2], *lengths(windows, a.shape))
    result, number = np.full(shape, -np.inf, a.dtype), np.full(shape, -1, np.int32)
    for place, window, element in _places(windows, a.shape):
        best, value, seen = result[window], a[element], number[window]
        better = (seen < 0) | (~(value <= best) & (best == best))
        np.copyto(best, value, where=better)
        np.copyto(seen, place, where=better)
    if places is not None:
        np.copyto(places, number)
    return result


def _counts(windows, shape, with_padding):
    """Return of how many elements the means of windows are: a number, or an array."""
    if with_padding:
        return windows[0] * windows[1]
    inside = np.zeros(lengths(windows, shape), np.int64)
    for _, window, _ in _places(windows, shape):
        inside[window] += 1
    return inside


def means(a, windows, with_padding):
    """Return the means of windows."""
    result = np.zeros((*a.shape[:-2], *lengths(windows, a.shape)), a.dtype)
    many = windows[0] * windows[1] > TERMS
    part = np.zeros_like(result) if many else result
    for place, window, element in _places(windows, a.shape):
        part[window] += a[element]
        if many and place % TERMS == TERMS - 1:
            result += part
            part[...] = 0
    if many:
        result += part
    result /= np.asarray(_counts(windows, a.shape, with_padding), a.dtype)
    return result


def pool_backward(gradient, places, windows, with_padding, shape):
    """Return the gradient of an array of this shape from that of what its windows gave."""
    result = np.zeros(shape, gradient.dtype)
    if places is None:
        counts = np.asarray(_counts(windows, shape, with_padding), gradient.dtype)
        gradient = gradient / counts
    for place, window, element in _places(windows, shape):
        part = gradient[window]
        if places is not None:
            part = np.where(places[window] == place, part, 0)
        result[element] += part
    return result


# Convolution --------------------------------------------------------------------------------------


def _columns(x, windows, result):
    """Fill columns, (..., kernel, rows, columns of windows), of images (..., height, width)."""
    result[...] = 0
    for place, window, element in _places(windows, x.shape):
        result[..., place, :, :][window] = x[element]
    return result


def _pieces(images, bytes_each):
    """Yield slices of the batch whose columns are in memory at a time."""
    step = max(1, MOST_COLUMNS // max(1, bytes_each))
    for first in range(0, images, step):
        yield slice(first, min(first + step, images))


def _sizes(channels, windows, groups, shape):
    """Return the windows' rows and columns, their number, the kernel's, and terms of a sum."""
    counts = lengths(windows, shape)
    kernel = windows[0] * windows[1]
    return counts, math.prod(counts), kernel, channels // groups * kernel


def convolution(x, weight, windows, groups):
    """Return the convolution (n, out, rows, columns of windows) of images x."""
    images, channels = x.shape[:2]
    counts, spots, kernel, depth = _sizes(channels, windows, groups, x.shape)
    out = weight.shape[0]
    result = np.empty((images, groups, out // groups, spots), x.dtype)
    matrices = weight.reshape(groups, out // groups, depth)
    for piece in _pieces(images, channels * kernel * spots * x.itemsize):
        part = x[piece]
        columns = np.empty((len(part), channels, kernel, *counts), x.dtype)
        columns = _columns(part, windows, columns).reshape(len(part), groups, depth, spots)
        np.matmul(matrices, columns, out=result[piece])
    return result.reshape(images, out, *counts)


def convolution_input(gradient, weight, windows, groups, height, width):
    """Return the gradient of the images of a convolution."""
    images, out = gradient.shape[:2]
    channels = weight.shape[1] * groups
    result = np.zeros((images, channels, height, width), gradient.dtype)
    counts, spots, kernel, depth = _sizes(channels, windows, groups, result.shape)
    matrices = weight.reshape(groups, out // groups, depth).swapaxes(1, 2)
    for piece in _pieces(images, channels * kernel * spots * gradient.itemsize):
        part = gradient[piece].reshape(-1, groups, out // groups, spots)
        columns = np.matmul(matrices, part).reshape(-1, channels, kernel, *counts)
        into = result[piece]
        for place, window, element in _places(windows, result.shape):
            into[element] += columns[:, :, place][window]
    return result


def convolution_weight(gradient, x, windows, groups):
    """Return the gradient of the weight of a convolution, the columns of a piece side by side."""
    images, channels = x.shape[:2]
    out = gradient.shape[1]
    counts, spots, kernel, depth = _sizes(channels, windows, groups, x.shape)
    result = np.zeros((groups, out // groups, depth), x.dtype)
    for piece in _pieces(images, channels * kernel * spots * x.itemsize):
        part = x[piece].swapaxes(0, 1)  # (channels, images, height, width)
        many = part.shape[1] * spots
        columns = np.empty((channels, kernel, part.shape[1], *counts), x.dtype)
        _columns(part, windows, columns.swapaxes(1, 2))
        slopes = gradient[piece].swapaxes(0, 1).reshape(groups, out // groups, many)
        result += np.matmul(slopes, columns.reshape(groups, depth, many).swapaxes(1, 2))
    return result.reshape(out, channels // groups, *windows[:2])
