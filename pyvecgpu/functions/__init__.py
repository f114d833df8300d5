"""The public functions, one module per topic of the array API standard.

Each module's `__all__` names what of it is public. nn.py is for vg.nn.functional alone.
"""

from . import (
    aliases,
    combined,
    comparing,
    complexes,
    contractions,
    creation,
    differences,
    elementwise,
    exponentials,
    files,
    gathering,
    joining,
    layers,
    layout,
    linalg,
    mathematics,
    matrices,
    nans,
    padding,
    printing,
    ranges,
    reductions,
    scans,
    searching,
    statistics,
)
from .aliases import *
from .combined import *
from .comparing import *
from .complexes import *
from .contractions import *
from .creation import *
from .differences import *
from .elementwise import *
from .exponentials import *
from .files import *
from .gathering import *
from .joining import *
from .layers import *
from .layout import *
from .linalg import *
from .mathematics import *
from .matrices import *
from .nans import *
from .padding import *
from .printing import *
from .ranges import *
from .reductions import *
from .scans import *
from .searching import *
from .statistics import *

__all__ = []
__all__ += aliases.__all__
__all__ += combined.__all__
__all__ += comparing.__all__
__all__ += complexes.__all__
__all__ += contractions.__all__
__all__ += creation.__all__
__all__ += differences.__all__
__all__ += elementwise.__all__
__all__ += exponentials.__all__
__all__ += files.__all__
__all__ += gathering.__all__
__all__ += joining.__all__
__all__ += layers.__all__
__all__ += layout.__all__
__all__ += linalg.__all__
__all__ += mathematics.__all__
__all__ += matrices.__all__
__all__ += nans.__all__
__all__ += padding.__all__
__all__ += printing.__all__
__all__ += ranges.__all__
__all__ += reductions.__all__
__all__ += scans.__all__
__all__ += searching.__all__
__all__ += statistics.__all__
