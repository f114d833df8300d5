"""Losses as modules: what vg.nn.functional has as functions."""

from . import functional
from .module import Module

__all__ = [
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HuberLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
]


class _Loss(Module):
    """A loss with its options; weights of it are buffers."""

    def __init__(self, **options):
        super().__init__()
        self.__dict__["_names"] = tuple(options)
        for name, value in options.items():
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def _options(self):
        return {name: getattr(self, name) for name in self._names}

    def extra_repr(self):
        shown = {n: v for n, v in self._options().items() if n not in self._buffers}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


class MSELoss(_Loss):
    """Squared differences; see mse_loss.

    >>> vg.nn.MSELoss()(vg.asarray([0.0, 0.0]), vg.asarray([1.0, -3.0])).item()
    5.0
    >>> vg.nn.MSELoss("none")(vg.asarray([0.0, 0.0]), vg.asarray([1.0, -3.0])).tolist()
    [1.0, 9.0]
    """

    def __init__(self, reduction="mean"):
        super().__init__(reduction=reduction)

    def forward(self, input, target):
        return functional.mse_loss(input, target, **self._options())


class L1Loss(_Loss):
    """Absolute differences; see l1_loss.

    >>> vg.nn.L1Loss()(vg.asarray([0.0, 0.0]), vg.asarray([1.0, -3.0])).item()
    2.0
    """

    def __init__(self, reduction="mean"):
        super().__init__(reduction=reduction)

    def forward(self, input, target):
        return functional.l1_loss(input, target, **self._options())


class HuberLoss(_Loss):
    """Squares of small differences, others as they are; see huber_loss.

    >>> vg.nn.HuberLoss()(vg.asarray([0.0, 0.0]), vg.asarray([1.0, 3.0])).item()
    1.5
    """

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction, delta=delta)

    def forward(self, input, target):
        return functional.huber_loss(input, target, **self._options())


class SmoothL1Loss(_Loss):
    """HuberLoss with delta=beta, divided by beta; see smooth_l1_loss.

    >>> vg.nn.SmoothL1Loss()(vg.asarray([0.0, 0.0]), vg.asarray([1.0, -3.0])).item()
    1.5
    """

    def __init__(self, reduction="mean", beta=1.0):
        super().__init__(reduction=reduction, beta=beta)

    def forward(self, input, target):
        return functional.smooth_l1_loss(input, target, **self._options())


class BCEWithLogitsLoss(_Loss):
    """Of yes and no; see binary_cross_entropy_with_logits.

    >>> print(vg.nn.BCEWithLogitsLoss()(vg.asarray([0.0, 0.0]), vg.asarray([0.0, 1.0])))
    0.6931472
    """

    def __init__(self, weight=None, reduction="mean", pos_weight=None):
        super().__init__(weight=weight, reduction=reduction, pos_weight=pos_weight)

    def forward(self, input, target):
        return functional.binary_cross_entropy_with_logits(input, target, **self._options())


class CrossEntropyLoss(_Loss):
    """Of classes; see cross_entropy.

    >>> scores, labels = vg.zeros((3, 4)), vg.asarray([0, 1, 3])
    >>> print(vg.nn.CrossEntropyLoss()(scores, labels))
    1.3862944
    """

    def __init__(self, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )

    def forward(self, input, target):
        return functional.cross_entropy(input, target, **self._options())


class NLLLoss(_Loss):
    """Of classes, whose probabilities' logarithms are given; see nll_loss.

    >>> scores = vg.log_softmax(vg.zeros((3, 4)))
    >>> print(vg.nn.NLLLoss()(scores, vg.asarray([0, 1, 3])))
    1.3862944
    """

    def __init__(self, weight=None, *, ignore_index=-100, reduction="mean"):
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)

    def forward(self, input, target):
        return functional.nll_loss(input, target, **self._options())
