"""The seam (dispatch.py): what every public function and operator does passes `observe`.

CASES has each public function, called on Arrays, and the calls of the backend that have to be
seen: the method, which of the Arrays it reads, and its static parameters.
"""

import inspect
import operator
import threading

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu import dispatch
from pyvecgpu.backends import METHODS
from pyvecgpu.backends.cpu import CpuBackend
from pyvecgpu.backends.cuda import CudaBackend
from pyvecgpu.dispatch import observe
from pyvecgpu.functions import aliases
from pyvecgpu.native.abi import FUNCTIONS
from pyvecgpu.operations import OPERATIONS, ROWS, Operation

functional = vg.nn.functional
FILES = {"load", "load_state", "save", "save_state", "savez", "savez_compressed"}
FILES |= set(vg.functions.texts.__all__)
SETTINGS = {
    "get_matmul_precision",
    "set_matmul_precision",
    "broadcast_shapes",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
    *("isscalar", "iterable", "ndim", "promote_types", "shape", "size"),
    *("array2string", "array_repr", "array_str", "may_share_memory", "shares_memory"),
    *vg.functions.makers.__all__,
} | FILES  # of no array, or Python's own work

A = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
B = np.array([[5.0, 6.0], [7.0, 9.0]], np.float32)


def code(name):
    return {"code": Operation[name.upper()]}


def reduction(name):
    return [("reduce", "a", code(name) | {"axes": (1,), "keepdims": True})]


def others(name, b):
    """The second operand of a binary operation on integers."""
    row = OPERATIONS[Operation[name.upper()]]
    return [vg.astype(b, "int32")] if row.family == "binary" else []


PRODUCT = ("matmul", "ab", {"precision": 0})

# name: (call of Arrays a and b, [(method, the Arrays it reads, static parameters), ...]); "?" is
# read where an Array from the call itself is, and static parameters may hold more than is here.
CASES = {
    row.name: (lambda a, b, f=row.name: function(f)(a), [("unary", "a", code(row.name))])
    for row in ROWS
    if row.family == "unary" and "f" in row.domain
}
CASES |= {
    row.name: (lambda a, b, f=row.name: function(f)(a, b), [("binary", "ab", code(row.name))])
    for row in ROWS
    if row.family == "binary" and "f" in row.domain
}
CASES |= {
    row.name: (lambda a, b, f=row.name: function(f)(a, axis=1, keepdims=True), reduction(row.name))
    for row in ROWS
    if row.family == "reduce"
}
CASES |= {
    row.name: (
        lambda a, b, f=row.name: function(f)(vg.astype(a, "int32"), *others(f, b)),
        [("cast", "a", {"dtype": vg.int32})]
        + [("cast", "b", {"dtype": vg.int32})] * (row.family == "binary")
        + [(row.family, "??"[: 1 + (row.family == "binary")], code(row.name))],
    )
    for row in ROWS
    if row.family in ("unary", "binary") and "f" not in row.domain
}
CASES |= {
    "where": (
        lambda a, b: vg.where(a > b, a, b),
        [("binary", "ab", code("greater")), ("where", "?ab", {})],
    ),
    "triu": (
        lambda a, b: vg.triu(a, 1),
        [("triangle", "a", {"upper": True, "diagonal": 1})],
    ),
    "cumulative_sum": (
        lambda a, b: vg.cumulative_sum(a, axis=1, include_initial=True),
        [("scan", "a", code("sum") | {"axis": 1, "initial": True})],
    ),
    "cumulative_prod": (
        lambda a, b: vg.cumulative_prod(a, axis=0),
        [("scan", "a", code("prod") | {"axis": 0, "initial": False})],
    ),
    "sort": (
        lambda a, b: vg.sort(a, axis=0, descending=True),
        [("sort", "a", {"axis": 0, "descending": True})],
    ),
    "argsort": (
        lambda a, b: vg.argsort(a),
        [("argsort", "a", {"axis": 1, "descending": False})],
    ),
    "searchsorted": (
        lambda a, b: vg.searchsorted(vg.reshape(a, 4), b, "right"),
        [("reshape", "a", {"shape": (4,)}), ("searchsorted", "?b", {"right": True})],
    ),
    "matmul": (
        lambda a, b: vg.matmul(a, b, precision="ieee"),
        [("matmul", "ab", {"precision": 1})],
    ),
    "vecdot": (
        lambda a, b: vg.vecdot(a, b),
        [
            ("permute", "a", {"axes": (0, 1)}),
            ("permute", "b", {"axes": (0, 1)}),
            ("reshape", "?", {"shape": (2, 1, 2)}),
            ("reshape", "?", {"shape": (2, 2, 1)}),
            ("matmul", "??", {"precision": 0}),
            ("reshape", "?", {"shape": (2,)}),
        ],
    ),
    "tensordot": (
        lambda a, b: vg.tensordot(a, b, axes=1),
        [
            ("permute", "a", {"axes": (0, 1)}),
            ("reshape", "?", {"shape": (2, 2)}),
            ("permute", "b", {"axes": (0, 1)}),
            ("reshape", "?", {"shape": (2, 2)}),
            ("matmul", "??", {"precision": 0}),
            ("reshape", "?", {"shape": (2, 2)}),
        ],
    ),
    "dense": (
        lambda a, b: vg.dense(a, b, activation="relu"),
        [("dense", "ab", {"bias": None, "activation": Operation.RELU, "precision": 0})],
    ),
    "dense_backward": (
        lambda a, b: functional.dense_backward(a, b, a, b, "tanh", precision="tf32"),
        [
            (
                "dense_backward",
                "abab",
                {"activation": Operation.TANH, "precision": 4, "wanted": (True,) * 3},
            )
        ],
    ),
    "astype": (lambda a, b: vg.astype(a, vg.int32), [("cast", "a", {"dtype": vg.int32})]),
    "broadcast_to": (
        lambda a, b: vg.broadcast_to(a, (3, 2, 2)),
        [("broadcast_to", "a", {"shape": (3, 2, 2)})],
    ),
    "contiguous": (lambda a, b: vg.contiguous(a), [("contiguous", "a", {})]),
    "expand_dims": (lambda a, b: vg.expand_dims(a), [("reshape", "a", {"shape": (1, 2, 2)})]),
    "matrix_transpose": (lambda a, b: vg.matrix_transpose(a), [("permute", "a", {"axes": (1, 0)})]),
    "permute_dims": (lambda a, b: vg.permute_dims(a, (1, 0)), [("permute", "a", {"axes": (1, 0)})]),
    "transpose": (lambda a, b: vg.transpose(a), [("permute", "a", {"axes": (1, 0)})]),
    "reshape": (lambda a, b: vg.reshape(a, -1), [("reshape", "a", {"shape": (4,)})]),
    "squeeze": (lambda a, b: vg.squeeze(a), [("reshape", "a", {"shape": (2, 2)})]),
    "asarray": (lambda a, b: vg.asarray(a, copy=True), [("cast", "a", {"dtype": vg.float32})]),
    "array": (lambda a, b: vg.array(a), [("cast", "a", {"dtype": vg.float32})]),
    "empty": (
        lambda a, b: vg.empty(2, device=a.device),
        [("empty", "", {"shape": (2,), "dtype": vg.float32})],
    ),
    "empty_like": (
        lambda a, b: vg.empty_like(a),
        [("empty", "", {"shape": (2, 2), "dtype": vg.float32})],
    ),
    "arange": (
        lambda a, b: vg.arange(3, device=a.device),
        [("empty", "", {"shape": (3,)}), ("sequence", "", {"start": 0, "step": 1, "last": None})],
    ),
    "eye": (
        lambda a, b: vg.eye(2, 3, 1, device=a.device),
        [("empty", "", {"shape": (2, 3)}), ("eye", "", {"diagonal": 1})],
    ),
    "dropout": (lambda a, b: functional.dropout(a, 0.5), [("dropout", "a", {"p": 0.5})]),
    "clip": (lambda a, b: vg.clip(a, 1, 2.5), [("clip", "a", {"low": 1.0, "high": 2.5})]),
    "isclose": (
        lambda a, b: vg.isclose(a, b, atol=2.0),
        [("isclose", "ab", {"rtol": 1e-5, "atol": 2.0, "equal_nan": False})],
    ),
    "nan_to_num": (
        lambda a, b: vg.nan_to_num(a, True, 1, 2, -3),
        [("nan_to_num", "a", {"nan": 1.0, "positive": 2.0, "negative": -3.0})],
    ),
    "softmax": (
        lambda a, b: vg.softmax(a),
        [("softmax", "a", code("softmax") | {"axes": (1,), "keepdims": True})],
    ),
    "log_softmax": (
        lambda a, b: vg.log_softmax(a, None),
        [("softmax", "a", code("log_softmax") | {"axes": None, "keepdims": True})],
    ),
    "logsumexp": (
        lambda a, b: vg.logsumexp(a, (0, 1)),
        [("softmax", "a", code("logsumexp") | {"axes": (0, 1), "keepdims": False})],
    ),
    "var": (
        lambda a, b: vg.var(a, 1, ddof=1),
        [("var", "a", {"axes": (1,), "ddof": 1.0, "root": False, "keepdims": False})],
    ),
    "std": (
        lambda a, b: vg.std(a),
        [("var", "a", {"axes": None, "ddof": 0.0, "root": True, "keepdims": False})],
    ),
}
for name, value in (("zeros", 0), ("ones", 1), ("full", 7)):
    given = () if name != "full" else (value,)
    CASES[name] = (
        lambda a, b, name=name, given=given: function(name)(
            2, *given, dtype="int32", device=a.device
        ),
        [("empty", "", {"shape": (2,), "dtype": vg.int32}), ("fill", "", {"value": value})],
    )
    CASES[f"{name}_like"] = (
        lambda a, b, name=name, given=given: function(f"{name}_like")(a, *given),
        [("empty", "", {"shape": (2, 2), "dtype": vg.float32}), ("fill", "", {"value": value})],
    )


def written(x, write):
    """A copy of x that a function has written to."""
    copy = x.copy()
    write(copy)
    return copy


# Functions that compute through several calls or through other functions: which ones is theirs.
COMPOSED = {
    "apply_along_axis": lambda a, b: vg.apply_along_axis(vg.sum, 1, a),
    "apply_over_axes": lambda a, b: vg.apply_over_axes(vg.sum, a, (0, 1)),
    "frexp": lambda a, b: vg.frexp(a),
    "histogram2d": lambda a, b: vg.histogram2d(a[0], b[0], 2),
    "histogramdd": lambda a, b: (lambda found: [found[0], *found[1]])(vg.histogramdd(a, 2)),
    "i0": lambda a, b: vg.i0(a),
    "ldexp": lambda a, b: vg.ldexp(a, vg.astype(b, "int8")),
    "mask_indices": lambda a, b: vg.mask_indices(3, vg.triu, device=a.device),
    "matvec": lambda a, b: vg.matvec(a, b),
    "packbits": lambda a, b: vg.packbits(a > b, 1),
    "polydiv": lambda a, b: vg.polydiv(a[0], b[0]),
    "sort_complex": lambda a, b: vg.sort_complex(a),
    "unpackbits": lambda a, b: vg.unpackbits(vg.astype(b, "uint8"), 0),
    "unwrap": lambda a, b: vg.unwrap(a),
    "vdot": lambda a, b: vg.vdot(a, b),
    "vecmat": lambda a, b: vg.vecmat(a, b),
    "angle": lambda a, b: vg.angle(a),
    "imag": lambda a, b: vg.imag(a),
    "iscomplex": lambda a, b: vg.iscomplex(a * 1j),
    "iscomplexobj": lambda a, b: vg.iscomplexobj(a),
    "isreal": lambda a, b: vg.isreal(a * 1j),
    "isrealobj": lambda a, b: vg.isrealobj(a),
    "real_if_close": lambda a, b: vg.real_if_close(a * (1 + 0j)),
    "allclose": lambda a, b: vg.allclose(a, b),
    "append": lambda a, b: vg.append(a, b),
    "array_equal": lambda a, b: vg.array_equal(a, b),
    "array_equiv": lambda a, b: vg.array_equiv(a, b),
    "array_split": lambda a, b: vg.array_split(a, 2),
    "average": lambda a, b: vg.average(a, weights=b),
    "bitwise_not": lambda a, b: vg.bitwise_not(a > b),
    "broadcast_arrays": lambda a, b: vg.broadcast_arrays(a, b[0]),
    "count_nonzero": lambda a, b: vg.count_nonzero(a),
    "choose": lambda a, b: vg.choose(vg.astype(a > 0, "int64"), [a, b]),
    "argwhere": lambda a, b: vg.argwhere(a),
    "flatnonzero": lambda a, b: vg.flatnonzero(a),
    "nonzero": lambda a, b: vg.nonzero(a),
    "column_stack": lambda a, b: vg.column_stack([a, b]),
    "compress": lambda a, b: vg.compress([True, False], a, axis=1),
    "block": lambda a, b: vg.block([[a, b], [b, a]]),
    "copyto": lambda a, b: written(a, lambda x: vg.copyto(x, b, "safe", a > 0)),
    "correlate": lambda a, b: vg.correlate(a[0], b[0]),
    "diag_indices": lambda a, b: vg.diag_indices(3, device=a.device),
    "diag_indices_from": lambda a, b: vg.diag_indices_from(a),
    "diagflat": lambda a, b: vg.diagflat(a),
    "fill_diagonal": lambda a, b: written(a, lambda x: vg.fill_diagonal(x, b)),
    "frombuffer": lambda a, b: vg.frombuffer(bytes(8), device=a.device),
    "fromfunction": lambda a, b: vg.fromfunction(vg.add, (2, 3), device=a.device),
    "fromiter": lambda a, b: vg.fromiter([1, 2], "int8", device=a.device),
    "indices": lambda a, b: vg.indices((2, 3), device=a.device),
    "ix_": lambda a, b: vg.ix_(a[0], b[0]),
    "kaiser": lambda a, b: vg.kaiser(3, 2.0, device=a.device),
    "bartlett": lambda a, b: vg.bartlett(3, device=a.device),
    "blackman": lambda a, b: vg.blackman(3, device=a.device),
    "hamming": lambda a, b: vg.hamming(3, device=a.device),
    "hanning": lambda a, b: vg.hanning(3, device=a.device),
    "piecewise": lambda a, b: vg.piecewise(a, [a > 0], [vg.negative]),
    "polyadd": lambda a, b: vg.polyadd(a[0], b[0]),
    "polyder": lambda a, b: vg.polyder(a[0]),
    "polyint": lambda a, b: vg.polyint(a[0]),
    "polymul": lambda a, b: vg.polymul(a[0], b[0]),
    "polysub": lambda a, b: vg.polysub(a[0], b[0]),
    "polyval": lambda a, b: vg.polyval(a[0], b),
    "putmask": lambda a, b: written(a, lambda x: vg.putmask(x, a > 0, b)),
    "ravel_multi_index": lambda a, b: vg.ravel_multi_index([vg.astype(b, "int8")] * 2, (10, 10)),
    "resize": lambda a, b: vg.resize(a, (3, 3)),
    "rollaxis": lambda a, b: vg.rollaxis(a, 1),
    "tril_indices": lambda a, b: vg.tril_indices(3, device=a.device),
    "tril_indices_from": lambda a, b: vg.tril_indices_from(a),
    "trim_zeros": lambda a, b: vg.trim_zeros(a[0]),
    "triu_indices": lambda a, b: vg.triu_indices(3, device=a.device),
    "triu_indices_from": lambda a, b: vg.triu_indices_from(a),
    "unravel_index": lambda a, b: vg.unravel_index(vg.astype(b, "int8"), (5, 5)),
    "ascontiguousarray": lambda a, b: vg.ascontiguousarray(a.T),
    "asanyarray": lambda a, b: vg.asanyarray(a, "int8"),
    "nancumsum": lambda a, b: vg.nancumsum(a),
    "nancumprod": lambda a, b: vg.nancumprod(a),
    "bitwise_count": lambda a, b: vg.bitwise_count(vg.astype(a, "int8")),
    "cbrt": lambda a, b: vg.cbrt(a),
    "float_power": lambda a, b: vg.float_power(a, b),
    "fmod": lambda a, b: vg.fmod(a, b),
    "gcd": lambda a, b: vg.gcd(vg.astype(a, "int8"), vg.astype(b, "int8")),
    "binary_cross_entropy_with_logits": lambda a, b: functional.binary_cross_entropy_with_logits(
        a, b, a, "mean", b
    ),
    "avg_pool1d": lambda a, b: functional.avg_pool1d(a, 2),
    "avg_pool2d": lambda a, b: functional.avg_pool2d(a[None], 2, 1, 1, count_include_pad=False),
    "batch_norm": lambda a, b: functional.batch_norm(a, b[0], b[1], b[0], b[1]),
    "conv1d": lambda a, b: functional.conv1d(a, b[None]),
    "linear": functional.linear,
    "conv2d": lambda a, b: functional.conv2d(a[None], b[None, None], padding="same"),
    "group_norm": lambda a, b: functional.group_norm(a, 1, b[0], b[1]),
    "layer_norm": lambda a, b: functional.layer_norm(a, 2, b[0], b[1]),
    "max_pool1d": lambda a, b: functional.max_pool1d(a, 2),
    "max_pool2d": lambda a, b: functional.max_pool2d(a[None], 2, 1, 1),
    "rms_norm": lambda a, b: functional.rms_norm(a, 2, b[0]),
    "scaled_dot_product_attention": lambda a, b: functional.scaled_dot_product_attention(
        a, b, a, is_causal=True
    ),
    "cross_entropy": lambda a, b: functional.cross_entropy(a, vg.argmax(b, axis=1)),
    "embedding": lambda a, b: functional.embedding(vg.argmax(b, axis=1), a),
    "huber_loss": lambda a, b: functional.huber_loss(a, b),
    "l1_loss": lambda a, b: functional.l1_loss(a, b),
    "mse_loss": lambda a, b: functional.mse_loss(a, b),
    "nll_loss": lambda a, b: functional.nll_loss(a, vg.argmax(b, axis=1), a[0]),
    "smooth_l1_loss": lambda a, b: functional.smooth_l1_loss(a, b),
    "isneginf": lambda a, b: vg.isneginf(a),
    "isposinf": lambda a, b: vg.isposinf(a),
    "lcm": lambda a, b: vg.lcm(vg.astype(a, "int8"), vg.astype(b, "int8")),
    "logaddexp2": lambda a, b: vg.logaddexp2(a, b),
    "modf": lambda a, b: vg.modf(a),
    "sinc": lambda a, b: vg.sinc(a),
    "concat": lambda a, b: vg.concat([a, b]),
    "concatenate": lambda a, b: vg.concatenate([a, b], 1),
    "divmod": lambda a, b: vg.divmod(a, b),
    "delete": lambda a, b: vg.delete(a, 0, axis=1),
    "convolve": lambda a, b: vg.convolve(a[0], b[0]),
    "corrcoef": lambda a, b: vg.corrcoef(a, b),
    "cov": lambda a, b: vg.cov(a, b),
    "cross": lambda a, b: vg.cross(vg.ones((2, 3), device=a.device), a.reshape(4)[:3]),
    "diff": lambda a, b: vg.diff(a, prepend=b),
    "dot": lambda a, b: vg.dot(a, b),
    "dsplit": lambda a, b: vg.dsplit(a[None], 2),
    "dstack": lambda a, b: vg.dstack([a, b]),
    "ediff1d": lambda a, b: vg.ediff1d(a, 1.0, b),
    "einsum": lambda a, b: vg.einsum("ij,kj,jl->il", a, b, a),
    "extract": lambda a, b: vg.extract(a > 0, b),
    "from_dlpack": lambda a, b: vg.from_dlpack(a, copy=True),
    "geomspace": lambda a, b: vg.geomspace(1, 2, device=a.device),
    "gradient": lambda a, b: vg.gradient(a, 2.0, b[0]),
    "hsplit": lambda a, b: vg.hsplit(a, 2),
    "hstack": lambda a, b: vg.hstack([a, b]),
    "identity": lambda a, b: vg.identity(3, device=a.device),
    "index_add": lambda a, b: written(a, lambda x: vg.index_add(x, [1, 1, 0], b[0])),
    "inner": lambda a, b: vg.inner(a, b),
    "insert": lambda a, b: vg.insert(a, 1, b[0], axis=0),
    "invert": lambda a, b: vg.invert(a > b),
    "kron": lambda a, b: vg.kron(a, b),
    "linspace": lambda a, b: vg.linspace(0, 1, device=a.device),
    "logical_not": lambda a, b: vg.logical_not(a),
    "logspace": lambda a, b: vg.logspace(0, 1, device=a.device),
    "meshgrid": lambda a, b: vg.meshgrid(a[0], b[0]),
    "moveaxis": lambda a, b: vg.moveaxis(a, 0, 1),
    "nextafter": lambda a, b: vg.nextafter(a, b),
    "outer": lambda a, b: vg.outer(a, b),
    "place": lambda a, b: written(a, lambda x: vg.place(x, x > 0, b)),
    "put": lambda a, b: written(a, lambda x: vg.put(x, [3, 0], b[0])),
    "put_along_axis": lambda a, b: written(
        a, lambda x: vg.put_along_axis(x, np.array([[0, 1]]), b[:1], 0)
    ),
    "pad": lambda a, b: vg.pad(a, 1, "reflect"),
    "repeat": lambda a, b: vg.repeat(a, 2, axis=1),
    "roll": lambda a, b: vg.roll(a, 1, axis=1),
    "select": lambda a, b: vg.select([a > 0, b > 6], [a, b], 1.0),
    "spacing": lambda a, b: vg.spacing(a),
    "split": lambda a, b: vg.split(a, 2),
    "stack": lambda a, b: vg.stack([a, b]),
    "swapaxes": lambda a, b: vg.swapaxes(a, 0, 1),
    "argpartition": lambda a, b: vg.argpartition(a, 1),
    "bincount": lambda a, b: vg.bincount(vg.astype(b, "int8").reshape(4), a.reshape(4)),
    "digitize": lambda a, b: vg.digitize(a, b[0]),
    "histogram": lambda a, b: vg.histogram(a, 3, weights=b),
    "histogram_bin_edges": lambda a, b: vg.histogram_bin_edges(a),
    "interp": lambda a, b: vg.interp(a, b[0], a[1]),
    "median": lambda a, b: vg.median(a, 0),
    "nanargmax": lambda a, b: vg.nanargmax(a, 1),
    "nanargmin": lambda a, b: vg.nanargmin(a),
    "nanmedian": lambda a, b: vg.nanmedian(a, 0),
    "nanpercentile": lambda a, b: vg.nanpercentile(a, [20, 40]),
    "nanquantile": lambda a, b: vg.nanquantile(a, 0.3, 1),
    "percentile": lambda a, b: vg.percentile(a, [20, 40], method="lower"),
    "quantile": lambda a, b: vg.quantile(a, 0.3, 1),
    "intersect1d": lambda a, b: vg.intersect1d(a, b, return_indices=True),
    "isin": lambda a, b: vg.isin(a, b),
    "lexsort": lambda a, b: vg.lexsort((a, b)),
    "partition": lambda a, b: vg.partition(a, 1),
    "setdiff1d": lambda a, b: vg.setdiff1d(a, b),
    "setxor1d": lambda a, b: vg.setxor1d(a, b),
    "top_k": lambda a, b: vg.top_k(a, 1),
    "union1d": lambda a, b: vg.union1d(a, b),
    "unique": lambda a, b: vg.unique(a, True, True, True),
    "unique_all": lambda a, b: vg.unique_all(a),
    "unique_counts": lambda a, b: vg.unique_counts(a),
    "unique_inverse": lambda a, b: vg.unique_inverse(a),
    "unique_values": lambda a, b: vg.unique_values(a),
    "take": lambda a, b: vg.take(a, [1, 0, -1], axis=1),
    "take_along_axis": lambda a, b: vg.take_along_axis(a, np.array([[0, 1]]), 0),
    "tile": lambda a, b: vg.tile(a, 2),
    "trapezoid": lambda a, b: vg.trapezoid(a, b),
    "tri": lambda a, b: vg.tri(3, device=a.device),
    "true_divide": lambda a, b: vg.true_divide(a, b),
    "unstack": lambda a, b: vg.unstack(a),
    "vander": lambda a, b: vg.vander(a[0]),
    "vsplit": lambda a, b: vg.vsplit(a, 2),
    "vstack": lambda a, b: vg.vstack([a, b]),
}

# Those of vg.linalg; a matrix of its own is positive.
COMPOSED_LINALG = {
    "cholesky": lambda a, b: vg.linalg.cholesky(vg.matmul(a, a.T), upper=True),
    "cond": lambda a, b: vg.linalg.cond(a),
    "eigh": lambda a, b: vg.linalg.eigh(a),
    "eigvalsh": lambda a, b: vg.linalg.eigvalsh(a),
    "lstsq": lambda a, b: vg.linalg.lstsq(a, b)[::3],
    "matrix_norm": lambda a, b: vg.linalg.matrix_norm(a, ord=1),
    "matrix_power": lambda a, b: vg.linalg.matrix_power(a, -2),
    "matrix_rank": lambda a, b: vg.linalg.matrix_rank(a),
    "multi_dot": lambda a, b: vg.linalg.multi_dot([a, b, a]),
    "norm": lambda a, b: vg.linalg.norm(a, "nuc"),
    "outer": lambda a, b: vg.linalg.outer(a[0], b[0]),
    "pinv": lambda a, b: vg.linalg.pinv(a),
    "qr": lambda a, b: vg.linalg.qr(a),
    "slogdet": lambda a, b: vg.linalg.slogdet(a),
    "solve_triangular": lambda a, b: vg.linalg.solve_triangular(a, b),
    "svd": lambda a, b: vg.linalg.svd(a),
    "svdvals": lambda a, b: vg.linalg.svdvals(a),
    "tensorinv": lambda a, b: vg.linalg.tensorinv(a, 1),
    "tensorsolve": lambda a, b: vg.linalg.tensorsolve(a, b[0]),
    "trace": lambda a, b: vg.linalg.trace(a),
    "vector_norm": lambda a, b: vg.linalg.vector_norm(a, ord=3),
}

# Operators, methods and protocols: the same.
OTHERS = {
    "a + b": (operator.add, [("binary", "ab", code("add"))]),
    "a + a": (lambda a, b: a + a, [("binary", "aa", code("add"))]),
    "a < b": (operator.lt, [("binary", "ab", code("less"))]),
    "a * 2.0": (
        lambda a, b: a * 2.0,
        [("scalar", "a", code("multiply") | {"value": 2.0, "side": 1})],
    ),
    "1 - a": (lambda a, b: 1 - a, [("scalar", "a", code("subtract") | {"value": 1, "side": 0})]),
    "a @ b": (operator.matmul, [PRODUCT]),
    "solve": (lambda a, b: vg.linalg.solve(a, b), [("solve", "ab", {"kind": 0})]),
    "inv": (lambda a, b: vg.linalg.inv(a), [("inverse", "a", {})]),
    "det": (lambda a, b: vg.linalg.det(a), [("determinant", "a", {"kind": 0})]),
    "a + ndarray": (
        lambda a, b: a + B,
        [("lend", "", {}), ("binary", "a?", code("add"))],
    ),
    "np.exp(a)": (lambda a, b: np.exp(a), [("unary", "a", code("exp"))]),
    "-a": (lambda a, b: -a, [("unary", "a", code("negative"))]),
    "+a": (lambda a, b: +a, [("cast", "a", {"dtype": vg.float32})]),
    "abs(a)": (lambda a, b: abs(a), [("unary", "a", code("abs"))]),
    "a.sum()": (lambda a, b: a.sum(), [("reduce", "a", code("sum") | {"axes": None})]),
    "a.T": (lambda a, b: a.T, [("permute", "a", {"axes": (1, 0)})]),
    "a.copy()": (lambda a, b: a.copy(), [("cast", "a", {"dtype": vg.float32})]),
    "a[1, :]": (
        lambda a, b: a[1, :],
        [
            ("slice", "a", {"start": (1, 0), "step": (1, 1), "length": (1, 2)}),
            ("reshape", "?", {"shape": (2,)}),
        ],
    ),
    "a[[1, 0]]": (
        lambda a, b: a[[1, 0]],
        [("lend", "", {}), ("gather", "a?", {"axes": (0,), "place": 0, "trusted": True})],
    ),
    "a.numpy()": (lambda a, b: a.numpy(), [("to_host", "a", {})]),
    "a.tolist()": (lambda a, b: a.tolist(), [("to_host", "a", {})]),
    "str(a)": (lambda a, b: str(a), [("to_host", "a", {})]),
    "asarray(ndarray)": (lambda a, b: put(a.device, A), [("from_host", "", {})]),
    "pickle": (lambda a, b: a.__reduce__(), [("to_host", "a", {})]),
}


def function(name):
    return getattr(vg, name, None) or getattr(functional, name)


def observed(call, *arrays):
    """(what a call returns, the Calls of the backend that it took)."""
    calls = []
    with observe(calls.append):
        result = call(*arrays)
    return result, calls


def check(case, device):
    call, expected = case
    a, b = put(device, A), put(device, B)
    result, calls = observed(call, a, b)
    assert [seen.method for seen in calls] == [method for method, _, _ in expected]
    made = []
    for seen, (method, reads, static) in zip(calls, expected, strict=True):
        assert len(seen.inputs) == len(reads), method
        for letter, array in zip(reads, seen.inputs.values(), strict=True):
            source = {"a": [a], "b": [b]}.get(letter, made)
            assert any(array is one for one in source), f"{method} reads another than {letter}"
        for name, value in static.items():
            assert seen.static[name] == value, f"{method}: {name}"
        parameters, written, _ = METHODS[method]
        assert {*seen.inputs, *seen.static} == set(parameters) - set(written), method
        made += seen.results
    last = calls[-1].results
    if isinstance(result, vg.Array):
        assert last[0] is result
    elif isinstance(result, tuple) and isinstance(result[0], vg.Array):
        assert all(one is other for one, other in zip(last, result, strict=True))
    return calls


# NumPy's other names are the same functions.
PUBLIC = {
    name
    for module in (vg.functions, functional)
    for name in module.__all__
    if getattr(getattr(module, name), "__name__", name) == name
}


def test_every_case_is_of_a_public_function():
    assert set(CASES) | set(COMPOSED) <= PUBLIC | set(aliases.__all__)
    assert not set(CASES) & set(COMPOSED)


@pytest.mark.parametrize("name", [*COMPOSED, *(f"linalg.{name}" for name in COMPOSED_LINALG)])
def test_composed_functions_pass_the_seam(device, name):
    """Every Array that comes out is one that a call gave or wrote to, and none reads unseen."""
    a, b = put(device, A), put(device, B)
    versions = a._version, b._version
    module, _, last = name.rpartition(".")
    result, calls = observed((COMPOSED_LINALG if module else COMPOSED)[last], a, b)
    results = result if isinstance(result, (list, tuple)) else [result]
    made = [one for seen in calls for one in seen.results]
    if not isinstance(result, bool):
        assert results and all(any(x is one for one in made) for x in results)
    known = [a, b, *made]
    read = [one for seen in calls for one in seen.inputs.values()]
    assert all(any(x is one for one in known) for x in read)
    assert (a._version, b._version) == versions


@pytest.mark.parametrize("name", sorted(PUBLIC - SETTINGS - set(CASES) - set(COMPOSED)))
def test_functions_of_one_array_pass_the_seam(device, name):
    """Those that no case is written for: called on an Array alone, which they read first."""
    a = put(device, A)
    result, calls = observed(function(name), a)
    assert calls and any(one is a for one in calls[0].inputs.values())
    assert calls[-1].results[0] is result


@pytest.mark.parametrize("name", CASES)
def test_functions_pass_the_seam(device, name):
    check(CASES[name], device)


@pytest.mark.parametrize("name", OTHERS)
def test_operators_and_methods_pass_the_seam(device, name):
    check(OTHERS[name], device)


def test_what_is_written_is_a_result(device):
    a, b, place = put(device, A), put(device, B), put(device, A)
    for call in (
        lambda: vg.exp(a, out=place),
        lambda: vg.add(a, b, out=place),
        lambda: vg.multiply(a, 2, out=place),
        lambda: vg.matmul(a, b, out=place),
        lambda: vg.dense(a, b, out=place),
        lambda: vg.sum(a, axis=0, keepdims=True, dtype=vg.float32, out=place[:1]),
    ):
        result, calls = observed(call)
        written = calls[-1].results
        assert len(written) == 1 and written[0] is result
        assert all(array is not result for array in calls[-1].inputs.values())
    in_place = a
    _, calls = observed(lambda: operator.iadd(in_place, b))
    assert calls[0].results[0] is a and next(iter(calls[0].inputs.values())) is a
    (layer, before), calls = observed(lambda: vg.dense(a, b, None, "relu", with_preactivation=True))
    assert [call.method for call in calls] == ["empty", "dense"]
    assert calls[1].results[0] is layer and calls[1].results[1] is before
    assert [*calls[1].inputs] == ["x", "weight"]
    _, calls = observed(lambda: operator.setitem(a, 0, 3.0))
    assert calls[-1].method == "fill" and calls[-1].inputs == {}
    assert calls[-1].results[0] is calls[-2].results[0], "the view that was filled"
    _, calls = observed(lambda: operator.setitem(a, 0, b[0]))
    assert calls[-1].method == "copy" and len(calls[-1].inputs) == len(calls[-1].results) == 1


def test_results_are_the_same_observed_or_not(device):
    """Operators between two Arrays and unary functions take a shorter way when nothing listens."""
    a, b = put(device, A), put(device, B)
    for call in (
        operator.add,
        operator.eq,
        lambda a, b: a * 2.5,
        vg.add,
        vg.maximum,
        lambda a, b: vg.exp(a),
    ):
        helpers.assert_same(observed(call, a, b)[0], call(a, b).numpy())
    failing = lambda: operator.add(a, put(device, np.ones(3, np.float32)))  # noqa: E731
    for run in (failing, lambda: observed(failing)):
        with helpers.refused(device, ValueError, a):
            run()


def test_failures_are_not_told(device):
    a, calls = put(device, A), []
    with observe(calls.append), helpers.refused(device, ValueError, a):
        vg.add(a, np.ones(3, np.float32))
    told = [call.method for call in calls if call.method != "to_host"]  # by refused() itself
    assert told == ["lend", "from_host", "from_host", "binary"], "the last three are assert_works"


def test_large_numpy_operands_are_observed_in_their_parts(device):
    """Each part of what goes up while results come down is a call, its way back one in a thread."""
    x = np.ones(3 * (16 << 20) // 4, np.float32)
    result, calls = observed(lambda: vg.negative(x, device=device))
    assert (result == -1).all()
    parts = 1 if device == "cpu" else 3
    assert [call.method for call in calls if call.method == "unary"] == ["unary"] * parts
    assert [call.method for call in calls].count("to_host") == parts


def test_callbacks(device):
    """They may compute, which nobody sees; they end with the block; what they raise comes out."""
    a = put(device, A)
    seen, also = [], []

    def callback(call):
        seen.append((call.method, vg.sum(a).item(), threading.get_ident()))

    with observe(callback), observe(also.append):
        a + a
    a + a
    assert [method for method, _, _ in seen] == ["binary"] and len(also) == 1
    assert seen[0][1:] == (6.0, threading.get_ident())
    assert not dispatch._listeners

    def fails(call):
        raise KeyError(call.method)

    with pytest.raises(KeyError, match="unary"), observe(fails):
        vg.exp(a)
    assert not dispatch._listeners
    with observe(also.append):
        worker = threading.Thread(target=lambda: a + a)
        worker.start()
        worker.join()
    assert len(also) == 2, "other threads are observed, too"


def test_methods_are_those_of_both_backends():
    """METHODS has the parameters of CpuBackend in their order; CudaBackend takes as many."""
    for name, (parameters, written, _) in METHODS.items():
        signature = inspect.signature(getattr(CpuBackend, name))
        assert (*signature.parameters,)[1:] == parameters, name
        assert set(written) <= set(parameters)
        other = getattr(CudaBackend, name, None)
        if other is not None:
            assert (*inspect.signature(other).parameters,)[1:] == parameters, name
        else:  # the C function itself, whose arguments ctypes does not count
            assert len(FUNCTIONS[f"pvg_{name}"][1]) == len(parameters), name
    for row in OPERATIONS.values():
        if row.family == "other":
            shared = {"log_softmax": "softmax", "logsumexp": "softmax"}
            assert shared.get(row.name, row.name) in METHODS


def test_backends_have_no_other_methods(device):
    """Whatever takes or gives raw data is a method of the seam, or asks and computes nothing."""
    asks = {"describe", "version", "plain", "pointer", "recording"}
    backend = vg.Device(device).backend
    names = {name for name in dir(CpuBackend) if not name.startswith("_")}
    computing = names & set(METHODS)
    assert computing == set(METHODS)
    assert all(callable(getattr(backend, name)) for name in [*METHODS, *asks])
    rest = {
        "attribute",
        "as_scalar",
        "check",
        "counter",
        "device",
        "download",
        "empty_cache",
        "fail",
        "functions",
        "into",
        "launch_log",
        "library",
        "memory_info",
        "narrowed",
        "number",
        "on_card",
        "own_stream",
        "record",
        "set_memory_limit",
        "short_of_memory",
        "synchronize",
    }
    public = {name for name in dir(backend) if not name.startswith("_")}
    assert public - set(METHODS) - asks <= rest, public - set(METHODS) - asks - rest


def test_threads_begin_and_stop_observing_at_the_same_time():
    """Each is told of its own calls, whoever else begins or stops meanwhile."""
    missed = []

    def watch():
        array = vg.ones(3, device="cpu")
        for number in range(200):
            seen = []
            with observe(lambda call, seen=seen: seen.append(threading.get_ident())):
                array + array
            if seen.count(threading.get_ident()) != 1:
                missed.append((number, len(seen)))

    workers = [threading.Thread(target=watch) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert missed == []


def test_files_pass_the_seam(device, tmp_path):
    """What is written was fetched by a call, and what is read is given by one."""
    a, path = put(device, A), tmp_path / "a.npz"
    for save in (vg.savez, vg.savez_compressed):
        _, calls = observed(lambda save=save: save(path, a))
        assert [seen.method for seen in calls] == ["to_host"] and calls[0].inputs["data"] is a
    _, calls = observed(lambda: vg.save(tmp_path / "a", a))
    assert [seen.method for seen in calls] == ["to_host"]
    result, calls = observed(lambda: vg.load(tmp_path / "a.npy", device=device))
    assert [seen.method for seen in calls] == ["from_host"] and calls[0].results[0] is result
