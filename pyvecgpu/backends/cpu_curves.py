"""Activations with numbers, gradients of all, and losses of two arrays, on the CPU device.

Operands are float arrays of one dtype that NumPy computes in. What a function writes in between it
writes to few arrays of its own. The formulas are those of cuda/kernels/activations.cu and
pair_losses.cu.
"""

import numpy as np

from ..native.abi import Curve, Loss
from . import cpu_layers


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
    else:
        result = np.minimum(x, 0, out=np.empty_like(x))
        np.expm1(result, out=result)
        result *= first
    np.copyto(result, x, where=x > 0)
    return result


def activate_backward(curve, g, x, first, second):
    first, second = x.dtype.type(first), x.dtype.type(second)
    if curve == Curve.CURVE_SOFTPLUS:
        scaled = _scaled(x, first)
        result = cpu_layers.sigmoid(scaled)
        np.copyto(result, 1, where=scaled > second)
    elif curve == Curve.CURVE_LEAKY_RELU:
        result = np.multiply(g, first, out=np.empty_like(x))
        np.copyto(result, g, where=x > 0)
        return result
    elif curve == Curve.CURVE_ELU:
        result = np.minimum(x, 0, out=np.empty_like(x))
        np.exp(result, out=result)
        result *= first
        np.copyto(result, 1, where=x > 0)
    elif curve == Curve.CURVE_RELU:
        return np.where(x <= 0, x.dtype.type(0), g)
    elif curve == Curve.CURVE_SIGMOID:
        result = np.subtract(1, x, out=np.empty_like(x))
        result *= x
    elif curve == Curve.CURVE_TANH:
        result = np.square(x, out=np.empty_like(x))
        np.subtract(1, result, out=result)
    else:
        slope = cpu_layers.gelu_slope if curve == Curve.CURVE_GELU else cpu_layers.silu_slope
        return np.asarray(slope(np.clip(x, -800, 800)) * g)
    result *= g
    return result


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
        np.sign(result, out=result)
    else:
        np.clip(result, -number, number, out=result)
        if loss == Loss.LOSS_SMOOTH:
            result /= number
    return result
