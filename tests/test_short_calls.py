"""How functions get their short ways on the CPU: what is written out for them, and for operations.

What the short ways give is in test_short_numpy.py and test_short_random.py.
"""

import inspect
import threading

import helpers
import numpy as np
import pytest
from helpers import host, put

import pyvecgpu as vg
from pyvecgpu.dispatch import observe
from pyvecgpu.functions import short_calls
from pyvecgpu.operations import ROWS

pytestmark = pytest.mark.devices("cpu")


def decorated():
    """{name: function} of all that have a short way, wherever they are."""
    found = {}
    for prefix, module in (("", vg), ("linalg.", vg.linalg), ("fft.", vg.fft)):
        for name in dir(module):
            space = getattr(getattr(module, name), "__globals__", {})
            if "write_out" in space:
                found[prefix + name] = getattr(module, name)
    return found


DECORATED = decorated()


def test_there_are_many():
    assert len(DECORATED) > 150
    assert {"sort", "sum", "concat", "tri", "linalg.inv", "fft.fftfreq"} <= DECORATED.keys()


@pytest.mark.parametrize("name", sorted(DECORATED))
def test_what_is_written_out_has_the_functions_parameters(name):
    """As names, kinds and defaults, and of the short way no others."""
    function = DECORATED[name]
    space = function.__globals__
    space["write_out"](function)
    composed = inspect.signature(space["composed"])
    own = inspect.signature(function, follow_wrapped=False)
    for one, other in zip(own.parameters.values(), composed.parameters.values(), strict=True):
        assert (one.name, one.kind) == (other.name, other.kind)
        assert one.default is other.default
    assert function.__name__ == space["composed"].__name__


def way(x, k=1):
    return x + k


def test_a_short_way_has_the_defaults_of_the_function(device):
    def composed(x, k=1, *, device=None):
        return "the long way"

    def other(x, k=2, *, device=None):
        return "the long way"

    def third(x):
        return "the long way"

    x = put(device, np.arange(3))
    function = short_calls.short(way)(composed)
    assert host(function(x)).tolist() == [1, 2, 3] and host(function(x, k=2)).tolist() == [2, 3, 4]
    assert function(x, device=device) == "the long way" == function([1, 2])
    for wrong, error in ((other, TypeError), (third, KeyError)):
        with pytest.raises(error):
            short_calls.short(way)(wrong)(x)


def test_calls_that_do_not_fit_say_so(device):
    x = put(device, np.arange(3))
    for call in (lambda: vg.sort(), lambda: vg.sort(x, other=1), lambda: vg.sort(x, 0, None, 1)):
        with pytest.raises(TypeError, match=r"sort\(\)"):
            call()
    for call in (lambda: vg.add(x), lambda: vg.exp(x, x, x), lambda: vg.exp(x, other=1)):
        with pytest.raises(TypeError, match=r"add\(\)|exp\(\)"):
            call()


def test_threads_may_call_first_at_once(device):
    """A function is written out when it is first called."""
    for _ in range(20):

        def composed(x, k=1):
            return "the long way"

        function, gave = short_calls.short(way)(composed), []
        barrier = threading.Barrier(4)
        x = put(device, np.arange(3))

        def call(function=function, gave=gave, barrier=barrier, x=x):
            barrier.wait()
            gave.extend(host(function(x)).tolist() for _ in range(5))

        threads = [threading.Thread(target=call) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert gave == [[1, 2, 3]] * 20


# Functions of one operation -----------------------------------------------------------------------

NAMES = [row.name for row in ROWS if row.family in ("unary", "binary") and hasattr(vg, row.name)]
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "complex64")


def outcome(function, *operands, **options):
    """Return what a call gives and has written, or its error; once observed and once not."""
    found = []
    for watched in (False, True):
        given = [one.copy() if isinstance(one, vg.Array) else one for one in operands]
        out = options["out"].copy() if "out" in options else None
        asked = options | ({} if out is None else {"out": out})
        try:
            if watched:
                with observe(lambda call: None):
                    result = function(*given, **asked)
            else:
                result = function(*given, **asked)
            assert out is None or result is out
            result = (result.dtype, result.shape, host(result).tobytes())
        except Exception as error:
            result = type(error), str(error)
        found.append((result, [host(one).tobytes() for one in given if isinstance(one, vg.Array)]))
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_operations_are_the_same_observed_or_not(device, rng, name):
    function = getattr(vg, name)
    count = next(row.family for row in ROWS if row.name == name) == "binary"
    for dtype in DTYPES:
        shapes = ((4, 6), (4, 1)) if rng.random() < 0.5 else ((3,), ()) if count else ((4, 6),)
        operands = [put(device, helpers.integers(rng, shape, vg.dtype(dtype))) for shape in shapes]
        operands = operands[: 1 + count]
        outs = [
            vg.zeros(shape, dtype=of, device=device) for shape in ((4, 6), (3,)) for of in DTYPES
        ]
        outs.append(np.zeros((4, 6), np.float32))  # which is no Array
        calls = [{}, {"where": False}, {"dtype": "float64"}, {"device": device}]
        for options in (*calls, *({"out": out} for out in outs)):
            plain, observed = outcome(function, *operands, **options)
            assert plain == observed, f"{dtype} {options}"


def test_operations_are_recorded_and_exchanged(device):
    """What is tracked, or under autocast, goes the long way."""
    x = put(device, np.array([0.5, 2.0], np.float32))
    x.requires_grad_()
    y = vg.multiply(vg.exp(x), x)
    vg.sum(y).backward()
    expected = np.exp([0.5, 2.0]) * (1 + np.array([0.5, 2.0]))
    np.testing.assert_allclose(host(x.grad), expected, rtol=1e-6)
    half = put(device, np.array([1.0, 2.0], np.float16))
    with vg.autocast(device, dtype="float16"):
        assert vg.exp(half).dtype == np.float32
    assert vg.exp(half).dtype == np.float16
