"""Activations with numbers; relu, sigmoid, tanh, gelu and silu are operations.

Each is one launch, forward and backward.
"""

from ...array import Array, Tracked
from ...dispatch import WAYS, apply
from ...dtypes import inexact, is_float
from ...functions.casting import active
from ...functions.layout import astype
from ...native.abi import Curve
from .operands import gathered, number

__all__ = ["elu", "leaky_relu", "softplus"]

_SOFTPLUS, _LEAKY_RELU, _ELU = map(
    int, (Curve.CURVE_SOFTPLUS, Curve.CURVE_LEAKY_RELU, Curve.CURVE_ELU)
)


def softplus(x, /, beta=1.0, threshold=20.0):
    """Return log(1 + exp(beta * x)) / beta, as float; x itself where beta * x is above a threshold.

    ValueError: beta is 0.

    >>> print(vg.nn.functional.softplus(vg.asarray([0.0, 100.0])))
    [  0.6931472 100.       ]
    """
    beta, threshold = number(beta, "beta"), number(threshold, "threshold")
    if not beta:
        raise ValueError("softplus: beta is not 0")
    return _activated("softplus", _SOFTPLUS, x, beta, threshold)


def leaky_relu(x, /, negative_slope=0.01):
    """Return x where it is positive, else negative_slope * x, as float.

    >>> print(vg.nn.functional.leaky_relu(vg.asarray([-1.0, 2.0]), 0.5))
    [-0.5  2. ]
    """
    slope = number(negative_slope, "negative_slope")
    return _activated("leaky_relu", _LEAKY_RELU, x, slope)


def elu(x, /, alpha=1.0):
    """Return x where it is positive, else alpha * (exp(x) - 1), as float.

    >>> print(vg.nn.functional.elu(vg.asarray([-1.0, 2.0]), alpha=0.5))
    [-0.31606027  2.        ]
    """
    return _activated("elu", _ELU, x, number(alpha, "alpha"))


def _activated(name, curve, x, first, second=0.0):
    """Of floats as they are, of other numbers in the dtype that float functions give."""
    kind = type(x)
    if (kind is Array or kind is Tracked) and not active and is_float(x.dtype):
        return WAYS["activate"](x.backend, curve, x, first, second)
    call, (array,) = gathered(name, x)
    if not is_float(array.dtype):
        array = astype(array, inexact(array.dtype))
    return call.give(apply(array.backend, "activate", curve, array, first, second))
