"""Differences, derivatives and integrals of samples, and what else walks along an axis.

Arrays of one device, or NumPy arrays; Python scalars are weak.
"""

import math

from ..dtypes import bool as bool_dtype
from ..dtypes import float64, inexact, int64, is_complex, is_float, promote_scalar
from . import short_cards, short_counts, short_numpy, short_products
from .arguments import (
    Operands,
    is_scalar,
    parse_axes,
    parse_axis,
    parse_int,
    parse_scalar,
    parse_shape,
    promote_all,
    strong,
)
from .choosing import where
from .complexes import conj
from .elementwise import abs, equal, greater, less, logical_and, not_equal, subtract
from .joining import concat, stack
from .layout import astype, broadcast_to, flip, moveaxis, ravel, reshape
from .mathematics import remainder
from .reductions import sum as total
from .scans import cumsum
from .short_calls import short
from .values import copied
from .working import along, axis_of, can_be_nan, work_dtype

__all__ = [
    "convolve",
    "correlate",
    "cross",
    "diff",
    "ediff1d",
    "gradient",
    "trapezoid",
    "unwrap",
    "vander",
]

_BLOCK = 1 << 24  # products that convolve holds at a time


# Differences --------------------------------------------------------------------------------------


@short(short_numpy.diff, c_order=False)
def diff(x, /, n=1, axis=-1, prepend=None, append=None, *, device=None):
    """Return each element minus the one before along an axis, n times.

    Of bools it is whether they differ. prepend, append: an array or a scalar before and behind x.
    ValueError: n is negative, x has no axes.

    >>> x = vg.asarray([1, 2, 4, 7])
    >>> vg.diff(x).tolist(), vg.diff(x, n=2).tolist()
    ([1, 2, 3], [1, 1])
    """
    if type(n) is int and n == 1 and prepend is append is device is None:
        result = short_cards.differences(x, axis)
        if result is not None:
            return result
    given = [x, *(one for one in (prepend, append) if one is not None)]
    call = Operands("diff", given, None, device)
    n, (array, *more) = parse_int(n, "n"), call.arrays
    if n < 0:
        raise ValueError(f"diff: n is 0 or more, not {n}")
    if is_scalar(array):
        raise TypeError("diff takes arrays, not a scalar")
    axis = axis_of("diff", array, axis)
    if not n:
        return call.give(array)
    more = [_beside(one, array, axis) for one in more]
    before = more[: prepend is not None]
    if more:
        array = concat([*before, array, *more[len(before) :]], axis=axis)
    for _ in range(min(n, max(array.shape[axis], 1))):
        array = _differences(array, axis)
    return call.give(array)


def _beside(value, array, axis):
    """Return what stands before or behind an array along an axis: an Array, a scalar repeated."""
    if is_scalar(value):
        value = strong(value, array.backend, promote_scalar(array.dtype, value))
    if value.ndim:
        return value
    return broadcast_to(value, tuple(1 if i == axis else n for i, n in enumerate(array.shape)))


def _differences(array, axis):
    step = not_equal if array.dtype == bool_dtype else subtract
    return step(along(array, axis, slice(1, None)), along(array, axis, slice(None, -1)))


@short(short_numpy.unwrap)
def unwrap(p, /, discont=None, axis=-1, *, period=2 * math.pi, device=None):
    """Return angles without jumps along an axis: a step of more than half a period is made less.

    By whole periods. discont: the least step that is a jump, at least half the period, which it is
    by default. Integers with an integer period stay integers. AxisError: no such axis. TypeError:
    complex numbers.

    >>> vg.unwrap(vg.asarray([0, 1, 2, -1, 0]), period=4).tolist()
    [0, 1, 2, 3, 4]
    """
    call = Operands("unwrap", (p,), None, device)
    (array,) = call.arrays
    period = parse_scalar(period, "a period")
    if is_scalar(array):
        raise TypeError("unwrap takes arrays, not a scalar")
    dtype = promote_scalar(array.dtype, period)
    if is_complex(dtype):
        raise TypeError(f"unwrap takes real numbers, not {dtype}")
    axis = axis_of("unwrap", array, axis)
    array = astype(array, work_dtype(dtype), copy=False)
    if array.shape[axis] < 2:
        return call.give(copied(astype(array, dtype, copy=False)))
    steps = _differences(array, axis)
    if is_float(dtype):
        half, at_border = period / 2, True
    else:
        half, at_border = period // 2, period % 2 == 0
    within = remainder(steps + half, period) - half
    if at_border:
        within = where(logical_and(equal(within, -half), greater(steps, 0)), half, within)
    least = period / 2 if discont is None else parse_scalar(discont, "discont")
    change = where(less(abs(steps), least), _zero(dtype), within - steps)
    moved = along(array, axis, slice(1, None)) + cumsum(change, axis, change.dtype)
    first = along(array, axis, slice(0, 1))
    return call.give(astype(concat([first, moved], axis=axis), dtype, copy=False))


def _zero(dtype):
    return 0.0 if is_float(dtype) else 0


@short(short_numpy.ediff1d)
def ediff1d(x, /, to_end=None, to_begin=None, *, device=None):
    """Return the differences of the elements in a row, with others before and behind, in x's dtype.

    to_end, to_begin: an array or a scalar. TypeError: bool.

    >>> vg.ediff1d(vg.asarray([1, 2, 4, 7]), to_begin=0).tolist()
    [0, 1, 2, 3]
    """
    call = Operands(
        "ediff1d", [one for one in (x, to_begin, to_end) if one is not None], None, device
    )
    array, *more = call.arrays
    if is_scalar(array):
        raise TypeError("ediff1d takes arrays, not a scalar")
    array = ravel(array)
    result = subtract(array[1:], array[:-1])
    more = [ravel(_beside(one, result[:1], 0)) if is_scalar(one) else ravel(one) for one in more]
    before = more[: to_begin is not None]
    if more:
        result = concat([*before, result, *more[len(before) :]], dtype=array.dtype)
    return call.give(result)


# Derivatives and integrals ------------------------------------------------------------------------


@short(short_numpy.gradient)
def gradient(f, /, *spacing, axis=None, edge_order=1, device=None):
    """Return the derivative along an axis, or along each of several as a tuple; as float.

    spacing: nothing for 1, a scalar for all axes, or for each axis a scalar or the coordinates
    along it. edge_order: 1 or 2, of the differences at both ends. ValueError: too few elements,
    coordinates that do not fit. TypeError: another number of spacings.

    >>> vg.gradient(vg.asarray([1.0, 2.0, 4.0, 7.0])).tolist()
    [1.0, 1.5, 2.5, 3.0]
    >>> vg.gradient(vg.asarray([1.0, 2.0, 4.0, 7.0]), 2.0).tolist()
    [0.5, 0.75, 1.25, 1.5]
    """
    call = Operands("gradient", (f, *spacing), None, device)
    array, *steps = call.arrays
    if is_scalar(array):
        raise TypeError("gradient takes arrays, not a scalar")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is 1 or 2, not {edge_order!r}")
    axes = parse_axes(axis, array.ndim)
    axes = tuple(range(array.ndim)) if axes is None else axes
    dtype, work = inexact(array.dtype), work_dtype(array.dtype)
    array = astype(array, work, copy=False)
    steps = _spacings(array, axes, steps or [1.0])
    results = []
    for one, step in zip(axes, steps, strict=True):
        if array.shape[one] < edge_order + 1:
            raise ValueError(f"gradient: {array.shape[one]} elements along axis {one} are too few")
        even = is_scalar(step) or not step.ndim
        parts = (_even if even else _uneven)(array, one, step, edge_order)
        results.append(call.give(astype(concat(parts, axis=one), dtype, copy=False)))
    return results[0] if len(results) == 1 else tuple(results)


def _spacings(array, axes, steps):
    """Return for each axis a scalar, a 0-d Array, or an Array of the distances."""
    if len(steps) == 1 and (is_scalar(steps[0]) or not steps[0].ndim):
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"gradient: {len(steps)} spacings for {len(axes)} axes")
    found = []
    for axis, step in zip(axes, steps, strict=True):
        if is_scalar(step):
            found.append(float(step))
            continue
        if step.ndim > 1 or (step.ndim and step.size != array.shape[axis]):
            raise ValueError(
                f"gradient: a spacing of shape {step.shape} for {array.shape[axis]} elements"
            )
        step = astype(step, array.dtype, copy=False)
        if step.ndim:
            step = reshape(subtract(step[1:], step[:-1]), _along_shape(array, axis))
        found.append(step)
    return found


def _along_shape(array, axis):
    """Return the shape of what lies along an axis alone, with -1 for its length."""
    return tuple(-1 if i == axis else 1 for i in range(array.ndim))


def _even(f, axis, step, edge_order):
    """Return the derivative at the beginning, in between and at the end, where steps are equal."""

    def at(i):
        return along(f, axis, slice(i, i + 1 or None))

    inner = (along(f, axis, slice(2, None)) - along(f, axis, slice(None, -2))) / (step * 2.0)
    if edge_order == 1:
        return (at(1) - at(0)) / step, inner, (at(-1) - at(-2)) / step
    first = at(0) * (-1.5 / step) + at(1) * (2.0 / step) + at(2) * (-0.5 / step)
    last = at(-3) * (0.5 / step) + at(-2) * (-2.0 / step) + at(-1) * (1.5 / step)
    return first, inner, last


def _uneven(f, axis, steps, edge_order):
    """Return the same where steps differ: those of the parabola through three points."""

    def at(i):
        return along(f, axis, slice(i, i + 1 or None))

    def step(i):
        return along(steps, axis, slice(i, i + 1 or None))

    h, k = along(steps, axis, slice(None, -1)), along(steps, axis, slice(1, None))
    inner = along(f, axis, slice(None, -2)) * (-k / (h * (h + k)))
    inner = inner + along(f, axis, slice(1, -1)) * ((k - h) / (h * k))
    inner = inner + along(f, axis, slice(2, None)) * (h / (k * (h + k)))
    if edge_order == 1:
        return (at(1) - at(0)) / step(0), inner, (at(-1) - at(-2)) / step(-1)
    h, k = step(0), step(1)
    first = at(0) * (-(h * 2.0 + k) / (h * (h + k))) + at(1) * ((h + k) / (h * k))
    first = first + at(2) * (-h / (k * (h + k)))
    h, k = step(-2), step(-1)
    last = at(-3) * (k / (h * (h + k))) + at(-2) * (-(k + h) / (h * k))
    return first, inner, last + at(-1) * ((k * 2.0 + h) / (k * (h + k)))


@short(short_numpy.trapezoid)
def trapezoid(y, /, x=None, dx=1.0, axis=-1, *, device=None):
    """Return the integral of samples along an axis by the trapezoidal rule, as float.

    x: the coordinates, along the axis or of y's shape; dx: their distance, a scalar, without them.
    ValueError: no axes, coordinates that do not fit.

    >>> vg.trapezoid(vg.asarray([1.0, 2.0, 3.0])).item()
    4.0
    >>> vg.trapezoid(vg.asarray([1.0, 2.0, 3.0]), x=vg.asarray([4.0, 6.0, 8.0])).item()
    8.0
    """
    call = Operands("trapezoid", (y, dx if x is None else x), None, device)
    array, step = call.arrays
    if is_scalar(array):
        raise TypeError("trapezoid takes arrays, not a scalar")
    axis = axis_of("trapezoid", array, axis)
    dtype = inexact(array.dtype if is_scalar(step) else promote_all((array, step)))
    work = work_dtype(dtype if can_be_nan(array) else float64)
    array = astype(array, work, copy=False)
    if not is_scalar(step):
        step = astype(step, work, copy=False)
    if x is not None:
        if is_scalar(step) or not step.ndim:
            raise ValueError("trapezoid: x has coordinates along the axis; a distance is dx")
        if step.ndim == 1:
            step = reshape(subtract(step[1:], step[:-1]), _along_shape(array, axis))
        else:
            step = _differences(step, axis_of("trapezoid", step, axis))
    both = along(array, axis, slice(1, None)) + along(array, axis, slice(None, -1))
    return call.give(astype(total(both * step / 2.0, axis=axis), dtype, copy=False))


# Products -----------------------------------------------------------------------------------------


@short(short_numpy.convolve)
def convolve(x1, x2, /, mode="full", *, device=None):
    """Return the convolution of two arrays of one dimension, as numpy.convolve.

    mode: "full", "same" (as long as the longer one) or "valid" (where they overlap wholly).
    ValueError: another mode, an empty array, more dimensions.

    >>> vg.convolve(vg.asarray([1, 2, 3]), vg.asarray([0, 1, 0.5])).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    >>> vg.convolve(vg.asarray([1, 2, 3]), vg.asarray([0, 1, 0.5]), "same").tolist()
    [1.0, 2.5, 4.0]
    """
    call = Operands("convolve", (x1, x2), None, device)
    if any(is_scalar(one) or one.ndim != 1 for one in call.arrays):
        raise ValueError("convolve takes arrays of one dimension")
    long, short = sorted(call.arrays, key=lambda one: -one.size)
    if not short.size:
        raise ValueError("convolve: an array is empty")
    ends = {
        "full": (0, long.size + short.size - 1),
        "same": ((short.size - 1) // 2, (short.size - 1) // 2 + long.size),
        "valid": (short.size - 1, long.size),
    }
    if mode not in ends:
        raise ValueError(f"convolve: mode can be 'full', 'same' or 'valid', not {mode!r}")
    dtype = promote_all((long, short))
    work = work_dtype(dtype) if is_float(dtype) else dtype
    long, short = astype(long, work, copy=False), astype(short, work, copy=False)
    result = _convolved(long, short)[slice(*ends[mode])]
    return call.give(astype(result, dtype, copy=False))


@short(short_counts.correlate)
def correlate(x1, x2, /, mode="valid", *, device=None):
    """Return sums of x1[i + k] * conj(x2[i]) for each shift k, of arrays of one dimension.

    mode, errors: as in convolve.

    >>> vg.correlate(vg.asarray([1, 2, 3]), vg.asarray([0, 1, 0.5])).tolist()
    [3.5]
    """
    call = Operands("correlate", (x1, x2), None, device)
    if any(is_scalar(one) or one.ndim != 1 for one in call.arrays):
        raise ValueError("correlate takes arrays of one dimension")
    a, b = call.arrays
    b = conj(b) if is_complex(b.dtype) else b
    if a.size < b.size:
        return call.give(flip(convolve(b, flip(a), mode)))
    return call.give(convolve(a, flip(b), mode))


def _convolved(long, short):
    """Return the full convolution: rows of products, each one place further right, added up.

    A row is moved by writing rows of n + m elements with m zeros and reading rows of one less.
    """
    n, rows = long.size, max(1, _BLOCK // (2 * long.size))
    sums = []
    for begin in range(0, short.size, rows):
        part = short[begin : begin + rows]
        m = part.size
        products = reshape(part, (m, 1)) * long
        gap = broadcast_to(strong(0, long.backend, long.dtype), (m, m))
        padded = concat([products, gap], axis=1)
        moved = reshape(reshape(padded, (m * (n + m),))[: m * (n + m - 1)], (m, n + m - 1))
        sums.append((begin, total(moved, axis=0)))
    if len(sums) == 1:
        return sums[0][1]
    zero = strong(0, long.backend, sums[0][1].dtype)
    result = concat([broadcast_to(zero, (n + short.size - 1,))])
    for begin, one in sums:
        place = result[begin : begin + one.size]
        place += one
    return result


@short(short_products.cross)
def cross(x1, x2, /, axisa=-1, axisb=-1, axisc=-1, axis=None, *, device=None):
    """Return the cross products of vectors of three elements along an axis, the others broadcast.

    axisa, axisb, axisc: the vectors' axes in x1, x2 and the result; axis: all three at once.
    ValueError: vectors of another length. TypeError: bools.

    >>> vg.cross(vg.asarray([1, 0, 0]), vg.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    call = Operands("cross", (x1, x2), None, device)
    if any(is_scalar(one) for one in call.arrays):
        raise TypeError("cross takes arrays, not a scalar")
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = call.arrays
    a = moveaxis(a, axis_of("cross", a, axisa), -1)
    b = moveaxis(b, axis_of("cross", b, axisb), -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(f"cross: vectors of {a.shape[-1]} and {b.shape[-1]} elements, not of 3")
    u, v = [a[..., i] for i in range(3)], [b[..., i] for i in range(3)]
    parts = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
    return call.give(stack(parts, axis=parse_axis(axisc, parts[0].ndim + 1)))


@short(short_numpy.vander)
def vander(x, /, N=None, increasing=False, *, device=None):
    """Return the matrix of powers of x, those of an element in a row; the largest come first.

    N: how many, by default as many as there are elements. increasing: the smallest come first.
    bools and signed integers give int64. ValueError: not one dimension, a negative number.

    >>> print(vg.vander(vg.asarray([1, 2, 3]), 3))
    [[1 1 1]
     [4 2 1]
     [9 3 1]]
    """
    call = Operands("vander", (x,), None, device)
    (array,) = call.arrays
    if array.ndim != 1:
        raise ValueError(f"vander takes arrays of one dimension, not {array.ndim}")
    count = array.size if N is None else parse_int(N, "N")
    if count < 0:
        raise ValueError(f"vander: N is 0 or more, not {count}")
    if array.dtype.kind in "bi" or array.dtype.itemsize == 1:
        array = astype(array, int64, copy=False)
    parse_shape((array.size, count), array.dtype.itemsize)
    if not count:
        return call.give(concat([reshape(array, (array.size, 1))[:, :0]], axis=1))
    powers = [broadcast_to(strong(1, array.backend, array.dtype), array.shape)]
    for _ in range(1, count):
        powers.append(powers[-1] * array)
    return call.give(stack(powers if increasing else powers[::-1], axis=1))
