"""Second names that NumPy has for functions: the same objects."""

from .elementwise import abs, bitwise_invert, divide, round, trunc
from .joining import vstack
from .reductions import max, min

__all__ = [
    "absolute",
    "amax",
    "amin",
    "around",
    "bitwise_not",
    "fix",
    "invert",
    "row_stack",
    "true_divide",
]

absolute = abs
amax = max
amin = min
around = round
bitwise_not = bitwise_invert
fix = trunc
invert = bitwise_invert
row_stack = vstack
true_divide = divide
