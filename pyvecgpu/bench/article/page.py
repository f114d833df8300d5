"""The report of `bench article` as one HTML file: tables, pictures inside of it, no network."""

import base64
from html import escape

from ..timing import rate_text
from . import summary

# name: heading, what the picture shows, and what it shows where there is no GPU
PICTURES = {
    "vector-addition": (
        "Vector addition",
        "Each line is the time of adding two vectors, on axes where each step is ten times the one "
        "before: on the left a line is flat, because starting the work costs more than the work, "
        "and on the right it climbs, because memory sets the pace. "
        "A ring marks where a GPU's line falls below a CPU's, which the kernel alone reaches soon, "
        "while a GPU that must first fetch its operands and then bring the result back moves three "
        "numbers over a slow road for a single addition.",
        "Each line is the time of adding two vectors, on axes where each step is ten times the one "
        "before: on the left a line is flat, because starting the work costs more than the work, "
        "and on the right it climbs, because memory sets the pace. "
        "All cores begin later than one, as they have to be woken, and gain on the right, until "
        "the memory that they share has no more to give.",
    ),
    "matrix-product": (
        "Matrix product",
        "Each line is the time of one product of two N x N matrices: twice the N is four times the "
        "data and eight times the work, so the lines climb steeply and the cost of the transfers "
        "disappears in them. "
        "A ring marks where a GPU's line falls below a CPU's, and from there on the distance grows "
        "until the GPU is full: this is why layers of networks, which are products, run on GPUs.",
        "Each line is the time of one product of two N x N matrices: twice the N is four times the "
        "data and eight times the work, so the lines climb steeply. "
        "Between the C loop and NumPy lies what its library does with the caches, the vector "
        "instructions and the cores of the same processor.",
    ),
    "roofline": (
        "Roofline",
        *[
            "A roof shows what a processor can do at best: its slope, the measured bandwidth, is "
            "the limit where few operations are done on each byte, and its flat part, the measured "
            "peak, where many are. "
            "The addition does one operation for twelve bytes and stays far to the left under the "
            "slope, whereas products move to the right as they grow and come near the flat part."
        ]
        * 2,
    ),
}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #ffffff; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid #dddddd; text-align: right; }
th { vertical-align: bottom; border-bottom: 2px solid #888888; }
td.fastest { font-weight: 600; background: #e7f3ec; }
img { width: 100%; height: auto; } .scroll { overflow-x: auto; }
.small { color: #555555; font-size: 0.9rem; }
"""


def render(report, pictures):
    """Return the page; pictures: {name: PNG as bytes}, as plots.draw gives them."""
    title = f"{about(report)}: {summary.machine_line(report)}"
    parts = [heading(report), answers(report)]
    for name, (heading_text, *explanations) in PICTURES.items():
        explanation = explanations[0 if summary.has_gpu(report) else 1]
        parts.append(f"<h2>{escape(heading_text)}</h2>\n<p>{escape(explanation)}</p>")
        parts.append(image(pictures[name], heading_text))
        if name == "vector-addition":
            parts += [table(report, summary.ADDITION), table(report, summary.ELEMENT)]
        elif name == "matrix-product":
            parts.append(table(report, summary.PRODUCT))
        else:
            parts.append(ceilings(report))
    parts.append(how(report))
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def image(png, text):
    data = base64.b64encode(png).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(text)}">'


def about(report):
    """Return the title, which promises no more than was measured."""
    return "Where a GPU pays off" if summary.has_gpu(report) else "C loops and NumPy on this CPU"


def heading(report):
    """Return the title, who was measured, and what is to be known before the figures are read."""
    warnings = [*report["notes"], *report["doubts"]]
    notes = "".join(f"<p><strong>{escape(note)}</strong></p>" for note in warnings)
    return (
        f"<h1>{about(report)}</h1>\n"
        f"<p>{escape(summary.machine_line(report))}. Every number was measured in one run of "
        f"<code>python -m pyvecgpu bench article</code> on this machine.</p>\n{notes}"
    )


def answers(report):
    """Return crossovers and ratios as lists."""
    parts = []
    if report["crossovers"]:
        parts.append("<h2>From which N on is the GPU faster?</h2>")
        parts.append(listed(one["sentence"] for one in report["crossovers"]))
    if report["ratios"]:
        parts.append("<h2>And how much faster, at the largest N that both did?</h2>")
        parts.append(listed(report["ratios"]))
    return "\n".join(parts)


def listed(sentences):
    items = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>\n{items}\n</ul>"


def table(report, name):
    """Return a table of times; the fastest cell of each row is marked."""
    columns = summary.columns_of(report, name)
    heads = ["N", *(summary.who(report, name, column) for column in columns)]
    lines = ["".join(f"<th>{escape(text)}</th>" for text in heads)]
    for row in summary.rows_of(report, name):
        seconds = {column: summary.seconds(row, column) for column in columns}
        measured = [taken for taken in seconds.values() if taken is not None]
        cells = [f"<td>{row['n']:,}</td>"]
        for column in columns:
            taken = seconds[column]
            mark = ' class="fastest"' if measured and taken == min(measured) else ""
            why = row["omitted"].get(column)
            why = f' title="{escape(why)}"' if why else ""
            cells.append(f"<td{mark}{why}>{escape(summary.time_text(taken))}</td>")
        lines.append("".join(cells))
    rows = "\n".join(f"<tr>{line}</tr>" for line in lines)
    caption = f'<p class="small">{escape(summary.TITLES[name])}</p>'
    return f'{caption}\n<div class="scroll"><table>\n{rows}\n</table></div>'


def ceilings(report):
    """Return the table of measured ceilings."""
    rows = ["<th>ceiling</th><th>measured</th><th></th>"]
    for row in report["rows"]:
        if row["table"] in ("bandwidth", "peak"):
            (result,) = row["results"].values()
            rate = rate_text(row["work"], result["seconds"], row["unit"])
            cells = (row["name"], rate, row["note"])
            rows.append("".join(f"<td>{escape(text)}</td>" for text in cells))
    lines = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="scroll"><table>\n{lines}\n</table></div>'


def how(report):
    """Return how it was measured, the versions, and why cells are missing."""
    omitted = [
        f"{reason}: {'; '.join(cells)}" for reason, cells in summary.omissions(report).items()
    ]
    missing = f"<p>A cell shows - where</p>{listed(omitted)}" if omitted else ""
    return (
        f"<h2>How it was measured</h2>\n{listed(summary.method(report))}\n"
        f'<div class="small">{missing}</div>'
    )
