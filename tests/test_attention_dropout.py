"""Attention with dropout, by blocks of queries: values, gradients, random numbers and memory.

The numbers of all weights are drawn in C order, so that a block of a multiple of four of them
begins where one draw of all would be: references draw all at once.
"""

import tracemalloc

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import observe
from pyvecgpu.nn.functional import attention

attend = vg.nn.functional.scaled_dot_product_attention
SEED = 31


def uniform(device, shape):
    """The numbers of a draw of all weights."""
    vg.random.seed(SEED)
    return vg.random.random(shape, dtype="float32", device=device).numpy()


def reference(u, p, q, k, v, mask, causal, g):
    """The result and the gradients of q, k, v, in float64; mask: what is added, or None."""
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    scores = scores if mask is None else scores + mask
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    factor = np.where(u >= np.float32(p), 1.0 / (1.0 - p), 0.0)
    dropped = weights * factor
    slopes = (g @ np.swapaxes(v, -1, -2)) * factor
    slopes = weights * (slopes - (slopes * weights).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    turned = np.swapaxes(slopes, -1, -2) @ q, np.swapaxes(dropped, -1, -2) @ g
    return [dropped @ v, slopes @ k, *turned]


def summed(x, shape):
    axes = tuple(range(x.ndim - len(shape)))
    axes += tuple(i for i in range(-len(shape), 0) if shape[i] == 1 != x.shape[i])
    return x.sum(axis=axes).reshape(shape)


# Shapes of query, keys and values, of a mask or None, and whether it is causal.
CASES = [
    ((6, 3), (8, 3), (8, 2), None, False),
    ((6, 3), (4, 3), (4, 2), (4,), False),
    ((3, 5, 2), (3, 4, 2), (3, 4, 3), (5, 1), False),
    ((2, 3, 9, 4), (2, 3, 12, 4), (2, 3, 12, 4), (2, 1, 1, 12), True),
    ((2, 3, 8, 4), (2, 3, 8, 4), (2, 3, 8, 4), None, True),
    ((2, 3, 5, 4), (3, 8, 4), (1, 8, 4), (2, 3, 5, 8), False),
    ((5, 4), (2, 3, 8, 4), (2, 1, 8, 4), (1, 1, 5, 8), False),
    ((2, 1, 4, 5, 2), (3, 1, 4, 2), (2, 3, 1, 4, 2), None, True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("most", [1, 24, 50, 100, 2**22])
def test_blocks_are_parts_of_all_weights(device, rng, monkeypatch, case, most):
    """Values and gradients, whatever fits into a block."""
    monkeypatch.setattr(attention, "MOST_WEIGHTS", most)
    *shapes, mask, causal = case
    q, k, v = (rng.standard_normal(shape) for shape in shapes)
    added = None if mask is None else rng.standard_normal(mask)
    leading = np.broadcast_shapes(*(x.shape[:-2] for x in (q, k)))
    u = uniform(device, (*leading, q.shape[-2], k.shape[-2]))
    g = rng.standard_normal((*np.broadcast_shapes(leading, v.shape[:-2]), q.shape[-2], v.shape[-1]))
    leaves = [put(device, x).requires_grad_() for x in (q, k, v)]
    vg.random.seed(SEED)
    given = None if added is None else put(device, added)
    result = attention.attend(*leaves, given, causal, None, 0.3)
    after = vg.random.random(device=device)
    found = [result.detach(), *vg.autograd.grad(result, leaves, put(device, g))]
    wanted = reference(u, 0.3, q, k, v, added, causal, g)
    for x, y, like in zip(found, wanted, (g, q, k, v), strict=True):
        assert np.allclose(x.numpy(), summed(y, like.shape), 1e-12, 1e-12)
    vg.random.seed(SEED)
    vg.random.random(u.shape, dtype="float32", device=device)
    assert vg.random.random(device=device) == after, "as many numbers are used"
    vg.random.seed(SEED)
    plain = attention.attend(*(x.detach() for x in leaves), given, causal, None, 0.3)
    assert not plain.requires_grad and np.array_equal(plain.numpy(), found[0].numpy())


def test_values_that_are_more_than_weights(device, rng, monkeypatch):
    """All of them have the same weights, of which each is drawn once."""
    q, k, v = (rng.standard_normal(s) for s in ((2, 1, 3, 2), (1, 4, 2), (5, 2, 3, 4, 3)))
    u, g = uniform(device, (2, 1, 3, 4)), rng.standard_normal((5, 2, 3, 3, 3))
    wanted = reference(u, 0.5, q, k, v, None, False, g)[0]
    for most in (1, 8, 12, 2**22):
        monkeypatch.setattr(attention, "MOST_WEIGHTS", most)
        vg.random.seed(SEED)
        result = attend(*(put(device, x) for x in (q, k, v)), dropout_p=0.5)
        assert np.allclose(result.numpy(), wanted, 1e-12, 1e-12), most


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("most", [8, 2**22])
def test_gradients_against_differences(device, rng, monkeypatch, causal, most):
    """Also of a mask, and gradients of gradients."""
    monkeypatch.setattr(attention, "MOST_WEIGHTS", most)
    operands = [rng.standard_normal(s) for s in ((2, 3, 2), (2, 4, 2), (1, 4, 2), (3, 4))]

    def call(q, k, v, mask):
        vg.random.seed(SEED)
        return attention.attend(q, k, v, mask, causal, 0.7, 0.4)

    check(call, *operands, device=device)
    check_twice(call, *operands, device=device)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_gradients_of_keys_are_summed_over_blocks_in_float32(device, monkeypatch, dtype):
    """94 parts, which halves would add 1 % wrong; what is multiplied stays in halves."""
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 64)
    n = 6000
    q, k, v = (put(device, np.zeros(s, dtype)) for s in ((n, 1), (1, 1), (1, 1)))
    v.requires_grad_()
    g = np.full((n, 1), 0.1, dtype)
    vg.random.seed(SEED)
    seen = []
    with observe(seen.append):
        result = attend(q, k, v, dropout_p=1e-6)
    products = [call for call in seen if call.method == "matmul"]
    assert len(products) == 2 * 94
    assert {x.dtype for x in products[-1].inputs.values()} == {np.dtype(dtype)}
    (slope,) = vg.autograd.grad(result, (v,), put(device, g))
    assert slope.dtype == dtype == result.dtype
    assert slope.item() == pytest.approx(n * float(g[0, 0]), rel=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_weights_that_stay_are_scaled(device, dtype):
    """As torch's: the mean of a result is that without dropout."""
    q, k = (put(device, np.ones(s, dtype)) for s in ((400, 3), (50, 3)))
    vg.random.seed(SEED)
    x = attend(q, k, put(device, np.eye(50).astype(dtype)), dropout_p=0.75)
    x = x.numpy().astype(np.float64) * 50
    left = np.abs(x) > 0
    assert x.shape == (400, 50) and 0.24 < left.mean() < 0.26
    assert np.allclose(x[left], 4.0, 4e-3)


def test_weights_are_computed_again_whatever_is_tracked(device):
    shapes = [(3, 4), (5, 4), (5, 2), (3, 5)]
    for tracked in range(4):
        operands, seen = [put(device, np.ones(shape)) for shape in shapes], []
        operands[tracked].requires_grad_()
        result = attend(*operands, dropout_p=0.5)
        with observe(lambda call: seen.append(call.method)):  # noqa: B023
            result.sum().backward()
        assert "softmax" in seen, tracked
    result = attend(*(x.detach() for x in operands), dropout_p=0.5)
    assert not result.requires_grad


def test_the_same_seed_gives_the_same_bits(device, rng, monkeypatch):
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 100)
    operands = [rng.standard_normal((2, 9, 4)).astype(np.float32) for _ in range(3)]

    def bits():
        leaves = [put(device, x).requires_grad_() for x in operands]
        result = attend(*leaves, dropout_p=0.5, is_causal=True)
        result.sum().backward()
        return [x.numpy().tobytes() for x in (result.detach(), *(x.grad for x in leaves))]

    vg.random.seed(7)
    first, second = bits(), bits()
    vg.random.seed(7)
    assert bits() == first and bits() == second and first[0] != second[0]


def test_the_way_back_leaves_the_generator_alone(device, monkeypatch):
    """So that others, of other threads too, may draw meanwhile."""
    x = put(device, np.ones((5, 4), np.float32)).requires_grad_()
    result = attend(x, x, x, dropout_p=0.5)

    def nobody():
        raise AssertionError("the generator was asked for")

    monkeypatch.setattr("pyvecgpu.autograd.function.shared_generator", nobody)
    result.sum().backward()
    assert x.grad is not None


def test_probabilities_that_make_no_sense(device):
    x = put(device, np.ones((3, 4), np.float32))
    for p in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="dropout_p is from 0"):
            attend(x, x, x, dropout_p=p)
    assert not attend(x, x, x, dropout_p=1.0).numpy().any()
    assert attend(x[:0], x, x, dropout_p=0.5).shape == (0, 4)


# The layer ----------------------------------------------------------------------------------------

MASKS = {"none": {}, "causal": {"is_causal": True}, "padding": {"key_padding_mask": "padding"}}
MASKS["all"] = MASKS["causal"] | MASKS["padding"] | {"attn_mask": "mask"}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("how", ["float32", "float16", "autocast"])
def test_the_layer_in_training(device, rng, monkeypatch, masks, how):
    """By blocks and at once the same; the other way gives weights, whose numbers are the same."""
    known = {"padding": np.arange(8) >= np.array([[8], [6], [3]]), "mask": np.zeros((8, 8), bool)}
    known["mask"][2:, 1] = True
    given = {key: put(device, x) for key, x in known.items()} | {True: True}
    masks = {key: given[x] for key, x in MASKS[masks].items()}
    layer = vg.nn.MultiheadAttention(4, 2, dropout=0.4, batch_first=True, device=device)
    dtype = "float16" if how == "float16" else "float32"
    layer, g = layer.to(dtype=dtype), put(device, rng.standard_normal((3, 8, 4)).astype(dtype))
    values = rng.standard_normal((3, 8, 4)).astype(dtype)

    def run(most, need_weights=False):
        monkeypatch.setattr(attention, "MOST_WEIGHTS", most)
        x = put(device, values).requires_grad_()
        layer.zero_grad()
        vg.random.seed(SEED)
        with vg.autocast(device_type=vg.Device(device).type, enabled=how == "autocast"):
            result, weights = layer(x, x, x, need_weights=need_weights, **masks)
        assert (weights is not None) == need_weights
        result.backward(g.astype(result.dtype))
        return [result.detach(), x.grad, *(p.grad for p in layer.parameters())]

    limit = 1e-5 if how == "float32" else 2e-2
    once = run(2**22)
    for other in (run(8), run(128), run(2**22, True)):
        for x, y in zip(other, once, strict=True):
            x, y = (one.numpy().astype(np.float64) for one in (x, y))
            assert np.isfinite(y).all() and y.any()
            assert np.allclose(x, y, limit, limit * max(1.0, np.abs(y).max()))
    layer.eval()
    assert not np.allclose(run(8)[0].numpy(), once[0].numpy(), 0.1)


# Memory -------------------------------------------------------------------------------------------


def step(device, length, causal=True):
    q, k, v = (put(device, np.ones((1, length, 8), np.float32)).requires_grad_() for _ in range(3))
    attend(q, k, v, is_causal=causal, dropout_p=0.5).sum().backward()
    return q.grad


@pytest.mark.devices("cpu")
def test_memory_grows_as_queries_do_on_the_cpu(device, monkeypatch):
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 2**14)
    step(device, 8)
    peaks = []
    for n in (512, 1024, 2048):
        tracemalloc.start()
        try:
            step(device, n)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[-1] < 2048**2 * 4 / 4, f"{peaks}; a matrix of float32 has {2048**2 * 4}"
    assert peaks[2] < 3 * peaks[1] < 9 * peaks[0], peaks


@pytest.mark.devices("sim", "cuda")
def test_memory_grows_as_queries_do_on_a_card(device, monkeypatch):
    """Neither is there an array as large, nor is as much kept for the way back."""
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 2**12)
    step(device, 8)
    largest, kept = [], []
    for n in (128, 256, 512):
        sizes = []
        with observe(lambda call, sizes=sizes: sizes.extend(x.size for x in call.results)):
            before = vg.memory_info(device).used
            leaves = [put(device, np.ones((n, 8), np.float32)).requires_grad_() for _ in range(3)]
            result = attend(*leaves, dropout_p=0.5)
            kept.append(vg.memory_info(device).used - before)
            result.sum().backward()
        largest.append(max(sizes))
        del leaves, result
    assert largest == [2**12] * 3, largest
    assert kept[2] <= 2.1 * kept[1] <= 4.5 * kept[0] and kept[2] <= 512 * 8 * 4 * 5, kept


@pytest.mark.devices("sim", "cuda")
def test_a_limit_of_memory_that_no_matrix_fits_in(device, monkeypatch):
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 2**14)
    n = 1100
    step(device, 8)
    vg.empty_cache(device)
    vg.set_memory_limit(vg.memory_info(device).used + n * n * 4 - 1, device)
    try:
        step(device, n)
    finally:
        vg.set_memory_limit(None, device)


# In a recording -----------------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
def test_each_launch_of_a_recording_has_the_next_numbers(device, rng, monkeypatch):
    monkeypatch.setattr(attention, "MOST_WEIGHTS", 32)
    x, total = put(device, rng.standard_normal((2, 8, 4))), put(device, np.zeros((2, 8, 4)))

    def step():
        leaf = x.detach().requires_grad_()
        attend(leaf, leaf, leaf, dropout_p=0.5).sum().backward()
        total[...] = leaf.grad

    def plain():
        step()
        return total.numpy().tobytes()

    step()
    vg.random.seed(SEED)
    wanted = [plain() for _ in range(4)]
    vg.random.seed(SEED)
    launch = x.backend.record(step)
    found = []
    for _ in range(4):
        launch()
        found.append(total.numpy().tobytes())
    assert found == wanted and len(set(found)) == 4
