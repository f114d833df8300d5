"""Files whose code for 9.0 is their own are compiled for it on their own: Makefile, OF_SM90; those
for which PTX for 7.5 does have none of their own for 8.0 that matters: OF_SM75.
"""

import re
import subprocess
from functools import cache

from helpers import ROOT

SOURCES = ROOT / "cuda"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
OWN = re.compile(r"__CUDA_ARCH__ >= 900|FEAT_SM90_ALL|\bPVG_TARGET\b")
OWN_OF_80 = re.compile(r"__CUDA_ARCH__ (>=|<) 800|#if PVG_HAS_FRAGMENTS|PVG_TARGET >= 8")
# Rounding to bfloat16, extremes beside NaN, and what is for tensor cores.
LITTLE = {"half.cuh", "elementwise.cuh", "rows.cuh", "fragments.cuh"}


@cache
def own_code(path, own=OWN):
    """Which of a source and what it includes asks whether it is compiled for 9.0, or 8.0."""
    text = path.read_text(encoding="utf-8")
    found = {path.name} if own.search(text) else set()
    for name in INCLUDE.findall(text):
        for place in (SOURCES / name, path.parent / name):
            if place.exists():
                found |= own_code(place, own)
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


def test_files_that_ptx_for_7_5_does_for():
    listed = variable("OF_SM75")
    assert len(listed) > 15 and {*listed} < {*variable("KERNELS")}
    found = {name: own_code(ROOT / name, OWN_OF_80) - LITTLE for name in listed}
    assert not {name: own for name, own in found.items() if own}


def test_files_that_ptx_for_7_5_would_break():
    """They have nothing to do there: of the patterns above one finds each."""
    for name in ("sm80/small.cu", "sm80/small_items.cu", "sm80/tf32.cu", "simt/ffma.cu"):
        path = ROOT / "cuda/kernels/matmul" / name
        assert own_code(path, OWN_OF_80) - LITTLE, name
