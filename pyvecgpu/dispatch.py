"""The seam: the one way from functions, methods and operators to a backend.

`apply` calls a method of backends.METHODS, and nothing else in the package does, but for what the
operators, views and keys take here as a shorter way while nothing listens. So whatever wants to
know what is computed, from what and into what, looks here: `observe` hands it every Call, and
`tape` records what is computed of tracked Arrays.
"""

import contextlib
import struct
import threading

from .array import Array, Tracked, new, wrap
from .backends import ARRAY, ARRAY_PARAMETERS, ARRAYS, HOST, LISTS, METHODS, NOTHING
from .native.abi import MAX_NDIM, Key, Status

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

    record(method, named, result): after a call with a tracked Array among its arguments.
    permit(method, target, named): before one that writes to an Array, to refuse it.
    paused(compute): compute(), of which nothing is recorded. enabled(): whether anything is.
    """

    __slots__ = ("enabled", "paused", "permit", "record")


tape = _Tape()


def whole(name, named, compute):
    """Return compute(), an Array, which the tape takes for one operation of a name of its own.

    named: what its rule needs, the Arrays that it is computed of among it.
    """
    if not any(type(value) is Tracked for value in named.values()):
        return compute()
    result = tape.paused(compute)
    tape.record(name, named, result)
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
            data = backend.into.{name}({raw_but_out}, out.data)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        if {tracked}:
            tape.record("{name}", {named}, out)
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
    result.data = data
"""
_ARRAYS = """
    compute = backend.{name}
    try:
        found = compute({raw})
    except MemoryError as error:
        raise backend.short_of_memory(error) from None
    result = tuple([wrap(backend, data) for data in found])
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
    if {tracked}:
        tape.record("{name}", {named}, result)
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
        )
        made = {"new": new, "wrap": wrap, "_listeners": _listeners, "_tell": _tell}
        made |= {"Tracked": Tracked, "tape": tape}
        exec(compile(source, f"<{method} of dispatch.py>", "exec"), made)
        return self.setdefault(method, made[method])


def _raw(name):
    """Return what stands for a parameter where raw data is wanted."""
    if name in LISTS:
        return f"[x.data for x in {name}]"
    if name not in ARRAY_PARAMETERS:
        return name
    data = f"{name}.data"
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

    This is the path that decides what a small operation costs: no call but the backend's own.
    """
    code = int(code)

    def method(self, other):
        backend = self.backend
        kind = type(other)
        if _listeners:
            return general(code, self, other, None)
        try:
            if kind is Array and other.backend is backend:
                compute = backend.binary
                data = compute(code, self.data, other.data, None)
            elif kind is float or kind is int:
                compute = backend.scalar
                data = compute(code, self.data, other, 1, None)
            else:
                return general(code, self, other, None)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        array = new()
        array.backend = backend
        array.data = data
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
            data = compute(code, self.data, other, 0, None)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        array = new()
        array.backend = backend
        array.data = data
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
        into, place = backend.into, self.data
        try:
            if kind is Array and other.backend is backend:
                data = into.binary(code, place, other.data, place)
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
            data = compute(code, self.data, None)
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
        if backend.on_card and not data:
            backend.fail()
        array = new()
        array.backend = backend
        array.data = data
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


# Views --------------------------------------------------------------------------------------------
#
# The short way from an Array to a view of it: one call of the C library, which knows the shape, or
# of NumPy. It gives None for what it does not take and what does not fit the shape: that goes the
# long way, which says what is wrong.

_PACK = tuple([struct.Struct(f"{n}q").pack for n in range(4 * (MAX_NDIM + 1))])
_INTEGER, _SLICE, _NEW, _REST, _START, _STOP, _STEP, _ARRAY = map(int, Key)
_WHOLE, _OTHERS = (_SLICE, 0, 0, 0), (_REST, 0, 0, 0)
_FLAT, _ONE_MORE = _PACK[1](-1), _PACK[4](_NEW, 0, 0, 0)
_DOES_NOT_FIT = (Status.ERROR_VALUE, Status.ERROR_INDEX)


def indexed(array, key):
    """Return array[key] for a key of ints, slices, None, "..." and Arrays, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners or not backend.on_card:
        return None
    if key is None:
        return made(backend, backend.functions.pvg_index(array.data, 1, _ONE_MORE), _DOES_NOT_FIT)
    items, arrays = [], False
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is int:
            items += (_INTEGER, item, 0, 0)
        elif kind is slice:
            what, start, stop, step = _SLICE, item.start, item.stop, item.step
            if start is None:
                start = 0
            else:
                what |= _START
            if stop is None:
                stop = 0
            else:
                what |= _STOP
            if step is None:
                step = 0
            else:
                what |= _STEP
            items += (what, start, stop, step)
        elif item is None:
            items += (_NEW, 0, 0, 0)
        elif item is Ellipsis:
            items += _OTHERS
        elif kind is Array and item.backend is backend:
            items += (_ARRAY, item.data.value, 0, 0)
            arrays = True
        else:
            return None
    count = len(items)
    try:
        packed = _PACK[count](*items)
    except (struct.error, IndexError):  # no integers, or of more than 64 bits; too many items
        return None
    if arrays:
        return made(
            backend, backend.functions.pvg_index_get(array.data, count // 4, packed), _NOT_TAKEN
        )
    return made(backend, backend.functions.pvg_index(array.data, count // 4, packed), _DOES_NOT_FIT)


def part_along(array, axis, start, stop):
    """Return array[:, ..., start:stop], the bounds ints or None, along an axis from 0, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners or not backend.on_card:
        return None
    what = _SLICE | (0 if start is None else _START) | (0 if stop is None else _STOP)
    items = (*_WHOLE * axis, what, start or 0, stop or 0, 0)
    packed = _PACK[len(items)](*items)
    return made(backend, backend.functions.pvg_index(array.data, axis + 1, packed), _DOES_NOT_FIT)


def reshaped(array, shape):
    """Return an Array in a shape of ints, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners:
        return None
    if not backend.on_card:
        return _reshaped_by_numpy(array, shape)
    count, packed = _lengths(shape)
    if packed is None:
        return None
    return made(backend, backend.functions.pvg_reshape(array.data, count, packed), _DOES_NOT_FIT)


def flattened(array, count=1, shape=_FLAT):
    """Return an Array with one axis, or None; reshaped, in one step of Python."""
    backend = array.backend
    if type(array) is not Array or _listeners:
        return None
    if not backend.on_card:
        return _reshaped_by_numpy(array, -1)
    return made(backend, backend.functions.pvg_reshape(array.data, count, shape), _DOES_NOT_FIT)


def squeezed(array):
    """Return an Array without its axes of length 1, or None."""
    if array.backend.on_card:
        return flattened(array, -1, None)
    if type(array) is not Array or _listeners:
        return None
    return wrap(array.backend, array.data.squeeze())


def duplicated(array):
    """Return a contiguous copy of an Array, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners:
        return None
    if not backend.on_card:
        try:
            return wrap(backend, array.data.copy())
        except MemoryError as error:
            raise backend.short_of_memory(error) from None
    return made(backend, backend.functions.pvg_cast(array.data, -1, None), _DOES_NOT_FIT)


def _reshaped_by_numpy(array, shape):
    """Return an Array of the CPU device in a shape of ints, or None."""
    items = shape if type(shape) is tuple or type(shape) is list else (shape,)
    for n in items:
        if type(n) is not int or n < -1:  # which NumPy takes for -1
            return None
    try:
        data = array.data.reshape(items)
    except (ValueError, OverflowError, MemoryError):
        return None
    return wrap(array.backend, data) if data.ndim <= MAX_NDIM else None


def repeated(array, shape):
    """Return an Array broadcast to a shape of ints, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners or not backend.on_card:
        return None
    count, packed = _lengths(shape)
    if packed is None:
        return None
    return made(
        backend, backend.functions.pvg_broadcast_to(array.data, count, packed), _DOES_NOT_FIT
    )


def _lengths(shape):
    """Return (count, C numbers) of a shape of ints; None for the numbers if it is none."""
    if type(shape) is int and shape == -1:
        return 1, _FLAT
    items = shape if type(shape) is tuple or type(shape) is list else (shape,)
    for n in items:
        if type(n) is not int:
            return 0, None
    count = len(items)
    try:
        return count, _PACK[count](*items)
    except (struct.error, IndexError):  # more than 64 bits; too many axes
        return 0, None


def reversed_axes(array):
    """Return an Array with its axes in reverse order, or None."""
    backend = array.backend
    if type(array) is not Array or _listeners:
        return None
    if not backend.on_card:
        return wrap(backend, array.data.T)
    return made(backend, backend.functions.pvg_permute(array.data, None), _DOES_NOT_FIT)


def made(backend, data, refused):
    """Return an Array of what the library made, or None where it refused; other errors raise.

    refused: the statuses that leave a call to the long way.
    """
    if not data:
        if backend.library.pvg_last_status() in refused:
            return None
        backend.fail()
    array = new()
    array.backend = backend
    array.data = data
    return array


# Values -------------------------------------------------------------------------------------------


def number(array):
    """Return the one element of an Array, or None: there is another number, or it is observed."""
    backend = array.backend
    if _listeners:
        return None
    if backend.on_card:
        return backend.number(array.data)
    data = array.data
    return data.item() if data.size == 1 and data.dtype.kind in "buif" else None


def downloaded(array, laid_out=False):
    """Return the values of an Array on a card as a new ndarray, or None: nobody may observe it.

    laid_out: with its axes in the order of the Array's, so that nothing has to be moved around.
    """
    backend = array.backend
    if _listeners or not backend.on_card:
        return None
    dtype, shape, strides = array._layout
    return backend.download(array.data, dtype, shape, strides if laid_out else None)


# Elements that Arrays name ------------------------------------------------------------------------
#
# One call of the C library, too. What it does not take is the error VALUE, or a scalar's that the
# dtype cannot hold; others may be reports of what was computed before, of which nobody hears twice.

_NOT_TAKEN = (Status.ERROR_VALUE, Status.ERROR_TYPE, Status.ERROR_OVERFLOW)


def taken(array, indices, axis):
    """Return the elements of an Array at an Array of indices along an axis, or None."""
    backend = array.backend
    if type(array) is not Array or type(indices) is not Array or _listeners:
        return None
    if not backend.on_card or indices.backend is not backend:
        return None
    if axis is None and len(array.shape) == 1:
        axis = 0
    elif type(axis) is not int:
        return None
    one = (_ARRAY, indices.data.value, 0, 0)
    # An item more says that bools are none of these.
    items = _WHOLE * axis + one + _OTHERS if axis >= 0 else _OTHERS + one + _WHOLE * (-1 - axis)
    count = len(items)
    if count >= len(_PACK):
        return None
    call = backend.functions.pvg_index_get
    return made(backend, call(array.data, count // 4, _PACK[count](*items)), _NOT_TAKEN)


def assigned(array, key, value):
    """Do array[key] = a number or an Array, for a key with Arrays, and return True; or False."""
    backend = array.backend
    if type(array) is not Array or _listeners or not backend.on_card:
        return False
    items = []
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is Array and item.backend is backend:
            items += (_ARRAY, item.data.value, 0, 0)
        elif kind is int:
            items += (_INTEGER, item, 0, 0)
        elif kind is slice and item == _EVERYTHING:
            items += _WHOLE
        elif item is Ellipsis:
            items += _OTHERS
        else:
            return False
    count = len(items)
    try:
        packed = _PACK[count](*items)
    except (struct.error, IndexError):
        return False
    return _given(backend, array, count // 4, packed, value)


def put_in_a_row(array, indices, value):
    """Write to elements of an Array of one axis as `put` does, and return True; or False."""
    backend = array.backend
    if type(array) is not Array or type(indices) is not Array or _listeners:
        return False
    if not backend.on_card or indices.backend is not backend:
        return False
    if len(array.shape) != 1 or len(indices.shape) != 1:
        return False
    if isinstance(value, Array) and value.shape != indices.shape:
        return False
    # An item more says that bools are none of these.
    packed = _PACK[8](_ARRAY, indices.data.value, 0, 0, *_OTHERS)
    return _given(backend, array, 2, packed, value)


_EVERYTHING = slice(None)
_NUMBERS = {bool, int, float, complex}


def _given(backend, array, count, packed, value):
    """Write a number or an Array to what a packed key names, and return True; or False."""
    kind, data, call = type(value), array.data, backend.functions.pvg_index_set
    if kind is Array:
        if value.backend is not backend:
            return False
        status = call(data, count, packed, value.data, 0, None)
    elif kind in _NUMBERS:
        code, number = backend.as_scalar(data, value)
        status = call(data, count, packed, None, code, number)
    else:
        return False
    if not status:
        return True
    if status not in _NOT_TAKEN:
        backend.fail()
    return False
