"""Attention by tiles: values, gradients, masks and memory, against all weights in float64."""

import itertools
import tracemalloc

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import BFLOAT16, put, stepped, transposed

import pyvecgpu as vg
from pyvecgpu.dispatch import apply, observe

attend = vg.nn.functional.scaled_dot_product_attention
DTYPES = ["float64", "float32", "float16"] + (["bfloat16"] if BFLOAT16 is not None else [])
TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 4e-2}
# Beside the tiles' edges (64, of float64 32) and the stages' depth (32).
LENGTHS = (1, 2, 5, 31, 32, 33, 64, 65, 70)
FEATURES = (1, 3, 8, 31, 32, 33, 63, 64, 65, 130, 256)


def softmax(x):
    with np.errstate(all="ignore"):
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)


def scores(q, k, mask, causal, scale):
    """The scores in float64, and where a key takes part."""
    q, k = np.asarray(q, np.float64), np.asarray(k, np.float64)
    found = np.matmul(q, np.swapaxes(k, -1, -2)) * scale
    kept = np.ones(found.shape, bool)
    if mask is not None and mask.dtype == bool:
        kept = kept & mask
    elif mask is not None:
        found = found + np.asarray(mask, np.float64)
    if causal:
        kept = kept & np.tril(np.ones(found.shape[-2:], bool))
    return np.where(kept, found, -np.inf), kept


def reference(q, k, v, mask, causal, scale):
    return softmax(scores(q, k, mask, causal, scale)[0]) @ np.asarray(v, np.float64)


def reference_gradients(g, q, k, v, mask, causal, scale):
    """Those of query, key and value, summed over what was repeated."""
    g, *wide = (np.asarray(x, np.float64) for x in (g, q, k, v))
    found, kept = scores(q, k, mask, causal, scale)
    weights = softmax(found)
    slopes = g @ np.swapaxes(wide[2], -1, -2)
    slopes = weights * (slopes - np.sum(slopes * weights, axis=-1, keepdims=True))
    slopes = np.where(kept, slopes, 0.0) * scale
    turned = np.swapaxes(slopes, -1, -2)
    results = [slopes @ wide[1], turned @ wide[0], np.swapaxes(weights, -1, -2) @ g]
    return [summed(x, like.shape) for x, like in zip(results, wide, strict=True)]


def summed(x, shape):
    axes = tuple(range(x.ndim - len(shape)))
    axes += tuple(i for i in range(-len(shape), 0) if shape[i] == 1 != x.shape[i])
    return x.sum(axis=axes).reshape(shape)


def assert_near(found, wanted, dtype, what):
    found = np.asarray(found.numpy(), np.float64)
    assert found.shape == wanted.shape, what
    limit = TOLERANCES[dtype] * max(1.0, np.max(np.abs(wanted), initial=0.0))
    error = np.max(np.abs(found - wanted), initial=0.0)
    assert error <= limit, f"{what}: {error} beyond {limit}"


class Drawn:
    """One case: operands, a mask or None, whether causal, a scale."""

    def __init__(self, seed, dtype):
        rng = self.rng = np.random.default_rng([7, seed])
        leading = tuple(rng.integers(1, 4, rng.integers(0, 4)))
        self.length, self.size = (int(rng.choice(LENGTHS)) for _ in range(2))
        e, w = (int(rng.choice(FEATURES)) for _ in range(2))
        if np.prod(leading, initial=1.0) * self.length * self.size * (e + w) > 4e5:
            leading, e, w = (), min(e, 33), min(w, 65)
        self.dtype = dtype
        self.q = self.values((*leading, self.length, e))
        self.k = self.values((*self.fewer(leading), self.size, e))
        self.v = self.values((*self.fewer(leading), self.size, w))
        self.leading = leading
        self.causal = bool(rng.integers(0, 2))
        self.mask = self.drawn_mask() if not self.causal else None
        self.scale = float(rng.choice([1.0, 0.3, -0.5])) / np.sqrt(e)

    def values(self, shape):
        return np.asarray(put("cpu", self.rng.normal(size=shape)).astype(self.dtype).numpy())

    def fewer(self, shape):
        """Leading dimensions some of which are 1 or not there."""
        shape = [1 if self.rng.random() < 0.3 else n for n in shape]
        return tuple(
            shape[self.rng.integers(0, len(shape) + 1) if self.rng.random() < 0.2 else 0 :]
        )

    def drawn_mask(self):
        kind = self.rng.choice(["none", "bool", "float16", "float32", "float64"])
        shape = self.fewer((*self.leading, self.length, self.size))
        if kind == "none":
            return None
        if kind == "bool":
            mask = self.rng.random(shape) < 0.7
            if mask.ndim:
                mask[..., 0] = True  # a key for every query
            return mask | (mask.ndim == 0)
        mask = self.rng.normal(size=shape).astype(kind)
        if mask.ndim and mask.shape[-1] > 1:
            mask[..., 1] = -np.inf
        return mask


def place(device, x, how):
    """An Array of these values of one of several layouts."""
    make = (put, stepped, transposed, backwards)[how % 4]
    return make(device, x) if x.ndim else put(device, x)


def backwards(device, x):
    return put(device, np.ascontiguousarray(x[..., ::-1]))[..., ::-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("part", range(4))
def test_random_shapes(device, dtype, part):
    """Values and gradients of operands of any shapes and layouts, with any mask."""
    for seed in range(part * 18, part * 18 + 18):
        case = Drawn(seed, dtype)
        operands = (case.q, case.k, case.v)
        mask, options = case.mask, {"is_causal": case.causal, "scale": case.scale}
        arrays = [place(device, x, seed + i).requires_grad_() for i, x in enumerate(operands)]
        given = None if mask is None else place(device, mask, seed)
        result = attend(*arrays, given, **options)
        plain = attend(*(x.detach() for x in arrays), given, **options)
        what = f"seed {seed}, {[x.shape for x in operands]}, {options}"
        wanted = reference(*operands, mask, case.causal, case.scale)
        assert str(result.dtype) == dtype
        assert_near(result.detach(), wanted, dtype, what)
        assert np.array_equal(plain.numpy(), result.detach().numpy()), what
        g = case.values(result.shape)
        found = vg.autograd.grad(result, arrays, place(device, g, seed // 4))
        exact = reference_gradients(g, *operands, mask, case.causal, case.scale)
        for name, x, y in zip("qkv", found, exact, strict=True):
            assert_near(x, y, dtype, f"{what}: gradient of {name}")


MASKS = {
    "none": None,
    "bools": np.random.default_rng(1).random((1, 3, 5)) < 0.6,
    "keys": np.array([True, True, False, True, True]),
    "numbers": np.random.default_rng(2).normal(size=(2, 1, 5)),
    "one": np.array(0.5),
}
MASKS["bools"][..., 0] = True


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_gradients_against_differences(device, mask, causal):
    """Also gradients of gradients, and a mask beside an order, which attention of heads has."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=s) for s in ((2, 3, 2), (2, 5, 2), (1, 5, 1)))
    given = None if MASKS[mask] is None else put(device, MASKS[mask])

    def call(q, k, v):
        return vg.nn.functional.attention.attend(q, k, v, given, causal, 0.7, 0.0)

    wanted = reference(q, k, v, MASKS[mask], causal, 0.7)
    assert_near(call(*(put(device, x) for x in (q, k, v))), wanted, "float64", mask)
    check(call, q, k, v, device=device)
    if mask in ("none", "bools"):
        check_twice(call, q, k, v, device=device)


def test_gradients_of_a_mask(device):
    """It goes through all weights, and so do gradients of gradients."""
    rng = np.random.default_rng(4)
    q, k, v, mask = (rng.normal(size=s) for s in ((2, 3, 2), (2, 4, 2), (2, 4, 3), (3, 4)))
    check(attend, q, k, v, mask, device=device)
    check_twice(attend, q, k, v, mask, device=device)


def methods(call):
    seen = []
    with observe(lambda one: seen.append(one.method)):
        result = call()
    return result, seen


def test_which_way_is_taken(device):
    """What the docstring names goes through all weights, and gives the same."""
    rng = np.random.default_rng(5)
    q, k, v = (put(device, rng.normal(size=s)) for s in ((3, 4), (5, 4), (5, 6)))
    wide = put(device, rng.normal(size=(5, 257)))
    mask = put(device, rng.normal(size=(3, 5)))
    by_tiles = [(q, k, v), (q, k, v, mask), (q, k, v, mask > 0.0), (q, k, wide[:, :256])]
    others = [(q, k, wide), (wide, wide, v), (q, k, v, put(device, np.zeros((2, 3, 5))))]
    for operands in by_tiles:
        assert "attention" in methods(lambda operands=operands: attend(*operands))[1]
    for operands in others:
        result, seen = methods(lambda operands=operands: attend(*operands))
        assert "attention" not in seen and "softmax" in seen
        given = [x.numpy() for x in operands]
        wanted = reference(*given[:3], *(given[3:] or [None]), False, operands[0].shape[-1] ** -0.5)
        assert_near(result, wanted, "float64", "other ways")
    tracked = put(device, mask.numpy()).requires_grad_()
    assert "attention" not in methods(lambda: attend(q, k, v, tracked))[1]
    assert "attention" not in methods(lambda: attend(q, k, v, dropout_p=0.5))[1]
    none = attend(q[:, :0], k[:, :0], v)
    assert np.allclose(none.numpy(), v.numpy().mean(axis=0))


def test_several_dtypes_at_once(device):
    rng = np.random.default_rng(6)
    q, k, v = (rng.normal(size=s) for s in ((3, 4), (5, 4), (5, 6)))
    result = attend(put(device, q.astype("f4")), put(device, k), put(device, v.astype("f2")))
    assert result.dtype == vg.float32
    assert_near(result, reference(q, k, v.astype("f2"), None, False, 0.5), "float32", "f4 f8 f2")
    counts = np.arange(12).reshape(3, 4)
    whole = attend(put(device, counts), put(device, counts), put(device, counts), counts[:, :3])
    wanted = reference(counts, counts, counts, counts[:, :3], False, 0.5)
    assert_near(whole, wanted, "float32", "integers")


def test_queries_without_keys(device):
    """NaN for those queries alone, and in gradients where all weights in memory give it."""
    rng = np.random.default_rng(7)
    q, k, v = (put(device, rng.normal(size=s)) for s in ((70, 4), (90, 4), (90, 3)))
    kept = np.ones((70, 90), bool)
    kept[[1, 66]] = False
    kept[5, :80] = False  # whole tiles, but not all
    for mask in (kept, np.where(kept, 0.0, -np.inf), np.where(kept, np.float32(0), -np.inf)):
        found = attend(q, k, v, put(device, mask)).numpy()
        assert np.isnan(found[[1, 66]]).all()
        assert not np.isnan(np.delete(found, [1, 66], axis=0)).any()
        wanted = reference(q.numpy(), k.numpy(), v.numpy(), mask, False, 0.5)
        assert np.allclose(found, wanted, 1e-12, 1e-12, equal_nan=True)
    leaves = [put(device, x.numpy()).requires_grad_() for x in (q, k, v)]
    attend(*leaves, put(device, kept)).sum().backward()
    assert not np.isnan(leaves[0].grad.numpy()).any(), "the mask keeps NaN from the queries"
    assert not np.isnan(leaves[1].grad.numpy()).any()


def test_the_least_numbers_of_a_mask_are_no_infinities(device):
    """A query all of whose keys have them has the mean of the values."""
    x = np.ones((3, 4), np.float32)
    for dtype in ("float64", "float32"):
        mask = np.full((3, 3), np.finfo(dtype).min, dtype)
        result = attend(put(device, x), put(device, x), put(device, x), put(device, mask))
        assert np.array_equal(result.numpy(), x), dtype


def test_infinities_and_nan(device):
    x = np.random.default_rng(8).normal(size=(3, 4))
    for bad in (np.nan, np.inf):
        q = x.copy()
        q[1, 2] = bad
        found = attend(put(device, q), put(device, x), put(device, x)).numpy()
        assert np.isnan(found[1]).all() and not np.isnan(found[[0, 2]]).any()
    assert attend(put(device, x[:0]), put(device, x), put(device, x)).shape == (0, 4)
    leaves = [put(device, y).requires_grad_() for y in (x[:0], x, x)]
    attend(*leaves).sum().backward()
    assert [leaf.grad.shape for leaf in leaves] == [(0, 4), (3, 4), (3, 4)]
    assert not leaves[1].grad.numpy().any() and not leaves[2].grad.numpy().any()


def test_keys_behind_the_query_are_not_read_by_whole_tiles(device):
    """NaN in a tile that no query of the block takes part with changes nothing."""
    x = np.random.default_rng(9).normal(size=(130, 4)).astype(np.float32)
    wrong = x.copy()
    wrong[64:] = np.nan
    call = [put(device, y) for y in (x, wrong, wrong)]
    result = attend(*call, is_causal=True).numpy()
    wanted = reference(x, x, x, None, True, 0.5)
    assert np.max(np.abs(result[:64] - wanted[:64])) <= 1e-5
    assert np.isnan(result[64:]).all()


def test_heads_that_share_keys(device):
    rng = np.random.default_rng(10)
    q, k, v = (rng.normal(size=s) for s in ((2, 6, 3, 4), (2, 3, 5, 4), (2, 3, 5, 2)))
    repeated = [x.repeat(2, axis=1) for x in (k, v)]
    for mask in (
        None,
        rng.random((3, 5)) < 2,
        rng.normal(size=(6, 3, 5)),
        rng.normal(size=(2, 1, 3, 5)),
    ):
        given = None if mask is None else put(device, mask)

        def call(q, k, v, given=given):
            return attend(q, k, v, given, enable_gqa=True)

        wanted = reference(q, *repeated, mask, False, 0.5)
        assert_near(call(*(put(device, x) for x in (q, k, v))), wanted, "float64", "heads")
        check(call, q[:1], k[:1], v[:1], device=device) if mask is None else None
    with pytest.raises(ValueError, match="needs heads"):
        attend(*(put(device, x[0, 0]) for x in (q, k, v)), enable_gqa=True)


def test_the_same_bits_twice(device):
    rng = np.random.default_rng(11)
    q, k, v, g = (
        rng.normal(size=s).astype("f4") for s in ((2, 70, 8), (2, 90, 8), *[(2, 90, 8)] * 2)
    )
    bits = []
    for _ in range(2):
        leaves = [put(device, x).requires_grad_() for x in (q, k, v)]
        result = attend(*leaves)
        result.backward(put(device, g[:, :70]))
        bits.append([result.detach().numpy()] + [leaf.grad.numpy() for leaf in leaves])
    assert all(np.array_equal(a, b) for a, b in zip(*bits, strict=True))


def test_sums_of_many_rows(device):
    """Equal terms err the most: neither keys nor queries are added in one chain."""
    n = 4096
    few, many = np.zeros((1, 1), np.float32), np.zeros((n, 1), np.float32)
    tenths = np.full((n, 1), 0.1, np.float32)
    exact = float(tenths[0, 0])
    mean = attend(put(device, few), put(device, many), put(device, tenths)).numpy()
    assert np.abs(mean / exact - 1).max() <= 1e-5
    value = put(device, few).requires_grad_()
    result = attend(put(device, many), put(device, few), value)
    (slope,) = vg.autograd.grad(result, (value,), put(device, tenths))
    assert np.abs(slope.numpy() / (n * exact) - 1).max() <= 1e-5


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_key_has_gradients_of_zero(device, dtype):
    """Its weight is 1 whatever the score: to the last bit, so that sums of many stay zero."""
    rng = np.random.default_rng(12)
    for length, features, width in ((70, 130, 256), (5, 3, 33), (66, 64, 65)):
        q, k, v, g = (
            rng.normal(size=s).astype(dtype)
            for s in ((length, features), (1, features), (1, width), (length, width))
        )
        leaves = [put(device, x).requires_grad_() for x in (q, k)]
        result = attend(*leaves, put(device, v))
        found = vg.autograd.grad(result, leaves, put(device, g))
        assert not any(x.numpy().any() for x in found)
        q = put(device, rng.normal(size=(65, features)).astype(dtype)).requires_grad_()
        more = [put(device, rng.normal(size=(65, n)).astype(dtype)) for n in (features, width)]
        result = attend(q, *more, is_causal=True)  # the first query has one key
        g = put(device, rng.normal(size=result.shape).astype(dtype))
        assert not vg.autograd.grad(result, (q,), g)[0].numpy()[0].any()


# Memory -------------------------------------------------------------------------------------------


def step(device, length, causal):
    q, k, v = (put(device, np.ones((1, length, 8), np.float32)).requires_grad_() for _ in range(3))
    attend(q, k, v, is_causal=causal).sum().backward()
    return q.grad


@pytest.mark.devices("cpu")
@pytest.mark.parametrize("causal", [False, True])
def test_no_matrix_of_queries_and_keys_on_the_cpu(device, causal):
    n = 2048
    step(device, 8, causal)
    tracemalloc.start()
    try:
        step(device, n, causal)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n * n * 4 / 4, f"{peak} bytes at once; a matrix of float32 has {n * n * 4}"


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("causal", [False, True])
def test_no_matrix_of_queries_and_keys_on_a_card(device, causal):
    """No array as large: counted are the largest that are made, in elements."""
    n = 330
    largest = []

    def note(call):
        largest.extend(x.size for x in call.results if isinstance(x, vg.Array))

    step(device, 8, causal)
    before = vg.memory_info(device).used
    with observe(note):
        result = step(device, n, causal)
    assert max(largest) == 8 * n < n * n
    assert vg.memory_info(device).used - before <= 64 * 1024 < n * n * 4
    assert result.shape == (1, n, 8)


@pytest.mark.devices("sim", "cuda")
def test_a_limit_of_memory_that_no_matrix_fits_in(device):
    n = 1100
    x = put(device, np.ones((n, 2), np.float32))
    leaves = [put(device, x.numpy()).requires_grad_() for _ in range(3)]
    vg.empty_cache(device)
    limit = vg.memory_info(device).used + n * n * 4 - 1
    vg.set_memory_limit(limit, device)
    try:
        with pytest.raises(vg.OutOfMemoryError):
            vg.matmul(x, x.T)
        attend(*leaves, is_causal=True).sum().backward()
    finally:
        vg.set_memory_limit(None, device)
    assert np.allclose(leaves[2].grad.numpy().sum(), 2 * n, 1e-4)


@pytest.mark.devices("sim", "cuda")
def test_launches_and_copies(device):
    """One launch forward, three backward, no wait and no copy between host and device."""
    q, k, v = (put(device, np.ones((2, 3, 40, 8), np.float32)) for _ in range(3))
    mask = put(device, np.zeros((3, 1, 40), np.float32))
    views = [
        vg.permute_dims(vg.permute_dims(x, (0, 2, 1, 3)).copy(), (0, 2, 1, 3)) for x in (q, k, v)
    ]
    logsum = vg.empty((2, 3, 40), device=device)
    before = vg.counters(device)
    result = apply(q.backend, "attention", *views, mask, 0.5, True, logsum)
    between = vg.counters(device)
    call = (result, *views, mask, result, logsum, 0.5, True)
    apply(q.backend, "attention_backward", *call)
    after = vg.counters(device)
    assert between["launches"] - before["launches"] == 1
    assert after["launches"] - between["launches"] == 3
    rest = [name for name in before if name not in ("launches", "live_arrays")]
    assert all(after[name] == before[name] for name in rest)


def test_heads_are_read_where_the_projection_has_put_them(device):
    """Queries, keys and values of self-attention are views of one array."""
    layer = vg.nn.MultiheadAttention(8, 2, batch_first=True, device=device)
    x, seen = put(device, np.ones((3, 5, 8), np.float32)), []
    with observe(seen.append):
        layer(x, x, x, is_causal=True)
    (together,) = (
        call.results[0]
        for call in seen
        if call.method == "dense" and call.results[0].shape[-1] == 24
    )
    (call,) = (call for call in seen if call.method == "attention")
    begin = together.backend.pointer(together.raw)
    places = [x.backend.pointer(x.raw) - begin for x in call.inputs.values()]
    assert places == [0, 8 * 4, 16 * 4] and call.static["causal"]
    assert {x.strides for x in call.inputs.values()} == {(5 * 24 * 4, 4 * 4, 24 * 4, 4)}
    assert "mask" not in call.inputs, "an order needs no matrix"


# Refusals -----------------------------------------------------------------------------------------


def test_what_is_refused(device):
    x = put(device, np.ones((3, 4), np.float32))
    backend = x.backend
    wide = vg.ones((3, 257), device=device)
    for error, operands in (
        (ValueError, (x, x[:, :2], x, None)),
        (ValueError, (x, x, x[:2], None)),
        (ValueError, (x[0], x, x, None)),
        (ValueError, (x, x[:0], x[:0], None)),
        (ValueError, (x, x, wide, None)),
        (ValueError, (wide, wide, x, None)),
        (ValueError, (x[:, :0], x[:, :0], x, None)),
        (ValueError, (x, x, x, vg.ones((2, 3), device=device))),
        (ValueError, (x, x, x, vg.ones((2, 3, 3), device=device))),
        (TypeError, (x, x, vg.astype(x, "float64"), None)),
        (TypeError, (vg.astype(x, "int32"),) * 3 + (None,)),
        (TypeError, (x, x, x, vg.ones((3, 3), dtype="int32", device=device))),
    ):
        with pytest.raises(error):
            apply(backend, "attention", *operands, 1.0, False, None)
    pairs = itertools.product(
        [vg.ones((2, 3, 4), device=device)], [vg.ones((3, 3, 4), device=device)]
    )
    for a, b in pairs:
        with pytest.raises(ValueError, match="broadcast"):
            apply(backend, "attention", a, b, b, None, 1.0, False, None)
    with pytest.raises(ValueError, match="shape"):
        attend(x, x, x, put(device, np.ones((2, 3), bool)))
    logsum = vg.ones(3, device=device)
    for g, output, sums in ((x[:2], x, logsum), (x, x[:2], logsum), (x, x, logsum[:2])):
        with pytest.raises(ValueError):
            call = (g, x, x, x, None, output, sums, 1.0, False)
            apply(backend, "attention_backward", *call)
