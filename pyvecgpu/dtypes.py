"""The dtypes of arrays: NumPy's dtype objects, their codes in the C library, and the default float.

Python floats and creation functions give the default float, float32 unless `set_default_dtype` says
otherwise, and so do the float functions (exp, mean, division, ...) of bools and integers. Between
arrays, NumPy's promotion rules hold.
"""

import builtins

import numpy as np

from .native.abi import DType, Option

bool = np.dtype("bool")
uint8 = np.dtype("uint8")
int32 = np.dtype("int32")
int64 = np.dtype("int64")
uint64 = np.dtype("uint64")
float32 = np.dtype("float32")
float64 = np.dtype("float64")

CODES = {
    bool: int(DType.BOOL),
    uint8: int(DType.UINT8),
    int32: int(DType.INT32),
    int64: int(DType.INT64),
    uint64: int(DType.UINT64),
    float32: int(DType.FLOAT32),
    float64: int(DType.FLOAT64),
}
DTYPES = {code: dtype for dtype, code in CODES.items()}
NAMES = ", ".join(dtype.name for dtype in CODES)

_default = float32


def parse_dtype(dtype):
    """Return the NumPy dtype for a dtype, a name or a type; in native byte order.

    TypeError: not a dtype, or one that arrays cannot have.
    """
    try:
        # None would be NumPy's default, float64, which is not the default here.
        parsed = None if dtype is None else np.dtype(dtype).newbyteorder("=")
    except TypeError as error:
        raise TypeError(f"{dtype!r} is not a dtype; arrays can be: {NAMES}") from error
    return supported(parsed)


def supported(dtype):
    """Return the dtype, or raise TypeError if arrays cannot have it."""
    if dtype in CODES:
        return dtype
    raise TypeError(f"dtype {dtype} is not supported; arrays can be: {NAMES}")


def get_default_dtype():
    """Return the dtype of Python floats: float32 or float64."""
    return _default


def set_default_dtype(dtype, /):
    """Make float32 or float64 the dtype of Python floats, for the whole process.

    TypeError: any other dtype.
    """
    global _default
    from .native import library

    parsed = parse_dtype(dtype)
    if parsed not in (float32, float64):
        raise TypeError(f"the default dtype can be float32 or float64, not {parsed}")
    for loaded in library.loaded():
        loaded.set_option(Option.OPTION_DEFAULT_FLOAT, CODES[parsed])
    _default = parsed


def is_integer(dtype):
    """True for the integer dtypes; bool is not one."""
    return dtype.kind in "iu"


def is_float(dtype):
    """True for float32 and float64."""
    return dtype.kind == "f"


def inexact(dtype):
    """Return the dtype that a float function of such an array gives."""
    return dtype if dtype.kind == "f" else _default


def promote_scalar(dtype, value):
    """Return the dtype of a Python bool, int or float beside an array of `dtype`.

    Beside bool it is the dtype that the scalar has by itself.
    """
    if isinstance(value, float):
        return inexact(dtype)
    return int64 if dtype.kind == "b" and not isinstance(value, builtins.bool) else dtype
