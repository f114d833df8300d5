"""The rules of gradients: for each operation, what a change of its result says of its operands.

g is the gradient of the result y, in its shape. A rule is a function of g and of what it names: the
operands (x, or a and b), the result y, static parameters of the call, and `like`, the shape, dtype
and device of the operand that it is for. Only what rules name is kept for the backward pass. What
they give may have a broadcast shape or a promoted dtype: the tape sums and casts it back.

Rules are written in functions of arrays, so that they have gradients themselves. At kinks and ties:
abs, sign and copysign have slope 0 at 0, relu has 0 at 0, maximum and minimum of equals pass half
to each, and max and min share among all elements that are equal to them. What steps (floor, ceil,
trunc, round, sign, floor_divide) has slope 0.

Rules are of real numbers. Of complex ones the tape gives them the conjugates of what they name, but
for g; complexes.py says why, and has those for which it is not enough.
"""

import math

from .. import functions as vg
from ..dispatch import WAYS, apply
from ..functions import nn
from ..functions.creation import to as transfer
from ..functions.indexing import embedded
from ..functions.joining import rolled
from ..native.abi import Curve
from ..operations import OPERATIONS
from .complexes import power_slope
from .curves import activate, by_operand, by_result, loss_of_target, loss_of_x
from .fourier import transformed_back
from .normalizing import cross_entropy, log_softmax, normalize, softmax, widened
from .scattering import scatter_sums
from .systems import cholesky, determinant, inverse, solve_left, solve_right
from .windows import CONVOLUTION, attention, pool, pool_backward

LN2, LN10 = math.log(2.0), math.log(10.0)
PDF_0 = 1.0 / math.sqrt(2.0 * math.pi)  # the normal distribution's density at 0

# Elementwise --------------------------------------------------------------------------------------


def zero(g):
    return vg.zeros_like(g)


def same(g):
    return g


def bounded(x, limit):
    """X within limits beyond which a slope does not change: infinity times 0 would be NaN."""
    return vg.clip(x, -limit, limit)


def gelu_slope(x):
    x = bounded(x, 40.0)
    near = vg.abs(x) < 1e-5  # where gelu(x) / x loses its digits, or is 0 / 0
    cdf = vg.where(near, 0.5 + PDF_0 * x, nn.gelu(x) / vg.where(near, 1.0, x))
    return cdf + x * vg.exp(-0.5 * x * x) * PDF_0


def silu_slope(x):
    x = bounded(x, 800.0)
    s = vg.sigmoid(x)
    return s * (1.0 + x * (1.0 - s))


def power_log(a, y):
    """The derivative of y = a ** b by b: 0 where a is 0."""
    if isinstance(a, (int, float)):
        return y * (math.log(a) if a > 0 else 0.0 if a == 0 else math.nan)
    return vg.where(a == 0, 0.0, y * vg.log(vg.where(a == 0, 1.0, a)))


UNARY = {
    "negative": lambda g: -g,
    "abs": lambda g, x: g * vg.sign(x),
    "exp": lambda g, y: g * y,
    "expm1": lambda g, y: g * (y + 1.0),
    "log": lambda g, x: g / x,
    "sqrt": lambda g, y: g / (2.0 * y),
    "reciprocal": lambda g, y: -g * y * y,
    "positive": same,
    "conj": same,
    "sign": zero,
    "square": lambda g, x: g * (2.0 * x),
    "floor": zero,
    "ceil": zero,
    "trunc": zero,
    "round": zero,
    "sin": lambda g, x: g * vg.cos(x),
    "cos": lambda g, x: -g * vg.sin(x),
    "tan": lambda g, y: g * (1.0 + y * y),
    "asin": lambda g, x: g / vg.sqrt((1.0 - x) * (1.0 + x)),
    "acos": lambda g, x: -g / vg.sqrt((1.0 - x) * (1.0 + x)),
    "atan": lambda g, x: g / (1.0 + x * x),
    "sinh": lambda g, x: g * vg.cosh(x),
    "cosh": lambda g, x: g * vg.sinh(x),
    "asinh": lambda g, x: g / vg.hypot(x, 1.0),
    "acosh": lambda g, x: g / (vg.sqrt(x - 1.0) * vg.sqrt(x + 1.0)),
    "atanh": lambda g, x: g / ((1.0 - x) * (1.0 + x)),
    "exp2": lambda g, y: g * (y * LN2),
    "log1p": lambda g, x: g / (1.0 + x),
    "log2": lambda g, x: g / (x * LN2),
    "log10": lambda g, x: g / (x * LN10),
    "sigmoid": by_result(Curve.CURVE_SIGMOID, lambda g, y: g * (y * (1.0 - y))),
    "tanh": by_result(Curve.CURVE_TANH, lambda g, y: g * (1.0 - y * y)),
    # sign(y) is the 0 that depends on y, so that a gradient of the gradient is 0 and no error.
    "relu": by_result(Curve.CURVE_RELU, lambda g, y: vg.where(y <= 0.0, vg.sign(y), g)),
    "gelu": by_operand(Curve.CURVE_GELU, lambda g, x: g * gelu_slope(x)),
    "silu": by_operand(Curve.CURVE_SILU, lambda g, x: g * silu_slope(x)),
}

# For a and for b, each of which may be a Python scalar where the rule is the other's.
BINARY = {
    "add": (same, same),
    "subtract": (same, lambda g: -g),
    "multiply": (lambda g, b: g * b, lambda g, a: g * a),
    "divide": (lambda g, b: g / b, lambda g, b, y: -g * y / b),
    "maximum": (lambda g, a, b: chosen(g, a > b, a, b), lambda g, a, b: chosen(g, b > a, a, b)),
    "minimum": (lambda g, a, b: chosen(g, a < b, a, b), lambda g, a, b: chosen(g, b < a, a, b)),
    "remainder": (same, lambda g, a, b: -g * vg.floor_divide(a, b)),
    "floor_divide": (zero, zero),
    "pow": (lambda g, a, b: g * power_slope(a, b), lambda g, a, y: g * power_log(a, y)),
    "atan2": (lambda g, a, b: g * angle_slope(b, a, b), lambda g, a, b: -g * angle_slope(a, a, b)),
    "hypot": (lambda g, a, y: g * over_length(a, y), lambda g, b, y: g * over_length(b, y)),
    "logaddexp": (lambda g, a, y: g * vg.exp(a - y), lambda g, b, y: g * vg.exp(b - y)),
    "fmax": (
        lambda g, a, b: chosen(g, (a > b) | (b != b) & (a == a), a, b),
        lambda g, a, b: chosen(g, (b > a) | (a != a), a, b),
    ),
    "fmin": (
        lambda g, a, b: chosen(g, (a < b) | (b != b) & (a == a), a, b),
        lambda g, a, b: chosen(g, (b < a) | (a != a), a, b),
    ),
    "heaviside": (zero, lambda g, a: g * (a == 0.0)),
    "copysign": (lambda g, a, y: g * (vg.sign(a) * vg.sign(y)), zero),
}


def clipped(g, x, low, high):
    """As of a maximum and a minimum."""
    if low is not None:
        g, x = chosen(g, x > low, x, low), vg.maximum(x, low)
    return g if high is None else chosen(g, x < high, x, high)


def over_length(x, length):
    """X over the length of a vector, as whose subgradient 0 is taken where it is 0."""
    return x / vg.where(length == 0.0, 1.0, length)


def angle_slope(x, a, b):
    """X over the square of the distance of a point from 0; 0 there."""
    length = vg.hypot(a, b)
    return over_length(over_length(x, length), length)


def chosen(g, wins, a, b):
    """The gradient of the one of a and b that wins; half of it where they are equal."""
    return vg.where(wins, g, vg.where(a == b, 0.5 * g, 0.0))


# Reductions and scans -----------------------------------------------------------------------------


def kept(x, like, axes, keepdims):
    """The result of a reduction, or its gradient, with the axes that were reduced."""
    if keepdims:
        return x
    reduced = range(len(like.shape)) if axes is None else axes
    return vg.reshape(x, tuple([1 if i in reduced else n for i, n in enumerate(like.shape)]))


def spread(g, like, axes, keepdims):
    return vg.broadcast_to(kept(g, like, axes, keepdims), like.shape)


def shared(g, x, y, like, axes, keepdims):
    """Max and min: the gradient in equal parts to all elements that are the result."""
    wins = vg.astype(x == kept(y, like, axes, keepdims), g.dtype)
    count = vg.sum(wins, axis=axes, keepdims=True)
    return kept(g, like, axes, keepdims) * (wins / count)


def others_product(g, x, like, axes, keepdims):
    """Prod: of each element the product of all others, also where there are zeros."""
    if not x.size:
        return vg.zeros_like(x)
    reduced = [*range(x.ndim)] if axes is None else [*axes]
    order = [i for i in range(x.ndim) if i not in reduced] + reduced
    moved = vg.permute_dims(x, order)
    rows = vg.reshape(moved, (*moved.shape[: x.ndim - len(reduced)], -1))
    before = vg.cumulative_prod(rows, axis=-1, include_initial=True)[..., :-1]
    turned = vg.flip(rows, axis=-1)
    behind = vg.cumulative_prod(turned, axis=-1, include_initial=True)[..., :-1]
    result = vg.reshape(before * vg.flip(behind, axis=-1), moved.shape)
    back = vg.permute_dims(result, [order.index(i) for i in range(x.ndim)])
    return kept(g, like, axes, keepdims) * back


def count_of(like, axes):
    return math.prod(n for i, n in enumerate(like.shape) if axes is None or i in axes)


REDUCE = {
    "sum": spread,
    "mean": lambda g, like, axes, keepdims: spread(
        g / float(count_of(like, axes) or 1), like, axes, keepdims
    ),
    "prod": others_product,
    "max": shared,
    "min": shared,
}


def sums_behind(g, axis, initial):
    """Cumulative sums: every element is in all results from its own on."""
    g = without_first(g, axis) if initial else g
    return vg.flip(vg.cumulative_sum(vg.flip(g, axis=axis), axis=axis), axis=axis)


def products_behind(g, x, axis, initial):
    """Cumulative products, by the recurrence c[i] = g[i] + x[i + 1] * c[i + 1] of y[i]'s effect.

    Doubling the steps solves it in log2(n) rounds, also where there are zeros.
    """
    g = vg.moveaxis(without_first(g, axis) if initial else g, axis, -1)
    x = vg.moveaxis(x, axis, -1)
    n = x.shape[-1]
    before = vg.cumulative_prod(x, axis=-1, include_initial=True)[..., :-1]
    effect, factor, step = g, later(x, 1), 1
    while step < n:
        effect = effect + factor * later(effect, step)
        factor, step = factor * later(factor, step), 2 * step
    return vg.moveaxis(effect * before, -1, axis)


def later(x, step):
    """X moved by so many elements to the front of its last axis; zeros come in at the end."""
    step = min(step, x.shape[-1])
    return vg.concat([x[..., step:], vg.zeros_like(x[..., :step])], axis=-1)


def without_first(x, axis):
    return x[(*[slice(None)] * axis, slice(1, None))]


SCAN = {"sum": sums_behind, "prod": products_behind}

# Exponentials and variances -----------------------------------------------------------------------


def logsumexp(g, x, y, like, axes, keepdims):
    g, x, y = widened(g, x, y)
    return kept(g, like, axes, keepdims) * vg.exp(x - kept(y, like, axes, keepdims))


SOFTMAX = {"softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp}


def variance(g, x, y, like, axes, ddof, root, keepdims):
    """Of the standard deviation, too: a distance from the mean over it, and over the count."""
    left = max(count_of(like, axes) - ddof, 0.0)
    g, x, y = widened(g, x, y)
    g, y = kept(g, like, axes, keepdims), kept(y, like, axes, keepdims)
    scale = (1.0 if root else 2.0) / left if left else math.inf
    g = vg.where(y == 0.0, 0.0, over_length(g, y)) if root else g  # 0 of equals
    return g * scale * (x - vg.mean(x, axis=axes, keepdims=True))


def length_slope(g, x, y, degree):
    """Of a norm y by the sum x of its powers: 0 at 0, though its slope grows without bounds."""
    empty = x == 0.0
    slope = vg.where(empty, 1.0, y) / (degree * vg.where(empty, 1.0, x))
    return vg.where(empty, 0.0, g * slope)


def norm_slope(g, x, y):
    """Of the norm y of all elements of x: 0 at 0."""
    empty = y == 0.0
    return vg.where(empty, 0.0, g * (x / vg.where(empty, 1.0, y)))


# Products -----------------------------------------------------------------------------------------


def product(a, b, precision):
    return apply(a.backend, "matmul", a, b, precision, None)


def as_matrices(g, a_ndim, b_ndim):
    """The gradient of a product with the axes that operands of one dimension have not given it."""
    g = vg.expand_dims(g, axis=-1) if b_ndim == 1 else g
    return vg.expand_dims(g, axis=-2) if a_ndim == 1 else g


def matmul_left(g, b, like, precision):
    one = len(like.shape) == 1
    g = as_matrices(g, len(like.shape), b.ndim)
    b = vg.reshape(b, (1, b.size)) if b.ndim == 1 else vg.matrix_transpose(b)
    result = product(g, b, precision)
    return result[..., 0, :] if one else result


def matmul_right(g, a, like, precision):
    one = len(like.shape) == 1
    g = as_matrices(g, a.ndim, len(like.shape))
    a = vg.reshape(a, (1, a.size)) if a.ndim == 1 else a
    if len(like.shape) <= 2 < a.ndim:  # one product instead of a batch of them and its sum
        a, g = rows_of(a), rows_of(g)
    result = product(vg.matrix_transpose(a), g, precision)
    return result[..., 0] if one else result


def rows_of(x):
    return vg.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def dense(g, x, weight, bias, preactivation, activation, precision, wanted, differentiable):
    """A layer: by the fused kernel, and by the rules of what it is made of if they are recorded."""
    if not differentiable:
        which = ("x" in wanted, "weight" in wanted, "bias" in wanted)
        call = (g, x, weight, preactivation, activation, precision, which)
        return dict(zip(wanted, WAYS["dense_backward"](x.backend, *call), strict=True))
    if activation:
        before = product(x, vg.matrix_transpose(weight), precision)
        before = before if bias is None else before + bias
        with_result = {"x": before, "y": apply(x.backend, "unary", activation, before, None)}
        rule = UNARY[OPERATIONS[activation].name]
        g = rule(g, *[with_result[name] for name in rule.__code__.co_varnames[1:2] if name in "xy"])
    flat = rows_of(g) if g.ndim > 1 else vg.reshape(g, (1, g.size))
    inputs = rows_of(x) if x.ndim > 1 else vg.reshape(x, (1, x.size))
    return {
        "x": product(g, weight, precision),
        "weight": product(vg.matrix_transpose(flat), inputs, precision),
        "bias": vg.sum(flat, axis=0),
    }


# Layout and indexing ------------------------------------------------------------------------------


def unslice(g, like, start, step, length):
    return embedded(g, like.shape, start, step, length)


def undiagonal(g, like, offset, axis1, axis2):
    """Matrices of zeros with these diagonals, between which the axes go back to their places."""
    rows, columns = like.shape[axis1], like.shape[axis2]
    *others, length = g.shape
    start = max(0, -offset) * columns + max(0, offset) if length else 0
    starts, steps = (*(0 for _ in others), start), (*(1 for _ in others), columns + 1)
    flat = embedded(g, (*others, rows * columns), starts, steps, (*others, length))
    return vg.moveaxis(vg.reshape(flat, (*others, rows, columns)), (-2, -1), (axis1, axis2))


def slice_again(g, start, step, length):
    return apply(g.backend, "slice", g, start, step, length)


def sorted_back(g, x, axis, descending):
    order = vg.argsort(x, axis=axis, descending=descending)
    return vg.take_along_axis(g, vg.argsort(order, axis=axis), axis=axis)


def pieces(g, lengths, axis, stacked):
    """concat: to every part its own; stacked parts lack the axis."""
    found, begin = {}, 0
    for number, n in enumerate(lengths):
        place = begin if stacked else slice(begin, begin + n)
        found[number] = g[(*[slice(None)] * axis, place)]
        begin += n
    return found


METHODS = {
    "cast": same,
    "where": {
        "a": lambda g, condition: vg.where(condition, g, 0.0),
        "b": lambda g, condition: vg.where(condition, 0.0, g),
    },
    "var": variance,
    "cbrt": lambda g, y: g / (3.0 * y * y),
    "clip": clipped,
    "fmod": {"a": same, "b": lambda g, a, b, y: -g * vg.round((a - y) / b)},
    "modf": same,  # the fraction; what is before the point steps
    "length": length_slope,
    "norm": norm_slope,
    "nan_to_num": lambda g, x: vg.where(vg.isfinite(x), g, 0.0),
    "dropout": lambda g, p, key, stream, counter, renewed: apply(
        g.backend, "dropout", g, p, key, stream, counter, renewed
    ),
    "triangle": lambda g, upper, diagonal: (vg.triu if upper else vg.tril)(g, diagonal),
    "matmul": {"a": matmul_left, "b": matmul_right},
    "dense": dense,
    "normalize": normalize,
    "cross_entropy": {"x": cross_entropy},
    "activate": {"x": activate},
    "pair_loss": {"x": loss_of_x, "target": loss_of_target},
    "attention": attention,
    "slice": unslice,
    "diagonal": undiagonal,
    "embed": slice_again,
    "permute": lambda g, axes: vg.permute_dims(g, [axes.index(i) for i in range(len(axes))]),
    "reshape": lambda g, like: vg.reshape(g, like.shape),
    "broadcast_to": same,
    "contiguous": same,
    "concat": pieces,
    # The imaginary part, or else the real one: the tape makes it complex.
    "part": lambda g, imaginary: g * 1j if imaginary else g,
    "complex": {"real": same, "imag": lambda g: g * -1j},  # of which the tape takes the real part
    "fft": transformed_back,
    "roll": lambda g, shifts: rolled(g, {axis: -n for axis, n in shifts.items()}),
    "transfer": lambda g, like: transfer(g, like.device),
    "gather": scatter_sums,
    "scatter_sums": lambda g, indices, axes, place: apply(
        g.backend, "gather", g, indices, axes, place, True
    ),
}
METHODS |= {
    "cholesky": cholesky,
    "solve": {"a": solve_left, "b": solve_right},
    "inverse": inverse,
    "determinant": determinant,
    "sort": sorted_back,
    "bincount": {"weights": lambda g, a: vg.take(g, a)},
    "pool": pool,
    "pool_backward": {"gradient": pool_backward},
}
METHODS |= CONVOLUTION
# Rules that give the gradients of all operands at once, by their names; None: those of all Arrays.
JOINT = {
    dense: ("x", "weight", "bias"),
    attention: ("query", "keys", "values"),
    normalize: ("x", "weight", "bias"),
    pieces: None,
}
# Operations whose kernels give gradients that need no fitting: in the operands' shapes, and in
# their dtype if these operands agree in it.
EXACT = {"dense": ("x", "weight", "bias"), "cross_entropy": ("x",)}
EXACT |= {"activate": ("x",), "pair_loss": ("x", "target")}
# Operations that come last, as a loss: for the gradient 1 their rule takes None.
LAST = {"cross_entropy", "pair_loss"}
# Operations that are several calls of a backend, see dispatch.whole.
WHOLE = {"cbrt", "complex", "concat", "embed", "fft", "fmod", "length", "modf", "norm", "roll"}
WHOLE |= {"scatter_sums", "transfer"}
# Methods that give indices or bools, and those of floats that have no rule, which the tape refuses.
WHOLE_NUMBERS = {"argsort", "isclose", "nonzero", "searchsorted"}
# Tracked arrays never get to "within", as clip takes a maximum and a minimum of them.
WITHOUT = {"within", "dense_backward", "recurrent", "recurrent_backward", "total_norm"}
WITHOUT |= {"attention_backward", "cross_entropy_backward"}
WITHOUT |= {"normalize_backward", "softmax_backward", "activate_backward", "pair_loss_backward"}
