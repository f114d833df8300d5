"""A step of training that is done as a whole, or not at all."""

import contextlib

from ..autograd.transforms import no_grad
from ..functions.values import copied
from ..random import _shared
from .module import Module

__all__ = ["atomic"]


@contextlib.contextmanager
def atomic(net):
    """Within it, what fails before the optimiser's step leaves everything as it was before.

    net: a Module, whose buffers are kept, such as the statistics of BatchNorm, and its parameters
    looked at; anything else has neither. Buffers come back as the Arrays that they were, with their
    values, also where forward has put others in their place. vg.random goes back, too, and weights
    and states have not been touched yet: the optimiser's step is all or nothing. Once it has
    changed the weights, the step is done, whatever fails behind it. Costs a copy of the buffers;
    nothing is allocated on the way back, so that a step which ran out of memory can be done again
    with fewer samples.

    >>> net = vg.nn.BatchNorm1d(2)
    >>> try:
    ...     with vg.nn.atomic(net):
    ...         y = net(vg.asarray([[1.0, 2.0], [3.0, 4.0]]))
    ...         raise MemoryError
    ... except MemoryError:
    ...     print(net.running_mean.tolist())
    [0.0, 0.0]
    """
    with guarded(net, parameters_of(net)):
        yield


def parameters_of(net):
    """Return a network's parameters, as a list; those of anything else are none."""
    return [*net.parameters()] if hasattr(net, "parameters") else []


@contextlib.contextmanager
def guarded(net, parameters):
    """The same where the parameters, which are looked at, are known."""
    versions = [p.backend.version(p.raw) for p in parameters]
    modules = net.modules() if isinstance(net, Module) else ()
    buffers = [(module._buffers, module._buffers.copy()) for module in modules]
    arrays = {id(x): x for _, own in buffers for x in own.values() if x is not None}
    before = [(x, copied(x.detach())) for x in arrays.values()]
    place = _shared().state
    try:
        yield
    except BaseException:
        if versions == [p.backend.version(p.raw) for p in parameters]:
            for now, own in buffers:
                now.clear()
                now.update(own)
            with no_grad():
                for array, values in before:
                    array[...] = values
            _shared().state = place
        raise
