"""Order with streams of other libraries, on the simulated card in its deferred mode: work waits
there until a wait needs it, so that what a stream was not told to wait for is seen to be missing.

Streams of the library's own stand for those of others: their handles are all that is used.
"""

import ctypes
import gc

import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.array import wrap
from pyvecgpu.native.abi import FUNCTIONS

pytestmark = pytest.mark.devices("sim")
N = 64
LEGACY = 1


class Theirs:
    """A stream that the library is told nothing about but its address."""

    def __init__(self, loaded):
        self.loaded = loaded
        self.stream = loaded.pvg_stream_create(0)
        self.handle = loaded.pvg_stream_handle(self.stream)

    def __enter__(self):
        self.loaded.pvg_stream_set_current(self.stream, 0)

    def __exit__(self, *_):
        self.loaded.pvg_stream_set_current(None, 0)

    def wait(self):
        assert self.loaded.pvg_stream_synchronize(self.stream) == 0


@pytest.fixture
def loaded(simulator):
    vg.synchronize("sim")
    simulator.pvg_sim_set(b"deferred", 1)
    yield simulator
    vg.synchronize("sim")
    simulator.pvg_sim_set(b"deferred", 0)


@pytest.fixture
def theirs(loaded):
    stream = Theirs(loaded)
    yield stream
    assert loaded.pvg_stream_release(stream.stream) == 0


def memory(array):
    """The memory of a simulated card's array, as it is at the moment."""
    address = array.backend.pointer(array.raw)
    return np.ctypeslib.as_array((ctypes.c_float * N).from_address(address))


def alias(array):
    """Another library's array of the same memory, about which the library knows nothing."""
    nothing = ctypes.cast(None, FUNCTIONS["pvg_array_wrap"][1][6])
    data = array.backend.functions.pvg_array_wrap(
        array.backend.pointer(array.raw), 0, 11, 1, (ctypes.c_int64 * 1)(N), None, nothing, None
    )
    return wrap(array.backend, data)


def pending(device):
    """An array of ones whose last addition has not been done yet."""
    array = put(device, np.zeros(N, np.float32))
    vg.synchronize(device)
    array += 1.0
    assert memory(array)[0] == 0
    return array


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("lent", [True, False])
def test_their_stream_waits_for_what_is_lent(device, loaded, theirs, lent, readonly):
    """For its writer, also where they may but read."""
    array = pending(device)
    view = vg.broadcast_to(array, (2, N)) if readonly else array
    if lent:
        assert loaded.pvg_array_lend(view.raw, theirs.handle) == 0
    theirs.wait()
    assert memory(array).tolist() == N * [1.0 if lent else 0.0]


def test_their_stream_waits_for_readers_if_it_may_write(device, loaded, theirs):
    """A read of ours comes before their write, not so of a read-only view."""
    for readonly, expected in ((False, 0.0), (True, 5.0)):
        array = put(device, np.zeros(N, np.float32))
        vg.synchronize(device)
        other = Theirs(loaded)
        with other:
            result = array + 0.0  # on a stream of its own
        lent = vg.broadcast_to(array, (N,)) if readonly else array
        assert loaded.pvg_array_lend(lent.raw, theirs.handle) == 0
        with theirs:
            alias(array)[...] = 5.0
        theirs.wait()
        other.wait()
        assert result.numpy().tolist() == N * [expected]
        assert loaded.pvg_stream_release(other.stream) == 0


@pytest.mark.parametrize("follows", [True, False])
def test_work_follows_their_stream(device, loaded, theirs, follows):
    array = put(device, np.zeros(N, np.float32))
    vg.synchronize(device)
    seen_by_them = alias(array)
    with theirs:
        seen_by_them += 3.0
    if follows:
        assert loaded.pvg_stream_follow(theirs.handle, 0) == 0
    result = array + 1.0
    loaded.pvg_stream_synchronize(loaded.pvg_stream_current(0))
    assert memory(result).tolist() == N * [4.0 if follows else 1.0]
    theirs.wait()


@pytest.mark.parametrize("known", [True, False])
def test_default_streams_are_remembered(device, loaded, known):
    """What CUDA's default stream does with lent memory comes before a later write here."""
    array = put(device, np.zeros(N, np.float32))
    vg.synchronize(device)
    if known:
        assert loaded.pvg_array_lend(array.raw, LEGACY) == 0
    default = loaded.pvg_stream_wrap(LEGACY, 0)
    seen_by_them = alias(array)
    loaded.pvg_stream_set_current(default, 0)
    result = seen_by_them + 0.0
    loaded.pvg_stream_set_current(None, 0)
    array += 7.0
    loaded.pvg_stream_synchronize(loaded.pvg_stream_current(0))
    assert loaded.pvg_stream_release(default) == 0
    assert result.numpy().tolist() == N * [0.0 if known else 7.0]


@pytest.mark.parametrize("versioned", [True, False])
def test_tensors_that_are_taken(device, loaded, versioned):
    """Memory goes out and comes in as a tensor; work on other streams follows the current one."""
    array = pending(device)
    functions = array.backend.functions
    tensor = functions.pvg_dlpack_export(array.raw, versioned, 1, 0)
    taken = wrap(array.backend, functions.pvg_dlpack_import(tensor, versioned, 0))
    del array
    gc.collect()
    vg.synchronize(device)
    taken += 1.0
    other = Theirs(loaded)
    with other:
        result = taken * 2.0
    other.wait()
    assert memory(result).tolist() == N * [4.0]
    assert loaded.pvg_stream_release(other.stream) == 0


def test_what_is_no_good(device, loaded, theirs):
    array = put(device, np.zeros(N, np.float32))
    functions = array.backend.functions
    assert not functions.pvg_dlpack_import(None, 1, 0)
    tensor = functions.pvg_dlpack_export(array.raw, 1, 0, 0)
    major = ctypes.c_uint32.from_address(tensor)
    major.value = 2
    assert not functions.pvg_dlpack_import(tensor, 1, 0)
    assert b"version 2" in loaded.pvg_last_error()
    major.value = 1
    number = ctypes.c_int32.from_address(tensor + 32 + 12)
    number.value = 5  # a GPU that the memory is not on
    assert not functions.pvg_dlpack_import(tensor, 1, 0)
    assert b"not on GPU 0" in loaded.pvg_last_error()
    number.value = 0
    lanes = ctypes.c_uint16.from_address(tensor + 32 + 22)
    lanes.value = 2
    assert not functions.pvg_dlpack_import(tensor, 1, 0)
    assert b"2 lanes" in loaded.pvg_last_error()
    lanes.value = 1
    wrap(array.backend, functions.pvg_dlpack_import(tensor, 1, 0))  # which deletes it
    view = vg.broadcast_to(array, (2, N))
    assert functions.pvg_dlpack_export(view.raw, 0, 0, 0) is None
    assert b"read-only" in loaded.pvg_last_error()
    place = ctypes.c_int()
    assert loaded.pvg_memory_device(array.backend.pointer(array.raw), place) == 0
    assert place.value == 0
    host = np.zeros(4)
    assert loaded.pvg_memory_device(host.ctypes.data, place) == 0 and place.value == -1
    assert loaded.pvg_array_lend(None, theirs.handle) != 0
    assert loaded.pvg_stream_follow(theirs.handle, 99) != 0


def test_nothing_is_lent_in_a_recording(device, loaded, theirs):
    """What is recorded has no values yet, and no other stream is part of it."""
    array = put(device, np.zeros(N, np.float32))
    vg.synchronize(device)
    assert loaded.pvg_graph_begin(0) == 0
    functions = array.backend.functions
    assert loaded.pvg_array_lend(array.raw, theirs.handle) != 0
    assert b"recording a graph" in loaded.pvg_last_error()
    assert functions.pvg_dlpack_export(array.raw, 1, 0, 0) is None
    assert loaded.pvg_stream_follow(theirs.handle, 0) != 0
    graph = loaded.pvg_graph_end(0)
    assert graph and loaded.pvg_graph_release(graph) == 0
