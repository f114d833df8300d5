"""`bench sweep`: random cases of many classes, timed by the wall clock, some of them checked.

cases.py draws them; a case is known by the seed and its number, and `--case` measures it again.
Operands are views of one large array a dtype, equal in all libraries. Results are gone before the
next call: what a library remembers of its operands is what it keeps by itself. The figure of a case
is the time of torch over ours or, without torch, the time that the card's limit asks for over ours:
bytes over the rate of a large copy, operations over that of a large product, whichever is longer.
So below 1 we are slower. A result that is wrong, and an exception of ours, count as 0.
"""

import datetime
import functools
import itertools
import math
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass

import numpy as np

import pyvecgpu as vg

from .cases import DTYPES, Draw
from .libraries import open_libraries
from .timing import BFLOAT16, itemsize, rounded

PEERS = ("torch",)
SECONDS = 150.0
WORST = 60  # cases that are printed
AGAIN = 0.9  # a case below it is timed twice more, for it may have been a hiccup
CHECKED = 1 / 8  # of the cases
PERIOD = 2**24 - 3  # elements after which the values of a large array repeat: a prime
LOOKED_AT = 10_000  # cases among which one has to be of the class that is asked for


@dataclass
class Size:
    """How large a sweep is. room: {dtype: elements}; shrink: see cases.Draw."""

    room: dict
    shrink: float = 1.0
    rounds: int = 3
    batch_seconds: float = 3e-3
    most_calls: int = 400
    checked: float = CHECKED


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


class PeerError(Exception):
    """The peer could not do it: the case is left out."""


def add_options(parser):
    """Add the options of the sweep to a parser."""
    group = parser.add_argument_group("sweep only")
    group.add_argument("--seed", type=int, metavar="N", help="of all cases; default: the date")
    group.add_argument(
        "--seconds", type=float, help=f"when to end; default: {SECONDS:.0f}, with --cases never"
    )
    group.add_argument("--cases", type=int, metavar="N", help="how many cases")
    group.add_argument("--only", metavar="CLASS", help="classes with this in their names")
    group.add_argument("--case", type=int, metavar="K", help="this case of the seed alone")


def check_options(parser, arguments):
    """End with a sentence if another benchmark is given options of the sweep, or it wrong ones."""
    if arguments.benchmark != "sweep":
        for name in ("seed", "seconds", "cases", "only", "case"):
            if getattr(arguments, name) is not None:
                parser.error(f"--{name} belongs to sweep")
    elif [name for name in arguments.peers if name not in PEERS]:
        parser.error("sweep can be measured beside torch alone")


# Arrays -------------------------------------------------------------------------------------------


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
        flat = self.array(operand.dtype)[operand.start : operand.end()]
        if self.library.name != "torch":
            return view(self.library.module, flat, operand)
        array = flat.view(operand.shape)
        if operand.axes is not None:
            array = array.permute(operand.axes)
        return array[
            tuple(slice(s.start, s.stop, s.step and abs(s.step)) for s in operand.slices())
        ]


def view(module, flat, operand):
    """Return an operand from its elements, with pyvecgpu or NumPy."""
    array = module.reshape(flat, operand.shape)
    if operand.axes is not None:
        array = module.transpose(array, operand.axes)
    return array if operand.key is None else array[operand.key]


def on_host(values, operand):
    """Return an operand as a NumPy array."""
    return view(np, values.of(operand.dtype, operand.start, math.prod(operand.shape)), operand)


# Checking -----------------------------------------------------------------------------------------


def fault(values, expected, allowed):
    """Return what is wrong with a result, in words; "" if nothing is.

    allowed: the largest error, a number or an array that broadcasts. NaN is right where it is
    expected, and infinity.
    """
    values, expected = np.asarray(values), np.asarray(expected)
    if values.shape != expected.shape:
        return f"its shape is {values.shape}, not {expected.shape}"
    right = values == expected
    if values.dtype.kind == "f":
        right |= np.isnan(values) & np.isnan(expected)
    if np.all(right):
        return ""
    error = np.abs(values.astype(np.float64) - expected)
    right |= np.isfinite(expected) & (error <= allowed)
    wrong = np.size(right) - np.count_nonzero(right)
    if not wrong:
        return ""
    at = tuple(int(index) for index in np.argwhere(~np.atleast_1d(right))[0])[: right.ndim]
    return f"{wrong} of {right.size} elements, at {at} {values[at]} for {expected[at]}"


def check(case, library, result, values):
    """Return what is wrong with our result of a case."""
    expected, allowed = case.expected(*(on_host(values, one) for one in case.operands))
    return fault(library.get(result), expected, allowed)


# Timing -------------------------------------------------------------------------------------------


class Contender:
    """A library's call of a case, with operands of its own."""

    def __init__(self, library, function, arrays):
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


# The sweep ----------------------------------------------------------------------------------------


class Sweep:
    """The libraries with their arrays, and what it takes to measure a case of a seed."""

    def __init__(self, libraries, size, seed):
        self.size, self.seed, self.values = size, seed, Values(seed, size.room)
        self.arrays = [Arrays(library, self.values, size.room) for library in libraries]
        self.limits = Limits(self.arrays[0], size)
        self.peer = libraries[1].name if len(libraries) > 1 else None

    def draw(self, number):
        """Return the case of a number, and whether it is among those to check."""
        draw = Draw.of(self.seed, number, self.size.room, self.size.shrink)
        return draw.case(), draw.random() < self.size.checked

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
        return Contender(arrays.library, case.peer if at else case.call, operands)

    def time(self, case, ours, outcome):
        """Note the seconds of a case, and of its peer or limit. PeerError: it could not."""
        if self.peer is None:
            outcome.seconds = take_turns([ours], self.size)[0]
            outcome.beside = self.limits.seconds(case)
        else:
            torch = self.arrays[1].library.module
            torch.backends.cuda.matmul.allow_tf32 = case.rate == "tf32"
            try:
                peer = self.contender(1, case)
                peer.warm_up()
            except Exception as error:
                torch.cuda.empty_cache()
                raise PeerError(f"{self.peer}: {type(error).__name__}: {error}") from error
            both = beside_peer(lambda: take_turns([ours, peer], self.size))
            outcome.seconds, outcome.beside = both
        outcome.ratio = outcome.beside / outcome.seconds


def geometric_mean(ratios):
    """Return the geometric mean; 0 if one is."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if min(ratios) > 0 else 0.0


def summary(ratios):
    """Return what is said of a class."""
    return {
        "count": len(ratios),
        "mean": geometric_mean(ratios),
        "tenth": float(np.quantile(ratios, 0.1)),
        "worst": min(ratios),
    }


def classes_of(outcomes):
    """Return {class: summary}, the one with the worst case first."""
    groups = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.group].append(outcome.ratio)
    summaries = {group: summary(ratios) for group, ratios in groups.items()}
    return dict(sorted(summaries.items(), key=lambda item: (item[1]["worst"], item[0])))


def run(device, peers, arguments, say):
    """Measure, print, and return what there is to report, and the exit code."""
    quick = arguments.quick or device.type == "sim"
    today = datetime.datetime.now(datetime.timezone.utc)
    seed = int(f"{today:%Y%m%d}") if arguments.seed is None else arguments.seed
    sweep = Sweep(open_libraries(device, peers, quick=True), size_of(device, quick), seed)
    with np.errstate(all="ignore"):  # logarithms of negative numbers are NaN
        outcomes, left_out = collect(sweep, arguments)
    beside = sweep.peer or "the limit"
    say(f"seed {seed}, beside {beside}: {counted(outcomes, left_out)}")
    classes = classes_of(outcomes)
    for group, told in classes.items():
        say(class_line(group, told))
    say()
    for outcome in sorted(outcomes, key=lambda one: one.ratio)[:WORST]:
        say(case_line(outcome, beside))
    report = {"seed": seed, "beside": beside, "rates": sweep.limits.rates}
    report |= {"shrink": sweep.size.shrink, "room": sweep.size.room, "left_out": left_out}
    every = {"all": summary([one.ratio for one in outcomes])} if outcomes else {}
    report["classes"] = [{"name": name, **told} for name, told in (every | classes).items()]
    report["cases"] = [asdict(outcome) for outcome in outcomes]
    return report, 1 if any(outcome.problem for outcome in outcomes) else 0


def collect(sweep, arguments):
    """Measure cases until there are enough; return the outcomes and what the peer could not do."""
    if arguments.case is not None:
        numbers, is_checked, seconds = [arguments.case], True, math.inf
    else:
        numbers, is_checked = itertools.islice(sweep.numbers(arguments.only), arguments.cases), None
        seconds = math.inf if arguments.cases is not None else SECONDS
        seconds = seconds if arguments.seconds is None else arguments.seconds
    began, outcomes, left_out = time.monotonic(), [], []
    for number in numbers:
        try:
            outcome = sweep.measure(number, is_checked)
        except PeerError as error:
            left_out.append(f"case {number}: {error}")
            continue
        outcomes.append(outcome)
        if outcome.problem:
            about = f"case {number}, {outcome.group} {outcome.text}"
            print(f"bench: {about}: {outcome.problem}", file=sys.stderr, flush=True)
        if time.monotonic() - began >= seconds:
            break
    return outcomes, left_out


def counted(outcomes, left_out):
    """Return in words how many cases there were, and how they went."""
    ratios = [outcome.ratio for outcome in outcomes]
    parts = [f"{len(ratios)} cases"]
    for limit in (AGAIN, 0.5):
        parts.append(f"{sum(ratio < limit for ratio in ratios)} below {limit}")
    parts.append(f"{sum(outcome.checked for outcome in outcomes)} checked")
    parts.append(f"{sum(bool(outcome.problem) for outcome in outcomes)} wrong or failed")
    if left_out:
        parts.append(f"{len(left_out)} left out, the first {left_out[0]}")
    if ratios:
        parts.append(f"geometric mean {geometric_mean(ratios):.3f}")
    return ", ".join(parts)


def class_line(group, told):
    return (
        f"{group:32} n {told['count']:4}  mean {told['mean']:6.3f}"
        f"  tenth {told['tenth']:6.3f}  worst {told['worst']:6.3f}"
    )


def case_line(outcome, beside):
    said = outcome.problem
    if not said:
        said = f"{outcome.seconds * 1e6:10.1f} us, {beside} {outcome.beside * 1e6:10.1f} us"
    return f"{outcome.ratio:6.3f}  {outcome.group:28} {outcome.text:36} {said}  #{outcome.number}"
