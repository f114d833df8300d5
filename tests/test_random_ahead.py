"""Random numbers that the CPU device keeps ahead: always those of the place that is asked for."""

import threading

import numpy as np
import pytest

from pyvecgpu.backends import cpu_random
from pyvecgpu.native.abi import Distribution

pytestmark = pytest.mark.devices("cpu")
SIZES = (1, 2, 7, 100, 500, 1000, 3000, 4 * cpu_random.MOST_AT_ONCE + 5)


def draws(seed, count):
    """Return places and sizes: streams that mostly go on, go back and forth at times, and wrap."""
    rng = np.random.default_rng(seed)
    counters, places = {}, []
    for _ in range(count):
        stream = int(rng.integers(0, 3 * cpu_random.STREAMS))
        counter = counters.get(stream, 2**64 - 300 if stream % 5 == 0 else 0)
        counter = (counter + int(rng.choice([0, 0, 0, 0, 3, -2, 129, -700]))) % 2**64
        size = int(rng.choice(SIZES))
        dtype = rng.choice([np.uint32, np.uint64, np.uint8])
        counters[stream] = (counter + -(-size * max(4, dtype().itemsize) // 16)) % 2**64
        places.append((stream, counter, size, dtype))
    return places


def wrong(places):
    """Return the places of which the bits are not Philox's of these blocks alone."""
    found = []
    for stream, counter, size, dtype in places:
        array = np.empty(size, dtype)
        cpu_random.fill(array, Distribution.RANDOM_BITS, 77, stream, counter)
        words = cpu_random.philox(77, stream, counter, -(-size * max(4, array.itemsize) // 16))
        bits = words.reshape(-1).view(np.uint64 if array.itemsize == 8 else np.uint32)
        if not np.array_equal(array, bits[:size].astype(dtype)):
            found.append((stream, counter, size, dtype))
    return found


def test_numbers_are_those_of_their_place(device):
    assert wrong(draws(1, 1500)) == []
    assert len(cpu_random._ahead) <= cpu_random.STREAMS


def test_threads_draw_from_the_same_streams(device):
    found = []

    def draw(seed):
        found.append(wrong(draws(seed, 400)))

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [[]] * 8


@pytest.mark.parametrize("distribution", Distribution)
def test_few_numbers_are_parts_of_many(device, distribution):
    """Few draws take numbers that were made for later ones, many make them afresh."""
    dtypes = (np.uint64, np.uint32) if distribution == 0 else (np.float32, np.float64, np.float16)
    for dtype in dtypes:
        many = np.empty(5000, dtype)
        cpu_random.fill(many, distribution, 5, 6, 0)
        of_a_block = 2 if many.itemsize == 8 else 4
        for block in (0, 1, 30, cpu_random.AT_ONCE - 1, cpu_random.AT_ONCE, 900):
            for size in (1, 3, 40, 200):
                few = np.empty(size, dtype)
                cpu_random.fill(few, distribution, 5, 6, block)
                assert np.array_equal(few, many[block * of_a_block :][:size])
