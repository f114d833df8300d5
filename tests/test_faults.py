"""Injected faults: on the simulated card, each allocation, launch and copy of a call fails once.

Afterwards operands and `out` are as before, nothing is left over, and the same call succeeds.
"""

import gc

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.native.abi import Allocator, Option

pytestmark = pytest.mark.devices("sim")

F32 = np.dtype(np.float32)


def operands(device):
    """Arrays of which every operation below needs temporaries, and an out that is one of them."""
    rng = np.random.default_rng(1)
    return {
        "a": put(device, helpers.integers(rng, (40, 30), F32)),
        "b": put(device, helpers.integers(rng, (30, 40), np.dtype(np.int32))),
        "f": put(device, helpers.integers(rng, (40, 30), np.dtype(np.float64))),
        "long": put(device, helpers.integers(rng, (3, 20_000), F32)),
    }


OPERATIONS = {
    "unary": lambda v: vg.exp(v["b"].T),
    "binary": lambda v: v["a"] + v["b"].T,
    "in place": lambda v: vg.add(v["a"], v["a"][::-1], out=v["a"]),
    "out of another dtype": lambda v: vg.multiply(v["f"], 2.0, out=v["a"]),
    "scalar": lambda v: 2.5 * v["b"],
    "where": lambda v: vg.where(v["a"] > 0, v["b"].T, v["a"]),
    "sum": lambda v: vg.sum(v["long"], axis=1),
    "mean out": lambda v: vg.mean(v["long"], axis=1, out=v["long"][:, 5]),
    "argmax": lambda v: vg.argmax(v["a"].T, axis=0),
    "sum of axes": lambda v: vg.sum(v["long"].reshape(3, 20, 10, 100), axis=(0, 2)),
    "product": lambda v: v["a"] @ v["b"],
    "product in place": lambda v: vg.matmul(v["a"], v["a"][:30], out=v["a"]),
    "dense": lambda v: vg.dense(v["a"], v["f"], v["f"][:, 0], "tanh"),
    "cast": lambda v: v["a"].T.astype("int64"),
    "copy": lambda v: v["a"].T.copy(),
    "reshape": lambda v: v["a"].T.reshape(-1),
    "assign": lambda v: v["a"].__setitem__(slice(1, None), v["a"][:-1]),
    "assign cast": lambda v: v["b"].__setitem__(Ellipsis, v["a"].T),
    "fill": lambda v: v["a"].__setitem__(slice(None, None, 2), 3.0),
    "upload": lambda v: put("sim", np.arange(60_000.0).reshape(200, 300).T),
    "strided upload": lambda v: v["long"].__setitem__(
        Ellipsis, np.ones((3, 40_000), np.float32)[:, ::2]
    ),
    "download": lambda v: v["a"].T[::2].numpy(),
}
# What a fault becomes. A launch of a kernel and its memory are asked for in C; so is the copy.
EXCEPTIONS = {"malloc": vg.OutOfMemoryError, "launch": vg.LaunchError, "copy": vg.CUDAError}


# Operations that need no such call.
NOT_NEEDED = {
    "malloc": {"fill", "assign cast"},
    "launch": set(),
    "copy": set(OPERATIONS) - {"upload", "strided upload", "download"},
}


@pytest.fixture
def direct_allocator(simulator):
    """Every array is one cudaMalloc, which is not tried again."""
    gc.collect()
    simulator.set_option(Option.OPTION_ALLOCATOR, Allocator.ALLOCATOR_DIRECT)
    yield
    gc.collect()
    simulator.set_option(Option.OPTION_ALLOCATOR, Allocator.ALLOCATOR_POOL)


@pytest.mark.parametrize("what", EXCEPTIONS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_call_fails_once(device, simulator, direct_allocator, name, what):
    operation = OPERATIONS[name]
    expected = run_and_read(operation, operands(device))
    for nth in range(1, 50):
        values = operands(device)
        before = {key: helpers.bits(value) for key, value in values.items()}
        gc.collect()
        in_use = helpers.live(device)
        error = failure_of(simulator, what, nth, operation, values)
        if error is None:
            break
        assert type(error) is EXCEPTIONS[what], repr(error)
        after = {key: helpers.bits(value) for key, value in values.items()}
        assert after == before, "an operand has changed"
        gc.collect()
        assert helpers.live(device) == in_use
        helpers.assert_works(device)
        assert run_and_read(operation, values) == expected, "the same call again"
    assert nth < 49, "the operation never succeeded"
    assert (nth > 1) != (name in NOT_NEEDED[what]), f"{nth - 1} calls failed"


def run_and_read(operation, values):
    """The bits of the result, or of all operands where the operation gives none."""
    result = operation(values)
    if result is None:
        return [helpers.bits(value) for value in values.values()]
    return helpers.bits(result)


def failure_of(simulator, what, nth, operation, values):
    """What an operation raises whose nth call fails, without the traceback; None if it works."""
    simulator.pvg_sim_fail(what.encode(), nth)
    try:
        operation(values)
    except Exception as error:
        error.__traceback__ = None
        return error
    finally:
        simulator.pvg_sim_fail(what.encode(), 0)
    return None


@pytest.mark.parametrize("nth", [1, 2])
def test_the_pool_survives_a_refusal_of_the_driver(device, simulator, nth):
    """It asks for less, then empties its caches and asks again, before it gives up."""
    vg.empty_cache(device)
    x = np.ones(3_000_000, np.float32)
    simulator.pvg_sim_fail(b"malloc", nth)
    a = put(device, x)
    b = a + a
    assert_same(b, x + x)
    simulator.pvg_sim_fail(b"malloc", 0)


def test_a_refused_launch_says_which(device, simulator):
    x = put(device, np.ones(5, np.float32))
    simulator.pvg_sim_fail(b"launch", 1)
    with helpers.refused(
        device, vg.LaunchError, x, match=r"multiply.*_kernel.*cuda.*\.cuh?:\d+|multiply"
    ) as caught:
        x * x
    assert caught.value.operation == "multiply"
    assert caught.value.name == "cudaErrorLaunchOutOfResources"
    assert caught.value.code == 701
    assert vg.is_healthy()


def test_training_steps_are_all_or_nothing(device, simulator, direct_allocator):
    """A step that updates weights at its end leaves them as they are, whatever fails before."""
    rng = np.random.default_rng(3)
    data = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((20, 9), (5, 9), (5,), (20, 5))
    ]

    def step(x, weight, bias, target):
        output = vg.dense(x, weight, bias, "sigmoid")
        error = (output - target) * output * (1.0 - output)
        gradient = error.T @ x
        new_bias = bias - 0.1 * vg.sum(error, axis=0)
        vg.subtract(weight, 0.1 * gradient, out=weight)
        return new_bias

    arrays = [put(device, x) for x in data]
    expected = [helpers.bits(step(*arrays)), helpers.bits(arrays[1])]
    for what in ("malloc", "launch"):
        nth, failed = 1, 0
        while True:
            arrays = [put(device, x) for x in data]
            simulator.pvg_sim_fail(what.encode(), nth)
            try:
                bias = step(*arrays)
                break
            except (vg.OutOfMemoryError, vg.LaunchError) as error:
                error.__traceback__ = None
                failed += 1
            simulator.pvg_sim_fail(what.encode(), 0)
            assert [helpers.bits(a) for a in arrays] == [x.tobytes() for x in data]
            assert [helpers.bits(step(*arrays)), helpers.bits(arrays[1])] == expected
            nth += 1
        simulator.pvg_sim_fail(what.encode(), 0)
        assert failed >= 8
        assert [helpers.bits(bias), helpers.bits(arrays[1])] == expected


def test_a_refused_stream_or_event(device):
    """In a process of its own: the device's stream is made once."""
    code = """
import ctypes, json, pyvecgpu as vg
from pyvecgpu.native import library
loaded = library.load("sim")
results = []
loaded.pvg_sim_fail(b"stream", 1)
try:
    vg.zeros(3, device="sim")
    results.append("")
except vg.CUDAError as error:
    results.append(error.name)
loaded.pvg_sim_fail(b"stream", 0)
results.append(vg.ones(3, device="sim").tolist())
loaded.pvg_sim_fail(b"event", 1)
results.append(loaded.pvg_event_create(0))
results.append(loaded.pvg_last_error_cuda_name().decode())
results.append(vg.is_healthy())
print(json.dumps(results))
"""
    assert helpers.child_result(code) == [
        "cudaErrorOperatingSystem",
        [1, 1, 1],
        None,
        "cudaErrorOperatingSystem",
        True,
    ]
