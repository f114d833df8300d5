"""The ladder of lessons: every program builds, runs and ends with 0, and its checks find bugs.

The programs are built as `make lessons` builds them, in a copy of the sources, and with them one
planted copy of a lesson for each of its kernels: a kernel that is wrong in one place, which the
lesson's comparison with the C loop has to see.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "cuda/lessons"
LESSONS = sorted(path.stem for path in FOLDER.glob("*.cu"))
SOLUTIONS = sorted(f"solutions/{path.stem}" for path in FOLDER.glob("solutions/*.cu"))
CARDS = {"sim": "sim", "cuda": "gpu"}  # the device: the folder in build/lessons

# What the simulated card has not; where there is one GPU the last one needs two.
MAY_LACK_A_DEVICE = {"sim": ("18_", "19_", "20_"), "cuda": ("20_",)}
LINES_OF_CODE = {"11": 250, "17": 250, "18": 250}
OTHER_LINES_OF_CODE = 160  # "about 150"

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
KERNEL = re.compile(r"__global__ void (?:__launch_bounds__\(\w+\) )?(\w+)\(")
NVCC_LINE = re.compile(r"^ \* +(nvcc (.*) (\w+)\.cu -o (\w+) && \./(\w+))$", re.MULTILINE)

# Of each kernel: a text that is in it once, and what the planted copy has there instead.
PLANTS = {
    "01_first_kernel": {"vector_add": ("a[i] + b[i]", "a[i] - b[i]")},
    "02_device_memory": {"vector_add": ("threadIdx.x", "threadIdx.x / 2")},
    "03_device_limits": {"vector_add": ("threadIdx.x", "threadIdx.x / 2")},
    "04_errors": {"vector_add": ("threadIdx.x", "threadIdx.x / 2")},
    "05_blocks_and_grids": {"vector_add": ("i < n", "i <= n")},
    "06_cpu_cores": {"vector_add": ("i < n", "i < n - 1")},
    "07_transfers": {"square_plus_one": ("+ 1", "- 1")},
    "08_two_dimensions": {
        "matrix_add": ("row < rows", "row < rows - 1"),
        "matrix_add_slow": ("col < cols", "col < cols - 1"),
    },
    "09_three_dimensions": {"tensor_add": ("layer < depth", "layer < depth - 1")},
    "10_device_functions": {
        "sigmoid": ("sigmoid_of(x[i])", "sigmoid_of(-x[i])"),
        "copy": ("y[i] = x[i]", "y[i] = -x[i]"),
    },
    "11_matrix_product": {
        "matmul_naive": ("p < k", "p < k - 1"),
        "matmul_coalesced": ("p < k", "p < k - 1"),
        "matmul_tiled": ("p < TILE", "p < TILE - 1"),
        "matmul_registers": ("p < DEPTH", "p < DEPTH - 1"),
    },
    "12_sum": {
        "sum_atomic": ("i < n", "i < n - 1"),
        "sum_blocks": ("threadIdx.x == 0", "threadIdx.x == 1"),
        "sum_tree": ("threadIdx.x == 0", "threadIdx.x == 1"),
    },
    "13_convolution": {
        "convolve_direct": ("y + i - RADIUS", "y + i"),
        "convolve_tiled": ("threadIdx.y + i", "threadIdx.y"),
    },
    "14_normalisation": {
        "normalise_by_threads": ("squares / n", "squares / (n - 1)"),
        "normalise_by_warps": ("sum_of_warp(squares) / n", "sum_of_warp(squares) / (n - 1)"),
        "normalise_in_one_pass": ("mean * mean", "mean"),
    },
    "15_layer": {
        "layer": ("sum + b[output]", "sum - b[output]"),
        "product": ("= sum;", "= -sum;"),
        "add_bias": ("i % outputs", "i / outputs"),
        "apply_sigmoid": ("i < count", "i < count - 1"),
    },
    "16_batched_products": {"matmul_batch": ("b += item * b_stride", "b += item / 2 * b_stride")},
    "17_network": {
        "forward": ("sum = params[outputs * inputs + output]", "sum = 0"),
        "last_delta": ("/ points", "/ (points - 1)"),
        "backward": ("1 - x[i] * x[i]", "1 - x[i]"),
        "gradient_of_params": ("p < points", "p < points - 1"),
        "update": ("momentum * velocity[i]", "(1 - momentum) * velocity[i]"),
    },
    "18_tensor_cores": {
        "matmul_cuda_cores": ("p < TILE", "p < TILE - 1"),
        "matmul_fragments": ("0.0f", "1.0f"),
        "matmul_tensor_tiles": ("0.0f", "1.0f"),
    },
    "19_graphs": {"mix": ("+ step", "- step")},
    "20_two_gpus": {"matmul": ("p < k", "p < k - 1")},
}


def source(program):
    return (FOLDER / f"{program}.cu").read_text()


def planted(lesson, kernel):
    """The lesson's text with the bug in this kernel."""
    text = source(lesson)
    start = re.search(rf"__global__ void (?:__launch_bounds__\(\w+\) )?{kernel}\(", text).start()
    end = text.index("\n}\n", start)
    body, (old, new) = text[start:end], PLANTS[lesson][kernel]
    assert body.count(old) == 1, f"{kernel} has this {body.count(old)} times, not once: {old}"
    return text[:start] + body.replace(old, new) + text[end:]


def plants():
    return [f"planted/{kernel}/{lesson}" for lesson in PLANTS for kernel in PLANTS[lesson]]


class Tree:
    """A copy of the sources with the planted lessons, and what make builds there."""

    def __init__(self, folder):
        self.folder, self.output = folder, {}
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy2(ROOT / name, folder / name)
        shutil.copytree(ROOT / "cuda", folder / "cuda")
        if (ROOT / "build/sim/simulator").exists():
            shutil.copytree(ROOT / "build/sim/simulator", folder / "build/sim/simulator")
            shutil.copy2(ROOT / "build/sim/flags", folder / "build/sim/flags")
        for name in plants():
            path = folder / "cuda/lessons" / f"{name}.cu"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(planted(path.stem, path.parent.name))

    def build(self, card, names):
        """Build these programs, for the simulated card ("sim") or by nvcc ("gpu"), and go on when
        one does not build."""
        outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
        environment = {k: v for k, v in os.environ.items() if k not in outer}
        environment["PYTHON"] = sys.executable
        made = subprocess.run(
            ["make", "--keep-going", *(f"build/lessons/{card}/{name}" for name in names)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        return made.stdout + made.stderr

    def program(self, card, name):
        """The path of a program. With the first one all of its kind are built, side by side."""
        kind = plants() if name in plants() else LESSONS + SOLUTIONS
        if (card, kind[0]) not in self.output:
            self.output[card, kind[0]] = self.build(card, kind)
        path = self.folder / "build/lessons" / card / name
        assert path.exists(), f"{name} does not build:\n{self.output[card, kind[0]]}"
        return path

    def run(self, device, name):
        """The exit status of a program and what it printed."""
        program = self.program(CARDS[device], name)
        done = subprocess.run([program], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("lessons"))


def allowed_statuses(device, program):
    lacking = Path(program).name.startswith(MAY_LACK_A_DEVICE[device])
    return (0, 77) if lacking else (0,)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("program", LESSONS + SOLUTIONS)
def test_runs(device, tree, program):
    status, output = tree.run(device, program)
    assert status in allowed_statuses(device, program), output
    if status == 0 and program in LESSONS:
        assert [line[:9] for line in output.splitlines()].count("measured:") == 1, output


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("plant", plants())
def test_check_finds_a_planted_bug(device, tree, plant):
    status, output = tree.run(device, plant)
    without_device = status == 77 and 77 in allowed_statuses(device, plant)
    assert status == 1 or without_device, f"status {status} in spite of the bug:\n{output}"


@pytest.mark.parametrize("program", LESSONS + SOLUTIONS)
def test_nvcc_compiles(tree, program):
    """With the flags of the line in its head, which is where make takes them from."""
    lines = NVCC_LINE.findall(source(program))
    assert len(lines) == 1, "there must be one line: nvcc FLAGS NAME.cu -o NAME && ./NAME"
    _, flags, *names = lines[0]
    assert set(names) == {Path(program).name}
    assert {"-O3", "-arch=native"} <= set(flags.split())
    tree.program("gpu", program)


@pytest.mark.parametrize("lesson", LESSONS)
def test_is_short(lesson):
    lines = COMMENT.sub("", source(lesson)).splitlines()
    code = sum(bool(line.strip()) for line in lines)
    limit = LINES_OF_CODE.get(lesson[:2], OTHER_LINES_OF_CODE)
    assert code <= limit, f"{code} lines of code, {limit} are allowed"


def test_every_kernel_has_a_planted_bug():
    kernels = {name: set(KERNEL.findall(source(name))) for name in LESSONS}
    assert kernels == {name: set(PLANTS.get(name, ())) for name in LESSONS}


@pytest.mark.parametrize("lesson", LESSONS)
def test_has_two_exercises_and_their_solutions(lesson):
    exercises = source(lesson).rpartition("/* Exercises")[2]
    assert re.findall(r"^ \* (\d)\. ", exercises, re.MULTILINE) == ["1", "2"]
    assert re.findall(r"^ \* (\d)\. ", source(f"solutions/{lesson}"), re.MULTILINE) == ["1", "2"]


def test_readme_lists_every_lesson():
    table = re.findall(r"^\| \[(\w+)\]\((\w+)\.cu\) \|", (FOLDER / "README.md").read_text(), re.M)
    assert table == [(lesson, lesson) for lesson in LESSONS]
