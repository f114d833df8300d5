"""What NumPy's functions of two operands have besides a call: reduce, accumulate, outer, reduceat.

They are attributes of the functions here as well: `vg.maximum.reduce(x)`, `vg.add.outer(x, y)`.
What has a reduction of its own takes that (of add, sum). Of others halves are combined with each
other until one element is left, and running values come from those before in log2(n) steps: of
operations for which the order makes no difference but in the rounding of floats.
"""

import math

import numpy as np

from ..array import Array
from ..dtype_queries import can_cast
from . import arithmetic, combined, elementwise, mathematics, neighbours, reductions, scans, special
from .arguments import from_host, is_scalar, parse_axes, parse_axis
from .choosing import where as chosen
from .creation import full_like, zeros
from .elementwise import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
)
from .gathering import take
from .indexing import get
from .joining import concat
from .layout import as_array, astype, broadcast_to, expand_dims, moveaxis, reshape
from .values import copied, to_host

__all__ = []

_PAIRS = {
    arithmetic: "float_power fmod gcd lcm logaddexp2",
    combined: "fmax fmin heaviside",
    elementwise: """add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
        divide equal greater greater_equal less less_equal logical_and logical_or logical_xor
        maximum minimum multiply not_equal subtract""",
    mathematics: "atan2 copysign floor_divide hypot logaddexp pow remainder",
    neighbours: "nextafter",
    special: "ldexp",
}
# The function: its reduction.
_REDUCTIONS = {
    add: reductions.sum,
    logical_and: reductions.all,
    logical_or: reductions.any,
    maximum: reductions.max,
    minimum: reductions.min,
    multiply: reductions.prod,
}
_SCANS = {add: scans.cumulative_sum, multiply: scans.cumulative_prod}
_FOLDED = (
    *(arithmetic.gcd, arithmetic.lcm, arithmetic.logaddexp2, bitwise_and, bitwise_or, bitwise_xor),
    *(combined.fmax, combined.fmin, logical_xor, mathematics.hypot, mathematics.logaddexp),
)
_AT_ONCE = 65536  # elements that reduceat picks at least at once
_CHOICES = {maximum, minimum, combined.fmax, combined.fmin}  # which round nothing
# What NumPy's reductions begin with.
_NEUTRAL = {bitwise_or: 0, bitwise_xor: 0, logical_xor: False, arithmetic.gcd: 0}
_NEUTRAL |= {mathematics.hypot: 0, mathematics.logaddexp: -math.inf}
_NEUTRAL |= {arithmetic.logaddexp2: -math.inf}


def _bind(function):
    """Give a function of two operands NumPy's methods."""
    name = function.__name__
    function.outer = lambda x1, x2, /, **options: _outer(name, function, x1, x2, options)
    own = _REDUCTIONS.get(function)
    if own is not None:
        function.reduce = _with_axis(function, own)
    elif function in _FOLDED:
        function.reduce = _folding(name, function)
    else:
        return
    scan = _SCANS.get(function)
    if scan is not None:
        function.accumulate = lambda x, /, axis=0, dtype=None, out=None: scan(
            x, axis=axis, dtype=dtype, out=out
        )
    else:
        function.accumulate = lambda x, /, axis=0, dtype=None, out=None: _given(
            name, x, dtype, out, lambda array: _running(function, array, axis)
        )
    function.reduceat = lambda x, indices, /, axis=0, dtype=None, out=None: _given(
        name, x, dtype, out, lambda array: _stretches(function, array, indices, axis, dtype)
    )


def _with_axis(function, own):
    """A reduction along the first axis, if none is named."""

    def reduce(x, /, axis=0, dtype=None, out=None, keepdims=False, **options):
        if dtype is not None and own in (reductions.sum, reductions.prod):
            options["dtype"] = dtype
        elif dtype is not None:
            x = astype(x, dtype)
        if own in (reductions.all, reductions.any) and "initial" in options:
            initial = bool(options.pop("initial"))
            return function(own(x, axis=axis, keepdims=keepdims, **options), initial, out=out)
        return own(x, axis=axis, out=out, keepdims=keepdims, **options)

    return reduce


def _folding(name, function):
    """A reduction of what has none of its own, with the parameters of NumPy's."""

    def reduce(x, /, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True):
        if isinstance(initial, np.generic):
            initial = initial.item()
        if initial is not None and not is_scalar(initial):
            kind = type(initial).__name__
            raise TypeError(f"{name}.reduce: initial is a number, not {kind}")

        def compute(array):
            array = _in_result(function, array)
            neutral = _neutral(function, array.dtype, initial)
            if where is not True:
                if neutral is None:
                    raise ValueError(f"{name}: with where there may be none; give initial, too")
                array = chosen(_mask(name, where, array), array, neutral)
            result = _folded(name, function, array, axis, keepdims, neutral)
            return result if initial is None else function(result, full_like(result, initial))

        return _given(name, x, dtype, out, compute)

    return reduce


def _neutral(function, dtype, initial):
    """What changes no element; else `initial`, if any: f(x, x) is x of what has no such."""
    if function is bitwise_and and dtype.kind in "iu":
        return -1 if dtype.kind == "i" else np.iinfo(dtype).max
    neutral = True if function is bitwise_and else _NEUTRAL.get(function, initial)
    return bool(neutral) if dtype.kind == "b" and neutral is not None else neutral


def _mask(name, where, array):
    """Return `where` as an Array beside another one. TypeError: it is not of bools."""
    mask = where if isinstance(where, Array) else np.asarray(where)
    if mask.dtype.kind != "b":
        raise TypeError(f"{name}.reduce: where is True or an array of bools, not of {mask.dtype}")
    mask = mask if isinstance(mask, Array) else from_host(mask, array.backend)
    return broadcast_to(mask, array.shape)


def _outer(name, function, x1, x2, options):
    """Return function(x1[i, ...], x2[j, ...]) for all places of both."""
    array, give = as_array(name, x1)
    other = x2.ndim if hasattr(x2, "ndim") else as_array(name, x2)[0].ndim
    return function(give(reshape(array, array.shape + (1,) * other)), x2, **options)


def _given(name, x, dtype, out, compute):
    """Return compute(x as an Array of a dtype) to the caller, or in `out`."""
    array, give = as_array(name, x)
    result = compute(array if dtype is None else astype(array, dtype, copy=False))
    if out is None:
        return give(result)
    if not isinstance(out, Array if isinstance(x, Array) else (Array, np.ndarray)):
        raise TypeError(f"{name}: out is an Array or None, not {type(out).__name__}")
    if out.shape != result.shape:
        raise ValueError(f"{name}: out is an Array of shape {result.shape}, not of {out.shape}")
    if not can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(f"{name}: {result.dtype} is no same_kind cast to {out.dtype}, that of out")
    out[...] = result if isinstance(out, Array) else give(result)
    return out


def _in_result(function, array):
    """Return an array in the dtype that the function's results have."""
    nothing = get(reshape(array, (array.size,)), slice(0, 0))
    return astype(array, function(nothing, nothing).dtype, copy=False)


def _folded(name, function, array, axis, keepdims, neutral):
    """Combine all elements along axes, two halves at a time, and `neutral` with one alone."""
    axes = parse_axes(axis, array.ndim)
    shape = array.shape
    for one in sorted(range(array.ndim) if axes is None else axes, reverse=True):
        array = moveaxis(array, one, 0)
        if array.shape[0] < 2 and neutral is not None:  # as NumPy begins with it: |x| of hypot
            first = zeros((1, *array.shape[1:]), array.dtype, device=array.device)
            first = full_like(first, neutral)
            array = function(first, array) if array.shape[0] else first
        if not array.shape[0]:
            raise ValueError(f"{name}.reduce: there is nothing along an axis")
        while array.shape[0] > 1:
            n = array.shape[0]
            halves = function(get(array, slice(0, n // 2)), get(array, slice(n - n // 2, n)))
            middle = get(array, slice(n // 2, n - n // 2))
            array = concat([halves, middle]) if n % 2 else halves
        array = get(array, 0)
    if keepdims:
        kept = [1 if axes is None or i in axes else n for i, n in enumerate(shape)]
        array = reshape(array, tuple(kept))
    return copied(array)  # which is a view of the operand where nothing was combined


def _running(function, array, axis):
    """Combine each element along an axis with all before it."""
    axis = parse_axis(axis, array.ndim)
    if type(array) is Array and array.device.type == "cpu":
        there = _in_result(function, array)
        if there.dtype.char in "fd" * (function in _CHOICES) or there.dtype.kind in "bui":
            ufunc = getattr(np, function.__name__)
            return from_host(ufunc.accumulate(to_host(there), axis), array.backend)
    array, step = moveaxis(_in_result(function, copied(array)), axis, 0), 1
    while step < array.shape[0]:
        later = function(get(array, slice(0, -step)), get(array, slice(step, None)))
        array, step = concat([get(array, slice(0, step)), later]), 2 * step
    return copied(moveaxis(array, 0, axis))


def _stretches(function, array, indices, axis, dtype):
    """Combine the elements from each index to the next one; where that is no larger, take one.

    Stretches of one length are rows of one reduction: there are at most 2 * sqrt(n) lengths.
    """
    axis = parse_axis(axis, array.ndim)
    array = moveaxis(array, axis, 0)
    n = array.shape[0]
    starts = _places(indices)
    wrong = starts[(starts < 0) | (starts >= n)]
    if wrong.size:
        raise IndexError(f"index {wrong[0]} out-of-bounds in {function.__name__}.reduceat [0, {n})")
    options = {} if dtype is None else {"dtype": dtype}
    if not starts.size:
        one = zeros((1, *array.shape[1:]), array.dtype, device=array.device)
        nothing = get(expand_dims(function.reduce(one, **options), 0), slice(0, 0))
        return copied(moveaxis(nothing, 0, axis))
    lengths = np.maximum(np.append(starts[1:], n) - starts, 1)
    order = np.argsort(lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(lengths[order])) + 1
    parts = []
    for rows in np.split(order, cuts):
        length = int(lengths[rows[0]])
        at_once = max(1, max(n, _AT_ONCE) // length)  # stretches may lie above each other
        for first in range(0, rows.size, at_once):
            some = starts[rows[first : first + at_once]]
            if some.size == 1:
                part = expand_dims(get(array, slice(int(some[0]), int(some[0]) + length)), 0)
            else:
                part = take(array, some[:, None] + np.arange(length), axis=0)
            if length == 1 and function in _FOLDED:  # as they are: |x| of hypot is not asked for
                parts.append(_in_result(function, get(part, (slice(None), 0))))
            else:
                parts.append(function.reduce(part, axis=1, **options))
    result = concat(parts) if len(parts) > 1 else parts[0]
    if len(parts) > 1:
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        result = take(result, back, axis=0)
    return copied(moveaxis(result, 0, axis))


def _places(indices):
    """Return the indices of reduceat as int64. TypeError: they are no integers in a row."""
    values = np.asarray(indices.numpy() if isinstance(indices, Array) else indices)
    if not values.size:
        values = values.astype(np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise TypeError("indices of reduceat are integers in a row")
    return values.astype(np.int64)


for _module, _names in _PAIRS.items():
    for _name in _names.split():
        _bind(getattr(_module, _name))
