"""Where results of the CPU device go: the versions of memory, `out`, and the dtypes of operands."""

import functools
import itertools
import weakref

import numpy as np

from ..dtypes import (
    float32,
    is_bfloat16,
    is_float,
)
from .cpu_casts import cast, computable, rounded, widened

FEW_HALVES = 2000  # elements of float16 that are compared sooner than they are cast to float32

# Versions -----------------------------------------------------------------------------------------

_versions = {}  # id of an ndarray that owns memory: [weak reference to it, version]
_clock = itertools.count(1)  # no two writes of the process have the same version


def owner_of(data):
    """Return the ndarray at the bottom of a view, or the array itself."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def version_of(data):
    """Return the number of the last write to the memory, through whichever view; 0: no write."""
    entry = _versions.get(id(owner_of(data)))
    return entry[1] if entry else 0


def wrote(data):
    """Give the memory of an ndarray, and with it all views of it, a new version."""
    owner = data if data.base is None else owner_of(data)
    key = id(owner)
    entry = _versions.get(key)
    if entry is None:
        # The callback is no Python code, in which a signal handler's exception would be lost.
        reference = weakref.ref(owner, functools.partial(_versions.pop, key))
        _versions[key] = [reference, next(_clock)]
    else:
        entry[1] = next(_clock)


# What the methods are made of ---------------------------------------------------------------------


def store(result, out):
    """Return the result as an ndarray, written to `out` if there is one.

    ValueError: out has another shape or is read-only. TypeError: its dtype is of a lower kind.
    """
    if type(result) is not np.ndarray:
        result = np.asarray(result)
    if out is None:
        return result
    if not out.flags.writeable:
        raise ValueError("out is read-only (a broadcast view)")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, the result has {result.shape}")
    kinds = [float32 if is_bfloat16(x.dtype) else x.dtype for x in (result, out)]
    if not np.can_cast(*kinds, "same_kind"):
        raise TypeError(
            f"cannot cast the result from {result.dtype} to out's {out.dtype} "
            'with casting rule "same_kind"'
        )
    if is_bfloat16(out.dtype):
        result = rounded(result, out.dtype)
    elif is_bfloat16(result.dtype):
        result = widened(result)  # ml_dtypes knows no cast to float16
    np.copyto(out, result, casting="same_kind")
    wrote(out)
    return out


def alike(*operands):
    """Return the dtype of a result, and the operands in it, halves as float32."""
    dtype, operands = computable(*operands)
    return dtype, [widened(cast(operand, dtype)) for operand in operands]


def takes_halves(operation, a):
    """Whether a reduction of float16 as it is is exact and, of few elements, sooner there."""
    if operation.result == "bool":
        return True
    return operation.order is not None and a.size <= FEW_HALVES


def check_floats(name, operands):
    for operand in operands:
        if not is_float(operand.dtype):
            raise TypeError(f"{name} takes float arrays, not {operand.dtype}")
