"""`bench cpu`: every function on the CPU device beside NumPy itself, over dtypes and sizes.

With LARGE elements and more a call may take `bound` times NumPy's time, with fewer, or where it
touches only some of them, BEYOND more: there it is Python that takes time, not the work. What NumPy
lacks is held against an expression of its functions (cases.py). Random numbers may take ten times
as long as NumPy's own generator, few of them and many, as they are those of a card to the bit; few
may take BEYOND more, too. A text of several calls may take that for each of them. bfloat16, of
which NumPy knows nothing, is only told. Times are the least of many, ours and NumPy's in turn: what
other processes take is not in them.
"""

import math
import time
import warnings
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace

import numpy as np

import pyvecgpu as vg

from ...dtypes import host_dtype, parse_dtype
from ..goals import Verdict
from . import named
from .cases import cases, operands

SIZES = (16, 1000, 20_000, 1_000_000)
QUICK_SIZES = (16, 20_000)
LARGE = 10_000  # elements
BEYOND = 2e-6  # seconds
WORST = 60  # rows that are printed
BATCH = 1e-4  # seconds of calls between two looks at the clock
ROUNDS, QUICK_ROUNDS = 25, 3
MOST = 0.25  # seconds for all rounds of a row, of which there are three at least
AGAIN = 2  # how often rows that miss are measured again: other processes cost both sides time
LONGEST = 0.2  # seconds of a call of NumPy beyond which there is no row


@dataclass
class Measured:
    """A row: what was called, on how many elements, the seconds of both, and what is allowed."""

    group: str
    name: str
    dtype: str
    n: int
    ours: float
    numpy: float
    bound: float
    is_small: bool
    calls: int = 1

    @property
    def is_large(self):
        return self.n >= LARGE and not self.is_small

    @property
    def ratio(self):
        return self.ours / self.numpy

    @property
    def score(self):
        """How much of what is allowed it takes: above 1 it misses."""
        if self.is_large:
            return self.ratio / self.bound
        return (self.ours - self.allowed * self.numpy) / (BEYOND * self.calls)

    @property
    def allowed(self):
        """How many times NumPy's time a small call may take before BEYOND: 1, for random more."""
        return self.bound if self.group == "random" else 1.0

    @property
    def is_told_only(self):
        return "bfloat16" in (self.dtype, self.name.rpartition(" ")[2])

    @property
    def met(self):
        return self.is_told_only or bool(self.score <= 1)

    def line(self):
        beside = (
            f"{self.ratio:8.2f} x  (at most {self.bound:g})"
            if self.is_large
            else f"{(self.ours - self.numpy) * 1e6:+8.2f} us (at most "
            f"+{(BEYOND * self.calls + (self.allowed - 1) * self.numpy) * 1e6:.3g})"
        )
        return (
            f"{self.group:11} {self.name:32} {self.dtype:8} {self.n:8} "
            f"{self.ours * 1e6:10.2f} us, numpy {self.numpy * 1e6:10.2f} us: {beside}"
            f"{'' if self.met else ' MISSED'}"
        )


def run(arguments, say):
    """Measure, print, and return what there is to report."""
    sizes, rounds = (QUICK_SIZES, QUICK_ROUNDS) if arguments.quick else (SIZES, ROUNDS)
    rows = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases():
            if arguments.only and arguments.only not in f"{case.group} {case.name}":
                continue
            for dtype in case.dtypes:
                found = [measured(case, dtype, n, rounds) for n in sizes if n <= case.most]
                rows += [row for row in found if row is not None]
    rows.sort(key=lambda row: -row.score)
    for row in rows[:WORST]:
        say(row.line())
    verdicts = judge(rows)
    missed = [asdict(row) for row in rows if not row.met]
    goals = [asdict(verdict) for verdict in verdicts]
    return {"sizes": sizes, "classes": classes_of(rows), "missed": missed, "goals": goals}, verdicts


def classes_of(rows):
    """Return what is said of each group of rows, a dict each: bfloat16 is one of its own."""
    groups = {}
    for row in rows:
        groups.setdefault("bfloat16" if row.is_told_only else row.group, []).append(row)
    classes = []
    for group, members in sorted(groups.items()):
        told = {"name": group}
        large = [row.ratio for row in members if row.is_large]
        small = [(row.ours - row.numpy) * 1e6 for row in members if not row.is_large]
        for size, values in (("large", large), ("small", small)):
            missed = sum(not row.met for row in members if row.is_large == (size == "large"))
            told[size] = {"count": len(values), "missed": missed}
            if values:
                low, high = float(np.median(values)), float(np.quantile(values, 0.9))
                told[size] |= {"median": low, "ninth": high, "worst": max(values)}
        classes.append(told)
    return classes


def judge(rows):
    """Return the Verdicts: how many rows keep to what is allowed, in the hundred."""
    verdicts = []
    large = f"{LARGE:,} elements and more, within 1.3 times NumPy's (random: 10)"
    small = f"fewer, within {BEYOND * 1e6:g} us of NumPy (random: of 10 times NumPy's)"
    for words, is_large in ((large, True), (small, False)):
        found = [row for row in rows if row.is_large == is_large and not row.is_told_only]
        missed = sum(not row.met for row in found)
        met = 100.0 * (1 - missed / len(found)) if found else None
        goal = f"{words}: all {len(found)} rows"
        verdicts.append(Verdict(goal, met, " %", None if met is None else missed == 0))
    return verdicts


def measured(case, dtype, n, rounds):
    """Return the Measured of the least times, one that misses measured again; or None."""
    row = measure(case, dtype, n, rounds)
    for _ in range(AGAIN):
        if row is None or row.met or row.is_told_only:
            break
        other = measure(case, dtype, n, rounds)
        if other is None:  # it took NumPy longer than LONGEST this time
            break
        times = {"ours": min(row.ours, other.ours), "numpy": min(row.numpy, other.numpy)}
        row = replace(row, **times)
    return row


def measure(case, dtype, n, rounds):
    """Return the Measured of a case with operands of a dtype and n elements.

    None: NumPy has no such function of that dtype, or takes longer than LONGEST.
    """
    host = operands(host_dtype(parse_dtype(dtype)), n)
    beside = SimpleNamespace(**host, list=host["a"].tolist() if n <= 1000 else None)
    device = {name: vg.asarray(x, device="cpu") for name, x in host.items()}
    host |= named.views(host)
    device |= named.views(device)
    seeds = vg.random.default_rng(1, device="cpu"), np.random.default_rng(1)
    ours = case.compiled(case.ours, vg, device | {"h": beside, "g": seeds[0]})
    numpy = case.compiled(case.numpy, np, host | {"h": beside, "g": seeds[1]})
    began = time.perf_counter()
    try:
        numpy()
    except (TypeError, ValueError, IndexError):
        return None
    if time.perf_counter() - began > LONGEST:
        return None
    try:
        ours()
    except Exception as error:
        error.add_note(f"bench cpu: {case.name} of {n} elements of {dtype}")
        raise
    times = least_times((ours, numpy), rounds)
    facts = case.bound, case.is_small, case.calls
    return Measured(case.group, case.name, dtype, n, *times, *facts)


def least_times(calls, rounds):
    """Return the least seconds of each call over rounds in which they take turns."""
    counts, least = [], []
    for call in calls:
        began = time.perf_counter()
        call()
        taken = max(time.perf_counter() - began, 1e-7)
        counts.append(max(1, min(200, int(BATCH / taken))))
        least.append(math.inf)
    end = time.perf_counter() + MOST
    for number in range(rounds):
        for i, (call, count) in enumerate(zip(calls, counts, strict=True)):
            repeats = range(count)
            began = time.perf_counter()
            for _ in repeats:
                call()
            least[i] = min(least[i], (time.perf_counter() - began) / count)
        if number >= 2 and time.perf_counter() > end:
            break
    return least
