"""Calls with arguments drawn at random: every device does as the CPU device, or refuses as it does.

Most draws are mistakes: a shape where an axis belongs, a float for an index, the ends of integers,
another byte order, an `out` that does not fit. The exception has to be one of a caller's mistakes,
of the same type everywhere, and to leave all arrays as they were, but for what was written to
before a card found an index out of range. A failure prints the call; its arguments follow from
--seed and the call's number.
"""

import inspect

import helpers
import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu.functions import files, states, texts

CALLS = 2500
KINDS = ("function", "function", "method", "index")
MISTAKES = (
    ValueError,
    TypeError,
    IndexError,
    OverflowError,
    MemoryError,
    BufferError,
)  # and what is one of them
MISTAKES += (vg.DeviceUnavailableError,)  # device="cuda:99"

SHAPES = [(), (1,), (3,), (2, 3), (3, 2), (0,), (0, 3), (3, 0), (1, 3), (2, 2, 3), (3, 3)]
LAYOUTS = {
    "as it is": lambda x: x,
    "backwards": lambda x: x[::-1] if x.ndim else x,
    "transposed": lambda x: x.T,
    "read-only": lambda x: vg.broadcast_to(x[None], (2, *x.shape))[0],
}


class Odd:
    """An integer by its `__index__` alone."""

    def __index__(self):
        return 1


# What arguments are drawn from beside arrays. None of it asks for much memory.
VALUES = [
    0, 1, -1, 2, -3, 2**63, 2**64, -(2**63) - 1, 10**400, True, False, None, 0.0, 1.5, -0.0,
    float("nan"), float("inf"), 1e300, 1j, "x", "", b"x", "relu", "gelu", "float32", "int8", "ieee",
    "cuda:99", (), (0,), (1,), (-1,), (0, 1), (0, 0), [0, 1], (2, 3), (-1, 3), (2**40, 2**40),
    (1.5,), (None,), ([0], [1]), range(2), {}, slice(0, 2), Ellipsis, object(), Odd(), np.int8(1),
    np.uint64(2**64 - 1), np.float16(1.5), np.float64(1e300), np.bool_(True), np.array(1),
    np.array([1]), np.array(1.5), np.array([1, 2], ">i4"), np.array(["x"]), np.array([1j]),
    np.float32, np.dtype(">f8"),
]  # fmt: skip
KEYS = [
    0, -1, 5, 2**70, slice(None), slice(None, None, -1), slice(2**70, -(2**70), -(2**66)),
    slice(None, None, 0), slice("x"), slice(1, 2), (slice(0, 0),), Ellipsis, None, (), (0, 0),
    (slice(None), 0), (Ellipsis, 0), (None, Ellipsis, None), (0, 0, 0, 0), (Ellipsis, Ellipsis),
    True, np.True_, 1.5, "x", [0], np.array(1), np.int8(-1), np.array([0, 1]),
]  # fmt: skip

FUNCTIONS = {
    name: getattr(vg, name, None) or getattr(vg.nn.functional, name)
    for name in {*vg.functions.__all__, *vg.nn.functional.__all__}
    if not (
        name.startswith(("get_", "set_", "printoptions"))
        or name in files.__all__
        or name in texts.__all__
        or name in states.__all__
    )
    and name not in ("dropout", "array_repr")  # random; it says the device
    and name not in ("c_", "index_exp", "mgrid", "ndenumerate", "ndindex", "ogrid", "r_", "s_")
}
# Without what says where the values are, or asks for them on the host, and without gradients, about
# which test_autograd.py is: they raise RuntimeError, as torch does.
METHODS = {
    name: method
    for name, method in vars(vg.Array).items()
    if inspect.isfunction(method)
    and not name.startswith(
        ("__array", "__buffer", "__dlpack", "__repr", "__reduce", "__iter", "__new", "__del")
    )
    and name not in ("backward", "register_hook", "requires_grad_", "dump", "dumps", "tofile")
}


class Drawn:
    """An array to be made on a device: small integers of any dtype and layout."""

    def __init__(self, rng):
        dtype, shape = pick(rng, helpers.DTYPES), pick(rng, SHAPES)
        self.values = np.asarray(rng.integers(0, 4, shape)).astype(dtype)
        self.layout = pick(rng, list(LAYOUTS))

    def on(self, device):
        return LAYOUTS[self.layout](vg.asarray(self.values, device=device))

    def __repr__(self):
        return f"{self.values.dtype}{self.values.shape} {self.layout}"


def pick(rng, options):
    return options[rng.integers(len(options))]


class Call:
    """A function or method of the package and its arguments."""

    def __init__(self, seed, number):
        rng = np.random.default_rng([seed, number])
        kind = pick(rng, KINDS)
        if kind == "index":
            self.name = pick(rng, ["__getitem__", "__setitem__"])
            self.function = METHODS[self.name]
            self.arguments = [Drawn(rng), pick(rng, KEYS)]
            self.arguments += [argument(rng)] if self.name == "__setitem__" else []
            self.options = {}
            return
        table = FUNCTIONS if kind == "function" else METHODS
        self.name = pick(rng, sorted(table))
        self.function = table[self.name]
        parameters = inspect.signature(self.function).parameters.values()
        by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        fewest = sum(p.default is p.empty for p in by_place)
        count = rng.integers(fewest, len(by_place) + 1)
        self.arguments = [argument(rng) for _ in range(count)]
        if kind == "method":
            self.arguments[0] = Drawn(rng)
        named = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]
        self.options = {name: argument(rng) for name in named if rng.integers(4) == 0}

    def run(self, device):
        """What came of it, as text; the values of the result and of the arrays, after the call."""
        arguments = [made(value, device) for value in self.arguments]
        options = {name: made(value, device) for name, value in self.options.items()}
        arrays = [x for x in (*arguments, *options.values()) if isinstance(x, vg.Array)]
        bound = inspect.signature(self.function).bind(*arguments, **options).arguments
        before, late = [helpers.bits(x) for x in arrays], False
        try:
            with vg.device(device):
                result = self.function(*arguments, **options)
                if device != "cpu":
                    late = True  # indices out of range are found by the next wait
                    vg.synchronize(device)
        except MISTAKES as error:
            error.__traceback__ = None
            written = (*arrays[:1], bound.get("out")) if late else ()
            for x, bits in zip(arrays, before, strict=True):
                is_written = any(x is target for target in written)
                assert is_written or helpers.bits(x) == bits, f"{error!r} changed an array"
            assert not late or isinstance(error, (IndexError, np.linalg.LinAlgError)), repr(error)
            return type(error).__name__, []
        results = result if isinstance(result, (tuple, list)) else (result,)
        results = [y for x in results for y in (x if isinstance(x, list) else [x])]
        values = [helpers.host(x) for x in (*results, *arrays) if is_array(x)]
        plain = [x for x in results if not is_array(x)]
        shapes = [(str(x.dtype), x.shape) for x in values]
        return f"{plain} {shapes}", [] if self.name.startswith("empty") else values

    def __repr__(self):
        return f"{self.name}(*{self.arguments}, **{self.options})"


def argument(rng):
    return Drawn(rng) if rng.integers(2) else pick(rng, VALUES)


def made(value, device):
    """An argument of one call: nothing that the call writes to is another one's."""
    if isinstance(value, Drawn):
        return value.on(device)
    return value.copy() if isinstance(value, np.ndarray) else value


def is_array(x):
    return isinstance(x, (vg.Array, np.ndarray, np.generic))


def are_close(a, b):
    """The devices' functions differ by some ulps."""
    if not helpers.is_float(a.dtype) and a.dtype.kind != "c":
        return np.array_equal(a, b)
    if a.dtype.kind == "c":
        return are_close(a.real, b.real) and are_close(a.imag, b.imag)
    close = 2e-2 if a.dtype in helpers.HALVES else 1e-5
    return np.allclose(a.astype(np.float64), b.astype(np.float64), close, close, equal_nan=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mistakes_are_the_same_everywhere(device, request):
    seed = request.config.getoption("--seed")
    kinds = set()
    for number in range(CALLS):
        call = Call(seed, number)
        try:
            expected, values = call.run("cpu")
            found, others = call.run(device) if device != "cpu" else (expected, values)
            assert found == expected, f"{found}, on the CPU {expected}"
            assert all(map(are_close, others, values)), f"{others}, on the CPU {values}"
        except Exception as error:
            pytest.fail(
                f"{type(error).__name__}: {error}\non {device}, --seed {seed}, {number}: {call}"
            )
        kinds.add(expected if expected.endswith("Error") else "result")
    assert kinds >= {"result", "ValueError", "TypeError", "IndexError", "AxisError"}
    assert "OverflowError" in kinds
