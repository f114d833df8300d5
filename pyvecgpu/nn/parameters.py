"""Parameters: Arrays that require gradients and that a Module finds among its attributes."""

from ..array import Array
from ..autograd.arrays import require
from ..autograd.tape import Leaf, alias
from ..functions.creation import asarray
from ..functions.creation import to as moved
from ..functions.layout import astype


class _Kind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Array) and _is_marked(value)


class Parameter(metaclass=_Kind):
    """Parameter(values, requires_grad=True) makes an Array that a Module takes for a parameter.

    values: an Array, whose memory it shares, or what asarray takes. isinstance(x, Parameter) tells
    whether an Array is one. TypeError: values that require gradients, and are neither floats nor
    complex numbers.

    >>> p = vg.nn.Parameter(vg.zeros(3))
    >>> p.requires_grad, isinstance(p, vg.Array)
    (True, True)
    """

    def __new__(cls, values, requires_grad=True):
        return mark(alias(values if isinstance(values, Array) else asarray(values)), requires_grad)


def mark(array, requires_grad):
    """Make an Array that is not tracked a Parameter; return it."""
    array._node = Leaf()
    array._node.is_parameter = True
    return require(array, True) if requires_grad else array


def _is_marked(array):
    node = getattr(array, "_node", None)
    return type(node) is Leaf and node.is_parameter


def converted(array, device, dtype):
    """Return an Array on a device and, if it is one of floats, of a dtype; None for the same."""
    if dtype is not None and array.dtype.kind in "fV":
        array = astype(array, dtype, copy=False)
    return array if device is None else moved(array, device)


def replace(array, other):
    """Give an Array the values, dtype and device of another; it stays the same Parameter."""
    array.backend, array.raw = other.backend, other.raw
    if hasattr(array, "_description"):
        del array._description
