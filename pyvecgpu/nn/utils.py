"""What is done with all gradients of a network: names as in torch.nn.utils."""

from .. import functions as vg
from ..array import Array
from ..autograd.transforms import no_grad
from ..optim.gradients import multiply, total_norm

__all__ = ["clip_grad_norm_", "clip_grad_value_", "get_total_norm"]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False):
    """Return the norm of all elements of some arrays, an Array of no axes.

    RuntimeError: it is not finite, if that is asked for, which waits for the device.

    >>> print(vg.nn.utils.get_total_norm([vg.asarray([3.0]), vg.asarray([4.0])]))
    5.0
    """
    arrays = [tensors] if isinstance(tensors, Array) else list(tensors)
    if not arrays:
        return vg.asarray(0.0)
    with no_grad():
        total = total_norm([x.detach() for x in arrays], float(norm_type))
    if error_if_nonfinite and not bool(vg.isfinite(total)):
        raise RuntimeError(f"the norm of the gradients is not finite: {total.item()}")
    return total


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Scale the gradients of parameters so that the norm of all of them is at most max_norm.

    Returns the norm before, an Array of no axes; nothing waits for its value. Gradients are changed
    in place, as torch's, where they are arrays of their own in C order. A norm that is NaN makes
    gradients NaN; with error_if_nonfinite it is a RuntimeError, and they stay.

    >>> w = vg.zeros(2).requires_grad_()
    >>> w.grad = vg.asarray([3.0, 4.0])
    >>> norm = vg.nn.utils.clip_grad_norm_([w], 1.0)
    >>> print(norm, w.grad)
    5.0 [0.5999999  0.79999983]
    """
    parameters = _with_gradients(parameters)
    total = get_total_norm([p.grad for p in parameters], norm_type, error_if_nonfinite)
    multiply(parameters, float(max_norm), total)
    return total


def clip_grad_value_(parameters, clip_value):
    """Bring each element of the gradients of parameters to [-clip_value, clip_value].

    >>> w = vg.zeros(2).requires_grad_()
    >>> w.grad = vg.asarray([3.0, -0.5])
    >>> vg.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [1.0, -0.5]
    """
    parameters, most = _with_gradients(parameters), float(clip_value)
    with no_grad():
        clipped = [vg.clip(p.grad.detach(), -most, most) for p in parameters]
    for p, g in zip(parameters, clipped, strict=True):
        p.grad = g


def _with_gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Array) else list(parameters)
    return [p for p in parameters if p.grad is not None]
