"""Devices, their limits, the current device, memory information, counters, the launch log."""

import pickle
import threading

import helpers
import numpy as np
import pytest
from helpers import assert_same, put

import pyvecgpu as vg
from pyvecgpu.device import runs


def test_one_object_for_each_device(device):
    assert vg.Device(device) is vg.Device(vg.Device(device))
    assert pickle.loads(pickle.dumps(vg.Device(device))) is vg.Device(device)
    assert vg.Device(device) in vg.devices()
    assert repr(vg.Device(device)) == f"Device('{vg.Device(device)}')"
    assert vg.Device(device).name
    assert vg.is_available(device)
    if device != "cpu":
        assert str(vg.Device(device)) == f"{device}:0"
        assert vg.Device(f"{device}:0") is vg.Device(device)


@pytest.mark.parametrize(
    "name",
    ["", "gpu", "cuda:-1", "cuda:01", "cuda:", "cpu:0", "CPU", "cuda:1x", "sim:9999999", " cpu"],
)
def test_names_that_no_device_has(name):
    with pytest.raises(ValueError, match="device"):
        vg.Device(name)


def test_devices_that_are_not_there(device):
    if device == "cpu":
        with helpers.refused(device, TypeError):
            vg.Device(0)
        return
    count = sum(d.type == device for d in vg.devices())
    with helpers.refused(device, vg.DeviceUnavailableError, match=str(count)):
        vg.Device(f"{device}:{count}")
    with helpers.refused(device, vg.DeviceUnavailableError):
        vg.zeros(2, device=f"{device}:99")
    assert not vg.is_available(f"{device}:99")


@pytest.mark.parametrize(
    ("architecture", "runs_on", "does_not"),
    [
        ("75", [(7, 5)], [(7, 0), (7, 2), (8, 0), (9, 0)]),
        ("80", [(8, 0), (8, 6), (8, 9)], [(7, 5), (9, 0), (10, 0)]),
        ("86", [(8, 6), (8, 9)], [(8, 0), (9, 0)]),
        ("90a", [(9, 0)], [(8, 9), (9, 1), (10, 0)]),
        ("100", [(10, 0), (10, 3)], [(9, 0), (11, 0), (12, 0)]),
        ("100f", [(10, 0), (10, 3)], [(9, 0), (12, 0)]),
        ("ptx75", [(7, 5), (8, 0), (9, 0), (12, 1)], [(7, 0), (6, 1)]),
        ("ptx90a", [(9, 0)], [(7, 5), (10, 0)]),
        ("simulator", [(7, 5), (12, 0)], []),
    ],
)
def test_which_cards_run_what_was_built(architecture, runs_on, does_not):
    for capability in runs_on:
        assert runs(architecture, capability), capability
    for capability in does_not:
        assert not runs(architecture, capability), capability


BUILT_FOR_OTHERS = """
import json
from pyvecgpu.native import library
facts = library.Library.build_info
library.Library.build_info = lambda self: facts(self) | {"architectures": %r}
import pyvecgpu as vg
device, found = %r, []
try:
    found.append(vg.zeros(2, device=device).tolist())
except vg.DeviceUnavailableError as error:
    found.append(str(error))
print(json.dumps([*found, vg.is_available(device), device in [d.type for d in vg.devices()]]))
"""


@pytest.mark.devices("sim", "cuda")
def test_a_card_for_which_nothing_was_built(device):
    """It is unavailable from the beginning, with what to type, and so never the default device."""
    reason, available, listed = helpers.child_result(BUILT_FOR_OTHERS % ("30 35a ptx999", device))
    major, minor = vg.Device(device).limits.compute_capability
    for words in (f"{device}:0", f"{major}.{minor}", "30 35a ptx999", f"make ARCHS={major}{minor}"):
        assert words in reason
    assert not available and not listed
    fits = f"30 {major}{minor}"
    assert helpers.child_result(BUILT_FOR_OTHERS % (fits, device)) == [[0, 0], True, True]


@pytest.mark.devices("sim", "cuda")
def test_limits(device):
    limits = vg.Device(f"{device}:0").limits
    values = limits._asdict()
    assert len(values) >= 30
    assert all(type(value) is int and value >= 0 for value in values.values())
    assert limits.warp_size == 32
    assert limits.max_threads_per_block == 1024
    assert limits.max_grid_dim_x == 2**31 - 1
    assert limits.max_grid_dim_y == limits.max_grid_dim_z == 65535
    assert (
        limits.max_shared_memory_per_block_optin >= limits.max_shared_memory_per_block >= 48 << 10
    )
    assert limits.max_shared_memory_per_multiprocessor >= limits.max_shared_memory_per_block_optin
    assert limits.compute_capability >= (7, 5)
    assert (
        limits.multiprocessor_count > 0 and limits.l2_cache_size > 0 and limits.memory_bus_width > 0
    )
    assert limits is vg.Device(device).limits
    with pytest.raises(AttributeError):
        limits.warp_size = 64


def test_the_cpu_has_no_limits():
    assert vg.Device("cpu").limits is None


def test_current_device(device):
    with vg.device(device) as current:
        assert current is vg.Device(device)
        assert vg.zeros(2).device is current
        assert vg.asarray([1.0]).device is current
        with vg.device("cpu"):
            assert str(vg.zeros(2).device) == "cpu"
        assert vg.zeros(2).device is current
        seen = []
        thread = threading.Thread(target=lambda: seen.append(vg.zeros(1).device))
        thread.start()
        thread.join()
        assert vg.exp(np.zeros(3, np.float32)).tolist() == [1, 1, 1]
        with pytest.raises(KeyError), vg.device("cpu"):
            raise KeyError
        assert vg.zeros(2).device is current
    assert seen[0] is vg.zeros(1).device, "a thread begins with the default device"


def test_numpy_operands_go_to_the_device_that_is_asked_for(device):
    before = vg.counters(device)["copies_to_device"]
    vg.add(np.ones(3, np.float32), np.ones(3, np.float32), device=device)
    copies = vg.counters(device)["copies_to_device"] - before
    assert copies == (0 if device == "cpu" else 2)
    array = put(device, [1.0])
    vg.add(array, 1.0, device=device)
    other = "cpu" if device != "cpu" else "sim"
    with helpers.refused(device, ValueError, array):
        vg.add(array, 1.0, device=other)


@pytest.mark.devices("sim", "cuda")
def test_memory_info(device):
    before = vg.memory_info(device)
    array = vg.zeros(1_000_000, device=device)
    after = vg.memory_info(device)
    assert 4_000_000 <= after.used - before.used < 4_000_000 + (3 << 20)
    assert after.blocks == before.blocks + 1
    assert after.allocations == before.allocations + 1
    assert after.reserved >= after.used
    assert after.peak >= after.used
    assert 0 < after.free <= after.total
    assert after.limit is None
    view = array[1:]
    assert vg.memory_info(device).used == after.used
    del array, view
    assert vg.memory_info(device).used == before.used


@pytest.mark.devices("cpu")
def test_memory_info_of_the_cpu(device):
    info = vg.memory_info(device)
    assert info.used is None
    assert info.total > info.free > 0
    with helpers.refused(device, ValueError):
        vg.set_memory_limit(10**6, device)
    vg.set_memory_limit(None, device)
    vg.empty_cache(device)


@pytest.mark.devices("sim", "cuda")
def test_counters(device):
    x = np.ones((40, 50), np.float32)
    vg.synchronize(device)
    before = vg.counters(device)
    array = put(device, x)
    total = array + array
    assert_same(total, x + x)
    after = {key: value - before[key] for key, value in vg.counters(device).items()}
    assert after["launches"] == 1
    assert (after["copies_to_device"], after["bytes_to_device"]) == (1, x.nbytes)
    assert (after["copies_to_host"], after["bytes_to_host"]) == (1, x.nbytes)
    assert after["live_arrays"] == 2
    assert after["canary_errors"] == 0
    assert after["waits"] >= 1


@pytest.mark.devices("sim", "cuda")
def test_operations_do_not_wait(device):
    """Only reading on the host does; views and slices launch nothing."""
    array = put(device, np.ones((40, 50), np.float32))
    before = vg.counters(device)
    result = vg.sum(vg.exp(array.T[1:] @ array) * 2.0, axis=0)
    middle = vg.counters(device)
    assert middle["waits"] == before["waits"]
    assert middle["copies_to_device"] == before["copies_to_device"]
    assert result[3:].reshape(-1, 1).T.shape == (1, 47)
    assert vg.counters(device) == middle


def test_nothing_is_launched_for_nothing(device):
    empty = put(device, np.zeros((0, 3), np.float32))
    before = vg.counters(device)["launches"]
    for result in (
        empty + empty,
        vg.exp(empty),
        empty @ empty.T,
        empty.copy(),
        empty.T.copy(),
        empty.astype("int32"),
    ):
        assert result.size == 0
    empty[...] = 1.0
    assert vg.counters(device)["launches"] == before


@pytest.mark.devices("sim", "cuda")
def test_launch_log_names_kernels(device):
    _ = put(device, [1.0, 2.0]) * 3.0
    log = vg.launch_log(device)
    assert log and all(
        record.launches > 0 and record.offset > 0 and "_kernel" in record.kernel for record in log
    )


def test_synchronize(device):
    vg.synchronize(device)
    with vg.device(device):
        vg.synchronize()
    assert vg.is_healthy()


@pytest.mark.devices("sim", "cuda")
def test_no_driver_call_in_the_steady_state(device):
    """The pool hands freed memory out again."""
    array = put(device, np.ones(5000, np.float32))
    for _ in range(3):
        array = array * 1.0
    before = vg.memory_info(device).driver_calls
    for _ in range(200):
        array = array * 1.0
    assert vg.memory_info(device).driver_calls == before
