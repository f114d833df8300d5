"""Attention of many keys, which are cut into sections: one block's, or blocks of their own."""

import numpy as np
import pytest
from helpers import put
from test_attention import TOLERANCES, reference, reference_gradients, scores
from test_attention_tensor import CARDS, HALVES, launched, numbers

import pyvecgpu as vg
from pyvecgpu.dispatch import apply

TAKEN = ["float32", *HALVES]
pytestmark = [pytest.mark.devices("sim", "cuda"), pytest.mark.usefixtures("simulated_cards")]
# Queries, keys, features, width, causal: beside the tiles' edges (16, 32, 64) and the sections' (64
# and more), of every depth that the kernels have.
SHAPES = (
    (7, 700, 16, 3, False),
    (20, 300, 32, 24, False),
    (40, 513, 64, 64, False),
    (61, 400, 80, 72, True),
    (300, 300, 20, 7, True),
    (12, 385, 96, 96, False),
    (5, 258, 128, 100, False),
    (33, 260, 40, 66, True),
    (17, 257, 8, 128, True),
    (150, 520, 70, 33, False),
)


@pytest.fixture
def card(request, device):
    """A card with tensor cores; of the simulated ones in turn, by the test's name."""
    return CARDS[device][len(request.node.name) % len(CARDS[device])]


def attended(card, q, k, v, mask, causal, scale=0.3):
    """Result and logsum as NumPy's float64, and the launches."""
    arrays = [put(card, x) for x in (q, k, v)]
    mask = None if mask is None else put(card, mask)
    wide = "float64" if q.dtype == np.float64 else "float32"
    logsum = vg.empty(q.shape[:-1], dtype=wide, device=card)
    before = launched(card)
    result = apply(logsum.backend, "attention", *arrays, mask, scale, causal, logsum)
    launches = launched(card) - before
    return result.astype("float64").numpy(), logsum.numpy(), launches


def logsum_of(q, k, mask, causal, scale=0.3):
    found, _ = scores(q, k, mask, causal, scale)
    most = found.max(axis=-1, keepdims=True)
    return (np.log(np.exp(found - most).sum(axis=-1, keepdims=True)) + most)[..., 0]


def drawn(seed, dtype, leading, length, size, features, width):
    rng = np.random.default_rng([41, seed])
    shapes = ((length, features), (size, features), (size, width))
    return [numbers(rng, dtype, *leading, *shape) for shape in shapes]


@pytest.mark.parametrize("dtype", TAKEN)
@pytest.mark.parametrize("shape", SHAPES)
def test_values(card, dtype, shape):
    """Of one item, by a mask, too, which leaves whole sections out."""
    length, size, features, width, causal = shape
    q, k, v = drawn(length, dtype, (2,), length, size, features, width)
    mask = np.random.default_rng(42).random((length, size)) < 0.5
    mask[0, :-1], mask[:, -1] = False, True
    for how in ((None, causal), (mask, False), (np.where(mask, 0.5, -np.inf), False)):
        found, logsum, launches = attended(card, q, k, v, *how)
        if how[0] is None and length < 64:
            assert len({x.kernel for x in launches}) == 2, "sections and what joins them"
        assert np.max(np.abs(found - reference(q, k, v, *how, 0.3))) <= 2 * TOLERANCES[dtype]
        assert np.max(np.abs(logsum - logsum_of(q, k, *how))) <= 1e-5


# Of halves few queries have sections, of float32 any, and twice as many.
ITEMS = [
    ("float32", (300, 300, 9, 9, True)),
    ("float32", (3, 300, 8, 5, False)),
    ("float32", (2, 260, 70, 100, False)),
    (HALVES[0], (3, 300, 8, 5, False)),
    (HALVES[0], (2, 513, 70, 100, False)),
    (HALVES[-1], (3, 513, 8, 5, False)),
    (HALVES[-1], (2, 300, 70, 100, False)),
]


def items_of_many_blocks(card, rows):
    """So many that their blocks, each of 64 rows, are more than four a multiprocessor."""
    few = 4 * vg.Device(card).limits.multiprocessor_count
    return max(few // ((rows + 63) // 64) + 1, 4)


@pytest.mark.parametrize(("dtype", "shape"), ITEMS)
def test_items_alone(card, dtype, shape):
    """Blocks that have all sections give the bits of those that have one each."""
    length, size, features, width, causal = shape
    items = items_of_many_blocks(card, length)
    q, k, v = drawn(length, dtype, (items,), length, size, features, width)
    v[3, size // 3, 1] = np.inf
    together = attended(card, q, k, v, None, causal)
    assert len({x.kernel for x in together[2]}) == 1
    for i in (0, 3, items - 1):
        alone = attended(card, *(x[i : i + 1] for x in (q, k, v)), None, causal)
        assert len({x.kernel for x in alone[2]}) == 2
        for one, other in zip(together[:2], alone[:2], strict=True):
            assert np.array_equal(one[i : i + 1], other, equal_nan=True), i


@pytest.mark.parametrize("features", (24, 100))
@pytest.mark.parametrize("bad", (np.inf, -np.inf, np.nan))
def test_singles_without_two_parts(card, features, bad):
    """Of any section: the row is done again, beside float64."""
    for i in range(3):
        operands = drawn(i, "float32", (), 5, 300, features, features)
        operands[i][(3, 290, 290)[i], 5] = bad
        found, _, launches = attended(card, *operands, None, False)
        assert len({x.kernel for x in launches}) == 2
        wanted, *_ = attended(card, *(x.astype("f8") for x in operands), None, False)
        for kind in (np.isnan, np.isposinf, np.isneginf):
            assert np.array_equal(kind(found), kind(wanted)), i
        found, wanted = (np.where(np.isfinite(x), x, 0) for x in (found, wanted))
        assert np.max(np.abs(found - wanted)) <= 2e-5, i


@pytest.mark.parametrize("dtype", TAKEN)
def test_queries_without_keys(card, dtype):
    """A section with none changes nothing; no section with any gives NaN."""
    q, k, v = drawn(43, dtype, (), 6, 800, 16, 16)
    kept = np.zeros((6, 800), bool)
    kept[1, 799], kept[2, 0], kept[3, 300], kept[4] = True, True, True, True
    found, *_ = attended(card, q, k, v, kept, False)
    assert np.isnan(found[[0, 5]]).all()
    wanted = reference(q, k, v, kept, False, 0.3)[1:5]
    assert not (np.max(np.abs(found[1:5] - wanted)) > TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_later_sections_have_larger_scores(card, dtype):
    """What was summed before counts less and less, and in the other order what comes."""
    q, k, v = drawn(44, dtype, (), 3, 600, 16, 16)
    k[:, 0], q[:, 0] = np.linspace(-40, 40, 600), (1, -1, 3)
    for scale in (0.3, 2.0):
        found, logsum, _ = attended(card, q, k, v, None, False, scale)
        assert np.max(np.abs(found - reference(q, k, v, None, False, scale))) <= TOLERANCES[dtype]
        wanted = logsum_of(q, k, None, False, scale)
        assert np.max(np.abs(logsum / wanted - 1)) <= 1e-5


# The backward pass --------------------------------------------------------------------------------


def slopes(card, operands, mask, causal, scale=0.3):
    """The three gradients as NumPy's float64, and the launches of the backward pass."""
    q, k, v, g = operands
    wide = "float64" if q.dtype == np.float64 else "float32"
    arrays = [put(card, x) for x in (q, k, v)]
    mask = None if mask is None else put(card, mask)
    logsum = vg.empty(q.shape[:-1], dtype=wide, device=card)
    result = apply(logsum.backend, "attention", *arrays, mask, scale, causal, logsum)
    before = launched(card)
    call = (put(card, g), *arrays, mask, result, logsum, scale, causal)
    found = apply(logsum.backend, "attention_backward", *call)
    return [x.astype("float64").numpy() for x in found], launched(card) - before


def with_gradient(seed, dtype, leading, length, size, features, width):
    operands = drawn(seed, dtype, leading, length, size, features, width)
    g = numbers(np.random.default_rng([43, seed]), dtype, *leading, length, width)
    return [*operands, g]


# What has sections: gradients of queries where keys are many, of keys and values where queries are.
BACKWARD = (
    (7, 700, 16, 3, False),
    (61, 300, 80, 72, True),
    (300, 300, 20, 7, True),
    (600, 9, 96, 40, False),
    (520, 70, 66, 128, False),
    (530, 40, 64, 64, True),
)


def checked(card, dtype, shape, joined):
    length, size, features, width, causal = shape
    items = 1 if min(length, size) > 256 else 2  # blocks that are few on a small card, too
    operands = with_gradient(length, dtype, (items,), length, size, features, width)
    mask = np.random.default_rng(44).random((length, size)) < 0.5
    mask[:, 0] = True
    for how in ((None, causal), (mask, False)):
        found, launches = slopes(card, operands, *how)
        assert sum("join" in x.kernel for x in launches) == joined
        exact = reference_gradients(operands[3], *operands[:3], *how, 0.3)
        for name, x, y in zip("qkv", found, exact, strict=True):
            limit = TOLERANCES[dtype] * max(1.0, np.max(np.abs(y)))
            assert np.max(np.abs(x - y)) <= limit, f"{name}, {how[1]}"


@pytest.mark.parametrize("shape", BACKWARD)
def test_gradients(card, shape):
    checked(card, "float32", shape, (shape[0] > 256) + (shape[1] > 256))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "shape",
    (
        (7, 700, 16, 3, False),
        (20, 300, 64, 40, True),
        (40, 513, 100, 128, False),
        (63, 300, 33, 64, False),
        (64, 300, 8, 8, False),
    ),
)
def test_gradients_of_halves(card, dtype, shape):
    """Those of queries, where these are few."""
    checked(card, dtype, shape, shape[0] < 64)


ALONE = (
    ("float32", (3, 300, 8, 5, False)),
    ("float32", (260, 10, 5, 7, False)),
    ("float32", (300, 300, 9, 9, True)),
    (HALVES[0], (3, 513, 8, 5, False)),
    (HALVES[-1], (2, 300, 70, 6, False)),
)


@pytest.mark.parametrize(("dtype", "shape"), ALONE)
def test_gradients_of_items_alone(card, dtype, shape):
    length, size, features, width, causal = shape
    items = items_of_many_blocks(card, min(length, size))
    operands = with_gradient(length, dtype, (items,), length, size, features, width)
    operands[2][3, size // 3, 1] = np.inf
    together, launches = slopes(card, operands, None, causal)
    assert not any("join" in x.kernel for x in launches)
    for i in (0, 3, items - 1):
        alone, launches = slopes(card, [x[i : i + 1] for x in operands], None, causal)
        assert any("join" in x.kernel for x in launches)
        for one, other in zip(together, alone, strict=True):
            assert np.array_equal(one[i : i + 1], other, equal_nan=True), i


@pytest.mark.parametrize("bad", (np.inf, -np.inf, np.nan))
def test_gradients_without_two_parts(card, bad):
    """Rows of NaN are done again once all sections are there."""
    for i in range(4):
        operands = with_gradient(i, "float32", (), 280, 290, 12, 12)
        operands[i][270, 5] = bad
        found, _ = slopes(card, operands, None, False)
        wanted, _ = slopes(card, [x.astype("f8") for x in operands], None, False)
        for name, x, y in zip("qkv", found, wanted, strict=True):
            for kind in (np.isnan, np.isposinf, np.isneginf):
                assert np.array_equal(kind(x), kind(y)), f"operand {i}, {name}"
            x, y = (np.where(np.isfinite(z), z, 0) for z in (x, y))
            assert np.max(np.abs(x - y)) <= 1e-4 * max(1, np.max(np.abs(y))), f"{i}, {name}"
