"""Elementwise kernels on rows that are short, or whose vectors are not aligned.

Which elements a thread has depends on the lengths of all axes and on where operands begin; NumPy
says what comes out, and what lies around the output stays.
"""

import helpers
import numpy as np
import pytest
from helpers import assert_same, put
from products import launched

import pyvecgpu as vg

DTYPES = ["bool", "int8", "uint16", "float16", "float32", "int64", "complex128"]
SHAPES = [
    (43, 47, 3), (5, 300, 2), (1, 1, 1), (129, 2, 7), (2, 3, 129), (17, 1, 19), (3, 1025, 5),
    (2, 2, 2), (9, 31, 33), (1031, 1, 3), (4, 127, 1), (3, 4, 511), (2, 3, 1200), (257, 16, 1),
]  # fmt: skip


def combined(x, y):
    return (x != y) if x.dtype.kind == "b" else x + y


def check(left, right, x, y):
    """The sum of two views: a new array, and the middle of a larger one."""
    expected = combined(x, y)
    call = vg.not_equal if x.dtype.kind == "b" else vg.add
    assert_same(call(left, right), expected)
    around = np.zeros([n + 3 for n in expected.shape], expected.dtype)
    whole = put(left.device, around)
    inner = tuple(slice(1, n + 1) for n in expected.shape)
    call(left, right, out=whole[inner])
    around[inner] = expected
    assert_same(whole, around)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_axes_of_any_length(device, rng, shape, dtype):
    """Operands that broadcast along any axes, go backwards, in steps, or lie transposed."""
    a = helpers.numbers(rng, [n + 2 for n in shape], np.dtype(dtype))
    b = helpers.numbers(rng, [2 * n + 1 for n in shape], np.dtype(dtype))
    c = helpers.numbers(rng, shape[::-1], np.dtype(dtype))
    first, second, third = put(device, a), put(device, b), put(device, c)
    inner, every = (slice(1, -1),) * 3, (slice(1, None, 2),) * 3
    check(first[inner], second[every], a[inner], b[every])
    back = tuple(slice(None, 0, -2) for _ in shape)
    check(second[back], third.T, b[back], c.T)
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)):
        key = tuple(slice(0, 1) if i in axes else slice(None) for i in range(3))
        check(first[inner], third.T[key], a[inner], c.T[key])
        check(third.T[key], third.T, c.T[key], c.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [63, 64, 127, 129, 255, 256, 257, 272, 285, 512, 700, 2100])
def test_operands_that_begin_anywhere(device, rng, width, dtype):
    """Small elements are put together from words, of which the first and the last are not read."""
    whole = helpers.numbers(rng, 9 * width + 64, np.dtype(dtype))
    array = put(device, whole)
    for one, other in ((0, 1), (1, 0), (2, 3), (5, 15), (16, 7), (33, 16)):
        n = 5 * width
        x, y = (whole[k : k + n] for k in (one, other))
        left, right = (array[k : k + n] for k in (one, other))
        check(left, right, x, y)
        x, y, left, right = (each.reshape(5, width) for each in (x, y, left, right))
        check(left[::-1], right, x[::-1], y)
        check(left, right[1], x, y[1])
        check(left[:, :-3], right[:, 3:], x[:, :-3], y[:, 3:])
        check(left[:, 1:2], right[::2][:1], x[:, 1:2], y[::2][:1])


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    ("dtype", "shape", "joined", "apart"),
    [
        ("uint8", (50, 47, 3), "strided_kernel", "strided_kernel"),
        ("int8", (200, 82), "joined_kernel", "strided_kernel"),
        ("int8", (20, 1001), "joined_kernel", "rows_kernel"),
        ("int16", (99, 62), "joined_kernel", "strided_kernel"),
        ("int16", (9, 513), "joined_kernel", "rows_kernel"),
        ("float32", (99, 3), "strided_kernel", "strided_kernel"),
        ("float32", (99, 34), "joined_kernel", "strided_kernel"),
        ("float32", (99, 131), "joined_kernel", "rows_kernel"),
        ("float64", (99, 64), "rows_kernel", "rows_kernel"),
    ],
)
def test_which_kernel(device, rng, dtype, shape, joined, apart):
    """A result whose rows follow each other, and one with gaps between them."""
    x = helpers.numbers(rng, shape, np.dtype(dtype))
    column = x[..., :1].copy()
    left, right, before = put(device, x), put(device, column), launched(device, joined)
    assert_same(left * right, x * column)
    assert launched(device, joined) == before + 1
    wide = vg.empty((*shape[:-1], shape[-1] + 16), dtype=dtype, device=device)
    before = launched(device, apart)
    found = vg.multiply(left, right, out=wide[..., : shape[-1]])
    assert launched(device, apart) == before + 1
    assert_same(found, x * column)


@pytest.mark.devices("sim", "cuda")
def test_casts_lie_as_their_operand(device, rng):
    x = helpers.numbers(rng, (21, 305), np.dtype(np.uint16))
    for view, array in ((x.T, put(device, x).T), (x[:, 1:].T, put(device, x)[:, 1:].T)):
        result = vg.astype(array, "float32")
        assert_same(result, view.astype(np.float32))
        if view.base.size == view.size:  # of one with gaps the copy is in C order
            assert result.strides == view.astype(np.float32).strides
        assert vg.astype(array, "uint16").strides == np.ascontiguousarray(view).strides


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint64"])
def test_powers_and_shifts_by_numbers(device, rng, dtype):
    """By one number for all, which is the usual case, and by others beside it."""
    x = helpers.integers(rng, 1003, np.dtype(dtype))
    array = put(device, x)
    for n in (0, 1, 2, 3, 4, 7, 31, 100):
        assert_same(array**n, x**n)
        mixed = np.full_like(x, n)
        mixed[::5] = 2
        assert_same(array ** put(device, mixed), x**mixed)
    bits = np.dtype(dtype).itemsize * 8
    by = (np.arange(1003) % (2 * bits)).astype(dtype)
    assert_same(array << put(device, by), np.left_shift(x, by))
    assert_same(array >> put(device, by), np.right_shift(x, by))
