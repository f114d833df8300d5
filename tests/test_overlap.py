"""Results that are written over their operands: the same as if these had been copied first.

Every function that takes `out`, and assignment, of random views of one buffer: steps of either
sign, shifts of a few elements, axes exchanged. What the function gives of copies is the reference,
and elements that `out` does not cover keep their values.
"""

import math

import helpers
import numpy as np
import pytest
from helpers import assert_same, assert_within, put, widened
from references import FLOAT_FUNCTIONS, FLOAT_PAIRS, lookup, takes

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.operations import ROWS

DTYPES = [np.dtype(name) for name in ("u1", "f2", "f4", "i8")]
DRAWS = 24
ELEMENTS = 7000


def draw_view(rng, shape):
    """A function that makes the same view of this shape of a flat ndarray or Array."""
    axes = rng.permutation(len(shape))
    steps = [int(rng.choice([-2, -1, 1, 1, 2])) for _ in axes]
    lengths = [
        shape[axis] * abs(s) + int(rng.integers(2)) for axis, s in zip(axes, steps, strict=True)
    ]
    keys = tuple(
        slice(None, None, s) if s > 0 else slice(shape[axis] * -s - 1, None, s)
        for axis, s in zip(axes, steps, strict=True)
    )
    cut = tuple(slice(0, shape[axis]) for axis in axes)
    first, back = int(rng.integers(0, 6)), tuple(int(i) for i in np.argsort(axes))

    def make(buffer):
        whole = buffer[first : first + math.prod(lengths)].reshape(tuple(lengths))
        return whole[keys][cut].transpose(back)

    return make


def draw_shapes(rng, name, family):
    """The operands' shapes and the result's, and f(operands, out) of a function by name."""
    m, n, k = (int(x) for x in rng.integers(1, 10, 3))
    if rng.integers(3) == 0:
        n = k = m
    function = lookup(name) if family in ("unary", "binary", "reduce") else None
    if family == "unary":
        return [(m, n)], (m, n), function
    if family == "binary":
        other = [(m, n), (1, n), (m, 1), (n,)][rng.integers(4)]
        return [(m, n), other], (m, n), function
    if family == "reduce":
        axis, keep = int(rng.integers(3)), bool(rng.integers(2))
        shape = [m, n, k]
        shape[axis : axis + 1] = [1] if keep else []
        return (
            [(m, n, k)],
            tuple(shape),
            lambda a, out: function(a, axis=axis, keepdims=keep, out=out),
        )
    return {
        "scalar": ([(m, n)], (m, n), lambda a, out: vg.subtract(3, a, out=out)),
        "where": (
            [(m, n), (m, n), (n,)], (m, n),
            lambda a, b, c, out: vg.where(a > 2, b, c, out=out),
        ),
        "triangle": ([(k, m, n)], (k, m, n), lambda a, out: vg.tril(a, 1, out=out)),
        "scan": ([(k, m, n)], (k, m, n), lambda a, out: vg.cumsum(a, 1, a.dtype, out)),
        "sort": (
            [(k, m, n)], (k, m, n),
            lambda a, out, axis=m % 3: apply(a.backend, "sort", a, axis, True, out),
        ),
        "cast": ([(m, n)], (m, n), lambda a, out: apply(a.backend, "cast", a, a.dtype, out)),
        "matmul": ([(m, k), (k, n)], (m, n), lambda a, b, out: vg.matmul(a, b, out=out)),
        "batch": ([(3, m, k), (k, n)], (3, m, n), lambda a, b, out: vg.matmul(a, b, out=out)),
        "vecdot": ([(m, n, k), (n, k)], (m, n), lambda a, b, out: vg.vecdot(a, b, out=out)),
        "tensordot": (
            [(m, n, k), (n, k, 3)], (m, 3), lambda a, b, out: vg.tensordot(a, b, out=out)
        ),
        "dense": (
            [(m, k), (n, k), (n,)], (m, n),
            lambda x, w, b, out: vg.dense(x, w, b, "relu", out=out),
        ),
        "assignment": ([(m, n)], (k, m, n), assign),
        "scatter": ([(m, n)], (k, m, n), lambda a, out: assign(a, out, range(k)[::-1])),
    }[name]  # fmt: skip


def assign(a, out, key=...):
    if out is None:
        return a
    out[key] = a
    return out


OTHERS = (
    "scalar",
    "where",
    "triangle",
    "scan",
    "sort",
    "cast",
    "matmul",
    "batch",
    "vecdot",
    "tensordot",
    "dense",
)
NAMES = [(row.name, row.family) for row in ROWS if row.family in ("unary", "binary", "reduce")]
NAMES += [(name, "other") for name in (*OTHERS, "assignment", "scatter")]


@pytest.mark.parametrize(("name", "family"), NAMES, ids=lambda part: part)
def test_views_of_one_buffer(device, rng, name, family):
    written = 0
    for _ in range(DRAWS):
        dtype = DTYPES[rng.integers(len(DTYPES))]
        if (family != "other" and not takes(name, dtype)) or (
            name == "dense" and dtype.kind != "f"
        ):
            continue
        shapes, shape, function = draw_shapes(rng, name, family)
        buffer = helpers.integers(rng, ELEMENTS, dtype, -3, 3)
        makers = [draw_view(rng, one) for one in (*shapes, shape)]
        fitting = [i for i, one in enumerate(shapes) if one == shape]
        if fitting and rng.integers(3) == 0:
            makers[-1] = makers[fitting[rng.integers(len(fitting))]]  # in place
        copies = [put(device, np.ascontiguousarray(make(buffer))) for make in makers[:-1]]
        result = helpers.host(function(*copies, out=None))
        if not np.can_cast(result.dtype, dtype, "same_kind"):
            continue
        array = put(device, buffer)
        # Some operands share no memory with `out`: it must be enough that one does.
        apart = rng.integers(3, size=len(copies)) == 0
        operands = [
            x if own else make(array) for x, own, make in zip(copies, apart, makers, strict=False)
        ]
        out = makers[-1](array)
        assert function(*operands, out=out) is out
        makers[-1](buffer)[...] = result
        nearly = name in FLOAT_FUNCTIONS + FLOAT_PAIRS and helpers.is_float(dtype)
        if device == "cpu" and nearly:  # NumPy rounds by the way memory lies
            unit = 16 * helpers.UNIT_ROUNDOFF[dtype]
            assert_within(array, widened(buffer), unit * np.abs(widened(buffer)), name)
        else:
            assert_same(array, buffer, f"{name} of {dtype}, {shapes}")
        written += 1
    assert written >= DRAWS // 6


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shift", [0, 1, 40])
def test_products_of_several_tiles(device, rng, shift, dtype):
    """One block writes its tile before another one has read what lies there."""
    n, dtype = 100, np.dtype(dtype)
    below, other = helpers.integers(rng, (2 * n, n), dtype), helpers.integers(rng, (n, n), dtype)
    calls = {
        "left": lambda x, y, out: vg.matmul(x, y, out=out),
        "right": lambda x, y, out: vg.matmul(y, x, out=out),
    }
    if dtype.kind == "f":
        calls["x"] = lambda x, y, out: vg.dense(x, y, out=out)
        calls["weight"] = lambda x, y, out: vg.dense(y, x, out=out)
        calls["bias"] = lambda x, y, out: vg.dense(y, y, x[n // 2], out=out)
    for name, call in calls.items():
        array, expected = put(device, below), below.copy()
        expected[shift : shift + n] = helpers.host(
            call(put(device, below[:n]), put(device, other), None)
        )
        call(array[:n], put(device, other), array[shift : shift + n])
        assert_same(array, expected, name)
