"""Neural networks: `vg.nn.functional` has the operations of layers, `fit` trains."""

from . import functional, utils
from .training import fit

__all__ = ["fit", "functional", "utils"]
