"""The tape: a graph of Nodes, one for each operation on a tracked Array, and the way back.

Every node has a number, larger than those of the nodes that it was computed from. The backward pass
keeps a heap of nodes that a gradient has arrived at and goes on with the largest: all that was
computed from that one has passed its gradient on by then. So nothing recurses, and what a node has
saved goes as soon as it is passed.
"""

import functools
import heapq
import itertools
import threading

from .. import functions as vg
from ..array import Array, Tracked, new
from ..dispatch import tape, without_rule
from ..functions.casting import uncast
from ..functions.layers import FROM_RESULT
from ..functions.values import copied
from ..operations import OPERATIONS
from . import complexes, rules
from .rules import EXACT, JOINT


class _State(threading.local):
    """Of each thread: whether gradients are recorded; versions before a call that writes."""

    enabled = True
    versions = None


state = _State()
_numbers = itertools.count(1)
# Operations that give views; "view" is a Function's or checkpoint's result in another's memory.
_VIEWS = {"slice", "diagonal", "permute", "reshape", "broadcast_to", "contiguous", "part", "view"}
# Rules that end in a view of the gradient, so that what they give is not their own memory.
_SHARING = (_VIEWS - {"slice", "diagonal"}) | {"sum", "mean", "concat", "embed"}
_TABLES = {"unary": rules.UNARY, "reduce": rules.REDUCE, "scan": rules.SCAN}
_TABLES["softmax"] = rules.SOFTMAX
_FIXED = ("bool", "index", "none")
_NUMBERS = {"a", "b", "value", "x", "y"}  # what rules keep that may be complex: results, operands


class Like:
    """Shape, dtype and device of an Array."""

    __slots__ = ("backend", "dtype", "shape")

    def __init__(self, array):
        self.backend = array.backend
        self.dtype, self.shape, _ = array._layout

    @property
    def device(self):
        return self.backend.device


class Leaf:
    """Where gradients end: what an Array that requires them has for a node."""

    __slots__ = ("grad", "hooks", "is_parameter", "number")
    outputs = 1
    is_open = False
    name = "leaf"

    def parents(self):
        return ()

    def __init__(self):
        self.grad, self.hooks, self.number = None, None, next(_numbers)
        self.is_parameter = False  # whether a vg.nn.Module takes it for one of its own


class Node:
    """One operation: its operands' nodes, its rules, and what these need.

    operands: tuples of an operand's name, its node, its Like (None where gradients are exact), a
    rule and the names that it needs; with `joint`, a rule for all and its names, None for these.
    saved: {name in the rules: value}. versions: what gives those of the Arrays among the values,
    their data, and what it gave.
    """

    __slots__ = (
        *("exact", "hooks", "joint", "name", "number", "operands", "saved", "stale", "versions"),
    )
    outputs = 1  # gradients that arrive here
    is_open = False  # whether it passes gradients to others than its parents

    def __init__(self, name, operands, saved, versions=None, joint=None, exact=False):
        self.name, self.operands, self.saved = name, operands, saved
        self.versions, self.joint, self.exact = versions, joint, exact
        self.hooks, self.stale, self.number = None, False, next(_numbers)

    def parents(self):
        return [one[1] for one in self.operands or ()]

    def pull(self, gradients, run):
        """Pass the gradient on to the operands' nodes by run.give."""
        (g,) = gradients
        version, arrays, before = self.versions
        if [*map(version, arrays)] != before:
            self.refuse()
        operands, values, differentiable = self.operands, self.saved.copy(), run.differentiable
        exact, joint = self.exact and not differentiable, None
        values["differentiable"] = differentiable
        if differentiable and "y" in values:
            values["y"] = tracked(alias(values["y"]), self)
        if run.useless:
            operands = [one for one in operands if one[1] not in run.useless]
        if self.joint is not None and operands:
            values["wanted"] = [one[0] for one in operands]
            rule, needed = self.joint
            joint = rule(g, *[values[need] for need in needed])
        for name, node, like, rule, needed in operands:
            if not exact:
                values["like"] = like = like or Like(values[name])
            one = rule(g, *[values[need] for need in needed]) if joint is None else joint[name]
            if exact:
                run.give(node, one, True)
            else:
                run.give(node, *self.fitted(one, g, like))

    def fitted(self, result, g, like):
        """Return a gradient in the operand's shape and dtype, and whether it has its own memory."""
        own = result is not g and self.name not in _SHARING
        if result.shape != like.shape:
            result, own = summed_to(result, like.shape), True
        if result.dtype != like.dtype:
            if result.dtype.kind == "c" != like.dtype.kind:
                result = vg.real(result)  # of a real operand, which has no other direction
            result, own = vg.astype(result, like.dtype), True
        return result, own

    def refuse(self):
        """RuntimeError: an Array that was saved has another version."""
        raise RuntimeError(
            f"{self.name}: an array that its gradient needs was changed in place after it was "
            "computed; change a copy, or compute a new array (x = x + 1 instead of x += 1)"
        )


def needs(rule):
    """The names of a rule's parameters but for g."""
    return rule.__code__.co_varnames[1 : rule.__code__.co_argcount]


def alias(array):
    """Return another Array of the same values, which is not tracked."""
    result = new()
    result.backend, result.raw = array.backend, array.raw
    return result


def tracked(array, node):
    """Make an Array one that stands at a node; return it."""
    array._node = node
    array.__class__ = Tracked
    return array


def summed_to(x, shape):
    """Return x summed over the axes along which `shape` was broadcast to its shape."""
    extra = x.ndim - len(shape)
    axes = [*range(extra)]
    axes += [i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1]
    return vg.reshape(vg.sum(x, axis=tuple(axes)), shape)


# Recording ----------------------------------------------------------------------------------------


def record(method, code, side, named, result):
    """Note what was computed of a tracked Array; see dispatch._Tape."""
    if method == "cast" and named["dtype"].kind in "biu":
        return
    plan = plan_of(method, code, side)
    if plan is None:
        return
    if not plan.known:
        raise without_rule(plan.name)
    if plan.of_complex is not None and result._layout[0].kind == "c":
        plan = plan.of_complex
    exact = plan.alike is not None and are_alike(plan.alike, named)
    operands, needed = [], plan.needed
    for name, rule, names, wanted in plan.rules or [(name, None, None, None) for name in named]:
        array = named[name]
        if type(array) is Tracked:
            node = array._node
            if node.name in _VIEWS:
                check_stale(node, plan.name)
            operands.append((name, node, None if exact else Like(array), rule, names))
            if wanted:
                needed = needed | wanted if needed else wanted
    if not operands:
        return
    saved, arrays, data = {}, [], []
    for need, place in needed.items():
        value = saved[need] = alias(result) if place == "y" else named[place]
        if isinstance(value, Array):
            arrays.append(value)
            data.append(value.raw)
    version = result.backend.version
    if type(result) is Tracked:  # in place: the operands' versions are those before the call
        result._node.stale, before = plan.name, state.versions
        numbers = [before[id(x)] if id(x) in before else version(x.raw) for x in arrays]
    else:
        numbers = [*map(version, data)]
    versions = (version, data, numbers)
    result._node = Node(plan.name, operands, saved, versions, plan.joint, exact)
    result.__class__ = Tracked


class Plan:
    """What to record of an operation: the name for messages and rules.

    known: whether there are rules. rules: for each operand its parameter, its rule, the names that
    the rule needs, and of those {the name: the parameter} of what is to be kept; joint: one rule
    for all operands and the names that it needs, with `needed` for those to be kept, and `rules`
    for the operands alone, or None, which are all Arrays of the call then. of_complex: the Plan
    for complex results; None: this one.
    """

    __slots__ = ("alike", "joint", "known", "name", "needed", "of_complex", "rules")

    def __init__(self, name, rules, renamed):
        self.name, self.known, self.alike = name, rules is not None, EXACT.get(name)
        self.joint, self.needed, self.rules, self.of_complex = None, {}, None, None
        if isinstance(rules, dict):
            self.rules = tuple(
                [
                    (renamed.get(operand, operand), rule, needs(rule), wanted(rule, renamed))
                    for operand, rule in rules.items()
                ]
            )
        elif rules is not None:
            self.joint, self.needed = (rules, needs(rules)), wanted(rules, renamed)
            if JOINT[rules]:
                self.rules = tuple([(operand, None, None, None) for operand in JOINT[rules]])


def are_alike(names, named):
    """Whether operands agree in their dtype, so that gradients need no fitting; rules.EXACT."""
    first = None
    for name in names:
        array = named[name]
        if array is not None:
            dtype = array.dtype
            if first is None:
                first = dtype
            elif dtype is not first and dtype != first:
                return False
    return True


def wanted(rule, renamed):
    """Return {what a rule names that has to be kept: the parameter that it is}."""
    names = [need for need in needs(rule) if need not in ("like", "differentiable", "wanted")]
    return {need: renamed.get(need, need) for need in names}


@functools.cache
def plan_of(method, code, side):
    """Return the Plan of an operation; None if its result has no gradient."""
    row = OPERATIONS.get(code)
    if method in rules.WHOLE_NUMBERS or (row and row.result in _FIXED):
        return None
    name = row.name if row else method
    found, renamed = rules_of(method, name, side)
    plan = Plan(name, found, renamed)
    if plan.rules and not plan.joint and not plan.alike and (not row or "c" in row.domain):
        if name in complexes.RULES:
            plan.of_complex = Plan(name, complexes.RULES[name], renamed)
        elif method not in complexes.AS_THEY_ARE and any(map(keeps_numbers, plan.rules)):
            other = plan.of_complex = Plan(name, found, renamed)
            other.rules = tuple(
                [(one[0], complexes.of_conjugates(one[1]), *one[2:]) for one in plan.rules]
            )
    return plan


def keeps_numbers(rule):
    """Whether one of a Plan's rules keeps what may be complex."""
    return any(kept in _NUMBERS for kept in rule[3].values())


def rules_of(method, name, side):
    """Return {an operand's name: its rule}, or one rule of all, and {a rule's name: a parameter}.

    None for the rules: there are none.
    """
    if method == "dense":  # with the result where that does for what is before the activation
        return rules.dense, {"preactivation": "y"} if side in FROM_RESULT[1:] else {}
    if method in _TABLES:
        rule = _TABLES[method].get(name)
        return rule and {"x": rule}, {"x": "a"}
    if method in ("binary", "scalar"):
        sides = {0: {"a": "value", "b": "a"}, 1: {"b": "value"}}
        pair = rules.BINARY.get(name)
        return pair and dict(zip("ab", pair, strict=True)), sides.get(side, {})
    rule = rules.METHODS.get(method)
    if rule is None or isinstance(rule, dict) or rule in JOINT:
        return rule, {}
    return {"x": rule}, {} if method in rules.WHOLE else {"x": "a"}


def check_stale(node, name):
    """RuntimeError: a view of what was since changed in place is used."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.name in _VIEWS and node.operands:
            for base in [node.operands[0][1]] if type(node) is Node else node.bases:
                if type(base) is not Leaf and base.stale:
                    raise RuntimeError(
                        f"{name}: the array is a view of one that {base.stale} has changed in "
                        "place since; take the view again"
                    )
                waiting.append(base)


def permit(method, target, named):
    """RuntimeError: a call writes to an Array in a way that gradients would not know of."""
    if not state.enabled:
        return
    name = OPERATIONS[named["code"]].name if "code" in named else method
    if type(target) is Tracked and type(target._node) is Leaf:
        raise RuntimeError(
            f"{name} would change an array that requires gradients in place; do it under "
            "vg.no_grad(), or compute a new array"
        )
    operands = [x for key, x in named.items() if key != "out" and isinstance(x, Array)]
    in_place = "out" in named and any(operand is target for operand in operands)
    if type(target) is Tracked and in_place and target._node.name not in _VIEWS:
        state.versions = {id(operand): operand._version for operand in operands}
        return
    raise RuntimeError(
        f"{name} would write to memory in a way that gradients cannot follow; compute a new array "
        "(where, concat, stack, x = x + y), or write under vg.no_grad()"
    )


class Mode:
    """A context, and a decorator, in which gradients are recorded or not."""

    def __init__(self, enabled):
        self.enabled, self.before = enabled, []

    def __enter__(self):
        self.before.append(state.enabled)
        state.enabled = self.enabled

    def __exit__(self, *_):
        state.enabled = self.before.pop()

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **options):
            with Mode(self.enabled):
                return function(*args, **options)

        return call


def recording(enabled, compute):
    """Return compute() with gradients recorded, or not."""
    before = state.enabled
    try:
        state.enabled = enabled
        return compute()
    finally:
        state.enabled = before


tape.record, tape.permit, tape.state = record, permit, state
tape.paused, tape.enabled = functools.partial(recording, False), lambda: bool(state.enabled)

# The way back -------------------------------------------------------------------------------------


class Run:
    """One backward pass: gradients that have arrived at nodes, and nodes by their numbers.

    found: what has arrived at leaves, and in the end at wanted nodes.
    """

    def __init__(self, retain, differentiable, wanted):
        self.retain, self.differentiable, self.wanted = retain, differentiable, wanted
        self.pending, self.heap, self.found, self.useless = {}, [], {}, ()

    def prune(self, roots):
        """Find the nodes from which no wanted one is reached."""
        seen, waiting = set(), [*roots]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += node.parents()
        useful = set(self.wanted)
        for node in sorted(seen, key=lambda node: node.number):
            if node.is_open or any(parent in useful for parent in node.parents()):
                useful.add(node)
        self.useless = seen - useful

    def give(self, node, g, own=False, index=0):
        """Add a gradient to what has arrived at a node. own: its memory is nobody else's."""
        if self.useless and node in self.useless:
            return
        if type(node) is Leaf:  # which passes nothing on
            place, index = self.found, node
            old = place.get(node)
        else:
            place = self.pending.get(node)
            if place is None:
                place = self.pending[node] = [None] * node.outputs
                heapq.heappush(self.heap, (-node.number, node))
            old = place[index]
        place[index] = (g, own) if old is None else self.sum_of(old, g)

    def sum_of(self, old, g):
        """Return what has arrived and one gradient more, and that it has its own memory."""
        before, own = old
        return vg.add(before, g, out=before if own and not self.differentiable else None), True

    def go(self):
        heap, pending, found = self.heap, self.pending, self.found
        while heap:
            node = heapq.heappop(heap)[1]
            slots = pending.pop(node)
            if node.hooks:
                slots[0] = self.hooked(node, *slots[0])
            if node in self.wanted:
                found[node] = slots[0]
            if node.operands is None:
                raise RuntimeError(
                    f"backward came to {node.name} a second time, and what its gradient needs is "
                    "released; call backward(retain_graph=True) the first time"
                )
            node.pull([slot and slot[0] for slot in slots], self)
            if not self.retain:
                node.operands = node.saved = node.versions = None
        for leaf in [node for node in found if node.hooks and type(node) is Leaf]:
            found[leaf] = self.hooked(leaf, *found[leaf])

    def hooked(self, node, g, own):
        """Return what a node's hooks make of its gradient, and whether it has its own memory."""
        for hook in [*node.hooks.values()]:
            result = hook(g)
            g, own = (g if result is None else checked(hook, result, g)), False
        return g, own


def checked(hook, result, g):
    """Return what a hook gave for a gradient, if it can stand for it; see Array.register_hook."""
    given, error = type(result).__name__, TypeError
    if isinstance(result, Array):
        if result.backend is g.backend and result._layout[:2] == g._layout[:2]:
            return result
        given, error = described(result), ValueError if result.dtype == g.dtype else TypeError
    name = getattr(hook, "__qualname__", type(hook).__qualname__)
    raise error(f"the hook {name} gave {given}, not {described(g)} as its gradient is, or None")


def described(like):
    return f"{like.dtype} of shape {like.shape} on {like.device}"


def run(roots, retain, differentiable, wanted=None):
    """Go back from roots, pairs of an Array and its gradient.

    Gradients of leaves are added to them at the end, all or none; or, with `wanted`, a set of
    nodes, those that arrive there are returned: {node: gradient}.
    """
    one, before = Run(retain, differentiable, wanted or ()), state.enabled
    state.enabled = differentiable
    try:
        if wanted is not None:
            one.prune([array._node for array, _ in roots])
        for array, g in roots:
            one.give(array._node, g)
        uncast(one.go)
        if wanted is not None:
            return {node: g for node, (g, _) in one.found.items() if node in wanted}
        totals = [
            g if own and leaf.grad is None else total_of(leaf.grad, g, own)
            for leaf, (g, own) in one.found.items()
        ]
    finally:
        state.enabled = before
    for leaf, total in zip(one.found, totals, strict=True):
        leaf.grad = total
    return None


def total_of(old, g, own):
    """Return the gradient of a leaf: what it had and g, in memory that nothing else shares."""
    if old is not None:
        return old + g
    return g if own or state.enabled else copied(g)
