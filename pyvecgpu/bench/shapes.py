"""Products of shapes drawn at random: the rules which choose kernels were not made for them.

M, N and K are each drawn evenly from 1 to 5000, with a fixed seed; the goals are geometric means
over the shapes. Of float32 more are drawn, whose logarithms are even from 512 to 5000: there each
shape has a goal. The rows are those of matmul.py.
"""

from dataclasses import replace

import numpy as np

from .goals import EveryRatio, MeanRatio
from .matmul import product

SEED = 20240607
LEAST = {"float32": 1.5, "bfloat16": 1.0, "float16": 1.0}
FROM_512 = "float32, 512 and up"
# How many shapes, and the largest size; how many from 512 up.
SIZES = {"full": (12, 5000, 24), "cpu": (3, 500, 0), "quick": (2, 40, 0)}
GOALS = [MeanRatio(f"{precision} ", "torch", least) for precision, least in LEAST.items()]
GOALS.append(EveryRatio(FROM_512, "torch", 1.0))


def rows(size):
    """Return the rows for a key of SIZES."""
    count, most, more = SIZES[size]
    random = np.random.default_rng(SEED)
    drawn = random.integers(1, most, (count, 3), endpoint=True)
    large = np.exp(random.uniform(np.log(512), np.log(5000), (more, 3))).round()
    table = [product(precision, sizes) for precision in LEAST for sizes in _tuples(drawn)]
    for sizes in _tuples(large):
        name = f"{FROM_512}, {'x'.join(map(str, sizes))}"
        table.append(replace(product("float32", sizes), name=name))
    return table


def _tuples(shapes):
    return [tuple(int(n) for n in shape) for shape in shapes]
