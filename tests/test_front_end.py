"""Files whose code for 9.0 is their own are compiled for it on their own: Makefile, OF_SM90."""

import re
import subprocess
from functools import cache

from helpers import ROOT

SOURCES = ROOT / "cuda"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
OWN = re.compile(r"__CUDA_ARCH__ >= 900|FEAT_SM90_ALL|\bPVG_TARGET\b")


@cache
def own_code(path):
    """Which of a source and what it includes asks whether it is compiled for 9.0."""
    text = path.read_text(encoding="utf-8")
    found = {path.name} if OWN.search(text) else set()
    for name in INCLUDE.findall(text):
        for place in (SOURCES / name, path.parent / name):
            if place.exists():
                found |= own_code(place)
                break
    return found


def variable(name):
    command = ["make", "-s", "--eval", f"say: ; @echo $({name})", "say"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_files_with_code_for_9_0():
    listed = set(variable("OF_SM90"))
    assert listed < {*variable("KERNELS")}
    found = {
        name: own
        for name in variable("KERNELS")
        if (own := own_code(ROOT / name)) and name not in variable("HOST_ONLY")
    }
    assert len(found) > 20
    assert not {name: own for name, own in found.items() if name not in listed}
