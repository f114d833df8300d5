"""Floors of the C library only go down: what its files include, and what their objects call.

The floors, from the ground: dtypes/ and runtime/ side by side, arrays/, kernels/, and library.cu on
top, which alone knows every family of kernels. In kernels/ a family is a .cu file (with those whose
names begin with its own and "_") or a folder, and uses no other family but by a header with a bare
name, such as elementwise.cuh; its own headers are called like reduce_kernels.cuh. matmul/ has
rooms: the front, which is the files beside its README and plan/, and a folder for each generation
of cards, which uses the front's headers, its own and those of older cards.

Includes alone would not do: a function of a higher floor can be declared by hand. So the objects
that the libraries were linked from are asked too, what each defines and what it lacks.
"""

import re
import subprocess
from pathlib import PurePosixPath as Path

import pytest
from helpers import ROOT

CUDA = ROOT / "cuda"
# A floor, and those that it stands on. pyvecgpu.h is everybody's.
BELOW = {
    "dtypes": (),
    "runtime": (),
    "arrays": ("dtypes", "runtime"),
    "kernels": ("dtypes", "runtime", "arrays"),
    "library": ("dtypes", "runtime", "arrays", "kernels"),
}
# A family's rooms, "" being its folder itself: each may use those of its own number and below.
ROOMS = {"matmul": {"": 0, "plan": 0, "simt": 1, "sm80": 2, "sm90": 3}}
# The launches of lessons from Python: the one file that shows the library another folder.
LESSONS = ("kernels/learn.cu", "lessons")
LIBRARIES = {"gpu": "libpyvecgpu.so", "sim": "libpyvecgpu_sim.so"}


# ---- Where a file lives --------------------------------------------------------------------------


def floor_of(path):
    """The floor of a file under cuda/; None for what is no part of the library."""
    parts = Path(path).with_suffix("").parts
    return parts[0] if parts[0] in BELOW and (len(parts) > 1) == (parts[0] != "library") else None


def family_of(path, families):
    """The family of a file of kernels/; None if all families may use it."""
    name = Path(path).parts[1]
    if "." not in name:
        return name  # a folder
    stem, kind = name.split(".")
    if kind == "cuh" and "_" not in stem:
        return None
    of = [one for one in families if stem == one or stem.startswith(f"{one}_")]
    return min(of, key=len) if of else None


def room_of(path):
    """The room of a file in a family's folder: "" is the front."""
    parts = Path(path).parts
    return parts[2] if len(parts) == 4 else ""


def families_of(paths):
    """The families of kernels/: its folders, and its .cu files."""
    names = {Path(path).parts[1] for path in paths}
    return {name.removesuffix(".cu") for name in names if not name.endswith(".cuh")}


def climb(user, used, families):
    """Why one file of the library must not use another; None if it may."""
    high, low = floor_of(user), floor_of(used)
    if (user, Path(used).parts[0]) == LESSONS:
        return None
    if low is None:
        return "no part of the library"
    if low != high:
        return None if low in BELOW[high] else f"{high} does not stand on {low}"
    if high != "kernels":
        return None
    family, other = (family_of(path, families) for path in (user, used))
    if other not in (None, family):
        return f"a family uses another one, {other}"
    if family not in ROOMS or other is None:
        return None
    mine, other = room_of(user), room_of(used)
    unknown = {mine, other} - ROOMS[family].keys()
    if unknown:
        return f"ROOMS does not say where {unknown} are"
    below = ROOMS[family][other] <= ROOMS[family][mine]
    return None if below else f"{mine or 'the front'} comes before {other}"


# ---- Includes ------------------------------------------------------------------------------------


def library_files():
    found = (path.relative_to(CUDA).as_posix() for path in CUDA.rglob("*.cu*"))
    return sorted(path for path in found if floor_of(path))


def includes_of(text):
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', text, re.MULTILINE)


def test_includes_only_go_down():
    files = library_files()
    families = families_of([path for path in files if floor_of(path) == "kernels"])
    assert len(files) > 60 and families >= {"unary", "binary", "where", "reduce", "learn", "matmul"}
    wrong, seen = [], 0
    for path in files:
        for name in includes_of((CUDA / path).read_text(encoding="utf-8")):
            if name == "pyvecgpu.h" or not (CUDA / name).exists():
                beside = (CUDA / path).parent / name
                assert not beside.exists(), f"{path}: {name} is not named from cuda/ on"
                continue  # the toolkit's and the system's
            seen += 1
            why = climb(path, name, families)
            if why:
                wrong.append(f"{path} includes {name}: {why}")
    assert seen > 100
    assert not wrong, "\n".join(wrong)


# ---- Calls ---------------------------------------------------------------------------------------


def symbols(path):
    """What an object file defines, and what it takes from others: two sets of readable names."""
    run = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True, timeout=60)
    defines, lacks = set(), set()
    for kind, name in re.findall(r"^[0-9a-f ]+ (\w) (.*)$", run.stdout, re.MULTILINE):
        if kind in "TDBRG":
            defines.add(name)
        elif kind == "U":
            lacks.add(name)
    return defines, lacks


def calls_of(objects):
    """(who uses it, who defines it, the symbol) of all symbols that cross from file to file.

    `objects`: {source file: (defined, lacked)}. What nobody defines is another library's.
    """
    owner = {name: path for path, (defines, _) in objects.items() for name in defines}
    for path, (_, lacks) in objects.items():
        for name in sorted(lacks & owner.keys()):
            yield path, owner[name], name


def test_calls_only_go_down(build):
    files = library_files()
    families = families_of([path for path in files if floor_of(path) == "kernels"])
    objects = {}
    for path in files:
        if path.endswith(".cu"):
            built = (ROOT / "build" / build / path).with_suffix(".o")
            assert built.exists(), f"{built.relative_to(ROOT)} is not there: run `make`"
            objects[path] = symbols(built)
    wrong, seen = [], 0
    for user, owner, name in calls_of(objects):
        seen += 1
        why = None if is_on_show(user, owner) else climb(user, owner, families)
        if why:
            wrong.append(f"{user} uses {name} of {owner}: {why}")
    assert seen > 200
    assert not wrong, "\n".join(wrong)


def is_on_show(user, owner):
    """Whether a symbol of another file of kernels/ is declared for all to use.

    That is so beside a header with the file's own bare name. And the front of a folder has the
    table of choice: it launches what the rooms have, by the declarations of its own headers.
    """
    if floor_of(user) != "kernels" or floor_of(owner) != "kernels":
        return False
    folder = Path(owner).parts[1]
    if folder in ROOMS:
        return Path(user).parts[1] == folder and room_of(user) == ""
    return "_" not in Path(owner).stem and (CUDA / owner).with_suffix(".cuh").exists()


def pytest_generate_tests(metafunc):
    """The builds whose library is in pyvecgpu/."""
    if "build" in metafunc.fixturenames:
        there = [one for one, name in LIBRARIES.items() if (ROOT / "pyvecgpu" / name).exists()]
        metafunc.parametrize("build", there or list(LIBRARIES))


# ---- The rules themselves ------------------------------------------------------------------------

FAMILIES = {"unary", "elementwise", "reduce", "learn", "matmul"}
FINE = [
    ("arrays/call.cu", "runtime/stream.cuh"),
    ("arrays/array.cuh", "dtypes/dtype.cuh"),
    ("kernels/unary.cu", "arrays/map.cuh"),
    ("kernels/unary.cu", "kernels/elementwise.cuh"),
    ("kernels/reduce.cu", "kernels/reduce_kernels.cuh"),
    ("kernels/reduce_other.cu", "kernels/reduce_kernels.cuh"),
    ("kernels/learn.cu", "lessons/15_layer.cu"),
    ("kernels/matmul/simt/tiny.cu", "kernels/matmul/product.cuh"),
    ("kernels/matmul/dispatch.cuh", "kernels/matmul/plan/plan.cuh"),
    ("kernels/matmul/plan/plan.cuh", "kernels/matmul/product.cuh"),
    ("kernels/matmul/sm90/emulated.cu", "kernels/matmul/simt/recompute.cuh"),
    ("kernels/matmul/sm80/dmma.cu", "kernels/activation.cuh"),
    ("library.cu", "kernels/elementwise.cuh"),
]
CLIMBS = [
    ("dtypes/dtype.cuh", "runtime/error.cuh"),
    ("runtime/stream.cu", "arrays/array.cuh"),
    ("runtime/storage.cu", "dtypes/dtype.cuh"),
    ("arrays/copy.cu", "kernels/elementwise.cuh"),
    ("arrays/copy.cu", "library.cu"),
    ("kernels/unary.cu", "library.cu"),
    ("kernels/unary.cu", "kernels/reduce_kernels.cuh"),
    ("kernels/activation.cuh", "kernels/reduce_kernels.cuh"),
    ("kernels/unary.cu", "kernels/matmul/product.cuh"),
    ("kernels/unary.cu", "lessons/15_layer.cu"),
    ("kernels/unary.cu", "simulator/simulator.h"),
    ("kernels/matmul/matmul.cu", "kernels/matmul/simt/tile.cuh"),
    ("kernels/matmul/plan/plan.cu", "kernels/matmul/simt/tile.cuh"),
    ("kernels/matmul/simt/gemv.cu", "kernels/matmul/sm90/store.cuh"),
    ("kernels/matmul/sm100/new.cu", "kernels/matmul/product.cuh"),
    ("kernels/matmul/sm80/dmma.cu", "kernels/matmul/sm90/schedule.cuh"),
]


@pytest.mark.parametrize(("user", "used"), FINE)
def test_rules_allow(user, used):
    assert climb(user, used, FAMILIES) is None


@pytest.mark.parametrize(("user", "used"), CLIMBS)
def test_rules_forbid(user, used):
    assert climb(user, used, FAMILIES)


def test_a_declaration_by_hand_is_noticed():
    objects = {
        "runtime/memory.cu": ({"pvg::take(long)"}, {"pvg::option", "malloc"}),
        "library.cu": ({"pvg::option"}, {"pvg::take(long)"}),
    }
    (up, down) = calls_of(objects)
    assert up == ("runtime/memory.cu", "library.cu", "pvg::option")
    assert climb(*up[:2], FAMILIES) and not climb(*down[:2], FAMILIES)
