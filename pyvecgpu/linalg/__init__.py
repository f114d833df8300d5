"""Linear algebra: the array API's extension `linalg`, and what NumPy's module has besides."""

from numpy.linalg import LinAlgError

from ..functions.layout import matrix_transpose
from ..functions.linalg import matmul, tensordot, vecdot
from . import decompositions, norms, products, systems
from .decompositions import *
from .norms import *
from .products import *
from .systems import *

__all__ = ["LinAlgError", "matmul", "matrix_transpose", "tensordot", "vecdot"]
__all__ += decompositions.__all__
__all__ += norms.__all__
__all__ += products.__all__
__all__ += systems.__all__
