"""Short ways of composed functions that are one function of NumPy, of real operands of a dtype.

They are for short_calls.short: each gets ndarrays for Arrays and gives None for what is not for it.
A ufunc here gives what the composed way gives, to the bit, of the kinds that are named.
"""

import bisect
import math

import numpy as np

from ..backends.cpu_ways import holds
from ..dtypes import get_default_dtype, integer_range

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


def float_of(x):
    """The dtype of float results of float32, float64, bools and integers, else None."""
    if type(x) is not np.ndarray:
        return None
    dtype = x.dtype
    if dtype.char in FLOATS:
        return dtype
    dtype = get_default_dtype() if dtype.kind in "bui" else None
    return dtype if dtype is not None and dtype.char in FLOATS else None


def rounded(result, dtype):
    """Return an ndarray, or NumPy's scalar, in a dtype: as it is, or else in C order."""
    return result if result.dtype is dtype else result.astype(dtype, order="C")


def numbers_of(x):
    """Return bools and integers as float64, and floats as they are."""
    return x if x.dtype.kind == "f" else x.astype(np.float64, order="C")


def of_one(function, chars=FLOATS + INTEGERS, as_float=False):
    """Return the short way of a function of one operand, whose dtype is one of some chars.

    as_float: bools and integers are the default float.
    """

    def compute(x):
        if type(x) is not np.ndarray or x.dtype.char not in chars:
            return _of_integers(function, x) if as_float else None
        return function(x)

    return compute


def _of_integers(function, *operands):
    dtype = float_of(operands[0])
    return None if dtype is None else function(*[rounded(x, dtype) for x in operands])


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
modf, spacing = of_one(np.modf, FLOATS, True), of_one(np.spacing, FLOATS, True)
bitwise_count = of_one(lambda x: np.bitwise_count(x) if x.flags.c_contiguous else None, INTEGERS)
isposinf = of_one(lambda x: np.equal(x, np.inf) if x.dtype.kind == "f" else np.zeros(x.shape, bool))
isneginf = of_one(
    lambda x: np.equal(x, -np.inf) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
)
float_power = of_two(lambda a, b: np.power(a, b, dtype=np.float64))


_nextafter = of_two(np.nextafter, FLOATS)


def nextafter(x1, x2):
    """Return the numbers after x1 on the way to x2, integers as the default float."""
    if type(x1) is type(x2) is np.ndarray and x1.dtype.kind in "bui" and x2.dtype is x1.dtype:
        return _of_integers(np.nextafter, x1, x2)
    return _nextafter(x1, x2)


def logaddexp2(x1, x2):
    """Return log2(2 ** x1 + 2 ** x2), computed in float64: where it is next to 0, too."""
    dtype = float_of(x1)
    if dtype is None or x1.dtype.kind == "b" or type(x2) is not np.ndarray:
        return None
    if x2.dtype is not x1.dtype:
        return None
    return rounded(np.logaddexp2(x1, x2, dtype=np.float64, casting="same_kind"), dtype)


def frexp(x):
    """Return fractions and powers of 2; of integers the fraction is rounded after that."""
    dtype = float_of(x)
    if dtype is None:
        return None
    part, power = np.frexp(numbers_of(x))
    return rounded(part, dtype), power


def ldexp(x1, x2):
    """Return x1 times 2 to the power of integers x2."""
    dtype = float_of(x1)
    if dtype is None or type(x2) is not np.ndarray or x2.dtype.char not in "bhil":
        return None
    return rounded(np.ldexp(numbers_of(x1), x2), dtype)


def angle(x, deg=False):
    """Return the angles of real numbers: 0, or that of what is negative."""
    dtype = float_of(x)
    if dtype is None or deg is not False:
        return None
    return np.arctan2(dtype.type(0.0), rounded(x, dtype))


def _times(factor):
    """Return the short way of a product with a number, of integers computed in float64."""

    def compute(x):
        dtype = float_of(x)
        if dtype is None or x.dtype.kind == "b":
            return None
        return rounded(numbers_of(x) * factor, dtype)

    return compute


deg2rad, rad2deg = _times(math.pi / 180), _times(180 / math.pi)
cbrt = of_one(np.cbrt, FLOATS, True)


def _sinc(x):
    angle = x * np.pi
    np.copyto(angle, 1e-20, where=angle == 0)
    result = np.sin(angle)
    result /= angle
    return result


def sinc(x):
    """Return sin(pi x) / (pi x), of integers computed in float64."""
    dtype = float_of(x)
    return None if dtype is None or not x.ndim else rounded(_sinc(numbers_of(x)), dtype)


# Bessel's I0 --------------------------------------------------------------------------------------

BORDER = 20.0  # up to here the power series, and Hankel's from there on: both to float64's digits
TERMS, LATER_TERMS = 48, 22
# Up to which x * x / 4 so many terms are all: what is left is too little to be seen in any.
_UP_TO = [(1e-28 * math.factorial(k) ** 2) ** (1 / k) for k in range(1, TERMS)]
_PIECE = 8192  # elements that stay in the cache while all terms are added


def i0(x):
    """Return Bessel's I0, a piece of the elements after the other: see special.py."""
    dtype = float_of(x)
    if dtype is None or not x.ndim or not x.flags.c_contiguous:
        return None
    result = np.empty(x.shape, dtype)
    flat, places = x.reshape(-1), result.reshape(-1)
    for i in range(0, x.size, _PIECE):
        values = _i0(np.abs(flat[i : i + _PIECE].astype(np.float64)))
        with np.errstate(over="ignore"):  # what is too large for float32 is infinite
            places[i : i + _PIECE] = values
    return result


def _i0(size):
    near = np.minimum(size, BORDER)
    near *= near
    near *= 0.25
    result = near * 0.0
    result += 1.0
    for k in range(1 + bisect.bisect_left(_UP_TO, np.fmax.reduce(near)), 0, -1):
        result *= near
        result *= 1.0 / (k * k)
        result += 1.0
    is_far = ~(size <= BORDER)
    if is_far.any():
        far = size[is_far]
        inverse = 0.125 / far
        large = inverse * 0.0 + 1.0
        for k in range(LATER_TERMS, 0, -1):
            large *= inverse
            large *= (2 * k - 1) ** 2 / k
            large += 1.0
        large = np.exp(far) / np.sqrt(far * (2 * math.pi)) * large
        result[is_far] = np.where(far == math.inf, far, large)
    return result
