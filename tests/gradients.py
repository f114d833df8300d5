"""Gradients against central differences in float64 and complex128, for the tests of autograd.

The gradient by a complex number is that by its real part and 1j times that by its imaginary part.
"""

import numpy as np
from helpers import put

import pyvecgpu as vg

STEP, TOLERANCE = 1e-6, 2e-7


def arrays(result):
    """The Arrays of floats and complex numbers of what a function gave."""
    several = isinstance(result, (list, tuple))
    return [x for x in (result if several else [result]) if x.dtype.kind in "fc"]


def weighted(result, device, weights):
    """One real number of all results, in which every element, and part of one, has its own weight.

    weights: {(shape, kind): Array} of those that were made before.
    """
    total = 0.0
    for x in arrays(result):
        key = x.shape, x.dtype.kind
        if key not in weights:
            own = np.cos(np.arange(x.size, dtype=np.float64) + 1.0).reshape(x.shape)
            own = own + 1j * np.sin(3.0 * own) if x.dtype.kind == "c" else own
            weights[key] = put(device, own)
        x = x * weights[key]
        total = (vg.real(x) if x.dtype.kind == "c" else x).sum() + total
    return total


def differences(value, operand):
    """Central differences of a function of an ndarray."""
    result = np.zeros_like(operand)
    for place in np.ndindex(result.shape):
        for way in (1.0, 1j) if operand.dtype.kind == "c" else (1.0,):
            both = []
            for sign in (1, -1):
                moved = operand.copy()
                moved[place] += sign * STEP * way
                both.append(value(moved))
            result[place] += way * (both[0] - both[1]) / (2 * STEP)
    return result


def close(found, wanted, scale=1.0):
    error = np.max(np.abs(found - wanted), initial=0.0)
    return error <= TOLERANCE * scale * max(1.0, np.max(np.abs(wanted), initial=0.0))


def check(function, *operands, device="cpu"):
    """Compare the gradients of function(*Arrays) by every operand with differences."""
    leaves, weights = [put(device, x).requires_grad_() for x in operands], {}
    total = weighted(function(*leaves), device, weights)
    total.backward()
    still = [put(device, x) for x in operands]

    for i, leaf in enumerate(leaves):
        assert leaf.grad is not None, f"no gradient of operand {i}"
        assert (leaf.grad.shape, leaf.grad.dtype) == (leaf.shape, leaf.dtype)

        def value(moved, i=i):
            result = function(*still[:i], put(device, moved), *still[i + 1 :])
            return weighted(result, device, weights).item()

        wanted = differences(value, operands[i])
        found = leaf.grad.numpy()
        assert close(found, wanted), f"operand {i}:\n{found}\n{wanted}"


def check_twice(function, *operands, device="cpu"):
    """Compare the gradients of gradients: those of a sum of first ones with differences of it."""

    weights = {}

    def first(*leaves, create):
        total = weighted(function(*leaves), device, weights)
        found = vg.autograd.grad(total, leaves, create_graph=create, allow_unused=True)
        return weighted([g for g in found if g is not None], device, weights)

    leaves = [put(device, x).requires_grad_() for x in operands]
    total = first(*leaves, create=True)
    if not isinstance(total, vg.Array) or not total.requires_grad:
        total = None  # linear: all differences have to be 0
    found = [None] * len(leaves)
    if total is not None:
        found = vg.autograd.grad(total, leaves, allow_unused=True)

    still = [put(device, x).requires_grad_() for x in operands]

    for i, g in enumerate(found):

        def value(moved, i=i):
            own = put(device, moved).requires_grad_()
            result = first(*still[:i], own, *still[i + 1 :], create=False)
            return result.item() if isinstance(result, vg.Array) else result

        wanted = differences(value, operands[i])
        found = np.zeros_like(wanted) if g is None else g.numpy()
        assert close(found, wanted, 10.0), f"operand {i}:\n{found}\n{wanted}"
