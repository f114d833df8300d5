"""A machine that lacks something: make says in one sentence what to install, and stops.

PATH is a folder of links to the tools but one, and make runs in a folder with nothing built.
"""

import subprocess

import pytest
import stand_ins
from helpers import ROOT

# python3 makes an environment whose pip fails as it does without a network.
NO_NETWORK = """#!/bin/sh
case "$*" in
"-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
"-m pip "*) echo 'ERROR: No matching distribution found for anything' >&2; exit 1 ;;
esac
"""
NO_VENV = """#!/bin/sh
case "$*" in *ensurepip*) exit 1 ;; esac
"""


@pytest.fixture
def project(tmp_path):
    """A folder like a fresh checkout, whose cuda/ and pyproject.toml are this one's."""
    folder = tmp_path / "project"
    (folder / "pyvecgpu").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "cuda", "tests"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def make(project, path, *arguments):
    """Return the exit status and the last lines on stderr but for make's own."""
    done = subprocess.run(
        [path / "make", "-j1", *arguments],
        cwd=project,
        env=stand_ins.environment(path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    return done.returncode, said, done.stdout


@pytest.mark.parametrize("target", ["all", "sim", "lib", "demo"])
def test_no_compiler(project, tmp_path, target):
    path = stand_ins.tools(tmp_path / "tools")
    stand_ins.compilers(path)
    (path / "g++").unlink()
    stand_ins.write_program(path / "python3", NO_NETWORK)
    status, said, printed = make(project, path, target)
    assert status == 2
    assert said == [
        "make: there is no C++ compiler (g++) on PATH; on Debian and Ubuntu: "
        "sudo apt-get install g++"
    ]
    assert "pip install" not in printed, "nothing is downloaded first"


def test_no_compiler_where_nvcc_would_be_downloaded(project, tmp_path):
    """There make asks for the compiler before the 105 MB."""
    path = stand_ins.tools(tmp_path / "tools")
    stand_ins.write_program(path / "python3", NO_NETWORK)
    status, said, printed = make(project, path, "lib", "NVCC=", "CUDA_HOME=")
    assert status == 2
    assert "sudo apt-get install g++" in said[0]
    assert "pip install" not in printed


def test_no_venv(project, tmp_path):
    path = stand_ins.tools(tmp_path / "tools")
    stand_ins.compilers(path)
    stand_ins.write_program(path / "python3", NO_VENV)
    status, said, printed = make(project, path, "demo")
    assert status == 2
    assert "nvcc" not in printed, "nothing is compiled first"
    assert said == [
        "make: python3 cannot make virtual environments; on Debian and Ubuntu: "
        "sudo apt-get install python3-venv"
    ]


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        (".venv/runtime.stamp", "name it, as in: PYTHON=python3 make"),
        (".venv/tests.stamp", "name it, as in: PYTHON=python3 make"),
        (".venv/toolkit.stamp", "install the CUDA toolkit, 13.0 or newer, and set NVCC"),
    ],
)
def test_no_network(project, tmp_path, target, advice):
    path = stand_ins.tools(tmp_path / "tools")
    stand_ins.compilers(path)
    stand_ins.write_program(path / "python3", NO_NETWORK)
    status, said, _ = make(project, path, target)
    assert status == 2
    assert said[0].startswith("ERROR"), "pip's own reason comes first"
    assert len(said) == 2
    assert "without a network" in said[1] and advice in said[1]
    assert not (project / target).exists(), "it is tried again the next time"


def test_a_python_of_ones_own_without_the_packages(project, tmp_path):
    path = stand_ins.tools(tmp_path / "tools")
    stand_ins.compilers(path)
    stand_ins.write_program(path / "python3", "#!/bin/sh\nexit 1\n")
    status, said, _ = make(project, path, "check-runtime-packages", "PYTHON=python3")
    assert status == 2
    assert "python3 lacks one of: numpy" in said[0]
