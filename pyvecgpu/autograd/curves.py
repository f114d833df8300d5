"""The rules of activations and of losses of two arrays.

By kernels of their own; where gradients are recorded themselves, composed of functions of arrays.
"""

from .. import functions as vg
from ..dispatch import apply
from ..dtypes import is_float
from ..native.abi import Curve, Loss, Losses
from .normalizing import widened

# Activations --------------------------------------------------------------------------------------


def by_kernel(curve, g, x, first=0.0, second=0.0):
    return apply(x.backend, "activate_backward", curve, g, x, first, second)


def by_operand(curve, composed):
    """Return the rule of an activation; composed(g, x): in functions of arrays."""

    def rule(g, x, differentiable=True):
        return composed(g, x) if differentiable else by_kernel(curve, g, x)

    return rule


def by_result(curve, composed):
    """Return the same of composed(g, y); relu is one of integers, tanh one of complex numbers."""

    def rule(g, y, differentiable=True):
        if differentiable or not is_float(y.dtype) or not is_float(g.dtype):
            return composed(g, y)
        return by_kernel(curve, g, y)

    return rule


def activate(g, x, curve, first, second, differentiable):
    if not differentiable:
        return by_kernel(curve, g, x, first, second)
    g, x = widened(g, x)
    if curve == Curve.CURVE_SOFTPLUS:
        scaled = x * first
        return vg.where(scaled > second, g, g * vg.sigmoid(scaled))
    if curve == Curve.CURVE_LEAKY_RELU:
        below = vg.heaviside(-x, 1.0)  # 1 there, which depends on x; see relu in rules.py
        return vg.where(x > 0.0, g, g * (first * below))
    return vg.where(x > 0.0, g, g * (first * vg.exp(vg.where(x > 0.0, 0.0, x))))


# Losses -------------------------------------------------------------------------------------------


def loss_of_x(g, x, loss, target, number, reduction, differentiable):
    return of_pair(g, x, loss, target, number, reduction, differentiable, False)


def loss_of_target(g, x, loss, target, number, reduction, differentiable):
    return of_pair(g, x, loss, target, number, reduction, differentiable, True)


def of_pair(g, x, loss, target, number, reduction, differentiable, of_target):
    if not differentiable:
        operands = (loss, g, x, target, number, reduction, of_target)
        return apply(x.backend, "pair_loss_backward", *operands)
    x, target = widened(x, target)
    if reduction == Losses.LOSSES_MEAN:
        g = g / float(x.size or 1)
    if loss == Loss.LOSS_LOGITS:
        return g * (-x if of_target else vg.sigmoid(x) - target)
    distance = target - x if of_target else x - target
    if loss == Loss.LOSS_SQUARE:
        return g * (2.0 * distance)
    if loss == Loss.LOSS_ABSOLUTE or not number:
        return g * vg.sign(distance)
    near = vg.where(vg.abs(distance) < number, distance, number * vg.sign(distance))
    return g * (near / number if loss == Loss.LOSS_SMOOTH else near)
