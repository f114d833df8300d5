"""Steps of optimisers and norms of all gradients on the CPU device: cuda/kernels/optimize.cu's.

Everything is done in place, in chunks that stay in a core's cache; float16 and bfloat16 are
computed in float32, and rounded when they are stored.
"""

import functools
import math

import numpy as np

from ..dtypes import host_dtype, is_float, is_half, promote, supported
from ..native.abi import Algorithm, Update
from .cpu_casts import rounded, widened

CHUNK = 1 << 14  # elements at a time


def optimize(algorithm, targets, gradients, numbers, renewed=None):
    """Do a step for as many parameters as there are gradients; see pvg_optimize."""
    states, change = _ALGORITHMS[algorithm](dict(zip(Update, numbers, strict=False)))
    n = len(gradients)
    _check(targets, gradients, n, states)
    if renewed is not None:
        _check_renewed(renewed)
        change = _ALGORITHMS[algorithm](dict(zip(Update, renewed.tolist(), strict=False)))[1]
    used = _apart(targets, gradients)
    length = min(CHUNK, max([g.size for g in gradients], default=0))
    wides = {_wide(g.dtype) for g in gradients}
    scratch = {wide: np.empty((2, length), wide) for wide in wides}  # before anything changes
    for number in range(n):
        flat = [a.reshape(-1) for a in used[number::n]]
        _by_chunks(change, flat, scratch[_wide(flat[0].dtype)])
    _put_back(targets, used)


def total_norm(parts, order):
    """Return the norm of all elements of arrays, 0-d; see pvg_total_norm."""
    for a in parts:
        _check_float(a)
    dtype = functools.reduce(promote, [supported(a.dtype) for a in parts])
    with np.errstate(over="ignore"):  # the CPU alone would tell
        result = _norm([a.reshape(-1) for a in parts if a.size], order)
        return rounded(np.asarray(result), host_dtype(dtype))


def clip_norm(targets, norm, most):
    """Multiply arrays by most / norm where that is below 1 or NaN; see pvg_clip_norm."""
    _check(targets, [], max(len(targets), 1), 0)
    if norm is not None:
        _check_float(norm)
        if norm.size != 1:
            raise ValueError(f"the norm is one number, got shape {norm.shape}")
    factor = most / (float(widened(norm).item()) + 1e-6) if norm is not None else most
    if factor >= 1 and norm is not None:
        return
    used = _apart(targets, [])
    for a in used:
        if is_half(a.dtype):
            a[...] = rounded(widened(a) * np.float32(factor), a.dtype)
        else:
            np.multiply(a, factor, out=a)
    _put_back(targets, used)


# Arrays -------------------------------------------------------------------------------------------


def _check_float(a):
    if not is_float(a.dtype):
        raise TypeError(f"takes floats, not {a.dtype}")


def _check(targets, gradients, n, states):
    if len(targets) != n * (1 + states) and gradients:
        raise ValueError(f"{len(targets)} arrays for {n} parameters with {states} states each")
    for number, a in enumerate([*targets, *gradients]):
        p = targets[number % n]
        _check_float(a)
        if a.shape != p.shape and gradients:
            raise ValueError(f"an array of shape {a.shape} for a parameter of {p.shape}")
        if a.dtype != p.dtype and gradients:
            raise TypeError(f"an array of dtype {a.dtype} for a parameter of {p.dtype}")
        if number < len(targets) and not a.flags.writeable:
            raise ValueError(f"an array of shape {a.shape} that would be written to is read-only")


def _check_renewed(renewed):
    if renewed.dtype != np.float64:
        raise TypeError(f"renewed numbers are float64, not {renewed.dtype}")
    if renewed.shape != (Update.UPDATE_COUNT,):
        raise ValueError(
            f"renewed numbers are {Update.UPDATE_COUNT} side by side, got shape {renewed.shape}"
        )


def _apart(targets, sources):
    """Return contiguous arrays to use for them: copies of targets that share memory with others."""
    used = [a if a.flags.c_contiguous else np.array(a, order="C") for a in (*targets, *sources)]
    spans = sorted(
        (a.__array_interface__["data"][0], a.nbytes, number)
        for number, a in enumerate(used)
        if a.nbytes
    )
    far, shared = (0, 0, 0), set()  # the one before that reaches farthest
    for span in spans:
        if span[0] < far[0] + far[1]:
            shared |= {far[2], span[2]}
        far = max(far, span, key=lambda one: one[0] + one[1])
    for number in shared:
        if number < len(targets):
            used[number] = used[number].copy()
    return used


def _put_back(targets, used):
    for target, a in zip(targets, used, strict=False):
        if a is not target:
            np.copyto(target, a)


def _wide(dtype):
    """Return the dtype that elements are computed in."""
    return np.dtype(np.float32) if is_half(dtype) else dtype


def _by_chunks(change, flat, scratch):
    """change(x, t, u) for pieces x of all arrays of a parameter, with t and u to write to."""
    half = is_half(flat[0].dtype)
    for begin in range(0, flat[0].size, CHUNK):
        x = [a[begin : begin + CHUNK] for a in flat]
        t, u = (row[: x[0].size] for row in scratch)
        if not half:
            change(x, t, u)
            continue
        y = [widened(a) for a in x]
        change(y, t, u)
        for a, b in zip(x[:-1], y[:-1], strict=True):
            a[...] = rounded(b, a.dtype)


# Algorithms: how many states, and change(x, t, u) of a parameter, its states, its gradient --------


def _decayed(numbers, p, g, t, u):
    """Return the gradient, which t may hold."""
    if numbers[Update.UPDATE_MAXIMIZE]:
        g = np.negative(g, out=t)
    if numbers[Update.UPDATE_WEIGHT_DECAY]:
        np.multiply(p, numbers[Update.UPDATE_WEIGHT_DECAY], out=u)
        g = np.add(g, u, out=t)
    return g


def _into_mean(mean, g, old, new, u):
    """Set mean to mean * old + g * new."""
    mean *= old
    mean += np.multiply(g, new, out=u)


def _into_square(square, g, old, new, u):
    square *= old
    np.multiply(g, g, out=u)
    u *= new
    square += u


def _sgd(numbers):
    momentum, rate = numbers[Update.UPDATE_MOMENTUM], numbers[Update.UPDATE_RATE]
    fresh = 1 - numbers[Update.UPDATE_DAMPENING]

    def change(x, t, u):
        g = _decayed(numbers, x[0], x[-1], t, u)
        if momentum:
            if numbers[Update.UPDATE_FIRST]:
                x[1][...] = g
            else:
                _into_mean(x[1], g, momentum, fresh, u)
            if numbers[Update.UPDATE_NESTEROV]:
                np.multiply(x[1], momentum, out=u)
                g = np.add(g, u, out=t)
            else:
                g = x[1]
        x[0] -= np.multiply(g, rate, out=u)

    return int(momentum != 0), change


def _adam(numbers):
    beta1, beta2 = numbers[Update.UPDATE_BETA1], numbers[Update.UPDATE_BETA2]
    shares = numbers[Update.UPDATE_SHARE1], numbers[Update.UPDATE_SHARE2]
    for share in shares:
        if not 0 < share <= 1:
            raise ValueError(f"the share of means is above 0, at most 1, not {share}")
    rate, width = numbers[Update.UPDATE_RATE] / shares[0], math.sqrt(shares[1])
    kept, amsgrad = 1 - numbers[Update.UPDATE_SHRINK], numbers[Update.UPDATE_AMSGRAD]

    def change(x, t, u):
        g = _decayed(numbers, x[0], x[-1], t, u)
        if kept != 1:
            x[0] *= kept
        _into_mean(x[1], g, beta1, 1 - beta1, u)
        _into_square(x[2], g, beta2, 1 - beta2, u)
        square = np.maximum(x[3], x[2], out=x[3]) if amsgrad else x[2]
        np.sqrt(square, out=u)
        u /= width
        u += numbers[Update.UPDATE_EPSILON]
        np.divide(x[1], u, out=u)
        u *= rate
        x[0] -= u

    return 3 if amsgrad else 2, change


def _rmsprop(numbers):
    alpha, momentum = numbers[Update.UPDATE_BETA2], numbers[Update.UPDATE_MOMENTUM]
    centered = numbers[Update.UPDATE_CENTERED]

    def change(x, t, u):
        g = _decayed(numbers, x[0], x[-1], t, u)
        _into_square(x[1], g, alpha, 1 - alpha, u)
        square = x[1]
        if centered:
            _into_mean(x[2], g, alpha, 1 - alpha, u)
            np.multiply(x[2], x[2], out=u)
            square = np.subtract(square, u, out=u)
        np.sqrt(square, out=u)
        u += numbers[Update.UPDATE_EPSILON]
        np.divide(g, u, out=u)
        if momentum:
            x[-2] *= momentum
            x[-2] += u
            np.copyto(u, x[-2])
        u *= numbers[Update.UPDATE_RATE]
        x[0] -= u

    return 1 + (centered != 0) + (momentum != 0), change


_ALGORITHMS = {Algorithm.SGD: _sgd, Algorithm.ADAM: _adam, Algorithm.RMSPROP: _rmsprop}

# Norms --------------------------------------------------------------------------------------------


def _pieces(arrays):
    """Yield magnitudes of all elements, float64, in chunks."""
    for a in arrays:
        for begin in range(0, a.size, CHUNK):
            yield np.abs(widened(a[begin : begin + CHUNK]).astype(np.float64))


def _norm(arrays, order):
    if order == math.inf:
        return _largest(arrays)
    if order == 1:
        return sum(np.add.reduce(x) for x in _pieces(arrays))
    if order != 2:
        raise ValueError(f"norms are of order 1, 2 or infinity, not {order:g}")
    total = sum(np.add.reduce(x * x) for x in _pieces(arrays))
    if 1e-280 < total < 1e300 or total != total:
        return math.sqrt(total)
    scale = float(_largest(arrays))  # squares have overflowed, or vanished
    if scale in (0.0, math.inf):
        return scale
    scale = 2.0 ** math.frexp(scale)[1] if scale < 2.0**1000 else 2.0**1000
    return math.sqrt(sum(np.add.reduce((x / scale) ** 2) for x in _pieces(arrays))) * scale


def _largest(arrays):
    largest = np.float64(0)
    for x in _pieces(arrays):
        largest = np.maximum(largest, np.maximum.reduce(x))
    return largest
