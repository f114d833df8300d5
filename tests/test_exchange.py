"""DLPack: what is handed over shares its memory on the host, and what is taken, too."""

import ctypes
import gc

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put

import pyvecgpu as vg

HOST = (1, 0)


def shares(device):
    return device != "cuda"


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_numpy_takes_arrays(device, rng, dtype):
    x = helpers.integers(rng, (3, 4), dtype)
    for view in (
        lambda a: a,
        lambda a: a.T,
        lambda a: a[::-2, 1:],
        lambda a: a[1, 1],
        lambda a: a[:0],
    ):
        array = view(put(device, x))
        if not shares(device):  # NumPy asks where it is, and takes none from there
            with pytest.raises((BufferError, RuntimeError)):
                np.from_dlpack(array)
            continue
        if dtype.name == "bfloat16":  # which NumPy does not know
            with pytest.raises((BufferError, RuntimeError)):
                np.from_dlpack(array)
            continue
        taken = np.from_dlpack(array)
        assert taken.dtype == dtype
        np.testing.assert_array_equal(taken, view(x))
        del array
        gc.collect()
        np.testing.assert_array_equal(taken, view(x))  # its memory is there as long as it


def test_memory_is_shared(device):
    array = put(device, np.arange(6.0))
    if not shares(device):
        assert array.__dlpack_device__() == (2, array.device.index)
        copy = vg.from_dlpack(np.from_dlpack(array, device="cpu"))
        assert copy.tolist() == array.tolist()
        return
    assert array.__dlpack_device__() == HOST
    np.from_dlpack(array[1:])[0] = 7
    assert array.tolist() == [0, 7, 2, 3, 4, 5]
    array += 1
    assert np.from_dlpack(array).tolist() == [1, 8, 3, 4, 5, 6], "what was asked for is waited for"


class Other:
    """An array of another library, on the host."""

    def __init__(self, values):
        self.values, self.asked = values, []

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return HOST


def test_arrays_of_others_are_taken(device):
    values = np.arange(6.0).reshape(2, 3)
    shared = vg.from_dlpack(Other(values))
    assert shared.device.type == "cpu" and np.shares_memory(shared.raw, values)
    copied = vg.from_dlpack(Other(values), copy=True)
    assert not np.shares_memory(copied.raw, values)
    there = vg.from_dlpack(Other(values), device=device)
    assert_same(there, values)
    assert there.device == vg.Device(device)
    truth = np.array([3, 0, 1], np.uint8).view(bool)
    assert vg.from_dlpack(Other(truth)).tolist() == [True, False, True]
    assert vg.from_dlpack(Other(np.float16([1, 2]))).dtype == vg.float16


def test_own_arrays(device):
    array = put(device, np.arange(3))
    assert vg.from_dlpack(array) is array
    copy = vg.from_dlpack(array, copy=True)
    copy[0] = 9
    assert array.tolist() == [0, 1, 2] and copy.device == array.device
    assert vg.from_dlpack(array, device="cpu").device.type == "cpu"


def test_what_cannot_be(device):
    array = put(device, np.arange(3))
    with pytest.raises(BufferError, match="dl_device"):
        array.__dlpack__(dl_device=(2, 7))
    with pytest.raises(BufferError, match="stream is None"):
        array.__dlpack__(dl_device=HOST, stream=1)
    with pytest.raises(TypeError, match="__dlpack__"):
        vg.from_dlpack([1, 2])
    if device != "cpu":
        with pytest.raises(BufferError, match="copy is False"):
            vg.from_dlpack(array, device="cpu", copy=False)
        with pytest.raises(BufferError, match="copy is False"):
            vg.from_dlpack(np.arange(3), device=device, copy=False)


# Capsules of hostile producers --------------------------------------------------------------------

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    """DLManagedTensor of DLPack before version 1."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        *[(name, ctypes.c_int32) for name in ("device_type", "device_id", "ndim")],
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
    ]


class Producer:
    """Hands out one capsule, as often as it is asked: of six float32, 0 to 5, with other fields."""

    def __init__(self, shape=(2, 3), strides=None, **fields):
        self.values = np.arange(8, dtype=np.float32)
        self.deleted = 0
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = strides and (ctypes.c_int64 * len(strides))(*strides)
        facts = {"data": self.values.ctypes.data, "device_type": 1, "ndim": len(shape)}
        facts |= {"code": 2, "bits": 32, "lanes": 1, "deleter": DELETER(self.delete)}
        self.tensor = Tensor(**(facts | fields))
        self.tensor.shape = self.shape
        if self.strides:
            self.tensor.strides = self.strides
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.capsule = make(ctypes.addressof(self.tensor), b"dltensor", None)

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return HOST


def test_a_capsule_without_strides(device):
    taken = vg.from_dlpack(Producer(), device=device)
    assert_same(taken, np.arange(6, dtype=np.float32).reshape(2, 3))
    taken = vg.from_dlpack(Producer(strides=(1, 2)), device=device)
    assert_same(taken, np.arange(6, dtype=np.float32).reshape(3, 2).T)


BAD = ({"shape": (-1, 3)}, {"shape": (1,) * 65}, {"lanes": 4}, {"bits": 7}, {"code": 99},
       {"device_type": 2})  # fmt: skip


def test_capsules_that_are_no_good(device):
    for fields in BAD:
        producer = Producer(**fields)
        with pytest.raises((BufferError, RuntimeError, ValueError, TypeError)):
            vg.from_dlpack(producer, device=device)
        assert producer.deleted == 0, fields
    producer = Producer()
    kept = vg.from_dlpack(producer)
    with pytest.raises((ValueError, RuntimeError, BufferError)):
        vg.from_dlpack(producer, device=device)
    assert kept.tolist() == [[0, 1, 2], [3, 4, 5]]
    producer = Producer()
    producer.capsule = object()
    with pytest.raises((ValueError, TypeError)):
        vg.from_dlpack(producer, device=device)


def test_misaligned_memory(device):
    producer = Producer(shape=(3,), byte_offset=1)
    expected = np.frombuffer(producer.values.tobytes()[1:13], np.float32)
    assert_same(vg.from_dlpack(producer, device=device), expected)


def test_the_deleter():
    producer = Producer()
    array = vg.from_dlpack(producer)
    view = array[1:]
    del array
    gc.collect()
    assert producer.deleted == 0 and view.tolist() == [[3, 4, 5]]
    del view
    gc.collect()
    assert producer.deleted == 1


def test_a_producer_that_raises(device):
    producer = Producer()
    producer.__class__ = type("Raises", (Producer,), {"__dlpack__": lambda self, **_: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        vg.from_dlpack(producer, device=device)
