"""The process's own generator, and functions that draw from it; default_rng makes others."""

import inspect
import threading

import numpy as np

from ..dtypes import int64, uint64
from .arguments import WORDS
from .generator import Generator

__all__ = ["default_rng", "rand", "randint", "randn", "random", "random_sample", "ranf", "sample"]
__all__ += ["seed"]


def _kind(value):
    """Return the name of a value's class, with its module: there is more than one Generator."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


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
        try:
            sequence = np.random.SeedSequence(seed)
        except (TypeError, ValueError) as error:
            given = repr(seed) if isinstance(error, ValueError) else _kind(seed)
            raise type(error)(
                "a seed is an integer of 0 or more, several, or a Generator of vg.random, not "
                + given
            ) from None
    key, stream = sequence.generate_state(2, np.uint64).tolist()
    return Generator(key, stream, device=device)


_own = None
_own_lock = threading.Lock()


def _shared():
    global _own
    if _own is not None:
        return _own
    with _own_lock:
        if _own is None:
            _own = default_rng()
        return _own


def seed(seed=None):
    """Begin the stream of this module's functions anew, from a seed as of default_rng.

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


def renewed(count, backend):
    """Return the same, and None, or what a recording on the backend adds at each launch.

    There the place counts from where the process's generator is when a launch begins; the launch
    moves it on, and recording does not.
    """
    recording = backend.recording()
    if recording is None:
        return (*reserved(count), None)
    if "random" not in recording.kept:
        recording.kept["random"] = _Numbers(recording)
    numbers = recording.kept["random"]
    return 0, 0, (reserved(count)[2] - numbers.begin) % WORDS, numbers.data


class _Numbers:
    """The random numbers of a recording: key, stream and counter on the device."""

    def __init__(self, recording):
        self.before, self.count = _shared().state, 0
        self.begin = self.before["state"]["counter"]
        self.data = recording.renewed(uint64, 3, lambda: _shared()._take(self.count))
        recording.at_end(self.end)

    def end(self):
        generator = _shared()
        self.count = (generator.state["state"]["counter"] - self.begin) % WORDS
        generator.state = self.before


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


def random_sample(size=None, *, dtype=None, device=None):
    """Return numbers in [0, 1): random by NumPy's older names, which are sample and ranf too.

    >>> vg.random.random_sample((2, 3)).shape
    (2, 3)
    """
    return _shared().random(size, dtype, device=device)


sample = ranf = random_sample


# Methods of a Generator, as functions: (their arguments, what is asked of the result), an example.
_TWINS = {
    "binomial": ("10, 0.5, (2, 3)", ".shape", "(2, 3)"),
    "beta": ("2.0, 3.0, (2, 3)", ".shape", "(2, 3)"),
    "bytes": ("4", None, "4"),
    "chisquare": ("3.0, (2, 3)", ".shape", "(2, 3)"),
    "dirichlet": ("[1.0, 2.0, 3.0], 4", ".shape", "(4, 3)"),
    "f": ("5.0, 20.0, (2, 3)", ".shape", "(2, 3)"),
    "gamma": ("4.0, 2.0, (2, 3)", ".shape", "(2, 3)"),
    "choice": ("10, 4, replace=False", ".shape", "(4,)"),
    "exponential": ("2.0, (2, 3)", ".shape", "(2, 3)"),
    "geometric": ("0.5, (2, 3)", ".shape", "(2, 3)"),
    "gumbel": ("0.0, 1.0, (2, 3)", ".shape", "(2, 3)"),
    "laplace": ("0.0, 1.0, (2, 3)", ".shape", "(2, 3)"),
    "logistic": ("0.0, 1.0, (2, 3)", ".shape", "(2, 3)"),
    "lognormal": ("0.0, 1.0, (2, 3)", ".shape", "(2, 3)"),
    "multivariate_normal": ("[0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]], 3", ".shape", "(3, 2)"),
    "normal": ("10.0, 0.1, (2, 3)", ".shape", "(2, 3)"),
    "pareto": ("3.0, (2, 3)", ".shape", "(2, 3)"),
    "permutation": ("5", ".shape", "(5,)"),
    "permuted": ("vg.ones((2, 3)), axis=1", ".shape", "(2, 3)"),
    "poisson": ("4.0, (2, 3)", ".shape", "(2, 3)"),
    "power": ("3.0, (2, 3)", ".shape", "(2, 3)"),
    "rayleigh": ("2.0, (2, 3)", ".shape", "(2, 3)"),
    "shuffle": ("vg.arange(5)", None, None),
    "standard_cauchy": ("(2, 3)", ".shape", "(2, 3)"),
    "standard_exponential": ("(2, 3)", ".shape", "(2, 3)"),
    "standard_gamma": ("4.0, (2, 3)", ".shape", "(2, 3)"),
    "standard_t": ("5.0, (2, 3)", ".shape", "(2, 3)"),
    "standard_normal": ("(2, 3)", ".shape", "(2, 3)"),
    "triangular": ("0.0, 1.0, 5.0, (2, 3)", ".shape", "(2, 3)"),
    "uniform": ("-1.0, 1.0, (2, 3)", ".shape", "(2, 3)"),
    "weibull": ("2.0, (2, 3)", ".shape", "(2, 3)"),
}


def _twin(name, arguments, asked, answer):
    """Return the function that is a Generator's method of the process's own generator."""
    method = getattr(Generator, name)
    example = f"vg.random.{name}({arguments})"
    example = f"len({example})" if name == "bytes" else f"{example}{asked or ''}"

    def function(*arguments, **options):
        return getattr(_shared(), name)(*arguments, **options)

    signature = inspect.signature(method)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    function.__signature__ = signature.replace(parameters=parameters)
    function.__name__ = function.__qualname__ = name
    first = method.__doc__.partition("\n")[0]
    function.__doc__ = f"{first}\n\n    Of the process's own generator; see Generator.{name}.\n"
    function.__doc__ += f"\n    >>> {example}\n" + (f"    {answer}\n    " if answer else "    ")
    return function


globals().update({name: _twin(name, *example) for name, example in _TWINS.items()})
__all__ += _TWINS
