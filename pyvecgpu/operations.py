"""The operations: one row each, which the CPU device, the functions and the tests read.

A row says which kinds of dtypes an operation takes and which dtype it gives, as the C library's row
does (cuda/kernels), and what computes it on the CPU device. Its code and its name are those of
abi.Operation.

    domain    letters of kinds: b(ool), u(nsigned), i(nteger), f(loat). Operands of a binary
              operation are promoted to one dtype first.
    result    "same"   the promoted dtype        "float"  that, or the default float of an integer
              "wide"   int64 or uint64 of bools and integers, else the dtype itself
              "bool", "index" (int64)
    cpu       f(a), f(a, b), or of a reduction f(a, axes, keepdims); of arrays that NumPy computes
              in, already floats where the result is "float" and they are not reduced
    slope     of an activation that a layer can have: its derivative, f(a)
    identity  of a reduction: what it starts from; without one there is no result of nothing
    order     of one that picks an element: "largest" or "smallest"
"""

import numpy as np

from .backends import cpu_functions, cpu_layers
from .dtypes import bool as bool_dtype
from .dtypes import inexact, int64, uint64
from .native.abi import Operation

ORDERED, REALS = "buif", "uif"


class Row:
    """What there is to know of an operation; see above. Its name is its function's."""

    __slots__ = (
        *("code", "name", "family", "domain", "result"),
        *("cpu", "slope", "identity", "order"),
    )

    def __init__(self, code, family, domain, result, cpu=None, **facts):
        self.code, self.name, self.family = code, code.name.lower(), family
        self.domain, self.result, self.cpu = domain, result, cpu
        self.slope, self.identity, self.order = map(facts.get, ("slope", "identity", "order"))

    @property
    def ufunc(self):
        """The name of NumPy's ufunc that is the same function; None if there is none."""
        function = getattr(np, self.name, None)
        return function.__name__ if isinstance(function, np.ufunc) else None


def _unary(code, domain, result, cpu, slope=None):
    return Row(code, "unary", domain, result, cpu, slope=slope)


def _binary(code, domain, result, cpu):
    return Row(code, "binary", domain, result, cpu)


def _reduction(code, domain, result, cpu, identity=None, order=None):
    return Row(code, "reduce", domain, result, cpu, identity=identity, order=order)


def _other(code, domain, result):
    return Row(code, "other", domain, result)


ROWS = (
    _unary(Operation.NEGATIVE, REALS, "same", np.negative),
    _unary(Operation.ABS, ORDERED, "same", np.abs),
    _unary(Operation.EXP, ORDERED, "float", np.exp),
    _unary(Operation.LOG, ORDERED, "float", np.log),
    _unary(Operation.SQRT, ORDERED, "float", np.sqrt),
    # Activations
    _unary(Operation.SIGMOID, ORDERED, "float", cpu_layers.sigmoid, cpu_layers.sigmoid_slope),
    _unary(Operation.TANH, ORDERED, "float", np.tanh, cpu_layers.tanh_slope),
    _unary(Operation.RELU, REALS, "same", cpu_layers.relu, cpu_layers.relu_slope),
    _unary(Operation.GELU, ORDERED, "float", cpu_layers.gelu, cpu_layers.gelu_slope),
    _unary(Operation.SILU, ORDERED, "float", cpu_layers.silu, cpu_layers.silu_slope),
    # Arithmetic
    _binary(Operation.ADD, ORDERED, "same", np.add),
    _binary(Operation.SUBTRACT, REALS, "same", np.subtract),
    _binary(Operation.MULTIPLY, ORDERED, "same", np.multiply),
    _binary(Operation.DIVIDE, ORDERED, "float", np.divide),
    _binary(Operation.MAXIMUM, ORDERED, "same", cpu_functions.maximum),
    _binary(Operation.MINIMUM, ORDERED, "same", cpu_functions.minimum),
    # Comparisons
    _binary(Operation.EQUAL, ORDERED, "bool", np.equal),
    _binary(Operation.NOT_EQUAL, ORDERED, "bool", np.not_equal),
    _binary(Operation.LESS, ORDERED, "bool", np.less),
    _binary(Operation.LESS_EQUAL, ORDERED, "bool", np.less_equal),
    _binary(Operation.GREATER, ORDERED, "bool", np.greater),
    _binary(Operation.GREATER_EQUAL, ORDERED, "bool", np.greater_equal),
    # Reductions
    _reduction(Operation.SUM, ORDERED, "wide", cpu_functions.sum, identity=0),
    _reduction(Operation.MEAN, ORDERED, "float", cpu_functions.mean, identity=0),
    _reduction(Operation.MAX, ORDERED, "same", cpu_functions.largest, order="largest"),
    _reduction(Operation.MIN, ORDERED, "same", cpu_functions.smallest, order="smallest"),
    _reduction(Operation.ARGMAX, ORDERED, "index", cpu_functions.argmax, order="largest"),
    # Those with methods of their own in the backends
    _other(Operation.FILL, ORDERED, "none"),
    _other(Operation.COPY, ORDERED, "none"),
    _other(Operation.CAST, ORDERED, "same"),
    _other(Operation.WHERE, ORDERED, "same"),
    _other(Operation.MATMUL, ORDERED, "same"),
    _other(Operation.DENSE, "f", "same"),
)
OPERATIONS = {int(row.code): row for row in ROWS}

_WIDE = {"b": int64, "i": int64, "u": uint64}
_FIXED = {"bool": bool_dtype, "index": int64}


def result_dtype(row, dtype):
    """Return the dtype that an operation gives of operands promoted to one that it takes."""
    if row.result == "float":
        return inexact(dtype)
    if row.result == "wide":
        return _WIDE.get(dtype.kind, dtype)
    return _FIXED.get(row.result, dtype)
