"""Dropout in one launch: the bits of its formula, and gradients by the same numbers."""

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.native.abi import Distribution

dropout = vg.nn.functional.dropout
SHAPES = [(), (0, 3), (1,), (5,), (7, 11), (1023,), (2048,), (3, 5, 137), (4099,)]
LAYOUTS = {"contiguous": put, "odd": helpers.shifted(1), "strided": helpers.stepped,
           "transposed": helpers.transposed, "reversed": helpers.reversed_}  # fmt: skip


def formula(x, p, device):
    """Numbers at or above p stay, larger; halves in float32, rounded once."""
    u = vg.random.random(x.shape, dtype="float32", device=device)
    wide = helpers.widened(x)
    with np.errstate(over="ignore"):
        scaled = wide * wide.dtype.type(1 / (1 - p) if p < 1 else 0)
        return np.where(u.numpy() >= np.float32(p), scaled, 0).astype(x.dtype)


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bits_of_the_formula(device, rng, dtype, layout):
    for shape in SHAPES:
        if shape == () and layout != "contiguous":
            continue
        x = rng.standard_normal(shape).astype(dtype)
        for p in (0.1, 0.5, 2 / 3, 1.0):
            vg.random.seed(31)
            expected = formula(x, p, device)
            after = vg.random.random(device=device)
            vg.random.seed(31)
            helpers.assert_same(dropout(LAYOUTS[layout](device, x), p), expected, f"{shape} {p}")
            assert vg.random.random(device=device) == after, "as many numbers are used"


def test_what_is_left_out_is_0(device):
    x = put(device, np.full(1000, np.nan, np.float32))
    vg.random.seed(3)
    y = dropout(x, 0.5).numpy()
    left = int((y == 0).sum())
    assert 400 < left < 600 and int(np.isnan(y).sum()) == 1000 - left
    assert dropout(x, 1.0).tolist() == [0.0] * 1000
    assert dropout(x, 0.0) is x and dropout(x, 0.5, training=False) is x


def test_integers(device):
    vg.random.seed(5)
    y = dropout(put(device, np.full(100, 3)), 0.5)
    assert y.dtype == vg.get_default_dtype() and set(y.tolist()) == {0.0, 6.0}


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_gradients_are_of_the_same_elements(device, dtype):
    x = put(device, np.ones((33, 70), dtype)).requires_grad_()
    vg.random.seed(9)
    y = dropout(x, 0.75)
    weight = put(device, np.arange(2310).reshape(70, 33).astype(dtype)).T  # not contiguous
    y.backward(weight)
    expected = helpers.widened(y.detach().numpy()) * helpers.widened(weight.numpy())
    helpers.assert_same(x.grad, expected.astype(dtype))


def test_second_gradients(device, rng):
    x = put(device, rng.standard_normal(50)).requires_grad_()
    vg.random.seed(2)
    y = dropout(x, 0.5)
    (slope,) = vg.autograd.grad((y**3).sum(), [x], create_graph=True)
    (second,) = vg.autograd.grad(slope.sum(), [x])
    stays = y.detach().numpy() != 0
    helpers.assert_within(second, np.where(stays, 6 * 8 * x.detach().numpy(), 0), 1e-12)


@pytest.mark.devices("sim", "cuda")
def test_launches(device):
    x = put(device, np.ones((128, 64), np.float32)).requires_grad_()
    vg.random.random(device=device)
    before = vg.counters(device)["launches"]
    y = dropout(x)
    assert vg.counters(device)["launches"] == before + 1
    seed = vg.ones_like(y)
    before = vg.counters(device)["launches"]
    y.backward(seed)
    assert vg.counters(device)["launches"] == before + 1


def test_a_number_that_is_p_itself(device):
    x, u = put(device, np.ones(40, np.float32)), put(device, np.zeros(40, np.float32))
    apply(x.backend, "random", u, Distribution.RANDOM_UNIFORM, 7, 8, 9)
    y = apply(x.backend, "dropout", x, u[11].item(), 7, 8, 9, None).numpy()
    assert y[11] > 1 and ((y == 0) == (u.numpy() < u[11].item())).all()


def test_counters_wrap(device):
    """The block's number goes on at 0, as pvg_random's."""
    x, u = put(device, np.ones(40, np.float32)), put(device, np.zeros(40, np.float32))
    place = 7, 2**64 - 1, 2**64 - 3
    apply(x.backend, "random", u, Distribution.RANDOM_UNIFORM, *place)
    y = apply(x.backend, "dropout", x, 0.5, *place, None)
    helpers.assert_same(y, np.where(u.numpy() >= 0.5, np.float32(2), np.float32(0)))


@pytest.mark.parametrize("count", [1, 5, 4099])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_that_are_renewed(device, dtype, count):
    """Numbers on the device are added to those of the call, and each wraps by itself."""
    x = vg.ones(count, dtype=dtype, device=device)
    given, added = (5, 2**64 - 1, 2**64 - 3), (2**63 + 1, 4, 2**63 + 9)
    numbers = put(device, np.array([9, *added, 9], np.uint64))[1:4]
    place = [(one + other) % 2**64 for one, other in zip(given, added, strict=True)]
    expected = apply(x.backend, "dropout", x, 0.5, *place, None).numpy()
    helpers.assert_same(apply(x.backend, "dropout", x, 0.5, *given, numbers), expected)
    for wrong, error in ((numbers[:2], ValueError), (numbers.astype("int64"), TypeError)):
        with pytest.raises(error, match="renewed numbers"):
            apply(x.backend, "dropout", x, 0.5, *given, wrong)


def test_refusals(device):
    x = put(device, np.ones(3, np.float32))
    for p in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="from 0"):
            dropout(x, p)
        with pytest.raises(ValueError, match="from 0 to 1"):
            apply(x.backend, "dropout", x, p, 0, 0, 0, None)
    with pytest.raises(TypeError):
        apply(x.backend, "dropout", put(device, np.ones(3, int)), 0.5, 0, 0, 0, None)
