"""Runs gates of a release: `make gates GATES="R5 R9" SECONDS=600`, or, which is the same,

    PYTHONPATH=.:tests python -m gates R5 R9 --device sim --seconds 600 --json FILE

    --device   cpu, sim or cuda
    --seconds  for each gate; what is not done then is left to the next run
    --scale    this part of each goal: 0.001 is a quick look
    --json     a file of results. What it has of the same sources on the same device is gone on
               with; of other sources a gate begins anew
    --page     write the figures of all files in docs/measured into docs/reliability.md

A gate that finds something says what, and the status is 1.
"""

import argparse
import importlib
import json
import re
import sys
from pathlib import Path

import helpers

import pyvecgpu as vg

from .parts import ROOT, figure, fresh, run_gate, sources

# The module of each.
GATES = {
    "R1": "sanitizers.PARTS",  # after `make memcheck`
    "R3": "calls.PARTS",
    "R5": "memory.PARTS",
    "R6": "faults.PARTS",
    "R7": "runs.R7",
    "R8": "processes.PARTS",
    "R9": "bits.PARTS",
    "R10": "files.PARTS",
    "R12": "host.PARTS",  # after `make coverage`
    "R14": "runs.R14",
}
PAGE = ROOT / "docs" / "reliability.md"


def parts_of(gate):
    module, name = GATES[gate].split(".")
    return getattr(importlib.import_module(f"gates.{module}"), name)


def read(path):
    if path is None or not path.exists():
        return {"benchmark": "gates", "records": []}
    return json.loads(path.read_text(encoding="utf-8"))


def record_of(found, gate, device):
    """The record to go on with, or a fresh one."""
    for record in found["records"]:
        if (record["gate"], record["device"]) == (gate, device) and record["sources"] == sources():
            return record
    return fresh(gate, device)


def measured_records():
    """Those of all files that are worth keeping."""
    kept = sorted((ROOT / "docs" / "measured").glob("gates-*.json"))
    return [record for path in kept for record in read(path)["records"]]


def keep(path, record):
    """Put a record in its place in a file, to which others may write as well."""
    found = read(path)
    key = (record["gate"], record["device"])
    others = [r for r in found["records"] if (r["gate"], r["device"]) != key]
    found["records"] = sorted([*others, record], key=lambda r: (int(r["gate"][1:]), r["device"]))
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def with_figures(page, records):
    """The text of the page with the figures of the gates that were measured."""
    for gate in dict.fromkeys(record["gate"] for record in records):
        row = rf"^(\| {gate} \| .* \| )[^|]* \|$"
        page = re.sub(row, rf"\g<1>{figure(records, gate)} |", page, flags=re.MULTILINE)
    return page


def main(arguments=None):
    parser = argparse.ArgumentParser(description="gates of a release", prog="gates")
    parser.add_argument("gates", nargs="*", choices=[*GATES, []], metavar="|".join(GATES))
    parser.add_argument("--device", choices=("cpu", "sim", "cuda"), default="sim")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args(arguments)
    try:
        vg.Device(options.device)
        if options.device != "cpu":
            helpers.warm_up(options.device)
    except vg.DeviceUnavailableError as error:
        parser.error(str(error))
    failed = False
    for gate in options.gates:
        record = record_of(read(options.json), gate, options.device)

        def report(text, record=record):
            print(text, flush=True)
            if options.json:
                keep(options.json, record)

        if not run_gate(record, parts_of(gate), options.seconds, options.scale, report):
            print(f"{gate} on {options.device} FAILED: {record['problem']}", file=sys.stderr)
            failed = True
        if options.json:
            keep(options.json, record)
    if options.page:
        page = with_figures(PAGE.read_text(encoding="utf-8"), measured_records())
        PAGE.write_text(page, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
