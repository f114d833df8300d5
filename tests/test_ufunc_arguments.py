"""`where` and `dtype` of elementwise functions, as NumPy's ufuncs have them.

The functions are all that are ufuncs of NumPy with one result and take `where` here.
"""

import inspect

import numpy as np
import pytest
from helpers import host, put

import pyvecgpu as vg


def takes_where(name):
    function = getattr(vg, name, None)
    return callable(function) and "where" in inspect.signature(function).parameters


UFUNCS = [
    name
    for name in sorted(np.__all__)
    if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).nout == 1
]
PRODUCTS = {"matmul", "matvec", "vecdot", "vecmat"}
NAMES = [name for name in UFUNCS if takes_where(name)]
SIZES = {"float32": 5e-6, "float64": 1e-12}


def test_every_ufunc_takes_them():
    assert {*UFUNCS} - {*NAMES} - PRODUCTS <= {"isnat"}


def operands(name, rng, dtype):
    """As many ndarrays as a function has operands, which broadcast."""
    values = [rng.integers(0, 4, shape) for shape in ((3, 4), (4,))[: getattr(np, name).nin]]
    return [(x / 4 if dtype[0] == "f" else x).astype(dtype) for x in values]


def numpys(name, *operands, **options):
    with np.errstate(all="ignore"):
        try:
            return getattr(np, name)(*operands, **options)
        except TypeError:
            return None


def agreed(name, operands, device):
    """What NumPy gives, if it is of the kind that is given here, where bools are no numbers."""
    expected = numpys(name, *operands)
    try:
        found = getattr(vg, name)(*(put(device, x) for x in operands))
    except TypeError:
        return None
    return expected if expected is not None and found.dtype.kind == expected.dtype.kind else None


def assert_near(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    eps = SIZES.get(str(expected.dtype), 0.0)
    np.testing.assert_allclose(host(found), expected, rtol=eps, atol=eps)


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_where(device, rng, dtype):
    """What the mask leaves out keeps what `out` has; the mask takes part in broadcasting."""
    for name in NAMES:
        xs = operands(name, rng, dtype)
        plain = agreed(name, xs, device)
        if (
            plain is None
            or plain.dtype == np.float16
            or (dtype == "bool" and plain.dtype == np.int8)
        ):
            continue
        wanted = np.dtype(np.float64) if plain.dtype.kind == "f" else plain.dtype
        for mask in (rng.random((3, 4)) < 0.5, rng.random(4) < 0.5, rng.random((3, 1)) < 0.5):
            expected = np.full((3, 4), 1, wanted)
            numpys(name, *xs, out=expected, where=mask)
            out = put(device, np.full((3, 4), 1, wanted))
            found = getattr(vg, name)(*(put(device, x) for x in xs), out, where=put(device, mask))
            assert found is out
            if dtype == "float64" or wanted != np.float64:
                assert_near(found, expected)
            else:  # of integers, rounded to the default float on the way
                rtol = 1e-3 if plain.dtype == np.float16 else 1e-6
                np.testing.assert_allclose(host(found), expected, rtol=rtol, atol=1e-6)
            alone = getattr(vg, name)(*(put(device, x) for x in xs), where=put(device, mask))
            assert (host(alone)[~np.broadcast_to(mask, (3, 4))] == 0).all()


@pytest.mark.parametrize(("dtype", "wanted"), [("int64", "float64"), ("float32", "float64")])
def test_dtype(device, rng, dtype, wanted):
    for name in NAMES:
        xs = operands(name, rng, dtype)
        expected = None if name == "ldexp" else numpys(name, *xs, dtype=wanted)
        if expected is None:
            continue
        assert_near(getattr(vg, name)(*(put(device, x) for x in xs), dtype=wanted), expected)
    found = vg.add(put(device, np.ones(3, np.int8)), 1, dtype="float32")
    assert found.dtype == np.float32 and found.tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", NAMES)
def test_numpy_operands_into_an_array(device, rng, name):
    values = operands(name, rng, "float32")
    expected = agreed(name, values, device)
    if expected is None:
        return
    mask = rng.integers(0, 2, expected.shape).astype(bool)
    plain = {} if expected.dtype == bool else {"dtype": str(expected.dtype)}
    for options in ({"where": mask}, plain, {"where": put(device, mask), **plain}):
        out = put(device, np.zeros_like(expected))
        assert getattr(vg, name)(*values, out=out, **options) is out
        chosen = mask if "where" in options else True
        assert_near(out, np.where(chosen, expected, expected.dtype.type(0)))


def test_numpy_operands_and_mistakes(device):
    with vg.device(device):
        a, b, out = np.array([1.0, 2, 3]), np.array([0.0, 1, 2]), np.full(3, 9.0)
        assert vg.divide(a, b, out=out, where=b != 0) is out and out.tolist() == [9, 2, 1.5]
        x = vg.asarray(a)
        with pytest.raises(
            TypeError, match="add: operands of float64 are not computed with in int"
        ):
            vg.add(x, 1, dtype="int32")
        with pytest.raises(TypeError, match="add: float64 is no same_kind cast to int32"):
            vg.add(x, 1, out=vg.zeros(3, dtype="int32"), where=x > 1)
        with pytest.raises(ValueError, match="broadcast"):
            vg.add(x, 1, where=vg.asarray([True, False]))
        with pytest.raises((TypeError, ValueError)):
            vg.exp(x, where=x)


def test_what_is_not_computed_has_no_gradient(device):
    mask = put(device, np.array([True, False, True]))
    for call, slope in (
        (lambda x: vg.log(x, where=mask), [1.0, 0.0, 0.25]),
        (lambda x: vg.sqrt(x, where=mask), [0.5, 0.0, 0.25]),
        (lambda x: vg.divide(1.0, x, where=mask), [-1.0, 0.0, -0.0625]),
        (lambda x: vg.multiply(x, x, where=mask), [2.0, 0.0, 8.0]),
    ):
        x = put(device, np.array([1.0, 0.0, 4.0])).requires_grad_()
        call(x).sum().backward()
        assert x.grad.tolist() == slope


def test_dtypes_that_lose_numbers_are_refused(device):
    x = put(device, np.array([1, 2, 3]))
    for call in (
        lambda: vg.add(x, 1.5, dtype="int32"),
        lambda: vg.divide(x, 2, dtype="int64"),
        lambda: vg.sqrt(x, dtype="int64"),
        lambda: vg.add(x, 1j, dtype="float64"),
    ):
        with pytest.raises(TypeError):
            call()
    assert vg.equal(x, 1, dtype=bool).tolist() == [True, False, False]
    assert vg.add(x, 1, where=False).tolist() == [0, 0, 0]
    assert vg.add(x, 1, where=np.True_).tolist() == [2, 3, 4]
    with pytest.raises(TypeError, match="out is an Array or None, not ndarray"):
        vg.add(x, 1, out=np.zeros(3, np.int64), where=x > 1)
