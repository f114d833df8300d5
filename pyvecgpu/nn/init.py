"""First values of parameters, written in place: torch.nn.init's names, and our random numbers.

generator: one of vg.random.default_rng(seed); None: the process's own, see vg.random.seed.
"""

import math
from statistics import NormalDist

import numpy as np

from ..array import Array
from ..autograd.transforms import no_grad
from ..dtypes import is_float
from ..random import _shared

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {"tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 0.75}
_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "sigmoid")


def calculate_gain(nonlinearity, param=None):
    """Return the factor for weights before an activation; param: the slope of leaky_relu.

    ValueError: a name that is not known.

    >>> vg.nn.init.calculate_gain("tanh"), vg.nn.init.calculate_gain("linear")
    (1.6666666666666667, 1.0)
    """
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2.0 / (1.0 + slope**2))
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    names = ", ".join([*_LINEAR, "leaky_relu", *_GAINS])
    raise ValueError(f"a nonlinearity is one of {names}, not {nonlinearity!r}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Write numbers from [a, b) to an Array; return it.

    >>> x = vg.nn.init.uniform_(vg.empty(1000), -1.0, 1.0)
    >>> (vg.abs(x).max() <= 1).item()
    True
    """
    return _drawn(tensor, (generator or _shared()).random, a, b - a)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Write normal numbers of a mean and a standard deviation to an Array; return it.

    >>> rng = vg.random.default_rng(7)
    >>> x = vg.nn.init.normal_(vg.empty(1000), mean=5.0, std=0.1, generator=rng)
    >>> round(x.mean().item())
    5
    """
    return _drawn(tensor, (generator or _shared()).standard_normal, mean, std)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Write normal numbers, but only such from a to b, to an Array; return it.

    The host computes them, so that they are the same on every device. ValueError: b is below a, or
    std is not positive.

    >>> x = vg.nn.init.trunc_normal_(vg.empty(1000), std=0.5, a=-1.0, b=1.0)
    >>> (vg.abs(x).max() <= 1).item()
    True
    """
    if not (std > 0 and a <= b):
        raise ValueError(f"std > 0 and a <= b are wanted, but std={std}, a={a} and b={b}")
    # Shares of a tail are accurate below the mean, where they are close to 0 and not to 1.
    sign = -1 if a > mean else 1
    first, last = [math.erfc(sign * (mean - end) / (std * math.sqrt(2))) / 2 for end in (a, b)]
    shares = first + (last - first) * _on_host(generator, "random", tensor).ravel()
    shares = np.clip(shares, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
    values = np.fromiter(map(NormalDist().inv_cdf, shares.tolist()), float, shares.size)
    return _write(tensor, np.clip(mean + sign * std * values, a, b).reshape(tensor.shape))


def _drawn(tensor, draw, start, scale):
    _check(tensor)
    with no_grad():
        values = draw(tensor.shape, tensor.dtype, device=tensor.device)
        values *= float(scale)
        values += float(start)
        tensor[...] = values
    return tensor


def _on_host(generator, name, tensor):
    """Return numbers of a generator's method as an ndarray of a tensor's shape, of float64."""
    _check(tensor)
    if not is_float(tensor.dtype):
        raise TypeError(f"an Array of floats is wanted, not of {tensor.dtype}")
    draw = getattr(generator or _shared(), name)
    return draw(tensor.shape, "float64", device="cpu").numpy()


def _write(tensor, values):
    with no_grad():
        tensor[...] = values
    return tensor


def constant_(tensor, val):
    """Write one number to all elements of an Array; return it.

    >>> vg.nn.init.constant_(vg.empty(3), 0.5).tolist()
    [0.5, 0.5, 0.5]
    """
    _check(tensor)
    with no_grad():
        tensor[...] = val
    return tensor


def zeros_(tensor):
    """Write 0 to all elements of an Array; return it.

    >>> vg.nn.init.zeros_(vg.empty(3)).tolist()
    [0.0, 0.0, 0.0]
    """
    return constant_(tensor, 0.0)


def ones_(tensor):
    """Write 1 to all elements of an Array; return it.

    >>> vg.nn.init.ones_(vg.empty(3)).tolist()
    [1.0, 1.0, 1.0]
    """
    return constant_(tensor, 1.0)


def eye_(tensor):
    """Write 1 to the diagonal of a matrix and 0 beside it; return the Array.

    ValueError: not two dimensions.

    >>> vg.nn.init.eye_(vg.empty((2, 3))).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    _check(tensor, 2, 2)
    return _write(tensor, np.eye(*tensor.shape))


def dirac_(tensor, groups=1):
    """Write the weight of a convolution that gives its input as it is; return the Array.

    tensor: (out, in, one to three lengths). groups: of the outputs, each with all of the inputs.
    ValueError: other dimensions, groups that do not divide the outputs.

    >>> vg.nn.init.dirac_(vg.empty((2, 2, 3))).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    _check(tensor, 3, 5)
    out, count = tensor.shape[:2]
    if groups < 1 or out % groups:
        raise ValueError(f"{groups} groups do not divide {out} outputs")
    values, each = np.zeros(tensor.shape), out // groups
    middle = tuple([length // 2 for length in tensor.shape[2:]])
    for i in range(out):
        if i % each < count:
            values[(i, i % each, *middle)] = 1
    return _write(tensor, values)


def _check(tensor, least=0, most=math.inf):
    """TypeError: no Array. ValueError: other numbers of dimensions."""
    if not isinstance(tensor, Array):
        raise TypeError(f"an Array is wanted, to be written to, not {type(tensor).__name__}")
    if not least <= tensor.ndim <= most:
        more = " or more" if most == math.inf else f" to {most}" if most > least else ""
        raise ValueError(f"{least}{more} dimensions are wanted, but the shape is {tensor.shape}")


# By the numbers of inputs and outputs -------------------------------------------------------------


def _fans(tensor):
    """Return (inputs of an output, outputs of an input) of a weight (out, in, ...)."""
    _check(tensor, 2)
    places = math.prod(tensor.shape[2:])
    return tensor.shape[1] * places, tensor.shape[0] * places


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Write numbers from [-b, b), b = gain * sqrt(6 / (fan_in + fan_out)); return the Array.

    >>> x = vg.nn.init.xavier_uniform_(vg.empty((12, 12)))
    >>> (vg.abs(x).max() <= 0.5).item()
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Write normal numbers, std = gain * sqrt(2 / (fan_in + fan_out)); return the Array.

    >>> vg.nn.init.xavier_normal_(vg.empty((3, 4))).shape
    (3, 4)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    fans = dict(zip(("fan_in", "fan_out"), _fans(tensor), strict=True))
    if mode not in fans:
        raise ValueError(f"a mode is fan_in or fan_out, not {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(fans[mode])


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Write numbers from [-b, b), b = gain * sqrt(3 / fan); return the Array.

    a: the slope of leaky_relu. mode: "fan_in" or "fan_out". ValueError: names, a weight of fewer
    than two dimensions.

    >>> x = vg.nn.init.kaiming_uniform_(vg.empty((100, 24)))
    >>> (vg.abs(x).max() <= 0.5).item()
    True
    """
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Write normal numbers, std = gain / sqrt(fan); return the Array. See kaiming_uniform_.

    >>> vg.nn.init.kaiming_normal_(vg.empty((3, 4)), nonlinearity="relu").shape
    (3, 4)
    """
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


# Matrices -----------------------------------------------------------------------------------------


def orthogonal_(tensor, gain=1, generator=None):
    """Write a random matrix whose rows or columns, the fewer, are orthonormal times gain.

    tensor: (rows, ...), the others being its columns. The host computes it, so that it is the same
    on every device. Return the Array. ValueError: fewer than two dimensions.

    >>> w = vg.nn.init.orthogonal_(vg.empty((3, 5)))
    >>> vg.allclose(w @ w.T, vg.eye(3), atol=1e-6)
    True
    """
    _check(tensor, 2)
    if not tensor.size:
        return tensor
    matrix = _on_host(generator, "standard_normal", tensor).reshape(tensor.shape[0], -1)
    wide = matrix.shape[0] < matrix.shape[1]
    q, r = np.linalg.qr(matrix.T if wide else matrix)
    q = gain * q * np.sign(np.diag(r))  # evenly distributed, as QR's own signs are not
    return _write(tensor, (q.T if wide else q).reshape(tensor.shape))


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Write normal numbers to a matrix, but 0 to a share of each column; return the Array.

    The host computes it, so that it is the same on every device. ValueError: not two dimensions, a
    sparsity that is not from 0 to 1.

    >>> x = vg.nn.init.sparse_(vg.empty((10, 3)), 0.25)
    >>> (x == 0).sum(axis=0).tolist()
    [3, 3, 3]
    """
    _check(tensor, 2, 2)
    if not 0 <= sparsity <= 1:
        raise ValueError(f"a sparsity is from 0 to 1, not {sparsity}")
    values = std * _on_host(generator, "standard_normal", tensor)
    zeros = math.ceil(sparsity * tensor.shape[0])
    places = np.argsort(_on_host(generator, "random", tensor), axis=0)[:zeros]
    np.put_along_axis(values, places, 0.0, axis=0)
    return _write(tensor, values)
