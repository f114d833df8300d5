"""The tables that bench.report makes of measured files: all rows, in cells that fit their heads."""

import pytest
from helpers import ROOT

from pyvecgpu.bench import report

MEASURED = report.read_reports(ROOT / "docs/measured")
RENDERS = {
    "matmul": report.render_products,
    "shapes": report.render_products,
    "sweep": report.render_sweep,
    "accuracy": report.render_accuracy,
    "ladder": report.render_ladder,
    "demo": report.render_demo,
} | {name: report.render for name in report.TITLES if name not in ("matmul", "shapes")}
CPU = {
    "benchmark": "cpu",
    "cpu": {"name": "A core", "cores": 3},
    "card": "none",
    "date": "2026-01-02T03:04:05",
    "versions": {"numpy": "2.0"},
    "classes": [
        {
            "name": "sorting",
            "large": {"count": 12, "missed": 1, "median": 1.25, "worst": 0.5},
            "small": {"count": 7, "missed": 0, "median": 2.5, "worst": 3.75},
        },
        {"name": "nothing", "large": {"count": 0, "missed": 0}, "small": {"count": 0, "missed": 2}},
    ],
    "goals": [
        {"goal": "a", "measured": 1.0, "least": 0.5, "met": True, "unit": "x"},
        {"goal": "b", "measured": None, "least": 0.5, "met": False, "unit": "x"},
    ],
    "missed": [
        dict(zip(("name", "dtype", "n", "is_small", "ours", "numpy"), row, strict=True))
        for row in (
            ("f(a)", "int64", 20_000, False, 2.5e-6, 1e-6),
            ("g(a)", "int64", 20_000, False, 9e-6, 3e-6),
            ("g(a)", "bool", 10**6, False, 8e-6, 2e-6),
            ("h(a)", "bool", 16, False, 8e-6, 2e-6),
            ("h(a)", "bool", 10**6, True, 5e-6, 2e-6),
        )
    ],
}


def tables(text):
    """The tables of a Markdown text: their rows of cells, without the line below the heads."""
    found, rows = [], []
    for line in [*text.split("\n"), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            assert all(set(cell) == {"-"} for cell in rows[1]), "no line below the heads"
            assert len({len(row) for row in rows}) == 1, "rows of different lengths"
            found.append([rows[0], *rows[2:]])
            rows = []
    return found


def names_of(one):
    if "models" in one:
        return [f"`{name}`" for name in one["models"]]
    return [row["name"] for row in one.get("sections", one.get("rows"))]


KEPT = [path for path, one in MEASURED.items() if one["benchmark"] in RENDERS]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_measured_files_are_rendered_whole(path):
    one = MEASURED[path]
    text = RENDERS[one["benchmark"]]({path: one})
    (table,) = tables(text)
    names = list(dict.fromkeys(names_of(one)))
    if one["benchmark"] == "accuracy":
        names = [f"`{name}`" for name in names]
    assert [row[0] for row in table[1:]] == names
    assert report.about(one) in text
    for goal in one.get("goals", []):
        assert f"- {report.sentence(goal)}" in text
    for row in one["rows"] if one["benchmark"] == "accuracy" else ():
        (line,) = [line for line in table if line[0] == f"`{row['name']}`"]
        heads = [head.removesuffix(", ulp") for head in table[0]]
        value = f"{row['ulp']:.2f}" if row["inexact"] is None else str(row["inexact"])
        assert line[heads.index(row["dtype"])] == value
    among_others = RENDERS[one["benchmark"]](MEASURED)
    assert text in among_others
    assert RENDERS[one["benchmark"]]({}) == report.NONE


def test_means_of_the_demo():
    """Of every model the mean and the least of its seeds; and the mean is what was wanted."""
    (one,) = [one for one in MEASURED.values() if one["benchmark"] == "demo"]
    (table,) = tables(report.render_demo({"demo": one}))
    for name, mean, least, wanted, _ in table[1:]:
        found = [run["test_accuracy"] for run in one["models"][name.strip("`")]["runs"]]
        assert len(found) == one["seeds"] == 10
        assert abs(float(mean) - sum(found) / 10) <= 5e-5
        assert abs(float(least) - min(found)) <= 5e-5
        assert float(mean) >= float(wanted)


def test_what_is_said_of_mutants():
    rates = {"a": (0.9, 0.5), "b": (0.755, 0.7), "c": (1.0, 1.0), "d": (None, None)}
    rows = {name: {"rate": now, "first_rate": first} for name, (now, first) in rates.items()}
    every = {"drawn": 30, "killed": 20, "equivalent": 4, "lived": 6}
    every |= {"rate": 20 / 26, "first_rate": 15 / 26}
    one = {"benchmark": "mutants", "date": "2026-01-02", "seed": "7", "all": every, "areas": rows}
    text = report.render_mutants({"mutants.json": one})
    assert "Of 30 small mistakes" in text and "seed 7, 2026-01-02" in text
    assert "notice 20, and 4 make no difference: 77% of those" in text
    assert "at least 76% (b). Before tests" in text and report.render_mutants({}) == report.NONE
    assert text.endswith("it was 58%, and at least 50% (a).")
    assert report.render_mutants(MEASURED) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_classes_of_the_cpu():
    text = report.render_cpu({"cpu.json": CPU})
    table, large, small = tables(text)
    assert len(table[0]) == 9
    assert table[1:] == [
        ["sorting", "12", "1", "1.25x", "0.50x", "7", "0", "2.50 us", "3.75 us"],
        ["nothing", "0", "0", "", "", "0", "2", "", ""],
    ]
    lines = text.split("\n")
    assert lines[0].startswith("**A core with 3 cores** (none; 2026-01-02; numpy 2.0)")
    place = lines.index("Of 3 large rows that miss, 1 take up to 2 us more than NumPy.")
    assert lines[place - 3 : place - 1] == [f"- {report.sentence(goal)}" for goal in CPU["goals"]]
    assert [line for line in lines if line.startswith("The worst of")] == [
        "The worst of the 1 calls that miss, large:",
        "The worst of the 1 calls that miss, small:",
    ]
    assert large[1:] == [["`g(a)`", "4.0x", "bool", "1,000,000"]]
    assert small[1:] == [["`h(a)`", "6.0 us", "bool", "16"]]
    missed = [{**CPU["missed"][1], "name": f"f{n}"} for n in range(report.WORST + 5)]
    *_, long = tables(report.render_cpu({"cpu.json": {**CPU, "missed": missed}}))
    assert len(long) == 1 + report.WORST
    assert report.render_cpu({}) == report.NONE
    assert report.render_cpu({"other.json": {"benchmark": "sweep"}}) == report.NONE
