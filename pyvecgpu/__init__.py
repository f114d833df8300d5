"""pyvecgpu: arrays and neural-network operations on NVIDIA GPUs for NumPy users.

    import pyvecgpu as vg

    x = vg.asarray(numpy_array)           # to the GPU, or the CPU where there is none
    y = vg.sigmoid(x @ weights + 1)       # stays there
    y.numpy()                             # and comes back

Devices are "cpu" (NumPy), "cuda" (GPUs) and "sim" (a simulated card). Functions carry the names and
the meaning of the Python array API standard. `python -m pyvecgpu info` shows what there is.
Importing the package starts nothing: the library is loaded when its device is first used.
"""

from . import nn
from .array import Array
from .device import (
    Device,
    DeviceLimits,
    LaunchRecord,
    MemoryInfo,
    counters,
    device,
    devices,
    empty_cache,
    is_available,
    is_healthy,
    launch_log,
    memory_info,
    set_memory_limit,
    synchronize,
)
from .dtypes import (
    bfloat16,
    bool,
    float16,
    float32,
    float64,
    get_default_dtype,
    int32,
    int64,
    set_default_dtype,
    uint8,
    uint64,
)
from .errors import (
    CUDAError,
    DeviceLostError,
    DeviceUnavailableError,
    ImplicitTransferError,
    LaunchError,
    OutOfMemoryError,
    PyVecGPUError,
)
from .functions import (
    abs,
    add,
    arange,
    argmax,
    array,
    asarray,
    astype,
    broadcast_to,
    contiguous,
    dense,
    divide,
    empty,
    empty_like,
    equal,
    exp,
    expand_dims,
    full,
    full_like,
    get_matmul_precision,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    matmul,
    matrix_transpose,
    max,
    maximum,
    mean,
    min,
    minimum,
    multiply,
    negative,
    not_equal,
    ones,
    ones_like,
    permute_dims,
    relu,
    reshape,
    set_matmul_precision,
    sigmoid,
    sqrt,
    squeeze,
    subtract,
    sum,
    tanh,
    tensordot,
    transpose,
    vecdot,
    where,
    zeros,
    zeros_like,
)

__version__ = "0.1.0"

newaxis = None

__all__ = [
    "Array",
    "CUDAError",
    "Device",
    "DeviceLimits",
    "DeviceLostError",
    "DeviceUnavailableError",
    "ImplicitTransferError",
    "LaunchError",
    "LaunchRecord",
    "MemoryInfo",
    "OutOfMemoryError",
    "PyVecGPUError",
    "__version__",
    "abs",
    "add",
    "arange",
    "argmax",
    "array",
    "asarray",
    "astype",
    "bfloat16",
    "bool",
    "float16",
    "broadcast_to",
    "contiguous",
    "counters",
    "dense",
    "device",
    "devices",
    "divide",
    "empty",
    "empty_cache",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "float32",
    "float64",
    "full",
    "full_like",
    "get_default_dtype",
    "get_matmul_precision",
    "greater",
    "greater_equal",
    "int32",
    "int64",
    "is_available",
    "is_healthy",
    "launch_log",
    "less",
    "less_equal",
    "log",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "memory_info",
    "min",
    "minimum",
    "multiply",
    "negative",
    "newaxis",
    "nn",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "relu",
    "reshape",
    "set_default_dtype",
    "set_matmul_precision",
    "set_memory_limit",
    "sigmoid",
    "sqrt",
    "squeeze",
    "subtract",
    "sum",
    "synchronize",
    "tanh",
    "tensordot",
    "transpose",
    "uint8",
    "uint64",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]

_OTHER_NAMES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "ascontiguousarray": "contiguous",
    "clamp_min": "maximum",
    "dot": "matmul",
    "linear": "dense",
    "mm": "matmul",
    "permute": "permute_dims",
    "tensor": "asarray",
    "true_divide": "divide",
    "unsqueeze": "expand_dims",
}


def __getattr__(name):
    """Say which name to use instead of one that is not there."""
    text = f"module 'pyvecgpu' has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(text)
    import difflib

    import numpy

    if name in _OTHER_NAMES:
        raise AttributeError(f"{text}; use pyvecgpu.{_OTHER_NAMES[name]}")
    if name in numpy.__all__:
        raise AttributeError(f"{text} in this version yet; use numpy.{name} on x.numpy()")
    close = difflib.get_close_matches(name, __all__, 1)
    raise AttributeError(f"{text}; did you mean {close[0]!r}?" if close else text)
