"""Attention and recurrent layers, forward and with their backward pass; in operations a second.

Counted are the multiplications and additions of products: for attention those of the keys that a
query takes part with, for the backward pass two and a half times as many, and without the ones that
are done again; for a recurrent layer those of hidden states and inputs.
"""

import functools
import math

import numpy as np

from .goals import Ratio
from .timing import BFLOAT16, Row

F32 = np.float32
# (items, heads, length, features of a head) of attention, (width, steps, rows) of an LSTM
SIZES = {
    "full": (((16, 16, 1024, 64), (4, 16, 4096, 128)), ((128, 64, 32), (512, 64, 32))),
    "cpu": (((2, 4, 256, 64),), ((128, 16, 32),)),
    "quick": (((1, 2, 9, 4),), ((8, 3, 2),)),
}
GOALS = [
    Ratio("attention 16x16x1024x64 float32, causal, forward", "torch", 2.0),
    Ratio("attention 16x16x1024x64 float32, causal, both ways", "torch", 2.0),
    Ratio("attention 16x16x1024x64 bfloat16, causal, forward", "torch", 0.8),
    Ratio("attention 4x16x4096x128 bfloat16, causal, forward", "torch", 0.6),
    Ratio("LSTM of 128, 64 steps of 32, forward", "torch", 1.0),
    Ratio("LSTM of 128, 64 steps of 32, both ways", "torch", 1.0),
    Ratio("LSTM of 512, 64 steps of 32, forward", "torch", 1.0),
    Ratio("LSTM of 512, 64 steps of 32, both ways", "torch", 1.0),
]


def rows(size):
    """Return the rows for a key of SIZES."""
    heads, layers = SIZES[size]
    table = [lstm(sizes, backward) for sizes in layers for backward in (False, True)]
    for shape in heads:  # after the layers: what they should be takes NumPy a minute
        for dtype in (F32, BFLOAT16):
            table += [attention(shape, dtype, backward) for backward in (False, True)]
    return table


def ways(backward):
    return "both ways" if backward else "forward"


# Attention ----------------------------------------------------------------------------------------


def attend(module, query, key, value):
    return module.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def attend_and_return(module, query, key, value, gradient):
    """The gradient of the query; those of key and value are computed, too."""
    leaves = [x.detach().requires_grad_() for x in (query, key, value)]
    return module.autograd.grad(attend(module, *leaves), leaves, gradient)[0]


def attention(shape, dtype, backward):
    items, heads, length, features = shape
    work = items * heads * length * (length + 1) * features * 2  # half of the keys, two products
    kind = dtype if dtype == BFLOAT16 else "float32"
    return Row(
        name=f"attention {'x'.join(map(str, shape))} {kind}, causal, {ways(backward)}",
        work=work * 3.5 if backward else work,
        unit="FLOP/s",
        operands=[(shape, dtype)] * (4 if backward else 3),
        out=None,
        calls=dict.fromkeys(("pyvecgpu", "torch"), attend_and_return if backward else attend),
        expected=by_heads(attention_gradient if backward else attention_result),
        error_allowed=2e-2 if dtype == BFLOAT16 else 2e-5,
    )


def by_heads(function):
    """Return the function of whole operands that computes head by head."""

    def compute(*operands):
        flat = [x.reshape(-1, *x.shape[-2:]) for x in operands]
        results = [
            function(*[x.astype(np.float64) for x in one]) for one in zip(*flat, strict=True)
        ]
        return np.stack(results).reshape(operands[0].shape)

    return compute


def weights_of(query, key):
    scores = query @ key.T / math.sqrt(query.shape[-1])
    scores[~np.tri(*scores.shape, dtype=bool)] = -np.inf
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attention_result(query, key, value):
    return weights_of(query, key) @ value


def attention_gradient(query, key, value, gradient):
    weights = weights_of(query, key)
    slopes = gradient @ value.T
    slopes = weights * (slopes - (slopes * weights).sum(axis=-1, keepdims=True))
    return slopes @ key / math.sqrt(query.shape[-1])


# Recurrent layers ---------------------------------------------------------------------------------


def weights_of_layer(width):
    """Return weights and biases in the order of both libraries' parameters, the same every time."""
    rng = np.random.default_rng(width)
    shapes = [(4 * width, width)] * 2 + [(4 * width,)] * 2
    return [(rng.uniform(-1, 1, shape) * width**-0.5).astype(F32) for shape in shapes]


@functools.cache
def layer_of(module, width, device):
    """Return a library's layer of these weights."""
    layer = module.nn.LSTM(width, width, device=device)
    names = [name for name, _ in layer.named_parameters()]
    arrays = [module.asarray(x, device=device) for x in weights_of_layer(width)]
    layer.load_state_dict(dict(zip(names, arrays, strict=True)))
    return layer


def outputs(module, x):
    with module.no_grad():
        return layer_of(module, x.shape[-1], x.device)(x)[0]


def outputs_and_return(module, x):
    """The gradient of the inputs, of the sum of the outputs; weights have theirs as well."""
    layer = layer_of(module, x.shape[-1], x.device)
    leaf = x.detach().requires_grad_()
    return module.autograd.grad(layer(leaf)[0].sum(), [leaf, *layer.parameters()])[0]


def lstm(sizes, backward):
    width, steps, count = sizes
    work = steps * count * 4 * width * width * 2 * 2
    return Row(
        name=f"LSTM of {width}, {steps} steps of {count}, {ways(backward)}",
        work=work * 3 if backward else work,
        unit="FLOP/s",
        operands=[((steps, count, width), F32)],
        out=None,
        calls=dict.fromkeys(("pyvecgpu", "torch"), outputs_and_return if backward else outputs),
        expected=lambda x: through_steps(x, backward),
        error_allowed=2e-3,  # a peer may round products to TF32
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def through_steps(x, backward):
    """Return the outputs in float64, or the gradient of the inputs."""
    into, through, *biases = [one.astype(np.float64) for one in weights_of_layer(x.shape[-1])]
    h = c = np.zeros(x.shape[1:])
    steps, results = [], []
    for part in x.astype(np.float64) @ into.T + sum(biases):
        gates = np.split(part + h @ through.T, 4, axis=-1)
        i, f, o = (sigmoid(gates[n]) for n in (0, 1, 3))
        g = np.tanh(gates[2])
        steps.append((i, f, g, o, c))
        c = f * c + i * g
        h = o * np.tanh(c)
        results.append(h)
    if not backward:
        return np.stack(results)
    return np.stack(back_through(steps, through)) @ into


def back_through(steps, through):
    """Return the gradients of the gates' inputs, of the sum of all outputs."""
    results, dh, dc = [], 0.0, 0.0
    for i, f, g, o, before in reversed(steps):
        c = np.tanh(f * before + i * g)
        dh = dh + 1.0
        dc = dc + dh * o * (1 - c * c)
        slopes = [dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g * g)]
        results.append(np.concatenate([*slopes, dh * c * o * (1 - o)], axis=-1))
        dh, dc = results[-1] @ through, dc * f
    return results[::-1]
