"""RNN, LSTM, GRU and attention against NumPy's loops; gradients against differences."""

import itertools

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put
from test_nn_losses import near

import pyvecgpu as vg
from pyvecgpu import nn

F = nn.functional
RNG = np.random.default_rng(13)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_step(x, states, w, activation=np.tanh):
    return [activation(x @ w["ih"].T + w["bih"] + states[0] @ w["hh"].T + w["bhh"])]


def lstm_step(x, states, w):
    gates = x @ w["ih"].T + w["bih"] + states[0] @ w["hh"].T + w["bhh"]
    i, f, g, o = np.split(gates, 4, axis=-1)
    cell = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(cell), cell]


def gru_step(x, states, w):
    xr, xz, xn = np.split(x @ w["ih"].T + w["bih"], 3, axis=-1)
    hr, hz, hn = np.split(states[0] @ w["hh"].T + w["bhh"], 3, axis=-1)
    z = sigmoid(xz + hz)
    return [(1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * states[0]]


STEPS = {"RNN": (rnn_step, 1, 1), "LSTM": (lstm_step, 4, 2), "GRU": (gru_step, 3, 1)}


def reference(step, state, x, first, layers, directions, bias):
    """The output (length, N, ...) and the last states, step by step."""
    ends = []
    for layer in range(layers):
        outputs = []
        for ending in (f"l{layer}", f"l{layer}_reverse")[:directions]:
            weights = {
                "ih": state[f"weight_ih_{ending}"],
                "hh": state[f"weight_hh_{ending}"],
                "bih": state[f"bias_ih_{ending}"] if bias else 0.0,
                "bhh": state[f"bias_hh_{ending}"] if bias else 0.0,
            }
            states = [s[len(ends)] for s in first]
            steps = []
            for part in x[::-1] if ending.endswith("reverse") else x:
                states = step(part, states, weights)
                steps.append(states[0])
            outputs.append(np.stack(steps[::-1] if ending.endswith("reverse") else steps))
            ends.append(states)
        x = np.concatenate(outputs, axis=-1)
    return x, [np.stack(each) for each in zip(*ends, strict=True)]


def made(name, layers, directions, bias, device, **options):
    return getattr(nn, name)(
        3, 2, layers, bias=bias, bidirectional=directions == 2, device=device, dtype="float64",
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent(device, name, layers, directions, bias):
    step, gates, count = STEPS[name]
    layer = made(name, layers, directions, bias, device)
    state = {key: x.numpy() for key, x in layer.state_dict().items()}
    shapes, width = {}, 3
    for n in range(layers):
        for ending in (f"l{n}", f"l{n}_reverse")[:directions]:
            shapes |= {f"weight_ih_{ending}": (gates * 2, width)}
            shapes |= {f"weight_hh_{ending}": (gates * 2, 2)}
            if bias:
                shapes |= {f"bias_{part}_{ending}": (gates * 2,) for part in ("ih", "hh")}
        width = 2 * directions
    assert {key: x.shape for key, x in state.items()} == shapes and list(state) == list(shapes)
    assert all(np.abs(x).max() <= 2**-0.5 for x in state.values())
    x = RNG.normal(size=(4, 2, 3))
    first = [RNG.normal(size=(layers * directions, 2, 2)) for _ in range(count)]
    nothing = [np.zeros_like(s) for s in first]
    for given in (first, nothing):
        hx = tuple([put(device, s) for s in given]) if count > 1 else put(device, given[0])
        output, last = layer(put(device, x), None if given is nothing else hx)
        wanted, ends = reference(step, state, x, given, layers, directions, bias)
        near(output, wanted)
        for found, end in zip(last if count > 1 else [last], ends, strict=True):
            near(found, end)

    def both(x, *states):
        output, last = layer(x, states if count > 1 else states[0])
        return [output, *(last if count > 1 else [last])]

    check(both, x, *first, device=device)
    if layers == directions == 1:
        check_twice(both, x[:2], *first, device=device)


@pytest.mark.parametrize("name", STEPS)
def test_gradients_of_weights(device, name):
    layer = made(name, 2, 2, True, device)
    x = put(device, RNG.normal(size=(3, 2, 3)))
    names = [key for key, _ in layer.named_parameters()]
    values = [p.detach().numpy() for p in layer.parameters()]

    def of_weights(*weights):
        for key, weight in zip(names, weights, strict=True):
            layer.__dict__["_parameters"][key] = weight
        return layer(x)[0]

    check(of_weights, *values, device=device)


@pytest.mark.parametrize("name", STEPS)
def test_layouts_of_sequences(device, name):
    count = STEPS[name][2]
    x = RNG.normal(size=(4, 2, 3))
    layer = made(name, 1, 1, True, device)
    turned = made(name, 1, 1, True, device, batch_first=True)
    turned.load_state_dict(layer.state_dict())
    output, last = layer(put(device, x))
    other, end = turned(put(device, x.swapaxes(0, 1)))
    near(other, output.detach().numpy().swapaxes(0, 1))
    alone, single = layer(put(device, x[:, 1]))
    near(alone, output.detach().numpy()[:, 1])
    states = [(last, end, single)] if count == 1 else [*zip(last, end, single, strict=True)]
    for a, b, c in states:
        near(b, a.detach().numpy())
        near(c, a.detach().numpy()[:, 1])


def test_relu_and_dropout_between_layers(device):
    layer = made("RNN", 2, 1, True, device, nonlinearity="relu", dropout=1.0)
    state = {key: x.numpy() for key, x in layer.state_dict().items()}
    x, first = RNG.normal(size=(4, 2, 3)), [np.zeros((2, 2, 2))]

    def step(x, states, w):
        return rnn_step(x, states, w, lambda z: np.maximum(z, 0))

    layer.eval()
    near(layer(put(device, x))[0], reference(step, state, x, first, 2, 1, True)[0])
    state["weight_ih_l1"] = state["weight_ih_l1"] * 0.0  # what dropout leaves nothing of
    layer.train()
    near(layer(put(device, x))[0], reference(step, state, x, first, 2, 1, True)[0])


def test_mistakes_of_sequences(device):
    layer = made("LSTM", 1, 1, True, device)
    x = put(device, np.ones((4, 2, 3)))
    for call, text in (
        (lambda: layer(x[:, :, :2]), "an input of shape"),
        (lambda: layer(x[:0]), "no steps"),
        (lambda: layer(x, (x,)), "hx is 2 states"),
        (lambda: layer(x, (x, x)), "hx of shape"),
        (lambda: nn.RNN(3, 2, nonlinearity="gelu"), "nonlinearity"),
        (lambda: nn.GRU(3, 0), "hidden_size is 1 or more"),
        (lambda: nn.MultiheadAttention(5, 2), "is not 2 heads"),
        (lambda: F.scaled_dot_product_attention(x, x[:, :1], x), "of shapes"),
        (lambda: F.scaled_dot_product_attention(x, x, x, x, is_causal=True), "beside"),
        (lambda: nn.MultiheadAttention(3, 1, device=device)(x, x[0], x), "of shapes"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    assert repr(layer).startswith("LSTM(3, 2, num_layers=1, bias=True, batch_first=False")


# Attention ----------------------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q, k, v, mask=None, scale=None):
    """Row by row; mask: numbers (..., L, S)."""
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores = np.einsum("...le,...se->...ls", q, k) * scale
    scores = scores if mask is None else scores + mask
    return np.einsum("...ls,...sv->...lv", softmax(scores), v)


CAUSAL = np.where(np.tril(np.ones((4, 5), bool)), 0.0, -np.inf)
KEPT = RNG.random((4, 5)) < 0.7
KEPT[:, 0] = True
MASKS = {
    "none": ({}, None),
    "causal": ({"is_causal": True}, CAUSAL),
    "bools": ({"attn_mask": KEPT}, np.where(KEPT, 0.0, -np.inf)),
    "numbers": ({"attn_mask": KEPT * 0.5}, KEPT * 0.5),
    "scale": ({"scale": 0.3}, None),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_scaled_dot_product_attention(device, batch, mask):
    options, numbers = MASKS[mask]
    q, k, v = (RNG.normal(size=(*batch, *s)) for s in ((4, 6), (5, 6), (5, 2)))
    wanted = attention(q, k, v, numbers, options.get("scale"))
    call = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)  # noqa: E731
    near(call(*(put(device, x) for x in (q, k, v))), wanted)
    check(call, q, k, v, device=device)
    halves = [put(device, x.astype(np.float16)) for x in (q, k, v)]
    assert call(*halves).dtype == np.float16
    near(call(*halves).astype("float64"), wanted, 2e-2)


def test_attention_of_fewer_keys_heads_and_dropout(device):
    q, k, v = (RNG.normal(size=s) for s in ((2, 4, 3, 2), (2, 2, 5, 2), (2, 2, 5, 2)))
    arrays = [put(device, x) for x in (q, k, v)]
    wanted = attention(q, k.repeat(2, axis=1), v.repeat(2, axis=1))
    near(F.scaled_dot_product_attention(*arrays, enable_gqa=True), wanted)
    with pytest.raises(ValueError, match="3 heads of the query for 2"):
        F.scaled_dot_product_attention(arrays[0][:, :3], *arrays[1:], enable_gqa=True)
    dropped = F.scaled_dot_product_attention(*arrays, dropout_p=1.0, enable_gqa=True)
    assert not dropped.numpy().any()
    nothing = np.zeros((3, 5), bool)
    none = F.scaled_dot_product_attention(arrays[1], *arrays[1:], attn_mask=nothing[:1])
    assert np.isnan(none.numpy()).all(), "a query without any key"


def multihead(state, q, k, v, heads, mask=None):
    """Head by head, batch first; mask: numbers (N, heads, L, S)."""
    e = q.shape[-1]
    weights = [state[f"{x}_proj_weight"] for x in "qkv"] if "q_proj_weight" in state else (
        np.split(state["in_proj_weight"], 3)
    )  # fmt: skip
    biases = np.split(state.get("in_proj_bias", np.zeros(3 * e)), 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True))
    parts = []
    for head in range(heads):
        part = slice(head * e // heads, (head + 1) * e // heads)
        own = None if mask is None else mask[:, head]
        parts.append(attention(q[..., part], k[..., part], v[..., part], own))
    joined = np.concatenate(parts, axis=-1)
    return joined @ state["out_proj.weight"].T + state.get("out_proj.bias", 0.0)


def test_keys_of_attention():
    def shapes(layer):
        return {key: x.shape for key, x in layer.state_dict().items()}

    own = {"out_proj.weight": (6, 6), "out_proj.bias": (6,)}
    layer = nn.MultiheadAttention(6, 2)
    assert shapes(layer) == {"in_proj_weight": (18, 6), "in_proj_bias": (18,)} | own
    assert not layer.in_proj_bias.detach().numpy().any()
    assert not layer.out_proj.bias.detach().numpy().any()
    assert 0.4 < np.abs(layer.in_proj_weight.detach().numpy()).max() <= 0.5
    assert shapes(nn.MultiheadAttention(6, 2, bias=False, kdim=4, vdim=5)) == {
        "q_proj_weight": (6, 6), "k_proj_weight": (6, 4), "v_proj_weight": (6, 5),
        "out_proj.weight": (6, 6),
    }  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 4, "vdim": 5}], ids=str)
def test_multihead_attention(device, options):
    layer = nn.MultiheadAttention(6, 2, batch_first=True, device=device, dtype="float64", **options)
    state = {key: RNG.normal(size=x.shape) * 0.5 for key, x in layer.state_dict().items()}
    layer.load_state_dict(state)
    widths = (6, options.get("kdim", 6), options.get("vdim", 6))
    q, k, v = (RNG.normal(size=(2, n, w)) for n, w in zip((4, 5, 5), widths, strict=True))
    arrays = [put(device, x) for x in (q, k, v)]
    output, weights = layer(*arrays)
    near(output, multihead(state, q, k, v, 2))
    assert weights is None
    padding = np.zeros((2, 5), bool)
    padding[1, 3:] = True
    mask = np.where(padding, -np.inf, 0.0)[:, None, None, :] + np.zeros((2, 2, 4, 5))
    near(layer(*arrays, key_padding_mask=padding)[0], multihead(state, q, k, v, 2, mask))
    causal = np.broadcast_to(CAUSAL, (2, 2, 4, 5))
    near(layer(*arrays, attn_mask=CAUSAL < 0)[0], multihead(state, q, k, v, 2, causal))
    near(layer(*arrays, is_causal=True)[0], multihead(state, q, k, v, 2, causal))
    both = layer(*arrays, padding, attn_mask=np.array(causal).reshape(4, 4, 5))[0]
    near(both, multihead(state, q, k, v, 2, mask + causal))
    check(lambda q, k, v: layer(q, k, v, padding, is_causal=True)[0], q, k, v, device=device)
    alone = layer(*(x[0] for x in arrays), put(device, padding[1]))[0]
    near(alone, multihead(state, q[:1], k[:1], v[:1], 2, mask[1:])[0])


def test_masks_of_other_shapes(device):
    """Every shape but the two of each mask is refused, also one of as many elements."""
    layer = nn.MultiheadAttention(4, 2, batch_first=True, device=device)
    q, k = put(device, np.ones((2, 3, 4), "f")), put(device, np.ones((2, 5, 4), "f"))
    shapes = {p for n in (1, 2, 3) for p in itertools.product((1, 2, 3, 4, 5, 10, 15), repeat=n)}
    for name, known in (("key_padding_mask", {(2, 5)}), ("attn_mask", {(3, 5), (4, 3, 5)})):
        for shape in shapes:
            options = {name: put(device, np.zeros(shape, bool))}
            if shape in known:
                assert layer(q, k, k, **options)[0].shape == (2, 3, 4)
            else:
                with pytest.raises(ValueError, match=f"MultiheadAttention: {name} has the shape"):
                    layer(q, k, k, **options)
        with pytest.raises(TypeError, match=f"{name} is of bools or floats, not of int8"):
            layer(q, k, k, **{name: put(device, np.zeros(next(iter(known)), np.int8))})


def test_self_attention(device):
    layer = nn.MultiheadAttention(6, 3, device=device, dtype="float64")
    state = {key: x.numpy() for key, x in layer.state_dict().items()}
    x = RNG.normal(size=(4, 2, 6))
    array, turned = put(device, x), x.swapaxes(0, 1)
    wanted = multihead(state, turned, turned, turned, 3).swapaxes(0, 1)
    output, weights = layer(array, array, array, need_weights=True)
    near(output, wanted)
    near(layer(array, put(device, x), put(device, x))[0], wanted)  # three products for one
    assert weights.shape == (2, 4, 4)
    near(weights.sum(axis=-1), np.ones((2, 4)))
    each = layer(array, array, array, need_weights=True, average_attn_weights=False)[1]
    assert each.shape == (2, 3, 4, 4)
    near(weights, each.detach().numpy().mean(axis=1))
    alone, single = layer(array[:, 0], array[:, 0], array[:, 0], need_weights=True)
    near(alone, wanted[:, 0])
    near(single, weights.detach().numpy()[0])
    check(lambda x: layer(x, x, x)[0], x, device=device)
    layer(array, array, array)[0].sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    assert vg.is_grad_enabled()
