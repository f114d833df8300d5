"""The short way of composed functions on the CPU device: NumPy's function of the same name.

It is for functions that move elements or choose among them, so that the result is the same to the
bit. It is taken while nobody observes the seam (dispatch.py), for Arrays of the CPU device and
plain integers beside them; whatever else there is, errors included, goes the long way.
"""

import functools

import numpy as np

from ..array import Array, wrap
from ..backends.cpu_ways import holds
from ..dispatch import observed
from ..native.abi import MAX_NDIM

_LISTS = (list, tuple)


def numpys(function, scalars=()):
    """Return a decorator: NumPy's function is taken instead, where it gives the same.

    scalars: the places of arguments that are operands. Those are scalars that the first argument's
    dtype holds, other than 0, which NumPy confuses with -0.0.
    """

    def decorate(composed):
        @functools.wraps(composed)
        def call(*arguments, **options):
            first = arguments[0] if arguments else None
            if type(first) in _LISTS and first:
                first = first[0]
            if type(first) is Array and first.backend.on_card:
                return composed(*arguments, **options)
            result = _short(function, scalars, arguments, options)
            return composed(*arguments, **options) if result is None else result

        return call

    return decorate


def _short(function, scalars, arguments, options):
    """Return NumPy's result as an Array, or None."""
    if not arguments or any(name != "axis" for name in options):
        return None
    first, *rest = arguments
    parts = first if type(first) in (list, tuple) else (first,)
    backend = parts[0].backend if parts and type(parts[0]) is Array else None
    if backend is None or backend.on_card or observed():
        return None
    if not all(_is_plain(one, backend) for one in parts):
        return None
    for i, value in enumerate([*rest, *options.values()], 1):
        if not (_is_operand(value, first.data) if i in scalars else _is_number(value)):
            return None
    raw = [one.data for one in parts] if parts is first else first.data
    try:
        result = np.asarray(function(raw, *rest, **options))
    except (TypeError, ValueError, IndexError, OverflowError, MemoryError):
        return None
    if result.ndim > MAX_NDIM:
        return None
    return wrap(backend, result if result.flags.c_contiguous else np.ascontiguousarray(result))


def _is_plain(array, backend):
    return type(array) is Array and array.backend is backend and array.data.dtype.kind in "buif"


def _is_number(value):
    return type(value) is int or value is None


def _is_operand(value, data):
    """Whether a scalar is None or, other than 0, one of every dtype of the array's kind."""
    if value is None or (type(value) is int and data.dtype.kind in "iuf"):
        return value is None or 0 < value < 128
    return type(value) is float and data.dtype.kind == "f" and value and holds(data.dtype, value)
