"""The rows of operations.py: the C library has the same, and every device does what they say."""

import itertools
import warnings

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, put

import pyvecgpu as vg
from pyvecgpu.dtypes import CODES, promote, supported
from pyvecgpu.native import library
from pyvecgpu.operations import OPERATIONS, ROWS, Operation, result_dtype

FAMILIES = {"unary": range(1, 100), "binary": range(100, 200), "reduce": range(200, 300)}


def public(row):
    """The public function of a row."""
    return getattr(vg, row.name, None) or getattr(vg.nn.functional, row.name)


def rows_of(*families):
    return [pytest.param(row, id=row.name) for row in ROWS if row.family in families]


def takes(row, dtype):
    return supported(dtype).kind in row.domain


def test_every_operation_has_one_row():
    assert len(OPERATIONS) == len(Operation) - 1 == len(ROWS)
    for row in ROWS:
        assert row.code in FAMILIES.get(row.family, range(300, 400)), row.name
        assert row.result in ("same", "float", "bool", "real", "wide", "index", "none"), row.name
        assert row.domain and set(row.domain) <= set("buifc"), row.name
        assert (row.cpu is None) == (row.family == "other"), row.name
        assert row.order in (None, "largest", "smallest"), row.name
        assert row.slope is None or row.family == "unary", row.name


@pytest.mark.devices("sim", "cuda")
def test_the_library_has_the_same_rows(device):
    def text(row):
        identity, order = ("none" if fact is None else fact for fact in (row.identity, row.order))
        return f"{row.code} {row.name} {row.family} {row.domain} {row.result} {identity} {order}"

    lines = library.load(device).pvg_operations().decode().splitlines()
    assert sorted(lines) == sorted(text(row) for row in ROWS)


@pytest.mark.devices("sim", "cuda")
def test_the_library_takes_the_same_dtypes(device):
    loaded, kinds = library.load(device), {code: dtype.kind for dtype, code in CODES.items()}
    for code, dtype in itertools.product(range(-1, 1000), range(-1, 20)):
        expected = code in OPERATIONS and kinds.get(dtype, "?") in OPERATIONS[code].domain
        assert loaded.pvg_supports(code, dtype) == expected, (code, dtype)


@pytest.mark.parametrize("default", [vg.float32, vg.float64], ids=str)
@pytest.mark.parametrize("row", rows_of("unary", "reduce"))
def test_dtypes_of_one_operand(device, row, default):
    """Also where the default float is another, and halves are computed in a wider dtype."""
    vg.set_default_dtype(default)
    try:
        for dtype in ALL_DTYPES:
            x = put(device, np.ones((2, 3), dtype))
            if takes(row, dtype):
                assert public(row)(x).dtype == result_dtype(row, supported(dtype)), dtype
            else:
                with helpers.refused(device, TypeError, x, match=f"{row.name}.*{dtype}"):
                    public(row)(x)
    finally:
        vg.set_default_dtype(vg.float32)


@pytest.mark.parametrize("row", rows_of("binary"))
def test_dtypes_of_two_operands(device, row):
    for a, b in itertools.product(ALL_DTYPES, ALL_DTYPES):
        x, y = put(device, np.ones(3, a)), put(device, np.ones(3, b))
        dtype = promote(a, b)
        if takes(row, dtype):
            assert public(row)(x, y).dtype == result_dtype(row, dtype), (a, b)
        else:
            with helpers.refused(device, TypeError, x, y, match=row.name):
                public(row)(x, y)


@pytest.mark.parametrize("row", rows_of("binary"))
def test_dtypes_beside_a_scalar(device, row):
    """A weak bool leaves the array's dtype as it is."""
    for dtype in ALL_DTYPES:
        x = put(device, np.ones(3, dtype))
        if takes(row, dtype):
            assert public(row)(x, True).dtype == result_dtype(row, supported(dtype)), dtype
        else:
            with helpers.refused(device, TypeError, x, match=f"{row.name}.*{dtype}"):
                public(row)(x, True)


@pytest.mark.parametrize("row", rows_of("reduce"))
def test_reductions_of_nothing(device, row):
    """Without an identity there is no result; of a mean, whose sum has one, it is 0 / 0."""
    x = put(device, np.zeros((0, 2), np.float32))
    if row.identity is None:
        with helpers.refused(device, ValueError, x):
            public(row)(x, axis=0)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = public(row)(x, axis=0)
    expected = np.nan if row.result == "float" else row.identity
    dtype = np.bool_ if row.result == "bool" else np.float32
    helpers.assert_same(result, np.full(2, expected, dtype))


@pytest.mark.parametrize("row", rows_of("unary", "binary", "reduce"))
def test_operations_of_0_d_arrays(device, row):
    """What they give of one element along an axis, but for the axis."""
    for dtype in (dtype for dtype in ALL_DTYPES if takes(row, dtype)):
        x = put(device, np.array([3]).astype(dtype))
        operands = [x, x] if row.family == "binary" else [x]
        expected = public(row)(*operands).numpy().reshape(())
        scalars = [x.reshape(()) for x in operands]
        helpers.assert_same(public(row)(*scalars), expected)
        helpers.assert_same(public(row)(*[x[0] for x in operands]), expected)
        out = vg.empty((), dtype=expected.dtype, device=device)
        assert public(row)(*scalars, out=out) is out
        helpers.assert_same(out, expected)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS if row.order])
def test_what_picks_an_element_picks_that_one(device, row):
    x = np.array([3, -7, 9, 0], np.float32)
    pick = {"largest": np.argmax, "smallest": np.argmin}[row.order](x)
    expected = pick if row.result == "index" else x[pick]
    assert public(row)(put(device, x)).item() == expected


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS if row.ufunc])
def test_numpys_ufuncs_arrive(device, row):
    dtype = np.float32 if "f" in row.domain else np.int64
    x = put(device, np.array([[1, 2], [3, 4]], dtype))
    ufunc = getattr(np, row.ufunc)
    result = ufunc(*[x] * ufunc.nin)
    assert isinstance(result, vg.Array)
    helpers.assert_same(result, public(row)(*[x] * ufunc.nin).numpy())


def test_names_of_ufuncs():
    named = {row.name: row.ufunc for row in ROWS}
    assert named["abs"] == "absolute" and named["exp"] == "exp" and named["matmul"] == "matmul"
    assert named["relu"] is named["sum"] is named["where"] is None


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS if row.slope])
def test_slopes_are_derivatives(row):
    x = np.array([-3.0, -0.7, 0.4, 2.5])
    h = 1e-6
    difference = (row.cpu(x + h) - row.cpu(x - h)) / (2 * h)
    assert np.all(np.abs(row.slope(x) - difference) <= 1e-8)
