"""The operations: one row each, which the CPU device, the functions and the tests read.

A row says which kinds of dtypes an operation takes and which dtype it gives, as the C library's row
does (cuda/kernels), and what computes it on the CPU device.

    name      that of its function, and in capitals that of its code in `Operation`
    code      that of enum pvg_operation in cuda/pyvecgpu.h
    domain    letters of kinds: b(ool), u(nsigned), i(nteger), f(loat), c(omplex). Operands of a
              binary operation are promoted to one dtype first.
    result    "same"   the promoted dtype        "float"  that, or the default float of an integer
              "wide"   int64 or uint64 of bools and integers, else the dtype itself
              "real"   the parts' dtype of complex numbers, else the dtype itself
              "bool", "index" (int64); "none": it writes to an operand
    cpu       f(a), f(a, b), or of a reduction f(a, axes, keepdims); of arrays that NumPy computes
              in, already floats where the result is "float" and they are not reduced
    slope     of an activation that a layer can have: its derivative, f(a)
    identity  of a reduction: what it starts from; without one there is no result of nothing
    order     of one that picks an element: "largest" or "smallest"
"""

from enum import IntEnum
from types import SimpleNamespace

import numpy as np

from .backends import cpu_functions, cpu_layers
from .dtypes import bool as bool_dtype
from .dtypes import inexact, int64, real_dtype, uint64

ALL, NUMBERS, ORDERED, REALS, BITS, INTEGERS = "buifc", "uifc", "buif", "uif", "bui", "ui"


class Row:
    """What there is to know of an operation; see above."""

    __slots__ = (
        *("name", "code", "family", "domain", "result"),
        *("cpu", "slope", "identity", "order"),
    )

    def __init__(self, name, code, family, domain, result, cpu=None, **facts):
        self.name, self.code, self.family = name, code, family
        self.domain, self.result, self.cpu = domain, result, cpu
        self.slope, self.identity, self.order = map(facts.get, ("slope", "identity", "order"))

    @property
    def ufunc(self):
        """The name of NumPy's ufunc that is the same function; None if there is none."""
        function = getattr(np, self.name, None)
        return function.__name__ if isinstance(function, np.ufunc) else None


def _unary(name, code, domain, result, cpu, slope=None):
    return Row(name, code, "unary", domain, result, cpu, slope=slope)


def _binary(name, code, domain, result, cpu):
    return Row(name, code, "binary", domain, result, cpu)


def _reduction(name, code, domain, result, cpu, identity=None, order=None):
    return Row(name, code, "reduce", domain, result, cpu, identity=identity, order=order)


def _other(name, code, domain, result):
    return Row(name, code, "other", domain, result)


ROWS = (
    _unary("negative", 1, NUMBERS, "same", np.negative),
    _unary("abs", 2, ALL, "real", np.abs),
    _unary("exp", 3, ALL, "float", np.exp),
    _unary("expm1", 11, ALL, "float", np.expm1),
    _unary("log", 4, ALL, "float", np.log),
    _unary("sqrt", 5, ALL, "float", np.sqrt),
    _unary("reciprocal", 19, ALL, "float", np.reciprocal),
    _unary("positive", 18, NUMBERS, "same", np.positive),
    _unary("conj", 48, NUMBERS, "same", np.conj),
    _unary("sign", 16, NUMBERS, "same", cpu_functions.sign),
    _unary("square", 17, NUMBERS, "same", np.square),
    _unary("floor", 12, REALS, "same", np.floor),
    _unary("ceil", 13, REALS, "same", np.ceil),
    _unary("trunc", 14, REALS, "same", np.trunc),
    _unary("round", 15, NUMBERS, "same", np.round),
    _unary("bitwise_invert", 20, BITS, "same", np.invert),
    _unary("sin", 21, ALL, "float", np.sin),
    _unary("cos", 22, ALL, "float", np.cos),
    _unary("tan", 23, ALL, "float", np.tan),
    _unary("asin", 24, ALL, "float", np.asin),
    _unary("acos", 25, ALL, "float", np.acos),
    _unary("atan", 26, ALL, "float", np.atan),
    _unary("sinh", 27, ALL, "float", np.sinh),
    _unary("cosh", 28, ALL, "float", np.cosh),
    _unary("asinh", 29, ALL, "float", np.asinh),
    _unary("acosh", 30, ALL, "float", np.acosh),
    _unary("atanh", 31, ALL, "float", np.atanh),
    _unary("exp2", 32, ALL, "float", cpu_functions.exp2),
    _unary("log1p", 33, ALL, "float", cpu_functions.log1p),
    _unary("log2", 34, ALL, "float", np.log2),
    _unary("log10", 35, ALL, "float", np.log10),
    # Predicates
    _unary("isnan", 40, ALL, "bool", np.isnan),
    _unary("isinf", 41, ALL, "bool", np.isinf),
    _unary("isfinite", 42, ALL, "bool", np.isfinite),
    _unary("signbit", 43, ORDERED, "bool", np.signbit),
    # Activations
    _unary("sigmoid", 7, ORDERED, "float", cpu_layers.sigmoid, cpu_layers.sigmoid_slope),
    _unary("tanh", 6, ALL, "float", np.tanh, cpu_layers.tanh_slope),
    _unary("relu", 8, REALS, "same", cpu_layers.relu, cpu_layers.relu_slope),
    _unary("gelu", 9, ORDERED, "float", cpu_layers.gelu, cpu_layers.gelu_slope),
    _unary("silu", 10, ORDERED, "float", cpu_layers.silu, cpu_layers.silu_slope),
    # Arithmetic
    _binary("add", 100, ALL, "same", np.add),
    _binary("subtract", 101, NUMBERS, "same", np.subtract),
    _binary("multiply", 102, ALL, "same", np.multiply),
    _binary("divide", 103, ALL, "float", np.divide),
    _binary("maximum", 104, ORDERED, "same", cpu_functions.maximum),
    _binary("minimum", 105, ORDERED, "same", cpu_functions.minimum),
    _binary("bitwise_and", 106, BITS, "same", np.bitwise_and),
    _binary("bitwise_or", 107, BITS, "same", np.bitwise_or),
    _binary("bitwise_xor", 108, BITS, "same", np.bitwise_xor),
    _binary("remainder", 109, REALS, "same", np.remainder),
    _binary("floor_divide", 110, REALS, "same", np.floor_divide),
    _binary("pow", 111, NUMBERS, "same", cpu_functions.power),
    _binary("bitwise_left_shift", 112, INTEGERS, "same", np.bitwise_left_shift),
    _binary("bitwise_right_shift", 113, INTEGERS, "same", np.bitwise_right_shift),
    _binary("atan2", 114, ORDERED, "float", np.atan2),
    _binary("hypot", 115, ORDERED, "float", np.hypot),
    _binary("copysign", 116, ORDERED, "float", np.copysign),
    _binary("logaddexp", 117, ORDERED, "float", cpu_functions.logaddexp),
    _binary("fmax", 118, ORDERED, "same", cpu_functions.fmax),
    _binary("fmin", 119, ORDERED, "same", cpu_functions.fmin),
    _binary("heaviside", 126, ORDERED, "float", np.heaviside),
    # Comparisons
    _binary("equal", 120, ALL, "bool", np.equal),
    _binary("not_equal", 121, ALL, "bool", np.not_equal),
    _binary("less", 122, ORDERED, "bool", np.less),
    _binary("less_equal", 123, ORDERED, "bool", np.less_equal),
    _binary("greater", 124, ORDERED, "bool", np.greater),
    _binary("greater_equal", 125, ORDERED, "bool", np.greater_equal),
    _binary("logical_and", 127, ALL, "bool", np.logical_and),
    _binary("logical_or", 128, ALL, "bool", np.logical_or),
    _binary("logical_xor", 129, ALL, "bool", np.logical_xor),
    # Reductions
    _reduction("sum", 200, ALL, "wide", cpu_functions.sum, identity=0),
    _reduction("prod", 205, ALL, "wide", cpu_functions.prod, identity=1),
    _reduction("mean", 201, ALL, "float", cpu_functions.mean, identity=0),
    _reduction("max", 202, ORDERED, "same", cpu_functions.largest, order="largest"),
    _reduction("min", 203, ORDERED, "same", cpu_functions.smallest, order="smallest"),
    _reduction("argmax", 204, ORDERED, "index", cpu_functions.argmax, order="largest"),
    _reduction("argmin", 206, ORDERED, "index", cpu_functions.argmin, order="smallest"),
    _reduction("any", 207, ALL, "bool", cpu_functions.any, identity=0),
    _reduction("all", 208, ALL, "bool", cpu_functions.all, identity=1),
    # Those with methods of their own in the backends
    _other("fill", 300, ALL, "none"),
    _other("copy", 301, ALL, "none"),
    _other("cast", 302, ALL, "same"),
    _other("where", 303, ALL, "same"),
    _other("matmul", 304, ALL, "same"),
    _other("dense", 305, "f", "same"),
    _other("triangle", 306, ALL, "same"),
    _other("scan", 309, ALL, "wide"),
    _other("gather", 307, ALL, "same"),
    _other("scatter", 308, ALL, "none"),
    _other("nonzero", 310, ALL, "index"),
    _other("cholesky", 311, "f", "same"),
    _other("solve", 312, "f", "same"),
    _other("inverse", 313, "f", "same"),
    _other("determinant", 314, "f", "same"),
    _other("accumulate", 315, ALL, "none"),
    _other("random", 320, "uf", "none"),
    _other("sort", 330, ORDERED, "same"),
    _other("argsort", 331, ORDERED, "index"),
    _other("searchsorted", 332, ORDERED, "index"),
    _other("bincount", 333, INTEGERS, "index"),
    _other("pool", 340, "f", "same"),
    _other("convolution", 341, "f", "same"),
    _other("concat", 350, ALL, "same"),
    _other("softmax", 351, ORDERED, "float"),
    _other("log_softmax", 352, ORDERED, "float"),
    _other("logsumexp", 353, ORDERED, "float"),
    _other("var", 354, ORDERED, "float"),
    _other("sequence", 355, REALS, "none"),
    _other("eye", 356, ALL, "none"),
    _other("clip", 357, REALS, "same"),
    _other("within", 363, REALS, "same"),
    _other("isclose", 358, "f", "bool"),
    _other("nan_to_num", 359, "f", "same"),
    _other("optimize", 380, "f", "none"),
    _other("total_norm", 381, "f", "same"),
    _other("clip_norm", 382, "f", "none"),
    _other("dropout", 383, "f", "same"),
    _other("activate", 384, "f", "same"),
    _other("pair_loss", 385, "f", "same"),
    _other("normalize", 360, "f", "same"),
    _other("cross_entropy", 361, "f", "same"),
    _other("attention", 370, "f", "same"),
    _other("recurrent", 371, "f", "same"),
)
OPERATIONS = {row.code: row for row in ROWS}
# The codes by name; NONE is no operation, and no activation of a layer.
Operation = IntEnum(
    "Operation", {"NONE": 0} | {row.name.upper(): row.code for row in ROWS}, module=__name__
)
# The same as plain attributes: Python 3.11 takes longer to find a member in an enum's class.
codes = SimpleNamespace(**Operation.__members__)

_WIDE = {"b": int64, "i": int64, "u": uint64}
_FIXED = {"bool": bool_dtype, "index": int64}


def result_dtype(row, dtype):
    """Return the dtype that an operation gives of operands promoted to one that it takes."""
    if row.result == "float":
        return inexact(dtype)
    if row.result == "real":
        return real_dtype(dtype)
    if row.result == "wide":
        return _WIDE.get(dtype.kind, dtype)
    return _FIXED.get(row.result, dtype)
