"""Wheels and the sdist, made by what pip calls, by stand-ins for the compilers (stand_ins.py)."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import stand_ins
from helpers import ROOT

import pyvecgpu as vg
from pyvecgpu.native.abi import ABI_VERSION
from pyvecgpu.native.library import FILES, NOTE, PACKAGE

pytestmark = pytest.mark.needs("hatchling")  # whose hook makes the wheel

TOGETHER = True  # of the same wheels
# Calls one function of the backend as pip does, in the project's folder.
CALL = """
import sys
sys.path.insert(0, "cuda")
import build_backend
print(getattr(build_backend, sys.argv[1])(*sys.argv[2:]))
"""
HEADER = ROOT / "cuda" / "pyvecgpu.h"
TOOLKIT = ("cuda-nvcc", "nvvm", "cuda-crt", "cuda-runtime", "cuda-cccl")
NOT_IN_SDIST = {".ci/run", ".clang-format", ".editorconfig", ".gitattributes"}


def backend(folder, path, function, *arguments, **variables):
    """Call the backend in `folder` with `path` as PATH; return (its result, all that it said)."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", CALL, function, *map(str, arguments)],
        cwd=folder,
        env=stand_ins.environment(path, PIP_BUILD_TRACKER="/tracker", **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()[-1], done.stdout


def names_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def read_from(wheel, name):
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name)


def run_installed(wheel, folder, *arguments):
    """Unpack the wheel, which is how a pure one is installed, and run Python elsewhere with it."""
    place = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    code = f"import sys; sys.path.insert(0, {str(place)!r}); {arguments[0]}"
    return subprocess.run(
        [sys.executable, "-I", "-c", code, *arguments[1:]],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A PATH without compilers."""
    return stand_ins.tools(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def equipped(tmp_path_factory):
    """A PATH with stand-ins for nvcc and g++."""
    assert all(Path(PACKAGE, file).exists() for file in FILES.values()), "run `make` first"
    path = stand_ins.tools(tmp_path_factory.mktemp("equipped"))
    stand_ins.compilers(path)
    return path


@pytest.fixture(scope="module")
def sdist(tmp_path_factory, bare):
    folder = tmp_path_factory.mktemp("sdist")
    name, _ = backend(ROOT, bare, "build_sdist", folder)
    return folder / name


@pytest.fixture(scope="module")
def sources(tmp_path_factory, sdist):
    """The unpacked sdist."""
    folder = tmp_path_factory.mktemp("sources")
    subprocess.run(["tar", "-xzf", sdist, "-C", folder], check=True)
    return folder / sdist.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def built(tmp_path_factory, equipped, sources):
    """(The wheel that the sdist gives, what was said meanwhile.)"""
    folder = tmp_path_factory.mktemp("wheel")
    name, said = backend(sources, equipped, "build_wheel", folder)
    return folder / name, said


@pytest.fixture(scope="module")
def pure(tmp_path_factory, bare, sources):
    """(The wheel of a machine without a compiler, what was said meanwhile.)"""
    folder = tmp_path_factory.mktemp("pure")
    name, said = backend(sources, bare, "build_wheel", folder)
    return folder / name, said


def test_the_sdist_has_everything(sdist):
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a checkout")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    there = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    assert there - packed == NOT_IN_SDIST
    assert packed - there == {"PKG-INFO"}


def test_metadata_without_a_build(tmp_path, sources, equipped):
    """pip asks for it first and shows nothing meanwhile."""
    log = equipped / "calls"
    before = log.read_text(encoding="utf-8")
    for kind in ("wheel", "editable"):
        (tmp_path / kind).mkdir()
        function = f"prepare_metadata_for_build_{kind}"
        name, _ = backend(sources, equipped, function, tmp_path / kind)
        text = (tmp_path / kind / name / "METADATA").read_text(encoding="utf-8")
        metadata = Parser().parsestr(text)
        assert (metadata["Name"], metadata["Version"]) == ("pyvecgpu", vg.__version__)
        assert "numpy>=2" in metadata.get_all("Requires-Dist")
    assert log.read_text(encoding="utf-8") == before, "no compiler was asked anything"


def test_nvcc_comes_from_pypi_only_where_it_is_missing(tmp_path, sources, equipped, bare):
    function = "get_requires_for_build_wheel"
    assert backend(sources, equipped, function)[0] == "[]"
    assert backend(sources, bare, function)[0] == "[]", "nothing is compiled"
    tree = tmp_path / "tree"
    shutil.copytree(sources, tree, ignore=shutil.ignore_patterns("build", "docs", "tests"))
    toolkit = tree / "cuda" / "toolkit.mk"
    text = toolkit.read_text(encoding="utf-8")
    assert "/usr/local/cuda/bin/nvcc" in text
    toolkit.write_text(text.replace("/usr/local/cuda/bin/nvcc", "/none"), encoding="utf-8")
    path = stand_ins.tools(tmp_path / "tools")
    stand_ins.compilers(path)
    (path / "nvcc").unlink()
    required = ast.literal_eval(backend(tree, path, function)[0])
    names = {one.partition("==")[0] for one in required}
    assert names == {f"nvidia-{one}" for one in TOOLKIT}
    assert all(re.fullmatch(r"[\w-]+==13\.0\.\d+", one) for one in required), "none pins the others"


def test_a_wheel_with_both_libraries_and_the_header(built, tmp_path):
    wheel, _ = built
    assert re.fullmatch(r"pyvecgpu-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)
    assert read_from(wheel, "pyvecgpu/include/pyvecgpu.h") == HEADER.read_bytes()
    for file in FILES.values():
        assert read_from(wheel, f"pyvecgpu/{file}") == Path(PACKAGE, file).read_bytes()
    assert not {name for name in names_in(wheel) if NOTE in name or name.startswith("cuda")}
    done = run_installed(
        wheel, tmp_path, "import pyvecgpu as vg; print((vg.ones(3, device='sim') + 1.0).tolist())"
    )
    assert (done.stdout, done.stderr) == ("[2.0, 2.0, 2.0]\n", "")


def test_progress(built):
    """With -v pip shows each line as it comes."""
    counted = [re.match(r"\[(\d+)/(\d+)\] (nvcc|g\+\+) ", line) for line in built[1].splitlines()]
    places = [(int(match[1]), int(match[2])) for match in counted if match]
    total = places[0][1]
    assert total > 100
    assert places == [(place, total) for place in range(1, total + 1)]


def test_an_editable_install_points_at_the_sources(built, sources, equipped, tmp_path):
    """make has built them already: nothing is compiled a second time."""
    name, said = backend(sources, equipped, "build_editable", tmp_path)
    assert "nvcc " not in said
    wheel = tmp_path / name
    names = names_in(wheel)
    assert not {name for name in names if name.endswith(".so") or name.startswith("pyvecgpu/")}
    pointer = next(name for name in names if name.endswith(".pth"))
    assert read_from(wheel, pointer).decode().strip() == str(sources)
    assert all((sources / "pyvecgpu" / file).exists() for file in FILES.values())


def test_a_wheel_for_other_machines(sources, built, equipped, tmp_path):
    """The tag is the newest glibc of which a library wants a function."""
    name, _ = backend(sources, equipped, "build_wheel", tmp_path, PVG_WHEEL="manylinux")
    major, minor = map(int, re.search(r"py3-none-manylinux_(\d+)_(\d+)_", name).groups())
    needed = set()
    for file in FILES.values():
        shown = subprocess.run(
            ["readelf", "--version-info", "--wide", Path(PACKAGE, file)],
            capture_output=True,
            text=True,
            check=True,
        )
        needed |= {tuple(map(int, one)) for one in re.findall(r"GLIBC_(\d+)\.(\d+)", shown.stdout)}
    assert (major, minor) == max(needed)


def test_without_a_compiler_the_device_is_the_cpu(pure, tmp_path):
    wheel, said = pure
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not {name for name in names_in(wheel) if name.endswith(".so")}
    note = read_from(wheel, f"pyvecgpu/{NOTE}").decode().strip()
    assert said.count(note) == 1
    assert "g++ could not be found" in note and "apt-get install make g++" in note
    code = (
        "import runpy; sys.argv = ['pyvecgpu', 'info', '--json'];"
        "runpy.run_module('pyvecgpu', run_name='__main__')"
    )
    done = run_installed(wheel, tmp_path, code)
    assert done.stderr == ""
    facts = json.loads(done.stdout)
    assert [facts[kind]["reason"] for kind in ("cuda", "sim")] == [note, note]
    assert [one["device"] for one in facts["devices"]] == ["cpu"]
    assert facts["default_device"] == "cpu"


@pytest.mark.parametrize("kind", ["none", "nonsense"])
def test_a_kind_that_is_asked_for(kind, sources, equipped, tmp_path):
    if kind == "none":
        name, said = backend(sources, equipped, "build_wheel", tmp_path, PVG_WHEEL=kind)
        assert name.endswith("-py3-none-any.whl") and "PVG_WHEEL=none was set" in said
    else:
        with pytest.raises(AssertionError, match="PVG_WHEEL is 'nonsense'"):
            backend(sources, equipped, "build_wheel", tmp_path, PVG_WHEEL=kind)


def test_install_for_c(sources, built, equipped, tmp_path):
    """make install: header, both libraries with the ABI's version, and what pkg-config reads."""
    prefix = tmp_path / "prefix"
    subprocess.run(
        [equipped / "make", "install", f"PREFIX={prefix}", f"PYTHON={sys.executable}"],
        cwd=sources,
        env=stand_ins.environment(equipped),
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert (prefix / "include" / "pyvecgpu.h").read_bytes() == HEADER.read_bytes()
    calls = (equipped / "calls").read_text(encoding="utf-8")
    for file in FILES.values():
        versioned = f"{file}.{ABI_VERSION}"
        assert (prefix / "lib" / file).readlink() == Path(versioned)
        assert (prefix / "lib" / versioned).read_bytes() == Path(PACKAGE, file).read_bytes()
        assert f"-soname,{versioned} " in calls, "what programs look for"
        name = file.removeprefix("lib").removesuffix(".so")
        text = (prefix / "lib" / "pkgconfig" / f"{name}.pc").read_text(encoding="utf-8")
        settings = dict(line.split(": ", 1) for line in text.splitlines())
        assert (settings["Name"], settings["Version"]) == (name, vg.__version__)
        program = ROOT / "cuda" / "tests" / "test_readme.c"
        flags = [*settings["Cflags"].split(), *settings["Libs"].split()]
        command = ["gcc", "-std=c99", program, *flags, "-o", tmp_path / name]
        subprocess.run(command, check=True)
    run = subprocess.run(
        [tmp_path / "pyvecgpu_sim"],
        env={"LD_LIBRARY_PATH": str(prefix / "lib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "0.5000 0.5000\n0.9526 0.9526\n"), run.stderr


def test_a_build_that_fails_gives_no_wheel(sources, equipped, tmp_path):
    """Never a pure one instead: whoever has a compiler wants to know."""
    path = stand_ins.tools(tmp_path / "tools")
    stand_ins.compilers(path)
    stand_ins.write_program(path / "g++", "#!/bin/sh\necho 'g++: out of order' >&2; exit 1\n")
    with pytest.raises(AssertionError, match=r"(?s)out of order.*make failed"):
        backend(sources, path, "build_wheel", tmp_path)
    assert not list(tmp_path.glob("*.whl"))
