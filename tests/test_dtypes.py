"""dtypes: names, promotion, and which operation takes which; Python, C and NumPy agree."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import DTYPES, put

import pyvecgpu as vg
from pyvecgpu.dtypes import CODES, promote, supported
from pyvecgpu.native import library
from pyvecgpu.native.abi import Operation


def test_names_are_numpys():
    for dtype in DTYPES:
        name = str(dtype)
        assert getattr(vg, name if name != "bool" else "bool", dtype) == dtype
        assert supported(dtype) in CODES
    assert len(CODES) == 9
    assert len(DTYPES) == (9 if helpers.BFLOAT16 else 8)


@pytest.mark.devices("sim", "cuda")
def test_promotion_is_numpys(device):
    loaded = library.load(device)
    codes = {dtype: CODES[supported(dtype)] for dtype in DTYPES}
    for a, b in itertools.product(DTYPES, DTYPES):
        expected = helpers.result_type(a, b)
        assert promote(a, b) == expected
        assert loaded.pvg_promote(codes[a], codes[b]) == codes[expected], (a, b)
        assert (put(device, np.ones(1, a)) * put(device, np.ones(1, b))).dtype == expected
    for code in (-1, 1, 2, 13, 99):
        assert loaded.pvg_promote(code, 0) == loaded.pvg_promote(0, code) == -1
        assert loaded.pvg_dtype_size(code) == 0
    for dtype, code in CODES.items():
        assert loaded.pvg_dtype_size(code) == dtype.itemsize


NOT_BOOL = {Operation.NEGATIVE, Operation.RELU, Operation.SUBTRACT}


@pytest.mark.devices("sim", "cuda")
def test_supports(device):
    loaded = library.load(device)
    for operation, dtype in itertools.product(set(Operation) - {Operation.NONE}, DTYPES):
        expected = not (operation in NOT_BOOL and dtype.kind == "b")
        if operation == Operation.DENSE:
            expected = helpers.is_float(dtype)
        code = CODES[supported(dtype)]
        assert loaded.pvg_supports(operation, code) == expected, (operation.name, dtype)
    for code in (Operation.NONE, -1, 9999):
        assert loaded.pvg_supports(code, CODES[vg.float32]) == 0
    assert loaded.pvg_supports(Operation.ADD, 9999) == 0


@pytest.mark.parametrize(
    "dtype", ["float32", np.float32, np.dtype("<f4"), np.dtype(">f4"), float, int, bool, "uint64"]
)
def test_what_counts_as_a_dtype(device, dtype):
    assert vg.zeros(1, dtype=dtype, device=device).dtype == np.dtype(dtype).newbyteorder("=")


@pytest.mark.parametrize(
    "dtype", ["float8", "nonsense", "int8", object, 3, "complex128", "U4", [("a", "i4")]], ids=str
)
def test_what_does_not(device, dtype):
    with helpers.refused(device, TypeError):
        vg.zeros(1, dtype=dtype, device=device)
