"""Fourier transforms: the array API's extension `fft`, and NumPy's of two axes besides."""

from . import frequencies, transforms
from .frequencies import *
from .transforms import *

__all__ = []
__all__ += frequencies.__all__
__all__ += transforms.__all__
