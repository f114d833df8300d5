"""How long a row may take and how much memory a cell may use; what would exceed either is left out.

Whether a cell fits is foretold from the row before: its time, scaled by the work. The foretold time
decides only whether to measure. It is never shown: a cell that is left out shows "-".
"""

import time
from dataclasses import dataclass

import numpy as np

from ..timing import Result

ROUNDS = 7
REST = 0.5  # seconds, at most, between two measurements


@dataclass(frozen=True)
class Limits:
    """Seconds of the whole run and of a row; seconds for which a cell of fast calls is measured,
    and for which one of slow calls is repeated; the share of the free memory a cell may use."""

    run: float
    row: float
    cell: float
    patience: float
    memory: float = 0.5


LIMITS = {
    "full": Limits(run=155.0, row=35.0, cell=0.15, patience=1.0),
    "quick": Limits(run=12.0, row=2.0, cell=0.03, patience=0.1),
    "tiny": Limits(run=12.0, row=2.0, cell=0.01, patience=0.05),
}


class BudgetError(Exception):
    """A cell is left out; the text says why."""


class Budget:
    """What is left of the run and of the row, and what earlier cells tell about later ones.

    host_bytes, device_bytes: what a cell may use there.
    """

    def __init__(self, limits, host_bytes, device_bytes):
        self.limits = limits
        self.host_bytes = host_bytes
        self.device_bytes = device_bytes
        self.run_ends = time.perf_counter() + limits.run
        self.row_ends = self.run_ends
        self.seen = {}  # column's key: (work of a call, seconds of one call and all around it)
        self.bytes_a_second = float("inf")  # of making data

    def begin_row(self):
        self.row_ends = min(self.run_ends, time.perf_counter() + self.limits.row)

    def left(self):
        """Return the seconds left of the row."""
        return self.row_ends - time.perf_counter()

    def require_memory(self, host, device):
        """BudgetError: a cell may not use so many bytes."""
        for needed, allowed, where in (
            (host, self.host_bytes, "on the host"),
            (device, self.device_bytes, "on the card"),
        ):
            if needed > allowed:
                needed, allowed = needed / 2**30, allowed / 2**30
                raise BudgetError(
                    f"it needs {needed:.2f} GiB {where} and may use {allowed:.2f} GiB"
                )

    def require_time(self, key, work, new_bytes):
        """BudgetError: so much work and so much new data do not fit into the row."""
        before, seconds = self.seen.get(key, (work, 0.0))
        self.require_left(seconds * work / before + new_bytes / self.bytes_a_second)

    def require_left(self, seconds):
        """BudgetError: so many seconds are more than is left."""
        if seconds >= self.left():
            run_is_over = self.row_ends == self.run_ends
            whose = "the run" if run_is_over else "a row"
            most = self.limits.run if run_is_over else self.limits.row
            raise BudgetError(f"it would exceed the {most:g} s of {whose}")

    def learn(self, key, work, seconds):
        """Note what one call of a column, with all that belongs to it, took."""
        self.seen[key] = work, seconds

    def learn_data(self, nbytes, seconds):
        """Note how long making data took."""
        self.bytes_a_second = nbytes / max(seconds, 1e-9)


class Task:
    """What is timed: `work` bytes or operations (`unit` over time) in a call, and a check."""

    most_calls = 100_000  # in a round
    work = 0
    unit = "FLOP/s"
    note = ""

    def run(self, calls):
        """Make so many calls and return the seconds they took together."""
        raise NotImplementedError

    def error(self):
        """Return the relative error of the last call's result."""
        raise NotImplementedError


def rest():
    """Wait until no thread of this process is busy, or REST seconds.

    The threads of BLAS, which the checks use too, spin for some 0.1 s after their work, and would
    take cores from what is measured next.
    """
    ends = time.perf_counter() + REST
    while time.perf_counter() < ends:
        began, processor_began = time.perf_counter(), time.process_time()
        time.sleep(0.01)
        busy = time.process_time() - processor_began
        if busy <= 0.1 * (time.perf_counter() - began):
            return


def measure(task, error_allowed, limits, require_left=lambda seconds: None):
    """Return (the timing.Result of a Task, the least seconds that the measurement could take).

    It begins when the threads of what came before are at rest. The first call warms up;
    require_left(its seconds) may refuse the others. Fast calls fill ROUNDS rounds, limits.cell
    seconds in all; slow ones are timed at least once and then again as long as limits.patience
    lasts. The last call's result is checked.
    """
    rest()
    taken = task.run(1)
    if taken < limits.cell:
        taken = min(task.run(1) for _ in range(3))  # without what only a first call costs
    require_left(taken)
    calls = round(limits.cell / ROUNDS / max(taken, 1e-9))
    calls = min(max(1, calls), task.most_calls)
    rounds = [task.run(calls)]
    while len(rounds) < ROUNDS and sum(rounds) + rounds[-1] <= max(limits.patience, limits.cell):
        rounds.append(task.run(calls))
    low, median, high = (float(q) for q in np.quantile(rounds, (0.25, 0.5, 0.75)) / calls)
    began = time.perf_counter()
    error = float(task.error())
    least = taken + median + time.perf_counter() - began
    return Result(median, low, high, calls, error, not error <= error_allowed), least
