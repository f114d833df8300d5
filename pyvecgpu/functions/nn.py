"""Functions of networks that only `vg.nn.functional` has: more activations, a layer's gradients."""

from ..dispatch import apply
from ..operations import Operation
from .elementwise import unary
from .layers import parse_activation, parse_operands
from .linalg import parse_precision

__all__ = ["dense_backward", "gelu", "silu"]


def gelu(x, /, out=None, *, device=None):
    """Return x times the normal distribution's cumulative function, as float; 0 at -infinity."""
    return unary(Operation.GELU, x, out, device)


def silu(x, /, out=None, *, device=None):
    """Return x * sigmoid(x), as float; 0 at -infinity."""
    return unary(Operation.SILU, x, out, device)


def dense_backward(
    gradient,
    x,
    weight,
    preactivation=None,
    activation=None,
    *,
    precision=None,
    device=None,
):
    """Return (dx, dweight, dbias), the gradients of a layer y = dense(x, weight, bias, activation).

    gradient: that of y, (..., out). preactivation: x @ weight.T + bias, which dense returns on
    request; not needed without an activation. dx: (..., in), dweight: (out, in), dbias: (out,).
    Gradients of x @ weight.T + bias are rounded to the dtype before they are multiplied. The same
    bits every time. ValueError: shapes, another activation or precision, an activation
    without preactivation. TypeError: dtypes.
    """
    operands = (
        (gradient, x, weight) if preactivation is None else (gradient, x, weight, preactivation)
    )
    call = parse_operands("dense_backward", operands, None, device)
    code, precision = parse_activation("dense_backward", activation), parse_precision(precision)
    if code and preactivation is None:
        raise ValueError(f"dense_backward: {activation!r} needs the preactivation")
    gradient, x, weight, *rest = call.arrays
    before = rest[0] if rest else None
    operands = gradient, x, weight, before
    gradients = apply(call.backend, "dense_backward", *operands, code, precision)
    return tuple(call.give(gradient) for gradient in gradients)
