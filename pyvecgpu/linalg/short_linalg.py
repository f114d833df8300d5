"""Short ways of linalg on the CPU device, by a call of NumPy: see functions/short_calls.py.

They are for matrices of float32 and float64, which NumPy computes in as they are. What it refuses,
singular matrices among it, goes the long way, which says so.
"""

import numpy as np


def _are_matrices(*values):
    """Whether all are ndarrays of one of the dtypes, and the first one has matrices."""
    first = values[0]
    for one in values:
        if type(one) is not np.ndarray or one.dtype is not first.dtype or not one.ndim:
            return False
    return first.dtype.char in "fd" and first.ndim >= 2


def inv(x):
    return np.linalg.inv(x) if _are_matrices(x) else None


def det(x):
    return np.linalg.det(x) if _are_matrices(x) else None


def solve(x1, x2):
    return np.linalg.solve(x1, x2) if _are_matrices(x1, x2) else None


def cholesky(x, upper=False):
    return np.linalg.cholesky(x, upper=bool(upper)) if _are_matrices(x) else None
