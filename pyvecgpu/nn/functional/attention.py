"""Attention: softmax(query @ key.T * scale) @ value."""

import math

from ...dtypes import inexact, is_complex, promote
from ...functions.exponentials import softmax
from ...functions.layout import astype, broadcast_shapes, reshape
from ...functions.linalg import matmul
from ...functions.sequences import MOST_FEATURES, attention, attention_scores
from .choosing import dropout
from .operands import gathered, narrow, number

__all__ = ["scaled_dot_product_attention"]


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
    fewer heads, each for several of the query's. A query without any key gives NaN. The matrix
    (L, S) is not in memory, in the backward pass neither, unless one of these asks for it:
    dropout_p above 0, E or Ev above 256 or 0, a mask with gradients, gradients of gradients.
    ValueError: shapes, or a mask beside is_causal.

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
    if dropout_p or not by_tiles or not _is_within(mask, query, key, value):
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
