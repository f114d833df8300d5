"""Numbers and Arrays in Python's lists: what arrays they are.

Floats have the default float dtype, integers int64, or uint64 where they need it. Functions take
lists wherever they take arrays, as NumPy's do; arguments.py brings them to a device.
"""

import functools

import numpy as np

from ..array import Array, Tracked
from ..dispatch import apply
from ..dtypes import bool as bool_dtype
from ..dtypes import (
    complex_dtype,
    get_default_dtype,
    is_float,
    is_integer,
    promote,
    promote_scalar,
)
from ..dtypes import uint64 as uint64_dtype

LISTS = (list, tuple, range)


def is_list(value):
    return isinstance(value, LISTS)


def depth(obj):
    """How many axes nested lists have, by the first of each."""
    axes = 0
    while isinstance(obj, LISTS):
        axes += 1
        obj = obj[0] if len(obj) else None
    return axes + getattr(obj, "ndim", 0)


def begins_with_array(obj):
    """Whether the first of what nested lists hold is an Array: the others are not looked at."""
    while isinstance(obj, (list, tuple)):
        if not obj:
            return False
        obj = obj[0]
    return isinstance(obj, Array)


def python_values(obj, dtype):
    """Return a Python scalar or nested lists as an ndarray, and the dtype that they shall have.

    OverflowError: an integer beyond 64 bits, or beyond the range of an integer `dtype`.
    """
    values = np.asarray(obj)
    if values.dtype == object and not values.size:
        values = values.astype(np.float64)
    if values.dtype == object and all(isinstance(item, (int, float)) for item in values.flat):
        wants_floats = dtype is not None and is_float(dtype)
        if wants_floats or any(isinstance(item, float) for item in values.flat):
            values = values.astype(np.float64)  # ints of any size beside floats
        elif all(isinstance(item, int) for item in values.flat):
            raise OverflowError("an integer does not fit into 64 bits")
    if values.dtype == np.complex128:
        return values, (complex_dtype(bool_dtype) if dtype is None else dtype)
    wants_integers = dtype is not None and is_integer(dtype)
    if values.dtype != np.float64:
        if wants_integers and values.dtype.kind in "iu":
            _check_range(values, dtype)
        return values, dtype
    # Floats, or ints that int64 cannot all hold, of which NumPy makes float64.
    floats = values, (get_default_dtype() if dtype is None else dtype)
    if not wants_integers and not (dtype is None and values.size and values.max() >= 2**63):
        return floats
    items = np.asarray(obj, object)
    integers = [item for item in items.flat if isinstance(item, (int, np.integer))]
    if wants_integers:
        _check_range(np.asarray(integers, object), dtype)
    if len(integers) < items.size:
        return floats
    if wants_integers:
        return items.astype(dtype), dtype
    return (items.astype(uint64_dtype) if min(integers) >= 0 else values), None


def _check_range(values, dtype):
    limits = np.iinfo(dtype)
    if values.size and (int(values.min()) < limits.min or int(values.max()) > limits.max):
        raise OverflowError(f"an integer is out of bounds for {dtype}")


def stacked(obj, dtype=None):
    """Return nested lists of Arrays, and of numbers among them, as one Array on their device.

    dtype: None for what they are promoted to. ValueError: they are of several shapes or on several
    devices, or the lists are ragged. TypeError: something else is among them.
    """
    leaves, lengths = [], []
    _walk(obj, 0, leaves, lengths)
    strong = [x for x in leaves if isinstance(x, Array)]
    shape = strong[0].shape
    if any((x.shape if isinstance(x, Array) else ()) != shape for x in leaves):
        raise ValueError("the Arrays and numbers in a list are not of one shape")
    if any(x.backend is not strong[0].backend for x in strong):
        raise ValueError("the Arrays in a list are on several devices; use .to(...)")
    leaves = [x if isinstance(x, Array) else _number(x) for x in leaves]
    if dtype is None:
        dtype = functools.reduce(promote, [x.dtype for x in strong])
        for value in leaves:
            dtype = dtype if isinstance(value, Array) else promote_scalar(dtype, value)
    backend = strong[0].backend
    if len(strong) == len(leaves) and not any(type(x) is Tracked for x in strong):
        result = apply(backend, "concat", strong, 0, True, dtype)  # in one call
        return apply(backend, "reshape", result, (*lengths, *shape))
    result = apply(backend, "empty", (len(leaves), *shape), dtype)
    zeros, ones = (0,) * len(shape), (1,) * len(shape)
    for i, value in enumerate(leaves):
        part = apply(backend, "slice", result, (i, *zeros), (1, *ones), (1, *shape))
        part = apply(backend, "reshape", part, shape)
        if isinstance(value, Array):
            apply(backend, "copy", value, part)
        else:
            apply(backend, "fill", part, value)
    return apply(backend, "reshape", result, (*lengths, *shape))


def _walk(obj, depth, leaves, lengths):
    """Collect what nested lists hold, and how long the lists of each depth are."""
    if not isinstance(obj, (list, tuple)):
        if depth != len(lengths):
            raise ValueError("the lists are ragged")
        leaves.append(obj)
        return
    if depth == len(lengths) and not leaves:
        lengths.append(len(obj))
    if depth == len(lengths) or lengths[depth] != len(obj):
        raise ValueError("the lists are ragged")
    for one in obj:
        _walk(one, depth + 1, leaves, lengths)


def _number(value):
    if isinstance(value, (np.generic, np.ndarray)) and not value.ndim:
        value = value.item()
    if isinstance(value, (bool, int, float, complex)):
        return value
    kind = type(value).__name__
    raise TypeError(f"a number among Arrays is a bool, an int, a float or complex, not {kind}")
