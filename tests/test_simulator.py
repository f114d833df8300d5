"""The simulated card keeps its promises: the table of cuda/simulator/README.md is that of the
planted bugs, and programs that end leave nothing behind that a leak checker or valgrind would see.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from plants.test_plants import PLANTS

ROOT = Path(__file__).parents[1]
SIMULATOR = ROOT / "cuda" / "simulator"
COLUMNS = ("plain", "ASan + UBSan", "TSan", "access checker")


def rows():
    """The table: what each row says, by the row's mistake."""
    text = (SIMULATOR / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (.*) \|$", text.split("## Which mistake")[1], re.MULTILINE)
    head, *table = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert head == ["mistake", *COLUMNS, "shown by"]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in table}


def own_plants():
    """The simulator's own plants: for each build whether it sees the bug."""
    text = (SIMULATOR / "tests" / "test_plants.cu").read_text(encoding="utf-8")
    table = re.search(r"const Plant plants\[\] = \{\n(.*?)^\};", text, re.DOTALL | re.MULTILINE)[1]
    found = {}
    for name, cells in re.findall(
        r'\{"(\w+)",\s*\w+,\s*(.*?)\},$', table, re.DOTALL | re.MULTILINE
    ):
        seen = [c != "nullptr" for c in re.findall(r'"(?:[^"\\]|\\.)*"|\w+', cells)]
        found[name] = dict(zip(COLUMNS, [*seen, *seen[:1]][:4], strict=True))
    return found


def test_every_row_of_the_table_is_shown_by_a_planted_bug():
    own, named = own_plants(), []
    for mistake, row in rows().items():
        names = re.findall(r"`(\w+)`", row["shown by"])
        titles = re.findall(r'"([^"]+)"', row["shown by"])
        assert names or titles, mistake
        assert set(titles) <= set(PLANTS), (mistake, titles)
        assert any(row[column] != "-" for column in COLUMNS), mistake
        for name in names:
            assert own[name] == {c: row[c] != "-" for c in COLUMNS}, (mistake, name)
        named += names
    assert sorted(named) == sorted(own) and len(own) > 30


def build(*arguments):
    compiler = shutil.which("gcc") or shutil.which("cc")
    run = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.devices("sim")
@pytest.mark.skipif(not (ROOT / "build/asan").exists(), reason="make sim-asan was not run")
def test_no_leak_of_a_c_program(device, tmp_path):
    """README's program under AddressSanitizer, which also looks for leaks at its end."""
    library = ROOT / "build/asan/libpyvecgpu_sim.so"
    source, binary = ROOT / "cuda/tests/test_readme.c", tmp_path / "layer"
    build("-fsanitize=address", f"-I{ROOT / 'cuda'}", source, library, "-o", binary)
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=1",
        "LD_LIBRARY_PATH": library.parent,
    }
    run = subprocess.run([binary], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "0.5000 0.5000\n0.9526 0.9526\n" and run.stderr == ""


@pytest.mark.devices("sim")
@pytest.mark.skipif(not shutil.which("valgrind"), reason="there is no valgrind")
def test_valgrind_finds_nothing(device):
    """Threads of a block on stacks of their own, barriers, and a kernel that is left by an error."""
    binary = ROOT / "build/tests/sim/test_readme"
    run = subprocess.run(["valgrind", "--error-exitcode=9", binary], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "ERROR SUMMARY: 0 errors from 0 contexts" in run.stderr
    assert "client switching stacks" not in run.stderr
