"""Activations with numbers, gradients of all, and losses of two arrays, on the CPU device.

Operands are float arrays of one dtype that NumPy computes in. What a function writes in between it
writes to few arrays of its own. The formulas are those of cuda/kernels/activations.cu and
pair_losses.cu.
"""

import math

import numpy as np

from ..native.abi import Curve, Loss
from . import cpu_functions, cpu_layers


def _exp_of_minus_abs(x):
    """A new array: no overflow, and no digits lost."""
    t = np.abs(x, out=np.empty_like(x))
    np.negative(t, out=t)
    return np.exp(t, out=t)


def _scaled(x, first):
    return x if first == 1 else np.multiply(x, first, out=np.empty_like(x))


def _soft(x):
    """log(1 + exp(x))."""
    t = _exp_of_minus_abs(x)
    np.log1p(t, out=t)
    t += np.maximum(x, 0)
    return t


def activate(curve, x, first, second):
    first, second = x.dtype.type(first), x.dtype.type(second)
    if curve == Curve.CURVE_SOFTPLUS:
        scaled = _scaled(x, first)
        result = _soft(scaled)
        if first != 1:
            result /= first
        np.copyto(result, x, where=scaled > second)
        return result
    if curve == Curve.CURVE_LEAKY_RELU:
        result = np.multiply(x, first, out=np.empty_like(x))
        if 0 < first <= 1:
            return np.maximum(result, x, out=result)
        np.copyto(result, x, where=x > 0)
        return result
    result = np.minimum(x, 0, out=np.empty_like(x))
    np.expm1(result, out=result)
    result *= first
    if np.isfinite(x.dtype.type(first)):
        result += np.maximum(x, 0)  # of which one is 0
    else:  # 0 times infinity would be NaN
        np.copyto(result, x, where=x > 0)
    return result


def activate_backward(curve, g, x, first, second):
    first, second = x.dtype.type(first), x.dtype.type(second)
    if curve == Curve.CURVE_SOFTPLUS:
        scaled = _scaled(x, first)
        result = cpu_layers.sigmoid(scaled)
        np.copyto(result, 1, where=scaled > second)
    elif curve == Curve.CURVE_LEAKY_RELU:
        result = _side(x, first)
    elif curve == Curve.CURVE_ELU:
        result = np.minimum(x, 0, out=np.empty_like(x))
        np.exp(result, out=result)
        if first != 1:
            result *= _side(x, first)
    elif curve == Curve.CURVE_RELU:
        return np.where(x <= 0, x.dtype.type(0), g)
    elif curve == Curve.CURVE_SIGMOID:
        result = np.subtract(1, x, out=np.empty_like(x))
        result *= x
    elif curve == Curve.CURVE_TANH:
        result = np.square(x, out=np.empty_like(x))
        np.subtract(1, result, out=result)
    else:  # 0 times infinity would be NaN; further out no derivative changes any more
        slope = _gelu_slope if curve == Curve.CURVE_GELU else _silu_slope
        result = slope(np.clip(x, -800, 800, out=np.empty_like(x)))
    result *= g
    return result


def _side(x, below):
    """A new array: 1 where x is positive, else a number."""
    above = np.greater(x, 0, out=np.empty_like(x))
    if 0 <= below <= 1:  # three times as fast as a choice that nobody can foresee
        return np.maximum(above, below, out=above)
    np.copyto(above, below, where=above == 0)
    return above


def _silu_slope(x):
    """s (1 + x (1 - s)), s the sigmoid. x is written to."""
    s = cpu_layers.sigmoid(x)
    x *= 1 - s
    x += 1
    x *= s
    return x


def _gelu_slope(x):
    """The normal distribution's cumulative function, plus x times its density."""
    density = np.square(x, out=np.empty_like(x))
    density *= x.dtype.type(-0.5)
    np.exp(density, out=density)
    density *= x.dtype.type(1 / math.sqrt(2 * math.pi))
    density *= x
    share = cpu_layers.twice_normal_cdf(x)
    share *= 0.5
    density += share.astype(x.dtype, copy=False)
    return density


# Losses -------------------------------------------------------------------------------------------


def losses(loss, x, target, number):
    if loss == Loss.LOSS_LOGITS:
        result = _soft(-x)
        rest = np.subtract(1, target, out=np.empty_like(x))
        rest *= x
        result += rest
        return result
    result = np.subtract(x, target, out=np.empty_like(x))
    if loss == Loss.LOSS_SQUARE:
        return np.square(result, out=result)
    np.abs(result, out=result)
    number = x.dtype.type(number)
    if loss == Loss.LOSS_ABSOLUTE or (loss == Loss.LOSS_SMOOTH and not number):
        return result
    near = np.minimum(result, number)  # near (|d| - near / 2) is both formulas
    result -= near * x.dtype.type(0.5)
    result *= near
    if loss == Loss.LOSS_SMOOTH:
        result /= number
    return result


def loss_slopes(loss, x, target, number, of_target):
    if loss == Loss.LOSS_LOGITS:
        if of_target:
            return np.negative(x, out=np.empty_like(x))
        result = cpu_layers.sigmoid(x)
        result -= target
        return result
    result = np.empty_like(x)
    np.subtract(target, x, out=result) if of_target else np.subtract(x, target, out=result)
    number = x.dtype.type(number)
    if loss == Loss.LOSS_SQUARE:
        result *= 2
    elif loss == Loss.LOSS_ABSOLUTE or (loss == Loss.LOSS_SMOOTH and not number):
        return cpu_functions.sign(result)
    else:
        np.clip(result, -number, number, out=result)
        if loss == Loss.LOSS_SMOOTH:
            result /= number
    return result
