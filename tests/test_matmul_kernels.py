"""Every kernel of products, each forced in turn: exact results, the same bits, layers, many items.

test_matmul_accuracy.py has rounding errors and special values, test_matmul_paths.py what single
kernels do.

What one card lacks (the simulated one has only the portable kernels) is left out by asking the
library, not by a list: `able` is what it can force.
"""

import itertools

import numpy as np
import pytest
from forced import CASES, card_for, is_able, is_simulated
from products import (
    EVERY_CASE,
    PARAMETERS,
    cases_without,
    check_bits,
    check_columns,
    check_same,
    forced,
    halves,
    integers,
    launches,
    layer,
    multiply,
    place,
    poisoned,
    size_for,
    values_of,
)
from references import normal_cdf

import pyvecgpu as vg
from pyvecgpu.native.abi import MatmulKernel

F = vg.nn.functional
# Around the edges of every tile: 32, 64, 128, 192, 256; and of the slabs of k: 8 to 64.
SIZES = [
    (1, 1, 1),
    (2, 3, 4),
    (64, 64, 64),
    (63, 65, 31),
    (128, 256, 64),
    (129, 257, 33),
    (127, 255, 129),
    (191, 193, 96),
    (257, 129, 200),
    (300, 70, 7),
    (65, 520, 1000),
    (65, 520, 3000),
    (130, 70, 48),
    (70, 260, 180),
    (5, 6, 7),
    (300, 301, 37),
    (16, 20, 3000),
    (128, 512, 784),
    (513, 513, 40),
    (1023, 130, 65),
]
VECTORS = [(1, 1, 1), (1, 64, 64), (1, 129, 257), (1, 4096, 300), (1, 70, 5000), (1, 2, 9)]
TINY = [(1, 1, 1), (2, 3, 4), (32, 32, 32), (31, 29, 17), (32, 5, 1), (8, 32, 32)]


THIN = [(1, 1, 1), (3, 300, 130), (8, 129, 700), (16, 33, 5000), (9, 257, 1025), (13, 13, 9)]


# Around the edges of a block's columns (64 or 128) and of the rows that it loads at a time (64).
OUTER = [
    (1, 1, 1),
    (2, 3, 4),
    (64, 128, 16),
    (65, 129, 8),
    (63, 127, 9),
    (130, 300, 5),
    (200, 70, 7),
]
OUTER += [(72, 65, 8), (513, 65, 3), (129, 260, 12), (1, 700, 2), (700, 1, 15)]
OUTER += [(70, 140, 14), (129, 65, 11)]


# What float32 has more of.
OUTER_OF_FLOAT32 = [(64, 64, 24), (65, 129, 17), (130, 70, 23), (1, 2, 20)]


def sizes_of(kernel, dtype):
    if kernel == "outer":
        return OUTER + OUTER_OF_FLOAT32 * (dtype == "float32")
    if kernel == "thin":
        return THIN + [(n, m, k) for m, n, k in THIN]
    if kernel == "gemv":
        return VECTORS + [(n, m, k) for m, n, k in VECTORS]
    return TINY if kernel == "tiny" else SIZES


@pytest.mark.devices("sim", "cuda")
def test_what_the_card_has(device):
    """On an sm_90 card every kernel can be forced: no kernel is left out of CASES, or untested.

    Of the simulated cards, none of which has tensor cores, one of sm_90 has all others.
    """
    have = {kernel for kernel in {case[0] for case in CASES} if is_able(device, kernel)}
    every = {kernel.name.removeprefix("MATMUL_").lower() for kernel in MatmulKernel} - {"auto"}
    limits = vg.Device(device).limits
    if device == "sim":
        assert have == {"tiled", "gemv", "thin", "tiny", "outer"}
        on_tensor_cores = {"bf16x6", "fp16x3", "tensor", "tensor_sm80", "dmma"}
        others = every - have - on_tensor_cores
        assert {card_for(device, kernel) for kernel in others} == {"sim:1"}
        assert {card_for(device, kernel) for kernel in on_tensor_cores} == {None}
        assert {kernel for kernel in others if is_able("sim:2", kernel)} == others - {"ffma_tma"}
    elif limits.compute_capability == (9, 0):
        assert have == every
    else:
        assert have >= {"tiled", "gemv", "thin", "tiny", "outer"}


@pytest.mark.devices("sim")
def test_asynchronous_copies_without_clusters(device, rng):
    """On a card of sm_80, where blocks do not share k."""
    card = "sim:2"
    assert vg.Device(card).limits.compute_capability == (8, 0)
    a, b = integers(rng, (70, 200), "float32"), integers(rng, (200, 75), "float32")
    for kernel in ("ffma_128x128", "ffma_64x128", "ffma_64x64", "ffma_64x32"):
        with forced(card, kernel):
            for trans_a, trans_b in itertools.product((False, True), repeat=2):
                x, y = place(card, a, "float32", trans_a), place(card, b, "float32", trans_b)
                check_same(multiply(x, y, "ieee"), a @ b)
            if kernel != "ffma_128x128":
                x, y = vg.ones((70, 900), device=card), vg.ones((900, 75), device=card)
                with pytest.raises(ValueError, match="is forced"):
                    multiply(x, y, "ieee")


# ---- Exact ---------------------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_integers_are_exact_in_every_layout(device, rng, kernel, dtype, precision):
    with forced(device, kernel):
        for m, n, k in sizes_of(kernel, dtype):
            if is_simulated(device) and m * n * k > 300_000:
                continue
            a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
            a[0], b[:, 0] = 1, 1
            expected = halves(a @ b, dtype)
            for trans_a, trans_b in itertools.product((False, True), repeat=2):
                x = place(device, a, dtype, trans_a)
                y = place(device, b, dtype, trans_b)
                frame = poisoned(device, (m + 1, n), dtype)  # nothing is written behind c
                out = frame[:m]
                assert vg.matmul(x, y, precision=precision, out=out) is out
                check_same(out, expected)
                assert np.isnan(values_of(frame[m])).all()


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_misaligned_operands(device, rng, kernel, dtype, precision):
    """Pointers and rows 1 to 15 elements off every alignment, and out in a wider array."""
    sizes = {"gemv": (1, 70, 300), "tiny": (31, 30, 29), "others": (130, 140, 150)}
    sizes["thin"], sizes["outer"] = (7, 140, 150), (130, 140, 15)
    m, n, k = size_for(device, kernel, sizes, (40, 40, 40))
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    expected = halves(a @ b, dtype)
    with forced(device, kernel):
        for by in range(1, 16, 5 if is_simulated(device) else 1):
            for trans_a, trans_b in ((False, False), (True, True)):
                x = place(device, a, dtype, trans_a, offset=by, gap=(by * 7) % 16)
                y = place(device, b, dtype, trans_b, offset=16 - by, gap=by)
                check_columns(x, y, precision, expected, by, n + 20)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_blocks_of_few_terms_that_go_down_many_rows(device, rng, dtype):
    """So many items that a block has three times 64 rows, or fewer where c ends."""
    a, b = integers(rng, (200, 450, 2), dtype), integers(rng, (200, 2, 3), dtype)
    few, tall = integers(rng, (40, 1000, 5), dtype), integers(rng, (40, 5, 200), dtype)
    with forced(device, "outer"):
        for trans_a, trans_b in itertools.product((False, True), repeat=2):
            for x, y in ((a, b), (few, tall)):
                placed = place(device, x, dtype, trans_a), place(device, y, dtype, trans_b)
                check_same(multiply(*placed), halves(x @ y, dtype))


# ---- The same bits -------------------------------------------------------------------------------

# Of gemv several blocks share the terms, and all but the portable kernels may cut k here: who adds
# which sums up, and when, is what could differ.
LONG = {"gemv": (1, 70, 20_000), "tiny": (31, 32, 29), "tensor": (70, 200, 4_200)}
LONG["others"], LONG["thin"], LONG["outer"] = (70, 200, 600), (9, 40, 3_000), (170, 300, 16)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_items_of_a_batch_are_the_products_alone(device, rng, kernel, dtype, precision):
    """Bit for bit, every time; also of one operand for the whole batch, and of one backwards."""
    m, n, k = size_for(device, kernel, LONG, (33, 40, 300))
    a, b = rng.standard_normal((5, m, k)), rng.standard_normal((5, k, n))
    x = place(device, a, dtype)
    with forced(device, kernel):
        for trans in (
            (False, True) if kernel in ("gemv", "thin") else (False,)
        ):  # two ways to add up
            y = place(device, b, dtype, trans)
            both = multiply(x, y, precision)
            for time in range(2 if is_simulated(device) else 9):
                check_bits(multiply(x, y, precision), both, f"time {time}")
            shared, backwards = multiply(x, y[0], precision), multiply(x[::-1], y, precision)
            outer = multiply(x[:2, None], y[None], precision)
            for i in range(5):
                check_bits(both[i], multiply(x[i], y[i], precision), f"item {i}")
                check_bits(shared[i], multiply(x[i], y[0], precision), f"item {i}, one b")
                check_bits(backwards[i], multiply(x[4 - i], y[i], precision), f"item {i}, back")
                if i < 2:
                    check_bits(outer[i, 3], multiply(x[i], y[3], precision), f"item ({i}, 3)")


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(
    ("dtype", "precision"),
    [("float32", name) for name in ("ieee", "float32", "fast32", "tf32")]
    + [(name, None) for name in ("float16", "bfloat16", "float64")],
)
def test_gradients_have_the_same_bits_every_time(device, rng, dtype, precision):
    """Those of a large layer, whose products are by the kernels that the library chooses."""
    m, inputs, outputs = (150, 40, 70) if device == "sim" else (2048, 512, 1024)
    shapes = (m, outputs), (m, inputs), (outputs, inputs), (m, outputs)
    arrays = [place(device, rng.standard_normal(shape), dtype) for shape in shapes]
    first = F.dense_backward(*arrays, "gelu", precision=precision)
    gradient, x, weight, before = (values_of(one) for one in arrays)
    dz = gradient * slope_of_gelu(before)
    for result, expected in zip(first, (dz @ weight, dz.T @ x, dz.sum(axis=0)), strict=True):
        error = np.linalg.norm(values_of(result) - expected) / np.linalg.norm(expected)
        assert error <= 2.0**-6, error
    for _ in range(2):
        again = F.dense_backward(*arrays, "gelu", precision=precision)
        for result, expected in zip(again, first, strict=True):
            check_bits(result, expected)


def slope_of_gelu(z):
    return normal_cdf(z) + z * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


# ---- Layers --------------------------------------------------------------------------------------

LAYERS = {"gemv": (1, 70, 300), "tiny": (31, 30, 29), "others": (133, 201, 70)}
LAYERS["thin"], LAYERS["outer"] = (5, 70, 300), (133, 201, 13)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_layers(device, rng, kernel, dtype, precision):
    """Bias, every activation and the preactivation in each kernel's epilogue."""
    m, n, k = size_for(device, kernel, LAYERS, (21, 22, 23))
    x, w = rng.standard_normal((m, k)) / np.sqrt(k), rng.standard_normal((n, k))
    with forced(device, kernel):
        arrays = [place(device, one, dtype) for one in (x, w)]
        plain = multiply(arrays[0], arrays[1].T, precision)
        for activation in (None, "sigmoid", "tanh", "relu", "gelu", "silu"):
            # Another bias each time: the preactivation's memory may hold that of the time before.
            bias = place(device, rng.standard_normal((1, n)), dtype)[0]
            y, z = layer(*arrays, bias, activation, precision=precision, with_preactivation=True)
            check_bits(layer(*arrays, bias, activation, precision=precision), y, activation)
            small = 2.0**-7 if dtype == "bfloat16" else 2.0**-9 if dtype == "float16" else 2.0**-20
            expected = values_of(plain) + values_of(bias)
            got = values_of(z)
            assert np.all(np.abs(got - expected) <= small * (1 + np.abs(expected))), activation
            expected = activate(activation, got)
            error = np.abs(values_of(y) - expected)
            assert np.all(error <= 2 * small * (1 + np.abs(expected))), activation
            assert np.any(expected)


def activate(activation, z):
    """The formulas, in float64."""
    if activation is None:
        return z
    if activation == "gelu":
        from math import erf, sqrt

        return np.array([0.5 * v * (1 + erf(v / sqrt(2))) for v in z.ravel()]).reshape(z.shape)
    return {
        "sigmoid": lambda: 1 / (1 + np.exp(-z)),
        "tanh": lambda: np.tanh(z),
        "relu": lambda: np.maximum(z, 0),
        "silu": lambda: z / (1 + np.exp(-z)),
    }[activation]()


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_a_layer_is_launched_as_its_product_is(device, rng, kernel, dtype, precision):
    """Bias, activation and preactivation are no kernels of their own."""
    for sizes in (LAYERS, LONG):
        m, n, k = size_for(device, kernel, sizes, (21, 70, 20_000))
        x, weight = (place(device, rng.standard_normal(s), dtype) for s in ((m, k), (n, k)))
        bias = place(device, rng.standard_normal((1, n)), dtype)[0]
        with forced(device, kernel):
            before = launches(device)
            vg.matmul(x, weight.T, precision=precision)
            between = launches(device)
            F.dense(x, weight, bias, "gelu", precision=precision, with_preactivation=True)
            after = launches(device)
        assert after - between == between - before > 0, (m, n, k)


# ---- Large ---------------------------------------------------------------------------------------


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_large_batches(device, rng, kernel, dtype, precision):
    """65,535, 65,536 and 100,000 items: beyond what a grid's y and z can count."""
    m, n, k = (1, 8, 16) if kernel == "gemv" else (8, 8, 16)
    with forced(device, kernel):
        for items in (65_535, 65_536, 100_000):
            a, b = integers(rng, (items, m, k), dtype), integers(rng, (items, k, n), dtype)
            result = multiply(place(device, a, dtype), place(device, b, dtype), precision)
            check_same(result, halves(a @ b, dtype))


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("k", [72, 137, 192])
@pytest.mark.parametrize(PARAMETERS, cases_without("gemv", "thin", "tiny", "outer"))
def test_more_tiles_than_a_card_takes_at_a_time(device, rng, kernel, dtype, precision, k):
    """So that blocks take one after another, of a k that ends within a slab, and of whole ones."""
    m, n = 2900, 3100
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    expected = halves(a @ b, dtype)
    wanted = place(device, expected, dtype)
    with forced(device, kernel):
        for trans_a, trans_b in itertools.product((False, True), repeat=2):
            x, y = place(device, a, dtype, trans_a), place(device, b, dtype, trans_b)
            result = multiply(x, y, precision)
            if not vg.all(result == wanted):
                check_same(result, expected)


@pytest.mark.devices("cuda")
@pytest.mark.big
@pytest.mark.parametrize(
    PARAMETERS, [*cases_without("gemv", "thin", "tiny"), pytest.param("tiled", "uint8", None)]
)
def test_more_results_than_32_bits_count(device, rng, kernel, dtype, precision):
    m, n, k = 50_000, 43_000, 16
    assert m * n > 2**31
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    with forced(device, kernel):
        c = multiply(place(device, a, dtype), place(device, b, dtype), precision)
    rows = rng.integers(0, m, 40)
    rows[:3] = 0, m - 1, m // 2
    for row in rows:
        check_same(c[int(row)], halves(a[row] @ b, dtype))


def test_no_terms_give_zeros(device):
    for dtype in ("float32", "float64", "float16", "int32"):
        a = vg.zeros((5, 0), dtype=getattr(vg, dtype), device=device)
        out = vg.full((5, 7), 3, dtype=getattr(vg, dtype), device=device)
        b = vg.zeros((0, 7), dtype=getattr(vg, dtype), device=device)
        assert not values_of(vg.matmul(a, b, out=out)).any()
    bias = vg.ones(7, device=device)
    x, w = vg.zeros((5, 0), device=device), vg.zeros((7, 0), device=device)
    assert (F.dense(x, w, bias, "relu").numpy() == 1).all()
