"""Writes wgmma.cuh: the warpgroup products that the kernels use, as inline PTX.

An instruction names each of its up to 128 accumulators, so its text is made rather than written:

    python cuda/kernels/generate_wgmma.py
"""

import textwrap
from pathlib import Path

HEAD = """\
// Warpgroup products, one instruction each: 64 rows of `sums` (+)= a tile of a, 64 x k, times a
// tile of b, k x N, both in shared memory by their descriptors (hopper.cuh). k is 16 for 16-bit
// types and 8 for TF32, which must lie along k; tiles of 16-bit types may lie along m and n
// instead. a may be in registers: of rows r = 16 w + l / 4 and r + 8 elements l % 4 of k, then
// again elements 4 + l % 4, where an element of 16 bits is a pair of two neighbours. With
// accumulate 0 the sums begin anew. Thread t of the warpgroup, with warp w = t / 32 and lane
// l = t % 32, holds of row 16 w + l / 4 columns 8 i + 2 (l % 4) and the next in sums[4 i] and
// sums[4 i + 1], and those of the row 8 further down in sums[4 i + 2] and sums[4 i + 3].
//
// Written by generate_wgmma.py: edit that.
// clang-format off
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

namespace pvg::hopper {

struct Tf32 {}; // float32, of which the products use the upper 19 bits

template <class T, int N> struct Wgmma;
"""
TYPES = {"__nv_bfloat16": ("bf16", 16), "__half": ("f16", 16), "Tf32": ("tf32", 8)}
COLUMNS = {
    "__nv_bfloat16": (256, 192, 128, 64, 32),
    "__half": (256, 192, 128, 64, 32),
    "Tf32": (256, 192, 128, 64, 32),
}
# Where a may come from registers: to all of TF32's, and to what attention sums up.
FROM_REGISTERS = {"__nv_bfloat16": (128, 64), "__half": (128, 64), "Tf32": COLUMNS["Tf32"]}


def wrap(text: str, before: str, after: str = "") -> str:
    lines = textwrap.wrap(text, 96 - len(before) - len(after), break_on_hyphens=False)
    return "\n".join(before + line + after for line in lines)


def multiply(name: str, n: int, registers: bool) -> str:
    """The function for one instruction; a comes from shared memory or from registers."""
    ptx, k = TYPES[name]
    count = n // 2
    places = wrap(", ".join(f"%{i}" for i in range(count)), " " * 12 + '"', ' "')
    sums = wrap(", ".join(f'"+f"(sums[{i}])' for i in range(count)), " " * 14)
    flags = k == 16
    sides = ["B_ALONG_N"] if registers else ["A_ALONG_M", "B_ALONG_N"]
    template = f"    template <{', '.join(f'bool {side}' for side in sides)}>\n" if flags else ""
    parameter = "const uint32_t (&a)[4]" if registers else "uint64_t a"
    a_inputs = ", ".join(f'"r"(a[{i}])' for i in range(4)) if registers else '"l"(a)'
    a = count + 4 if registers else count + 1  # the place after a's
    a_places = "{" + ", ".join(f"%{i}" for i in range(count, a)) + "}" if registers else f"%{count}"
    transpose = "".join(f", %{a + 2 + i}" for i in range(len(sides))) if flags else ""
    inputs = "".join(f', "n"(int({side}))' for side in sides) if flags else ""
    inputs = wrap(f'{a_inputs}, "l"(b), "r"(accumulate){inputs}', " " * 14).lstrip()
    return f"""\
{template}    static __device__ __forceinline__ void multiply(float (&sums)[{count}], {parameter},
                                                    uint64_t b, int accumulate) {{
        asm volatile(
            "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{a + 1}, 0;\\n"
            "wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{ptx}.{ptx} {{"
{places}
            "}}, {a_places}, %{a}, p, 1, 1{transpose};\\n}}\\n"
            :
{sums}
            : {inputs});
    }}
"""


def instruction(name: str, n: int) -> str:
    """The specialisation of Wgmma for elements of one type and n columns."""
    functions = multiply(name, n, registers=False)
    if n in FROM_REGISTERS[name]:
        functions += multiply(name, n, registers=True)
    return f"template <> struct Wgmma<{name}, {n}> {{\n{functions}}};\n"


def generate() -> str:
    parts = [HEAD]
    parts += [instruction(name, n) for name, columns in COLUMNS.items() for n in columns]
    return "\n".join([*parts, "} // namespace pvg::hopper\n"])


if __name__ == "__main__":
    Path(__file__).with_name("wgmma.cuh").write_text(generate())
