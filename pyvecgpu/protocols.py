"""NumPy's protocols of vg.Array: what happens when one is passed to a function of NumPy.

A function that pyvecgpu has under the same name does the work, on the Array's device, and gives an
Array. Every other one is refused on every device alike, unless vg.implicit_transfers says that
values may go to the host: then NumPy does it there, and gives its own arrays.
"""

import functools as _functools
import sys

import numpy as np

from . import functions, transfers
from .array import Array, Tracked
from .errors import ImplicitTransferError
from .functions import values

_COPY = "copy them to the host with .numpy()"

# NumPy's ufuncs that are the same function here, by NumPy's names; and what a ufunc's methods are.
UFUNCS = {
    getattr(np, name).__name__: getattr(functions, name)
    for name in functions.__all__
    if isinstance(getattr(np, name, None), np.ufunc)
}
_PLAIN = {Array, Tracked, np.ndarray, float, int, bool, complex}  # operands of most calls
# What a call and each method takes here beside its operands.
_REDUCING = {"axis", "dtype", "keepdims", "initial", "where"}
_TAKEN = {"__call__": {"dtype", "where"}, "reduce": _REDUCING, "at": set(), "outer": {"dtype"}}
_TAKEN |= {name: {"axis", "dtype"} for name in ("accumulate", "reduceat")}


def check_untracked(array):
    """RuntimeError if gradients are recorded of an Array, whose values NumPy wants."""
    if type(array) is Tracked:
        raise RuntimeError(
            "NumPy's results have no gradients: use x.detach().numpy(), or compute with functions "
            "of pyvecgpu"
        )


def as_ndarray(array, dtype, copy):
    """Return the values as an ndarray, on the CPU of the same memory; see Array.__array__."""
    check_untracked(array)
    transfers.permit(array, "NumPy", _COPY, stacklevel=4)
    if copy is False and array.device.type != "cpu":
        raise ValueError(f"values on {array.device} have to be copied, and copy is False")
    return np.array(values.to_host(array), dtype=dtype, copy=copy)


def as_buffer(array, flags):
    """Return a memoryview of the memory of an array on the CPU; see Array.__buffer__."""
    if type(array) is Tracked:
        raise BufferError("a buffer has no gradients: use x.detach()")
    if array.device.type != "cpu" or transfers.mode_of(array) == "error":
        raise BufferError(f"a buffer of an array on {array.device} would be a copy; {_COPY}")
    transfers.permit(array, "a buffer", _COPY, stacklevel=4)
    return values.to_host(array).__buffer__(flags)


# Ufuncs -------------------------------------------------------------------------------------------


def call_ufunc(array, ufunc, method, inputs, out, options):
    """Do what a ufunc of NumPy or one of its methods does; see Array.__array_ufunc__."""
    function = UFUNCS.get(ufunc.__name__)
    is_plain = method == "__call__" and out is None and not options
    if is_plain and function is not None and _PLAIN.issuperset(map(type, inputs)):
        return function(*inputs)
    if not all(_is_known(type(value)) for value in (*inputs, *(out or ()))):
        return NotImplemented
    way = function if method == "__call__" else getattr(function, method, None)
    asked = {name: value for name, value in options.items() if not _is_default(name, value)}
    has_them = method != "__call__" or (ufunc.nout == 1 and ufunc.signature is None)
    if way is None or asked.keys() - (_TAKEN[method] if has_them else set()):
        return _ufunc_on_host(array, ufunc, method, inputs, out, options)
    if out is not None:
        asked["out"] = out[0]
    return way(*inputs, **asked)


# What says nothing in a call of NumPy's: by the option's name, values that are as good as none.
_DEFAULTS = {
    "where": (True,),
    "casting": ("same_kind",),
    "order": (None, "K", "A", "C"),
    "subok": (True, False),
    "dtype": (None,),
    "signature": (None,),
    "like": (None,),
}


def _is_default(name, value):
    """Whether an option of NumPy's has a value by which nothing changes here."""
    if type(value).__name__ == "_NoValueType":  # which NumPy passes on for what was not said
        return True
    return any(
        value is one or (isinstance(one, str) and value == one) for one in _DEFAULTS.get(name, ())
    )


def _is_known(kind):
    """Whether values of a class are operands here; what else has __array_ufunc__ comes first."""
    return (
        issubclass(kind, (Array, np.ndarray, np.generic))
        or kind.__module__ == "builtins"
        or not hasattr(kind, "__array_ufunc__")
    )


def _ufunc_on_host(array, ufunc, method, inputs, out, options):
    call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if out or not transfers.allowed():
        raise TypeError(
            f"numpy.{call} does not take pyvecgpu arrays in this way; "
            "use a function of pyvecgpu, or numpy on x.numpy()"
        )
    transfers.permit(array, f"numpy.{call}", _COPY, stacklevel=5)
    return getattr(ufunc, method)(*map(_on_host, inputs), **options)


def _on_host(value):
    """Return an argument of NumPy's with ndarrays for Arrays, in lists and tuples, too."""
    if isinstance(value, (list, tuple)):
        return type(value)([_on_host(one) for one in value])
    if not isinstance(value, Array):
        return value
    check_untracked(value)
    return values.to_host(value)


# Other functions ----------------------------------------------------------------------------------


@_functools.cache
def table():
    """Return {function of NumPy: the function of pyvecgpu with its name}.

    Of numpy, numpy.linalg and numpy.fft all that both have, beside ufuncs, which have a protocol of
    their own.
    """
    package = sys.modules[__package__]
    found = {}
    for theirs, ours in ((np, package), (np.linalg, package.linalg), (np.fft, package.fft)):
        public = set(ours.__all__)
        for name in theirs.__all__:
            function = getattr(theirs, name)
            is_one = callable(function) and not isinstance(function, (np.ufunc, type))
            if name not in public or not is_one:
                continue
            if name == function.__name__ or function not in found:  # not by an alias of it
                found[function] = getattr(ours, name)
    return found


# Functions that are told the device by `like=`, an Array, and by no operand.
_CREATION = (
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "empty",
    "eye",
    "full",
)
_CREATION += (
    "frombuffer",
    "fromfile",
    "fromiter",
    "fromstring",
    "genfromtxt",
    "identity",
    "loadtxt",
)
_CREATION += ("ones", "tri", "zeros")


def call_function(array, function, types, arguments, options):
    """Do what a function of NumPy does; see Array.__array_function__."""
    if not all(_is_ours(kind) for kind in types):
        return NotImplemented
    ours = table().get(function)
    if ours is None:
        return _on_host_or_not(array, function, arguments, options)
    if options.get("device") is None and _creates(function):
        options = options | {"device": array.device}
    if options.get("shape") is not None and function.__name__.endswith("_like"):
        return _in_shape(ours, *arguments, **options)
    unknown = _unknown(ours, arguments, options)
    if unknown is not None:  # look closer
        by_name = _parameters(ours)[0]
        options = {k: v for k, v in options.items() if k in by_name or not _is_default(k, v)}
        unknown = _unknown(ours, arguments, options)
    if unknown is None:
        return ours(*arguments, **options)
    if transfers.allowed():
        return _on_host_or_not(array, function, arguments, options)
    name = _name(function)
    raise TypeError(
        f"{name} with {unknown}: pyvecgpu's function of that name takes none; use {name} on "
        "x.numpy()"
    )


def _in_shape(function, x, *arguments, shape, dtype=None, **options):
    """Return what zeros_like and its kin give in another shape than x has."""
    dtype = x.dtype if dtype is None else dtype
    made = functions.empty(shape, dtype, device=x.device if isinstance(x, Array) else None)
    options = {name: value for name, value in options.items() if not _is_default(name, value)}
    return function(made, *arguments, **options)


def _creates(function):
    return function.__name__ in _CREATION and function.__module__ == "numpy"


def _is_ours(kind):
    return issubclass(kind, (Array, np.ndarray)) or not hasattr(kind, "__array_function__")


@_functools.cache
def _parameters(function):
    """Return (names of parameters, how many can stand by position), or None if that is unknown."""
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    by_name = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return by_name, None
    return by_name, sum(p.kind is not p.KEYWORD_ONLY for p in parameters)


def _unknown(function, arguments, options):
    """Return what of a call a function has no parameter for, in words; None if all is there."""
    known = _parameters(function)
    if known is None:
        return None
    by_name, most = known
    names = [f"{name}=" for name in options if name not in by_name]
    if names:
        return ", ".join(names)
    if most is not None and len(arguments) > most:
        return f"{len(arguments)} arguments by position"
    return None


def _name(function):
    return f"{function.__module__.removesuffix('._core')}.{function.__name__}"


def _on_host_or_not(array, function, arguments, options):
    """Let NumPy compute on the host if that was allowed; else refuse, on every device."""
    name = _name(function)
    if not transfers.allowed():
        raise ImplicitTransferError(
            f"pyvecgpu has no {name}, which would want the values of an array on {array.device}; "
            f"{_COPY}, or say vg.implicit_transfers('allow')"
        )
    transfers.permit(array, name, _COPY, stacklevel=5)
    options = {key: _on_host(value) for key, value in options.items()}
    return function(*map(_on_host, arguments), **options)
