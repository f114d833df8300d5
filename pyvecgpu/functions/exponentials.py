"""Sums of exponentials, without overflow: softmax, its logarithm, and that of the sum.

Halves are computed in float32. axis: an integer, a tuple, or None for all axes.
"""

from ..dtypes import inexact, is_half
from .arguments import Operands
from .elementwise import abs, equal, exp, log, where
from .layout import astype, reshape
from .reductions import max as largest
from .reductions import sum as total

__all__ = ["log_softmax", "logsumexp", "softmax"]


def softmax(x, /, axis=-1, out=None, *, device=None):
    """Return exp(x) divided by its sum along an axis, as float.

    NaN for rows with NaN or infinity, and for rows of -infinity. ValueError: there is no element.

    >>> print(vg.softmax(vg.asarray([[0.0, 0.0], [0.0, 1000.0]])))
    [[0.5 0.5]
     [0.  1. ]]
    """
    call, array, dtype = _prepared("softmax", x, out, device)
    powers = exp(array - largest(array, axis=axis, keepdims=True))
    result = powers / total(powers, axis=axis, keepdims=True)
    return call.deliver_array(astype(result, dtype, copy=False))


def log_softmax(x, /, axis=-1, out=None, *, device=None):
    """Return the logarithm of softmax, as float: finite also where that is 0.

    >>> print(vg.log_softmax(vg.asarray([0.0, 1000.0])))
    [-1000.     0.]
    """
    call, array, dtype = _prepared("log_softmax", x, out, device)
    array = array - largest(array, axis=axis, keepdims=True)
    result = array - log(total(exp(array), axis=axis, keepdims=True))
    return call.deliver_array(astype(result, dtype, copy=False))


def logsumexp(x, /, axis=None, out=None, keepdims=False, *, device=None):
    """Return the logarithm of the sum of exp(x), as float. ValueError: there is no element.

    >>> print(vg.logsumexp(vg.asarray([1000.0, 1000.0])))
    1000.6932
    """
    call, array, dtype = _prepared("logsumexp", x, out, device)
    most = largest(array, axis=axis, keepdims=True)
    most = where(equal(abs(most), float("inf")), 0.0, most)  # or inf - inf would be NaN
    result = log(total(exp(array - most), axis=axis, keepdims=keepdims))
    result = result + reshape(most, result.shape)
    return call.deliver_array(astype(result, dtype, copy=False))


def _prepared(name, x, out, device):
    """Return the Operands, the array in the float dtype to compute in, and the result's dtype."""
    call = Operands(name, (x,), out, device)
    (array,) = call.arrays
    dtype = inexact(array.dtype)
    return call, astype(array, "float32" if is_half(dtype) else dtype, copy=False), dtype
