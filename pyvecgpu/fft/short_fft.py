"""Short ways of Fourier transforms on the CPU device, by a call of NumPy: functions/short_calls.py.

They are for float32, float64, bools and integers; what comes of these NumPy computes in float64.
"""

import numpy as np

from ..dtypes import complex_dtype, get_default_dtype, parse_dtype
from ..functions.short_ufuncs import FLOATS, float_of, rounded

NORMS = ("backward", "ortho", "forward", None)


def _given(x, result):
    """Return a transform in the dtype of results."""
    dtype = float_of(x)
    dtype = complex_dtype(dtype) if result.dtype.kind == "c" else dtype
    return rounded(result, dtype)


def along_one(function):
    """Return the short way of a transform along an axis."""

    def transform(x, n=None, axis=-1, norm="backward"):
        if float_of(x) is None or not x.ndim or norm not in NORMS or type(axis) is not int:
            return None
        if not x.size:
            return None
        if n is not None and type(n) is not int:
            return None
        return _given(x, function(x, n, axis, norm))

    return transform


def along_several(function, axes=None):
    """Return that of a transform along several axes. axes: which by default."""

    def transform(x, s=None, axes=axes, norm="backward"):
        if float_of(x) is None or not x.ndim or s is not None or norm not in NORMS:
            return None
        if axes is not None and (type(axes) is not tuple or {*map(type, axes)} != {int}):
            return None
        return _given(x, function(x, None, axes, norm))

    return transform


fft, ifft, rfft = along_one(np.fft.fft), along_one(np.fft.ifft), along_one(np.fft.rfft)
irfft, hfft, ihfft = along_one(np.fft.irfft), along_one(np.fft.hfft), along_one(np.fft.ihfft)
fftn, ifftn = along_several(np.fft.fftn), along_several(np.fft.ifftn)
rfftn, irfftn = along_several(np.fft.rfftn), along_several(np.fft.irfftn)
fft2, ifft2 = along_several(np.fft.fftn, (-2, -1)), along_several(np.fft.ifftn, (-2, -1))
rfft2, irfft2 = along_several(np.fft.rfftn, (-2, -1)), along_several(np.fft.irfftn, (-2, -1))


def _step(n, d, dtype):
    """Return the distance between frequencies and the dtype to give them in; None: not here."""
    if type(n) is not int or not 0 < n < _LONGEST or (type(d) is not float and type(d) is not int):
        return None, None
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    return (1.0 / (n * d), dtype) if dtype.char in FLOATS else (None, None)


_LONGEST = 2**31  # frequencies that are made here


def fftfreq(n, d=1.0, *, dtype=None):
    step, dtype = _step(n, d, dtype)
    if step is None:
        return None
    result, half = np.empty(n), (n + 1) // 2
    result[:half], result[half:] = np.arange(half), np.arange(half - n, 0)
    result *= step
    return result.astype(dtype, copy=False)


def rfftfreq(n, d=1.0, *, dtype=None):
    step, dtype = _step(n, d, dtype)
    if step is None:
        return None
    result = np.arange(n // 2 + 1, dtype=np.float64)
    result *= step
    return result.astype(dtype, copy=False)


def fftshift(x, axes=None):
    return np.fft.fftshift(x) if axes is None and type(x) is np.ndarray and x.ndim else None


def ifftshift(x, axes=None):
    return np.fft.ifftshift(x) if axes is None and type(x) is np.ndarray and x.ndim else None
