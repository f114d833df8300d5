"""Attention of halves by warpgroup products: the kernels of cards of compute capability 9.0."""

import itertools

import numpy as np
import pytest
from helpers import BFLOAT16, put
from test_attention import TOLERANCES, assert_near, attend, reference, reference_gradients
from test_attention_tensor import launched, numbers

import pyvecgpu as vg
from pyvecgpu.dispatch import apply

HALVES = ["float16"] + (["bfloat16"] if BFLOAT16 is not None else [])
# Beside the tiles' edges (64 and 128 rows), and beside what a block takes part with.
LENGTHS = (64, 65, 127, 128, 129, 200, 1000)
SIZES = (1, 63, 64, 65, 127, 128, 129, 300, 1000)
FEATURES = ((8, 8), (64, 64), (40, 64), (64, 16), (72, 128), (128, 128), (128, 24))


@pytest.fixture
def card(device):
    """A card that has the instructions; the simulated one has not."""
    limits = vg.Device(device).limits
    if (limits.compute_capability_major, limits.compute_capability_minor) != (9, 0):
        pytest.skip("needs compute capability 9.0")
    return device


pytestmark = pytest.mark.devices("cuda")


def there_and_back(card, case, causal, dtype, what, like=None):
    """Compare value and gradients with float64; `like` lays an operand out; returns all of them."""
    q, k, v, g = case
    lay = like or put
    arrays = [lay(card, x).requires_grad_() for x in (q, k, v)]
    scale = q.shape[-1] ** -0.5
    result = attend(*arrays, is_causal=causal)
    assert_near(result.detach(), reference(q, k, v, None, causal, scale), dtype, what)
    found = vg.autograd.grad(result, arrays, put(card, g))
    exact = reference_gradients(g, q, k, v, None, causal, scale)
    for name, x, y in zip("qkv", found, exact, strict=True):
        assert_near(x, y, dtype, f"{what}: gradient of {name}")
    return [result.detach().numpy(), *(x.numpy() for x in found)]


def drawn(seed, dtype, leading, length, size, features, width):
    rng = np.random.default_rng([31, seed])
    shapes = ((length, features), (size, features), (size, width), (length, width))
    return [numbers(rng, dtype, *leading, *shape) for shape in shapes]


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("dtype", HALVES)
def test_edges(card, dtype, causal):
    for i, (length, size) in enumerate(itertools.product(LENGTHS, SIZES)):
        features, width = FEATURES[i % len(FEATURES)]
        case = drawn(i, dtype, (2,), length, size, features, width)
        what = f"{length} queries, {size} keys, {features} and {width} features"
        there_and_back(card, case, causal, dtype, what)


@pytest.mark.parametrize("features", (64, 128))
@pytest.mark.parametrize("causal", (False, True))
def test_more_work_than_blocks(card, causal, features):
    """Several tiles to a block, of items that are mixed and that are not."""
    for items, length, size in ((300, 130, 70), (150, 257, 300), (3, 2500, 2500)):
        case = drawn(items, "float16", (items,), length, size, features, features)
        there_and_back(card, case, causal, "float16", f"{items} items")


def heads_inside(card, x):
    """As (batch, length, heads, features), turned around."""
    return put(card, np.ascontiguousarray(x.swapaxes(-2, -3))).swapaxes(-2, -3)


def packed(card, x):
    """A part of rows that hold more."""
    wide = np.zeros((*x.shape[:-1], x.shape[-1] + 16), x.dtype)
    wide[..., 8:-8] = x
    return put(card, wide)[..., 8:-8]


@pytest.mark.parametrize("dtype", HALVES)
def test_layouts(card, dtype):
    """The same bits of every layout that TMA reads, and of each item alone."""
    for features, causal in ((64, True), (128, True), (64, False)):
        case = drawn(features, dtype, (2, 3), 200, 150, features, features)
        before = launched(card)
        plain = there_and_back(card, case, causal, dtype, "contiguous")
        for lay in (heads_inside, packed):
            others = there_and_back(card, case, causal, dtype, lay.__name__, lay)
            for one, other in zip(plain, others, strict=True):
                assert np.array_equal(one, other), lay.__name__
        alone = there_and_back(card, [x[1, 2] for x in case], causal, dtype, "alone")
        for one, other in zip(plain, alone, strict=True):
            assert np.array_equal(one[1, 2], other), "alone"
        kernels = {x.kernel for x in launched(card) - before if "products" not in x.kernel}
        assert all("wgmma" in kernel for kernel in kernels), kernels


@pytest.mark.parametrize("causal", (False, True))
def test_shared_keys(card, causal):
    """Grouped heads, keys of the whole batch, and leading dimensions that are not merged."""
    shapes = (
        ((2, 2, 3), (2, 2, 1), (2, 2, 1)),
        ((3, 4), (4,), (1, 4)),
        ((2, 3), (1, 1), (2, 3)),
        ((2, 1, 2, 2), (2, 2, 1, 2), (1, 2, 2, 1)),
    )
    rng = np.random.default_rng(32)
    for lay in (put, heads_inside):
        for leading in shapes:
            q, k, v = (
                numbers(rng, "float16", *some, n, 64)
                for some, n in zip(leading, (130, 140, 140), strict=True)
            )
            full = np.broadcast_shapes(*leading)
            g = numbers(rng, "float16", *full, 130, 64)
            chosen = [lay if len(some) > 1 else put for some in leading]
            arrays = [f(card, x).requires_grad_() for f, x in zip(chosen, (q, k, v), strict=True)]
            result = attend(*arrays, is_causal=causal)
            what = f"{leading} {lay.__name__}"
            assert_near(result.detach(), reference(q, k, v, None, causal, 0.125), "float16", what)
            found = vg.autograd.grad(result, arrays, put(card, g))
            exact = reference_gradients(g, q, k, v, None, causal, 0.125)
            for name, x, y in zip("qkv", found, exact, strict=True):
                assert_near(x, y, "float16", f"{what}: gradient of {name}")


def test_which_calls(card):
    """Rows at multiples of 16 bytes, features in eights, at least 64 queries, and no mask."""
    for dtype in HALVES:
        x = vg.ones((100, 128), dtype=dtype, device=card)
        odd = vg.ones((100, 129), dtype=dtype, device=card)
        taken = {
            "plain": (x, x, x),
            "few features": (x[:, :8], x[:, :8], x[:, :16]),
            "rows apart": (x[:64], x[::2], x[::2]),
        }
        left = {
            "few queries": (x[:63], x, x),
            "odd features": (x[:, :36], x[:, :36], x),
            "odd width": (x, x, x[:, :36]),
            "rows anywhere": (odd[:, :128], x, x),
            "backwards": (x, x[::-1], x[::-1]),
            "columns apart": (x[:, ::2], x[:, ::2], x),
        }
        for cases, wanted in ((taken, True), (left, False)):
            for name, operands in cases.items():
                before = launched(card)
                attend(*operands)
                (one,) = launched(card) - before
                assert ("wgmma" in one.kernel) == wanted, f"{name}: {one.kernel}"
        before = launched(card)
        attend(x, x, x, vg.ones((100, 100), dtype=bool, device=card))
        (one,) = launched(card) - before
        assert "wgmma" not in one.kernel


@pytest.mark.parametrize("dtype", HALVES)
def test_infinities_and_nan(card, dtype):
    """They stay with the query that has them, and of a key they go to all that see it."""
    q, k, v, _ = drawn(33, dtype, (), 150, 150, 64, 64)
    for bad in (np.nan, np.inf):
        worse = q.copy()
        worse[70, 2] = bad
        found = attend(*(put(card, x) for x in (worse, k, v))).astype("float32").numpy()
        assert np.isnan(found[70]).all() and not np.isnan(np.delete(found, 70, axis=0)).any()
        worse = v.copy()
        worse[140, 3] = bad
        found = attend(*(put(card, x) for x in (q, k, worse))).astype("float32").numpy()
        assert not np.isfinite(found[:, 3]).any()
        assert np.isfinite(np.delete(found, 3, axis=1)).all()
        found = attend(*(put(card, x) for x in (q, k, worse)), is_causal=True)
        found = found.astype("float32").numpy()
        assert not np.isfinite(found[140:, 3]).any() and np.isfinite(found[:128]).all()


def test_keys_behind_all_queries_are_not_read_by_whole_tiles(card):
    """NaN there changes nothing, and has gradients of zero."""
    q, k, v, g = drawn(34, "float16", (2,), 200, 700, 64, 64)
    wrong = [k.copy(), v.copy()]
    for x in wrong:
        x[:, 256:] = np.nan
    results = []
    for keys, values in ((k, v), wrong):
        leaves = [put(card, x).requires_grad_() for x in (q, keys, values)]
        result = attend(*leaves, is_causal=True)
        found = vg.autograd.grad(result, leaves, put(card, g))
        results.append([result.detach().numpy(), *(x.numpy() for x in found)])
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))
    assert not results[0][2][:, 200:].any() and not results[0][3][:, 200:].any()


def test_sums_of_exponentials(card):
    """The logarithm that the backward pass takes, beside float64; a large scale, too."""
    for scale in (0.125, 3.0):
        q, k, v, _ = drawn(35, "float16", (3,), 130, 300, 64, 64)
        scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * scale
        most = scores.max(axis=-1, keepdims=True)
        wanted = np.log(np.exp(scores - most).sum(axis=-1)) + most[..., 0]
        logsum = vg.empty((3, 130), dtype="float32", device=card)
        given = [put(card, x) for x in (q, k, v)]
        result = apply(logsum.backend, "attention", *given, None, scale, False, logsum)
        error = np.max(np.abs(logsum.numpy() - wanted) / np.maximum(1, np.abs(wanted)))
        assert error <= 2e-6
        assert_near(result, reference(q, k, v, None, False, scale), "float16", f"scale {scale}")


def test_the_same_bits_twice(card):
    for features in (64, 128):
        case = drawn(36, "float16", (40,), 500, 500, features, features)
        first, second = (there_and_back(card, case, True, "float16", "twice") for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_near_the_other_kernels(card):
    """Both round weights to 16 bits and nothing else."""
    case = drawn(37, "float16", (2,), 300, 300, 64, 64)
    mask = vg.ones((300, 300), dtype=bool, device=card)
    arrays = [put(card, x) for x in case[:3]]
    one, other = (attend(*arrays, *more).numpy().astype("f8") for more in ((), (mask,)))
    assert np.max(np.abs(one - other)) <= TOLERANCES["float16"] / 2


def test_launches(card):
    """One forward, three backward, and no wait."""
    q = vg.ones((2, 3, 100, 64), dtype="float16", device=card)
    logsum = vg.empty((2, 3, 100), dtype="float32", device=card)
    before = vg.counters(card)
    result = apply(q.backend, "attention", q, q, q, None, 0.5, True, logsum)
    between = vg.counters(card)
    apply(q.backend, "attention_backward", result, q, q, q, None, result, logsum, 0.5, True)
    after = vg.counters(card)
    assert between["launches"] - before["launches"] == 1
    assert after["launches"] - between["launches"] == 3
    rest = [name for name in before if name not in ("launches", "live_arrays")]
    assert all(after[name] == before[name] for name in rest)
