"""Short ways of views, grids, indices and what is made without Arrays: see short_calls.py."""

import math

import numpy as np

from ..backends.cpu_ways import may_share
from ..dtypes import get_default_dtype, int64, parse_dtype
from ..native.abi import MAX_NDIM
from .short_numpy import _INTEGERS, _fits, _indices, _is_real
from .short_ufuncs import FLOATS

_FEW = 2000  # elements of a triangle that are sooner found at once
_LONGEST = 2**31  # elements that are made here


def _are_ints(*values):
    for one in values:  # not by a generator, which costs as much as a small call
        if type(one) is int and -_LONGEST < one < _LONGEST:
            continue
        return False
    return True


# Views --------------------------------------------------------------------------------------------


def diagonal(x, offset=0, axis1=0, axis2=1):
    are_ints = type(offset) is type(axis1) is type(axis2) is int
    if type(x) is not np.ndarray or x.ndim < 2 or not are_ints:
        return None
    rows, columns = x.shape[axis1], x.shape[axis2]
    view = x.diagonal(max(-rows, min(offset, columns)), axis1, axis2)
    if x.flags.writeable:
        view.flags.writeable = True
    return view


def swapaxes(x, axis1, axis2):
    return x.swapaxes(axis1, axis2) if _are_ints(axis1, axis2) else None


def rollaxis(x, axis, start=0):
    return np.rollaxis(x, axis, start) if _are_ints(axis, start) else None


def unstack(x, axis=0):
    if type(x) is not np.ndarray or not x.ndim or type(axis) is not int:
        return None
    if axis:
        x = np.moveaxis(x, axis, 0)
    return tuple(x) if x.ndim > 1 else tuple([x[i, ...] for i in range(x.size)])


def atleast_2d(*arrays):
    if len(arrays) != 1 or type(arrays[0]) is not np.ndarray:
        return None
    (x,) = arrays
    return x if x.ndim > 1 else x.reshape(1, x.size)


def atleast_1d(*arrays):
    if len(arrays) != 1 or type(arrays[0]) is not np.ndarray:
        return None
    (x,) = arrays
    return x if x.ndim else x.reshape(1)


def atleast_3d(*arrays):
    if len(arrays) != 1 or type(arrays[0]) is not np.ndarray:
        return None
    (x,) = arrays
    if x.ndim == 1:
        return x[None, :, None]
    return x if x.ndim > 2 else x[..., None] if x.ndim else x.reshape(1, 1, 1)


def broadcast_arrays(*arrays):
    if len(arrays) != 1 or type(arrays[0]) is not np.ndarray:
        return None
    view = arrays[0].view()
    view.flags.writeable = False
    return (view,)


def dsplit(x, indices_or_sections):
    sections = indices_or_sections
    if type(sections) is not int or not sections > 0 or x.ndim < 3 or x.shape[2] % sections:
        return None
    n = x.shape[2] // sections
    return [x[:, :, i * n : i * n + n] for i in range(sections)] if n else None


_ZERO = bytes(16)


def imag(x):
    """Return zeros that cannot be written to and take no memory."""
    return np.ndarray(x.shape, x.dtype, _ZERO, 0, (0,) * x.ndim) if type(x) is np.ndarray else None


# Indices ------------------------------------------------------------------------------------------


def unravel_index(indices, shape):
    indices = indices if type(indices) is int else _indices(indices)
    if indices is None or type(shape) is not tuple or not shape or not _are_ints(*shape):
        return None
    if min(shape) < 0:
        return None
    return np.unravel_index(indices, shape)


def ravel_multi_index(multi_index, dims):
    if type(multi_index) is not tuple or type(dims) is not tuple or not _are_ints(*dims):
        return None
    if {*map(type, multi_index)} == _INTEGERS:
        return np.ravel_multi_index(multi_index, dims)
    for one in multi_index:
        if type(one) is not np.ndarray or one.dtype.kind not in "iu":
            return None
    return np.ravel_multi_index(multi_index, dims)


def tril_indices_from(x, k=0):
    return tril_indices(x.shape[0], k, x.shape[1]) if x.ndim == 2 else None


def triu_indices_from(x, k=0):
    return triu_indices(x.shape[0], k, x.shape[1]) if x.ndim == 2 else None


def tril_indices(n, k=0, m=None):
    m = n if m is None else m
    if not _are_ints(n, k, m) or n < 0 or m < 0:
        return None
    return np.tri(n, m, k, bool).nonzero() if n * m <= _FEW else np.tril_indices(n, k, m)


def triu_indices(n, k=0, m=None):
    m = n if m is None else m
    if not _are_ints(n, k, m) or n < 0 or m < 0:
        return None
    if n * m > _FEW:
        return np.triu_indices(n, k, m)
    return np.logical_not(np.tri(n, m, k - 1, bool)).nonzero()


def indices(dimensions, dtype=int64, sparse=False):
    if type(dimensions) is not tuple or not dimensions or not _are_ints(*dimensions) or sparse:
        return None
    dtype = parse_dtype(dtype)
    if dtype.char not in "fdilq" or len(dimensions) >= MAX_NDIM or min(dimensions) < 0:
        return None
    result = np.empty((len(dimensions), *dimensions), dtype)
    for axis, n in enumerate(dimensions):
        line = np.arange(n, dtype=dtype)
        result[axis] = line.reshape((n,) + (1,) * (len(dimensions) - axis - 1))
    return result


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None):
    """Return powers with evenly spaced exponents, computed as np.logspace does it."""
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    if not _are_ints(num) or num < 2 or dtype.char not in "fd" or type(endpoint) is not bool:
        return None
    if any(type(one) not in (int, float) for one in (start, stop, base)):
        return None
    start, stop, base = float(start), float(stop), float(base)
    step = (stop - start) / (num - 1 if endpoint else num)
    if not step or not math.isfinite(step):
        return None
    exponents = np.arange(num, dtype=np.float64)
    exponents *= step
    exponents += start
    if endpoint:
        exponents[-1] = stop
    return np.power(base, exponents, out=exponents).astype(dtype, copy=False)


def geomspace(start, stop, num=50, endpoint=True, dtype=None):
    """Return powers of 10 from one number to another, computed as np.geomspace does it."""
    if type(start) not in (int, float) or type(stop) not in (int, float):
        return None
    start, stop = float(start), float(stop)
    sign = math.copysign(1.0, start)
    start, stop = np.float64(start * sign), np.float64(stop * sign)
    if not (0 < start < math.inf and 0 < stop < math.inf):
        return None
    bounds = float(np.log10(start)), float(np.log10(stop))
    values = logspace(*bounds, num, endpoint, 10.0, np.float64)
    if values is None:
        return None
    values[0] = start
    if endpoint:
        values[-1] = stop
    values *= sign
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    return values.astype(dtype, copy=False) if dtype.char in FLOATS else None


def tri(n_rows, n_cols=None, k=0, dtype=None):
    n_cols = n_rows if n_cols is None else n_cols
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    if not _are_ints(n_rows, n_cols, k) or n_rows < 0 or n_cols < 0 or dtype.kind not in "buif":
        return None
    return np.tri(n_rows, n_cols, k, dtype)


# Windows --------------------------------------------------------------------------------------


def _floats_of(dtype):
    """The dtype of what is made, or None: it is not made here."""
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    return dtype if dtype.char in FLOATS else None


def _angles(M):
    """Return the angles of the points of a window, in float64, as NumPy computes them."""
    if type(M) is not int or not 1 < M < _LONGEST:
        return None
    angles = np.arange(1 - M, M, 2, dtype=np.float64)
    angles *= math.pi
    angles /= M - 1
    return angles


def raised_cosine(middle, share):
    """Return the short way of a window that is a cosine times a share above a number."""

    def compute(M, *, dtype=None):
        dtype, angles = _floats_of(dtype), _angles(M)
        if dtype is None or angles is None:
            return None
        result = np.cos(angles, out=angles)
        result *= share
        result += middle
        return result.astype(dtype, copy=False)

    return compute


hanning, hamming = raised_cosine(0.5, 0.5), raised_cosine(0.54, 0.46)


def blackman(M, *, dtype=None):
    dtype, angles = _floats_of(dtype), _angles(M)
    if dtype is None or angles is None:
        return None
    result, angles = np.cos(angles), np.multiply(angles, 2.0, out=angles)
    result *= 0.5
    result += 0.42
    angles = np.cos(angles, out=angles)
    angles *= 0.08
    result += angles
    return result.astype(dtype, copy=False)


def bartlett(M, *, dtype=None):
    dtype = _floats_of(dtype)
    if dtype is None or type(M) is not int or not 1 < M < _LONGEST:
        return None
    result = np.arange(1 - M, M, 2, dtype=np.float64)
    result /= M - 1
    np.abs(result, out=result)
    np.subtract(1.0, result, out=result)
    return result.astype(dtype, copy=False)


def kaiser(M, beta, *, dtype=None):
    dtype = _floats_of(dtype)
    if dtype is None or type(M) is not int or not 1 <= M < _LONGEST:
        return None
    if type(beta) is not int and type(beta) is not float:
        return None
    return np.kaiser(M, beta).astype(dtype, copy=False)


# Putting together, choosing, writing --------------------------------------------------------------


def block(arrays):
    first = arrays
    while type(first) is list and first:
        first = first[0]
    if type(first) is not np.ndarray or type(arrays) is not list:
        return None
    return np.block(arrays) if _are_blocks(arrays, first.dtype) else None


def _are_blocks(arrays, dtype):
    """Whether nested lists hold ndarrays of one dtype alone."""
    for one in arrays:
        if type(one) is list:
            if not _are_blocks(one, dtype):
                return False
        elif type(one) is not np.ndarray or one.dtype is not dtype:
            return False
    return True


def choose(x, choices):
    if type(choices) is not list or not 0 < len(choices) <= 32 or _indices(x) is None:
        return None
    dtype = choices[0].dtype if type(choices[0]) is np.ndarray else None
    for one in choices:
        if not (type(one) is int if dtype is None else type(one) is np.ndarray):
            return None
        if dtype is not None and one.dtype is not dtype:
            return None
    return x.choose(choices)


def piecewise(x, condlist, funclist):
    if not _is_real(x) or not x.ndim or type(condlist) is not list or type(funclist) is not list:
        return None
    if len(condlist) != len(funclist) or not all(_fits(x, one) for one in funclist):
        return None
    for mask in condlist:
        if type(mask) is not np.ndarray or mask.dtype.kind != "b" or mask.shape != x.shape:
            return None
    result = np.zeros(x.shape, x.dtype)
    for mask, value in zip(condlist, funclist, strict=True):
        if type(value) is np.ndarray:
            return None
        result[mask] = value
    return result


def place(x, mask, vals):
    if not _is_real(x) or type(mask) is not np.ndarray or mask.dtype.kind != "b":
        return None
    if mask.shape != x.shape or not x.flags.writeable or type(vals) is not list or not vals:
        return None
    if may_share(x, mask):
        return None
    if not all(type(one) is not np.ndarray and _fits(x, one) for one in vals):
        return None
    np.place(x, mask, vals)
    return True


def fill_diagonal(x, val, wrap=False):
    if not _is_real(x) or x.ndim != 2 or not x.flags.c_contiguous or not x.flags.writeable:
        return None
    if type(val) is np.ndarray or not _fits(x, val) or type(wrap) is not bool:
        return None
    columns = x.shape[1]
    x.reshape(-1)[: None if wrap else columns * columns : columns + 1] = val
    return True
