"""Indices of grids, triangles and diagonals, between several axes and one; blocks of arrays.

device: of the result where no Array says it.
"""

import math

import numpy as np

from ..array import Array
from ..dtypes import get_default_dtype, int64, is_integer, parse_dtype
from . import short_cpu, short_names
from .arguments import check_shape, is_host, parse_axes, parse_axis, parse_int, parse_shape
from .creation import asarray, ones
from .elementwise import bitwise_invert, greater_equal, less, logical_or, maximum, minimum
from .gathering import _check_target, _in_a_row, _values, _write_back
from .indexing import get
from .indexing import set as assign
from .joining import concat, stack, tile, unstack
from .layout import as_array, astype, broadcast_arrays, broadcast_to, moveaxis, reshape
from .mathematics import floor_divide, remainder
from .matrices import diag, tri
from .ranges import arange
from .reductions import any
from .reductions import max as most
from .reductions import min as least
from .searching import nonzero
from .short_calls import made, short
from .values import copied, item, to_host

__all__ = [
    "block",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "fill_diagonal",
    "fromfunction",
    "indices",
    "ix_",
    "mask_indices",
    "ravel_multi_index",
    "resize",
    "rollaxis",
    "tril_indices",
    "tril_indices_from",
    "trim_zeros",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]

# Of grids -----------------------------------------------------------------------------------------


@made(short_names.indices)
def indices(dimensions, dtype=int64, sparse=False, *, device=None):
    """Return, for each axis of a shape, every element's index along it: shape (axes, *dimensions).

    sparse: a tuple of arrays that have length 1 along all other axes instead.

    >>> rows, columns = vg.indices((2, 3))
    >>> columns.tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    shape = parse_shape(dimensions)
    lines = []
    for axis, n in enumerate(shape):
        line = arange(n, dtype=dtype, device=device)
        lines.append(reshape(line, tuple([n if i == axis else 1 for i in range(len(shape))])))
    if sparse:
        return tuple(lines)
    check_shape((len(shape), *shape), parse_dtype(dtype).itemsize)
    if not lines:
        return arange(0, dtype=dtype, device=device)
    return stack([broadcast_to(line, shape) for line in lines])


def fromfunction(function, shape, *, dtype=None, device=None, **options):
    """Return function(i, j, ...) of the indices of a shape's elements, one array for each axis.

    dtype: of the indices, by default the default float. options: go to the function.

    >>> vg.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype="int64").tolist()
    [[0, 1, 2], [10, 11, 12]]
    """
    dtype = get_default_dtype() if dtype is None else dtype
    grids = short_cpu.index_grids(shape, dtype, device)
    if grids is None:
        grids = unstack(indices(shape, dtype, device=device))
    return function(*grids, **options)


def ix_(*args):
    """Return 1-D arrays as indices of the grid that they span: a[ix_(rows, columns)].

    Bools become the indices at which they are true, for which a call waits on a card. ValueError:
    not 1-D.

    >>> x = vg.asarray([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    >>> x[vg.ix_(vg.asarray([0, 2]), vg.asarray([1, 2]))].tolist()
    [[2, 3], [8, 9]]
    """
    if all(type(x) is list and {*map(type, x)} == {int} for x in args):
        grid = np.ix_(*args)
        if all(x.dtype.kind == "i" for x in grid):  # of larger numbers there are objects
            return grid
    found = []
    for place, x in enumerate(args):
        array, give = as_array("ix_", x if isinstance(x, Array) else np.asarray(x))
        if array.ndim != 1:
            raise ValueError(f"ix_ takes arrays of one dimension, not {array.ndim}")
        if array.dtype.kind == "b":
            (array,) = nonzero(array)
        elif not array.size and not isinstance(x, Array):
            array = astype(array, int64)
        shape = [1] * len(args)
        shape[place] = array.size
        found.append(give(reshape(array, tuple(shape))))
    return tuple(found)


def mask_indices(n, mask_func, k=0, *, device=None):
    """Return the indices, one array for each axis, of what a function leaves of an (n, n) matrix.

    mask_func: gets a matrix of ones and k, as vg.triu does.

    >>> rows, columns = vg.mask_indices(3, vg.triu, 1)
    >>> rows.tolist(), columns.tolist()
    ([0, 0, 1], [1, 2, 2])
    """
    n = parse_int(n, "n")
    return nonzero(mask_func(ones((n, n), int64, device=device), k))


@made(short_names.tril_indices)
def tril_indices(n, /, k=0, m=None, *, device=None):
    """Return the indices of a matrix's elements at and below a diagonal: rows and columns.

    n, m: its rows and columns, by default as many. k: column - row of the diagonal.

    >>> rows, columns = vg.tril_indices(2)
    >>> rows.tolist(), columns.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    return nonzero(tri(n, m, k, "bool", device=device))


@made(short_names.triu_indices)
def triu_indices(n, /, k=0, m=None, *, device=None):
    """Return the indices of a matrix's elements at and above a diagonal; see tril_indices.

    >>> rows, columns = vg.triu_indices(2)
    >>> rows.tolist(), columns.tolist()
    ([0, 0, 1], [0, 1, 1])
    """
    return nonzero(bitwise_invert(tri(n, m, parse_int(k, "k") - 1, "bool", device=device)))


@short(short_names.tril_indices_from)
def tril_indices_from(x, /, k=0):
    """Return tril_indices of a matrix's shape, on its device. ValueError: not two dimensions.

    >>> x = vg.asarray([[1, 2], [3, 4]])
    >>> x[vg.tril_indices_from(x)].tolist()
    [1, 3, 4]
    """
    rows, columns, device = _matrix("tril_indices_from", x)
    return tril_indices(rows, k, columns, device=device)


@short(short_names.triu_indices_from)
def triu_indices_from(x, /, k=0):
    """Return triu_indices of a matrix's shape, on its device. ValueError: not two dimensions.

    >>> x = vg.asarray([[1, 2], [3, 4]])
    >>> x[vg.triu_indices_from(x)].tolist()
    [1, 2, 4]
    """
    rows, columns, device = _matrix("triu_indices_from", x)
    return triu_indices(rows, k, columns, device=device)


def _matrix(name, x):
    array, _ = as_array(name, x)
    if array.ndim != 2:
        raise ValueError(f"{name} takes a matrix, not {array.ndim} dimensions")
    return (*array.shape, array.device)


def diag_indices(n, /, ndim=2, *, device=None):
    """Return the indices of the diagonal of an array of `ndim` axes of length n, one for each.

    >>> rows, columns = vg.diag_indices(2)
    >>> vg.asarray([[1, 2], [3, 4]])[rows, columns].tolist()
    [1, 4]
    """
    line = arange(parse_int(n, "n"), device=device)
    return (line,) * parse_int(ndim, "ndim")


def diag_indices_from(x, /):
    """Return diag_indices of an array's shape. ValueError: less than two axes, or not as long.

    >>> x = vg.zeros((2, 2))
    >>> x[vg.diag_indices_from(x)] = 5
    >>> x.tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    array, _ = as_array("diag_indices_from", x)
    if array.ndim < 2 or len(set(array.shape)) > 1:
        raise ValueError(f"diag_indices_from: axes of one length are needed, not {array.shape}")
    return diag_indices(array.shape[0], array.ndim, device=array.device)


# Between several axes and one ---------------------------------------------------------------------


@short(short_names.unravel_index, alone=True)
def unravel_index(indices, shape, order="C", *, device=None):
    """Return indices into an array's elements in a row as indices along its axes, a tuple.

    order: of the elements in the row, "C", in which the last axis is the fastest, or "F", the first
    one. ValueError: an index out of range, for which a call waits, another order. TypeError: no
    integers.

    >>> rows, columns = vg.unravel_index(vg.asarray([2, 4]), (2, 3))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [2, 1])
    """
    array, give = _integers("unravel_index", indices, device)
    shape = parse_shape(shape)
    size = math.prod(shape)
    if array.size and item(any(logical_or(less(array, 0), greater_equal(array, size)))):
        raise ValueError(f"unravel_index: an index is out of bounds for an array of size {size}")
    array, found = astype(array, int64, copy=False), []
    is_c = _is_c("unravel_index", order)
    for n in reversed(shape) if is_c else shape:
        found.append(give(remainder(array, n)))
        array = floor_divide(array, n)
    return tuple(reversed(found)) if is_c else tuple(found)


def _is_c(name, order):
    """Whether the last axis is the fastest. ValueError: another order than "C" and "F"."""
    letter = order.upper() if isinstance(order, str) else order
    if letter not in ("C", "F"):
        raise ValueError(f"{name}: order is 'C' or 'F', not {order!r}")
    return letter == "C"


@short(short_names.ravel_multi_index, alone=True)
def ravel_multi_index(multi_index, dims, mode="raise", order="C", *, device=None):
    """Return indices along the axes of a shape as indices into the elements in a row.

    mode: "raise", "wrap" or "clip" what is out of range, or a tuple of that for each axis. order:
    as of unravel_index. ValueError: an index out of range, for which a call waits, not as many
    indices as axes, another mode or order. TypeError: no integers.

    >>> vg.ravel_multi_index((vg.asarray([0, 1]), vg.asarray([2, 1])), (2, 3)).tolist()
    [2, 4]
    """
    shape = parse_shape(dims)
    pairs = [_integers("ravel_multi_index", x, device) for x in multi_index]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(shape)
    if not len(pairs) == len(shape) == len(modes) or not pairs:
        raise ValueError(f"ravel_multi_index: {len(pairs)} indices for {len(shape)} axes")
    arrays = broadcast_arrays(*[array for array, _ in pairs])
    result, axes = None, [*zip(arrays, shape, modes, strict=True)]
    for array, n, how in axes if _is_c("ravel_multi_index", order) else reversed(axes):
        array = _in_range(astype(array, int64, copy=len(arrays) == 1), n, how)
        result = array if result is None else result * n + array
    return pairs[0][1](result)


def _in_range(array, n, mode):
    if mode == "wrap":
        return remainder(array, n)
    if mode == "clip":
        return minimum(maximum(array, 0), n - 1)
    if mode != "raise":
        raise ValueError(f"ravel_multi_index: mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    if array.size and item(any(logical_or(less(array, 0), greater_equal(array, n)))):
        raise ValueError(f"ravel_multi_index: an index is out of bounds for an axis of length {n}")
    return array


def _integers(name, value, device):
    """Return integers as an Array, and what gives the caller their like."""
    if not isinstance(value, Array) and not is_host(value):
        value = asarray(value, device=device)
    array, give = as_array(name, value)
    if not is_integer(array.dtype):
        raise TypeError(f"{name}: indices are integers, not {array.dtype}")
    return array, give


# Diagonals, blocks and the like -------------------------------------------------------------------


def diagflat(x, /, k=0):
    """Return a matrix of zeros with the elements of x, in a row, on a diagonal; see diag.

    >>> vg.diagflat(vg.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    array, give = as_array("diagflat", x)
    return give(diag(reshape(array, (array.size,)), k))


@short(short_names.fill_diagonal)
def fill_diagonal(x, val, /, wrap=False):
    """Write values to the diagonal of an Array: to x[i, i, ...], one behind the other, repeated.

    wrap: go on below a matrix that has more rows than columns. ValueError: less than two axes, or
    more than two that are not of one length, x is read-only. TypeError: x is no Array.

    >>> x = vg.zeros((2, 2))
    >>> vg.fill_diagonal(x, 7)
    >>> x.tolist()
    [[7.0, 0.0], [0.0, 7.0]]
    """
    _check_target("fill_diagonal", x)
    values = reshape(_values("fill_diagonal", val, x), -1)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ValueError(f"fill_diagonal: no diagonal of an array of shape {x.shape}")
    step = 1 + sum(math.prod(x.shape[i:]) for i in range(1, x.ndim))
    end = x.shape[1] * x.shape[1] if x.ndim == 2 and not wrap else None
    row = _in_a_row(x)
    place = get(row, slice(None, end, step))
    if values.size > 1:
        values = _repeated(values, place.size)
    assign(place, ..., values)
    _write_back(row, x)


def _repeated(values, count):
    """Return the elements of a 1-D Array, as often as it takes to have so many."""
    if values.size < count:
        values = tile(values, -(-count // values.size))
    return get(values, slice(count))


def resize(x, new_shape, /):
    """Return the elements of x, in a row and as often as it takes, in another shape.

    Of no elements it is zeros. ValueError: a negative dimension.

    >>> vg.resize(vg.asarray([1, 2, 3]), (2, 4)).tolist()
    [[1, 2, 3, 1], [2, 3, 1, 2]]
    """
    array, give = as_array("resize", x)
    shape = parse_shape(new_shape, array.itemsize)
    count, row = math.prod(shape), reshape(array, (array.size,))
    if not array.size and count:
        row = asarray(np.zeros(1), array.dtype, device=array.device)
    if not count:
        return give(reshape(get(row, slice(0)), shape))
    return give(reshape(copied(_repeated(row, count)), shape))


def trim_zeros(x, /, trim="fb", axis=None):
    """Return a view without the zeros before ("f") and behind ("b") the others. A card waits.

    axis: along it, or along several; None: along all. ValueError: other letters. AxisError: no such
    axis.

    >>> vg.trim_zeros(vg.asarray([0, 0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    >>> vg.trim_zeros(vg.asarray([[0, 0], [0, 3], [0, 0]]), axis=0).tolist()
    [[0, 3]]
    """
    array, give = as_array("trim_zeros", x)
    letters = trim.lower() if isinstance(trim, str) else ""
    if letters not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: trim is 'f', 'b' or 'fb', not {trim!r}")
    axes = tuple(range(array.ndim)) if axis is None else parse_axes(axis, array.ndim)
    if not axes:
        return give(array)
    places = nonzero(array)
    if not places[0].size:
        ends = [(0, -1)] * len(axes)
        letters = "fb"
    elif array.ndim == 1:
        ends = [(item(get(places[0], 0)), item(get(places[0], -1)))]
    else:
        ends = concat([reshape(f(places[i]), (1,)) for i in axes for f in (least, most)])
        ends = to_host(ends).reshape(-1, 2).tolist()
    key = [slice(None)] * array.ndim
    for i, (first, last) in zip(axes, ends, strict=True):
        key[i] = slice(first if "f" in letters else None, last + 1 if "b" in letters else None)
    return give(get(array, tuple(key)))


@short(short_names.rollaxis, c_order=False)
def rollaxis(x, axis, start=0, /):
    """Return a view with an axis moved to stand before another, see moveaxis. AxisError: none.

    >>> vg.rollaxis(vg.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    array, give = as_array("rollaxis", x)
    axis, start = parse_axis(axis, array.ndim), parse_int(start, "start")
    if start < 0:
        start += array.ndim
    if not 0 <= start <= array.ndim:
        raise np.exceptions.AxisError(start, array.ndim + 1)
    return give(moveaxis(array, axis, start - (axis < start)))


@short(short_names.block)
def block(arrays, /):
    """Return arrays put together as nested lists say: the innermost along the last axis.

    Python scalars count as arrays. ValueError: lists of several depths, an empty one, shapes that
    do not fit, Arrays of several devices.

    >>> a, b = vg.ones((2, 2)), vg.zeros((2, 1))
    >>> print(vg.block([[a, b]]))
    [[1. 1. 0.]
     [1. 1. 0.]]
    """
    leaves = []
    depth = _depth(arrays, leaves)
    like = next((x for x in leaves if isinstance(x, Array)), None)
    if like is None:
        return np.block(arrays)
    leaf_ndim = [x.ndim if isinstance(x, Array) else np.ndim(x) for x in leaves]
    ndim = max(depth, *leaf_ndim)
    result = _joined(arrays, like.device, ndim)[0]
    return result if depth else copied(result)


def _depth(arrays, leaves):
    """Return how deep lists are nested, and collect what they hold."""
    if not isinstance(arrays, list):
        leaves.append(arrays)
        return 0
    depths = {_depth(one, leaves) for one in arrays}
    if len(depths) != 1:
        raise ValueError("block: lists of several depths, or one without arrays")
    return depths.pop() + 1


def _joined(arrays, device, ndim):
    """Return nested lists as one Array of `ndim` axes, and how deep they are."""
    if isinstance(arrays, list):
        parts = [_joined(one, device, ndim) for one in arrays]
        depth = parts[0][1] + 1
        return concat([part for part, _ in parts], axis=-depth), depth
    array = arrays if isinstance(arrays, Array) else asarray(arrays, device=device)
    return reshape(array, (1,) * (ndim - array.ndim) + array.shape), 0
