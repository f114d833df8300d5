"""Rows joined end to end (joined.cuh): vectors of a result in one piece, whose operands' rows begin
anywhere, are as far apart as they like, run backwards or are one element.

Every element has a number of its own as far as its dtype has as many, so that one from a wrong
place, one byte off or of the row beside it, is seen; and what lies around a view is noise.
"""

import itertools

import helpers
import numpy as np
import pytest
from helpers import assert_same

import pyvecgpu as vg

VECTOR = 16  # bytes
DTYPES = [np.dtype(name) for name in ("u1", "i2", "f2", "f4", "i8", "c8", "c16")]
STEPS = [(1, 1), (-1, 1), (1, -1), (-1, -1)]  # along the columns' axis, and along a row


def place(device, rng, shape, dtype, offset=0, pad=0, steps=(1, 1)):
    """Values of a shape, and an Array of them `offset` elements into its memory: rows with `pad`
    elements between them, which run in the directions of `steps`."""
    rows, columns = shape
    pitch = columns + pad
    memory = helpers.integers(rng, offset + rows * pitch, dtype, 0, 100)
    whole = helpers.put(device, memory)
    down, across = (slice(None, None, step) for step in steps)
    values = memory[offset:].reshape(rows, pitch)[:, :columns][down, across]
    return values, whole[offset:].reshape(rows, pitch)[:, :columns][down, across]


def columns_around(dtype):
    """Lengths of rows around one, two and more vectors."""
    vector = VECTOR // dtype.itemsize
    near = {n * vector + d for n in (1, 2, 4) for d in (-1, 0, 1)}
    return sorted({max(n, 1) for n in near | {5 * vector + vector // 2}})


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_offsets_of_each_operand(device, rng, dtype, steps):
    for columns in columns_around(dtype):
        for offset in range(VECTOR // dtype.itemsize + 1):
            x, v = place(device, rng, (5, columns), dtype, offset, 0, steps)
            y, w = place(device, rng, (5, columns), dtype)
            z, u = place(device, rng, (5, columns), dtype, 3 * offset % 16)
            assert_same(v + w, x + y, f"{columns} columns, offset {offset}")
            assert_same(w + v, y + x, f"{columns} columns, offset {offset}, second")
            assert_same(v + u, x + z, f"{columns} columns, offset {offset}, both")
            assert_same(vg.equal(v, u), x == z, f"{columns} columns, offset {offset}, compared")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_with_gaps(device, rng, dtype):
    for columns, pad, steps in itertools.product(columns_around(dtype), (1, 2, 5, 16), STEPS):
        x, v = place(device, rng, (6, columns), dtype, pad % 3, pad, steps)
        y, w = place(device, rng, (6, columns), dtype, 1, 3, steps[::-1])
        message = f"{columns} columns, {pad} between rows, {steps}"
        assert_same(v + w, x + y, message)
        assert_same(+v if dtype.kind != "u" else vg.positive(v), x, message)
        assert_same(v.copy(), x, message)


@pytest.mark.parametrize("steps", STEPS[1:], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_row_and_many(device, rng, dtype, steps):
    """Ends of every length, and more vectors than a block has threads."""
    vector = VECTOR // dtype.itemsize
    for size in {*range(1, 2 * vector + 2), 128 * vector - 1, 300 * vector + 1}:
        for rows in (1, 3):
            x, v = place(device, rng, (rows, size), dtype, 1, 0, steps)
            y, w = place(device, rng, (rows, size), dtype)
            assert_same(v + w, x + y, f"{rows} rows of {size}")
            assert_same(v * 1, x, f"{rows} rows of {size}, and a scalar")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_more_dimensions(device, rng, dtype):
    vector = VECTOR // dtype.itemsize
    shape = (3, 4, 2, vector + 1)
    a = helpers.integers(rng, shape, dtype, 0, 100)
    b = helpers.integers(rng, shape, dtype, 0, 100)
    v, w = helpers.put(device, a), helpers.put(device, b)
    for signs in itertools.product((1, -1), repeat=4):
        key = tuple(slice(None, None, sign) for sign in signs)
        assert_same(v[key] + w, a[key] + b, f"{signs}")
        assert_same(v[key][:, 1:] + w[:, :-1], a[key][:, 1:] + b[:, :-1], f"{signs}, a part")
        assert_same(v[key] + w[::-1, 1, None], a[key] + b[::-1, 1, None], f"{signs}, repeated")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_repeated_rows_and_columns(device, rng, dtype):
    for columns in columns_around(dtype):
        x, v = place(device, rng, (7, columns), dtype, 1, 0, (-1, 1))
        row, of_row = place(device, rng, (1, columns), dtype, 3, 0, (1, -1))
        column, of_column = place(device, rng, (7, 1), dtype, 2, 1, (-1, 1))
        assert_same(v + of_row, x + row, f"{columns} columns, a row")
        assert_same(of_row - v if dtype.kind != "u" else of_row + v,
                    row - x if dtype.kind != "u" else row + x)  # fmt: skip
        assert_same(v + of_column, x + column, f"{columns} columns, a column")
        assert_same(of_row + of_column, row + column, f"{columns} columns, both")
        chosen = x > column if dtype.kind != "c" else x == column
        of_chosen = v > of_column if dtype.kind != "c" else v == of_column
        assert_same(vg.where(of_chosen[::-1], v, of_row), np.where(chosen[::-1], x, row))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_results_in_place(device, rng, dtype):
    for columns in columns_around(dtype):
        x, v = place(device, rng, (6, columns), dtype, 1, 0, (-1, -1))
        y, w = place(device, rng, (6, columns), dtype)
        w += v
        assert_same(w, y + x, f"{columns} columns")
        _, u = place(device, rng, (6, columns), dtype, 1)  # a result where no vector begins
        vg.add(v, w, out=u)
        assert_same(u, x + x + y, f"{columns} columns, into a view")


@pytest.mark.parametrize("source", ("?", "u1", "i2", "f4", "i8"))
@pytest.mark.parametrize("target", ("?", "u1", "f2", "f4", "f8"))
def test_casts_of_one_width_to_another(device, rng, source, target):
    """Vectors of the result's, of which an operand's are parts or several."""
    for columns, offset in itertools.product((8, 15, 16, 17, 33), range(5)):
        x, v = place(device, rng, (5, columns), np.dtype(source), offset, 0, (-1, 1))
        assert_same(v.astype(target), x.astype(target), f"{columns} columns, offset {offset}")
        y, w = v[:, ::-1], x[:, ::-1]
        assert_same(y.astype(target), w.astype(target), f"{columns} columns, offset {offset}")


@pytest.mark.parametrize("name", ("less_equal", "logical_xor", "not_equal"))
@pytest.mark.parametrize("dtype", ("?", "u1", "i1", "f2", "bfloat16"))
def test_comparisons_of_reversed_arrays(device, rng, name, dtype):
    for size, offset in itertools.product((15, 16, 17, 100, 4099), (0, 1, 7)):
        a, b = (rng.integers(0, 2 if dtype == "?" else 4, size + offset) for _ in range(2))
        v, w = (vg.asarray(n.astype("f4"), device=device).astype(dtype)[offset:] for n in (a, b))
        expected = getattr(np, name)(a[offset:][::-1], b[offset:])
        assert_same(getattr(vg, name)(v[::-1], w), expected, f"{size} from {offset} on")
        assert_same(getattr(vg, name)(v[::-1], w[::-1]), getattr(np, name)(a, b)[offset:][::-1])
