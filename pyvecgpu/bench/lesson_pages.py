"""What a lesson printed, for its page in docs/lessons, from the files of `make LESSONS_LOG=...`.

Each page has a block for the GPUs and one for the simulated card, between markers; report.py puts
them there. The lines are those of the program, as they were.
"""

DEVICES = ("gpu", "sim")  # those of the logs, each with a block of its own
NO_DEVICE = 77


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
    lines = [where(log), "", "```text", *program["output"], "```"]
    if program["status"] == NO_DEVICE:
        lines += ["", f"(Exit status {NO_DEVICE}: the device that the lesson needs was not there.)"]
    return "\n".join(lines)


def where(log):
    """Return a sentence about the card, the host and the date."""
    cpu, date = f"{log['cpu']['name']}, {log['cpu']['cores']} cores", log["date"][:10]
    if log["device"] == "sim":
        return f"The simulated card, run by a CPU ({cpu}; {date}). Its times are the CPU's."
    card = log["card"] if log["cards"] == 1 else f"{log['cards']} x {log['card']}"
    return f"{card} (driver {log['driver']}, CUDA {log['toolkit']}; host: {cpu}; {date})"
