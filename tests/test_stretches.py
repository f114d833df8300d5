"""Products of so long a k that it is cut into stretches, whose sums are added up after."""

import forced
import numpy as np
import products
import pytest
from helpers import bits, put
from products import integers, place, plan_of

import pyvecgpu as vg
from pyvecgpu.native.abi import MatmulKernel, Plan

# What is cut on an H200, with a rest that is no multiple of anything, and with none.
CUT = {
    ("float32", "ieee"): (5120 + 157, 5632),
    ("float64", "ieee"): (8192 + 77, 8192),
    ("float16", "ieee"): (16384 + 1001, 32768),
    ("bfloat16", "ieee"): (16384 + 13, 16384),
    ("float32", "tf32"): (16384 + 519, 16384),
}
# On a simulated card, whose plans say so of shorter ones already: the same rests.
CUT_SIMULATED = {
    ("float32", "ieee"): (5120 + 157, 5632),
    ("float16", "ieee"): (6144 + 1001, 8192),
    ("bfloat16", "ieee"): (6144 + 13, 6144),
    ("float32", "tf32"): (4096 + 519, 4096),
}
KINDS = pytest.mark.parametrize("kind", CUT, ids="-".join)


pytestmark = pytest.mark.usefixtures("simulated_cards")


def card_for(device, kind):
    """The device that cuts this kind: of the simulated cards one of sm_90."""
    if device == "sim" and kind[0] == "float64":
        pytest.skip("the simulated cards have no tensor cores for float64")
    return "sim:1" if device == "sim" else device


def cut_for(card, kind):
    """The lengths of k, of which the first has a rest: all of them are cut."""
    return (CUT_SIMULATED if forced.is_simulated(card) else CUT)[kind]


def stretches_of(device, dtype, precision, m, n, k):
    """How many stretches there are by the plan for this very card."""
    return plan_of(device, dtype, precision, m, n, k)[Plan.PLAN_STRETCHES]


@KINDS
@pytest.mark.devices("sim", "cuda")
def test_integers_are_exact(device, rng, kind):
    """In every layout, beside every alignment, with a bias and an activation."""
    dtype, precision = kind
    card = card_for(device, kind)
    for m, n, k in zip((17, 18), (19, 33), cut_for(card, kind), strict=True):
        assert stretches_of(card, dtype, precision, m, n, k) > 1
        a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
        c = products.halves(a @ b, dtype)
        for trans_a, trans_b, offset in ((0, 0, 0), (1, 0, 1), (0, 1, 3), (1, 1, 0)):
            x = place(card, a, dtype, trans_a, offset, offset)
            y = place(card, b, dtype, trans_b, offset)
            products.check_same(products.multiply(x, y, precision), c)
        x, w = place(card, a, dtype), place(card, np.ascontiguousarray(b.T), dtype)
        bias = integers(rng, (n,), dtype)
        given = put(card, bias.astype("float32")).astype(dtype)
        found = vg.nn.functional.dense(x, w, given, "relu", precision=precision)
        products.check_same(found, products.halves(np.maximum(a @ b + bias, 0), dtype))


@KINDS
@pytest.mark.devices("sim", "cuda")
def test_items_have_the_bits_of_the_product_alone(device, rng, kind):
    """Few items, whose stretches are a launch each, and more of them than there are stretches."""
    dtype, precision = kind
    card = card_for(device, kind)
    m, n, k = 17, 18, cut_for(card, kind)[0]
    count = stretches_of(card, dtype, precision, m, n, k)
    assert count > 1
    a = rng.standard_normal((count + 2, m, k)).astype("float32")
    b = rng.standard_normal((k, n)).astype("float32")
    x, y = (put(card, one).astype(dtype) for one in (a, b))
    chosen = (0, 1, count, count + 1)
    alone = {i: bits(vg.matmul(x[i], y, precision=precision)) for i in chosen}
    for items in (2, count + 2):
        found = vg.matmul(x[:items], y, precision=precision)
        for i in chosen[: 2 if items == 2 else 4]:
            assert bits(found[i]) == alone[i], (items, i)
    wide = vg.zeros((count + 2, m, n + 2), dtype=dtype, device=card)
    vg.matmul(x, y, precision=precision, out=wide[:, :, 1:-1])
    assert bits(wide[1, :, 1:-1]) == alone[1]
    assert not wide[:, :, 0].any() and not wide[:, :, -1].any()


@KINDS
@pytest.mark.devices("sim", "cuda")
def test_as_near_as_a_kernel_by_itself(device, rng, kind):
    """The same kernel without stretches, which is forced, errs no less."""
    dtype, precision = kind
    card = card_for(device, kind)
    kernels = {"float64": "dmma", "float32": "ffma_64x32"}
    kernel = "tensor_tf32" if precision == "tf32" else kernels.get(dtype, "tensor_small")
    m, n, k = 18, 20, cut_for(card, kind)[1]
    assert stretches_of(card, dtype, precision, m, n, k) > 1
    a, b = (rng.standard_normal(shape).astype("float32") for shape in ((m, k), (k, n)))
    x, y = (put(card, one).astype(dtype) for one in (a, b))
    exact = [one.astype("float64").numpy() for one in (x, y)]
    expected = exact[0] @ exact[1]
    scale = np.abs(exact[0]) @ np.abs(exact[1])

    def error(found):
        return np.max(np.abs(found.astype("float64").numpy() - expected) / scale)

    cut = error(vg.matmul(x, y, precision=precision))
    with forced.forced(card, kernel):
        whole = error(vg.matmul(x, y, precision=precision))
    assert cut <= 1.5 * whole + 2.0**-52, (cut, whole)


@pytest.mark.devices("sim")
def test_no_launch_for_no_rest(device):
    """A product of what is left may be a launch more, or several, and is none if nothing is left.

    Then there are the copies of an operand, the stretches and their sums.
    """
    card, launches = card_for(device, ("float32", "ieee")), []
    for k in CUT_SIMULATED["float32", "ieee"]:
        a, b = vg.ones((3, k), device=card), vg.ones((k, 5), device=card)
        vg.matmul(a, b, precision="ieee")
        before = vg.counters(card)["launches"]
        vg.matmul(a, b, precision="ieee")
        launches.append(vg.counters(card)["launches"] - before)
    assert launches[0] >= launches[1] <= 3


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("shape", [(17, 601, 1537), (609, 33, 2048)], ids=str)
def test_few_stretches_are_transposed_by_tiles(device, rng, shape):
    """Sums of few stretches of a turned product: c's tiles are whole, or end within either side."""
    m, n, k = shape
    card = "sim:1" if device == "sim" else device
    plan = plan_of(card, "float32", "ieee", m, n, k, True, True)
    assert plan[Plan.PLAN_TURNED] == 1 and 1 < plan[Plan.PLAN_STRETCHES] <= 16
    a, b = integers(rng, (2, m, k), "float32"), integers(rng, (2, k, n), "float32")
    x, y = place(card, a, "float32", True), place(card, b, "float32", True)
    wide = vg.ones((2, m + 1, n + 3), device=card)
    vg.matmul(x, y, precision="ieee", out=wide[:, :m, 1:-2])
    products.check_same(wide[:, :m, 1:-2], a @ b)
    assert all(bool(vg.all(edge == 1)) for edge in (wide[:, m], wide[:, :, 0], wide[:, :, -2:]))
    bias = integers(rng, (n,), "float32")
    w = place(card, np.ascontiguousarray(b[0].T), "float32")
    found = vg.nn.functional.dense(x[0], w, put(card, bias), "relu", precision="ieee")
    products.check_same(found, np.maximum(a[0] @ b[0] + bias, 0))


# What warpgroups multiply in stretches of operands that TMA knows as a whole, in every layout: with
# copies, without, and with one alone; the last one is shorter, and ends within a block of k.
BY_WARPGROUPS = [
    ("float16", "ieee", (33, 1667, 6511)),
    ("float16", "ieee", (201, 300, 4610)),
    ("bfloat16", "ieee", (72, 200, 22503)),
    ("float32", "tf32", (201, 300, 4111)),
    ("float32", "tf32", (130, 3030, 2605)),
    ("float32", "tf32", (1330, 224, 3001)),
]


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("product", BY_WARPGROUPS, ids=str)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_stretches_by_warpgroups(device, rng, product, layout):
    """Exact beside every alignment; and the items of a batch are the product alone."""
    dtype, precision, (m, n, k) = product
    trans_a, trans_b = (letter == "t" for letter in layout)
    plan = plan_of(device, dtype, precision, m, n, k, trans_a, trans_b)
    count = plan[Plan.PLAN_STRETCHES]
    assert plan[Plan.PLAN_KERNEL] == MatmulKernel.MATMUL_TENSOR
    assert count > 1 and k % plan[Plan.PLAN_STRETCH_TERMS] % 32 > 0
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    c = products.halves(a @ b, dtype)
    for offset in (0, 1, 4):
        x = place(device, a, dtype, trans_a, offset, offset)
        y = place(device, b, dtype, trans_b, offset)
        products.check_same(products.multiply(x, y, precision), c)
    y = place(device, rng.standard_normal((k, n)).astype("float32"), dtype, trans_b)
    for items in (2, count + 1):
        a = rng.standard_normal((items, m, k)).astype("float32")
        x = place(device, a, dtype, trans_a)
        found = vg.matmul(x, y, precision=precision)
        for i in (0, items - 1):
            assert bits(found[i]) == bits(vg.matmul(x[i], y, precision=precision)), (items, i)


@pytest.mark.devices("cuda")
@pytest.mark.parametrize(
    ("trans_b", "shape"),
    [(False, (1330, 224, 2000)), (True, (600, 224, 2000)), (True, (1028, 1159, 1301))],
)
def test_turned_products_are_exact(device, rng, trans_b, shape):
    """A TF32 a along m that is not copied: sums of the transposed product are transposed after."""
    m, n, k = shape
    plan = plan_of(device, "float32", "tf32", m, n, k, True, trans_b)
    assert plan[Plan.PLAN_TURNED] == 1 and plan[Plan.PLAN_STRETCHES] == 1
    a, b = integers(rng, (3, m, k), "float32"), integers(rng, (3, k, n), "float32")
    for offset in (0, 1):
        x = place(device, a, "float32", True, offset, offset)
        y = place(device, b, "float32", trans_b, offset)
        found = vg.matmul(x, y, precision="tf32")
        products.check_same(found, a @ b)
        assert bits(found[1]) == bits(vg.matmul(x[1], y[1], precision="tf32"))
        for gap in (0, 1):  # c is stored as it lies, or transposed by a launch after
            wide = vg.ones((3, m + 1, -(-n // 4) * 4 + 4 + gap), device=device)
            vg.matmul(x, y, precision="tf32", out=wide[:, :m, 4 : n + 4])
            products.check_same(wide[:, :m, 4 : n + 4], a @ b)
            edges = wide[:, m], wide[:, :, :4], wide[:, :, n + 4 :]
            assert all(bool(vg.all(edge == 1)) for edge in edges if edge.size)
    x, w = place(device, a[0], "float32", True), place(device, b[0].T, "float32", not trans_b)
    bias = integers(rng, (n,), "float32")
    found = vg.nn.functional.dense(x, w, put(device, bias), "relu", precision="tf32")
    products.check_same(found, np.maximum(a[0] @ b[0] + bias, 0))


# What blocks compute as a whole, of operands that are read once: of halves long ones alone. Rows
# that begin anywhere come by granules, past which nothing may be read.
WHOLE = {
    ("float16", "ieee"): (MatmulKernel.MATMUL_TENSOR_SMALL, 1.9e7),
    ("bfloat16", "ieee"): (MatmulKernel.MATMUL_TENSOR_SMALL, 1.9e7),
    ("float32", "tf32"): (MatmulKernel.MATMUL_TENSOR_TF32, 1e6),
}


def check_whole(card, kind, layout, shape, rng):
    """Exact beside an alignment, and with the bits of the product alone as items of a batch."""
    (m, n, k), (dtype, precision) = shape, kind
    trans_a, trans_b = (letter == "t" for letter in layout)
    plan, offset = plan_of(card, dtype, precision, m, n, k, trans_a, trans_b), k % 8
    assert plan[Plan.PLAN_STRETCHES] > 8 and plan[Plan.PLAN_KERNEL] == WHOLE[kind][0], shape
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    x = place(card, a, dtype, trans_a, offset, offset % 3)
    y = place(card, b, dtype, trans_b, offset // 2)
    products.check_same(products.multiply(x, y, precision), products.halves(a @ b, dtype))
    x = place(card, rng.standard_normal((2, m, k)).astype("float32"), dtype, trans_a, offset % 2)
    y = place(card, rng.standard_normal((k, n)).astype("float32"), dtype, trans_b)
    found = vg.matmul(x, y, precision=precision)
    assert bits(found[1]) == bits(vg.matmul(x[1], y, precision=precision)), shape


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("kind", WHOLE, ids="-".join)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_stretches_of_whole_products(device, rng, kind, layout):
    for _ in range(3):
        sides = [int(rng.integers(33, 129)), int(rng.integers(97, 129))]
        k = max(8192, int(WHOLE[kind][1] / sum(sides))) + int(rng.integers(1, 1400))
        shape = (*rng.permutation(sides).tolist(), k + (k % 8 == 0))
        check_whole(device, kind, layout, shape, rng)


@pytest.mark.devices("sim")
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_stretches_of_whole_tf32_products(device, rng, layout):
    kind = ("float32", "tf32")
    for card, side in (("sim:1", 100), ("sim:2", 40)):
        shape = (side, int(rng.integers(33, 66)), 8200 + int(rng.integers(800)))
        check_whole(card, kind, layout, shape, rng)
