"""Names that NumPy's users type, against NumPy: grids, blocks, polynomials, windows, masks, ..."""

import inspect

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, assert_same, put, refused

import pyvecgpu as vg

A = np.array([[3.0, -1.5, 0.0], [np.nan, 2.0, 7.25]])
I = np.array([[3, 1, 0], [5, 2, 7]])  # noqa: E741
V = np.array([0.0, 0.0, 2.0, -1.0, 0.0, 3.0, 0.0])
M = I > 2
R = np.array([3, 0, 5])

# What numpy and pyvecgpu are both asked: (module, what makes an operand).
SAME = {
    "indices": lambda m, x: m.indices((2, 3)),
    "indices 2": lambda m, x: m.indices((4,), np.int8),
    "indices 3": lambda m, x: m.indices((2, 3), sparse=True),
    "ix_": lambda m, x: m.ix_(x(R), x(np.array([True, False, True])), [1, 2]),
    "ix_ 2": lambda m, x: x(np.arange(36).reshape(6, 6))[m.ix_(x(R), [1, 2])],
    "tril_indices": lambda m, x: m.tril_indices(4, 1, 3),
    "triu_indices": lambda m, x: m.triu_indices(3, -1),
    "tril_indices_from": lambda m, x: m.tril_indices_from(x(I)),
    "triu_indices_from": lambda m, x: m.triu_indices_from(x(I), 1),
    "diag_indices": lambda m, x: m.diag_indices(3, 3),
    "diag_indices_from": lambda m, x: m.diag_indices_from(x(np.zeros((2, 2, 2)))),
    "unravel_index": lambda m, x: m.unravel_index(x(np.array([[22, 41], [37, 0]])), (7, 6)),
    "unravel_index 2": lambda m, x: m.unravel_index(x(R), 6),
    "ravel_multi_index": lambda m, x: m.ravel_multi_index((x(R), x(np.array([[1], [0]]))), (7, 6)),
    "ravel_multi_index 2": lambda m, x: m.ravel_multi_index((x(R - 4), x(R)), (4, 2), "wrap"),
    "ravel_multi_index 3": lambda m, x: m.ravel_multi_index(
        (x(R - 4), x(R)), (4, 2), ("clip", "wrap")
    ),
    "diagflat": lambda m, x: m.diagflat(x(I), -1),
    "resize": lambda m, x: m.resize(x(I), (4, 4)),
    "resize 2": lambda m, x: m.resize(x(I), 2),
    "resize 3": lambda m, x: m.resize(x(V[:0]), (2, 2)),
    "resize 4": lambda m, x: m.resize(x(V), (0, 3)),
    "trim_zeros": lambda m, x: m.trim_zeros(x(V)),
    "trim_zeros 2": lambda m, x: m.trim_zeros(x(V), "f"),
    "trim_zeros 3": lambda m, x: m.trim_zeros(x(V), "b"),
    "trim_zeros 4": lambda m, x: m.trim_zeros(x(V[:2])),
    "rollaxis": lambda m, x: m.rollaxis(x(np.zeros((2, 3, 4))), 2),
    "rollaxis 2": lambda m, x: m.rollaxis(x(np.zeros((2, 3, 4))), 0, 3),
    "rollaxis 3": lambda m, x: m.rollaxis(x(np.zeros((2, 3, 4))), -1, -2),
    "block": lambda m, x: m.block([[x(I), x(np.ones((2, 1)))], [x(np.zeros((1, 4)))]]),
    "block 2": lambda m, x: m.block([x(R), 2, x(R)]),
    "block 3": lambda m, x: m.block(x(R)),
    "block 4": lambda m, x: m.block([[[x(I)]], [[x(I)]]]),
    "correlate": lambda m, x: m.correlate(x(V), x(R)),
    "polyval": lambda m, x: m.polyval([3, 0, 1], x(I)),
    "polyval 2": lambda m, x: m.polyval(x(V), x(A)),
    "polyval 3": lambda m, x: m.polyval(x(R), 3),
    "polyadd": lambda m, x: m.polyadd(x(R), x(I[0][:2])),
    "polysub": lambda m, x: m.polysub([1, 2], x(R)),
    "polymul": lambda m, x: m.polymul(x(R), x(V[2:])),
    "polyder": lambda m, x: m.polyder(x(R)),
    "polyder 2": lambda m, x: m.polyder(x(V), 3),
    "polyint": lambda m, x: m.polyint(x(V)),
    "polyint 2": lambda m, x: m.polyint(x(V), 2, [1.0, 2.0]),
    "nancumsum": lambda m, x: m.nancumsum(x(A), 1),
    "nancumsum 2": lambda m, x: m.nancumsum(x(A)),
    "nancumprod": lambda m, x: m.nancumprod(x(A), axis=0),
    "nancumprod 2": lambda m, x: m.nancumprod(x(I)),
    "nanargmax": lambda m, x: m.nanargmax(x(A), 1),
    "nanargmin": lambda m, x: m.nanargmin(x(A)),
    "nanargmin 2": lambda m, x: m.nanargmin(x(I), axis=0, keepdims=True),
    "piecewise": lambda m, x: m.piecewise(x(V), [x(V < 0), x(V > 1)], [lambda v: -v, 5.0]),
    "piecewise 2": lambda m, x: m.piecewise(
        x(V), x(V > 0), [lambda v, k: v * k, lambda v, k: v - k], 3
    ),
    "ascontiguousarray": lambda m, x: m.ascontiguousarray(x(I).T),
    "asanyarray": lambda m, x: m.asanyarray(x(I)),
    "shape": lambda m, x: np.asarray([*m.shape(x(I)), *m.shape([[1], [2]])]),
    "ndim": lambda m, x: np.asarray([m.ndim(x(I)), m.ndim(3), m.ndim([1])]),
    "size": lambda m, x: np.asarray([m.size(x(I)), m.size(x(I), 1), m.size([1, 2])]),
    "iterable": lambda m, x: np.asarray([m.iterable(x(I)), m.iterable(3), m.iterable(x(I)[0, 0])]),
    "isscalar": lambda m, x: np.asarray([m.isscalar(x(I)), m.isscalar(3), m.isscalar("a")]),
    "promote_types": lambda m, x: np.zeros(0, m.promote_types("int8", np.uint8)),
}


@pytest.mark.parametrize("case", SAME)
def test_as_numpy(device, case):
    call = SAME[case]
    expected = call(np, lambda x: x)
    with vg.device(device):
        result = call(vg, lambda x: put(device, x))
        host = call(vg, lambda x: x)
    groups = [(result, expected)]
    groups += [(host, expected)] if "rollaxis" not in case and "block" not in case else []
    for found, wanted in groups:
        if not isinstance(wanted, (tuple, list)):
            found, wanted = (found,), (wanted,)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    arrays = result if isinstance(result, tuple) else (result,)
    assert all(x.device == vg.Device(device) for x in arrays if isinstance(x, vg.Array))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
def test_windows(device, name):
    more = (8.6,) if name == "kaiser" else ()
    for count in (0, 1, 2, 5, 12, -3):
        expected = getattr(np, name)(count, *more)
        window = getattr(vg, name)
        assert_same(window(count, *more, dtype="float64", device=device), expected)
        assert_same(window(count, *more, device=device), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
def test_correlate(device, rng, dtype):
    for n, m in ((5, 3), (3, 5), (4, 4), (1, 6), (6, 2), (2, 7)):
        a, b = (rng.integers(0, 3, k).astype(dtype) for k in (n, m))
        for mode in ("full", "same", "valid"):
            expected = np.correlate(a.astype(np.float64), b.astype(np.float64), mode)
            result = vg.correlate(put(device, a), put(device, b), mode)
            assert result.dtype == dtype or (dtype.kind == "b" and result.dtype == dtype)
            if dtype.kind != "b":
                assert_same(result, expected.astype(dtype))
    a, b = np.array([1 + 2j, 3j, -1]), np.array([2j, 1])
    assert_same(vg.correlate(put(device, a), put(device, b)), np.correlate(a, b))
    assert_same(vg.correlate(put(device, b), put(device, a), "full"), np.correlate(b, a, "full"))


WRITES = {
    "copyto": lambda m, x, o: m.copyto(x, o(V)),
    "copyto 2": lambda m, x, o: m.copyto(x, 3),
    "copyto 3": lambda m, x, o: m.copyto(x, o(V), "unsafe", o(np.arange(7) % 2 == 0)),
    "copyto 4": lambda m, x, o: m.copyto(x, [1, 2, 3, 4, 5, 6, 7]),
    "putmask": lambda m, x, o: m.putmask(x, o(np.arange(7) % 3 == 0), o(V + 1)),
    "putmask 2": lambda m, x, o: m.putmask(x, o(np.arange(7) % 3 == 0), [1, 2]),
    "putmask 3": lambda m, x, o: m.putmask(x, o(np.arange(7) > 3), 9),
    "put": lambda m, x, o: m.put(x, o(R), o(V)),
    "place": lambda m, x, o: m.place(x, o(np.arange(7) > 3), o(R)),
}


@pytest.mark.parametrize("case", WRITES)
def test_writes(device, case):
    base = np.arange(14.0)
    for step in (1, 2, -2):
        expected = base.copy()
        view = expected[::step][:7]
        WRITES[case](np, view, lambda x: x)
        array = put(device, base)
        WRITES[case](vg, array[::step][:7], lambda x: put(device, x))
        assert_same(array, expected)
    if case.startswith("p") and "mask" not in case:  # NumPy's arrays, too
        host = base[:7].copy()
        WRITES[case](vg, host, lambda x: put(device, x))
        WRITES[case](np, other := base[:7].copy(), lambda x: x)
        assert_same(host, other)


def test_put_along_an_axis_of_numpys(device):
    x = I.copy()
    vg.put_along_axis(x, put(device, np.array([[0], [2]])), put(device, np.array([[9], [8]])), 1)
    assert x.tolist() == [[9, 1, 0], [5, 2, 8]]
    with pytest.raises(TypeError, match="writes to"):
        vg.put([1, 2], [0], 1)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 5), (7, 2), (3, 3, 3)])
def test_fill_diagonal(device, shape):
    for value in (5, [1, 2], np.array([7, 8, 9, 10, 11])):
        for wrap in (False, True):
            x = np.zeros(shape, np.float32)
            for name in ("contiguous", "transposed"):
                array = LAYOUTS[name](device, x) if name in helpers.layouts(x) else put(device, x)
                np.fill_diagonal(expected := x.copy(), value, wrap)
                vg.fill_diagonal(array, value, wrap)
                assert_same(array, expected)


def test_from_buffers_and_iterables(device):
    raw = np.arange(5, dtype=np.int16).tobytes()
    for dtype, count, offset in (("int16", -1, 0), ("uint8", 3, 2), ("int16", 2, 4)):
        found = vg.frombuffer(raw, dtype, count, offset, device=device)
        assert_same(found, np.frombuffer(raw, dtype, count, offset))
    assert_same(vg.frombuffer(bytearray(16), device=device), np.zeros(2))
    assert_same(vg.fromiter((i * i for i in range(4)), "int32", device=device),
                np.array([0, 1, 4, 9], np.int32))  # fmt: skip
    assert_same(vg.fromfunction(lambda i, j: i * 2 + j, (2, 3), dtype="int64", device=device),
                np.arange(6).reshape(2, 3) - np.array([[0], [1]]))  # fmt: skip
    with pytest.raises(ValueError, match="buffer"):
        vg.frombuffer(b"123", "int16", device=device)
    with pytest.raises(TypeError, match="not an Array"):
        vg.frombuffer(put(device, np.arange(8.0)), device=device)


REFUSED = {
    "fill_diagonal": (lambda x: vg.fill_diagonal(x[0], 1), ValueError),
    "resize": (lambda x: vg.resize(x, -1), ValueError),
    "trim_zeros": (lambda x: vg.trim_zeros(x, axis=2), np.exceptions.AxisError),
    "trim_zeros letters": (lambda x: vg.trim_zeros(x[0], "x"), ValueError),
    "unravel_index": (lambda x: vg.unravel_index(x, (2, 2)), ValueError),
    "unravel_index of floats": (lambda x: vg.unravel_index(x * 0.5, (2, 2)), TypeError),
    "ravel_multi_index": (lambda x: vg.ravel_multi_index((x, x), (2, 2)), ValueError),
    "ravel_multi_index mode": (lambda x: vg.ravel_multi_index((x, x), (9, 9), "x"), ValueError),
    "ravel_multi_index axes": (lambda x: vg.ravel_multi_index((x,), (9, 9)), ValueError),
    "block": (lambda x: vg.block([[x], x]), ValueError),
    "block of nothing": (lambda x: vg.block([[x], []]), ValueError),
    "ix_": (lambda x: vg.ix_(x), ValueError),
    "tril_indices_from": (lambda x: vg.tril_indices_from(x[0]), ValueError),
    "diag_indices_from": (lambda x: vg.diag_indices_from(x), ValueError),
    "copyto": (lambda x: vg.copyto(x, 1.5), TypeError),
    "copyto shape": (lambda x: vg.copyto(x, [1, 2]), ValueError),
    "putmask": (lambda x: vg.putmask(x, [True], 1), ValueError),
    "polyval": (lambda x: vg.polyval(x, 1), ValueError),
    "polyadd": (lambda x: vg.polyadd(x, x), ValueError),
    "polyder": (lambda x: vg.polyder(x[0], -1), ValueError),
    "polyint": (lambda x: vg.polyint(x[0], 2, [1]), ValueError),
    "piecewise": (lambda x: vg.piecewise(x, [x > 1], [1, 2, 3]), ValueError),
    "correlate": (lambda x: vg.correlate(x, x), ValueError),
    "rollaxis": (lambda x: vg.rollaxis(x, 3), np.exceptions.AxisError),
    "rollaxis start": (lambda x: vg.rollaxis(x, 0, 4), np.exceptions.AxisError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(device, case):
    call, error = REFUSED[case]
    x = put(device, I)
    with refused(device, error, x):
        call(x)


def test_docstrings_begin_with_what_comes_back():
    for name in vg.functions.grids.__all__ + vg.functions.queries.__all__:
        first = inspect.getdoc(getattr(vg, name)).splitlines()[0]
        assert first.startswith(("Return", "Write")), name
