"""What a recording reads anew at each launch: numbers of the host, in arrays on the device.

A recorded kernel has the arguments that it was recorded with. What changes from one launch to the
next, such as the number of a step or the place in a stream of random numbers, it reads from an
array instead: numbers that are written there, in one copy, before the work is launched again, and
only if they have changed.
"""

import numpy as np

from ..dtypes import float64, uint64

WORDS = 1024  # numbers of each kind that a recording can have


class Recording:
    """The numbers of one recording; made before it begins, as its own memory is every launch's."""

    def __init__(self, backend):
        self._blocks = {dtype: _Block(backend, dtype) for dtype in (float64, uint64)}
        self.kept = {}  # what those who ask for numbers remember of this recording, by their names
        self._done, self._ends = [], []

    def renewed(self, dtype, count, compute, done=None):
        """Return raw data of so many numbers that are compute()'s at each launch.

        done(): called after each launch. ValueError: more numbers than there is room for.
        """
        if done is not None:
            self._done.append(done)
        return self._blocks[dtype].add(count, compute)

    def at_end(self, function):
        """Call function() when what is recorded is complete, or was given up."""
        self._ends.append(function)

    def end(self):
        for function in self._ends:
            function()

    def launch(self, work):
        """Do work() with new numbers."""
        for block in self._blocks.values():
            block.renew()
        work()
        for done in self._done:
            done()


class _Block:
    """An array of numbers, and what computes them."""

    def __init__(self, backend, dtype):
        self.backend, self.data = backend, backend.empty((WORDS,), dtype)
        if not self.data:
            backend.fail()
        self.values, self.written = np.zeros(WORDS, dtype), None
        self.used, self.sources = 0, []

    def add(self, count, compute):
        start, self.used = self.used, self.used + count
        if self.used > WORDS:
            raise ValueError(
                "recording a graph: it has too many steps of optimisers that differ; record fewer"
            )
        self.sources.append((slice(start, self.used), compute))
        view = self.backend.slice(self.data, (start,), (1,), (count,))
        if not view:
            self.backend.fail()
        return view

    def renew(self):
        """Compute all numbers, and then write them if they are not those that were written last."""
        if not self.used:
            return
        for place, compute in self.sources:
            self.values[place] = np.array(compute(), self.values.dtype)
        if self.written is None or self.values.tobytes() != self.written:
            self.backend.copy_from_host(self.values, self.data)
            self.written = self.values.tobytes()
