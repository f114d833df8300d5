"""Whole steps of training: the same bits twice, torch's losses, nothing copied, and all or nothing.

The networks are those of the demo and of `bench training`, which have all that a network can have
that remembers something: statistics, random numbers, states of optimisers.
"""

import gc

import helpers
import numpy as np
import pytest
from test_faults import asked_for

import pyvecgpu as vg
from pyvecgpu import nn
from pyvecgpu.bench import libraries, training
from pyvecgpu.demo import images, networks
from pyvecgpu.demo.training import moved, step
from pyvecgpu.native.abi import Allocator

STEPS = {"cpu": 200, "cuda": 200, "sim": 6}
MODELS = ("perceptron", "cnn", "transformer")
BATCH = 16


def digits_on(device, count=64):
    data = images.load(None, 0)
    return [vg.asarray(x[:count], device=device) for x in data[:2]]


def bits_of(state):
    """The bits of all arrays in a state, and its numbers, in their order."""
    if isinstance(state, dict):
        return [(key, bits_of(value)) for key, value in state.items()]
    if isinstance(state, (list, tuple)):
        return [bits_of(value) for value in state]
    return helpers.bits(state.detach()) if isinstance(state, vg.Array) else state


# The same bits ------------------------------------------------------------------------------------


def trained(model, device, steps):
    """The losses and the bits of all that a training has left, after so many steps."""
    vg.random.seed(3)
    net = networks.NETWORKS[model](8, 8, 10, width=16).to(device)
    optimiser = vg.optim.AdamW(net.parameters(), lr=2e-3)
    pixels, labels = digits_on(device)
    rng = vg.random.default_rng(3, device=device)
    samples = vg.data.TensorDataset(pixels, labels)
    loader = vg.data.DataLoader(samples, BATCH, shuffle=True, generator=rng)
    losses = []
    while len(losses) < steps:
        for x, y in loader:
            if len(losses) < steps:
                losses.append(step(net, optimiser, moved(x, rng, 0.6, 0.1), y, clip=1.0))
    return [loss.item() for loss in losses], bits_of([net.state_dict(), optimiser.state_dict()])


@pytest.mark.parametrize("model", MODELS)
def test_two_trainings_give_the_same_bits(device, model):
    steps = STEPS[device.split(":")[0]]
    losses, bits = trained(model, device, steps)
    kept = [vg.ones(n, device=device) for n in (1000, 70_000, 3)]  # other memory the second time
    again, same = trained(model, device, steps)
    del kept
    assert len(losses) == steps and np.isfinite(losses).all() and losses[-1] < losses[0]
    assert again == losses and same == bits


def test_a_norm_beyond_float32(device):
    large = np.array([1e20, 1e20], np.float32)
    weight = vg.zeros(2, device=device).requires_grad_()
    weight.grad = vg.asarray(large, device=device)
    wide = vg.asarray(large.astype("f8"), device=device)
    length = vg.linalg.vector_norm(weight.grad)
    assert length.dtype == np.float32 and abs(length.item() / 2**0.5 / 1e20 - 1) <= 1e-6
    assert vg.linalg.norm(weight.grad[None], keepdims=True).item() == length.item()
    assert abs(vg.linalg.vector_norm(wide).item() / 2**0.5 / 1e20 - 1) <= 1e-6
    total = nn.utils.clip_grad_norm_([weight], 1.0).item()  # which is summed in float64
    assert abs(total / 2**0.5 / 1e20 - 1) <= 1e-6
    assert np.abs(weight.grad.numpy() - 0.5**0.5).max() <= 1e-6


# Beside torch -------------------------------------------------------------------------------------

TASKS = [
    training.Task("perceptron", training.perceptron(64), (32, 784), 32, 10),
    training.Task("cnn", training.lenet, (16, 1, 28, 28), 16, 10),
    training.Task(
        "transformer",
        training.transformer(32, 2, 4, 50),
        (4, 16),
        64,
        50,
        optimiser="AdamW",
        options={"lr": 1e-3},
        words=50,
    ),
]


@pytest.mark.needs("torch")
@pytest.mark.devices("cuda")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize(
    ("dtype", "steps", "tolerance"), [("float64", 200, 1e-8), ("float32", 20, 1e-4)]
)
def test_torch_has_the_same_losses(device, task, dtype, steps, tolerance):
    both = libraries.open_libraries(vg.Device(device), ["torch"], quick=True)
    start = training.first_weights(both[0], task)
    with training.precision(both, "float32"):
        ours, theirs = (training.Training(x, task, start, dtype).losses(steps) for x in both)
    assert len(ours) == len(theirs) == steps
    assert training.error_of(ours, theirs) <= tolerance


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_devices_have_the_same_losses(device, task):
    """As on the CPU, in float64: what torch is compared with on a card, on the simulated one."""
    found = []
    for name in ("cpu", device):
        (library,) = libraries.open_libraries(vg.Device(name), [], quick=True)
        start = training.first_weights(library, task)
        found.append(training.Training(library, task, start, "float64").losses(3))
    assert np.isfinite(found[0]).all() and found[0][0] != found[0][2]
    assert training.error_of(*found) <= 1e-10


# Nothing is copied, nothing waits -----------------------------------------------------------------

OPTIMISERS = {
    "SGD": lambda params: vg.optim.SGD(params, lr=0.1, momentum=0.9),
    "Adam": lambda params: vg.optim.Adam(params, amsgrad=True),
    "AdamW": lambda params: vg.optim.AdamW(params),
    "RMSprop": lambda params: vg.optim.RMSprop(params, momentum=0.9, centered=True),
}
HELD = ("copies_to_device", "copies_to_host", "waits")


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("model", networks.NETWORKS)
def test_steps_stay_on_the_device(device, model, optimiser):
    net = networks.NETWORKS[model](8, 8, 10, width=8).to(device)
    steps = OPTIMISERS[optimiser](net.parameters())
    schedule = vg.optim.lr_scheduler.CosineAnnealingLR(steps, 10)
    pixels, labels = digits_on(device, 4)
    rng = vg.random.default_rng(0, device=device)
    step(net, steps, pixels, labels, clip=1.0)  # may fetch what is kept: kernels, memory
    vg.synchronize(device)
    before = vg.counters(device)
    for _ in range(2):
        step(net, steps, moved(pixels, rng, 0.6, 0.1), labels, clip=1.0)
        schedule.step()
    after = vg.counters(device)
    assert after["launches"] > before["launches"]
    assert {name: after[name] - before[name] for name in HELD} == dict.fromkeys(HELD, 0)


# All or nothing -----------------------------------------------------------------------------------


class Small(nn.Module):
    """Statistics, random numbers, a convolution and a layer, as small as they can be."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2)
        self.dropout, self.scores = nn.Dropout(0.3), nn.Linear(8, 3)

    def forward(self, x):
        x = nn.functional.relu(self.norm(self.conv(x)))
        return self.scores(self.dropout(x.reshape(x.shape[0], -1)))


class Attempt:
    """A network in the middle of a training, and what its next step of fit leaves."""

    def __init__(self, device, optimiser):
        vg.random.seed(4)
        self.net = Small().to(device)
        self.optimiser = OPTIMISERS[optimiser](self.net.parameters())
        rng = np.random.default_rng(4)
        pixels = vg.asarray(rng.standard_normal((4, 1, 3, 3)).astype("f4"), device=device)
        self.batches = [(pixels, vg.asarray([0, 1, 2, 1], device=device))]
        self.step()  # so that there are states

    def step(self):
        nn.fit(
            self.net,
            self.batches,
            nn.CrossEntropyLoss(),
            self.optimiser,
            epochs=1,
            clip_norm=1.0,
            progress=False,
        )

    def state(self):
        place = vg.random._shared().state
        return bits_of([self.net.state_dict(), self.optimiser.state_dict()]), place


@pytest.mark.devices("sim")
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_step_without_memory_changes_nothing(device, simulator, optimiser):
    """Every request for memory of a step is refused once; then the same step gives the same."""
    with helpers.allocator(device, Allocator.ALLOCATOR_DIRECT):
        attempt = Attempt(device, optimiser)
        before, asked = attempt.state(), asked_for(simulator, "malloc")
        attempt.step()
        requests, expected = asked_for(simulator, "malloc") - asked, attempt.state()
        assert requests > 40 and expected != before
        assert all(a != b for a, b in zip(before[0], expected[0], strict=True))
        assert before[1] != expected[1], "the generator goes on"
        refused = 0
        attempt = Attempt(device, optimiser)
        for nth in range(1, requests + 1):
            simulator.pvg_sim_fail(b"malloc", nth)
            try:
                attempt.step()
            except vg.OutOfMemoryError as error:
                error.__traceback__ = None
                refused += 1
            finally:
                simulator.pvg_sim_fail(b"malloc", 0)
            state = attempt.state()
            if state != before:  # refused after the step, while losses were summed, or not at all
                assert state == expected, f"request {nth}"
                attempt = Attempt(device, optimiser)
        assert refused > 0.9 * requests
        attempt.step()
        assert attempt.state() == expected
        del attempt
        gc.collect()


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("place", ["forward", "backward", "step", "behind"])
def test_a_step_of_a_loop_is_done_as_a_whole_or_not(device, error, place):
    """Statistics, random numbers, weights and states are all those before, or all those behind."""

    def attempt(fails):
        with vg.nn.atomic(net):
            y = net(x)
            if fails == "forward":
                raise error
            y.sum().backward()
            if fails == "backward":
                raise error
            if fails == "step":
                optimiser.zero_grad()
                raise error
            optimiser.step()
            if fails == "behind":
                raise error

    def state():
        found = [net.state_dict(), optimiser.state_dict(), vg.random._shared().state]
        return bits_of(found)

    vg.random.seed(7)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)).to(device)
    optimiser = vg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x = vg.asarray(np.arange(12.0, dtype="f4").reshape(3, 4), device=device)
    before = state()
    with pytest.raises(error):
        attempt(place)
    first = state()
    parts = [a != b for a, b in zip(first, before, strict=True)]
    assert parts == [place == "behind"] * len(parts), "net, optimiser, random numbers"
    if place != "behind":
        optimiser.zero_grad()
        attempt(None)
    done = state()
    vg.random.seed(7)
    assert all(a != b for a, b in zip(done, before, strict=True))


class Counting(nn.Module):
    """Buffers of every kind, which change in the ways that a forward pass may have."""

    WAYS = ("in place", "another", "none before", "none behind", "new", "tracked", "computed")

    def __init__(self, way):
        super().__init__()
        self.way, self.layer = way, nn.Linear(4, 2)
        self.register_buffer("count", None if way == "none before" else vg.zeros(2))
        self.register_buffer("other", self.count if way == "another" else vg.ones(3))
        if way == "tracked":
            self.count.requires_grad_()
        if way == "computed":
            self.count = self.layer.weight[:, 0] * 2.0

    def forward(self, x):
        if self.way in ("in place", "tracked", "computed"):
            with vg.no_grad():
                self.count += 1.0
        elif self.way == "another":
            with vg.no_grad():
                self.count += 1.0
                self.count = self.count + 1.0
        elif self.way == "none before":
            self.count = vg.ones(2)
        elif self.way == "none behind":
            self.count = None
        else:
            self.register_buffer("found", vg.zeros(1))
        return self.layer(x)


@pytest.mark.parametrize("way", Counting.WAYS)
@pytest.mark.parametrize("by_fit", [False, True])
def test_buffers_are_those_before_the_step(device, way, by_fit):
    """Their values, and which arrays they are, however forward has changed them."""
    with vg.device(device):
        net = nn.Sequential(Counting(way), nn.Identity())
        x = vg.asarray(np.arange(12.0, dtype="f4").reshape(3, 4))
    own = net[0]._buffers
    before = {name: (array, array if array is None else array.detach().numpy().copy())
              for name, array in own.items()}  # fmt: skip
    optimiser = vg.optim.SGD(net.parameters(), lr=0.1)

    def loss(output, target):
        raise MemoryError("the first error")

    with pytest.raises(MemoryError, match="the first error"):
        if by_fit:
            nn.fit(net, [(x, x)], loss, optimiser, epochs=1, progress=False)
        else:
            with vg.nn.atomic(net):
                loss(net(x), x)
    assert list(own) == list(before)
    for name, (array, values) in before.items():
        assert own[name] is array, name
        assert array is None or np.array_equal(array.detach().numpy(), values), name
    with vg.nn.atomic(net):
        net(x)
    assert list(own) != list(before) or any(
        own[name] is not array or (array is not None and (array.detach().numpy() != values).any())
        for name, (array, values) in before.items()
    )


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_ends_a_step_changes_nothing(device, monkeypatch, error):
    """On every device: after the forward pass has moved statistics and random numbers."""
    attempt = Attempt(device, "AdamW")
    before, calls = attempt.state(), []

    def ended(self, closure=None):
        calls.append(attempt.state() != before)
        raise error

    with monkeypatch.context() as context:
        context.setattr(vg.optim.AdamW, "step", ended)
        with pytest.raises(error):
            attempt.step()
    assert calls == [True], "the forward pass has changed something"
    assert attempt.state() == before
    attempt.step()
    assert attempt.state() != before
