"""Writes by so many indices that clusters of blocks share them, or that they are parted first.

NumPy's results, in one launch or in two. Of the simulated cards "sim:1" has clusters; see
kernels/element_writes.cuh and kernels/parted_writes.cuh.
"""

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg

WRITERS, THREADS = 8, 1024  # blocks of a cluster
MOST, MOST_PLACES = 2**17, 2**22
PAIRS, LEAST_PLACES = 65536, 2048  # writes that need no clusters; places of a block
PIECE, LISTED = 2048, 2048  # writes of a block that parts them; such pieces that are found together
WHOLE_PIECES = 264  # from so many on they are twice as long
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
    for count in (PAIRS + 1, 70_001, 9 * WRITERS * THREADS + 1, MOST - 1, MOST):
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
    mended, named = 3 if card.startswith("sim") else 2, rng.integers(0, MOST_PLACES, fewest)
    check(card, rng, "int8", MOST_PLACES + 1, named, expected_launches=mended)


# ---- Parted by ranges of places ------------------------------------------------------------------


@pytest.fixture
def fewest(device):
    """So many 32-bit indices are parted, by one card or another."""
    return 16_385 if device == "sim" else MOST + 1


def named_so(rng, way, places, count):
    """Numbers of places: of any, of each once or as often as others, ascending, or nearly one."""
    if way == "any":
        return rng.integers(-places, places, count)
    if way == "distinct":
        return np.resize(rng.permutation(places), count)
    if way == "ascending":
        return np.sort(rng.integers(0, places, count))
    named = np.full(count, places // 2)
    named[:: count // 7] = rng.integers(0, places, len(named[:: count // 7]))
    return named


@pytest.mark.parametrize("way", ["any", "distinct", "ascending", "one"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_parted_writes(device, rng, dtype, way, fewest):
    whole, beyond = -(-fewest // PIECE) * PIECE, count_of_parts(dtype) + 1
    for count, places in (
        (fewest, fewest),
        (whole, 3000),
        (whole + 1, 16 * whole),
        (whole + 33, 4 * whole + 1),
        (max(fewest, beyond // 15), beyond),
    ):
        if count // 8 <= places:
            named = named_so(rng, way, places, count)
            check(device, rng, dtype, places, named, 1, np.int32, expected_launches=2)


def count_of_parts(dtype):
    """The most places of 128 parts of the simulated card."""
    each = (65536 - 16516) // (np.dtype(dtype).itemsize + 4) // 4 * 4
    return 128 * each


def test_parted_writes_of_every_layout(device, rng, fewest):
    for step, indices in ((-1, np.int32), (3, np.int32), (1, np.uint64), (2, np.int64)):
        count = PAIRS + 3 if device == "sim" and np.dtype(indices).itemsize == 8 else fewest
        named = rng.integers(0, 50_000, count)
        check(device, rng, "int16", 50_000, named, step, indices, expected_launches=2)
    x, values = np.zeros(50_000, np.float32), rng.random((fewest, 3), np.float32)
    named = rng.integers(-50_000, 50_000, (fewest, 2)).astype(np.int32)
    array = put(device, x)
    array[put(device, named)[:, 1]] = put(device, values)[:, 2]
    x[named[:, 1]] = values[:, 2]
    assert_same(array, x)


def test_parted_writes_in_long_pieces(device, rng):
    least = WHOLE_PIECES * 2 * PIECE
    for count in (least - 1, least + 5):
        named = rng.integers(0, 300_000, count)
        check(device, rng, "int8", 300_000, named, 1, np.int32, expected_launches=2)


def test_parted_writes_of_more_pieces_than_are_found_together(device, rng):
    item = "float64" if device == "sim" else "int8"  # two long pieces of such do not fit this card
    count = LISTED * (PIECE if device == "sim" else 2 * PIECE) + 5
    named = rng.integers(0, 600_000, count)
    check(device, rng, item, 600_000, named, 1, np.int32, expected_launches=2)


def test_few_writes_to_many_places_are_not_parted(device, rng, fewest):
    mended = 3 if device == "sim" else 2
    named = rng.integers(0, 16 * fewest + 16, fewest)
    check(device, rng, "int8", 16 * fewest + 15, named % (16 * fewest), 1, np.int32, 2)
    if device == "sim":
        check(device, rng, "int8", 16 * fewest + 16, named, 1, np.int32, mended)


def test_parted_indices_out_of_range(device, rng, fewest):
    places = 20_000
    for beyond in (places, -places - 1, 2**31 - 1, -(2**31)):
        named = rng.integers(0, places, fewest).astype(np.int32)
        at = rng.integers(0, fewest, 40)
        named[at] = beyond
        values = rng.integers(1, 2**31, fewest).astype(np.int32)
        array = put(device, np.zeros(places, np.int32))
        with helpers.refused_later(device, IndexError, match=f"index {beyond} is out of bounds"):
            array[put(device, named)] = put(device, values)
        expected, kept = np.zeros(places, np.int32), named != beyond
        expected[named[kept]] = values[kept]
        assert_same(array, expected)


# ---- Indices out of range, of clusters -----------------------------------------------------------


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
