"""Operations that only move memory: elementwise, sums, layout copies; in bytes a second.

Counted is what must move: an element that is read or written counts once, even if it is read
again from a cache.
"""

import numpy as np

from .goals import Ratio
from .timing import Row

F32 = np.float32
# float32 elements of vectors, and the side of square matrices
SIZES = {
    "full": ((2**20, 2**24, 2**28), 8192),
    "cpu": ((2**16, 2**20, 2**22), 2048),
    "quick": ((2**10, 2**14), 64),
}
GOALS = [
    Ratio("add, 2^28", "torch", 0.97),
    Ratio("sum, 2^28", "cupy", 0.95),
    Ratio("transposed copy, 8192x8192", "torch", 2.5),
]


def rows(size):
    """Return the rows for a key of SIZES."""
    lengths, side = SIZES[size]
    names = [f"2^{length.bit_length() - 1}" for length in lengths]
    table = [add(length, name) for length, name in zip(lengths, names, strict=True)]
    table.append(sigmoid(lengths[-1], names[-1]))
    table += [total(length, name) for length, name in zip(lengths, names, strict=True)]
    table += [axis_sum(side, 0), axis_sum(side, 1), add_row(side)]
    table += [transposed_copy(side, side), transposed_copy(side - 1, side + 1)]
    table.append(strided_copy(lengths[-1], names[-1]))
    return table


def same(function, *names):
    """Return the calls of a row that all named libraries write in the same way."""
    return dict.fromkeys(names or ("pyvecgpu", "torch", "cupy"), function)


def add(length, name):
    return Row(
        name=f"add, {name}",
        work=12 * length,
        unit="B/s",
        operands=[((length,), F32)] * 2,
        out=((length,), F32),
        calls=same(lambda m, a, b, out: m.add(a, b, out=out)),
        expected=lambda a, b: np.add(a, b, dtype=np.float64),
        error_allowed=1e-7,
    )


def sigmoid(length, name):
    return Row(
        name=f"sigmoid, {name}",
        work=8 * length,
        unit="B/s",
        operands=[((length,), F32)],
        out=((length,), F32),
        calls=same(lambda m, a, out: m.sigmoid(a, out=out), "pyvecgpu", "torch"),
        expected=lambda a: 1 / (1 + np.exp(-a.astype(np.float64))),
        error_allowed=3e-7,
    )


def total(length, name):
    return Row(
        name=f"sum, {name}",
        work=4 * length,
        unit="B/s",
        operands=[((length,), F32)],
        out=None,
        calls=same(lambda m, a: m.sum(a)),
        expected=lambda a: a.sum(dtype=np.float64),
        # Of random signs the sum is nearly nothing: the error is relative to the sum of |a|.
        magnitude=lambda a: np.abs(a).sum(dtype=np.float64),
        error_allowed=1e-8,
    )


def axis_sum(side, axis):
    return Row(
        name=f"sum over axis {axis}, {side}x{side}",
        work=4 * side * side,
        unit="B/s",
        operands=[((side, side), F32)],
        out=None,
        calls=same(lambda m, a: m.sum(a, axis=axis)),
        expected=lambda a: a.sum(axis=axis, dtype=np.float64),
        magnitude=lambda a: np.abs(a).sum(axis=axis, dtype=np.float64),
        error_allowed=1e-7,
    )


def add_row(side):
    return Row(
        name=f"add a row, {side}x{side}",
        work=8 * side * side,
        unit="B/s",
        operands=[((side, side), F32), ((side,), F32)],
        out=((side, side), F32),
        calls=same(lambda m, a, row, out: m.add(a, row, out=out)),
        expected=lambda a, row: np.add(a, row, dtype=np.float64),
        error_allowed=1e-7,
    )


def transposed_copy(height, width):
    return Row(
        name=f"transposed copy, {height}x{width}",
        work=8 * height * width,
        unit="B/s",
        operands=[((height, width), F32)],
        out=None,
        calls={
            "pyvecgpu": lambda vg, a: vg.permute_dims(a, (1, 0)).copy(),
            "torch": lambda torch, a: a.t().contiguous(),
            "cupy": lambda cupy, a: cupy.ascontiguousarray(a.T),
        },
        expected=lambda a: a.T,
        error_allowed=0.0,
    )


def strided_copy(length, name):
    return Row(
        name=f"copy of every second element, {name}",
        work=(4 + 2) * length,
        unit="B/s",
        operands=[((length,), F32)],
        out=None,
        calls={
            "pyvecgpu": lambda vg, a: a[::2].copy(),
            "torch": lambda torch, a: a[::2].contiguous(),
            "cupy": lambda cupy, a: cupy.ascontiguousarray(a[::2]),
        },
        expected=lambda a: a[::2],
        error_allowed=0.0,
        note="memory is read in whole sectors, so the elements left out count as read",
    )
