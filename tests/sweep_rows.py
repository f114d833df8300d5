"""The sweep's groups of normalisations, cross-entropy and softmax's backward pass.

The references are this library's own functions on the CPU device in float64, which have tests
against NumPy.
"""

import helpers
import numpy as np
from helpers import fixed_integers as data
from helpers import put

import pyvecgpu as vg

F = vg.nn.functional
LENGTHS = (30, 200, 500, 900, 1500, 3000, 4100, 8200)  # every number of packs, threads of a row
IN_PARTS = (4500, 8300)  # of which blocks have a part each, in float64, or in any dtype
MANY = (1100, 130)  # rows, of whose sums there are more than a thread adds up
BEYOND = (1, 66_000)  # a row that nobody holds
# Small ones, in rows and in columns, and ones that are not small.
CHANNELS = ((3, 5, 40), (3, 5, 41), (6, 4, 2), (37, 5), (5, 53_000))
CHANNELS_IN_PARTS = ((2, 1, 20_000), (3, 1, 11_001))  # of which blocks have a part each
CHANNEL_BEYOND = (2, 1, 460_000)  # that no blocks hold


def gradients(function, device, dtype, arrays):
    """The result of a function and the gradients of the arrays, for a gradient of small numbers."""
    leaves = [put(device, x.astype(dtype)).requires_grad_() for x in arrays]
    y = function(*leaves)
    y.backward(put(device, data(y.dtype, y.shape, seed=3)))
    return [y.detach(), *[leaf.grad for leaf in leaves]]


def check(function, device, dtype, arrays):
    found = gradients(function, device, dtype, arrays)
    expected = gradients(function, "cpu", np.dtype(np.float64), [x.astype(dtype) for x in arrays])
    unit = max(helpers.UNIT_ROUNDOFF[dtype], 2.0**-52)
    for one, other in zip(found, expected, strict=True):
        wanted = helpers.host(other)
        size = 1 + np.max(np.abs(wanted), initial=0.0)
        helpers.assert_within(one, wanted, 200 * unit * size)


def normalisations(dtype):
    if not helpers.is_float(dtype):
        return
    small = np.dtype(np.float64)

    def case(function, *shapes):
        arrays = [data(small, shape, seed=i) for i, shape in enumerate(shapes)]
        return lambda device: check(function, device, dtype, arrays)

    def on_cards(on_one):
        def on_all(device):  # of the simulated ones "sim:1" has clusters
            for card in (device, "sim:1") if device == "sim" else (device,):
                on_one(card)

        return on_all

    for rows in (*[(3, length) for length in LENGTHS], MANY, BEYOND):
        length = rows[1]
        yield (
            f"layer norm, {rows}",
            case(lambda x, w, n=length: F.layer_norm(x, n, w, eps=1.0), rows, length),
        )
        yield f"plain norm, {length}", case(lambda x, n=length: F.layer_norm(x, n, eps=1.0), rows)
    for length in IN_PARTS:
        on_one = case(lambda x, w, n=length: F.layer_norm(x, n, w, eps=1.0), (2, length), length)
        yield f"layer norm in parts, {length}", on_cards(on_one)

    def train(x, w, b):
        return F.batch_norm(x, None, None, w, b, True, eps=1.0)

    yield f"batch norm, {CHANNEL_BEYOND}", case(train, CHANNEL_BEYOND, 1, 1)
    for shape in (*CHANNELS, *CHANNELS_IN_PARTS):

        def evaluate(x, w, n=shape[1]):
            still = vg.ones(n, device=x.device)
            return F.batch_norm(x, still, still, w)

        yield f"batch norm, {shape}", on_cards(case(train, shape, shape[1], shape[1]))
        yield f"batch norm, given, {shape}", case(evaluate, shape, shape[1])
        groups = case(lambda x, w: F.group_norm(x, 1, w, eps=1.0), shape, shape[1])
        yield f"group norm, {shape}", groups


def mean_losses(dtype):
    for rows in (3, 65_537):  # of one block, and of several
        x, labels = data(np.dtype(np.float64), (rows, 2)), np.arange(rows) % 2

        def loss(x, labels=labels):
            return F.cross_entropy(x, labels)

        yield (
            f"mean cross-entropy, {rows}",
            lambda device, loss=loss, x=x: check(loss, device, dtype, [x]),
        )


def losses(dtype):
    if not helpers.is_float(dtype):
        return
    for length in LENGTHS:
        labels = np.array([1, 0, length - 1])

        def loss(x, labels=labels):
            return F.cross_entropy(x, labels, reduction="none", label_smoothing=0.25)

        rows = data(np.dtype(np.float64), (3, length))
        yield (
            f"cross-entropy, {length}",
            lambda device, loss=loss, rows=rows: check(loss, device, dtype, [rows]),
        )
        if length == LENGTHS[0]:
            yield from mean_losses(dtype)
        yield (
            f"backward pass of softmax, {length}",
            lambda device, rows=rows: check(vg.softmax, device, dtype, [rows]),
        )
