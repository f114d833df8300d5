"""A Linear with a ReLU behind it as one layer, and layers of which some gradients are wanted."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import observe

nn = vg.nn
DTYPES = ["float16", "bfloat16", "float32", "float64"]


class Chain(nn.Module):
    """The same modules, one after the other, whatever they are."""

    def __init__(self, modules):
        super().__init__()
        self.several = nn.ModuleList(modules)

    def forward(self, x):
        for module in self.several:
            x = module(x)
        return x


def made(device, dtype, bias=True):
    """A Sequential, a Chain of the same modules, and an input with zeros among the results."""
    net = nn.Sequential(
        nn.Linear(5, 9, bias), nn.ReLU(), nn.Linear(9, 8), nn.Linear(8, 6), nn.ReLU(), nn.ReLU(),
        nn.Linear(6, 4, activation="tanh"), nn.ReLU(), nn.Linear(4, 3),
    )  # fmt: skip
    net.to(device=device, dtype=dtype)
    with vg.no_grad():
        net[0].weight[:3] = vg.zeros((3, 5), dtype=dtype, device=device)
        if bias:
            net[0].bias[:2] = vg.zeros(2, dtype=dtype, device=device)
    x = put(device, np.random.default_rng(1).standard_normal((2, 7, 5))).astype(dtype)
    return net, Chain([*net]), x


def widened(x):
    """Values as NumPy has them; -0.0 is 0.0."""
    return helpers.widened(x.detach().astype("float64").numpy()) + 0.0


def results(net, x):
    """The result of a network, and all gradients of the sum of its squares."""
    x = x.detach().requires_grad_()
    net.zero_grad()
    y = net(x)
    (y * y).sum().backward()
    return [widened(one) for one in (y, x.grad, *[p.grad for p in net.parameters()])]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False])
def test_bits_are_those_of_the_modules_one_by_one(device, dtype, bias):
    net, chain, x = made(device, dtype, bias)
    for one, other in zip(results(net, x), results(chain, x), strict=True):
        helpers.assert_same(one, other)
    with vg.no_grad():
        helpers.assert_same(widened(net(x)), widened(chain(x)))
    with vg.autocast():
        helpers.assert_same(widened(net(x)), widened(chain(x)))


def test_gradients_of_gradients(device):
    net, chain, x = made(device, "float64")
    found = []
    for one in (net, chain):
        z = x.detach().requires_grad_()
        (slope,) = vg.autograd.grad((one(z) ** 3).sum(), [z], create_graph=True)
        found.append(vg.autograd.grad((slope * slope).sum(), [z, *net.parameters()][:3]))
    for first, second in zip(*found, strict=True):
        helpers.assert_within(widened(first), widened(second), 1e-12)


def test_what_is_not_put_together(device):
    class Twice(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    class Leaky(nn.ReLU):
        def forward(self, x):
            return vg.where(x > 0, x, 0.5 * x)

    x = put(device, np.full((1, 2), -1.0, np.float32))
    ones = vg.ones((2, 2), device=device)
    for first, second, expected in [
        (Twice(2, 2, False), nn.ReLU(), 0.0),
        (Twice(2, 2, False), Leaky(), -2.0),
        (nn.Linear(2, 2, False), Leaky(), -1.0),
        (nn.Linear(2, 2, False, activation="relu"), nn.ReLU(), 0.0),
        (nn.Linear(2, 2, False), nn.Identity(), -2.0),
    ]:
        net = nn.Sequential(first, second).to(device=device)
        first.load_state_dict({"weight": ones})
        assert net(x).tolist() == [[expected] * 2]
    first, second = nn.Linear(2, 2, False).to(device=device), nn.ReLU()
    first.load_state_dict({"weight": ones})
    first.forward = lambda x: x + 3  # an instance's own
    assert nn.Sequential(first, second)(x).tolist() == [[2.0, 2.0]]
    del first.forward
    second.forward = lambda x: x - 1
    assert nn.Sequential(first, second)(x).tolist() == [[-3.0, -3.0]]
    assert nn.Sequential(first)(x).tolist() == [[-2.0, -2.0]]
    assert nn.Sequential()(x) is x


def test_a_result_that_was_changed_since(device):
    """The slope is read from the layer's result, which a change in place would spoil."""
    net, _, x = made(device, "float32")
    y = nn.Sequential(net[0], net[1])(x)
    y += 1.0
    with pytest.raises(RuntimeError, match="dense: an array that its gradient needs was changed"):
        y.sum().backward()


@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
@pytest.mark.parametrize("tracked", [(1, 1, 1), (0, 1, 1), (1, 0, 0), (0, 0, 1), (0, 1, 0)])
def test_only_gradients_that_are_wanted(device, tracked, activation):
    rng = np.random.default_rng(3)
    hosts = [rng.standard_normal(shape) for shape in ((6, 5), (4, 5), (4,))]

    def run(which):
        arrays = [put(device, x) for x in hosts]
        for array, is_tracked in zip(arrays, which, strict=True):
            if is_tracked:
                array.requires_grad_()
        loss = (vg.dense(*arrays, activation) ** 2).sum()
        calls = []
        with observe(calls.append):
            loss.backward()
        (call,) = [c for c in calls if c.method == "dense_backward"]
        assert call.static["wanted"] == tuple(map(bool, which))
        assert len(call.results) == sum(which)
        return [x.grad for x in arrays]

    for found, expected, is_tracked in zip(run(tracked), run((1, 1, 1)), tracked, strict=True):
        assert (found is not None) == bool(is_tracked)
        if is_tracked:
            helpers.assert_same(found, expected.numpy())


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
def test_gradients_are_of_their_operands(device, shape):
    """In shape and dtype, whatever the dtypes are together."""
    dtypes = ("float16", "float32", "float64")
    for of_x, of_weight, of_bias in itertools.product(dtypes, dtypes, (*dtypes, None)):
        x = put(device, np.ones(shape, of_x)).requires_grad_()
        weight = put(device, np.ones((4, 5), of_weight)).requires_grad_()
        bias = of_bias and put(device, np.ones(4, of_bias)).requires_grad_()
        vg.sum(vg.dense(x, weight, bias)).backward()
        for operand in (x, weight, *((bias,) if of_bias else ())):
            assert (operand.grad.shape, operand.grad.dtype) == (operand.shape, operand.dtype)
        assert (x.grad.numpy() == 4).all()
        assert (weight.grad.numpy() == x.size / 5).all()


@pytest.mark.devices("sim", "cuda")
def test_launches_of_a_step(device):
    """Of a perceptron: forward 3, loss 2, backward 9, one step."""
    net = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(),
                        nn.Linear(16, 10)).to(device=device)  # fmt: skip
    optimiser = vg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x = put(device, np.ones((3, 20), np.float32))
    labels = put(device, np.array([1, 5, 0]))

    def step():
        loss = nn.functional.cross_entropy(net(x), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    step()
    before = vg.counters(device)
    step()
    after = vg.counters(device)
    assert after["launches"] - before["launches"] == 15
    assert after["waits"] == before["waits"] and after["live_arrays"] == before["live_arrays"]
    assert after["copies_to_device"] == before["copies_to_device"]
