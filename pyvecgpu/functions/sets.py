"""Functions that look at arrays as sets: the elements that differ, once each and in order.

How many there are decides the shape, so that these wait for the device; `isin` does not.
"""

from collections import namedtuple

from ..dispatch import apply
from ..dtypes import bool as bool_dtype
from ..dtypes import int8, int64, is_complex
from . import complexes, short_cards, short_counts, short_numpy, short_sets
from .arguments import Operands, is_scalar, parse_axis, promote_all
from .creation import filled
from .elementwise import equal, minimum, not_equal
from .indexing import get
from .joining import concat
from .layout import astype, ravel, reshape
from .short_calls import short
from .sorting import beside, bisected, order_along, picked_along, sorted_along
from .unique_rows import ordered_parts, scattered_ranks, starts

__all__ = [
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]

UniqueAll = namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")

# Unique elements ----------------------------------------------------------------------------------


@short(short_numpy.unique_values)
def unique_values(x, /, *, device=None):
    """Return the elements that differ, in ascending order; each NaN is one of its own.

    >>> vg.unique_values(vg.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    call = Operands("unique_values", (x,), None, device)
    return call.give(_unique(call.arrays[0])[0])


@short(short_sets.unique_counts, of=UniqueCounts)
def unique_counts(x, /, *, device=None):
    """Return (values, counts): the elements that differ, see unique_values, and how often.

    >>> values, counts = vg.unique_counts(vg.asarray([3, 1, 3]))
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    """
    call = Operands("unique_counts", (x,), None, device)
    values, _, _, counts = _unique(call.arrays[0], counts=True)
    return UniqueCounts(call.give(values), call.give(counts))


@short(short_sets.unique_inverse, of=UniqueInverse)
def unique_inverse(x, /, *, device=None):
    """Return (values, inverse_indices): values[inverse_indices] is x; see unique_values.

    >>> values, inverse = vg.unique_inverse(vg.asarray([30, 10, 30]))
    >>> values[inverse].tolist()
    [30, 10, 30]
    """
    call = Operands("unique_inverse", (x,), None, device)
    values, _, inverse, _ = _unique(call.arrays[0], inverse=True)
    return UniqueInverse(call.give(values), call.give(inverse))


@short(short_sets.unique_all, of=UniqueAll)
def unique_all(x, /, *, device=None):
    """Return (values, indices, inverse_indices, counts); see unique_values.

    indices: into ravel(x), of the first of equal elements. Each is int64.

    >>> found = vg.unique_all(vg.asarray([3, 1, 3]))
    >>> found.values.tolist(), found.indices.tolist(), found.inverse_indices.tolist()
    ([1, 3], [1, 0], [1, 0, 1])
    """
    call = Operands("unique_all", (x,), None, device)
    found = _unique(call.arrays[0], index=True, inverse=True, counts=True)
    return UniqueAll(*[call.give(one) for one in found])


@short(short_counts.unique)
def unique(
    x,
    /,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
    device=None,
):
    """Return the elements that differ, in ascending order, and what else is asked for.

    Indices of the first of equal elements in ravel(x), indices that make x of the values, how often
    each is there: all int64, in a tuple with the values. equal_nan: all NaN count as one. axis: the
    parts of x along it are compared, as their first elements that differ are; those with NaN all
    differ. AxisError: no such axis.

    >>> values, counts = vg.unique(vg.asarray([3, 1, 3]), return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    >>> vg.unique(vg.asarray([[2, 1], [0, 5], [2, 1]]), axis=0).tolist()
    [[0, 5], [2, 1]]
    """
    call = Operands("unique", (x,), None, device)
    (array,) = call.arrays
    asked = return_index, return_inverse, return_counts
    equal_nan = bool(equal_nan)
    axis = None if axis is None else parse_axis(axis, array.ndim)
    if axis is None or array.ndim == 1:
        found = _unique(array, *asked, equal_nan)
    else:
        found = _unique_parts(array, axis, *asked)
    given = tuple([call.give(one) for one in found if one is not None])
    return given if len(given) > 1 else given[0]


def _unique(array, index=False, inverse=False, counts=False, equal_nan=False):
    """Return values, indices, inverse indices and counts of an Array; None: not asked for."""
    if not (index or inverse or counts):
        values = short_cards.unique(array, equal_nan)
        if values is not None:
            return values, None, None, None
    flat = ravel(array)
    if is_complex(array.dtype):
        order = _complex_order(flat)
    else:
        order = order_along(flat, 0) if index or inverse else None
    ordered = sorted_along(flat, 0) if order is None else picked_along(flat, order, 0)
    first = starts(ordered, equal_nan)
    begins = get(apply(first.backend, "nonzero", first), 0)
    return (
        picked_along(ordered, begins, 0),
        picked_along(order, begins, 0) if index else None,
        reshape(scattered_ranks(order, first), array.shape) if inverse else None,
        _lengths(begins, array.size) if counts else None,
    )


def _unique_parts(array, axis, index, inverse, counts):
    """Return the same of the parts of an Array along an axis."""
    order, first = ordered_parts(array, axis)
    begins = get(apply(first.backend, "nonzero", first), 0)
    places = picked_along(order, begins, 0)
    return (
        get(array, (*[slice(None)] * axis, places)),
        places if index else None,
        scattered_ranks(order, first) if inverse else None,
        _lengths(begins, array.shape[axis]) if counts else None,
    )


def _lengths(begins, n):
    """Return how far each of some places, the first of them 0, is from the next one, or from n."""
    end = filled(apply(begins.backend, "empty", (min(n, 1),), int64), n)
    return concat([get(begins, slice(1, None)), end]) - begins


def _complex_order(array):
    """Return the indices that order complex numbers as NumPy: by real parts, then imaginary ones.

    Behind all others are those with NaN in the imaginary part, the real one, and in both. Sorts are
    stable, so the last one counts first.
    """
    parts = complexes.real(array), complexes.imag(array)
    kinds = [astype(not_equal(part, part), int8) for part in parts]
    order = None
    for key in (parts[1], parts[0], kinds[0] + kinds[0] + kinds[1]):
        key = key if order is None else picked_along(key, order, 0)
        next_order = order_along(key, 0)
        order = next_order if order is None else picked_along(order, next_order, 0)
    return order


# Membership and sets ------------------------------------------------------------------------------


@short(short_counts.isin)
def isin(x1, x2, /, assume_unique=False, invert=False, *, device=None):
    """Return for each element of x1 whether it is one of x2; NaN is none.

    invert: whether it is not. assume_unique: makes no difference here. One of x1 and x2 may be a
    number. A set is one object, of which no element is part, as in NumPy: make a list of it.

    >>> vg.isin(vg.asarray([1, 2, 3]), vg.asarray([3, 1])).tolist()
    [True, False, True]
    """
    if isinstance(x2, (set, frozenset)):
        x2 = []
    call, x1, x2 = _two("isin", x1, x2, device)
    return call.give(_is_in(x1, x2, invert))


def _two(name, x1, x2, device):
    """Return the Operands and two Arrays, one of which may have been a number."""
    call = Operands(name, (x1, x2), None, device)
    x1, x2 = call.arrays
    return (call, beside(x1, x2), x2) if is_scalar(x1) else (call, x1, beside(x2, x1))


def _is_in(x1, x2, invert=False):
    if not x2.size:
        return filled(apply(x1.backend, "empty", x1.shape, bool_dtype), bool(invert))
    if is_complex(promote_all((x1, x2))):  # the numbers of the values in order stand for them
        ranks = _unique(concat([ravel(x1), ravel(x2)]), inverse=True, equal_nan=False)[2]
        x1, x2 = reshape(get(ranks, slice(0, x1.size)), x1.shape), get(ranks, slice(x1.size, None))
    among = sorted_along(ravel(astype(x2, promote_all((x1, x2)), copy=False)), 0)
    places = minimum(bisected(among, x1), among.size - 1)
    found = reshape(picked_along(among, ravel(places), 0), x1.shape)
    return (not_equal if invert else equal)(found, x1)


def _sets(name, x1, x2, device, assume_unique=False):
    """Return the Operands and the unique elements of both in one dtype."""
    call, x1, x2 = _two(name, x1, x2, device)
    dtype = promote_all((x1, x2))
    both = [ravel(astype(x, dtype, copy=False)) for x in (x1, x2)]
    if not assume_unique:
        both = [_unique(x, equal_nan=True)[0] for x in both]
    return call, *both


def _where(array, condition):
    """Return the elements of a 1-D Array where a condition is true."""
    return picked_along(array, get(apply(array.backend, "nonzero", condition), 0), 0)


@short(short_sets.intersect1d)
def intersect1d(x1, x2, /, assume_unique=False, return_indices=False, *, device=None):
    """Return the elements that are in both arrays, in ascending order.

    return_indices: and where each is first, in ravel(x1) and ravel(x2). assume_unique: no array has
    an element twice.

    >>> vg.intersect1d(vg.asarray([3, 1, 2]), vg.asarray([2, 3, 9])).tolist()
    [2, 3]
    """
    call, one, other = _sets("intersect1d", x1, x2, device, assume_unique or return_indices)
    if not return_indices:
        common = _where(one, _is_in(one, other))
        return call.give(sorted_along(common, 0) if assume_unique else common)
    (one, first, _, _), (other, second, _, _) = [_unique(x, index=True) for x in (one, other)]
    places = get(apply(one.backend, "nonzero", _is_in(one, other)), 0)
    common = picked_along(one, places, 0)
    results = common, picked_along(first, places, 0), _located(other, second, common)
    return tuple([call.give(one) for one in results])


def _located(values, indices, common):
    """Return the indices that belong to those of sorted values that are common."""
    return picked_along(indices, bisected(values, common), 0)


@short(short_sets.union1d)
def union1d(x1, x2, /, *, device=None):
    """Return the elements that are in one of two arrays or in both, in ascending order.

    >>> vg.union1d(vg.asarray([3, 1]), vg.asarray([2, 3])).tolist()
    [1, 2, 3]
    """
    call, one, other = _sets("union1d", x1, x2, device, assume_unique=True)
    return call.give(_unique(concat([one, other]), equal_nan=True)[0])


@short(short_sets.setdiff1d)
def setdiff1d(x1, x2, /, assume_unique=False, *, device=None):
    """Return the elements of x1 that are not in x2, in ascending order.

    assume_unique: no array has an element twice; those of x1 stay in their order.

    >>> vg.setdiff1d(vg.asarray([3, 1, 2]), vg.asarray([2, 9])).tolist()
    [1, 3]
    """
    call, one, other = _two("setdiff1d", x1, x2, device)
    one = ravel(one) if assume_unique else _unique(one, equal_nan=True)[0]
    return call.give(_where(one, _is_in(one, ravel(other), invert=True)))


@short(short_sets.setxor1d)
def setxor1d(x1, x2, /, assume_unique=False, *, device=None):
    """Return the elements that are in one of two arrays alone, in ascending order.

    >>> vg.setxor1d(vg.asarray([3, 1, 2]), vg.asarray([2, 9])).tolist()
    [1, 3, 9]
    """
    call, one, other = _sets("setxor1d", x1, x2, device, assume_unique)
    parts = [_where(one, _is_in(one, other, True)), _where(other, _is_in(other, one, True))]
    return call.give(sorted_along(concat(parts), 0))
