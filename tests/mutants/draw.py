"""Draws mutants: of an area a rule, equally often, and of the rule's places one by chance.

The whole sequence follows from the seed and the sources. No place comes twice.
"""

import collections
import functools
import hashlib
import random
from dataclasses import asdict, dataclass

from . import c_rules, python_rules
from .areas import ROOT


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    rule: str
    start: int  # characters of the file
    end: int
    new: str
    was: str  # the lines that it changes, and what becomes of them, without needless spaces
    now: str

    def apply(self, text):
        return text[: self.start] + self.new + text[self.end :]

    as_dict = asdict

    @classmethod
    def of(cls, row):
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})

    @property
    def what(self):
        """What it does, wherever the line has moved to."""
        return self.path, self.rule, self.new, self.was, self.now


def mutant(path, text, site, new):
    first = text.rfind("\n", 0, site.start) + 1
    last = (text + "\n").find("\n", site.end)
    was, now = text[first:last], text[first : site.start] + new + text[site.end : last]
    short = (" ".join(lines.split()) for lines in (was, now))
    line = text.count("\n", 0, site.start) + 1
    return Mutant(path, line, site.rule, site.start, site.end, new, *short)


@functools.cache
def sites_of(text, is_python):
    found = (python_rules if is_python else c_rules).sites(text)
    return tuple(site for site in found if site.others)


def moved(row, root=ROOT):
    """The mutant of a row in the sources of today, or None where its place is gone."""
    old, found = Mutant.of(row), []
    if (root / old.path).exists():
        text = (root / old.path).read_text(encoding="utf-8")
        for site in sites_of(text, old.path.endswith(".py")):
            if site.rule == old.rule and old.new in site.others:
                found.append(mutant(old.path, text, site, old.new))
    same = [one for one in found if one.what == old.what]
    return min(same, key=lambda one: abs(one.line - old.line), default=None)


def sequence(area, seed, root=ROOT):
    """All mutants of an area in the order in which they are tried."""
    rng, places = random.Random(f"{seed} {area.name}"), collections.defaultdict(list)
    texts = {path: (root / path).read_text(encoding="utf-8") for path in area.paths(root)}
    for path, text in texts.items():
        for site in sites_of(text, path.endswith(".py")):
            places[site.rule].append((path, site))
    for rule in sorted(places):
        rng.shuffle(places[rule])
    while places:
        rule = rng.choice(sorted(places))
        path, site = places[rule].pop()
        if not places[rule]:
            del places[rule]
        yield mutant(path, texts[path], site, rng.choice(site.others))


def digest(areas, root=ROOT):
    """A few letters that stand for the sources that mutants are drawn from."""
    found = hashlib.sha256()
    for path in sorted({path for area in areas for path in area.paths(root)}):
        found.update(path.encode() + (root / path).read_bytes())
    return found.hexdigest()[:12]
