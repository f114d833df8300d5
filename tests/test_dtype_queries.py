"""Constants, limits and kinds of dtypes, promotion of several, and what the library says of itself.

NumPy's answers are the reference; with bfloat16 those of ml_dtypes, and of what the library does.
"""

import itertools
import math

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, put

import pyvecgpu as vg

KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating",
         "complex floating", "numeric"]  # fmt: skip
LIMITS = ["eps", "epsneg", "max", "min", "smallest_normal", "smallest_subnormal", "tiny"]
CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe"]
NUMPYS = [dtype for dtype in ALL_DTYPES if dtype != helpers.BFLOAT16]
PAIRS = list(itertools.product(NUMPYS, NUMPYS))


def test_constants():
    assert (vg.e, vg.pi, vg.inf) == (np.e, np.pi, np.inf)
    assert math.isnan(vg.nan) and vg.newaxis is None


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_limits_of_floats(device, dtype):
    expected = helpers.finfo(dtype)
    for given in (dtype, str(dtype), put(device, np.zeros(2, dtype))):
        found = vg.finfo(given)
        assert found.dtype == dtype and found.bits == 8 * dtype.itemsize
        for name in LIMITS:
            assert type(getattr(found, name)) is float
            assert getattr(found, name) == float(getattr(expected, name)), name
        assert math.isclose(found.resolution, float(expected.resolution), rel_tol=0.01)
    assert repr(found).endswith(f"dtype={dtype})")


@pytest.mark.parametrize("dtype", helpers.INTEGERS, ids=str)
def test_limits_of_integers(device, dtype):
    expected = np.iinfo(dtype)
    for given in (dtype, dtype.type, put(device, np.zeros(2, dtype)), dtype.type(1)):
        found = vg.iinfo(given)
        assert (found.min, found.max, found.bits) == (expected.min, expected.max, expected.bits)
        assert found.dtype == dtype
    assert repr(found) == repr(expected)


def test_limits_that_are_refused():
    for dtype in ("int32", "bool"):
        with pytest.raises(ValueError, match="finfo takes float dtypes"):
            vg.finfo(dtype)
    for dtype in ("float32", "bool", vg.bfloat16):
        with pytest.raises(ValueError, match="iinfo takes integer dtypes"):
            vg.iinfo(dtype)
    for value in ("text", 1, 2.5, None, object()):
        with pytest.raises(TypeError):
            vg.finfo(value)
        with pytest.raises(TypeError):
            vg.iinfo(value)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind):
    for dtype in [*NUMPYS, np.dtype("complex64"), np.dtype("uint16"), np.dtype("M8[s]")]:
        assert vg.isdtype(dtype, kind) is bool(np.isdtype(dtype, kind))
        for other in KINDS:
            assert vg.isdtype(dtype, (other, kind)) == np.isdtype(dtype, (other, kind))
        assert vg.isdtype(dtype, (dtype, kind)) and not vg.isdtype(dtype, ())
    assert vg.isdtype(vg.bfloat16, kind) == (kind in ("real floating", "numeric"))


def test_kinds_that_are_dtypes():
    for a, b in PAIRS:
        assert vg.isdtype(a, b) == (a == b) == vg.isdtype(a.type, (b.type,))
    assert vg.isdtype(vg.bfloat16, vg.bfloat16) and not vg.isdtype(vg.float16, vg.bfloat16)
    with pytest.raises(ValueError, match="a kind can be 'bool'"):
        vg.isdtype(vg.float32, "floating")
    with pytest.raises(ValueError, match="not 'typo'"):
        vg.isdtype(vg.float32, ("numeric", "typo"))
    for call in (("float32", "numeric"), (vg.float32, 3), (None, "numeric")):
        with pytest.raises(TypeError, match="takes dtypes"):
            vg.isdtype(*call)


@pytest.mark.parametrize("casting", CASTINGS)
def test_can_cast(casting):
    for a, b in PAIRS:
        assert vg.can_cast(a, b, casting) == np.can_cast(a, b, casting), (a, b)
    for other in NUMPYS:
        forward, back = (vg.can_cast(*pair, casting) for pair in _both(vg.bfloat16, other))
        as_float32 = [np.can_cast(*pair, casting) for pair in _both(np.float32, other)]
        if casting in ("same_kind", "unsafe"):
            assert [forward, back] == as_float32
        elif casting == "safe":
            assert forward == (other.kind in "fc" and other.itemsize > 2)
            assert back == (other.kind == "b" or (other.kind in "iu" and other.itemsize == 1))
        else:
            assert not forward and not back
    assert vg.can_cast(vg.bfloat16, "bfloat16", casting)


def _both(a, b):
    return (a, b), (b, a)


def test_can_cast_of_arrays(device):
    x = put(device, np.zeros(3, np.int32))
    assert vg.can_cast(x, vg.float64) and not vg.can_cast(x, vg.float32)
    with pytest.raises(ValueError, match="casting can be"):
        vg.can_cast(x, vg.float64, "maybe")
    for call in ((1, "int8"), (x, None), (x, "clongdouble"), (1.5, "float64")):
        with pytest.raises(TypeError):
            vg.can_cast(*call)


def test_what_can_be_cast_safely_keeps_its_values(device):
    for a, b in itertools.product(ALL_DTYPES, ALL_DTYPES):
        wide = a.kind in "iu" and a.itemsize == 8 and b.kind in "fVc"  # which NumPy calls safe
        if vg.can_cast(a, b) and not wide:
            values = helpers.specials(a)
            values = values[values == values]
            there = vg.astype(put(device, values), b)
            there_and_back = vg.astype(vg.real(there) if a.kind != "c" else there, a)
            helpers.assert_same(there_and_back, values, f"{a} to {b}")


def test_result_type_of_two(device):
    for a, b in itertools.product(ALL_DTYPES, ALL_DTYPES):
        expected = helpers.result_type(a, b)
        assert vg.result_type(a, b) == expected
        x, y = (put(device, np.ones(2, dtype)) for dtype in (a, b))
        assert vg.result_type(x, y) == vg.result_type(x, b) == (x + y).dtype == expected
        if helpers.BFLOAT16 not in (a, b):
            assert expected == np.result_type(a, b)


def test_result_type_of_scalars(device):
    for dtype in ALL_DTYPES:
        x = put(device, np.ones(2, dtype))
        for scalar in (True, 3, 2.5, 2.5j):
            found = vg.result_type(x, scalar)
            assert found == vg.result_type(scalar, dtype) == (x * scalar).dtype
            if dtype == helpers.BFLOAT16:
                assert found == (vg.complex64 if scalar == 2.5j else vg.bfloat16)
            elif scalar == 2.5j and dtype.kind in "biu":
                assert found == vg.complex64
            elif dtype.kind in "fc" or not isinstance(scalar, float):
                assert found == np.result_type(dtype, scalar)
            else:
                assert found == vg.get_default_dtype()
    assert vg.result_type(True) == vg.bool and vg.result_type(1, True) == vg.int64
    assert vg.result_type(1, 2.5) == vg.get_default_dtype()
    assert vg.result_type(vg.int8, 1, 2.5, vg.uint8) == vg.get_default_dtype()


def test_result_type_of_many_is_what_concat_gives(device, rng):
    for _ in range(50):
        dtypes = [ALL_DTYPES[i] for i in rng.integers(0, len(ALL_DTYPES), rng.integers(1, 5))]
        arrays = [put(device, np.ones(1, dtype)) for dtype in dtypes]
        assert vg.result_type(*arrays) == vg.concat(arrays).dtype


def test_result_types_that_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        vg.result_type()
    for value in ([1, 2], None, "nonsense", np.clongdouble):
        with pytest.raises(TypeError):
            vg.result_type(vg.float32, value)


def test_the_namespace(device):
    x = put(device, np.zeros(2, np.float32))
    assert x.__array_namespace__() is vg is x.__array_namespace__(api_version="2025.12")
    with pytest.raises(ValueError, match="versions of the array API"):
        x.__array_namespace__(api_version="1999.12")
    info = vg.__array_namespace_info__()
    with vg.device(device):
        assert info.default_device() == vg.Device(device) == vg.zeros(1).device
    assert vg.Device(device) in info.devices() and info.devices() == tuple(vg.devices())
    assert info.capabilities()["max dimensions"] == vg.broadcast_to(x[0], (1,) * 32).ndim
    assert info.capabilities()["boolean indexing"] and info.capabilities()["data-dependent shapes"]
    assert x[x != x].shape == (0,) and len(vg.nonzero(x)) == x.ndim
    assert set(info.capabilities()) == {
        *("boolean indexing", "data-dependent shapes", "max dimensions")
    }
    found = info.default_dtypes(device=device)
    assert found["real floating"] == vg.zeros(1).dtype
    assert found["complex floating"] == vg.asarray(1j).dtype
    assert found["integral"] == vg.asarray([1]).dtype
    assert found["indexing"] == vg.argmax(x).dtype


def test_dtypes_of_the_namespace(device):
    info = vg.__array_namespace_info__()
    every = info.dtypes(device=device)
    assert set(every.values()) == set(NUMPYS) - {vg.float16}
    for name, dtype in every.items():
        assert getattr(vg, name) is dtype and vg.zeros(1, dtype, device=device).dtype == dtype
    for kind in [*KINDS, ("bool", "integral"), ()]:
        expected = {name: d for name, d in every.items() if vg.isdtype(d, kind)}
        assert info.dtypes(kind=kind) == expected
    with pytest.raises(ValueError, match="a kind can be"):
        info.dtypes(kind="float")
    with pytest.raises(ValueError, match="no device is called"):
        info.dtypes(device="tpu")


def test_to_device(device):
    x = put(device, np.arange(3.0))
    assert x.to_device(device) is x and x.to_device(x.device) is x
    there = x.to_device("cpu")
    assert there.device == vg.Device("cpu") and there.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="stream is None"):
        x.to_device(device, stream=1)
    with pytest.raises(ValueError, match="no device is called"):
        x.to_device("float32")
    with pytest.raises(TypeError):
        x.to_device(None)
