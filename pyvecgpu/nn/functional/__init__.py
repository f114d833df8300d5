"""The operations of a network's layers, as functions of arrays; torch.nn.functional's names."""

from ...functions import layers, nn
from ...functions.layers import *
from ...functions.nn import *
from . import activations, attention, choosing, losses, normalization, renamed, windows
from .activations import *
from .attention import *
from .choosing import *
from .losses import *
from .normalization import *
from .renamed import *
from .windows import *

__all__ = [*layers.__all__]
__all__ += nn.__all__
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += choosing.__all__
__all__ += losses.__all__
__all__ += normalization.__all__
__all__ += renamed.__all__
__all__ += windows.__all__
