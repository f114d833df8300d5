"""The seam: the one way from functions, methods and operators to a backend.

`apply` calls a method of backends.METHODS, and nothing else in the package does, but for what is a
shorter way while nothing listens: the operators' here, that of their functions in
functions/short_operations.py, and views and keys in short_views.py. So whatever wants to know what
is computed, from what and into what, looks here: `observe` hands it every Call, and `tape` records
what is computed of tracked Arrays.
"""

import contextlib
import threading

import numpy as np

from .array import Array, Tracked, new
from .backends import ARRAY, ARRAY_PARAMETERS, ARRAYS, HOST, LISTS, METHODS, NOTHING
from .backends.cpu_ways import BINARY, Functions

_ndarray = np.ndarray
# The callbacks for all threads, each by a key of its own. Without any the operators' way is open.
_listeners = {}


def observed():
    """Whether anybody observes, so that short ways are closed."""
    return bool(_listeners)


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
    return WAYS[method](backend, *arguments)


class _Tape:
    """What records gradients; autograd/tape.py puts its own functions in.

    record(method, code, side, named, result): after a call with a tracked Array among its
    arguments, while state.enabled; code, side: what else tells its rule, or None.
    permit(method, target, named): before one that writes to an Array, to refuse it.
    paused(compute): compute(), of which nothing is recorded. enabled(): whether anything is.
    """

    __slots__ = ("enabled", "paused", "permit", "record", "state")


tape = _Tape()


def is_tracked(*arrays):
    """Whether what is computed of Arrays is to be recorded."""
    return any(type(x) is Tracked for x in arrays) and tape.state.enabled


def without_rule(name, reason=" yet"):
    """Return the error of an operation that would be recorded and has no rule."""
    return NotImplementedError(
        f"{name} has no gradient{reason}; compute it of x.detach(), or under vg.no_grad()"
    )


def no_gradient(name, *arrays, reason=" yet"):
    """NotImplementedError: what is computed of these would be recorded, and has no rule."""
    if is_tracked(*arrays):
        raise without_rule(name, reason)


def whole(name, named, compute):
    """Return compute(), an Array, which the tape takes for one operation of a name of its own.

    named: what its rule needs, the Arrays that it is computed of among it.
    """
    if not any(type(value) is Tracked for value in named.values()):
        return compute()
    result = tape.paused(compute)
    if tape.state.enabled:
        tape.record(name, None, None, named, result)
    return result


# What apply does, by what the method gives, and before it what an `out` asks for. {raw}: the
# arguments with raw data for Arrays. `try` costs nothing where nothing is raised. A backend's
# function is fetched before it is called: on a card it is no method but a value of the instance,
# which Python finds sooner as an attribute than as a method.
_HEAD = """
def {name}(backend, {parameters}):
"""
_INTO_OUT = """
    if out is not None:
        if {tracked}:
            tape.permit("{name}", out, {named})
        try:
            data = backend.into.{name}({raw_but_out}, out.raw)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        if ({tracked}) and tape.state.enabled:
            tape.record("{name}", {code}, {side}, {named}, out)
        if _listeners:
            _tell("{name}", ({parameters},), out)
        return out
"""
_ONE_ARRAY = """
    compute = backend.{name}
    try:
        data = compute({raw})
    except MemoryError as error:
        raise backend.short_of_memory(error) from None
    if backend.on_card and not data:
        backend.fail()
    result = new()
    result.backend = backend
    result.raw = data
"""
_ARRAYS = """
    compute = backend.{name}
    try:
        found = compute({raw})
    except MemoryError as error:
        raise backend.short_of_memory(error) from None
    result = []
    for data in found:
        if backend.on_card and not data:
            backend.fail()
        array = new()
        array.backend = backend
        array.raw = data
        result.append(array)
    result = tuple(result)
"""
_OTHER = """
    compute = backend.{name}
    try:
        result = compute({raw})
    except MemoryError as error:
        raise backend.short_of_memory(error) from None
"""
_BEFORE_WRITING = """
    if {tracked}:
        tape.permit("{name}", {target}, {named})
"""
_RECORD = """
    if ({tracked}) and tape.state.enabled:
        tape.record("{name}", {code}, {side}, {named}, result)
"""
_TAIL = """
    if _listeners:
        _tell("{name}", ({parameters},), result)
    return result
"""
_BODIES = {ARRAY: _ONE_ARRAY, ARRAYS: _ARRAYS, HOST: _OTHER, NOTHING: _OTHER}
_CAN_BE_NONE = (
    *("weight", "bias", "places", "preactivation", "weights", "statistics", "mask", "logsum"),
    *("state", "dlast", "dstate", "states", "gates", "norm", "renewed", "dloss"),
)


class _Ways(dict):
    """{method: a function (backend, *arguments) that does what apply does}, made when asked for.

    Each is written out for its parameters: a loop over them costs more than a small operation.
    """

    def __missing__(self, method):
        parameters, written, gives = METHODS[method]
        raw = [_raw(name) for name in parameters]
        arrays = [name for name in parameters if name in ARRAY_PARAMETERS]
        parts = [_HEAD, _BODIES[gives], _TAIL]
        if arrays and gives in (ARRAY, ARRAYS):
            parts.insert(2, _RECORD)
        if arrays and gives is NOTHING:
            parts.insert(1, _BEFORE_WRITING)
        if "out" in parameters:  # the last of them
            raw[-1] = "None"
            parts.insert(1, _INTO_OUT)
        source = "".join(parts).format(
            name=method,
            parameters=", ".join(parameters),
            raw=", ".join(raw),
            raw_but_out=", ".join(raw[:-1]),
            tracked=" or ".join([f"type({name}) is Tracked" for name in arrays]),
            named="{" + ", ".join([f'"{name}": {name}' for name in parameters]) + "}",
            target=written[0] if written else None,
            code="code" if "code" in parameters else None,
            side=next((name for name in ("side", "activation") if name in parameters), None),
        )
        made = {"new": new, "_listeners": _listeners, "_tell": _tell}
        made |= {"Tracked": Tracked, "tape": tape}
        exec(compile(source, f"<{method} of dispatch.py>", "exec"), made)
        return self.setdefault(method, made[method])


def _raw(name):
    """Return what stands for a parameter where raw data is wanted."""
    if name in LISTS:
        return f"[x.raw for x in {name}]"
    if name not in ARRAY_PARAMETERS:
        return name
    data = f"{name}.raw"
    return f"None if {name} is None else {data}" if name in _CAN_BE_NONE else data


WAYS = _Ways()


def _tell(method, arguments, result):
    if _thread.telling:
        return
    parameters, written, gives = METHODS[method]
    named = dict(zip(parameters, arguments, strict=True))
    for name in LISTS:
        each = {f"{name}[{i}]": array for i, array in enumerate(named.pop(name, ()))}
        named |= each
        written += (*each,) if name in written else ()
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


# Operators ----------------------------------------------------------------------------------------


def operator(code, general):
    """Return the method of a binary operator; general(code, left, right, out) takes any operands.

    This is the path that decides what a small operation costs: no call but the backend's own, and
    on the CPU NumPy's.
    """
    code = int(code)
    ways = Functions(BINARY, code)

    def method(self, other):
        backend = self.backend
        kind = type(other)
        if _listeners:
            return general(code, self, other, None)
        try:
            if kind is Array and other.backend is backend:
                if backend.on_card:
                    compute = backend.binary
                    data = compute(code, self.raw, other.raw, None)
                else:
                    left, right = self.raw, other.raw
                    function = ways[left.dtype, right.dtype]
                    if function is None:
                        return general(code, self, other, None)
                    data = function(left, right)
                    if type(data) is not _ndarray:
                        data = np.asarray(data)
            elif kind is float or kind is int:
                compute = backend.scalar
                data = compute(code, self.raw, other, 1, None)
            else:
                return general(code, self, other, None)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        array = new()
        array.backend = backend
        array.raw = data
        return array

    return method


def reflected(code, general):
    """Return the same of `other <operator> array`, where `other` is no Array."""
    code = int(code)

    def method(self, other):
        backend = self.backend
        kind = type(other)
        if _listeners or type(self) is not Array or not (kind is float or kind is int):
            return general(code, other, self, None)
        compute = backend.scalar
        try:
            data = compute(code, self.raw, other, 0, None)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        array = new()
        array.backend = backend
        array.raw = data
        return array

    return method


def in_place(code, general):
    """Return the same of `array <operator>= other`, which gives the Array itself."""
    code = int(code)

    def method(self, other):
        backend = self.backend
        kind = type(other)
        if _listeners or type(self) is not Array:
            return general(code, self, other, self)
        into, place = backend.into, self.raw
        try:
            if kind is Array and other.backend is backend:
                data = into.binary(code, place, other.raw, place)
            elif kind is float or kind is int:
                data = into.scalar(code, place, other, 1, place)
            else:
                return general(code, self, other, self)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        return self

    return method


def sign_operator(code, general):
    """Return the same of `-array` and its kin; general(array) takes any."""
    code = int(code)

    def method(self):
        if _listeners or type(self) is not Array:
            return general(self)
        backend = self.backend
        compute = backend.unary
        try:
            data = compute(code, self.raw, None)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        array = new()
        array.backend = backend
        array.raw = data
        return array

    return method


def tracked_operator(code, general):
    """Return the same of Tracked; the tape sees what is done through WAYS."""
    code = int(code)

    def method(self, other):
        backend = self.backend
        kind = type(other)
        if (kind is Tracked or kind is Array) and other.backend is backend:
            return WAYS["binary"](backend, code, self, other, None)
        if kind is float:
            return WAYS["scalar"](backend, code, self, other, 1, None)
        return general(code, self, other, None)

    return method
