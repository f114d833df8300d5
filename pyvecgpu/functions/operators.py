"""How functions of one and of two operands are called: by operators, and by their functions.

A call of Arrays of one device alone goes straight to the backend. Every other one is prepared by
Operands (arguments.py): scalars, lists, NumPy arrays, which large go through in parts
(pipeline.py), arrays that are tracked or cast (casting.py), and `out` and `device`.
"""

from ..array import Array
from ..dispatch import WAYS
from ..operations import OPERATIONS, codes
from . import pipeline, short_cpu
from .arguments import Operands, are_operands, is_scalar
from .casting import active, exchanged

# Frequent powers of floats and complex numbers, as NumPy computes them too.
_POWERS = {
    -1: codes.RECIPROCAL,
    0.5: codes.SQRT,
    1: codes.POSITIVE,
    2: codes.SQUARE,
}


_PLAIN = {Array, float, int, bool}  # operands that need no look at what they are


def operator(code, left, right, out):
    """Return the result of a Python operator; NotImplemented if an operand is of a foreign type."""
    plain = type(left) in _PLAIN and type(right) in _PLAIN
    if plain or are_operands(left, right):
        return binary(code, left, right, out)
    return NotImplemented


def raised(left, right, out):
    """Return the result of left ** right as operator() does: frequent powers by what is quicker.

    ValueError: integers to a negative power, if that is a Python int, as NumPy has it.
    """
    kind = left.dtype.kind
    if type(right) is int and kind in "iu":
        if right < 0:
            raise ValueError(f"integers have no integer power {right}: make them floats first")
        if right == 2:
            return unary(codes.SQUARE, left, out)
    if active and out is None:
        left, right = exchanged("pow", (left, right))
    if kind in "fc" and type(right) in (int, float) and right in _POWERS:
        return unary(_POWERS[right], left, out)
    return operator(codes.POW, left, right, out)


def division(left, right):
    """Return left // right and left % right as operator() does."""
    result = short_cpu.division(left, right)
    if result is not None:
        return result
    quotient = operator(codes.FLOOR_DIVIDE, left, right, None)
    if quotient is NotImplemented:
        return NotImplemented
    return quotient, operator(codes.REMAINDER, left, right, None)


_UNARY, _BINARY, _SCALAR = map(WAYS.__getitem__, ("unary", "binary", "scalar"))
_SCALARS = {float, int, bool}


def is_beside(out, x):
    """Whether `out` is an Array of x's device."""
    return type(out) is Array and out.backend is x.backend


def unary(code, x, out=None, device=None):
    """Return operation `code` of pvg_unary."""
    if type(x) is Array and not active and device is None and (out is None or is_beside(out, x)):
        return _UNARY(x.backend, code, x, out)
    if type(x) is not Array:
        result = pipeline.compute(lambda x: unary(code, x), (x,), out, device)
        if result is not None:
            return result
    call = Operands(OPERATIONS[code].name, (x,), out, device)
    return call.apply("unary", code, call.arrays[0])


def binary(code, x1, x2, out=None, device=None):
    """Return operation `code` of pvg_binary or, with a Python scalar, of pvg_binary_scalar."""
    if device is None and not active:
        first, second = type(x1), type(x2)
        if first is Array and (out is None or is_beside(out, x1)):
            if second is Array:
                if x1.backend is x2.backend:
                    return _BINARY(x1.backend, code, x1, x2, out)
            elif second in _SCALARS:
                return _SCALAR(x1.backend, code, x1, x2, 1, out)
        elif second is Array and first in _SCALARS and (out is None or is_beside(out, x2)):
            return _SCALAR(x2.backend, code, x2, x1, 0, out)
    if type(x1) is not Array and type(x2) is not Array:
        result = pipeline.compute(lambda a, b: binary(code, a, b), (x1, x2), out, device)
        if result is not None:
            return result
    call = Operands(OPERATIONS[code].name, (x1, x2), out, device)
    a, b = call.arrays
    if is_scalar(b):
        return call.apply("scalar", code, a, b, 1)
    if is_scalar(a):
        return call.apply("scalar", code, b, a, 0)
    return call.apply("binary", code, a, b)
