"""Steps of many parameters by one call of the library, in place.

An optimiser's update that the library knows too is marked by a Joint. All that a step needs is
made before the first call: states that begin, and copies of those that somebody else may hold. So
a step that runs out of memory has changed nothing.

In a recording a step is not done, and the host counts it when it is launched: a Recorded has the
numbers of that step, such as a rate that a schedule has changed, which the kernel reads anew.

Most steps are like the one before, but for gradients and numbers: a Repeated does these sooner.
"""

from numbers import Real

from .. import functions as vg
from ..array import wrap
from ..dispatch import WAYS, apply
from ..dtypes import float64
from ..native.abi import Update

_PLACES = {place.name.removeprefix("UPDATE_").lower(): int(place) for place in Update}


class Joint:
    """What an update is to the library: an algorithm of native/abi.py, its states and numbers.

    names(group): the names of its states; numbers(group, step): {a name of Update: its number}.
    counts: the state has the number of steps.
    """

    def __init__(self, algorithm, names, numbers, counts=True):
        self.algorithm, self.names, self.numbers, self.counts = algorithm, names, numbers, counts

    def __call__(self, update):
        """Mark an update; one that replaces it in a class of somebody's own has no mark."""
        update.joint = self
        return update

    def next(self, state):
        """Return the number of the step that follows a state."""
        return state.get("step", 0) + 1 if self.counts else 1

    def values(self, group, step, first):
        """Return all numbers of pvg_optimize in their order; None: one is not of the host."""
        given = {"rate": group["lr"], "weight_decay": group["weight_decay"]}
        given |= {"maximize": group["maximize"], "first": first}
        given |= self.numbers(group, step)
        values = [0.0] * Update.UPDATE_COUNT
        for name, value in given.items():
            if type(value) not in (float, int, bool) and not isinstance(value, Real):
                return None
            values[_PLACES[name]] = float(value)
        return tuple(values)


class Launches:
    """Parameters by what one call can change together."""

    def __init__(self, joint):
        self.joint, self.together, self.known = joint, {}, {}  # known: by the step of a group

    def take(self, p, g, states, group):
        """Make ready the step of a parameter; False if the library cannot do it in place."""
        joint, backend, state = self.joint, p.backend, states.of(p)
        names, step = joint.names(group), joint.next(state)
        owned = states.owns(p)
        if not (owned or backend.plain(p.raw)):  # it was, at the step before
            return False
        owned = owned and all(name in state for name in names)  # else options have changed
        first = bool(names) and state.get(names[0]) is None
        key = id(group), step, first, backend
        if key not in self.known:
            self.known[key] = self.members(key, group)
        arrays = _own_arrays(p, state, names, owned)
        if arrays is None or self.known[key] is None:
            return False
        if not owned:
            begun = {"step": step} if joint.counts else {}
            state = begun | state | dict(zip(names, arrays, strict=True))
        self.known[key].append((p, g, arrays, state))
        return True

    def members(self, key, group):
        """Return the list of what a call does at the same time, None if it cannot.

        Groups with the same numbers go together, but in a recording, where they may change apart.
        """
        _, step, first, backend = key
        numbers = self.joint.values(group, step, first)
        if numbers is None:
            return None
        recorded = backend.recording() and group
        together = backend, numbers, step, recorded and key
        return self.together.setdefault(together, (recorded, []))[1]

    def go(self, optimiser):
        """Do the steps. Those of a call that fails are not done, those before it are."""
        joint = self.joint
        for (backend, numbers, step, _), (recorded, members) in self.together.items():
            params, gradients, arrays, states = zip(*members, strict=True)
            targets = [*params, *[array for row in zip(*arrays, strict=True) for array in row]]
            renewed, recording = None, backend.recording()
            if recording:
                again = Recorded(joint, recorded, optimiser, params, arrays)
                renewed = recording.renewed(float64, Update.UPDATE_COUNT, again.numbers, again.done)
                renewed = wrap(backend, renewed)
            apply(backend, "optimize", joint.algorithm, targets, gradients, numbers, renewed)
            for p, state in zip(params, states, strict=True):
                if recording:
                    optimiser.state.lend(p)
                    continue
                if joint.counts:
                    state["step"] = step
                optimiser.state.keep(p, state)
            groups = optimiser.param_groups
            if not recording and len(groups) == 1 and len(params) == len(groups[0]["params"]):
                names = joint.names(groups[0])
                repeated = Repeated(backend, params, targets, states, step, names)
                optimiser.state.repeated = repeated


class Repeated:
    """The step of a single group of parameters by one call, as the step before has done it."""

    def __init__(self, backend, params, targets, states, step, names):
        self.backend, self.targets, self.states, self.step = backend, targets, states, step
        self.names = names  # of the states
        self.known = [(p, p._node, p.raw) for p in params]
        self.options, self.numbers = (), None  # of the last step

    def go(self, optimiser, joint):
        """Do the step; False if it is not the same as before, and nothing is done."""
        backend, groups = self.backend, optimiser.param_groups
        group = groups[0]
        params, known = group["params"], self.known
        if len(groups) != 1 or len(params) != len(known) or backend.recording():
            return False
        gradients = []
        for p, (same, node, data) in zip(params, known, strict=True):
            if p is not same or p._node is not node or p.raw is not data or node.grad is None:
                return False
            gradients.append(node.grad)
        step, options = self.step + 1 if joint.counts else 1, [*group.values()]
        # The same objects: equal ones need not be comparable, and arrays would be read.
        is_changed = [*map(id, options)] != [*map(id, self.options)]
        if is_changed:
            optimiser.check(group)
            if joint.names(group) != self.names:
                return False
        if joint.counts or is_changed:
            self.options, self.numbers = options, joint.values(group, step, False)
        if self.numbers is None:
            return False
        operands = (joint.algorithm, self.targets, gradients, self.numbers, None)
        WAYS["optimize"](backend, *operands)
        self.step = step
        if joint.counts:
            for state in self.states:
                state["step"] = step
        return True


class Recorded:
    """A step of some parameters of a group, all of them at the same step, in a recording."""

    def __init__(self, joint, group, optimiser, params, arrays):
        self.joint, self.group, self.optimiser = joint, group, optimiser
        self.params, self.arrays = params, arrays

    def numbers(self):
        """Return the numbers of the next step. RuntimeError: it cannot be this one."""
        joint, group, states = self.joint, self.group, self.optimiser.state
        self.optimiser._check_changes()
        found = [states.of(p) for p in self.params]
        steps = {joint.next(state) for state in found}
        names = joint.names(group)
        for state, arrays in zip(found, self.arrays, strict=True):
            if [id(state.get(name)) for name in names] != [id(array) for array in arrays]:
                raise RuntimeError(
                    "a recorded step of an optimiser has other states than the optimiser has by "
                    "now, such as those of load_state_dict; record it again"
                )
        if len(steps) != 1:
            raise RuntimeError(
                "a recorded step of an optimiser is of parameters that have done as many steps, "
                f"and now the next one is {sorted(steps)}; record it again"
            )
        values = joint.values(group, *steps, False)
        if values is None:
            raise RuntimeError("a recorded step of an optimiser takes rates that are numbers")
        return values

    def done(self):
        """Count a launch."""
        if self.joint.counts:
            for p in self.params:
                self.optimiser.state.of(p)["step"] += 1


def _own_arrays(p, state, names, owned):
    """Return a parameter's states to change in place, or None if they do not fit it."""
    if owned:
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
