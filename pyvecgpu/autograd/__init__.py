"""Gradients: what torch.autograd has; vg.grad and vg.value_and_grad are in transforms.py.

    w = vg.asarray(values).requires_grad_()
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    w.grad

docs/autograd.md says how it works; rules.py has the rules, tape.py records and goes back.
"""

from .arrays import grad
from .function import Function, checkpoint
from .transforms import enable_grad, is_grad_enabled, no_grad

__all__ = ["Function", "checkpoint", "enable_grad", "grad", "is_grad_enabled", "no_grad"]
