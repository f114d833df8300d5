"""What products say when the driver has no tensor maps, or refuses to make one.

A driver that does so is a library that stands before the real one: it hands out every function of
that, but for the one that the test is about. The CUDA runtime asks for all of them by name.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest
from forced import is_able

import pyvecgpu as vg

STAND_IN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int Lookup(const char *name, void **function, int version, uint64_t flags, int *found);

static int refuse(void) { return 1; } /* CUDA_ERROR_INVALID_VALUE, whatever the arguments are */

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                        int *found) {
    static Lookup *real;
    if (!real) {
        void *driver = dlopen(getenv("PVG_TEST_DRIVER"), RTLD_NOW | RTLD_LOCAL);
        if (!driver) abort();
        real = (Lookup *)dlsym(driver, "cuGetProcAddress_v2");
        if (!real) abort();
    }
    const int status = real(name, function, version, flags, found);
    if (strcmp(name, "cuGetProcAddress") == 0) *function = (void *)cuGetProcAddress_v2;
    if (strcmp(name, "cuTensorMapEncodeTiled") != 0) return status;
    if (strcmp(getenv("PVG_TEST_TENSOR_MAPS"), "refused") == 0) {
        *function = (void *)refuse;
        return status;
    }
    *function = NULL;
    if (found) *found = 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
    return 0;
}
"""

PRODUCT = """
import pyvecgpu as vg
x = vg.ones((2048, 2048), dtype=vg.float16, device="cuda")
try:
    vg.matmul(x, x)
except vg.CUDAError as error:
    print(type(error).__name__, error)
print(float(vg.sum(vg.ones(1000, device="cuda"))))
"""


def real_driver():
    """The path of the driver's library in this process, which has a device."""
    with open("/proc/self/maps") as maps:
        return re.search(r"(/\S*/libcuda\.so[.\d]*)$", maps.read(), re.MULTILINE).group(1)


@pytest.mark.devices("cuda")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("refused", "cuTensorMapEncodeTiled failed with code 1 for a tensor of (2048, 2048, 1)"),
        ("missing", "the driver has no cuTensorMapEncodeTiled (query result 1)"),
    ],
)
def test_a_driver_without_tensor_maps(device, tmp_path, way, message):
    if not is_able(device, "tensor"):
        pytest.skip("no kernel with tensor maps on this card")
    vg.ones(1, device=device)
    source = tmp_path / "driver.c"
    source.write_text(STAND_IN)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source, "-ldl"],
                   check=True)  # fmt: skip
    before = os.environ.get("LD_LIBRARY_PATH")
    folders = os.pathsep.join(filter(None, (str(tmp_path), before)))
    setting = {
        "LD_LIBRARY_PATH": folders,
        "PVG_TEST_DRIVER": real_driver(),
        "PVG_TEST_TENSOR_MAPS": way,
    }
    result = subprocess.run(
        [sys.executable, "-c", PRODUCT],
        env={**os.environ, **setting}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    name, _, said = result.stdout.splitlines()[0].partition(" ")
    assert name == "CUDAError" and message in said
    assert result.stdout.splitlines()[1:] == ["1000.0"]  # the device is none the worse
