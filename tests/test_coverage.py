"""The sweep: every kernel of the library is launched, by a process that sees what it should not do.

It runs once on each device, under the debug allocator: canaries around each array stay intact, and
fresh memory is 0xFF (NaN), so a result that used it, or that was not written, is wrong. conftest.py
puts this file at the end: kernels that other tests launch have been launched too.
"""

import functools

import helpers
import pytest
import sweep

import pyvecgpu as vg

TOGETHER = True  # the sweep runs once for all of them
CHILD = """
import forced, json, sweep, pyvecgpu as vg
from pyvecgpu.native.abi import Option
if {device!r} == "sim":
    forced.simulate_cards()
vg.Device({device!r}).backend.library.set_option(Option.OPTION_LAUNCH_LOG, 1)
checked = sweep.run({device!r})
errors = vg.counters({device!r})["canary_errors"]
blocks = vg.memory_info({device!r}).blocks
print(json.dumps([checked, errors, blocks, sorted(sweep.launched({device!r}))]))
"""


@functools.cache
def swept(device):
    """How many cases were checked, canaries that were hit, blocks left, offsets of kernels."""
    code = CHILD.format(device=device)
    return helpers.child_result(code, PYVECGPU_ALLOCATOR="debug", timeout=600)


@pytest.mark.devices("sim", "cuda")
def test_no_operation_writes_outside_or_reads_fresh_memory(device):
    checked, errors, blocks, _ = swept(device)
    assert checked > 500
    assert errors == 0
    assert blocks == 0


@pytest.mark.devices("sim", "cuda")
def test_every_kernel_is_launched(device):
    exist = sweep.kernels(vg.Device(device).backend.library.path)
    assert len(exist) > 100, "the library's symbols cannot be read"
    launched = sweep.launched(device) | {*swept(device)[-1]}
    assert launched <= exist.keys(), "the log has offsets that belong to no kernel"
    missing = sorted(name for offset, name in exist.items() if offset not in launched)
    if device == "cuda":
        missing = [name for name in missing if not sweep.OF_OLDER_CARDS.fullmatch(name)]
    if helpers.BFLOAT16 is None:  # the report's header says that these are not tested
        missing = [name for name in missing if "BFloat16" not in name]
    assert not missing, (
        f"{len(missing)} of {len(exist)} kernels were never launched:\n" + "\n".join(missing)
    )


def test_the_sweep_runs_on_the_cpu():
    """Its references are right: NumPy's own results pass it."""
    assert sweep.run("cpu") == len(sweep.cases())
