"""Batches of products with broadcast and strided items, and dense layers, forward and backward."""

import math
from dataclasses import replace

import numpy as np

from ...timing import BFLOAT16
from ..case import Case, Operand, moved, rounding, wide
from .products import BATCHES, FORMATS, expected_product, multiple
from .reductions import SUM_REST

EVERY_OTHER = (slice(None, None, 2),)
INNER = (slice(None), slice(1, None), slice(2, None))  # rows that go on elsewhere
# By kind: the two operands of products of i x j items of m x n x k, and the items of the result.
ITEMS = {
    "one right": lambda t, i, j, m, n, k: (Operand(t, (i * j, m, k)), Operand(t, (k, n))),
    "one left": lambda t, i, j, m, n, k: (Operand(t, (m, k)), Operand(t, (i * j, k, n))),
    "outer": lambda t, i, j, m, n, k: (Operand(t, (i, 1, m, k)), Operand(t, (j, k, n))),
    "every other": lambda t, i, j, m, n, k: (
        Operand(t, (2 * i * j, m, k), key=EVERY_OTHER),
        Operand(t, (i * j, k, n)),
    ),
    "inner": lambda t, i, j, m, n, k: (
        Operand(t, (i * j, m + 1, k + 2), key=INNER),
        Operand(t, (i * j, k, n)),
    ),
    "turned axes": lambda t, i, j, m, n, k: (
        Operand(t, (i, m, j, k), axes=(0, 2, 1, 3)),  # heads of attention
        Operand(t, (i, n, j, k), axes=(0, 2, 3, 1)),
    ),
}


def batch(draw):
    """Products of many items, some of them there once, or not one behind the other."""
    rate, kind = draw.choice(("float32", BFLOAT16, "float16", "float64")), draw.choice(list(ITEMS))
    low, high = draw.choice(BATCHES[:-1])
    m, n, k = (max(2, round(draw.randint(low, high) ** draw.shrink)) for _ in range(3))
    if draw.random() < 0.4:
        m = n = k = multiple(m)
    most = draw.room.get(rate, 0) // (8 * (k + 2) * (max(m, n) + 1))
    items = max(2, min(20000, draw.size(10**7, 10**9) // (m * n * k), most))
    i, j = draw.split(items, 1, items)
    a, b = ITEMS[kind](rate, i, j, m, n, k)
    # Behind the other one, and aligned as that is: of rows with themselves sums of squares would
    # come out, which err by more than the bound of independent numbers allows.
    b = replace(b, start=64 * math.ceil(a.end() / 64))
    operands = [a, b]
    shape = (*np.broadcast_shapes(a.view_shape()[:-2], b.view_shape()[:-2]), m, n)
    return Case(
        group=f"batch items {kind}",
        text=f"{rate} {i}x{j} of {m}x{n}x{k}",
        operands=operands,
        call=lambda vg, a, b: vg.matmul(a, b),
        peer=lambda torch, a, b: torch.matmul(a, b),
        expected=lambda a, b: expected_product(a, b, rate),
        bytes=moved(operands, shape, rate),
        operations=2 * math.prod(shape) * k,
        rate=rate,
    )


# Dense layers -------------------------------------------------------------------------------------

# By activation: what torch computes, and NumPy; the largest slope is 1.
ACTIVATIONS = {
    None: (lambda torch, x: x, lambda x: x),
    "relu": (lambda torch, x: torch.relu(x), lambda x: np.maximum(x, 0)),
    "sigmoid": (lambda torch, x: torch.sigmoid(x), lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (lambda torch, x: torch.tanh(x), np.tanh),
}


def layer_of(draw):
    """Return the rate, the dtype, what a call is told of it, and the sides (batch, out, in)."""
    rate = draw.choice(FORMATS)
    sides = [draw.size(1, 4000), draw.size(8, 3000), draw.size(8, 3000)]
    if draw.random() < 0.5:
        sides[1:] = map(multiple, sides[1:])
    options = {"precision": "tf32"} if rate == "tf32" else {}
    return rate, "float32" if rate == "tf32" else rate, options, sides


def size_of_layer(batch):
    return "small" if batch <= 32 else "large"


def dense(draw):
    """A layer: a product, a bias and an activation."""
    rate, dtype, options, (m, n, k) = layer_of(draw)
    activation = draw.choice(list(ACTIVATIONS))
    of_torch, of_numpy = ACTIVATIONS[activation]
    x, weight = Operand(dtype, (m, k)), Operand(dtype, (n, k), m * k)
    operands = [x, weight, Operand(dtype, (n,), 9)]

    def expected(x, weight, bias):
        values, allowed = expected_product(x, weight.T, rate)
        values = of_numpy(values + wide(bias))
        return values, allowed + 4 * rounding(values, dtype)

    return Case(
        group=f"dense forward {size_of_layer(m)}",
        text=f"{rate} {m} of {k} to {n} {activation}",
        operands=operands,
        call=lambda vg, x, w, b: vg.dense(x, w, b, activation, **options),
        peer=lambda torch, x, w, b: of_torch(torch, torch.nn.functional.linear(x, w, b)),
        expected=expected,
        bytes=moved(operands, (m, n), dtype),
        operations=2 * m * n * k,
        rate=rate,
    )


def backward(draw):
    """The gradients of a layer without activation, or with relu."""
    rate, dtype, options, (m, n, k) = layer_of(draw)
    activation = draw.choice((None, "relu"))
    operands = [Operand(dtype, (m, n)), Operand(dtype, (m, k), 3), Operand(dtype, (n, k), 11)]
    if activation:
        operands.append(Operand(dtype, (m, n), 17))  # before the activation

    def peer(torch, gradient, x, weight, before=None):
        if before is not None:
            gradient = torch.ops.aten.threshold_backward(gradient, before, 0)
        return torch.mm(gradient, weight), torch.mm(gradient.T, x), torch.sum(gradient, dim=0)

    def expected(gradient, x, weight, before=None):
        gradient = wide(gradient)
        if before is not None:
            gradient = gradient * (before > 0)
        bias = np.sum(gradient, axis=0)
        error = SUM_REST["float64" if dtype == "float64" else "float16"]  # of sums on the way
        of_bias = rounding(bias, dtype) + error * np.sum(np.abs(gradient), axis=0)
        of_x, of_weight = (
            expected_product(*pair, rate) for pair in ((gradient, weight), (gradient.T, x))
        )
        values, allowed = zip(of_x, of_weight, (bias, of_bias), strict=True)
        return values, allowed

    return Case(
        group=f"dense backward {size_of_layer(m)}",
        text=f"{rate} {m} of {k} to {n} {activation}",
        operands=operands,
        call=lambda vg, gradient, x, weight, *before: vg.nn.functional.dense_backward(
            gradient, x, weight, *(before or (None,)), activation, **options
        ),
        peer=peer,
        expected=expected,
        bytes=moved(operands, (m * k + n * k + n,), dtype),
        operations=4 * m * n * k,
        rate=rate,
    )


CLASSES = {batch: 1.7, dense: 0.7, backward: 0.7}
