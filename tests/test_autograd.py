"""Gradients: what can be asked for, what is refused, memory, long chains, threads."""

import collections
import gc
import itertools
import pickle
import re
import threading
import types
import weakref

import helpers
import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put
from test_seam import CASES, COMPOSED, OTHERS

import pyvecgpu as vg
from pyvecgpu.autograd.nested import leaves
from pyvecgpu.dispatch import observe, tape
from pyvecgpu.native.abi import Allocator

functional = vg.nn.functional
X = np.arange(1.0, 7.0).reshape(2, 3)


def leaf(device, values=X, dtype=np.float64):
    return put(device, np.asarray(values, dtype)).requires_grad_()


# Leaves -------------------------------------------------------------------------------------------


def test_what_is_tracked(device):
    x = put(device, X)
    assert not x.requires_grad and x.is_leaf and x.grad is None
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf and x.grad is None
    y = x * 2.0
    assert isinstance(y, vg.Array) and y.requires_grad and not y.is_leaf
    assert not (x > 1.0).requires_grad and not vg.argmax(x).requires_grad
    assert not y.detach().requires_grad and not vg.zeros_like(y).requires_grad
    y.sum().backward()
    assert x.grad.numpy().tolist() == [[2.0] * 3] * 2 and y.grad is None
    x.requires_grad = False
    assert not x.requires_grad and x.grad is not None and not (x * 2.0).requires_grad
    assert x.requires_grad_() is x and x.grad is not None


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "uint8"])
def test_integers_cannot_require_gradients(device, dtype):
    x = vg.zeros(3, dtype=dtype, device=device)
    with pytest.raises(
        TypeError,
        match=f"only arrays of floats or complex numbers can require gradients, not .*{dtype}",
    ):
        x.requires_grad_()
    assert not x.requires_grad


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_have_the_dtype(device, dtype):
    x = vg.ones((2, 3), dtype=dtype, device=device).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.dtype == x.dtype and x.grad.astype("float32").numpy().tolist() == [[2.0] * 3] * 2


def test_gradients_add_up(device):
    x = leaf(device)
    (x * 3.0).sum().backward()
    first = x.grad
    (x * 4.0).sum().backward()
    assert x.grad.numpy().tolist() == [[7.0] * 3] * 2
    assert first.numpy().tolist() == [[3.0] * 3] * 2, "a gradient that somebody holds stays"
    x.grad = None
    assert x.grad is None
    x.sum().backward(vg.asarray(2.0, dtype="float64", device=device))
    assert x.grad.numpy().tolist() == [[2.0] * 3] * 2
    x.grad[...] = 1.0  # memory of its own, which can be written to
    x.grad = x.grad * 0.0
    assert not x.grad.numpy().any()


def test_leaves_share_no_gradient(device):
    x, y = leaf(device), leaf(device)
    (x + y).sum().backward()
    x.grad *= 5.0
    assert y.grad.numpy().tolist() == [[1.0] * 3] * 2
    a, b = leaf(device), leaf(device)
    g = put(device, np.ones((2, 3)))
    (a + b.reshape(2, 3)).backward(g)
    a.grad *= 5.0
    assert g.numpy().tolist() == b.grad.numpy().tolist() == [[1.0] * 3] * 2


def test_a_wrong_gradient_is_refused(device):
    x = leaf(device)
    for value, error in (
        (1.0, TypeError),
        (put(device, np.zeros(3)), ValueError),
        (put(device, np.zeros((2, 3), np.float32)), ValueError),
    ):
        with pytest.raises(error, match="a gradient"):
            x.grad = value
    with pytest.raises(RuntimeError, match=r"only leaves have a .grad"):
        (x * 1.0).grad = put(device, X)
    with pytest.raises(RuntimeError, match=r"use x.detach\(\)"):
        (x * 1.0).requires_grad_(False)


def test_diamonds(device):
    def both(x):
        a, b = vg.exp(x), vg.sin(x)
        c = a * b
        return (c + a) * (c - b) * x

    check(both, X / 6, device=device)
    check_twice(both, X / 6, device=device)


def test_reading_values(device):
    x = leaf(device)
    y = (x * 2.0).sum()
    assert y.item() == float(y) == 42.0 and (x * 2.0).tolist() == (X * 2).tolist()
    assert repr(x).endswith("requires_grad=True)") and str(x) == str(x.detach()) and bool(y)
    for read in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(RuntimeError, match=r"use x.detach\(\).numpy\(\)"):
            read()
    assert np.array_equal(x.detach().numpy(), X)
    again = pickle.loads(pickle.dumps(x))
    assert not again.requires_grad and np.array_equal(again.numpy(), X)
    assert type(np.exp(x)) is type(x), "NumPy's ufuncs that are ours are recorded"


def test_operands_of_all_kinds(device):
    x = leaf(device)
    plain = put(device, X)
    for f in (
        lambda: plain + x,
        lambda: x + plain,
        lambda: X + x,
        lambda: x + X,
        lambda: 1 + x,
        lambda: x + 1,
        lambda: 1.0 + x,
        lambda: plain @ x.T,
        lambda: vg.add(plain, x),
        lambda: vg.where(plain > 2.0, plain, x),
        lambda: vg.concat([plain, x]),
        lambda: sum([plain, x]),
    ):
        assert f().requires_grad
        x.grad = None
        f().sum().backward()
        assert x.grad is not None and x.grad.numpy().any()


def test_untracked_arrays_never_reach_the_tape(device, monkeypatch):
    def record(*_):
        raise AssertionError("an array that is not tracked")

    monkeypatch.setattr(tape, "record", record)
    monkeypatch.setattr(tape, "permit", record)
    a, b = put(device, X[:, :2]), put(device, X[:, 1:])
    for call in COMPOSED.values():
        call(a, b)
    for call, _ in (CASES | OTHERS).values():
        call(a, b)
    with pytest.raises(AssertionError, match="not tracked"):
        a.requires_grad_() + b


def test_the_example_of_the_docs():
    page = (helpers.ROOT / "docs" / "autograd.md").read_text(encoding="utf-8")
    names = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    assert names["loss"].item() < 0.5 and names["w"].grad is None


# Modes --------------------------------------------------------------------------------------------


def test_no_grad(device):
    x = leaf(device)
    assert vg.is_grad_enabled()
    with vg.no_grad():
        assert not vg.is_grad_enabled() and not (x * 2.0).requires_grad and x.requires_grad
        with vg.enable_grad():
            assert (x * 2.0).requires_grad
        assert not vg.is_grad_enabled()
    assert vg.is_grad_enabled()

    @vg.no_grad()
    def f(x):
        return x * 2.0

    @vg.no_grad
    def g(x):
        return f(x), vg.enable_grad()(lambda: x * 2.0)()

    assert not f(x).requires_grad and [y.requires_grad for y in g(x)] == [False, True]
    with pytest.raises(ZeroDivisionError), vg.no_grad():
        raise ZeroDivisionError
    assert vg.is_grad_enabled()


def test_modes_are_of_a_thread():
    seen = []
    with vg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(vg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_threads_have_their_own_tapes(device):
    results = {}

    def work(number):
        x = leaf(device, np.full(4, float(number)))
        for _ in range(20):
            y = x
            for _ in range(10):
                y = y * x
            x.grad = None
            y.sum().backward()
        results[number] = x.grad.numpy().tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: [11.0 * n**10] * 4 for n in range(1, 5)}


# In place -----------------------------------------------------------------------------------------


def test_steps_of_a_descent(device):
    w = leaf(device)
    for _ in range(3):
        (w * w).sum().backward()
        with vg.no_grad():
            w -= 0.25 * w.grad
        w.grad = None
    assert w.requires_grad and w.is_leaf
    assert np.array_equal(w.detach().numpy(), X / 8)


def changes(x):
    return {
        "add": lambda: x.__iadd__(1.0),
        "multiply": lambda: x.__imul__(x),
        "exp": lambda: vg.exp(x, out=x),
        "fill": lambda: x.fill(0.0),
        "copy": lambda: x.__setitem__(0, x[1]),
        "scatter": lambda: x.__setitem__([1, 0], x),
        "where": lambda: x.__setitem__(x > 0, 1.0),
        "random": lambda: vg.random.default_rng(1).random(out=x),
    }


@pytest.mark.parametrize("name", changes(put("cpu", X)))
def test_leaves_are_not_changed_in_place(device, name):
    x = leaf(device)
    before = x._version
    with pytest.raises(RuntimeError, match=r"vg.no_grad\(\)"):
        changes(x)[name]()
    assert x._version == before and np.array_equal(x.detach().numpy(), X)
    with vg.no_grad():
        changes(x)[name]()
    assert x._version > before


def test_in_place_operators_are_recorded(device):
    def total(x):
        y = x * 1.0
        y += 2.0
        y *= 3.0
        y /= 2.0
        y -= y.sum()
        return vg.exp(y / 10.0)

    check(total, X / 6, device=device)
    check_twice(total, X / 6, device=device)
    x = leaf(device)
    loss = 0.0
    for i in range(3):
        loss += (x * float(i)).sum()
    loss.backward()
    assert x.grad.numpy().tolist() == [[3.0] * 3] * 2
    y = x * 1.0
    y[y > 3.0] = 0.0
    y.sum().backward()
    assert (x.grad.numpy() - 3.0).tolist() == (X <= 3.0).astype(float).tolist()


REFUSED = {
    "into an untracked array": lambda x, y, z: vg.add(x, x, out=z),
    "an untracked array changed": lambda x, y, z: z.__iadd__(x),
    "a part of an untracked array": lambda x, y, z: z.__setitem__(0, x[0]),
    "a part": lambda x, y, z: y.__setitem__(0, 1.0),
    "rows by number": lambda x, y, z: y.__setitem__([0], x[:1]),
    "a view": lambda x, y, z: y[0].__iadd__(1.0),
    "out of another": lambda x, y, z: vg.exp(z, out=y),
    "put": lambda x, y, z: vg.put(y, [0], 1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_gradients_cannot_follow_is_refused(device, name):
    x, z = leaf(device), put(device, X)
    y = x * 1.0
    with pytest.raises(RuntimeError, match="compute a new array"):
        REFUSED[name](x, y, z)
    for one in (x, y, z):
        assert np.array_equal(one.detach().numpy(), X)
    y.sum().backward()
    assert x.grad.numpy().tolist() == [[1.0] * 3] * 2


def test_changes_since_are_noticed_and_named(device):
    x, w = leaf(device), put(device, X)
    y = x * w
    w += 1.0
    with pytest.raises(
        RuntimeError, match="multiply: an array that its gradient needs was changed"
    ):
        y.sum().backward()
    x = leaf(device)
    y = vg.exp(x)
    z = y * 2.0
    y += 1.0
    with pytest.raises(RuntimeError, match="exp: an array that its gradient needs was changed"):
        z.sum().backward()
    x = leaf(device)
    y = x * 1.0
    y *= y
    with pytest.raises(RuntimeError, match=r"multiply: .* changed in place"):
        y.sum().backward()
    x = leaf(device)
    y = (x * x).sum()
    with vg.no_grad():
        x -= 1.0
    with pytest.raises(RuntimeError, match=r"multiply: .* changed in place"):
        y.backward()
    assert x.grad is None


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_changes_of_what_a_recurrent_layer_gave_are_named(device, name):
    layer = getattr(vg.nn, name)(3, 4, dtype="float64", device=device)
    output, _ = layer(put(device, X.reshape(2, 1, 3)))
    output += 1.0
    with pytest.raises(RuntimeError, match=f"{name}: an array that .* was changed in place"):
        output.sum().backward()


class Twice(vg.autograd.Function):
    forward = staticmethod(lambda ctx, x: x * 2.0)
    backward = staticmethod(lambda ctx, g: g * 2.0)


@pytest.mark.parametrize(
    "double",
    [lambda x: x * 2.0, Twice.apply, vg.checkpoint(lambda x: x * 2.0)],
    ids=["operation", "Function", "checkpoint"],
)
def test_a_view_of_what_has_changed_is_refused(device, double):
    x = leaf(device)
    y = double(x)
    view = y.T[:, 0]
    y += x
    for use in (
        lambda: view * 2.0,
        lambda: view.sum(),
        lambda: view[:1] + 1.0,
        lambda: view.backward(vg.ones_like(view)),
        lambda: vg.autograd.grad(view, x, vg.ones_like(view)),
    ):
        with pytest.raises(RuntimeError, match="a view of one that add has changed"):
            use()
    (y[0] * 2.0).sum().backward()
    assert x.grad.numpy().tolist() == [[6.0] * 3, [0.0] * 3]


# The graph ----------------------------------------------------------------------------------------


def test_a_graph_is_used_once(device):
    x = leaf(device)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"a second time.*retain_graph=True"):
        y.backward()
    y = (x * x).sum()
    x.grad = None
    y.backward(retain_graph=True)
    y.backward()
    assert np.array_equal(x.grad.numpy(), 4 * X)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_what_has_no_gradient(device):
    x = put(device, X)
    with pytest.raises(RuntimeError, match="computed of none that requires gradients"):
        x.sum().backward()
    x.requires_grad_()
    with vg.no_grad():
        y = x.sum()
    with pytest.raises(RuntimeError, match="computed of none"):
        y.backward()
    with pytest.raises(RuntimeError, match=r"shape \(2, 3\) needs its gradient"):
        (x * 2.0).backward()
    with pytest.raises(ValueError, match=r"an Array of shape \(2, 3\)"):
        (x * 2.0).backward(put(device, X[0]))
    with pytest.raises(NotImplementedError, match="dense_backward has no gradient"):
        functional.dense_backward(put(device, X[:, :2]), x, put(device, X[:2]))
    with pytest.raises(RuntimeError, match="does not require gradients"):
        put(device, X).register_hook(print)
    assert x.grad is None


def test_nan_is_a_gradient(device):
    x = leaf(device, [-1.0, 1.0])
    with np.errstate(invalid="ignore"):
        vg.log(x).sum().backward(vg.asarray(float("nan"), dtype="float64", device=device))
    assert np.isnan(x.grad.numpy()).all()


def test_hooks(device):
    x = leaf(device)
    y = x * 2.0
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.numpy().tolist()))
    double = x.register_hook(lambda g: g * 2.0)
    (y * 1.0 + y * 2.0).sum().backward()
    assert seen == [[[3.0] * 3] * 2], "once, with the whole gradient"
    assert x.grad.numpy().tolist() == [[12.0] * 3] * 2
    handle.remove()
    double.remove()
    double.remove()
    x.grad = None
    (x * 2.0).sum().backward()
    assert len(seen) == 1 and x.grad.numpy().tolist() == [[2.0] * 3] * 2


def test_a_hook_that_raises_changes_no_gradient(device):
    x, w = leaf(device), leaf(device)
    y = x * w
    x.register_hook(lambda g: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert x.grad is None and w.grad is None and vg.is_grad_enabled()


WRONG_HOOKS = {
    "a part": (lambda g: g[:1], ValueError, r"float64 of shape \(1, 3\)"),
    "a sum": (lambda g: g.sum(), ValueError, r"float64 of shape \(\)"),
    "a dtype": (lambda g: g.astype("float32"), TypeError, r"float32 of shape \(2, 3\)"),
    "a device": (lambda g: g.to("cpu"), ValueError, r"float64 of shape \(2, 3\) on cpu"),
    "a number": (lambda g: 5, TypeError, "int"),
    "an ndarray": (lambda g: np.ones((2, 3)), TypeError, "ndarray"),
}


@pytest.mark.parametrize("name", WRONG_HOOKS)
@pytest.mark.parametrize("of", ["leaf", "result", "Function"])
def test_what_a_hook_gives_is_checked(device, name, of):
    if (name, device) == ("a device", "cpu"):
        pytest.skip("of one device")
    hook, error, given = WRONG_HOOKS[name]
    x = leaf(device)
    y = Twice.apply(x) if of == "Function" else x * 2.0
    (x if of == "leaf" else y).register_hook(hook)
    words = f"the hook <lambda> gave {given}.*, not float64 of shape .*2, 3.* on {device}"
    with pytest.raises(error, match=words):
        y.sum().backward()
    assert x.grad is None
    with pytest.raises(TypeError, match="register_hook: a hook is a function, not int"):
        x.register_hook(5)


# Gradients as values ------------------------------------------------------------------------------


def test_autograd_grad(device):
    x, y = leaf(device), leaf(device)
    z = x * y
    (gx, gz) = vg.autograd.grad((z * z).sum(), [x, z], retain_graph=True)
    assert np.array_equal(gx.numpy(), 2 * X**3) and np.array_equal(gz.numpy(), 2 * X**2)
    assert x.grad is None and y.grad is None
    (g,) = vg.autograd.grad(z, y, put(device, X))
    assert np.array_equal(g.numpy(), X * X) and not g.requires_grad
    with pytest.raises(RuntimeError, match="input 1 was not used"):
        vg.autograd.grad(x.sum(), [x, y])
    assert vg.autograd.grad(x.sum(), [y], allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="an input does not require gradients"):
        vg.autograd.grad(x.sum(), [put(device, X)])
    for given in ([], 2 * [put(device, X)]):
        with pytest.raises(ValueError, match=f"^grad: {len(given)} gradients for 1 outputs$"):
            vg.autograd.grad(x * y, x, given)


def test_only_what_was_asked_for_is_computed(device):
    """The gradient of an input needs none of the weights."""
    x, w, v = leaf(device), leaf(device, X.T), leaf(device, np.ones((2, 2)))
    z = vg.tanh(x @ w @ v).sum()
    calls = []
    with observe(calls.append):
        vg.autograd.grad(z, x)
    assert sum(call.method == "matmul" for call in calls) == 2


def test_gradients_of_gradients(device):
    x = leaf(device)
    (g,) = vg.autograd.grad((x**4).sum(), x, create_graph=True)
    (h,) = vg.autograd.grad(g.sum(), x, create_graph=True)
    h.sum().backward()
    assert np.allclose(x.grad.numpy(), 24 * X)
    x = leaf(device)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    assert np.allclose(vg.autograd.grad(x.grad.sum(), x)[0].numpy(), 6 * X)


Point = collections.namedtuple("Point", "x y")


def test_grad_of_functions(device):
    x, y = put(device, X), put(device, X[0])

    def f(x, y):
        return (x * x * y).sum()

    assert np.array_equal(vg.grad(f)(x, y).numpy(), 2 * X * X[0])
    gx, gy = vg.grad(f, (0, 1))(x, y)
    assert np.array_equal(gx.numpy(), 2 * X * X[0]) and np.array_equal(gy.numpy(), (X * X).sum(0))
    value, (gy,) = vg.value_and_grad(f, argnums=(1,))(x, y)
    assert value.item() == (X * X * X[0]).sum() and not value.requires_grad and not gy.requires_grad
    assert not x.requires_grad and x.grad is None

    def of_many(p, scale):
        a, (b, none) = p["a"], p["rest"]
        assert none is None
        return (a.x * a.y * b).sum() * scale

    tree = {"a": Point(x, 2.0 * x), "rest": [y, None]}
    found = vg.grad(of_many)(tree, scale=3)
    assert list(found) == ["a", "rest"] and type(found["a"]) is Point and found["rest"][1] is None
    assert np.allclose(found["a"].x.numpy(), 6 * X * X[0])
    (value, aux), g = vg.value_and_grad(lambda x: (x.sum(), {"x": x}), has_aux=True)(x)
    assert value.item() == X.sum() and not aux["x"].requires_grad
    g, aux = vg.grad(lambda x: (x.sum(), 5), has_aux=True)(x)
    assert aux == 5 and g.numpy().all()
    assert vg.grad(lambda x, y: (y * 2.0).sum())(x, y).numpy().tolist() == [[0.0] * 3] * 2
    assert vg.grad(lambda x: put(device, X).sum())(x).numpy().tolist() == [[0.0] * 3] * 2
    assert vg.grad(f, -1)(x, y).shape == (3,)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_python_floats_among_arguments_are_as_the_arrays(device, dtype):
    """Of their dtype and on their device, so that the function gives what it gives by itself."""
    w = put(device, np.array([1.0, 3.0], dtype))

    def f(p, scale):
        return (p["w"] * p["c"]).sum() * scale

    tree = collections.OrderedDict(c=0.1, w=w)
    value, found = vg.value_and_grad(f)(tree, scale=2)
    assert value.dtype == dtype and value.item() == f(tree, 2).item()
    assert type(found) is collections.OrderedDict and list(found) == ["c", "w"]
    assert found["c"].item() == 8.0 and found["c"].dtype == dtype
    assert found["c"].device == w.device == found["w"].device
    alone = vg.grad(lambda x: x * x)(3.0)
    assert alone.item() == 6.0 and alone.device == vg.zeros(1).device


def test_grad_of_grad(device):
    x = put(device, np.array([1.0, 2.0]))

    def cube(x):
        return (x * x * x).sum()

    second = vg.grad(lambda x: vg.grad(cube)(x).sum())
    assert np.allclose(second(x).numpy(), [6.0, 12.0])
    third = vg.grad(lambda x: second(x).sum())
    assert np.allclose(third(x).numpy(), [6.0, 6.0])
    w = leaf(device, [2.0, 3.0])
    inner = vg.grad(lambda x: (w * x * x).sum(), create_graph=True)(x)
    inner.sum().backward()
    assert np.allclose(w.grad.numpy(), [2.0, 4.0])
    with vg.no_grad():
        assert np.allclose(vg.grad(cube)(x).numpy(), [3.0, 12.0])


def test_grad_refuses(device):
    x = put(device, X)
    for wrong in (put(device, np.arange(3)), X, "text", 3):
        with pytest.raises(TypeError, match="float"):
            vg.grad(lambda x: x.sum())(wrong)
    for function in (lambda x: x * 2.0, lambda x: 1.0, lambda x: None):
        with pytest.raises(TypeError, match="a single number"):
            vg.grad(function)(x)
    for argnums in (1, -2, (0, 1)):
        words = rf"grad: argnums is {re.escape(str(argnums))}, and 1 positional arguments"
        with pytest.raises(ValueError, match=words):
            vg.grad(lambda x: x.sum(), argnums)(x)
    for argnums in ("0", 0.0, None, (0, "0"), [0.0], True):
        for make in (vg.grad, vg.value_and_grad):
            with pytest.raises(TypeError, match="grad: argnums is an integer, not"):
                make(lambda x: x.sum(), argnums)
    assert vg.grad(lambda x: x.sum(), np.int64(0))(x).tolist() == np.ones_like(X).tolist()
    assert vg.grad(lambda x: x.sum(), [np.int64(0)])(x)[0].tolist() == np.ones_like(X).tolist()
    for function in (lambda x: x.sum(), lambda x: x[0, :2], lambda x: (x.sum(), 1, 2)):
        with pytest.raises(TypeError, match="grad: with has_aux the function gives a pair"):
            vg.grad(function, has_aux=True)(x)


# Rules of one's own, and computing again ----------------------------------------------------------


class Cube(vg.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor=1.0):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3.0 * x * x * ctx.factor, None


class Exp(vg.autograd.Function):
    """It saves its result."""

    @staticmethod
    def forward(ctx, x):
        y = vg.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Parts(vg.autograd.Function):
    """Several operands, of which one is a row, and several results, of which one has no floats."""

    @staticmethod
    def forward(ctx, x, row):
        ctx.save_for_backward(x, row)
        return x * row, x + row, x > row

    @staticmethod
    def backward(ctx, product, total, _):
        x, row = ctx.saved_tensors
        return product * row + total, product * x + total  # summed to the row


def test_rules_of_ones_own(device):
    check(lambda x: Cube.apply(x, 2.0), X, device=device)
    check_twice(lambda x: Cube.apply(x, 2.0), X / 6, device=device)
    check(Exp.apply, X / 6, device=device)
    check_twice(Exp.apply, X / 6, device=device)
    check(Parts.apply, X, X[0], device=device)
    check_twice(lambda x, row: Parts.apply(x, row)[:2], X, X[0], device=device)
    check(lambda x, row: Parts.apply(x, row)[1], X, X[0], device=device)
    assert not Parts.apply(leaf(device), leaf(device))[2].requires_grad
    assert not Cube.apply(put(device, X), 1.0).requires_grad
    with vg.no_grad():
        assert not Cube.apply(leaf(device), 1.0).requires_grad


def test_rules_of_ones_own_see_changes(device):
    x = leaf(device)
    y = Cube.apply(x, 1.0)
    with vg.no_grad():
        x += 1.0
    with pytest.raises(RuntimeError, match="Cube: an array that save_for_backward kept was"):
        y.sum().backward()

    class Wrong(Cube):
        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match=r"Wrong.backward gave 1 gradients for 2 arguments"):
        Wrong.apply(leaf(device), 1.0).sum().backward()
    with pytest.raises(NotImplementedError, match="has forward"):
        vg.autograd.Function.apply(x)


class Same(vg.autograd.Function):
    forward = staticmethod(lambda ctx, x: x)
    backward = staticmethod(lambda ctx, g: g)


class SameReversed(vg.autograd.Function):
    forward = staticmethod(lambda ctx, x: x[::-1])
    backward = staticmethod(lambda ctx, g: g[::-1])


class TwiceTheSame(vg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 1.0
        return y, y[:1]

    @staticmethod
    def backward(ctx, g, row):
        return g + vg.concat([row, vg.zeros_like(row)])


def twice(x):
    return x, x.T


OF_ONE_MEMORY = {
    "Function": Same.apply,
    "a view": SameReversed.apply,
    "checkpoint": vg.checkpoint(lambda x: x),
    "a view of a checkpoint": vg.checkpoint(lambda x: x.reshape(3, 2).T),
    "two": TwiceTheSame.apply,
    "two of a checkpoint": vg.checkpoint(lambda x: twice(x * 1.0)),
}


@pytest.mark.parametrize("name", OF_ONE_MEMORY)
def test_results_in_the_memory_of_others_are_views(device, name):
    """A change in place of one changes the others, which gradients would not know of."""

    def made(x):
        operand = x * 1.0
        results = OF_ONE_MEMORY[name](operand)
        return [operand, *(results if isinstance(results, tuple) else [results])]

    check(lambda x: [vg.exp(each) for each in made(x)], X / 6, device=device)
    first, view = made(leaf(device))[-2:]
    with pytest.raises(RuntimeError, match="multiply would write to memory in a way that"):
        view *= 3.0
    view = view[:1].T
    first *= 3.0
    for use in (lambda: view.sum(), lambda: view.backward(vg.ones_like(view))):
        with pytest.raises(RuntimeError, match="a view of one that multiply has changed in place"):
            use()
    first.sum()
    x = leaf(device)
    if "two" not in name:
        y = OF_ONE_MEMORY[name](x)
        with pytest.raises(RuntimeError, match="add would write to memory"):
            y += 1.0
        assert np.array_equal(x.detach().numpy(), X)


WRONG_GRADIENTS = {
    "longer": (lambda g: vg.concat([g, g]), ValueError, r"float64 of shape \(4, 3\)"),
    "shorter": (lambda g: g[:, :1], ValueError, r"float64 of shape \(2, 1\)"),
    "a sum": (lambda g: g.sum(), ValueError, r"float64 of shape \(\)"),
    "turned": (lambda g: g.T, ValueError, r"float64 of shape \(3, 2\)"),
    "another device": (lambda g: g.to("cpu"), ValueError, r"float64 of shape \(2, 3\) on cpu"),
    "a number": (lambda g: 1.0, TypeError, "float"),
    "an ndarray": (lambda g: np.ones((2, 3)), TypeError, "ndarray"),
}


@pytest.mark.parametrize("name", WRONG_GRADIENTS)
def test_what_a_rule_of_ones_own_gives_is_checked(device, name):
    if (name, device) == ("another device", "cpu"):
        pytest.skip("of one device")
    rule, error, given = WRONG_GRADIENTS[name]

    class Second(vg.autograd.Function):
        forward = staticmethod(lambda ctx, x, y: y * 1.0)
        backward = staticmethod(lambda ctx, g: (None, rule(g)))

    x, y = leaf(device), leaf(device)
    words = rf"Second.backward gave {given}.* for the gradient of argument 1, which is float64 of"
    with pytest.raises(error, match=words):
        Second.apply(x, y).sum().backward()
    assert x.grad is None and y.grad is None


def test_arguments_of_a_rule_by_name(device):
    x, w = leaf(device), leaf(device)
    for factor in (w, [w], {"w": w}):
        with pytest.raises(TypeError, match=r"Cube.apply: factor requires gradients"):
            Cube.apply(x, factor=factor)
    with vg.no_grad():
        Cube.apply(x, factor=w)

    class Scaled(Cube):
        backward = staticmethod(lambda ctx, g: Cube.backward(ctx, g)[0])

    check(lambda x: Scaled.apply(x, factor=w.detach()), X, device=device)


def test_checkpoint(device):
    calls = []
    w = leaf(device, X[0])

    def block(x, scale=1.0):
        calls.append(vg.is_grad_enabled())
        return vg.tanh(x * w) * scale

    x = leaf(device, X / 6)
    vg.checkpoint(block)(x, scale=2.0).sum().backward()
    assert calls == [False, True]
    found = x.grad, w.grad
    x.grad = w.grad = None
    block(x, scale=2.0).sum().backward()
    for one, other in zip(found, (x.grad, w.grad), strict=True):
        assert np.array_equal(one.numpy(), other.numpy())
    check(vg.checkpoint(lambda x: (vg.exp(x), x * x)), X / 6, device=device)
    check_twice(vg.checkpoint(lambda x: vg.exp(x) * x), X / 6, device=device)
    vg.random.seed(3)

    def noisy(x):
        return x * vg.random.rand(2, 3, dtype="float64", device=device)

    y = vg.checkpoint(noisy)(x)
    after = vg.random.rand()
    (g,) = vg.autograd.grad(y.sum(), x)
    assert np.allclose((g * x).detach().numpy(), y.detach().numpy())
    assert vg.random.rand() != after
    (g,) = vg.autograd.grad(vg.checkpoint(block)(x).sum(), w)
    assert g.shape == w.shape
    y = vg.checkpoint(block)(x)
    with vg.no_grad():
        x += 1.0
    with pytest.raises(RuntimeError, match="checkpoint: an argument was changed in place"):
        y.sum().backward()


NESTED = {
    "a list": lambda a, b: [a, b],
    "a pair and one": lambda a, b: (a, (b, a)),
    "a dict": lambda a, b: {"a": a, "more": [b, None]},
    "a named tuple": lambda a, b: Point(a, {"b": b}),
    "others": lambda a, b: (a, "text", 3, b, None, a > 0.0, object),
}


@pytest.mark.parametrize("name", NESTED)
def test_results_of_a_checkpoint_in_containers(device, name):
    def f(x):
        return NESTED[name](vg.exp(x), x * x)

    def arrays(tree):
        return [x for x in leaves(tree) if isinstance(x, vg.Array)]

    plain, result = f(leaf(device)), vg.checkpoint(f)(leaf(device))
    assert type(result) is type(plain) and [*map(type, result)] == [*map(type, plain)]
    assert [x.requires_grad for x in arrays(result)] == [x.requires_grad for x in arrays(plain)]
    check(lambda x: arrays(f(x)), X / 6, device=device)
    check(lambda x: arrays(vg.checkpoint(f)(x)), X / 6, device=device)
    check_twice(lambda x: arrays(vg.checkpoint(f)(x)), X / 6, device=device)


def test_a_checkpoint_of_a_recurrent_layer(device):
    layer = vg.nn.LSTM(2, 3, dtype="float64", device=device)
    check(lambda x: [*leaves(vg.checkpoint(layer)(x))], X.reshape(3, 1, 2) / 6, device=device)


def test_what_a_checkpoint_refuses(device):
    x = leaf(device)
    with pytest.raises(TypeError, match="gave a SimpleNamespace with Arrays for attributes"):
        vg.checkpoint(lambda x: types.SimpleNamespace(y=x * 2.0))(x)
    y = vg.checkpoint(lambda parts: parts["x"] * 2.0)({"x": x})
    with vg.no_grad():
        x += 1.0
    with pytest.raises(RuntimeError, match="checkpoint: an argument was changed in place"):
        y.sum().backward()


def doubled(a):
    a *= 2.0
    return a * a


def first_doubled(parts):
    parts["x"][0] = 4.0
    return parts["x"] * parts["y"]


@pytest.mark.parametrize("is_tracked", [True, False])
def test_a_checkpoint_of_what_changes_its_argument(device, is_tracked):
    """It cannot be computed again of what it was given, and says so."""
    w = leaf(device)
    own = w * 1.0 if is_tracked else put(device, X)
    y = vg.checkpoint(lambda a: doubled(a) * w)(own)
    assert np.array_equal(y.detach().numpy(), 4.0 * X**3)
    with pytest.raises(RuntimeError, match="checkpoint: an argument was changed in place"):
        y.sum().backward()
    assert w.grad is None
    y = vg.checkpoint(first_doubled)({"x": put(device, X), "y": w})
    with pytest.raises(RuntimeError, match="checkpoint: an argument was changed in place"):
        y.sum().backward()


def none_recorded(x):
    with vg.no_grad():
        return x * 2.0


UNTRACKED = {
    "of an argument": lambda x, w: x * 2.0,
    "several": lambda x, w: {"a": x + 1.0, "b": [x.T, vg.exp(x)]},
    "of nothing": lambda x, w: vg.ones(3),
    "no array": lambda x, w: 3,
    "the argument": lambda x, w: x,
    "detached": lambda x, w: w.detach() * 2.0,
    "not recorded": lambda x, w: none_recorded(w),
    "a checkpoint": lambda x, w: vg.checkpoint(vg.exp)(x),
    "a Function": lambda x, w: Exp.apply(x),
    "a recurrent layer": lambda x, w: vg.nn.LSTM(
        3, 2, dtype="float64", device=x.device
    ).requires_grad_(False)(x),
    "attention": lambda x, w: vg.nn.functional.scaled_dot_product_attention(x, x, x),
}
TRACKED = {
    "of an argument": lambda x, w: x * w,
    "the argument": lambda x, w: w,
    "a view": lambda x, w: w.T,
    "a part": lambda x, w: w[0],
    "a number": lambda x, w: 2.0 * w,
    "of nothing else": lambda x, w: vg.exp(w),
    "a checkpoint": lambda x, w: vg.checkpoint(vg.exp)(w),
    "a Function": lambda x, w: Exp.apply(w),
    "a layer": lambda x, w: vg.nn.Linear(3, 2, dtype="float64", device=x.device)(x),
    "a recurrent layer": lambda x, w: vg.nn.GRU(3, 2, dtype="float64", device=x.device)(x),
    "attention": lambda x, w: vg.nn.functional.scaled_dot_product_attention(x, w, x),
    "a decomposition": lambda x, w: vg.linalg.svdvals(w),
    "a norm": lambda x, w: vg.linalg.norm(w),
    "a stack": lambda x, w: vg.stack([x, w]),
    "a list": lambda x, w: vg.asarray([1.0, 2.0], device=x.device) * w[0, 0],
    "a sort": lambda x, w: vg.sort(w),
    "einsum": lambda x, w: vg.einsum("ij,ij->", x, w),
    "another mode": lambda x, w: vg.enable_grad(lambda: x * w)(),
}


def checkpointed(function, x, w, outside):
    """Of both arguments, or of x alone, while the function has w from outside."""
    if outside:
        return vg.checkpoint(lambda x: function(x, w))(x)
    return vg.checkpoint(function)(x, w)


@pytest.mark.parametrize("name", UNTRACKED)
@pytest.mark.parametrize("outside", [False, True])
def test_a_checkpoint_of_what_is_not_tracked_is_not(device, name, outside):
    x, w, function = put(device, X), leaf(device), UNTRACKED[name]
    result = checkpointed(function, x, w, outside)
    assert not any(isinstance(y, vg.Array) and y.requires_grad for y in leaves(result))
    assert vg.is_grad_enabled()


@pytest.mark.parametrize("name", TRACKED)
@pytest.mark.parametrize("outside", [False, True])
def test_a_checkpoint_of_what_is_tracked_is(device, name, outside):
    x, w, function = put(device, X), leaf(device), TRACKED[name]
    result = checkpointed(function, x, w, outside)
    assert all(y.requires_grad for y in leaves(result))
    sum(y.sum() for y in leaves(result)).backward()
    assert name in ("a layer", "a recurrent layer") or w.grad is not None


@pytest.mark.parametrize(
    "other",
    [lambda y: (y, y), lambda y: y[:1], lambda y: y.astype("float32"), lambda y: 1.0],
    ids=["one more", "a part", "another dtype", "no Array"],
)
def test_a_checkpoint_that_gives_others_again(device, other):
    x = leaf(device)
    calls = []

    def f(x):
        calls.append(x)
        return x * 2.0 if len(calls) == 1 else other(x * 2.0)

    words = r"other results when it was called again: .* instead of 1 \(float64 of shape \(2, 3\)\)"
    with pytest.raises(RuntimeError, match=words):
        vg.checkpoint(f)(x).sum().backward()
    assert x.grad is None


# Memory and time ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "use"), [(1_000_000, True), (100_000, False)])
def test_a_chain_of_a_million_operations(count, use):
    """Nothing recurses, neither on the way back nor where a graph goes unused."""
    x = put("cpu", np.ones(1, np.float32)).requires_grad_()
    y = x
    for _ in range(count):
        y = vg.negative(y)
    alive = weakref.ref(y)
    if use:
        y.backward()
        assert x.grad.numpy().tolist() == [1.0]
    del y
    assert alive() is None


def memory(device):
    return vg.memory_info(device).used


@pytest.mark.devices("sim", "cuda")
def test_nothing_is_left(device):
    """Neither a graph that was used nor one that was not keeps memory, without the collector."""
    gc.collect()
    gc.disable()
    try:
        x = leaf(device, np.ones(1000))
        before = memory(device)
        for use in (True, False):
            y = vg.exp(
                vg.tanh(x * x).reshape(10, 100) @ vg.ones((100, 3), dtype="float64", device=device)
            )
            z = Exp.apply(vg.checkpoint(vg.sin)(y))
            if use:
                z.sum().backward()
                x.grad = None
            del y, z
            assert memory(device) == before
    finally:
        gc.enable()


@pytest.mark.devices("sim", "cuda")
def test_memory_falls_as_backward_passes(device):
    x = leaf(device, np.ones(100_000))
    used = []
    y = x
    for _ in range(10):
        y = vg.exp(y * 0.0)
        y.register_hook(lambda g: used.append(memory(device)))
    y = y.sum()
    y.backward()
    assert len(used) == 10
    assert all(later < earlier for earlier, later in itertools.pairwise(used[1:]))


@pytest.mark.devices("sim", "cuda")
def test_only_what_rules_need_is_kept(device):
    x = leaf(device, np.ones(100_000))
    before = memory(device)
    y = (x + 1.0) * 3.0 - 2.0
    y = y.reshape(100, 1000).T
    assert memory(device) - before < 2 * x.nbytes


@pytest.fixture
def direct_allocator(device):
    """Every array is one cudaMalloc, which is not tried again."""
    with helpers.allocator(device, Allocator.ALLOCATOR_DIRECT):
        yield


@pytest.mark.devices("sim")
@pytest.mark.parametrize("what", ["malloc", "launch"])
def test_backward_is_all_or_nothing(device, simulator, direct_allocator, what):
    """Whatever fails in a step, no gradient has changed, and the next one has the same bits."""

    def step(x, w):
        y = vg.dense(x, w, activation="tanh") + x[:, :2]
        vg.concat([y * y, vg.exp(y)]).mean().backward()

    def leaves():
        return [leaf(device, X, np.float32), leaf(device, X / 6, np.float32)]

    wanted = leaves()
    step(*wanted)
    wanted = [helpers.bits(one.grad) for one in wanted]
    nth = failed = 0
    while True:
        nth += 1
        one = leaves()
        simulator.pvg_sim_fail(what.encode(), nth)
        try:
            step(*one)
            break
        except (vg.OutOfMemoryError, vg.LaunchError) as error:
            error.__traceback__ = None
            failed += 1
        simulator.pvg_sim_fail(what.encode(), 0)
        assert [x.grad for x in one] == [None, None] and vg.is_grad_enabled()
        step(*one)
        assert [helpers.bits(x.grad) for x in one] == wanted
    simulator.pvg_sim_fail(what.encode(), 0)
    assert failed >= 15
    assert [helpers.bits(x.grad) for x in one] == wanted


F = vg.nn.functional
NUMBERS = {
    "leaky_relu": lambda x, a: F.leaky_relu(x, a),
    "elu": lambda x, a: F.elu(x, a),
    "softplus": lambda x, a: F.softplus(x, a),
    "huber_loss": lambda x, a: F.huber_loss(x, x, delta=a),
    "smooth_l1_loss": lambda x, a: F.smooth_l1_loss(x, x, beta=a),
    "layer_norm": lambda x, a: F.layer_norm(x, 2, eps=a),
    "dropout": lambda x, a: F.dropout(x, a),
    "percentile": vg.percentile,
    "quantile": vg.quantile,
    "nanquantile": vg.nanquantile,
    "linspace": lambda x, a: vg.linspace(0, a, 3),
    "arange": lambda x, a: vg.arange(0, a, 0.1),
    "unwrap": lambda x, a: vg.unwrap(x, period=a),
    "var": lambda x, a: vg.var(x, correction=a),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_is_tracked_is_refused(device, name):
    """Where a function takes a number and no array: its gradient would be lost without a word."""
    x, a = put(device, np.array([-1.0, 2.0])), put(device, np.array(0.25)).requires_grad_()
    with pytest.raises(NotImplementedError, match="no gradient yet"):
        NUMBERS[name](x, a)
    with vg.no_grad():
        NUMBERS[name](x, a)
    NUMBERS[name](x, a.detach())
