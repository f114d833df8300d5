"""The operands of the sweep: views of one large array a dtype, of equal values everywhere."""

import math
from dataclasses import dataclass, replace

import numpy as np

import pyvecgpu as vg

from ..timing import BFLOAT16, itemsize, rounded
from .case import DTYPES

CHECKED = 1 / 8  # of the cases
PERIOD = 2**24 - 3  # elements after which the values of a large array repeat: a prime


@dataclass
class Size:
    """How large a sweep is. room: {dtype: elements}; shrink: see case.Draw."""

    room: dict
    shrink: float = 1.0
    rounds: int = 3
    batch_seconds: float = 3e-3
    most_calls: int = 400
    checked: float = CHECKED


def size_of(device, quick):
    """Return the Size for a device: full on a GPU, with arrays in a quarter of its memory."""
    if quick or device.type == "sim":
        return Size(dict.fromkeys(dtypes_on(device), 2**17), 0.5, 1, 0.0, 1, checked=1.0)
    if device.type == "cpu":
        return Size(dict.fromkeys(dtypes_on(device), 2**22), 0.7, checked=1.0)
    room = dict.fromkeys(dtypes_on(device), 2**27)
    room |= {dtype: 2**28 for dtype in room if itemsize(dtype) <= 2 or dtype == "float32"}
    total = 2 * sum(length * itemsize(dtype) for dtype, length in room.items())
    halves = max(0, math.ceil(math.log2(4 * total / vg.memory_info(device).total)))
    return Size({dtype: length >> halves for dtype, length in room.items()})


def dtypes_on(device):
    """Return the names of the dtypes; on the CPU bfloat16 needs a package."""
    try:
        vg.zeros(1, dtype=BFLOAT16, device=device)
    except ImportError:
        return [dtype for dtype in DTYPES if dtype != BFLOAT16]
    return list(DTYPES)


class Values:
    """The values of the large arrays, by dtype: at most PERIOD of them, again and again.

    Floats are normal, bfloat16 in float32; integers are below 100.
    """

    def __init__(self, seed, room):
        self.seed, self.room = seed, room
        self.blocks = {}

    def of(self, dtype, start, length):
        """Return so many from element `start` on, as a NumPy array."""
        if dtype not in self.blocks:
            self.blocks[dtype] = self.draw(dtype)
        block = self.blocks[dtype]
        first = start % len(block)
        if first + length <= len(block):
            return block[first : first + length]
        return np.resize(np.roll(block, -first), length)

    def draw(self, dtype):
        length = min(PERIOD, self.room[dtype])
        random = np.random.default_rng([self.seed, DTYPES.index(dtype)])
        if dtype == "bool" or "int" in dtype:
            return random.integers(0, 2 if dtype == "bool" else 100, length, dtype)
        if dtype == "float64":
            return random.standard_normal(length)
        values = random.standard_normal(length, np.float32)
        return rounded(values) if dtype == BFLOAT16 else values.astype(dtype, copy=False)


class Arrays:
    """The large arrays of a library, each made when an operand needs it."""

    def __init__(self, library, values, room):
        self.library, self.values, self.room = library, values, room
        self.arrays = {}

    def array(self, dtype):
        if dtype not in self.arrays:
            host = self.values.of(dtype, 0, self.room[dtype])
            self.arrays[dtype] = self.library.put(host, BFLOAT16 if dtype == BFLOAT16 else None)
        return self.arrays[dtype]

    def take(self, operand):
        """Return the view. torch has no negative steps: it gets what they would walk backwards."""
        module, flat = self.library.module, self.array(operand.dtype)
        flat = flat[operand.start : operand.end()]
        if self.library.writes_as == "torch":
            return view(module.reshape, module.permute, flat, replace(operand, key=operand.ahead()))
        return view(module.reshape, module.transpose, flat, operand)


def view(reshape, permute, flat, operand):
    """Return an operand from its elements, with a library's functions."""
    array = reshape(flat, operand.shape)
    if operand.axes is not None:
        array = permute(array, operand.axes)
    return array if operand.key is None else array[operand.key]


def on_host(values, operand):
    """Return an operand as a NumPy array."""
    return view(
        np.reshape,
        np.transpose,
        values.of(operand.dtype, operand.start, math.prod(operand.shape)),
        operand,
    )
