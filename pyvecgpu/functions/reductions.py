"""Reductions over some or all axes: sum, mean, max and their kin.

axis: an integer, a tuple of them, or None for all axes; negative ones count from the end. keepdims
leaves the reduced axes with length 1. where: bools, broadcast to the array, that say which elements
count. initial: a number that counts besides; where there may be no largest or smallest element it
is needed. AxisError: an axis out of range. ValueError: an axis twice, where without initial.
"""

from ..array import Array, Tracked
from ..dispatch import WAYS, apply
from ..dtypes import parse_dtype
from ..operations import OPERATIONS, codes, result_dtype
from . import partial, short_cpu, short_reductions
from .arguments import Operands, parse_axes, parse_axis
from .casting import active
from .layout import astype
from .short_calls import short

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "prod", "sum"]


_REDUCE = WAYS["reduce"]


def reduce(code, x, axis, keepdims, out, device):
    """Return operation `code` of pvg_reduce."""
    is_array = type(x) is Array or type(x) is Tracked
    if is_array and not active and out is None and device is None:
        if axis is None:
            axes = None
        else:
            ndim = len(x.shape)
            is_plain = type(axis) is int and -ndim <= axis < ndim
            axes = (axis % ndim,) if is_plain else _axes(code, axis, ndim)
        return _REDUCE(x.backend, code, x, axes, bool(keepdims), None)
    call = Operands(OPERATIONS[code].name, (x,), out, device)
    array = call.arrays[0]
    axes = None if axis is None else _axes(code, axis, array.ndim)
    return call.apply("reduce", code, array, axes, bool(keepdims))


def _axes(code, axis, ndim):
    """Return the axes of a reduction, counted from 0: one, if it gives an index."""
    is_index = code is codes.ARGMAX or code is codes.ARGMIN
    return (parse_axis(axis, ndim),) if is_index else parse_axes(axis, ndim)


def accumulate(code, x, axis, dtype, keepdims, out, device):
    """Return a reduction that gives wide integers of narrow ones, in a dtype."""
    row, dtype = OPERATIONS[code], parse_dtype(dtype)
    call = Operands(row.name, (x,), out, device)
    array = astype(call.arrays[0], dtype, copy=False)
    axes = parse_axes(axis, array.ndim)
    if result_dtype(row, dtype) == dtype:
        return call.apply("reduce", code, array, axes, bool(keepdims))
    wide = apply(call.backend, "reduce", code, array, axes, bool(keepdims), None)
    return call.apply("cast", wide, dtype)


@short(short_reductions.sum, c_order=False)
def sum(
    x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True, *, device=None
):
    """Return the sum; 0 of nothing.

    bool and signed integers give int64, unsigned ones uint64; floats keep their dtype and are
    summed in more precision than that. dtype: sum in this dtype instead.

    >>> x = vg.asarray([[1, 2], [3, 4]])
    >>> vg.sum(x).item(), vg.sum(x, axis=0).tolist()
    (10, [4, 6])
    >>> vg.sum(x, axis=1, keepdims=True).tolist()
    [[3], [7]]
    >>> vg.sum(vg.ones(300, dtype="int8")).item()
    300
    """
    code = codes.SUM
    if where is not True or initial is not None:
        return partial.reduced(code, x, axis, dtype, keepdims, out, initial, where, device)
    if dtype is None:
        return reduce(code, x, axis, keepdims, out, device)
    return accumulate(code, x, axis, dtype, keepdims, out, device)


@short(short_reductions.prod, c_order=False)
def prod(
    x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True, *, device=None
):
    """Return the product; 1 of nothing.

    Its dtypes are those of sum; integers wrap, and floats are multiplied in float64. dtype:
    multiply in this dtype instead.

    >>> vg.prod(vg.asarray([[1, 2], [3, 4]]), axis=1).tolist()
    [2, 12]
    """
    code = codes.PROD
    if where is not True or initial is not None:
        return partial.reduced(code, x, axis, dtype, keepdims, out, initial, where, device)
    if dtype is None:
        return reduce(code, x, axis, keepdims, out, device)
    return accumulate(code, x, axis, dtype, keepdims, out, device)


@short(short_reductions.mean, c_order=False)
def mean(x, /, axis=None, dtype=None, out=None, keepdims=False, *, where=True, device=None):
    """Return the mean, as float; NaN of nothing (with a RuntimeWarning on the CPU).

    dtype: of the elements before they are added and of the result; an integer one cuts off what is
    behind the point.

    >>> x = vg.asarray([[1, 2], [3, 6]])
    >>> vg.mean(x).item(), vg.mean(x, axis=1).tolist()
    (3.0, [1.5, 4.5])
    """
    if where is not True:
        return partial.mean(x, axis, dtype, keepdims, out, where, device)
    if dtype is None:
        return reduce(codes.MEAN, x, axis, keepdims, out, device)
    return accumulate(codes.MEAN, x, axis, dtype, keepdims, out, device)


@short(short_reductions.max, c_order=False)
def max(x, /, axis=None, out=None, keepdims=False, initial=None, where=True, *, device=None):
    """Return the largest element; NaN if any is NaN. ValueError: there is none.

    >>> vg.max(vg.asarray([[1, 5], [7, 2]]), axis=0).tolist()
    [7, 5]
    >>> vg.max(vg.asarray([1.0, vg.nan])).item()
    nan
    """
    code = codes.MAX
    if where is not True or initial is not None:
        return partial.reduced(code, x, axis, None, keepdims, out, initial, where, device)
    return reduce(code, x, axis, keepdims, out, device)


@short(short_reductions.min, c_order=False)
def min(x, /, axis=None, out=None, keepdims=False, initial=None, where=True, *, device=None):
    """Return the smallest element; NaN if any is NaN. ValueError: there is none.

    >>> vg.min(vg.asarray([[1, 5], [7, 2]]), axis=1).tolist()
    [1, 2]
    """
    code = codes.MIN
    if where is not True or initial is not None:
        return partial.reduced(code, x, axis, None, keepdims, out, initial, where, device)
    return reduce(code, x, axis, keepdims, out, device)


@short(short_reductions.argmax, c_order=False)
def argmax(x, /, axis=None, out=None, *, keepdims=False, device=None):
    """Return the index (int64) of the first largest element, or of the first NaN.

    axis: an integer, or None for the index in C order. ValueError: there is no element.

    >>> x = vg.asarray([[1, 9, 9], [7, 5, 6]])
    >>> vg.argmax(x).item(), vg.argmax(x, axis=1).tolist()
    (1, [1, 0])
    """
    return reduce(codes.ARGMAX, x, axis, keepdims, out, device)


@short(short_reductions.argmin, c_order=False)
def argmin(x, /, axis=None, out=None, *, keepdims=False, device=None):
    """Return the index (int64) of the first smallest element, or of the first NaN.

    axis: an integer, or None for the index in C order. ValueError: there is no element.

    >>> vg.argmin(vg.asarray([3, 1, 1])).item()
    1
    """
    return reduce(codes.ARGMIN, x, axis, keepdims, out, device)


@short(short_reductions.any, c_order=False)
def any(x, /, axis=None, out=None, keepdims=False, *, where=True, device=None):
    """Return whether any element is not 0, as bool; NaN is true. False of nothing.

    >>> vg.any(vg.asarray([[0, 0], [0, 2]]), axis=1).tolist()
    [False, True]
    """
    code = codes.ANY
    if where is not True:
        return partial.reduced(code, x, axis, None, keepdims, out, None, where, device)
    return reduce(code, x, axis, keepdims, out, device)


@short(short_reductions.all, c_order=False)
def all(x, /, axis=None, out=None, keepdims=False, *, where=True, device=None):
    """Return whether all elements are not 0, as bool; NaN is true. True of nothing.

    >>> x = vg.asarray([[True, False], [True, True]])
    >>> vg.all(x).item(), vg.all(x, axis=1).tolist()
    (False, [False, True])
    """
    code = codes.ALL
    if where is not True:
        return partial.reduced(code, x, axis, None, keepdims, out, None, where, device)
    return reduce(code, x, axis, keepdims, out, device)


def count_nonzero(x, /, axis=None, *, keepdims=False, device=None):
    """Return how many elements are not 0, as int64 (NaN is none).

    >>> vg.count_nonzero(vg.asarray([[0, 1], [2, 3]]), axis=0).tolist()
    [1, 2]
    """
    result = short_cpu.count_nonzero(x, axis, keepdims) if device is None else None
    if result is not None:
        return result
    call = Operands("count_nonzero", (x,), None, device)
    array = call.arrays[0]
    axes = parse_axes(axis, array.ndim)
    if array.dtype.kind != "b":
        array = apply(call.backend, "scalar", codes.NOT_EQUAL, array, 0, 1, None)
    return call.apply("reduce", codes.SUM, array, axes, bool(keepdims))
