"""Mixed precision: which function casts what, for how long, and what training makes of it."""

import threading

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.dispatch import observe
from pyvecgpu.functions import casting
from pyvecgpu.nn import functional

HALVES = ("bfloat16", "float16")
ROWS = (4, 6)

# Calls of every function that casts, of arrays x of ROWS.
NARROW = {
    "matmul": lambda x: x @ x.T,
    "dense": lambda x: vg.dense(x, x, x[:, 0], "relu"),
    "vecdot": lambda x: vg.vecdot(x, x),
    "inner": lambda x: vg.inner(x, x),
    "outer": lambda x: vg.outer(x[0], x[0]),
    "dot": lambda x: vg.dot(x, x.T),
    "tensordot": lambda x: vg.tensordot(x, x.T, axes=1),
    "einsum": lambda x: vg.einsum("ij,kj->ik", x, x),
    "conv1d": lambda x: functional.conv1d(x[None], x[:, :, None][:, :4]),
    "conv2d": lambda x: functional.conv2d(x[None, None], x[None, None, :2, :2]),
    "scaled_dot_product_attention": lambda x: functional.scaled_dot_product_attention(x, x, x),
}
LABELS = (0, 5, 2, 1)
WIDE = {
    "pow": lambda x: x**3,
    "logaddexp": lambda x: vg.logaddexp(x, x),
    "vector_norm": lambda x: vg.linalg.vector_norm(x),
    "layer_norm": lambda x: functional.layer_norm(x, ROWS[1:]),
    "group_norm": lambda x: functional.group_norm(x, 2),
    "rms_norm": lambda x: functional.rms_norm(x, ROWS[1:]),
    "nll_loss": lambda x: functional.nll_loss(x, vg.asarray(LABELS, device=x.device)),
    "cross_entropy": lambda x: functional.cross_entropy(x, vg.asarray(LABELS, device=x.device)),
    "cumulative_sum": lambda x: vg.cumulative_sum(x, axis=0),
    "cumulative_prod": lambda x: vg.cumulative_prod(x, axis=0),
    "softplus": functional.softplus,
}
OF_TWO = ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits")
WIDE |= {name: lambda x, name=name: getattr(functional, name)(x, x) for name in OF_TWO}
WIDE |= {name: getattr(vg, name) for name in casting.WIDE - set(WIDE)}
AS_GIVEN = {
    "+": lambda x: x + x,
    "*": lambda x: x * 2.0,
    "relu": vg.relu,
    "max": vg.max,
    "mean": vg.mean,
    "sqrt": vg.sqrt,
    "concat": lambda x: vg.concat([x, x]),
}


def rows(device, dtype="float32"):
    return vg.astype(put(device, np.random.default_rng(3).uniform(0.25, 0.75, ROWS)), dtype)


def test_every_function_that_casts_is_called_here():
    assert NARROW.keys() == casting.NARROW
    assert WIDE.keys() == casting.WIDE


@pytest.mark.parametrize("half", HALVES)
def test_products_are_narrow(device, half):
    for name, function in NARROW.items():
        for given in ("float32", *HALVES):
            with vg.autocast(dtype=half):
                result = function(rows(device, given))
            assert result.dtype == half, (name, given)
            plain = function(rows(device, given).astype(half))
            helpers.assert_same(result.numpy(), plain.numpy(), name)


@pytest.mark.parametrize("half", HALVES)
def test_what_loses_too_much_is_wide(device, half):
    for name, function in WIDE.items():
        given = rows(device, half)
        with vg.autocast(dtype=half):
            result = function(given)
        assert result.dtype == vg.float32, name
        helpers.assert_same(result.numpy(), function(given.astype("float32")).numpy(), name)


def test_all_else_computes_in_what_it_is_given(device):
    for name, function in AS_GIVEN.items():
        for given in ("float32", "float64", *HALVES):
            with vg.autocast():
                assert function(rows(device, given)).dtype == given, (name, given)


def test_who_is_not_asked(device):
    for name, function in (NARROW | WIDE).items():
        with vg.autocast():
            assert function(rows(device, "float64")).dtype == vg.float64, name
    for name, function in NARROW.items():
        plain, elsewhere = function(rows(device)), "sim" if device == "cpu" else "cpu"
        for context in (vg.autocast(enabled=False), vg.autocast(elsewhere)):
            with context:
                helpers.assert_same(function(rows(device)).numpy(), plain.numpy(), name)
        with vg.autocast(), vg.autocast(enabled=False):
            assert function(rows(device)).dtype == vg.float32, name
    with vg.autocast():
        x = rows(device)
        assert (x @ vg.astype(x.T, "float64")).dtype == vg.float64
        assert vg.sum(vg.ones(3, dtype="int8", device=device)).dtype == vg.int64
        out = vg.empty((4, 4), device=device)
        assert vg.matmul(x, x.T, out=out) is out
    helpers.assert_same(out.numpy(), vg.matmul(x, x.T).numpy(), "out")


def test_numpy_in_numpy_out():
    ones = np.ones((2, 2), "float32")
    with vg.autocast():
        assert vg.matmul(ones, ones).dtype == np.float32


def test_contexts_end(device):
    with pytest.raises(ValueError, match="size 1"), vg.autocast():
        vg.ones(2).item()
    assert not casting.active
    assert not vg.amp.is_autocast_enabled()
    found = []
    with vg.autocast():
        assert vg.amp.is_autocast_enabled()
        with vg.autocast(dtype="float16"):
            assert vg.matmul(rows(device), rows(device).T).dtype == vg.float16
        assert vg.matmul(rows(device), rows(device).T).dtype == vg.bfloat16
        other = threading.Thread(
            target=lambda: found.append(vg.matmul(rows(device), rows(device).T).dtype)
        )
        other.start()
        other.join()
    assert found == [vg.float32]

    @vg.autocast(device_type=device.type if isinstance(device, vg.Device) else device)
    def product(x):
        return x @ x.T

    assert product(rows(device)).dtype == vg.bfloat16
    assert not casting.active
    for wrong in ("float32", "int8"):
        with pytest.raises(ValueError, match="bfloat16 or float16"):
            vg.autocast(dtype=wrong)
    with pytest.raises(ValueError, match="device_type"):
        vg.autocast("gpu")


def casts_of(compute):
    """How often what compute() does casts an array to another dtype."""
    seen = []
    with observe(seen.append):
        compute()
    return sum(
        call.method == "cast" and call.inputs["a"].dtype != call.results[0].dtype for call in seen
    )


def test_a_parameter_is_cast_once_until_it_changes(device):
    weight = rows(device).requires_grad_()
    x = vg.ones((2, 6), dtype="bfloat16", device=device)

    def twice():
        return vg.dense(x, weight).sum() + vg.dense(x, weight).sum()

    with vg.autocast():
        assert casts_of(twice) == 1 + 2  # the weight, and what is summed
        assert casts_of(twice) == 2
        with vg.no_grad():
            assert casts_of(twice) == 1 + 2, "one without gradients is another"
            weight += 1.0
            assert casts_of(twice) == 1 + 2, "it has changed"
        twice().backward()  # the cast's gradient is released
        twice().backward()
    with vg.autocast(cache_enabled=False):
        assert casts_of(twice) == 2 + 2
    assert weight.grad.dtype == vg.float32
    helpers.assert_same(weight.grad.numpy(), np.full(ROWS, 2.0 * 2 * 2, "float32"), "")


def test_gradients_have_the_dtypes_of_the_forward_pass(device):
    x = rows(device)

    def gradient(inside):
        weight = rows(device).requires_grad_()
        with vg.autocast():
            loss = (vg.tanh(x @ weight.T) ** 2).sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        assert weight.grad.dtype == vg.float32
        return weight.grad.numpy()

    within, outside = gradient(True), gradient(False)
    helpers.assert_same(within, outside, "nothing is cast on the way back")
    a, w = x.numpy().astype("float64"), rows(device).numpy().astype("float64")
    t = np.tanh(a @ w.T)
    exact = (2 * t * (1 - t * t)).T @ a
    assert not np.max(np.abs(within - exact)) > 2e-2 * np.max(np.abs(exact))
    assert np.any(within != exact.astype("float32")), "it was computed in bfloat16"


def test_a_checkpoint_computes_again_as_before(device):
    def gradients(wrapped):
        weight, x = rows(device).requires_grad_(), rows(device)
        with vg.autocast():
            loss = wrapped(lambda w: vg.sum(x @ w.T))(weight)
        with vg.autocast(dtype="float16"):
            loss.backward()
        return weight.grad.numpy()

    helpers.assert_same(gradients(vg.checkpoint), gradients(lambda f: f), "")


# Scaled losses ------------------------------------------------------------------------------------


def stepping(device, gradient, **options):
    """An optimiser of one weight with a gradient, scaled, and its scaler."""
    scaler = vg.amp.GradScaler(**options)
    weight = put(device, np.array([1.0, 2.0], "float32")).requires_grad_()
    weight.grad = vg.asarray(gradient, dtype="float32", device=device) * scaler.get_scale()
    return weight, vg.optim.SGD([weight], lr=0.5), scaler


def test_a_step_is_that_of_the_unscaled_gradient(device):
    weight, optimiser, scaler = stepping(device, [1.0, -2.0], init_scale=2.0**10)
    scaler.unscale_(optimiser)
    assert weight.grad.tolist() == [1.0, -2.0]
    scaler.step(optimiser)
    scaler.update()
    assert (weight.tolist(), scaler.get_scale()) == ([0.5, 3.0], 2.0**10)


@pytest.mark.devices("sim", "cuda")
def test_launches_of_unscaling(device):
    """Three, however many gradients there are, and one wait for the answer; in place."""
    params = [put(device, np.ones(n, np.float32)).requires_grad_() for n in range(1, 30)]
    for p in params:
        p.grad = vg.full_like(p, 2.0)
    before, kept = vg.counters(device), [p.grad for p in params]
    scaler = vg.amp.GradScaler(init_scale=4.0)
    scaler.unscale_(vg.optim.SGD(params))
    after = vg.counters(device)
    assert (after["launches"] - before["launches"], after["waits"] - before["waits"]) == (3, 1)
    assert all(p.grad is g and g.tolist() == [0.5] * g.size for p, g in zip(params, kept))  # noqa: B905


@pytest.mark.parametrize("bad", (float("inf"), float("-inf"), float("nan")))
def test_what_is_not_finite_is_left_out(device, bad):
    for place in (0, 1):
        gradient = [1.0, 1.0]
        gradient[place] = bad
        weight, optimiser, scaler = stepping(device, gradient, backoff_factor=0.25)
        assert scaler.step(optimiser) is None
        scaler.update()
        assert weight.tolist() == [1.0, 2.0]
        assert scaler.get_scale() == 65536.0 / 4
        assert not optimiser.state[weight]


def test_the_scale_grows_and_goes_on(device):
    weight, optimiser, scaler = stepping(device, [0.0, 0.0], init_scale=4.0, growth_interval=3)
    scales = []
    for step in range(8):
        bad = float("nan") if step == 4 else 0.0
        weight.grad = vg.full(2, bad, dtype="float32", device=device)
        scaler.step(optimiser)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [4, 4, 8, 8, 4, 4, 4, 8]
    other = vg.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    scaler.update(new_scale=3.0)
    assert scaler.get_scale() == 3.0
    largest = vg.amp.GradScaler(init_scale=1.7e308, growth_interval=1)
    weight.grad = vg.zeros(2, device=device)
    largest.step(optimiser)
    largest.update()
    assert largest.get_scale() == 1.7e308


def test_several_optimisers_and_what_is_scaled(device):
    first, optimiser, scaler = stepping(device, [1.0, 1.0])
    second = put(device, np.array([5.0], "float32")).requires_grad_()
    other = vg.optim.SGD([second], lr=1.0)
    second.grad = vg.full(1, float("inf"), dtype="float32", device=device)
    scaler.step(optimiser)
    scaler.step(other)
    scaler.update()
    assert (first.tolist(), second.tolist(), scaler.get_scale()) == ([0.5, 1.5], [5.0], 32768.0)
    a, (b, c) = scaler.scale((vg.ones(1, device=device), [vg.ones(1), vg.zeros(1)]))
    assert (a.tolist(), b.tolist(), c.tolist()) == ([32768.0], [32768.0], [0.0])


def test_what_comes_in_the_wrong_order(device):
    weight, optimiser, scaler = stepping(device, [1.0, 1.0])
    with pytest.raises(RuntimeError, match="update comes after step"):
        scaler.update()
    scaler.unscale_(optimiser)
    with pytest.raises(RuntimeError, match="already"):
        scaler.unscale_(optimiser)
    scaler.step(optimiser)
    with pytest.raises(RuntimeError, match="before step"):
        scaler.unscale_(optimiser)
    with pytest.raises(RuntimeError, match="already"):
        scaler.step(optimiser)
    scaler.update()
    weight.grad = None
    with pytest.raises(RuntimeError, match="no gradients"):
        scaler.step(optimiser)
    for options in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"init_scale": 0.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            vg.amp.GradScaler(**options)


def test_one_that_is_not_enabled_does_nothing(device):
    weight, optimiser, scaler = stepping(device, [1.0, 1.0], enabled=False)
    loss = vg.ones(1, device=device)
    assert scaler.scale(loss) is loss
    scaler.unscale_(optimiser)
    scaler.step(optimiser)
    scaler.update()
    assert (weight.tolist(), scaler.get_scale(), scaler.state_dict()) == ([0.5, 1.5], 1.0, {})
    scaler.load_state_dict({})
    with pytest.raises(RuntimeError, match="not enabled"):
        vg.amp.GradScaler().load_state_dict({})
    state = vg.amp.GradScaler(init_scale=3.0).state_dict()
    for name in state:
        for wrong, message in (
            ({n: x for n, x in state.items() if n != name}, f"missing: \\['{name}'\\]"),
            ({name: 3.0}, "not of a GradScaler; missing"),
            ({**state, name: "x"}, "x"),
        ):
            scaler = vg.amp.GradScaler(init_scale=8.0)
            before = scaler.state_dict()
            with pytest.raises(ValueError, match=message):
                scaler.load_state_dict(wrong)
            assert scaler.state_dict() == before


# Training -----------------------------------------------------------------------------------------


def network(device):
    vg.random.seed(1)
    layers = [vg.nn.Linear(2, 16), vg.nn.Tanh(), vg.nn.Linear(16, 3)]
    net = vg.nn.Sequential(*layers).to(device)
    x = np.random.default_rng(4).standard_normal((60, 2)).astype("float32")
    labels = (x[:, 0] > 0) + 1 * (x[:, 1] > 0)
    return net, (put(device, x), put(device, labels))


def trained(device, epochs, autocast, **options):
    net, data = network(device)
    optimiser = vg.optim.Adam(net.parameters(), lr=0.05)
    loss = vg.nn.CrossEntropyLoss()
    common = {"epochs": epochs, "progress": False, "clip_norm": 5.0, "seed": 7, "batch_size": 20}
    history = vg.nn.fit(net, data, loss, optimiser, autocast=autocast, **common, **options)
    assert {p.dtype for p in net.parameters()} == {vg.float32}
    return history["loss"], [helpers.bits(p.detach()) for p in net.parameters()]


def test_fit_in_halves_learns_what_float32_does(device):
    losses = {kind: trained(device, 12, kind)[0] for kind in (None, *HALVES)}
    for kind in HALVES:
        assert losses[kind] != losses[None]
        assert not losses[kind][-1] > 0.5 * losses[kind][0]
        assert not max(abs(a - b) for a, b in zip(losses[kind], losses[None], strict=True)) > 0.05


def test_fit_goes_on_with_the_scale(device, tmp_path):
    whole, bits = trained(device, 4, "float16", checkpoint=tmp_path / "a.npz")
    trained(device, 2, "float16", checkpoint=tmp_path / "b.npz")
    again, same = trained(device, 4, "float16", checkpoint=tmp_path / "b.npz")
    assert (again, same) == (whole, bits)
    with pytest.raises(ValueError, match="another autocast"):
        trained(device, 4, None, checkpoint=tmp_path / "b.npz")


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("fails", range(4))
def test_what_fails_between_unscale_and_step(device, fails, finite, updates):
    """Clipping that raises: after update() the next step is as ever, else unscale_ asks for it."""
    w = put(device, np.ones(3)).requires_grad_()
    optimiser = vg.optim.SGD([w], lr=0.25)
    scaler, scale = vg.amp.GradScaler(init_scale=1024.0, growth_interval=4), 1024.0
    asked = "call update\\(\\) before the next gradients are computed"
    for number in range(4):
        factor = 2.0 if number != fails or finite else float("inf")
        optimiser.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.unscale_(optimiser)
        if number != fails:
            scaler.step(optimiser)
        elif not updates:
            with pytest.raises(RuntimeError, match=asked):
                scaler.unscale_(optimiser)
            assert w.grad.tolist() == [factor] * 3
        scaler.update()
        scale *= 1.0 if number != fails or finite else 0.5
        assert scaler.get_scale() == (scale * 2 if finite and number == 3 else scale)
    assert w.tolist() == [1.0 - 3 * 0.25 * 2.0] * 3


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_step_that_fails_can_be_done_again(device, by_hand):
    """From the forward pass on: its gradients are scaled, and so to be unscaled anew."""
    w = put(device, np.ones(3)).requires_grad_()
    optimiser = vg.optim.SGD([w], lr=0.25, momentum=0.5)
    scaler = vg.amp.GradScaler(init_scale=1024.0)
    step = optimiser.step

    def fails():
        optimiser.step = step
        raise MemoryError

    for fail in (False, True, False):
        for again in (True, False) if fail else (False,):
            optimiser.step = fails if again else step
            optimiser.zero_grad()
            scaler.scale((w * 2).sum()).backward()
            if by_hand:
                scaler.unscale_(optimiser)
            if again:
                with pytest.raises(MemoryError):
                    scaler.step(optimiser)
            else:
                scaler.step(optimiser)
                scaler.update()
    assert scaler.get_scale() == 1024.0
    velocity, expected = 0.0, 1.0
    for _ in range(3):
        velocity = velocity * 0.5 + 2.0
        expected -= 0.25 * velocity
    assert w.tolist() == [expected] * 3


def test_scales_that_are_none():
    scaler = vg.amp.GradScaler()
    for scale in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="positive and finite"):
            vg.amp.GradScaler(init_scale=scale)
        with pytest.raises(ValueError, match="positive and finite"):
            scaler.update(scale)
        with pytest.raises(ValueError, match="positive and finite"):
            scaler.load_state_dict({**scaler.state_dict(), "scale": scale})
    with pytest.raises(ValueError, match="growth_interval"):
        vg.amp.GradScaler(growth_interval=0)
    assert scaler.get_scale() == 65536.0
