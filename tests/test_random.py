"""Random numbers: Philox's published answers, the same bits everywhere, and the distributions.

Figures of the statistical tests have fixed seeds; how far a moment may be off is said in standard
errors of so many numbers.
"""

import copy
import inspect
import math
import pickle
import threading

import helpers
import numpy as np
import pytest
from helpers import BFLOAT16, assert_same

import pyvecgpu as vg
from pyvecgpu.backends import cpu_random
from pyvecgpu.dispatch import apply, observe
from pyvecgpu.native.abi import Distribution

BITS, UNIFORM, NORMAL, EXPONENTIAL = Distribution
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"] + ["bfloat16"] * (BFLOAT16 is not None)
CASES = [(BITS, dtype) for dtype in UNSIGNED]
CASES += [(one, dtype) for one in (UNIFORM, NORMAL, EXPONENTIAL) for dtype in FLOATS]
PLACE = (0x0123456789ABCDEF, 0xFEDCBA9876543210, 2**64 - 9)  # key, stream, counter, which wraps
WIDTHS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def drawn(device, distribution, dtype, shape, place=PLACE):
    array = vg.empty(shape, dtype, device=device)
    apply(array.backend, "random", array, int(distribution), *place)
    return array


def assert_drawn(result, expected, distribution, dtype):
    """The same bits; of logarithms, sines and cosines within 4 units in the last place."""
    result = helpers.host(result)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    if distribution in (BITS, UNIFORM):
        assert_same(result, expected)
        return
    result, expected = result.astype(np.float64), expected.astype(np.float64)
    unit = np.exp2(np.frexp(expected)[1] - float(WIDTHS[dtype]))
    assert not np.any(~(np.abs(result - expected) <= 4 * unit))


def words(place, count):
    """Philox4x32-10 in Python's integers."""
    key, stream, counter = place
    found = []
    for block in range(-(-count // 4)):
        c = [*halves((counter + block) % 2**64), *halves(stream)]
        k = list(halves(key))
        for _ in range(10):
            (l0, h0), (l1, h1) = halves(0xD2511F53 * c[0]), halves(0xCD9E8D57 * c[2])
            c = [h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0]
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        found += c
    return found[:count]


def halves(number):
    return number % 2**32, number >> 32


def joined(low, high):
    return low | high << 32


# The numbers --------------------------------------------------------------------------------------

ALL = 2**32 - 1
# Random123's kat_vectors: counter, key, words.
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([ALL] * 4, [ALL] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(device, counter, key, expected):
    place = joined(*key), joined(*counter[2:]), joined(*counter[:2])
    assert drawn(device, BITS, "uint32", 4, place).tolist() == expected
    assert words(place, 4) == expected
    pairs = [joined(*expected[:2]), joined(*expected[2:])]
    assert drawn(device, BITS, "uint64", 2, place).tolist() == pairs


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_bits_are_the_words(device, dtype):
    result = drawn(device, BITS, dtype, 101).tolist()
    if dtype == "uint64":
        w = words(PLACE, 202)
        assert result == [joined(*pair) for pair in zip(w[::2], w[1::2], strict=True)]
    else:
        assert result == [word % 256 ** np.dtype(dtype).itemsize for word in words(PLACE, 101)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_numbers_are_the_highest_bits(device, dtype):
    wide = dtype == "float64"
    bits = np.array(drawn("cpu", BITS, "uint64" if wide else "uint32", 301).tolist(), object)
    expected = (bits >> (64 if wide else 32) - WIDTHS[dtype]).astype(float) * 2.0 ** -WIDTHS[dtype]
    result = helpers.host(drawn(device, UNIFORM, dtype, 301)).astype(np.float64)
    assert_same(result, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_and_angles_are_accurate(device, dtype):
    """Against mpmath's way: exact rationals, in Python's floats of twice float32's precision."""
    wide = 64 if dtype == "float64" else 32
    count = 1000
    bits = drawn("cpu", BITS, f"uint{wide}", count).tolist()
    uniform = [(b + 0.5) / 2**wide for b in bits]
    minus_logs = [
        -math.log(u) if b < 2 ** (wide - 1) else -math.log1p(-(2**wide - b - 0.5) / 2**wide)
        for u, b in zip(uniform, bits, strict=True)
    ]
    unit = 2.0 ** -WIDTHS[dtype]
    result = helpers.host(drawn(device, EXPONENTIAL, dtype, count)).astype(np.float64)
    assert not np.any(~(np.abs(result - minus_logs) <= 8 * unit * np.abs(minus_logs)))
    result = helpers.host(drawn(device, NORMAL, dtype, count)).astype(np.float64)
    radius = np.sqrt(2 * np.array(minus_logs[::2]))
    angle = 2 * np.pi * np.array(bits[1::2], float) / 2**wide
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
    assert not np.any(~(np.abs(result - expected) <= 40 * unit))


@pytest.mark.parametrize(("distribution", "dtype"), CASES)
def test_every_size(device, distribution, dtype):
    """What a size gives is where the numbers of a larger one begin; beyond a chunk of the CPU's."""
    longest = 4 * cpu_random.CHUNK + 7
    whole = helpers.host(drawn("cpu", distribution, dtype, longest))
    for size in [*range(20), 31, 64, 1001, longest]:
        result = drawn(device, distribution, dtype, size)
        assert_drawn(result, whole[:size], distribution, dtype)


def layouts(device, dtype):
    """Views of shape (6, 5), by name."""
    empty = lambda *shape: vg.zeros(shape, dtype, device=device)  # noqa: E731
    return {
        "transposed": empty(5, 6).T,
        "backwards": empty(6, 5)[::-1],
        "every second": empty(12, 10)[::2, 1::2],
        "columns": empty(6, 9)[:, 3:8],
        "shifted by one": empty(31)[1:].reshape(6, 5),
        "shifted by three": empty(33)[3:].reshape(6, 5),
    }


@pytest.mark.parametrize(("distribution", "dtype"), CASES)
def test_every_layout(device, distribution, dtype):
    expected = helpers.host(drawn("cpu", distribution, dtype, (6, 5)))
    for view in layouts(device, dtype).values():
        apply(view.backend, "random", view, int(distribution), *PLACE)
        assert_drawn(view, expected, distribution, dtype)
    scalar = drawn(device, distribution, dtype, ())
    assert_drawn(scalar, expected[0, 0].reshape(()), distribution, dtype)


def test_nothing_beside_a_view_is_written(device):
    whole = vg.zeros((9, 8), "float32", device=device)
    vg.random.default_rng(3).standard_normal(out=whole[2:7:2, 1:6])
    values = whole.numpy()
    inside = np.zeros((9, 8), bool)
    inside[2:7:2, 1:6] = True
    assert (values[inside] != 0).all() and (values[~inside] == 0).all()


def test_devices_give_the_same(device):
    """Every method of a Generator, named a device by the call and by the generator."""
    calls = {
        "random": lambda g, **at: g.random((3, 7), "float64", **at),
        "uniform": lambda g, **at: g.uniform(-2, 5, 33, **at),
        "integers": lambda g, **at: g.integers(-7, 2**62 + 3, 200, **at),
        "permutation": lambda g, **at: g.permutation(50, **at),
        "choice": lambda g, **at: g.choice(50, (4, 5), p=np.arange(50) / 1225, **at),
        "standard_normal": lambda g, **at: g.standard_normal(40, **at),
        "normal": lambda g, **at: g.normal(3, 0.5, 40, **at),
        "exponential": lambda g, **at: g.exponential(4, 40, **at),
    }
    for name, call in calls.items():
        expected = call(vg.random.default_rng(5, device="cpu")).numpy()
        generators = vg.random.default_rng(5), vg.random.default_rng(5, device=device)
        ours = call(generators[0], device=device), call(generators[1])
        assert generators[0].state == generators[1].state
        for result in ours:
            assert result.device == vg.Device(device), name
            if name in ("standard_normal", "normal", "exponential"):
                np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, atol=1e-6)
            else:
                assert_same(result, expected)
    assert vg.random.default_rng(1, device=device).device == vg.Device(device)


# The stream ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "block"), [("float16", 4), ("float32", 4), ("float64", 2)])
def test_requests_continue_the_stream(device, dtype, block):
    for method in ("random", "standard_normal"):
        one, parts = (vg.random.default_rng(11, device=device) for _ in range(2))
        whole = getattr(one, method)(10 * block, dtype).numpy()
        found = [getattr(parts, method)(n * block, dtype).numpy() for n in (1, 4, 5)]
        assert_same(np.concatenate(found), whole)
        assert one.state == parts.state
        beginning = vg.random.default_rng(11, device=device)
        getattr(beginning, method)(1, dtype)  # a block of its own
        assert_same(getattr(beginning, method)(3, dtype).numpy(), whole[block : block + 3])


def test_state(device):
    generator = vg.random.default_rng([1, 2, 3], device=device)
    generator.random(5)
    state = generator.state
    expected = generator.random(9).numpy()
    generator.state = state
    assert_same(generator.random(9), expected)
    other = vg.random.default_rng(device=device)
    other.state = state
    assert_same(other.random(9), expected)
    generator.state = state
    for copied in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))):
        assert copied.device == generator.device
        assert_same(copied.random(9), expected)


def test_seeds():
    first = vg.random.default_rng(7, device="cpu")
    assert vg.random.default_rng(first) is first
    states = [vg.random.default_rng(s).state for s in (7, 8, [7, 0, 1], None, None)]
    states.append(vg.random.default_rng(np.random.SeedSequence(9)).state)
    assert first.state == states[0]
    assert len({tuple(state["state"].values()) for state in states}) == 6


def test_spawned_generators_differ(device):
    parent, again = (vg.random.default_rng(2, device=device) for _ in range(2))
    children = parent.spawn(3) + parent.spawn(2)
    assert [one.state for one in children] == [one.state for one in again.spawn(5)]
    drawn_by = [one.random(64).numpy() for one in [parent, *children]]
    for i, one in enumerate(drawn_by):
        for other in drawn_by[:i]:
            assert not np.isin(one, other).mean() > 0.05
    assert all(one.device == parent.device for one in children) and parent.spawn(0) == []


def test_threads_share_a_generator(device):
    """Each request has blocks of its own: together they are the stream's."""
    shared, alone = (vg.random.default_rng(4, device=device) for _ in range(2))
    found = [[] for _ in range(4)]

    def work(mine):
        for _ in range(25):
            mine.append(shared.random(8).numpy())

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = np.array([row for mine in found for row in mine])
    expected = alone.random((100, 8)).numpy()
    assert_same(rows[np.lexsort(rows.T)], expected[np.lexsort(expected.T)])


# Distributions ------------------------------------------------------------------------------------

N = 40_000


def assert_mean(values, mean, deviation):
    """Within 4.5 standard errors."""
    error = abs(values.mean() - mean) * math.sqrt(values.size) / deviation
    assert error <= 4.5, error


def chi_square(counts, expected):
    """How far counts are from what they should be, in standard deviations of the sum of squares."""
    statistic = float((((counts - expected) ** 2) / expected).sum())
    degrees = len(counts) - 1
    return (statistic - degrees) / math.sqrt(2 * degrees)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments(device, dtype):
    generator = vg.random.default_rng(2026, device=device)
    x = generator.random(N, dtype).numpy().astype(np.float64)
    assert x.min() >= 0 and x.max() < 1
    assert_mean(x, 1 / 2, math.sqrt(1 / 12))
    assert_mean((x - 0.5) ** 2, 1 / 12, math.sqrt(1 / 180))
    assert_mean((x[1:] - 0.5) * (x[:-1] - 0.5), 0, 1 / 12)
    x = generator.standard_normal(N, dtype).numpy().astype(np.float64)
    for power, mean, deviation in ((1, 0, 1), (2, 1, 2**0.5), (3, 0, 15**0.5), (4, 3, 96**0.5)):
        assert_mean(x**power, mean, deviation)
    assert_mean(x[::2] * x[1::2], 0, 1)
    assert_mean((np.abs(x) > 3).astype(float), 0.0026998, math.sqrt(0.0026998))
    x = generator.exponential(1, N, dtype=dtype).numpy().astype(np.float64)
    assert x.min() > 0
    assert_mean(x, 1, 1)
    assert_mean(x**2, 2, math.sqrt(20))
    assert_mean((x < 1e-3).astype(float), 1e-3, math.sqrt(1e-3))


def test_chi_square(device):
    generator = vg.random.default_rng(99, device=device)
    uniform = generator.random(N).numpy()
    counts = np.histogram(uniform, 64, (0, 1))[0]
    assert abs(chi_square(counts, N / 64)) < 4.5
    edges = np.array([-2, -1, -0.5, 0, 0.5, 1, 2])
    below = np.array([0, *(0.5 * math.erfc(-e / math.sqrt(2)) for e in edges), 1])
    places = np.searchsorted(edges, generator.standard_normal(N).numpy())
    counts = np.bincount(places, minlength=8)
    assert abs(chi_square(counts, N * np.diff(below))) < 4.5
    for count in (3, 7, 100, 2**7):
        counts = np.bincount(generator.integers(0, count, N).numpy(), minlength=count)
        assert len(counts) == count and abs(chi_square(counts, N / count)) < 4.5


def test_scaled(device):
    generator = vg.random.default_rng(5, device=device)
    x = generator.uniform(-3, 7, N, dtype="float64").numpy()
    assert x.min() >= -3 and x.max() <= 7
    assert_mean(x, 2, 10 / math.sqrt(12))
    assert_mean(generator.normal(10, 3, N, dtype="float64").numpy(), 10, 3)
    assert_mean(generator.exponential(5, N, dtype="float64").numpy(), 5, 5)
    loc = vg.asarray([0.0, 100.0, 200.0], device=device)
    x = generator.normal(loc, 1.0, (2000, 3)).numpy()
    assert not np.abs(x.mean(0) - [0, 100, 200]).max() > 0.2
    assert generator.normal(loc).shape == generator.uniform(loc, loc + 1).shape == (3,)
    assert generator.exponential(np.ones((2, 1))).shape == (2, 1)
    assert (generator.normal(loc, 0).numpy() == loc.numpy()).all()


# Integers -----------------------------------------------------------------------------------------

INTEGERS = ["int8", "int16", "int32", "int64", *UNSIGNED]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_at_the_ends_of_a_dtype(device, dtype):
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    generator = vg.random.default_rng(8, device=device)
    for first, last in (
        (low, high), (low, low), (high, high), (high - 2, high), (low, low + 2), (low + 1, high),
    ):  # fmt: skip
        values = generator.integers(first, last, 600, dtype, endpoint=True)
        assert values.dtype == dtype
        found = [int(x) for x in values.tolist()]
        assert min(found) >= first and max(found) <= last
        if last - first < 3:
            assert set(found) == set(range(first, last + 1))
        else:
            assert min(found) < first + (last - first) // 32
            assert max(found) > last - (last - first) // 32
    assert generator.integers(low, high + 1, 3, dtype).shape == (3,)


def test_what_integers_are_made_of(device):
    """The remainder of words; one that would make some numbers likelier is drawn again."""
    count = 2**63 + 3  # nearly half of all words are refused
    generator = vg.random.default_rng(1, device=device)
    key, stream, _ = generator.state["state"].values()
    found = generator.integers(0, count, 8, "uint64").tolist()
    expected, again = [None] * 8, 0
    while None in expected:
        w = words((key, (stream + again * 0x9E3779B97F4A7C15) % 2**64, 0), 16)
        new = [joined(*pair) for pair in zip(w[::2], w[1::2], strict=True)]
        expected = [
            (n if n < count else None) if old is None else old
            for old, n in zip(expected, new, strict=True)
        ]
        again += 1
    assert again > 1 and found == expected
    assert generator.state["state"]["counter"] == 4


def test_bools_and_scalars(device):
    generator = vg.random.default_rng(1, device=device)
    coins = generator.integers(0, 2, 1000, bool)
    assert coins.dtype == bool and 400 < coins.numpy().sum() < 600
    assert generator.integers(1, 2, 9, bool).numpy().all()
    assert not generator.integers(0, 1, 9, bool).numpy().any()
    assert type(generator.integers(5)) is int and type(generator.integers(2, dtype=bool)) is bool
    for method in ("random", "uniform", "standard_normal", "normal", "exponential"):
        assert type(getattr(generator, method)()) is float
    assert generator.integers(1, 6, (2, 0), endpoint=True).shape == (2, 0)
    data = generator.bytes(1001)
    assert isinstance(data, bytes) and len(data) == 1001 and len(set(data)) > 200
    assert generator.bytes(0) == b""


# Orders -------------------------------------------------------------------------------------------


def test_permutation_and_shuffle(device):
    generator = vg.random.default_rng(3, device=device)
    order = generator.permutation(100)
    assert order.dtype == vg.int64 and sorted(order.tolist()) == list(range(100))
    assert order.tolist() != list(range(100)) and generator.permutation(0).shape == (0,)
    rows = np.arange(60).reshape(20, 3)
    for given in (vg.asarray(rows, device=device), rows):
        mixed = generator.permutation(given).numpy()
        assert_same(mixed[np.argsort(mixed[:, 0])], rows)
        assert (np.diff(mixed, axis=1) == 1).all()
    columns = generator.permutation(rows, 1).numpy()
    assert_same(np.sort(columns, 1), rows)
    x = vg.asarray(rows, device=device)
    before = x._version
    assert generator.shuffle(x) is None and x._version > before
    assert x.tolist() != rows.tolist() and sorted(x.tolist()) == rows.tolist()
    first = [generator.permutation(4).tolist()[0] for _ in range(2000)]
    assert abs(chi_square(np.bincount(first, minlength=4), 500)) < 4.5


def test_choice(device):
    generator = vg.random.default_rng(6, device=device)
    assert set(generator.choice(3, 100).tolist()) == {0, 1, 2}
    assert sorted(generator.choice(10, 10, replace=False).tolist()) == list(range(10))
    letters = vg.asarray([[10, 20], [30, 40], [50, 60]], device=device)
    taken = generator.choice(letters, 50)
    assert taken.device == letters.device and {tuple(t) for t in taken.tolist()} <= {
        (10, 20), (30, 40), (50, 60),
    }  # fmt: skip
    assert generator.choice(letters, (2, 2), axis=1).shape == (3, 2, 2)
    p = np.array([0.1, 0.0, 0.2, 0.7])
    counts = np.bincount(generator.choice(4, 20_000, p=p).numpy(), minlength=4)
    assert counts[1] == 0 and abs(chi_square(counts[[0, 2, 3]], 20_000 * p[[0, 2, 3]])) < 4.5
    pairs = [tuple(generator.choice(4, 2, False, p).tolist()) for _ in range(1500)]
    first = np.bincount([pair[0] for pair in pairs], minlength=4)
    assert first[1] == 0 and abs(chi_square(first[[0, 2, 3]], 1500 * p[[0, 2, 3]])) < 4.5
    assert all(a != b and 1 not in (a, b) for a, b in pairs)
    assert type(generator.choice(5)) is int and generator.choice(letters).shape == (2,)


# Arguments ----------------------------------------------------------------------------------------


def test_dtypes_and_out(device):
    generator = vg.random.default_rng(1, device=device)
    assert generator.random(2).dtype == vg.float32
    vg.set_default_dtype("float64")
    try:
        assert generator.random(2).dtype == generator.normal(1, 2, 3).dtype == vg.float64
    finally:
        vg.set_default_dtype("float32")
    out = vg.zeros((3, 4), "float64", device=device)
    assert generator.random(out=out) is out and (out.numpy() > 0).all()
    assert generator.standard_normal((3, 4), "float64", out) is out
    for bad in ((4, 3), 12):
        with helpers.refused(device, ValueError, out):
            generator.random(bad, out=out)
    with helpers.refused(device, TypeError, out):
        generator.random(dtype="float32", out=out)


REFUSED = {
    "low >= high": (lambda g: g.integers(5, 5), ValueError, "low >= high"),
    "low > high": (lambda g: g.integers(5, 4, endpoint=True), ValueError, "low > high"),
    "zero": (lambda g: g.integers(0), ValueError, "low >= high"),
    "low of uint8": (lambda g: g.integers(-1, 5, dtype="uint8"), ValueError, "low is out of"),
    "high of int8": (lambda g: g.integers(0, 129, dtype="int8"), ValueError, "high is out of"),
    "floats": (lambda g: g.integers(0, 5, dtype="float32"), TypeError, "float32"),
    "a float bound": (lambda g: g.integers(0.5, 5), TypeError, "integer"),
    "random of ints": (lambda g: g.random(3, "int32"), TypeError, "int32"),
    "negative size": (lambda g: g.random(-1), ValueError, "negative"),
    "negative sizes": (lambda g: g.integers(0, 5, (2, -3)), ValueError, "negative"),
    "size of floats": (lambda g: g.standard_normal(2.5), TypeError, "integer"),
    "scale": (lambda g: g.normal(0, -1, 3), ValueError, "scale"),
    "scale of nan": (lambda g: g.exponential(math.nan, 3), ValueError, "scale"),
    "infinite range": (lambda g: g.uniform(0, math.inf, 3), OverflowError, "finite"),
    "wide range": (lambda g: g.uniform(-1e308, 1e308, 3), OverflowError, "finite"),
    "bytes": (lambda g: g.bytes(-1), ValueError, "negative"),
    "spawn": (lambda g: g.spawn(-1), ValueError, "negative"),
    "permutation": (lambda g: g.permutation(-1), ValueError, "negative"),
    "too many": (lambda g: g.choice(3, 4, replace=False), ValueError, "without replacement"),
    "p's sum": (lambda g: g.choice(2, p=[0.5, 0.6]), ValueError, "sum"),
    "negative p": (lambda g: g.choice(2, p=[-0.5, 1.5]), ValueError, "negative"),
    "p's shape": (lambda g: g.choice(3, p=[0.5, 0.5]), ValueError, "shape"),
    "too few": (lambda g: g.choice(2, 2, False, [1.0, 0.0]), ValueError, "above 0"),
    "nothing to draw": (lambda g: g.choice(0), ValueError, "no elements"),
    "shuffle": (lambda g: g.shuffle([1, 2]), TypeError, "Array"),
    "out": (lambda g: g.random(out=np.zeros(3)), TypeError, "Array"),
    "a state": (lambda g: setattr(g, "state", {"bit_generator": "x"}), ValueError, "state"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(device, name):
    call, error, match = REFUSED[name]
    generator = vg.random.default_rng(1, device=device)
    with helpers.refused(device, error, match=match):
        call(generator)


@pytest.mark.parametrize("seed", [-1, "text", 1.5, True])
def test_refused_seeds(seed):
    with pytest.raises((ValueError, TypeError)):
        vg.random.default_rng(seed)


def test_backends_refuse_alike(device):
    x = vg.zeros(4, "int32", device=device)
    for distribution in (BITS, NORMAL):
        with helpers.refused(device, TypeError, x, match="int32"):
            apply(x.backend, "random", x, int(distribution), *PLACE)
    repeated = vg.broadcast_to(vg.zeros(4, device=device), (3, 4))
    with helpers.refused(device, ValueError, repeated, match="read-only"):
        apply(repeated.backend, "random", repeated, int(UNIFORM), *PLACE)


def test_it_passes_the_seam(device):
    calls = []
    with observe(calls.append):
        result = vg.random.default_rng(1, device=device).random(3)
    assert [call.method for call in calls] == ["empty", "random"]
    assert calls[1].results[0] is result and calls[1].static["counter"] == 0


# The process's own generator ----------------------------------------------------------------------


def test_the_shared_generator(device):
    with vg.device(device):
        found = []
        for _ in range(2):
            vg.random.seed(12)
            found.append(
                [vg.random.rand(2, 3), vg.random.randn(4), vg.random.random((2, 2)),
                 vg.random.randint(0, 10, 5)]
            )  # fmt: skip
        for one, other in zip(*found, strict=True):
            assert one.device == vg.Device(device)
            assert_same(one, other.numpy())
        assert [x.shape for x in found[0]] == [(2, 3), (4,), (2, 2), (5,)]
        floats = vg.random.rand(), vg.random.randn(), vg.random.random()
        assert all(type(x) is float for x in floats)
        assert type(vg.random.randint(3)) is int


# NumPy's methods are written in C: as its documentation has them.
POSITIONS = {
    "random": ["size", "dtype", "out"],
    "standard_normal": ["size", "dtype", "out"],
    "uniform": ["low", "high", "size"],
    "normal": ["loc", "scale", "size"],
    "exponential": ["scale", "size"],
    "integers": ["low", "high", "size", "dtype", "endpoint"],
    "bytes": ["length"],
    "permutation": ["x", "axis"],
    "shuffle": ["x", "axis"],
    "choice": ["a", "size", "replace", "p", "axis"],
    "spawn": ["n_children"],
}


@pytest.mark.parametrize("name", POSITIONS)
def test_methods_take_arguments_in_numpys_order(name):
    found = inspect.signature(getattr(vg.random.Generator, name)).parameters.values()
    taken = [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    assert taken == POSITIONS[name] and hasattr(np.random.Generator, name)
