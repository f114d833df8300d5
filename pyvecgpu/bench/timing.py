"""How rows are measured: the same work by all libraries in turn, on random data, and checked.

A Row says what is computed. `measure` gives every library its own operands, in so many sets that
together they do not fit into the caches, checks the results against float64, warms up, and then
lets the libraries take turns: so many calls between two device events that a launch does not
matter, the median over the rounds. Afterwards it is checked what the timed calls, or the graphs of
them that were replayed, have left in the array that they write to, or without one a last result.
"""

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ROUNDS = 30
BATCH_SECONDS = 1e-3  # of device time between two events, but
MOST_CALLS = 100  # calls at most
MOST_SETS = 256
CHUNK = 2**24  # elements compared at a time
BFLOAT16 = "bfloat16"  # NumPy has none: float32 values that it holds exactly, until they are put


@dataclass
class Row:
    """One line of a table.

    operands: (shape, dtype) of each, the dtype one of NumPy's or BFLOAT16; out: (shape, dtype) of
    the result if all libraries are given an array to write to, else None and each call makes its
    own. calls: for the name of a library the function (module, *operands, out) that is timed.
    expected: from the operands, in float64, what comes out. work: bytes that have to move or
    operations that have to be done, in a call; unit: of work over time, "B/s" or "FLOP/s".
    error_allowed: the largest relative error, that is norm(result - expected) over the norm of
    magnitude(*operands), by default of what is expected. able: whether a device can do the work.
    """

    name: str
    work: float
    unit: str
    operands: list
    out: tuple | None
    calls: dict[str, Callable]
    expected: Callable
    error_allowed: float
    magnitude: Callable | None = None
    note: str = ""
    able: Callable = lambda device: True


@dataclass
class Result:
    """What a library took for a row: seconds of a call, the quartiles around the median."""

    seconds: float
    low: float
    high: float
    calls: int  # between two events
    error: float  # the larger of the errors before and after
    wrong: bool = False


@dataclass
class Effort:
    """How much is put into a measurement."""

    rounds: int = ROUNDS
    rest: float = 0.0  # seconds between rows, in which the card cools down
    cache_bytes: int = 0  # of the card's L2; operands rotate over three times as much
    batch_seconds: float = BATCH_SECONDS
    pause: float = 0.0  # seconds before each turn; then one batch to settle, and one that counts
    graphs: bool = False  # batches are recorded, where a library can, and replayed


def rate_text(work, seconds, unit):
    """Return work over time for people: "4.36 TB/s" or "31.5 GB/s"; unit: "B/s" or "FLOP/s"."""
    rate = work / seconds
    scale, prefix = (1e12, "T") if rate >= 1e11 else (1e9, "G")
    return f"{rate / scale:.3g} {prefix}{unit}"


class RandomPool:
    """Normal random float32 values: many different operands from one long sequence."""

    SLACK = 2**20

    def __init__(self, size, seed=0):
        random = np.random.default_rng(seed)
        self.values = random.standard_normal(size + self.SLACK, np.float32)
        self.taken = itertools.count()

    def take(self, shape, dtype):
        """Return an array that starts elsewhere in the sequence than the arrays before it."""
        start = next(self.taken) * 70_001 % self.SLACK
        values = self.values[start : start + math.prod(shape)].reshape(shape)
        return rounded(values) if dtype == BFLOAT16 else values.astype(dtype, copy=False)


def rounded(values):
    """Return finite float32 values rounded to bfloat16, to the nearest even, as float32."""
    bits = values.view(np.uint32)
    even = (bits >> 16) & 1
    return ((bits + (0x7FFF + even)) & np.uint32(0xFFFF0000)).view(np.float32)


def itemsize(dtype):
    return 2 if dtype == BFLOAT16 else np.dtype(dtype).itemsize


def pool_for(rows):
    """Return a RandomPool that is long enough for each operand of the rows."""
    return RandomPool(max(math.prod(shape) for row in rows for shape, _ in row.operands))


def relative_error(values, expected, magnitude=None):
    """Return norm(values - expected) / norm(magnitude), in float64; NaN or inf for wrong shapes."""
    values, expected = np.asarray(values), np.asarray(expected)
    if values.shape != expected.shape:
        return math.inf
    values, expected = values.reshape(-1), expected.reshape(-1)
    size = expected if magnitude is None else np.asarray(magnitude).reshape(-1)
    difference = _norm(lambda part: values[part].astype(np.float64) - expected[part], len(values))
    return difference / (_norm(lambda part: size[part].astype(np.float64), len(size)) or 1.0)


def _norm(part, length):
    slices = (slice(start, start + CHUNK) for start in range(0, length, CHUNK))
    return math.sqrt(math.fsum(float(x @ x) for x in map(part, slices)))


# Measuring ----------------------------------------------------------------------------------------


class Contender:
    """A library at work on a row: its operands and what it took so far."""

    def __init__(self, library, row, sets):
        self.library, self.row = library, row
        self.function = row.calls[library.writes_as]
        dtypes = [dtype for _, dtype in row.operands]
        self.sets = [
            [library.put(host, dtype) for host, dtype in zip(hosts, dtypes, strict=True)]
            for hosts in sets
        ]
        if row.out is not None:
            for arguments in self.sets:
                arguments.append(self.poisoned())
            self.left = self.poisoned()
        self.rotation = itertools.cycle(self.sets)
        self.seconds = []
        self.errors = []

    def poisoned(self):
        """Return a new array for a result, in which is seen what is not written."""
        shape, dtype = self.row.out
        poison = np.full(shape, np.nan, np.float32 if dtype == BFLOAT16 else dtype)
        return self.library.put(poison, dtype)

    def run(self, calls):
        """Make so many calls, each on the next set of operands, and wait for none."""
        function, module = self.function, self.library.module
        for arguments in itertools.islice(self.rotation, calls):
            function(module, *arguments)

    def check(self, expected, magnitude):
        """Note the error of the result of a call with the first set of operands."""
        result = self.function(self.library.module, *self.sets[0])
        self.errors.append(relative_error(self.library.get(result), expected, magnitude))

    def check_left(self, expected, magnitude):
        """Note the error of what the turns have left; of a new call if they keep no result."""
        if self.row.out is None:
            self.check(expected, magnitude)
        else:
            left = self.library.get(self.left)
            self.errors.append(relative_error(left, expected, magnitude))

    def warm_up(self):
        """Use every set once; return the seconds that a call takes the device and the host."""
        self.run(len(self.sets))
        self.library.synchronize()
        trial = min(len(self.sets), 10)
        began = time.perf_counter()
        self.run(trial)
        host = (time.perf_counter() - began) / trial
        return self.library.device_seconds(lambda: self.run(trial), host * trial) / trial, host

    def prepare(self, calls, host, effort):
        """Get ready to be timed: so many calls a turn, each of which takes the host so long."""
        if self.row.out is not None:
            self.sets[0][-1] = self.left
            self.rotation = itertools.cycle(self.sets)  # so that a turn has the first set in it
        self.calls, self.host_seconds = calls, host * calls
        self.turn = lambda: self.run(calls)
        if effort.graphs:
            self.turn, is_recorded = self.library.recorded(self.turn)
            self.host_seconds = 0.0 if is_recorded else self.host_seconds

    def time(self, effort):
        """Time one turn."""
        if effort.pause:
            self.library.synchronize()
            time.sleep(effort.pause)
            self.turn()
        taken = self.library.device_seconds(self.turn, self.host_seconds)
        self.seconds.append(taken / self.calls)

    def result(self, calls):
        return summary(self.seconds, calls, self.errors, self.row.error_allowed)


def summary(seconds, calls, errors, error_allowed):
    """Return the Result of so many measured seconds a call and of the errors of some results."""
    low, median, high = np.quantile(seconds, (0.25, 0.5, 0.75))
    error = max(errors, key=lambda e: (math.isnan(e), e))
    return Result(median, low, high, calls, error, not error <= error_allowed)


def number_of_sets(row, cache_bytes):
    """How many sets of operands are three times the cache; at least one."""
    arrays = row.operands + ([row.out] if row.out is not None else [])
    size = sum(math.prod(shape) * itemsize(dtype) for shape, dtype in arrays)
    return max(1, min(MOST_SETS, math.ceil(3 * cache_bytes / size)))


def measure(row, libraries, pool, effort, watch=lambda: None):
    """Return the Result of each library that the row has a call for, by name.

    watch() is called right before the first round and right after the last one.
    """
    sets = [
        [pool.take(shape, dtype) for shape, dtype in row.operands]
        for _ in range(number_of_sets(row, effort.cache_bytes))
    ]
    contenders = [Contender(lib, row, sets) for lib in libraries if lib.writes_as in row.calls]
    expected = row.expected(*sets[0])
    magnitude = row.magnitude(*sets[0]) if row.magnitude is not None else None
    trials = []
    for contender in contenders:
        contender.check(expected, magnitude)
        trials.append(contender.warm_up())
    slowest = max(device for device, _ in trials)
    calls = max(1, min(MOST_CALLS, round(effort.batch_seconds / max(slowest, 1e-9))))
    for contender, (_, host) in zip(contenders, trials, strict=True):
        contender.prepare(calls, host, effort)
    time.sleep(effort.rest)
    watch()
    for _ in range(effort.rounds):
        for contender in contenders:
            contender.time(effort)
    watch()
    for contender in contenders:
        contender.check_left(expected, magnitude)
    return {c.library.name: c.result(calls) for c in contenders}
