"""The cases that follow from the public names: what cases.py does not call itself, and layouts.

A function, or a method, that NumPy has too is called with the first of some texts that both take
and give the same shapes for. What takes other arguments has them in ARGUMENTS, and what is not
measured stands in LEFT_OUT.
"""

import inspect
import re

import numpy as np

import pyvecgpu as vg

from ...operations import ROWS

MAIN = ("float32", "float64", "int64")
TEXTS = ("a", "a, b", "A", "a, 2", "i", "i, 2", "mask", "[a, b]", "[A, A]", "A, A", "5", "5, 5")
ARGUMENTS = {
    "apply_along_axis": "np.max, 0, A[:8]",
    "apply_over_axes": "m.sum, A, [0]",
    "array_split": "a, 4",
    "argpartition": "a, 3",
    "bincount": "i",
    "block": "[[a, b], [b, a]]",
    "bartlett": "a.size",
    "blackman": "a.size",
    "broadcast_shapes": "(1, 5), (4, 1)",
    "can_cast": "a.dtype, 'float64'",
    "choose": "i % 2, [a, b]",
    "concat": "[a, b]",
    "copyto": "out, a",
    "correlate": "a, b[:5]",
    "diagflat": "a[:500]",
    "digitize": "a, m.sort(b[:5])",
    "dsplit": "a.reshape(1, -1, 2), 2",
    "dstack": "[a, b]",
    "fill_diagonal": "A, 1",
    "frexp": "a",
    "fromfunction": "lambda i, j: i + j, A.shape",
    "geomspace": "1, 2, a.size",
    "hamming": "a.size",
    "hanning": "a.size",
    "histogram": "a, 10",
    "histogram2d": "a, b, 5",
    "histogram_bin_edges": "a, 10",
    "hsplit": "A, 2",
    "identity": "A.shape[0]",
    "indices": "A.shape",
    "interp": "a, m.sort(b[:5]), b[:5]",
    "isin": "a, b[:20]",
    "ix_": "[0, 1], [1, 2]",
    "ldexp": "a, i % 3",
    "kaiser": "a.size, 5",
    "lexsort": "(a, b)",
    "logspace": "0, 1, a.size",
    "mask_indices": "5, m.triu",
    "matvec": "A, A[0]",
    "nanpercentile": "a, 50",
    "nanquantile": "a, 0.5",
    "packbits": "mask",
    "partition": "a, 3",
    "percentile": "a, 50",
    "piecewise": "a, [a < 1.5, a >= 1.5], [0, 1]",
    "place": "a, mask, [1]",
    "poly": "a[:5]",
    "polydiv": "a[:50], b[:5]",
    "polymul": "a[:50], b[:5]",
    "polyfit": "a[:100], b[:100], 2",
    "polyval": "b[:5], a",
    "putmask": "a, mask, b",
    "quantile": "a, 0.5",
    "ravel_multi_index": "(i % 4, i % 5), (4, 5)",
    "resize": "a, (2, a.size)",
    "rollaxis": "A, 1",
    "roots": "a[:5]",
    "row_stack": "[a, b]",
    "tri": "A.shape[0]",
    "tril_indices": "A.shape[0]",
    "triu_indices": "A.shape[0]",
    "unpackbits": "m.packbits(mask)",
    "unstack": "A[:10]",
    "unravel_index": "i % 20, (4, 5)",
    "vecmat": "A[:, 0], A",
    "vsplit": "A, 2",
    "linalg.matrix_power": "A[:8, :8], 3",
    "linalg.outer": "a[:1000], b[:1000]",
    "linalg.multi_dot": "[A, A.T, A]",
    "linalg.solve": "Q, Q",
    "linalg.tensorinv": "Q, 1",
    "linalg.tensorsolve": "Q, q",
    "linalg.lstsq": "Q, q",
    "permute_dims": "A, (1, 0)",
    "fft.fftfreq": "a.size",
    "fft.rfftfreq": "a.size",
}
for _name in ("cond", "det", "eig", "eigvals", "inv", "slogdet", "cholesky", "eigh", "eigvalsh"):
    ARGUMENTS[f"linalg.{_name}"] = "P"
for _name in ("matrix_rank", "pinv", "qr", "svd", "svdvals"):
    ARGUMENTS[f"linalg.{_name}"] = "Q"

# Files and texts, and facts of dtypes and of Python values, which are no work of arrays.
LEFT_OUT = {
    *("load", "save", "savez", "savez_compressed", "fromfile", "fromstring", "genfromtxt"),
    *("loadtxt", "savetxt", "array2string", "array_repr", "array_str", "get_printoptions"),
    *("printoptions", "set_printoptions", "ndenumerate", "frombuffer", "fromiter", "from_dlpack"),
    *("isdtype", "issubdtype", "promote_types", "histogramdd", "min_scalar_type", "isscalar"),
    *("dump", "dumps", "tofile", "to_device", "partition", "sort", "fill", "resize"),
}
# Methods that need arguments; LEFT_OUT's change the array, or are of files.
METHODS = {
    "argpartition": "3",
    "astype": "'float64'",
    "choose": "[1, 2, 3, 4, 5, 6, 7, 8, 9]",
    "clip": "1, 2",
    "compress": "mask",
    "dot": "b",
    "put": "i, b",
    "repeat": "2",
    "searchsorted": "b",
    "swapaxes": "0, 1",
    "take": "i",
    "trace": "",
}
_OF_MATRICES = ("diagonal", "swapaxes", "trace", "transpose", "squeeze", "flatten")
_VIEWS = ("imag", "real", "real_if_close", "rollaxis", "matrix_transpose", "permute_dims")
_VIEWS += ("fliplr", "flipud", "hsplit", "vsplit", "dsplit", "array_split", "atleast_1d")
_VIEWS += ("atleast_2d", "atleast_3d", "broadcast_arrays", "unstack", "may_share_memory")
_VIEWS += (
    "ravel",
    "conj",
    "conjugate",
    "shares_memory",
    "diagonal",
    "swapaxes",
    "transpose",
    "squeeze",
    "asanyarray",
)
_VIEWS += ("ascontiguousarray", "isrealobj", "iscomplexobj", "ndim", "shape", "size")
_VIEWS += ("fill_diagonal", "put", "broadcast_shapes", "ix_", "result_type", "can_cast")
_VIEWS += (
    "poly",
    "polyfit",
    "roots",
    "diag_indices",
    "mask_indices",
    "iterable",
    "diag_indices_from",
)
# NumPy's text for the same work, where that is another one: orders of equal elements, C order.
AS_OURS = {
    "m.argsort(a)": "m.argsort(a, kind='stable')",
    "a.argsort()": "a.argsort(kind='stable')",
    "m.argsort(T)": "m.argsort(T, kind='stable')",
    "m.argsort(S)": "m.argsort(S, kind='stable')",
    "m.argsort(x)": "m.argsort(x, kind='stable')",
    "m.take(x, m.argsort(x)[:10])": "m.take(x, m.argsort(x, kind='stable')[:10])",
    "m.take_along_axis(A, m.argsort(A, axis=1), axis=1)": (
        "m.take_along_axis(A, m.argsort(A, axis=1, kind='stable'), axis=1)"
    ),
    "m.copy(T)": "m.copy(T, order='C')",
}


def called(texts):
    """Return the names of functions that texts call."""
    return set(re.findall(r"\bm\.([A-Za-z_0-9.]+)\(", " ".join(texts)))


def functions(texts, fits):
    """Give (group, name, text, whether it touches few elements) for functions no text calls.

    fits(text, dtype): whether NumPy and pyvecgpu take a text and give the same shapes.
    """
    there = called(texts)
    for prefix, ours, theirs in (
        ("", vg, np),
        ("linalg.", vg.linalg, np.linalg),
        ("fft.", vg.fft, np.fft),
    ):
        names = vg.__all__ if ours is vg else [one for one in dir(ours) if one[0] != "_"]
        for name in names:
            function = getattr(ours, name)
            is_function = inspect.isfunction(function) and callable(getattr(theirs, name, None))
            if not is_function or prefix + name in there or prefix + name in LEFT_OUT:
                continue
            given = ARGUMENTS.get(prefix + name)
            for arguments in TEXTS if given is None else (given,):
                text = f"m.{prefix}{name}({arguments})"
                if any(fits(text, dtype) for dtype in MAIN):
                    is_small = name in _VIEWS or (
                        prefix == "linalg." and re.search("[PQ]", text) is not None
                    )
                    yield prefix[:-1] or "names", text, is_small
                    break


def methods(fits):
    """Give (group, text, whether it touches few elements) for the methods of arrays."""
    for name in dir(vg.Array):
        if name[0] == "_" or name in LEFT_OUT or not callable(getattr(np.ndarray, name, None)):
            continue
        text = f"{'A' if name in _OF_MATRICES else 'a'}.{name}({METHODS.get(name, '')})"
        if name == "item":
            text = "a[3:4].item()"
        if any(fits(text, dtype) for dtype in MAIN):
            yield "methods", text, name in _VIEWS or name in ("item", "trace")


_REDUCTIONS = ("sum", "prod", "mean", "max", "min", "argmax", "argmin", "any", "all", "var", "std")
_MOVES = ("sort", "argsort", "cumsum", "copy", "roll", "flip", "nonzero", "diff", "ptp", "median")


def layouts():
    """Give texts of operations on transposed and strided matrices, rows and arrays of no axes."""
    unary = ("negative", "abs", "exp", "sqrt", "square", "isnan", "logical_not", "sin", "floor")
    binary = ("add", "multiply", "maximum", "divide", "less", "power", "logical_and", "fmax")
    known = {row.name for row in ROWS} | {"power"}
    for name in unary:
        yield from (f"m.{name}({x})" for x in ("T", "S", "z") if name in known)
    for name in binary:
        yield from (f"m.{name}({x})" for x in ("T, T", "S, S", "A, r", "A, c", "A, T.T", "z, z"))
        yield f"m.{name}(A, z)"
    for name in _REDUCTIONS:
        for x in ("T", "S"):
            yield from (f"m.{name}({x}{axis})" for axis in ("", ", axis=0", ", axis=1"))
        yield f"m.{name}(A, axis=1, keepdims=True)"
    for name in ("sum", "mean", "max"):
        yield f"m.{name}(C, axis=(0, 2))"
        yield f"m.{name}(C, axis=1)"
        yield f"m.{name}(z)"
    yield from (f"m.{name}({x})" for name in _MOVES for x in ("T", "S"))
    yield from ("T + S.T if T.shape == S.T.shape else T + T", "S * 2", "T @ A", "A @ r")
    yield from ("m.where(T > 1.5, T, 0)", "m.concatenate([T, T])", "m.clip(T, 1, 2)", "z + 1")
    yield from ("z + z", "float(z)", "A + r", "A - c", "m.stack([T, T])", "T.reshape(-1)")


def views(operands):
    """Return views of the operands, of NumPy or of a device, by the names in layouts()."""
    a, A = operands["a"], operands["A"]
    rows, columns = A.shape
    cube = (rows, columns // 2, 2) if columns % 2 == 0 else (rows, columns, 1)
    Q = A[:4, :4]  # a small matrix, one that is positive definite, and a vector
    eye = 9 * (np if type(A) is np.ndarray else vg).eye(4, dtype=A.dtype)
    found = {"Q": Q, "P": Q + eye[: len(Q), : Q.shape[1]], "q": a[:4]}
    found |= {"T": A.T, "S": A[:, ::2], "z": a[:1].reshape(()), "r": A[0], "c": A[:, :1]}
    return found | {"C": A.reshape(cube)}
