"""Libraries that are loaded at their first use: where they are looked for, and what is said."""

import ctypes.util
import os
import sys

import pytest

import pyvecgpu as vg
from pyvecgpu.native import toolkit


@pytest.fixture
def places(monkeypatch, tmp_path):
    """A folder in the path of modules, and no library known or elsewhere."""
    monkeypatch.setattr(toolkit, "_libraries", {})
    monkeypatch.setattr(toolkit, "FILES", {"cuSOLVER": "libnosuch.so.12"})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def install(folder):
    """The C library in the place of one of the toolkit's."""
    folder.mkdir(parents=True)
    name = ctypes.util.find_library("c")
    handle = ctypes.CDLL(name)
    assert handle.abs(-3) == 3
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split()[-1] for line in maps if "libc.so.6" in line)
    os.symlink(path, folder / "libnosuch.so.12")


def test_what_is_missing_is_named(places):
    with pytest.raises(vg.DeviceUnavailableError) as caught:
        toolkit.load("cuSOLVER", {})
    assert "libnosuch.so.12" in str(caught.value)
    assert "pip install pyvecgpu[math]" in str(caught.value)
    install(places / "nvidia" / "cu13" / "lib")  # and it is looked for again
    assert toolkit.load("cuSOLVER", {}).cdll.abs(-2) == 2


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_a_toolkit_is_looked_into(places, monkeypatch, variable):
    install(places / "toolkit" / "lib64")
    monkeypatch.setenv(variable, str(places / "toolkit"))
    library = toolkit.load("cuSOLVER", {"abs": "i"})
    assert library is toolkit.load("cuSOLVER", {})
    library.call("abs", 0)
    with pytest.raises(vg.CUDAError, match="cuSOLVER: abs failed with status 7") as caught:
        library.call("abs", -7)
    assert caught.value.code == 7


def test_a_wheel_comes_before_a_toolkit(places, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", "/cuda")
    found = list(toolkit.candidates("lib.so"))
    assert found[0] == str(places / "nvidia" / "cu13" / "lib" / "lib.so")
    assert found[1:] == ["/cuda/lib64/lib.so", "/usr/local/cuda/lib64/lib.so", "lib.so"]
