"""Steps of training in a recording: launched n times, the bits of n plain steps.

What changes from one step to the next, numbers of steps, rates of a schedule and random numbers, is
the host's, and read anew at each launch; see pyvecgpu/backends/recording.py.
"""

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.backends.recording import WORDS, Recording
from pyvecgpu.short_views import made

nn, optim = vg.nn, vg.optim
pytestmark = pytest.mark.devices("sim", "cuda")
OPTIMISERS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.01}),
    ("AdamW", {"betas": (0.8, 0.9)}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
]


class Program:
    """A network, its data and its optimiser; step() is one step of its training."""

    def __init__(self, device, name, options, dtype="float32", p=0.0, again=False):
        vg.random.seed(3)
        layers = [nn.Linear(6, 16), nn.ReLU(), nn.LayerNorm(16), nn.Dropout(p), nn.Linear(16, 4)]
        self.net = nn.Sequential(*layers).to(device="cpu").to(device=device, dtype=dtype)
        self.optimiser = getattr(optim, name)(self.net.parameters(), lr=0.05, **options)
        rng = np.random.default_rng(2)
        self.x = put(device, rng.standard_normal((10, 6)).astype(np.float32)).astype(dtype)
        self.labels = put(device, rng.integers(0, 4, 10))
        self.loss = put(device, np.zeros((), np.float32)).astype(dtype)
        self.forward = vg.checkpoint(self.net) if again else self.net
        self.backend = self.x.backend
        vg.random.seed(5)

    def step(self):
        loss = nn.functional.cross_entropy(self.forward(self.x), self.labels)
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
        self.optimiser.step()
        self.loss[...] = loss.detach()

    def place(self):
        """Everything that a step changes."""
        params = [*self.net.parameters()]
        states = [self.optimiser.state.of(p) for p in params]  # to look at: not given out
        found = [(k, n, x if isinstance(x, int) else helpers.bits(x))
                 for k, state in enumerate(states) for n, x in state.items()]  # fmt: skip
        arrays = [helpers.bits(p.detach()) for p in (*params, self.loss)]
        return arrays, found, vg.random.shared._shared().state


def compare(device, name, options, launches=4, **how):
    """Return two programs after the same steps, one of which was recorded, and its launch."""
    plain, recorded = (Program(device, name, options, **how) for _ in range(2))
    for _ in range(launches + 1):
        plain.step()
    expected = plain.place()
    vg.random.seed(5)
    recorded.step()
    before = recorded.place()
    launch = recorded.backend.record(recorded.step)
    assert recorded.place() == before, "recording has done nothing"
    for _ in range(launches):
        launch()
    assert recorded.place() == expected
    return plain, recorded, launch


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("name", "options"), OPTIMISERS, ids=str)
def test_a_whole_step(device, name, options, dtype):
    _, recorded, _ = compare(device, name, options, dtype=dtype)
    for state in recorded.optimiser.state_dict()["state"].values():
        assert state.get("step", 5) == 5 and type(state.get("step", 5)) is int


@pytest.mark.parametrize("again", [False, True], ids=["kept", "checkpoint"])
def test_dropout_has_the_next_numbers_at_each_launch(device, again):
    _, recorded, launch = compare(device, "SGD", {}, p=0.5, again=again)
    with vg.no_grad():
        recorded.optimiser.param_groups[0]["lr"] = 0.0
    losses = []
    for _ in range(6):
        launch()
        losses.append(recorded.loss.item())
    assert len(set(losses)) > 3


@pytest.mark.parametrize(("name", "options"), OPTIMISERS, ids=str)
def test_rates_of_a_schedule_and_plain_steps_between(device, name, options):
    plain, recorded, launch = compare(device, name, options)
    for program, step in ((plain, plain.step), (recorded, launch)):
        vg.random.seed(6)
        schedule = optim.lr_scheduler.StepLR(program.optimiser, 1, gamma=0.5)
        for number in range(6):
            (program.step if number == 3 else step)()
            schedule.step()
    assert plain.place() == recorded.place()


def test_a_copy_only_when_numbers_change(device):
    def copies(launch):
        before = vg.counters(device)
        launch()
        after = vg.counters(device)
        assert after["waits"] == before["waits"]
        return after["copies_to_device"] - before["copies_to_device"]

    launch = compare(device, "SGD", {"momentum": 0.9})[2]
    assert copies(launch) == 0
    _, recorded, launch = compare(device, "AdamW", {}, p=0.5)
    assert copies(launch) == 2  # of float64 and of uint64
    for number in range(3):
        recorded.optimiser.param_groups[0]["lr"] = 0.1 * number
        assert copies(launch) == 2


def test_groups_that_differ_later(device):
    """Two groups with the same options are two launches of a recording: rates may change apart."""

    def make():
        params = [put(device, np.full(n, 2.0, np.float32)).requires_grad_() for n in (3, 5)]
        for p in params:
            p.grad = vg.ones_like(p)
        return params, optim.Adam([{"params": [p]} for p in params], lr=0.5)

    (params, one), (others, other) = make(), make()
    for optimiser in (one, other):
        optimiser.step()
    launch = params[0].backend.record(one.step)
    for number in range(3):
        for optimiser in (one, other):
            optimiser.param_groups[1]["lr"] = 0.5 - 0.1 * number
        launch()
        other.step()
    for p, q in zip(params, others, strict=True):
        helpers.assert_same(p.detach(), q.detach().numpy())


def test_what_was_given_out_stays(device):
    _, recorded, launch = compare(device, "AdamW", {})
    state = recorded.optimiser.state_dict()["state"][0]
    mine = recorded.optimiser.state[recorded.net[0].weight]
    before = [helpers.bits(s["exp_avg"]) for s in (state, mine)], state["step"]
    launch()
    assert ([helpers.bits(s["exp_avg"]) for s in (state, mine)], state["step"]) == before
    assert recorded.optimiser.state_dict()["state"][0]["step"] == state["step"] + 1


def test_states_that_are_others_by_now(device):
    _, recorded, launch = compare(device, "Adam", {})
    recorded.optimiser.load_state_dict(recorded.optimiser.state_dict())
    before = recorded.place()
    with pytest.raises(RuntimeError, match="other states"):
        launch()
    assert recorded.place() == before
    recorded.step()  # plain steps go on, and so does another recording
    again = recorded.backend.record(recorded.step)
    again()
    assert recorded.optimiser.state_dict()["state"][0]["step"] == 5 + 2


def test_parameters_that_are_at_different_steps_by_now(device):
    params = [put(device, np.ones(3, np.float32)).requires_grad_() for _ in range(2)]
    optimiser = optim.Adam(params, lr=0.1)
    for p in params:
        p.grad = vg.ones_like(p)
    optimiser.step()
    launch = params[0].backend.record(optimiser.step)
    params[0].grad = None
    optimiser.step()
    with pytest.raises(RuntimeError, match=r"next one is \[2, 3\]"):
        launch()
    assert params[0].tolist() != params[1].tolist()


def test_rates_that_are_arrays_and_updates_of_ones_own(device):
    class Momentum(optim.Optimizer):
        def update(self, p, g, state, group):
            mean = state.get("mean", g) * 0.5 + g
            return p - mean * group["lr"], {"mean": mean}

    p = put(device, np.ones(3, np.float32)).requires_grad_()
    p.grad = vg.ones_like(p)
    own = Momentum([p], {"lr": 0.5})
    own.step()
    with pytest.raises(ValueError, match="recording a graph: an update"):
        p.backend.record(own.step)
    adam = optim.Adam([p], lr=0.5)
    adam.step()
    launch = p.backend.record(adam.step)
    adam.param_groups[0]["lr"] = put(device, np.float32(0.5))
    with pytest.raises(RuntimeError, match="rates that are numbers"):
        launch()


def test_a_recording_that_is_given_up(device):
    """The generator and the states are as before, and the next recording is whole."""
    program = Program(device, "Adam", {}, p=0.5)
    program.step()
    before = program.place()

    def work():
        program.step()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        program.backend.record(work)
    assert program.place() == before and program.backend.recording() is None
    program.backend.record(program.step)()
    assert program.place() != before


def test_a_recording_within_another_is_refused(device):
    """And leaves that one whole."""
    plain, program = (Program(device, "Adam", {}, p=0.5) for _ in range(2))
    for _ in range(3):
        plain.step()
    vg.random.seed(5)
    program.step()

    def work():
        with pytest.raises(ValueError, match="recording a graph"):
            program.backend.record(program.step)
        program.step()

    launch = program.backend.record(work)
    launch()
    launch()
    assert program.place() == plain.place()


def test_more_steps_than_a_recording_has_room_for(device):
    p = put(device, np.ones(3, np.float32)).requires_grad_()
    p.grad = vg.ones_like(p)
    optimiser = optim.SGD([p], lr=0.5)
    with pytest.raises(ValueError, match="recording a graph: it has too many steps"):
        p.backend.record(lambda: [optimiser.step() for _ in range(100)])
    assert p.tolist() == [1.0] * 3


# Numbers that are read anew at each launch --------------------------------------------------------


def test_numbers_are_written_when_they_have_changed(device):
    """As many of a kind as there is room for, one copy for all, and none of what is not used."""
    backend, numbers, calls = vg.Device(device).backend, np.arange(float(WORDS)), []
    recording = Recording(backend)
    few = made(backend, recording.renewed(np.dtype("float64"), 3, lambda: numbers[:3]), ())
    many = recording.renewed(
        np.dtype("float64"), WORDS - 3, lambda: numbers[3:], lambda: calls.append("done")
    )
    with pytest.raises(ValueError, match="too many steps"):
        Recording(backend).renewed(np.dtype("uint64"), WORDS + 1, None)
    copies = vg.counters(device)["copies_to_device"]
    for step, written in ((0, 1), (0, 0), (5, 1), (0, 0), (-0.0, 0), (1, 1)):
        numbers[7:] += step
        before = vg.counters(device)["copies_to_device"]
        recording.launch(lambda: calls.append("work"))
        assert vg.counters(device)["copies_to_device"] - before == written
        assert calls[-2:] == ["work", "done"]
    assert vg.counters(device)["copies_to_device"] - copies == 3 and len(calls) == 12
    np.testing.assert_array_equal(few.numpy(), numbers[:3])
    np.testing.assert_array_equal(made(backend, many, ()).numpy(), numbers[3:])
    recording.at_end(lambda: calls.append("first"))
    recording.at_end(lambda: calls.append("second"))
    recording.end()
    assert calls[12:] == ["first", "second"]


@pytest.mark.parametrize("lacking", ["empty", "slice"])
def test_no_memory_for_numbers(device, lacking):
    class Backend:
        def empty(self, *_):
            return lacking != "empty"

        def slice(self, *_):
            return lacking != "slice"

        def fail(self):
            raise MemoryError

    with pytest.raises(MemoryError):
        Recording(Backend()).renewed(np.dtype("float64"), 1, None)
