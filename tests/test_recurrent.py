"""Recurrent layers as one operation of all steps: values, gradients, launches, graphs."""

import functools

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import BFLOAT16, put, stepped, transposed

import pyvecgpu as vg
from pyvecgpu.dispatch import apply, observe
from pyvecgpu.native.abi import Cell

DTYPES = ["float64", "float32", "float16"] + (["bfloat16"] if BFLOAT16 is not None else [])
TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 8e-2}
GATES = {Cell.CELL_TANH: 1, Cell.CELL_RELU: 1, Cell.CELL_LSTM: 4, Cell.CELL_GRU: 3}
CELLS = [*GATES]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def forward(cell, inputs, weight, bias, h, c, backwards):
    """In float64: h and c before, between and behind the steps, in the order of the inputs."""
    h, c = np.asarray(h, np.float64), None if c is None else np.asarray(c, np.float64)
    weight = np.asarray(weight, np.float64)
    added = 0.0 if bias is None else np.asarray(bias, np.float64)
    hs, cs = [h], [c]
    for x in np.asarray(inputs, np.float64)[:: -1 if backwards else 1]:
        products = h @ weight.T + added
        if cell == Cell.CELL_LSTM:
            i, f, g, o = np.split(x + products, 4, axis=-1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        elif cell == Cell.CELL_GRU:
            (xr, xz, xn), (r, z, n) = (np.split(y, 3, axis=-1) for y in (x, products))
            z = sigmoid(xz + z)
            h = (1 - z) * np.tanh(xn + sigmoid(xr + r) * n) + z * h
        else:
            h = np.tanh(x + products) if cell == Cell.CELL_TANH else np.maximum(x + products, 0)
        hs.append(h)
        cs.append(c)
    order = slice(None, None, -1) if backwards else slice(None)
    return np.stack(hs[order]), None if c is None else np.stack(cs[order])


class Drawn:
    """One layer: its sizes, and values in a dtype."""

    def __init__(self, seed, dtype):
        rng = self.rng = np.random.default_rng([17, seed])
        self.cell = CELLS[seed % 4]
        self.backwards = bool(rng.integers(0, 2))
        steps, rows, width = (
            int(rng.choice(n)) for n in ((1, 2, 5), (1, 3, 33, 130), (1, 4, 20, 100, 150))
        )  # all steps in one launch, each in one, and in two; 100: of a part of shared memory
        gates, self.dtype, self.sizes = GATES[self.cell] * width, dtype, (steps, rows, width)
        self.inputs = self.values((steps, rows, gates))
        self.weight = self.values((gates, width), 0.5 / np.sqrt(width))
        self.bias = self.values((gates,)) if rng.integers(0, 2) else None
        self.h = self.values((rows, width))
        self.c = self.values((rows, width)) if self.cell == Cell.CELL_LSTM else None

    def values(self, shape, scale=1.0):
        values = self.rng.normal(size=shape) * scale
        return np.asarray(put("cpu", values).astype(self.dtype).numpy())

    def operands(self):
        return self.inputs, self.weight, self.bias, self.h, self.c


def place(device, x, how):
    make = (put, stepped, transposed)[how % 3]
    return None if x is None else make(device, x)


def assert_near(found, wanted, dtype, what):
    found = np.asarray(found.numpy(), np.float64)
    assert found.shape == wanted.shape, what
    limit = TOLERANCES[dtype] * max(1.0, np.max(np.abs(wanted), initial=0.0))
    assert np.max(np.abs(found - wanted), initial=0.0) <= limit, what


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("part", range(3))
def test_random_layers(device, dtype, part):
    for seed in range(part * 24, part * 24 + 24):
        case = Drawn(seed, dtype)
        what = f"seed {seed}, {case.cell.name}, {case.sizes}, backwards {case.backwards}"
        arrays = [place(device, x, seed + i) for i, x in enumerate(case.operands())]
        call = (case.cell, *arrays, case.backwards)
        hs, cs = forward(case.cell, *case.operands(), case.backwards)
        backend = arrays[0].backend
        found = apply(backend, "recurrent", *call, False)
        kept = apply(backend, "recurrent", *call, True)
        assert len(found) == 1 + (cs is not None)
        assert len(kept) == len(found) + (case.cell >= Cell.CELL_LSTM)
        assert str(found[0].dtype) == dtype
        assert_near(found[0], hs, dtype, what)
        if cs is not None:
            assert_near(found[1], cs, dtype, what)
        for one, other in zip(found, kept, strict=False):
            assert np.array_equal(one.numpy(), other.numpy()), what


def gradients_by_cpu(case, *gradients):
    """In float64 on the CPU, of the same operands."""
    wide = [widened(x) for x in case.operands()]
    kept = apply(wide[0].backend, "recurrent", case.cell, *wide, case.backwards, True)
    return back(case, wide[1], kept, *[widened(x) for x in gradients])


def widened(x):
    return None if x is None else put("cpu", np.asarray(x, np.float64))


def back(case, weight, kept, gradient, dlast, dstate):
    hiddens, *rest = kept
    states = rest.pop(0) if case.c is not None else None
    gates = rest[0] if rest else None
    call = (gradient, dlast, dstate, weight, hiddens, states, gates, case.backwards)
    return apply(weight.backend, "recurrent_backward", case.cell, *call)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_random_layers(device, dtype):
    """On every device what float64 on the CPU gives, which differences are compared with below."""
    for seed in range(100, 148):
        case = Drawn(seed, dtype)
        if case.cell == Cell.CELL_RELU and dtype in ("float16", "bfloat16"):
            continue  # rounding decides on which side of its kink a number is
        what = f"seed {seed}, {case.cell.name}, {case.sizes}, backwards {case.backwards}"
        arrays = [place(device, x, seed + i) for i, x in enumerate(case.operands())]
        kept = apply(arrays[0].backend, "recurrent", case.cell, *arrays, case.backwards, True)
        gradient, dlast = case.values(case.sizes), case.values(case.sizes[1:])
        dstate = None if case.c is None else case.values(case.sizes[1:])
        given = [place(device, x, seed + i) for i, x in enumerate((gradient, dlast, dstate))]
        found = back(case, arrays[1], kept, *given)
        wanted = gradients_by_cpu(case, gradient, dlast, dstate)
        assert len(found) == len(wanted) == {1: 2, 4: 3, 3: 3}[GATES[case.cell]]
        for x, y in zip(found, wanted, strict=True):
            assert str(x.dtype) == dtype
            assert_near(x, y.numpy(), dtype, what)


LAYERS = {
    "tanh": lambda **options: vg.nn.RNN(2, 3, **options),
    "relu": lambda **options: vg.nn.RNN(2, 3, nonlinearity="relu", **options),
    "LSTM": lambda **options: vg.nn.LSTM(2, 3, **options),
    "GRU": lambda **options: vg.nn.GRU(2, 3, **options),
}


def made(name, device, **options):
    vg.random.seed(3)
    return LAYERS[name](device=device, dtype="float64", **options)


def with_weights(layer, weights):
    """The layer with other Arrays for its parameters."""
    names = [key for key, _ in layer.named_parameters()]
    layer.__dict__["_parameters"].update(zip(names, weights, strict=True))
    return layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_against_differences(device, name, bias):
    """By inputs, states, weights and biases, once and twice."""
    rng = np.random.default_rng(5)
    layer = made(name, device, bias=bias)
    x, h, c = (rng.normal(size=s) for s in ((3, 2, 2), (1, 2, 3), (1, 2, 3)))
    states = (h, c) if name == "LSTM" else (h,)
    weights = [p.detach().numpy() + rng.normal(size=p.shape) * 0.3 for p in layer.parameters()]

    def call(x, *rest):
        hx = rest[: len(states)]
        with_weights(layer, rest[len(states) :])
        output, last = layer(x, hx if len(hx) > 1 else hx[0])
        return [output, *(last if len(hx) > 1 else [last])]

    operands = (x, *states, *weights)
    check(call, *operands, device=device)
    short = (x[:2, :1], *(s[:, :1] for s in states), *weights)
    check_twice(call, *short, device=device)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_that_can_be_differentiated_are_the_same(device, name):
    layer = made(name, device, bidirectional=True)
    x = put(device, np.random.default_rng(6).normal(size=(4, 2, 2))).requires_grad_()
    leaves = [x, *layer.parameters()]
    total = (layer(x)[0] ** 2).sum()
    fused = vg.autograd.grad(total, leaves, retain_graph=True)
    composed = vg.autograd.grad(total, leaves, create_graph=True)
    for a, b in zip(fused, composed, strict=True):
        assert b.requires_grad
        assert np.max(np.abs(a.numpy() - b.detach().numpy())) <= 1e-12


@pytest.mark.parametrize("name", LAYERS)
def test_some_operands_alone(device, name):
    """Only the weights, only the inputs; and no tape without any."""
    rng = np.random.default_rng(7)
    layer = made(name, device)
    x = put(device, rng.normal(size=(3, 2, 2)))
    layer(x)[0].sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    for p in layer.parameters():
        p.requires_grad_(False)
    assert not layer(x)[0].requires_grad
    leaf = put(device, x.numpy()).requires_grad_()
    _, last = layer(leaf)
    (last[0] if name == "LSTM" else last).sum().backward()
    assert leaf.grad.numpy().any()
    assert all(p.grad is not None and not p.requires_grad for p in layer.parameters())


def test_states_of_another_dtype(device):
    layer = vg.nn.GRU(2, 3, device=device)
    x, h = put(device, np.ones((2, 1, 2), np.float32)), put(device, np.ones((1, 1, 3)))
    output, last = layer(x, h)
    assert output.dtype == last.dtype == vg.float64


def test_a_result_that_was_written_to_is_told(device):
    layer = made("LSTM", device)
    output, _ = layer(put(device, np.ones((2, 1, 2))))
    with vg.no_grad():
        output[...] = 0.0
    with pytest.raises(RuntimeError, match="in place"):
        output.sum().backward()


@pytest.mark.parametrize("width", [256, 512, 520])
def test_sums_of_many_units(device, width):
    """Equal terms err the most: they are not added in one chain."""
    for value in (0.1, 0.3, 0.7):
        inputs, h = (
            put(device, np.zeros((1, 1, width), np.float32)),
            np.ones((1, width), np.float32),
        )
        weight = np.full((width, width), value, np.float32)
        operands = (inputs, put(device, weight), None, put(device, h), None)
        (hiddens,) = apply(inputs.backend, "recurrent", Cell.CELL_RELU, *operands, False, False)
        error = hiddens.numpy()[1] / (float(weight[0, 0]) * width) - 1
        assert np.abs(error).max() <= (width**0.5 + 8) * 2.0**-24  # as of products


def launched(device, work):
    before = vg.counters(device)
    result = work()
    after = vg.counters(device)
    changed = {name for name in before if after[name] != before[name]}
    assert changed <= {"launches", "live_arrays"}, f"no wait and no copy: {changed}"
    return after["launches"] - before["launches"], result


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    "rows, width, forth, back", [(4, 16, 0, 0), (2, 260, 1, 2), (4100, 16, 2, 2)]
)
@pytest.mark.parametrize("cell", CELLS)
def test_launches_of_a_step(device, cell, rows, width, forth, back):
    """None of a small weight; one of a larger one and few rows; else a product and a kernel.

    A single step has no use for a weight that is laid out anew.
    """
    counts = []
    if width > 100 and cell >= Cell.CELL_LSTM:
        width = 150
    for steps in (1, 3, 5):
        rng = np.random.default_rng(8)
        gates = GATES[cell] * width
        shapes = ((steps, rows, gates), (gates, width), (gates,), (rows, width), (rows, width))
        arrays = [put(device, rng.normal(size=s).astype("f4")) for s in shapes]
        if cell != Cell.CELL_LSTM:
            arrays[4] = None
        backend = arrays[0].backend

        def call_forth(arrays=arrays, backend=backend):
            return apply(backend, "recurrent", cell, *arrays, False, True)

        there, kept = launched(device, call_forth)
        states = kept[1] if cell == Cell.CELL_LSTM else None
        gates = kept[-1] if cell >= Cell.CELL_LSTM else None
        g = put(device, np.ones((steps, rows, width), np.float32))
        call = (cell, g, None, None, arrays[1], kept[0], states, gates, False)
        back_again = functools.partial(apply, backend, "recurrent_backward", *call)
        again, _ = launched(device, back_again)
        counts.append((there, again))
    (one, _), (few, few_back), (many, many_back) = counts
    assert few - one == (forth * 2 or 1)
    assert many - few == forth * 2 and many_back - few_back == back * 2
    assert few <= (forth or 1) * 3 + 2 and few_back <= (back or 1) * 3 + 1


@pytest.mark.devices("sim")
@pytest.mark.usefixtures("simulated_cards")
@pytest.mark.parametrize("dtype", DTYPES)
def test_how_much_shared_memory_a_card_has_changes_no_bit(device, dtype):
    """What is not kept there is read from the cache, in the same order."""
    for seed in (0, 1, 2, 3):
        case = Drawn(seed, dtype)
        case.sizes = steps, rows, width = 3, 2, 100
        gates = GATES[case.cell] * width
        case.inputs, case.weight = case.values((steps, rows, gates)), case.values((gates, width))
        case.h, case.bias = case.values((rows, width)), case.values((gates,))
        case.c = None if case.c is None else case.values((rows, width))
        gradient, results = case.values((steps, rows, width)), []
        for card in vg.devices():
            if not str(card).startswith(device):
                continue
            arrays = [place(card, x, 0) for x in case.operands()]
            kept = apply(arrays[0].backend, "recurrent", case.cell, *arrays, case.backwards, True)
            found = back(case, arrays[1], kept, place(card, gradient, 0), None, None)
            results.append([x.numpy().tobytes() for x in (*kept, *found)])
        assert len(results) > 1 and all(one == results[0] for one in results)


@pytest.mark.parametrize("name", LAYERS)
def test_weights_have_one_product_of_all_steps(device, name):
    layer = made(name, device)
    output, _ = layer(put(device, np.ones((5, 2, 2))))
    seen = []
    with observe(lambda call: seen.append((call.method, [x.shape for x in call.inputs.values()]))):
        output.sum().backward()
    rows = layer.weight_hh_l0.shape[0]
    products = [shapes for method, shapes in seen if method == "matmul"]
    assert products == [[(rows, 10), (10, 3)]]
    assert [method for method, _ in seen].count("recurrent_backward") == 1


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("name", LAYERS)
def test_recorded_steps(device, name):
    """A graph of a layer there and back computes with what is in its arrays then."""
    layer = made(name, device)
    x, total = put(device, np.zeros((4, 2, 2))), put(device, np.zeros(()))
    grads = put(device, np.zeros(layer.weight_hh_l0.shape))

    def work():
        output, _ = layer(x)
        value = (output * output).sum()
        (slope,) = vg.autograd.grad(value, [layer.weight_hh_l0])
        total[...] = value.detach()
        grads[...] = slope

    work()
    replay = x.backend.record(work)
    values = np.random.default_rng(9).normal(size=x.shape)
    x[...] = values
    replay()
    wanted, slope = total.numpy().copy(), grads.numpy().copy()
    work()
    assert np.array_equal(total.numpy(), wanted) and np.array_equal(grads.numpy(), slope)
    assert slope.any()


@pytest.mark.parametrize("cell", CELLS)
def test_what_is_refused(device, cell):
    width = 3
    rows = GATES[cell] * width
    inputs, weight, bias = (vg.ones(s, device=device) for s in ((2, 4, rows), (rows, width), rows))
    h = vg.ones((4, width), device=device)
    c = h if cell == Cell.CELL_LSTM else None
    backend = h.backend
    good = [inputs, weight, bias, h, c]
    kept = apply(backend, "recurrent", cell, *good, False, True)
    for number, wrong, error in (
        (0, inputs[:, 0], ValueError),
        (0, inputs[:0], ValueError),
        (0, inputs[..., 1:], ValueError),
        (0, vg.astype(inputs, "float64"), TypeError),
        (1, weight[1:], ValueError),
        (1, vg.astype(weight, "int32"), TypeError),
        (2, bias[1:], ValueError),
        (3, h[1:], ValueError),
        (3, vg.astype(h, "float16"), TypeError),
        (4, None if c is not None else h, ValueError),
    ):
        operands = [wrong if i == number else x for i, x in enumerate(good)]
        with pytest.raises(error):
            apply(backend, "recurrent", cell, *operands, False, True)
    states = kept[1] if c is not None else None
    gates = kept[-1] if cell >= Cell.CELL_LSTM else None
    g = vg.ones((2, 4, width), device=device)
    good = [g, h, c, weight, kept[0], states, gates]
    apply(backend, "recurrent_backward", cell, *good, False)
    for number, wrong in (
        (0, g[:, 1:]),
        (1, h[1:]),
        (3, weight[:, 1:]),
        (4, kept[0][1:]),
        (6, None if gates is not None else h),
    ):
        operands = [wrong if i == number else x for i, x in enumerate(good)]
        with pytest.raises(ValueError):
            apply(backend, "recurrent_backward", cell, *operands, False)


def test_no_rows_at_all(device):
    layer = made("LSTM", device)
    x = put(device, np.ones((3, 0, 2))).requires_grad_()
    output, (h, c) = layer(x)
    assert (output.shape, h.shape, c.shape) == ((3, 0, 3), (1, 0, 3), (1, 0, 3))
    output.sum().backward()
    assert x.grad.shape == x.shape and not layer.weight_hh_l0.grad.numpy().any()
