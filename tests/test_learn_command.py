"""`python -m pyvecgpu learn`: the list, pages in the terminal, building and running, wheels."""

import io
import json
import re
import shutil
import subprocess
import sys

import pytest
from helpers import ROOT, child_environment

from pyvecgpu.learn import command, ladder, terminal


def learn(*arguments, folder=ROOT):
    """Run the command in a process of its own, with the package in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "pyvecgpu", "learn", *arguments],
        cwd=folder,
        env=child_environment(PYTHONPATH=str(folder)),
        capture_output=True,
        text=True,
        timeout=300,
    )


# The ladder ---------------------------------------------------------------------------------------


def test_the_list_is_that_of_the_pages():
    index = (ROOT / "docs/lessons/README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\d\d) ([^]]+)\]", index, re.MULTILINE)
    assert dict(listed) == ladder.LESSONS
    done = learn()
    assert done.returncode == 0, done.stderr
    for number, title in listed:
        assert f"{number}  {title}\n" in done.stdout


@pytest.mark.parametrize("text", ["5", "05", "05_blocks_and_grids", "05.md", "0005"])
def test_a_lesson_has_many_names(text):
    assert ladder.name_of(text) == "05"


@pytest.mark.parametrize("text", ["0", "21", "five", "", "../05", "mine"])
def test_there_is_no_such_lesson(text):
    with pytest.raises(ladder.NotThereError, match=r"the first is 01, the last 20"):
        ladder.name_of(text)


def test_wrong_options_are_refused(capsys):
    for arguments, why in (
        (["--run"], "--run of which lesson"),
        (["05", "--json", "x"], "belong to why --run"),
        (["why", "--quick"], "belong to why --run"),
        (["05", "--card", "sim"], "--card belongs to"),
        (["why", "--run", "--card", "sim"], "--card belongs to"),
    ):
        with pytest.raises(SystemExit):
            command.main(arguments)
        assert why in capsys.readouterr().err
    assert command.main(["21"]) == 1 and "no lesson '21'" in capsys.readouterr().err
    assert command.main(["mine/05"]) == 1 and "--run builds" in capsys.readouterr().err


# Pages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ladder.LESSONS, ladder.WHY])
def test_pages_in_the_terminal(name):
    page = ladder.checkout().page(name)
    text = page.read_text(encoding="utf-8")
    shown = terminal.render(text, page.parent)
    for mark in ("](", "<!--", "```", "**"):
        assert mark not in shown, mark
    assert shown.startswith(text.splitlines()[0].lstrip("# "))
    for picture in re.findall(r"^!\[.*\]\((.*)\)$", text, re.MULTILINE):
        assert str(page.parent / picture) in shown


def test_rendering():
    text = "# A *b*\n\n<!-- x: begin -->\n**one** [two](2.md), a * b * c\n```c\n*p = **q;\n```\n"
    shown = terminal.render(text, ROOT)
    assert shown == "A b\n===\n\none two, a * b * c\n    *p = **q;\n"
    shown = terminal.render(text, ROOT, colours=True)
    assert shown.startswith("\033[1mA b\033[0m\n\n\033[1mone\033[0m two")


def test_a_page_by_the_command():
    done = learn("5")
    assert done.returncode == 0 and done.stdout.startswith("Lesson 05: blocks and grids\n====")


# Without a checkout -------------------------------------------------------------------------------


def test_an_installed_package_says_so(tmp_path):
    ignore = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "pyvecgpu", tmp_path / "pyvecgpu", ignore=ignore)
    assert learn(folder=tmp_path).stdout == learn().stdout
    for arguments in (["05"], ["05", "--run"], ["why"]):
        done = learn(*arguments, folder=tmp_path)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr == f"learn: {ladder.NO_CHECKOUT}\n"


# Running ------------------------------------------------------------------------------------------


def make_checkout(folder, script, rule="cp $< $@ && chmod +x $@"):
    """A checkout whose lesson 05 is a shell script, "built" by a Makefile's rule."""
    for name in ("cuda/lessons/mine", "docs/lessons", "docs/measured"):
        (folder / name).mkdir(parents=True)
    for name in ("05_some", "mine/05_some"):
        (folder / f"cuda/lessons/{name}.cu").write_text(f"#!/bin/sh\n{script}\n")
    targets = ("build/lessons/sim/%", "build/lessons/gpu/%")
    rules = (f"{one}: cuda/lessons/%.cu\n\t@mkdir -p $(@D) && {rule}\n" for one in targets)
    (folder / "Makefile").write_text("\n".join(rules))
    log = {"benchmark": "lessons", "date": "2026-11-22T01:00:00+00:00", "card": "Some GPU"}
    output = ["no figures", "measured: loop 1.25 us,  kernel 1,000 us", "n = 7"]
    log["programs"] = [{"name": "05_some", "status": 0, "output": output}]
    (folder / "docs/measured/lessons-some.json").write_text(json.dumps(log))
    return ladder.checkout(folder)


def test_a_run_with_recorded_figures_beside_it(tmp_path, capfd):
    script = "echo no figures; echo 'measured: loop 2 us, kernel 3.5 us'; echo 'n = 7'; echo m = 1"
    checkout = make_checkout(tmp_path, script)
    assert command.run(checkout, "05", "sim") == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "build/lessons/sim/05_some, on the simulated card"
    assert lines[1:5] == ["no figures", "measured: loop 2 us, kernel 3.5 us", "n = 7", "m = 1"]
    assert lines[5:] == [
        "",
        "Recorded beside yours (Some GPU, 2026-11-22):",
        "  yours     measured: loop 2 us, kernel 3.5 us",
        "  recorded  measured: loop 1.25 us,  kernel 1,000 us",
    ]
    assert command.run(checkout, "mine/05", "gpu") == 0
    assert "build/lessons/gpu/mine/05_some, on a GPU\n" in capfd.readouterr().out


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("exit 77", 77), ("kill -9 $$", 1)])
def test_the_status_is_the_program_s(script, status, tmp_path, capfd):
    assert command.run(make_checkout(tmp_path, script), "05", "sim") == status
    assert ("needs is not here" in capfd.readouterr().out) == (status == 77)


@pytest.mark.parametrize(
    ("answer", "card"),
    [("echo 'GPU 0: Some'", "gpu"), ("echo no driver; exit 9", "sim"), (None, "sim")],
)
def test_the_card_is_that_of_make_lessons(answer, card, tmp_path, monkeypatch):
    if answer:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.card() == card


def test_lines_are_shown_as_they_come(tmp_path):
    """Also of a program that writes with C's buffers."""
    program = (
        "import os, sys\nprint('first')\nos.system('cat >/dev/null')\nprint('é', file=sys.stderr)"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    follower = (
        "import sys; from pyvecgpu.learn.command import follow; print(follow(sys.argv[1:], '.'))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", follower, sys.executable, str(script)],
        env=child_environment(PYTHONPATH=str(ROOT), PYTHONUTF8="1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout.readline() == "first\n"  # while the program waits for its input
        process.stdin.close()
        assert process.stdout.read() == "é\n(0, ['first', 'é'])\n"


def test_what_cannot_be_built_is_told(tmp_path):
    checkout = make_checkout(tmp_path, "", "echo 05_some.cu:3: error >&2; exit 1")
    with pytest.raises(ladder.NotThereError, match=r"was not built:\n(?s:.*)05_some.cu:3: error"):
        command.run(checkout, "05", "sim")
    with pytest.raises(ladder.NotThereError, match=r"no cuda/lessons/06\*\.cu"):
        command.run(checkout, "06", "sim")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_build_tells_on_a_terminal_that_it_takes_time():
    stream = Terminal()
    with command.Waiting("building it", stream) as waiting:
        while not stream.getvalue():
            assert waiting.thread.is_alive()
    assert stream.getvalue().startswith("\r\033[Kbuilding it, 0 s")
    assert stream.getvalue().endswith("\r\033[K")
    stream = io.StringIO()
    with command.Waiting("building it", stream):
        pass
    assert stream.getvalue() == ""


@pytest.mark.devices("sim")
def test_a_lesson_on_the_simulated_card(device):
    done = learn("01", "--run", "--card", "sim")
    assert done.returncode == 0, done.stderr
    assert "c[999] = 999.0 + 499.5 = 1498.5" in done.stdout
    assert re.search(r"^  recorded  measured: C loop \S+ us[,;] ", done.stdout, re.MULTILINE)
