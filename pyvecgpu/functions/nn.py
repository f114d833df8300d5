"""Functions of neural networks: activations and the dense layer."""

from ..native.abi import Activation, Operation
from .arguments import Operands, is_scalar
from .elementwise import unary

ACTIVATIONS = {
    None: Activation.ACTIVATION_NONE,
    "sigmoid": Activation.ACTIVATION_SIGMOID,
    "tanh": Activation.ACTIVATION_TANH,
    "relu": Activation.ACTIVATION_RELU,
}


def sigmoid(x, /, *, out=None, device=None):
    """Return 1 / (1 + exp(-x)), as float; without overflow for large |x|."""
    return unary(Operation.SIGMOID, x, out, device)


def relu(x, /, *, out=None, device=None):
    """Return x where it is positive, else 0; NaN stays NaN. TypeError: bool."""
    return unary(Operation.RELU, x, out, device)


def dense(x, weight, bias=None, activation=None, *, out=None, device=None):
    """Return one layer, activation(x @ weight.T + bias), in one call.

    x: (..., in), weight: (out, in), bias: (out,) or None; float dtypes. activation: None,
    "sigmoid", "tanh" or "relu". ValueError: shapes, or another activation. TypeError: dtypes.
    """
    if activation not in ACTIVATIONS:
        names = ", ".join(repr(name) for name in ACTIVATIONS)
        raise ValueError(f"dense: activation can be {names}, not {activation!r}")
    operands = (x, weight) if bias is None else (x, weight, bias)
    call = Operands("dense", operands, out, device)
    if any(is_scalar(operand) for operand in operands):
        raise TypeError("dense needs arrays; make them with asarray(...)")
    x, weight, *rest = call.arrays
    bias = rest[0].data if rest else None
    code = int(ACTIVATIONS[activation])
    return call.deliver(call.backend.dense(x.data, weight.data, bias, code, call.raw_out))
