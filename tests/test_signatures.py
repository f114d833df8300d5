"""Parameters: what NumPy takes by position is taken by position here, in NumPy's order.

Compared with inspect.signature, for every function and every method whose name NumPy has, up to the
first parameter that is not here. The array, and what stands beside it, may have other names.
"""

import inspect

import numpy as np
import pytest

import pyvecgpu as vg

BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def signature(function):
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # written in C, without one
        return None


def positions(found):
    return [p.name for p in found.parameters.values() if p.kind in BY_POSITION]


def shared(ours, numpys):
    names = [name for name in dir(ours) if not name.startswith("_") and hasattr(numpys, name)]
    pairs = {name: (getattr(ours, name), getattr(numpys, name)) for name in names}
    return {
        name: tuple(signature(one) for one in pair)
        for name, pair in pairs.items()
        if all(callable(one) and not inspect.isclass(one) for one in pair)
    }


def compare(name, ours, numpys):
    """How many parameters are compared; an AssertionError where one has another place."""
    own, given = positions(ours), positions(numpys)
    named = [n for n in given if n in ours.parameters and n not in ("x", "x1", "x2")]
    first = given.index(named[0]) if named else len(given)
    count = 0
    for place in range(first, len(given)):
        if given[place] not in ours.parameters:
            break
        assert place < len(own) and own[place] == given[place], (
            f"{name}{ours}: {given[place]} is argument {place} of NumPy's {numpys}"
        )
        count += 1
    return count


@pytest.mark.parametrize(
    ("ours", "numpys", "least"),
    [(vg, np, 45), (vg.Array, np.ndarray, 4), (vg.linalg, np.linalg, 10), (vg.fft, np.fft, 10)],
)
def test_what_numpy_takes_by_position(ours, numpys, least):
    compared = 0
    for name, (own, given) in shared(ours, numpys).items():
        if own is not None and given is not None:
            compared += compare(name, own, given)
    assert compared >= least


@pytest.mark.needs("array_api_strict")
@pytest.mark.parametrize("extension", ["linalg", "fft"])
def test_extensions_of_the_standard(extension):
    """Every function of the array API's extension, with its parameters, their order and defaults.

    What it takes by keyword alone may be taken by position here, and there may be more.
    """
    strict = pytest.importorskip("array_api_strict")
    ours, standard = getattr(vg, extension), getattr(strict, extension)
    for name in standard.__all__:
        own, given = (inspect.signature(getattr(one, name)).parameters for one in (ours, standard))
        only = inspect.Parameter.POSITIONAL_ONLY
        count = sum(p.kind is only for p in given.values())
        assert sum(p.kind is only for p in list(own.values())[:count]) == count, name
        for key, parameter in given.items():
            if parameter.kind is only:
                continue
            assert key in own and own[key].kind is not only, f"{name}: {key}"
            assert own[key].default == parameter.default, f"{name}: {key}"
        order = [key for key in own if key in given and given[key].kind is not only]
        assert [key for key in given if given[key].kind is not only][: len(order)] == order or (
            all(given[key].kind is inspect.Parameter.KEYWORD_ONLY for key in order)
        ), name
        more = [p for key, p in list(own.items())[count:] if key not in given]
        assert all(p.default is not inspect.Parameter.empty for p in more), name


# NumPy's methods are written in C: as its documentation has them.
METHODS = {
    "sum": ["axis", "dtype", "out", "keepdims"],
    "prod": ["axis", "dtype", "out", "keepdims"],
    "mean": ["axis", "dtype", "out", "keepdims"],
    "max": ["axis", "out", "keepdims"],
    "min": ["axis", "out", "keepdims"],
    "argmax": ["axis", "out"],
    "argmin": ["axis", "out"],
    "any": ["axis", "out", "keepdims"],
    "all": ["axis", "out", "keepdims"],
    "var": ["axis", "dtype", "out", "ddof", "keepdims"],
    "std": ["axis", "dtype", "out", "ddof", "keepdims"],
    "clip": ["min", "max", "out"],
    "round": ["decimals", "out"],
    "fill": ["value"],
    "astype": ["dtype"],
    "nonzero": [],
    "cumprod": ["axis", "dtype", "out"],
    "cumsum": ["axis", "dtype", "out"],
    "diagonal": ["offset", "axis1", "axis2"],
    "repeat": ["repeats", "axis"],
    "swapaxes": ["axis1", "axis2"],
    "squeeze": ["axis"],
    "take": ["indices", "axis", "out", "mode"],
    "put": ["indices", "values", "mode"],
    "compress": ["condition", "axis"],
    "choose": ["choices", "out", "mode"],
    "sort": ["axis", "kind"],
    "argsort": ["axis", "kind"],
    "searchsorted": ["v", "side", "sorter"],
    "partition": ["kth", "axis"],
    "argpartition": ["kth", "axis"],
    "tofile": ["fid", "sep", "format"],
    "dump": ["file"],
    "dumps": [],
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_arguments_in_numpys_order(name):
    own = positions(signature(getattr(vg.Array, name)))[1:]
    assert own[: len(METHODS[name])] == METHODS[name]


def test_a_few_by_position(device):
    x = vg.asarray([[1, 2], [3, 4]], "float32", device=device)
    out = vg.zeros(2, "float64", device=device)
    assert vg.sum(x, 1, "float64", out, False) is out and out.tolist() == [3, 7]
    assert vg.max(x, 0).tolist() == [3, 4] and x.max(0, None, True).shape == (1, 2)
    assert vg.mean(x, None, "float64").dtype == vg.float64
    assert vg.mean(x, 1, "int64").tolist() == [1, 3] and x.mean(1, "int64").dtype == vg.int64
    assert vg.full((2,), 1, "int8", device=device).dtype == vg.int8
    assert vg.add(x, x, x) is x and x.tolist() == [[2, 4], [6, 8]]
    assert vg.expand_dims(x, 2).shape == (2, 2, 1)
    assert vg.tensordot(x, x, 1).shape == (2, 2)
