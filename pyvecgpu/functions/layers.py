"""Activations and the dense layer, as `vg` itself and `vg.nn.functional` have them."""

from ..array import Array, Tracked
from ..dispatch import WAYS, apply, tape
from ..dtypes import promote
from ..operations import ROWS, Operation
from .arguments import Operands
from .casting import active
from .choosing import in_part
from .linalg import parse_precision
from .operators import unary
from .short_operations import of_one
from .values import to_numpy

__all__ = ["dense", "relu", "sigmoid", "tanh"]

# Names of the activations that a layer can have, and their codes.
ACTIVATIONS = {None: Operation.NONE} | {row.name: row.code for row in ROWS if row.slope}

# Those whose slope the result tells as well as what is before it.
FROM_RESULT = (Operation.NONE, Operation.RELU)
_PLAIN = {name: int(code) for name, code in ACTIVATIONS.items() if code in FROM_RESULT}


def sigmoid(x, /, out=None, *, device=None):
    """Return 1 / (1 + exp(-x)), as float; without overflow for large |x|.

    >>> print(vg.sigmoid(vg.asarray([-1000.0, 0.0, 2.0])))
    [0.       0.5      0.880797]
    """
    return unary(Operation.SIGMOID, x, out, device)


def relu(x, /, out=None, *, device=None):
    """Return x where it is positive, else 0; NaN stays NaN. TypeError: bool.

    >>> vg.relu(vg.asarray([-1.5, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """
    return unary(Operation.RELU, x, out, device)


@of_one(Operation.TANH)
def tanh(x, /, out=None, *, where=True, dtype=None, device=None):
    """Return the hyperbolic tangent, as float.

    >>> print(vg.tanh(vg.asarray([0.0, 1.0, 1000.0])))
    [0.        0.7615942 1.       ]
    """
    if where is not True or dtype is not None:
        return in_part(tanh, (x,), out, where, dtype, device)
    return unary(Operation.TANH, x, out, device)


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

    >>> x, weight, bias = vg.ones((4, 3)), vg.ones((2, 3)), vg.asarray([-5.0, 1.0])
    >>> vg.dense(x, weight, bias, "relu")[0].tolist()
    [0.0, 4.0]
    """
    if out is device is None and not with_preactivation and _is_plain(x, weight, bias, activation):
        code, precision = _PLAIN[activation], parse_precision(precision)
        y = WAYS["dense"](x.backend, x, weight, bias, code, precision, None, None)
        if type(y) is Tracked and y._node.exact:  # so x and weight are described, of one dtype
            dtype, shape, _ = x._description
            if len(shape) == 2 and y.backend.on_card:  # as the library tells the next layer
                n = weight._description[1][0]
                y._description = dtype, (shape[0], n), (n or 1, 1)
        return y
    operands = (x, weight) if bias is None else (x, weight, bias)
    call = parse_operands("dense", operands, out, device)
    x, weight, *rest = call.arrays
    bias = rest[0] if rest else None
    code, precision = parse_activation("dense", activation), parse_precision(precision)
    recorded = Tracked in map(type, call.arrays) and tape.enabled()
    if recorded and with_preactivation:  # two results, each with gradients of its own
        before = call.apply("dense", x, weight, bias, 0, precision, None)
        return unary(code or Operation.POSITIVE, before), before
    before = None
    if with_preactivation or (recorded and code not in FROM_RESULT):
        before = _empty_preactivation(call)
    y = call.apply("dense", x, weight, bias, code, precision, before)
    if not with_preactivation:
        return y
    return y, to_numpy(before) if call.host else before


def _is_plain(x, weight, bias, activation):
    """Whether a layer is of Arrays of one device, with the result for what its slope needs."""
    if not (type(activation) is str or activation is None) or activation not in _PLAIN or active:
        return False
    for one in (x, weight) if bias is None else (x, weight, bias):
        if type(one) is not Array and type(one) is not Tracked:
            return False
        if one.backend is not x.backend:
            return False
    return True


# What the backward pass shares --------------------------------------------------------------------


def parse_operands(name, operands, out, device):
    """Return the Operands of a layer. TypeError: a Python scalar is among them."""
    call = Operands(name, operands, out, device)
    for operand in call.arrays:
        if not isinstance(operand, Array):
            raise TypeError(f"{name} needs arrays; make them with asarray(...)")
    return call


def parse_activation(name, activation):
    """Return an activation's code. ValueError: no such name."""
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
    return apply(call.backend, "empty", shape, dtype)
