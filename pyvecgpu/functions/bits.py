"""Bits of bytes as arrays of 0 and 1, and back."""

import numpy as np

from ..dtypes import uint8
from . import short_counts
from .arguments import Operands, from_host, is_scalar, parse_axis, parse_int
from .choosing import where
from .creation import zeros
from .elementwise import bitwise_and, not_equal
from .indexing import get
from .joining import concat
from .layout import astype, moveaxis, reshape
from .reductions import sum as total
from .short_calls import short

__all__ = ["packbits", "unpackbits"]


@short(short_counts.packbits)
def packbits(a, /, axis=None, bitorder="big", *, device=None):
    """Return bytes, uint8, of eight elements each along an axis: a bit is 1 where one is not 0.

    axis: None takes the elements in a row. bitorder: "big", of which the first element is the
    highest bit, or "little". What is missing of the last byte is 0. TypeError: neither integers nor
    bools. ValueError: another order. AxisError: no such axis.

    >>> vg.packbits(vg.asarray([1, 0, 1, 0, 0, 0, 0, 1, 1])).tolist()
    [161, 128]
    """
    call, array, axis = _rows("packbits", a, axis, device)
    if array.dtype.kind not in "biu":
        raise TypeError(f"packbits takes integers or bools, not {array.dtype}")
    weights = _weights("packbits", bitorder, call.backend)
    array, others = _to_the_end(array, axis)
    count = -(-array.shape[1] // 8)
    missing = 8 * count - array.shape[1]
    bits = not_equal(array, False if array.dtype.kind == "b" else 0)
    if missing:
        bits = concat([bits, zeros((bits.shape[0], missing), bool, device=bits.device)], axis=1)
    bits = reshape(bits, (bits.shape[0], count, 8))
    result = total(where(bits, weights, 0), axis=2, dtype=uint8)
    return call.give(_back(result, others, axis))


@short(short_counts.unpackbits)
def unpackbits(a, /, axis=None, count=None, bitorder="big", *, device=None):
    """Return the bits of bytes along an axis, uint8: eight times as many elements of 0 and 1.

    axis, bitorder: see packbits. count: how many elements there shall be, cut off or filled up with
    0; below 0, how many are cut off at the end. TypeError: not uint8. ValueError: another order, or
    more to be cut off than there are.

    >>> vg.unpackbits(vg.asarray([161], dtype="uint8")).tolist()
    [1, 0, 1, 0, 0, 0, 0, 1]
    """
    call, array, axis = _rows("unpackbits", a, axis, device)
    if array.dtype != uint8:
        raise TypeError(f"unpackbits takes uint8, not {array.dtype}")
    weights = _weights("unpackbits", bitorder, call.backend)
    array, others = _to_the_end(array, axis)
    n = 8 * array.shape[1]
    wanted = n if count is None else parse_int(count, "count")
    wanted = wanted + n if wanted < 0 else wanted
    if wanted < 0:
        raise ValueError(f"unpackbits: count {count} cuts off more than {n} elements")
    bits = bitwise_and(reshape(array, (*array.shape, 1)), weights)
    bits = reshape(astype(not_equal(bits, 0), uint8), (array.shape[0], n))
    if wanted > n:
        rest = zeros((bits.shape[0], wanted - n), uint8, device=bits.device)
        bits = concat([bits, rest], axis=1)
    elif wanted < n:
        bits = get(bits, (slice(None), slice(0, wanted)))
    return call.give(_back(bits, others, axis))


def _rows(name, a, axis, device):
    """Return the Operands, the Array, and which of its axes; of None, a row of all elements."""
    call = Operands(name, (a,), None, device)
    (array,) = call.arrays
    if is_scalar(array):
        raise TypeError(f"{name} takes arrays, not a scalar")
    if axis is None or array.ndim == 0:
        return call, reshape(array, (array.size,)), 0
    return call, array, parse_axis(axis, array.ndim)


def _weights(name, bitorder, backend):
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder is 'big' or 'little', not {bitorder!r}")
    powers = 1 << np.arange(8, dtype=np.uint8)
    return from_host(powers[::-1].copy() if bitorder == "big" else powers, backend)


def _to_the_end(array, axis):
    """Return the elements as rows along an axis, and the lengths of the other axes."""
    moved = moveaxis(array, axis, -1)
    others = moved.shape[:-1]
    rows = 1
    for n in others:
        rows *= n
    return reshape(moved, (rows, moved.shape[-1])), others


def _back(rows, others, axis):
    return moveaxis(reshape(rows, (*others, rows.shape[-1])), -1, axis)
