"""The pages of the lessons: complete, linked, up to date, with pictures that draw.py draws.

Also cuda/lessons/run.py, which runs the lessons and keeps what they print, on programs of our own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from helpers import ROOT

from pyvecgpu.bench import lesson_pages, report

PAGES, SOURCES = ROOT / "docs/lessons", ROOT / "cuda/lessons"
LESSONS = sorted(path.stem for path in SOURCES.glob("*.cu"))
NUMBERS = [lesson[:2] for lesson in LESSONS]
LOGS = sorted((ROOT / "docs/measured").glob("lessons-*.json"))
SECTIONS = ["What to look for", "What it printed", "Things to try", "Answers"]
MORE = {"17": ["What the tape does"]}  # sections that one page has besides

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"<!-- (\w+): begin.*?<!-- \1: end -->", re.DOTALL)
CLOSED = re.compile(r"\[[^]]*\]\(https:[^)]*\)")  # a fact with its source
MEASUREMENT = re.compile(
    r"\d ?(?:[mun]?s|[GT]B/s|[GT]FLOP/s|times\s(?:as|faster|slower))\b|\dx\b|\d ?%"
)


def page(number):
    return (PAGES / f"{number}.md").read_text(encoding="utf-8")


def section(number, title):
    return page(number).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


# The pages ----------------------------------------------------------------------------------------


def test_every_lesson_has_a_page_in_the_index():
    assert sorted(path.stem for path in PAGES.glob("[0-9]*.md")) == NUMBERS
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\d\d) ([^]]+)\]\((\d\d)\.md\) \|", index, re.MULTILINE)
    titles = [page(number).splitlines()[0] for number in NUMBERS]
    assert [f"# Lesson {number}: {title}" for number, title, _ in listed] == titles
    assert [number for *_, number in listed] == NUMBERS


@pytest.mark.parametrize("lesson", LESSONS)
def test_page_is_linked(lesson):
    number = lesson[:2]
    links = LINK.findall(page(number))
    folder = "../../cuda/lessons"
    needed = [f"{folder}/{lesson}.cu", f"{folder}/solutions/{lesson}.cu", f"{number}.svg"]
    place = NUMBERS.index(number)
    neighbours = NUMBERS[max(0, place - 1) : place] + NUMBERS[place + 1 : place + 2]
    for link in [*needed, "README.md", *(f"{other}.md" for other in neighbours)]:
        assert link in links, link
    for link in links:
        assert link.startswith("https://") or (PAGES / link).exists(), link
    titles = re.findall(r"^## (.+)$", BLOCK.sub("", page(number)), re.MULTILINE)
    more = MORE.get(number, [])
    assert titles == [*SECTIONS[:2], *more, *SECTIONS[2:]]


@pytest.mark.parametrize("number", NUMBERS)
def test_things_to_try_have_answers(number):
    """In their order; the last thing, the exercises, has the solutions."""
    things = re.findall(r"^- .+(?:\n  .+)*", section(number, SECTIONS[2]), re.MULTILINE)
    answers = re.findall(r"^(\d+)\. ", section(number, SECTIONS[3]), re.MULTILINE)
    assert things[-1].startswith("- Then do the two exercises")
    assert answers == [str(i) for i in range(1, len(things))] and answers


@pytest.mark.parametrize("lesson", LESSONS)
def test_page_quotes_what_is_printed(lesson):
    """A point of "what to look for" that begins with `code` quotes the output; ... is left out."""
    texts = [(SOURCES / f"{lesson}.cu").read_text(encoding="utf-8")]
    for path in LOGS:
        (program,) = [p for p in json.loads(path.read_text())["programs"] if p["name"] == lesson]
        texts.append("\n".join(program["output"]))
    points = section(lesson[:2], SECTIONS[0])
    quotes = re.findall(r"^- `([^`]+)`", points, re.MULTILINE)
    assert quotes or "line `measured:`" in points
    for quote in quotes:
        parts = [part for part in quote.split("...") if part]
        assert any(all(part in text for part in parts) for text in texts), quote


@pytest.mark.parametrize("number", NUMBERS)
def test_no_figure_is_typed_by_hand(number):
    prose = CLOSED.sub("", BLOCK.sub("", page(number)))
    assert not MEASUREMENT.search(prose), MEASUREMENT.search(prose)


def test_a_figure_typed_by_hand_is_found():
    for text in ("takes 3 us", "3.5 ms", "12 GB/s", "20% more", "2.4 times as fast", "is 4x that"):
        assert MEASUREMENT.search(text), text
    for text in ("4 x 4 elements", "step 3 uses", "is read 32 times", "2 steps"):
        assert not MEASUREMENT.search(text), text


# The pictures -------------------------------------------------------------------------------------


def test_pictures_are_those_of_the_script(tmp_path):
    command = [sys.executable, "-B", str(PAGES / "draw.py"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_bytes() for path in PAGES.glob("*.svg")}
    assert sorted(drawn) == [f"{number}.svg" for number in NUMBERS]


@pytest.mark.parametrize("number", NUMBERS)
def test_words_are_inside_of_the_picture(number):
    svg = ElementTree.parse(PAGES / f"{number}.svg").getroot()
    width, height = float(svg.get("width")), float(svg.get("height"))
    texts = [element for element in svg if element.tag.endswith("}text")]
    assert len(texts) >= 3
    for text in texts:
        x, y, size = (float(text.get(key)) for key in ("x", "y", "font-size"))
        length = 0.56 * size * len(text.text)  # in a wide font
        left = x - length * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        assert left >= 0 and left + length <= width and size <= y <= height, text.text


# What the lessons printed -------------------------------------------------------------------------


def test_pages_are_up_to_date(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert report.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_log_has_every_lesson(path):
    log = json.loads(path.read_text(encoding="utf-8"))
    assert [program["name"] for program in log["programs"]] == LESSONS
    for program in log["programs"]:
        assert program["status"] in (0, lesson_pages.NO_DEVICE) and program["output"]
        lines = [line for line in program["output"] if line.startswith("measured:")]
        assert len(lines) == (0 if program["status"] else 1), program["name"]


def write_log(path, device, output, status=0, **more):
    log = {"benchmark": "lessons", "date": "2026-11-21T10:00:00+00:00", "device": device}
    log |= {"cpu": {"name": "A CPU", "cores": 3}} | more
    log["programs"] = [{"name": "07_transfers", "status": status, "output": output}]
    path.write_text(json.dumps(log))


def test_report_writes_the_pages(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    measured, pages = tmp_path / "docs/measured", tmp_path / "docs/lessons"
    measured.mkdir(parents=True)
    pages.mkdir()
    marks = (report.BEGIN, report.END, report.ARTICLE_BEGIN, report.ARTICLE_END)
    marks += (report.DEMO_BEGIN, report.DEMO_END, report.MUTANTS_BEGIN, report.MUTANTS_END)
    (tmp_path / "README.md").write_text("\n".join(marks))
    marks = (report.PRODUCTS_BEGIN, report.PRODUCTS_END, report.SWEEP_BEGIN, report.SWEEP_END)
    (tmp_path / report.PRODUCTS).write_text("\n".join(marks))
    (tmp_path / report.LADDER).parent.mkdir(parents=True)
    marks = (report.LADDER_BEGIN, report.LADDER_END, report.CHOICE_BEGIN, report.CHOICE_END)
    (tmp_path / report.LADDER).write_text("\n".join(marks))
    blocks = [line for device in lesson_pages.DEVICES for line in lesson_pages.markers(device)]
    (pages / "07.md").write_text("\n".join(["before", *blocks, "after"]))
    assert report.main([]) == 0 and (pages / "07.md").read_text().count(report.NONE) == 2
    write_log(measured / "lessons-sim.json", "sim", ["measured: 1 | 2", "  # 3"])
    card = {"card": "NVIDIA H200", "cards": 2, "driver": "580.1", "toolkit": "13.0.88"}
    write_log(measured / "lessons-h200.json", "gpu", ["no device"], lesson_pages.NO_DEVICE, **card)
    assert report.main(["--check"]) == 1 and "07.md: out of date" in capsys.readouterr().err
    assert report.main([]) == 0 and report.main(["--check"]) == 0
    text = (pages / "07.md").read_text()
    assert text.startswith("before\n") and text.endswith("\nafter") and report.NONE not in text
    first, second = BLOCK.finditer(text)
    assert "2 x NVIDIA H200 (driver 580.1, CUDA 13.0.88; host: A CPU, 3 cores" in first[0]
    assert "\nno device\n```\n\n(Exit status 77" in first[0]
    assert "A CPU, 3 cores; 2026-11-21" in second[0] and "77" not in second[0]
    assert "\n```text\nmeasured: 1 | 2\n  # 3\n```\n" in second[0]


def test_a_page_shows_what_solutions_print_on_a_gpu(tmp_path):
    log = tmp_path / "log.json"
    more = {"card": "NVIDIA H200", "cards": 1, "driver": "580.1", "toolkit": "13.0.88"}
    for device in ("gpu", "sim"):
        solution = {"name": "07_transfers", "status": 0, "output": ["8 pieces"]}
        write_log(log, device, ["measured: 1"], solutions=[solution], **more)
        text = lesson_pages.part(json.loads(log.read_text()), "07")
        shown = "\n\nThe solutions of its exercises:\n\n```text\n8 pieces\n```"
        assert text.endswith(shown) == (device == "gpu")
        assert "```text\nmeasured: 1\n```" in text
        assert "8 pieces" not in lesson_pages.part(
            json.loads(log.read_text()) | {"solutions": []}, "07"
        )


def test_a_page_says_that_the_program_has_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cuda/lessons"
    folder.mkdir(parents=True)
    shutil.copy2(SOURCES / "run.py", folder)
    source = folder / "07_transfers.cu"
    source.write_text("int main() { return 0; } /* as it was */\n")
    log = tmp_path / "log.json"
    write_log(log, "sim", ["measured: 1"])
    log = json.loads(log.read_text())
    assert "earlier version" not in lesson_pages.part(log, "07")  # an old log does not know
    log["programs"][0]["source"] = fingerprint_by_the_runner(source)
    assert "earlier version" not in lesson_pages.part(log, "07")
    source.write_text("// a comment\nint main() {\n    return 0;\n}\n")
    assert "earlier version" not in lesson_pages.part(log, "07")
    source.write_text("int main() { return 1; }\n")
    assert lesson_pages.part(log, "07").endswith("\n".join(lesson_pages.CHANGED))


def fingerprint_by_the_runner(source):
    """What a log has of a lesson, when run.py ran it."""
    program = source.parent / "build" / source.stem
    program.parent.mkdir()
    log = source.parent / "new.json"
    command = [sys.executable, str(source.parent / "run.py"), "--card", "sim", "--title", "t"]
    command += ["--log", str(log), write_script(program, "echo measured: 1")]
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)
    (kept,) = json.loads(log.read_text())["programs"]
    return kept["source"]


def test_a_program_may_have_a_date_of_its_own(tmp_path):
    log = tmp_path / "log.json"
    write_log(log, "sim", ["measured: 1"])
    log = json.loads(log.read_text())
    assert "; 2026-11-21)" in lesson_pages.part(log, "07")
    log["programs"][0]["date"] = "2025-01-31T10:00:00+00:00"
    assert "; 2025-01-31)" in lesson_pages.part(log, "07")


# The runner ---------------------------------------------------------------------------------------


def write_script(path, script):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def run_programs(folder, *options, card="sim", **scripts):
    """Run shell scripts as the lessons are; return the CompletedProcess."""
    paths = {folder / name.replace("solutions_", "solutions/"): scripts[name] for name in scripts}
    programs = [write_script(path, script) for path, script in paths.items()]
    command = [sys.executable, str(SOURCES / "run.py"), "--card", card, "--title", "the lessons"]
    command += ["--may-lack=c_", *options, *programs]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("logged", [False, True])
def test_run(logged, tmp_path):
    log = tmp_path / "log.json"
    scripts = {"a_one": "echo up; echo down >&2", "c_two": "echo none; exit 77"}
    scripts["solutions_a_one"] = "echo solved"
    done = run_programs(tmp_path, *(["--log", str(log)] if logged else []), **scripts)
    assert done.returncode == 0, done.stderr
    for words in ("up", "none", "solved"):
        assert f"\n{words}\n" in done.stdout
    last = f"the lessons: 2 passed, 1 without a device: {tmp_path.name}/c_two"
    assert done.stdout.splitlines()[-1] == last
    assert log.exists() == logged
    if logged:
        kept = json.loads(log.read_text())
        assert kept["benchmark"] == "lessons" and kept["device"] == "sim" and kept["cpu"]["cores"]
        assert kept["programs"] == [
            {"name": "a_one", "status": 0, "output": ["up", "down"]},
            {"name": "c_two", "status": 77, "output": ["none"]},
        ]
        assert kept["solutions"] == [{"name": "a_one", "status": 0, "output": ["solved"]}]


def test_a_log_does_not_tell_where_the_checkout_is(tmp_path):
    log = tmp_path / "log.json"
    done = run_programs(tmp_path, "--log", str(log), a_one=f"echo at {SOURCES}/a_one.cu:7")
    assert done.returncode == 0, done.stderr
    assert json.loads(log.read_text())["programs"][0]["output"] == ["at cuda/lessons/a_one.cu:7"]


def test_run_names_the_gpus(tmp_path, monkeypatch):
    answer = "NVIDIA H200, 580.159.04"
    write_script(tmp_path / "bin" / "nvidia-smi", f"echo '{answer}'; echo '{answer}'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    log = tmp_path / "log.json"
    options = ["--log", str(log), "--toolkit", "13.0.88"]
    done = run_programs(tmp_path, *options, card="gpu", a_one="echo up")
    assert done.returncode == 0, done.stderr
    kept = json.loads(log.read_text())
    card = {"card": "NVIDIA H200", "cards": 2, "driver": "580.159.04", "toolkit": "13.0.88"}
    assert {key: kept[key] for key in ("device", *card)} == {"device": "gpu"} | card


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 1", 1), ("exit 77", 77), ("kill -11 $$", -11), ("sleep 30", 124)],
)
def test_run_tells_a_failure(script, status, tmp_path):
    log = tmp_path / "log.json"
    scripts = {"a_one": script, "b_two": "echo later"}
    done = run_programs(tmp_path, "--log", str(log), "--seconds", "2", **scripts)
    assert done.returncode == 1 and "\nlater\n" in done.stdout and not log.exists()
    lines = done.stdout.splitlines()
    assert lines[-2] == "the lessons: 1 passed, 0 without a device:"
    assert lines[-1] == f"FAILED: {tmp_path}/a_one (status {status})"
