"""The table of what each family weighs, of the objects and the library that are built here."""

import re
import shutil
import subprocess
import sys

import pytest
from helpers import ROOT

sys.path.insert(0, str(ROOT / "cuda"))
import wheel_sizes

sys.path.remove(str(ROOT / "cuda"))

OBJECTS = ROOT / "build" / "gpu"
LIBRARY = ROOT / wheel_sizes.LIBRARY


@pytest.fixture(scope="module")
def families():
    if not LIBRARY.exists() or not OBJECTS.exists():
        pytest.skip("the GPU library is not built here")
    newest = max(path.stat().st_mtime for path in OBJECTS.rglob("*.o"))
    assert newest <= LIBRARY.stat().st_mtime, "the GPU library is older than its objects: run make"
    return wheel_sizes.by_family(ROOT)


def section_size(path, name):
    shown = subprocess.run(
        ["readelf", "--section-headers", "--wide", path], capture_output=True, text=True, check=True
    )
    found = re.search(rf" {re.escape(name)} +\S+ +\S+ +\S+ +([0-9a-f]+) ", shown.stdout)
    return int(found[1], 16)


def test_every_family_is_there(families):
    kernels = {path.stem for path in (ROOT / "cuda" / "kernels").glob("*.cu")}
    assert kernels | {"matmul/simt", "matmul/sm80", "matmul/sm90"} <= set(families)


def test_they_are_the_whole_section(families):
    """All cubins and PTX, but for what aligns one after the other."""
    device = sum(sum(sizes.values()) - sizes["host"] for sizes in families.values())
    found = section_size(LIBRARY, ".nv_fatbin")
    assert 0 <= found - device < 64 * len(list(OBJECTS.rglob("*.o")))


def test_a_library_of_other_objects_is_refused(families, tmp_path):
    copy = tmp_path / "build" / "gpu"
    shutil.copytree(OBJECTS, copy, ignore=shutil.ignore_patterns("reduce.o"))
    (tmp_path / "pyvecgpu").mkdir()
    shutil.copy(LIBRARY, tmp_path / wheel_sizes.LIBRARY)
    with pytest.raises(ValueError, match="which is not linked of them"):
        wheel_sizes.by_family(tmp_path)


def test_the_page_gets_the_table(families, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{wheel_sizes.BEGIN}\nold\n{wheel_sizes.END}\nafter\n")
    assert wheel_sizes.main(["--build", str(ROOT), "--write", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert capsys.readouterr().out.strip() in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert rows[0][0] == "| kB" and rows[-1][0] == "| all"
    together = [int(row[-1].strip(" |").replace(",", "")) for row in rows[1:]]
    assert together == sorted(together[:-1], reverse=True) + together[-1:]
    assert abs(sum(together[:-1]) - together[-1]) <= len(together)
