"""Steps of many parameters by one call: beside the formulas one by one, over lists of all shapes.

The formulas are update() of the same classes, which test_optim.py compares with NumPy's.
"""

import gc
import itertools

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import apply, observe
from pyvecgpu.native import library
from pyvecgpu.native.abi import Algorithm, Allocator, Update

optim = vg.optim
SIZES = (0, 1, 7, 255, 256, 1023, 1024, 1025, 2047, 2049, 4099, 8192)


def one_by_one(cls):
    """The class as somebody's own, whose parameters go through update(), one after the other."""
    return type(cls.__name__, (cls,), {"update": lambda self, *given: cls.update(self, *given)})


def options(**choices):
    return [dict(zip(choices, one, strict=True)) for one in itertools.product(*choices.values())]


BOTH = [False, True]
COMMON = {"weight_decay": [0, 0.03], "maximize": BOTH}
CASES = [
    *[("SGD", o) for o in options(lr=[0.1], momentum=[0, 0.9], dampening=[0, 0.4], nesterov=BOTH,
                                  **COMMON)
      if not o["nesterov"] or (o["momentum"] and not o["dampening"])],
    *[(name, o) for name in ("Adam", "AdamW")
      for o in options(lr=[0.02], betas=[(0.8, 0.95)], amsgrad=BOTH, **COMMON)],
    *[("RMSprop", o) for o in options(lr=[0.02], alpha=[0.9], momentum=[0, 0.7], centered=BOTH,
                                      **COMMON)],
]  # fmt: skip
EVERY = [("SGD", {"momentum": 0.9, "dampening": 0.1}), ("Adam", {"amsgrad": True}),
         ("AdamW", {}), ("RMSprop", {"momentum": 0.5, "centered": True}), ("SGD", {}),
         ("RMSprop", {})]  # fmt: skip


def layout(rng, x, kind, device):
    """An Array of the values, and the larger one that it is a view of."""
    if kind == "odd":  # contiguous, at any distance from a multiple of 16 bytes
        before = int(rng.integers(1, 16))
        whole = put(device, np.full(x.size + before + 3, 5, x.dtype))
        view = whole[before : before + x.size].reshape(x.shape)
    elif kind == "strided":
        whole = put(device, np.full((*x.shape, 2), 5, x.dtype))
        view = whole[..., 1]
    elif kind == "transposed":
        whole = view = put(device, np.zeros(x.shape[::-1], x.dtype))
        view = vg.permute_dims(whole, tuple(reversed(range(x.ndim))))
    else:
        whole = view = put(device, np.zeros(x.shape, x.dtype))
    view[...] = put(device, x)
    return view, whole


class Model:
    """Parameters of random shapes and layouts, in one dtype; the same for the same seed."""

    def __init__(self, device, dtype, count, seed, kinds=("plain", "odd")):
        self.rng = rng = np.random.default_rng([5, seed])
        self.device, self.dtype = device, dtype
        self.kinds, self.params, self.wholes = kinds, [], []
        for number in range(count):
            size = int(rng.choice(SIZES)) if rng.integers(2) else int(rng.integers(1, 60))
            shape = [(size,), (size, 1), (1, 2, size), ()][number % 4]
            view, whole = layout(rng, self.values(shape), rng.choice(kinds), device)
            self.params.append(view.requires_grad_())
            self.wholes.append(whole)

    def values(self, shape):
        return self.rng.standard_normal(shape).astype(self.dtype)

    def gradients(self):
        for p in self.params:
            p.grad = layout(self.rng, self.values(p.shape), self.rng.choice(self.kinds),
                            self.device)[0]  # fmt: skip

    def run(self, optimiser, steps=3):
        for _ in range(steps):
            self.gradients()
            optimiser.step()
        return self

    def memory(self):
        """Everything that the parameters are views of."""
        return [whole.detach().numpy() for whole in self.wholes]


def agree(device, results, expected, exact, tolerance, message):
    for p, q in zip(results, expected, strict=True):
        assert p.dtype == q.dtype and p.shape == q.shape
        if exact:
            helpers.assert_same(p.detach(), q.detach().numpy(), message)
        else:
            reference = helpers.widened(q.detach().numpy())
            helpers.assert_within(p.detach(), reference, tolerance, message)


@pytest.mark.parametrize("dtype", helpers.WIDE_FLOATS, ids=str)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_options_give_what_formulas_give(device, name, dtype):
    """The same operations in the same order; on a card with one rounding of a * b + c."""
    chosen = [o for n, o in CASES if n == name]
    assert len(chosen) >= 8
    for seed, o in enumerate(chosen):
        cls = getattr(optim, name)
        found, other = (Model(device, dtype, 9, seed) for _ in range(2))
        found.run(cls(found.params, **o))
        other.run(one_by_one(cls)(other.params, **o))
        exact = device != "cuda"
        agree(device, found.params, other.params, exact, 1e-5 if dtype == "f4" else 1e-13, str(o))
        for one, two in zip(found.memory(), other.memory(), strict=True):
            if exact:  # what lies around the views, too
                helpers.assert_same(one, two, str(o))


@pytest.mark.parametrize("dtype", helpers.HALVES, ids=str)
@pytest.mark.parametrize(("name", "o"), EVERY, ids=str)
def test_halves_are_computed_in_float32(device, name, o, dtype):
    """A step from given states: beside the same of float32, rounded once."""

    def stepped(of):
        model = Model(device, dtype, 9, 3)
        params = [p.detach().astype(of).requires_grad_() for p in model.params]
        optimiser = getattr(optim, name)(params, lr=0.25, **o)
        for _ in range(2):
            for p in params:
                p.grad = put(device, model.values(p.shape)).astype(of)
            if of != dtype:  # the state that the halves keep
                for p in params:
                    state = optimiser.state[p]
                    optimiser.state[p] = {
                        key: x.astype(dtype).astype(of) if isinstance(x, vg.Array) else x
                        for key, x in state.items()
                    }
                for p in params:
                    p.detach()[...] = p.detach().astype(dtype)
            optimiser.step()
        return params

    halves, wide = stepped(dtype), stepped(np.dtype(np.float32))
    for p, q in zip(halves, wide, strict=True):
        expected = helpers.widened(q.detach().astype(dtype).numpy())
        # Both kernels may fuse other products and sums: then a state, and with it a step of 0.25
        # times a quotient of two, is rounded to its neighbour.
        unit = helpers.UNIT_ROUNDOFF[dtype] if device == "cuda" else 0
        limit = (np.abs(expected) + 0.5) * 2 * unit
        helpers.assert_within(p.detach(), expected, limit, name)


@pytest.mark.parametrize(("name", "o"), EVERY, ids=str)
@pytest.mark.parametrize("kinds", [("plain", "odd"), ("strided", "transposed", "plain", "odd")],
                         ids=["contiguous", "views"])  # fmt: skip
def test_lists_beyond_a_launch(device, name, o, kinds):
    """Lists of both lengths of a launch, and beyond; views, whose neighbours stay."""
    # The fewer arrays a parameter has, the more of them a launch takes.
    many = (
        () if "strided" in kinds else (600 if name.startswith("Adam") or any(o.values()) else 1100,)
    )
    for count in (1, 64, 65, 130, *many):
        dtype = np.dtype(np.float32)
        found, other = (Model(device, dtype, count, count, kinds) for _ in range(2))
        cls = getattr(optim, name)
        found.run(cls(found.params, lr=0.1, **o), 2)
        other.run(one_by_one(cls)(other.params, lr=0.1, **o), 2)
        for one, two in zip(found.memory(), other.memory(), strict=True):
            limit = 0 if device != "cuda" else 1e-5
            helpers.assert_within(one, two, limit, f"{count} parameters")


SWITCHES = [
    *(("SGD", "momentum", 0, 0.9), ("RMSprop", "momentum", 0, 0.5)),
    *(("RMSprop", "centered", False, True), ("Adam", "amsgrad", False, True)),
    ("AdamW", "amsgrad", False, True),
]


@pytest.mark.parametrize(("name", "option", "off", "on"), SWITCHES)
def test_options_that_change_the_states_on_the_way(device, name, option, off, on):
    """Switched on and off after several steps, which are done the short way by then."""

    def run(cls):
        model = Model(device, np.dtype(np.float64), 7, 11)
        optimiser = cls(model.params, lr=0.02, **{option: off})
        for value in (off, on, on, off, on):
            optimiser.param_groups[0][option] = value
            model.run(optimiser, 3)
        return model.params

    cls = getattr(optim, name)
    agree(device, run(cls), run(one_by_one(cls)), device != "cuda", 1e-12, f"{name} {option}")


def test_groups_dtypes_and_parameters_without_gradients(device):
    """Options, dtypes and numbers of steps that differ, and parameters of another device."""

    def run(make):
        devices = [device, device, "cpu", device]
        dtypes = [np.dtype(n) for n in ("f4", "f8", "f4", "f4")]
        models = [Model(*pair, 5, 40 + i) for i, pair in enumerate(zip(devices, dtypes))]  # noqa: B905
        params = [m.params for m in models]
        optimiser = make([{"params": params[0] + params[1] + params[2]},
                          {"params": params[3], "lr": 0.5, "amsgrad": True}])  # fmt: skip
        for step in range(4):
            for model in models:
                model.gradients()
            if step == 1:  # some parameters are a step behind
                for p in params[0][:2] + params[3][1:3]:
                    p.grad = None
            optimiser.step()
        return [p for list_ in params for p in list_], optimiser

    found, optimiser = run(optim.Adam)
    other, beside = run(one_by_one(optim.Adam))
    agree(device, found, other, device != "cuda", 1e-5, "groups")
    states = optimiser.state_dict()["state"], beside.state_dict()["state"]
    assert [s["step"] for s in states[0].values()] == [s["step"] for s in states[1].values()]
    assert {s["step"] for s in states[0].values()} == {3, 4}


def test_a_class_of_ones_own_is_asked(device):
    class Half(optim.SGD):
        def update(self, p, g, state, group):
            values, state = super().update(p, g, state, group)
            return (p + values) * 0.5, state

    p, q = (put(device, np.full(3, 4.0)).requires_grad_() for _ in range(2))
    for optimiser in (Half([p], lr=1.0), optim.SGD([q], lr=1.0)):
        p.grad = q.grad = put(device, np.full(3, 2.0))
        optimiser.step()
    assert (p.tolist(), q.tolist()) == ([3.0] * 3, [2.0] * 3)


def test_options_that_are_arrays(device):
    p, q = (put(device, np.full(3, 4.0, np.float32)).requires_grad_() for _ in range(2))
    p.grad = q.grad = put(device, np.ones(3, np.float32))
    optim.SGD([p], lr=put(device, np.float32(0.5))).step()
    optim.SGD([q], lr=np.float32(0.5)).step()
    assert p.tolist() == q.tolist() == [3.5] * 3


# Memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "o"), EVERY, ids=str)
def test_parameters_that_share_memory(device, name, o):
    """As if all had been read before the first was written; a gradient may be a parameter."""

    def run(cls):
        base = put(device, np.arange(1, 81, dtype=np.float64) / 8)
        parts = [
            base[:30],
            base[8:38],
            put(device, np.ones(5)),
            base[40:70],
            base[42:45],
            base[60:68],
        ]
        params = [part.requires_grad_() for part in parts]
        optimiser = cls(params, lr=0.1, **o)
        for _ in range(2):
            params[0].grad, params[1].grad = params[1].detach(), base[3:33].detach()
            params[2].grad = params[2].detach()
            for number, p in enumerate(params[3:]):
                p.grad = vg.full_like(p, number - 1.5)
            optimiser.step()
        return [base, params[2]]

    cls = getattr(optim, name)
    agree(device, run(cls), run(one_by_one(cls)), device != "cuda", 1e-13, name)


@pytest.mark.parametrize(("name", "o"), EVERY, ids=str)
def test_what_was_given_out_stays(device, name, o):
    """state_dict() and state[p] give what later steps leave alone; others change in place."""
    model = Model(device, np.dtype(np.float32), 4, 1)
    optimiser = getattr(optim, name)(model.params, lr=0.1, **o)
    model.run(optimiser, 2)
    given = [optimiser.state_dict()["state"], {0: optimiser.state[model.params[1]]}]
    arrays = [x for states in given for s in states.values() for x in s.values()
              if isinstance(x, vg.Array)]  # fmt: skip
    before = [helpers.bits(x) for x in arrays]
    model.run(optimiser, 3)
    assert [helpers.bits(x) for x in arrays] == before
    if any(o.values()) or name.startswith("Adam"):
        pointers = [optimiser.state.of(p) for p in model.params]
        model.run(optimiser, 1)
        for p, old in zip(model.params, pointers, strict=True):
            for key, x in optimiser.state.of(p).items():
                assert x is old[key] or key == "step"


def test_a_graph_notices_the_step(device):
    w = put(device, np.ones(3)).requires_grad_()
    loss = (w * w).sum()
    w.grad = put(device, np.ones(3))
    optim.SGD([w], lr=0.5).step()
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()
    (w * w).sum().backward()
    assert w.grad.tolist() == [2.0] * 3 and w.is_leaf and w.requires_grad


def test_the_seam_sees_one_call(device):
    model = Model(device, np.dtype(np.float32), 5, 2, ("plain",))
    optimiser = optim.SGD(model.params, lr=0.5, momentum=0.9)
    model.run(optimiser, 1)
    model.gradients()
    calls = []
    with observe(calls.append):
        optimiser.step()
    (call,) = calls
    assert call.method == "optimize" and call.static["algorithm"] == Algorithm.SGD
    assert [x.shape for x in call.results] == 2 * [p.shape for p in model.params]
    assert [*call.inputs] == [f"parts[{i}]" for i in range(5)]


# On a card ----------------------------------------------------------------------------------------


def launches(device, work):
    before = vg.counters(device)
    work()
    after = vg.counters(device)
    return after["launches"] - before["launches"], after["waits"] - before["waits"]


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(("name", "o"), EVERY, ids=str)
def test_launches(device, name, o):
    """One for 500 parameters, however long; few for more, one more for another dtype; no wait."""
    for count, most in ((1, 1), (64, 1), (500, 1), (1100, 2)):
        model = Model(device, np.dtype(np.float32), count, 3)
        optimiser = getattr(optim, name)(model.params, **o)
        model.run(optimiser, 1)
        model.gradients()
        assert launches(device, optimiser.step) <= (most, 0)
        norm = launches(device, lambda m=model: vg.nn.utils.clip_grad_norm_(m.params, 0.1))
        assert norm <= (3, 0)
    halves = Model(device, np.dtype(np.float16), 10, 3).params
    for p in halves:
        p.grad = vg.ones_like(p)
    optimiser = optim.SGD([*halves, *model.params], lr=0.1)
    assert launches(device, optimiser.step)[0] <= 4


@pytest.mark.devices("sim")
@pytest.mark.parametrize(("name", "o"), EVERY, ids=str)
def test_a_step_that_runs_out_of_memory_changes_nothing(device, name, o):
    """At its first step, at a later one, and after state_dict has given its states away."""
    simulator = library.load("sim")
    gc.collect()
    with helpers.allocator(device, Allocator.ALLOCATOR_DIRECT):
        failed = 0
        for steps, give in ((0, False), (2, False), (2, True)):
            nth = 1
            while True:
                model = Model(device, np.dtype(np.float32), 3, 7)
                model.params += [put(device, np.ones((4, 6), "f4")).T.requires_grad_()]
                model.wholes += model.params[-1:]
                optimiser = getattr(optim, name)(model.params, lr=0.1, **o)
                model.run(optimiser, steps)
                given = optimiser.state_dict() if give else None
                model.gradients()
                before = [x.tobytes() for x in model.memory()], states(optimiser)
                simulator.pvg_sim_fail(b"malloc", nth)
                try:
                    optimiser.step()
                    break
                except vg.OutOfMemoryError as error:
                    error.__traceback__ = None
                    failed += 1
                finally:
                    simulator.pvg_sim_fail(b"malloc", 0)
                now = [x.tobytes() for x in model.memory()], states(optimiser)
                assert now == before, f"allocation {nth} after {steps} steps"
                nth += 1
            del given
        assert failed >= 3
        del model, optimiser
        gc.collect()


def states(optimiser):
    params = [p for group in optimiser.param_groups for p in group["params"]]
    return [
        {key: helpers.bits(x) if isinstance(x, vg.Array) else x
         for key, x in optimiser.state.of(p).items()}
        for p in params
    ]  # fmt: skip


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    ("name", "o"),
    [("SGD", {"momentum": 0.9}), ("SGD", {}), ("RMSprop", {"momentum": 0.5}), ("AdamW", {})],
    ids=str,
)
def test_steps_in_a_recording(device, name, o):
    """Launched three times, it does what three steps do."""
    models = [Model(device, np.dtype(np.float32), 70, 9, ("plain",)) for _ in range(2)]
    optimisers = [getattr(optim, name)(m.params, lr=0.05, **o) for m in models]
    for model, optimiser in zip(models, optimisers, strict=True):
        model.run(optimiser, 1)
        model.gradients()
    again = models[0].params[0].backend.record(optimisers[0].step)
    for _ in range(3):
        again()
        optimisers[1].step()
    agree(device, models[0].params, models[1].params, True, 0, name)


@pytest.mark.devices("sim", "cuda")
def test_steps_that_no_recording_can_repeat(device):
    """States that begin in it, or are copied in it; numbers of the host for Adam."""

    def refused(name, match, give=False, steps=1, **o):
        model = Model(device, np.dtype(np.float32), 3, 9, ("plain",))
        optimiser = getattr(optim, name)(model.params, lr=0.05, **o)
        model.run(optimiser, steps)
        given = optimiser.state_dict() if give else None
        model.gradients()
        before = [helpers.bits(p.detach()) for p in model.params]
        with pytest.raises(ValueError, match=match):
            model.params[0].backend.record(optimiser.step)
        assert [helpers.bits(p.detach()) for p in model.params] == before
        optimiser.step()
        assert [helpers.bits(p.detach()) for p in model.params] != before
        return given

    refused("Adam", "begin anew", steps=0)
    refused("AdamW", "begin anew", give=True)
    refused("SGD", "begin anew", steps=0, momentum=0.9)
    refused("RMSprop", "begin anew", steps=0)
    refused("RMSprop", "begin anew", give=True)
    p, g, *states = (put(device, np.ones(3, "f4")) for _ in range(4))
    values = numbers(rate=1, share1=1, share2=1)
    step = (Algorithm.ADAM, [p, *states], [g], values, None)
    with pytest.raises(ValueError, match="number of the step"):
        p.backend.record(lambda: apply(p.backend, "optimize", *step))


# The call itself ----------------------------------------------------------------------------------


def numbers(**given):
    values = [0.0] * Update.UPDATE_COUNT
    for name, value in given.items():
        values[Update[f"UPDATE_{name.upper()}"]] = value
    return values


def test_refusals(device):
    p, g = put(device, np.ones(3, "f4")), put(device, np.ones(3, "f4"))
    read_only = vg.broadcast_to(put(device, np.ones(1, "f4")), (3,))
    momentum = numbers(rate=1, momentum=0.5)
    cases = [
        (ValueError, Algorithm.ADAM, [p, g, g.copy()], [g], numbers(share1=1)),
        (ValueError, Algorithm.ADAM, [p, g, g.copy()], [g], numbers(share1=1.5, share2=1)),
        (ValueError, Algorithm.ADAM, [p, g, g.copy()], [g], numbers(share1=np.nan, share2=1)),
        (ValueError, Algorithm.SGD, [p, put(device, np.ones(4, "f4"))], [g], momentum),
        (ValueError, Algorithm.SGD, [p], [put(device, np.ones((3, 1), "f4"))], numbers(rate=1)),
        (ValueError, Algorithm.SGD, [read_only], [g], numbers(rate=1)),
        (TypeError, Algorithm.SGD, [p], [put(device, np.ones(3))], numbers(rate=1)),
        (TypeError, Algorithm.SGD, [p, put(device, np.ones(3))], [g], momentum),
        (TypeError, Algorithm.SGD, [put(device, np.ones(3, int))] * 1,
         [put(device, np.ones(3, int))], numbers(rate=1)),
    ]  # fmt: skip
    for error, *arguments in cases:
        with pytest.raises(error):
            apply(p.backend, "optimize", *arguments, None)
        assert p.tolist() == [1.0] * 3
    apply(p.backend, "optimize", Algorithm.SGD, [], [], numbers(rate=1), None)
    for wrong, error in ((np.zeros(14), ValueError), (np.zeros(15, "f4"), TypeError)):
        with pytest.raises(error, match="renewed numbers"):
            renewed = put(device, wrong)
            apply(p.backend, "optimize", Algorithm.SGD, [p], [g], numbers(rate=1), renewed)
        assert p.tolist() == [1.0] * 3


@pytest.mark.parametrize("dtype", [*helpers.HALVES, *helpers.WIDE_FLOATS], ids=str)
@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_numbers_on_the_device(device, algorithm, dtype):
    """They are read instead of those of the call, and give the same bits."""
    given = {"rate": 0.01, "weight_decay": 0.03, "maximize": 1, "momentum": 0.9, "dampening": 0.1,
             "epsilon": 1e-7, "beta1": 0.9, "beta2": 0.999, "share1": 1 - 0.9**7, "amsgrad": 1,
             "share2": 1 - 0.999**7, "shrink": 0.0123, "centered": 1}  # fmt: skip
    values = numbers(**given)
    states = 1 if algorithm is Algorithm.SGD else 3
    rng = np.random.default_rng(4)
    hosts = [abs(rng.standard_normal(2000)).astype(dtype) for _ in range(states + 2)]

    def run(values, renewed):
        *targets, gradient = [put(device, x) for x in hosts]
        apply(gradient.backend, "optimize", algorithm, targets, [gradient], values, renewed)
        return [helpers.bits(x) for x in targets]

    renewed = put(device, np.array([5.0, *values, 5.0]))[1:-1]
    only = {"momentum": 0.5, "share1": 1, "share2": 1, "amsgrad": 1, "centered": 1}
    expected = run(values, None)
    assert run(numbers(**only), renewed) == expected != run(numbers(**only), None)


@pytest.mark.parametrize(("name", "o"), EVERY)
def test_a_step_like_the_one_before(device, name, o, rng):
    """It is made ready by that one, and gives what an optimiser gives that begins anew each time.

    Between steps happens what it must notice: rates that change, states that are looked at,
    gradients that are missing or no plain memory, parameters with other memory, other groups.
    """
    shapes = [(3,), (2, 5), (1,)]
    start = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    one, other = [[put(device, x).requires_grad_() for x in start] for _ in range(2)]
    ours, plain = [getattr(optim, name)(params, lr=0.5, **o) for params in (one, other)]

    def other_memory():
        for p in (one[0], other[0]):
            p.raw = vg.copy(p.detach()).raw

    def looked_at():
        state = ours.state[one[1]]
        kept.append([x for x in state.values() if isinstance(x, vg.Array)])
        values.append([x.tolist() for x in kept[-1]])

    between = {
        2: lambda: [group.update(lr=0.25) for group in ours.param_groups + plain.param_groups],
        4: looked_at,
        6: other_memory,
        8: lambda: ours.load_state_dict(ours.state_dict()),
        12: lambda: [
            optimiser.add_param_group({"params": [p], "lr": 0.125})
            for optimiser, p in ((ours, one[-1]), (plain, other[-1]))
        ],
    }
    kept, values, quick = [], [], []
    for optimiser in (ours, plain):
        optimiser.param_groups[0]["params"] = optimiser.param_groups[0]["params"][:2]
    for step in range(15):
        between.get(step, lambda: None)()
        for i, (p, q) in enumerate(zip(one, other, strict=True)):
            g = rng.normal(size=(*p.shape, 2)).astype(np.float32)
            missing = step == 10 and i == 1
            p.grad = (
                None
                if missing
                else put(device, g)[..., 0]
                if step % 5 == 0
                else (put(device, g[..., 0].copy()))
            )
            q.grad = None if missing else put(device, g[..., 0].copy())
        repeated = ours.state.repeated
        plain.state.repeated = None
        ours.step()
        plain.step()
        quick.append(repeated is not None and ours.state.repeated is repeated)
        for p, q in zip(one, other, strict=True):
            assert p.tolist() == q.tolist(), step
    assert [[x.tolist() for x in one] for one in kept] == values
    # Not the first, after what was noticed, nor without one of the gradients.
    assert [step for step, one in enumerate(quick[:11]) if one] == [1, 2, 3, 5, 7, 9]
    assert not any(quick[12:]), "two groups"
