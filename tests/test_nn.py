"""The dense layer, activation(x @ weight.T + bias), with every activation, dtype and layout."""

import helpers
import numpy as np
import pytest
from helpers import FLOATS, assert_same, assert_within, put

import pyvecgpu as vg

ACTIVATIONS = {
    None: lambda z: z,
    "sigmoid": lambda z: np.where(z >= 0, 1, np.exp(-np.abs(z))) / (1 + np.exp(-np.abs(z))),
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
}
SHAPES = [
    ((1, 1), 1),
    ((7, 5), 3),
    ((5,), 4),
    ((2, 3, 17), 6),
    ((33, 64), 128),
    ((130, 70), 65),
    ((1, 600), 10),
]


def reference(x, weight, bias, activation):
    """The layer in a wider type, and how far a result may be off."""
    product, tolerance = helpers.product_tolerance(x, weight.T, x.dtype)
    unit = helpers.UNIT_ROUNDOFF[x.dtype]
    if bias is not None:
        product = product + bias
        tolerance = tolerance + unit * np.abs(product)
    result = ACTIVATIONS[activation](product)
    ulps = helpers.ULPS.get(activation, {}).get("sim", 0)
    # No activation is steeper than 1; a result is off by ulps of its own besides.
    return result, tolerance * (1 + 2 * unit) + 2 * ulps * unit * np.abs(result) + np.finfo(
        x.dtype
    ).tiny


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_data(device, rng, shape, dtype, activation):
    shape, outputs = shape
    x, weight = (rng.standard_normal(s).astype(dtype) for s in (shape, (outputs, shape[-1])))
    for bias in (None, rng.standard_normal(outputs).astype(dtype)):
        given = None if bias is None else put(device, bias)
        result = vg.dense(put(device, x), put(device, weight), given, activation)
        assert result.dtype == dtype
        assert_within(result, *reference(x, weight, bias, activation))


@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_integer_values_are_exact_in_every_layout(device, rng, dtype, activation):
    x, weight, bias = (helpers.integers(rng, s, dtype) for s in ((9, 37), (13, 37), (13,)))
    expected = ACTIVATIONS[activation](x @ weight.T + bias)
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


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
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
        expected = (x @ weight.T + bias).astype(dtype)
        assert_same(vg.dense(put(device, x), put(device, weight), put(device, bias)), expected)
        assert_same(vg.dense(put(device, x), put(device, weight)), (x @ weight.T).astype(dtype))
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


@pytest.mark.parametrize("dtype", [d for d in helpers.DTYPES if d.kind != "f"], ids=str)
def test_only_floats(device, dtype):
    x = put(device, np.ones((2, 3), dtype))
    with helpers.refused(device, TypeError, x, match=f"dense.*{dtype}"):
        vg.dense(x, x)


def test_unknown_activations_and_scalars(device):
    x = put(device, np.ones((2, 3), np.float32))
    for activation in ("gelu", 1, ""):
        with helpers.refused(device, ValueError, x, match="activation"):
            vg.dense(x, x, None, activation)
    with helpers.refused(device, TypeError, x):
        vg.dense(x, 1.0)
