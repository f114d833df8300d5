"""Windows for signals, computed by NumPy in float64 on the host and rounded once."""

import numpy as np

from ..dispatch import apply
from ..dtypes import get_default_dtype, parse_dtype
from . import short_names
from .arguments import from_host, parse_int, parse_scalar, parse_shape
from .creation import empty
from .short_calls import made

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


@made(short_names.bartlett)
def bartlett(M, *, dtype=None, device=None):
    """Return the Bartlett window of M points, a triangle. dtype: by default the default float.

    >>> print(vg.bartlett(5))
    [0.  0.5 1.  0.5 0. ]
    """
    return _window(np.bartlett, M, (), dtype, device)


@made(short_names.blackman)
def blackman(M, *, dtype=None, device=None):
    """Return the Blackman window of M points.

    >>> print(vg.round(vg.blackman(5), 4))
    [-0.    0.34  1.    0.34 -0.  ]
    """
    return _window(np.blackman, M, (), dtype, device)


@made(short_names.hamming)
def hamming(M, *, dtype=None, device=None):
    """Return the Hamming window of M points.

    >>> print(vg.hamming(5))
    [0.08 0.54 1.   0.54 0.08]
    """
    return _window(np.hamming, M, (), dtype, device)


@made(short_names.hanning)
def hanning(M, *, dtype=None, device=None):
    """Return the Hann window of M points.

    >>> print(vg.hanning(5))
    [0.  0.5 1.  0.5 0. ]
    """
    return _window(np.hanning, M, (), dtype, device)


@made(short_names.kaiser)
def kaiser(M, beta, *, dtype=None, device=None):
    """Return the Kaiser window of M points; the larger beta, the narrower it is.

    >>> print(vg.round(vg.kaiser(5, 14), 4))
    [0.     0.1649 1.     0.1649 0.    ]
    """
    return _window(np.kaiser, M, (float(parse_scalar(beta, "beta")),), dtype, device)


def _window(function, count, arguments, dtype, device):
    count = max(parse_int(count, "a number of points"), 0)
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    parse_shape((count,), 8)
    result = empty((count,), dtype, device=device)
    if count:
        values = from_host(function(count, *arguments), result.backend)
        apply(result.backend, "copy", values, result)
    return result
