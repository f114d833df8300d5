"""Attention and recurrent layers on the CPU device, as cuda/kernels/attention.cu and
matmul/recurrent.cu compute them.

Attention goes through some queries at a time and keeps no matrix of all queries and keys. Halves
are computed in float32; between the steps of a recurrent layer they are rounded.
"""

import numpy as np

from ..dtypes import is_float
from ..native.abi import Cell
from .cpu_casts import rounded, widened
from .cpu_layers import sigmoid

QUERIES = 64  # at a time
MOST_FEATURES = 256
GATES = {Cell.CELL_TANH: 1, Cell.CELL_RELU: 1, Cell.CELL_LSTM: 4, Cell.CELL_GRU: 3}


# Attention ----------------------------------------------------------------------------------------


def operands_of(name, *operands):
    """Return operands as NumPy computes with them. TypeError: they are not of one float dtype."""
    for operand in operands:
        if not is_float(operand.dtype) or operand.dtype != operands[0].dtype:
            raise TypeError(f"{name} takes one float dtype, not {operand.dtype}")
    return [widened(operand) for operand in operands]


def shapes_of(query, keys, values):
    """Return the leading dimensions. ValueError: shapes that do not fit."""
    shapes = [x.shape for x in (query, keys, values)]
    text = "query, keys and values of shapes {}, {} and {}".format(*shapes)
    fit = min(map(len, shapes)) >= 2 and shapes[0][-1] == shapes[1][-1]
    if not fit or shapes[1][-2] != shapes[2][-2]:
        raise ValueError(text)
    if not (1 <= shapes[0][-1] <= MOST_FEATURES and 1 <= shapes[2][-1] <= MOST_FEATURES):
        raise ValueError(f"takes heads of 1 to {MOST_FEATURES} features: {text}")
    if not shapes[1][-2]:
        raise ValueError(f"takes one key at least: {text}")
    return np.broadcast_shapes(*[shape[:-2] for shape in shapes])


class Scores:
    """The scores of some queries at a time, and which of them are of a key that takes part."""

    def __init__(self, query, keys, values, mask, scale, causal):
        self.leading = shapes_of(query, keys, values)
        self.query, self.keys, self.scale, self.causal = query, keys, scale, causal
        self.length, self.size = query.shape[-2], keys.shape[-2]
        self.mask = None
        if mask is not None:
            if mask.dtype.kind != "b" and not is_float(mask.dtype):
                raise TypeError(f"takes a mask of bool or a float dtype, not {mask.dtype}")
            self.mask = np.broadcast_to(mask, (*self.leading, self.length, self.size))

    def parts(self):
        """Yield slices of queries, and of the keys that one of them takes part with."""
        for begin in range(0, self.length, QUERIES):
            end = min(begin + QUERIES, self.length)
            yield slice(begin, end), slice(0, min(end, self.size) if self.causal else self.size)

    def of(self, rows, columns):
        """Return scores (..., queries, keys), -infinity for no part, and a mask of these or None.

        The mask is true for a key that takes part; numbers that are added are none.
        """
        keys = np.swapaxes(self.keys[..., columns, :], -1, -2)
        scores = np.matmul(self.query[..., rows, :], keys)
        scores = scores * scores.dtype.type(self.scale)
        kept = None
        if self.mask is not None:
            part = self.mask[..., rows, columns]
            if part.dtype.kind == "b":
                kept = part
            else:
                scores = scores + numbers(part, scores.dtype)
        if self.causal:
            order = np.arange(rows.start, rows.stop)[:, None] >= np.arange(columns.stop)
            kept = order if kept is None else kept & order
        if kept is not None:
            scores = np.where(kept, scores, scores.dtype.type(-np.inf))
        return scores, kept


def numbers(mask, dtype):
    """Return a mask in a dtype in which its least numbers may be too small: no -infinity."""
    mask = widened(mask)
    if mask.dtype.itemsize > dtype.itemsize:
        least = np.finfo(dtype).min
        mask = np.where((mask < least) & np.isfinite(mask), least, mask)
    return mask.astype(dtype, copy=False)


def attention(query, keys, values, mask, scale, causal):
    """Return softmax(query @ keys.T * scale + mask) @ values, and logarithms of sums (..., L)."""
    scores = Scores(query, keys, values, mask, scale, causal)
    result = np.empty((*scores.leading, scores.length, values.shape[-1]), query.dtype)
    sums = np.empty(result.shape[:-1], query.dtype)
    with np.errstate(all="ignore"):
        for rows, columns in scores.parts():
            part, _ = scores.of(rows, columns)
            most = part.max(axis=-1, keepdims=True)
            part -= np.where(most == -np.inf, 0, most)
            np.exp(part, out=part)
            total = part.sum(axis=-1, keepdims=True)
            result[..., rows, :] = np.matmul(part, values[..., columns, :]) / total
            sums[..., rows] = (most + np.log(total))[..., 0]
    return result, sums


def attention_backward(query, keys, values, gradient, result, sums, mask, scale, causal):
    """Return the gradients of query, keys and values, with all leading dimensions."""
    scores = Scores(query, keys, values, mask, scale, causal)
    leading = scores.leading
    dquery = np.empty((*leading, *query.shape[-2:]), query.dtype)
    dkeys = np.zeros((*leading, *keys.shape[-2:]), query.dtype)
    dvalues = np.zeros((*leading, *values.shape[-2:]), query.dtype)
    with np.errstate(all="ignore"):
        for rows, columns in scores.parts():
            part, kept = scores.of(rows, columns)
            part -= sums[..., rows, None]
            np.exp(part, out=part)
            g = gradient[..., rows, :]
            dvalues[..., columns, :] += np.matmul(np.swapaxes(part, -1, -2), g)
            slopes = np.matmul(g, np.swapaxes(values[..., columns, :], -1, -2))
            slopes = slopes - np.sum(g * result[..., rows, :], axis=-1, keepdims=True)
            slopes *= part
            if kept is not None:
                slopes = np.where(kept, slopes, slopes.dtype.type(0))
            slopes *= slopes.dtype.type(scale)
            dquery[..., rows, :] = np.matmul(slopes, keys[..., columns, :])
            turned = np.swapaxes(slopes, -1, -2)
            dkeys[..., columns, :] += np.matmul(turned, query[..., rows, :])
    return dquery, dkeys, dvalues


# Recurrent layers ---------------------------------------------------------------------------------


def order_of(steps, backwards):
    """Yield the number of each step, and of what is before and behind it, as they come."""
    for turn in range(steps):
        step = steps - 1 - turn if backwards else turn
        yield step, step + backwards, step + (not backwards)


def check_layer(name, cell, steps, weight, *others):
    """Errors: ValueError, shapes, cell; TypeError, dtypes. others: arrays and their shapes."""
    if cell not in GATES:
        raise ValueError(f"{name}: unknown cell {cell}")
    if not is_float(weight.dtype):
        raise TypeError(f"{name} takes a float dtype, not {weight.dtype}")
    if steps.ndim != 3 or not steps.shape[0] or weight.ndim != 2:
        raise ValueError(f"{name}: steps of shape {steps.shape}, and a weight {weight.shape}")
    if weight.shape[0] != GATES[cell] * weight.shape[1]:
        raise ValueError(f"{name}: steps of shape {steps.shape}, and a weight {weight.shape}")
    for array, shape in ((steps, steps.shape), *others):
        if array is not None and array.dtype != weight.dtype:
            raise TypeError(f"{name} takes one dtype, not {weight.dtype} and {array.dtype}")
        if array is not None and array.shape != shape:
            raise ValueError(f"{name}: an array of shape {array.shape}, not {shape}")


def recurrent(cell, inputs, weight, bias, hidden, state, backwards, keep):
    """Return [hiddens, states, gates] of a layer, of those that the cell has."""
    dtype, width = weight.dtype, weight.shape[-1]
    first = (inputs.shape[1], width) if inputs.ndim == 3 else ()
    given = [(bias, weight.shape[:1]), (hidden, first), (state, first)]
    check_layer(
        "recurrent", cell, inputs, weight, (inputs, (*inputs.shape[:2], len(weight))), *given
    )
    if (state is not None) != (cell == Cell.CELL_LSTM):
        raise ValueError("a state is of LSTM, and of LSTM alone")
    steps = inputs.shape[0]
    hiddens = np.empty((steps + 1, *first), dtype)
    states = None if state is None else np.empty_like(hiddens)
    keep = keep and cell in (Cell.CELL_LSTM, Cell.CELL_GRU)
    gates = np.empty((steps, first[0], 4 * width), dtype) if keep else None
    begin = steps if backwards else 0
    hiddens[begin] = hidden
    if state is not None:
        states[begin] = state
    turned, added = widened(weight).T, 0 if bias is None else widened(bias)
    with np.errstate(all="ignore"):
        for step, before, behind in order_of(steps, backwards):
            h = widened(hiddens[before])
            products = widened(rounded(np.matmul(h, turned) + added, dtype))
            c = None if state is None else widened(states[before])
            following, c, saved = STEPS[cell](widened(inputs[step]), products, h, c)
            hiddens[behind] = rounded(following, dtype)
            if state is not None:
                states[behind] = rounded(c, dtype)
            if keep:
                gates[step] = rounded(np.concatenate(saved, axis=-1), dtype)
    return [x for x in (hiddens, states, gates) if x is not None]


def tanh_step(inputs, products, h, c):
    return np.tanh(inputs + products), None, ()


def relu_step(inputs, products, h, c):
    return np.maximum(inputs + products, 0), None, ()


def lstm_step(inputs, products, h, c):
    i, f, g, o = np.split(inputs + products, 4, axis=-1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    c = f * c + i * g
    return o * np.tanh(c), c, (i, f, g, o)


def gru_step(inputs, products, h, c):
    (xr, xz, xn), (pr, pz, p) = (np.split(x, 3, axis=-1) for x in (inputs, products))
    r, z = sigmoid(xr + pr), sigmoid(xz + pz)
    n = np.tanh(xn + r * p)
    return (1 - z) * n + z * h, None, (r, z, n, p)


STEPS = {
    Cell.CELL_TANH: tanh_step,
    Cell.CELL_RELU: relu_step,
    Cell.CELL_LSTM: lstm_step,
    Cell.CELL_GRU: gru_step,
}


def recurrent_backward(cell, gradient, dlast, dstate, weight, hiddens, states, gates, backwards):
    """Return [dinputs, dproducts, dhidden, dcell] of a layer, of those that the cell has."""
    first = gradient.shape[1:]
    steps, width = len(gradient), weight.shape[-1]
    rows, saved = (steps + 1, *first), (steps, *first[:1], 4 * width)
    given = [(hiddens, rows), (states, rows), (gates, saved), (dlast, first), (dstate, first)]
    check_layer("recurrent_backward", cell, gradient, weight, *given)
    is_lstm = cell == Cell.CELL_LSTM
    if (states is not None) != is_lstm or not (is_lstm or dstate is None):
        raise ValueError("states are of LSTM, and of LSTM alone")
    if (gates is not None) != (cell in (Cell.CELL_LSTM, Cell.CELL_GRU)):
        raise ValueError("gates are of LSTM and GRU")
    dtype = weight.dtype
    dinputs = np.empty((steps, first[0], weight.shape[0]), dtype)
    dproducts = np.empty_like(dinputs) if cell == Cell.CELL_GRU else None
    wide = widened(weight)
    dh, direct = 0 if dlast is None else widened(dlast), 0
    dc = 0 if dstate is None else widened(dstate)
    with np.errstate(all="ignore"):
        for step, before, behind in reversed([*order_of(steps, backwards)]):
            values = [widened(hiddens[before]), widened(hiddens[behind])]
            if states is not None:
                values += [widened(states[before]), widened(states[behind])]
            parts = () if gates is None else np.split(widened(gates[step]), 4, axis=-1)
            dh = widened(gradient[step]) + dh + direct
            through, past, direct, dc = BACK[cell](dh, dc, values, parts)
            dinputs[step] = rounded(np.concatenate(through, axis=-1), dtype)
            if dproducts is not None:
                dproducts[step] = rounded(np.concatenate(past, axis=-1), dtype)
                direct = widened(rounded(direct, dtype))
            dc = None if dc is None else widened(rounded(dc, dtype))
            following = dinputs[step] if dproducts is None else dproducts[step]
            dh = widened(rounded(np.matmul(widened(following), wide), dtype))
    results = [dinputs, dproducts, rounded(dh + direct, dtype), dc if states is not None else None]
    return [rounded(x, dtype) for x in results if x is not None]


def tanh_back(dh, dc, values, gates):
    y = values[1]
    return (dh * (1 - y) * (1 + y),), (), 0, None


def relu_back(dh, dc, values, gates):
    return (np.where(values[1] <= 0, dh.dtype.type(0), dh),), (), 0, None


def lstm_back(dh, dc, values, gates):
    i, f, g, o = gates
    _, _, before, behind = values
    c = np.tanh(behind)
    dc = dc + dh * o * (1 - c) * (1 + c)
    through = [dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g) * (1 + g)]
    return (*through, dh * c * o * (1 - o)), (), 0, dc * f


def gru_back(dh, dc, values, gates):
    r, z, n, p = gates
    dn = dh * (1 - z) * (1 - n) * (1 + n)
    dr, dz = dn * p * r * (1 - r), dh * (values[0] - n) * z * (1 - z)
    return (dr, dz, dn), (dr, dz, dn * r), dh * z, None


BACK = {
    Cell.CELL_TANH: tanh_back,
    Cell.CELL_RELU: relu_back,
    Cell.CELL_LSTM: lstm_back,
    Cell.CELL_GRU: gru_back,
}
