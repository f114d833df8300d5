"""What small work costs the host alone: calls and steps on a simulated card that runs no kernels.

Two numbers of each are the same every time: functions of Python that are entered, and calls into
the C library. tests/test_host_work.py holds them; the microseconds are those of the machine.
"""

import contextlib
import ctypes
import functools
import gc
import sys
import time

import numpy as np

import pyvecgpu as vg

from . import training

SECONDS = 0.002  # of one look at the clock
LOOKS = {False: 150, True: 3}  # quick


# Pieces -------------------------------------------------------------------------------------------


def pieces():
    """Return {name: a function of a device that gives what is to be called}."""
    return {
        "a + b": of_arrays(lambda a, b: a + b),
        "a * 2": of_arrays(lambda a, b: a * 2),
        "exp(a)": of_arrays(lambda a, b: vg.exp(a)),
        "a.T": of_arrays(lambda a, b: a.T, (4, 4)),
        "a[3:5]": of_arrays(lambda a, b: a[3:5]),
        "a.reshape(4, 4)": of_arrays(lambda a, b: a.reshape(4, 4)),
        "a.sum()": of_arrays(lambda a, b: a.sum()),
        "item": of_arrays(lambda a, b: a.item(), ()),
        "Linear": of_module(vg.nn.Linear(4, 4), (2, 4)),
        "Linear, no_grad": of_module(vg.nn.Linear(4, 4), (2, 4), False),
        "training step": of_task(training.perceptron(16), (4, 784)),
        "forward": of_task(training.perceptron(16), (4, 784), part="forward"),
        "backward": of_task(training.perceptron(16), (4, 784), part="backward"),
        "zero_grad": of_task(training.perceptron(16), (4, 784), part="zero_grad"),
        "SGD step": of_task(training.perceptron(16), (4, 784), part="update"),
        "Adam step": of_task(training.perceptron(16), (4, 784), part="update", optimiser="Adam"),
        "LSTM step": of_task(training.lstm(8), (2, 3, 8)),
        "GRU": of_module(vg.nn.GRU(8, 8, batch_first=True), (2, 3, 8), first=True),
        "attention": of_attention,
        "transformer block": of_task(
            training.transformer(8, 1, 2, 11), (2, 4), words=11, optimiser="AdamW"
        ),
        "DataLoader, a batch": of_loader,
        "fit, a batch": of_fit,
    }


def of_arrays(function, shape=(16,)):
    def prepared(device):
        a, b = (vg.ones(shape, device=device) for _ in range(2))
        return lambda: function(a, b)

    return prepared


def of_module(module, shape, recorded=True, first=False):
    def prepared(device):
        net, x = module.to(device), vg.ones(shape, device=device)
        call = (lambda: net(x)[0]) if first else (lambda: net(x))
        return call if recorded else vg.no_grad(call)

    return prepared


def of_attention(device):
    net, x = vg.nn.MultiheadAttention(8, 2, batch_first=True).to(device), vg.ones((2, 4, 8))
    x = x.to(device)
    return lambda: net(x, x, x, need_weights=False)


def of_task(network, shape, part="", words=None, optimiser="SGD"):
    """A step of a task of training.py, or one part of it."""

    def prepared(device):
        rows = shape[0] * shape[1] if words else shape[0]
        options = {"lr": 0.01} | ({"momentum": 0.9} if optimiser == "SGD" else {})
        task = training.Task("", network, shape, rows, words or 10, words=words)
        inputs, labels = (vg.asarray(x, device=device) for x in task.batch())
        net = network(vg.nn).to(device)
        steps = getattr(vg.optim, optimiser)(net.parameters(), **options)
        loss_of = vg.nn.functional.cross_entropy

        def step():
            loss = loss_of(net(inputs), labels)
            steps.zero_grad()
            loss.backward()
            steps.step()

        step()
        step()
        loss = loss_of(net(inputs), labels)
        parts = {
            "": step,
            "forward": lambda: loss_of(net(inputs), labels),
            "backward": lambda: loss.backward(retain_graph=True),
            "zero_grad": steps.zero_grad,
            "update": steps.step,
        }

        def backward():
            steps.zero_grad()
            loss.backward(retain_graph=True)

        return backward if part == "backward" else parts[part]

    return prepared


BATCHES = 16


def loader(device):
    x, y = vg.ones((4 * BATCHES, 8), device=device), vg.zeros(4 * BATCHES, "int64", device=device)
    return vg.data.DataLoader(vg.data.TensorDataset(x, y), 4)


def of_loader(device):
    batches = loader(device)

    def epoch():
        for _ in batches:
            pass

    return epoch


def of_fit(device):
    net = vg.nn.Sequential(vg.nn.Linear(8, 4)).to(device)
    steps, batches = vg.optim.SGD(net.parameters(), lr=0.01), loader(device)
    loss = vg.nn.CrossEntropyLoss()
    return lambda: vg.nn.fit(net, batches, loss, steps, epochs=1, progress=False)


PARTS = {"DataLoader, a batch": BATCHES, "fit, a batch": BATCHES}  # of what one call does


# Counting and timing ------------------------------------------------------------------------------


def counts(call, device):
    """Return how many Python functions call() enters, and how often it calls the C library."""
    call()
    entered = 0

    def profile(frame, event, argument):
        nonlocal entered
        entered += event == "call"

    was_enabled, before = gc.isenabled(), sys.getprofile()
    gc.disable()
    try:
        sys.setprofile(profile)
        call()
        sys.setprofile(before)
        with counted(device.backend) as calls:
            call()
    finally:
        sys.setprofile(before)
        if was_enabled:
            gc.enable()
    return entered - 1, len(calls)  # not call itself


@contextlib.contextmanager
def counted(backend):
    """Give a list that gets the name of each function of the C library that a backend calls."""
    calls, before = [], []
    for one in {backend, backend.into}:
        for place in (one, one.functions):
            for name, function in vars(place).items():
                if isinstance(function, ctypes._CFuncPtr):
                    before.append((place, name, function))

    def noting(function, *arguments):
        calls.append(function.__name__)
        return function(*arguments)

    try:
        for place, name, function in before:
            setattr(place, name, functools.partial(noting, function))
        yield calls
    finally:
        for place, name, function in before:
            setattr(place, name, function)


def seconds(call, looks):
    """Return the least time of a call, seconds."""
    began = time.thread_time()
    call()
    many = max(1, round(SECONDS / (time.thread_time() - began)))
    least = float("inf")
    for _ in range(looks):
        began = time.thread_time()
        for _ in range(many):
            call()
        least = min(least, (time.thread_time() - began) / many)
    return least


@contextlib.contextmanager
def without_kernels(device):
    """Launches of a simulated card do nothing in this block. ValueError: another device."""
    if device.type != "sim":
        raise ValueError(f"bench host is of the simulated card, not of {str(device)!r}")
    library = device.backend.library
    library.pvg_sim_set(b"skip_kernels", 1)
    try:
        yield
    finally:
        library.pvg_sim_set(b"skip_kernels", 0)


def run(device, quick, say, only=None):
    """Measure and print each piece; return the rows, dicts."""
    table = []
    with without_kernels(device), np.errstate(all="ignore"):
        for name, prepare in pieces().items():
            if only and not any(part in name for part in only):
                continue
            call, parts = prepare(device), PARTS.get(name, 1)
            entered, calls = counts(call, device)
            gc.collect()
            least = seconds(call, LOOKS[quick]) / parts
            row = {"name": name, "seconds": least}
            row |= {"python_calls": entered / parts, "library_calls": calls / parts}
            table.append(row)
            say(
                f"{name:20} {least * 1e6:8.2f} us {row['python_calls']:7.1f} functions of Python, "
                f"{row['library_calls']:5.1f} calls of the library"
            )
    return table
