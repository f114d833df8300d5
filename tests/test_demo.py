"""The bundled digits, and the demo whose gradients are written by hand: what it learns and prints,
and what makes it fail. Networks that the tape differentiates are in test_demo_networks.py."""

import json

import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu import __main__ as command
from pyvecgpu import digits
from pyvecgpu.demo import by_hand, images, runs

# Of optdigits.names, for the test set.
IMAGES_PER_DIGIT = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_digits_are_those_of_the_test_set():
    pixels, labels = digits.load()
    assert pixels.shape == (1797, 64) and pixels.dtype == np.float32
    assert pixels.min() == 0 and pixels.max() == 1
    assert np.bincount(labels).tolist() == IMAGES_PER_DIGIT
    first = (pixels[0].reshape(8, 8) * 16).astype(int)
    assert labels[0] == 0 and first[0].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]


def test_split_holds_out_a_fifth_and_depends_on_the_seed_alone():
    pixels, labels = np.arange(1797)[:, None], np.arange(1797)
    split = digits.split(pixels, labels, 3)
    assert len(split.train_labels) == 1438 and len(split.test_labels) == 359
    together = np.concatenate([split.train_labels, split.test_labels])
    assert sorted(together) == list(range(1797)) and together[0] != 0
    assert (split.test_images[:, 0] == split.test_labels).all()
    again, other = digits.split(pixels, labels, 3), digits.split(pixels, labels, 4)
    assert (again.test_labels == split.test_labels).all()
    assert not (other.test_labels == split.test_labels).all()


def test_one_hot():
    assert digits.one_hot(np.array([2, 0])).tolist() == [[0, 0, 1] + [0] * 7, [1] + [0] * 9]


def test_step_follows_the_gradient(device, rng):
    """Each weight's gradient, from its change in one step, is that of central differences."""
    network = [p.numpy().astype(np.float64) for p in by_hand.initial(0, "cpu")]
    velocity = [np.zeros_like(p) for p in network]
    pixels = rng.random((6, 64))
    targets = digits.one_hot(rng.integers(0, 10, 6)).astype(np.float64)

    def step(weights):
        operands = [[vg.asarray(a, device=device) for a in group] for group in (weights, velocity)]
        data = vg.asarray(pixels, device=device), vg.asarray(targets, device=device)
        after, _, loss = by_hand.step(*operands, *data)
        return [p.numpy() for p in after], loss.item()

    after, _ = step(network)
    for number, weights in enumerate(network):
        gradient = (weights - after[number]) / by_hand.RATE
        index = tuple(rng.integers(0, weights.shape))
        slope = 0.0
        for sign in (1, -1):
            moved = [p.copy() for p in network]
            moved[number][index] += sign * 1e-6
            slope += sign * step(moved)[1] / 2e-6
        assert abs(slope - gradient[index]) <= 1e-7 + 1e-5 * abs(slope), f"parameter {number}"


def test_momentum_keeps_the_direction():
    network = by_hand.initial(0, "cpu")
    velocity = [vg.full(p.shape, 0.5, device="cpu") for p in network]
    pixels, targets = vg.zeros((1, 64), device="cpu"), vg.zeros((1, 10), device="cpu")
    after, kept, _ = by_hand.step(network, velocity, pixels, targets)
    # Without input and before any bias, the first layer has no gradient but its bias's.
    assert np.allclose(kept[0].numpy(), 0.5 * by_hand.MOMENTUM)
    assert np.allclose((after[0] - network[0]).numpy(), 0.5 * by_hand.MOMENTUM, atol=1e-6)


def run(capsys, *arguments):
    code = command.main(["demo", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_demo_reaches_its_target(capsys):
    code, out, err = run(capsys, "--device", "cpu", "--json")
    assert code == 0 and err == ""
    result = json.loads(out.splitlines()[-1])
    assert list(result) == [
        "device",
        "model",
        "epochs",
        "train_seconds",
        "test_accuracy",
        "images_per_second",
    ]
    assert result["device"] == "cpu" and result["epochs"] == by_hand.EPOCHS
    assert 0.96 <= result["test_accuracy"] <= 1
    rate = result["epochs"] * 1438 / result["train_seconds"]
    assert abs(rate - result["images_per_second"]) <= 1e-9 * rate
    assert "nothing to compare it with" in out


@pytest.mark.devices("sim", "cuda")
def test_demo_compares_with_the_cpu(device, capsys):
    code, out, err = run(capsys, "--device", device, "--epochs", "1", "--json")
    assert code == 0 and err == ""
    assert "The steps copied nothing to or from the host." in out
    assert "Faster was " in out and "on the CPU: " in out
    result = json.loads(out.splitlines()[-1])
    assert result["device"] == f"{device}:0" and result["test_accuracy"] > 0.5


def test_devices_learn_the_same(device):
    data = images.load(None, 0)
    few = images.Split(data.train_images[:64], data.train_labels[:64], *data[2:])
    losses = {}
    for name in ("cpu", device):
        losses[name] = []
        by_hand.train(name, few, 5, 0, lambda _, loss, kept=losses[name]: kept.append(loss))
    assert len(losses["cpu"]) == 2 and losses["cpu"][1] < losses["cpu"][0]
    assert np.allclose(losses[device], losses["cpu"], rtol=1e-4)


def test_shuffled_labels_cannot_be_learned(capsys):
    code, out, _ = run(capsys, "--device", "cpu", "--shuffle-labels", "--json")
    assert code == 0 and "chance is about 0.1" in out
    assert 0.02 <= json.loads(out.splitlines()[-1])["test_accuracy"] <= 0.2


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("copies", ["1 copies to it and 0 back", "0 copies to it and 1 back"])
def test_a_copy_within_a_step_fails_the_demo(device, copies, capsys, monkeypatch):
    real, steps = by_hand.step, []

    def step(network, velocity, pixels, targets):
        result = real(network, velocity, pixels, targets)
        steps.append(1)
        if len(steps) == 5:
            vg.asarray([1.0], device=device) if copies.startswith("1") else result[2].item()
        return result

    monkeypatch.setattr(by_hand, "step", step)
    code, _, err = run(capsys, "--device", device, "--epochs", "1")
    assert code == 1
    assert err.startswith("demo: the data did not stay on the device") and copies in err


def test_a_network_that_learns_nothing_fails_the_demo(capsys, monkeypatch):
    monkeypatch.setattr(by_hand, "RATE", 0.0)
    monkeypatch.setattr(by_hand, "EPOCHS", 1)
    code, _, err = run(capsys, "--device", "cpu")
    assert code == 1 and err == "demo: the accuracy is below the target of 0.96\n"


def test_a_short_run_is_held_to_no_target(capsys, monkeypatch):
    monkeypatch.setattr(by_hand, "RATE", 0.0)
    code, out, err = run(capsys, "--device", "cpu", "--epochs", "1")
    assert code == 0 and err == "" and "The target of 0.96 is for 20 epochs." in out


def test_bad_arguments(capsys):
    code, _, err = run(capsys, "--device", "gpu")
    assert code == 2 and "no device is called 'gpu'" in err
    for arguments in (["--epochs", "0"], ["--seed", "-1"], ["--batch", "3"]):
        with pytest.raises(SystemExit) as end:
            command.main(["demo", *arguments])
        assert end.value.code == 2


@pytest.mark.parametrize(("quick", "slow"), [(1.0, 2.0), (2.0, 1.0)])
def test_verdict_names_the_faster_device_and_why(quick, slow):
    device = type("Device", (), {"type": "cuda", "__str__": lambda self: "cuda:0"})()
    ours = runs.Run(device, 20, 1000, 16_000, quick, 0.98, 50_000, operations=3e6)
    text = runs.verdict(ours, runs.Run("cpu", 20, 1000, 16_000, slow, 0.98, 0))
    assert f"Faster was {'cuda:0' if quick < slow else 'the CPU device (NumPy)'}, 2.0 times" in text
    assert "50 kernel launches" in text and f"{quick * 1000:.0f} us" in text
