"""float16 and bfloat16: all 65,536 values of each, rounding just beside ties, and no ml_dtypes.

NumPy is the reference of float16, ml_dtypes that of bfloat16, except where it rounds twice:
helpers.rounded. What holds for every dtype is tested with the others.
"""

import pickle

import helpers
import numpy as np
import pytest
from helpers import HALVES, assert_close, assert_same, put, rounded
from references import (
    ARITHMETIC,
    COMPARISONS,
    FLOAT_FUNCTIONS,
    PREDICATES,
    UNARY,
    lookup,
    takes,
    unary_reference,
)

import pyvecgpu as vg

ALL_BITS = np.arange(2**16, dtype=np.uint16)


def same_bits(result, expected):
    """Equal bits, but NaN of any kind where NaN is expected."""
    result, expected = helpers.host(result), np.asarray(expected)
    assert result.dtype == expected.dtype
    wrong = (result.view(np.uint16) != expected.view(np.uint16)) & ~(
        np.isnan(result) & np.isnan(expected)
    )
    helpers.report_worst(wrong, result, expected, "")


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_value_there_and_back(device, dtype):
    x = ALL_BITS.view(dtype)
    array = put(device, x)
    assert helpers.bits(array) == x.tobytes()
    for wide in helpers.WIDE_FLOATS:
        assert_same(array.astype(wide), x.astype(np.float32).astype(wide))
        same_bits(array.astype(wide).astype(dtype), x)
    assert_same(array.astype(bool), x.astype(np.float32) != 0)
    for integer in helpers.INTEGERS:
        info = np.iinfo(integer)
        whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0, posinf=1e300, neginf=-1e300))
        expected = [min(max(int(v), info.min), info.max) for v in whole]
        assert_same(array.astype(integer), np.array(expected, integer))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", [name for name in UNARY if takes(name, HALVES[0])])
def test_every_value_of_the_functions(device, name, dtype):
    x = ALL_BITS.view(dtype)
    result, reference = lookup(name)(put(device, x)), unary_reference(name, x)
    if name in FLOAT_FUNCTIONS:
        assert_close(result, reference, name, device)
    elif name in PREDICATES:
        assert_same(result, reference)
    else:
        same_bits(result, reference)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_arithmetic_is_that_of_numpy(device, rng, dtype):
    """NumPy's float16 and ml_dtypes' bfloat16 compute in float32 and round once, too."""
    a, b = (rng.integers(0, 2**16, 50_000, np.uint16).view(dtype) for _ in range(2))
    special = helpers.specials(dtype)
    a = np.concatenate([a, np.repeat(special, len(special))])
    b = np.concatenate([b, np.tile(special, len(special))])
    x, y = put(device, a), put(device, b)
    for name in ARITHMETIC[:4]:
        same_bits(getattr(vg, name)(x, y), getattr(np, name)(a, b))
    for name in COMPARISONS:
        assert_same(getattr(vg, name)(x, y), getattr(np, name)(a, b))


def beside_ties(dtype):
    """float64 numbers at, just below and just above the middle between neighbours of a dtype."""
    x = ALL_BITS[:0x8000].view(dtype).astype(np.float64)
    x = x[np.isfinite(x)]
    middle = np.append((x[:-1] + x[1:]) / 2, x[-1] + (x[-1] - x[-2]) / 2)
    near = [middle, np.nextafter(middle, np.inf), np.nextafter(middle, 0), middle * (1 + 2.0**-40)]
    near = np.concatenate([*near, [2.0**-160, 5e-324, 1e300, np.inf, np.nan]])
    return np.concatenate([near, -near])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_float64_is_rounded_once(device, dtype):
    x = beside_ties(dtype)
    expected = rounded(x, dtype)
    same_bits(put(device, x).astype(dtype), expected)
    twice = x.astype(np.float32).astype(dtype)
    assert np.any((twice != expected) & ~np.isnan(x)), "no number that needs it is among them"
    target = put(device, np.zeros(x.shape, dtype))
    target[...] = put(device, x)
    same_bits(target, expected)
    vg.add(put(device, x), put(device, np.zeros_like(x)), out=target)
    same_bits(target, rounded(x + 0, dtype))
    for value in (1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40, 1e30, 2.0**-25, -(2.0**-140)):
        same_bits(vg.full(3, value, dtype=dtype, device=device), np.full(3, rounded(value, dtype)))
        same_bits(vg.asarray([value], dtype=dtype, device=device), rounded([value], dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("source", helpers.INTEGERS, ids=str)
def test_integers_are_rounded_once(device, rng, source, dtype):
    info = np.iinfo(source)
    numbers = {info.min, info.max, 65519, 65520, 65521, 2049, 2051}
    for bits in range(9, info.max.bit_length()):
        for odd in (257, 259, 383, 511):
            tie = odd << (bits - 9)
            numbers |= {tie - 1, tie, tie + 1}
    numbers |= {-n for n in numbers} if info.min else set()
    x = np.array(sorted(n for n in numbers if info.min <= n <= info.max), source)
    x = np.concatenate([x, helpers.numbers(rng, 10_000, np.dtype(source))])
    same_bits(put(device, x).astype(dtype), rounded(x, dtype))
    for number in (2**24 + 2**16 + 1, 65519, 2049):
        array = vg.zeros(2, dtype=dtype, device=device)
        array[...] = number
        same_bits(array, np.full(2, rounded(np.int64(number), dtype)))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_sums_do_not_stand_still(device, dtype):
    """Beyond 2048 a float16, and beyond 256 a bfloat16, does not grow by 1 any more."""
    for shape, axis in (((12_288,), 0), ((3, 12_288), 1), ((12_288, 3), 0)):
        ones = vg.ones(shape, dtype=dtype, device=device)
        expected = np.full(np.ones(shape).sum(axis=axis).shape, 12_288, dtype)
        assert_same(ones.sum(axis=axis), expected)
        assert_same(ones.mean(axis=axis), np.ones_like(expected))
    many = vg.ones(100_000, dtype=dtype, device=device)
    assert_same(many.sum(dtype="float32"), np.array(100_000, np.float32))
    assert_same(many.sum(), rounded(100_000.0, dtype))  # of a float16: infinity
    assert_same(many.mean(dtype="float64"), np.array(1.0))


def test_two_halves_give_float32(device):
    x, y = (vg.ones(2, dtype=dtype, device=device) for dtype in ("float16", "bfloat16"))
    assert (x + y).dtype == (y * x).dtype == np.float32
    assert (x + y).tolist() == [2.0, 2.0]
    assert x.astype("bfloat16").astype("float16").tolist() == [1.0, 1.0]


# ---- bfloat16 as a dtype -------------------------------------------------------------------------


@pytest.mark.needs("ml_dtypes")
def test_bfloat16_is_ml_dtypes():
    import ml_dtypes

    numpy_dtype = np.dtype(ml_dtypes.bfloat16)
    assert np.dtype(vg.bfloat16) == numpy_dtype == vg.bfloat16 == numpy_dtype
    assert vg.bfloat16 == "bfloat16" == str(vg.bfloat16)
    assert vg.bfloat16 != np.float16 and vg.bfloat16 != np.dtype("V2") and vg.bfloat16 != 3
    assert np.zeros(2, vg.bfloat16).dtype == vg.zeros(2, dtype=ml_dtypes.bfloat16).dtype
    assert pickle.loads(pickle.dumps(vg.bfloat16)) is vg.bfloat16
    assert {vg.bfloat16: 1}[vg.bfloat16] == 1


@pytest.mark.needs("ml_dtypes")
def test_bfloat16_of_numpy_comes_back_as_it_was(device, rng):
    x = rng.standard_normal((3, 5)).astype(helpers.BFLOAT16)
    assert vg.exp(x, device=device).dtype == helpers.BFLOAT16
    assert_same(put(device, x).T, x.T)
    assert_same(put(device, x).cpu().to(device), x)
    assert put(device, x[0, 0]).dtype is vg.bfloat16
    assert_same(vg.full(2, x[0, 0], device=device), np.full(2, x[0, 0]))
    target = vg.zeros((3, 5), device=device)
    target[...] = x
    assert_same(target, x.astype(np.float32))
    assert_same(pickle.loads(pickle.dumps(put(device, x))), x)


WITHOUT = """
import json, pickle, sys
import numpy as np
sys.modules["ml_dtypes"] = None  # as if it were not installed
import pyvecgpu as vg
device = {device!r}
made = vg.asarray([1.5, -2.0, 3.0], dtype="bfloat16", device=device)
made += vg.arange(3, dtype=vg.bfloat16, device=device)
other = (vg.exp(made.astype("float32")).astype(vg.bfloat16) * 0.5)[::2]
loaded = pickle.loads(pickle.dumps(made))
errors = []
for call in (made.numpy, made.cpu, lambda: vg.zeros(1, dtype=vg.bfloat16, device="cpu")):
    try:
        call()
    except ImportError as error:
        errors.append(str(error))
print(json.dumps([
    repr(made), made.tolist(), made[1].item(), str(made.sum()), loaded.tolist(), other.tolist(),
    [loaded.dtype is vg.bfloat16, made.dtype == np.float32, np.dtype("float32") == made.dtype],
    errors,
]))
"""


@pytest.mark.devices("sim", "cuda")
def test_bfloat16_without_ml_dtypes(device):
    found = helpers.child_result(WITHOUT.format(device=device))
    text, values, item, total, loaded, other, equal, errors = found
    assert text == f"Array([ 1.5, -1. ,  5. ], dtype=bfloat16, device='{device}:0')"
    assert values == loaded == [1.5, -1.0, 5.0]
    assert (item, total) == (-1.0, "5.5")
    assert other == [2.234375, 74.0]
    assert equal == [True, False, False]
    assert len(errors) == 3
    assert all("pip install pyvecgpu[bfloat16]" in error for error in errors)


def test_nothing_else_imports_ml_dtypes():
    code = """
import json, sys
import pyvecgpu as vg
x = vg.ones(3, device="cpu") + 1
x.sum().item(), repr(x), x.astype("float16") * 2.0, vg.bfloat16
print(json.dumps("ml_dtypes" in sys.modules))
"""
    assert helpers.child_result(code) is False
