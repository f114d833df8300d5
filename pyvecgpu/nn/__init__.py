"""Neural networks: layers as modules, `functional` with the same as functions, `init`.

Names, arguments, layouts and keys of state_dicts are torch's; docs/nn.md says what differs.
"""

from . import (
    activations,
    attention,
    containers,
    functional,
    init,
    layers,
    losses,
    normalization,
    recurrent,
    utils,
    windows,
)
from .activations import *
from .atomic import atomic
from .attention import *
from .containers import *
from .layers import *
from .losses import *
from .module import Module
from .normalization import *
from .parameters import Parameter
from .recurrent import *
from .training import fit
from .windows import *

__all__ = ["Module", "Parameter", "atomic", "fit", "functional", "init", "utils"]
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += containers.__all__
__all__ += layers.__all__
__all__ += losses.__all__
__all__ += normalization.__all__
__all__ += recurrent.__all__
__all__ += windows.__all__
