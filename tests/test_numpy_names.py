"""More names that NumPy's users type, against NumPy: products, phases, bits, histograms, makers."""

import io
import math
import pickle

import helpers
import numpy as np
import pytest
from helpers import DTYPES, LAYOUTS, assert_same, put, refused

import pyvecgpu as vg

REAL = [d for d in DTYPES if d.kind in "iuf" and d not in helpers.HALVES]
F8 = np.dtype("float64")


def close(found, expected, rtol=1e-12, atol=1e-12):
    found = helpers.host(found) if isinstance(found, vg.Array) else np.asarray(found)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    error = np.abs(found.astype(complex) - expected.astype(complex))
    plain = np.isfinite(expected)
    assert np.array_equal(found[~plain], expected[~plain], equal_nan=True)
    limit = atol + rtol * np.abs(expected[plain])
    assert not np.any(~(error[plain] <= limit)), error[plain].max()


# Products -----------------------------------------------------------------------------------------

PRODUCTS = {
    "matvec": [((3, 4), (4,)), ((2, 3, 4), (4,)), ((3, 4), (5, 4)), ((2, 1, 3, 4), (5, 4)),
               ((0, 4), (4,)), ((3, 0), (0,))],
    "vecmat": [((3,), (3, 4)), ((3,), (2, 3, 4)), ((5, 3), (3, 4)), ((5, 3), (2, 1, 3, 4)),
               ((0,), (0, 4))],
    "vdot": [((4,), (4,)), ((2, 3), (3, 2)), ((2, 3), (6,)), ((0,), (0, 2)), ((1,), ())],
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "complex64"])
def test_products(device, rng, name, dtype):
    for shapes in PRODUCTS[name]:
        a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in shapes)
        if dtype == "complex64":
            a, b = a + 1j * rng.integers(-3, 4, a.shape), b - 2j * rng.integers(-3, 4, b.shape)
            a, b = a.astype(dtype), b.astype(dtype)
        if name == "matvec":
            expected = np.matmul(a, b[..., None])[..., 0]
        elif name == "vecmat":
            expected = np.matmul(a.conj()[..., None, :], b)[..., 0, :]
        else:
            expected = np.asarray(np.vdot(a, b))
        function = getattr(vg, name)
        for one in helpers.layouts(a):
            for other in helpers.layouts(b):
                found = function(LAYOUTS[one](device, a), LAYOUTS[other](device, b))
                assert found.dtype == dtype
                close(found, expected)
        host = function(a, b, device=device)
        assert isinstance(host, (np.ndarray, np.generic))
        close(np.asarray(host), expected)
        if name != "vdot":
            out = put(device, np.zeros(expected.shape, dtype))
            assert function(put(device, a), put(device, b), out) is out
            close(out, expected)


# Functions of one array, over dtypes and layouts --------------------------------------------------

ANGLES = np.array([[0.1, 3.0, -3.1, 2.9, 9.5, 0.0, 6.5], [0.0, 1, 2, 3, 4, 5, 6]])
STEPS = np.array([[0, 3, 1, 2, -1, 7, 40], [-9, 0, 5, 3, 3, 2, 100]])


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_unwrap(device, dtype):
    if dtype.kind == "u":
        return  # their steps wrap, as NumPy's do
    x = (ANGLES if dtype.kind == "f" else STEPS).astype(dtype)
    for values in (x, x.T, x[::-1, ::2], x[:, :1], x[:, :0]):
        for axis in (0, 1, -1):
            for more in ({}, {"period": 4}, {"period": 5}, {"discont": 4.5}, {"period": 2.5}):
                expected = np.unwrap(values, axis=axis, **more)
                found = vg.unwrap(put(device, values), axis=axis, **more)
                if dtype.kind == "f" or isinstance(more.get("period"), int):
                    assert found.dtype == dtype
                close(found, expected, 3e-6, 3e-5 if dtype != F8 else 1e-12)


def test_exponents(device):
    for dtype in ("float16", "float32", "float64", "int16", "bool"):
        x = helpers.specials(np.dtype(dtype)).ravel()
        if np.dtype(dtype).kind == "f":
            more = np.float64(2.0) ** np.arange(-30, 30).repeat(2)
            x = np.concatenate([x, (more * np.tile([1, -1.5], 60)).astype(dtype)])
            if dtype == "float64":
                x = np.concatenate([x, 2.0 ** np.arange(-1074, 1024), [5e-324, 1.7e308, -3e-310]])
        found = vg.frexp(put(device, x))
        wide = x if np.dtype(dtype).kind == "f" else x.astype(np.float32)
        expected = np.frexp(wide)
        assert_same(found[0], expected[0])
        assert_same(found[1], expected[1].astype(np.int32))
        for kind in ("int8", "int32", "int64", "uint8", "uint64"):
            powers = np.array([0, 1, -1, 3, -20, 60, 127, -128, -1000, 1000, -2100, 2100, -1074])
            powers = powers[(powers >= np.iinfo(kind).min) & (powers <= np.iinfo(kind).max)]
            n = powers.astype(kind)[:, None]
            with np.errstate(all="ignore"):
                expected = np.ldexp(wide, n.astype(np.int64))
            assert_same(vg.ldexp(put(device, x), put(device, n)), expected)
    x = np.array([1.0, -1.5, 1 + 2.0**-52, 5e-324, 2.0**-1022, 1.7e308])
    n = np.arange(-2200, 2201)[:, None]  # every step that there is, and what lies beyond
    with np.errstate(all="ignore"):
        assert_same(vg.ldexp(put(device, x), put(device, n)), np.ldexp(x, n))
    assert_same(vg.ldexp(put(device, np.ones(2)), 2**70), np.array([np.inf, np.inf]))
    assert vg.ldexp(1.0, put(device, np.array([3]))).tolist() == [8.0]
    out = put(device, np.zeros(1, np.float32))
    assert vg.ldexp(put(device, np.ones(1, np.float32)), 4, out) is out and out.item() == 16


def test_i0(device):
    x = np.concatenate([np.linspace(-25, 25, 301), [0.0, 1e-300, 700.0, -709.0, np.nan]])
    close(vg.i0(put(device, x)), np.i0(x), 2e-14)
    assert vg.i0(put(device, np.array([-np.inf]))).item() == np.inf
    small = x[np.abs(x) < 80].astype(np.float32)
    close(vg.i0(put(device, small)), np.i0(small.astype(float)), 2e-7)
    close(vg.i0(put(device, np.arange(5))), np.i0(np.arange(5)), 2e-7)
    assert vg.i0(np.ones(3)).shape == (3,)


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits(device, rng, order):
    for shape in ((8,), (13,), (3, 16), (2, 5, 9), (0,), (0, 8), (8, 0), ()):
        for dtype in ("bool", "uint8", "int64"):
            x = rng.integers(0, 3, shape).astype(dtype)
            for axis in (None, *range(-len(shape), len(shape))):
                expected = np.packbits(x, axis, order)
                for one in helpers.layouts(x):
                    found = vg.packbits(LAYOUTS[one](device, x), axis, order)
                    assert_same(found, expected)
        x = rng.integers(0, 256, shape).astype(np.uint8)
        for axis in (None, *range(-len(shape), len(shape))):
            for count in (None, 3, 12, 200, -1, -8):
                try:
                    expected = np.unpackbits(x, axis, count, order)
                except ValueError:
                    with refused(device, ValueError):
                        vg.unpackbits(put(device, x), axis, count, order)
                    continue
                if not x.size:  # of which NumPy leaves what is filled up uninitialised
                    expected = np.zeros_like(expected)
                assert_same(vg.unpackbits(put(device, x), axis, count, order), expected)


@pytest.mark.parametrize("dtype", [*REAL, np.dtype("complex64"), np.dtype("complex128")], ids=str)
def test_sort_complex(device, rng, dtype):
    x = rng.integers(0, 4, (3, 5)).astype(dtype)
    if dtype.kind == "c":
        x = (x + 1j * rng.integers(0, 4, x.shape)).astype(dtype)
    for values in (x, x.T, x[::-1]):
        found = vg.sort_complex(put(device, values))
        assert found.dtype == vg.result_type(dtype, 1j)
        close(found, np.sort_complex(values), 0, 0)


# Polynomials --------------------------------------------------------------------------------------


def test_polydiv(device):
    for u, v in (
        ([3.0, 5.0, 2.0], [2.0, 1.0]), ([1, 5, 6], [1, 2]), ([1.0], [2.0, 1.0]), ([4.0, 2], [2.0]),
        ([1.0, 0, 0, 0, -1], [1.0, 0, 1]), ([0.0, 0.0, 1.0], [1.0, 2.0]), ([1, 2, 3], [1j, 2]),
    ):  # fmt: skip
        wide = [np.asarray(x, np.result_type(np.asarray(x).dtype, np.float64)) for x in (u, v)]
        for found, expected in zip(vg.polydiv(*(put(device, x) for x in wide)),
                                   np.polydiv(u, v), strict=True):  # fmt: skip
            close(found, expected)
        assert all(isinstance(x, np.ndarray) for x in vg.polydiv(*wide))


def in_order(values):
    values = np.asarray(values)
    return values[np.lexsort((values.imag.round(9), values.real.round(9)))]


def test_roots_and_poly(device):
    for p in ([1.0, -3, 2], [0.0, 0, 1, -3, 2, 0, 0], [1.0, 0, 1], [5.0], [0.0, 0], [2, 0, -8], []):
        expected = np.roots(p)
        wide = np.asarray(p, np.float64)
        found = vg.roots(put(device, wide))
        assert found.device == vg.Device(device) and found.dtype == vg.complex128
        close(in_order(found.numpy()), in_order(expected), 1e-9, 1e-9)
    for zs in ([1.0, 2.0, -3.0], [1j, -1j, 2.0], [1j, 2.0], [[1.0, 2.0], [3.0, 4.0]], []):
        values = np.asarray(zs, np.result_type(np.asarray(zs).dtype, np.float64))
        expected = np.atleast_1d(np.poly(zs))
        found = vg.poly(put(device, values))
        assert found.dtype.kind == expected.dtype.kind
        close(found, expected, 1e-12, 1e-12)


@pytest.mark.parametrize("deg", [0, 1, 3])
def test_polyfit(device, rng, deg):
    x = np.linspace(-2, 3, 20)
    for y in (np.polyval([1.0, -2, 0.5], x) + rng.normal(size=20), rng.normal(size=(20, 3))):
        for w in (None, rng.uniform(0.5, 2, 20)):
            a, b = put(device, x), put(device, y)
            weights = None if w is None else put(device, w)
            close(vg.polyfit(a, b, deg, w=weights), np.polyfit(x, y, deg, w=w), 1e-9, 1e-10)
            found = vg.polyfit(a, b, deg, full=True, w=weights)
            expected = np.polyfit(x, y, deg, full=True, w=w)
            assert found[2] == expected[2] and found[4] == expected[4]
            for i in (0, 1, 3):
                close(found[i], expected[i], 1e-9, 1e-10)
            for cov in (True, "unscaled"):
                found = vg.polyfit(a, b, deg, w=weights, cov=cov)
                expected = np.polyfit(x, y, deg, w=w, cov=cov)
                for one, other in zip(found, expected, strict=True):
                    if one.ndim == 3 and cov == "unscaled":
                        other = other.reshape(one.shape)
                    close(one, other, 1e-8, 1e-9)
    with pytest.warns(np.exceptions.RankWarning):
        vg.polyfit(put(device, np.ones(4)), put(device, np.ones(4)), 2)
    host = vg.polyfit(x, x, 1)
    assert isinstance(host, np.ndarray)
    half = vg.polyfit(put(device, x.astype(np.float32)), put(device, (2 * x).astype(np.float32)), 1)
    assert half.dtype == vg.float32


# Histograms ---------------------------------------------------------------------------------------

HISTOGRAMS = {
    "as they are": {},
    "bins": {"bins": 4},
    "both": {"bins": [3, 5]},
    "range": {"range": [(0, 1), (-1, 2)]},
    "density": {"density": True, "bins": [2, 3]},
    "edges": {"bins": [[0, 0.5, 1.5, 2], [-1.0, 0, 1]]},
    "mixed": {"bins": [[0, 0.5, 1.5, 2], 3]},
    "one edge for both": {"bins": np.array([0.0, 0.5, 1.5, 2.0])},
}


@pytest.mark.parametrize("name", HISTOGRAMS)
@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_histograms(device, rng, name, dtype):
    x, y = (rng.integers(-2, 4, 60).astype(dtype) for _ in range(2))
    if dtype != "int16":
        x, y = x + rng.random(60).astype(dtype), y + rng.random(60).astype(dtype)
    w = rng.integers(1, 5, 60).astype(np.float64)
    options = HISTOGRAMS[name]
    for weights in (None, w):
        if name == "density" and dtype == "int16":
            continue
        expected = np.histogram2d(x.astype(F8), y.astype(F8), weights=weights, **options)
        given = None if weights is None else put(device, weights)
        found = vg.histogram2d(put(device, x), put(device, y), weights=given, **options)
        for one, other in zip(found, expected, strict=True):
            close(one, other, 1e-6, 1e-6)
        if name == "one edge for both":
            continue
        both = np.stack([x, y], 1)
        counts, edges = vg.histogramdd(put(device, both), weights=given, **options)
        close(counts, expected[0], 1e-6, 1e-6)
        assert len(edges) == 2 and counts.dtype == vg.float64
        again, _ = vg.histogramdd([put(device, x), put(device, y)], weights=given, **options)
        assert_same(again, counts.numpy())
    three = rng.random((50, 3))
    expected = np.histogramdd(three, 3)
    found = vg.histogramdd(put(device, three), 3)
    assert_same(found[0], expected[0])
    assert isinstance(vg.histogramdd(three, 3)[0], np.ndarray)
    close(vg.histogramdd(put(device, three[:, 0]), 4)[0], np.histogramdd(three[:, :1], 4)[0])


# Functions of functions ---------------------------------------------------------------------------


def test_apply(device, rng):
    x = rng.integers(0, 9, (2, 3, 4))
    calls = {
        "scalar": (lambda m: lambda v: v.max() - v.min()),
        "python": (lambda m: lambda v: float(v[0])),
        "array": (lambda m: lambda v: v[:2] * 10),
        "matrix": (lambda m: lambda v: v[:, None] * v[None, :2]),
    }
    for make in calls.values():
        for axis in (0, 1, 2, -1):
            for values in (x, x.transpose(2, 0, 1), x[::-1]):
                expected = np.apply_along_axis(make(np), axis, values)
                found = vg.apply_along_axis(make(vg), axis, put(device, values))
                close(found, expected, 0, 0)
                assert found.device == vg.Device(device)
    added = vg.apply_along_axis(lambda v, k, *, j: v * k + j, 0, put(device, x), 2, j=1)
    assert_same(added, x * 2 + 1)
    for axes in (0, (0, 2), [1, -1], (0, 1, 2)):
        close(vg.apply_over_axes(vg.sum, put(device, x), axes), np.apply_over_axes(np.sum, x, axes))
    keeping = vg.apply_over_axes(vg.cumsum, put(device, x), (0, 1))
    assert_same(keeping, np.cumsum(np.cumsum(x, 0), 1))
    assert vg.mask_indices(3, vg.tril, -1, device=device)[0].tolist() == [1, 2, 2]


# Makers -------------------------------------------------------------------------------------------

MADE = {
    "mgrid": lambda m, x: m.mgrid[0:3],
    "mgrid 2": lambda m, x: m.mgrid[0:3, -1:2],
    "mgrid 3": lambda m, x: m.mgrid[:2, 1:9:3, 0:0],
    "mgrid 4": lambda m, x: m.mgrid[5:0:-2, :2],
    "r_": lambda m, x: m.r_[1:4, 0, 4],
    "r_ 2": lambda m, x: m.r_[x(np.arange(3)), 0, 0, x(np.arange(2))],
    "r_ 3": lambda m, x: m.r_["-1", x(np.ones((2, 2), int)), x(np.zeros((2, 1), int))],
    "r_ 4": lambda m, x: m.r_["0,2", x(np.arange(3)), x(np.arange(3))],
    "r_ 5": lambda m, x: m.r_["0,2,0", x(np.arange(3)), x(np.arange(2))],
    "r_ 9": lambda m, x: m.r_["2,3,0", x(np.arange(3)), x(np.arange(3))],
    "r_ 10": lambda m, x: m.r_["0,3,1", x(np.arange(6).reshape(2, 3)), x(np.ones((4, 3), int))[:2]],
    "r_ 6": lambda m, x: m.r_["1,2,0", x(np.arange(3)), 0:3],
    "r_ 7": lambda m, x: m.r_[x(np.ones((2, 2), int)), x(np.zeros((1, 2), int))],
    "r_ 8": lambda m, x: m.r_[[1, 2], 7],
    "c_": lambda m, x: m.c_[x(np.arange(3)), x(np.arange(3))],
    "c_ 2": lambda m, x: m.c_[x(np.array([[1, 2, 3]])), 0, 0, x(np.array([[4, 5]]))],
    "c_ 3": lambda m, x: m.c_[1:4, x(np.ones((3, 2), int))],
    "s_": lambda m, x: x(np.arange(12).reshape(3, 4))[m.s_[1:, ::2]],
    "index_exp": lambda m, x: x(np.arange(12).reshape(3, 4))[m.index_exp[1:, ::2]],
}


@pytest.mark.parametrize("case", MADE)
def test_makers(device, case):
    expected = MADE[case](np, lambda x: x)
    with vg.device(device):
        found = MADE[case](vg, lambda x: put(device, x))
    assert found.device == vg.Device(device)
    assert_same(found, expected)


def test_grids_of_floats(device):
    with vg.device(device):
        close(vg.mgrid[0:1:0.25], np.mgrid[0:1:0.25], 1e-6)
        close(vg.mgrid[-1:1:5j, 0:2], np.mgrid[-1:1:5j, 0:2], 1e-6)
        close(vg.r_[0:1:5j, 2.5, -1], np.r_[0:1:5j, 2.5, -1], 1e-6)
        for one, other in zip(vg.ogrid[0:3, 0:2, 1:3], np.ogrid[0:3, 0:2, 1:3], strict=True):
            assert_same(one, other)
        assert_same(vg.ogrid[0:3], np.ogrid[0:3])
        assert vg.mgrid[0:2, 0:2].dtype == vg.int64
    for x in (vg.mgrid, vg.ogrid, vg.r_, vg.c_):
        assert "index it" in repr(x)


def test_indices_and_values(device):
    x = np.arange(6.0).reshape(2, 3)
    for values in (x, x.T, x[::-1], x[:, :0], x[0, 0]):
        found = list(vg.ndenumerate(put(device, values)))
        assert found == [(i, float(v)) for i, v in np.ndenumerate(values)]
    assert list(vg.ndindex(2, 2)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    array = put(device, x)
    later = vg.ndenumerate(array)
    array[...] = 0
    assert [v for _, v in later] == x.ravel().tolist()


# Text and files -----------------------------------------------------------------------------------


def test_texts(device, tmp_path):
    x = np.array([[1.5, -2.0, 3.25], [0.0, 1e10, -7.0]])
    path = tmp_path / "x.txt"
    vg.savetxt(path, put(device, x), "%.4f", ",", header="a b")
    np.savetxt(tmp_path / "y.txt", x, "%.4f", ",", header="a b")
    assert path.read_bytes() == (tmp_path / "y.txt").read_bytes()
    for options in ({}, {"usecols": [2, 0]}, {"unpack": True}, {"ndmin": 2}, {"skiprows": 2},
                    {"skiprows": 1, "max_rows": 1}):  # fmt: skip
        found = vg.loadtxt(path, delimiter=",", device=device, **options)
        assert found.device == vg.Device(device)
        assert_same(found, np.loadtxt(path, delimiter=",", **options))
    assert vg.loadtxt(path, "float32", delimiter=",", device=device).dtype == vg.float32
    holes = ["1,2,", "4,,6"]
    for options in ({}, {"filling_values": 9}, {"usecols": (0, 1)}, {"skip_header": 1}):
        found = vg.genfromtxt(holes, delimiter=",", device=device, **options)
        assert_same(found, np.genfromtxt(holes, delimiter=",", **options))
    for dtype in ("int16", "float64", "complex64"):
        values = x.astype(dtype)
        for one in helpers.layouts(values):
            LAYOUTS[one](device, values).tofile(tmp_path / "x.bin")
            assert (tmp_path / "x.bin").read_bytes() == values.tobytes()
        found = vg.fromfile(tmp_path / "x.bin", dtype, device=device)
        assert_same(found, values.ravel())
        size = values.itemsize
        part = vg.fromfile(tmp_path / "x.bin", dtype, 2, offset=size, device=device)
        assert_same(part, values.ravel()[1:3])
        memory = io.BytesIO()
        put(device, values).tofile(memory)
        assert memory.getvalue() == values.tobytes()
    with open(tmp_path / "t.txt", "wb") as stream:
        put(device, x).tofile(stream, ";", "%.2f")
    assert_same(vg.fromfile(tmp_path / "t.txt", sep=";", device=device), x.ravel())
    put(device, x).tofile(text := io.BytesIO(), ";", "%.2f")
    assert text.getvalue() == (tmp_path / "t.txt").read_bytes()
    assert_same(vg.fromstring("1 2 3", "int32", sep=" ", device=device), np.array([1, 2, 3], "i4"))
    assert_same(vg.fromstring("1,2,3", count=2, sep=",", device=device), np.array([1.0, 2.0]))


def test_printing(device):
    x = np.linspace(0, 1, 7).reshape(1, 7).astype(np.float32)
    array = put(device, x)
    for options in ({}, {"precision": 2}, {"max_line_width": 20}, {"suppress_small": True}):
        assert vg.array_str(array, **options) == np.array_str(x, **options)
        assert vg.array2string(array, **options) == np.array2string(x, **options)
    given = {"separator": ", ", "floatmode": "fixed", "precision": 3, "sign": "+"}
    assert vg.array2string(array, **given) == np.array2string(x, **given)
    assert vg.array2string(array, formatter={"float": "<{:.1f}>".format}) == np.array2string(
        x, formatter={"float": "<{:.1f}>".format}
    )
    assert vg.array_repr(array) == repr(array) and vg.array_str(array) == str(array)
    assert vg.array_repr(array, precision=2).startswith("Array([[0.  , 0.17")
    many = np.arange(5000).reshape(50, 100)
    assert vg.array2string(put(device, many)) == np.array2string(many)
    assert vg.array2string(put(device, many), threshold=10, edgeitems=2) == np.array2string(
        many, threshold=10, edgeitems=2
    )
    assert vg.array2string(put(device, many), threshold=9999) == np.array2string(
        many, threshold=9999
    )


# Dtypes and memory --------------------------------------------------------------------------------

ALIASES = [
    *("bool_", "byte", "cdouble", "csingle", "double", "half", "int_", "intc", "intp", "long"),
    *("longlong", "short", "single", "ubyte", "uint", "uintc", "uintp", "ulong", "ulonglong"),
    "ushort",
]


@pytest.mark.parametrize("name", ALIASES)
def test_other_names_of_dtypes(name):
    assert getattr(vg, name) == np.dtype(getattr(np, name))
    assert vg.ones(2, getattr(vg, name), device="cpu").dtype == getattr(np, name)


def test_questions_about_dtypes(device):
    for one in (vg.float32, "int8", np.complex64, bool):
        for other in (np.floating, np.integer, np.number, np.generic, vg.float32, "int8"):
            assert vg.issubdtype(one, other) == np.issubdtype(one, other)
    assert vg.issubdtype(vg.bfloat16, np.floating) and vg.issubdtype(vg.bfloat16, np.number)
    assert vg.issubdtype(vg.bfloat16, vg.bfloat16) and not vg.issubdtype(vg.bfloat16, np.integer)
    assert not vg.issubdtype(vg.float32, vg.bfloat16) and not vg.issubdtype(vg.bfloat16, vg.float16)
    for value in (1, -1, 300, 70000, 1.0, 1e50, True, 1j):
        assert vg.min_scalar_type(value) == np.min_scalar_type(value)
    assert vg.min_scalar_type(put(device, np.array(7))) == np.dtype("uint8")
    assert vg.min_scalar_type(put(device, np.array([7]))) == np.dtype("int64")
    assert vg.euler_gamma == np.euler_gamma


def test_shared_memory(device):
    host = np.zeros((6, 8), np.float32)
    array = put(device, host)
    views = {
        "whole": lambda x: x,
        "rows": lambda x: x[::2],
        "other rows": lambda x: x[1::2],
        "columns": lambda x: x[:, ::3],
        "other columns": lambda x: x[:, 1::3],
        "transposed": lambda x: x.T[2:5],
        "backwards": lambda x: x[::-1, 4:],
        "nothing": lambda x: x[:0],
        "one": lambda x: x[3:4, 5:6],
    }
    for one in views.values():
        for other in views.values():
            for name in ("shares_memory", "may_share_memory"):
                found = getattr(vg, name)(one(array), other(array))
                assert found == getattr(np, name)(one(host), other(host))
    assert not vg.shares_memory(array, array.copy())
    assert not vg.may_share_memory(array, host) and vg.shares_memory(host, host[1:])
    assert not vg.shares_memory(array, vg.zeros(4, device="cpu"))


# Methods ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [*LAYOUTS])
def test_flat(device, layout):
    x = np.arange(24).reshape(4, 6)
    if layout not in helpers.layouts(x):
        return
    array = LAYOUTS[layout](device, x)
    assert len(array.flat) == 24 and list(array.flat) == x.ravel().tolist()
    for key in (0, -1, 7, slice(2, 20, 3), slice(None, None, -1), [3, 1, 3], np.array([0, 23])):
        found = array.flat[key]
        assert_same(found, np.asarray(x.flat[key]))
        assert not vg.shares_memory(found, array)
    mask = x.ravel() % 3 == 0
    assert_same(array.flat[put(device, mask)], x.ravel()[mask])
    for key, value in ((0, 5), (slice(2, 9), 7), ([1, 3], np.array([8, 9])), (mask, -1)):
        array.flat[key] = value
        x.flat[key] = value
        assert_same(array, x)
    array.flat = 3
    assert (array.numpy() == 3).all()
    array.flat = np.arange(24)
    assert_same(array.flat.copy(), np.arange(24))
    with pytest.raises(IndexError):
        array.flat[24]
    with pytest.raises(IndexError):
        array.flat[1, 2]


def test_flags(device):
    x = np.zeros((3, 4, 5), np.float32)
    views = [lambda x: x, lambda x: x.T, lambda x: x[::2], lambda x: x[:, :, :1], lambda x: x[:1],
             lambda x: x[::2][:1], lambda x: x[:, ::4], lambda x: x.T[::5],
             lambda x: x[0, :, 0], lambda x: x[:0], lambda x: x[0, 0, 0], lambda x: x[:, ::-1],
             lambda x: x.transpose(0, 2, 1), lambda x: x[:, :1, :1].T]  # fmt: skip
    for view in views:
        ours, theirs = view(put(device, x)).flags, np.asarray(view(x)).flags
        for name in ("c_contiguous", "f_contiguous", "contiguous", "fnc", "forc", "writeable"):
            assert getattr(ours, name) == getattr(theirs, name), name
        assert ours["C_CONTIGUOUS"] == theirs["C_CONTIGUOUS"] and ours.behaved and ours.aligned
    repeated = vg.broadcast_to(put(device, x[0, 0]), (2, 5)).flags
    assert not repeated.writeable and not repeated.behaved
    with pytest.raises(KeyError):
        repeated["OWNDATA"]
    with pytest.raises(AttributeError):
        repeated.writeable_ = True
    assert "C_CONTIGUOUS : False" in repr(repeated)


def test_dump(device, tmp_path):
    x = np.arange(6.0).reshape(2, 3)
    array = put(device, x).T
    array.dump(tmp_path / "x.pickle")
    array.dump(stream := io.BytesIO())
    stored = (array.dumps(), (tmp_path / "x.pickle").read_bytes(), stream.getvalue())
    for one in map(pickle.loads, stored):
        assert one.device == vg.Device(device)
        assert_same(one, x.T)


def test_tensor_equations(device, rng):
    a = rng.normal(size=(2, 3, 6)) + 3 * np.eye(6).reshape(2, 3, 6)
    b = rng.normal(size=(2, 3))
    for make in (lambda v: put(device, v), lambda v: v):
        found = vg.linalg.tensorsolve(make(a), make(b))
        close(found, np.linalg.tensorsolve(a, b), 1e-9, 1e-9)
        close(vg.linalg.tensorinv(make(a)), np.linalg.tensorinv(a), 1e-9, 1e-9)
    c = rng.normal(size=(2, 6, 3))
    found = vg.linalg.tensorsolve(put(device, c), put(device, b), axes=(1,))
    close(found, np.linalg.tensorsolve(c, b, axes=(1,)), 1e-8, 1e-8)
    square = rng.normal(size=(4, 4))
    close(vg.linalg.tensorinv(put(device, square), 1), np.linalg.inv(square), 1e-9, 1e-9)


# Gradients ----------------------------------------------------------------------------------------

TRACKED = {
    "vdot": lambda x: vg.vdot(x, x),
    "matvec": lambda x: vg.matvec(x, x[0]),
    "vecmat": lambda x: vg.vecmat(x[0], x.T),
    "unwrap": lambda x: vg.unwrap(x * 3, axis=1),
    "ldexp": lambda x: vg.ldexp(x, 3),
    "i0": lambda x: vg.i0(x),
    "polydiv": lambda x: vg.concat(vg.polydiv(x.reshape(-1), x[0, 1:] + 1.0)),
    "apply_along_axis": lambda x: vg.apply_along_axis(lambda v: v * v.sum(), 0, x),
    "apply_over_axes": lambda x: vg.apply_over_axes(vg.sum, x * x, (0, 1)),
    "tensorinv": lambda x: vg.linalg.tensorinv(x[:, :2] + 3 * vg.eye(2, dtype="float64"), 1),
    "r_": lambda x: vg.r_[x[0], 1.0, x[1]],
    "c_": lambda x: vg.c_[x[0], x[1]] ** 2.0,
    "poly": lambda x: vg.poly(x[0]),
}


@pytest.mark.parametrize("name", TRACKED)
def test_gradients(device, name):
    x = np.array([[0.3, -1.2, 0.9], [2.1, 0.4, -0.7]])
    with vg.device(device):
        array = put(device, x).requires_grad_()
        result = TRACKED[name](array)
        weights = np.cos(np.arange(result.size)).reshape(result.shape)
        vg.sum(result * put(device, weights)).backward()
        found = array.grad.numpy()
        for place in np.ndindex(x.shape):
            h = np.zeros_like(x)
            h[place] = 1e-5
            up, down = (
                (TRACKED[name](put(device, one)).numpy() * weights).sum() for one in (x + h, x - h)
            )
            slope = (up - down) / 2e-5
            assert not abs(found[place] - slope) > 1e-6 * max(1, abs(slope)), place


# Refusals -----------------------------------------------------------------------------------------

REFUSED = {
    "matvec": (lambda x: vg.matvec(x, x[:, :2]), ValueError, "matvec"),
    "vecmat": (lambda x: vg.vecmat(x[0], x), ValueError, "vecmat"),
    "vdot": (lambda x: vg.vdot(x, x[0]), ValueError, "vdot"),
    "unwrap": (lambda x: vg.unwrap(x * 1j), TypeError, "real"),
    "an axis": (lambda x: vg.unwrap(x, axis=2), np.exceptions.AxisError, "axis 2"),
    "ldexp": (lambda x: vg.ldexp(x, x * 0.5), TypeError, "integers"),
    "ldexp of complex": (lambda x: vg.ldexp(x * 1j, x), TypeError, "real"),
    "frexp": (lambda x: vg.frexp(x * 1j), TypeError, "real"),
    "i0": (lambda x: vg.i0(x * 1j), TypeError, "real"),
    "packbits": (lambda x: vg.packbits(x * 0.5), TypeError, "integers"),
    "unpackbits": (lambda x: vg.unpackbits(x), TypeError, "uint8"),
    "an order": (lambda x: vg.packbits(x, bitorder="x"), ValueError, "bitorder"),
    "polydiv": (lambda x: vg.polydiv(x, x), ValueError, "dimension"),
    "roots": (lambda x: vg.roots(x), ValueError, "dimension"),
    "poly": (lambda x: vg.poly(x), ValueError, "square"),
    "a degree": (lambda x: vg.polyfit(x[0], x[0], -1), ValueError, "degree"),
    "points": (lambda x: vg.polyfit(x[0], x, 1), ValueError, "points"),
    "weights": (lambda x: vg.polyfit(x[0], x[0], 1, w=x[0, :2]), ValueError, "weights of shape"),
    "one weight": (lambda x: vg.polyfit(x[0], x[0], 1, w=x[0, :1]), ValueError, "weights of"),
    "too few": (lambda x: vg.polyfit(x[0], x[0], 2, cov=True), ValueError, "too few"),
    "histogramdd": (lambda x: vg.histogramdd(x, [2, 2]), ValueError, "dimensions"),
    "a rule": (lambda x: vg.histogramdd(x, "sqrt"), TypeError, "bins"),
    "ranges": (lambda x: vg.histogramdd(x, range=[(0, 1)]), ValueError, "ranges"),
    "histogram2d": (lambda x: vg.histogram2d(x, x), ValueError, "one dimension"),
    "no lines": (lambda x: vg.apply_along_axis(vg.sum, 0, x[:, :0]), ValueError, "no lines"),
    "no array": (lambda x: vg.apply_along_axis(lambda v: "a", 0, x), TypeError, "no array"),
    "shapes": (lambda x: vg.apply_over_axes(lambda a, i: a.sum(), x, 0), ValueError, "shape"),
    "mgrid": (lambda x: vg.mgrid[3], TypeError, "slices"),
    "no stop": (lambda x: vg.mgrid[0:], ValueError, "stop"),
    "r_": (lambda x: vg.r_["r", x], ValueError, "matrices"),
    "r_ of nothing": (lambda x: vg.r_[()], ValueError, "nothing"),
    "fromstring": (lambda x: vg.fromstring("1 2", sep=""), ValueError, "sep"),
    "savetxt": (lambda x: vg.savetxt("a", "1"), TypeError, "asarray"),
    "loadtxt": (lambda x: vg.loadtxt(["a"]), ValueError, "could not"),
    "a file": (lambda x: vg.fromfile("not there"), FileNotFoundError, "not there"),
    "shares": (lambda x: vg.shares_memory(x, [1]), TypeError, "array"),
    "tensorinv": (lambda x: vg.linalg.tensorinv(x, 0), ValueError, "ind"),
    "tensorinv of": (lambda x: vg.linalg.tensorinv(x, 1), np.linalg.LinAlgError, "square"),
    "tensorsolve": (lambda x: vg.linalg.tensorsolve(x, x), np.linalg.LinAlgError, "shapes"),
    "sort_complex": (lambda x: vg.sort_complex(x[0, 0]), np.exceptions.AxisError, "axis"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(device, name):
    call, error, match = REFUSED[name]
    x = put(device, np.array([[3, 1, 0], [5, 2, 7]]))
    with refused(device, error, x, match=match):
        call(x)


def test_names_that_came_are_no_hints():
    from pyvecgpu import names

    assert math.isfinite(vg.euler_gamma)
    for name in (
        "mgrid",
        "r_",
        "ndindex",
        "single",
        "loadtxt",
        "apply_along_axis",
        "shares_memory",
    ):
        assert name not in names.USE and name not in names.WITHOUT and hasattr(vg, name)
