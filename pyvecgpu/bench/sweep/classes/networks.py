"""Convolutions, pools, attention and recurrent layers, forward or with all gradients."""

import math

import numpy as np

from ...timing import BFLOAT16
from ..case import Case, Operand, moved
from .learning import WAYS, expected_of, of_network

MOST = 4 * 10**10  # operations of a case


def window_of(draw, axes):
    """Return kernel, stride, padding and dilation, the same for each axis."""
    kernel = draw.choice((1, 2, 3, 3, 3, 5, 7))
    return kernel, draw.choice((1, 1, 2)), draw.randint(0, kernel // 2), 1


def sides_of(inner, axes):
    return (inner,) if axes == 1 else (max(1, math.isqrt(inner)),) * 2


def left_of_window(side, window):
    kernel, stride, padding, dilation = window
    return (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def convolution(draw):
    """A convolution of one or two axes, in groups or not, with a bias."""
    axes, way = draw.choice((1, 2, 2)), draw.choice(WAYS)
    dtype = draw.choice(("float32", "float32", BFLOAT16, "float16"))
    items, size = draw.size(1, 128), draw.size(10**4, 10**7)
    channels, out = draw.choice((1, 3, draw.size(4, 512))), draw.size(1, 512)
    groups = draw.choice((1, 1, 1, math.gcd(channels, out)))
    window = window_of(draw, axes)
    sides = sides_of(max(1, size // (items * channels)), axes)
    left = tuple(left_of_window(side, window) for side in sides)
    weight = (out, channels // groups, *[window[0]] * axes)
    result = (items, out, *left)
    if min(left) < 1 or 2 * math.prod(result) * math.prod(weight[1:]) > MOST:
        return convolution(draw)
    operands = [
        Operand(dtype, (items, channels, *sides)),
        Operand(dtype, weight, 9),
        Operand(dtype, (out,), 13),
    ]

    def function(m, x, weight, bias):
        of_axes = m.nn.functional.conv1d if axes == 1 else m.nn.functional.conv2d
        return of_axes(x, weight, bias, window[1], window[2], window[3], groups)

    text = f"{dtype} {operands[0].shape} by {weight}, stride {window[1]}, padding {window[2]}"
    return of_network("convolution", text, function, dtype, operands, 3, result, way)


def pool(draw):
    """Largest elements or means of windows."""
    axes, way, kind = draw.choice((1, 2, 2)), draw.choice(WAYS), draw.choice(("max", "avg"))
    dtype = draw.choice(("float32", "float32", BFLOAT16, "float16"))
    items, channels = draw.size(1, 64), draw.size(1, 256)
    sides = sides_of(max(1, draw.size(10**4, 2 * 10**7) // (items * channels)), axes)
    window = draw.choice((2, 2, 3, 3, 5)), draw.choice((1, 2, 2)), draw.randint(0, 1), 1
    left = tuple(left_of_window(side, window) for side in sides)
    if min(left) < 1:
        return pool(draw)
    operands = [Operand(dtype, (items, channels, *sides))]

    def function(m, x):
        return getattr(m.nn.functional, f"{kind}_pool{axes}d")(x, *window[:3])

    text = (
        f"{kind} {dtype} {operands[0].shape}, {window[0]}, stride {window[1]}, padding {window[2]}"
    )
    result = (items, channels, *left)
    return of_network("pool", text, function, dtype, operands, 1, result, way)


def attention(draw):
    """Attention of several heads, causal or not."""
    way, dtype = draw.choice(WAYS), draw.choice(("float32", BFLOAT16, "float16"))
    features = draw.choice((16, 32, 64, 64, 80, 128))
    queries, keys = draw.size(1, 4096), draw.size(16, 4096)
    is_causal = draw.random() < 0.5
    if is_causal:
        queries = keys
    heads = max(1, min(256, draw.size(10**7, 10**10) // (4 * queries * keys * features)))
    of_query, of_key = (heads, queries, features), (heads, keys, features)
    if way == "gradient" and heads * max(queries, keys) * features > 3 * 10**7:
        return attention(draw)
    split = math.gcd(heads, draw.choice((1, 2, 4)))
    shapes = [(split, heads // split, *shape[1:]) for shape in (of_query, of_key)]
    # aligned: a kernel of torch's ends with a fault where they are not. Of their own: keys that are
    # the queries' neighbours give large scores, and gradients that are what is left of such
    apart = 64 * math.ceil(max(map(math.prod, shapes)) / 64)
    operands = [Operand(dtype, shapes[at > 0], apart * at) for at in range(3)]

    def function(m, query, key, value):
        attend = m.nn.functional.scaled_dot_product_attention
        return attend(query, key, value, is_causal=is_causal)

    width = "float32" if dtype == "float32" else "halves"
    text = f"{dtype} {shapes[0]} to {keys}" + " causal" * is_causal
    group = f"attention {width}"
    return of_network(group, text, function, dtype, operands, 3, shapes[0], way)


def recurrent(draw):
    """All outputs of an RNN, LSTM or GRU of one layer over the steps of some sequences."""
    name, way = draw.choice(("RNN", "LSTM", "GRU")), draw.choice(WAYS)
    steps, rows = draw.size(2, 128), draw.size(1, 256)
    features, width = draw.size(4, 1024), draw.choice((draw.size(4, 1024), 2 ** draw.randint(4, 9)))
    if 8 * steps * rows * width * (features + width) > MOST / 2:
        return recurrent(draw)
    known = {}  # of each library: its layer

    def layer_of(m, x):
        if (m.__name__, x.dtype) not in known:
            layer = getattr(m.nn, name)(features, width, device=x.device, dtype=x.dtype)
            random = np.random.default_rng(width)
            state = {
                key: m.asarray(
                    (random.uniform(-1, 1, tuple(one.shape)) * width**-0.5).astype(np.float32),
                    device=x.device,
                    dtype=x.dtype,
                )
                for key, one in layer.named_parameters()
            }
            layer.load_state_dict(state)
            known[m.__name__, x.dtype] = layer
        return known[m.__name__, x.dtype]

    def forward(m, x):
        with m.no_grad():
            return layer_of(m, x)(x)[0]

    def backward(m, x, gradient):
        layer, leaf = layer_of(m, x), x.detach().requires_grad_()
        return m.autograd.grad(layer(leaf)[0], [leaf, *layer.parameters()], gradient)

    operands, result = [Operand("float32", (steps, rows, features))], (steps, rows, width)
    call = forward
    if way == "gradient":
        operands.append(Operand("float32", result, 5))
        call = backward
    products = {"RNN": 1, "GRU": 3, "LSTM": 4}[name] * (3 if way == "gradient" else 1)
    return Case(
        group=f"recurrent {name} {way}",
        text=f"{steps} steps of {rows} of {features} to {width}",
        operands=operands,
        call=call,
        peer=call,
        expected=expected_of(call, "float32"),
        bytes=moved(operands, result, "float32"),
        operations=2 * steps * rows * width * (features + width) * products,
        rate="float32",
    )


CLASSES = {convolution: 0.6, pool: 0.7, attention: 0.8, recurrent: 0.6}
