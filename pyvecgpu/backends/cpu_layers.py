"""Layers on the CPU device: activations, their derivatives, a dense layer and its backward pass.

Operands are float arrays of one dtype that NumPy computes in. The formulas are those of
cuda/kernels/activation.cuh.
"""

import math

import numpy as np

from ..native.abi import Operation

_erfc = np.frompyfunc(math.erfc, 1, 1)  # NumPy has none


def sigmoid(a):
    """1 / (1 + exp(-a)), with exp of negative numbers only: no overflow, no digits lost."""
    e = np.exp(-np.abs(a))
    return np.where(a >= 0, a.dtype.type(1), e) / (1 + e)


def relu(a):
    """A where it is positive, else 0.0; NaN stays NaN."""
    return np.where(a <= 0, a.dtype.type(0), a)


def twice_normal_cdf(a):
    """Twice the standard normal distribution's cumulative function, as float64."""
    exact = np.clip(a, -40, 40).astype(np.longdouble) * -np.sqrt(np.longdouble(0.5))
    t = exact.astype(np.float64)  # what it rounds off costs digits where erfc is steep
    result = np.asarray(_erfc(t), dtype=np.float64)
    return result * (1 - 2 * np.maximum(t, 0) * (exact - t).astype(np.float64))


def gelu(a):
    return (0.5 * np.maximum(a, -40) * twice_normal_cdf(a)).astype(a.dtype)  # not -inf * 0


def silu(a):
    a = np.maximum(a, -800)
    root = np.exp(np.abs(a) * a.dtype.type(-0.5))
    side = np.where(a >= 0, a.dtype.type(1), root)
    return a * side / (1 + root * root) * side


def gelu_slope(a):
    density = np.exp(-0.5 * a * a) * a.dtype.type(1 / math.sqrt(2 * math.pi))
    return (0.5 * twice_normal_cdf(a)).astype(a.dtype) + a * density


ACTIVATIONS = {
    Operation.NONE: lambda a: a,
    Operation.SIGMOID: sigmoid,
    Operation.TANH: np.tanh,
    Operation.RELU: relu,
    Operation.GELU: gelu,
    Operation.SILU: silu,
}
SLOPES = {  # derivatives at the preactivation
    Operation.SIGMOID: lambda a: sigmoid(a) * sigmoid(-a),
    Operation.TANH: lambda a: (1 - np.tanh(a)) * (1 + np.tanh(a)),
    Operation.RELU: lambda a: np.where(np.isnan(a), a, (a > 0).astype(a.dtype)),
    Operation.GELU: gelu_slope,
    Operation.SILU: lambda a: sigmoid(a) * (1 + a * sigmoid(-a)),
}


def preactivation(x, weight, bias=None):
    """Return x @ weight.T + bias. ValueError: shapes that do not fit."""
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"dense: x {x.shape} and weight {weight.shape} do not fit")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"dense: bias {bias.shape} and weight {weight.shape} do not fit")
    result = np.matmul(x, weight.T)
    return result if bias is None else result + bias


def backward(gradient, x, weight, before, activation):
    """Return dx, dweight, and dbias as float64.

    before: the preactivation, or None without an activation.
    """
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"dense_backward: x {x.shape} and weight {weight.shape} do not fit")
    if gradient.shape != (*x.shape[:-1], weight.shape[0]):
        raise ValueError(f"dense_backward: gradient {gradient.shape} does not fit x {x.shape}")
    if before is not None and before.shape != gradient.shape:
        raise ValueError(
            f"dense_backward: preactivation {before.shape} and gradient {gradient.shape}"
        )
    dz = gradient
    if activation:  # 0 times infinity would be NaN; further out no derivative changes any more
        dz = gradient * SLOPES[activation](np.clip(before, -800, 800))
    rows = math.prod(dz.shape[:-1])
    flat, inputs = dz.reshape(rows, dz.shape[-1]), x.reshape(rows, x.shape[-1])
    dbias = np.sum(flat, axis=0, dtype=np.float64)
    return np.matmul(dz, weight), np.matmul(flat.T, inputs), dbias
