"""Which mutant is judged next, while others may be at work, and what is noted of it."""

from .draw import Mutant, sequence


class Supply:
    """Mutants of areas, until there are as many as `options` says, or those that have lived."""

    def __init__(self, areas, state, options, is_known):
        self.areas, self.state, self.options, self.is_known = areas, state, options, is_known
        self.flying = dict.fromkeys((area.name for area in areas), 0)
        self.fresh = {area.name: self.sequence(area) for area in areas}
        self.again = [(area, row) for area in areas if options.again for row in self.rows(area)
                      if row["verdict"] != "killed" and not is_known(Mutant.of(row))]  # fmt: skip

    def rows(self, area):
        return self.state.area(area.name)["mutants"]

    def sequence(self, area):
        judged = {Mutant.of(row).what for row in self.rows(area)}
        judged |= {tuple(what) for what in self.state.area(area.name)["nothing"]}
        return (one for one in sequence(area, self.options.seed) if one.what not in judged)

    def next(self):
        """(area, mutant, its row or None), or None: there is none at the moment."""
        if self.options.again:
            area, row = self.again.pop(0) if self.again else (None, None)
            return area and (area, Mutant.of(row), row)
        left = list(self.fresh)
        while left and self.count() < self.options.n:
            area = min((one for one in self.areas if one.name in left),
                       key=lambda one: len(self.rows(one)) + self.flying[one.name])  # fmt: skip
            mutant = next(self.fresh[area.name], None)
            if mutant is None:
                left.remove(area.name)
                continue
            self.flying[area.name] += 1
            if not self.is_known(mutant):
                return area, mutant, None
            self.note(area, mutant, None, {"verdict": "lived", "by": "", "seconds": 0})
        return None

    def count(self):
        return sum(len(self.rows(area)) + self.flying[area.name] for area in self.areas)

    def note(self, area, mutant, row, verdict):
        """Write down a verdict; None: the mutant does not build, or makes no other code.

        What a row had at first stays in it.
        """
        self.flying[area.name] -= row is None
        if verdict is None:
            self.state.area(area.name)["nothing"].append(list(mutant.what))
        elif row is None:
            self.rows(area).append({**mutant.as_dict(), **verdict})
        else:
            row.setdefault("first", row["verdict"])
            row.update(verdict)
        self.state.save()
