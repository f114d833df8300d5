"""The figures of docs/why.md on the reader's own machine: `python -m pyvecgpu learn why --run`.

Each part measures something and says it in lines; a part that needs what is not there says why.
Times are wall-clock ones, the shortest of some, with a wait for the device inside.
"""

import functools
import math
import time
from typing import NamedTuple

import numpy as np

import pyvecgpu as vg

from ..bench import machine
from ..bench.loops import Loops
from .networks import ALEXNET, NETWORKS

MANY = 10_000_000  # elements of the large addition
SIZE = 768  # of the square product
NUMBERS = 200_000  # that the serial part reads from text
BATCH = {"cpu": 4, "cuda": 64}  # photographs of a step of AlexNet
ENOUGH = 0.2  # seconds: what takes longer is not measured again
QUICK = {"many": 100_000, "size": 128, "numbers": 5_000, "batch": 1}


class Setting(NamedTuple):
    """What is measured on, and how large."""

    cores: int
    loops: Loops | None
    no_loops: str  # why there are none
    device: vg.Device | None  # a GPU
    many: int
    size: int
    numbers: int
    batch: int
    network: object = ALEXNET


def setting(quick=False):
    """Return the Setting of this machine."""
    cores = machine.describe_cpu()["cores"]
    try:
        loops, no_loops = Loops(cores), ""
    except OSError as error:
        loops, no_loops = None, str(error)
    try:
        device = vg.Device("cuda")
    except vg.PyVecGPUError:
        device = None
    kind = "cpu" if device is None else "cuda"
    sizes = QUICK if quick else {"many": MANY, "size": SIZE, "numbers": NUMBERS}
    return Setting(cores, loops, no_loops, device, **({"batch": BATCH[kind]} | sizes))


def seconds(call, device=None):
    """Return the shortest time of up to five calls; the device is waited for."""
    best, begin = math.inf, time.perf_counter()
    for _ in range(5):
        before = time.perf_counter()
        call()
        if device is not None:
            vg.synchronize(device)
        after = time.perf_counter()
        best = min(best, after - before)
        if after - begin > ENOUGH:
            break
    return best


def duration(value):
    """Return a time in words: "1.24 ms"."""
    for unit, scale in (("s", 1), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def number(value):
    """Return a large number in words: "61.0 million"."""
    for name, scale in (("billion", 1e9), ("million", 1e6)):
        if value >= scale:
            return f"{value / scale:,.1f} {name}"
    return f"{value:,}"


# One worker or many -------------------------------------------------------------------------------


def latency(on):
    """Return (lines, figures): an addition of one element and of many, by each kind of worker."""
    if on.loops is None:
        return [f"The C loops were not built: {on.no_loops}"], {}
    sizes = (1, on.many)
    arrays = {n: [np.ones(n, np.float32) for _ in range(3)] for n in sizes}
    workers = {
        "one core": {n: _loop(on.loops, "add", False, *arrays[n]) for n in sizes},
        f"all {on.cores} cores": {n: _loop(on.loops, "add", True, *arrays[n]) for n in sizes},
    }
    if on.device is not None:
        workers[on.device.name] = {n: _addition(on.device, n) for n in sizes}
    lines = [f"{'c = a + b':24} {'1 element':>12} {f'{on.many:,} elements':>22} {'a second':>14}"]
    figures = {}
    for name, times in workers.items():
        few, much = times[1], times[on.many]
        rate = number(round(on.many / much))
        lines.append(f"{name:24} {duration(few):>12} {duration(much):>22} {rate:>14}")
        figures[name] = {"one": few, "many": much}
    if on.device is None:
        return [*lines, "There is no GPU here, so the last line, a GPU's, is missing."], figures
    count, each = (
        getattr(on.device.limits, name)
        for name in ("multiprocessor_count", "max_threads_per_multiprocessor")
    )
    lines.append(f"Its {count} multiprocessors hold {count * each:,} threads at once.")
    return lines, figures


def _loop(loops, name, all_cores, a, b, out):
    """Return the seconds of one call of a C loop; short ones by many calls."""
    call, calls = loops.call(name, all_cores), 1
    while True:
        taken = seconds(functools.partial(call, a, b, out, calls))
        if taken >= 1e-3 or calls >= 2**20:
            return taken / calls
        calls *= 4


def _addition(device, n):
    a, b = (vg.ones(n, dtype=vg.float32, device=device) for _ in range(2))
    seconds(lambda: a + b, device)
    return seconds(lambda: a + b, device)


# Serial and parallel ------------------------------------------------------------------------------


def amdahl(on):
    """Return (lines, figures): a program of three parts, of which one cannot be shared out."""
    if on.loops is None:
        return [f"The C loops were not built: {on.no_loops}"], {}
    text = " ".join(map(str, range(on.numbers)))
    serial = seconds(lambda: [float(word) for word in text.split()])
    vectors = [np.ones(on.many, np.float32) for _ in range(3)]
    matrices = [np.ones((on.size, on.size), np.float32) for _ in range(3)]
    parts = {"read numbers from text": {"one": serial, "all": serial, "gpu": serial}}
    for title, name, arrays in (
        ("add two vectors", "add", vectors),
        ("multiply two matrices", "multiply", matrices),
    ):
        times = {key: _loop(on.loops, name, key == "all", *arrays) for key in ("one", "all")}
        if on.device is not None:
            times["gpu"] = _there_and_back(on.device, name, arrays)
        parts[title] = times
    columns = ["one", "all"] + (["gpu"] if on.device is not None else [])
    heads = {"one": "one core", "all": f"{on.cores} cores", "gpu": "GPU, with copies"}
    lines = [f"{'':24}" + "".join(f"{heads[key]:>20}" for key in columns)]
    for title, times in parts.items():
        cells = [times[key] if key in times else times["one"] for key in columns]
        lines.append(f"{title:24}" + "".join(f"{duration(cell):>20}" for cell in cells))
    totals = {key: sum(times[key] for times in parts.values()) for key in columns}
    lines.append(f"{'all three':24}" + "".join(f"{duration(totals[k]):>20}" for k in columns))
    share = serial / totals["one"]
    lines += [
        "",
        f"Reading is {share:.1%} of the time on one core and cannot be shared out: however many",
        f"workers do the rest, the program cannot become more than {1 / share:.3g} times as fast.",
    ]
    best = min(columns[1:], key=totals.get)
    lines.append(f"{heads[best]}: {totals['one'] / totals[best]:.3g} times.")
    return lines, {"parts": parts, "serial_share": share}


def _there_and_back(device, name, arrays):
    a, b = arrays[:2]

    def call():
        x, y = vg.asarray(a, device=device), vg.asarray(b, device=device)
        (x + y if name == "add" else x @ y).numpy()

    call()
    return seconds(call)


# What training multiplies -------------------------------------------------------------------------


def networks(on):
    """Return (lines, figures): parameters, products and bytes of a step; a table of shapes."""
    lines = [f"{'':28} {'parameters':>14} {'products a step':>18} {'bytes a step':>16}"]
    for one in NETWORKS:
        cells = (number(one.parameters), number(one.products), number(one.bytes))
        lines.append(f"{one.name:28} {cells[0]:>14} {cells[1]:>18} {cells[2]:>16}")
    lines.append("Products: for one example. Bytes: for the parameters alone, once a step.")
    return lines, {one.name: one.parameters for one in NETWORKS}


def step(on, progress=lambda what: None):
    """Return (lines, figures): AlexNet's layers as products, and what `.to("cuda")` brings."""
    cpu = vg.Device("cpu")
    lines = [f"{on.network.name}: a step of {on.batch} as products, on the CPU (NumPy)"]
    per_layer = {}
    for layer in on.network.layers:
        progress(layer.name)
        first = layer is on.network.layers[0]
        per_layer[layer.name] = taken = products(layer, on.batch, cpu, first)
        done = (2 if first else 3) * on.batch * layer.products
        rate = 2 * done / taken / 1e9
        lines.append(f"  {layer.name:16} {duration(taken):>10} {rate:8.1f} GFLOP/s")
    total = sum(per_layer.values())
    lines.append(f"  {'all layers':16} {duration(total):>10}")
    figures = {"batch": on.batch, "cpu": per_layer}
    if on.device is None:
        lines.append('There is no GPU here, so nothing is moved by .to("cuda").')
        return lines, figures
    there = {}
    for layer in on.network.layers:
        progress(f"{layer.name} on the GPU")
        there[layer.name] = products(layer, on.batch, on.device, layer is on.network.layers[0])
    moved = moving(on.network, on.device)
    gpu = sum(there.values())
    lines += [
        f"  {'on the GPU':16} {duration(gpu):>10}, {total / gpu:.3g} times as fast",
        f'.to("cuda") of its {number(on.network.parameters)} parameters: {duration(moved)},',
    ]
    lines.append(_pays(moved, total - gpu))
    return lines, figures | {"gpu": there, "moved": moved}


def _pays(moved, saved):
    if saved <= 0:
        return "which never pays off: a step is no faster there."
    return f"which pays off after {math.ceil(moved / saved)} of such steps."


def products(layer, batch, device, first=False):
    """Return the seconds of a layer's products in a step: forward, gradient of the weights, and but
    for the first layer that of the inputs."""
    groups, rows = layer.groups, batch * layer.positions
    with vg.device(device):
        x = _random(groups, rows, layer.inputs)
        W = _random(groups, layer.inputs, layer.outputs)
        d = _random(groups, rows, layer.outputs)

        def call():
            results = [x @ W, vg.matrix_transpose(x) @ d]
            return results if first else [*results, d @ vg.matrix_transpose(W)]

        if device.type == "cuda":
            call()
        return seconds(call, device)


def _random(*shape):
    return vg.asarray(np.random.default_rng(1).standard_normal(shape, dtype=np.float32))


def moving(network, device):
    """Return the seconds of moving a network's parameters from the CPU device to another one."""
    cpu = vg.Device("cpu")
    arrays = [vg.ones(layer.parameters, dtype=vg.float32, device=cpu) for layer in network.layers]
    return seconds(lambda: [array.to(device) for array in arrays], device)


PARTS = (
    ("One fast worker, many slow ones", latency),
    ("Serial and parallel parts", amdahl),
    ("Networks from 337 to 61 million parameters", networks),
    ("A training step, and what the move to the GPU brings", step),
)


def report(on, say, progress):
    """Measure all parts and say their lines; return what JSON shall keep.

    `progress` is a Progress that counts the parts.
    """
    cpu = machine.describe_cpu()
    about = machine.describe(on.device or vg.Device("cpu"), [])
    where = f"{cpu['name']}, {cpu['cores']} cores" + (f"; {on.device.name}" if on.device else "")
    say(f"Measured on {where}")
    kept = {"benchmark": "why", **about, "cpu": cpu, "parts": []}
    for title, part in PARTS:
        progress.advance(title)
        more = {"progress": progress.tell} if part is step else {}
        lines, figures = part(on, **more)
        for line in ("", title, "-" * len(title), *lines):
            say(line)
        kept["parts"].append({"title": title, "lines": lines, "figures": figures})
    return kept
