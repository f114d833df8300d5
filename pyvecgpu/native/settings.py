"""The environment variables of pyvecgpu: the only place that reads them.

    PYVECGPU_DEVICE        default device: cpu, cuda, cuda:1, sim, ...
    PYVECGPU_SYNC          1: wait after every operation, so that an error names its operation
    PYVECGPU_ALLOCATOR     pool (default), direct (one cudaMalloc per array), debug (with canaries)
    PYVECGPU_MEMORY_LIMIT  bytes to hold on each device at most, such as 2000000 or 512M or 4G
    PYVECGPU_LIBRARY       absolute path of the library to load for "cuda"
    PYVECGPU_SIM_LIBRARY   absolute path of the library to load for "sim"
    PYVECGPU_MATMUL        computes every product with this kernel (MatmulKernel in abi.py: tiled,
                           gemv, ...) or fails; for tests
    PYVECGPU_LAUNCH_LOG    file to which the launched kernels are appended when the process ends

They are read once, when a device is first used. An empty one counts as unset. A value that makes no
sense is a ValueError that names the variable; a PYVECGPU_* variable that is none of these gives a
warning. PYVECGPU_LIBRARY and PYVECGPU_SIM_LIBRARY are ignored under `python -I` and `python -E`.
"""

import os
import re
import sys
import warnings
from typing import NamedTuple

from .abi import Allocator, MatmulKernel

PREFIX = "PYVECGPU_"
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Settings(NamedTuple):
    """The variables' values; None where one is not set."""

    device: str | None
    sync: bool
    allocator: Allocator
    memory_limit: int | None
    library: str | None
    sim_library: str | None
    matmul: MatmulKernel
    launch_log: str | None


_current = None


def current():
    """Return the Settings, read from the environment by the first call that finds no mistake in it.

    ValueError: a variable's value makes no sense.
    """
    global _current
    if _current is None:
        _current = read(os.environ)
    return _current


def read(environment):
    """Return the Settings in a mapping of environment variables; for the errors see `current`."""
    values = {
        name.removeprefix(PREFIX): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value
    }
    settings = Settings(
        device=_parse(values, "DEVICE", _device),
        sync=_parse(values, "SYNC", _flag) or False,
        allocator=_parse(values, "ALLOCATOR", _allocator) or Allocator.ALLOCATOR_POOL,
        memory_limit=_parse(values, "MEMORY_LIMIT", parse_bytes),
        library=_parse(values, "LIBRARY", _library),
        sim_library=_parse(values, "SIM_LIBRARY", _library),
        matmul=_parse(values, "MATMUL", _matmul_kernel) or MatmulKernel.MATMUL_AUTO,
        launch_log=_parse(values, "LAUNCH_LOG", _writable),
    )
    for name in values:
        if name.lower() not in Settings._fields:
            known = ", ".join(PREFIX + field.upper() for field in Settings._fields)
            warnings.warn(
                f"{PREFIX}{name} is not a variable of pyvecgpu; there are: {known}",
                RuntimeWarning,
                stacklevel=2,
            )
    return settings


def _parse(values, name, parse):
    """Return the parsed value or None; `parse` gives a value or raises ValueError with a reason."""
    if name not in values:
        return None
    try:
        return parse(values[name])
    except ValueError as error:
        raise ValueError(f"{PREFIX}{name} is {values[name]!r}; {error}") from None


def _device(text):
    if not re.fullmatch(r"cpu|(cuda|sim)(:(0|[1-9][0-9]{0,5}))?", text):
        raise ValueError("it can be cpu, cuda, cuda:1, sim, ...")
    return text


def _flag(text):
    if text not in ("0", "1"):
        raise ValueError("it can be 0 or 1")
    return text == "1"


def _allocator(text):
    if text not in ("pool", "direct", "debug"):
        raise ValueError("it can be pool, direct or debug")
    return Allocator[f"ALLOCATOR_{text.upper()}"]


def _matmul_kernel(text):
    kernels = {code.name.removeprefix("MATMUL_").lower(): code for code in MatmulKernel}
    if text not in kernels:
        raise ValueError(f"it can be {', '.join(kernels)}")
    return kernels[text]


def parse_bytes(text):
    """Return "2000000", "512M" or "4G" as a number of bytes; ValueError if it is none."""
    match = re.fullmatch(r"([0-9]{1,19})([KMGT]?)", text, re.ASCII)
    size = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < size < 2**63:
        raise ValueError("it can be a positive number of bytes, such as 2000000, 512M or 4G")
    return size


def _library(text):
    # Only the form is checked here; library.py looks at the file when it is about to load it.
    if sys.flags.ignore_environment:
        return None
    if "\0" in text:
        raise ValueError("it can be the absolute path of a shared library")
    return text


def _writable(text):
    folder = os.path.dirname(os.path.abspath(text))
    if os.path.isdir(text) or not os.access(text if os.path.exists(text) else folder, os.W_OK):
        raise ValueError("it can be a file that may be written")
    return os.path.abspath(text)
