"""The recorded figures of docs/why.md, from files in docs/measured.

Of a card: lessons 03 and 06, products beside NVIDIA's library, and the way of AlexNet's parameters
to it at the recorded rate. Of any machine what `python -m pyvecgpu learn why --run --json` kept.
"""

import re

from ..learn.networks import ALEXNET
from . import lesson_pages

MARKERS = (
    "<!-- why: begin, written by python -m pyvecgpu.bench.report -->",
    "<!-- why: end -->",
)
PRODUCTS = ("ieee", "tf32", "bfloat16", "float64")
UPLOAD = "upload, 2^28"


def render(reports):
    """Return the block between the markers; "" if nothing was recorded."""
    parts = []
    for report in reports:
        if report["benchmark"] == "lessons" and report["device"] == "gpu":
            parts.append(card(report))
    for report in reports:
        if report["benchmark"] == "matmul":
            parts.append(products(report))
        elif report["benchmark"] == "transfers":
            parts.append(move(report))
        elif report["benchmark"] == "why":
            parts.append(own(report))
    return "\n\n".join(parts)


def card(log):
    """Return what lessons 03 and 06 printed of threads, and of one addition and of many."""
    limits = "\n".join(_output(log, "03"))
    multiprocessors, threads = (
        int(re.search(rf"^  {words}: +(\d+)$", limits, re.MULTILINE)[1])
        for words in ("multiprocessors", "threads that these can hold")
    )
    lines = [
        lesson_pages.where(log),
        "",
        f"- {multiprocessors} multiprocessors hold {threads:,} threads at once, "
        f"{threads // multiprocessors:,} each.",
        "- One addition, and many, as lesson 06 printed them:",
        "",
        "```text",
        *(line for line in _output(log, "06") if re.match(r" +(\d+|elements) ", line)),
        "```",
    ]
    return "\n".join(lines)


def _output(log, number):
    return next(one["output"] for one in log["programs"] if one["name"].startswith(f"{number}_"))


def products(report):
    """Return our products of 4096 x 4096 matrices beside those of cuBLAS, which torch calls."""
    lines = [
        f"Products of 4096 x 4096 matrices on {report['card']} ({report['date'][:10]}):",
        "",
        "| | pyvecgpu | cuBLAS, through torch |",
        "|---|---|---|",
    ]
    found = {row["name"]: row for row in report["rows"]}
    for name in PRODUCTS:
        row = found.get(f"{name} 4096x4096x4096")
        if row is None or "torch" not in row["results"]:
            continue
        rates = [
            f"{row['work'] / row['results'][one]['seconds'] / 1e12:.3g} TFLOP/s"
            for one in ("pyvecgpu", "torch")
        ]
        lines.append(f"| {name} | {' | '.join(rates)} |")
    return "\n".join(lines)


def move(report):
    """Return how long AlexNet's parameters take to a card, at the rate of the largest upload."""
    row = next(row for row in report["rows"] if row["name"] == UPLOAD)
    rate = row["work"] / row["results"]["pyvecgpu"]["seconds"]
    seconds = 4 * ALEXNET.parameters / rate
    return (
        f'`.to("cuda")` to {report["card"]} ({report["date"][:10]}): {rate / 1e9:.3g} GB/s, '
        f"so AlexNet's {ALEXNET.parameters:,} parameters take {seconds * 1e3:.2g} ms."
    )


def own(report):
    """Return what `learn why --run` said on some machine."""
    cpu = report["cpu"]
    lines = [f"{cpu['name']}, {cpu['cores']} cores ({report['date'][:10]}), {report['card']}:", ""]
    lines.append("```text")
    for part in report["parts"]:
        lines += [part["title"], "", *part["lines"], ""]
    lines[-1] = "```"
    return "\n".join(lines)
