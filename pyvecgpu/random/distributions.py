"""Distributions of floats: numbers of the stream as they are, scaled, and put into formulas."""

import math

from ..array import Array
from ..dtypes import float64
from ..functions.choosing import where
from ..functions.elementwise import (
    add,
    equal,
    exp,
    expm1,
    less,
    less_equal,
    log,
    multiply,
    negative,
    sqrt,
)
from ..functions.layout import astype, broadcast_shapes
from ..functions.mathematics import pow, tan
from ..functions.values import item
from ..native.abi import Distribution
from .arguments import check_scale, common_shape, parameter, parse_float


class _Distributions:
    """What a Generator draws of floats."""

    def random(self, size=None, dtype=None, out=None, *, device=None):
        """Return numbers in [0, 1), all multiples of 2^-n alike.

        n: 24 in float32, 53 in float64, 11 in float16, 8 in bfloat16. TypeError: not a float dtype.

        >>> x = vg.random.default_rng(7).random((2, 3))
        >>> x.shape, ((x >= 0) & (x < 1)).all().item()
        ((2, 3), True)
        """
        return self._floats(Distribution.RANDOM_UNIFORM, size, dtype, out, device)

    def standard_normal(self, size=None, dtype=None, out=None, *, device=None):
        """Return normal numbers of mean 0 and variance 1. TypeError: not a float dtype.

        By Box and Muller's method; in float32 none is beyond 6.8, in float64 none beyond 9.5.

        >>> vg.random.default_rng(7).standard_normal((2, 3)).shape
        (2, 3)
        """
        return self._floats(Distribution.RANDOM_NORMAL, size, dtype, out, device)

    def standard_exponential(self, size=None, dtype=None, method="zig", out=None, *, device=None):
        """Return exponentially distributed numbers of mean 1. TypeError: not a float dtype.

        method: "zig" or "inv", as NumPy has them; here both are minus the logarithm of a uniform
        number. ValueError: another method.

        >>> x = vg.random.default_rng(7).standard_exponential((2, 3))
        >>> x.shape, (x > 0).all().item()
        ((2, 3), True)
        """
        if method not in ("zig", "inv"):
            raise ValueError(f"the method is 'zig' or 'inv', not {method!r}")
        return self._floats(Distribution.RANDOM_EXPONENTIAL, size, dtype, out, device)

    def uniform(self, low=0.0, high=1.0, size=None, *, dtype=None, device=None):
        """Return numbers in [low, high); rounding may give `high` itself.

        low, high: scalars or arrays, of which size None gives the common shape.
        OverflowError: high - low is not finite.

        >>> x = vg.random.default_rng(7).uniform(-1, 1, 1000)
        >>> (x.min() >= -1).item(), (x.max() < 1).item()
        (True, True)
        """
        low, high = (parameter(x, self._resolved(device)) for x in (low, high))
        width = high - low
        if not isinstance(width, Array) and not math.isfinite(width):
            raise OverflowError(f"the range from {low} to {high} is not finite")
        return self._scaled(self.random, low, width, size, dtype, device)

    def normal(self, loc=0.0, scale=1.0, size=None, *, dtype=None, device=None):
        """Return normal numbers of mean loc and standard deviation scale, scalars or arrays.

        size: None is the arrays' common shape. ValueError: a scalar scale is negative.

        >>> x = vg.random.default_rng(7).normal(10.0, 0.1, 1000)
        >>> round(x.mean().item())
        10
        """
        loc, scale = (parameter(x, self._resolved(device)) for x in (loc, scale))
        check_scale(scale)
        return self._scaled(self.standard_normal, loc, scale, size, dtype, device)

    def exponential(self, scale=1.0, size=None, *, dtype=None, device=None):
        """Return exponentially distributed numbers of mean scale, a scalar or an array.

        size: None is the array's shape. ValueError: a scalar scale is negative.

        >>> x = vg.random.default_rng(7).exponential(2.0, 1000)
        >>> (x >= 0).all().item()
        True
        """
        scale = parameter(scale, self._resolved(device))
        check_scale(scale)
        return self._scaled(self.standard_exponential, 0.0, scale, size, dtype, device)

    def _scaled(self, draw, loc, scale, size, dtype, device):
        """Return draw(...) * scale + loc in the dtype, in the shape of loc and scale or `size`."""
        shapes = [x.shape for x in (loc, scale) if isinstance(x, Array)]
        single = size is None and not shapes
        shape = () if single else broadcast_shapes(*shapes) if size is None else size
        result = draw(shape, dtype, device=device)
        for function, value, neutral in ((multiply, scale, 1.0), (add, loc, 0.0)):
            if isinstance(value, Array) or value != neutral:
                function(result, value, out=result)
        return item(result) if single else result

    # By formula -----------------------------------------------------------------------------------

    def lognormal(self, mean=0.0, sigma=1.0, size=None, *, dtype=None, device=None):
        """Return numbers whose logarithms are normal, of that mean and standard deviation.

        mean, sigma: scalars or arrays, of which size None gives the common shape. ValueError: a
        negative sigma.

        >>> x = vg.random.default_rng(7).lognormal(0.0, 0.5, 1000)
        >>> (x > 0).all().item()
        True
        """
        formula = lambda mean, sigma, z: exp(mean + sigma * z)  # noqa: E731
        values = {"mean": mean, "sigma": sigma}
        return self._formed(formula, values, "n", size, dtype, device, not_negative=("sigma",))

    def laplace(self, loc=0.0, scale=1.0, size=None, *, dtype=None, device=None):
        """Return numbers of the double exponential distribution: exponential to either side of loc.

        loc, scale: scalars or arrays, as normal's. ValueError: a negative scale.

        >>> x = vg.random.default_rng(7).laplace(3.0, 1.0, 1000)
        >>> 2.8 < x.mean().item() < 3.2
        True
        """

        def formula(loc, scale, e, u):
            return loc + scale * where(less(u, 0.5), negative(e), e)

        return self._placed(formula, loc, scale, "eu", size, dtype, device)

    def gumbel(self, loc=0.0, scale=1.0, size=None, *, dtype=None, device=None):
        """Return numbers of Gumbel's distribution, that of the largest of many: loc - scale log E.

        loc, scale: scalars or arrays, as normal's. ValueError: a negative scale.

        >>> x = vg.random.default_rng(7).gumbel(size=1000)
        >>> 0.4 < x.mean().item() < 0.75
        True
        """
        formula = lambda loc, scale, e: loc - scale * log(e)  # noqa: E731
        return self._placed(formula, loc, scale, "e", size, dtype, device)

    def logistic(self, loc=0.0, scale=1.0, size=None, *, dtype=None, device=None):
        """Return numbers of the logistic distribution: loc + scale log(U / (1 - U)).

        loc, scale: scalars or arrays, as normal's. ValueError: a negative scale.

        >>> x = vg.random.default_rng(7).logistic(5.0, 1.0, 1000)
        >>> 4.7 < x.mean().item() < 5.3
        True
        """
        formula = lambda loc, scale, e: loc + scale * log(expm1(e))  # noqa: E731
        return self._placed(formula, loc, scale, "e", size, dtype, device)

    def standard_cauchy(self, size=None, *, dtype=None, device=None):
        """Return numbers of Cauchy's distribution, which has no mean: tan(pi (U - 1/2)).

        >>> x = vg.random.default_rng(7).standard_cauchy(1000)
        >>> abs(vg.median(x).item()) < 0.2
        True
        """
        formula = lambda u: tan((u - 0.5) * math.pi)  # noqa: E731
        return self._formed(formula, {}, "u", size, dtype, device)

    def rayleigh(self, scale=1.0, size=None, *, dtype=None, device=None):
        """Return how long vectors of two normal numbers of standard deviation `scale` are.

        scale: a scalar or an array. ValueError: negative.

        >>> x = vg.random.default_rng(7).rayleigh(2.0, 1000)
        >>> 2.3 < x.mean().item() < 2.7
        True
        """
        formula = lambda scale, e: scale * sqrt(2.0 * e)  # noqa: E731
        values = {"scale": scale}
        return self._formed(formula, values, "e", size, dtype, device, not_negative=("scale",))

    def weibull(self, a, size=None, *, dtype=None, device=None):
        """Return numbers of Weibull's distribution of shape a and scale 1: E ^ (1 / a).

        a: a scalar or an array; where it is 0 the number is. ValueError: negative.

        >>> x = vg.random.default_rng(7).weibull(2.0, 1000)
        >>> 0.8 < x.mean().item() < 0.97
        True
        """

        def formula(a, e):
            a = e * 0.0 + a  # of one shape
            return where(equal(a, 0.0), 0.0, pow(e, 1.0 / where(equal(a, 0.0), 1.0, a)))

        return self._formed(formula, {"a": a}, "e", size, dtype, device, not_negative=("a",))

    def pareto(self, a, size=None, *, dtype=None, device=None):
        """Return numbers of Pareto's second distribution (Lomax) of shape a: exp(E / a) - 1.

        a: a scalar or an array. ValueError: not above 0.

        >>> x = vg.random.default_rng(7).pareto(3.0, 1000)
        >>> 0.4 < x.mean().item() < 0.6
        True
        """
        formula = lambda a, e: expm1(e / a)  # noqa: E731
        return self._formed(formula, {"a": a}, "e", size, dtype, device, positive=("a",))

    def power(self, a, size=None, *, dtype=None, device=None):
        """Return numbers in [0, 1] of the density a x ^ (a - 1): U ^ (1 / a).

        a: a scalar or an array. ValueError: not above 0.

        >>> x = vg.random.default_rng(7).power(3.0, 1000)
        >>> 0.7 < x.mean().item() < 0.8
        True
        """
        formula = lambda a, e: pow(-expm1(-e), 1.0 / a)  # noqa: E731
        return self._formed(formula, {"a": a}, "e", size, dtype, device, positive=("a",))

    def triangular(self, left, mode, right, size=None, *, dtype=None, device=None):
        """Return numbers in [left, right] whose density is a triangle with its top at mode.

        left, mode, right: scalars or arrays. ValueError: scalars out of order, or all the same.

        >>> x = vg.random.default_rng(7).triangular(0.0, 1.0, 5.0, 1000)
        >>> (x >= 0).all().item(), (x <= 5).all().item()
        (True, True)
        """
        left, mode, right = (parameter(x, self._resolved(device)) for x in (left, mode, right))
        if not any(isinstance(x, Array) for x in (left, mode, right)):
            if not left <= mode <= right:
                raise ValueError(f"left <= mode <= right is needed, got {left}, {mode}, {right}")
            if left == right:
                raise ValueError(f"left and right are the same: {left}")

        def formula(left, mode, right, u):
            width, rise, fall = right - left, mode - left, right - mode
            rising = left + sqrt(u * (rise * width))
            falling = right - sqrt((1.0 - u) * (fall * width))
            return where(less_equal(u, u * 0.0 + rise / width), rising, falling)

        values = {"left": left, "mode": mode, "right": right}
        return self._formed(formula, values, "u", size, dtype, device)

    def _placed(self, formula, loc, scale, draws, size, dtype, device):
        values = {"loc": loc, "scale": scale}
        return self._formed(formula, values, draws, size, dtype, device, not_negative=("scale",))

    def _formed(self, formula, values, draws, size, dtype, device, not_negative=(), positive=()):
        """Return formula(*parameters, *numbers), computed in float64, in a dtype.

        values: {name: parameter}, of which scalars are checked. draws: a letter for each request of
        numbers: "u"niform, "e"xponential, "n"ormal.
        """
        dtype, device = parse_float(dtype), self._resolved(device)
        values = {name: parameter(value, device) for name, value in values.items()}
        for name, value in values.items():
            if not isinstance(value, Array):
                if name in not_negative and not value >= 0:
                    raise ValueError(f"{name} must not be negative, got {value}")
                if name in positive and not value > 0:
                    raise ValueError(f"{name} must be above 0, got {value}")
        shape = common_shape(values.values(), size)
        kinds = {"u": self.random, "e": self.standard_exponential, "n": self.standard_normal}
        numbers = [kinds[letter](shape or (), float64, device=device) for letter in draws]
        wide = [astype(x, float64) if isinstance(x, Array) else x for x in values.values()]
        result = astype(formula(*wide, *numbers), dtype, copy=False)
        return item(result) if shape is None else result
