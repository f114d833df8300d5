"""Sorting, and what is done by it: indices, the largest, unique elements, places in sorted ones."""

import math

import numpy as np

from ..case import NUMBERS, Case, Made, Operand, moved
from .layouts import of_one
from .statistics import AXES

SIZES = (1000, 10**7)


def drawn(draw):
    """Return an operand, the axis to sort along, and the kind of the two."""
    dtype, kind = draw.choice(("float32", "float32", *NUMBERS)), draw.choice(("one", *AXES))
    shape, axis = AXES[kind](draw, draw.size(*SIZES))
    return Operand(dtype, shape), axis, "one" if kind == "one" else "axis"


def order(x, axis, descending):
    """Return what puts NumPy's elements in order, of equal ones the first one first."""
    keys = x.astype(np.float64) if descending else x
    return np.argsort(-keys if descending else keys, axis=axis, kind="stable")


def sort(draw):
    """The elements in order along an axis, or the indices that put them so."""
    operand, axis, kind = drawn(draw)
    descending, is_order = draw.random() < 0.3, draw.random() < 0.5

    def expected(x):
        indices = order(x, axis, descending)
        return indices if is_order else np.take_along_axis(x, indices, axis), 0

    options = {"descending": descending, "stable": True}
    return Case(
        group=f"sort indices {kind}" if is_order else f"sort {kind}",
        text=f"{operand.dtype} {operand.shape} axis {axis}{' descending' if descending else ''}",
        operands=[operand],
        call=lambda vg, x: (vg.argsort if is_order else vg.sort)(x, axis=axis, **options),
        peer=(lambda torch, x: torch.argsort(x, dim=axis, **options))
        if is_order
        else (lambda torch, x: torch.sort(x, dim=axis, **options)[0]),
        expected=expected,
        bytes=moved([operand], operand.shape, "int64" if is_order else operand.dtype),
    )


def top_k(draw):
    """The largest elements along an axis, and their indices."""
    operand, axis, _ = drawn(draw)
    length = operand.shape[axis]
    k = min(length, draw.choice((1, 5, 50, 500)))
    result = list(operand.shape)
    result[axis] = k

    def expected(x):
        indices = np.take(order(x, axis, True), range(k), axis)
        return (np.take_along_axis(x, indices, axis), indices), (0, 0)

    return Case(
        group="sort top k",
        text=f"{k} of {operand.dtype} {operand.shape} axis {axis}",
        operands=[operand],
        call=lambda vg, x: vg.top_k(x, k, axis=axis),
        peer=lambda torch, x: torch.topk(x, k, dim=axis),
        expected=expected,
        bytes=moved([operand], result, operand.dtype) + 8 * math.prod(result),
    )


def unique(draw):
    """The different elements of an array, in order; the call waits for their number."""
    layout, operand = of_one(draw, draw.choice(("float32", "int64", *NUMBERS)), draw.size(*SIZES))
    few = 100 if "int" in operand.dtype else math.prod(operand.shape)
    return Case(
        group="sort unique",
        text=f"{layout} {operand.dtype} {operand.view_shape()}",
        operands=[operand],
        call=lambda vg, x: vg.unique_values(x),
        peer=lambda torch, x: torch.unique(x),
        expected=lambda x: (np.unique(x), 0),
        bytes=moved([operand], (few,), operand.dtype),
    )


def searchsorted(draw):
    """The places of many numbers among sorted ones."""
    dtype, side = draw.choice(("float32", "float64", "int32")), draw.choice(("left", "right"))
    among, count = draw.size(10, 10**7), draw.size(*SIZES)
    operands = [Operand(dtype, (among,), made=Made("sorted")), Operand(dtype, (count,), 7)]
    return Case(
        group="sort search",
        text=f"{count} among {among} {dtype} {side}",
        operands=operands,
        call=lambda vg, x, values: vg.searchsorted(x, values, side=side),
        peer=lambda torch, x, values: torch.searchsorted(x, values, side=side),
        expected=lambda x, values: (np.searchsorted(x, values, side), 0),
        bytes=moved(operands[1:], (count,), "int64")
        + min(count, among) * operands[0].nbytes() // among,
    )


CLASSES = {sort: 1.2, top_k: 0.3, unique: 0.3, searchsorted: 0.3}
