"""A trigram model of characters: what a network has to beat.

The probability of a character after two others comes from counts, and from fewer characters before
it where counts are few (Witten and Bell): p(c | ab) = (n(abc) + t(ab) p(c | b)) / (n(ab) + t(ab)),
n being how often something was seen, t how many different characters followed. Below all of it
every character of the vocabulary is as likely as any other.
"""

import numpy as np


class Trigram:
    """Fitted on numbers of characters (n,), of `size` different ones."""

    def __init__(self, numbers, size):
        self.size = size
        self.counts = [Counts(numbers, size, order) for order in (1, 2, 3)]

    def probabilities(self, numbers):
        """Return the probability of each of numbers (n,) but the first two, after those before."""
        found = np.full(len(numbers) - 2, 1 / self.size)
        for order, counts in enumerate(self.counts, 1):
            found = counts.smoothed(codes(numbers[3 - order :], self.size, order), found)
        return found

    def loss(self, numbers):
        """Return the mean of -log(p) of all but the first two, as cross-entropy is."""
        return float(-np.log(self.probabilities(numbers)).mean())


class Counts:
    """How often each run of `order` characters was seen, and what was before its last one."""

    def __init__(self, numbers, size, order):
        self.size = size
        self.seen, self.often = np.unique(codes(numbers, size, order), return_counts=True)
        before = self.seen // size
        self.before, first = np.unique(before, return_index=True)
        self.total = np.add.reduceat(self.often, first)
        self.kinds = np.diff(np.append(first, len(before)))

    def smoothed(self, wanted, lower):
        """Return probabilities of the last characters of codes; lower: with one fewer before."""
        often = looked_up(self.seen, self.often, wanted)
        total, kinds = (
            looked_up(self.before, x, wanted // self.size) for x in (self.total, self.kinds)
        )
        known = total > 0
        mixed = (often + kinds * lower) / np.where(known, total + kinds, 1)
        return np.where(known, mixed, lower)


def codes(numbers, size, order):
    """Return one int64 for each run of `order` numbers."""
    count = len(numbers) - order + 1
    result = np.zeros(count, np.int64)
    for place in range(order):
        result = result * size + numbers[place : place + count]
    return result


def looked_up(keys, values, wanted):
    """Return the value of each key wanted, 0 where there is none."""
    places = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
