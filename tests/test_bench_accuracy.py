"""bench accuracy: it finds errors that are there, of the size that they have, and tells them."""

import json

import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.bench import accuracy
from pyvecgpu.bench import main as bench


@pytest.mark.parametrize("dtype", accuracy.FORMATS)
def test_errors_are_counted_in_ulps(device, dtype):
    exact = np.array([1.0, 1.5, -3.0, 2.0**-6, 0.0, np.nan, np.inf, 1.0, 0.0])
    digits, lowest, _ = accuracy.FORMATS[dtype]
    units = np.array([1.0, 1.0, 2.0, 2.0**-6, 2.0**lowest, 1, 1, 1, 1]) * 2.0**-digits
    off = np.array([0, 1, -2, 3, 1, 0, 0, 0, 0])
    got = exact + off * units
    got[-2:] = np.nan, 2.0**lowest * 2.0**-digits * 5
    kind = getattr(vg, dtype)
    result = vg.astype(put(device, got), kind)
    errors = helpers.host(accuracy.errors_of(result, put(device, exact), dtype))
    assert errors.tolist() == [0, 1, 2, 3, 1, 0, 0, np.inf, 5]


def test_infinity_is_next_to_the_largest_number(device):
    most = np.finfo(np.float32).max.astype(np.float64)
    result = put(device, np.array([np.inf, np.inf, 0.0], np.float32))
    errors = accuracy.errors_of(result, put(device, np.array([most, 2.0**130, most])), "float32")
    assert helpers.host(errors).tolist() == [1, 0, 2**24 - 1]


def test_an_error_is_found_and_placed(device, monkeypatch):
    right = accuracy.function_of

    def wrong_of_one_input(name):
        def function(x):
            y = right(name)(x)
            if x.dtype == np.float32:
                y = vg.where(x == 1.5, y * (1 + 2.0**-20), y)
            return y

        return function

    monkeypatch.setattr(accuracy, "function_of", wrong_of_one_input)
    (found,) = accuracy.measure_single(vg.Device(device), ["exp"], 2**12, 2**10)
    assert found.at == (1.5,) and 8 <= found.ulp <= 12 and found.inputs == 2**12


@pytest.mark.parametrize("name", accuracy.PAIRS)
def test_pairs_are_drawn_where_results_are_finite(device, name):
    random = vg.random.default_rng(1, device=device)
    x, y = (helpers.host(one) for one in accuracy.draw_pairs(name, random, 2000))
    assert x.dtype == y.dtype == np.float32 and len(np.unique(x)) > 900
    with np.errstate(all="ignore"):
        result = helpers.host(getattr(vg, name)(put(device, x), put(device, y)))
    assert np.mean(np.isfinite(result) & (result != 0)) > 0.5


@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="no long double to judge by")
@pytest.mark.parametrize("name", sorted(accuracy.LONG))
def test_what_float64_is_judged_by(name):
    """The formulas in long double say what NumPy's functions of float64 say, by some ulp."""
    x = np.random.default_rng(1).standard_normal(2000) * 3
    with np.errstate(all="ignore"):
        result = accuracy.function_of(name)(vg.asarray(x)).numpy()
    assert np.isfinite(result).sum() > 300
    error, _ = accuracy.long_errors(name, x, result)
    assert error <= 16


def test_the_command(device, tmp_path, capsys):
    file = tmp_path / "errors.json"
    assert (
        bench(["accuracy", "--device", device, "--quick", "--only", "sq", "--json", str(file)]) == 0
    )
    report = json.loads(file.read_text())
    assert {(row["name"], row["dtype"]) for row in report["rows"]} >= {("sqrt", "float32")}
    assert all(row["ulp"] <= 0.5 for row in report["rows"])
    said = capsys.readouterr().out
    assert "sqrt" in said and "goal: float32 functions within 2 ulp" in said
