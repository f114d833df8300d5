"""Every function's kernels wait for the streams that wrote their operands, one each.

The simulated card defers: work on a stream runs when something waits for it. So a function that
does not wait for the writer of an operand reads what was there before, always.
"""

import contextlib

import pytest
from helpers import assert_same, host, put
from test_seam import CASES, PUBLIC, SETTINGS, A, B, function

import pyvecgpu as vg
from pyvecgpu.native import library

pytestmark = pytest.mark.devices("sim")

CALLS = {name: call for name, (call, _) in CASES.items()}
CALLS |= {
    name: lambda a, b, name=name: function(name)(a) for name in sorted(PUBLIC - SETTINGS - {*CALLS})
}
CALLS |= {
    "dense with a bias": lambda a, b: vg.dense(a, a, b[1]),
    "copy": lambda a, b: copied_into(vg.zeros_like(a), b),
    "transposed copy": lambda a, b: a.T.copy(),
    "to the host": lambda a, b: a,
}
NOT_OF_VALUES = {"empty", "empty_like"}  # whose results have none
BEFORE = -3.0  # what the operands hold until the stream that writes to them runs


@contextlib.contextmanager
def deferred_streams():
    """Three streams of a card that defers: functions that make one of them the current one."""
    loaded = library.load("sim")
    assert loaded.pvg_sim_set(b"deferred", 1) == 0
    streams = [loaded.pvg_stream_create(0) for _ in range(3)]
    try:
        yield [lambda stream=stream: loaded.pvg_stream_set_current(stream, 0) for stream in streams]
    finally:
        loaded.pvg_stream_set_current(None, 0)
        for stream in streams:
            assert loaded.pvg_stream_release(stream) == 0
        vg.synchronize("sim")
        assert loaded.pvg_sim_set(b"deferred", 0) == 0


def copied_into(place, array):
    place[...] = array
    return place


def values(result):
    return [host(one) for one in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", sorted({*CALLS} - NOT_OF_VALUES))
def test_operands_are_read_after_they_were_written(device, name):
    new = put(device, A), put(device, B)
    old = [vg.full_like(array, BEFORE) for array in new]
    expected = values(CALLS[name](*new))
    with deferred_streams() as (*writers, reader):
        vg.synchronize(device)
        for use, operand, array in zip(writers, old, new, strict=True):
            use()
            operand[...] = array
        reader()
        for one, other in zip(values(CALLS[name](*old)), expected, strict=True):
            assert_same(one, other)
