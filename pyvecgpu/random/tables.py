"""Tables of distribution functions, which the host makes: (the first count, its edges).

A uniform number below edges[0] is that count, one from edges[i - 1] to edges[i] the count i above
it. Probabilities are products of ratios of neighbours, from the likeliest count on, so that they
need no factorials; what is beyond 12 standard deviations is less likely than 2^-53.
"""

import math

import numpy as np


def poisson(lam):
    """Return the table of Poisson's distribution of mean lam."""
    top = math.floor(lam)
    low, high = _reach(top, lam, 0, math.inf)
    up = lam / np.arange(top + 1, high + 1)
    down = np.arange(top, low, -1) / lam if lam else np.empty(0)
    return low, _edges(up, down)


def binomial(n, p):
    """Return the table of how many of n trials succeed with probability p."""
    if p in (0.0, 1.0):
        return n * p, np.empty(0)
    top = min(math.floor((n + 1) * p), n)
    low, high = _reach(top, n * p * (1 - p), 0, n)
    odds = p / (1 - p)
    after, before = np.arange(top + 1, high + 1), np.arange(top, low, -1)
    up = (n - after + 1) / after * odds
    down = before / ((n - before + 1) * odds)
    return low, _edges(up, down)


def _reach(top, variance, least, most):
    """Return the first and the last count of a table around its top."""
    width = math.ceil(12 * math.sqrt(variance)) + 60
    return max(int(top) - width, int(least)), int(min(top + width, most))


def _edges(up, down):
    """Return the distribution function at all counts but the last one."""
    with np.errstate(under="ignore"):
        likely = np.concatenate([np.cumprod(down)[::-1], [1.0], np.cumprod(up)])
    below = np.cumsum(likely)
    return below[:-1] / below[-1]
