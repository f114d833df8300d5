"""NumPy's own examples give the same here, but for a share that is known (numpy_examples.py)."""

import json
import subprocess
import sys

import helpers
import numpy as np
import numpy_examples

import pyvecgpu as vg

LEAST = 0.87  # of all lines; the rest are records, texts, dates and masked arrays


def test_most_examples_give_the_same():
    """In a process of their own, as they leave files open; on the CPU device."""
    done = subprocess.run(
        [sys.executable, numpy_examples.__file__],
        env=helpers.child_environment(PYVECGPU_DEVICE="cpu"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    total = sum(counts.values()) - counts[numpy_examples.BOTH_RAISE]
    assert total > 2000
    assert counts[numpy_examples.SAME] >= LEAST * total, done.stdout


def test_what_is_alike():
    alike = numpy_examples.are_alike
    assert alike(vg.asarray([1.0, 2.0]), np.array([1.0, 2.0])) and alike((vg.asarray(1),), (1,))
    for other in (np.array([1, 2]), np.array([1.0]), np.array([1.0, 2.1]), [1.0], None):
        assert not alike(vg.asarray([1.0, 2.0]), other)
    assert not alike([1.0], [1.0, 2.0])
    found = [outcome for _, outcome, _ in numpy_examples.outcomes("x", Documented)]
    assert found == ["same", "other values", "raises", "both raise"]


class Documented:
    """Lines for the test above.

    >>> np.sum(np.arange(3))
    >>> np.__name__ == "numpy"
    >>> np.dtype("int8")
    >>> np.no_such_name
    """
