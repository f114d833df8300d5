"""vg.Stream and `with vg.stream()`: streams of one's own and of other libraries."""

import ctypes
import sys
import threading

import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu import streams
from pyvecgpu.native import library

cards = pytest.mark.devices("sim", "cuda")


@pytest.fixture(autouse=True)
def no_streams_left(request):
    yield
    for name in ("sim", "cuda"):
        if any(one.device_type == name for one in library.loaded()) and vg.is_available(name):
            streams.release(vg.Device(name))


def current(device):
    functions = vg.Device(device).backend.functions
    return functions.pvg_stream_handle(functions.pvg_stream_current(0))


@cards
def test_the_block_has_a_stream_of_its_own(device):
    before = current(device)
    x = put(device, np.arange(6.0))
    with vg.stream(device=device) as first:
        assert current(device) == first.handle != before
        y = x + 1
        with vg.stream(device=device) as second:
            assert current(device) == second.handle != first.handle
            z = y * 2
        assert current(device) == first.handle
        with vg.stream(second):
            assert current(device) == second.handle
    assert current(device) == before
    assert_same(z, (np.arange(6.0) + 1) * 2)
    waits = vg.counters(device)["waits"]
    first.synchronize()
    assert vg.counters(device)["waits"] == waits + 1
    assert repr(first) == f"<Stream of {vg.Device(device)} at {first.handle:#x}>"


@cards
def test_the_stream_before_is_back_after_an_error(device):
    before = current(device)
    with pytest.raises(ZeroDivisionError), vg.stream(device=device):
        _ = 1 / 0
    assert current(device) == before


@cards
def test_streams_are_given_out_in_turn(device):
    made = [vg.Stream(device=device) for _ in range(2 * streams.POOL)]
    assert len({s.handle for s in made}) == streams.POOL
    assert made[0] == made[streams.POOL] and made[0] != made[1]
    assert len(set(made)) == streams.POOL
    assert vg.Stream(made[0]) == made[0] and (made[0] == 1) is False


@pytest.mark.devices("sim")
def test_work_on_two_streams_waits_for_nobody(device, simulator):
    """Neither block waits for its work at its end; reading a value does."""
    x = put(device, np.zeros(64))
    vg.synchronize(device)
    simulator.pvg_sim_set(b"deferred", 1)
    with vg.stream(device=device):
        a = x + 1
    with vg.stream(device=device):
        b = x + 2
    assert simulator.pvg_sim_count(b"pending") >= 2
    assert (a + b).tolist() == 64 * [3.0]


@cards
def test_threads_have_streams_of_their_own(device):
    before, seen = current(device), []
    with vg.stream(device=device):
        thread = threading.Thread(target=lambda: seen.append(current(device)))
        thread.start()
        thread.join()
    assert seen == [before]


class Torch:
    """A stream as torch's are."""

    def __init__(self, handle, device):
        self.cuda_stream, self.device = handle, device


class CuPy:
    def __init__(self, handle, device_id):
        self.ptr, self.device_id = handle, device_id


class Numba:
    def __init__(self, handle):
        self.handle = ctypes.c_void_p(handle)


class Core:
    """As cuda.core's and everybody's who knows the protocol."""

    def __init__(self, handle):
        self.address = handle

    def __cuda_stream__(self):
        return 0, self.address


@cards
@pytest.mark.parametrize("kind", ["torch", "cupy", "numba", "core", "address", "ours"])
def test_streams_of_others(device, kind):
    theirs = vg.Stream(device=device)
    handle = theirs.handle
    stream = {
        "torch": Torch(handle, None),
        "cupy": CuPy(handle, -1),
        "numba": Numba(handle),
        "core": Core(handle),
        "address": handle,
        "ours": theirs,
    }[kind]
    x = put(device, np.arange(6.0))
    with vg.stream(stream, device=device) as s:
        assert s.handle == handle == current(device) and s.device is vg.Device(device)
        y = x + 1
    assert_same(y, np.arange(6.0) + 1)
    assert s.__cuda_stream__() == (0, handle)
    assert vg.Stream(stream, device=device) == s


@cards
def test_default_streams_of_others(device):
    """0 of torch and CuPy is CUDA's default stream, 1 in other words."""
    x = put(device, np.arange(6.0))
    for stream in (Torch(0, None), CuPy(0, -1), Numba(0), Numba(None), 0, 1):
        with vg.stream(stream, device=device) as s:
            assert s.handle == 1
            y = x * 2
        assert_same(y, 2 * np.arange(6.0))


@cards
def test_their_streams_are_kept_alive(device):
    """Up to 32 of them, and as long as there is a Stream."""
    handle = vg.Stream(device=device).handle
    source = Core(handle)
    before = sys.getrefcount(source)
    with vg.stream(source, device=device) as s:
        pass
    assert sys.getrefcount(source) > before
    del s
    assert streams.release in sys.modules["pyvecgpu.device"].forgetting, "by vg.empty_cache"
    streams.release(vg.Device(device))
    assert sys.getrefcount(source) == before


@pytest.mark.parametrize("many", [False, True], ids=["released", "too many"])
@cards
def test_their_streams_end_last(device, many):
    """What stands for a stream waits for it when it goes: so the stream is still there then."""
    loaded, left = library.load(device), []

    class Theirs(Core):
        def __init__(self):
            self.raw = loaded.pvg_stream_create(0)
            super().__init__(loaded.pvg_stream_handle(self.raw))

        def __del__(self):
            left.append(loaded.pvg_stream_release(self.stand_in))
            loaded.pvg_stream_release(self.raw)

    theirs = Theirs()
    with vg.stream(theirs, device=device) as s:
        x = put(device, np.arange(6.0)) + 1
        theirs.stand_in = s._owner.value
    del s, theirs
    assert not left
    others = [loaded.pvg_stream_create(0) for _ in range(streams.KEPT if many else 0)]
    for one in others:
        vg.Stream(loaded.pvg_stream_handle(one), device=device)
    if not many:
        streams.release(vg.Device(device))
    assert len(left) == 1, "kept for good, or gone too early"
    assert left[0] != 0, "the stream went before what stands for it"
    assert_same(x, np.arange(6.0) + 1)
    streams.release(vg.Device(device))
    for one in others:
        assert loaded.pvg_stream_release(one) == 0


@pytest.mark.devices("cpu")
def test_the_cpu_has_none(device):
    x = put(device, np.arange(3.0))
    with vg.stream(device=device) as s:
        assert_same(x + 1, np.arange(3.0) + 1)
    assert s.handle is None and repr(s) == "<Stream of cpu>"
    s.synchronize()
    with pytest.raises(TypeError, match="no CUDA streams"):
        s.__cuda_stream__()


def test_what_is_no_stream(device):
    x = put(device, [1.0])
    for wrong in ("cuda:0", vg.Device(device), x, 1.5, object(), [1], True):
        with pytest.raises(TypeError), vg.stream(wrong):
            pass


@cards
def test_no_other_stream_in_a_recording(device):
    loaded = library.load(device)
    chosen = vg.Stream(device=device)
    assert loaded.pvg_graph_begin(0) == 0
    try:
        with pytest.raises(ValueError, match="recording a graph"), vg.stream(chosen):
            pass
    finally:
        assert loaded.pvg_graph_release(loaded.pvg_graph_end(0)) == 0
