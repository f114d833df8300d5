"""Short ways of Fourier transforms on the CPU device, by a call of NumPy: functions/short_calls.py.

They are for float32, float64, bools and integers; what comes of these NumPy computes in float64.
"""

import numpy as np

from ..dtypes import complex_dtype
from ..functions import short_names
from ..functions.short_ufuncs import float_of, rounded

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
fftfreq = short_names.frequencies(np.fft.fftfreq)
rfftfreq = short_names.frequencies(np.fft.rfftfreq)


def fftshift(x, axes=None):
    return np.fft.fftshift(x) if axes is None and type(x) is np.ndarray and x.ndim else None


def ifftshift(x, axes=None):
    return np.fft.ifftshift(x) if axes is None and type(x) is np.ndarray and x.ndim else None
