"""Random programs of 5 to 20 operations give the same bits on every device as on the CPU.

Values are small integers in every dtype; a result that has grown is cut down before anything uses
it. So float32 holds every intermediate result exactly, and nothing may differ, in whatever order a
device adds. A failure prints the program and how to replay it:

    pytest tests/test_random_programs.py --seed SEED --programs N      (index < N)
"""

import itertools

import helpers
import numpy as np
import pytest

import pyvecgpu as vg

CHUNK = 50  # programs to a test
SMALL = 64  # of |x|, for operands
LIMIT = 2**22  # of |x|: float32 counts to 2**24
SHAPES = [(), (1,), (7,), (33,), (3, 5), (5, 3), (1, 4), (6, 1), (2, 3, 4), (0, 3), (17, 19)]


class Program:
    """A list of steps, made once by NumPy's reference values and then run on each device.

    A step is (text, function of the values so far). `values` holds the reference's results.
    """

    def __init__(self, seed, index):
        self.rng = np.random.default_rng([seed, index])
        self.inputs, self.steps, self.values = [], [], []
        for _ in range(3):
            dtype = self.pick(helpers.DTYPES)
            self.inputs.append(helpers.integers(self.rng, self.pick(SHAPES), dtype, -4, 4))
        with vg.device("cpu"):
            self.values = [vg.asarray(x) for x in self.inputs]
            for _ in range(self.rng.integers(5, 21)):
                self.grow()

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def operand(self, accept=lambda x: True):
        """The number of a small value, rather a late one, that `accept` takes; None without one."""
        small = [i for i, value in enumerate(self.values) if largest(value) <= SMALL]
        fitting = [i for i in small if accept(self.values[i])]
        if not fitting:
            return None
        return fitting[-1 - min(int(self.rng.geometric(0.4)) - 1, len(fitting) - 1)]

    def grow(self):
        """Add one step that works on the values so far and keeps them small."""
        kinds = (self.unary, self.binary, self.binary, self.scalar, self.reduce, self.product,
                 self.view, self.view, self.cast, self.choose, self.assign)  # fmt: skip
        step = None
        while step is None:
            step = self.pick(kinds)()
        self.append(*step)
        value = self.values[-1]
        if value.size and value.dtype.kind != "b" and largest(value) > SMALL:
            n = len(self.values) - 1
            self.append(
                f"minimum(maximum(v{n}, 0), 8)",
                lambda v: vg.minimum(vg.maximum(v[n], v[n].dtype.type(0)), v[n].dtype.type(8)),
            )

    def append(self, text, function):
        result = function(self.values)
        assert largest(result) <= LIMIT, f"{text} is too large for this test: {result}"
        self.steps.append((text, function))
        self.values.append(result)

    # Kinds of steps: each gives (text, function), or None if no value suits it.

    def unary(self):
        n, name = (
            self.operand(lambda x: x.dtype.kind in "if"),
            self.pick(["negative", "abs", "relu"]),
        )
        if n is not None:
            return f"{name}(v{n})", lambda v: getattr(vg, name)(v[n])

    def binary(self):
        n = self.operand()
        shape = self.values[n].shape
        m = self.operand(lambda x: broadcasts(shape, x.shape) and signed(self.values[n], x))
        names = [
            "add",
            "multiply",
            "maximum",
            "minimum",
            "equal",
            "not_equal",
            "less",
            "greater_equal",
        ]
        if m is not None:
            if not (self.values[n].dtype.kind in "bu" or self.values[m].dtype.kind in "bu"):
                names.append("subtract")
            name = self.pick(names)
            return f"{name}(v{n}, v{m})", lambda v: getattr(vg, name)(v[n], v[m])

    def scalar(self):
        n, value = self.operand(), self.pick([0, 1, 2, 3, 2.0, True])
        name = self.pick(["add", "multiply", "maximum", "less_equal", "greater"])
        if self.rng.integers(2):
            return f"{name}(v{n}, {value})", lambda v: getattr(vg, name)(v[n], value)
        return f"{name}({value}, v{n})", lambda v: getattr(vg, name)(value, v[n])

    def reduce(self):
        n, name = self.operand(lambda x: x.size > 0), self.pick(["sum", "max", "min", "argmax"])
        if n is None:
            return None
        ndim = self.values[n].ndim
        axes = [None, *range(-ndim, ndim)]
        if name != "argmax":
            axes += list(itertools.permutations(range(ndim), 2))
        axis, keepdims = self.pick(axes), bool(self.rng.integers(2))
        return (
            f"{name}(v{n}, axis={axis}, keepdims={keepdims})",
            lambda v: getattr(vg, name)(v[n], axis=axis, keepdims=keepdims),
        )

    def product(self):
        n = self.operand(lambda x: x.ndim > 0)
        if n is None:
            return None
        left = self.values[n]
        m = self.operand(lambda x: multiplies(left.shape, x.shape) and signed(left, x))
        if m is not None:
            return f"matmul(v{n}, v{m})", lambda v: vg.matmul(v[n], v[m])
        if left.ndim > 1:
            return f"matmul(v{n}, v{n}.mT)", lambda v: vg.matmul(v[n], v[n].mT)

    def view(self):
        n = self.operand(lambda x: x.ndim > 0)
        if n is None:
            return None
        shape = self.values[n].shape
        kind = self.rng.integers(4)
        if kind == 0:
            axes = tuple(int(i) for i in self.rng.permutation(len(shape)))
            return f"permute_dims(v{n}, {axes})", lambda v: vg.permute_dims(v[n], axes)
        if kind == 1:
            to = self.pick([(-1,), (*shape, 1), shape[::-1], (1, *shape)])
            if to != (-1,) or 0 not in shape:
                return f"reshape(v{n}, {to})", lambda v: vg.reshape(v[n], to)
            return None
        if kind == 2:
            to = (int(self.rng.integers(1, 4)), *shape)
            return f"broadcast_to(v{n}, {to})", lambda v: vg.broadcast_to(v[n], to)
        every = [slice(None), slice(None, None, -1), slice(1, None), slice(None, None, 2)]
        key = tuple(self.pick([*every, 0] if length else every) for length in shape)
        return f"v{n}[{key}]", lambda v: v[n][key]

    def cast(self):
        n, dtype = self.operand(), self.pick(helpers.DTYPES)
        if dtype.kind == "u" and self.values[n].dtype.kind in "if":
            return f"astype(abs(v{n}), {dtype})", lambda v: vg.astype(vg.abs(v[n]), dtype)
        return f"astype(v{n}, {dtype})", lambda v: vg.astype(v[n], dtype)

    def choose(self):
        n = self.operand(lambda x: x.dtype.kind == "b")
        if n is None:
            return None
        shape = self.values[n].shape
        m = self.operand(lambda x: broadcasts(shape, x.shape))
        if m is not None:
            return f"where(v{n}, v{m}, 3)", lambda v: vg.where(v[n], v[m], 3)

    def assign(self):
        """A copy of a value, changed in place through overlapping views."""
        n = self.operand(lambda x: x.ndim > 0 and x.shape[0] > 2)
        if n is None:
            return None

        def run(v):
            copy = v[n].copy()
            copy[1:] = copy[:-1]
            vg.maximum(copy, copy[::-1], out=copy)
            return copy

        return f"assign(v{n})", run

    # Running

    def run(self, device):
        """The values of every step, computed on a device."""
        values = [vg.asarray(x, device=device) for x in self.inputs]
        for _, function in self.steps:
            values.append(function(values))
        return values

    def __str__(self):
        lines = [f"v{i} = {x.dtype} {x.shape}: {x.tolist()}" for i, x in enumerate(self.inputs)]
        lines += [f"v{i} = {text}" for i, (text, _) in enumerate(self.steps, len(self.inputs))]
        return "\n".join(lines)


def largest(value):
    values = helpers.host(value)
    return 0 if values.size == 0 else max(abs(float(values.max())), abs(float(values.min())))


def broadcasts(a, b):
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


def multiplies(a, b):
    inner = b[0] if len(b) == 1 else b[-2] if b else None
    return a[-1] == inner and broadcasts(a[:-2], b[:-2])


def signed(a, b):
    """False for pairs in which NumPy turns negative numbers into huge ones, or leaves 64 bits."""
    return (
        "u" not in (a.dtype.kind, b.dtype.kind)
        or a.dtype.kind == b.dtype.kind
        or "b" in (a.dtype.kind, b.dtype.kind)
    )


def test_programs(device, chunk, request):
    seed = request.config.getoption("--seed")
    for index in range(chunk, min(chunk + CHUNK, request.config.getoption("--programs"))):
        program = Program(seed, index)
        try:
            values = program.run(device)
            for i, (value, expected) in enumerate(zip(values, program.values, strict=True)):
                assert_bits(value, expected, f"v{i}")
        except Exception as error:
            pytest.fail(
                f"{type(error).__name__}: {error}\n"
                f"on {device}, (seed, index) = ({seed}, {index}):\n{program}"
            )


def assert_bits(value, expected, name):
    """Equal bits, but for the sign of zeros: which of two zeros is larger is not said."""
    value, expected = helpers.host(value), helpers.host(expected)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape), name
    zero = value.dtype.type(0)
    same = np.add(value, zero).tobytes() == np.add(expected, zero).tobytes()
    assert same, f"{name}: got {value.tolist()}, expected {expected.tolist()}"


def pytest_generate_tests(metafunc):
    if "chunk" in metafunc.fixturenames:
        metafunc.parametrize("chunk", range(0, metafunc.config.getoption("--programs"), CHUNK))


def test_programs_are_not_trivial(request):
    """Results have elements that are not zero, and every kind of step occurs."""
    programs = [Program(request.config.getoption("--seed"), index) for index in range(60)]
    texts = " ".join(text for program in programs for text, _ in program.steps)
    for word in (
        "add",
        "multiply",
        "sum",
        "argmax",
        "matmul",
        "where",
        "reshape",
        "astype",
        "assign",
        "[",
    ):
        assert word in texts
    assert sum(largest(program.values[-1]) > 0 for program in programs) > 30
