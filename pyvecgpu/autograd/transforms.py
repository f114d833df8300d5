"""Gradients of functions, as functions; and whether gradients are recorded."""

import functools

from .. import functions as vg
from ..array import Array, Tracked
from ..dtypes import complex_dtype, get_default_dtype, is_complex, is_float, promote, real_dtype
from ..functions.arguments import parse_int
from .arrays import grad as gradients
from .arrays import require
from .nested import leaves as all_of
from .nested import mapped
from .tape import Mode, alias, recording, state

__all__ = [
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "value_and_grad",
]

# Whether gradients are recorded -------------------------------------------------------------------


def no_grad(function=None, /):
    """Return a context, also a decorator, in which no gradients are recorded in this thread.

    >>> x = vg.asarray([2.0]).requires_grad_()
    >>> with vg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    return Mode(False) if function is None else Mode(False)(function)


def enable_grad(function=None, /):
    """Return a context, also a decorator, in which gradients are recorded, within no_grad too.

    >>> x = vg.asarray([2.0]).requires_grad_()
    >>> with vg.no_grad(), vg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """
    return Mode(True) if function is None else Mode(True)(function)


def is_grad_enabled():
    """Return whether gradients are recorded in this thread.

    >>> vg.is_grad_enabled()
    True
    >>> with vg.no_grad():
    ...     print(vg.is_grad_enabled())
    False
    """
    return bool(state.enabled)


# Gradients of functions ---------------------------------------------------------------------------


def value_and_grad(function, argnums=0, *, has_aux=False, create_graph=None):
    """Return a function that gives function(...) and its gradients by arguments.

    function: gives a single real number or, with has_aux, a pair of it and anything. argnums: the
    number of a positional argument, or several. Arguments are Arrays of floats or complex numbers,
    Python's floats and complex numbers, and dicts, lists and tuples of them; gradients come in the
    same containers, None for None. create_graph: gradients can be differentiated by tracked arrays
    that function knows; by arguments they always can. Python's numbers become Arrays of the
    precision and the device of those that are given beside them. TypeError: an argument that is
    none of these, argnums that are no integers, or a function that gives something else.
    ValueError: argnums names no argument.

    >>> loss = lambda w, x: ((x @ w - 1) ** 2).sum()
    >>> value, slope = vg.value_and_grad(loss)(vg.asarray([1.0, 2.0]), vg.eye(2))
    >>> value.item(), slope.tolist()
    (1.0, [0.0, 2.0])
    """

    several = hasattr(argnums, "__iter__")
    numbers = [parse_int(i, "grad: argnums") for i in (argnums if several else [argnums])]

    @functools.wraps(function)
    def call(*args, **options):
        args, leaves = [*args], []
        if any(not -len(args) <= i < len(args) for i in numbers):
            raise ValueError(
                f"grad: argnums is {argnums}, and {len(args)} positional arguments were given"
            )
        outer = [type(x) is Tracked for i in numbers for x in all_of(args[i])]
        again = any(outer) and state.enabled if create_graph is None else create_graph

        def prepared(x):
            if isinstance(x, (float, complex)):
                x = vg.asarray(x, **_beside(x, args, options))
            leaves.append(_prepared(x))
            return leaves[-1]

        def compute():
            for i in numbers:
                args[i] = mapped(prepared, args[i])
            return function(*args, **options)

        result = recording(True, compute)
        if has_aux and not (isinstance(result, (tuple, list)) and len(result) == 2):
            kind = type(result).__name__
            raise TypeError(
                f"grad: with has_aux the function gives a pair (value, aux), not {kind}"
            )
        value, aux = result if has_aux else (result, None)
        if not isinstance(value, Array) or value.size != 1:
            array = isinstance(value, Array)
            given = f"one of shape {value.shape}" if array else type(value).__name__
            raise TypeError(f"grad: the function gives an Array of a single number, not {given}")
        if is_complex(value.dtype):
            raise TypeError(f"grad: the function gives a real number, not {value.dtype}")
        if type(value) is Tracked:
            by = gradients([value], leaves, create_graph=again, allow_unused=True)
        else:
            by = [None] * len(leaves)
        found = iter(
            [vg.zeros_like(x) if g is None else g for g, x in zip(by, leaves, strict=False)]
        )
        by = tuple([mapped(lambda _: next(found), args[i]) for i in numbers])
        value = value if again else _detached(value)
        aux = aux if again else mapped(_detached, aux)
        return ((value, aux) if has_aux else value), (by if several else by[0])

    return call


def grad(function, argnums=0, *, has_aux=False, create_graph=None):
    """Return a function that gives the gradients of function(...); see value_and_grad.

    With has_aux it gives (gradients, what the function gave besides).

    >>> slope = vg.grad(lambda x: x**3)
    >>> slope(vg.asarray(2.0)).item()
    12.0
    >>> vg.grad(vg.grad(lambda x: x**3))(vg.asarray(2.0)).item()
    12.0
    """
    both = value_and_grad(function, argnums, has_aux=has_aux, create_graph=create_graph)

    @functools.wraps(function)
    def call(*args, **options):
        value, by = both(*args, **options)
        return (by, value[1]) if has_aux else by

    return call


def _beside(number, args, options):
    """Return the dtype and device for a Python number, as of the Arrays that it stands beside."""
    arrays = [x for x in all_of([args, options]) if isinstance(x, Array)]
    found = [real_dtype(x.dtype) for x in arrays if is_float(x.dtype) or is_complex(x.dtype)]
    dtype = functools.reduce(promote, found) if found else get_default_dtype()
    return {
        "dtype": complex_dtype(dtype) if isinstance(number, complex) else dtype,
        "device": arrays[0].device if arrays else None,
    }


def _prepared(x):
    """Return an Array for a function to be differentiated by."""
    if not isinstance(x, Array):
        kind = type(x).__name__
        raise TypeError(
            f"grad: arguments are Arrays of floats or complex numbers, not {kind}; see vg.asarray"
        )
    if type(x) is Tracked and state.enabled:
        return vg.reshape(x, x.shape)  # a node of its own, between this gradient and the outer one
    return require(alias(x), True)


def _detached(x):
    return alias(x) if type(x) is Tracked else x
