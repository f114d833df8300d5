"""What bench article makes of its figures: crossovers, sentences, pictures, a page, README."""

import io
import json
import re
import sys
import types

import numpy as np
import pytest

from pyvecgpu.bench import report
from pyvecgpu.bench.article import budget, page, plots, summary
from pyvecgpu.bench.article.progress import Progress

needs_matplotlib = pytest.mark.needs("matplotlib")
TABLES = (summary.ELEMENT, summary.ADDITION, summary.PRODUCT)
PNG = b"\x89PNG\r\n\x1a\n"


# Crossovers ---------------------------------------------------------------------------------------


def test_crossover_lies_where_the_lines_cross():
    found = summary.crossover("t", "GPU", "NumPy", [(10, 100.0, 10.0), (1000, 100.0, 1000.0)])
    assert abs(found.n - 100) <= 1e-9 and (found.low, found.high) == (10, 1000)
    assert found.sentence() == "t: GPU against NumPy: faster from N = 100 on (between 10 and 1,000)"
    points = [(16, 5.0, 1.0), (32, 5.0, 4.0), (64, 5.0, 25.0), (128, 6.0, 5.0), (256, 7.0, 9.0)]
    found = summary.crossover("t", "GPU", "NumPy", points)
    assert 32 < found.n < 64 and found.slower_again == 128
    assert abs(np.log(found.n / 32) / np.log(2) - np.log(5 / 4) / np.log(25 / 4)) <= 1e-12
    assert found.sentence().endswith(", but slower again at N = 128")


def test_crossover_at_the_edges():
    first = summary.crossover("t", "GPU", "NumPy", [(1000, 1.0, 2.0), (10000, 1.0, 3.0)])
    assert first.low is None and "from the first row, N = 1,000, on" in first.sentence()
    never = summary.crossover("t", "GPU", "NumPy", [(1000, 2.0, 2.0), (10000, 3.0, 2.0)])
    assert never.n is None and never.sentence().endswith("not faster in any row")
    assert summary.crossover("t", "GPU", "NumPy", []) is None


def made_up():
    """Return a report as a GPU would give it, with cells left out."""

    def row(table, n, results, omitted=(), **others):
        results = {name: {"seconds": taken} for name, taken in results.items()}
        reasons = dict.fromkeys(omitted, "it would exceed the 25 s of a row")
        base = {"name": f"{table}, N = {n:,}", "table": table, "n": n, "work": n, "bytes": 12 * n}
        return base | {"note": "", "results": results, "omitted": reasons} | others

    def ceiling(table, where, unit, work):
        return row(table, 0, {where: 1.0}, unit=unit, work=work, name=f"{table}, {where}")

    columns = {
        "C loop, one core": ("loop", "float32"),
        "NumPy float32": ("numpy", "float32"),
        "GPU kernel float32": ("kernel", "float32"),
        "GPU with transfers float32": ("transfers", "float32"),
    }
    columns = {name: {"kind": kind, "dtype": dtype} for name, (kind, dtype) in columns.items()}
    loop, numpy, kernel, transfers = columns
    rows = [
        ceiling("bandwidth", "CPU, all cores", "B/s", 1e11),
        ceiling("bandwidth", "GPU", "B/s", 4e12),
        ceiling("peak", "GPU", "FLOP/s", 6e13),
        row(summary.ELEMENT, 1, {loop: 1e-9, numpy: 3e-7, kernel: 2e-6, transfers: 2e-5}),
    ]
    for n in (10**3, 10**6, 10**9):
        times = {loop: n * 1e-9, numpy: n * 1e-9, kernel: 2e-6 + n * 3e-12, transfers: n * 2e-9}
        rows.append(row(summary.ADDITION, n, times))
    for n in (16, 512, 16384):
        times = {loop: n**3 * 1e-10, numpy: 1e-7 + n**3 * 1e-12, kernel: 3e-6 + n**3 * 4e-14}
        times[transfers] = 3e-5 + n**2 * 1e-9
        omitted = [loop] if n == 16384 else []
        times = {name: taken for name, taken in times.items() if name not in omitted}
        rows.append(row(summary.PRODUCT, n, times, omitted, work=2 * n**3, bytes=12 * n * n))
    about = {
        "benchmark": "article",
        "quick": False,
        "date": "2026-01-31T10:00:00+00:00",
        "device": "cuda:0",
        "card": "A Card <9000>",
        "driver": "580",
        "versions": {"numpy": "2"},
        "cpu": {"name": "A CPU & more", "cores": 16, "blas": "a-blas 1", "cores_used_by_numpy": 15},
        "limits": vars(budget.LIMITS["full"]),
        "notes": [],
        "columns": dict.fromkeys(TABLES, columns),
        "rows": rows,
    }
    return summary.with_crossovers(about)


def test_cells_left_out_are_not_extrapolated():
    figures = made_up()
    assert summary.series(figures, summary.PRODUCT, "C loop, one core")[-1][0] == 512
    text = "\n".join(summary.lines(figures))
    assert "-: it would exceed the 25 s of a row." in text
    assert "matrix product, N = 16,384: GPU kernel float32 25x NumPy float32" in text
    assert "transfers float32 against NumPy float32 (one core): not faster in any row" in text
    found = {(c["table"], c["gpu"], c["cpu"]): c for c in figures["crossovers"]}
    kernel = found[summary.PRODUCT, "GPU kernel float32", "C loop, one core"]
    assert (kernel["low"], kernel["high"]) == (16, 512)


def test_times_for_people():
    texts = {5e-9: "5 ns", 1.234e-6: "1.23 us", 9.996e-7: "1 us", 0.25: "250 ms", 2.5: "2.5 s"}
    texts |= {1234.5: "1234 s", None: "-", 999.4e-6: "999 us", 0.9996: "1 s"}
    for seconds, text in texts.items():
        assert summary.time_text(seconds) == text
    assert [summary.rounded(n) for n in (7.4, 110.6, 34567.0, 1e9)] == [
        "7",
        "110",
        "35,000",
        "1,000,000,000",
    ]


def test_headlines_name_what_they_are_against():
    """NumPy with its cores, and the C loop on all of them beside it."""
    figures = made_up()
    for row in figures["rows"]:
        if row["table"] in (summary.ADDITION, summary.PRODUCT):
            one = row["results"].get("C loop, one core")
            row["results"] |= {summary.SHARED_LOOP: {"seconds": one["seconds"] / 8}} if one else {}
    for columns in figures["columns"].values():
        columns[summary.SHARED_LOOP] = {"kind": "loop", "dtype": "float32"}
    figures = summary.with_crossovers(figures)
    addition = "vector addition, N = 1,000,000,000: GPU"
    assert figures["ratios"] == [
        f"{addition} kernel float32 333x NumPy float32 (one core)",
        f"{addition} kernel float32 41.6x C loop, all cores",
        f"{addition} with transfers float32 0.5x NumPy float32 (one core)",
        f"{addition} with transfers float32 0.0625x C loop, all cores",
        "matrix product, N = 16,384: GPU kernel float32 25x NumPy float32 (15 of 16 cores)",
        "matrix product, N = 512: GPU kernel float32 200x C loop, all cores",
        *figures["ratios"][6:],
    ]
    text = "\n".join(report.headline_crossovers(figures))
    for against in ("NumPy float32 (one core)", "NumPy float32 (15 of 16 cores)", "C loop, all"):
        assert f"against {against}" in text
    assert "C loop, one core" not in text


# Doubts -------------------------------------------------------------------------------------------


def with_ceilings(figures, **rates):
    """Return a report with other rates of the CPU's ceilings, such as peak_one_core=1e11."""
    names = {"one_core": "CPU, one core", "all_cores": "CPU, all cores"}
    rows = figures["rows"]
    for key, rate in rates.items():
        table, _, where = key.partition("_")
        name = names[where]
        rows = [r for r in rows if r["table"] != table or name not in r["results"]]
        results = {name: {"seconds": 1.0}}
        rows.append(rows[0] | {"table": table, "work": rate, "results": results})
    return summary.with_crossovers(figures | {"rows": rows})


def test_a_quiet_machine_leaves_no_doubt():
    figures = with_ceilings(made_up(), peak_one_core=1e11, peak_all_cores=1.5e12)
    assert figures["doubts"] == [] and "Doubtful" not in "\n".join(summary.lines(figures))


def test_a_noisy_machine_is_told():
    slow = with_ceilings(made_up(), peak_one_core=1e11, peak_all_cores=8e10)
    assert len(slow["doubts"]) == 1
    assert "peak of all cores, 80 GFLOP/s, is below that of one core, 0.1" in slow["doubts"][0]
    slow = with_ceilings(made_up(), bandwidth_one_core=2e11)
    assert "bandwidth of all cores, 0.1 TB/s, is below" in slow["doubts"][0]
    low = with_ceilings(made_up(), bandwidth_all_cores=1e10)
    (doubt,) = low["doubts"]
    assert "Above the roof of CPU, all cores" in doubt and "NumPy float32 (matrix product)" in doubt
    lowest = "\n".join(summary.lines(low))
    assert lowest.endswith("measure again.") and "measure again." in page.heading(low)


def test_without_a_gpu_nothing_is_said_of_one():
    figures = made_up()
    for row in figures["rows"]:
        row["results"] = {k: v for k, v in row["results"].items() if not k.startswith("GPU")}
    figures["rows"] = [row for row in figures["rows"] if row["results"]]
    for table in TABLES:
        columns = figures["columns"][table]
        figures["columns"][table] = {k: v for k, v in columns.items() if not k.startswith("GPU")}
    figures = summary.with_crossovers(figures | {"device": "cpu"})
    text = page.render(figures, dict.fromkeys(page.PICTURES, PNG))
    assert "GPU" not in without_data(text) and "transfers" not in text
    assert "C loops and NumPy on this CPU" in text
    text = page.render(made_up(), dict.fromkeys(page.PICTURES, PNG))
    assert "Where a GPU pays off" in text and "A ring marks where a GPU" in text


# Pictures and the page ----------------------------------------------------------------------------


@needs_matplotlib
def test_the_page_needs_no_network():
    figures = made_up()
    drawn = plots.draw(figures)
    assert all(png.startswith(PNG) for png in drawn.values())
    text = page.render(figures, drawn)
    assert not re.search(r"https?:|//|url\(|@import|<script|<link|<iframe", without_data(text))
    assert re.findall(r"<img src=\"([^,]*),", text) == ["data:image/png;base64"] * 3
    assert re.findall(r"\b(?:href|srcset|action)=", text) == []
    assert "A Card &lt;9000&gt;" in text and "A CPU &amp; more" in text
    assert "<td title=" in text and "2026-01-31" in text
    for one in figures["crossovers"]:
        assert one["sentence"] in text


def without_data(text):
    return re.sub(r"base64,[A-Za-z0-9+/=]*", "", text)


def test_each_picture_is_explained_in_two_sentences():
    for _, *explanations in page.PICTURES.values():
        assert len(explanations) == 2  # with a GPU, without one
        for explanation in explanations:
            assert len(re.findall(r"\.(?: |$)", explanation)) == 2


@needs_matplotlib
def test_crossovers_are_drawn():
    figures = made_up()
    figure = plots.times(figures, summary.PRODUCT, "N")
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    numpy = "NumPy float32 (15 of 16 cores)"
    assert any(f"GPU kernel float32 beats {numpy} from N = " in text for text in texts)
    assert any("GPU with transfers float32 beats NumPy float32" in text for text in texts)
    rings = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    crossing = [c for c in figures["crossovers"] if c["table"] == summary.PRODUCT and c["low"]]
    assert sorted(ring.get_xdata()[0] for ring in rings) == sorted(c["n"] for c in crossing)
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert any("A Card" in text and "2026-01-31" in text for text in texts)


@needs_matplotlib
def test_the_roofline_has_both_ceilings():
    (axes,) = plots.roofline(made_up()).axes
    texts = " ".join(text.get_text() for text in axes.texts)
    assert "GPU: 60 TFLOP/s, multiply-adds in registers" in texts and "GPU: 4 TB/s" in texts
    assert "CPU, all cores: 2 TFLOP/s, the fastest product" in texts


# Progress, README ---------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("module", ["tqdm", "no_such_module"])
def test_progress(module, capsys, monkeypatch):
    if module != "tqdm":
        monkeypatch.setitem(__import__("sys").modules, "tqdm", None)
    terminal = Terminal()
    progress = Progress(2, terminal)
    for what in ("first", "second"):
        progress.advance(what)
        progress.say(f"line {what}")
    before = len(terminal.getvalue())
    progress.close()
    shown = terminal.getvalue()
    assert shown[before:], "the bar is still there"
    assert "second" in shown and "2/2" in shown
    assert capsys.readouterr().out == "line first\nline second\n"
    file = io.StringIO()
    progress = Progress(1, file)
    progress.advance("first")
    progress.close()
    assert file.getvalue() == ""


def test_a_bar_of_tqdm(monkeypatch):
    """It is told what a bar is told, by a stand-in where tqdm is not installed."""
    calls = []

    class Bar:
        def __init__(self, **options):
            calls.append(("made", options["total"], options["leave"]))

        def __getattr__(self, name):
            return lambda *given, **options: calls.append((name, *given))

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    progress = Progress(2, Terminal())
    progress.advance("first")
    progress.tell("a wait")
    progress.close()
    assert calls == [
        ("made", 2, False),
        ("set_description_str", "first"),
        ("update",),
        ("set_description_str", "a wait"),
        ("close",),
    ]


def test_the_article_in_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert report.render_article({}) == report.NONE
    folder = tmp_path / "docs" / "measured"
    (folder / "article-card").mkdir(parents=True)
    (folder / "article-card" / "vector-addition.png").write_bytes(PNG)
    (folder / "article-card.json").write_text(json.dumps(made_up()))
    reports = report.read_reports(report.Path("docs/measured"))
    assert report.render(reports) == report.NONE
    text = report.render_article(reports)
    assert "![vector addition](docs/measured/article-card/vector-addition.png)" in text
    assert "matrix-product.png" not in text and "2026-01-31" in text and "A Card" in text
    assert "GPU kernel float32 25x NumPy float32" in text


def test_the_faster_of_loop_and_product_is_the_ceiling():
    """NumPy may have wider vectors than the loop that measures it; tensor cores do not count."""
    report = made_up()
    kernel = report["columns"][summary.PRODUCT]["GPU kernel float32"]
    assert summary.peak(report, summary.GPU) == (6e13, "multiply-adds in registers")
    kernel["dtype"] = "ieee"
    fastest = max(
        rate for _, rate in summary.roofline_points(report, summary.PRODUCT, "GPU kernel float32")
    )
    (row,) = (row for row in report["rows"] if row["table"] == "peak")
    row["work"] = fastest / 2
    assert summary.peak(report, summary.GPU) == (fastest, "the fastest product")
    kernel["dtype"] = "float32"  # by tensor cores
    assert summary.peak(report, summary.GPU) == (fastest / 2, "multiply-adds in registers")
