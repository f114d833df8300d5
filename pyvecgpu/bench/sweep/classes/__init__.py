"""The classes of random cases: what users do, in sizes and layouts that nobody chose.

A class is a function that draws a Case from a Draw; CLASSES of its file says how often, beside the
others; in 15,000 cases the rarest has some 50. The first word of a case's group is the section that
it is printed in. A new class is measured, checked and reported without another edit. In the
functions of a case `m` is the module of whoever computes, pyvecgpu or torch; what is expected comes
from NumPy.
"""

from . import (
    binary,
    composed,
    copies,
    creation,
    elementwise,
    functions,
    indexing,
    layers,
    learning,
    moves,
    networks,
    products,
    reductions,
    small,
    sorting,
    statistics,
    transfers,
)

FILES = (
    *(products, reductions, elementwise, copies, functions, binary, statistics, indexing),
    *(moves, creation, layers, transfers, small, composed, sorting, learning, networks),
)
CLASSES = {draw: weight for file in FILES for draw, weight in file.CLASSES.items()}
