"""The random cases of `bench sweep`: what users do, in sizes and layouts that nobody chose.

A class is a function that draws a Case from a Draw, which is a random.Random that knows how large
things may be; a line in CLASSES says how often. A new one is measured, checked and reported without
another edit. Operands are described, not made: views of one large array a dtype, of which each
library has its own with equal values. In the names of functions here `m` is the module of whoever
computes: pyvecgpu or torch; what is expected comes from NumPy.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .matmul import error_allowed
from .timing import BFLOAT16, itemsize

FLOATS = ("float32", "float16", BFLOAT16, "float64")
NUMBERS = (*FLOATS, "int32", "int64", "uint8")
DTYPES = (*NUMBERS, "bool")
# The largest error of a number rounded once: relative, and where float16 has no more digits.
ROUNDOFF = {"float16": 2.0**-11, BFLOAT16: 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
SMALLEST = {"float16": 2.0**-25}
# What a sum may err by beyond its rounding, times the sum of the magnitudes.
SUM_REST = {"float16": 2.0**-20, BFLOAT16: 2.0**-20, "float32": 2.0**-36, "float64": 2.0**-46}


@dataclass
class Operand:
    """A view of the array of a dtype: from element `start` on, in a shape, permuted, sliced."""

    dtype: str
    shape: tuple
    start: int = 0
    axes: tuple | None = None
    key: tuple | None = None

    def end(self):
        return self.start + math.prod(self.shape)

    def view_shape(self):
        shape = self.shape if self.axes is None else [self.shape[axis] for axis in self.axes]
        return tuple(
            len(range(length)[one]) for length, one in zip(shape, self.slices(), strict=True)
        )

    def slices(self):
        """Return a slice for each axis."""
        given = self.key or ()
        return (*given, *[slice(None)] * (len(self.shape) - len(given)))

    def nbytes(self):
        return math.prod(self.view_shape()) * itemsize(self.dtype)


@dataclass
class Case:
    """One thing to compute.

    group: the name of its class; text: what distinguishes it there. call: the function
    (pyvecgpu, *arrays) that is timed; peer: the same of (torch, *tensors). expected: from NumPy
    arrays, bfloat16 as float32, the values and the largest error allowed, both a number or an array
    that broadcasts. bytes: that have to move, each operand read and the result written once.
    operations: of floating point, beside which `rate` names the kind of product that sets the pace.
    """

    group: str
    text: str
    operands: list
    call: Callable
    peer: Callable
    expected: Callable
    bytes: int
    operations: int = 0
    rate: str = ""


class Draw(random.Random):
    """The random numbers of a case, by the seed of the sweep and the case's number.

    room: {dtype: elements there are to take operands from}. shrink: the power that sizes are raised
    to, below 1 where they shall be small.
    """

    @classmethod
    def of(cls, seed, number, room, shrink=1.0):
        draw = cls(f"{seed}:{number}")
        draw.room, draw.shrink = room, shrink
        return draw

    def size(self, low, high):
        """Return a size from low to high, as likely to double as to halve."""
        size = math.exp(self.uniform(math.log(low), math.log(high)))
        return max(1, round(size**self.shrink))

    def split(self, size, low, high):
        """Return two sizes whose product is about `size`, the first from low to high."""
        first = self.size(low, high)
        return first, max(1, size // first)

    def case(self):
        """Return the case; one that needs more than there is, is drawn anew."""
        while True:
            case = self.choices(list(CLASSES), CLASSES.values())[0](self)
            if all(operand.end() <= self.room.get(operand.dtype, 0) for operand in case.operands):
                return case


def moved(operands, shape, dtype):
    """Return the bytes of different operands and of a result."""
    different = [one for at, one in enumerate(operands) if one not in operands[:at]]
    size = sum(operand.nbytes() for operand in different)
    return size + math.prod(shape) * itemsize(dtype)


def rounding(values, dtype):
    """Return the largest error of rounding float64 values to a dtype; 0 if it is not a float's."""
    if dtype not in ROUNDOFF:
        return 0.0
    return ROUNDOFF[dtype] * np.abs(values) + SMALLEST.get(dtype, 0.0)


def wide(values):
    """Return floats as float64, others as they are."""
    return values.astype(np.float64) if values.dtype.kind == "f" else values


# Products -----------------------------------------------------------------------------------------

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
    if rate == "tf32":
        call = lambda vg, a, b: vg.matmul(a, b, precision="tf32")  # noqa: E731
    else:
        call = lambda vg, a, b: vg.matmul(a, b)  # noqa: E731
    times = f"{items[0]} of " if items else ""
    return Case(
        group=group,
        text=f"{times}{m}x{n}x{k} {letters}",
        operands=operands,
        call=call,
        peer=lambda torch, a, b: torch.matmul(a, b),
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


# Reductions ---------------------------------------------------------------------------------------


def shape_all(draw, size):
    return (size,), None


def shape_last(draw, size):
    return draw.split(size, 30, max(31, size // 30)), 1


def shape_first(draw, size):
    return draw.split(size, 30, max(31, size // 30)), 0


def shape_last_short(draw, size):
    short = draw.randint(2, 40)
    return (max(1, size // short), short), 1


def shape_first_short(draw, size):
    short = draw.randint(2, 40)
    return (short, max(1, size // short)), 0


def shape_middle(draw, size):
    first, last = draw.size(2, 300), draw.size(2, 300)
    return (first, max(1, size // (first * last)), last), 1


def shape_two(draw, size):
    return shape_middle(draw, size)[0], (0, 2)


REDUCED = {
    "all": shape_all,
    "last": shape_last,
    "first": shape_first,
    "middle": shape_middle,
    "last short": shape_last_short,
    "first short": shape_first_short,
    "two": shape_two,
}
PEER_REDUCTIONS = {
    "sum": lambda torch, x, axis: x.sum(dim=axis),
    "mean": lambda torch, x, axis: x.mean(dim=axis),
    "max": lambda torch, x, axis: x.max() if axis is None else x.amax(dim=axis),
    "argmax": lambda torch, x, axis: x.argmax(dim=axis),
}


def reduction(draw):
    """A sum, mean or maximum over some axes, now and then of elements that are not aligned."""
    dtype = draw.choice(("float32", "float32", *NUMBERS))
    name = draw.choice(("sum", "sum", "max", "argmax", "mean"))
    if name == "mean" and "int" in dtype:
        name = "sum"
    kind = draw.choice(list(REDUCED))
    shape, axis = REDUCED[kind](draw, draw.size(1000, 6 * 10**7))
    if name == "argmax" and kind == "two":
        axis = 2
    operands = [Operand(dtype, shape, draw.choice((0, 0, 1, 3)))]
    peer = PEER_REDUCTIONS[name]
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    left = [length for at, length in enumerate(shape) if at not in axes]
    is_wide = name == "argmax" or (name == "sum" and "int" in dtype)
    return Case(
        group=f"reduce {name} {kind}",
        text=f"{dtype} {shape} axis {axis}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x, axis=axis),
        peer=lambda torch, x: peer(torch, x, axis),
        expected=lambda x: expected_reduction(name, x, axis, dtype),
        bytes=moved(operands, left, "int64" if is_wide else dtype),
    )


def expected_reduction(name, x, axis, dtype):
    """Return what NumPy reduces to in float64 or exactly, and what it may err by."""
    values = getattr(np, name)(wide(x), axis=axis)
    if name in ("max", "argmax") or dtype not in ROUNDOFF:
        return values, 0.0
    magnitude = getattr(np, name)(np.abs(wide(x)), axis=axis)
    return values, rounding(values, dtype) + SUM_REST[dtype] * magnitude


# Elementwise --------------------------------------------------------------------------------------


def layouts(draw, dtype, kind, a, b):
    """Return the operands of an addition, about a x b, in the layout of that name."""
    one = Operand(dtype, (a, b))
    strided = (slice(None, None, 2),) * 2
    inner = (slice(1, -1),) * 2
    middle = draw.randint(2, 50)
    depth = max(1, b // middle)
    root = max(2, math.isqrt(a * b))
    shift = draw.randint(1, 15)
    return {
        "same": lambda: [one, Operand(dtype, (a, b), a * b)],
        "row": lambda: [one, Operand(dtype, (b,))],
        "column": lambda: [one, Operand(dtype, (a, 1))],
        "scalar": lambda: [one],
        "transposed": lambda: [
            Operand(dtype, (root, root)),
            Operand(dtype, (root, root), root * root, (1, 0)),
        ],
        "step 2": lambda: [Operand(dtype, (2 * a, 2 * b), key=strided)] * 2,
        "middle": lambda: [Operand(dtype, (a, middle, depth)), Operand(dtype, (a, 1, depth))],
        "offset": lambda: [
            Operand(dtype, (a, b), draw.randint(1, 15) + a * b),
            Operand(dtype, (a, b), shift),
        ],
        "reversed": lambda: [
            Operand(dtype, (a, b), key=(slice(None, None, -1),)),
            Operand(dtype, (a, b), a * b),
        ],
        "inner slice": lambda: [Operand(dtype, (a + 2, b + 2), key=inner)] * 2,
        "outer sum": lambda: [Operand(dtype, (a, 1)), Operand(dtype, (b,))],
    }[kind]()


LAYOUTS = (
    *("same", "row", "column", "scalar", "transposed", "step 2"),
    *("middle", "offset", "reversed", "inner slice", "outer sum"),
)


def elementwise(draw):
    """An addition of arrays in all the layouts that views give them."""
    dtype, kind = draw.choice(("float32", "float32", *NUMBERS)), draw.choice(LAYOUTS)
    size = draw.size(100, 4 * 10**7)
    operands = layouts(draw, dtype, kind, *draw.split(size, 10, max(11, size // 10)))
    shape = np.broadcast_shapes(*(operand.view_shape() for operand in operands))
    add = (lambda m, x: x + 3) if kind == "scalar" else (lambda m, x, y: x + y)
    return Case(
        group=f"elementwise {kind}",
        text=f"{dtype} {shape}",
        operands=operands,
        call=add,
        peer=add,
        expected=lambda *hosts: expected_rounded(add(np, *map(wide, hosts)), dtype),
        bytes=moved(operands, shape, dtype),
    )


def expected_rounded(values, dtype):
    return values, rounding(values, dtype)


# Of a float64 array, and how often what rounding gives a result may be off.
UNARY = {
    "exp": (np.exp, 4),
    "log": (np.log, 4),
    "sqrt": (np.sqrt, 1),
    "tanh": (np.tanh, 4),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 8),
    "abs": (np.abs, 0),
    "negative": (np.negative, 0),
    "relu": (lambda x: np.maximum(x, 0), 0),
}


def unary(draw):
    """A function of one array, now and then not aligned."""
    dtype, name = draw.choice(("float32", *FLOATS)), draw.choice(list(UNARY))
    operands = [Operand(dtype, (draw.size(100, 6 * 10**7),), draw.choice((0, 0, 1)))]
    function, times = UNARY[name]

    def expected(x):
        values = function(wide(x))
        return values, times * rounding(values, dtype)

    return Case(
        group=f"unary {name} {dtype}",
        text=f"{operands[0].shape[0]}",
        operands=operands,
        call=lambda vg, x: getattr(vg, name)(x),
        peer=lambda torch, x: getattr(torch, name)(x),
        expected=expected,
        bytes=moved(operands, operands[0].shape, dtype),
    )


# Copies -------------------------------------------------------------------------------------------


def cast(draw):
    """A copy in another dtype."""
    old, new = draw.sample(DTYPES, 2)
    operands = [Operand(old, (draw.size(1000, 4 * 10**7),), draw.choice((0, 0, 1)))]
    return Case(
        group="cast",
        text=f"{old} to {new} {operands[0].shape[0]}",
        operands=operands,
        call=lambda vg, x: vg.astype(x, new),
        peer=lambda torch, x: x.to(getattr(torch, new)),
        expected=lambda x: expected_cast(x, new),
        bytes=moved(operands, operands[0].shape, new),
    )


def expected_cast(x, new):
    """Return what a cast gives: floats outside of an integer dtype's range are clamped to it."""
    if new in ROUNDOFF:
        return expected_rounded(x.astype(np.float64), new)
    if x.dtype.kind == "f" and new != "bool":
        limits = np.iinfo(new)
        x = np.clip(np.trunc(wide(x)), limits.min, limits.max)
    return x.astype(new), 0


def permuted(draw):
    """A copy of an array whose axes were permuted, in C order."""
    dtype = draw.choice(("float32", "float32", "float16", "float64", "uint8"))
    ndim = draw.choice((2, 3, 3, 4, 5))
    shape = [draw.size(2, 600) for _ in range(ndim)]
    while math.prod(shape) > min(5 * 10**7, draw.room[dtype]):
        shape[draw.randrange(ndim)] = draw.randint(2, 20)
    axes = list(range(ndim))
    while axes == sorted(axes):
        draw.shuffle(axes)
    operands = [Operand(dtype, tuple(shape), axes=tuple(axes))]
    return Case(
        group=f"permute {ndim}-d {dtype}",
        text=f"{tuple(shape)} {tuple(axes)}",
        operands=operands,
        call=lambda vg, x: x.copy(),
        peer=lambda torch, x: x.clone(memory_format=torch.contiguous_format),
        expected=lambda x: (x, 0),
        bytes=moved(operands, shape, dtype),
    )


def select(draw):
    """Elements of one array or another."""
    size = draw.size(1000, 3 * 10**7)
    values = [Operand("float32", (size,), start) for start in (0, size)]
    operands = [Operand("bool", (size,)), *values]
    return Case(
        group="where",
        text=f"{size}",
        operands=operands,
        call=lambda m, condition, x, y: m.where(condition, x, y),
        peer=lambda m, condition, x, y: m.where(condition, x, y),
        expected=lambda condition, x, y: (np.where(condition, x, y), 0),
        bytes=moved(operands, (size,), "float32"),
    )


# How often a class is drawn.
CLASSES = {
    product: 6,
    batch: 3,
    reduction: 6,
    elementwise: 4,
    unary: 1,
    cast: 1,
    permuted: 3,
    select: 1,
}
