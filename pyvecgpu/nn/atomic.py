"""A step of training that is done as a whole, or not at all."""

import contextlib

from .. import functions as vg
from ..random import _shared

__all__ = ["atomic"]


@contextlib.contextmanager
def atomic(net):
    """Within it, what fails before the optimiser's step leaves everything as it was before.

    net: a Module, whose buffers are kept, such as the statistics of BatchNorm, and its parameters
    looked at; anything else has neither. vg.random goes back, too, and weights and states have not
    been touched yet: the optimiser's step is all or nothing. Once it has changed the weights, the
    step is done, whatever fails behind it. Costs a copy of the buffers; nothing is allocated on the
    way back, so that a step which ran out of memory can be done again with fewer samples.

    >>> net = vg.nn.BatchNorm1d(2)
    >>> try:
    ...     with vg.nn.atomic(net):
    ...         y = net(vg.asarray([[1.0, 2.0], [3.0, 4.0]]))
    ...         raise MemoryError
    ... except MemoryError:
    ...     print(net.running_mean.tolist())
    [0.0, 0.0]
    """
    with guarded(arrays_of(net, "parameters"), arrays_of(net, "buffers")):
        yield


def arrays_of(net, name):
    """Return a network's parameters or buffers, as a list; those of anything else are none."""
    return [*getattr(net, name)()] if hasattr(net, name) else []


@contextlib.contextmanager
def guarded(parameters, buffers):
    """The same of parameters, which are looked at, and buffers, which are kept."""
    versions = [p.backend.version(p.raw) for p in parameters]
    before = [vg.copy(x) for x in buffers]
    place = _shared().state
    try:
        yield
    except BaseException:
        if versions == [p.backend.version(p.raw) for p in parameters]:
            for buffer, values in zip(buffers, before, strict=True):
                buffer[...] = values
            _shared().state = place
        raise
