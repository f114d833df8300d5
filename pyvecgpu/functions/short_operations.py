"""The short way of the functions of one operation: what a small call takes is the backend's alone.

As the operators' in dispatch.py it is for Arrays of one backend that nobody observes and nothing is
recorded or exchanged for, without `where`, `dtype` and `device`. On the CPU it is NumPy's function,
where that is the operation as it is (cpu_ways.py). All else is for the decorated function.
"""

import functools

import numpy as np

from ..array import Array, new
from ..backends.cpu_ways import BINARY, UNARY, Functions
from ..dispatch import _listeners
from .casting import active

_ndarray = np.ndarray


def of_one(code):
    """Return a decorator for the function of an operation of one operand."""
    code = int(code)
    ways = Functions(UNARY, code)

    def decorate(general):
        @functools.wraps(general)
        def call(x, /, out=None, *, where=True, dtype=None, device=None):
            is_plain = type(x) is Array and where is True and dtype is None and device is None
            if not is_plain or _listeners or active:
                return general(x, out, where=where, dtype=dtype, device=device)
            backend, operand = x.backend, x.raw
            try:
                if out is not None:
                    if type(out) is not Array or out.backend is not backend:
                        return general(x, out)
                    into = backend.into
                    data = into.unary(code, operand, out.raw)
                    if backend.on_card and not data:
                        backend.fail()
                    return out
                if backend.on_card:
                    compute = backend.unary
                    data = compute(code, operand, None)
                    if not data:
                        backend.fail()
                elif function := ways[operand.dtype]:
                    data = function(operand)
                    if type(data) is not _ndarray:
                        data = np.asarray(data)
                else:
                    return general(x)
            except MemoryError as error:
                raise backend.short_of_memory(error) from None
            array = new()
            array.backend = backend
            array.raw = data
            return array

        return call

    return decorate


def of_two(code):
    """Return the same for an operation of two operands, both of which are Arrays."""
    code = int(code)
    ways = Functions(BINARY, code)

    def decorate(general):
        @functools.wraps(general)
        def call(x1, x2, /, out=None, *, where=True, dtype=None, device=None):
            is_plain = type(x1) is Array is type(x2) and where is True and dtype is None
            if not is_plain or device is not None or _listeners or active:
                return general(x1, x2, out, where=where, dtype=dtype, device=device)
            backend = x1.backend
            if x2.backend is not backend:
                return general(x1, x2, out)
            left, right = x1.raw, x2.raw
            try:
                if out is not None:
                    if type(out) is not Array or out.backend is not backend:
                        return general(x1, x2, out)
                    into = backend.into
                    data = into.binary(code, left, right, out.raw)
                    if backend.on_card and not data:
                        backend.fail()
                    return out
                if backend.on_card:
                    compute = backend.binary
                    data = compute(code, left, right, None)
                    if not data:
                        backend.fail()
                elif function := ways[left.dtype, right.dtype]:
                    data = function(left, right)
                    if type(data) is not _ndarray:
                        data = np.asarray(data)
                else:
                    return general(x1, x2)
            except MemoryError as error:
                raise backend.short_of_memory(error) from None
            array = new()
            array.backend = backend
            array.raw = data
            return array

        return call

    return decorate
