"""The article's pictures, from a report: the times of both problems with crossovers, the roofline.

matplotlib is needed here alone. Figures are made without pyplot, so no window and no backend.
"""

import importlib.util
import io
import math

from ..timing import rate_text
from . import summary
from .ceilings import ALL_CORES, BANDWIDTH, GPU

# Colours that stay apart for colour-blind readers; solid lines are measured on the CPU.
STYLES = {
    "loop": [("#999999", "s"), ("#555555", "D")],
    "numpy": [("#0072b2", "o"), ("#56b4e9", "v")],
    "kernel": [
        ("#d55e00", "^"),
        ("#a6761d", "P"),
        ("#b22222", "<"),
        ("#cc79a7", ">"),
        ("#e69f00", "*"),
        ("#882255", "p"),
        ("#661100", "h"),
    ],
    "transfers": [("#009e73", "X")],
}
ROOFS = {ALL_CORES: STYLES["numpy"][0][0], GPU: STYLES["kernel"][0][0]}
SIZE = (9.6, 6.4)  # inches
DPI = 110
LEGEND = {"framealpha": 1.0, "edgecolor": "none", "alignment": "left"}


def require():
    """ModuleNotFoundError, with what to do, unless matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError(
            "pictures need matplotlib, which is not installed here: pip install matplotlib"
        )


def draw(report):
    """Return {name: PNG as bytes}."""
    require()
    figures = {
        "vector-addition": times(report, summary.ADDITION, "elements N of a vector"),
        "matrix-product": times(report, summary.PRODUCT, "rows N of N x N matrices"),
        "roofline": roofline(report),
    }
    return {name: png(figure) for name, figure in figures.items()}


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()


def new_figure(report, title, xlabel, ylabel):
    """Return (figure, axes) with logarithmic axes and the machine below the title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(f"{title}\n", fontsize=14, loc="left")
    axes.text(0, 1.015, summary.machine_line(report), transform=axes.transAxes, color="#444444")
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def styles(report, table):
    """Return {column: (colour, marker)}."""
    seen, chosen = {}, {}
    for name, column in report["columns"][table].items():
        kind = column["kind"]
        number = seen[kind] = seen.get(kind, -1) + 1
        chosen[name] = STYLES[kind][number % len(STYLES[kind])]
    return chosen


# Times --------------------------------------------------------------------------------------------


def times(report, table, xlabel):
    """Return the figure of a table: time over N, a line for each column, crossovers marked."""
    from matplotlib.ticker import FuncFormatter

    title = summary.TITLES[table].partition(":")[0]
    figure, axes = new_figure(report, f"{title}", xlabel, "time of one call")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: summary.time_text(value)))
    drawn = styles(report, table)
    for name, (colour, marker) in drawn.items():
        points = summary.series(report, table, name)
        on_gpu = report["columns"][table][name]["kind"] in ("kernel", "transfers")
        axes.plot(
            *zip(*points, strict=True) if points else ((), ()),
            color=colour,
            marker=marker,
            markersize=6,
            linewidth=2,
            linestyle="--" if on_gpu else "-",
            label=summary.who(report, table, name),
        )
    axes.legend(loc="best", **LEGEND)  # the upper left, as the lines climb, unless times are odd
    mark_crossovers(axes, report, table, drawn)
    return figure


def mark_crossovers(axes, report, table, drawn):
    """Ring every crossover; for those with NumPy also a line down to N, and for these and the C
    loop on all cores a sentence each."""
    about = report["columns"][table]
    sentences = []
    for found in report["crossovers"]:
        if found["table"] != table:
            continue
        colour = drawn[found["gpu"]][0]
        with_numpy = about[found["cpu"]]["kind"] == "numpy"
        if summary.is_baseline(report, table, found["cpu"]):
            sentences.append((crossover_text(report, found), colour))
        if found["low"] is not None:
            at = found["n"], crossing_height(report, found)
            axes.plot(*at, "o", markersize=13, markerfacecolor="none", markeredgecolor=colour)
            if with_numpy:
                axes.axvline(found["n"], color=colour, linewidth=1, linestyle=":", zorder=0.5)
    for line, (sentence, colour) in enumerate(reversed(sentences)):
        place = {"transform": axes.transAxes, "ha": "right", "fontsize": 9}
        axes.text(0.99, 0.02 + 0.035 * line, sentence, color=colour, **place)


def crossover_text(report, found):
    """Return a crossover in a few words."""
    cpu = summary.who(report, found["table"], found["cpu"])
    if found["n"] is None:
        return f"{found['gpu']} does not beat {cpu}"
    again = found["slower_again"]
    but = "" if again is None else f", but not at {again:,}"
    return f"{found['gpu']} beats {cpu} from N = {summary.rounded(found['n'])}{but}"


def crossing_height(report, found):
    """Return the time at a crossover, on the line between the rows beside it."""
    points = dict(summary.series(report, found["table"], found["gpu"]))
    low, high = found["low"], found["high"]
    part = math.log(found["n"] / low) / math.log(high / low)
    return points[low] ** (1 - part) * points[high] ** part


# Roofline -----------------------------------------------------------------------------------------


def roofline(report):
    """Return the figure: operations a second over operations a byte, below both ceilings."""
    from matplotlib.ticker import FuncFormatter

    figure, axes = new_figure(
        report,
        "Roofline, float32: what bounds the speed",
        "arithmetic intensity: operations for each byte that must move, FLOP/B",
        "speed",
    )
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: rate_label(value)))
    axes.set_xlim(0.03, 6000)
    for where, colour in ROOFS.items():
        draw_roof(axes, report, where, colour)
    for table in (summary.ADDITION, summary.PRODUCT):
        drawn = styles(report, table)
        for name, column in report["columns"][table].items():
            is_drawn = column["kind"] != "transfers"
            if is_drawn and summary.is_in_roofline(report, table, name):
                draw_points(axes, report, table, name, drawn[name])
    sides = [row["n"] for row in summary.rows_of(report, summary.PRODUCT)]
    title = f"Products of N = {sides[0]:,} to {sides[-1]:,}"
    place = "upper left" if summary.has_gpu(report) else "lower right"  # one roof is lower
    axes.legend(*axes.get_legend_handles_labels(), title=title, loc=place, **LEGEND)
    note_addition(axes, report)
    for where, colour in ROOFS.items():
        label_roof(figure, axes, report, where, colour)
    return figure


def note_addition(axes, report):
    """Say beside the lowest point of the additions what they are."""
    columns = summary.columns_of(report, summary.ADDITION, "loop", "numpy", "kernel")
    points = [summary.roofline_points(report, summary.ADDITION, name)[-1:] for name in columns]
    points = [one for found in points for one in found]
    if not points:
        return
    lowest = min(points, key=lambda point: point[1])
    text = "addition of the longest vectors"
    axes.annotate(text, lowest, (9, 0), textcoords="offset points", va="center", fontsize=9)


def rate_label(value):
    """Return FLOP/s for an axis: "10 GFLOP/s"."""
    for unit, scale in (("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("MFLOP/s", 1e6)):
        if value >= 0.999 * scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} FLOP/s"


def draw_roof(axes, report, where, colour):
    """Draw min(peak, bandwidth * intensity) of the CPU or the GPU, if both were measured."""
    bandwidth = summary.ceiling(report, BANDWIDTH, where)
    peak, _ = summary.peak(report, where)
    if bandwidth is None or peak is None:
        return
    left, right = axes.get_xlim()
    axes.plot(
        [left, peak / bandwidth, right],
        [bandwidth * left, peak, peak],
        color=colour,
        linewidth=2.5,
    )


def label_roof(figure, axes, report, where, colour):
    """Write a roof's figures above it, where no point can be: along the slope and the flat part."""
    bandwidth = summary.ceiling(report, BANDWIDTH, where)
    peak, how = summary.peak(report, where)
    if bandwidth is None or peak is None:
        return
    figure.draw_without_rendering()  # now it is known how steep the slope is in the picture
    low, high = axes.transData.transform([(0.1, 0.1 * bandwidth), (1, bandwidth)])
    angle = math.degrees(math.atan2(high[1] - low[1], high[0] - low[0]))
    text = f"{where}: {rate_text(bandwidth, 1, 'B/s')}"
    along = {"rotation": angle, "rotation_mode": "anchor", "ha": "center", "color": colour}
    place = {"textcoords": "offset points"}
    axes.annotate(text, (0.6, 0.6 * bandwidth), (-4, 5), **place, **along)
    text = f"{where}: {rate_label(peak)}, {how}"
    axes.annotate(text, (axes.get_xlim()[1], peak), (0, 7), **place, color=colour, ha="right")


def draw_points(axes, report, table, name, style):
    """Draw what a column reached: each product, and the addition of the longest vectors."""
    points = summary.roofline_points(report, table, name)
    is_product = table == summary.PRODUCT
    points = points if is_product else points[-1:]
    if points:
        colour, marker = style
        axes.plot(
            *zip(*points, strict=True),
            color=colour,
            marker=marker,
            markersize=6 if is_product else 9,
            linewidth=1,
            label=summary.who(report, table, name) if is_product else None,
        )
