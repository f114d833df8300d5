"""reduce, accumulate, outer and reduceat of functions of two operands, as NumPy's ufuncs have them.

Which functions have them is read from both packages: outer has every one of two operands and one
result, the others those whose order makes no difference.
"""

import numpy as np
import pytest
from helpers import host, put

import pyvecgpu as vg

PRODUCTS = ("matmul", "matvec", "vecdot", "vecmat")
NAMES = sorted(
    name
    for name in np.__all__
    if isinstance(getattr(np, name), np.ufunc)
    and (getattr(np, name).nin, getattr(np, name).nout) == (2, 1)
    and name not in PRODUCTS
)
REDUCING = [name for name in NAMES if hasattr(getattr(vg, name), "reduce")]
DTYPES = ("float64", "float32", "int64", "uint8", "bool")


def operands(rng, dtype):
    """A matrix and a row of small numbers."""
    a, b = rng.integers(0, 9, (4, 7)), rng.integers(1, 5, 3)
    return (a / 4 if dtype[0] == "f" else a).astype(dtype), b.astype(dtype)


def numpys(name, method, *arguments, **options):
    """What NumPy gives, or None where it refuses; halves that it computes with are not compared."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(getattr(getattr(np, name), method)(*arguments, **options))
        except (TypeError, ValueError):  # of two axes NumPy has no lcm
            return None


def check(found, expected):
    assert found.shape == expected.shape
    if expected.dtype.kind in "fc":
        assert found.dtype in (expected.dtype, np.float32) and expected.dtype != np.float16
        eps = 4 * np.finfo(np.float32 if found.dtype == np.float32 else np.float64).eps
        np.testing.assert_allclose(host(found), expected, rtol=eps, atol=eps)
    else:
        assert found.dtype == expected.dtype
        assert np.array_equal(host(found), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_outer(device, rng, dtype):
    for name in NAMES:
        a, b = operands(rng, dtype)
        expected = numpys(name, "outer", a, b)
        if expected is None or expected.dtype == np.float16:
            continue
        if dtype == "bool" and expected.dtype == np.int8:
            continue  # arithmetic of two bools, which is refused here
        check(getattr(vg, name).outer(put(device, a), put(device, b)), expected)
        assert isinstance(getattr(vg, name).outer(a, b), np.ndarray)


MASK = np.array([[True], [False], [True], [True]]), np.array([1, 0, 1, 1, 0, 1, 1], bool)
CALLS = [
    ("reduce", (), {"initial": 1}),
    ("reduce", (1,), {"initial": True, "keepdims": True}),
    ("reduce", (), {"where": MASK[0]}),
    ("reduce", (-1,), {"where": MASK[1], "initial": 1}),
    ("reduce", (None,), {"where": MASK[0] & MASK[1], "initial": True}),
    ("reduce", (), {"where": np.array(False), "initial": 1}),
    ("reduce", (), {}),
    ("reduce", (1,), {}),
    ("reduce", (-1,), {"keepdims": True}),
    ("reduce", (None,), {}),
    ("reduce", ((0, 1),), {"keepdims": True}),
    ("accumulate", (), {}),
    ("accumulate", (-1,), {}),
    ("reduceat", ([0, 2, 1],), {}),
    ("reduceat", ([0, 3, 3, 6],), {"axis": 1}),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("method", "arguments", "options"), CALLS, ids=str)
def test_methods(device, rng, method, arguments, options, dtype):
    assert {"add", "multiply", "maximum", "logical_xor", "gcd", "hypot"} <= {*REDUCING}
    for name in REDUCING:
        a, _ = operands(rng, dtype)
        a = a % np.array(4, dtype) if name == "lcm" and dtype != "bool" else a  # none overflows
        expected = numpys(name, method, a, *arguments, **options)
        if expected is None or expected.dtype == np.float16:
            continue
        for values in (a, np.asfortranarray(a)[:, ::-1]):
            expected = numpys(name, method, values, *arguments, **options)
            check(
                getattr(getattr(vg, name), method)(put(device, values), *arguments, **options),
                expected,
            )


def test_mistakes(device):
    x = put(device, np.ones((2, 0), np.int64))
    with pytest.raises(ValueError, match="nothing along an axis"):
        vg.lcm.reduce(x, 1)
    assert vg.lcm.reduce(x, 1, initial=3).tolist() == [3, 3]
    with pytest.raises(ValueError, match="lcm: with where there may be none; give initial"):
        vg.lcm.reduce(x, where=np.array(True))
    with pytest.raises(TypeError, match=r"hypot\.reduce: where is True or an array of bools"):
        vg.hypot.reduce(x, where=3)
    with pytest.raises(TypeError, match=r"hypot\.reduce: initial is a number, not str"):
        vg.hypot.reduce(x, initial="1")
    with pytest.raises(IndexError, match=r"out-of-bounds in add\.reduceat"):
        vg.add.reduceat(put(device, np.ones(3)), [0, 3])
    with pytest.raises(np.exceptions.AxisError):
        vg.maximum.accumulate(put(device, np.ones(3)), 1)
    assert not hasattr(vg.subtract, "reduce"), "its order makes a difference"


def test_out_and_dtype(device):
    x = put(device, np.array([[1, 2], [3, 4]], np.int32))
    out = put(device, np.zeros(2, np.float64))
    assert vg.maximum.reduce(x, dtype="float64", out=out) is out and out.tolist() == [3, 4]
    assert vg.add.reduce(x, dtype="float32").dtype == np.float32
    with pytest.raises(TypeError, match="no same_kind cast to int64, that of out"):
        vg.fmax.accumulate(put(device, np.ones(2)), out=put(device, np.zeros(2, np.int64)))
    with pytest.raises(TypeError, match="out is an Array or None, not ndarray"):
        vg.fmax.accumulate(put(device, np.ones(2)), out=np.zeros(2))
    host_out = np.zeros(2)
    assert vg.fmax.accumulate(np.array([2.0, 1.0]), out=host_out) is host_out
    assert host_out.tolist() == [2, 2]
    with pytest.raises(ValueError, match=r"out is an Array of shape \(2,\)"):
        vg.gcd.reduce(x, out=put(device, np.zeros(3)))


def test_results_are_no_views(device):
    for name in REDUCING:
        x = put(device, np.array([3, 2, 1]))
        for found in (
            getattr(vg, name).reduce(x[:1]),
            getattr(vg, name).accumulate(x[:1]),
            getattr(vg, name).reduceat(x, [0, 1, 2]),
        ):
            found[...] = 1
        assert x.tolist() == [3, 2, 1], name


def test_of_one_element_and_of_none(device):
    """What NumPy begins with: hypot.reduce([-7]) is 7."""
    for name in REDUCING:
        for values in (np.array([-7]), np.array([-7.5]), np.zeros((0, 2), np.int64), np.zeros(0)):
            expected = numpys(name, "reduce", values)
            if expected is not None:
                found = getattr(vg, name).reduce(put(device, values))
                np.testing.assert_allclose(host(found), expected.astype(found.dtype), rtol=1e-6)


@pytest.mark.parametrize("dtype", [None, "bool", "int8", "float64"])
def test_stretches_of_every_length(device, rng, dtype):
    """Many of one length are one reduction."""
    values = rng.integers(0, 2, 60)
    x = put(device, values)
    for indices in ([], [59], [0, 59] * 8, [*range(60)], [*range(59, -1, -1)],
                    rng.integers(0, 60, 40).tolist()):  # fmt: skip
        for name in ("add", "maximum", "multiply", "bitwise_xor"):
            expected = numpys(name, "reduceat", values, np.array(indices, int), dtype=dtype)
            if expected is None:
                continue
            found = getattr(vg, name).reduceat(x, indices, dtype=dtype)
            assert found.dtype == expected.dtype or dtype is None
            assert np.array_equal(host(found), expected), (name, indices)
