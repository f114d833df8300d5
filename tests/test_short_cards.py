"""Composed functions in one call of the C library (functions/short_cards.py), and the long way.

While somebody observes the seam a function goes the long way, so each case is computed both ways
and by NumPy: over dtypes, layouts, axes and arguments that the short way takes or leaves.
"""

import warnings

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import observe
from pyvecgpu.functions import short_cards

pytestmark = pytest.mark.devices("sim", "cuda")

MOVED = ("bool", "int8", "int16", "int32", "uint64", "float16", "float32", "float64", "complex128")
SHAPES = ((), (1,), (7,), (0,), (3, 0, 2), (5, 8), (4, 1, 6), (2, 3, 4, 5))
LAYOUTS = {
    "plain": lambda x: x,
    "reversed": lambda x: x[(slice(None, None, -1),) * x.ndim],
    "transposed": lambda x: x.T,
    "every second": lambda x: x[(..., slice(None, None, 2))] if x.ndim else x,
    "broadcast": lambda x: (np if isinstance(x, np.ndarray) else vg).broadcast_to(x, (2, *x.shape)),
}


def both(f):
    """What f gives by the long way and by the short one; the same error by both is None."""
    found = []
    for observed in (True, False):
        try:
            if observed:
                with observe(lambda call: None):
                    found.append(f())
            else:
                found.append(f())
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            found.append((type(error), str(error)))
    return found


def check(f, array, values, *arguments, name=None, **options):
    """Compare vg's function with itself, the long way round, and with NumPy's."""
    name = name or f
    long, short = both(lambda: getattr(vg, name)(array, *arguments, **options))
    if isinstance(long, tuple):
        assert short == long, (name, values.shape, arguments, options)
        return
    assert short.shape == long.shape and short.dtype == long.dtype, (name, arguments, options)
    np.testing.assert_array_equal(short.numpy(), long.numpy(), err_msg=f"{name} {arguments}")
    expected = getattr(np, name)(values, *arguments, **options)
    np.testing.assert_array_equal(short.numpy(), expected, err_msg=f"{name} {arguments} {options}")
    if short.size and name not in ("flip", "diagonal"):
        assert not vg.may_share_memory(short, array)


def cases(device, rng, dtype):
    for shape in SHAPES:
        base = helpers.integers(rng, shape, np.dtype(dtype))
        on_card = put(device, base)
        for layout in LAYOUTS.values():
            yield layout(on_card), layout(base)


@pytest.mark.parametrize("dtype", MOVED)
def test_moves(device, rng, dtype):
    for array, values in cases(device, rng, dtype):
        ndim = values.ndim
        for axis in (None, *range(-ndim - 1, ndim + 1)):
            for shift in (0, 1, -3, 10**12, 2**70):
                check("roll", array, values, shift, axis)
            check("flip", array, values, axis)
            for count in (0, 1, 3, -1):
                check("repeat", array, values, count, axis)
        check("flip", array, values, tuple(range(ndim)))
        for counts in (2, (2,), (1, 2), [3, 1], (2, 1, 3, 1), (0, 2), (-1,), (2,) * 5):
            check("tile", array, values, counts)
        for k in (0, 2, -3):
            if ndim in (1, 2):
                check("diag", array, values, k)
            if ndim > 1:
                check("tril", array, values, k)
                check("triu", array, values, k)
                check("diagonal", array, values, k)
                check("diagonal", array, values, k, -1, 0)
                check("diagonal", array, values, k, 1, 1)
        for k in (-(2**63), 1 - 2**63, 2**63 - 1, 2**63, 2**62):
            for name in ("tril", "triu"):
                long, short = both(lambda: getattr(vg, name)(array, k))  # noqa: B023
                if type(long) is tuple:
                    assert short == long
                else:
                    np.testing.assert_array_equal(short.numpy(), long.numpy())
        for k in (1 - 2**63, 2**63, 2**62):
            long, short = both(lambda: vg.diag(array, k))  # noqa: B023
            assert ndim == 2 or (type(long) is tuple and short == long)
            assert ndim < 2 or vg.diagonal(array, k).shape[-1] == 0


# Calls that go the short way: its function, the public one, the shape of its operand, arguments.
TAKEN = [
    ("repeated", "repeat", (5,), (2, 0)),
    ("tiled", "tile", (5,), (2,)),
    ("padded", "pad", (5,), (2,)),
    ("rolled", "roll", (5, 4), (2, 1)),
    ("turned", "flip", (5, 4), (1,)),
    ("diagonal", "diagonal", (5, 4), (1, 0, 1)),
    ("diagonal_matrix", "diag", (5,), (2,)),
    ("joined", "stack", (5,), (1,)),
    ("side_of_diagonal", "tril", (5, 4), (1,)),
    ("differences", "diff", (5,), (1, 0)),
    ("numbers_for_nan", "nan_to_num", (5,), (True, 1.0)),
    ("dots", "vecdot", (5,), ()),
    ("sum_without_nan", "nansum", (5, 4), (1,)),
    ("all_equal", "array_equal", (5,), ()),
    ("unique", "unique_values", (5,), ()),
]
ALIKE = (np.int64, np.int8, float, bool, str, lambda number: [number], lambda number: None)


@pytest.mark.parametrize("way, name, shape, arguments", TAKEN, ids=lambda one: str(one))
def test_numbers_of_other_types(device, rng, monkeypatch, way, name, shape, arguments):
    """Plain numbers go the short way, which leaves all others to the long one, or does the same."""
    x, gave = put(device, rng.standard_normal(shape).astype("float32")), []
    first = {"joined": ([x, x],), "dots": (x, x), "all_equal": (x, x + 0)}.get(way, (x,))
    function = getattr(short_cards, way)
    monkeypatch.setattr(short_cards, way, lambda *a: (gave.append(function(*a)), gave[-1])[1])
    getattr(vg, name)(*first, *arguments)
    assert gave and gave[-1] is not None
    for i, number in enumerate(arguments):
        for other in ALIKE:
            given = [*arguments[:i], other(number), *arguments[i + 1 :]]
            long, short = both(lambda: getattr(vg, name)(*first, *given))  # noqa: B023
            if isinstance(long, tuple):
                assert short == long, given
            else:
                np.testing.assert_array_equal(short.numpy(), long.numpy(), err_msg=str(given))


def test_top_k_of_numbers_of_other_types(device, rng):
    x = put(device, rng.standard_normal((5, 4)).astype("float32"))
    for other in ALIKE:
        for given in ({"k": other(2)}, {"k": 2, "axis": other(0)}, {"k": 2, "device": other(0)}):
            long, short = both(lambda: vg.top_k(x, **given))  # noqa: B023
            if isinstance(long[0], type):
                assert short == long, given
                continue
            for one, found in zip(long, short, strict=True):
                np.testing.assert_array_equal(found.numpy(), one.numpy(), err_msg=str(given))


WIDTHS = (0, 2, (1, 2), [0, 3], ((2, 1),), -1, (1, -1), 1.5, (1, 2, 3), 2**62)


@pytest.mark.parametrize("dtype", MOVED)
def test_pad(device, rng, dtype):
    values_of = {
        "b": (True,),
        "i": (0, 3, -1, 2.5),
        "u": (0, 3, -1),
        "f": (0, 2, 0.5),
        "c": (1, 0.5),
    }
    for array, values in cases(device, rng, dtype):
        pairs = tuple((i, 2 - i % 3) for i in range(values.ndim))
        for widths in (*WIDTHS, pairs, [list(pair) for pair in pairs]):
            for value in values_of[values.dtype.kind]:
                options = {"constant_values": value}
                long, short = both(lambda: vg.pad(array, widths, **options))  # noqa: B023
                if isinstance(long, tuple):
                    assert short == long, (values.shape, widths, options)
                    continue
                assert short.dtype == long.dtype and short.shape == long.shape
                np.testing.assert_array_equal(short.numpy(), long.numpy())
                if values.ndim:  # of no axes NumPy refuses some widths, of which there are none
                    expected = np.pad(values, widths, **options)
                    np.testing.assert_array_equal(short.numpy(), expected)


def test_a_diagonal_is_a_view(device, rng):
    for layout in ("plain", "reversed", "transposed"):
        values = helpers.integers(rng, (4, 6), np.dtype("float32"))
        array = put(device, values)
        LAYOUTS[layout](array).diagonal(1)[...] = 99
        np.fill_diagonal(LAYOUTS[layout](values)[:, 1:], 99)
        np.testing.assert_array_equal(array.numpy(), values)


@pytest.mark.parametrize("dtype", [None, "int32", "int64", "uint8", "float32", "float64", "bool"])
def test_arange(device, dtype):
    bounds = (0, 1, 5, -3, 2**24, -(2**24) - 3, 2**31 - 2, 2**31, 2**53 + 1, 2**62)
    bounds += (2**63 - 1, 2**64)
    for start in bounds:
        for length in (0, 1, 2, 500, -2):
            for step in (1, 3, 2**20, -1, 0):
                stop = start + length * (abs(step) or 1)
                options = {"dtype": dtype, "device": device}
                long, short = both(lambda: vg.arange(start, stop, step, **options))  # noqa: B023
                if type(long) is tuple:
                    assert short == long, (start, stop, step)
                    continue
                assert short.dtype == long.dtype and short.shape == long.shape
                np.testing.assert_array_equal(short.numpy(), long.numpy(), err_msg=str(start))


@pytest.mark.parametrize("function", ["concat", "stack"])
def test_join(device, rng, function):
    for dtype in ("uint8", "float16", "float64"):
        for array, values in cases(device, rng, dtype):
            other = put(device, values.astype("float32"))
            for axis in (*range(-values.ndim - 2, values.ndim + 2), 2**70):
                for parts in ([array], (array, array), [array, other], [array, other[..., None]]):
                    short = both(lambda: getattr(vg, function)(parts, axis=axis))  # noqa: B023
                    if isinstance(short[0], tuple):
                        assert short[0] == short[1]
                        continue
                    np.testing.assert_array_equal(short[1].numpy(), short[0].numpy())
                    assert short[1].dtype == short[0].dtype


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64"])
def test_differences(device, rng, dtype):
    for array, values in cases(device, rng, dtype):
        for axis in range(-values.ndim - 1, values.ndim + 1):
            check("diff", array, values, axis=axis)


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64", "complex64"])
def test_numbers_for_nan(device, rng, dtype):
    for array, values in cases(device, rng, dtype):
        if array.size and dtype != "int32":
            values = values.copy()
            values.reshape(-1)[::3], values.reshape(-1)[1::3] = np.nan, -np.inf
            array = put(device, values)
        for options in ({}, {"nan": 2.0, "neginf": -5.0}, {"posinf": 3}, {"copy": True}):
            check("nan_to_num", array, values, **options)


# Sums ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["nansum", "nanmean"])
def test_without_nan(device, rng, name, dtype):
    for shape in ((7,), (300, 5), (5, 4000), (9, 8500), (40, 6, 300), (2, 3, 4, 5), (70, 400, 3)):
        values = rng.standard_normal(shape).astype(dtype)
        values[rng.random(shape) < 0.3] = np.nan
        values.reshape(-1)[0] = 3
        array, ndim = put(device, values), len(shape)
        for axis in (None, *range(-ndim, ndim), (0, -1), ndim, "x"):
            for keepdims in (False, True):
                options = {"axis": axis, "keepdims": keepdims}
                long, short = both(lambda: getattr(vg, name)(array, **options))  # noqa: B023
                if isinstance(long, tuple):
                    assert short == long
                    continue
                assert short.shape == long.shape and short.dtype == long.dtype
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # of nothing but NaN
                    expected = getattr(np, name)(values.astype("float64"), **options)
                eps = np.finfo(dtype).eps
                size = np.nansum(np.abs(values.astype("float64")), **options) + 1
                error = np.abs(short.numpy().astype("float64") - expected)
                assert not (~(error <= 4 * eps * size)[~np.isnan(expected)]).any()
                np.testing.assert_array_equal(np.isnan(short.numpy()), np.isnan(expected))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex64"])
def test_vecdot(device, rng, dtype):
    shapes = [((5,), (5,)), ((4, 1), (4, 1)), ((300, 3), (300, 3)), ((33, 40), (40,))]
    shapes += [
        ((3, 1, 70), (5, 70)),
        ((2, 1023), (2, 1023)),
        ((2, 3000), (2, 3000)),
        ((3, 0), (0,)),
    ]
    shapes += [((3, 4), (3, 5)), ((0, 4), (4,)), ((2, 3), (4, 3)), ((), (3,))]
    for first, second in shapes:
        x, y = (rng.standard_normal(shape) * 4 for shape in (first, second))
        x, y = x.astype(dtype), y.astype(dtype)
        for step in (1, -1, 2):
            a, b = (put(device, v)[..., ::step] if v.ndim else put(device, v) for v in (x, y))
            p, q = (v[..., ::step] if v.ndim else v for v in (x, y))
            long, short = both(lambda: vg.vecdot(a, b))  # noqa: B023
            if isinstance(long, tuple):
                assert short == long
                continue
            wide = "complex128" if dtype == "complex64" else "float64"
            expected = (p.conj().astype(wide) * q.astype(wide)).sum(-1)
            size = (np.abs(p.astype(wide)) * np.abs(q.astype(wide))).sum(-1) + 1e-3
            eps = 0 if dtype == "int32" else np.finfo(dtype).eps
            assert short.shape == long.shape and short.dtype == long.dtype
            error = np.abs(short.numpy().astype(wide) - expected)
            assert not (~(error <= 40 * eps * size)).any()


def test_an_item_of_vecdot_is_that_of_it_alone(device, rng):
    x, y = (put(device, rng.standard_normal((50, 333)).astype("float32")) for _ in range(2))
    together = vg.vecdot(x, y).numpy()
    alone = [vg.vecdot(x[i], y[i]).item() for i in range(50)]
    np.testing.assert_array_equal(together, np.array(alone, "float32"))
    crossed = vg.vecdot(x[:6, None], y[:7]).numpy()
    alone = [[vg.vecdot(x[i], y[j]).item() for j in range(7)] for i in range(6)]
    np.testing.assert_array_equal(crossed, np.array(alone, "float32"))


@pytest.mark.parametrize("length, inner", [(3, 70), (40, 5), (130, 20), (300, 40)])
def test_an_item_of_short_columns_is_that_of_it_alone(device, rng, length, inner):
    x = put(device, rng.standard_normal((4000 // inner, length, inner)).astype("float32"))
    functions = (vg.softmax, vg.log_softmax, vg.logsumexp, vg.std, vg.nanmean)
    for f in functions:
        together = f(x, 1).numpy()
        for i in (0, len(together) - 1):
            np.testing.assert_array_equal(f(x[i], 0).numpy(), together[i])


SUBSCRIPTS = (
    *("bij,bjk->bik", "ij,kj->ik", "bihd,bjhd->bhij", "ijk,kl->ijl", "bi,bi->b", "ij,ij->", "i,i"),
    *("i,j->ij", "i,j->ji", "ij,jk", "bi,ib->b", "abc,dc->bad", "ab,cd->acbd", "abc,abc->cb"),
    *(
        "...i,...i->...",
        "i...,ij->...j",
        "ii,ij->j",
        "ij,jk->k",
        "ij,ij->ji",
        "ab,ab,a->b",
        "ij,jk->ik ",
    ),
)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum(device, rng, subscripts):
    sizes = dict(zip("abcdhijkl", (3, 4, 5, 2, 3, 6, 7, 4, 5), strict=True))
    for broken in (False, True, "one"):
        arrays = []
        for term in subscripts.split("->")[0].split(","):
            shape = [sizes[one] for one in term.strip().replace("...", "ab")]
            if broken and shape:
                shape[0] = 1 if broken == "one" else shape[0] + len(arrays)
            arrays.append(rng.integers(-4, 5, shape).astype("float32"))
        on_card = [put(device, x) for x in arrays]
        for _ in range(2):  # by a new plan, and by one that is kept
            long, short = both(lambda: vg.einsum(subscripts, *on_card))  # noqa: B023
            if isinstance(long, tuple):
                assert short == long
                continue
            np.testing.assert_array_equal(short.numpy(), np.einsum(subscripts, *arrays))
            np.testing.assert_array_equal(short.numpy(), long.numpy())


def test_array_equal(device, rng):
    for dtype in ("bool", "int32", "float16", "float64", "complex64"):
        for shape in ((), (0,), (5,), (30, 70)):
            values = helpers.integers(rng, shape, np.dtype(dtype))
            other = values.copy()
            if values.size:
                other.reshape(-1)[-1] = 1 - other.reshape(-1)[-1]
            x, y, z = (put(device, v) for v in (values, values, other))
            w = x.astype("float64") if dtype != "complex64" else x.copy()
            for a, b in ((x, x), (x, y), (x, z), (x, w), (x, x.reshape(-1, 1)), (z, x[..., None])):
                for equal_nan in (False, True):
                    long, short = both(lambda: vg.array_equal(a, b, equal_nan))  # noqa: B023
                    assert short is long
    x = put(device, np.array([1.0, np.nan], "float32"))
    assert not vg.array_equal(x, x)
    assert vg.array_equal(x, x, equal_nan=True)


# Statistics of short columns, and softmax of them ------------------------------------------------

COLUMNS = (
    (13, 9000),
    (3, 40000),
    (64, 8200),
    (3, 100, 90),
    (9000, 9, 2),
    (300, 500, 30),
    (5, 70, 40),
)
COLUMNS += ((700, 3), (2, 1024, 3), (4, 17, 130), (600, 41, 4))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", COLUMNS, ids=str)
def test_columns(device, rng, shape, dtype):
    if device != "cuda" and np.prod(shape) > 2**20:  # no card to fill: fewer items of these columns
        shape = (shape[0] // 10, *shape[1:])
    values = rng.standard_normal(shape).astype(dtype)
    wide, axis, eps = values.astype("float64"), len(shape) - 2, float(np.finfo(dtype).eps)
    for layout in ("plain", "reversed"):
        array, wide = (
            LAYOUTS[layout](put(device, values)),
            LAYOUTS[layout](values).astype("float64"),
        )
        near = {"rtol": 8 * eps, "atol": 8 * eps}
        found = vg.std(array, axis=axis, ddof=1).numpy()
        np.testing.assert_allclose(found, wide.std(axis, ddof=1), **near)
        powers = np.exp(wide)
        total = powers.sum(axis, keepdims=True)
        np.testing.assert_allclose(
            vg.nn.functional.softmax(array, axis).numpy(), powers / total, **near
        )
        logs = vg.nn.functional.log_softmax(array, axis).numpy()
        near["atol"] *= 8
        np.testing.assert_allclose(logs, wide - np.log(total), **near)
        found = vg.logsumexp(array, axis).numpy()
        np.testing.assert_allclose(found, np.log(total).squeeze(axis), **near)


def test_softmax_of_columns_that_have_no_numbers(device):
    values = np.zeros((2, 5, 7), "float32")
    values[0, :, 0], values[0, 2, 1], values[1, 3, 2] = -np.inf, np.inf, np.nan
    values[1, 1, 3] = -np.inf
    array = put(device, values)
    rows = put(device, np.ascontiguousarray(values.swapaxes(1, 2)))
    for name in ("softmax", "log_softmax"):
        f = getattr(vg.nn.functional, name)
        np.testing.assert_array_equal(f(array, 1).numpy(), f(rows, -1).numpy().swapaxes(1, 2))


# Random integers ----------------------------------------------------------------------------------

COUNTS = (1, 2, 3, 100, 255, 256, 2**16, 2**16 + 1, 2**31, 2**32, 3 * 2**61, 2**63 + 1, 2**64)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_integers_are_those_of_the_cpu(device, dtype):
    """With the same numbers and the same place in the stream afterwards, also where many are drawn
    again: of 2^63 + 1 numbers half of the words do not do."""
    info = np.iinfo(dtype)
    for count in COUNTS:
        if count - 1 > info.max - info.min:
            continue
        for low in {info.min, int(info.max) - count + 1, max(info.min, -1)}:
            for size in (1, 7, (3, 41), 0):
                if low + count - 1 > info.max:
                    continue
                ours, cpu = (vg.random.default_rng(3, device=one) for one in (device, "cpu"))
                for _ in range(2):
                    x, y = (g.integers(low, low + count, size, dtype) for g in (ours, cpu))
                    np.testing.assert_array_equal(x.numpy(), y.numpy())
                    assert x.dtype == y.dtype and ours.state == cpu.state


# Which calls are short ----------------------------------------------------------------------------

# By the short way: calls that take it, and calls that it leaves to the long one.
WAYS_TAKEN = {
    "padded": (
        lambda x: vg.pad(x, 2),
        lambda x: vg.pad(x, (1, 2), "constant"),
        lambda x: vg.pad(x, [(1, 2), [0, 1]], constant_values=1.5),
        lambda x: vg.pad(x, ((1, 2),), constant_values=2**63 - 1),
        lambda x: vg.pad(x, 1, constant_values=-(2**63)),
        lambda x: vg.pad(x[0, 0, None], 1),
        lambda x: vg.pad(vg.reshape(x, (1,) * 30 + (4, 4)), ((0, 0),) * 30 + ((1, 0), (0, 2))),
    ),
    "repeated": (
        lambda x: vg.tile(x, 2),
        lambda x: vg.tile(x, (2, 1)),
        lambda x: vg.tile(x, [1, 2, 3]),
        lambda x: vg.repeat(x, 2),
        lambda x: vg.repeat(x, 2, axis=-2),
        lambda x: vg.repeat(x, 0, axis=1),
    ),
    "rolled": (
        lambda x: vg.roll(x, 1),
        lambda x: vg.roll(x, 1 - 2**63),
        lambda x: vg.roll(x, 2**63 - 1, axis=1),
        lambda x: vg.roll(x, -1, axis=-2),
    ),
    "turned": (
        lambda x: vg.flip(x),
        lambda x: vg.flip(x, axis=-2),
        lambda x: vg.flip(x, axis=(0, 1)),
    ),
    "diagonal": (
        lambda x: vg.diagonal(x),
        lambda x: vg.diagonal(x, 1, -1, 0),
        lambda x: vg.diagonal(x, 1 - 2**63),
        lambda x: vg.diagonal(x, 2**63 - 1),
    ),
    "first_in_order": (
        lambda x: vg.top_k(x, 2),
        lambda x: vg.top_k(x, 4, axis=0, mode="smallest"),
        lambda x: vg.top_k(vg.reshape(x, (1,) * 30 + (4, 4)), 1, axis=-32 + 30),
    ),
    "unique": (lambda x: vg.unique(x), lambda x: vg.unique_values(x)),
    "diagonal_matrix": (
        lambda x: vg.diag(x[0]),
        lambda x: vg.diag(x[0], 3),
        lambda x: vg.diag(x[0], -1),
    ),
    "joined": (
        lambda x: vg.concat([x, x]),
        lambda x: vg.concat((x,), axis=-1),
        lambda x: vg.concatenate([x, x], axis=1),
        lambda x: vg.stack([x, x]),
        lambda x: vg.stack((x, x, x), axis=-1),
        lambda x: vg.concat([vg.reshape(x, (1,) * 30 + (4, 4))] * 2, axis=-32),
        lambda x: vg.concat([vg.reshape(x, (1,) * 30 + (4, 4))] * 2, axis=31),
    ),
    "side_of_diagonal": (
        lambda x: vg.tril(x),
        lambda x: vg.triu(x, 1),
        lambda x: vg.tril(x, k=-(2**63)),
        lambda x: vg.triu(x[None], 2**63 - 1),
    ),
    "numbers": (
        lambda x: vg.arange(3, device=x.device),
        lambda x: vg.arange(1, 8, 3, dtype="float32", device=x.device),
        lambda x: vg.arange(1 - 2**31, 0, 2**30, dtype="int32", device=x.device),
    ),
    "differences": (
        lambda x: vg.diff(x),
        lambda x: vg.diff(x, axis=-2),
        lambda x: vg.diff(x, 1, 0),
    ),
    "numbers_for_nan": (
        lambda x: vg.nan_to_num(x),
        lambda x: vg.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
    ),
    "dots": (
        lambda x: vg.vecdot(x, x),
        lambda x: vg.vecdot(x, x, axis=-1, precision="tf32"),
        lambda x: vg.einsum("ij,ij->i", x, x),
        lambda x: vg.einsum("ji,ji->i", x, x),
    ),
    "sum_without_nan": (
        lambda x: vg.nansum(x),
        lambda x: vg.nansum(x, axis=0, keepdims=True),
        lambda x: vg.nanmean(x, axis=(0, -1)),
        lambda x: vg.nanmean(x, axis=-2),
        lambda x: vg.nansum(vg.reshape(x, (1,) * 30 + (4, 4)), axis=-32),
        lambda x: vg.nansum(vg.reshape(x, (1,) * 30 + (4, 4)), axis=tuple(range(32))),
    ),
    "all_equal": (
        lambda x: vg.array_equal(x, x),
        lambda x: vg.array_equal(x, x, equal_nan=True),
        lambda x: vg.array_equal(x, x + 1),
        lambda x: vg.array_equal(x, x[:3]),
        lambda x: vg.array_equal(x[:0], x[4:]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS_TAKEN)
def test_short_ways_are_taken(device, monkeypatch, name):
    """The result is what the short way has made, and not a second one by the long way."""
    found, short = [], getattr(short_cards, name)
    monkeypatch.setattr(short_cards, name, lambda *given: found.append(short(*given)) or found[-1])
    x = put(device, np.arange(16, dtype="float32").reshape(4, 4))
    for i, call in enumerate(WAYS_TAKEN[name]):
        found.clear()
        result = call(x)
        assert len(found) == 1 and found[0] is not None and result is found[0], i


def test_every_short_way_is_looked_at():
    steps = {"functions_of", "made", "tiled"}  # tiled is a way to repeated
    here = {name for name, one in vars(short_cards).items()
            if getattr(one, "__module__", "") == short_cards.__name__}  # fmt: skip
    assert {name for name in here - steps if name[0] != "_"} == WAYS_TAKEN.keys()
