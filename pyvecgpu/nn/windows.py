"""Convolution and pooling: Conv1d, Conv2d, MaxPool1d, MaxPool2d, AvgPool1d, AvgPool2d."""

from ..functions.padding import pad
from . import functional, init
from .functional.windows import paddings, per_axis
from .layers import bounded, counted, parameter
from .module import Module

__all__ = ["AvgPool1d", "AvgPool2d", "Conv1d", "Conv2d", "MaxPool1d", "MaxPool2d"]


# What is around an input: of convolution's padding_mode that of vg.pad.
_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class _Conv(Module):
    """Convolution with weight (out_channels, in_channels / groups, ...), bias (out_channels,).

    padding_mode: "zeros", or as if x went on: "reflect", "replicate" or "circular".
    First values: uniform within 1 / sqrt(inputs of an output), as torch's.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__()
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode is one of {', '.join(_MODES)}, not {padding_mode!r}")
        self.in_channels = counted(in_channels, "in_channels")
        self.out_channels = counted(out_channels, "out_channels")
        self.groups = counted(groups, "groups")
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} and {out_channels} channels are not {groups} groups")
        self.kernel_size = per_axis(kernel_size, self._axes, "kernel_size", 1)
        self.stride = per_axis(stride, self._axes, "stride", 1)
        self.dilation = per_axis(dilation, self._axes, "dilation", 1)
        self._around = paddings(padding, self.kernel_size, self.stride, self.dilation)
        self.padding, self.padding_mode = padding, padding_mode
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = parameter(shape, dtype, device)
        self.register_parameter("bias", parameter(out_channels, dtype, device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the first values."""
        bound = bounded(self.weight)
        for array in self.parameters():
            init.uniform_(array, -bound, bound)

    def forward(self, x):
        padding = self.padding
        if self.padding_mode != "zeros":
            widths = [(0, 0)] * (x.ndim - self._axes) + self._around
            x, padding = pad(x, widths, _MODES[self.padding_mode]), 0
        how = (self.stride, padding, self.dilation, self.groups)
        return getattr(functional, self._function)(x, self.weight, self.bias, *how)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}, padding={self.padding!r}, dilation={self.dilation}"
        text += f", groups={self.groups}, bias={self.bias is not None}"
        plain = self.padding_mode == "zeros"
        return text if plain else f"{text}, padding_mode={self.padding_mode!r}"


class Conv1d(_Conv):
    __doc__ = (
        _Conv.__doc__
        + """
    Of (N, channels, length); see conv1d.

    >>> vg.nn.Conv1d(2, 4, 3, padding=1)(vg.ones((5, 2, 10))).shape
    (5, 4, 10)
    """
    )
    _axes, _function = 1, "conv1d"


class Conv2d(_Conv):
    __doc__ = (
        _Conv.__doc__
        + """
    Of (N, channels, height, width); see conv2d.

    >>> vg.nn.Conv2d(3, 16, 3)(vg.ones((5, 3, 8, 8))).shape
    (5, 16, 6, 6)
    """
    )
    _axes, _function = 2, "conv2d"


_UNSAID = ("ceil_mode", "return_indices", "divisor_override")  # unless they are asked for


class _Pool(Module):
    def forward(self, x):
        return getattr(functional, self._function)(x, **self._options)

    def extra_repr(self):
        shown = [item for item in self._options.items() if item[0] not in _UNSAID or item[1]]
        return ", ".join(f"{name}={value}" for name, value in shown)


class MaxPool1d(_Pool):
    """The largest elements of windows of (N, channels, length).

    >>> vg.nn.MaxPool1d(2)(vg.asarray([[[1.0, 3.0, 5.0, 7.0]]])).tolist()
    [[[3.0, 7.0]]]
    """

    _function = "max_pool1d"

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        return_indices=False,
        ceil_mode=False,
    ):
        super().__init__()
        stride = kernel_size if stride is None else stride
        self._options = {"kernel_size": kernel_size, "stride": stride}
        self._options |= {"padding": padding, "dilation": dilation, "ceil_mode": ceil_mode}
        self._options["return_indices"] = return_indices


class MaxPool2d(MaxPool1d):
    """The largest elements of windows of (N, channels, height, width).

    >>> vg.nn.MaxPool2d(2)(vg.ones((1, 3, 8, 8))).shape
    (1, 3, 4, 4)
    """

    _function = "max_pool2d"


class AvgPool1d(_Pool):
    """The means of windows of (N, channels, length).

    >>> vg.nn.AvgPool1d(2)(vg.asarray([[[1.0, 3.0, 5.0, 7.0]]])).tolist()
    [[[2.0, 6.0]]]
    """

    _function = "avg_pool1d"

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
    ):
        super().__init__()
        stride = kernel_size if stride is None else stride
        self._options = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
        self._options |= {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}


class AvgPool2d(AvgPool1d):
    """The means of windows of (N, channels, height, width).

    >>> vg.nn.AvgPool2d(2)(vg.ones((1, 3, 8, 8))).shape
    (1, 3, 4, 4)
    """

    _function = "avg_pool2d"

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self._options["divisor_override"] = divisor_override
