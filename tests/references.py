"""What elementwise functions should give, by NumPy: exact, or in a wider type."""

import numpy as np

FLOAT_FUNCTIONS = ("exp", "log", "sqrt", "tanh", "sigmoid")
UNARY = ("negative", "abs", "relu", *FLOAT_FUNCTIONS)
ARITHMETIC = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
BINARY = ARITHMETIC + COMPARISONS


def takes(name, *dtypes):
    """Whether an operation takes operands of these dtypes."""
    return not (name in ("negative", "relu", "subtract") and all(d.kind == "b" for d in dtypes))


def unary_reference(name, x):
    """f(x); float functions in a wider type, of integers rounded to the default float first."""
    if name in FLOAT_FUNCTIONS:
        return float_reference(name, x if x.dtype.kind == "f" else x.astype(np.float32))
    if name == "relu":
        return np.where(x > 0, x, np.where(x != x, x, np.zeros_like(x)))
    return np.abs(x) if name == "abs" else -x


def float_reference(name, x):
    """A float function in a wider type; sqrt in x's own, where NumPy rounds it correctly."""
    wide = x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)
    if name == "sigmoid":
        small = np.exp(-np.abs(wide))
        return np.where(wide >= 0, 1, small) / (1 + small)
    return np.sqrt(x) if name == "sqrt" else getattr(np, name)(wide)


def binary_reference(name, a, b):
    """NumPy's result, except that a quotient of integers is a float32."""
    if name in COMPARISONS:
        return getattr(np, name)(a, b)  # exact for int64 beside uint64 too
    dtype = np.promote_types(a.dtype, b.dtype)
    if name == "divide" and dtype.kind != "f":
        dtype = np.dtype(np.float32)
    a, b = a.astype(dtype), b.astype(dtype)
    if name in ("maximum", "minimum") and dtype.kind == "f":
        return extreme(name, a, b)
    return getattr(np, name)(a, b)


def extreme(name, a, b):
    """maximum and minimum with ordered zeros: -0.0 < 0.0. NumPy leaves open which one it gives."""
    result = getattr(np, name)(a, b)
    zeros = (a == 0) & (b == 0)
    negative = np.signbit(a) & np.signbit(b) if name == "maximum" else np.signbit(a) | np.signbit(b)
    signed = np.where(negative, -np.zeros_like(result), np.zeros_like(result))
    return np.where(zeros, signed, result)


def product_reference(a, b):
    """The matrix product of values that the promoted dtype holds exactly."""
    dtype = np.promote_types(a.dtype, b.dtype)
    if dtype.kind == "b":
        return np.matmul(a.astype(np.int64), b.astype(np.int64)) > 0
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(dtype)
