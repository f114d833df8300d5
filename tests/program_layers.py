"""Lines of random programs whose results are rounded: layers, losses, their gradients, steps.

Each is a function of this library (LAYERS) and the same of NumPy in float64 (PLAIN), both by the
name that programs use; `slope` is the gradient of one of them, against differences of PLAIN.
"""

import numpy as np

import pyvecgpu as vg

F = vg.nn.functional
TOLERANCE = {8: 1e-8, 4: 3e-4, 2: 4e-2}  # by bytes of an element, of the largest one or 1
STEP = 1e-4  # of differences
HIDDEN = 3
GATES = {"rnn": 1, "lstm": 4, "gru": 3}
MODULES = {"rnn": vg.nn.RNN, "lstm": vg.nn.LSTM, "gru": vg.nn.GRU}
STEPS = {"sgd": vg.optim.SGD, "adam": vg.optim.Adam, "rmsprop": vg.optim.RMSprop}
DRAWN = ("random", "normal", "exponential", "standard_gamma", "poisson", "gumbel")


def weights(name, features):
    """{name of a parameter: its values} of a recurrent module, small and all different."""
    rows = GATES[name] * HIDDEN
    shapes = {"weight_ih_l0": (rows, features), "weight_hh_l0": (rows, HIDDEN)}
    shapes |= {"bias_ih_l0": (rows,), "bias_hh_l0": (rows,)}
    return {key: np.sin(np.arange(1, 1 + np.prod(shape)) * (i + 1)).reshape(shape) / 2
            for i, (key, shape) in enumerate(shapes.items())}  # fmt: skip


# By this library ----------------------------------------------------------------------------------


def _recurrent(name, x):
    device = str(x.device)
    module = MODULES[name](x.shape[-1], HIDDEN, device=device, dtype=str(x.dtype))
    module.load_state_dict({key: vg.asarray(value.astype(x.dtype), device=device)
                            for key, value in weights(name, x.shape[-1]).items()})  # fmt: skip
    result = module(x * (1 / 64))[0]
    return result if x.requires_grad else result.detach()


def _stepped(name, x, gradient):
    parameter = vg.nn.Parameter(x.copy())
    optimizer = STEPS[name]([parameter], lr=0.5)
    for _ in range(2):
        parameter.grad = gradient.copy()
        optimizer.step()
    return parameter.detach()


def _drawn(name, x, seed):
    generator = vg.random.default_rng(seed, device=str(x.device))
    parameters = (2.0,) if name in ("standard_gamma", "poisson") else ()
    return getattr(generator, name)(*parameters, size=x.shape)


def _slope(name, x, *others):
    x = x.copy().requires_grad_()
    y = LAYERS[name](x, *others)
    vg.sum(y * y).backward()
    return x.grad


LAYERS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], eps=1.0),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], eps=1.0),
    "group_norm": lambda x: F.group_norm(x, 1, eps=1.0),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True, eps=1.0),
    "softmax": lambda x, axis: vg.softmax(x, axis=axis),
    "log_softmax": lambda x, axis: vg.log_softmax(x, axis=axis),
    "logsumexp": lambda x, axis: vg.logsumexp(x, axis=axis),
    "var": lambda x, axis: vg.var(x, axis=axis),
    "cross_entropy": lambda x, y: F.cross_entropy(x, vg.argmax(y, axis=-1)),
    "conv2d": lambda x, rows: F.conv2d(x, x[None, :, :rows, :2], padding=1),
    "max_pool2d": lambda x, rows: F.max_pool2d(x, (rows, 2), stride=1),
    "avg_pool2d": lambda x, rows: F.avg_pool2d(x, (rows, 2), stride=1),
    "attention": lambda q, k, v, causal: F.scaled_dot_product_attention(
        *[x * (1 / 64) for x in (q, k, v)], is_causal=causal
    ),
    "recurrent": lambda x, name: _recurrent(name, x),
    "stepped": lambda x, gradient, name: _stepped(name, x, gradient),
    "drawn": lambda x, name, seed: _drawn(name, x, seed),
    "slope": lambda name, x, *others: _slope(name, x, *others),
}


# By NumPy -----------------------------------------------------------------------------------------


def _normal(x, axes, centered=True):
    mean = x.mean(axis=axes, keepdims=True) if centered else 0.0
    return (x - mean) / np.sqrt(np.square(x - mean).mean(axis=axes, keepdims=True) + 1.0)


def _log_softmax(x, axis):
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def _logsumexp(x, axis):
    most = x.max(axis=axis, keepdims=True)
    return np.squeeze(most, axis) + np.log(np.exp(x - most).sum(axis=axis))


def _cross_entropy(x, y):
    logs = _log_softmax(x, 1)
    return -logs[np.arange(len(x)), y.argmax(axis=-1)].mean()


def _windows(x, rows):
    return np.lib.stride_tricks.sliding_window_view(x, (rows, 2), axis=(-2, -1))


def _conv2d(x, rows):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    return np.einsum("cpqij,cij->pq", _windows(padded, rows), x[:, :rows, :2])[None]


def _attention(q, k, v, causal):
    q, k, v = q / 64, k / 64, v / 64  # so that no weight is beyond what float32 tells from 1
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    return np.exp(_log_softmax(scores, -1)) @ v


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _plain_recurrent(x, name):
    w = weights(name, x.shape[-1])
    h = c = np.zeros((x.shape[1], HIDDEN))
    result = []
    for row in x / 64:
        a = row @ w["weight_ih_l0"].T + w["bias_ih_l0"]
        b = h @ w["weight_hh_l0"].T + w["bias_hh_l0"]
        if name == "rnn":
            h = np.tanh(a + b)
        elif name == "lstm":
            i, f, g, o = np.split(a + b, 4, axis=-1)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            h = _sigmoid(o) * np.tanh(c)
        else:
            (ar, az, an), (br, bz, bn) = np.split(a, 3, axis=-1), np.split(b, 3, axis=-1)
            z = _sigmoid(az + bz)
            h = (1 - z) * np.tanh(an + _sigmoid(ar + br) * bn) + z * h
        result.append(h)
    return np.stack(result)


def _plain_steps(x, g, name):
    first = second = np.zeros_like(x)
    for step in (1, 2):
        if name == "sgd":
            x = x - 0.5 * g
        elif name == "adam":
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
            x = x - 0.5 * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        else:
            second = 0.99 * second + 0.01 * g * g
            x = x - 0.5 * g / (np.sqrt(second) + 1e-8)
    return x


def _differences(name, x, *others):
    """The gradient by differences; None where the function has kinks."""
    if name == "max_pool2d":
        return None

    def loss(values):
        return np.square(PLAIN[name](values, *others)).sum()

    result, moved = np.zeros_like(x), x.copy()
    for at in np.ndindex(x.shape):
        moved[at] = x[at] + STEP
        above = loss(moved)
        moved[at] = x[at] - STEP
        result[at] = (above - loss(moved)) / (2 * STEP)
        moved[at] = x[at]
    return result


PLAIN = {
    "layer_norm": lambda x: _normal(x, (-1,)),
    "rms_norm": lambda x: _normal(x, (-1,), centered=False),
    "group_norm": lambda x: _normal(x, tuple(range(1, x.ndim))),
    "batch_norm": lambda x: _normal(x, (0, *range(2, x.ndim))),
    "softmax": lambda x, axis: np.exp(_log_softmax(x, axis)),
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "var": lambda x, axis: x.var(axis=axis),
    "cross_entropy": _cross_entropy,
    "conv2d": _conv2d,
    "max_pool2d": lambda x, rows: _windows(x, rows).max(axis=(-2, -1)),
    "avg_pool2d": lambda x, rows: _windows(x, rows).mean(axis=(-2, -1)),
    "attention": _attention,
    "recurrent": _plain_recurrent,
    "stepped": _plain_steps,
    "drawn": lambda x, name, seed: None,  # another device, only
    "slope": _differences,
}


def in_float64(function):
    """A function of PLAIN for operands of any dtype."""

    def call(*arguments):
        return function(*[one.astype(np.float64) if isinstance(one, np.ndarray) else one
                          for one in arguments])  # fmt: skip

    return call


def close(got, wanted, of_slope):
    """Whether a result is as near as its dtype allows; gradients by differences less so."""
    if got.shape != wanted.shape:
        return False
    got, size = got.astype(np.float64), got.dtype.itemsize
    wanted = wanted.astype(np.float64)
    tolerance = max(TOLERANCE[size], 1e-5 if of_slope else 0) * (10 if of_slope else 1)
    if got.size == 0:
        return True
    return bool((np.abs(got - wanted) <= tolerance * max(1.0, np.abs(wanted).max())).all())


# Lines of them ------------------------------------------------------------------------------------


def line(rng, pick, operand, values):
    """The text of a line, or None where no value suits; views of operands as often as not."""
    kind = pick(("rows", "axis", "labels", "pictures", "pairs", "steps", "states", "drawn"))
    three = kind in ("pictures", "steps")
    ndims = (2, 3) if three else (2,) if kind == "labels" else range(2, 9)
    sloped = kind not in ("states", "drawn") and rng.integers(2)

    def suits(x):
        """Gradients of halves lose most digits, and sums of pictures are beyond float16."""
        return (x.ndim in ndims and x.dtype.kind in "fV" and min(x.shape[-2:]) > 1
                and 0 < x.size <= (40 if sloped else 400)
                and (x.dtype.itemsize > 2 or not (sloped or three)))  # fmt: skip

    name = operand(suits)
    if name is None:
        return None
    ndim = values[name].ndim
    parts = ["None"] * (three and ndim == 2) + [pick((":", "::-1")) for _ in range(ndim)]
    view = f"{name}[{', '.join(parts)}]" if rng.integers(2) or parts[0] == "None" else name
    axis = int(rng.integers(-ndim, ndim))
    call = {
        "rows": f"{pick(('layer_norm', 'rms_norm', 'group_norm', 'batch_norm'))}({view})",
        "axis": f"{pick(('softmax', 'log_softmax', 'logsumexp', 'var'))}({view}, {axis})",
        "labels": f"cross_entropy({view}, {name})",
        "pictures": f"{pick(('conv2d', 'max_pool2d', 'avg_pool2d'))}({view}, {pick((1, 2))})",
        "pairs": f"attention({view}, {name}, {view}, {pick((True, False))})",
        "steps": f"recurrent({view}, '{pick(tuple(GATES))}')",
        "states": f"stepped({view}, {name}, '{pick(tuple(STEPS))}')",
        "drawn": f"drawn({name}, '{pick(DRAWN)}', {int(rng.integers(1000))})",
    }[kind]  # fmt: skip
    function, rest = call.split("(", 1)
    return f"slope('{function}', {rest}" if sloped else call
