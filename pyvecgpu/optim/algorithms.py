"""The optimisers: what makes a parameter's new values of its gradient, as in torch's pages.

Each update computes new arrays and leaves p, g and state alone (optimizer.py says why). It is what
happens to parameters that the library cannot change in place, and in classes that go on from it;
its Joint says what to ask of the library for all others (launches.py).
"""

import math

from .. import functions as vg
from ..native.abi import Algorithm
from .launches import Joint
from .optimizer import Optimizer, takes_ways


def _sgd_states(group):
    return ("momentum_buffer",) if group["momentum"] else ()


def _sgd_numbers(group, step):
    return {name: group[name] for name in ("momentum", "dampening", "nesterov")}


def _adam_states(group):
    return ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ()))


def _adam_numbers(group, step):
    beta1, beta2 = group["betas"]
    shares = {"share1": 1 - beta1**step, "share2": 1 - beta2**step}
    betas = {"beta1": beta1, "beta2": beta2}
    return {**betas, **shares, "epsilon": group["eps"], "amsgrad": group["amsgrad"]}


def _adamw_numbers(group, step):
    shrink = group["lr"] * group["weight_decay"]
    return {**_adam_numbers(group, step), "weight_decay": 0.0, "shrink": shrink}


def _rmsprop_states(group):
    names = (
        "square_avg",
        group["centered"] and "grad_avg",
        group["momentum"] and "momentum_buffer",
    )
    return tuple([name for name in names if name])


def _rmsprop_numbers(group, step):
    names = {"beta2": "alpha", "epsilon": "eps", "momentum": "momentum", "centered": "centered"}
    return {name: group[option] for name, option in names.items()}


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum and Nesterov's if wanted; see torch.optim.SGD.

    ValueError: nesterov without momentum, or with dampening.

    >>> w = vg.asarray([1.0]).requires_grad_()
    >>> optimiser = vg.optim.SGD([w], lr=0.25, momentum=0.9)
    >>> for _ in range(2):
    ...     optimiser.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimiser.step()
    >>> print(w.detach())
    [-0.19999999]
    """

    @takes_ways
    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
    ):
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check(self, group):
        super().check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("nesterov needs momentum and no dampening")

    @Joint(Algorithm.SGD, _sgd_states, _sgd_numbers, counts=False)
    def update(self, p, g, state, group):
        g, momentum = _decayed(p, g, group), group["momentum"]
        if momentum:
            buffer = state.get("momentum_buffer")
            own = vg.copy(g) if buffer is None else buffer * momentum + g * (1 - group["dampening"])
            g = g + own * momentum if group["nesterov"] else own
            state = {"momentum_buffer": own}
        return p - g * group["lr"], state


class Adam(Optimizer):
    """Adam of Kingma and Ba, with AMSGrad if wanted; see torch.optim.Adam.

    >>> w = vg.asarray([1.0]).requires_grad_()
    >>> optimiser = vg.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimiser.step()
    >>> print(w.detach())
    [0.90000004]
    """

    @takes_ways
    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        maximize=False,
    ):
        defaults = {
            "lr": lr,
            "betas": tuple(betas) if hasattr(betas, "__iter__") else betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check(self, group):
        betas = group["betas"]
        if not hasattr(betas, "__len__") or len(betas) != 2:
            raise ValueError(f"{type(self).__name__}: betas are two numbers, got {betas!r}")
        super().check(group)

    @Joint(Algorithm.ADAM, _adam_states, _adam_numbers)
    def update(self, p, g, state, group):
        return self._moved(p, _decayed(p, g, group), state, group)

    def _moved(self, p, g, state, group):
        (beta1, beta2), step = group["betas"], state.get("step", 0) + 1
        zeros = None if "exp_avg" in state else vg.zeros_like(p)
        mean = state.get("exp_avg", zeros) * beta1 + g * (1 - beta1)
        square = state.get("exp_avg_sq", zeros) * beta2 + g * g * (1 - beta2)
        state = {**state, "step": step, "exp_avg": mean, "exp_avg_sq": square}
        if group["amsgrad"]:
            before = state.get("max_exp_avg_sq")
            square = square if before is None else vg.maximum(before, square)
            state["max_exp_avg_sq"] = square
        width = vg.sqrt(square) / math.sqrt(1 - beta2**step) + group["eps"]
        return p - mean / width * (group["lr"] / (1 - beta1**step)), state


class AdamW(Adam):
    """Adam whose decay of weights is not part of the gradient; see torch.optim.AdamW.

    >>> w = vg.asarray([1.0]).requires_grad_()
    >>> optimiser = vg.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> w.grad = vg.zeros(1)
    >>> optimiser.step()
    >>> print(w.detach())
    [0.95]
    """

    @takes_ways
    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    @Joint(Algorithm.ADAM, _adam_states, _adamw_numbers)
    def update(self, p, g, state, group):
        if group["weight_decay"]:
            p = p * (1 - group["lr"] * group["weight_decay"])
        return self._moved(p, g, state, group)


class RMSprop(Optimizer):
    """Steps by the root of the mean square of gradients; see torch.optim.RMSprop.

    >>> w = vg.asarray([1.0]).requires_grad_()
    >>> optimiser = vg.optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> optimiser.step()
    >>> print(w.detach())
    [0.90000004]
    """

    @takes_ways
    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        *,
        maximize=False,
    ):
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    @Joint(Algorithm.RMSPROP, _rmsprop_states, _rmsprop_numbers)
    def update(self, p, g, state, group):
        g, alpha = _decayed(p, g, group), group["alpha"]
        before = state or {"step": 0, "square_avg": vg.zeros_like(p)}
        square = before["square_avg"] * alpha + g * g * (1 - alpha)
        state = {**before, "step": before["step"] + 1, "square_avg": square}
        if group["centered"]:
            mean = g * (1 - alpha)
            if "grad_avg" in before:
                mean = before["grad_avg"] * alpha + mean
            state["grad_avg"] = mean
            square = square - mean * mean
        change = g / (vg.sqrt(square) + group["eps"])
        if group["momentum"]:
            if "momentum_buffer" in before:
                change = before["momentum_buffer"] * group["momentum"] + change
            state["momentum_buffer"] = change
        return p - change * group["lr"], state


def _decayed(p, g, group):
    """Return the gradient of the loss and half the weights' squares times weight_decay."""
    return g + p * group["weight_decay"] if group["weight_decay"] else g
