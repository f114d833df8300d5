"""What each family of kernels costs in the library: a table, for docs/packaging.md.

    python cuda/wheel_sizes.py                         of this folder's build
    python cuda/wheel_sizes.py --build build/wheel --wheel dist/NAME.whl --write docs/packaging.md

The figures are read from the objects that were linked: a section .nv_fatbin holds, for each
architecture, a compressed cubin or PTX with a header that says how long it is. What the library's
own sections have beyond those is the last row: CUDA's runtime, and an empty cubin for each
architecture. `make wheel` runs this.
"""

import argparse
import struct
import sys
from collections import Counter
from pathlib import Path

BEGIN = "<!-- sizes: begin, written by make wheel -->"
END = "<!-- sizes: end -->"
MAGIC, PTX = 0xBA55ED50, 1
LIBRARY = "pyvecgpu/libpyvecgpu.so"
RUNTIME = "CUDA's runtime"
EMPTY_CUBIN = 4096  # bytes that linking adds at most for an architecture


def sections(path):
    """Yield (name, content) of the sections of an ELF file that take room in a process."""
    content = path.read_bytes()
    table, size, count, names = struct.unpack_from("<Q10xHHH", content, 40)
    headers = [struct.unpack_from("<IIQQQQ", content, table + size * i) for i in range(count)]
    base = headers[names][4]
    for name, kind, flags, _, offset, length in headers:
        allocated, empty = flags & 2, kind == 8
        if allocated and not empty:
            end = content.index(b"\0", base + name)
            yield content[base + name : end].decode(), content[offset : offset + length]


def fatbins(content):
    """Yield (architecture, bytes) of each cubin and PTX in a section .nv_fatbin."""
    at = 0
    while at < len(content):
        magic, _, header, length = struct.unpack_from("<IHHQ", content, at)
        if magic != MAGIC:
            at += 8  # between two of them lies what aligns the second
            continue
        entry, at = at + header, at + header + length
        while entry < at:
            kind, _, header, length = struct.unpack_from("<HHIQ", content, entry)
            arch = struct.unpack_from("<I", content, entry + 28)[0]
            yield f"{'PTX' if kind == PTX else 'sm'} {arch}", header + length
            entry += header + length


def sizes_of(path):
    """Return the bytes of an object or a library: by architecture, and of the host's code."""
    found = Counter()
    for name, content in sections(path):
        if name == ".nv_fatbin":
            for arch, size in fatbins(content):
                found[arch] += size
        elif name.startswith((".text", ".rodata", ".data", ".eh_frame")):
            found["host"] += len(content)
    return found


def family(path):
    """Return the family of an object, by its path below build/gpu."""
    floor, *rest = path.with_suffix("").parts
    if floor == "kernels":
        return f"matmul/{rest[1]}" if rest[0] == "matmul" and len(rest) > 2 else rest[0]
    return f"{floor}/" if rest else floor


def by_family(build):
    """Return {family: sizes}; ValueError if the library is not linked of these objects."""
    folder = build / "build" / "gpu"
    found = {}
    for path in sorted(folder.rglob("*.o")):
        found.setdefault(family(path.relative_to(folder)), Counter()).update(sizes_of(path))
    linked, objects = sizes_of(build / LIBRARY), sum(found.values(), Counter())
    found[RUNTIME] = Counter({name: linked[name] - objects[name] for name in linked})
    for arch in {*architectures(linked), *architectures(objects)}:
        if not 0 <= found[RUNTIME][arch] <= EMPTY_CUBIN:
            raise ValueError(
                f"{arch}: {objects[arch]} bytes in the objects, {linked[arch]} in {LIBRARY}, "
                "which is not linked of them"
            )
    return found


def architectures(sizes):
    """Return those that there are, PTX last."""
    archs = [one.split() for one in sizes if one != "host"]
    return [" ".join(one) for one in sorted(archs, key=lambda a: (a[0] == "PTX", int(a[1])))]


def table(found):
    """Return the lines of the table, the largest family first, in thousands of bytes."""
    total = sum(found.values(), Counter())
    columns = [*architectures(total), "host"]
    rows = sorted(found.items(), key=lambda item: -item[1].total())
    lines = [f"| kB | {' | '.join(columns)} | together |", "|---" * (len(columns) + 2) + "|"]
    for name, sizes in [*rows, ("all", total)]:
        cells = [f"{sizes[column] / 1000:,.0f}" for column in columns]
        lines.append(f"| {name} | {' | '.join(cells)} | {sizes.total() / 1000:,.0f} |")
    return lines


def report(build, wheel):
    """Return the text that goes between BEGIN and END."""
    lines = []
    if wheel:
        size = wheel.stat().st_size / 1e6
        lines += [f"{wheel.name} has {size:.1f} MB. In its {LIBRARY.partition('/')[2]}:", ""]
    return "\n".join([*lines, *table(by_family(build))])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, default=Path(), help="the folder that was built in")
    parser.add_argument("--wheel", type=Path, help="the wheel of that build")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="where the table is put")
    arguments = parser.parse_args(argv)
    text = report(arguments.build, arguments.wheel)
    print(text)
    if arguments.write:
        page = arguments.write.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        arguments.write.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
