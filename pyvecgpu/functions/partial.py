"""Reductions of those elements for which `where` is true, and with an `initial` value beside them.

What does not count is replaced by what changes nothing: 0 in a sum, 1 in a product, and where the
largest or smallest element is wanted by `initial`, which has to be given then. All is composed of
other operations, so that gradients come by themselves.
"""

import math

import numpy as np

from ..dispatch import apply, is_tracked, whole
from ..dtypes import is_complex, is_float, parse_dtype, promote, promote_scalar, real_dtype
from ..operations import OPERATIONS, codes
from . import elementwise
from .arguments import Operands, is_scalar, listed, parse_axes, parse_scalar
from .choosing import where
from .layout import astype, broadcast_shapes, broadcast_to, transfer
from .working import working

_LEFT_OUT = {codes.SUM: 0, codes.PROD: 1, codes.ANY: False, codes.ALL: True}
_BESIDE = {
    codes.SUM: elementwise.add,
    codes.PROD: elementwise.multiply,
    codes.MAX: elementwise.maximum,
    codes.MIN: elementwise.minimum,
}


class _Part:
    """An array and a mask of its shape, or None, on one device; `give` returns to the caller."""

    def __init__(self, name, x, axis, where, out, device, more=()):
        if isinstance(where, np.bool_) and where:
            where = True
        if not is_scalar(where):
            self.call = Operands(name, (x, where, *more), out, device)
            self.array, self.mask, *self.more = self.call.arrays
            self._open()
            if self.mask.dtype.kind != "b":
                raise TypeError(f"{name}: where is a mask of bools, not of {self.mask.dtype}")
            self.mask = broadcast_to(self.mask, self.array.shape)
        elif where is True:
            self.call = Operands(name, (x, *more), out, device)
            self.array, *self.more = self.call.arrays
            self._open()
            self.mask = None
        else:
            raise TypeError(f"{name}: where is True or an array of bools, not {where!r}")
        self.axes = parse_axes(axis, self.array.ndim)
        axes = range(self.array.ndim) if self.axes is None else self.axes
        self.length = math.prod([self.array.shape[i] for i in axes])  # of what one result is of

    def _open(self):
        """Make an Array of a number that was given."""
        if is_scalar(self.array):
            self.array = listed(self.array, self.call.backend, self.call.host)

    def filled(self, array, value):
        """The array with a value where the mask is false."""
        return array if self.mask is None else where(self.mask, array, value)

    def reduce(self, code, array, keepdims):
        return apply(self.call.backend, "reduce", code, array, self.axes, bool(keepdims), None)

    def counted(self, keepdims):
        """How many elements each result is of."""
        if self.mask is None:
            return self.length
        return self.reduce(codes.SUM, self.mask, keepdims)

    def give(self, result, dtype=None):
        return self.call.deliver_array(
            result if dtype is None else astype(result, dtype, copy=False)
        )


def reduced(code, x, axis, dtype, keepdims, out, initial, where, device):
    """Return operation `code` of the elements that count. ValueError: where without initial."""
    name = OPERATIONS[code].name
    part = _Part(name, x, axis, where, out, device)
    dtype = None if dtype is None else parse_dtype(dtype)
    array = part.array if dtype is None else astype(part.array, dtype, copy=False)
    if initial is not None:
        initial = _beside(initial, array)
        if array.dtype.kind == "b" and code not in _LEFT_OUT:
            initial = bool(initial)
    elif code not in _LEFT_OUT and part.mask is not None:
        raise ValueError(f"{name}: with where there may be no element; give initial, too")
    array = part.filled(array, _LEFT_OUT.get(code, initial))
    if initial is not None and code not in _LEFT_OUT and not part.length:
        zeros = astype(part.reduce(codes.SUM, array, keepdims), array.dtype)
        return part.give(elementwise.add(zeros, initial), dtype)
    result = part.reduce(code, array, keepdims)
    if initial is not None:
        result = _BESIDE[code](result, initial)
    return part.give(result, dtype)


def _beside(initial, array):
    """Return a number; one that is tracked as an Array of the dtype that it has beside an array."""
    if not (is_tracked(initial) and initial.ndim == 0):
        return parse_scalar(initial, "initial", complexes=True)
    dtype = promote_scalar(array.dtype, 1j if is_complex(initial.dtype) else 1.0)
    return astype(transfer(initial, array.device), dtype, copy=False)


def mean(x, axis, dtype, keepdims, out, where, device):
    """Return the mean of the elements that count; NaN of none."""
    part = _Part("mean", x, axis, where, out, device)
    array, dtype = _working(part.array, dtype)
    return part.give(_mean(part, array, keepdims), dtype)


def variance(name, x, axis, dtype, ddof, keepdims, out, where, device, mean=None):
    """Return the variance of the elements that count, or its root for "std", see statistics.py."""
    part = _Part(name, x, axis, where, out, device, () if mean is None else (mean,))
    array, dtype = _working(part.array, dtype)
    if mean is None:
        mean = _mean(part, array, True)
    else:
        mean, dtype = about(part.more[0], array, dtype)
    distance = part.filled(elementwise.subtract(array, mean), 0)
    distance = elementwise.abs(distance) if is_complex(distance.dtype) else distance
    squares = part.reduce(codes.SUM, elementwise.square(distance), keepdims)
    count = part.counted(keepdims)
    count = max(count - ddof, 0) if is_scalar(count) else elementwise.maximum(count - ddof, 0)
    result = elementwise.divide(squares, count)
    return part.give(root(result) if name == "std" else result, real_dtype(dtype))


def root(squares):
    """Return the root of a sum of squares, whose gradient is 0 where it is 0."""
    named = {"x": squares, "degree": 2.0}
    return whole("length", named, lambda: elementwise.sqrt(squares))


def about(mean, array, dtype):
    """Return a mean that a caller knows as an operand, and the dtype of a result by `dtype`.

    ValueError: it does not fit an array.
    """
    if is_scalar(mean):
        return mean, dtype
    if broadcast_shapes(mean.shape, array.shape) != array.shape:
        raise ValueError(f"a mean of shape {mean.shape} for an array of {array.shape}")
    if is_float(mean.dtype) or is_complex(mean.dtype):
        dtype = promote(dtype, mean.dtype)
    return astype(mean, promote(array.dtype, mean.dtype), copy=False), dtype


def _working(array, dtype):
    """Return the array in the dtype to compute in, and that of the result."""
    if dtype is None:
        return working(array)
    dtype = parse_dtype(dtype)
    return working(astype(array, dtype, copy=False), dtype)


def _mean(part, array, keepdims):
    sums = part.reduce(codes.SUM, part.filled(array, 0), keepdims)
    return elementwise.divide(sums, part.counted(keepdims))
