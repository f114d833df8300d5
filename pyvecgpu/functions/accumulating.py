"""Writes to places that are named several times, of which every one counts, in a fixed order.

The values for one place are combined with each other first, in an order that depends on shapes and
indices alone, then with what was there. Halves are added in float32. See pvg_accumulate.
"""

from ..dtype_queries import can_cast, result_type
from ..operations import Operation
from . import advanced
from .arguments import is_scalar, parse_axis
from .elementwise import add, maximum, minimum, multiply, subtract
from .gathering import _check_target, _indices, _values
from .indexing import get
from .indexing import set as assign
from .keys import NotBasicError, parse_key
from .layout import broadcast_to

__all__ = ["index_add"]


def index_add(x, indices, values, /, axis=0):
    """Add values to the parts of x at indices along an axis; what is named twice gets both.

    indices: integers, 1-D; negative ones count from the end. values: of the shape of
    take(x, indices, axis), or broadcast to it, and cast to x's dtype. IndexError: out of range (of
    indices on a card at the next wait for it), or no integers. ValueError: values that do not fit,
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
    key = advanced.parse(x, (*[slice(None)] * axis, indices))
    advanced.accumulate(x, key, values, Operation.ADD)


def _at(name, function, a, key, b):
    """Combine a's elements at a key with b, every time that the key names them."""
    _check_target(name, a)
    b = _operand(name, b, a)
    try:
        parse_key(key, a.shape)
    except NotBasicError:
        pass
    else:
        view = get(a, key)
        assign(view, ..., function(view, broadcast_to(b, view.shape)))
        return
    advanced.accumulate(a, advanced.parse(a, key), b, Operation[name.upper()])


def _operand(name, value, x):
    """Return values as an Array in x's dtype. TypeError: they are of a higher kind."""
    dtype = result_type(x, value) if is_scalar(value) else getattr(value, "dtype", x.dtype)
    if not can_cast(dtype, x.dtype, "same_kind"):
        raise TypeError(f"{name}: values of {dtype} do not go into an array of {x.dtype}")
    return _values(name, value, x)


def _bind(function):
    """Give a function NumPy's `at`."""

    def at(a, indices, b):
        _at(function.__name__, function, a, indices, b)

    at.__doc__ = f"""Set a[indices] to {function.__name__}(a[indices], b), for every index.

    A place that is named several times is combined with each of its values. indices: any key of a;
    for bools on a card the call waits. IndexError: out of range. ValueError: b does not fit, a is
    read-only. TypeError: a is no Array, or b is of a higher kind than its dtype.
    """
    function.at = at


for _function in (add, maximum, minimum, multiply, subtract):
    _bind(_function)
