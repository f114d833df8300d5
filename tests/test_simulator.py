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
BUILT = ROOT / "build" / "tests"
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


def run(*command, **settings):
    environment = {**os.environ, **settings}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.devices("sim")
@pytest.mark.checkers
def test_no_leak_of_a_c_program(device):
    """README's program under AddressSanitizer, which also looks for leaks at its end."""
    done = run(BUILT / "asan/test_readme", ASAN_OPTIONS="detect_leaks=1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0.5000 0.5000\n0.9526 0.9526\n" and done.stderr == ""


@pytest.mark.devices("sim")
@pytest.mark.skipif(not shutil.which("valgrind"), reason="there is no valgrind")
def test_valgrind_finds_nothing(device):
    """Not in the threads of a block either, on stacks of their own and with barriers."""
    for binary in (BUILT / "sim/test_readme", ROOT / "build/sim/simulator/tests/test_kernels"):
        done = run("valgrind", "--error-exitcode=9", binary)
        assert done.returncode == 0, done.stderr
        assert "ERROR SUMMARY: 0 errors from 0 contexts" in done.stderr
        assert "client switching stacks" not in done.stderr
