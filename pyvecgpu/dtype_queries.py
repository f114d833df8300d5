"""Constants, questions about dtypes, and what the library says of itself, as the array API has it.

Nothing here computes on a device. A dtype is given as itself, by its name or as NumPy's type of its
scalars.
"""

import functools
import math

import numpy as np

from .array import Array
from .device import Device, devices, resolve
from .dtypes import (
    CODES,
    bfloat16,
    complex_dtype,
    get_default_dtype,
    int64,
    is_bfloat16,
    is_float,
    is_integer,
    parse_dtype,
    promote,
    promote_scalar,
    real_dtype,
    supported,
)
from .dtypes import bool as bool_dtype
from .native.abi import MAX_NDIM

__all__ = [
    "can_cast",
    "e",
    "euler_gamma",
    "finfo",
    "iinfo",
    "inf",
    "isdtype",
    "issubdtype",
    "min_scalar_type",
    "nan",
    "pi",
    "result_type",
]

e = math.e
euler_gamma = float(np.euler_gamma)
inf = math.inf
nan = math.nan
pi = math.pi

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
# Bits of precision, and the power of 2 at which infinity begins.
_FLOATS = {"bfloat16": (8, 128), "float16": (11, 16), "float32": (24, 128), "float64": (53, 1024)}
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
_STANDARD = [dtype for dtype in CODES if dtype.name not in ("bfloat16", "float16")]


# Limits -------------------------------------------------------------------------------------------


class finfo:  # noqa: N801  as NumPy calls it
    """The limits of a float dtype, given as a dtype or an array of it; all of them Python floats.

    Of a complex dtype they are those of its parts.

    ValueError: not a float dtype. TypeError: no dtype of arrays.

    >>> vg.finfo("float32").eps
    1.1920928955078125e-07
    >>> vg.finfo(vg.bfloat16).max
    3.3895313892515355e+38
    """

    __slots__ = (
        *("bits", "dtype", "eps", "epsneg", "max", "min", "resolution", "smallest_normal"),
        *("smallest_subnormal", "tiny"),
    )

    def __init__(self, dtype, /):
        self.dtype = real_dtype(_dtype_of(dtype))
        if not is_float(self.dtype):
            raise ValueError(f"finfo takes float dtypes, not {self.dtype}")
        digits, exponent = _FLOATS[self.dtype.name]
        self.bits = 8 * self.dtype.itemsize
        self.eps, self.epsneg = 2.0 ** (1 - digits), 2.0**-digits
        self.max = (2.0 - self.eps) * 2.0 ** (exponent - 1)
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0 ** (2 - exponent)
        self.smallest_subnormal = self.smallest_normal * self.eps
        self.resolution = 10.0 ** -int((digits - 1) * math.log10(2))

    def __repr__(self):
        return f"finfo(min={self.min}, max={self.max}, eps={self.eps}, dtype={self.dtype.name})"


@functools.cache
def float_range(dtype):
    """Return the lowest and the highest number of a float dtype."""
    limits = finfo(dtype)
    return float(limits.min), float(limits.max)


class iinfo:  # noqa: N801
    """The limits of an integer dtype, given as a dtype or an array of it.

    ValueError: not an integer dtype. TypeError: no dtype of arrays.

    >>> vg.iinfo("uint8").max
    255
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype, /):
        self.dtype = _dtype_of(dtype)
        if not is_integer(self.dtype):
            raise ValueError(f"iinfo takes integer dtypes, not {self.dtype}")
        limits = np.iinfo(self.dtype)
        self.bits, self.min, self.max = limits.bits, int(limits.min), int(limits.max)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


# Kinds and promotion ------------------------------------------------------------------------------


def isdtype(dtype, kind):
    """Return whether a dtype is of a kind: its name, another dtype, or a tuple of such.

    Names: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
    floating", "numeric". ValueError: another name. TypeError: not a dtype.

    >>> vg.isdtype(vg.float16, "real floating")
    True
    >>> vg.isdtype(vg.ones(2).dtype, ("integral", "bool"))
    False
    """
    dtype = _any_dtype(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    found = [_is_of(dtype, one) for one in kinds]  # of all, so that none is misspelt
    return any(found)


def _is_of(dtype, kind):
    if not isinstance(kind, str):
        return dtype == _any_dtype(kind)
    if kind not in _KINDS:
        names = ", ".join(repr(name) for name in _KINDS)
        raise ValueError(f"isdtype: a kind can be {names}, not {kind!r}")
    return dtype.kind in _KINDS[kind]


def _any_dtype(dtype):
    """Return one of our dtypes, or of NumPy's that arrays cannot have."""
    if is_bfloat16(dtype):
        return bfloat16
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        return np.dtype(dtype)
    raise TypeError(f"isdtype takes dtypes, not {dtype!r}")


def issubdtype(arg1, arg2, /):
    """Return whether a dtype is another one, or of a kind of NumPy's, such as numpy.floating.

    >>> vg.issubdtype(vg.float32, np.floating), vg.issubdtype("int8", vg.int16)
    (True, False)
    """
    if is_bfloat16(arg2):
        return is_bfloat16(arg1)
    if is_bfloat16(arg1):  # a float that none of NumPy's is
        return isinstance(arg2, type) and arg2 in np.floating.__mro__
    return bool(np.issubdtype(arg1, arg2))


def min_scalar_type(a, /):
    """Return the smallest dtype that holds a scalar; of an array with axes, its own dtype.

    A 0-d Array is read for that. TypeError: no dtype of arrays.

    >>> vg.min_scalar_type(10), vg.min_scalar_type(-260), vg.min_scalar_type(vg.ones(3))
    (dtype('uint8'), dtype('int16'), dtype('float32'))
    """
    if isinstance(a, Array):
        if a.ndim or a.dtype == bfloat16:
            return a.dtype
        a = a.numpy()
    return supported(np.min_scalar_type(a))


def can_cast(from_, to, casting="safe", /):
    """Return whether values of a dtype, or of an array, may become ones of another.

    casting: "no" and "equiv" (the same dtype), "safe" (no value is lost, if large integers in
    float64 are near enough), "same_kind" (not floats to integers), "unsafe". ValueError: another
    rule. TypeError: no dtype of arrays.

    >>> vg.can_cast("int32", "float64"), vg.can_cast("float64", "float32")
    (True, False)
    >>> vg.can_cast("float64", "float32", "same_kind")
    True
    """
    is_plain = isinstance(from_, np.dtype) and type(to) is str and type(casting) is str
    return (_can_cast_known if is_plain else _can_cast)(from_, to, casting)


def _can_cast(from_, to, casting):
    if casting not in _CASTINGS:
        names = ", ".join(repr(name) for name in _CASTINGS)
        raise ValueError(f"can_cast: casting can be {names}, not {casting!r}")
    source, target = _dtype_of(from_), parse_dtype(to)
    if source == target:
        return True
    if bfloat16 not in (source, target):
        return np.can_cast(source, target, casting)
    if casting in ("same_kind", "unsafe"):  # as between the other floats
        pair = [np.dtype(np.float32) if one == bfloat16 else one for one in (source, target)]
        return np.can_cast(*pair, casting)
    if casting != "safe":
        return False
    if target == bfloat16:  # its 8 bits hold those of a byte
        return source.kind == "b" or (is_integer(source) and source.itemsize == 1)
    return target.kind in "fc" and target.itemsize > 2


_can_cast_known = functools.lru_cache(maxsize=1024)(_can_cast)


def result_type(*arrays_and_dtypes):
    """Return the dtype that operands are promoted to, as an operation promotes two.

    Arrays and dtypes are promoted from left to right. Python's bools, ints, floats and complex
    numbers are weak: a float beside integers gives the default float. ValueError: nothing is
    given. TypeError: neither an array, a dtype nor such a scalar.

    >>> vg.result_type(vg.int8, vg.uint8)
    dtype('int16')
    >>> vg.result_type(vg.float32, 2.5)
    dtype('float32')
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type: at least one array or dtype is required")
    weak = [x for x in arrays_and_dtypes if _is_weak(x)]
    strong = [_dtype_of(x) for x in arrays_and_dtypes if not _is_weak(x)]
    dtype = functools.reduce(promote, strong) if strong else bool_dtype
    for value in weak:
        dtype = promote_scalar(dtype, value)
    return dtype


def _is_weak(value):
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def _dtype_of(value):
    """Return the dtype of an array, or of what stands for a dtype."""
    if isinstance(value, (Array, np.ndarray, np.generic)):
        return supported(value.dtype)
    if _is_weak(value):
        raise TypeError(f"a dtype or an array is needed, not {value!r}")
    return parse_dtype(value)


# What the library says of itself ------------------------------------------------------------------


class ArrayNamespaceInfo:
    """What `__array_namespace_info__()` returns: what there is of the array API standard."""

    def capabilities(self):
        """Return what the standard leaves open, by its names for it."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": MAX_NDIM,
        }

    def default_device(self):
        """Return the Device on which arrays are made."""
        return resolve(None)

    def devices(self):
        """Return the Devices that there are, as a tuple."""
        return tuple(devices())

    def default_dtypes(self, *, device=None):
        """Return {kind: dtype} of what is made without a dtype."""
        _check_device(device)
        return {
            "real floating": get_default_dtype(),
            "complex floating": complex_dtype(bool_dtype),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device=None, kind=None):
        """Return {name: dtype} of the standard's dtypes, of all or of a kind, see isdtype."""
        _check_device(device)
        return {d.name: d for d in _STANDARD if kind is None or isdtype(d, kind)}


def _check_device(device):
    """Ask for a device, which has all dtypes; DeviceUnavailableError: it is not there."""
    if device is not None:
        Device(device)
