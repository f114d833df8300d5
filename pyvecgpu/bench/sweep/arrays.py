"""The operands of the sweep: views of one large array a dtype, of equal values everywhere."""

import math
from dataclasses import dataclass, replace

import numpy as np

import pyvecgpu as vg

from ..timing import BFLOAT16, itemsize, rounded
from .case import DTYPES

CHECKED = 1 / 8  # of the cases
MADE = 8  # arrays of cases that are kept, for a case has several readers
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

    Floats are normal, bfloat16 in float32; integers are below 100. Arrays that are made for a case
    are kept until others are.
    """

    def __init__(self, seed, room):
        self.seed, self.room = seed, room
        self.blocks, self.latest = {}, {}

    def of_operand(self, operand):
        """Return the elements that an operand is a view of, in a row."""
        length = math.prod(operand.shape)
        if operand.made is None:
            return self.of(operand.dtype, operand.start, length)
        known = (operand.dtype, operand.start, length, operand.made)
        if known not in self.latest:
            if len(self.latest) >= MADE:
                self.latest.clear()
            self.latest[known] = self.make(*known)
        return self.latest[known]

    def make(self, dtype, start, length, made):
        """Return the values of an array that is made for a case."""
        random = np.random.default_rng([self.seed, start, length])
        if made.kind == "index":
            return random.integers(0, made.bound, length, dtype)
        if made.kind == "distinct":
            return random.permutation(made.bound)[:length].astype(dtype)
        if made.kind == "mask":
            return random.random(length, np.float32) < made.bound
        return np.sort(self.of(dtype, start, length))

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
        module = self.library.module
        is_torch = self.library.writes_as == "torch"
        if is_torch:
            operand = replace(operand, key=operand.ahead())
        if operand.on_host:
            host = on_host(self.values, operand)
            return module.from_numpy(host) if is_torch else host
        flat = self.flat(operand)
        return view(module.reshape, module.permute if is_torch else module.transpose, flat, operand)

    def flat(self, operand):
        """Return the elements that an operand is a view of: in a row, on the device."""
        if operand.made is not None:
            host = self.values.of_operand(operand)
            return self.library.put(host, BFLOAT16 if operand.dtype == BFLOAT16 else None)
        flat = self.array(operand.dtype)[operand.start : operand.end()]
        if not operand.own:
            return flat
        return flat.clone() if self.library.writes_as == "torch" else flat.copy()


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
        values.of_operand(operand),
        operand,
    )
