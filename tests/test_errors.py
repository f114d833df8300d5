"""The exceptions: their tree, their texts, pickling; and that a refusal leaves nothing behind."""

import copy
import pickle

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg


def test_tree():
    assert issubclass(vg.PyVecGPUError, Exception)
    for error in (vg.CUDAError, vg.OutOfMemoryError, vg.DeviceUnavailableError):
        assert issubclass(error, vg.PyVecGPUError)
        assert issubclass(error, RuntimeError)
    assert issubclass(vg.DeviceLostError, vg.CUDAError)
    assert issubclass(vg.LaunchError, vg.CUDAError)
    assert issubclass(vg.OutOfMemoryError, MemoryError)
    assert issubclass(vg.ImplicitTransferError, (vg.PyVecGPUError, TypeError))
    assert all(issubclass(vg.StateError, e) for e in (vg.PyVecGPUError, ValueError, RuntimeError))


ERRORS = [
    vg.PyVecGPUError("what happened"),
    vg.CUDAError("what happened", code=1, name="cudaErrorInvalidValue", operation="matmul"),
    vg.DeviceLostError("what happened", code=700, name="cudaErrorIllegalAddress", operation="add"),
    vg.LaunchError(
        "what happened", code=701, name="cudaErrorLaunchOutOfResources", operation="sum"
    ),
    vg.OutOfMemoryError("what happened", requested=10, free=5, reserved=3, device="cuda:1"),
    vg.DeviceUnavailableError("what happened"),
    vg.ImplicitTransferError("what happened"),
    vg.StateError("what happened"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_pickling(error):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is type(error)
        assert str(again) == str(error) == "what happened"
        assert again.args == error.args
        assert vars(again) == vars(error)
    assert vars(copy.copy(error)) == vars(error)


def test_raised_errors_can_be_pickled(device):
    with pytest.raises(vg.OutOfMemoryError) as caught:
        vg.empty(2**55, dtype=np.float64, device=device)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.requested == caught.value.requested >= 2**58
    assert again.device == ("cpu" if device == "cpu" else f"{device}:0")


@pytest.mark.devices("sim", "cuda")
def test_texts_name_operation_shapes_and_dtypes(device):
    a = put(device, np.zeros((2, 3), np.float32))
    b = put(device, np.zeros((4,), np.float32))
    flags = put(device, np.zeros(5, bool))
    integers = put(device, np.zeros((2, 3), np.int32))
    weight = put(device, np.zeros((5, 2), np.float32))
    cases = [
        (ValueError, lambda: a + b, "add", "(2, 3)", "(4,)"),
        (ValueError, lambda: a @ b, "matmul", "(2, 3)", "(4,)"),
        (ValueError, lambda: vg.dense(a, weight), "dense", "(2, 3)", "(5, 2)"),
        (ValueError, lambda: vg.exp(a, out=b), "exp", "(2, 3)", "(4,)"),
        (ValueError, lambda: vg.sum(a, out=b), "sum", "()", "(4,)"),
        (TypeError, lambda: -flags, "negative", "(5,)", "bool"),
        (TypeError, lambda: flags - flags, "subtract", "(5,)", "bool"),
        (TypeError, lambda: vg.relu(flags), "relu", "bool"),
        (TypeError, lambda: vg.exp(a, out=integers), "exp", "float32", "int32"),
        (TypeError, lambda: vg.where(integers, a, a), "where", "(2, 3)", "int32"),
        (TypeError, lambda: vg.dense(integers, integers), "dense", "int32"),
        (OverflowError, lambda: integers + 2**40, "add", "int32", str(2**40)),
        (ValueError, lambda: vg.max(put(device, np.zeros(0, np.float32))), "max"),
        (ValueError, lambda: a.reshape(7), "(7,)"),
        (ValueError, lambda: vg.broadcast_to(a, (5, 2)), "(2, 3)", "(5, 2)"),
    ]
    for exception, call, *words in cases:
        with helpers.refused(device, exception, a, b, flags, integers) as caught:
            call()
        for word in words:
            assert word in str(caught.value), f"{word!r} is not in {str(caught.value)!r}"


def test_errors_in_a_row_do_not_disturb_each_other(device):
    a, b = put(device, np.zeros(3, np.float32)), put(device, np.zeros(4, np.float32))
    for _ in range(50):
        with helpers.refused(device, ValueError, a, b):
            a + b
        with helpers.refused(device, TypeError, a):
            vg.add(a, a, out=put(device, np.zeros(3, np.int32)))
