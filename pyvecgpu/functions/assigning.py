"""Functions that write to an Array where a mask is true, and functions made of pieces."""

from ..array import Array, Tracked
from ..dispatch import apply
from ..dtype_queries import can_cast, result_type
from ..dtypes import int64
from . import short_counts, short_names
from .arguments import is_host, is_scalar
from .choosing import where
from .creation import asarray, zeros_like
from .elementwise import maximum
from .gathering import _beside, _check_target, _given, _mask, _values, take
from .grids import resize
from .indexing import get
from .indexing import set as assign
from .layout import as_array, astype, broadcast_to, reshape
from .reductions import count_nonzero
from .scans import cumulative_sum
from .short_calls import short

__all__ = ["copyto", "piecewise", "putmask"]


@short(short_counts.copyto)
def copyto(dst, src, /, casting="same_kind", where=True):
    """Write src to an Array, broadcast and cast, or only where a mask of bools is true.

    ValueError: src or the mask does not fit, dst is read-only. TypeError: a cast that `casting`
    forbids (see can_cast), dst is no Array.

    >>> x = vg.zeros(3)
    >>> vg.copyto(x, vg.asarray([1, 2, 3]), where=vg.asarray([True, False, True]))
    >>> x.tolist()
    [1.0, 0.0, 3.0]
    """
    _check_target("copyto", dst)
    if is_scalar(src):
        dtype = result_type(dst, src)
    else:
        src = _given("copyto", src, dst)
        dtype = src.dtype
    if not can_cast(dtype, dst.dtype, casting):
        raise TypeError(f"copyto: no cast from {dtype} to {dst.dtype} by the rule {casting!r}")
    if where is True:
        assign(dst, ..., src)
        return
    _write_where(_mask("copyto", where, dst), _values("copyto", src, dst), dst)


@short(short_counts.putmask)
def putmask(x, mask, values, /):
    """Write values to an Array where a mask of its shape is true: to each place the one of it.

    values: of x's shape, or fewer or more, of which place i in a row gets number i % count.
    ValueError: another shape of the mask, x is read-only. TypeError: x is no Array.

    >>> x = vg.asarray([1, 2, 3, 4])
    >>> vg.putmask(x, x > 2, x * 10)
    >>> x.tolist()
    [1, 2, 30, 40]
    """
    _check_target("putmask", x)
    mask = _mask("putmask", mask, x)
    if mask.shape != x.shape:
        raise ValueError(f"putmask: a mask of shape {mask.shape} for an array of {x.shape}")
    values = _values("putmask", values, x)
    if values.size:
        values = values if values.shape in ((), x.shape) else resize(values, x.shape)
        _write_where(mask, values, x)


def _write_where(mask, values, x):
    values = broadcast_to(values, x.shape)
    apply(x.backend, "where", broadcast_to(mask, x.shape), values, x, x)


@short(short_names.piecewise)
def piecewise(x, condlist, funclist, /, *args, **kw):
    """Return, where a condition is true, what the function of its place gives of x, and else 0.

    condlist: bools, one array or a list of them; the last true one counts. funclist: functions of
    the elements, then args and kw, or scalars; one more is for where no condition is true. A card
    waits. ValueError: not as many functions.

    >>> x = vg.asarray([-2.0, 0.5, 3.0])
    >>> vg.piecewise(x, [x < 0, x > 1], [lambda v: -v, 10.0]).tolist()
    [2.0, 0.0, 10.0]
    """
    conditions = condlist if isinstance(condlist, (list, tuple)) else (condlist,)
    beside = next((one for one in conditions if isinstance(one, Array)), None)
    array, give = as_array("piecewise", _beside(beside, x))
    if (isinstance(condlist, Array) or is_host(condlist)) and condlist.ndim == array.ndim:
        condlist = [condlist]
    elif isinstance(condlist, (list, tuple)) and all(isinstance(c, bool) for c in condlist):
        condlist = [list(condlist)] if array.ndim else list(condlist)
    masks = [_mask("piecewise", one, array) for one in condlist]
    count = len(masks)
    if len(funclist) == count + 1:
        other = ~masks[0]
        for mask in masks[1:]:
            other = other & ~mask
        masks.append(other)
    elif len(funclist) != count:
        raise ValueError(f"piecewise: {len(funclist)} functions for {count} conditions")
    result = zeros_like(array)
    for mask, function in zip(masks, funclist, strict=True):
        values = function(get(array, mask), *args, **kw) if callable(function) else function
        if Tracked in (type(result), type(values)):
            result = _spread(result, mask, values)
        else:
            assign(result, mask, values)
    return give(result)


def _spread(x, mask, values):
    """Return x with values where a mask is true, as gradients do not follow writes to a part."""
    count, rest = int(count_nonzero(mask)), x.shape[mask.ndim :]
    if not count:
        return x
    if not isinstance(values, Array):
        values = asarray(values, device=x.device)
    values = broadcast_to(astype(values, x.dtype, copy=False), (count, *rest))
    numbers = maximum(cumulative_sum(astype(reshape(mask, -1), int64)) - 1, 0)
    spread = reshape(take(values, numbers, axis=0), x.shape)
    return where(reshape(mask, mask.shape + (1,) * len(rest)), spread, x)
