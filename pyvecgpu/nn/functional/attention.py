"""Attention: softmax(query @ key.T * scale) @ value."""

import math

from ...array import Tracked
from ...autograd.function import again
from ...dtypes import float32, inexact, is_complex, is_half, promote
from ...functions.exponentials import softmax
from ...functions.joining import concat
from ...functions.layout import astype, broadcast_shapes, reshape
from ...functions.linalg import matmul
from ...functions.sequences import MOST_FEATURES, attention, attention_scores
from ...random import renewed
from .choosing import dropout, dropped
from .operands import gathered, narrow, number

__all__ = ["scaled_dot_product_attention"]

MOST_WEIGHTS = 2**22  # in memory at once, where there is dropout


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    """Return softmax(query @ key.T * scale + mask) @ value: (..., L, Ev).

    query: (..., L, E), key: (..., S, E), value: (..., S, Ev). attn_mask: broadcast to (..., L, S);
    bools, True where a key takes part, or numbers, which are added. is_causal: queries take part
    with keys up to their own number. scale: None for 1 / sqrt(E). enable_gqa: key and value have
    fewer heads, each for several of the query's. dropout_p: each weight, with this probability, is
    0, and others are divided by 1 - dropout_p. A query without any key gives NaN. The matrix (L, S)
    is not in memory, in the backward pass neither, unless one of these asks for it: E or Ev above
    256 or 0, a mask with gradients, gradients of gradients. With dropout blocks of queries are in
    memory, one at a time, of 2^22 weights at most or of one query.
    ValueError: shapes, a mask beside is_causal, dropout_p that is not from 0 to 1.

    >>> q, k, v = vg.ones((2, 4, 5, 8)), vg.ones((2, 4, 7, 8)), vg.ones((2, 4, 7, 3))
    >>> vg.nn.functional.scaled_dot_product_attention(q, k, v).shape
    (2, 4, 5, 3)
    """
    name = "scaled_dot_product_attention"
    call, (query, key, value, mask) = gathered(name, query, key, value, attn_mask, needed=3)
    shapes = (query.shape, key.shape, value.shape)
    if min(map(len, shapes)) < 2 or query.shape[-1] != key.shape[-1]:
        raise ValueError(f"{name}: query, key and value of shapes {shapes}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"{name}: query, key and value of shapes {shapes}")
    if is_causal and mask is not None:
        raise ValueError(f"{name}: attn_mask beside is_causal=True")
    shared = _heads_sharing(name, query, key, value) if enable_gqa else 1
    if shared > 1:
        query, key, value, mask = _grouped(shared, query, key, value, mask)
    result = attend(query, key, value, mask, is_causal, scale, dropout_p)
    if shared > 1:
        result = reshape(result, (*result.shape[:-4], shapes[0][-3], *result.shape[-2:]))
    return call.give(result)


def attend(query, key, value, mask, is_causal, scale, dropout_p):
    """Return the attention in the query's dtype; the Arrays fit. The mask may be causal, too."""
    factor = _factor(query, scale)
    dtype = inexact(promote(promote(query.dtype, key.dtype), value.dtype))
    sizes = (query.shape[-1], value.shape[-1], key.shape[-2])
    by_tiles = min(sizes) and max(sizes[:2]) <= MOST_FEATURES and not is_complex(dtype)
    if dropout_p:
        p = number(dropout_p, "dropout_p", 0.0, 1.0)
        return _with_dropout(query, key, value, mask, is_causal, factor, p)
    if not by_tiles or not _is_within(mask, query, key, value):
        return attend_with_weights(query, key, value, mask, is_causal, scale, dropout_p)[0]
    if mask is not None and mask.dtype.kind != "b":
        mask = astype(mask, inexact(mask.dtype), copy=False)
    operands = [astype(x, dtype, copy=False) for x in (query, key, value)]
    return narrow(attention(*operands, mask, factor, is_causal), query)


def attend_with_weights(query, key, value, mask, is_causal, scale, dropout_p):
    """Return the same and the weights, (..., L, S)."""
    factor = _factor(query, scale)
    scores, _ = attention_scores(query, key, mask, factor, is_causal)
    weights = dropout(softmax(scores, axis=-1), dropout_p)
    return narrow(matmul(narrow(weights, value), value), query), weights


def _with_dropout(query, key, value, mask, is_causal, factor, p):
    """Return the attention in the query's dtype by blocks of queries, computed again backwards.

    Blocks are consecutive parts of all weights (..., L, S) in C order, and draw in this order.
    """
    shapes = [(*query.shape[:-1], 1), (*key.shape[:-2], 1, key.shape[-2])]
    shape = broadcast_shapes(*shapes, () if mask is None else mask.shape)
    dtype = value.dtype
    if math.prod(shape) > MOST_WEIGHTS:  # gradients are sums over blocks, which halves err in
        key, value = [astype(x, float32) if is_half(x.dtype) else x for x in (key, value)]

    def compute(query, key, value, mask, first, place):
        scores, _ = attention_scores(query, key, mask, factor, is_causal, first)
        weights, value = dropped(softmax(scores, -1), p, place), astype(value, dtype, copy=False)
        return narrow(matmul(narrow(weights, value), value), query)

    if any(type(x) is Tracked for x in (query, key, value, mask)):
        compute = again(compute, False)

    def block(operands, shape, first):
        return compute(*operands, first, renewed(math.prod(shape), query.backend))

    return _joined(block, (query, key, value, mask), shape, 0)


def _joined(block, operands, shape, axis, first=0):
    """Return block(operands, shape, first) of parts of at most MOST_WEIGHTS, joined again.

    shape: that of the weights, which are cut from `axis` on; first: the number of the first query.
    """
    last = len(shape) - 2  # the axis of queries, behind which no weight is parted from others
    if axis > last or math.prod(shape) <= MOST_WEIGHTS:
        return block(operands, shape, first)
    length, parts = shape[axis], []
    if length == 1:  # values may be more along it
        return _joined(block, operands, shape, axis + 1)
    step = max(1, MOST_WEIGHTS // math.prod(shape[axis + 1 :]))
    for begin in range(0, length, step):
        piece, place = slice(begin, min(begin + step, length)), axis - len(shape)
        cut = [_cut(x, place, piece, i in (1, 2)) for i, x in enumerate(operands)]
        part = (*[1] * axis, piece.stop - begin, *shape[axis + 1 :])
        parts.append(_joined(block, cut, part, axis + 1, begin if axis == last else 0))
    return concat(parts, place)


def _cut(x, axis, piece, is_of_keys):
    """Return the part of an operand for a part of the weights along an axis, counted from behind.

    What is broadcast along it, and the rows of keys and values along the axis of queries, is whole.
    """
    if x is None or x.ndim < -axis or x.shape[axis] == 1 or (is_of_keys and axis == -2):
        return x
    return x[(..., piece, *[slice(None)] * (-1 - axis))]


def _is_within(mask, query, key, value):
    """Return whether a mask has no gradient and nothing is repeated for it."""
    if mask is None:
        return True
    leading = broadcast_shapes(*[x.shape[:-2] for x in (query, key, value)])
    whole = (*leading, query.shape[-2], key.shape[-2])
    return not mask.requires_grad and broadcast_shapes(whole, mask.shape) == whole


def _factor(query, scale):
    return 1.0 / math.sqrt(query.shape[-1] or 1) if scale is None else number(scale, "scale")


def _heads_sharing(name, query, key, value):
    """Return how many heads of the query share one of key and value."""
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise ValueError(f"{name}: enable_gqa needs heads, got {query.shape} and {key.shape}")
    heads, fewer = query.shape[-3], key.shape[-3]
    if not fewer or heads % fewer or value.shape[-3] != fewer:
        raise ValueError(f"{name}: {heads} heads of the query for {fewer} of the key")
    return heads // fewer


def _grouped(shared, query, key, value, mask):
    """Return the operands with an axis of the heads that share a key behind that of the keys."""
    fewer = key.shape[-3]
    query = reshape(query, (*query.shape[:-3], fewer, shared, *query.shape[-2:]))
    key, value = (reshape(x, (*x.shape[:-2], 1, *x.shape[-2:])) for x in (key, value))
    if mask is not None and mask.ndim > 2:
        heads = (1, 1) if mask.shape[-3] == 1 else (mask.shape[-3] // shared, shared)
        mask = reshape(mask, (*mask.shape[:-3], *heads, *mask.shape[-2:]))
    return query, key, value, mask
