"""The measured figures in the texts, from docs/measured/*.json: `python -m pyvecgpu.bench.report`.

Run in the folder of the repository. The text between the markers in README.md is replaced by what
the files say that `bench --json` wrote: tables, and from `bench article` its pictures, which lie in
a folder named after the file. Of the products README.md has some rows, docs/benchmarks.md all; of
random cases it has the classes. The pages in docs/lessons get what the lessons printed
(lesson_pages.py), the README of the products its table of steps. With --check it is only compared,
and the exit code is 1 if it is out of date. No figure there is typed by hand.
"""

import argparse
import json
import sys
from pathlib import Path

from ..native.library import load
from . import lesson_pages, why_page
from .article.summary import ADDITION, PRODUCT, is_baseline, with_crossovers
from .cpu import BEYOND, LARGE
from .matmul import FRONT
from .overhead import IMPORT_ROW
from .timing import rate_text

BEGIN = "<!-- measured: begin, written by python -m pyvecgpu.bench.report -->"
END = "<!-- measured: end -->"
ARTICLE_BEGIN = "<!-- article: begin, written by python -m pyvecgpu.bench.report -->"
ARTICLE_END = "<!-- article: end -->"
PICTURES = {"vector-addition": ADDITION, "matrix-product": PRODUCT}
PRODUCTS = Path("docs/benchmarks.md")
PRODUCTS_BEGIN = "<!-- products: begin, written by python -m pyvecgpu.bench.report -->"
PRODUCTS_END = "<!-- products: end -->"
SWEEP_BEGIN = "<!-- sweep: begin, written by python -m pyvecgpu.bench.report -->"
SWEEP_END = "<!-- sweep: end -->"
LADDER = Path("cuda/kernels/matmul/README.md")
LADDER_BEGIN = "<!-- ladder: begin, written by python -m pyvecgpu.bench.report -->"
LADDER_END = "<!-- ladder: end -->"
ACCURACY = Path("docs/accuracy.md")
ACCURACY_BEGIN = "<!-- accuracy: begin, written by python -m pyvecgpu.bench.report -->"
ACCURACY_END = "<!-- accuracy: end -->"
CPU = Path("docs/cpu.md")
WORST = 25  # calls that its page names, large and small
CPU_BEGIN = "<!-- cpu: begin, written by python -m pyvecgpu.bench.report -->"
CPU_END = "<!-- cpu: end -->"
WHY = Path("docs/why.md")
CHOICE_BEGIN = "<!-- choice: begin, written by python -m pyvecgpu.bench.report -->"
CHOICE_END = "<!-- choice: end -->"
DEMO_BEGIN = "<!-- demo: begin, written by python -m pyvecgpu.bench.report -->"
DEMO_END = "<!-- demo: end -->"
MUTANTS_BEGIN = "<!-- mutants: begin, written by python -m pyvecgpu.bench.report -->"
MUTANTS_END = "<!-- mutants: end -->"
NONE = "Nothing has been measured yet."
TITLES = {
    "streaming": "Memory-bound operations, float32",
    "rows": "Softmax, normalisation and cross-entropy, float32",
    "matmul": "Products and dense layers",
    "windows": "Pooling and convolution, float32",
    "shapes": "Products of shapes drawn at random",
    "steps": "Steps of training, float32",
    "sequences": "Attention and recurrent layers",
    "training": "Whole steps of training, by the host's clock",
    "transfers": "From NumPy to the device and back",
    "overhead": "What a call costs the host",
}


def read_reports(folder):
    """Return {path: report} of a folder, in the order of TITLES and then by file name."""
    paths = sorted(folder.glob("*.json"))
    reports = {path: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    names = [
        *TITLES,
        "sweep",
        "cases",
        "tiles",
        "trials",
        "ladder",
        "model",
        "article",
        "lessons",
        "mutants",
        "gates",
        "cpu",
        "accuracy",
        "why",
        "demo",
    ]
    return dict(sorted(reports.items(), key=lambda item: names.index(item[1]["benchmark"])))


def render(reports):
    """Return the tables, which go between BEGIN and END."""
    parts = [
        section(report, front_rows(report), front_goals(report))
        for report in reports.values()
        if report["benchmark"] in TITLES
    ]
    return "\n\n".join(parts) if parts else NONE


def render_products(reports):
    """Return all rows and goals of bench matmul, between PRODUCTS_BEGIN and PRODUCTS_END."""
    parts = [
        section(report, report["rows"], goal_lines(report))
        for report in reports.values()
        if report["benchmark"] in ("matmul", "shapes")
    ]
    return "\n\n".join(parts) if parts else NONE


def render_sweep(reports):
    """Return what bench sweep says of its sections, between SWEEP_BEGIN and SWEEP_END."""
    parts = []
    for report in reports.values():
        if report["benchmark"] == "sweep":
            only = f", only {report['only']}" if report.get("only") else ""
            head = f"**Beside {report['beside']}, seed {report['seed']}{only}**"
            lines = [f"{head} ({about(report)})", ""]
            lines += [f"{losses(report['cases'])}.", ""]
            lines += ["| section | cases | mean | tenth percentile | worst |", "|---" * 5 + "|"]
            for row in report["sections"]:
                ratios = " | ".join(f"{row[key]:.2f}" for key in ("mean", "tenth", "worst"))
                lines.append(f"| {row['name']} | {row['count']} | {ratios} |")
            parts.append("\n".join(lines))
    return "\n\n".join(parts) if parts else NONE


def render_demo(reports):
    """Return what `demo --seeds 10` found of each model, between DEMO_BEGIN and DEMO_END."""
    parts = []
    for report in reports.values():
        if report["benchmark"] == "demo":
            lines = [f"Seeds 0 to {report['seeds'] - 1} ({about(report)}):", ""]
            lines += ["| model | mean accuracy | least | wanted | a run |", "|---" * 5 + "|"]
            for name, model in report["models"].items():
                found = [run["test_accuracy"] for run in model["runs"]]
                mean, least = sum(found) / len(found), min(found)
                seconds = sum(run["train_seconds"] for run in model["runs"]) / len(found)
                cells = f"{mean:.4f} | {least:.4f} | {model['wanted']} | {seconds:.2f} s"
                lines.append(f"| `{name}` | {cells} |")
            parts.append("\n".join(lines))
    return "\n\n".join(parts) if parts else NONE


def render_mutants(reports):
    """Return what `make mutants` found, between MUTANTS_BEGIN and MUTANTS_END."""
    parts = []
    for report in reports.values():
        if report["benchmark"] == "mutants":
            every = report["all"]

            def least(key, areas=report["areas"]):
                rates = {name: row[key] for name, row in areas.items() if row[key] is not None}
                name = min(rates, key=rates.get)
                return f"{rates[name]:.0%} ({name})"

            parts.append(
                f"Of {every['drawn']} small mistakes drawn in the sources (seed {report['seed']}, "
                f"{report['date']}) the tests notice {every['killed']}, and {every['equivalent']} "
                f"make no difference: {every['rate']:.0%} of those that make one, and in each "
                f"area at least {least('rate')}. Before tests were written for those that had "
                f"not been noticed it was {every['first_rate']:.0%}, and at least "
                f"{least('first_rate')}."
            )
    return "\n\n".join(parts) if parts else NONE


def losses(cases):
    """Return in words how many cases of a sweep lost, and what was found of the checked ones."""
    below = [sum(case["ratio"] < ratio for case in cases) for ratio in (0.9, 0.5)]
    checked = sum(case["checked"] for case in cases)
    wrong = sum(bool(case["problem"]) for case in cases)
    return (
        f"{below[0]} of {len(cases):,} cases are below 0.9, {below[1]} below 0.5; "
        f"of {checked} whose results were checked {wrong or 'none'} "
        f"{'are' if wrong > 1 else 'is'} wrong or failed"
    )


def render_cpu(reports):
    """Return what bench cpu says of its classes and goals, between CPU_BEGIN and CPU_END."""
    parts = []
    for report in reports.values():
        if report["benchmark"] != "cpu":
            continue
        cores = f"{report['cpu']['name']} with {report['cpu']['cores']} cores"
        lines = [f"**{cores}** ({about(report)})", ""]
        head = ("large: rows", "missed", "median", "worst", "small: rows", "missed", "median")
        lines += [f"| class | {' | '.join((*head, 'worst'))} |", "|---" * 9 + "|"]
        for one in report["classes"]:
            cells = [one["name"]]
            for size, unit in (("large", "x"), ("small", " us")):
                told = one[size]
                cells += [str(told["count"]), str(told["missed"])]
                values = [told.get(key) for key in ("median", "worst")]
                cells += ["" if value is None else f"{value:.2f}{unit}" for value in values]
            lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join([*lines, "", *goal_lines(report), *missed_lines(report)]))
    return "\n\n".join(parts) if parts else NONE


def missed_lines(report):
    """Return the lines of what misses in bench cpu: calls, each by its worst row, large and small.

    Large rows within BEYOND of NumPy's time, which is what a call costs, are counted alone.
    """
    worst = {}
    for row in report["missed"]:
        is_large = row["n"] >= LARGE and not row["is_small"]
        by = row["ours"] / row["numpy"] if is_large else (row["ours"] - row["numpy"]) * 1e6
        if is_large and row["ours"] - row["numpy"] <= BEYOND:
            continue
        found = worst.setdefault((is_large, row["name"]), (by, row["dtype"], row["n"]))
        worst[is_large, row["name"]] = max(found, (by, row["dtype"], row["n"]))
    large = [row for row in report["missed"] if row["n"] >= LARGE and not row["is_small"]]
    near = sum(row["ours"] - row["numpy"] <= BEYOND for row in large)
    lines = []
    if large:
        lines += [
            "",
            f"Of {len(large)} large rows that miss, {near} take up to 2 us more than NumPy.",
        ]
    for is_large, title, unit in ((True, "large", "x"), (False, "small", " us")):
        found = {name: at for (size, name), at in worst.items() if size == is_large}
        calls = sorted((-by, name, dtype, n) for name, (by, dtype, n) in found.items())
        if calls:
            lines += ["", f"The worst of the {len(calls)} calls that miss, {title}:", ""]
            lines += ["| call | | dtype | elements |", "|---" * 4 + "|"]
            lines += [
                f"| `{name}` | {-by:.1f}{unit} | {dtype} | {n:,} |"
                for by, name, dtype, n in calls[:WORST]
            ]
    return lines


def render_accuracy(reports):
    """Return the largest errors of bench accuracy, between ACCURACY_BEGIN and ACCURACY_END."""
    parts = []
    for report in reports.values():
        if report["benchmark"] != "accuracy":
            continue
        found = {(row["name"], row["dtype"]): row for row in report["rows"]}
        names = list(dict.fromkeys(name for name, _ in found))
        lines = [f"**{report['card']}** ({about(report)})", ""]
        lines += ["| | float32, ulp | at | float64, ulp | float16 | bfloat16 |", "|---" * 6 + "|"]
        for name in names:
            single, double = found[name, "float32"], found.get((name, "float64"))
            cells = [
                f"`{name}`",
                f"{single['ulp']:.2f}",
                ", ".join(f"{x:.9g}" for x in single["at"]),
            ]
            cells.append(f"{double['ulp']:.2f}" if double else "")
            for dtype in ("float16", "bfloat16"):
                half = found.get((name, dtype))
                cells.append(f"{half['inexact']}" if half else "")
            lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join([*lines, "", *goal_lines(report)]))
    return "\n\n".join(parts) if parts else NONE


def render_article(reports):
    """Return the pictures and ratios of bench article, between ARTICLE_BEGIN and ARTICLE_END."""
    parts = []
    for path, report in reports.items():
        if report["benchmark"] == "article":
            report = with_crossovers(report)
            cores = f"{report['cpu']['name']} with {report['cpu']['cores']} cores"
            lines = [f"**{report['card']} and {cores}** ({about(report)}):", ""]
            for name, title in PICTURES.items():
                picture = path.with_suffix("") / f"{name}.png"
                if picture.exists():
                    lines += [f"![{title}]({picture.as_posix()})", ""]
            sentences = [*report["ratios"], *headline_crossovers(report), *report["doubts"]]
            parts.append("\n".join([*lines, *(f"- {sentence}" for sentence in sentences)]))
    return "\n\n".join(parts) if parts else NONE


def render_ladder(reports):
    """Return the table of the steps of bench ladder, between LADDER_BEGIN and LADDER_END."""
    parts = []
    for report in reports.values():
        if report["benchmark"] != "ladder":
            continue
        first = report["rows"][0]["results"]["pyvecgpu"]["seconds"]
        lines = [about(report), "", "| step | where | rate | times the first | error |"]
        lines.append("|---" * 5 + "|")
        for row in report["rows"]:
            result = row["results"]["pyvecgpu"]
            rate = rate_text(row["work"], result["seconds"], row["unit"])
            times, error = first / result["seconds"], result["error"]
            times = f"{times:,.0f}" if times >= 100 else f"{times:.3g}"
            lines.append(f"| {row['name']} | {row['note']} | {rate} | {times} | {error:.1e} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) if parts else NONE


def headline_crossovers(report):
    """Return the sentences of the crossovers with NumPy and with the C loop on all cores."""
    return [
        one["sentence"]
        for one in report["crossovers"]
        if is_baseline(report, one["table"], one["cpu"])
    ]


def section(report, rows, goals):
    """Return a heading with the machine, a table of these rows with their notes, and the goals."""
    lines = [f"**{TITLES[report['benchmark']]}** ({about(report)})", ""]
    if rows:
        lines += [*table(report, rows), *notes(rows), ""]
    return "\n".join([*lines, *goals])


def front_rows(report):
    """Return the rows that README.md has."""
    if report["benchmark"] == "shapes":
        return []  # the means say it
    is_short = report["benchmark"] == "matmul"
    return [row for row in report["rows"] if not is_short or row["name"] in FRONT]


def front_goals(report):
    """Return what README.md says of the goals."""
    return missed_goals(report) if report["benchmark"] == "matmul" else goal_lines(report)


def notes(rows):
    """Return what has to be said of single rows."""
    lines = [f"- {row['name']}: {row['note']}" for row in rows if row["note"]]
    return ["", *lines] if lines else []


def goal_lines(report):
    return [f"- {sentence(goal)}" for goal in report["goals"]]


def missed_goals(report):
    """Return how many goals are met, and a line for each of the others; aims do not count."""
    goals = [goal for goal in report["goals"] if not goal.get("aim")]
    missed = [f"- {sentence(goal)}" for goal in goals if not goal["met"]]
    met = f"{len(goals) - len(missed)} of {len(goals)} goals are met"
    text = f"All {len(report['rows'])} rows are in [{PRODUCTS}]({PRODUCTS}). {met}"
    return [f"{text}; the others:", "", *missed] if missed else [f"{text}."]


def table(report, rows):
    """Return the lines of a table: a column for each library, for products one for its errors."""
    names = list(dict.fromkeys(name for row in report["rows"] for name in row["results"]))
    cell, heads, empty = CELLS.get(report["benchmark"], rate_cell), names, ""
    if report["benchmark"] == "transfers":  # additions: NumPy's are the work of one thread
        heads = ["numpy (one core)" if name == "numpy" else name for name in names]
    if cell is product_cells:
        heads, empty = [f"{name} | error" for name in names], " | "
    lines = ["| " + " | ".join(["", *heads]) + " |"]
    lines.append("|---" * (lines[0].count("|") - 1) + "|")
    for row in rows:
        cells = [cell(row, name) if name in row["results"] else empty for name in names]
        lines.append("| " + " | ".join([row["name"], *cells]) + " |")
    return lines


def rules():
    """Return the rows of the table that chooses kernels, as the simulated card's library has them.

    All libraries have the same.
    """
    library, rows = load("sim"), []
    while (text := library.pvg_plan_rule(len(rows))) is not None:
        rows.append(text.decode().split(" | "))
    return rows


def render_choice(table):
    """Return the table of choice: what is as in the row above is left out."""
    lines = ["| dtype | precision | m, n and k | kernel | code |", "|---|---|---|---|---|"]
    above = ["", ""]
    for row in table:
        dtype, precision, when, kernel, code = row
        same_dtype = dtype == above[0]
        cells = ["" if same_dtype else dtype]
        cells.append("" if same_dtype and precision == above[1] else precision)
        lines.append(f"| {' | '.join([*cells, when])} | `{kernel}` | {code} |")
        above = row
    return "\n".join(lines)


def about(report):
    """Return the card, the driver, the date and the versions in words."""
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    driver = f", driver {report['driver']}" if report.get("driver") else ""
    return f"{report['card']}{driver}; {report['date'][:10]}; {versions}"


def rate_cell(row, name):
    """Return a rate, and for a peer how many times faster pyvecgpu is."""
    result, ours = row["results"][name], row["results"]["pyvecgpu"]
    text = rate_text(row["work"], result["seconds"], row["unit"])
    return text if name == "pyvecgpu" else f"{text} ({result['seconds'] / ours['seconds']:.2f}x)"


def product_cells(row, name):
    """Return a rate and, in a cell of its own, the error."""
    return f"{rate_cell(row, name)} | {row['results'][name]['error']:.1e}"


def time_cell(row, name):
    """Return the time of a call in us, or of an import in ms."""
    seconds = row["results"][name]["seconds"]
    return f"{seconds * 1e3:.0f} ms" if row["name"] == IMPORT_ROW else f"{seconds * 1e6:.2f} us"


def step_cell(row, name):
    """Return the time of a step in ms, and how many times faster ours is, called from Python."""
    result, ours = row["results"][name], row["results"]["pyvecgpu"]
    text = f"{result['seconds'] * 1e3:.3g} ms"
    return text if name == "pyvecgpu" else f"{text} ({result['seconds'] / ours['seconds']:.2f}x)"


CELLS = {
    "matmul": product_cells,
    "shapes": product_cells,
    "overhead": time_cell,
    "training": step_cell,
}


def sentence(goal):
    """Return a goal and what became of it."""
    if goal["measured"] is None:
        return f"{goal['goal']}: not measured"
    met = "met" if goal["met"] else "not met"
    return f"{goal['goal']}: {goal['measured']:.2f}{goal['unit']}, {met}"


def replace(text, block, first=BEGIN, last=END):
    """Return a text with the block between two markers. ValueError: no markers."""
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the text lacks the markers {first!r} and {last!r}")
    return f"{before}{first}\n\n{block}\n\n{last}{after}"


def blocks_of(path, reports):
    """Return (first marker, last marker, block) for each block of a README or a lesson's page."""
    if path == LADDER:
        choice = (CHOICE_BEGIN, CHOICE_END, render_choice(rules()))
        return [(LADDER_BEGIN, LADDER_END, render_ladder(reports)), choice]
    if path == ACCURACY:
        return [(ACCURACY_BEGIN, ACCURACY_END, render_accuracy(reports))]
    if path == CPU:
        return [(CPU_BEGIN, CPU_END, render_cpu(reports))]
    if path == WHY:
        return [(*why_page.MARKERS, why_page.render(reports.values()) or NONE)]
    if path == PRODUCTS:
        return [
            (PRODUCTS_BEGIN, PRODUCTS_END, render_products(reports)),
            (SWEEP_BEGIN, SWEEP_END, render_sweep(reports)),
        ]
    if path.name == "README.md":
        article = render_article(reports)
        return [
            (BEGIN, END, render(reports)),
            (ARTICLE_BEGIN, ARTICLE_END, article),
            (DEMO_BEGIN, DEMO_END, render_demo(reports)),
            (MUTANTS_BEGIN, MUTANTS_END, render_mutants(reports)),
        ]
    logs = [report for report in reports.values() if report["benchmark"] == "lessons"]
    return lesson_pages.blocks(path.stem, logs, NONE)


def main(argv=None):
    """Write the texts, or with --check compare them; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pyvecgpu.bench.report", description="Write measured figures to the texts."
    )
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args(argv)
    reports = read_reports(Path("docs/measured"))
    out_of_date = False
    pages = sorted(Path("docs/lessons").glob("[0-9][0-9].md"))
    pages += [page for page in (ACCURACY, CPU, WHY) if page.exists()]
    for path in [Path("README.md"), PRODUCTS, LADDER, *pages]:
        text = new = path.read_text(encoding="utf-8")
        for first, last, block in blocks_of(path, reports):
            new = replace(new, block, first, last)
        if new != text and arguments.check:
            print(f"{path}: out of date; run python -m pyvecgpu.bench.report", file=sys.stderr)
            out_of_date = True
        elif new != text:
            path.write_text(new, encoding="utf-8")
    return 1 if out_of_date else 0


if __name__ == "__main__":
    sys.exit(main())
