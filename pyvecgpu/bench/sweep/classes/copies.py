"""Copies: into other dtypes, out of permuted views, and of one of two arrays."""

import math

import numpy as np

from ..case import DTYPES, ROUNDOFF, Case, Operand, expected_rounded, moved, wide


def cast(draw):
    """A copy in another dtype."""
    old, new = draw.sample(DTYPES, 2)
    operands = [Operand(old, (draw.size(1000, 4 * 10**7),), draw.choice((0, 0, 1)))]
    return Case(
        group="cast",
        text=f"{old} to {new} {operands[0].shape[0]}",
        operands=operands,
        call=lambda vg, x: vg.astype(x, new),
        peer=lambda torch, x: x.to(getattr(torch, new)),
        expected=lambda x: expected_cast(x, new),
        bytes=moved(operands, operands[0].shape, new),
    )


def expected_cast(x, new):
    """Return what a cast gives: floats outside of an integer dtype's range are clamped to it."""
    if new in ROUNDOFF:
        return expected_rounded(x.astype(np.float64), new)
    if x.dtype.kind == "f" and new != "bool":
        limits = np.iinfo(new)
        x = np.clip(np.trunc(wide(x)), limits.min, limits.max)
    return x.astype(new), 0


def permuted(draw):
    """A copy of an array whose axes were permuted, in C order."""
    dtype = draw.choice(("float32", "float32", "float16", "float64", "uint8"))
    ndim = draw.choice((2, 3, 3, 4, 5))
    shape = [draw.size(2, 600) for _ in range(ndim)]
    while math.prod(shape) > min(5 * 10**7, draw.room[dtype]):
        shape[draw.randrange(ndim)] = draw.randint(2, 20)
    axes = list(range(ndim))
    while axes == sorted(axes):
        draw.shuffle(axes)
    operands = [Operand(dtype, tuple(shape), axes=tuple(axes))]
    return Case(
        group=f"permute {ndim}-d {dtype}",
        text=f"{tuple(shape)} {tuple(axes)}",
        operands=operands,
        call=lambda vg, x: x.copy(),
        peer=lambda torch, x: x.clone(memory_format=torch.contiguous_format),
        expected=lambda x: (x, 0),
        bytes=moved(operands, shape, dtype),
    )


def select(draw):
    """Elements of one array or another."""
    size = draw.size(1000, 3 * 10**7)
    values = [Operand("float32", (size,), start) for start in (0, size)]
    operands = [Operand("bool", (size,)), *values]
    return Case(
        group="where",
        text=f"{size}",
        operands=operands,
        call=lambda m, condition, x, y: m.where(condition, x, y),
        peer=lambda m, condition, x, y: m.where(condition, x, y),
        expected=lambda condition, x, y: (np.where(condition, x, y), 0),
        bytes=moved(operands, (size,), "float32"),
    )


CLASSES = {cast: 1, permuted: 3, select: 1}
