"""Neural networks: `vg.nn.functional` has the operations of layers."""

from . import functional, utils

__all__ = ["functional", "utils"]
