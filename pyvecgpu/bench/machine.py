"""What was measured on: versions, the card, and its clock and power while it was at work."""

import importlib
import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

import pyvecgpu as vg

CLOCKS = {
    "clocks.sm": "sm_clock_mhz",
    "clocks.mem": "memory_clock_mhz",
    "power.draw": "power_w",
    "temperature.gpu": "temperature_c",
}


def describe(device, peers):
    """Return a dict: date, device, driver, library and versions of all that takes part."""
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    versions |= {peer: importlib.import_module(peer).__version__ for peer in peers}
    machine = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "device": str(device),
        "card": device.name,
        "versions": versions,
    }
    if device.type != "cpu":
        machine["library"] = device.backend.library.build_info()
        machine["versions"]["pyvecgpu"] = machine["library"].get("version", vg.__version__)
    if device.type == "cuda":
        machine["driver"] = query(device, ["driver_version"]).get("driver_version")
    return machine


def describe_cpu():
    """Return a dict: the processor's name, the cores for this process, and NumPy's BLAS."""
    match = re.search(r"^model name\s*: *(.*\S)", _read("/proc/cpuinfo"), re.MULTILINE)
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "name": match[1] if match else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "blas": " ".join(str(blas.get(key, "")) for key in ("name", "version")).strip(),
    }


def free_memory():
    """Return the bytes of host memory that are free for this process, caches counted as free."""
    match = re.search(r"^MemAvailable: *(\d+) kB", _read("/proc/meminfo"), re.MULTILINE)
    free = int(match[1]) * 1024 if match else os.sysconf("SC_AVPHYS_PAGES") * _PAGE
    limit, used = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdigit() and used.isdigit():
        free = min(free, int(limit) - int(used))
    return max(0, free)


_PAGE = os.sysconf("SC_PAGE_SIZE")


def _read(path):
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def clocks(device):
    """Return the card's clocks, power and temperature by CLOCKS; empty where nothing tells them."""
    values = query(device, list(CLOCKS)) if device.type == "cuda" else {}
    return {CLOCKS[name]: _number(value) for name, value in values.items()}


def query(device, names):
    """Return what nvidia-smi answers for the device, as a dict of strings; empty without it."""
    limits = device.limits
    bus = f"{limits.pci_domain_id:08x}:{limits.pci_bus_id:02x}:{limits.pci_device_id:02x}.0"
    command = ["nvidia-smi", f"--id={bus}", f"--query-gpu={','.join(names)}"]
    command.append("--format=csv,noheader,nounits")
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    values = [value.strip() for value in run.stdout.strip().split(",")]
    if run.returncode or len(values) != len(names):
        return {}
    return dict(zip(names, values, strict=True))


def _number(text):
    try:
        return float(text)
    except ValueError:  # such as [N/A]
        return None
