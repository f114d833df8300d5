"""The operations of a network's layers, as functions of arrays."""

from ..functions import layers, nn
from ..functions.exponentials import log_softmax, softmax
from ..functions.layers import *
from ..functions.nn import *

__all__ = ["log_softmax", "softmax"]
__all__ += layers.__all__
__all__ += nn.__all__
