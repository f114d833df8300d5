"""Orders of elements: ravel, reshape and flatten by "C", "F", "A" and "K"; item(*index)."""

import itertools

import numpy as np
import pytest
from helpers import put, refused

import pyvecgpu as vg

SHAPES = [(), (3,), (2, 3), (2, 3, 4), (0, 2)]


def laid_out(device, shape):
    """Yield (an Array, the same of NumPy) by every order of axes, forwards and backwards."""
    for order in itertools.permutations(range(len(shape))):
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        for step in (1, -1):
            pair = put(device, x).transpose(order), x.transpose(order)
            yield [one[::step] if x.ndim else one for one in pair]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_order_of_every_layout(device, shape):
    for array, x in laid_out(device, shape):
        for order in "CFAKcf":
            what = f"{x.shape}, {x.strides}, {order}"
            if order != "c":  # only what is not C is looked at
                assert vg.ravel(array, order).tolist() == x.ravel(order).tolist(), what
                assert array.flatten(order).tolist() == x.flatten(order).tolist(), what
            if order == "K":
                continue
            for new in {x.shape, (x.size, 1), x.shape[::-1], (-1,) if x.size else (0, 5)}:
                wanted = np.reshape(x, new, order=order)
                assert vg.reshape(array, new, order).tolist() == wanted.tolist(), (what, new)
                assert array.reshape(*new, order=order).shape == wanted.shape


def test_views_and_copies(device):
    x = put(device, np.arange(6).reshape(2, 3))
    x.T.ravel("F")[0] = 9  # lies in Fortran order: a view
    assert x[0, 0].item() == 9
    x.flatten("F")[0] = 7
    vg.reshape(x.T, (6,), "F", copy=True)[0] = 7
    assert x[0, 0].item() == 9
    with refused(device, ValueError, x, match="copy is False"):
        vg.reshape(x, (6,), "F", copy=False)


def test_one_element(device):
    values = np.arange(6).reshape(2, 3)
    x = put(device, values)
    for index in ((0,), (5,), (-1,), (0, 1), ((1, 2),), (-1, -2), (np.int8(3),)):
        assert x.item(*index) == values.item(*index) and type(x.item(*index)) is int
    assert x[1].item(2) == 5 and put(device, np.array(2.5)).item(0) == 2.5
    for index, error in (((6,), IndexError), ((-7,), IndexError), ((0, 3), IndexError),
                         ((0, 1, 1), ValueError), ((1.5,), TypeError),
                         ((), ValueError)):  # fmt: skip
        with refused(device, error, x):
            x.item(*index)


def test_what_is_refused(device):
    x = put(device, np.ones((2, 3)))
    for order in ("X", "", "CF", None, 1):
        for call in (vg.ravel, lambda one, order: vg.reshape(one, -1, order)):
            with refused(device, ValueError, x, match="order"):
                call(x, order)
    with refused(device, ValueError, x, match="order"):
        vg.reshape(x, -1, "K")


def test_several_arrays(device):
    x = put(device, np.arange(3))
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        ours, numpys = getattr(vg, name), getattr(np, name)
        found = ours(x, np.ones((2, 2)), [1, 2])
        wanted = numpys(x.numpy(), np.ones((2, 2)), [1, 2])
        assert [one.shape for one in found] == [one.shape for one in wanted]
        assert [type(one) for one in found] == [vg.Array, np.ndarray, vg.Array]
        assert ours(x).shape == numpys(x.numpy()).shape and ours() == ()


def test_einsum_by_numbers(device):
    a, b = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    x, y = put(device, a), put(device, b)
    for arguments in ((0, [0, 1], 1, [1], [0]), (0, [1, 0]), (0, [..., 1], [...]), (0, [30, 2]),
                      (0, [0, 1], 0, [2, 1], [2, 0]), (1, (3,), 1, (3,))):  # fmt: skip
        ours, numpys = (
            [pair[one] if type(one) is int else one for one in arguments]
            for pair in ((x, y), (a, b))
        )
        assert np.array_equal(vg.einsum(*ours).numpy(), np.einsum(*numpys)), arguments
    for arguments, error in (((x, [52, 0]), ValueError), ((x, [0, -1]), ValueError),
                             ((x, [0, 1.5]), TypeError), ((x, "ij"), TypeError), ((x,), TypeError),
                             ((x, [0]), ValueError)):  # fmt: skip
        with refused(device, error, x):
            vg.einsum(*arguments)
