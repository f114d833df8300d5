"""The rules of what goes over windows or tiles of its operands: pooling, convolution, attention."""

import math

from .. import functions as vg
from ..dispatch import apply
from ..functions.sequences import attention_scores
from .normalizing import widened


def pool(g, code, places, windows, with_padding, like):
    call = (code, g, places, windows, with_padding, *like.shape[-2:])
    return apply(g.backend, "pool_backward", *call)


def pool_backward(g, code, places, windows, with_padding):
    """Of means the windows' means again; of maxima the elements at their places."""
    if places is None:
        return apply(g.backend, "pool", code, g, None, windows, with_padding)
    rows, columns = [
        vg.arange(n, dtype="int64", device=g.device) * stride - before
        for n, stride, before in zip(places.shape[-2:], windows[2:4], windows[4:6], strict=True)
    ]
    number = vg.astype(places, "int64")
    row = number // windows[1] * windows[8] + vg.expand_dims(rows, axis=-1)
    column = number % windows[1] * windows[9] + columns
    there = number >= 0
    at = vg.where(there, row * g.shape[-1] + column, 0)
    batch = places.shape[:-2]
    flat = vg.reshape(g, (*batch, math.prod(g.shape[-2:])))
    found = vg.take_along_axis(flat, vg.reshape(at, (*batch, math.prod(places.shape[-2:]))), -1)
    return vg.where(there, vg.reshape(found, places.shape), 0.0)


def convolved(x, weight, windows, groups):
    return apply(x.backend, "convolution", x, weight, windows, groups)


def convolved_input(gradient, weight, windows, groups, like):
    size = like.shape[-2:]
    return apply(weight.backend, "convolution_input", gradient, weight, windows, groups, *size)


def convolved_weight(gradient, x, windows, groups):
    return apply(x.backend, "convolution_weight", gradient, x, windows, groups)


# A convolution is linear in both operands, so that its gradients have the three for theirs.
CONVOLUTION = {
    "convolution": {
        "x": convolved_input,
        "weight": convolved_weight,
    },
    "convolution_input": {
        "gradient": convolved,
        "weight": lambda g, gradient, windows, groups: convolved_weight(
            gradient, g, windows, groups
        ),
    },
    "convolution_weight": {
        "gradient": lambda g, x, windows, groups: convolved(x, g, windows, groups),
        "x": lambda g, gradient, windows, groups, like: convolved_input(
            gradient, g, windows, groups, like
        ),
    },
}


def attention(g, query, keys, values, mask, y, logsum, scale, causal, differentiable):
    """By tiles; and with the matrix of weights in memory if what is computed is recorded."""
    if not differentiable:
        call = (g, query, keys, values, mask, y, logsum, scale, causal)
        found = apply(query.backend, "attention_backward", *call)
        return dict(zip(("query", "keys", "values"), found, strict=True))
    scores, kept = attention_scores(query, keys, mask, scale, causal)
    weights = vg.softmax(scores, axis=-1)
    g, query, keys, values = widened(g, query, keys, values)
    slopes = vg.matmul(g, vg.matrix_transpose(values))
    slopes = weights * (slopes - vg.sum(slopes * weights, axis=-1, keepdims=True))
    if kept is not None:
        slopes = vg.where(kept, slopes, 0.0)
    return {
        "query": vg.matmul(slopes, keys) * scale,
        "keys": vg.matmul(vg.matrix_transpose(slopes), query) * scale,
        "values": vg.matmul(vg.matrix_transpose(weights), g),
    }
