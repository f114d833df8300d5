"""A Generator: its place in the stream, what fills arrays from there, and its children."""

import math
import threading

from ..device import Device, resolve
from ..dispatch import WAYS, apply
from ..dtypes import uint64
from ..functions.arguments import parse_int, parse_shape
from ..functions.creation import empty
from ..functions.values import item, to_host
from ..native.abi import Distribution
from .arguments import ALGORITHM, HOST, WORDS, parse_float, parse_out, parse_state
from .counts import _Counts
from .distributions import _Distributions
from .gammas import _Gammas
from .orders import _Orders


class Generator(_Orders, _Counts, _Gammas, _Distributions):
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
        return f"Generator({ALGORITHM})"

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
        return {"bit_generator": ALGORITHM, "state": place}

    @state.setter
    def state(self, state):
        key, stream, counter = parse_state(state)
        with self._lock:
            self._key, self._stream, self._counter = key, stream, counter

    def _take(self, blocks):
        """Return (key, stream, counter) of so many blocks, which nobody else gets."""
        with self._lock:
            counter = self._counter
            self._counter = (counter + blocks) % WORDS
            return self._key, self._stream, counter

    def _fill(self, array, distribution, place=None):
        """Fill an Array with numbers from a place of _take, by default the next one; return it."""
        place = place or self._take(_blocks(array.size, array.dtype))
        apply(array.backend, "random", array, int(distribution), *place)
        return array

    def _bits(self, shape, dtype, device, place=None):
        return self._fill(empty(shape, dtype, device=device), Distribution.RANDOM_BITS, place)

    def _floats(self, distribution, size, dtype, out, device):
        """Return numbers of a distribution, in `out`, in a new Array, or one as a Python float."""
        if out is not None:
            return self._fill(parse_out(out, size, dtype, device), distribution)
        dtype = parse_float(dtype)
        shape = () if size is None else parse_shape(size, dtype.itemsize)
        backend = self._resolved(device).backend
        array = WAYS["empty"](backend, shape, dtype)
        place = self._take(_blocks(math.prod(shape), dtype))
        WAYS["random"](backend, array, int(distribution), *place)
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
        keys = to_host(self._bits((count, 2), uint64, HOST)).tolist()
        return [Generator(key, stream, device=self._device) for key, stream in keys]


def _blocks(size, dtype):
    """Return how many blocks of the stream make so many numbers."""
    return -(-size // (2 if dtype.itemsize == 8 else 4))


def _restored(state, device):
    generator = Generator(0, 0, device=device)
    generator.state = state
    return generator
