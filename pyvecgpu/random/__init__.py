"""Random numbers, the same bits on every device: vg.random.default_rng(seed).

A number depends on nothing but the generator's key and its place in the generator's stream: not on
the device, nor on how work is spread there. The stream is Philox4x32-10's (Salmon, Moraes, Dror and
Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11): blocks of four words of 32 bits. Element
i of a request, in C order, takes word i % 4 of the request's block i // 4; a dtype of 8 bytes takes
two words, so that two elements share a block. The next request begins at the next block. So
requests of n elements one after another give the numbers of one larger request, if each n but the
last is a multiple of 4 (of 2 in dtypes of 8 bytes).

Normal and exponential numbers are computed of these bits with logarithms, sines and cosines, in
which devices may differ by up to 4 units in the last place.

What is no plain filling of an array: `integers` draws again where a word would make some numbers
likelier than others; `permutation`, `shuffle` and `choice` compute an order of indices on the host.
Other distributions are formulas of uniform, normal and exponential numbers in float64, which are
rounded to the dtype at the end; those of counts look a number up in a table that the host makes,
and gamma numbers are drawn again where the first ones do not do, with the same bits everywhere.

Names and parameters are those of numpy.random, the numbers are others. dtype: None is the default
float. device: a Device, its name, or None for the generator's own, which by default is the current
one. size: None gives a Python scalar.
"""

from . import shared
from .generator import Generator
from .shared import *
from .shared import _shared, renewed, reserved  # noqa: F401  for networks

__all__ = ["Generator"]
__all__ += shared.__all__
