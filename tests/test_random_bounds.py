"""Random integers between arrays of bounds, and orders of arrays that stay on their device."""

import numpy as np
import pytest
from helpers import assert_same, put, refused

import pyvecgpu as vg
from pyvecgpu import dispatch


def test_bounds_are_kept(device):
    low, high = np.array([0, -5, 7, -(2**63)]), np.array([[1, 5, 10**12, 2**63 - 1]] * 3)
    generator = vg.random.default_rng(3, device=device)
    for one, other in ((low, high), (put(device, low), high), (low.tolist(), put(device, high))):
        drawn = generator.integers(one, other)
        assert drawn.dtype == vg.int64 and drawn.shape == (3, 4)
        found = drawn.numpy()
        assert (low <= found).all() and (found < high).all()
    many = generator.integers([0, 10], [3, 13], (2000, 2)).numpy()
    assert set(many[:, 0]) == {0, 1, 2} and set(many[:, 1]) == {10, 11, 12}
    ends = generator.integers([0, 254], 255, (400, 2), "uint8", endpoint=True).numpy()
    assert set(ends[:, 1]) == {254, 255}
    assert set(generator.integers([0, 1], 2, (99, 2), bool).numpy()[:, 0]) == {False, True}


def test_the_same_numbers_everywhere(device):
    """And for the largest ranges each word itself; some words are drawn again."""
    for low, high, dtype in (
        ([0], [2**64], "uint64"),
        ([-(2**63)], [2**63], "int64"),
        ([0] * 40, [2**63 + 1] * 40, "uint64"),
        ([1, 2, 3], [4, 9, 2**40], "int64"),
    ):
        same = [
            vg.random.default_rng(5, device=place).integers(low, high, None, dtype)
            for place in (device, "cpu")
        ]
        assert_same(same[0], same[1].numpy())
        found = [int(one) for one in same[0].numpy()]
        assert all(a <= one < b for a, one, b in zip(low, found, high, strict=True))


def test_bounds_are_equally_likely(device):
    n = 30_000
    drawn = vg.random.default_rng(9, device=device).integers(np.zeros(n, int), 6).numpy()
    counts = np.bincount(drawn, minlength=6)
    assert np.sum((counts - n / 6) ** 2 / (n / 6)) < 25  # chi-square of 5 degrees, p = 1e-4


def test_orders_are_taken_on_the_device(device):
    x = np.arange(24.0).reshape(4, 6)
    for name in ("permutation", "choice"):
        for axis in (0, 1):
            more = {"size": 3} if name == "choice" else {}
            array, calls = put(device, x), []
            with dispatch.observe(calls.append):
                drawn = getattr(vg.random.default_rng(1), name)(array, axis=axis, **more)
            assert drawn.device == array.device
            assert not [
                c
                for c in calls
                if c.method == "to_host" and any(x is array for x in c.inputs.values())
            ]
            host = getattr(vg.random.default_rng(1, device=device), name)(x, axis=axis, **more)
            assert_same(drawn, host.numpy())


REFUSED = {
    "equal": (lambda g: g.integers([1, 2], [5, 2]), ValueError),
    "bounds": (lambda g: g.integers([0, 2], 300, dtype="uint8"), ValueError),
    "floats": (lambda g: g.integers([0.5, 2], 3), TypeError),
    "size": (lambda g: g.integers([0, 2], 3, size=3), ValueError),
    "shapes": (lambda g: g.integers([0, 2], [3, 4, 5]), ValueError),
    "a scalar": (lambda g: g.permutation(np.asarray(3.0)), ValueError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(device, case):
    call, error = REFUSED[case]
    with refused(device, error):
        call(vg.random.default_rng(1, device=device))
