"""First values of parameters, written in place: torch.nn.init's names, and our random numbers.

generator: one of vg.random.default_rng(seed); None: the process's own, see vg.random.seed.
"""

import math

from ..array import Array
from ..autograd.transforms import no_grad
from ..random import _shared

__all__ = [
    "calculate_gain",
    "constant_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
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


def _drawn(tensor, draw, start, scale):
    _check(tensor)
    with no_grad():
        values = draw(tensor.shape, tensor.dtype, device=tensor.device)
        values *= float(scale)
        values += float(start)
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


def _check(tensor):
    if not isinstance(tensor, Array):
        raise TypeError(f"an Array is wanted, to be written to, not {type(tensor).__name__}")


# By the numbers of inputs and outputs -------------------------------------------------------------


def _fans(tensor):
    """Return (inputs of an output, outputs of an input) of a weight (out, in, ...)."""
    _check(tensor)
    if tensor.ndim < 2:
        raise ValueError(f"a weight has two or more dimensions, but its shape is {tensor.shape}")
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
