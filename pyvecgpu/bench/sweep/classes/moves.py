"""Arrays joined, rearranged, repeated, padded and cut: nothing is computed."""

import math

import numpy as np

from ...timing import itemsize
from ..case import DTYPES, NUMBERS, Case, Operand, moved
from .layouts import of_one, shape_of
from .statistics import options_of


def exact(group, text, operands, call, peer, host, shape, dtype):
    """Return the case of something that computes nothing: host(*arrays) is what comes out."""
    return Case(
        group=group,
        text=f"{text} {dtype} {tuple(shape)}",
        operands=operands,
        call=call,
        peer=peer,
        expected=lambda *arrays: (host(*arrays), 0),
        bytes=moved(operands, shape, dtype),
    )


def drawn(draw, most, ndim):
    """Return a dtype, and a shape of so many axes and at most `most` elements."""
    return draw.choice(("float32", "float32", *NUMBERS)), shape_of(
        draw, draw.size(1000, most), ndim
    )


# Joining ------------------------------------------------------------------------------------------


def concat(draw):
    """Two to five arrays one behind the other, of other lengths along that axis."""
    dtype, shape = drawn(draw, 10**7, draw.choice((1, 2, 2, 3)))
    axis, operands, start = draw.randrange(len(shape)), [], 0
    for _ in range(draw.randint(2, 5)):
        length = max(1, round(shape[axis] * draw.uniform(0.2, 1.0)))
        part = (*shape[:axis], length, *shape[axis + 1 :])
        operands.append(Operand(dtype, part, start))
        start = operands[-1].end()
    total = sum(operand.shape[axis] for operand in operands)
    return exact(
        f"join {'last axis' if axis == len(shape) - 1 else 'axis'}",
        f"{len(operands)} along {axis}",
        operands,
        lambda vg, *arrays: vg.concat(arrays, axis=axis),
        lambda torch, *arrays: torch.cat(arrays, dim=axis),
        lambda *arrays: np.concatenate(arrays, axis),
        (*shape[:axis], total, *shape[axis + 1 :]),
        dtype,
    )


def stack(draw):
    """Two to five arrays along a new axis."""
    dtype, shape = drawn(draw, 10**7, draw.choice((1, 2)))
    axis, count = draw.randint(0, len(shape)), draw.randint(2, 5)
    operands = [Operand(dtype, shape, at * math.prod(shape)) for at in range(count)]
    return exact(
        "join stack",
        f"{count} along {axis}",
        operands,
        lambda vg, *arrays: vg.stack(arrays, axis=axis),
        lambda torch, *arrays: torch.stack(arrays, dim=axis),
        lambda *arrays: np.stack(arrays, axis),
        (*shape[:axis], count, *shape[axis:]),
        dtype,
    )


# Rearranging --------------------------------------------------------------------------------------


def roll(draw):
    """Elements rolled along an axis, or all in a row."""
    dtype, shape = drawn(draw, 3 * 10**7, draw.choice((1, 2, 3)))
    axis = draw.choice((None, *range(len(shape))))
    shift = draw.randint(-50, 50)
    return exact(
        "move roll",
        f"{shift} along {axis}",
        [Operand(dtype, shape)],
        lambda vg, x: vg.roll(x, shift, axis=axis),
        lambda torch, x: torch.roll(x, shift, **options_of(axis, "dims")),
        lambda x: np.roll(x, shift, axis),
        shape,
        dtype,
    )


def flip(draw):
    """A copy that is reversed along an axis, or along all."""
    dtype, shape = drawn(draw, 3 * 10**7, draw.choice((1, 2, 3)))
    axes = draw.choice((tuple(range(len(shape))), *((axis,) for axis in range(len(shape)))))
    return exact(
        "move flip",
        f"along {axes}",
        [Operand(dtype, shape)],
        lambda vg, x: vg.flip(x, axis=axes).copy(),
        lambda torch, x: torch.flip(x, axes),
        lambda x: np.flip(x, axes),
        shape,
        dtype,
    )


def repeat(draw):
    """Each element several times, along an axis."""
    dtype, shape = drawn(draw, 10**7, draw.choice((1, 2, 3)))
    axis, count = draw.randrange(len(shape)), draw.randint(2, 6)
    return exact(
        "move repeat",
        f"{count} along {axis}",
        [Operand(dtype, shape)],
        lambda vg, x: vg.repeat(x, count, axis=axis),
        lambda torch, x: torch.repeat_interleave(x, count, dim=axis),
        lambda x: np.repeat(x, count, axis),
        (*shape[:axis], count * shape[axis], *shape[axis + 1 :]),
        dtype,
    )


def tile(draw):
    """An array several times, along each axis."""
    dtype, shape = drawn(draw, 5 * 10**6, draw.choice((1, 2, 3)))
    times = tuple(draw.randint(1, 3) for _ in shape)
    return exact(
        "move tile",
        f"{times}",
        [Operand(dtype, shape)],
        lambda vg, x: vg.tile(x, times),
        lambda torch, x: torch.tile(x, times),
        lambda x: np.tile(x, times),
        [n * count for n, count in zip(shape, times, strict=True)],
        dtype,
    )


def pad(draw):
    """An array with zeros around it."""
    dtype, shape = drawn(draw, 2 * 10**7, draw.choice((1, 2, 3)))
    widths = tuple((draw.randint(0, 9), draw.randint(0, 9)) for _ in shape)
    flat = [n for pair in reversed(widths) for n in pair]  # torch begins with the last axis
    return exact(
        "move pad",
        f"{widths}",
        [Operand(dtype, shape)],
        lambda vg, x: vg.pad(x, widths),
        lambda torch, x: torch.nn.functional.pad(x, flat),
        lambda x: np.pad(x, widths),
        [n + before + behind for n, (before, behind) in zip(shape, widths, strict=True)],
        dtype,
    )


def permuted(draw):
    """A copy in C order of an array of 3 to 6 permuted axes, of any dtype."""
    dtype, ndim = draw.choice(DTYPES), draw.randint(3, 6)
    shape = shape_of(draw, draw.size(1000, 3 * 10**7), ndim)
    axes = list(range(ndim))
    while axes == sorted(axes):
        draw.shuffle(axes)
    operand = Operand(dtype, shape, axes=tuple(axes))
    return exact(
        f"move {ndim} axes",
        f"{shape} {tuple(axes)}",
        [operand],
        lambda vg, x: x.copy(),
        lambda torch, x: x.clone(memory_format=torch.contiguous_format),
        lambda x: x,
        operand.view_shape(),
        dtype,
    )


def broadcast(draw):
    """A copy of an array that is broadcast along one of its axes."""
    dtype, shape = drawn(draw, 2 * 10**7, draw.choice((2, 3)))
    axis = draw.randrange(len(shape))
    operand = Operand(dtype, (*shape[:axis], 1, *shape[axis + 1 :]))
    return exact(
        "move broadcast",
        f"along {axis}",
        [operand],
        lambda vg, x: vg.broadcast_to(x, shape).copy(),
        lambda torch, x: x.expand(shape).clone(memory_format=torch.contiguous_format),
        lambda x: np.broadcast_to(x, shape),
        shape,
        dtype,
    )


def copy_into(draw):
    """An array of any layout copied into another one."""
    dtype = draw.choice(DTYPES)
    layout, operand = of_one(draw, dtype, draw.size(1000, 3 * 10**7))
    shape = operand.view_shape()

    def call(vg, x, out):
        out[...] = x
        return out

    return Case(
        group="move into",
        text=f"{layout} {dtype} {shape}",
        operands=[operand, Operand(dtype, shape, own=True)],
        call=call,
        peer=lambda torch, x, out: out.copy_(x),
        expected=lambda x, out: (x, 0),
        bytes=moved([operand], shape, dtype),
    )


# Matrices -----------------------------------------------------------------------------------------


def triangle(draw):
    """A matrix, or several, without what is above or below a diagonal."""
    dtype, shape = drawn(draw, 3 * 10**7, draw.choice((2, 2, 3)))
    name, k = draw.choice(("tril", "triu")), draw.choice((0, 0, -3, 2))
    return exact(
        "move triangle",
        f"{name} {k}",
        [Operand(dtype, shape)],
        lambda vg, x: getattr(vg, name)(x, k=k),
        lambda torch, x: getattr(torch, name)(x, k),
        lambda x: getattr(np, name)(x, k),
        shape,
        dtype,
    )


def diagonal(draw):
    """A matrix of a diagonal, or a copy of the diagonal of a matrix."""
    dtype, is_made = draw.choice(NUMBERS), draw.random() < 0.5
    side = draw.size(10, 5000)
    if is_made:
        return exact(
            "move diagonal",
            "to",
            [Operand(dtype, (side,))],
            lambda vg, x: vg.diag(x),
            lambda torch, x: torch.diag(x),
            np.diag,
            (side, side),
            dtype,
        )
    return Case(
        group="move diagonal",
        text=f"of {dtype} {side}",
        operands=[Operand(dtype, (side, side))],
        call=lambda vg, x: vg.diagonal(x).copy(),
        peer=lambda torch, x: torch.diagonal(x).clone(),
        expected=lambda x: (np.diagonal(x), 0),
        bytes=2 * side * itemsize(dtype),
    )


CLASSES = {
    concat: 0.5,
    stack: 0.3,
    roll: 0.3,
    flip: 0.3,
    repeat: 0.3,
    tile: 0.3,
    pad: 0.3,
    permuted: 1.1,
    broadcast: 0.3,
    copy_into: 0.5,
    triangle: 0.3,
    diagonal: 0.3,
}
