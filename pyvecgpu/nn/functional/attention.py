"""Attention: softmax(query @ key.T * scale) @ value."""

import math

from ...functions.creation import ones
from ...functions.elementwise import where
from ...functions.exponentials import softmax
from ...functions.joining import repeat
from ...functions.layout import matrix_transpose
from ...functions.linalg import matmul
from ...functions.matrices import tril
from .choosing import dropout
from .operands import gathered, narrow, number, wide

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
    (L, S) is in memory. ValueError: shapes, or a mask beside is_causal.

    >>> q, k, v = vg.ones((2, 4, 5, 8)), vg.ones((2, 4, 7, 8)), vg.ones((2, 4, 7, 3))
    >>> vg.nn.functional.scaled_dot_product_attention(q, k, v).shape
    (2, 4, 5, 3)
    """
    name = "scaled_dot_product_attention"
    call, (query, key, value, mask) = gathered(name, query, key, value, attn_mask)
    shapes = (query.shape, key.shape, value.shape)
    if min(map(len, shapes)) < 2 or query.shape[-1] != key.shape[-1]:
        raise ValueError(f"{name}: query, key and value of shapes {shapes}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"{name}: query, key and value of shapes {shapes}")
    if is_causal and mask is not None:
        raise ValueError(f"{name}: attn_mask beside is_causal=True")
    if enable_gqa:
        key, value = _of_all_heads(name, query, key, value)
    result, _ = attend(query, key, value, mask, is_causal, scale, dropout_p)
    return call.give(narrow(result, query))


def attend(query, key, value, mask, is_causal, scale, dropout_p):
    """Return the attention and its weights; the Arrays fit."""
    factor = 1.0 / math.sqrt(query.shape[-1] or 1) if scale is None else number(scale, "scale")
    scores = wide(matmul(query * factor, matrix_transpose(key)))
    if is_causal:
        mask = tril(ones(scores.shape[-2:], "bool", device=scores.device))
    if mask is not None and mask.dtype.kind == "b":
        scores = where(mask, scores, -math.inf)
    elif mask is not None:
        scores = scores + mask
    weights = dropout(softmax(scores, axis=-1), dropout_p)
    return matmul(narrow(weights, value), value), weights


def _of_all_heads(name, query, key, value):
    """Return key and value with as many heads as the query has."""
    heads, fewer = query.shape[-3], key.shape[-3]
    if not fewer or heads % fewer or value.shape[-3] != fewer:
        raise ValueError(f"{name}: {heads} heads of the query for {fewer} of the key")
    return [repeat(x, heads // fewer, axis=-3) for x in (key, value)]
