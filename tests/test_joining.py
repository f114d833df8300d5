"""Joining, splitting, repeating and rolling, views of other axes, matrices and ranges, as NumPy.

Arrays of random shapes, dtypes and layouts go through the function of ours and NumPy's of the same
name: the same values, shapes and dtypes, or both refuse.
"""

import numpy as np
import pytest
from helpers import put, refused

import pyvecgpu as vg

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"]  # fmt: skip
ROUNDS = 25


def draw_shape(rng, ndim=None, most=5):
    ndim = int(rng.integers(4)) if ndim is None else ndim
    return tuple(int(n) for n in rng.integers(0 if rng.random() < 0.2 else 1, most, ndim))


def draw_values(rng, shape, dtype=None):
    dtype = str(rng.choice(DTYPES)) if dtype is None else dtype
    return rng.integers(0, 100, shape).astype(dtype)


def draw_view(device, rng, values):
    """An Array with these values, a view in one of several layouts."""
    way = int(rng.integers(3))
    if way == 0 or not values.ndim:
        return put(device, values)
    if way == 1:
        return vg.permute_dims(put(device, values.T.copy()), range(values.ndim)[::-1])
    wide = np.repeat(values, 2, axis=0)
    return put(device, wide)[::2]


def check(ours, numpys, arrays, *arguments, **options):
    """The same result of both functions, which take an array or a list of arrays, or no result."""
    try:
        expected = numpys(arrays[0], *arguments, **options)
    except (ValueError, TypeError, IndexError) as error:
        with pytest.raises((ValueError, TypeError, IndexError)):
            ours(arrays[1], *arguments, **options)
        return error
    result = ours(arrays[1], *arguments, **options)
    same(result, expected)
    return None


def same(result, expected):
    if isinstance(expected, (list, tuple)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            same(one, other)
        return
    expected = np.asarray(expected)
    assert isinstance(result, vg.Array)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    assert np.array_equal(result.numpy(), expected)


# ---- Joining -------------------------------------------------------------------------------------

JOIN = ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"]


def draw_parts(rng, name):
    """NumPy arrays that fit together, mostly."""
    shape = draw_shape(rng)
    axis = int(rng.integers(-len(shape), len(shape))) if shape else 0
    parts = []
    for _ in range(rng.integers(1, 5)):
        one = list(shape)
        if name == "concatenate" and one and rng.random() < 0.7:
            one[axis] = int(rng.integers(0, 5))
        if rng.random() < 0.05:
            one = list(draw_shape(rng))
        parts.append(draw_values(rng, tuple(one)))
    return parts, axis


@pytest.mark.parametrize("name", JOIN)
def test_joining(device, rng, name):
    done = 0
    for _ in range(ROUNDS):
        parts, axis = draw_parts(rng, name)
        options = {}
        if name in ("concatenate", "stack"):
            options["axis"] = None if name == "concatenate" and rng.random() < 0.2 else axis
        arrays = [draw_view(device, rng, x) for x in parts]
        functions = getattr(vg, name), getattr(np, name)
        done += check(*functions, (parts, arrays), **options) is None
    assert done > ROUNDS // 3


def test_concat_is_concatenate(device, rng):
    parts = [draw_values(rng, (2, n), "float32") for n in (3, 0, 2)]
    arrays = [put(device, x) for x in parts]
    same(vg.concat(arrays, axis=1), np.concatenate(parts, axis=1))
    same(vg.concat(arrays, axis=1, dtype="int64"), np.concatenate(parts, axis=1).astype("int64"))
    same(vg.concat(put(device, parts[0])), np.concatenate(parts[0]))
    bfloat16 = [vg.astype(x, "bfloat16") for x in arrays]
    assert vg.concat(bfloat16, axis=1).dtype == vg.bfloat16
    assert vg.concat([bfloat16[0], arrays[0]]).dtype == vg.float32
    out = vg.zeros((2, 5), device=device)
    assert vg.concatenate(arrays, axis=1, out=out) is out
    same(out, np.concatenate(parts, axis=1))


def test_numpy_arrays_are_joined_on_the_host(device, rng):
    parts = [draw_values(rng, (2, 3)) for _ in range(3)]
    assert isinstance(vg.concat(parts), np.ndarray)
    assert np.array_equal(vg.stack(parts), np.stack(parts))
    mixed = vg.concat([parts[0], put(device, parts[1])])
    same(mixed, np.concatenate(parts[:2]))
    assert isinstance(vg.split(parts[0], 2)[0], np.ndarray)
    assert isinstance(vg.roll(parts[0], 1), np.ndarray)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: vg.concat([]), "need at least one array"),
        (lambda x: vg.concat([x[0, 0], x]), "zero-dimensional"),
        (lambda x: vg.concat([x, x[0]]), "as many dimensions"),
        (lambda x: vg.concat([x, x[:, :2]]), "along axis 1 the array at index 0 has size 3"),
        (lambda x: vg.stack([x, x[:1]]), "of one shape"),
        (lambda x: vg.split(x, 4), "no 4 equal parts"),
        (lambda x: vg.array_split(x, 0), "larger than 0"),
        (lambda x: vg.array_split(x[:0], 2**63), "too many"),
        (lambda x: vg.dsplit(x, 1), "3 or more dimensions"),
        (lambda x: vg.unstack(x[0, 0]), "without axes"),
        (lambda x: vg.roll(x, (1, 2, 3), (0, 1)), "3 shifts for 2 axes"),
        (lambda x: vg.moveaxis(x, (0, 1), 0), "do not fit"),
        (lambda x: vg.diag(x[0, 0]), "one or two dimensions"),
        (lambda x: vg.fliplr(x[0]), "2 or more dimensions"),
        (lambda x: vg.meshgrid(x), "1-D"),
        (lambda x: vg.meshgrid(x[0], indexing="ji"), "'xy' or 'ij'"),
        (lambda x: vg.linspace(0, 1, -1), "negative"),
        (lambda x: vg.geomspace(0, 1), "not of one sign"),
    ],
)
def test_refusals(device, call, message):
    x = vg.ones((2, 3), device=device)
    with pytest.raises(ValueError, match=message):
        call(x)


@pytest.mark.parametrize("count", [-1, -(2**70), 2**62, 2**70])
def test_sizes_that_make_no_sense(device, count):
    x = vg.ones((2, 3), device=device)
    calls = [
        lambda: vg.linspace(0, 1, count, device=device),
        lambda: vg.logspace(0, 1, count, device=device),
        lambda: vg.repeat(x, count),
        lambda: vg.repeat(x, count, axis=1),
        lambda: vg.tile(x, count),
        lambda: vg.tile(x, (1, count, 1)),
        lambda: vg.eye(count, device=device),
    ]
    for call in calls:
        with refused(device, ValueError, x):
            call()


def test_other_kinds_of_refusal(device):
    x = vg.ones((2, 3), device=device)
    for call in (lambda: vg.concat([x, 1.0]), lambda: vg.append(x, 1), lambda: vg.repeat(x, "1")):
        with pytest.raises(TypeError):
            call()
    for call in (
        lambda: vg.concat([x], axis=2),
        lambda: vg.roll(x, 1, 5),
        lambda: vg.stack([x], -4),
    ):
        with pytest.raises(np.exceptions.AxisError):
            call()
    with pytest.raises(OverflowError, match="linspace"):
        vg.linspace(0, 300, 3, dtype="int8", device=device)


# ---- One array -----------------------------------------------------------------------------------


def draw_call(rng, name, shape):
    """Arguments and options for a function of one array of that shape."""
    ndim = len(shape)
    axis = int(rng.integers(-ndim, ndim)) if ndim else 0
    n = shape[axis] if ndim else 0
    where = (
        int(rng.integers(1, 4)) if rng.random() < 0.5 else [int(i) for i in rng.integers(-3, 6, 2)]
    )
    pair = tuple(int(i) for i in rng.permutation(ndim)[:2])
    signs = tuple(i - ndim if rng.random() < 0.5 else i for i in pair)
    return {
        "append": ((draw_values(rng, shape),), {"axis": axis if rng.random() < 0.5 else None}),
        "array_split": ((where,), {"axis": axis}),
        "split": ((n if rng.random() < 0.5 and n else where,), {"axis": axis}),
        "hsplit": ((where,), {}),
        "vsplit": ((where,), {}),
        "dsplit": ((where,), {}),
        "tile": ((draw_shape(rng, most=4) or int(rng.integers(3)),), {}),
        "repeat": ((int(rng.integers(4)),), {"axis": axis if rng.random() < 0.7 else None}),
        "roll": ((int(rng.integers(-9, 9)),), {"axis": axis if rng.random() < 0.7 else None}),
        "swapaxes": (signs if ndim > 1 else (0, 0), {}),
        "moveaxis": (signs if ndim > 1 else (0, 0), {}),
        "rot90": ((int(rng.integers(-5, 6)),), {"axes": signs} if ndim > 1 else {}),
        "diagonal": ((int(rng.integers(-4, 5)),),
                     {"axis1": signs[0], "axis2": signs[1]} if ndim > 1 else {}),
        "diag": ((int(rng.integers(-4, 5)),), {}),
    }.get(name, ((), {}))  # fmt: skip


ONE = ["append", "array_split", "split", "hsplit", "vsplit", "dsplit", "tile", "repeat", "roll",
       "swapaxes", "moveaxis", "rot90", "diagonal", "diag", "ravel", "fliplr", "flipud",
       "atleast_1d", "atleast_2d", "atleast_3d", "unstack"]  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_of_one_array(device, rng, name):
    done = 0
    for _ in range(2 * ROUNDS):
        shape = draw_shape(rng)
        values = draw_values(rng, shape)
        array = draw_view(device, rng, values)
        arguments, options = draw_call(rng, name, shape)
        ours = [put(device, x) if isinstance(x, np.ndarray) else x for x in arguments]
        try:
            expected = getattr(np, name)(values, *arguments, **options)
        except (ValueError, TypeError, IndexError):
            with pytest.raises((ValueError, TypeError, IndexError)):
                getattr(vg, name)(array, *ours, **options)
            continue
        same(getattr(vg, name)(array, *ours, **options), expected)
        done += 1
    assert done > 2


def test_roll_of_several_axes(device, rng):
    for _ in range(ROUNDS):
        values = draw_values(rng, draw_shape(rng, 3))
        axes = tuple(int(i) for i in rng.integers(-3, 3, rng.integers(1, 4)))
        shifts = tuple(int(i) for i in rng.integers(-9, 9, len(axes)))
        array = draw_view(device, rng, values)
        same(vg.roll(array, shifts, axes), np.roll(values, shifts, axes))
        same(vg.roll(array, shifts[0], axes), np.roll(values, shifts[0], axes))


def test_methods(device, rng):
    values = draw_values(rng, (3, 4), "float32")
    x = put(device, values)
    same(x.ravel(), values.ravel())
    same(x.T.flatten(), values.T.flatten())
    same(x.swapaxes(0, 1), values.swapaxes(0, 1))
    same(x.diagonal(1), values.diagonal(1))
    same(x.repeat(2, axis=0), values.repeat(2, axis=0))


def test_views_and_copies(device):
    """What gives views writes through to the array, and what does not does not."""
    views = [
        lambda x: vg.split(x, 2)[0], lambda x: vg.swapaxes(x, 0, 1), lambda x: vg.moveaxis(x, 0, 1),
        lambda x: vg.rot90(x), lambda x: vg.diagonal(x), vg.ravel, vg.fliplr, vg.flipud,
        lambda x: vg.unstack(x)[0], vg.atleast_3d, lambda x: vg.rot90(x, 0),
    ]  # fmt: skip
    copies = [
        lambda x: vg.concat([x]), lambda x: vg.stack([x]), lambda x: vg.tile(x, 1),
        lambda x: vg.repeat(x, 1), lambda x: vg.roll(x, 0), lambda x: vg.diag(x), vg.Array.flatten,
    ]  # fmt: skip
    for functions, expected in ((views, True), (copies, False)):
        for function in functions:
            x = vg.zeros((4, 4), device=device)
            function(x)[...] = 1
            assert bool(vg.max(x) == 1) is expected
    read_only = vg.broadcast_arrays(vg.zeros((4, 1), device=device), vg.zeros(4, device=device))
    assert [x.shape for x in read_only] == [(4, 4), (4, 4)]
    with pytest.raises(ValueError, match="read-only"):
        read_only[0][...] = 1
    assert vg.broadcast_shapes((4, 1), (3,)) == (4, 3)


# ---- Matrices and ranges -------------------------------------------------------------------------


def test_matrices(device, rng):
    for _ in range(ROUNDS):
        n, m, k = int(rng.integers(0, 6)), int(rng.integers(0, 6)), int(rng.integers(-7, 8))
        dtype = str(rng.choice(DTYPES))
        same(vg.eye(n, m, k, dtype, device=device), np.eye(n, m, k, dtype))
        same(vg.tri(n, m, k, dtype, device=device), np.tri(n, m, k, dtype))
        same(vg.identity(n, dtype, device=device), np.identity(n, dtype))
    assert vg.eye(2, device=device).dtype == vg.get_default_dtype()


def test_ranges(device, rng):
    for _ in range(ROUNDS):
        start, stop = (float(x) for x in rng.uniform(0.1, 100, 2))
        num, endpoint = int(rng.integers(0, 9)), bool(rng.integers(2))
        dtype = str(rng.choice(["float32", "float64", "int16", "int64"]))
        options = {"endpoint": endpoint, "dtype": dtype}
        found = vg.linspace(start, stop, num, device=device, **options)
        same(found, np.linspace(start, stop, num, **options))
        found, step = vg.linspace(start, stop, num, retstep=True, device=device, **options)
        expected = np.linspace(start, stop, num, retstep=True, **options)
        same(found, expected[0])
        assert step == expected[1] or np.isnan([step, expected[1]]).all()
        found = vg.logspace(start / 50, stop / 50, num, device=device, **options)
        same(found, np.logspace(start / 50, stop / 50, num, **options))
        found = vg.geomspace(start, stop, num, device=device, endpoint=endpoint, dtype="float32")
        same(found, np.geomspace(start, stop, num, endpoint=endpoint, dtype="float32"))
    assert vg.linspace(0, 1, device=device).shape == (50,)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_meshgrid(device, rng, indexing, sparse, copy):
    for count in range(4):
        lines = [draw_values(rng, (int(n),)) for n in rng.integers(0, 4, count)]
        options = {"indexing": indexing, "sparse": sparse, "copy": copy}
        found = vg.meshgrid(*(put(device, x) for x in lines), **options)
        same(found, np.meshgrid(*lines, **options))
