"""`bench training`: every way of training gives the losses of float64, or is told to be wrong."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu import __main__ as command
from pyvecgpu.bench import libraries, training

QUICK = training.rows("quick")


def opened(device):
    (library,) = libraries.open_libraries(vg.Device(device), [], quick=True)
    return library


def test_the_command(device, capsys, tmp_path):
    path = tmp_path / "figures.json"
    code = command.main(["bench", "training", "--quick", "--device", device, "--json", str(path)])
    out = capsys.readouterr().out
    assert code == 0
    figures = json.loads(path.read_text())
    assert [row["name"] for row in figures["rows"]] == [task.name for task in QUICK]
    for row in figures["rows"]:
        assert row["name"] in out
        ways = {"pyvecgpu"} if device == "cpu" else {"pyvecgpu", "pyvecgpu graph"}
        assert set(row["results"]) | set(row["omitted"]) == ways and "pyvecgpu" in row["results"]
        for result in row["results"].values():
            assert 0 < result["low"] <= result["seconds"] <= result["high"]
            assert result["wrong"] is False and result["error"] <= row["error_allowed"]
    assert len(figures["goals"]) == len(training.GOALS)


def test_the_full_table_has_what_is_promised():
    names = [task.name for task in training.rows("full")]
    assert {goal.row for goal in training.GOALS} <= set(names)
    assert len([name for name in names if name.startswith("perceptron")]) == 6
    assert [name for name in names if name.startswith("LeNet")] == [
        "LeNet float32, 128",
        "LeNet float32, 1024",
    ]
    assert any("4 layers of 512, context 512" in name for name in names)
    required = [goal for goal in training.GOALS if not goal.aim]
    assert [goal.least for goal in required] == [3.5] + [1.0] * 5


@pytest.mark.parametrize("task", QUICK, ids=lambda task: task.name)
def test_a_step_moves_the_loss(device, task):
    """More than an error that would be allowed, so that a step that does nothing is seen."""
    library = opened(device)
    start = training.first_weights(library, task)
    losses = training.Training(library, task, start).losses(2 * training.FIRST)
    assert np.isfinite(losses).all() and losses[-1] < losses[0]
    still = training.error_of([losses[0]] * len(losses), losses)
    assert still > training.ERRORS[task.precision]


def test_a_step_is_gradient_descent_with_momentum(device):
    """By gradients as values, and an update written out."""
    library, task = opened(device), QUICK[0]
    start = training.first_weights(library, task)
    found = training.Training(library, task, start, "float64").losses(4)
    inputs, labels = (vg.asarray(x, device=device) for x in task.batch())

    def loss_of(W1, b1, W2, b2, W3, b3):
        x = vg.relu(vg.astype(inputs, "float64") @ W1.T + b1)
        scores = vg.relu(x @ W2.T + b2) @ W3.T + b3
        rows = vg.arange(len(labels), device=device)
        return -vg.mean(vg.log_softmax(scores, axis=1)[rows, labels])

    params = [vg.asarray(x.astype("f8"), device=device) for x in start.values()]
    velocity, expected = [vg.zeros_like(p) for p in params], []
    for _ in range(4):
        loss, gradients = vg.value_and_grad(loss_of, argnums=tuple(range(6)))(*params)
        expected.append(loss.item())
        velocity = [0.9 * v + g for v, g in zip(velocity, gradients, strict=True)]
        params = [p - 0.01 * v for p, v in zip(params, velocity, strict=True)]
    assert training.error_of(found, expected) <= 1e-12


def test_a_wrong_step_is_told(device, capsys, monkeypatch):
    real = vg.nn.functional.cross_entropy

    def spoiled(scores, labels):
        wrong = 1.001 if scores.dtype == vg.float32 else 1.0
        return real(scores, labels) * wrong

    monkeypatch.setattr(training, "rows", lambda size: QUICK[:1])
    monkeypatch.setattr(vg.nn.functional, "cross_entropy", spoiled)
    assert command.main(["bench", "training", "--quick", "--device", device]) == 1
    assert "the result of pyvecgpu is wrong, its error is 1." in capsys.readouterr().err


def test_losses_that_are_no_numbers_are_wrong():
    assert training.error_of([1.0, np.nan], [1.0, 1.0]) == float("inf")
    assert training.error_of([1.0, 1.5], [1.0, 1.0]) == 0.5


@pytest.mark.devices("sim", "cuda")
def test_replays_of_another_step_are_left_out(device, monkeypatch):
    library = opened(device)
    task = QUICK[0]
    monkeypatch.setattr(library, "recorded", lambda work: (lambda: None, True))
    results, omitted = training.measure(task, [library], "quick")
    assert list(results) == ["pyvecgpu"]
    assert omitted == {"pyvecgpu graph": "its replays do not give the losses of the calls"}


def test_the_precision_is_set_for_a_while(device):
    library, before = opened(device), vg.get_matmul_precision()
    with training.precision([library], "tf32"):
        assert vg.get_matmul_precision() == "tf32"
        with training.precision([library], "float32"):
            assert vg.get_matmul_precision() == "float32"
        assert vg.get_matmul_precision() == "tf32"
    assert vg.get_matmul_precision() == before


# In torch's place ---------------------------------------------------------------------------------


class Network:
    """A network of a module of torch's kind, with nothing in it."""

    def to(self, device, dtype):
        self.place = device, dtype

    def load_state_dict(self, state):
        self.state = state

    def parameters(self):
        return ["p"]


class SGD:
    """With torch's parameters as far as they are told: it knows nothing of `capturable`."""

    def __init__(self, parameters, lr=1e-3, momentum=0, *, fused=None):
        assert fused, "the slow loop over parameters"


class AdamW:
    """Which counts its steps on the host unless it is told that it may be recorded."""

    def __init__(self, parameters, lr=1e-3, *, capturable=False, fused=None):
        assert fused, "the slow loop over parameters"
        assert capturable, "a graph would replay one step's number"


FULL = training.rows("full")


@pytest.mark.parametrize("name", {task.optimiser: task for task in FULL})
def test_torch_is_told_of_its_fastest_way(name):
    task = next(task for task in FULL if task.optimiser == name)
    module = SimpleNamespace(
        nn=SimpleNamespace(), optim=SimpleNamespace(SGD=SGD, AdamW=AdamW), float32="f32",
        bfloat16="bf16", float16="f16",
    )  # fmt: skip
    library = SimpleNamespace(
        name="torch", writes_as="torch", module=module, put=lambda x: SimpleNamespace(to=str)
    )
    task = dataclasses.replace(task, network=lambda nn: Network(), shape=(2, 3), labels=2)
    way = training.Training(library, task, {"W": 1})
    assert type(way.optimiser).__name__ == name and way.net.place[0] == "cuda"
