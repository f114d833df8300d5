"""State_dicts: what a network has learned, by name."""

from collections import namedtuple

import numpy as np

from ..array import Array
from ..autograd.transforms import no_grad
from ..dtypes import is_float
from ..errors import StateError
from ..functions.creation import asarray
from ..functions.creation import to as moved
from ..functions.layout import astype
from .parameters import Parameter, mark

Keys = namedtuple("Keys", "missing_keys unexpected_keys")


def targets(module):
    """Return {name: the parameter or buffer itself} of all that a state_dict has."""
    found = {}
    for place, one in module.named_modules(remove_duplicate=False):
        kept = {n: x for n, x in one._buffers.items() if n not in one._volatile}
        for name, array in (one._parameters | kept).items():
            if array is not None:
                found[f"{place}.{name}" if place else name] = array
    return found


def state_dict(module, prefix, keep_vars):
    """Return {name: Array}; see Module.state_dict."""
    return {prefix + n: x if keep_vars else x.detach() for n, x in targets(module).items()}


def load_state_dict(module, given, strict, assign):
    """Copy values into a module, or make them its own; see Module.load_state_dict."""
    if not hasattr(given, "keys"):
        raise TypeError(f"a state_dict is a dict, not {type(given).__name__}")
    wanted = targets(module)
    missing = [name for name in wanted if name not in given]
    unexpected = [name for name in given if name not in wanted]
    complaints = []
    if strict and unexpected:
        complaints.append(f"unexpected: {', '.join(map(repr, unexpected))}")
    if strict and missing:
        complaints.append(f"missing: {', '.join(map(repr, missing))}")
    values = {}
    for name, target in wanted.items():
        if name in given:
            values[name] = value = _array(name, given[name])
            if tuple(value.shape) != target.shape:
                complaints.append(f"{name!r} has {tuple(value.shape)}, not {target.shape}")
    if complaints:
        raise StateError(f"{type(module).__name__} and its state differ; {'; '.join(complaints)}")
    made, ready = _assigned if assign else _on, {}  # one for all names of a parameter
    with no_grad():
        for name, value in values.items():
            target = wanted[name]
            here = value if isinstance(given[name], Array) else moved(value, target.device)
            ready[id(target)] = made(name, here, target)
        for name, target in wanted.items():
            value = ready.get(id(target))
            if value is not None and assign:
                _assign(module, name, value, target.requires_grad)
            elif value is not None:
                target[...] = value
    return Keys(missing, unexpected)


def _array(name, value):
    """Return an Array or an ndarray of numbers."""
    if isinstance(value, Array):
        return value
    try:
        return asarray(np.asarray(value), device="cpu")
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name!r} is no array of numbers: {error}") from None


def _on(name, value, target):
    """Return an Array of the device and dtype of another, in memory of its own."""
    try:
        return astype(moved(value.detach(), target.device), target.dtype)
    except TypeError as error:
        raise TypeError(f"{name!r}: {error}") from None


def _assigned(name, value, target):
    """Return what takes another's place: an Array of the same memory, a Parameter itself."""
    if not isinstance(target, Parameter):
        return value.detach()
    if target.requires_grad and not is_float(value.dtype):
        raise TypeError(f"{name!r}: a parameter that requires gradients cannot be {value.dtype}")
    return value if isinstance(value, Parameter) else Parameter(value, target.requires_grad)


def _assign(module, name, value, requires_grad):
    if isinstance(value, Parameter):
        value.requires_grad_(requires_grad)
    owner, _, name = name.rpartition(".")
    setattr(module.get_submodule(owner), name, value)


# Pickling: an Array comes back untracked, one of several places once ------------------------------


def packed(array):
    """Return what is pickled of a parameter or a buffer: (Array, is a Parameter, requires_grad)."""
    return None if array is None else (array, isinstance(array, Parameter), array.requires_grad)


def unpacked(state):
    """Return the parameter or buffer again: the Array itself, as others may have it too."""
    if state is None:
        return None
    array, is_parameter, requires_grad = state
    if is_parameter and not isinstance(array, Parameter):
        return mark(array, requires_grad)
    return array
