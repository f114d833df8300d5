"""Attention on tensor cores: the kernels of cards from compute capability 8.0 on.

The simulated card "sim" has none, "sim:1" and "sim:2" have.
"""

import numpy as np
import pytest
from helpers import BFLOAT16, put
from test_attention import (
    TOLERANCES,
    Drawn,
    assert_near,
    attend,
    place,
    reference,
    reference_gradients,
)

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.nn.functional.attention import attend as attention

HALVES = ["float16"] + (["bfloat16"] if BFLOAT16 is not None else [])
TAKEN = ["float32", *HALVES]
CARDS = {"sim": ("sim:1", "sim:2"), "cuda": ("cuda",)}
pytestmark = [pytest.mark.devices("sim", "cuda"), pytest.mark.usefixtures("simulated_cards")]
# Beside the tiles' edges (32, 64, 128), and beside what 16 bytes hold.
LENGTHS = (1, 2, 16, 31, 33, 63, 64, 65, 127, 129, 200)
FEATURES = (1, 7, 8, 16, 24, 63, 64, 65, 72, 127, 128)


@pytest.fixture
def card(request, device):
    """A card with tensor cores; of the simulated ones in turn, by the test's name."""
    return CARDS[device][len(request.node.name) % len(CARDS[device])]


class Tensor(Drawn):
    """A case at these edges: a mask beside an order, too, and negative scales."""

    def __init__(self, seed, dtype):
        self.rng = np.random.default_rng([15, seed])
        rng = self.rng
        leading = tuple(rng.integers(1, 3, rng.integers(0, 3)))
        self.leading, self.dtype = leading, dtype
        self.length, self.size = (int(rng.choice(LENGTHS)) for _ in range(2))
        e, w = (int(rng.choice(FEATURES)) for _ in range(2))
        if np.prod(leading, initial=1.0) * self.length * self.size * (e + w) > 1e6:
            leading = self.leading = ()
        self.q = self.values((*leading, self.length, e))
        self.k = self.values((*self.fewer(leading), self.size, e))
        self.v = self.values((*self.fewer(leading), self.size, w))
        self.causal = bool(rng.integers(0, 2))
        self.mask = self.drawn_mask() if rng.integers(0, 2) else None
        self.scale = float(rng.choice([1.0, 1.0, 0.3, -0.5])) / np.sqrt(e)


@pytest.mark.parametrize("dtype", TAKEN)
@pytest.mark.parametrize("part", range(4))
def test_random_shapes(card, dtype, part):
    """Values and gradients of operands of any layouts, with any mask, order and scale."""
    for seed in range(part * 8, part * 8 + 8):
        case = Tensor(seed, dtype)
        operands = (case.q, case.k, case.v)
        arrays = [place(card, x, seed // 2 + i).requires_grad_() for i, x in enumerate(operands)]
        mask = None if case.mask is None else place(card, case.mask, seed)
        what = f"seed {seed}, {[x.shape for x in operands]}, causal {case.causal}, {case.scale}"
        what += "" if mask is None else f", mask {mask.shape} {mask.dtype}"
        how = (case.mask, case.causal, case.scale)
        result = attention(*arrays, mask, case.causal, case.scale, 0.0)
        assert_near(result.detach(), reference(*operands, *how), dtype, what)
        g = case.values(result.shape)
        found = vg.autograd.grad(result, arrays, place(card, g, seed // 4))
        exact = reference_gradients(g, *operands, *how)
        for name, x, y in zip("qkv", found, exact, strict=True):
            assert_near(x, y, dtype, f"{what}: gradient of {name}")


def numbers(rng, dtype, *shape):
    return np.asarray(put("cpu", rng.normal(size=shape)).astype(dtype).numpy())


def views(card, x):
    """The rows as they are copied in 16 bytes, and as they cannot be."""
    rows, features = x.shape
    wide = np.zeros((rows, features // 8 * 8 + 16), x.dtype)
    wide[:, :features] = x
    yield "padded", put(card, wide)[:, :features]
    wide = np.roll(wide, 1, axis=1)
    yield "an element into memory", put(card, wide)[:, 1 : features + 1]
    yield "of an odd pitch", put(card, wide[:, : features + 1])[:, 1:]
    yield "turned around", put(card, np.ascontiguousarray(x[::-1]))[::-1]
    yield "repeated", put(card, x[:1])


@pytest.mark.parametrize("dtype", ("float32", "float16"))
@pytest.mark.parametrize("features", (20, 64, 100))
def test_rows_in_memory(card, features, dtype):
    """The same bits of every layout, as nothing but the way of the copy differs."""
    rng = np.random.default_rng(21)
    q, k, v, g = (numbers(rng, dtype, n, features) for n in (37, 70, 70, 37))
    cases = [(i, *view) for i, x in enumerate((q, k, v)) for view in views(card, x)]
    for i, name, x in cases:
        plain = [put(card, y) for y in (q, k, v)]
        if name == "repeated":
            plain[i] = put(card, np.repeat(x.numpy(), plain[i].shape[0], axis=0))
            x = vg.broadcast_to(x, plain[i].shape)
        results = []
        for one in (plain[i], x):
            operands = [y if j != i else one for j, y in enumerate(plain)]
            logsum = vg.empty((37,), dtype="float32", device=card)
            backend = logsum.backend
            result = apply(backend, "attention", *operands, None, 0.2, True, logsum)
            call = (put(card, g), *operands, None, result, logsum, 0.2, True)
            found = apply(backend, "attention_backward", *call)
            results.append([y.numpy() for y in (result, logsum, *found)])
        for a, b in zip(*results, strict=True):
            assert np.array_equal(a, b), f"{name}, operand {i}"


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_sums_of_exponentials(card, dtype):
    """The logarithm that the backward pass takes, beside float64."""
    rng = np.random.default_rng(22)
    q, k = (numbers(rng, dtype, n, 40) for n in (70, 130))
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * 3.0
    most = scores.max(axis=-1, keepdims=True)
    wanted = np.log(np.exp(scores - most).sum(axis=-1)) + most[:, 0]
    logsum = vg.empty((70,), dtype="float32", device=card)
    given = [put(card, x) for x in (q, k, k)]
    apply(logsum.backend, "attention", *given, None, 3.0, False, logsum)
    error = np.max(np.abs(logsum.numpy() - wanted) / np.maximum(1, np.abs(wanted)))
    assert error <= 1e-6


def test_which_kernels_run(card):
    """Those of tensor cores for heads of up to 128 features, on cards that have them."""
    for dtype in (*TAKEN, "float64"):
        for features, width in ((64, 5), (65, 64), (1, 128), (129, 8), (8, 129)):
            wanted = dtype in TAKEN and max(features, width) <= 128
            for device in {card, card.split(":")[0]}:
                q, v = (vg.ones((3, n), dtype=dtype, device=device) for n in (features, width))
                before = launched(device)
                attend(q, q, v)
                (one,) = launched(device) - before
                assert ("tensor" in one.kernel) == (wanted and device == card), one


def launched(device):
    """The records of the kernels of attention."""
    return {x for x in vg.launch_log(device) if "attention" in x.kernel}


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_queries_without_keys(card, dtype):
    rng = np.random.default_rng(23)
    q, k, v = (numbers(rng, dtype, n, 8) for n in (70, 150, 150))
    kept = np.ones((70, 150), bool)
    kept[[1, 66]] = False
    kept[5, :140] = False  # whole tiles, but not all
    for mask in (kept, np.where(kept, 0.0, -np.inf), np.where(kept, np.float16(0), -np.inf)):
        found = attend(*(put(card, x) for x in (q, k, v)), put(card, mask)).numpy()
        assert np.isnan(found[[1, 66]]).all()
        rest = np.delete(found, [1, 66], axis=0)
        wanted = np.delete(reference(q, k, v, mask, False, 8**-0.5), [1, 66], axis=0)
        assert not (np.max(np.abs(rest - wanted)) > TOLERANCES[dtype])
    leaves = [put(card, x).requires_grad_() for x in (q, k, v)]
    attend(*leaves, put(card, kept)).sum().backward()
    assert not np.isnan(leaves[0].grad.numpy()).any(), "the mask keeps NaN from the queries"
    assert not np.isnan(leaves[1].grad.numpy()).any()


@pytest.mark.parametrize("taken", ("float32", "float16"))
def test_the_least_numbers_of_a_mask_are_no_infinities(card, taken):
    x = put(card, np.ones((3, 4), taken))
    for dtype in ("float64", "float32", "float16"):
        mask = put(card, np.full((3, 3), np.finfo(dtype).min, dtype))
        assert np.array_equal(attend(x, x, x, mask).numpy(), x.numpy()), dtype


@pytest.mark.parametrize("dtype", TAKEN)
def test_infinities_and_nan(card, dtype):
    x = np.random.default_rng(24).normal(size=(70, 4)).astype("f4")
    for bad in (np.nan, np.inf):
        q = x.copy()
        q[1, 2] = bad
        given = [put(card, y).astype(dtype) for y in (q, x, x)]
        found = attend(*given).astype("float32").numpy()
        assert np.isnan(found[1]).all() and not np.isnan(np.delete(found, 1, axis=0)).any()
    leaves = [put(card, y).astype(dtype).requires_grad_() for y in (x[:0], x, x)]
    attend(*leaves).sum().backward()
    assert not any(leaf.grad.astype("float32").numpy().any() for leaf in leaves)


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_keys_behind_all_queries_are_not_read_by_whole_tiles(card, dtype):
    """NaN there changes nothing, and has gradients of zero."""
    rng = np.random.default_rng(25)
    x, g = numbers(rng, dtype, 300, 16), numbers(rng, dtype, 100, 16)
    wrong = x.copy()
    wrong[128:] = np.nan
    results = []
    for keys in (x, wrong):
        leaves = [put(card, y).requires_grad_() for y in (x[:100], keys, keys)]
        result = attend(*leaves, is_causal=True)
        found = vg.autograd.grad(result, leaves, put(card, g))
        results.append([result.detach().numpy(), *(y.numpy() for y in found)])
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))
    assert not results[0][2][100:].any() and not results[0][3][100:].any()


@pytest.mark.parametrize("dtype", TAKEN)
def test_large_scores(card, dtype):
    """Of hundreds: the largest one is taken off, and what is far below it counts nothing."""
    rng = np.random.default_rng(26)
    q, k, v, g = (numbers(rng, dtype, n, 24) for n in (70, 130, 130, 70))
    leaves = [put(card, x).requires_grad_() for x in (q, k, v)]
    result = attend(*leaves, scale=40.0)
    assert_near(result.detach(), reference(q, k, v, None, False, 40.0), dtype, "value")
    (found,) = vg.autograd.grad(result, leaves[2:], put(card, g))
    wanted = reference_gradients(g, q, k, v, None, False, 40.0)[2]
    assert_near(found, wanted, dtype, "gradient of the values")


@pytest.mark.parametrize(("dtype", "allowed"), [("float32", 1e-5), ("float16", 1e-3)])
def test_sums_of_many_rows(card, dtype, allowed):
    """Equal terms err the most."""
    n = 3000
    few, many = np.zeros((1, 8), dtype), np.zeros((n, 8), dtype)
    tenths = np.full((n, 8), 0.1, dtype)
    exact = float(tenths[0, 0])
    mean = attend(*(put(card, x) for x in (few, many, tenths))).numpy().astype("f8")
    assert np.abs(mean / exact - 1).max() <= allowed
    value = put(card, few).requires_grad_()
    result = attend(put(card, many), put(card, few), value)
    (slope,) = vg.autograd.grad(result, (value,), put(card, tenths))
    assert np.abs(slope.numpy().astype("f8") / (n * exact) - 1).max() <= allowed


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_the_same_bits_twice(card, dtype):
    rng = np.random.default_rng(27)
    q, k, v, g = (numbers(rng, dtype, 2, n, 70) for n in (150, 140, 140, 150))
    bits = []
    for _ in range(2):
        leaves = [put(card, x).requires_grad_() for x in (q, k, v)]
        result = attend(*leaves, is_causal=True)
        found = vg.autograd.grad(result, leaves, put(card, g))
        bits.append([result.detach().numpy(), *(x.numpy() for x in found)])
    assert all(np.array_equal(a, b) for a, b in zip(*bits, strict=True))


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_launches(card, dtype):
    """One forward, three backward, and no wait."""
    q = vg.ones((2, 3, 40, 8), dtype=dtype, device=card)
    logsum = vg.empty((2, 3, 40), dtype="float32", device=card)
    before = vg.counters(card)
    result = apply(q.backend, "attention", q, q, q, None, 0.5, True, logsum)
    between = vg.counters(card)
    apply(q.backend, "attention_backward", result, q, q, q, None, result, logsum, 0.5, True)
    after = vg.counters(card)
    assert between["launches"] - before["launches"] == 1
    assert after["launches"] - between["launches"] == 3
    rest = [name for name in before if name not in ("launches", "live_arrays")]
    assert all(after[name] == before[name] for name in rest)


# Float32, every element of which is two numbers of 11 bits ----------------------------------------


def with_gradients(card, q, k, v, g, mask=None, causal=False):
    """The result and the gradients of q, k and v, as NumPy's."""
    leaves = [put(card, x).requires_grad_() for x in (q, k, v)]
    result = attention(*leaves, None if mask is None else put(card, mask), causal, 0.3, 0.0)
    found = vg.autograd.grad(result, leaves, put(card, g))
    return [result.detach().numpy(), *(x.numpy() for x in found)]


@pytest.mark.parametrize("features", (40, 128))
def test_singles_err_like_float32(card, features):
    """Of 11 bits alone the error is 5e-4, without one of the three products 2e-4."""
    rng = np.random.default_rng(28)
    q, k, v, g = (numbers(rng, "float32", n, features) for n in (150, 300, 300, 150))
    found = with_gradients(card, q, k, v, g)
    how = (None, False, 0.3)
    exact = [reference(q, k, v, *how), *reference_gradients(g, q, k, v, *how)]
    for name, x, y in zip(("value", *"qkv"), found, exact, strict=True):
        error = np.sqrt(np.mean((x - y) ** 2) / np.mean(y**2))
        assert error <= 3e-6, f"{name}: {error}"


@pytest.mark.parametrize("features", (24, 100))
@pytest.mark.parametrize("bad", (np.inf, -np.inf, np.nan, 3.4028e38, -3.4028234e38))
def test_singles_without_two_parts(card, features, bad):
    """Infinities, NaN and what rounds to an infinity: as the sums of float64 have them."""
    rng = np.random.default_rng(29)
    for i in range(4):
        operands = [numbers(rng, "float32", n, features) for n in (70, 90, 90, 70)]
        operands[i][17, 5] = bad
        if np.isfinite(bad):  # no sum goes beyond float32
            operands[(1, 0, 3, 2)[i]][:, 5] *= np.float32((1e-38, 1e-38, 0, 0)[i])
            operands[3] *= np.float32((0.01, 0.01, 1, 1)[i])
        found = with_gradients(card, *operands)
        wanted = with_gradients(card, *(x.astype(np.float64) for x in operands))
        for name, x, y in zip(("value", *"qkv"), found, wanted, strict=True):
            what = f"operand {i}, {name}"
            for kind in (np.isnan, np.isposinf, np.isneginf):
                assert np.array_equal(kind(x), kind(y)), what
            x, y = (np.where(np.isfinite(z), z, 0).astype(np.float64) for z in (x, y))
            assert np.all(np.abs(x - y) <= 2e-5 * np.maximum(1, np.max(np.abs(y), axis=0))), what


@pytest.mark.parametrize("at", (7, 62, 70, 77, 91))
def test_singles_that_a_query_takes_no_part_with(card, at):
    """What is behind a query in their order is not seen, be it NaN or infinite."""
    rng = np.random.default_rng([30, at])
    for features in (20, 90):
        x, g = numbers(rng, "float32", 100, features), numbers(rng, "float32", 100, features)
        wanted = with_gradients(card, x, x, x, g, None, True)
        for bad in (np.nan, np.inf):
            wrong = x.copy()
            wrong[at, 3] = bad
            found = with_gradients(card, x, wrong, wrong, g, None, True)
            whole = at // 64 * 64
            assert np.array_equal(found[0][:whole], wanted[0][:whole])
            for a, b in zip(found[:2], wanted[:2], strict=True):
                assert np.max(np.abs(a[:at] - b[:at])) <= 1e-5
            assert not np.any(np.isfinite(found[0][at:, 3]))


def test_one_key_of_singles_has_gradients_of_zero(card):
    """Its weight is 1 whatever the score: to the last bit, so that sums of many stay zero."""
    rng = np.random.default_rng(31)
    for length, features, width in ((70, 100, 128), (5, 3, 33), (66, 64, 64)):
        shapes = ((length, features), (1, features), (1, width), (length, width))
        q, k, v, g = (numbers(rng, "float32", *shape) for shape in shapes)
        mask = rng.normal(size=(length, 1))
        for found in (with_gradients(card, q, k, v, g), with_gradients(card, q, k, v, g, mask)):
            assert not found[1].any() and not found[2].any()
