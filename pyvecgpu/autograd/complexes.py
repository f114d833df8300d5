"""The rules of complex numbers.

The gradient of a real number L by z = x + iy is dL/dx + i dL/dy, as torch has it. Of the function
y = f(z) with a derivative it is that of y times conj(f'(z)). Nearly all of these have real
coefficients, so that conj(f'(z)) is f'(conj(z)): the rule of real numbers does if it is given the
conjugates of what it has kept. The tables here are of what is left: functions that have no complex
derivative (conj, abs), and those whose slope's branch the conjugate of a number on its cut misses.
"""

import cmath

from .. import functions as vg
from ..array import Array

# Methods whose rules for real numbers take complex values as they are.
AS_THEY_ARE = {"cholesky", "determinant"}


def conjugate(value):
    """The conjugate of an Array or a Python number; what is neither as it is."""
    if isinstance(value, complex):
        return value.conjugate()
    return vg.conj(value) if isinstance(value, Array) and value.dtype.kind == "c" else value


def adjoint(x):
    """The matrices turned and, if they are complex, conjugated."""
    return conjugate(vg.matrix_transpose(x))


def hermitian(x):
    """The half of x and its adjoint."""
    return vg.multiply(x + adjoint(x), 0.5)


def of_conjugates(rule):
    """Return a rule of real numbers as one of complex ones."""

    def conjugated(g, *values):
        return rule(g, *map(conjugate, values))

    return conjugated


def sign(g, x, y):
    """Of x / |x|: what of g is at a right angle to y turns it, by the less the larger |x| is."""
    length = vg.abs(x)
    empty = length == 0.0
    across = g - y * vg.real(vg.conj(y) * g)
    return vg.where(empty, 0.0, across / vg.where(empty, 1.0, length))


def power_slope(a, b):
    """The derivative of a ** b by a; 0 where b is 0, even at a = 0."""
    if isinstance(b, (int, float, complex)):
        return b * a ** (b - 1) if b else vg.zeros_like(a)
    return vg.where(b == 0, 0.0, b * a ** (b - 1.0))


def power_log(a, y):
    """The derivative of y = a ** b by b; 0 where a is 0."""
    if isinstance(a, (int, float, complex)):
        return y * (cmath.log(a) if a else 0.0)
    a = vg.astype(a, y.dtype, copy=False)  # a negative one has a complex logarithm
    return vg.where(a == 0, 0.0, y * vg.log(vg.where(a == 0, 1.0, a)))


def one_more(x):
    """X + 1, of which an imaginary -0, the side of a cut that x is on, would become 0."""
    return x - -1.0


def arc_slope(x):
    """Of asin; not of 1 - x, for the same reason."""
    return 1.0 / (vg.sqrt(-(x - 1.0)) * vg.sqrt(one_more(x)))


# {an operation: {its operand: a rule}}, which gets values as they are; as in rules.py.
RULES = {
    "conj": {"x": lambda g: vg.conj(g)},
    "sign": {"x": sign},
    "asin": {"x": lambda g, x: g * vg.conj(arc_slope(x))},
    "acos": {"x": lambda g, x: -g * vg.conj(arc_slope(x))},
    "acosh": {"x": lambda g, x: g / vg.conj(vg.sqrt(x - 1.0) * vg.sqrt(one_more(x)))},
    "asinh": {"x": lambda g, x: g / vg.conj(vg.sqrt(one_more(x * x)))},
    "pow": {
        "a": lambda g, a, b: g * vg.conj(power_slope(a, b)),
        "b": lambda g, a, y: g * vg.conj(power_log(a, y)),
    },
}
