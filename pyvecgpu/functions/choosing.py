"""Choosing between elements: where(condition, x1, x2); `where` and `dtype` of other functions.

What a function of elements does with its parameters `where` and `dtype` is in_part(): the function
is called as if it had neither, and of its results those that are asked for are kept.
"""

import builtins

import numpy as np

from ..array import Array
from ..dispatch import WAYS, apply
from ..dtype_queries import can_cast
from ..dtypes import bool as bool_dtype
from ..dtypes import is_half, parse_dtype, promote_scalar
from . import pipeline, short_cpu
from .arguments import Operands, from_host, is_host, is_scalar, strong
from .casting import active
from .lists import begins_with_array, is_list, stacked
from .operators import is_beside

__all__ = ["where"]

_WHERE = WAYS["where"]


def where(condition, x1, x2, /, out=None, *, device=None):
    """Return x1 where the condition is true, else x2, broadcast together.

    TypeError: the condition is not bool.

    >>> x = vg.asarray([-1.0, 2.0, -3.0])
    >>> vg.where(x > 0, x, 0).tolist()
    [0.0, 2.0, 0.0]
    """
    if type(x1) is type(x2) is type(condition) is Array and not active and device is None:
        backend = condition.backend
        is_plain = x1.backend is backend and x2.backend is backend
        if is_plain and (out is None or is_beside(out, condition)):
            return _WHERE(backend, condition, x1, x2, out)
    if out is None and device is None:
        result = short_cpu.where(condition, x1, x2)
        if result is not None:
            return result
    result = pipeline.compute(where, (condition, x1, x2), out, device)
    if result is not None:
        return result
    call = Operands("where", (condition, x1, x2), out, device)
    mask, a, b = call.arrays
    if is_scalar(mask):
        raise TypeError("where: the condition is an array of bools, not a scalar")
    a, b = strong_pair(a, b, call.backend)
    return call.apply("where", mask, a, b)


def strong_pair(a, b, backend):
    """Return two operands as Arrays, Python scalars in the dtype that they are promoted to."""
    if is_scalar(a) and is_scalar(b):
        dtype = promote_scalar(promote_scalar(bool_dtype, a), b)
        return strong(a, backend, dtype), strong(b, backend, dtype)
    if is_scalar(a):
        b, a = strong_pair(b, a, backend)
    elif is_scalar(b):
        dtype = promote_scalar(a.dtype, b)
        if dtype != a.dtype:  # or NumPy's promotion of int64 and float32 would give float64
            a = apply(backend, "cast", a, dtype, None)
        b = strong(b, backend, dtype)
    return a, b


def in_part(function, operands, out, mask, dtype, device):
    """Return function(*operands) computed in a dtype, or where a mask is true; else 0, or `out`.

    dtype: operands are cast to it, and the result, unless it is bool. TypeError: that is no
    "same_kind" cast, or the result's to `out`. ValueError: the mask or `out` does not fit.
    """
    name = function.__name__
    if isinstance(mask, (builtins.bool, np.bool_)):
        mask = True if mask else np.asarray(False)  # of no axes: it fits everything
    if dtype is not None:
        dtype = parse_dtype(dtype)
        if dtype != bool_dtype or not _gives_bools(function, operands):
            operands = [_in_dtype(name, x, dtype) for x in operands]
    if mask is not True:  # what is not computed has no part in gradients, whatever its slope is
        operands = [
            where(mask, x, 1) if isinstance(x, Array) and x.requires_grad else x for x in operands
        ]
    with np.errstate(all="ignore"):  # of elements that are not asked for
        result = function(*operands, device=device)
    if dtype is not None and result.dtype != dtype and result.dtype.kind != "b":
        if not can_cast(result.dtype, dtype, "same_kind"):
            raise TypeError(f"{name}: its results of {result.dtype} are not computed in {dtype}")
        result = result.astype(dtype)
    if out is None:
        return result if mask is True else where(mask, result, result.dtype.type(0))
    if not isinstance(out, Array):
        if not isinstance(out, np.ndarray) or isinstance(result, Array) or isinstance(mask, Array):
            raise TypeError(f"{name}: out is an Array or None, not {type(out).__name__}")
        np.copyto(out, result, where=mask)
        return out
    if not can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(f"{name}: {result.dtype} is no same_kind cast to {out.dtype}, that of out")
    if not isinstance(result, Array):  # of operands on the host
        result = from_host(np.asarray(result), out.backend)
    result = result.astype(out.dtype)
    result = result if mask is True else where(mask, result, out)
    if result.shape != out.shape:
        raise ValueError(f"out has shape {out.shape}, the result has {result.shape}")
    apply(out.backend, "copy", result, out)
    return out


def _gives_bools(function, operands):
    """Whether a function's results are bools, of whatever operands."""
    return function(*(np.zeros(0, np.int64) for _ in operands), device="cpu").dtype == bool_dtype


_KINDS = {builtins.bool: "biufc", int: "iufc", float: "fc", complex: "c"}


def _in_dtype(name, x, dtype):
    """Return an operand in a dtype; Python's scalars are weak."""
    if is_scalar(x):
        kind = next(kind for kind in _KINDS if isinstance(x, kind))
        if ("f" if is_half(dtype) else dtype.kind) not in _KINDS[kind]:
            raise TypeError(f"{name}: {x!r} is not computed with in {dtype}")
        return x
    if is_list(x):
        x = stacked(x) if begins_with_array(x) else np.asarray(x)
    if not isinstance(x, Array) and not is_host(x):
        kind = type(x).__name__
        raise TypeError(f"{name} takes arrays, not {kind}; make one with asarray(...)")
    if not can_cast(x.dtype, dtype, "same_kind"):
        raise TypeError(f"{name}: operands of {x.dtype} are not computed with in {dtype}")
    return x.astype(dtype)
