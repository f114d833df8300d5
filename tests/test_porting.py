"""docs/porting.md: its programs run and learn, and differ from torch's in the lines that it counts.

Also the program on lesson 17's page, in which the tape finds the gradients.
"""

import ast
import re

import numpy as np
import pytest
from helpers import ROOT

import pyvecgpu as vg
from pyvecgpu import digits

PAGE = (ROOT / "docs/porting.md").read_text(encoding="utf-8")
PROGRAM = re.compile(
    r"^## (.+?)\n(?:(?!^## ).)*?^(\d+) of (\d+) lines change\.\n\n```diff\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PROGRAMS = {title: (int(n), int(of), text) for title, n, of, text in PROGRAM.findall(PAGE)}
FRAMEWORK = "A network of a small framework"

# What the page says about names, in this order.
RULES = (
    ("from torch.utils.data import", "from pyvecgpu.data import"),
    ("from torch import", "from pyvecgpu import"),
    ("import torch.nn", "import pyvecgpu.nn"),
    ("import torch", "import pyvecgpu as vg"),
    ("torch.manual_seed", "vg.random.seed"),
    ("torch.from_numpy", "vg.asarray"),
    ("torch.tensor", "vg.asarray"),
    ("torch.", "vg."),
)


def lines(title, marks):
    """The lines of a program with these marks, without them."""
    text = PROGRAMS[title][2]
    assert all(line[:1] in ("", " ", "+", "-") for line in text.splitlines())
    return [line[1:] for line in text.splitlines() if (line[:1] or " ") in marks]


def ported(line):
    for there, here in RULES:
        line = line.replace(there, here)
    return line


def test_there_are_four_programs():
    assert len(PROGRAMS) == PAGE.count("```diff") == 4 and FRAMEWORK in PROGRAMS


@pytest.mark.parametrize("title", PROGRAMS)
def test_the_changed_lines_are_counted(title):
    changed, of, _ = PROGRAMS[title]
    ours = [line for line in lines(title, " +") if line.strip()]
    assert len(lines(title, "+")) == changed and len(ours) == of
    assert not any("torch" in line or "norch" in line for line in ours)
    for marks in (" +", " -"):
        ast.parse("\n".join(lines(title, marks)))


@pytest.mark.parametrize("title", [title for title in PROGRAMS if title != FRAMEWORK])
def test_a_line_of_torch_becomes_ours_by_the_rules(title):
    theirs, ours = lines(title, "-"), lines(title, "+")
    assert [ported(line) for line in theirs] == ours
    assert all(there != here for there, here in zip(theirs, ours, strict=True))


@pytest.mark.parametrize("title", PROGRAMS)
def test_the_programs_learn(title, device, capsys):
    names = {"__name__": "program"}
    vg.random.seed(0)
    with vg.device(device):
        exec("\n".join(lines(title, " +")), names)
        if title == FRAMEWORK:
            images, labels = digits.load()
            read = vg.argmax(names["net"](vg.asarray(images)), axis=1).numpy()
            right = (read == labels).mean()
            printed = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
            assert len(printed) == 20 and np.isfinite(printed).all()
        else:
            right = float(capsys.readouterr().out)
    assert right >= 0.95
    assert all(p.device.type == device.split(":")[0] for p in names["net"].parameters())


def test_the_program_of_lesson_17_learns(device, capsys):
    page = (ROOT / "docs/lessons/17.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names = {}
    with vg.device(device):
        exec(program, names)
    assert sum(p.size for p in names["params"]) == 337
    word, loss = capsys.readouterr().out.split()
    assert word == "loss" and float(loss) <= 0.1
