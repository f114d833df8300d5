"""Gamma numbers and what is made of them: by rejection, with the same bits on every device.

Which numbers are kept is decided by comparisons, and one that falls out otherwise would give quite
another number. So what they compare is computed with additions, multiplications, divisions and
square roots alone, which devices round alike: the logarithm here is a series, and normal numbers
are Marsaglia's, by the polar method. Rounds go on with the places that are still empty.
"""

import math

import numpy as np

from ..array import Array
from ..dtypes import float64, int64
from ..functions.arguments import from_host
from ..functions.choosing import where
from ..functions.creation import zeros
from ..functions.elementwise import (
    bitwise_and,
    bitwise_invert,
    exp,
    greater,
    greater_equal,
    less,
    maximum,
    sqrt,
)
from ..functions.gathering import put, take
from ..functions.indexing import get
from ..functions.layout import astype, broadcast_to, reshape
from ..functions.ranges import arange
from ..functions.reductions import max as largest
from ..functions.reductions import sum as total
from ..functions.special import frexp
from ..functions.values import item
from .arguments import common_shape, host_parameters, parameter, parse_float

_TERMS = 13  # of the logarithm's series: what follows is below float64's last place


def logarithm(x):
    """Return log x of float64 above 0, with the same bits on every device; within 2 ulp or so."""
    part, power = frexp(x)
    low = less(part, math.sqrt(0.5))
    part = where(low, part * 2.0, part)
    power = astype(power, float64) - astype(low, float64)
    s = (part - 1.0) / (part + 1.0)
    square = s * s
    series = square * 0.0 + 1.0 / (2 * _TERMS + 1)
    for k in range(_TERMS - 1, -1, -1):
        series = series * square + 1.0 / (2 * k + 1)
    return s * series * 2.0 + power * math.log(2)


class _Gammas:
    """What a Generator draws of gamma numbers."""

    def standard_gamma(self, shape, size=None, dtype=None, out=None, *, device=None):
        """Return gamma numbers of a shape and scale 1: the time until that many things happened.

        shape: a scalar or an array; where it is 0 the number is, and NaN where it is negative. By
        Marsaglia and Tsang's rejection, in rounds, after each of which the host waits. ValueError:
        a negative scalar, an `out` that does not fit. TypeError: not a float dtype.

        >>> x = vg.random.default_rng(7).standard_gamma(4.0, 1000)
        >>> 3.7 < x.mean().item() < 4.3
        True
        """
        if out is not None:
            if not isinstance(out, Array):
                raise TypeError(f"out is an Array, not {type(out).__name__}")
            out[...] = self.gamma(shape, 1.0, out.shape, dtype=out.dtype, device=out.device)
            return out
        return self.gamma(shape, 1.0, size, dtype=dtype, device=device)

    def gamma(self, shape, scale=1.0, size=None, *, dtype=None, device=None):
        """Return gamma numbers of a shape, times scale; see standard_gamma.

        shape, scale: scalars or arrays. ValueError: a negative scalar.

        >>> x = vg.random.default_rng(7).gamma(4.0, 2.0, 1000)
        >>> 7.4 < x.mean().item() < 8.6
        True
        """
        formula = lambda scale, g: exp(g) * scale  # noqa: E731
        values = {"shape": shape, "scale": scale}
        return self._of_gammas(formula, values, ["shape"], size, dtype, device)

    def chisquare(self, df, size=None, *, dtype=None, device=None):
        """Return sums of the squares of df normal numbers; df need be no integer.

        df: a scalar or an array. ValueError: not above 0.

        >>> x = vg.random.default_rng(7).chisquare(3.0, 1000)
        >>> 2.7 < x.mean().item() < 3.3
        True
        """
        formula = lambda g: exp(g) * 2.0  # noqa: E731
        return self._of_gammas(formula, {"df": df}, ["df"], size, dtype, device, halves=True)

    def standard_t(self, df, size=None, *, dtype=None, device=None):
        """Return numbers of Student's distribution of df degrees of freedom.

        df: a scalar or an array. ValueError: not above 0.

        >>> x = vg.random.default_rng(7).standard_t(5.0, 1000)
        >>> abs(x.mean().item()) < 0.2
        True
        """
        wide = parameter(df, self._resolved(device))

        def formula(g):
            z = self.standard_normal(g.shape, float64, device=g.device)
            half = astype(wide, float64) * 0.5 if isinstance(wide, Array) else wide * 0.5
            return z * sqrt(half / exp(g))

        return self._of_gammas(formula, {"df": df}, ["df"], size, dtype, device, halves=True)

    def f(self, dfnum, dfden, size=None, *, dtype=None, device=None):
        """Return quotients of two sums of squares of normal numbers, each by how many they are.

        dfnum, dfden: scalars or arrays. ValueError: not above 0.

        >>> x = vg.random.default_rng(7).f(5.0, 20.0, 1000)
        >>> 0.95 < x.mean().item() < 1.3
        True
        """
        device = self._resolved(device)
        up, down = parameter(dfnum, device), parameter(dfden, device)
        formula = lambda a, b: exp(a - b) * (down / up)  # noqa: E731
        values, names = {"dfnum": up, "dfden": down}, ["dfnum", "dfden"]
        return self._of_gammas(formula, values, names, size, dtype, device, halves=True)

    def beta(self, a, b, size=None, *, dtype=None, device=None):
        """Return numbers in [0, 1] of the density x^(a - 1) (1 - x)^(b - 1), up to a factor.

        a, b: scalars or arrays. ValueError: not above 0.

        >>> x = vg.random.default_rng(7).beta(2.0, 3.0, 1000)
        >>> 0.37 < x.mean().item() < 0.43
        True
        """
        formula = lambda a, b: 1.0 / (exp(b - a) + 1.0)  # noqa: E731
        return self._of_gammas(formula, {"a": a, "b": b}, ["a", "b"], size, dtype, device)

    def dirichlet(self, alpha, size=None, *, dtype=None, device=None):
        """Return vectors of k shares, which are not negative and sum up to 1: shape (*size, k).

        alpha: (k,), the larger the more. ValueError: not of one dimension, or not above 0.

        >>> x = vg.random.default_rng(7).dirichlet([1.0, 2.0, 3.0], 4)
        >>> x.shape, vg.allclose(x.sum(axis=1), 1)
        ((4, 3), True)
        """
        (alpha,) = host_parameters({"alpha": alpha})
        if alpha.ndim != 1 or not alpha.size or not (alpha > 0).all():
            raise ValueError(f"alpha is of one dimension and above 0, got {alpha}")
        dtype, device = parse_float(dtype), self._resolved(device)
        outer = common_shape([], () if size is None else size)
        values = from_host(alpha, device.backend)
        g = self._log_gamma(values, (*outer, alpha.size), device)
        shares = exp(g - largest(g, axis=-1, keepdims=True))
        return astype(shares / total(shares, axis=-1, keepdims=True), dtype, copy=False)

    def _of_gammas(self, formula, values, names, size, dtype, device, halves=False):
        """Return formula(*other parameters, *logarithms of gammas of the named ones)."""
        dtype, device = parse_float(dtype), self._resolved(device)
        values = {name: parameter(value, device) for name, value in values.items()}
        for name, value in values.items():
            least = name in ("shape", "scale")
            if not isinstance(value, Array) and not (value >= 0 if least else value > 0):
                text = "must not be negative" if least else "must be above 0"
                raise ValueError(f"{name} {text}, got {value}")
        shape = common_shape(values.values(), size)
        wide = {n: astype(x, float64) if isinstance(x, Array) else x for n, x in values.items()}
        others = [x for name, x in wide.items() if name not in names]
        factor = 0.5 if halves else 1.0
        logs = [self._log_gamma(wide[name] * factor, shape or (), device) for name in names]
        result = astype(formula(*others, *logs), dtype, copy=False)
        return item(result) if shape is None else result

    def _log_gamma(self, a, shape, device):
        """Return the logarithms of gamma numbers of shape parameters a, as float64."""
        count = math.prod(shape)
        if not isinstance(a, Array):
            a = from_host(np.asarray(a), device.backend)
        a = reshape(broadcast_to(a, shape), (count,))
        known = bitwise_and(greater_equal(a, 0.0), less(a, 1e300))  # others would be tried for ever
        a = where(known, a, 1.0)
        small = less(a, 1.0)
        d = where(small, a + 1.0, a) - 1.0 / 3.0
        logs = zeros(count, float64, device=device)
        empty = arange(count, dtype=int64, device=device)
        while empty.size:
            values, kept = self._try(take(d, empty), device)
            put(logs, get(empty, kept), get(values, kept))
            empty = get(empty, bitwise_invert(kept))
        # Of shapes below 1: times U ^ (1 / a), which leaves no bits of very small ones.
        e = self.standard_exponential(count, float64, device=device)
        logs = where(small, logs - e / maximum(a, 1e-300), logs)
        return reshape(where(known, logs, math.nan), shape)

    def _try(self, d, device):
        """Return the logarithms of one candidate for each d, and which of them are to be kept."""
        u, v, w = (self.random(d.size, float64, device=device) for _ in range(3))
        u, v = u * 2.0 - 1.0, v * 2.0 - 1.0
        square = u * u + v * v
        inside = bitwise_and(less(square, 1.0), greater(square, 0.0))
        square = where(inside, square, 0.5)
        x = u * sqrt(logarithm(square) * -2.0 / square)
        t = x / sqrt(d * 9.0) + 1.0
        t = t * t * t
        inside = bitwise_and(inside, greater(t, 0.0))
        t = where(inside, t, 1.0)
        log_t = logarithm(t)
        w = logarithm(1.0 - w)
        kept = bitwise_and(inside, less(w, x * x * 0.5 + d * (1.0 - t + log_t)))
        return log_t + logarithm(d), kept
