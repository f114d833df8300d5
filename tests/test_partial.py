"""Reductions of some of the elements (`where`) and with a number beside them (`initial`)."""

import itertools

import helpers
import numpy as np
import pytest
from gradients import check
from helpers import DTYPES, LAYOUTS, put, refused

import pyvecgpu as vg

INITIAL = {"sum": 3, "prod": 2, "max": 1, "min": 1}
NAMES = ["sum", "prod", "mean", "max", "min", "any", "all", "var", "std"]
SHAPES = [(3, 4), (2, 3, 2), (5,), (), (0, 3), (3, 0)]


def axes_of(shape):
    return [None, *range(-1, len(shape))][: len(shape) + 1] + [(0, 1)] * (len(shape) > 1)


def masks_of(rng, shape):
    """Of the shape, of some of its axes, and of none."""
    yield rng.integers(0, 2, shape).astype(bool)
    yield rng.integers(0, 2, shape[-1:]).astype(bool)
    if len(shape) > 1:
        yield rng.integers(0, 2, (shape[0], *(1,) * (len(shape) - 1))).astype(bool)
    yield np.array(False)


def options_of(name, mask, dtype):
    extreme = name in ("max", "min")
    initial = {"initial": True if extreme and dtype.kind == "b" else INITIAL.get(name)}
    yield {"where": mask} | (initial if extreme else {})
    if name in INITIAL:
        yield {**initial, "where": mask}
        yield initial


def assert_near(found, wanted, dtype, what):
    wanted = np.asarray(wanted)
    found = np.asarray(found.numpy() if isinstance(found, vg.Array) else found)
    assert found.shape == wanted.shape, what
    rtol = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5}.get(str(dtype), 1e-6)
    wanted = wanted.astype(np.float64)
    assert np.allclose(found.astype(np.float64), wanted, rtol, rtol, equal_nan=True), what


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_numpys(device, rng, name, dtype):
    """Every function, axis and layout, as method and as function; computed in float64."""
    wide = np.float64 if helpers.is_float(dtype) or name in ("var", "std", "mean") else None
    ours, numpys, layouts = getattr(vg, name), getattr(np, name), itertools.cycle(LAYOUTS)
    for shape in SHAPES[(DTYPES.index(dtype) + NAMES.index(name)) % 3 :: 3]:
        x = helpers.integers(rng, shape, dtype, 0, 3)
        exact = x if wide is None else x.astype(wide)
        array = (LAYOUTS[next(layouts)] if x.ndim > 1 else put)(device, x)
        for mask, axis, keepdims in itertools.product(
            masks_of(rng, shape), axes_of(shape), (False, True)
        ):
            for options in options_of(name, mask, dtype):
                wanted = numpys(exact, axis=axis, keepdims=keepdims, **options)
                here = {n: put(device, v) if n == "where" else v for n, v in options.items()}
                what = f"{name} of {shape} by {axis}, {options}"
                found = ours(array, axis=axis, keepdims=keepdims, **here)
                assert_near(found, wanted, dtype, what)
                same = getattr(array, name)(axis=axis, keepdims=keepdims, **here)
                assert same.dtype == found.dtype, what
                assert np.array_equal(same.numpy(), found.numpy(), equal_nan=True), what
                assert found.dtype == ours(put(device, np.ones((1, 1), dtype)), axis=0).dtype, what


def test_dtype_and_out(device):
    x, mask = put(device, np.array([[1, 2], [3, 4]], np.int8)), put(device, np.array([True, False]))
    assert vg.sum(x, axis=1, dtype="float64", where=mask).dtype == "float64"
    out = put(device, np.zeros(2, np.float32))
    assert vg.mean(x, axis=0, out=out, where=mask[:, None]) is out and out.tolist() == [1.0, 2.0]
    assert vg.max(x, axis=1, initial=9, out=out) is out and out.tolist() == [9.0, 9.0]
    host = x.numpy()
    assert type(vg.sum(host, axis=0, where=mask.numpy(), device=device)) is np.ndarray
    assert vg.var(x, where=mask, ddof=1).item() == np.var(host, where=mask.numpy(), ddof=1)


def test_what_is_refused(device):
    x, mask = put(device, np.ones((2, 3))), put(device, np.ones(3, bool))
    for error, call in (
        (ValueError, lambda: vg.max(x, where=mask)),
        (ValueError, lambda: x.min(where=mask)),
        (ValueError, lambda: vg.max(x[:0], axis=0)),
        (ValueError, lambda: vg.sum(x, where=mask[:2])),
        (TypeError, lambda: vg.sum(x, where=x)),
        (TypeError, lambda: vg.sum(x, where=1)),
        (TypeError, lambda: vg.sum(x, initial="1")),
        (np.exceptions.AxisError, lambda: vg.any(x, axis=2, where=mask)),
    ):
        with refused(device, error, x, mask):
            call()


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max"])
def test_gradients(device, name):
    x = np.array([[1.5, -2.0, 0.5], [3.0, 1.0, -1.5]])
    mask = put(device, np.array([[True, False, True], [True, True, False]]))
    options = {"where": mask} | ({"initial": 0.25} if name == "max" else {})
    check(lambda a: getattr(vg, name)(a, axis=1, **options), x, device=device)
