"""What a lesson printed, for its page in docs/lessons, from the files of `make LESSONS_LOG=...`.

Each page has a block for the GPUs and one for the simulated card, between markers; report.py puts
them there. The lines are those of the program, as they were; where its code has changed since, the
block says so, and how they are recorded anew.
"""

import importlib.util
from pathlib import Path

RUNNER = Path("cuda/lessons/run.py")  # in the repository, where report.py runs
DEVICES = ("gpu", "sim")  # those of the logs, each with a block of its own
NO_DEVICE = 77
CHANGED = (
    "(An earlier version of the program printed this; `make lessons LESSONS_LOG=FILE` records it",
    "anew.)",
)


def markers(device):
    """Return the lines before and after a block."""
    return f"<!-- {device}: begin, written by python -m pyvecgpu.bench.report -->", (
        f"<!-- {device}: end -->"
    )


def blocks(number, logs, none):
    """Return (first marker, last marker, block) for both blocks of the page of lesson `number`.

    `none` is the block of a card of which there is no log.
    """
    result = []
    for device in DEVICES:
        parts = [part(log, number) for log in logs if log["device"] == device]
        result.append((*markers(device), "\n\n".join(parts) if parts else none))
    return result


def part(log, number):
    """Return what one log says about a lesson: where it ran, and what it printed."""
    (program,) = [one for one in log["programs"] if one["name"].startswith(f"{number}_")]
    date = {"date": program.get("date", log["date"])}
    lines = [where(log | date), "", "```text", *program["output"], "```"]
    if program["status"] == NO_DEVICE:
        lines += ["", f"(Exit status {NO_DEVICE}: the device that the lesson needs was not there.)"]
    if has_changed(program):
        lines += ["", *CHANGED]
    return "\n".join(lines)


def has_changed(program):
    """Whether a lesson's code is no longer that which printed what the log has."""
    if "source" not in program or not RUNNER.exists():
        return False
    spec = importlib.util.spec_from_file_location("lesson_runner", RUNNER)
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner.source_of(program["name"]).get("source") != program["source"]


def where(log):
    """Return a sentence about the card, the host and the date."""
    cpu, date = f"{log['cpu']['name']}, {log['cpu']['cores']} cores", log["date"][:10]
    if log["device"] == "sim":
        return f"The simulated card, run by a CPU ({cpu}; {date}). Its times are the CPU's."
    card = log["card"] if log["cards"] == 1 else f"{log['cards']} x {log['card']}"
    return f"{card} (driver {log['driver']}, CUDA {log['toolkit']}; host: {cpu}; {date})"
