"""Schedules of rates beside closed forms; what they do not take; going on from a state."""

import math

import numpy as np
import pytest

import pyvecgpu as vg

lr_scheduler = vg.optim.lr_scheduler
BASE = (0.5, 0.02)


def made(name="SGD", **chosen):
    with vg.device("cpu"):
        groups = [{"params": vg.ones(1).requires_grad_(), "lr": lr} for lr in BASE]
        return getattr(vg.optim, name)(groups, **chosen)


def cosine(start, stop, part):
    return stop + (start - stop) * (1 + math.cos(math.pi * part)) / 2


# (schedule, its arguments, the factor of the rate after n steps)
FACTORS = [
    ("StepLR", {"step_size": 3}, lambda n: 0.1 ** (n // 3)),
    ("StepLR", {"step_size": np.int64(2), "gamma": 0.5}, lambda n: 0.5 ** (n // 2)),
    ("MultiStepLR", {"milestones": [5, 2, 2]}, lambda n: 0.1 ** (2 * (n >= 2) + (n >= 5))),
    ("ExponentialLR", {"gamma": 0.9}, lambda n: 0.9**n),
    ("ConstantLR", {}, lambda n: 1 / 3 if n < 5 else 1),
    ("LinearLR", {}, lambda n: 1 / 3 + 2 / 3 * min(n, 5) / 5),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 4},
     lambda n: 1 - min(n, 4) / 4),
    ("LambdaLR", {"lr_lambda": lambda n: 1 / (n + 1)}, lambda n: 1 / (n + 1)),
    ("CosineAnnealingLR", {"T_max": 6}, lambda n: (1 + math.cos(math.pi * n / 6)) / 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "chosen", "factor"), FACTORS, ids=lambda x: str(x)[:20])
def test_rates(name, chosen, factor):
    optimiser = made()
    schedule = getattr(lr_scheduler, name)(optimiser, **chosen)
    for n in range(14):
        rates = [group["lr"] for group in optimiser.param_groups]
        assert schedule.get_last_lr() == rates and schedule.last_epoch == n
        assert np.allclose(rates, [base * factor(n) for base in BASE], rtol=1e-12, atol=1e-16)
        schedule.step()


# Chained: what each schedule does alone is a factor of what all of them do ------------------------

PRODUCTS = [one for one in FACTORS if one[0] not in ("LambdaLR", "CosineAnnealingLR")]
PRODUCTS = [one for one in PRODUCTS if one[2](9)]  # those that come to 0 have no factors after it
COSINE = [
    0.25,
    0.214852813742386,
    0.13,
    0.0225735931288072,
    0.01,
    0.0817588386092958,
    0.1275,
    0.210585046789419,
    0.245,
    0.10529252339471,
    0.0658210678118655,
]
SEQUENCE = [
    0.166666666666667,
    0.25,
    0.333333333333333,
    0.208333333333333,
    0.25,
    0.5,
    0.225,
    0.2025,
    0.18225,
    0.0820125,
    0.07381125,
]
PAIRS = [(one, other) for one in PRODUCTS for other in PRODUCTS]


@pytest.mark.parametrize(("name", "chosen", "factor"), FACTORS, ids=lambda x: str(x)[:20])
def test_one_alone_has_its_rates_to_the_bit(name, chosen, factor):
    schedule = getattr(lr_scheduler, name)(made(), **chosen)
    for n in range(14):
        assert schedule._found() == [schedule.rate(base, n, i) for i, base in enumerate(BASE)]
        schedule.step()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0][0]}-{pair[1][0]}")
def test_two_beside_each_other(pair):
    def both():
        optimiser = made()
        return optimiser, [getattr(lr_scheduler, name)(optimiser, **c) for name, c, _ in pair]

    def states(optimiser, schedules):
        return optimiser.state_dict(), [schedule.state_dict() for schedule in schedules]

    optimiser, schedules = both()
    for n in range(14):
        rates = [group["lr"] for group in optimiser.param_groups]
        expected = [base * pair[0][2](n) * pair[1][2](n) for base in BASE]
        assert np.allclose(rates, expected, rtol=1e-12, atol=0), n
        # What goes on from the states of any step, in any order, has the same rates.
        again, others = both()
        state, kept = states(optimiser, schedules)
        again.load_state_dict(state)
        for other, one in list(zip(others, kept, strict=True))[:: 1 if n % 2 else -1]:
            other.load_state_dict(one)
        assert again.state_dict() == state
        for schedule in (*schedules, *others):
            schedule.step()
        assert again.state_dict() == optimiser.state_dict()


def rates_of(optimiser, *schedules):
    """The first group's rates before each of eleven rounds of one step of every schedule."""
    rates = []
    for _ in range(11):
        rates.append(optimiser.param_groups[0]["lr"])
        for schedule in schedules:
            schedule.step()
    return rates


def test_a_cosine_beside_steps_and_one_after_the_other():
    """The rates of torch 2.13 for the same, whose cosine comes up by what its own would rise."""
    optimiser = made()
    lr_scheduler.ConstantLR(optimiser, factor=0.5, total_iters=99)
    cosine_, steps = (
        lr_scheduler.CosineAnnealingLR(optimiser, T_max=4, eta_min=0.01),
        lr_scheduler.StepLR(optimiser, 3, gamma=0.5),
    )
    rates = rates_of(optimiser, cosine_, steps)
    assert np.allclose(rates, COSINE, rtol=1e-12, atol=0)
    optimiser = made()
    parts = [
        lr_scheduler.LinearLR(optimiser, total_iters=4),
        lr_scheduler.ExponentialLR(optimiser, 0.9),
    ]
    one = lr_scheduler.SequentialLR(optimiser, parts, milestones=[5])
    steps = lr_scheduler.StepLR(optimiser, 3, gamma=0.5)
    rates = rates_of(optimiser, one, steps)
    assert np.allclose(rates, SEQUENCE, rtol=1e-12, atol=0)


def test_one_that_sets_its_rates_whatever_others_did():
    optimiser = made()
    steps = lr_scheduler.StepLR(optimiser, 1, gamma=0.5)
    own = lr_scheduler.LambdaLR(optimiser, lambda n: 1 / (n + 1))
    for n in range(5):
        assert np.allclose(own.get_last_lr(), [base / (n + 1) for base in BASE], rtol=1e-12, atol=0)
        steps.step()
        own.step()


def test_a_state_of_before_the_rates_were_kept():
    first = lr_scheduler.StepLR(made(), 2, gamma=0.5)
    for _ in range(5):
        first.step()
    state = first.state_dict()
    again = lr_scheduler.StepLR(made(), 2, gamma=0.5)
    again.load_state_dict({key: state[key] for key in ("last_epoch", "base_lrs")})
    assert again.state_dict() == state
    again = lr_scheduler.StepLR(again.optimizer, 2, gamma=0.5, last_epoch=6)
    assert again.last_epoch == 7 and again.get_last_lr() == [base * 0.5**3 for base in BASE]


@pytest.mark.parametrize(("name", "chosen", "factor"), FACTORS, ids=lambda x: str(x)[:20])
def test_a_state_that_is_none_and_groups_that_were_added(name, chosen, factor):
    schedule = getattr(lr_scheduler, name)(made(), **chosen)
    schedule.step()
    state = schedule.state_dict()
    for wrong, message in (
        ({}, r"not of a schedule; missing: \['last_epoch', 'base_lrs'\]"),
        ({"last_epoch": 1}, r"missing: \['base_lrs'\]"),
        ({**state, "rates": [1.0]}, "of 1 groups, and here are 2"),
    ):
        with pytest.raises(ValueError, match=message):
            schedule.load_state_dict(wrong)
        assert schedule.state_dict() == state
    with vg.device("cpu"):
        schedule.optimizer.add_param_group({"params": vg.ones(1).requires_grad_()})
    rates = [group["lr"] for group in schedule.optimizer.param_groups]
    sequence = lambda: lr_scheduler.SequentialLR(schedule.optimizer, [schedule], [])  # noqa: E731
    for call in (schedule.step, lambda: schedule.load_state_dict(state), sequence):
        with pytest.raises(ValueError, match=f"{name} was made for 2 groups .* has 3: make it"):
            call()
        assert schedule.last_epoch == 1 and schedule.base_lrs == list(BASE)
        assert [group["lr"] for group in schedule.optimizer.param_groups] == rates


def test_a_floor_of_the_cosine_and_a_function_for_each_group():
    optimiser = made()
    schedule = lr_scheduler.CosineAnnealingLR(optimiser, T_max=10, eta_min=0.01)
    for _ in range(10):
        schedule.step()
    assert np.allclose(schedule.get_last_lr(), 0.01, rtol=1e-12, atol=0)
    schedule = lr_scheduler.LambdaLR(made(), [lambda n: n, lambda n: 2.0])
    schedule.step()
    assert schedule.get_last_lr() == [0.5, 0.04]


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("three_phase", [False, True])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_one_cycle(name, three_phase, strategy):
    optimiser = made(name)
    schedule = lr_scheduler.OneCycleLR(
        optimiser, [1.0, 2.0], epochs=4, steps_per_epoch=5, anneal_strategy=strategy,
        three_phase=three_phase,
    )  # fmt: skip
    ends = [0, 5, 10, 19] if three_phase else [0, 5, 19]
    most = [1.0, 2.0]
    anneal = cosine if strategy == "cos" else lambda a, b, part: a + (b - a) * part
    for n in range(20):
        phase = next(i for i in range(len(ends) - 1) if n <= ends[i + 1])
        part = (n - ends[phase]) / (ends[phase + 1] - ends[phase])
        for group, top in zip(optimiser.param_groups, most, strict=True):
            rates = [top / 25, top, *([top / 25] * three_phase), top / 25 / 1e4]
            momenta = [0.95, 0.85, *([0.95] * three_phase), 0.95]
            expected = anneal(rates[phase], rates[phase + 1], part)
            assert abs(group["lr"] - expected) <= 1e-12, n
            momentum = group["momentum"] if name == "SGD" else group["betas"][0]
            assert abs(momentum - anneal(momenta[phase], momenta[phase + 1], part)) <= 1e-12
        schedule.step()  # the last is one beyond the last batch, and keeps the rate
    assert np.allclose(schedule.get_last_lr(), [x / 25e4 for x in most], rtol=1e-9, atol=0)
    before = schedule.state_dict()
    with pytest.raises(ValueError, match="20 steps"):
        schedule.step()
    assert schedule.state_dict() == before


def test_one_after_the_other():
    optimiser = made()
    warm_up = lr_scheduler.LinearLR(optimiser, start_factor=0.25, total_iters=4)
    after = lr_scheduler.CosineAnnealingLR(optimiser, T_max=6)
    schedule = lr_scheduler.SequentialLR(optimiser, [warm_up, after], milestones=[4])
    for n in range(10):
        factor = 0.25 + 0.75 * n / 4 if n < 4 else (1 + math.cos(math.pi * (n - 4) / 6)) / 2
        rates = [group["lr"] for group in optimiser.param_groups]
        assert np.allclose(rates, [base * factor for base in BASE], rtol=1e-12, atol=0)
        schedule.step()


def test_going_on_from_a_state():
    def one():
        return lr_scheduler.OneCycleLR(made(), 1.0, total_steps=9)

    through, first = one(), one()
    for _ in range(4):
        through.step()
        first.step()
    again = one()
    again.load_state_dict(first.state_dict())
    assert again.get_last_lr() == first.get_last_lr()
    for _ in range(4):
        through.step()
        again.step()
        assert again.get_last_lr() == through.get_last_lr()
        groups = zip(through.optimizer.param_groups, again.optimizer.param_groups, strict=True)
        assert all(a["momentum"] == b["momentum"] for a, b in groups)
    with pytest.raises(ValueError, match="9 steps"):
        again.load_state_dict({**first.state_dict(), "last_epoch": 99})
    assert again.last_epoch == 8
    with pytest.raises(ValueError, match="of 1 groups"):
        again.load_state_dict({"last_epoch": 1, "base_lrs": [1.0]})


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda o: lr_scheduler.StepLR(o, 0), ValueError, "step_size"),
        (lambda o: lr_scheduler.StepLR(o, np.int64(0)), ValueError, "step_size"),
        (lambda o: lr_scheduler.LinearLR(o, total_iters=0), ValueError, "total_iters"),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=0), ValueError, "T_max"),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 2.5), ValueError, "T_max"),
        (lambda o: lr_scheduler.LinearLR(o, start_factor=0), ValueError, "factors"),
        (lambda o: lr_scheduler.ConstantLR(o, factor=2), ValueError, "factor"),
        (lambda o: lr_scheduler.LambdaLR(o, [abs]), ValueError, "1 functions for 2 groups"),
        (lambda o: lr_scheduler.StepLR(o, 1, last_epoch=3), KeyError, "initial_lr"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0), ValueError, "total_steps"),
        (lambda o: lr_scheduler.OneCycleLR(o, [1.0], 5), ValueError, "1 rates for 2 groups"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0, 5, pct_start=2), ValueError, "pct_start"),
        (lambda o: lr_scheduler.OneCycleLR(o, 1.0, 5, anneal_strategy="x"), ValueError, "'x'"),
        (lambda o: lr_scheduler.SequentialLR(o, [], [1]), ValueError, "one milestone less"),
        (lambda o: lr_scheduler.LRScheduler(o), NotImplementedError, "no rate"),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call(made())
