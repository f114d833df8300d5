"""What was measured on: versions, the card, and its clock and power while it was at work."""

import importlib
import platform
import subprocess
from datetime import datetime, timezone

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
