"""The cases of `bench cpu`: a call of pyvecgpu and the best that NumPy has for the same.

A case is a text that both run, with `m` as the module, or two texts. Its names are operands: `a`
and `b` of n elements, `x` and `y` of both signs, `A` and `B` as matrices of about as many columns
as rows, `mask` of bools, `i` of indices, `out`, an array to write to, and in `h` NumPy's own arrays
by these names.
"""

import ast
import functools
import math
import operator
import re
import warnings
from dataclasses import dataclass

import numpy as np

import pyvecgpu as vg

from ...operations import ROWS
from . import named, typed

FLOATS = ("float32", "float64", "float16", "bfloat16")
MAIN = ("float32", "float64")
INTEGERS = ("int64", "int32")
DTYPES = (*FLOATS, *INTEGERS, "bool")
KINDS = {"f": FLOATS, "i": INTEGERS, "b": ("bool",)}
NUMBERS = (*FLOATS, *INTEGERS)

SIGMOID = "np.reciprocal(np.add(y := np.exp(np.negative(a)), 1, out=y), out=y)"
SOFTMAX = "(y := np.exp(A - np.max(A, axis=-1, keepdims=True))) / np.sum(y, axis=-1, keepdims=True)"
# What NumPy lacks, as one would write it.
WITHOUT = {
    "sigmoid": SIGMOID,
    "relu": "np.maximum(a, 0)",
    "gelu": "0.5 * a * (1.0 + erf(a * 0.7071067811865476))",
    "silu": f"np.multiply(a, {SIGMOID}, out=y)",
}
_erf = np.frompyfunc(math.erf, 1, 1)


def erf(a):
    """The error function by Python's, an element at a time: NumPy has none."""
    return _erf(a).astype(a.dtype)


@dataclass(frozen=True)
class Case:
    """What is measured: its group, its name, both texts, and the dtypes of the operands.

    most: of the elements, where both take long. bound: how many times NumPy's time it may take.
    is_small: it touches few elements, however many there are.
    """

    group: str
    name: str
    ours: str
    numpy: str
    dtypes: tuple = MAIN
    most: int = 1_000_000
    bound: float = 1.3
    is_small: bool = False

    @property
    def calls(self):
        """How many calls, operators and keys the text is, each of which may take its time."""
        nodes = ast.walk(ast.parse(self.ours, mode="eval"))
        return max(1, sum(map(_is_call, nodes)))

    def compiled(self, text, module, operands):
        """Return a function of no arguments that runs a text."""
        names = ", ".join(operands)
        space = {"m": module, "np": np, "erf": erf, "operator": operator}
        if module is not np:
            space["F"] = module.nn.functional
        body = compile(f"lambda {names}: lambda: ({text})", f"<{self.name}>", "eval")
        return eval(body, space)(**operands)


def _is_call(node):
    if isinstance(node, ast.Attribute):
        return node.attr == "T"
    return isinstance(node, (ast.Call, ast.BinOp, ast.Compare, ast.Subscript))


def _same(group, names, dtypes=MAIN, **facts):
    return [
        Case(group, name, name, named.AS_OURS.get(name, name), dtypes, **facts) for name in names
    ]


def _dtypes(domain):
    return tuple(dtype for kind in KINDS if kind in domain for dtype in KINDS[kind])


_BELOW_1 = ("asin", "acos", "atanh")


def _elementwise():
    """Rows of operations.py: called, and into `out`, where it is of the operands' dtype."""
    for row in ROWS:
        if row.family not in ("unary", "binary"):
            continue
        operands = "u" if row.name in _BELOW_1 else "a" if row.family == "unary" else "a, b"
        ours = f"m.{row.name}({operands})" if hasattr(np, row.name) else f"F.{row.name}({operands})"
        numpy = WITHOUT.get(row.name, f"np.{row.name}({operands})")
        dtypes = FLOATS if row.name in WITHOUT else _dtypes(row.domain)
        if row.name == "subtract":
            dtypes = tuple(one for one in dtypes if one != "bool")
        most = 100_000 if row.name == "gelu" else 1_000_000
        yield Case(row.family, row.name, ours, numpy, dtypes, most)
        if row.result != "bool" and row.name not in WITHOUT:
            floats = INTEGERS if "f" not in row.domain else MAIN
            into = f"{row.name}({operands}, out=out)"
            yield Case("out=", f"{row.name}, out=", f"m.{into}", f"np.{into}", floats)


_REDUCTIONS = ("sum", "prod", "mean", "max", "min", "argmax", "argmin", "any", "all")
_STATISTICS = ("var", "std", "ptp", "nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanvar")


def _reductions():
    for name in (*_REDUCTIONS, "count_nonzero"):
        for axis in (None, 0, 1):
            dtypes = tuple(one for one in DTYPES if name != "ptp" or one != "bool")
            text = f"m.{name}(A, axis={axis})"
            yield Case("reductions", f"{name}, axis={axis}", text, text, dtypes)
    for name in _STATISTICS:
        for axis in (None, 0, 1):
            text = f"m.{name}(A, axis={axis})"
            yield Case("statistics", f"{name}, axis={axis}", text, text, (*MAIN, "int64"))
    for name in ("cumsum", "cumprod"):
        for axis in (None, 0, 1):
            text = f"m.{name}(A, axis={axis})"
            yield Case("scans", f"{name}, axis={axis}", text, text, (*NUMBERS, "bool"))


_OPERATORS = (
    "a + b",
    "a - b",
    "a * b",
    "a / b",
    "a == b",
    "a < b",
    "-a",
    "a + 2",
    "2 - a",
    "a * 2",
)
_FLOAT_OPERATORS = (
    "a * 1.5",
    "1.5 / a",
    "a / 3",
    "a ** 2",
    "a ** 0.5",
    "a ** 1.7",
    "a < 0.5",
    "a % 0.3",
)
_INTEGER_OPERATORS = (
    "a // 3",
    "a % 3",
    "a << 2",
    "a >> b",
    "a & b",
    "a | 1",
    "~a",
    "a ** 2",
    "a == 7",
)
_IN_PLACE = {"a += b": "iadd(a, b)", "a *= 1": "imul(a, 1)", "a -= b": "isub(a, b)"}


def _operators():
    yield from _same("operators", _OPERATORS, dtypes=NUMBERS)
    yield from _same("operators", _FLOAT_OPERATORS, dtypes=FLOATS)
    yield from _same("operators", _INTEGER_OPERATORS, dtypes=INTEGERS)
    yield from _same("operators", ("a & b", "a ^ b", "~a"), dtypes=("bool",))
    for name, call in _IN_PLACE.items():
        text = f"operator.{call}"
        yield Case("in place", name, text, text, NUMBERS)
    for name in ("m.where(mask, a, b)", "m.where(mask, a, 0)", "m.clip(a, 1, 2)"):
        yield Case(
            "choosing", name[2:], name, name, (*NUMBERS, "bool") if "b)" in name else NUMBERS
        )
    names = ("fmax(a, b)", "fmin(a, b)", "heaviside(a, b)", "deg2rad(a)", "rint(a)", "fabs(a)")
    names += ("logaddexp(a, b)", "isclose(a, b)", "allclose(a, b)", "array_equal(a, a)")
    names += ("nan_to_num(a)", "logical_and(a, b)", "logical_not(a)", "divmod(a, b)")
    yield from _same("composed", [f"m.{name}" for name in names])
    yield Case("composed", "softmax", "m.softmax(A)", SOFTMAX)


def _memory():
    for dtype in DTYPES:
        texts = f'm.astype(a, "{dtype}")', f'a.astype("{dtype}")'
        if dtype != "bfloat16":
            yield Case("casts", f"astype {dtype}", *texts, tuple(d for d in DTYPES if d != dtype))
    every = (*MAIN, "float16", "int64", "bool")
    yield from _same(
        "copies", ("a.copy()", "A.T.copy()", "m.copy(a)", "a[::-1].copy()"), dtypes=every
    )
    yield Case("copies", "contiguous", "m.contiguous(A.T)", "np.ascontiguousarray(A.T)", every)
    yield Case("copies", "asarray of ndarray", "m.asarray(h.a)", "np.array(h.a)", every)
    yield Case("copies", "numpy()", "a.numpy()", "a.copy()", every)
    for name in ("zeros", "ones", "empty"):  # of which the last touches no element
        texts = f"m.{name}(a.shape, dtype=a.dtype)", f"m.{name}_like(a)"
        yield from _same("creation", texts, dtypes=every, is_small=name == "empty")
    texts = ["m.full(a.shape, 3, dtype=a.dtype)", "m.full_like(a, 3)", "m.arange(a.size)"]
    texts += ["m.arange(0, a.size, dtype=a.dtype)", "m.linspace(0, 1, a.size, dtype=a.dtype)"]
    texts += ["m.eye(A.shape[0], A.shape[1], dtype=a.dtype)"]
    texts += ["m.diag(a[:1000])"]
    yield from _same(
        "creation", [*texts, "m.meshgrid(a[:1000], b[:1000])"], dtypes=(*MAIN, "int64")
    )
    yield Case(
        "creation", "asarray of a list", "m.asarray(h.list)", "np.asarray(h.list)", most=1000
    )


_READS = (
    "a[3]",
    "a[2:9]",
    "a[::2]",
    "a[-1]",
    "a[...]",
    "A[1]",
    "A[1, 2]",
    "A[:, 1]",
    "A[1:3, ::2]",
)
_READS += ("A[None]", "A.T", "a.reshape(A.shape)", "A.ravel()", "a.shape", "a.dtype", "len(a)")
_VIEWS = ("m.reshape(a, A.shape)", "m.transpose(A)", "m.ravel(A)", "m.expand_dims(a, 0)")
_VIEWS += ("m.squeeze(A[None])", "m.flip(a)", "m.swapaxes(A, 0, 1)", "m.moveaxis(A, 0, 1)")
_VIEWS += ("m.broadcast_to(a, (2, a.size))", "m.split(a, 2)", "m.diagonal(A)", "m.rot90(A)")
_GATHERS = ("a[i]", "a[mask]", "m.take(a, i)", "m.compress(mask, a)", "m.extract(mask, a)")
_GATHERS += ("m.take_along_axis(a, i, axis=0)",)
_FEW = ("A[[0, 2]]", "A[:, [0, 2]]", "A[[0, 1], [2, 3]]")
_WRITES = {
    "a[3] = 1": "operator.setitem(a, 3, 1)",
    "a[:] = b": "operator.setitem(a, slice(None), b)",
    "a[:] = 1": "operator.setitem(a, slice(None), 1)",
    "a[::2] = 0": "operator.setitem(a, slice(None, None, 2), 0)",
    "a[mask] = 1": "operator.setitem(a, mask, 1)",
    "a[mask] = a[mask]": "operator.setitem(a, mask, a[mask])",
    "a[i] = b": "operator.setitem(a, i, b)",
    "a[i] = 1": "operator.setitem(a, i, 1)",
    "put(a, i, b)": "m.put(a, i, b)",
    "put_along_axis": "m.put_along_axis(a, i, b, 0)",
}
_SEARCHES = ("m.nonzero(a)", "m.flatnonzero(mask)", "m.argwhere(mask)", "m.nonzero(mask)")
_SHUFFLES = ("m.roll(a, 3)", "m.tile(a, 2)", "m.repeat(a, 2)", "m.concatenate([a, b])")
_SHUFFLES += ("m.stack([a, b])", "m.hstack([a, b])", "m.vstack([a, b])", "m.pad(a, 2)")
_SHUFFLES += ("m.append(a, b)", "m.tril(A)", "m.triu(A)", "m.delete(a, 3)", "m.insert(a, 3, 1)")
_SHUFFLES += ("m.column_stack([a, b])", "m.select([mask], [a], 0)")
_ORDERS = ("m.sort(a)", "m.argsort(a)", "m.unique_values(i)", "m.searchsorted(m.sort(a), b)")


def _indexing():
    some = (*MAIN, "int64", "bool")
    yield from _same("views", [*_READS, *_VIEWS], dtypes=("float32",), is_small=True)
    yield from _same("gathers", _GATHERS, dtypes=(*some, "float16"))
    yield from _same("gathers", _FEW, dtypes=(*some, "float16"), is_small=True)
    yield from _same("searches", _SEARCHES, dtypes=some)
    there = [text for text in _ORDERS if hasattr(vg, text[2 : text.index("(")])]
    yield from _same("orders", there, dtypes=(*MAIN, "int64"))
    yield from _same("joining", _SHUFFLES, dtypes=(*MAIN, "int64"))
    for name, text in _WRITES.items():
        yield Case("writes", name, text, text, (*some, "float16"), is_small="3] =" in name)
    for text in ("a[3].item()", "float(a[3])"):
        yield Case("values", text, text, text, MAIN, is_small=True)
    yield Case("values", "a.tolist()", "a.tolist()", "a.tolist()", MAIN)


_PRODUCTS = ("A @ A.T", "m.matmul(A, A.T)", "m.dot(a, b)", "m.vecdot(a, b)", "m.inner(a, b)")
_PRODUCTS += ("m.tensordot(A, A, ([1], [1]))", "m.outer(a[:1000], b[:1000])")
_PRODUCTS += ('m.einsum("ij,kj->ik", A, A)', 'm.einsum("ij->i", A)')
_SMALL_PRODUCTS = ("m.trace(A)", "m.cross(a[:3], b[:3])", "m.kron(a[:20], b[:20])")
_SAMPLES = ("m.diff(a)", "m.gradient(a)", "m.convolve(a, b[:5])")
_SAMPLES += ("m.trapezoid(a)", "m.cov(A[:8])", "m.corrcoef(A[:8])", "m.average(a)")
_SAMPLES += ("m.average(a, weights=b)", "m.vander(a, 5)", "m.ediff1d(a)")
_RANDOM = {
    "random": ("g.random(a.size, dtype=a.dtype)",) * 2,
    "standard_normal": ("g.standard_normal(a.size, dtype=a.dtype)",) * 2,
    "integers": ("g.integers(0, 1000, a.size)",) * 2,
    "exponential": ("g.exponential(1.0, a.size)",) * 2,
    "permutation": ("g.permutation(a.size)",) * 2,
}


def _rest():
    yield from _same("products", _PRODUCTS, dtypes=MAIN)
    yield from _same("products", _SMALL_PRODUCTS, dtypes=MAIN, is_small=True)
    yield from _same("products", ("A @ A.T",), dtypes=("int64",), most=20_000)
    yield from _same("samples", _SAMPLES, dtypes=MAIN)
    for name, texts in _RANDOM.items():
        yield Case("random", name, *texts, MAIN, bound=10.0)


def _named(texts):
    """Cases of the public names that no text calls, and of layouts (named.py)."""

    def fits(text, dtype):
        shapes = []
        for module in (np, vg):
            host = operands(np.dtype(dtype), 16)
            names = host if module is np else {n: vg.asarray(x) for n, x in host.items()}
            names |= named.views(names)
            try:
                found = Case("", text, text, text).compiled(text, module, names)()
                parts = found if isinstance(found, (tuple, list)) else [found]
                shapes.append([np.shape(part) for part in parts])
            except Exception:  # whichever: another text may do
                return False
        return shapes[0] == shapes[1]

    for group, text, is_small in (*named.functions(texts, fits), *named.methods(fits)):
        if text in texts:
            continue
        dtypes = [dtype for dtype in named.MAIN if fits(text, dtype)]
        yield from _same(group, [text], dtypes=tuple(dtypes), is_small=is_small)
    for texts_typed, is_small in ((typed.TYPED, False), (typed.FEW, True)):
        for text in texts_typed:
            dtypes = tuple([dtype for dtype in named.MAIN if fits(text, dtype)])
            yield from _same("typed", [text], dtypes=dtypes, is_small=is_small)
    for text in named.layouts():
        # Of arrays of no axes, or a view.
        is_small = (re.search(r"\bz\b", text) and "A" not in text) or "m.flip(" in text
        yield from _same("layouts", [text], is_small=bool(is_small))


@functools.cache
def cases():
    """Return all cases, each name once."""
    parts = (_elementwise(), _operators(), _reductions(), _memory(), _indexing(), _rest())
    found = [case for part in parts for case in part]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*found, *_named([case.ours for case in found])]


@functools.cache
def shape_of(n):
    """Return the shape of n elements as a matrix: the most nearly square one."""
    rows = max(i for i in range(1, int(n**0.5) + 1) if n % i == 0)
    return rows, n // rows


def operands(dtype, n):
    """Return NumPy's operands of n elements, by the names in the texts."""
    rng = np.random.default_rng(n)
    a, b = rng.uniform(1.01, 1.99, (2, n))
    mask = rng.random(n) < 0.5
    if dtype.kind in "iu":
        a, b = rng.integers(1, 9, (2, n))
    elif dtype.kind == "b":
        a, b = mask, rng.random(n) < 0.5
    a, b = a.astype(dtype), b.astype(dtype)
    shape = shape_of(n)
    found = {"a": a, "b": b, "mask": mask, "i": rng.permutation(n), "out": np.empty_like(a)}
    found["u"] = a if dtype.kind == "b" else (rng.random(n) * 0.98).astype(dtype)
    found["x"], found["y"] = (rng.standard_normal((2, n)) * 5).astype(dtype)
    return found | {"A": a.reshape(shape)}
