"""Second names that NumPy has for functions: the same objects."""

from .elementwise import abs, bitwise_invert, divide, trunc
from .reductions import max, min

__all__ = [
    "absolute",
    "amax",
    "amin",
    "bitwise_not",
    "fix",
    "invert",
    "true_divide",
]

absolute = abs
amax = max
amin = min
bitwise_not = bitwise_invert
fix = trunc
invert = bitwise_invert
true_divide = divide
