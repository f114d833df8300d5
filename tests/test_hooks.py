"""What a Module calls before and after its forward, in drawn orders, beside a list that is kept by
hand; and moves to other devices and dtypes by their short names."""

import copy
import pickle

import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

nn = vg.nn
DRAWN = 40


class Told(nn.Module):
    """Says when it is called, and with what."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def forward(self, x, scale=1):
        self.log.append(("forward", x, scale))
        return x * scale


class Expected:
    """The hooks as lists, in the order in which they are to be called."""

    def __init__(self):
        self.lists = {"before": [], "after": []}

    def add(self, place, hook, prepend):
        hooks = self.lists[place]
        hooks.insert(0 if prepend else len(hooks), hook)

    def call(self, x, scale):
        """The log and the result of a call with these arguments."""
        log = []
        for name, kind in self.lists["before"]:
            log.append((name, x, scale if kind == "options" else None))
            x, scale = (x + name, scale + 1) if kind == "options" else (x + name, scale)
            if kind == "nothing":
                x -= name
        log.append(("forward", x, scale))
        y = x * scale
        for name, kind in self.lists["after"]:
            log.append((name, x, scale if kind == "options" else None, y))
            y += 0 if kind == "nothing" else name
        return log, y


def before(log, name, kind):
    """A hook that writes what it is given and changes it, but for "nothing"."""

    def hook(module, args, options=None):
        log.append((name, args[0], options and options["scale"]))
        if kind == "nothing":
            return None
        if kind == "options":
            return (args[0] + name,), {"scale": options["scale"] + 1}
        return args[0] + name if kind == "one" else (args[0] + name,)

    return hook


def after(log, name, kind):
    if kind == "options":

        def hook(module, args, options, y):
            log.append((name, args[0], options["scale"], y))
            return y + name

    else:

        def hook(module, args, y):
            log.append((name, args[0], None, y))
            return None if kind == "nothing" else y + name

    return hook


def test_hooks_are_called_in_their_order(rng):
    """Added at the end or in front, taken away in any order; what they return takes its place."""
    for _ in range(DRAWN):
        log, expected, handles = [], Expected(), []
        module = Told(log)
        for name in range(1, int(rng.integers(2, 9))):
            place = ("before", "after")[rng.integers(2)]
            kind = ("nothing", "one", "tuple", "options")[rng.integers(4)]
            prepend = bool(rng.integers(2))
            make, add = {
                "before": (before, module.register_forward_pre_hook),
                "after": (after, module.register_forward_hook),
            }[place]
            how = {"prepend": prepend, "with_kwargs": kind == "options"}
            handles.append((place, (name, kind), add(make(log, name, kind), **how)))
            expected.add(place, (name, kind), prepend)
            if rng.integers(3) == 0:
                place, hook, handle = handles.pop(rng.integers(len(handles)))
                handle.remove()
                handle.remove()  # again: nothing
                expected.lists[place].remove(hook)
        del log[:]
        result = module(3, scale=2)
        assert (log, result) == expected.call(3, 2)


def test_layers_of_a_sequential_call_theirs(device, rng):
    """Also those that are one with their neighbour as long as they have no hooks."""
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(device)
    net.requires_grad_(False)
    x = put(device, rng.standard_normal((5, 3)).astype("f"))
    plain, seen = net(x), []
    for i in range(3):
        handle = net[i].register_forward_hook(lambda _, args, y: seen.append((args[0], y)))
        result = net(x)
        ((given, found),) = seen
        assert np.array_equal(found.numpy(), net[i].forward(given).numpy()), i
        assert vg.array_equal(result, plain)
        handle.remove()
        net(x)
        assert len(seen) == 1
        seen.clear()
    handles = [net[0].register_forward_hook(lambda _, args, y: y * 2)]
    handles.append(net[1].register_forward_pre_hook(lambda _, args: -args[0]))
    hidden = np.maximum(-2 * net[0].forward(x).numpy(), 0)
    assert np.array_equal(net(x).numpy(), net[2].forward(put(device, hidden)).numpy())
    for handle in handles:
        handle.remove()
    assert vg.array_equal(net(x), plain)


def test_gradients_pass_through_hooks(device):
    net = nn.Linear(2, 2).to(device)
    net.register_forward_hook(lambda _, args, y: y * 3)
    net(vg.ones((1, 2), device=device)).sum().backward()
    assert net.weight.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def one_more(module, args, y):
    return y + 1


def test_copies_have_the_hooks(device):
    net = nn.ReLU()
    handle = net.register_forward_hook(one_more)
    copies = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    handle.remove()
    x = vg.zeros(2, device=device)
    assert [m(x).tolist() for m in (net, *copies)] == [[0, 0], [1, 1], [1, 1]]


def test_what_is_refused():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    for register in (net.register_forward_hook, net.register_forward_pre_hook):
        with pytest.raises(TypeError, match="a hook is a function, not int"):
            register(3)
    for found, kind in ((1, "int"), ((1,), "tuple")):
        handle = net.register_forward_pre_hook(lambda *_, y=found: y, with_kwargs=True)
        with pytest.raises(RuntimeError, match=rf"returns None or \(args, kwargs\), not {kind}"):
            net(vg.ones((2, 2)))
        handle.remove()
    assert net.get_parameter("0.weight") is net[0].weight
    assert net.get_buffer("1.running_mean") is net[1].running_mean
    for get, name in [
        (net.get_parameter, "0.scale"),
        (net.get_parameter, "1.running_mean"),
        (net.get_buffer, "1.mean"),
        (net.get_buffer, "0.weight"),
    ]:
        with pytest.raises(AttributeError, match=name):
            get(name)
    for name in ("cpu", "sim"):
        with pytest.raises((ValueError, vg.DeviceUnavailableError), match=name):
            net.cuda(name)


CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"}


@pytest.mark.parametrize("name", CASTS)
def test_casts(device, name):
    net = nn.Sequential(nn.Linear(2, 3, dtype="float64"), nn.BatchNorm1d(3)).to(device)
    parameters = [*net.parameters()]
    wanted = vg.zeros(0, dtype=CASTS[name]).dtype
    assert getattr(net, name)() is net
    assert all(a is b for a, b in zip(net.parameters(), parameters, strict=True))
    assert {x.dtype for x in net.parameters()} == {wanted}
    assert net.get_buffer("1.num_batches_tracked").dtype == np.int64
    assert {x.device for x in net.cpu().parameters()} == {vg.Device("cpu")}


@pytest.mark.devices("cuda")
def test_to_a_gpu(device):
    for given in (None, 0, "cuda", "cuda:0", vg.Device("cuda")):
        net = nn.Linear(2, 3)
        assert net.cuda(given) is net
        assert net.weight.device == vg.Device("cuda:0")
