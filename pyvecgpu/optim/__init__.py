"""Optimisers, as torch.optim has them; vg.optim.lr_scheduler changes their rates on the way.

    optimiser = vg.optim.Adam(net.parameters(), lr=1e-3)
    loss.backward()
    optimiser.step()
    optimiser.zero_grad()

Names, defaults and what state_dict gives are torch's. docs/training.md has whole programs.
"""

from . import lr_scheduler
from .algorithms import SGD, Adam, AdamW, RMSprop
from .optimizer import Optimizer

__all__ = ["Adam", "AdamW", "Optimizer", "RMSprop", "SGD", "lr_scheduler"]
