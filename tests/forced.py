"""Products by one kernel of the library's choice of them, for the tests and the sweep."""

import contextlib
import functools

import pyvecgpu as vg
from pyvecgpu.native.abi import MatmulKernel, Option

# (kernel, dtype, precision): what each kernel is for.
CASES = [
    ("tiled", "float32", "ieee"),
    ("tiled", "float16", None),
    ("tiled", "bfloat16", None),
    ("ffma_128x128", "float32", "ieee"),
    ("ffma_64x128", "float32", "ieee"),
    ("ffma_64x64", "float32", "ieee"),
    ("ffma_64x32", "float32", "ieee"),
    ("ffma_tma", "float32", "ieee"),
    ("bf16x6", "float32", "float32"),
    ("fp16x3", "float32", "fast32"),
    ("tensor", "float32", "tf32"),
    ("tensor", "float32", "bf16"),
    ("tensor", "float32", "fp16"),
    ("tensor", "float16", None),
    ("tensor", "bfloat16", None),
    ("tensor_sm80", "float32", "tf32"),
    ("tensor_sm80", "float32", "bf16"),
    ("tensor_sm80", "float32", "fp16"),
    ("tensor_sm80", "float16", None),
    ("tensor_sm80", "bfloat16", None),
    ("dmma", "float64", None),
    ("gemv", "float32", "ieee"),
    ("gemv", "float64", None),
    ("gemv", "float16", None),
    ("gemv", "bfloat16", None),
    ("tiny", "float32", "ieee"),
]


def choose(device, kernel):
    """Compute all products of the device's library by this kernel; "auto": by the best one."""
    library = vg.Device(device).backend.library
    library.set_option(Option.OPTION_MATMUL_KERNEL, MatmulKernel[f"MATMUL_{kernel.upper()}"])


@contextlib.contextmanager
def forced(device, kernel):
    """Compute products by this kernel for a while."""
    choose(device, kernel)
    try:
        yield
    finally:
        choose(device, "auto")


@functools.cache
def is_able(device, kernel):
    """Whether the library has this kernel for the device: it is asked to multiply two vectors."""
    if device == "cpu":
        return False
    dtype, precision = next(case[1:] for case in CASES if case[0] == kernel)
    one = vg.ones((1, 8), dtype=dtype, device=device)
    with forced(device, kernel):
        try:
            vg.matmul(one, vg.ones((8, 1), dtype=dtype, device=device), precision=precision)
        except ValueError as error:
            assert "is forced" in str(error)
            return False
    return True
