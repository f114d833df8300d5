"""Steps of training that only move memory: optimisers, clipping, dropout, embeddings; in bytes/s.

Counted is what must move: parameters and states are read and written, gradients read; clipping
reads them twice and writes them; of an embedding the gradient of the whole table is written. Rates
of 0 and the norm itself as the limit leave all values as they are, so that the work can be
repeated; no memory is saved by that.
"""

import numpy as np

from .goals import Within
from .timing import Row

F32 = np.float32
# How many parameters of which side; elements for dropout; rows looked up, of a table of rows.
SIZES = {
    "full": (100, 512, 2**26, (8192, 50_000, 512)),
    "cpu": (20, 128, 2**20, (1024, 5_000, 128)),
    "quick": (5, 16, 2**10, (30, 20, 8)),
}
# On an H200: at 0.8 of the rates aimed at, which are 3.8, 3.8, 3.5 and 4.0 TB/s.
GOALS = [
    Within("SGD with momentum", 173e-6),
    Within("AdamW", 241e-6),
    Within("clipping by norm", 112e-6),
    Within("dropout", 168e-6),
    Within("embedding", 25e-6),
    Within("embedding's backward pass", 75e-6),
]


def rows(size):
    """Return the rows for a key of SIZES."""
    count, side, length, looked_up = SIZES[size]
    shape = count, side, side
    return [
        step("SGD with momentum", shape, 5, "SGD", {"momentum": 0.9}),
        step("AdamW", shape, 7, "AdamW", {}),
        step("RMSprop", shape, 5, "RMSprop", {}),
        clipping(shape),
        dropout(length),
        embedding(*looked_up),
        embedding_backward(*looked_up),
    ]


def parameters(library, p, g):
    """Return a list of what one array has along its first axis, with gradients."""
    found = [p[i].detach().requires_grad_() for i in range(p.shape[0])]
    for number, x in enumerate(found):
        x.grad = g[number]
    return found


def returned(make):
    """Return call(library, p, g), which is make(library, p, g)() and makes it once for each p."""
    made = {}

    def call(library, p, g):
        if id(p) not in made:
            made[id(p)] = make(library, p, g), p
        return made[id(p)][0]()

    return call


def kept(make):
    """Return the same, which returns p."""
    step = returned(make)

    def call(library, p, g):
        step(library, p, g)
        return p

    return call


def step(name, shape, accesses, algorithm, options):
    def ours(vg, p, g):
        return getattr(vg.optim, algorithm)(parameters(vg, p, g), lr=0.0, **options).step

    def torchs(torch, p, g):
        fused = {"foreach": True} if algorithm == "RMSprop" else {"fused": True}
        chosen = getattr(torch.optim, algorithm)
        return chosen(parameters(torch, p, g), lr=0.0, **options, **fused).step

    return Row(
        name=name,
        work=accesses * 4 * int(np.prod(shape)),
        unit="B/s",
        operands=[(shape, F32)] * 2,
        out=None,
        calls={"pyvecgpu": kept(ours), "torch": kept(torchs)},
        expected=lambda p, g: p,
        error_allowed=0.0,
    )


def clipping(shape):
    def make(library, p, g):
        params, utils = parameters(library, g, p), library.nn.utils
        most = utils.clip_grad_norm_(params, float("inf")).item()
        return lambda: utils.clip_grad_norm_(params, most)

    return Row(
        name="clipping by norm",
        work=3 * 4 * int(np.prod(shape)),
        unit="B/s",
        operands=[(shape, F32)] * 2,
        out=None,
        calls={"pyvecgpu": kept(make), "torch": kept(make)},
        expected=lambda p, g: p,
        error_allowed=1e-5,
    )


def dropout(length):
    return Row(
        name="dropout",
        work=8 * length,
        unit="B/s",
        operands=[((length,), F32)],
        out=None,
        calls=dict.fromkeys(
            ("pyvecgpu", "torch"), lambda m, x: m.nn.functional.dropout(x, 1e-6, True)
        ),
        expected=lambda x: x,
        error_allowed=0.1,
        note="one element in a million is left out, so that the others can be compared",
    )


def chosen(count, rows):
    """Return the numbers of the rows that are looked up: all over the table, some more often."""
    return (np.arange(count, dtype=np.int64) ** 2 * 7919 + 13) % rows


def on(library, array, numbers):
    """Return an array of the library's where another one is."""
    return library.asarray(numbers, device=array.device)


def embedding(count, rows, features):
    def make(library, w, g):
        numbers, look_up = on(library, w, chosen(count, rows)), library.nn.functional.embedding
        return lambda: look_up(numbers, w)

    return Row(
        name="embedding",
        work=2 * 4 * count * features,
        unit="B/s",
        operands=[((rows, features), F32), ((count, features), F32)],
        out=None,
        calls=dict.fromkeys(("pyvecgpu", "torch"), returned(make)),
        expected=lambda w, g: w[chosen(count, rows)],
        error_allowed=0.0,
    )


def embedding_backward(count, rows, features):
    def make(library, w, g):
        w = w.detach().requires_grad_()
        y = library.nn.functional.embedding(on(library, w, chosen(count, rows)), w)

        def back():
            w.grad = None
            y.backward(g, retain_graph=True)
            return w.grad

        return back

    def gradient(w, g):
        wanted = np.zeros(w.shape)
        np.add.at(wanted, chosen(count, rows), g)
        return wanted

    return Row(
        name="embedding's backward pass",
        work=4 * (count + rows) * features,
        unit="B/s",
        operands=[((rows, features), F32), ((count, features), F32)],
        out=None,
        calls=dict.fromkeys(("pyvecgpu", "torch"), returned(make)),
        expected=gradient,
        error_allowed=2e-6,
    )
