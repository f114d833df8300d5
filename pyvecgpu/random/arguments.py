"""What the methods of a Generator check of their arguments, and make of them."""

import functools
import warnings

import numpy as np

from ..array import Array
from ..device import Device
from ..dtypes import bool as bool_dtype
from ..dtypes import get_default_dtype, integer_range, is_float, is_integer, parse_dtype
from ..functions.arguments import (
    host_array,
    is_host,
    parse_axis,
    parse_int,
    parse_scalar,
    parse_shape,
)
from ..functions.creation import asarray
from ..functions.gathering import take
from ..functions.layout import broadcast_shapes
from ..functions.values import to_host

ALGORITHM = "Philox4x32-10"
WORDS = 2**64
HOST = "cpu"


def parse_state(state):
    try:
        name, place = state["bit_generator"], state["state"]
        numbers = [parse_int(place[part], part) for part in ("key", "stream", "counter")]
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"not a state of {ALGORITHM}: {state!r}") from error
    if name != ALGORITHM or not all(0 <= number < WORDS for number in numbers):
        raise ValueError(f"not a state of {ALGORITHM}: {state!r}")
    return numbers


def parse_float(dtype):
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    if not is_float(dtype):
        raise TypeError(f"random numbers of this distribution are floats, not {dtype}")
    return dtype


def parse_out(out, size, dtype, device):
    if not isinstance(out, Array):
        raise TypeError(f"out is an Array, not {type(out).__name__}")
    if not is_float(out.dtype):
        raise TypeError(f"random numbers of this distribution are floats, not {out.dtype}")
    if size is not None and parse_shape(size) != out.shape:
        raise ValueError(f"size is {size}, but out has shape {out.shape}")
    if dtype is not None and parse_dtype(dtype) != out.dtype:
        raise TypeError(f"dtype is {parse_dtype(dtype)}, but out has {out.dtype}")
    if device is not None and Device(device) is not out.device:
        raise ValueError(f"device is {device}, but out is on {out.device}")
    return out


def parameter(value, device):
    """Return a parameter of a distribution: a float, or an Array on the device."""
    if isinstance(value, Array):
        return value
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if is_host(value) and np.ndim(value):
        return asarray(value, device=device)
    return float(parse_scalar(value, "a parameter of a distribution"))


def common_shape(values, size):
    """Return the shape of what is drawn; None: a single number."""
    shapes = [x.shape for x in values if isinstance(x, Array)]
    if size is None:
        return broadcast_shapes(*shapes) if shapes else None
    shape = parse_shape(size, 8)
    if broadcast_shapes(shape, *shapes) != shape:
        raise ValueError(f"size {size} does not hold parameters of shapes {shapes}")
    return shape


def host_parameters(values):
    """Return parameters as float64 on the host; TypeError: no numbers."""
    found = []
    for name, value in values.items():
        value = to_host(value) if isinstance(value, Array) else np.asarray(value)
        if value.dtype.kind not in "fiubV":
            raise TypeError(f"{name} is of numbers, not {value.dtype}")
        found.append(value.astype(np.float64))
    return found


def root_of(cov, method, check_valid, tol):
    """Return a root of a covariance, times whose transpose it is the covariance."""
    if check_valid not in ("warn", "raise", "ignore"):
        raise ValueError(f"check_valid is 'warn', 'raise' or 'ignore', not {check_valid!r}")
    if method == "cholesky":
        return np.linalg.cholesky(cov)
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    if check_valid != "ignore" and not np.allclose(root @ root.T, cov, rtol=tol, atol=tol):
        text = "covariance is not symmetric positive-semidefinite."
        if check_valid == "raise":
            raise ValueError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return root


def check_scale(scale):
    if not isinstance(scale, Array) and not scale >= 0:
        raise ValueError(f"scale must not be negative, got {scale}")


def check_range(low, high, dtype, endpoint):
    lowest, highest = bounds_of(dtype)
    if lowest <= low < high <= highest + 1:
        return
    if low < lowest:
        raise ValueError(f"low is out of bounds for {dtype}: {low}")
    if high - 1 > highest:
        raise ValueError(f"high is out of bounds for {dtype}: {high - endpoint}")
    raise ValueError(f"low {'>' if endpoint else '>='} high: {low}, {high - endpoint}")


@functools.cache
def bounds_of(dtype):
    """Return the least and the largest number of a dtype of integers or bools, else TypeError."""
    if dtype == bool_dtype:
        return 0, 1
    if not is_integer(dtype):
        raise TypeError(f"integers gives integers or bools, not {dtype}")
    return integer_range(dtype)


def parse_probabilities(p, count, least):
    """Return p as float64. ValueError: not `count` probabilities, fewer than `least` above 0."""
    p = np.asarray(to_host(p) if isinstance(p, Array) else p, np.float64)
    if p.shape != (count,):
        raise ValueError(f"p has shape {p.shape}, and a {count} elements")
    if not (p >= 0).all() or not abs(p.sum() - 1) <= 1e-6:
        raise ValueError("p is not of probabilities: they must not be negative, and their sum is 1")
    if np.count_nonzero(p) < least:
        raise ValueError(f"p has fewer than {least} entries above 0")
    return p


def exact_integers(value, what):
    """Return integers as an ndarray of Python ints, which do not overflow."""
    values = to_host(value) if isinstance(value, Array) else np.asarray(value)
    if values.dtype.kind not in "iuO":
        raise TypeError(f"{what} is integers, not an array of {values.dtype}")
    return values.astype(object)


def axis_of(x, axis):
    if x.ndim == 0:
        raise ValueError("an array of one axis or more is needed, or an integer")
    return parse_axis(axis, x.ndim)


def taken(x, indices, axis, device):
    """Return the parts of an array at indices on the host, as an Array on a device."""
    if isinstance(x, Array):
        return asarray(take(x, indices, axis), device=device)
    return asarray(host_array(x).take(indices, axis), device=device)
