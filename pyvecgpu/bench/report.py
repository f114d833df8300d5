"""The measured figures in README.md, from docs/measured/*.json: `python -m pyvecgpu.bench.report`.

Run in the folder of the repository. The text between the markers in README.md is replaced by what
the files say that `bench --json` wrote: tables, and from `bench article` its pictures, which lie in
a folder named after the file. With --check it is only compared, and the exit code is 1 if it is out
of date. No figure there is typed by hand.
"""

import argparse
import json
import sys
from pathlib import Path

from .article.summary import ADDITION, PRODUCT
from .overhead import IMPORT_ROW
from .timing import rate_text

BEGIN = "<!-- measured: begin, written by python -m pyvecgpu.bench.report -->"
END = "<!-- measured: end -->"
ARTICLE_BEGIN = "<!-- article: begin, written by python -m pyvecgpu.bench.report -->"
ARTICLE_END = "<!-- article: end -->"
PICTURES = {"vector-addition": ADDITION, "matrix-product": PRODUCT}
NONE = "Nothing has been measured yet."
TITLES = {
    "streaming": "Memory-bound operations, float32",
    "matmul": "Products and dense layers",
    "overhead": "What a call costs the host",
}


def read_reports(folder):
    """Return {path: report} of a folder, in the order of TITLES and then by file name."""
    paths = sorted(folder.glob("*.json"))
    reports = {path: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    names = [*TITLES, "article"]
    return dict(sorted(reports.items(), key=lambda item: names.index(item[1]["benchmark"])))


def render(reports):
    """Return the tables, which go between BEGIN and END."""
    sections = [section(report) for report in reports.values() if report["benchmark"] in TITLES]
    return "\n\n".join(sections) if sections else NONE


def render_article(reports):
    """Return the pictures and ratios of bench article, between ARTICLE_BEGIN and ARTICLE_END."""
    parts = []
    for path, report in reports.items():
        if report["benchmark"] == "article":
            cores = f"{report['cpu']['name']} with {report['cpu']['cores']} cores"
            lines = [f"**{report['card']} and {cores}** ({about(report)}):", ""]
            for name, title in PICTURES.items():
                picture = path.with_suffix("") / f"{name}.png"
                if picture.exists():
                    lines += [f"![{title}]({picture.as_posix()})", ""]
            sentences = [*report["ratios"], *with_numpy(report)]
            parts.append("\n".join([*lines, *(f"- {sentence}" for sentence in sentences)]))
    return "\n\n".join(parts) if parts else NONE


def with_numpy(report):
    """Return the sentences of the crossovers with NumPy."""
    return [one["sentence"] for one in report["crossovers"] if one["cpu"].startswith("NumPy")]


def section(report):
    """Return one report as a heading, a line about the machine, a table and the goals."""
    overhead = report["benchmark"] == "overhead"
    names = list(dict.fromkeys(name for row in report["rows"] for name in row["results"]))
    lines = [f"**{TITLES[report['benchmark']]}** ({about(report)})", ""]
    lines.append("| " + " | ".join(["", *names]) + " |")
    lines.append("|---" * (len(names) + 1) + "|")
    for row in report["rows"]:
        cell = time_cell if overhead else rate_cell
        cells = [cell(row, name) if name in row["results"] else "" for name in names]
        lines.append("| " + " | ".join([row["name"], *cells]) + " |")
    goals = [sentence(goal) for goal in report["goals"]]
    return "\n".join([*lines, "", *(f"- {goal}" for goal in goals)])


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


def time_cell(row, name):
    """Return the time of a call in us, or of an import in ms."""
    seconds = row["results"][name]["seconds"]
    return f"{seconds * 1e3:.0f} ms" if row["name"] == IMPORT_ROW else f"{seconds * 1e6:.2f} us"


def sentence(goal):
    """Return a goal and what became of it."""
    if goal["measured"] is None:
        return f"{goal['goal']}: not measured"
    met = "met" if goal["met"] else "not met"
    return f"{goal['goal']}: {goal['measured']:.2f}{goal['unit']}, {met}"


def replace(text, block, first=BEGIN, last=END):
    """Return README's text with the block between two markers. ValueError: no markers."""
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"README.md lacks the markers {first!r} and {last!r}")
    return f"{before}{first}\n\n{block}\n\n{last}{after}"


def main(argv=None):
    """Write README.md, or with --check compare it; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pyvecgpu.bench.report", description="Write measured figures to README.md."
    )
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args(argv)
    readme = Path("README.md")
    text = readme.read_text(encoding="utf-8")
    reports = read_reports(Path("docs/measured"))
    new = replace(text, render(reports))
    new = replace(new, render_article(reports), ARTICLE_BEGIN, ARTICLE_END)
    if not arguments.check:
        readme.write_text(new, encoding="utf-8")
    elif new != text:
        print("README.md: out of date; run python -m pyvecgpu.bench.report", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
