"""MultiheadAttention, with torch's layout of parameters."""

import math

from ..dtypes import is_float
from ..functions.choosing import where
from ..functions.creation import zeros
from ..functions.layout import permute_dims, reshape, swapaxes
from ..functions.reductions import mean
from . import functional, init
from .functional.attention import attend, attend_with_weights
from .functional.operands import gathered, number
from .layers import Linear, absent, counted, parameter
from .module import Module

__all__ = ["MultiheadAttention"]


def added(mask, like):
    """Return a mask as numbers to be added to what goes into softmax: -infinity for True."""
    if mask.dtype.kind != "b":
        return mask
    return where(mask, -math.inf, zeros((), "float32", device=like.device))


def _placed(name, mask, shapes):
    """Return a mask in the shape that {one of a mask: one of attention} has for its own."""
    if mask.shape not in shapes:
        known = " or ".join(map(str, shapes))
        raise ValueError(f"MultiheadAttention: {name} has the shape {known}, not {mask.shape}")
    if mask.dtype.kind != "b" and not is_float(mask.dtype):
        raise TypeError(f"MultiheadAttention: {name} is of bools or floats, not of {mask.dtype}")
    return reshape(mask, shapes[mask.shape])


class MultiheadAttention(Module):
    """Attention of several heads: in_proj_weight (3 E, E), in_proj_bias (3 E,), out_proj.

    kdim, vdim: features of key and value where they are others; then there are q_proj_weight,
    k_proj_weight and v_proj_weight. batch_first: (N, length, E) instead of (length, N, E).

    >>> attention = vg.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = vg.ones((4, 5, 8))
    >>> result, weights = attention(x, x, x, need_weights=True)
    >>> result.shape, weights.shape
    ((4, 5, 8), (4, 5, 5))
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        wanted = {"add_bias_kv": (add_bias_kv, False), "add_zero_attn": (add_zero_attn, False)}
        absent("MultiheadAttention", **wanted)
        self.embed_dim = counted(embed_dim, "embed_dim")
        self.num_heads = counted(num_heads, "num_heads")
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim={embed_dim} is not {num_heads} heads")
        self.dropout, self.batch_first = number(dropout, "dropout", 0.0, 1.0), batch_first
        widths = {"q": embed_dim, "k": embed_dim if kdim is None else counted(kdim, "kdim")}
        widths["v"] = embed_dim if vdim is None else counted(vdim, "vdim")
        alike = set(widths.values()) == {embed_dim}
        make = lambda *shape: parameter(shape, dtype, device)  # noqa: E731
        for letter, width in widths.items():
            weight = None if alike else make(embed_dim, width)
            self.register_parameter(f"{letter}_proj_weight", weight)
        weight = make(3 * embed_dim, embed_dim) if alike else None
        self.register_parameter("in_proj_weight", weight)
        self.register_parameter("in_proj_bias", make(3 * embed_dim) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the first values."""
        for name, array in self.named_parameters(recurse=False):
            init.zeros_(array) if name == "in_proj_bias" else init.xavier_uniform_(array)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=False,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """Return (result, weights or None).

        query: (L, N, E), or without N; key, value: (S, N, ...). key_padding_mask: (N, S), or (S,)
        without N; attn_mask: (L, S) or (N * heads, L, S); bools, True for what takes no part, or
        floats, which are added. is_causal: besides, queries take part with keys up to their own
        number.
        ValueError: a mask of another shape. TypeError: one of integers.
        need_weights: the weights (N, L, S), or (N, heads, L, S) with average_attn_weights=False;
        without them no such matrix is in memory, see functional.scaled_dot_product_attention.
        """
        name = "MultiheadAttention"
        masks = (key_padding_mask, attn_mask)
        _, (query, key, value, *masks) = gathered(name, query, key, value, *masks, needed=3)
        alone = query.ndim == 2
        if {query.ndim, key.ndim, value.ndim} not in ({2}, {3}):
            shapes = (query.shape, key.shape, value.shape)
            raise ValueError(f"{name}: query, key and value of shapes {shapes}")
        inputs = [query] if query is key is value else [query, key, value]
        if alone:
            inputs = [reshape(x, (1, *x.shape)) for x in inputs]
        elif not self.batch_first:
            inputs = [swapaxes(x, 0, 1) for x in inputs]
        heads = [self._heads(x) for x in self._projected(inputs)]
        mask = self._mask(*masks, heads, alone)
        dropout = self.dropout if self.training else 0.0
        compute = attend_with_weights if need_weights else attend
        result = compute(*heads, mask, is_causal, None, dropout)
        result, weights = result if need_weights else (result, None)
        result = permute_dims(result, (0, 2, 1, 3))
        result = self.out_proj(reshape(result, (*result.shape[:2], self.embed_dim)))
        if alone:
            result = reshape(result, result.shape[1:])
        elif not self.batch_first:
            result = swapaxes(result, 0, 1)
        if not need_weights:
            return result, None
        weights = mean(weights, axis=1) if average_attn_weights else weights
        return result, (reshape(weights, weights.shape[1:]) if alone else weights)

    def _projected(self, inputs):
        """Return queries, keys and values (N, length, E)."""
        e, weight, bias = self.embed_dim, self.in_proj_weight, self.in_proj_bias
        parts = [slice(i * e, (i + 1) * e) for i in range(3)]
        if weight is not None and len(inputs) == 1:
            together = functional.dense(inputs[0], weight, bias)
            return [together[..., part] for part in parts]
        weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        if weight is not None:
            weights = [weight[part] for part in parts]
        biases = [None if bias is None else bias[part] for part in parts]
        inputs = inputs * 3 if len(inputs) == 1 else inputs
        three = zip(inputs, weights, biases, strict=True)
        return [functional.dense(*one) for one in three]

    def _heads(self, x):
        """Return (N, heads, length, E / heads)."""
        split = reshape(x, (*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads))
        return permute_dims(split, (0, 2, 1, 3))

    def _mask(self, padding, mask, heads, alone):
        """Return numbers to be added, (N or 1, heads or 1, L or 1, S), or None."""
        query, key, _ = heads
        count, length, size = query.shape[0], query.shape[-2], key.shape[-2]
        total = None
        if padding is not None:
            shapes = {(count, size): (count, 1, 1, size)}
            if alone:
                shapes = {(size,): (1, 1, 1, size)}
            total = added(_placed("key_padding_mask", padding, shapes), query)
        if mask is not None:
            whole = (count, self.num_heads, length, size)
            shapes = {(length, size): (1, 1, length, size)}
            shapes[(count * self.num_heads, length, size)] = whole
            mask = added(_placed("attn_mask", mask, shapes), query)
            total = mask if total is None else total + mask
        return total

    def extra_repr(self):
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"
