"""What native/elf.py asks of a library's headers: each one that is wrong is refused and named."""

import os
import shutil
import struct
import subprocess

import pytest
from helpers import ROOT

from pyvecgpu.native import elf

SIM = ROOT / "pyvecgpu" / "libpyvecgpu_sim.so"
HEADER, SEGMENT, SECTION = "<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<IIQQQQIIQQ"
FIELDS = (
    *("mark", "type", "machine", "version", "entry", "segments", "sections", "flags", "size"),
    *("segment_size", "segment_count", "section_size", "section_count", "names"),
)
LOAD, DYNAMIC, NOTE, TLS, STACK, RELRO = 1, 2, 4, 7, 0x6474E551, 0x6474E552
EXECUTE, WRITE, READ = 1, 2, 4
PAGE = 0x1000


class Library:
    """A copy of a library whose headers can be changed one field at a time."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            values = struct.unpack(HEADER, file.read(64))
        self.header = dict(zip(FIELDS, values, strict=True))

    def write(self, offset, layout, values):
        with open(self.path, "r+b") as file:
            file.seek(offset)
            file.write(struct.pack(layout, *values))

    def set(self, **fields):
        """Change fields of the file's header."""
        self.write(0, HEADER, (self.header | fields).values())

    def segments(self):
        """(offset in the file, Segment), all of them."""
        start, content = self.header["segments"], self.path.read_bytes()
        for number in range(self.header["segment_count"]):
            offset = start + 56 * number
            yield offset, elf.Segment(*struct.unpack_from(SEGMENT, content, offset))

    def change(self, is_meant, **fields):
        """Change fields of the last segment that is meant; fields may be functions of their old."""
        offset, one = [pair for pair in self.segments() if is_meant(pair[1])][-1]
        fields = {
            name: value(getattr(one, name)) if callable(value) else value
            for name, value in fields.items()
        }
        self.write(offset, SEGMENT, one._replace(**fields))


def of_type(number):
    return lambda one: one.type == number


def code(one):
    return one.type == LOAD and one.flags & EXECUTE


def variables(one):
    return one.type == LOAD and one.flags & WRITE


def segment(is_meant, **fields):
    return lambda library: library.change(is_meant, **fields)


def header(**fields):
    return lambda library: library.set(**fields)


# What is done to the headers, and what is said of it.
WRONG = {
    "a program": (header(type=1), "it is not a shared library"),
    "another format": (header(mark=b"\x7fELF\2\1\0" + bytes(9)), "it is not a shared library"),
    "a later format": (header(version=2), "it is not a shared library"),
    "segments' size": (header(segment_size=55), "entries of a wrong size"),
    "sections' size": (header(section_size=63), "entries of a wrong size"),
    "sections behind the end": (header(sections=2**40), "it is truncated: "),
    "segments behind the end": (header(segments=2**40), "it is truncated: "),
    "a segment behind the end": (segment(variables, offset=2**40), "it is truncated: "),
    "no alignment": (segment(code, alignment=0), "alignment"),
    "an odd alignment": (segment(code, alignment=3), "alignment"),
    "off its alignment": (segment(code, address=lambda x: x + 8), "alignment"),
    "larger in the file": (segment(code, size=16), "segments overlap"),
    "one in the other": (segment(variables, address=lambda x: x % PAGE), "segments overlap"),
    "not to be read": (segment(code, flags=EXECUTE), "permissions"),
    "other permissions": (segment(code, flags=READ | EXECUTE | 8), "permissions"),
    "elsewhere": (segment(of_type(DYNAMIC), address=2**40), "a part lies outside of the segments"),
    "elsewhere in the file": (
        segment(of_type(DYNAMIC), offset=lambda x: x - 8),
        "a part lies outside of the segments",
    ),
    "too long": (segment(of_type(DYNAMIC), size=2**40), "a part lies outside of the segments"),
    "a stack of code": (segment(of_type(STACK), flags=READ | WRITE | EXECUTE), "the stack"),
    "a stack that is read": (segment(of_type(STACK), flags=READ), "the stack"),
    "no stack": (segment(of_type(STACK), type=NOTE), "the stack"),
    "a second stack": (segment(of_type(RELRO), type=STACK), "the stack"),
    "a short segment": (segment(variables, size=lambda x: x - 64), "a section lies outside"),
    "a short part of a file": (
        segment(variables, file_size=lambda x: x - 64),
        "the length of a segment",
    ),
    "another place in the file": (
        segment(code, offset=lambda x: x - PAGE),
        "the place of a section",
    ),
    "code that is not run": (segment(code, flags=READ), "the permissions of a segment"),
    "variables of code": (segment(variables, flags=READ), "the permissions of a segment"),
    "a shorter list": (segment(of_type(DYNAMIC), size=lambda x: x - 16), "the dynamic section"),
    "no list": (segment(of_type(DYNAMIC), type=NOTE), "the dynamic section"),
    "threads without memory": (segment(of_type(TLS), type=NOTE, size=0), "the memory of threads"),
    "threads with less": (segment(of_type(TLS), size=lambda x: x - 1), "the memory of threads"),
    "threads with zeros": (segment(of_type(TLS), file_size=0), "the memory of threads"),
    "threads off their bounds": (segment(of_type(TLS), alignment=1), "the memory of threads"),
    "all variables fixed": (segment(of_type(RELRO), size=2**30), "read-only data"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "whole.so"
    shutil.copyfile(SIM, path)
    return Library(path)


def test_a_whole_library(whole):
    elf.check_library(whole.path)


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_header_is_refused(whole, name):
    change, said = WRONG[name]
    size = whole.header["segments"] + 56 * whole.header["segment_count"]
    before = whole.path.read_bytes()[:size]
    try:
        change(whole)
        with pytest.raises(OSError, match=f"(^|headers are damaged: ){said}"):
            elf.check_library(whole.path)
    finally:
        whole.write(0, f"{size}s", (before,))


def test_truncated_by_a_byte(whole, tmp_path):
    """Of the file, or of the last header that it says to have."""
    size, path = whole.path.stat().st_size, tmp_path / "shorter.so"
    for length, said in ((size - 1, "truncated"), (64, "truncated"), (63, "not a shared library")):
        path.write_bytes(whole.path.read_bytes()[:length])
        with pytest.raises(OSError, match=said):
            elf.check_library(path)
    for name, length in (("segments", 56), ("sections", 64)):
        count = whole.header[f"{name[:-1]}_count"]
        try:
            whole.set(**{name: size - length * count + 1})
            with pytest.raises(OSError, match=f"truncated: {size} bytes of {size + 1}$"):
                elf.check_library(whole.path)
        finally:
            whole.set()


@pytest.mark.parametrize("mark", [b"\1\1", b"\2\2"], ids=["32 bits", "big-endian"])
def test_what_the_loader_names_itself(whole, mark):
    try:
        whole.set(mark=b"\x7fELF" + mark + b"\1" + bytes(9), type=0)
        elf.check_library(whole.path)
    finally:
        whole.set()


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.parametrize(
    "source",
    ["int f(void) { return 1; }", "int x; int *f(void) { return &x; }", "__thread int x[3];"],
    ids=["no variables", "zeros", "memory of threads"],
)
def test_small_libraries(tmp_path, source):
    """Without what larger ones have: memory of threads, zeros, values of either."""
    (tmp_path / "small.c").write_text(source)
    command = ["cc", "-shared", "-fPIC", "-nostdlib", "-o", "small.so", "small.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    elf.check_library(tmp_path / "small.so")


def test_a_library_of_another_machine(whole, monkeypatch):
    """The one that it is for and the one that this is; of machines without a name the number."""
    machine = os.uname().machine
    try:
        for number, name in ((62, "x86_64"), (183, "aarch64"), (999, "machine type 999")):
            whole.set(machine=number)
            if name == machine:
                elf.check_library(whole.path)
                continue
            with pytest.raises(OSError, match=f"built for {name}, this machine is {machine}"):
                elf.check_library(whole.path)
    finally:
        whole.set()
