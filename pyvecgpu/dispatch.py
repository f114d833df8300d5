"""The seam: the one way from functions, methods and operators to a backend.

`apply` calls a method of backends.METHODS, and nothing else in the package does, but for what small
operations take here as a shorter way while nothing listens. So whatever wants to know what is
computed, from what and into what, looks here: `observe` hands it every Call.
"""

import contextlib
import threading

from .array import Array, new, wrap
from .backends import ARRAY, ARRAY_PARAMETERS, ARRAYS, HOST, METHODS


def _plan(parameters, gives):
    """What apply has to know of a method: where an Array can be, where `out` is, what it gives."""
    arrays = tuple(i for i, name in enumerate(parameters) if name in ARRAY_PARAMETERS)
    return arrays, "out" in parameters, gives


_PLANS = {name: _plan(parameters, gives) for name, (parameters, _, gives) in METHODS.items()}

# The callbacks for all threads, each by a key of its own. Without any the short ways are open.
_listeners = {}


class Call:
    """One call of a backend's method, after it.

    inputs: the Arrays it read, and static: what else it was told, by the names in METHODS.
    results: the Arrays it gave and those it wrote to, or the ndarray that `to_host` gave.
    """

    __slots__ = ("inputs", "method", "results", "static")

    def __init__(self, method, inputs, static, results):
        self.method, self.inputs, self.static, self.results = method, inputs, static, results


class _Thread(threading.local):
    """Whether this thread is in a callback, whose own calls are nobody's business."""

    telling = False


_thread = _Thread()


@contextlib.contextmanager
def observe(callback):
    """Inside the block, call callback(Call) after every call of a backend, in its thread.

    What the callback itself computes is not observed, and what it raises leaves the operation.
    """
    key = object()
    try:
        _listeners[key] = callback
        yield
    finally:
        _listeners.pop(key, None)


def apply(backend, method, *arguments):
    """Call a backend's method; return the Array or Arrays it gives, an ndarray or None.

    arguments: as METHODS names them, with Arrays for raw data. With an `out` that is what returns.
    The backend's exception: the method has failed.
    """
    arrays, has_out, gives = _PLANS[method]
    out = arguments[-1] if has_out else None
    raw = list(arguments)
    for i in arrays:
        if raw[i] is not None:
            raw[i] = raw[i].data
    compute = getattr(backend, method) if out is None else getattr(backend.into, method)
    result = compute(*raw)
    if gives is ARRAY:
        if backend.on_card and not result:
            backend.fail()
        if out is None:
            data, result = result, new()
            result.backend = backend
            result.data = data
        else:
            result = out
    elif gives is ARRAYS:
        result = tuple([wrap(backend, data) for data in result])
    if _listeners:
        _tell(method, arguments, result)
    return result


def _tell(method, arguments, result):
    if _thread.telling:
        return
    parameters, written, gives = METHODS[method]
    named = dict(zip(parameters, arguments, strict=True))
    arrays = {name: value for name, value in named.items() if isinstance(value, Array)}
    inputs = {n: array for n, array in arrays.items() if n not in written}
    static = {n: value for n, value in named.items() if n not in arrays and n not in written}
    results = result if gives is ARRAYS else (result,) if gives in (ARRAY, HOST) else ()
    results += tuple(arrays[n] for n in written if n in arrays and arrays[n] is not result)
    _thread.telling = True
    try:
        for callback in tuple(_listeners.values()):
            callback(Call(method, inputs, static, results))
    finally:
        _thread.telling = False


# Short ways ---------------------------------------------------------------------------------------

# A backend's function is fetched before it is called: on a card it is no method but a value of the
# instance, which Python finds sooner as an attribute than as a method.


def apply_unary(code, a):
    """Return apply(a.backend, "unary", code, a, None)."""
    backend = a.backend
    if _listeners:
        return apply(backend, "unary", code, a, None)
    compute = backend.unary
    data = compute(code, a.data, None)
    if backend.on_card and not data:
        backend.fail()
    array = new()
    array.backend = backend
    array.data = data
    return array


def apply_view(method, a, *static):
    """Return apply(a.backend, method, a, *static) of a method that gives an Array, without out."""
    backend = a.backend
    if _listeners:
        return apply(backend, method, a, *static)
    data = getattr(backend, method)(a.data, *static)
    if backend.on_card and not data:
        backend.fail()
    array = new()
    array.backend = backend
    array.data = data
    return array


def apply_to_host(a, into):
    """Return apply(a.backend, "to_host", a, into)."""
    if _listeners:
        return apply(a.backend, "to_host", a, into)
    return a.backend.to_host(a.data, into)


def apply_binary(code, a, b):
    """Return apply(a.backend, "binary", code, a, b, None)."""
    backend = a.backend
    if _listeners:
        return apply(backend, "binary", code, a, b, None)
    compute = backend.binary
    data = compute(code, a.data, b.data, None)
    if backend.on_card and not data:
        backend.fail()
    array = new()
    array.backend = backend
    array.data = data
    return array


def operator(code, general):
    """Return the method of a binary operator; general(code, left, right, out) takes any operands.

    This is the path that decides what a small operation costs: no call but the backend's own.
    """
    code = int(code)

    def method(self, other):
        backend = self.backend
        kind = type(other)
        if _listeners:
            return general(code, self, other, None)
        if kind is Array and other.backend is backend:
            compute = backend.binary
            data = compute(code, self.data, other.data, None)
        elif kind is float:
            compute = backend.scalar
            data = compute(code, self.data, other, 1, None)
        else:
            return general(code, self, other, None)
        if backend.on_card and not data:
            backend.fail()
        array = new()
        array.backend = backend
        array.data = data
        return array

    return method
