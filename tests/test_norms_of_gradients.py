"""The norm of all gradients, and clipping by it: beside NumPy in float64, in place, same bits."""

import math

import helpers
import numpy as np
import pytest
from helpers import put
from test_optim_in_one_launch import Model

import pyvecgpu as vg
from pyvecgpu.dispatch import apply
from pyvecgpu.nn.utils import clip_grad_norm_, get_total_norm

ORDERS = [1.0, 2.0, math.inf]
KINDS = ("plain", "odd", "strided", "transposed")


def reference(arrays, order):
    flat = np.concatenate([helpers.widened(helpers.host(x)).ravel() for x in arrays])
    return np.linalg.norm(flat.astype(np.float64), order) if flat.size else 0.0


def relative(dtype):
    """What the norm may be off by: summed in float64, rounded once."""
    return 1e-13 if dtype == np.float64 else helpers.UNIT_ROUNDOFF[dtype] * 1.01


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
@pytest.mark.parametrize("order", [*ORDERS, 3.0])
def test_total_norm(device, order, dtype):
    for count in (1, 3, 64, 65, 170, 400):
        arrays = [p.detach() for p in Model(device, dtype, count, count, KINDS).params]
        if dtype in helpers.HALVES:  # of fewer elements, whose sums do not overflow
            arrays = [x.reshape(-1)[:50] for x in arrays]
        if order == 3.0 and count > 3:
            continue
        norm, expected = get_total_norm(arrays, order), reference(arrays, order)
        assert norm.shape == () and norm.dtype == dtype
        limit = relative(dtype) if order in ORDERS else 20 * helpers.UNIT_ROUNDOFF[dtype]
        error = abs(helpers.widened(norm.numpy()).item() - expected)
        assert error <= limit * expected, (count, error, expected)


@pytest.mark.parametrize("length", [1023, 8192, 8193, 40_001, 300_007])
@pytest.mark.parametrize("order", ORDERS)
def test_long_arrays(device, rng, order, length):
    """Several chunks of one array, aligned or not, the last one in pieces."""
    for dtype in helpers.WIDE_FLOATS:
        values = rng.standard_normal(length).astype(dtype)
        for make in (put, helpers.shifted(1)):
            norm, expected = (
                get_total_norm([make(device, values)], order),
                reference([values], order),
            )
            assert abs(norm.item() - expected) <= relative(dtype) * expected


def test_more_than_a_round_of_chunks(device):
    """So many elements that chunks grow longer: each is there once."""
    x = vg.ones(4096 * 16384 // 4 + 12345, device=device, dtype="float16")
    x[-1] = 3.0
    assert get_total_norm([x], math.inf).item() == 3.0
    expected = math.sqrt(x.size - 1 + 9)
    assert abs(float(get_total_norm([x, put(device, np.zeros(1))]).item()) - expected) <= 1e-9


def test_dtypes_are_promoted(device):
    for first, second in (("float16", "float32"), ("float32", "float64"), ("float16", "float16")):
        arrays = [put(device, np.array([3.0], first)), put(device, np.array([4.0], second))]
        norm = get_total_norm(arrays)
        assert norm.dtype == np.promote_types(first, second) and norm.item() == 5.0
    if helpers.BFLOAT16:
        arrays = [put(device, np.array([3.0], np.float16)),
                  put(device, np.array([4.0], helpers.BFLOAT16))]  # fmt: skip
        assert get_total_norm(arrays).dtype == np.float32
    assert get_total_norm([put(device, np.array([3, 4]))]).item() == 5.0  # through vector_norm
    assert get_total_norm([put(device, np.array([3 + 4j]))]).item() == 5.0
    assert get_total_norm([put(device, np.zeros((0, 3), "f4"))]).item() == 0.0
    assert get_total_norm([]).item() == 0.0


def test_no_overflow_in_between(device):
    tiny = np.finfo(np.float64).smallest_subnormal
    cases = [[3e200, 4e200], [3e-200, 4e-200], [3e160, 4e160], [3e-158, 4e-158],
             [1e300, 1e-300], [3e-170, 4e-150, 1e-160], [tiny],
             [1e-160, 1.0], [1e308, 1e308], [5e-324, 5e-324]]  # fmt: skip
    for values in cases:
        exact = math.hypot(*values)
        norm = get_total_norm([put(device, np.array([x])) for x in values]).item()
        assert abs(norm - exact) <= 1e-14 * exact, values
    wide = put(device, np.array([3e30, 4e30], np.float32))
    assert abs(get_total_norm([wide]).item() - 5e30) <= 1e24
    assert get_total_norm([put(device, np.array([3e-30, 4e-30], np.float32))]).item() > 4.9e-30
    for order in ORDERS:
        for dtype in helpers.FLOATS:
            for special in (math.inf, -math.inf, math.nan):
                x = np.ones(3000, dtype)
                x[1234] = special
                norm = float(get_total_norm([put(device, x)], order).item())
                assert math.isnan(norm) if special != special else norm == math.inf


@pytest.mark.parametrize("order", ORDERS)
def test_bits_are_the_same_every_time(device, order):
    """And on the simulated card those of the orders in which blocks run."""
    arrays = [p.detach() for p in Model(device, np.dtype(np.float32), 90, 5, KINDS).params]
    found = {helpers.bits(get_total_norm(arrays, order)) for _ in range(5)}
    assert len(found) == 1


# Clipping -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", helpers.FLOATS, ids=str)
def test_clipping_is_in_place(device, dtype):
    for count in (3, 200):
        model = Model(device, dtype, count, 11, KINDS)
        model.kinds = ("plain", "odd")
        model.gradients()
        gradients = [p.grad for p in model.params]
        before = [helpers.widened(g.numpy()).copy() for g in gradients]
        versions = [g._version for g in gradients]
        norm = clip_grad_norm_(model.params, 0.5)
        rounded = float(helpers.widened(norm.numpy()))
        factor = np.float64(min(1.0, 0.5 / (rounded + 1e-6)))
        factor = factor if dtype == np.float64 else np.float32(factor)
        for p, g, x, version in zip(model.params, gradients, before, versions, strict=True):
            assert p.grad is g and g._version > version
            assert helpers.bits(g) == (x * factor).astype(dtype).tobytes()
        again = [helpers.bits(g) for g in gradients]
        clip_grad_norm_(model.params, 1e6)
        assert [helpers.bits(g) for g in gradients] == again


def test_gradients_that_are_not_ones_own(device):
    """Views, what repeats, one for two parameters, and what a graph still needs."""
    params = [put(device, np.zeros(4, np.float32)).requires_grad_() for _ in range(5)]
    base = put(device, np.arange(8, dtype=np.float32))
    repeated = vg.broadcast_to(put(device, np.full(1, 2, np.float32)), (4,))
    params[0].grad = params[1].grad = put(device, np.ones(4, np.float32))
    params[2].grad, params[3].grad, params[4].grad = base[::2], repeated, base[1:5]
    expected = [p.grad.numpy().copy() for p in params]
    norm = clip_grad_norm_(params, 1.0).item()
    for p, x in zip(params, expected, strict=True):
        helpers.assert_within(p.grad, x / (norm + 1e-6), 1e-6)
    assert repeated.tolist() == [2.0] * 4
    x = put(device, np.ones(3)).requires_grad_()
    (x**3).sum().backward(create_graph=True)
    inner = x.grad
    clip_grad_norm_([x], 0.1)
    assert x.grad is not inner and inner.detach().tolist() == [3.0] * 3
    (second,) = vg.autograd.grad(inner.sum(), [x])
    assert second.tolist() == [6.0] * 3


def test_overlapping_gradients(device):
    base = put(device, np.arange(1, 9, dtype=np.float64))
    a, b = (put(device, np.zeros(6)).requires_grad_() for _ in range(2))
    a.grad, b.grad = base[:6], base[2:]
    norm = clip_grad_norm_([a, b], 1.0).item()
    expected = np.arange(1, 9) / (norm + 1e-6)
    helpers.assert_within(base, expected, 1e-12)


def test_special_norms(device):
    def clipped(values, most=1.0, dtype=np.float32):
        p = put(device, np.zeros(len(values), dtype)).requires_grad_()
        p.grad = put(device, np.array(values, dtype))
        clip_grad_norm_([p], most)
        return p.grad.numpy()

    assert np.isnan(clipped([math.nan, 1.0])).all()
    assert np.isnan(clipped([math.inf, 1.0])[0]) and clipped([math.inf, 1.0])[1] == 0
    assert clipped([0.0, 0.0]).tolist() == [0, 0]
    assert clipped([3.0, 4.0], 0.0).tolist() == [0, 0]
    assert np.isnan(clipped([3.0, 4.0], math.nan)).all()
    assert clipped([3.0, 4.0], math.inf).tolist() == [3, 4]


def test_gradients_on_two_devices(device):
    a, b = put(device, np.zeros(2)).requires_grad_(), put("cpu", np.zeros(1)).requires_grad_()
    a.grad, b.grad = put(device, np.array([3.0, 0.0])), put("cpu", np.array([4.0]))
    assert clip_grad_norm_([a, b], 1.0).item() == 5.0
    helpers.assert_within(a.grad, np.array([0.6, 0]), 1e-6)
    helpers.assert_within(b.grad, np.array([0.8]), 1e-6)


@pytest.mark.parametrize("factor", [0.125, 1.0, 3.0])
def test_a_factor_without_a_norm(device, factor):
    """Every element times the factor, in arrays of any length, dtype and layout."""
    rng = np.random.default_rng(8)
    for dtype in ("f2", "f4", "f8"):
        hosts = [rng.standard_normal(n).astype(dtype) for n in (0, 1, 7, 1030, 5000)]
        arrays = [put(device, x) for x in hosts]
        arrays += [put(device, hosts[3].reshape(10, 103).copy()).T, put(device, hosts[4])[3:]]
        expected = [x.numpy() * x.numpy().dtype.type(factor) for x in arrays]
        apply(arrays[0].backend, "clip_norm", arrays, None, factor)
        for x, y in zip(arrays, expected, strict=True):
            helpers.assert_same(x, y)


def test_refusals(device):
    x, read_only = put(device, np.ones(3)), vg.broadcast_to(put(device, np.ones(1)), (3,))
    backend = x.backend
    for error, method, *arguments in [
        (ValueError, "total_norm", [x], 3.0),
        (TypeError, "total_norm", [put(device, np.ones(3, int))], 2.0),
        (ValueError, "clip_norm", [x], x, 1.0),
        (TypeError, "clip_norm", [x], put(device, np.int64(9)), 1.0),
        (ValueError, "clip_norm", [x, read_only], put(device, np.float64(9)), 1.0),
        (TypeError, "clip_norm", [put(device, np.ones(3, int))], put(device, np.float64(9)), 1.0),
    ]:
        with pytest.raises(error):
            apply(backend, method, *arguments)
        assert x.tolist() == [1.0] * 3
