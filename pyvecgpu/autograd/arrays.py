"""What Array can do about gradients; methods.py binds it."""

from .. import functions as vg
from ..array import Array, Tracked
from ..dtypes import is_complex, is_float
from ..functions.arguments import strong
from .rules import LAST
from .tape import Leaf, Node, alias, check_stale, described, run, tracked


def require(array, requires_grad):
    """Make an Array a leaf that requires gradients, or that does not; see Array.requires_grad_."""
    if requires_grad and not (is_float(array.dtype) or is_complex(array.dtype)):
        raise TypeError(
            f"only arrays of floats or complex numbers can require gradients, not of {array.dtype}"
        )
    if type(array) is Tracked:
        if not requires_grad and type(array._node) is not Leaf:
            raise RuntimeError("what was computed of tracked arrays is; use x.detach()")
        array.__class__ = Tracked if requires_grad else Array
    elif requires_grad:
        tracked(array, getattr(array, "_node", None) or Leaf())
    return array


def gradient_of(array):
    """Return what backward has added up for a leaf; None before."""
    node = getattr(array, "_node", None)
    return node.grad if type(node) is Leaf else None


def set_gradient(array, value):
    """Set it; see Array.grad."""
    if value is not None:
        if not isinstance(value, Array):
            raise TypeError(f"a gradient is an Array or None, not {type(value).__name__}")
        if value.backend is not array.backend:
            raise ValueError(f"a gradient on {value.device} for an array on {array.device}")
        if (value.shape, value.dtype) != (array.shape, array.dtype):
            raise ValueError(
                f"a gradient of shape {value.shape} and {value.dtype} for an array of "
                f"{array.shape} and {array.dtype}"
            )
    node = getattr(array, "_node", None)
    if node is None and value is not None:
        node = array._node = Leaf()
    if type(node) is Leaf:
        node.grad = value
    elif value is not None:
        raise RuntimeError("only leaves have a .grad; see Array.register_hook for other arrays")


def detach(array):
    """Return an Array of the same memory that is not tracked."""
    return alias(array)


def put(array, values):
    """Write the values of an Array like it to its memory; see Array.data."""
    if not isinstance(values, Array):
        kind = type(values).__name__
        raise TypeError(f".data of {described(array)} takes an Array, not {kind}; see vg.asarray")
    if values.backend is not array.backend or values._layout[:2] != array._layout[:2]:
        error = ValueError if values.dtype == array.dtype else TypeError
        raise error(f".data of {described(array)} takes an Array like it, not {described(values)}")
    if values.raw is not array.raw:  # `x.data -= y` gives back what it has changed
        alias(array)[...] = alias(values)


def is_leaf(array):
    """Return whether an Array was not computed of tracked ones."""
    return type(array) is not Tracked or type(array._node) is Leaf


def backward(array, gradient, retain_graph, create_graph):
    """Add the gradients of an Array to the leaves it was computed of; see Array.backward."""
    if gradient is None and not create_graph and _begins(array):
        root = (array, None)
    else:
        (root,) = _roots("backward", [array], [gradient])
    run([root], create_graph if retain_graph is None else retain_graph, create_graph)


def _begins(array):
    """Whether an Array is one number, at a node that needs no gradient of it; see rules.LAST."""
    if type(array) is not Tracked or array.shape != ():
        return False
    node = array._node
    return type(node) is Node and node.name in LAST and not node.hooks


class Handle:
    """What register_hook returns; remove() takes the hook away."""

    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        self.hooks.pop(self, None)


def register_hook(array, hook):
    """Call hook(gradient) when the gradient of an Array is complete; see Array.register_hook."""
    if type(array) is not Tracked:
        raise RuntimeError("register_hook: the array does not require gradients")
    if not callable(hook):
        raise TypeError(f"register_hook: a hook is a function, not {type(hook).__name__}")
    node = array._node
    if node.hooks is None:
        node.hooks = {}
    handle = Handle(node.hooks)
    node.hooks[handle] = hook
    return handle


# Gradients as values ------------------------------------------------------------------------------


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    allow_unused=False,
):
    """Return the gradients of outputs by inputs, a tuple; the .grad of leaves stays as it is.

    outputs, inputs: an Array or a sequence of them; grad_outputs: those of the outputs, None for
    1 of a single element. create_graph: the gradients can be differentiated. retain_graph: the
    graph can be used again; by default as create_graph. RuntimeError: an output or input is not
    tracked, or an input was not used, for which allow_unused gives None.

    >>> x = vg.asarray([2.0]).requires_grad_()
    >>> (slope,) = vg.autograd.grad((x**3).sum(), [x])
    >>> slope.tolist(), x.grad
    ([12.0], None)
    """
    outputs, inputs = _sequence(outputs), _sequence(inputs)
    given = [None] * len(outputs) if grad_outputs is None else _sequence(grad_outputs)
    for x in inputs:
        if type(x) is not Tracked:
            raise RuntimeError("grad: an input does not require gradients; see requires_grad_()")
    nodes = [x._node for x in inputs]
    retain = create_graph if retain_graph is None else retain_graph
    found = run(_roots("grad", outputs, given), retain, create_graph, set(nodes))
    result = tuple([found.get(node) for node in nodes])
    if not allow_unused and any(g is None for g in result):
        number = [g is None for g in result].index(True)
        raise RuntimeError(f"grad: input {number} was not used; allow_unused=True gives None")
    return result


def _sequence(x):
    return [x] if isinstance(x, Array) or x is None else list(x)


def _roots(name, outputs, given):
    """Return pairs of an output and its gradient."""
    if len(outputs) != len(given):
        raise ValueError(f"{name}: {len(given)} gradients for {len(outputs)} outputs")
    roots = []
    for array, g in zip(outputs, given, strict=True):
        if type(array) is not Tracked:
            raise RuntimeError(
                f"{name}: the array was computed of none that requires gradients, or under "
                "vg.no_grad()"
            )
        check_stale(array._node, name)
        if g is None:
            if array.size != 1:
                raise RuntimeError(
                    f"{name} of an array of shape {array.shape} needs its gradient; without one "
                    "it starts from a single number, such as a mean"
                )
            if is_complex(array.dtype):
                raise RuntimeError(
                    f"{name} of an array of {array.dtype} needs its gradient; without one it "
                    "starts from a real number, such as the square of a magnitude"
                )
            g = strong(1.0, array.backend, array.dtype)
            g = g if array.ndim == 0 else vg.reshape(g, array.shape)
        elif not isinstance(g, Array) or g.shape != array.shape:
            raise ValueError(f"{name}: the gradient is an Array of shape {array.shape}")
        else:
            g = vg.astype(g, array.dtype, copy=False)
        roots.append((array, g))
    return roots
