"""The array API standard: its names and parameters, as array_api_strict has them, and the runner of
array-api-tests.
"""

import inspect

import pytest
from conformance import run

import pyvecgpu as vg

# Defaults of our own: NumPy's name for correction, which both together must not be given, and
# what the standard has no default for.
DEFAULTS = {("expand_dims", "axis"), ("linspace", "num"), ("squeeze", "axis")}
DEFAULTS |= {("std", "correction"), ("var", "correction")}


def strict():
    import array_api_strict as module

    names = {name for name in module.__all__ if "array_api_strict" not in name.lower()}
    return module, names - {"ArrayAPIStrictFlags"}


@pytest.mark.needs("array_api_strict")
def test_the_standards_names_are_here():
    _, names = strict()
    assert [name for name in sorted(names) if not hasattr(vg, name)] == []
    assert vg.__array_api_version__ == run.VERSION


@pytest.mark.needs("array_api_strict")
def test_the_standards_parameters_are_here():
    """By their names, their ways to be given and, but for those above, their defaults."""
    module, names = strict()
    compared = 0
    for name in names:
        function = getattr(module, name)
        if not callable(function) or inspect.isclass(function):
            continue
        own = inspect.signature(getattr(vg, name)).parameters
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                continue
            ours = own.get(parameter.name)
            assert ours is not None, f"{name}: no parameter {parameter.name}"
            by_name = ours.kind in (ours.KEYWORD_ONLY, ours.POSITIONAL_OR_KEYWORD)
            assert by_name, f"{name}: {parameter.name} cannot be given by its name"
            undefined = "UNDEF" in repr(parameter.default)
            if not undefined and (name, parameter.name) not in DEFAULTS:
                assert ours.default == parameter.default, f"{name}: {parameter.name}"
            compared += 1
    assert compared > 100


# The runner ---------------------------------------------------------------------------------------

LIST = """\
# Both: the first,
# in two lines.
cpu sim
a.py::one
a.py::two[x

# A card alone.
sim
b.py::three
"""


def test_reasons_are_read():
    first = "Both: the first, in two lines."
    assert run.read_expected(LIST, "cpu") == {"a.py::one": first, "a.py::two[x": first}
    assert run.read_expected(LIST, "sim")["b.py::three"] == "A card alone."
    with pytest.raises(SystemExit, match="no reason"):
        run.read_expected("cpu\na.py::one\n", "cpu")


def test_both_kinds_of_surprises_are_told():
    expected = run.read_expected(LIST, "cpu")
    fine = {"a.py::one": "failed", "a.py::two[x1]": "failed", "a.py::two[y]": "passed"}
    assert run.compare(fine | {"a.py::four": "skipped"}, expected) == []
    told = run.compare(fine | {"a.py::one": "passed", "a.py::two[y]": "failed"}, expected)
    assert len(told) == 2 and "take it off" in told[0] and told[1] == "fails: a.py::two[y]"
    sometimes = run.read_expected("# Values.\ncpu sometimes\na.py::one\n", "cpu")
    for outcome in ("passed", "failed"):
        assert run.compare({"a.py::one": outcome}, sometimes) == []
    assert run.compare({"a.py::one": "failed"}, expected) == ["no test has this name: a.py::two[x"]
    assert run.compare(fine | {"c.py::five": "error"}, expected) == ["fails: c.py::five"]


def test_the_list_can_be_read():
    for device in ("cpu", "sim", "cuda"):
        expected = run.read_expected(run.EXPECTED.read_text(), device)
        listed = run.functions(expected)
        assert expected and len(listed) <= run.MOST_FUNCTIONS
        assert all("::test_" in name for name in listed)
