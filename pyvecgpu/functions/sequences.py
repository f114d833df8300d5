"""Attention and recurrent layers as one operation each: what `vg.nn` computes them by.

Operands are Arrays of one float dtype that fit; the functions of `vg.nn` have seen to it.
"""

import math

from ..array import Tracked
from ..dispatch import apply, tape
from ..dtypes import float32, float64, is_half
from .choosing import where
from .creation import ones
from .layout import astype, broadcast_shapes, matrix_transpose
from .linalg import matmul
from .matrices import tril

MOST_FEATURES = 256  # of a head


def attention(query, keys, values, mask, scale, causal):
    """Return softmax(query @ keys.T * scale + mask) @ values by tiles, see pvg_attention."""
    logsum = None
    if any(type(x) is Tracked for x in (query, keys, values)) and tape.enabled():
        leading = broadcast_shapes(*[x.shape[:-2] for x in (query, keys, values)])
        dtype = float64 if query.dtype == float64 else float32
        logsum = apply(query.backend, "empty", (*leading, query.shape[-2]), dtype)
    call = (query, keys, values, mask, float(scale), bool(causal), logsum)
    return apply(query.backend, "attention", *call)


def attention_scores(query, keys, mask, scale, causal, first=0):
    """Return query @ keys.T * scale + mask, and bools: where a key takes part; None everywhere.

    It is in float32 for halves, and -infinity where a key takes no part. first: the number of the
    first query, for an order.
    """
    if is_half(query.dtype):
        query, keys = astype(query, float32), astype(keys, float32)
    scores = matmul(query, matrix_transpose(keys)) * scale
    kept = None
    if mask is not None and mask.dtype.kind == "b":
        kept = mask
    elif mask is not None:
        scores = scores + mask
    if causal:
        order = tril(ones(scores.shape[-2:], "bool", device=scores.device), first)
        kept = order if kept is None else kept & order
    return (scores if kept is None else where(kept, scores, -math.inf)), kept


def recurrent(cell, inputs, weight, bias, hidden, state, backwards, keep):
    """Return (hiddens, states, gates) of a layer, None for what it has not; see pvg_recurrent."""
    call = (cell, inputs, weight, bias, hidden, state, bool(backwards), bool(keep))
    hiddens, *rest = apply(inputs.backend, "recurrent", *call)
    states = rest.pop(0) if state is not None else None
    return hiddens, states, rest[0] if rest else None


def recurrent_backward(cell, gradient, dlast, dstate, weight, hiddens, states, gates, backwards):
    """Return (dinputs, dproducts, dhidden, dcell); dproducts may be dinputs and dcell None."""
    call = (cell, gradient, dlast, dstate, weight, hiddens, states, gates, bool(backwards))
    dinputs, *rest = apply(gradient.backend, "recurrent_backward", *call)
    dcell = rest.pop() if states is not None else None
    dhidden = rest.pop()
    return dinputs, (rest[0] if rest else dinputs), dhidden, dcell
