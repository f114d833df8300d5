"""Recurrent layers: RNN, LSTM and GRU, with torch's order of gates and names of weights."""

import functools

from ..autograd.arrays import grad
from ..autograd.function import Function
from ..autograd.transforms import is_grad_enabled
from ..dtypes import promote
from ..functions.creation import zeros
from ..functions.joining import concat, stack, unstack
from ..functions.layout import astype, matrix_transpose, reshape, swapaxes
from ..functions.linalg import matmul
from ..functions.reductions import sum as total
from ..functions.sequences import recurrent, recurrent_backward
from ..native.abi import Cell
from . import functional, init
from .functional.operands import gathered, number
from .layers import absent, counted, parameter
from .module import Module

__all__ = ["GRU", "LSTM", "RNN"]


class _Sequence(Function):
    """The steps of a layer in one direction, given the inputs' part of the gates.

    layer: the _Recurrent, whose `_step` is what gradients of gradients are made of. Gives the
    outputs in the order of the inputs, and the last states. keep: for gradients.
    """

    _is_apart = True  # views of one array, which it keeps

    @staticmethod
    def forward(ctx, inputs, weight, bias, hidden, state, layer, backwards, keep):
        call = (inputs, weight, bias, hidden, state, backwards, keep)
        hiddens, states, gates = recurrent(layer._cell, *call)
        last = 0 if backwards else inputs.shape[0]
        if keep:
            ctx.save_for_backward(inputs, weight, bias, hidden, state, hiddens, states, gates)
            ctx.layer, ctx.backwards, ctx._name = layer, backwards, type(layer).__name__
        output = hiddens[:-1] if backwards else hiddens[1:]
        return (output, *[each[last] for each in (hiddens, states) if each is not None])

    @staticmethod
    def backward(ctx, gradient, dlast, dstate=None):
        *operands, hiddens, states, gates = ctx.saved_tensors
        if is_grad_enabled():
            given = (gradient, dlast, dstate)[: 2 + (states is not None)]
            found = _Sequence.composed(ctx, operands, given)
            return (*found, None, None, None)
        weight = operands[1]
        cell = ctx.layer._cell
        call = (gradient, dlast, dstate, weight, hiddens, states, gates, ctx.backwards)
        dinputs, dproducts, dhidden, dcell = recurrent_backward(cell, *call)
        before = hiddens[1:] if ctx.backwards else hiddens[:-1]
        rows = reshape(dproducts, (-1, weight.shape[0]))
        needs = ctx.needs_input_grad
        dweight = dbias = None
        if needs[1]:  # one product of all steps
            dweight = matmul(matrix_transpose(rows), reshape(before, (-1, weight.shape[1])))
        if needs[2]:
            dbias = total(rows, axis=0)
        return dinputs, dweight, dbias, dhidden, dcell, None, None, None

    @staticmethod
    def composed(ctx, operands, gradients):
        """Return gradients that can be differentiated: those of the steps one by one."""
        wanted = [i for i, need in enumerate(ctx.needs_input_grad[:5]) if need]
        for i in wanted:  # nodes of their own, beyond which this does not go
            operands[i] = reshape(operands[i], operands[i].shape)
        inputs, weight, bias, *states = operands
        steps = unstack(inputs)
        outputs = []
        states = [x for x in states if x is not None]
        for part in reversed(steps) if ctx.backwards else steps:
            states = ctx.layer._step(part, functional.dense(states[0], weight, bias), states)
            outputs.append(states[0])
        results = [stack(outputs[::-1] if ctx.backwards else outputs), *states]
        by = [operands[i] for i in wanted]
        found = grad(results, by, gradients, create_graph=True, allow_unused=True)
        result = [None] * 5
        for i, g in zip(wanted, found, strict=True):
            result[i] = g
        return result


class _Recurrent(Module):
    """Layers that go through a sequence (length, N, input_size), each with a state (N, hidden).

    weight_ih_l0 (gates * hidden_size, input_size), weight_hh_l0 (gates * hidden_size, hidden_size),
    bias_ih_l0, bias_hh_l0 and so on; with bidirectional others that end in _reverse. batch_first:
    (N, length, input_size). dropout: between layers. First values: uniform within
    1 / sqrt(hidden_size).
    """

    _gates = 1

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        absent(type(self).__name__, proj_size=(proj_size, 0))
        self.input_size = counted(input_size, "input_size")
        self.hidden_size = counted(hidden_size, "hidden_size")
        self.num_layers = counted(num_layers, "num_layers")
        self.bias, self.batch_first, self.bidirectional = bool(bias), batch_first, bidirectional
        self.dropout = number(dropout, "dropout", 0.0, 1.0)
        rows = self._gates * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * (2 if bidirectional else 1)
            for ending in self._endings(layer):
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
                shapes |= {"bias_ih": rows, "bias_hh": rows} if bias else {}
                for name, shape in shapes.items():
                    setattr(self, name + ending, parameter(shape, dtype, device))
        self.reset_parameters()

    def _endings(self, layer):
        return [f"_l{layer}"] + ([f"_l{layer}_reverse"] if self.bidirectional else [])

    def reset_parameters(self):
        """Draw the first values."""
        bound = self.hidden_size**-0.5
        for array in self.parameters():
            init.uniform_(array, -bound, bound)

    def forward(self, input, hx=None):
        """Return (output, last states).

        input: (length, N, input_size), or without N. hx: states to begin with,
        (layers * directions, N, hidden_size), of LSTM a pair of them; None for zeros.
        """
        name = type(self).__name__
        states = () if hx is None else self._given_states(hx)
        _, (x, *states) = gathered(name, input, *states)
        alone = x.ndim == 2
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(f"{name}: an input of shape {x.shape}, not (..., {self.input_size})")
        if alone:
            x = reshape(x, (x.shape[0], 1, x.shape[1]))
            states = [reshape(s, (s.shape[0], 1, s.shape[-1])) for s in states]
        elif self.batch_first:
            x = swapaxes(x, 0, 1)
        if not x.shape[0]:
            raise ValueError(f"{name}: a sequence of no steps, {x.shape}")
        output, last = self._run(x, self._first_states(x, states))
        if alone:
            output = reshape(output, (output.shape[0], output.shape[-1]))
            last = [reshape(s, (s.shape[0], s.shape[-1])) for s in last]
        elif self.batch_first:
            output = swapaxes(output, 0, 1)
        return output, (last[0] if len(last) == 1 else tuple(last))

    _states = 1

    def _given_states(self, hx):
        several = tuple(hx) if self._states > 1 else (hx,)
        if len(several) != self._states:
            raise ValueError(f"{type(self).__name__}: hx is {self._states} states")
        return several

    def _first_states(self, x, states):
        """Return for each layer and direction a list of its states (N, hidden_size)."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        shape = (count, x.shape[1], self.hidden_size)
        for state in states:
            if state.shape != shape:
                raise ValueError(f"{type(self).__name__}: hx of shape {state.shape}, not {shape}")
        if not states:
            nothing = zeros(shape[1:], self.weight_hh_l0.dtype, device=x.device)
            return [[nothing] * self._states for _ in range(count)]
        return [[state[i] for state in states] for i in range(count)]

    def _run(self, x, first):
        """Return the output (length, N, ...) and the last states of all layers."""
        ends = []
        for layer in range(self.num_layers):
            outputs = []
            for ending in self._endings(layer):
                states = first[len(ends)]
                output, states = self._direction(x, ending, states)
                outputs.append(output)
                ends.append(states)
            x = outputs[0] if len(outputs) == 1 else concat(outputs, axis=-1)
            if layer < self.num_layers - 1:
                x = functional.dropout(x, self.dropout, self.training)
        return x, [stack(each) for each in zip(*ends, strict=True)]

    def _direction(self, x, ending, states):
        """Return the outputs of one direction, in the order of the input, and its last states."""
        weight, bias = getattr(self, f"weight_hh{ending}"), getattr(self, f"bias_hh{ending}", None)
        inputs = functional.dense(
            x, getattr(self, f"weight_ih{ending}"), getattr(self, f"bias_ih{ending}", None)
        )
        operands = _of_one_dtype(inputs, weight, bias, *states, *[None] * (2 - len(states)))
        keep = any(x is not None and x.requires_grad for x in operands) and is_grad_enabled()
        output, *last = _Sequence.apply(*operands, self, ending.endswith("_reverse"), keep)
        return output, last

    def _gate(self, x, number):
        return x[:, number * self.hidden_size : (number + 1) * self.hidden_size]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"
        for name in ("bias", "batch_first", "dropout", "bidirectional"):
            text += f", {name}={getattr(self, name)}"
        return text


def _of_one_dtype(*operands):
    """Return Arrays, or None, in the dtype that they are promoted to."""
    dtype = functools.reduce(promote, [x.dtype for x in operands if x is not None])
    return [x if x is None else astype(x, dtype, copy=False) for x in operands]


class RNN(_Recurrent):
    __doc__ = (
        _Recurrent.__doc__
        + """
    nonlinearity: "tanh" or "relu".

    >>> results, state = vg.nn.RNN(3, 8, num_layers=2)(vg.ones((6, 2, 3)))
    >>> results.shape, state.shape
    ((6, 2, 8), (2, 2, 8))
    """
    )

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        nonlinearity="tanh",
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        **options,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"nonlinearity is tanh or relu, not {nonlinearity!r}")
        sizes, more = (input_size, hidden_size, num_layers), (batch_first, dropout, bidirectional)
        super().__init__(*sizes, bias, *more, **options)
        self.nonlinearity = nonlinearity

    @property
    def _cell(self):
        return Cell.CELL_RELU if self.nonlinearity == "relu" else Cell.CELL_TANH

    def _step(self, inputs, hidden, states):
        return [getattr(functional, self.nonlinearity)(inputs + hidden)]


class LSTM(_Recurrent):
    __doc__ = (
        _Recurrent.__doc__
        + """
    Gates: input, forget, cell, output.

    >>> results, (h, c) = vg.nn.LSTM(3, 8, batch_first=True)(vg.ones((2, 6, 3)))
    >>> results.shape, h.shape, c.shape
    ((2, 6, 8), (1, 2, 8), (1, 2, 8))
    """
    )
    _gates, _states, _cell = 4, 2, Cell.CELL_LSTM

    def _step(self, inputs, hidden, states):
        gates = inputs + hidden
        i, f, o = (functional.sigmoid(self._gate(gates, n)) for n in (0, 1, 3))
        cell = f * states[1] + i * functional.tanh(self._gate(gates, 2))
        return [o * functional.tanh(cell), cell]


class GRU(_Recurrent):
    __doc__ = (
        _Recurrent.__doc__
        + """
    Gates: reset, update, new.

    >>> results, state = vg.nn.GRU(3, 8)(vg.ones((6, 2, 3)))
    >>> results.shape, state.shape
    ((6, 2, 8), (1, 2, 8))
    """
    )
    _gates, _cell = 3, Cell.CELL_GRU

    def _step(self, inputs, hidden, states):
        r, z = (functional.sigmoid(self._gate(inputs, n) + self._gate(hidden, n)) for n in (0, 1))
        new = functional.tanh(self._gate(inputs, 2) + r * self._gate(hidden, 2))
        return [(1.0 - z) * new + z * states[0]]
