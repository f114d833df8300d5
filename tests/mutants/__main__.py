"""Draws small mistakes by rules and sees whether the tests notice them: `make mutants`.

    make mutants N=300 SEED=7 AREA="runtime arrays"       # the areas: areas.py

Areas are drawn from equally often. A mutant is killed by the first test that fails, equivalent if
equivalent.json has it, with a reason, and otherwise it has lived. What does not build or makes no
other code is drawn again. Every verdict is kept in build/mutants at once, so that the same command
goes on where it was ended. When the sources change, mutants are drawn of the new ones, and verdicts
about places that are still there stay. In ARGS,

    --calls   learn first which test calls which function (two runs of all tests), so that those
              that call a mutated one come before the others
    --near    only the tests that concern the file, or that are known to call the mutated function:
              a quick look, with fewer killed
    --files   patterns: mutants of these files only
    --seconds of tests for each mutant, on a busy machine more than those that it has
    --build   seconds after which what a mutant makes build is left, as if it did not build: headers
              that everything includes take many minutes
    --workers so many side by side, each in a copy of the tree
    --minutes of several workers: what is not judged then is left for another run
    --without C tests that fail on this machine as it is
    --again   those that have lived once more: with all tests, or after the tests have changed;
              what they were at first is kept, and has a rate of its own
    --json    a file to write the result to; verdicts that it has of the same seed are not tried
              again where build/mutants has none, so that another machine can go on with it
"""

import argparse
import contextlib
import dataclasses
import datetime
import fcntl
import fnmatch
import functools
import hashlib
import json
import signal
import sys
from pathlib import Path

from . import crew
from .areas import AREAS, ROOT
from .draw import Mutant, digest, moved
from .supply import Supply
from .trial import SECONDS, Judge, Tree

KEPT = ROOT / "build" / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.json")


class State:
    """What is known so far, in a file; before there is one, `rows`. `sources` are those of now."""

    def __init__(self, path, seed, sources="", rows=()):
        self.path = path
        self.found = {"seed": seed, "sources": "", "areas": {}, "control": {}}
        if path.exists():
            self.found = json.loads(path.read_text(encoding="utf-8"))
        else:
            for row in rows:
                row = dict(row)
                self.area(row.pop("area"))["mutants"].append(row)
        if self.found["sources"] != sources:
            self.renew(sources)

    def renew(self, sources):
        """Draw of these sources from now on. Verdicts about places that are still there stay."""
        self.found["sources"] = sources
        for kept in self.found["areas"].values():
            places = [(row, moved(row)) for row in kept["mutants"]]
            kept["nothing"] = []
            kept["mutants"] = [{**row, **place.as_dict()} for row, place in places if place]

    def area(self, name):
        """Its rows, and of those that make no other code or do not build, what they are."""
        return self.found["areas"].setdefault(name, {"nothing": [], "mutants": []})

    def control(self):
        """The seconds of tests without a mutant, as long as the tests are the same."""
        files = [*ROOT.glob("tests/*.py"), *ROOT.glob("cuda/tests/*"),
                 *ROOT.glob("cuda/simulator/tests/*")]  # fmt: skip
        now = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()
        if self.found["control"].get("tests") != now:
            self.found["control"] = {"tests": now, "seconds": {}}
        return self.found["control"]["seconds"]

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.found, indent=1) + "\n", encoding="utf-8")
        new.replace(self.path)


def reasons():
    """{what a mutant is: why it makes no difference}.

    Where a file has the same line several times, the row says what stands in the line behind it.
    """
    rows = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {(row["path"], row["was"], row["now"], row.get("next")): row["reason"] for row in rows}


def reason_of(known, path, line, was, now):
    """Why a mutant makes no difference, or None."""
    lines = (ROOT / path).read_text(encoding="utf-8").split("\n") if (ROOT / path).exists() else []
    following = " ".join(lines[line].split()) if line < len(lines) else ""
    return known.get((path, was, now, None)) or known.get((path, was, now, following))


def say(text):
    print(text, flush=True)


def described(mutant):
    return f"{mutant.path}:{mutant.line}: {mutant.rule}: {mutant.was}  ->  {mutant.now}"


def verdict(outcome):
    word = "killed" if outcome.failed else "lived"
    return {"verdict": word, "by": outcome.by, "seconds": outcome.seconds}


def summary(state):
    """What the verdicts amount to: a dict for a file."""
    known, areas, every = reasons(), {}, []
    for name, kept in state.found["areas"].items():
        rows = []
        for row in kept["mutants"]:
            reason = reason_of(known, *(row[name] for name in ("path", "line", "was", "now")))
            same = row["verdict"] != "killed" and reason is not None
            plain = "equivalent" if same else "killed" if row["verdict"] == "killed" else "lived"
            rows.append({"area": name, **row, "verdict": plain})
        areas[name] = counts(rows)
        every += rows
    return {
        "benchmark": "mutants",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "seed": state.found["seed"],
        "areas": areas,
        "all": counts(every),
        "mutants": every,
    }


def written(found):
    """A summary as JSON, with a line for each mutant."""
    rows = ",\n  ".join(map(json.dumps, found["mutants"]))
    head = json.dumps({**found, "mutants": []}, indent=1)
    return head.replace('"mutants": []', f'"mutants": [\n  {rows}\n ]') + "\n"


def known_rows(path, seed):
    """The verdicts of a file that `written` made of the same seed."""
    if path is None or not path.exists():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))
    return found.get("mutants", []) if found["seed"] == seed else []


def counts(rows):
    found = {word: sum(row["verdict"] == word for row in rows)
             for word in ("killed", "equivalent", "lived")}  # fmt: skip
    counted = found["killed"] + found["lived"]
    first = sum(row.get("first", row["verdict"]) == "killed" for row in rows)
    rates = {"rate": found["killed"], "first_rate": first}
    rates = {name: some / counted if counted else None for name, some in rates.items()}
    return {"drawn": len(rows), **found, **rates}


def table(found):
    """Of each area and of all: the rates are of now, and of each mutant's first verdict."""
    names, rates = ("drawn", "killed", "equivalent", "lived"), ("rate", "first_rate")
    yield f"{'area':14}" + "".join(f"{name:>12}" for name in names) + f"{'rate':>8}{'at first':>10}"
    for name, row in {**found["areas"], "all": found["all"]}.items():
        now, first = ("-" if row[one] is None else f"{row[one]:.0%}" for one in rates)
        yield f"{name:14}" + "".join(f"{row[one]:12}" for one in names) + f"{now:>8}{first:>10}"
    yield from (described(Mutant.of(row)) for row in found["mutants"] if row["verdict"] == "lived")


def only(area, patterns):
    """An area with those files that a pattern names."""
    chosen = [path for path in area.paths() if any(fnmatch.fnmatch(path, one) for one in patterns)]
    return dataclasses.replace(area, files=" ".join(chosen))


def chosen_areas(text):
    by_name = {area.name.replace(" ", "-"): area for area in AREAS}
    if not text:
        return [area for area in AREAS if area.where == "sim"]
    unknown = set(text.split()) - set(by_name)
    if unknown:
        raise SystemExit(f"no such area: {', '.join(sorted(unknown))}; there are {list(by_name)}")
    return [by_name[name] for name in text.split()]


@contextlib.contextmanager
def alone(folder):
    """Inside the block no other run uses the folder: two would share a tree."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit("make mutants is running here already") from None
        yield


def judge_of(areas, state, options, folder):
    """A Judge with a tree in that folder of KEPT."""
    tree = Tree(KEPT / folder, areas[0].where, options.build)
    without = options.without.split()
    judge = Judge(tree, state.control(), options.near, options.seconds, without)
    judge.record(KEPT, [name for name in ("cpu", "sim")
                        if options.calls or (KEPT / f"calls-{name}.json").exists()])  # fmt: skip
    return judge


def try_all(areas, state, options):
    """Judge mutants until there are as many as are wanted."""
    known = reasons()

    def is_known(mutant):
        return reason_of(known, mutant.path, mutant.line, mutant.was, mutant.now)

    def said(area, mutant, outcome):
        if outcome is None:
            return None
        row = verdict(outcome)
        say(f"{area.name}: {row['verdict']} in {row['seconds']} s: {described(mutant)}"
            + (f"  [{row['by']}]" if row["by"] else ""))  # fmt: skip
        return row

    supply = Supply(areas, state, options, is_known)
    if options.workers > 1:
        make_judge = functools.partial(judge_of, areas, state, options)
        crew.judge_all(supply, make_judge, options.workers, options.minutes, said)
        return
    judge = judge_of(areas, state, options, "tree")
    while job := supply.next():
        supply.note(*job, said(*job[:2], judge.judge(*job[:2])))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=300, help="mutants, of all areas together")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--area", default="", help="names of areas, with - for a space")
    parser.add_argument("--files", default="", help="patterns: mutants of these files only")
    parser.add_argument("--again", action="store_true", help="only those that have lived")
    parser.add_argument("--calls", action="store_true", help="learn which test calls what")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of tests, for each mutant")
    parser.add_argument("--build", type=float, default=900, help="seconds that building may take")
    parser.add_argument("--near", action="store_true", help="only tests that concern the file")
    parser.add_argument("--workers", type=int, default=1, help="side by side")
    parser.add_argument("--minutes", type=float, default=1e4, help="of several workers")
    parser.add_argument("--without", default="", help="C tests that fail on this machine")
    parser.add_argument("--json", type=Path, help="write the result there")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests need it, in the background too
    areas, drawn = chosen_areas(options.area), AREAS
    if options.files:
        drawn = areas = [only(area, options.files.split()) for area in areas]
    if len({area.where for area in areas}) > 1:
        raise SystemExit("areas for a GPU are run by themselves")
    with alone(KEPT):
        few = "-" + hashlib.sha256(options.files.encode()).hexdigest()[:8] if options.files else ""
        rows = known_rows(options.json, options.seed)
        state = State(KEPT / f"{options.seed}{few}.json", options.seed, digest(drawn), rows)
        try_all(areas, state, options)
    found = summary(state)
    say("\n".join(table(found)))
    if options.json:
        options.json.write_text(written(found), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
