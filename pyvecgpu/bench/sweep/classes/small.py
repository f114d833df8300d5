"""Calls on small arrays, and views: what the host takes for a call is nearly all of it."""

import math

import numpy as np

from ..case import NUMBERS, ROUNDOFF, Case, Operand, expected_rounded, moved, wide
from .products import expected_product

LENGTHS = (16, 1000)


def sum_of(x):
    return np.sum(wide(x)), 32 * ROUNDOFF["float32"] * np.sum(np.abs(x))


def product_of(x, y):
    return expected_product(x, y, "float32")


# By name: how many operands, the call for both libraries, and what is expected, of float32 arrays.
CALLS = {
    "a + b": (2, lambda m, x, y: x + y, lambda x, y: expected_rounded(wide(x) + y, "float32")),
    "a * 2": (1, lambda m, x: x * 2, lambda x: (x * 2, 0)),
    "a > 0": (1, lambda m, x: x > 0, lambda x: (x > 0, 0)),
    "exp(a)": (
        1,
        lambda m, x: m.exp(x),
        lambda x: expected_rounded(np.exp(wide(x)), "float32", 12),
    ),
    "a.sum()": (1, lambda m, x: x.sum(), sum_of),
    "a.max()": (1, lambda m, x: x.max(), lambda x: (np.max(x), 0)),
    "a or b": (2, lambda m, x, y: m.where(x > 0, x, y), lambda x, y: (np.where(x > 0, x, y), 0)),
    "a @ b": (2, lambda m, x, y: x @ y, product_of),
}


def call(draw):
    """A function of small arrays."""
    name = draw.choice(list(CALLS))
    count, function, expected = CALLS[name]
    length = draw.randint(*LENGTHS)
    shape = (math.isqrt(length),) * 2 if name == "a @ b" else (length,)
    operands = [Operand("float32", shape, at * length) for at in range(count)]
    result = () if name in ("a.sum()", "a.max()") else shape
    return Case(
        group=f"small {name}",
        text=f"{shape}",
        operands=operands,
        call=function,
        peer=function,
        expected=expected,
        bytes=moved(operands, result, "float32"),
    )


def item(draw):
    """The number in an array of one element, or of one of its elements."""
    dtype, by_key = draw.choice(NUMBERS), draw.random() < 0.5
    operands = [Operand(dtype, (20,) if by_key else (), draw.randint(0, 50))]
    function = (lambda m, x: x[7].item()) if by_key else (lambda m, x: x.item())
    return Case(
        group="small a[i].item()" if by_key else "small item()",
        text=dtype,
        operands=operands,
        call=function,
        peer=function,
        expected=lambda x: (x[7] if by_key else x, 0),
        bytes=moved([Operand(dtype, ())], (), dtype),
    )


def layer(draw):
    """A dense layer of a few rows."""
    m, n, k = (draw.randint(1, 32) for _ in range(3))
    operands = [
        Operand("float32", (m, k)),
        Operand("float32", (n, k), 99),
        Operand("float32", (n,)),
    ]

    def expected(x, weight, bias):
        values, allowed = expected_product(x, weight.T, "float32")
        return values + bias, allowed + expected_rounded(values + bias, "float32", 4)[1]

    return Case(
        group="small dense",
        text=f"{m} of {k} to {n}",
        operands=operands,
        call=lambda vg, x, w, b: vg.dense(x, w, b),
        peer=lambda torch, x, w, b: torch.nn.functional.linear(x, w, b),
        expected=expected,
        bytes=moved(operands, (m, n), "float32"),
    )


# Of matrices, by the kind of view.
VIEWS = {
    "transposed": {"a.T": lambda m, x: x.T},
    "slice": {"a[3:5]": lambda m, x: x[3:5], "a[::2, 1:]": lambda m, x: x[::2, 1:]},
    "item": {"a[2]": lambda m, x: x[2], "a[:, 1]": lambda m, x: x[:, 1]},
    "reshape": {"reshape": lambda m, x: x.reshape(-1), "ravel": lambda m, x: x.ravel()},
    "function": {
        "squeeze": lambda m, x: m.squeeze(x),
        "broadcast_to": lambda m, x: m.broadcast_to(x, (3, *x.shape)),
        "a[None]": lambda m, x: x[None],
    },
}


def view(draw):
    """A view of a small matrix, or of a large one: made, and made and used."""
    kind, is_used = draw.choice(list(VIEWS)), draw.random() < 0.25
    name, side = draw.choice(list(VIEWS[kind])), draw.randint(6, 32)
    function = VIEWS[kind][name]
    operands = [Operand("float32", (side, draw.choice((side, 20, 300))))]
    used = lambda m, x: function(m, x) * 2  # noqa: E731
    shape = function(np, np.empty(operands[0].shape)).shape
    return Case(
        group="view used" if is_used else f"view {kind}",
        text=f"{name} {operands[0].shape}",
        operands=operands,
        call=used if is_used else function,
        peer=used if is_used else function,
        expected=lambda x: (function(np, x) * (2 if is_used else 1), 0),
        bytes=moved([Operand("float32", shape)], shape, "float32"),
    )


CLASSES = {call: 1.9, item: 0.5, layer: 0.25, view: 1.5}
