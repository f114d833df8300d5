"""NumPy's protocols: its functions on Arrays, hidden copies to the host, buffers, pickles."""

import copy
import functools
import inspect
import pickle
import re
import sys

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu import protocols, streams

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
S = np.array([[4.0, 1.0], [1.0, 3.0]])

# Calls of NumPy's functions, f(m, x, s): m is NumPy, x and s are arrays or Arrays.
CALLS = {
    "concatenate": lambda m, x, s: m.concatenate([x, x], axis=1),
    "concat": lambda m, x, s: m.concat([x, x]),
    "stack": lambda m, x, s: m.stack([x, x], axis=-1),
    "vstack": lambda m, x, s: m.vstack([x, x]),
    "where": lambda m, x, s: m.where(x > 0, x, -x),
    "where of ndarray": lambda m, x, s: m.where(X > 0, x, 0.0),
    "std": lambda m, x, s: m.std(x, axis=0, ddof=1),
    "sum": lambda m, x, s: m.sum(x, axis=1, keepdims=True),
    "mean": lambda m, x, s: m.mean(x),
    "max": lambda m, x, s: m.max(x, axis=0),
    "argmax": lambda m, x, s: m.argmax(x, axis=1),
    "clip": lambda m, x, s: m.clip(x, 0, 2),
    "reshape": lambda m, x, s: m.reshape(x, (3, 2)),
    "transpose": lambda m, x, s: m.transpose(x),
    "sort": lambda m, x, s: m.sort(x, axis=1),
    "argsort": lambda m, x, s: m.argsort(x, axis=1),
    "cumsum": lambda m, x, s: m.cumsum(x, axis=0),
    "percentile": lambda m, x, s: m.percentile(x, 30, axis=1),
    "median": lambda m, x, s: m.median(x, axis=0),
    "unique": lambda m, x, s: m.unique(x),
    "tensordot": lambda m, x, s: m.tensordot(s, x, axes=1),
    "einsum": lambda m, x, s: m.einsum("ij,jk->ik", s, x),
    "dot": lambda m, x, s: m.dot(s, x),
    "take": lambda m, x, s: m.take(x, [1, 0], axis=1),
    "pad": lambda m, x, s: m.pad(x, 1),
    "roll": lambda m, x, s: m.roll(x, 1, axis=0),
    "expand_dims": lambda m, x, s: m.expand_dims(x, 0),
    "broadcast_to": lambda m, x, s: m.broadcast_to(x, (2, 2, 3)),
    "isclose": lambda m, x, s: m.isclose(x, x + 1e-9),
    "full_like": lambda m, x, s: m.full_like(x, 7.0),
    "zeros_like": lambda m, x, s: m.zeros_like(x, shape=(4,), dtype="int32"),
    "ones_like": lambda m, x, s: m.ones_like(x, subok=False, order="K"),
    "linalg.norm": lambda m, x, s: m.linalg.norm(x, axis=1),
    "linalg.solve": lambda m, x, s: m.linalg.solve(s, x),
    "linalg.inv": lambda m, x, s: m.linalg.inv(s),
    "linalg.det": lambda m, x, s: m.linalg.det(s),
    "fft.fft": lambda m, x, s: m.fft.fft(x, axis=1),
    "fft.rfft": lambda m, x, s: m.fft.rfft(x),
    "add.reduce": lambda m, x, s: m.add.reduce(x),
    "add.reduce, axis": lambda m, x, s: m.add.reduce(x, axis=1, keepdims=True),
    "maximum.reduce": lambda m, x, s: m.maximum.reduce(x, axis=None),
    "logical_and.reduce": lambda m, x, s: m.logical_and.reduce(x > 0, axis=1),
    "add.accumulate": lambda m, x, s: m.add.accumulate(x, axis=1),
    "add, dtype": lambda m, x, s: m.add(x, x, dtype=np.float32),
    "multiply of ndarray": lambda m, x, s: m.multiply(X, x, where=True, casting="same_kind"),
    "exp": lambda m, x, s: m.exp(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_numpy_compute_here(device, name):
    """They give an Array on the same device, with NumPy's values, dtype and shape."""
    expected = np.asarray(CALLS[name](np, X, S))
    result = CALLS[name](np, put(device, X), put(device, S))
    assert isinstance(result, vg.Array) and result.device == vg.Device(device)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["divmod", "modf", "frexp"])
@pytest.mark.parametrize("options", [{}, {"where": True}, {"casting": "same_kind"}], ids=str)
def test_ufuncs_with_two_results(device, name, options):
    operands = (X, 2.0) if name == "divmod" else (X,)
    expected = getattr(np, name)(*operands)
    found = getattr(np, name)(put(device, X), *operands[1:], **options)
    assert len(found) == 2
    for ours, theirs in zip(found, expected, strict=True):
        assert isinstance(ours, vg.Array) and ours.device == vg.Device(device)
        assert_same(ours, theirs)


def test_functions_with_other_results(device, tmp_path):
    x = put(device, X)
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6
    assert np.allclose(x, X) and np.array_equal(x, x) and not np.array_equal(x, x + 1)
    parts = np.split(x, 3, axis=1)
    assert [p.shape for p in parts] == [(2, 1)] * 3 and isinstance(parts[0], vg.Array)
    np.savez(tmp_path / "x.npz", a=x, b=x[0])
    np.save(tmp_path / "x.npy", x)
    assert_same(np.load(tmp_path / "x.npz")["b"], X[0])
    assert_same(np.load(tmp_path / "x.npy"), X)
    assert np.array_repr(x) == repr(x) and np.array_str(x) == str(x)
    assert np.array2string(x, precision=2) == np.array2string(X, precision=2)
    assert np.iscomplexobj(x) is False and np.result_type(x, np.float32) == np.float64


def test_creation_like(device):
    """like= says the device."""
    x = put(device, X)
    for made, expected in (
        (np.asarray([1.0, 2.0], like=x), [1, 2]),
        (np.zeros(2, like=x), [0, 0]),
        (np.full((2,), 5.0, like=x), [5, 5]),
        (np.arange(3, like=x), [0, 1, 2]),
        (np.loadtxt(["1 2"], like=x), [1, 2]),
        (np.fromstring("1 2", sep=" ", like=x), [1, 2]),
    ):
        assert isinstance(made, vg.Array) and made.device == x.device
        assert made.tolist() == expected


def test_the_table_has_what_both_have():
    """Each name of NumPy's that has a function here is one, and the same name."""
    table = protocols.table()
    assert len(table) > 200
    for theirs, ours in table.items():
        home = vg.linalg if "linalg" in theirs.__module__ else vg
        home = vg.fft if "fft" in theirs.__module__ else home
        names = [n for m in (home, vg) for n, f in vars(m).items() if f is ours]
        assert ours in table.values() and names, theirs


DOUBLE = np.frompyfunc(lambda value: 2 * value, 1, 1)  # a ufunc that nobody has
LACKING = {
    "lib.scimath.sqrt": lambda x: np.emath.sqrt(x),
    "lib.scimath.log": lambda x: np.emath.log(x),
    "lib.scimath.power": lambda x: np.emath.power(x, x),
    "lib.stride_tricks.sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(
        x, 2, axis=1
    ),
}


@pytest.mark.parametrize("name", LACKING)
def test_other_functions_are_refused_on_every_device(device, name):
    x = put(device, X)
    with helpers.refused(device, vg.ImplicitTransferError, x) as refusal:
        LACKING[name](x)
    assert f"numpy.{name}" in str(refusal.value) and ".numpy()" in str(refusal.value)
    with vg.implicit_transfers("allow"):
        result, expected = LACKING[name](x), LACKING[name](X)
    assert not isinstance(result, vg.Array)
    np.testing.assert_allclose(result, expected)


def test_arguments_that_are_not_there(device):
    x = put(device, X)
    with helpers.refused(device, TypeError, x) as refusal:
        np.nanstd(x, where=X > 0)
    assert "where=" in str(refusal.value) and "numpy.nanstd" in str(refusal.value)
    assert np.sum(x, where=X > 0).item() == X[X > 0].sum()
    with helpers.refused(device, TypeError, x, match=r"numpy\.matmul does"):
        np.matmul(x, x, dtype="float64")
    with helpers.refused(device, TypeError, x, match=r"numpy\.frexp does"):
        np.frexp(x, where=X > 0)
    with helpers.refused(device, TypeError, x, match=r"numpy\.add does"):
        np.add(x, x, casting="unsafe")
    with helpers.refused(device, TypeError, x):
        DOUBLE(x)
    with vg.implicit_transfers("allow"):
        assert np.nanstd(x, where=X > 0) == np.nanstd(X, where=X > 0)
        assert_same(DOUBLE(x).astype(float), 2 * X)


def test_arguments_and_methods_of_ufuncs(device):
    x = put(device, X)
    out = put(device, np.full_like(X, 9))
    assert np.add(x, x, out=out, where=X > 0) is out
    assert_same(out.numpy(), np.where(X > 0, 2 * X, 9))
    for name in ("add", "multiply", "maximum", "hypot", "logical_xor"):
        ufunc = getattr(np, name)
        for found, expected in (
            (ufunc.outer(x, x[0]), ufunc.outer(X, X[0])),
            (ufunc.reduce(x, axis=-1, keepdims=True), ufunc.reduce(X, axis=-1, keepdims=True)),
            (ufunc.accumulate(x, axis=1), ufunc.accumulate(X, axis=1)),
            (ufunc.reduceat(x, [0, 1]), ufunc.reduceat(X, [0, 1])),
        ):
            assert isinstance(found, vg.Array) and found.dtype == expected.dtype
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_others_come_first(device):
    """An object with a protocol of its own decides what it does with Arrays."""

    class Theirs:
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return ufunc.__name__

        def __array_function__(self, function, types, arguments, options):
            return function.__name__

    x = put(device, X)
    assert np.add(x, Theirs()) == "add" and np.concatenate([x, Theirs()]) == "concatenate"


def test_the_page_of_examples(device):
    """What docs/interoperability.md shows, one block after the other."""
    page = (helpers.ROOT / "docs" / "interoperability.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    names = {}
    with vg.device(device):
        for block in blocks:
            exec(block, names)
    assert names["phase"].shape == (6,)
    streams.release(vg.Device(device))


# Hidden copies to the host ------------------------------------------------------------------------


def test_by_default_only_the_cpu_gives_a_view(device):
    x = put(device, X)
    if device == "cpu":
        view = np.asarray(x)
        assert np.shares_memory(view, x.raw)
        assert np.shares_memory(np.asarray(x, copy=False), x.raw)
        np.testing.assert_array_equal(x, X)
        return
    for call in (np.asarray, np.testing.assert_array_equal):
        with helpers.refused(device, vg.ImplicitTransferError, x, match=r"\.numpy\(\)"):
            call(x, *([X] if call is np.testing.assert_array_equal else []))


def test_errors_everywhere(device):
    x = put(device, X)
    with vg.implicit_transfers("error"):
        with helpers.refused(device, vg.ImplicitTransferError, x, match=device):
            np.asarray(x)
        with helpers.refused(device, vg.ImplicitTransferError, x):
            np.testing.assert_allclose(x, X)
        assert np.sum(x).item() == X.sum() and x.numpy().tolist() == X.tolist()


def test_allowed_everywhere(device):
    x = put(device, X)
    with vg.implicit_transfers("allow"):
        assert_same(np.asarray(x), X)
        assert np.asarray(x, dtype=np.float32).dtype == np.float32
        np.testing.assert_allclose(x, X)
        if device != "cpu":
            with pytest.raises(ValueError, match="copy is False"):
                np.asarray(x, copy=False)


@pytest.mark.parametrize(
    "take",
    [np.asarray, functools.partial(np.negative, casting="unsafe"), np.emath.sqrt],
    ids=["an array", "a ufunc", "another function"],
)
def test_warnings_everywhere(device, take):
    """They name the line that calls NumPy, not one of this package's."""
    x, line = put(device, X), inspect.currentframe().f_lineno + 5
    with (
        vg.implicit_transfers("warn"),
        pytest.warns(RuntimeWarning, match="took the values") as caught,
    ):
        found = take(x)
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)
    assert_same(np.asarray(found), take(X))


def test_the_switch(device):
    x = put(device, X)
    wanted = vg.implicit_transfers("error")
    try:
        with pytest.raises(vg.ImplicitTransferError):
            np.asarray(x)
        with vg.implicit_transfers("allow"):
            np.asarray(x)
        with pytest.raises(vg.ImplicitTransferError):
            np.asarray(x)
    finally:
        vg.implicit_transfers(None)
    assert wanted.before is None
    for mode in ("yes", True, 1, "Allow"):
        with pytest.raises(ValueError, match="'allow', 'warn', 'error' or None"):
            vg.implicit_transfers(mode)
    with pytest.raises(RuntimeError, match="detach"), vg.implicit_transfers("allow"):
        np.asarray(put(device, X).requires_grad_())


# Buffers, pickles ---------------------------------------------------------------------------------


def test_a_buffer_is_the_one_of_the_host_array(monkeypatch):
    """On any Python: NumPy's arrays have the method from 3.12 on."""
    asked = []

    class Host:
        def __buffer__(self, flags):
            asked.append(flags)
            return memoryview(b"seven")

    x = put("cpu", X)
    monkeypatch.setattr("pyvecgpu.protocols.values.to_host", lambda array: Host())
    assert x.__buffer__(8) == memoryview(b"seven") and asked == [8]


def test_buffers(device):
    """memoryview(x) is there from Python 3.12 on; what it calls is there always."""
    x = put(device, X)
    if device != "cpu":
        with pytest.raises(BufferError, match=r"\.numpy\(\)"):
            x.__buffer__(0)
        return
    with vg.implicit_transfers("error"), pytest.raises(BufferError, match="numpy"):
        x.__buffer__(0)
    if sys.version_info >= (3, 12):
        assert bytes(x.__buffer__(inspect.BufferFlags.SIMPLE)) == X.tobytes()
        assert x.__buffer__(inspect.BufferFlags.FULL_RO).tolist() == X.tolist()
    else:
        with pytest.raises(AttributeError, match="numpy"):  # NumPy's own comes with Python 3.12
            x.__buffer__(0)
    with pytest.raises(BufferError, match="detach"):
        put(device, X).requires_grad_().__buffer__(0)
    if sys.version_info >= (3, 12):
        view = memoryview(x)
        assert view.shape == (2, 3) and view.tolist() == X.tolist()
        view[0, 0] = 9.0
        assert x[0, 0].item() == 9.0
        assert np.shares_memory(np.asarray(x), x.raw)


def test_pickles_without_copies(device):
    """Protocol 5 hands the values out beside the pickle."""
    x = put(device, X)
    buffers = []
    text = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1 and len(text) < 1000
    assert_same(pickle.loads(text, buffers=buffers), X)
    for other in (copy.copy(x), copy.deepcopy({"x": x})["x"]):
        other[0, 0] = 7.0
        assert other.device is x.device
    assert_same(x, X)


def test_the_namespace(device):
    x = put(device, X)
    assert x.__array_namespace__() is vg
    assert x.__array_priority__ > X.__array_priority__
