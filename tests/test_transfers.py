"""Data on their way: each operand goes up once, each result comes down once, where it belongs.

Large NumPy operands are computed in parts; here the parts are small, so that there are many.
"""

import _thread
import ctypes
import mmap
import threading
from pathlib import Path

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.functions import pipeline

MIB = 1 << 20
on_cards = pytest.mark.devices("sim", "cuda")


@pytest.fixture
def parts(monkeypatch):
    """The parts that were computed, in operands; a part has 1,000 bytes of the largest elements."""
    seen = []

    def noted(values, backend, original=pipeline.from_host):
        seen.append(values)
        return original(values, backend)

    monkeypatch.setattr(pipeline, "PART_BYTES", 1000)
    monkeypatch.setattr(pipeline, "from_host", noted)
    return seen


def moved(device, call):
    """What call() returns, and the bytes that went up and down."""
    before = vg.counters(device)
    result = call()
    after = vg.counters(device)
    return result, [after[key] - before[key] for key in ("bytes_to_device", "bytes_to_host")]


def numbers(rng, shape, dtype=np.float32):
    return helpers.numbers(rng, shape, np.dtype(dtype))


# Large arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bytes_", [MIB - 4, MIB, MIB + 4, 17 * MIB + 12])
def test_large_arrays_arrive(device, rng, bytes_):
    x = rng.integers(0, 256, bytes_, np.uint8).view(np.int32)
    array = put(device, x)
    kept = x.copy()
    x[:] = 0  # the source is free again
    assert (array.numpy() == kept).all()
    assert (array[::-1].numpy() == kept[::-1]).all()


def test_what_comes_down_lies_as_the_array_does(device, rng):
    x = rng.integers(0, 100, (3, 4, 5), np.int16)
    array = put(device, x)
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1)):
        for key in (slice(None), slice(None, None, 2), slice(None, None, -1)):
            found = vg.permute_dims(array[:, key], axes).numpy()
            expected = np.transpose(x[:, key], axes)
            assert np.array_equal(found, expected) and found.flags.writeable
            if key == slice(None):
                assert found.strides == expected.strides
    assert np.array_equal(vg.broadcast_to(array[0, 0], (2, 5)).numpy(), [x[0, 0]] * 2)


@pytest.mark.parametrize("order", ["transposed", "reversed", "stepped", "offset"])
def test_large_arrays_of_any_layout(device, rng, order):
    whole = numbers(rng, (1200, 900))
    x = {
        "transposed": whole.T,
        "reversed": whole[::-1, ::-1],
        "stepped": whole[::2],
        "offset": whole[3:, :],
    }[order]
    assert_same(put(device, x), x)
    out = np.empty_like(whole)
    place = {"transposed": out.T, "reversed": out[::-1, ::-1], "stepped": out[::2]}.get(order, out)
    y = np.ascontiguousarray(np.broadcast_to(whole[: place.shape[0], :1], place.shape))
    assert vg.negative(y, out=place, device=device) is place
    assert_same(place, -y)


LAYOUTS = {
    "plain": lambda x: x,
    "every other": lambda x: x[:, ::2],
    "every other, backwards": lambda x: x[::-1, 401::-2],
    "far apart": lambda x: x[:, ::5],
    "in another order, with gaps": lambda x: x[:, :390].reshape(100, 3, 390).transpose(2, 0, 1),
    "the other way round": lambda x: x[1:-1].T,
    "a row again and again": lambda x: np.broadcast_to(x[7, ::2], (80, 201)),
    "across elements": lambda x: np.ndarray((99, 300), x.dtype, x, 3, (401, x.itemsize)),
}


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.float32, np.complex128])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_lies_between_elements_is_left_out(device, rng, layout, dtype):
    """And bools are true whatever their bytes are, other than 0."""
    bytes_ = rng.integers(0, 5, (300, 402 * np.dtype(dtype).itemsize), np.uint8)
    x = LAYOUTS[layout](bytes_.view(dtype))
    found = put(device, x)
    assert_same(found, x.view(np.uint8) != 0 if dtype is bool else x)
    if dtype is bool:
        assert found.numpy().view(np.uint8).max() == 1
    place = vg.zeros((x.shape[0], 2 * x.shape[1], *x.shape[2:]), dtype, device=device)
    place[:, ::2] = x
    assert_same(place[:, ::2], x.view(np.uint8) != 0 if dtype is bool else x)
    assert not place[:, 1::2].numpy().any()


@pytest.mark.devices("cuda")
def test_memory_that_is_registered_with_cuda_is_copied_at_once(device, rng):
    """The device reads it itself, so the call waits; through the buffers it would not."""
    driver, x = ctypes.CDLL("libcuda.so.1"), numbers(rng, MIB)
    kept, address = x.copy(), ctypes.c_void_p(x.ctypes.data)
    _ = put(device, [1.0])
    assert driver.cuMemHostRegister_v2(address, ctypes.c_size_t(x.nbytes), 0) == 0
    try:
        before = vg.counters(device)["waits"]
        array = put(device, x)
        assert vg.counters(device)["waits"] == before + 1
        x[:] = 0
        assert (array.numpy() == kept).all()
    finally:
        assert driver.cuMemHostUnregister(address) == 0


@on_cards
def test_threads_that_copy_at_the_same_time(device, rng):
    sources = [numbers(rng, 300_000 + 1000 * i) for i in range(4)]
    wrong = []

    def work(x):
        for _ in range(5):
            if (put(device, x).numpy() != x).any():
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(x,)) for x in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    assert not wrong


# Once ---------------------------------------------------------------------------------------------


@on_cards
@pytest.mark.parametrize("length", [100, 2 * MIB // 4])
def test_each_operand_goes_up_once_and_the_result_down_once(device, rng, length):
    a, b = numbers(rng, length), numbers(rng, length)
    result, bytes_ = moved(device, lambda: vg.add(a, b, device=device))
    assert_same(result, a + b)
    assert bytes_ == [a.nbytes + b.nbytes, a.nbytes]
    out = np.full(length, np.nan, np.float32)
    result, bytes_ = moved(device, lambda: vg.add(a, b, out=out, device=device))
    assert result is out and bytes_ == [a.nbytes + b.nbytes, a.nbytes]
    assert_same(out, a + b)


@on_cards
def test_a_result_is_written_to_out_at_once(device, rng, monkeypatch):
    def refuse(*_):
        raise AssertionError("an array of its own for the result")

    a, out = numbers(rng, (40, 50)), np.zeros((50, 80), np.float32)
    monkeypatch.setattr(np, "empty", refuse)
    monkeypatch.setattr(np, "copyto", refuse)
    vg.negative(a, out=out.T[::2], device=device)
    monkeypatch.undo()
    assert_same(out.T[::2], -a)
    assert not out.T[1::2].any()


# In parts -----------------------------------------------------------------------------------------

CALLS = {
    "unary": (lambda a, b, **o: vg.exp(a, **o), np.float32, 1),
    "binary": (lambda a, b, **o: vg.add(a, b, **o), np.float32, 2),
    "mixed": (lambda a, b, **o: vg.multiply(a, b.astype(np.float64), **o), np.float32, 2),
    "integers": (lambda a, b, **o: vg.divide(a, b, **o), np.int32, 2),
    "scalar": (lambda a, b, **o: vg.subtract(2.5, a, **o), np.int64, 1),
    "comparison": (lambda a, b, **o: vg.less(a, b, **o), np.float64, 2),
    "bools": (lambda a, b, **o: vg.add(a, b, **o), np.bool_, 2),
    "where": (lambda a, b, **o: vg.where(a == a[0], a, b, **o), np.float32, 3),
    "where scalar": (lambda a, b, **o: vg.where(a < b, 1, a, **o), np.float32, 2),
}


@on_cards
@pytest.mark.parametrize("name", CALLS)
def test_parts_give_the_same_bits(device, rng, name, parts, monkeypatch):
    call, dtype, operands = CALLS[name]
    a, b = numbers(rng, (7, 811), dtype), numbers(rng, (7, 811), dtype)
    result = call(a, b, device=device)
    assert len(parts) >= 6 * operands and len(parts) % operands == 0
    out = np.zeros_like(result)
    assert call(a, b, out=out, device=device) is out
    used = len(parts)
    monkeypatch.setattr(pipeline, "PART_BYTES", 16 * MIB)
    whole = call(a, b, device=device)
    assert len(parts) == used, "the reference is computed at once"
    assert_same(result, whole)
    assert_same(out, whole)


@on_cards
def test_what_is_not_computed_in_parts(device, rng, parts):
    a, b = numbers(rng, (40, 50)), numbers(rng, (40, 50))
    assert_same(vg.add(a, b[0], device=device), a + b[0])
    assert_same(vg.add(a, b.T.copy().T, device=device), a + b)
    assert_same(vg.add(a[0], b[0], device=device), a[0] + b[0])
    assert_same(vg.add(put(device, a), b), a + b)
    out = np.zeros((50, 40), np.float32).T
    assert_same(vg.add(a, b, out=out, device=device), a + b)
    with pytest.raises(ValueError, match="out has shape"):
        vg.add(a, b, out=np.zeros((50, 40), np.float32), device=device)
    line = numbers(rng, 2001)
    expected = line[1:] + line[:-1]
    vg.add(line[1:], line[:-1], out=line[:-1], device=device)  # would be read after it is written
    assert_same(line[:-1], expected)
    assert parts == []
    expected = a + b
    assert vg.add(a, b, out=a, device=device) is a
    assert_same(a, expected)
    assert parts


@on_cards
def test_out_of_another_dtype_in_parts(device, rng, parts):
    a = helpers.integers(rng, (40, 50), np.dtype(np.float64))
    out = np.zeros((40, 50), np.float32)
    assert vg.add(a, a, out=out, device=device) is out
    assert_same(out, (a + a).astype(np.float32))
    whole = np.full((40, 50), 7, np.int32)
    with helpers.refused(device, TypeError, whole):
        vg.add(a, a, out=whole, device=device)
    with helpers.refused(device, TypeError):
        vg.negative(np.zeros((40, 50), bool), device=device)
    assert parts


@pytest.mark.devices("sim")
@pytest.mark.parametrize("what", ["copy", "launch", "malloc", "stream", "event"])
def test_each_call_of_a_computation_in_parts_fails_once(device, simulator, rng, what, parts):
    a, b = numbers(rng, 1001), numbers(rng, 1001)
    expected, failures, quiet, nth = vg.add(a, b, device=device), 0, 0, 0
    running = threading.active_count()
    while quiet < 3:  # a refused allocation is asked for again
        nth += 1
        vg.empty_cache(device)
        simulator.pvg_sim_fail(what.encode(), nth)
        try:
            result = vg.add(a, b, device=device)
        except vg.PyVecGPUError as error:
            error.__traceback__ = None
            failures += 1
            quiet = 0
        else:
            quiet += 1
            assert_same(result, expected)
        simulator.pvg_sim_fail(what.encode(), 0)
        assert_same(vg.add(a, b, device=device), expected)
        assert threading.active_count() == running
        assert nth < 100
    assert failures >= {"copy": 12, "launch": 4, "malloc": 0, "stream": 1, "event": 4}[what]


def test_a_thread_that_cannot_be_started(device, rng, parts, monkeypatch):
    def refuse(*arguments):
        del arguments  # which the function in C does not keep either
        raise RuntimeError("can't start new thread")

    a = numbers(rng, 1001)
    before = a.copy()
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    if device == "cpu":  # which has nothing to do at the same time
        assert_same(vg.add(a, a, device=device), a + a)
    else:
        with pytest.raises(RuntimeError, match="can't start") as caught:
            vg.add(a, a, out=a, device=device)
        caught.value.__traceback__ = None
    monkeypatch.undo()
    assert_same(a, before)
    assert_same(vg.add(a, a, device=device), a + a)


@pytest.mark.devices("sim")
def test_refused_pinned_memory_is_done_without(device, simulator, rng):
    """The values arrive all the same, and the kernel that comes next is not blamed for it."""
    x = numbers(rng, 2 * MIB + 5)  # 8 MiB: through pinned slots
    for nth in range(1, 8):
        vg.empty_cache(device)
        asked = simulator.pvg_sim_count(b"pinned_malloc")
        simulator.pvg_sim_fail(b"pinned", nth)
        array = put(device, x)
        double = array + array
        granted = simulator.pvg_sim_count(b"pinned_malloc") - asked
        simulator.pvg_sim_fail(b"pinned", 0)
        assert granted == nth - 1, "the refusal was not met"
        assert_same(double, x + x)


# Processes ----------------------------------------------------------------------------------------


@on_cards
def test_workers_that_cannot_be_started(device):
    """Without memory for their stacks the calling thread copies, and nobody notices."""
    code = f"""
import json, os, resource
import numpy as np, pyvecgpu as vg
from pyvecgpu.dispatch import apply
device = {device!r}
(vg.ones(100_000, device=device) * 2.0).numpy()  # the simulated card's own threads
host = np.arange(400_000, dtype=np.float32)
array, result = vg.zeros(400_000, device=device), np.zeros_like(host)
threads = len(os.listdir("/proc/self/task"))
pages = int(open("/proc/self/statm").read().split()[0])
_, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + 7 * {MIB}, most))
apply(array.backend, "copy_from_host", host, array)
apply(array.backend, "to_host", array, result)
print(json.dumps([len(os.listdir("/proc/self/task")) - threads, bool((result == host).all())]))
"""
    assert helpers.child_result(code) == [0, True]


# Python leaves an interrupt ignored that was so when it started, as in the background of a shell.
INTERRUPT = (
    "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "os.kill(os.getpid(), signal.SIGINT)"
)


@on_cards
@pytest.mark.parametrize("end", ["", "x = None", INTERRUPT, "import threading, time; copying()"])
def test_a_process_ends_after_large_copies(device, end):
    """With workers asleep, awake, and in the middle of a copy by a daemon thread."""
    code = f"""
import numpy as np, pyvecgpu as vg
host = np.ones(1 << 20, np.float32)
def copying():
    def work():
        while True:
            vg.asarray(host, device={device!r}).numpy()
    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.3)
x = vg.asarray(host, device={device!r})
assert (x.numpy() == host).all()
try:
    {end or "pass"}
except KeyboardInterrupt:
    print("interrupted")
"""
    done = helpers.run_child(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("interrupted\n" if "kill" in end else "")


@on_cards
def test_a_forked_child_does_not_wait_for_workers(device):
    code = f"""
import json, os
import numpy as np, pyvecgpu as vg
host = np.ones(1 << 20, np.float32)
x = vg.asarray(host, device={device!r})
x.numpy()
pid = os.fork()
if pid == 0:
    refused = 0
    for call in (x.numpy, lambda: vg.asarray(host, device={device!r})):
        try:
            call()
        except vg.DeviceUnavailableError:
            refused += 1
    os._exit(refused)
_, status = os.waitpid(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), bool((x.numpy() == 1).all())]))
"""
    assert helpers.child_result(code, "-W", "ignore::DeprecationWarning") == [2, True]


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("dtype", helpers.ALL_DTYPES, ids=str)
def test_values_go_up_in_the_dtype_that_they_get(device, dtype):
    """But bfloat16 is made by the card, as NumPy may not know it."""
    x = np.arange(100.0)
    before = vg.counters(device)["bytes_to_device"]
    result = vg.asarray(x, dtype=dtype, device=device)
    sent = vg.counters(device)["bytes_to_device"] - before
    assert sent == 100 * (8 if dtype == helpers.BFLOAT16 else dtype.itemsize)
    assert_same(result, x.astype(dtype))


@on_cards
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux")
def test_buffers_of_the_host_are_given_back(device):
    """Strided memory goes through a buffer of up to 4 MiB, both ways."""
    wide = np.zeros((1 << 20, 2), np.float32)
    backend, array = vg.Device(device).backend, vg.ones(1 << 20, device=device)

    def there_and_back():
        backend.copy_from_host(wide[:, 0], array.raw)
        assert backend.to_host(array.raw, wide[:, 1]) is not None

    there_and_back()
    pages = [int(Path("/proc/self/statm").read_text().split()[0])]
    for _ in range(12):
        there_and_back()
    pages.append(int(Path("/proc/self/statm").read_text().split()[0]))
    assert (pages[1] - pages[0]) * mmap.PAGESIZE < 12 * 4 * MIB
