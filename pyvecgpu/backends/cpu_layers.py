"""Layers on the CPU device: activations, their derivatives, a dense layer and its backward pass.

Operands are float arrays of one dtype that NumPy computes in. The formulas are those of
cuda/kernels/activation.cuh.
"""

import functools
import math

import numpy as np

from .cpu_functions import LEAST, least_of

# Elements at a time: what a function writes in between stays in a core's cache. CHUNK is for those
# that write several arrays of float64, LONG for the others: a step of Python costs as much as 1000.
CHUNK, LONG = 1 << 13, 1 << 15
_ZEROS = {n: np.zeros((), f"f{n}") for n in (2, 4, 8)}
_SIGNED = {n: np.dtype(f"i{n}") for n in (2, 4, 8)}  # integers of as many bytes as floats


def _by_chunks(length):
    """Return a decorator: a function (a, out=None) of write(x, y, t), which fills y.

    It sees so many elements at a time, and t of as many to write to. x, y and t are contiguous; x
    is of a float dtype that NumPy computes in, y may be x. float16 is computed in float32 and
    rounded once.
    """

    def decorate(write):
        @functools.wraps(write)
        def function(a, out=None):
            if out is None and a.size <= length and a.itemsize > 2 and a.flags.c_contiguous:
                result = np.empty(a.shape, a.dtype)
                flat = a.reshape(-1)
                write(flat, result.reshape(-1), np.empty(flat.shape, a.dtype))
                return result
            result = np.empty(a.shape, a.dtype) if out is None else out
            if result.flags.c_contiguous and (a is result or not np.may_share_memory(a, result)):
                place = result
            else:
                place = np.empty(a.shape, a.dtype)
            _fill_chunks(write, np.ascontiguousarray(a).reshape(-1), place.reshape(-1), length)
            if place is not result:
                np.copyto(result, place)
            return result

        return function

    return decorate


def _fill_chunks(write, flat, into, length):
    half = flat.dtype.itemsize == 2
    wide = np.empty((2 if half else 1, min(flat.size, length)), np.float32 if half else flat.dtype)
    for begin in range(0, flat.size, length):
        x, y = flat[begin : begin + length], into[begin : begin + length]
        t = wide[0, : x.size]
        if half:
            widened = wide[1, : x.size]
            widened[...] = x
            write(widened, widened, t)
            y[...] = widened
        else:
            write(x, y, t)


def _is_above(x, bound):
    """Whether all floats in a row are a number or above it; NaN is not."""
    return not x.size or x.item(x.argmin()) >= bound


def _exp_of_minus_abs(x, t):
    """t = exp(-|x|): no overflow, and no digits lost."""
    np.abs(x, out=t)
    np.negative(t, out=t)
    np.exp(t, out=t)


@_by_chunks(LONG)
def sigmoid(x, y, t):
    """1 / (1 + exp(-x)), which of a negative x is exp(x) / (exp(x) + 1)."""
    if _is_above(x, -80):  # and no NaN: exp(-x) is finite
        np.negative(x, out=y)
        np.exp(y, out=y)
        y += 1
        np.reciprocal(y, out=y)
        return
    above = x >= 0
    _exp_of_minus_abs(x, t)
    np.add(t, 1, out=y)
    np.copyto(t, 1, where=above)
    np.divide(t, y, out=y)


@_by_chunks(LONG)
def silu(x, y, t):
    """X * sigmoid(x), far below 0 in two steps: exp(x / 2) has digits where exp(x) has none."""
    if not _is_above(x, -80):  # NaN may hide a smaller one
        x = np.maximum(x, -800)
        np.abs(x, out=t)
        t *= t.dtype.type(-0.5)
        np.exp(t, out=t)
        side = np.where(x >= 0, t.dtype.type(1), t)
        np.multiply(x, side, out=y)
        y /= 1 + t * t
        y *= side
        return
    np.negative(x, out=t)
    np.exp(t, out=t)
    t += 1
    np.divide(x, t, out=y)


def relu(a, out=None):
    """A where it is positive, else 0.0; NaN stays NaN."""
    if a.dtype.kind != "f":
        return np.asarray(np.maximum(a, a.dtype.type(0), out=out))
    itemsize = a.itemsize
    result = np.maximum(a, _ZEROS[itemsize], out=out)
    if type(result) is not np.ndarray:
        result = np.asarray(result)
    bits, least = result.view(_SIGNED[itemsize]), LEAST[itemsize]
    if bits.size and least_of(bits) == least:  # -0.0
        np.copyto(bits, 0, where=bits == least)
    return result


# (1 + 2z) exp(z^2) erfc(z) for z >= 0 as a polynomial in (z - BEND) / (z + BEND), lowest
# power first, fitted to 1e-15 and, for what is rounded to float32, to 3e-9.
BEND = 3.75
ERFC_FLOAT64 = (
    *(1.2375126308378268, -0.14024059858553706, 0.0035854154854994408, 0.08227673848925482),
    *(-0.10880393014328862, 0.09230432118520598, -0.05869339856000913, 0.028362277100844394),
    *(-0.009746579873831937, 0.0017556280850657149, 0.0002937157274468588, -0.0002901634159434404),
    *(
        5.164053336045953e-05,
        2.2408347286044794e-05,
        -1.1421342393505305e-05,
        -1.0119290340355272e-06,
    ),
    *(
        1.7133675271476762e-06,
        -2.1177613012360883e-08,
        -2.2003565888324522e-07,
        5.340454327636832e-09,
    ),
    1.7443505050135223e-08,
)
ERFC_FLOAT32 = (
    *(1.2375126269935812, -0.14024060777945, 0.0035855690908869475, 0.0822770128131379),
    *(-0.10880663817282732, 0.09230172089978816, -0.058675791574491036, 0.028374306049691204),
    *(-0.00979964970675873, 0.0017251359724629696, 0.00037182370092801324, -0.0002496276243111658),
)


def _twice_normal_cdf(x, is_float64):
    """Return 2 Phi(x) = erfc(-x / sqrt(2)) of a chunk of float64, not below -40 or above 40."""
    z = np.abs(x)
    z *= math.sqrt(0.5)
    t = z - BEND
    t /= z + BEND
    coefficients = ERFC_FLOAT64 if is_float64 else ERFC_FLOAT32
    result = t * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        result += coefficient
        result *= t
    result += coefficients[0]
    z *= 2
    z += 1
    result /= z
    if is_float64:  # exp(-x^2 / 2) in two factors: the first one's argument is exact
        near = np.rint(np.multiply(x, 16, out=t), out=t)
        near /= 16
        rest = (x - near) * (x + near)
        rest *= -0.5
        result *= np.exp(rest, out=rest)
        near *= near
        near *= -0.5
        result *= np.exp(near, out=near)
    else:
        np.multiply(x, x, out=t)
        t *= -0.5
        result *= np.exp(t, out=t)
    np.subtract(2, result, out=result, where=x > 0)
    return result


def twice_normal_cdf(a):
    """Twice the standard normal distribution's cumulative function, as float64."""
    flat = np.ascontiguousarray(a).reshape(-1)
    result = np.empty(flat.shape)
    for begin in range(0, flat.size, CHUNK):
        x = np.clip(flat[begin : begin + CHUNK].astype(np.float64, copy=False), -40, 40)
        result[begin : begin + CHUNK] = _twice_normal_cdf(x, a.dtype == np.float64)
    return result.reshape(a.shape)


@_by_chunks(CHUNK)
def gelu(x, y, t):
    """X * Phi(x), of which 0.0 is what remains at -infinity."""
    is_float64 = x.dtype == np.float64
    x = np.maximum(x, -40).astype(np.float64, copy=False)
    result = _twice_normal_cdf(np.minimum(x, 40), is_float64)
    result *= 0.5
    result *= x
    np.copyto(y, result, casting="same_kind")


# Derivatives of activations at the preactivation.


def sigmoid_slope(a):
    return sigmoid(a) * sigmoid(-a)


def tanh_slope(a):
    return (1 - np.tanh(a)) * (1 + np.tanh(a))


def relu_slope(a):
    return np.where(np.isnan(a), a, (a > 0).astype(a.dtype))


def gelu_slope(a):
    density = np.exp(-0.5 * a * a) * a.dtype.type(1 / math.sqrt(2 * math.pi))
    return (0.5 * twice_normal_cdf(a)).astype(a.dtype) + a * density


def silu_slope(a):
    return sigmoid(a) * (1 + a * sigmoid(-a))


# The dense layer ----------------------------------------------------------------------------------


def preactivation(x, weight, bias=None):
    """Return x @ weight.T + bias. ValueError: shapes that do not fit."""
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"dense: x {x.shape} and weight {weight.shape} do not fit")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"dense: bias {bias.shape} and weight {weight.shape} do not fit")
    result = np.matmul(x, weight.T)
    return result if bias is None else result + bias


def backward(gradient, x, weight, before, slope, wanted):
    """Return dx, dweight, and dbias as float64; None for one that is not wanted.

    before: the preactivation, and slope: the activation's derivative; None without one.
    """
    if x.ndim < 1 or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"dense_backward: x {x.shape} and weight {weight.shape} do not fit")
    if gradient.shape != (*x.shape[:-1], weight.shape[0]):
        raise ValueError(f"dense_backward: gradient {gradient.shape} does not fit x {x.shape}")
    if before is not None and before.shape != gradient.shape:
        raise ValueError(
            f"dense_backward: preactivation {before.shape} and gradient {gradient.shape}"
        )
    dz = gradient
    if slope:  # 0 times infinity would be NaN; further out no derivative changes any more
        dz = gradient * slope(np.clip(before, -800, 800))
    rows = math.prod(dz.shape[:-1])
    flat, inputs = dz.reshape(rows, dz.shape[-1]), x.reshape(rows, x.shape[-1])
    return (
        np.matmul(dz, weight) if wanted[0] else None,
        np.matmul(flat.T, inputs) if wanted[1] else None,
        np.sum(flat, axis=0, dtype=np.float64) if wanted[2] else None,
    )
