"""What small work costs the host: functions of Python and calls of the library, counted.

The counts are those of Python 3.11, at most: from 3.12 on comprehensions are no functions.
"""

import pytest

import pyvecgpu as vg
from pyvecgpu.bench import host

# name: (functions of Python, calls of the library), at most. "backward" is of a graph that was
# recorded before the counting: its looks at versions are not among its calls.
MOST = {
    "a + b": (2, 1),
    "a * 2": (4, 1),
    "exp(a)": (4, 1),
    "a.T": (3, 1),
    "a[3:5]": (5, 1),
    "a.reshape(4, 4)": (6, 1),
    "a.sum()": (7, 1),
    "item": (4, 1),
    "Linear": (13, 4),
    "Linear, no_grad": (11, 1),
    "training step": (112, 39),
    "forward": (50, 19),
    "backward": (48, 4),
    "zero_grad": (0, 0),
    "SGD step": (10, 1),
    "Adam step": (12, 1),
    "LSTM step": (599, 93),
    "GRU": (220, 25),
    "attention": (381, 39),
    "transformer block": (1560, 236),
    "DataLoader, a batch": (35, 4),
    "fit, a batch": (206, 32),
}


def test_every_piece_has_a_bound():
    assert set(MOST) == set(host.pieces())


@pytest.mark.devices("sim")
@pytest.mark.parametrize("name", MOST)
def test_work_of_the_host(device, name):
    place = vg.Device(device)
    with host.without_kernels(place):
        entered, calls = host.counts(host.pieces()[name](place), place)
    parts = host.PARTS.get(name, 1)
    most = MOST[name]
    assert entered / parts <= most[0] and calls / parts <= most[1], (entered / parts, calls / parts)
