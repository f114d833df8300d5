"""Matrix products: of all formats, sizes and transpositions, one or many at a time."""

import math

import numpy as np

from ...matmul import error_allowed
from ...timing import BFLOAT16
from ..case import Case, Operand, moved, rounding, wide

FORMATS = ("float32", "float32", "float32", BFLOAT16, "float16", "float64", "tf32")
THIN = (500, 9000)  # the sides that a thin product has long
PRODUCTS = {
    "square": lambda draw: (draw.size(100, 3000),) * 3,
    "m<=16": lambda draw: (draw.randint(2, 16), draw.size(*THIN), draw.size(*THIN)),
    "m17-64": lambda draw: (draw.randint(17, 64), draw.size(*THIN), draw.size(*THIN)),
    "m65-200": lambda draw: (draw.randint(65, 200), draw.size(*THIN), draw.size(*THIN)),
    "n<=16": lambda draw: (draw.size(*THIN), draw.randint(2, 16), draw.size(*THIN)),
    "n17-64": lambda draw: (draw.size(*THIN), draw.randint(17, 64), draw.size(*THIN)),
    "k<=64": lambda draw: (draw.size(*THIN), draw.size(*THIN), draw.randint(2, 64)),
    "k huge": lambda draw: (draw.randint(8, 200), draw.randint(8, 200), draw.size(20000, 200000)),
    "large": lambda draw: tuple(draw.size(1000, 5000) for _ in range(3)),
    "matrix vector": lambda draw: (1, draw.size(*THIN), draw.size(*THIN)),
}
BATCHES = ((2, 16), (17, 32), (33, 64), (65, 128), (129, 300), (301, 1000))


def product(draw):
    """Two matrices, each perhaps transposed, half of them with sides that 8 divides."""
    rate, kind = draw.choice(FORMATS), draw.choice(list(PRODUCTS))
    sides = PRODUCTS[kind](draw)
    if draw.random() < 0.5:
        sides = [multiple(side) if side > 16 else side for side in sides]
    return products(draw, f"product {rate} {kind}", rate, (), sides, 0.5)


def batch(draw):
    """As many products of one size as keep a card busy."""
    rate = draw.choice(("float32", "float32", BFLOAT16, "float16", "float64"))
    low, high = draw.choice(BATCHES)
    sides = [max(2, round(draw.randint(low, high) ** draw.shrink)) for _ in range(3)]
    if draw.random() < 0.4:
        sides = [multiple(sides[0])] * 3
    m, n, k = sides
    most = draw.room[rate] // (4 * k * max(m, n)) if rate in draw.room else 0
    items = max(2, min(60000, draw.size(10**7, 2 * 10**9) // (m * n * k), most))
    return products(draw, f"batch {rate} {low}-{high}", rate, (items,), sides, 0.4)


def multiple(side):
    return 8 * math.ceil(side / 8)


def matmul(vg, a, b):
    return vg.matmul(a, b)


def matmul_in_tf32(vg, a, b):
    return vg.matmul(a, b, precision="tf32")


# Of two matrices, and of two batches.
PEERS = (lambda torch, a, b: torch.mm(a, b), lambda torch, a, b: torch.bmm(a, b))


def products(draw, group, rate, items, sides, transposed):
    """Return the case of a product, or of a batch of `items`, each operand perhaps transposed."""
    m, n, k = sides
    dtype = "float32" if rate == "tf32" else rate
    swap = (*range(len(items)), len(items) + 1, len(items))
    letters, operands = "", []
    for rows, columns in ((m, k), (k, n)):
        start = operands[0].end() if operands else 0
        if draw.random() < transposed:
            operands.append(Operand(dtype, (*items, columns, rows), start, swap))
            letters += "T"
        else:
            operands.append(Operand(dtype, (*items, rows, columns), start))
            letters += "N"
    times = f"{items[0]} of " if items else ""
    return Case(
        group=group,
        text=f"{times}{m}x{n}x{k} {letters}",
        operands=operands,
        call=matmul_in_tf32 if rate == "tf32" else matmul,
        peer=PEERS[len(items)],
        expected=lambda a, b: expected_product(a, b, rate),
        bytes=moved(operands, (*items, m, n), dtype),
        operations=2 * math.prod(items) * m * n * k,
        rate=rate,
    )


def expected_product(a, b, rate):
    """Return products of normal numbers, and what the elements may err by.

    Errors are spread over the elements like normal numbers, and larger where sums are: 16 times the
    root mean square allowed is room for millions of them.
    """
    a, b = wide(a), wide(b)
    values, k = a @ b, a.shape[-1]
    norms = np.linalg.norm(a, axis=-1)[..., :, None] * np.linalg.norm(b, axis=-2)[..., None, :]
    error = 16 * error_allowed(rate, k) / math.sqrt(k) * norms
    return values, error + rounding(values, rate)


CLASSES = {product: 6, batch: 3}
