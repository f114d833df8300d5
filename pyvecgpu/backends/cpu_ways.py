"""Short ways of the CPU device: which of NumPy's functions is an operation of some dtypes as it is.

Most are. Looking that up once for each combination of dtypes leaves of a small call little but
NumPy's own. What is not here (bfloat16, dtypes that operations refuse, scalars that a dtype cannot
hold) is None, and goes the general way in cpu.py. NumPy computes float16 in float32 and rounds
once.
"""

import numpy as np

from ..dtypes import get_default_dtype
from ..operations import OPERATIONS, result_dtype
from . import cpu_functions, cpu_layers

# Functions of arrays beside NumPy's own that take `out` as those do, and float16.
_LIKE_UFUNCS = (
    *(cpu_functions.maximum, cpu_functions.minimum, cpu_functions.fmax, cpu_functions.fmin),
    *(cpu_functions.power, cpu_functions.logaddexp),
    *(cpu_layers.sigmoid, cpu_layers.relu, cpu_layers.gelu, cpu_layers.silu),
)
# What is NumPy's own function but of complex numbers, and by what name.
_OF_REALS = {
    np.round: np.rint,
    cpu_functions.sign: np.sign,
    cpu_functions.exp2: np.exp2,
    cpu_functions.log1p: np.log1p,
}
# What is NumPy's own function but of floats, and by what name.
_OF_INTEGERS = {
    cpu_functions.maximum: np.maximum,
    cpu_functions.minimum: np.minimum,
    cpu_functions.fmax: np.maximum,
    cpu_functions.fmin: np.minimum,
}
# What NumPy computes of float16 an element at a time, or with fewer digits.
_NOT_OF_HALVES = (cpu_functions.power, cpu_functions.logaddexp)
_KINDS = "buif"
_GENERAL = None, None  # a way: the function, and the dtype that it gives
# Python scalars that are exact in float32 or float16, whatever comes of them there.
_EXACT = {"e": 2**11, "f": 2**24, "d": 2**53}
_LARGEST = {"e": 6e4, "f": 3e38}


class _Ways(dict):
    """{(code, dtypes, ...): a way}, filled when asked for."""

    def __init__(self, make):
        self.make = make

    def __missing__(self, key):
        return self.setdefault(key, self.make(*key))


def _function(row, *dtypes):
    """Return what computes a row of operands of these dtypes as they are; None: nothing does."""
    if not all(dtype.kind in _KINDS for dtype in dtypes):
        return None
    function = _OF_REALS.get(row.cpu, row.cpu)
    if all(dtype.kind != "f" for dtype in dtypes):
        function = _OF_INTEGERS.get(function, function)
    if not isinstance(function, np.ufunc) and function not in _LIKE_UFUNCS:
        return None
    return function


def _of_default_floats(function):
    """Return a function of bools and integers that computes in the default float dtype."""

    def compute(*operands):
        dtype = get_default_dtype()
        return function(*[operand.astype(dtype) for operand in operands])

    return compute


def _beside_default_floats(function):
    """Return the same beside a Python scalar, on either side."""

    def compute(left, right):
        dtype = get_default_dtype()
        if type(left) is np.ndarray:
            return function(left.astype(dtype, "C"), right)
        return function(left, right.astype(dtype, "C"))

    return compute


def _unary(code, dtype):
    row = OPERATIONS[code]
    function = _function(row, dtype)
    if function is None or dtype.kind not in row.domain:
        return _GENERAL
    if row.result == "float" and dtype.kind != "f":
        return _of_default_floats(function), None
    if function is np.rint and dtype.kind != "f":
        function = np.positive
    given = result_dtype(row, dtype)
    return function, given


def _binary(code, first, second):
    row = OPERATIONS[code]
    function = _function(row, first, second)
    if function is None or first.kind not in _KINDS or second.kind not in _KINDS:
        return _GENERAL
    dtype = np.promote_types(first, second)
    if dtype.kind not in row.domain or (dtype.char == "e" and row.cpu in _NOT_OF_HALVES):
        return _GENERAL
    if row.result == "float" and dtype.kind != "f":
        return _of_default_floats(function), None
    return function, result_dtype(row, dtype)


def _scalar(code, dtype, kind):
    """A way beside a Python scalar of a kind, with the bounds between which it holds."""
    row = OPERATIONS[code]
    if dtype.kind in "biu" and (kind is float or (kind is int and row.result == "float")):
        function, _, least, most = _scalar(code, np.dtype(np.float32), kind)
        if function is None:
            return None, None, 0, 0
        return _beside_default_floats(function), None, least, most
    function = _function(row, dtype)
    if row.cpu in _NOT_OF_HALVES:
        function = np.power if row.cpu is cpu_functions.power and dtype.kind == "f" else None
    if function is None or dtype.kind not in row.domain or kind not in (int, float, bool):
        return None, None, 0, 0
    if dtype.kind == "f":
        most = _LARGEST.get(dtype.char, np.inf) if kind is float else _EXACT[dtype.char]
        given = result_dtype(row, dtype)
        return function, given, -most, most
    if kind is int and dtype.kind in "iu" and row.result in ("same", "bool"):
        return function, result_dtype(row, dtype), -np.inf, np.inf
    return None, None, 0, 0


DEFAULT = "the default float dtype"


def _reduced(code, dtype):
    """The dtype that a reduction gives, DEFAULT, or None: that is worked out, or refused."""
    row = OPERATIONS[code]
    if dtype.kind not in _KINDS or dtype.kind not in row.domain:
        return None
    return DEFAULT if row.result == "float" and dtype.kind != "f" else result_dtype(row, dtype)


class Functions(dict):
    """{dtype or dtypes: the function of a way of one code}, filled when asked for."""

    def __init__(self, ways, code):
        self.ways, self.code = ways, code

    def __missing__(self, key):
        way = (self.code, *(key if type(key) is tuple else (key,)))
        return self.setdefault(key, self.ways[way][0])


UNARY, BINARY, SCALAR = _Ways(_unary), _Ways(_binary), _Ways(_scalar)
REDUCED = _Ways(_reduced)


def holds(dtype, value):
    """Whether NumPy writes, or refuses, a Python scalar to arrays of a dtype as we do."""
    kind, of = dtype.kind, type(value)
    if kind == "f":
        return (of is float or of is int) and abs(value) <= _LARGEST.get(dtype.char, 1e300)
    return of is bool or (of is int and kind in "iub")


_FEW = 100_000  # bools whose bytes are looked through sooner than NumPy says whether all are true


def all_true(mask):
    """Whether all bools of an ndarray, or of NumPy's scalar, are true."""
    return b"\0" not in mask.tobytes() if mask.size < _FEW else bool(mask.all())


def fits(out, given, shape, other=()):
    """Whether NumPy may write a result of operands of two shapes and a dtype straight into out.

    It refuses by itself, with a ValueError, what is read-only.
    """
    return out.dtype is given and out.shape == shape and (other == shape or other == ())


def may_share(a, b):
    """Whether two ndarrays may have memory in common: not two that have their own."""
    if a.base is None and b.base is None and a is not b:
        return False
    return np.may_share_memory(a, b)
