"""NVIDIA's libraries of mathematics beside the driver's: found and loaded at their first use.

They are not linked, and nothing needs them but what they compute: cuSOLVER the decompositions of
linalg and matrices above 64 x 64 on a GPU, cuFFT the transforms of fft. The extra `math` installs
them: pip install pyvecgpu[math].
"""

import contextlib
import ctypes
import os
import sys
import threading

from ..errors import CUDAError, DeviceUnavailableError

# Those of CUDA 13.
FILES = {"cuSOLVER": "libcusolver.so.12", "cuFFT": "libcufft.so.12"}
KINDS = {"p": ctypes.c_void_p, "l": ctypes.c_int64, "i": ctypes.c_int, "z": ctypes.c_size_t}
KINDS["c"] = ctypes.c_byte

_lock = threading.Lock()
_libraries = {}
_contexts = {}  # device number: its primary context, which stays as long as the process


class Library:
    """A loaded library; `call` calls one of its functions, and raises if that returns no 0."""

    def __init__(self, name, path, signatures):
        self.name, self.cdll = name, ctypes.CDLL(path)
        for function, letters in signatures.items():
            getattr(self.cdll, function).argtypes = [KINDS[letter] for letter in letters]

    def call(self, function, *arguments):
        """CUDAError: the function failed."""
        status = getattr(self.cdll, function)(*arguments)
        if status:
            raise CUDAError(f"{self.name}: {function} failed with status {status}", code=status)


def load(name, signatures):
    """Return the Library "cuSOLVER" or "cuFFT"; signatures: {function: letters of KINDS}.

    DeviceUnavailableError: it is not there, or does not load.
    """
    with _lock:
        if name not in _libraries:
            _libraries[name] = Library(name, *_found(name, signatures))
        return _libraries[name]


def _found(name, signatures):
    reasons = []
    for path in candidates(FILES[name]):
        if os.path.isabs(path) and not os.path.exists(path):
            continue
        try:
            ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        return path, signatures
    raise DeviceUnavailableError(
        f"on a GPU this needs {name}, {FILES[name]}: pip install pyvecgpu[math], or compute on the "
        f'CPU with x.to("cpu") ({"; ".join(reasons)})'
    )


def candidates(file):
    """Yield where a library may be: wheels' folders, the toolkit's, and what the loader finds."""
    for folder in sys.path:
        yield os.path.join(os.path.abspath(folder or "."), "nvidia", "cu13", "lib", file)
    for toolkit in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if toolkit:
            yield os.path.join(os.path.abspath(toolkit), "lib64", file)
    yield file


@contextlib.contextmanager
def on_device(index):
    """Make a device's primary context, which the library uses too, the thread's current one."""
    driver = ctypes.CDLL("libcuda.so.1")
    with _lock:
        if index not in _contexts:
            context, device = ctypes.c_void_p(), ctypes.c_int()
            _check("cuDeviceGet", driver.cuDeviceGet(ctypes.byref(device), index))
            status = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
            _check("cuDevicePrimaryCtxRetain", status)
            _contexts[index] = context
    _check("cuCtxPushCurrent", driver.cuCtxPushCurrent_v2(_contexts[index]))
    try:
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def _check(function, status):
    if status:
        raise CUDAError(f"{function} failed with status {status}", code=status)
