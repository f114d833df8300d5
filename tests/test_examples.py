"""Every public docstring has an example, and the examples print what they say, on every device."""

import examples
import numpy as np
import pytest

import pyvecgpu as vg

DOCUMENTED = examples.documented()


@pytest.fixture
def as_before(tmp_path, monkeypatch):
    """A folder of the example's own, and the settings that examples change."""
    monkeypatch.chdir(tmp_path)
    dtype, precision, options = (
        vg.get_default_dtype(),
        vg.get_matmul_precision(),
        vg.get_printoptions(),
    )
    yield
    assert vg.get_default_dtype() == dtype and vg.get_matmul_precision() == precision
    assert vg.get_printoptions() == options


@pytest.mark.parametrize("name", DOCUMENTED)
def test_example(device, name, as_before):
    count, wrong = examples.run(name, DOCUMENTED[name].__doc__, device)
    assert count, f"{name} has no example in its docstring"
    assert not wrong, wrong


@pytest.mark.parametrize("name", ["gcd", "lcm", "sinc"])
def test_no_warning_where_numpy_has_none(name, as_before):
    with np.errstate(divide="raise", invalid="raise"):
        assert not examples.run(name, DOCUMENTED[f"vg.{name}"].__doc__, "cpu")[1]


def test_what_counts():
    names = set(DOCUMENTED)
    for path, module in examples.MODULES.items():
        missing = {f"{path}.{n}" for n in examples.public_names(module)} - names
        values = {name: getattr(module, name.rpartition(".")[2]) for name in missing}
        numpys = (vg.linalg.LinAlgError, vg.ndindex)
        assert not [n for n, v in values.items() if callable(v) and v not in numpys]
    assert {"vg.abs", "vg.Array.T", "vg.nn.init.ones_", "vg.random.Generator.normal"} <= names
    assert len(names) > 600


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        ("[1. 2.]", "[1.0000001 2.]", True),
        ("[1. 2.]", "[1.1 2.]", False),
        ("[0.  1.]", "[-0.  1.]", True),
        ("[1.0, nan]", "[1.0, 2.0]", False),
        ("[1.0, nan]", "[nan, 1.0]", False),
        ("(2, 3)", "(2, 4)", False),
        ("(2, 3)", "(2, 3, 4)", False),
        ("True", "False", False),
        ("[[ 1. -1.]\n [-1.  1.]]", "[[ 1.        -0.9999999]\n [-0.9999999  1.       ]]", True),
    ],
)
def test_what_counts_as_the_same(want, got, same):
    assert examples.Checker().check_output(want + "\n", got + "\n", 0) == same


def test_a_wrong_example_is_found():
    assert examples.run("x", ">>> vg.ones(2).tolist()\n[1.0, 1.5]\n", "cpu")[1]
    assert examples.run("x", ">>> vg.ones(2).tolist()\n[1.0, 1.0]\n", "cpu") == (1, "")
    assert examples.run("x", "no example", "cpu") == (0, "")
