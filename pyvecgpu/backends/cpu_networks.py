"""The layers, losses and steps of networks on the CPU device; see cpu.py.

What each computes is in cpu_layers.py, cpu_rows.py, cpu_windows.py, cpu_sequences.py and
cpu_optimizing.py, on floats that NumPy computes in; here are its dtypes and where results go.
"""

import numpy as np

from ..native.abi import Curve, Losses
from ..operations import OPERATIONS, Operation
from . import (
    cpu_curves,
    cpu_layers,
    cpu_optimizing,
    cpu_random,
    cpu_rows,
    cpu_sequences,
    cpu_windows,
)
from .cpu_casts import cast, computable, finished, rounded, widened
from .cpu_results import alike, check_floats, store, wrote

_REDUCTIONS = {Losses.LOSSES_EACH: None, Losses.LOSSES_SUM: "SUM", Losses.LOSSES_MEAN: "MEAN"}


class CpuNetworks:
    """The methods of CpuBackend that networks are made of."""

    def dense(self, x, weight, bias, activation, precision, preactivation, out):
        operands = [operand for operand in (x, weight, bias) if operand is not None]
        check_floats("dense", operands)
        dtype, operands = computable(*operands)
        z = cpu_layers.preactivation(*operands)
        if preactivation is not None:
            store(finished(z, dtype), preactivation)
        y = OPERATIONS[activation].cpu(z) if activation else z
        return store(finished(y, dtype), out)

    def dense_backward(self, gradient, x, weight, preactivation, activation, precision, wanted):
        operands = [a for a in (gradient, x, weight, preactivation) if a is not None]
        check_floats("dense_backward", operands)
        dtype, _ = computable(gradient, x, weight)
        operands = [widened(cast(operand, dtype)) for operand in operands]
        before = operands[3] if preactivation is not None else None
        slope = OPERATIONS[activation].slope if activation else None
        found = cpu_layers.backward(*operands[:3], before, slope, wanted)
        finish = (finished, finished, rounded)
        return [end(x, dtype) for end, x in zip(finish, found, strict=True) if x is not None]

    def optimize(self, algorithm, targets, parts, numbers, renewed):
        cpu_optimizing.optimize(algorithm, targets, parts, numbers, renewed)
        for target in targets:
            wrote(target)

    def total_norm(self, parts, order):
        return cpu_optimizing.total_norm(parts, order)

    def clip_norm(self, targets, norm, most):
        cpu_optimizing.clip_norm(targets, norm, most)
        for target in targets:
            wrote(target)

    def dropout(self, a, p, key, stream, counter, renewed):
        check_floats("dropout", [a])
        place = cpu_random.moved((key, stream, counter), renewed)
        return rounded(cpu_random.dropout(widened(a), p, *place), a.dtype)

    def softmax_backward(self, code, gradient, a, naxes):
        check_floats("softmax_backward", [gradient, a])
        dtype, axes = a.dtype, tuple(range(a.ndim - naxes, a.ndim))
        operands = [widened(cast(operand, dtype)) for operand in (gradient, a)]
        logarithm = OPERATIONS[code].name == "log_softmax"
        return rounded(cpu_rows.softmax_backward(*operands, axes, logarithm), dtype)

    def normalize(self, x, weight, bias, axis, naxes, groups, centered, epsilon, statistics):
        check_floats("normalize", [a for a in (x, weight, bias) if a is not None])
        picture = cpu_rows.Picture(x.shape, axis, naxes, groups)
        wide = widened(x)
        numbers = [a if a is None else cast(widened(a), wide.dtype) for a in (weight, bias)]
        given = statistics if groups == -1 else None
        result, found = cpu_rows.normalize(wide, *numbers, picture, centered, epsilon, given)
        if statistics is not None and given is None:
            store(found.reshape(statistics.shape), statistics)
        return rounded(result, x.dtype)

    def normalize_backward(
        self, gradient, x, weight, statistics, axis, naxes, groups, centered, epsilon, wanted
    ):
        check_floats("normalize_backward", [gradient, x])
        picture = cpu_rows.Picture(x.shape, axis, naxes, groups)
        wide = widened(x)
        operands = [cast(widened(gradient), wide.dtype), wide]
        operands.append(weight if weight is None else cast(widened(weight), wide.dtype))
        operands += [statistics, picture, centered, epsilon, groups == -1]
        dx, *rest = cpu_rows.normalize_backward(*operands)
        dtype = statistics.dtype if weight is None else weight.dtype
        return [rounded(dx, x.dtype), *([rounded(one, dtype) for one in rest] if wanted else ())]

    def cross_entropy(self, x, labels, weights, ignored, smoothing, statistics):
        check_floats("cross_entropy", [x])
        wide = widened(x)
        weights = weights if weights is None else cast(widened(weights), wide.dtype)
        losses, found = cpu_rows.cross_entropy(wide, labels, weights, ignored, smoothing)
        store(found.reshape(3, *statistics.shape[1:]), statistics[:3])
        if statistics.shape[0] == 3:
            return store(losses, None)
        mean, total = cpu_rows.mean_of_losses(losses, found[1])
        statistics.reshape(4, -1)[3, :1] = total
        return mean

    def cross_entropy_backward(self, dloss, x, labels, weights, statistics, ignored, smoothing):
        check_floats("cross_entropy_backward", [x] if dloss is None else [dloss, x])
        wide = widened(x)
        weights = weights if weights is None else cast(widened(weights), wide.dtype)
        of_mean = statistics.shape[0] == 4
        if dloss is None:
            dloss = np.ones(() if of_mean else labels.shape, wide.dtype)
        gradient = cast(widened(dloss), wide.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):  # of rows that do not count
            if of_mean and labels.size:
                gradient = gradient / statistics.reshape(4, -1)[3, 0]
                gradient = np.broadcast_to(gradient, labels.shape)
            operands = (gradient, wide, labels, weights, statistics[:3])
            result = cpu_rows.cross_entropy_backward(*operands, ignored, smoothing)
        return rounded(result, x.dtype)

    def activate(self, curve, x, first, second):
        check_floats("activate", [x])
        return rounded(cpu_curves.activate(curve, widened(x), first, second), x.dtype)

    def activate_backward(self, curve, gradient, x, first, second):
        check_floats("activate_backward", [gradient, x])
        if curve == Curve.CURVE_RELU and gradient.dtype == x.dtype:  # which computes nothing
            return np.asarray(np.where(x <= 0, x.dtype.type(0), gradient))
        wide = widened(x)
        operands = (cast(widened(gradient), wide.dtype), wide)
        return rounded(cpu_curves.activate_backward(curve, *operands, first, second), x.dtype)

    def pair_loss(self, loss, x, target, number, reduction):
        check_floats("pair_loss", [x, target])
        values = cpu_curves.losses(loss, widened(x), widened(target), number)
        name = _REDUCTIONS[reduction]
        if name is None:
            return rounded(values, values.dtype)
        return self.reduce(Operation[name], values, None, False, None)

    def pair_loss_backward(self, loss, dloss, x, target, number, reduction, of_target):
        check_floats("pair_loss_backward", [x, target] if dloss is None else [dloss, x, target])
        wide = widened(x)
        if dloss is not None:
            dloss = cast(widened(dloss), wide.dtype)
        if reduction == Losses.LOSSES_MEAN:
            dloss = (1.0 if dloss is None else dloss) / wide.dtype.type(x.size or 1)
        slopes = np.asarray(cpu_curves.loss_slopes(loss, wide, widened(target), number, of_target))
        return rounded(slopes if dloss is None else np.multiply(slopes, dloss, slopes), x.dtype)

    def pool(self, code, a, places, windows, with_padding):
        check_floats("pool", [a])
        x = widened(a)
        if OPERATIONS[code].name == "mean":
            return finished(cpu_windows.means(x, windows, with_padding), a.dtype)
        result = cpu_windows.largest(x, windows, places)
        if places is not None:
            wrote(places)
        return finished(result, a.dtype)

    def pool_backward(self, code, gradient, places, windows, with_padding, height, width):
        check_floats("pool_backward", [gradient])
        shape = (*gradient.shape[:-2], height, width)
        g = widened(gradient)
        result = cpu_windows.pool_backward(g, places, windows, with_padding, shape)
        return finished(result, gradient.dtype)

    def convolution(self, x, weight, windows, groups):
        check_floats("convolution", [x, weight])
        dtype, operands = alike(x, weight)
        return finished(cpu_windows.convolution(*operands, windows, groups), dtype)

    def convolution_input(self, gradient, weight, windows, groups, height, width):
        check_floats("convolution_input", [gradient, weight])
        dtype, operands = alike(gradient, weight)
        return finished(
            cpu_windows.convolution_input(*operands, windows, groups, height, width), dtype
        )

    def convolution_weight(self, gradient, x, windows, groups):
        check_floats("convolution_weight", [gradient, x])
        dtype, operands = alike(gradient, x)
        return finished(cpu_windows.convolution_weight(*operands, windows, groups), dtype)

    def attention(self, query, keys, values, mask, scale, causal, logsum):
        operands = cpu_sequences.operands_of("attention", query, keys, values)
        result, sums = cpu_sequences.attention(*operands, mask, scale, causal)
        if logsum is not None:
            store(sums, logsum)
        return rounded(result, query.dtype)

    def attention_backward(
        self, gradient, query, keys, values, mask, output, logsum, scale, causal
    ):
        operands = cpu_sequences.operands_of(
            "attention_backward", query, keys, values, gradient, output
        )
        results = cpu_sequences.attention_backward(*operands, logsum, mask, scale, causal)
        return [rounded(x, query.dtype) for x in results]

    def recurrent(self, cell, inputs, weight, bias, hidden, state, backwards, keep):
        operands = (inputs, weight, bias, hidden, state)
        return cpu_sequences.recurrent(cell, *operands, bool(backwards), keep)

    def recurrent_backward(
        self, cell, gradient, dlast, dstate, weight, hiddens, states, gates, backwards
    ):
        operands = (gradient, dlast, dstate, weight, hiddens, states, gates)
        return cpu_sequences.recurrent_backward(cell, *operands, bool(backwards))
