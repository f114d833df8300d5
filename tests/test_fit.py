"""The training loop: what it returns, going on to the same bits, early stopping, progress."""

import importlib.util
import os
import re
import sys
import types

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import observe

fit = vg.nn.fit


class Perceptron:
    """A network as fit needs one: three layers of weights by name, and noise while it trains."""

    def __init__(self, device, noise=0.0):
        rng = np.random.default_rng(5)
        shapes = {"a": (2, 16), "b": (16,), "c": (16, 1)}
        self.weights = {
            name: put(device, rng.standard_normal(shape)).requires_grad_()
            for name, shape in shapes.items()
        }
        self.device, self.noise, self.training, self.modes = device, noise, False, []

    def __call__(self, x):
        self.modes.append(self.training)
        a, b, c = self.weights.values()
        if self.training and self.noise:
            normal = vg.random.randn(*x.shape, dtype="float64", device=self.device)
            x = x + normal * self.noise
        return (vg.tanh(x @ a + b) @ c)[:, 0]

    def parameters(self):
        return iter(self.weights.values())

    def state_dict(self):
        return {name: x.detach() for name, x in self.weights.items()}

    def load_state_dict(self, state):
        if set(state) != set(self.weights):
            raise ValueError(f"other keys: {sorted(state)}")
        with vg.no_grad():
            for name, x in self.weights.items():
                x[...] = state[name]

    def train(self):
        self.training = True

    def eval(self):
        self.training = False

    def bits(self):
        return [helpers.bits(x.detach()) for x in self.weights.values()]


def squares(output, target):
    return ((output - target) ** 2).mean()


def samples(device, count=50):
    x = np.random.default_rng(6).standard_normal((count, 2))
    return put(device, x), put(device, x[:, 0] * x[:, 1])


def made(device, **chosen):
    net = Perceptron(device, **chosen)
    optimiser = vg.optim.Adam(net.parameters(), lr=0.03)
    return net, optimiser, vg.optim.lr_scheduler.CosineAnnealingLR(optimiser, 10)


def test_the_history(device):
    net, optimiser, schedule = made(device)
    x, y = samples(device)
    metrics = {
        "absolute": lambda output, target: vg.abs(output - target).mean(),
        "one": lambda *_: 1,
    }
    history = fit(net, (x, y), squares, optimiser, epochs=5, validation=(x[:11], y[:11]),
                  metrics=metrics, scheduler=schedule, batch_size=8, progress=False)  # fmt: skip
    names = ["loss", "absolute", "one"]
    assert set(history) == {"lr", *names, *(f"validation_{name}" for name in names)}
    assert all(len(values) == 5 for values in history.values())
    assert history["loss"][-1] < history["loss"][0] and history["one"] == [1.0] * 5
    rates = [0.03 * (1 + np.cos(np.pi * n / 10)) / 2 for n in range(5)]
    assert np.allclose(history["lr"], rates, rtol=1e-12, atol=0)
    # Means are over samples, though the last batch is smaller; nothing is trained by validation.
    with vg.no_grad():
        last = squares(net(x[:11]), y[:11]).item()
    assert abs(history["validation_loss"][-1] - last) <= 1e-12
    assert net.modes[:-1] == ([True] * 7 + [False] * 2) * 5 and net.training


def test_it_does_what_the_plain_loop_does(device):
    one, optimiser, _ = made(device)
    x, y = samples(device)
    history = fit(one, (x, y), squares, optimiser, epochs=3, batch_size=16, clip_norm=0.5, seed=7,
                  progress=False)  # fmt: skip
    net, optimiser, _ = made(device)
    data = vg.data.TensorDataset(x, y)
    for epoch in range(3):
        losses = []
        if not epoch:
            loader = vg.data.DataLoader(data, 16, shuffle=True, generator=7)
        for inputs, targets in loader:
            loss = squares(net(inputs), targets)
            optimiser.zero_grad()
            loss.backward()
            vg.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimiser.step()
            losses.append(loss.item() * len(targets))
        assert abs(sum(losses) / 50 - history["loss"][epoch]) <= 1e-12
    assert one.bits() == net.bits()


@pytest.mark.parametrize("each", ["epoch", "batch"])
def test_going_on_gives_the_same_bits(device, tmp_path, each):
    """Weights, the optimiser, the schedule, the data's order and the net's own noise go on."""
    x, y = samples(device)

    def train(epochs, path=None, **chosen):
        net, optimiser, _ = made(device, noise=0.1)
        schedule = vg.optim.lr_scheduler.OneCycleLR(optimiser, 0.05, total_steps=40)
        history = fit(net, (x, y), squares, optimiser, epochs=epochs, scheduler=schedule, seed=1,
                      schedule_each=each, validation=(x, y), checkpoint=path, progress=False,
                      batch_size=8, **chosen)  # fmt: skip
        return net.bits(), history

    at_once = train(4)
    path = tmp_path / "checkpoint.npz"
    two = train(2, path)
    assert two[1]["loss"] == at_once[1]["loss"][:2] and os.listdir(tmp_path) == [path.name]
    vg.random.seed(99)
    assert train(4, str(path)) == at_once
    assert train(3, path) == at_once, "it has more epochs than are asked for"
    assert train(4, path, resume=False) == at_once
    assert train(3, path, resume=False)[1]["loss"] == at_once[1]["loss"][:3]


@pytest.mark.parametrize("own", [True, False], ids=["own", "shared"])
@pytest.mark.parametrize("kind", ["held out", "both"])
def test_the_order_of_validation_goes_on(device, tmp_path, kind, own):
    """A metric that depends on how samples of validation come together says which order it was."""
    x, y = samples(device)
    data = vg.data.TensorDataset(x, y)
    metrics = {"first": lambda output, target: target[0]}
    path = tmp_path / "checkpoint.npz"

    def train(epochs, path=None):
        vg.random.seed(3)
        net, optimiser, _ = made(device)
        orders = vg.random.default_rng(5), vg.random.default_rng(6) if own else None
        loaders = [vg.data.DataLoader(data, 8, shuffle=True, generator=one) for one in orders]
        history = fit(net, loaders[0] if kind == "both" else [(x, y)], squares, optimiser,
                      epochs=epochs, validation=loaders[1], metrics=metrics, checkpoint=path,
                      progress=False)  # fmt: skip
        return net.bits(), history

    at_once = train(4)
    assert len(set(at_once[1]["validation_first"])) > 1
    train(2, path)
    assert train(4, path) == at_once
    path.unlink()
    train(2, path)
    state = vg.load_state(path, device=device)
    del state["validation_order"]
    vg.save_state(path, state)
    older = train(4, path)[1]
    assert older["loss"] == at_once[1]["loss"], "an older one, without that order"


def test_checkpoints_of_something_else(device, tmp_path):
    path = tmp_path / "x.npz"
    x, y = samples(device)
    net, optimiser, _ = made(device)
    fit(net, (x, y), squares, optimiser, epochs=1, checkpoint=path, progress=False)
    good = vg.load_state(path, device=device)
    net, optimiser, _ = made(device)
    before, steps = net.bits(), optimiser.state_dict()
    broken = {**good["optimiser"], "param_groups": []}
    for state, message in (
        ({"x": x}, "no checkpoint"),
        ({**good, "net": {"z": x}}, "other keys"),
        ({**good, "optimiser": broken}, r"groups of \[\]"),
        ({**good, "scheduler": {"last_epoch": 1, "base_lrs": []}}, "kind of schedule"),
        ({**good, "history": {"loss": [1.0], "lr": [0.1], "m": [2]}}, "history is of .*'m'"),
    ):
        vg.save_state(path, state)
        with pytest.raises(ValueError, match=message):
            fit(net, (x, y), squares, optimiser, epochs=1, checkpoint=path, progress=False)
        assert net.bits() == before and optimiser.state_dict() == steps
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="load_state"):
        fit(net, (x, y), squares, optimiser, epochs=1, checkpoint=path, progress=False)


SCHEDULES = {
    "StepLR": lambda o: vg.optim.lr_scheduler.StepLR(o, 2),
    "ExponentialLR": lambda o: vg.optim.lr_scheduler.ExponentialLR(o, 0.5),
    "SequentialLR(StepLR)": lambda o: vg.optim.lr_scheduler.SequentialLR(
        o, [SCHEDULES["StepLR"](o)], []
    ),
    "NoneType": lambda o: None,
}


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_checkpoint_is_of_one_optimiser_and_schedule(device, tmp_path, kind, schedule):
    """Any other is refused by name, and has changed nothing; without the names, by its options."""
    path, data = tmp_path / "x.npz", samples(device)

    def train(kind, schedule):
        net = Perceptron(device)
        optimiser = getattr(vg.optim, kind)(net.parameters(), lr=0.01)
        scheduler = SCHEDULES[schedule](optimiser)
        before = net.bits(), repr(optimiser)
        try:
            return fit(net, data, squares, optimiser, epochs=1, scheduler=scheduler,
                       checkpoint=path, progress=False)  # fmt: skip
        except ValueError:
            assert (net.bits(), repr(optimiser)) == before
            raise

    history = train(kind, schedule)
    assert train(kind, schedule) == history
    for other in {"SGD", "Adam", "AdamW", "RMSprop"} - {kind}:
        with pytest.raises(ValueError, match=f"optimiser is {kind}, and this one's {other}"):
            train(other, schedule)
    for other in SCHEDULES.keys() - {schedule}:
        with pytest.raises(ValueError, match="schedule"):
            train(kind, other)
    state = vg.load_state(path, device=device)
    del state["classes"]
    vg.save_state(path, state)
    assert train(kind, schedule) == history, "an older one"
    if kind == "SGD":
        with pytest.raises(
            ValueError, match=r"not of Adam.*unexpected: 'momentum'.*missing: 'betas'"
        ):
            train("Adam", schedule)
    del state["scaler"]
    vg.save_state(path, state)
    with pytest.raises(ValueError, match=r"it has no \['scaler'\]"):
        train(kind, schedule)


def test_early_stopping(device, tmp_path):
    x, y = samples(device)
    net, optimiser, _ = made(device)
    losses = iter([3.0, 2.0, 2.5, 2.0, float("nan"), 1.0])

    def loss(output, target):  # of validation it is what the list says
        return squares(output, target) if net.training else vg.asarray(next(losses), device=device)

    chosen = {"epochs": 6, "validation": [(x, y)], "patience": 3, "progress": False}
    path = tmp_path / "x.npz"
    history = fit(net, (x, y), loss, optimiser, checkpoint=path, **chosen)
    assert str(history["validation_loss"]) == "[3.0, 2.0, 2.5, 2.0, nan]"
    again = fit(net, (x, y), loss, optimiser, checkpoint=path, **chosen)
    assert len(again["loss"]) == 5 and next(losses) == 1.0


def test_progress(device, monkeypatch, capsys):
    x, y = samples(device)
    net, optimiser, _ = made(device)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    fit(net, (x, y), squares, optimiser, epochs=2)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert not out and len(lines) == 2
    assert re.fullmatch(r"epoch 2/2  loss [\d.e-]+  lr 0\.03", lines[1])

    class Bar:
        def __init__(self, total, initial, unit):
            self.seen = [(total, initial, unit)]
            bars.append(self)

        def set_postfix(self, values):
            self.seen.append(list(values))

        def update(self):
            self.seen.append("update")

        def close(self):
            self.seen.append("close")

    bars = []
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    fit(net, (x, y), squares, optimiser, epochs=1)
    assert bars[0].seen == [(1, 0, "epoch"), ["loss", "lr"], "update", "close"]
    assert not capsys.readouterr().err
    fit(net, (x, y), squares, optimiser, epochs=1, progress=False)
    assert len(bars) == 1 and not capsys.readouterr().err


@pytest.mark.needs("matplotlib")
def test_the_history_is_drawn(device, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    drawn, real = [], Figure.savefig

    def savefig(self, path):
        drawn.append(self)
        real(self, path)

    monkeypatch.setattr(Figure, "savefig", savefig)
    net, optimiser, _ = made(device)
    x, y = samples(device)
    metrics = {"absolute": lambda output, target: vg.abs(output - target).mean()}
    history = fit(net, (x, y), squares, optimiser, epochs=3, validation=(x[:9], y[:9]),
                  metrics=metrics, plot=tmp_path / "history.png", progress=False)  # fmt: skip
    assert (tmp_path / "history.png").read_bytes()[:4] == b"\x89PNG"
    (figure,) = drawn
    found = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    assert set(found) == set(history) - {"lr"} and len(figure.axes) == 2
    for name, line in found.items():
        assert line.get_xdata().tolist() == [1, 2, 3]
        assert line.get_ydata().tolist() == history[name]


def test_nothing_is_trained_that_cannot_be_drawn(device, monkeypatch):
    net, optimiser, _ = made(device)
    before, real = net.bits(), importlib.util.find_spec
    nowhere = lambda name: None if name == "matplotlib" else real(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", nowhere)
    with pytest.raises(ModuleNotFoundError, match="plot= needs matplotlib"):
        fit(net, samples(device), squares, optimiser, epochs=1, plot="x.png", progress=False)
    assert net.bits() == before


def test_refusals(device, tmp_path):
    x, y = samples(device)
    net, optimiser, _ = made(device)
    before = net.bits()

    def refused(data, error, match, **chosen):
        with pytest.raises(error, match=match):
            fit(net, data, squares, optimiser, epochs=1, progress=False, **chosen)
        assert net.bits() == before

    refused([], ValueError, "no batches")
    refused((x[:0], y[:0]), ValueError, "no batches")
    refused(iter([(x, y)]), TypeError, "no iterator")
    refused([x], TypeError, "a batch is")
    refused([(x,)], TypeError, "a batch is")
    refused((x, y), ValueError, "schedule_each", schedule_each="step")
    for name in ("loss", "lr", "validation_loss", "validation_x"):
        refused((x, y), ValueError, f"name '{name}'", metrics={name: squares})
    refused((x, y), TypeError, "metrics is a dict", metrics=[squares])
    refused((x, y), ValueError, "fit: a checkpoint .*safetensors", checkpoint="c.safetensors")
    for name in ("checkpoint", "plot"):
        nowhere = tmp_path / "none" / "x.npz"
        refused((x, y), FileNotFoundError, f"fit: {name}: .*none", **{name: nowhere})


def test_a_loss_that_is_no_array(device):
    net, optimiser, _ = made(device)
    x, y = samples(device)
    before = net.bits()

    def number(output, target):
        return squares(output, target).item()

    for data, chosen in (((x, y), {}), ([(x, y)], {"validation": (x, y)})):
        with pytest.raises(TypeError, match="fit: the loss number gave float"):
            fit(net, data, number, optimiser, epochs=1, progress=False, **chosen)
    assert net.bits() == before


def test_an_optimiser_of_another_network(device):
    (net, own, _), (_, other, _) = made(device), made(device)
    before = net.bits()
    with pytest.raises(ValueError, match="none of the optimiser's parameters"):
        fit(net, samples(device), squares, other, epochs=1, progress=False)
    assert net.bits() == before
    own = vg.optim.SGD([net.weights["a"]])  # a part of it may be trained
    fit(net, samples(device), squares, own, epochs=1, progress=False)
    assert net.bits()[1:] == before[1:] and net.bits()[0] != before[0]


@pytest.mark.needs("matplotlib")
def test_a_picture_of_no_format_is_refused_before_training(device, tmp_path):
    net, optimiser, _ = made(device)
    before = net.bits()
    with pytest.raises(ValueError, match=r"fit: plot: \.foo is none .*'png'"):
        fit(net, samples(device), squares, optimiser, epochs=1, plot="x.foo", progress=False)
    assert net.bits() == before
    for path in ("x", "x.PNG"):
        fit(net, samples(device), squares, optimiser, epochs=1, plot=tmp_path / path,
            progress=False)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("epochs", 1.5, TypeError), ("epochs", "2", TypeError), ("epochs", True, TypeError),
     ("epochs", -1, ValueError), ("patience", 0, ValueError), ("patience", -1, ValueError),
     ("patience", 1.5, TypeError), ("patience", False, TypeError)],
)  # fmt: skip
def test_numbers_of_epochs(device, name, value, error):
    net, optimiser, _ = made(device)
    before = net.bits()
    with pytest.raises(error, match=f"fit: {name} .*{value}"):
        fit(net, samples(device), squares, optimiser, **{"epochs": 2, name: value}, progress=False)
    assert net.bits() == before
    for epochs, count in ((0, 0), (np.int64(2), 2)):
        history = fit(net, samples(device), squares, optimiser, epochs=epochs, progress=False)
        assert len(history.get("loss", ())) == count


def test_the_page(device, capsys):
    """The programs in docs/training.md run, and what they train has learned."""
    text = (helpers.ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(programs) >= 1
    names = {}
    vg.random.seed(0)  # whatever was drawn before
    for program in programs:
        with vg.device(device):
            exec(program, names)
    losses = [float(line) for line in capsys.readouterr().out.split()]
    assert losses and max(losses) < 0.1


def test_nothing_is_read_within_an_epoch(device):
    """Losses and metrics are summed on the device, and read once for each at the epoch's end."""
    x, y = samples(device)
    net, optimiser, _ = made(device)
    metrics = {"absolute": lambda output, target: vg.abs(output - target).mean()}
    counts = []
    for batch_size in (5, 25):
        calls = []
        with observe(lambda call, calls=calls: calls.append(call.method)):
            fit(net, (x, y), squares, optimiser, epochs=2, batch_size=batch_size, metrics=metrics,
                clip_norm=1.0, progress=False)  # fmt: skip
        counts.append(calls.count("to_host"))
    # Of each epoch: its order, from the process's generator, and two means.
    assert counts[0] == counts[1] <= 2 * 4
