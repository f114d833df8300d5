"""Runs the lessons, one after another, and says which of them failed. `make lessons` starts it:

    python3 cuda/lessons/run.py --card gpu --title "lessons on the GPU" --may-lack 20_ PROGRAM ...

A program ends with 0 if all was right, and with 77 if the device that it needs is not there, which
is accepted from those whose names begin as --may-lack says. Anything else makes the exit code 1.
It is stopped after --seconds.

With --log FILE what the lessons printed, not what the solutions printed, is kept as JSON, with the
machine, if none of all failed. docs/measured/README.md says what is in the file. A program's text
is then shown when it ends, not line by line. Needs nothing but Python itself.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

NO_DEVICE = 77


def main():
    """Run the programs, print a summary, write the log; return the exit code."""
    arguments = parse()
    passed, absent, failed, log = 0, [], [], []
    for program in arguments.programs:
        path = Path(program)
        name = "/".join(path.parts[-2:])  # sim/01_first_kernel or solutions/01_first_kernel
        status, output = run(program, arguments)
        if status == 0:
            passed += 1
        elif status == NO_DEVICE and path.name.startswith(tuple(arguments.may_lack)):
            absent.append(name)
        else:
            failed.append(f"{program} (status {status})")
        if path.parent.name != "solutions":
            log.append({"name": path.name} | source_of(path.name))
            log[-1] |= {"status": status, "output": output}
    without = " ".join(["without a device:", *absent])
    print(f"\n{arguments.title}: {passed} passed, {len(absent)} {without}")
    if failed:
        print("FAILED:", *failed)
        return 1
    if arguments.log:
        text = json.dumps(describe(arguments) | {"programs": log}, indent=1)
        Path(arguments.log).write_text(text + "\n", encoding="utf-8")
    return 0


def parse():
    parser = argparse.ArgumentParser(description="Run the lessons.")
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--title", required=True, help="the beginning of the last line")
    parser.add_argument("--card", choices=["gpu", "sim"], required=True, help="built for which")
    parser.add_argument("--may-lack", action="append", default=[], metavar="BEGINNING")
    parser.add_argument("--seconds", default="600", help="for each program")
    parser.add_argument("--log", metavar="FILE", help="keep what the lessons print")
    parser.add_argument("--toolkit", default="", help="for the log: the release of nvcc")
    return parser.parse_args()


def run(program, arguments):
    """Return a program's exit status, and for the log the lines that it printed."""
    print(f"\n{program}", flush=True)
    command = ["timeout", arguments.seconds, program]
    if not arguments.log:
        return subprocess.run(command).returncode, []
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, **both, text=True, errors="replace")
    print(done.stdout, end="", flush=True)
    checkout = f"{Path(__file__).resolve().parents[2]}/"  # where it lies is nobody's concern
    return done.returncode, done.stdout.replace(checkout, "").splitlines()


def source_of(name):
    """Return the fingerprint of a lesson's code, by which it is known later whether the lines that
    were kept are still those of the program; nothing for a program that is no lesson."""
    path = Path(__file__).parent / f"{name}.cu"
    return {"source": fingerprint(path.read_text(encoding="utf-8"))} if path.exists() else {}


def fingerprint(text):
    """Return twelve digits that change with a program's code, not with its comments or blanks."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return hashlib.sha256("".join(code.split()).encode()).hexdigest()[:12]


def describe(arguments):
    """Return what the programs ran on, with the keys that `bench --json` uses."""
    name = re.search(r"^model name\s*: *(.*\S)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    cpu = {
        "name": name[1] if name else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
    }
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    machine = {"benchmark": "lessons", "date": date, "device": arguments.card}
    if arguments.card == "gpu":
        cards = [line.split(", ") for line in ask_driver("name,driver_version")]
        machine |= {"card": cards[0][0], "cards": len(cards), "driver": cards[0][1]}
        machine["toolkit"] = arguments.toolkit
    return machine | {"cpu": cpu}


def ask_driver(what):
    """Return a line of nvidia-smi's answer for each GPU."""
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
