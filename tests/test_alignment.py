"""Vectors are loaded and stored where they are aligned, whatever the offset of a view."""

import subprocess

import helpers
import offsets
import pytest

SANITIZED = helpers.ROOT / "build" / "asan" / "libpyvecgpu_sim.so"


def test_views_at_every_offset(device):
    assert offsets.run(device) > 900


@pytest.mark.checkers
@pytest.mark.devices("sim")
def test_no_access_is_misaligned(device):
    """The same with AddressSanitizer and UBSan, which end the process at the first bad access."""
    assert SANITIZED.exists(), "run `make sim-asan` first, as `make test-checkers` does"
    runtime = subprocess.run(
        ["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    code = "import warnings; warnings.simplefilter('ignore'); import offsets\n"
    done = helpers.run_child(
        code + "print(offsets.run('sim'))",
        timeout=600,
        LD_PRELOAD=runtime,
        ASAN_OPTIONS="detect_leaks=0",
        PYVECGPU_SIM_LIBRARY=SANITIZED,
        PYVECGPU_ALLOCATOR="direct",
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert int(done.stdout) > 900
