"""The public functions, one module per topic of the array API standard.

Each module's `__all__` names what of it is public. nn.py is for vg.nn.functional alone.
"""

from . import (
    contractions,
    creation,
    elementwise,
    joining,
    layers,
    layout,
    linalg,
    matrices,
    ranges,
    reductions,
    scans,
    searching,
)
from .contractions import *
from .creation import *
from .elementwise import *
from .joining import *
from .layers import *
from .layout import *
from .linalg import *
from .matrices import *
from .ranges import *
from .reductions import *
from .scans import *
from .searching import *

__all__ = []
__all__ += contractions.__all__
__all__ += creation.__all__
__all__ += elementwise.__all__
__all__ += joining.__all__
__all__ += layers.__all__
__all__ += layout.__all__
__all__ += linalg.__all__
__all__ += matrices.__all__
__all__ += ranges.__all__
__all__ += reductions.__all__
__all__ += scans.__all__
__all__ += searching.__all__
