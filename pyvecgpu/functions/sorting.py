"""Functions that put elements in order, and that search in what is in order.

All sorting is stable. NaN is the largest, so that it comes last, or first where `descending`; -0.0
equals 0.0 and is put in front of it where indices do not show which was first.
"""

import numpy as np

from ..array import Array
from ..dispatch import apply
from ..dtypes import complex_dtype, float64, is_complex, is_integer, supported
from ..native.abi import ALONG
from ..operations import Operation
from . import short_cards, short_numpy, short_sets
from .arguments import Operands, is_scalar, listed, parse_axis, parse_int, strong
from .gathering import take
from .indexing import get
from .layout import astype, ravel
from .short_calls import short
from .working import along

__all__ = [
    "argpartition",
    "argsort",
    "lexsort",
    "partition",
    "searchsorted",
    "sort",
    "sort_complex",
    "top_k",
]

_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


@short(short_numpy.sort)
def sort(x, /, axis=-1, kind=None, *, descending=False, stable=True, device=None):
    """Return the elements in order along an axis; None: all in C order along one.

    kind, stable: as others call their ways to sort; here it is always a stable one. AxisError: no
    such axis. ValueError: an unknown kind, 2^32 elements or more along the axis on a card.

    >>> vg.sort(vg.asarray([[3, 1], [2, 4]])).tolist()
    [[1, 3], [2, 4]]
    >>> vg.sort(vg.asarray([2.0, vg.nan, 1.0]), descending=True).tolist()
    [nan, 2.0, 1.0]
    """
    _check_kind("sort", kind)
    call = Operands("sort", (x,), None, device)
    array, axis = _axis(call.arrays[0], axis)
    return call.give(sorted_along(array, axis, descending))


@short(short_numpy.argsort)
def argsort(x, /, axis=-1, kind=None, *, descending=False, stable=True, device=None):
    """Return the int64 indices that put the elements in order along an axis; see sort.

    Of equal elements the one that stands first is first, also where `descending`.

    >>> x = vg.asarray([30, 10, 20])
    >>> vg.argsort(x).tolist(), vg.argsort(x, descending=True).tolist()
    ([1, 2, 0], [0, 2, 1])
    """
    _check_kind("argsort", kind)
    call = Operands("argsort", (x,), None, device)
    array, axis = _axis(call.arrays[0], axis)
    return call.give(order_along(array, axis, descending))


@short(short_sets.sort_complex)
def sort_complex(x, /, *, device=None):
    """Return the elements in order along the last axis, by real and then by imaginary parts.

    As complex numbers, whose parts are of the dtype of x. AxisError: no axis.

    >>> vg.sort_complex(vg.asarray([3, 1 + 1j, 1 - 2j])).tolist()
    [(1-2j), (1+1j), (3+0j)]
    """
    call = Operands("sort_complex", (x,), None, device)
    array, axis = _axis(call.arrays[0], -1)
    if not is_complex(array.dtype):
        array = sorted_along(array, axis)
        return call.give(astype(array, complex_dtype(array.dtype), copy=False))
    real, imag = (apply(call.backend, "part", array, which) for which in (False, True))
    order = order_along(imag, axis)
    after = order_along(picked_along(real, order, axis), axis)
    return call.give(picked_along(array, picked_along(order, after, axis), axis))


@short(short_sets.lexsort)
def lexsort(keys, /, axis=-1, *, device=None):
    """Return the int64 indices that put elements in order by several keys, the last one first.

    keys: a sequence of arrays of one shape, or an array of them along its first axis. ValueError:
    no key, or keys of several shapes. AxisError: no such axis.

    >>> surnames, names = vg.asarray([2, 1, 2]), vg.asarray([5, 9, 3])
    >>> vg.lexsort((names, surnames)).tolist()
    [1, 2, 0]
    """
    is_one = not isinstance(keys, (list, tuple))
    keys = (keys,) if is_one else tuple(keys)
    call = Operands("lexsort", keys, None, device)
    keys = [x if isinstance(x, Array) else listed(x, call.backend) for x in call.arrays]
    if is_one and keys[0].ndim > 1:
        keys = [get(keys[0], i) for i in range(keys[0].shape[0])]
    if not keys or any(key.shape != keys[0].shape for key in keys):
        raise ValueError(f"lexsort: keys of one shape, not {[key.shape for key in keys]}")
    axis = parse_axis(axis, keys[0].ndim)
    order = order_along(keys[0], axis)
    for key in keys[1:]:
        after = order_along(picked_along(key, order, axis), axis)
        order = picked_along(order, after, axis)
    return call.give(order)


def partition(x, /, kth, axis=-1, *, device=None):
    """Return the elements with the kth ones at their places in order; here all are in order.

    kth: an int or several, of negative ones counted from the end. ValueError: out of range.

    >>> vg.partition(vg.asarray([9, 1, 5, 7]), 1)[1].item()
    5
    """
    call = Operands("partition", (x,), None, device)
    array, axis = _axis(call.arrays[0], axis)
    check_kth("partition", kth, array.shape[axis])
    return call.give(sorted_along(array, axis))


@short(short_sets.argpartition)
def argpartition(x, /, kth, axis=-1, *, device=None):
    """Return the int64 indices of elements with the kth ones at their places in order.

    Of those before and behind these the order is open: it differs between the CPU and a card.

    >>> x = vg.asarray([9, 1, 5, 7])
    >>> x[vg.argpartition(x, 1)[:2]].tolist()
    [1, 5]
    """
    call = Operands("argpartition", (x,), None, device)
    array, axis = _axis(call.arrays[0], axis)
    check_kth("argpartition", kth, array.shape[axis])
    return call.give(order_along(array, axis))


def top_k(x, k, /, *, axis=-1, mode="largest", device=None):
    """Return the k largest elements along an axis, in descending order, and their int64 indices.

    mode: or the "smallest", in ascending order. NaN is the largest. ValueError: a mode that is
    neither, k out of range. AxisError: no such axis.

    >>> values, indices = vg.top_k(vg.asarray([5, 1, 9, 7]), 2)
    >>> values.tolist(), indices.tolist()
    ([9, 7], [2, 3])
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f'top_k: mode is "largest" or "smallest", not {mode!r}')
    result = short_cards.first_in_order(x, k, axis, mode == "smallest") if device is None else None
    if result is not None:
        return result
    call = Operands("top_k", (x,), None, device)
    array, axis = _axis(call.arrays[0], axis)
    k = parse_int(k, "k")
    if not 0 <= k <= array.shape[axis]:
        raise ValueError(f"top_k: {k} of {array.shape[axis]} elements")
    if k == 1 and (mode == "largest" or array.dtype.kind in "biu") and not is_complex(array.dtype):
        code = Operation.ARGMAX if mode == "largest" else Operation.ARGMIN  # NaN is first of both
        order = apply(array.backend, "reduce", int(code), array, (axis,), True, None)
    else:
        turned = _turned(array, axis, -1)
        last = array.ndim - 1
        order = along(order_along(turned, last, mode == "largest"), last, slice(0, k))
        found = picked_along(turned, order, last)
        return call.give(_turned(found, -1, axis)), call.give(_turned(order, -1, axis))
    return call.give(picked_along(array, order, axis)), call.give(order)


@short(short_numpy.searchsorted)
def searchsorted(x1, x2, /, side="left", sorter=None, *, device=None):
    """Return, for each element of x2, the int64 index before which it keeps x1 in order.

    x1: 1-D, in ascending order, or in the order of the indices in `sorter`. x2: an array or a
    number. side: "left", in front of elements that are equal, or "right", behind them. ValueError:
    x1 has other dimensions, another side, a sorter of another length. IndexError: it is out of
    range. TypeError: it is not of integers.

    >>> vg.searchsorted(vg.asarray([1, 3, 5]), vg.asarray([0, 3, 9])).tolist()
    [0, 1, 3]
    >>> vg.searchsorted(vg.asarray([1, 3, 5]), 3, side="right").item()
    2
    """
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side is "left" or "right", not {side!r}')
    operands = (x1, x2) if sorter is None else (x1, x2, sorter)
    call = Operands("searchsorted", operands, None, device)
    array, values = call.arrays[0], beside(call.arrays[1], call.arrays[0])
    if is_scalar(array) or array.ndim != 1:
        shape = () if is_scalar(array) else array.shape
        raise ValueError(f"searchsorted: x1 has one dimension, not shape {shape}")
    if sorter is not None:
        sorter = call.arrays[2]
        if is_scalar(sorter) or not is_integer(sorter.dtype):
            raise TypeError("searchsorted: the sorter is an array of integers")
        if sorter.shape != array.shape:
            raise ValueError(f"searchsorted: a sorter of {sorter.shape} for {array.shape}")
        array = take(array, sorter)
    return call.give(bisected(array, values, side == "right"))


# For other modules --------------------------------------------------------------------------------


def sorted_along(array, axis, descending=False):
    """Return the elements of an Array in order along an axis."""
    return apply(array.backend, "sort", array, axis, bool(descending), None)


def sort_in_place(array, axis=-1, kind=None, descending=False):
    """Put the elements of an Array in order along an axis; see sort."""
    _check_kind("sort", kind)
    axis = parse_axis(axis, array.ndim)
    apply(array.backend, "sort", array, axis, bool(descending), array)


def order_along(array, axis, descending=False):
    """Return the indices that put the elements of an Array in order along an axis."""
    return apply(array.backend, "argsort", array, axis, bool(descending))


def picked_along(array, indices, axis):
    """Return the elements at indices along an axis that are known to be in range."""
    return apply(array.backend, "gather", array, indices, (axis,), ALONG, True)


def bisected(array, values, right=False):
    """Return how many elements of a sorted Array stand before each value of another."""
    return apply(array.backend, "searchsorted", array, values, bool(right))


def beside(value, array):
    """Return a Python scalar as an Array to be compared with another, itself if it is one.

    An integer beside others keeps its value, and so does a float beside integers.
    """
    if not is_scalar(value):
        return value
    if is_integer(array.dtype) or array.dtype.kind == "b":
        dtype = supported(np.asarray(value).dtype) if not isinstance(value, float) else float64
    else:
        dtype = array.dtype
    return strong(value, array.backend, dtype)


def check_kth(name, kth, length):
    """ValueError: a place that an axis of this length has not. TypeError: not integers."""
    for one in kth if isinstance(kth, (list, tuple, np.ndarray)) else (kth,):
        number = parse_int(one, "kth")
        if not -length <= number < length:
            raise ValueError(f"{name}: kth={number} is out of bounds for {length} elements")


def _axis(array, axis):
    """Return an Array and one of its axes; of None all elements in a row."""
    if axis is None:
        return ravel(array), 0
    return array, parse_axis(axis, array.ndim)


def _turned(array, axis, to):
    """Return the view of an Array with one axis elsewhere, of which one is the last: itself there.

    Sorting copies an array whose axis is not the last to have it so, and all indices back.
    """
    axes = list(range(array.ndim))
    axes.insert(to % array.ndim, axes.pop(axis))
    if axes == sorted(axes):
        return array
    return apply(array.backend, "permute", array, tuple(axes))


def _check_kind(name, kind):
    if kind not in _KINDS:
        raise ValueError(f"{name}: kind is one of {_KINDS[1:]}, not {kind!r}")
