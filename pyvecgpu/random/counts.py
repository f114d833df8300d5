"""Integers: alike within bounds, and counts of what happens."""

import math
from ctypes import c_int64

import numpy as np

from ..array import Array, wrap
from ..dispatch import observed
from ..dtypes import CODES, float64, int64, parse_dtype, uint32, uint64
from ..dtypes import bool as bool_dtype
from ..functions.arguments import parse_int, parse_shape
from ..functions.choosing import where
from ..functions.creation import asarray
from ..functions.elementwise import (
    add,
    bitwise_and,
    ceil,
    equal,
    greater,
    greater_equal,
    maximum,
    minimum,
    negative,
)
from ..functions.layout import astype, broadcast_shapes, broadcast_to
from ..functions.mathematics import log1p, remainder
from ..functions.reductions import max as largest
from ..functions.sorting import searchsorted
from ..functions.values import item, to_host
from . import tables
from .arguments import (
    HOST,
    WORDS,
    check_range,
    common_shape,
    exact_integers,
    host_parameters,
    parameter,
)

_ARRAYS = Array, np.ndarray, list, tuple
_LAST = 2.0**63 - 1024  # the largest float64 that is an int64
_OTHERS = 0x9E3779B97F4A7C15  # from a stream to the one that words are drawn from again
_MOST = 1e10  # of a variance: its table has some two million entries


def _is_narrow(count):
    """Whether so many numbers are made of words of 32 bits."""
    return count <= 2**16 or (count & (count - 1) == 0 and count <= 2**32)


class _Counts:
    """What a Generator draws of integers."""

    def integers(self, low, high=None, size=None, dtype=int64, endpoint=False, *, device=None):
        """Return integers in [low, high), or in [0, low) without high; with endpoint `high` too.

        All are exactly alike: a word (32 bits for up to 2^16 numbers and for powers of two up to
        2^32, else 64) gives its remainder by their count, and words above the largest multiple of
        the count are drawn again, from the same blocks of another stream, until there is none.
        low, high: ints, or arrays of them, which are read on the host; then every word has 64 bits,
        there are as many further blocks for words drawn again, and size None gives their common
        shape. ValueError: low >= high, or out of the dtype's bounds. TypeError: a dtype that is
        neither integer nor bool.

        >>> x = vg.random.default_rng(7).integers(1, 6, 1000, endpoint=True)
        >>> x.min().item(), x.max().item()
        (1, 6)
        """
        low, high = (0, low) if high is None else (low, high)
        dtype = parse_dtype(dtype)
        if isinstance(low, _ARRAYS) or isinstance(high, _ARRAYS):
            return self._between(low, high, size, dtype, bool(endpoint), self._resolved(device))
        low, high = parse_int(low, "low"), parse_int(high, "high") + bool(endpoint)
        check_range(low, high, dtype, bool(endpoint))
        shape = parse_shape(() if size is None else size, 8)
        device = self._resolved(device)
        if device.backend.on_card and dtype != bool_dtype and not observed():
            values = self._on_card(low, high - low, shape, dtype, device.backend)
            return item(values) if size is None else values
        values = self._below(high - low, shape, device)
        if dtype == bool_dtype:
            values = greater_equal(values, 1 - low)
        else:
            values = astype(values, dtype)  # wraps, as does the sum
            if low:
                values = add(values, low, out=values)
        return item(values) if size is None else values

    def _take_words(self, shape, narrow):
        """Return the place of words of 32 bits, or of 64, for an array of a shape."""
        return self._take(-(-math.prod(shape) // (4 if narrow else 2)))

    def _on_card(self, low, count, shape, dtype, backend):
        """Return integers from `low` on, `count` of them, by one call of the C library."""
        narrow, n = _is_narrow(count), len(shape)
        low = low if low < 2**63 else low - WORDS  # the same in 64 bits
        place = self._take_words(shape, narrow)
        data = backend.functions.pvg_random_integers(
            *(backend.device.index, CODES[dtype], n, (c_int64 * n)(*shape)),
            *(32 if narrow else 64, count % WORDS, low, *place),
        )
        return wrap(backend, data)

    def _below(self, count, shape, device):
        """Return unsigned integers below `count`, which is at most 2^64."""
        power, narrow = count & (count - 1) == 0, _is_narrow(count)
        dtype, words = (uint32, 2**32) if narrow else (uint64, WORDS)
        key, stream, counter = place = self._take_words(shape, narrow)
        values = self._bits(shape, dtype, device, place)
        if count == words:
            return values
        if power:
            return bitwise_and(values, count - 1, out=values)
        limit = words - words % count
        while values.size:
            beyond = greater_equal(values, limit)
            if not item(largest(beyond)):
                break
            stream = (stream + _OTHERS) % WORDS
            others = self._bits(shape, dtype, device, (key, stream, counter))
            where(beyond, others, values, out=values)
        return remainder(values, count, out=values)

    def _between(self, low, high, size, dtype, endpoint, device):
        """Return integers in [low, high), whose bounds are arrays."""
        low, high = exact_integers(low, "low"), exact_integers(high, "high")
        high = np.asarray(high + endpoint, object)
        shape = broadcast_shapes(low.shape, high.shape)
        for one, other in np.broadcast(low, high):
            check_range(one, other, dtype, endpoint)
        shape = shape if size is None else parse_shape(size, 8)
        # Of 2^64 numbers, which are 0 modulo that, the word itself is one.
        counts = np.asarray(high - low, object)
        last = np.asarray(WORDS - 1 - WORDS % counts, object)
        low, counts, last = (
            broadcast_to(asarray(np.asarray(x % WORDS, np.uint64), device=device), shape)
            for x in (low, counts, last)
        )
        values = self._bits(shape, uint64, device)
        while values.size:
            beyond = greater(values, last)
            if not item(largest(beyond)):
                break
            where(beyond, self._bits(shape, uint64, device), values, out=values)
        values = where(equal(counts, 0), values, remainder(values, counts))
        return astype(add(values, low), dtype)

    def bytes(self, length):
        """Return `length` random bytes: words of the stream, the lowest byte first.

        >>> len(vg.random.default_rng(7).bytes(10))
        10
        """
        length = parse_int(length, "length")
        if length < 0:
            raise ValueError(f"length must not be negative, got {length}")
        words = to_host(self._bits(-(-length // 4), uint32, HOST))
        return words.astype("<u4", copy=False).tobytes()[:length]

    # Counts ---------------------------------------------------------------------------------------

    def geometric(self, p, size=None, *, device=None):
        """Return how many trials it takes until the first succeeds, as int64: 1 or more.

        p: the probability of success, a scalar or an array. Computed in float64, of which numbers
        above 2^53 show the steps. ValueError: a scalar p that is not in (0, 1].

        >>> x = vg.random.default_rng(7).geometric(0.5, 1000)
        >>> x.min().item(), 1.8 < vg.mean(x).item() < 2.2
        (1, True)
        """
        device = self._resolved(device)
        p = parameter(p, device)
        if not isinstance(p, Array) and not 0 < p <= 1:
            raise ValueError(f"p must be in (0, 1], got {p}")
        shape = common_shape([p], size)
        e = self.standard_exponential(shape or (), float64, device=device)
        if isinstance(p, Array):
            trials = ceil(e / -log1p(negative(astype(p, float64))))
        else:
            trials = ceil(e * (-1.0 / math.log1p(-p) if p < 1 else 0.0))
        result = astype(minimum(maximum(trials, 1.0), _LAST), int64)
        return item(result) if shape is None else result

    def poisson(self, lam=1.0, size=None, *, device=None):
        """Return how often something happens that does so lam times on average, as int64.

        By inversion: a uniform number's place in a table of the distribution function, which the
        host makes, of some 24 sqrt(lam) entries. lam: a scalar, or an array, for each of whose
        different values there is a table. ValueError: negative, or above 1e10.

        >>> x = vg.random.default_rng(7).poisson(4.0, 1000)
        >>> 3.7 < vg.mean(x).item() < 4.3
        True
        """
        (lam,) = host_parameters({"lam": lam})
        if not ((lam >= 0) & (lam <= _MOST)).all():
            raise ValueError(f"lam is between 0 and {_MOST:g}, got {lam}")
        return self._inverted(tables.poisson, [lam], size, device)

    def binomial(self, n, p, size=None, *, device=None):
        """Return how many of n trials succeed, each with probability p, as int64; as poisson.

        n, p: scalars or arrays. ValueError: n negative, p not in [0, 1], n p (1 - p) above 1e10.
        TypeError: n is not of integers.

        >>> x = vg.random.default_rng(7).binomial(10, 0.5, 1000)
        >>> x.max().item() <= 10, 4.8 < vg.mean(x).item() < 5.2
        (True, True)
        """
        n, p = np.broadcast_arrays(exact_integers(n, "n"), *host_parameters({"p": p}))
        n = n.astype(float)
        if not (n >= 0).all():
            raise ValueError(f"n must not be negative, got {n}")
        if not ((p >= 0) & (p <= 1)).all():
            raise ValueError(f"p is between 0 and 1, got {p}")
        if not (n * p * (1 - p) <= _MOST).all() or not (n <= 2.0**53).all():
            raise ValueError(f"n is at most 2^53, and n p (1 - p) at most {_MOST:g}")
        return self._inverted(tables.binomial, [n, p], size, device)

    def _inverted(self, table, values, size, device):
        """Return table(*parameters)'s counts at uniform numbers, for parameters on the host."""
        device, whole = self._resolved(device), values[0].shape
        shape = (whole if whole else None) if size is None else parse_shape(size, 8)
        if broadcast_shapes(shape or (), whole) != (shape or ()):
            raise ValueError(f"size {size} does not hold parameters of shape {whole}")
        u = self.random(shape or (), float64, device=device)
        flat = [np.broadcast_to(x, whole).ravel() for x in values]
        # Of rows of two NumPy would make structures, and a TypeError of an interrupt meanwhile.
        pairs = flat[0] + 1j * flat[-1]
        different, which = np.unique(pairs, return_inverse=True)
        result = None
        for i, chosen in enumerate(different.tolist()):
            first, edges = table(*[chosen.real, chosen.imag][: len(flat)])
            edges = asarray(edges, device=device)
            counts = add(searchsorted(edges, u, side="right"), int(first))
            if result is None:
                result = counts
            else:
                here = asarray(np.equal(which.reshape(whole), i), device=device)
                result = where(here, counts, result)
        if result is None:
            result = astype(u, int64)
        return item(result) if shape is None else result
