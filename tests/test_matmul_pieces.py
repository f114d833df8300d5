"""Products of float32 from 16-bit pieces: which are, how they are launched, what is done again.

What all kernels have in common is in test_matmul_kernels.py, errors are in test_matmul_accuracy.py.
"""

import helpers
import numpy as np
import pytest
from helpers import put
from products import (
    check_bits,
    check_same,
    check_within,
    forced,
    integers,
    launched,
    launches,
    multiply,
    place,
    poisoned,
    values_of,
)

import pyvecgpu as vg


def emulated(device):
    """Launches of the kernel that multiplies float32 from 16-bit pieces."""
    return launched(device, "emulated_kernel")


EMULATED = [("bf16x6", "float32"), ("fp16x3", "fast32")]
SPLIT = [(1024,) * 3, (1030, 1040, 1024), (2048,) * 3, (2048, 2048, 256), (2047, 2047, 327)]
SPLIT += [(576,) * 3, (512, 1024, 512), (512, 512, 2048), (130, 4000, 4000)]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), SPLIT)
@pytest.mark.parametrize(("kernel", "precision"), EMULATED)
def test_large_products_of_float32_are_by_tensor_cores(device, rng, kernel, precision, m, n, k):
    """Without being told to, without a wait of the host; not those of "ieee", nor small ones."""
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    x, y = put(device, a), put(device, b)
    if m * n * k < 2e9:  # too little work for the preparations of "fast32"
        kernel = "bf16x6"
    with forced(device, kernel):
        expected = multiply(x, y, precision)
    before, counts = emulated(device), vg.counters(device)
    result = multiply(x, y, precision)
    later = vg.counters(device)
    assert emulated(device) == before + 1
    assert all(later[name] == counts[name] for name in ("waits", "copies_to_host"))
    check_bits(result, expected)
    ieee, small = multiply(x, y, "ieee"), multiply(x[:500, :500], y[:500, :500], precision)
    assert emulated(device) == before + 1
    assert helpers.bits(ieee) != helpers.bits(result)
    check_bits(small, multiply(x[:500, :500], y[:500, :500], "ieee"))


# k too short, few terms, few rows; and sums of eight slices in "ieee".
NOT_SPLIT = [(2048, 2048, 255), (500, 700, 510), (127, 4000, 1900), (130, 600, 32768)]
NOT_SPLIT += [(512, 512, 2047), (300, 720, 2000)]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("m", "n", "k"), NOT_SPLIT)
@pytest.mark.parametrize("precision", ["float32", "fast32"])
def test_products_that_splitting_would_not_pay_for(device, rng, precision, m, n, k):
    """Or make less accurate: they are those of "ieee"."""
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    x, y = put(device, a), put(device, b)
    before = emulated(device)
    result = multiply(x, y, precision)
    assert emulated(device) == before
    check_bits(result, multiply(x, y, "ieee"))


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("kernel", "precision"), EMULATED)
@pytest.mark.parametrize("shared", ["none", "a", "b"])
def test_a_batch_from_pieces_is_launched_as_one_product(device, rng, kernel, precision, shared):
    """64 items, each kernel once; and each item has the bits of that product alone."""
    n = 256
    a, b = (rng.standard_normal(((1 if one == shared else 64), n, n)) for one in "ab")
    with forced(device, kernel):
        x, y = place(device, a, "float32"), place(device, b, "float32", trans=True)
        before = launches(device)
        alone = multiply(x[:1], y[:1], precision)
        between = launches(device)
        batch = multiply(x, y, precision)
        assert launches(device) - between == between - before
        check_bits(batch[:1], alone)
        for i in (1, 31, 63):
            check_bits(batch[i], multiply(x[i % len(a)], y[i % len(b)], precision))


# More than the workspace holds, and in how many launches at least; 7 of odd sizes.
IN_TURNS = [(9, 2048, 2048, 2048, 2), (3, 4352, 3968, 4096, 3), (7, 2047, 4100, 1801, 2)]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("items", "m", "n", "k", "turns"), IN_TURNS)
@pytest.mark.parametrize(("kernel", "precision"), EMULATED)
def test_large_batches_from_pieces(device, rng, kernel, precision, items, m, n, k, turns):
    """Their pieces lie in a workspace of 256 MiB at most, which several launches use in turn.

    One b for all items too, which is split once; and backwards, into every other item of an array.
    """
    a, b = (rng.standard_normal((items, *shape), np.float32) for shape in ((m, k), (k, n)))
    with forced(device, kernel):
        x, y = put(device, a), put(device, b)
        before = emulated(device)
        both = multiply(x, y, precision)
        assert emulated(device) - before >= turns
        shared = multiply(x, y[1], precision)
        memory = poisoned(device, (2 * items, m, n), "float32")
        vg.matmul(x[::-1], y, precision=precision, out=memory[::-2])
        for i in (0, items // 2, items - 1):
            check_bits(both[i], multiply(x[i], y[i], precision), f"item {i}")
            check_bits(shared[i], multiply(x[i], y[1], precision), f"item {i}, one b")
            turned = multiply(x[items - 1 - i], y[i], precision)
            check_bits(memory[2 * (items - i) - 1], turned, f"item {i}, backwards")
        assert np.isnan(values_of(memory[::2])).all()


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("kernel", "precision"), EMULATED)
@pytest.mark.parametrize(("m", "n", "k"), [(130, 200, 300), (257, 1023, 513), (700, 1500, 64)])
@pytest.mark.parametrize("where", ["a", "b"])
def test_only_items_that_need_it_are_computed_again(device, rng, kernel, precision, m, n, k, where):
    """One with an infinity, in float32 arithmetic; and all have the bits that they have alone."""
    a, b = rng.standard_normal((5, m, k)), rng.standard_normal((5, k, n))
    operand = a if where == "a" else b
    operand[3, -1, -1] = np.inf
    for trans in (False, True):
        x, y = place(device, a, "float32", trans), place(device, b, "float32", trans)
        with forced(device, kernel):
            result = multiply(x, y, precision)
            for i in range(5):
                alone = multiply(x[i], y[i], precision)
                assert helpers.bits(result[i]) == helpers.bits(alone), f"item {i}"
        left, right = values_of(x)[3, :-1], values_of(y)[3, :, :-1]  # without what is not finite
        tolerance = (np.sqrt(k) + 8) * 2.0**-24 * (np.abs(left) @ np.abs(right))
        again = values_of(result[3])
        check_within(again[:-1, :-1], left @ right, tolerance)
        assert not np.isfinite(again[-1] if where == "a" else again[:, -1]).any()


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(("kernel", "precision"), EMULATED)
def test_sums_that_overflow_only_in_parts(device, kernel, precision):
    """Of terms that are far apart in k: a sum of all of them in order stays finite."""
    a, b = np.zeros((130, 600), np.float32), np.ones((600, 140), np.float32)
    a[3, [0, 64, 65, 128, 129]] = [3e38, -2e38, -2e38, 2e38, 2e38]
    a[4, [0, 64, 65]] = [-3e38, 2e38, 2e38]
    expected = np.zeros((130, 140))
    expected[3], expected[4] = np.float32(3e38), np.float32(2e38) * 2.0 - np.float32(3e38)
    with forced(device, kernel):
        result = values_of(multiply(put(device, a), put(device, b), precision))
    check_within(result, expected, 1e-6 * np.abs(expected))


@pytest.mark.devices("cuda")
@pytest.mark.big
@pytest.mark.parametrize(("kernel", "precision"), EMULATED)
def test_batches_of_more_elements_than_32_bits_count(device, rng, kernel, precision):
    items, m, n, k = 33, 8192, 130, 8192
    assert items * m * k > 2**31
    a, b = integers(rng, (m, k), "float32"), integers(rng, (k, n), "float32")
    with forced(device, kernel):
        x = vg.zeros((items, m, k), device=device)
        x[items - 1] = put(device, a.astype(np.float32))
        c = multiply(x, place(device, b, "float32"), precision)
    check_same(c[items - 1], a @ b)
    assert not values_of(c[: items - 1]).any()
