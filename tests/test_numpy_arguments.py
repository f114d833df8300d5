"""Arguments of NumPy's functions that say how: generated calls against NumPy on every device.

Modes of pad, take, put and choose, rules for bins, axes of unique and trim_zeros, orders of
indices, means that are known, and arrays where others take numbers.
"""

import io
import itertools
import math
import warnings

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, DTYPES, assert_same, assert_within, put, refused

import pyvecgpu as vg

ROUNDS = 24
NUMPYS = [dtype for dtype in ALL_DTYPES if dtype != helpers.BFLOAT16]


def draw_shape(rng, most=4, least=1):
    return tuple(rng.integers(least, most + 1, rng.integers(1, 4)).tolist())


def laid_out(rng, device, x):
    names = helpers.layouts(x)
    return helpers.LAYOUTS[names[rng.integers(len(names))]](device, x)


def one_of(rng, values):
    return values[rng.integers(len(values))]


def assert_near(result, expected, message=""):
    """The dtype and shape of NumPy's result, and its values but for roundings."""
    expected = np.asarray(expected)
    assert helpers.host(result).dtype == expected.dtype, message
    unit = 2.0**-20 if expected.dtype.char in "fF" else 2.0**-9 if expected.itemsize == 2 else 1e-12
    size = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    if expected.dtype.kind == "c":
        for part in ("real", "imag"):
            ours, numpys = (getattr(helpers.host(x), part) for x in (result, expected))
            assert_within(ours, numpys, unit * size, message)
    else:
        assert_within(result, expected, unit * size, message)


# ---- Padding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean", "median"])
@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_pad_by_a_statistic(device, rng, dtype, mode):
    if dtype.kind == "c" and mode != "mean":
        with refused(device, TypeError):
            vg.pad(put(device, np.ones(3, dtype)), 1, mode)
        return
    for number in range(ROUNDS):
        x = helpers.integers(rng, draw_shape(rng, 5), dtype)
        widths = rng.integers(0, 6, (x.ndim, 2)).tolist()
        options = [{}, {"stat_length": 2}, {"stat_length": (1, 3)}, {"stat_length": [(9, 2)]}]
        given = options[number % 4]
        expected = np.pad(x, widths, mode, **given)
        result = vg.pad(laid_out(rng, device, x), widths, mode, **given)
        if mode in ("maximum", "minimum") or dtype.kind in "iub":
            assert_same(result, expected, f"{widths} {given}")
        else:
            assert_near(result, expected, f"{widths} {given}")


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_pad_by_odd_mirrors(device, rng, dtype, mode):
    for _ in range(ROUNDS):
        x = helpers.integers(rng, draw_shape(rng), dtype)
        widths = rng.integers(0, 14, (x.ndim, 2)).tolist()
        expected = np.pad(x, widths, mode, reflect_type="odd")
        result = vg.pad(laid_out(rng, device, x), widths, mode, reflect_type="odd")
        assert_same(result + 0 * result, expected + 0 * expected, f"{x.tolist()} {widths}")
        expected = np.pad(x, widths, mode, reflect_type="even")
        assert_same(vg.pad(put(device, x), widths, mode, reflect_type="even"), expected)


def test_widths_by_axes(device, rng):
    x = helpers.integers(rng, (2, 3, 4), np.dtype(np.int32))
    for widths in ({1: (1, 2)}, {-1: 2}, {0: (3, 0), 1: 2}, {}):
        for mode in ("constant", "edge", "mean"):
            assert_same(vg.pad(put(device, x), widths, mode), np.pad(x, widths, mode))
    for error, widths in (
        (np.exceptions.AxisError, {3: 1}),
        (TypeError, {0: (1, 2, 3)}),
        (ValueError, {0: -1}),
    ):
        with refused(device, error):
            vg.pad(put(device, x), widths)


def test_pad_with_nothing(device, rng):
    x = helpers.integers(rng, (3, 4), np.dtype(np.float32))
    result = vg.pad(put(device, x), ((1, 2), (0, 3)), "empty")
    assert result.shape == (6, 7)
    assert_same(result[1:4, :4], x)
    assert vg.pad(put(device, x[:0]), ((1, 1), (0, 0)), "empty").shape == (2, 4)


def pad_with(vector, pad_width, iaxis, kwargs):
    value = kwargs.get("padder", 10) + iaxis
    vector[: pad_width[0]] = value
    vector[vector.shape[0] - pad_width[1] :] = value


@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_pad_by_a_function(device, rng, dtype):
    for number in range(4):
        x = helpers.integers(rng, draw_shape(rng, 3), dtype)
        options = {"padder": 3} if number % 2 else {}
        widths = rng.integers(0, 3, (x.ndim, 2)).tolist()
        result = vg.pad(laid_out(rng, device, x), widths, pad_with, **options)
        assert_same(result, np.pad(x, widths, pad_with, **options))
    kept = put(device, np.arange(3))
    vg.pad(kept, 0, lambda vector, *_: vector.fill(9))
    assert kept.tolist() == [0, 1, 2]


def test_what_pad_refuses(device):
    x = put(device, np.arange(3.0))
    for mode, options in (
        ("other", {}),
        (3, {}),
        ("edge", {"constant_values": 1}),
        ("constant", {"reflect_type": "odd"}),
        ("constant", {"other": 1}),
        ("reflect", {"reflect_type": "other"}),
        ("maximum", {"stat_length": 0}),
        ("mean", {"stat_length": -1}),
    ):
        with refused(device, ValueError, x):
            vg.pad(x, 1, mode, **options)
        if options != {"reflect_type": "other"}:  # which NumPy takes for "even"
            with pytest.raises(ValueError):
                np.pad(np.arange(3.0), 1, mode, **options)
    with refused(device, ValueError):
        vg.pad(x[:0], 1, "mean")


# ---- Bins ----------------------------------------------------------------------------------------

RULES = ["auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges"]


@pytest.mark.parametrize("rule", RULES)
def test_rules_for_bins(device, rng, rule):
    kinds = [dtype for dtype in DTYPES if dtype.char in "?bBlLfd"]
    for number in range(8 if rule == "stone" else ROUNDS):
        dtype, size = kinds[number % len(kinds)], int(rng.integers(0, 70))
        x = rng.integers(0, 40, size) if dtype.kind in "bu" else rng.normal(0, 9, size)
        x = np.full(size, 3, dtype) if number % 7 == 6 else x.astype(dtype)
        ends = [None, (2.0, 7.5), (3, 3)][number % 3]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            counts, edges = np.histogram(x, rule, ends)
        message = f"{dtype} {x.tolist()} {ends}"
        result = vg.histogram_bin_edges(laid_out(rng, device, x), rule, ends)
        assert_near(result, edges, message)
        counted, _ = vg.histogram(put(device, x), rule, ends)
        if dtype.kind != "f":
            assert_same(counted, counts, message)
        assert counted.sum().item() == counts.sum()


def test_what_rules_refuse(device):
    x = put(device, np.arange(3.0))
    for error, call in (
        (ValueError, lambda: vg.histogram(x, "other")),
        (TypeError, lambda: vg.histogram(x, "auto", weights=x)),
        (ValueError, lambda: vg.histogram(x / 0, "fd")),
    ):
        with np.errstate(all="ignore"), refused(device, error, x):
            call()


# ---- Parts that differ ---------------------------------------------------------------------------

ASKED = [*itertools.product((False, True), repeat=3)]


@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_unique_parts(device, rng, dtype):
    for number in range(ROUNDS):
        shape = draw_shape(rng, 6, number % 5 > 0)
        x = helpers.integers(rng, shape, dtype, 0, 2)
        if dtype.char in "fdFD" and number % 2 and x.size:  # NumPy has NaN of float16 in front
            x.reshape(-1)[rng.integers(0, x.size, 2)] = math.nan
            if dtype.kind == "c":
                x.reshape(-1)[rng.integers(0, x.size, 2)] = complex(1, math.nan)
        axis = int(rng.integers(-x.ndim, x.ndim))
        index, inverse, counts = one_of(rng, ASKED)
        expected = np.unique(x, True, inverse, counts, axis)
        found = vg.unique(laid_out(rng, device, x), True, inverse, counts, axis)
        expected, found = ([*v] if isinstance(v, tuple) else [v] for v in (expected, found))
        assert len(found) == len(expected)
        for one, numpys in zip(found, expected, strict=True):
            assert_same(one, numpys, f"{x.tolist()} {axis}")
        alone = vg.unique(put(device, x), index, axis=axis)
        assert_same(alone[0] if index else alone, expected[0])
    assert isinstance(vg.unique(x, axis=0), np.ndarray)


def test_many_long_parts(device, rng):
    x = rng.integers(0, 2, (200, 1, 9))
    for axis in range(3):
        expected = np.unique(x, True, True, True, axis)
        found = vg.unique(put(device, x), True, True, True, axis)
        for one, numpys in zip(found, expected, strict=True):
            assert_same(one, numpys)
    with refused(device, np.exceptions.AxisError):
        vg.unique(put(device, x), axis=3)


def test_a_set_is_one_object(device):
    x = put(device, np.arange(4).reshape(2, 2))
    for some in ({0, 1}, frozenset({3})):
        for invert in (False, True):
            expected = np.isin(np.arange(4).reshape(2, 2), some, invert=invert)
            assert_same(vg.isin(x, some, invert=invert), expected)


# ---- Indices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["wrap", "clip", "raise"])
@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_modes_of_indices(device, rng, dtype, mode):
    for number in range(ROUNDS):
        x = helpers.integers(rng, draw_shape(rng), dtype)
        axis = [None, int(rng.integers(-x.ndim, x.ndim))][number % 2]
        n = x.size if axis is None else x.shape[axis]
        reach = n if mode == "raise" else 3 * n + 1
        kind = one_of(rng, ["i1", "i4", "i8", "u1", "u4"])
        low = 0 if kind[0] == "u" else -reach
        indices = rng.integers(low, reach, draw_shape(rng, 3, 0)).astype(kind)
        given = [put(device, indices), indices, indices.tolist()][number % 3]
        if not indices.size:
            given = indices
        array, expected = laid_out(rng, device, x), np.take(x, indices, axis, mode=mode)
        assert_same(vg.take(array, given, axis, mode=mode), expected)
        assert_same(array.take(given, axis, mode=mode), expected)
        place = put(device, np.zeros_like(expected))
        assert vg.take(array, given, axis, place, mode) is place
        assert_same(place, expected)
        place = np.zeros_like(expected)
        assert vg.take(x, indices, axis, place, mode) is place
        assert_same(place, expected)


@pytest.mark.parametrize("mode", ["wrap", "clip", "raise"])
def test_modes_of_writing_and_choosing(device, rng, mode):
    for number in range(ROUNDS):
        dtype = NUMPYS[number % len(NUMPYS)]
        x = helpers.integers(rng, draw_shape(rng), dtype)
        reach = x.size if mode == "raise" else 3 * x.size
        indices, values = rng.integers(-reach, reach, 5), helpers.integers(rng, (3,), dtype)
        array, ours = laid_out(rng, device, x), x.copy()
        given = put(device, indices) if number % 2 else indices
        np.put(x, indices, values, mode)
        vg.put(array, given, put(device, values), mode)
        assert_same(array, x)
        array.put(given, put(device, values), mode)
        assert_same(array, x)
        vg.put(ours, indices, values, mode)
        assert_same(ours, x)
        low, high = (0, 3) if mode == "raise" else (-9, 9)
        which = rng.integers(low, high, draw_shape(rng))
        choices = [helpers.integers(rng, which.shape, dtype) for _ in range(3)]
        expected = np.choose(which, choices, mode=mode)
        arrays = [laid_out(rng, device, one) for one in choices]
        assert_same(vg.choose(put(device, which), arrays, mode=mode), expected)
        assert_same(put(device, which).choose(arrays, mode=mode), expected)
        place = put(device, np.zeros_like(expected))
        assert vg.choose(put(device, which), arrays, place, mode) is place
        assert_same(place, expected)


@pytest.mark.parametrize("order", ["C", "F", "f"])
def test_orders_of_indices(device, rng, order):
    for number in range(ROUNDS):
        shape = draw_shape(rng, 5)
        flat = rng.integers(0, math.prod(shape), draw_shape(rng, 4, 0)).astype(
            ["i8", "i4"][number % 2]
        )
        axes = vg.unravel_index(put(device, flat), shape, order)
        expected = np.unravel_index(flat, shape, order)
        for one, numpys in zip(axes, expected, strict=True):
            assert_same(one, numpys)
        assert_same(vg.ravel_multi_index(axes, shape, order=order), flat.astype("i8"))
        far = [rng.integers(-9, 9, 4) for _ in shape]
        modes = tuple(one_of(rng, ["wrap", "clip"]) for _ in shape)
        expected = np.ravel_multi_index(far, shape, modes, order)
        given = tuple(put(device, one) for one in far)
        assert_same(vg.ravel_multi_index(given, shape, modes, order), expected)
    for name in ("unravel_index", "ravel_multi_index"):
        with refused(device, ValueError):
            getattr(vg, name)(put(device, [[0], [0]]), (2, 2), order="K")


@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_zeros_at_the_ends_of_axes(device, rng, dtype):
    for number in range(ROUNDS):
        x = helpers.integers(rng, draw_shape(rng, 5, number % 5 > 0), dtype, 1, 4)
        x = x * (rng.integers(0, 4, x.shape) == 0)
        x = x.astype(dtype)
        axis = [None, int(rng.integers(-x.ndim, x.ndim)), tuple(range(x.ndim))[:2], ()][number % 4]
        trim = one_of(rng, ["f", "b", "fb", "BF"])
        expected = np.trim_zeros(x, trim, axis)
        assert_same(vg.trim_zeros(laid_out(rng, device, x), trim, axis), expected, f"{x} {axis}")
    assert_same(vg.trim_zeros(put(device, np.array(0.0))), np.array(0.0))
    for error, arguments in (
        (ValueError, ("",)),
        (np.exceptions.AxisError, ("f", 7)),
        (ValueError, ("f", (0, 0))),
    ):
        with refused(device, error):
            vg.trim_zeros(put(device, np.eye(2)), *arguments)


# ---- Means that are known ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["std", "var", "nanstd", "nanvar"])
@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_spread_about_a_mean(device, rng, dtype, name):
    ours, numpys = getattr(vg, name), getattr(np, name)
    for number in range(ROUNDS):
        x = helpers.integers(rng, draw_shape(rng, 5, 3), dtype)
        if dtype.kind in "fc" and name[0] == "n":
            x.reshape(-1)[0] = math.nan
        axis = [None, 0, -1, tuple(range(x.ndim))][number % 4]
        mean = (np.nanmean if name[0] == "n" else np.mean)(x, axis=axis, keepdims=True)
        mean = np.asarray(mean + number % 3)
        options = [{}, {"ddof": 1}, {"keepdims": True}, {"correction": 1}][number // 4 % 4]
        expected = np.asarray(numpys(x, axis=axis, mean=mean, **options))
        array = laid_out(rng, device, x)
        result = ours(array, axis=axis, mean=put(device, mean), **options)
        assert_near(result, expected, f"{x.tolist()} {axis} {options}")
        if hasattr(array, name):
            result = getattr(array, name)(axis, mean=put(device, mean), **options)
            assert_near(result, expected)
        if dtype.kind in "fc":
            assert_near(ours(array, mean=1.5), numpys(x, mean=1.5))
        mask = rng.integers(0, 2, x.shape).astype(bool)
        mask.reshape(-1)[:2] = True
        if name[0] != "n":
            expected = numpys(x, where=mask, mean=mean.mean())
            result = ours(array, where=put(device, mask), mean=put(device, mean.mean()))
            assert_near(result, expected)
    with refused(device, ValueError):
        ours(put(device, np.ones((2, 3))), axis=0, mean=put(device, np.ones((4, 2, 3))))


# ---- Arrays for numbers --------------------------------------------------------------------------


def test_powers_of_arrays(device, rng):
    for number in range(ROUNDS):
        base = rng.uniform(1, 4, draw_shape(rng, 3))
        axis = int(rng.integers(-base.ndim - 1, base.ndim + 1))
        options = {"num": int(rng.integers(0, 6)), "endpoint": bool(number % 2), "axis": axis}
        for dtype in ("f4", "f8", "D"):
            given = base.astype(dtype)
            expected = np.logspace(-1, 2.5, base=given, **options).astype(dtype)
            array = laid_out(rng, device, given)
            assert_near(vg.logspace(-1, 2.5, base=array, **options), expected)
            result = vg.logspace(-1, 2.5, base=given, device=device, **options)
            assert_near(result, expected)
        whole = base.astype(int).tolist()
        expected = np.logspace(0, 2, base=whole, dtype="f4", **options)
        assert_near(vg.logspace(0, 2, base=whole, device=device, **options), expected)
        expected = np.logspace(0.1, 2, base=base, dtype="i4", **options)
        result = vg.logspace(0.1, 2, base=put(device, base), dtype="i4", **options)
        assert_same(result, expected)
    for base in (10.0, put(device, [2.0])):
        with refused(device, np.exceptions.AxisError):
            vg.logspace(0, 1, base=base, axis=2, device=device)


def test_spirals(device, rng):
    for _ in range(ROUNDS):
        start, stop = rng.normal(size=(2, 2)) @ [1, 1j]
        num, endpoint = int(rng.integers(0, 9)), bool(rng.integers(2))
        for first, last in ((start, stop), (1, stop), (start, -2.0), (-1 + 0j, 1 + 0j)):
            first, last = complex(first), last if isinstance(last, float) else complex(last)
            expected = np.geomspace(first, last, num, endpoint)
            result = vg.geomspace(first, last, num, endpoint, "complex128", device=device)
            assert_near(result, expected)
            result = vg.geomspace(first, last, num, endpoint, device=device)
            assert_near(result, expected.astype(np.complex64))
    for bounds in ((0j, 1), (1, 0j), (1, -1)):
        with refused(device, ValueError):
            vg.geomspace(*bounds, device=device)


@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_fills_by_arrays(device, rng, dtype):
    for values in (rng.integers(0, 2, 3), rng.integers(0, 2, (2, 1)), np.ones((1, 2, 3))):
        values = values.astype(dtype)
        expected = np.full((2, 3) if values.ndim < 3 else (4, 2, 3), values)
        array = laid_out(rng, device, values)
        assert_same(vg.full(expected.shape, array), expected)
        assert_same(vg.full(expected.shape, values, device=device), expected)
        result = vg.full(expected.shape, values.tolist(), dtype, device=device)
        assert_same(result, expected)
        if dtype.kind != "c":
            like = put(device, np.zeros(expected.shape, np.int8))
            assert_same(vg.full_like(like, array), np.full_like(like.numpy(), values))
            result = vg.full_like(like, values.tolist(), "float64")
            assert_same(result, expected.astype("f8"))
    kept = put(device, np.arange(3))
    vg.full(3, kept)[0] = 9
    assert kept.tolist() == [0, 1, 2]
    assert_same(vg.full((2, 3), [kept, kept + 1]), np.array([[0, 1, 2], [1, 2, 3]]))
    assert vg.full_like(kept, [kept[0], 4, 5]).tolist() == [0, 4, 5]
    with refused(device, ValueError):
        vg.full_like(kept, [1, 2])
    if device != "cpu":
        for call in (lambda: vg.full(3, kept, device="cpu"), lambda: vg.full_like([1], kept)):
            with refused(device, ValueError):
                call()


@pytest.mark.parametrize("dtype", helpers.COMPLEX, ids=str)
def test_complex_points(device, rng, dtype):
    for options in ({}, {"left": 1 + 2j}, {"left": 3, "right": -1j}, {"period": 1.5}):
        for number in range(6):
            xp, x = np.sort(rng.normal(size=6)), rng.normal(0, 2, draw_shape(rng))
            fp = (rng.normal(size=(6, 2)) @ [1, 1j]).astype(dtype)
            x.reshape(-1)[0] = xp[2]
            if number == 5:
                fp[2] = complex(math.inf, 1)
            expected = np.interp(x, xp, fp, **options)
            result = vg.interp(put(device, x), put(device, xp), put(device, fp), **options)
            finite = np.isfinite(expected)
            assert np.array_equal(np.isfinite(result.numpy()), finite)
            expected = np.where(finite, expected, 0)
            assert_near(np.where(finite, result.numpy(), 0), expected)
    real = put(device, np.arange(3.0))
    for given in ({"left": 1j}, {"right": 1j}):
        with refused(device, TypeError):
            vg.interp(real, real, real, **given)
    with refused(device, TypeError):
        vg.interp(real, real * 1j, real)


@pytest.mark.parametrize("dtype", NUMPYS, ids=str)
def test_arrays_for_nan(device, rng, dtype):
    for number in range(ROUNDS):
        shape = draw_shape(rng)
        x = helpers.integers(rng, shape, dtype)
        if dtype.kind in "fc":
            special = [math.nan, math.inf, -math.inf, 1.5]
            x = rng.choice(special, shape).astype(dtype)
            if dtype.kind == "c":
                x.imag = rng.choice(special, shape)
        values = [rng.normal(size=shape[-1]).astype("f4"), [float(n) for n in range(shape[-1])]]
        values = [one_of(rng, [values[0], values[1], 2.5]) for _ in range(3)]
        values[number % 3] = np.full(shape, 7.0, "f4")
        if number % 3 != 2 and number % 2:
            values[2] = None
        given = [put(device, one) if isinstance(one, np.ndarray) else one for one in values]
        expected = np.nan_to_num(x, True, *values)
        array = laid_out(rng, device, x)
        assert_same(vg.nan_to_num(array, True, *given), expected)
        assert vg.nan_to_num(array, False, *given) is array
        assert_same(array, expected)
    x = put(device, np.ones(2, np.float32))
    with refused(device, ValueError, x):
        vg.nan_to_num(x, nan=[1.0, 2.0, 3.0])
    with refused(device, TypeError):
        vg.nan_to_num(np.ones(2), False, [1.0, 2.0])


def test_rows_of_text(device):
    rows = [np.arange(3.0), np.arange(3), [5, 6, 7]]
    ours, numpys = io.StringIO(), io.StringIO()
    for given in (rows, tuple(rows), [rows[0]], [1, 2]):
        arrays = [put(device, one) if isinstance(one, np.ndarray) else one for one in given]
        vg.savetxt(ours, type(given)(arrays), "%.3f")
        np.savetxt(numpys, given, "%.3f")
    assert ours.getvalue() == numpys.getvalue()
