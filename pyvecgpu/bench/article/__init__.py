"""Where a GPU pays off, `python -m pyvecgpu bench article`: tables, crossovers, pictures, a report.

    ceilings.py    memory bandwidth and arithmetic on their own
    problems.py    vector addition and the matrix product: sizes, data, checks
    columns.py     who computes: C loops (loops.c), NumPy, the GPU's kernel, the GPU with transfers
    budget.py      how long each cell is measured, and which are left out
    summary.py     crossovers and ratios, from the figures that --json keeps
    plots.py       the pictures      page.py    the report

The rows go from small to large. Data stay where a call leaves them, so small rows are computed from
caches on the CPU and on the GPU, as they are in a program that has just made its data.
"""

import time
from dataclasses import asdict
from pathlib import Path

import pyvecgpu as vg

from ...errors import DeviceUnavailableError
from .. import machine
from ..libraries import open_libraries
from ..loops import Loops
from ..timing import rate_text
from . import ceilings, page, plots, summary
from .budget import LIMITS, Budget, BudgetError, measure
from .ceilings import GpuCeilings
from .columns import PRECISIONS, columns
from .problems import Addition, Case, Product, random_block
from .progress import Progress
from .summary import time_text

# N of the vectors and of the matrices; tiny is for the simulated card
SIZES = {
    "full": ([10**k for k in range(3, 10)], [2**k for k in range(4, 15)]),
    "quick": ([10**k for k in range(3, 7)], [2**k for k in range(4, 10)]),
    "tiny": ([1000, 4000], [16, 32]),
}
DEVICE_MEMORY = 0.9  # of what is free on the card, in a cell
FAST_FIRST = ("kernel", "transfers", "numpy")


class Article:
    """One run: what computes, what it may cost, and the rows so far."""

    def __init__(self, device, size, limits=None):
        self.device, self.size = device, size
        self.limits = limits or LIMITS[size]
        self.cpu = machine.describe_cpu()
        self.notes = [note for note in (about_device(device),) if note]
        self.loops = self.open("The C loops", lambda: Loops(self.cpu["cores"]))
        self.library = None
        if device.type != "cpu":
            self.library = open_libraries(device, [], quick=size == "tiny")[0]
        memory = self.limits.memory * machine.free_memory()
        self.budget = Budget(self.limits, memory, free_on(device))
        self.rows = []
        table = columns(Addition(), PRECISIONS[:1], self.loops, self.library)
        self.columns = {
            summary.ELEMENT: table,
            summary.ADDITION: table,
            summary.PRODUCT: columns(Product(), PRECISIONS, self.loops, self.library),
        }
        vectors, sides = SIZES[size]
        self.sizes = {summary.ELEMENT: [1], summary.ADDITION: vectors, summary.PRODUCT: sides}
        cells = sum(len(self.columns[table]) * len(sizes) for table, sizes in self.sizes.items())
        self.progress = Progress(cells)

    def open(self, what, make):
        """Return make(), or None and a note if it cannot be compiled here."""
        try:
            return make()
        except OSError as error:
            self.notes.append(f"{what} are left out: {error}.")
            return None

    def run(self):
        """Measure everything; `rows` has it then."""
        try:
            for note in self.notes:
                self.progress.say(note)
            self.measure_ceilings()
            block = random_block()
            for table, sizes in self.sizes.items():
                problem = Product() if table == summary.PRODUCT else Addition()
                self.measure_table(table, problem, sizes, block)
        finally:
            self.progress.close()

    # Ceilings -------------------------------------------------------------------------------------

    def measure_ceilings(self):
        self.progress.say("\nCeilings: memory bandwidth, and arithmetic in float32")
        needed = 24 * ceilings.LENGTHS[self.size]
        if self.loops is not None and needed <= self.budget.host_bytes:
            self.add_ceilings(ceilings.cpu_tasks(self.loops, self.size))
        if self.library is not None and needed <= self.budget.device_bytes:
            gpu = None
            if self.device.type == "cuda" and self.size == "full":
                gpu = self.open("The GPU's triad and peak", lambda: GpuCeilings(self.library))
            self.add_ceilings(ceilings.gpu_tasks(self.library, gpu, self.size))

    def add_ceilings(self, tasks):
        for where, make in tasks:
            row = self.measure_ceiling(where, make())
            self.rows.append(row)
            rate = rate_text(row["work"], row["results"][where].seconds, row["unit"])
            self.progress.say(f"  {row['name']:26} {rate:>12}  {row['note']}".rstrip())

    def measure_ceiling(self, where, task):
        """Return the row of a ceiling as a dict."""
        result, _ = measure(task, ceilings.ERROR_ALLOWED, self.limits)
        return {
            "name": f"{task.table}, {where}",
            "table": task.table,
            "unit": task.unit,
            "work": task.work,
            "note": task.note,
            "error_allowed": ceilings.ERROR_ALLOWED,
            "results": {where: result},
            "omitted": {},
        }

    # Tables ---------------------------------------------------------------------------------------

    def measure_table(self, table, problem, sizes, block):
        names = [column.name for column in self.columns[table]]
        self.progress.say()
        self.progress.say(summary.TITLES[table])
        self.progress.say(table_line("N", names, names))
        for n in sizes:
            row = self.measure_row(table, Case(problem, n, block))
            self.rows.append(row)
            cells = [row["results"].get(name) for name in names]
            texts = [time_text(cell and cell.seconds) for cell in cells]
            self.progress.say(table_line(f"{n:,}", texts, names))

    def measure_row(self, table, case):
        """Return the row of a case as a dict."""
        results, omitted = {}, {}
        self.budget.begin_row()
        for column in sorted(self.columns[table], key=order):
            self.progress.advance(f"{table}, N = {case.n:,}, {column.name}")
            try:
                results[column.name] = self.measure_cell((table, column.name), column, case)
            except BudgetError as error:
                omitted[column.name] = str(error)
            except MemoryError:  # also pyvecgpu's own
                omitted[column.name] = "memory ran out"
        return {
            "name": f"{table}, N = {case.n:,}",
            "table": table,
            "n": case.n,
            "unit": "FLOP/s",
            "work": case.operations,
            "bytes": 3 * case.nbytes(PRECISIONS[0]),
            "note": "",
            "error_allowed": case.problem.error_allowed(PRECISIONS[0], case.n),
            "results": results,
            "omitted": omitted,
        }

    def measure_cell(self, key, column, case):
        """Return the Result of a column for a case. BudgetError: it would exceed a bound."""
        if column.begin is None:
            raise BudgetError("there is no C compiler")
        size = case.nbytes(column.dtype)
        self.budget.require_memory(column.host_arrays * size, column.device_arrays * size)
        new = 0 if case.has(column.dtype) else 3 * size
        self.budget.require_time(key, case.operations, new)
        case.arrays(column.dtype)
        if new:
            self.budget.learn_data(*case.made)
        began = time.perf_counter()
        task = column.begin(case)
        setup = time.perf_counter() - began
        allowed = case.problem.error_allowed(column.precision, case.n)
        result, least = measure(task, allowed, self.limits, self.budget.require_left)
        self.budget.learn(key, case.operations, setup + least)
        if column.kind == "numpy" and key[0] == summary.PRODUCT:
            self.cpu["cores_used_by_numpy"] = task.cores  # in the largest product so far
        return result


def table_line(first, texts, names):
    """Return a line of a table whose columns have these names."""
    cells = [f"{text:>{len(name)}}" for text, name in zip(texts, names, strict=True)]
    return "  ".join([f"{first:>13}", *cells])


def order(column):
    """The order in which a row is measured: the fast before the slow, the C loops last."""
    if column.kind == "loop":
        return 1, "", -len(column.name)
    return 0, column.dtype, FAST_FIRST.index(column.kind)


def about_device(device):
    """Return a sentence if the device is no GPU."""
    if device.type == "sim":
        return (
            "The simulated card's times say nothing about a GPU; they show that the command works."
        )
    if device.type == "cuda":
        return ""
    try:
        vg.Device("cuda")
    except DeviceUnavailableError as error:
        return f"No GPU can be used here, so only the columns of the CPU are measured: {error}."
    return "Only the columns of the CPU are measured, because the device is cpu."


def free_on(device):
    """Return the bytes that a cell may use on a device."""
    if device.type == "cpu":
        return 0
    memory = vg.memory_info(device)
    return DEVICE_MEMORY * min(memory.free, memory.limit or memory.free)


# The command --------------------------------------------------------------------------------------


def run(device, quick, limits=None):
    """Measure and print; return (what the report has beside its rows, rows as a list of dicts)."""
    size = "tiny" if device.type == "sim" else "quick" if quick else "full"
    article = Article(device, size, limits)
    article.run()
    about_columns = {
        table: {c.name: {"kind": c.kind, "dtype": c.precision} for c in table_columns}
        for table, table_columns in article.columns.items()
    }
    about = {
        "size": size,
        "cpu": article.cpu,
        "limits": asdict(article.limits),
        "notes": article.notes,
        "columns": about_columns,
    }
    return about, article.rows


def check_places(pictures, page_path):
    """Make the folder of the pictures; ImportError, OSError: nothing could be drawn there."""
    if pictures or page_path:
        plots.require()
    if pictures:
        Path(pictures).mkdir(parents=True, exist_ok=True)
    if page_path and not Path(page_path).absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder for {page_path}")


def conclude(report, pictures, page_path):
    """Print what follows from a report; draw its pictures in a folder and write its page."""
    report = summary.with_crossovers(report)  # an older file may say less
    for line in summary.lines(report):
        print(line)
    drawn = plots.draw(report) if pictures or page_path else {}
    if pictures:
        folder = Path(pictures)
        for name, png in drawn.items():
            (folder / f"{name}.png").write_bytes(png)
            print(f"wrote {folder / name}.png")
    if page_path:
        Path(page_path).write_text(page.render(report, drawn), encoding="utf-8")
        print(f"wrote {page_path}")
