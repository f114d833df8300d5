"""Random calls of every function that has a short way on the CPU device, both ways.

The functions are found by their decorators (functions/short_calls.py), and arguments are drawn by
their parameters' names: arrays of any dtype and layout, often of one shape and dtype in a call, and
what VALUES has for the others. While somebody observes, the same call goes the long way: result,
error and operands are held against that.
"""

import inspect
import warnings

import numpy as np
import pytest
from helpers import host

import pyvecgpu as vg
from pyvecgpu.array import wrap
from pyvecgpu.dispatch import observe

pytestmark = pytest.mark.devices("cpu")

ROUNDS = 30
DTYPES = ("float32", "float64", "float16", "int64", "int32", "int8", "uint8", "uint64", "bool")
SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.5)
NUMBERS = (0, 1, 3, -1, 0.5, -0.0, 300, 2**40, True, 1e300, float("nan"), 2**63)
PLACES = (0, 1, -1, 2, -2, 5, -9, True)
# The short way of these is NumPy's, whose elements beside the one asked for are in any order.
OPEN = {"argpartition", "partition"}
# float32 sums are NumPy's there.
ROUNDED = {"convolve": 1e-3, "correlate": 1e-3, "polymul": 1e-3}
EPS = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11, "complex64": 2e-5, "complex128": 1e-11}

# By a parameter's name: what is drawn, or "array", "indices" and "bools", and lists of such.
VALUES = {
    **dict.fromkeys(("x", "x1", "x2", "a", "b", "a1", "a2", "p", "f", "y", "bins", "v"), "array"),
    **dict.fromkeys(("values", "weights", "dst", "src", "xp", "fp", "seq_of_zeros"), "array"),
    **dict.fromkeys(("to_end", "to_begin", "prepend", "append", "nan", "posinf"), "array"),
    **dict.fromkeys(("indices", "multi_index", "ind", "obj"), "indices"),
    **dict.fromkeys(("mask", "condition"), "bools"),
    **dict.fromkeys(("arrays", "keys", "choices", "operands"), "arrays"),
    "condlist": "bool arrays",
    **dict.fromkeys(("axis", "axisa", "axisb", "axisc"), (None, 0, 1, -1, 2, -3, True)),
    **dict.fromkeys(("axis1", "axis2", "start"), (0, 1, -1, 2, -4)),
    **dict.fromkeys(("offset", "k", "shift", "kth"), PLACES),
    **dict.fromkeys(("n", "m", "N", "M", "n_rows", "n_cols"), (None, 0, 1, 2, 5, -1, True)),
    **dict.fromkeys(("keepdims", "descending", "full_matrices", "increasing", "right"), (0, 1)),
    **dict.fromkeys(("rowvar", "invert", "upper", "sparse", "wrap", "equal_nan"), (False, True)),
    **dict.fromkeys(("return_index", "return_inverse", "return_counts"), (False, True)),
    **dict.fromkeys(("val", "vals", "fill", "constant_values", "left"), NUMBERS),
    "q": (0, 1, 0.5, 0.999, 25, 75.5, -1, float("nan"), True, [0.1, 0.2]),
    "norm": ("ortho", "forward", "backward", None, "x"),
    "s": (None, (2, 3)),
    "axes": (None, 0, 1, 2, (0,), (0, 1), (-1,), (), ([0], [1]), ([1], [1])),
    "mode": ("full", "same", "valid", "reduced", "complete", "raise", "clip", "edge", "x"),
    "ord": (None, 1, 2, 2.0, "fro", np.inf, 0),
    "repeats": (0, 1, 3, -1),
    "repetitions": (0, 1, 2, (2, 1), -1),
    "pad_width": (0, 1, 3, -1),
    "deg": (False, True, 2),
    "ind_or_sections": (1, 2, 3),
    "indices_or_sections": (1, 2, 3, 0, [1]),
    "side": ("left", "right", "x"),
    "UPLO": ("L", "U", "x"),
    "bitorder": ("big", "little", "x"),
    "minlength": (0, 5, -1, True),
    "dims": ((3, 3), (3,), (2, 3, 4), (0, 3)),
    "shape": ((2, 3), (4,), (0, 3), (-1, 3), 5),
    "dimensions": ((2, 3), (0, 2), (3,), [2, 3], (-1, 2)),
    "d": (1.0, 2, -1.5, True),
    "beta": (0, 14, 8.6, -1.0),
    "stop": (0, 1, 2.5, -1, 400, True, float("inf")),
    "num": (0, 1, 2, 5, 51, -1, True),
    "base": (10.0, 2, 0.5, -2.0),
    "endpoint": (False, True),
    "subscripts": ("i->", "ij->i", "ij->j", "ii->i", "ijk->ik", "ij,kj->ik", "i,i", "ij,jk->ki"),
    "funclist": ([1], [1, 2], [0.5, 1, 2]),
    "spacing": (1, 0.5, 2),
    "args": (),
}
NAMED = {
    "bins": {
        "histogram": (1, 2, 7, 0, -1),
        "histogram_bin_edges": (1, 2, 7, 0),
        "histogram2d": (1, 2, 7),
    }
}


def short_functions():
    """{name: function}: what short_calls.py has decorated in the package, linalg and fft."""
    found = {}
    for prefix, module in (("", vg), ("linalg.", vg.linalg), ("fft.", vg.fft)):
        for name in module.__all__ if prefix else dir(vg):
            space = getattr(getattr(module, name), "__globals__", {})
            if space.get("write_out") is not None and space["composed"].__name__ == name:
                found[prefix + name] = getattr(module, name)
    return found


FUNCTIONS = short_functions()


class Draw:
    """The arguments of one call, as often as they are asked for: each time new Arrays."""

    def __init__(self, rng, name, backend):
        self.rng, self.name, self.backend = rng, name, backend
        self.is_finite = name.startswith("linalg.") or rng.random() < 0.4
        self.dtype, self.shape = self.any(DTYPES), self.any_shape()
        if name.startswith("linalg.") and rng.random() < 0.7:
            self.shape = (*self.shape[:1], 3, 3)[-2:]
        self.arrays = []
        self.arguments, self.options, in_place = [], {}, True
        for one in inspect.signature(FUNCTIONS[name]).parameters.values():
            drawn = NAMED.get(one.name, {}).get(name, VALUES.get(one.name))
            if one.default is inspect.Parameter.empty or one.kind is one.VAR_POSITIONAL:
                assert drawn is not None or one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL), (
                    f"{name}: VALUES does not say what {one.name} can be"
                )
                if drawn:
                    self.arguments += self.drawn(drawn, one.kind is one.VAR_POSITIONAL)
            elif drawn is None or rng.random() >= 0.25:
                in_place = False
            elif in_place and one.kind is not one.KEYWORD_ONLY and rng.random() < 0.5:
                self.arguments += self.drawn(drawn, False)
            elif one.kind is not one.POSITIONAL_ONLY:
                in_place = False
                (self.options[one.name],) = self.drawn(drawn, False)

    def any(self, choices):
        return choices[self.rng.integers(len(choices))]

    def any_shape(self):
        dimensions = self.any((0, 1, 1, 1, 2, 2, 2, 3))
        return tuple(self.any((0, 1, 2, 3, 4, 4, 5)) for _ in range(dimensions))

    def drawn(self, what, several):
        """Return a list of what to give for a parameter; arrays are tuples that `made` reads."""
        if several or what in ("arrays", "bool arrays"):
            dtype = "bool" if what == "bool arrays" else None
            arrays = [self.array(dtype) for _ in range(self.any((1, 2, 3)))]
            return arrays if several else [arrays]
        kinds = {"array": None, "indices": "int64", "bools": "bool"}
        return [self.array(kinds[what])] if isinstance(what, str) else [self.any(what)]

    def array(self, dtype=None):
        alike = self.rng.random() < 0.75
        shape = self.shape if alike else self.any_shape()
        dtype = dtype or (self.dtype if self.rng.random() < 0.85 else self.any(DTYPES))
        return ("an array", dtype, shape, self.any(range(6)), int(self.rng.integers(2**31)))

    def made(self, value):
        if isinstance(value, list):
            return [self.made(one) for one in value]
        if not isinstance(value, tuple) or value[:1] != ("an array",):
            return value
        array = wrap(self.backend, laid(values_of(*value[1:3], value[4], self.is_finite), value[3]))
        self.arrays.append(array)
        return array

    def outcome(self, watched):
        """Return what the call gives, or the error, and its Arrays."""
        self.arrays = []
        arguments = [self.made(one) for one in self.arguments]
        options = {key: self.made(one) for key, one in self.options.items()}
        call = FUNCTIONS[self.name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if watched:
                    with observe(lambda call: None):
                        return call(*arguments, **options), self.arrays
                return call(*arguments, **options), self.arrays
            except Exception as error:
                return error, self.arrays

    def __repr__(self):
        given = [*map(repr, self.arguments), *(f"{k}={v!r}" for k, v in self.options.items())]
        return f"{self.name}({', '.join(given)}), finite: {self.is_finite}"


def values_of(dtype, shape, seed, is_finite):
    """Return an ndarray of small numbers, some of them special."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    if dtype.kind != "f":
        return np.asarray(random.integers(0 if dtype.kind == "u" else -4, 5, shape), dtype)
    values = np.asarray(random.integers(-8, 9, shape) / 4)
    if not is_finite and values.size:
        places = random.random(shape) < 0.2
        values = np.where(places, random.choice(SPECIAL, shape), values)
    return values.astype(dtype)


def laid(values, layout):
    """Return the same values in another layout."""
    if not values.ndim or not layout:
        return values
    if layout == 1:
        return np.asfortranarray(values)
    if layout == 2:
        return values[::-1].copy()[::-1]
    if layout == 3:
        return np.repeat(values, 2, axis=-1)[..., ::2]
    if layout == 4:
        return values.T.copy().T
    return np.broadcast_to(values[:1], values.shape) if values.shape[0] else values


def difference(found, expected, tolerance):
    """Return how two outcomes differ, or None."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        same = type(found) is type(expected) and str(found) == str(expected)
        return None if same else f"{found!r}, not {expected!r}"
    if type(found) is not type(expected):
        return f"{type(found)}, not {type(expected)}"
    if isinstance(expected, (tuple, list)):
        if len(found) != len(expected):
            return f"{len(found)} results, not {len(expected)}"
        pairs = zip(found, expected, strict=True)
        return next(filter(None, (difference(*pair, tolerance) for pair in pairs)), None)
    if isinstance(expected, vg.Array):
        one, other = host(found), host(expected)
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{one.dtype} {one.shape}, not {other.dtype} {other.shape}"
        if found.flags.writeable != expected.flags.writeable:
            return f"writeable: {found.flags.writeable}, not {expected.flags.writeable}"
        eps = max(EPS.get(str(one.dtype), 0.0), tolerance if one.dtype.kind in "fc" else 0.0)
        if one.dtype.kind not in "fc":
            return None if np.array_equal(one, other) else f"{one}, not {other}"
        largest = np.abs(other[np.isfinite(other)]).max(initial=0.0).astype(np.float64)
        with np.errstate(all="ignore"):
            alike = np.allclose(one, other, rtol=eps, atol=eps * largest, equal_nan=True)
        return None if alike else f"{one}, not {other}"
    same = found == expected or found is expected or (found != found and expected != expected)
    return None if same else f"{found!r}, not {expected!r}"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_random_calls_are_those_of_the_long_way(device, rng, name):
    backend = vg.Device(device).backend
    for _ in range(ROUNDS):
        draw = Draw(rng, name, backend)
        (found, arrays), (expected, others) = draw.outcome(False), draw.outcome(True)
        if name not in OPEN or isinstance(expected, Exception):
            told = difference(found, expected, ROUNDED.get(name, 0.0))
            assert told is None, f"{draw}: {told}"
        for one, other in zip(arrays, others, strict=True):
            told = difference(one, other, 0.0)
            assert told is None, f"{draw}: an operand is {told}"
