"""Wheel hook: runs make and puts the two libraries and the C header into the wheel.

PVG_WHEEL says how: "cuda" builds the libraries, with nvcc from PyPI where the machine has none, and
fails where that fails; "manylinux" does so too and tags the wheel by the glibc that the libraries
need, for other machines; "none" makes a pure wheel that computes on the CPU. Unset, it is "cuda" on
Linux with make and g++, else "none".
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = ("pyvecgpu/libpyvecgpu.so", "pyvecgpu/libpyvecgpu_sim.so")
HEADER = "cuda/pyvecgpu.h"
# In a wheel without libraries: why there are none, for pyvecgpu/native/library.py to tell.
NOTE = "pyvecgpu/without_libraries.txt"
KINDS = ("cuda", "manylinux", "none")
AGAIN = "install pyvecgpu again, with pip's --force-reinstall --no-cache-dir"


def wheel_kind():
    """Return one of KINDS, and for "none" a sentence that says why and what helps."""
    kind = os.environ.get("PVG_WHEEL")
    if kind not in (None, *KINDS):
        raise ValueError(f"PVG_WHEEL is {kind!r}; it can be one of {', '.join(KINDS)}")
    if kind == "none":
        return kind, f"PVG_WHEEL=none was set when it was installed; without it, {AGAIN}"
    if kind is not None:
        return kind, None
    if platform.system() != "Linux":
        return "none", "its kernels are built on Linux only"
    compiler = os.environ.get("CXX", "g++").split()[0]
    missing = [tool for tool in ("make", compiler) if shutil.which(tool) is None]
    if not missing:
        return "cuda", None
    tools = " and ".join(missing)
    return "none", (
        f"{tools} could not be found when it was installed; on Debian and Ubuntu: "
        f"sudo apt-get install make g++, then {AGAIN}"
    )


def make(root, *targets, **options):
    """Return a process of make, with this interpreter, that installs nothing."""
    command = ["make", "-C", root, "--no-print-directory", f"PYTHON={sys.executable}", *targets]
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")  # of a make that runs this
    variables = {name: value for name, value in os.environ.items() if name not in outer}
    return subprocess.Popen(command, env=variables, text=True, stdout=subprocess.PIPE, **options)


def output_of(process):
    """Return what it printed; CalledProcessError if it failed."""
    text, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return text


def is_compilation(line):
    return line.startswith(("nvcc ", "g++ "))


def build(root):
    """Make both libraries; print what is compiled, and in a fresh folder how far it is."""
    steps = ""
    if not Path(root, "build", "gpu").exists():
        plan = output_of(make(root, "-n", "lib", "sim"))
        steps = len(re.findall(r"echo '(?:nvcc|g\+\+) ", plan))
    with make(root, "lib", "sim") as process:
        done = 0
        for line in process.stdout:
            done += is_compilation(line)
            counted = f"[{done}/{steps}] " if steps and is_compilation(line) else ""
            print(f"{counted}{line}", end="", flush=True)
    if process.returncode:
        raise RuntimeError(f"make failed in {root}, and says above why")


def platform_tag(root, kind):
    """Return the tag for this machine, or for every one whose glibc is new enough."""
    machine = re.sub("[-.]", "_", sysconfig.get_platform())
    if kind != "manylinux":
        return machine
    contents = b"".join(Path(root, library).read_bytes() for library in LIBRARIES)
    versions = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=[\0.])", contents)
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return machine.replace("linux", f"manylinux_{major}_{minor}", 1)


class CustomBuildHook(BuildHookInterface):
    def dependencies(self):
        """Return NVIDIA's wheels where the machine has no nvcc of its own."""
        if wheel_kind()[0] == "none":
            return []
        return output_of(make(self.root, "toolkit-wheels")).split()

    def initialize(self, version, build_data):
        """Build, and name the files and the platform to hatchling."""
        included = build_data["force_include"]
        kind, reason = wheel_kind()
        if kind == "none":
            note = f"this pyvecgpu has no libraries and computes on the CPU: {reason}"
            self.app.display_warning(note)
        else:
            build(self.root)
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag(self.root, kind)}"
        if version == "editable":  # it points at pyvecgpu/, where make put the libraries
            return
        included[str(Path(self.root, HEADER))] = "pyvecgpu/include/pyvecgpu.h"
        if kind == "none":
            self.folder = tempfile.TemporaryDirectory()
            path = Path(self.folder.name, "note.txt")
            path.write_text(note + "\n", encoding="utf-8")
            included[str(path)] = NOTE
        else:
            for library in LIBRARIES:
                included[str(Path(self.root, library))] = library

    def finalize(self, version, build_data, artifact_path):
        """Remove what the wheel has taken in."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
