"""Modules: what they find among their attributes, states, copies, moves, printing."""

import copy
import pickle
import re

import numpy as np
import pytest
from helpers import ROOT, bits, put

import pyvecgpu as vg
from pyvecgpu import nn


class Net(nn.Module):
    """Every kind of attribute; the last module is one that is there already."""

    def __init__(self, device="cpu"):
        super().__init__()
        self.first = nn.Linear(3, 4, device=device)
        self.scale = nn.Parameter(vg.ones(4, device=device))
        self.register_buffer("mean", vg.zeros(4, device=device))
        self.register_buffer("cache", vg.ones(2, device=device), persistent=False)
        self.register_parameter("nothing", None)
        self.plain = vg.ones(7, device=device)
        self.inner = nn.ModuleDict({"a": nn.Sequential(nn.Linear(4, 2, device=device))})
        self.again = self.first

    def forward(self, x):
        return self.inner["a"](self.first(x) * self.scale - self.mean)


OWN = ["scale", "first.weight", "first.bias", "inner.a.0.weight", "inner.a.0.bias"]


def test_what_a_module_finds(device):
    net = Net(device)
    assert [name for name, _ in net.named_parameters()] == OWN
    assert [p.shape for p in net.parameters()] == [(4,), (4, 3), (4,), (2, 4), (2,)]
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in net.parameters())
    assert [name for name, _ in net.named_parameters("net", recurse=False)] == ["net.scale"]
    assert [name for name, _ in net.named_parameters(remove_duplicate=False)][-2:] == [
        "again.weight",
        "again.bias",
    ]
    assert [name for name, _ in net.named_buffers()] == ["mean", "cache"]
    assert [name for name, _ in net.named_modules()] == [
        "", "first", "inner", "inner.a", "inner.a.0",
    ]  # fmt: skip
    assert [name for name, _ in net.named_children()] == ["first", "inner"]
    assert [*net.children()] == [net.first, net.inner] and len([*net.modules()]) == 5
    assert net.get_submodule("inner.a.0") is net.inner["a"][0] and net.get_submodule("") is net
    with pytest.raises(AttributeError, match=r"Net has no module 'inner\.b'"):
        net.get_submodule("inner.b")
    assert "scale" in dir(net) and net.nothing is None and not isinstance(net.plain, nn.Parameter)
    y = net(put(device, np.ones((5, 3), np.float32)))
    assert y.shape == (5, 2) and str(y.device) == str(net.scale.device)
    y.sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in net.parameters())


def test_attributes_change():
    net = Net()
    del net.scale
    with pytest.raises(AttributeError, match="'Net' has no attribute 'scale'"):
        _ = net.scale
    net.scale = nn.Parameter(vg.zeros(2))
    assert [name for name, _ in net.named_parameters()] == OWN
    net.first = None
    assert [name for name, _ in net.named_parameters()] == [OWN[0], *OWN[3:], *LAST]
    net.mean = vg.ones(3)
    assert next(net.buffers()).shape == (3,)
    with pytest.raises(TypeError, match="'scale' is one of the module's parameters"):
        net.scale = vg.ones(2)
    net.plain = nn.Linear(1, 1)
    assert net.plain in [*net.children()]
    net.plain = nn.Parameter(vg.ones(1))
    assert net.plain not in [*net.children()] and "plain" in dict(net.named_parameters())
    del net.plain
    assert not hasattr(net, "plain")


LAST = ["again.weight", "again.bias"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda n: n.register_buffer("a.b", None), KeyError, "no dot"),
        (lambda n: n.register_buffer("forward", None), KeyError, "exists"),
        (lambda n: n.register_buffer(1, None), TypeError, "a string"),
        (lambda n: n.register_buffer("x", 1.0), TypeError, "an Array or None"),
        (lambda n: n.register_parameter("x", vg.ones(1)), TypeError, "a Parameter or None"),
        (lambda n: n.add_module("x", 3), TypeError, "a Module or None"),
        (lambda n: n.train(1), ValueError, "True or False"),
        (lambda n: n(1) if False else nn.Module()(1), NotImplementedError, "no forward"),
        (lambda n: nn.Parameter(vg.arange(3)), TypeError, "arrays of floats"),
        (lambda n: n.to(dtype="int32"), TypeError, "parameters are of floats"),
        (lambda n: n.to("int32"), TypeError, "parameters are of floats"),
        (lambda n: n.to("here"), ValueError, "'here' is neither a device nor a dtype"),
        (lambda n: nn.Sequential(3), TypeError, "a Module is wanted"),
        (lambda n: nn.ModuleList([n])[1], IndexError, "index 1 of 1"),
        (lambda n: nn.ModuleDict({"x": 3}), TypeError, "a Module is wanted"),
        (lambda n: nn.Linear(-1, 3), ValueError, "in_features"),
        (lambda n: nn.Linear(1.5, 3), TypeError, "in_features"),
        (lambda n: nn.Linear(1, 3, activation="cos"), ValueError, "activation"),
        (lambda n: nn.Dropout(1.5), ValueError, "from 0.0 to 1.0"),
        (lambda n: nn.Embedding(3, 2, padding_idx=3), ValueError, "padding_idx=3"),
        (lambda n: nn.Flatten()(vg.ones(3)), ValueError, "Flatten"),
    ],
)  # fmt: skip
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call(Net())


def test_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"'layer' is assigned before super\(\)"):
        Early()

    class Plain(nn.Module):
        def __init__(self):
            self.width = 3
            super().__init__()

    assert Plain().width == 3 and not Plain().state_dict()


# States -------------------------------------------------------------------------------------------

KEYS = ["scale", "mean", "first.weight", "first.bias", "inner.a.0.weight", "inner.a.0.bias", *LAST]


def test_state_dict(device):
    net, other = Net(device), Net(device)
    state = net.state_dict()
    assert list(state) == KEYS and not any(x.requires_grad for x in state.values())
    with vg.no_grad():
        net.mean += 2.0  # state_dicts share memory
    assert state["mean"].tolist() == [2.0] * 4
    before = [*other.parameters()]
    keys = other.load_state_dict({name: x.numpy() for name, x in state.items()})
    assert keys == ([], []) and keys.missing_keys == []
    assert all(a is b for a, b in zip(before, other.parameters(), strict=True))
    for name, value in other.state_dict().items():
        assert np.array_equal(value.numpy(), state[name].numpy()), name
    with vg.no_grad():
        other.scale *= 3.0
    assert net.scale.tolist() == [1.0] * 4, "loading copies"
    wide = {name: x.astype("float64") for name, x in state.items()}
    other.load_state_dict(wide)
    assert other.scale.dtype == np.float32 and other.scale.tolist() == [1.0] * 4
    assert net.load_state_dict(net.state_dict()) == ([], [])
    assert net.state_dict(prefix="x.").keys() == {f"x.{name}" for name in KEYS}


def test_a_state_that_does_not_fit_changes_nothing(device):
    net = Net(device)
    before = {name: x.numpy() for name, x in net.state_dict().items()}
    state = {name: x + 1.0 for name, x in before.items()}
    del state["mean"], state["first.bias"]
    state |= {"scale": np.ones(5), "other": np.ones(1), "inner.a.0.bias": np.ones((2, 1))}
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    for text in ("'mean'", "'first.bias'", "'other'", "'scale' has (5,), not (4,)",
                 "'inner.a.0.bias' has (2, 1), not (2,)"):  # fmt: skip
        assert text in str(error.value), text
    with pytest.raises(RuntimeError, match="'scale' has"):
        net.load_state_dict(state, strict=False)
    state["scale"], state["inner.a.0.bias"] = np.ones(4), np.ones(2)
    for wrong, kind in ((np.array(["x"] * 4), TypeError), ("x", TypeError), (None, TypeError)):
        with pytest.raises(kind, match=r"'first\.weight'"):
            net.load_state_dict(state | {"first.weight": wrong}, strict=False)
    with pytest.raises(TypeError, match="a state_dict is a dict"):
        net.load_state_dict([1])
    for name, value in net.state_dict().items():
        assert np.array_equal(value.numpy(), before[name]), name
    keys = net.load_state_dict({"scale": np.full(4, 5.0), "x": 1}, strict=False)
    assert keys.unexpected_keys == ["x"] and keys.missing_keys == KEYS[1:]
    assert net.scale.tolist() == [5.0] * 4


def test_copies(device):
    net = Net(device).eval()
    net.scale.requires_grad_(False)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net.to("cpu")))):
        assert [name for name, _ in other.named_parameters()] == OWN and not other.training
        assert not other.scale.requires_grad and other.first.weight.requires_grad
        assert other.again is other.first
        with vg.no_grad():
            other.scale[...] = 9.0
        assert net.scale.tolist() == [1.0] * 4
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    assert len([*copy.deepcopy(tied).parameters()]) == 3


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("order", [1, -1])
def test_what_is_shared_is_shared_again_when_unpickled(device, protocol, order):
    """Parameters and buffers of two modules, and those that an optimiser has."""
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2), nn.BatchNorm1d(2))
    net.to(device)
    net[2].weight, net[3].running_mean = net[0].weight, net[1].running_mean
    net[0].bias.requires_grad_(False)
    adam = vg.optim.Adam(net.parameters(), lr=0.1)
    pair = pickle.loads(pickle.dumps((net, adam)[::order], protocol))
    other, steps = pair[::order]
    assert other[2].weight is other[0].weight and other[3].running_mean is other[1].running_mean
    assert isinstance(other[0].weight, nn.Parameter) and other[0].weight is not net[0].weight
    params = [*other.parameters()]
    assert [p.requires_grad for p in params] == [p.requires_grad for p in net.parameters()]
    found = steps.param_groups[0]["params"]
    assert [id(p) for p in found] == [id(p) for p in params] and len(params) == 7
    assert list(other.state_dict()) == list(net.state_dict())
    x = put(device, np.array([[1.0, 2.0], [3.0, 5.0]], np.float32))
    for one, optimiser in ((net, adam), (other, steps)):
        (one(x) ** 2).sum().backward()
        optimiser.step()
    for p, q in zip(net.parameters(), params, strict=True):
        assert bits(p.detach()) == bits(q.detach())
    assert other[2].weight.tolist() == other[0].weight.tolist()


# All of it ----------------------------------------------------------------------------------------


def test_train_eval_apply_and_gradients(device):
    net, seen = Net(device), []
    assert net.training and net.eval() is net
    assert not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())
    assert net.apply(seen.append) is net and seen[-1] is net and len(seen) == 5
    net(put(device, np.ones((5, 3), np.float32))).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(not p.grad.numpy().any() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    net.requires_grad_(False)
    assert [name for name, _ in net.named_parameters()] == OWN
    assert not net(put(device, np.ones((5, 3), np.float32))).requires_grad
    net.requires_grad_()
    assert net(put(device, np.ones((5, 3), np.float32))).requires_grad


def test_to(device):
    net = Net("cpu")
    x = np.ones((5, 3))
    net(vg.asarray(x, "float32", device="cpu")).sum().backward()
    held, wanted = [*net.parameters()], net.first.weight.grad.numpy()
    assert net.to(device) is net and all(p.device == vg.Device(device) for p in net.parameters())
    assert net.to(dtype="float64") is net.to("cpu").to(device, "float64")
    assert [*net.parameters()] and all(a is b for a, b in zip(held, net.parameters(), strict=True))
    assert {str(a.dtype) for a in (*net.parameters(), *net.buffers())} == {"float64"}
    assert held[1].grad.dtype == np.float64 and np.array_equal(held[1].grad.numpy(), wanted)
    assert net(put(device, x)).dtype == np.float64
    assert net.to(vg.float32).first.weight.dtype == np.float32


def test_containers():
    layers = [nn.Linear(i + 1, i + 2) for i in range(4)]
    net = nn.Sequential(*layers)
    assert net[1] is layers[1] and net[-1] is layers[3] and len(net) == 4
    assert [*net[1:3]] == layers[1:3] and net(vg.ones((2, 1))).shape == (2, 5)
    del net[0]
    assert [*net] == layers[1:] and next(iter(net.state_dict())) == "0.weight"
    net[0] = nn.Identity()
    assert net.append(nn.Flatten()) is net and len(net) == 4
    named = nn.Sequential({"a": layers[0], "b": layers[1]})
    assert list(named.state_dict()) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert named[1] is layers[1] and named.b is layers[1]
    several = nn.ModuleList(layers[:2]).append(layers[3])
    several.insert(1, layers[2])
    assert [*several] == [layers[0], layers[2], layers[1], layers[3]]
    assert list(several.state_dict())[2] == "1.weight" and len(several[2:]) == 2
    by_name = nn.ModuleDict({"x": layers[0]})
    by_name["y"] = layers[1]
    by_name["x"] = layers[2]
    assert [*by_name] == [*by_name.keys()] == ["x", "y"] and "x" in by_name and len(by_name) == 2
    assert dict(by_name.items())["x"] is layers[2] and [*by_name.values()][1] is layers[1]
    del by_name["x"]
    assert "x" not in by_name


def test_repr():
    net = nn.Sequential(nn.Linear(2, 3, bias=False, activation="relu"), nn.Dropout(0.25))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=False, activation='relu')\n"
        "  (1): Dropout(p=0.25)\n)"
    )
    assert repr(Net()).startswith(
        "Net(\n  scale=(4,)\n  (first): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (inner): ModuleDict(\n    (a): Sequential(\n      (0): Linear("
    )
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
    assert repr(nn.Embedding(3, 2, -1)) == "Embedding(3, 2, padding_idx=2)"
    assert repr(nn.CrossEntropyLoss(ignore_index=0)).startswith("CrossEntropyLoss(ignore_index=0")
    assert repr(nn.GELU("tanh")) == "GELU(approximate='tanh')" and repr(nn.ReLU()) == "ReLU()"


# First values -------------------------------------------------------------------------------------


def test_first_values(device):
    vg.random.seed(3)
    layer = nn.Linear(100, 200, device=device)
    for array, bound in ((layer.weight, 0.1), (layer.bias, 0.1)):
        values = array.detach().numpy()
        assert 0.95 * bound < np.abs(values).max() <= bound and abs(values.mean()) < 0.1 * bound
    vg.random.seed(3)
    again = nn.Linear(100, 200, device=device)
    assert np.array_equal(again.weight.detach().numpy(), layer.weight.detach().numpy())
    weight = nn.Embedding(300, 20, padding_idx=1, device=device).weight.detach().numpy()
    assert not weight[1].any() and abs(weight.std() - 1.0) < 0.05 and weight[2].any()


@pytest.mark.parametrize(
    ("name", "options", "std"),
    [
        ("uniform_", {"a": -2.0, "b": 2.0}, 4 / np.sqrt(12)),
        ("normal_", {"std": 3.0}, 3.0),
        ("xavier_uniform_", {}, np.sqrt(2 / (60 * 4 + 80 * 4))),
        ("xavier_normal_", {"gain": 2.0}, 2 * np.sqrt(2 / (60 * 4 + 80 * 4))),
        ("kaiming_uniform_", {"nonlinearity": "relu"}, np.sqrt(2 / (60 * 4))),
        ("kaiming_uniform_", {"a": 5**0.5}, np.sqrt(1 / (3 * 60 * 4))),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "tanh"}, 5 / 3 / np.sqrt(80 * 4)),
    ],
)
def test_init(device, name, options, std):
    weight = nn.Parameter(vg.zeros((80, 60, 2, 2), device=device))
    call = getattr(nn.init, name)
    assert call(weight, generator=vg.random.default_rng(5), **options) is weight
    values = weight.detach().numpy()
    assert weight.requires_grad and weight.is_leaf
    assert abs(values.mean()) < 0.03 * std and abs(values.std() / std - 1.0) < 0.03
    if "uniform" in name:
        assert 0.99 * std < np.abs(values).max() / np.sqrt(3) <= 1.0001 * std
    call(weight, generator=vg.random.default_rng(5), **options)
    assert np.array_equal(weight.detach().numpy(), values)


def test_init_of_constants():
    weight = nn.Parameter(vg.zeros((2, 2)))
    assert nn.init.constant_(weight, 3.0).tolist() == [[3.0] * 2] * 2
    assert nn.init.ones_(weight).tolist() == [[1.0] * 2] * 2
    assert nn.init.zeros_(weight).tolist() == [[0.0] * 2] * 2
    assert nn.init.calculate_gain("leaky_relu", 1.0) == 1.0
    assert nn.init.calculate_gain("relu") == 2**0.5 and nn.init.calculate_gain("conv2d") == 1.0
    for call, error in (
        (lambda: nn.init.calculate_gain("x"), ValueError),
        (lambda: nn.init.xavier_normal_(vg.zeros(3)), ValueError),
        (lambda: nn.init.kaiming_normal_(vg.zeros((3, 3)), mode="x"), ValueError),
        (lambda: nn.init.zeros_(np.zeros(3)), TypeError),
    ):
        with pytest.raises(error):
            call()


def test_the_example_of_the_docs():
    page = (ROOT / "docs" / "nn.md").read_text(encoding="utf-8")
    names, losses = {}, []
    code = page.split("```python\n")[1].split("```")[0]
    code = code.replace("    loss.backward()\n", "    loss.backward()\n    losses.append(loss)\n")
    names["losses"] = losses
    exec(code, names)
    assert len(losses) == 20 and 1.8 < losses[0].item() < 3.0
    assert losses[-1].item() < 0.7 * losses[0].item()
    assert names["state"]["norm.num_batches_tracked"] == 20
    assert [*names["state"]][:2] == ["conv1.weight", "conv1.bias"] and not names["net"].training
    for name in re.findall(r"`([A-Z]\w+)`", page.split("## What there is")[1].split("Most are")[0]):
        assert name in nn.__all__, name
