"""The sweep's products and layers: every kernel of cuda/kernels/matmul, see sweep.py."""

import math

import helpers
import numpy as np
from forced import CASES, card_for, forced
from helpers import FLOATS, assert_close, assert_same, put
from helpers import fixed_integers as data
from references import FLOAT_FUNCTIONS, product_reference, unary_reference

import pyvecgpu as vg

# (m, k, n, batch): each size of tile, whole and partial. The batch makes up for the small matrices.
PRODUCTS = {
    "one tile": (32, 32, 32, 1),
    "partial tiles": (33, 29, 31, 1),
    "vectors": (1, 61, 1, 1),
    "a vector in splits": (1, 300, 33, 1),
    "nothing to add": (5, 0, 7, 1),
    "medium tiles": (33, 5, 35, 120),
    "large tiles": (65, 3, 67, 120),
}


def operands_of_product(device, dtype, m, k, n, batch):
    """One operand is a batch of one, repeated; both have few elements."""
    a, b = data(dtype, (m, k)), data(dtype, (k, n), 1)
    if batch == 1:
        return a, b, put(device, a), put(device, b)
    repeated = vg.broadcast_to(put(device, b), (batch, k, n))
    return (
        np.broadcast_to(a, (batch, m, k)),
        np.broadcast_to(b, (batch, k, n)),
        vg.broadcast_to(put(device, a), (batch, m, k)),
        repeated,
    )


def products(dtype):
    for name, sizes in PRODUCTS.items():

        def check(device, sizes=sizes):
            a, b, x, y = operands_of_product(device, dtype, *sizes)
            assert_same(x @ y, product_reference(a, b))
            if sizes[3] == 1:
                columns = [put(device, np.ascontiguousarray(one.T)).T for one in (a, b)]
                for left, right in ((columns[0], y), (x, columns[1]), columns):
                    assert_same(left @ right, product_reference(a, b))

        yield f"product, {name}", check

    def check_rows(device):
        for rows, k in ((70, 1), (9, 40), (3, 300), (2, 1_500)):
            a, b = data(dtype, (rows, k)), data(dtype, (rows, k), 1)
            expected = product_reference(a[:, None], b[..., None])[:, 0, 0]
            assert_same(vg.vecdot(put(device, a), put(device, b)), expected)

    yield "rows with rows", check_rows


# (m, n, k, items) of products by each kernel in turn: partial tiles, and enough whole ones of each
# width to keep a card busy, which large kernels need to be chosen.
FORCED = {
    "gemv": [(1, 70, 300, 1), (70, 1, 300, 1), (1, 130, 5_000, 1)],
    "tiny": [(31, 30, 29, 3), (13, 15, 16, 3), (13, 28, 9, 5)],
    "tensor_small": [(70, 90, 290, 1), (70, 92, 36, 3), (30, 70, 72, 1), (70, 29, 17, 3)],
    "thin": [(6, 70, 300, 1), (70, 13, 700, 3), (13, 70, 90, 1), (70, 6, 300, 1)],
    "bf16x6": [(70, 90, 50, 1), (70, 90, 50, 3), (1_536, 1_536, 64, 1), (2_048, 1_024, 64, 1)],
}
FORCED["tensor_tf32"] = [(70, 90, 290, 1), (70, 92, 36, 3), (130, 70, 100, 1), (9, 150, 292, 2)]
FORCED["tensor_small"] += [(13, 90, 1_100, 1), (90, 16, 600, 2), (40, 48, 40, 3), (66, 34, 9, 144)]
FORCED["bf16x6"] += [(3_072, 3_072, 128, 1)]
FORCED["fp16x3"] = FORCED["bf16x6"]
FORCED["outer"] = [(70, 140, 16, 1), (130, 61, 15, 3), (65, 300, 8, 1), (200, 130, 3, 2)]
OUTER_OF_FLOAT32 = [(70, 140, 20, 1), (130, 61, 23, 3)]
OTHERS = [(70, 90, 290, 1), (70, 92, 292, 1), (128, 64, 16, 132), (128, 128, 16, 132)]
OTHERS += [(256, 256, 16, 132), (2_048, 2_048, 16, 1), (128, 63, 16, 132), (256, 255, 16, 132)]
OTHERS += [(256, 256, 15, 132), (384, 768, 768, 1), (450, 701, 333, 1)]
OTHERS += [(70, 90, 290, 3), (70, 92, 292, 3), (72, 92, 36, 1)]
# The least batches for which the largest tiles of a kernel are chosen.
LARGE_TILES = {
    "ffma_128x128": [
        (128, 128, 16, 132),
        (40, 33, 37, 132),
        (127, 121, 17, 132),
        (83, 117, 4, 270),
        (192, 192, 16, 1),
    ],
    "ffma_64x128": [(64, 128, 16, 132), (64, 127, 16, 132), (576, 960, 16, 1), (575, 959, 16, 1)],
    "ffma_64x64": [(640, 640, 16, 1), (639, 641, 16, 1)],
    "ffma_64x32": [(64, 128, 16, 264), (64, 64, 72, 264)],
    "tensor_tf32": [(90, 92, 40, 132), (90, 92, 40, 264), (60, 60, 40, 132), (30, 61, 39, 132)],
    "tensor": [
        *((128, 192, 16, 132), (192, 128, 16, 132), (192, 130, 16, 132)),
        *((3_080, 80, 16, 1), (40, 224, 1_360, 1), (280, 40, 1_152, 1)),  # narrow ones, in pairs
    ],
    # Whole and of rows that begin anywhere, of every tile; a batch whose splits a block takes in
    # turn, and one that has none.
    "dmma": [
        *((1_408, 1_408, 128, 1), (1_407, 1_407, 127, 1), (1_056, 1_152, 128, 1)),
        *((1_055, 1_151, 127, 1), (1_056, 1_536, 128, 1), (1_055, 1_535, 127, 1)),
        *((64, 128, 512, 64), (64, 64, 64, 390)),
    ],
}
FORCED["ffma_64x128"] = [*OTHERS, (20, 90, 290, 1), (20, 92, 292, 1)]
FORCED["ffma_64x64"] = [*FORCED["ffma_64x128"], (70, 70, 16, 24), (72, 72, 16, 24)]
# Terms that are multiplied on the simulated card, which takes seconds for so many: by kernels that
# the first of its cards has, whose widest tiles the others have launched before, and by the others.
MOST_ON_SIM = {True: 40_000_000, False: 6_000_000}


def forced_products(dtype):
    for kernel, name, precision in CASES:
        if name != str(dtype):
            continue
        more = OUTER_OF_FLOAT32 if (kernel, dtype) == ("outer", "float32") else []
        for m, n, k, items in FORCED.get(kernel, OTHERS) + LARGE_TILES.get(kernel, []) + more:

            def check(device, kernel=kernel, precision=precision, sizes=(m, n, k), items=items):
                card = card_for(device, kernel)
                is_large = (*sizes, items) in LARGE_TILES.get(kernel, [])
                most = math.inf if is_large or device != "sim" else MOST_ON_SIM[card == device]
                if math.prod((*sizes, items)) > most:
                    return
                if card is not None:
                    with forced(card, kernel):
                        check_forced(card, dtype, precision, sizes, items)

            halved = ", k in halves" if k >= 256 and name == "float32" else ""
            yield f"{kernel} product {(m, n, k, items)}{halved}", check


def stretches(dtype):
    if dtype not in FLOATS:
        return

    def check(device):
        card = card_for(device, "ffma_tma") or device
        a, b = data(dtype, (3, 16_400)), data(dtype, (16_400, 5), 1)
        assert_same(put(card, a) @ put(card, b), product_reference(a, b))

    yield "product in stretches", check
    if str(dtype) != "float32":
        return

    def check_turned(device):
        card = card_for(device, "ffma_tma") or device
        a, b = data(dtype, (1_536, 17)), data(dtype, (600, 1_536), 1)
        assert_same(put(card, a).T @ put(card, b).T, product_reference(a.T, b.T))

    yield "product in few stretches, both sides turned", check_turned


def check_forced(device, dtype, precision, sizes, items):
    """Both ways in which each operand can lie; of small ones also beside every alignment."""
    m, n, k = sizes
    a, b = (data(dtype, shape, seed) for seed, shape in enumerate(((m, k), (k, n))))
    expected = product_reference(a, b)
    for place in (put, helpers.shifted(1))[: 1 if m * n > 70_000 else 2]:
        lefts = [place(device, a), place(device, np.ascontiguousarray(a.T)).T]
        rights = [place(device, b), place(device, np.ascontiguousarray(b.T)).T]
        for left in lefts:
            for right in rights:
                batch = vg.broadcast_to(left, (items, m, k)) if items > 1 else left
                result = vg.matmul(batch, right, precision=precision)
                for item in (result[0], result[-1]) if items > 1 else (result,):
                    assert_same(item, expected)


# (m, k, n): 120 tiles across make a row of large ones.
LAYERS = (
    ("tiny", 9, 20, 31),
    ("one tile", 9, 40, 31),
    ("medium tiles", 33, 4, 7_650),
    ("large tiles", 65, 3, 15_300),
)


def layers(dtype):
    if dtype not in FLOATS:
        return
    for name, m, k, n in LAYERS:
        for activation in (None, "sigmoid", "tanh", "relu", "gelu", "silu"):
            if activation in ("gelu", "silu") and name != "tiny":
                continue  # the code is a number at run time: the kernels are the same

            def check(device, m=m, k=k, n=n, activation=activation):
                x, weight, bias = data(dtype, (m, k)), data(dtype, (n, k), 1), data(dtype, (n,), 2)
                before = helpers.widened(x) @ helpers.widened(weight.T) + helpers.widened(bias)
                operands = [put(device, one) for one in (x, weight, bias)]
                results = [vg.dense(*operands, activation)]
                if device != "cpu":  # the portable kernel, where a card has a better one
                    with forced(device, "tiled"):
                        results.append(vg.dense(*operands, activation))
                for result in results:
                    if activation in FLOAT_FUNCTIONS:
                        expected = unary_reference(activation, before)
                        assert_close(result, expected, activation, device)
                    else:
                        expected = np.maximum(before, 0) if activation else before
                        assert_same(result, helpers.rounded(expected, dtype))

            yield f"dense with {activation}, {name}", check


# More rows than a warp reads at a time, than a block adds up alone; more columns than it has.
GRADIENTS = ((65, 3, 20), (257, 3, 20), (9, 2, 129))


def gradients(dtype):
    if dtype not in FLOATS:
        return
    for m, k, n in GRADIENTS:
        for activation in (None, "relu"):

            def check(device, m=m, k=k, n=n, activation=activation):
                x, weight = data(dtype, (m, k)), data(dtype, (n, k), 1)
                gradient, before = data(dtype, (m, n), 2), data(dtype, (m, n), 3)
                operands = [put(device, one) for one in (gradient, x, weight, before)]
                results = vg.nn.functional.dense_backward(*operands, activation)
                gradient, x, weight = (helpers.widened(one) for one in (gradient, x, weight))
                dz = np.where(before > 0, gradient, 0) if activation else gradient
                expected = dz @ weight, dz.T @ x, dz.sum(axis=0)
                for result, exact in zip(results, expected, strict=True):
                    assert_same(result, helpers.rounded(exact + 0.0, dtype))

            yield f"gradients with {activation}, {(m, k, n)}", check
