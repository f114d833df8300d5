"""Sums of exponentials, without overflow: softmax, its logarithm, and that of the sum.

Halves are computed in float32. axis: an integer, a tuple, or None for all axes.
"""

from ..dtypes import inexact
from ..operations import Operation
from .arguments import Operands, parse_axes
from .layout import astype

__all__ = ["log_softmax", "logsumexp", "softmax"]


def softmax(x, /, axis=-1, out=None, *, device=None):
    """Return exp(x) divided by its sum along an axis, as float.

    NaN for rows with NaN or infinity, and for rows of -infinity.

    >>> print(vg.softmax(vg.asarray([[0.0, 0.0], [0.0, 1000.0]])))
    [[0.5 0.5]
     [0.  1. ]]
    """
    return _exponentials("softmax", x, axis, True, out, device)


def log_softmax(x, /, axis=-1, out=None, *, device=None):
    """Return the logarithm of softmax, as float: finite also where that is 0.

    >>> print(vg.log_softmax(vg.asarray([0.0, 1000.0])))
    [-1000.     0.]
    """
    return _exponentials("log_softmax", x, axis, True, out, device)


def logsumexp(x, /, axis=None, out=None, keepdims=False, *, device=None):
    """Return the logarithm of the sum of exp(x), as float. ValueError: a sum of nothing.

    >>> print(vg.logsumexp(vg.asarray([1000.0, 1000.0])))
    1000.6932
    """
    return _exponentials("logsumexp", x, axis, bool(keepdims), out, device)


def _exponentials(name, x, axis, keepdims, out, device):
    call = Operands(name, (x,), out, device)
    (array,) = call.arrays
    code, axes = Operation[name.upper()], parse_axes(axis, array.ndim)
    if not array.size and code != Operation.LOGSUMEXP and array.dtype.kind != "c":
        return call.deliver_array(astype(array, inexact(array.dtype)))
    return call.apply("softmax", code, array, axes, keepdims)
