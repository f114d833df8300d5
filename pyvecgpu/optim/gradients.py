"""All gradients of a network at once: their norm, and all of them multiplied, in place."""

import math

from .. import functions as vg
from ..array import Tracked
from ..autograd.transforms import no_grad
from ..dispatch import apply
from ..linalg import vector_norm


def total_norm(arrays, order):
    """Return the norm of all elements, on the first array's device."""
    if order not in (1, 2, math.inf):
        return _composed_norm(arrays, order)
    try:
        norms = [apply(b, "total_norm", xs, order) for b, xs in _by_device(arrays).items()]
    except TypeError:  # integers, complex numbers
        return _composed_norm(arrays, order)
    if len(norms) == 1:
        return norms[0]
    home = arrays[0].device
    norms = [vg.astype(norm, norm.dtype, copy=False, device=home) for norm in norms]
    return apply(arrays[0].backend, "total_norm", norms, order)


def multiply(parameters, most, norm=None):
    """Multiply the gradients of parameters, which all have one, by most / norm or 1, or by most."""
    with no_grad():
        gradients = [_own(p.grad) for p in parameters]
        for backend, arrays in _by_device(gradients).items():
            here = norm
            if norm is not None:
                here = vg.astype(norm, norm.dtype, copy=False, device=backend.device)
            apply(backend, "clip_norm", arrays, here, most)
    for p, g in zip(parameters, gradients, strict=True):
        if p.grad is not g:
            p.grad = g


def _composed_norm(arrays, order):
    return vector_norm(vg.stack([vector_norm(x, ord=order) for x in arrays]), ord=order)


def _by_device(arrays):
    """Return {backend: its arrays}."""
    found = {}
    for x in arrays:
        found.setdefault(x.backend, []).append(x)
    return found


def _own(g):
    """Return a gradient that can be changed in place: itself, or a copy."""
    return g if type(g) is not Tracked and g.backend.plain(g.raw) else vg.copy(g.detach())
