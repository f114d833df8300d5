"""What a gate is made of: parts that count, each with a goal; what they found, as text.

A part is a function (device, start, wanted, end) -> how many it did. It goes on where earlier runs
have ended, at number `start`, does `wanted` more or what it can until time.monotonic() is `end`,
and raises AssertionError, with a sentence, if one of them was wrong or left something behind.
"""

import datetime
import gc
import hashlib
import math
import time
from pathlib import Path
from typing import NamedTuple

import helpers

import pyvecgpu as vg

ROOT = Path(__file__).resolve().parent.parent.parent
CARDS = ("sim", "cuda")


class Part(NamedTuple):
    """`goal`: a number, or a function of the device that counts; `enough`: which part of it is."""

    name: str
    goal: object
    run: object
    devices: tuple = ("cpu", *CARDS)
    enough: float = 1.0

    def goal_on(self, device):
        return self.goal(device) if callable(self.goal) else self.goal


def sources():
    """A fingerprint of the package and the library: figures of others are not added up."""
    digest = hashlib.sha256()
    files = [*ROOT.glob("pyvecgpu/**/*.py"), ROOT / "cuda" / "pyvecgpu.h"]
    for folder in ("runtime", "arrays", "kernels", "dtypes"):
        files += (ROOT / "cuda" / folder).rglob("*.cu*")
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def machine(device):
    """The card's name, or the processor's."""
    if device == "cuda":
        return vg.Device(device).name
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((x.partition(": ")[2] for x in lines if x.startswith("model name")), "unknown")


def fresh(gate, device):
    """The record of a gate that has counted nothing."""
    return {"gate": gate, "device": device, "machine": machine(device), "sources": sources(),
            "date": "", "seconds": 0.0, "parts": {}, "problem": ""}  # fmt: skip


def check_left(device, before):
    """AssertionError: there is more in use than before (helpers.in_use), and it stays so."""
    for _ in range(40):
        gc.collect()
        now = helpers.in_use(device)
        grown = {what: n for what, n in now.items() if n > before[what]}
        if not grown:
            return
        time.sleep(0.05)  # a thread that has been joined may take a while to be gone
    raise AssertionError(f"left: {grown}, before {before}")


def run_gate(record, parts, seconds, scale=1.0, report=print):
    """Run the parts that are for a record's device, and add to it what they did.

    The time is shared among the parts that are not done. report(text) is called after each part.
    True: none found anything wrong.
    """
    device = record["device"]
    todo = [part for part in parts if device in part.devices]
    began, record["problem"] = time.monotonic(), ""
    for number, part in enumerate(todo):
        found = record["parts"].setdefault(part.name, {"count": 0})
        now = time.monotonic()
        end = now + (began + seconds - now) / (len(todo) - number)
        try:
            found["goal"] = part.goal_on(device)
            wanted = math.ceil(found["goal"] * scale) - found["count"]
            if wanted > 0:
                found["count"] += part.run(device, found["count"], wanted, end)
        except Exception as error:
            while error.__context__ is not None:  # what went wrong first
                error = error.__context__
            told = str(error) if isinstance(error, AssertionError) else repr(error)
            record["problem"] = f"{part.name}: {told}"
            break
        finally:
            record["seconds"] = round(record["seconds"] + time.monotonic() - now, 1)
            record["date"] = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"
        report(f"{record['gate']} on {device}: {text_of(part.name, found)}")
    return not record["problem"]


def text_of(name, found):
    count, goal = found["count"], found["goal"]
    return f"{count:,} {name}" if count >= goal else f"{count:,} of {goal:,} {name}"


def figure(records, gate):
    """What the page says of a gate, of all devices that have measured it."""
    texts = []
    for record in records:
        if record["gate"] == gate and not record["problem"]:
            counts = "; ".join(text_of(*item) for item in record["parts"].items())
            texts.append(f"on {record['device']}: {counts} ({record['date']})")
    return ". ".join(texts) or "not measured"
