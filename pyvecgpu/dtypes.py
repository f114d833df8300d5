"""The dtypes of arrays: NumPy's dtype objects, their codes in the C library, and the default float.

Python floats and creation functions give the default float, float32 unless `set_default_dtype` says
otherwise, and so do the float functions (exp, mean, division, ...) of bools and integers. Python
complex numbers give the complex dtype of such parts. Between arrays, NumPy's promotion rules hold.

float16 and bfloat16 are stored in two bytes and computed in float32. NumPy has no bfloat16: it
comes from the package ml_dtypes, which only the CPU device and copies to NumPy need. So
`vg.bfloat16` is an object of this module, equal to ml_dtypes' dtype, and the one that Array.dtype
gives. Beside bool, int8 and uint8 bfloat16 stays bfloat16, as in ml_dtypes; where that knows no
promotion, it is as in JAX and torch: bfloat16 beside the other integers, float32 beside float16.
"""

import builtins
import functools

import numpy as np

from .native.abi import DType, Option
from .native.choices import choose, chosen

__all__ = [
    "bfloat16",
    "bool",
    "bool_",
    "byte",
    "cdouble",
    "complex128",
    "complex64",
    "csingle",
    "double",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "int_",
    "intc",
    "intp",
    "long",
    "longlong",
    "set_default_dtype",
    "short",
    "single",
    "ubyte",
    "uint",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uintc",
    "uintp",
    "ulong",
    "ulonglong",
    "ushort",
]


class BFloat16:
    """The dtype bfloat16, with the attributes of NumPy's dtypes that this package uses."""

    __slots__ = ()
    name, kind, char, itemsize = "bfloat16", "f", "E", 2  # the char is ml_dtypes'

    @property
    def dtype(self):
        """ml_dtypes' dtype, by which NumPy takes this object for a dtype."""
        try:
            return host_dtype(self)
        except ImportError as error:
            raise AttributeError(str(error)) from None

    @property
    def type(self):
        """ml_dtypes' type of scalars."""
        return self.dtype.type

    def __eq__(self, other):
        return is_bfloat16(other)

    __hash__ = name.__hash__  # bound to the name: no Python runs for it

    def __repr__(self):
        return f"dtype({self.name})"

    def __str__(self):
        return self.name

    def __reduce__(self):
        return self.name


bfloat16 = BFloat16()
bool = np.dtype("bool")
uint8 = np.dtype("uint8")
uint16 = np.dtype("uint16")
uint32 = np.dtype("uint32")
int8 = np.dtype("int8")
int16 = np.dtype("int16")
int32 = np.dtype("int32")
int64 = np.dtype("int64")
uint64 = np.dtype("uint64")
float16 = np.dtype("float16")
float32 = np.dtype("float32")
float64 = np.dtype("float64")
complex64 = np.dtype("complex64")
complex128 = np.dtype("complex128")
# NumPy's other names, of C's types on 64-bit Linux.
bool_ = bool
byte = int8
cdouble = complex128
csingle = complex64
double = float64
half = float16
int_ = int64
intc = int32
intp = int64
long = int64
longlong = int64
short = int16
single = float32
ubyte = uint8
uint = uint64
uintc = uint32
uintp = uint64
ulong = uint64
ulonglong = uint64
ushort = uint16

CODES = {
    bfloat16 if code is DType.BFLOAT16 else np.dtype(code.name.lower()): int(code) for code in DType
}
DTYPES = {code: dtype for dtype, code in CODES.items()}
NAMES = ", ".join(dtype.name for dtype in CODES)
# What nearly every dtype is given as: as itself, by its name, as NumPy's type of its scalars.
_KNOWN = {form: x for x in CODES if x is not bfloat16 for form in (x, x.name, x.type)}
_KNOWN |= {bfloat16: bfloat16, float: float64, int: int64, complex: complex128}
_DEFAULT_FLOAT = Option.OPTION_DEFAULT_FLOAT


def parse_dtype(dtype):
    """Return the dtype of arrays for a dtype, a name or a type; in native byte order.

    TypeError: not a dtype, or one that arrays cannot have.
    """
    try:
        return _KNOWN[dtype]
    except (KeyError, TypeError):
        pass
    if is_bfloat16(dtype):
        return bfloat16
    try:
        # None would be NumPy's default, float64, which is not the default here.
        parsed = None if dtype is None else np.dtype(dtype).newbyteorder("=")
    except TypeError as error:
        raise TypeError(f"{dtype!r} is not a dtype; arrays can be: {NAMES}") from error
    return supported(parsed)


def supported(dtype):
    """Return the dtype of arrays for one of NumPy's; TypeError if arrays cannot have it."""
    if dtype in CODES:
        return dtype
    if is_bfloat16(dtype):
        return bfloat16
    raise TypeError(f"dtype {dtype} is not supported; arrays can be: {NAMES}")


def get_default_dtype():
    """Return the dtype of Python floats: float32 or float64.

    >>> vg.get_default_dtype()
    dtype('float32')
    >>> vg.asarray(0.5).dtype
    dtype('float32')
    """
    return DTYPES[chosen(_DEFAULT_FLOAT)]


def set_default_dtype(dtype, /):
    """Make float32 or float64 the dtype of Python floats, for the whole process.

    TypeError: any other dtype.

    >>> vg.set_default_dtype(vg.float64)
    >>> vg.asarray(0.5).dtype
    dtype('float64')
    >>> vg.set_default_dtype(vg.float32)
    """
    parsed = parse_dtype(dtype)
    if parsed not in (float32, float64):
        raise TypeError(f"the default dtype can be float32 or float64, not {parsed}")
    choose(_DEFAULT_FLOAT, CODES[parsed])


def is_bfloat16(value):
    """True for bfloat16 as a dtype, a name or a scalar type, be it ours or ml_dtypes'."""
    if isinstance(value, (str, BFloat16)):
        return str(value) == "bfloat16"
    if isinstance(value, np.dtype):
        return value.kind == "V" and value.name == "bfloat16"  # NumPy's own are found at once
    return isinstance(value, type) and value.__name__ == "bfloat16"


def host_dtype(dtype):
    """Return the dtype of NumPy arrays with these elements; ImportError: ml_dtypes is missing."""
    if not isinstance(dtype, BFloat16):
        return dtype
    try:
        from ml_dtypes import bfloat16 as scalar_type
    except ImportError:
        raise ImportError(
            "NumPy has no bfloat16; the package ml_dtypes adds it: pip install pyvecgpu[bfloat16]"
        ) from None
    return np.dtype(scalar_type)


def is_half(dtype):
    """True for the dtypes that are computed in float32: float16 and bfloat16."""
    return dtype.char in "eE"


def is_integer(dtype):
    """True for the integer dtypes; bool is not one."""
    return dtype.kind in "iu"


@functools.cache
def integer_range(dtype):
    """Return the lowest and the highest number of an integer dtype."""
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def is_float(dtype):
    """True for float16, bfloat16, float32 and float64."""
    return dtype.kind == "f" or dtype.char == "E"


def is_complex(dtype):
    """True for complex64 and complex128."""
    return dtype.kind == "c"


def inexact(dtype):
    """Return the dtype that a float function of such an array gives; complex ones stay."""
    return dtype if is_float(dtype) or is_complex(dtype) else get_default_dtype()


def real_dtype(dtype):
    """Return the dtype of the parts of complex numbers; any other dtype as it is."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_dtype(dtype):
    """Return the complex dtype beside an array: its own, or the one with room for its floats."""
    if is_complex(dtype):
        return dtype
    return complex128 if inexact(dtype) == float64 else complex64


def promote(a, b):
    """Return the dtype that arrays of two dtypes are promoted to."""
    a, b = supported(a), supported(b)
    if a is not bfloat16 and b is not bfloat16:
        return np.promote_types(a, b)
    other = a if b is bfloat16 else b
    if other is bfloat16 or other.kind in "biu":
        return bfloat16
    if is_complex(other):
        return other
    return float64 if other == float64 else float32


def promote_scalar(dtype, value):
    """Return the dtype of a Python bool, int, float or complex beside an array of `dtype`.

    Beside bool it is the dtype that the scalar has by itself.
    """
    if isinstance(value, float):
        return inexact(dtype)
    if isinstance(value, complex):
        return complex_dtype(dtype)
    return int64 if dtype.kind == "b" and not isinstance(value, builtins.bool) else dtype
