"""The programs that call the C library at random (cuda/tests/fuzz.c, fuzz_guided.c) find what is
wrong and else nothing, in the few seconds that a test has; `make fuzz` lets them run longer.
"""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import ROOT

from pyvecgpu.native import library

SOURCES = ROOT / "cuda" / "tests"
# What libFuzzer does, without its choice: the bytes of one file after another.
DRIVER = """
#include <stdint.h>
#include <stdio.h>
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int main(int argc, char **argv) {
    static uint8_t data[1 << 16];
    if (LLVMFuzzerInitialize(&argc, &argv)) return 2;
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) return 3;
        const size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        LLVMFuzzerTestOneInput(data, size);
    }
    return 0;
}
"""
# A rule that holds no more: the first call with a handle that is no array's breaks it.
RULE = "    bad |= !is_live(h, handle);\n"


def build(folder, *sources):
    """Return a program of these C sources with the simulated library."""
    program, there = folder / "program", Path(library.path_of("sim")[0])
    flags = ["-std=c99", "-O0", f"-I{ROOT}/cuda", f"-I{ROOT}/cuda/simulator", f"-I{SOURCES}"]
    made = subprocess.run(
        ["gcc", *flags, "-DPVG_TEST_SIMULATOR", *map(str, sources), str(there),
         f"-Wl,-rpath,{there.parent}", "-pthread", "-lm", "-o", str(program)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return program


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


@pytest.fixture
def files(tmp_path):
    """Files of bytes, of which all but the first give more calls than a round has."""
    found = []
    for seed, size in ((1, 500), *((seed, 9000) for seed in range(2, 9))):
        found.append(tmp_path / f"input{seed}")
        found[-1].write_bytes(random.Random(seed).randbytes(size))
    return found


def without_rule(folder):
    """Return a copy of the sources that lacks the rule."""
    copies = shutil.copytree(SOURCES, folder / "tests", ignore=lambda _, n: [
        name for name in n if not name.startswith(("fuzz", "check."))
    ])  # fmt: skip
    rules = copies / "fuzz.h"
    assert rules.read_text().count(RULE) == 1
    rules.write_text(rules.read_text().replace(RULE, ""))
    return copies


@pytest.mark.devices("sim")
def test_random_calls(device, tmp_path):
    program = build(tmp_path, SOURCES / "fuzz.c")
    done = run(program, 4, 1)
    assert done.returncode == 0, done.stdout + done.stderr
    calls = re.fullmatch(r"fuzz: seed 1: (\d+) calls, nothing wrong\n", done.stdout)
    assert int(calls[1]) >= 1000
    assert run(program, "replay", 1, 0, 3).returncode == 0


@pytest.mark.devices("sim")
def test_random_calls_find_what_is_wrong(device, tmp_path):
    done = run(build(tmp_path, without_rule(tmp_path) / "fuzz.c"), 30, 1)
    assert done.returncode == 1
    round_of = re.search(r"^what is left of seed 1, round (\d+):$", done.stdout, re.M)
    assert re.search(r"fuzz\w*\.h:\d+: ", done.stderr), done.stderr
    assert int(round_of[1]) < 60


@pytest.mark.devices("sim")
def test_chosen_calls(device, tmp_path, files):
    (tmp_path / "driver.c").write_text(DRIVER)
    program = build(tmp_path, SOURCES / "fuzz_guided.c", tmp_path / "driver.c")
    done = run(program, *files[:2], files[0])
    assert done.returncode == 0, done.stderr
    told = re.fullmatch(r"fuzz_guided: 3 inputs, (\d+) calls, nothing wrong\n", done.stderr)
    assert 80 < int(told[1]) < 240
    aloud = [run(program, files[0]).stderr for _ in range(2)]
    numbers = [re.findall(r"^(\d+):$", text, re.M) for text in aloud]
    assert numbers[0] == numbers[1] == [str(i) for i in range(len(numbers[0]))]
    assert 1 < len(numbers[0]) < 80


@pytest.mark.devices("sim")
def test_chosen_calls_find_what_is_wrong(device, tmp_path, files):
    (tmp_path / "driver.c").write_text(DRIVER)
    copies = without_rule(tmp_path)
    done = run(build(tmp_path, copies / "fuzz_guided.c", tmp_path / "driver.c"), *files)
    assert done.returncode < 0 and re.search(r"fuzz\w*\.h:\d+: ", done.stderr), done.stderr
