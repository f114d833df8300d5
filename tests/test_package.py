"""The package's own order: imports go one way, one seam to the backends, public names stand once.

All of it is read from the sources, so that what is imported only within a function counts as well.
"""

import ast
import sys

import helpers
import pytest

import pyvecgpu as vg
from pyvecgpu import dispatch
from pyvecgpu.backends import METHODS

PACKAGE = helpers.ROOT / "pyvecgpu"
TOPICS = ["aliases", "combined", "comparing", "contractions", "creation", "differences",
          "elementwise", "exponentials", "files", "gathering", "joining", "layers", "layout",
          "linalg", "mathematics", "matrices", "nans", "nn", "padding", "printing", "ranges",
          "reductions", "scans", "searching", "statistics"]  # fmt: skip
    for module in (vg, vg.nn.functional):
        assert len(module.__all__) == len(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("name", ["dense_backward", "gelu", "silu"])
def test_some_names_are_those_of_networks_alone(name):
    assert name in vg.nn.functional.__all__ and not hasattr(vg, name)


def test_the_package_is_what_is_tested():
    assert {module for module in sys.modules if module.startswith("pyvecgpu")} <= set(MODULES)
    assert dispatch.__name__ in MODULES
