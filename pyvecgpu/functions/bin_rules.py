"""Rules by which a sample chooses the width of its bins, and counting by their edges.

They look at values, for which they wait: a number of bins is a shape.
"""

import functools
import math

import numpy as np

from ..dispatch import apply
from ..dtypes import float64, supported
from . import reductions
from .arguments import from_host
from .choosing import where
from .elementwise import bitwise_and, greater_equal, less_equal, square
from .indexing import get
from .joining import concat
from .layout import astype, reshape
from .quantiles import nanpercentile
from .sorting import bisected
from .statistics import std
from .values import to_host

_MOST_TRIED = 100  # numbers of bins, or the root of that of the elements if it is more


def counted(array, edges, weights=None):
    """Return how many elements of a 1-D Array, or what weights, are in each bin between edges."""
    lower, last = (_beside(one, array) for one in (edges[:-1], edges[-1:]))
    number = where(less_equal(array, last), bisected(lower, array, True), 0)
    counts = apply(array.backend, "bincount", number, weights, edges.size)
    return get(counts, slice(1, None))


def _beside(values, array):
    supported(values.dtype)
    return from_host(np.ascontiguousarray(values), array.backend)


class Sample:
    """The elements of a 1-D Array from `low` to `high`: how many, and what rules ask about them."""

    def __init__(self, array, low, high):
        self.array, self.low, self.high = array, low, high
        self.wide = astype(array, float64, copy=False)
        self.between = bitwise_and(greater_equal(array, low), less_equal(array, high))
        self.count = int(to_host(reductions.sum(self.between)))

    @functools.cached_property
    def spread(self):
        least = reductions.min(where(self.between, self.wide, float(self.high)))
        most = reductions.max(where(self.between, self.wide, float(self.low)))
        return float(to_host(most - least))

    @functools.cached_property
    def deviation(self):
        return float(to_host(std(self.wide, where=self.between)))

    def quartiles(self):
        """Return how far the quartiles are apart."""
        inside = where(self.between, self.wide, math.nan)
        low, high = to_host(nanpercentile(inside, [25, 75])).tolist()
        return high - low

    def skewness(self):
        """Return the mean of the third powers of distances from the mean, in deviations."""
        mean = reductions.mean(self.wide, where=self.between)
        distance = (self.wide - mean) / self.deviation
        cubes = square(distance) * distance
        return float(to_host(reductions.mean(cubes, where=self.between)))


def _sqrt(sample):
    return sample.spread / math.sqrt(sample.count)


def _sturges(sample):
    return sample.spread / (math.log2(sample.count) + 1)


def _rice(sample):
    return sample.spread / (2 * sample.count ** (1 / 3))


def _scott(sample):
    return (24 * math.pi**0.5 / sample.count) ** (1 / 3) * sample.deviation


def _fd(sample):
    return 2 * sample.quartiles() * sample.count ** (-1 / 3)


def _auto(sample):
    return min(max(_fd(sample), _sqrt(sample) / 2), _sturges(sample))


def _doane(sample):
    n = sample.count
    if n < 3 or not sample.deviation > 0:
        return 0.0
    error = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
    skewed = math.log2(1 + abs(sample.skewness()) / error)
    return sample.spread / (1 + math.log2(n) + skewed)


def _stone(sample):
    """The width of which the error is least, as it is estimated by leaving out elements."""
    n, spread = sample.count, sample.spread
    if n < 2 or not spread:
        return 0.0
    tried = range(1, max(_MOST_TRIED, math.isqrt(n)) + 1)
    array, sums = sample.array, []
    exact = array.dtype if array.dtype.kind == "f" and array.dtype.itemsize > 2 else float64
    for bins in tried:
        edges = np.linspace(sample.low, sample.high, bins + 1, dtype=exact)
        squares = square(astype(counted(array, edges), float64))
        sums.append(reshape(reductions.sum(squares), (1,)))
    errors = (2 - (n + 1) * to_host(concat(sums)) / n**2) * np.array(tried) / spread
    return spread / tried[int(errors.argmin())]


RULES = {
    "auto": _auto,
    "doane": _doane,
    "fd": _fd,
    "rice": _rice,
    "scott": _scott,
    "sqrt": _sqrt,
    "stone": _stone,
    "sturges": _sturges,
}
