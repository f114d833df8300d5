"""Neural networks: layers as modules, `functional` with the same as functions, `init`.

Names, arguments, layouts and keys of state_dicts are torch's; docs/nn.md says what differs.
"""

from . import activations, containers, functional, init, layers, losses
from .activations import *
from .containers import *
from .layers import *
from .losses import *
from .module import Module
from .parameters import Parameter

__all__ = ["Module", "Parameter", "functional", "init"]
__all__ += activations.__all__
__all__ += containers.__all__
__all__ += layers.__all__
__all__ += losses.__all__
