"""Rules of one's own, and functions that are computed again instead of being remembered."""

import functools

from .. import functions as vg
from ..array import Array, Tracked
from ..dtypes import is_complex, is_float
from ..functions import casting
from ..random import _shared as shared_generator
from .nested import leaves, mapped
from .tape import Like, Node, alias, described, recording, state, tracked

__all__ = ["checkpoint"]


class Joint(Node):
    """A node of several results, each of which has an Output for a node."""

    __slots__ = ("outputs",)

    def stand_for(self, result, operands):
        """Return the results of an operation; those of floats or complex stand at this node.

        operands: tracked Arrays, in whose memory results may be; None: none has to be looked for.
        """
        results = several(result)
        self.outputs = len(results)
        arrays = [alias(x) if isinstance(x, Array) else x for x in results]
        for i, x in enumerate(arrays):
            if isinstance(x, Array) and (is_float(x.dtype) or is_complex(x.dtype)):
                node = Output(self, i)
                if operands is not None:
                    node.share([other._node for other in operands if vg.may_share_memory(x, other)])
                    operands = [*operands, x]
                tracked(x, node)
        return tuple(arrays) if isinstance(result, (tuple, list)) else arrays[0]


def several(result):
    """Return what a function gave as a sequence."""
    return result if isinstance(result, (tuple, list)) else (result,)


class Output(Node):
    """One result of a Joint.

    bases: nodes of other Arrays in its memory, of which it is then a view for tape.check_stale.
    """

    __slots__ = ("bases",)

    def __init__(self, node, index):
        super().__init__(node.name, [node], index)
        self.bases = ()

    def share(self, bases):
        if bases:
            self.name, self.bases = "view", bases

    def parents(self):
        return self.operands or ()

    def pull(self, gradients, run):
        run.give(self.operands[0], gradients[0], False, self.saved)


class Context:
    """What Function.forward leaves for backward; attributes of any name may be added."""

    def __init__(self, name, needs_input_grad):
        self._name, self.needs_input_grad = name, needs_input_grad
        self._saved, self._results, self._node = (), [], None

    def save_for_backward(self, *arrays):
        """Keep Arrays (or None) for backward, which sees whether they were changed since."""
        self._saved = tuple([(x, None if x is None else x._version) for x in arrays])

    @property
    def saved_tensors(self):
        """The Arrays that were kept. RuntimeError: one was changed in place."""
        found = []
        for array, version in self._saved:
            if array is not None and array._version != version:
                raise RuntimeError(
                    f"{self._name}: an array that save_for_backward kept was changed in place; "
                    "change a copy, or compute a new array (x = x + 1 instead of x += 1)"
                )
            for i, result in enumerate(self._results if self._node else ()):
                if array is result:
                    array = tracked(alias(array), Output(self._node, i))
            found.append(array)
        return tuple(found)


class Function:
    """A function with a rule of its own: derive from it, and call apply.

    backward gets a gradient for each result and returns one, or None, for each argument. Made of
    functions of Arrays it can be differentiated itself.

    >>> class Cube(vg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return gradient * 3 * x**2
    >>> x = vg.asarray([2.0]).requires_grad_()
    >>> Cube.apply(x).sum().backward()
    >>> x.grad.tolist()
    [12.0]
    """

    _is_apart = False  # whether changes of what forward gives are known to be noticed

    @staticmethod
    def forward(ctx, *args, **options):
        """Return an Array or a tuple of them."""
        raise NotImplementedError("a Function has forward(ctx, ...)")

    @staticmethod
    def backward(ctx, *gradients):
        """Return the gradient of each argument without a name, in its shape; None for none."""
        raise NotImplementedError("a Function has backward(ctx, ...)")

    @classmethod
    def apply(cls, *args, **options):
        """Return forward(ctx, *args, **options), recorded with backward for a rule.

        TypeError: an argument with a name is tracked, for which backward gives no gradient.
        """
        needs = tuple([type(x) is Tracked for x in args])
        for name, value in options.items():
            if any(type(x) is Tracked for x in leaves(value)) and state.enabled:
                raise TypeError(
                    f"{cls.__name__}.apply: {name} requires gradients, which only arguments "
                    f"without a name get; give it without, or {name}.detach()"
                )
        ctx = Context(cls.__name__, needs)
        result = recording(False, lambda: cls.forward(ctx, *args, **options))
        if not (any(needs) and state.enabled):
            return result
        ctx._results = several(result)
        likes = [Like(x) if isinstance(x, Array) else None for x in ctx._results]
        operands = [(i, x._node, Like(x)) for i, x in enumerate(args) if type(x) is Tracked]
        node = Applied(ctx._name, operands, (cls.backward, ctx, likes))
        return node.stand_for(result, None if cls._is_apart else [args[i] for i, *_ in operands])


class Applied(Joint):
    """The node of a Function."""

    __slots__ = ()

    def pull(self, gradients, run):
        backward, ctx, likes = self.saved
        gradients = [
            vg.zeros(like.shape, dtype=like.dtype, device=like.device) if g is None and like else g
            for g, like in zip(gradients, likes, strict=True)
        ]
        ctx._node = self if run.differentiable else None
        try:
            results = several(backward(ctx, *gradients))
        finally:
            ctx._node = None
        if len(results) != len(ctx.needs_input_grad):
            raise RuntimeError(
                f"{self.name}.backward gave {len(results)} gradients for "
                f"{len(ctx.needs_input_grad)} arguments"
            )
        for i, node, like in self.operands:
            if results[i] is not None:
                self.check(results[i], i, like)
                run.give(node, self.fitted(results[i], None, like)[0])

    def check(self, result, number, like):
        """TypeError, ValueError: backward gave what is no gradient of an argument."""
        if not isinstance(result, Array):
            error, given = TypeError, type(result).__name__
        elif result.backend is like.backend and is_summed_to(result.shape, like.shape):
            return
        else:
            error, given = ValueError, described(result)
        raise error(
            f"{self.name}.backward gave {given} for the gradient of argument {number}, which is "
            f"{described(like)}"
        )


def is_summed_to(shape, wanted):
    """Whether an array of a shape is one of the wanted shape after it was broadcast."""
    extra = len(shape) - len(wanted)
    return extra >= 0 and all(m in (n, 1) for n, m in zip(shape[extra:], wanted, strict=True))


def checkpoint(function):
    """Return function, of which only the arguments are kept: the backward pass computes it again.

    It saves memory for the price of one more forward pass. The function gives an Array or dicts,
    lists and tuples of them, nested as they may be, and computes the same when it is called again;
    the process's own random numbers, of vg.random.rand and its kin, are then those of the first
    time. What else it gives is passed through; TypeError: an object that has Arrays for attributes.
    RuntimeError, of the backward pass: an argument was changed in place, by the function or since.
    Of a function that computes nothing of tracked Arrays the results are not tracked.

    >>> f = vg.checkpoint(lambda x: vg.exp(x) * x)
    >>> x = vg.asarray([0.0, 1.0]).requires_grad_()
    >>> f(x).sum().backward()
    >>> print(x.grad)
    [1.       5.436564]
    """

    return functools.wraps(function)(again(function, True))


def again(function, draws):
    """Return checkpoint(function). draws: whether it may use the process's own random numbers.

    One that does not leaves the generator alone on the way back, when others may draw of it.
    """

    def call(*args, **options):
        if type(state.enabled) is Watch or not state.enabled:
            return function(*args, **options)
        place, casts = shared_generator().state if draws else None, casting.current()
        arrays = [x for x in leaves([args, options]) if isinstance(x, Array)]
        given = [(x, x._version) for x in arrays]
        watch = Watch()
        result = recording(watch, lambda: function(*args, **options))
        results = leaves(result)
        if not (watch.asked or any(type(x) is Tracked for x in results)):
            return result
        kinds = [*map(kind_of, results)]
        node = Again("checkpoint", [], (function, args, options, given, place, casts, kinds))
        found = iter(node.stand_for(results, [x for x in arrays if type(x) is Tracked]))
        return mapped(lambda _: next(found), result)

    return call


class Watch:
    """What stands for False in state.enabled, and notes whether that was asked.

    It is asked where something would be recorded, which is of tracked Arrays alone.
    """

    __slots__ = ("asked",)

    def __init__(self):
        self.asked = False

    def __bool__(self):
        self.asked = True
        return False


def kind_of(x):
    """What a result of a checkpoint is the second time as well; see TypeError of checkpoint."""
    if isinstance(x, Array):
        return x.shape, x.dtype
    if any(isinstance(value, Array) for value in getattr(x, "__dict__", {}).values()):
        raise TypeError(
            f"checkpoint: the function gave a {type(x).__name__} with Arrays for attributes, which "
            "would have no gradients; it gives Arrays and dicts, lists and tuples of them"
        )
    return None


class Again(Joint):
    """The node of a checkpoint: in its place come the nodes of the function, called again."""

    __slots__ = ()
    is_open = True

    def pull(self, gradients, run):
        function, args, options, given, place, casts, kinds = self.saved
        if any(x._version != version for x, version in given):
            raise RuntimeError(
                "checkpoint: an argument was changed in place, by the function or since it was "
                "called; change a copy, or compute a new array (x = x + 1 instead of x += 1)"
            )
        call = lambda: recording(True, lambda: function(*args, **options))  # noqa: E731
        if casts is not None:
            call = functools.partial(casting.within, casts.again(), call)
        results = leaves(call() if place is None else at_place(place, call))
        if (found := [*map(kind_of, results)]) != kinds:
            raise RuntimeError(
                "checkpoint: the function gave other results when it was called again: "
                f"{summary(found)} instead of {summary(kinds)}"
            )
        for array, g in zip(results, gradients, strict=True):
            if g is not None and type(array) is Tracked:
                run.give(array._node, g)


def at_place(place, call):
    """Return call() with the process's own random numbers from a place on, as if nobody had."""
    generator = shared_generator()
    now, generator.state = generator.state, place
    try:
        return call()
    finally:
        generator.state = now


def summary(kinds):
    """What kind_of found, in words."""
    found = [f"{kind[1]} of shape {kind[0]}" if kind else "no Array" for kind in kinds]
    return f"{len(kinds)} ({'; '.join(found)})"
