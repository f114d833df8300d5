"""An Array's version: every write to its memory changes it, and nothing else; views share it."""

import gc

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.backends import METHODS, cpu_results
from pyvecgpu.dispatch import apply, observe
from pyvecgpu.native.abi import Algorithm, Update

functional = vg.nn.functional

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
RATE = [0.5] + [0.0] * (Update.UPDATE_COUNT - 1)


def writes(x, y):
    """name: function that writes to x; y: an Array of x's shape."""
    square = vg.ones((4, 4), device=x.device)

    def preactivation():
        apply(x.backend, "dense", y, square, None, 0, 0, x, None)

    def statistics():  # of two rows: two numbers each
        rows = y.reshape(-1)[:8].reshape(2, 4)
        apply(x.backend, "normalize", rows, None, None, 1, 1, 1, True, 1.0, x[0, :].reshape(2, 2))

    def of_labels():  # of one row: three numbers
        label = vg.zeros((1,), dtype="int32", device=x.device)
        place = x[0, :3].reshape(3, 1)
        apply(x.backend, "cross_entropy", y[:1], label, None, -1, 0.0, place)

    def logsum():
        three = vg.expand_dims(y, axis=-1)
        apply(x.backend, "attention", three, three, three, None, 1.0, False, x)

    def in_place(operator, other):
        return lambda: getattr(x, operator)(other)

    return {
        "unary": lambda: vg.exp(y, out=x),
        "binary": lambda: vg.add(y, y, out=x),
        "scalar": lambda: vg.multiply(y, 2.0, out=x),
        "where": lambda: vg.where(y > 0, y, 1.0, out=x),
        "triangle": lambda: vg.tril(y, out=x),
        "reduce": lambda: vg.sum(y, axis=0, keepdims=True, out=x[:1]),
        "reduce and cast": lambda: vg.sum(y > 0, axis=0, dtype=vg.int32, keepdims=True, out=x[:1]),
        "scan": lambda: vg.cumsum(y, 0, out=x),
        "sort": lambda: x.sort(),
        "matmul": lambda: vg.matmul(y, square, out=x),
        "tensordot": lambda: vg.tensordot(y, square, axes=1, out=x),
        "dense": lambda: vg.dense(y, square, out=x),
        "preactivation": preactivation,
        "statistics of channels": statistics,
        "statistics of labels": of_labels,
        "logsum": logsum,
        "fill": lambda: x.__setitem__(Ellipsis, 2.0),
        "concat": lambda: vg.concat([y[:2], y[2:]], out=x),
        "softmax": lambda: vg.softmax(y, out=x),
        "var": lambda: vg.var(y, axis=0, keepdims=True, out=x[:1]),
        "clip": lambda: vg.clip(y, 1.0, 2.0, out=x),
        "within": lambda: vg.clip(y, y, y, out=x),
        "nan_to_num": lambda: vg.nan_to_num(x, False),
        "sequence": lambda: apply(x.backend, "sequence", x[0], 1.0, 2.0, None),
        "eye": lambda: apply(x.backend, "eye", x, 1),
        "optimize": lambda: apply(x.backend, "optimize", Algorithm.SGD, [x], [y], RATE, None),
        "clip_norm": lambda: apply(x.backend, "clip_norm", [x], vg.max(y), 1.0),
        "random": lambda: vg.random.default_rng(1).random(out=x),
        "copy": lambda: x.__setitem__(Ellipsis, y),
        "copy of a host array": lambda: x.__setitem__(0, X[1]),
        "copy to a part": lambda: x.__setitem__((1, slice(None, None, 2)), y[0, ::2]),
        "copy to rows by number": lambda: x.__setitem__([2, 0], y[:2]),
        "sums in rows by number": lambda: vg.index_add(x, [0, 0], y[:2]),
        "put where": lambda: x.__setitem__(y > 3, 2.0),
        "copy from the host": lambda: apply(x.backend, "copy_from_host", X, x),
        "+=": in_place("__iadd__", y),
        "-= scalar": in_place("__isub__", 1.0),
        "@=": in_place("__imatmul__", square),
        "through a view": lambda: vg.negative(y.T, out=x.T),
        "as an operand": lambda: vg.add(x, x, out=x),
        "NumPy's ufunc": lambda: np.multiply(y, y, out=x),
    }


def views(x):
    return {
        "slice": x[1:],
        "element": x[0, 0],
        "step": x[:, ::-2],
        "transpose": x.T,
        "reshape": x.reshape(-1),
        "broadcast": vg.broadcast_to(x, (2, 3, 4)),
        "expanded": vg.expand_dims(x),
        "contiguous": x.contiguous(),
        "view of a view": x.T[1:, 1:],
    }


@pytest.mark.parametrize("name", writes(put("cpu", X), put("cpu", X)))
def test_writes_change_it_for_all_views(device, name):
    x, y = put(device, X), put(device, X)
    seen = views(x)
    for _ in range(2):  # the first write and a later one
        before, other = x._version, y._version
        assert {view._version for view in seen.values()} == {before}
        writes(x, y)[name]()
        assert x._version > before
        assert {n: view._version for n, view in seen.items()} == dict.fromkeys(seen, x._version)
        assert y._version == other, "the operand was read only"


def test_every_method_that_writes_is_among_them():
    x, y = put("cpu", X), put("cpu", X)
    calls = []
    with observe(calls.append):
        for write in writes(x, y).values():
            write()
    seen = {call.method for call in calls if METHODS[call.method][1]}
    seen |= {"pool"}  # writes to integers: test_windows.py
    assert seen == {name for name, (_, written, _) in METHODS.items() if written} - {"to_host"}


def test_writes_through_a_view_change_its_base(device):
    for name in views(put(device, X)):
        if name == "broadcast":  # read-only
            continue
        x = put(device, X)
        before = x._version
        view = views(x)[name]
        view[...] = 5.0
        assert x._version == view._version > before, name


def test_reads_leave_it(device):
    x = put(device, X)
    x += 1.0
    before = x._version
    for use in (
        x.numpy,
        x.tolist,
        lambda: str(x),
        lambda: x + x,
        lambda: x * 2,
        lambda: vg.exp(x),
        lambda: vg.sum(x),
        lambda: x @ x.T,
        lambda: functional.dense(x, x),
        lambda: functional.dense_backward(vg.ones((3, 3), device=device), x, x),
        lambda: vg.where(x > 1, x, 0.0),
        lambda: x.astype(vg.float64),
        lambda: vg.add(x, x, out=put(device, X)),
        lambda: list(views(x)),
        x.copy,
        lambda: put(device, X).__setitem__(0, x[0]),
    ):
        use()
        assert x._version == before


def test_failures_leave_it(device):
    x = put(device, X)
    x += 1.0
    before = x._version
    with helpers.refused(device, ValueError, x):
        vg.add(x[0], 1.0, out=x)
    with helpers.refused(device, TypeError, x):
        vg.add(x, 1.0, out=x.astype(vg.int32))
    with helpers.refused(device, OverflowError, x):
        vg.full_like(x.astype(vg.int32), 2**40)
    with helpers.refused(device, ValueError, x):
        x[0] = vg.ones(3, device=device)
    assert x._version == before


def test_memory_that_is_gone_leaves_no_version():
    """The CPU device keeps versions beside the arrays, only of those that were written to."""
    gc.collect()
    before = len(cpu_results._versions)
    x = put("cpu", X)
    view = x[1:]
    assert len(cpu_results._versions) == before
    view += 1.0
    x += 1.0
    assert len(cpu_results._versions) == before + 1
    del x
    assert len(cpu_results._versions) == before + 1, "the view keeps the memory"
    del view
    assert len(cpu_results._versions) == before
