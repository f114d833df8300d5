"""What the measurements are held against: each goal says whether it is met, or that it is unknown.

A goal that is missed is a finding and no error: the command ends with 0 all the same.
"""

import statistics
from dataclasses import dataclass


@dataclass
class Verdict:
    """A goal in words, what was measured (None: not measured), and whether the goal is met.

    aim: it is what we would like to have, not what has to be.
    """

    goal: str
    measured: float | None
    unit: str
    met: bool | None
    aim: bool = False

    def sentence(self):
        if self.measured is None:
            return f"{self.goal}: not measured"
        return f"{self.goal}: {self.measured:.2f}{self.unit}, {'met' if self.met else 'NOT met'}"


@dataclass
class Ratio:
    """pyvecgpu does a row's work at `least` times the rate of a peer; aim: as in a Verdict."""

    row: str
    peer: str
    least: float
    aim: bool = False

    def judge(self, table):
        """Return the Verdict for a table: {row's name: {library's name: Result}}."""
        goal = f"{self.row}: {'aim, ' if self.aim else ''}at least {self.least:g}x {self.peer}"
        results = table.get(self.row, {})
        if self.peer not in results or "pyvecgpu" not in results:
            return Verdict(goal, None, "x", None, self.aim)
        ratio = results[self.peer].seconds / results["pyvecgpu"].seconds
        return Verdict(goal, float(ratio), "x", bool(ratio >= self.least), self.aim)


@dataclass
class ShapesRatio:
    """Rows that begin with `prefix` run at `least` times a peer's rate: in the mean, or each."""

    prefix: str
    peer: str
    least: float

    def judge(self, table):
        """Return the Verdict for a table, as Ratio.judge."""
        rows = [results for name, results in table.items() if name.startswith(self.prefix)]
        goal = f"{self.prefix.strip()}, {self.which} of {len(rows)} shapes"
        goal += f": at least {self.least:g}x {self.peer}"
        if not rows or any(not {self.peer, "pyvecgpu"} <= results.keys() for results in rows):
            return Verdict(goal, None, "x", None)
        ratios = [row[self.peer].seconds / row["pyvecgpu"].seconds for row in rows]
        ratio = float(self.summary(ratios))
        return Verdict(goal, ratio, "x", ratio >= self.least)


class MeanRatio(ShapesRatio):
    """A ShapesRatio of the geometric mean."""

    which = "geometric mean"
    summary = staticmethod(statistics.geometric_mean)


class EveryRatio(ShapesRatio):
    """A ShapesRatio of the slowest row."""

    which = "each"
    summary = staticmethod(min)


@dataclass
class Beyond:
    """In a row, a call of pyvecgpu takes at most `most` microseconds more than another library."""

    row: str
    base: str
    most: float

    def judge(self, table):
        """Return the Verdict for a table, as Ratio.judge."""
        goal = f"{self.row}: at most a {self.base} plus {self.most:g} us"
        results = table.get(self.row, {})
        if self.base not in results or "pyvecgpu" not in results:
            return Verdict(goal, None, " us more", None)
        beyond = (results["pyvecgpu"].seconds - results[self.base].seconds) * 1e6
        return Verdict(goal, float(beyond), " us more", bool(beyond <= self.most))


@dataclass
class Within:
    """pyvecgpu does a row's work in at most so many seconds."""

    row: str
    most: float
    aim: bool = False

    def judge(self, table):
        """Return the Verdict for a table, as Ratio.judge."""
        goal = f"{self.row}: {'aim, ' if self.aim else ''}at most {self.most * 1e3:g} ms"
        results = table.get(self.row, {})
        if "pyvecgpu" not in results:
            return Verdict(goal, None, " ms", None, self.aim)
        seconds = results["pyvecgpu"].seconds
        return Verdict(goal, float(seconds * 1e3), " ms", bool(seconds <= self.most), self.aim)
