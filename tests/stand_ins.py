"""Compilers that take no time: a folder for PATH in which nvcc and g++ only hand out files.

An object is an empty file, and a library that is linked is the one that make has built here. So a
whole build runs in seconds: make's rules, the wheel's hook and pip, all but the compilers' work.
"""

import os
import shutil
from pathlib import Path

from helpers import ROOT

TOOLS = (
    "awk bash cat chmod cmp cp cut date dirname echo env expr false find grep head id install ln ls"
    " mkdir mktemp mv nproc rm sed seq sh sort stat tail tar tee test touch tr true uname uniq wc"
)
COMPILER = """#!/bin/sh
echo "{name} $*" >>"{log}"
case "$*" in
*--dryrun*) echo '#$ INCLUDES="-I{include}"' >&2; exit ;;
*--list-gpu-arch*) printf 'compute_%s\\n' 75 80 90 100 120; exit ;;
--version) echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit ;;
esac
linked= out=
while [ $# -gt 0 ]; do
    case "$1" in
    -shared) linked=yes ;;
    -o) out=$2; shift ;;
    -MF) : >"$2"; shift ;;
    esac
    shift
done
name=${{out##*/}}
if [ $linked ]; then cp "{libraries}/${{name%%.so*}}.so" "$out"; else : >"$out"; fi
"""


def write_program(path, text):
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def tools(folder, *left_out):
    """Make a folder for PATH with links to the tools that make needs, but for some of them."""
    folder.mkdir(exist_ok=True)
    for name in [*TOOLS.split(), "make"]:
        found = shutil.which(name)
        if found and name not in left_out:
            (folder / name).symlink_to(found)
    return folder


def compilers(folder):
    """Add nvcc and g++, whose calls are noted in the file that is returned."""
    log = folder / "calls"
    log.touch()
    for name in ("nvcc", "g++"):
        text = COMPILER.format(name=name, log=log, include=folder, libraries=ROOT / "pyvecgpu")
        write_program(folder / name, text)
    return log


def environment(path, **variables):
    """Return an environment for a new user: nothing but PATH and an empty home."""
    home = Path(path) / "home"
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    return {**kept, "PATH": str(path), "HOME": str(home), **variables}
