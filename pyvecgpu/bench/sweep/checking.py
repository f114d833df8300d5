"""Results of random cases, compared with NumPy's element by element."""

import numpy as np

from .arrays import on_host


def fault(values, expected, allowed):
    """Return what is wrong with a result, in words; "" if nothing is.

    allowed: the largest error, a number or an array that broadcasts. NaN is right where it is
    expected, and infinity.
    """
    values, expected = np.asarray(values), np.asarray(expected)
    if values.shape != expected.shape:
        return f"its shape is {values.shape}, not {expected.shape}"
    right = values == expected
    if values.dtype.kind == "f":
        right |= np.isnan(values) & np.isnan(expected)
    if np.all(right):
        return ""
    error = np.abs(values.astype(np.float64) - expected)
    right |= np.isfinite(expected) & (error <= allowed)
    wrong = np.size(right) - np.count_nonzero(right)
    if not wrong:
        return ""
    at = tuple(int(index) for index in np.argwhere(~np.atleast_1d(right))[0])[: right.ndim]
    return f"{wrong} of {right.size} elements, at {at} {values[at]} for {expected[at]}"


def check(case, library, result, values):
    """Return what is wrong with our result of a case."""
    expected, allowed = case.expected(*(on_host(values, one) for one in case.operands))
    if isinstance(allowed, dict):  # by the kind of device
        allowed = allowed["cpu" if result.device.type == "cpu" else "card"]
    return fault(library.get(result), expected, allowed)
