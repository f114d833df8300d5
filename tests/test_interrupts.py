"""Interrupts, collections, forks and threads: nothing is lost, read after its end, or held.

A signal handler raises at random moments of every public function. Each exception arrives in the
caller, and afterwards all arrays, memory, streams, events and graphs are as they were before.
"""

import _thread
import contextlib
import gc
import pickle
import signal
import sys
import threading
import timeit

import helpers
import numpy as np
import pytest
from helpers import put
from test_process import FORK_FLAGS
from test_seam import (
    CASES,
    COMPOSED,
    COMPOSED_LINALG,
    OTHERS,
    PUBLIC,
    SETTINGS,
    A,
    B,
    function,
)

import pyvecgpu as vg
from pyvecgpu import dispatch
from pyvecgpu.device import _current
from pyvecgpu.functions import pipeline
from pyvecgpu.native import library

INTERRUPTS = 10_000  # on each device
MADE = (b"live_streams", b"live_events", b"live_graphs")  # by the simulated card


# Methods of a Generator, by what they take besides the size; and what draws along an array.
DRAWN = {
    "beta": (2.0, 3.0), "binomial": (9, 0.5), "chisquare": (3.0,), "choice": (7,),
    "dirichlet": ([1.0, 2.0],), "exponential": (2.0,), "f": (3.0, 5.0), "gamma": (2.0,),
    "geometric": (0.3,), "gumbel": (), "integers": (0, 6), "laplace": (), "logistic": (),
    "lognormal": (), "multivariate_normal": ([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]),
    "normal": (1.0, 2.0), "pareto": (3.0,), "poisson": (4.0,), "power": (2.0,), "random": (),
    "rayleigh": (), "standard_cauchy": (), "standard_exponential": (), "standard_gamma": (2.0,),
    "standard_normal": (), "standard_t": (4.0,), "triangular": (0.0, 1.0, 2.0), "uniform": (),
    "weibull": (2.0,),
}  # fmt: skip
OF_ARRAYS = ("permutation", "permuted", "shuffle")


class HandlerError(Exception):
    """What a handler of an application raises."""


def calls_of(device):
    """Functions of two Arrays, by name: each public function, operators, and what else there is."""

    def chosen(a, b):
        with vg.device(device):
            return vg.ones(3)

    def observed(a, b):
        with dispatch.observe(lambda call: None):
            return a + b

    generator = vg.random.default_rng(1, device=device)
    calls = {name: call for name, (call, _) in (CASES | OTHERS).items()} | COMPOSED
    calls |= {f"linalg.{name}": call for name, call in COMPOSED_LINALG.items()}
    for name in sorted(set(vg.fft.__all__) - {"fftfreq", "rfftfreq"}):
        calls[f"fft.{name}"] = lambda a, b, name=name: getattr(vg.fft, name)(a)
    for name, given in DRAWN.items():
        calls[f"random.{name}"] = lambda a, b, name=name, given=given: getattr(generator, name)(
            *given, size=5
        )
    for name in OF_ARRAYS:
        calls[f"random.{name}"] = lambda a, b, name=name: getattr(generator, name)(a.copy())
    for name in sorted(PUBLIC - SETTINGS - set(CASES) - set(COMPOSED)):
        calls[name] = lambda a, b, name=name: function(name)(a)
    calls |= {
        "gradients": lambda a, b: (a.detach().requires_grad_() @ b).sum().backward(),
        "out": lambda a, b: vg.add(a, b, out=vg.empty_like(a)),
        "in place": lambda a, b: a.__iadd__(0.0).__imul__(1.0),
        "assignment": lambda a, b: b.copy().__setitem__(0, a[0]),
        "NumPy operands": lambda a, b: vg.add(A, B, device=device),
        "out of a lower kind": lambda a, b: refuse(lambda: vg.add(a, b, out=whole)),
        "to the CPU and back": lambda a, b: a.cpu().to(device),
        "pickle": lambda a, b: pickle.loads(pickle.dumps(a)),
        "a chosen device": chosen,
        "an observer": observed,
        "synchronize": lambda a, b: (a + b, vg.synchronize(device)),
        "memory_info": lambda a, b: vg.memory_info(device),
    }
    whole = put(device, np.zeros((2, 2), np.int32))
    backend = vg.Device(device).backend
    if device != "cpu":
        calls["a recording"] = lambda a, b: backend.record(lambda: a @ b + 1.0)()
        calls["a stream"] = lambda a, b: own_stream(backend, a, b)
    return calls


def test_all_that_draws_is_interrupted():
    made = {"bytes", "device", "spawn", "state"}
    there = {name for name in dir(vg.random.Generator) if not name.startswith("_")}
    assert there - made == {*DRAWN, *OF_ARRAYS}


@contextlib.contextmanager
def default_kept():
    stack = _current.stack
    yield
    _current.stack = stack


def refuse(call):
    try:
        call()
    except TypeError:
        return
    raise AssertionError("a result of floats was written to integers")


def own_stream(backend, a, b):
    with backend.own_stream():
        return (a + b).numpy()


def state_of(device):
    """What interrupts must leave as it is."""
    info = vg.memory_info(device)
    state = {
        "arrays": (vg.counters(device)["live_arrays"], info.blocks, info.used),
        "threads": _thread._count(),
        "chosen": (vg.empty(0).device, np.geterr(), dict(dispatch._listeners)),
        "gradients": vg.is_grad_enabled(),
    }
    if device != "cpu":
        state["stream"] = library.load(device).pvg_stream_current(0)
    if device == "sim":
        state |= {name: library.load(device).pvg_sim_count(name) for name in MADE}
    return state


def interrupt(call, times, rng, exception=KeyboardInterrupt, after=lambda: None):
    """Repeat a call until a signal handler raises, so many times; return how many were lost.

    after() is called each time that what was raised has arrived.
    """
    raised = caught = 0

    def handle(*_):
        nonlocal raised
        raised += 1
        raise exception

    longest = 1.2 * min(timeit.repeat(call, number=1, repeat=3)) + 1e-5
    delays = rng.uniform(5e-6, min(longest, 2e-3), times).tolist()
    before = signal.signal(signal.SIGALRM, handle)
    try:
        for number, delay in enumerate(delays):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                while raised == number:
                    call()
            except exception:
                caught += 1
            after()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert raised == times
    return times - caught


@pytest.mark.parametrize("exception", [KeyboardInterrupt, HandlerError])
def test_nothing_is_lost_when_a_call_is_interrupted(device, rng, exception):
    calls = calls_of(device)
    a, b = put(device, A), put(device, B)
    for call in calls.values():
        call(a, b)
    gc.collect()
    before = state_of(device)
    times = INTERRUPTS // (1 if exception is KeyboardInterrupt else 10) // len(calls) + 1
    lost = {}
    for name, call in calls.items():
        # NumPy's linalg leaves its errstate behind when a signal comes as it ends, and so does a
        # `with` the device: Python handles signals before the first line of an __exit__.
        factors = name == "random.multivariate_normal" or name.startswith("linalg.")
        factors = factors or hasattr(vg.linalg, name)
        around = np.errstate() if factors else contextlib.nullcontext()
        around = default_kept() if name == "a chosen device" else around
        with around:
            lost[name] = interrupt(lambda call=call: call(a, b), times, rng, exception)
        assert state_of(device) == before, name
    assert not any(lost.values()), {name: count for name, count in lost.items() if count}
    helpers.assert_works(device)


@pytest.mark.devices("cpu")
def test_no_call_counts_on_pythons_refusal_of_arguments(device):
    """Python 3.11.2 loses an interrupt that comes while it writes such a message."""
    a, b = put(device, A), put(device, B)
    refused, before = [], sys.gettrace()

    def trace(frame, event, argument):
        if event == "exception" and argument[0] is TypeError:
            text = str(argument[1])
            if "unexpected keyword" in text or "positional argument" in text:
                refused.append((frame.f_code.co_filename, frame.f_lineno, text))
        return trace

    for call in calls_of(device).values():
        sys.settrace(trace)
        try:
            call(a, b)
        finally:
            sys.settrace(before)
    assert refused == []


@pytest.mark.parametrize("exception", [KeyboardInterrupt, HandlerError])
def test_large_numpy_operands_are_interrupted(device, rng, exception, monkeypatch):
    """Parts of them go up while a thread brings results back, which then has ended."""
    running, bring_back = [], pipeline.bring_back

    def counted(downloads, token):
        running.append(token)
        try:
            bring_back(downloads, token)
        finally:
            running.remove(token)

    def ended():
        assert running == [], "it still writes to out"

    monkeypatch.setattr(pipeline, "PART_BYTES", 1 << 12)
    monkeypatch.setattr(pipeline, "bring_back", counted)
    x, out = (np.ones(4 << 10, np.float32) for _ in range(2))
    call = lambda: vg.add(x, x, out=out, device=device)  # noqa: E731
    call()
    before = state_of(device)
    assert interrupt(call, 300, rng, exception, ended) == 0
    assert state_of(device) == before
    assert (call() == 2).all()


@pytest.mark.parametrize("lower", [np.int32, np.bool_])
def test_a_failed_call_on_large_numpy_operands_leaves_no_cycle(device, lower, monkeypatch):
    monkeypatch.setattr(pipeline, "PART_BYTES", 1 << 12)
    x, out = np.ones(10 << 10, np.float32), np.zeros(10 << 10, lower)
    gc.collect()
    before = state_of(device)
    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(TypeError, match="same_kind"):
                vg.add(x, x, out=out, device=device)
            assert state_of(device) == before
        if device != "cpu":  # the thread's error is nobody's
            with pytest.raises(ZeroDivisionError):
                both_fail(vg.Device(device).backend, x, out)
            assert state_of(device) == before
    finally:
        gc.enable()


def both_fail(backend, x, out):
    """The thread cannot write the first part to `out`, and the second is not computed."""
    parts = iter([lambda part: part + 0.5])
    pipeline.run(lambda part: next(parts, lambda _: 1 / 0)(part), [x], x.shape, out, backend, 1024)


@pytest.mark.devices("sim", "cuda")
def test_an_array_brought_back_to_life(device):
    """By the __del__ of an object in a cycle with it: its own values or ValueError, for ever."""
    kept = []

    class Phoenix:
        def __init__(self, value):
            self.me, self.array, self.value = self, vg.full(100, value, device=device), value

        def __del__(self):
            kept.append(self)

    for value in range(20):
        Phoenix(value)
    gc.collect()
    assert len(kept) == 20
    others = [vg.full(100, -1.0, device=device) for _ in range(40)]
    for read in (
        lambda array: array.numpy(),
        lambda array: (array + 0.0).numpy(),
        lambda array: vg.maximum(array, others[0]).numpy(),
        lambda array: vg.add(array, 0.0, out=array).numpy(),
        lambda array: array[:].numpy(),
    ):
        for phoenix in kept:
            try:
                values = read(phoenix.array)
            except ValueError as error:
                assert "null pointer" in str(error)
            else:
                assert (values == phoenix.value).all()
    assert all((other.numpy() == -1).all() for other in others)
    del phoenix
    kept.clear()


def test_threads_make_and_drop_arrays_beside_interrupts(device, rng):
    x, stop, wrong = np.arange(50, dtype=np.float32), threading.Event(), []

    def work():
        while not stop.is_set():
            y = put(device, x)
            if not ((y + y)[1:].numpy() == 2 * x[1:]).all():
                wrong.append(y)

    a = put(device, x)
    a + a
    before = state_of(device)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        lost = interrupt(lambda: (a * 2.0 + put(device, x)).numpy(), 50, rng)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert (lost, wrong) == (0, [])
    assert state_of(device) == before


FORKS = """
import gc, json, os, signal, sys
import numpy as np
import pyvecgpu as vg
from pyvecgpu.functions import pipeline
device = {device!r}
class Forked(Exception):
    pass
children = []
def fork(*_):
    pid = os.fork()
    if pid == 0:
        raise Forked
    children.append(pid)
def live():
    return vg.counters(device)["live_arrays"], vg.memory_info(device).blocks
pipeline.PART_BYTES = 1 << 12
large = np.ones(100 << 10, np.float32)
x = vg.ones((20, 20), device=device)
def work():
    y = [x @ x, x[1:].copy(), vg.where(x > y0, x, y0)]
    return y[0].numpy()
def work_with_a_thread():
    return vg.add(large, large, device=device)
y0 = vg.zeros((), device=device)
before = live()
signal.signal(signal.SIGALRM, fork)
try:
    for number in range(8):
        call = (work, work_with_a_thread)[number % 2]
        expected = call()
        signal.setitimer(signal.ITIMER_REAL, 3e-4 * (number + 1))
        while len(children) == number:
            assert (call() == expected).all()
except Forked:
    x = None
    gc.collect()
    sys.exit(0)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
print(json.dumps([codes, (call() == expected).all().item(), live() == before]))
"""


@pytest.mark.devices("sim", "cuda")
def test_forks_in_the_middle_of_calls(device):
    """The child's handler raises: its arrays go, nobody waits for ever, the parent's stay."""
    codes, works, same = helpers.child_result(FORKS.format(device=device), *FORK_FLAGS)
    assert (codes, works, same) == ([0] * 8, True, True)
