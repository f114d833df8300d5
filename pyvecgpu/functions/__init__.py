"""The public functions, one module per topic of the array API standard.

Each module's `__all__` names what of it is public. nn.py is for vg.nn.functional alone.
"""

from . import (
    accumulating,
    aliases,
    applying,
    arithmetic,
    assigning,
    binning,
    bits,
    choosing,
    combined,
    comparing,
    complexes,
    contractions,
    creation,
    differences,
    elementwise,
    exchange,
    exponentials,
    files,
    gathering,
    grids,
    histograms,
    joining,
    layers,
    layout,
    linalg,
    makers,
    mathematics,
    matrices,
    nans,
    neighbours,
    padding,
    polynomials,
    printing,
    quantiles,
    queries,
    ranges,
    reductions,
    scans,
    searching,
    sets,
    sorting,
    special,
    states,
    statistics,
    texts,
    ufunc_methods,  # noqa: F401  binds what functions of two operands have
    windows,
)
from .accumulating import *
from .aliases import *
from .applying import *
from .arithmetic import *
from .assigning import *
from .binning import *
from .bits import *
from .choosing import *
from .combined import *
from .comparing import *
from .complexes import *
from .contractions import *
from .creation import *
from .differences import *
from .elementwise import *
from .exchange import *
from .exponentials import *
from .files import *
from .gathering import *
from .grids import *
from .histograms import *
from .joining import *
from .layers import *
from .layout import *
from .linalg import *
from .makers import *
from .mathematics import *
from .matrices import *
from .nans import *
from .neighbours import *
from .padding import *
from .polynomials import *
from .printing import *
from .quantiles import *
from .queries import *
from .ranges import *
from .reductions import *
from .scans import *
from .searching import *
from .sets import *
from .sorting import *
from .special import *
from .states import *
from .statistics import *
from .texts import *
from .windows import *

__all__ = []
__all__ += accumulating.__all__
__all__ += aliases.__all__
__all__ += applying.__all__
__all__ += arithmetic.__all__
__all__ += assigning.__all__
__all__ += binning.__all__
__all__ += bits.__all__
__all__ += choosing.__all__
__all__ += combined.__all__
__all__ += comparing.__all__
__all__ += complexes.__all__
__all__ += contractions.__all__
__all__ += creation.__all__
__all__ += differences.__all__
__all__ += elementwise.__all__
__all__ += exchange.__all__
__all__ += exponentials.__all__
__all__ += files.__all__
__all__ += gathering.__all__
__all__ += grids.__all__
__all__ += histograms.__all__
__all__ += joining.__all__
__all__ += layers.__all__
__all__ += layout.__all__
__all__ += linalg.__all__
__all__ += makers.__all__
__all__ += mathematics.__all__
__all__ += matrices.__all__
__all__ += nans.__all__
__all__ += neighbours.__all__
__all__ += padding.__all__
__all__ += polynomials.__all__
__all__ += printing.__all__
__all__ += quantiles.__all__
__all__ += queries.__all__
__all__ += ranges.__all__
__all__ += reductions.__all__
__all__ += scans.__all__
__all__ += searching.__all__
__all__ += sets.__all__
__all__ += sorting.__all__
__all__ += special.__all__
__all__ += states.__all__
__all__ += statistics.__all__
__all__ += texts.__all__
__all__ += windows.__all__
