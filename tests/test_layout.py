"""Views and copies: reshape, permute_dims, broadcast_to, squeeze, astype, contiguous, copy."""

import itertools

import helpers
import numpy as np
import pytest
import references
from helpers import ALL_DTYPES, assert_same, put
from products import launched, launches

import pyvecgpu as vg


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_layouts_hold_what_they_should(device, rng, dtype):
    """The layouts that other tests use, checked by the one thing they do not share: NumPy."""
    for shape in ((0,), (1,), (33,), (4, 6), (3, 4, 5)):
        x = helpers.numbers(rng, shape, dtype)
        for name, make in helpers.LAYOUTS.items():
            assert_same(make(device, x), x, name)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_copies_of_every_layout_are_contiguous(device, rng, dtype):
    for shape in ((33,), (4, 6), (3, 4, 5), (2, 3, 2, 2, 2, 2, 2, 3)):
        x = helpers.numbers(rng, shape, dtype)
        c_order = np.ascontiguousarray(x).strides
        for name, make in helpers.LAYOUTS.items():
            for copy in (make(device, x).copy(), vg.contiguous(make(device, x))):
                assert_same(copy, x, name)
                assert copy.strides == c_order


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize(
    "shape",
    [(64, 64), (65, 33), (130, 257), (3, 40, 50), (40, 3, 50), (1, 300), (2000, 17)],
    ids=str,
)
def test_transposed_copies(device, rng, shape, dtype):
    x = helpers.numbers(rng, shape, dtype)
    array = put(device, x)
    for axes in itertools.permutations(range(len(shape))):
        assert_same(vg.permute_dims(array, axes).copy(), np.transpose(x, axes), axes)
    target = vg.empty(shape[::-1], dtype=dtype, device=device)
    target.T[...] = array
    assert_same(target, x.T)
    assert_same(array[..., 1:].T.copy(), x[..., 1:].T)
    assert_same(array[::2].T.copy(), x[::2].T)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("offset", range(1, 16))
def test_views_offset_by_a_few_elements(device, rng, offset, dtype):
    """Vector accesses must look at the address: every offset of every operand and of the output."""
    whole = helpers.integers(rng, 1200, dtype)
    array = put(device, whole)
    for n in (1, 15, 16, 17, 1024, 1025):
        x, view = whole[offset : offset + n], array[offset : offset + n]
        assert_same(view.copy(), x)
        assert_same(view + array[:n], x + whole[:n])
        assert_same(vg.where(view == view, view, array[:n]), x)
        assert_same(vg.sum(view), np.sum(helpers.widened(x)).astype(np.sum(x).dtype))
        if dtype.kind != "c":
            assert_same(vg.max(view), np.max(x))
            assert_same(view.astype(np.float64), x.astype(np.float64))
        if helpers.is_float(dtype):
            assert_same(vg.sqrt(vg.abs(view)), np.sqrt(np.abs(x)))
    target, expected = vg.zeros(1200, dtype=dtype, device=device), np.zeros(1200, dtype)
    target[offset : offset + 1025] = array[1:1026]
    expected[offset : offset + 1025] = whole[1:1026]
    assert_same(target, expected)
    if dtype in helpers.HALVES:
        return
    square = array[offset : offset + 30 * 33].reshape(30, 33)
    expected = gram(whole[offset : offset + 990].reshape(30, 33))
    product = square @ square.T
    if dtype.kind == "c":  # of parts that cancel, the zero's sign is nobody's
        product, expected = product + 0.0, expected + 0.0
    assert_same(product, expected)


def gram(x):
    """x @ x.T, exact for small integers."""
    if x.dtype.kind == "b":
        return (x.astype(int) @ x.T.astype(int)) > 0
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.int64)
    return (wide @ wide.T).astype(x.dtype)


# ---- Shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_reshape_of_every_layout(device, rng, dtype):
    x = helpers.numbers(rng, (4, 6, 5), dtype)
    for layout, make in helpers.LAYOUTS.items():
        array = make(device, x)
        for shape in (
            (120,),
            (-1,),
            (24, 5),
            (4, -1),
            (2, 2, 3, 2, 5),
            (5, 6, 4),
            (1, 120, 1),
            (4, 30),
            (8, 15),
        ):
            assert_same(array.reshape(shape), x.reshape(shape), f"{layout} {shape}")
            assert_same(vg.reshape(array, shape), x.reshape(shape))
    assert_same(put(device, x).reshape(12, 10), x.reshape(12, 10))
    assert_same(put(device, x[:1, :1, :1]).reshape(()), x[0, 0, 0])


def test_reshape_is_a_view_where_it_can_be(device):
    base = vg.zeros((4, 6), device=device)
    base.reshape(2, 12)[1, 3] = 5.0
    base.reshape(24)[0] = 2.0
    base[:, :4].reshape(4, 2, 2)[3, 1, 1] = 7.0
    expected = np.zeros((4, 6), np.float32)
    expected[2, 3], expected[0, 0], expected[3, 3] = 5, 2, 7
    assert_same(base, expected)
    copied = base.T.reshape(24)
    copied[0] = -1.0
    assert_same(base, expected)
    assert base.reshape(24, copy=True) is not base
    with helpers.refused(device, ValueError, base, match="copy"):
        vg.reshape(base.T, (24,), copy=False)


def test_reshape_of_nothing(device):
    x = put(device, np.zeros((0, 3), np.float32))
    for shape in ((0,), (3, 0), (0, 7, 2), (-1, 3)):
        assert_same(x.reshape(shape), np.zeros((0, 3), np.float32).reshape(shape))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64"])
def test_many_tiles_of_short_axes(device, rng, dtype):
    """More of them than blocks: some blocks have several, others one less; parts at the ends."""
    for shape, order in (((7, 23, 5, 1111), (2, 0, 3, 1)), ((3, 331, 9, 95), (1, 0, 3, 2))):
        x = rng.integers(0, 100, shape).astype(dtype)
        assert_same(vg.permute_dims(put(device, x), order).copy(), x.transpose(order))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64"])
def test_kernels_of_copies(device, rng, dtype):
    """Which kernel copies what, however it is cut into tiles: no axis, one, two, or more."""
    for shape, order, kernel in (
        ((16, 16, 16, 16), (2, 0, 3, 1), "permute_kernel"),
        ((7, 23, 5, 1111), (2, 0, 3, 1), "permute_kernel"),
        ((3, 331, 9, 95), (1, 0, 3, 2), "permute_kernel"),
        ((300, 5, 7, 11), (3, 1, 0, 2), "permute_kernel"),
        ((5, 128, 192), (0, 2, 1), "transpose_kernel"),
        ((250, 383), (1, 0), "transpose_kernel"),
        ((40, 7, 300), (1, 0, 2), "rows_kernel" if dtype == "float64" else "joined_kernel"),
    ):
        x = rng.integers(0, 100, shape).astype(dtype)
        view, before = vg.permute_dims(put(device, x), order), launched(device, kernel)
        assert_same(view.copy(), x.transpose(order))
        assert launched(device, kernel) == before + 1, f"{kernel} of {shape}"


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_permutations(device, rng, dtype):
    x = helpers.numbers(rng, (2, 3, 4), dtype)
    array = put(device, x)
    for axes in itertools.permutations((0, 1, -1)):
        assert_same(vg.permute_dims(array, axes), np.transpose(x, axes))
    assert_same(array.T, x.T)
    assert_same(array.transpose(1, 0, 2), x.transpose(1, 0, 2))
    assert_same(vg.transpose(array), x.T)
    assert_same(put(device, x[0, 0, 0]).T, x[0, 0, 0])


def test_broadcast_to(device, rng):
    x = helpers.integers(rng, (3, 1), np.dtype(np.int32))
    array = put(device, x)
    for shape in ((3, 1), (3, 4), (2, 3, 4), (0, 3, 1), (5, 3, 0)):
        assert_same(vg.broadcast_to(array, shape), np.broadcast_to(x, shape))
    view = vg.broadcast_to(array, (3, 4))
    with helpers.refused(device, ValueError, array, match="read-only"):
        view[0, 0] = 1
    with helpers.refused(device, ValueError, array, match="read-only"):
        view[1:] = view[:-1]
    with helpers.refused(device, ValueError, array, match="read-only"):
        view += 1
    some = put(device, np.array([0, 2]))
    for change in (
        lambda: vg.put(view, some, 1),
        lambda: view.__setitem__(some, 1),
        lambda: vg.add.at(view, some, 1),
    ):
        with helpers.refused(device, ValueError, array, match="read-only"):
            change()
    for shape in ((4, 1), (3,), (3, 2, 2), ()):
        with helpers.refused(device, ValueError, array, match=r"\(3, 1\)|broadcast"):
            vg.broadcast_to(array, shape)


def test_expand_dims_and_squeeze(device, rng):
    x = helpers.integers(rng, (3, 1, 4), np.dtype(np.float32))
    array = put(device, x)
    for axis in (0, 1, 3, -1, -4):
        assert_same(vg.expand_dims(array, axis=axis), np.expand_dims(x, axis))
    assert_same(vg.squeeze(array), x.squeeze())
    assert_same(vg.squeeze(array, 1), x.squeeze(1))
    with helpers.refused(device, ValueError, array):
        vg.squeeze(array, 0)
    with helpers.refused(device, np.exceptions.AxisError, array):
        vg.expand_dims(array, axis=5)


# ---- Casts ---------------------------------------------------------------------------------------


def cast_reference(x, dtype):
    """As in C, but floats beyond an integer dtype's range are clamped and NaN gives 0."""
    if dtype == helpers.BFLOAT16:
        return helpers.rounded(x, dtype)
    x = helpers.widened(x)
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    info = np.iinfo(dtype)

    def one(value):
        if np.isnan(value):
            return 0
        return min(max(int(value), info.min), info.max) if np.isfinite(value) else clamp(value)

    def clamp(value):
        return info.max if value > 0 else info.min

    return np.array([one(v) for v in x.flat], dtype).reshape(x.shape)


@pytest.mark.parametrize("to", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_casts(device, rng, dtype, to):
    if dtype.kind == "c" and to.kind not in "bc":
        with helpers.refused(device, TypeError, match=f"no cast from {dtype} to {to}"):
            put(device, np.ones(3, dtype)).astype(to)
        return
    x = np.concatenate([helpers.specials(dtype), helpers.numbers(rng, 50, dtype)])
    if helpers.is_float(dtype):
        ends = [e for i in helpers.INTEGERS for e in (np.iinfo(i).min, np.iinfo(i).max)]
        near = np.array([e + d for e in map(float, ends) for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)])
        x = np.concatenate([x, near.astype(dtype), np.nextafter(near.astype(dtype), dtype.type(0))])
    with np.errstate(all="ignore"):
        expected = cast_reference(x, to)
    assert_same(put(device, x).astype(to), expected)
    assert_same(vg.astype(put(device, x), str(to)), expected)
    square = np.resize(x, (9, 7))
    with np.errstate(all="ignore"):
        expected = cast_reference(square, to)
    for name, make in helpers.LAYOUTS.items():
        assert_same(make(device, square).astype(to), expected, name)
    target = put(device, np.zeros((18, 7), to))
    target[::2] = put(device, square)
    assert_same(target[::2], expected)
    assert_same(target[1::2], np.zeros((9, 7), to))


def test_astype_without_a_copy(device):
    x = put(device, np.ones(3, np.float32))
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32") is not x
    assert x.to("float32") is x
    assert x.to(np.int64).dtype == np.int64
    for dtype in ("longdouble", "S3", object, "M8[s]", "nonsense", None):
        with helpers.refused(device, TypeError, x):
            x.astype(dtype)


# ---- Errors --------------------------------------------------------------------------------------


def test_shapes_that_make_no_sense(device):
    x = put(device, np.arange(6, dtype=np.float32))
    empty = put(device, np.zeros((0, 3), np.float32))
    for shape in ((4,), (7,), (-1, -1), (-1, 4), (-2, 3), (2, 3, 2), ()):
        with helpers.refused(device, ValueError, x, match=r"reshape|-1|negative"):
            x.reshape(shape)
    for shape in ((0, -1), (-1, 0), (1,), (5, -1, 0)):
        with helpers.refused(device, ValueError, empty):
            empty.reshape(shape)
    for shape in ((2.0, 3), ("6",), (True, 6), None):
        with helpers.refused(device, TypeError, x):
            vg.reshape(x, shape)


def test_axes_that_make_no_sense(device):
    x = put(device, np.zeros((2, 3), np.float32))
    for axes in ((0, 0), (1, -1), (0,), (0, 1, 0)):
        with helpers.refused(device, ValueError, x):
            vg.permute_dims(x, axes)
    for axes in ((0, 2), (-3, 1)):
        with helpers.refused(device, np.exceptions.AxisError, x):
            vg.permute_dims(x, axes)
    with helpers.refused(device, TypeError, x):
        vg.permute_dims(x, (0.0, 1))


@pytest.mark.parametrize("layout", helpers.LAYOUTS)
def test_flip(device, rng, layout):
    assert_same(vg.flip(put(device, np.float32(3))), np.float32(3))
    for shape in ((5,), (3, 0, 2), (2, 3, 4), (1, 7, 1)):
        a = helpers.integers(rng, shape, np.dtype(np.int32))
        x = helpers.LAYOUTS[layout](device, a)
        choices = [None, (), *range(-len(shape), len(shape)), tuple(range(len(shape)))]
        for axis in choices:
            assert_same(vg.flip(x, axis), np.flip(a, axis))
        if x.size:  # a view: what is written to it is seen through the other
            vg.flip(x)[...] = 7
            assert_same(x, np.full_like(a, 7))
    with helpers.refused(device, np.exceptions.AxisError, x):
        vg.flip(x, 3)
    with helpers.refused(device, ValueError, x):
        vg.flip(x, (0, 0))


MORE_ELEMENTWISE = {
    "nan_to_num": vg.nan_to_num,
    "clip": lambda x: vg.clip(x, 0, 1),
    "where": lambda x: vg.where(x > 0, x, x),
    "isclose": lambda x: vg.isclose(x, x),
    "round": lambda x: vg.round(x, 1),
    "astype": lambda x: vg.astype(x, "float64"),
}


@pytest.mark.devices("sim", "cuda")
@pytest.mark.parametrize("name", [*references.UNARY, *references.BINARY, *MORE_ELEMENTWISE])
def test_results_lie_as_their_operands(device, name):
    """As NumPy's do, so that what is read and written is memory from end to end."""
    x = np.ones((5, 3, 4), np.float32)
    for order in itertools.permutations(range(3)):
        dense = x.transpose(np.argsort(order)).copy()
        array = vg.permute_dims(put(device, dense), order)
        operands = (array, array) if name in references.BINARY else (array,)
        function = MORE_ELEMENTWISE.get(name) or references.lookup(name)
        try:
            y = function(*operands)
        except TypeError:  # not of floats
            y = function(*[vg.astype(one, "int32") for one in operands])
        wanted = np.positive(dense.transpose(order)).strides
        found = [n * x.itemsize // y.dtype.itemsize for n in y.strides]
        assert y.shape == x.shape and found == [*wanted], order


@pytest.mark.devices("sim", "cuda")
def test_a_large_cast_of_columns_moves_nothing_first(device, rng):
    """It lies as what is cast does, so that both are read and written from end to end."""
    x = put(device, rng.integers(-9, 9, (900, 1000)).astype("int8")).T
    vg.astype(x, "uint16")
    before = launches(device)
    y = vg.astype(x, "float32")
    assert launches(device) - before == 1
    assert_same(y, helpers.host(x).astype("float32"))


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_casting_of_astype(device, casting):
    """The casts that NumPy allows, between all dtypes that it has."""
    for start in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64"):
        x = put(device, np.ones(2, start))
        for end in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64"):
            if np.can_cast(start, end, casting):
                assert x.astype(end, casting=casting).dtype == end
            else:
                with pytest.raises(TypeError, match=f"{start} is not cast to {end} with casting"):
                    x.astype(end, casting=casting)
    assert put(device, np.array([[1, 2], [3, 4]], np.uint8)).tobytes("F") == b"\1\3\2\4"
