"""Writes by so many indices that clusters of blocks share them: NumPy's results, in one launch.

Of the simulated cards "sim:1" has clusters; see kernels/element_writes.cuh.
"""

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg

EACH, WRITERS, THREADS = 12, 8, 1024  # indices of a thread at a time, blocks of a cluster
MOST, MOST_PLACES = 2**17, 2**22
PAIRS, LEAST_PLACES = 65536, 2048  # writes that need no clusters; places of a block
pytestmark = [pytest.mark.devices("sim", "cuda"), pytest.mark.usefixtures("simulated_cards")]


@pytest.fixture
def card(device):
    card = "sim:1" if device == "sim" else device
    if device == "cuda" and vg.Device(card).limits.compute_capability < (9, 0):
        pytest.skip("a card without clusters")
    return card


def launches(device, call):
    before = vg.counters(device)["launches"]
    call()
    return vg.counters(device)["launches"] - before


def check(card, rng, dtype, places, named, step=1, indices=np.int64, expected_launches=1):
    """Values to places of every so many elements; some indices count from the end."""
    x = helpers.integers(rng, (places * abs(step),), np.dtype(dtype))
    values = helpers.integers(rng, named.shape, x.dtype)
    expected = x.copy()
    expected[::step][named] = values
    array = put(card, x)
    part, given, new = array[::step], put(card, named.astype(indices)), put(card, values)
    found = launches(card, lambda: part.__setitem__(given, new))
    assert_same(array, expected)
    assert found == expected_launches


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("places", [9000, 2048 * 8, 2048 * 8 + 1, 70_000])
def test_the_last_write_of_each_place(card, rng, dtype, places):
    batch = EACH * WRITERS * THREADS
    for count in (PAIRS + 1, 70_001, batch - 1, batch, batch + 1):
        if count // 8 > places:
            continue
        distinct = np.resize(rng.permutation(places), count)
        for named in (rng.integers(-places, places, count), distinct):
            check(card, rng, dtype, places, named, *((-1, np.int32), (2, np.int64))[count % 2])


def test_many_places_of_a_block(card, rng):
    for places in (LEAST_PLACES * 128, LEAST_PLACES * 128 + 1, 1_100_000, MOST_PLACES):
        named = rng.integers(0, places, 66_000)
        named[-3:] = 0, places - 1, -places
        check(card, rng, "int16", places, named)


def test_what_clusters_are_not_for(card, rng):
    fewest = PAIRS + 9
    check(card, rng, "int8", fewest // 8, rng.integers(0, fewest // 8, fewest))
    check(card, rng, "int8", 1000, rng.integers(0, 1000, fewest), expected_launches=2)
    check(card, rng, "int8", 2**17, rng.integers(0, 2**17, MOST))
    check(card, rng, "int8", 2**17, rng.integers(0, 2**17, MOST + 1), expected_launches=2)


def test_indices_out_of_range(card, rng):
    places, count = 20_000, PAIRS + 77
    for beyond in (places, -places - 1, 2**31, 2**32 + 5, 2**40 + 1, -(2**63)):
        named = rng.integers(0, places, count)
        at = int(rng.integers(0, count))
        named[at] = beyond
        values = rng.integers(1, 2**31, count).astype(np.int32)
        array = put(card, np.zeros(places, np.int32))
        what = f"index {beyond} is out of bounds"
        with helpers.refused_later(card, IndexError, match=what):
            array[put(card, named)] = put(card, values)
        expected, kept = np.zeros(places, np.int32), np.arange(count) != at
        expected[named[kept]] = values[kept]
        assert_same(array, expected)
