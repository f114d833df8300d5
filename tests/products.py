"""Operands and checks of products, for tests that force one kernel after another."""

import contextlib

import forced as library_choice
import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg


@contextlib.contextmanager
def forced(device, kernel):
    """Compute products by this kernel; skip the test where the card has not got it."""
    if not library_choice.is_able(device, kernel):
        pytest.skip(f"no kernel {kernel} on this card")
    with library_choice.forced(device, kernel):
        yield


def halves(values, dtype):
    """float64 values rounded to the dtype once, as float64."""
    return helpers.rounded(
        values, np.dtype(dtype) if dtype != "bfloat16" else helpers.BFLOAT16
    ).astype(np.float64)


def integers(rng, shape, dtype):
    """Integers that every precision holds exactly; few ones, so that sums stay small in 16 bit."""
    top = 2 if dtype in ("float16", "bfloat16") else 5
    values = rng.integers(1 - top, top, shape).astype(np.float64)
    if values.size:
        values.flat[rng.integers(values.size)] = 1
    return values


def place(device, values, dtype, trans=False, offset=0, gap=0):
    """Values on the device, stored by rows or columns, `offset` elements into memory, `gap` a row.

    What lies between the rows is NaN.
    """
    stored = values.swapaxes(-1, -2) if trans else values
    rows, columns = stored.shape[-2:]
    batch = stored.shape[:-2]
    room = np.full((*batch, rows, columns + gap), np.nan)
    room[..., :columns] = stored
    flat = np.concatenate([np.full(offset, np.nan), room.ravel()])
    with np.errstate(invalid="ignore"):
        memory = vg.astype(
            put(device, flat.astype(np.float32 if dtype != "float64" else float)),
            getattr(vg, dtype),
        )
    view = vg.reshape(memory[offset:], room.shape)[..., :columns]
    return vg.permute_dims(view, (*range(len(batch)), -1, -2)) if trans else view


def poisoned(device, shape, dtype):
    return vg.full(shape, float("nan"), dtype=getattr(vg, dtype), device=device)


def values_of(array):
    """An Array's values as float64."""
    return vg.astype(array, vg.float64).numpy()


def check_same(result, expected):
    assert np.any(expected), "the reference is zero"
    result = values_of(result)
    wrong = ~(result == expected)
    assert not wrong.any(), (
        f"{wrong.sum()} of {wrong.size} wrong, first at {np.argwhere(wrong)[0]}: "
        f"{result[wrong][0]}, not {expected[wrong][0]}"
    )
