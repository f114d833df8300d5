"""The operations of a network's layers, as functions of arrays; torch.nn.functional's names."""

from ...functions import layers, nn
from ...functions.exponentials import log_softmax, softmax
from ...functions.layers import *
from ...functions.nn import *
from . import activations, choosing, losses
from .activations import *
from .choosing import *
from .losses import *

__all__ = ["log_softmax", "softmax"]
__all__ += layers.__all__
__all__ += nn.__all__
__all__ += activations.__all__
__all__ += choosing.__all__
__all__ += losses.__all__
