"""The C ABI is the same everywhere: the header, the ctypes table, and what both libraries export.

Function types are compared by the C compiler: for each row of the table a pointer of the table's
type is assigned the header's function, with warnings as errors. The table has a class for each kind
of handle; ctypes knows no const and one type for all other pointers, so that there the header says
to what, and the table says that it is one.
"""

import ctypes
import itertools
import pathlib
import re
import subprocess

import pytest

import pyvecgpu
from pyvecgpu import dtypes
from pyvecgpu.native import abi
from pyvecgpu.operations import Operation

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "cuda/pyvecgpu.h"
SIMULATOR_HEADER = ROOT / "cuda/simulator/pyvecgpu_sim.h"
PACKAGE = pathlib.Path(pyvecgpu.__file__).parent
LIBRARIES = {"cuda": PACKAGE / "libpyvecgpu.so", "sim": PACKAGE / "libpyvecgpu_sim.so"}
ENUMS = abi.ENUMS | {"pvg_operation": Operation}
TABLES = {HEADER: abi.FUNCTIONS, SIMULATOR_HEADER: abi.SIMULATOR_FUNCTIONS}

C_TYPES = {
    ctypes.c_int: "int",
    ctypes.c_int64: "int64_t",
    ctypes.c_uint64: "uint64_t",
    ctypes.c_double: "double",
    ctypes.c_char_p: "const char *",
    None: "void",
}
HANDLE_CLASSES = {abi.array: "array", abi.out: "array", abi.stream: "stream"}
HANDLE_CLASSES |= {abi.event: "event", abi.graph: "graph"}
BORROWED = {"void", "pvg_stream"}  # what a plain pointer of the table points to


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)


def library(name):
    """The path of a built library; both are always built by `make`, so that none is a failure."""
    path = LIBRARIES[name]
    if not path.exists():
        pytest.fail(
            f"{path.name} is not in {PACKAGE.name}/: run `make`, which builds both libraries"
        )
    return path


def source(header):
    return re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)


def declarations(header):
    """{symbol: (result type, [parameter types])}, as the header spells them."""
    found = {}
    pattern = r"^(?:PVG_API|PVG_SIM_EXPORT)\s+([\w\s]+?[\s*]+)(pvg_\w+)\(([^)]*)\);"
    for result, name, parameters in re.findall(pattern, source(header), flags=re.M):
        types = [re.sub(r"\w+\s*$", "", one).strip() for one in parameters.split(",")]
        found[name] = (result.strip(), [] if parameters.strip() == "void" else types)
    return found


def enumerators(header):
    """{enumeration: [names of its members]}."""
    found = {}
    for name, body in re.findall(r"^enum (\w+) \{(.*?)\};", source(header), flags=re.M | re.S):
        found[name] = re.findall(r"\b(PVG_\w+)\s*=", body)
    return found


def c_type(kind, declared):
    """The C type of a row's ctypes type, in the header's words where ctypes has none."""
    if kind is abi.deleter:
        return "pvg_deleter"
    if kind is ctypes.c_longlong and declared == "long long":  # ctypes may have one type for both
        return declared
    if kind in C_TYPES:
        return C_TYPES[kind]
    const = "const " if declared.startswith("const ") else ""
    if kind is abi.arrays:
        return f"{const}pvg_array *const *"
    if kind in HANDLE_CLASSES:
        return f"{const}pvg_{HANDLE_CLASSES[kind]} *"
    if kind in (ctypes.c_void_p, abi.value):
        target = declared.removeprefix("const ").removesuffix("*").strip()
        return f"{const}{target if target in BORROWED else 'void'} *"
    if kind._type_ in HANDLE_CLASSES:
        return f"{c_type(kind._type_, declared.removesuffix('*').strip())} *"
    return f"{const}{C_TYPES[kind._type_]} *"


def assignments(header, table):
    """A C file that compiles without a warning if the table's types are the header's."""
    declared = declarations(header)
    lines = [f'#include "{header}"']
    for number, (name, (result, arguments)) in enumerate(table.items()):
        result_text, parameter_texts = declared[name]
        padded = parameter_texts + [""] * len(arguments)
        parameters = [c_type(*pair) for pair in zip(arguments, padded, strict=False)] or ["void"]
        pointer = f"(*check_{number})({', '.join(parameters)})"
        lines.append(f"extern {c_type(result, result_text)} {pointer};")
        lines.append(f"{c_type(result, result_text)} {pointer} = {name};")
    return "\n".join(lines) + "\n"


def compile_c(text):
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    return run("gcc", *flags, "-x", "c", "-", text=text)


@pytest.mark.parametrize("header", TABLES, ids=lambda path: path.name)
def test_header_declares_the_table(header):
    declared = declarations(header)
    assert declared, f"no declaration was found in {header.name}"
    assert sorted(declared) == sorted(TABLES[header])
    mentioned = set(re.findall(r"\b(pvg_\w+)\(", source(header)))
    inline = set(re.findall(r"static inline pvg_array \*(pvg_\w+)\(", source(header)))
    assert mentioned - inline == set(declared)


@pytest.mark.parametrize("header", TABLES, ids=lambda path: path.name)
def test_table_has_the_types_of_the_header(header):
    compiled = compile_c(assignments(header, TABLES[header]))
    assert compiled.returncode == 0, compiled.stderr


WRONG_ROWS = {
    "int for int64_t": ("pvg_dtype_size", (ctypes.c_int, [ctypes.c_int])),
    "int64_t for int": ("pvg_get_option", (ctypes.c_int, [ctypes.c_int64, abi.int64s])),
    "int * for int64_t *": ("pvg_memory_info", (ctypes.c_int, [ctypes.c_int, abi.ints])),
    "number for handle": ("pvg_array_release", (ctypes.c_int, [ctypes.c_int64])),
    "handle for number": ("pvg_synchronize", (ctypes.c_int, [ctypes.c_void_p])),
    "one argument less": ("pvg_copy", (ctypes.c_int, [abi.array])),
    "one argument more": ("pvg_copy", (ctypes.c_int, [abi.array, abi.array, ctypes.c_int])),
    "event for stream": ("pvg_stream_release", (ctypes.c_int, [abi.event])),
    "no result": ("pvg_array_size", (None, [abi.array])),
    "text for memory": ("pvg_fill", (ctypes.c_int, [abi.array, ctypes.c_int, ctypes.c_char_p])),
}


@pytest.mark.parametrize("mistake", WRONG_ROWS)
def test_a_wrong_row_does_not_compile(mistake):
    name, row = WRONG_ROWS[mistake]
    compiled = compile_c(assignments(HEADER, {**abi.FUNCTIONS, name: row}))
    assert compiled.returncode != 0
    assert "incompatible" in compiled.stderr


def test_enumerations_of_the_header_are_those_of_the_table():
    declared = enumerators(HEADER)
    assert sorted(declared) == sorted(ENUMS)
    lines = [
        f'#include "{HEADER}"',
        "#define SAME(a, b, n) typedef char same_##n[(a) == (b) ? 1 : -1]",
    ]
    lines += [f"SAME(PVG_ABI_VERSION, {abi.ABI_VERSION}, version);"]
    lines += [f"SAME(PVG_MAX_NDIM, {abi.MAX_NDIM}, ndim);"]
    for name, members in ENUMS.items():
        assert sorted(declared[name]) == sorted(f"PVG_{member.name}" for member in members)
        lines += [f"SAME(PVG_{m.name}, {m.value}, {m.name});" for m in members]
    compiled = compile_c("\n".join(lines) + "\n")
    assert compiled.returncode == 0, compiled.stderr
    changed = "\n".join(lines).replace("PVG_FLOAT32, 11", "PVG_FLOAT32, 12") + "\n"
    assert compile_c(changed).returncode != 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_library_exports_the_table_and_nothing_else(name):
    listed = run("nm", "-D", "--defined-only", str(library(name)))
    assert listed.returncode == 0, listed.stderr
    exported = {line.split()[-1].split("@")[0] for line in listed.stdout.splitlines()}
    expected = set(abi.FUNCTIONS) | (set(abi.SIMULATOR_FUNCTIONS) if name == "sim" else set())
    assert exported == expected


@pytest.mark.parametrize("name", LIBRARIES)
def test_library_is_self_contained_and_hardened(name):
    dynamic = run("readelf", "-dW", str(library(name))).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    system = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
    system |= {"libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert needed and needed <= system  # neither the driver (libcuda) nor the runtime (libcudart)
    assert "(RPATH)" not in dynamic and "(RUNPATH)" not in dynamic
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1.*NOW", dynamic)
    assert f"[{library(name).name}]" in dynamic.split("(SONAME)")[1].splitlines()[0]
    segments = run("readelf", "-lW", str(library(name))).stdout
    assert "GNU_RELRO" in segments
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    assert " RW " in stack and "RWE" not in stack


@pytest.mark.parametrize("name", LIBRARIES)
def test_library_says_which_abi_it_is(name):
    loaded = ctypes.CDLL(str(library(name)))
    assert loaded.pvg_abi_version() == abi.ABI_VERSION
    loaded.pvg_build_info.restype = ctypes.c_char_p
    information = dict(
        line.split(": ", 1) for line in loaded.pvg_build_info().decode().splitlines()
    )
    assert information["simulator"] == ("yes" if name == "sim" else "no")
    assert information["version"] == pyvecgpu.__version__


@pytest.mark.parametrize("name", LIBRARIES)
def test_dtypes_of_the_header_are_those_of_the_table(name):
    """Every one has Python's size, name and promotion; no other code has any."""
    loaded = ctypes.CDLL(str(library(name)))
    for function in ("pvg_dtype_size", "pvg_dtype_name", "pvg_promote"):
        getattr(loaded, function).restype = abi.FUNCTIONS[function][0]
    declared = {name.removeprefix("PVG_").lower() for name in enumerators(HEADER)["pvg_dtype"]}
    assert declared == {dtype.name for dtype in dtypes.CODES}
    assert {dtype: abi.DType[dtype.name.upper()] for dtype in dtypes.CODES} == dtypes.CODES
    for code in range(-1, 30):
        dtype = dtypes.DTYPES.get(code)
        assert loaded.pvg_dtype_size(code) == (dtype.itemsize if dtype else 0), code
        if dtype:
            assert loaded.pvg_dtype_name(code).decode() == dtype.name
    for a, b in itertools.product(range(-1, 30), repeat=2):
        known = a in dtypes.DTYPES and b in dtypes.DTYPES
        expected = dtypes.CODES[dtypes.promote(dtypes.DTYPES[a], dtypes.DTYPES[b])] if known else -1
        assert loaded.pvg_promote(a, b) == expected, (a, b)


@pytest.mark.parametrize("header", TABLES, ids=lambda path: path.name)
@pytest.mark.parametrize(
    "language", ["c -std=c99", "c -std=c17", "c++ -std=c++11", "c++ -std=c++20"]
)
def test_header_compiles_alone(header, language):
    flags = f"-pedantic -Wall -Wextra -Werror -fsyntax-only -x {language}".split()
    compiled = run("gcc", *flags, "-", text=f'#include "{header}"\n')
    assert compiled.returncode == 0, compiled.stderr
