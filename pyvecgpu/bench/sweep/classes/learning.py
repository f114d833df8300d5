"""What networks learn with, by torch's names: normalisation, losses, activations, optimisers.

Forward, or with all gradients. Both libraries are called by the same functions; what is expected
comes from the CPU device in float64, whose gradients the tests compare with differences.
"""

import math

import numpy as np

import pyvecgpu as vg

from ...timing import BFLOAT16
from ..case import FLOATS, ROUNDOFF, Case, Made, Operand, moved, rounding

RATES = ("float32", "float32", *FLOATS)
WAYS = ("forward", "gradient")
BOUND = 256  # roundings of what is computed with, of the largest value; halves hold some results


def gradients(function, leaves, is_scalar):
    """Return the function of (m, *arrays) that gives the gradients of the first so many arrays.

    The last array is the gradient of what the function returns, unless that is a scalar.
    """

    def call(m, *arrays):
        made = [x.detach().requires_grad_() for x in arrays[:leaves]]
        if is_scalar:
            return m.autograd.grad(function(m, *made, *arrays[leaves:]), made)
        return m.autograd.grad(function(m, *made, *arrays[leaves:-1]), made, arrays[-1])

    return call


def expected_of(call, dtype):
    """Return the function of NumPy arrays that gives what `call` returns, and its largest error."""

    def expected(*arrays):
        wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in arrays]
        results = call(vg, *[vg.asarray(x, device="cpu") for x in wide])
        if not isinstance(results, (tuple, list)):
            return allowed(results.numpy(), dtype)
        return tuple(zip(*[allowed(one.numpy(), dtype) for one in results], strict=True))

    return expected


def allowed(values, dtype):
    error = BOUND * ROUNDOFF["float64" if dtype == "float64" else "float32"]
    if dtype in ("float16", BFLOAT16):
        error = 4 * ROUNDOFF[dtype]
    largest = np.max(np.abs(values), initial=0)
    return values, 2 * rounding(values, dtype) + error * largest


def of_network(group, text, function, dtype, operands, leaves, result, way):
    """Return the Case of a function of operands, of which `leaves` have gradients."""
    operands, call, written = list(operands), function, [result]
    if way == "gradient":
        written = [one.shape for one in operands[:leaves]]
        call = gradients(function, leaves, result == ())
        if result != ():
            operands.append(Operand(dtype, result, 64))
    return Case(
        group=f"{group} {way}",
        text=text,
        operands=operands,
        call=call,
        peer=call,
        expected=expected_of(call, dtype),
        bytes=moved(operands, (sum(map(math.prod, written)),), dtype),
    )


# Normalisation ------------------------------------------------------------------------------------

LEAST = 16  # elements of a mean: with few, the gradient of neighbours that are alike is ill-posed


def channels_of(draw, size):
    """Return the shape of pictures or sequences of some channels, (items, channels, ...)."""
    channels = draw.choice((draw.size(1, 2000), 2 ** draw.randint(2, 9)))
    items = draw.size(1, 256)
    inner = max(1, size // (channels * items))
    if draw.random() < 0.5:
        return items, channels, inner
    side = max(1, math.isqrt(inner))
    return items, channels, side, side


def norm_of_rows(draw):
    """Layer or RMS normalisation of rows, with weights."""
    kind, dtype, way = draw.choice(("layer", "rms")), draw.choice(RATES), draw.choice(WAYS)
    size = draw.size(1000, 3 * 10**7)
    columns = draw.choice((draw.size(2, max(3, size // 2)), 2 ** draw.randint(5, 14)))
    columns = max(LEAST, columns)
    shape = (max(1, size // columns), columns)
    operands = [Operand(dtype, shape), Operand(dtype, (columns,), 9)]
    if kind == "layer":
        operands.append(Operand(dtype, (columns,), 13))

    def function(m, x, *parameters):
        return getattr(m.nn.functional, f"{kind}_norm")(x, (columns,), *parameters, eps=1e-5)

    text, leaves = f"{dtype} {shape}", len(operands)
    return of_network(f"norm {kind}", text, function, dtype, operands, leaves, shape, way)


def norm_of_channels(draw):
    """Batch normalisation in training, or normalisation of groups."""
    kind, dtype, way = draw.choice(("batch", "group")), draw.choice(RATES), draw.choice(WAYS)
    shape = channels_of(draw, draw.size(1000, 3 * 10**7))
    channels = shape[1]
    groups = math.gcd(channels, draw.choice((1, 2, 8, 32)))
    parameter = (channels,)
    operands = [Operand(dtype, shape), Operand(dtype, parameter, 9), Operand(dtype, parameter, 13)]

    def function(m, x, weight, bias):
        if kind == "group":
            return m.nn.functional.group_norm(x, groups, weight, bias)
        return m.nn.functional.batch_norm(x, None, None, weight, bias, True)

    statistics = channels if kind == "batch" else shape[0] * groups
    if math.prod(shape) < LEAST * statistics:
        return norm_of_channels(draw)
    text = f"{dtype} {shape}" + (f" groups {groups}" if kind == "group" else "")
    return of_network(f"norm {kind}", text, function, dtype, operands, 3, shape, way)


# Losses -------------------------------------------------------------------------------------------

PAIRS = ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits")


def loss_of_labels(draw):
    """Cross-entropy of logits and labels, a mean or an element a row."""
    dtype, way = draw.choice(RATES), draw.choice(WAYS)
    size = draw.size(1000, 3 * 10**7)
    classes = draw.choice((draw.size(2, max(3, size // 2)), draw.choice((2, 10, 1000, 50257))))
    rows = max(1, size // classes)
    smoothing = draw.choice((0.0, 0.0, 0.1))
    operands = [
        Operand(dtype, (rows, classes)),
        Operand("int64", (rows,), made=Made("index", classes)),
    ]

    def function(m, logits, labels):
        return m.nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing)

    text = f"{dtype} {(rows, classes)}" + (f" smoothing {smoothing}" if smoothing else "")
    return of_network("loss cross_entropy", text, function, dtype, operands, 1, (), way)


def loss_of_pairs(draw):
    """A loss of two arrays of one shape, the mean."""
    name, dtype, way = draw.choice(PAIRS), draw.choice(RATES), draw.choice(WAYS)
    shape = draw.split(draw.size(1000, 3 * 10**7), 1, 4000)
    target = Operand(dtype, shape, 5)
    operands = [Operand(dtype, shape), target]

    def function(m, x, target):
        return getattr(m.nn.functional, name)(x, target)

    text = f"{name} {dtype} {shape}"
    return of_network("loss of pairs", text, function, dtype, operands, 1, (), way)


# Activations, embeddings, dropout -----------------------------------------------------------------

ACTIVATIONS = ("relu", "gelu", "silu", "softplus", "leaky_relu", "elu", "sigmoid", "tanh")


def activation(draw):
    """The gradient of an activation, softmax among them; or one that has no class of its own."""
    way = draw.choice(WAYS)
    names = ACTIVATIONS if way == "gradient" else ("softplus", "leaky_relu", "elu")
    name = draw.choice((*names, "softmax", "log_softmax") if way == "gradient" else names)
    dtype, shape = draw.choice(RATES), draw.split(draw.size(1000, 3 * 10**7), 1, 4000)
    operands = [Operand(dtype, shape)]

    def function(m, x):
        found = getattr(m.nn.functional, name, None) or getattr(m, name)
        return found(x, -1) if "softmax" in name else found(x)

    group = "softmax" if "softmax" in name else "activation"
    return of_network(group, f"{name} {dtype} {shape}", function, dtype, operands, 1, shape, way)


def embedding(draw):
    """Rows of a table by their numbers, and the table's gradient."""
    dtype, way = draw.choice(RATES), draw.choice(WAYS)
    rows, columns = draw.split(draw.size(1000, 3 * 10**7), 2, 10**5)
    count = max(1, min(draw.size(1, 10**5), 3 * 10**7 // columns))
    operands = [
        Operand(dtype, (rows, columns)),
        Operand("int64", (count,), made=Made("index", rows)),
    ]

    def function(m, table, numbers):
        return m.nn.functional.embedding(numbers, table)

    text, result = f"{dtype} {count} of {(rows, columns)}", (count, columns)
    return of_network("embedding", text, function, dtype, operands, 1, result, way)


def dropout(draw):
    """Dropout, forward: of all elements about p are 0, the others as much larger."""
    dtype, p = draw.choice(RATES), draw.choice((0.1, 0.5))
    shape = draw.split(draw.size(1000, 3 * 10**7), 1, 4000)
    operands = [Operand(dtype, shape)]

    def function(m, x):
        return m.nn.functional.dropout(x, p, True)

    def verify(values):
        share = np.mean(values == 0)
        room = 6 * math.sqrt(p * (1 - p) / values.size) + 0.01
        return "" if abs(share - p) <= room else f"{share:.3f} of the elements are 0"

    return Case(
        group="dropout",
        text=f"{dtype} {shape} {p}",
        operands=operands,
        call=function,
        peer=function,
        expected=None,
        bytes=moved(operands, shape, dtype),
        verify=verify,
    )


# Optimisers ---------------------------------------------------------------------------------------

STEPS = {
    "SGD": {"momentum": 0.9},
    "Adam": {},
    "AdamW": {"weight_decay": 0.01},
    "RMSprop": {},
}
FUSED = ("SGD", "Adam", "AdamW")  # where torch has a kernel for all parameters


def optimiser(draw):
    """A step over some parameters, each with its gradient and state, or clipping by their norm."""
    name, count = draw.choice((*STEPS, "clip_grad_norm_")), draw.randint(1, 24)
    size = draw.size(1000, 10**7) // count
    shapes = [draw.split(max(1, size // draw.randint(1, 4)), 1, 4000) for _ in range(count)]
    starts = np.cumsum([0, *map(math.prod, shapes)]).tolist()
    operands = [
        Operand("float32", shape, start, own=True)
        for first in (0, 11)
        for shape, start in zip(shapes, (at + first for at in starts), strict=False)
    ]
    known = {}  # of each library: its parameters, and what takes a step

    def made(m, arrays, options):
        if id(arrays[0]) not in known:
            parameters = [x.requires_grad_() for x in arrays[:count]]
            for one, gradient in zip(parameters, arrays[count:], strict=True):
                one.grad = gradient
            step = (
                None
                if name not in STEPS
                else getattr(m.optim, name)(parameters, lr=0.01, **STEPS[name], **options).step
            )
            known[id(arrays[0])] = parameters, step, arrays
        return known[id(arrays[0])]

    def call(m, *arrays, options=None):
        parameters, step, _ = made(m, arrays, options or {})
        if step is None:
            m.nn.utils.clip_grad_norm_(parameters, 1.0)
            return tuple(one.grad for one in parameters)
        step()
        return tuple(one.detach() for one in parameters)

    def peer(m, *arrays):
        return call(m, *arrays, options={"fused": True} if name in FUSED else {})

    passes = {"SGD": 5, "RMSprop": 5, "clip_grad_norm_": 3}.get(name, 7)
    return Case(
        group=f"optimiser {name}",
        text=f"{count} parameters, {starts[-1]} elements",
        operands=operands,
        call=call,
        peer=peer,
        expected=expected_of(call, "float32"),
        bytes=4 * passes * starts[-1],
    )


CLASSES = {
    norm_of_rows: 1,
    norm_of_channels: 1,
    loss_of_labels: 0.8,
    loss_of_pairs: 0.8,
    activation: 0.8,
    embedding: 0.7,
    dropout: 0.3,
    optimiser: 0.8,
}
