"""The dtypes that functions compute in under `vg.autocast`, by their names.

`Operands` (arguments.py), which every function makes of what it is given, asks here while `active`
says that some thread is in such a context. Only float16, bfloat16 and float32 are exchanged for one
another: an operand of another float dtype leaves a call as it is, and so does `out`.
"""

import threading

from ..array import Array, Tracked
from ..dispatch import WAYS, tape
from ..dtypes import bfloat16, float16, float32, is_float

# Products, which tensor cores make of few bits: their float operands are cast to the given dtype.
NARROW = {
    *("matmul", "dense", "vecdot", "inner", "outer", "dot", "tensordot", "einsum"),
    *("conv1d", "conv2d", "scaled_dot_product_attention"),
}
# What loses too much in a half, or leaves its range: its halves are cast to float32, its result's
# dtype.
WIDE = {
    *("exp", "expm1", "log", "log1p", "log2", "log10", "logaddexp", "pow", "reciprocal"),
    *("acos", "asin", "cosh", "sinh", "tan", "softplus"),
    *("sum", "prod", "cumsum", "cumprod", "cumulative_sum", "cumulative_prod"),
    *("vector_norm", "softmax", "log_softmax", "logsumexp", "layer_norm", "group_norm", "rms_norm"),
    *("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "nll_loss", "cross_entropy"),
    *("binary_cross_entropy_with_logits",),
}
EXCHANGED = (float16, bfloat16, float32)

# The contexts that threads are in at the moment, one for each `with`.
active = []


class Casts:
    """What one context asks for, and the casts that were made of leaves in it.

    device_type: of the devices that it concerns, None for all. dtype: None for a context in which
    nothing is cast. cache: {(id, whether it is recorded): (leaf, its version, cast)}; None: none.
    """

    __slots__ = ("cache", "device_type", "dtype")

    def __init__(self, device_type, dtype, cache):
        self.device_type, self.dtype, self.cache = device_type, dtype, cache

    def again(self):
        """Return the same for another time, with casts of its own."""
        return Casts(self.device_type, self.dtype, None if self.cache is None else {})


class _Thread(threading.local):
    """The context that a thread is in."""

    casts = None


_thread = _Thread()


def current():
    """Return the Casts of this thread, or None."""
    return _thread.casts


def within(casts, compute):
    """Return compute() in a thread's context, as current() gave it."""
    before = enter(casts)
    try:
        return compute()
    finally:
        leave(before)


def uncast(compute):
    """Return compute() with nothing cast."""
    return within(None, compute) if active else compute()


def enter(casts):
    """Make Casts, or None, those of this thread; return those before, for leave."""
    before, _thread.casts = _thread.casts, casts
    active.append(casts)
    return before


def leave(before):
    """End what enter began."""
    active.pop()
    _thread.casts = before


def exchanged(name, operands):
    """Return the operands of a function, of which some may be Python scalars, as it takes them."""
    casts = _thread.casts
    if casts is None or casts.dtype is None or not (name in NARROW or name in WIDE):
        return operands
    floats = [x for x in operands if isinstance(x, Array) and is_float(x.dtype)]
    kind = floats[0].device.type if floats else None
    if casts.device_type not in (None, kind) or any(x.dtype not in EXCHANGED for x in floats):
        return operands
    dtype = casts.dtype if name in NARROW else float32
    if all(x.dtype is dtype for x in floats):
        return operands
    return [
        _cast(x, dtype, casts.cache) if isinstance(x, Array) and x.dtype in EXCHANGED else x
        for x in operands
    ]


def _cast(array, dtype, cache):
    """Return an Array in a dtype; a leaf's cast once for as long as it does not change."""
    if array.dtype is dtype:
        return array
    if cache is None or type(array) is not Tracked or not array.is_leaf:
        return WAYS["cast"](array.backend, array, dtype, None)
    key = id(array), tape.enabled()
    leaf, version, found = cache.get(key, (None, None, None))
    if leaf is not array or version != array._version or _is_spent(found):
        found = WAYS["cast"](array.backend, array, dtype, None)
        cache[key] = array, array._version, found
    return found


def _is_spent(array):
    """Whether a backward pass has gone through an Array's node already."""
    return type(array) is Tracked and array._node.operands is None
