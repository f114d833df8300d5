"""x.data: the same memory without gradients, to be read, written to and set, as in torch."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, LAYOUTS, layouts, put, refused

import pyvecgpu as vg
from pyvecgpu.dispatch import observe

# How an Array comes to be tracked; "plain" is not. A result's memory is its own.
KINDS = {
    "plain": lambda x: x,
    "leaf": lambda x: x.requires_grad_(),
    "parameter": vg.nn.Parameter,
    "result": lambda x: vg.reshape(x.requires_grad_(), x.shape),
}
SHAPES = [(), (0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 4)]


def kinds_of(dtype):
    return KINDS if helpers.is_float(dtype) else ["plain"]


def small(rng, shape, dtype):
    return helpers.integers(rng, shape, dtype, 0, 2 if dtype.kind == "b" else 8)


def same(x, kind, expected):
    """x has the expected values, and is tracked or not as it was."""
    helpers.assert_same(helpers.host(x.detach()), expected)
    assert x.requires_grad == (kind != "plain")
    return True


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_every_way_of_writing(device, dtype, rng):
    for shape, kind in itertools.product(SHAPES, kinds_of(dtype)):
        a, b, c = [small(rng, shape, dtype) for _ in range(3)]
        for layout in layouts(a):
            x = KINDS[kind](LAYOUTS[layout](device, a))
            node, version, read = getattr(x, "_node", None), x._version, x.data
            assert type(read) is vg.Array and read.grad is None and same(read, "plain", a)
            x.data = KINDS[kind](put(device, b))
            assert same(x, kind, b) and getattr(x, "_node", None) is node
            assert same(read, "plain", b), "not the memory that was there"
            assert x._version > version or not x.size
            if dtype.kind != "b":
                x.data -= put(device, c)
                assert same(x, kind, b - c) and same(read, "plain", b - c)
                x.data *= 2
                assert same(x, kind, (b - c) * 2)
            x.data[...] = put(device, a)
            assert same(x, kind, a) and same(read, "plain", a)
            if a.ndim:
                x.data = x.data[::-1]
                assert same(x, kind, a[::-1])


def test_what_is_set_shares_no_memory(device):
    x, w = vg.zeros(3, device=device).requires_grad_(), vg.ones(3, device=device)
    x.data = w
    w += 5
    assert x.tolist() == [1.0] * 3 and w.tolist() == [6.0] * 3


def test_what_is_put_back_is_not_copied(device):
    """`x.data -= y` sets x.data to what it has changed already."""
    calls, y = [], vg.ones(3, device=device)
    for make in KINDS.values():
        x = make(vg.ones(3, device=device))
        with observe(calls.append):
            x.data -= y
            x.data = x.data
        assert [call.method for call in calls] == ["binary"]
        calls.clear()


def test_what_is_like_it_alone_can_be_set(device, rng):
    """Of every kind and floats' dtype, each thing that differs in one respect."""
    cases = itertools.product(KINDS, helpers.FLOATS)
    for kind, dtype in cases:
        a = small(rng, (2, 3), dtype)
        x = KINDS[kind](put(device, a))
        other = np.dtype(np.float32 if dtype != np.float32 else np.float16)
        elsewhere = "sim" if device == "cpu" else "cpu"
        about = rf"\.data of {dtype} of shape \(2, 3\) on {x.device} takes an Array"
        for error, values in [
            (TypeError, put(device, a.astype(other))),
            (TypeError, put(device, a.astype(other)[0])),
            *[(ValueError, put(device, y)) for y in (a[0], a[:1], a.T, a[:, :0], a[None])],
            (ValueError, put(elsewhere, a)),
        ]:
            its = rf"{values.dtype} of shape .*{values.shape[-1]},?\) on {values.device}"
            with pytest.raises(error, match=f"{about} like it, not {its}"):
                x.data = values
        for values in (a, None, 1.0, a.tolist()):
            with pytest.raises(TypeError, match=f"{about}, not {type(values).__name__}; see vg"):
                x.data = values
        assert same(x, kind, a)


def test_read_only_memory(device):
    x = vg.broadcast_to(vg.ones((1, 3), device=device), (2, 3))
    with refused(device, ValueError, x):
        x.data = vg.zeros((2, 3), device=device)


def test_a_graph_that_needs_what_was_there_says_so(device):
    for write in (lambda w: setattr(w, "data", vg.zeros(2, device=device)), shrink):
        w = put(device, np.array([2.0, 3.0])).astype("float32").requires_grad_()
        needs, does_not = (w * w).sum(), (w * 3).sum()
        write(w)
        does_not.backward()
        assert w.grad.tolist() == [3.0, 3.0]
        with pytest.raises(RuntimeError, match="multiply"):
            needs.backward()


def shrink(w):
    w.data *= 0.5


def test_a_descent_by_hand(device):
    """torch's oldest loop, beside an optimiser's; both networks change where they are."""
    x = put(device, np.arange(12.0, dtype=np.float32).reshape(4, 3) / 8)
    nets = [vg.nn.Linear(3, 2, device=device) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    optimiser = vg.optim.SGD(nets[1].parameters(), lr=0.25)
    before = [p.raw for net in nets for p in net.parameters()]
    for _ in range(3):
        for net in nets:
            net.zero_grad()
            (net(x) ** 2).sum().backward()
        for p in nets[0].parameters():
            p.data -= 0.25 * p.grad
        optimiser.step()
        for p, q in zip(*[net.parameters() for net in nets], strict=True):
            np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=1e-5)
    after = [p.raw for net in nets for p in net.parameters()]
    assert all(a is b for a, b in zip(before, after, strict=True))
