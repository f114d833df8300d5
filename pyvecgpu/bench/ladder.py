"""The ladder of matrix products: one product by every kernel, from the lessons' naive one to the
last, for the table in cuda/kernels/matmul/README.md.

Each step computes the same product of random matrices, so that the steps can be compared; what a
step rounds its operands to is part of its error.
"""

import functools
from ctypes import byref, c_double, c_int64
from dataclasses import dataclass

import numpy as np

import pyvecgpu as vg

from ..native.abi import LessonKernel, MatmulKernel, Option
from .matmul import DTYPES, error_allowed
from .timing import Row

SIZE = {"full": 4096, "cpu": 256, "quick": 32}
GOALS = []


@dataclass
class Step:
    """A kernel: its name in the table, where it is, and the product that it is asked for."""

    name: str
    file: str
    kernel: LessonKernel | MatmulKernel
    format: str = "ieee"  # a key of DTYPES


LESSON = "cuda/lessons/11_matrix_product.cu"
STEPS = [
    Step("naive", LESSON, LessonKernel.LESSON_MATMUL_NAIVE),
    Step("coalesced", LESSON, LessonKernel.LESSON_MATMUL_COALESCED),
    Step("shared tiles", LESSON, LessonKernel.LESSON_MATMUL_TILED),
    Step("register tiles", LESSON, LessonKernel.LESSON_MATMUL_REGISTERS),
    Step("tiled, any layout", "simt/tile.cuh", MatmulKernel.MATMUL_TILED),
    Step("asynchronous copies", "simt/ffma.cuh", MatmulKernel.MATMUL_FFMA_128X128),
    Step("copies by TMA", "sm90/ffma_tma.cu", MatmulKernel.MATMUL_FFMA_TMA),
    Step("float32 by BF16x6", "sm90/emulated.cu", MatmulKernel.MATMUL_BF16X6, "float32"),
    Step("fast32 by FP16x3", "sm90/emulated.cu", MatmulKernel.MATMUL_FP16X3, "fast32"),
    Step("TF32, mma.sync", "sm80/tensor.cu", MatmulKernel.MATMUL_TENSOR_SM80, "tf32"),
    Step("TF32, wgmma", "sm90/tensor.cuh", MatmulKernel.MATMUL_TENSOR, "tf32"),
    Step("bfloat16, mma.sync", "sm80/tensor.cu", MatmulKernel.MATMUL_TENSOR_SM80, "bfloat16"),
    Step("bfloat16, wgmma", "sm90/tensor.cuh", MatmulKernel.MATMUL_TENSOR, "bfloat16"),
    Step("float64, tensor cores", "sm80/dmma.cu", MatmulKernel.MATMUL_DMMA, "float64"),
]


def rows(size):
    """Return the rows for a key of SIZE."""
    n = SIZE[size]
    return [row(step, n) for step in STEPS]


def row(step, n):
    dtype = DTYPES[step.format]
    return Row(
        name=step.name,
        work=2 * n**3,
        unit="FLOP/s",
        operands=[((n, n), dtype), ((n, n), dtype)],
        out=((n, n), dtype),
        calls={"pyvecgpu": by_lesson(step) if type(step.kernel) is LessonKernel else forced(step)},
        expected=lambda a, b: a.astype(np.float64) @ b.astype(np.float64),
        error_allowed=error_allowed(step.format, n),
        note=step.file,
        able=functools.partial(is_able, step),
    )


def by_lesson(step):
    """Return a call that launches the lesson's kernel as the lesson does."""

    def call(_, a, b, out):
        registers = step.kernel == LessonKernel.LESSON_MATMUL_REGISTERS
        side, tile = (16, 64) if registers else (32, 32)
        blocks = -(-a.shape[0] // tile)
        grid, block = (c_int64 * 3)(blocks, blocks, 1), (c_int64 * 3)(side, side, 1)
        backend = a.backend
        backend.check(
            backend.library.pvg_learn(
                step.kernel,
                grid,
                block,
                a.raw,
                b.raw,
                None,
                out.raw,
                1,
                byref(c_double()),
                byref(c_int64()),
            )
        )
        return out

    return call


def forced(step):
    """Return a call that computes the product by the step's kernel."""
    precision = step.format if step.format in ("ieee", "float32", "fast32", "tf32") else None

    def call(_, a, b, out):
        set_option = a.backend.library.set_option
        set_option(Option.OPTION_MATMUL_KERNEL, step.kernel)
        try:
            return vg.matmul(a, b, precision=precision, out=out)
        finally:
            set_option(Option.OPTION_MATMUL_KERNEL, MatmulKernel.MATMUL_AUTO)

    return call


def is_able(step, device):
    """Whether the device has the step's kernel."""
    if device.type == "cpu" or type(step.kernel) is LessonKernel:
        return device.type != "cpu"
    ones = [vg.ones((32, 32), dtype=DTYPES[step.format], device=device) for _ in range(3)]
    try:
        forced(step)(vg, *ones)
    except ValueError:
        return False
    return True
