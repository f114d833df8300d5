"""Softmax, logsumexp, normalisations, cross-entropy, forward and with the backward pass; bytes/s.

Counted is what must move if everything is read and written once: forward the input and the result,
of logsumexp and cross-entropy the input alone; backward both operands and the gradient, of those
two the input and its gradient. Of batch normalisation in training, whose input is larger than what
a block holds, two passes over the input are counted each way.
"""

import math

import numpy as np

from .goals import Within
from .timing import Row

F32 = np.float32
EPSILON = 1e-5
# (rows, columns), and images (items, channels, height, width)
SIZES = {
    "full": (((8192, 8192), (65536, 1024), (2**20, 64), (1024, 65536)), (64, 256, 56, 56)),
    "cpu": (((512, 1024), (4096, 64)), (8, 16, 28, 28)),
    "quick": (((8, 40), (5, 33)), (3, 4, 5, 6)),
}
SHARE = 0.8  # of the rates that are aimed at has to be reached


def rows(size):
    """Return the rows for a key of SIZES."""
    shapes, images = SIZES[size]
    table = []
    for kind in (SOFTMAX, LOGSUMEXP, LAYER_NORM, cross_entropy()):
        for shape in shapes:
            table += [forward(kind, shape), both_ways(kind, shape)]
    return [*table, forward(BATCH_NORM, images), both_ways(BATCH_NORM, images)]


class Kind:
    """compute(module, x, w): what is timed; reference(x, w, g): the result and x's gradient.

    read: passes over memory forward and backward, in elements of x. of_result: the shape of what
    comes out; parameters: the axis that w lies along.
    """

    def __init__(self, name, compute, reference, passes, axis=-1, of_result=None):
        self.name, self.compute, self.reference = name, compute, reference
        self.passes, self.axis = passes, axis
        self.of_result = of_result or (lambda shape: shape)

    def title(self, shape, way):
        return f"{self.name}{way}, {'x'.join(str(n) for n in shape)}"


def forward(kind, shape):
    return Row(
        name=kind.title(shape, ""),
        work=4 * math.prod(shape) * kind.passes[0],
        unit="B/s",
        operands=[(shape, F32), ((shape[kind.axis],), F32)],
        out=None,
        calls=dict.fromkeys(("pyvecgpu", "torch"), kind.compute),
        expected=lambda x, w: kind.reference(x.astype(np.float64), w, None)[0],
        error_allowed=2e-6,
    )


def both_ways(kind, shape):
    def call(module, x, w, g):
        a, b = x.detach().requires_grad_(), w.detach().requires_grad_()
        kind.compute(module, a, b).backward(g)
        return a.grad

    return Row(
        name=kind.title(shape, " and backward"),
        work=4 * math.prod(shape) * sum(kind.passes),
        unit="B/s",
        operands=[(shape, F32), ((shape[kind.axis],), F32), (kind.of_result(shape), F32)],
        out=None,
        calls=dict.fromkeys(("pyvecgpu", "torch"), call),
        expected=lambda x, w, g: kind.reference(x.astype(np.float64), w, g)[1],
        error_allowed=4e-6,
    )


# The functions ------------------------------------------------------------------------------------


def softmax(module, x, w):
    return module.softmax(x, -1)


def softmax_reference(x, w, g):
    y = np.exp(x - x.max(-1, keepdims=True))
    y /= y.sum(-1, keepdims=True)
    return y, None if g is None else y * (g - (y * g).sum(-1, keepdims=True))


def logsumexp(module, x, w):
    return module.logsumexp(x, -1)


def logsumexp_reference(x, w, g):
    most = x.max(-1, keepdims=True)
    y = most + np.log(np.exp(x - most).sum(-1, keepdims=True))
    return y[..., 0], None if g is None else g[..., None] * np.exp(x - y)


def layer_norm(module, x, w):
    return module.nn.functional.layer_norm(x, (x.shape[-1],), w, w, EPSILON)


def batch_norm(module, x, w):
    return module.nn.functional.batch_norm(x, None, None, w, w, True, 0.1, EPSILON)


def standardised(x, w, g, axes):
    """The references of both: means over the axes, w in a shape that fits."""
    y = x - x.mean(axes, keepdims=True)
    scale = 1 / np.sqrt(np.square(y).mean(axes, keepdims=True) + EPSILON)
    y *= scale
    if g is None:
        return y * w + w, None
    gw = g * w
    slope = gw - gw.mean(axes, keepdims=True) - y * (gw * y).mean(axes, keepdims=True)
    return None, slope * scale


def layer_norm_reference(x, w, g):
    return standardised(x, w, g, (-1,))


def batch_norm_reference(x, w, g):
    return standardised(x, w.reshape(1, -1, 1, 1), g, (0, 2, 3))


def cross_entropy():
    """Return the Kind, whose labels are made once for each shape and library."""
    labels = {}

    def compute(module, x, w):
        key = module.__name__, x.shape[0], x.shape[1], str(x.device)
        if key not in labels:
            labels[key] = module.arange(x.shape[0], device=x.device) % x.shape[1]
        return module.nn.functional.cross_entropy(x, labels[key], reduction="none")

    sizes = {"passes": (1, 2), "of_result": lambda shape: shape[:1]}
    return Kind("cross-entropy", compute, cross_entropy_reference, **sizes)


def cross_entropy_reference(x, w, g):
    x -= x.max(-1, keepdims=True)
    x -= np.log(np.exp(x).sum(-1, keepdims=True))
    places = np.arange(len(x)), np.arange(len(x)) % x.shape[1]
    losses = -x[places]
    if g is None:
        return losses, None
    slope = np.exp(x, out=x)
    slope[places] -= 1
    return None, slope * g[:, None]


SOFTMAX = Kind("softmax", softmax, softmax_reference, (2, 3))
LOGSUMEXP = Kind(
    "logsumexp", logsumexp, logsumexp_reference, (1, 2), of_result=lambda shape: shape[:-1]
)
LAYER_NORM = Kind("layer norm", layer_norm, layer_norm_reference, (2, 3))
BATCH_NORM = Kind("batch norm", batch_norm, batch_norm_reference, (3, 5), axis=1)


# What is aimed at, on an H200 --------------------------------------------------------------------

# In 10^12 bytes a second, for each of the full sizes: forward, and backward by itself.
RATES = [
    (SOFTMAX, (3.9, 3.9, 3.6, 3.6), (3.8, 3.8, 3.8, 3.8)),
    (LAYER_NORM, (3.8, 3.8, 3.8, 3.8), (3.5, 3.5, 3.5, 3.5)),
    (cross_entropy(), (4.0, 4.0, 3.5, 3.8), (3.9, 3.9, 3.9, 3.9)),
]


def _goals():
    shapes, images = SIZES["full"]
    goals = []
    for kind, *rates in RATES:
        for shape, there, back in zip(shapes, *rates, strict=True):
            passes = [4e-12 * math.prod(shape) * n for n in kind.passes]
            one, both = passes[0] / there, passes[0] / there + passes[1] / back
            for way, seconds in (("", one), (" and backward", both)):
                goals.append(Within(kind.title(shape, way), seconds / SHARE))
    for kind, shape, rate in ((LOGSUMEXP, shapes[1], 4.2), (BATCH_NORM, images, 4.0)):
        seconds = 4e-12 * math.prod(shape) * kind.passes[0] / rate
        goals.append(Within(kind.title(shape, ""), seconds / SHARE))
    return goals


GOALS = _goals()
