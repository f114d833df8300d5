"""Arrays from host values, Python values and nothing: dtypes, layouts, and what is refused.

Host inputs: any strides, byte order and alignment; the Array is a snapshot; no object pointers.
"""

import sys

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, FLOATS, INTEGERS, assert_same, put

import pyvecgpu as vg

# ---- Host arrays of any layout -------------------------------------------------------------------


def host_layouts(x):
    """NumPy arrays equal to x whose memory lies in every way that NumPy knows."""
    padded = np.full((*x.shape[:-1], x.shape[-1] + 3), helpers.poison(x.dtype), x.dtype)
    padded[..., 1:-2] = x
    doubled = np.repeat(np.repeat(x, 2, axis=0), 2, axis=-1)
    raw = np.zeros(x.nbytes + 1, np.uint8)
    misaligned = np.frombuffer(raw, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    misaligned[...] = x
    odd = np.lib.stride_tricks.as_strided(x.copy()[None], (1, *x.shape), (12345, *x.strides))[0]
    return {
        "C": np.ascontiguousarray(x),
        "Fortran": np.asfortranarray(x),
        "transposed": np.ascontiguousarray(x.T).T,
        "negative strides": np.ascontiguousarray(np.flip(x))[(slice(None, None, -1),) * x.ndim],
        "padded": padded[..., 1:-2],
        "every second": doubled[::2, ..., ::2],
        "misaligned": misaligned,
        "odd stride": odd,
    }


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(4, 7), (3, 4, 5), (1, 6), (70, 1)], ids=str)
def test_host_layouts(device, rng, shape, dtype):
    x = helpers.numbers(rng, shape, dtype)
    for name, source in host_layouts(x).items():
        before = source.tobytes()
        assert_same(put(device, source), x, name)
        assert source.tobytes() == before, f"the source has changed: {name}"
        target = vg.zeros(shape, dtype=dtype, device=device)
        target[...] = source
        assert_same(target, x, name)
    assert_same(
        put(device, np.broadcast_to(x[:1], (3, *shape[1:]))),
        np.broadcast_to(x[:1], (3, *shape[1:])),
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_length_one_axes_with_odd_strides(device, dtype):
    x = np.lib.stride_tricks.as_strided(np.ones(4, dtype), (1, 4, 1), (999, dtype.itemsize, -7))
    assert_same(put(device, x), np.ones((1, 4, 1), dtype))


def test_more_than_one_piece(device, rng):
    """Strided host memory goes through a buffer of some megabytes, piece by piece."""
    x = rng.integers(0, 256, (2100, 2200), np.uint8)
    assert_same(put(device, x[:, ::-1]), x[:, ::-1])
    assert_same(put(device, x)[:, ::-1].copy(), x[:, ::-1])


@pytest.mark.parametrize(
    "dtype", [d for d in ALL_DTYPES if d.itemsize > 1 and d.kind != "V"], ids=str
)
def test_byte_swapped(device, rng, dtype):
    x = helpers.numbers(rng, (5, 6), dtype)
    swapped = x.astype(dtype.newbyteorder())
    result = put(device, swapped)
    assert result.dtype == dtype and result.dtype.isnative
    assert_same(result, x)
    assert_same(put(device, swapped[::-1, ::2]), x[::-1, ::2])


def test_read_only_sources_are_read(device):
    x = np.arange(5, dtype=np.float32)
    x.flags.writeable = False
    array = put(device, x)
    array += 1
    assert_same(x, np.arange(5, dtype=np.float32))
    assert_same(array, x + 1)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_snapshot_of_the_source(device, rng, dtype):
    """The source may be changed, or freed, as soon as asarray has returned."""
    for shape in ((100_000,), (300, 301)):
        x = helpers.numbers(rng, shape, dtype)
        for source in (x.copy(), x.copy(order="F"), x[::-1].copy()[::-1]):
            array = put(device, source)
            source[...] = 0
            del source
            assert_same(array, x)


def test_results_on_the_host_are_copies(device):
    array = put(device, np.arange(3, dtype=np.float32))
    first = array.numpy()
    first[...] = 99
    assert_same(array, np.arange(3, dtype=np.float32))
    kept = array.numpy()
    del array
    assert_same(kept, np.arange(3, dtype=np.float32))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_bits_go_there_and_back(device, rng, dtype):
    """NaN payloads, -0.0 and subnormals, through copies, slices and transposes."""
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    top = np.iinfo(unsigned).max
    x = rng.integers(0, top, (40, 50), unsigned, endpoint=True)
    quiet = np.array(
        [1 << (8 * dtype.itemsize - 1), 1, top, top >> 1], unsigned
    )  # -0.0, subnormal, NaNs
    x[0, :4] = quiet
    x = x.view(dtype)
    array = put(device, x)
    assert array.numpy().tobytes() == x.tobytes()
    assert array.copy().numpy().tobytes() == x.tobytes()
    assert array.T.copy().numpy().tobytes() == x.T.tobytes()
    assert array[::2, ::-1].copy().numpy().tobytes() == x[::2, ::-1].tobytes()
    same = vg.where(vg.zeros(x.shape, dtype=bool, device=device), 0.0, array)
    assert same.numpy().tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_all_values_of_integers_survive(device, dtype):
    x = helpers.specials(dtype)
    assert_same(put(device, x), x)
    assert put(device, x).tolist() == x.tolist()


def test_bytes_that_are_no_bool(device):
    x = np.array([0, 1, 2, 128, 255], np.uint8).view(bool)
    for source in (x, x[::-1][::-1], np.repeat(x, 2)[::2]):
        array = put(device, source)
        assert array.numpy().view(np.uint8).tolist() == [0, 1, 1, 1, 1]
        assert helpers.host(vg.sum(array)) == 4
        assert (array == True).tolist() == [False, True, True, True, True]  # noqa: E712
    result = vg.where(x, np.ones(5, np.float32), np.zeros(5, np.float32), device=device)
    assert_same(result, np.array([0, 1, 1, 1, 1], np.float32))
    target = vg.zeros(5, dtype=bool, device=device)
    target[...] = x
    assert target.numpy().view(np.uint8).max() == 1


def test_memmap(device, tmp_path):
    np.arange(10, dtype=np.int32).tofile(tmp_path / "values")
    mapped = np.memmap(tmp_path / "values", np.int32, "r")
    assert_same(put(device, mapped[1:]), np.arange(1, 10, dtype=np.int32))


class Measured(np.ndarray):
    """A subclass that would show if the library computed with it, and not with its values."""

    def __array_finalize__(self, made_from):
        self.unit = getattr(made_from, "unit", "m")

    def __array_ufunc__(self, *_, **__):
        raise AssertionError("a ufunc of a subclass was used")


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_of_ndarray(device):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for source in (np.matrix(x), x.view(Measured), np.rec.array(x)):
        array = put(device, source)
        assert_same(array, x)
        assert type(array.numpy()) is np.ndarray
        assert_same(array * source, x * x)  # elementwise, also of a matrix
        target = vg.zeros((2, 3), device=device)
        target[...] = source
        assert_same(target, x)


class Interface:
    """An object that offers its memory by __array_interface__."""

    def __init__(self, **changes):
        self.values = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.__array_interface__ = self.values.__array_interface__ | changes


def test_the_array_interface(device):
    """NumPy reads it, and the values are copied; what it refuses is refused."""
    offered = Interface()
    array = put(device, offered)
    offered.values[...] = 9
    assert_same(array, np.arange(6, dtype=np.float32).reshape(2, 3))
    swapped = put(device, Interface(typestr=">f4", data=np.ones((2, 3), ">f4").tobytes()))
    assert_same(swapped, np.ones((2, 3), np.float32))
    for changes in (
        {"data": (0, False)},
        {"shape": (-2, 3)},
        {"shape": (2**62, 2**62)},
        {"shape": (2**64, 1)},
        {"typestr": "nonsense"},
        {"typestr": "|O8", "shape": (1, 3)},
        {"shape": None},
        {"data": ("nowhere", False)},
        {"strides": (4,)},
    ):
        with helpers.refused(device, *refusals_of(Interface(**changes))):
            put(device, Interface(**changes))


def refusals_of(offered):
    """The exception that numpy.asarray raises, or that an array of objects gets here."""
    try:
        values = np.asarray(offered)
    except (TypeError, ValueError, OverflowError) as error:
        return (type(error),)
    assert values.dtype == object, "NumPy takes it"
    return (TypeError,)


# ---- Host values that are refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()]), np.array(["text"]), np.array([b"bytes"]), np.zeros(1, "M8[D]"),
        np.array([1], "m8[s]"), np.zeros(2, [("a", "i4"), ("b", "f8")]), np.zeros(2, "V4"),
        np.zeros(2, np.longdouble), np.zeros(2, np.clongdouble), np.zeros(2, "V2"),
    ],
    ids=lambda value: str(value.dtype),
)  # fmt: skip
def test_dtypes_that_are_not_supported(device, value):
    with helpers.refused(device, TypeError, match=re_escape(value.dtype)):
        put(device, value)
    with helpers.refused(device, TypeError):
        vg.exp(value, device=device)
    with helpers.refused(device, TypeError):
        vg.zeros(2, dtype=value.dtype, device=device)
    target = vg.zeros(2, device=device)
    with helpers.refused(device, TypeError, target):
        target[...] = value


def re_escape(dtype):
    return str(dtype).translate({ord(c): "." for c in "[](){}<>|'"})


def test_masked_arrays_keep_their_mask(device):
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    with helpers.refused(device, TypeError, match="mask"):
        put(device, masked)
    with helpers.refused(device, TypeError, match="mask"):
        vg.exp(masked, device=device)


@pytest.mark.parametrize("value", [[[1, 2], [3]], [1, [2]], [[], [1]]], ids=str)
def test_ragged_lists(device, value):
    with helpers.refused(device, ValueError):
        put(device, value)


@pytest.mark.parametrize(
    "value",
    [None, "12", object(), {1: 2}, {1, 2}, [None], ["a"], [object()]],
    ids=lambda v: str(type(v)),
)
def test_values_that_are_no_numbers(device, value):
    with helpers.refused(device, TypeError):
        put(device, value)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_python_ints_out_of_range(device, dtype):
    info = np.iinfo(dtype)
    for value in (info.max + 1, info.min - 1, 2**200):
        for make in (
            lambda v: vg.asarray(v, dtype=dtype, device=device),
            lambda v: vg.asarray([0, v], dtype=dtype, device=device),
            lambda v: vg.full(3, v, dtype=dtype, device=device),
        ):
            with helpers.refused(device, OverflowError):
                make(value)
        array = vg.zeros(3, dtype=dtype, device=device)
        with helpers.refused(device, OverflowError, array):
            array[1] = value
    assert vg.asarray([info.min, info.max], dtype=dtype, device=device).tolist() == [
        info.min,
        info.max,
    ]


def test_python_ints_beyond_64_bits(device):
    for value in (2**64, -(2**63) - 1, [2**70]):
        with helpers.refused(device, OverflowError):
            put(device, value)
    assert put(device, 2**63).dtype == np.uint64


def test_python_ints_beyond_int64(device):
    """All digits of lists that uint64 holds; with negative ones float64, which NumPy gives."""
    large = 2**63 + 1
    for values, dtype in (
        ([large, 2**40 + 12345], np.uint64),
        ([[large], [0]], np.uint64),
        ([large, np.int64(4), True], np.uint64),
        ([large, -1], np.float64),
        ([large, 0.5], np.float32),
    ):
        assert_same(put(device, values), np.asarray(np.asarray(values, object), dtype))
    assert vg.asarray([large, 1], dtype="uint64", device=device).tolist() == [large, 1]
    assert_same(vg.asarray([large, 1], dtype="float64", device=device), np.array([2.0**63, 1]))
    for values, dtype in (([large, -1], "uint64"), ([large, 1], "int64"), ([large, 1.0], "int32")):
        with helpers.refused(device, OverflowError):
            vg.asarray(values, dtype=dtype, device=device)


def test_floats_that_an_integer_dtype_cannot_hold(device):
    array = vg.zeros(3, dtype=np.int32, device=device)
    for value in (1e30, float("nan"), float("inf")):
        with helpers.refused(device, OverflowError, array):
            array[...] = value
    array[...] = 2.75
    assert array.tolist() == [2, 2, 2]
    read_only = vg.broadcast_to(array[:1], (4,))
    for value in (1e30, float("nan"), 2**31, 2**70):  # of two mistakes the same one everywhere
        with helpers.refused(device, OverflowError, read_only):
            read_only[...] = value
    with helpers.refused(device, ValueError, read_only):
        read_only[...] = 1.0


# ---- Python values and defaults ------------------------------------------------------------------


def test_dtypes_of_python_values(device):
    assert put(device, 1.5).dtype == np.float32
    assert put(device, [1.5, 2]).dtype == np.float32
    assert put(device, 1).dtype == np.int64
    assert put(device, True).dtype == np.bool_
    assert put(device, [[True, False]]).shape == (1, 2)
    assert put(device, []).shape == (0,)
    assert put(device, np.float64(1.5)).dtype == np.float64
    assert vg.asarray([1, 2], dtype="float64", device=device).dtype == np.float64
    assert_same(put(device, [[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]]))


def test_default_dtype(device):
    assert vg.get_default_dtype() == np.float32
    vg.set_default_dtype("float64")
    try:
        assert put(device, 1.5).dtype == np.float64
        assert vg.zeros(2, device=device).dtype == np.float64
        assert vg.exp(put(device, [1, 2])).dtype == np.float64
        assert vg.mean(put(device, [1, 2])).dtype == np.float64
        assert (put(device, [1, 2]) / put(device, [3, 4])).dtype == np.float64
        assert (put(device, [1, 2]) * 0.5).dtype == np.float64
    finally:
        vg.set_default_dtype("float32")
    for dtype in ("int32", "float16", "bfloat16", None):
        with helpers.refused(device, TypeError):
            vg.set_default_dtype(dtype)
    assert vg.exp(put(device, [1, 2])).dtype == np.float32


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_filled_arrays(device, dtype):
    for shape in ((), 3, (0,), (2, 3), (1025,), (np.int64(2), 2)):
        for function, value in ((vg.zeros, 0), (vg.ones, 1)):
            assert_same(function(shape, dtype=dtype, device=device), np.full(shape, value, dtype))
        assert_same(vg.full(shape, True, dtype=dtype, device=device), np.full(shape, 1, dtype))
    x = put(device, np.zeros((2, 3), dtype))
    for like, value in ((vg.zeros_like(x), 0), (vg.ones_like(x), 1), (vg.full_like(x, 1), 1)):
        assert_same(like, np.full((2, 3), value, dtype))
        assert like.device is x.device
    made = vg.empty((2, 3), dtype=dtype, device=device)
    assert (made.shape, made.dtype) == ((2, 3), dtype)
    assert vg.empty_like(x, dtype="float32").dtype == np.float32


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_fill_over_layouts(device, dtype):
    for name, make in helpers.LAYOUTS.items():
        array = make(device, np.zeros((5, 9), dtype))
        array[...] = 1
        assert_same(array, np.ones((5, 9), dtype), name)
    whole = put(device, np.zeros(1200, dtype))
    whole[3:1100] = 1
    expected = np.zeros(1200, dtype)
    expected[3:1100] = 1
    assert_same(whole, expected)


def test_full_takes_the_dtype_of_its_value(device):
    assert vg.full(2, 1.5, device=device).dtype == np.float32
    assert vg.full(2, 1, device=device).dtype == np.int64
    assert vg.full(2, False, device=device).dtype == np.bool_
    assert vg.full(2, np.float64(1), device=device).dtype == np.float64
    with helpers.refused(device, TypeError):
        vg.full(2, "1", device=device)
    with helpers.refused(device, ValueError):
        vg.full(2, [1, 2, 3], device=device)


def test_arange(device):
    cases = [
        (5,),
        (2, 9),
        (9, 2, -2),
        (0,),
        (3, 1),
        (0, 1, 0.25),
        (1.5, 4),
        (-3, 3, 2),
        (10, 0, -3),
    ]
    for case in cases:
        dtype = np.float32 if any(isinstance(v, float) for v in case) else np.int64
        assert_same(vg.arange(*case, device=device), np.arange(*case, dtype=dtype))
    assert_same(vg.arange(5, dtype="uint8", device=device), np.arange(5, dtype=np.uint8))
    for bad in ((2**62,), (0, 10, 0), (0.0, float("inf")), (0, 1, float("nan")), (2**63, 2**64)):
        with helpers.refused(device, ValueError):
            vg.arange(*bad, device=device)
    assert_same(vg.arange(-0.5, 3, dtype="uint8", device=device), np.array([0, 0, 1, 2], np.uint8))
    for bad in ((0, 300, 20), (0.0, 300.0, 20.0), (256.0, 250.0, -1.5), (-1.0, 3.0)):
        with helpers.refused(device, OverflowError):
            vg.arange(*bad, dtype="uint8", device=device)


# ---- Between devices -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_to_and_back(device, rng, dtype):
    x = helpers.numbers(rng, (4, 5), dtype)
    array = put(device, x)
    assert array.to(device) is array
    assert array.to(array.device) is array
    on_cpu = array.cpu()
    assert str(on_cpu.device) == "cpu"
    assert_same(on_cpu, x)
    assert_same(on_cpu.to(device), x)
    assert_same(array.T.cpu(), x.T)
    assert_same(vg.asarray(array, device="cpu"), x)
    for target in ("tpu", "cuda:-1", "float99", "cpu:1"):
        with helpers.refused(device, ValueError, array):
            array.to(target)
    with helpers.refused(device, TypeError, array):
        array.to(None)


def test_asarray_of_an_array(device):
    array = put(device, [1, 2])
    assert vg.asarray(array) is array
    copied = vg.asarray(array, copy=True)
    copied[0] = 9
    assert array.tolist() == [1, 2]
    assert vg.array(array) is not array
    with helpers.refused(device, ValueError, array):
        vg.asarray(array, dtype="float32", copy=False)
    with helpers.refused(device, ValueError):
        vg.asarray([1], device=device, copy=False)


def test_refcounts_of_host_arrays(device):
    """No reference to the source stays behind, and none is lost."""
    x = np.arange(5, dtype=np.float32)
    before = sys.getrefcount(x)
    array = put(device, x[::-1])
    assert_same(array, x[::-1])
    assert sys.getrefcount(x) == before
