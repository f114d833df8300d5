"""What threads share changes as if by one after the other, wherever one comes between.

Each call here is interrupted at each of its steps in Python, one after the other, and there another
thread does the other call, or waits for a lock. What both give and leave has to be what they would
in one of the two orders.
"""

import functools
import itertools
import sys
import threading
from types import SimpleNamespace

import pytest

import pyvecgpu as vg
from pyvecgpu import streams
from pyvecgpu.native import choices, library, toolkit
from pyvecgpu.native.abi import DType, Option
from pyvecgpu.random import shared

WAIT = 0.01  # seconds that a thread is given, which may have to wait for a lock


class Between:
    """Does a call in another thread before the nth step, in a file, of those of this thread."""

    def __init__(self, nth, file, call):
        self.left, self.file, self.found = nth, file, []
        self.thread = threading.Thread(target=lambda: self.found.append(call()))

    def enter(self, frame, event, argument):
        if frame.f_code.co_filename != self.file:
            return None
        frame.f_trace_opcodes = True
        return self.step

    def step(self, frame, event, argument):
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                frame.f_trace = None
                self.thread.start()
                self.thread.join(WAIT)
        return self.step

    def run(self, call):
        """Return what this thread's call and the other one give; None: there are no more steps."""
        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # CPython 3.12 asks once, when tracing is set
        sys.settrace(self.enter)
        try:
            mine = call()
        finally:
            sys.settrace(before)
        if self.left > 0:
            return None
        self.thread.join()
        return mine, *self.found


def outcomes(file, first, second, make, left):
    """Yield ((what first and second give), what they leave), one for each step of first."""
    for nth in itertools.count(1):
        world = make()
        both = functools.partial(first, world), functools.partial(second, world)
        found = Between(nth, file, both[1]).run(both[0])
        if found is None:
            assert nth > 1, "there was nothing to interrupt"
            return
        yield found, left(world)


def assert_one_after_the_other(module, first, second, make, left):
    """`make` gives what both are called with and change; `left`: what there is then, compared."""
    expected = []
    for turned in (False, True):
        world = make()
        found = [call(world) for call in ((second, first) if turned else (first, second))]
        expected.append((tuple(found[::-1] if turned else found), left(world)))
    for found in outcomes(module.__file__, first, second, make, left):
        assert found in expected


# Random numbers -----------------------------------------------------------------------------------

PLACE = vg.random.default_rng(3).state
USES = {
    "read": lambda rng: rng.state,
    "set": lambda rng: setattr(rng, "state", PLACE),
    "take": lambda rng: rng._take(5),
    "take more": lambda rng: rng._take(2**63),
}


def generator():
    rng = vg.random.default_rng(1)
    rng._take(9)
    return rng


@pytest.mark.parametrize("second", USES)
@pytest.mark.parametrize("first", USES)
def test_generators(first, second):
    module = sys.modules["pyvecgpu.random.generator"]
    left = USES["read"]
    assert_one_after_the_other(module, USES[first], USES[second], generator, left)


def test_the_process_has_one_generator(monkeypatch):
    def make():
        monkeypatch.setattr(shared, "_own", None)

    def use(_):
        return shared._shared()

    for (mine, other), left in outcomes(shared.__file__, use, use, make, lambda _: shared._own):
        assert mine is other is left


# What is loaded or opened once --------------------------------------------------------------------


def once(monkeypatch, module, name, use):
    """Assert that both threads get the same, which was made once, from a module's dict `name`."""

    def make():
        monkeypatch.setattr(module, name, {})

    def left(_):
        return list(getattr(module, name).values())

    for (mine, other), kept in outcomes(module.__file__, use, use, make, left):
        assert mine is other
        assert len(kept) == 1 and kept[0] is mine


def test_libraries_are_loaded_once(monkeypatch):
    monkeypatch.setattr(library, "Library", lambda kind: SimpleNamespace(kind=kind))
    once(monkeypatch, library, "_libraries", lambda _: library.load("sim"))


def test_devices_are_opened_once(monkeypatch):
    module = sys.modules["pyvecgpu.device"]  # the name in the package is a function's
    once(monkeypatch, module, "_devices", lambda _: vg.Device("cpu"))


def test_libraries_of_mathematics_are_loaded_once(monkeypatch):
    monkeypatch.setattr(toolkit, "Library", lambda *arguments: SimpleNamespace(given=arguments))
    monkeypatch.setattr(toolkit, "_found", lambda name, signatures: (name, signatures))
    once(monkeypatch, toolkit, "_libraries", lambda _: toolkit.load("cuFFT", {}))


def test_contexts_are_retained_once(monkeypatch):
    """The process's primary context of a card, which nothing releases."""

    def make():
        calls = []
        driver = SimpleNamespace(
            cuDeviceGet=lambda place, index: 0,
            cuDevicePrimaryCtxRetain=lambda place, device: calls.append("retain") or 0,
            cuCtxPushCurrent_v2=lambda context: calls.append("push") or 0,
            cuCtxPopCurrent_v2=lambda place: calls.append("pop") or 0,
        )
        monkeypatch.setattr(toolkit.ctypes, "CDLL", lambda name: driver)
        monkeypatch.setattr(toolkit, "_contexts", {})
        return calls

    def use(_):
        with toolkit.on_device(0):
            return len(toolkit._contexts)

    for found, calls in outcomes(toolkit.__file__, use, use, make, sorted):
        assert found == (1, 1)
        assert calls == ["pop", "pop", "push", "push", "retain"]


# What all libraries are told ----------------------------------------------------------------------


class Told:
    """A library that keeps what it is told."""

    def __init__(self, codes):
        self.codes = dict(codes)

    def set_option(self, option, code):
        self.codes[option] = int(code)


DTYPE = Option.OPTION_DEFAULT_FLOAT
CHOICES = {
    "float64": lambda _: choices.choose(DTYPE, DType.FLOAT64),
    "float32": lambda _: choices.choose(DTYPE, DType.FLOAT32),
    "a new library": lambda _: choices.follow(Told({})),
}


@pytest.mark.parametrize("second", CHOICES)
@pytest.mark.parametrize("first", CHOICES)
def test_all_libraries_know_the_same(monkeypatch, first, second):
    def make():
        codes = {DTYPE: int(DType.FLOAT16)}
        monkeypatch.setattr(choices, "_libraries", [Told(codes), Told(codes)])
        monkeypatch.setattr(choices, "_codes", codes)

    def left(_):
        return [one.codes for one in choices._libraries]

    calls = CHOICES[first], CHOICES[second]
    for _, told in outcomes(choices.__file__, *calls, make, left):
        assert len(told) == 2 + (first, second).count("a new library")
        assert all(codes == choices._codes for codes in told)


# Streams ------------------------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
def test_streams_are_handed_out_in_turn(device):
    """Two that ask for a stream get two, and no more are made."""
    where = vg.Device(device)

    def use(_):
        return streams._own(where)

    def make():
        streams.release(where)

    def left(_):
        return streams._pools[where][0]

    for found, owners in outcomes(streams.__file__, use, use, make, left):
        assert len(owners) == 2
        assert {id(one) for one in found} == {id(one) for one in owners}


class Theirs:
    """Streams of somebody else, by their addresses."""

    def __init__(self, where, count):
        functions = where.backend.functions
        self.owners = [functions.pvg_stream_create(where.index) for _ in range(count)]
        self.addresses = [functions.pvg_stream_handle(owner) for owner in self.owners]


def known(where):
    return [owner for (of, _), (owner, _) in streams._known.items() if of is where]


@pytest.mark.devices("sim", "cuda")
def test_streams_of_others_are_wrapped_once(device):
    where = vg.Device(device)
    theirs = Theirs(where, 1)

    def use(_):
        return streams._wrapped(theirs.addresses[0], where)

    def make():
        streams.release(where)

    for (mine, other), owners in outcomes(streams.__file__, use, use, make, lambda _: known(where)):
        assert mine is other
        assert len(owners) == 1 and owners[0] is mine
    streams.release(where)


@pytest.mark.devices("sim", "cuda")
def test_streams_are_forgotten_once(device):
    """Two that let go of all streams at once: each goes once, whoever is first."""
    where = vg.Device(device)
    theirs = Theirs(where, 2)

    def make():
        for address in theirs.addresses:
            streams._wrapped(address, where)
        streams._own(where)

    def use(_):
        return streams.release(where)

    def left(_):
        return len(known(where)), where in streams._pools

    for found, kept in outcomes(streams.__file__, use, use, make, left):
        assert found == (None, None)
        assert kept == (0, False)
