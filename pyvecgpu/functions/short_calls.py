"""The short way of functions on the CPU device: one call of NumPy for the whole of each.

It is taken while nobody observes the seam (dispatch.py), for Arrays of the CPU device that no
gradients are recorded for, of bools, integers and real floats, with plain numbers beside them.
Whatever else there is, errors included, goes the long way: of elements that are moved or chosen the
result is the same to the bit, and of others it is computed as the long way does it.

What decides that is written out for each function, as dispatch.py does it: with the function's own
parameters, which Python fills in sooner than a loop over them goes round.
"""

import functools
import textwrap
from inspect import signature
from types import FunctionType

import numpy as np

from ..array import Array, new
from ..backends.cpu_results import wrote
from ..device import Device, resolve
from ..dispatch import _listeners
from .casting import active

_ndarray = np.ndarray
_MULTIPLIED = "fdbhilqBHILQ"  # dtypes whose products NumPy adds up as we do
_REAL = "buif"
_ERRORS = (TypeError, ValueError, IndexError, ArithmeticError, AttributeError, MemoryError)
_MAY_HOLD = {np.ndarray, list, tuple}  # what is looked into for Arrays
_ARRAYS = {Array, *_MAY_HOLD}


def short(function, c_order=True, of=tuple, alone=False):
    """Return a decorator: what function(...) gives of ndarrays is taken, unless that is None.

    The function stands in a module short_*.py; its parameters are some of the decorated one's, by
    the same names and defaults, and the others have to be what they are by default. It gets
    ndarrays for Arrays, in lists too, and all else as it is; it gives None, or raises one of
    NumPy's errors, for what is not for it. Else it gives an ndarray or NumPy's scalar, a list or
    tuple of such and of ints, or True after it has written to its first argument. c_order: whether
    results are in C order, not in the operands', as elementwise ones are. of: the class of a tuple,
    tuple or one with names. alone: the function is called without any Array, too, for the current
    device.
    """
    return functools.partial(_decorated, function, _ALONE if alone else _OF_ARRAYS, c_order, of)


def made(function):
    """Return a decorator for functions of no Arrays: what function(...) gives is taken on the CPU.

    As short; the function gets all as it is, but for `device`, which says where the result is made.
    """
    return functools.partial(_decorated, function, _OF_DEVICE, True, tuple)


# What a decorated function does: when it is first called it is written out, by _write_out.
_FIRST = """
def first(*arguments, **options):
    write_out(call)
    return call(*arguments, **options)
"""
# What it does then. {signature}: its parameters, {passed}: the same for a call; {others}: that one
# which the short way lacks is not what it is by default; {given}: what the short way is called
# with. The part of an operand is there for each of the short way's parameters. "break" leads to the
# long way.
_HEAD = """
def {name}{signature}:
    while True:
        if _listeners or active{others}:
            break
        backend = None
"""
_OPERAND = """
        type_of = type({operand})
        if type_of is Array:
            if {operand}.backend is not backend:
                if backend is not None or {operand}.backend.on_card:
                    break
                backend = {operand}.backend
            raw_{operand} = {operand}.raw
            if raw_{operand}.dtype.kind not in _REAL:
                break
        elif type_of in _MAY_HOLD:
            if type_of is _ndarray:
                break
            raw_{operand} = {operand}
            if {operand} and type({operand}[0]) in _ARRAYS:
                backend, raw_{operand} = _opened({operand}, backend)
                if raw_{operand} is None:
                    break
        else:
            raw_{operand} = {operand}
"""
_IF_GIVEN = """
        raw_{operand} = {operand}
        if {operand} is not default_{operand}:
"""
_FOR_EACH = """
        raw_{operands} = []
        for one in {operands}:
"""
_IF_ALL = """
            raw_{operands}.append(raw_one)
        if len(raw_{operands}) != len({operands}):
            break
"""
_OF_ARRAYS = """
        if backend is None:
            break
"""
_ALONE = """
        if backend is None:
            backend = resolve(None).backend
            if backend.on_card:
                break
"""
_OF_DEVICE = """
        if device is not None and type(device) is not Device:
            break
        backend = resolve(device).backend
        if backend.on_card:
            break
"""
_TAIL = """
        try:
            result = way({given})
        except _ERRORS:
            break
        if type(result) is not _ndarray{or_turned}:
            if isinstance(result, generic):
                result = asarray(result)
            elif result is None:
                break
            else:
                return _delivered(backend, result, {first}, c_order, tuple_of)
        array = new()
        array.backend = backend
        array.raw = result
        return array
    return composed({passed})
"""


def _decorated(way, backend_of, c_order, tuple_of, composed):
    """Return a composed function with a short way, which is written out when it is called."""
    name, space = composed.__name__, dict(_SHARED)
    call = functools.wraps(composed)(FunctionType(_FIRST_CODE, space, name))
    space |= {"way": way, "composed": composed, "c_order": c_order, "tuple_of": tuple_of}
    space |= {"call": call, "write_out": functools.partial(_write_out, backend_of)}
    return call


def _write_out(backend_of, call):
    """Give a decorated function what it does, for the parameters that both its ways have."""
    space = call.__globals__
    whole, taken = signature(space["composed"]), [*signature(space["way"]).parameters.values()]
    parameters, of_arrays = whole.parameters, backend_of is not _OF_DEVICE
    names = {one.name for one in taken} | (set() if of_arrays else {"device"})
    for one in taken:
        default = parameters[one.name].default
        if type(default) is not type(one.default) or default != one.default:
            raise TypeError(f"{call.__name__}: its short way has another {one.name}")
    prefix = "raw_" if of_arrays else ""
    facts = {
        "name": call.__name__,
        "signature": _with_names_of_defaults(whole),
        "passed": ", ".join([_passed(one) for one in parameters.values()]),
        "others": "".join([_or_given(one) for one in parameters.values() if one.name not in names]),
        "given": ", ".join([_passed(one, prefix) for one in taken]),
        "or_turned": " or not result.flags.c_contiguous" if space["c_order"] else "",
        "first": f"{prefix}{taken[0].name}",
    }
    operands = [_operand(one) for one in taken] if of_arrays else []
    source = "".join([_HEAD, *operands, backend_of, _TAIL]).format(**facts)
    space |= {f"default_{one.name}": one.default for one in parameters.values()}
    exec(compile(source, f"<{call.__name__} of short_calls.py>", "exec"), space, made := {})
    written = made[call.__name__]
    # The code last: until it is there, the first one takes no notice of defaults.
    call.__defaults__, call.__kwdefaults__ = written.__defaults__, written.__kwdefaults__
    call.__code__ = written.__code__


def _with_names_of_defaults(whole):
    """Return the text of a signature, with default_x for what a parameter x is by default."""
    named = [
        one if one.default is one.empty else one.replace(default=_Text(f"default_{one.name}"))
        for one in whole.parameters.values()
    ]
    return str(whole.replace(parameters=named))


class _Text(str):
    """A text that stands for itself in a signature."""

    __slots__ = ()
    __repr__ = str.__str__


def _passed(one, prefix=""):
    """Return how a parameter is passed on in a call, under its name or that and a prefix."""
    if one.kind is one.VAR_POSITIONAL:
        return f"*{prefix}{one.name}"
    if one.kind is one.VAR_KEYWORD:
        return f"**{one.name}"
    return f"{one.name}={prefix}{one.name}" if one.kind is one.KEYWORD_ONLY else prefix + one.name


def _or_given(one):
    """Return the end of a condition: or a parameter is not what it is by default."""
    has_default = one.default is not one.empty
    return f" or {one.name} is not default_{one.name}" if has_default else f" or {one.name}"


def _operand(one):
    """Return what makes of a parameter what a short way gets, still to be formatted."""
    if one.kind is one.VAR_KEYWORD:
        return ""
    part = _OPERAND
    if one.kind is one.VAR_POSITIONAL:
        each = textwrap.indent(part, "    ").replace("{operand}", "one")
        return (_FOR_EACH + each + _IF_ALL).replace("{operands}", one.name)
    if one.default is not one.empty:
        part = _IF_GIVEN + textwrap.indent(part, "    ")
    return part.replace("{operand}", one.name)


def _opened(value, backend):
    """Return the backend of the Arrays in nested lists and these with ndarrays, or None for them.

    Nothing but Arrays of one backend of the CPU, bools, integers and real floats, is opened.
    """
    if type(value) is _ndarray:
        return backend, None
    found = []
    for one in value:
        if type(one) is Array:
            if one.backend is not backend:
                if backend is not None or one.backend.on_card:
                    return backend, None
                backend = one.backend
            one = one.raw
            if one.dtype.kind not in _REAL:
                return backend, None
        elif type(one) in _MAY_HOLD:
            backend, one = _opened(one, backend)
            if one is None:
                return backend, None
        found.append(one)
    return backend, found if type(value) is list else tuple(found)


def _delivered(backend, result, first, c_order, tuple_of):
    """Return what the caller gets of a result that is not None; see short."""
    if result is True:
        wrote(first)
        return None
    is_one, found = type(result) is not list and type(result) is not tuple, []
    for one in (result,) if is_one else result:
        if type(one) is not int:
            data = one if type(one) is _ndarray else np.asarray(one)
            one = new()
            one.backend = backend
            is_plain = not c_order or data.flags.c_contiguous
            one.raw = data if is_plain else np.ascontiguousarray(data)
        found.append(one)
    if is_one:
        return found[0]
    if type(result) is list:
        return found
    return tuple(found) if tuple_of is tuple else tuple_of(*found)


# What the text of a decorated function has names for, but for what is its own.
_SHARED = {"Array": Array, "Device": Device, "new": new, "resolve": resolve, "active": active}
_SHARED |= {"_listeners": _listeners, "_ndarray": _ndarray, "_opened": _opened}
_SHARED |= {"_delivered": _delivered, "_ERRORS": _ERRORS, "_MAY_HOLD": _MAY_HOLD, "_REAL": _REAL}
_SHARED |= {"_ARRAYS": _ARRAYS, "generic": np.generic, "asarray": np.asarray}


_made = {}
exec(compile(_FIRST, "<short_calls.py>", "exec"), _made)
_FIRST_CODE = _made["first"].__code__


def product(x1, x2, of_vectors=False):
    """Return the matrix product of two Arrays, or of two vectors alone, or None; as short(...).

    It is cheaper to ask for than that.
    """
    if type(x1) is not Array or type(x2) is not Array:
        return None
    backend = x1.backend
    if backend.on_card or x2.backend is not backend or _listeners or active:
        return None
    a, b = x1.raw, x2.raw
    if a.dtype is not b.dtype or a.dtype.char not in _MULTIPLIED:
        return None
    try:
        rank = a.ndim
        if rank == 1 == b.ndim:
            result = np.asarray(a.dot(b))
        elif of_vectors:
            return None
        elif 0 < rank < 3 and 0 < b.ndim < 3:
            result = a.dot(b)  # the same, and sooner
        else:
            result = np.matmul(a, b)
    except _ERRORS:
        return None
    array = new()
    array.backend = backend
    array.raw = result if result.flags.c_contiguous else np.ascontiguousarray(result)
    return array
