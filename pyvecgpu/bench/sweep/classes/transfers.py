"""Arrays on their way to the device and back, in layouts that have to be gathered on the way."""

import numpy as np

from ...timing import BFLOAT16
from ..case import DTYPES, Case, Operand
from .layouts import of_one

OF_NUMPY = tuple(dtype for dtype in DTYPES if dtype != BFLOAT16)


def upload(draw):
    """An array of the host to the device: ordinary memory, in any layout."""
    dtype = draw.choice(OF_NUMPY)
    layout, operand = of_one(draw, dtype, draw.size(100, 2 * 10**7))
    operand.on_host = True
    return Case(
        group="transfer up" if layout in ("plain", "offset") else "transfer up gathered",
        text=f"{layout} {dtype} {operand.view_shape()}",
        operands=[operand],
        call=lambda vg, x: vg.asarray(x),
        peer=lambda torch, x: x.cuda(),
        expected=lambda x: (x, 0),
        bytes=2 * operand.nbytes(),
    )


def download(draw):
    """An array of the device to the host, of any layout there."""
    dtype = draw.choice(OF_NUMPY)
    layout, operand = of_one(draw, dtype, draw.size(100, 2 * 10**7))
    return Case(
        group="transfer down" if layout in ("plain", "offset") else "transfer down gathered",
        text=f"{layout} {dtype} {operand.view_shape()}",
        operands=[operand],
        call=lambda vg, x: x.numpy(),
        peer=lambda torch, x: x.cpu(),
        expected=lambda x: (x, 0),
        bytes=2 * operand.nbytes(),
    )


def update(draw):
    """A part of an array that an array of the host is written to."""
    dtype, size = draw.choice(OF_NUMPY), draw.size(100, 10**7)
    shape = draw.split(size, 2, max(3, size // 2))
    host = Operand(dtype, shape, 3, on_host=True)
    into = Operand(dtype, (shape[0], 2 * shape[1]), own=True)

    def expected(x, into):
        values = np.array(into)
        values[:, : shape[1]] = x
        return values, 0

    def call(m, x, into):
        into[:, : shape[1]] = x
        return into

    return Case(
        group="transfer update",
        text=f"{dtype} {shape}",
        operands=[host, into],
        call=call,
        peer=call,
        expected=expected,
        bytes=2 * host.nbytes(),
    )


CLASSES = {upload: 0.6, download: 0.6, update: 0.25}
