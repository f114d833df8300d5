"""Options of optimisers: every one of every optimiser, wherever it is given, in wrong values."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg

OPTIMISERS = {name: getattr(vg.optim, name) for name in ("SGD", "Adam", "AdamW", "RMSprop")}
FLAGS = {"nesterov", "amsgrad", "centered", "maximize"}
NO_NUMBERS = ["0.1", b"1", None, 0.1j, [0.1], {}, np.ones(2), np.array("x"), object()]
NAN, INFINITY = float("nan"), float("inf")


def wrong(option):
    """(error, value) of what an option cannot be; NumPy's and Arrays are as Python's."""
    numbers = [NAN, INFINITY, -INFINITY, 10**400]
    if option in FLAGS:
        numbers += [2, -1, 0.5]
    elif option != "dampening":
        numbers += [-1, -1e-9]
    if option == "betas":
        numbers += [1, 1.5]
    finite = [x for x in numbers if not isinstance(x, int)]
    numbers += [np.float32(x) for x in finite] + [np.array(x) for x in finite]
    numbers += [lambda device, x=x: put(device, np.float32(x)) for x in finite]
    cases = [(ValueError, x) for x in numbers] + [(TypeError, x) for x in NO_NUMBERS]
    return [*cases, (TypeError, lambda device: vg.zeros(2, device=device))]


def right(option):
    if option in FLAGS:
        return [True, False, 1, 0, np.True_]
    numbers = [0, 0.5, np.float32(0.5), np.array(0.5), np.int8(0), False]
    numbers += [lambda device: put(device, np.float32(0.5))]
    return numbers + {"dampening": [-3.0], "betas": [], "alpha": []}.get(option, [3.0])


def given(option, value, device):
    """What a group gets: of betas the value is the first and the second in turns."""
    value = value(device) if callable(value) else value
    return [(value, 0.5), (0.5, value)] if option == "betas" else [value]


def parameter(device):
    p = vg.ones(3, device=device).requires_grad_()
    p.grad = vg.ones(3, device=device)
    return p


EVERY = [(name, option) for name, of in OPTIMISERS.items()
         for option in of([vg.zeros(1, device="cpu")]).defaults]  # fmt: skip


def test_every_option_is_looked_at():
    taken = {option for _, option in EVERY}
    assert taken - FLAGS == {"lr", "momentum", "dampening", "weight_decay", "betas", "eps", "alpha"}
    assert taken > FLAGS


@pytest.mark.parametrize(("name", "option"), EVERY)
def test_wrong_values_are_refused_wherever_they_are_given(device, name, option):
    of, p, q = OPTIMISERS[name], parameter(device), parameter(device)
    state = of([p]).state_dict()
    for error, wrong_value in wrong(option):
        for value in given(option, wrong_value, device):
            group = {"params": [p], option: value}
            loaded = {**state, "param_groups": [{**state["param_groups"][0], option: value}]}
            old = of([q])
            for call in (
                lambda group=group: of([group]),
                lambda value=value: of([p], **{option: value}),
                lambda group=group, old=old: old.add_param_group(group),
                lambda loaded=loaded, old=old: old.load_state_dict(loaded),
            ):
                with pytest.raises(error, match=rf"^{option} (is|are) .*, not "):
                    call()
            assert len(old.param_groups) == 1 and old.param_groups[0][option] is not value


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_wrong_values_later_change_nothing(device, name, before):
    """A step after so many others says so: one group, two, and one that is done in Python."""
    of = OPTIMISERS[name]
    own = type("Own", (of,), {"update": lambda *args: of.update(*args)})
    for make, groups in [(of, 1), (of, 2), (own, 1)]:
        params = [parameter(device) for _ in range(groups)]
        optimiser = make([{"params": [p]} for p in params])
        for _ in range(before):
            optimiser.step()
        group, seen = optimiser.param_groups[-1], [p.tolist() for p in params]
        for option in (option for of_name, option in EVERY if of_name == name):
            was = group[option]
            for error, wrong_value in wrong(option):
                for value in given(option, wrong_value, device):
                    group[option] = value
                    with pytest.raises(error, match=rf"^{option} (is|are) .*, not "):
                        optimiser.step()
                    group[option] = was
        assert [p.tolist() for p in params] == seen
        optimiser.step()
        assert [p.tolist() for p in params] != seen
        assert [s.get("step", before + 1) for s in optimiser.state_dict()["state"].values()] in (
            [[before + 1] * groups, []]
        )


@pytest.mark.parametrize(("name", "option"), EVERY)
def test_right_values_are_taken(device, name, option):
    of, needed = OPTIMISERS[name], {"momentum": 0.5} if option == "nesterov" else {}
    for right_value in right(option):
        for value in given(option, right_value, device):
            first, later = parameter(device), parameter(device)
            of([first], **needed | {option: value}).step()
            optimiser = of([later], **needed)
            optimiser.param_groups[0][option] = value
            optimiser.step()
            helpers.assert_same(helpers.host(first.detach()), helpers.host(later.detach()))
            assert np.isfinite(first.detach().numpy()).all()


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_only_changes_are_looked_at(device, name, groups):
    seen = []

    class Own(OPTIMISERS[name]):
        def check(self, group):
            seen.append(group)
            super().check(group)

    optimiser = Own([{"params": [parameter(device)]} for _ in range(groups)])
    for _ in range(3):
        optimiser.step()
    seen.clear()
    for lr in (0.5, 0.25):
        for changed in (True, False, False):
            if changed:
                optimiser.param_groups[-1]["lr"] = lr
            optimiser.step()
            assert any(group is optimiser.param_groups[-1] for group in seen) == changed
            seen.clear()


def test_a_class_of_ones_own_has_others():
    class Own(vg.optim.Optimizer):
        def update(self, p, g, state, group):
            return p - group["lr"] * group["speed"], state

    for speed, lr in itertools.product((-1.0, INFINITY), (0.5, NAN)):
        p = parameter("cpu")
        if np.isnan(lr):
            with pytest.raises(ValueError, match=r"^lr is a finite number of 0 or more, not nan$"):
                Own([p], {"lr": lr, "speed": speed})
        else:
            Own([p], {"lr": lr, "speed": speed}).step()
            assert p.tolist() == [1 - lr * speed] * 3


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("name", OPTIMISERS)
def test_launches_of_a_recording(device, name):
    p = parameter(device)
    optimiser = OPTIMISERS[name]([p])
    optimiser.step()
    launch = p.backend.record(optimiser.step)
    launch()
    seen = p.tolist()
    for error, value in wrong("lr"):
        optimiser.param_groups[0]["lr"] = value(device) if callable(value) else value
        with pytest.raises(error, match=r"^lr is a finite number of 0 or more, not "):
            launch()
    optimiser.param_groups[0]["lr"] = 0.5
    assert p.tolist() == seen
    launch()
    assert p.tolist() != seen


@pytest.mark.devices("sim", "cuda")
def test_a_recorded_option_that_is_an_array(device):
    """It is not read while a graph is recorded, where nothing can be."""
    p, rate = parameter(device), put(device, np.float32(0.5))
    optimiser = vg.optim.SGD([p])
    optimiser.step()
    before, optimiser.param_groups[0]["lr"] = p.tolist(), rate
    launch = p.backend.record(optimiser.step)
    launch()
    rate *= 2
    launch()
    assert p.tolist() == [x - 1.5 for x in before]
