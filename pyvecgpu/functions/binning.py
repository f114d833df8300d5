"""Functions that count by bins, and that interpolate between points.

Array in, Array out; NumPy in, NumPy out. Edges of bins may be NumPy's arrays or lists beside
Arrays. bincount, digitize, histogram and histogram_bin_edges look at values, for which they wait.
"""

import math

import numpy as np

from ..array import Array
from ..dispatch import apply
from ..dtypes import float64, inexact, is_complex, is_float, is_integer, supported
from . import bin_rules, reductions, short_counts
from .arguments import Operands, from_host, is_scalar, parse_int, parse_scalar, promote_all
from .choosing import where
from .complexes import of_parts, part
from .elementwise import equal, maximum, minimum
from .indexing import get
from .joining import concat
from .layout import astype, ravel, reshape
from .mathematics import remainder
from .short_calls import short
from .sorting import bisected, order_along, picked_along
from .values import to_host
from .working import is_nan

__all__ = ["bincount", "digitize", "histogram", "histogram_bin_edges", "interp"]


@short(short_counts.bincount)
def bincount(x, /, weights=None, minlength=0, *, device=None):
    """Return how often each of the numbers from 0 to the largest in x is there, as int64.

    x: 1-D, of integers that are not negative. weights: the float64 sums of those beside the numbers
    instead, added as they stand. minlength: of the result, at least. ValueError: a negative number,
    more dimensions, weights of another shape. TypeError: no integers.

    >>> vg.bincount(vg.asarray([0, 1, 1, 4])).tolist()
    [1, 2, 0, 0, 1]
    """
    minlength = parse_int(minlength, "minlength")
    if minlength < 0:
        raise ValueError(f"bincount: minlength is not negative, got {minlength}")
    call = Operands("bincount", (x,) if weights is None else (x, weights), None, device)
    array, weights = _with_weights("bincount", call.arrays)
    if array.ndim != 1:
        raise ValueError(f"bincount: x has one dimension, not shape {array.shape}")
    if array.dtype.kind == "b":
        array = astype(array, "uint8")
    if not is_integer(array.dtype):
        raise TypeError(f"bincount counts integers, not {array.dtype}")
    length = minlength
    if array.size:
        low, high = _ends(array)
        if low < 0:
            raise ValueError("bincount: a number is negative")
        length = max(length, high + 1)
    return call.give(apply(call.backend, "bincount", array, weights, length))


def _with_weights(name, arrays):
    """Return an Array and its weights or None."""
    array, weights = arrays if len(arrays) > 1 else (arrays[0], None)
    if is_scalar(array):
        raise TypeError(f"{name}: x is an array, not a {type(array).__name__}")
    if weights is not None and (is_scalar(weights) or weights.shape != array.shape):
        raise ValueError(f"{name}: weights are an array of the shape {array.shape} of x")
    return array, weights


def _ends(array):
    """Return the smallest and the largest element, as Python scalars."""
    ends = [reshape(f(array), (1,)) for f in (reductions.min, reductions.max)]
    return to_host(concat(ends)).tolist()


@short(short_counts.digitize)
def digitize(x, bins, /, right=False, *, device=None):
    """Return the int64 numbers of the bins that elements are in.

    bins: edges, 1-D, in ascending order or a descending one; bin i begins at bins[i - 1], which
    belongs to it, or, with `right`, to the one before. ValueError: the edges are in no order.

    >>> vg.digitize(vg.asarray([0.2, 6.4, 3.0]), vg.asarray([0.0, 1.0, 5.0])).tolist()
    [1, 3, 2]
    """
    call = Operands("digitize", (x,), None, device)
    array = call.arrays[0]
    edges = _edges("digitize", bins)
    descending = _descends(edges)
    if descending:
        edges = edges[::-1]
    if _descends(edges):
        raise ValueError("digitize: bins are in ascending or in descending order")
    found = bisected(_given(edges, array), array, not right)
    return call.give(edges.size - found if descending else found)


def _edges(name, bins):
    """Return the edges of bins as an ndarray. ValueError: not 1-D. TypeError: no numbers."""
    edges = to_host(bins) if isinstance(bins, Array) else np.asarray(bins)
    if edges.ndim != 1:
        raise ValueError(f"{name}: bins have one dimension, not shape {edges.shape}")
    return (
        edges.astype(np.float32)
        if edges.dtype.itemsize == 2 and edges.dtype.kind in "fV"
        else edges
    )


def _descends(edges):
    """Whether an edge is below the one before. (A difference of unsigned integers would wrap.)"""
    return bool((edges[1:] < edges[:-1]).any())


def _given(values, array):
    """Return an ndarray as an Array beside another one."""
    supported(values.dtype)
    return from_host(np.ascontiguousarray(values), array.backend)


# Histograms ---------------------------------------------------------------------------------------


@short(short_counts.histogram_bin_edges)
def histogram_bin_edges(x, /, bins=10, range=None, weights=None, *, device=None):
    """Return the edges of the bins that histogram counts by; see there.

    >>> vg.histogram_bin_edges(vg.asarray([0.0, 1.0, 4.0]), bins=4).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    operands = (x,) if weights is None else (x, weights)
    call = Operands("histogram_bin_edges", operands, None, device)
    array, weights = _with_weights("histogram_bin_edges", call.arrays)
    edges = _bins("histogram_bin_edges", ravel(array), bins, range, weights)
    return call.give(_given(edges, array))


@short(short_counts.histogram)
def histogram(x, /, bins=10, range=None, density=None, weights=None, *, device=None):
    """Return (how many elements are in each bin, the edges of the bins).

    bins: how many of one width, or a rule that chooses it ("auto", "doane", "fd", "rice", "scott",
    "sqrt", "stone" or "sturges"), or their edges in ascending order. range: (low, high) of bins of
    one width, by default those of x. The last bin has its upper edge, too; NaN is in none. weights:
    of the shape of x, to be added instead of counting. density: divided by the sum and the widths,
    as float. ValueError: what is no bins, no range, or a range that is not finite.

    >>> counts, edges = vg.histogram(vg.asarray([1.0, 2.0, 1.0, 4.0]), bins=3, range=(0, 6))
    >>> counts.tolist(), edges.tolist()
    ([2, 1, 1], [0.0, 2.0, 4.0, 6.0])
    """
    operands = (x,) if weights is None else (x, weights)
    call = Operands("histogram", operands, None, device)
    array, weights = _with_weights("histogram", call.arrays)
    array = ravel(array)
    edges = _bins("histogram", array, bins, range, weights)
    counts = bin_rules.counted(array, edges, None if weights is None else ravel(weights))
    if density:
        widths = np.diff(edges.astype(np.float64))
        counts = astype(counts, float64, copy=False)
        counts = counts / _given(widths, array) / reductions.sum(counts)
        counts = astype(counts, inexact(edges.dtype), copy=False)
    elif weights is not None:
        counts = astype(counts, weights.dtype, copy=False)
    return call.give(counts), call.give(_given(edges, array))


def _bins(name, array, bins, range, weights):
    """Return the edges of bins for the elements of a 1-D Array, as an ndarray."""
    if isinstance(bins, str) and weights is not None:
        raise TypeError(f"{name}: a rule for the number of bins knows no weights")
    if isinstance(bins, str) or is_scalar(bins):
        low, high = _range(name, array, range)
        if low == high:
            low, high = low - 0.5, high + 0.5
        if isinstance(bins, str):
            bins = _count(name, array, bins, low, high)
        count = parse_int(bins, "bins")
        if count < 1:
            raise ValueError(f"{name}: bins are 1 or more, not {count}")
        dtype = array.dtype if is_float(array.dtype) and array.dtype.itemsize > 2 else np.float64
        return np.linspace(low, high, count + 1, dtype=dtype)
    edges = _edges(name, bins)
    if edges.size < 2 or not (edges[1:] >= edges[:-1]).all():  # a difference of uint wraps
        raise ValueError(f"{name}: edges of bins are two or more in ascending order")
    return edges


def _range(name, array, range):
    if range is not None:
        low, high = (parse_scalar(one, "an end of the range") for one in range)
        if low > high:
            raise ValueError(f"{name}: the range ends before it begins")
    elif array.size:
        low, high = (float(one) if is_float(array.dtype) else int(one) for one in _ends(array))
    else:
        low, high = 0, 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name}: the range from {low} to {high} is not finite")
    return low, high


def _count(name, array, bins, low, high):
    """Return how many bins a rule by its name gives for the elements between two numbers."""
    if bins not in bin_rules.RULES:
        names = sorted(bin_rules.RULES)
        raise ValueError(f"{name}: bins are a number, edges or one of {names}, not {bins!r}")
    sample = bin_rules.Sample(array, low, high)
    width = bin_rules.RULES[bins](sample) if sample.count else 0
    if width and array.dtype.kind in "biu":
        width = max(width, 1.0)
    return math.ceil((high - low) / width) if width else 1


# Interpolation ------------------------------------------------------------------------------------


@short(short_counts.interp)
def interp(x, xp, fp, /, left=None, right=None, period=None, *, device=None):
    """Return, at each x, the value on the lines through the points (xp, fp), as float or complex.

    xp: 1-D, in ascending order, and fp of its length. left, right: the values in front of the
    first point and behind the last one, by default theirs. period: of x; then the points are in any
    order, and left and right make no difference. Computed in float64; fp, and beside it left and
    right, may be complex. ValueError: no point, other shapes, a period of 0.

    >>> vg.interp(vg.asarray([0.5, 3.0]), vg.asarray([0.0, 1.0]), vg.asarray([10.0, 20.0])).tolist()
    [15.0, 20.0]
    """
    call = Operands("interp", (x, xp, fp), None, device)
    if any(is_scalar(one) for one in call.arrays[1:]):
        raise TypeError("interp: points are arrays")
    dtype = inexact(promote_all([one for one in call.arrays if not is_scalar(one)]))
    complexes = is_complex(call.arrays[2].dtype)
    beyond = [
        None if one is None else parse_scalar(one, what, complexes)
        for one, what in ((left, "left"), (right, "right"))
    ]
    parts = [call.arrays[2]]
    if complexes:
        parts = [part(parts[0], False), part(parts[0], True)]
    found = []
    for values, kind in zip(parts, ("real", "imag"), strict=False):
        ends = [None if one is None else getattr(one, kind) for one in beyond]
        found.append(_interpolated(call.backend, *call.arrays[:2], values, *ends, period))
    result = of_parts(*found) if complexes else found[0]
    return call.give(astype(result, dtype, copy=False))


def _interpolated(backend, x, xp, fp, left, right, period):
    """Return what interp gives of real values, as float64."""
    x, xp, fp = (
        from_host(np.asarray(float(one)), backend) if is_scalar(one) else astype(one, float64)
        for one in (x, xp, fp)
    )
    if xp.ndim != 1 or fp.shape != xp.shape or not xp.size:
        raise ValueError(f"interp: points of shapes {xp.shape} and {fp.shape}")
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, parse_scalar(period, "a period"))
        left = right = None
    result = _on_lines(x, xp, fp)
    first, last = slice(0, 1), slice(-1, None)
    left = get(fp, first) if left is None else left
    right = get(fp, last) if right is None else right
    shape, result = x.shape, ravel(result)
    x = ravel(x)
    result = where(x < get(xp, first), left, result)
    result = where(x > get(xp, last), right, result)
    return reshape(result, shape)


def _on_lines(x, xp, fp):
    """Return what lies on the lines through points, at least between the first and the last."""
    x, shape = ravel(x), x.shape
    upper = minimum(maximum(bisected(xp, x, True), 1), max(xp.size - 1, 0))
    lower = maximum(upper - 1, 0)
    x0, x1 = (picked_along(xp, places, 0) for places in (lower, upper))
    f0, f1 = (picked_along(fp, places, 0) for places in (lower, upper))
    slope = (f1 - f0) / (x1 - x0)
    result = slope * (x - x0) + f0
    result = where(is_nan(result), slope * (x - x1) + f1, result)
    result = where(is_nan(result) & equal(f0, f1), f0, result)
    result = where(equal(x, x1), f1, where(equal(x, x0), f0, result))  # x1 is later, as NumPy's
    return reshape(where(is_nan(x), x, result), shape)


def _periodic(x, xp, fp, period):
    """Return x and points in order within one period, with one more point on either side."""
    period = abs(float(period))
    if period == 0:
        raise ValueError("interp: the period is not 0")
    x, xp = remainder(x, period), remainder(xp, period)
    order = order_along(xp, 0)
    xp, fp = picked_along(xp, order, 0), picked_along(fp, order, 0)
    first, last = slice(0, 1), slice(-1, None)
    xp = concat([get(xp, last) - period, xp, get(xp, first) + period])
    return x, xp, concat([get(fp, last), fp, get(fp, first)])
