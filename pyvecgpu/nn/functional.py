"""The operations of a network's layers, as functions of arrays."""

from ..functions.elementwise import tanh
from ..functions.nn import dense, dense_backward, gelu, relu, sigmoid, silu

__all__ = ["dense", "dense_backward", "gelu", "relu", "sigmoid", "silu", "tanh"]
