"""The main job: a network learns to read handwritten digits, `python -m pyvecgpu demo`.

A perceptron 64-128-128-10 with ReLU, trained by mini-batch gradient descent with momentum on the
softmax cross-entropy. `step` below is all of it, forward, backward and update, written out over the
functions of pyvecgpu. Data and weights live on the device: the counters of the library have to show
that no step copied anything to or from the host. The held-out fifth of the images then says what
was learned, and the same training on the CPU what the device was good for.
"""

import argparse
import itertools
import json
import sys
import time
from typing import NamedTuple

import numpy as np

import pyvecgpu as vg

from . import digits
from .errors import PyVecGPUError

SIZES = (64, 128, 128, 10)  # pixels, two hidden layers, digits
BATCH = 16  # so small that NumPy does not spread a product over threads, which costs more here
RATE = 0.05
MOMENTUM = 0.9
EPOCHS = 20
TARGET = 0.96
BUSY = 1e6  # operations a microsecond: at less than a teraflop/s a card mostly waits for launches


def step(network, velocity, images, targets):
    """Return (network, velocity, loss) after one step on images (n, 64), targets (n, 10) one-hot.

    network: [W1, b1, W2, b2, W3, b3], each W of shape (out, in); velocity: the same shapes.
    """
    W1, b1, W2, b2, W3, b3 = network
    # Forward: two hidden layers, ten scores, and the softmax cross-entropy of the scores.
    h1 = vg.dense(images, W1, b1, activation="relu")
    h2 = vg.dense(h1, W2, b2, activation="relu")
    scores = vg.dense(h2, W3, b3)
    scores = scores - vg.max(scores, axis=1, keepdims=True)
    powers = vg.exp(scores)
    total = vg.sum(powers, axis=1, keepdims=True)
    loss = vg.mean(vg.log(total) - vg.sum(targets * scores, axis=1, keepdims=True))
    # Backward: d is the gradient of the loss at a layer's output before the ReLU.
    d3 = (powers / total - targets) / images.shape[0]
    d2 = vg.where(h2 > 0, d3 @ W3, 0.0)
    d1 = vg.where(h1 > 0, d2 @ W2, 0.0)
    gradients = [d1.T @ images, vg.sum(d1, axis=0)]
    gradients += [d2.T @ h1, vg.sum(d2, axis=0)]
    gradients += [d3.T @ h2, vg.sum(d3, axis=0)]
    # Update: momentum keeps most of the direction of the steps before.
    velocity = [v * MOMENTUM - g * RATE for v, g in zip(velocity, gradients, strict=True)]
    network = [p + v for p, v in zip(network, velocity, strict=True)]
    return network, velocity, loss


def classify(network, images):
    """Return the digit, int64, that the network reads in each image."""
    W1, b1, W2, b2, W3, b3 = network
    h1 = vg.dense(images, W1, b1, activation="relu")
    h2 = vg.dense(h1, W2, b2, activation="relu")
    return vg.argmax(vg.dense(h2, W3, b3), axis=1)


def initial(seed, device):
    """Return a network: normal weights of variance 2 / inputs, as ReLU wants, and zero biases."""
    random = np.random.default_rng(seed)
    network = []
    for inputs, outputs in itertools.pairwise(SIZES):
        W = random.standard_normal((outputs, inputs), np.float32) * np.float32(2 / inputs) ** 0.5
        network += [vg.asarray(W, device=device), vg.zeros(outputs, device=device)]
    return network


# Training -----------------------------------------------------------------------------------------


class Run(NamedTuple):
    """What a training took and gave."""

    device: vg.Device
    epochs: int
    steps: int
    images: int  # seen in all steps
    seconds: float
    accuracy: float
    launches: int  # of kernels; 0 on the CPU

    def images_per_second(self):
        return self.images / self.seconds


def train(device, data, epochs, seed, report=lambda epoch, loss: None):
    """Train on a digits.Split and return the Run; report(epoch, mean loss) is called now and then.

    AssertionError: a step copied something between host and device.
    """
    images, targets = data.train_images, digits.one_hot(data.train_labels)
    images, targets = vg.asarray(images, device=device), vg.asarray(targets, device=device)
    starts = range(0, images.shape[0], BATCH)
    network = initial(seed, device)
    velocity = [vg.zeros(p.shape, device=device) for p in network]
    for start in (starts[0], starts[-1]):  # warm up: load the kernels, fill the memory pool
        step(network, velocity, images[start : start + BATCH], targets[start : start + BATCH])
    vg.synchronize(device)
    launches = 0
    began = time.perf_counter()
    for epoch in range(1, epochs + 1):
        losses = []
        before = vg.counters(device)
        for start in starts:
            batch = slice(start, start + BATCH)
            network, velocity, loss = step(network, velocity, images[batch], targets[batch])
            losses.append(loss)
        after = vg.counters(device)
        check_no_copies(before, after, len(starts))
        launches += after["launches"] - before["launches"]
        if epoch in (1, epochs) or epoch % 5 == 0:
            report(epoch, (sum(losses) / len(losses)).item())
    vg.synchronize(device)
    seconds = time.perf_counter() - began
    read = classify(network, vg.asarray(data.test_images, device=device))
    accuracy = vg.mean(read == vg.asarray(data.test_labels, device=device)).item()
    steps, seen = epochs * len(starts), epochs * images.shape[0]
    return Run(vg.Device(device), epochs, steps, seen, seconds, accuracy, launches)


def check_no_copies(before, after, steps):
    """AssertionError if the counters show copies between host and device."""
    to_device = after["copies_to_device"] - before["copies_to_device"]
    to_host = after["copies_to_host"] - before["copies_to_host"]
    if to_device or to_host:
        raise AssertionError(
            f"the data did not stay on the device: in {steps} steps there were {to_device} copies "
            f"to it and {to_host} back to the host"
        )


# What was faster, and why -------------------------------------------------------------------------


def operations():
    """Floating-point operations of one step's products: forward, weight and input gradients."""
    layers = [inputs * outputs for inputs, outputs in itertools.pairwise(SIZES)]
    return 2 * BATCH * (3 * sum(layers) - layers[0])  # nobody needs the gradient at the images


def verdict(run, cpu):
    """Return sentences: which of the two runs was faster, as measured, and why."""
    pair = [(run.seconds, str(run.device)), (cpu.seconds, "the CPU device (NumPy)")]
    (quick, faster), (slow, slower) = sorted(pair)
    sentence = (
        f"Faster was {faster}, {slow / quick:.1f} times: {quick:.2f} s against {slow:.2f} s "
        f"on {slower} for the same training. "
    )
    if run.device.type == "sim":
        return sentence + (
            "The simulated card is the same GPU code run thread by thread on the host, for "
            "learning and testing: its time says nothing about a GPU."
        )
    micros = run.seconds / run.steps * 1e6
    sentence += (
        f"A step of this small network is {operations() / 1e6:.0f} million floating-point "
        f"operations, which {run.device} did in {run.launches / run.steps:.0f} kernel launches and "
        f"{micros:.0f} us, {micros * run.steps / run.launches:.1f} us a launch. "
    )
    if operations() / micros < BUSY:
        sentence += "So its time goes into starting kernels, not into arithmetic. "
    if run.seconds < cpu.seconds:
        return sentence + "A larger network gives each kernel more to do."
    return sentence + "The CPU has nothing to start; a larger network gives each kernel more to do."


THE_CPU_ITSELF = "This is the CPU itself, so there is nothing to compare it with."
NO_GPU = (
    "There is no GPU here (`python -m pyvecgpu info` says why), so the CPU was used, "
    "and there is nothing to compare it with."
)


def say(text):
    print(text, flush=True)


def demo(device, arguments):
    """Train on the device and on the CPU, tell, and return (the device's Run, exit code)."""
    epochs, seed = arguments.epochs, arguments.seed
    images, labels = digits.load()
    if arguments.shuffle_labels:
        labels = np.random.default_rng(seed).permutation(labels)
    data = digits.split(images, labels, seed)
    say(f"device: {device}, {device.name}")
    say(
        f"network: {'-'.join(map(str, SIZES))}; {len(data.train_images)} images to learn from, "
        f"{len(data.test_images)} held out; {epochs} epochs in batches of {BATCH}"
    )
    run = train(device, data, epochs, seed, lambda e, loss: say(f"epoch {e:3}: loss {loss:.4f}"))
    say(f"accuracy on the held-out images: {run.accuracy:.3f}")
    say(f"training: {run.seconds:.2f} s, {run.images_per_second():,.0f} images per second")
    if device.type == "cpu":
        found = arguments.device or vg.is_available("cuda")
        say(THE_CPU_ITSELF if found else NO_GPU)
    else:
        say("The steps copied nothing to or from the host.")
        cpu = train("cpu", data, epochs, seed)
        say(f"on the CPU: {cpu.seconds:.2f} s, accuracy {cpu.accuracy:.3f}")
        say(verdict(run, cpu))
    if arguments.shuffle_labels:
        say("The labels were shuffled, so there was nothing to learn: chance is about 0.1.")
    elif not run.accuracy >= TARGET:
        if epochs >= EPOCHS:
            print(f"demo: the accuracy is below the target of {TARGET}", file=sys.stderr)
            return run, 1
        say(f"The target of {TARGET} is for {EPOCHS} epochs.")
    return run, 0


# The command --------------------------------------------------------------------------------------


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="python -m pyvecgpu demo",
        description="Train a network that reads handwritten digits, and compare with the CPU.",
    )
    parser.add_argument("--device", help="cpu, cuda, cuda:1, sim, ...; default: cuda, else cpu")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"default: {EPOCHS}")
    parser.add_argument("--seed", type=int, default=0, help="of weights and of the split")
    parser.add_argument(
        "--shuffle-labels", action="store_true", help="learn wrong labels: accuracy falls to chance"
    )
    parser.add_argument("--json", action="store_true", help="end with the run as one JSON object")
    arguments = parser.parse_args(argv)
    if arguments.epochs < 1:
        parser.error("--epochs is 1 or more")
    if arguments.seed < 0:
        parser.error("--seed is 0 or more")
    return arguments


def main(argv=None):
    """Run the command and return its exit code.

    0, or after a sentence that says what is wrong, 1, or 2 for a device that makes no sense.
    """
    arguments = parse(argv)
    try:
        device = vg.zeros(0, device=arguments.device).device
    except (PyVecGPUError, ValueError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1 if isinstance(error, PyVecGPUError) else 2
    try:
        run, code = demo(device, arguments)
    except (AssertionError, PyVecGPUError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        result = {
            "device": str(run.device),
            "epochs": run.epochs,
            "train_seconds": run.seconds,
            "test_accuracy": run.accuracy,
            "images_per_second": run.images_per_second(),
        }
        say(json.dumps(result))
    return code
