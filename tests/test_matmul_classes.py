"""One product of every class that the planner tells apart, on integers, whose sums are exact.

Random shapes, layouts and paddings are drawn for each kernel that the card has; the planner, asked
without computing anything, says by which tiles, pairs of blocks, cuts of k, copies and numbers of
turns each would be made. Small ones are computed until every three of these facts that are ever
seen together have been. So a way through a kernel that some shape takes is taken here, whoever
thought of it.
"""

import itertools

import numpy as np
import pytest
from forced import card_for, is_simulated
from products import EVERY_CASE, PARAMETERS, forced, multiply, place

import pyvecgpu as vg
from pyvecgpu.bench import model
from pyvecgpu.dtypes import host_dtype
from pyvecgpu.native.abi import MatmulKernel, Plan

DRAWN = 2000
TOGETHER = 3  # facts
MOST_TERMS = {True: 200_000, False: 2_500_000_000}  # of one product, on a simulated card or another
MOST_ELEMENTS = 12_000_000
ALL_TERMS = {True: 10_000_000, False: 50_000_000_000}  # of all products of a kernel


def drawn(random, is_small):
    """A product: (items, m, n, k, a_along_k, b_along_k, a's padding, b's)."""
    largest = 400 if is_small else 6000
    sizes = np.exp(random.uniform(0, np.log(largest), 3)).round().astype(int)
    if random.random() < 0.3:
        sizes = np.where(sizes > 32, -(-sizes // 64) * 64, sizes)
    items = int(random.choice([1, 1, 1, 2, 5, 40]))
    along = random.random(2) < 0.5
    return items, *map(int, sizes), *map(bool, along), *map(int, random.choice([0, 1, 2, 4], 2))


def plan_of(device, card, kernel, dtype, precision, product):
    """The plan, or None where the kernel cannot compute the product."""
    items, m, n, k, a_along_k, b_along_k, a_gap, b_gap = product
    a_stride = (k if a_along_k else m) + a_gap
    b_stride = (k if b_along_k else n) + b_gap
    numbers = model.product_of(
        m, n, k, dtype=dtype, precision=precision or "float32",
        kernel=MatmulKernel[f"MATMUL_{kernel.upper()}"], items=items,
        a_along_k=a_along_k, b_along_k=b_along_k, a_stride=a_stride, b_stride=b_stride, c_stride=n,
        a_item=a_stride * (m if a_along_k else k), b_item=b_stride * (n if b_along_k else k),
        c_item=m * n,
    )  # fmt: skip
    plan = model.numbers(Plan, {})
    if device.backend.library.pvg_plan_product(card, numbers, plan) != 0:
        return None
    return {member: plan[member] for member in list(Plan)[:-1]}


def facts_of(plan, product):
    """What the planner says; numbers that grow with the shape are none, or few, or many."""
    items, m, n, k, a_along_k, b_along_k, a_gap, b_gap = product
    facts = [plan[member] for member in (
        Plan.PLAN_KERNEL, Plan.PLAN_ROWS, Plan.PLAN_COLUMNS, Plan.PLAN_PAIR, Plan.PLAN_CLUSTER,
        Plan.PLAN_A_COPIED, Plan.PLAN_B_COPIED, Plan.PLAN_TURNED)]  # fmt: skip
    facts += [
        plan[member] > 1
        for member in (
            Plan.PLAN_SLICES,
            Plan.PLAN_SPLITS,
            Plan.PLAN_SPLITS_IN_SEQUENCE,
            Plan.PLAN_STRETCHES,
        )
    ]
    facts += [plan[Plan.PLAN_CUT] > 0, plan[Plan.PLAN_WHOLE] > 0]
    turns = plan[Plan.PLAN_TILES] * plan[Plan.PLAN_ITEMS] / max(plan[Plan.PLAN_BLOCKS], 1)
    depth = plan[Plan.PLAN_DEPTH] or 32
    steps = k // depth
    facts += [m > 128, n > 128, k > 128, n % 4 > 0]
    return (*facts, min(int(turns), 2), min(steps, 1) + (steps >= 8), k % depth > 0, items > 1,
            plan[Plan.PLAN_ITEMS] < items, plan[Plan.PLAN_PART_ROWS] not in (0, m),
            a_along_k, b_along_k, a_gap > 0, b_gap > 0)  # fmt: skip


def products(device, kernel, dtype, precision):
    """Products that have every TOGETHER facts that those drawn have, the smaller ones first."""
    random, found = np.random.default_rng(20), []
    device = vg.Device(device)
    is_small, card = is_simulated(str(device)), model.card_of(device)
    for _ in range(DRAWN):
        product = drawn(random, is_small)
        items, m, n, k, *_ = product
        elements = items * (m * k + k * n + m * n)
        if items * m * n * k > MOST_TERMS[is_small] or elements > MOST_ELEMENTS:
            continue
        plan = plan_of(device, card, kernel, dtype, precision, product)
        if plan is not None:
            found.append((elements, product, facts_of(plan, product)))
    found, numbers = sorted(found), {}  # of each fact in its place
    ways = [[numbers.setdefault(fact, len(numbers)) for fact in enumerate(f)] for *_, f in found]
    places = np.array([*itertools.combinations(range(len(ways[0])), TOGETHER)]).T
    seen = np.zeros([len(numbers)] * TOGETHER, bool)
    for (_, product, _), way in zip(found, np.array(ways), strict=True):
        together = tuple(way[places])
        if not seen[together].all():
            seen[together] = True
            yield product


def integers(rng, shape, dtype):
    """Of float32, for sums that are exact in it: few of them, the first rows and columns ones."""
    most = 1 if dtype in ("float16", "bfloat16") else 4
    values = rng.integers(-most, most, shape, np.int8, endpoint=True).astype(np.float32)
    values[:, 0], values[:, :, 0] = 1, 1
    return values


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize(PARAMETERS, EVERY_CASE)
def test_products_of_every_class(device, rng, kernel, dtype, precision):
    card = card_for(device, kernel)
    if card is None:
        pytest.skip(f"no kernel {kernel} on this card")
    left = ALL_TERMS[is_simulated(card)]
    chosen = list(products(card, kernel, dtype, precision))
    assert len(chosen) >= 8
    with forced(card, kernel):
        for items, m, n, k, a_along_k, b_along_k, a_gap, b_gap in chosen:
            left -= items * m * n * k
            if left < 0:
                break
            a, b = integers(rng, (items, m, k), dtype), integers(rng, (items, k, n), dtype)
            x = place(card, a, dtype, trans=not a_along_k, gap=a_gap)
            y = place(card, b, dtype, trans=not b_along_k, gap=b_gap)
            expected = (a @ b).astype(host_dtype(x.dtype)).astype(np.float32)
            if items == 1:
                x, y, expected = x[0], y[0], expected[0]
            result = vg.astype(multiply(x, y, precision), vg.float32).numpy()
            wrong = np.argwhere(~(result == expected))
            assert not len(wrong), f"{len(wrong)} of {m, n, k} wrong, the first at {wrong[0]}"
