"""Products that follow each other at once have the bits of products that wait for each other.

A kernel of a product may begin while the one before it is at work, if it waits before it reads what
that one writes, and before it writes what that one reads. Of a chain each product reads the result
of the last; its copies, pieces and sums take memory that the one before it has just given back.
"""

import helpers
import numpy as np
import pytest
from forced import card_for, is_simulated
from products import EVERY_CASE, PARAMETERS, forced

import pyvecgpu as vg

LENGTH, ROUNDS = 6, 3
# The sides of the square factors, most of them too few for a full card, or a little too many.
SIDES = {
    "tiny": (32,),
    "thin": (16, 300),
    "gemv": (700,),
    "outer": (16,),
    "others": (130, 520, 1100, 1700),
}


def chain(x, factors, precision, wait):
    """x @ factors[0] @ factors[1] ...."""
    results = []
    for factor in factors:
        x = vg.matmul(x, factor, precision=precision)
        if wait:
            vg.synchronize(x.device)
        results.append(x)
    return results


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_chains(device, rng, kernel, dtype, precision):
    card = card_for(device, kernel)
    if card is None:
        pytest.skip(f"no kernel {kernel} on this card")
    sides = SIDES.get(kernel, SIDES["others"])
    if is_simulated(card):
        sides = sides[:1]
    rows = {"gemv": 1, "thin": 9, "tiny": 32, "outer": 300}.get(kernel)
    with forced(card, kernel):
        for side in sides:
            shape = (rows or side, side)
            factors = [
                vg.asarray(rng.standard_normal((side, side)) / side**0.5, dtype=dtype, device=card)
                for _ in range(LENGTH)
            ]
            for trial in range(ROUNDS):
                x = vg.asarray(rng.standard_normal(shape), dtype=dtype, device=card)
                expected = chain(x, factors, precision, wait=True)
                found = chain(x, factors, precision, wait=False)
                for number, (one, other) in enumerate(zip(found, expected, strict=True)):
                    assert np.isfinite(vg.astype(one, vg.float64).numpy()).all()
                    message = f"product {number} of {side}, round {trial}"
                    assert helpers.bits(one) == helpers.bits(other), message
