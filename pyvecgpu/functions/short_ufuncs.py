"""Short ways of composed functions that are one function of NumPy, of real operands of a dtype.

They are for short_calls.short: each gets ndarrays for Arrays and gives None for what is not for it.
A ufunc here gives what the composed way gives, to the bit, of the kinds that are named.
"""

import numpy as np

from ..backends.cpu_ways import holds
from ..dtypes import integer_range

FLOATS = "fd"  # float16 is computed in float32, which NumPy does not always
INTEGERS = "bhilqBHILQ"


def _is_beside(number, dtype):
    """Whether NumPy takes a number other than 0 for one of a dtype, as we do."""
    if not number or not holds(dtype, number) or type(number) is bool:
        return False
    if dtype.kind == "f":
        return True
    least, most = integer_range(dtype)
    return least <= number <= most


def of_one(function, chars=FLOATS + INTEGERS):
    """Return the short way of a function of one operand, whose dtype is one of some chars."""

    def compute(x):
        if type(x) is not np.ndarray or x.dtype.char not in chars:
            return None
        return function(x)

    return compute


def of_two(function, chars=FLOATS + INTEGERS):
    """Return that of a function of two operands of one dtype, of which one may be a number."""

    def compute(x1, x2):
        dtype = x1.dtype if type(x1) is np.ndarray else x2.dtype
        if dtype.char not in chars:
            return None
        for one in (x1, x2):
            if type(one) is np.ndarray:
                if one.dtype is not dtype:
                    return None
            elif not _is_beside(one, dtype):
                return None
        return function(x1, x2)

    return compute


fmod = of_two(np.fmod)
gcd, lcm = of_two(np.gcd, INTEGERS), of_two(np.lcm, INTEGERS)
nextafter = of_two(np.nextafter, FLOATS)
modf, frexp = of_one(np.modf, FLOATS), of_one(np.frexp, FLOATS)
spacing = of_one(np.spacing, FLOATS)
bitwise_count = of_one(lambda x: np.bitwise_count(x) if x.flags.c_contiguous else None, INTEGERS)
isposinf = of_one(lambda x: np.equal(x, np.inf), FLOATS)
isneginf = of_one(lambda x: np.equal(x, -np.inf), FLOATS)
float_power = of_two(lambda a, b: np.power(a, b, dtype=np.float64))


def ldexp(x1, x2):
    """Return x1 times 2 to the power of integers x2."""
    if type(x1) is not np.ndarray or x1.dtype.char not in FLOATS:
        return None
    if type(x2) is not np.ndarray or x2.dtype.char not in "bhil":
        return None
    return np.ldexp(x1, x2)


def _sinc(x):
    angle = x * np.pi
    np.copyto(angle, 1e-20, where=angle == 0)
    result = np.sin(angle)
    result /= angle
    return result


sinc = of_one(lambda x: _sinc(x) if x.ndim else None, FLOATS)
