"""The short way of functions on the CPU device: one call of NumPy for the whole of each.

It is taken while nobody observes the seam (dispatch.py), for Arrays of the CPU device that no
gradients are recorded for, of bools, integers and real floats, with plain numbers beside them.
Whatever else there is, errors included, goes the long way: of elements that are moved or chosen the
result is the same to the bit, and of others it is computed as the long way does it. Arguments that
a short way does not take are seen before it is called: Python 3.11.2, say, loses an interrupt that
comes while it says of a call that its arguments do not fit.
"""

import functools
import operator
import sys
from inspect import CO_VARARGS, Parameter, signature

import numpy as np

from ..array import Array, new
from ..backends.cpu_results import wrote
from ..device import Device, resolve
from ..dispatch import _listeners
from ..native.abi import MAX_NDIM
from .casting import active

_ndarray = np.ndarray
_LISTS = (list, tuple)
_MULTIPLIED = "fdbhilqBHILQ"  # dtypes whose products NumPy adds up as we do
_REAL = "buif"
_ERRORS = (TypeError, ValueError, IndexError, ArithmeticError, AttributeError, MemoryError)


def numpys(function, of_lists=True):
    """Return a decorator: NumPy's function is taken instead, where it gives the same.

    It is for an array, or with of_lists a list of arrays, and integers.
    """

    def decorate(composed):
        @functools.wraps(composed)
        def call(*arguments, **options):
            first = arguments[0] if arguments else None
            parts = first if of_lists and type(first) in _LISTS else (first,)
            if not parts or type(parts[0]) is not Array or _listeners:
                return composed(*arguments, **options)
            backend, raws = parts[0].backend, []
            if backend.on_card or (options and options.keys() != _AXIS):
                return composed(*arguments, **options)
            for one in parts:
                if type(one) is not Array or one.backend is not backend:
                    return composed(*arguments, **options)
                raws.append(one.raw)
                if raws[-1].dtype.kind not in _REAL:
                    return composed(*arguments, **options)
            for value in (*arguments[1:], *options.values()):
                if type(value) is not int and value is not None:
                    return composed(*arguments, **options)
            try:
                result = function(raws if parts is first else raws[0], *arguments[1:], **options)
            except _ERRORS:
                return composed(*arguments, **options)
            if type(result) is not np.ndarray:
                result = np.asarray(result)
            if result.ndim > MAX_NDIM:
                return composed(*arguments, **options)
            return _array(backend, result)

        return call

    return decorate


_AXIS = {"axis"}


def short(function, c_order=True, of=tuple, alone=False):
    """Return a decorator: what function(...) gives of ndarrays is taken, unless that is None.

    The function stands in a module short_*.py. It gets ndarrays for Arrays, in lists too, and all
    else as it is; it gives None, or raises one of NumPy's errors, for what is not for it. Else it
    gives an ndarray or NumPy's scalar, a list or tuple of such and of ints, or True after it has
    written to its first argument. c_order: whether results are in C order, not in the operands', as
    elementwise ones are. of: the class of a tuple, tuple or one with names. alone: the function is
    called without any Array, too, for the current device.
    """
    return functools.partial(_shortened, function, c_order, of, alone)


def _shortened(function, c_order, of, alone, composed):
    code = function.__code__
    count = sys.maxsize if code.co_flags & CO_VARARGS else code.co_argcount
    parameters = signature(composed).parameters.values()
    taken = _named(code, code.co_argcount + code.co_kwonlyargcount, parameters)
    defaults = {one.name: one.default for one in parameters}
    rest = [one.default for one in parameters if one.kind in _IN_PLACE][count:]

    @functools.wraps(composed)
    def call(*arguments, **options):
        if _listeners or active:
            return composed(*arguments, **options)
        backend, raws = None, []
        for one in arguments:
            kind = type(one)
            if kind is Array:
                if one.backend is not backend:
                    if backend is not None or one.backend.on_card:
                        return composed(*arguments, **options)
                    backend = one.backend
                one = one.raw
                if one.dtype.kind not in _REAL:
                    return composed(*arguments, **options)
            elif kind in _OF_ARRAYS:
                if kind is _ndarray:
                    return composed(*arguments, **options)
                if one and type(one[0]) in _OF_ARRAYS:
                    backend, one = _opened_list(one, backend)
                    if one is None:
                        return composed(*arguments, **options)
            raws.append(one)
        if backend is None and alone:
            backend = resolve(None).backend
            if backend.on_card:
                return composed(*arguments, **options)
        if backend is None or (len(raws) > count and not _says_nothing(raws, count, rest)):
            return composed(*arguments, **options)
        if options:
            options_of_way = _asked(options, taken, defaults, backend)
            if options_of_way is None:
                return composed(*arguments, **options)
        else:
            options_of_way = options
        try:
            result = function(*raws, **options_of_way)
        except _ERRORS:
            result = None
        if result is None:
            return composed(*arguments, **options)
        if result is True:
            wrote(raws[0])
            return None
        if type(result) is not _ndarray:
            if type(result) in _LISTS:
                return _several(backend, result, c_order, of)
            result = np.asarray(result)
        elif c_order and not result.flags.c_contiguous:
            result = np.ascontiguousarray(result)
        array = new()
        array.backend = backend
        array.raw = result
        return array

    return call


def _says_nothing(raws, count, rest):
    """Whether arguments in place beyond so many are what they are anyway; they are taken out."""
    if len(raws) - count > len(rest) or not all(map(operator.is_, raws[count:], rest)):
        return False
    del raws[count:]
    return True


def _asked(options, taken, defaults, backend):
    """Return named arguments that say something, with ndarrays for Arrays; None: not this way."""
    asked = {}
    for name, one in options.items():
        if name in taken:
            if type(one) is Array and one.backend is backend and one.raw.dtype.kind in _REAL:
                one = one.raw
            elif type(one) is _ndarray:
                return None
            asked[name] = one
        elif name not in defaults or one is not defaults[name]:
            return None
    return asked


def _several(backend, values, c_order, of):
    """Return a list, or a tuple of a class, of Arrays of ndarrays, and of ints as they are."""
    found = []
    for one in values:
        if type(one) is not int:
            data = one if type(one) is np.ndarray else np.asarray(one)
            one = new()
            one.backend = backend
            is_plain = not c_order or data.flags.c_contiguous
            one.raw = data if is_plain else np.ascontiguousarray(data)
        found.append(one)
    if type(values) is list:
        return found
    return tuple(found) if of is tuple else of(*found)


def _named(code, count, parameters):
    """Return the names of a short way's arguments that the composed one takes by name, too."""
    places = {one.name for one in parameters if one.kind is Parameter.POSITIONAL_ONLY}
    return {*code.co_varnames[:count]} - places


_IN_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_OF_ARRAYS = {Array, np.ndarray, list, tuple}


def _opened_list(values, backend):
    """Return the backend of the Arrays in nested lists and these with ndarrays, or None for them.

    Nothing but Arrays of one backend of the CPU, bools, integers and real floats, is opened.
    """
    found = []
    for one in values:
        kind = type(one)
        if kind is Array:
            if one.backend is not backend and backend is not None:
                return backend, None
            backend = one.backend
            if backend.on_card or one.raw.dtype.kind not in _REAL:
                return backend, None
            one = one.raw
        elif kind is list or kind is tuple:
            backend, one = _opened_list(one, backend)
            if one is None:
                return backend, None
        elif kind is np.ndarray:
            return backend, None
        found.append(one)
    return backend, found if type(values) is list else tuple(found)


def made(function):
    """Return a decorator for functions of no Arrays: what function(...) gives is taken on the CPU.

    The function gets all arguments but `device`, and gives an ndarray, a tuple of such, or None, or
    raises one of NumPy's errors, for what is not for it.
    """
    code = function.__code__
    count, names = code.co_argcount, code.co_argcount + code.co_kwonlyargcount

    def decorate(composed):
        taken = _named(code, names, signature(composed).parameters.values())

        @functools.wraps(composed)
        def call(*arguments, **options):
            device = options.get("device")
            if _listeners or active or (device is not None and type(device) is not Device):
                return composed(*arguments, **options)
            backend = resolve(device).backend
            if backend.on_card:
                return composed(*arguments, **options)
            asked = options
            if "device" in options:
                asked = {name: one for name, one in options.items() if name != "device"}
            if len(arguments) > count or not asked.keys() <= taken:
                return composed(*arguments, **options)
            try:
                result = function(*arguments, **asked)
            except _ERRORS:
                result = None
            if result is None:
                return composed(*arguments, **options)
            if type(result) is tuple:
                return tuple([_array(backend, one) for one in result])
            return _array(backend, result)

        return call

    return decorate


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
    return _array(backend, result)


def _array(backend, data, c_order=True):
    """Return a new Array of an ndarray, in C order if that is wanted."""
    array = new()
    array.backend = backend
    if type(data) is not np.ndarray:
        data = np.asarray(data)
    array.raw = np.ascontiguousarray(data) if c_order and not data.flags.c_contiguous else data
    return array
