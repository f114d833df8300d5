"""Activations and losses of two arrays by kernels of their own: launches, bits, kinks, gradients.

Their values and gradients of every size and dtype are in sweep_losses.py and test_losses.c.
"""

import numpy as np
import pytest
from gradients import check, check_twice
from helpers import put

import pyvecgpu as vg
from pyvecgpu import dispatch

F = vg.nn.functional
RNG = np.random.default_rng(5)
LOSSES = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "huber": lambda x, t, reduction="mean": F.huber_loss(x, t, reduction, 0.7),
    "smooth": lambda x, t, reduction="mean": F.smooth_l1_loss(x, t, reduction, 0.7),
    "logits": lambda x, t, reduction="mean": F.binary_cross_entropy_with_logits(
        x, t, reduction=reduction
    ),
}
ACTIVATIONS = {
    "softplus": lambda x: F.softplus(x, 2.0, 1.5),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": lambda x: F.elu(x, 0.7),
    "relu": vg.relu,
    "sigmoid": vg.sigmoid,
    "tanh": vg.tanh,
    "gelu": F.gelu,
    "silu": F.silu,
}


def calls_of(compute):
    calls = []
    with dispatch.observe(lambda call: calls.append(call.method)):
        compute()
    return calls


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_one_call_each_way(device, name, dtype):
    x = put(device, RNG.normal(size=(4, 5)).astype(dtype)).requires_grad_()
    t = put(device, RNG.normal(size=(4, 5)).astype(dtype)).requires_grad_()

    def step():
        LOSSES[name](x, t).backward()

    assert calls_of(step) == ["pair_loss", "pair_loss_backward", "pair_loss_backward"]
    assert x.grad.dtype == dtype and t.grad.dtype == dtype
    one = LOSSES[name](x.detach(), t.detach(), reduction="none")
    assert one.dtype == ("float32" if dtype == "float16" else dtype)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_gradient_of_an_activation_is_one_call(device, name):
    x = put(device, RNG.normal(size=(4, 5)).astype(np.float32)).requires_grad_()
    g = put(device, RNG.normal(size=(4, 5)).astype(np.float32))
    y = ACTIVATIONS[name](x)
    assert calls_of(lambda: y.backward(g)) == ["activate_backward"]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_and_their_gradients(device, name, reduction):
    x, t = RNG.normal(size=(3, 4)) * 2, RNG.normal(size=(3, 4))
    loss = LOSSES[name]
    check(lambda x, t: loss(x, t, reduction=reduction), x, t, device=device)
    check(lambda x: loss(x, put(device, t.astype(np.float32)), reduction=reduction), x,
          device=device)  # fmt: skip
    check_twice(lambda x: loss(x, put(device, t), reduction=reduction), x, device=device)
    check_twice(lambda t: loss(put(device, x), t, reduction=reduction), t, device=device)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_of_activations(device, name):
    x = RNG.normal(size=(3, 4)) * 2
    check(ACTIVATIONS[name], x, device=device)
    check(lambda x: ACTIVATIONS[name](x.T), x, device=device)
    check_twice(ACTIVATIONS[name], x, device=device)


def slope(function, device, x, dtype="float32"):
    leaf = put(device, np.array(x, dtype)).requires_grad_()
    function(leaf).sum().backward()
    return leaf.grad.numpy().tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_kinks(device, dtype):
    zero = put(device, np.zeros(3, dtype))
    at = [-1.0, 0.0, 1.0]

    def of(function):
        return slope(function, device, at, dtype)

    assert of(lambda x: F.l1_loss(x, zero, "none")) == [-1.0, 0.0, 1.0]
    assert of(lambda x: F.smooth_l1_loss(x, zero, "none", beta=0.0)) == [-1.0, 0.0, 1.0]
    assert of(lambda x: F.smooth_l1_loss(x, zero, "none", beta=1e-300)) == [-1.0, 0.0, 1.0]
    assert of(lambda x: F.huber_loss(x, zero, "none", delta=1.0)) == [-1.0, 0.0, 1.0]
    assert of(lambda x: F.leaky_relu(x, 0.5)) == [0.5, 0.5, 1.0]
    assert of(vg.relu) == [0.0, 0.0, 1.0]
    assert of(lambda x: F.elu(x, 0.5))[1:] == [0.5, 1.0]
    assert of(lambda x: F.softplus(x, 1.0, 0.0))[1:] == [0.5, 1.0]


@pytest.mark.parametrize("name", LOSSES)
def test_nan_and_infinities(device, name):
    x = put(device, np.array([np.nan, np.inf, -np.inf, 1.0], np.float32))
    zero = put(device, np.zeros(4, np.float32))
    values = LOSSES[name](x, zero, reduction="none").tolist()
    assert np.isnan(values[0]) and np.isinf(values[1]) and np.isfinite(values[3])
    assert np.isnan(LOSSES[name](x, zero).item())
    slopes = slope(lambda x: LOSSES[name](x, zero, reduction="none"), device, x.numpy())
    assert np.isnan(slopes[0]) and not np.isnan(slopes[1:]).any()
    assert LOSSES[name](x[1:2], zero[1:2], reduction="sum").item() == np.inf


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_slopes_far_out(device, name, dtype):
    far = [np.nan, -np.inf, -1e4, 1e4, np.inf]
    slopes = slope(ACTIVATIONS[name], device, far, dtype)
    low = 0.1 if name == "leaky_relu" else 0.0
    high = 0.0 if name in ("sigmoid", "tanh") else 1.0
    assert np.isnan(slopes[0]) or name in ("leaky_relu", "relu")
    assert np.allclose(slopes[1:], [low, low, high, high], atol=1e-4)


@pytest.mark.parametrize("name", ["softplus", "elu"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_few_digits_are_right(device, name, dtype):
    """Every float16, or as many float32: relative errors, also of results near 0."""
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = bits[np.isfinite(bits)].astype(dtype)
    wide = x.astype(np.float64)
    wanted = {
        "softplus": np.where(wide > 20, wide, np.logaddexp(0, wide)),
        "elu": np.where(wide > 0, wide, np.expm1(np.minimum(wide, 0))),
    }[name]
    found = getattr(F, name)(put(device, x)).numpy().astype(np.float64)
    error = np.finfo(dtype).eps * np.abs(wanted) + 2 * float(np.finfo(dtype).smallest_subnormal)
    assert not np.any(~(np.abs(found - wanted) <= (0.6 if dtype == "float16" else 2.5) * error))


@pytest.mark.filterwarnings("ignore:mean of no elements")
@pytest.mark.parametrize("name", LOSSES)
def test_of_nothing_and_of_one(device, name):
    empty = put(device, np.zeros((0, 3), np.float32)).requires_grad_()
    assert np.isnan(LOSSES[name](empty, empty.detach()).item())
    assert LOSSES[name](empty, empty.detach(), reduction="sum").item() == 0.0
    assert LOSSES[name](empty, empty.detach(), reduction="none").shape == (0, 3)
    LOSSES[name](empty, empty.detach()).backward()
    assert empty.grad.shape == (0, 3)
    one = put(device, np.array(2.0)).requires_grad_()
    values = [LOSSES[name](one, put(device, np.array(0.5)), reduction=r) for r in
              ("mean", "sum", "none")]  # fmt: skip
    assert len({value.item() for value in values}) == 1 and values[2].shape == ()
    values[2].backward()
    assert one.grad.shape == ()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_mean_of_many(device, dtype):
    """Of a million elements as of a few: sums in float32 would be wrong by 1e-4 and more."""
    x = np.full(1 << 20, 0.1, dtype)
    found = F.mse_loss(put(device, x), put(device, np.zeros_like(x))).item()
    exact = float(np.float32(x[0]) ** 2)
    assert abs(found - exact) <= 1e-6 * exact


@pytest.mark.devices("sim", "cuda")
def test_a_sum_of_float64_keeps_what_rounding_drops(device):
    x = np.full(9_001, 0.5)
    x[0] = 1e8
    found = F.mse_loss(put(device, x), put(device, np.zeros_like(x)), reduction="sum").item()
    assert found == 1e16 + 2250.0  # a number that float64 has; its neighbours are 2 away


def test_bits_do_not_depend_on_the_place(device):
    x = RNG.normal(size=9_001).astype(np.float32)
    t = RNG.normal(size=9_001).astype(np.float32)
    found = set()
    for shift in range(4):
        room = put(device, np.concatenate([np.zeros(shift, np.float32), x]))
        for reduction in ("mean", "sum"):
            loss = F.smooth_l1_loss(room[shift:], put(device, t), reduction)
            found.add((reduction, loss.item()))
    assert len(found) == 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_number_of_no_axes_is_as_one_of_a_row(device, dtype):
    functions = [*ACTIVATIONS.values(), lambda x: F.leaky_relu(x, 2.0), lambda x: F.elu(x, 2.0)]
    for loss in (*LOSSES.values(), lambda x, t: F.smooth_l1_loss(x, t, beta=0.0)):
        functions += [lambda x, loss=loss: loss(x, put(device, np.full(x.shape, 0.5, dtype)))]
    for function in functions:
        for value in (-1.5, 0.25, 3.0):
            found = []
            for shape in ((), (1,)):
                x = put(device, np.full(shape, value, dtype)).requires_grad_()
                result = function(x)
                vg.sum(result).backward()
                assert x.grad.shape == shape and x.grad.dtype == dtype
                found.append((result.tolist() if shape == () else vg.sum(result).item(), x.grad))
            assert found[0][0] == found[1][0] and found[0][1].item() == found[1][1].item()


def test_other_dtypes(device):
    x, t = np.array([1, -2, 3]), np.array([0.5, 1.0, 2.0])
    for a, b in ((x, t), (t, x), (x.astype(bool), t), (t.astype(np.float16), t)):
        loss = F.mse_loss(put(device, a), put(device, b))
        assert loss.dtype == "float64"
        assert np.isclose(loss.item(), np.mean((a.astype(float) - b) ** 2))
    for name in ("softplus", "leaky_relu", "elu"):
        of_ints = getattr(F, name)(put(device, x))
        assert of_ints.dtype == vg.get_default_dtype()
        assert np.allclose(of_ints.numpy(), getattr(F, name)(x.astype(float)), atol=1e-6)
    mixed = put(device, t.astype(np.float16)).requires_grad_()
    F.mse_loss(mixed, put(device, t.astype(np.float32))).backward()
    assert mixed.grad.dtype == "float16"
