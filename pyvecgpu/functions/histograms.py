"""Histograms of points in several dimensions. They look at values, for which they wait."""

import math

import numpy as np

from ..array import Array
from ..dispatch import apply
from ..dtypes import float64
from . import reductions, short_counts
from .arguments import Operands, check_shape, is_host, is_scalar
from .binning import _bins, _given
from .choosing import where
from .elementwise import bitwise_and, greater, less_equal
from .indexing import get
from .layout import astype, ravel, reshape
from .short_calls import short
from .sorting import bisected

__all__ = ["histogram2d", "histogramdd"]


@short(short_counts.histogram2d)
def histogram2d(x, y, /, bins=10, range=None, density=None, weights=None, *, device=None):
    """Return (how many points are in each cell, the edges of bins of x, those of y).

    bins: how many, or the edges, for both; or a pair of such. Else see histogramdd.

    >>> x, y = vg.asarray([0.0, 1.0, 1.0]), vg.asarray([0.0, 0.0, 1.0])
    >>> counts, xedges, yedges = vg.histogram2d(x, y, bins=2)
    >>> counts.tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    if not is_scalar(bins) and not isinstance(bins, str) and len(bins) != 2:
        bins = (bins, bins)
    operands = (x, y) if weights is None else (x, y, weights)
    call = Operands("histogram2d", operands, None, device)
    counts, edges = _counted("histogram2d", call, 2, bins, range, density, weights is not None)
    return (counts, *edges)


def histogramdd(sample, /, bins=10, range=None, density=None, weights=None, *, device=None):
    """Return (how many points are in each cell, as float64, a list of the edges of bins).

    sample: (points, dimensions), or a list of arrays, one for each dimension. bins: how many in all
    dimensions, or for each how many or the edges in ascending order. range: for each dimension
    None, which is that of the points, or (low, high). weights: of the points, to be added instead
    of counting. density: divided by the sum and the cells' volumes. What is in no bin, and NaN,
    counts nowhere. ValueError: shapes, bins or ranges that do not fit.

    >>> points = vg.asarray([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    >>> counts, edges = vg.histogramdd(points, bins=2)
    >>> counts.tolist(), len(edges)
    ([[1.0, 0.0], [1.0, 1.0]], 2)
    """
    if isinstance(sample, Array) or is_host(sample):
        if sample.ndim == 1:
            sample = reshape(sample, (sample.size, 1))
        if sample.ndim != 2:
            raise ValueError(f"histogramdd: (points, dimensions), not shape {sample.shape}")
        columns = [_column(sample, i) for i in np.arange(sample.shape[1]).tolist()]
    elif isinstance(sample, (list, tuple)):
        columns = list(sample)
    else:
        kind = type(sample).__name__
        raise TypeError(f"histogramdd takes arrays, not {kind}; make one with asarray(...)")
    if not columns:
        raise ValueError("histogramdd: there is no dimension")
    operands = columns if weights is None else [*columns, weights]
    call = Operands("histogramdd", operands, None, device)
    given = weights is not None
    return _counted("histogramdd", call, len(columns), bins, range, density, given)


def _column(sample, i):
    return get(sample, (slice(None), i)) if isinstance(sample, Array) else sample[:, i]


def _counted(name, call, count, bins, range, density, weighted):
    """Return the cells' counts and the list of edges, for `count` columns of a call."""
    columns = list(call.arrays[:count])
    weights = call.arrays[count] if weighted else None
    parts = columns if weights is None else [*columns, weights]
    if any(is_scalar(x) or x.ndim != 1 or x.shape != columns[0].shape for x in parts):
        raise ValueError(f"{name}: arrays of one dimension and the same length are needed")
    if is_scalar(bins) or isinstance(bins, str):
        bins = [bins] * count
    if len(bins) != count:
        raise ValueError(f"{name}: bins for {len(bins)} dimensions, and there are {count}")
    range = [None] * count if range is None else range
    if len(range) != count:
        raise ValueError(f"{name}: ranges of {len(range)} dimensions, and there are {count}")
    edges = []
    for column, one, ends in zip(columns, bins, range, strict=True):
        if isinstance(one, str):
            raise TypeError(f"{name}: bins are numbers or edges, not {one!r}")
        edges.append(_bins(name, column, one, ends, None))
    shape = tuple(one.size - 1 for one in edges)
    check_shape(shape, 8)
    cell, inside = None, None
    for column, one in zip(columns, edges, strict=True):
        lower, last = _given(one[:-1], column), _given(one[-1:], column)
        number = where(less_equal(column, last), bisected(lower, column, True), 0)
        here = greater(number, 0)
        inside = here if inside is None else bitwise_and(inside, here)
        cell = number - 1 if cell is None else cell * (one.size - 1) + (number - 1)
    cell = where(inside, cell + 1, 0)
    if weights is not None:
        weights = astype(weights, float64, copy=False)
    counts = apply(call.backend, "bincount", ravel(cell), weights, math.prod(shape) + 1)
    counts = reshape(astype(get(counts, slice(1, None)), float64, copy=False), shape)
    if density:
        counts = counts / reductions.sum(counts)
        for axis, one in enumerate(edges):
            widths = np.diff(one.astype(np.float64)).reshape([-1] + [1] * (count - 1 - axis))
            counts = counts / _given(widths, counts)
    return call.give(counts), [call.give(_given(one, columns[0])) for one in edges]
