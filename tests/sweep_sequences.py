"""The sweep's attention and recurrent layers: every kernel of theirs, checked on small integers."""

import helpers
import numpy as np
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.native.abi import Cell

WIDTHS = (5, 70, 130, 256)  # of heads: each of the numbers of registers that kernels are made for
# By the size of elements: each of the widths of heads that tensor cores' kernels are made for,
# which warpgroup products do not take; and queries for each number of warps.
CHUNKS = {2: (60, 124), 4: (14, 30, 60, 76, 92, 124)}
QUERIES = (9, 20, 40, 70)
TOLERANCE = {2: 0.05, 4: 1e-5, 8: 1e-12}
FLOATS = helpers.FLOATS


def data(dtype, shape, seed):
    """Quarters, which all floats hold, from -1 to 1."""
    rng = np.random.default_rng([3, seed])
    return (rng.integers(-4, 5, shape) / 4).astype(dtype)


def near(result, expected, dtype):
    error = np.max(np.abs(result.numpy().astype(np.float64) - expected), initial=0.0)
    limit = TOLERANCE[dtype.itemsize] * max(1.0, np.max(np.abs(expected), initial=0.0))
    assert error <= limit, f"{error} beyond {limit}"


def attentions(dtype):
    if dtype not in FLOATS:
        return
    for width in WIDTHS:
        for causal in (False, True):

            def check(device, width=width, causal=causal):
                check_attention(device, dtype, width, causal)
                if device == "sim" and dtype.itemsize <= 4:  # a card with tensor cores
                    check_attention("sim:1", dtype, width, causal)

            yield f"attention of {width}{', causal' if causal else ''}", check
    for width in (64, 128) if dtype.itemsize == 2 else ():  # what warpgroup products are made for

        def check_many(device, width=width):
            check_attention(device, dtype, width, True, 70)

        yield f"attention of {width}, causal, of 70 queries", check_many
    for width in CHUNKS.get(dtype.itemsize, ()):
        for length in QUERIES:

            def check_sections(device, width=width, length=length):
                card = "sim:1" if device == "sim" else device  # with tensor cores
                for causal in (False, True):
                    check_attention(card, dtype, width, causal, length, 600)

            yield f"attention of {width}, {length} queries, sections of keys", check_sections
    if dtype.itemsize == 4:

        def check_queries(device):
            check_attention("sim:1" if device == "sim" else device, dtype, 14, False, 600, 40)

        yield "attention, sections of queries", check_queries


def check_attention(device, dtype, width, causal, length=9, size=70):
    """There and back, beside formulas of all weights in float64; a mask beside no order."""
    shapes = (length, size, size, length)
    q, k, v, g = (data(dtype, (2, n, width), i) for i, n in enumerate(shapes))
    mask = None if causal else data(dtype, (1, 1, size), 4)
    arrays = [put(device, x) for x in (q, k, v)]
    given = None if mask is None else put(device, mask)
    logsum = vg.empty(
        (2, length), dtype="float64" if dtype.itemsize == 8 else "float32", device=device
    )
    backend = logsum.backend
    result = apply(backend, "attention", *arrays, given, 0.125, causal, logsum)
    q, k, v, g = (x.astype(np.float64) for x in (q, k, v, g))
    scores = q @ k.swapaxes(1, 2) * 0.125 + (0.0 if causal else mask.astype(np.float64))
    if causal:
        scores = np.where(np.tril(np.ones((length, size), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    near(result, weights @ v, dtype)
    call = (put(device, g.astype(dtype)), *arrays, given, result, logsum, 0.125, causal)
    found = apply(backend, "attention_backward", *call)
    slopes = g @ v.swapaxes(1, 2)
    slopes = weights * (slopes - (slopes * weights).sum(axis=-1, keepdims=True)) * 0.125
    expected = slopes @ k, slopes.swapaxes(1, 2) @ q, weights.swapaxes(1, 2) @ g
    for one, exact in zip(found, expected, strict=True):
        near(one, exact, dtype)


def recurrences(dtype):
    if dtype not in FLOATS:
        return
    for cell in Cell:
        # All steps in one launch, a step in one, and in two.
        for steps, rows in ((3, 5), (1, 5), (2, 4100)):

            def check(device, cell=cell, steps=steps, rows=rows):
                check_recurrent(device, dtype, cell, steps, rows)

            yield f"{cell.name}, {steps} steps of {rows} rows, there and back", check


def check_recurrent(device, dtype, cell, steps, rows):
    """Beside the CPU device in float64."""
    count = {Cell.CELL_LSTM: 4, Cell.CELL_GRU: 3}.get(cell, 1)
    shapes = ((steps, rows, count * 7), (count * 7, 7), (count * 7,), (rows, 7), (rows, 7))
    operands = [data(dtype, shape, i) for i, shape in enumerate(shapes)]
    operands[4] = operands[4] if cell == Cell.CELL_LSTM else None
    g = data(dtype, (steps, rows, 7), 9)
    wide = [None if x is None else x.astype(np.float64) for x in operands]
    results = []
    for place, (*given, slope) in (
        (device, (*operands, g)),
        ("cpu", (*wide, g.astype(np.float64))),
    ):
        arrays = [None if x is None else put(place, x) for x in given]
        there = apply(arrays[0].backend, "recurrent", cell, *arrays, True, True)
        hiddens, *rest = there
        states = rest.pop(0) if cell == Cell.CELL_LSTM else None
        call = (
            put(place, slope),
            None,
            None,
            arrays[1],
            hiddens,
            states,
            rest[0] if rest else None,
        )
        back = apply(arrays[0].backend, "recurrent_backward", cell, *call, True)
        results.append([*there, *back])
    for one, exact in zip(*results, strict=True):
        if cell != Cell.CELL_RELU or dtype.itemsize > 2:  # rounding has moved it across its kink
            near(one, exact.numpy(), dtype)
