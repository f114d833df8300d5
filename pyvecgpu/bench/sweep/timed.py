"""Cases timed by the wall clock: ours and the peer's in turn, or beside the limit of the card."""

import functools
import itertools
import math
import time
from dataclasses import dataclass

import pyvecgpu as vg

from .arrays import Arrays, Values
from .case import Draw
from .checking import check
from .classes import CLASSES

MOST_AHEAD = 5e-3  # seconds that the host runs ahead of the device for
MOST_QUEUED = 64  # calls whose work is timed on the device: it keeps so many and more in order
LOOKED_AT = 10_000  # cases among which one has to be of the class that is asked for
AGAIN = 0.9  # a case below it is timed twice more, for it may have been a hiccup


@dataclass
class Outcome:
    """What became of a case. beside: the seconds of the peer, or those of the limit."""

    number: int
    group: str
    text: str
    bytes: int
    operations: int
    seconds: float | None = None
    beside: float | None = None
    ratio: float = 0.0
    checked: bool = False
    problem: str = ""
    kernels: list | None = None  # where it lost: the seconds of the device, ours and the peer's


class PeerError(Exception):
    """The peer could not do it: the case is left out."""


class Contender:
    """A library's call of a case, with operands of its own."""

    def __init__(self, library, function, arrays):
        self.library = library
        self.call = functools.partial(function, library.module, *arrays)
        self.synchronize = library.synchronize

    def warm_up(self):
        self.call()
        self.synchronize()

    def seconds(self, calls):
        """Return the seconds of a call, of so many, until all are done."""
        began = time.perf_counter()
        for _ in range(calls):
            self.call()
        self.synchronize()
        return (time.perf_counter() - began) / calls


def take_turns(contenders, size):
    """Return the seconds that each takes for a call, the least of some turns."""
    for contender in contenders:
        contender.warm_up()
    slowest = max(contender.seconds(min(2, size.most_calls)) for contender in contenders)
    calls = max(min(2, size.most_calls), min(size.most_calls, int(size.batch_seconds / slowest)))
    best = [math.inf] * len(contenders)
    for _ in range(size.rounds):
        for at in reversed(range(len(contenders))):
            best[at] = min(best[at], contenders[at].seconds(calls))
    return best


def seconds_of_device(contender, array, calls):
    """Return the seconds that the device takes for a call, the least of three turns.

    It gets work to do first, so that the host runs ahead: the array, which is large, times 1. Of a
    call that waits for the device it is the host's time too.
    """
    library = contender.library
    if library.filler is None:
        library.prepare(array)

    def work():
        for _ in range(calls):
            contender.call()

    library.synchronize()
    began = time.perf_counter()
    work()
    host = time.perf_counter() - began
    library.synchronize()
    return min(library.device_seconds(work, min(host, MOST_AHEAD)) / calls for _ in range(3))


def beside_peer(time_both):
    """Return our seconds and the peer's; of three measurements the median, if we seem slower."""
    first = time_both()
    if first[1] / first[0] >= AGAIN:
        return first
    return sorted([first, time_both(), time_both()], key=lambda both: both[1] / both[0])[1]


class Limits:
    """The rates that the device reaches: bytes of a large copy, operations of large products."""

    def __init__(self, arrays, size):
        self.arrays, self.size = arrays, size
        self.rates = {}

    def seconds(self, case):
        """Return what a case takes at least by these rates."""
        least = case.bytes / self.rate("copy")
        return max(least, case.operations / self.rate(case.rate)) if case.rate else least

    def rate(self, name):
        if name not in self.rates:
            self.rates[name] = self.copy() if name == "copy" else self.product(name)
        return self.rates[name]

    def best(self, function, *operands):
        library = self.arrays.library
        return take_turns([Contender(library, function, operands)], self.size)[0]

    def copy(self):
        array = self.arrays.array("float32")
        return 2 * array.nbytes / self.best(lambda vg, x: x.copy(), array)

    def product(self, name):
        array = self.arrays.array("float32" if name == "tf32" else name)
        side = 2 ** int(math.log2(array.size / 2) / 2)
        flat = (array[: side * side], array[side * side : 2 * side * side])
        matrices = [one.reshape(side, side) for one in flat]
        precision = "tf32" if name == "tf32" else None
        call = lambda vg, a, b: vg.matmul(a, b, precision=precision)  # noqa: E731
        return 2 * side**3 / self.best(call, *matrices)


class Sweep:
    """The libraries with their arrays, and what it takes to measure a case of a seed."""

    def __init__(self, libraries, size, seed):
        self.size, self.seed, self.values = size, seed, Values(seed, size.room)
        self.arrays = [Arrays(library, self.values, size.room) for library in libraries]
        self.limits = Limits(self.arrays[0], size)
        self.peer = libraries[1] if len(libraries) > 1 else None

    def draw(self, number):
        """Return the case of a number, and whether it is among those to check."""
        draw = Draw.of(self.seed, number, self.size.room, self.size.shrink)
        return draw.case(CLASSES), draw.random() < self.size.checked

    def numbers(self, only):
        """Return the numbers of the cases whose class has this in its name, without end."""
        every = itertools.count()
        if not only:
            return every
        chosen = (number for number in every if only in self.draw(number)[0].group)
        if not any(only in self.draw(number)[0].group for number in range(LOOKED_AT)):
            raise vg.PyVecGPUError(f"no class has {only!r} in its name")
        return chosen

    def measure(self, number, is_checked=None):
        """Return the Outcome of a case. is_checked: None leaves that to the seed."""
        case, chosen = self.draw(number)
        is_checked = chosen if is_checked is None else is_checked
        outcome = Outcome(number, case.group, case.text, case.bytes, case.operations)
        try:
            ours = self.contender(0, case)
            if is_checked:
                outcome.checked = True
                outcome.problem = check(case, self.arrays[0].library, ours.call(), self.values)
            else:
                ours.warm_up()
            if not outcome.problem:
                self.time(case, ours, outcome)
        except PeerError:
            raise
        except Exception as error:
            outcome.problem = f"{type(error).__name__}: {error}"
        return outcome

    def contender(self, at, case):
        """Return the Contender for pyvecgpu (0) or for the peer."""
        arrays = self.arrays[at]
        operands = [arrays.take(operand) for operand in case.operands]
        calls = {"pyvecgpu": case.call, "torch": case.peer}
        return Contender(arrays.library, calls[arrays.library.writes_as], operands)

    def time(self, case, ours, outcome):
        """Note the seconds of a case, and of its peer or limit. PeerError: it could not."""
        if self.peer is None:
            outcome.seconds = take_turns([ours], self.size)[0]
            outcome.beside = self.limits.seconds(case)
        else:
            self.peer.allow_tf32(case.rate == "tf32")
            try:
                peer = self.contender(1, case)
                peer.warm_up()
            except Exception as error:
                self.peer.empty_cache()
                about = f"{case.group}: {self.peer.name}: {type(error).__name__}: {error}"
                raise PeerError(about) from error
            both = beside_peer(lambda: take_turns([ours, peer], self.size))
            outcome.seconds, outcome.beside = both
            runs_ahead = ours.library.runs_ahead and self.peer.runs_ahead
            if runs_ahead and outcome.beside / outcome.seconds < AGAIN:
                outcome.kernels = self.kernels([ours, peer], outcome.seconds)
        outcome.ratio = outcome.beside / outcome.seconds

    def kernels(self, contenders, seconds):
        """Return the seconds that the device takes for a call of each, which took us so many."""
        calls = min(MOST_QUEUED, self.size.most_calls, int(self.size.batch_seconds / seconds))
        return [
            seconds_of_device(contender, arrays.array("float32"), max(1, calls))
            for contender, arrays in zip(contenders, self.arrays, strict=True)
        ]
