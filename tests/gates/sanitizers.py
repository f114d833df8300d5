"""R1: what compute-sanitizer's four tools said of every kernel, in what `make memcheck` left."""

import re

from .parts import ROOT, Part

REPORTS = ROOT / "build" / "memcheck"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
CLEAN = re.compile(r"(?:ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards displayed)")
CASES = re.compile(r"^shard \S+ on \w+: (\d+) of \d+ cases, ", re.MULTILINE)


def reports(tool):
    return sorted(REPORTS.glob(f"{tool}.*"))


def cases(tool):
    """How many cases of the sweep ran under a tool, as the shards say."""
    return sum(int(found) for path in reports(tool) for found in CASES.findall(path.read_text()))


def clean(tool):
    """A part: the cases of a tool, which has found nothing in any of its shards."""

    def run(device, start, wanted, end):
        assert reports(tool), "there is nothing in build/memcheck; `make memcheck` comes before"
        for path in reports(tool):
            text = path.read_text(encoding="utf-8")
            assert CLEAN.search(text), f"{path.name}: {text[-2000:]}"
        return cases(tool) - start

    return run


PARTS = [
    Part(f"cases under {tool}", lambda _, tool=tool: max(cases(tool), 1), clean(tool), ("cuda",))
    for tool in TOOLS
]
