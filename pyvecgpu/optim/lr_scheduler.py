"""Schedules: an optimiser's rates as functions of how many times step() was called.

    schedule = vg.optim.lr_scheduler.StepLR(optimiser, step_size=30, gamma=0.1)
    for epoch in range(90):
        ...
        schedule.step()

Names and parameters are torch's. A rate is computed of the number of steps, not of the rate before:
what state_dict keeps is small, and going on from it gives the same rates. A schedule of one's own
defines rate(base, step, group).

Several schedules of one optimiser, each of which does its step, are chained as in torch: one that
finds another rate than its own changes that by as much as its own would have changed. So do StepLR,
MultiStepLR, ExponentialLR, ConstantLR, LinearLR and CosineAnnealingLR; LambdaLR, OneCycleLR and
those of one's own set their rates whatever others did. SequentialLR does what its present one does.
"""

import bisect
import math
from numbers import Integral

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "SequentialLR",
    "StepLR",
]


class LRScheduler:
    """What all schedules have. KeyError: last_epoch for an optimiser that had no schedule.

    >>> class Halves(vg.optim.lr_scheduler.LRScheduler):
    ...     def rate(self, base, step, group):
    ...         return base / 2**step
    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> schedule = Halves(optimiser)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, last_epoch=-1):
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("with last_epoch every group of parameters needs an initial_lr")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch + 1
        now = self.rates(self.last_epoch)
        self._set(now if last_epoch != -1 else self._after(self._found(), self.last_epoch))

    def rate(self, base, step, group):
        """Return the rate of a group (its number) after so many steps; base: its initial rate."""
        raise NotImplementedError(f"{type(self).__name__} has no rate(base, step, group)")

    def rates(self, step):
        """Return the rates of all groups after so many steps."""
        return [self.rate(base, step, group) for group, base in enumerate(self.base_lrs)]

    def step(self):
        """Go on by one step: set the rates of the optimiser.

        >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
        >>> schedule = vg.optim.lr_scheduler.StepLR(optimiser, step_size=1, gamma=0.5)
        >>> schedule.step()
        >>> optimiser.param_groups[0]["lr"]
        0.5
        """
        rates = self._after(self._found(), self.last_epoch + 1)
        self.last_epoch += 1
        self._set(rates)

    def _found(self):
        """Return the rates that the optimiser has, whoever set them."""
        groups = self.optimizer.param_groups
        if len(groups) != len(self.base_lrs):
            raise ValueError(
                f"{type(self).__name__} was made for {len(self.base_lrs)} groups of parameters, "
                f"and the optimiser has {len(groups)}: make it after add_param_group"
            )
        return [group["lr"] for group in groups]

    def _after(self, found, step):
        """Return the rates after so many steps, where the optimiser has had the rates found."""
        return self.rates(step)

    def _set(self, rates):
        self._last_lr = rates
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def get_last_lr(self):
        """Return the rates that are set.

        >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
        >>> vg.optim.lr_scheduler.StepLR(optimiser, step_size=1).get_last_lr()
        [1.0]
        """
        return list(self._last_lr)

    def state_dict(self):
        """Return where the schedule is, a dict.

        >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
        >>> schedule = vg.optim.lr_scheduler.StepLR(optimiser, step_size=3)
        >>> schedule.state_dict()["last_epoch"]
        0
        """
        return {
            "last_epoch": self.last_epoch,
            "base_lrs": list(self.base_lrs),
            "rates": [group["lr"] for group in self.optimizer.param_groups],
        }

    def load_state_dict(self, state_dict):
        """Go to where another was, and set its rates. ValueError: of other groups, or no state.

        >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
        >>> schedule = vg.optim.lr_scheduler.StepLR(optimiser, step_size=3)
        >>> schedule.load_state_dict(schedule.state_dict())
        """
        missing = [name for name in ("last_epoch", "base_lrs") if name not in state_dict]
        if missing:
            raise ValueError(f"the state is not of a schedule; missing: {missing}")
        base, step = list(state_dict["base_lrs"]), int(state_dict["last_epoch"])
        found = state_dict.get("rates")  # older states have none
        for rates in (base, base if found is None else found):
            if len(rates) != len(self.base_lrs):
                raise ValueError(
                    f"a schedule of {len(rates)} groups, and here are {len(self.base_lrs)}"
                )
        self._found()  # refuses groups that were added
        before, self.base_lrs = self.base_lrs, base
        try:
            rates = self.rates(step)
        except ValueError:
            self.base_lrs = before
            raise
        self.last_epoch = step
        self._set(rates if found is None else list(found))


class _Chained(LRScheduler):
    """A schedule that goes on from what others beside it have set."""

    def _after(self, found, step):
        before = self.rates(step - 1) if step else self.base_lrs
        return [
            new if rate == old else self._moved(rate, old, new, step, group)
            for group, (rate, old, new) in enumerate(
                zip(found, before, self.rates(step), strict=True)
            )
        ]

    def _moved(self, rate, old, new, step, group):
        """Return a rate, changed as this schedule alone goes from old to new at a step."""
        if new == old:
            return rate
        return rate * (new / old) if old else new


class LambdaLR(LRScheduler):
    """Rates times lr_lambda(step); lr_lambda: a function, or a list of one for each group.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> schedule = vg.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 / (1 + step))
    >>> for _ in range(3):
    ...     schedule.step()
    ...     print([round(lr, 4) for lr in schedule.get_last_lr()])
    [0.5]
    [0.3333]
    [0.25]
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else []
        self.lr_lambdas = self.lr_lambdas or [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(f"{len(self.lr_lambdas)} functions for {count} groups of parameters")
        super().__init__(optimizer, last_epoch)

    def rate(self, base, step, group):
        return base * self.lr_lambdas[group](step)


class StepLR(_Chained):
    """Rates times gamma after every step_size steps.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> schedule = vg.optim.lr_scheduler.StepLR(optimiser, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [1.0]
    [0.5]
    [0.5]
    [0.25]
    """

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        _check_count("step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base, step, group):
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(_Chained):
    """Rates times gamma after each of some numbers of steps.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> schedule = vg.optim.lr_scheduler.MultiStepLR(optimiser, milestones=[1, 3], gamma=0.5)
    >>> for _ in range(3):
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.5]
    [0.5]
    [0.25]
    """

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base, step, group):
        return base * self.gamma ** bisect.bisect_right(self.milestones, step)


class ExponentialLR(_Chained):
    """Rates times gamma after every step.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> schedule = vg.optim.lr_scheduler.ExponentialLR(optimiser, gamma=0.5)
    >>> for _ in range(3):
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.5]
    [0.25]
    [0.125]
    """

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base, step, group):
        return base * self.gamma**step


class ConstantLR(_Chained):
    """Rates times factor for total_iters steps, and then as they were.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> schedule = vg.optim.lr_scheduler.ConstantLR(optimiser, factor=0.5, total_iters=2)
    >>> for _ in range(3):
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.5]
    [1.0]
    [1.0]
    """

    def __init__(self, optimizer, factor=1 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise ValueError(f"factor is from 0 to 1, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base, step, group):
        return base * (self.factor if step < self.total_iters else 1)


class LinearLR(_Chained):
    """Rates times a factor that goes from one to another in a line: a warm-up by default.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> schedule = vg.optim.lr_scheduler.LinearLR(optimiser, start_factor=0.5, total_iters=2)
    >>> schedule.get_last_lr()
    [0.5]
    >>> for _ in range(2):
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.75]
    [1.0]
    """

    def __init__(self, optimizer, start_factor=1 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"factors are from 0 to 1, got {start_factor} and {end_factor}")
        _check_count("total_iters", total_iters)
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base, step, group):
        part = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * part)


class CosineAnnealingLR(_Chained):
    """Rates along half a cosine down to eta_min in T_max steps, and up again.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> schedule = vg.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=2)
    >>> for _ in range(4):
    ...     schedule.step()
    ...     print([round(lr, 4) for lr in schedule.get_last_lr()])
    [0.5]
    [0.0]
    [0.5]
    [1.0]
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        _check_count("T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base, step, group):
        return self.eta_min + (base - self.eta_min) * self._part(step)

    def _part(self, step):
        return (1 + math.cos(math.pi * step / self.T_max)) / 2

    def _moved(self, rate, old, new, step, group):
        if not step:
            return rate
        if (step - 1 - self.T_max) % (2 * self.T_max) == 0:  # from where it was eta_min
            return rate + (self.base_lrs[group] - self.eta_min) * self._part(self.T_max - 1)
        part = self._part(step) / self._part(step - 1)
        return self.eta_min + (rate - self.eta_min) * part


class OneCycleLR(LRScheduler):
    """Rates up to max_lr and down to nearly 0, in one cycle of steps, one for each batch.

    Rates start from max_lr / div_factor and end with that / final_div_factor. total_steps, or
    epochs and steps_per_epoch. With cycle_momentum momentum (or Adam's first beta) goes the other
    way, from max_momentum to base_momentum and back. three_phase: down as long as up, then to the
    end. ValueError: no number of steps, or more steps than that.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0, momentum=0.9)
    >>> schedule = vg.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=1.0, total_steps=10)
    >>> for _ in range(9):
    ...     schedule.step()
    ...     print([round(lr, 2) for lr in schedule.get_last_lr()])
    [0.52]
    [1.0]
    [0.95]
    [0.81]
    [0.61]
    [0.39]
    [0.19]
    [0.05]
    [0.0]
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        _check_count("total_steps", total_steps)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start is from 0 to 1, got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is 'cos' or 'linear', got {anneal_strategy!r}")
        groups = optimizer.param_groups
        most = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * len(groups)
        if len(most) != len(groups):
            raise ValueError(f"{len(most)} rates for {len(groups)} groups of parameters")
        if cycle_momentum and not all("momentum" in g or "betas" in g for g in groups):
            raise ValueError("cycle_momentum needs an optimiser with momentum or betas")
        self.total_steps, self.max_lrs, self.anneal_strategy = total_steps, most, anneal_strategy
        self.momenta = (max_momentum, base_momentum) if cycle_momentum else None
        self.final_div_factor = final_div_factor
        up = pct_start * total_steps - 1
        self.ends = [up, 2 * up, total_steps - 1] if three_phase else [up, total_steps - 1]
        if last_epoch == -1:
            for group, rate in zip(groups, most, strict=True):
                group["initial_lr"] = rate / div_factor
        super().__init__(optimizer, last_epoch)

    def _between(self, values, step):
        """Return where a step is on the way from value to value, each reached at its end."""
        begin = 0
        for number, end in enumerate(self.ends):
            if step <= end or number == len(self.ends) - 1:
                part = min((step - begin) / (end - begin), 1.0) if end != begin else 1.0
                break
            begin = end
        start, stop = values[number], values[number + 1]
        if self.anneal_strategy == "linear":
            return start + (stop - start) * part
        return stop + (start - stop) / 2 * (1 + math.cos(math.pi * part))

    def rate(self, base, step, group):
        if step > self.total_steps:
            raise ValueError(f"the schedule has {self.total_steps} steps, and this is {step}")
        last = base / self.final_div_factor
        between = [base] * (len(self.ends) - 2)
        return self._between([base, self.max_lrs[group], *between, last], step)

    def _set(self, rates):
        super()._set(rates)
        if self.momenta is None:
            return
        most, least = self.momenta
        after = [most] * (len(self.ends) - 1)
        value = self._between([most, least, *after], self.last_epoch)
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (value, *group["betas"][1:])
            else:
                group["momentum"] = value


class SequentialLR(LRScheduler):
    """One schedule after the other: each of `milestones` is where the next one begins.

    >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=1.0)
    >>> warm = vg.optim.lr_scheduler.ConstantLR(optimiser, factor=0.25, total_iters=9)
    >>> later = vg.optim.lr_scheduler.ExponentialLR(optimiser, gamma=0.5)
    >>> schedule = vg.optim.lr_scheduler.SequentialLR(optimiser, [warm, later], milestones=[2])
    >>> for _ in range(4):
    ...     schedule.step()
    ...     print(schedule.get_last_lr())
    [0.25]
    [1.0]
    [0.5]
    [0.25]
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        if len(self.milestones) != len(self.schedulers) - 1:
            raise ValueError(
                f"{len(self.schedulers)} schedules have one milestone less, not "
                f"{len(self.milestones)}"
            )
        if any(schedule.optimizer is not optimizer for schedule in self.schedulers):
            raise ValueError("all schedules are of the same optimiser")
        for schedule in self.schedulers:
            schedule._found()  # refuses groups that were added since
        super().__init__(optimizer, last_epoch)

    def rates(self, step):
        schedule, step = self._at(step)
        return schedule.rates(step)

    def _at(self, step):
        """Return the schedule of a step and the number of its own steps until then."""
        number = bisect.bisect_right(self.milestones, step)
        return self.schedulers[number], step - (self.milestones[number - 1] if number else 0)

    def _after(self, found, step):
        schedule, step = self._at(step)
        return schedule._after(found, step) if step else schedule.rates(step)


def _check_count(name, count):
    if isinstance(count, bool) or not isinstance(count, Integral) or count <= 0:
        raise ValueError(f"{name} is a positive integer, got {count!r}")
