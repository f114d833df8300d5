"""What is read-only is written by nothing: each use of uses.py that writes to an array refuses it.

A broadcast view is read-only whether or not it repeats elements, and so are views of it.
"""

import helpers
import numpy as np
import pytest
import uses
from helpers import put
from uses import USES

import pyvecgpu as vg

SAID = "read-only|contiguous"  # the latter of statistics and the like, which have to be both
WRITERS = [(name, which) for name, use in USES.items() for which in use.written]


def repeated(device, values):
    """The first element, everywhere."""
    first = put(device, values[(slice(1),) * values.ndim])
    return first, vg.broadcast_to(first, values.shape)


def whole(device, values):
    """All elements, in a view of one copy of them."""
    owner = put(device, values)
    return owner, vg.broadcast_to(owner, (1, *values.shape))[0]


@pytest.mark.parametrize("view", [repeated, whole])
@pytest.mark.parametrize(("name", "which"), WRITERS)
def test_read_only_arrays(device, name, which, view):
    if name == "lesson" and device == "cpu":
        pytest.skip("lessons are kernels")
    use = USES[name]
    arrays = {key: put(device, x) for key, x in uses.values(use).items()}
    owner, arrays[which] = view(device, np.asarray(uses.values(use)[which]))
    with helpers.refused(device, ValueError, owner, *arrays.values(), match=SAID):
        use.run(arrays)


@pytest.mark.parametrize("places", [[], [1, 9]], ids=["none", "beyond the end"])
@pytest.mark.parametrize("view", [repeated, whole])
def test_what_is_read_only_is_told_first(device, view, places):
    """Before indices are looked at, if there are any."""
    owner, array = view(device, np.zeros((3, 2), np.float32))
    places = put(device, np.array(places, np.int64))
    for write in (
        lambda: array.__setitem__(places, 1.0),
        lambda: array.__setitem__(places, put(device, np.ones((len(places), 2), np.float16))),
        lambda: vg.index_add(array, places, put(device, np.ones((len(places), 2), np.float32))),
        lambda: vg.put_along_axis(array, places[:, None], 1.0, axis=0),
    ):
        with helpers.refused(device, ValueError, owner, array, match="read-only"):
            write()
