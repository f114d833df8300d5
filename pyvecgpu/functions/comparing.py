"""Whether arrays are equal, or nearly so: of all elements a Python bool, which waits for them."""

import math

import numpy as np

from ..array import Array
from ..dispatch import apply
from ..dtypes import complex_dtype, is_complex, is_float
from . import short_cards, short_cpu
from .arguments import Operands, is_scalar, parse_scalar, promote_all, strong
from .elementwise import abs, bitwise_and, bitwise_or, equal, less, less_equal
from .layout import astype
from .reductions import min as smallest
from .values import item
from .working import is_nan, work_dtype

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


def isclose(x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=False, *, device=None):
    """Return where |x1 - x2| <= atol + rtol * |x2|, as bool; infinities are close to themselves.

    equal_nan: NaN is close to NaN. Halves are compared in float32, integers in float64. rtol, atol:
    scalars.

    >>> vg.isclose(vg.asarray([1.0, 1.1]), vg.asarray([1.0 + 1e-6, 1.0])).tolist()
    [True, False]
    """
    return _close("isclose", x1, x2, rtol, atol, equal_nan, device)[1]


def allclose(x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=False, *, device=None):
    """Return whether all elements are close, a Python bool; see isclose.

    >>> vg.allclose(vg.asarray([1.0, 2.0]), vg.asarray([1.0, 2.0 + 1e-6]))
    True
    """
    if device is None:
        result = short_cpu.all_close(x1, x2, rtol, atol, equal_nan)
        if result is not None:
            return result
    return _all(_close("allclose", x1, x2, rtol, atol, equal_nan, device)[0])


def _close(name, x1, x2, rtol, atol, equal_nan, device):
    """Return where elements are close, as an Array and as what the caller gets."""
    rtol, atol = (float(parse_scalar(x, "a tolerance")) for x in (rtol, atol))
    call = Operands(name, (x1, x2), None, device)
    arrays = [x for x in call.arrays if not is_scalar(x)]
    dtype = promote_all(arrays)
    if not is_float(dtype) or len(arrays) == 1:  # two halves are computed in float32 anyway
        dtype = work_dtype(dtype)
    for x in call.arrays:
        dtype = complex_dtype(dtype) if isinstance(x, complex) else dtype
    a, b = (
        strong(x * 1.0, call.backend, dtype) if is_scalar(x) else astype(x, dtype, copy=False)
        for x in call.arrays
    )
    if not is_complex(dtype):
        result = apply(call.backend, "isclose", a, b, rtol, atol, bool(equal_nan))
        return result, call.give(result)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities, on the CPU
        near = less_equal(abs(a - b), abs(b) * rtol + atol)
    finite = less(abs(b), math.inf)
    result = bitwise_or(bitwise_and(near, finite), equal(a, b))
    if equal_nan:
        result = bitwise_or(result, bitwise_and(is_nan(a), is_nan(b)))
    return result, call.give(result)


def array_equal(x1, x2, /, equal_nan=False, *, device=None):
    """Return whether two arrays have the same shape and elements, a Python bool.

    equal_nan: NaN is equal to NaN. Dtypes may differ.

    >>> vg.array_equal(vg.asarray([1, 2]), vg.asarray([1.0, 2.0]))
    True
    >>> vg.array_equal(vg.asarray([1, 1]), vg.asarray([1]))
    False
    """
    if device is None:
        result = short_cards.all_equal(x1, x2, equal_nan)
        if result is None and not equal_nan:
            result = short_cpu.all_equal(x1, x2)
        if result is not None:
            return result
    call = Operands("array_equal", (x1, x2), None, device)
    shapes = {() if is_scalar(x) else x.shape for x in call.arrays}
    return len(shapes) == 1 and _all(_equal(call.arrays, equal_nan))


def array_equiv(x1, x2, /, *, device=None):
    """Return whether two arrays, broadcast together, have the same elements, a Python bool.

    >>> vg.array_equiv(vg.asarray([1, 1]), vg.asarray([1]))
    True
    """
    if type(x1) is type(x2) is Array and device is None and x1.shape == x2.shape:
        result = short_cpu.all_equal(x1, x2)
        if result is not None:
            return result
    call = Operands("array_equiv", (x1, x2), None, device)
    try:
        np.broadcast_shapes(*(() if is_scalar(x) else x.shape for x in call.arrays))
    except ValueError:
        return False
    return _all(_equal(call.arrays, False))


def _equal(operands, equal_nan):
    a, b = operands
    result = equal(a, b)
    if equal_nan:  # of a scalar, too
        result = bitwise_or(result, bitwise_and(_is_nan(a), _is_nan(b)))
    return result


def _is_nan(operand):
    return operand != operand if is_scalar(operand) else is_nan(operand)


def _all(array):
    return array.size == 0 or item(smallest(array))
