"""Layers: Linear, Flatten, Identity, Dropout, Embedding."""

import math

from ..functions.arguments import parse_int
from ..functions.creation import empty
from ..functions.layers import parse_activation
from ..functions.layout import reshape
from . import functional, init
from .functional.choosing import padding_row
from .functional.operands import number
from .module import Module
from .parameters import Parameter

__all__ = ["Dropout", "Embedding", "Flatten", "Identity", "Linear"]


def parameter(shape, dtype, device):
    """Return a Parameter, float32 where no dtype is given, whose values are to be set."""
    return Parameter(empty(shape, "float32" if dtype is None else dtype, device=device))


def counted(value, what, least=1):
    """Return a number of features and the like. ValueError: it is too small. TypeError: no int."""
    value = parse_int(value, what)
    if value < least:
        raise ValueError(f"{what} is {least} or more, not {value}")
    return value


def absent(layer, **options):
    """NotImplementedError if something of torch's that is not there is asked for.

    options: name=(value, the one value that is there).
    """
    for name, (value, default) in options.items():
        if value is not default and value != default:
            raise NotImplementedError(f"{layer}: {name}={value!r} is not there, only {default!r}")


def bounded(weight):
    """Return 1 / sqrt(inputs of an output), 0 without any."""
    fan = math.prod(weight.shape[1:])
    return 1.0 / math.sqrt(fan) if fan else 0.0


class Identity(Module):
    """What it is given.

    >>> vg.nn.Identity()(vg.asarray([1, 2])).tolist()
    [1, 2]
    """

    def __init__(self, *args, **options):
        super().__init__()

    def forward(self, x):
        return x


class Flatten(Module):
    """The axes from start_dim to end_dim as one.

    >>> vg.nn.Flatten()(vg.ones((5, 2, 3))).shape
    (5, 6)
    """

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        first, last = (d + x.ndim if d < 0 else d for d in (self.start_dim, self.end_dim))
        if not 0 <= first <= last < x.ndim:
            raise ValueError(f"Flatten({self.extra_repr()}) of an array of shape {x.shape}")
        middle = math.prod(x.shape[first : last + 1])
        return reshape(x, (*x.shape[:first], middle, *x.shape[last + 1 :]))

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Linear(Module):
    """activation(x @ weight.T + bias): weight (out_features, in_features), bias (out_features,).

    activation: None, "sigmoid", "tanh", "relu", "gelu" or "silu", in the same kernel as the
    product. First values: uniform within 1 / sqrt(in_features), as torch's.

    >>> layer = vg.nn.Linear(3, 2, activation="relu")
    >>> layer(vg.ones((5, 3))).shape, layer.weight.shape
    ((5, 2), (2, 3))
    """

    def __init__(
        self,
        in_features,
        out_features,
        bias=True,
        device=None,
        dtype=None,
        *,
        activation=None,
    ):
        super().__init__()
        self.in_features = counted(in_features, "in_features", 0)
        self.out_features = counted(out_features, "out_features", 0)
        parse_activation("Linear", activation)
        self.activation = activation
        self.weight = parameter((out_features, in_features), dtype, device)
        self.register_parameter("bias", parameter(out_features, dtype, device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the first values."""
        bound = bounded(self.weight)
        for array in self.parameters():
            init.uniform_(array, -bound, bound)

    def forward(self, x):
        return fused(self, x, self.activation)

    def extra_repr(self):
        text = f"in_features={self.in_features}, out_features={self.out_features}"
        text += f", bias={self.bias is not None}"
        return text + (f", activation={self.activation!r}" if self.activation else "")


def fused(layer, x, activation):
    """Return an activation of what a Linear gives without one."""
    own = layer._parameters  # where they are found sooner than as attributes
    if "weight" in own and "bias" in own:
        return functional.dense(x, own["weight"], own["bias"], activation)
    return functional.dense(x, layer.weight, layer.bias, activation)


class Dropout(Module):
    """In training, elements become 0 with probability p, and others are divided by 1 - p.

    >>> layer = vg.nn.Dropout(0.5)
    >>> set(layer(vg.ones(100)).tolist()) <= {0.0, 2.0}
    True
    >>> layer.eval()(vg.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        self.p = number(p, "p", 0.0, 1.0)

    def forward(self, x):
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self):
        return f"p={self.p}"


class Embedding(Module):
    """Rows of weight (num_embeddings, embedding_dim), normal numbers at first, by their numbers.

    padding_idx: a row that is 0 at first and gets no gradient; a negative one counts from the end.

    >>> layer = vg.nn.Embedding(10, 4)
    >>> layer(vg.asarray([[1, 5, 1]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        *,
        device=None,
        dtype=None,
    ):
        super().__init__()
        absent("Embedding", max_norm=(max_norm, None), norm_type=(norm_type, 2.0))
        absent("Embedding", scale_grad_by_freq=(scale_grad_by_freq, False), sparse=(sparse, False))
        self.num_embeddings = counted(num_embeddings, "num_embeddings", 0)
        self.embedding_dim = counted(embedding_dim, "embedding_dim", 0)
        self.padding_idx = padding_row(padding_idx, self.num_embeddings)
        self.weight = parameter((num_embeddings, embedding_dim), dtype, device)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the first values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, x):
        return functional.embedding(x, self.weight, self.padding_idx)

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        return text + ("" if self.padding_idx is None else f", padding_idx={self.padding_idx}")
