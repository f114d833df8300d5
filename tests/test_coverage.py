"""Every kernel of the library is in the launch log. conftest.py puts this file at the end.

The log is kept from the start of the session; what only this file launches is the sweep.
"""

import helpers
import pytest
import sweep

import pyvecgpu as vg


@pytest.mark.devices("sim", "cuda")
def test_every_kernel_is_launched(device):
    exist = sweep.kernels(vg.Device(device).backend.library.path)
    assert len(exist) > 100, "the library's symbols cannot be read"
    assert sweep.run(device) > 500
    launched = sweep.launched(device)
    assert launched <= exist.keys(), "the log has offsets that belong to no kernel"
    missing = sorted(name for offset, name in exist.items() if offset not in launched)
    if helpers.BFLOAT16 is None:  # the report's header says that these are not tested
        missing = [name for name in missing if "BFloat16" not in name]
    assert not missing, (
        f"{len(missing)} of {len(exist)} kernels were never launched:\n" + "\n".join(missing)
    )


def test_the_sweep_runs_on_the_cpu():
    """Its references are right: NumPy's own results pass it."""
    assert sweep.run("cpu") == len(sweep.cases())
