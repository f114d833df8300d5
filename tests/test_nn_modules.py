"""Modules: what they find among their attributes, states, copies, moves, printing."""

import copy
import math
import pickle
import re

import numpy as np
import pytest
from helpers import FLOATS as FLOAT_DTYPES
from helpers import ROOT, bits, put, widened

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
    kept = net.state_dict(prefix="x.", keep_vars=True)
    assert [*kept] == [f"x.{name}" for name in KEYS]
    assert kept["x.mean"] is net.mean and kept["x.again.bias"] is net.first.bias
    with pytest.raises(TypeError):
        net.state_dict("x.")


def test_a_state_that_does_not_fit_changes_nothing(device):
    net = Net(device)
    before = {name: x.numpy() for name, x in net.state_dict().items()}
    state = {name: x + 1.0 for name, x in before.items()}
    del state["mean"], state["first.bias"]
    state |= {"scale": np.ones(5), "other": np.ones(1), "inner.a.0.bias": np.ones((2, 1))}
    with pytest.raises(vg.StateError) as error:
        net.load_state_dict(state)
    assert isinstance(error.value, ValueError) and isinstance(error.value, RuntimeError)
    for text in ("'mean'", "'first.bias'", "'other'", "'scale' has (5,), not (4,)",
                 "'inner.a.0.bias' has (2, 1), not (2,)"):  # fmt: skip
        assert text in str(error.value), text
    with pytest.raises(vg.StateError, match=r"'scale' has.*'inner\.a\.0\.bias' has"):
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


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", ["float16", "float64", "NumPy", "kept"])
def test_a_state_that_is_assigned(device, kind, strict):
    """It takes the place of parameters and buffers: same memory, dtype and device."""
    dtype = kind if kind.startswith("float") else "float32"
    net, other = Net(device if kind == "NumPy" else "cpu"), Net(device).to(dtype=dtype)
    net.scale.requires_grad_(False)
    with vg.no_grad():
        other.first.weight[...] = 5.0
        other.mean[...] = 7.0
    state = other.state_dict(keep_vars=kind == "kept")
    if kind == "NumPy":
        state = {name: x.numpy() for name, x in state.items()}
    before = [*net.parameters()]
    if not strict:
        del state["again.weight"], state["inner.a.0.bias"]
    keys = net.load_state_dict(state, strict, assign=True)
    assert keys.missing_keys == ([] if strict else ["inner.a.0.bias", "again.weight"])
    assert net.first.weight.tolist() == [[5.0] * 3] * 4 and net.mean.tolist() == [7.0] * 4
    assert [name for name, _ in net.named_parameters()] == OWN and net.again is net.first
    assert [p.requires_grad for p in net.parameters()] == [False, True, True, True, True]
    assert all(p.grad is None and isinstance(p, nn.Parameter) for p in net.parameters())
    new = [*net.parameters()][: 5 if strict else 4]
    assert not any(p is old for p, old in zip(new, before, strict=False))
    assert (net.inner["a"][0].bias is before[4]) is not strict
    for p in (*new, net.mean):
        assert p.dtype == dtype and p.device == vg.Device(device)
    with vg.no_grad():
        net.first.weight += 1.0
        net.mean += 1.0
    shared = kind != "NumPy"
    assert (other.first.weight[0, 0].item(), other.mean[0].item()) == ((6, 8) if shared else (5, 7))
    assert (net.first.weight is other.first.weight) is (kind == "kept")


def test_what_is_tied_stays_so_when_assigned(device):
    def made():
        net = nn.Sequential(nn.Linear(2, 2, device=device), nn.Linear(2, 2, device=device))
        net[1].weight = net[0].weight
        return net

    one, other, given = made(), made(), made().state_dict()
    for net, state in ((one, given), (other, {"1.weight": given["1.weight"]})):
        net.load_state_dict(state, strict=False, assign=True)
        assert net[0].weight is net[1].weight and len([*net.parameters()]) == 3
        assert bits(net[0].weight.detach()) == bits(given["0.weight"])


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("is_array", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_values_of_a_real_parameter(device, assign, is_array, dtype):
    """The key is named, and what comes before it is not loaded either."""
    net = nn.Sequential(nn.Linear(2, 1, device=device), nn.Linear(1, 2, device=device))
    before = [bits(x) for x in net.state_dict().values()]
    held = [*net.parameters()]
    state = {name: np.full(x.shape, 3, "float32") for name, x in net.state_dict().items()}
    state["1.weight"] = state["1.weight"].astype(dtype)
    if is_array:
        state = {name: put(device, x) for name, x in state.items()}
    with pytest.raises(TypeError, match=rf"'1\.weight'.*{dtype}"):
        net.load_state_dict(state, assign=assign)
    assert [bits(x) for x in net.state_dict().values()] == before
    assert all(p is old for p, old in zip(net.parameters(), held, strict=True))


def test_a_state_that_cannot_be_assigned_changes_nothing(device):
    net, other = Net(device), Net(device)
    held = [*net.parameters(), *net.buffers()]
    other.scale.requires_grad_(False)
    for wrong, error in ((vg.ones(5, device=device), vg.StateError), (np.arange(4), TypeError)):
        state = other.state_dict(keep_vars=True) | {"first.bias": wrong}
        with pytest.raises(error, match=r"'first\.bias'"):
            net.load_state_dict(state, assign=True)
        assert not other.scale.requires_grad
        now = [*net.parameters(), *net.buffers()]
        assert all(p is old for p, old in zip(now, held, strict=True))
    net.first.bias.requires_grad_(False)
    net.load_state_dict({"first.bias": np.arange(4)}, strict=False, assign=True)
    assert net.first.bias.dtype == np.int64


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


FLOATS = [*map(str, FLOAT_DTYPES)]


def first_values(device, name, shape, dtype, **options):
    """What a function of nn.init writes to a Parameter, which stays one, as float64."""
    weight = nn.Parameter(vg.zeros(shape, dtype=dtype, device=device))
    version = weight._version
    assert getattr(nn.init, name)(weight, **options) is weight
    assert weight.requires_grad and weight.is_leaf and weight._version != version
    assert str(weight.dtype) == dtype and weight.device == vg.Device(device)
    return widened(weight.detach().numpy()).astype("float64")


HOST_MADE = [
    ("trunc_normal_", {"std": 0.5}),
    ("orthogonal_", {"gain": 2.0}),
    ("sparse_", {"sparsity": 0.3}),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "options"), HOST_MADE)
def test_values_of_the_host_are_the_same_on_all_devices(device, dtype, name, options):
    """And the next ones of a generator are others; without one they are the process's own."""
    for shape in ((7, 5), (3, 8)):
        place, other = vg.random.default_rng(5), vg.random.default_rng(5)
        ours = first_values(device, name, shape, dtype, generator=place, **options)
        cpu = first_values("cpu", name, shape, dtype, generator=other, **options)
        assert ours.tobytes() == cpu.tobytes() and place.state == other.state
        again = first_values(device, name, shape, dtype, generator=place, **options)
        assert again.tobytes() != ours.tobytes()
    shared = []
    for seed in (1, 1, 2):
        vg.random.seed(seed)
        shared.append(first_values(device, name, (4, 4), dtype, **options).tobytes())
    assert shared[0] == shared[1] != shared[2]


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [(0, 1, -2, 2), (1, 2, -2, 2), (0, 0.02, -2, 2), (3, 0.5, -1, 0), (-3, 0.5, 0, 1), (0, 1, 5, 6),
     (0, 1, -6, -5), (0, 1, 9, 20), (0, 1, -20, -9), (1, 2, 0, 100), (0, 1, 1, 1), (0, 5, -1, 0)],
)  # fmt: skip
def test_truncated_normal_numbers(device, mean, std, a, b):
    """Their shares below points between a and b are those of the cut distribution."""
    options = {"mean": mean, "std": std, "a": a, "b": b, "generator": vg.random.default_rng(3)}
    values = first_values(device, "trunc_normal_", (100, 200), "float64", **options).ravel()
    assert a <= values.min() <= values.max() <= b
    flip = 1 if a <= mean else -1  # so that a tail lies below the mean

    def below(x):
        return math.erfc(flip * (mean - x) / (std * math.sqrt(2)))

    for x in np.quantile(values, [0.1, 0.3, 0.5, 0.7, 0.9]) if a < b else ():
        expected = (below(x) - below(a)) / (below(b) - below(a))
        assert abs((values <= x).mean() - expected) < 4 * 0.5 / np.sqrt(values.size), x


@pytest.mark.parametrize("a", [-1000, -100, 0, 30, 40])
def test_truncated_normal_numbers_at_the_ends(device, a):
    """Shares that are 0 or 1, or that round to it, have numbers too."""

    class Ends:
        def random(self, shape, dtype, device):
            return vg.asarray([0.0, 1 - 2**-53], dtype=dtype, device=device)

    for low, high in ((a, 1000), (-1000, -a)):
        options = {"a": low, "b": high, "generator": Ends()}
        values = first_values(device, "trunc_normal_", (2,), "float64", **options)
        assert (low <= values).all() and (values <= high).all() and (np.abs(values) <= 41).all()


def test_truncated_normal_numbers_by_default(device):
    values = first_values(device, "trunc_normal_", (100, 100), "float32")
    assert abs(values.std() - 0.8796) < 0.02 and np.abs(values).max() <= 2


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("gain", [1, 0.5, -2.0])
@pytest.mark.parametrize(
    "shape", [(4, 4), (9, 3), (3, 9), (1, 6), (6, 1), (4, 2, 3, 3), (20, 2, 3)]
)
def test_orthogonal_rows_or_columns(device, dtype, gain, shape):
    generator = vg.random.default_rng(11)
    q = first_values(device, "orthogonal_", shape, dtype, gain=gain, generator=generator)
    q = q.reshape(shape[0], -1)
    product = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    tolerance = 8 * gain**2 * float(vg.finfo(dtype).eps)
    assert np.abs(product - gain**2 * np.eye(len(product))).max() <= tolerance


def test_orthogonal_matrices_are_evenly_distributed(device):
    """Those of QR alone have signs of their own: their corner, for one, is never positive."""
    generator = vg.random.default_rng(0)
    corners = [
        first_values(device, "orthogonal_", (2, 2), "float64", generator=generator)[0, 0]
        for _ in range(200)
    ]
    assert abs(np.mean(corners)) < 0.2 and 0.4 < np.mean(np.array(corners) > 0) < 0.6


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sparsity", [0.0, 0.1, 0.25, 0.5, 1.0])
def test_sparse_columns(device, dtype, sparsity):
    generator = vg.random.default_rng(2)
    options = {"sparsity": sparsity, "std": 2.0, "generator": generator}
    values = first_values(device, "sparse_", (30, 40), dtype, **options)
    zeros = math.ceil(sparsity * 30)
    assert (values == 0).sum(axis=0).tolist() == [zeros] * 40
    assert zeros in (0, 30) or len({tuple(column) for column in (values == 0).T}) > 30
    assert zeros == 30 or abs(values[values != 0].std() - 2.0) < 0.25


@pytest.mark.parametrize("dtype", FLOATS)
def test_weights_that_keep_what_they_get(device, dtype):
    for shape in ((3, 3), (2, 4), (4, 2)):
        values = first_values(device, "eye_", shape, dtype)
        assert values.tolist() == np.eye(*shape).tolist()
    for groups in (1, 2, 4):
        for shape in ((4, 3, 3), (4, 4, 2), (8, 2, 3, 5), (4, 6, 1, 1), (4, 1, 3, 2, 3)):
            values = first_values(device, "dirac_", shape, dtype, groups=groups)
            expected, each = np.zeros(shape), shape[0] // groups
            for group in range(groups):
                for i in range(min(each, shape[1])):
                    middle = tuple(length // 2 for length in shape[2:])
                    expected[(group * each + i, i, *middle)] = 1
            assert np.array_equal(values, expected), shape
    conv = nn.Conv2d(4, 4, 3, padding=1, bias=False, device=device)
    nn.init.dirac_(conv.weight)
    x = put(device, np.arange(4 * 5 * 6, dtype="float32").reshape(1, 4, 5, 6))
    assert conv(x).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.init.trunc_normal_(vg.zeros(3), std=0.0), ValueError, "std > 0"),
        (lambda: nn.init.trunc_normal_(vg.zeros(3), a=1.0, b=-1.0), ValueError, "a <= b"),
        (lambda: nn.init.trunc_normal_(vg.zeros(3), std=float("nan")), ValueError, "std=nan"),
        (lambda: nn.init.trunc_normal_(vg.zeros(3, dtype="int32")), TypeError, "int32"),
        (lambda: nn.init.trunc_normal_([1.0]), TypeError, "an Array is wanted"),
        (lambda: nn.init.orthogonal_(vg.zeros(3)), ValueError, "2 or more dimensions"),
        (lambda: nn.init.orthogonal_(vg.zeros((3, 3), dtype="int64")), TypeError, "int64"),
        (lambda: nn.init.sparse_(vg.zeros((3, 3, 3)), 0.1), ValueError, "^2 dimensions"),
        (lambda: nn.init.sparse_(vg.zeros((3, 3)), 1.5), ValueError, "from 0 to 1, not 1.5"),
        (lambda: nn.init.eye_(vg.zeros(3)), ValueError, r"the shape is \(3,\)"),
        (lambda: nn.init.dirac_(vg.zeros((3, 3))), ValueError, "3 to 5 dimensions"),
        (lambda: nn.init.dirac_(vg.zeros((3, 3, 3)), 2), ValueError, "2 groups do not divide 3"),
        (lambda: nn.init.dirac_(vg.zeros((3, 3, 3)), 0), ValueError, "0 groups"),
    ],
)
def test_first_values_that_make_no_sense(call, error, text):
    with vg.device("cpu"), pytest.raises(error, match=text):
        call()


def test_first_values_of_nothing(device):
    for name, options in (*HOST_MADE, ("dirac_", {}), ("eye_", {})):
        weight = vg.zeros((0, 3, 2) if name == "dirac_" else (0, 3), device=device)
        assert getattr(nn.init, name)(weight, **options) is weight


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
