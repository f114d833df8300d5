"""The ladder of lessons: every program builds, runs and ends with 0, and its checks find bugs.

The programs are built as `make lessons` builds them, in a copy of the sources, and with them one
planted copy of a lesson for each of its kernels: a kernel that is wrong in one place, which the
lesson's comparison with the C loop has to see.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import ahead
import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "cuda/lessons"
LESSONS = sorted(path.stem for path in FOLDER.glob("*.cu"))
SOLUTIONS = sorted(f"solutions/{path.stem}" for path in FOLDER.glob("solutions/*.cu"))
CARDS = {"sim": "sim", "cuda": "gpu"}  # the device: the folder in build/lessons

# What the simulated card has not; where there is one GPU the last one needs two.
MAY_LACK_A_DEVICE = {"sim": ("18_", "20_"), "cuda": ("20_",)}
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
    "04_errors": {
        "vector_add": ("threadIdx.x", "threadIdx.x / 2"),
        "add_in_steps": ("0.5f", "0.4f"),
    },
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


PROGRAMS = LESSONS + SOLUTIONS


def kind_of(card, name):
    """What is built in one go, side by side."""
    return f"{card} {'plants' if name in plants() else 'programs'}"


def make_tree(folder):
    """A copy of the sources with the planted lessons, and of what `make` has built for them."""
    shutil.copytree(ROOT / "cuda", folder / "cuda")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy2(ROOT / name, folder / name)
    if (ROOT / "build/sim/simulator").exists():
        shutil.copytree(ROOT / "build/sim/simulator", folder / "build/sim/simulator")
        shutil.copy2(ROOT / "build/sim/flags", folder / "build/sim/flags")
    for name in plants():
        path = folder / "cuda/lessons" / f"{name}.cu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(planted(path.stem, path.parent.name))


def names_of(item):
    """The kinds of programs that a test needs."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    name = params.get("program", params.get("plant"))
    return [kind_of(CARDS[params["device"]] if "device" in params else "gpu", name)] if name else []


WORK = ahead.Work(__file__, names_of)


def build(card, name):
    """The path of a program for the simulated card ("sim") or by nvcc ("gpu")."""
    output = WORK.result(kind_of(card, name))
    path = WORK.path("tree") / "build/lessons" / card / name
    assert path.exists(), f"{name} does not build:\n{output}"
    return path


def run(device, name):
    """The exit status of a program and what it printed."""
    program = build(CARDS[device], name)
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def allowed_statuses(device, program):
    lacking = Path(program).name.startswith(MAY_LACK_A_DEVICE[device])
    return (0, 77) if lacking else (0,)


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("program", PROGRAMS)
def test_runs(device, program):
    status, output = run(device, program)
    assert status in allowed_statuses(device, program), output
    if status == 0 and program in LESSONS:
        assert [line[:9] for line in output.splitlines()].count("measured:") == 1, output


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("plant", plants())
def test_check_finds_a_planted_bug(device, plant):
    status, output = run(device, plant)
    without_device = status == 77 and 77 in allowed_statuses(device, plant)
    assert status == 1 or without_device, f"status {status} in spite of the bug:\n{output}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_nvcc_compiles(program):
    """With the flags of the line in its head, which is where make takes them from."""
    lines = NVCC_LINE.findall(source(program))
    assert len(lines) == 1, "there must be one line: nvcc FLAGS NAME.cu -o NAME && ./NAME"
    _, flags, *names = lines[0]
    assert set(names) == {Path(program).name}
    assert {"-O3", "-arch=native"} <= set(flags.split())
    build("gpu", program)


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


if __name__ == "__main__":
    tree = Path(sys.argv[1])
    make_tree(tree)
    for kind in sys.argv[2:]:
        card = kind.split()[0]
        names = [name for name in [*PROGRAMS, *plants()] if kind_of(card, name) == kind]
        made = ahead.make(tree, "--keep-going", *(f"build/lessons/{card}/{name}" for name in names))
        ahead.report(kind, made.stdout + made.stderr)
