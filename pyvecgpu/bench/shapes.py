"""Products of shapes drawn at random: the rules which choose kernels were not made for them.

M, N and K are each drawn evenly from 1 to 5000, with a fixed seed. The rows are those of matmul.py;
the goals are geometric means over the shapes.
"""

import numpy as np

from .goals import MeanRatio
from .matmul import product

SEED = 20240607
LEAST = {"float32": 1.5, "bfloat16": 1.0, "float16": 1.0}
# How many shapes, and the largest size.
SIZES = {"full": (12, 5000), "cpu": (3, 500), "quick": (2, 40)}
GOALS = [MeanRatio(f"{precision} ", "torch", least) for precision, least in LEAST.items()]


def rows(size):
    """Return the rows for a key of SIZES."""
    count, most = SIZES[size]
    drawn = np.random.default_rng(SEED).integers(1, most, (count, 3), endpoint=True)
    shapes = [tuple(int(n) for n in shape) for shape in drawn]
    return [product(precision, shape) for precision in LEAST for shape in shapes]
