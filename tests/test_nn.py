"""The dense layer, activation(x @ weight.T + bias), and its backward pass.

Every activation, dtype and layout against NumPy in a wider type; gradients against formulas and
against central differences.
"""

import functools

import helpers
import numpy as np
import pytest
from helpers import FLOATS, assert_same, assert_within, put, widened
from references import float_reference, normal_cdf

import pyvecgpu as vg
from pyvecgpu.nn.functional import dense, dense_backward

ACTIVATIONS = {
    None: lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    **{n: functools.partial(float_reference, n) for n in ("sigmoid", "tanh", "gelu", "silu")},
}
SHAPES = [
    ((1, 1), 1),
    ((7, 5), 3),
    ((5,), 4),
    ((2, 3, 17), 6),
    ((2, 1, 3, 5), 2),
    ((33, 64), 128),
    ((130, 70), 65),
    ((1, 600), 10),
]


def sum_unit(dtype):
    """Unit roundoff of the dtype that sums are made in."""
    return helpers.UNIT_ROUNDOFF[np.dtype(np.float64 if dtype == np.float64 else np.float32)]


def reference(x, weight, bias, activation):
    """The layer in a wider type, and how far a result may be off."""
    unit, dtype = sum_unit(x.dtype), x.dtype
    x, weight = x.astype(np.longdouble), weight.astype(np.longdouble)
    z = np.matmul(x, weight.T)
    tolerance = x.shape[-1] * unit * np.matmul(np.abs(x), np.abs(weight.T))
    if bias is not None:
        z = z + bias.astype(np.longdouble)
        tolerance = tolerance + unit * np.abs(z)
    result = ACTIVATIONS[activation](z)
    ulps = helpers.ULPS.get(activation, {}).get("sim", 0)
    # No activation is steeper than 1.2; a result is off by ulps of its own besides.
    own = (2 * ulps * unit + helpers.UNIT_ROUNDOFF[dtype]) * np.abs(result)
    return result, 1.2 * tolerance + own + helpers.finfo(dtype).smallest_subnormal


def layer_data(rng, shape, outputs, dtype):
    shapes = (shape, (outputs, shape[-1]), (outputs,))
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_data(device, rng, shape, dtype, activation):
    x, weight, bias = layer_data(rng, *shape, dtype)
    for b in (None, bias):
        arrays = [None if one is None else put(device, one) for one in (x, weight, b)]
        result = vg.dense(*arrays, activation)
        assert result.dtype == dtype
        assert_within(result, *reference(x, weight, b, activation))
        again, before = dense(*arrays, activation, with_preactivation=True)
        assert helpers.bits(again) == helpers.bits(result)
        assert before.dtype == dtype
        assert_within(before, *reference(x, weight, b, None))


@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_integer_values_are_exact_in_every_layout(device, rng, dtype, activation):
    x, weight, bias = (helpers.integers(rng, s, dtype) for s in ((9, 37), (13, 37), (13,)))
    exact = ACTIVATIONS[activation](widened(x) @ widened(weight).T + widened(bias))
    expected = helpers.rounded(exact, dtype)
    assert np.any(expected)
    for name, make in helpers.LAYOUTS.items():
        for arrays in (
            (make(device, x), put(device, weight), put(device, bias)),
            (put(device, x), make(device, weight), put(device, bias)),
            (
                put(device, x),
                put(device, weight),
                vg.broadcast_to(make(device, bias[:, None])[:, 0], (13,)),
            ),
            (make(device, x), make(device, weight), make(device, bias[None])[0]),
        ):
            assert_same(vg.dense(*arrays, activation), expected, name)


@pytest.mark.parametrize("dtype", helpers.WIDE_FLOATS, ids=str)
def test_broadcast_operands(device, rng, dtype):
    """Rows, columns and biases that are one element repeated in memory."""
    x, weight = (
        helpers.integers(rng, (1, 1), dtype) + dtype.type(9),
        helpers.integers(rng, (5, 1), dtype),
    )
    for shape in ((6, 1), (2, 3, 1)):
        rows = np.broadcast_to(x, shape)
        assert_same(
            vg.dense(vg.broadcast_to(put(device, x), shape), put(device, weight)), rows @ weight.T
        )
    columns = np.broadcast_to(x, (7, 1))
    bias = np.broadcast_to(x[0], (7,))
    result = vg.dense(
        put(device, weight),
        vg.broadcast_to(put(device, x), (7, 1)),
        vg.broadcast_to(put(device, x[0]), (7,)),
    )
    assert_same(result, weight @ columns.T + bias)
    wide = np.broadcast_to(weight[:1], (4, 1))
    assert_same(
        vg.dense(put(device, wide.copy()), vg.broadcast_to(put(device, weight[:1]), (9, 1))),
        wide @ np.broadcast_to(weight[:1], (9, 1)).T,
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sizes_of_zero(device, dtype):
    for shape, outputs in (((0, 3), 4), ((3, 0), 4), ((3, 4), 0), ((0, 2, 3), 4)):
        x, weight = np.ones(shape, dtype), np.ones((outputs, shape[-1]), dtype)
        bias = np.arange(outputs, dtype=dtype)
        product = (widened(x) @ widened(weight).T).astype(dtype)
        result = dense(
            put(device, x), put(device, weight), put(device, bias), with_preactivation=True
        )
        for one in result:
            assert_same(one, (product + bias).astype(dtype))
        assert_same(vg.dense(put(device, x), put(device, weight)), product)
    helpers.assert_works(device)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_nan_and_infinity(device, activation):
    x = np.array([[np.nan, 1], [np.inf, 1], [-np.inf, 1], [1, 1]], np.float32)
    weight = np.ones((3, 2), np.float32)
    result = helpers.host(vg.dense(put(device, x), put(device, weight), None, activation))
    with np.errstate(all="ignore"):
        expected = ACTIVATIONS[activation]((x @ weight.T).astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_mixed_float_dtypes_are_promoted(device, rng):
    x, weight, bias = (rng.standard_normal(s) for s in ((3, 4), (5, 4), (5,)))
    single = x.astype(np.float32)
    result = vg.dense(put(device, single), put(device, weight), put(device, bias))
    assert result.dtype == np.float64
    assert_within(result, *reference(single.astype(np.float64), weight, bias, None))


def test_numpy_in_numpy_out(device, rng):
    x, weight = (helpers.integers(rng, s, np.dtype(np.float32)) for s in ((3, 4), (5, 4)))
    result = vg.dense(x, weight, device=device)
    assert type(result) is np.ndarray
    assert_same(result, x @ weight.T)
    out = np.zeros((3, 5), np.float32)
    y, before = dense(x, weight, None, "relu", with_preactivation=True, out=out, device=device)
    assert y is out and type(before) is np.ndarray
    assert_same(y, np.maximum(before, 0))
    gradients = dense_backward(y, x, weight, before, "relu", device=device)
    assert [type(one) for one in gradients] == [np.ndarray] * 3
    assert [one.shape for one in gradients] == [(3, 4), (5, 4), (5,)]


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (4, 2), (4,)),
        ((2, 3), (4, 3), (3,)),
        ((2, 3), (4, 3), (4, 1)),
        ((2, 3), (3,), None),
        ((), (1, 1), None),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit(device, shapes):
    arrays = [
        None if shape is None else put(device, np.ones(shape, np.float32)) for shape in shapes
    ]
    with helpers.refused(
        device, ValueError, *[a for a in arrays if a is not None], match="dense"
    ) as caught:
        vg.dense(*arrays)
    assert str(shapes[1]) in str(caught.value) or str(shapes[0]) in str(caught.value)


@pytest.mark.parametrize("dtype", [d for d in helpers.DTYPES if not helpers.is_float(d)], ids=str)
def test_only_floats(device, dtype):
    x = put(device, np.ones((2, 3), dtype))
    with helpers.refused(device, TypeError, x, match=f"dense.*{dtype}"):
        vg.dense(x, x)


def test_unknown_activations_and_scalars(device):
    x = put(device, np.ones((2, 3), np.float32))
    for activation in ("GELU", "softmax", 1, "", [1]):
        with helpers.refused(device, ValueError, x, match="activation"):
            vg.dense(x, x, None, activation)
        with helpers.refused(device, ValueError, x, match="activation"):
            dense_backward(x[:, :2], x, x, x[:, :2], activation)
    for call in (
        lambda: vg.dense(x, 1.0),
        lambda: vg.dense(x, x, 1.0),
        lambda: dense_backward(1.0, x, x),
        lambda: dense_backward(x[:, :2], x, x, 0.0, "relu"),
    ):
        with helpers.refused(device, TypeError, x):
            call()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", ["transposed", "stepped", "padded_rows", "reversed"])
def test_preactivation_beside_out(device, rng, layout, dtype):
    """out of any layout, or one of the operands; the preactivation is an array of its own."""
    x, weight, bias = (helpers.integers(rng, s, dtype) for s in ((6, 6), (6, 6), (6,)))
    z = widened(x) @ widened(weight).T + widened(bias)
    before, after = helpers.rounded(z, dtype), helpers.rounded(np.maximum(z, 0), dtype)
    arrays = [put(device, one) for one in (x, weight, bias)]
    out = helpers.LAYOUTS[layout](device, np.zeros((6, 6), dtype))
    y, b = dense(*arrays, "relu", with_preactivation=True, out=out)
    assert y is out
    assert_same(y, after)
    assert_same(b, before)
    y, b = dense(*arrays, "relu", with_preactivation=True, out=arrays[0].T)
    assert_same(arrays[0].T, after)
    assert_same(b, before)


# ---- The backward pass ---------------------------------------------------------------------------


def density(z):
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def sigmoid(z):
    return float_reference("sigmoid", z).astype(np.float64)


SLOPES = {
    None: np.ones_like,
    "sigmoid": lambda z: sigmoid(z) * sigmoid(-z),
    "tanh": lambda z: 1 / np.cosh(z) ** 2,
    "relu": lambda z: np.where(np.isnan(z), z, z > 0),
    "gelu": lambda z: normal_cdf(z) + z * density(z),
    "silu": lambda z: sigmoid(z) * (1 + z * sigmoid(-z)),
}


def check_gradients(results, gradient, x, weight, before, activation):
    """dx, dweight and dbias against the formulas in float64."""
    dtype = gradient.dtype
    unit, rounding = sum_unit(dtype), helpers.UNIT_ROUNDOFF[dtype]
    gradient, x, weight, before = (a.astype(np.float64) for a in (gradient, x, weight, before))
    dz = gradient * SLOPES[activation](before)
    rows, inputs = dz.reshape(-1, weight.shape[0]), x.reshape(-1, weight.shape[1])
    ones = np.ones((len(rows), 1))
    size = 1.2 * np.abs(gradient).reshape(rows.shape)  # no activation is steeper
    for result, left, right, bound, shape in (
        (results[0], rows, weight, size, x.shape),
        (results[1], rows.T, inputs, size.T, weight.shape),
        (results[2], rows.T, ones, size.T, weight.shape[:1]),
    ):
        assert result.dtype == dtype
        tolerance = ((left.shape[1] + 64) * unit + 2 * rounding) * (bound @ np.abs(right))
        tolerance += float(helpers.finfo(dtype).tiny)
        assert_within(result, (left @ right).reshape(shape), tolerance.reshape(shape))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients(device, rng, shape, dtype, activation):
    x, weight, bias = layer_data(rng, *shape, dtype)
    gradient = rng.standard_normal((*x.shape[:-1], weight.shape[0])).astype(dtype)
    arrays = [put(device, one) for one in (x, weight, bias)]
    before = dense(*arrays, activation, with_preactivation=True)[1]
    operands = put(device, gradient), *arrays[:2], before, activation
    results = dense_backward(*operands)
    check_gradients(results, gradient, x, weight, helpers.host(before), activation)
    again = dense_backward(*operands)
    assert [helpers.bits(one) for one in again] == [helpers.bits(one) for one in results]
    if activation is None:
        plain = dense_backward(*operands[:3])
        assert [helpers.bits(one) for one in plain] == [helpers.bits(one) for one in results]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 1, 4)], ids=str)
def test_gradients_are_central_differences(device, rng, shape, activation):
    """Of loss = sum(factor * layer), by the forward pass alone."""
    values = layer_data(rng, shape, 2, np.float64)
    factor = rng.standard_normal((*shape[:-1], 2))

    def loss():
        return float(np.sum(factor * helpers.host(dense(*arrays(), activation))))

    def arrays():
        return [put(device, one) for one in values]

    before = dense(*arrays(), activation, with_preactivation=True)[1]
    found = dense_backward(put(device, factor), *arrays()[:2], before, activation)
    for value, gradient in zip(values, found, strict=True):
        numeric = np.empty_like(value)
        for at in np.ndindex(value.shape):
            kept, losses = value[at], []
            for step in (1e-6, -1e-6):
                value[at] = kept + step
                losses.append(loss())
            value[at] = kept
            numeric[at] = (losses[0] - losses[1]) / 2e-6
        assert np.any(numeric) or activation == "relu"
        assert_within(gradient, numeric, 1e-8)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_slopes_far_out_and_at_zero(device, dtype):
    """dbias of one row is gradient * slope: 0 or 1 where the activation is flat, never NaN."""
    z = np.array([-np.inf, -1e4, -50, 0, -0.0, 50, 1e4, np.inf, np.nan], dtype)
    one = vg.ones((1, 1), dtype=dtype, device=device)
    gradient = vg.ones((1, z.size), dtype=dtype, device=device)
    weight = vg.ones((z.size, 1), dtype=dtype, device=device)
    for activation, slopes in (
        ("sigmoid", [0, 0, 0, 0.25, 0.25, 0, 0, 0]),
        ("tanh", [0, 0, 0, 1, 1, 0, 0, 0]),
        ("relu", [0, 0, 0, 0, 0, 1, 1, 1]),
        ("gelu", [0, 0, 0, 0.5, 0.5, 1, 1, 1]),
        ("silu", [0, 0, 0, 0.5, 0.5, 1, 1, 1]),
    ):
        _, dweight, dbias = dense_backward(gradient, one, weight, put(device, z[None]), activation)
        for result in (dbias, dweight[:, 0]):
            found = helpers.host(result).astype(np.float64)
            assert_within(found, np.array([*slopes, np.nan]), 2e-20, activation)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_gradients_of_every_layout(device, rng, dtype):
    x, weight, before = (helpers.integers(rng, s, dtype, high=3) for s in ((9, 5), (7, 5), (9, 7)))
    gradient = helpers.integers(rng, (9, 7), dtype, high=3)
    dz = np.where(before > 0, widened(gradient), 0)
    expected = [dz @ widened(weight), dz.T @ widened(x), dz.sum(axis=0)]
    for make in helpers.LAYOUTS.values():
        for which in range(4):
            operands = [put(device, one) for one in (gradient, x, weight, before)]
            operands[which] = make(device, (gradient, x, weight, before)[which])
            for result, exact in zip(dense_backward(*operands, "relu"), expected, strict=True):
                assert_same(result, helpers.rounded(exact + 0.0, dtype))
    ones = vg.broadcast_to(vg.ones((), dtype=dtype, device=device), (9, 7))
    results = dense_backward(ones, put(device, x), put(device, weight))
    expected = np.ones((9, 7)) @ widened(weight), np.ones((7, 9)) @ widened(x), np.full(7, 9.0)
    for result, exact in zip(results, expected, strict=True):
        assert_same(result, helpers.rounded(exact, dtype))


@pytest.mark.parametrize("activation", [None, "gelu"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_gradients_of_nothing(device, dtype, activation):
    for shape, outputs in (((0, 3), 4), ((3, 0), 4), ((3, 4), 0), ((0, 2, 3), 4), ((0,), 2)):
        x, weight = np.ones(shape, dtype), np.ones((outputs, shape[-1]), dtype)
        before = np.full((*shape[:-1], outputs), 50, dtype)  # where gelu's slope is 1
        operands = [put(device, one) for one in (np.ones_like(before), x, weight, before)]
        dx, dweight, dbias = dense_backward(*operands, activation)
        rows = before.size // outputs if outputs else 0
        assert_same(dx, np.full(shape, outputs, dtype))
        assert_same(dweight, np.full(weight.shape, rows, dtype))
        assert_same(dbias, np.full(outputs, rows, dtype))
    helpers.assert_works(device)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_bias_gradients_of_many_rows(device, rng, dtype):
    """Blocks add up 64 rows of 128 columns each, in double; the sum is rounded once."""
    for rows, columns in ((64, 128), (65, 129), (1000, 3), (3, 1000)):
        gradient = helpers.integers(rng, (rows, columns), dtype)
        x, weight = np.ones((rows, 1), dtype), np.ones((columns, 1), dtype)
        dbias = dense_backward(*(put(device, one) for one in (gradient, x, weight)))[2]
        assert_same(dbias, helpers.rounded(gradient.astype(np.float64).sum(axis=0), dtype))


def test_gradients_of_mixed_dtypes(device, rng):
    x, weight, _ = layer_data(rng, (3, 4), 2, np.float32)
    gradient = rng.standard_normal((3, 2))
    operands = [put(device, one) for one in (gradient, x, weight)]
    assert [one.dtype for one in dense_backward(*operands)] == [np.float64] * 3
    half = [operand.astype(np.float16) for operand in operands]
    before = put(device, gradient)
    results = dense_backward(half[0], half[1], operands[2], before, "tanh")
    assert [one.dtype for one in results] == [np.float32] * 3
    arrays = (
        half[0].astype(np.float32),
        half[1].astype(np.float32),
        operands[2],
        before.astype(np.float32),
    )
    same = dense_backward(*arrays, "tanh")
    assert [helpers.bits(one) for one in results] == [helpers.bits(one) for one in same]


def test_backward_refuses(device):
    def ones(*shape, dtype="float32"):
        return vg.ones(shape, dtype=dtype, device=device)

    gradient, x, weight = ones(3, 2), ones(3, 4), ones(2, 4)
    for operands, activation, error in (
        ((gradient, x, ones(2, 5)), None, ValueError),
        ((gradient, x, ones(4)), None, ValueError),
        ((gradient, ones(), weight), None, ValueError),
        ((ones(3, 4), x, weight), None, ValueError),
        ((ones(4, 2), x, weight), None, ValueError),
        ((ones(1, 3, 2), x, weight), None, ValueError),
        ((ones(2), x, weight), None, ValueError),
        ((gradient, x, weight, ones(3, 3)), "relu", ValueError),
        ((gradient, x, weight, ones(2)), None, ValueError),
        ((gradient, x, weight), "sigmoid", ValueError),
        ((ones(3, 2, dtype="int32"), x, weight), None, TypeError),
        ((gradient, ones(3, 4, dtype="bool"), weight), None, TypeError),
        ((gradient, x, weight, ones(3, 2, dtype="int64")), "relu", TypeError),
    ):
        with helpers.refused(device, error, *operands, match="dense_backward"):
            dense_backward(*operands, activation=activation)
    if device != "cpu":
        with helpers.refused(device, ValueError, gradient):
            dense_backward(gradient, x.cpu(), weight)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_of_gelu_and_silu(device, dtype):
    """Their limits at the infinities, where a product of 0 and infinity would be NaN."""
    x = np.array([-np.inf, -1e4, -0.0, 0.0, 1e4, np.inf, np.nan], dtype)
    expected = np.array([-0.0, -0.0, -0.0, 0.0, 1e4, np.inf, np.nan], dtype)
    one = vg.ones((1, 1), dtype=dtype, device=device)
    for name in ("gelu", "silu"):
        assert_same(getattr(vg.nn.functional, name)(put(device, x)), expected)
        layer = dense(put(device, x[:, None]), one, None, name)
        assert_same(layer + dtype.type(0), expected[:, None] + dtype.type(0))  # -0.0: 0.0
