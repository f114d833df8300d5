"""Plans of random products are those on record, so that products keep their bits and their speed.

Where a plan changes on purpose, by a new measurement or a new kernel,

    PYTHONPATH=.:tests python tests/test_recorded_plans.py

records anew, and the commit says which products it is about and what they gain.
"""

import hashlib
import json
import random
import sys
from pathlib import Path

import pytest

from pyvecgpu.bench import model
from pyvecgpu.native import library
from pyvecgpu.native.abi import Card, MatmulKernel, Plan

RECORD = Path(__file__).with_name("recorded_plans.json")
PRODUCTS = {"H200": 1200, "RTX 4090": 200, "Turing": 100}  # of a group
CARDS = {
    "H200": (90, 132, 232448, 233472),
    "RTX 4090": (80, 128, 101376, 102400),
    "Turing": (75, 40, 65536, 65536),
}
TYPES = [
    *(("float32", name) for name in ("ieee", "float32", "fast32", "tf32", "bf16", "fp16")),
    *((name, "float32") for name in ("float16", "bfloat16", "float64", "int32", "uint8")),
]
GROUPS = {
    f"{card}: {dtype}, {precision}, {kernel}": (card, dtype, precision, kernel)
    for card in CARDS
    for dtype, precision in TYPES
    for kernel in ("auto", *(("ffma_64x64", "gemv", "tiled") if precision == "ieee" else ()))
} | {
    f"H200: {dtype}, {precision}, {kernel}": ("H200", dtype, precision, kernel)
    for dtype, precision, kernel in (
        *(("float32", "ieee", f"ffma_{tile}") for tile in ("128x128", "64x128", "64x32", "tma")),
        ("float32", "float32", "bf16x6"),
        ("float32", "fast32", "fp16x3"),
        ("float32", "tf32", "tensor"),
        ("float16", "float32", "tensor_sm80"),
        ("float64", "float32", "dmma"),
        ("float32", "ieee", "tiny"),
        ("float32", "ieee", "thin"),
        ("float16", "float32", "outer"),
        ("float32", "ieee", "outer"),
    )
}


def pick(rng, *options):
    return options[int(rng.random() * len(options))]


def size(rng, most):
    """A length of any magnitude, or some tiles, or beside such a number."""
    n = int(2 ** (rng.random() * most))
    if most > 6:
        step = pick(rng, 1, 8, 64, 128)
        few = (1 + int(rng.random() * 40)) * pick(rng, 64, 128, 256)
        n = pick(rng, few, (n + step - 1) // step * step)
    return max(1, n + pick(rng, 0, 0, 0, 1, -1))


def product(rng, dtype, precision, kernel):
    m, n, k = (size(rng, 6 if kernel == "tiny" else 14) for _ in range(3))
    if kernel == "thin":
        m = 1 + m % 16
    elif kernel == "outer":
        k = 1 + k % (24 if dtype == "float32" else 16)
    elif kernel == "gemv" or rng.random() < 0.1:
        m, n = pick(rng, (1, n), (m, 1))
    along = [pick(rng, True, False) for _ in range(2)]
    pads = [pick(rng, 0, 0, 0, 3, 8, 64) for _ in range(3)]
    items = int(2 ** (rng.random() * 9)) if rng.random() < 0.3 else 1
    shared = [rng.random() < 0.1 for _ in range(2)]
    return model.product_of(
        m,
        n,
        k,
        dtype=dtype,
        precision=precision,
        kernel=MatmulKernel[f"MATMUL_{kernel.upper()}"],
        items=items,
        a_along_k=along[0],
        b_along_k=along[1],
        a_stride=(k if along[0] else m) + pads[0],
        b_stride=(k if along[1] else n) + pads[1],
        c_stride=n + pads[2],
        a_item=0 if shared[0] else (m + 64) * (k + 64),
        b_item=0 if shared[1] else (n + pads[1]) * (k + pads[1]),
        c_item=m * (n + pads[2]),
        a_address=pick(rng, 0, 0, 0, 8, 16),
        b_address=pick(rng, 0, 0, 0, 8, 16),
        c_address=pick(rng, 0, 0, 0, 8, 16),
        has_bias=rng.random() < 0.2,
    )


def planned(group):
    """(digest of the plans of a group, how many there are)."""
    card, dtype, precision, kernel = GROUPS[group]
    rng = random.Random(group)
    described = model.numbers(Card, dict(zip(Card, CARDS[card], strict=False)))
    loaded, digest, count = library.load("sim"), hashlib.sha256(), 0
    for _ in range(PRODUCTS[card]):
        wish = product(rng, dtype, precision, kernel)
        plan = model.numbers(Plan, {})
        status = loaded.pvg_plan_product(described, wish, plan)
        count += status == 0
        digest.update(repr((status, *plan)).encode())
    return [digest.hexdigest()[:16], count]


@pytest.mark.parametrize("group", GROUPS)
def test_plans_are_those_on_record(group):
    expected = json.loads(RECORD.read_text(encoding="utf-8"))
    assert planned(group) == expected[group], "a plan has changed: see this file's first lines"


def test_the_record_is_of_these_groups():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert record.keys() == GROUPS.keys()
    digests = [digest for digest, count in record.values() if count]
    assert len(set(digests)) == len(digests) > 40
    assert sum(count for _, count in record.values()) > 20_000


if __name__ == "__main__":
    found = {group: planned(group) for group in GROUPS}
    RECORD.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    sys.exit(0)
