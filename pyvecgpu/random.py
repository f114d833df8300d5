"""Random numbers, the same bits on every device: vg.random.default_rng(seed).

A number depends on nothing but the generator's key and its place in the generator's stream: not on
the device, nor on how work is spread there. The stream is Philox4x32-10's (Salmon, Moraes, Dror and
Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11): blocks of four words of 32 bits. Element
i of a request, in C order, takes word i % 4 of the request's block i // 4; a dtype of 8 bytes takes
two words, so that two elements share a block. The next request begins at the next block. So
requests of n elements one after another give the numbers of one larger request, if each n but the
last is a multiple of 4 (of 2 in dtypes of 8 bytes).

Normal and exponential numbers are computed of these bits with logarithms, sines and cosines, in
which devices may differ by up to 4 units in the last place.

What is no plain filling of an array: `integers` draws again where a word would make some numbers
likelier than others; `permutation`, `shuffle` and `choice` compute an order of indices on the host.

Names and parameters are those of numpy.random, the numbers are others. dtype: None is the default
float. device: a Device, its name, or None for the generator's own, which by default is the current
one. size: None gives a Python scalar.
"""

import math
import threading

import numpy as np

from .array import Array
from .device import Device, resolve
from .dispatch import apply
from .dtypes import bool as bool_dtype
from .dtypes import (
    float64,
    get_default_dtype,
    int64,
    is_float,
    is_integer,
    parse_dtype,
    uint32,
    uint64,
)
from .functions.arguments import (
    host_array,
    is_host,
    parse_axis,
    parse_int,
    parse_scalar,
    parse_shape,
)
from .functions.creation import asarray, empty
from .functions.elementwise import (
    add,
    bitwise_and,
    equal,
    greater,
    greater_equal,
    multiply,
    where,
)
from .functions.gathering import take
from .functions.layout import astype, broadcast_shapes, broadcast_to
from .functions.mathematics import remainder
from .functions.reductions import max as largest
from .functions.values import item, to_host
from .native.abi import Distribution

__all__ = ["Generator", "default_rng", "rand", "randint", "randn", "random", "seed"]

_ALGORITHM = "Philox4x32-10"
_WORDS = 2**64
_HOST = "cpu"


class Generator:
    """A stream of random numbers, see the module; made by default_rng and by spawn.

    Threads may share one: each request has numbers of its own, whose place in the stream depends on
    who comes first.

    >>> rng = vg.random.default_rng(7)
    >>> rng.normal(size=(2, 3)).shape
    (2, 3)
    >>> again = vg.random.default_rng(7)
    >>> vg.array_equal(again.random(5), vg.random.default_rng(7).random(5))
    True
    """

    def __init__(self, key, stream, *, device=None):
        self._key, self._stream, self._counter = key, stream, 0
        self._device = None if device is None else Device(device)
        self._lock = threading.Lock()

    def __repr__(self):
        return f"Generator({_ALGORITHM})"

    def __reduce__(self):
        device = None if self._device is None else str(self._device)
        return _restored, (self.state, device)

    # Where it is ----------------------------------------------------------------------------------

    @property
    def device(self):
        """The Device of its results, unless a call names another.

        >>> vg.random.default_rng(7, device="cpu").device
        Device('cpu')
        """
        return resolve(self._device)

    @property
    def state(self):
        """The generator's place, as a dict; setting it goes there.

        key, stream: numbers of 64 bits that tell generators apart. counter: of the next block.
        ValueError: no state of such a generator.

        >>> rng = vg.random.default_rng(7)
        >>> state = rng.state
        >>> x = rng.random(3)
        >>> rng.state = state
        >>> vg.array_equal(x, rng.random(3))
        True
        """
        with self._lock:
            place = {"key": self._key, "stream": self._stream, "counter": self._counter}
        return {"bit_generator": _ALGORITHM, "state": place}

    @state.setter
    def state(self, state):
        key, stream, counter = _parse_state(state)
        with self._lock:
            self._key, self._stream, self._counter = key, stream, counter

    def _take(self, blocks):
        """Return (key, stream, counter) of so many blocks, which nobody else gets."""
        with self._lock:
            counter = self._counter
            self._counter = (counter + blocks) % _WORDS
            return self._key, self._stream, counter

    def _fill(self, array, distribution):
        of_a_block = 2 if array.dtype.itemsize == 8 else 4
        place = self._take(-(-array.size // of_a_block))
        apply(array.backend, "random", array, int(distribution), *place)
        return array

    def _bits(self, shape, dtype, device):
        return self._fill(empty(shape, dtype, device=device), Distribution.RANDOM_BITS)

    def _floats(self, distribution, size, dtype, out, device):
        """Return numbers of a distribution, in `out`, in a new Array, or one as a Python float."""
        if out is not None:
            return self._fill(_parse_out(out, size, dtype, device), distribution)
        dtype = _parse_float(dtype)
        array = empty(() if size is None else size, dtype, device=self._resolved(device))
        self._fill(array, distribution)
        return item(array) if size is None else array

    def _resolved(self, device):
        return resolve(self._device if device is None else device)

    def spawn(self, n_children):
        """Return a list of new generators, whose streams have nothing to do with one another.

        Their keys are the next n_children blocks of this one's stream. ValueError: negative.

        >>> first, second = vg.random.default_rng(7).spawn(2)
        >>> vg.array_equal(first.random(5), second.random(5))
        False
        """
        count = parse_int(n_children, "n_children")
        if count < 0:
            raise ValueError(f"n_children must not be negative, got {count}")
        keys = to_host(self._bits((count, 2), uint64, _HOST)).tolist()
        return [Generator(key, stream, device=self._device) for key, stream in keys]

    # Floats ---------------------------------------------------------------------------------------

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

    def uniform(self, low=0.0, high=1.0, size=None, *, dtype=None, device=None):
        """Return numbers in [low, high); rounding may give `high` itself.

        low, high: scalars or arrays, of which size None gives the common shape.
        OverflowError: high - low is not finite.

        >>> x = vg.random.default_rng(7).uniform(-1, 1, 1000)
        >>> (x.min() >= -1).item(), (x.max() < 1).item()
        (True, True)
        """
        low, high = (_parameter(x, self._resolved(device)) for x in (low, high))
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
        loc, scale = (_parameter(x, self._resolved(device)) for x in (loc, scale))
        _check_scale(scale)
        return self._scaled(self.standard_normal, loc, scale, size, dtype, device)

    def exponential(self, scale=1.0, size=None, *, dtype=None, device=None):
        """Return exponentially distributed numbers of mean scale, a scalar or an array.

        size: None is the array's shape. ValueError: a scalar scale is negative.

        >>> x = vg.random.default_rng(7).exponential(2.0, 1000)
        >>> (x >= 0).all().item()
        True
        """
        scale = _parameter(scale, self._resolved(device))
        _check_scale(scale)
        return self._scaled(self._exponential, 0.0, scale, size, dtype, device)

    def _exponential(self, size, dtype, *, device):
        return self._floats(Distribution.RANDOM_EXPONENTIAL, size, dtype, None, device)

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

    # Integers -------------------------------------------------------------------------------------

    def integers(self, low, high=None, size=None, dtype=int64, endpoint=False, *, device=None):
        """Return integers in [low, high), or in [0, low) without high; with endpoint `high` too.

        All are exactly alike: a word (32 bits for up to 2^16 numbers and for powers of two up to
        2^32, else 64) gives its remainder by their count, and words above the largest multiple of
        the count are drawn again, with as many further blocks, until there is none.
        low, high: ints, or arrays of them, which are read on the host; then every word has 64 bits,
        and size None gives their common shape. ValueError: low >= high, or out of the dtype's
        bounds. TypeError: a dtype that is neither integer nor bool.

        >>> x = vg.random.default_rng(7).integers(1, 6, 1000, endpoint=True)
        >>> x.min().item(), x.max().item()
        (1, 6)
        """
        dtype = parse_dtype(dtype)
        low, high = (0, low) if high is None else (low, high)
        if any(isinstance(x, (Array, np.ndarray, list, tuple)) for x in (low, high)):
            return self._between(low, high, size, dtype, bool(endpoint), self._resolved(device))
        low, high = parse_int(low, "low"), parse_int(high, "high") + bool(endpoint)
        _check_range(low, high, dtype, bool(endpoint))
        shape = parse_shape(() if size is None else size, 8)
        values = self._below(high - low, shape, self._resolved(device))
        if dtype == bool_dtype:
            values = greater_equal(values, 1 - low)
        else:
            values = astype(values, dtype)  # wraps, as does the sum
            if low:
                values = add(values, low, out=values)
        return item(values) if size is None else values

    def _below(self, count, shape, device):
        """Return unsigned integers below `count`, which is at most 2^64."""
        power = count & (count - 1) == 0
        narrow = count <= 2**16 or (power and count <= 2**32)
        dtype, words = (uint32, 2**32) if narrow else (uint64, _WORDS)
        values = self._bits(shape, dtype, device)
        if count == words:
            return values
        if power:
            return bitwise_and(values, count - 1, out=values)
        limit = words - words % count
        while values.size:
            beyond = greater_equal(values, limit)
            if not item(largest(beyond)):
                break
            where(beyond, self._bits(shape, dtype, device), values, out=values)
        return remainder(values, count, out=values)

    def _between(self, low, high, size, dtype, endpoint, device):
        """Return integers in [low, high), whose bounds are arrays."""
        low, high = _integers(low, "low"), _integers(high, "high")
        high = np.asarray(high + endpoint, object)
        shape = broadcast_shapes(low.shape, high.shape)
        for one, other in np.broadcast(low, high):
            _check_range(one, other, dtype, endpoint)
        shape = shape if size is None else parse_shape(size, 8)
        # Of 2^64 numbers, which are 0 modulo that, the word itself is one.
        counts = np.asarray(high - low, object)
        last = np.asarray(_WORDS - 1 - _WORDS % counts, object)
        low, counts, last = (
            broadcast_to(asarray(np.asarray(x % _WORDS, np.uint64), device=device), shape)
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
        words = to_host(self._bits(-(-length // 4), uint32, _HOST))
        return words.astype("<u4", copy=False).tobytes()[:length]

    # Orders ---------------------------------------------------------------------------------------

    def permutation(self, x, axis=0, *, device=None):
        """Return arange(x) in random order, or an array with its parts along an axis so.

        The order is that of random keys of 64 bits, which the host sorts. Keys are equal, and then
        in their old order, with a probability of n^2 / 2^65.

        >>> x = vg.random.default_rng(7).permutation(5)
        >>> vg.sort(x).tolist()
        [0, 1, 2, 3, 4]
        """
        if not isinstance(x, Array) and not is_host(x):
            count = parse_int(x, "x")
            if count < 0:
                raise ValueError(f"x must not be negative, got {count}")
            return asarray(self._order(count), device=self._resolved(device))
        target = x.device if isinstance(x, Array) and device is None else self._resolved(device)
        axis = _axis_of(x, axis)
        return _taken(x, self._order(x.shape[axis]), axis, target)

    def shuffle(self, x, axis=0):
        """Put the parts of an Array along an axis in random order, in place; as permutation.

        >>> x = vg.arange(5)
        >>> vg.random.default_rng(7).shuffle(x)
        >>> vg.sort(x).tolist()
        [0, 1, 2, 3, 4]
        """
        if not isinstance(x, Array):
            raise TypeError(f"shuffle takes an Array, not {type(x).__name__}")
        x[...] = self.permutation(x, axis)

    def _order(self, count):
        keys = to_host(self._bits(count, uint64, _HOST))
        return np.argsort(keys, kind="stable").astype(np.int64, copy=False)

    def choice(self, a, size=None, replace=True, p=None, axis=0, *, device=None):
        """Return elements of arange(a), or parts of an array along an axis, drawn at random.

        replace: whether one may be drawn again. p: the probability of each, else all are alike;
        without replacement each draw is from what is left. Indices are computed on the host.
        ValueError: more than there are, wrong p.

        >>> x = vg.random.default_rng(7).choice(10, 4, replace=False)
        >>> len(set(x.tolist()))
        4
        """
        whole = isinstance(a, Array) or is_host(a)
        axis = _axis_of(a, axis) if whole else 0
        count = a.shape[axis] if whole else parse_int(a, "a")
        shape = parse_shape(() if size is None else size, 8)
        indices = self._indices(count, shape, bool(replace), p)
        target = a.device if isinstance(a, Array) and device is None else self._resolved(device)
        result = _taken(a, indices, axis, target) if whole else asarray(indices, device=target)
        return item(result) if size is None and result.ndim == 0 else result

    def _indices(self, count, shape, replace, p):
        drawn = int(np.prod(shape, dtype=object))
        if count < 0 or (drawn and not count):
            raise ValueError(f"choice: a has no elements to draw from, {count}")
        if not replace and drawn > count:
            raise ValueError(f"choice: {drawn} of {count} elements without replacement")
        if p is not None:
            p = _parse_probabilities(p, count, 0 if replace else drawn)
        if not drawn:
            return np.empty(shape, np.int64)
        if replace and p is None:
            return to_host(self.integers(0, count, shape, device=_HOST))
        if p is None:
            return self._order(count)[:drawn].reshape(shape)
        if replace:
            edges = np.cumsum(p)
            edges /= edges[-1]
            draws = to_host(self.random(shape, float64, device=_HOST))
            return np.searchsorted(edges, draws, side="right").astype(np.int64, copy=False)
        # The first of exponential clocks that run at these rates: as if drawn one after another.
        clocks = to_host(self._exponential(count, float64, device=_HOST))
        times = np.divide(clocks, p, out=np.full(count, np.inf), where=p > 0)
        order = np.argsort(times, kind="stable")[:drawn]
        return order.astype(np.int64, copy=False).reshape(shape)


# Arguments ----------------------------------------------------------------------------------------


def _parse_state(state):
    try:
        name, place = state["bit_generator"], state["state"]
        numbers = [parse_int(place[part], part) for part in ("key", "stream", "counter")]
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"not a state of {_ALGORITHM}: {state!r}") from error
    if name != _ALGORITHM or not all(0 <= number < _WORDS for number in numbers):
        raise ValueError(f"not a state of {_ALGORITHM}: {state!r}")
    return numbers


def _restored(state, device):
    generator = Generator(0, 0, device=device)
    generator.state = state
    return generator


def _parse_float(dtype):
    dtype = get_default_dtype() if dtype is None else parse_dtype(dtype)
    if not is_float(dtype):
        raise TypeError(f"random numbers of this distribution are floats, not {dtype}")
    return dtype


def _parse_out(out, size, dtype, device):
    if not isinstance(out, Array):
        raise TypeError(f"out is an Array, not {type(out).__name__}")
    if not is_float(out.dtype):
        raise TypeError(f"random numbers of this distribution are floats, not {out.dtype}")
    if size is not None and parse_shape(size) != out.shape:
        raise ValueError(f"size is {size}, but out has shape {out.shape}")
    if dtype is not None and parse_dtype(dtype) != out.dtype:
        raise TypeError(f"dtype is {parse_dtype(dtype)}, but out has {out.dtype}")
    if device is not None and Device(device) is not out.device:
        raise ValueError(f"device is {device}, but out is on {out.device}")
    return out


def _parameter(value, device):
    """Return a parameter of a distribution: a float, or an Array on the device."""
    if isinstance(value, Array):
        return value
    if is_host(value) and np.ndim(value):
        return asarray(value, device=device)
    return float(parse_scalar(value, "a parameter of a distribution"))


def _check_scale(scale):
    if not isinstance(scale, Array) and not scale >= 0:
        raise ValueError(f"scale must not be negative, got {scale}")


def _check_range(low, high, dtype, endpoint):
    if dtype != bool_dtype and not is_integer(dtype):
        raise TypeError(f"integers gives integers or bools, not {dtype}")
    lowest, highest = (0, 1) if dtype == bool_dtype else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if low < lowest:
        raise ValueError(f"low is out of bounds for {dtype}: {low}")
    if high - 1 > int(highest):
        raise ValueError(f"high is out of bounds for {dtype}: {high - endpoint}")
    if low >= high:
        raise ValueError(f"low {'>' if endpoint else '>='} high: {low}, {high - endpoint}")


def _parse_probabilities(p, count, least):
    """Return p as float64. ValueError: not `count` probabilities, fewer than `least` above 0."""
    p = np.asarray(to_host(p) if isinstance(p, Array) else p, np.float64)
    if p.shape != (count,):
        raise ValueError(f"p has shape {p.shape}, and a {count} elements")
    if not (p >= 0).all() or not abs(p.sum() - 1) <= 1e-6:
        raise ValueError("p is not of probabilities: they must not be negative, and their sum is 1")
    if np.count_nonzero(p) < least:
        raise ValueError(f"p has fewer than {least} entries above 0")
    return p


def _integers(value, what):
    """Return integers as an ndarray of Python ints, which do not overflow."""
    values = to_host(value) if isinstance(value, Array) else np.asarray(value)
    if values.dtype.kind not in "iuO":
        raise TypeError(f"{what} is integers, not an array of {values.dtype}")
    return values.astype(object)


def _axis_of(x, axis):
    if x.ndim == 0:
        raise ValueError("an array of one axis or more is needed, or an integer")
    return parse_axis(axis, x.ndim)


def _taken(x, indices, axis, device):
    """Return the parts of an array at indices on the host, as an Array on a device."""
    if isinstance(x, Array):
        return asarray(take(x, indices, axis), device=device)
    return asarray(host_array(x).take(indices, axis), device=device)


# The process's own generator ----------------------------------------------------------------------


def default_rng(seed=None, *, device=None):
    """Return a new Generator of a seed: a non-negative int, several, or None for the system's.

    A Generator is returned as it is, with the device that it has.
    seed: what numpy.random.SeedSequence takes, or one; it makes the key of 128 bits.

    >>> a, b = vg.random.default_rng(7), vg.random.default_rng(7)
    >>> vg.array_equal(a.random(3), b.random(3))
    True
    """
    if isinstance(seed, Generator):
        return seed
    if isinstance(seed, (bool, np.bool_)):
        raise TypeError("a seed is an integer, not a bool")
    sequence = seed
    if not isinstance(seed, np.random.SeedSequence):
        sequence = np.random.SeedSequence(seed)
    key, stream = sequence.generate_state(2, np.uint64).tolist()
    return Generator(key, stream, device=device)


_own = None
_own_lock = threading.Lock()


def _shared():
    global _own
    with _own_lock:
        if _own is None:
            _own = default_rng()
        return _own


def seed(seed=None):
    """Begin the stream of rand, randn, randint and random anew, from a seed as of default_rng.

    >>> vg.random.seed(7)
    >>> x = vg.random.rand(3)
    >>> vg.random.seed(7)
    >>> vg.array_equal(x, vg.random.rand(3))
    True
    """
    _shared().state = default_rng(seed).state


def reserved(count):
    """Return (key, stream, counter) of what random(count, dtype="float32") would give."""
    return _shared()._take(-(-count // 4))


def random(size=None, *, dtype=None, device=None):
    """Return numbers in [0, 1): Generator.random of the process's own generator.

    >>> vg.random.random((2, 3)).shape
    (2, 3)
    """
    return _shared().random(size, dtype, device=device)


def rand(*size, dtype=None, device=None):
    """Return numbers in [0, 1) in an array of so many rows, columns, ...; without any a float.

    >>> vg.random.rand(2, 3).shape
    (2, 3)
    """
    return _shared().random(size or None, dtype, device=device)


def randn(*size, dtype=None, device=None):
    """Return normal numbers in an array of so many rows, columns, ...; without any a float.

    >>> vg.random.randn(2, 3).shape
    (2, 3)
    """
    return _shared().standard_normal(size or None, dtype, device=device)


def randint(low, high=None, size=None, dtype=int64, *, device=None):
    """Return integers in [low, high): Generator.integers of the process's own generator.

    >>> x = vg.random.randint(0, 10, (2, 3))
    >>> x.shape, x.dtype
    ((2, 3), dtype('int64'))
    """
    return _shared().integers(low, high, size, dtype, device=device)
