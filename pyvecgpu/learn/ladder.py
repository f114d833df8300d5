"""The lessons by name, and where a checkout keeps their pages, programs and recorded output."""

import json
import re
from pathlib import Path
from typing import NamedTuple

WHY = "why"  # docs/why.md, which comes before the first lesson
TITLES = (
    "the first kernel",
    "device memory",
    "the limits of a device",
    "errors",
    "blocks and grids",
    "all cores of the CPU",
    "transfers",
    "two dimensions",
    "three dimensions",
    "functions on the device",
    "one matrix product, four kernels",
    "a sum",
    "convolution",
    "normalisation",
    "one layer of a network",
    "many small products",
    "a network, trained from zero",
    "tensor cores",
    "CUDA graphs",
    "two GPUs",
)
LESSONS = {f"{number:02}": title for number, title in enumerate(TITLES, 1)}
NO_CHECKOUT = (
    "The lessons' pages and programs are in pyvecgpu's repository, and this is an installed "
    "package without them. With a checkout, run this command in its top folder."
)
_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")


class NotThereError(Exception):
    """There is no such lesson, or no checkout to read it from; the text says so to the reader."""


class Checkout(NamedTuple):
    """A folder with the repository's files. NotThereError: what is asked for is not in it."""

    folder: Path

    def page(self, name):
        """Return the path of a lesson's page, "05", or of the one on why."""
        return self.folder / ("docs/why.md" if name == WHY else f"docs/lessons/{name}.md")

    def program(self, name):
        """Return the source of a lesson, "05", or of a reader's own copy, "mine/05"."""
        found = sorted((self.folder / "cuda/lessons").glob(f"{name}*.cu"))
        if len(found) != 1:
            there = "no" if not found else f"{len(found)} programs"
            raise NotThereError(f"{there} cuda/lessons/{name}*.cu; it has to be one")
        return found[0]

    def recorded(self, program):
        """Return (where it ran, lines of output) for each recorded run of a lesson, cards first."""
        runs = []
        for path in sorted((self.folder / "docs/measured").glob("lessons-*.json")):
            log = json.loads(path.read_text(encoding="utf-8"))
            card = log.get("card", "simulated card")
            for one in log["programs"]:
                if one["name"] == program and one["status"] == 0:
                    runs.append((f"{card}, {log['date'][:10]}", one["output"]))
        return runs


def checkout(folder=None):
    """Return the Checkout that this package is in. NotThereError: it was installed without one."""
    folder = Path(__file__).parents[2] if folder is None else Path(folder)
    if not all((folder / part).exists() for part in ("cuda/lessons", "docs/lessons", "Makefile")):
        raise NotThereError(NO_CHECKOUT)
    return Checkout(folder)


def name_of(text):
    """Return "05" for what a reader calls lesson 05, or "why". NotThereError: there is none."""
    if text == WHY:
        return WHY
    number = re.fullmatch(r"0*(\d+)(?:_\w+)?(?:\.(?:md|cu))?", text)
    name = f"{int(number[1]):02}" if number else text
    if name not in LESSONS:
        raise NotThereError(
            f"there is no lesson {text!r}; the first is 01, the last {max(LESSONS)}"
        )
    return name


def listing():
    """Return the lines that list the ladder."""
    lines = ["why  why deep learning runs faster on GPUs, with figures of this machine"]
    lines += [f"{number:>3}  {title}" for number, title in LESSONS.items()]
    lines += [
        "",
        "python -m pyvecgpu learn 05         reads lesson 05 in the terminal",
        "python -m pyvecgpu learn 05 --run   builds it, runs it, and shows recorded figures beside",
        "python -m pyvecgpu learn why --run  measures what the page says, on this machine",
    ]
    return lines


def pair(own, recorded):
    """Return (own line, recorded line) for the lines with figures whose words are the same.

    The line that begins with `measured:` is always the same one, as its words may have changed.
    """
    left, pairs = list(recorded), []
    for line in own:
        words = _words(line)
        same = next((other for other in left if _words(other) == words), None)
        if same is not None:
            left.remove(same)
            if line != same:
                pairs.append((line, same))
    return pairs


def _words(line):
    is_measured = line.startswith("measured:")
    return "measured:" if is_measured else " ".join(_FIGURE.sub("#", line).split())
