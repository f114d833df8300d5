"""python -m pyvecgpu: info about this machine, a demo, measurements, and the lessons."""

import argparse
import json
import os
import sys

COMMANDS = {
    "info": "the library, the driver and the devices, or why CUDA is off",
    "demo": "train a network that learns to read handwritten digits",
    "bench": "measure operations on the GPU",
    "learn": "read, build and run the lessons",
}


def main(argv=None):
    """Run one command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m pyvecgpu",
        description="Arrays and neural-network operations on NVIDIA GPUs for NumPy users.",
        epilog="`python -m pyvecgpu COMMAND --help` shows the options of a command.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    arguments, rest = parser.parse_known_args(argv)
    if arguments.command is None:
        if rest:
            parser.error(f"unknown option {rest[0]}")
        parser.print_help()
        return 0
    if arguments.command == "demo":
        from .demo.command import main as run
    elif arguments.command == "bench":
        from .bench import main as run
    elif arguments.command == "learn":
        from .learn.command import main as run
    else:
        run = info
    return quietly(run, rest)


def quietly(run, rest):
    """Return the command's exit code; 1 if its output was cut off (`| head`), 130 after Ctrl-C."""
    try:
        code = run(rest) or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush
        return 1
    except KeyboardInterrupt:
        return 130


def info(argv):
    """Print what there is on this machine; the status is 0 with and without a GPU."""
    parser = argparse.ArgumentParser(prog="python -m pyvecgpu info", description=COMMANDS["info"])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    try:
        facts = collect()
    except ValueError as error:  # a PYVECGPU_* variable
        parser.error(str(error))
    print(json.dumps(facts, indent=2) if arguments.json else describe(facts))
    return 0


def collect():
    """Return what `info` shows as a dict that JSON can hold."""
    import platform

    import numpy

    import pyvecgpu as vg

    from .device import resolve, siblings
    from .native import library, settings

    settings.current()
    facts = {
        "version": vg.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "header": library.header(),
        "cuda": _library_facts("cuda"),
        "sim": _library_facts("sim"),
        "default_device": None,
        "devices": [],
    }
    try:
        facts["default_device"] = str(resolve(None))
    except vg.PyVecGPUError as error:  # PYVECGPU_DEVICE or PYVECGPU_LIBRARY asks for what is not
        facts["default_device_error"] = str(error)
    for device_type in ("cpu", "cuda", "sim"):
        try:
            first = vg.Device(device_type)
        except vg.PyVecGPUError:
            continue  # the reason is in facts[device_type]
        facts["devices"] += [_device_facts(device) for device in siblings(first)]
    return facts


def _library_facts(device_type):
    import ctypes

    import pyvecgpu as vg

    from .native import library

    path, _ = library.path_of(device_type)
    facts = {"available": False, "library": path}
    try:
        loaded = library.load(device_type)
        driver, runtime = ctypes.c_int(), ctypes.c_int()
        loaded.pvg_driver_version(driver)
        loaded.pvg_runtime_version(runtime)
        facts |= {"build": loaded.build_info()}
        facts |= {"driver": _version(driver.value), "runtime": _version(runtime.value)}
        vg.Device(device_type)
        facts["available"] = True
    except vg.PyVecGPUError as error:
        facts["reason"] = str(error)
    return facts


def _version(number):
    """Return "13.0" for 13000; None for 0."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _device_facts(device):
    import pyvecgpu as vg

    limits, memory = device.limits, vg.memory_info(device)
    return {
        "device": str(device),
        "name": device.name,
        "memory": {"free": memory.free, "total": memory.total},
        "limits": None if limits is None else limits._asdict(),
    }


def describe(facts):
    """Return the facts as plain text."""
    lines = [
        f"pyvecgpu {facts['version']}, Python {facts['python']}, NumPy {facts['numpy']}",
        f"default device: {facts['default_device'] or facts['default_device_error']}",
        f"header for C: {facts['header']}",
    ]
    for device_type in ("cuda", "sim"):
        library = facts[device_type]
        state = "available" if library["available"] else f"off: {library['reason']}"
        lines += ["", f"{device_type}: {state}", f"  library        {library['library']}"]
        for key, value in library.get("build", {}).items():
            lines.append(f"  {key:<14} {value}")
        if "build" in library and device_type == "cuda":
            lines.append(f"  driver         {_driver(library['driver'])}")
            lines.append(f"  runtime        CUDA {library['runtime']}")
    for device in facts["devices"]:
        memory = device["memory"]
        lines += ["", f"{device['device']}: {device['name']}"]
        lines.append(f"  {'memory_free':<38} {memory['free']}")
        lines.append(f"  {'memory_total':<38} {memory['total']}")
        lines += [f"  {key:<38} {value}" for key, value in (device["limits"] or {}).items()]
    return "\n".join(lines)


def _driver(version):
    return f"supports CUDA {version}" if version else "none found"


if __name__ == "__main__":
    sys.exit(main())
