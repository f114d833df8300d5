"""A network whose gradients are written out by hand, `python -m pyvecgpu demo`.

A perceptron 64-128-128-10 with ReLU, trained by mini-batch gradient descent with momentum on the
softmax cross-entropy. `step` below is all of it, forward, backward and update, written out over the
functions of pyvecgpu. Data and weights live on the device: the counters of the library have to show
that no step copied anything to or from the host. `differentiated` is the same step with gradients
of the tape.
"""

import itertools
import time

import numpy as np

import pyvecgpu as vg

from .runs import Run, check_no_copies

SIZES = (64, 128, 128, 10)  # pixels, two hidden layers, digits
BATCH = 16  # so small that NumPy does not spread a product over threads, which costs more here
RATE = 0.05
MOMENTUM = 0.9
EPOCHS = 20
TARGET = 0.96


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


def differentiated(network, velocity, images, targets):
    """Return what `step` does, with gradients that the tape finds."""

    def loss_of(W1, b1, W2, b2, W3, b3):
        h1 = vg.dense(images, W1, b1, activation="relu")
        h2 = vg.dense(h1, W2, b2, activation="relu")
        return -vg.mean(vg.sum(targets * vg.log_softmax(vg.dense(h2, W3, b3)), axis=1))

    every = tuple(range(len(network)))
    loss, gradients = vg.value_and_grad(loss_of, argnums=every)(*network)
    velocity = [v * MOMENTUM - g * RATE for v, g in zip(velocity, gradients, strict=True)]
    return [p + v for p, v in zip(network, velocity, strict=True)], velocity, loss


def initial(seed, device, sizes=SIZES):
    """Return a network: normal weights of variance 2 / inputs, as ReLU wants, and zero biases."""
    random = np.random.default_rng(seed)
    network = []
    for inputs, outputs in itertools.pairwise(sizes):
        W = random.standard_normal((outputs, inputs), np.float32) * np.float32(2 / inputs) ** 0.5
        network += [vg.asarray(W, device=device), vg.zeros(outputs, device=device)]
    return network


def operations(sizes):
    """Floating-point operations of one step's products: forward, weight and input gradients."""
    layers = [inputs * outputs for inputs, outputs in itertools.pairwise(sizes)]
    return 2 * BATCH * (3 * sum(layers) - layers[0])  # nobody needs the gradient at the images


def sizes_for(data, width=None):
    """Return the sizes of the network for an images.Split."""
    hidden = (SIZES[1:-1]) if width is None else (width, width)
    return (data.train_images[0].size, *hidden, data.classes)


def train(device, data, epochs, seed, report=lambda epoch, loss: None, width=None):
    """Train on an images.Split; return (Run, network).

    report(epoch, mean loss) is called now and then. AssertionError: a step copied something
    between host and device.
    """
    sizes = sizes_for(data, width)
    flat = [np.reshape(x, (len(x), -1)) for x in (data.train_images, data.test_images)]
    targets = np.eye(data.classes, dtype=np.float32)[data.train_labels]
    images, targets = vg.asarray(flat[0], device=device), vg.asarray(targets, device=device)
    starts = range(0, images.shape[0], BATCH)
    network = initial(seed, device, sizes)
    velocity = [vg.zeros(p.shape, device=device) for p in network]
    for start in (starts[0], starts[-1]):  # warm up: load the kernels, fill the memory pool
        step(network, velocity, images[start : start + BATCH], targets[start : start + BATCH])
    vg.synchronize(device)
    launches, kept = 0, []
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
        kept.append(sum(losses) / len(losses))
        if epoch in (1, epochs) or epoch % 5 == 0:
            report(epoch, kept[-1].item())
    vg.synchronize(device)
    seconds = time.perf_counter() - began
    read = classify(network, vg.asarray(flat[1], device=device)).numpy()
    accuracy = float((read == data.test_labels).mean())
    steps, seen = epochs * len(starts), epochs * images.shape[0]
    curve = [loss.item() for loss in kept]
    about = (vg.Device(device), epochs, steps, seen, seconds, accuracy, launches, curve, read)
    return Run(*about, operations(sizes)), network


def state_dict(network):
    """Return the weights by name: W1, b1, W2, ..."""
    names = [f"{letter}{layer}" for layer in (1, 2, 3) for letter in "Wb"]
    return dict(zip(names, network, strict=True))
