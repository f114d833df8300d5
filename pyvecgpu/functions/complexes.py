"""Complex numbers: their parts, conjugates and angles, and whether something is complex.

Parts of complex Arrays are views, through which they can be written to. Real arrays have themselves
as real parts, and as imaginary ones zeros that are read-only.
"""

import math

import numpy as np

from ..array import Array
from ..dispatch import apply, whole
from ..dtypes import complex_dtype, is_complex, supported
from ..operations import Operation
from . import short_counts, short_names, short_ufuncs
from .arguments import is_host, is_scalar, parse_scalar, strong
from .choosing import in_part
from .elementwise import abs, equal, less, multiply, not_equal
from .indexing import get
from .layout import as_array, broadcast_to
from .mathematics import atan2
from .operators import unary
from .reductions import all
from .short_calls import short
from .short_operations import of_one
from .values import item

__all__ = [
    "angle",
    "conj",
    "conjugate",
    "imag",
    "iscomplex",
    "iscomplexobj",
    "isreal",
    "isrealobj",
    "real",
    "real_if_close",
]


@of_one(Operation.CONJ)
def conj(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the complex conjugate; real numbers as they are. TypeError: bool.

    >>> print(vg.conj(vg.asarray([1 + 2j, 3 - 1j])))
    [1.-2.j 3.+1.j]
    """
    if where is not True or dtype is not None:
        return in_part(conj, (x,), out, where, dtype, device)
    return unary(Operation.CONJ, x, out, device)


conjugate = conj


def real(x, /):
    """Return the real parts: a view.

    >>> x = vg.asarray([1 + 2j, 3 - 1j])
    >>> vg.real(x)[0] = 10
    >>> print(x)
    [10.+2.j  3.-1.j]
    """
    array, give = as_array("real", x)
    return give(part(array, 0))


@short(short_names.imag, c_order=False)
def imag(x, /):
    """Return the imaginary parts: a view; of real numbers zeros, which are read-only.

    >>> vg.imag(vg.asarray([1 + 2j, 3 - 1j])).tolist()
    [2.0, -1.0]
    """
    array, give = as_array("imag", x)
    return give(part(array, 1))


def part(array, imaginary):
    """Return the real (0) or imaginary (1) parts of an Array."""
    if is_complex(array.dtype):
        return apply(array.backend, "part", array, imaginary)
    if not imaginary:
        return get(array, ...)
    return broadcast_to(strong(0, array.backend, array.dtype), array.shape)


def of_parts(real, imag):
    """Return the complex Array of two Arrays of a shape and dtype."""

    def compute():
        result = apply(real.backend, "empty", real.shape, complex_dtype(real.dtype))
        for values, imaginary in ((real, False), (imag, True)):
            apply(real.backend, "copy", values, part(result, imaginary))
        return result

    return whole("complex", {"real": real, "imag": imag}, compute)


def squared_length(array):
    """Return |x|^2 of an Array, in the dtype of its parts."""
    if not is_complex(array.dtype):
        return array * array
    parts = part(array, 0), part(array, 1)
    return parts[0] * parts[0] + parts[1] * parts[1]


@short(short_ufuncs.angle, c_order=False)
def angle(x, /, deg=False):
    """Return the angle of complex numbers in radians, or degrees, from -pi to pi; as float.

    That of a real number is 0 or pi.

    >>> print(vg.angle(vg.asarray([1j, -1.0 + 0j]), deg=True))
    [ 90. 180.]
    """
    array, give = as_array("angle", x)
    result = atan2(part(array, 1), part(array, 0))
    return give(multiply(result, 180 / math.pi) if deg else result)


@short(short_counts.iscomplex)
def iscomplex(x, /):
    """Return where the imaginary part is not 0, as bool.

    >>> vg.iscomplex(vg.asarray([1 + 2j, 3 + 0j])).tolist()
    [True, False]
    """
    array, give = as_array("iscomplex", x)
    return give(not_equal(part(array, 1), 0))


@short(short_counts.isreal)
def isreal(x, /):
    """Return where the imaginary part is 0, as bool.

    >>> vg.isreal(vg.asarray([1 + 2j, 3 + 0j])).tolist()
    [False, True]
    """
    array, give = as_array("isreal", x)
    return give(equal(part(array, 1), 0))


def iscomplexobj(x, /):
    """Return whether the dtype of an array, or a scalar, is complex; a Python bool.

    >>> vg.iscomplexobj(vg.asarray([3 + 0j])), vg.iscomplexobj(vg.ones(2))
    (True, False)
    """
    if is_scalar(x):
        return isinstance(x, complex)
    if isinstance(x, Array) or is_host(x):
        return is_complex(supported(x.dtype))
    return np.iscomplexobj(x)


def isrealobj(x, /):
    """Return whether the dtype of an array, or a scalar, is not complex; a Python bool.

    >>> vg.isrealobj(vg.asarray([3 + 0j])), vg.isrealobj(vg.ones(2))
    (False, True)
    """
    return not iscomplexobj(x)


def real_if_close(x, /, tol=100.0):
    """Return the real parts if all imaginary ones are nearly 0, else x itself.

    tol: from 1 on, how many times the distance of 1 to the next number they may have; below that, a
    bound. It waits for the values.

    >>> vg.real_if_close(vg.asarray([2 + 1e-14j, 5 + 0j], dtype="complex128")).tolist()
    [2.0, 5.0]
    """
    array, give = as_array("real_if_close", x)
    tol = parse_scalar(tol, "a tolerance")
    if not is_complex(array.dtype):
        return x
    parts = part(array, 0), part(array, 1)
    bound = float(np.finfo(parts[0].dtype).eps) * tol if tol > 1 else float(tol)
    return give(parts[0]) if item(all(less(abs(parts[1]), bound))) else x
