"""Normalising layers: LayerNorm, RMSNorm, GroupNorm, BatchNorm1d and 2d."""

from ..functions.creation import ones, zeros
from ..functions.elementwise import add
from . import functional, init
from .layers import counted, parameter
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "GroupNorm", "LayerNorm", "RMSNorm"]


class _Norm(Module):
    """Weight, at first 1, and bias, at first 0, or neither."""

    def _add_parameters(self, shape, weight, bias, dtype, device):
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, parameter(shape, dtype, device) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Set the first values."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


class LayerNorm(_Norm):
    """Mean 0 and variance 1 over the last axes, whose lengths are normalized_shape.

    >>> print(vg.nn.LayerNorm(2)(vg.asarray([[1.0, 3.0], [10.0, 30.0]])))
    [[-0.999995    0.999995  ]
     [-0.99999994  0.99999994]]
    """

    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        several = isinstance(normalized_shape, (tuple, list))
        self.normalized_shape = tuple(normalized_shape) if several else (normalized_shape,)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        affine = (elementwise_affine, elementwise_affine and bias)
        self._add_parameters(self.normalized_shape, *affine, dtype, device)

    def forward(self, x):
        shape = self.normalized_shape
        return functional.layer_norm(x, shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        text = f"{self.normalized_shape}, eps={self.eps}"
        return f"{text}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(_Norm):
    """Mean square 1 over the last axes, whose lengths are normalized_shape.

    >>> print(vg.nn.RMSNorm(2)(vg.asarray([[3.0, 4.0]])))
    [[0.84852815 1.1313709 ]]
    """

    def __init__(
        self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None
    ):
        super().__init__()
        several = isinstance(normalized_shape, (tuple, list))
        self.normalized_shape = tuple(normalized_shape) if several else (normalized_shape,)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = parameter(self.normalized_shape, dtype, device) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def forward(self, x):
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    extra_repr = LayerNorm.extra_repr


class GroupNorm(_Norm):
    """Mean 0 and variance 1 over groups of channels, the second axis.

    >>> vg.nn.GroupNorm(2, 4)(vg.ones((5, 4, 8))).shape
    (5, 4, 8)
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        super().__init__()
        self.num_groups = counted(num_groups, "num_groups")
        self.num_channels = counted(num_channels, "num_channels")
        if num_channels % num_groups:
            raise ValueError(f"{num_channels} channels are not {num_groups} groups")
        self.eps, self.affine = eps, affine
        self._add_parameters(num_channels, affine, affine, dtype, device)

    def forward(self, x):
        return functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        text = f"{self.num_groups}, {self.num_channels}, eps={self.eps}"
        return f"{text}, affine={self.affine}"


class _BatchNorm(_Norm):
    """Mean 0 and variance 1 of every channel, the second axis.

    In training over the batch, while running statistics go towards what was found; in use by those.
    momentum: how far they go at each step; None for the mean of all steps. track_running_stats:
    False for the batch's own always.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_features = counted(num_features, "num_features")
        self.eps, self.momentum, self.affine = eps, momentum, affine
        self.track_running_stats = track_running_stats
        self._add_parameters(num_features, affine, affine, dtype, device)
        dtype = "float32" if dtype is None else dtype
        values = (None, None, None)
        if track_running_stats:
            values = (
                zeros(num_features, dtype, device=device),
                ones(num_features, dtype, device=device),
                zeros((), "int64", device=device),
            )
        names = ("running_mean", "running_var", "num_batches_tracked")
        for name, value in zip(names, values, strict=True):
            self.register_buffer(name, value)
        self._seen = None  # num_batches_tracked as this layer has left it, its version and number

    def _batches(self):
        """Return num_batches_tracked as an int: a copy to the host only of what others wrote."""
        tracked = self.num_batches_tracked
        if self._seen and self._seen[0] is tracked and self._seen[1] == tracked._version:
            return self._seen[2]
        return tracked.item()

    def forward(self, x):
        if x.ndim not in self._axes:
            axes = " or ".join(map(str, self._axes))
            raise ValueError(f"{type(self).__name__}: an input of {axes} axes, not {x.shape}")
        batch = self.training or self.running_mean is None
        momentum = 0.0 if self.momentum is None else self.momentum
        statistics, batches = (self.running_mean, self.running_var), None
        if self.training and self.track_running_stats:
            if self.momentum is None:
                batches = self._batches() + 1
                momentum = 1.0 / batches
        elif batch:
            statistics = (None, None)
        more = (self.weight, self.bias, batch, momentum, self.eps)
        result = functional.batch_norm(x, *statistics, *more)
        if self.training and self.track_running_stats:
            tracked = self.num_batches_tracked
            add(tracked, 1, out=tracked)
            if batches is not None:
                self._seen = tracked, tracked._version, batches
        return result

    def extra_repr(self):
        text = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
        return f"{text}, affine={self.affine}, track_running_stats={self.track_running_stats}"


class BatchNorm1d(_BatchNorm):
    __doc__ = (
        _BatchNorm.__doc__
        + """
    Of (N, channels) or (N, channels, length).

    >>> layer = vg.nn.BatchNorm1d(2)
    >>> x = layer(vg.asarray([[1.0, 10.0], [3.0, 30.0]]))
    >>> print(x.mean(axis=0), layer.running_mean)
    [0. 0.] [0.2 2. ]
    """
    )
    _axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = (
        _BatchNorm.__doc__
        + """
    Of (N, channels, height, width).

    >>> vg.nn.BatchNorm2d(3)(vg.ones((4, 3, 8, 8))).shape
    (4, 3, 8, 8)
    """
    )
    _axes = (4,)
