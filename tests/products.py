"""Cases, operands and checks of products, for tests that force one kernel after another.

Memory that is freed is handed out again, often with an earlier result of the same product in it. So
results that are compared go to memory that was poisoned before (`multiply`, `layer`): what a kernel
does not write is not a number then.
"""

import contextlib

import forced as library_choice
import helpers
import numpy as np
import pytest
from helpers import put

import pyvecgpu as vg
from pyvecgpu.bench import model
from pyvecgpu.native.abi import Card, Counter, Plan

PARAMETERS = ("kernel", "dtype", "precision")


def cases_without(*kernels):
    """The CASES of all other kernels, with ids."""
    chosen = [case for case in library_choice.CASES if case[0] not in kernels]
    return [pytest.param(*case, id="-".join(part for part in case if part)) for case in chosen]


EVERY_CASE = cases_without()


def size_for(device, kernel, sizes, most):
    """(m, n, k) of a kernel in `sizes`, or those of "others"; on the simulated card `most`."""
    chosen = sizes.get(kernel, sizes["others"])
    if not library_choice.is_simulated(device):
        return chosen
    return tuple(min(length, limit) for length, limit in zip(chosen, most, strict=True))


# ---- Products ------------------------------------------------------------------------------------


@contextlib.contextmanager
def forced(device, kernel):
    """Compute products by this kernel; skip the test where the card has not got it."""
    if not library_choice.is_able(device, kernel):
        pytest.skip(f"no kernel {kernel} on this card")
    with library_choice.forced(device, kernel):
        yield


def multiply(x, y, precision=None):
    """x @ y, in poisoned memory."""
    shape = np.broadcast_shapes(x.shape[:-2], y.shape[:-2]) + x.shape[-2:-1]
    shape += y.shape[-1:] if y.ndim > 1 else ()
    out = poisoned(x.device, shape, str(x.dtype))
    return vg.matmul(x, y, precision=precision, out=out)


def round_bits(x, digits, lowest):
    """Round to so many bits of fraction, to the nearest even; subnormal below 2**lowest."""
    exponent = np.maximum(np.frexp(x)[1] - 1, lowest)
    unit = np.ldexp(1.0, exponent - digits)
    return np.round(x / unit) * unit


def layer(x, weight, bias, activation, **options):
    """A dense layer, in poisoned memory; a preactivation, if asked for, is in memory of its own."""
    out = poisoned(x.device, (*x.shape[:-1], weight.shape[0]), str(x.dtype))
    return vg.nn.functional.dense(x, weight, bias, activation, out=out, **options)


def launches(device):
    """How many kernels have been launched."""
    return vg.Device(device).backend.counter(Counter.COUNT_LAUNCHES)


def launched(device, *kernels):
    """How often kernels have been launched whose names contain one of these."""
    log = vg.launch_log(device)
    return sum(one.launches for one in log if any(name in one.kernel for name in kernels))


# ---- Operands ------------------------------------------------------------------------------------


def halves(values, dtype):
    """float64 values rounded to the dtype once, as float64."""
    return helpers.rounded(
        values, np.dtype(dtype) if dtype != "bfloat16" else helpers.BFLOAT16
    ).astype(np.float64)


def integers(rng, shape, dtype):
    """Integers that every precision holds exactly; few ones, so that sums stay small in 16 bit.

    Of uint8, 0 to 3: sums of 28 products do not wrap.
    """
    top = {"float16": 2, "bfloat16": 2, "uint8": 4}.get(dtype, 5)
    lowest = 0 if dtype == "uint8" else 1 - top
    values = rng.integers(lowest, top, shape).astype(np.float64)
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
    room = stored
    if gap:
        room = np.full((*batch, rows, columns + gap), np.nan)
        room[..., :columns] = stored
    flat = np.concatenate([np.full(offset, np.nan), room.ravel()]) if offset else room.ravel()
    with np.errstate(invalid="ignore"):
        memory = vg.astype(
            put(device, flat.astype(np.float32 if dtype != "float64" else float)),
            getattr(vg, dtype),
        )
    view = vg.reshape(memory[offset:], room.shape)[..., :columns]
    return vg.permute_dims(view, (*range(len(batch)), -1, -2)) if trans else view


def plan_of(device, dtype, precision, m, n, k, trans_a=False, trans_b=False):
    """What the device plans for a product whose operands lie without gaps."""
    loaded = vg.Device(device).backend.library
    card, plan = model.numbers(Card, {}), model.numbers(Plan, {})
    assert loaded.pvg_plan_card(vg.Device(device).index, card) == 0
    product = model.product_of(
        m,
        n,
        k,
        dtype=dtype,
        precision=precision,
        kernel=0,
        items=1,
        a_along_k=not trans_a,
        b_along_k=trans_b,
        a_stride=m if trans_a else k,
        b_stride=k if trans_b else n,
        c_stride=n,
        a_item=0,
        b_item=0,
        c_item=0,
    )
    assert loaded.pvg_plan_product(card, product, plan) == 0
    return plan


def poisoned(device, shape, dtype):
    """NaN; of uint8, the largest number."""
    value = 255 if dtype == "uint8" else float("nan")
    return vg.full(shape, value, dtype=getattr(vg, dtype), device=device)


# ---- Checks --------------------------------------------------------------------------------------


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


def check_bits(result, expected, message=""):
    """The same numbers, bit for bit; poison on both sides is none."""
    assert np.isfinite(values_of(result)).all(), f"not finite {message}"
    assert helpers.bits(result) == helpers.bits(expected), f"other bits {message}"


def check_columns(x, y, precision, expected, first, width):
    """x @ y into columns of a wider array, from `first` on: right, and nothing else written."""
    memory = poisoned(x.device, (*expected.shape[:-1], width), str(x.dtype))
    last = first + expected.shape[-1]
    vg.matmul(x, y, precision=precision, out=memory[..., first:last])
    check_same(memory[..., first:last], expected)
    left = values_of(memory)
    assert np.isnan(left[..., :first]).all() and np.isnan(left[..., last:]).all()


def check_within(result, expected, tolerance, message=""):
    """|result - expected| <= tolerance, of float64 ndarrays."""
    error = np.abs(result - expected)
    assert np.all(error <= tolerance), f"{np.max(error / tolerance)} of the tolerance {message}"
