"""Dtypes that composed functions compute in, where rounding every step would lose too much."""

from ..dtypes import float32, float64, inexact, is_complex, is_float, is_half
from ..short_views import part_along
from .arguments import parse_axis
from .elementwise import not_equal
from .indexing import get
from .layout import astype


def work_dtype(dtype):
    """Return the float dtype to compute in: float32 for halves, float64 for integers and bools.

    Complex dtypes stay.
    """
    if is_complex(dtype):
        return dtype
    if not is_float(dtype):
        return float64
    return float32 if is_half(dtype) else dtype


def working(array, dtype=None):
    """Return an Array in the dtype to compute in, and the dtype that the result shall have.

    dtype: of the result, where it is not that of a float function of the array.
    """
    result = inexact(array.dtype) if dtype is None else dtype
    return astype(array, work_dtype(array.dtype), copy=False), result


def is_nan(array):
    """Return where an Array is NaN, as bools."""
    return not_equal(array, array)


def can_be_nan(array):
    """Whether an Array's dtype has NaN."""
    return is_float(array.dtype) or is_complex(array.dtype)


def along(array, axis, key):
    """Return the view of an Array by one index or slice along an axis."""
    if type(key) is slice and key.step is None:
        result = part_along(array, axis, key.start, key.stop)
        if result is not None:
            return result
    return get(array, (*[slice(None)] * axis, key))


def axis_of(name, array, axis):
    """Return an axis counted from 0. ValueError: the array has none. AxisError: no such axis."""
    ndim = array.ndim
    if not ndim:
        raise ValueError(f"{name} takes arrays of one or more dimensions")
    return parse_axis(axis, ndim)
