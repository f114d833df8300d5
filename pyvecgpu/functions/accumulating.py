"""Writes to places that are named several times, of which every one counts, in a fixed order.

The indices are sorted, so that those of one place lie side by side; their values are combined with
those 1, 2, 4, ... before them that are of the same place, and the last one has them all. So the
result depends neither on the device nor on who comes first there. Halves are added in float32.
"""

import numpy as np

from ..array import Array
from ..dispatch import apply
from ..dtype_queries import can_cast, result_type
from ..dtypes import float32, is_half
from . import advanced
from .arguments import from_host, is_scalar, parse_axis
from .elementwise import add, maximum, minimum, multiply, subtract, where
from .gathering import _check_target, _in_a_row, _indices, _values, _write_back
from .indexing import get
from .indexing import set as assign
from .keys import NotBasicError, parse_key
from .layout import astype, broadcast_to, moveaxis, reshape
from .ranges import arange
from .values import to_host

__all__ = ["index_add"]


def index_add(x, indices, values, /, axis=0):
    """Add values to the parts of x at indices along an axis; what is named twice gets both.

    indices: integers, 1-D; negative ones count from the end. values: of the shape of
    take(x, indices, axis), or broadcast to it, and cast to x's dtype. For indices on a card the
    call waits. IndexError: out of range, or no integers. ValueError: values that do not fit,
    indices of another dimension, x is read-only. TypeError: x is no Array, or values of a higher
    kind than its dtype. AxisError: no such axis.

    >>> x = vg.zeros(3)
    >>> vg.index_add(x, vg.asarray([0, 2, 0]), vg.asarray([1.0, 2.0, 10.0]))
    >>> x.tolist()
    [11.0, 0.0, 2.0]
    """
    _check_target("index_add", x)
    indices = _indices("index_add", indices, x)
    if indices.ndim != 1:
        raise ValueError(f"index_add: indices have one dimension, not {indices.ndim}")
    axis = parse_axis(axis, x.ndim)
    shape = (*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    values = broadcast_to(_operand("index_add", values, x), shape)
    _accumulate(moveaxis(x, axis, 0), indices, moveaxis(values, axis, 0), add, add)


def _at(name, combine, finish, a, key, b):
    """Combine a's elements at a key with b, every time that the key names them."""
    _check_target(name, a)
    b = _operand(name, b, a)
    try:
        parse_key(key, a.shape)
    except NotBasicError:
        pass
    else:
        view = get(a, key)
        assign(view, ..., finish(view, broadcast_to(b, view.shape)))
        return
    row = _in_a_row(a)
    places = get(reshape(arange(a.size, device=a.device), a.shape), key)
    b = reshape(broadcast_to(b, places.shape), (places.size,))
    _accumulate(row, reshape(places, (places.size,)), b, combine, finish)
    _write_back(row, a)


def _operand(name, value, x):
    """Return values as an Array in x's dtype. TypeError: they are of a higher kind."""
    dtype = result_type(x, value) if is_scalar(value) else getattr(value, "dtype", x.dtype)
    if not can_cast(dtype, x.dtype, "same_kind"):
        raise TypeError(f"{name}: values of {dtype} do not go into an array of {x.dtype}")
    return _values(name, value, x)


def _accumulate(x, indices, values, combine, finish):
    """Combine the rows of values that go to one row of an Array, and finish(row, with them)."""
    host = to_host(indices) if isinstance(indices, Array) else indices
    host = advanced.counted_from_0(host, x.shape[0], 0)
    order = host.argsort(kind="stable")
    host = host[order]
    places, backend = from_host(host, x.backend), x.backend
    work = float32 if is_half(x.dtype) else x.dtype
    parts = astype(get(x, places), work, copy=False)
    values = astype(get(values, from_host(order, backend)), work, copy=False)
    step = 1
    while np.any(same := host[step:] == host[:-step]):  # where not one is, none is further apart
        late, early = get(values, slice(step, None)), get(values, slice(None, -step))
        same = from_host(same.reshape(-1, *(1,) * (values.ndim - 1)), backend)
        apply(backend, "copy", where(same, combine(late, early), late), late)
        step *= 2
    assign(x, places, finish(parts, values))


def _bind(function, combine):
    """Give a function NumPy's `at`."""
    name = f"{function.__name__}.at"

    def at(a, indices, b):
        _at(name, combine, function, a, indices, b)

    at.__doc__ = f"""Set a[indices] to {function.__name__}(a[indices], b), for every index.

    A place that is named several times is combined with each of its values. indices: any key of a;
    for one on a card the call waits. IndexError: out of range. ValueError: b does not fit, a is
    read-only. TypeError: a is no Array, or b is of a higher kind than its dtype.
    """
    function.at = at


for _function in (add, maximum, minimum, multiply):
    _bind(_function, _function)
_bind(subtract, add)
