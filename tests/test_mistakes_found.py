"""What random calls have found (test_mistakes.py, fuzz.py, cuda/tests/fuzz.c), as small tests.

Each of these once gave another result, another kind of error on one device, or no end.
"""

import helpers
import numpy as np
import pytest
from helpers import host, put

import pyvecgpu as vg

F = vg.nn.functional
BEYOND = [2**63, 2**64 - 1]  # int64 holds none of them, and -1 is not meant


def ends(error, device, call):
    """The call, or the wait for what a card finds, ends with this error."""
    with pytest.raises(error):
        call()
        vg.synchronize(device) if device != "cpu" else None


@pytest.mark.parametrize("index", BEYOND)
def test_indices_beyond_int64_are_out_of_range(device, index):
    x = put(device, np.arange(6.0).reshape(2, 3))
    before = helpers.host(x)
    many = np.array([index], np.uint64)
    given = put(device, many)
    ends(IndexError, device, lambda: x[index])
    ends(IndexError, device, lambda: x[0, index])
    ends(IndexError, device, lambda: x.__setitem__(index, 1.0))
    ends(IndexError, device, lambda: vg.take(x, np.uint64(index)))
    ends(IndexError, device, lambda: vg.put(x, np.uint64(index), 1.0))
    for one in (many, given):
        ends(IndexError, device, lambda one=one: x[one])
        ends(IndexError, device, lambda one=one: x[:, one])
        ends(IndexError, device, lambda one=one: x.__setitem__(one, 1.0))
        ends(IndexError, device, lambda one=one: vg.take(x, one, axis=1))
        ends(IndexError, device, lambda one=one: vg.add.at(x, one, 1.0))
        ends(IndexError, device, lambda one=one: vg.take_along_axis(x, one.reshape(1, 1), 0))
    np.testing.assert_array_equal(helpers.host(x), before)


def test_indices_of_uint64_are_read_as_they_are(device):
    x = put(device, np.arange(12).reshape(4, 3))
    indices = np.array([3, 0, 3], np.uint64)
    for one in (indices, put(device, indices), put(device, np.repeat(indices, 2))[::2]):
        assert x[one].tolist() == x[[3, 0, 3]].tolist()
        assert vg.take(x, one - np.uint64(1) * (one > 2), axis=1).shape == (4, 3)
        y = x.copy()
        y[one] = 7
        assert y[:, 0].tolist() == [7, 3, 6, 7]


@pytest.mark.parametrize("value", [10**400, -3])
def test_an_index_is_looked_at_before_a_number(device, value):
    x = put(device, np.zeros((0, 3), np.uint16))
    ends(IndexError, device, lambda: x.__setitem__([0], value))


def test_shapes_are_looked_at_before_indices(device):
    x = put(device, np.zeros(3))
    indices, values = put(device, np.array([7, 1])), put(device, np.zeros((3, 0)))
    ends(ValueError, device, lambda: x.__setitem__(indices, values))
    ends(ValueError, device, lambda: vg.put_along_axis(x, indices, values, 0))
    empty = put(device, np.zeros((0, 2)))  # but of no elements there is none to be named
    ends(IndexError, device, lambda: empty.__setitem__(indices, values))


def test_derivatives_come_to_an_end(device):
    p = put(device, np.array([1.0, 2.0, 3.0]))
    for m in (3, 4, 2**63, 10**400):
        assert vg.polyder(p, m).shape == (0,)
    assert vg.polyder(p, 2).tolist() == [2.0]


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64", "int8", "float32", "bool"])
def test_edges_are_in_order(device, dtype):
    """A difference of unsigned numbers is never negative."""
    x = put(device, np.array([0, 1]))
    edges = np.array([0, 3, 2] if dtype != "bool" else [0, 1, 0]).astype(dtype)
    for bins in (edges, put(device, edges)):
        ends(ValueError, device, lambda bins=bins: vg.digitize(x, bins))
        ends(ValueError, device, lambda bins=bins: vg.histogram(x, bins))
        ends(ValueError, device, lambda bins=bins: vg.histogram_bin_edges(x, bins))
    falling = np.array([3, 2, 0] if dtype != "bool" else [1, 0, 0]).astype(dtype)
    expected = np.digitize(np.array([0, 1]), falling.astype(np.int64))
    assert vg.digitize(x, falling).tolist() == expected.tolist()


def test_a_number_is_not_enough(device):
    x = put(device, np.ones((2, 3)))
    for one in (0.5, 1j, True, None):
        ends(TypeError, device, lambda one=one: vg.histogram(one, 3, weights=x))
        ends(TypeError, device, lambda one=one: vg.histogram_bin_edges(one, 3, weights=x))
        ends(TypeError, device, lambda one=one: F.huber_loss(x, one))
        ends(TypeError, device, lambda one=one: F.mse_loss(one, x))
        ends(TypeError, device, lambda one=one: F.scaled_dot_product_attention(x, x, one))
        ends(TypeError, device, lambda one=one: F.binary_cross_entropy_with_logits(x, one))
        ends(TypeError, device, lambda one=one: F.cross_entropy(one, x))
        ends(TypeError, device, lambda one=one: F.embedding(one, x))
        short = TypeError if one is None else ValueError  # normalized_shape has an axis
        ends(short, device, lambda one=one: F.layer_norm(one, 3))
        ends(TypeError, device, lambda one=one: F.conv1d(one, x))
    assert F.layer_norm(x, 3, None, None).shape == (2, 3)


def test_nothing_is_repeated_a_negative_number_of_times(device):
    for n in (0, 2):
        ends(ValueError, device, lambda n=n: vg.repeat(put(device, np.zeros(n)), -3))
        ends(ValueError, device, lambda n=n: vg.repeat(put(device, np.zeros((n, 2))), -1, axis=0))


def test_pieces_by_conditions_of_a_device(device):
    x = np.array([1.0, -2.0, 3.0])
    for conditions in (put(device, x > 0), [put(device, x > 0)]):
        found = vg.piecewise(x, conditions, [10.0, 20.0])
        assert found.tolist() == [10.0, 20.0, 10.0]
        assert str(found.device).startswith(device)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int32"])
@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_whole_numbers_beyond_every_dtype(device, dtype, number):
    x = put(device, np.ones(2, dtype))
    for call in (lambda a: a + number, lambda a: number * a, lambda a: vg.where(a != 0, a, number)):
        with pytest.raises(OverflowError):
            call(x)
    if dtype == "int32":
        assert (x > number).tolist() == 2 * [number < 0]


def test_arguments_of_other_kinds(device):
    x = put(device, np.ones((2, 2)))
    with pytest.raises(TypeError):
        vg.count_nonzero(x, device=x)
    with pytest.raises(TypeError, match="takes arrays, not dict"):
        vg.tril_indices_from({}, x)
    with vg.device(device):
        assert vg.mean(5, where=np.True_).item() == 5
        assert vg.mean(5, where=vg.asarray(True)).item() == 5


def test_values_that_were_others(device):
    """Points that are there twice, a lone NaN, the order of bytes, lists of nothing."""
    points, values = [0.0, 1.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0]
    x = [-1.0, 0.0, 1.0, 1.5, 2.0, 3.0]
    found = vg.interp(
        put(device, np.array(x)), *(put(device, np.array(v)) for v in (points, values))
    )
    assert np.array_equal(host(found), np.interp(x, points, values))
    found = vg.interp(
        put(device, np.zeros(1)), *(put(device, np.array(v)) for v in (3 * [0.0], [1.0, 2, 3]))
    )
    assert found.item() == np.interp(0, 3 * [0.0], [1.0, 2, 3])
    assert np.isnan(vg.nanstd(put(device, np.array(np.nan))).item())
    a = np.arange(6, dtype=np.uint8).reshape(2, 3)
    for order in ("C", "F", "A"):
        assert put(device, a).T.tobytes(order) == a.T.tobytes(order)
    with vg.device(device):
        assert vg.asarray([np.zeros(0, np.uint32), np.zeros(0, np.float32)]).shape == (2, 0)


def test_more_arguments_of_other_kinds(device):
    x = put(device, np.array([1, 2, 2], np.uint32))
    with pytest.raises(ValueError, match="ambiguous"):
        vg.unique(x, equal_nan=x)
    with pytest.raises(ValueError, match="out has shape"):
        vg.choose(put(device, np.array([0, 1])), (1,), put(device, np.zeros((3, 0), np.int64)))
    vg.synchronize(device) if device != "cpu" else None
    with vg.device(device):
        assert vg.nan_to_num(-1, nan=vg.zeros(2)).item() == -1
        assert (
            vg.nanvar(3.0, mean=vg.zeros(())).item() == vg.var(3.0, mean=vg.zeros(())).item() == 9
        )
    with pytest.raises(TypeError, match="out is an Array"):
        vg.choose(put(device, np.array([0, 9])), (1, 2), (-1,))
    for posinf in (None, x):
        with pytest.raises(TypeError, match=r"a number for NaN is .* not NoneType"):
            vg.nan_to_num(put(device, np.ones(3)), True, None, posinf)
    for dimensions, message in ((70, "at most 32 dimensions"), (25, "is too big")):
        with pytest.raises(ValueError, match=message):
            vg.histogramdd(put(device, np.ones((2, dimensions))))
    with pytest.raises(TypeError):
        vg.trace(put(device, np.ones((2, 3))), 0, False)
