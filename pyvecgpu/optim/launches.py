"""Steps of many parameters by one call of the library, in place.

An optimiser's update that the library knows too is marked by a Joint. All that a step needs is
made before the first call: states that begin, copies of those that somebody else may hold, and
gradients in C order. So a step that runs out of memory has changed nothing.
"""

from numbers import Real

from .. import functions as vg
from ..dispatch import apply
from ..native.abi import Update


class Joint:
    """What an update is to the library: an algorithm of native/abi.py, its states and numbers.

    names(group): the names of its states; numbers(group): {a name of Update: its number}.
    counts: the state has the number of steps.
    """

    def __init__(self, algorithm, names, numbers, counts=True):
        self.algorithm, self.names, self.numbers, self.counts = algorithm, names, numbers, counts

    def __call__(self, update):
        """Mark an update; one that replaces it in a class of somebody's own has no mark."""
        update.joint = self
        return update

    def values(self, group, step, first):
        """Return all numbers of pvg_optimize in their order; None: one is not of the host."""
        given = {"rate": group["lr"], "weight_decay": group["weight_decay"]}
        given |= {"maximize": group["maximize"], "step": step, "first": first}
        given |= self.numbers(group)
        if not all(isinstance(value, Real) for value in given.values()):
            return None
        values = [0.0] * Update.UPDATE_COUNT
        for name, value in given.items():
            values[Update[f"UPDATE_{name.upper()}"]] = float(value)
        return tuple(values)


class Launches:
    """Parameters by what one call can change together."""

    def __init__(self, joint):
        self.joint, self.together, self.known = joint, {}, {}

    def take(self, p, g, states, group):
        """Make ready the step of a parameter; False if the library cannot do it in place."""
        joint, backend, state = self.joint, p.backend, states.of(p)
        if not backend.plain(p.data):
            return False
        names = joint.names(group)
        step = state.get("step", 0) + 1 if joint.counts else 1
        first = bool(names) and state.get(names[0]) is None
        key = id(group), step, first
        if key not in self.known:
            self.known[key] = joint.values(group, step, first)
        arrays = _own_arrays(p, state, names, states.owns(p))
        if arrays is None or self.known[key] is None:
            return False
        if not backend.plain(g.data):
            g = vg.contiguous(g.detach())
        new = {**state, **({"step": step} if joint.counts else {})}
        new |= zip(names, arrays, strict=True)
        members = self.together.setdefault((backend, self.known[key]), [])
        members.append((p, g, arrays, new))
        return True

    def go(self, states):
        """Do the steps. Those of a call that fails are not done, those before it are."""
        for (backend, numbers), members in self.together.items():
            params, gradients, arrays, new = zip(*members, strict=True)
            targets = [*params, *[array for row in zip(*arrays, strict=True) for array in row]]
            apply(backend, "optimize", self.joint.algorithm, targets, gradients, numbers)
            for p, state in zip(params, new, strict=True):
                states.keep(p, state)


def _own_arrays(p, state, names, owned):
    """Return a parameter's states to change in place, or None if they do not fit it."""
    if owned and all(name in state for name in names):
        return [state[name] for name in names]
    arrays = []
    for name in names:
        value = state.get(name)
        if value is None:
            arrays.append(vg.zeros_like(p))
        elif value.dtype != p.dtype or value.shape != p.shape or value.backend is not p.backend:
            return None
        else:
            arrays.append(vg.copy(value))
    return arrays
