"""Every way of using a card's arrays, as data: what the tests of order, faults and overlap run.

A Use has the shapes and dtypes of its arrays and a function of them that does one thing and gives
what comes of it, or None where it writes to its arrays. Together the uses call every method of
backends.METHODS with an array in each of its places, every row of operations.ROWS, and go every way
through the C library on which an operand is read or a result written: in place or by a copy, a
cast, a transposition, pieces of host memory or the pinned buffers of large copies.
"""

import ctypes
import math
from typing import NamedTuple

import helpers
import numpy as np
from references import lookup

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.native.abi import Algorithm, Cell, Update
from pyvecgpu.operations import ROWS, Operation

F32, F64, F16, I32, BOOL, C64 = (np.dtype(name) for name in ("f4", "f8", "f2", "i4", "?", "c8"))
I8, I64, U8, U64 = (np.dtype(name) for name in ("i1", "i8", "u1", "u8"))


class Use(NamedTuple):
    """`arrays`: {name: (shape, dtype)}; `run`: f(arrays) -> an Array, several, an ndarray, None."""

    arrays: dict
    run: object
    written: tuple = ()  # names of the arrays that it writes to
    natural: tuple = ()  # names of those without negative numbers


def values(use, seed=0):
    """Host values for the arrays of a use: small integers, no two arrays alike."""
    rng = np.random.default_rng([11, seed])
    return {
        name: helpers.integers(rng, *array, low=0 if name in use.natural else -8)
        for name, array in use.arrays.items()
    }


def results(value):
    """What a use gave, as a list of Arrays and ndarrays."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def assign(key, value):
    """The function v[key[0]][key[1]] = value(v)."""
    return lambda v: v[key[0]].__setitem__(key[1], value(v))


def of_rows():
    """Operations of operations.ROWS that have one or two operands, with and without `out`."""
    for row in ROWS:
        function = lookup(row.name) if row.family != "other" else None
        takes, three = (F32, 3.0) if "f" in row.domain else (I32, 3)
        gives = {"bool": BOOL, "index": np.dtype("i8")}.get(row.result, takes)
        if row.family == "unary":
            yield row.name, Use({"a": ((6, 37), takes)}, lambda v, f=function: f(v["a"]))
            arrays = {"a": ((6, 37), takes), "out": ((6, 37), takes)}
            yield (
                f"{row.name}, out",
                Use(arrays, lambda v, f=function: void(f(v["a"], out=v["out"])), ("out",)),
            )
        elif row.family == "binary":
            arrays = {"a": ((6, 37), takes), "b": ((6, 37), takes)}
            yield row.name, Use(arrays, lambda v, f=function: f(v["a"], v["b"]))
            yield (
                f"{row.name}, out",
                Use(
                    arrays | {"out": ((37, 6), gives)},
                    lambda v, f=function: void(f(v["a"], v["b"], out=v["out"].T)),
                    ("out",),
                ),
            )
            yield (
                f"{row.name}, scalar",
                Use(
                    {"a": ((6, 37), takes)},
                    lambda v, f=function, three=three: f(v["a"], three),
                ),
            )
        elif row.family == "reduce":
            arrays = {"a": ((6, 37), F32)}
            for axis in (0, 1, None):
                yield (
                    f"{row.name}, axis {axis}",
                    Use(arrays, lambda v, f=function, axis=axis: f(v["a"], axis=axis)),
                )
            yield (
                f"{row.name}, out",
                Use(
                    arrays | {"out": ((6, 2), gives)},
                    lambda v, f=function: void(f(v["a"], axis=1, out=v["out"][:, 1])),
                    ("out",),
                ),
            )


def numbers(view):
    """Random numbers into a view of an array."""
    return lambda v: void(vg.random.default_rng(1).random(out=view(v["a"])))


def void(_):
    """For uses that give nothing new: what they wrote to is among their arrays."""


def dense_backward(v, activation, before):
    return vg.nn.functional.dense_backward(v["g"], v["x"], v["w"], before, activation)


def step(algorithm, targets, gradients, renewed=None, **numbers):
    """A step of an optimiser; numbers: by the names of Update."""
    values = [0.0] * Update.UPDATE_COUNT
    for name, value in {"rate": 0.5, **numbers}.items():
        values[Update[f"UPDATE_{name.upper()}"]] = value
    apply(targets[0].backend, "optimize", algorithm, targets, gradients, values, renewed)


def normalize(v, groups, centered=True, statistics=True):
    """By the method itself; variances that are integers at random need a large epsilon."""
    numbers = (v.get("w"), v.get("b"), 1, 1, groups, centered, 100.0)
    return apply(v["x"].backend, "normalize", v["x"], *numbers, v["s"] if statistics else None)


def normalize_backward(v, groups, wanted=True):
    operands = (v["g"], v["x"], v.get("w"), v["s"], 1, 1, groups, True, 100.0, wanted)
    return apply(v["x"].backend, "normalize_backward", *operands)


def cross_entropy(v):
    operands = (v["x"], v["i"], v["w"], 3, 0.25, v["s"])
    return apply(v["x"].backend, "cross_entropy", *operands)


def pair_loss_backward(v, reduction=0, of_target=False):
    operands = (2, v.get("g"), v["x"], v["t"], 1.0, reduction, of_target)
    return apply(v["x"].backend, "pair_loss_backward", *operands)


def cross_entropy_backward(v):
    operands = (v.get("g"), v["x"], v["i"], v["w"], v["s"], 3, 0.25)
    return apply(v["x"].backend, "cross_entropy_backward", *operands)


def softmax_backward(v):
    code = Operation.LOG_SOFTMAX
    return apply(v["a"].backend, "softmax_backward", code, v["g"], v["a"], 1)


# Windows of 2 x 3 over pictures of 6 x 7, every second row: (3, 5) of them.
WINDOWS = (2, 3, 2, 1, 0, 0, 0, 0, 1, 1)
PICTURES, POOLED = ((2, 4, 6, 7), F32), ((2, 4, 3, 5), F32)


def windowed(method, *names, more=(), first=None, view=None):
    """A call of a method of the seam on arrays, of which `view` takes a part first."""

    def run(v):
        arrays = [v[name] if view is None else view(v[name]) for name in names]
        head = () if first is None else (int(first),)
        arrays += [None] * (len(names) < 2 and first is not None)
        return apply(arrays[0].backend, method, *head, *arrays, WINDOWS, *more)

    return run


def of_windows():
    """Pools and convolutions, by every kernel of theirs and with what they copy."""
    places, turned = (POOLED[0], I32), lambda x: x[..., ::-1]
    for name, code in (("largest", Operation.MAX), ("means", Operation.MEAN)):
        yield name, {"a": PICTURES}, windowed("pool", "a", more=(True,), first=code), ()
    call = windowed("pool", "a", more=(False,), first=Operation.MEAN, view=turned)
    yield "means of strided pictures", {"a": PICTURES}, call, ()
    call = windowed("pool", "a", "places", more=(True,), first=Operation.MAX)
    yield "largest, places", {"a": PICTURES, "places": places}, call, ("places",)
    call = windowed("pool_backward", "g", "places", more=(True, 6, 7), first=Operation.MAX)
    yield "largest, backward", {"g": POOLED, "places": places}, call, ()
    call = windowed("pool_backward", "g", more=(False, 6, 7), first=Operation.MEAN, view=turned)
    yield "means, backward, strided", {"g": POOLED}, call, ()
    for name, images, groups, dtypes in (
        ("", 1, 1, (F32, F32)),
        (" side by side", 2, 2, (F32, F32)),
        (" of few channels", 2, 4, (F32, F32)),
        (" of halves", 2, 1, (F16, F16)),
        (" of two dtypes", 1, 2, (F32, F64)),
    ):
        x, g = (images, 4, 6, 7), (images, 8, 3, 5)
        w = (8, 4 // groups, 2, 3)
        for view in (None, turned) if groups == 2 else (None,):
            what = name + (", strided" if view else "")
            arrays = {"x": (x, dtypes[0]), "w": (w, dtypes[1])}
            call = windowed("convolution", "x", "w", more=(groups,), view=view)
            yield f"convolution{what}", arrays, call, ()
            arrays = {"g": (g, dtypes[0]), "w": (w, dtypes[1])}
            call = windowed("convolution_input", "g", "w", more=(groups, 6, 7), view=view)
            yield f"convolution_input{what}", arrays, call, ()
            arrays = {"g": (g, dtypes[0]), "x": (x, dtypes[1])}
            call = windowed("convolution_weight", "g", "x", more=(groups,), view=view)
            yield f"convolution_weight{what}", arrays, call, ()


WINDOWED = {name: Use(*parts) for name, *parts in of_windows()}


def attention_backward(v, view=lambda x: x):
    names = ("g", "q", "k", "v", "mask", "y", "logsum")
    operands = [view(v[name]) if name in v else None for name in names]
    return apply(v["q"].backend, "attention_backward", *operands, 0.1, False)


def recurrent(v, cell, backwards, view=lambda x: x):
    operands = [view(v[name]) if name in v else None for name in ("x", "w", "bias", "h", "c")]
    return apply(v["x"].backend, "recurrent", cell, *operands, backwards, True)


def recurrent_backward(v, cell, backwards, view=lambda x: x):
    names = ("g", "dh", "dc", "w", "hs", "cs", "gates")
    operands = [view(v[name]) if name in v else None for name in names]
    return apply(v["g"].backend, "recurrent_backward", cell, *operands, backwards)


def learn(v):
    """A lesson's kernel, launched as pyvecgpu.learn does."""
    backend = v["a"].backend
    sizes = [(ctypes.c_int64 * 3)(n, 1, 1) for n in (2, 128)]
    backend.check(
        backend.library.pvg_learn(
            0, *sizes, v["a"].raw, v["b"].raw, None, v["out"].raw, 1,
            ctypes.byref(ctypes.c_double()), ctypes.byref(ctypes.c_int64()),
        )
    )  # fmt: skip


def upload(shape, key=..., make=lambda x: x):
    """Host values into an array; the host's are changed as soon as the call is over."""

    def run(v):
        place = v["a"][key]
        whole = np.arange(math.prod(shape)).reshape(shape).astype(place.dtype)
        source = make(whole)
        apply(place.backend, "copy_from_host", source, place)
        whole[...] = 0

    return run


def new_from_host(v):
    source = np.arange(200, dtype=np.float32)
    result = apply(v["a"].backend, "from_host", source)
    lent = apply(v["a"].backend, "lend", source)
    source[...] = 0
    return [result, vg.add(result, v["a"]), lent]


def download(v, into):
    apply(v["a"].backend, "to_host", v["a"], into)
    return into


def fresh(v):
    """Memory that is new and written by a kernel, beside the pool's memory."""
    result = apply(v["a"].backend, "empty", (6, 37), F32)
    result[...] = v["a"]
    return result


A, AB = {"a": ((6, 37), F32)}, {"a": ((6, 37), F32), "b": ((6, 37), F32)}
LAYER = {"x": ((9, 20), F32), "w": ((31, 20), F32), "bias": ((31,), F32)}
BACKWARD = {"g": ((9, 31), F32), "x": ((9, 20), F32), "w": ((31, 20), F32), "z": ((9, 31), F32)}
QUERIES = {"q": ((2, 9, 5), F32), "k": ((7, 5), F32), "v": ((2, 7, 3), F32)}
BY_KEYS = {"mask": ((9, 1), F64), "logsum": ((2, 9), F32)}
OF_RESULT = {"g": ((2, 9, 3), F32), "y": ((2, 9, 3), F32)}
SEQUENCE = {"x": ((3, 4, 20), F32), "w": ((20, 5), F32), "bias": ((20,), F32)}
STATES = {"h": ((4, 5), F32), "c": ((4, 5), F32)}
STEPS = {"g": ((3, 4, 5), F32), "dh": ((4, 5), F32), "dc": ((4, 5), F32), "w": ((20, 5), F32)}
STEPS |= {"hs": ((4, 4, 5), F32), "cs": ((4, 4, 5), F32), "gates": ((3, 4, 20), F32)}
LARGE = (260, 260)  # from 65,536 elements on a transposed operand is put in order first
IMAGES = {"x": ((6, 4, 40), F32), "w": ((4,), F32), "b": ((4,), F32), "s": ((2, 4), F32)}
PAIR = {"x": ((6, 37), F32), "t": ((6, 37), F32)}
SCORES = {"x": ((6, 80), F32), "i": ((6,), U8), "w": ((80,), F32), "s": ((3, 6), F32)}
STAGED = (1025, 257)  # more than 1 MiB, which crosses through pinned buffers

USES = dict(of_rows())
USES |= {
    # Elementwise, by every way through the frame of a call.
    "operand of another dtype": Use(
        {"a": ((6, 37), F32), "b": ((37, 6), I32)}, lambda v: v["a"] + v["b"].T
    ),
    "out of another dtype": Use(
        {"a": ((6, 37), F64), "out": ((6, 37), F32)},
        lambda v: void(vg.multiply(v["a"], 2.0, out=v["out"])),
        ("out",),
    ),
    "out that overlaps": Use(A, lambda v: void(vg.add(v["a"], v["a"][::-1], out=v["a"])), ("a",)),
    "in place": Use(AB, lambda v: void(v["a"].__iadd__(v["b"])), ("a",)),
    "large transposed operands": Use(
        {"a": (LARGE, F32), "b": (LARGE, F32)}, lambda v: v["a"].T + v["b"]
    ),
    "where": Use(
        {"c": ((6, 37), BOOL)} | AB, lambda v: vg.where(v["c"], v["a"], v["b"])
    ),
    "where, out": Use(
        {"c": ((6, 1), BOOL), "out": ((6, 37), F64)} | AB,
        lambda v: void(vg.where(v["c"], v["a"], v["b"], out=v["out"])),
        ("out",),
    ),
    "triangle": Use(A, lambda v: vg.tril(v["a"], 2)),
    "triangle, out": Use(
        A | {"out": ((6, 37), F32)}, lambda v: void(vg.triu(v["a"], -1, out=v["out"])), ("out",)
    ),
    "triangle in place": Use(
        {"a": ((37, 37), F32)}, lambda v: void(vg.triu(v["a"], out=v["a"].T)), ("a",)
    ),
    # Joined in one launch, or copied one by one.
    "concat": Use(
        {"a": ((6, 37), F32), "b": ((4, 37), F32)}, lambda v: vg.concat([v["a"], v["b"]])
    ),
    "concat of rows": Use(AB, lambda v: vg.concat([v["a"], v["b"][:, 3:]], axis=1)),
    "concat of another dtype and layout": Use(
        {"a": ((6, 37), F32), "b": ((37, 6), I32), "c": ((6, 37), F32)},
        lambda v: vg.concat([v["a"], v["b"].T, v["c"].T[::-1].T], axis=1),
    ),
    "concat, out": Use(
        AB | {"out": ((12, 37), F64)},
        lambda v: void(vg.concat([v["a"], v["b"]], out=v["out"])),
        ("out",),
    ),
    "stack": Use(AB, lambda v: vg.stack([v["a"], v["b"], v["a"]], axis=-1)),
    "roll": Use(A, lambda v: vg.roll(v["a"], 5, axis=1)),
    # Exponentials and variances: rows, columns, any axes; copies, casts, two passes.
    "softmax": Use(A, lambda v: vg.softmax(v["a"])),
    "softmax of columns": Use(A, lambda v: vg.softmax(v["a"], 0)),
    "softmax of a long row": Use({"a": ((5_000,), F32)}, lambda v: vg.log_softmax(v["a"])),
    "softmax of a longer row": Use({"a": ((40_000,), F32)}, lambda v: vg.softmax(v["a"])),
    "softmax of integers": Use({"a": ((6, 37), I32)}, lambda v: vg.log_softmax(v["a"], None)),
    "softmax of strided rows": Use({"a": ((37, 6), F64)}, lambda v: vg.softmax(v["a"].T[::-2])),
    "softmax of large transposed rows": Use(
        {"a": (LARGE, F32)}, lambda v: vg.softmax(v["a"].T, (0, 1))
    ),
    "softmax, out": Use(
        A | {"out": ((37, 6), F64)},
        lambda v: void(vg.softmax(v["a"], out=v["out"].T)),
        ("out",),
    ),
    "softmax in place": Use(A, lambda v: void(vg.softmax(v["a"], out=v["a"])), ("a",)),
    "softmax that overlaps": Use(A, lambda v: void(vg.softmax(v["a"][::-1], out=v["a"])), ("a",)),
    "logsumexp": Use(A, lambda v: vg.logsumexp(v["a"], 1)),
    "logsumexp, out": Use(
        A | {"out": ((6, 2), F32)},
        lambda v: void(vg.logsumexp(v["a"], 1, out=v["out"][:, 1])),
        ("out",),
    ),
    "var": Use(A, lambda v: vg.var(v["a"])),
    "var of columns": Use({"a": ((37, 6), F16)}, lambda v: vg.var(v["a"].T, 1)),
    "var of a long row of integers": Use({"a": ((20_000,), I32)}, lambda v: vg.std(v["a"])),
    "std, out": Use(
        A | {"out": ((37,), F64)}, lambda v: void(vg.std(v["a"], 0, out=v["out"][::-1])), ("out",)
    ),
    "var into its operand": Use(
        A, lambda v: void(vg.var(v["a"], axis=1, out=v["a"][:, 3])), ("a",)
    ),
    # Elements at indices, which are from -8 to 8, or 77 if they were overwritten.
    "gather": Use({"a": ((80, 37), F32), "i": ((7,), I64)}, lambda v: v["a"][v["i"]]),
    "gather by indices of the host": Use(A, lambda v: v["a"][[3, -1, 0]]),
    "gather by two indices": Use(
        {"a": ((80, 80), F32), "i": ((7,), I32), "j": ((5, 1), I8)},
        lambda v: v["a"][v["i"], v["j"]],
    ),
    "gather along an axis": Use(
        {"a": ((6, 80), F32), "i": ((6, 5), I8)},
        lambda v: vg.take_along_axis(v["a"], v["i"], axis=1),
    ),
    "gather by indices as they are": Use(
        {"a": ((6, 80), F32), "i": ((6, 5), I64)},
        lambda v: vg.take_along_axis(v["a"], v["i"], axis=1),
    ),
    "scatter by indices as they are": Use(
        {"a": ((6, 80), F32), "i": ((6, 1), I64), "b": ((6, 1), F32)},
        lambda v: vg.put_along_axis(v["a"], v["i"], v["b"], axis=1),
        ("a",),
    ),
    "gather where": Use(
        A | {"m": ((6, 37), BOOL)}, lambda v: v["a"][v["m"]]
    ),
    "scatter": Use(
        {"a": ((80, 37), F32), "i": ((7,), I32), "b": ((7, 37), F32)},
        lambda v: v["a"].__setitem__(v["i"], v["b"]),
        ("a",),
    ),
    "scatter by indices of the host": Use(
        {"a": ((6, 37), F32), "b": ((3, 37), F32)},
        assign(("a", [3, -1, 0]), lambda v: v["b"]),
        ("a",),
    ),
    "scatter where": Use(
        A | {"m": ((6, 37), BOOL)}, lambda v: v["a"].__setitem__(v["m"], 2.0), ("a",)
    ),
    "scatter of one value": Use(
        {"a": ((80, 37), F32), "i": ((7,), I8)}, lambda v: v["a"].__setitem__(v["i"], 2.0), ("a",)
    ),
    "scatter of many in another dtype": Use(
        {"a": ((80,), F32), "i": ((3000,), I64), "b": ((3000,), I32)},
        lambda v: v["a"].__setitem__(v["i"], v["b"]),
        ("a",),
    ),
    "scatter that overlaps": Use(
        {"a": ((80, 37), F32), "i": ((80,), I64)},
        lambda v: v["a"].__setitem__(v["i"], v["a"][::-1]),
        ("a",),
    ),
    "scatter by what is written": Use(
        {"i": ((80,), I64)}, lambda v: v["i"].__setitem__(v["i"], v["i"][::-1]), ("i",)
    ),
    "accumulate": Use(
        {"a": ((80, 37), F32), "i": ((300,), I32), "b": ((300, 37), F32)},
        lambda v: vg.index_add(v["a"], v["i"], v["b"]),
        ("a",),
    ),
    "accumulate among other axes": Use(
        {"a": ((6, 80, 3), I32), "i": ((70,), I8), "b": ((70,), I32)},
        lambda v: vg.maximum.at(v["a"], (0, v["i"], 1), v["b"]),
        ("a",),
    ),
    "accumulate what is written": Use(
        {"a": ((80,), F32), "i": ((80,), I64)},
        lambda v: vg.multiply.at(v["a"], v["i"], v["a"][::-1]),
        ("a",),
    ),
    # Reductions with partial results, copies and temporaries.
    "long rows": Use({"a": ((3, 20_000), F32)}, lambda v: vg.sum(v["a"], axis=1)),
    "largest of long rows": Use({"a": ((3, 20_000), F32)}, lambda v: vg.argmax(v["a"], axis=1)),
    "tall columns": Use({"a": ((6_000, 2), F32)}, lambda v: vg.mean(v["a"], axis=0)),
    "axes that do not touch": Use(
        {"a": ((6, 7, 8, 5), F32)}, lambda v: vg.sum(v["a"], axis=(0, 2))
    ),
    "axes that do not touch, out": Use(
        {"a": ((6, 7, 8, 5), F32), "out": ((5, 7), F32)},
        lambda v: void(vg.max(v["a"], axis=(0, 2), out=v["out"].T)),
        ("out",),
    ),
    "reduction into its operand": Use(
        {"a": ((6, 37), F32)}, lambda v: void(vg.max(v["a"], axis=1, out=v["a"][:, 3])), ("a",)
    ),
    "sum of nothing": Use(
        {"a": ((0, 37), F32), "out": ((2, 37), F32)},
        lambda v: void(vg.sum(v["a"], axis=0, out=v["out"][1])),
        ("out",),
    ),
    # Scans: rows, short ones, and columns, in one chunk and in several.
    "scan": Use(A, lambda v: vg.cumulative_sum(v["a"], axis=1, include_initial=True)),
    "scan of a long row": Use({"a": ((20_000,), F32)}, lambda v: vg.cumsum(v["a"])),
    "scan of tall columns": Use(
        {"a": ((300, 3), F32)}, lambda v: vg.cumulative_sum(v["a"], axis=0)
    ),
    "scan of a strided operand": Use(
        {"a": ((37, 12), I32)}, lambda v: vg.cumprod(v["a"].T[::-2], 0)
    ),
    "scan, out": Use(
        {"a": ((600, 3), F32), "out": ((3, 600), F64)},
        lambda v: void(vg.cumsum(v["a"], 0, out=v["out"].T)),
        ("out",),
    ),
    "scan in place": Use(
        {"a": ((3, 2_000), F32)}, lambda v: void(vg.cumsum(v["a"], 1, out=v["a"])), ("a",)
    ),
    "nonzero": Use({"a": ((6, 37), I32)}, lambda v: vg.argwhere(v["a"])),
    "nonzero of a strided operand": Use(
        {"a": ((90, 60), F32)}, lambda v: vg.nonzero(v["a"].T[::-2])
    ),
    # Matrices of one element that is not 0, 77 if they were overwritten, and positive ones.
    "solve": Use(
        {"a": ((3, 1, 1), F32), "b": ((3, 1, 5), F32)}, lambda v: vg.linalg.solve(v["a"], v["b"])
    ),
    "solve of strided operands": Use(
        {"a": ((3, 1, 1), F64), "b": ((5, 1, 3), F64)},
        lambda v: vg.linalg.solve(v["a"][::-1], v["b"].T),
    ),
    "inverse": Use({"a": ((3, 1, 1), F32)}, lambda v: vg.linalg.inv(v["a"])),
    "determinant": Use({"a": ((6, 6), F32)}, lambda v: vg.linalg.det(v["a"])),
    "determinants of large matrices": Use(
        {"a": ((40, 40, 2), F32)}, lambda v: vg.linalg.det(v["a"].T)
    ),
    "cholesky": Use({"a": ((7, 1, 1), F32)}, lambda v: vg.linalg.cholesky(v["a"][4:])),
    # Sorting: short rows, whole arrays, long rows one by one and together, twice for 8 bytes.
    "sort": Use(A, lambda v: vg.sort(v["a"])),
    "sort of columns": Use(A, lambda v: vg.sort(v["a"], 0, descending=True)),
    "sort of a long row": Use({"a": ((5_000,), F32)}, lambda v: vg.sort(v["a"])),
    "sort of long rows": Use({"a": ((3, 4_100), I8)}, lambda v: vg.sort(v["a"])),
    "sort of long rows of 8 bytes": Use({"a": ((2, 4_100), F64)}, lambda v: vg.sort(v["a"])),
    "sort, out": Use(
        A | {"out": ((37, 6), F64)},
        lambda v: void(apply(v["a"].backend, "sort", v["a"], 1, False, v["out"].T)),
        ("out",),
    ),
    "sort in place": Use(A, lambda v: v["a"].sort(0), ("a",)),
    "sort of long rows in place": Use({"a": ((2, 4_100), I64)}, lambda v: v["a"].sort(), ("a",)),
    "argsort": Use({"a": ((37, 12), I32)}, lambda v: vg.argsort(v["a"].T[::-2], 0)),
    "argsort of long rows": Use({"a": ((3, 4_100), F16)}, lambda v: vg.argsort(v["a"])),
    "argsort of long rows of 8 bytes": Use(
        {"a": ((2, 4_100), I64)}, lambda v: vg.argsort(v["a"])
    ),
    "first few": Use({"a": ((3, 300), F32)}, lambda v: vg.top_k(v["a"], 3)[1]),
    "first few of columns": Use({"a": ((300, 6), I8)}, lambda v: vg.top_k(v["a"].T[::2], 3)[0]),
    "searchsorted": Use(
        {"a": ((37,), F32), "b": ((6, 37), F32)}, lambda v: vg.searchsorted(v["a"], v["b"])
    ),
    "searchsorted of strided operands": Use(
        {"a": ((37,), I32), "b": ((6, 37), F32)},
        lambda v: vg.searchsorted(v["a"][::2], v["b"].T, "right"),
    ),
    "bincount": Use(
        {"a": ((300,), I32)}, lambda v: apply(v["a"].backend, "bincount", v["a"], None, 9)
    ),
    "bincount of many": Use(
        {"a": ((300,), I8)}, lambda v: apply(v["a"].backend, "bincount", v["a"], None, 9_000)
    ),
    "bincount with weights": Use(
        {"a": ((20, 30), I32), "b": ((20, 30), F32)},
        lambda v: apply(v["a"].backend, "bincount", v["a"][::-2], v["b"][::2], 9),
    ),
    "unique": Use({"a": ((300,), I8)}, lambda v: vg.unique_values(v["a"])),
    "bincount with weights as they are": Use(
        {"a": ((300,), I32), "b": ((300,), F64)},
        lambda v: apply(v["a"].backend, "bincount", v["a"], v["b"], 9),
    ),
    # Products.
    "product": Use({"a": ((33, 29), F32), "b": ((29, 31), F32)}, lambda v: v["a"] @ v["b"]),
    "product of vectors": Use({"a": ((61,), F32), "b": ((61,), F32)}, lambda v: v["a"] @ v["b"]),
    "vector and matrix": Use(
        {"a": ((1, 300), F32), "b": ((300, 33), F32)}, lambda v: v["a"] @ v["b"]
    ),
    "product of integers": Use({"a": ((9, 8), I32), "b": ((8, 7), I32)}, lambda v: v["a"] @ v["b"]),
    "product of halves": Use({"a": ((9, 8), F16), "b": ((8, 7), F16)}, lambda v: v["a"] @ v["b"]),
    "batch": Use(
        {"a": ((3, 9, 8), F32), "b": ((1, 8, 7), F32)}, lambda v: v["a"] @ v["b"]
    ),
    "product of strided operands": Use(
        {"a": ((18, 16), F32), "b": ((16, 14), F32)}, lambda v: v["a"][::2, ::2] @ v["b"][::-2, ::2]
    ),
    "product of two dtypes": Use(
        {"a": ((9, 8), F32), "b": ((8, 7), F64)}, lambda v: v["a"] @ v["b"]
    ),
    "product, out": Use(
        {"a": ((9, 8), F32), "b": ((8, 7), F32), "out": ((7, 9), F32)},
        lambda v: void(vg.matmul(v["a"], v["b"], out=v["out"].T)),
        ("out",),
    ),
    "product in place": Use(
        {"a": ((9, 9), F32), "b": ((9, 9), F32)},
        lambda v: void(vg.matmul(v["a"], v["b"], out=v["a"])),
        ("a",),
    ),
    "vecdot": Use(AB, lambda v: vg.vecdot(v["a"], v["b"])),
    "tensordot": Use(
        {"a": ((3, 4, 5), F32), "b": ((4, 5, 6), F32)}, lambda v: vg.tensordot(v["a"], v["b"])
    ),
    # Layers.
    "dense": Use(LAYER, lambda v: vg.dense(v["x"], v["w"], v["bias"], "tanh")),
    "dense, preactivation": Use(
        LAYER | {"z": ((9, 31), F32)},
        lambda v: apply(
            v["x"].backend, "dense", v["x"], v["w"], v["bias"], Operation.RELU, 0, v["z"], None
        ),
        ("z",),
    ),
    "dense, out": Use(
        LAYER | {"out": ((9, 31), F32)},
        lambda v: void(vg.dense(v["x"], v["w"], v["bias"], "relu", out=v["out"])),
        ("out",),
    ),
    "dense, out apart": Use(
        LAYER | {"out": ((31, 9), F32)},
        lambda v: void(vg.dense(v["x"], v["w"], v["bias"], "relu", out=v["out"].T)),
        ("out",),
    ),
    "dense of strided operands of two dtypes": Use(
        {"x": ((20, 9), F32), "w": ((31, 20), F64), "bias": ((62,), F32)},
        lambda v: vg.dense(v["x"].T, v["w"], v["bias"][::2]),
    ),
    "dense_backward": Use(BACKWARD, lambda v: dense_backward(v, "gelu", v["z"])),
    "dense_backward, no activation": Use(
        {n: BACKWARD[n] for n in "gxw"}, lambda v: dense_backward(v, None, None)
    ),
    "dense_backward of strided operands of two dtypes": Use(
        {"g": ((31, 9), F64), "x": ((20, 9), F32), "w": ((31, 20), F32), "z": ((31, 9), F32)},
        lambda v: vg.nn.functional.dense_backward(v["g"].T, v["x"].T, v["w"], v["z"].T, "relu"),
    ),
    # Normalisations: rows, groups, channels of all items; labels are below 80, also where 77 is.
    "normalize": Use(
        IMAGES | {"s": ((2, 6), F32)}, lambda v: normalize(v, 1), ("s",)
    ),
    "normalize channels": Use(IMAGES, lambda v: normalize(v, 0), ("s",)),
    "normalize by statistics": Use(IMAGES, lambda v: normalize(v, -1)),
    "normalize of other dtypes and layouts": Use(
        {"x": ((40, 4, 6), F16), "w": ((8,), F64), "b": ((4,), F32)},
        lambda v: normalize(v | {"x": v["x"].T, "w": v["w"][::2]}, 2, False, False),
    ),
    "normalize long rows": Use(
        {"x": ((1, 70_000), F32)}, lambda v: normalize(v, 1, statistics=False)
    ),
    "normalize_backward": Use(
        {"g": ((6, 40), F32), "x": ((6, 40), F32), "w": ((40,), F32), "s": ((2, 6), F32)},
        lambda v: normalize_backward(v, 1),
    ),
    "normalize_backward of channels": Use(
        IMAGES | {"g": ((6, 4, 40), F32)}, lambda v: normalize_backward(v, 0)
    ),
    "normalize_backward by statistics": Use(
        {"g": ((6, 4), F32), "x": ((4, 6), F32), "s": ((2, 4), F32)},
        lambda v: normalize_backward(v | {"x": v["x"].T}, -1),
    ),
    "normalize_backward of groups": Use(
        {"g": ((40, 4, 6), F64), "x": ((6, 4, 40), F32), "w": ((4,), F64), "s": ((2, 12), F32)},
        lambda v: normalize_backward(v | {"g": v["g"].T}, 2),
    ),
    "normalize_backward of x alone": Use(
        {"g": ((6, 40), F32), "x": ((6, 40), F32), "s": ((2, 6), F32)},
        lambda v: normalize_backward(v, 1, False),
    ),
    "cross_entropy": Use(SCORES, cross_entropy, ("s",)),
    "cross_entropy of labels as they are": Use(
        SCORES | {"i": ((6,), I64)}, cross_entropy, ("s",), ("i",)
    ),
    "cross_entropy of strided operands": Use(
        {"x": ((80, 6), F16), "i": ((12,), U8), "w": ((80,), F64), "s": ((3, 6), F32)},
        lambda v: cross_entropy(v | {"x": v["x"].T, "i": v["i"][::2]}),
        ("s",),
    ),
    "cross_entropy of a mean": Use(SCORES | {"s": ((4, 6), F32)}, cross_entropy, ("s",)),
    "cross_entropy_backward": Use(
        SCORES | {"g": ((6,), F32)}, cross_entropy_backward
    ),
    "cross_entropy_backward of ones": Use(SCORES, cross_entropy_backward),
    "cross_entropy_backward of a mean": Use(
        SCORES | {"g": ((), F32), "s": ((4, 6), F32)}, cross_entropy_backward
    ),
    "cross_entropy_backward of strided operands": Use(
        SCORES | {"x": ((80, 6), F32), "g": ((12,), F64)},
        lambda v: cross_entropy_backward(v | {"x": v["x"].T, "g": v["g"][::2]}),
    ),
    "activate": Use(A, lambda v: vg.nn.functional.elu(v["a"], 0.5)),
    "activate of strided operands": Use(
        {"a": ((37, 12), F16)}, lambda v: vg.nn.functional.softplus(v["a"][:, ::2].T)
    ),
    "activate_backward": Use(
        A | {"g": ((6, 37), F32)},
        lambda v: apply(v["a"].backend, "activate_backward", 1, v["g"], v["a"], 0.5, 0.0),
    ),
    "activate_backward of strided operands": Use(
        {"a": ((37, 6), F32), "g": ((37, 6), F64)},
        lambda v: apply(v["a"].backend, "activate_backward", 3, v["g"].T, v["a"].T, 0.0, 0.0),
    ),
    "pair_loss": Use(PAIR, lambda v: vg.nn.functional.mse_loss(v["x"], v["t"])),
    "pair_loss of many": Use(
        {"x": ((9_000,), F32), "t": ((9_000,), F32)},
        lambda v: vg.nn.functional.huber_loss(v["x"], v["t"], "sum"),
    ),
    "pair_loss of each": Use(PAIR, lambda v: vg.nn.functional.l1_loss(v["x"], v["t"], "none")),
    "pair_loss of strided operands": Use(
        {"x": ((37, 6), F16), "t": ((6, 74), F16)},
        lambda v: vg.nn.functional.smooth_l1_loss(v["x"].T, v["t"][:, ::2]),
    ),
    "pair_loss_backward": Use(PAIR | {"g": ((6, 37), F32)}, pair_loss_backward),
    "pair_loss_backward of ones": Use(PAIR, pair_loss_backward),
    "pair_loss_backward of a mean": Use(
        PAIR | {"g": ((), F32)}, lambda v: pair_loss_backward(v, reduction=2)
    ),
    "pair_loss_backward of strided operands": Use(
        {"x": ((37, 6), F32), "t": ((37, 6), F32), "g": ((37, 6), F64)},
        lambda v: pair_loss_backward({name: v[name].T for name in "xtg"}, of_target=True),
    ),
    "softmax_backward": Use(A | {"g": ((6, 37), F32)}, softmax_backward),
    "softmax_backward of strided operands": Use(
        {"a": ((37, 6), F32), "g": ((37, 6), F64)},
        lambda v: softmax_backward({"a": v["a"].T, "g": v["g"].T}),
    ),
    **WINDOWED,
    # Sequences: the operands where they lie, or in order first.
    "attention": Use(
        QUERIES | BY_KEYS,
        lambda v: apply(
            v["q"].backend, "attention", *(v[n] for n in ("q", "k", "v", "mask")), 0.1, True,
            v["logsum"],
        ),
        ("logsum",),
    ),
    "attention of views": Use(
        {"q": ((5, 9, 2), F64), "k": ((5, 14), F64), "v": ((7, 3), F64), "m": ((7, 9), BOOL)},
        lambda v: apply(
            v["q"].backend, "attention", v["q"].T, v["k"].T[::-2], v["v"], v["m"].T, 0.1, False,
            None,
        ),
    ),
    "attention_backward": Use(QUERIES | BY_KEYS | OF_RESULT, attention_backward),
    "attention_backward of views": Use(
        QUERIES | {"g": ((2, 9, 3), F32), "y": ((2, 9, 3), F32), "logsum": ((2, 9), F32)},
        lambda v: attention_backward(v, lambda x: x[..., ::-1]),
    ),
    "LSTM": Use(SEQUENCE | STATES, lambda v: recurrent(v, Cell.CELL_LSTM, False)),
    "LSTM of one step": Use(
        SEQUENCE | STATES | {"x": ((1, 4, 20), F32)}, lambda v: recurrent(v, Cell.CELL_LSTM, False)
    ),
    "GRU of views, backwards": Use(
        {"x": ((3, 4, 15), F32), "w": ((15, 5), F32), "bias": ((15,), F32), "h": ((4, 5), F32)},
        lambda v: recurrent(v, Cell.CELL_GRU, True, lambda x: x[..., ::-1]),
    ),
    "RNN": Use(
        {"x": ((3, 4, 5), F64), "w": ((5, 5), F64), "h": ((4, 5), F64)},
        lambda v: recurrent(v, Cell.CELL_TANH, False),
    ),
    "LSTM's gradients": Use(STEPS, lambda v: recurrent_backward(v, Cell.CELL_LSTM, True)),
    "GRU's gradients, of views": Use(
        {n: STEPS[n] for n in ("g", "hs", "gates")} | {"w": ((15, 5), F32)},
        lambda v: recurrent_backward(v, Cell.CELL_GRU, False, lambda x: x[..., ::-1]),
    ),
    "RNN's gradients": Use(
        {"g": ((3, 4, 5), F64), "w": ((5, 5), F64), "hs": ((4, 4, 5), F64)},
        lambda v: recurrent_backward(v, Cell.CELL_RELU, False),
    ),
    # Copies and casts on the card.
    "cast": Use(A, lambda v: v["a"].astype("int64")),
    "cast, out": Use(
        A | {"out": ((6, 37), F16)},
        lambda v: void(apply(v["a"].backend, "cast", v["a"], F32, v["out"])),
        ("out",),
    ),
    "large transposed cast": Use({"a": (LARGE, F32)}, lambda v: v["a"].T.astype("float64")),
    "copy": Use(A, lambda v: v["a"].copy()),
    "transposed copy": Use({"a": ((48, 80), F32)}, lambda v: v["a"].T.copy()),
    "permuted copy": Use({"a": ((40, 30, 40), F32)}, lambda v: v["a"].transpose(2, 1, 0).copy()),
    "assignment": Use(AB, assign(("a", ...), lambda v: v["b"]), ("a",)),
    "assignment to rows": Use(
        {"a": ((6, 37), F32), "b": ((37,), F32)},
        assign(("a", slice(1, 4)), lambda v: v["b"]),
        ("a",),
    ),
    "assignment that overlaps": Use(
        A, assign(("a", slice(1, None)), lambda v: v["a"][:-1]), ("a",)
    ),
    "assignment of the transposed": Use(
        {"a": ((48, 48), F32), "b": ((48, 48), F32)}, assign(("a", ...), lambda v: v["b"].T), ("a",)
    ),
    "assignment of another dtype": Use(
        {"a": ((6, 37), I32), "b": ((6, 37), F32)}, assign(("a", ...), lambda v: v["b"]), ("a",)
    ),
    "assignment of leading ones": Use(
        {"a": ((37,), F32), "b": ((1, 1, 37), F32)}, assign(("a", ...), lambda v: v["b"]), ("a",)
    ),
    "fill": Use(A, assign(("a", ...), lambda v: 3.0), ("a",)),
    "fill of every second": Use(A, assign(("a", slice(None, None, 2)), lambda v: True), ("a",)),
    "clip": Use(A, lambda v: vg.clip(v["a"], -2.0, 3.0)),
    "clip, out": Use(
        A | {"out": ((37, 6), F64)},
        lambda v: void(vg.clip(v["a"], None, 3, out=v["out"].T)),
        ("out",),
    ),
    "within": Use(AB, lambda v: vg.clip(v["a"], v["b"], v["b"][::-1])),
    "within, out": Use(
        AB | {"out": ((37, 6), F64)},
        lambda v: void(vg.clip(v["a"], v["b"][:1, ::-1], v["b"][:, 1:2], v["out"].T)),
        ("out",),
    ),
    "isclose": Use(A, lambda v: vg.isclose(v["a"], v["a"][:, ::-1])),
    "nan_to_num": Use(A, lambda v: vg.nan_to_num(v["a"])),
    "nan_to_num, in place": Use(A, lambda v: void(vg.nan_to_num(v["a"][:, ::-2], False)), ("a",)),
    "dropout": Use(A, lambda v: apply(v["a"].backend, "dropout", v["a"], 0.5, 1, 2, 3, None)),
    "dropout of a strided operand": Use(
        {"a": ((37, 12), F16)},
        lambda v: apply(v["a"].backend, "dropout", v["a"].T[::-2], 0.25, 1, 2, 3, None),
    ),
    "dropout with renewed numbers": Use(
        {"a": ((37, 12), F32), "u": ((5,), U64)},
        lambda v: apply(v["a"].backend, "dropout", v["a"], 0.25, 1, 2, 3, v["u"][1:4]),
    ),
    # Steps of optimisers: of one dtype and of two, of views and of what overlaps; norms.
    "optimize": Use(
        dict.fromkeys(("a", "b", "m", "n", "g", "h"), ((6, 37), F32)),
        lambda v: step(Algorithm.SGD, [v[n] for n in "abmn"], [v["g"], v["h"]], momentum=0.5),
        ("a", "b", "m", "n"),
    ),
    "optimize by Adam": Use(
        dict.fromkeys("amsg", ((6, 37), F16)),
        lambda v: step(Algorithm.ADAM, [v[n] for n in "ams"], [v["g"]], share1=1.0, share2=1.0),
        ("a", "m", "s"),
    ),
    "optimize with renewed numbers": Use(
        {**dict.fromkeys("ag", ((6, 37), F32)), "u": ((20,), F64)},
        lambda v: step(Algorithm.SGD, [v["a"]], [v["g"]], v["u"][2:17]),
        ("a",),
    ),
    "optimize by RMSprop": Use(
        dict.fromkeys("asg", ((6, 37), F64)),
        lambda v: step(Algorithm.RMSPROP, [v["a"], v["s"]], [v["g"]], epsilon=1.0, beta2=0.5),
        ("a", "s"),
    ),
    "optimize views": Use(
        {"a": ((37, 6), F32), "b": ((6, 37), F64), "g": ((6, 37), F32), "h": ((37, 6), F64)},
        lambda v: step(Algorithm.SGD, [v["a"].T, v["b"]], [v["g"], v["h"].T]),
        ("a", "b"),
    ),
    "optimize what overlaps": Use(
        {"a": ((40,), F32)},
        lambda v: step(Algorithm.SGD, [v["a"][:30], v["a"][8:38]], [v["a"][5:35], v["a"][:30]]),
        ("a",),
    ),
    "total_norm": Use(AB, lambda v: apply(v["a"].backend, "total_norm", [v["a"], v["b"]], 2.0)),
    "total_norm of views of two dtypes": Use(
        {"a": ((37, 6), F16), "b": ((6, 37), F64)},
        lambda v: apply(v["a"].backend, "total_norm", [v["a"].T, v["b"][:, 1:]], math.inf),
    ),
    "clip_norm": Use(
        AB | {"n": ((), F64)},
        lambda v: apply(v["a"].backend, "clip_norm", [v["a"], v["b"]], v["n"], 0.5),
        ("a", "b"),
    ),
    "clip_norm without a norm": Use(
        AB, lambda v: apply(v["a"].backend, "clip_norm", [v["a"], v["b"]], None, 1.5), ("a", "b")
    ),
    "clip_norm by one of them": Use(
        {"a": ((37, 6), F32)},
        lambda v: apply(v["a"].backend, "clip_norm", [v["a"].T], v["a"][3, 3], 0.5),
        ("a",),
    ),
    "sequence": Use(
        {"a": ((6, 37), I32)},
        lambda v: apply(v["a"].backend, "sequence", v["a"][2, ::-2], 3, -2, None),
        ("a",),
    ),
    "eye": Use(A, lambda v: apply(v["a"].backend, "eye", v["a"], 2), ("a",)),
    "eye of every second": Use(A, lambda v: apply(v["a"].backend, "eye", v["a"][::2], -1), ("a",)),
    "random": Use(A, numbers(lambda a: a), ("a",)),
    "random, in another order": Use(A, numbers(lambda a: a.T[::-2]), ("a",)),
    "empty": Use(A, fresh),
    # Views, which copy where they must.
    "slice": Use(A, lambda v: v["a"][1:, ::-2] + 0.0),
    "diagonal": Use(A, lambda v: vg.diagonal(v["a"], 3) + 0.0),
    "permute": Use(A, lambda v: vg.permute_dims(v["a"], (1, 0)) + 0.0),
    "reshape": Use(A, lambda v: v["a"].reshape(37, 6) + 0.0),
    "reshape by a copy": Use(A, lambda v: v["a"].T.reshape(-1)),
    "broadcast_to": Use(A, lambda v: vg.broadcast_to(v["a"], (2, 6, 37)) + 0.0),
    "contiguous": Use(A, lambda v: vg.contiguous(v["a"].T)),
    "part": Use({"a": ((6, 37), C64)}, lambda v: vg.imag(v["a"]) + 0.0),
    # Of complex numbers, which have kernels of their own.
    "complex": Use({"a": ((6, 37), C64), "b": ((6, 37), C64)}, lambda v: v["a"] * v["b"]),
    "complex beside floats": Use(
        {"a": ((6, 37), C64), "b": ((6, 37), F32)}, lambda v: v["a"] + v["b"]
    ),
    "complex function": Use({"a": ((6, 37), C64)}, lambda v: vg.exp(v["a"] * 0.1)),
    "complex power": Use({"a": ((6, 37), C64)}, lambda v: v["a"] ** 1.5),
    "complex sum": Use({"a": ((6, 37), C64)}, lambda v: vg.sum(v["a"], axis=0)),
    "complex prod": Use({"a": ((6, 37), C64)}, lambda v: vg.prod(v["a"] * 0.1, axis=1)),
    "complex any": Use({"a": ((6, 37), C64)}, lambda v: vg.any(v["a"], axis=1)),
    "complex scan": Use({"a": ((6, 37), C64)}, lambda v: vg.cumsum(v["a"], 1)),
    "complex product": Use(
        {"a": ((6, 37), C64), "b": ((37, 5), C64)}, lambda v: v["a"] @ v["b"]
    ),
    "write to imaginary parts": Use(
        {"a": ((6, 37), C64), "b": ((6, 37), F32)},
        lambda v: vg.imag(v["a"]).__setitem__(..., v["b"]),
        ("a",),
    ),
    # To the card and back.
    "from_host": Use({"a": ((200,), F32)}, new_from_host),
    "upload": Use(A, upload((6, 37)), ("a",)),
    "upload into columns": Use(A, upload((6, 18), (slice(None), slice(1, None, 2))), ("a",)),
    "upload of another order": Use(A, upload((37, 6), ..., lambda x: x.T), ("a",)),
    "upload of pieces": Use(A, upload((12, 37), ..., lambda x: x[::2]), ("a",)),
    "upload of pieces into columns": Use(
        A, upload((12, 18), (slice(None), slice(1, None, 2)), lambda x: x[::-2]), ("a",)
    ),
    "upload of bools": Use({"a": ((6, 37), BOOL)}, upload((6, 37)), ("a",)),
    "upload through pinned buffers": Use({"a": (STAGED, F32)}, upload(STAGED), ("a",)),
    "download": Use(A, lambda v: v["a"].numpy()),
    "item": Use({"a": ((1,), F32)}, lambda v: np.float32(v["a"].item())),
    "download of the transposed": Use(A, lambda v: v["a"].T.numpy()),
    "download of every second": Use(A, lambda v: v["a"][::2, ::2].numpy()),
    "download into pieces": Use(A, lambda v: download(v, np.zeros((12, 37), np.float32)[::2])),
    "download through pinned buffers": Use({"a": (STAGED, F32)}, lambda v: v["a"].numpy()),
    # What else works on arrays.
    "lesson": Use(
        {"a": ((200,), F32), "b": ((200,), F32), "out": ((200,), F32)}, learn, ("out",)
    ),
}  # fmt: skip
