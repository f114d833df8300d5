"""The lessons' own kernels (cuda/lessons) from Python, launched as you choose, and what they took.

    from pyvecgpu import learn

    c, report = learn.vector_add(a, b, blocks=1, threads=1000)
    print(report)                         # covered 1,000 of 500,000 elements ...

Operands are NumPy arrays of float32, and so is the result. `device` is "cuda" or "sim"; None is the
current device, or "sim" if that is the CPU. Without a grid the launch covers all elements. One that
you choose is launched as it is, and elements that no thread computes stay 0.
All functions raise LaunchError instead of a launch that the device would refuse, ValueError for
shapes and sizes that make no sense and for device="cpu", and TypeError for other dtypes.
"""

import math

import numpy as np

from ..native.abi import LessonKernel
from .launch import run
from .report import Report

__all__ = ["Report", "layer", "matmul", "matrix_add", "sigmoid", "tensor_add", "vector_add"]

_PRODUCTS = {
    "naive": LessonKernel.LESSON_MATMUL_NAIVE,
    "coalesced": LessonKernel.LESSON_MATMUL_COALESCED,
    "tiled": LessonKernel.LESSON_MATMUL_TILED,
    "registers": LessonKernel.LESSON_MATMUL_REGISTERS,
}


def vector_add(a, b, *, blocks=None, threads=256, device=None):
    """Add two vectors (n,) with lesson 05's kernel: thread i of the grid computes element i.

    Returns (a + b, Report).
    """
    grid = None if blocks is None else (blocks,)
    return _add(LessonKernel.LESSON_VECTOR_ADD, a, b, 1, grid, (threads,), device)


def matrix_add(a, b, *, grid=None, block=(32, 8), slow=False, device=None):
    """Add two matrices (rows, columns) with lesson 08's kernel; grid and block are (x, y).

    The column comes from x and the row from y; with `slow` the other way round, where neighbouring
    threads read from different rows. Returns (a + b, Report).
    """
    kernel = LessonKernel.LESSON_MATRIX_ADD_SLOW if slow else LessonKernel.LESSON_MATRIX_ADD
    return _add(kernel, a, b, 2, grid, block, device)


def tensor_add(a, b, *, grid=None, block=(32, 4, 2), device=None):
    """Add two tensors (depth, rows, columns) with lesson 09's kernel; grid, block are (x, y, z).

    The column comes from x, the row from y, the layer from z. Returns (a + b, Report).
    """
    return _add(LessonKernel.LESSON_TENSOR_ADD, a, b, 3, grid, block, device)


def sigmoid(x, *, blocks=None, threads=256, device=None):
    """Compute 1 / (1 + exp(-x)) of a vector (n,) with lesson 10's kernel, a thread per element.

    Returns (the result, Report).
    """
    x = _operand(x, "x", 1)
    return run(
        LessonKernel.LESSON_SIGMOID,
        [x],
        x.shape,
        lambda out: np.copyto(out, 1 / (1 + np.exp(-x))),
        ("sigmoid", [x.size]),
        grid=None if blocks is None else (blocks,),
        block=(threads,),
        needs=x.shape,
        operations=x.size,
        device=device,
    )


def matmul(a, b, *, kernel="tiled", device=None):
    """Multiply (m, k) by (k, n) with one of lesson 11's kernels, launched as the lesson does.

    kernel: "naive", "coalesced", "tiled" or "registers". Returns (a @ b, Report).
    """
    if kernel not in _PRODUCTS:
        raise ValueError(f"kernel is {kernel!r}; it can be {', '.join(map(repr, _PRODUCTS))}")
    a, b = _operand(a, "a", 2), _operand(b, "b", 2)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"a of shape {a.shape} and b of shape {b.shape} cannot be multiplied")
    (m, k), n = a.shape, b.shape[1]
    block, tile = ((16, 16), 64) if kernel == "registers" else ((32, 32), 32)
    needs = (m, n) if kernel == "naive" else (n, m)  # along x and y
    return run(
        _PRODUCTS[kernel],
        [a, b],
        (m, n),
        lambda out: np.matmul(a, b, out=out),
        ("multiply", [m, n, k]),
        grid=tuple(max(1, math.ceil(size / tile)) for size in needs),
        block=block,
        needs=None,
        operations=2 * m * n * k,
        device=device,
    )


def layer(x, W, b, *, device=None):
    """Compute sigmoid(W x + b), one layer of a network, with lesson 15's fused kernel.

    x is (inputs,) or a batch (batch, inputs), W is (outputs, inputs) and b (outputs,). Returns
    (y, Report); y is (outputs,) or (batch, outputs).
    """
    W, b, x = _operand(W, "W", 2), _operand(b, "b", 1), _operand(x, "x", 1, 2)
    rows = x[None] if x.ndim == 1 else x
    outputs, inputs = W.shape
    if rows.shape[1] != inputs or b.shape != (outputs,):
        raise ValueError(
            f"x of shape {x.shape}, W of {W.shape} and b of {b.shape} do not fit together: W is "
            "(outputs, inputs), x (inputs,) or (batch, inputs), b (outputs,)"
        )
    batch = len(rows)
    result, report = run(
        LessonKernel.LESSON_LAYER,
        [W, rows, b],
        (batch, outputs),
        lambda out: np.copyto(out, 1 / (1 + np.exp(-(rows @ W.T + b)))),
        ("layer", [batch, outputs, inputs]),
        grid=(max(1, math.ceil(outputs / 8)), max(1, batch)),  # a warp computes an output
        block=(256,),
        needs=None,
        operations=2 * batch * outputs * inputs,
        device=device,
    )
    return result.reshape((*x.shape[:-1], outputs)), report


def _add(kernel, a, b, ndim, grid, block, device):
    a, b = _operand(a, "a", ndim), _operand(b, "b", ndim)
    if a.shape != b.shape:
        raise ValueError(f"a has shape {a.shape} and b {b.shape}; they must be the same")
    slow = kernel == LessonKernel.LESSON_MATRIX_ADD_SLOW
    return run(
        kernel,
        [a, b],
        a.shape,
        lambda out: np.add(a, b, out=out),
        ("add", [a.size]),
        grid=grid,
        block=block,
        needs=a.shape if slow else a.shape[::-1],  # x first
        operations=a.size,
        device=device,
    )


def _operand(array, name, *ndims):
    """A contiguous float32 ndarray. TypeError, ValueError: it is none, and how to make it one."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}")
    if array.dtype != np.float32:
        raise TypeError(
            f"the lessons' kernels take float32, and {name} is {array.dtype}; "
            f"use {name}.astype(numpy.float32)"
        )
    if array.ndim not in ndims:
        raise ValueError(
            f"{name} must have {' or '.join(map(str, ndims))} dimensions, "
            f"and its shape is {array.shape}"
        )
    return np.ascontiguousarray(array)
