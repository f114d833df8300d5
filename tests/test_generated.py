"""Files that scripts write hold what the scripts write."""

import runpy

import pytest
from helpers import ROOT

GENERATED = {"cuda/kernels/wgmma.cuh": "cuda/kernels/generate_wgmma.py"}


@pytest.mark.parametrize("path", GENERATED)
def test_file_is_what_its_script_writes(path):
    generate = runpy.run_path(str(ROOT / GENERATED[path]))["generate"]
    assert (ROOT / path).read_text() == generate()
