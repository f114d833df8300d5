"""README.md tells the truth: its programs run, its tables and links name what there is."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu.bench import report
from pyvecgpu.functions import linalg
from pyvecgpu.native import settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Werror", f"-I{ROOT / 'cuda'}"]


def blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def compile_c(source, *arguments):
    compiler = shutil.which("gcc") or shutil.which("cc")
    run = subprocess.run(
        [compiler, *STRICT, str(source), *arguments], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


def test_python_block(device, capsys):
    code, dtypes, products, *others = blocks("python")
    assert len([line for line in code.splitlines() if line]) == 10
    names = {}
    with vg.device(device):
        exec(code, names)
    assert capsys.readouterr().out.startswith(f"{vg.Device(device)} (1000, 10) 0.5")
    images, weight = names["images"].astype(np.float64), names["weight"].astype(np.float64)
    expected = 1 / (1 + np.exp(-(images @ weight.T + 0.5)))
    assert np.allclose(names["result"], expected, rtol=1e-4, atol=1e-7)
    assert (names["best"].numpy() == names["result"].argmax(axis=1)).all()
    try:
        with vg.device(device):
            exec(products, names)
        assert vg.get_matmul_precision() == "fast32"
    finally:
        vg.set_matmul_precision("float32")
    with vg.device(device):
        for line in dtypes.splitlines():
            told = line.partition("# ")[2].split()[:2]
            found = eval(line, names) if told[1:] == ["both"] else exec(line, names)
            assert found is None or [*map(str, found)] == 2 * told[:1], line
    assert vg.get_default_dtype() == np.float32 and dtypes.count(" both\n") == 2
    expected, half = images @ weight.T, names["half"]
    assert half.dtype == np.float16
    for result, tolerance in ((names["c"], 1e-3), (names["z"] - 0.5, 1e-3), (half, 0.1)):
        assert np.allclose(result.numpy(), expected, rtol=0, atol=tolerance)
    assert names["dw"].shape == weight.shape and names["dbias"].shape == (10,)
    with vg.device(device):
        exec(next(block for block in others if "linalg" in block), names)
    spd, factor = names["spd"].numpy(), names["factor"].numpy()
    assert np.allclose(factor @ factor.T, spd, rtol=1e-4, atol=1e-3)
    assert np.allclose(spd @ names["solution"].numpy(), 1, atol=1e-2)


def test_c_fragment_compiles(tmp_path):
    fragment = blocks("c")[0]
    assert len(fragment.splitlines()) == 10
    source = tmp_path / "fragment.c"
    includes = '#include "pyvecgpu.h"\n#include <stdio.h>\n#include <stdlib.h>\n'
    source.write_text(f"{includes}void fragment(void) {{\n{fragment}}}\n")
    compile_c(source, "-c", "-o", str(tmp_path / "fragment.o"))


@pytest.mark.devices("sim", "cuda")
def test_c_program(device, tmp_path):
    program = ROOT / "cuda" / "tests" / "test_readme.c"
    assert blocks("c")[1] == program.read_text(encoding="utf-8")
    library = vg.Device(device).backend.library.path
    binary = tmp_path / "layer"
    compile_c(program, library, f"-Wl,-rpath,{Path(library).parent}", "-o", str(binary))
    run = subprocess.run([str(binary)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "0.5000 0.5000\n0.9526 0.9526\n"


def test_measured_figures_are_up_to_date(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert report.main(["--check"]) == 0


def test_tables_name_what_there_is():
    names = re.findall(r'"(\w+)"', README.split("| precision |")[1].split("\n\n")[0])
    assert names == list(linalg.PRECISIONS)
    variables = re.findall(r"^\| `(PYVECGPU_\w+)` \|", README, re.MULTILINE)
    assert variables == [f"{settings.PREFIX}{name.upper()}" for name in settings.Settings._fields]
    errors = re.findall(r"^\| `(\w+Error)` \|", README, re.MULTILINE)
    defined = {name for name, value in vars(vg).items() if is_error(value)}
    assert set(errors) == defined and len(errors) == len(defined)


def is_error(value):
    return isinstance(value, type) and issubclass(value, vg.PyVecGPUError)


def test_links_and_layout_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    layout = re.search(r"## The code\n\n```\n(.*?)```", README, re.DOTALL)[1]
    layout = [line.split()[0] for line in layout.splitlines()]
    assert len(links) >= 8 and len(layout) >= 10
    for path in links + layout:
        assert (ROOT / path).exists(), path


def test_make_targets_exist():
    makefiles = [ROOT / "Makefile", *(ROOT / "cuda").glob("*.mk")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in makefiles)
    commands = blocks("sh") + blocks("sh", CONTRIBUTING)
    targets = set(re.findall(r"\bmake ([a-z][a-z-]*)\b(?!/)", "\n".join(commands)))
    assert {"demo", "test", "test-gpu", "bench"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", text, re.MULTILINE), target
