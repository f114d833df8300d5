"""The exceptions of pyvecgpu; everything else that it raises is Python's or NumPy's own type.

    PyVecGPUError
        CUDAError (RuntimeError)                    .code .name .operation
            DeviceLostError                         this process cannot use the device any more
            LaunchError                             a kernel could not be started
        OutOfMemoryError (MemoryError, RuntimeError)  .requested .free .reserved .device
        DeviceUnavailableError (RuntimeError)       no such device here, and why
        ImplicitTransferError (TypeError)           data would silently leave the device
        StateError (ValueError, RuntimeError)       the state of a network that does not fit it

All of them can be pickled, and none keeps an array alive.
"""

__all__ = [
    "CUDAError",
    "DeviceLostError",
    "DeviceUnavailableError",
    "ImplicitTransferError",
    "LaunchError",
    "OutOfMemoryError",
    "PyVecGPUError",
    "StateError",
]


class PyVecGPUError(Exception):
    """Base of the exceptions that pyvecgpu defines.

    >>> try:
    ...     vg.Device("cuda:99")
    ... except vg.PyVecGPUError as error:
    ...     print(type(error).__name__)
    DeviceUnavailableError
    """


class CUDAError(PyVecGPUError, RuntimeError):
    """An error of the CUDA runtime.

    `code` is the cudaError_t (0 if none was involved), `name` its name, such as
    "cudaErrorInvalidValue", and `operation` what failed, such as "matmul".

    >>> issubclass(vg.CUDAError, RuntimeError)
    True
    """

    def __init__(self, message, code=0, name="", operation=""):
        super().__init__(message)
        self.code = code
        self.name = name
        self.operation = operation


class DeviceLostError(CUDAError):
    """A kernel failed on the device; every later call on it fails until the process is restarted.

    The CPU device and data already on the host stay usable.

    >>> try:
    ...     vg.synchronize()
    ... except vg.DeviceLostError as error:
    ...     print("restart the process:", error)
    """


class LaunchError(CUDAError):
    """A kernel could not be started.

    >>> issubclass(vg.LaunchError, vg.CUDAError)
    True
    """


class OutOfMemoryError(PyVecGPUError, MemoryError, RuntimeError):
    """Memory is exhausted, or the limit set by `set_memory_limit` is reached.

    `requested`, `free` and `reserved` (held by pyvecgpu) are bytes, or None where they are not
    known, as on the CPU; `device` is the device's name.

    >>> issubclass(vg.OutOfMemoryError, MemoryError)
    True
    """

    def __init__(self, message, requested=None, free=None, reserved=None, device=""):
        super().__init__(message)
        self.requested = requested
        self.free = free
        self.reserved = reserved
        self.device = device


class DeviceUnavailableError(PyVecGPUError, RuntimeError):
    """The device does not exist here or cannot be used; the message says why.

    >>> try:
    ...     vg.zeros(3, device="cuda:99")
    ... except vg.DeviceUnavailableError:
    ...     print("there is no such card")
    there is no such card
    """


class ImplicitTransferError(PyVecGPUError, TypeError):
    """Something asked for the values of a device array as if they were on the host.

    >>> x = vg.ones(2, device="sim")
    >>> try:
    ...     np.asarray(x)
    ... except vg.ImplicitTransferError:
    ...     print("copied on request only:", x.numpy())
    copied on request only: [1. 1.]
    """


class StateError(PyVecGPUError, ValueError, RuntimeError):
    """A state_dict does not fit the network; the message names every key.

    A ValueError, as of any other wrong values, and a RuntimeError, which torch raises for it.

    >>> try:
    ...     vg.nn.Linear(2, 1).load_state_dict({"bias": [1.0, 2.0]})
    ... except vg.StateError as error:
    ...     print(error)
    Linear and its state differ; missing: 'weight'; 'bias' has (2,), not (1,)
    """
