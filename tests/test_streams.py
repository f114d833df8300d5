"""Streams in whole programs, and what a failed kernel leaves behind.

Everything here runs in child processes: a device that has been lost stays lost for its process. The
rest of streams is tested in C: cuda/tests/test_stream.c.
"""

import time

import helpers
import pytest

pytestmark = pytest.mark.devices("sim", "cuda")

# Memory used on one stream and freed there while another stream still reads it must not be handed
# out again before the reader is done.
LIFETIME = """
import ctypes, json, numpy as np, pyvecgpu as vg
from pyvecgpu.native import library
device = {device!r}
loaded = library.load(device)
if device == "sim":
    loaded.pvg_sim_set(b"deferred", 1)  # work is recorded, and runs at a wait
n = 1 << {bits}
first, second = loaded.pvg_stream_create(0), loaded.pvg_stream_create(0)
expected = np.arange(n, dtype=np.float32)
wrong = 0
for _ in range(20):
    loaded.pvg_stream_set_current(first, 0)
    x = vg.asarray(expected, device=device)
    loaded.pvg_stream_set_current(second, 0)
    y = x
    for _ in range(10):
        y = y * 1.0        # reads x on the second stream
    loaded.pvg_stream_set_current(first, 0)
    del x
    spoilers = [vg.full(n, -1.0, device=device) for _ in range(3)]  # the same size, on the first
    wrong += int((y.numpy() != expected).sum())
    del spoilers
loaded.pvg_stream_set_current(None, 0)
waits = vg.counters(device)["waits"]
loaded.pvg_stream_set_current(first, 0)
a = vg.asarray(expected, device=device)
loaded.pvg_stream_set_current(second, 0)
b = vg.add(a, 1.0)
loaded.pvg_stream_set_current(first, 0)
a *= 0.0                   # written on the first only after the second has read it
loaded.pvg_stream_set_current(None, 0)
c = vg.add(a, b)           # read on the default stream after both
ordered = bool((c.numpy() == expected + 1).all())
assert loaded.pvg_stream_release(second) == 0
assert loaded.pvg_stream_release(first) == 0
assert loaded.pvg_stream_release(first) != 0
y = b + 1.0                # the stream it was made on is gone
survives = bool((y.numpy() == expected + 2).all())
del a, b, c, y
left = [vg.counters(device)["live_arrays"], vg.memory_info(device).blocks]
print(json.dumps([wrong, ordered, survives, *left]))
"""


@pytest.mark.parametrize("allocator", ["pool", "direct"])
def test_memory_is_not_reused_while_another_stream_reads_it(device, allocator):
    bits = 12 if device == "sim" else 22
    code = LIFETIME.format(device=device, bits=bits)
    result = helpers.child_result(code, PYVECGPU_ALLOCATOR=allocator, timeout=120)
    assert result == [0, True, True, 0, 0]


# Memory that was freed while another stream still used it is the pool's: when all else is in use,
# an allocation on any stream waits for that work and takes it.
PENDING = """
import ctypes, json, numpy as np, pyvecgpu as vg
from pyvecgpu.native import library
device = {device!r}
loaded = library.load(device)
if device == "sim":
    loaded.pvg_sim_set(b"deferred", 1)
first, second, third = (loaded.pvg_stream_create(0) for _ in range(3))
n = 10 << 20
limit = (100 << 20) + vg.memory_info(device).reserved
vg.set_memory_limit(limit, device)
loaded.pvg_stream_set_current(first, 0)
x = vg.full(n, 1.0, device=device)
loaded.pvg_stream_set_current(second, 0)
total = vg.sum(x * 2.0)          # reads x on the second stream; its temporary is freed there
loaded.pvg_stream_set_current(first, 0)
del x
loaded.pvg_stream_set_current(third, 0)
y = vg.full(2 * n, 3.0, device=device)  # 80 MiB of 100: both of the freed 40 are needed
result = [total.item(), vg.sum(y).item(), vg.memory_info(device).reserved <= limit]
try:
    vg.zeros(n, device=device)
    result.append("room for more than the limit")
except vg.OutOfMemoryError:
    result.append(vg.sum(y).item())
print(json.dumps(result))
"""


def test_memory_with_pending_work_is_given_up_before_an_allocation_fails(device):
    result = helpers.child_result(PENDING.format(device=device))
    n = 10 << 20
    assert result == [2.0 * n, 6.0 * n, True, 6.0 * n]


EVENTS = """
import ctypes, json, pyvecgpu as vg
from pyvecgpu.native import library
device = {device!r}
loaded = library.load(device)
stream = loaded.pvg_stream_create(0)
start, stop = loaded.pvg_event_create(0), loaded.pvg_event_create(0)
done, milliseconds = ctypes.c_int(-1), ctypes.c_double(-1)
results = [loaded.pvg_event_record(start, stream)]
loaded.pvg_stream_set_current(stream, 0)
x = vg.ones((300, 300), device=device) @ vg.ones((300, 300), device=device)
results.append(loaded.pvg_event_record(stop, stream))
results.append(loaded.pvg_event_synchronize(stop))
results.append(loaded.pvg_event_query(stop, done))
results.append(loaded.pvg_event_elapsed(start, stop, milliseconds))
results.append(loaded.pvg_stream_wait_event(stream, stop))
results.append(loaded.pvg_stream_synchronize(stream))
wrapped = loaded.pvg_stream_wrap(loaded.pvg_stream_handle(stream), 0)
loaded.pvg_stream_set_current(wrapped, 0)
value = vg.sum(x).item()
results.append(loaded.pvg_stream_release(wrapped))
results += [loaded.pvg_event_release(event) for event in (start, stop)]
results.append(loaded.pvg_stream_release(stream))
bad = [loaded.pvg_event_record(None, stream), loaded.pvg_stream_release(8)]
print(json.dumps([results, done.value, milliseconds.value, value, all(bad)]))
"""


def test_streams_and_events(device):
    results, done, milliseconds, value, refused = helpers.child_result(EVENTS.format(device=device))
    assert not any(results)
    assert done == 1
    assert milliseconds >= 0
    assert value == 300.0**3
    assert refused


FOREIGN_EVENTS = """
import ctypes, json, pyvecgpu as vg
from pyvecgpu.native import library
loaded = library.load({device!r})
event = loaded.pvg_event_create(0)
memory = ctypes.create_string_buffer(4096)
results = [loaded.pvg_event_release(event)]
for bad in (event, ctypes.addressof(memory), 8):
    results.append(loaded.pvg_event_release(bad) != 0 and loaded.pvg_event_synchronize(bad) != 0)
print(json.dumps(results + [vg.ones(2, device={device!r}).tolist()]))
"""


def test_released_and_foreign_events(device):
    assert helpers.child_result(FOREIGN_EVENTS.format(device=device)) == [
        0,
        True,
        True,
        True,
        [1, 1],
    ]


# An array whose elements but the first lie in no memory: the kernel that reads it fails on the
# device.
ILLEGAL = """
import ctypes, json, sys, time
import numpy as np
import pyvecgpu as vg
from pyvecgpu.array import wrap
from pyvecgpu.native import library
device = {device!r}
host = np.arange(5, dtype=np.float32)
kept = vg.asarray(host, device=device)
copied = kept.numpy()
loaded = library.load(device)
nothing = ctypes.cast(None, loaded.pvg_array_wrap.argtypes[6])
shape, apart = (ctypes.c_int64 * 1)(1000), (ctypes.c_int64 * 1)(1 << 36)
here = kept.backend.pointer(kept.raw)
bogus = kept.backend.functions.pvg_array_wrap(here, 0, 11, 1, shape, apart, nothing, None)
bogus = wrap(kept.backend, bogus)
report = {{}}
def attempt(name, call):
    start = time.perf_counter()
    try:
        call()
        report[name] = ["nothing", "", "", 0.0]
    except Exception as error:
        seconds = time.perf_counter() - start
        operation = getattr(error, "operation", "")
        report[name] = [type(error).__name__, operation, str(error), seconds]
attempt("first", lambda: {first})
attempt("again", lambda: vg.exp(bogus))
attempt("good operands", lambda: kept + kept)
attempt("allocation", lambda: vg.zeros(3, device=device))
attempt("download", kept.numpy)
attempt("wait", lambda: vg.synchronize(device))
attempt("memory info", lambda: vg.memory_info(device))
report["healthy"] = vg.is_healthy()
report["cpu"] = (vg.asarray(copied, device="cpu") + 1.0).tolist()
report["counters"] = vg.counters(device)["live_arrays"]
del bogus, kept
print(json.dumps(report))
"""


def run_illegal(device, first, **variables):
    start = time.perf_counter()
    done = helpers.run_child(ILLEGAL.format(device=device, first=first), **variables)
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return helpers.json.loads(done.stdout.splitlines()[-1]), seconds


@pytest.mark.parametrize("operation", ["exp", "sum", "multiply", "copy"])
def test_illegal_access_names_the_operation(device, operation):
    """With PYVECGPU_SYNC=1 the call itself raises; all later ones raise at once; exit is clean."""
    first = {
        "exp": "vg.exp(bogus)",
        "sum": "vg.sum(bogus)",
        "multiply": "bogus * 2.0",
        "copy": "bogus[::-1].copy()",
    }[operation]
    report, seconds = run_illegal(device, first, PYVECGPU_SYNC=1)
    kind, named, message, _ = report.pop("first")
    assert kind == "DeviceLostError", message
    assert named == {"copy": "cast"}.get(operation, operation)
    assert named in message and "cudaError" in message and "new" in message
    after_a_loss(report)
    assert seconds < (5 if device == "sim" else 25)


def test_illegal_access_without_waiting_is_seen_at_the_next_wait(device):
    report, _ = run_illegal(device, "(vg.exp(bogus), vg.synchronize(device))")
    kind, _, message, _ = report.pop("first")
    assert kind == "DeviceLostError", message
    if device == "cuda":
        assert "PYVECGPU_SYNC=1" in message
    after_a_loss(report)


def after_a_loss(report):
    assert report.pop("healthy") is False
    assert report.pop("cpu") == [1, 2, 3, 4, 5]
    assert report.pop("counters") == 2
    for name, (kind, _, message, seconds) in report.items():
        assert kind == "DeviceLostError", f"{name}: {kind} {message}"
        assert "new process" in message
        assert seconds < 0.1, f"{name} took {seconds} s"


STALE = """
import json, pyvecgpu as vg
from pyvecgpu.native import library
loaded = library.load("sim")
x = vg.ones(3, device="sim")
loaded.pvg_sim_fail(b"device", 1)   # the kernel is accepted, and then the card is lost
try:
    (x + x).numpy()
    print(json.dumps("nothing"))
except vg.DeviceLostError as error:
    print(json.dumps([error.name, error.code, vg.is_healthy()]))
"""


@pytest.mark.devices("sim")
def test_a_kernel_that_fails_later(device):
    assert helpers.child_result(STALE) == ["cudaErrorLaunchFailure", 719, False]
