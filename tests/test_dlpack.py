"""DLPack's capsules, field by field, and what the other library is told; on every device.

test_exchange.py is about values that go there and back, test_sharing.py about memory of a GPU.
"""

import ctypes
import gc
import math
import threading

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put

import pyvecgpu as vg
from pyvecgpu.native import capsules

KINDS = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}
READ_ONLY, IS_COPIED = 1, 2


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        *[(name, ctypes.c_int32) for name in ("device_type", "device_id", "ndim")],
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Unversioned(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def read(capsule):
    """The structure in a capsule."""
    address, versioned = capsules.content(capsule)
    return (Versioned if versioned else Unversioned).from_address(address)


def facts(managed):
    t = managed.tensor
    shape = t.shape[: t.ndim] if t.ndim else []
    dense = [math.prod(shape[n + 1 :]) for n in range(t.ndim)]  # NumPy says no more until 2.3
    strides = t.strides[: t.ndim] if t.strides else dense
    return (t.device_type, t.device_id), (t.code, t.bits, t.lanes), shape, strides


VIEWS = {
    "all": lambda a: a,
    "transposed": lambda a: a.T,
    "part": lambda a: a[1:, ::2],
    "0-d": lambda a: a[1, 1],
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 9)])
def test_fields(device, rng, dtype, view, version):
    x = VIEWS[view](helpers.integers(rng, (3, 4), dtype))
    array = VIEWS[view](put(device, helpers.integers(rng, (3, 4), dtype)))
    capsule = array.__dlpack__(max_version=version)
    managed = read(capsule)
    place, kind, shape, strides = facts(managed)
    assert place == array.__dlpack_device__()
    code = 4 if dtype.name == "bfloat16" else KINDS[dtype.kind]
    assert kind == (code, 8 * dtype.itemsize, 1)
    assert shape == list(x.shape)
    moving = [n for n, length in enumerate(x.shape) if length > 1 and x.size]
    assert [strides[n] for n in moving] == [x.strides[n] // dtype.itemsize for n in moving]
    versioned = bool(version and version[0])
    assert isinstance(managed, Versioned if versioned else Unversioned)
    if versioned:
        assert managed.major == 1 and managed.flags == 0
    if x.size and device != "cuda":
        address = managed.tensor.data + managed.tensor.byte_offset
        assert address == array.backend.pointer(array.raw)


def test_copies(device):
    array = put(device, np.arange(6.0).reshape(2, 3))
    copied = read(capsule := array.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.flags == IS_COPIED and copied.tensor.data != array.backend.pointer(array.raw)
    kept = read(other := array.__dlpack__(max_version=(1, 0), copy=False))
    assert kept.flags == 0 and kept.tensor.data == array.backend.pointer(array.raw)
    on_host = array.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
    assert facts(read(on_host))[0] == (1, 0)
    assert read(on_host).flags == (IS_COPIED if device == "cuda" else 0)
    if device == "cuda":
        with pytest.raises(BufferError, match="copy is False"):
            array.__dlpack__(dl_device=(1, 0), copy=False)
    del capsule, other


def test_read_only_memory(device):
    """A broadcast view is read-only, which only DLPack 1 can say, and stays so."""
    view = vg.broadcast_to(put(device, np.arange(3.0)), (2, 3))
    capsule = view.__dlpack__(max_version=(1, 0))
    assert read(capsule).flags == READ_ONLY
    with pytest.raises(BufferError):
        view.__dlpack__()
    if device == "cuda":
        return
    taken = np.from_dlpack(view)
    assert not taken.flags.writeable and taken.tolist() == view.tolist()
    array = vg.from_dlpack(taken)
    with pytest.raises(ValueError):
        array[0] = 1.0
    del capsule


def test_who_asks_for_what_cannot_be(device):
    array = put(device, np.arange(3.0))
    for stream in (1, -1, 2) if device != "cuda" else ():
        with pytest.raises(BufferError, match="no streams"):
            array.__dlpack__(stream=stream)
    for place in ((2, 7), (10, 0), (13, 0)):
        with pytest.raises(BufferError, match="dl_device"):
            array.__dlpack__(dl_device=place)
    tracked = put(device, np.arange(3.0)).requires_grad_()
    with pytest.raises(BufferError, match="detach"):
        tracked.__dlpack__()
    capsule = tracked.detach().__dlpack__()
    assert read(capsule).tensor.ndim == 1


def test_capsules_that_nobody_takes(device):
    """Their memory is free again: nothing_left of conftest.py sees the rest."""
    gc.collect()
    before = vg.memory_info(device).used if device != "cpu" else 0
    made = [
        put(device, np.zeros(1000)).__dlpack__(max_version=version)
        for version in (None, (1, 0), None)
    ]
    if device != "cpu":
        assert vg.memory_info(device).used >= before + 3 * 8000
    made.clear()
    if device != "cpu":
        assert vg.memory_info(device).used == before


def test_the_last_one_lets_go_in_another_thread(device):
    if device == "cuda":
        array = vg.from_dlpack(Other(put(device, np.arange(5.0))))
    else:
        array = np.from_dlpack(put(device, np.arange(5.0)))
    box = [array]
    del array
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    helpers.assert_works(device)


class Other:
    """Another library's array: ours, behind DLPack alone."""

    def __init__(self, array, knows_versions=True):
        self.array, self.asked, self.knows_versions = array, [], knows_versions

    def __dlpack__(self, **options):
        self.asked.append(options)
        if not self.knows_versions and options.keys() - {"stream"}:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("knows_versions", [True, False])
def test_there_and_back(device, rng, dtype, knows_versions):
    x = helpers.integers(rng, (3, 4), dtype)
    array = put(device, x)
    other = Other(array.T, knows_versions)
    back = vg.from_dlpack(other)
    assert_same(back, x.T)
    assert other.asked[0]["max_version"] >= (1, 0)
    assert len(other.asked) == (1 if knows_versions else 2)
    if knows_versions or device == "cuda":
        back[0, 0] = 1
        assert array[0, 0].item() == 1, "the memory is shared"
    else:  # which cannot say whether it may be written to
        array[0, 0] = 1
        vg.synchronize(device)
        assert back[0, 0].item() == 1, "the memory is shared"
    del array, other
    gc.collect()
    assert_same(back[1:], x.T[1:])
    copy = vg.from_dlpack(Other(back), copy=True)
    copy[1, 1] = 0 if x.T[1, 1] else 1
    assert_same(back[1:], x.T[1:])


def test_a_type_error_of_the_producer_is_its_own(device):
    class Broken(Other):
        def __dlpack__(self, **options):
            raise TypeError("of the producer")

    with pytest.raises((TypeError, BufferError), match="of the producer"):
        vg.from_dlpack(Broken(put(device, [1.0])))


@pytest.mark.devices("sim")
def test_python_goes_while_others_have_arrays(device):
    """The process ends as it should: exit status 0, and nothing on stderr."""
    code = f"""
import numpy as np, pyvecgpu as vg
x = vg.asarray(np.arange(6.0), device={device!r})
kept = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), x[1:].__dlpack__()]
host = np.from_dlpack(vg.asarray(np.arange(6.0), device="cpu"))
kept.append(np.from_dlpack(x))
class Cycle: pass
cycle = Cycle(); cycle.itself = cycle; cycle.kept = list(kept)
print(1)
"""
    assert helpers.child_result(code) == 1
