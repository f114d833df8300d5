"""Finding, loading and binding the two shared libraries; their errors become exceptions here.

load("cuda") and load("sim") give a Library whose attributes are the functions of the ABI table, or
raise DeviceUnavailableError with the reason, the same one each time. A library is loaded by its
absolute path inside the package, and only when its device is first used.
"""

import atexit
import ctypes
import os
import stat
import sys
import threading
import warnings

import numpy as np

from ..errors import (
    CUDAError,
    DeviceLostError,
    DeviceUnavailableError,
    LaunchError,
    OutOfMemoryError,
    PyVecGPUError,
)
from . import capsules, choices, elf, owners, settings
from .abi import ABI_VERSION, FUNCTIONS, SIMULATOR_FUNCTIONS, ErrorValue, Handle, Option, Status

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = {"cuda": "libpyvecgpu.so", "sim": "libpyvecgpu_sim.so"}
NOTE = "without_libraries.txt"  # of a wheel: cuda/hatch_build.py
TARGETS = {"cuda": "make", "sim": "make sim"}

_lock = threading.RLock()
_libraries = {}  # device type: Library
_reasons = {}  # device type: why it cannot be loaded


def load(device_type):
    """Return the Library behind "cuda" or "sim".

    DeviceUnavailableError: it is not there or does not fit. ValueError: a PYVECGPU_* variable.
    """
    library = _libraries.get(device_type)
    if library is not None:
        return library
    with _lock:
        if device_type not in _libraries:
            if device_type in _reasons:
                raise DeviceUnavailableError(_reasons[device_type])
            try:
                _libraries[device_type] = Library(device_type)
            except DeviceUnavailableError as error:
                _reasons[device_type] = str(error)
                raise
        return _libraries[device_type]


def loaded():
    """Return the libraries loaded so far."""
    return list(_libraries.values())


def path_of(device_type):
    """Return the path that `load` loads, and whether a PYVECGPU_* variable names it."""
    override = getattr(settings.current(), "library" if device_type == "cuda" else "sim_library")
    return override or os.path.join(PACKAGE, FILES[device_type]), override is not None


def header():
    """Return the path of pyvecgpu.h: a wheel's, or the sources'; None if there is none."""
    sources = os.path.join(os.path.dirname(PACKAGE), "cuda")
    places = [
        os.path.join(folder, "pyvecgpu.h") for folder in (os.path.join(PACKAGE, "include"), sources)
    ]
    return next((place for place in places if os.path.exists(place)), None)


class Library:
    """A loaded library: its path, and the functions of the ABI table as attributes.

    An attribute that is not in the table is an AttributeError, even if the file exports it. Handles
    that the functions return are ints, which the caller has to release. `owning` has the functions
    whose new handles are owners, and `into` those for calls with an `out`; see owners.py.
    """

    def __init__(self, device_type):
        self.device_type = device_type
        self.path, self.overridden = path_of(device_type)
        if self.overridden:
            self.path = check_override(device_type, self.path)
        elif not os.path.exists(self.path):
            raise DeviceUnavailableError(why_missing(device_type, self.path))
        self._bind(open_library(self.path))
        self._configure()

    def _bind(self, cdll):
        table = FUNCTIONS | SIMULATOR_FUNCTIONS if self.device_type == "sim" else FUNCTIONS
        try:
            cdll.pvg_abi_version.restype = ctypes.c_int
            version = cdll.pvg_abi_version()
            if version != ABI_VERSION:
                raise DeviceUnavailableError(
                    f"{self.path} has ABI version {version}, this package needs {ABI_VERSION}; "
                    f"run `{TARGETS[self.device_type]}` again"
                )
            for name, (restype, argtypes) in table.items():
                function = cdll[name]
                is_handle = restype is not None and issubclass(restype, Handle)
                function.restype = ctypes.c_void_p if is_handle else restype
                function.argtypes = argtypes
                setattr(self, name, function)
            self._owners = owners.make_owners(cdll)
            self.owning = owners.Functions(cdll, self._owners)
            self.into = owners.Functions(cdll, self._owners, out=True)
            self._check_kind()
            capsules.introduce(self)
        except AttributeError as error:
            raise DeviceUnavailableError(
                f"{self.path} does not belong to this package ({error}); "
                f"run `{TARGETS[self.device_type]}` again"
            ) from None

    def _check_kind(self):
        """A simulated card in the place of the GPU library would be the default device unseen."""
        simulated = b"simulator: yes" in self.pvg_build_info()
        if simulated and self.device_type == "cuda" and not self.overridden:
            raise DeviceUnavailableError(
                f"{self.path} is a simulated card, not the GPU library; run `{TARGETS['cuda']}`"
            )

    def _configure(self):
        chosen = settings.current()
        self.set_option(Option.OPTION_SYNC, chosen.sync)
        self.set_option(Option.OPTION_ALLOCATOR, chosen.allocator)
        self.set_option(Option.OPTION_MATMUL_KERNEL, chosen.matmul)
        if chosen.launch_log is not None:
            self.set_option(Option.OPTION_LAUNCH_LOG, 1)
            atexit.register(self._append_launch_log, chosen.launch_log)
        choices.follow(self)

    def _append_launch_log(self, path):
        with open(path, "a", encoding="utf-8") as file:
            for line in self.pvg_launch_log().decode().splitlines():
                file.write(f"{self.device_type} {line}\n")

    def __getattr__(self, name):
        raise AttributeError(f"the ABI table of pyvecgpu has no function {name!r}")

    def set_option(self, option, value):
        """Set one of abi.Option; ValueError if it does not take the value."""
        if self.pvg_set_option(option, value):
            raise_last_error(self)

    def stop_releasing(self):
        """Let what the owners still own go with the process."""
        owners.keep(self._owners)

    def build_info(self):
        """Return what the library says about itself: a dict of strings."""
        lines = self.pvg_build_info().decode().splitlines()
        return dict(line.split(": ", 1) for line in lines if ": " in line)


def why_missing(device_type, path):
    """Return why there is no library: what the wheel says of it, if it was made without."""
    try:
        with open(os.path.join(PACKAGE, NOTE), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return (
            f"the library for {device_type!r} is not built: {path} does not exist; "
            f"run `{TARGETS[device_type]}` in a source checkout, or install a wheel with it"
        )


def check_override(device_type, path):
    """Return the real path of an override; DeviceUnavailableError if it must not be loaded."""
    name = "PYVECGPU_LIBRARY" if device_type == "cuda" else "PYVECGPU_SIM_LIBRARY"
    if not os.path.isabs(path):
        raise DeviceUnavailableError(f"{name} is {path!r}; it must be an absolute path")
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise DeviceUnavailableError(f"{name} is {path!r}: {error.strerror}") from None
    if not stat.S_ISREG(mode):
        raise DeviceUnavailableError(f"{name} is {path!r}, which is not a regular file")
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DeviceUnavailableError(
            f"{name} is {path!r}, which others than its owner may write; run `chmod go-w` on it"
        )
    warnings.warn(f"{name}: loading {path} as {device_type!r}", RuntimeWarning, stacklevel=2)
    return path


def open_library(path):
    """Return the ctypes.CDLL; DeviceUnavailableError with the reason if it will not load."""
    try:
        if sys.platform == "linux":
            elf.check_library(path)
        return ctypes.CDLL(path)
    except OSError as error:
        raise DeviceUnavailableError(f"cannot load {path}: {error}") from None


_PLAIN = {
    Status.ERROR_VALUE: ValueError,
    Status.ERROR_TYPE: TypeError,
    Status.ERROR_INDEX: IndexError,
    Status.ERROR_AXIS: np.exceptions.AxisError,
    Status.ERROR_OVERFLOW: OverflowError,
    Status.ERROR_HOST_MEMORY: MemoryError,
    Status.ERROR_UNAVAILABLE: DeviceUnavailableError,
    Status.ERROR_LINALG: np.linalg.LinAlgError,
}
_CUDA = {
    Status.ERROR_LAUNCH: LaunchError,
    Status.ERROR_DEVICE_LOST: DeviceLostError,
    Status.ERROR_CUDA: CUDAError,
}


def raise_last_error(library):
    """Raise the exception for this thread's last error in the library."""
    status = library.pvg_last_status()
    message = library.pvg_last_error().decode(errors="replace")
    value = library.pvg_last_error_value
    if status in _PLAIN:
        raise _PLAIN[status](message)
    if status in _CUDA:
        raise _CUDA[status](
            message,
            code=value(ErrorValue.ERROR_VALUE_CUDA_CODE),
            name=library.pvg_last_error_cuda_name().decode(),
            operation=library.pvg_last_error_operation().decode(),
        )
    if status == Status.ERROR_MEMORY:
        raise OutOfMemoryError(
            message,
            requested=value(ErrorValue.ERROR_VALUE_REQUESTED),
            free=value(ErrorValue.ERROR_VALUE_FREE),
            reserved=value(ErrorValue.ERROR_VALUE_RESERVED),
            device=f"{library.device_type}:{value(ErrorValue.ERROR_VALUE_DEVICE)}",
        )
    raise PyVecGPUError(message or f"the library failed with status {status} and gave no reason")
