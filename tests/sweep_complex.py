"""The sweep's groups of complex dtypes alone; those of all dtypes are in sweep.py."""

import helpers
import numpy as np
from helpers import SHAPE, assert_same, put
from helpers import fixed_integers as data

import pyvecgpu as vg
from pyvecgpu.operations import ROWS

UNARY = [row for row in ROWS if row.family == "unary" and "c" in row.domain]
BINARY = [row for row in ROWS if row.family == "binary" and "c" in row.domain]


def assert_near(result, expected, message=""):
    """Within some units in the last place of the length."""
    result = helpers.host(result)
    if result.dtype == bool:
        assert_same(result, expected, message)
        return
    eps = np.finfo(result.dtype).eps
    helpers.assert_within(result, expected, 64 * eps * (1 + np.abs(expected)), message)


def functions(patterns):
    """Return the group of elementwise operations, in every access pattern."""

    def group(dtype):
        for pattern, make in patterns.items():

            def check_unary(device, make=make):
                x = data(dtype) / dtype.type(4)
                x = np.where(x == 0, dtype.type(0.5), x)
                for row in UNARY:
                    with np.errstate(all="ignore"):
                        expected = getattr(np, row.name)(x)
                    assert_near(getattr(vg, row.name)(make(device, x)), expected, row.name)

            def check_binary(device, make=make):
                a, b = data(dtype), data(dtype, seed=1)
                b = np.where(b == 0, dtype.type(1), b)
                for row in BINARY:
                    if row.name == "pow":
                        a, b = a / dtype.type(4), b / dtype.type(8)
                        b = np.where(a == 0, dtype.type(1), b)
                    result = getattr(vg, row.name)(make(device, a), make(device, b))
                    assert_near(result, getattr(np, row.name)(a, b), row.name)

            yield f"complex functions, {pattern}", check_unary
            yield f"complex operations, {pattern}", check_binary

    return group


def casts(patterns):
    """Return the group of casts from and to a complex dtype."""

    def group(dtype):
        for pattern, make in patterns.items():

            def check(device, make=make):
                for other in helpers.COMPLEX:
                    x = data(other)
                    assert_same(make(device, x).astype(dtype), x.astype(dtype))
                x = data(dtype)
                assert_same(make(device, x).astype(bool), x.astype(bool))
                assert_same(make(device, x.real).astype(dtype), x.real.astype(dtype))
                assert_same(make(device, x).imag.copy(), x.imag)
                for source in (put(device, x.real), put(device, x.astype(np.complex64))):
                    target = make(device, np.zeros(SHAPE, dtype))
                    target[...] = source
                    assert_same(target, source.numpy().astype(dtype))

            yield f"complex casts, {pattern}", check

    return group


def reductions(dtype):
    """Of lengths for every kernel that multiplies."""
    for name, shape, axis in (
        ("short rows", (6, 37), 1),
        ("long rows", (2, 3000), 1),
        ("rows in chunks", (33_000,), 0),
        ("columns", (60, 5), 0),
        ("columns in chunks", (20_000, 3), 0),
    ):

        def check(device, shape=shape, axis=axis):
            x = np.exp(1j * data(np.dtype(float), shape)).astype(dtype)
            wide = x.astype(np.clongdouble)
            for function in ("sum", "prod", "mean", "cumsum", "cumprod"):
                expected = getattr(np, function)(wide, axis=axis)
                result = helpers.host(getattr(vg, function)(put(device, x), axis=axis))
                error = np.max(np.abs(result.astype(np.clongdouble) - expected))
                limit = x.size * np.finfo(dtype).eps * (1 + np.max(np.abs(expected)))
                assert float(error) <= limit, function

        yield f"complex reductions, {name}", check

    def apart(device):
        x = np.exp(1j * data(np.dtype(float), (3, 4, 5))).astype(dtype)
        expected = np.prod(x.astype(np.clongdouble), axis=(0, 2))
        result = helpers.host(vg.prod(put(device, x), axis=(0, 2))).astype(np.clongdouble)
        assert float(np.max(np.abs(result - expected))) <= x.size * np.finfo(dtype).eps

    yield "complex reductions, axes that do not touch", apart


def products(dtype):
    """Products, whose right operand is doubled in every access pattern."""
    for name, left, right in (
        ("matrices", (5, 6), (6, 7)),
        ("one row", (5, 1), (1, 7)),
        ("one even row", (5, 1), (1, 8)),
        ("a vector", (5, 6), (6,)),
        ("a batch", (3, 5, 6), (3, 6, 4)),
    ):

        def check(device, left=left, right=right):
            a, b = data(dtype, left), data(dtype, right, 1)
            x = put(device, a)
            assert_same((x @ put(device, b)) + 0, (a @ b) + 0)
            assert_same((x @ put(device, b)[..., ::-1]) + 0, (a @ b[..., ::-1]) + 0)
            turned = put(device, np.ascontiguousarray(b.T)).T
            assert_same((x @ turned) + 0, (a @ np.ascontiguousarray(b.T).T) + 0)

        yield f"complex products, {name}", check
