"""Planted bugs: every detector must find the bug that it is there for.

Each plant is a substitution in a copy of the sources. It must apply, build, and make a C test fail
with the words of its detector, while the same test of the untouched copy passes without them. The
copy takes over what `make` has built, so that a plant compiles one or two files.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import ahead
import pytest

pytestmark = pytest.mark.checkers
ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["Makefile", "pyproject.toml", "cuda"]
BUILT = [f"build/{part}{name}" for part in ("", "tests/") for name in ("sim", "asan", "watch")]
BUILT += ["build/tsan"]  # whose kernels the access checker runs
LIBRARY = "pyvecgpu/libpyvecgpu_sim.so"


@dataclass(frozen=True)
class Plant:
    edits: tuple  # (file under cuda/, text that is there exactly once, what to put there instead)
    test: str  # a C test
    report: str  # a regular expression: what the detector says
    build: str = "sim"  # or "asan": AddressSanitizer and UBSan; "watch": the access checker
    settings: dict = field(default_factory=dict)  # of the test; see cuda/tests/check.h
    only: str = ""  # the one object that the bug is built into, of those that include its file


DIRECT = {"PVG_TEST_ALLOCATOR": "direct"}
DEBUG = {"PVG_TEST_ALLOCATOR": "debug"}
PRINT = {"PVG_TEST_SIM_PRINT": "1"}
BOTH_ORDERS = {"PVG_TEST_SIM_CHECK_ORDER": "1", **PRINT}
GUARD = {"PVG_TEST_SIM_GUARD": "1", **PRINT}
IMPATIENT = {"PVG_TEST_SIM_PATIENCE": "1", "PVG_TEST_SIM_WORKERS": "1", **PRINT}
# Where plants for the access checker go: a kernel's head, its first line, its end, its launch.
KERNEL = "template <class T, bool SHIFTED>\n__global__ void __launch_bounds__(tile_threads)"
BEGIN = "    using Shape = Tile<T, SHIFTED>;\n    __shared__ Shape tile;\n"
END = "destination_stride, rows, c,\n               job.columns);\n}"


def in_transpose(*edits, **how):
    """A plant in the kernel that moves tiles, its file's shortest way to a whole grid."""
    how = {"test": "test_transfer", "settings": PRINT, **how}
    return Plant(tuple(("arrays/transpose.cu", *edit) for edit in edits), **how)


PLANTS = {
    "out-of-bounds global write, AddressSanitizer": Plant(
        (("arrays/transpose.cu", "if (y >= high) continue;", ""),),
        "test_transfer",
        r"AddressSanitizer: heap-buffer-overflow[\s\S]*transpose\.cu:\d+",
        build="asan",
        settings=DIRECT,
    ),
    "out-of-bounds global write, canaries of the debug allocator": Plant(
        (
            (
                "kernels/matmul/simt/gemv.cu",
                "if (static_cast<int64_t>(threadIdx.x) >= count) return;",
                "if (static_cast<int64_t>(threadIdx.x) > count) return;",
            ),
        ),
        "test_matmul",
        r"PVG_COUNT_CANARY_ERRORS\) is [1-9]\d*, expected 0",
        settings=DEBUG,
    ),
    "out-of-bounds shared access": Plant(
        (("arrays/transpose.cu", "T line[lines][rows + 1];", "T line[lines - 1][rows + 1];"),),
        "test_transfer",
        r"AddressSanitizer: global-buffer-overflow(?s:.)*?#0 .*transpose\.cu:\d+",
        build="asan",
    ),
    "missing barrier, order check": Plant(
        (("arrays/transpose.cu", "    __syncthreads();\n    store_tile", "    store_tile"),),
        "test_transfer",
        r"transpose_kernel.*: the result depends on the order of the threads",
        settings=BOTH_ORDERS,
    ),
    "missing barrier between two slabs, order check": Plant(
        (
            (
                "kernels/matmul/simt/tile.cuh",
                "        }\n        __syncthreads();\n    }\n    store_tile",
                "        }\n    }\n    store_tile",
            ),
        ),
        "test_matmul",
        r"product_kernel.*: the result depends on the order of the threads",
        settings=BOTH_ORDERS,
        only="kernels/matmul/simt/tiled.o",
    ),
    "barrier not reached by all": Plant(
        (
            (
                "arrays/transpose.cu",
                "    __syncthreads();\n    store_tile",
                "    if (threadIdx.x >= 200) return;\n    __syncthreads();\n    store_tile",
            ),
        ),
        "test_transfer",
        r"returned without reaching .*transpose\.cu:\d+",
        settings=PRINT,
    ),
    "int32 index": Plant(
        (
            (
                "arrays/transpose.cu",
                "source + r + (c - Shape::halo) * job.source_stride",
                "source + r + int(c - Shape::halo) * int(job.source_stride)",
            ),
            (
                "arrays/transpose.cu",
                "(source + (y + i * down) * stride + x)",
                "(source + (y + i * down) * int(stride) + x)",
            ),
        ),
        "test_large",
        r"transpose\.cu:\d+:\d+: runtime error: signed integer overflow",
        build="asan",
    ),
    "buffer of a copy filled again too early, work done late": Plant(
        (("runtime/staging.cu", "PVG_PASS(wait_for_slot(&next));", ""),),
        "test_staging",
        r"as_late_as_allowed: not true: memcmp",
    ),
    "misaligned vector access": Plant(
        (
            ("arrays/transpose.cu", "is_aligned(a, width, 1, ", "is_aligned(a, 1, 1, "),
            ("arrays/transpose.cu", "is_aligned(a, width, batch", "is_aligned(a, 1, batch"),
        ),
        "test_transfer",
        r"runtime error: (load|store) of misaligned address",
        build="asan",
    ),
    "uninitialised read, output tail not written": Plant(
        (
            (
                "kernels/reduce_kernels.cuh",
                "if (partials)\n        partials[blockIdx.x] = total;",
                "if (partials) {\n"
                "        if (blockIdx.x + 1 < gridDim.x) partials[blockIdx.x] = total;\n"
                "    }",
            ),
        ),
        "test_reduce",
        r"sums_are_accurate: element\(total, 0\) is -?nan",
        settings=DEBUG,
    ),
    "wrong tail": Plant(
        (("kernels/reduce_kernels.cuh", "if (rest && end", "if (rest > 1 && end"),),
        "test_reduce",
        r"every_length_and_dtype: reduction 200 .*, expected",
    ),
    "NaN dropped in maximum": Plant(
        (
            (
                "kernels/elementwise.cuh",
                "if (a != a) return a;\n        if (a == b) return signbit(a) ? b : a;",
                "if (a == b) return signbit(a) ? b : a;",
            ),
        ),
        "test_elementwise",
        r"nan_and_signed_zero: not true: isnan\(element\(largest, i\)\)",
        only="kernels/binary.o",
    ),
    "skipped launch": Plant(
        (
            (
                "kernels/reduce_launch.cuh",
                "return target ? merge_partials(call, target, p, rows.chunks, result)"
                " : static_cast<int>(PVG_OK);",
                "return PVG_OK;",
            ),
        ),
        "test_reduce",
        r"sums_are_accurate: element\(total, 0\) is -?nan",
        settings=DEBUG,
    ),
    "leak": Plant(
        (("runtime/storage.cu", "if (s->block) free_block", "if (s->bytes != 12) free_block"),),
        "test_error",
        r"memory_value\(PVG_MEMORY_USED\) is \d+, expected 0",
    ),
    "double free of device memory": Plant(
        (
            (
                "runtime/storage.cu",
                "    while (Stream *home = deallocate(block, safe)) {",
                "    (void)deallocate(block, any_stream);\n"
                "    while (Stream *home = deallocate(block, safe)) {",
            ),
        ),
        "test_error",
        r"memory_value\(PVG_MEMORY_BLOCKS\) is -\d+, expected 0",
        settings=DIRECT,
    ),
    "double free of host memory": Plant(
        (
            (
                "runtime/storage.cu",
                "    s->~Storage();\n    free(s);",
                "    Storage *volatile again = s;\n    free(s);\n    free(again);",
            ),
        ),
        "test_array",
        r"AddressSanitizer: attempting double-free[\s\S]*storage\.cu:\d+",
        build="asan",
    ),
    "stale error": Plant(
        (
            ("runtime/launch.cu", "stale = cudaGetLastError();", "stale = cudaPeekAtLastError();"),
            (
                "runtime/memory.cu",
                "if (cudaMalloc(&p, bytes) != cudaSuccess) {\n        (void)cudaGetLastError();",
                "if (cudaMalloc(&p, bytes) != cudaSuccess) {",
            ),
        ),
        "test_memory",
        r"out_of_memory_has_numbers: pvg_add\(a, a\) gave NULL.*cudaErrorMemoryAllocation",
    ),
    "read that does not wait for the writer": Plant(
        (("runtime/stream.cu", "    PVG_PASS(wait_for(stream, writer));\n", ""),),
        "test_stream",
        r"read_waits_for_the_writer: element 0 is",
    ),
    "memory reused while another stream reads it": Plant(
        (
            (
                "runtime/storage.cu",
                "if (scope.enter(s->device) == PVG_OK) stream_collects(home, s);",
                "",
            ),
        ),
        "test_stream",
        r"freed_while_another_stream_reads: element 0 is",
    ),
    "launch bounds exceeded": in_transpose(
        ("blocks_for(tiles, 1), tile_threads, 0", "blocks_for(tiles, 1), 2 * tile_threads, 0"),
        report=r"transpose_kernel.*: blocks of \d+ threads, but its __launch_bounds__ allow \d+",
    ),
    "address updated by several blocks without atomics": in_transpose(
        (BEGIN, BEGIN + "    if (threadIdx.x == 0) *static_cast<char *>(job.destination) += 1;\n"),
        build="watch",
        report=r"transpose_kernel.*transpose\.cu:\d+ that block .* an update is lost",
    ),
    "missing __threadfence before a block that reads": in_transpose(
        (
            KERNEL,
            "__device__ unsigned tiles_done;\n__device__ volatile char first_byte;\n\n" + KERNEL,
        ),
        (
            END,
            END.replace(
                "\n}",
                "\n    if (gridDim.x > 1 && threadIdx.x == 0 &&\n"
                "        atomicAdd(&tiles_done, 1u) == gridDim.x - 1)\n"
                "        tiles_done = 0, first_byte = *static_cast<char *>(job.destination);\n}",
            ),
        ),
        build="watch",
        report=r"transpose_kernel.* reads .* that block .*: a __threadfence\(\) is missing",
    ),
    "maximum of shared memory that nobody has written": Plant(
        (
            (
                "kernels/reduce_kernels.cuh",
                "total = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : Acc::identity();\n"
                "    merge_lanes",
                "total = of_warp[threadIdx.x];\n    merge_lanes",
            ),
        ),
        "test_reduce",
        r"long_rows_kernel.*: the result depends on shared memory that no thread has written",
        settings=BOTH_ORDERS,
        only="kernels/reduce.o",
    ),
    "host code that reads device memory": in_transpose(
        (
            "job.rows = walk.shape[across];",
            "job.rows = walk.shape[across] + 0 * *static_cast<volatile char *>(job.destination);",
        ),
        build="watch",
        report=r"host code at .*transpose\.cu:\d+ reads device memory",
        settings=GUARD,
    ),
    "host memory in a kernel's struct": in_transpose(
        ("job.source = source->data;", "job.source = malloc(1 << 20);"),
        build="watch",
        report=r"transpose_kernel.*reads .* at .*transpose\.cu:\d+, which is no device memory",
    ),
    "shuffle from a lane that takes no part": in_transpose(
        (BEGIN, BEGIN + "    if (threadIdx.x % 32 < 16) (void)__shfl_sync(0xffffu, 1, 20);\n"),
        report=r"transpose_kernel.*lane 20 at .*transpose\.cu:\d+, but that lane takes no part",
    ),
    "shuffle of a whole warp at two places": in_transpose(
        (
            BEGIN,
            BEGIN
            + "    if (threadIdx.x % 32 < 16)\n        (void)__shfl_sync(0xffffffffu, 1, 0);\n"
            "    else\n        (void)__shfl_sync(0xffffffffu, 2, 0);\n",
        ),
        report=r"transpose_kernel.*two warp functions meet: lane .*transpose\.cu:\d+ with mask",
    ),
    "block that waits for another one": in_transpose(
        (KERNEL, "__device__ volatile unsigned begun;\n\n" + KERNEL),
        (
            BEGIN,
            BEGIN + "    if (blockIdx.x == 1) begun = 1;\n"
            "    while (begun == 0 && gridDim.x > 1) continue;\n",
        ),
        report=r"transpose_kernel.*has run for 1 seconds and comes to no barrier and to no end",
        settings=IMPATIENT,
    ),
}


class Tree:
    """A copy of the sources and of what was built, and the untouched twin it is put back from."""

    def __init__(self, folder, plants):
        self.work, self.untouched = folder / "work", folder / "untouched"
        for name in [*SOURCES, *BUILT, LIBRARY]:
            if (ROOT / name).exists():
                copy(ROOT / name, self.work / name)
        (self.work / LIBRARY).parent.mkdir(exist_ok=True)
        self.controls = {}
        binaries = sorted({self.binary(plant) for plant in plants})
        self.make(*binaries)
        copy(self.work, self.untouched)

    @staticmethod
    def binary(plant):
        return f"build/tests/{plant.build}/{plant.test}"

    def kept(self, plant):
        """For make: the objects that stay as they are."""
        folder = self.work / "build" / plant.build  # all plants of one object are in sim or asan
        objects = [path.relative_to(folder) for path in folder.rglob("*.o")] if plant.only else []
        return [f"--old-file=build/{plant.build}/{o}" for o in objects if str(o) != plant.only]

    def make(self, *targets):
        built = ahead.make(self.work, *targets)
        assert built.returncode == 0, f"the copy does not build:\n{built.stdout}{built.stderr}"

    def run(self, plant):
        """The exit status of the plant's test in the tree as it is, and all that it printed."""
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", **plant.settings}
        done = subprocess.run(
            [self.work / self.binary(plant)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    def control(self, plant):
        key = (self.binary(plant), *sorted(plant.settings.items()))
        if key not in self.controls:
            self.controls[key] = self.run(plant)
        return self.controls[key]

    def apply(self, plant):
        for name, old, new in plant.edits:
            path = self.work / "cuda" / name
            text = path.read_text()
            assert text.count(old) == 1, f"{name} has this {text.count(old)} times, not once: {old}"
            path.write_text(text.replace(old, new))

    def restore(self):
        """Bring back every file that has changed, with its old time: make finds nothing to do."""
        for path in self.untouched.rglob("*"):
            changed = self.work / path.relative_to(self.untouched)
            time = path.stat().st_mtime_ns
            if path.is_file() and not (changed.exists() and changed.stat().st_mtime_ns == time):
                shutil.copy2(path, changed)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


def find(tree, plant):
    """(exit status, output) of a plant's test, without the bug and with it; or what went wrong."""
    try:
        without = tree.control(plant)
        tree.apply(plant)
        tree.make(*tree.kept(plant), tree.binary(plant))
        return {"without": without, "with": tree.run(plant)}
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    finally:
        tree.restore()


WORK = ahead.Work(__file__, lambda item: [item.callspec.params["name"]])


@pytest.mark.parametrize("name", PLANTS)
def test_detector_finds(name):
    plant, found = PLANTS[name], WORK.result(name)
    assert "error" not in found, found["error"]
    status, output = found["without"]
    assert status == 0, f"without the bug {plant.test} should pass:\n{output}"
    assert not re.search(plant.report, output)
    status, output = found["with"]
    assert status != 0, f"{plant.test} passed in spite of the bug"
    assert re.search(plant.report, output), f"{plant.test} failed, but not like that:\n{output}"


if __name__ == "__main__":
    chosen = {name: PLANTS[name] for name in sys.argv[2:]}
    tree = Tree(Path(sys.argv[1]), chosen.values())
    for name, plant in chosen.items():
        ahead.report(name, find(tree, plant))
