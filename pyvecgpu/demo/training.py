"""How the demo trains a network whose gradients come from the tape."""

import math
import time

import pyvecgpu as vg
from pyvecgpu import nn

from .networks import NETWORKS, RECIPES
from .runs import Run, check_no_copies

F = nn.functional


def step(net, optimiser, images, labels, clip=math.inf):
    """Return the loss after one step on images (n, rows, columns) and labels (n,)."""
    loss = F.cross_entropy(net(images), labels)
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), clip)
    optimiser.step()
    return loss.detach()


def moved(images, rng, shift, stretch):
    """Return images (n, rows, columns), each moved and stretched a little along both axes.

    rng: a vg.random.Generator. A new pixel is linear between two old ones; for all of them that is
    a product with a matrix from each side.
    """
    count, rows, columns = images.shape
    down, across = (weights(n, count, rng, shift, stretch) for n in (rows, columns))
    return down @ images @ vg.matrix_transpose(across)


def weights(length, count, rng, shift, stretch):
    """Return (count, length, length): how much of every old pixel is in each new one of a line."""
    by, scale = rng.uniform(-1, 1, (2, count, 1, 1))
    old = vg.arange(length, dtype="float32", device=rng.device) - (length - 1) / 2
    new = old[:, None] * (1 + stretch * scale) + shift * by
    return vg.relu(1 - vg.abs(new - old))


def warm_cosine(number, steps, warm=0.1):
    """Return the part of the rate in a step: up in the first tenth of all, then down to 0."""
    first = warm * steps
    if number < first:
        return (number + 1) / (first + 1)
    return 0.5 * (1 + math.cos(math.pi * (number - first) / (steps - first)))


def train(model, device, data, epochs, seed, report=lambda epoch, loss: None, width=None):
    """Train a network on an images.Split; return (Run, network).

    report(epoch, mean loss) is called now and then. AssertionError: a step copied something
    between host and device.
    """
    recipe, device = RECIPES[model], vg.Device(device)
    images, labels = (vg.asarray(x, device=device) for x in data[:2])
    batch = min(recipe.batch, len(images))
    warm_up(made(model, data, device, seed, width), images[:batch], labels[:batch])
    net = made(model, data, device, seed, width)
    rng = vg.random.default_rng(seed, device=device)
    samples = vg.data.TensorDataset(images, labels)
    loader = vg.data.DataLoader(samples, batch, shuffle=True, drop_last=True, generator=rng)
    steps = epochs * len(loader)
    optimiser = vg.optim.AdamW(net.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    rates = vg.optim.lr_scheduler.LambdaLR(optimiser, lambda i: warm_cosine(i, steps))
    vg.synchronize(device)
    kept, first, began = [], vg.counters(device), time.perf_counter()
    for epoch in range(1, epochs + 1):
        losses, before = [], vg.counters(device)
        for x, y in loader:
            x = moved(x, rng, recipe.shift, recipe.stretch)
            losses.append(step(net, optimiser, x, y, recipe.clip))
            rates.step()
        check_no_copies(before, vg.counters(device), len(loader), orders=1)
        kept.append(vg.mean(vg.stack(losses)))
        if epoch in (1, epochs) or epoch % 5 == 0:
            report(epoch, kept[-1].item())
    vg.synchronize(device)
    seconds = time.perf_counter() - began
    launches = vg.counters(device)["launches"] - first["launches"]
    read = classify(net, data.test_images)
    accuracy = float((read == data.test_labels).mean())
    curve = vg.stack(kept).tolist()
    seen = steps * batch
    return Run(device, epochs, steps, seen, seconds, accuracy, launches, curve, read), net


def made(model, data, device, seed, width):
    """Return a network for images as in data, whose weights a seed decides."""
    vg.random.seed(seed)
    sizes = (*data.train_images.shape[1:], data.classes)
    options = {} if width is None else {"width": width}
    return NETWORKS[model](*sizes, **options).to(device)


def warm_up(net, images, labels):
    """Do a step with a network that nobody needs: load the kernels, fill the memory pool."""
    step(net, vg.optim.AdamW(net.parameters()), images, labels)


def classify(net, images, batch=1024):
    """Return the class, int64, that a network reads in each image (n, rows, columns) of NumPy."""
    device = next(net.parameters()).device
    net.eval()
    pieces = [images[i : i + batch] for i in range(0, len(images), batch)]
    with vg.no_grad():
        parts = [vg.asarray(piece, device=device) for piece in pieces]
        return vg.concat([vg.argmax(net(part), axis=1) for part in parts]).numpy()
