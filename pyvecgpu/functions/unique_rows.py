"""The parts of an array along an axis that differ, in the order of their elements.

Elements are replaced by their ranks among those at the same place in other parts, and ranks of two
places by those of the pairs, until one place is left: a sort for every halving, all places at once.
"""

from ..dispatch import apply
from ..dtypes import bool as bool_dtype
from ..dtypes import int64, is_complex
from ..native.abi import ALONG
from . import complexes, reductions, scans
from .creation import filled
from .elementwise import bitwise_and, bitwise_or, equal, not_equal
from .indexing import get
from .joining import concat, stack
from .layout import astype, moveaxis, reshape
from .sorting import order_along, picked_along
from .working import can_be_nan, is_nan


def ordered_parts(array, axis):
    """Return the indices that put the parts along an axis in order, and which begin a new one.

    A part with a NaN is none of those before it, as NumPy has it.
    """
    count = array.shape[axis]
    places = array.size // count if count else 0
    rows = reshape(moveaxis(array, axis, -1), (places, count))
    ranks = _ranks(rows)
    order = order_along(ranks, 0)
    first = starts(picked_along(ranks, order, 0), False)
    if can_be_nan(array) and places:
        own = reductions.max(is_nan(rows), axis=0)
        first = bitwise_or(first, picked_along(own, order, 0))
    return order, first


def starts(ordered, equal_nan):
    """Return, for elements that are sorted along the last axis, where another one begins."""
    before, behind = get(ordered, (..., slice(0, -1))), get(ordered, (..., slice(1, None)))
    differ = not_equal(before, behind)
    if equal_nan and can_be_nan(ordered):  # behind a NaN is no other element
        differ = bitwise_and(differ, equal(before, before))
    shape = (*ordered.shape[:-1], min(ordered.shape[-1], 1))
    first = filled(apply(ordered.backend, "empty", shape, bool_dtype), True)
    return concat([first, differ], axis=-1)


def scattered_ranks(order, first):
    """Return, for each element, the number of its value; `order` puts them in order."""
    axis = order.ndim - 1
    ranks = scans.cumulative_sum(first, axis=axis, dtype=int64) - 1
    result = apply(order.backend, "empty", order.shape, int64)
    apply(order.backend, "scatter", result, order, (axis,), ALONG, True, ranks)
    return result


def _ranks(rows):
    """Return the rank of each column of a matrix."""
    places, count = rows.shape
    if not places or not count:
        return filled(apply(rows.backend, "empty", (count,), int64), 0)
    if is_complex(rows.dtype):
        parts = complexes.real(rows), complexes.imag(rows)
        kinds = [astype(not_equal(part, part), parts[0].dtype) for part in parts]
        rows = stack([kinds[0] * 2 + kinds[1], *parts], axis=1)
        rows = reshape(rows, (3 * places, count))
    ranks = _of_elements(rows)
    while ranks.shape[0] > 1:
        pairs = get(ranks, slice(0, -1, 2)) * count + get(ranks, slice(1, None, 2))
        rest = [get(ranks, slice(-1, None))] if ranks.shape[0] % 2 else []
        ranks = _of_elements(concat([pairs, *rest]))
    return reshape(ranks, (count,))


def _of_elements(rows):
    """Return the rank of each element in its row; all NaN have the last one."""
    order = order_along(rows, 1)
    return scattered_ranks(order, starts(picked_along(rows, order, 1), True))
