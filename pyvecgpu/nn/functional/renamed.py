"""Functions that pyvecgpu has by NumPy's and the array API's words, by torch's."""

from ...functions import exponentials, layers

__all__ = ["linear", "log_softmax", "softmax"]


def linear(input, weight, bias=None):
    """Return input @ weight.T + bias; input: (..., in), weight: (out, in), bias: (out,) or None.

    `dense` is the same and has an activation. ValueError: shapes. TypeError: dtypes.

    >>> vg.nn.functional.linear(vg.ones((2, 3)), vg.ones((1, 3))).tolist()
    [[3.0], [3.0]]
    """
    return layers.dense(input, weight, bias)


def softmax(input, axis=-1, out=None, *, dim=None, device=None):
    """Return vg.softmax along an axis, which torch calls dim.

    >>> vg.nn.functional.softmax(vg.zeros((1, 2)), dim=1).tolist()
    [[0.5, 0.5]]
    """
    axis = axis if dim is None else dim
    return exponentials.softmax(input, axis, out, device=device)


def log_softmax(input, axis=-1, out=None, *, dim=None, device=None):
    """Return vg.log_softmax along an axis, which torch calls dim.

    >>> print(vg.nn.functional.log_softmax(vg.zeros((1, 2)), dim=1))
    [[-0.6931472 -0.6931472]]
    """
    axis = axis if dim is None else dim
    return exponentials.log_softmax(input, axis, out, device=device)
