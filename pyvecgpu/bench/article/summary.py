"""What the measured rows say: where the GPU overtakes the CPU, and how large the ratios get.

Works on a report as `--json` keeps it. A crossover is the N at which the lines of the picture,
drawn from row to row, cross; the rows on both sides are always told with it. A comparison with
NumPy says on how many cores NumPy ran, and the C loop on all cores stands beside it. Figures that
cannot be right on a quiet machine are told as well (doubts).
"""

import math
from dataclasses import asdict, dataclass

from ..timing import rate_text
from .ceilings import ALL_CORES, BANDWIDTH, GPU, ONE_CORE, PEAK

ELEMENT, ADDITION, PRODUCT = "one element", "vector addition", "matrix product"
TITLES = {
    ELEMENT: "One element: time of c = a + b for N = 1, which is all latency",
    ADDITION: "Vector addition: time of c = a + b on N elements of float32",
    PRODUCT: "Matrix product: time of C = A B on N x N matrices, the C loops in float32",
}
SHARED_LOOP = "C loop, all cores"
ABOVE = 1.1  # times what may be: what lies above it is no chance


@dataclass
class Crossover:
    """Where a column of the GPU becomes faster than one of the CPU.

    n: the crossing, between the rows low and high; low is None if the GPU is faster from the first
    common row on, n is None if it never is. slower_again: the first later row where it is not.
    """

    table: str
    gpu: str
    cpu: str
    n: float | None
    low: int | None = None
    high: int | None = None
    slower_again: int | None = None

    def sentence(self):
        what = f"{self.table}: {self.gpu} against {self.cpu}:"
        if self.n is None:
            return f"{what} not faster in any row"
        if self.low is None:
            text = f"{what} faster from the first row, N = {self.high:,}, on"
        else:
            text = f"{what} faster from N = {rounded(self.n)} on"
            text += f" (between {self.low:,} and {self.high:,})"
        if self.slower_again is not None:
            text += f", but slower again at N = {self.slower_again:,}"
        return text


def rounded(n):
    """Return a number with two digits that count: 34,000."""
    digits = max(0, math.floor(math.log10(n)) - 1)
    return f"{round(n, -digits):,.0f}"


def crossover(table, gpu, cpu, points):
    """Return the Crossover for points (N, seconds of the GPU, seconds of the CPU), N ascending.

    None: there are no points.
    """
    faster = [on_gpu < on_cpu for _, on_gpu, on_cpu in points]
    if not points:
        return None
    if True not in faster:
        return Crossover(table, gpu, cpu, None)
    first = faster.index(True)
    later = [points[i][0] for i in range(first, len(points)) if not faster[i]]
    again = later[0] if later else None
    high, on_gpu, on_cpu = points[first]
    if first == 0:
        return Crossover(table, gpu, cpu, float(high), None, high, again)
    low, gpu_before, cpu_before = points[first - 1]
    before, after = math.log(gpu_before / cpu_before), math.log(on_gpu / on_cpu)
    n = low * (high / low) ** (before / (before - after))
    return Crossover(table, gpu, cpu, n, low, high, again)


# Reports ------------------------------------------------------------------------------------------


def rows_of(report, table):
    """Return the rows of a table, N ascending."""
    return [row for row in report["rows"] if row["table"] == table]


def seconds(row, column):
    """Return the seconds of a cell, or None."""
    result = row["results"].get(column)
    return result["seconds"] if result else None


def series(report, table, column):
    """Return [(N, seconds)] of the cells of a column that were measured."""
    cells = [(row["n"], seconds(row, column)) for row in rows_of(report, table)]
    return [(n, taken) for n, taken in cells if taken is not None]


def columns_of(report, table, *kinds):
    """Return the names of a table's columns of these kinds ("loop", "numpy", "kernel", ...)."""
    about = report["columns"][table]
    return [name for name, column in about.items() if not kinds or column["kind"] in kinds]


def has_gpu(report):
    """Whether a column of the GPU, or of the simulated card, was measured."""
    return any(columns_of(report, table, "kernel", "transfers") for table in report["columns"])


def who(report, table, name):
    """Return the name of a column, for NumPy's with the number of cores that it ran on.

    An addition of NumPy's is the work of one thread, its products those of a BLAS, which uses
    several: how many was measured.
    """
    if report["columns"][table][name]["kind"] != "numpy":
        return name
    if table != PRODUCT:
        return f"{name} (one core)"
    used, cores = report["cpu"].get("cores_used_by_numpy"), report["cpu"]["cores"]
    return f"{name} ({max(1, round(used))} of {cores} cores)" if used else name


def pairs(report, *kinds):
    """Yield (table, column of the GPU, column of the CPU, [(N, seconds, seconds)]) of columns in
    the same precision; kinds: those of the CPU's columns."""
    for table in (ADDITION, PRODUCT):
        about = report["columns"][table]
        for gpu in columns_of(report, table, "kernel", "transfers"):
            for cpu in columns_of(report, table, *kinds):
                if about[gpu]["dtype"] == about[cpu]["dtype"]:
                    on_gpu, on_cpu = (dict(series(report, table, name)) for name in (gpu, cpu))
                    common = [(n, on_gpu[n], on_cpu[n]) for n in on_gpu if n in on_cpu]
                    yield table, gpu, cpu, common


def crossovers(report):
    """Return (name of the CPU's column, Crossover) for each column of the GPU with each of the
    CPU in its precision; the Crossover says on how many cores NumPy ran."""
    found = [
        (cpu, crossover(table, gpu, who(report, table, cpu), points))
        for table, gpu, cpu, points in pairs(report, "numpy", "loop")
    ]
    return [(cpu, one) for cpu, one in found if one is not None]


def ratios(report):
    """Return sentences: how many times as fast as NumPy, and as the C loop on all cores, the GPU
    is at the largest N of both."""
    sentences = []
    for table, gpu, cpu, points in pairs(report, "numpy", "loop"):
        if points and is_baseline(report, table, cpu):
            n, on_gpu, on_cpu = points[-1]
            ratio = on_cpu / on_gpu
            times = f"{ratio:,.0f}x" if ratio >= 1000 else f"{ratio:.3g}x"
            sentences.append(f"{table}, N = {n:,}: {gpu} {times} {who(report, table, cpu)}")
    return sentences


def is_baseline(report, table, cpu):
    """Whether a column of the CPU is one that headlines compare with: NumPy, or all cores."""
    return report["columns"][table][cpu]["kind"] == "numpy" or cpu == SHARED_LOOP


def ceiling(report, table, where):
    """Return a measured ceiling in units a second, or None."""
    for row in rows_of(report, table):
        if where in row["results"]:
            return row["work"] / row["results"][where]["seconds"]
    return None


def peak(report, where):
    """Return (operations a second, how they were measured) of a place; (None, "") without any.

    A product that was faster than the loop of multiply-adds, as NumPy's may be with wider vectors
    than the C compiler chooses, is the better ceiling.
    """
    measured = ceiling(report, PEAK, where)
    kinds = ("kernel",) if where == GPU else ("numpy", "loop")
    rates = [
        rate
        for name in columns_of(report, PRODUCT, *kinds)
        if is_in_roofline(report, PRODUCT, name)
        for _, rate in roofline_points(report, PRODUCT, name)
    ]
    if rates and max(rates) > (measured or 0):
        return max(rates), "the fastest product"
    return (measured, "multiply-adds in registers") if measured is not None else (None, "")


def is_in_roofline(report, table, name):
    """Whether a column is computed on units of float32: on a GPU those of "ieee" products."""
    column = report["columns"][table][name]
    of_kernel = "ieee" if table == PRODUCT else "float32"
    return column["dtype"] == (of_kernel if column["kind"] == "kernel" else "float32")


def roofline_points(report, table, column):
    """Return [(operations a byte, operations a second)] of a column of float32, N ascending."""
    return [
        (row["work"] / row["bytes"], row["work"] / seconds(row, column))
        for row in rows_of(report, table)
        if seconds(row, column) is not None
    ]


def with_crossovers(report):
    """Return the report with its crossovers as a list of dicts, its ratios and its doubts."""
    dicts = [
        asdict(one) | {"cpu": cpu, "sentence": one.sentence()} for cpu, one in crossovers(report)
    ]
    return report | {"crossovers": dicts, "ratios": ratios(report), "doubts": doubts(report)}


# Doubts -------------------------------------------------------------------------------------------


def doubts(report):
    """Return sentences about figures that a quiet machine would not have given."""
    found = [slower_together(report, table) for table in (BANDWIDTH, PEAK)]
    found += [above_the_roof(report, where) for where in (ALL_CORES, GPU)]
    return [f"{one}: measure again." for one in found if one]


def slower_together(report, table):
    """Return a sentence if all cores were slower than one, else ""."""
    one, every = (ceiling(report, table, where) for where in (ONE_CORE, ALL_CORES))
    if one is None or every is None or every * ABOVE >= one:
        return ""
    unit = "B/s" if table == BANDWIDTH else "FLOP/s"
    rates = [rate_text(rate, 1, unit) for rate in (every, one)]
    slower = f"The {table} of all cores, {rates[0]}, is below that of one core, {rates[1]}"
    return f"{slower}: the machine was busy, or its clock changed"


def above_the_roof(report, where):
    """Return a sentence if points of the roofline lie above the roof of a place, else ""."""
    bandwidth, (top, _) = ceiling(report, BANDWIDTH, where), peak(report, where)
    if bandwidth is None or top is None:
        return ""
    kinds = ("kernel",) if where == GPU else ("numpy", "loop")
    names = []
    for table in (ADDITION, PRODUCT):
        for name in columns_of(report, table, *kinds):
            points = roofline_points(report, table, name)
            points = points if table == PRODUCT else points[-1:]  # those that are drawn
            inside = (min(top, bandwidth * intensity) * ABOVE for intensity, _ in points)
            is_above = any(rate > limit for (_, rate), limit in zip(points, inside, strict=True))
            if is_in_roofline(report, table, name) and is_above:
                names.append(f"{name} ({table})")
    if not names:
        return ""
    above = f"Above the roof of {where}: {', '.join(names)}"
    return (
        f"{above}. Either a cache had the data, or the machine was busy when the roof was measured"
    )


def omissions(report):
    """Return why cells show "-", each reason once with its cells, as {reason: [cell, ...]}."""
    reasons = {}
    for row in report["rows"]:
        for column, reason in row["omitted"].items():
            reasons.setdefault(reason, []).append(f"{row['name']}: {column}")
    return reasons


# For people ---------------------------------------------------------------------------------------


def time_text(taken):
    """Return seconds as "1.23 us"; "-" for None."""
    if taken is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if taken >= 0.9995 * scale:
            return f"{taken / scale:.3g} {unit}" if taken < 999.5 * scale else f"{taken:.0f} s"
    return f"{taken * 1e9:.3g} ns"


def lines(report):
    """Return what follows from a report, and why cells are missing, as lines of text."""
    text = []
    for reason in omissions(report):
        text.append(f"-: {reason}.")
    titles = {"crossovers": "Crossovers", "ratios": "At the largest N of both"}
    titles["doubts"] = "Doubtful"
    for key, title in titles.items():
        if report[key]:
            sentences = [one["sentence"] if key == "crossovers" else one for one in report[key]]
            text += ["", title, *(f"  {sentence}" for sentence in sentences)]
    return text


def machine_line(report):
    """Return who took part, in one line: card, processor, library versions, date."""
    cpu = report["cpu"]
    parts = [report["card"]] if report["device"] != "cpu" else []
    parts += [f"{cpu['name']}, {cpu['cores']} cores", report["date"][:10]]
    return "; ".join(parts)


def method(report):
    """Return sentences that say how the figures came about, and who took part."""
    cpu, limits = report["cpu"], report["limits"]
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    used = cpu.get("cores_used_by_numpy")
    busy = f", which kept {used:.1f} of {cpu['cores']} cores busy" if used else ""
    driver = f"; driver {report['driver']}" if report.get("driver") else ""
    clocks = "A time is the median of several rounds"
    if has_gpu(report):
        clocks += (
            ". The kernel alone is timed by the device's events, everything else by the host's "
            "clock; with transfers means from NumPy arrays to a NumPy array"
        )
    return [
        f"{report['date']}; {versions}{driver}.",
        f"NumPy's addition runs on one core. Its products are those of {cpu['blas']}{busy}.",
        "The C loops are compiled with -O3 -march=native -fopenmp and so use vector instructions; "
        "the product's run in the order i, k, j.",
        f"{clocks}. All columns write to memory that is there before.",
        "Data stay where a call leaves them, so what is small is computed from caches.",
        "Every result was checked: products and additions against float64, the largest vectors in "
        "64 pieces spread over all of them.",
        f"A row may take {limits['row']:g} s, making its data counted, and a cell may use "
        f"{limits['memory'] * 100:g} % of the memory that was free; nothing is extrapolated.",
    ]
