"""What elementwise functions should give, by NumPy: exact, or in a wider type."""

import functools
import math

import numpy as np
from helpers import (
    BFLOAT16,
    HALVES,
    assert_close,
    assert_same,
    assert_within,
    host,
    is_float,
    result_type,
    rounded,
    widened,
)

import pyvecgpu as vg
from pyvecgpu.dtypes import promote
from pyvecgpu.operations import ROWS

DOMAINS = {row.name: row.domain for row in ROWS}
UNARY = tuple(row.name for row in ROWS if row.family == "unary")
FLOAT_FUNCTIONS = tuple(row.name for row in ROWS if (row.family, row.result) == ("unary", "float"))
DOES_FLOATS = {row.name: row.result == "float" for row in ROWS}
BINARY = tuple(row.name for row in ROWS if row.family == "binary")
COMPARISONS = tuple(row.name for row in ROWS if (row.family, row.result) == ("binary", "bool"))
PREDICATES = tuple(row.name for row in ROWS if (row.family, row.result) == ("unary", "bool"))
# Of two operands, with results that are not bit-exact (ULPS of helpers.py).
FLOAT_PAIRS = ("pow", "atan2", "hypot", "logaddexp")
ARITHMETIC = tuple(name for name in BINARY if name not in COMPARISONS)


def lookup(name):
    """The public function of this name."""
    return getattr(vg, name, None) or getattr(vg.nn.functional, name)


def takes(name, *dtypes):
    """Whether an operation takes operands of these dtypes."""
    return functools.reduce(promote, dtypes, dtypes[0]).kind in DOMAINS[name]


def unary_reference(name, x):
    """f(x); float functions in a wider type, of integers rounded to the default float first."""
    if name in FLOAT_FUNCTIONS:
        return float_reference(name, x if is_float(x.dtype) else x.astype(np.float32))
    if name in PREDICATES:
        return getattr(np, name)(widened(x))
    if name == "relu":
        return np.where(x > 0, x, np.where(x != x, x, np.zeros_like(x)))
    return getattr(np, name)(widened(x)).astype(x.dtype)


def float_reference(name, x):
    """A float function in a wider type; or in x's own, where NumPy rounds correctly."""
    wide = x.astype(np.longdouble if x.dtype == np.float64 else np.float64)
    if name == "sigmoid":
        return sigmoid(wide)
    if name == "gelu":
        return np.maximum(wide, -40) * normal_cdf(wide)  # the limit at -infinity is 0
    if name == "silu":
        return np.maximum(wide, -800) * sigmoid(wide)
    if name in ("sqrt", "reciprocal"):
        return getattr(np, name)(wide if x.dtype in HALVES else x)
    return getattr(np, name)(wide)


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def normal_cdf(x):
    """The standard normal distribution's cumulative function, 0.5 erfc(-x sqrt(0.5)).

    math.erfc takes float64, where t has been rounded: erfc(t + rest) = erfc(t) (1 - 2 t rest). Far
    out, where its results are subnormal, the asymptotic series is better.
    """
    exact = np.clip(x, -40, 40) * -np.sqrt(x.dtype.type(0.5))
    t = np.asarray(exact, np.float64)
    erfc = np.asarray(np.frompyfunc(math.erfc, 1, 1)(t), np.float64)
    erfc = erfc * (1 - 2 * np.maximum(t, 0) * (exact - t))
    far = np.maximum(exact, 20)
    term, series = np.ones_like(far), np.ones_like(far)
    for n in range(1, 10):
        term = term * -(2 * n - 1) / (2 * far * far)
        series += term
    pi = x.dtype.type("3.14159265358979323846")
    far = np.exp(-far * far) / (far * np.sqrt(pi)) * series
    return np.where(exact > 20, far, erfc) / 2


def assert_binary(device, name, result, a, b, message=""):
    """The result is the reference: in all bits, or for some functions of floats nearly."""
    result, reference = host(result), binary_reference(name, a, b)
    if name == "logaddexp" and result.dtype == np.float64:  # the difference of two numbers
        some = np.where(np.isfinite(reference), np.abs(reference) + 1, 1)
        assert_within(result, reference.astype(np.float64), 2.0**-51 * some, f"{name} {message}")
    elif name in FLOAT_PAIRS and is_float(result.dtype):
        assert_close(result, reference, name, device, message)
    else:
        assert_same(result, reference, f"{name} {message}")


def binary_reference(name, a, b):
    """NumPy's result, except that floats of integers are float32; of FLOAT_PAIRS in a wider type.

    Of bfloat16 it is NumPy's result of float32, rounded.
    """
    dtype = result_type(a.dtype, b.dtype)
    if name in COMPARISONS and dtype != BFLOAT16:
        return getattr(np, name)(widened(a), widened(b))  # exact for int64 beside uint64 too
    if DOES_FLOATS[name] and not is_float(dtype):
        dtype = np.dtype(np.float32)
    if name in FLOAT_PAIRS and is_float(dtype):
        a, b = (x if is_float(x.dtype) else rounded(x, dtype) for x in (a, b))
        wide = np.longdouble if dtype == np.float64 else np.float64
        return getattr(np, name)(rounded(a, dtype).astype(wide), rounded(b, dtype).astype(wide))
    if dtype == BFLOAT16:
        a, b = (rounded(x, dtype).astype(np.float32) for x in (a, b))
        result = binary_reference(name, a, b)
        return result if name in COMPARISONS else result.astype(dtype)
    a, b = widened(a).astype(dtype), widened(b).astype(dtype)
    if name in ("maximum", "minimum", "fmax", "fmin") and is_float(dtype):
        return extreme(name, a, b)
    if name == "pow":
        return integer_power(a, b)
    return getattr(np, name)(a, b)


def integer_power(a, b):
    """a ** b, wrapped; Python's fractions of negative powers, rounded toward zero, 0 of 0."""
    bits, power = 8 * a.dtype.itemsize, np.empty(np.broadcast(a, b).shape, a.dtype)
    for at, (base, exponent) in enumerate(
        zip(*map(np.ravel, np.broadcast_arrays(a, b)), strict=True)
    ):
        base, exponent = int(base), int(exponent)
        if exponent < 0:
            value = 0 if abs(base) != 1 else base ** (exponent % 2)
        else:
            value = pow(base, exponent, 2**bits)
        power.flat[at] = (
            value - 2**bits if a.dtype.kind == "i" and value >= 2 ** (bits - 1) else value
        )
    return power


def extreme(name, a, b):
    """maximum, fmax and the like, with -0.0 < 0.0. NumPy leaves open which zero it gives."""
    result = getattr(np, name)(a, b)
    zeros = (a == 0) & (b == 0)
    is_largest = name in ("maximum", "fmax")
    negative = np.signbit(a) & np.signbit(b) if is_largest else np.signbit(a) | np.signbit(b)
    signed = np.where(negative, -np.zeros_like(result), np.zeros_like(result))
    return np.where(zeros, signed, result)


def product_reference(a, b):
    """The matrix product of values that the promoted dtype holds exactly."""
    dtype = result_type(a.dtype, b.dtype)
    if dtype.kind == "b":
        return np.matmul(a.astype(np.int64), b.astype(np.int64)) > 0
    return rounded(np.matmul(a.astype(np.float64), b.astype(np.float64)), dtype)
