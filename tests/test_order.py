"""Order between streams: every use of an array meets every other one on another stream.

The simulated card runs in its deferred mode: work waits until a wait needs it, and the stream that
came last is waited for first. So a wait that the library forgot gives old values, new ones too
early, or memory that is somebody else's. Each scenario runs twice, at once and deferred, and must
leave the same bits.
"""

import contextlib
import ctypes
import functools
import itertools

import helpers
import numpy as np
import pytest
import uses
from helpers import put
from uses import USES

import pyvecgpu as vg
from pyvecgpu.backends import ARRAY_PARAMETERS, METHODS, NOTHING
from pyvecgpu.dispatch import observe
from pyvecgpu.native.abi import FUNCTIONS, Allocator, DType, ScalarKind
from pyvecgpu.operations import ROWS

pytestmark = pytest.mark.devices("sim")

READ, WRITE = "read", "write"
SCRATCH = 1 << 17  # bytes of freed memory that small results are made in


class Card:
    """The simulated card with streams of the test's own."""

    def __init__(self, loaded, count):
        self.loaded = loaded
        self.streams = [loaded.pvg_stream_create(0) for _ in range(count)]

    @contextlib.contextmanager
    def on(self, number):
        """Work is for this stream."""
        assert self.loaded.pvg_stream_set_current(self.streams[number], 0) == 0
        try:
            yield
        finally:
            assert self.loaded.pvg_stream_set_current(None, 0) == 0

    def wait(self, *numbers):
        """Run what these streams have to do, one after the other, and what that waits for."""
        for number in numbers:
            assert self.loaded.pvg_stream_synchronize(self.streams[number]) == 0

    def defer(self, deferred):
        """From now on work waits; or it does not, after all that did has been done."""
        assert self.loaded.pvg_synchronize(0) == 0
        assert self.loaded.pvg_sim_set(b"deferred", deferred) == 0

    def pending(self):
        return self.loaded.pvg_sim_count(b"pending")

    def close(self):
        self.loaded.pvg_sim_set(b"deferred", 0)
        self.loaded.pvg_stream_set_current(None, 0)
        for stream in self.streams:
            assert self.loaded.pvg_stream_release(stream) == 0


@pytest.fixture
def card(simulator):
    """Seven streams; work that a failed test has deferred does not outlive it."""
    made = Card(simulator, 7)
    yield made
    made.close()


def assert_ordered(card, scenario, *about):
    """scenario(card, *about, begin) leaves the same bits when it is run at once, and deferred."""
    found = []
    for deferred in (0, 1):
        card.defer(0)
        values = scenario(card, *about, functools.partial(card.defer, deferred))
        message = card.loaded.pvg_sim_message().decode()
        card.loaded.pvg_sim_set(b"deferred", 0)
        found.append([helpers.bits(value) for value in values])
        del values
        assert not message, f"{scenario.__name__}{about[1:]}: {message}"
    assert found[0] == found[1], f"{scenario.__name__}{about[1:]}"


def touch(kind, array):
    """Read or write an array on the current stream; what came of it, to be compared."""
    if kind == READ:
        return [array.copy()]
    array[...] = vg.equal(array, array) if array.dtype == bool else 77
    return []


def arrays_of(card, use, number=2):
    """The arrays of a use, made on a stream whose memory they have.

    That is mostly a third one: whoever waits for one piece of a stream's work waits for all of it,
    and so a wait for the maker of one array would hide that one for the writer of another is gone.
    """
    with card.on(number):
        arrays = {name: put("sim", x) for name, x in uses.values(use).items()}
    card.wait(number)
    return arrays


# The scenarios: function of (card, use, what it is about, begin) -> values to compare. `begin` is
# called when everything is in its place. Stream 1 is the one of the use, 0 that of everybody else.


def after(card, use, about, begin):
    """The use comes after another stream has read or written one of its arrays."""
    kind, name = about
    arrays = arrays_of(card, use)
    begin()
    with card.on(0):
        touched = touch(kind, arrays[name])
    with card.on(1):
        given = uses.results(use.run(arrays))
    card.wait(1, 0)
    return [*arrays.values(), *given, *touched]


def before(card, use, about, begin):
    """Another stream reads or writes one of its arrays, or a result, after the use."""
    kind, name = about
    arrays = arrays_of(card, use)
    begin()
    with card.on(1):
        given = uses.results(use.run(arrays))
    place = arrays[name] if isinstance(name, str) else given[name]
    with card.on(0):
        touched = touch(kind, place)
    card.wait(0, 1)
    return [*arrays.values(), *given, *touched]


def reusing(card, use, about, begin):
    """What the use makes lies in memory that another stream still reads or writes."""
    arrays = arrays_of(card, use)
    with card.on(1):
        scratch = vg.full(scratch_of(arrays), 7, dtype="uint8", device="sim")
    card.wait(1)
    begin()
    with card.on(0):
        touched = touch(about, scratch)
    del scratch
    with card.on(1):
        given = uses.results(use.run(arrays))
    card.wait(1, 0)
    return [*arrays.values(), *given, *touched]


def reused(card, use, about, begin):
    """Its arrays, or those that it only reads, are freed and their memory written to again."""
    arrays = arrays_of(card, use, 0)
    sizes = [array.nbytes for array in arrays.values()] + [scratch_of(arrays)]
    begin()
    with card.on(1):
        given = uses.results(use.run(arrays))
    kept = [arrays[name] for name in use.written if about == READ]
    arrays.clear()
    with card.on(0):
        spoilers = [vg.full(size, 5, dtype="uint8", device="sim") for size in sizes]
    card.wait(0, 1)
    return [*kept, *given, *spoilers]


def emptied(card, use, about, begin):
    """Its arrays are freed, and the cache is emptied beside other arrays, before it has run."""
    arrays = arrays_of(card, use)
    begin()
    with card.on(1):
        given = uses.results(use.run(arrays))
    kept = [arrays[name] for name in use.written]
    arrays.clear()
    vg.empty_cache("sim")
    card.wait(1)
    return [*kept, *given]


def scratch_of(arrays):
    return max(SCRATCH, sum(array.nbytes for array in arrays.values()))


def abouts(use):
    """(scenario, what it is about) for all that can happen to a use."""
    meetings = list(itertools.product((READ, WRITE), use.arrays))
    yield from ((after, meeting) for meeting in meetings)
    yield from ((before, meeting) for meeting in meetings)
    yield from ((before, (kind, 0)) for kind in (READ, WRITE) if gives_array(use))
    for kind in (READ, WRITE):
        yield reusing, kind
        yield reused, kind
    yield emptied, None


def gives_array(use):
    arrays = {name: put("sim", x) for name, x in uses.values(use).items()}
    return any(isinstance(x, vg.Array) for x in uses.results(use.run(arrays))[:1])


@pytest.mark.parametrize("name", USES)
def test_every_use_beside_every_other(device, card, name):
    use = USES[name]
    for scenario, about in abouts(use):
        assert_ordered(card, scenario, use, about)


def test_the_uses_are_all_that_there_are(device):
    """Every method of a backend with an array in each of its places, and every operation."""
    places, codes = set(), set()
    for use in USES.values():
        arrays = {name: put("sim", x) for name, x in uses.values(use).items()}
        written = [arrays[name] for name in use.written]

        def note(call, written=written):
            codes.add(call.static.get("code"))
            places.update((call.method, name) for name in call.inputs)
            others = [n for n in METHODS[call.method][1] if n != "out"]
            if len(call.results) > 1 or METHODS[call.method][2] is NOTHING:
                places.update((call.method, name) for name in others)
            if call.results and any(is_inside(call.results[0], array) for array in written):
                places.add((call.method, "out"))
            places.add((call.method, None))

        with observe(note):
            use.run(arrays)
    for method, (parameters, _, _) in METHODS.items():
        for name in (None, *parameters):
            assert name not in (None, *ARRAY_PARAMETERS) or (method, name) in places
    assert codes >= {int(row.code) for row in ROWS if row.family != "other"}


def is_inside(view, array):
    """Whether a view's first element lies in the memory of an array."""
    if not isinstance(view, vg.Array):
        return False
    first = array.backend.pointer(array.raw)
    return first <= view.backend.pointer(view.raw) < first + array.nbytes


# ---- What no method does -------------------------------------------------------------------------


def several_readers(card, readers, begin):
    """More streams read an array than it remembers; the next writer waits for all of them."""
    x = put("sim", np.arange(1000, dtype=np.float32))
    begin()
    copies = []
    for number in range(readers):
        with card.on(number):
            copies.append(x.copy())
    with card.on(6):
        x[...] = 5
    card.wait(6, *range(readers))
    return [x, *copies]


def several_readers_of_scratch(card, readers, begin):
    """The same of memory that is freed, and handed out again to the stream that it came from."""
    return readers_of_scratch(card, 6, range(readers), begin)


def several_readers_and_its_owner(card, readers, begin):
    """The same, written by another stream and read last by the one that the memory came from."""
    readers = (*range(min(readers, 3)), 6)  # the three and the owner are all remembered
    return readers_of_scratch(card, 5, readers, begin)


def readers_of_scratch(card, writer, readers, begin):
    with card.on(6):
        x = vg.full(SCRATCH, 7, dtype="uint8", device="sim")
    card.wait(6)
    with card.on(writer):
        x[...] = 8
    card.wait(writer)
    begin()
    copies = []
    for number in readers:
        with card.on(number):
            copies.append(x.copy())
    del x
    with card.on(6):
        y = vg.full(SCRATCH, 5, dtype="uint8", device="sim")
    card.wait(6, *readers)
    return [y, *copies]


def readers_and_writers(card, seed, begin):
    """A random history of reads and writes of three arrays by seven streams."""
    rng = np.random.default_rng([13, seed])
    arrays = [put("sim", np.full(100, i, np.float32)) for i in range(3)]
    begin()
    copies = []
    for step in range(40):
        with card.on(rng.integers(7)):
            a, b = arrays[rng.integers(3)], arrays[rng.integers(3)]
            if rng.integers(3) == 0:
                vg.add(a, b + float(step), out=a)
            else:
                copies.append(a * 2.0)
            if rng.integers(4) == 0:  # its memory goes back to the stream that made it
                copies.append(copies.pop(rng.integers(len(copies))) + 1.0 if copies else a.copy())
    card.wait(*rng.permutation(7))
    return [*arrays, *copies]


@pytest.mark.parametrize("count", range(1, 7))
@pytest.mark.parametrize(
    "scenario", [several_readers, several_readers_of_scratch, several_readers_and_its_owner]
)
def test_many_readers(device, card, scenario, count):
    assert_ordered(card, scenario, count)


@pytest.mark.parametrize("seed", range(30))
def test_random_histories(device, card, seed):
    assert_ordered(card, readers_and_writers, seed)


@pytest.mark.parametrize("allocator", [Allocator.ALLOCATOR_DIRECT, Allocator.ALLOCATOR_DEBUG])
@pytest.mark.parametrize("name", ["add", "sum, out", "product", "dense", "upload", "download"])
def test_allocators_that_free_at_once(device, card, allocator, name):
    use = USES[name]
    with helpers.allocator(device, allocator):
        for scenario, about in ((reusing, READ), (reused, READ), (reused, WRITE), (emptied, None)):
            assert_ordered(card, scenario, use, about)
    assert vg.counters(device)["canary_errors"] == 0


class Alias:
    """Memory that the library knows by two names, `own` and `other`, and so cannot put in order."""

    def __init__(self, card):
        self.loaded, self.shape = card.loaded, (ctypes.c_int64 * 1)(100)
        self.own, self.pending_at_the_end = self.new(), []
        self.deleter = FUNCTIONS["pvg_array_wrap"][1][6](
            lambda _: self.pending_at_the_end.append(card.pending())
        )
        memory = self.loaded.pvg_array_data(self.own)
        self.other = self.loaded.pvg_array_wrap(
            memory, 0, DType.FLOAT32, 1, self.shape, None, self.deleter, None
        )
        self.write(self.own, 1.0)

    def new(self):
        return self.loaded.pvg_array_empty(0, DType.FLOAT32, 1, self.shape)

    def write(self, handle, value):
        number = ctypes.c_double(value)
        assert self.loaded.pvg_fill(handle, ScalarKind.SCALAR_FLOAT, ctypes.byref(number)) == 0

    def read(self):
        """The first element by the other name, as whoever does not wait finds it."""
        result = np.empty(100, np.float32)
        assert self.loaded.pvg_copy_to_host(self.other, result.ctypes.data, None) == 0
        return float(result[0])

    def release(self, *handles):
        for handle in handles:
            assert self.loaded.pvg_array_release(handle) == 0


def wait_for_stream(loaded, event, streams):
    return loaded.pvg_stream_synchronize(streams[0])


def wait_for_device(loaded, event, streams):
    return loaded.pvg_synchronize(0)


def empty_the_cache(loaded, event, streams):
    return loaded.pvg_empty_cache(0)


def release_the_stream(loaded, event, streams):
    return loaded.pvg_stream_release(streams.pop(0))


def wait_for_event(loaded, event, streams):
    return loaded.pvg_event_record(event, streams[0]) or loaded.pvg_event_synchronize(event)


def let_a_stream_wait(loaded, event, streams):
    recorded = loaded.pvg_event_record(event, streams[0])
    return recorded or loaded.pvg_stream_wait_event(streams[-1], event)


def ask_until_done(loaded, event, streams):
    done = ctypes.c_int(-1)
    assert loaded.pvg_event_record(event, streams[0]) == 0
    assert loaded.pvg_event_query(event, done) == 0 and done.value == 0
    return loaded.pvg_event_query(event, done) or done.value != 1


@pytest.mark.parametrize(
    "wait",
    [wait_for_stream, wait_for_device, empty_the_cache, release_the_stream, wait_for_event,
     let_a_stream_wait, ask_until_done],
)  # fmt: skip
def test_waits(device, card, wait):
    """After each, memory is read by a name of which the library does not know who wrote to it."""
    alias, event = Alias(card), card.loaded.pvg_event_create(0)
    card.defer(1)
    with card.on(0):
        alias.write(alias.own, 2.0)
    with card.on(-1):
        assert alias.read() == 1.0, "without a wait it is too early"
        assert not wait(card.loaded, event, card.streams)
        assert alias.read() == 2.0
    assert card.loaded.pvg_event_release(event) == 0
    alias.release(alias.own, alias.other)


@pytest.mark.parametrize("readers", range(6))
def test_a_deleter_is_called_after_all_work(device, card, readers):
    """The writer's and every reader's: from then on the memory is its owner's again."""
    alias = Alias(card)
    card.defer(1)
    with card.on(0):
        alias.write(alias.other, 2.0)
    copies = []
    for number in range(1, 1 + readers):
        with card.on(number):
            copies.append(alias.new())
            assert card.loaded.pvg_copy(alias.other, copies[-1]) == 0
    assert card.pending() > 0
    alias.release(alias.other)
    assert alias.pending_at_the_end == [0]
    alias.release(alias.own, *copies)


# ---- Recordings ----------------------------------------------------------------------------------


def recorded(card):
    """Arrays a and b, `made`, which is in the graph's memory, and `out`; and the launch."""
    arrays = {n: put("sim", np.full(300, i, np.float32)) for i, n in enumerate(("a", "b", "out"))}

    def work():
        arrays["made"] = arrays["a"] + arrays["b"]
        vg.multiply(arrays["made"], 2.0, out=arrays["out"])

    launch = arrays["a"].backend.record(work)
    launch()
    return arrays, launch


def launch_beside(card, about, begin):
    """A launch before or after another stream's read or write of one of its arrays."""
    kind, name, launch_first = about
    arrays, launch = recorded(card)
    begin()
    touched = []
    steps = [(1, launch), (0, lambda: touched.extend(touch(kind, arrays[name])))]
    for number, call in steps if launch_first else steps[::-1]:
        with card.on(number):
            call()
    card.wait(*((0, 1) if launch_first else (1, 0)))
    return [*arrays.values(), *touched]


def graph_released(card, begin):
    """The memory of a graph is handed out again while its launch, and a reader, have yet to run."""
    vg.empty_cache("sim")  # so that the default stream has no other memory
    with card.on(2):
        arrays, launch = recorded(card)
    copies, kept = [], arrays["out"]
    begin()
    with card.on(1):
        launch()
    with card.on(0):
        copies.append(arrays["made"].copy())
    del launch
    arrays.clear()
    spoilers = [vg.full(size, 5, dtype="uint8", device="sim") for size in (1200, SCRATCH)]
    assert card.loaded.pvg_stream_synchronize(card.loaded.pvg_stream_current(0)) == 0
    card.wait(0, 1)
    return [kept, *copies, *spoilers]


def launch_over_released(card, begin):
    """A launch writes to the graph's memory, of which another stream reads a part that is freed."""
    arrays, launch = recorded(card)
    arrays["a"][...] = 9
    begin()
    with card.on(0):
        copy = arrays.pop("made").copy()
    with card.on(1):
        launch()
    card.wait(1, 0)
    return [*arrays.values(), copy]


@pytest.mark.parametrize("launch_first", [True, False], ids=["launched first", "launched last"])
@pytest.mark.parametrize("name", ["a", "b", "out", "made"])
@pytest.mark.parametrize("kind", [READ, WRITE])
def test_launches_beside_everything_else(device, card, kind, name, launch_first):
    about = kind, name, launch_first
    assert_ordered(card, launch_beside, about)


@pytest.mark.parametrize("scenario", [launch_over_released, graph_released])
def test_memory_of_a_graph(device, card, scenario):
    assert_ordered(card, scenario)
