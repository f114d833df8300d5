"""Products by one kernel of the library's choice of them, for the tests and the sweep."""

import contextlib
import functools

import pyvecgpu as vg
from pyvecgpu.native import library
from pyvecgpu.native.abi import MatmulKernel, Option

# What the tests simulate, by compute capability: sim:0 is the card that there is by default, on
# the others run the kernels that it has not got.
SIMULATED_CARDS = (75, 90, 80)

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
    ("tensor_small", "float16", None),
    ("tensor_small", "bfloat16", None),
    ("tensor_tf32", "float32", "tf32"),
    ("dmma", "float64", None),
    ("gemv", "float32", "ieee"),
    ("gemv", "float64", None),
    ("gemv", "float16", None),
    ("gemv", "bfloat16", None),
    ("thin", "float32", "ieee"),
    ("thin", "float64", None),
    ("outer", "float32", "ieee"),
    ("outer", "float64", None),
    ("outer", "float16", None),
    ("outer", "bfloat16", None),
    ("tiny", "float32", "ieee"),
    ("tiny", "float64", None),
    ("tiny", "float16", None),
    ("tiny", "bfloat16", None),
]


def simulate_cards():
    """Describe the SIMULATED_CARDS; before anything asks for a device of "sim"."""
    loaded = library.load("sim")
    for number, capability in enumerate(SIMULATED_CARDS):
        assert loaded.pvg_sim_set(f"card{number}".encode(), capability) == 0
    assert loaded.pvg_sim_set(b"devices", len(SIMULATED_CARDS)) == 0


def is_simulated(device):
    """Whether this is "sim", "sim:0", ..."""
    return device.split(":")[0] == "sim"


def card_for(device, kernel):
    """The device; of "sim" the first card that has the kernel. None: there is none."""
    names = [f"sim:{i}" for i in range(1, len(SIMULATED_CARDS))] if device == "sim" else []
    return next((name for name in [device, *names] if is_able(name, kernel)), None)


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
