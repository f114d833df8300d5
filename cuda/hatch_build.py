"""Wheel hook: runs make and puts the two libraries into the wheel.

PVG_WHEEL says how: "cuda" builds the libraries, with nvcc from PyPI where the machine has none, and
fails where that fails; "none" makes a pure wheel that computes on the CPU. Unset, it is "cuda" on
Linux with make and g++, else "none".
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = ("pyvecgpu/libpyvecgpu.so", "pyvecgpu/libpyvecgpu_sim.so")


def wheel_kind():
    """Return "cuda" or "none"."""
    kind = os.environ.get("PVG_WHEEL")
    if kind is None:
        can_build = platform.system() == "Linux" and shutil.which("make") and shutil.which("g++")
        return "cuda" if can_build else "none"
    if kind not in ("cuda", "none"):
        raise ValueError(f"PVG_WHEEL is {kind!r}; it can be 'cuda' or 'none'")
    return kind


def make_command(root, *targets):
    """Return the command that makes `targets` with this interpreter and installs nothing."""
    return ["make", "-C", root, "--no-print-directory", f"PYTHON={sys.executable}", *targets]


class CustomBuildHook(BuildHookInterface):
    def dependencies(self):
        """Return NVIDIA's wheels where the machine has no nvcc of its own."""
        if wheel_kind() == "none":
            return []
        return subprocess.check_output(make_command(self.root, "toolkit-wheels"), text=True).split()

    def initialize(self, version, build_data):
        """Build, and name the libraries and the platform to hatchling."""
        if wheel_kind() == "none":
            self.app.display_warning("a wheel without CUDA: that needs Linux, make and g++")
            return
        subprocess.run(make_command(self.root, "lib", "sim"), check=True)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{re.sub('[-.]', '_', sysconfig.get_platform())}"
        if version != "editable":  # an editable install points at pyvecgpu/, where make put them
            for library in LIBRARIES:
                build_data["force_include"][str(Path(self.root, library))] = library
