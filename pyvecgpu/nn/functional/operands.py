"""Operands of functions of networks, some of which may be None, and the dtype to compute in."""

from ...array import Array, Tracked
from ...dtypes import bfloat16, float16, float32, float64, inexact
from ...functions.arguments import parse_scalar
from ...functions.casting import active
from ...functions.layers import parse_operands
from ...functions.layout import astype
from ...functions.working import work_dtype

_WIDE = {float32, float64}  # of which sums are made as they are
_FLOATS = {*_WIDE, float16, bfloat16}


class _OfArrays:
    """A call of Arrays of one device, whose results are Arrays, too; see arguments.Operands."""

    @staticmethod
    def give(result):
        return result


_OF_ARRAYS = _OfArrays()


def gathered(name, *values, needed=1):
    """Return the call's Operands, and its arrays on one device with None where there was None.

    TypeError: one of the first ones, which are `needed`, is None; any one is no array.
    """
    backend = None
    for i, value in enumerate(values):
        if value is None:
            if i < needed:
                break
            continue
        kind = type(value)
        if kind is not Array and kind is not Tracked:
            break
        if backend is None:
            backend = value.backend
        elif value.backend is not backend:
            break
    else:  # what most calls are
        if not active:
            return _OF_ARRAYS, values
    for value in values[:needed]:
        if value is None:
            raise TypeError(f"{name} takes arrays, not None; make one with asarray(...)")
    call = parse_operands(name, tuple([v for v in values if v is not None]), None, None)
    found = iter(call.arrays)
    return call, [None if v is None else next(found) for v in values]


def wide(array):
    """Return an Array in the float dtype that sums are made in: float32 for halves."""
    if array is None or array.dtype in _WIDE:
        return array
    return astype(array, work_dtype(inexact(array.dtype)), copy=False)


def narrow(array, like):
    """Return an Array in the float dtype that a function of `like` gives."""
    dtype = like.dtype
    if array.dtype is dtype and dtype in _FLOATS:
        return array
    return astype(array, inexact(dtype), copy=False)


def number(value, what, low=None, high=None):
    """Return a scalar as a float. ValueError: it is not within the limits. TypeError: no scalar."""
    value = value if type(value) is float else float(parse_scalar(value, what))
    if not ((low is None or value >= low) and (high is None or value <= high)):
        limits = f"{low} or more" if high is None else f"from {low} to {high}"
        raise ValueError(f"{what} is {limits}, not {value}")
    return value
