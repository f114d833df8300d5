"""Sums of what belongs to the same place: what gather, which may read one place often, leads to."""

from .. import functions as vg
from ..dispatch import apply, whole
from ..operations import Operation


def scatter_sums(g, indices, like, axes, place):
    """Return zeros in the shape of `like` plus the elements of g where gather reads."""
    named = {"x": g, "indices": indices, "axes": axes, "place": place}
    return whole("scatter_sums", named, lambda: _sums(g, indices, like.shape, axes, place))


def _sums(g, indices, shape, axes, place):
    result = vg.empty(shape, dtype=g.dtype, device=g.device)
    apply(g.backend, "accumulate", Operation.SUM, result, indices, axes, place, True, g)
    return result
