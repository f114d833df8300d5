"""Which kernel a product gets, on cards that need not be there.

cuda/tests/test_plan.c checks 100,000 random plans; here are the facts that a reader of the table
can check by hand, and that the README's table is the library's.
"""

import ctypes
import itertools
import pathlib

import pytest
from forced import CASES, forced
from helpers import BFLOAT16
from test_matmul_narrow import NARROW
from test_matmul_paths import TILES_OF_192

import pyvecgpu as vg
from pyvecgpu.bench import model, report
from pyvecgpu.native import library
from pyvecgpu.native.abi import Card, MatmulKernel, Plan

README = pathlib.Path(__file__).parent.parent / report.LADDER
CARDS = {
    "H200": (90, 132, 232448, 233472),
    "RTX 4090": (80, 128, 101376, 102400),
    "Turing": (75, 68, 65536, 65536),
    "simulated": (0, 2, 65536, 65536),
}


def plan(
    card,
    dtype,
    precision,
    m,
    n,
    k,
    *,
    items=1,
    pad=0,
    kernel="auto",
    a_along_k=True,
    b_along_k=False,
):
    """The plan of a product of matrices by rows, as a dict; None if there is none."""
    product = model.product_of(
        m,
        n,
        k,
        dtype=dtype,
        precision=precision,
        kernel=MatmulKernel[f"MATMUL_{kernel.upper()}"],
        items=items,
        a_along_k=a_along_k,
        b_along_k=b_along_k,
        a_stride=(k if a_along_k else m) + pad,
        b_stride=(k if b_along_k else n) + pad,
        c_stride=n,
        a_item=m * k,
        b_item=k * n,
        c_item=m * n,
    )
    described = model.numbers(Card, dict(zip(Card, CARDS[card], strict=False)))
    result = model.numbers(Plan, {})
    loaded = library.load("sim")  # the planner is the same in all libraries
    if loaded.pvg_plan_product(described, product, result) != 0:
        return None
    return {member.name.removeprefix("PLAN_").lower(): result[member] for member in list(Plan)[:-1]}


def kernel_of(*arguments, **options):
    return MatmulKernel(plan(*arguments, **options)["kernel"]).name.removeprefix("MATMUL_").lower()


# (dtype, precision, (m, n, k), on an H200, an RTX 4090, a Turing card)
CHOICES = [
    ("float32", "float32", (32, 32, 32), "tiny", "tiny", "tiny"),
    ("float32", "ieee", (1, 4096, 4096), "gemv", "gemv", "gemv"),
    ("float64", "ieee", (4096, 1, 4096), "gemv", "gemv", "gemv"),
    ("float32", "ieee", (4096, 4096, 4096), "ffma_tma", "ffma_128x128", "tiled"),
    ("float32", "float32", (4096, 4096, 4096), "bf16x6", "ffma_128x128", "tiled"),
    ("float32", "fast32", (4096, 4096, 4096), "fp16x3", "ffma_128x128", "tiled"),
    ("float32", "fast32", (768, 768, 768), "bf16x6", "ffma_64x64", "tiled"),
    ("float32", "tf32", (512, 512, 512), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (5000, 5000, 64), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (5000, 5001, 64), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (5000, 5001, 65), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (200, 300, 1024), "tensor_tf32", "tensor_tf32", "tiled"),
    ("float32", "tf32", (200, 300, 1023), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (300, 201, 1024), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (200, 4000, 1024), "tensor", "tensor_tf32", "tiled"),
    ("float32", "tf32", (200, 4000, 1023), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (64, 300, 1023), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float32", "tf32", (65, 300, 1023), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (64, 300, 1020), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (900, 900, 16), "outer", "outer", "outer"),
    ("float32", "tf32", (900, 2300, 16), "ffma_128x128", "ffma_128x128", "tiled"),
    ("float32", "tf32", (900, 900, 17), "tensor_tf32", "tensor_tf32", "outer"),
    ("float32", "tf32", (900, 900, 32), "tensor_tf32", "tensor_tf32", "tiled"),
    ("float32", "tf32", (900, 900, 64), "tensor_tf32", "tensor_tf32", "tiled"),
    ("float32", "tf32", (900, 900, 65), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (256, 900, 32), "tensor_tf32", "tensor_tf32", "tiled"),
    ("float32", "tf32", (256, 900, 33), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (257, 900, 33), "tensor_tf32", "tensor_tf32", "tiled"),
    ("float32", "tf32", (256, 90000, 32), "tensor_tf32", "tensor_tf32", "tiled"),
    ("float32", "tf32", (257, 90000, 32), "tensor_sm80", "tensor_sm80", "tiled"),
    ("float32", "tf32", (1500, 1600, 33), "tensor_tf32", "tensor_tf32", "tiled"),
    ("float32", "tf32", (1500, 1601, 32), "tensor_sm80", "tensor_sm80", "tiled"),
    ("float32", "tf32", (1500, 1604, 32), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (1500, 1601, 33), "tensor", "tensor_sm80", "tiled"),
    ("float32", "tf32", (2500, 4000, 16), "tensor_sm80", "tensor_sm80", "tiled"),
    ("float32", "tf32", (2500, 3999, 16), "ffma_128x128", "ffma_128x128", "tiled"),
    ("float32", "tf32", (256, 40000, 16), "ffma_128x128", "ffma_128x128", "tiled"),
    *(("float32", x, (2500, 4000, 8), "outer", "outer", "outer") for x in ("tf32", "float32")),
    ("float32", "ieee", (1000, 2000, 24), "outer", "outer", "outer"),
    ("float32", "float32", (2000, 1000, 17), "outer", "outer", "outer"),
    ("float32", "ieee", (1000, 2001, 24), "ffma_128x128", "ffma_128x128", "tiled"),
    ("float32", "ieee", (1000, 2000, 25), "ffma_128x128", "ffma_128x128", "tiled"),
    ("float32", "ieee", (64, 4000, 20), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float64", "ieee", (65, 3077, 8), "outer", "outer", "outer"),
    ("float64", "ieee", (65, 3076, 8), "tiled", "tiled", "tiled"),
    ("float16", "float32", (15625, 64, 8), "tensor_small", "tensor_small", "tiled"),
    ("float16", "float32", (3077, 65, 8), "outer", "outer", "outer"),
    ("bfloat16", "float32", (2000, 2000, 16), "outer", "outer", "outer"),
    ("bfloat16", "float32", (2000, 2001, 16), "tensor", "tensor_sm80", "tiled"),
    ("bfloat16", "float32", (2000, 2001, 8), "outer", "outer", "outer"),
    ("float32", "tf32", (201, 600, 201), "tensor", "tensor_sm80", "tiled"),
    ("float32", "ieee", (128, 128, 256), "ffma_128x128", "ffma_128x128", "tiled"),
    ("float32", "ieee", (256, 256, 1024), "ffma_64x32", "ffma_64x64", "tiled"),
    ("float32", "ieee", (256, 256, 1000), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float32", "ieee", (128, 256, 900), "ffma_64x32", "ffma_64x64", "tiled"),
    ("float32", "ieee", (888, 284, 300), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float16", "float32", (512, 512, 512), "tensor", "tensor_sm80", "tiled"),
    ("bfloat16", "float32", (400, 512, 17), "tiled", "tiled", "tiled"),
    (
        "float64",
        "float32",
        (1024, 1024, 1024),
        "dmma",
        "tiled",
        "tiled",
    ),  # 160 KiB of shared memory
    ("float32", "float32", (16, 500, 400), "thin", "thin", "thin"),
    ("float32", "tf32", (500, 16, 400), "thin", "thin", "thin"),
    ("float64", "ieee", (16, 500, 400), "dmma", "thin", "thin"),
    ("float64", "ieee", (8, 499, 401), "thin", "thin", "thin"),
    ("float64", "ieee", (9, 100, 2100), "dmma", "thin", "thin"),
    ("float64", "ieee", (99, 16, 29999), "thin", "thin", "thin"),
    ("float64", "ieee", (9, 99, 30000), "dmma", "thin", "thin"),
    ("float64", "ieee", (8, 7500, 400), "thin", "thin", "thin"),
    ("float64", "ieee", (8, 7499, 400), "dmma", "thin", "thin"),
    ("float64", "ieee", (7500, 9, 400), "dmma", "thin", "thin"),
    ("float32", "ieee", (16, 500, 399), "ffma_64x32", "ffma_64x64", "tiled"),
    ("int32", "float32", (1024, 1024, 1024), "tiled", "tiled", "tiled"),
    # On both sides of the bounds that the table has in words.
    ("float32", "ieee", (200, 200, 24), "tiled", "tiled", "tiled"),
    ("float32", "ieee", (200, 200, 25), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float32", "ieee", (300, 600, 16), "ffma_128x128", "ffma_128x128", "tiled"),
    ("float32", "ieee", (512, 512, 16), "outer", "outer", "outer"),
    ("float32", "ieee", (512, 512, 25), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float32", "ieee", (64, 5000, 600), "ffma_64x128", "ffma_128x128", "tiled"),
    ("float32", "ieee", (65, 5000, 600), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float32", "ieee", (5000, 200, 600), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float32", "ieee", (5000, 201, 600), "ffma_64x128", "ffma_128x128", "tiled"),
    ("float32", "float32", (129, 3000, 516), "ffma_64x64", "ffma_64x64", "tiled"),
    ("float32", "float32", (129, 3000, 517), "bf16x6", "ffma_64x64", "tiled"),
    ("float32", "float32", (160, 700, 2048), "ffma_64x32", "ffma_64x64", "tiled"),
    ("bfloat16", "ieee", (86, 122, 91347), "tensor_small", "tensor_small", "tiled"),
    ("bfloat16", "ieee", (86, 122, 91345), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (88, 120, 91352), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (33, 129, 200001), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (32, 200, 99999), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (200, 32, 99999), "tensor_small", "tensor_small", "tiled"),
    ("bfloat16", "ieee", (32, 200, 100000), "tensor", "tensor_small", "tiled"),
    ("bfloat16", "ieee", (32, 201, 99999), "tensor", "tensor_small", "tiled"),
    ("bfloat16", "ieee", (33, 65, 99999), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (64, 64, 99999), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (64, 65, 99999), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (40, 1960, 1000), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (1968, 40, 1000), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (40, 1968, 1001), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (4960, 40, 999), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (40, 4961, 1000), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (65, 530, 500), "tensor", "tensor_sm80", "tiled"),
    ("float16", "ieee", (33, 40000, 255), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (40000, 33, 256), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (64, 976, 5769), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (64, 976, 5770), "tensor", "tensor_small", "tiled"),
    ("bfloat16", "ieee", (2400, 17, 35), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (12, 7488, 2000), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (7496, 12, 2000), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (7497, 12, 2000), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (4968, 32, 2000), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (32, 4976, 2000), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (4977, 24, 2000), "tensor", "tensor_small", "tiled"),
    ("float16", "ieee", (16, 5000, 5001), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (72, 72, 72), "tensor", "tensor_sm80", "tiled"),
    ("float16", "ieee", (65, 65, 512), "tensor_small", "tensor_small", "tiled"),
    ("float16", "ieee", (65, 65, 513), "tensor", "tensor_sm80", "tiled"),
    ("bfloat16", "ieee", (129, 65, 512), "tensor", "tensor_sm80", "tiled"),
    ("bfloat16", "ieee", (256, 256, 4096), "tensor_small", "tensor_small", "tiled"),
    ("bfloat16", "ieee", (256, 256, 4095), "tensor", "tensor_sm80", "tiled"),
    ("bfloat16", "ieee", (256, 256, 11718), "tensor_small", "tensor_small", "tiled"),
    ("bfloat16", "ieee", (256, 256, 11719), "tensor", "tensor_small", "tiled"),
    ("bfloat16", "ieee", (257, 256, 4096), "tensor", "tensor_sm80", "tiled"),
    ("float64", "ieee", (16, 16, 16), "tiny", "tiny", "tiny"),
    ("float16", "ieee", (400, 400, 24), "tiled", "tiled", "tiled"),
    ("float16", "ieee", (400, 400, 25), "tensor", "tensor_sm80", "tiled"),
    ("float64", "ieee", (33, 33, 19), "tiled", "tiled", "tiled"),
    ("float64", "ieee", (33, 33, 20), "dmma", "tiled", "tiled"),
    ("float64", "ieee", (64, 32, 47), "tiled", "tiled", "tiled"),
    ("float64", "ieee", (64, 32, 48), "dmma", "tiled", "tiled"),
    ("float32", "fast32", (1000, 1000, 1999), "bf16x6", "ffma_128x128", "tiled"),
    ("float32", "fast32", (1000, 1000, 2000), "fp16x3", "ffma_128x128", "tiled"),
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_choice(choice):
    dtype, precision, sizes, *kernels = choice
    found = [kernel_of(card, dtype, precision, *sizes) for card in ("H200", "RTX 4090", "Turing")]
    assert found == kernels
    assert kernel_of("simulated", dtype, precision, *sizes) == kernels[2]


def test_an_item_has_the_bits_of_the_product_alone():
    alone = plan("H200", "float32", "float32", 384, 640, 4096)
    batch = plan("H200", "float32", "float32", 384, 640, 4096, items=50, pad=3)
    for field in ("kernel", "slices", "whole", "cut", "k_blocks", "k_step", "columns"):
        assert alone[field] == batch[field], field
    assert alone["cut"] > 0 and alone["blocks"] < batch["blocks"]


def test_few_rows_of_both_are_copied_if_both_lie_along_k():
    for a_along_k, b_along_k in itertools.product((True, False), repeat=2):
        options = {"a_along_k": a_along_k, "b_along_k": b_along_k}
        found = plan("H200", "float16", "ieee", 30, 190, 99999, **options)
        both = a_along_k and b_along_k
        assert MatmulKernel(found["kernel"]).name == f"MATMUL_TENSOR{'' if both else '_SMALL'}"
        assert bool(found["a_copied"]) == both


def test_blocks_that_begin_anywhere_are_not_copied():
    """Up to m and n of which copies would take longer than small tiles do."""
    for size, pad, rows, copied in ((256, 3, 64, 0), (384, 3, 128, 1), (256, 4, 128, 0)):
        sizes, options = (size, size, 16), {"items": 100, "pad": pad, "kernel": "ffma_128x128"}
        found = plan("H200", "float32", "ieee", *sizes, **options)
        assert (found["rows"], found["b_copied"]) == (rows, copied), (size, pad)


def test_short_sums_of_turned_operands_are_copied_if_rows_begin_anywhere():
    """The copies are little beside c; aligned ones are read as they are, and c is turned."""

    def copies(m, n, k):
        asked = plan("H200", "float32", "ieee", m, n, k, a_along_k=False, b_along_k=True)
        return asked["rows"], bool(asked["a_copied"]), bool(asked["b_copied"])

    assert copies(2500, 4724, 54) == (128, False, False)
    assert copies(2500, 4722, 54) == (128, True, False)  # rows of c
    assert copies(4724, 2498, 54) == (128, False, True)
    assert copies(2501, 4724, 54) == (128, True, False)  # rows of a
    assert copies(2500, 4722, 65)[1:] == (False, False)


def test_turned_tiles_with_slices_copy_nothing():
    """Of c transposed a tile lies down; but not to do twice as much for the sake of a copy."""

    def tile(m, n, k, kernel, pad=0):
        asked = {"kernel": kernel, "a_along_k": False, "b_along_k": True, "pad": pad}
        found = plan("H200", "float32", "ieee", m, n, k, **asked)
        return found["rows"], found["columns"], found["a_copied"], found["b_copied"]

    assert tile(120, 744, 5888, "ffma_64x32") == (32, 64, 0, 0)
    assert tile(5000, 24, 5000, "ffma_64x32") == (64, 32, 0, 2)
    assert tile(640, 832, 300, "ffma_64x64") == (64, 64, 0, 0)
    assert tile(22, 6822, 652, "ffma_64x128") == (32, 64, 0, 0)
    assert tile(6822, 22, 652, "ffma_64x64") == (64, 32, 0, 0)
    for pad in (0, 3):
        assert tile(600, 1000, 700, "ffma_64x128", pad) == (128, 64, 0, 0)


def test_tiles_of_narrow_products_of_halves():
    """Which test_matmul_narrow.py tries: by the lengths of rows, not by dtype."""
    ways = set()
    for tile, layouts in NARROW.items():
        for layout, products in layouts.items():
            along = {"a_along_k": layout[0] == "N", "b_along_k": layout[1] == "T"}
            for sizes in products:
                for dtype in ("float16", "bfloat16"):
                    found = plan("H200", dtype, "ieee", *sizes, **along)
                    planned = found["rows"], found["columns"], found["pair"]
                    assert planned == tile, (layout, sizes, planned)
                if tile[:2] in ((64, 32), (64, 64)):  # all stages that there is room for, or half
                    half = 116_736
                    assert (found["shared_bytes"] > half) == (found["k_blocks"] >= 32), sizes
                ways.add((found["stretches"] > 1, found["pair"], layout))
    assert len(ways) == 2 * 3 * 4
    rows_64, rows_128 = {(64, 32), (64, 64), (64, 128)}, {(128, one) for one in (64, 128, 192, 256)}
    assert {tile[:2] for tile in NARROW} == rows_64 | rows_128


def test_few_terms_of_float32():
    """A large c is for tiles, but of rows that they would store one by one; items are as alone."""
    for n, a_along_k, b_along_k in itertools.product((1000, 1001), (True, False), (True, False)):
        along = {"a_along_k": a_along_k, "b_along_k": b_along_k}
        found = kernel_of("H200", "float32", "ieee", 3000, n, 20, **along)
        assert (found == "outer") == (n == 1001 and b_along_k and not a_along_k), along
    for k in range(9, 25):
        for items in (1, 2, 50):
            found = plan("H200", "float32", "ieee", 900, 1300, k, items=items)
            is_outer = found["kernel"] == MatmulKernel.MATMUL_OUTER
            assert is_outer == (items == 1 or k > 16), (k, items)
            assert is_outer or found["slices"] == found["splits"] == 1, (k, items)


def test_halves_that_fill_a_card_with_tiles_of_192_rows():
    """By one round of 132 blocks in the place of two; not where it is as many, nor of TF32."""
    rounds = set()
    for layout, pairs in TILES_OF_192.items():
        along = {"a_along_k": layout[0] == "N", "b_along_k": layout[1] == "T"}
        for pair, products in pairs.items():
            for sizes in products:
                found = plan("H200", "float16", "ieee", *sizes, **along)
                assert (found["rows"], found["columns"], found["threads"]) == (192, 192, 512)
                assert found["pair"] == pair, (layout, sizes)
                rounds.add((layout, pair, found["tiles"] > 132))
    assert len(rounds) == 4 * 3 * 2
    for sizes in ((1000, 1000, 1000), (4096, 4096, 4096), (200, 9000, 2000), (2816, 1728, 900)):
        assert plan("H200", "float16", "ieee", *sizes)["rows"] < 192, sizes
    assert plan("H200", "float32", "tf32", 2056, 2056, 720)["rows"] == 128
    assert plan("H200", "float32", "fp16", 2056, 2056, 720)["rows"] == 192


def test_long_blocks_are_read_once():
    """By two blocks a multiprocessor, or fewer of at least 512 terms; short ones by tiles."""
    for sizes, terms, rows in (
        ((65, 34, 191921), 768, 128),  # 191921 / 264, up to a multiple of 64
        ((128, 127, 74515), 576, 128),  # 74515 / 145
        ((70, 70, 20001), 320, 64),
    ):
        found = plan("H200", "float16", "ieee", *sizes)
        assert found["kernel"] == MatmulKernel.MATMUL_TENSOR_SMALL, sizes
        assert (found["stretch_terms"], found["rows"]) == (terms, rows), (sizes, found)


def test_tf32_along_neither_is_read_as_it_lies():
    """Of a long k, where a transposed copy never pays, though it is reckoned to."""
    for sizes, a_along_k, kernel in (
        ((102, 67, 147096), False, "tensor_tf32"),
        ((102, 67, 147096), True, "tensor"),
        ((201, 204, 147096), False, "tensor"),
    ):
        found = kernel_of("H200", "float32", "tf32", *sizes, a_along_k=a_along_k)
        assert found == kernel, (sizes, a_along_k)


def test_tf32_of_many_elements_is_for_tensor_cores():
    """Of 9 rows or more, from 7e6 elements of the longer operand on, where there are such cores."""
    for rows, k, precision, card, is_thin in (
        (8, 7000, "tf32", "H200", True),
        (9, 6996, "tf32", "H200", True),
        (9, 7000, "tf32", "H200", False),
        (9, 7000, "tf32", "RTX 4090", False),
        (9, 7000, "tf32", "Turing", True),
        (9, 7000, "float32", "H200", True),
        (9, 7000, "ieee", "H200", True),
    ):
        for sizes in ((rows, 1000, k), (1000, rows, k)):
            found = kernel_of(card, "float32", precision, *sizes)
            among = ("thin",) if is_thin else ("tensor", "tensor_tf32")
            assert found in among, (sizes, precision, card, found)
    for card, kernel in (("H200", "tensor"), ("RTX 4090", "tensor_sm80"), ("Turing", "thin")):
        assert kernel_of(card, "float32", "tf32", 9, 110000, 64) == kernel, card
        assert kernel_of(card, "float32", "tf32", 9, 70001, 101) == "thin", "a short odd sum"


def test_small_tiles_are_split_as_long_as_there_is_room():
    """For four blocks a multiprocessor, and of larger tiles three; and of 128 terms at least."""
    room = {9: {1: 8, 60: 8, 61: 6, 68: 6, 69: 5, 88: 5, 89: 4, 120: 4, 121: 3, 156: 3, 157: 2}}
    room[25] = room[50] = {1: 8, 45: 8, 46: 6, 51: 6, 52: 5, 66: 5, 67: 4, 90: 4, 91: 3, 117: 3}
    for side, numbers in room.items():
        for tiles, splits in numbers.items():
            found = plan("H200", "float16", "ieee", side, 64 * tiles, 1024, kernel="tensor_small")
            assert (found["tiles"], found["splits"]) == (tiles, splits), (side, tiles)
    for k, splits in ((511, 1), (512, 4), (640, 5), (895, 6), (896, 7), (1023, 7), (1024, 8)):
        found = plan("H200", "bfloat16", "ieee", 70, 16, k, kernel="tensor_small")
        assert found["splits"] == splits, k
        assert plan("RTX 4090", "bfloat16", "ieee", 70, 16, k, kernel="tensor_small")["splits"] == 1


def test_narrow_float64_products_are_split_sooner():
    """Wide ones are items of batches, which lose by it."""
    splits = [
        plan("H200", "float64", "ieee", *sizes, kernel="dmma")["splits"]
        for sizes in ((200, 1000, 500), (201, 1000, 500), (150, 500, 2000), (150, 499, 2000))
    ]
    assert splits == [4, 1, 8, 4], splits


def test_clusters_fill_fewer_multiprocessors():
    """So more of their blocks have to share one, and small float64 tiles have fewer stages."""
    thin = plan("H200", "float16", "ieee", 3, 4158, 5376)
    assert (thin["cluster"], thin["blocks"]) == (6, 390) and 4 * thin["shared_bytes"] < 233472
    few, many = (
        plan("H200", "float64", "ieee", 32, n, 960, kernel="dmma")["shared_bytes"]
        for n in (6000, 60000)
    )
    stage = (32 * 20 + 16 * 36) * 8
    assert few == 7 * stage and 3 * stage <= many < 5 * stage, (few, many)


def test_large_workspaces_are_used_again():
    one = plan("H200", "float32", "float32", 2048, 2048, 2048)
    many = plan("H200", "float32", "float32", 2048, 2048, 2048, items=1000)
    assert one["workspace"] < many["workspace"] <= 2**28
    assert 1 < many["items"] < 1000


def test_operands_are_copied_where_they_have_to_be():
    assert plan("H200", "float16", "float32", 512, 512, 512)["a_copied"] == 0
    padded = plan("H200", "float16", "float32", 512, 512, 512, pad=3)
    assert padded["a_copied"] == padded["b_copied"] == 1 and padded["a_bytes"] >= 2 * 512 * 512
    turned = plan("H200", "float32", "tf32", 512, 512, 512, a_along_k=False)
    assert turned["a_copied"] == 2 and turned["b_copied"] == 0
    split = plan("H200", "float32", "float32", 1024, 1024, 1024)
    assert split["a_copied"] == split["b_copied"] == 3 and split["a_bytes"] == 3 * 2 * 1024 * 1024


@pytest.mark.parametrize("kernel, dtype, precision", CASES)
def test_every_kernel_can_be_forced_on_an_h200(kernel, dtype, precision):
    sizes = (1, 20, 20) if kernel in ("gemv", "thin") else (20, 20, 16)
    precision = precision or "float32"
    assert kernel_of("H200", dtype, precision, *sizes, kernel=kernel) == kernel
    by_cuda_cores = kernel in ("tiled", "gemv", "thin", "tiny", "outer")
    assert (plan("Turing", dtype, precision, *sizes, kernel=kernel) is not None) is by_cuda_cores


def test_names_of_kernels_agree():
    """The header's, the README's, the table's and those that tests force."""
    names = {code.name.removeprefix("MATMUL_").lower() for code in MatmulKernel}
    chosen = {kernel for *_, kernel, _ in report.rules()}
    assert chosen == names - {"auto"} == {case[0] for case in CASES}
    text = README.read_text(encoding="utf-8")
    table = text.split("For tests, `PYVECGPU_MATMUL=<name>`")[1].split("\n## ")[0]
    listed = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(listed) == sorted(names)


def test_readme_has_the_table_of_the_library():
    text = README.read_text(encoding="utf-8")
    block = text.split(report.CHOICE_BEGIN)[1].split(report.CHOICE_END)[0]
    assert block.strip() == report.render_choice(report.rules())


@pytest.mark.devices("cuda", "sim")
def test_the_card_is_described(device):
    place = vg.Device(device)
    card = dict(zip(Card, model.card_of(place), strict=False))
    assert card[Card.CARD_MULTIPROCESSORS] == place.limits.multiprocessor_count
    assert (card[Card.CARD_ARCHITECTURE] < 80) is (device == "sim")
    assert len(card) == Card.CARD_COUNT


# Launches -----------------------------------------------------------------------------------------

# (kernel, dtype, the shape of a, that of b): batches over one b that are one tall product, others.
LAUNCHED = [
    ("tiled", "float32", (40, 5, 9), (9, 70)),
    ("tiled", "float64", (300, 1, 9), (9, 33)),
    ("tiled", "int32", (3, 200, 40), (40, 300)),
    ("tiled", "float32", (6, 130, 20), (6, 20, 140)),
    ("tiled", "float16", (1, 130, 20), (20, 260)),
    ("gemv", "float32", (1, 1, 4096), (4096, 300)),
    ("gemv", "float64", (1, 500, 40), (40, 1)),
    ("gemv", "float16", (7, 50, 3000), (7, 3000, 1)),
    ("tiny", "float32", (1000, 4, 5), (1000, 5, 6)),
    ("tiny", "bfloat16", (77, 32, 32), (77, 32, 32)),
]


@pytest.mark.devices("sim")
@pytest.mark.parametrize(("kernel", "dtype", "left", "right"), LAUNCHED)
@pytest.mark.parametrize("layout", ["rows", "columns", "every second"])
def test_as_many_blocks_as_are_planned(device, simulator, kernel, dtype, left, right, layout):
    if dtype == "bfloat16" and BFLOAT16 is None:
        pytest.skip("no ml_dtypes")
    a, b = (vg.ones(shape, dtype=dtype, device=device) for shape in (left, right))
    if layout == "columns":  # of each item of a
        a = vg.matrix_transpose(vg.matrix_transpose(a).copy())
    if layout == "every second":
        a = vg.ones((2 * left[0], *left[1:]), dtype=dtype, device=device)[::2]
    (items, m, k), n = left, right[-1]
    card = (ctypes.c_int64 * Card.CARD_COUNT)()
    assert simulator.pvg_plan_card(0, card) == 0
    steps = [step // a.dtype.itemsize for step in a.strides]
    product = model.product_of(
        *(m, n, k),
        dtype=dtype,
        precision="ieee",
        kernel=MatmulKernel[f"MATMUL_{kernel.upper()}"],
        items=items,
        a_along_k=steps[2] == 1 or k == 1,
        a_stride=steps[1] if steps[2] == 1 else steps[2],
        b_stride=n,
        c_stride=n,
        a_item=steps[0],
        b_item=k * n if len(right) == 3 else 0,
        c_item=m * n,
    )
    planned = model.numbers(Plan, {})
    assert simulator.pvg_plan_product(card, product, planned) == 0
    with forced(device, kernel):
        before = [simulator.pvg_sim_count(name) for name in (b"launch", b"blocks")]
        vg.matmul(a, b, precision="ieee" if dtype == "float32" else None)
        after = [simulator.pvg_sim_count(name) for name in (b"launch", b"blocks")]
    launches, blocks = (one - other for one, other in zip(after, before, strict=True))
    beside = (planned[Plan.PLAN_SPLITS] > 1) + sum(
        planned[Plan[f"PLAN_{x}_COPIED"]] > 0 for x in "AB"
    )
    assert launches == 1 + beside, (beside, blocks, planned[:])
    assert blocks == planned[Plan.PLAN_BLOCKS] or (beside and blocks > planned[Plan.PLAN_BLOCKS])
