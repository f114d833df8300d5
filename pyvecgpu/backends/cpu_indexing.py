"""gather and scatter of the CPU device, with NumPy's own indexing and the card's messages."""

import math

import numpy as np

from ..native.abi import ALONG
from .cpu_casts import cast


def check_range(array, indices, axes):
    """IndexError: an index out of range; `indices` has a plane for each of the axes."""
    for plane, axis in zip(indices, axes, strict=True):
        size = array.shape[axis]
        bad = (plane < -size) | (plane >= size)
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
    planes = _planes(a, indices, axes, place, trusted)
    if np.may_share_memory(a, indices):
        planes = planes.copy()
    if np.may_share_memory(a, values):
        values = values.copy()
    values = cast(values, a.dtype)
    if place == ALONG:
        values = _broadcast(values, planes.shape[1:])
        where = np.ogrid[tuple([slice(n) for n in planes.shape[1:]])]
        key = [planes[0] if i == axes[0] else one for i, one in enumerate(where)]
        a[tuple(key)] = values
        return
    moved, chosen = a.transpose(_first(a, axes)), planes.shape[1:]
    others = moved.shape[len(axes) :]
    order = _order(len(chosen) + len(others), len(chosen), place)
    values = _broadcast(values, tuple([(chosen + others)[i] for i in order]))
    moved[tuple(planes)] = values.transpose(np.argsort(order))


def _planes(a, indices, axes, place, trusted):
    if indices.dtype.kind not in "iu":
        raise TypeError(f"indices are integers, not {indices.dtype}")
    planes = (indices[None] if place == ALONG else indices).astype(np.int64, copy=False)
    if not trusted:
        check_range(a, planes, axes)
    return planes


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
