"""Neural networks: `vg.nn.functional` has the operations of layers."""

from . import functional

__all__ = ["functional"]
