"""Functions that make evenly spaced values, and grids of coordinates."""

import math

import numpy as np

from ..array import wrap
from ..backends import cpu_making
from ..device import resolve
from ..dispatch import WAYS, apply, observed
from ..dtypes import bool as bool_dtype
from ..dtypes import (
    complex_dtype,
    float64,
    get_default_dtype,
    inexact,
    int64,
    integer_range,
    is_complex,
    is_float,
    is_integer,
    parse_dtype,
)
from . import short_cpu, short_names
from .arguments import Operands, check_shape, from_host, parse_axis, parse_int, parse_scalar
from .elementwise import floor
from .layout import as_array, astype, broadcast_to, expand_dims, reshape
from .lists import is_list
from .mathematics import pow
from .short_calls import made
from .values import copied

__all__ = ["arange", "geomspace", "linspace", "logspace", "meshgrid"]


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Return evenly spaced values in [start, stop), or in [0, start) without a stop.

    Ints give int64, floats the default float. ValueError: a step of 0, a bound that is not finite,
    too many values. OverflowError: a value that an integer dtype cannot hold.

    >>> vg.arange(4).tolist()
    [0, 1, 2, 3]
    >>> vg.arange(1, 2, 0.25).tolist()
    [1.0, 1.25, 1.5, 1.75]
    """
    start, stop = (0, start) if stop is None else (start, stop)
    result = short_cpu.numbers(start, stop, step, dtype, device)
    if result is not None:
        return result
    integers = type(start) is type(stop) is type(step) is int
    if not integers:
        start, stop, step = (parse_scalar(x, "a bound of arange") for x in (start, stop, step))
        integers = not any(isinstance(value, float) for value in (start, stop, step))
    dtype = (int64 if integers else get_default_dtype()) if dtype is None else parse_dtype(dtype)
    if dtype == bool_dtype:
        raise TypeError("arange gives numbers, not bools")
    if step == 0:
        raise ValueError("the step of arange must not be 0")
    if integers:
        length = len_of(start, stop, step)
    else:
        steps = (stop - start) / step
        if not math.isfinite(steps):
            raise ValueError(f"arange from {start} to {stop} by {step} is not finite")
        length = max(0, math.ceil(steps))
    check_shape((length,), max(dtype.itemsize, 8))
    backend = resolve(device).backend
    if integers and is_integer(dtype) and length:
        _check_ends(start, start + (length - 1) * step, dtype)
        return _sequence(backend, length, dtype, start, step, None)
    if is_float(dtype) and length:
        return _sequence(backend, length, dtype, float(start), float(step), None)
    result = WAYS["empty"](backend, (length,), dtype)
    if length:
        values = _progression(start, step, length, dtype)
        values = from_host(values, result.backend)
        apply(result.backend, "copy", values, result)
    return result


def _sequence(backend, length, dtype, start, step, last):
    """Return start + i * step, of ints or of floats; on the CPU at once if nobody observes it."""
    if not backend.on_card and not observed():
        data = cpu_making.sequence(length, dtype, start, step, last)
        if data is not None:
            return wrap(backend, data)
    result = WAYS["empty"](backend, (length,), dtype)
    WAYS["sequence"](backend, result, start, step, last)
    return result


def len_of(start, stop, step):
    """Return len(range(start, stop, step)), which itself fails from 2**63 on."""
    return max(0, -((start - stop) // step))


def _progression(start, step, length, dtype):
    """Return start + i * step for i < length as floats; OverflowError: dtype is too narrow."""
    values = start + np.arange(length, dtype=np.float64) * step
    if is_integer(dtype):
        _check_ends(int(values[0]), int(values[-1]), dtype)
    return values


def _check_ends(first, last, dtype):
    least, most = integer_range(dtype)
    if not (least <= first <= most and least <= last <= most):
        raise OverflowError(f"arange: {first} to {last} is out of bounds for {dtype}")


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, *, device=None):
    """Return `num` evenly spaced values from start to stop, which is left out without `endpoint`.

    dtype: by default the default float, or the complex dtype of such parts if a bound is complex;
    integers are rounded down. retstep: return the step, too. The values are computed in float64.
    ValueError: a negative number. OverflowError: a value that an integer dtype cannot hold.

    >>> vg.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> vg.linspace(0, 1, 4, endpoint=False).tolist()
    [0.0, 0.25, 0.5, 0.75]
    """
    start = parse_scalar(start, "a bound of linspace", complexes=True) * 1.0
    stop = parse_scalar(stop, "a bound of linspace", complexes=True) * 1.0
    num, wanted = _count(num), get_default_dtype() if dtype is None else parse_dtype(dtype)
    spaces = num - 1 if endpoint else num
    if is_float(wanted) and not isinstance(start + stop, complex) and spaces > 0:
        step = (stop - start) / spaces
        if step:  # of NaN and infinity, too
            last = stop if endpoint else None
            result = _sequence(resolve(device).backend, num, wanted, start, step, last)
            return (result, step) if retstep else result
    values, step = np.linspace(start, stop, num, endpoint=bool(endpoint), retstep=True)
    result = _of_floats("linspace", values, dtype, device)
    step = complex(step) if np.iscomplexobj(values) else float(step)
    return (result, step) if retstep else result


@made(short_names.logspace)
def logspace(start, stop, /, num=50, endpoint=True, base=10.0, dtype=None, axis=0, *, device=None):
    """Return powers of `base` with evenly spaced exponents from start to stop; see linspace.

    base: a number, or an array, the powers of whose elements lie along a new axis; the result is on
    the device of an Array, and by default of a float dtype by that of the array. AxisError: no such
    axis.

    >>> print(vg.logspace(0, 2, 3))
    [  1.  10. 100.]
    >>> print(vg.logspace(0, 2, 3, base=[2.0, 3.0], axis=-1))
    [[1. 2. 4.]
     [1. 3. 9.]]
    """
    start, stop = (float(parse_scalar(x, "a bound of logspace")) for x in (start, stop))
    if getattr(base, "ndim", 0) or is_list(base):
        return _powers(start, stop, _count(num), bool(endpoint), base, dtype, axis, device)
    parse_axis(axis, 1)
    base = float(parse_scalar(base, "a bound of logspace"))
    values = np.logspace(start, stop, _count(num), endpoint=bool(endpoint), base=base)
    return _of_floats("logspace", values, dtype, device)


def _powers(start, stop, num, endpoint, base, dtype, axis, device):
    """Return the powers of the elements of an array with evenly spaced exponents."""
    call = Operands("logspace", (base,), None, device)
    (base,) = call.arrays
    dtype = inexact(base.dtype) if dtype is None else parse_dtype(dtype)
    axis = parse_axis(axis, base.ndim + 1)
    shape = [1] * (base.ndim + 1)
    shape[axis] = num
    check_shape((*base.shape[:axis], num, *base.shape[axis:]), 8)
    exponents = np.linspace(start, stop, num, endpoint=endpoint).reshape(shape)
    base = base if is_complex(base.dtype) else astype(base, float64, copy=False)
    powers = pow(expand_dims(base, axis=axis), from_host(exponents, call.backend))
    powers = floor(powers) if is_integer(dtype) and not is_complex(powers.dtype) else powers
    return astype(powers, dtype, copy=False)


@made(short_names.geomspace)
def geomspace(start, stop, /, num=50, endpoint=True, dtype=None, *, device=None):
    """Return `num` values from start to stop, each the same multiple of the one before.

    See linspace. Between complex numbers they lie on a spiral. ValueError: a bound is 0, or real
    ones are not of one sign.

    >>> print(vg.geomspace(1, 1000, 4))
    [   1.   10.  100. 1000.]
    """
    bounds = [parse_scalar(x, "a bound of geomspace", complexes=True) for x in (start, stop)]
    start, stop = bounds if any(isinstance(x, complex) for x in bounds) else map(float, bounds)
    product = start * stop
    if not (start and stop) or (isinstance(product, float) and product <= 0):
        raise ValueError(f"geomspace: {start} and {stop} are not of one sign, or one is 0")
    values = np.geomspace(start, stop, _count(num), endpoint=bool(endpoint))
    return _of_floats("geomspace", values, dtype, device)


def _count(num):
    num = parse_int(num, "a number of values")
    if num < 0:
        raise ValueError(f"the number of values cannot be negative: {num}")
    check_shape((num,), 8)
    return num


def _of_floats(name, values, dtype, device):
    """Return float64 values as an Array in a dtype, integers rounded down."""
    if dtype is None:
        dtype = get_default_dtype() if values.dtype.kind == "f" else complex_dtype(bool_dtype)
    dtype = parse_dtype(dtype)
    if is_integer(dtype) and values.dtype.kind == "f" and values.size:
        values = np.floor(values, out=values)
        least, most = integer_range(dtype)
        first, last = float(values.min()), float(values.max())
        if not (least <= first and last <= float(most)):
            raise OverflowError(f"{name}: {first} to {last} is out of bounds for {dtype}")
        if last < float(most) + 1:  # or the copy cuts off what is rounded up to a power of two
            values = values.astype(dtype)
    backend = resolve(device).backend
    if values.dtype == dtype and not backend.on_card:
        return from_host(values, backend)  # nobody else has them
    result = WAYS["empty"](backend, (values.size,), dtype)
    if values.size:
        apply(backend, "copy", from_host(values, backend), result)
    return result


def meshgrid(*arrays, indexing="xy", sparse=False, copy=True):
    """Return the coordinates of the points of a grid, an array for each axis, as a tuple.

    indexing: "xy" lets the first array run along the second axis, as in pictures, "ij" along the
    first. sparse: axes along which an array does not change have length 1. copy=False: read-only
    views. ValueError: another indexing, an array of more than one dimension.

    >>> x, y = vg.meshgrid(vg.asarray([1, 2, 3]), vg.asarray([10, 20]))
    >>> x.tolist(), y.tolist()
    ([[1, 2, 3], [1, 2, 3]], [[10, 10, 10], [20, 20, 20]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing can be 'xy' or 'ij', not {indexing!r}")
    if copy:
        result = short_cpu.grids(arrays, indexing, bool(sparse))
        if result is not None:
            return result
    lines = []
    for i, x in enumerate(arrays):
        array, give = as_array("meshgrid", x)
        if array.ndim > 1:
            raise ValueError(f"meshgrid takes 1-D arrays, not one of shape {array.shape}")
        axis = 1 - i if indexing == "xy" and i < 2 <= len(arrays) else i
        shape = [1] * len(arrays)
        shape[axis] = array.size
        lines.append((reshape(array, tuple(shape)), give))
    if sparse:
        return tuple([give(copied(line) if copy else line) for line, give in lines])
    shape = np.broadcast_shapes(*(line.shape for line, _ in lines))
    grids = [(broadcast_to(line, shape), give) for line, give in lines]
    return tuple([give(copied(grid) if copy else grid) for grid, give in grids])
