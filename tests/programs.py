"""Random programs: lines of Python whose values are small integers in every dtype.

A program is text, such as

    v3 = add(v0, v1[::-1])
    v4 = copy(v3)
    maximum(v4[1:], v4[:-1], out=v4[1:])

and runs with this library's functions on any device, or with NumPy's on exact integers
(`Reference`), which are then rounded to the dtype of the result. A result that has grown is cut
down before anything uses it, so float32 holds every intermediate result, and no bit may differ, in
whatever order a device adds. Layers and the like (program_layers.py) end a way: what they give is
rounded, and nothing uses it. Only copies that nothing else looks at are written to: whether a
reshape is a view is not said.
"""

import functools
import itertools
import re

import helpers
import numpy as np
import program_functions as table
import program_layers as layers

import pyvecgpu as vg

LINES = (12, 25)  # of a program, at least and less than
SMALL = 64  # of |x|, for operands
LARGEST = 4000  # elements of a value
LIMIT = 2**15  # of |x|: float16 has such numbers, and float32 counts to 2**24
SHAPES = [(), (1,), (7,), (33,), (3, 5), (5, 3), (1, 4), (6, 1), (2, 3, 4), (0, 3), (17, 19)]
EVERY = ":", "::-1", "1:", "::2", ":-1"  # slices, as text
WORD = re.compile(r"\bv\d+\b")
BINARY = (
    *("add", "multiply", "maximum", "minimum"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
)
SHARED = (
    *(*BINARY, "subtract", "negative", "abs", "where", "matmul", "fmax", "fmin", "isclose"),
    *("sum", "max", "min", "argmax", "permute_dims", "reshape", "broadcast_to", "nan_to_num"),
    *("clip", "concat", "stack", "flip", "roll", "tril", "sort", "take", "cumulative_sum"),
    *table.NAMES,
)  # functions that NumPy has by the same name
DTYPES = {str(dtype): dtype for dtype in helpers.DTYPES}


class Reference:
    """NumPy's functions, on int64."""

    def __init__(self):
        self.functions = {name: getattr(np, name) for name in SHARED}
        self.functions |= {
            "relu": lambda x, out=None: np.maximum(x, 0, out=out),
            "astype": lambda x, dtype: x != 0 if dtype.kind == "b" else x.copy(),
            "copy": lambda x: x.copy(order="C"),
            "argsort": lambda x, axis=-1: np.argsort(x, axis=axis, kind="stable"),
        }
        self.functions |= {k: layers.in_float64(f) for k, f in layers.PLAIN.items()}

    def put(self, x):
        return x.astype(np.int64)

    def keep(self, x, dtype):
        """What a dtype makes of exact integers, again as integers."""
        x = np.asarray(x)
        if helpers.is_float(dtype):
            return helpers.rounded(x.astype(np.float64), dtype).astype(np.int64)
        return x.astype(np.int64).astype(dtype).astype(np.int64)


class OnDevice:
    """This library's functions."""

    FUNCTIONS = {name: getattr(vg, name) for name in ("relu", "astype", "argsort", *SHARED)}

    def __init__(self, device):
        self.device = device
        self.functions = {**self.FUNCTIONS, **layers.LAYERS, "copy": lambda x: x.copy()}

    def put(self, x):
        return vg.asarray(x, device=self.device)


@functools.lru_cache(1000)
def layer_of(line):
    """The function of a line whose result is rounded, else None."""
    found = re.match(r"v\d+ = (\w+)\(", line)
    return found[1] if found and found[1] in layers.LAYERS else None


@functools.lru_cache(1000)
def compiled(line):
    """The code of a line, and the name that it makes or writes to."""
    return compile(line, "<program>", "exec"), WORD.search(line.split("out=")[-1])[0]


def run_line(line, values, scope):
    """Run one line on {name: value} with the functions in `scope`; the name as of `compiled`."""
    code, target = compiled(line)
    exec(code, scope, values)
    return target


def scope_of(place):
    return {**place.functions, **DTYPES}


class Program:
    """Inputs {name: ndarray} and lines; what they give on the CPU and by NumPy.

    values: what they gave on the CPU when the program was made, if they did.
    """

    def __init__(self, inputs, lines, values=None):
        self.inputs, self.lines, self.values = inputs, list(lines), values

    def run(self, device):
        """{name: value} on a device."""
        place = OnDevice(device)
        values, scope = {name: place.put(x) for name, x in self.inputs.items()}, scope_of(place)
        for line in self.lines:
            run_line(line, values, scope)
        return values

    def reference(self, dtypes):
        """{name: value} by NumPy, in the dtypes given."""
        place = Reference()
        values, scope = {name: place.put(x) for name, x in self.inputs.items()}, scope_of(place)
        for line in self.lines:
            name = run_line(line, values, scope)
            if not layer_of(line):
                values[name] = place.keep(values[name], dtypes[name])
        return {name: x if x is None or x.dtype == np.float64 else self.cast(x, dtypes[name])
                for name, x in values.items()}  # fmt: skip

    def cast(self, x, dtype):
        """Exact integers, in a dtype."""
        is_float = helpers.is_float(dtype)
        return helpers.rounded(x.astype(np.float64), dtype) if is_float else x.astype(dtype)

    def problem(self, device):
        """What is wrong with the values on a device; None if nothing is.

        The CPU's are compared with NumPy's, those of a card with the CPU's.
        """
        try:
            on_cpu = self.run("cpu") if self.values is None else self.values
            if device == "cpu":
                values = on_cpu
                expected = self.reference({name: x.dtype for name, x in values.items()})
            else:
                values, expected = self.run(device), on_cpu
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        functions = {line.split(" = ")[0]: layer_of(line) for line in self.lines}
        for name, value in values.items():
            if expected[name] is None:
                continue
            got, wanted = helpers.host(value), helpers.host(expected[name])
            function = functions.get(name)
            if function:
                right = layers.close(got, wanted, function == "slope")
            else:
                right = same(got, wanted)
            if not right:
                return (f"{name} is {got.dtype} {got.shape} {got.tolist()}, "
                        f"expected {wanted.dtype} {wanted.shape} {wanted.tolist()}")  # fmt: skip
        return None

    def without(self, number):
        """The program without a line and all that follows from it."""
        gone, kept = set(), []
        for i, line in enumerate(self.lines):
            made = line.split(" = ")[0] if re.match(r"v\d+ = ", line) else None
            if i == number or gone & set(WORD.findall(line)):
                gone |= {made} - {None}
            else:
                kept.append(line)
        used = set(WORD.findall(" ".join(kept)))
        return Program({k: x for k, x in self.inputs.items() if k in used}, kept)

    def shrunk(self, device):
        """A shorter program that is wrong as well."""
        program, number = self, len(self.lines) - 1
        while number >= 0:
            shorter = program.without(number)
            program = shorter if shorter.problem(device) else program
            number = min(number, len(program.lines)) - 1
        return program

    def __str__(self):
        lines = [f"{k} = asarray({x.tolist()}, dtype={x.dtype})" for k, x in self.inputs.items()]
        return "\n".join([*lines, *self.lines])


def same(a, b):
    """Equal bits, but for the sign of zeros: which of two zeros is larger is not said."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    zero = a.dtype.type(0)
    return np.add(a, zero).tobytes() == np.add(b, zero).tobytes()


def largest(value):
    values = helpers.host(value)
    return 0 if values.size == 0 else max(abs(float(values.max())), abs(float(values.min())))


# ---- Making one ----------------------------------------------------------------------------------


def draw(seed, index):
    """The program of a seed and an index."""
    return Maker(np.random.default_rng([seed, index])).program()


class Maker:
    """Grows a program line by line; `values` are the CPU's so far."""

    def __init__(self, rng):
        self.rng, self.lines, self.inputs = rng, [], {}
        for i in range(3):
            dtype = self.pick(helpers.DTYPES)
            self.inputs[f"v{i}"] = helpers.integers(rng, self.pick(SHAPES), dtype, -4, 4)
        place = OnDevice("cpu")
        self.values = {name: place.put(x) for name, x in self.inputs.items()}
        self.scope = scope_of(place)
        self.largest = {name: largest(x) for name, x in self.values.items()}
        self.own = []  # copies of which there is no view

    def program(self):
        kinds = (self.unary, self.binary, self.binary, self.scalar, self.reduce, self.product,
                 self.view, self.view, self.cast, self.choose, self.copy, self.write, self.write,
                 self.assign, self.scatter, self.move, self.move, self.near, self.layer, self.layer,
                 *[self.tabled] * 6)  # fmt: skip
        for _ in range(self.rng.integers(*LINES)):
            while not self.add(self.pick(kinds)()):
                pass
        return Program(self.inputs, self.lines, self.values)

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def add(self, line):
        """Add a line if there is one and its numbers stay within the limit."""
        if line is None:
            return False
        is_new = "out=" not in line and " = " not in line
        line = f"v{len(self.values)} = {line}" if is_new else line
        changed = WORD.search(line.split("out=")[-1])[0]
        before = None if is_new else self.values[changed].copy()
        run_line(line, self.values, self.scope)
        value = self.values[changed]
        if layer_of(line):
            self.lines.append(line)
            self.largest[changed] = np.inf  # no operand
            return True
        grown = largest(value)
        if not (grown <= LIMIT and value.size <= LARGEST):
            if is_new:
                del self.values[changed]
            else:
                self.values[changed][...] = before
            return False
        self.lines.append(line)
        self.largest[changed] = grown
        if is_new and grown > SMALL:
            self.add(f"minimum(maximum({changed}, 0), 8)")
        return True

    def operand(self, accept=lambda x: True):
        """The name of a small value, rather a late one, that `accept` takes; None without one."""
        small = [(k, x) for k, x in self.values.items() if self.largest[k] <= SMALL]
        fitting = [k for k, x in small if accept(x)]
        if not fitting:
            return None
        return fitting[-1 - min(int(self.rng.geometric(0.4)) - 1, len(fitting) - 1)]

    def key(self, shape):
        """An index of a shape, as text: a view."""
        parts = [self.pick([*EVERY, "0"] if length else EVERY) for length in shape]
        return f"[{', '.join([*parts, '...'])}]"

    # Kinds of lines: the text of one, or None if no value suits it.

    def unary(self):
        name = self.operand(lambda x: x.dtype.kind in "ifV")
        return name and f"{self.pick(['negative', 'abs', 'relu'])}({name})"

    def binary(self):
        pair = self.pair()
        return pair and f"{self.function(*pair)}({pair[0]}, {pair[1]})"

    def pair(self):
        """Two values that broadcast."""
        a = self.operand()
        left = self.values[a] if a else None
        b = a and self.operand(lambda x: table.beside(table.ALL)(left, x))
        return (a, b) if b else None

    def function(self, *names):
        kinds = {self.values[name].dtype.kind for name in names}
        return self.pick(BINARY if kinds & set("bu") else (*BINARY, "subtract"))

    def scalar(self):
        name, value = self.operand(), self.pick([0, 1, 2, 3, 2.0, True])
        function = self.pick(["add", "multiply", "maximum", "less_equal", "greater"])
        pair = (name, value) if self.rng.integers(2) else (value, name)
        return name and f"{function}({pair[0]}, {pair[1]})"

    def reduce(self):
        name = self.operand(lambda x: x.size > 0)
        function = self.pick(["sum", "max", "min", "argmax"])
        if name is None:
            return None
        ndim = self.values[name].ndim
        axes = [None, *range(-ndim, ndim)]
        if function != "argmax":
            axes += list(itertools.permutations(range(ndim), 2))
        keepdims = bool(self.rng.integers(2))
        return f"{function}({name}, axis={self.pick(axes)}, keepdims={keepdims})"

    def product(self):
        a = self.operand(lambda x: x.ndim > 0)
        if a is None:
            return None
        left = self.values[a]
        b = self.operand(lambda x: multiplies(left.shape, x.shape) and table.signed(left, x))
        if b is not None:
            return f"matmul({a}, {b})"
        return f"matmul({a}, {a}.mT)" if left.ndim > 1 else None

    def view(self):
        name = self.operand(lambda x: x.ndim > 0)
        if name is None:
            return None
        shape = self.values[name].shape
        self.seen(name)
        kind = self.rng.integers(4)
        if kind == 0:
            return (
                f"permute_dims({name}, {tuple(int(i) for i in self.rng.permutation(len(shape)))})"
            )
        if kind == 1:
            to = self.pick([(-1,), (*shape, 1), shape[::-1], (1, *shape)])
            return None if to == (-1,) and 0 in shape else f"reshape({name}, {to})"
        if kind == 3 and self.rng.integers(4) == 0:
            return f"flip({name}, axis={int(self.rng.integers(len(shape)))})"
        if kind == 2:
            return f"broadcast_to({name}, {(int(self.rng.integers(1, 4)), *shape)})"
        return name + self.key(shape)

    def seen(self, name):
        """A value that others may share memory with from now on."""
        self.own = [one for one in self.own if one != name]

    def cast(self):
        name, dtype = self.operand(), self.pick(helpers.DTYPES)
        self.seen(name)
        if name and dtype.kind == "u" and self.values[name].dtype.kind in "ifV":
            return f"astype(abs({name}), {dtype})"
        return name and f"astype({name}, {dtype})"

    def choose(self):
        condition = self.operand(lambda x: x.dtype.kind == "b")
        if condition is None:
            return None
        shape = self.values[condition].shape
        name = self.operand(lambda x: table.broadcasts(shape, x.shape))
        return name and f"where({condition}, {name}, 3)"

    def move(self):
        """Elements that change places, or are added up."""
        name = self.operand(lambda x: x.ndim > 0 and x.size > 0)
        if name is None:
            return None
        shape = self.values[name].shape
        axis = int(self.rng.integers(-len(shape), len(shape)))
        other = self.operand(lambda x: x.shape == shape and table.signed(x, self.values[name]))
        lines = [
            f"roll({name}, {int(self.rng.integers(-9, 9))}, axis={axis})",
            f"sort({name}, axis={axis})",
            f"argsort({name}, axis={axis})",
            f"take({name}, argmax({name}, axis={axis}) * 0, axis={axis})",
            f"cumulative_sum({name}, axis={axis})",
        ]
        if other:
            lines += [f"{self.pick(['concat', 'stack'])}(({name}, {other}), axis={axis})"] * 2
        if len(shape) > 1:
            lines.append(f"tril({name}, k={int(self.rng.integers(-2, 3))})")
        return self.pick(lines)

    def near(self):
        """What is about nearness and bounds."""
        name = self.operand(lambda x: x.dtype.kind in "fV")
        other = name and self.operand(
            lambda x: x.dtype.kind in "fV" and table.broadcasts(x.shape, self.values[name].shape)
        )
        return other and self.pick([
            f"isclose({name}, {other})", f"fmax({name}, {other})", f"fmin({name}, {other})",
            f"nan_to_num({name})", f"clip({name}, -2, 3)",
        ])  # fmt: skip

    def tabled(self):
        """Of the table; results may be views of the operands."""
        line = table.line(self.rng, self.pick, self.operand, self.values)
        for name in WORD.findall(line or ""):
            self.seen(name)
        return line

    def layer(self):
        return layers.line(self.rng, self.pick, self.operand, self.values)

    def copy(self):
        name = self.operand(lambda x: x.ndim > 0 and x.size > 0)
        if name:
            self.own.append(f"v{len(self.values)}")
        return name and f"copy({name})"

    def target(self):
        """(name, view of it as text, that view) of a copy that can be written to."""
        own = [one for one in self.own if self.largest.get(one, LIMIT) <= SMALL]
        if not own:
            return None
        name = self.pick(own)
        part = name + self.key(self.values[name].shape)
        return name, part, eval(part, {}, self.values)

    def write(self):
        """A function whose `out` is part of a copy; its operands too, or other values."""
        found = self.target()
        if found is None:
            return None
        name, part, view = found
        other = self.operand(lambda x: fits(x, view) and casts(x.dtype, view.dtype))
        keys = [self.key(self.values[name].shape) for _ in range(6)]
        pieces = [name + key for key in keys
                  if eval(f"v{key}", {}, {"v": self.values[name]}).shape == view.shape]  # fmt: skip
        a = self.pick([part, *pieces])
        b = self.pick(
            [part, *pieces, "True" if view.dtype == bool else "2", *filter(None, [other])]
        )
        return f"{self.pick(BINARY[:4])}({a}, {b}, out={part})"

    def assign(self):
        """A value, broadcast and cast, in a part of a copy."""
        found = self.target()
        if found is None:
            return None
        name, part, view = found
        other = self.operand(lambda x: fits(x, view) and x is not self.values[name])
        return other and f"{part} = {other}"

    def scatter(self):
        """A number where a mask says so, or at indices along an axis."""
        found = self.target()
        if found is None:
            return None
        _, part, view = found
        number = 1 if view.dtype.kind == "b" else 3
        mask = self.operand(lambda x: x is not view and table.is_mask(view, x))
        if mask and self.rng.integers(2):
            return f"{part}[astype({mask}, bool)] = {number}"
        key = self.pick(["[0, -1]", "..., [0]", "[[0], [-1]]"])
        return f"{part}[{key}] = {number}" if view.ndim and view.size else None


def fits(value, view):
    """Whether a value can be assigned to a view, and no number is beyond the dtype."""
    shape = view.shape
    return (
        value.ndim <= len(shape)
        and all(x in (1, y) for x, y in zip(reversed(value.shape), reversed(shape), strict=False))
        and (view.dtype.kind not in "bu" or value.dtype.kind in "bu")
    )


def casts(dtype, to):
    """Whether what such operands give together is rounded once, by `out`, and may go there."""
    both = helpers.result_type(dtype, to)
    if helpers.is_float(to):
        return both in helpers.WIDE_FLOATS or both == to
    return both.kind == to.kind


def multiplies(a, b):
    inner = b[0] if len(b) == 1 else b[-2] if b else None
    return a[-1] == inner and table.broadcasts(a[:-2], b[:-2])
