"""Every row of every table of errors: statuses and exceptions, codes of CUDA, numbers and names."""

import ctypes

import helpers
import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu.native import library
from pyvecgpu.native.abi import DType, ErrorValue, Status

# README's table: what a status becomes.
EXCEPTIONS = {
    Status.ERROR_VALUE: ValueError,
    Status.ERROR_TYPE: TypeError,
    Status.ERROR_INDEX: IndexError,
    Status.ERROR_AXIS: np.exceptions.AxisError,
    Status.ERROR_OVERFLOW: OverflowError,
    Status.ERROR_MEMORY: vg.OutOfMemoryError,
    Status.ERROR_HOST_MEMORY: MemoryError,
    Status.ERROR_UNAVAILABLE: vg.DeviceUnavailableError,
    Status.ERROR_LAUNCH: vg.LaunchError,
    Status.ERROR_DEVICE_LOST: vg.DeviceLostError,
    Status.ERROR_CUDA: vg.CUDAError,
    Status.ERROR_LINALG: np.linalg.LinAlgError,
}
NUMBERS = ("requested", "free", "reserved")


class FailedLibrary:
    """A library whose last call of this thread has failed with a status."""

    device_type = "sim"

    def __init__(self, status, message=b"what happened"):
        self.status, self.message = status, message

    def pvg_last_status(self):
        return self.status

    def pvg_last_error(self):
        return self.message

    def pvg_last_error_operation(self):
        return b"matmul"

    def pvg_last_error_cuda_name(self):
        return b"cudaErrorOfATest"

    def pvg_last_error_value(self, which):
        return 100 + which


@pytest.mark.parametrize("status", [*Status, 99], ids=str)
def test_exception_of_a_status(status):
    """A status that is not known, or OK, which no failure leaves, is an error all the same."""
    expected = EXCEPTIONS.get(status, vg.PyVecGPUError)
    with pytest.raises(expected, match="what happened") as caught:
        library.raise_last_error(FailedLibrary(status))
    error = caught.value
    assert type(error) is expected
    if isinstance(error, vg.CUDAError):
        assert error.code == 100 + ErrorValue.ERROR_VALUE_CUDA_CODE
        assert (error.name, error.operation) == ("cudaErrorOfATest", "matmul")
    if isinstance(error, vg.OutOfMemoryError):
        for name in NUMBERS:
            assert getattr(error, name) == 100 + ErrorValue[f"ERROR_VALUE_{name.upper()}"]
        assert error.device == f"sim:{100 + ErrorValue.ERROR_VALUE_DEVICE}"


def test_every_status_has_an_exception_and_a_reason():
    assert set(EXCEPTIONS) == set(Status) - {Status.OK}
    for status in (*Status, 99):
        for message in (b"", b"\xff not UTF-8"):
            with pytest.raises(EXCEPTIONS.get(status, vg.PyVecGPUError)):
                library.raise_last_error(FailedLibrary(status, message))
    with pytest.raises(vg.PyVecGPUError, match="status 99"):
        library.raise_last_error(FailedLibrary(99, b""))


# Errors of the CUDA runtime, provoked on the simulated card by a copy that fails with each in turn.
# Those that are sticky end the use of the device in their process.
STICKY = {
    214: "cudaErrorECCUncorrectable", 700: "cudaErrorIllegalAddress", 702: "cudaErrorLaunchTimeout",
    709: "cudaErrorContextIsDestroyed", 710: "cudaErrorAssert", 714: "cudaErrorHardwareStackError",
    715: "cudaErrorIllegalInstruction", 716: "cudaErrorMisalignedAddress",
    717: "cudaErrorInvalidAddressSpace", 718: "cudaErrorInvalidPc", 719: "cudaErrorLaunchFailure",
    999: "cudaErrorUnknown",
}  # fmt: skip
UNAVAILABLE = {
    3: "cudaErrorInitializationError", 35: "cudaErrorInsufficientDriver", 100: "cudaErrorNoDevice",
    101: "cudaErrorInvalidDevice", 209: "cudaErrorNoKernelImageForDevice",
    802: "cudaErrorSystemNotReady", 803: "cudaErrorSystemDriverMismatch",
}  # fmt: skip
LAUNCH = {
    9: "cudaErrorInvalidConfiguration", 98: "cudaErrorInvalidDeviceFunction",
    701: "cudaErrorLaunchOutOfResources",
}  # fmt: skip
OTHERS = {
    1: "cudaErrorInvalidValue", 46: "cudaErrorDevicesUnavailable", 304: "cudaErrorOperatingSystem",
    400: "cudaErrorInvalidResourceHandle", 600: "cudaErrorNotReady", 801: "cudaErrorNotSupported",
}  # fmt: skip
CODES = {
    **{code: (name, Status.ERROR_DEVICE_LOST) for code, name in STICKY.items()},
    **{code: (name, Status.ERROR_UNAVAILABLE) for code, name in UNAVAILABLE.items()},
    **{code: (name, Status.ERROR_LAUNCH) for code, name in LAUNCH.items()},
    **{code: (name, Status.ERROR_CUDA) for code, name in OTHERS.items()},
    2: ("cudaErrorMemoryAllocation", Status.ERROR_MEMORY),
}

PROVOKE = """
import ctypes, json, os
from pyvecgpu.native import library
from pyvecgpu.native.abi import ErrorValue
def provoke(code):
    loaded = library.load("sim")
    x = loaded.pvg_array_empty(0, 11, 1, (ctypes.c_int64 * 1)(4))
    host = (ctypes.c_float * 4)()
    loaded.pvg_sim_set(b"copy_error", code)
    loaded.pvg_sim_fail(b"copy", 1)
    status = loaded.pvg_copy_to_host(x, host, None)
    text = loaded.pvg_last_error().decode()
    found = [status, loaded.pvg_last_status(), loaded.pvg_last_error_cuda_name().decode(),
             loaded.pvg_last_error_operation().decode(), [loaded.pvg_last_error_value(i) for i in
             range(5)], "new one" in text, loaded.pvg_is_healthy(), text]
    again = loaded.pvg_copy_to_host(x, host, None)
    return [*found, again, [loaded.pvg_last_error_value(i) for i in range(5)]]
report = {{}}
for code in {codes}:
    ends = os.pipe()
    if os.fork() == 0:
        os.write(ends[1], json.dumps(provoke(code)).encode())
        os._exit(0)
    os.close(ends[1])
    report[code] = json.loads(open(ends[0]).read())
    os.wait()
print(json.dumps(report))
"""


@pytest.mark.devices("sim")
def test_status_of_an_error_of_cuda(device):
    report = helpers.child_result(PROVOKE.format(codes=sorted(CODES)))
    for code, (name, expected) in CODES.items():
        status, last, found, operation, numbers, *rest = report[str(code)]
        hint, healthy, text, again, after = rest
        assert (status, last, found) == (expected, expected, name), f"{name}: {text}"
        assert operation == "copy_to_host" and name in text and "transfer.cu:" in text
        assert numbers[0] == code
        lost = expected == Status.ERROR_DEVICE_LOST
        assert (hint, healthy) == (lost, not lost), name
        assert again == (Status.ERROR_DEVICE_LOST if lost else Status.OK), name
        if not lost:
            assert after == [0] * 5, f"{name}: numbers of an error that is over"


@pytest.mark.devices("sim", "cuda")
def test_numbers_are_those_of_the_last_call(device):
    """They are gone with the next error, and with the next success."""
    loaded = library.load(device)
    too_much, four = (ctypes.c_int64 * 1)(2**55), (ctypes.c_int64 * 1)(4)
    numbers = [ErrorValue[f"ERROR_VALUE_{name.upper()}"] for name in (*NUMBERS, "cuda_code")]

    def values():
        return [loaded.pvg_last_error_value(which) for which in numbers]

    for calm in (
        lambda: loaded.pvg_array_empty(0, 99, 1, four),
        lambda: loaded.pvg_memory_info(0, (ctypes.c_int64 * 9)()),
    ):
        assert loaded.pvg_array_empty(0, DType.FLOAT64, 1, too_much) is None
        assert loaded.pvg_last_status() == Status.ERROR_MEMORY
        requested, _, _, code = values()
        assert (requested, code) == (2**58, 2)
        calm()
        assert values() == [0] * 4
        assert loaded.pvg_last_error_value(len(ErrorValue)) == -1
    assert loaded.pvg_last_error() == loaded.pvg_last_error_operation() == b""


@pytest.mark.devices("sim", "cuda")
def test_every_status_that_a_mistake_gives(device, simulator):
    """By the C interface: the status is what the call returns, or NULL and the last status."""
    loaded = library.load(device)
    length = ctypes.c_int64 * 1
    one = length(1)
    a = loaded.pvg_array_empty(0, DType.INT8, 1, one)
    flags = loaded.pvg_array_empty(0, DType.BOOL, 1, one)
    mistakes = {
        Status.ERROR_VALUE: lambda: loaded.pvg_array_empty(0, DType.INT8, 1, length(-1)),
        Status.ERROR_TYPE: lambda: loaded.pvg_unary(1, flags, None),
        Status.ERROR_INDEX: lambda: loaded.pvg_slice(a, length(5), one, one),
        Status.ERROR_AXIS: lambda: loaded.pvg_reduce(200, a, 1, (ctypes.c_int * 1)(3), 0, None),
        Status.ERROR_OVERFLOW: lambda: loaded.pvg_fill(a, 1, ctypes.byref(ctypes.c_int64(300))),
        Status.ERROR_MEMORY: lambda: loaded.pvg_array_empty(0, DType.INT8, 1, length(2**58)),
        Status.ERROR_UNAVAILABLE: lambda: loaded.pvg_array_empty(99, DType.INT8, 1, one),
    }  # fmt: skip
    for status, mistake in mistakes.items():
        assert mistake() in (None, status)
        assert loaded.pvg_last_status() == status, loaded.pvg_last_error()
        assert loaded.pvg_last_error()
    for handle in (a, flags):
        assert loaded.pvg_array_release(handle) == Status.OK
