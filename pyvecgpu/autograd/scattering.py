"""Sums of what belongs to the same place: what gather, which may read one place often, leads to.

There is no atomic addition, whose order would change the bits. The indices are sorted on the host,
and what has the same place is added in pairs, in as many rounds as that takes.
"""

import math

import numpy as np

from .. import functions as vg
from ..dispatch import apply, whole
from ..functions.arguments import from_host
from ..functions.values import to_host
from ..functions.working import work_dtype
from ..native.abi import ALONG


def scatter_sums(g, indices, like, axes, place):
    """Return zeros in the shape of `like` plus the elements of g where gather reads.

    It waits for the device, as it brings the indices to the host.
    """
    named = {"x": g, "indices": indices, "axes": axes, "place": place}
    return whole("scatter_sums", named, lambda: _sums(g, to_host(indices), like.shape, axes, place))


def _sums(g, indices, shape, axes, place):
    dtype = g.dtype
    g = vg.astype(g, work_dtype(dtype), copy=False)
    indices = indices.astype(np.int64, copy=False)
    if place == ALONG:
        planes = [*np.ogrid[tuple([slice(n) for n in g.shape])]]
        planes[axes[0]] = indices
        planes, chosen = np.broadcast_arrays(*planes), range(len(shape))
        axes, others, rows = tuple(chosen), (), vg.reshape(g, (g.size, 1))
    else:
        planes, others = indices, [i for i in range(len(shape)) if i not in axes]
        many = indices.ndim - 1
        order = (*range(place, place + many), *range(place), *range(place + many, g.ndim))
        size = math.prod(indices.shape[1:])
        rows = vg.reshape(vg.permute_dims(g, order), (size, math.prod(shape[i] for i in others)))
    lengths = [shape[i] for i in axes]
    if not rows.size:
        return vg.zeros(shape, dtype=dtype, device=g.device)
    planes = [np.where(p < 0, p + n, p) for p, n in zip(planes, lengths, strict=True)]
    cells = np.ravel_multi_index(planes, lengths).reshape(-1)
    flat = _summed(rows, cells, math.prod(lengths))
    moved = vg.reshape(flat, (*lengths, *[shape[i] for i in others]))
    order = [*axes, *others]
    result = vg.permute_dims(moved, [order.index(i) for i in range(len(shape))])
    return vg.astype(result, dtype)


def _summed(rows, cells, count):
    """Return `count` rows: the sums of those with the same number of a cell, else zeros."""
    order = np.argsort(cells, kind="stable")
    cells = cells[order]
    rows = vg.take(rows, order, axis=0)
    while True:
        new = np.append(True, cells[1:] != cells[:-1])
        if new.all():
            break
        number = np.arange(len(cells))
        inside = number - np.maximum.accumulate(np.where(new, number, 0))
        first = number[inside % 2 == 0]
        second = np.minimum(first + 1, len(cells) - 1)
        pair = (cells[second] == cells[first]) & (second > first)
        partner = vg.where(_put(pair[:, None], rows), vg.take(rows, second, axis=0), 0.0)
        rows = vg.take(rows, first, axis=0) + partner
        cells = cells[first]
    result = vg.zeros((count, rows.shape[1]), dtype=rows.dtype, device=rows.device)
    apply(rows.backend, "scatter", result, _put(cells[None], rows), (0,), 0, True, rows)
    return result


def _put(values, like):
    return from_host(np.ascontiguousarray(values), like.backend)
