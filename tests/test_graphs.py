"""Recorded work as Python has it: whole expressions, and the exceptions of what goes wrong.

What graphs do to memory, streams and threads is tested in C: cuda/tests/test_graph*.c.
"""

import gc

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.native import library

pytestmark = pytest.mark.devices("sim", "cuda")


def backend_of(device):
    return vg.Device(device).backend


def small_network(x, weight, bias):
    """A layer and its backward pass, with a loss: products, reductions, temporaries."""
    y, z = vg.nn.functional.dense(x, weight, bias, "gelu", with_preactivation=True)
    error = y - vg.mean(y, axis=1, keepdims=True)
    gradients = vg.nn.functional.dense_backward(error, x, weight, z, "gelu")
    return [vg.sum(error * error), *gradients]


# name: (the function, shapes of the operands)
EXPRESSIONS = {
    "chain": (lambda a, b: vg.tanh(a * 2.0 + b.T) / (vg.abs(a) + 1.0), [(70, 90), (90, 70)]),
    "casts and views": (lambda a: a[::-2, 1:].astype("int32").copy() * 3, [(40, 50)]),
    "where": (lambda a, b: vg.where(a > b, a, vg.zeros((), device=a.device)), [(3000,), (1,)]),
    "products": (lambda a, b: (a @ b).T @ vg.maximum(a, 0.0), [(33, 65), (65, 17)]),
    "a long row": (lambda a, b: a @ b, [(5000,), (5000, 3)]),
    "batches": (lambda a, b: a @ b, [(3, 20, 30), (30, 10)]),
    "reductions": (
        lambda a: [vg.sum(a), vg.max(a, axis=0), vg.argmax(a, axis=1), vg.mean(a.T, axis=0)],
        [(300, 200)],
    ),
    "network": (small_network, [(20, 30), (10, 30), (10,)]),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_launches_give_the_bits_of_the_calls(device, rng, name):
    function, shapes = EXPRESSIONS[name]
    hosts = [helpers.numbers(rng, shape, np.dtype(np.float32)) for shape in shapes]
    operands = [put(device, host) for host in hosts]
    results = []
    again = backend_of(device).record(lambda: results.append(function(*operands)))
    for factor in (1.0, -0.5, 3.0):
        for operand, host in zip(operands, hosts, strict=True):
            operand[...] = vg.asarray(host * np.float32(factor), device=device)
        expected = function(*operands)
        again()
        got = results[0] if isinstance(results[0], list) else results
        for one, other in zip(got, expected if len(got) > 1 else [expected], strict=True):
            assert_same(one.numpy(), other.numpy())


def test_operands_live_as_long_as_the_recording(device):
    out = vg.zeros(5, device=device)
    operands = [vg.full(5, value, device=device) for value in (2.0, 3.0)]
    again = backend_of(device).record(lambda: vg.multiply(*operands, out=out))
    operands.clear()
    others = [vg.full(5, -1.0, device=device) for _ in range(10)]
    again()
    assert out.tolist() == [6.0] * 5
    held = vg.memory_info(device).used
    del again
    gc.collect()
    assert vg.memory_info(device).used < held
    assert all(other.tolist() == [-1.0] * 5 for other in others)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.numpy(),
        lambda x: x[0].item(),
        lambda x: vg.asarray([1.0, 2.0], device=x.device),
        lambda x: vg.synchronize(x.device),
        lambda x: vg.empty_cache(x.device),
        lambda x: backend_of(x.device).record(lambda: None),
        lambda x: vg.nonzero(x),
    ],
)
def test_what_cannot_be_recorded(device, call):
    x = vg.ones(5, device=device)
    with helpers.refused(device, ValueError, x, match="recording a graph: .* cannot be part"):
        backend_of(device).record(lambda: (x + x, call(x)))
    again = backend_of(device).record(lambda: vg.add(x, x, out=x))
    again()
    assert x.tolist() == [2.0] * 5


def test_an_exception_ends_the_recording(device):
    x = vg.ones(5, device=device)
    with pytest.raises(ZeroDivisionError):
        backend_of(device).record(lambda: (vg.add(x, x, out=x), 1 / 0))
    assert x.tolist() == [1.0] * 5
    assert (x + x).tolist() == [2.0] * 5


@pytest.mark.devices("sim")
def test_a_failed_operation_spoils_the_recording(device):
    """Even if the application takes the failure for granted."""
    x = vg.ones(5, device=device)

    def work():
        library.load(device).pvg_sim_fail(b"launch", 1)
        with pytest.raises(vg.PyVecGPUError):
            vg.add(x, x, out=x)

    with pytest.raises(vg.PyVecGPUError, match="recording a graph: an operation failed: add: "):
        backend_of(device).record(work)
    assert x.tolist() == [1.0] * 5
