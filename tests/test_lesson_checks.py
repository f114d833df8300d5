"""What `make lessons` tells a reader who works without a GPU: the mistakes of lesson 02.

In programs that are built as the lessons are. And launches that nvcc accepts.
"""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from helpers import ROOT
from test_lessons import make_tree

TOGETHER = True  # what is built is theirs
HEAD = """
#include <cstdio>
#include <cstdlib>
struct Pair { float *to; const float *from; };
static __global__ void twice(float *x) { x[threadIdx.x] *= 2; }
static __global__ void copy(Pair pair) { pair.to[threadIdx.x] = pair.from[threadIdx.x]; }
static __global__ void sum(const float *a, const float *b, float *c) { *c = *a + *b; }
static int status() {
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\\n", cudaGetErrorName(error));
    return error != cudaSuccess;
}
int main(void) {
    float *h = (float *)malloc(32), *d;
    if (cudaMalloc(&d, 32) || cudaMemset(d, 0, 32)) return 2;
    for (int i = 0; i < 8; i++) h[i] = 1;
"""
# What stands in main(), the exit status, and what is told.
PROGRAMS = {
    "right": ("twice<<<1, 8>>>(d); return status();", 0, "^cudaSuccess$"),
    "struct": ("copy<<<1, 8>>>({d, d}); return status();", 0, "^cudaSuccess$"),
    "zero": ("sum<<<1, 1>>>(d, 0, d); return status();", 1, "through a null pointer"),
    "null": ("sum<<<1, 1>>>(NULL, NULL, d); return status();", 1, "through a null pointer"),
    "argument": ("twice<<<1, 8>>>(h); return status();", 1, "argument 1, .* not a device pointer"),
    "host_in_struct": (
        "copy<<<1, 8>>>(Pair{d, h}); return status();",
        1,
        r"reads 4 bytes at \w+ at .*host_in_struct\.cu:6, which is no device memory: the host's",
    ),
    "freed": (
        "Pair pair = {d, d}; cudaFree(d); copy<<<1, 8>>>(pair); return status();",
        1,
        "which is no device memory: the host's, or freed",
    ),
    "host_reads": ('printf("%f\\n", d[1]);', -signal.SIGSEGV, "reads device memory, byte 4"),
    "host_writes": ("d[1] = 1;", -signal.SIGSEGV, "host code at .* writes device memory"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the sources with these programs, built."""
    folder = tmp_path_factory.mktemp("checks") / "tree"
    make_tree(folder)
    mine = folder / "cuda/lessons/mine"
    mine.mkdir(exist_ok=True)
    for name, (text, *_) in PROGRAMS.items():
        (mine / f"{name}.cu").write_text(f"{HEAD}    {text}\n}}\n")
    shutil.copy2(ROOT / "cuda/simulator/tests/lesson.cu", mine)
    names = [*PROGRAMS, "lesson"]
    done = make(folder, "-j2", *(f"build/lessons/sim/mine/{name}" for name in names))
    assert done.returncode == 0, done.stderr
    return folder


def make(folder, *targets):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    command = ["make", *targets, f"PYTHON={sys.executable}"]
    options = {"capture_output": True, "text": True, "timeout": 600}
    return subprocess.run(command, cwd=folder, env=environment, **options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_mistakes_are_told(name, tree):
    _, status, told = PROGRAMS[name]
    program = tree / "build/lessons/sim/mine" / name
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, cwd=tree)
    assert done.returncode == status, done.stderr
    assert re.search(told, done.stdout + done.stderr, re.MULTILINE), done.stderr
    assert (done.stderr == "") == (status == 0), done.stderr


def test_one_program_by_its_name(tree):
    done = make(tree, "lessons-sim", "NAME=mine/ri")
    assert done.returncode == 0, done.stderr
    assert "lessons on the simulated card: 1 passed" in done.stdout and "cudaSuccess" in done.stdout
    done = make(tree, "lessons", "NAME=mine/absent")
    assert done.returncode != 0 and "no cuda/lessons/mine/absent*.cu" in done.stderr


def test_all_that_makes_launches_hard_to_find(tree):
    program = tree / "build/lessons/sim/mine/lesson"
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "a translated program: right" in done.stdout, done.stderr


def test_only_functions_of_the_host_are_left_unchecked(tree):
    """The access checker would make the C loops of the lessons slow beside what it checks."""
    text = (tree / "build/lessons/sim/mine/lesson.cpp").read_text()
    assert re.findall(r"no_sanitize_thread\)\) (\w+ \w+)\(", text) == ["int main"]
    text = (tree / "build/lessons/sim/mine/right.cpp").read_text()
    assert re.findall(r"no_sanitize_thread\)\) (?:static )?(\w+ \w+)\(", text) == [
        "int status",
        "int main",
    ]


def test_a_reader_s_own_folder_is_ignored():
    lines = (ROOT / "cuda/lessons/mine/.gitignore").read_text().splitlines()
    assert lines[1:] == ["*", "!.gitignore"]
