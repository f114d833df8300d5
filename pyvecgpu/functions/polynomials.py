"""Polynomials as NumPy's first functions for them have them: coefficients, the highest power first.

Coefficients are arrays or lists of one dimension. What is no Array goes to the device of the one
that is; without any the result is NumPy's. Zeros in front stay, which NumPy's functions take away.
"""

import numpy as np

from ..array import Array
from ..dtypes import inexact
from . import short_polynomials
from .arguments import parse_int, promote_all
from .creation import zeros
from .differences import convolve
from .elementwise import add, divide, multiply, subtract
from .gathering import _given
from .indexing import get
from .joining import concat
from .layout import as_array, astype, ravel, reshape
from .ranges import arange
from .short_calls import short
from .values import readable

__all__ = ["polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval"]


def _together(name, *values):
    """Return values as Arrays of one device, and what makes of an Array what the caller gets."""
    first = next((x for x in values if isinstance(x, Array)), None)
    first, give = as_array(name, np.asarray(values[0]) if first is None else first)
    return [_given(name, x, first) for x in values], give


def _coefficients(name, *values):
    arrays, give = _together(name, *values)
    for array in arrays:
        if array.ndim > 1:
            raise ValueError(f"{name}: coefficients are of one dimension, not {array.ndim}")
    return [ravel(array) for array in arrays], give


@short(short_polynomials.polyval)
def polyval(p, x, /):
    """Return the value of a polynomial at each x, by Horner's rule.

    ValueError: the coefficients are not of one dimension.

    >>> vg.polyval(vg.asarray([3, 0, 1]), vg.asarray([5, 10])).tolist()
    [76, 301]
    """
    (p, x), give = _together("polyval", p, x)
    if p.ndim != 1:
        raise ValueError(f"polyval: coefficients are of one dimension, not {p.ndim}")
    dtype = promote_all((p, x))
    p, x = astype(p, dtype, copy=False), astype(x, dtype, copy=False)
    result = zeros(x.shape, dtype, device=x.device)
    for i in range(p.size):
        result = add(multiply(result, x), get(p, i))
    return give(result)


@short(short_polynomials.polyadd)
def polyadd(a1, a2, /):
    """Return the sum of two polynomials. ValueError: more than one dimension.

    >>> vg.polyadd(vg.asarray([1, 2]), vg.asarray([9, 5, 4])).tolist()
    [9, 6, 6]
    """
    return _sum("polyadd", add, a1, a2)


@short(short_polynomials.polysub)
def polysub(a1, a2, /):
    """Return the difference of two polynomials. ValueError: more than one dimension.

    >>> vg.polysub(vg.asarray([1, 2]), vg.asarray([9, 5, 4])).tolist()
    [-9, -4, -2]
    """
    return _sum("polysub", subtract, a1, a2)


def _sum(name, function, a1, a2):
    (a, b), give = _coefficients(name, a1, a2)
    count = max(a.size, b.size)
    padded = [
        concat([zeros(count - x.size, x.dtype, device=x.device), x]) if x.size < count else x
        for x in (a, b)
    ]
    return give(function(*padded))


def polymul(a1, a2, /):
    """Return the product of two polynomials. ValueError: more than one dimension, no elements.

    >>> vg.polymul(vg.asarray([1, 2]), vg.asarray([1, -2])).tolist()
    [1, 0, -4]
    """
    (a, b), give = _coefficients("polymul", a1, a2)
    return give(convolve(a, b))


def polydiv(u, v, /):
    """Return (quotient, remainder) of two polynomials, as float, by long division.

    Coefficients of the remainder that are next to 0 are taken away in front, for which the host
    looks at them. ValueError: more than one dimension, no elements.

    >>> quotient, rest = vg.polydiv(vg.asarray([3.0, 5.0, 2.0]), vg.asarray([2.0, 1.0]))
    >>> quotient.tolist(), rest.tolist()
    ([1.5, 1.75], [0.25])
    """
    (u, v), give = _coefficients("polydiv", u, v)
    if not u.size or not v.size:
        raise ValueError("polydiv: a polynomial without coefficients")
    dtype = inexact(promote_all((u, v)))
    u, v = astype(u, dtype, copy=False), astype(v, dtype, copy=False)
    first, others, n = get(v, slice(0, 1)), get(v, slice(1, None)), v.size - 1
    quotient, rest = [], u
    while rest.size > n:
        factor = divide(get(rest, slice(0, 1)), first)
        quotient.append(factor)
        middle = subtract(get(rest, slice(1, n + 1)), multiply(others, factor))
        rest = concat([middle, get(rest, slice(n + 1, None))])
    nothing = zeros(1, dtype, device=u.device)
    rest = rest if rest.size else nothing
    values = np.abs(readable(rest)[:-1])
    rest = get(rest, slice(int(np.argmax([*~(values <= 1e-8), True])), None))
    return give(concat(quotient) if quotient else nothing), give(rest)


@short(short_polynomials.polyder)
def polyder(p, /, m=1):
    """Return the m-th derivative of a polynomial. ValueError: a negative m.

    >>> vg.polyder(vg.asarray([1, 2, 3])).tolist()
    [2, 2]
    """
    (p,), give = _coefficients("polyder", p)
    for _ in range(min(_order("polyder", m), p.size)):  # after that there is nothing left
        powers = arange(p.size - 1, 0, -1, device=p.device)
        p = multiply(get(p, slice(0, p.size - 1)), astype(powers, p.dtype))
    return give(p)


@short(short_polynomials.polyint)
def polyint(p, /, m=1, k=0.0):
    """Return the m-th integral of a polynomial, as float.

    k: the constants, of which the first integral's comes first: one number, or m of them.
    ValueError: a negative m, not as many constants.

    >>> vg.polyint(vg.asarray([2, 2])).tolist()
    [1.0, 2.0, 0.0]
    """
    (p,), give = _coefficients("polyint", p)
    m = _order("polyint", m)
    constants = [k] * m if np.ndim(k) == 0 else list(k)
    if len(constants) != m:
        raise ValueError(f"polyint: {len(constants)} constants for {m} integrals")
    p = astype(p, inexact(p.dtype), copy=False)
    for constant in constants:
        powers = arange(p.size, 0, -1, dtype=p.dtype, device=p.device)
        last = astype(reshape(_given("polyint", constant, p), (1,)), p.dtype)
        p = concat([divide(p, powers), last])
    return give(p)


def _order(name, m):
    m = parse_int(m, "m")
    if m < 0:
        raise ValueError(f"{name}: m is 0 or more, not {m}")
    return m
