"""Functions of neural networks: activations and the dense layer."""

from ..array import wrap
from ..dtypes import promote
from ..native.abi import Operation
from .arguments import Operands, is_scalar
from .elementwise import unary
from .linalg import parse_precision

ACTIVATIONS = {
    None: Operation.NONE,
    "sigmoid": Operation.SIGMOID,
    "tanh": Operation.TANH,
    "relu": Operation.RELU,
    "gelu": Operation.GELU,
    "silu": Operation.SILU,
}


def sigmoid(x, /, *, out=None, device=None):
    """Return 1 / (1 + exp(-x)), as float; without overflow for large |x|."""
    return unary(Operation.SIGMOID, x, out, device)


def relu(x, /, *, out=None, device=None):
    """Return x where it is positive, else 0; NaN stays NaN. TypeError: bool."""
    return unary(Operation.RELU, x, out, device)


def gelu(x, /, *, out=None, device=None):
    """Return x times the normal distribution's cumulative function, as float; 0 at -infinity."""
    return unary(Operation.GELU, x, out, device)


def silu(x, /, *, out=None, device=None):
    """Return x * sigmoid(x), as float; 0 at -infinity."""
    return unary(Operation.SILU, x, out, device)


def dense(
    x,
    weight,
    bias=None,
    activation=None,
    *,
    precision=None,
    with_preactivation=False,
    out=None,
    device=None,
):
    """Return one layer, activation(x @ weight.T + bias), in one call.

    x: (..., in), weight: (out, in), bias: (out,) or None; float dtypes. activation: None,
    "sigmoid", "tanh", "relu", "gelu" or "silu". precision: see matmul. with_preactivation: return
    (layer, x @ weight.T + bias), as dense_backward needs it. ValueError: shapes, another activation
    or precision. TypeError: dtypes.
    """
    operands = (x, weight) if bias is None else (x, weight, bias)
    call = _operands("dense", operands, out, device)
    x, weight, *rest = call.arrays
    bias = rest[0].data if rest else None
    code, precision = _parse_activation("dense", activation), parse_precision(precision)
    before = _empty_preactivation(call) if with_preactivation else None
    place = None if before is None else before.data
    y = call.backend.dense(x.data, weight.data, bias, code, precision, place, call.raw_out)
    y = call.deliver(y)
    if before is None:
        return y
    return y, before.numpy() if call.host else before


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
    The same bits every time. ValueError: shapes, another activation or precision, an activation
    without preactivation. TypeError: dtypes.
    """
    operands = (
        (gradient, x, weight) if preactivation is None else (gradient, x, weight, preactivation)
    )
    call = _operands("dense_backward", operands, None, device)
    code, precision = _parse_activation("dense_backward", activation), parse_precision(precision)
    if code and preactivation is None:
        raise ValueError(f"dense_backward: {activation!r} needs the preactivation")
    gradient, x, weight, *rest = [array.data for array in call.arrays]
    before = rest[0] if rest else None
    gradients = call.backend.dense_backward(gradient, x, weight, before, code, precision)
    return tuple(call.deliver(data) for data in gradients)


def _operands(name, operands, out, device):
    call = Operands(name, operands, out, device)
    if any(is_scalar(operand) for operand in operands):
        raise TypeError(f"{name} needs arrays; make them with asarray(...)")
    return call


def _parse_activation(name, activation):
    try:
        return int(ACTIVATIONS[activation])
    except (KeyError, TypeError):  # TypeError: not hashable
        names = ", ".join(repr(one) for one in ACTIVATIONS)
        raise ValueError(f"{name}: activation can be {names}, not {activation!r}") from None


def _empty_preactivation(call):
    """Return an Array for the preactivation of a layer: its shape and dtype."""
    x, weight, *rest = call.arrays
    if x.ndim < 1 or weight.ndim != 2:
        raise ValueError(f"dense: x {x.shape} and weight {weight.shape} do not fit")
    dtype = promote(x.dtype, weight.dtype)
    for bias in rest:
        dtype = promote(dtype, bias.dtype)
    shape = (*x.shape[:-1], weight.shape[0])
    return wrap(call.backend, call.backend.empty(shape, dtype))
