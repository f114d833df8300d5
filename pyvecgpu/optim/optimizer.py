"""What all optimisers have: groups of parameters, their state, and a step that happens as a whole.

An optimiser's own part is a function that computes new values and a new state of one parameter.
All of them are computed before the first is stored, so that a step that runs out of memory leaves
weights and state as they were. What the library can do for many parameters at once, launches.py
leaves to it: then parameters and states are changed in place. States that somebody else may hold,
as state_dict has given them, are copied before: they stay what they were.
"""

import functools
import inspect
import sys
from numbers import Real

from .. import functions as vg
from ..array import Array
from ..autograd.arrays import gradient_of
from ..autograd.tape import Leaf
from ..autograd.transforms import enable_grad, no_grad
from ..dtypes import is_float
from ..functions.arguments import is_host
from .launches import Launches

_WAYS = {"foreach": None, "fused": None, "capturable": False, "differentiable": False}
# Keys of groups that come and go: names, schedules', and what torch's say of how steps are done.
_PASSING = {"initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum", "param_names"}
_PASSING |= {*_WAYS, "decoupled_weight_decay"}

# What the options of groups are, in words and of a number: no NaN, nor what a float cannot hold.
_PLAIN = (float, int, bool)  # most numbers, told so in a tenth of the time
_MOST = sys.float_info.max
_NOT_NEGATIVE = "is a finite number of 0 or more", lambda x: 0 <= x <= _MOST
_TRUTH = "is True or False", lambda x: x in (0, 1)
_OPTIONS = {
    **dict.fromkeys(("lr", "eps", "weight_decay", "momentum", "alpha"), _NOT_NEGATIVE),
    "dampening": ("is a finite number", lambda x: -_MOST <= x <= _MOST),
    "betas": ("are numbers from 0 to below 1", lambda x: 0 <= x < 1),
    **dict.fromkeys(("nesterov", "amsgrad", "centered", "maximize"), _TRUTH),
}


class States:
    """A dict by array: what an optimiser keeps for each parameter, which has no hash.

    repeated: the step that all of them can do at once (launches.py); None once one was given out.
    """

    def __init__(self, states=()):
        self.repeated = None
        self._of = {id(p): (p, state) for p, state in states}
        self._owned = set()  # numbers of those whose arrays nobody else has
        self._lent = set()  # of those that a recording changes: others get copies

    def __reduce__(self):
        return States, ([*self._of.values()],)  # copies have arrays of their own

    def __getitem__(self, p):
        self.repeated = None
        if id(p) in self._lent:
            return {k: vg.copy(x) if isinstance(x, Array) else x for k, x in self.of(p).items()}
        self._owned.discard(id(p))
        return self.of(p)

    def __setitem__(self, p, state):
        self.repeated = None
        self._owned.discard(id(p))
        self._lent.discard(id(p))
        self._of[id(p)] = (p, state)

    def __contains__(self, p):
        return id(p) in self._of

    def __len__(self):
        return len(self._of)

    def of(self, p):
        """Return the state of p to look at, which is not given out."""
        return self._of[id(p)][1] if id(p) in self._of else {}

    def keep(self, p, state):
        """Set a state whose arrays nobody else has."""
        self.repeated = None
        self._of[id(p)] = (p, state)
        self._owned.add(id(p))

    def lend(self, p):
        """Say that a recording changes a state whose arrays nobody else has."""
        self.repeated = None
        self._lent.add(id(p))

    def owns(self, p):
        return id(p) in self._owned


def takes_ways(init):
    """Let the __init__ of an optimiser take torch's keywords for how steps are done.

    foreach, fused and capturable make no difference: a step is one launch anyway, and can be
    recorded. differentiable=True is a NotImplementedError.
    """

    @functools.wraps(init)
    def taking(self, *args, **options):
        given = {key: options.pop(key) for key in _WAYS if key in options}
        _check_ways(given)
        init(self, *args, **options)

    own = inspect.signature(init)
    more = [
        inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in _WAYS.items()
    ]
    taking.__signature__ = own.replace(parameters=[*own.parameters.values(), *more])
    return taking


def _check_ways(options):
    if options.get("differentiable"):
        raise NotImplementedError(
            "differentiable=True: a step changes parameters in place, and gradients do not see it"
        )


class Optimizer:
    """Parameters in groups, each a dict of "params" and options, and a state for each parameter.

    params: Arrays or, as net.named_parameters() gives them, pairs (name, Array), whose names are
    kept as "param_names"; or dicts with such "params" and options of their own. defaults: the other
    options. A class of one's own defines update(p, g, state, group), which returns a parameter's
    new values and its new state and changes nothing. TypeError: no Arrays of floats, or an
    option that is no number. ValueError: none, one twice, one that is no leaf, some with names and
    some without, or an option that makes no sense.

    >>> class Signs(vg.optim.Optimizer):
    ...     def update(self, p, g, state, group):
    ...         return p - group["lr"] * vg.sign(g), state
    >>> w = vg.asarray([1.0]).requires_grad_()
    >>> w.grad = vg.asarray([300.0])
    >>> Signs([w], {"lr": 0.25}).step()
    >>> w.tolist()
    [0.75]
    """

    _checked = ()  # the options of groups that _check_changes has seen

    def __init__(self, params, defaults):
        if isinstance(params, (Array, dict)):
            kind = type(params).__name__
            raise TypeError(f"an optimiser takes a list of Arrays or of dicts, not one {kind}")
        groups = list(params)
        if not groups:
            raise ValueError("an optimiser needs parameters, and the list is empty")
        self.defaults, self.param_groups, self.state = defaults, [], States()
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            options = [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
            lines += [f"Parameter Group {number}", *options]
        return "\n".join([*lines, ")"])

    def add_param_group(self, param_group):
        """Add a dict of "params" and options; see the class for errors.

        >>> v, w = vg.zeros(1).requires_grad_(), vg.zeros(1).requires_grad_()
        >>> optimiser = vg.optim.SGD([v], lr=0.1)
        >>> optimiser.add_param_group({"params": [w], "lr": 0.5})
        >>> [group["lr"] for group in optimiser.param_groups]
        [0.1, 0.5]
        """
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError('a group of parameters is a dict with "params"')
        params = param_group["params"]
        params = [params] if isinstance(params, Array) else list(params)
        names = [p[0] for p in params if _has_name(p)]
        params = [p[1] if _has_name(p) else p for p in params]
        others = ["param_names" in group for group in self.param_groups[:1]]
        if len(names) not in (0, len(params)) or others == [not names]:
            raise ValueError("either all parameters of an optimiser have names, or none has")
        known = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            if not isinstance(p, Array) or not is_float(p.dtype):
                kind = p.dtype if isinstance(p, Array) else type(p).__name__
                raise TypeError(f"an optimiser takes Arrays of floats, not {kind}")
            if not p.is_leaf:
                raise ValueError("an optimiser changes leaves, not what was computed of them")
            if id(p) in known:
                raise ValueError("a parameter is there twice")
            known.add(id(p))
        group = {**self.defaults, **param_group, "params": params}
        if names:
            group["param_names"] = names
        self.check(group)
        self.param_groups.append(group)

    def check(self, group):
        """TypeError: an option of a group is no number. ValueError: one makes no sense.

        It is asked when a group is added or loaded, and by steps when an option has changed.
        """
        _check_ways(group)
        for key, value in group.items():
            if key not in _OPTIONS:
                continue
            fits = _OPTIONS[key][1]
            for one in value if key == "betas" and hasattr(value, "__len__") else (value,):
                if type(one) not in _PLAIN or not fits(one):
                    _check_option(key, one)

    def _check_changes(self):
        """Check all groups if one of their options is not what it was the last time."""
        now = [value for group in self.param_groups for value in group.values()]
        if [*map(id, now)] != [*map(id, self._checked)]:  # see launches.py's Repeated
            for group in self.param_groups:
                self.check(group)
            self._checked = now

    def update(self, p, g, state, group):
        """Return a parameter's new values and new state; p, g: Arrays that are not tracked."""
        raise NotImplementedError(f"{type(self).__name__} has no update(p, g, state, group)")

    def step(self, closure=None):
        """Change all parameters that have a gradient; return what closure() gave, if there is one.

        closure: computes the loss and calls backward. A step that runs out of memory has changed
        nothing; if a launch is refused, the parameters before it are done, with their states.
        TypeError, ValueError: a group has an option by now that is no number or makes no sense;
        nothing is changed.

        >>> w = vg.asarray([1.0]).requires_grad_()
        >>> optimiser = vg.optim.SGD([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimiser.step()
        >>> w.tolist()
        [0.5]
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        joint = getattr(self.update, "joint", None)
        if joint and self.state.repeated and self.state.repeated.go(self, joint):
            return loss
        with no_grad():
            self._check_changes()
            launches, changes = Launches(joint), []
            for group in self.param_groups:
                for p in group["params"]:
                    g = gradient_of(p)
                    if g is None:
                        continue
                    _check_home(p, self.state.of(p))
                    if joint and launches.take(p, g, self.state, group):
                        continue
                    g = -g.detach() if group.get("maximize") else g.detach()
                    changes.append((p, *self.update(p.detach(), g, self.state[p], group)))
            for p, _, state in changes:
                if state and p.backend.recording():
                    raise ValueError(
                        "recording a graph: an update whose states are new arrays cannot be part "
                        "of it; take the step after each launch"
                    )
            launches.go(self)
            for p, values, _ in changes:
                p.detach()[...] = values
        for p, _, state in changes:
            self.state[p] = state
        return loss

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or make them zeros.

        >>> w = vg.asarray([1.0]).requires_grad_()
        >>> w.grad = vg.ones(1)
        >>> vg.optim.SGD([w]).zero_grad()
        >>> print(w.grad)
        None
        """
        for group in self.param_groups:
            for p in group["params"]:
                node = getattr(p, "_node", None)
                if type(node) is Leaf and node.grad is not None:
                    node.grad = None if set_to_none else vg.zeros_like(node.grad)

    # Saving ---------------------------------------------------------------------------------------

    def state_dict(self):
        """Return {"state": {number: state}, "param_groups": [...]} with numbers for parameters.

        >>> optimiser = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=0.25)
        >>> optimiser.state_dict()["param_groups"][0]["lr"]
        0.25
        """
        numbers, groups = {}, []
        for group in self.param_groups:
            for p in group["params"]:
                numbers[id(p)] = len(numbers)
            options = {key: value for key, value in group.items() if key != "params"}
            groups.append({**options, "params": [numbers[id(p)] for p in group["params"]]})
        params = [p for group in self.param_groups for p in group["params"] if p in self.state]
        return {
            "state": {numbers[id(p)]: dict(self.state[p]) for p in params},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict):
        """Take on what state_dict gave, of Arrays or NumPy arrays; with an error none of it.

        ValueError: other groups, other numbers of parameters, other options or other shapes, or a
        state of which an array is missing.

        >>> a = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=0.25)
        >>> b = vg.optim.SGD([vg.zeros(1).requires_grad_()], lr=0.5)
        >>> b.load_state_dict(a.state_dict())
        >>> b.param_groups[0]["lr"]
        0.25
        """
        try:
            states, saved = dict(state_dict["state"]), list(state_dict["param_groups"])
            counts = [len(group["params"]) for group in saved]
        except (KeyError, TypeError) as error:
            raise ValueError(f"not the state of an optimiser: {error!r}") from None
        own = [len(group["params"]) for group in self.param_groups]
        if counts != own:
            raise ValueError(f"the state is of groups of {counts} parameters, and here are {own}")
        for number, (group, options) in enumerate(zip(self.param_groups, saved, strict=True)):
            self._compare(number, group, options)
        params = [p for group in self.param_groups for p in group["params"]]
        numbers = [number for group in saved for number in group["params"]]
        unknown = sorted(set(states) - set(numbers), key=str)
        if unknown:
            raise ValueError(f"states of parameters that no group has: {unknown}")
        found = [
            (p, _loaded(states[number], p, number))
            for number, p in zip(numbers, params, strict=True)
            if number in states
        ]
        groups = [
            {**group, **options, "params": group["params"]}
            for group, options in zip(self.param_groups, saved, strict=True)
        ]
        for group in groups:
            self.check(group)
            if "betas" in group:
                group["betas"] = tuple(group["betas"])
        self._check_states(groups, found)
        # In place, as schedules and programs may hold the groups themselves.
        for group, new in zip(self.param_groups, groups, strict=True):
            group.update(new)
        self.state = States(found)

    def _compare(self, number, group, options):
        """ValueError: a state's options of a group are not those of an optimiser like this one."""
        missing = [key for key in self.defaults if key not in options]
        unexpected = [key for key in options if key not in group and key not in _PASSING]
        complaints = [
            f"{what}: {', '.join(map(repr, keys))}"
            for what, keys in (("unexpected", unexpected), ("missing", missing))
            if keys
        ]
        if complaints:
            raise ValueError(
                f"the state is not of {type(self).__name__}: its group {number} has other options; "
                + "; ".join(complaints)
            )

    def _check_states(self, groups, found):
        """ValueError: an array is missing of a state, which the library would begin anew."""
        joint = getattr(type(self).update, "joint", None)
        if joint is None or not joint.counts:  # SGD's may begin at any step
            return
        names = {id(p): joint.names(group) for group in groups for p in group["params"]}
        for p, state in found:
            missing = [n for n in names[id(p)] if not isinstance(state.get(n), Array)]
            if state and missing:
                raise ValueError(
                    f"the state of a parameter of shape {p.shape} lacks arrays: "
                    + ", ".join(missing)
                )


def _check_option(key, value):
    wanted, fits = _OPTIONS[key]
    if isinstance(value, Array) or is_host(value):
        if isinstance(value, Array) and value.backend.recording():
            return  # where nothing can be read
        value = value.item() if value.size == 1 else value
    if not isinstance(value, Real):
        raise TypeError(f"{key} {wanted}, not {value!r}")
    if not fits(value):
        raise ValueError(f"{key} {wanted}, not {value!r}")


def _has_name(p):
    return isinstance(p, tuple) and len(p) == 2


def _check_home(p, state):
    """ValueError: a state is not where its parameter is."""
    for name, value in state.items():
        if isinstance(value, Array) and value.backend is not p.backend:
            raise ValueError(
                f"the optimiser has {name} on {value.device} for a parameter on {p.device}: move a "
                "network before its optimiser is made, or load the optimiser's state again"
            )


def _loaded(state, p, number):
    """Return one parameter's state with arrays of its own on the parameter's device."""
    found = {}
    for key, value in state.items():
        if key == "step":
            value = int(value.item() if hasattr(value, "item") else value)
        elif isinstance(value, Array) or is_host(value):
            if tuple(value.shape) != p.shape:
                raise ValueError(
                    f"{key} of parameter {number} has shape {tuple(value.shape)}, and the "
                    f"parameter {p.shape}"
                )
            value = vg.astype(vg.asarray(value, device=p.device, copy=True), p.dtype, copy=False)
        found[key] = value
    return found
