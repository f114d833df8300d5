"""Discrete Fourier transforms.

float32 and complex64 are transformed in that precision, float64 and complex128 in theirs, halves as
float32; integers and bools as float64, with results rounded once to the complex dtype of the
default float. On the CPU NumPy transforms. On a GPU cuFFT does, which `pip install pyvecgpu[math]`
adds and which is loaded when it is first needed. On the simulated card it is NumPy on the host,
after a copy there and with one back, which the counters of transfers show.

norm says which way is divided: "backward", by n back, which None is too; "forward", by n there;
"ortho", by the root of n both ways. n is the product of the lengths that are transformed.
"""

import numpy as np

from ..dispatch import apply, is_tracked, whole
from ..dtypes import complex_dtype, get_default_dtype, is_float
from ..functions.arguments import Operands, is_scalar, parse_axis, parse_int
from ..functions.layout import astype
from ..functions.short_calls import short
from ..functions.values import to_host
from ..functions.working import work_dtype
from . import short_fft

__all__ = [
    "fft",
    "fft2",
    "fftn",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]

NORMS = ("backward", "ortho", "forward")


@short(short_fft.fft, c_order=False)
def fft(x, /, n=None, axis=-1, norm="backward"):
    """Return the transform along an axis, complex.

    n: of so many elements, the first ones, or all and zeros; by default all. norm: see above.
    ValueError: n is below 1, another norm, an x without axes. AxisError: no such axis.

    >>> print(vg.fft.fft(vg.asarray([1.0, 0.0, 0.0, 0.0])))
    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]
    """
    return _along_one("fft", x, n, axis, norm)


@short(short_fft.ifft, c_order=False)
def ifft(x, /, n=None, axis=-1, norm="backward"):
    """Return the transform back; see fft.

    >>> x = vg.asarray([1.0, 2.0, 3.0, 4.0])
    >>> print(vg.fft.ifft(vg.fft.fft(x)).real)
    [1. 2. 3. 4.]
    """
    return _along_one("ifft", x, n, axis, norm)


@short(short_fft.rfft, c_order=False)
def rfft(x, /, n=None, axis=-1, norm="backward"):
    """Return the first n // 2 + 1 elements of the transform of real numbers; see fft.

    TypeError: x is complex.

    >>> print(vg.fft.rfft(vg.asarray([1.0, 1.0, 1.0, 1.0])))
    [4.+0.j 0.+0.j 0.+0.j]
    """
    return _along_one("rfft", x, n, axis, norm)


@short(short_fft.irfft, c_order=False)
def irfft(x, /, n=None, axis=-1, norm="backward"):
    """Return the real numbers, n of them, of which rfft gives x; see fft.

    n: by default 2 * (m - 1), for m elements of x.

    >>> vg.fft.irfft(vg.asarray([4 + 0j, 0j, 0j])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _along_one("irfft", x, n, axis, norm)


@short(short_fft.hfft, c_order=False)
def hfft(x, /, n=None, axis=-1, norm="backward"):
    """Return the transform, real, of numbers whose second half mirrors the first; see irfft.

    >>> print(vg.fft.hfft(vg.asarray([1 + 0j, 2 + 0j, 3 + 0j])))
    [ 8. -2.  0. -2.]
    """
    return _along_one("hfft", x, n, axis, norm)


@short(short_fft.ihfft, c_order=False)
def ihfft(x, /, n=None, axis=-1, norm="backward"):
    """Return the first half of the transform back of real numbers; see rfft.

    >>> vg.fft.ihfft(vg.ones(4)).real.tolist()
    [1.0, 0.0, 0.0]
    """
    return _along_one("ihfft", x, n, axis, norm)


@short(short_fft.fftn, c_order=False)
def fftn(x, /, s=None, axes=None, norm="backward"):
    """Return the transform along several axes, complex.

    axes: by default all; with s the last ones. s: the length along each, see fft; -1: as it is.
    ValueError: another number of lengths than of axes, or one below 1; another norm. AxisError: no
    such axis.

    >>> vg.fft.fftn(vg.ones((2, 3, 4))).shape
    (2, 3, 4)
    """
    return _along_several("fftn", x, s, axes, norm)


@short(short_fft.ifftn, c_order=False)
def ifftn(x, /, s=None, axes=None, norm="backward"):
    """Return the transform back along several axes; see fftn.

    >>> vg.allclose(vg.fft.ifftn(vg.fft.fftn(vg.ones((2, 3, 4)))), vg.ones((2, 3, 4)))
    True
    """
    return _along_several("ifftn", x, s, axes, norm)


@short(short_fft.rfftn, c_order=False)
def rfftn(x, /, s=None, axes=None, norm="backward"):
    """Return the transform of real numbers: rfft along the last axis, fft along the others.

    See fftn. TypeError: x is complex.

    >>> vg.fft.rfftn(vg.ones((2, 3, 8))).shape
    (2, 3, 5)
    """
    return _along_several("rfftn", x, s, axes, norm)


@short(short_fft.irfftn, c_order=False)
def irfftn(x, /, s=None, axes=None, norm="backward"):
    """Return the real numbers of which rfftn gives x; see fftn and irfft.

    >>> vg.fft.irfftn(vg.fft.rfftn(vg.ones((2, 3, 4)))).shape
    (2, 3, 4)
    """
    return _along_several("irfftn", x, s, axes, norm)


@short(short_fft.fft2, c_order=False)
def fft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Return the transform along two axes; see fftn.

    >>> vg.fft.fft2(vg.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return fftn(x, s, axes, norm)


@short(short_fft.ifft2, c_order=False)
def ifft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Return the transform back along two axes; see ifftn.

    >>> vg.fft.ifft2(vg.fft.fft2(vg.eye(2))).real.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return ifftn(x, s, axes, norm)


@short(short_fft.rfft2, c_order=False)
def rfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Return the transform of real numbers along two axes; see rfftn.

    >>> vg.fft.rfft2(vg.ones((4, 6))).shape
    (4, 4)
    """
    return rfftn(x, s, axes, norm)


@short(short_fft.irfft2, c_order=False)
def irfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """Return the real numbers of which rfft2 gives x; see irfftn.

    >>> vg.fft.irfft2(vg.fft.rfft2(vg.ones((4, 4)))).shape
    (4, 4)
    """
    return irfftn(x, s, axes, norm)


def _along_one(name, x, n, axis, norm):
    call, array = _operand(name, x)
    if not array.ndim:
        raise ValueError(f"{name} takes arrays of one or more dimensions")
    axis = parse_axis(axis, array.ndim)
    length = _length(name, n, array.shape[axis], name in ("irfft", "hfft"))
    norm = _checked(name, norm)
    return _given(call, transformed(name, array, (length,), (axis,), norm))


def _along_several(name, x, s, axes, norm):
    call, array = _operand(name, x)
    if axes is None:
        count = array.ndim if s is None else len(s)
        if count > array.ndim:
            raise ValueError(f"{name}: {count} lengths of {array.ndim} axes")
        axes = range(array.ndim - count, array.ndim)
    axes = tuple(parse_axis(axis, array.ndim) for axis in axes)
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{name}: {len(s)} lengths of {len(axes)} axes")
    if not axes and name in ("rfftn", "irfftn"):
        raise ValueError(f"{name}: at least one axis is needed")
    given = [None] * len(axes) if s is None else s
    given = [array.shape[axis] if n == -1 else n for n, axis in zip(given, axes, strict=True)]
    lengths = [
        _length(name, n, array.shape[axis], name == "irfftn" and i == len(axes) - 1)
        for i, (n, axis) in enumerate(zip(given, axes, strict=True))
    ]
    norm = _checked(name, norm)
    return _given(call, transformed(name, array, tuple(lengths), axes, norm))


def _operand(name, x):
    """Return the Operands of a call, and its Array in the dtype that is transformed."""
    if is_scalar(x):
        raise TypeError(f"{name} takes arrays, not a scalar")
    call = Operands(name, (x,))
    (array,) = call.arrays
    if array.dtype.kind == "c" and name in ("rfft", "rfftn", "ihfft"):
        raise TypeError(f"{name} takes real numbers, not {array.dtype}")
    return call, astype(array, work_dtype(array.dtype), copy=False)


def _length(name, n, present, is_half):
    """Return how long the transform is. is_half: what is present is the first half of it."""
    if n is not None:
        n = parse_int(n, "a length")
    if n is None:
        n = 2 * (present - 1) if is_half else present
    if n < 1:
        raise ValueError(f"{name}: a transform has 1 element or more, not {n}")
    return n


def _checked(name, norm):
    """Return the name of a norm."""
    if norm is not None and norm not in NORMS:
        raise ValueError(f'{name}: norm can be "backward", "ortho" or "forward", not {norm!r}')
    return norm or "backward"


def _given(call, result):
    """Return a transform to the caller."""
    return call.give(astype(result, _result_dtype(call.arrays[0], result), copy=False))


def transformed(name, array, lengths, axes, norm):
    """Return the transform of an Array of a dtype that is transformed.

    name: of a function along as many axes. lengths: along each.
    """
    if is_tracked(array) and len(set(axes)) < len(axes):
        return _one_after_another(name, array, lengths, axes, norm)
    named = {"x": array, "name": name, "lengths": lengths, "axes": axes, "norm": norm}
    return whole("fft", named, lambda: _computed(name, array, lengths, axes, norm))


def _one_after_another(name, array, lengths, axes, norm):
    """Return a transform along axes that are not all different, in NumPy's order."""
    steps = [(name.replace("r", ""), n, axis) for n, axis in zip(lengths, axes, strict=True)]
    *others, last = steps
    if "r" in name:
        last = (name, *last[1:])
    steps = [*others, last] if name == "irfftn" else [last, *others[::-1]]
    for step, n, axis in steps:
        array = transformed(step, array, (n,), (axis,), norm)
    return array


def _computed(name, array, lengths, axes, norm):
    if array.backend.device.type == "cuda" and array.size and axes:
        from .cufft import Cufft  # loads the library

        return Cufft(array.backend).transform(name, array, lengths, axes, norm)
    function, values = getattr(np.fft, name), _filled(to_host(array), axes)
    if len(axes) == 1 and not name.endswith("n"):
        values = function(values, lengths[0], axes[0], norm)
    else:
        values = function(values, lengths, axes, norm)
    return apply(array.backend, "lend", np.asarray(values))


def _filled(values, axes):
    """Return values with a zero along each of these axes that is empty, where NumPy would read."""
    shape = [1 if i in axes and not n else n for i, n in enumerate(values.shape)]
    return values if shape == [*values.shape] else np.zeros(shape, values.dtype)


def _result_dtype(given, result):
    """Return the dtype of a result: of integers, which float64 was for, by the default float."""
    if given.dtype.kind == "c" or is_float(given.dtype):
        return result.dtype
    dtype = get_default_dtype()
    return complex_dtype(dtype) if result.dtype.kind == "c" else dtype
