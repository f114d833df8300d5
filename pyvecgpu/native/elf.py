"""Whether a file is a whole shared library for this machine, before the dynamic loader has it.

The loader believes a file's headers: where they are damaged, or promise more than there is, the
process ends by a signal. So the program headers, which the loader goes by, are compared with the
section headers, which the linker wrote of the same facts and the loader does not read. What lies in
the sections is believed here too. A build id would not help: it says of which build a file is, and
nothing of what has been damaged since.
"""

import os
import struct
from typing import NamedTuple

_MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine
_LOAD, _DYNAMIC, _TLS, _STACK, _RELRO = 1, 2, 7, 0x6474E551, 0x6474E552  # p_type
_ALLOC, _THREAD = 2, 0x400  # sh_flags: part of the process's memory; of each thread's
_NOBITS = 8  # sh_type: zeros that are not in the file
_EXECUTE, _WRITE, _READ = 1, 2, 4  # p_flags


class Segment(NamedTuple):
    """A program header."""

    type: int
    flags: int
    offset: int
    address: int
    physical: int
    file_size: int
    size: int
    alignment: int

    def holds(self, address, size):
        return self.address <= address and address + size <= self.address + self.size


class Section(NamedTuple):
    """A section header."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def permissions(self):
        """The p_flags that its segment has to have."""
        return _READ | (_WRITE if self.flags & 1 else 0) | (_EXECUTE if self.flags & 4 else 0)


def check_library(path):
    """OSError, with the reason, if the loader must not be given the file."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:4] != b"\x7fELF":
            raise OSError("it is not a shared library")
        if header[4:6] != b"\x02\x01":  # the loader names the other classes and byte orders itself
            return
        kind, machine, version, _, segments, sections = struct.unpack_from("<HHIQQQ", header, 16)
        segment_size, segment_count, section_size, section_count = struct.unpack_from(
            "<HHHH", header, 54
        )
        built_for = _MACHINES.get(machine, f"machine type {machine}")
        if os.uname().machine in _MACHINES.values() and os.uname().machine != built_for:
            raise OSError(f"it is built for {built_for}, this machine is {os.uname().machine}")
        _require(kind == 3 and version == header[6] == 1, "it is not a shared library")
        _require(segment_size == 56 and section_size == 64, "entries of a wrong size")
        _check_size(size, sections + 64 * section_count, segments + 56 * segment_count)
        segments = _read(file, segments, segment_count, "<IIQQQQQQ", Segment)
        sections = _read(file, sections, section_count, "<IIQQQQIIQQ", Section)
    _check_size(size, *(one.offset + one.file_size for one in segments))
    _check_segments(segments)
    _check_sections(segments, [section for section in sections if section.flags & _ALLOC])


def _require(condition, reason):
    if not condition:
        raise OSError(f"its headers are damaged: {reason}")


def _check_size(size, *ends):
    if max(ends) > size:
        raise OSError(f"it is truncated: {size} bytes of {max(ends)}")


def _read(file, offset, count, layout, kind):
    file.seek(offset)
    content = file.read(count * struct.calcsize(layout))
    return [kind(*entry) for entry in struct.iter_unpack(layout, content)]


def _check_segments(segments):
    """They lie in memory one after the other, and the special ones inside of those."""
    loads = [one for one in segments if one.type == _LOAD]
    end = 0
    for one in loads:
        aligned = one.alignment & (one.alignment - 1) == 0 < one.alignment
        _require(aligned and (one.address - one.offset) % one.alignment == 0, "alignment")
        _require(one.address >= end and one.file_size <= one.size, "segments overlap")
        _require(one.flags & _READ and one.flags < 8, "permissions")
        end = one.address + one.size
    others = [one for one in segments if one.type not in (_LOAD, _TLS, _STACK)]
    for one in others:
        _require(
            any(
                load.holds(one.address, 0 if one.type == _RELRO else one.size)
                and one.address - one.offset == load.address - load.offset
                for load in loads
            ),
            "a part lies outside of the segments",
        )
    stacks = [one.flags for one in segments if one.type == _STACK]
    _require(stacks == [_READ | _WRITE], "the stack")


def _check_sections(segments, sections):
    """Each lies in a segment, at its place in the file, with its permissions."""
    loads = [one for one in segments if one.type == _LOAD]
    needed = dict.fromkeys(loads, _READ)
    for section in sections:
        if section.type == _NOBITS and section.flags & _THREAD:
            continue  # each thread's own, beside the process's memory
        homes = [load for load in loads if load.holds(section.address, section.size)]
        _require(len(homes) == 1, "a section lies outside of the segments")
        needed[homes[0]] |= section.permissions
        if section.type != _NOBITS:
            place = section.address - homes[0].address
            _require(section.offset - homes[0].offset == place, "the place of a section")
            _require(place + section.size <= homes[0].file_size, "the length of a segment")
    for load, flags in needed.items():
        _require(load.flags & flags == flags, "the permissions of a segment")
    dynamic = [(one.address, one.size) for one in sections if one.type == 6]
    found = [(one.address, one.size) for one in segments if one.type == _DYNAMIC]
    _require(dynamic == found and len(found) == 1, "the dynamic section")
    _check_threads(segments, [one for one in sections if one.flags & _THREAD])
    _check_relro(segments, sections)


def _check_threads(segments, sections):
    found = [
        (one.address, one.file_size, one.size, one.alignment)
        for one in segments
        if one.type == _TLS
    ]
    expected = []
    if sections:
        first = sections[0].address
        filled = [one.address + one.size - first for one in sections if one.type != _NOBITS]
        sizes = [one.address + one.size - first for one in sections]
        alignment = max(one.alignment for one in sections)
        expected = [(first, max(filled, default=0), max(sizes), alignment)]
    _require(found == expected, "the memory of threads")


def _check_relro(segments, sections):
    """What becomes read-only once it is relocated ends before variables begin."""
    for one in segments:
        if one.type == _RELRO:
            zeros = [s.address for s in sections if s.type == _NOBITS and not s.flags & _THREAD]
            end = one.address + one.size  # which a linker may round up to a page
            _require(not zeros or end <= max(zeros), "read-only data")
