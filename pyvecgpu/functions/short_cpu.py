"""The short ways of composed functions on the CPU device: a few calls of NumPy for the whole.

As those of a card (short_cards.py) they are taken while nobody observes the seam (dispatch.py) and
nothing is exchanged (casting.py), for Arrays that no gradients are recorded for. Each gives None
for whatever else there is: that goes the long way, which says what is wrong.
"""

import math

import numpy as np

from ..array import Array, wrap
from ..backends import cpu_functions, cpu_statistics
from ..backends.cpu_ways import all_true, holds
from ..device import resolve
from ..dispatch import observed
from ..dtypes import get_default_dtype, int64, integer_range, parse_dtype
from ..native.abi import MAX_NDIM
from . import short_cards
from .arguments import parse_axes
from .casting import active

_NUMBERS = (int, float)
_SCALARS = {int, float, bool}
_BACKWARDS = slice(None, None, -1)
LONGEST = 2**31  # numbers in a row that need no look at how many there may be
FEW = 4000  # integers that NumPy goes over twice sooner than once with both bounds


def data_of(x, kinds="buif"):
    """Return the ndarray of an Array if the short ways are open to it, or None.

    kinds: those of its dtype; bfloat16 has NumPy's kind "V".
    """
    if type(x) is not Array or active or observed() or x.backend.on_card:
        return None
    return x.raw if x.raw.dtype.kind in kinds else None


_EXACT = {"i": 2**31, "l": 2**62, "q": 2**62, "f": 2**24, "d": 2**53}  # ints that dtypes hold


def numbers(start, stop, step, dtype, device):
    """Return what arange does of ints, in a dtype that holds them all."""
    if not type(start) is type(stop) is type(step) is int or observed():
        return None
    dtype = int64 if dtype is None else parse_dtype(dtype)
    most = _EXACT.get(dtype.char, 0)
    if not -most < start <= stop < most or not 0 < step < most or stop - start > LONGEST:
        return None
    backend = resolve(device).backend
    if backend.on_card:
        length = -((start - stop) // step)
        return short_cards.numbers(backend, length, dtype, start, step) if length else None
    try:
        return wrap(backend, np.arange(start, stop, step, dtype))
    except MemoryError:
        return None


def of_list(numbers, dtype, device):
    """Return an Array of numbers in lists, nested or not, as creation.asarray makes it, or None."""
    first = numbers
    while type(first) is list or type(first) is tuple:
        if not first:
            return None
        first = first[0]
    if type(first) not in _SCALARS or observed():
        return None
    backend = resolve(device).backend
    if backend.on_card:
        return None
    try:
        values = np.asarray(numbers)
    except (ValueError, TypeError, OverflowError, MemoryError):
        return None
    given = values.dtype
    if given.char == "d":
        if type(first) is not float:  # they may be integers of which int64 does not hold all
            return None
        dtype = get_default_dtype() if dtype is None else dtype
    elif given.char not in "l?":
        return None
    if dtype is None or dtype is given:
        return wrap(backend, values)
    return wrap(backend, values.astype(dtype)) if dtype.char in "fd" else None


def diagonal_matrix(x, k):
    """Return a matrix of zeros with x on a diagonal, for an x of one axis."""
    data = data_of(x)
    if data is None or data.ndim != 1 or type(k) is not int:
        return None
    n, length = data.size + abs(k), data.size
    try:
        flat = np.zeros(n * n, data.dtype)
    except (MemoryError, ValueError):
        return None
    start = max(k, 0) + max(-k, 0) * n
    flat[start : start + length * (n + 1) : n + 1] = data
    return wrap(x.backend, flat.reshape(n, n))


def grids(arrays, indexing, sparse):
    """Return copies of the coordinates of the points of a grid as a tuple, see meshgrid."""
    ndim, lines = len(arrays), []
    if not 0 < ndim <= MAX_NDIM:
        return None
    for i, x in enumerate(arrays):
        data = data_of(x)
        if data is None or data.ndim > 1:
            return None
        axis = 1 - i if indexing == "xy" and i < 2 <= ndim else i
        shape = [1] * ndim
        shape[axis] = data.size
        lines.append((data.reshape(shape), axis))
    whole = [0] * ndim
    for line, axis in lines:
        whole[axis] = line.size
    grids = []
    try:
        for line, _ in lines:
            grid = np.empty(line.shape if sparse else whole, line.dtype)
            grid[...] = line
            grids.append(wrap(arrays[0].backend, grid))
    except (MemoryError, ValueError):
        return None
    return tuple(grids)


def index_grids(shape, dtype, device):
    """Return for each axis of a shape an Array of every element's index along it, or None."""
    if type(shape) is not tuple or not 0 < len(shape) <= MAX_NDIM or observed():
        return None
    for n in shape:
        if type(n) is not int or not 0 <= n < LONGEST:
            return None
    dtype, backend = parse_dtype(dtype), resolve(device).backend
    if backend.on_card or dtype.char not in "fdil":
        return None
    grids = []
    try:
        for axis, n in enumerate(shape, 1):
            grid = np.empty(shape, dtype)
            grid[...] = np.arange(n, dtype=dtype).reshape((n,) + (1,) * (len(shape) - axis))
            grids.append(wrap(backend, grid))
    except (MemoryError, ValueError):
        return None
    return grids


def turned(x, axis):
    """Return a view with the order of the elements reversed along an axis, several or all."""
    data = data_of(x, "buifcV")
    if data is None:
        return None
    if axis is None:
        return wrap(x.backend, data[(_BACKWARDS,) * data.ndim + (...,)])
    if type(axis) is not int or not 0 <= axis < data.ndim:
        return None
    return wrap(x.backend, data[(slice(None),) * axis + (_BACKWARDS, ...)])


def turned_by_90(x, k, axes):
    """Return a view turned k times by 90 degrees in its first two axes."""
    data = data_of(x, "buifcV")
    if data is None or data.ndim < 2 or type(k) is not int:
        return None
    if type(axes) is not tuple or axes != (0, 1):
        return None
    return wrap(x.backend, np.rot90(data, k))


# Elementwise --------------------------------------------------------------------------------------


def _is_within(dtype, scalar):
    """Return False where a dtype of integers is too narrow for a number, which NumPy may wrap."""
    if dtype.kind not in "iu":
        return True
    least, most = integer_range(dtype)
    return least <= scalar <= most


def where(condition, x1, x2):
    """Return x1 where the condition is true, else x2, of which one is a Python scalar."""
    mask = data_of(condition, "b")
    array, scalar = (x2, x1) if type(x2) is Array else (x1, x2)
    data = data_of(array)
    if mask is None or data is None or array.backend is not condition.backend:
        return None
    if not holds(data.dtype, scalar) or not _is_within(data.dtype, scalar):
        return None
    try:
        result = np.where(mask, scalar, data) if array is x2 else np.where(mask, data, scalar)
    except (ValueError, OverflowError, MemoryError):
        return None
    return wrap(condition.backend, result)


def clip(x, low, high):
    """Return x between scalar bounds, of which at least one is not None."""
    data = data_of(x, "uif")
    if data is None or low is high is None:
        return None
    dtype = data.dtype
    is_float = dtype.kind == "f"
    for bound in (low, high):
        if bound is None:
            continue
        if type(bound) not in _NUMBERS or not holds(dtype, bound) or not _is_within(dtype, bound):
            return None
        if is_float and not bound and (bound is high or math.copysign(1.0, bound) < 0):
            return None  # NumPy leaves open which of two zeros is less
    try:
        if is_float or data.size > FEW or low is None or high is None:
            result = np.asarray(data.clip(low, high))
            if is_float and low == 0:
                result += 0.0  # of -0.0, too, 0.0 is the larger one
            return wrap(x.backend, result)
        result = np.maximum(data, low)
        if type(result) is np.ndarray:  # of more than no axes
            np.minimum(result, high, out=result)
            return wrap(x.backend, result)
    except MemoryError:
        return None
    return wrap(x.backend, np.asarray(np.minimum(result, high)))


def rounded(x, decimals):
    """Return the nearest number with so many decimals, 1 or more, as elementwise.round does."""
    data = data_of(x, "uif")
    if data is None or data.dtype.char not in _MOST:
        return None
    try:
        if data.dtype.kind != "f":
            return wrap(x.backend, np.asarray(np.positive(data)))
        if decimals > _MOST[data.dtype.char]:
            return None
        power = 10.0**decimals
        result = np.asarray(data * power)
        np.rint(result, out=result)
        result /= power
        is_finite = np.isfinite(result)
        if not all_true(is_finite):  # it may have been too large
            np.copyto(result, data, where=~is_finite)
    except MemoryError:
        return None
    return wrap(x.backend, result)


_MOST = dict.fromkeys("bhilqBHILQd", 308) | {"f": 38}  # decimals, by which powers of ten there are


def division(x1, x2):
    """Return x1 // x2 and x1 % x2 of Arrays of one dtype, or of one beside a number; or None."""
    first, second = data_of(x1, "uif"), x2
    if first is None or first.dtype.char == "e":
        return None
    if type(x2) is Array:
        second = data_of(x2, "uif")
        if second is None or x2.backend is not x1.backend or second.dtype is not first.dtype:
            return None
    elif not holds(first.dtype, x2) or type(x2) is bool:
        return None
    try:
        quotient, rest = np.divmod(first, second)
    except (ValueError, OverflowError, MemoryError):
        return None
    return tuple([wrap(x1.backend, np.asarray(one)) for one in (quotient, rest)])


def all_close(x1, x2, rtol, atol, equal_nan):
    """Return whether arrays of one dtype are close, a bool: see comparing.isclose."""
    a, b = data_of(x1), data_of(x2)
    if a is None or b is None or x1.backend is not x2.backend or a.dtype is not b.dtype:
        return None
    if not type(rtol) is type(atol) is float or type(equal_nan) is not bool:
        return None
    if a.dtype.kind != "f":
        a, b = a.astype(np.float64), b.astype(np.float64)
    try:
        return all_true(cpu_functions.isclose(a, b, rtol, atol, equal_nan))
    except (ValueError, MemoryError):
        return None


def all_equal(x1, x2):
    """Return whether arrays have the same shape and elements, a bool."""
    a, b = data_of(x1, "buifc"), data_of(x2, "buifc")
    if a is None or b is None or x1.backend is not x2.backend:
        return None
    return a.shape == b.shape and all_true(a == b)


# Of axes ------------------------------------------------------------------------------------------


def _reduced(function, x, axis, keepdims, kinds, *arguments):
    """Return function(data, axes, keepdims, *arguments) as an Array.

    function: gives an ndarray or a number in the dtype of the result.
    """
    data = data_of(x, kinds)
    if data is None or data.size == 0:
        return None
    ndim = data.ndim
    is_plain = type(axis) is int and -ndim <= axis < ndim
    axes = (axis % ndim,) if is_plain else parse_axes(axis, ndim)
    try:
        result = function(data, axes, bool(keepdims), *arguments)
    except MemoryError:
        return None
    return wrap(x.backend, result if type(result) is np.ndarray else np.asarray(result))


def count_nonzero(x, axis, keepdims):
    """Return how many elements are not 0."""
    return _reduced(cpu_statistics.count_nonzero, x, axis, keepdims, "buifc")


def ptp(x, axis, keepdims):
    """Return the largest element minus the smallest."""
    return _reduced(cpu_statistics.ptp, x, axis, keepdims, "uif")


def sum_without_nan(x, axis, keepdims):
    """Return the sum of the floats that are not NaN."""
    return _reduced(cpu_statistics.sum_without_nan, x, axis, keepdims, "f")


def product_without_nan(x, axis, keepdims):
    """Return the product of the floats that are not NaN."""
    return _reduced(cpu_statistics.product_without_nan, x, axis, keepdims, "f")


def mean_without_nan(x, axis, keepdims):
    """Return the mean of the elements that are not NaN."""
    return _reduced(cpu_statistics.mean_without_nan, x, axis, keepdims, "buif")


def variance(x, axis, keepdims, ddof, root):
    """Return the variance, or its square root."""
    return _reduced(cpu_statistics.variance, x, axis, keepdims, "buif", ddof, root)


def variance_without_nan(x, axis, keepdims, ddof, root):
    """Return the variance, or its square root, of the elements that are not NaN."""
    return _reduced(
        cpu_statistics.variance_without_nan, x, axis, keepdims, "buif", float(ddof), root
    )


def extreme_without_nan(x, axis, keepdims, is_largest):
    """Return the largest, or the smallest, of the floats that are not NaN."""
    return _reduced(cpu_statistics.extreme_without_nan, x, axis, keepdims, "f", is_largest)
