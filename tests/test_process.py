"""Threads, garbage collection, forks and exits: no deadlock, no output, status 0."""

import gc
import signal
import subprocess
import sys
import threading
import time

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg


def in_threads(functions):
    """Run functions in threads at once; raise what any of them raised."""
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def test_made_in_one_thread_freed_in_another(device):
    made = []
    in_threads(
        [lambda: made.extend(vg.full(1000, i, dtype="float32", device=device) for i in range(50))]
    )
    in_threads(
        [
            lambda: assert_same(vg.sum(made[7]), np.array(7000, np.float32)),
            lambda: made.pop(),
            made.clear,
        ]
    )
    assert not made
    helpers.assert_works(device)


FIRST_ACT = """
import json, threading
import forced, pyvecgpu as vg
from pyvecgpu.native import library

device = {device!r}
if device == "sim":
    library.load("sim").pvg_sim_set(b"card0", 90)
results = []
for kernel, dtype, precision in forced.CASES if device != "cpu" else [("auto", "float32", None)]:
    if device != "cpu" and not forced.is_able(device, kernel):
        continue
    m, n = (1, 64) if kernel in ("gemv", "thin") else (32, 32) if kernel == "tiny" else (64, 64)
    k = 16 if kernel == "outer" else 32
    x = vg.ones((m, k), dtype=dtype, device=device)
    y = vg.ones((k, n), dtype=dtype, device=device)

    def act(product, expected):
        try:
            values = sorted({{float(v) for v in product().numpy().ravel()}})
        except Exception as error:
            values = repr(error)
        results.append([kernel, str(dtype), precision, expected, values])

    if device != "cpu":
        forced.choose(device, kernel)
    for product, expected in (
        (lambda: vg.matmul(x, y, precision=precision), k),
        (lambda: vg.matmul(x[:, 1:], y[1:], precision=precision), k - 1),
        (lambda: vg.nn.functional.dense(x, y.T, precision=precision), k),
    ):
        thread = threading.Thread(target=act, args=(product, expected))
        thread.start()
        thread.join()
print(json.dumps(results))
"""


def test_a_product_is_the_first_act_of_a_thread(device):
    """By every kernel: some want what only certain calls of CUDA's runtime give to a thread."""
    results = helpers.child_result(FIRST_ACT.format(device=device))
    assert len(results) >= (3 if device == "cpu" else 24)
    for *name, expected, values in results:
        assert values == [expected], f"{name}: {values}"


def test_threads_give_the_same_bits_as_one(device, rng):
    x, y = (rng.standard_normal((60, 50)).astype(np.float32) for _ in range(2))

    def work():
        a, b = put(device, x), put(device, y)
        return [
            helpers.bits(v)
            for v in (vg.exp(a) @ b.T, vg.sum(a * b, axis=0), vg.tanh(a)[::2].T.copy())
        ]

    expected = work()
    results = []
    in_threads([lambda: results.extend(work() for _ in range(5)) for _ in range(4)])
    assert len(results) == 20
    assert all(result == expected for result in results)


FIRST_USE = """
import json, threading
import pyvecgpu as vg
from pyvecgpu.native import library
together, found = threading.Barrier(8), []
def work(i):
    together.wait()
    x = vg.full(100, float(i), device={device!r})
    found.append((x.device, vg.sum(x + x).item() == 200.0 * i))
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps([len(found), all(right for _, right in found),
                  len({{id(device) for device, _ in found}}), len(library.loaded())]))
"""


def test_the_first_use_by_many_threads(device):
    """Of the package, the library and the device: there is one of each."""
    libraries = 0 if device == "cpu" else 1
    result = helpers.child_result(FIRST_USE.format(device=device))
    assert result == [8, True, 1, libraries]


def test_errors_belong_to_their_thread(device):
    """Each thread reads its own error text."""

    def work(n):
        a, b = put(device, np.zeros(n, np.float32)), put(device, np.zeros(n + 1, np.float32))
        for _ in range(100):
            try:
                a + b
            except ValueError as error:
                assert str(n) in str(error)
            else:
                raise AssertionError("shapes that do not fit were added")

    in_threads([lambda n=n: work(n) for n in (11, 222, 3333)])


def test_one_array_read_by_many_threads(device):
    x = np.arange(5000, dtype=np.float32)
    array = put(device, x)
    in_threads([lambda: [assert_same(array + 1.0, x + 1) for _ in range(20)] for _ in range(4)])


def test_garbage_collection_during_allocations(device):
    """A collection, and with it __del__ of arrays, may begin inside any call."""

    class Cycle:
        def __init__(self):
            self.me, self.array = self, vg.zeros(500, device=device)

    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        in_threads([lambda: [Cycle() for _ in range(150)] for _ in range(3)])
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    helpers.assert_works(device)


def test_signal_handlers_may_compute(device):
    calls = []

    def handle(*_):
        calls.append(vg.sum(vg.ones(100, device=device)).item())
        signal.setitimer(signal.ITIMER_REAL, 0.002)  # again, but never inside of this handler

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0001)
    try:
        for _ in range(200):
            x = vg.ones(1000, device=device) + 1.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert x[0].item() == 2
    assert set(calls) <= {100.0}


# A product after a product, run by the wait for the last one; SIGINT comes when the wait has begun.
INTERRUPTED = """
import json, os, signal, threading, time
import numpy as np, pyvecgpu as vg
from pyvecgpu.native import library
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a parent ignores it
device = {device!r}
if device == "sim":
    library.load(device).pvg_sim_set(b"deferred", 1)  # work runs at a wait
n = 200 if device == "sim" else 8192
x = vg.asarray(np.eye(n, dtype=np.float32), device=device)
y = x
for _ in range(40):
    y = vg.matmul(y, x, precision="ieee")
sent = []
def interrupt():
    time.sleep(0.05)
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    vg.synchronize(device)
    time.sleep(1)
    result = "not within the wait"
except KeyboardInterrupt:
    result = "interrupted"
waited = time.perf_counter() - sent[0] if sent else 0.0
print(json.dumps([result, waited, vg.sum(y).item() / n, (x[:2, :2] + 1.0).tolist()]))
"""


@pytest.mark.devices("sim", "cuda")
def test_an_interrupt_during_a_wait(device):
    """KeyboardInterrupt comes out of the wait when that is over, and nothing is lost."""
    result = helpers.child_result(INTERRUPTED.format(device=device))
    assert result[0] == "interrupted"
    assert 0.02 < result[1] < 30, "it was not sent within the wait"
    assert result[2:] == [1.0, [[2, 1], [1, 2]]]


BUSY = """
import numpy as np, pyvecgpu as vg
host = np.ones(1 << 20, np.float32)
held = vg.ones(1 << 27, dtype="uint8", device={device!r})
while True:
    (vg.asarray(host, device={device!r}) + 1.0).numpy()
    print("busy", flush=True)
"""


@pytest.mark.alone("cuda")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_process_that_is_killed_at_work(device, name):
    """It ends at once, threads and all, says nothing, and the card's memory comes back."""
    free = vg.memory_info(device).free
    with subprocess.Popen(
        [sys.executable, "-c", BUSY.format(device=device)],
        env=helpers.child_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        try:
            assert child.stdout.readline() == b"busy\n"
            child.send_signal(getattr(signal, name))
            assert child.wait(5) == -getattr(signal, name)
            assert child.stderr.read() == b""
        finally:
            child.kill()
    end = time.monotonic() + 20
    while device == "cuda" and vg.memory_info(device).free < free - (32 << 20):
        assert time.monotonic() < end, "the memory of a killed process is not free"
        time.sleep(0.1)
    helpers.assert_works(device)


# ---- Exit ----------------------------------------------------------------------------------------

EXITS = {
    "globals": "x = vg.ones(1000, device=device); y = x[1:]",
    "cycles": """
class Node: pass
a, b = Node(), Node()
a.other, b.other, a.array, b.array = b, a, vg.ones(9, device=device), vg.ones(9, device=device)
""",
    "pending work": "x = vg.ones((300, 300), device=device)\nfor _ in range(5): x = x @ x * 1e-3",
    "daemon threads": """
import threading
def work():
    while True:
        vg.sum(vg.ones(100, device=device)).item()
for _ in range(3): threading.Thread(target=work, daemon=True).start()
import time; time.sleep(0.2)
""",
    "atexit users": """
import atexit
x = vg.ones(10, device=device)
@atexit.register
def last():
    y = x + x
    assert y.tolist() == [2.0] * 10
    global z
    z = y
""",
    "weak references": """
import weakref
x = vg.ones(9, device=device)
weakref.finalize(x, lambda: vg.zeros(3, device=device))
""",
    "an object's __del__": """
class Late:
    def __init__(self): self.array = vg.ones(9, device=device)
    def __del__(self): self.array = None
late = Late(); late.me = late
""",
    "module attributes": """
import sys
sys.modules['later'] = vg.ones(9, device=device)
vg.kept = vg.ones(9, device=device)
""",
    "an exception": """
x = vg.ones(3, device=device)
try:
    x + vg.ones(4, device=device)
except ValueError as error:
    kept = error
""",
    "sys.exit in a thread": """
import threading, sys
x = vg.ones(9, device=device)
thread = threading.Thread(target=sys.exit)
thread.start()
thread.join()
""",
    "nothing used": "",
}


@pytest.mark.parametrize("case", EXITS)
def test_exit_is_clean(device, case):
    code = f"import pyvecgpu as vg\ndevice = {device!r}\n{EXITS[case]}"
    done = helpers.run_child(code)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.devices("sim", "cuda")
def test_the_exit_guard_itself(device):
    """At exit arrays are left to the process: the library's release is not called any more."""
    code = f"""
import atexit
@atexit.register          # registered before the import, so it runs after the guard
def count():
    global x
    loaded = library.load({device!r})
    before = loaded.pvg_counter(6)
    x = None
    print(before, loaded.pvg_counter(6))
import pyvecgpu as vg
from pyvecgpu.native import library
x = vg.ones(9, device={device!r})
"""
    done = helpers.run_child(code)
    assert (done.returncode, done.stderr) == (0, "")
    before, after = done.stdout.split()
    assert before == after == "1"


# ---- Forks ---------------------------------------------------------------------------------------

# Python 3.12 warns of forks beside threads, and CUDA's runtime has threads.
FORK_FLAGS = ("-W", "ignore::DeprecationWarning")
FORK = """
import json, os, sys, gc
import pyvecgpu as vg
device = {device!r}
{before}
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    report = []
    for call in (
        lambda: vg.ones(3, device=device).tolist(),
        lambda: (x + x).tolist(),
        lambda: x.numpy().tolist(),
        lambda: vg.synchronize(device),
        lambda: vg.memory_info(device) and None,
        lambda: vg.sum(vg.ones(4, device="cpu")).item(),
    ):
        try:
            report.append(call())
        except Exception as error:
            report.append([type(error).__name__, str(error)])
    x = None
    gc.collect()
    os.write(write, json.dumps(report).encode())
    sys.exit(0)
os.close(write)
text = b""
while part := os.read(read, 65536):
    text += part
_, status = os.waitpid(pid, 0)
after = (vg.ones(3, device=device) + 1.0).tolist()
kept = x is not None and x.tolist()
print(json.dumps([json.loads(text), os.waitstatus_to_exitcode(status), after, kept]))
"""


@pytest.mark.devices("sim", "cuda")
def test_a_child_forked_after_first_use_gets_a_sentence(device):
    code = FORK.format(device=device, before="x = vg.ones(3, device=device)")
    report, status, after, kept = helpers.child_result(code, *FORK_FLAGS)
    *device_calls, on_cpu = report
    for kind, message in device_calls:
        assert kind == "DeviceUnavailableError", message
        assert "fork" in message and "spawn" in message
    assert on_cpu == 4.0
    assert status == 0
    assert (after, kept) == ([2, 2, 2], [1, 1, 1])


@pytest.mark.devices("sim", "cuda")
def test_a_child_forked_before_first_use_works(device):
    code = FORK.format(device=device, before="x = None")
    report, status, after, _ = helpers.child_result(code, *FORK_FLAGS)
    assert report[0] == [1, 1, 1]
    assert report[-1] == 4.0
    assert status == 0
    assert after == [2, 2, 2]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_spawned_processes_exchange_arrays(device, tmp_path, method):
    code = f"""
import json, multiprocessing, sys
import pyvecgpu as vg
def double(x):
    return x + x
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        y = pool.apply(double, (vg.ones(3, device={device!r}),))
    print(json.dumps([y.tolist(), str(y.device).partition(":")[0]]))
"""
    program = tmp_path / "program.py"  # a spawned child imports the main module
    program.write_text(code)
    assert helpers.child_result(program) == [[2, 2, 2], device]


@pytest.mark.devices("sim", "cuda")
def test_nothing_is_released_once_python_ends(device):
    """What is alive then goes with the process, whose driver may be gone already."""
    code = f"""
import atexit, json, pyvecgpu as vg
from pyvecgpu.device import _stop_releasing
x, kept, s = (vg.ones(100, device={device!r}) for _ in range(3))
del x
before = vg.counters({device!r})["live_arrays"]
atexit.unregister(_stop_releasing)  # once is enough
_stop_releasing()
del kept, s
print(json.dumps([before, vg.counters({device!r})["live_arrays"]]))
"""
    assert helpers.child_result(code) == [2, 2]
