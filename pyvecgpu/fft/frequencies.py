"""The frequencies of a transform's elements, and their order."""

import numpy as np

from ..device import resolve
from ..dtypes import get_default_dtype, is_float, parse_dtype
from ..functions.arguments import from_host, parse_axes, parse_int, parse_scalar
from ..functions.joining import roll
from ..functions.layout import as_array, astype
from ..functions.short_calls import made, short
from . import short_fft

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


@made(short_fft.fftfreq)
def fftfreq(n, /, d=1.0, device=None, *, dtype=None):
    """Return the frequencies of the elements of fft: 0, positive ones, negative ones.

    n: the length of the transform. d: the distance between its input's elements. dtype: a float
    dtype, by default the default float. ValueError: n is below 1. TypeError: dtype.

    >>> vg.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    >>> vg.fft.fftfreq(4, d=0.25).tolist()
    [0.0, 1.0, -2.0, -1.0]
    """
    return _frequencies(np.fft.fftfreq, "fftfreq", n, d, dtype, device)


@made(short_fft.rfftfreq)
def rfftfreq(n, /, d=1.0, device=None, *, dtype=None):
    """Return the frequencies of the elements of rfft: 0 and positive ones; see fftfreq.

    >>> vg.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies(np.fft.rfftfreq, "rfftfreq", n, d, dtype, device)


def _frequencies(function, name, n, d, dtype, device):
    n, d = parse_int(n, "the length"), float(parse_scalar(d, "a distance"))
    if n < 1:
        raise ValueError(f"{name}: the length is 1 or more, not {n}")
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    if not is_float(dtype):
        raise TypeError(f"{name}: a float dtype, not {dtype}")
    array = from_host(function(n, d), resolve(device).backend)
    return astype(array, dtype, copy=False)


@short(short_fft.fftshift)
def fftshift(x, /, axes=None):
    """Return the elements turned so that frequency 0 is in the middle of the axes, or of all.

    AxisError: no such axis.

    >>> vg.fft.fftshift(vg.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shifted("fftshift", x, axes, 1)


@short(short_fft.ifftshift)
def ifftshift(x, /, axes=None):
    """Return the elements turned back; see fftshift.

    >>> vg.fft.ifftshift(vg.fft.fftshift(vg.arange(5))).tolist()
    [0, 1, 2, 3, 4]
    """
    return _shifted("ifftshift", x, axes, -1)


def _shifted(name, x, axes, sign):
    array, give = as_array(name, x)
    axes = parse_axes(tuple(axes) if isinstance(axes, list) else axes, array.ndim)
    axes = tuple(range(array.ndim)) if axes is None else axes
    half = [array.shape[axis] // 2 if sign > 0 else -(array.shape[axis] // 2) for axis in axes]
    return give(roll(array, tuple(half), axis=axes))
