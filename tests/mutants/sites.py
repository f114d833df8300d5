"""A place in a text that a rule can change, and what the rules for both languages share."""

from dataclasses import dataclass

RULES = (
    *("comparison", "constant", "condition", "operand", "statement", "wait", "release", "error"),
)


@dataclass(frozen=True)
class Site:
    rule: str  # one of RULES
    start: int  # characters of the text
    end: int
    others: tuple  # what can stand there instead

    def __post_init__(self):
        object.__setattr__(self, "others", tuple(self.others))


def constants(value):
    """Other numbers: one more, one less, twice as much, none."""
    return [str(n) for n in dict.fromkeys((value + 1, value - 1, 2 * value, 0 * value))
            if n != value]  # fmt: skip


def blanked(old, new):
    """`new` with as many lines as `old` has, so that all that follows keeps its number."""
    return new + "\n" * (old.count("\n") - new.count("\n"))


def swapped(text, first, second):
    """The site of two parts of a text, (start, end), that change places; None if they are equal."""
    a, between, b = text[slice(*first)], text[first[1] : second[0]], text[slice(*second)]
    return Site("operand", first[0], second[1], (b + between + a,)) if a != b else None
