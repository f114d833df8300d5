"""Memory of a GPU shared with other libraries: DLPack, the CUDA array interface, streams.

These run on a GPU, with torch and CuPy where they are installed, in one process and imported in
either order:

    python -m pytest tests/test_sharing.py --device cuda --require-gpu

and without one on the simulated card in the GPU's place, where pyvecgpu stands for both sides.
"""

import gc
import json
import os
import subprocess
import sys

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, assert_same, put
from test_dlpack import Other

import pyvecgpu as vg
from pyvecgpu import streams

gpu = pytest.mark.devices("cuda")
INTERFACE = [dtype for dtype in ALL_DTYPES if dtype.name != "bfloat16"]


@pytest.fixture(autouse=True)
def no_streams_left(request):
    yield
    if vg.is_available("cuda"):
        streams.release(vg.Device("cuda"))


class Shown:
    """Another library's array: ours, behind the CUDA array interface alone, some of it changed."""

    def __init__(self, array, **changes):
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__ | self.changes


# The CUDA array interface -------------------------------------------------------------------------


@gpu
@pytest.mark.parametrize("dtype", INTERFACE)
def test_what_the_interface_says(device, rng, dtype):
    x = helpers.integers(rng, (3, 4), dtype)
    array = put(device, x)
    said = array.__cuda_array_interface__
    assert said["version"] == 3 and said["typestr"] == dtype.str and said["shape"] == (3, 4)
    assert said["strides"] is None and said["stream"] == 1
    assert said["data"] == (array.backend.pointer(array.raw), False)
    part = array[::-1, 1::2]
    assert part.__cuda_array_interface__["strides"] == x[::-1, 1::2].strides
    assert array[:0].__cuda_array_interface__["data"][0] == 0
    assert vg.broadcast_to(array, (2, 3, 4)).__cuda_array_interface__["data"][1] is True


@gpu
@pytest.mark.parametrize("dtype", INTERFACE)
def test_the_interface_there_and_back(device, rng, dtype):
    x = helpers.integers(rng, (3, 4), dtype)
    array = put(device, x)
    for view in (lambda a: a, lambda a: a.T, lambda a: a[::-1, 1::2], lambda a: a[:0]):
        back = vg.asarray(Shown(view(array)))
        assert back.device is array.device
        assert_same(back, view(x))
    back = vg.asarray(Shown(array.T))
    back[0, 0] = 1
    assert array[0, 0].item() == 1, "the memory is shared"
    copy = vg.asarray(Shown(array), copy=True)
    copy[...] = 0
    assert array[0, 0].item() == 1
    other = vg.asarray(Shown(array), dtype="complex128", device="cpu")
    assert other.device.type == "cpu" and other.dtype == vg.complex128
    with pytest.raises(ValueError):
        vg.asarray(Shown(vg.broadcast_to(array, (2, 3, 4))))[0] = 1


@gpu
def test_the_owner_lives_as_long(device):
    owner = Shown(put(device, np.arange(6.0)))
    before = sys.getrefcount(owner)
    array = vg.asarray(owner)
    view = array[1:]
    assert sys.getrefcount(owner) == before + 1
    del array
    gc.collect()
    assert sys.getrefcount(owner) == before + 1 and view.tolist() == [1, 2, 3, 4, 5]
    del view
    gc.collect()
    assert sys.getrefcount(owner) == before


@gpu
def test_interfaces_that_are_no_good(device):
    array, host = put(device, np.arange(6.0)), np.arange(6.0)
    before = sys.getrefcount(array)
    for changes, error in (
        ({"mask": array}, TypeError),
        ({"typestr": "|S8"}, TypeError),
        ({"typestr": "<m8[s]"}, TypeError),
        ({"stream": 0}, ValueError),
        ({"strides": (3,)}, ValueError),
        ({"strides": (8, 8)}, ValueError),
        ({"shape": (-1,)}, ValueError),
        ({"data": (array.backend.pointer(array.raw) + 3, False)}, ValueError),
        ({"data": (host.ctypes.data, False)}, ValueError),
        ({"data": (0, False)}, ValueError),
    ):
        owner = Shown(array, **changes)
        with helpers.refused(device, error, array):
            vg.asarray(owner)
        assert sys.getrefcount(owner) == 2, changes
        del owner
    assert sys.getrefcount(array) == before


@pytest.mark.devices("cpu", "sim")
def test_only_gpus_have_the_interface(device):
    array = put(device, [1.0])
    assert not hasattr(array, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match=r"\.to\('cuda'\)"):
        _ = array.__cuda_array_interface__


@gpu
def test_what_the_interface_cannot_say(device):
    assert not hasattr(put(device, [1.0]).astype("bfloat16"), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="detach"):
        _ = put(device, [1.0]).requires_grad_().__cuda_array_interface__


# DLPack between streams ---------------------------------------------------------------------------


@gpu
def test_the_stream_of_dlpack(device):
    array = put(device, np.arange(6.0))
    with vg.stream(device=device) as mine:
        taken = vg.from_dlpack(other := Other(array))
    assert other.asked[0]["stream"] == mine.handle
    assert_same(taken, np.arange(6.0))
    for stream in (None, -1, 1, 2, mine.handle):
        array.__dlpack__(stream=stream)
    for stream, error in ((0, ValueError), (-2, ValueError), ("1", TypeError), (True, TypeError)):
        with helpers.refused(device, error, array):
            array.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="no streams"):
        array.__dlpack__(stream=1, dl_device=(1, 0))


@gpu
def test_from_dlpack_of_a_gpu(device):
    array = put(device, np.arange(6.0))
    assert vg.from_dlpack(Other(array)).device is array.device
    on_host = vg.from_dlpack(Other(array), device="cpu")
    assert on_host.device.type == "cpu" and on_host.tolist() == array.tolist()
    with pytest.raises(BufferError, match="copy is False"):
        vg.from_dlpack(Other(array), device="cpu", copy=False)
    assert np.from_dlpack(array, device="cpu").tolist() == array.tolist()
    capsule = array.__dlpack__(max_version=(1, 0))

    class Twice(Other):
        def __dlpack__(self, **options):
            return capsule

    first = vg.from_dlpack(Twice(array))
    with pytest.raises(ValueError, match="taken before"):
        vg.from_dlpack(Twice(array))
    assert first.tolist() == array.tolist()


EXIT = """
import numpy as np, pyvecgpu as vg
{imports}
x = vg.asarray(np.arange(6.0), device="cuda")
class Shown:
    __cuda_array_interface__ = x.__cuda_array_interface__
kept = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), vg.asarray(Shown()), vg.from_dlpack(x)]
{takes}
print(1)
"""


def lines(code, **options):
    """What a child process prints; it ends with 0 and says nothing but that it has a stand-in."""
    done = helpers.run_child(code, "-W", "ignore", **options)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


@gpu
def test_python_goes_while_arrays_are_shared(device):
    assert lines(EXIT.format(imports="", takes=""), **stand_in()) == ["1"]


def stand_in():
    """The environment of a child whose "cuda" is this process's."""
    path = os.environ.get("PYVECGPU_LIBRARY")
    return {"PYVECGPU_LIBRARY": path} if path else {}


# torch and CuPy -----------------------------------------------------------------------------------

TRY = """
import json, numpy as np
{imports}
x = vg.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device="cuda")
results = {{}}
{body}
print(json.dumps(results))
"""
TORCH = """
t = torch.from_dlpack(x)
t += 1
torch.cuda.synchronize()
results["shared"] = x.tolist()
results["view"] = torch.from_dlpack(x.T)[1].tolist()
results["interface"] = torch.as_tensor(x, device="cuda").tolist()
results["back"] = vg.from_dlpack(t).tolist()
results["asarray"] = (vg.asarray(t) + 1).tolist()
results["pointer"] = vg.from_dlpack(t).__cuda_array_interface__["data"][0] == t.data_ptr()
results["bfloat16"] = vg.from_dlpack(t.bfloat16()).astype("float32").tolist()
side = torch.cuda.Stream()
with torch.cuda.stream(side), vg.stream(side):
    y = vg.from_dlpack(torch.ones(1 << 22, device="cuda") * 3)
    z = torch.from_dlpack(y * 2) + 1
side.synchronize()
results["stream"] = [z.min().item(), z.max().item()]
many = [torch.full((1 << 20,), float(i), device="cuda") for i in range(20)]
results["order"] = [float(vg.mean(vg.from_dlpack(m) + 1).item()) for m in many]
kept = [torch.from_dlpack(x), vg.from_dlpack(t)]
"""
CUPY = """
t = cupy.from_dlpack(x)
t += 1
cupy.cuda.Stream.null.synchronize()
results["shared"] = x.tolist()
results["view"] = cupy.from_dlpack(x.T)[1].tolist()
results["interface"] = cupy.asarray(x).tolist()
results["back"] = vg.from_dlpack(t).tolist()
results["asarray"] = (vg.asarray(t) + 1).tolist()
results["pointer"] = vg.from_dlpack(t).__cuda_array_interface__["data"][0] == t.data.ptr
side = cupy.cuda.Stream(non_blocking=True)
with side, vg.stream(side):
    y = vg.from_dlpack(cupy.ones(1 << 22, dtype="float32") * 3)
    z = cupy.from_dlpack(y * 2) + 1
side.synchronize()
results["stream"] = [z.min().item(), z.max().item()]
many = [cupy.full(1 << 20, float(i), dtype="float32") for i in range(20)]
results["order"] = [float(vg.mean(vg.from_dlpack(m) + 1).item()) for m in many]
kept = [cupy.from_dlpack(x), vg.from_dlpack(t)]
"""


def check_peer(body, *names):
    expected = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
    for order in (names, names[::-1]):
        imports = "\n".join(
            "import pyvecgpu as vg; vg.asarray([1.0], device='cuda')"
            if name == "pyvecgpu"
            else f"import {name}; {start}"
            for name, start in ((n, STARTS.get(n)) for n in order)
        )
        found = json.loads(lines_of(TRY.format(imports=imports, body=body)))
        for name in ("shared", "interface", "back", "bfloat16"):
            assert found.get(name, expected.tolist()) == expected.tolist(), (order, name)
        assert found["view"] == expected.T[1].tolist()
        assert found["asarray"] == (expected + 1).tolist() and found["pointer"] is True
        assert found["stream"] == [7.0, 7.0] and found["order"] == [i + 1.0 for i in range(20)]


STARTS = {"torch": "torch.ones(1, device='cuda')", "cupy": "cupy.ones(1)"}


def lines_of(code):
    done = helpers.run_child(code, "-W", "ignore", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


real = pytest.mark.skipif("PYVECGPU_LIBRARY" in os.environ, reason="a stand-in for the GPU")


@gpu
@real
@pytest.mark.needs("torch")
def test_torch(device):
    check_peer(TORCH, "torch", "pyvecgpu")


@gpu
@real
@pytest.mark.needs("cupy")
def test_cupy(device):
    check_peer(CUPY, "cupy", "pyvecgpu")


@gpu
@real
@pytest.mark.needs("torch")
@pytest.mark.needs("cupy")
def test_all_three(device):
    check_peer(TORCH, "torch", "cupy", "pyvecgpu")
    check_peer(CUPY, "torch", "cupy", "pyvecgpu")


# A simulated card in the GPU's place --------------------------------------------------------------


@pytest.mark.skipif("PYVECGPU_LIBRARY" in os.environ, reason="runs these very tests")
@pytest.mark.devices("sim")
def test_on_a_simulated_card(device):
    """All of the above that needs no other library, and of test_dlpack.py and test_exchange.py."""
    path = str(helpers.ROOT / "pyvecgpu" / "libpyvecgpu_sim.so")
    folder = helpers.ROOT / "tests"
    files = [str(folder / f"test_{name}.py") for name in ("sharing", "dlpack", "exchange")]
    options = ("-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--device=cuda", "--require-gpu", *files],
        env=os.environ | {"PYVECGPU_LIBRARY": path},
        capture_output=True,
        text=True,
        timeout=500,
        cwd=helpers.ROOT,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and " failed" not in done.stdout
