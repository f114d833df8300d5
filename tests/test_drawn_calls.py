"""Calls drawn at random, mostly right ones: short ways and long ones, and all devices, agree.

Somebody who observes the seam closes all short ways of the CPU device (dispatch.observe). Results
of both have the same bits, but for NaNs, the last digit of some floats, and functions that leave
open which they are; errors are of the same type. On cards values may differ by some ulps.
test_mistakes.py draws the calls.
"""

from collections import Counter

import helpers
import numpy as np
import pytest
import test_mistakes
from test_mistakes import are_close, pick

from pyvecgpu.dispatch import observe

CALLS = 20_000
SHAPES = [(), (5,), (17,), (130,), (1, 4), (3, 3), (4, 3), (2, 70), (3, 5, 2), (0, 3)]
VALUES = [0, 0, 1, 1, -1, 2, 3, None, None, True, False, (0,), (1,), (0, 1), (2, 3), [0, 1],
          1.5, 2.0, "float32", "float64"]  # fmt: skip
EDGES = (np.nan, np.inf, -np.inf, -0.0, 0.0, 0.1, 3e4, -2.5)
# Which result of several is right: in what order the rest is, or where in what is not sorted.
OPEN = ("argpartition", "partition", "searchsorted", "digitize")


class Drawn(test_mistakes.Drawn):
    """Small numbers of both signs, and in half of the floats NaN, infinity and both zeros."""

    def __init__(self, rng):
        dtype, shape = pick(rng, [*helpers.DTYPES, *helpers.FLOATS]), pick(rng, SHAPES)
        values = np.asarray(rng.integers(-3, 4, shape))
        self.values = (abs(values) if dtype.kind in "ub" else values).astype(dtype)
        self.layout = pick(rng, list(test_mistakes.LAYOUTS))
        if helpers.is_float(dtype) and values.size and rng.integers(2):
            places = rng.integers(values.size, size=len(EDGES))
            self.values.reshape(-1)[places] = np.array(EDGES).astype(dtype)


def outcome(call, device):
    """What came of a call, as text, and the values there are."""
    try:
        return call.run(device)
    except IndexError:  # a card's report, which comes when values are read
        return "IndexError", []
    except Exception as error:  # other than those of mistakes
        return f"{type(error).__name__}: {error}", []


def same(a, b):
    if a.dtype.kind in "OUS":
        return bool(np.all(a == b))
    as_float = a.astype(np.float64) if a.dtype.kind in "fV" else a
    is_nan = np.isnan(as_float)
    return np.array_equal(is_nan, np.isnan(b.astype(as_float.dtype))) and (
        np.where(is_nan, a.dtype.type(0), a).tobytes()
        == np.where(is_nan, a.dtype.type(0), b).tobytes()
    )


@pytest.fixture(autouse=True)
def mostly_right(monkeypatch):
    monkeypatch.setattr(test_mistakes, "Drawn", Drawn)
    monkeypatch.setattr(test_mistakes, "VALUES", VALUES)


def agree(call, about, first, second, close):
    """AssertionError: the outcomes of a call are different."""
    assert first[0] == second[0], f"{about}: {call}:\n{first}\nand\n{second}"
    if call.name not in OPEN:
        same = all(map(close, first[1], second[1]))
        assert same, f"{about}: {call}:\n{first}\nand\n{second}"


def nearly(a, b):
    """The same but for the last digit of what is summed in another order, or of a root."""
    if same(a, b) or a.dtype.char not in "fd":
        return same(a, b)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return False
    return bool(np.all((a == b) | np.isnan(a) | (abs(a - b) <= 4 * np.spacing(abs(a)))))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_short_and_long_ways_agree(request):
    seed, kinds, names = request.config.getoption("--seed"), Counter(), set()
    for number in range(CALLS):
        call = test_mistakes.Call(seed, number)
        short = outcome(call, "cpu")
        with observe(lambda seen: None):
            long = outcome(call, "cpu")
        agree(call, f"--seed {seed}, {number}", short, long, nearly)
        kinds[short[0] if short[0].endswith("Error") else "result"] += 1
        names |= {call.name} if short[0].startswith("[]") else set()
    assert kinds["result"] > CALLS / 4 and len(names) > 200, (kinds, len(names))


@pytest.mark.devices("sim", "cuda")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_devices_agree(device, request):
    seed = request.config.getoption("--seed")
    for number in range(CALLS, 2 * CALLS):
        call = test_mistakes.Call(seed, number)
        on_cpu, on_card = outcome(call, "cpu"), outcome(call, device)
        agree(call, f"on {device}, --seed {seed}, {number}", on_cpu, on_card, are_close)
