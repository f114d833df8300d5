"""Lists of numbers where functions take arrays: all do as with what asarray makes of the lists.

A number alone is one, too.
"""

import inspect

import numpy as np
import pytest
from helpers import host, put, refused

import pyvecgpu as vg
from pyvecgpu.functions import files, states, texts

LISTS = [[1.5, 2.5, -1.0], [2, 0, 1], [[1.0, 2.0], [3.0, 4.5]], [[True, False], [True, True]],
         range(3), (4, 1), [1 + 2j, 3.0], [], [2**63, 1]]  # fmt: skip
# What parameters are called that take arrays; others that have no default are 1 here, or these.
BESIDE = {"shape": (3,), "axes": (0,), "dtype": "complex128", "func": lambda x, axis: x,
          "new_shape": (2, 2), "choices": ([1, 2, 3], 4, 5), "funclist": [3],
          "condlist": [[True, False, True]], "indices_or_sections": 2}  # fmt: skip
ARRAYS = {
    *("x", "x1", "x2", "a", "a1", "a2", "u", "v", "p", "f", "fp", "xp", "y"),
    *("condition", "indices", "values", "bins", "weight"),
}
WRITE = {"index_add", "put", "place", "put_along_axis", "fill_diagonal", "copyto", "putmask"}
OTHER = {
    *("array_repr", "array_str", "empty_like", "may_share_memory", "shares_memory"),  # not values
    *("iterable", "isscalar", "ndim", "shape", "size"),  # of lists as they are
    *("from_dlpack", "ndenumerate", "printoptions", "set_printoptions", "dsplit"),
    "unpackbits",  # of uint8 alone
    *("polyadd", "polysub", "polymul", "polydiv", "polyder", "polyint", "polyval"),  # on the host
    "real_if_close",  # which asks for a dtype
}


def takes_arrays(name):
    function = getattr(vg, name, None)
    if not inspect.isfunction(function) or name in WRITE | OTHER:
        return False
    if name in {*files.__all__, *texts.__all__, *states.__all__}:
        return False
    return any(x.name in ARRAYS and x.default is x.empty for x in parameters(function))


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [x for x in found if x.kind is not x.VAR_KEYWORD]


def outcome(function, arguments):
    """What a call gives, as bits, or the exception that it raises."""
    try:
        return described(function(*arguments))  # on a device an index may be refused as late
    except (ValueError, TypeError, IndexError, ArithmeticError, RuntimeWarning) as error:
        return type(error)


def described(found):
    if isinstance(found, (list, tuple)):
        return [described(one) for one in found]
    if isinstance(found, (vg.Array, np.ndarray)):
        values = found.numpy() if isinstance(found, vg.Array) else found
        if values.dtype.kind in "fc":
            values = np.where(values != values, np.nan, values).astype(values.dtype)  # of one sign
        return (type(found), str(values.dtype), values.shape, values.tobytes())
    return repr(found)


@pytest.mark.parametrize("name", [name for name in vg.functions.__all__ if takes_arrays(name)])
def test_lists_are_what_asarray_makes_of_them(name):
    """Alone, beside an Array and beside a number, in every place that takes an array."""
    function, tried = getattr(vg, name), 0
    needed = [x for x in parameters(function) if x.default is x.empty]
    places = [i for i, x in enumerate(needed) if x.name in ARRAYS]
    for values in LISTS:
        array = vg.asarray(values)
        for other in (values, array, 1):
            for place in places:
                lists = [other if x.name in ARRAYS else BESIDE.get(x.name, 1) for x in needed]
                lists[place] = values
                arrays = [array if one is values else one for one in lists]
                if name == "insert" and values == [2**63, 1]:
                    continue  # which NumPy does not cast to int64 as it casts an array
                wanted = outcome(function, arrays)
                if not isinstance(wanted, type):
                    assert outcome(function, lists) == wanted, f"{name}({lists})"
                    tried += 1
    assert tried


@pytest.mark.parametrize("name", [name for name in vg.functions.__all__ if takes_arrays(name)])
def test_a_number_alone_is_what_asarray_makes_of_it(name):
    """Where a function needs nothing else; test_elementwise.py has those of two numbers."""
    function = getattr(vg, name)
    if len([x for x in parameters(function) if x.default is x.empty]) == 1:
        for number in (2.5, -3, True, 1j, 2**63):
            assert outcome(function, [number]) == outcome(function, [vg.asarray(number)]), number


def test_beside_numpy_they_are_numpys(device):
    """Of NumPy's dtypes, and the result is NumPy's array."""
    x = np.arange(3, dtype=np.float32)
    for function, numpys in ((vg.add, np.add), (vg.maximum, np.maximum), (vg.where, np.where)):
        before = (x > 1,) if function is vg.where else ()
        found = function(*before, x, [0.1, 0.2, 0.3], device=device)
        assert type(found) is np.ndarray
        assert np.array_equal(found, numpys(*before, x, [0.1, 0.2, 0.3]))
    joined = vg.concat([x, [0.1]])
    assert type(joined) is np.ndarray and np.array_equal(joined, np.concatenate([x, [0.1]]))


def test_beside_an_array_they_go_to_its_device(device):
    x = put(device, np.arange(3.0))
    one = [1, 2, 3]
    for found in (vg.add(one, x), x + one, one + x, vg.hypot(x, (0, 0, 0)) + 1):
        assert isinstance(found, vg.Array) and found.device == x.device and found.dtype == "float64"
        assert np.array_equal(found.numpy()[:1], [1.0])
    x += [1, 2, 3]
    assert x.tolist() == [1.0, 3.0, 5.0] and (x == [1, 3, 0]).tolist() == [True, True, False]
    assert ([[1.0, 1.0, 1.0]] @ x).tolist() == [9.0]
    assert vg.concat([x, [7]]).device == vg.stack([[0, 0, 0], x]).device == x.device
    assert vg.sum([1, 2], device=device).device == vg.median([1, 2], device=device).device


def test_lists_of_arrays_are_stacked(device):
    """On their device, which NumPy's operands have, too; numbers among them are weak."""
    x, y = put(device, np.array([1, 2], np.int16)), put(device, np.array([3, 4], np.int16))
    for call in (vg.exp, vg.transpose, lambda one: vg.sum(one, axis=0), lambda one: one + x,
                 lambda one: vg.add(one, 1), vg.nonzero, vg.sort,
                 lambda one: vg.maximum(x, one), lambda one: vg.minimum(one, y)):  # fmt: skip
        found, expected = call([x, y]), call(vg.stack([x, y]))
        for one, other in zip(
            *(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True
        ):
            assert one.device == x.device and one.dtype == other.dtype
            assert np.array_equal(host(one), host(other))
    assert vg.take(x, [x[0], 0]).tolist() == [2, 1]
    assert vg.einsum("ij,->ij", [x, y], 2.5).tolist() == [[2.5, 5.0], [7.5, 10.0]]
    assert vg.einsum("ij,->ij", [x, y], 2).dtype == np.int16
    if device != "cpu":
        with refused(device, ValueError, x, match="several devices"):
            vg.exp([x, x.cpu()])
        with refused(device, ValueError, x, match="operands on"):
            vg.add([x, y], vg.ones(2, device="cpu"))


def test_what_no_list_can_be(device):
    x = put(device, np.ones(2))
    for bad, error in (([x, x[:1]], ValueError), (["a"], TypeError), ([[1], [1, 2]], ValueError),
                       ([None], TypeError), ([2**70], OverflowError)):  # fmt: skip
        for call in (vg.sum, vg.exp, vg.flip, lambda one: vg.add(x, one), lambda one: x * one):
            with refused(device, error, x):
                call(bad)
    for name in sorted(WRITE - {"index_add"}):
        with refused(device, TypeError, x, match="writes to an Array"):
            getattr(vg, name)([1, 2], *([0] if name in ("fill_diagonal", "copyto") else [[0], 5]),
                              *([0] if name == "put_along_axis" else []))  # fmt: skip
