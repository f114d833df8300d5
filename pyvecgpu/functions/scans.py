"""Scans: of every element along an axis and all before it the sum or the product.

bool and signed integers give int64, unsigned ones uint64, and wrap; floats keep their dtype. Sums
of float16 and bfloat16 are made in float32, all others of floats in float64.
"""

from ..array import Array, Tracked
from ..dispatch import WAYS, apply
from ..dtypes import parse_dtype
from ..operations import OPERATIONS, Operation, result_dtype
from . import short_counts, short_numpy
from .arguments import Operands, check_shape, parse_axis
from .casting import active
from .layout import astype, ravel
from .short_calls import short

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]


@short(short_counts.cumulative_sum)
def cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False, device=None):
    """Return the sums of the elements along an axis up to each.

    axis: None for the only one. dtype: of the elements before they are added and of the result.
    include_initial: begin with a 0, so that the result is one longer. ValueError: no axis of
    several is named. AxisError: no such axis.

    >>> vg.cumulative_sum(vg.asarray([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _cumulative(
        "cumulative_sum", Operation.SUM, x, axis, dtype, out, include_initial, device
    )


@short(short_counts.cumulative_prod)
def cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False, device=None):
    """Return the products of the elements along an axis up to each.

    include_initial: begin with a 1; all else is as in cumulative_sum.

    >>> vg.cumulative_prod(vg.asarray([2, 3, 4]), include_initial=True).tolist()
    [1, 2, 6, 24]
    """
    return _cumulative(
        "cumulative_prod", Operation.PROD, x, axis, dtype, out, include_initial, device
    )


@short(short_numpy.cumsum)
def cumsum(x, /, axis=None, dtype=None, out=None, *, device=None):
    """Return the sums of the elements along an axis up to each; None: of all in C order.

    dtype: of the elements before they are added and of the result. AxisError: no such axis.

    >>> vg.cumsum(vg.asarray([[1, 2], [3, 4]])).tolist()
    [1, 3, 6, 10]
    >>> vg.cumsum(vg.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2], [4, 6]]
    """
    return _flattening("cumsum", Operation.SUM, x, axis, dtype, out, device)


@short(short_numpy.cumprod)
def cumprod(x, /, axis=None, dtype=None, out=None, *, device=None):
    """Return the products of the elements along an axis up to each; see cumsum.

    >>> vg.cumprod(vg.asarray([1, 2, 3, 4])).tolist()
    [1, 2, 6, 24]
    """
    return _flattening("cumprod", Operation.PROD, x, axis, dtype, out, device)


def _cumulative(name, code, x, axis, dtype, out, initial, device):
    is_array = type(x) is Array or type(x) is Tracked
    is_plain = axis is not None and dtype is None and out is None and device is None and not initial
    if is_array and is_plain and not active and x.shape:  # as most calls are
        axis = parse_axis(axis, len(x.shape))
        return WAYS["scan"](x.backend, code, x, axis, False, None)
    call = Operands(name, (x,), out, device)
    array = call.arrays[0]
    if axis is None and array.ndim > 1:
        raise ValueError(f"{name}: an array of shape {array.shape} needs an axis")
    return _scan(call, code, array, axis, dtype, bool(initial))


def _flattening(name, code, x, axis, dtype, out, device):
    call = Operands(name, (x,), out, device)
    array = call.arrays[0]
    return _scan(call, code, ravel(array) if axis is None else array, axis, dtype, False)


def _scan(call, code, array, axis, dtype, initial):
    """Return a scan of an Array; one without axes counts as one with a single element."""
    if array.ndim == 0:
        array = ravel(array)
    axis = 0 if axis is None else parse_axis(axis, array.ndim)
    row = OPERATIONS[code]
    given = result_dtype(row, array.dtype)
    dtype = given if dtype is None else parse_dtype(dtype)
    longer = (*array.shape[:axis], array.shape[axis] + initial, *array.shape[axis + 1 :])
    check_shape(longer, dtype.itemsize)
    if dtype != given:
        array = astype(array, dtype, copy=False)
    if result_dtype(row, dtype) == dtype:
        return call.apply("scan", code, array, axis, initial)
    return call.apply("cast", apply(call.backend, "scan", code, array, axis, initial, None), dtype)
