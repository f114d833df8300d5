"""gather, scatter and accumulate of the CPU device: NumPy's own indexing, the card's messages."""

import math

import numpy as np

from ..dtypes import is_half
from ..native.abi import ALONG, FROM_START
from .cpu_casts import cast


def check_range(array, indices, axes, from_end=True):
    """IndexError: an index out of range; `indices` has a plane for each of the axes."""
    for plane, axis in zip(indices, axes, strict=True):
        size = array.shape[axis]
        bad = (plane < (-size if from_end else 0)) | (plane >= size)
        if np.any(bad):
            index = int(plane[bad].flat[0])
            raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")


def gather(a, indices, axes, place, trusted):
    """Return the elements as a new ndarray in C order; see pvg_gather."""
    planes = _planes(a, indices, axes, place, trusted)
    if place == ALONG:
        result = np.take_along_axis(a, planes[0], axes[0])
    else:
        among = a.transpose(_first(a, axes))[tuple(planes)]
        result = among.transpose(_order(among.ndim, planes.ndim - 1, place))
    return np.array(result, order="C")


def scatter(a, indices, axes, place, trusted, values):
    """Write values to the elements that gather would give; see pvg_scatter."""
    target, key, values = _places(a, indices, axes, place, trusted, values)
    target[key] = values


def accumulate(name, a, indices, axes, place, trusted, values):
    """Combine elements with all values for them, by a ufunc of this name; see pvg_accumulate."""
    target, key, values = _places(a, indices, axes, place, trusted, values)
    if name == "sum":  # of which what is there is no part
        name, a[...] = "add", np.zeros((), a.dtype)
    ufunc = getattr(np, name)
    if not is_half(a.dtype):
        ufunc.at(target, key, values)
        return
    wide = target.astype(np.float32)  # which sums are rounded from once
    ufunc.at(wide, key, values.astype(np.float32))
    target[...] = cast(wide, a.dtype)


def _places(a, indices, axes, place, trusted, values):
    """Return a view of an array, a key of arrays for it, and values for what the key names.

    Values that do not fit are told before indices that are out of range, as on a card, which finds
    these later.
    """
    if indices.size and any(a.shape[axis] == 0 for axis in axes):
        _planes(a, indices, axes, place, False)  # which a card need not look at
    chosen = indices.shape if place == ALONG else indices.shape[1:]
    if np.may_share_memory(a, values):
        values = values.copy()
    values = cast(values, a.dtype)
    if place == ALONG:
        values = _broadcast(values, chosen)
    else:
        moved = a.transpose(_first(a, axes))
        shape = (*chosen, *moved.shape[len(axes) :])
        order = _order(len(shape), len(chosen), place)
        values = _broadcast(values, tuple([shape[i] for i in order])).transpose(np.argsort(order))
    planes = _planes(a, indices, axes, place, trusted)
    if np.may_share_memory(a, planes):
        planes = planes.copy()
    if place != ALONG:
        return moved, tuple(planes), values
    where = np.ogrid[tuple([slice(n) for n in chosen])]
    return a, tuple([planes[0] if i == axes[0] else one for i, one in enumerate(where)]), values


def _planes(a, indices, axes, place, trusted):
    if indices.dtype.kind not in "iu":
        raise TypeError(f"indices are integers, not {indices.dtype}")
    planes = indices[None] if place == ALONG else indices
    if trusted != 1:
        check_range(a, planes, axes, trusted != FROM_START)  # before uint64 wraps
    return planes.astype(np.int64, copy=False)


def _first(a, axes):
    """Return the axes of an array, some of them before the others."""
    return (*axes, *[i for i in range(a.ndim) if i not in axes])


def _order(ndim, chosen, place):
    """Return which axis of (chosen ones, others) stands where in the result."""
    others = range(chosen, ndim)
    return (*others[:place], *range(chosen), *others[place:])


def _broadcast(values, shape):
    extra = max(values.ndim - len(shape), 0)
    if math.prod(values.shape[:extra]) == 1:
        values = values.reshape(values.shape[extra:])
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(
            f"shape mismatch: an array of shape {values.shape} cannot be broadcast to the shape "
            f"{shape} of what the indices name"
        ) from None
