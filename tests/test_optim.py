"""Optimisers beside formulas in NumPy, over their options; groups, states, clipping, failures."""

import copy
import inspect
import itertools
import pickle

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

optim = vg.optim
SHAPES = [(3, 4), (5,), ()]
STEPS = 6


# The formulas, of one parameter each, in place ----------------------------------------------------


def sgd(w, g, s, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    g = (-g if maximize else g) + weight_decay * w
    if momentum:
        s["b"] = g if "b" not in s else momentum * s["b"] + (1 - dampening) * g
        g = g + momentum * s["b"] if nesterov else s["b"]
    w -= lr * g


def adam(w, g, s, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, maximize=False,
         decoupled=False):  # fmt: skip
    g, t = (-g if maximize else g), s.get("t", 0) + 1
    if decoupled:
        w *= 1 - lr * weight_decay
    else:
        g = g + weight_decay * w
    s["t"] = t
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g**2
    v = s["v"]
    if amsgrad:
        s["most"] = v = np.maximum(s.get("most", 0), v)
    w -= lr * (s["m"] / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps * 1)


def adamw(w, g, s, lr, weight_decay=1e-2, **options):
    adam(w, g, s, lr, weight_decay=weight_decay, decoupled=True, **options)


def rmsprop(w, g, s, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
            maximize=False):  # fmt: skip
    g = (-g if maximize else g) + weight_decay * w
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g**2
    v = s["v"]
    if centered:
        s["m"] = alpha * s.get("m", 0) + (1 - alpha) * g
        v = v - s["m"] ** 2
    s["b"] = momentum * s.get("b", 0) + g / (np.sqrt(v) + eps)
    w -= lr * s["b"]


def options(**choices):
    return [dict(zip(choices, one, strict=True)) for one in itertools.product(*choices.values())]


MINUS = [False, True]
CASES = [
    *[("SGD", sgd, o) for o in options(lr=[0.1], momentum=[0, 0.9], dampening=[0, 0.3],
                                       weight_decay=[0, 0.02], nesterov=MINUS, maximize=MINUS)
      if not o["nesterov"] or (o["momentum"] and not o["dampening"])],
    *[(name, function, o) for name, function in (("Adam", adam), ("AdamW", adamw))
      for o in options(lr=[0.01], betas=[(0.9, 0.999), (0.5, 0.7)], eps=[1e-8, 1e-3],
                       weight_decay=[0, 0.1], amsgrad=MINUS, maximize=MINUS)],
    *[("RMSprop", rmsprop, o) for o in options(lr=[0.01], alpha=[0.99, 0.5], eps=[1e-8, 1e-3],
                                               weight_decay=[0, 0.1], momentum=[0, 0.9],
                                               centered=MINUS, maximize=MINUS)],
]  # fmt: skip
DEFAULTS = [("SGD", sgd, 1e-3), ("Adam", adam, 1e-3), ("AdamW", adamw, 1e-3),
            ("RMSprop", rmsprop, 1e-2)]  # fmt: skip


def compare(device, rng, name, function, own, formula):
    start = [rng.standard_normal(shape) for shape in SHAPES]
    expected, states = [x.copy() for x in start], [{} for _ in start]
    params = [put(device, x).requires_grad_() for x in start]
    optimiser = getattr(optim, name)(params, **own)
    for _ in range(STEPS):
        for p, w, s in zip(params, expected, states, strict=True):
            g = rng.standard_normal(w.shape)
            p.grad = put(device, g)
            function(w, g, s, **formula)
        assert optimiser.step() is None
    for p, w in zip(params, expected, strict=True):
        helpers.assert_within(p.detach(), w, 1e-12, f"{name} {own}")
        assert p.requires_grad and p.is_leaf


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_options(device, rng, name):
    cases = [case for case in CASES if case[0] == name]
    assert len(cases) >= 16
    for _, function, chosen in cases:
        compare(device, rng, name, function, chosen, chosen)


@pytest.mark.parametrize(("name", "function", "lr"), DEFAULTS, ids=lambda x: str(x))
def test_defaults(device, rng, name, function, lr):
    compare(device, rng, name, function, {}, {"lr": lr})


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_dtypes_stay(device, dtype):
    for name in ("SGD", "Adam", "AdamW", "RMSprop"):
        p = put(device, np.ones(3, dtype)).requires_grad_()
        optimiser = getattr(optim, name)([p], lr=0.5)
        for _ in range(2):
            p.grad = vg.ones_like(p)
            optimiser.step()
        assert p.dtype == dtype and (helpers.widened(p.detach().numpy()) < 1).all()


WAYS = {"foreach": None, "fused": None, "capturable": False, "differentiable": False}


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_ways_of_torch_make_no_difference(device, rng, name):
    """They are seen in signatures, are no options of groups, and give the same bits."""
    made, start = getattr(optim, name), rng.standard_normal(5)
    known = inspect.signature(made).parameters
    assert {key: known[key].default for key in list(known)[-4:]} == WAYS
    assert all(known[key].kind is inspect.Parameter.KEYWORD_ONLY for key in WAYS)
    results = set()
    for ways in options(foreach=[None, False, True], fused=[None, True], capturable=MINUS):
        p = put(device, start).requires_grad_()
        optimiser = made([p], lr=0.1, differentiable=False, **ways)
        assert not WAYS.keys() & optimiser.param_groups[0].keys()
        for _ in range(2):
            p.grad = put(device, start)
            optimiser.step()
        results.add(helpers.bits(p.detach()))
    assert len(results) == 1
    q = put(device, start).requires_grad_()
    for call in (
        lambda: made([q], differentiable=True),
        lambda: made([{"params": [q], "differentiable": True}]),
        lambda: optimiser.add_param_group({"params": [q], "differentiable": True}),
    ):
        with pytest.raises(NotImplementedError, match="differentiable=True"):
            call()
    with pytest.raises(TypeError, match="unexpected keyword argument 'fuse'"):
        made([p], fuse=True)


# Groups and gradients -----------------------------------------------------------------------------


def test_groups_have_options_of_their_own(device):
    a, b, c = (put(device, np.ones(2)).requires_grad_() for _ in range(3))
    groups = [{"params": [a]}, {"params": b, "lr": 0.5}]
    optimiser = optim.SGD(groups, lr=0.1, momentum=0.9)
    optimiser.add_param_group({"params": [c], "weight_decay": 1.0})
    assert [group["lr"] for group in optimiser.param_groups] == [0.1, 0.5, 0.1]
    assert "Parameter Group 2" in repr(optimiser) and "momentum: 0.9" in repr(optimiser)
    for p in (a, b):
        p.grad = put(device, np.ones(2))
    optimiser.step()  # c has no gradient, and stays
    assert (a.tolist(), b.tolist(), c.tolist()) == ([0.9] * 2, [0.5] * 2, [1.0] * 2)
    assert a in optimiser.state and c not in optimiser.state and len(optimiser.state) == 2
    optimiser.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0.0, 0.0] and c.grad is None
    optimiser.zero_grad()
    assert a.grad is None and b.grad is None


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
@pytest.mark.parametrize("grouped", MINUS)
def test_parameters_with_names(device, rng, tmp_path, name, grouped):
    """They are kept in groups and states, and change nothing else."""
    start = {key: rng.standard_normal(shape) for key, shape in zip("abc", SHAPES, strict=True)}
    nets = [{key: put(device, x).requires_grad_() for key, x in start.items()} for _ in range(2)]
    keys = [["a"], ["b", "c"]] if grouped else [["a", "b", "c"]]

    def made(net, named):
        groups = [[(key, net[key]) if named else net[key] for key in some] for some in keys]
        several = [{"params": iter(group)} for group in groups]
        return getattr(optim, name)(several if grouped else iter(groups[0]), lr=0.25)

    ours, plain = made(nets[0], True), made(nets[1], False)
    for optimiser, net in ((ours, nets[0]), (plain, nets[1])):
        run(optimiser, [*net.values()], [[*start.values()]] * 3)
    for p, q in zip(nets[0].values(), nets[1].values(), strict=True):
        assert helpers.bits(p.detach()) == helpers.bits(q.detach())
    for group, some in zip(ours.param_groups, keys, strict=True):
        assert group["param_names"] == some
        assert [id(p) for p in group["params"]] == [id(nets[0][key]) for key in some]
    vg.save_state(tmp_path / "state.npz", ours.state_dict())
    state = vg.load_state(tmp_path / "state.npz", device=device)
    assert [group["param_names"] for group in state["param_groups"]] == keys
    plain_state = plain.state_dict()
    assert not any("param_names" in group for group in plain_state["param_groups"])
    ours.load_state_dict(plain_state)  # which has no names: they stay
    assert [group["param_names"] for group in ours.param_groups] == keys
    for group in state["param_groups"]:
        group["param_names"] = [key.upper() for key in group["param_names"]]
    for optimiser in (ours, plain):
        optimiser.load_state_dict(state)  # as torch's, which takes the state's
        assert optimiser.param_groups[0]["param_names"] == [key.upper() for key in keys[0]]


def test_parameters_of_a_network_by_name(device):
    net = vg.nn.Sequential(vg.nn.Linear(2, 3, device=device), vg.nn.Linear(3, 1, device=device))
    optimiser = optim.Adam(net.named_parameters())
    (group,) = optimiser.param_groups
    assert group["param_names"] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert "param_names: ['0.weight'" in repr(optimiser)
    assert optim.SGD(dict(net.named_parameters()).items()).param_groups[0]["params"][3].size == 1


def test_names_of_some_parameters_are_refused():
    with vg.device("cpu"):
        p, q = (vg.ones(3).requires_grad_() for _ in range(2))
    mixed = [("p", p), q]
    groups = [{"params": [("p", p)]}, {"params": [q]}]
    for params in (mixed, mixed[::-1], [{"params": mixed}], groups, groups[::-1]):
        with pytest.raises(ValueError, match=r"either all parameters .* have names, or none"):
            optim.SGD(params)
    for one, other in ((groups[0], groups[1]), (groups[1], groups[0])):
        optimiser = optim.SGD([one])
        with pytest.raises(ValueError, match="have names"):
            optimiser.add_param_group(other)
        assert len(optimiser.param_groups) == 1
    for wrong in ([("p", p, 1)], [("p", 3.0)], [("p",)]):
        with pytest.raises(TypeError, match="takes Arrays of floats, not"):
            optim.SGD(wrong)
    with pytest.raises(ValueError, match="twice"):
        optim.SGD([("p", p), ("q", p)])


def test_a_closure_computes_the_loss(device):
    p = put(device, np.array([3.0])).requires_grad_()
    optimiser = optim.SGD([p], lr=0.5)

    def closure():
        optimiser.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with vg.no_grad():
        assert optimiser.step(closure).item() == 9.0
    assert p.item() == 0.0


def test_nan_in_a_gradient_is_nan_in_the_weights(device):
    for name in ("SGD", "Adam", "AdamW", "RMSprop"):
        p = put(device, np.ones(2)).requires_grad_()
        optimiser = getattr(optim, name)([p])
        p.grad = put(device, np.array([1.0, np.nan]))
        optimiser.step()
        values = p.detach().numpy()
        assert values[0] < 1 and np.isnan(values[1]), name


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda p: optim.SGD(p), TypeError, "list of Arrays"),
        (lambda p: optim.SGD([]), ValueError, "empty"),
        (lambda p: optim.SGD([1.0]), TypeError, "not float"),
        (lambda p: optim.SGD([vg.zeros(2, dtype="int32")]), TypeError, "int32"),
        (lambda p: optim.SGD([p * 2.0]), ValueError, "leaves"),
        (lambda p: optim.SGD([p, p]), ValueError, "twice"),
        (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError, "twice"),
        (lambda p: optim.SGD([{"lr": 1.0}]), TypeError, '"params"'),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "lr is a finite number of 0 or more, not -1"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "nesterov needs momentum"),
        (lambda p: optim.Adam([p], betas=(0.9, 1.0)), ValueError, "betas"),
        (lambda p: optim.Adam([p], betas=(0.9,)), ValueError, "Adam: betas are two numbers, got"),
        (lambda p: optim.AdamW([p], betas=0.9), ValueError, "AdamW: betas are two .* got 0.9"),
        (lambda p: optim.Adam([{"params": p, "betas": [0.9] * 3}]), ValueError, "betas are two"),
        (lambda p: optim.Adam([p], eps=float("nan")), ValueError, "eps"),
        (lambda p: optim.Optimizer([p], {"lr": 1}).step(), NotImplementedError, "no update"),
    ],
)
def test_refusals(call, error, match):
    with vg.device("cpu"):
        p = vg.ones(3).requires_grad_()
        p.grad = vg.ones(3)
        with pytest.raises(error, match=match):
            call(p)


# States -------------------------------------------------------------------------------------------

STATEFUL = [("SGD", {"momentum": 0.9, "nesterov": True}), ("Adam", {"amsgrad": True}),
            ("AdamW", {}), ("RMSprop", {"momentum": 0.5, "centered": True})]  # fmt: skip


def run(optimiser, params, gradients):
    for step in gradients:
        for p, g in zip(params, step, strict=True):
            p.grad = put(p.device, g)
        optimiser.step()


@pytest.mark.parametrize(("name", "chosen"), STATEFUL, ids=lambda x: str(x))
def test_going_on_from_a_state_gives_the_same_bits(device, rng, tmp_path, name, chosen):
    start = [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    gradients = [[rng.standard_normal(s).astype(np.float32) for s in SHAPES] for _ in range(8)]
    through = [put(device, x).requires_grad_() for x in start]
    run(getattr(optim, name)(through, lr=0.05, **chosen), through, gradients)

    first = [put(device, x).requires_grad_() for x in start]
    optimiser = getattr(optim, name)(first, lr=0.05, **chosen)
    run(optimiser, first, gradients[:4])
    vg.save_state(tmp_path / "state.npz", optimiser.state_dict())
    middle = [p.detach().copy() for p in first]
    kept = optimiser.state_dict()
    run(optimiser, first, gradients[4:])
    for state in (vg.load_state(tmp_path / "state.npz", device=device), kept):
        again = [p.copy().requires_grad_() for p in middle]
        other = getattr(optim, name)(again, lr=1.0)
        other.load_state_dict(state)
        run(other, again, gradients[4:])
        for p, q, r in zip(through, first, again, strict=True):
            assert helpers.bits(p.detach()) == helpers.bits(q.detach())
            assert helpers.bits(p.detach()) == helpers.bits(r.detach())


def test_a_state_of_torch_as_numpy_arrays(device):
    p = put(device, np.ones(2, np.float32)).requires_grad_()
    optimiser = optim.Adam([p])
    group = optimiser.state_dict()["param_groups"][0]
    moments = {"exp_avg": np.array([1.0, 2.0]), "exp_avg_sq": np.array([1.0, 4.0])}
    optimiser.load_state_dict(
        {
            "state": {0: {"step": np.array(3.0, np.float32), **moments}},
            "param_groups": [{**group, "betas": [0.5, 0.5], "fused": None}],
        }
    )
    state = optimiser.state[p]
    assert state["step"] == 3 and state["exp_avg"].dtype == np.float32
    assert optimiser.param_groups[0]["betas"] == (0.5, 0.5)
    p.grad = vg.zeros_like(p)
    optimiser.step()
    expected = 1 - 1e-3 * 0.5 / (1 - 0.5**4) / np.sqrt(0.5 / (1 - 0.5**4))
    helpers.assert_within(p.detach(), np.array([expected] * 2), 1e-6)


def test_copies_have_states_of_their_own(device):
    p = put(device, np.ones(2)).requires_grad_()
    optimiser = optim.SGD([p], lr=0.5, momentum=0.9)
    run(optimiser, [p], [[np.ones(2)]])
    with vg.no_grad():
        copied = copy.deepcopy(optimiser)
    for other in (copied, pickle.loads(pickle.dumps(optimiser))):
        (q,) = other.param_groups[0]["params"]
        assert q is not p and q in other.state and p not in other.state
        q.requires_grad_()
        run(other, [q], [[np.ones(2)]])
        assert np.allclose(q.tolist(), 0.5 - 0.5 * 1.9) and p.tolist() == [0.5, 0.5]


def test_a_state_that_does_not_fit_changes_nothing(device):
    def made(shapes):
        params = [put(device, np.ones(shape)).requires_grad_() for shape in shapes]
        optimiser = optim.Adam(params, lr=0.5)
        run(optimiser, params, [[np.ones(shape) for shape in shapes]])
        return optimiser

    optimiser = made([(2,), (3,)])
    before = optimiser.state_dict()
    good = made([(2,), (3,)]).state_dict()
    options = good["param_groups"][0]
    wrong = [
        (made([(2,)]).state_dict(), r"groups of \[1\] parameters, and here are \[2\]"),
        (made([(2,), (4,)]).state_dict(), r"exp_avg of parameter 1 has shape \(4,\)"),
        ({**good, "state": {7: {}}}, r"no group has: \[7\]"),
        ({**good, "param_groups": [{**options, "lr": -1.0}]}, "lr"),
        ({"state": {}}, "not the state of an optimiser"),
        ({"state": 3, "param_groups": []}, "not the state of an optimiser"),
    ]
    for state, message in wrong:
        with pytest.raises(ValueError, match=message):
            optimiser.load_state_dict(state)
        now = optimiser.state_dict()
        assert now["param_groups"] == before["param_groups"]
        assert all(now["state"][i]["exp_avg"] is before["state"][i]["exp_avg"] for i in (0, 1))


@pytest.mark.parametrize("given", ["SGD", "Adam", "RMSprop"])
@pytest.mark.parametrize("taken", ["SGD", "Adam", "RMSprop"])
def test_a_state_of_another_optimiser_is_refused_with_all_its_keys(device, given, taken):
    def made(name):
        params = [put(device, np.ones(2)).requires_grad_() for _ in range(2)]
        return getattr(optim, name)([{"params": [p]} for p in params], lr=0.5)

    optimiser, other = made(taken), made(given)
    optim.lr_scheduler.ExponentialLR(other, 0.5)
    state = other.state_dict()
    state["param_groups"][1]["fused"] = None
    if given == taken:
        optimiser.load_state_dict(state)
        state["param_groups"][1]["name"] = "last"
        with pytest.raises(ValueError, match=r"group 1 has .*: 'name'$"):
            optimiser.load_state_dict(state)
        return
    before = repr(optimiser)
    with pytest.raises(ValueError, match=f"the state is not of {taken}: its group 0") as caught:
        optimiser.load_state_dict(state)
    differ = other.defaults.keys() ^ optimiser.defaults.keys()
    assert all(f"'{key}'" in str(caught.value) for key in differ)
    assert repr(optimiser) == before


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
@pytest.mark.parametrize("back", [False, True])
def test_a_network_that_was_moved_after_a_step(device, name, back):
    """Its states stay where they were: it says so, and nothing has changed."""
    options = {"momentum": 0.9} if name == "SGD" else {}
    homes = (device, "cpu") if back else ("cpu", device)
    net = vg.nn.Linear(2, 3).to(homes[0])
    optimiser = getattr(vg.optim, name)(net.parameters(), lr=0.1, **options)
    for home in homes:
        net.to(home)
        optimiser.zero_grad()
        net(vg.ones((1, 2), device=home)).sum().backward()
        if home == homes[0]:
            optimiser.step()
    before = net.weight.detach().numpy().tobytes()
    with pytest.raises(ValueError, match="move a network before its optimiser is made"):
        optimiser.step()
    assert net.weight.detach().numpy().tobytes() == before
    optimiser.load_state_dict(optimiser.state_dict())
    optimiser.step()
    assert net.weight.detach().numpy().tobytes() != before


def test_a_step_that_fails_changes_nothing(device, monkeypatch):
    """The second parameter's values cannot be computed: the first one's are not stored."""
    params = [put(device, np.ones(3)).requires_grad_() for _ in range(2)]
    optimiser = optim.Adam(params)
    run(optimiser, params, [[np.ones(3)] * 2])
    before, states = [p.tolist() for p in params], optimiser.state_dict()["state"]
    update, calls = optim.Adam.update, []

    def failing(self, *arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise vg.OutOfMemoryError("none left")
        return update(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(optim.Adam, "update", failing)
        with pytest.raises(vg.OutOfMemoryError):
            optimiser.step()
    assert [p.tolist() for p in params] == before and len(calls) == 2
    now = optimiser.state_dict()["state"]
    assert all(now[i]["exp_avg"] is states[i]["exp_avg"] for i in (0, 1))
    optimiser.step()
    assert [p.tolist() for p in params] != before


# Clipping -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
def test_clipping_by_norm(device, rng, norm_type):
    gradients = [rng.standard_normal(shape) for shape in SHAPES]
    norm = np.linalg.norm(np.concatenate([g.ravel() for g in gradients]), norm_type)
    for most in (norm / 3, norm * 3):
        params = [put(device, np.zeros(shape)).requires_grad_() for shape in SHAPES]
        for p, g in zip(params, gradients, strict=True):
            p.grad = put(device, g)
        total = vg.nn.utils.clip_grad_norm_(params, most, norm_type)
        assert abs(total.item() - norm) <= 1e-12 * norm
        factor = min(1.0, most / (norm + 1e-6))
        for p, g in zip(params, gradients, strict=True):
            helpers.assert_within(p.grad, g * factor, 1e-12)


def test_clipping_what_is_special(device):
    p, q = (put(device, np.zeros(2, np.float32)).requires_grad_() for _ in range(2))
    assert vg.nn.utils.clip_grad_norm_([p, q], 1.0).item() == 0.0
    p.grad = put(device, np.array([np.inf, 1], np.float32))
    with pytest.raises(RuntimeError, match="not finite: inf"):
        vg.nn.utils.clip_grad_norm_([p, q], 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [np.inf, 1.0]
    p.grad = put(device, np.array([-7, 0.5], np.float32))
    vg.nn.utils.clip_grad_value_(iter([p, q]), 2)
    assert p.grad.tolist() == [-2.0, 0.5] and q.grad is None
    assert vg.nn.utils.clip_grad_norm_(p, 100.0).dtype == np.float32
    assert p.grad.tolist() == [-2.0, 0.5]


# Training -----------------------------------------------------------------------------------------


def trained(device, name, chosen):
    """200 steps of a perceptron on a task that a line cannot solve; its losses and weights."""
    random = vg.random.default_rng(3, device=device)
    x = random.standard_normal((128, 2), "float32")
    y = vg.astype(x[:, :1] * x[:, 1:] > 0, "float32")
    shapes = [(2, 16), (16,), (16, 1), (1,)]
    params = [random.standard_normal(s, "float32").requires_grad_() for s in shapes]
    a, b, c, d = params
    optimiser = getattr(optim, name)(params, **chosen)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimiser, 200)
    losses = []
    for _ in range(200):
        loss = ((vg.sigmoid(vg.tanh(x @ a + b) @ c + d) - y) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        vg.nn.utils.clip_grad_norm_(params, 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return losses, [helpers.bits(p.detach()) for p in params]


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("SGD", {"lr": 1.0, "momentum": 0.9}), ("Adam", {"lr": 0.05}), ("RMSprop", {"lr": 0.02})],
    ids=lambda x: str(x),
)
def test_a_network_learns_and_twice_the_same(device, name, chosen):
    losses, weights = trained(device, name, chosen)
    assert losses[-1] < 0.1 < 0.2 < losses[0], losses[::20]
    assert trained(device, name, chosen) == (losses, weights)


@pytest.mark.parametrize(
    ("name", "o"),
    [
        ("Adam", {}),
        ("AdamW", {"amsgrad": True}),
        ("RMSprop", {"momentum": 0.5, "centered": True}),
    ],
)
def test_states_that_lack_an_array_are_refused(device, name, o):
    """Each of them in turn: without it the next steps would begin anew, or fail."""
    p = put(device, np.ones(3)).requires_grad_()
    optimiser = getattr(optim, name)([p], **o)
    p.grad = vg.ones_like(p)
    optimiser.step()
    names = [key for key in optimiser.state_dict()["state"][0] if key != "step"]
    assert len(names) >= 2
    for key in names:
        for value in (None, 3.0, "missing"):
            saved = optimiser.state_dict()
            saved["state"][0] = {**saved["state"][0], key: value}
            if value == "missing":
                del saved["state"][0][key]
            other = getattr(optim, name)([put(device, np.ones(3)).requires_grad_()], **o)
            with pytest.raises(ValueError, match=key):
                other.load_state_dict(saved)
            assert not len(other.state)
    other.load_state_dict(optimiser.state_dict())
