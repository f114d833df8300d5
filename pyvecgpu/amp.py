"""Mixed precision: products in halves, all else in float32, and scaled losses; as torch.amp.

Parameters stay float32 and are cast where products take them, so what an optimiser changes keeps
its digits. bfloat16 has float32's range. float16's ends at 65,504, and gradients below 6e-8 are
lost: that is what GradScaler is for.
"""

import functools
import math

from .device import Device
from .dtypes import is_half, parse_dtype
from .functions import casting
from .optim.gradients import multiply, total_norm

__all__ = ["GradScaler", "autocast", "is_autocast_enabled"]


class autocast:  # noqa: N801  a name of torch's
    """A context, and a decorator, in which products are computed in a half; see torch.autocast.

    Matrix products, dense layers, convolutions and attention cast their float32 and half operands
    to `dtype`; sums, exponentials, logarithms, powers, norms and losses cast halves to float32;
    everything else computes in what it is given, two dtypes being promoted as ever. float64 is left
    alone, and so is what is written to an `out`. Casts of parameters are kept until the context
    ends or they change.

    device_type: "cpu", "cuda" or "sim", by default all. dtype: bfloat16, the default, or float16.
    enabled=False: nothing is cast inside, within another context too. It concerns one thread, and
    the forward pass: the backward pass has the dtypes that this had. ValueError: another dtype.

    >>> layer, x = vg.nn.Linear(4, 2), vg.ones((3, 4))
    >>> with vg.autocast():
    ...     scores = layer(x)
    ...     loss = vg.nn.functional.cross_entropy(scores, vg.asarray([0, 1, 1]))
    >>> scores.dtype == vg.bfloat16, loss.dtype, layer.weight.dtype
    (True, dtype('float32'), dtype('float32'))
    """

    def __init__(self, device_type=None, dtype="bfloat16", enabled=True, cache_enabled=True):
        self.dtype = parse_dtype(dtype)
        if not is_half(self.dtype):
            raise ValueError(f"autocast is to bfloat16 or float16, not {self.dtype}")
        self.device_type = None
        if device_type is not None:
            name = device_type.type if isinstance(device_type, Device) else device_type
            if name not in ("cpu", "cuda", "sim"):
                raise ValueError(f"device_type is 'cpu', 'cuda' or 'sim', not {device_type!r}")
            self.device_type = name
        self.enabled, self.cache_enabled = bool(enabled), bool(cache_enabled)
        self._before = []

    def __enter__(self):
        outer = casting.current()
        cache = None
        if self.cache_enabled and self.enabled:
            same = outer is not None and outer.dtype is self.dtype
            cache = outer.cache if same and outer.cache is not None else {}
        dtype = self.dtype if self.enabled else None
        self._before.append(casting.enter(casting.Casts(self.device_type, dtype, cache)))
        return self

    def __exit__(self, *_):
        casting.leave(self._before.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **options):
            kind = self.device_type
            with autocast(kind, self.dtype, self.enabled, self.cache_enabled):
                return function(*args, **options)

        return call


def is_autocast_enabled(device_type=None):
    """Return whether products are cast in this thread, on devices of a type or on all.

    >>> with vg.autocast("cpu"):
    ...     vg.amp.is_autocast_enabled("cpu"), vg.amp.is_autocast_enabled("sim")
    (True, False)
    """
    casts = casting.current()
    return (
        casts is not None and casts.dtype is not None and casts.device_type in (None, device_type)
    )


class GradScaler:
    """Scales losses, so that small gradients are not lost in float16; see torch.amp.GradScaler.

    A step whose gradients are not all finite is left out and the scale multiplied by
    backoff_factor; after growth_interval steps in a row that were done it is multiplied by
    growth_factor. A step waits for the device once, to know. device: is not looked at, gradients
    say it. ValueError: a growth_factor of 1 or less, or a backoff_factor of 1 or more.

    >>> w = vg.asarray([2.0]).requires_grad_()
    >>> optimiser, scaler = vg.optim.SGD([w], lr=0.25), vg.amp.GradScaler()
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimiser)
    >>> scaler.update()
    >>> w.tolist(), scaler.get_scale()
    ([1.0], 65536.0)
    """

    def __init__(
        self,
        device=None,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        if not growth_factor > 1:
            raise ValueError(f"growth_factor is above 1, not {growth_factor}")
        if not 0 < backoff_factor < 1:
            raise ValueError(f"backoff_factor is between 0 and 1, not {backoff_factor}")
        _check_scale("init_scale", init_scale)
        if not growth_interval >= 1:
            raise ValueError(f"growth_interval is 1 or more, not {growth_interval}")
        self._enabled, self._scale = bool(enabled), float(init_scale)
        self._growth_factor, self._backoff_factor = float(growth_factor), float(backoff_factor)
        self._growth_interval, self._growth_tracker = int(growth_interval), 0
        self._found = {}  # id of an optimiser: (it, whether a gradient was not finite)
        self._stepped = set()

    def is_enabled(self):
        """Return whether losses are scaled.

        >>> vg.amp.GradScaler(enabled=False).is_enabled()
        False
        """
        return self._enabled

    def get_scale(self):
        """Return what losses are multiplied by, a float; 1.0 if it is not enabled.

        >>> vg.amp.GradScaler(init_scale=8.0).get_scale()
        8.0
        """
        return self._scale if self._enabled else 1.0

    def scale(self, outputs):
        """Return an Array, or a list or tuple of them, times the scale.

        >>> vg.amp.GradScaler(init_scale=8.0).scale(vg.asarray(0.5)).item()
        4.0
        """
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(one) for one in outputs])
        return outputs * self._scale if self._enabled else outputs

    def unscale_(self, optimizer):
        """Divide the gradients of an optimiser's parameters by the scale, to be clipped or read.

        Three launches; gradients are changed in place, as by clip_grad_norm_. A program that goes
        on when something between this and step has failed calls update before it computes other
        gradients, as in torch: until then those count as unscaled, and step takes them as they are.

        RuntimeError: a second time before update, or after step.

        >>> w = vg.asarray([2.0]).requires_grad_()
        >>> optimiser, scaler = vg.optim.SGD([w]), vg.amp.GradScaler()
        >>> scaler.scale((w * w).sum()).backward()
        >>> scaler.unscale_(optimiser)
        >>> w.grad.tolist()
        [4.0]
        """
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_ comes before step")
        if id(optimizer) in self._found:
            raise RuntimeError(
                "unscale_ was called already since the last update; where no step followed it, "
                "call update() before the next gradients are computed"
            )
        params = [p for group in optimizer.param_groups for p in group["params"]]
        params = [p for p in params if p.grad is not None]
        if not params:
            raise RuntimeError("the optimiser's parameters have no gradients to be unscaled")
        largest = total_norm([p.grad.detach() for p in params], math.inf).item()
        multiply(params, 1.0 / self._scale)
        self._found[id(optimizer)] = optimizer, not math.isfinite(largest)

    def step(self, optimizer, *args, **options):
        """Do optimizer.step(...) with gradients that are divided by the scale, if all are finite.

        Returns what that returns, None for a step that is left out. RuntimeError: a second time
        before update. Of a step that fails nothing is kept, so that it can be done again from the
        forward pass on.
        """
        if not self._enabled:
            return optimizer.step(*args, **options)
        if id(optimizer) in self._stepped:
            raise RuntimeError("step was called already since the last update")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        unfit = self._found[id(optimizer)][1]
        try:
            result = None if unfit else optimizer.step(*args, **options)
        except BaseException:
            del self._found[id(optimizer)]  # what is done again has gradients of its own
            raise
        self._stepped.add(id(optimizer))
        return result

    def update(self, new_scale=None):
        """Choose the next scale, by what was found, or the given one.

        RuntimeError: no step yet. ValueError: a scale that is not positive and finite.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            _check_scale("new_scale", new_scale)
            self._scale = float(new_scale)
        elif not self._found:
            raise RuntimeError("update comes after step")
        elif any(unfit for _, unfit in self._found.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                grown = self._scale * self._growth_factor
                self._scale = grown if grown < float("inf") else self._scale
                self._growth_tracker = 0
        self._found, self._stepped = {}, set()

    def state_dict(self):
        """Return a dict of numbers, with torch's keys; an empty one if it is not enabled.

        >>> vg.amp.GradScaler().state_dict()["scale"]
        65536.0
        """
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict):
        """Take on what state_dict gave; with an error none of it.

        RuntimeError: it is empty, as of one not enabled. ValueError: numbers are missing, or the
        scale is not positive and finite.

        >>> scaler = vg.amp.GradScaler()
        >>> scaler.load_state_dict(vg.amp.GradScaler(init_scale=8.0).state_dict())
        >>> scaler.get_scale()
        8.0
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("the state is of a GradScaler that was not enabled")
        missing = [name for name in self.state_dict() if name not in state_dict]
        if missing:
            raise ValueError(f"the state is not of a GradScaler; missing: {missing}")
        scale, growth, backoff, interval, since = [
            kind(state_dict[name])
            for kind, name in zip((float, float, float, int, int), self.state_dict(), strict=True)
        ]
        _check_scale("the scale of a state", scale)
        self._scale, self._growth_factor, self._backoff_factor = scale, growth, backoff
        self._growth_interval, self._growth_tracker = interval, since


def _check_scale(name, scale):
    if not 0 < scale < math.inf:
        raise ValueError(f"{name} is positive and finite, not {scale}")
