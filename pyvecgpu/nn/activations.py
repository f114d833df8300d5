"""Activations as modules: what vg.nn.functional has as functions."""

from . import functional
from .module import Module

__all__ = [
    "ELU",
    "GELU",
    "LeakyReLU",
    "LogSoftmax",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
]


class ReLU(Module):
    """x where it is positive, else 0.

    >>> vg.nn.ReLU()(vg.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, x):
        return functional.relu(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> print(vg.nn.Sigmoid()(vg.asarray([-1.0, 0.0])))
    [0.2689414 0.5      ]
    """

    def forward(self, x):
        return functional.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> print(vg.nn.Tanh()(vg.asarray([0.0, 1.0])))
    [0.        0.7615942]
    """

    def forward(self, x):
        return functional.tanh(x)


class SiLU(Module):
    """x * sigmoid(x).

    >>> print(vg.nn.SiLU()(vg.asarray([-1.0, 2.0])))
    [-0.2689414  1.761594 ]
    """

    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, x):
        return functional.silu(x)


class GELU(Module):
    """x times the normal distribution's cumulative function; approximate: "none" or "tanh".

    >>> print(vg.nn.GELU()(vg.asarray([-1.0, 0.0, 2.0])))
    [-0.15865526  0.          1.9544997 ]
    """

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, x):
        return functional.gelu(x, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.

    >>> print(vg.nn.Softplus()(vg.asarray([0.0, 100.0])))
    [  0.6931472 100.       ]
    """

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, x):
        return functional.softplus(x, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class LeakyReLU(Module):
    """x where it is positive, else negative_slope * x.

    >>> print(vg.nn.LeakyReLU(0.5)(vg.asarray([-1.0, 2.0])))
    [-0.5  2. ]
    """

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x):
        return functional.leaky_relu(x, self.negative_slope)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """x where it is positive, else alpha * (exp(x) - 1).

    >>> print(vg.nn.ELU()(vg.asarray([-1.0, 2.0])))
    [-0.63212055  2.        ]
    """

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return functional.elu(x, self.alpha)

    def extra_repr(self):
        return f"alpha={self.alpha}"


class Softmax(Module):
    """exp(x) divided by its sum along an axis, `dim`.

    >>> print(vg.nn.Softmax(dim=1)(vg.asarray([[0.0, 0.0, 0.0, 0.0]])))
    [[0.25 0.25 0.25 0.25]]
    """

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return functional.softmax(x, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of Softmax.

    >>> print(vg.nn.LogSoftmax()(vg.asarray([0.0, 0.0])))
    [-0.6931472 -0.6931472]
    """

    def forward(self, x):
        return functional.log_softmax(x, self.dim)
