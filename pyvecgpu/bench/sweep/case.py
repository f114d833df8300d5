"""What a case of the sweep is, and the random numbers it is drawn with.

Operands are described, not made: views of one large array a dtype, of which each library has its
own with equal values; or arrays made for a case, as indices and masks are, equal as well.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...dtypes import CODES, is_integer
from ..timing import BFLOAT16, itemsize

FLOATS = ("float32", "float16", BFLOAT16, "float64")
NUMBERS = (*FLOATS, "int8", "int16", "int32", "int64", "uint8")  # those that torch computes in
DTYPES = (*NUMBERS, "bool", *(str(x) for x in CODES if is_integer(x) and str(x) not in NUMBERS))
# The largest error of a number rounded once: relative, and where a dtype has no more digits.
ROUNDOFF = {"float16": 2.0**-11, BFLOAT16: 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
SMALLEST = {"float16": 2.0**-25, BFLOAT16: 2.0**-134, "float32": 2.0**-150, "float64": 2.0**-1074}
LARGEST = {"float16": 65504.0, BFLOAT16: (2 - 2.0**-7) * 2.0**127}
LARGEST |= {name: float(np.finfo(name).max) for name in ("float32", "float64")}


@dataclass(frozen=True)
class Made:
    """What an array that is made for a case holds, beside the operands of the large arrays.

    kind: "index", integers from 0 below `bound`; "distinct", the same, none twice; "mask", bools,
    true with the probability `bound`; "sorted", the large array's values in ascending order.
    """

    kind: str
    bound: float = 0


@dataclass
class Operand:
    """A view of the array of a dtype: from element `start` on, in a shape, permuted, sliced.

    made: of an array of these values instead. own: of a copy, which the call may write to. on_host:
    a NumPy array, for torch a tensor of the host, in ordinary memory.
    """

    dtype: str
    shape: tuple
    start: int = 0
    axes: tuple | None = None
    key: tuple | None = None
    made: Made | None = None
    own: bool = False
    on_host: bool = False

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

    def ahead(self):
        """Return the key without steps backwards: they walk the same elements ahead."""
        return tuple(slice(None) if one.step == -1 else one for one in self.key or ()) or None

    def nbytes(self):
        return math.prod(self.view_shape()) * itemsize(self.dtype)


@dataclass
class Case:
    """One thing to compute.

    group: the name of its class; text: what distinguishes it there. call: the function
    (pyvecgpu, *arrays) that is timed; peer: the same of (torch, *tensors). expected: from NumPy
    arrays, bfloat16 as float32, the values and the largest error allowed, both a number or an array
    that broadcasts; of several results tuples of them. bytes: that have to move, each operand read
    and the result written once; of a view, as if it were read. operations: of floating point,
    beside which `rate` names the kind of product that sets the pace. verify: of results that are
    random, in place of `expected`, what is wrong with one, in words.
    """

    group: str
    text: str
    operands: list
    call: Callable
    peer: Callable
    expected: Callable | None
    bytes: int
    operations: int = 0
    rate: str = ""
    verify: Callable | None = None


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

    def case(self, classes):
        """Return a case of {class: how often}; one that needs more than there is, is drawn anew."""
        while True:
            case = self.choices(list(classes), classes.values())[0](self)
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
    return ROUNDOFF[dtype] * np.abs(values) + SMALLEST[dtype]


def wide(values):
    """Return floats as float64, others as they are."""
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def expected_rounded(values, dtype, times=1):
    """Return values, and what they may err by if they are rounded to the dtype, so many times.

    Values of float64 beyond what the dtype holds are infinite in it.
    """
    if dtype not in ROUNDOFF:
        return values, 0.0
    values = np.where(np.abs(values) > LARGEST[dtype], np.copysign(np.inf, values), values)
    return values, times * rounding(values, dtype)
