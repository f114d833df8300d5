"""Activations that are made of others; relu, sigmoid, tanh, gelu and silu are operations."""

from ...functions.elementwise import exp, expm1, minimum, where
from ...functions.mathematics import log1p
from .operands import gathered, narrow, number, wide

__all__ = ["elu", "leaky_relu", "softplus"]


def softplus(x, /, beta=1.0, threshold=20.0):
    """Return log(1 + exp(beta * x)) / beta, as float; x itself where beta * x is above a threshold.

    ValueError: beta is 0.

    >>> print(vg.nn.functional.softplus(vg.asarray([0.0, 100.0])))
    [  0.6931472 100.       ]
    """
    beta, threshold = number(beta, "beta"), number(threshold, "threshold")
    if not beta:
        raise ValueError("softplus: beta is not 0")
    call, (array,) = gathered("softplus", x)
    scaled = wide(array) * beta
    soft = log1p(exp(minimum(scaled, threshold))) / beta
    return call.give(narrow(where(scaled > threshold, wide(array), soft), array))


def leaky_relu(x, /, negative_slope=0.01):
    """Return x where it is positive, else negative_slope * x, as float.

    >>> print(vg.nn.functional.leaky_relu(vg.asarray([-1.0, 2.0]), 0.5))
    [-0.5  2. ]
    """
    slope = number(negative_slope, "negative_slope")
    call, (array,) = gathered("leaky_relu", x)
    values = wide(array)
    return call.give(narrow(where(values > 0.0, values, slope * values), array))


def elu(x, /, alpha=1.0):
    """Return x where it is positive, else alpha * (exp(x) - 1), as float.

    >>> print(vg.nn.functional.elu(vg.asarray([-1.0, 2.0]), alpha=0.5))
    [-0.31606027  2.        ]
    """
    alpha = number(alpha, "alpha")
    call, (array,) = gathered("elu", x)
    values = wide(array)
    below = alpha * expm1(where(values > 0.0, 0.0, values))
    return call.give(narrow(where(values > 0.0, values, below), array))
