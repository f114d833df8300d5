"""Gradients against central differences in float64, for the tests of autograd."""

import numpy as np
from helpers import put

import pyvecgpu as vg

STEP, TOLERANCE = 1e-6, 2e-7


def arrays(result):
    """The Arrays of floats of what a function gave."""
    several = isinstance(result, (list, tuple))
    return [x for x in (result if several else [result]) if x.dtype.kind == "f"]


def weighted(result, device, weights):
    """One number of all results, in which every element has a weight of its own.

    weights: {shape: Array} of those that were made before.
    """
    total = 0.0
    for x in arrays(result):
        if x.shape not in weights:
            own = np.cos(np.arange(x.size, dtype=np.float64) + 1.0).reshape(x.shape)
            weights[x.shape] = put(device, own)
        total = (x * weights[x.shape]).sum() + total
    return total


def differences(value, operand):
    """Central differences of a function of an ndarray."""
    result = np.zeros(operand.shape)
    for place in np.ndindex(result.shape):
        both = []
        for sign in (1, -1):
            moved = operand.copy()
            moved[place] += sign * STEP
            both.append(value(moved))
        result[place] = (both[0] - both[1]) / (2 * STEP)
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
        found = np.zeros(wanted.shape) if g is None else g.numpy()
        assert close(found, wanted, 10.0), f"operand {i}:\n{found}\n{wanted}"
