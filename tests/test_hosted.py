"""docs/hosted: the notebook that begins with nothing, and the address that it is fetched from."""

import json
import os
import resource
import runpy
import shutil
import subprocess
import sys

import pytest
from helpers import ROOT

import pyvecgpu as vg

PATH = ROOT / "docs/hosted/hosted.ipynb"
ADDRESS = runpy.run_path(str(ROOT / "docs/hosted/address.py"))
CLEAN = runpy.run_path(str(ROOT / "docs/notebooks/clean.py"))["clean"]
CPU_SECONDS = 300 if not vg.is_available("cuda") else 1500  # nvcc compiles all kernels for it
URL = "https://github.com/someone/pyvecgpu"


def cells():
    notebook = json.loads(PATH.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


# The address --------------------------------------------------------------------------------------


def test_pages_have_the_address_of_pyproject(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert ADDRESS["main"](["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ('[project]\nname = "x"\n', ""),
        ("[project.urls]\n[tool.x]\nRepository = 3\n", ""),
        (f'[project.urls]\nHomepage = "h"\nRepository = "{URL}.git"\n[tool.x]\n', URL),
        (f'[project.urls]\n"Repository"="{URL}/"\n', URL),
    ],
)
def test_the_address_comes_from_project_urls(text, url):
    assert ADDRESS["address"](text) == url


def test_badges_are_written_and_left_out_again(tmp_path, monkeypatch, capsys):
    for path in (*ADDRESS["PAGES"], ADDRESS["NOTEBOOK"]):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, tmp_path / path)
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "pyproject.toml"
    project.write_text(f'[project.urls]\nRepository = "{URL}"\n')
    place = f"({ADDRESS['SERVICE']}/github/someone/pyvecgpu/blob/main/docs/hosted/hosted.ipynb)"
    assert ADDRESS["main"]([]) == 0 and ADDRESS["main"](["--check"]) == 0
    for path in ADDRESS["PAGES"]:
        assert (tmp_path / path).read_text(encoding="utf-8").count(place) == 1, path
    notebook = (tmp_path / ADDRESS["NOTEBOOK"]).read_text(encoding="utf-8")
    assert f'REPOSITORY = "{URL}"' in json.loads(notebook)["cells"][1]["source"][5]
    project.write_text("[project]\n")
    assert ADDRESS["main"](["--check"]) == 1
    assert capsys.readouterr().err.count("out of date") == 4
    assert ADDRESS["main"]([]) == 0
    for path in ADDRESS["PAGES"]:
        assert "colab" not in (tmp_path / path).read_text(encoding="utf-8")


def test_another_place_than_the_service_reads_has_no_badge():
    assert ADDRESS["badge"]("https://example.org/pyvecgpu") == ""


# The notebook -------------------------------------------------------------------------------------


def test_it_is_kept_clean():
    text = PATH.read_text(encoding="utf-8")
    assert CLEAN(text) == text
    for path in ("docs/lessons/01.md", "docs/why.md", "docs/notebooks"):
        assert path in text and (ROOT / path).exists()


def test_without_an_address_it_asks_for_one(tmp_path):
    done = run(cells()[:1], tmp_path)
    if 'REPOSITORY = ""' in cells()[0]:
        assert done.returncode == 1 and "set REPOSITORY to the address" in done.stderr


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_it_runs_from_a_clean_machine(tmp_path):
    """In an empty folder, with nobody's settings, from a clone of these files without any build.

    The time is that of the processors, as other tests may run beside this one.
    """
    origin = tmp_path / "origin"
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "build", "mine", "measured")
    for name in ("cuda", "pyvecgpu", "docs"):
        shutil.copytree(ROOT / name, origin / name, ignore=ignored)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy2(ROOT / name, origin / name)
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    for command in (("init", "--quiet"), ("add", "."), (*who, "commit", "--quiet", "-m", "all")):
        subprocess.run(["git", *command], cwd=origin, check=True)
    folder = tmp_path / "empty"
    folder.mkdir()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(cells(), folder, PYVECGPU_REPOSITORY=f"file://{origin}", CCACHE_DISABLE="1")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "1 passed, 0 without a device",
        "and 0 of 1000 elements are wrong",
        "and 1 of 1000 elements are wrong",
        "It ends with 1",
        "AlexNet, photographs, 2012",
    ):
        assert words in done.stdout, done.stdout
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert taken < CPU_SECONDS


def run(sources, folder, **variables):
    """Run cells one after another, as a notebook does, in a process with a bare environment."""
    script = folder / "cells.py"
    script.write_text("\n\n".join(sources), encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "CUDA_HOME", "NVCC") if name in os.environ}
    return subprocess.run(
        [sys.executable, script.name],
        cwd=folder,
        env=kept | {"HOME": str(folder), "LC_ALL": "C.UTF-8"} | variables,
        capture_output=True,
        text=True,
        timeout=1200,
    )
