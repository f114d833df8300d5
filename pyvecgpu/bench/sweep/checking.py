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
    if case.verify is not None:
        return case.verify(host_values(library, result))
    expected, allowed = case.expected(*(on_host(values, one) for one in case.operands))
    if isinstance(allowed, dict):  # by the kind of device
        allowed = allowed["cpu" if result.device.type == "cpu" else "card"]
    if not isinstance(expected, tuple):
        return fault(host_values(library, result), expected, allowed)
    if len(result) != len(expected):
        return f"there are {len(result)} results, not {len(expected)}"
    faults = (
        fault(host_values(library, one), *right)
        for one, *right in zip(result, expected, allowed, strict=True)
    )
    return next(filter(None, faults), "")


def host_values(library, result):
    """Return a result as a NumPy array: that of a library, or one on the host, or a number."""
    is_there = isinstance(result, (np.ndarray, bool, int, float))
    return np.asarray(result) if is_there else library.get(result)
