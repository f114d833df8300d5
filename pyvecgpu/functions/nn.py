"""Functions of networks that only `vg.nn.functional` has: more activations, a layer's gradients."""

import math

from ..dispatch import apply
from ..dtypes import inexact
from ..operations import Operation
from .combined import clip
from .elementwise import maximum
from .layers import parse_activation, parse_operands, tanh
from .layout import astype
from .linalg import parse_precision
from .operators import unary
from .working import working

__all__ = ["dense_backward", "gelu", "silu"]


def gelu(x, /, out=None, *, approximate="none", device=None):
    """Return x times the normal distribution's cumulative function, as float; 0 at -infinity.

    approximate: "none", or "tanh" for 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
    ValueError: another word.

    >>> print(vg.nn.functional.gelu(vg.asarray([-1.0, 0.0, 2.0])))
    [-0.15865526  0.          1.9544997 ]
    """
    if approximate == "tanh":
        return _gelu_by_tanh(x, out, device)
    if approximate != "none":
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return unary(Operation.GELU, x, out, device)


def _gelu_by_tanh(x, out, device):
    call = parse_operands("gelu", (x,), out, device)
    array, dtype = working(astype(call.arrays[0], inexact(call.arrays[0].dtype), copy=False))
    near = clip(array, -30.0, 30.0)  # beyond it tanh is -1 or 1
    inner = math.sqrt(2.0 / math.pi) * (near + 0.044715 * (near * near * near))
    result = 0.5 * maximum(array, -30.0) * (1.0 + tanh(inner))
    return call.deliver_array(astype(result, dtype, copy=False))


def silu(x, /, out=None, *, device=None):
    """Return x * sigmoid(x), as float; 0 at -infinity.

    >>> print(vg.nn.functional.silu(vg.asarray([-1.0, 0.0, 2.0])))
    [-0.2689414  0.         1.761594 ]
    """
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

    >>> x, weight, gradient = vg.ones((4, 3)), vg.ones((2, 3)), vg.ones((4, 2))
    >>> dx, dweight, dbias = vg.nn.functional.dense_backward(gradient, x, weight)
    >>> dx.shape, dweight.shape, dbias.tolist()
    ((4, 3), (2, 3), [4.0, 4.0])
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
    gradients = apply(call.backend, "dense_backward", *operands, code, precision, (True,) * 3)
    return tuple(call.give(gradient) for gradient in gradients)
