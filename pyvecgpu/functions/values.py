"""An Array's values on the host, and copies of it."""

from ..dispatch import WAYS, apply
from ..dtypes import bfloat16, float32
from ..short_views import downloaded, duplicated, number


def copied(array):
    """Return a contiguous copy on the same device."""
    result = duplicated(array)
    return WAYS["cast"](array.backend, array, array.dtype, None) if result is None else result


def to_host(array, into=None, laid_out=False):
    """Return the values as an ndarray to be read: `into` if it is of use, the CPU device's own.

    laid_out: with its axes in the order of the Array's, rather than in C order.
    """
    found = downloaded(array, laid_out) if into is None else None
    return apply(array.backend, "to_host", array, into) if found is None else found


def to_numpy(array):
    """Return the values as a new ndarray, laid out as the Array is, without gaps.

    ImportError: bfloat16 without ml_dtypes.
    """
    values = to_host(array, laid_out=True)
    return values.copy(order="K") if values is array.raw else values


def readable(array):
    """Return the values as an ndarray to be read; bfloat16 as float32, which NumPy has."""
    if array.dtype is bfloat16:
        array = apply(array.backend, "cast", array, float32, None)
    return to_host(array)


def item(array):
    """Return the one element as a Python scalar. ValueError: not exactly one element."""
    found = number(array)
    if found is not None:
        return found
    if array.size != 1:
        raise ValueError(f"only an array of size 1 has an item(), not one of {array.shape}")
    return readable(array).item()
